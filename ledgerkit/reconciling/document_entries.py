"""The entries of a statement that come from the documents of transactions."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.block_data.protocol_rules import common_rules, headers_with_rules, rules_by_height
from ledgerkit.block_data.transaction_documents import read_finished_from_node, stream_documents
from ledgerkit.errors import DecodeError, LedgerError, UnknownTransactionError
from ledgerkit.progress import Bar
from ledgerkit.reconciling import stakes
from ledgerkit.reconciling.model import GAS_KEY, Entry
from ledgerkit.tracing.trace import Trace
from ledgerkit.verbs.token_facts import read_token_facts

if TYPE_CHECKING:
    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.api.models.transactions import TransactionResponse
    from ledgerkit.frames.tokens import TokenFacts
    from ledgerkit.reconciling.listing import ListedTx
    from ledgerkit.reconciling.plan import Scope
    from ledgerkit.reconciling.stakes import PoolTest
    from ledgerkit.tracing.balance_timeline import BalanceChange

_CAUSES = {
    "transfer": "transfer",
    "deposit": "deposit",
    "delegated": "deposit",
    "refund_deposit": "refund",
    "refund_gas": "fee",
    "fee": "fee",
    "contract_reward": "gas_reward",
    "burnt": "storage_burn",
    "beneficiary": "deleted",
    "gas_key": "gas_key",
    "token": "token",
    "multi_token": "token",
    "swap": "swap",
    "intents_deposit": "intents_deposit",
    "intents_withdrawal": "intents_withdrawal",
}


class DocumentEntries:
    """
    The entries of transactions; the other attributes are complete once all entries were read.

    `receipt_ids` are the receipts of transfers whose transaction the indexer does not know.
    """

    def __init__(self, scope: Scope, is_pool: PoolTest, receipt_ids: Iterable[str | None]) -> None:
        self._scope, self._is_pool = scope, is_pool
        self._receipt_ids = frozenset(receipt_ids)
        self._trace = partial(Trace, tokens=self._token_facts)
        self._tokens: dict[str, TokenFacts] = {}  # each contract is read once
        self.read_receipts: set[str | None] = set()  # those of `receipt_ids` that documents have
        self.flows: list[Entry] = []  # deposits with pools, and withdrawals
        self.unfinished: list[str] = []  # hashes of transactions still running
        self.lost: set[str] = set()  # hashes of transactions whose documents are missing
        self.notes: list[str] = []

    def read(self, listed: list[ListedTx], start_height: int) -> Iterator[Entry]:
        """Yield the entries after a block in causal order."""
        waiting: list[OrderedEntry] = []
        scope = self._scope
        rules = rules_by_height(scope.ledger, (transaction.height for transaction in listed))
        with Bar(total=len(listed), desc="documents", disable=not scope.progress) as tracker:
            position = 0
            hashes = (transaction.tx_hash for transaction in listed)
            for batch in stream_documents(scope.ledger, hashes):
                for tx_hash, document in batch:
                    height = listed[position].height
                    while waiting and waiting[0].entry.block_height < height:
                        yield heapq.heappop(waiting).entry
                    for ordered in self._entries_of(tx_hash, document, position, rules[height]):
                        if start_height < ordered.entry.block_height <= scope.stop.height:
                            heapq.heappush(waiting, ordered)
                    position += 1
                tracker.update(len(batch))
        while waiting:
            yield heapq.heappop(waiting).entry

    def read_signed(self, tx_hashes: Iterable[str]) -> dict[str, list[Entry]]:
        """Read transactions that the account signed from a node, which may lack some."""
        scope, entries = self._scope, {}
        senders = dict.fromkeys(tx_hashes, scope.account_id)
        responses = read_finished_from_node(scope.ledger, senders, must_answer=True)
        for tx_hash, response in responses.items():
            trace = self._located_trace(response)
            ordered, _ = ordered_entries(trace, scope.account_id)
            entries[tx_hash] = [stakes.with_pool_cause(e, self._is_pool) for _, e in ordered]
            entries[tx_hash] += stakes.stake_entries(trace, scope.account_id, self._is_pool)
        return entries

    def _entries_of(
        self,
        tx_hash: str,
        document: TransactionResponse | LedgerError,
        position: int,
        rules: Rules | None,
    ) -> list[OrderedEntry]:
        if isinstance(document, UnknownTransactionError):
            self.notes.append(f"transaction {tx_hash} is listed, but its document is missing")
            self.lost.add(tx_hash)
            return []
        if isinstance(document, LedgerError):
            raise document
        if self._receipt_ids:
            self.read_receipts |= document.result.receipt_ids() & self._receipt_ids
        trace, entries = self._balance_entries(tx_hash, document, position, rules)
        flows = stakes.stake_entries(trace, self._scope.account_id, self._is_pool)
        self.flows += flows
        ordered = [(order, stakes.with_pool_cause(e, self._is_pool)) for order, e in entries]
        ordered += [
            ((e.block_height, True, position, len(entries) + index, index), e)
            for index, e in enumerate(flows)
        ]
        return [OrderedEntry(*item) for item in ordered if self._scope.has_asset(item[1].asset)]

    def _balance_entries(
        self, tx_hash: str, document: TransactionResponse, position: int, rules: Rules | None
    ) -> tuple[Trace, list[OrderedEntry]]:
        """Return the entries without stakes, and their trace, read from a node if incomplete."""
        account_id = self._scope.account_id
        trace = self._trace(document.result, document.body, rules=rules)
        entries, is_complete = ordered_entries(trace, account_id, position)
        if not document.result.has_finished():
            self.unfinished.append(tx_hash)
        elif not is_complete:
            senders = {tx_hash: trace.signer_id or ""}  # a node sends gas profiles
            responses = read_finished_from_node(self._scope.ledger, senders, must_answer=True)
            for response in responses.values():
                blocks = document.result.block_places()
                trace = self._trace(response.result, response.body, blocks=blocks, rules=rules)
                entries, is_complete = ordered_entries(trace, account_id, position)
            if not is_complete:
                self.notes.append(f"an amount of transaction {tx_hash} is unknown")
        return trace, entries

    def _located_trace(self, response: TransactionResponse) -> Trace:
        result, outcome = response.result, response.result.transaction_outcome
        first_hash = None if outcome is None else outcome.block_hash
        hashes = list(dict.fromkeys(filter(None, [first_hash, *result.block_hashes()])))
        headers, rules_in = headers_with_rules(self._scope.ledger, hashes, progress=False)
        blocks = {name: (headers[name].height, headers[name].time_ns or 0) for name in hashes}
        rules = common_rules([rules_in.get(header.epoch_id) for header in headers.values()])
        return self._trace(result, response.body, blocks=blocks, rules=rules)

    def _token_facts(self, contract_ids: Sequence[str]) -> dict[str, TokenFacts]:
        unread = [name for name in contract_ids if name not in self._tokens]
        if unread:
            self._tokens |= read_token_facts(self._scope.ledger, unread)
        return {name: self._tokens[name] for name in contract_ids}


# One transaction ----------------------------------------------------------------------------


class OrderedEntry(NamedTuple):
    """An entry with its sort key among the entries of all transactions."""

    order: tuple[int, bool, int, int, int]  # the block height first
    entry: Entry


def ordered_entries(
    trace: Trace, account_id: str, position: int = 0
) -> tuple[list[OrderedEntry], bool]:
    """
    Return the entries of an account, and whether the document has all amounts and heights.

    `position` is the index of the transaction in the list of transactions.
    """
    entries, is_complete = [], True
    for index, change in enumerate(trace.balance_timeline()):
        # A change of an unnamed gas key: `explain_deleted_gas_keys` finds the key.
        if change.account_id != account_id or change.kind == "nft" or change.asset == GAS_KEY:
            continue
        if change.change is None or change.height is None:
            is_complete = False
        elif change.change:
            order = change.height, change.order >= 0, position, change.order, index
            entries.append(OrderedEntry(order, _entry(trace, change, change.height, change.change)))
    if entries:
        try:
            headline = trace.headline() or None
        except DecodeError:  # the amounts do not depend on the headline
            headline = None
        entries = [OrderedEntry(order, e._replace(headline=headline)) for order, e in entries]
    return sorted(entries), is_complete


def _entry(trace: Trace, change: BalanceChange, height: int, amount: int) -> Entry:
    return Entry(
        block_height=height,
        timestamp_ns=change.time_ns,
        asset=change.asset,
        cause=_cause(change, amount),
        change=amount,
        tx_hash=trace.tx_hash,
        receipt_id=change.receipt_id,
        counterparty_id=change.counterparty_id,
        method_name=change.method_name,
        memo=change.memo,
    )


def _cause(change: BalanceChange, amount: int) -> str:
    kind, actions = change.kind, (change.actions or "").split("+")
    if kind in {"token", "multi_token"} and change.counterparty_id is None:
        return "mint" if amount > 0 else "burn"
    if kind == "burnt" and change.asset.startswith(GAS_KEY):
        return "deleted"
    if kind in {"transfer", "deposit"} and amount > 0 and "CreateAccount" in actions:
        return "created"
    if kind == "undelivered":
        return "transfer" if set(actions) <= {"CreateAccount", "Transfer"} else "deposit"
    return _CAUSES[kind]
