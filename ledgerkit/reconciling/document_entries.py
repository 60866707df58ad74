"""The entries of a statement that come from the documents of transactions."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.block_data.protocol_rules import common_rules, headers_with_rules, rules_by_height
from ledgerkit.block_data.transaction_documents import read_finished_from_node, stream_documents
from ledgerkit.errors import DecodeError, LedgerError, UnknownTransactionError
from ledgerkit.progress import bar
from ledgerkit.reconciling import stakes
from ledgerkit.reconciling.model import GAS_KEY, Entry
from ledgerkit.tracing.trace import Trace
from ledgerkit.verbs.tokens import read_token_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.api.models.transactions import TransactionResponse
    from ledgerkit.frames.tokens import TokenFacts
    from ledgerkit.reconciling.listing import Listed
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
}


class DocumentEntries:
    """
    The entries of transactions; the other attributes are complete once all entries were read.

    `receipt_ids` are those of transfers without a transaction: the indexer does not know each.
    """

    def __init__(self, scope: Scope, is_pool: PoolTest, receipt_ids: Iterable[str | None]) -> None:
        self._scope, self._is_pool = scope, is_pool
        self._receipt_ids = frozenset(receipt_ids)
        self._tokens: dict[str, TokenFacts] = {}  # each contract is asked once, whatever it says
        self.read_receipts: set[str | None] = set()  # of these, those that documents have
        self.flows: list[Entry] = []  # deposits with pools, and withdrawals
        self.unfinished: list[str] = []  # hashes of transactions still running
        self.lost: set[str] = set()  # hashes of transactions whose documents are missing
        self.notes: list[str] = []

    def read(self, listed: list[Listed], start_height: int) -> Iterator[Entry]:
        """Yield the entries after a block in causal order."""
        waiting: list[Placed] = []
        scope = self._scope
        rules = rules_by_height(scope.ledger, (each.height for each in listed))
        with bar(total=len(listed), desc="documents", disable=not scope.progress) as tracker:
            position = 0
            for batch in stream_documents(scope.ledger, (each.tx_hash for each in listed)):
                for tx_hash, document in batch:
                    height = listed[position].height
                    while waiting and waiting[0].place[0] < height:
                        yield heapq.heappop(waiting).entry
                    for placed in self._placed(tx_hash, document, position, rules[height]):
                        if start_height < placed.place[0] <= scope.stop.height:
                            heapq.heappush(waiting, placed)
                    position += 1
                tracker.update(len(batch))
        while waiting:
            yield heapq.heappop(waiting).entry

    def read_signed(self, tx_hashes: Iterable[str]) -> dict[str, list[Entry]]:
        """Read transactions that the account signed from a node, which may not know them."""
        scope, entries = self._scope, {}
        senders = dict.fromkeys(tx_hashes, scope.account_id)
        answers = read_finished_from_node(scope.ledger, senders, must_answer=True)
        for tx_hash, answer in answers.items():
            trace = self._located_trace(answer)
            placed, _ = entries_of(trace, scope.account_id)
            entries[tx_hash] = [stakes.with_pool(e, self._is_pool) for _, e in placed]
            entries[tx_hash] += stakes.stake_entries(trace, scope.account_id, self._is_pool)
        return entries

    def _placed(
        self,
        tx_hash: str,
        document: TransactionResponse | LedgerError,
        position: int,
        rules: Rules | None,
    ) -> list[Placed]:
        if isinstance(document, UnknownTransactionError):
            self.notes.append(f"transaction {tx_hash} is listed, but its document is missing")
            self.lost.add(tx_hash)
            return []
        if isinstance(document, LedgerError):
            raise document
        if self._receipt_ids:
            self.read_receipts |= document.result.receipt_ids() & self._receipt_ids
        trace, own = self._own_entries(tx_hash, document, position, rules)
        flows = stakes.stake_entries(trace, self._scope.account_id, self._is_pool)
        self.flows += flows
        staked = [
            Placed((e.block_height, True, position, len(own) + at, at), e)
            for at, e in enumerate(flows)
        ]
        placed = [Placed(place, stakes.with_pool(e, self._is_pool)) for place, e in own]
        return [each for each in (*placed, *staked) if self._scope.has_asset(each.entry.asset)]

    def _own_entries(
        self, tx_hash: str, document: TransactionResponse, position: int, rules: Rules | None
    ) -> tuple[Trace, list[Placed]]:
        """Return the trace that has all amounts, if one has, and the entries without pools."""
        account_id = self._scope.account_id
        trace = Trace(document.result, document.body, rules=rules, tokens=self._token_facts)
        placed, is_complete = entries_of(trace, account_id, position)
        if not document.result.has_finished():
            self.unfinished.append(tx_hash)
        elif not is_complete:
            senders = {tx_hash: trace.signer_id or ""}  # a node sends gas profiles
            answers = read_finished_from_node(self._scope.ledger, senders, must_answer=True)
            for answer in answers.values():
                blocks = document.result.block_places()
                tokens = self._token_facts
                trace = Trace(answer.result, answer.body, blocks=blocks, rules=rules, tokens=tokens)
                placed, is_complete = entries_of(trace, account_id, position)
            if not is_complete:
                self.notes.append(f"an amount of transaction {tx_hash} is unknown")
        return trace, placed

    def _located_trace(self, answer: TransactionResponse) -> Trace:
        outcome = answer.result.transaction_outcome
        own = [] if outcome is None or outcome.block_hash is None else [outcome.block_hash]
        hashes = list(dict.fromkeys([*own, *answer.result.block_hashes()]))
        headers, rules_in = headers_with_rules(self._scope.ledger, hashes, progress=False)
        blocks = {each: (headers[each].height, headers[each].time_ns or 0) for each in hashes}
        rules = common_rules([rules_in.get(header.epoch_id) for header in headers.values()])
        tokens = self._token_facts
        return Trace(answer.result, answer.body, blocks=blocks, rules=rules, tokens=tokens)

    def _token_facts(self, contract_ids: Sequence[str]) -> dict[str, TokenFacts]:
        unread = [each for each in contract_ids if each not in self._tokens]
        if unread:
            self._tokens |= read_token_facts(self._scope.ledger, unread)
        return {each: self._tokens[each] for each in contract_ids}


# Of one transaction -------------------------------------------------------------------------


class Placed(NamedTuple):
    """An entry, and its place among those of all transactions: first by block."""

    place: tuple[int, bool, int, int, int]
    entry: Entry


def entries_of(trace: Trace, account_id: str, position: int = 0) -> tuple[list[Placed], bool]:
    """
    Return the entries of an account, and whether the document has all amounts and heights.

    `position` is that of the transaction among the others.
    """
    entries, is_complete = [], True
    for index, change in enumerate(trace.balance_timeline()):
        # The balance of an unnamed gas key is burnt: `gas_keys` finds out which one it was.
        if change.account_id != account_id or change.kind == "nft" or change.asset == GAS_KEY:
            continue
        if change.change is None or change.height is None:
            is_complete = False
        elif change.change:
            place = change.height, change.order >= 0, position, change.order, index
            entries.append(Placed(place, _entry(trace, change, change.height, change.change)))
    if entries:
        try:
            headline = trace.headline() or None
        except DecodeError:  # the amounts come from the receipts, which are as documented
            headline = None
        entries = [Placed(place, each._replace(headline=headline)) for place, each in entries]
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
