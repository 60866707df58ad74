"""
A strict reader of the node's errors: it refuses what it does not know, as clients in Rust do.

Its models follow nearcore: `RpcError` in chain/jsonrpc-primitives/src/errors.rs, the errors of each
method in src/types there, `TxExecutionError` in core/primitives/src/errors.rs, in the versions of
which near-jsonrpc-client 1.0.102 has the models.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, convert, defstruct

Fields = dict[str, Any]


class Strict(Struct, forbid_unknown_fields=True):
    """A struct with no other members than those named."""


class RpcError(Strict):
    """The member `error` of a response."""

    code: int
    message: str
    name: Literal["REQUEST_VALIDATION_ERROR", "HANDLER_ERROR", "INTERNAL_ERROR"]
    cause: dict[str, Any]
    data: Any = UNSET


class Cause(Strict):
    """The cause of an error: its name, and its details if it has any."""

    name: str
    info: Any = UNSET


class TxExecutionError(Strict):
    """An error of a transaction or of a receipt."""

    InvalidTxError: Any = UNSET
    ActionError: Any = UNSET


class ActionErrorAt(Strict):
    """A failed action."""

    index: int | None
    kind: Any


# Variants --------------------------------------------------------------------------------


def _amount(value: Any) -> None:
    """Check an amount, which is written as digits."""
    assert isinstance(value, str), value
    assert value.isdecimal(), value


_BLOCK: Fields = {"block_height": int, "block_hash": str}
_LENGTH: Fields = {"length": int, "limit": int}
_ID: Fields = {"account_id": str}
_KEY: Fields = {**_ID, "public_key": str}
AMOUNTS = frozenset(
    "balance cost amount allowance stake locked minimum_stake required".split()
)  # members that are digits
INVALID_ACCESS_KEY: dict[str, Fields | None] = {
    "AccessKeyNotFound": _KEY,
    "ReceiverMismatch": {"tx_receiver": str, "ak_receiver": str},
    "MethodNameMismatch": {"method_name": str},
    "RequiresFullAccess": None,
    "NotEnoughAllowance": {**_KEY, "allowance": str, "cost": str},
    "DepositWithFunctionCall": None,
    "DelegateActionRequiresNonGasKey": None,
    "DelegateActionRequiresGasKey": None,
}
ACTIONS_VALIDATION: dict[str, Fields | None] = {
    "DeleteActionMustBeFinal": None,
    "TotalPrepaidGasExceeded": {"total_prepaid_gas": int, "limit": int},
    "TotalNumberOfActionsExceeded": {"total_number_of_actions": int, "limit": int},
    "AddKeyMethodNamesNumberOfBytesExceeded": {"total_number_of_bytes": int, "limit": int},
    "AddKeyMethodNameLengthExceeded": _LENGTH,
    "IntegerOverflow": None,
    "InvalidAccountId": _ID,
    "ContractSizeExceeded": {"size": int, "limit": int},
    "FunctionCallMethodNameLengthExceeded": _LENGTH,
    "FunctionCallArgumentsLengthExceeded": _LENGTH,
    "UnsuitableStakingKey": {"public_key": str},
    "FunctionCallZeroAttachedGas": None,
    "DelegateActionMustBeOnlyOne": None,
    "UnsupportedProtocolFeature": {"protocol_feature": str, "version": int},
    "RemovedProtocolFeature": {"protocol_feature": str, "version": int},
    "InvalidDeterministicStateInitReceiver": {"receiver_id": str, "derived_id": str},
    "DeterministicStateInitKeyLengthExceeded": _LENGTH,
    "DeterministicStateInitValueLengthExceeded": _LENGTH,
    "GasKeyInvalidNumNonces": {"requested_nonces": int, "limit": int},
    "AddGasKeyWithNonZeroBalance": {"balance": str},
    "GasKeyFunctionCallAllowanceNotAllowed": None,
    "TotalNumberOfDeployActionsExceeded": {"number_of_deploy_actions": int, "limit": int},
    "TotalNumberOfStateInitEntriesExceeded": {"number_of_entries": int, "limit": int},
    "FunctionCallEmptyMethodName": None,
    "WithdrawFromGasKeyNotAllowedInDelegate": None,
}
INVALID_TX: dict[str, Any] = {
    "InvalidAccessKeyError": INVALID_ACCESS_KEY,
    "InvalidSignerId": {"signer_id": str},
    "SignerDoesNotExist": {"signer_id": str},
    "InvalidNonce": {"tx_nonce": int, "ak_nonce": int},
    "NonceTooLarge": {"tx_nonce": int, "upper_bound": int},
    "InvalidReceiverId": {"receiver_id": str},
    "InvalidSignature": None,
    "NotEnoughBalance": {"signer_id": str, "balance": str, "cost": str},
    "LackBalanceForState": {"signer_id": str, "amount": str},
    "CostOverflow": None,
    "InvalidChain": None,
    "Expired": None,
    "ActionsValidation": ACTIONS_VALIDATION,
    "TransactionSizeExceeded": {"size": int, "limit": int},
    "InvalidTransactionVersion": None,
    "ShardCongested": {"shard_id": int, "congestion_level": float},
    "ShardStuck": {"shard_id": int, "missed_chunks": int},
    "InvalidNonceIndex": {"tx_nonce_index": int | None, "num_nonces": int},
    "NotEnoughGasKeyBalance": {"signer_id": str, "balance": str, "cost": str},
    "NotEnoughBalanceForDeposit": {
        "signer_id": str,
        "balance": str,
        "cost": str,
        "reason": Literal["NotEnoughBalance", "LackBalanceForState"],
    },
}
_PREPARATION = Literal[
    "Serialization",
    "Deserialization",
    "InternalMemoryDeclared",
    "GasInstrumentation",
    "StackHeightInstrumentation",
    "Instantiate",
    "Memory",
    "TooManyFunctions",
    "TooManyLocals",
    "TooManyTables",
    "TooManyTableElements",
    "FunctionBodyTooLarge",
]
FUNCTION_CALL: dict[str, Any] = {
    "CompilationError": {
        "CodeDoesNotExist": _ID,
        "PrepareError": _PREPARATION,
        "WasmerCompileError": {"msg": str},
    },
    "MethodResolveError": Literal["MethodEmptyName", "MethodNotFound", "MethodInvalidSignature"],
    "ExecutionError": str,
}
RECEIPT_VALIDATION: dict[str, Any] = {
    "InvalidPredecessorId": _ID,
    "InvalidReceiverId": _ID,
    "InvalidSignerId": _ID,
    "InvalidDataReceiverId": _ID,
    "ReturnedValueLengthExceeded": _LENGTH,
    "NumberInputDataDependenciesExceeded": {
        "number_of_input_data_dependencies": int,
        "limit": int,
    },
    "ActionsValidation": ACTIONS_VALIDATION,
    "ReceiptSizeExceeded": {"size": int, "limit": int},
    "InvalidRefundTo": _ID,
}
ACTION: dict[str, Any] = {
    "AccountAlreadyExists": _ID,
    "AccountDoesNotExist": _ID,
    "CreateAccountOnlyByRegistrar": {
        **_ID,
        "registrar_account_id": str,
        "predecessor_id": str,
    },
    "CreateAccountNotAllowed": {**_ID, "predecessor_id": str},
    "ActorNoPermission": {**_ID, "actor_id": str},
    "DeleteKeyDoesNotExist": _KEY,
    "AddKeyAlreadyExists": _KEY,
    "DeleteAccountStaking": _ID,
    "LackBalanceForState": {**_ID, "amount": str},
    "TriesToUnstake": _ID,
    "TriesToStake": {**_ID, "stake": str, "locked": str, "balance": str},
    "InsufficientStake": {**_ID, "stake": str, "minimum_stake": str},
    "FunctionCallError": FUNCTION_CALL,
    "NewReceiptValidationError": RECEIPT_VALIDATION,
    "OnlyImplicitAccountCreationAllowed": _ID,
    "DeleteAccountWithLargeState": _ID,
    "DelegateActionInvalidSignature": None,
    "DelegateActionSenderDoesNotMatchTxReceiver": {"sender_id": str, "receiver_id": str},
    "DelegateActionExpired": None,
    "DelegateActionAccessKeyError": INVALID_ACCESS_KEY,
    "DelegateActionInvalidNonce": {"delegate_nonce": int, "ak_nonce": int},
    "DelegateActionNonceTooLarge": {"delegate_nonce": int, "upper_bound": int},
    "GlobalContractDoesNotExist": {"identifier": dict[Literal["hash", "account_id"], str]},
    "GasKeyDoesNotExist": _KEY,
    "InsufficientGasKeyBalance": {**_KEY, "balance": str, "required": str},
    "GasKeyBalanceTooHigh": {**_ID, "public_key": str | None, "balance": str},
    "DelegateActionInvalidNonceIndex": {"nonce_index": int, "num_nonces": int},
}

# The causes of each method, with their details; None for a cause without any.
_BY_NAME: Fields = {}
_BLOCK_CAUSES: dict[str, Any] = {"UNKNOWN_BLOCK": _BY_NAME}
_STATE_CAUSES: dict[str, Any] = {
    "UNKNOWN_BLOCK": {"block_reference": dict[str, Any]},
    "INVALID_ACCOUNT": {"requested_account_id": str, **_BLOCK},
    "UNKNOWN_ACCOUNT": {"requested_account_id": str, **_BLOCK},
}
_CODE: dict[str, Any] = {"NO_CONTRACT_CODE": {"contract_account_id": str, **_BLOCK}}
_STATE_SIZE: dict[str, Any] = {"TOO_LARGE_CONTRACT_STATE": {"contract_account_id": str, **_BLOCK}}
_ACCESS_KEY: dict[str, Any] = {"UNKNOWN_ACCESS_KEY": {"public_key": str, **_BLOCK}}
_GAS_KEY: dict[str, Any] = {"UNKNOWN_GAS_KEY": {"public_key": str, **_BLOCK}}
_KEY_LIST: dict[str, Any] = {
    "TOO_MANY_ACCESS_KEYS": {"requested_account_id": str, "limit": int, **_BLOCK}
}
_CHUNK_CAUSES: dict[str, Any] = {
    **_BLOCK_CAUSES,
    "INVALID_SHARD_ID": {"shard_id": int},
    "UNKNOWN_CHUNK": {"chunk_hash": str},
}
_VALIDATOR_CAUSES: dict[str, Any] = {"UNKNOWN_EPOCH": None, "VALIDATOR_INFO_UNAVAILABLE": None}
_RECEIPT_CAUSES: dict[str, Any] = {"UNKNOWN_RECEIPT": {"receipt_id": str}}
_OUTCOME: dict[str, Any] = {"transaction_or_receipt_id": str}
_PROOF_CAUSES: dict[str, Any] = {
    **_BLOCK_CAUSES,
    "INCONSISTENT_STATE": {"number_or_shards": int, "execution_outcome_shard_id": int},
    "NOT_CONFIRMED": _OUTCOME,
    "UNKNOWN_TRANSACTION_OR_RECEIPT": _OUTCOME,
    "UNAVAILABLE_SHARD": {**_OUTCOME, "shard_id": int},
}
_TX_CAUSES: dict[str, Any] = {
    "INVALID_TRANSACTION": _BY_NAME,
    "UNKNOWN_TRANSACTION": {"requested_transaction_hash": str},
    "TIMEOUT_ERROR": {"cause": Literal["NOT_OBSERVED", "PENDING"], "status": Any},
}
CAUSES: dict[str, dict[str, Any]] = {
    "block": _BLOCK_CAUSES,
    "gas_price": _BLOCK_CAUSES,
    "changes": _BLOCK_CAUSES,
    "EXPERIMENTAL_changes": _BLOCK_CAUSES,
    "block_effects": _BLOCK_CAUSES,
    "EXPERIMENTAL_changes_in_block": _BLOCK_CAUSES,
    "EXPERIMENTAL_protocol_config": _BLOCK_CAUSES,
    "chunk": _CHUNK_CAUSES,
    "EXPERIMENTAL_congestion_level": _CHUNK_CAUSES,
    "validators": _VALIDATOR_CAUSES,
    "EXPERIMENTAL_validators_ordered": _VALIDATOR_CAUSES,
    "EXPERIMENTAL_receipt": _RECEIPT_CAUSES,
    "EXPERIMENTAL_receipt_to_tx": _RECEIPT_CAUSES,
    "light_client_proof": _PROOF_CAUSES,
    "EXPERIMENTAL_light_client_proof": _PROOF_CAUSES,
    "EXPERIMENTAL_light_client_block_proof": _BLOCK_CAUSES,
    "next_light_client_block": {**_BLOCK_CAUSES, "EPOCH_OUT_OF_BOUNDS": {"epoch_id": str}},
    "send_tx": _TX_CAUSES,
    "broadcast_tx_commit": _TX_CAUSES,
    "broadcast_tx_async": _TX_CAUSES,
    "tx": _TX_CAUSES,
    "tx_status": _TX_CAUSES,
    "EXPERIMENTAL_tx_status": _TX_CAUSES,
    "query": {
        **_STATE_CAUSES,
        **_CODE,
        **_STATE_SIZE,
        **_ACCESS_KEY,
        **_GAS_KEY,
        **_KEY_LIST,
        "GARBAGE_COLLECTED_BLOCK": _BLOCK,
        "NO_GLOBAL_CONTRACT_CODE": {
            "identifier": dict[Literal["hash", "account_id"], str],
            **_BLOCK,
        },
    },
    "EXPERIMENTAL_view_account": _STATE_CAUSES,
    "EXPERIMENTAL_view_code": {**_STATE_CAUSES, **_CODE},
    "EXPERIMENTAL_view_state": {**_STATE_CAUSES, **_STATE_SIZE},
    "EXPERIMENTAL_view_access_key": {**_STATE_CAUSES, **_ACCESS_KEY},
    "EXPERIMENTAL_view_access_key_list": {**_STATE_CAUSES, **_KEY_LIST},
    "EXPERIMENTAL_view_gas_key_nonces": {**_STATE_CAUSES, **_GAS_KEY},
    "EXPERIMENTAL_call_function": {
        **_STATE_CAUSES,
        **_CODE,
        "CONTRACT_EXECUTION_ERROR": {"vm_error": Any, **_BLOCK},
    },
}
_OPTIONAL = frozenset({"status"})  # members of a cause's details that may be absent


def read_error(method: str, error: Any) -> str:
    """Read the member `error` of a response strictly; return the name of its cause."""
    parsed = convert(error, RpcError)
    cause = convert(parsed.cause, Cause)
    if parsed.name == "REQUEST_VALIDATION_ERROR":
        details = {"METHOD_NOT_FOUND": "method_name", "PARSE_ERROR": "error_message"}
        read_fields(cause.info, {details[cause.name]: str})
    elif parsed.name == "INTERNAL_ERROR":
        assert cause.name == "INTERNAL_ERROR", error
        read_fields(cause.info, {"error_message": str})
    else:
        read_cause(method, cause)
        if cause.name == "INVALID_TRANSACTION":
            read_failure(convert(parsed.data, dict[Literal["TxExecutionError"], Any]))
    return cause.name


def read_cause(method: str, cause: Cause) -> None:
    """Read the cause of a handler's error."""
    fields = CAUSES[method][cause.name]
    if fields is None:
        assert cause.info is UNSET, cause
        return
    read_fields(cause.info, fields)
    if cause.name == "CONTRACT_EXECUTION_ERROR":
        read_variant(cause.info["vm_error"], FUNCTION_CALL)


def read_failure(failure: Any) -> None:
    """Read a `TxExecutionError`, by itself or as the failure of an outcome."""
    error = convert(failure.get("TxExecutionError", failure), TxExecutionError)
    if error.InvalidTxError is not UNSET:
        read_variant(error.InvalidTxError, INVALID_TX)
        return
    action = convert(error.ActionError, ActionErrorAt)
    read_variant(action.kind, ACTION)


def read_variant(value: Any, variants: dict[str, Any]) -> None:
    """Read a variant of an enum: a bare word if it has no fields, else an object of one member."""
    if isinstance(value, str):
        assert variants[value] is None, value
        return
    [(name, payload)] = value.items()
    fields = variants[name]
    assert fields is not None, f"{name} has a payload, not NoneType"
    if not isinstance(fields, dict):
        convert(payload, fields)
    elif _is_enum(fields):
        read_variant(payload, fields)
    else:
        read_fields(payload, fields)


def _is_enum(fields: dict[str, Any]) -> bool:
    """Return True for the variants of an enum, whose names are in CamelCase."""
    return next(iter(fields), "a")[0].isupper()


def read_fields(value: Any, fields: Fields) -> None:
    """Read an object of these members, and no other."""
    members: list[Any] = [
        (name, kind, None) if name in _OPTIONAL else (name, kind) for name, kind in fields.items()
    ]
    convert(value, defstruct("Payload", members, forbid_unknown_fields=True, kw_only=True))
    for name in AMOUNTS & set(fields):
        _amount(value[name])
