"""Heights without a block: the chain skipped one if the parent of the next block is below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.api.models.chain import BlockHeader
    from ledgerkit.block_data.headers import HeaderSource

_SLICES = (1, 2, 4, 8, 16, 32, 64, 128)  # numbers of heights that are requested at once


class Skipped(NamedTuple):
    """A height without a block; the next block has a parent below it."""

    previous_height: int  # of that parent


def first_headers_above(source: HeaderSource, heights: Sequence[int]) -> dict[int, BlockHeader]:
    """Read the first header above each height, up to the last final block and 255 heights on."""
    headers: dict[int, BlockHeader] = {}
    end: int | None = None
    for size in _SLICES:  # each slice starts at twice the distance of the previous one
        missing = [height for height in heights if height not in headers]
        if not missing:
            break
        if size > 1 and end is None:
            end = source.final().height + 1
        above = {
            height: range(height + size, min(height + 2 * size, end or height + 2))
            for height in missing
        }
        read = source.at(sorted({height for listed in above.values() for height in listed}))
        for height, listed in above.items():
            header = next((read[at] for at in listed if at in read), None)
            if header is not None:
                headers[height] = header
    return headers


def parent_height(source: HeaderSource, header: BlockHeader) -> int:
    """Return the height of the block before; the headers of the first years do not have it."""
    return source.parent(header).height if header.prev_height is None else header.prev_height
