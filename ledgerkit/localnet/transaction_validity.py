"""Which transactions a block takes: the node's checks, in the node's order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from msgspec import Struct

from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.localnet import fees
from ledgerkit.localnet.chain_types import Account
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
from ledgerkit.units import U128_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
NONCES_PER_HEIGHT = 10**6

# Known to later nodes only, and undecodable to this one.
_UNKNOWN = (DeterministicStateInit, TransferToGasKey, WithdrawFromGasKey)


class Cost(Struct, frozen=True):
    """What a transaction takes from its signer when a block takes it."""

    gas_burnt: int  # by turning it into a receipt
    purchase_price: int  # of the gas that the receipt carries
    gas_cost: int
    total: int


def decode(data: bytes, profile: Profile) -> SignedTransaction:
    """
    Read a signed transaction.

    Parameters
    ----------
    data
        Its binary form.
    profile
        Which actions there are.

    Returns
    -------
    signed
        The transaction.

    Raises
    ------
    UndecodableError
        If it is none, or has something this node does not know.
    """
    try:
        signed = SignedTransaction.decode(data)
    except (DecodeError, InvalidRequestError) as error:
        raise UndecodableError(f"Failed to decode transaction: {error.args[0]}") from None
    unknown = _UNKNOWN if profile.delegate_v2 else (*_UNKNOWN, DelegateV2)
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
    """List actions, and those that are delegated in them."""
    found: list[Action] = []
    for action in actions:
        found.append(action)
        if isinstance(action, Delegate | DelegateV2):
            found.extend(action.delegate_action.actions)
    return found


def _is_gas_key(access_key: AccessKey) -> bool:
    """Tell a key that holds gas."""
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
    """
    Check a transaction.

    Parameters
    ----------
    signed
        The transaction.
    state
        Of its signer.
    settings
        How long it is valid.
    profile
        What it costs.
    gas_price
        The price at which it is converted.
    height
        Of the head.
    height_of
        Finds a block's height.
    chunk_height
        Of the block being made, if it is to be included now: then the nonce's upper bound
        counts, and what never changes about it was checked before.

    Returns
    -------
    cost
        What it takes.
    account
        The signer, paid up.
    access_key
        The key, used.

    Raises
    ------
    InvalidTransactionError
        The first thing that is wrong.
    """
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
    """Refuse what names an unknown block, or one too old."""
    at = height_of(tx.block_hash)
    if at is None or height > at + settings.validity:
        raise InvalidTransactionError("Expired")


def check_contents(signed: SignedTransaction, profile: Profile) -> None:
    """Check what is the same at any time: actions, version, size, signature."""
    tx = signed.transaction
    check_actions(tx.actions, profile)
    if tx.version and not profile.later:
        raise InvalidTransactionError("InvalidTransactionVersion")
    if tx.size > MAX_TRANSACTION_BYTES:
        _refuse("TransactionSizeExceeded", size=tx.size, limit=MAX_TRANSACTION_BYTES)
    if not signed.verify():
        raise InvalidTransactionError("InvalidSignature")


def check_nonce(tx: Transaction, access_key: AccessKey, chunk_height: int | None) -> None:
    """Check a transaction's nonce against its key's."""
    if tx.nonce_index is not None:
        _refuse("InvalidNonceIndex", tx_nonce_index=tx.nonce_index, num_nonces=0)
    held = access_key.nonce
    # Before a chunk takes it, the nonces that a strict one follows may still come.
    strict = tx.nonce_mode == "strict" and chunk_height is not None
    if tx.nonce != held + 1 if strict else tx.nonce <= held:
        _refuse("InvalidNonce", tx_nonce=tx.nonce, ak_nonce=held)
    if chunk_height is not None and tx.nonce >= chunk_height * NONCES_PER_HEIGHT:
        bound = chunk_height * NONCES_PER_HEIGHT
        _refuse("NonceTooLarge", tx_nonce=tx.nonce, upper_bound=bound)


def cost_of(tx: Transaction, profile: Profile, gas_price: int) -> Cost:
    """Sum what a transaction takes from its signer."""
    sir = tx.signer_id == tx.receiver_id
    burnt = profile.new_receipt_send(sir=sir) + profile.send(
        tx.actions, tx.signer_id, tx.receiver_id
    )
    carried = (
        profile.new_receipt_execute
        + profile.prepaid_execution(tx.actions, tx.receiver_id)
        + fees.attached_gas(tx.actions)
    )
    price = profile.purchase_price(gas_price)
    gas_cost = burnt * gas_price + carried * price
    total = gas_cost + fees.deposits(tx.actions)
    if total > U128_MAX:
        raise InvalidTransactionError("CostOverflow")
    return Cost(burnt, price, gas_cost, total)


def _pay(
    tx: Transaction, account: Account, access_key: AccessKey, cost: Cost
) -> tuple[Account, AccessKey]:
    """Take the cost from the signer, and from its key's allowance."""
    signer_id = str(tx.signer_id)
    if account.amount < cost.total:
        balance, wanted = str(account.amount), str(cost.total)
        _refuse("NotEnoughBalance", signer_id=signer_id, balance=balance, cost=wanted)
    left = Account(
        account.amount - cost.total,
        account.locked,
        account.code_hash,
        account.storage_usage,
        account.global_contract,
    )
    permission = access_key.permission
    limited = permission if isinstance(permission, FunctionCallPermission) else None
    if limited is not None and limited.allowance is not None:
        permission = _spend(tx, limited, cost)
    short = fees.storage_shortfall(left.amount + left.locked, left.storage_usage)
    if short:
        _refuse("LackBalanceForState", signer_id=signer_id, amount=str(short))
    if limited is not None:
        check_scope(tx.actions, tx.receiver_id, limited, _refuse_key)
    return left, AccessKey(tx.nonce, permission)


def _spend(
    tx: Transaction, permission: FunctionCallPermission, cost: Cost
) -> FunctionCallPermission:
    """Take the gas from a key's allowance."""
    allowance = permission.allowance or 0
    if allowance < cost.gas_cost:
        _refuse_key(
            "NotEnoughAllowance",
            account_id=str(tx.signer_id),
            public_key=str(tx.public_key),
            allowance=str(allowance),
            cost=str(cost.gas_cost),
        )
    left = allowance - cost.gas_cost
    return FunctionCallPermission(left, permission.receiver_id, permission.method_names)


def check_scope(
    actions: Sequence[Action],
    receiver_id: str,
    permission: FunctionCallPermission,
    refuse: Callable[..., Never],
) -> None:
    """Refuse what a key for calls may not sign."""
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


def check_actions(actions: Sequence[Action], profile: Profile) -> None:
    """Check what actions say, whoever sends them."""
    if len(actions) > MAX_ACTIONS:
        _refuse_actions(
            "TotalNumberOfActionsExceeded", total_number_of_actions=len(actions), limit=MAX_ACTIONS
        )
    delegated = False
    for place, action in enumerate(actions):
        if isinstance(action, DeleteAccount) and place != len(actions) - 1:
            _refuse_actions("DeleteActionMustBeFinal")
        if isinstance(action, Delegate | DelegateV2):
            if delegated:
                _refuse_actions("DelegateActionMustBeOnlyOne")
            delegated = True
        check_action(action, profile)
    gas = fees.attached_gas(actions)
    if gas > MAX_PREPAID_GAS:
        _refuse_actions("TotalPrepaidGasExceeded", total_prepaid_gas=gas, limit=MAX_PREPAID_GAS)


def check_action(action: Action, profile: Profile) -> None:
    """Check what one action says."""
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
        case Delegate(delegate_action=wanted) | DelegateV2(delegate_action=wanted):
            check_actions(wanted.actions, profile)


def _check_call(action: FunctionCall) -> None:
    """Check a call."""
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
    """Check a key for calls."""
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
    """Refuse a transaction."""
    raise InvalidTransactionError(variant(name, payload or None))


def _refuse_key(name: str, **payload: Any) -> Never:
    """Refuse a transaction for its key."""
    raise InvalidTransactionError({"InvalidAccessKeyError": variant(name, payload or None)})


def _refuse_actions(name: str, **payload: Any) -> Never:
    """Refuse a transaction for its actions."""
    raise InvalidTransactionError({"ActionsValidation": variant(name, payload or None)})
