"""Heights without a block: those that the chain skipped, told from those a host has dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.collecting import request_scheduling
from ledgerkit.errors import LedgerError, UnknownBlockError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ledgerkit.api.models.chain import Block
    from ledgerkit.client import Ledger
    from ledgerkit.collecting.account_requests import Outcome
    from ledgerkit.collecting.request_scheduling import Inquiry

SKIPPED = "skipped"
_LONGEST = 10_000  # more heights in a row are not held back until the next block is known
_SLICES = (1, 2, 4, 8, 16, 32, 64, 128)  # how many heights above a gap are asked for at once


class Absent(NamedTuple):
    """The host knows no block of a height."""

    error: UnknownBlockError


def settled(ledger: Ledger, batches: Iterable[list[Outcome]]) -> Iterator[list[Outcome]]:
    """
    Decide about heights without a block.

    Parameters
    ----------
    ledger
        The ledger that was asked about heights.
    batches
        Heights in their order, with `Absent`, an error, or what has the block as ``block``.

    Yields
    ------
    outcomes
        The same heights. One that was skipped, as the parent of the next block proves, has a
        problem; any other one that was absent has an error.
    """
    gap: list[Outcome] = []
    for batch in batches:
        ready = []
        for outcome in batch:
            if gap and not _widens(gap, outcome):
                ready += _judged(gap, _parent_of(ledger, gap, outcome))
                gap = []
            (gap if isinstance(outcome.value, Absent) else ready).append(outcome)
        yield ready
    if gap:
        yield _judged(gap, _parent_of(ledger, gap, None))


def _widens(gap: Sequence[Outcome], outcome: Outcome) -> bool:
    """Tell whether a height belongs to the gap below it."""
    follows = outcome.subject.position == gap[-1].subject.position + 1
    return isinstance(outcome.value, Absent) and follows and len(gap) < _LONGEST


def _parent_of(ledger: Ledger, gap: Sequence[Outcome], after: Outcome | None) -> int | LedgerError:
    """Find the height of the last block below the next one above a gap."""
    last = gap[-1].subject
    block = getattr(after.value, "block", None) if after else None
    if after is None or after.subject.position != last.position + 1:
        block = None
    found: int | LedgerError = request_scheduling.answer(
        ledger, last, _parent(last.position, block)
    )
    return found


def _parent(height: int, block: Block | None) -> Inquiry:
    """Ask for the next block above a height, where it is not known, and for its parent."""
    header = block.header if block else (yield from _next(height))
    if header.prev_height is not None:
        return header.prev_height
    [parent] = yield [
        rpc.block(validation.block_reference(header.prev_hash))
    ]  # old nodes do not tell its height
    return parent if isinstance(parent, LedgerError) else parent.header.height


def _next(height: int) -> Any:
    """Ask for the next block above a height."""
    found: list[Any] = []
    for size in _SLICES:  # each begins at twice the distance of the one before
        above = range(height + size, height + 2 * size)
        found = yield [rpc.block(validation.block_reference(one)) for one in above]
        for one in found:
            if not isinstance(one, LedgerError):
                return one.header
            if not isinstance(one, UnknownBlockError):
                raise one
    raise found[-1]


def _judged(gap: Sequence[Outcome], parent: int | LedgerError) -> list[Outcome]:
    """Say of each height in a gap whether it was skipped."""
    return [_judge(outcome, parent) for outcome in gap]


def _judge(outcome: Outcome, parent: int | LedgerError) -> Outcome:
    """Say of one height whether it was skipped."""
    subject, absent = outcome
    if isinstance(parent, LedgerError) and not isinstance(parent, UnknownBlockError):
        return outcome._replace(value=parent)
    if isinstance(parent, int) and parent < subject.position:
        told = f"the chain skipped height {subject.text}: the block before it is {parent}"
        skipped = subject._replace(problem=SKIPPED, message=told)
        return outcome._replace(subject=skipped, value=absent.error)
    msg = f"block {subject.text} is not known to this host, and nothing shows it was skipped"
    return outcome._replace(value=UnknownBlockError(msg, remedy=_ARCHIVE))


_ARCHIVE = "Connect with archival_rpc_url=, whose host keeps every block, and retry_failed=True."
