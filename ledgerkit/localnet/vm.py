"""
The virtual machine of contracts: host functions, gas, promises.

A call has one `Vm`, whether its contract is a Python class or a Wasm module. The contract reads
the call's context, reads and writes the storage records of its account, logs and creates promises.
Each host function burns gas, and those that change something are prohibited in view calls. The
runtime sends the promises as receipts.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Never, Protocol

from msgspec import Struct, field

from ledgerkit.localnet import fees
from ledgerkit.localnet.execution_errors import HostError, PanicError, prohibited_in_view
from ledgerkit.localnet.features import Feature
from ledgerkit.localnet.gas_counter import ACTION, HOST, INSTRUCTIONS, GasCounter
from ledgerkit.localnet.promises import (
    Promise,
    ReceiptDraft,
    check_method_name,
    parse_account_id,
)
from ledgerkit.localnet.transaction_validity import MAX_KEY_BYTES, MAX_VALUE_BYTES
from ledgerkit.protocol import Action, CryptoHash, FunctionCall, PublicKey, data_id
from ledgerkit.units import U64_MAX, U128_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ledgerkit.localnet.state import State

# The limits of nearcore (LimitConfig), from the same files as the fees.
MAX_LOGS = 100
MAX_LOG_BYTES = 16_384
MAX_PROMISES = 1024
MAX_INPUT_DATA = 128
MAX_RESULT_BYTES = 4 * 2**20
MAX_YIELD_PAYLOAD_BYTES = 1024
LARGE_VALUE_BYTES = 4000  # a read of more has an overhead (nearcore: INLINE_DISK_VALUE_THRESHOLD)
YIELD_ID_BYTES = 32


class CallContext(Struct, frozen=True, kw_only=True):
    """The context of a call."""

    current_account_id: str
    signer_id: str
    signer_public_key: PublicKey
    predecessor_id: str
    input: bytes
    block_height: int
    block_timestamp: int
    epoch_height: int
    balance: int  # with the attached deposit
    locked: int
    storage_usage: int
    attached_deposit: int
    prepaid_gas: int
    random_seed: bytes
    action_hash: CryptoHash
    promise_results: tuple[bytes | None, ...] = ()
    data_receivers: tuple[str, ...] = ()  # the accounts that wait for this call's result
    is_view: bool = False
    fixed_gas: int | None = None  # burnt in place of the sum of the host functions
    code_size: int = 0
    chain_id: str = ""
    validator_stakes: Mapping[str, int] = field(default_factory=dict)  # yoctoNEAR, of this epoch
    contract: tuple[str, CryptoHash | str] | None = None  # as in an outcome's metadata
    refund_to: str = ""  # receives the deposits if the receipt fails


class Yields(Protocol):
    """The yielded calls of an account that wait to be resumed (NEP-519)."""

    def is_waiting(self, data_id: CryptoHash) -> bool:
        """Return True if a call waits for a data id."""
        ...

    def data_id(self, yield_id: bytes) -> CryptoHash | None:
        """Return the data id of the call that waits under a contract's own id, or None."""
        ...


class NoYields:
    """The yielded calls of an account that has none."""

    def is_waiting(self, data_id: CryptoHash) -> bool:  # noqa: ARG002 - as the protocol has it
        """Return False."""
        return False

    def data_id(self, yield_id: bytes) -> CryptoHash | None:  # noqa: ARG002 - as above
        """Return None."""
        return None


class Vm:
    """The virtual machine of one call."""

    def __init__(
        self,
        context: CallContext,
        state: State,
        profile: fees.Profile,
        yields: Yields | None = None,
    ) -> None:
        self.context, self.profile = context, profile
        self._state = state
        self._waiting_yields = NoYields() if yields is None else yields
        self.gas = GasCounter(context.prepaid_gas, context.fixed_gas, is_view=context.is_view)
        self.logs: list[str] = []
        self.drafts: list[ReceiptDraft] = []
        self.weights: list[tuple[ReceiptDraft, int, FunctionCall, int]] = []
        self.resumed: list[tuple[CryptoHash, bytes]] = []
        self.yielded: list[CryptoHash] = []
        self.yield_ids: dict[bytes, CryptoHash] = {}  # the data ids by the contract's own ids
        self.result: bytes | Promise = b""
        self.subsidized = 0  # yoctoNEAR of deposits that the chain added, see `deduct`
        self._balance, self._storage = context.balance, context.storage_usage
        self._data_id_count = self._promise_count = 0
        self.log_bytes = 0  # of the logs until now
        self.is_begun = False  # True within a module's host function whose base cost is burnt

    def host_call(self, name: str) -> None:
        """Burn the base cost of a host function that view calls may not use; fail in a view."""
        if self.is_begun:
            return
        self.gas.burn_host("BASE")
        if self.context.is_view:
            raise prohibited_in_view(name)

    # The context -----------------------------------------------------------------------

    @property
    def current_account_id(self) -> str:
        """The account whose contract runs."""
        return self.context.current_account_id

    @property
    def signer_id(self) -> str:
        """The signer of the transaction that caused this call."""
        self.host_call("signer_account_id")
        return self.context.signer_id

    @property
    def signer_public_key(self) -> PublicKey:
        """The public key that signed the transaction."""
        self.host_call("signer_account_pk")
        return self.context.signer_public_key

    @property
    def predecessor_id(self) -> str:
        """The account that calls: the signer or another contract."""
        self.host_call("predecessor_account_id")
        return self.context.predecessor_id

    @property
    def refund_to_id(self) -> str:
        """The account to which the deposits return if the receipt fails."""
        self.host_call("refund_to_account_id")
        return self.context.refund_to

    @property
    def attached_deposit(self) -> int:
        """The deposit of the call, in yoctoNEAR."""
        self.gas.burn_host("BASE")
        return self.context.attached_deposit

    @property
    def prepaid_gas(self) -> int:
        """The gas attached to the call."""
        self.host_call("prepaid_gas")
        return self.context.prepaid_gas

    @property
    def used_gas(self) -> int:
        """The gas burnt and reserved until now."""
        self.host_call("used_gas")
        return self.gas.used

    @property
    def is_view(self) -> bool:
        """True in a view call, which may not change anything."""
        return self.context.is_view

    @property
    def input(self) -> bytes:
        """The encoded arguments."""
        return self.context.input

    @property
    def balance(self) -> int:
        """The account's yoctoNEAR, with the attached deposit, less the deposits of promises."""
        return self._balance

    @property
    def locked(self) -> int:
        """The account's yoctoNEAR at stake."""
        return self.context.locked

    @property
    def storage_usage(self) -> int:
        """The account's bytes of storage."""
        return self._storage

    @property
    def block_height(self) -> int:
        """The height of the current block."""
        return self.context.block_height

    @property
    def block_timestamp(self) -> int:
        """The time of the current block, in nanoseconds."""
        return self.context.block_timestamp

    @property
    def epoch_height(self) -> int:
        """The number of epochs before the current one."""
        return self.context.epoch_height

    @property
    def random_seed(self) -> bytes:
        """32 random bytes."""
        return self.context.random_seed

    def sha256(self, data: bytes) -> bytes:
        """Compute a SHA-256 hash."""
        self.gas.burn_host("SHA256_BASE")
        self.gas.burn_host("SHA256_BYTE", len(data))
        return sha256(data).digest()

    # Storage -----------------------------------------------------------------------------

    # The node also charges for the nodes of its state trie that a record's path touches. This
    # ledger has no trie, and charges for none of them.

    def storage_read(self, key: bytes) -> bytes | None:
        """Return a storage record's value, or None."""
        self.gas.burn_host("BASE")
        self.gas.burn_host("STORAGE_READ_BASE")
        self._check_key(key)
        self.gas.burn_host("STORAGE_READ_KEY_BYTE", len(key))
        value = self._state.data(self.current_account_id, key)
        if value is not None:
            self.gas.burn_host("STORAGE_READ_VALUE_BYTE", len(value))
            if len(value) > LARGE_VALUE_BYTES:
                self.gas.burn_host("STORAGE_LARGE_READ_OVERHEAD_BASE")
                self.gas.burn_host("STORAGE_LARGE_READ_OVERHEAD_BYTE", len(value))
        return value

    def storage_has_key(self, key: bytes) -> bool:
        """Return True if a storage record exists."""
        self.gas.burn_host("BASE")
        self.gas.burn_host("STORAGE_HAS_KEY_BASE")
        self._check_key(key)
        self.gas.burn_host("STORAGE_HAS_KEY_BYTE", len(key))
        return self._state.data(self.current_account_id, key) is not None

    def storage_write(self, key: bytes, value: bytes) -> bytes | None:
        """Write a storage record; return the value that it replaces, or None."""
        self.host_call("storage_write")
        self.gas.burn_host("STORAGE_WRITE_BASE")
        self._check_key(key)
        self._check_length("storage value", "ValueLengthExceeded", len(value), MAX_VALUE_BYTES)
        self.gas.burn_host("STORAGE_WRITE_KEY_BYTE", len(key))
        self.gas.burn_host("STORAGE_WRITE_VALUE_BYTE", len(value))
        old = self._state.data(self.current_account_id, key)
        if old is None:
            self._storage += len(value) + len(key) + fees.RECORD_BYTES
        else:
            self.gas.burn_host("STORAGE_WRITE_EVICTED_BYTE", len(old))
            self._storage += len(value) - len(old)
        self._state.store.data.put(self.current_account_id, key, value)
        return old

    def storage_remove(self, key: bytes) -> bytes | None:
        """Remove a storage record; return its value, or None if there is none."""
        self.host_call("storage_remove")
        self.gas.burn_host("STORAGE_REMOVE_BASE")
        self._check_key(key)
        self.gas.burn_host("STORAGE_REMOVE_KEY_BYTE", len(key))
        old = self._state.data(self.current_account_id, key)
        if old is None:
            return None
        self.gas.burn_host("STORAGE_REMOVE_RET_VALUE_BYTE", len(old))
        self._storage -= len(old) + len(key) + fees.RECORD_BYTES
        self._state.store.data.put(self.current_account_id, key, None)
        return old

    def records(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the storage records with a prefix, sorted by key."""
        for key, value in list(self._state.records(self.current_account_id, prefix)):
            self.gas.burn_host("STORAGE_READ_BASE")
            self.gas.burn_host("STORAGE_READ_VALUE_BYTE", len(value))
            yield key, value

    def _check_key(self, key: bytes) -> None:
        """Fail for the key of a storage record that is too long."""
        self._check_length("storage key", "KeyLengthExceeded", len(key), MAX_KEY_BYTES)

    # Logs --------------------------------------------------------------------------------

    def log(self, text: str) -> None:
        """Add a log to the outcome."""
        self.gas.burn_host("BASE")
        self.check_log_count()
        self.add_log(text)

    def check_log_count(self) -> None:
        """Fail if there are as many logs as a call may have."""
        if len(self.logs) >= MAX_LOGS:
            raise HostError(
                f"The number of logs will exceed the limit {MAX_LOGS}",
                f"NumberOfLogsExceeded {{ limit: {MAX_LOGS} }}",
            )

    def add_log(self, text: str) -> None:
        """Burn the cost of a log and add it."""
        size = len(text.encode())
        self.gas.burn_host("LOG_BASE")
        self.gas.burn_host("LOG_BYTE", size)
        self.push_log(text)

    def push_log(self, text: str) -> None:
        """Add a log whose cost is burnt."""
        size = len(text.encode())
        self.check_log_bytes(size)
        self.log_bytes += size
        self.logs.append(text)

    def check_log_bytes(self, size: int) -> None:
        """Fail if a text of this size exceeds what all logs of a call may have together."""
        length = self.log_bytes + size
        self._check_length("log message", "TotalLogLengthExceeded", length, MAX_LOG_BYTES)

    def panic(self, message: str) -> Never:
        """Stop with an error: the receipt fails; its outcome has the logs and the burnt gas."""
        raise PanicError(message)

    # Promises ----------------------------------------------------------------------------

    def promise(self, receiver_id: str) -> Promise:
        """Create a receipt, as yet without actions."""
        self.host_call("promise_batch_create")
        return self._new_receipt(receiver_id, ())

    def promise_then(self, promise: Promise, receiver_id: str) -> Promise:
        """Create a receipt that waits for the results of a promise."""
        self.host_call("promise_batch_then")
        new_id = parse_account_id(receiver_id)
        data_gas = sum(self._data_gas(sir=draft.receiver_id == new_id) for draft in promise.drafts)
        data_ids = [self._new_data_id() for _ in promise.drafts]
        new_promise = self._new_receipt(new_id, data_ids, data_gas)
        for draft, new_data_id in zip(promise.drafts, data_ids, strict=True):
            draft.output_data_receivers.append((new_data_id, new_id))
        return new_promise

    def join(self, *promises: Promise) -> Promise:
        """Join promises, so that a receipt can wait for all of them, in this order."""
        self.host_call("promise_and")
        self.gas.burn_host("PROMISE_AND_BASE")
        self.gas.burn_host("PROMISE_AND_PER_PROMISE", 8 * len(promises))
        drafts: list[ReceiptDraft] = []
        for promise in promises:
            drafts.extend(promise.drafts)
            _check_dependencies(len(drafts))  # the error has the number at which it fails
        self._count_promise()
        return Promise(self, drafts, is_joint=True)

    @property
    def promise_results(self) -> tuple[bytes | None, ...]:
        """The results that this callback waited for, in order; None for each that failed."""
        self.host_call("promise_results_count")
        return self.context.promise_results

    def deduct(self, deposit: int, *, may_subsidize: bool = False) -> None:
        """
        Deduct a deposit from the account's balance.

        Since version 85 a contract without any balance may attach one yoctoNEAR to a call; the
        chain adds it (nearcore: one_yocto_on_promise).
        """
        has_subsidy = may_subsidize and self.profile.has(Feature.ONE_YOCTO_ON_PROMISE)
        if has_subsidy and deposit == 1 and not self._balance:
            self.subsidized += 1
            return
        if not 0 <= deposit <= U128_MAX or deposit > self._balance:
            raise HostError("Exceeded the account balance.", "BalanceExceeded")
        self._balance -= deposit

    def burn_action_fee(self, action: Action, receiver_id: str) -> None:
        """Burn the gas to send an action, and reserve the gas to execute it."""
        for name, fee in self.profile.fee_parts(action, receiver_id):
            self.burn_fee(name, fee, receiver_id)
        if isinstance(action, FunctionCall):
            self.gas.reserve(action.gas)

    def burn_fee(self, name: str, fee: fees.Fee, receiver_id: str) -> None:
        """Burn the gas to send a part of an action, and reserve the gas to execute it."""
        self.gas.burn(fee.send(sir=receiver_id == self.current_account_id), ACTION, name)
        self.gas.reserve(fee.execute)

    # Yielded calls (NEP-519) -------------------------------------------------------------

    def yield_create(
        self, method_name: str, args: bytes, *, gas: int = 0, weight: int = 0
    ) -> tuple[Promise, CryptoHash]:
        """Create a call that waits until its data id is resumed or times out."""
        self.host_call("promise_yield_create")
        self.gas.burn_host("YIELD_CREATE_BASE")
        check_method_name(method_name)
        self.gas.burn_host("YIELD_CREATE_BYTE", len(method_name.encode()) + len(args))
        return self._new_yield(method_name, args, deposit=0, gas=gas, weight=weight)

    def yield_create_with_id(
        self, method_name: str, args: bytes, yield_id: bytes, *, deposit: int, gas: int, weight: int
    ) -> Promise | None:
        """Create a call that waits under an id of the contract's own; None if the id is in use."""
        self.host_call("promise_yield_create_with_id")
        self.gas.burn_host("YIELD_CREATE_WITH_ID_BASE")
        check_method_name(method_name)
        _check_yield_id(yield_id)
        self.gas.burn_host("YIELD_CREATE_BYTE", len(method_name.encode()) + len(args))
        if self._data_id_of(yield_id) is not None:
            return None
        promise, new_id = self._new_yield(
            method_name, args, deposit=deposit, gas=gas, weight=weight
        )
        self.yield_ids[yield_id] = new_id
        return promise

    def _new_yield(
        self, method_name: str, args: bytes, *, deposit: int, gas: int, weight: int
    ) -> tuple[Promise, CryptoHash]:
        """Create the receipt of a yielded call."""
        new_id = self._new_data_id()
        promise = self._new_receipt(self.current_account_id, [new_id], self._data_gas(sir=True))
        promise.drafts[0].is_yield = True
        promise.add_call(method_name, args, deposit=deposit, gas=gas, weight=weight)
        self.yielded.append(new_id)
        return promise, new_id

    def yield_resume(self, data_id: bytes, payload: bytes) -> bool:
        """Send a yielded call its data; return False if no call waits for it."""
        self._begin_resume("promise_yield_resume", payload)
        if len(data_id) != YIELD_ID_BYTES:
            raise HostError("yield resumption token is malformed", "DataIdMalformed")
        return self._resume(CryptoHash(data_id), payload)

    def yield_resume_with_id(self, yield_id: bytes, payload: bytes) -> bool:
        """Send its data to the call that waits under an id of the contract's own."""
        self._begin_resume("promise_yield_resume_with_yield_id", payload)
        _check_yield_id(yield_id)
        data_id = self._data_id_of(yield_id)
        return data_id is not None and self._resume(data_id, payload)

    def _begin_resume(self, name: str, payload: bytes) -> None:
        """Burn the gas to resume a call, and check the payload."""
        self.host_call(name)
        self.gas.burn_host("YIELD_RESUME_BASE")
        length, limit = len(payload), MAX_YIELD_PAYLOAD_BYTES
        self.gas.burn_host("YIELD_RESUME_BYTE", length)
        if length > limit:
            raise HostError(
                f"Yield resume payload is {length} bytes which exceeds the {limit} byte limit",
                f"YieldPayloadLength {{ length: {length}, limit: {limit} }}",
            )

    def _resume(self, yielded_id: CryptoHash, payload: bytes) -> bool:
        """Send a yielded call its data, unless it has data or is not there."""
        if yielded_id not in self.yielded and not self._waiting_yields.is_waiting(yielded_id):
            return False
        if any(resumed_id == yielded_id for resumed_id, _ in self.resumed):
            return False
        self.resumed.append((yielded_id, payload))
        return True

    def _data_id_of(self, yield_id: bytes) -> CryptoHash | None:
        """Return the data id of the call that waits under a contract's own id, or None."""
        return self.yield_ids.get(yield_id) or self._waiting_yields.data_id(yield_id)

    # Begin and end -----------------------------------------------------------------------

    def begin(self) -> None:
        """Burn the gas of a Python contract: to load it, and for its computation."""
        if self.context.fixed_gas is not None:
            self.gas.burn(self.context.fixed_gas, HOST, INSTRUCTIONS)
            return
        self.gas.burn(fees.CALL_BASE, HOST, INSTRUCTIONS)
        self.burn_loading()

    def burn_loading(self) -> None:
        """Burn the gas to load the contract."""
        self.gas.burn_host("CONTRACT_LOADING_BASE")
        self.gas.burn_host("CONTRACT_LOADING_BYTES", self.context.code_size)

    def value_return(self, value: bytes) -> None:
        """Set the result of the call, and burn the gas to send it to the waiting receipts."""
        self.gas.burn_host("BASE")
        self._check_length(
            "returned value", "ReturnedValueLengthExceeded", len(value), MAX_RESULT_BYTES
        )
        fee = self.profile.table["data_receipt_byte"]
        for receiver_id in self.context.data_receivers:
            gas = fee.send(sir=receiver_id == self.current_account_id) + fee.execute
            self.gas.burn(gas * len(value), ACTION, "NEW_DATA_RECEIPT_BYTE")
        self.result = value

    def promise_return(self, promise: Promise) -> None:
        """Set the result of the call to that of a promise."""
        self.host_call("promise_return")
        self.gas.burn_host("PROMISE_RETURN")
        if promise.is_joint:
            raise HostError(
                "Returning joint promise is currently prohibited.", "CannotReturnJointPromise"
            )
        self.result = promise

    def finish(self) -> bytes | Promise:
        """Distribute the unused gas to the calls with a weight; return the call's result."""
        total = sum(weight for *_, weight in self.weights)
        if not total:
            return self.result
        unused = self.gas.remaining
        shares = [unused * weight // total for *_, weight in self.weights]
        shares[-1] += unused - sum(shares)  # the last call gets the remainder of the divisions
        for (draft, position, call, _), share in zip(self.weights, shares, strict=True):
            gas = min(call.gas + share, U64_MAX)
            new_call = FunctionCall(call.method_name, call.args, gas, call.deposit)
            draft.actions[position] = new_call
        self.gas.used = self.gas.limit
        return self.result

    def _new_receipt(
        self, receiver_id: str, input_data_ids: Sequence[CryptoHash], data_gas: int = 0
    ) -> Promise:
        """Create a receipt and burn its fee, with the gas of the data that it waits for."""
        receiver_id = parse_account_id(receiver_id)
        gas = self.profile.new_receipt_send(sir=receiver_id == self.current_account_id)
        self.gas.burn(gas + data_gas, ACTION, "NEW_ACTION_RECEIPT")
        self.gas.reserve(self.profile.new_receipt_execute)
        self._count_promise()
        draft = ReceiptDraft(receiver_id, input_data_ids)
        self.drafts.append(draft)
        return Promise(self, [draft])

    def _count_promise(self) -> None:
        """Fail if there are more promises than a call may create, joined ones included."""
        self._promise_count += 1
        count = self._promise_count
        if count > MAX_PROMISES:
            raise HostError(
                f"The number of promises within a FunctionCall {count} exceeds the limit "
                f"{MAX_PROMISES}",
                f"NumberPromisesExceeded {{ number_of_promises: {count}, limit: {MAX_PROMISES} }}",
            )

    def _data_gas(self, *, sir: bool) -> int:
        """Return the gas of data that a new receipt waits for; the sender pays for all of it."""
        fee = self.profile.table["data_receipt_base"]
        return fee.send(sir=sir) + fee.execute

    def _new_data_id(self) -> CryptoHash:
        """Compute the next data id."""
        new_id = data_id(self.context.action_hash, self.block_height, self._data_id_count)
        self._data_id_count += 1
        return new_id

    @staticmethod
    def _check_length(subject: str, error: str, length: int, limit: int) -> None:
        """Raise an error if a length exceeds its limit."""
        if length > limit:
            raise HostError(
                f"The length of a {subject} {length} exceeds the limit {limit}",
                f"{error} {{ length: {length}, limit: {limit} }}",
            )


def _check_dependencies(count: int) -> None:
    """Fail for more promises than one receipt can wait for."""
    if count > MAX_INPUT_DATA:
        raise HostError(
            f"The number of input data dependencies {count} exceeds the limit {MAX_INPUT_DATA}",
            "NumberInputDataDependenciesExceeded { number_of_input_data_dependencies: "
            f"{count}, limit: {MAX_INPUT_DATA} }}",
        )


def _check_yield_id(yield_id: bytes) -> None:
    """Fail for an id of a yielded call that is not 32 bytes."""
    if len(yield_id) != YIELD_ID_BYTES:
        raise HostError("yield id is malformed", "YieldIdMalformed")
