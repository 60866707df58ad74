"""Heights without a block: skipped by the chain, or discarded by the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.collecting import outcomes
from ledgerkit.collecting.manifests import SKIPPED
from ledgerkit.collecting.outcomes import Outcome
from ledgerkit.errors import LedgerError, UnknownBlockError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ledgerkit.api.models.chain import Block, BlockHeader
    from ledgerkit.collecting.sources import Subject
    from ledgerkit.ledger import Ledger
    from ledgerkit.transport.session import Reader

_LONGEST_GAP = 10_000  # a longer gap is resolved before its upper end is known
_SLICES = (1, 2, 4, 8, 16, 32, 64, 128)  # numbers of heights above a gap to request at once


class Absent(NamedTuple):
    """The value of a height at which the host has no block."""

    error: UnknownBlockError


def resolve_absent(ledger: Ledger, batches: Iterable[list[Outcome]]) -> Iterator[list[Outcome]]:
    """
    Determine which heights without a block were skipped by the chain.

    Parameters
    ----------
    ledger
        The ledger that heights are read from.
    batches
        Heights in order, with `Absent`, an error, or contents that have a ``block``.

    Yields
    ------
    outcomes
        The same heights. A height was skipped if the parent of the next block is below it:
        it gets the problem ``skipped``. Any other absent height gets an error.
    """
    gap: list[Outcome] = []
    for batch in batches:
        ready = []
        for outcome in batch:
            if gap and not _extends(gap, outcome):
                ready += _resolved(gap, _parent_height(ledger, gap, outcome))
                gap = []
            (gap if isinstance(outcome.value, Absent) else ready).append(outcome)
        yield ready
    if gap:
        yield _resolved(gap, _parent_height(ledger, gap, None))


def _extends(gap: Sequence[Outcome], outcome: Outcome) -> bool:
    """Return True if an outcome continues the gap below it."""
    follows = outcome.subject.position == gap[-1].subject.position + 1
    return isinstance(outcome.value, Absent) and follows and len(gap) < _LONGEST_GAP


def _parent_height(
    ledger: Ledger, gap: Sequence[Outcome], after: Outcome | None
) -> int | LedgerError:
    """Return the height of the parent of the next block above a gap."""
    last = gap[-1].subject
    block = getattr(after.value, "block", None) if after else None
    if after is None or after.subject.position != last.position + 1:
        block = None

    async def read(reader: Reader, subject: Subject) -> Outcome:
        try:
            return Outcome(subject, await _read_parent(reader, subject.position, block))
        except LedgerError as error:
            return Outcome(subject, error)

    [[outcome]] = outcomes.read_subjects(ledger, [last], read)
    height: int | LedgerError = outcome.value
    return height


async def _read_parent(reader: Reader, height: int, block: Block | None) -> int:
    """Read the next block above a height, unless it is known, and the height of its parent."""
    header = block.header if block else await _read_next(reader, height)
    if header.prev_height is not None:
        return header.prev_height
    # Blocks of old protocol versions have no prev_height.
    parent = await reader.value(rpc.block(validation.block_reference(header.prev_hash)))
    return parent.header.height


async def _read_next(reader: Reader, height: int) -> BlockHeader:
    """Read the header of the next block above a height."""
    blocks: list[Any] = []
    for size in _SLICES:  # each slice starts at twice the distance of the previous one
        above = range(height + size, height + 2 * size)
        blocks = await reader.answers(rpc.block(validation.block_reference(at)) for at in above)
        for block in blocks:
            if not isinstance(block, LedgerError):
                header: BlockHeader = block.header
                return header
            if not isinstance(block, UnknownBlockError):
                raise block
    raise blocks[-1]


def _resolved(gap: Sequence[Outcome], parent: int | LedgerError) -> list[Outcome]:
    """Return the outcomes of a gap with a problem or an error each."""
    return [_resolve(outcome, parent) for outcome in gap]


def _resolve(outcome: Outcome, parent: int | LedgerError) -> Outcome:
    """Mark a height as skipped if the parent of the next block is below it."""
    subject, absent = outcome
    if isinstance(parent, LedgerError) and not isinstance(parent, UnknownBlockError):
        return outcome._replace(value=parent)
    if isinstance(parent, int) and parent < subject.position:
        return skipped(subject, parent, absent.error)
    msg = f"this host does not have block {subject.text}, and no block shows that it was skipped"
    return outcome._replace(value=UnknownBlockError(msg, remedy=_ARCHIVE))


def skipped(subject: Subject, parent: int, error: UnknownBlockError) -> Outcome:
    """Return the outcome of a height between a block and its parent, whose height is given."""
    message = f"the chain skipped height {subject.text}: the previous block is {parent}"
    return Outcome(subject._replace(problem=SKIPPED, message=message), error)


_ARCHIVE = (
    "Pass archival_rpc_url= to connect(), since archival hosts have all blocks, and repeat the call"
    " with retry_failed=True."
)
