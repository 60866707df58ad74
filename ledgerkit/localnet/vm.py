"""
The machine that runs contracts: host functions, gas, promises.

A contract sees one `Vm` for each call. It reads what the call came with, reads and writes
the records of its own account, logs, and makes promises; each of these burns gas, and
what a view may not do is refused. Nothing here decides what becomes of a receipt.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Never

from msgspec import Struct

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import fees
from ledgerkit.localnet.chain_types import GasCost
from ledgerkit.localnet.execution_errors import HostError, PanicError, prohibited_in_view
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

MAX_LOGS = 100
MAX_LOG_BYTES = 16_384
MAX_PROMISES = 1024
MAX_INPUT_DATA = 128
MAX_RESULT_BYTES = 4 * 2**20
MAX_KEY_BYTES = 2048
MAX_VALUE_BYTES = 4 * 2**20
MAX_YIELD_PAYLOAD_BYTES = 1024

# The names that a gas profile has for the fees of what a call sends.
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
_KEY_FOR_CALLS = "ADD_FUNCTION_CALL_KEY"
_BY_BYTE = ("DEPLOY_CONTRACT", "FUNCTION_CALL", _KEY_FOR_CALLS)


class CallContext(Struct, frozen=True, kw_only=True):
    """What a call comes with."""

    current_account_id: str
    signer_id: str
    signer_public_key: PublicKey
    predecessor_id: str
    input: bytes
    block_height: int
    block_timestamp: int
    epoch_height: int
    balance: int  # of the account, with what is attached
    locked: int
    storage_usage: int
    attached_deposit: int
    prepaid_gas: int
    random_seed: bytes
    action_hash: CryptoHash
    promise_results: tuple[bytes | None, ...] = ()
    data_receivers: tuple[str, ...] = ()  # who waits for what this call returns
    is_view: bool = False
    fixed_gas: int | None = None  # what the computation burns, whatever it does
    code_size: int = 0


class Gas:
    """
    Counts what a call burns, and what it sets aside for the receipts it makes.

    Parameters
    ----------
    limit
        How much there is.
    fixed
        What the computation burns, whatever it does; None to count its host functions.
    """

    __slots__ = ("burnt", "fixed", "limit", "profile", "used")

    def __init__(self, limit: int, fixed: int | None) -> None:
        self.limit, self.fixed = limit, fixed
        self.burnt = self.used = 0
        self.profile: dict[tuple[str, str], int] = {}

    def host(self, cost: str, count: int = 1) -> None:
        """Burn what a host function costs, unless the computation's cost is fixed."""
        if self.fixed is None and count:
            self.burn(fees.HOST_COSTS[cost] * count, "WASM_HOST_COST", cost)

    def burn(self, gas: int, category: str, cost: str) -> None:
        """Burn gas."""
        spent = min(gas, self.limit - self.used)
        self.burnt += spent
        self.used += spent
        line = (category, cost)
        self.profile[line] = self.profile.get(line, 0) + spent
        if spent < gas:
            raise _out_of_gas()

    def reserve(self, gas: int) -> None:
        """Set gas aside for a receipt that is made."""
        if gas > self.limit - self.used:
            self.used = self.limit
            raise _out_of_gas()
        self.used += gas

    def lines(self) -> tuple[GasCost, ...]:
        """Tell what was burnt on what, in order."""
        held = sorted(self.profile.items())
        return tuple(GasCost(category, cost, gas) for (category, cost), gas in held if gas)


def _out_of_gas() -> HostError:
    """Say that the gas is used up."""
    return HostError("Exceeded the prepaid gas.", "GasExceeded")


class ReceiptDraft:
    """A receipt that a call makes, while it can still grow."""

    __slots__ = ("actions", "input_data_ids", "is_yield", "output_data_receivers", "receiver_id")

    def __init__(self, receiver_id: str, input_data_ids: Sequence[CryptoHash] = ()) -> None:
        self.receiver_id = receiver_id
        self.actions: list[Action] = []
        self.input_data_ids = list(input_data_ids)
        self.output_data_receivers: list[tuple[CryptoHash, str]] = []
        self.is_yield = False


class Promise:
    """
    A receipt to come, to which actions are added and whose result others can wait for.

    Parameters
    ----------
    vm
        The machine of the call that makes it.
    drafts
        One, or several that were joined; these can only be waited for.
    """

    __slots__ = ("drafts", "vm")

    def __init__(self, vm: Vm, drafts: list[ReceiptDraft]) -> None:
        self.vm, self.drafts = vm, drafts

    @property
    def is_joint(self) -> bool:
        """Whether it stands for several receipts."""
        return len(self.drafts) != 1

    def then(self, receiver_id: str) -> Promise:
        """
        Make a receipt that waits for this one's result.

        Parameters
        ----------
        receiver_id
            To whom.

        Returns
        -------
        promise
            The receipt that waits.
        """
        return self.vm.promise_then(self, receiver_id)

    def create_account(self) -> Promise:
        """Create the receiver."""
        return self._add(CreateAccount())

    def transfer(self, deposit: int) -> Promise:
        """Send NEAR to the receiver."""
        self.vm.take(deposit)
        return self._add(Transfer(deposit))

    def function_call(
        self, method_name: str, args: bytes, *, deposit: int = 0, gas: int = 0, weight: int = 0
    ) -> Promise:
        """
        Call a method of the receiver's contract.

        Parameters
        ----------
        method_name
            The method.
        args
            Its arguments.
        deposit
            How many yoctoNEAR to attach.
        gas
            How much gas to attach at least.
        weight
            Its share, among all calls with a weight, of the gas this call leaves over.

        Returns
        -------
        promise
            This one.
        """
        if not method_name:
            raise HostError("Tried to call an empty method name.", "EmptyMethodName")
        self.vm.take(deposit)
        call = FunctionCall(method_name, args, gas, deposit)
        self._add(call)
        if weight:
            draft = self.drafts[0]
            self.vm.weights.append((draft, len(draft.actions) - 1, call, weight))
        return self

    def deploy_contract(self, code: bytes) -> Promise:
        """Put code on the receiver."""
        return self._add(DeployContract(code))

    def add_full_access_key(self, public_key: PublicKey | str) -> Promise:
        """Let a key sign everything for the receiver."""
        return self._add(AddKey(_key(public_key), AccessKey()))

    def add_access_key(
        self,
        public_key: PublicKey | str,
        allowance: int | None,
        receiver_id: str,
        method_names: Sequence[str] = (),
    ) -> Promise:
        """Let a key call a contract for the receiver."""
        permission = FunctionCallPermission(allowance, receiver_id, method_names)
        return self._add(AddKey(_key(public_key), AccessKey(0, permission)))

    def delete_key(self, public_key: PublicKey | str) -> Promise:
        """Take a key from the receiver."""
        return self._add(DeleteKey(_key(public_key)))

    def stake(self, stake: int, public_key: PublicKey | str) -> Promise:
        """Stake the receiver's tokens."""
        return self._add(Stake(stake, _key(public_key)))

    def delete_account(self, beneficiary_id: str) -> Promise:
        """Delete the receiver."""
        return self._add(DeleteAccount(beneficiary_id))

    def _add(self, action: Action) -> Promise:
        """Add an action and pay for it."""
        if self.is_joint:
            raise HostError(
                "Actions can only be appended to non-joint promise.",
                "CannotAppendActionToJointPromise",
            )
        draft = self.drafts[0]
        self.vm.pay_for_action(action, draft.receiver_id)
        draft.actions.append(action)
        return self


def _cost_name(action: Action) -> str:
    """Name what sending an action costs, as a gas profile does."""
    if isinstance(action, AddKey) and isinstance(
        action.access_key.permission, FunctionCallPermission
    ):
        return _KEY_FOR_CALLS
    return _ACTION_COSTS[type(action)]


def _key(public_key: PublicKey | str) -> PublicKey:
    """Read a public key as contracts get it."""
    try:
        return public_key if isinstance(public_key, PublicKey) else PublicKey.from_text(public_key)
    except InvalidRequestError:
        raise HostError("VM Logic provided an invalid public key", "InvalidPublicKey") from None


class Vm:
    """
    What one call sees and does.

    Parameters
    ----------
    context
        What it comes with.
    state
        Where its account's records are.
    profile
        What sending costs.
    waits
        Tells whether a yielded call of this account waits for a piece of data.
    """

    def __init__(
        self,
        context: CallContext,
        state: State,
        profile: fees.Profile,
        waits: Callable[[CryptoHash], bool] = lambda _: False,
    ) -> None:
        self.context, self._state, self._profile, self._waits = context, state, profile, waits
        self.gas = Gas(context.prepaid_gas, context.fixed_gas)
        self.logs: list[str] = []
        self.drafts: list[ReceiptDraft] = []
        self.weights: list[tuple[ReceiptDraft, int, FunctionCall, int]] = []
        self.resumed: list[tuple[CryptoHash, bytes]] = []
        self.yielded: list[CryptoHash] = []
        self._balance, self._storage = context.balance, context.storage_usage
        self._log_bytes = self._data_ids = 0

    # What the call came with -----------------------------------------------------------

    @property
    def current_account_id(self) -> str:
        """Whose contract runs."""
        return self.context.current_account_id

    @property
    def signer_id(self) -> str:
        """Who signed the transaction that all this follows from."""
        self._not_in_view("signer_account_id")
        return self.context.signer_id

    @property
    def signer_public_key(self) -> PublicKey:
        """The key it was signed with."""
        self._not_in_view("signer_account_pk")
        return self.context.signer_public_key

    @property
    def predecessor_id(self) -> str:
        """Who calls: a person, or another contract."""
        self._not_in_view("predecessor_account_id")
        return self.context.predecessor_id

    @property
    def attached_deposit(self) -> int:
        """How many yoctoNEAR came with the call."""
        self._not_in_view("attached_deposit")
        return self.context.attached_deposit

    @property
    def prepaid_gas(self) -> int:
        """How much gas came with the call."""
        self._not_in_view("prepaid_gas")
        return self.context.prepaid_gas

    @property
    def used_gas(self) -> int:
        """How much of it is burnt or set aside."""
        self._not_in_view("used_gas")
        return self.gas.used

    @property
    def is_view(self) -> bool:
        """Whether nothing may be changed."""
        return self.context.is_view

    @property
    def input(self) -> bytes:
        """The arguments, as they came."""
        return self.context.input

    @property
    def balance(self) -> int:
        """The account's yoctoNEAR, with what is attached, without what promises took."""
        return self._balance

    @property
    def locked(self) -> int:
        """The account's yoctoNEAR at stake."""
        return self.context.locked

    @property
    def storage_usage(self) -> int:
        """The account's bytes, as of now."""
        return self._storage

    @property
    def block_height(self) -> int:
        """The height of the block being applied."""
        return self.context.block_height

    @property
    def block_timestamp(self) -> int:
        """Its time, in nanoseconds."""
        return self.context.block_timestamp

    @property
    def epoch_height(self) -> int:
        """How many epochs there were."""
        return self.context.epoch_height

    @property
    def random_seed(self) -> bytes:
        """32 bytes that nobody could foresee."""
        return self.context.random_seed

    def sha256(self, data: bytes) -> bytes:
        """Hash."""
        self.gas.host("SHA256_BASE")
        self.gas.host("SHA256_BYTE", len(data))
        return sha256(data).digest()

    # Records -----------------------------------------------------------------------------

    def storage_read(self, key: bytes) -> bytes | None:
        """Give a record's value, None where there is none."""
        self._check_length("storage key", "KeyLengthExceeded", len(key), MAX_KEY_BYTES)
        self.gas.host("STORAGE_READ_BASE")
        self.gas.host("STORAGE_READ_KEY_BYTE", len(key))
        value = self._state.data(self.current_account_id, key)
        if value is not None:
            self.gas.host("STORAGE_READ_VALUE_BYTE", len(value))
        return value

    def storage_has_key(self, key: bytes) -> bool:
        """Tell whether there is a record."""
        self.gas.host("STORAGE_HAS_KEY_BASE")
        return self._state.data(self.current_account_id, key) is not None

    def storage_write(self, key: bytes, value: bytes) -> bool:
        """Write a record; tell whether there was one."""
        self._not_in_view("storage_write")
        self._check_length("storage key", "KeyLengthExceeded", len(key), MAX_KEY_BYTES)
        self._check_length("storage value", "ValueLengthExceeded", len(value), MAX_VALUE_BYTES)
        self.gas.host("STORAGE_WRITE_BASE")
        self.gas.host("STORAGE_WRITE_KEY_BYTE", len(key))
        self.gas.host("STORAGE_WRITE_VALUE_BYTE", len(value))
        old = self._state.data(self.current_account_id, key)
        self._storage += len(value) - (0 if old is None else len(old))
        if old is None:
            self._storage += len(key) + fees.RECORD_BYTES
        self._state.store.data.put(self.current_account_id, key, value)
        return old is not None

    def storage_remove(self, key: bytes) -> bool:
        """Remove a record; tell whether there was one."""
        self._not_in_view("storage_remove")
        self.gas.host("STORAGE_REMOVE_BASE")
        old = self._state.data(self.current_account_id, key)
        if old is None:
            return False
        self._storage -= len(old) + len(key) + fees.RECORD_BYTES
        self._state.store.data.put(self.current_account_id, key, None)
        return True

    def records(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Go through the records whose keys begin so, in the order of their keys."""
        for key, value in list(self._state.records(self.current_account_id, prefix)):
            self.gas.host("STORAGE_READ_BASE")
            self.gas.host("STORAGE_READ_VALUE_BYTE", len(value))
            yield key, value

    # Telling -----------------------------------------------------------------------------

    def log(self, text: str) -> None:
        """Leave a line in the outcome."""
        size = len(text.encode())
        self.gas.host("LOG_BASE")
        self.gas.host("LOG_BYTE", size)
        if len(self.logs) >= MAX_LOGS:
            raise HostError(
                f"The number of logs will exceed the limit {MAX_LOGS}",
                f"NumberOfLogsExceeded {{ limit: {MAX_LOGS} }}",
            )
        self._log_bytes += size
        self._check_length("log message", "TotalLogLengthExceeded", self._log_bytes, MAX_LOG_BYTES)
        self.logs.append(text)

    def panic(self, message: str) -> Never:
        """Give up: nothing of this receipt remains but its logs and what it burnt."""
        raise PanicError(message)

    # Promises ----------------------------------------------------------------------------

    def promise(self, receiver_id: str) -> Promise:
        """
        Make a receipt.

        Parameters
        ----------
        receiver_id
            To whom.

        Returns
        -------
        promise
            Without actions yet.
        """
        self._not_in_view("promise_batch_create")
        return self._new(receiver_id, ())

    def promise_then(self, first: Promise, receiver_id: str) -> Promise:
        """Make a receipt that waits for others."""
        self._not_in_view("promise_batch_then")
        ids = []
        for draft in first.drafts:
            made = self._data_id()
            sir = draft.receiver_id == receiver_id
            fee = self._profile.table["data_receipt_base"]
            cost = fee.send(sir=sir) + fee.execute
            self.gas.burn(cost, "ACTION_COST", "NEW_DATA_RECEIPT_BASE")
            draft.output_data_receivers.append((made, receiver_id))
            ids.append(made)
        return self._new(receiver_id, ids)

    def join(self, *promises: Promise) -> Promise:
        """
        Join promises, for a receipt to wait for all of them.

        Parameters
        ----------
        *promises
            Their results keep this order.

        Returns
        -------
        joint
            Takes no actions, and can't be returned.
        """
        self._not_in_view("promise_and")
        self.gas.host("PROMISE_AND_BASE")
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
        """What this callback waited for, in order; None for what failed."""
        if self.is_view:
            raise prohibited_in_view("promise_results_count")
        return self.context.promise_results

    def yield_create(
        self, method_name: str, args: bytes, *, gas: int = 0, weight: int = 0
    ) -> tuple[Promise, CryptoHash]:
        """
        Call oneself later: when `yield_resume` brings data, or without when time is up.

        Parameters
        ----------
        method_name
            The method.
        args
            Its arguments.
        gas
            How much gas to attach at least.
        weight
            Its share of the gas this call leaves over.

        Returns
        -------
        promise
            The receipt that waits; it can be returned.
        data_id
            What to resume it by.
        """
        self._not_in_view("promise_yield_create")
        made = self._data_id()
        promise = self._new(self.current_account_id, [made])
        promise.drafts[0].is_yield = True
        promise.function_call(method_name, args, gas=gas, weight=weight)
        self.yielded.append(made)
        return promise, made

    def yield_resume(self, data_id: bytes, payload: bytes) -> bool:
        """
        Bring a yielded call its data.

        Parameters
        ----------
        data_id
            Which one.
        payload
            The data, 1024 bytes at most.

        Returns
        -------
        found
            False if no call of this account waits for it.
        """
        self._not_in_view("promise_yield_resume")
        length, limit = len(payload), MAX_YIELD_PAYLOAD_BYTES
        if length > limit:
            raise HostError(
                f"Yield resume payload is {length} bytes which exceeds the {limit} byte limit",
                f"YieldPayloadLength {{ length: {length}, limit: {limit} }}",
            )
        wanted = CryptoHash(data_id)
        if wanted not in self.yielded and not self._waits(wanted):
            return False
        if any(resumed == wanted for resumed, _ in self.resumed):
            return False
        self.resumed.append((wanted, payload))
        return True

    def take(self, deposit: int) -> None:
        """Take what a promise carries off the account."""
        if not 0 <= deposit <= U128_MAX or deposit > self._balance:
            raise HostError("Exceeded the account balance.", "BalanceExceeded")
        self._balance -= deposit

    def pay_for_action(self, action: Action, receiver_id: str) -> None:
        """Burn what it costs to send an action, and set aside what it costs to execute."""
        fee = self._profile.fee(action, receiver_id)
        sir = receiver_id == self.current_account_id
        gas, name = fee.send(sir=sir), _cost_name(action)
        if name in _BY_BYTE:
            base = self._profile.table[name.lower()].send(sir=sir)
            self.gas.burn(base, "ACTION_COST", f"{name}_BASE")
            gas, name = gas - base, f"{name}_BYTE"
        self.gas.burn(gas, "ACTION_COST", name)
        attached = action.gas if isinstance(action, FunctionCall) else 0
        self.gas.reserve(fee.execute + attached)

    # The end -----------------------------------------------------------------------------

    def begin(self) -> None:
        """Burn what it takes to start."""
        if self.context.fixed_gas is not None:
            self.gas.burn(self.context.fixed_gas, "WASM_HOST_COST", "WASM_INSTRUCTION")
            return
        self.gas.burn(fees.CALL_BASE, "WASM_HOST_COST", "WASM_INSTRUCTION")
        self.gas.host("CONTRACT_LOADING_BASE")
        self.gas.host("CONTRACT_LOADING_BYTES", self.context.code_size)

    def finish(self, result: bytes | Promise) -> None:
        """Settle what is returned, and give away the gas that is left."""
        if isinstance(result, Promise):
            if result.is_joint:
                raise HostError(
                    "Returning joint promise is currently prohibited.", "CannotReturnJointPromise"
                )
            self._not_in_view("promise_return")
            self.gas.host("PROMISE_RETURN")
        else:
            self._check_length(
                "returned value", "ReturnedValueLengthExceeded", len(result), MAX_RESULT_BYTES
            )
            fee = self._profile.table["data_receipt_byte"]
            for receiver_id in self.context.data_receivers:
                sir = receiver_id == self.current_account_id
                cost = (fee.send(sir=sir) + fee.execute) * len(result)
                self.gas.burn(cost, "ACTION_COST", "NEW_DATA_RECEIPT_BYTE")
        self._share()

    def _share(self) -> None:
        """Divide the gas that is left among the calls that have a weight."""
        total = sum(weight for *_, weight in self.weights)
        left = self.gas.limit - self.gas.used
        if not total:
            return
        shares = [left * weight // total for *_, weight in self.weights]
        shares[-1] += left - sum(shares)
        for (draft, place, call, _), share in zip(self.weights, shares, strict=True):
            gas = min(call.gas + share, U64_MAX)
            draft.actions[place] = FunctionCall(call.method_name, call.args, gas, call.deposit)
        self.gas.used = self.gas.limit

    def _new(self, receiver_id: str, inputs: Sequence[CryptoHash]) -> Promise:
        """Make a receipt and pay for it."""
        if len(self.drafts) >= MAX_PROMISES:
            count = len(self.drafts) + 1
            raise HostError(
                f"The number of promises within a FunctionCall {count} exceeds the limit "
                f"{MAX_PROMISES}",
                f"NumberPromisesExceeded {{ number_of_promises: {count}, limit: {MAX_PROMISES} }}",
            )
        try:
            receiver_id = AccountId(receiver_id)
        except InvalidRequestError:
            raise HostError("Account ID is invalid", "InvalidAccountId") from None
        sir = receiver_id == self.current_account_id
        cost = self._profile.new_receipt_send(sir=sir)
        self.gas.burn(cost, "ACTION_COST", "NEW_ACTION_RECEIPT")
        self.gas.reserve(self._profile.new_receipt_execute)
        draft = ReceiptDraft(receiver_id, inputs)
        self.drafts.append(draft)
        return Promise(self, [draft])

    def _data_id(self) -> CryptoHash:
        """Name the next piece of data."""
        made = data_id(self.context.action_hash, self.block_height, self._data_ids)
        self._data_ids += 1
        return made

    def _not_in_view(self, name: str) -> None:
        """Refuse in a view what only a transaction may do, and burn what a host call costs."""
        if self.context.is_view:
            raise prohibited_in_view(name)
        self.gas.host("BASE")

    @staticmethod
    def _check_length(what: str, name: str, length: int, limit: int) -> None:
        """Refuse what is too long."""
        if length > limit:
            raise HostError(
                f"The length of a {what} {length} exceeds the limit {limit}",
                f"{name} {{ length: {length}, limit: {limit} }}",
            )
