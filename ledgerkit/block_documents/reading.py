"""Reading the documents of many heights in order, each block or the proof that it was skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ledgerkit.api.models.block_documents import BlockDocument
    from ledgerkit.client import Ledger
    from ledgerkit.errors import LedgerError


class Skipped(NamedTuple):
    """A height without a block; the next block has a parent below it."""

    previous_height: int  # of that parent


class DocumentRead(NamedTuple):
    """What was read of one height."""

    height: int
    value: BlockDocument | Skipped | LedgerError
    size: int = 0  # bytes of the document


def read_documents(ledger: Ledger, heights: Iterable[int]) -> Iterator[DocumentRead]:
    """
    Read the documents of heights, which ascend; yield one result for each, in order.

    Requests are sent ahead of the consumer, as many at a time as the ledger allows, and those
    under way are cancelled when the iterator is closed. A height that could not be read yields
    its error, and those after it are read all the same. No height is waited for.
    """
    raise NotImplementedError
