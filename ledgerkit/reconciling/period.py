"""The period of a statement: the blocks at its ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledgerkit.errors import InvalidRequestError
from ledgerkit.ledger import locate_arguments

if TYPE_CHECKING:
    from ledgerkit.block_search.bisection import Point
    from ledgerkit.ledger import Ledger

# Blocks before the start, in which transactions may begin that go on after it: a yield ends after
# 200 blocks (nearcore, yield_timeout_length_in_blocks), and what waits for it may yield again.
_MARGIN = 1_000


@dataclass(frozen=True)
class Scope:
    """
    The account and the period of a statement, and how they are read.

    It is the time after block `start` up to block `stop`; without a start it begins before the
    account's first transaction. Without `assets` the statement has all.
    """

    ledger: Ledger
    account_id: str
    start: Point | None
    stop: Point
    assets: tuple[str, ...] | None
    progress: bool

    def has_asset(self, asset: str) -> bool:
        """Return True for an asset of the statement."""
        return self.assets is None or asset in self.assets


def locate_ends(ledger: Ledger, start: object, stop: object) -> tuple[Point | None, Point]:
    """Find the blocks at the ends of a statement."""
    ends = {"stop": stop} if start is None else {"stop": stop, "start": start}
    points = locate_arguments(ledger, ends)
    first, last = points.get("start"), points["stop"]
    if first is not None and first.height > last.height:
        expected = f"a block before the stop, which is block {last.height}"
        raise InvalidRequestError.refuse("start", start, expected)
    return first, last


def first_height(start: int) -> int:
    """Return the height from which transactions are listed, for a period after block `start`."""
    return max(0, start - _MARGIN)
