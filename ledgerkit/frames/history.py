"""The frame of what an account held, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.frames import build

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from ledgerkit.block_search.bisection import Point


class Reading(NamedTuple):
    """What one view told at one block; amounts are missing where it is not of that view."""

    status: str
    balance: int | None = None
    locked: int | None = None
    staked: int | None = None
    unstaked: int | None = None
    storage_bytes: int | None = None


class Row(NamedTuple):
    """Whose reading it is, of what, and when."""

    account_id: str
    view: str
    contract_id: str | None
    point: Point
    reading: Reading


def history(rows: Sequence[Row]) -> pd.DataFrame:
    """
    Tabulate readings.

    Parameters
    ----------
    rows
        The readings, in order.

    Returns
    -------
    history
        One row a reading, typed as `schema("history")`.

    Raises
    ------
    DecodeError
        If a value does not fit its column's dtype.
    """
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
