"""
The error variants of the chain and of its JSON-RPC, with their classes, sentences and remedies.

The chain names the reason of an error by nested variants, such as
`{"InvalidTxError": {"InvalidNonce": {"tx_nonce": 1, "ak_nonce": 7}}}`. `FAMILIES` lists the
names of each level and `CAUSES` those of a JSON-RPC error. The template of a class is its
docstring too. The functions build errors from received JSON and accept JSON of any shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast

from ledgerkit import errors, units
from ledgerkit.errors import InvalidTransactionError, LedgerError, ReceiptFailedError, cut, fill

_FUND = "Send NEAR to the account, then sign and send the transaction again."
_WAIT = "Wait a few seconds and send the same signed transaction again."
_STAKE = "Adjust the staked amount, or fund the account, and stake again."
_NEXT_KEY = "List the account's keys with keys() and use one of those."


# The transaction was refused ------------------------------------------------------------


class InvalidNonceError(InvalidTransactionError):
    tx_nonce: int
    ak_nonce: int
    template = "Nonce {tx_nonce} is not greater than {ak_nonce}, the nonce of the access key"
    remedy = (
        "Look the transaction up by its hash first: it may have been executed. If it is unknown,"
        " read the access key again and sign with its nonce plus 1."
    )


class NonceTooLargeError(InvalidTransactionError):
    tx_nonce: int
    upper_bound: int
    template = "Nonce {tx_nonce} is not below the upper bound {upper_bound}"
    remedy = "Read the access key again and sign with its nonce plus 1."


class ExpiredError(InvalidTransactionError):
    template = "The transaction has expired: its block hash is too old or unknown"
    remedy = "Read the hash of a recent final block, sign with it and send again."


class InvalidSignatureError(InvalidTransactionError):
    template = "The signature does not match the transaction and its public key"
    remedy = "Sign the exact bytes that are sent, with the secret key of that public key."


class InvalidAccessKeyError(InvalidTransactionError):
    """The access key may not sign this transaction; each reason has a subclass."""

    variant = "InvalidAccessKeyError"
    template = "The access key may not sign this transaction"
    remedy = _NEXT_KEY


class AccessKeyNotFoundError(InvalidAccessKeyError):
    account_id: str
    public_key: str
    template = "Account {account_id} does not have access key {public_key}"


class ReceiverMismatchError(InvalidAccessKeyError):
    tx_receiver: str
    ak_receiver: str
    template = "The access key may only call {ak_receiver}, not {tx_receiver}"
    remedy = "Send to the receiver of the key, or sign with a full-access key."


class MethodNameMismatchError(InvalidAccessKeyError):
    method_name: str
    template = "The access key does not allow method {method_name}"
    remedy = "Call a method that the key allows, or sign with a full-access key."


class NotEnoughAllowanceError(InvalidAccessKeyError):
    account_id: str
    public_key: str
    allowance: int
    cost: int
    template = (
        "The allowance of key {public_key} of {account_id} is {allowance} yoctoNEAR, and the"
        " transaction costs {cost} yoctoNEAR"
    )
    remedy = "Attach less gas, or sign with a key that has a larger allowance or full access."


class RequiresFullAccessError(InvalidAccessKeyError):
    template = "The transaction needs a full-access key: it is not a single function call"
    remedy = "Sign with a full-access key of the account."


class DepositWithFunctionCallError(InvalidAccessKeyError):
    template = "A function-call key may not attach a deposit"
    remedy = "Attach no deposit, or sign with a full-access key."


class DelegateActionRequiresNonGasKeyError(InvalidAccessKeyError):
    template = "The delegate action must be signed with an access key, not with a gas key"
    remedy = "Sign the delegate action with an access key that is not a gas key."


class DelegateActionRequiresGasKeyError(InvalidAccessKeyError):
    template = "The delegate action must be signed with a gas key"
    remedy = "Sign the delegate action with a gas key, or use a nonce without an index."


class NotEnoughBalanceError(InvalidTransactionError):
    signer_id: str
    balance: int
    cost: int
    template = "{signer_id} has {balance} yoctoNEAR, and the transaction costs {cost} yoctoNEAR"
    remedy = _FUND


class LackBalanceForStateError(InvalidTransactionError):
    signer_id: str
    amount: int
    template = "{signer_id} would be short of {amount} yoctoNEAR for its storage"
    remedy = _FUND


class NotEnoughGasKeyBalanceError(InvalidTransactionError):
    signer_id: str
    balance: int
    cost: int
    template = (
        "The gas key of {signer_id} has {balance} yoctoNEAR, and the gas costs {cost} yoctoNEAR"
    )
    remedy = "Fund the gas key with TransferToGasKey, then sign and send again."


class NotEnoughBalanceForDepositError(InvalidTransactionError):
    signer_id: str
    balance: int
    cost: int
    reason: str
    template = (
        "{signer_id} has {balance} yoctoNEAR, and the deposits cost {cost} yoctoNEAR ({reason});"
        " the gas was charged"
    )
    remedy = _FUND


class SignerDoesNotExistError(InvalidTransactionError):
    signer_id: str
    template = "The signer {signer_id} does not exist"
    remedy = "Check the signer's account id and the network, or create the account first."


class InvalidSignerIdError(InvalidTransactionError):
    signer_id: str
    template = "The signer {signer_id} is not a valid account id"
    remedy = "Correct signer_id: 2 to 64 characters of a-z, 0-9 and single '.', '-' or '_'."


class InvalidReceiverIdError(InvalidTransactionError):
    receiver_id: str
    template = "The receiver {receiver_id} is not a valid account id"
    remedy = "Correct receiver_id: 2 to 64 characters of a-z, 0-9 and single '.', '-' or '_'."


class InvalidNonceIndexError(InvalidTransactionError):
    tx_nonce_index: int | None
    num_nonces: int
    template = "Nonce index {tx_nonce_index} is not valid for a key with {num_nonces} nonces"
    remedy = "Pass an index below num_nonces for a gas key, and none for an access key."


class InvalidChainError(InvalidTransactionError):
    template = "The transaction was made for another chain"
    remedy = "Connect to the network the transaction was signed for, or sign it again for this one."


class CostOverflowError(InvalidTransactionError):
    template = "The cost of the transaction overflows 128 bits"
    remedy = "Lower the deposits and the attached gas."


class InvalidTransactionVersionError(InvalidTransactionError):
    template = "The chain does not accept this transaction version"
    remedy = "Sign it as a transaction of version 0."


class TransactionSizeExceededError(InvalidTransactionError):
    size: int
    limit: int
    template = "The transaction has {size} bytes; the limit is {limit} bytes"
    remedy = "Split the transaction into several smaller ones."


class ShardCongestedError(InvalidTransactionError):
    shard_id: int
    congestion_level: float
    template = "Shard {shard_id} is congested (level {congestion_level})"
    remedy = _WAIT
    retryable = True


class ShardStuckError(InvalidTransactionError):
    shard_id: int
    missed_chunks: int
    template = "Shard {shard_id} is stuck: it has missed {missed_chunks} chunks"
    remedy = _WAIT
    retryable = True


class StorageError(InvalidTransactionError):
    """The node could not read its storage; the transaction may be valid."""

    variant = "StorageError"
    text: str
    template = "The node could not read its storage"
    remedy = "Send the same signed transaction through another host."
    retryable = True
    elsewhere = True


class ActionsValidationError(InvalidTransactionError):
    """An action of the transaction is invalid; each reason has a subclass."""

    variant = "ActionsValidation"
    template = "An action of the transaction is invalid"
    remedy = "Correct the action, then sign and send the transaction again."


class DeleteActionMustBeFinalError(ActionsValidationError):
    template = "DeleteAccount must be the last action"
    remedy = "Move DeleteAccount to the end of the actions."


class IntegerOverflowError(ActionsValidationError):
    template = "The total attached gas overflows 64 bits"
    remedy = "Attach less gas to the calls."


class FunctionCallZeroAttachedGasError(ActionsValidationError):
    template = "A function call has no gas attached"
    remedy = "Attach gas to every call, for example 30 Tgas."


class FunctionCallEmptyMethodNameError(ActionsValidationError):
    template = "A function call has an empty method name"
    remedy = "Pass the name of the method."


class DelegateActionMustBeOnlyOneError(ActionsValidationError):
    template = "A transaction may have only one delegate action"
    remedy = "Send each delegate action in a transaction of its own."


class GasKeyFunctionCallAllowanceNotAllowedError(ActionsValidationError):
    template = "A function-call gas key may not have an allowance"
    remedy = "Add the gas key without an allowance: its balance is the limit."


class TotalPrepaidGasExceededError(ActionsValidationError):
    total_prepaid_gas: int
    limit: int
    template = "The actions attach {total_prepaid_gas} gas; the limit is {limit} gas"
    remedy = "Attach less gas, or split the calls over several transactions."


class TotalNumberOfActionsExceededError(ActionsValidationError):
    total_number_of_actions: int
    limit: int
    template = "The transaction has {total_number_of_actions} actions; the limit is {limit}"
    remedy = "Split the actions over several transactions."


class TotalNumberOfDeployActionsExceededError(ActionsValidationError):
    number_of_deploy_actions: int
    limit: int
    template = "The transaction has {number_of_deploy_actions} deploy actions; the limit is {limit}"
    remedy = "Deploy in several transactions."


class AddKeyMethodNamesNumberOfBytesExceededError(ActionsValidationError):
    total_number_of_bytes: int
    limit: int
    template = (
        "The method names of the key have {total_number_of_bytes} bytes; the limit is {limit} bytes"
    )
    remedy = "List fewer methods, or add several keys."


class AddKeyMethodNameLengthExceededError(ActionsValidationError):
    length: int
    limit: int
    template = "A method name of the key has {length} bytes; the limit is {limit} bytes"
    remedy = "Correct the method names of the key."


class FunctionCallMethodNameLengthExceededError(ActionsValidationError):
    length: int
    limit: int
    template = "The method name has {length} bytes; the limit is {limit} bytes"
    remedy = "Correct the method name of the call."


class FunctionCallArgumentsLengthExceededError(ActionsValidationError):
    length: int
    limit: int
    template = "The arguments of the call have {length} bytes; the limit is {limit} bytes"
    remedy = "Pass smaller arguments, or split the call."


class DeterministicStateInitKeyLengthExceededError(ActionsValidationError):
    length: int
    limit: int
    template = "A key of the initial state has {length} bytes; the limit is {limit} bytes"
    remedy = "Shorten the keys of the initial state."


class DeterministicStateInitValueLengthExceededError(ActionsValidationError):
    length: int
    limit: int
    template = "A value of the initial state has {length} bytes; the limit is {limit} bytes"
    remedy = "Shorten the values of the initial state."


class ContractSizeExceededError(ActionsValidationError):
    size: int
    limit: int
    template = "The contract has {size} bytes; the limit is {limit} bytes"
    remedy = "Build the contract with size optimisation, or split it."


class InvalidAccountIdError(ActionsValidationError):
    account_id: str
    template = "An action has the account id {account_id}, which is malformed"
    remedy = "Correct it: 2 to 64 characters of a-z, 0-9 and single '.', '-' or '_'."


class UnsuitableStakingKeyError(ActionsValidationError):
    public_key: str
    template = "Key {public_key} cannot be used for staking"
    remedy = "Stake with an ed25519 key."


class UnsupportedProtocolFeatureError(ActionsValidationError):
    protocol_feature: str
    version: int
    template = "Protocol version {version} of the network does not support {protocol_feature}"
    remedy = "Omit the action until the network has upgraded, or use another network."


class RemovedProtocolFeatureError(ActionsValidationError):
    protocol_feature: str
    version: int
    template = "Protocol version {version} of the network no longer supports {protocol_feature}"
    remedy = "Omit the action, or use the one that replaced it."


class TotalNumberOfStateInitEntriesExceededError(ActionsValidationError):
    number_of_entries: int
    limit: int
    template = "The initial states have {number_of_entries} entries together; the limit is {limit}"
    remedy = "Initialize with fewer entries, and write the others by a call."


class InvalidDeterministicStateInitReceiverError(ActionsValidationError):
    receiver_id: str
    derived_id: str
    template = "The receiver {receiver_id} is not {derived_id}, derived from the initial state"
    remedy = "Use the derived account id as the receiver."


class TotalNumberOfStateInitKeysExceededError(ActionsValidationError):
    number_of_keys: int
    limit: int
    template = "The initial states have {number_of_keys} access keys together; the limit is {limit}"
    remedy = "Initialize with fewer access keys, and add the others with AddKey."


class InvalidUniversalStateInitReceiverError(ActionsValidationError):
    receiver_id: str
    derived_id: str
    template = InvalidDeterministicStateInitReceiverError.template
    remedy = InvalidDeterministicStateInitReceiverError.remedy


class MalformedUniversalStateInitError(ActionsValidationError):
    template = "The initial state of a universal account is malformed"
    remedy = "Encode the initial state with UniversalStateInit."


class UniversalStateInitKeyLengthExceededError(ActionsValidationError):
    length: int
    limit: int
    template = DeterministicStateInitKeyLengthExceededError.template
    remedy = DeterministicStateInitKeyLengthExceededError.remedy


class UniversalStateInitValueLengthExceededError(ActionsValidationError):
    length: int
    limit: int
    template = DeterministicStateInitValueLengthExceededError.template
    remedy = DeterministicStateInitValueLengthExceededError.remedy


class TransferToUniversalAccountNotAllowedError(ActionsValidationError):
    account_id: str
    template = "The network does not accept transfers to universal account {account_id} yet"
    remedy = "Send NEAR to the account when the network's protocol supports universal accounts."


class WithdrawFromGasKeyNotAllowedInDelegateError(ActionsValidationError):
    template = "A delegate action may not withdraw from a gas key"
    remedy = "Withdraw from the gas key in a transaction of the account itself."


class GasKeyInvalidNumNoncesError(ActionsValidationError):
    requested_nonces: int
    limit: int
    template = "The gas key has {requested_nonces} nonces; the range is 1 to {limit}"
    remedy = "Choose a number of nonces within the range."


class AddGasKeyWithNonZeroBalanceError(ActionsValidationError):
    balance: int
    template = "The gas key is added with a balance of {balance} yoctoNEAR; it must be 0"
    remedy = "Add the gas key with balance 0 and fund it with TransferToGasKey."


# A receipt failed -----------------------------------------------------------------------


class AccountAlreadyExistsError(ReceiptFailedError):
    account_id: str
    template = "Account {account_id} already exists"
    remedy = "Choose another account id."


class AccountDoesNotExistError(ReceiptFailedError):
    account_id: str
    template = "Account {account_id} does not exist"
    remedy = "Check the receiver's account id and the network, or create the account first."


class AccountNotInitializedError(ReceiptFailedError):
    account_id: str
    template = "Universal account {account_id} is not initialized"
    remedy = "Initialize the account first, with the UniversalStateInit that its id derives from."


class ReceiptMalformedUniversalStateInitError(ReceiptFailedError):
    variant = "MalformedUniversalStateInit"
    template = MalformedUniversalStateInitError.template
    remedy = MalformedUniversalStateInitError.remedy


class TriesToUnstakeError(ReceiptFailedError):
    account_id: str
    template = "{account_id} unstakes but has nothing staked"
    remedy = "Check the validator's stake; delegated NEAR is unstaked at its staking pool."


class DeleteAccountStakingError(ReceiptFailedError):
    account_id: str
    template = "{account_id} cannot be deleted while it has a stake"
    remedy = "Unstake, wait until the stake is unlocked, then delete the account."


class DeleteAccountWithLargeStateError(ReceiptFailedError):
    account_id: str
    template = "{account_id} cannot be deleted: its state is too large"
    remedy = "Remove the contract's state first, then delete the account."


class OnlyImplicitAccountCreationAllowedError(ReceiptFailedError):
    account_id: str
    template = "{account_id} is an implicit account id, which CreateAccount cannot create"
    remedy = "Send NEAR to the account: the transfer creates it."


class CreateAccountOnlyByRegistrarError(ReceiptFailedError):
    account_id: str
    registrar_account_id: str
    predecessor_id: str
    template = "{predecessor_id} may not create {account_id}; only {registrar_account_id} may"
    remedy = "Choose a name below an existing account, such as name.near."


class CreateAccountNotAllowedError(ReceiptFailedError):
    account_id: str
    predecessor_id: str
    template = "{predecessor_id} may not create {account_id}"
    remedy = "Create it from its parent account, or choose another account id."


class ActorNoPermissionError(ReceiptFailedError):
    account_id: str
    actor_id: str
    template = "{actor_id} may not execute this action on {account_id}"
    remedy = "Sign the transaction as the account that it changes."


class AddKeyAlreadyExistsError(ReceiptFailedError):
    account_id: str
    public_key: str
    template = "{account_id} already has key {public_key}"
    remedy = "To change its permissions, delete the key and add it again."


class DeleteKeyDoesNotExistError(ReceiptFailedError):
    account_id: str
    public_key: str
    template = "{account_id} has no key {public_key} to delete"
    remedy = _NEXT_KEY


class GasKeyDoesNotExistError(ReceiptFailedError):
    account_id: str
    public_key: str
    template = "{account_id} has no gas key {public_key}"
    remedy = "List the account's keys with keys(), or add the gas key first."


class ReceiptLackBalanceForStateError(ReceiptFailedError):
    variant = "LackBalanceForState"
    account_id: str
    amount: int
    template = "{account_id} is short of {amount} yoctoNEAR for its storage"
    remedy = "Send NEAR to the account, then try again."


class TriesToStakeError(ReceiptFailedError):
    account_id: str
    stake: int
    locked: int
    balance: int
    template = (
        "{account_id} stakes {stake} yoctoNEAR, and has {locked} yoctoNEAR locked and"
        " {balance} yoctoNEAR available"
    )
    remedy = _STAKE


class InsufficientStakeError(ReceiptFailedError):
    account_id: str
    stake: int
    minimum_stake: int
    template = "{account_id} stakes {stake} yoctoNEAR; the minimum is {minimum_stake} yoctoNEAR"
    remedy = _STAKE


class DelegateActionExpiredError(ReceiptFailedError):
    template = "The delegate action has expired"
    remedy = "Ask the sender to sign it with a later max_block_height, and relay it at once."


class DelegateActionInvalidSignatureError(ReceiptFailedError):
    template = "The signature of the delegate action is not valid"
    remedy = "Ask the sender to sign the delegate action with its prefix and the named key."


class DelegateActionSenderDoesNotMatchTxReceiverError(ReceiptFailedError):
    sender_id: str
    receiver_id: str
    template = "The delegate action of {sender_id} was sent to {receiver_id}"
    remedy = "Send the relaying transaction to the sender of the delegate action."


class DelegateActionAccessKeyError(ReceiptFailedError):
    """The key of the delegate action may not sign it; `variant` is the reason."""

    variant = "DelegateActionAccessKeyError"
    account_id: str | None
    public_key: str | None
    tx_receiver: str | None
    ak_receiver: str | None
    method_name: str | None
    allowance: int | None
    cost: int | None
    template = "The key of the delegate action may not sign it"
    remedy = "Ask the sender to sign with a key that allows these actions."


class DelegateActionInvalidNonceError(ReceiptFailedError):
    delegate_nonce: int
    ak_nonce: int
    template = (
        "Nonce {delegate_nonce} of the delegate action is not greater than {ak_nonce}, the nonce"
        " of the key"
    )
    remedy = "Ask the sender to read the key and sign again with its nonce plus 1."


class DelegateActionNonceTooLargeError(ReceiptFailedError):
    delegate_nonce: int
    upper_bound: int
    template = "Nonce {delegate_nonce} of the delegate action is not below {upper_bound}"
    remedy = "Ask the sender to read the key and sign again with its nonce plus 1."


class DelegateActionInvalidNonceIndexError(ReceiptFailedError):
    nonce_index: int | None
    num_nonces: int
    template = "Nonce index {nonce_index} is not valid for a key with {num_nonces} nonces"
    remedy = "Ask the sender to use an index below num_nonces with a gas key, none otherwise."


class GlobalContractDoesNotExistError(ReceiptFailedError):
    identifier: object
    template = "Global contract {identifier} does not exist"
    remedy = "Publish the global contract first, or correct its hash or account id."


class InsufficientGasKeyBalanceError(ReceiptFailedError):
    account_id: str
    public_key: str
    balance: int
    required: int
    template = (
        "Gas key {public_key} of {account_id} has {balance} yoctoNEAR; {required} yoctoNEAR is"
        " needed"
    )
    remedy = "Withdraw less, or fund the gas key with TransferToGasKey first."


class GasKeyBalanceTooHighError(ReceiptFailedError):
    account_id: str
    public_key: str | None
    balance: int
    template = (
        "The gas keys of {account_id} ({public_key}) have {balance} yoctoNEAR, which is too much"
        " to burn"
    )
    remedy = "Withdraw from the gas key with WithdrawFromGasKey first."


class TotalPromiseInputSizeExceededError(ReceiptFailedError):
    size: int
    limit: int
    template = "The input data of the receipt has {size} bytes; the limit is {limit} bytes"
    remedy = "Wait for fewer or smaller results in one receipt."


class ReceiptStorageProofSizeExceededError(ReceiptFailedError):
    limit: int
    template = "The receipt accessed more state than the limit of {limit} bytes"
    remedy = "Access fewer or smaller values in one call."


class FunctionCallError(ReceiptFailedError):
    """The function call failed; each stage has a subclass."""

    variant = "FunctionCallError"
    template = "The function call failed"
    remedy = "Check the method and its arguments against the contract's documentation."


class ExecutionError(FunctionCallError):
    """The contract failed while running; `panic_msg` is the message of a panic."""

    variant = "ExecutionError"
    text: str
    panic_msg: str | None
    template = "The function call failed: {text}"
    remedy = "Do what the contract's message asks: change the call, or wait and call again."


class MethodResolveError(FunctionCallError):
    variant = "MethodResolveError"
    template = "The contract does not have the method"
    remedy = "Check the method name and the contract id."


class CompilationError(FunctionCallError):
    variant = "CompilationError"
    account_id: str | None
    msg: str | None
    template = "The code of the contract could not be prepared"
    remedy = "Check the contract id; if the contract is yours, deploy a build for this network."


class LinkError(FunctionCallError):
    """The contract imports host functions that do not exist (in old data)."""

    variant = "LinkError"
    msg: str
    template = "The contract imports a host function that does not exist: {msg}"
    remedy = "Build the contract with an SDK version for this network."


class WasmTrapError(FunctionCallError):
    """The contract caused a WebAssembly trap (in old data)."""

    template = "The contract caused a WebAssembly trap"
    remedy = "This is a bug of the contract: report it to its authors with the arguments used."


class HostError(FunctionCallError):
    """A host function stopped the contract (in old data)."""

    variant = "HostError"
    panic_msg: str | None
    method_name: str | None
    template = "A host function stopped the contract"
    remedy = "Check gas, deposit and arguments; otherwise report it to the contract's authors."


class WasmUnknownError(FunctionCallError):
    """The contract failed for an unknown reason (in old data)."""

    variant = "WasmUnknownError"
    template = "The contract failed for an unknown reason"
    remedy = "Report it to the contract's authors with the arguments used."


class EvmError(FunctionCallError):
    """The former EVM contract failed (in old data)."""

    variant = "_EVMError"
    template = "The former EVM contract failed"
    remedy = "EVM contracts are no longer supported."


class NewReceiptValidationError(ReceiptFailedError):
    """The contract created an invalid receipt; `variant` is the reason."""

    variant = "NewReceiptValidationError"
    account_id: str | None
    length: int | None
    size: int | None
    number_of_input_data_dependencies: int | None
    limit: int | None
    template = "The contract created an invalid receipt"
    remedy = "Check the arguments that determine the receipts and their receivers."


# The table of names ---------------------------------------------------------------------

# A class, or the sentence of a variant without a class of its own.
Row: TypeAlias = type[LedgerError] | str

WASM_TRAPS: Final[dict[str, str]] = {
    "Unreachable": "The contract executed an unreachable instruction",
    "IncorrectCallIndirectSignature": "The contract called a function with the wrong signature",
    "MemoryOutOfBounds": "The contract accessed memory out of bounds",
    "CallIndirectOOB": "The contract called a function outside its table",
    "IllegalArithmetic": "The contract divided by zero or overflowed an integer",
    "MisalignedAtomicAccess": "The contract used a misaligned atomic address",
    "IndirectCallToNull": "The contract called a null function",
    "StackOverflow": "The contract's call stack overflowed",
    "GenericTrap": "The contract caused a WebAssembly trap",
}

PREPARE_ERRORS: Final[dict[str, str]] = {
    "Serialization": "The prepared contract could not be serialized",
    "Deserialization": "The code of the contract is not valid WebAssembly",
    "InternalMemoryDeclared": "The contract declares an internal memory",
    "GasInstrumentation": "Gas metering could not be added to the contract",
    "StackHeightInstrumentation": "The stack limit could not be added to the contract",
    "Instantiate": "The contract could not be instantiated",
    "Memory": "The memory of the contract could not be created",
    "TooManyFunctions": "The contract has too many functions",
    "TooManyLocals": "The contract has too many local variables",
    "TooManyTables": "The contract has too many tables",
    "TooManyTableElements": "The tables of the contract have too many elements",
    "FunctionBodyTooLarge": "A function of the contract is too large",
    "InstrumentedCodeTooLarge": "The contract with gas metering is too large",
    "TooManyBlocksPerFunction": "A function of the contract has too many blocks",
    "TooManyBlocksPerContract": "The contract has too many blocks",
    "TooManyTypes": "The contract has too many types",
    "TooManyParamsPerFunction": "A function of the contract has too many parameters",
    "TooManyParamsPerContract": "The functions of the contract have too many parameters",
    "OperandStackTooLarge": "The operand stack of the contract is too large",
    "TooManyGlobals": "The contract has too many global variables",
}

HOST_ERRORS: Final[dict[str, str]] = {
    "BadUTF16": "The contract passed text that is not UTF-16",
    "BadUTF8": "The contract passed text that is not UTF-8",
    "GasExceeded": "Exceeded the prepaid gas",
    "GasLimitExceeded": "Exceeded the maximum amount of gas allowed to burn per contract",
    "BalanceExceeded": "Exceeded the account balance",
    "EmptyMethodName": "The contract called a method with an empty name",
    "IntegerOverflow": "The contract passed a number that is too large",
    "CannotAppendActionToJointPromise": "The contract added an action to a joint promise",
    "CannotReturnJointPromise": "The contract returned a joint promise",
    "MemoryAccessViolation": "The contract accessed memory out of bounds",
    "InvalidAccountId": "The contract used a malformed account id",
    "InvalidMethodName": "The contract used an invalid method name",
    "InvalidPublicKey": "The contract used an invalid public key",
    "GuestPanic": "Smart contract panicked: {panic_msg}",
    "ProhibitedInView": "{method_name} is not allowed in view calls",
    "ProhibitedInExternalCall": "{method_name} is not allowed in external calls",
    "DepositInExternalCall": "The contract attached a deposit to an external call",
    "Deprecated": "The contract called {method_name}, which no longer exists",
    "InvalidPromiseIndex": "The contract used promise {promise_idx}, which does not exist",
    "InvalidPromiseResultIndex": "The contract read result {result_idx}, which does not exist",
    "InvalidRegisterId": "The contract used register {register_id}, which does not exist",
    "IteratorWasInvalidated": "The contract used iterator {iterator_index} after a change",
    "InvalidIteratorIndex": "The contract used iterator {iterator_index}, which does not exist",
    "InvalidReceiptIndex": "The contract used receipt {receipt_index}, which does not exist",
    "NumberOfLogsExceeded": "The contract wrote more logs than the limit of {limit}",
    "KeyLengthExceeded": "A storage key has {length} bytes; the limit is {limit} bytes",
    "ValueLengthExceeded": "A stored value has {length} bytes; the limit is {limit} bytes",
    "TotalLogLengthExceeded": "The logs have {length} bytes; the limit is {limit} bytes",
    "ReturnedValueLengthExceeded": "The result has {length} bytes; the limit is {limit} bytes",
    "NumberPromisesExceeded": (
        "The contract created {number_of_promises} promises; the limit is {limit}"
    ),
    "NumberInputDataDependenciesExceeded": (
        "A receipt waits for {number_of_input_data_dependencies} results; the limit is {limit}"
    ),
    "ContractSizeExceeded": "The deployed contract has {size} bytes; the limit is {limit} bytes",
    "ECRecoverError": "The contract could not recover a key: {msg}",
    "AltBn128InvalidInput": "The contract passed values that are not on alt_bn128: {msg}",
    "Ed25519VerifyInvalidInput": "The contract checked a malformed ed25519 signature: {msg}",
    "P256VerifyInvalidInput": "The contract checked a malformed P-256 signature: {msg}",
    "MlDsaVerifyInvalidInput": "The contract checked a malformed ML-DSA signature: {msg}",
}

_METHOD_RESOLVE = {
    "MethodNotFound": "The contract does not have the method",
    "MethodEmptyName": "The method name is empty",
    "MethodInvalidSignature": "The signature of the method is invalid",
}

_COMPILATION = {
    "CodeDoesNotExist": "Account {account_id} has no contract",
    "PrepareError": "The code of the contract could not be prepared",
    "WasmerCompileError": "The code of the contract could not be compiled: {msg}",
}

_STORAGE = {
    "StorageInternalError": "The node's storage failed",
    "UnexpectedTrieValue": "The node read an unexpected value from its storage",
    "MissingTrieValue": "A value is missing in the storage of the node ({context}, {hash})",
    "StorageInconsistentState": "The node's storage is inconsistent: {text}",
    "FlatStorageBlockNotSupported": "The node's flat storage does not have the block: {text}",
    "MemTrieLoadingError": "The node could not load its storage into memory: {text}",
}

_NEW_RECEIPT = {
    "InvalidPredecessorId": "The predecessor {account_id} of a new receipt is malformed",
    "InvalidReceiverId": "The receiver {account_id} of a new receipt is malformed",
    "InvalidSignerId": "The signer {account_id} of a new receipt is malformed",
    "InvalidDataReceiverId": "The data receiver {account_id} of a new receipt is malformed",
    "InvalidRefundTo": "The refund account {account_id} of a new receipt is malformed",
    "ReturnedValueLengthExceeded": "The result has {length} bytes; the limit is {limit} bytes",
    "NumberInputDataDependenciesExceeded": HOST_ERRORS["NumberInputDataDependenciesExceeded"],
    "ReceiptSizeExceeded": "A new receipt has {size} bytes; the limit is {limit} bytes",
    "ActionsValidation": "An action of a new receipt is invalid",
}


def _variants_of(branch: type[InvalidTransactionError | ReceiptFailedError]) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for error in branch.__subclasses__():
        # A class sets `variant` if the chain's name ends in "Error" or is not unique.
        error.variant = vars(error).get("variant") or error.__name__.removesuffix("Error")
        rows[error.variant] = error
    return rows


FAMILIES: Final[dict[str, Mapping[str, Row]]] = {
    "InvalidTxError": _variants_of(InvalidTransactionError),
    "InvalidAccessKeyError": _variants_of(InvalidAccessKeyError),
    "ActionsValidation": _variants_of(ActionsValidationError),
    "StorageError": _STORAGE,
    "ActionErrorKind": _variants_of(ReceiptFailedError),
    "FunctionCallError": _variants_of(FunctionCallError),
    "MethodResolveError": _METHOD_RESOLVE,
    "CompilationError": _COMPILATION,
    "PrepareError": PREPARE_ERRORS,
    "WasmTrap": WASM_TRAPS,
    "HostError": HOST_ERRORS,
    "NewReceiptValidationError": _NEW_RECEIPT,
}

# Variants that contain another variant, and the family of the inner one.
_NESTED = {name: name for name in FAMILIES} | {
    "DelegateActionAccessKeyError": "InvalidAccessKeyError"
}


# Reading variants -----------------------------------------------------------------------


def variant(value: object) -> tuple[str, Any]:
    """Split the JSON of a variant, a text or an object with one key, into its name and payload."""
    if isinstance(value, str):
        return value, None
    if isinstance(value, dict) and len(value) == 1:
        name, payload = next(iter(value.items()))
        if isinstance(name, str):
            return name, payload
    return "Unknown", value


_Branch = TypeVar("_Branch", bound=LedgerError)


class _Leaf(NamedTuple, Generic[_Branch]):
    """The innermost variant of a nested reason."""

    path: str
    name: str
    error: type[_Branch]  # the class of the error
    row: type[LedgerError]  # the class whose remedy applies
    template: str
    payload: Any


_UNKNOWN = "The chain gives a reason that ledgerkit does not know: {variant}"


def _innermost_variant(branch: type[_Branch], family: str, value: object) -> _Leaf[_Branch]:
    """Follow nested variants to the innermost one that the tables list."""
    error, row, path = branch, cast("type[LedgerError]", branch), ""
    while True:
        name, payload = variant(value)
        path = f"{path}.{name}" if path else name
        declared = FAMILIES[family].get(name)
        template = declared if isinstance(declared, str) else _UNKNOWN
        if isinstance(declared, type):
            # A reason listed in both branches keeps the class of the branch it occurred in.
            error = declared if issubclass(declared, branch) else error
            row, template = declared, declared.template
        if declared is None or payload is None or name not in _NESTED:
            return _Leaf(path, name, error, row, template, payload)
        family, value = _NESTED[name], payload


def _values(payload: object) -> dict[str, Any]:
    """Return the values of a payload by name; a bare value gets the name "text"."""
    if isinstance(payload, dict):
        return payload
    return {} if payload is None else {"text": payload}


# Amounts have all digits, because two amounts in a sentence may differ in the last digit.
_AMOUNT = re.compile(r"(\{(\w+)\} (yoctoNEAR|gas)\b)")
_AMOUNT_TEXTS = {"yoctoNEAR": units.near_amount, "gas": units.gas_amount}
_MOST_DIGITS = 80  # far above 128 bits, far below the limit of int()


def _convert(declared: str, value: object) -> object:
    if "int" in declared:
        if isinstance(value, str) and len(value) <= _MOST_DIGITS and re.fullmatch("[0-9]+", value):
            return int(value)
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if "float" in declared:
        return value if isinstance(value, float) else _convert("int", value)
    return value if isinstance(value, str) or "object" in declared else None


def _attributes(error: type[LedgerError], values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _convert(declared, values[name])
        for name, declared in error.fields.items()
        if name in values
    }


def _sentence(leaf: _Leaf[Any]) -> str:
    values = _values(leaf.payload)
    if leaf.template is _UNKNOWN:
        payload = f" ({cut(leaf.payload)})" if values else ""
        return fill(leaf.template, {"variant": leaf.name}) + payload
    template = leaf.template
    for placeholder, name, unit in _AMOUNT.findall(template):
        amount = _convert("int", values.get(name))
        if isinstance(amount, int):
            template = template.replace(placeholder, f"{{{name}}}")
            values = {**values, name: _AMOUNT_TEXTS[unit](amount, None)}
    return fill(template, values)


def _remedy(leaf: _Leaf[Any]) -> str:
    """Return the remedy for a reason; a failed execution has one by its message."""
    if leaf.row is ExecutionError:
        text = str(leaf.payload)
        return next((remedy for part, remedy in _REMEDIES if part in text[:200]), leaf.row.remedy)
    return leaf.row.remedy


_REMEDIES = (
    # Panics come first: the message is the contract's own and may contain any other text.
    ("Smart contract panicked", ExecutionError.remedy),
    ("Exceeded the prepaid gas", "Attach more gas to the call, for example 100 Tgas."),
    ("Exceeded the maximum amount of gas", "Split the work over several smaller calls."),
    (
        "Exceeded the account balance",
        "Fund the contract's account, or reduce the amounts it sends.",
    ),
    ("WebAssembly trap", WasmTrapError.remedy),
    ("is not allowed in view calls", errors.ProhibitedInViewError.remedy),
)
PANIC = "Smart contract panicked: "


def _leaf_attributes(leaf: _Leaf[Any]) -> dict[str, Any]:
    attributes = _attributes(leaf.error, _values(leaf.payload))
    if leaf.error is ExecutionError and str(leaf.payload).startswith(PANIC):
        attributes["panic_msg"] = leaf.payload.removeprefix(PANIC)
    return attributes | {"variant": leaf.name, "payload": leaf.payload}


# Wrappers around the variant, as nodes send them and as the specification writes them.
_WRAPPERS = ("TxExecutionError", "InvalidTxError", "InvalidTransaction")


def invalid_transaction(value: object) -> InvalidTransactionError:
    """
    Build the error for a transaction that the chain refused, from its variant as JSON.

    An unknown variant gives the nearest known parent class, with `variant` and `payload`.
    """
    name, payload = variant(value)
    while name in _WRAPPERS and payload is not None:
        value = payload
        name, payload = variant(value)
    leaf = _innermost_variant(InvalidTransactionError, "InvalidTxError", value)
    return leaf.error(_sentence(leaf), remedy=_remedy(leaf), **_leaf_attributes(leaf))


def receipt_failure(
    value: object, *, receipt_id: str | None = None
) -> ReceiptFailedError | InvalidTransactionError:
    """Build the error for the `Failure` in the outcome of a receipt or a transaction."""
    name, payload = variant(value)
    if name == "InvalidTxError":
        return invalid_transaction(value)
    leaf = _failed_leaf(value)
    index = _convert("int", payload.get("index")) if isinstance(payload, dict) else None
    details = _leaf_attributes(leaf) | {"receipt_id": receipt_id, "kind": leaf.path, "index": index}
    return leaf.error(_sentence(leaf), remedy=_remedy(leaf), **details)


def _failed_leaf(value: object) -> _Leaf[ReceiptFailedError]:
    old = value if isinstance(value, dict) else {}
    kind, message = old.get("error_type"), old.get("error_message")
    if isinstance(kind, str):  # nodes of 2020 sent type and message as two texts
        template = "{error_message}" if isinstance(message, str) else _UNKNOWN
        return _Leaf(kind, kind, ReceiptFailedError, ReceiptFailedError, template, old)
    name, payload = variant(value)
    if name == "ActionError" and isinstance(payload, dict):
        return _innermost_variant(ReceiptFailedError, "ActionErrorKind", payload.get("kind"))
    return _Leaf(name, name, ReceiptFailedError, ReceiptFailedError, _UNKNOWN, payload)


def failure_text(value: object) -> tuple[str, str]:
    """
    Return kind and message of the `Failure` of an outcome.

    The kind is the path of the chain's variants, such as "FunctionCallError.ExecutionError". The
    message is one sentence, or the contract's own text unchanged.
    """
    name, payload = variant(value)
    if name == "InvalidTxError":
        refusal = _innermost_variant(InvalidTransactionError, name, payload)
        return f"{name}.{refusal.path}", _message(refusal)
    failure = _failed_leaf(value)
    return failure.path, _message(failure)


def _message(leaf: _Leaf[Any]) -> str:
    """Return the contract's own message in full, or the sentence of the reason."""
    if leaf.row is ExecutionError and isinstance(leaf.payload, str):
        return leaf.payload
    panic = _values(leaf.payload).get("panic_msg")
    if leaf.name == "GuestPanic" and isinstance(panic, str):
        return PANIC + panic
    return f"{_sentence(leaf).removesuffix('.')}."


# Error texts of `query` -----------------------------------------------------------------

_VM = r"(?:wasm execution failed with error: )?(?:FunctionCallError\()?"
_STRING = r'[^"\\]*(?:\\.[^"\\]*)*'  # up to the closing quote of a Rust debug string

# Each pattern must match from the start: a panic message may contain any of the others.
_QUERY_TEXTS: tuple[tuple[str, type[LedgerError]], ...] = (
    (
        rf'{_VM}HostError\(GuestPanic \{{ panic_msg: "(?P<dump>{_STRING})',
        errors.ContractPanicError,
    ),
    (rf'{_VM}ExecutionError\("{PANIC}(?P<dump>{_STRING})', errors.ContractPanicError),
    (rf"{_VM}{PANIC}(?P<panic_msg>.*)", errors.ContractPanicError),
    (
        rf'{_VM}HostError\(ProhibitedInView \{{ method_name: "(?P<method_name>{_STRING})',
        errors.ProhibitedInViewError,
    ),
    (
        rf'{_VM}(?:ExecutionError\(")?(?P<method_name>\w+) is not allowed in view calls',
        errors.ProhibitedInViewError,
    ),
    (
        _VM + r'(?:HostError\(Gas(?:Limit)?Exceeded|(?:ExecutionError\(")?'
        r"Exceeded the (?:prepaid|maximum amount of) gas)",
        errors.ViewGasExceededError,
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
    """Decode one escape of a Rust debug string; an invalid one is returned unchanged."""
    digits, letter = escape.groups()
    if digits is None:
        return _ESCAPED.get(letter, escape[0])
    point = int(digits, 16)
    # A lone surrogate is not a character and cannot be encoded.
    valid = point < 0xD800 or 0xDFFF < point <= 0x10FFFF  # noqa: PLR2004 - the surrogates, and the last code point
    return chr(point) if valid else escape[0]


def _query_error(text: str, **context: Any) -> LedgerError | None:
    for pattern, error in _QUERY_TEXTS:
        if match := re.match(pattern, text, re.DOTALL):
            values: dict[str, Any] = match.groupdict()
            if "dump" in values:
                values["panic_msg"] = _ESCAPE.sub(_character, values.pop("dump"))
            if issubclass(error, errors.ContractError):
                values["vm_error"] = text
            return error(**(context | values))
    return None


def from_query_text(text: str, **context: Any) -> LedgerError:
    """Build the error for the text in a `query` result: the Rust debug form of an error."""
    return _query_error(text, **context) or errors.ContractError(**(context | {"vm_error": text}))


# JSON-RPC errors ------------------------------------------------------------------------


class Cause(NamedTuple):
    """The class for one `cause.name`, and the attributes that differ from the class."""

    error: type[LedgerError]
    sentence: str = ""
    elsewhere: bool | None = None
    remedy: str | None = None


_NOT_READY = errors.NodeNotReadyError
_LIMIT = errors.LookupLimitError

CAUSES: Final[dict[str, Cause]] = {
    "METHOD_NOT_FOUND": Cause(errors.RpcMethodNotFoundError),
    "PARSE_ERROR": Cause(errors.RequestParseError),
    "INTERNAL_ERROR": Cause(errors.NodeError),
    "NO_SYNCED_BLOCKS": Cause(_NOT_READY, "The node is starting and has no blocks yet"),
    "NOT_SYNCED_YET": Cause(_NOT_READY, "The node is starting and not synced yet"),
    "NODE_IS_SYNCING": Cause(_NOT_READY, "The node is syncing", elsewhere=True),
    "NO_NEW_BLOCKS": Cause(
        _NOT_READY, "The node has received no new block for {elapsed}", elsewhere=True
    ),
    "EPOCH_OUT_OF_BOUNDS": Cause(
        _NOT_READY, "The node does not know epoch {epoch_id}", elsewhere=True
    ),
    "BUSY": Cause(_NOT_READY, "The node is busy"),
    "CHUNK_NOT_CERTIFIED": Cause(errors.ProofNotReadyError, "The chunk is not certified yet"),
    "SHARD_NOT_APPLIED": Cause(_NOT_READY, "The node has not computed shard {shard_id} yet"),
    "UNAVAILABLE_SHARD": Cause(errors.UnavailableShardError),
    "DOES_NOT_TRACK_SHARD": Cause(errors.UnavailableShardError),
    "SHARD_NOT_TRACKED": Cause(errors.UnavailableShardError),
    "DATA_UNAVAILABLE": Cause(
        errors.NotFoundError, "This host does not have the data: {text}", elsewhere=True
    ),
    "INCOMPLETE_DATA": Cause(
        errors.NotFoundError, "This host does not have all the data: {text}", elsewhere=True
    ),
    "STATE_NOT_AVAILABLE": Cause(
        errors.NotFoundError, "This host does not have the state of the chunk", elsewhere=True
    ),
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
    "TARGET_SHARD_MISMATCH": Cause(
        errors.InvalidShardIdError, "The account is not in shard {shard_id}"
    ),
    "LIGHT_CLIENT_HEAD_TOO_OLD": Cause(
        errors.InvalidRequestError,
        "The light client's head is older than the block that certifies the chunk",
        remedy="Pass the hash of a newer block as light_client_head.",
    ),
    "LIMIT_EXCEEDED": Cause(
        errors.InvalidRequestError,
        "The request exceeds a limit of the node",
        remedy="Request less at once.",
    ),
    "UNKNOWN_CHUNK": Cause(errors.UnknownChunkError),
    "INVALID_TRANSACTION": Cause(
        InvalidTransactionError, "The chain refused the transaction: {text}"
    ),
    "UNKNOWN_TRANSACTION": Cause(errors.UnknownTransactionError),
    "TIMEOUT_ERROR": Cause(errors.TransactionTimeoutError),
    "REQUEST_ROUTED": Cause(errors.RequestRoutedError),
    "UNKNOWN_RECEIPT": Cause(errors.UnknownReceiptError),
    "DEPTH_EXCEEDED": Cause(_LIMIT, "The receipt is too deep in the tree of its transaction"),
    "UNSUPPORTED": Cause(_LIMIT, "This host does not support the request: {text}"),
    "OUTCOMES_NOT_STORED": Cause(_LIMIT, "This host does not store outcomes"),
    "MALFORMED_HINT": Cause(_LIMIT, "The hint for the position of the receipt is malformed"),
    "WINDOW_TOO_LARGE": Cause(
        _LIMIT, "The window of {requested} blocks is above the maximum of {maximum} blocks"
    ),
    "BUDGET_EXCEEDED": Cause(_LIMIT, "The search stopped after {scanned} of at most {limit} steps"),
    "UNKNOWN_EPOCH": Cause(errors.UnknownEpochError),
    "VALIDATOR_INFO_UNAVAILABLE": Cause(errors.ValidatorInfoUnavailableError),
    "INCONSISTENT_STATE": Cause(
        errors.ProofNotReadyError, "The state of the node is not consistent yet"
    ),
    "NOT_CONFIRMED": Cause(
        errors.ProofNotReadyError, "{transaction_or_receipt_id} is not confirmed yet"
    ),
    "UNKNOWN_TRANSACTION_OR_RECEIPT": Cause(errors.UnknownTransactionOrReceiptError),
}

# Some responses use other names for the same member.
_ALIASES = {
    "requested_account_id": "account_id",
    "contract_account_id": "account_id",
    "requested_shard_id": "shard_id",
    "requested_transaction_hash": "transaction_hash",
}

_MESSAGE_PATTERNS = (
    re.compile(r"BLOCK HEIGHT: (?P<block_height>[0-9]+)"),
    re.compile(r"BLOCK: (?P<block_hash>\w+)"),
    re.compile(r"access key (?P<public_key>\S+) does not exist"),
    re.compile(r"[Aa]ccount (?P<account_id>\S+) does not exist"),
)


def _members(body: dict[str, Any], name: str) -> dict[str, Any]:
    member = body.get(name)
    return member if isinstance(member, dict) else {}


def _cause_name(body: dict[str, Any]) -> str | None:
    name = _members(body, "cause").get("name")
    return name if isinstance(name, str) else None


def _node_message(body: dict[str, Any], info: dict[str, Any]) -> str:
    """Return the node's message; the most detailed one is often in `data` only."""
    candidates = (body.get("data"), info.get("error_message"), info.get("debug_info"))
    message = next((text for text in candidates if isinstance(text, str) and text), None)
    return message or cut(body.get("message") or body.get("data") or "no reason given")


def _refused_variant(body: dict[str, Any]) -> object:
    variants = (*map(_members(body, "data").get, _WRAPPERS), body.get("InvalidTransaction"))
    return next((value for value in variants if value is not None), None)


def _error_code(body: dict[str, Any]) -> int | None:
    code = body.get("code")
    if isinstance(code, str) and re.fullmatch("-?[0-9]{1,9}", code):
        return int(code)
    return code if isinstance(code, int) else None


def from_rpc(error: object, *, request: str) -> LedgerError:
    """Build the error for a JSON-RPC response's decoded `error`, by its cause, code or message."""
    body = error if isinstance(error, dict) else {"data": error}
    name, info = _cause_name(body), _members(_members(body, "cause"), "info")
    refused, text = _refused_variant(body), _node_message(body, info)
    typed_error: LedgerError
    if refused is not None:
        typed_error = _refusal(refused)
    elif name == "CONTRACT_EXECUTION_ERROR":
        typed_error = _contract_error(info, text)
    elif name in CAUSES:
        typed_error = _cause_error(name, info, text)
    else:
        typed_error = _code_error(body, text)
    typed_error.request, typed_error.rpc_cause = request, name
    return typed_error


def _refusal(refused: object) -> LedgerError:
    """Build the error for a refusal; old nodes put receipt failures into the same member."""
    if variant(refused)[0] == "ActionError":
        return receipt_failure(refused)
    return invalid_transaction(refused)


def _cause_error(name: str, info: dict[str, Any], text: str) -> LedgerError:
    cause = CAUSES[name]
    values = _cause_values(cause.error, info, text)
    details = _attributes(cause.error, values)
    if cause.error is errors.TransactionTimeoutError:
        return _timeout_error(info)
    if cause.error is errors.UnknownBlockError:
        details["block"] = _requested_block(details)
    if cause.elsewhere is not None:
        details["elsewhere"] = cause.elsewhere
    template_values = {"text": text} | values | details
    sentence = fill(cause.sentence or cause.error.template, template_values)
    return cause.error(sentence, remedy=cause.remedy, **details)


def _cause_values(error: type[LedgerError], info: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the values of a cause, completed from aliases and from the node's message."""
    details: dict[str, Any] = {"text": text, "error_message": text}
    if text.isidentifier():  # the data of METHOD_NOT_FOUND is the method name
        details["method_name"] = text
    for pattern in _MESSAGE_PATTERNS:
        if match := pattern.search(text):
            details |= match.groupdict()
            break
    details |= {alias: info[name] for name, alias in _ALIASES.items() if name in info}
    return {name: value for name, value in (details | info).items() if name in error.fields}


def _requested_block(details: dict[str, Any]) -> object:
    reference = details.get("block_reference")
    block_id = reference.get("block_id") if isinstance(reference, dict) else None
    if isinstance(block_id, int):
        details["block_height"] = block_id
    elif isinstance(block_id, str):
        details["block_hash"] = block_id
    height = details.get("block_height")
    return height if height is not None else details.get("block_hash") or reference


_BLOCK_IDS = ("block_id", "light_client_head", "last_block_hash")
_BLOCK_NAMES = ("finality", "sync_checkpoint")


def name_block(error: errors.UnknownBlockError, params: object) -> None:
    """Name the requested block in the error of a node that does not name it."""
    # Methods that take a list have a height or a hash as its first item.
    members = params if isinstance(params, dict) else {}
    ids = params[:1] if isinstance(params, list) else map(members.get, _BLOCK_IDS)
    block_id = next((value for value in ids if value is not None), None)
    named = {name: members[name] for name in _BLOCK_NAMES if name in members}
    details: dict[str, Any] = {
        "block_reference": named if block_id is None else {"block_id": block_id}
    }
    details["block"] = _requested_block(details) or None
    complete = errors.UnknownBlockError(**details)
    error.args = complete.args
    vars(error).update(vars(complete))


def _timeout_error(info: dict[str, Any]) -> errors.TransactionTimeoutError:
    """Build the timeout error; a pending transaction is not looked up elsewhere."""
    cause = info.get("cause")
    member = cause.get("name") if isinstance(cause, dict) else None
    name = member if isinstance(member, str) else variant(cause)[0] if cause else None
    sentence = errors.TransactionTimeoutError.template + (f" ({cut(name)})" if name else "")
    elsewhere = name != "PENDING"
    return errors.TransactionTimeoutError(sentence, cause_name=name, elsewhere=elsewhere)


def _contract_error(info: dict[str, Any], text: str) -> LedgerError:
    values = _cause_values(errors.ContractError, info, text)
    context = _attributes(errors.ContractError, values)
    problem = info.get("vm_error")
    if isinstance(problem, str) or not problem:
        reason = problem or info.get("error")
        message = reason if isinstance(reason, str) else text
        return from_query_text(message, **(context | {"vm_error": message}))
    return _contract_variant(problem, context)


_VIEW_ERRORS: dict[str, type[LedgerError]] = {
    "GuestPanic": errors.ContractPanicError,
    "ProhibitedInView": errors.ProhibitedInViewError,
    **dict.fromkeys(("GasExceeded", "GasLimitExceeded"), errors.ViewGasExceededError),
    "CodeDoesNotExist": errors.NoContractCodeError,
    **dict.fromkeys(_METHOD_RESOLVE, errors.ContractMethodNotFoundError),
}


def _contract_variant(problem: object, context: dict[str, Any]) -> LedgerError:
    name, payload = variant(problem)
    inner = payload if name == "FunctionCallError" else problem
    leaf = _innermost_variant(ReceiptFailedError, "FunctionCallError", inner)
    if leaf.error is ExecutionError and isinstance(leaf.payload, str):
        return from_query_text(leaf.payload, **(context | {"vm_error": leaf.payload}))
    error = _VIEW_ERRORS.get(leaf.name, errors.ContractError)
    details = context | _attributes(error, _values(leaf.payload) | {"reason": leaf.name})
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


def _code_error(body: dict[str, Any], text: str) -> LedgerError:
    code, name = _error_code(body), body.get("name")
    error = _CODES.get(code or 0) or (_NAMES.get(name) if isinstance(name, str) else None)
    if error is errors.RateLimitedError:
        return error(f"Too many requests: {cut(text)}")
    if error is not None:
        details = _attributes(error, _cause_values(error, {}, text) | {"code": code})
        return error(**details)
    if query_error := _query_error(text):
        return query_error
    # A handler error is permanent; other server errors may be temporary.
    retryable = code == _SERVER_ERROR and name != "HANDLER_ERROR"
    message = text if (cause := _cause_name(body)) is None else f"{cause}: {text}"
    return errors.NodeError(text=message, code=code, retryable=retryable)
