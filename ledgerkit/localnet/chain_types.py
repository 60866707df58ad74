"""The values of the chain, which never change in place: accounts, receipts, outcomes, blocks."""

from __future__ import annotations

from msgspec import Struct

from ledgerkit.localnet.execution_errors import Json
from ledgerkit.protocol import AccessKey, Action, CryptoHash, PublicKey, SignedTransaction

NO_CODE = CryptoHash(bytes(32))  # the code hash of an account without code, and the root of nothing
SYSTEM = "system"
SYSTEM_KEY = PublicKey("ed25519", bytes(32))


class Account(Struct, frozen=True):
    """What the chain knows of an account, beside its keys and its contract's records."""

    amount: int
    locked: int = 0
    code_hash: CryptoHash = NO_CODE
    storage_usage: int = 100
    global_contract: CryptoHash | str | None = None  # by the hash of its code, or whose it is


class Receipt(Struct, frozen=True):
    """Something one account sends to another, to be applied where the receiver lives."""

    receipt_id: CryptoHash
    predecessor_id: str
    receiver_id: str


class ActionReceipt(Receipt, frozen=True):
    """Actions, and the data they wait for and give to others."""

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
        """Whether the chain itself sends it."""
        return self.predecessor_id == SYSTEM


class DataReceipt(Receipt, frozen=True):
    """What a call returned, for a callback that waits for it; None if it failed."""

    data_id: CryptoHash
    data: bytes | None
    is_promise_resume: bool = False


class SuccessValue(Struct, frozen=True):
    """It ended, and returned this."""

    value: bytes


class SuccessReceiptId(Struct, frozen=True):
    """It ended, and another receipt will tell the result."""

    receipt_id: CryptoHash


class Failure(Struct, frozen=True):
    """It failed; of a receipt an `ActionError`, of a transaction an `InvalidTxError`."""

    error: Json


class GasCost(Struct, frozen=True):
    """A line of a gas profile."""

    category: str  # ACTION_COST or WASM_HOST_COST
    cost: str
    gas_used: int


class Outcome(Struct, frozen=True):
    """How a transaction was converted, or a receipt executed."""

    id: CryptoHash
    executor_id: str
    logs: tuple[str, ...]
    receipt_ids: tuple[CryptoHash, ...]
    gas_burnt: int
    tokens_burnt: int
    status: SuccessValue | SuccessReceiptId | Failure
    block_height: int
    shard_id: int
    gas_profile: tuple[GasCost, ...] | None = None  # None for a transaction
    # Of each action's receiver, just before: its code's hash, or the global contract it uses.
    contracts: tuple[tuple[str, CryptoHash | str] | None, ...] | None = None


class Proposal(Struct, frozen=True):
    """What a validator wants to have at stake."""

    account_id: str
    public_key: PublicKey
    stake: int


class Chunk(Struct, frozen=True):
    """One shard's part of a block; the results in it are of the application before."""

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
    receipts: tuple[Receipt, ...]  # that this shard sent out in the application before
    encoded_length: int


class Block(Struct, frozen=True):
    """A block, and what the chain knows of it: its header's fields by the header's names."""

    height: int
    hash: CryptoHash
    prev_height: int | None
    prev_hash: CryptoHash
    timestamp_ns: int
    epoch_id: CryptoHash
    next_epoch_id: CryptoHash
    epoch_height: int
    epoch_start_height: int
    ordinal: int
    gas_price: int  # of the next block
    total_supply: int
    random_value: CryptoHash
    last_final_block: CryptoHash
    last_ds_final_block: CryptoHash
    chunks: tuple[Chunk, ...]
    author: str

    @property
    def chunk_mask(self) -> tuple[bool, ...]:
        """Which shards have a new chunk in this block."""
        return tuple(chunk.height_included == self.height for chunk in self.chunks)


class Change(Struct, frozen=True):
    """A change of state: why, of what kind, and the value after it (None: deleted)."""

    cause: tuple[str, CryptoHash | None]  # such as ("receipt_processing", receipt_id)
    kind: str  # account, access_key, data or code
    account_id: str
    key: bytes  # of an access key its packed public key, of data its storage key
    value: Account | AccessKey | bytes | None


class TransactionRecord(Struct):
    """A transaction that is in a block, and what became of it."""

    signed: SignedTransaction
    outcome: Outcome  # of its conversion
    receipt: ActionReceipt  # that it was converted into
    is_local: bool  # signer is receiver: executed in the transaction's own block
