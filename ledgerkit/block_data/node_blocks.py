"""The blocks of many heights from a node, or the proof that a height was skipped."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.block_data.headers import NodeHeaders, Skipped, first_headers_above
from ledgerkit.errors import LedgerError, UnknownBlockError

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.api.models.chain import Block, BlockHeader
    from ledgerkit.ledger import Ledger
    from ledgerkit.validation import BlockReference

    NodeRead = tuple[int, Block | Skipped | LedgerError]


def read_node_blocks(
    ledger: Ledger,
    heights: Iterable[int],
    *,
    size: int,
    whole: bool = False,
    ahead: int | None = None,
    rate_limit_wait_s: float = 0.0,
) -> Generator[NodeRead, None, None]:
    """
    Yield ascending heights with their block, `Skipped`, or the error of reading it.

    A height keeps its `UnknownBlockError` if no block shows that it was skipped. With `whole`,
    blocks have their whole headers. The other options are those of `Session.stream_pairs`.
    """
    build: Callable[[BlockReference], Call[Any]] = rpc.whole_block if whole else rpc.block
    requests = ((height, build(validation.block_reference(height))) for height in heights)
    stream = ledger.session.stream_pairs(
        requests, size=size, ahead=ahead, rate_limit_wait_s=rate_limit_wait_s
    )
    with closing(stream) as batches:
        reads = chain.from_iterable(batches)
        yield from _resolve_gaps(NodeHeaders(ledger, rate_limit_wait_s), reads)


def _resolve_gaps(
    source: NodeHeaders, reads: Iterable[tuple[int, Block | LedgerError]]
) -> Iterator[NodeRead]:
    """Yield the heights, with `Skipped` instead of the errors of skipped heights."""
    gap: list[tuple[int, UnknownBlockError]] = []
    for height, value in reads:
        is_next = bool(gap) and height == gap[-1][0] + 1
        if gap and not (is_next and isinstance(value, UnknownBlockError)):
            after = value.header if is_next and not isinstance(value, LedgerError) else None
            yield from _resolve_gap(source, gap, after)
            gap = []
        if isinstance(value, UnknownBlockError):
            gap.append((height, value))
        else:
            yield height, value
    if gap:
        yield from _resolve_gap(source, gap, None)


def _resolve_gap(
    source: NodeHeaders,
    gap: Sequence[tuple[int, UnknownBlockError]],
    after: BlockHeader | None,
) -> Iterator[tuple[int, Skipped | LedgerError]]:
    """Yield the heights of a gap; `after` is the header of the block above, if it was read."""
    last = gap[-1][0]
    parent: int | None = None
    try:
        after = after or first_headers_above(source, [last]).get(last)
        parent = None if after is None else source.parent_height(after)
    except UnknownBlockError:
        pass
    except LedgerError as error:
        yield from ((height, error) for height, _ in gap)
        return
    for height, absent in gap:
        yield height, absent if parent is None or parent >= height else Skipped(parent)
