"""
Promises: the receipts that a call creates, with their actions.

Each method of a `Promise` is a host function of the node, and costs what that costs without the
bytes it reads from a module's memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Protocol

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.execution_errors import HostError
from ledgerkit.localnet.transaction_validity import MAX_CODE_BYTES
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
    DeployGlobalContract,
    DeterministicStateInit,
    FunctionCall,
    FunctionCallPermission,
    GasKeyFullAccess,
    GasKeyFunctionCall,
    PublicKey,
    Stake,
    StateInit,
    Transfer,
    TransferToGasKey,
    UseGlobalContract,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.localnet.fees import Fee, Profile
    from ledgerkit.protocol.access_keys import Permission


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


class PromiseHost(Protocol):
    """What a promise needs of the virtual machine in which its call runs."""

    profile: Profile
    drafts: list[ReceiptDraft]
    weights: list[tuple[ReceiptDraft, int, FunctionCall, int]]

    def host_call(self, name: str) -> None:
        """Burn the base cost of a host function; fail in a view."""

    def deduct(self, deposit: int, *, may_subsidize: bool = False) -> None:
        """Deduct a deposit from the account's balance."""

    def burn_fee(self, name: str, fee: Fee, receiver_id: str) -> None:
        """Burn the fee of a part of an action."""

    def burn_action_fee(self, action: Action, receiver_id: str) -> None:
        """Burn the fee of an action."""

    def promise_then(self, promise: Promise, receiver_id: str) -> Promise:
        """Create a receipt that waits for the results of a promise."""


class Promise:
    """A new receipt, or several that are joined; another receipt can wait for its results."""

    __slots__ = ("drafts", "is_joint", "vm")

    def __init__(
        self, vm: PromiseHost, drafts: list[ReceiptDraft], *, is_joint: bool = False
    ) -> None:
        self.vm, self.drafts = vm, drafts
        self.is_joint = is_joint  # even if it joins only one

    def then(self, receiver_id: str) -> Promise:
        """Create a receipt that waits for this one's result."""
        return self.vm.promise_then(self, receiver_id)

    def refund_to(self, account_id: str) -> Promise:
        """Set the account to which the deposits return if the receipt fails (NEP-616)."""
        self.vm.host_call("promise_set_refund_to")
        new_id = parse_account_id(account_id)
        if self.is_joint:
            raise HostError(
                "Setting refund_to on a joint promise is prohibited.",
                "CannotSetRefundToOnJointPromise",
            )
        self.drafts[0].refund_to = new_id
        return self

    def create_account(self) -> Promise:
        """Add an action that creates the receiver."""
        self.vm.host_call("promise_batch_action_create_account")
        return self._add(CreateAccount())

    def transfer(self, deposit: int) -> Promise:
        """Add a transfer of yoctoNEAR to the receiver."""
        self.vm.host_call("promise_batch_action_transfer")
        self._add(Transfer(deposit))
        self.vm.deduct(deposit)
        return self

    def function_call(
        self, method_name: str, args: bytes, *, deposit: int = 0, gas: int = 0, weight: int = 0
    ) -> Promise:
        """Add a call with at least `gas`, and a share of the unused gas by `weight`."""
        self.vm.host_call("promise_batch_action_function_call")
        check_method_name(method_name)
        return self.add_call(method_name, args, deposit=deposit, gas=gas, weight=weight)

    def add_call(
        self, method_name: str, args: bytes, *, deposit: int, gas: int, weight: int
    ) -> Promise:
        """Add a checked call: burn its fees, reserve its gas, deduct its deposit."""
        call = FunctionCall(method_name, args, gas, deposit)
        self._add(call)
        self.vm.deduct(deposit, may_subsidize=True)
        if weight:
            draft = self.drafts[0]
            self.vm.weights.append((draft, len(draft.actions) - 1, call, weight))
        return self

    def stake(self, stake: int, public_key: PublicKey | str) -> Promise:
        """Add an action that stakes yoctoNEAR of the receiver."""
        self.vm.host_call("promise_batch_action_stake")
        return self._add(Stake(stake, _parse_key(public_key)))

    def delete_account(self, beneficiary_id: str) -> Promise:
        """Add an action that deletes the receiver."""
        self.vm.host_call("promise_batch_action_delete_account")
        return self._add(DeleteAccount(parse_account_id(beneficiary_id)))

    # Keys --------------------------------------------------------------------------------

    def add_full_access_key(self, public_key: PublicKey | str, nonce: int = 0) -> Promise:
        """Add an action that adds a full access key to the receiver."""
        self.vm.host_call("promise_batch_action_add_key_with_full_access")
        return self._add(AddKey(_parse_key(public_key), AccessKey(nonce)))

    def add_access_key(
        self,
        public_key: PublicKey | str,
        allowance: int | None,
        receiver_id: str,
        method_names: Sequence[str] = (),
        nonce: int = 0,
    ) -> Promise:
        """Add an action that adds a function call key to the receiver."""
        self.vm.host_call("promise_batch_action_add_key_with_function_call")
        permission = FunctionCallPermission(
            allowance, parse_account_id(receiver_id), _checked_names(method_names)
        )
        return self._add(AddKey(_parse_key(public_key), AccessKey(nonce, permission)))

    def delete_key(self, public_key: PublicKey | str) -> Promise:
        """Add an action that removes a key of the receiver."""
        self.vm.host_call("promise_batch_action_delete_key")
        return self._add(DeleteKey(_parse_key(public_key)))

    def add_full_access_gas_key(self, public_key: PublicKey, num_nonces: int) -> Promise:
        """Add an action that adds a gas key with full access to the receiver (NEP-611)."""
        self.vm.host_call("promise_batch_action_add_gas_key_with_full_access")
        return self._add_gas_key(public_key, GasKeyFullAccess(0, num_nonces))

    def add_gas_key(
        self,
        public_key: PublicKey,
        num_nonces: int,
        allowance: int | None,
        receiver_id: str,
        method_names: Sequence[str] = (),
    ) -> Promise:
        """Add an action that adds a gas key for function calls to the receiver (NEP-611)."""
        self.vm.host_call("promise_batch_action_add_gas_key_with_function_call")
        names = _checked_names(method_names)
        account_id = parse_account_id(receiver_id)
        permission = GasKeyFunctionCall(0, num_nonces, allowance, account_id, names)
        return self._add_gas_key(public_key, permission)

    def _add_gas_key(self, public_key: PublicKey, permission: Permission) -> Promise:
        """Add an action that adds a gas key."""
        return self._add(AddKey(public_key, AccessKey(0, permission)))

    def transfer_to_gas_key(self, public_key: PublicKey, deposit: int) -> Promise:
        """Add a transfer of yoctoNEAR to a gas key of the receiver."""
        self.vm.host_call("promise_batch_action_transfer_to_gas_key")
        self._add(TransferToGasKey(public_key, deposit))
        self.vm.deduct(deposit)
        return self

    # Code --------------------------------------------------------------------------------

    def deploy_contract(self, code: bytes) -> Promise:
        """Add an action that deploys code to the receiver."""
        self.vm.host_call("promise_batch_action_deploy_contract")
        _check_code(code)
        return self._add(DeployContract(code))

    def deploy_global_contract(
        self, code: bytes, deploy_mode: Literal["CodeHash", "AccountId"]
    ) -> Promise:
        """Add an action that publishes code as a global contract of the receiver."""
        self.vm.host_call("promise_batch_action_deploy_global_contract")
        _check_code(code)
        return self._add(DeployGlobalContract(code, deploy_mode))

    def use_global_contract(self, identifier: CryptoHash | str) -> Promise:
        """Add an action that makes the receiver run a global contract."""
        self.vm.host_call("promise_batch_action_use_global_contract")
        return self._add(UseGlobalContract(identifier))

    def state_init(self, code: CryptoHash | str, deposit: int) -> int:
        """Add the initial state of a deterministic account; return the action's index."""
        self.vm.host_call("promise_batch_action_state_init")
        self._add(DeterministicStateInit(StateInit(code), deposit))
        self.vm.deduct(deposit)
        return len(self.drafts[0].actions) - 1

    def set_state_init_entry(self, action_index: int, key: bytes, value: bytes) -> None:
        """Add a record to an initial state."""
        self.vm.host_call("set_state_init_data_entry")
        draft = self._single()
        for name, fee in self.vm.profile.state_record_parts(1, len(key) + len(value)):
            self.vm.burn_fee(name, fee, draft.receiver_id)
        actions = draft.actions
        action = actions[action_index] if action_index < len(actions) else None
        if not isinstance(action, DeterministicStateInit):
            receipt_index = self.vm.drafts.index(draft)
            raise HostError(
                f"Action {action_index} in receipt {receipt_index} does not exist or has the wrong "
                "type of action.",
                f"InvalidActionIndex {{ receipt_index: {receipt_index}, "
                f"action_index: {action_index} }}",
            )
        records = dict(action.state_init.data)
        if key in records:
            text = "Data entry for given key already exists"
            raise HostError(text, "DataEntryAlreadyExists")
        state_init = replace(action.state_init, data={**records, key: value})
        actions[action_index] = replace(action, state_init=state_init)

    def _single(self) -> ReceiptDraft:
        """Return the receipt; fail for a joint promise."""
        if self.is_joint:
            raise HostError(
                "Actions can only be appended to non-joint promise.",
                "CannotAppendActionToJointPromise",
            )
        return self.drafts[0]

    def _add(self, action: Action) -> Promise:
        """Add an action and burn its fee."""
        draft = self._single()
        self.vm.burn_action_fee(action, draft.receiver_id)
        draft.actions.append(action)
        return self


def check_method_name(method_name: str) -> None:
    """Fail for an empty method name."""
    if not method_name:
        raise HostError("Tried to call an empty method name.", "EmptyMethodName")


def _checked_names(method_names: Sequence[str]) -> Sequence[str]:
    """Fail for an empty method name of a key."""
    for name in method_names:
        check_method_name(name)
    return method_names


def _check_code(code: bytes) -> None:
    """Fail for code that is too large to deploy."""
    if len(code) > MAX_CODE_BYTES:
        raise HostError(
            f"The size of a contract code in DeployContract action {len(code)} exceeds the limit "
            f"{MAX_CODE_BYTES}",
            f"ContractSizeExceeded {{ size: {len(code)}, limit: {MAX_CODE_BYTES} }}",
        )


def _parse_key(public_key: PublicKey | str) -> PublicKey:
    """Parse a public key."""
    try:
        return public_key if isinstance(public_key, PublicKey) else PublicKey.from_text(public_key)
    except InvalidRequestError:
        raise HostError("VM Logic provided an invalid public key", "InvalidPublicKey") from None


def parse_account_id(account_id: str) -> AccountId:
    """Parse an account id."""
    try:
        return AccountId(account_id)
    except InvalidRequestError:
        message = "VM Logic returned an invalid account id"
        raise HostError(message, "InvalidAccountId") from None
