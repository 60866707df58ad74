"""The rows of a table that a person selected by filters and a search, in the chosen order."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from decimal import Decimal
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ledgerkit.frames.human import plain_text
from ledgerkit.widgets import _filters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Positions = NDArray[np.intp]

_MAX_KEY = 20_000  # characters of a list or dict that are compared


@dataclass(frozen=True, slots=True)
class Selection:
    """
    What a person chose.

    Parameters
    ----------
    sort
        Columns to sort by and whether each is descending, the most important first.
    filters
        The text of a filter for each filtered column.
    search
        A text to find in any column; "" for none.
    """

    sort: tuple[tuple[int, bool], ...] = ()
    filters: tuple[tuple[int, str], ...] = ()
    search: str = ""


class Rows:
    """
    The rows of a frame, filtered and sorted; the last selection is remembered.

    Parameters
    ----------
    sources
        The columns.
    count
        The number of rows of the frame.
    """

    def __init__(self, sources: Sequence[_filters.Source], count: int) -> None:
        self._sources = sources
        self._count = count
        self._lock = threading.Lock()
        self._selection = Selection()
        self._rows: Positions | None = None  # None is every row in the frame's order

    def select(self, selection: Selection, check: Callable[[], None]) -> Positions | None:
        """
        Return the positions of the selected rows in order; None for all rows as they are.

        `check` is called between steps, and raises when the result is no longer needed.
        """
        with self._lock:
            check()
            if selection != self._selection:
                rows = self._filtered(selection, check)
                for column, is_descending in reversed(selection.sort):
                    rows = self._sorted(rows, column, is_descending=is_descending)
                    check()
                self._selection, self._rows = selection, rows
            return self._rows

    def _filtered(self, selection: Selection, check: Callable[[], None]) -> Positions | None:
        """Return the positions of the rows that pass all filters and the search."""
        flags = None
        for column, text in selection.filters:
            check()
            passed = _filters.matches(self._sources[column], text, check)
            flags = passed if flags is None else flags & passed
        if selection.search:
            passed = self._searched(selection.search, check)
            flags = passed if flags is None else flags & passed
        return None if flags is None else np.flatnonzero(flags)

    def _searched(self, text: str, check: Callable[[], None]) -> NDArray[np.bool_]:
        flags = np.zeros(self._count, dtype=np.bool_)
        for source in self._sources:
            check()
            passed = _filters.search(source, text, check)
            if passed is not None:
                flags |= passed
        return flags

    def _sorted(
        self, rows: Positions | None, column: int, *, is_descending: bool
    ) -> Positions | None:
        """Sort rows by a column, stably; missing values are last."""
        values = self._sources[column].values
        if rows is None:
            return order(values, is_descending=is_descending)
        return rows[order(values.iloc[rows], is_descending=is_descending)]


def order(values: pd.Series[Any], *, is_descending: bool) -> Positions:
    """Return the positions that sort values stably, exactly, and with missing ones last."""
    if isinstance(values.dtype, pd.CategoricalDtype) and not values.cat.ordered:
        values = values.astype(values.cat.categories.dtype)
    if values.dtype == np.dtype(object):
        return _object_order(values.tolist(), is_descending=is_descending)
    options: Any = {"kind": "stable", "ascending": not is_descending, "na_position": "last"}
    return np.asarray(values.array.argsort(**options), dtype=np.intp)


def _object_order(values: list[Any], *, is_descending: bool) -> Positions:
    """Sort values of any types: numbers, then texts, then all others as they are written."""
    keys: list[Any] = [_key(value) for value in values]
    present = [at for at, key in enumerate(keys) if key is not None]
    missing = [at for at, key in enumerate(keys) if key is None]
    present.sort(key=keys.__getitem__, reverse=is_descending)  # stable in both directions
    return np.array(present + missing, dtype=np.intp)


def _key(value: Any) -> tuple[int, Any] | None:
    """Return what a value is sorted by; None if it is missing."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, float | Decimal) and isnan(value):
        return None
    if isinstance(value, int | float | Decimal):
        return 0, value
    if isinstance(value, np.number):
        return 0, value.item()
    return (1, value) if isinstance(value, str) else (2, plain_text(value, _MAX_KEY))
