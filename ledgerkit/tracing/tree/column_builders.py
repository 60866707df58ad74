"""
Columns that are filled piece by piece while a document is decoded.

So the structs of a large result are never all in memory, and equal texts are stored once.
Row -1 of each column is the value for a receipt without an outcome or a body.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from ledgerkit.errors import DecodeError
from ledgerkit.frames import amounts
from ledgerkit.tracing.action_fields import parse_amount
from ledgerkit.u128.array import U128Array

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Texts = dict[str | None, str | None]


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
_MANY = 4096  # amounts, which are parsed together, because each call takes 0.1 ms


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
        self._values = [missing]  # first, so that no copy is needed to append it

    def add(self, values: Iterable[object]) -> None:
        """Append a piece."""
        self._values += values

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the values of these rows; row -1 is missing."""
        # Of lists of equal lengths, np.array would make a table.
        values = np.fromiter(self._values, dtype=object, count=len(self._values))
        taken: np.ndarray = values[rows + 1]
        return taken


class IntegerColumn:
    """
    A column of 64-bit integers, any of which may be missing; gas is unsigned.

    `member` is their place in the elements of a piece, for errors.
    """

    def __init__(self, member: str, dtype: type[np.integer[Any]] = np.int64) -> None:
        """Start an empty column."""
        self._member, self._dtype = member, dtype
        self._values: list[np.ndarray] = []
        self._missing: list[np.ndarray] = []

    def add(self, values: Sequence[int | None], place: PiecePath) -> None:
        """Append a piece at `place`."""
        n_missing = values.count(None)
        missing = np.full(len(values), n_missing > 0)
        if 0 < n_missing < len(values):
            missing = np.fromiter((value is None for value in values), bool, len(values))
            values = [value or 0 for value in values]
        try:
            self._values.append(
                np.zeros(len(values), self._dtype)
                if n_missing == len(values)
                else np.fromiter(values, self._dtype, len(values))
            )
        except OverflowError:
            bounds = np.iinfo(self._dtype)
            allowed = range(bounds.min, bounds.max + 1)
            offset = next(at for at, value in enumerate(values) if (value or 0) not in allowed)
            path = place.member(self._member, offset)
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
    """
    A column of exact amounts, any of which may be missing.

    `member` is their place in the elements of a piece, for errors.
    """

    def __init__(self, member: str) -> None:
        """Start an empty column."""
        self._member = member
        self._parsed: list[U128Array] = []
        self._waiting: list[tuple[Sequence[str | None], PiecePath]] = []
        self._n_waiting = 0

    def add(self, texts: Sequence[str | None], place: PiecePath) -> None:
        """Append a piece at `place`."""
        self._waiting.append((texts, place))
        self._n_waiting += len(texts)
        if self._n_waiting >= _MANY:
            self._parse()

    def take(self, rows: np.ndarray) -> U128Array:
        """Return the values of these rows; row -1 is missing."""
        self._parse()
        pieces = [*self._parsed, _MISSING_AMOUNT]
        hi, lo, mask = (
            np.concatenate([getattr(piece, plane) for piece in pieces])[rows]
            for plane in ("hi", "lo", "mask")
        )
        return U128Array.of((hi, lo), mask)

    def _parse(self) -> None:
        """Parse the texts that wait."""
        if not self._waiting:
            return
        joined = list(chain.from_iterable(texts for texts, _ in self._waiting))
        try:
            self._parsed.append(amounts.parse(joined))
        except DecodeError:
            self._refuse()
            raise
        self._waiting, self._n_waiting = [], 0

    def _refuse(self) -> None:
        """Raise for the first bad amount, with its exact path."""
        for texts, place in self._waiting:
            for offset, text in enumerate(texts):
                if text is not None:
                    parse_amount(text, place.member(self._member, offset))


def list_values(values: np.ndarray | U128Array) -> list[Any]:
    """List the values of a column, None where one is missing."""
    if isinstance(values, U128Array):
        values = values.to_numpy(na_value=None)
    listed: list[Any] = values.tolist()
    return listed


def share_texts(texts: Sequence[str | None], shared: Texts) -> list[str | None]:
    """Replace each text by the equal one in `shared`; texts that are new there are added."""
    return list(map(shared.setdefault, texts, texts))
