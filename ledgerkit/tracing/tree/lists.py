"""Lists of values that were decoded from results; an error has the path of its value."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ledgerkit.errors import DecodeError
from ledgerkit.frames.amounts import plain
from ledgerkit.tracing.action_fields import parse_amount

if TYPE_CHECKING:
    PathOf = Callable[[int], str]  # the path of the value at an index

_MAX_GAS = 2**64 - 1


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
        number = self.number(index)
        return f"{self._paths[number]}[{index - self._starts[number]}]"

    def number(self, index: int) -> int:
        """Return the number of the list of an element."""
        return bisect_right(self._starts, index) - 1


def check_gas(values: Sequence[int | None], path_of: PathOf) -> Sequence[int | None]:
    """Check that amounts of gas fit 64 bits, and return them."""
    if max(filter(None, values), default=0) > _MAX_GAS:
        index = next(i for i, value in enumerate(values) if value and value > _MAX_GAS)
        msg = f"the integer {values[index]} at {path_of(index)} is above {_MAX_GAS}"
        raise DecodeError(msg, path=path_of(index))
    return values


def parse_amounts(texts: Sequence[str | None], path_of: PathOf) -> Sequence[int | None]:
    """Parse decimal digits of at most 128 bits into integers."""
    integers = plain(texts)
    if integers is not None:
        return integers
    return [
        None if text is None else parse_amount(text, path_of(index))
        for index, text in enumerate(texts)
    ]
