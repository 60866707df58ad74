"""
The validity of transactions: the node's checks, in the node's order.

The order decides which error is reported: first the age, then as in nearcore's
runtime/runtime/src/verifier.rs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from msgspec import Struct

from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.localnet import fees
from ledgerkit.localnet.execution_errors import InvalidTransactionError, UndecodableError, variant
from ledgerkit.protocol import (
    AccessKey,
    AccountId,
    Action,
    AddKey,
    CryptoHash,
    Delegate,
    DelegateV2,
    DeleteAccount,
    DeployContract,
    DeployGlobalContract,
    DeterministicStateInit,
    FunctionCall,
    FunctionCallPermission,
    GasKeyFullAccess,
    GasKeyFunctionCall,
    SignedTransaction,
    Stake,
    Transaction,
    TransferToGasKey,
    WithdrawFromGasKey,
)
from ledgerkit.protocol.actions import attached_gas, deposits
from ledgerkit.units import U128_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ledgerkit.localnet.chain_types import Account
    from ledgerkit.localnet.fees import Profile
    from ledgerkit.localnet.settings import Settings
    from ledgerkit.localnet.state import State

MAX_ACTIONS = 100
MAX_METHOD_NAME_BYTES = 256
MAX_ARGS_BYTES = 4 * 2**20
MAX_CODE_BYTES = 4 * 2**20
MAX_KEY_METHODS_BYTES = 2000
MAX_PREPAID_GAS = 1000 * fees.TGAS
MAX_TRANSACTION_BYTES = 1_572_864
NONCES_PER_HEIGHT = 10**6  # nearcore: AccessKey::ACCESS_KEY_NONCE_RANGE_MULTIPLIER

# Actions of later protocol versions.
_UNKNOWN_ACTIONS = (DeterministicStateInit, TransferToGasKey, WithdrawFromGasKey)


class Cost(Struct, frozen=True):
    """The cost of a transaction to its signer."""

    gas_burnt: int  # by its conversion to a receipt
    purchase_price: int  # of the receipt's prepaid gas, in yoctoNEAR
    gas_cost: int  # yoctoNEAR
    total: int  # yoctoNEAR, with deposits


def decode(data: bytes, profile: Profile) -> SignedTransaction:
    """Decode a signed transaction; refuse actions and keys of later protocol versions."""
    try:
        signed = SignedTransaction.decode(data)
    except (DecodeError, InvalidRequestError) as error:
        raise UndecodableError(f"Failed to decode transaction: {error.args[0]}") from None
    unknown = _UNKNOWN_ACTIONS if profile.delegate_v2 else (*_UNKNOWN_ACTIONS, DelegateV2)
    for action in _flat(signed.transaction.actions):
        if isinstance(action, unknown):
            raise UndecodableError(
                f"Failed to decode transaction: Unexpected variant tag: {action.tag}"
            )
        if isinstance(action, AddKey) and _is_gas_key(action.access_key):
            tag = action.access_key.permission.tag
            raise UndecodableError(f"Failed to decode transaction: Unexpected variant tag: {tag}")
    return signed


def _flat(actions: Sequence[Action]) -> list[Action]:
    """List actions together with the delegated actions in them."""
    flat: list[Action] = []
    for action in actions:
        flat.append(action)
        if isinstance(action, Delegate | DelegateV2):
            flat.extend(action.delegate_action.actions)
    return flat


def _is_gas_key(access_key: AccessKey) -> bool:
    """Return True for a gas key, which later protocol versions have."""
    return isinstance(access_key.permission, GasKeyFullAccess | GasKeyFunctionCall)


def check(
    signed: SignedTransaction,
    state: State,
    settings: Settings,
    profile: Profile,
    *,
    gas_price: int,
    height: int,
    height_of: Callable[[CryptoHash], int | None],
    chunk_height: int | None = None,
) -> tuple[Cost, Account, AccessKey]:
    """Check a transaction; return its cost, and the account and access key that paid it."""
    # Without a chunk height this is a submission. On inclusion the nonce has an upper bound, and
    # contents, which cannot have changed since, are not checked again.
    tx = signed.transaction
    check_age(tx, settings, height, height_of)
    if chunk_height is None:
        check_contents(signed, profile)
    cost = cost_of(tx, profile, gas_price)
    account = state.account(tx.signer_id)
    if account is None:
        name = "SignerDoesNotExist" if chunk_height is None else "InvalidSignerId"
        _refuse(name, signer_id=str(tx.signer_id))
    access_key = state.access_key(tx.signer_id, tx.public_key.packed)
    if access_key is None:
        _refuse_key(
            "AccessKeyNotFound", account_id=str(tx.signer_id), public_key=str(tx.public_key)
        )
    check_nonce(tx, access_key, chunk_height)
    return cost, *_pay(tx, account, access_key, cost)


def check_age(
    tx: Transaction,
    settings: Settings,
    height: int,
    height_of: Callable[[CryptoHash], int | None],
) -> None:
    """Check that the transaction's block is known and not too old."""
    block_height = height_of(tx.block_hash)
    if block_height is None or height > block_height + settings.validity:
        raise InvalidTransactionError("Expired")


def check_contents(signed: SignedTransaction, profile: Profile) -> None:
    """Check what does not depend on the state: actions, version, size, signature."""
    tx = signed.transaction
    check_actions(tx.actions)
    if tx.version and not profile.since_85:
        raise InvalidTransactionError("InvalidTransactionVersion")
    if tx.size > MAX_TRANSACTION_BYTES:
        _refuse("TransactionSizeExceeded", size=tx.size, limit=MAX_TRANSACTION_BYTES)
    if not signed.verify():
        raise InvalidTransactionError("InvalidSignature")


def check_nonce(tx: Transaction, access_key: AccessKey, chunk_height: int | None) -> None:
    """Check a transaction's nonce against its access key's."""
    if tx.nonce_index is not None:
        _refuse("InvalidNonceIndex", tx_nonce_index=tx.nonce_index, num_nonces=0)
    # On submission, the transactions with the nonces before a strict one may still arrive.
    is_strict = tx.nonce_mode == "strict" and chunk_height is not None
    if tx.nonce != access_key.nonce + 1 if is_strict else tx.nonce <= access_key.nonce:
        _refuse("InvalidNonce", tx_nonce=tx.nonce, ak_nonce=access_key.nonce)
    if chunk_height is not None and tx.nonce >= chunk_height * NONCES_PER_HEIGHT:
        bound = chunk_height * NONCES_PER_HEIGHT
        _refuse("NonceTooLarge", tx_nonce=tx.nonce, upper_bound=bound)


def cost_of(tx: Transaction, profile: Profile, gas_price: int) -> Cost:
    """Compute the cost of a transaction."""
    sir = tx.signer_id == tx.receiver_id
    burnt = profile.new_receipt_send(sir=sir)
    burnt += profile.send(tx.actions, tx.signer_id, tx.receiver_id)
    price = profile.purchase_price(gas_price)
    gas_cost = burnt * gas_price + profile.prepaid_gas(tx.actions, tx.receiver_id) * price
    total = gas_cost + deposits(tx.actions)
    if total > U128_MAX:
        raise InvalidTransactionError("CostOverflow")
    return Cost(burnt, price, gas_cost, total)


def _pay(
    tx: Transaction, account: Account, access_key: AccessKey, cost: Cost
) -> tuple[Account, AccessKey]:
    """Deduct the cost from the signer's balance and its key's allowance."""
    signer_id = str(tx.signer_id)
    if account.amount < cost.total:
        balance, total = str(account.amount), str(cost.total)
        _refuse("NotEnoughBalance", signer_id=signer_id, balance=balance, cost=total)
    paid = account.plus(amount=-cost.total)
    permission = access_key.permission
    limited = permission if isinstance(permission, FunctionCallPermission) else None
    if limited is not None and limited.allowance is not None:
        permission = _deduct_allowance(tx, limited, cost)
    missing = fees.storage_shortfall(paid.amount + paid.locked, paid.storage_usage)
    if missing:
        _refuse("LackBalanceForState", signer_id=signer_id, amount=str(missing))
    if limited is not None:
        check_permission(tx.actions, tx.receiver_id, limited, _refuse_key)
    return paid, AccessKey(tx.nonce, permission)


def _deduct_allowance(
    tx: Transaction, permission: FunctionCallPermission, cost: Cost
) -> FunctionCallPermission:
    """Deduct the gas from a key's allowance."""
    allowance = permission.allowance or 0
    if allowance < cost.gas_cost:
        _refuse_key(
            "NotEnoughAllowance",
            account_id=str(tx.signer_id),
            public_key=str(tx.public_key),
            allowance=str(allowance),
            cost=str(cost.gas_cost),
        )
    remaining = allowance - cost.gas_cost
    return FunctionCallPermission(remaining, permission.receiver_id, permission.method_names)


def check_permission(
    actions: Sequence[Action],
    receiver_id: str,
    permission: FunctionCallPermission,
    refuse: Callable[..., Never],
) -> None:
    """Check that a function call key may sign the actions."""
    call = actions[0] if len(actions) == 1 else None
    if not isinstance(call, FunctionCall):
        refuse("RequiresFullAccess")
    if call.deposit:
        refuse("DepositWithFunctionCall")
    if receiver_id != permission.receiver_id:
        refuse("ReceiverMismatch", tx_receiver=str(receiver_id), ak_receiver=permission.receiver_id)
    if permission.method_names and call.method_name not in permission.method_names:
        refuse("MethodNameMismatch", method_name=call.method_name)


# Actions ---------------------------------------------------------------------------------


def check_actions(actions: Sequence[Action]) -> None:
    """Check actions on their own, without the state."""
    if len(actions) > MAX_ACTIONS:
        _refuse_actions(
            "TotalNumberOfActionsExceeded", total_number_of_actions=len(actions), limit=MAX_ACTIONS
        )
    is_delegated = False
    for position, action in enumerate(actions):
        if isinstance(action, DeleteAccount) and position != len(actions) - 1:
            _refuse_actions("DeleteActionMustBeFinal")
        if isinstance(action, Delegate | DelegateV2):
            if is_delegated:
                _refuse_actions("DelegateActionMustBeOnlyOne")
            is_delegated = True
        check_action(action)
    gas = attached_gas(actions)
    if gas > MAX_PREPAID_GAS:
        _refuse_actions("TotalPrepaidGasExceeded", total_prepaid_gas=gas, limit=MAX_PREPAID_GAS)


def check_action(action: Action) -> None:
    """Check one action on its own."""
    match action:
        case FunctionCall():
            _check_call(action)
        case DeployContract(code=code) | DeployGlobalContract(code=code) if (
            len(code) > MAX_CODE_BYTES
        ):
            _refuse_actions("ContractSizeExceeded", size=len(code), limit=MAX_CODE_BYTES)
        case Stake(public_key=key) if key.curve != "ed25519":
            _refuse_actions("UnsuitableStakingKey", public_key=str(key))
        case AddKey(access_key=key):
            _check_key(key)
        case Delegate(delegate_action=inner) | DelegateV2(delegate_action=inner):
            check_actions(inner.actions)


def _check_call(action: FunctionCall) -> None:
    """Check a function call."""
    if not action.gas:
        _refuse_actions("FunctionCallZeroAttachedGas")
    length = len(action.method_name.encode())
    if length > MAX_METHOD_NAME_BYTES:
        _refuse_actions(
            "FunctionCallMethodNameLengthExceeded", length=length, limit=MAX_METHOD_NAME_BYTES
        )
    if len(action.args) > MAX_ARGS_BYTES:
        _refuse_actions(
            "FunctionCallArgumentsLengthExceeded", length=len(action.args), limit=MAX_ARGS_BYTES
        )


def _check_key(access_key: AccessKey) -> None:
    """Check the permission of a new access key."""
    permission = access_key.permission
    if not isinstance(permission, FunctionCallPermission):
        return
    try:
        AccountId(permission.receiver_id)
    except InvalidRequestError:
        _refuse_actions("InvalidAccountId", account_id=permission.receiver_id)
    total = 0
    for name in permission.method_names:
        length = len(name.encode())
        if length > MAX_METHOD_NAME_BYTES:
            _refuse_actions(
                "AddKeyMethodNameLengthExceeded", length=length, limit=MAX_METHOD_NAME_BYTES
            )
        total += length + 1
    if total > MAX_KEY_METHODS_BYTES:
        _refuse_actions(
            "AddKeyMethodNamesNumberOfBytesExceeded",
            total_number_of_bytes=total,
            limit=MAX_KEY_METHODS_BYTES,
        )


def _refuse(name: str, **payload: Any) -> Never:
    """Raise an error for a transaction."""
    raise InvalidTransactionError(variant(name, payload or None))


def _refuse_key(name: str, **payload: Any) -> Never:
    """Raise an error for a transaction's access key."""
    raise InvalidTransactionError({"InvalidAccessKeyError": variant(name, payload or None)})


def _refuse_actions(name: str, **payload: Any) -> Never:
    """Raise an error for a transaction's actions."""
    raise InvalidTransactionError({"ActionsValidation": variant(name, payload or None)})
