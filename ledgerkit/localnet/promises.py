"""
Promises: the receipts that a call creates, with their actions.

Each method of a `Promise` is a host function of the node, and costs the same gas, except for bytes
read from a module's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.execution_errors import HostError
from ledgerkit.localnet.fees import Feature, Fee, Profile
from ledgerkit.localnet.gas_counter import ACTION, GasCounter
from ledgerkit.protocol import AccessKey, AccountId, Action, CryptoHash, PublicKey, data_id
from ledgerkit.protocol import actions as kinds
from ledgerkit.protocol.access_keys import (
    FunctionCallPermission,
    GasKeyFullAccess,
    GasKeyFunctionCall,
)
from ledgerkit.protocol.limits import MAX_CODE_BYTES
from ledgerkit.units import U64_MAX

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import CallContext


# The limits of nearcore (LimitConfig), from the same files as the fees.
MAX_PROMISES = 1024
MAX_INPUT_DATA = 128
MAX_INPUT_BYTES = 4_194_944  # a callback's results, and 5 bytes per result; since version 87
MAX_YIELD_PAYLOAD_BYTES = 1024
YIELD_ID_BYTES = 32


class ReceiptDraft(Struct, eq=False):
    """A new receipt to which a call can still add actions."""

    receiver_id: str
    input_data_ids: list[CryptoHash]
    actions: list[Action] = []
    output_data_receivers: list[tuple[CryptoHash, str]] = []
    refund_to: str | None = None
    is_yield: bool = False


class Yields(NamedTuple):
    """The yielded calls of an account that wait to be resumed (NEP-519)."""

    is_waiting: Callable[[CryptoHash], bool] = lambda _: False  # by data id
    data_id: Callable[[bytes], CryptoHash | None] = lambda _: None  # by the contract's own id


class PromiseHost:
    """The part of a call that creates receipts: its gas, its balance and its promises."""

    def __init__(self, context: CallContext, profile: Profile, yields: Yields | None) -> None:
        self.context, self.profile = context, profile
        self.current_account_id, self.is_view = context.current_account_id, context.is_view
        self.balance = context.account.amount  # yoctoNEAR, with the deposit, less promised deposits
        self.gas = GasCounter(context.prepaid_gas, context.fixed_gas, is_view=context.is_view)
        self.drafts: list[ReceiptDraft] = []
        self.weights: list[tuple[ReceiptDraft, int, kinds.FunctionCall, int]] = []
        self.resumed: list[tuple[CryptoHash, bytes]] = []
        self.yielded: list[CryptoHash] = []
        self.yield_ids: dict[bytes, CryptoHash] = {}  # the data ids by the contract's own ids
        self.subsidized = 0  # yoctoNEAR of deposits that the chain added, see `deduct_deposit`
        self.is_begun = False  # True within a module's host function whose base cost is burnt
        self._waiting_yields = Yields() if yields is None else yields
        self._data_id_count = self._promise_count = 0

    def host_call(self, name: str) -> None:
        """Burn the base cost of a host function that view calls may not use; fail in a view."""
        if self.is_begun:
            return
        self.gas.burn_host("BASE")
        if self.context.is_view:
            text = f"{name} is not allowed in view calls"
            raise HostError(text, "ProhibitedInView", method_name=name)

    def promise(self, receiver_id: str) -> Promise:
        """Create a receipt, as yet without actions."""
        self.host_call("promise_batch_create")
        return self._new_receipt(receiver_id, ())

    def promise_then(self, promise: Promise, receiver_id: str) -> Promise:
        """Create a receipt that waits for the results of a promise."""
        self.host_call("promise_batch_then")
        new_id = parse_account_id(receiver_id)
        data_gas = sum(self._data_gas(to_self=d.receiver_id == new_id) for d in promise.drafts)
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
            _check_dependencies(len(drafts))  # fails at the first number above the limit
        self._count_promise()
        return Promise(self, drafts, is_joint=True)

    def deduct_deposit(self, action: Action) -> None:
        """
        Deduct an action's deposit from the account's balance.

        Since version 85 a contract without any balance may attach one yoctoNEAR to a call; the
        chain adds it (nearcore: one_yocto_on_promise).
        """
        deposit, is_call = kinds.deposit_of(action), isinstance(action, kinds.FunctionCall)
        has_subsidy = is_call and self.profile.has(Feature.ONE_YOCTO_ON_PROMISE)
        if has_subsidy and deposit == 1 and not self.balance:
            self.subsidized += 1
            return
        if deposit > self.balance:
            raise HostError("Exceeded the account balance.", "BalanceExceeded")
        self.balance -= deposit

    def burn_action_fee(self, action: Action, receiver_id: str) -> None:
        """Burn the gas to send an action, and reserve the gas to execute it."""
        for name, fee in self.profile.fee_parts(action, receiver_id):
            self.burn_fee(name, fee, receiver_id)
        if isinstance(action, kinds.FunctionCall):
            self.gas.reserve(action.gas)

    def burn_fee(self, name: str, fee: Fee, receiver_id: str) -> None:
        """Burn the gas to send a part of an action, and reserve the gas to execute it."""
        self.gas.burn(fee.send(to_self=receiver_id == self.current_account_id), ACTION, name)
        self.gas.reserve(fee.execute)

    def distribute_gas(self) -> None:
        """Distribute the unused gas to the calls with a weight."""
        total = sum(weight for *_, weight in self.weights)
        if not total:
            return
        unused = self.gas.remaining
        shares = [unused * weight // total for *_, weight in self.weights]
        shares[-1] += unused - sum(shares)  # the last call gets the remainder of the divisions
        for (draft, position, call, _), share in zip(self.weights, shares, strict=True):
            gas = min(call.gas + share, U64_MAX)
            new_call = kinds.FunctionCall(call.method_name, call.args, gas, call.deposit)
            draft.actions[position] = new_call
        self.gas.used = self.gas.limit

    def _new_receipt(
        self, receiver_id: str, input_data_ids: Sequence[CryptoHash], data_gas: int = 0
    ) -> Promise:
        """Create a receipt and burn its fee, with the gas of the data that it waits for."""
        receiver_id = parse_account_id(receiver_id)
        gas = self.profile.new_receipt_send(to_self=receiver_id == self.current_account_id)
        self.gas.burn(gas + data_gas, ACTION, "NEW_ACTION_RECEIPT")
        self.gas.reserve(self.profile.new_receipt_execute)
        self._count_promise()
        draft = ReceiptDraft(receiver_id, list(input_data_ids))
        self.drafts.append(draft)
        return Promise(self, [draft])

    def _count_promise(self) -> None:
        """Fail if there are more promises than a call may create, joined promises included."""
        self._promise_count += 1
        count, limit = self._promise_count, MAX_PROMISES
        if count > limit:
            text = f"The number of promises within a FunctionCall {count} exceeds the limit {limit}"
            name = "NumberPromisesExceeded"
            raise HostError(text, name, number_of_promises=count, limit=limit)

    def _data_gas(self, *, to_self: bool) -> int:
        """Return the gas of data that a new receipt waits for; the sender pays for all of it."""
        fee = self.profile.table["data_receipt_base"]
        return fee.send(to_self=to_self) + fee.execute

    def _new_data_id(self) -> CryptoHash:
        new_id = data_id(self.context.action_hash, self.context.block.height, self._data_id_count)
        self._data_id_count += 1
        return new_id

    # Yielded calls (NEP-519) -------------------------------------------------------------

    def yield_create(
        self, method_name: str, args: bytes, *, gas: int = 0, weight: int = 0
    ) -> tuple[Promise, CryptoHash]:
        """Create a call that waits until its data id is resumed or times out."""
        self.host_call("promise_yield_create")
        self.gas.burn_host("YIELD_CREATE_BASE")
        check_method_name(method_name)
        self.gas.burn_host("YIELD_CREATE_BYTE", len(method_name.encode()) + len(args))
        return self._new_yield(kinds.FunctionCall(method_name, args, gas), weight)

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
        call = kinds.FunctionCall(method_name, args, gas, deposit)
        promise, new_id = self._new_yield(call, weight)
        self.yield_ids[yield_id] = new_id
        return promise

    def _new_yield(self, call: kinds.FunctionCall, weight: int) -> tuple[Promise, CryptoHash]:
        new_id = self._new_data_id()
        promise = self._new_receipt(self.current_account_id, [new_id], self._data_gas(to_self=True))
        promise.drafts[0].is_yield = True
        promise.add_call(call, weight)
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
        self.host_call(name)
        self.gas.burn_host("YIELD_RESUME_BASE")
        length, limit = len(payload), MAX_YIELD_PAYLOAD_BYTES
        self.gas.burn_host("YIELD_RESUME_BYTE", length)
        if length > limit:
            text = f"Yield resume payload is {length} bytes which exceeds the {limit} byte limit"
            raise HostError(text, "YieldPayloadLength", length=length, limit=limit)

    def _resume(self, yielded_id: CryptoHash, payload: bytes) -> bool:
        """Send a yielded call its data; return False if it has data or does not wait."""
        if yielded_id not in self.yielded and not self._waiting_yields.is_waiting(yielded_id):
            return False
        if any(resumed_id == yielded_id for resumed_id, _ in self.resumed):
            return False
        self.resumed.append((yielded_id, payload))
        return True

    def _data_id_of(self, yield_id: bytes) -> CryptoHash | None:
        return self.yield_ids.get(yield_id) or self._waiting_yields.data_id(yield_id)


class Promise:
    """A new receipt, or several that are joined; another receipt can wait for its results."""

    __slots__ = ("drafts", "is_joint", "vm")

    def __init__(
        self, vm: PromiseHost, drafts: list[ReceiptDraft], *, is_joint: bool = False
    ) -> None:
        self.vm, self.drafts = vm, drafts
        self.is_joint = is_joint  # even of a single receipt

    def then(self, receiver_id: str) -> Promise:
        """Create a receipt that waits for this promise's result."""
        return self.vm.promise_then(self, receiver_id)

    def refund_to(self, account_id: str) -> Promise:
        """Set the account to which the deposits return if the receipt fails (NEP-616)."""
        self.vm.host_call("promise_set_refund_to")
        new_id = parse_account_id(account_id)
        if self.is_joint:
            text = "Setting refund_to on a joint promise is prohibited."
            raise HostError(text, "CannotSetRefundToOnJointPromise")
        self.drafts[0].refund_to = new_id
        return self

    def create_account(self) -> Promise:
        return self._add("create_account", kinds.CreateAccount())

    def transfer(self, deposit: int) -> Promise:
        """Add a transfer of yoctoNEAR to the receiver."""
        return self._add("transfer", kinds.Transfer(deposit))

    def function_call(
        self, method_name: str, args: bytes, *, deposit: int = 0, gas: int = 0, weight: int = 0
    ) -> Promise:
        """Add a call with at least `gas`, and a share of the unused gas by `weight`."""
        self.vm.host_call("promise_batch_action_function_call")
        check_method_name(method_name)
        return self.add_call(kinds.FunctionCall(method_name, args, gas, deposit), weight)

    def add_call(self, call: kinds.FunctionCall, weight: int) -> Promise:
        self._append(call)
        if weight:
            draft = self.drafts[0]
            self.vm.weights.append((draft, len(draft.actions) - 1, call, weight))
        return self

    def stake(self, stake: int, public_key: PublicKey | str) -> Promise:
        """Add an action that stakes yoctoNEAR of the receiver."""
        return self._add("stake", kinds.Stake(stake, _parse_key(public_key)))

    def delete_account(self, beneficiary_id: str) -> Promise:
        return self._add("delete_account", kinds.DeleteAccount(parse_account_id(beneficiary_id)))

    # Keys --------------------------------------------------------------------------------

    def add_full_access_key(self, public_key: PublicKey | str, nonce: int = 0) -> Promise:
        action = kinds.AddKey(_parse_key(public_key), AccessKey(nonce))
        return self._add("add_key_with_full_access", action)

    def add_access_key(
        self,
        public_key: PublicKey | str,
        allowance: int | None,
        receiver_id: str,
        method_names: Sequence[str] = (),
        nonce: int = 0,
    ) -> Promise:
        permission = FunctionCallPermission(
            allowance, parse_account_id(receiver_id), _checked_names(method_names)
        )
        action = kinds.AddKey(_parse_key(public_key), AccessKey(nonce, permission))
        return self._add("add_key_with_function_call", action)

    def delete_key(self, public_key: PublicKey | str) -> Promise:
        return self._add("delete_key", kinds.DeleteKey(_parse_key(public_key)))

    def add_full_access_gas_key(self, public_key: PublicKey, num_nonces: int) -> Promise:
        """Add an action that adds a gas key with full access to the receiver (NEP-611)."""
        access_key = AccessKey(0, GasKeyFullAccess(0, num_nonces))
        return self._add("add_gas_key_with_full_access", kinds.AddKey(public_key, access_key))

    def add_gas_key(
        self,
        public_key: PublicKey,
        num_nonces: int,
        allowance: int | None,
        receiver_id: str,
        method_names: Sequence[str] = (),
    ) -> Promise:
        """Add an action that adds a gas key for function calls to the receiver (NEP-611)."""
        names = _checked_names(method_names)
        account_id = parse_account_id(receiver_id)
        permission = GasKeyFunctionCall(0, num_nonces, allowance, account_id, names)
        action = kinds.AddKey(public_key, AccessKey(0, permission))
        return self._add("add_gas_key_with_function_call", action)

    def transfer_to_gas_key(self, public_key: PublicKey, deposit: int) -> Promise:
        return self._add("transfer_to_gas_key", kinds.TransferToGasKey(public_key, deposit))

    # Code --------------------------------------------------------------------------------

    def deploy_contract(self, code: bytes) -> Promise:
        _check_code(code)
        return self._add("deploy_contract", kinds.DeployContract(code))

    def deploy_global_contract(
        self, code: bytes, deploy_mode: Literal["CodeHash", "AccountId"]
    ) -> Promise:
        _check_code(code)
        return self._add("deploy_global_contract", kinds.DeployGlobalContract(code, deploy_mode))

    def use_global_contract(self, identifier: CryptoHash | str) -> Promise:
        return self._add("use_global_contract", kinds.UseGlobalContract(identifier))

    def state_init(self, code: CryptoHash | str, deposit: int) -> int:
        """Add the initial state of a deterministic account; return the action's index."""
        self._add("state_init", kinds.DeterministicStateInit(kinds.StateInit(code), deposit))
        return len(self.drafts[0].actions) - 1

    def universal_state_init(self, state_init: bytes, deposit: int) -> Promise:
        action = kinds.UniversalStateInit(state_init, deposit)
        return self._add("universal_state_init", action)

    def set_state_init_entry(self, action_index: int, key: bytes, value: bytes) -> None:
        self.vm.host_call("set_state_init_data_entry")
        draft = self._single_draft()
        for name, fee in self.vm.profile.state_record_parts(1, len(key) + len(value)):
            self.vm.burn_fee(name, fee, draft.receiver_id)
        actions = draft.actions
        action = actions[action_index] if action_index < len(actions) else None
        if not isinstance(action, kinds.DeterministicStateInit):
            index = self.vm.drafts.index(draft)
            raise HostError(
                f"Action {action_index} in receipt {index} does not exist or has the wrong type of "
                "action.",
                "InvalidActionIndex",
                receipt_index=index,
                action_index=action_index,
            )
        records = dict(action.state_init.data)
        if key in records:
            text = "Data entry for given key already exists"
            raise HostError(text, "DataEntryAlreadyExists")
        state_init = replace(action.state_init, data={**records, key: value})
        actions[action_index] = replace(action, state_init=state_init)

    def _single_draft(self) -> ReceiptDraft:
        """Return the new receipt; fail for a joint promise."""
        if self.is_joint:
            text = "Actions can only be appended to non-joint promise."
            raise HostError(text, "CannotAppendActionToJointPromise")
        return self.drafts[0]

    def _add(self, name: str, action: Action) -> Promise:
        """Add an action by its host function."""
        self.vm.host_call(f"promise_batch_action_{name}")
        return self._append(action)

    def _append(self, action: Action) -> Promise:
        """Add an action: burn its fees, reserve its gas, deduct its deposit."""
        draft = self._single_draft()
        self.vm.burn_action_fee(action, draft.receiver_id)
        draft.actions.append(action)
        self.vm.deduct_deposit(action)
        return self


def check_method_name(method_name: str) -> None:
    if not method_name:
        raise HostError("Tried to call an empty method name.", "EmptyMethodName")


def _checked_names(method_names: Sequence[str]) -> Sequence[str]:
    for name in method_names:
        check_method_name(name)
    return method_names


def _check_code(code: bytes) -> None:
    size, limit = len(code), MAX_CODE_BYTES
    if size > limit:
        text = "The size of a contract code in DeployContract action"
        text = f"{text} {size} exceeds the limit {limit}"
        raise HostError(text, "ContractSizeExceeded", size=size, limit=limit)


def _parse_key(public_key: PublicKey | str) -> PublicKey:
    try:
        return public_key if isinstance(public_key, PublicKey) else PublicKey.from_text(public_key)
    except InvalidRequestError:
        raise HostError("VM Logic provided an invalid public key", "InvalidPublicKey") from None


def parse_account_id(account_id: str) -> AccountId:
    try:
        return AccountId(account_id)
    except InvalidRequestError:
        message = "VM Logic returned an invalid account id"
        raise HostError(message, "InvalidAccountId") from None


def _check_dependencies(count: int) -> None:
    if count > MAX_INPUT_DATA:
        raise HostError(
            f"The number of input data dependencies {count} exceeds the limit {MAX_INPUT_DATA}",
            "NumberInputDataDependenciesExceeded",
            number_of_input_data_dependencies=count,
            limit=MAX_INPUT_DATA,
        )


def _check_yield_id(yield_id: bytes) -> None:
    if len(yield_id) != YIELD_ID_BYTES:
        raise HostError("yield id is malformed", "YieldIdMalformed")
