"""Collecting blocks from block documents: each height with all receipts of its transactions."""

from __future__ import annotations

from contextlib import closing
from itertools import count, groupby
from typing import TYPE_CHECKING, Any

from ledgerkit.block_data.block_tables import block_tables
from ledgerkit.block_data.contents import DocumentContents, read_contents
from ledgerkit.block_data.headers import Skipped
from ledgerkit.collecting.blocks import skipped
from ledgerkit.collecting.outcomes import Outcome, hold_unanswered
from ledgerkit.collecting.sources import height_subject
from ledgerkit.frames.collected import TRACED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ledgerkit.api.calls import Surface
    from ledgerkit.block_data.contents import ContentsRead
    from ledgerkit.collecting.sources import Subject
    from ledgerkit.ledger import Ledger


class DocumentReader:
    """
    A reader of block heights from block documents.

    Parameters
    ----------
    views
        Some of ``collected.VIEWS["blocks"]``.
    verify
        Whether a document that the chain does not commit to is an error.
    """

    surfaces: tuple[Surface, ...] = ("blocks",)

    def __init__(self, views: Sequence[str], *, verify: bool = False) -> None:
        self._views = tuple(views)
        self._verify = verify

    @property
    def is_traced(self) -> bool:
        """True if a view has the receipts of transactions."""
        return not set(TRACED).isdisjoint(self._views)

    def read(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[list[Outcome]]:
        """Read heights; yield their outcomes in order, once their transactions are complete."""
        return hold_unanswered(self._read_runs(ledger, subjects), "heights")

    def tables(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        """Return a `pyarrow.Table` for each view; raise `DecodeError` if a value fits no column."""
        contents = [value for _, value in outcomes if isinstance(value, DocumentContents)]
        return block_tables(self._views, contents)

    def _read_runs(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[list[Outcome]]:
        """Read each run of consecutive heights."""
        numbers = count()
        for _, run in groupby(subjects, key=lambda subject: subject.position - next(numbers)):
            heights = (subject.position for subject in run)
            reads = read_contents(ledger, heights, is_traced=self.is_traced, verify=self._verify)
            with closing(reads):
                for read in reads:
                    yield [outcome_of(read)]


def outcome_of(read: ContentsRead) -> Outcome:
    """Return the outcome of a height."""
    subject = height_subject(read.height)
    if isinstance(read.value, Skipped):
        return skipped(subject, read.value)
    return Outcome(subject, read.value)
