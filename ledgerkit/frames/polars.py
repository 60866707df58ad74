"""Frames for Polars, with every digit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.extras import require
from ledgerkit.u128 import parquet

if TYPE_CHECKING:
    import pandas as pd


def to_polars(frame: pd.DataFrame) -> Any:
    """
    Convert a frame to a Polars frame, with exact amounts.

    Parameters
    ----------
    frame
        Any frame, converted as by `to_arrow`: amounts become Decimal(38, 0), times Datetime in
        UTC, and lists and decoded JSON become JSON text.

    Returns
    -------
    frame
        A `polars.DataFrame` with the same rows. Polars frames have no `attrs`.

    Raises
    ------
    InvalidRequestError
        If an amount has 39 digits: ``frame.astype({"balance": "str"})`` keeps them as text. If
        Polars has no type for the values of a column, or is not installed.

    Notes
    -----
    Sums of all rows are exact or an error. Sums of groups wrap around above 2**127 without an
    error, which amounts of NEAR never reach.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> holders = lk.to_polars(lk.top_holders("gold.near"))
    >>> holders["balance"].dtype, holders["balance"].sum()
    (Decimal(precision=38, scale=0), Decimal('485349000000'))
    """
    return require("polars", "bulk", "A Polars frame").from_arrow(parquet.to_arrow(frame))
