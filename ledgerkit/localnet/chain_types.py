"""The immutable values of the chain: accounts, receipts, outcomes, chunks, blocks, changes."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ledgerkit.localnet.execution_errors import Json
from ledgerkit.protocol import (
    AccessKey,
    Action,
    CryptoHash,
    PublicKey,
    Signature,
    SignedTransaction,
)

# The code hash of an account without code, and the Merkle root of an empty list.
NO_CODE = CryptoHash(bytes(32))
ACCOUNT_BYTES = 100  # the storage of an account without keys, code and records
SYSTEM = "system"  # the predecessor of refunds
SYSTEM_KEY = PublicKey("ed25519", bytes(32))


class Account(Struct, frozen=True, gc=False):
    """An account, without its access keys and its contract's storage records."""

    amount: int
    locked: int = 0
    code_hash: CryptoHash = NO_CODE
    storage_usage: int = ACCOUNT_BYTES
    global_contract: CryptoHash | str | None = None  # by code hash, or by its owner's account id
    bootstrap_nonce: int | None = None  # set in a universal account without its initial state

    @property
    def contract(self) -> tuple[str, CryptoHash | str] | None:
        """The code that the account runs, as an outcome's metadata names it."""
        identifier = self.global_contract
        if identifier is not None:
            is_hash = isinstance(identifier, CryptoHash)
            return "global_hash" if is_hash else "global_account_id", identifier
        return None if self.code_hash == NO_CODE else ("local", self.code_hash)

    def plus(self, *, amount: int = 0, locked: int = 0, storage: int = 0) -> Account:
        """Return the account with changed balances in yoctoNEAR and bytes of storage."""
        return Account(
            self.amount + amount,
            self.locked + locked,
            self.code_hash,
            self.storage_usage + storage,
            self.global_contract,
            self.bootstrap_nonce,
        )


class Receipt(Struct, frozen=True, gc=False):
    """A message from one account to another, applied on the receiver's shard."""

    receipt_id: CryptoHash
    predecessor_id: str
    receiver_id: str


class ActionReceipt(Receipt, frozen=True, gc=False):
    """A receipt with actions, the data it waits for and the receivers of its result."""

    signer_id: str
    signer_public_key: PublicKey
    gas_price: int
    actions: tuple[Action, ...]
    input_data_ids: tuple[CryptoHash, ...] = ()
    output_data_receivers: tuple[tuple[CryptoHash, str], ...] = ()
    refund_to: str | None = None
    is_promise_yield: bool = False

    @property
    def is_refund(self) -> bool:
        """True if the chain itself sends it."""
        return self.predecessor_id == SYSTEM

    @property
    def deposit_refund_receiver(self) -> str:
        return self.refund_to or self.predecessor_id


class DataReceipt(Receipt, frozen=True, gc=False):
    """A receipt with the result of a call, for the callback that waits for it."""

    data_id: CryptoHash
    data: bytes | None  # None if the call failed
    is_promise_resume: bool = False


class DistributionReceipt(Receipt, frozen=True, gc=False):
    """A receipt that carries a global contract to a shard, and from there to the next."""

    contract: CryptoHash | str  # by code hash, or by its owner's account id
    code_hash: CryptoHash
    target_shard: int  # the shard's id
    nonce: int
    delivered_shards: tuple[int, ...] = ()


class SuccessValue(Struct, frozen=True, gc=False):
    """The status of an execution that returned a value."""

    value: bytes


class SuccessReceiptId(Struct, frozen=True, gc=False):
    """The status of an execution whose result is that of another receipt."""

    receipt_id: CryptoHash


class Failure(Struct, frozen=True):
    """The status of a failed receipt (an `ActionError`) or transaction (an `InvalidTxError`)."""

    error: Json


class GasCost(Struct, frozen=True, gc=False):
    """One line of a gas profile."""

    category: str  # ACTION_COST or WASM_HOST_COST
    cost: str
    gas_used: int


class Outcome(Struct, frozen=True, gc=False):
    """The outcome of a transaction's conversion or of a receipt's execution."""

    id: CryptoHash
    executor_id: str
    logs: tuple[str, ...]
    receipt_ids: tuple[CryptoHash, ...]
    gas_burnt: int
    tokens_burnt: int
    status: SuccessValue | SuccessReceiptId | Failure
    block_height: int
    shard_id: int  # the shard's position
    gas_profile: tuple[GasCost, ...] | None = None  # None for a transaction
    # The contract of each action's receiver before the action: ("local", code hash),
    # ("global_hash", code hash) or ("global_account_id", account id).
    contracts: tuple[tuple[str, CryptoHash | str] | None, ...] | None = None


class Proposal(Struct, frozen=True, gc=False):
    """The stake that an account proposes to validate with."""

    account_id: str
    public_key: PublicKey
    stake: int


class Chunk(Struct, frozen=True):
    """One shard's part of a block, with the results of the previous chunk's application."""

    shard_id: int
    chunk_hash: CryptoHash
    prev_block_hash: CryptoHash
    prev_state_root: CryptoHash
    outcome_root: CryptoHash
    outgoing_receipts_root: CryptoHash
    tx_root: CryptoHash
    height_created: int
    height_included: int
    gas_used: int
    balance_burnt: int
    validator_proposals: tuple[Proposal, ...]
    transactions: tuple[SignedTransaction, ...]
    receipts: tuple[Receipt, ...]  # sent by this shard in the previous application
    encoded_length: int


class Block(Struct, frozen=True, kw_only=True):
    """A block: the fields of its header by their names, and its position in the epoch."""

    # The defaults are the values of genesis.
    height: int
    hash: CryptoHash = NO_CODE
    prev_height: int | None = None
    prev_hash: CryptoHash = NO_CODE
    timestamp_ns: int
    epoch_id: CryptoHash = NO_CODE  # zeros in genesis and the epoch after it, as in nearcore
    next_epoch_id: CryptoHash = NO_CODE
    epoch_height: int = 0
    epoch_start_height: int
    ordinal: int = 0
    gas_price: int  # the next block's
    total_supply: int
    random_value: CryptoHash
    last_final_block: CryptoHash = NO_CODE
    last_ds_final_block: CryptoHash = NO_CODE
    chunks: tuple[Chunk, ...]
    author: str
    next_bp_hash: CryptoHash = NO_CODE  # commits to the next epoch's validators
    block_merkle_root: CryptoHash = NO_CODE  # over the hashes of all earlier blocks
    approvals: tuple[Signature | None, ...] = ()  # approvals of the previous block, by validator
    rest_hash: CryptoHash = NO_CODE  # the hash of the header's part that light clients do not read
    signature: Signature | None = None  # signs the hash; None if the producer's key is unknown

    @property
    def new_chunks(self) -> list[Chunk]:
        """The chunks that this block does not repeat from the block before."""
        return [chunk for chunk in self.chunks if chunk.height_included == self.height]

    @property
    def chunk_mask(self) -> tuple[bool, ...]:
        """For each shard: True if this block has a new chunk of it."""
        return tuple(chunk.height_included == self.height for chunk in self.chunks)


class Change(Struct, frozen=True, gc=False):
    """A change of the state, with its cause."""

    cause: tuple[str, CryptoHash | None]  # such as ("receipt_processing", receipt_id)
    kind: str  # account, access_key, gas_key_nonce, data, global_code or code
    account_id: str
    # The packed public key of an access key, with the index for a gas key's nonce; or a storage
    # record's key.
    key: bytes
    value: Account | AccessKey | int | bytes | None  # the new value; None: deleted


class TransactionRecord(Struct):
    """A transaction that is in a block, with its outcome and its receipt."""

    signed: SignedTransaction
    outcome: Outcome  # the conversion's
    receipt: ActionReceipt  # the conversion's result
    is_local: bool  # signer is receiver: the receipt is executed in the transaction's own block


class BlockContext(Struct, frozen=True):
    """The values of a block that the execution of its receipts and view calls depends on."""

    height: int
    timestamp_ns: int
    epoch_height: int
    random_value: CryptoHash
    gas_price: int
    validator_stakes: Mapping[str, int]  # yoctoNEAR


class CallContext(Struct, frozen=True, kw_only=True):
    """The context of a call; by default the chain itself calls, outside of any receipt."""

    current_account_id: str
    account: Account  # with the attached deposit
    block: BlockContext
    signer_id: str = SYSTEM
    signer_public_key: PublicKey = SYSTEM_KEY
    predecessor_id: str = SYSTEM
    input: bytes
    attached_deposit: int = 0
    prepaid_gas: int
    random_seed: bytes = bytes(32)
    action_hash: CryptoHash = NO_CODE
    promise_results: tuple[bytes | None, ...] = ()
    data_receivers: tuple[str, ...] = ()  # the accounts that wait for this call's result
    is_view: bool = False
    fixed_gas: int | None = None  # replaces the sum of the host functions' gas
    code_size: int = 0
    chain_id: str = ""
    refund_to: str = SYSTEM  # receives the deposits if the receipt fails
