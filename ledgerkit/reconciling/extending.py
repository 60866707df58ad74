"""
Extending a statement to a later block.

The result equals a statement that is built in one go. All entries after a cut are built again: the
cut lies before the transactions that were still running, and before the last 1,000 blocks and
their gaps, because a service may have been behind then. Rewards and the balances at both ends are
read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from ledgerkit.errors import InvalidRequestError
from ledgerkit.ledger import Ledger, locate_arguments
from ledgerkit.reconciling.building import Builder
from ledgerkit.reconciling.listing import ListedTx, available_documents
from ledgerkit.reconciling.model import STAKE, Entry, StatementData
from ledgerkit.reconciling.plan import Scope

if TYPE_CHECKING:
    from ledgerkit.block_search.bisection import Point
    from ledgerkit.reconciling.document_entries import DocumentEntries
    from ledgerkit.reconciling.entry_store import EntryStore
    from ledgerkit.reconciling.statement import Statement

_RECENT = 1_000  # blocks by which the services may have been behind


class Continuation(Builder):
    """The builder of a statement that continues an earlier one; its last block is `stop`."""

    def __init__(
        self, ledger: Ledger, earlier: Statement, stop: Point, *, progress: bool = True
    ) -> None:
        facts = earlier.facts
        _check_continuation(ledger, facts, stop)
        cut = locate_arguments(ledger, {"at": _cut_height(ledger, facts)})["at"]
        assets = None if facts.assets is None else tuple(facts.assets)
        has_values = facts.n_valued is not None
        scope = Scope(ledger, facts.account_id, cut, stop, assets, progress, has_values)
        super().__init__(scope, unfinished_hashes=facts.unfinished)
        self._earlier, self._cut = earlier, cut.height
        self._first = facts.start

    def _from_documents(
        self, documents: DocumentEntries, listed: list[ListedTx], start: Point
    ) -> Iterator[Entry]:
        flows = []
        for entry in takewhile(self._is_before_cut, self._earlier.store):
            if entry.asset.startswith(STAKE):
                flows.append(entry)
            if entry.cause != "staking_reward":
                yield entry
        yield from super()._from_documents(documents, listed, start)
        self._flows = flows + [flow for flow in self._flows if not self._is_before_cut(flow)]

    def _is_before_cut(self, entry: Entry) -> bool:
        return entry.block_height <= self._cut

    def _assets_of(self, store: EntryStore, listed: Iterable[str]) -> list[str]:
        assets = super()._assets_of(store, listed)
        return list(dict.fromkeys([*assets, *self._earlier.facts.opening]))


def _check_continuation(ledger: Ledger, facts: StatementData, stop: Point) -> None:
    if ledger.network.name != facts.network:
        expected = f"a ledger of {facts.network}, as the statement is"
        raise InvalidRequestError.refuse("ledger", ledger.network.name, expected)
    if stop.height < facts.stop.height:
        expected = f"a block from {facts.stop.height + 1} on, where the statement stops now"
        raise InvalidRequestError.refuse("stop", stop.height + 1, expected)


def _cut_height(ledger: Ledger, facts: StatementData) -> int:
    """Return the height up to which the entries of a statement are final."""
    recent = facts.stop.height - _RECENT
    heights = [recent]
    for _, document in available_documents(ledger, facts.unfinished):
        outcome = document.result.transaction_outcome
        if outcome is not None and outcome.block_height is not None:
            heights.append(outcome.block_height - 1)
    heights += [gap.start_height for gap in facts.gaps if gap.stop_height > recent]
    return max(facts.start.height, min(heights))
