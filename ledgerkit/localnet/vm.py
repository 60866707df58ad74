"""
The virtual machine of contracts: host functions, gas, promises.

A contract has one `Vm` per call. It reads the call's context, reads and writes the storage
records of its account, logs and creates promises. Each host function burns gas, and those that
change something are prohibited in view calls. The runtime sends the promises as receipts.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Never

from msgspec import Struct

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import fees
from ledgerkit.localnet.chain_types import GasCost
from ledgerkit.localnet.execution_errors import HostError, PanicError, prohibited_in_view
from ledgerkit.localnet.transaction_validity import MAX_KEY_BYTES, MAX_VALUE_BYTES
from ledgerkit.protocol import (
    AccessKey,
    AccountId,
    Action,
    AddKey,
    CreateAccount,
    CryptoHash,
    DeleteAccount,
    DeleteKey,
    DeployContract,
    FunctionCall,
    FunctionCallPermission,
    PublicKey,
    Stake,
    Transfer,
    data_id,
)
from ledgerkit.units import U64_MAX, U128_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ledgerkit.localnet.state import State

# The limits of nearcore (LimitConfig), from the same files as the fees.
MAX_LOGS = 100
MAX_LOG_BYTES = 16_384
MAX_PROMISES = 1024
MAX_INPUT_DATA = 128
MAX_RESULT_BYTES = 4 * 2**20
MAX_YIELD_PAYLOAD_BYTES = 1024

# The names of action fees in a gas profile.
_ACTION_COSTS: dict[type[Action], str] = {
    CreateAccount: "CREATE_ACCOUNT",
    DeployContract: "DEPLOY_CONTRACT",
    FunctionCall: "FUNCTION_CALL",
    Transfer: "TRANSFER",
    Stake: "STAKE",
    AddKey: "ADD_FULL_ACCESS_KEY",
    DeleteKey: "DELETE_KEY",
    DeleteAccount: "DELETE_ACCOUNT",
}
_ADD_FUNCTION_CALL_KEY = "ADD_FUNCTION_CALL_KEY"
# A gas profile lists these as two costs, NAME_BASE and NAME_BYTE.
_COSTS_PER_BYTE = ("DEPLOY_CONTRACT", "FUNCTION_CALL", _ADD_FUNCTION_CALL_KEY)


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


class GasCounter:
    """The gas that a call burns, and the gas it reserves for the receipts it creates."""

    __slots__ = ("burnt", "fixed", "limit", "profile", "used")

    def __init__(self, limit: int, fixed: int | None) -> None:
        self.limit, self.fixed = limit, fixed
        self.burnt = self.used = 0  # used: burnt and reserved
        self.profile: dict[tuple[str, str], int] = {}

    def burn_host(self, cost: str, count: int = 1) -> None:
        """Burn the gas of a host function, unless the gas of the computation is fixed."""
        if self.fixed is None and count:
            self.burn(fees.HOST_COSTS[cost] * count, "WASM_HOST_COST", cost)

    def burn(self, gas: int, category: str, cost: str) -> None:
        """Burn gas."""
        burnt = min(gas, self.limit - self.used)
        self.burnt += burnt
        self.used += burnt
        entry = (category, cost)
        self.profile[entry] = self.profile.get(entry, 0) + burnt
        if burnt < gas:
            raise _gas_exceeded()

    def reserve(self, gas: int) -> None:
        """Reserve gas for a new receipt."""
        if gas > self.limit - self.used:
            self.used = self.limit
            raise _gas_exceeded()
        self.used += gas


def gas_profile(profile: dict[tuple[str, str], int]) -> tuple[GasCost, ...]:
    """Sort the burnt gas by category and cost."""
    entries = sorted(profile.items())
    return tuple(GasCost(category, cost, gas) for (category, cost), gas in entries if gas)


def _gas_exceeded() -> HostError:
    """Build the error of a call that ran out of gas."""
    return HostError("Exceeded the prepaid gas.", "GasExceeded")


class ReceiptDraft:
    """A new receipt to which a call can still add actions."""

    __slots__ = (
        "actions",
        "input_data_ids",
        "is_yield",
        "output_data_receivers",
        "receiver_id",
        "refund_to",
    )

    def __init__(self, receiver_id: str, input_data_ids: Sequence[CryptoHash] = ()) -> None:
        self.receiver_id = receiver_id
        self.actions: list[Action] = []
        self.input_data_ids = list(input_data_ids)
        self.output_data_receivers: list[tuple[CryptoHash, str]] = []
        self.refund_to: str | None = None
        self.is_yield = False


class Promise:
    """A new receipt, or several that are joined; another receipt can wait for its results."""

    __slots__ = ("drafts", "vm")

    def __init__(self, vm: Vm, drafts: list[ReceiptDraft]) -> None:
        self.vm, self.drafts = vm, drafts

    @property
    def is_joint(self) -> bool:
        """True if it joins several receipts."""
        return len(self.drafts) != 1

    def then(self, receiver_id: str) -> Promise:
        """Create a receipt that waits for this one's result."""
        return self.vm.promise_then(self, receiver_id)

    def refund_to(self, account_id: str) -> Promise:
        """Set the account to which the deposits return if the receipt fails."""
        self.vm.set_refund_to(self, account_id)
        return self

    def create_account(self) -> Promise:
        """Add an action that creates the receiver."""
        return self._add(CreateAccount())

    def transfer(self, deposit: int) -> Promise:
        """Add a transfer of yoctoNEAR to the receiver."""
        self.vm.deduct(deposit)
        return self._add(Transfer(deposit))

    def function_call(
        self, method_name: str, args: bytes, *, deposit: int = 0, gas: int = 0, weight: int = 0
    ) -> Promise:
        """Add a call with at least `gas`, and a share of the unused gas by `weight`."""
        if not method_name:
            raise HostError("Tried to call an empty method name.", "EmptyMethodName")
        self.vm.deduct(deposit)
        call = FunctionCall(method_name, args, gas, deposit)
        self._add(call)
        if weight:
            draft = self.drafts[0]
            self.vm.weights.append((draft, len(draft.actions) - 1, call, weight))
        return self

    def deploy_contract(self, code: bytes) -> Promise:
        """Add an action that deploys code to the receiver."""
        return self._add(DeployContract(code))

    def add_full_access_key(self, public_key: PublicKey | str) -> Promise:
        """Add an action that adds a full access key to the receiver."""
        return self._add(AddKey(_parse_key(public_key), AccessKey()))

    def add_access_key(
        self,
        public_key: PublicKey | str,
        allowance: int | None,
        receiver_id: str,
        method_names: Sequence[str] = (),
    ) -> Promise:
        """Add an action that adds a function call key to the receiver."""
        permission = FunctionCallPermission(allowance, receiver_id, method_names)
        return self._add(AddKey(_parse_key(public_key), AccessKey(0, permission)))

    def delete_key(self, public_key: PublicKey | str) -> Promise:
        """Add an action that removes a key of the receiver."""
        return self._add(DeleteKey(_parse_key(public_key)))

    def stake(self, stake: int, public_key: PublicKey | str) -> Promise:
        """Add an action that stakes yoctoNEAR of the receiver."""
        return self._add(Stake(stake, _parse_key(public_key)))

    def delete_account(self, beneficiary_id: str) -> Promise:
        """Add an action that deletes the receiver."""
        return self._add(DeleteAccount(beneficiary_id))

    def _add(self, action: Action) -> Promise:
        """Add an action and burn its fee."""
        if self.is_joint:
            raise HostError(
                "Actions can only be appended to non-joint promise.",
                "CannotAppendActionToJointPromise",
            )
        draft = self.drafts[0]
        self.vm.burn_action_fee(action, draft.receiver_id)
        draft.actions.append(action)
        return self


def _cost_name(action: Action) -> str:
    """Return the name of an action's fee in a gas profile."""
    if isinstance(action, AddKey) and isinstance(
        action.access_key.permission, FunctionCallPermission
    ):
        return _ADD_FUNCTION_CALL_KEY
    return _ACTION_COSTS[type(action)]


def _parse_key(public_key: PublicKey | str) -> PublicKey:
    """Parse a public key."""
    try:
        return public_key if isinstance(public_key, PublicKey) else PublicKey.from_text(public_key)
    except InvalidRequestError:
        raise HostError("VM Logic provided an invalid public key", "InvalidPublicKey") from None


def _parse_account_id(account_id: str) -> AccountId:
    """Parse an account id."""
    try:
        return AccountId(account_id)
    except InvalidRequestError:
        message = "VM Logic returned an invalid account id"
        raise HostError(message, "InvalidAccountId") from None


class Vm:
    """The virtual machine of one call."""

    def __init__(
        self,
        context: CallContext,
        state: State,
        profile: fees.Profile,
        is_yielded: Callable[[CryptoHash], bool] = lambda _: False,
    ) -> None:
        self.context, self._state, self._profile = context, state, profile
        self._is_yielded = is_yielded
        self.gas = GasCounter(context.prepaid_gas, context.fixed_gas)
        self.logs: list[str] = []
        self.drafts: list[ReceiptDraft] = []
        self.weights: list[tuple[ReceiptDraft, int, FunctionCall, int]] = []
        self.resumed: list[tuple[CryptoHash, bytes]] = []
        self.yielded: list[CryptoHash] = []
        self._balance, self._storage = context.balance, context.storage_usage
        self._log_bytes = self._data_id_count = 0

    # The context -----------------------------------------------------------------------

    @property
    def current_account_id(self) -> str:
        """The account whose contract runs."""
        return self.context.current_account_id

    @property
    def signer_id(self) -> str:
        """The signer of the transaction that caused this call."""
        self._not_in_view("signer_account_id")
        return self.context.signer_id

    @property
    def signer_public_key(self) -> PublicKey:
        """The public key that signed the transaction."""
        self._not_in_view("signer_account_pk")
        return self.context.signer_public_key

    @property
    def predecessor_id(self) -> str:
        """The account that calls: the signer or another contract."""
        self._not_in_view("predecessor_account_id")
        return self.context.predecessor_id

    @property
    def attached_deposit(self) -> int:
        """The deposit of the call, in yoctoNEAR."""
        self._not_in_view("attached_deposit")
        return self.context.attached_deposit

    @property
    def prepaid_gas(self) -> int:
        """The gas attached to the call."""
        self._not_in_view("prepaid_gas")
        return self.context.prepaid_gas

    @property
    def used_gas(self) -> int:
        """The gas burnt and reserved until now."""
        self._not_in_view("used_gas")
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

    def storage_read(self, key: bytes) -> bytes | None:
        """Return a storage record's value, or None."""
        self._check_length("storage key", "KeyLengthExceeded", len(key), MAX_KEY_BYTES)
        self.gas.burn_host("STORAGE_READ_BASE")
        self.gas.burn_host("STORAGE_READ_KEY_BYTE", len(key))
        value = self._state.data(self.current_account_id, key)
        if value is not None:
            self.gas.burn_host("STORAGE_READ_VALUE_BYTE", len(value))
        return value

    def storage_has_key(self, key: bytes) -> bool:
        """Return True if a storage record exists."""
        self.gas.burn_host("STORAGE_HAS_KEY_BASE")
        return self._state.data(self.current_account_id, key) is not None

    def storage_write(self, key: bytes, value: bytes) -> bool:
        """Write a storage record; return True if it existed."""
        self._not_in_view("storage_write")
        self._check_length("storage key", "KeyLengthExceeded", len(key), MAX_KEY_BYTES)
        self._check_length("storage value", "ValueLengthExceeded", len(value), MAX_VALUE_BYTES)
        self.gas.burn_host("STORAGE_WRITE_BASE")
        self.gas.burn_host("STORAGE_WRITE_KEY_BYTE", len(key))
        self.gas.burn_host("STORAGE_WRITE_VALUE_BYTE", len(value))
        old = self._state.data(self.current_account_id, key)
        self._storage += len(value) - (0 if old is None else len(old))
        if old is None:
            self._storage += len(key) + fees.RECORD_BYTES
        self._state.store.data.put(self.current_account_id, key, value)
        return old is not None

    def storage_remove(self, key: bytes) -> bool:
        """Remove a storage record; return True if it existed."""
        self._not_in_view("storage_remove")
        self.gas.burn_host("STORAGE_REMOVE_BASE")
        old = self._state.data(self.current_account_id, key)
        if old is None:
            return False
        self._storage -= len(old) + len(key) + fees.RECORD_BYTES
        self._state.store.data.put(self.current_account_id, key, None)
        return True

    def records(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the storage records with a prefix, sorted by key."""
        for key, value in list(self._state.records(self.current_account_id, prefix)):
            self.gas.burn_host("STORAGE_READ_BASE")
            self.gas.burn_host("STORAGE_READ_VALUE_BYTE", len(value))
            yield key, value

    # Logs --------------------------------------------------------------------------------

    def log(self, text: str) -> None:
        """Add a log to the outcome."""
        size = len(text.encode())
        self.gas.burn_host("LOG_BASE")
        self.gas.burn_host("LOG_BYTE", size)
        if len(self.logs) >= MAX_LOGS:
            raise HostError(
                f"The number of logs will exceed the limit {MAX_LOGS}",
                f"NumberOfLogsExceeded {{ limit: {MAX_LOGS} }}",
            )
        self._log_bytes += size
        self._check_length("log message", "TotalLogLengthExceeded", self._log_bytes, MAX_LOG_BYTES)
        self.logs.append(text)

    def panic(self, message: str) -> Never:
        """Stop with an error: the receipt fails; its outcome has the logs and the burnt gas."""
        raise PanicError(message)

    # Promises ----------------------------------------------------------------------------

    def promise(self, receiver_id: str) -> Promise:
        """Create a receipt, as yet without actions."""
        self._not_in_view("promise_batch_create")
        return self._new_receipt(receiver_id, ())

    def promise_then(self, promise: Promise, receiver_id: str) -> Promise:
        """Create a receipt that waits for the results of a promise."""
        self._not_in_view("promise_batch_then")
        data_ids = []
        for draft in promise.drafts:
            fee = self._profile.table["data_receipt_base"]
            gas = fee.send(sir=draft.receiver_id == receiver_id) + fee.execute
            self.gas.burn(gas, "ACTION_COST", "NEW_DATA_RECEIPT_BASE")
            new_id = self._new_data_id()
            draft.output_data_receivers.append((new_id, receiver_id))
            data_ids.append(new_id)
        return self._new_receipt(receiver_id, data_ids)

    def set_refund_to(self, promise: Promise, account_id: str) -> None:
        """Set the account to which a receipt's deposits return if it fails (NEP-616)."""
        self._not_in_view("promise_set_refund_to")
        if promise.is_joint:
            raise HostError(
                "Cannot set refund_to on a joint promise.", "CannotSetRefundToOnJointPromise"
            )
        promise.drafts[0].refund_to = _parse_account_id(account_id)

    def join(self, *promises: Promise) -> Promise:
        """Join promises, so that a receipt can wait for all of them, in this order."""
        self._not_in_view("promise_and")
        self.gas.burn_host("PROMISE_AND_BASE")
        drafts = [draft for promise in promises for draft in promise.drafts]
        count = len(drafts)
        if count > MAX_INPUT_DATA:
            raise HostError(
                f"The number of input data dependencies {count} exceeds the limit {MAX_INPUT_DATA}",
                "NumberInputDataDependenciesExceeded { number_of_input_data_dependencies: "
                f"{count}, limit: {MAX_INPUT_DATA} }}",
            )
        return Promise(self, drafts)

    @property
    def promise_results(self) -> tuple[bytes | None, ...]:
        """The results that this callback waited for, in order; None for each that failed."""
        if self.is_view:
            raise prohibited_in_view("promise_results_count")
        return self.context.promise_results

    def yield_create(
        self, method_name: str, args: bytes, *, gas: int = 0, weight: int = 0
    ) -> tuple[Promise, CryptoHash]:
        """Create a call that waits until its data id is resumed or times out (NEP-519)."""
        self._not_in_view("promise_yield_create")
        new_id = self._new_data_id()
        promise = self._new_receipt(self.current_account_id, [new_id])
        promise.drafts[0].is_yield = True
        promise.function_call(method_name, args, gas=gas, weight=weight)
        self.yielded.append(new_id)
        return promise, new_id

    def yield_resume(self, data_id: bytes, payload: bytes) -> bool:
        """Send a yielded call its data; return False if no call waits for it."""
        self._not_in_view("promise_yield_resume")
        length, limit = len(payload), MAX_YIELD_PAYLOAD_BYTES
        if length > limit:
            raise HostError(
                f"Yield resume payload is {length} bytes which exceeds the {limit} byte limit",
                f"YieldPayloadLength {{ length: {length}, limit: {limit} }}",
            )
        yielded_id = CryptoHash(data_id)
        if yielded_id not in self.yielded and not self._is_yielded(yielded_id):
            return False
        if any(resumed_id == yielded_id for resumed_id, _ in self.resumed):
            return False
        self.resumed.append((yielded_id, payload))
        return True

    def deduct(self, deposit: int) -> None:
        """Deduct a deposit from the account's balance."""
        if not 0 <= deposit <= U128_MAX or deposit > self._balance:
            raise HostError("Exceeded the account balance.", "BalanceExceeded")
        self._balance -= deposit

    def burn_action_fee(self, action: Action, receiver_id: str) -> None:
        """Burn the gas to send an action, and reserve the gas to execute it."""
        fee = self._profile.fee(action, receiver_id)
        sir = receiver_id == self.current_account_id
        gas, name = fee.send(sir=sir), _cost_name(action)
        if name in _COSTS_PER_BYTE:
            base = self._profile.table[name.lower()].send(sir=sir)
            self.gas.burn(base, "ACTION_COST", f"{name}_BASE")
            gas, name = gas - base, f"{name}_BYTE"
        self.gas.burn(gas, "ACTION_COST", name)
        attached = action.gas if isinstance(action, FunctionCall) else 0
        self.gas.reserve(fee.execute + attached)

    # Begin and end -----------------------------------------------------------------------

    def begin(self) -> None:
        """Burn the gas to load the contract."""
        if self.context.fixed_gas is not None:
            self.gas.burn(self.context.fixed_gas, "WASM_HOST_COST", "WASM_INSTRUCTION")
            return
        self.gas.burn(fees.CALL_BASE, "WASM_HOST_COST", "WASM_INSTRUCTION")
        self.gas.burn_host("CONTRACT_LOADING_BASE")
        self.gas.burn_host("CONTRACT_LOADING_BYTES", self.context.code_size)

    def finish(self, result: bytes | Promise) -> None:
        """Burn the gas to return a result, and distribute the unused gas."""
        if isinstance(result, Promise):
            if result.is_joint:
                raise HostError(
                    "Returning joint promise is currently prohibited.", "CannotReturnJointPromise"
                )
            self._not_in_view("promise_return")
            self.gas.burn_host("PROMISE_RETURN")
        else:
            self._check_length(
                "returned value", "ReturnedValueLengthExceeded", len(result), MAX_RESULT_BYTES
            )
            fee = self._profile.table["data_receipt_byte"]
            for receiver_id in self.context.data_receivers:
                sir = receiver_id == self.current_account_id
                cost = (fee.send(sir=sir) + fee.execute) * len(result)
                self.gas.burn(cost, "ACTION_COST", "NEW_DATA_RECEIPT_BYTE")
        self._distribute_gas()

    def _distribute_gas(self) -> None:
        """Distribute the unused gas to the calls with a weight."""
        total = sum(weight for *_, weight in self.weights)
        unused = self.gas.limit - self.gas.used
        if not total:
            return
        shares = [unused * weight // total for *_, weight in self.weights]
        shares[-1] += unused - sum(shares)  # the last call gets the remainder of the divisions
        for (draft, position, call, _), share in zip(self.weights, shares, strict=True):
            gas = min(call.gas + share, U64_MAX)
            new_call = FunctionCall(call.method_name, call.args, gas, call.deposit)
            draft.actions[position] = new_call
        self.gas.used = self.gas.limit

    def _new_receipt(self, receiver_id: str, input_data_ids: Sequence[CryptoHash]) -> Promise:
        """Create a receipt and burn its fee."""
        if len(self.drafts) >= MAX_PROMISES:
            count = len(self.drafts) + 1
            raise HostError(
                f"The number of promises within a FunctionCall {count} exceeds the limit "
                f"{MAX_PROMISES}",
                f"NumberPromisesExceeded {{ number_of_promises: {count}, limit: {MAX_PROMISES} }}",
            )
        receiver_id = _parse_account_id(receiver_id)
        sir = receiver_id == self.current_account_id
        cost = self._profile.new_receipt_send(sir=sir)
        self.gas.burn(cost, "ACTION_COST", "NEW_ACTION_RECEIPT")
        self.gas.reserve(self._profile.new_receipt_execute)
        draft = ReceiptDraft(receiver_id, input_data_ids)
        self.drafts.append(draft)
        return Promise(self, [draft])

    def _new_data_id(self) -> CryptoHash:
        """Compute the next data id."""
        new_id = data_id(self.context.action_hash, self.block_height, self._data_id_count)
        self._data_id_count += 1
        return new_id

    def _not_in_view(self, name: str) -> None:
        """Raise if this is a view call; otherwise burn the base cost of a host function."""
        if self.context.is_view:
            raise prohibited_in_view(name)
        self.gas.burn_host("BASE")

    @staticmethod
    def _check_length(subject: str, error: str, length: int, limit: int) -> None:
        """Raise an error if a length exceeds its limit."""
        if length > limit:
            raise HostError(
                f"The length of a {subject} {length} exceeds the limit {limit}",
                f"{error} {{ length: {length}, limit: {limit} }}",
            )
