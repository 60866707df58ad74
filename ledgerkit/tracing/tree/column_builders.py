"""
Columns that are filled piece by piece while a document is decoded.

So the structs of a large result are never all in memory, and equal texts are stored once.
Row -1 of each column is the value for a receipt without an outcome or a body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from msgspec.structs import astuple

from ledgerkit.errors import DecodeError
from ledgerkit.frames import amounts
from ledgerkit.tracing.action_fields import parse_amount
from ledgerkit.u128.array import U128Array

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from msgspec import Struct


class EmptyList(list[Any]):
    """
    An empty list that many rows share.

    Most receipts have no logs and no inputs; a list for each would take most of a frame's
    memory. It cannot be changed; copies and pickles are ordinary lists.
    """

    def _refuse(self, *_: object) -> NoReturn:
        """Raise, because a change would appear in all other rows."""
        raise TypeError("this empty list is shared by many rows: replace it with a new list")

    append = extend = insert = __setitem__ = __iadd__ = _refuse

    def __reduce_ex__(self, _: object) -> tuple[type[list[Any]], tuple[()]]:
        """Copy and pickle as an ordinary list."""
        return list, ()


EMPTY_LIST = EmptyList()
_MISSING_AMOUNT = amounts.parse([None])


class PiecePath(NamedTuple):
    """The place of a piece: the path of its list in the document, and its first position there."""

    path: str
    start: int

    def member(self, name: str, offset: int) -> str:
        """Return the path of a member of one element."""
        return f"{self.path}[{self.start + offset}].{name}"


class ObjectColumn:
    """A column of any values."""

    def __init__(self, missing: object = None) -> None:
        """Start an empty column whose row -1 is `missing`."""
        self._pieces: list[np.ndarray] = []
        self._end = np.fromiter([missing], dtype=object, count=1)

    def add(self, values: Collection[object]) -> None:
        """Append a piece."""
        self._pieces.append(np.fromiter(values, dtype=object, count=len(values)))

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the values of these rows; row -1 is missing."""
        taken: np.ndarray = np.concatenate([*self._pieces, self._end])[rows]
        return taken


class IntegerColumn:
    """A column of 64-bit integers, any of which may be missing; gas is unsigned."""

    def __init__(self, dtype: type[np.integer[Any]] = np.int64) -> None:
        """Start an empty column."""
        self._dtype = dtype
        self._values: list[np.ndarray] = []
        self._missing: list[np.ndarray] = []

    def add(self, values: Sequence[int | None], member: str, place: PiecePath) -> None:
        """Append a piece; `member` of the elements at `place`, for the error."""
        n_missing = values.count(None)
        missing = np.full(len(values), n_missing > 0)
        if 0 < n_missing < len(values):
            missing = np.fromiter((value is None for value in values), dtype=bool)
            values = [value or 0 for value in values]
        filled = missing if n_missing == len(values) else values
        try:
            self._values.append(np.array(filled, dtype=self._dtype))
        except OverflowError:
            bounds = np.iinfo(self._dtype)
            allowed = range(bounds.min, bounds.max + 1)
            offset = next(at for at, value in enumerate(values) if (value or 0) not in allowed)
            path = place.member(member, offset)
            bound = f"below {bounds.min}" if (values[offset] or 0) < 0 else f"above {bounds.max}"
            sentence = f"the integer {values[offset]} at {path} is {bound}"
            raise DecodeError(sentence, path=path) from None
        self._missing.append(missing)

    def take(self, rows: np.ndarray) -> np.ma.MaskedArray[Any, Any]:
        """Return the values of these rows; row -1 is missing."""
        values = np.concatenate([*self._values, np.zeros(1, dtype=self._dtype)])
        missing = np.concatenate([*self._missing, np.ones(1, dtype=bool)])
        return np.ma.MaskedArray(values[rows], missing[rows])


class AmountColumn:
    """A column of exact amounts, any of which may be missing."""

    def __init__(self) -> None:
        """Start an empty column."""
        self._pieces: list[U128Array] = []

    def add(self, texts: Sequence[str | None], member: str, place: PiecePath) -> None:
        """Parse and append a piece; `member` of the elements at `place`, for the error."""
        try:
            self._pieces.append(amounts.parse(texts))
        except DecodeError:
            # Parsed one by one, the first bad amount raises an error with its exact path.
            for offset, text in enumerate(texts):
                if text is not None:
                    parse_amount(text, place.member(member, offset))
            raise

    def take(self, rows: np.ndarray) -> U128Array:
        """Return the values of these rows; row -1 is missing."""
        pieces = [*self._pieces, _MISSING_AMOUNT]
        hi, lo, mask = (
            np.concatenate([getattr(piece, plane) for piece in pieces])[rows]
            for plane in ("hi", "lo", "mask")
        )
        return U128Array.of((hi, lo), mask)


def list_values(values: np.ndarray) -> list[Any]:
    """List the values of a column, None where one is missing; numpy's own way is slow for few."""
    listed: list[Any] = np.ma.getdata(values).tolist()
    for row in np.flatnonzero(np.ma.getmask(values)).tolist():
        listed[row] = None
    return listed


class SharedTexts(dict[Any, Any]):
    """Texts of which equal ones are stored once."""

    def share(self, texts: Sequence[str | None]) -> Sequence[str | None]:
        """Replace each text by the stored one that is equal."""
        first = self.setdefault(texts[0], texts[0])
        if texts.count(first) == len(texts):
            return [first] * len(texts)
        return list(map(self.setdefault, texts, texts))


def unzip_structs(structs: Sequence[Struct]) -> Iterator[tuple[Any, ...]]:
    """Return the fields of structs of one type, a column each."""
    return zip(*map(astuple, structs), strict=True)
