"""
The chain's own error variants: a table of names, each with its class, sentence and remedy.

The ledger names its reasons as nested variants, such as
`{"InvalidTxError": {"InvalidNonce": {"tx_nonce": 1, "ak_nonce": 7}}}`. `FAMILIES` holds the
names of each level, `CAUSES` those of a JSON-RPC error; `SPECIFICATION` lists both with their
classes. The functions turn what came over the wire into errors and never fail themselves.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast

from ledgerkit import errors
from ledgerkit.errors import InvalidTransactionError, LedgerError, ReceiptFailedError, cut, fill

if TYPE_CHECKING:
    from collections.abc import Mapping

_FUND = "Send the account some more of the base token, then sign and send again."
_FUND_GAS_KEY = "Fund the gas key with TransferToGasKey, then sign and send again."
_FULL_KEY = "Sign with a full-access key of the account."
_READ_KEY = "Read the access key again and sign with its nonce plus 1."
_SMALLER = "Make it smaller, or split the work over several transactions."
_WAIT = "Wait some seconds and send the same signed bytes again."
_STAKE = "Adjust the staked amount, or fund the account, and stake again."
_NEXT_KEY = "List the account's keys with keys() and use one of those."
_IMPLICIT = "Let the account that owns the parent name create it, or choose another account id."


# The transaction was refused ------------------------------------------------------------


class InvalidNonceError(InvalidTransactionError):
    """The nonce is not above the access key's: used already, or overtaken."""

    tx_nonce: int
    ak_nonce: int
    template = "Nonce {tx_nonce} is not above {ak_nonce}, the nonce of the access key"
    remedy = (
        "Ask for the transaction by its hash first: it may have run. If it is unknown, read the"
        " access key again and sign with its nonce plus 1."
    )


class NonceTooLargeError(InvalidTransactionError):
    """The nonce is above what the present height allows."""

    tx_nonce: int
    upper_bound: int
    template = "Nonce {tx_nonce} is not below the upper bound {upper_bound}"
    remedy = _READ_KEY


class ExpiredError(InvalidTransactionError):
    """The block the transaction refers to is too old, or unknown."""

    template = "The transaction has expired: its block hash is too old or unknown"
    remedy = "Read the hash of a recent final block, sign with it and send again."


class InvalidSignatureError(InvalidTransactionError):
    """The signature does not fit the key or the bytes."""

    template = "The signature does not fit the transaction and its public key"
    remedy = "Sign the exact bytes that are sent, with the secret half of the named public key."


class InvalidAccessKeyError(InvalidTransactionError):
    """The access key may not sign this transaction; a class per reason."""

    variant = "InvalidAccessKeyError"
    template = "The access key may not sign this transaction"
    remedy = _NEXT_KEY


class AccessKeyNotFoundError(InvalidAccessKeyError):
    """The account does not hold the key that signed."""

    account_id: str
    public_key: str
    template = "Account {account_id} holds no access key {public_key}"
    remedy = _NEXT_KEY


class ReceiverMismatchError(InvalidAccessKeyError):
    """A function-call key is limited to another receiver."""

    tx_receiver: str
    ak_receiver: str
    template = "The access key may only call {ak_receiver}, not {tx_receiver}"
    remedy = "Send to the receiver the key is limited to, or sign with a full-access key."


class MethodNameMismatchError(InvalidAccessKeyError):
    """A function-call key does not list the method."""

    method_name: str
    template = "The access key does not allow method {method_name}"
    remedy = "Call a method that the key lists, or sign with a full-access key."


class NotEnoughAllowanceError(InvalidAccessKeyError):
    """The allowance of a function-call key does not cover the fees."""

    account_id: str
    public_key: str
    allowance: int
    cost: int
    template = (
        "Key {public_key} of {account_id} may still spend {allowance} yoctoNEAR, and the"
        " transaction costs {cost}"
    )
    remedy = "Attach less gas, replace the key by one with a larger allowance, or use a full one."


class RequiresFullAccessError(InvalidAccessKeyError):
    """A function-call key signed something else than one function call."""

    template = "The transaction needs a full-access key: it is not a single function call"
    remedy = _FULL_KEY


class DepositWithFunctionCallError(InvalidAccessKeyError):
    """A function-call key signed a call with a deposit."""

    template = "A function-call key may not attach a deposit"
    remedy = "Attach no deposit, or sign with a full-access key."


class DelegateActionRequiresNonGasKeyError(InvalidAccessKeyError):
    """The delegate action names a gas key where an ordinary key is needed."""

    template = "This delegate action must be signed with an ordinary key, not a gas key"
    remedy = "Sign the delegate action with an access key that is not a gas key."


class DelegateActionRequiresGasKeyError(InvalidAccessKeyError):
    """The delegate action names an ordinary key where a gas key is needed."""

    template = "This delegate action must be signed with a gas key"
    remedy = "Sign the delegate action with a gas key, or use a nonce of the ordinary kind."


class NotEnoughBalanceError(InvalidTransactionError):
    """The signer cannot pay for the transaction."""

    signer_id: str
    balance: int
    cost: int
    template = "{signer_id} has {balance} yoctoNEAR, and the transaction costs {cost}"
    remedy = _FUND


class LackBalanceForStateError(InvalidTransactionError):
    """The signer would hold too little for its storage."""

    signer_id: str
    amount: int
    template = "{signer_id} would lack {amount} yoctoNEAR for its storage"
    remedy = _FUND


class NotEnoughGasKeyBalanceError(InvalidTransactionError):
    """The gas key cannot pay for the gas."""

    signer_id: str
    balance: int
    cost: int
    template = "The gas key of {signer_id} has {balance} yoctoNEAR, and the gas costs {cost}"
    remedy = _FUND_GAS_KEY


class NotEnoughBalanceForDepositError(InvalidTransactionError):
    """The gas is paid by the gas key, but the account cannot pay the deposit."""

    signer_id: str
    balance: int
    cost: int
    reason: str
    template = (
        "{signer_id} has {balance} yoctoNEAR, and the deposits cost {cost} ({reason}); the gas"
        " was charged"
    )
    remedy = _FUND


class SignerDoesNotExistError(InvalidTransactionError):
    """There is no account of the signer's name."""

    signer_id: str
    template = "The signer {signer_id} does not exist"
    remedy = "Check the signer's account id and the network, or create the account first."


class InvalidSignerIdError(InvalidTransactionError):
    """The signer's account id is not well formed."""

    signer_id: str
    template = "The signer {signer_id} is not a well-formed account id"
    remedy = "Correct signer_id: 2 to 64 characters of a-z, 0-9 and single '.', '-' or '_'."


class InvalidReceiverIdError(InvalidTransactionError):
    """The receiver's account id is not well formed."""

    receiver_id: str
    template = "The receiver {receiver_id} is not a well-formed account id"
    remedy = "Correct receiver_id: 2 to 64 characters of a-z, 0-9 and single '.', '-' or '_'."


class InvalidNonceIndexError(InvalidTransactionError):
    """The key has no nonce of that index, or wants one."""

    tx_nonce_index: int | None
    num_nonces: int
    template = "Nonce index {tx_nonce_index} does not fit a key with {num_nonces} nonces"
    remedy = "Give an index below num_nonces with a gas key, and none with an ordinary key."


class InvalidChainError(InvalidTransactionError):
    """The transaction was made for another chain."""

    template = "The transaction was made for another chain"
    remedy = "Connect to the network the transaction was signed for, or sign it again for this one."


class CostOverflowError(InvalidTransactionError):
    """The cost does not fit 128 bits."""

    template = "The cost of the transaction is too large to be counted"
    remedy = "Lower the deposits and the attached gas."


class InvalidTransactionVersionError(InvalidTransactionError):
    """The ledger does not accept transactions of that version."""

    template = "The ledger does not accept this version of transactions"
    remedy = "Sign it as a transaction of version 0."


class TransactionSizeExceededError(InvalidTransactionError):
    """The signed bytes are too many."""

    size: int
    limit: int
    template = "The transaction has {size} bytes, and {limit} are allowed"
    remedy = _SMALLER


class ShardCongestedError(InvalidTransactionError):
    """The receiver's shard is congested."""

    shard_id: int
    congestion_level: float
    template = "Shard {shard_id} is congested (level {congestion_level})"
    remedy = _WAIT
    retryable = True


class ShardStuckError(InvalidTransactionError):
    """The receiver's shard has missed chunks."""

    shard_id: int
    missed_chunks: int
    template = "Shard {shard_id} is stuck: it has missed {missed_chunks} chunks"
    remedy = _WAIT
    retryable = True


class StorageError(InvalidTransactionError):
    """The node could not read its own storage; the transaction is not at fault."""

    variant = "StorageError"
    text: str
    template = "The node could not read its own storage"
    remedy = "Send the same signed bytes again through another host."
    retryable = True
    elsewhere = True


class ActionsValidationError(InvalidTransactionError):
    """An action of the transaction breaks a rule; a class per rule."""

    variant = "ActionsValidation"
    template = "An action of the transaction breaks a rule"
    remedy = "Correct the action that the reason names, then sign and send again."


class DeleteActionMustBeFinalError(ActionsValidationError):
    """An action follows DeleteAccount."""

    template = "DeleteAccount must be the last action"
    remedy = "Move DeleteAccount to the end of the actions."


class IntegerOverflowError(ActionsValidationError):
    """The attached gas does not fit 64 bits."""

    template = "The gas of the actions adds up to more than can be counted"
    remedy = "Attach less gas to the calls."


class FunctionCallZeroAttachedGasError(ActionsValidationError):
    """A call has no gas."""

    template = "A function call has no gas attached"
    remedy = "Attach gas to every call, for example 30 Tgas."


class FunctionCallEmptyMethodNameError(ActionsValidationError):
    """A call names no method."""

    template = "A function call has an empty method name"
    remedy = "Name the method to call."


class DelegateActionMustBeOnlyOneError(ActionsValidationError):
    """More than one delegate action."""

    template = "A transaction may hold one delegate action only"
    remedy = "Send each delegate action in a transaction of its own."


class GasKeyFunctionCallAllowanceNotAllowedError(ActionsValidationError):
    """A gas key for function calls has an allowance."""

    template = "A gas key limited to function calls may have no allowance"
    remedy = "Add the gas key without an allowance: its balance is the limit."


class TotalPrepaidGasExceededError(ActionsValidationError):
    """The attached gas is above the limit."""

    total_prepaid_gas: int
    limit: int
    template = "The actions attach {total_prepaid_gas} gas, and {limit} is allowed"
    remedy = "Attach less gas, or split the calls over several transactions."


class TotalNumberOfActionsExceededError(ActionsValidationError):
    """Too many actions."""

    total_number_of_actions: int
    limit: int
    template = "The transaction has {total_number_of_actions} actions, and {limit} are allowed"
    remedy = "Split the actions over several transactions."


class TotalNumberOfDeployActionsExceededError(ActionsValidationError):
    """Too many deployments."""

    number_of_deploy_actions: int
    limit: int
    template = "The transaction deploys {number_of_deploy_actions} times, and {limit} is allowed"
    remedy = "Deploy in several transactions."


class AddKeyMethodNamesNumberOfBytesExceededError(ActionsValidationError):
    """The method names of a key are too long together."""

    total_number_of_bytes: int
    limit: int
    template = "The key's method names take {total_number_of_bytes} bytes, {limit} are allowed"
    remedy = "List fewer methods, or add several keys."


class AddKeyMethodNameLengthExceededError(ActionsValidationError):
    """A method name of a key is too long."""

    length: int
    limit: int
    template = "A method name of the key has {length} bytes, and {limit} are allowed"
    remedy = "Check the method names of the key."


class FunctionCallMethodNameLengthExceededError(ActionsValidationError):
    """The name of the called method is too long."""

    length: int
    limit: int
    template = "The method name has {length} bytes, and {limit} are allowed"
    remedy = "Check the method name of the call."


class FunctionCallArgumentsLengthExceededError(ActionsValidationError):
    """The arguments of a call are too long."""

    length: int
    limit: int
    template = "The arguments of the call have {length} bytes, and {limit} are allowed"
    remedy = "Pass less in one call."


class DeterministicStateInitKeyLengthExceededError(ActionsValidationError):
    """A key of the initial state is too long."""

    length: int
    limit: int
    template = "A key of the initial state has {length} bytes, and {limit} are allowed"
    remedy = "Shorten the keys of the initial state."


class DeterministicStateInitValueLengthExceededError(ActionsValidationError):
    """A value of the initial state is too long."""

    length: int
    limit: int
    template = "A value of the initial state has {length} bytes, and {limit} are allowed"
    remedy = "Shorten the values of the initial state."


class ContractSizeExceededError(ActionsValidationError):
    """The contract's code is too large."""

    size: int
    limit: int
    template = "The contract has {size} bytes, and {limit} are allowed"
    remedy = "Build the contract with size optimisation, or split it."


class InvalidAccountIdError(ActionsValidationError):
    """An account id inside an action is not well formed."""

    account_id: str
    template = "An action names {account_id}, which is not a well-formed account id"
    remedy = "Correct it: 2 to 64 characters of a-z, 0-9 and single '.', '-' or '_'."


class UnsuitableStakingKeyError(ActionsValidationError):
    """The key cannot be used for staking."""

    public_key: str
    template = "Key {public_key} cannot be used for staking"
    remedy = "Stake with an ed25519 key."


class UnsupportedProtocolFeatureError(ActionsValidationError):
    """The network does not have that feature yet."""

    protocol_feature: str
    version: int
    template = "The network's protocol version {version} lacks {protocol_feature}"
    remedy = "Leave that action out until the network has upgraded, or use another network."


class InvalidDeterministicStateInitReceiverError(ActionsValidationError):
    """The receiver is not the account derived from the initial state."""

    receiver_id: str
    derived_id: str
    template = "The receiver {receiver_id} is not {derived_id}, derived from the initial state"
    remedy = "Send it to the derived account id."


class GasKeyInvalidNumNoncesError(ActionsValidationError):
    """A gas key wants no nonces, or too many."""

    requested_nonces: int
    limit: int
    template = "The gas key wants {requested_nonces} nonces; 1 to {limit} are allowed"
    remedy = "Choose a number of nonces within the limit."


class AddGasKeyWithNonZeroBalanceError(ActionsValidationError):
    """A gas key is added with a balance."""

    balance: int
    template = "The gas key is added with a balance of {balance} yoctoNEAR, and must have 0"
    remedy = "Add the gas key with balance 0 and fund it with TransferToGasKey."


# A receipt failed -----------------------------------------------------------------------


class AccountAlreadyExistsError(ReceiptFailedError):
    """The account to be created exists."""

    account_id: str
    template = "Account {account_id} exists already"
    remedy = "Choose another account id."


class AccountDoesNotExistError(ReceiptFailedError):
    """The receiver does not exist."""

    account_id: str
    template = "Account {account_id} does not exist"
    remedy = "Check the receiver's account id and the network, or create the account first."


class TriesToUnstakeError(ReceiptFailedError):
    """The account unstakes without a stake."""

    account_id: str
    template = "{account_id} unstakes but has nothing staked"
    remedy = "Check the validator's stake; delegated tokens are unstaked at their pool."


class DeleteAccountStakingError(ReceiptFailedError):
    """The account to be deleted has a stake."""

    account_id: str
    template = "{account_id} cannot be deleted while it has a stake"
    remedy = "Unstake, wait until the stake is returned, then delete the account."


class DeleteAccountWithLargeStateError(ReceiptFailedError):
    """The account to be deleted holds too much state."""

    account_id: str
    template = "{account_id} cannot be deleted: its state is too large"
    remedy = "Remove the contract's state first, then delete the account."


class OnlyImplicitAccountCreationAllowedError(ReceiptFailedError):
    """CreateAccount cannot make an implicit account."""

    account_id: str
    template = "{account_id} is an implicit account id, which CreateAccount cannot make"
    remedy = "Send the account a transfer: that creates it."


class CreateAccountOnlyByRegistrarError(ReceiptFailedError):
    """Short top-level names belong to the registrar."""

    account_id: str
    registrar_account_id: str
    predecessor_id: str
    template = "{predecessor_id} may not create {account_id}; only {registrar_account_id} may"
    remedy = "Choose a name below an existing account, such as name.near."


class CreateAccountNotAllowedError(ReceiptFailedError):
    """The creator does not own the parent name."""

    account_id: str
    predecessor_id: str
    template = "{predecessor_id} may not create {account_id}"
    remedy = _IMPLICIT


class ActorNoPermissionError(ReceiptFailedError):
    """Only the account itself may do that."""

    account_id: str
    actor_id: str
    template = "{actor_id} may not do this to {account_id}"
    remedy = "Sign the transaction as the account that it changes."


class AddKeyAlreadyExistsError(ReceiptFailedError):
    """The key to be added exists."""

    account_id: str
    public_key: str
    template = "{account_id} holds key {public_key} already"
    remedy = "Keep the key as it is, or delete it before adding it with other permissions."


class DeleteKeyDoesNotExistError(ReceiptFailedError):
    """The key to be deleted does not exist."""

    account_id: str
    public_key: str
    template = "{account_id} holds no key {public_key} to delete"
    remedy = _NEXT_KEY


class GasKeyDoesNotExistError(ReceiptFailedError):
    """There is no such gas key."""

    account_id: str
    public_key: str
    template = "{account_id} holds no gas key {public_key}"
    remedy = "List the account's keys with keys(), or add the gas key first."


class ReceiptLackBalanceForStateError(ReceiptFailedError):
    """The account would hold too little for its storage."""

    variant = "LackBalanceForState"
    account_id: str
    amount: int
    template = "{account_id} lacks {amount} yoctoNEAR for its storage"
    remedy = "Send the account some more of the base token, then do it again."


class TriesToStakeError(ReceiptFailedError):
    """The account stakes more than it has."""

    account_id: str
    stake: int
    locked: int
    balance: int
    template = "{account_id} stakes {stake} yoctoNEAR with {locked} locked and {balance} free"
    remedy = _STAKE


class InsufficientStakeError(ReceiptFailedError):
    """The stake is below the minimum."""

    account_id: str
    stake: int
    minimum_stake: int
    template = "{account_id} stakes {stake} yoctoNEAR, and the minimum is {minimum_stake}"
    remedy = _STAKE


class DelegateActionExpiredError(ReceiptFailedError):
    """The delegate action came after its last block."""

    template = "The delegate action has expired"
    remedy = "Let the user sign it again with a later max_block_height, and relay it soon."


class DelegateActionInvalidSignatureError(ReceiptFailedError):
    """The delegate action's signature is wrong."""

    template = "The signature of the delegate action is not valid"
    remedy = "Let the user sign the delegate action itself, with its prefix, by the named key."


class DelegateActionSenderDoesNotMatchTxReceiverError(ReceiptFailedError):
    """The relaying transaction went to another account."""

    sender_id: str
    receiver_id: str
    template = "The delegate action of {sender_id} was sent to {receiver_id}"
    remedy = "Send the relaying transaction to the sender of the delegate action."


class DelegateActionAccessKeyError(ReceiptFailedError):
    """The delegate action's key may not sign it; `variant` tells the reason."""

    variant = "DelegateActionAccessKeyError"
    account_id: str | None
    public_key: str | None
    tx_receiver: str | None
    ak_receiver: str | None
    method_name: str | None
    allowance: int | None
    cost: int | None
    template = "The key of the delegate action may not sign it"
    remedy = "Let the user sign with a key that allows these actions."


class DelegateActionInvalidNonceError(ReceiptFailedError):
    """The delegate action's nonce is not above the key's."""

    delegate_nonce: int
    ak_nonce: int
    template = "Nonce {delegate_nonce} of the delegate action is not above {ak_nonce}, the key's"
    remedy = "Let the user read the key and sign again with its nonce plus 1."


class DelegateActionNonceTooLargeError(ReceiptFailedError):
    """The delegate action's nonce is above what the height allows."""

    delegate_nonce: int
    upper_bound: int
    template = "Nonce {delegate_nonce} of the delegate action is not below {upper_bound}"
    remedy = "Let the user read the key and sign again with its nonce plus 1."


class DelegateActionInvalidNonceIndexError(ReceiptFailedError):
    """The delegate action's key has no nonce of that index."""

    nonce_index: int | None
    num_nonces: int
    template = "Nonce index {nonce_index} does not fit a key with {num_nonces} nonces"
    remedy = "Let the user give an index below num_nonces with a gas key, none otherwise."


class GlobalContractDoesNotExistError(ReceiptFailedError):
    """There is no such global contract."""

    identifier: object
    template = "There is no global contract {identifier}"
    remedy = "Publish the global contract first, or correct its hash or account id."


class InsufficientGasKeyBalanceError(ReceiptFailedError):
    """The gas key holds less than is withdrawn."""

    account_id: str
    public_key: str
    balance: int
    required: int
    template = (
        "Gas key {public_key} of {account_id} has {balance} yoctoNEAR, and {required} is needed"
    )
    remedy = "Withdraw less, or fund the gas key first."


class GasKeyBalanceTooHighError(ReceiptFailedError):
    """The gas key holds too much to be deleted."""

    account_id: str
    public_key: str | None
    balance: int
    template = (
        "Gas keys of {account_id} ({public_key}) hold {balance} yoctoNEAR, too much to be burnt"
    )
    remedy = "Withdraw from the gas key with WithdrawFromGasKey first."


class TotalPromiseInputSizeExceededError(ReceiptFailedError):
    """The results awaited by the receipt are too large."""

    size: int
    limit: int
    template = "The results that the receipt waited for have {size} bytes, and {limit} are allowed"
    remedy = "Let the called contracts return less, or wait for fewer of them at once."


class ReceiptStorageProofSizeExceededError(ReceiptFailedError):
    """The receipt touched too much state."""

    limit: int
    template = "The receipt read more state than the {limit} bytes that are allowed"
    remedy = "Do less in one call: read fewer or smaller values."


class FunctionCallError(ReceiptFailedError):
    """The contract call failed; a class per stage."""

    variant = "FunctionCallError"
    template = "The contract call failed"
    remedy = "Check the method and its arguments against the contract's documentation."


class ExecutionError(FunctionCallError):
    """The contract ran and failed; `text` is its own, `panic_msg` that of a panic."""

    variant = "ExecutionError"
    text: str
    panic_msg: str | None
    template = "The contract call failed: {text}"
    remedy = "Read the contract's message; the method or its arguments must change."


class MethodResolveError(FunctionCallError):
    """The contract has no method that can be called so."""

    variant = "MethodResolveError"
    template = "The contract has no such method"
    remedy = "Check the method's name and that the contract is the right one."


class CompilationError(FunctionCallError):
    """There is no code, or it cannot be compiled."""

    variant = "CompilationError"
    account_id: str | None
    msg: str | None
    template = "The contract's code could not be prepared"
    remedy = "Check the contract's account id; if it is yours, deploy a build made for this ledger."


class LinkError(FunctionCallError):
    """The contract wants host functions that do not exist (in old data)."""

    variant = "LinkError"
    msg: str
    template = "The contract wants a host function that does not exist: {msg}"
    remedy = "Build the contract with a version of its toolkit made for this ledger."


class WasmTrapError(FunctionCallError):
    """The contract's code broke a rule of WebAssembly (in old data)."""

    template = "The contract's code broke a rule of WebAssembly"
    remedy = "This is a fault of the contract: report it to its authors with the arguments used."


class HostError(FunctionCallError):
    """The ledger stopped the contract (in old data)."""

    variant = "HostError"
    panic_msg: str | None
    method_name: str | None
    template = "The ledger stopped the contract"
    remedy = "Check gas, deposit and arguments; anything else is for the contract's authors."


class WasmUnknownError(FunctionCallError):
    """The contract failed for an untold reason (in old data)."""

    variant = "WasmUnknownError"
    template = "The contract failed for a reason that the ledger did not tell"
    remedy = "Report it to the contract's authors with the arguments used."


class EvmError(FunctionCallError):
    """The former EVM contract failed (in old data)."""

    variant = "_EVMError"
    template = "The former EVM of the ledger failed"
    remedy = "This kind of contract is no longer supported; nothing can be done."


class NewReceiptValidationError(ReceiptFailedError):
    """The contract made a receipt that breaks a rule; `variant` names the rule."""

    variant = "NewReceiptValidationError"
    account_id: str | None
    length: int | None
    size: int | None
    number_of_input_data_dependencies: int | None
    limit: int | None
    template = "The contract made a receipt that breaks a rule"
    remedy = "Check what the arguments make the contract send, and to which account ids."


# The table of names ---------------------------------------------------------------------

WASM_TRAPS: Final[dict[str, str]] = {
    "Unreachable": "The contract's code reached a place it marks as unreachable",
    "IncorrectCallIndirectSignature": "The contract called a function with the wrong signature",
    "MemoryOutOfBounds": "The contract left its memory",
    "CallIndirectOOB": "The contract called a function outside its table",
    "IllegalArithmetic": "The contract divided by zero or overflowed",
    "MisalignedAtomicAccess": "The contract used a misaligned atomic address",
    "IndirectCallToNull": "The contract called a function that is not there",
    "StackOverflow": "The contract's call stack overflowed",
    "GenericTrap": "The contract's code broke a rule of WebAssembly",
}

PREPARE_ERRORS: Final[dict[str, str]] = {
    "Serialization": "The prepared contract could not be written",
    "Deserialization": "The contract's code is not valid WebAssembly",
    "InternalMemoryDeclared": "The contract declares a memory of its own",
    "GasInstrumentation": "The gas counter could not be added to the contract",
    "StackHeightInstrumentation": "The stack limit could not be added to the contract",
    "Instantiate": "The contract could not be instantiated",
    "Memory": "The memory of the contract could not be made",
    "TooManyFunctions": "The contract has too many functions",
    "TooManyLocals": "The contract has too many local variables",
    "TooManyTables": "The contract has too many tables",
    "TooManyTableElements": "The tables of the contract have too many elements",
    "FunctionBodyTooLarge": "A function of the contract is too large",
    "InstrumentedCodeTooLarge": "The contract with its gas counter is too large",
    "TooManyBlocksPerFunction": "A function of the contract has too many blocks",
    "TooManyBlocksPerContract": "The contract has too many blocks",
    "TooManyTypes": "The contract has too many types",
    "TooManyParamsPerFunction": "A function of the contract has too many parameters",
    "TooManyParamsPerContract": "The functions of the contract have too many parameters",
    "OperandStackTooLarge": "The contract needs too large an operand stack",
    "TooManyGlobals": "The contract has too many global variables",
}

HOST_ERRORS: Final[dict[str, str]] = {
    "BadUTF16": "The contract passed text that is not UTF-16",
    "BadUTF8": "The contract passed text that is not UTF-8",
    "GasExceeded": "Exceeded the prepaid gas",
    "GasLimitExceeded": "Exceeded the maximum amount of gas allowed to burn per contract",
    "BalanceExceeded": "Exceeded the account balance",
    "EmptyMethodName": "The contract called a method with an empty name",
    "IntegerOverflow": "A number that the contract passed is too large",
    "CannotAppendActionToJointPromise": "The contract added an action to a joint promise",
    "CannotReturnJointPromise": "The contract returned a joint promise",
    "MemoryAccessViolation": "The contract named memory it does not have",
    "InvalidAccountId": "The contract used an account id that is not well formed",
    "InvalidMethodName": "The contract used a method name that is not valid",
    "InvalidPublicKey": "The contract used a public key that is not valid",
    "GuestPanic": "Smart contract panicked: {panic_msg}",
    "ProhibitedInView": "{method_name} is not allowed in view calls",
    "Deprecated": "The contract called {method_name}, which no longer exists",
    "InvalidPromiseIndex": "The contract named promise {promise_idx}, which does not exist",
    "InvalidPromiseResultIndex": "The contract read result {result_idx}, which does not exist",
    "InvalidRegisterId": "The contract used register {register_id}, which does not exist",
    "IteratorWasInvalidated": "The contract used iterator {iterator_index} after a change",
    "InvalidIteratorIndex": "The contract used iterator {iterator_index}, which does not exist",
    "InvalidReceiptIndex": "The contract named receipt {receipt_index}, which does not exist",
    "NumberOfLogsExceeded": "The contract wrote more than the {limit} logs that are allowed",
    "KeyLengthExceeded": "A storage key has {length} bytes, and {limit} are allowed",
    "ValueLengthExceeded": "A stored value has {length} bytes, and {limit} are allowed",
    "TotalLogLengthExceeded": "The logs have {length} bytes, and {limit} are allowed",
    "ReturnedValueLengthExceeded": "The returned value has {length} bytes, {limit} are allowed",
    "NumberPromisesExceeded": (
        "The contract made {number_of_promises} promises, and {limit} are allowed"
    ),
    "NumberInputDataDependenciesExceeded": (
        "A receipt waits for {number_of_input_data_dependencies} results, {limit} are allowed"
    ),
    "ContractSizeExceeded": "The deployed contract has {size} bytes, and {limit} are allowed",
    "ECRecoverError": "The contract could not recover a key: {msg}",
    "AltBn128InvalidInput": "The contract passed values that are not of alt_bn128: {msg}",
    "Ed25519VerifyInvalidInput": "The contract checked a malformed ed25519 signature: {msg}",
    "P256VerifyInvalidInput": "The contract checked a malformed P-256 signature: {msg}",
    "MlDsaVerifyInvalidInput": "The contract checked a malformed ML-DSA signature: {msg}",
}

_METHOD_RESOLVE = {
    "MethodNotFound": "The contract has no such method",
    "MethodEmptyName": "The call names no method",
    "MethodInvalidSignature": "The contract's function of that name is no method",
}

_COMPILATION = {
    "CodeDoesNotExist": "Account {account_id} holds no contract",
    "PrepareError": "The contract's code could not be prepared",
    "WasmerCompileError": "The contract's code could not be compiled: {msg}",
}

_STORAGE = {
    "StorageInternalError": "The node's storage failed",
    "UnexpectedTrieValue": "The node found an unexpected value in its storage",
    "MissingTrieValue": "The node lacks a value in its storage ({context}, {hash})",
    "StorageInconsistentState": "The node's storage is inconsistent: {text}",
    "FlatStorageBlockNotSupported": "The node's flat storage lacks that block: {text}",
    "MemTrieLoadingError": "The node could not load its storage into memory: {text}",
}

_NEW_RECEIPT = {
    "InvalidPredecessorId": "The predecessor {account_id} of a new receipt is not well formed",
    "InvalidReceiverId": "The receiver {account_id} of a new receipt is not well formed",
    "InvalidSignerId": "The signer {account_id} of a new receipt is not well formed",
    "InvalidDataReceiverId": "The data receiver {account_id} of a new receipt is not well formed",
    "InvalidRefundTo": "The refund account {account_id} of a new receipt is not well formed",
    "ReturnedValueLengthExceeded": "The returned value has {length} bytes, {limit} are allowed",
    "NumberInputDataDependenciesExceeded": HOST_ERRORS["NumberInputDataDependenciesExceeded"],
    "ReceiptSizeExceeded": "A new receipt has {size} bytes, and {limit} are allowed",
    "ActionsValidation": "An action of a new receipt breaks a rule",
}


# A class, or a sentence of the class above it.
Row: TypeAlias = type[LedgerError] | str


def _rows(branch: type[InvalidTransactionError | ReceiptFailedError]) -> dict[str, Row]:
    """Register the classes right below a branch by the ledger's names of them."""
    rows: dict[str, Row] = {}
    for error in branch.__subclasses__():
        # Where the ledger's own name ends in "Error", or is not unique, the class says it.
        error.variant = vars(error).get("variant") or error.__name__.removesuffix("Error")
        rows[error.variant] = error
    return rows


FAMILIES: Final[dict[str, Mapping[str, Row]]] = {
    "InvalidTxError": _rows(InvalidTransactionError),
    "InvalidAccessKeyError": _rows(InvalidAccessKeyError),
    "ActionsValidation": _rows(ActionsValidationError),
    "StorageError": _STORAGE,
    "ActionErrorKind": _rows(ReceiptFailedError),
    "FunctionCallError": _rows(FunctionCallError),
    "MethodResolveError": _METHOD_RESOLVE,
    "CompilationError": _COMPILATION,
    "PrepareError": PREPARE_ERRORS,
    "WasmTrap": WASM_TRAPS,
    "HostError": HOST_ERRORS,
    "NewReceiptValidationError": _NEW_RECEIPT,
}

# A variant that holds another one, and the family of that other one.
_NESTED = {name: name for name in FAMILIES} | {
    "DelegateActionAccessKeyError": "InvalidAccessKeyError"
}

# The class of a family whose rows are sentences only.
_OWNERS: dict[str, type[LedgerError]] = {
    "StorageError": StorageError,
    "MethodResolveError": MethodResolveError,
    "CompilationError": CompilationError,
    "PrepareError": CompilationError,
    "WasmTrap": WasmTrapError,
    "HostError": HostError,
    "NewReceiptValidationError": NewReceiptValidationError,
}


# Reading variants -----------------------------------------------------------------------


def variant(value: object) -> tuple[str, Any]:
    """
    Split the JSON of one variant into its name and its payload.

    Parameters
    ----------
    value
        `"Expired"`, `{"Expired": null}` or `{"InvalidNonce": {…}}`.

    Returns
    -------
    name
        The variant's name; "Unknown" for anything of another shape.
    payload
        What the variant holds, None for nothing; the value itself if it is unknown.
    """
    if isinstance(value, str):
        return value, None
    if isinstance(value, dict) and len(value) == 1:
        name, payload = next(iter(value.items()))
        if isinstance(name, str):
            return name, payload
    return "Unknown", value


_Branch = TypeVar("_Branch", bound=LedgerError)


class _Leaf(NamedTuple, Generic[_Branch]):
    """The innermost variant of a reason."""

    path: str
    name: str
    error: type[_Branch]  # what to raise
    row: type[LedgerError]  # whose remedy fits
    template: str
    payload: Any


_UNKNOWN = "The ledger gives a reason that is not known here: {variant}"


def _descend(branch: type[_Branch], family: str, value: object) -> _Leaf[_Branch]:
    """Follow nested variants as far as the tables know them."""
    error, row, path = branch, cast("type[LedgerError]", branch), ""
    while True:
        name, payload = variant(value)
        path = f"{path}.{name}" if path else name
        known = FAMILIES[family].get(name)
        template = known if isinstance(known, str) else _UNKNOWN
        if isinstance(known, type):
            # A reason shared by both branches keeps the branch it was met in.
            error = known if issubclass(known, branch) else error
            row, template = known, known.template
        if known is None or payload is None or name not in _NESTED:
            return _Leaf(path, name, error, row, template, payload)
        family, value = _NESTED[name], payload


def _values(payload: object) -> dict[str, Any]:
    """Name the values of a payload; a lone one is called text."""
    if isinstance(payload, dict):
        return payload
    return {} if payload is None else {"text": payload}


_MOST_DIGITS = 80  # far above 128 bits, far below what int() refuses


def _typed(declared: str, value: object) -> object:
    """Give a value its declared type, None if it has another one."""
    if "int" in declared:
        if isinstance(value, str) and len(value) <= _MOST_DIGITS and re.fullmatch("[0-9]+", value):
            return int(value)
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if "float" in declared:
        return value if isinstance(value, float) else _typed("int", value)
    return value if isinstance(value, str) or "object" in declared else None


def _attributes(error: type[LedgerError], values: dict[str, Any]) -> dict[str, Any]:
    """Pick the declared attributes from the values of the wire."""
    return {
        name: _typed(declared, values[name])
        for name, declared in error.fields.items()
        if name in values
    }


def _sentence(leaf: _Leaf[Any]) -> str:
    """Put the values of a reason into its sentence; an unknown reason shows its own."""
    values = _values(leaf.payload)
    if leaf.template is _UNKNOWN:
        shown = f" ({cut(leaf.payload)})" if values else ""
        return fill(leaf.template, {"variant": leaf.name}) + shown
    return fill(leaf.template, values)


def _remedy(leaf: _Leaf[Any]) -> str:
    """Advise on a reason, on the contract's text where there is one."""
    if leaf.row is ExecutionError:
        text = str(leaf.payload)
        return next((advice for sign, advice in _ADVICE if sign in text[:200]), leaf.row.remedy)
    return leaf.row.remedy


_ADVICE = (
    # A panic first: its message is the contract's and may quote any of the others.
    ("Smart contract panicked", ExecutionError.remedy),
    ("Exceeded the prepaid gas", "Attach more gas to the call, for example 100 Tgas."),
    ("Exceeded the maximum amount of gas", "Split the work over several smaller calls."),
    ("Exceeded the account balance", "Fund the contract's account, or let it send less."),
    ("WebAssembly trap", WasmTrapError.remedy),
    ("is not allowed in view calls", errors.ProhibitedInViewError.remedy),
)
_PANIC = "Smart contract panicked: "


def _own_attributes(leaf: _Leaf[Any]) -> dict[str, Any]:
    """Collect the attributes of the error of a reason."""
    found = _attributes(leaf.error, _values(leaf.payload))
    if leaf.error is ExecutionError and isinstance(leaf.payload, str):
        found["panic_msg"] = (
            leaf.payload.removeprefix(_PANIC) if leaf.payload.startswith(_PANIC) else None
        )
    return found | {"variant": leaf.name, "payload": leaf.payload}


# Wrappers around the variant, of the wire and of the specification.
_WRAPPERS = ("TxExecutionError", "InvalidTxError", "InvalidTransaction")


def invalid_transaction(value: object) -> InvalidTransactionError:
    """
    Tell why the ledger refused a transaction.

    Parameters
    ----------
    value
        The variant, as a bare string or an object of one key.

    Returns
    -------
    error
        Of the variant's class, not raised. An unknown variant gives the nearest class above,
        with `variant` and `payload` kept.
    """
    name, payload = variant(value)
    while name in _WRAPPERS and payload is not None:
        value = payload
        name, payload = variant(value)
    leaf = _descend(InvalidTransactionError, "InvalidTxError", value)
    return leaf.error(_sentence(leaf), remedy=_remedy(leaf), **_own_attributes(leaf))


def receipt_failure(
    value: object, *, receipt_id: str | None = None
) -> ReceiptFailedError | InvalidTransactionError:
    """
    Tell why a receipt, or the transaction itself, failed.

    Parameters
    ----------
    value
        The `Failure` of an outcome: `{"ActionError": {…}}` or `{"InvalidTxError": …}`.
    receipt_id
        The receipt it belongs to.

    Returns
    -------
    error
        Of the variant's class, not raised. An unknown variant gives the nearest class above.
    """
    if variant(value)[0] == "InvalidTxError":
        return invalid_transaction(value)
    leaf, index = _failed_leaf(value), _index(value)
    details = _own_attributes(leaf) | {"receipt_id": receipt_id, "kind": leaf.path, "index": index}
    return leaf.error(_sentence(leaf), remedy=_remedy(leaf), **details)


def _failed_leaf(value: object) -> _Leaf[ReceiptFailedError]:
    """Find the reason of a receipt's failure."""
    name, payload = variant(value)
    if name == "ActionError" and isinstance(payload, dict):
        return _descend(ReceiptFailedError, "ActionErrorKind", payload.get("kind"))
    return _Leaf(name, name, ReceiptFailedError, ReceiptFailedError, _UNKNOWN, payload)


def _index(value: object) -> object:
    """Read the position of the failing action; None where the whole receipt failed."""
    _, payload = variant(value)
    return _typed("int", payload.get("index")) if isinstance(payload, dict) else None


def failure_text(value: object) -> tuple[str, str]:
    """
    Describe a failure for two columns of a table.

    Parameters
    ----------
    value
        The `Failure` of an outcome: `{"ActionError": {…}}` or `{"InvalidTxError": …}`.

    Returns
    -------
    error_kind
        The path of the ledger's names, such as "FunctionCallError.ExecutionError".
    error_message
        One sentence; where the contract wrote a text, that text unchanged.
    """
    try:
        text = value["ActionError"]["kind"]["FunctionCallError"]["ExecutionError"]  # type: ignore[index]  # caught below
    except (KeyError, TypeError, IndexError):
        text = None
    if isinstance(text, str):
        return "FunctionCallError.ExecutionError", text
    name, payload = variant(value)
    if name == "InvalidTxError":
        refusal = _descend(InvalidTransactionError, name, payload)
        return f"{name}.{refusal.path}", _message(refusal)
    failure = _failed_leaf(value)
    return failure.path, _message(failure)


def _message(leaf: _Leaf[Any]) -> str:
    """Give the contract's own words whole, anything else as a sentence."""
    panic = _values(leaf.payload).get("panic_msg")
    if leaf.name == "GuestPanic" and isinstance(panic, str):
        return _PANIC + panic
    return f"{_sentence(leaf).removesuffix('.')}."


# The texts of query ---------------------------------------------------------------------

_VM = r"(?:wasm execution failed with error: )?(?:FunctionCallError\()?"
_STRING = r'[^"\\]*(?:\\.[^"\\]*)*'  # up to the closing quote of a debug dump

# Each is tried from the start of the text: a panic may quote any of the others.
_QUERY_TEXTS: tuple[tuple[str, type[LedgerError]], ...] = (
    (
        rf'{_VM}HostError\(GuestPanic \{{ panic_msg: "(?P<dump>{_STRING})',
        errors.ContractPanicError,
    ),
    (rf'{_VM}ExecutionError\("{_PANIC}(?P<dump>{_STRING})', errors.ContractPanicError),
    (rf"{_VM}{_PANIC}(?P<panic_msg>.*)", errors.ContractPanicError),
    (
        rf'{_VM}HostError\(ProhibitedInView \{{ method_name: "(?P<method_name>{_STRING})',
        errors.ProhibitedInViewError,
    ),
    (
        rf'{_VM}(?:ExecutionError\(")?(?P<method_name>\w+) is not allowed in view calls',
        errors.ProhibitedInViewError,
    ),
    (rf"{_VM}MethodResolveError\((?P<reason>\w+)", errors.ContractMethodNotFoundError),
    (
        rf'{_VM}CompilationError\(CodeDoesNotExist \{{ account_id: [^"]*"(?P<account_id>{_STRING})',
        errors.NoContractCodeError,
    ),
    (r"access key (?P<public_key>\S+) does not exist while viewing", errors.UnknownAccessKeyError),
    (r"[Aa]ccount (?P<account_id>\S+) does not exist while viewing", errors.UnknownAccountError),
)

_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", '"': '"', "'": "'", "\\": "\\"}


def _character(escape: re.Match[str]) -> str:
    """Give the character of one escape of a debug dump; an odd one stays as it is."""
    digits, letter = escape.groups()
    if digits is None:
        return _ESCAPED.get(letter, escape[0])
    point = int(digits, 16)
    # Half a surrogate pair is no character and could never be encoded again.
    valid = point < 0xD800 or 0xDFFF < point <= 0x10FFFF  # noqa: PLR2004 - the surrogates, and the last code point
    return chr(point) if valid else escape[0]


def _known_text(text: str, **where: Any) -> LedgerError | None:
    """Recognise one of the texts by which a node tells why a read failed."""
    for pattern, error in _QUERY_TEXTS:
        if match := re.match(pattern, text, re.DOTALL):
            found: dict[str, Any] = match.groupdict()
            if "dump" in found:
                found["panic_msg"] = _ESCAPE.sub(_character, found.pop("dump"))
            if issubclass(error, errors.ContractError):
                found["vm_error"] = text
            return error(**(where | found))
    return None


def from_query_text(
    text: str, *, asked: str, block_height: int | None = None, block_hash: str | None = None
) -> LedgerError:
    """
    Tell what the error text inside a successful answer of `query` means.

    Parameters
    ----------
    text
        The text, a debug dump of the node's own types.
    asked
        What was asked, as a short phrase.
    block_height
        The block at which it was asked.
    block_hash
        The hash of that block.

    Returns
    -------
    error
        Not raised. A text of another form gives `ContractError` with `vm_error`.
    """
    where: dict[str, Any] = {"block_height": block_height, "block_hash": block_hash, "asked": asked}
    return _known_text(text, **where) or errors.ContractError(vm_error=text, **where)


# JSON-RPC errors ------------------------------------------------------------------------


class Cause(NamedTuple):
    """One `cause.name`: its class, and what differs from that class."""

    error: type[LedgerError]
    sentence: str = ""
    elsewhere: bool | None = None


_NOT_READY = errors.NodeNotReadyError
_LIMIT = errors.LookupLimitError

CAUSES: Final[dict[str, Cause]] = {
    "METHOD_NOT_FOUND": Cause(errors.RpcMethodNotFoundError),
    "PARSE_ERROR": Cause(errors.RequestParseError),
    "INTERNAL_ERROR": Cause(errors.NodeError),
    "NO_SYNCED_BLOCKS": Cause(_NOT_READY, "The node is starting and has no blocks yet"),
    "NOT_SYNCED_YET": Cause(_NOT_READY, "The node is starting and not synchronised yet"),
    "NODE_IS_SYNCING": Cause(_NOT_READY, "The node is behind and synchronising", elsewhere=True),
    "NO_NEW_BLOCKS": Cause(
        _NOT_READY, "The node has seen no new block for {elapsed}", elsewhere=True
    ),
    "EPOCH_OUT_OF_BOUNDS": Cause(
        _NOT_READY, "The node does not know epoch {epoch_id}", elsewhere=True
    ),
    "SHARD_NOT_APPLIED": Cause(_NOT_READY, "The node has not computed shard {shard_id} yet"),
    "UNAVAILABLE_SHARD": Cause(errors.UnavailableShardError),
    "DOES_NOT_TRACK_SHARD": Cause(errors.UnavailableShardError),
    "UNKNOWN_BLOCK": Cause(errors.UnknownBlockError),
    "GARBAGE_COLLECTED_BLOCK": Cause(errors.GarbageCollectedBlockError),
    "INVALID_ACCOUNT": Cause(errors.InvalidAccountError),
    "UNKNOWN_ACCOUNT": Cause(errors.UnknownAccountError),
    "NO_CONTRACT_CODE": Cause(errors.NoContractCodeError),
    "TOO_LARGE_CONTRACT_STATE": Cause(errors.TooLargeContractStateError),
    "UNKNOWN_ACCESS_KEY": Cause(errors.UnknownAccessKeyError),
    "UNKNOWN_GAS_KEY": Cause(
        errors.UnknownAccessKeyError, "Gas key {public_key} does not exist{at}"
    ),
    "TOO_MANY_ACCESS_KEYS": Cause(errors.TooManyAccessKeysError),
    "CONTRACT_EXECUTION_ERROR": Cause(errors.ContractError),
    "NO_GLOBAL_CONTRACT_CODE": Cause(errors.NoGlobalContractCodeError),
    "INVALID_SHARD_ID": Cause(errors.InvalidShardIdError),
    "UNKNOWN_CHUNK": Cause(errors.UnknownChunkError),
    "INVALID_TRANSACTION": Cause(
        InvalidTransactionError, "The ledger refused the transaction: {text}"
    ),
    "UNKNOWN_TRANSACTION": Cause(errors.UnknownTransactionError),
    "TIMEOUT_ERROR": Cause(errors.TransactionTimeoutError),
    "REQUEST_ROUTED": Cause(errors.RequestRoutedError),
    "UNKNOWN_RECEIPT": Cause(errors.UnknownReceiptError),
    "DEPTH_EXCEEDED": Cause(_LIMIT, "The receipt lies too deep below its transaction"),
    "UNSUPPORTED": Cause(_LIMIT, "This host does not support looking up receipts"),
    "OUTCOMES_NOT_STORED": Cause(_LIMIT, "This host does not store outcomes"),
    "MALFORMED_HINT": Cause(_LIMIT, "The hint about the receipt's place is not well formed"),
    "WINDOW_TOO_LARGE": Cause(
        _LIMIT, "The window of {requested} blocks is above the maximum of {maximum}"
    ),
    "BUDGET_EXCEEDED": Cause(_LIMIT, "The search stopped after {scanned} of at most {limit}"),
    "UNKNOWN_EPOCH": Cause(errors.UnknownEpochError),
    "VALIDATOR_INFO_UNAVAILABLE": Cause(errors.ValidatorInfoUnavailableError),
    "INCONSISTENT_STATE": Cause(errors.ProofNotReadyError, "The node's view is not settled yet"),
    "NOT_CONFIRMED": Cause(
        errors.ProofNotReadyError, "{transaction_or_receipt_id} is not confirmed yet"
    ),
    "UNKNOWN_TRANSACTION_OR_RECEIPT": Cause(errors.UnknownTransactionOrReceiptError),
}

# The same thing has other names in some of the answers.
_ALIASES = {
    "requested_account_id": "account_id",
    "contract_account_id": "account_id",
    "requested_shard_id": "shard_id",
    "requested_transaction_hash": "transaction_hash",
}

_SUBJECTS = (
    re.compile(r"BLOCK HEIGHT: (?P<block_height>[0-9]+)"),
    re.compile(r"BLOCK: (?P<block_hash>\w+)"),
    re.compile(r"access key (?P<public_key>\S+) does not exist"),
    re.compile(r"[Aa]ccount (?P<account_id>\S+) does not exist"),
)


def _members(body: dict[str, Any], name: str) -> dict[str, Any]:
    """Read a member that should be an object."""
    found = body.get(name)
    return found if isinstance(found, dict) else {}


def _cause_name(body: dict[str, Any]) -> str | None:
    """Read `cause.name`."""
    name = _members(body, "cause").get("name")
    return name if isinstance(name, str) else None


def _text(body: dict[str, Any], info: dict[str, Any]) -> str:
    """Find the node's own words; the longest are often in `data` only."""
    words = (body.get("data"), info.get("error_message"), info.get("debug_info"))
    found = next((word for word in words if isinstance(word, str) and word), None)
    return found or cut(body.get("message") or body.get("data") or "no reason given")


def _refused(body: dict[str, Any]) -> object:
    """Find the variant of a refused transaction, None if there is none."""
    data = _members(body, "data")
    places = (
        data.get("TxExecutionError"),
        data.get("InvalidTxError"),
        data.get("InvalidTransaction"),
        body.get("InvalidTransaction"),  # as the specification writes it
    )
    return next((place for place in places if place is not None), None)


def _code(body: dict[str, Any]) -> int | None:
    """Read the legacy code, which some gateways send as text."""
    code = body.get("code")
    if isinstance(code, str) and re.fullmatch("-?[0-9]{1,9}", code):
        return int(code)
    return code if isinstance(code, int) else None


def from_rpc(error: object, *, asked: str) -> LedgerError:
    """
    Turn the error of a JSON-RPC answer into a typed one.

    Parameters
    ----------
    error
        The `error` member, decoded.
    asked
        What was asked, as a short phrase.

    Returns
    -------
    error
        Not raised. `cause.name` decides; without a known one, the code and the texts.
    """
    body = error if isinstance(error, dict) else {"data": error}
    name, info = _cause_name(body), _members(_members(body, "cause"), "info")
    refused, text = _refused(body), _text(body, info)
    made: LedgerError
    if refused is not None:
        made = _refusal(refused)
    elif name == "CONTRACT_EXECUTION_ERROR":
        made = _contract_error(info, text)
    elif name in CAUSES:
        made = _caused(name, info, text)
    else:
        made = _coded(body, text)
    made.asked, made.rpc_cause = asked, name
    return made


def _refusal(refused: object) -> LedgerError:
    """Read a refusal; some old nodes put a receipt's failure into the same place."""
    if variant(refused)[0] == "ActionError":
        return receipt_failure(refused)
    return invalid_transaction(refused)


def _caused(name: str, info: dict[str, Any], text: str) -> LedgerError:
    """Make the error of a known cause."""
    cause = CAUSES[name]
    values = _subject(cause.error, info, text)
    details = _attributes(cause.error, values)
    if cause.error is errors.TransactionTimeoutError:
        return _timeout(info)
    if cause.error is errors.UnknownBlockError:
        details["block"] = _block(details)
    if cause.elsewhere is not None:
        details["elsewhere"] = cause.elsewhere
    shown = {"text": text} | values | details
    return cause.error(fill(cause.sentence or cause.error.template, shown), **details)


def _subject(error: type[LedgerError], info: dict[str, Any], text: str) -> dict[str, Any]:
    """Complete the values of a cause: by their other names, then from the node's words."""
    found: dict[str, Any] = {"text": text, "error_message": text}
    if text.isidentifier():  # the data of METHOD_NOT_FOUND is the name alone
        found["method_name"] = text
    for pattern in _SUBJECTS:
        if match := pattern.search(text):
            found |= match.groupdict()
            break
    found |= {alias: info[name] for name, alias in _ALIASES.items() if name in info}
    return {name: value for name, value in (found | info).items() if name in error.fields}


def _block(details: dict[str, Any]) -> object:
    """Name the block that was asked for: a height, a hash or another reference."""
    reference = details.get("block_reference")
    asked = reference.get("block_id") if isinstance(reference, dict) else None
    if isinstance(asked, int):
        details["block_height"] = asked
    elif isinstance(asked, str):
        details["block_hash"] = asked
    height = details.get("block_height")
    return height if height is not None else details.get("block_hash") or reference


def _timeout(info: dict[str, Any]) -> errors.TransactionTimeoutError:
    """Tell a transaction that is pending from one that was not observed."""
    cause = info.get("cause")
    named = cause.get("name") if isinstance(cause, dict) else None
    name = named if isinstance(named, str) else variant(cause)[0] if cause else None
    pending = name == "PENDING"
    sentence = errors.TransactionTimeoutError.template + (f" ({cut(name)})" if name else "")
    return errors.TransactionTimeoutError(sentence, cause_name=name, elsewhere=not pending)


def _contract_error(info: dict[str, Any], text: str) -> LedgerError:
    """Make the error of a failed view call, told as a text or as a variant."""
    values = _subject(errors.ContractError, info, text)
    where = _attributes(errors.ContractError, values)
    problem = info.get("vm_error")
    if isinstance(problem, str) or not problem:
        found = problem or info.get("error")
        words = found if isinstance(found, str) else text
        where["vm_error"] = words
        return _known_text(words, **where) or errors.ContractError(**where)
    return _contract_variant(problem, where)


_VIEW_ERRORS: dict[str, type[LedgerError]] = {
    "GuestPanic": errors.ContractPanicError,
    "ProhibitedInView": errors.ProhibitedInViewError,
    "CodeDoesNotExist": errors.NoContractCodeError,
    **dict.fromkeys(_METHOD_RESOLVE, errors.ContractMethodNotFoundError),
}


def _contract_variant(problem: object, where: dict[str, Any]) -> LedgerError:
    """Make the error of a failed view call from the ledger's own variant."""
    name, payload = variant(problem)
    inner = payload if name == "FunctionCallError" else problem
    leaf = _descend(ReceiptFailedError, "FunctionCallError", inner)
    if leaf.error is ExecutionError and isinstance(leaf.payload, str):
        where["vm_error"] = leaf.payload
        return _known_text(leaf.payload, **where) or errors.ContractError(**where)
    error = _VIEW_ERRORS.get(leaf.name, errors.ContractError)
    details = where | _attributes(error, _values(leaf.payload) | {"reason": leaf.name})
    sentence = "" if leaf.name in _VIEW_ERRORS else _sentence(leaf)
    return error(sentence, **(details | {"vm_error": problem}))


_CODES: dict[int, type[LedgerError]] = {
    -429: errors.RateLimitedError,
    -32600: errors.InvalidRequestError,
    -32601: errors.RpcMethodNotFoundError,
    -32602: errors.InvalidRequestError,
    -32700: errors.RequestParseError,
}
_NAMES: dict[str, type[LedgerError]] = {
    "REQUEST_VALIDATION_ERROR": errors.InvalidRequestError,
    "INTERNAL_ERROR": errors.NodeError,
}
_SERVER_ERROR = -32000


def _coded(body: dict[str, Any], text: str) -> LedgerError:
    """Make the error of an answer without a known cause."""
    code, name = _code(body), body.get("name")
    error = _CODES.get(code or 0) or (_NAMES.get(name) if isinstance(name, str) else None)
    if error is errors.RateLimitedError:
        return error(f"The host asks for fewer requests: {cut(text)}")
    if error is not None:
        details = _attributes(error, _subject(error, {}, text) | {"code": code})
        return error(**details)
    if known := _known_text(text):
        return known
    # A handler's error will come again; one raised around it may be gone in a moment.
    again = code == _SERVER_ERROR and name != "HANDLER_ERROR"
    words = text if (cause := _cause_name(body)) is None else f"{cause}: {text}"
    return errors.NodeError(text=words, code=code, retryable=again)


# Everything that is documented, for tests and for readers -------------------------------

SPECIFICATION: Final[dict[str, dict[str, type[LedgerError]]]] = {
    "cause.name": {name: cause.error for name, cause in CAUSES.items()},
    **{
        family: {
            name: row if isinstance(row, type) else _OWNERS[family] for name, row in rows.items()
        }
        for family, rows in FAMILIES.items()
    },
}
