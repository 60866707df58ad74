"""
The index behind the Transactions API: transactions with their receipts, by account and by block.

A transaction is listed once its first receipt is executed. Its row for an account is sorted by the
transaction's block, and changes with each further receipt.
"""

# Source: FastNEAR's indexer of transactions, src/transactions.rs: process_block,
# process_transaction, add_accounts_from_receipt and add_accounts_from_logs.

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ledgerkit.localnet.block_follower import BlockFollower
from ledgerkit.localnet.chain_types import (
    SYSTEM,
    ActionReceipt,
    Block,
    Chunk,
    DataReceipt,
    Outcome,
    Receipt,
    SuccessReceiptId,
    SuccessValue,
    TransactionRecord,
)
from ledgerkit.localnet.contract_sdk import decode_event, from_json
from ledgerkit.protocol import CryptoHash, FunctionCall
from ledgerkit.protocol.actions import SignedDelegate
from ledgerkit.validation import is_account_id

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

# The members of arguments and of events' data that may name an account.
_ARGUMENTS = (
    *("receiver_id", "account_id", "sender_id", "new_account_id", "predecessor_account_id"),
    *("contract_id", "owner_id", "token_owner_id", "nft_contract_id", "token_account_id"),
    *("creator_id", "referral_id", "previous_owner_id", "seller_id", "buyer_id", "user_id"),
    *("beneficiary_id", "staking_pool_account_id", "owner_account_id"),
)
_EVENT_MEMBERS = (
    *("account_id", "owner_id", "old_owner_id", "new_owner_id", "payer_id", "farmer_id"),
    *("validator_id", "liquidation_account_id", "contract_id", "nft_contract_id"),
)


class RoleFilters(Struct, kw_only=True):
    """The roles of an account in a transaction that a request selects or excludes."""

    is_signer: bool | None = None
    is_delegated_signer: bool | None = None
    is_real_signer: bool | None = None
    is_any_signer: bool | None = None
    is_predecessor: bool | None = None
    is_explicit_refund_to: bool | None = None
    is_receiver: bool | None = None
    is_real_receiver: bool | None = None
    is_function_call: bool | None = None
    is_action_arg: bool | None = None
    is_event_log: bool | None = None


ROLES = RoleFilters.__struct_fields__


class Appearance(Struct, frozen=True):
    """A receipt, the block in which it first appeared, and its position there."""

    receipt: Receipt
    block: Block
    index: int


class ReceiptRow(Struct):
    """An executed receipt or a used data receipt, with the block and position of that."""

    appearance: Appearance
    transaction: IndexedTransaction
    block: Block
    index: int
    shard: int  # the shard's position
    outcome: Outcome | None  # None for a data receipt


class IndexedTransaction(Struct):
    """A transaction with its receipts so far, and the roles of accounts in it."""

    record: TransactionRecord
    block: Block
    index: int  # in the block, over all shards
    missing: int = 1  # receipts that are not executed yet
    receipts: list[ReceiptRow] = []
    data_receipts: list[ReceiptRow] = []
    roles: dict[str, set[str]] = {}  # by account id

    @property
    def delegate(self) -> tuple[str, str] | None:
        """The sender and the receiver of the first delegate action, if there is one."""
        for action in self.record.signed.transaction.actions:
            if isinstance(action, SignedDelegate):
                delegated = action.delegate_action
                return str(delegated.sender_id), str(delegated.receiver_id)
        return None

    @property
    def real_accounts(self) -> tuple[str, str]:
        """The signer and the receiver of the delegate action, or of the transaction."""
        tx = self.record.signed.transaction
        return self.delegate or (str(tx.signer_id), str(tx.receiver_id))

    @property
    def is_success(self) -> bool:
        """True if the result is known and not a failure; other receipts may still be missing."""
        outcomes = {row.outcome.id: row.outcome for row in self.receipts if row.outcome}
        status = self.record.outcome.status
        while isinstance(status, SuccessReceiptId):
            outcome = outcomes.get(status.receipt_id)
            if outcome is None:
                return False
            status = outcome.status
        return isinstance(status, SuccessValue)


class IndexedBlock(Struct):
    """A block with its transactions and the receipts executed or used in it."""

    block: Block
    transactions: list[IndexedTransaction] = []
    receipts: list[ReceiptRow] = []
    appeared: int = 0  # receipts that first appeared in it


class TransactionIndex(BlockFollower):
    """The transactions of a world, by account, hash, receipt and block."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.blocks: dict[int, IndexedBlock] = {}  # by height, in order
        self._transactions: dict[CryptoHash, IndexedTransaction] = {}
        self._receipts: dict[CryptoHash, ReceiptRow] = {}
        self._by_account: dict[str, list[tuple[int, int, CryptoHash]]] = {}
        self._waiting: dict[CryptoHash, Appearance] = {}
        self._data: dict[tuple[str, CryptoHash], Appearance] = {}
        self._read_block(self.block)

    # Reading -----------------------------------------------------------------------------

    def transaction(self, tx_hash: CryptoHash) -> IndexedTransaction | None:
        transaction = self._transactions.get(tx_hash)
        return transaction if transaction is not None and transaction.receipts else None

    def receipt(self, receipt_id: CryptoHash) -> ReceiptRow | None:
        return self._receipts.get(receipt_id)

    def positions(self, account_id: str) -> Sequence[tuple[int, int, CryptoHash]]:
        """List an account's transactions, sorted: height, index in the block, hash."""
        return self._by_account.get(account_id, ())

    # Following the chain -----------------------------------------------------------------

    def _read_block(self, block: Block) -> None:
        entry = self.blocks[block.height] = IndexedBlock(block)
        for chunk in block.new_chunks:
            for receipt in (*self._read_transactions(chunk, entry), *chunk.receipts):
                self._read_new_receipt(receipt, entry)
        for action_receipt, outcome in self._world.executions(block):
            self._read_execution(action_receipt, outcome, entry)

    def _read_transactions(self, chunk: Chunk, entry: IndexedBlock) -> list[ActionReceipt]:
        """Read the transactions of a chunk; return their local receipts."""
        local = []
        for signed in chunk.transactions:
            record = self._world.transaction(signed.hash)
            if record is None:
                raise LookupError(f"a transaction of block {entry.block.height} has no record")
            transaction = IndexedTransaction(record, entry.block, len(entry.transactions))
            entry.transactions.append(transaction)
            self._transactions[signed.hash] = transaction
            if record.is_local:
                local.append(record.receipt)
        return local

    def _read_new_receipt(self, receipt: Receipt, entry: IndexedBlock) -> None:
        """Record where a receipt first appears; a global contract's has no transaction."""
        appearance = Appearance(receipt, entry.block, entry.appeared)
        entry.appeared += 1
        if isinstance(receipt, ActionReceipt):
            self._waiting[receipt.receipt_id] = appearance
        elif isinstance(receipt, DataReceipt):
            # If two data receipts resume a yielded call, the first one counts.
            self._data.setdefault((receipt.receiver_id, receipt.data_id), appearance)

    def _read_execution(
        self, receipt: ActionReceipt, outcome: Outcome, entry: IndexedBlock
    ) -> None:
        transaction = self._transactions[self._world.origin(outcome.id)]
        appearance = self._waiting.pop(outcome.id)
        for data_id in receipt.input_data_ids:
            data = self._data.pop((receipt.receiver_id, data_id))
            transaction.data_receipts.append(self._add_row(data, transaction, entry, outcome))
        row = self._add_row(appearance, transaction, entry, outcome)
        transaction.receipts.append(row)
        transaction.missing += len(outcome.receipt_ids) - 1
        for receipt_id in outcome.receipt_ids:
            child = self._world.receipt(receipt_id)
            if isinstance(child, ActionReceipt) and child.is_promise_yield:
                self._read_new_receipt(child, entry)  # it stays on the shard, in no chunk
        self._add_roles(transaction, receipt, outcome.logs)

    def _add_row(
        self,
        appearance: Appearance,
        transaction: IndexedTransaction,
        entry: IndexedBlock,
        outcome: Outcome,
    ) -> ReceiptRow:
        receipt_outcome = None if isinstance(appearance.receipt, DataReceipt) else outcome
        index, shard = len(entry.receipts), outcome.shard_id
        row = ReceiptRow(appearance, transaction, entry.block, index, shard, receipt_outcome)
        entry.receipts.append(row)
        self._receipts[appearance.receipt.receipt_id] = row
        return row

    def _add_roles(
        self, transaction: IndexedTransaction, receipt: ActionReceipt, logs: Iterable[str]
    ) -> None:
        roles = (*_transaction_roles(transaction), *_receipt_roles(receipt), *_log_roles(logs))
        for account_id, *names in roles:
            if account_id not in transaction.roles:
                tx_hash = transaction.record.signed.hash
                position = (transaction.block.height, transaction.index, tx_hash)
                insort(self._by_account.setdefault(account_id, []), position)
            transaction.roles.setdefault(account_id, set()).update(names)


# Roles: an account and the names of its roles ------------------------------------------------

_Roles = list[tuple[str, ...]]


def _transaction_roles(transaction: IndexedTransaction) -> _Roles:
    signer_id, delegate = str(transaction.record.signed.transaction.signer_id), transaction.delegate
    real_signer_id, real_receiver_id = transaction.real_accounts
    roles: _Roles = [
        (signer_id, "is_signer", "is_any_signer"),
        (real_signer_id, "is_real_signer"),
        (real_receiver_id, "is_real_receiver"),
    ]
    if delegate is not None:
        roles.append((delegate[0], "is_delegated_signer", "is_any_signer"))
    return roles


def _receipt_roles(receipt: ActionReceipt) -> _Roles:
    receiver_id, predecessor_id = str(receipt.receiver_id), str(receipt.predecessor_id)
    roles: _Roles = [(receiver_id, "is_receiver"), (predecessor_id, "is_predecessor")]
    if receipt.refund_to is not None:
        roles.append((str(receipt.refund_to), "is_explicit_refund_to"))
    for action in receipt.actions:
        if isinstance(action, FunctionCall):
            roles.append((receiver_id, "is_function_call"))
            roles += _named_accounts(from_json(action.args), _ARGUMENTS, "is_action_arg")
    is_delegation = len(receipt.actions) == 1 and isinstance(receipt.actions[0], SignedDelegate)
    if not is_delegation and predecessor_id != SYSTEM:
        roles.append((receiver_id, "is_real_receiver"))
    return roles


class _Event(Struct):
    """An event in a log (NEP-297), with all members that the indexer requires."""

    version: str
    standard: str
    event: str
    data: list[Any]


def _log_roles(logs: Iterable[str]) -> _Roles:
    roles: _Roles = []
    for log in logs:
        event = decode_event(log, _Event)
        for data in () if event is None else event.data:
            roles += _named_accounts(data, _EVENT_MEMBERS, "is_event_log")
    return roles


def _named_accounts(value: object, members: Iterable[str], role: str) -> _Roles:
    if not isinstance(value, dict):
        return []
    values = [value.get(member) for member in members]
    return [(value, role) for value in values if is_account_id(value)]
