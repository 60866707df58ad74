"""The frame of an account's balances at many blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.frames import build

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from ledgerkit.block_search.bisection import Point


class Reading(NamedTuple):
    """The status and amounts of one view at one block; amounts of other views are None."""

    status: str
    balance: int | None = None
    locked: int | None = None
    staked: int | None = None
    unstaked: int | None = None
    storage_bytes: int | None = None

    @property
    def total(self) -> int | None:
        """The sum of the amounts: 0 without an account or contract, None if it is unknown."""
        if self.status in ("no_account", "no_contract"):
            return 0
        parts = (self.balance, self.locked, self.staked, self.unstaked)
        return sum(part or 0 for part in parts) if self.status == "ok" else None


class Row(NamedTuple):
    """A reading with its account, view, contract and block."""

    account_id: str
    view: str
    contract_id: str | None
    point: Point
    reading: Reading


def history(rows: Sequence[Row]) -> pd.DataFrame:
    """Build the history frame: one row per reading."""
    readings = {name: [getattr(row.reading, name) for row in rows] for name in Reading._fields}
    return build.build_frame(
        "history",
        {
            "account_id": [row.account_id for row in rows],
            "view": [row.view for row in rows],
            "contract_id": [row.contract_id for row in rows],
            "block_height": [row.point.height for row in rows],
            "block_hash": [row.point.hash for row in rows],
            "time": [row.point.time_ns for row in rows],
            **readings,
        },
    )
