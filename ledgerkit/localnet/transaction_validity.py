"""
The validity of transactions: the node's checks, in the node's order.

The order decides which error is reported. The age is checked first; the other checks have the
order of nearcore's runtime/runtime/src/verifier.rs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Never

from msgspec import Struct, structs

from ledgerkit.localnet import fees
from ledgerkit.localnet.chain_types import Account
from ledgerkit.localnet.execution_errors import InvalidTransactionError, variant
from ledgerkit.localnet.fees import Feature, Profile
from ledgerkit.protocol import (
    AccessKey,
    Action,
    FunctionCallPermission,
    GasKeyFunctionCall,
    PublicKey,
    SignedTransaction,
    Transaction,
    curves,
    deterministic_account_id,
    limits,
    universal_account_id,
)
from ledgerkit.protocol import actions as kinds
from ledgerkit.protocol.access_keys import GasKey
from ledgerkit.protocol.actions import SignedDelegate, attached_gas, deposits, with_delegated
from ledgerkit.units import U128_MAX
from ledgerkit.validation import is_account_id

if TYPE_CHECKING:
    from ledgerkit.localnet.state import State

_ML_DSA = "ml-dsa-65"
NONCES_PER_HEIGHT = 10**6  # nearcore: AccessKey::ACCESS_KEY_NONCE_RANGE_MULTIPLIER


class Cost(Struct, frozen=True):
    """The cost of a transaction to its signer."""

    gas_burnt: int  # by its conversion to a receipt
    purchase_price: int  # the price of the receipt's prepaid gas, in yoctoNEAR
    gas_cost: int  # yoctoNEAR
    total: int  # yoctoNEAR, with deposits


Charge = tuple[Cost, Account, AccessKey | None]  # the account and the key after the payment


def check(
    signed: SignedTransaction,
    state: State,
    profile: Profile,
    *,
    is_expired: bool,
    gas_price: int,
    chunk_height: int | None,
    is_signed: bool,
) -> Charge:
    """Check a transaction; return its cost, and the account and access key that paid it."""
    # A submission has no chunk height. On inclusion the nonce has an upper bound. The contents are
    # not checked again, because they cannot have changed.
    tx = signed.transaction
    if is_expired:
        raise InvalidTransactionError("Expired")
    if chunk_height is None:
        check_contents(signed, profile, is_signed=is_signed)
    cost = cost_of(tx, profile, gas_price)
    account = state.account(tx.signer_id)
    if account is None:
        name = "SignerDoesNotExist" if chunk_height is None else "InvalidSignerId"
        _refuse(name, signer_id=str(tx.signer_id))
    access_key = state.access_key(tx.signer_id, tx.public_key.stored)
    if access_key is None and account.bootstrap_nonce is not None and tx.initializes_signer:
        check_nonce(tx, account.bootstrap_nonce, chunk_height, is_strict=True)
        return cost, structs.replace(_debit(tx, account, cost), bootstrap_nonce=tx.nonce), None
    if access_key is None:
        _refuse_key(
            "AccessKeyNotFound", account_id=str(tx.signer_id), public_key=str(tx.public_key)
        )
    check_nonce(tx, last_nonce(tx, access_key, state), chunk_height)
    pay = _pay if tx.nonce_index is None else _pay_from_gas_key
    return cost, *pay(tx, account, access_key, cost)


def check_contents(signed: SignedTransaction, profile: Profile, *, is_signed: bool = True) -> None:
    """Check the parts that the state does not affect: actions, version, size, signature."""
    tx = signed.transaction
    check_actions(tx.actions, tx.receiver_id, profile)
    has_post_quantum = profile.has(Feature.POST_QUANTUM_SIGNATURES)
    is_post_quantum = _ML_DSA in (tx.public_key.curve, signed.signature.curve)
    if (tx.version and not profile.has(Feature.GAS_KEYS)) or (
        is_post_quantum and not has_post_quantum
    ):
        raise InvalidTransactionError("InvalidTransactionVersion")
    size = signed.wire_size if has_post_quantum else tx.size
    if size > limits.MAX_TRANSACTION_BYTES:
        _refuse("TransactionSizeExceeded", size=size, limit=limits.MAX_TRANSACTION_BYTES)
    if is_signed and not signed.verify():
        raise InvalidTransactionError("InvalidSignature")
    for action in tx.actions:
        if isinstance(action, SignedDelegate):  # verified when it is executed
            curves.need_verifier(action.delegate_action.public_key.curve)


def last_nonce(tx: Transaction, access_key: AccessKey, state: State) -> int:
    """Return the last nonce of a transaction's key; a gas key has a nonce for each index."""
    permission, index = access_key.permission, tx.nonce_index
    count = permission.num_nonces if isinstance(permission, GasKey) else 0
    if index is None and not count:
        return access_key.nonce
    packed = tx.public_key.stored
    nonce = None if index is None else state.gas_key_nonce(tx.signer_id, packed, index)
    if nonce is None:
        _refuse("InvalidNonceIndex", tx_nonce_index=index, num_nonces=count)
    return nonce


def check_nonce(
    tx: Transaction, ak_nonce: int, chunk_height: int | None, *, is_strict: bool = False
) -> None:
    """Check a transaction's nonce against the last nonce of its access key or signer."""
    # On submission, transactions with lower nonces than a strict one may still arrive.
    is_next = (is_strict or tx.nonce_mode == "strict") and chunk_height is not None
    if tx.nonce != ak_nonce + 1 if is_next else tx.nonce <= ak_nonce:
        _refuse("InvalidNonce", tx_nonce=tx.nonce, ak_nonce=ak_nonce)
    if chunk_height is not None and tx.nonce >= chunk_height * NONCES_PER_HEIGHT:
        bound = chunk_height * NONCES_PER_HEIGHT
        _refuse("NonceTooLarge", tx_nonce=tx.nonce, upper_bound=bound)


def cost_of(tx: Transaction, profile: Profile, gas_price: int) -> Cost:
    to_self = tx.signer_id == tx.receiver_id
    burnt = profile.new_receipt_send(to_self=to_self)
    burnt += profile.send(tx.actions, tx.signer_id, tx.receiver_id)
    burnt += profile.verification_gas(tx.public_key, tx.actions)
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
    signer_id, paid = str(tx.signer_id), _debit(tx, account, cost)
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


def _debit(tx: Transaction, account: Account, cost: Cost) -> Account:
    if account.amount < cost.total:
        balance, total = str(account.amount), str(cost.total)
        _refuse("NotEnoughBalance", signer_id=str(tx.signer_id), balance=balance, cost=total)
    return account.plus(amount=-cost.total)


def _pay_from_gas_key(
    tx: Transaction, account: Account, access_key: AccessKey, cost: Cost
) -> tuple[Account, AccessKey]:
    """Deduct the gas from the balance of a gas key, and the deposits from the signer's."""
    signer_id, permission = str(tx.signer_id), access_key.permission
    if not isinstance(permission, GasKey):  # only gas keys have nonces at an index
        raise TypeError(f"{type(permission).__name__} has no balance")
    if permission.balance < cost.gas_cost:
        balance, gas_cost = str(permission.balance), str(cost.gas_cost)
        _refuse("NotEnoughGasKeyBalance", signer_id=signer_id, balance=balance, cost=gas_cost)
    if isinstance(permission, GasKeyFunctionCall):
        check_permission(tx.actions, tx.receiver_id, permission, _refuse_key)
    deposit = cost.total - cost.gas_cost
    if account.amount < deposit:
        _refuse_deposit(signer_id, account.amount, deposit, "NotEnoughBalance")
    paid = account.plus(amount=-deposit)
    missing = fees.storage_shortfall(paid.amount + paid.locked, paid.storage_usage)
    if missing:
        _refuse_deposit(signer_id, paid.amount, missing, "LackBalanceForState")
    charged = replace(permission, balance=permission.balance - cost.gas_cost)
    return paid, AccessKey(access_key.nonce, charged)


def _refuse_deposit(signer_id: str, balance: int, cost: int, reason: str) -> Never:
    """Raise the error for deposits that the signer's balance does not cover."""
    _refuse(
        "NotEnoughBalanceForDeposit",
        signer_id=signer_id,
        balance=str(balance),
        cost=str(cost),
        reason=reason,
    )


def _deduct_allowance(
    tx: Transaction, permission: FunctionCallPermission, cost: Cost
) -> FunctionCallPermission:
    allowance = permission.allowance or 0
    if allowance < cost.gas_cost:
        _refuse_key(
            "NotEnoughAllowance",
            account_id=str(tx.signer_id),
            public_key=str(tx.public_key),
            allowance=str(allowance),
            cost=str(cost.gas_cost),
        )
    return replace(permission, allowance=allowance - cost.gas_cost)


def check_permission(
    actions: Sequence[Action],
    receiver_id: str,
    permission: FunctionCallPermission | GasKeyFunctionCall,
    refuse: Callable[..., Never],
) -> None:
    call = actions[0] if len(actions) == 1 else None
    if not isinstance(call, kinds.FunctionCall):
        refuse("RequiresFullAccess")
    if call.deposit:
        refuse("DepositWithFunctionCall")
    if receiver_id != permission.receiver_id:
        refuse("ReceiverMismatch", tx_receiver=str(receiver_id), ak_receiver=permission.receiver_id)
    if permission.method_names and call.method_name not in permission.method_names:
        refuse("MethodNameMismatch", method_name=call.method_name)


# Actions ---------------------------------------------------------------------------------


def check_actions(actions: Sequence[Action], receiver_id: str, profile: Profile) -> None:
    count = len(actions)
    _limit("TotalNumberOfActionsExceeded", limits.MAX_ACTIONS, total_number_of_actions=count)
    if any(map(_has_ml_dsa_key, actions)):
        _require(Feature.POST_QUANTUM_SIGNATURES, profile)
    count = sum(
        isinstance(action, kinds.DeployContract | kinds.DeployGlobalContract) for action in actions
    )
    name = "TotalNumberOfDeployActionsExceeded"
    _limit(name, limits.MAX_DEPLOY_ACTIONS, number_of_deploy_actions=count)
    if profile.has(Feature.STATE_INIT_LIMIT):
        _check_initial_states(with_delegated(actions))
    is_delegated = False
    for position, action in enumerate(actions):
        if isinstance(action, kinds.DeleteAccount) and position != len(actions) - 1:
            _refuse_actions("DeleteActionMustBeFinal")
        if isinstance(action, SignedDelegate):
            if is_delegated:
                _refuse_actions("DelegateActionMustBeOnlyOne")
            is_delegated = True
        check_action(action, receiver_id, profile)
    gas = attached_gas(actions)
    _limit("TotalPrepaidGasExceeded", limits.MAX_PREPAID_GAS, total_prepaid_gas=gas)


def check_action(action: Action, receiver_id: str, profile: Profile) -> None:
    match action:
        case kinds.FunctionCall():
            _check_call(action, profile)
        case kinds.DeployContract(code=code) | kinds.DeployGlobalContract(code=code):
            _limit("ContractSizeExceeded", limits.MAX_CODE_BYTES, size=len(code))
        case kinds.Stake(public_key=key) if key.curve != "ed25519":
            _refuse_actions("UnsuitableStakingKey", public_key=str(key))
        case kinds.AddKey(access_key=key):
            _check_key(key, profile)
        case kinds.TransferToGasKey() | kinds.WithdrawFromGasKey():
            _require(Feature.GAS_KEYS, profile)
        case kinds.DeterministicStateInit() | kinds.UniversalStateInit():
            _check_initial_state(action, receiver_id, profile)
        case kinds.Delegate(delegate_action=inner):
            _check_delegated(inner, receiver_id, profile)
        case kinds.DelegateV2(delegate_action=inner):
            _require(Feature.DELEGATE_V2, profile)
            if profile.has(Feature.NO_DELEGATE_V2):
                _refuse_feature("RemovedProtocolFeature", Feature.DELEGATE_V2, profile)
            _check_delegated(inner, receiver_id, profile)


def _has_ml_dsa_key(action: Action) -> bool:
    """Return True for an action with an ML-DSA-65 key, or whose sender signed with one."""
    if isinstance(action, SignedDelegate):
        inner = action.delegate_action
        if _ML_DSA in (inner.public_key.curve, action.signature.curve):
            return True
        return any(map(_has_ml_dsa_key, inner.actions))
    key = getattr(action, "public_key", None)
    return isinstance(key, PublicKey) and key.curve == _ML_DSA


def _require(feature: Feature, profile: Profile) -> None:
    if not profile.has(feature):
        _refuse_feature("UnsupportedProtocolFeature", feature, profile)


def _refuse_feature(name: str, feature: Feature, profile: Profile) -> Never:
    _refuse_actions(name, protocol_feature=feature.label, version=profile.version)


def _check_delegated(
    inner: kinds.DelegateAction | kinds.DelegateActionV2, receiver_id: str, profile: Profile
) -> None:
    is_withdrawn = any(isinstance(action, kinds.WithdrawFromGasKey) for action in inner.actions)
    if is_withdrawn and profile.has(Feature.NO_WITHDRAWAL_IN_DELEGATE):
        _refuse_actions("WithdrawFromGasKeyNotAllowedInDelegate")
    # Before version 85 the node checked the receiver of the wrong receipt.
    has_fix = profile.has(Feature.STATE_INIT_IN_DELEGATE)
    inner_receiver_id = inner.receiver_id if has_fix else receiver_id
    check_actions(inner.actions, inner_receiver_id, profile)


def _check_initial_states(actions: Sequence[Action]) -> None:
    """Check the keys and records of all initial states together."""
    n_keys = n_records = 0
    for action in actions:
        match action:
            case kinds.DeterministicStateInit(state_init=state):
                n_records += len(state.data)
            case kinds.UniversalStateInit(decoded=kinds.UniversalStateInitV1() as universal):
                n_keys += len(universal.access_keys)
                n_records += len(universal.data)
    _limit("TotalNumberOfStateInitKeysExceeded", limits.MAX_STATE_INIT_KEYS, number_of_keys=n_keys)
    name = "TotalNumberOfStateInitEntriesExceeded"
    _limit(name, limits.MAX_STATE_INIT_ENTRIES, number_of_entries=n_records)


def _check_initial_state(
    action: kinds.DeterministicStateInit | kinds.UniversalStateInit,
    receiver_id: str,
    profile: Profile,
) -> None:
    name = action.name
    state: kinds.StateInit | kinds.UniversalStateInitV1 | None
    if isinstance(action, kinds.UniversalStateInit):
        _require(Feature.UNIVERSAL_ACCOUNTS, profile)
        derived_id, state = universal_account_id(action.state_init), action.decoded
    else:
        derived_id, state = deterministic_account_id(action.state_init), action.state_init
    if derived_id != receiver_id:
        _refuse_actions(
            f"Invalid{name}Receiver", receiver_id=str(receiver_id), derived_id=str(derived_id)
        )
    if state is None:
        _refuse_actions("MalformedUniversalStateInit")
    for key, value in state.data.items():
        _limit(f"{name}KeyLengthExceeded", limits.MAX_KEY_BYTES, length=len(key))
        _limit(f"{name}ValueLengthExceeded", limits.MAX_VALUE_BYTES, length=len(value))


def _check_call(action: kinds.FunctionCall, profile: Profile) -> None:
    if not action.gas:
        _refuse_actions("FunctionCallZeroAttachedGas")
    if not action.method_name and profile.has(Feature.NO_EMPTY_METHOD_NAME):
        _refuse_actions("FunctionCallEmptyMethodName")
    length = len(action.method_name.encode())
    _limit("FunctionCallMethodNameLengthExceeded", limits.MAX_METHOD_NAME_BYTES, length=length)
    _limit("FunctionCallArgumentsLengthExceeded", limits.MAX_ARGS_BYTES, length=len(action.args))


def _check_key(access_key: AccessKey, profile: Profile) -> None:
    permission = access_key.permission
    if isinstance(permission, FunctionCallPermission | GasKeyFunctionCall):
        _check_call_permission(permission)
    if isinstance(permission, GasKey):
        _require(Feature.GAS_KEYS, profile)
        _check_gas_key(permission)


def _check_call_permission(permission: FunctionCallPermission | GasKeyFunctionCall) -> None:
    if not is_account_id(permission.receiver_id):
        _refuse_actions("InvalidAccountId", account_id=permission.receiver_id)
    total = 0
    for name in permission.method_names:
        length = len(name.encode())
        _limit("AddKeyMethodNameLengthExceeded", limits.MAX_METHOD_NAME_BYTES, length=length)
        total += length + 1
    name = "AddKeyMethodNamesNumberOfBytesExceeded"
    _limit(name, limits.MAX_KEY_METHODS_BYTES, total_number_of_bytes=total)


def _check_gas_key(permission: GasKey) -> None:
    """Check a new gas key: it has no allowance, 1 to 1024 nonces and balance 0."""
    if isinstance(permission, GasKeyFunctionCall) and permission.allowance is not None:
        _refuse_actions("GasKeyFunctionCallAllowanceNotAllowed")
    count, limit = permission.num_nonces, limits.MAX_GAS_KEY_NONCES
    if not 1 <= count <= limit:
        _refuse_actions("GasKeyInvalidNumNonces", requested_nonces=count, limit=limit)
    if permission.balance:
        _refuse_actions("AddGasKeyWithNonZeroBalance", balance=str(permission.balance))


def _refuse(name: str, **payload: Any) -> Never:
    raise InvalidTransactionError(variant(name, payload or None))


def _refuse_key(name: str, **payload: Any) -> Never:
    raise InvalidTransactionError({"InvalidAccessKeyError": variant(name, payload or None)})


def _limit(name: str, limit: int, **number: int) -> None:
    """Refuse actions if a number, which the error repeats, is above its limit."""
    [value] = number.values()
    if value > limit:
        _refuse_actions(name, **number, limit=limit)


def _refuse_actions(name: str, **payload: Any) -> Never:
    raise InvalidTransactionError({"ActionsValidation": variant(name, payload or None)})
