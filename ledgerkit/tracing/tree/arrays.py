"""Arrays of values that were decoded from results; an error has the path of its value."""

from __future__ import annotations

from bisect import bisect_right
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from pandas.api.extensions import ExtensionArray

from ledgerkit.errors import DecodeError
from ledgerkit.frames import build
from ledgerkit.frames.amounts import parse
from ledgerkit.tracing.action_fields import parse_amount

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from ledgerkit.u128.array import U128Array

    PathOf = Callable[[int], str]  # the path of the value at an index


class EmptyList(list[Any]):
    """
    An empty list that many rows share.

    Most receipts have no logs and no inputs; their own empty lists would take much of a frame's
    memory. This list cannot be changed; copies and pickles are ordinary lists.
    """

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("this empty list is shared by many rows: replace it with a new list")

    append = extend = insert = __setitem__ = __iadd__ = _refuse

    def __reduce_ex__(self, _: object) -> tuple[type[list[Any]], tuple[()]]:
        """Copy and pickle as an ordinary list."""
        return list, ()


EMPTY_LIST = EmptyList()


class JoinedLists:
    """The paths of lists in documents, and where each starts when they are joined."""

    def __init__(self) -> None:
        self._paths: list[str] = []
        self._starts: list[int] = []

    def add(self, path: str, start: int) -> None:
        """Add a list that starts after `start` elements of other lists."""
        self._paths.append(path)
        self._starts.append(start)

    def path(self, index: int) -> str:
        """Return the path of an element."""
        number = bisect_right(self._starts, index) - 1
        return f"{self._paths[number]}[{index - self._starts[number]}]"

    def numbers(self, length: int) -> np.ndarray:
        """Return the number of the list of each element."""
        return np.searchsorted(self._starts, np.arange(length), side="right") - 1


def objects(values: Sequence[object] | np.ndarray, missing: object = None) -> np.ndarray:
    """Build an array of any values; row -1 is missing."""
    # np.array would make a table from lists of equal lengths.
    return np.fromiter(chain(values, [missing]), dtype=object, count=len(values) + 1)


def integers(
    values: Sequence[int | None], path_of: PathOf, dtype: type[np.integer[Any]] = np.int64
) -> pd.arrays.IntegerArray:
    """Build an array of 64-bit integers."""
    try:
        array: pd.arrays.IntegerArray = build.integers(values, "integers", dtype)
    except DecodeError:
        limits = np.iinfo(dtype)
    else:
        return array
    allowed = range(limits.min, limits.max + 1)
    index, value = next(
        (index, value)
        for index, value in enumerate(values)
        if value is not None and value not in allowed
    )
    bound = f"below {limits.min}" if value < 0 else f"above {limits.max}"
    path = path_of(index)
    raise DecodeError(f"the integer {value} at {path} is {bound}", path=path)


def amounts(texts: Sequence[str | None], path_of: PathOf) -> U128Array:
    """Build an array of exact amounts from digits."""
    try:
        return parse(texts)
    except DecodeError:
        for index, text in enumerate(texts):
            if text is not None:
                parse_amount(text, path_of(index))  # raises for the invalid amount
        raise


def take(values: Any, rows: np.ndarray) -> Any:
    """Return the values of these rows; row -1 is missing."""
    is_extension = isinstance(values, ExtensionArray)
    return values.take(rows, allow_fill=True) if is_extension else values[rows]


def list_values(values: Any) -> list[Any]:
    """List the values of an array, None where a value is missing."""
    is_extension = isinstance(values, ExtensionArray)
    array = values.to_numpy(dtype=object, na_value=None) if is_extension else values
    listed: list[Any] = array.tolist()
    return listed
