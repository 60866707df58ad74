"""
Saved results of transactions, whose long lists are decoded slice by slice.

To find the elements of a list, msgspec reads the whole document, and each element again to decode
it. Here a list is cut into slices where an element seems to end. The document is read first with a
mark instead of the slices. If it is then valid with the mark in that list, and each slice is a
valid list, the slices have the elements of the whole document. If not, the whole document is read,
so a wrong cut only takes time.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ledgerkit import json_decoding
from ledgerkit.api.models.transactions import LazyList, LongList, TxResult, decode_transaction
from ledgerkit.errors import DecodeError

if TYPE_CHECKING:
    Slices = Sequence[tuple[int, int]]

T = TypeVar("T")

LONG = 2**20  # bytes of a document; the lists of smaller documents are not cut
SLICE = 2**18  # minimum bytes of a slice
_NEAR = 2**16  # maximum bytes from there to the end of an element
_KEY = 200  # maximum bytes of the first key of an element
_LISTS = ("outcomes", "bodies")
_LIST_START = re.compile(rb'"(receipts|receipts_outcome)"\s*:\s*\[')


@dataclass(frozen=True, repr=False)
class SlicedList(LongList[T]):
    """
    A `LongList` in slices of a document.

    `after` are the elements after the slices. `read_whole` returns the list of the whole document.
    """

    path: str
    data: bytes
    slices: Slices
    after: LazyList[T]
    read_whole: Callable[[], LazyList[T]]

    def pieces(self) -> Iterator[list[T]]:
        """Yield the decoded elements of each slice, without nulls."""
        position = 0
        try:
            for elements in self._decode_slices():
                yield self.after.members(elements)
                position += len(elements)
        except msgspec.DecodeError:
            yield from self.read_whole().pieces(position)

    def _decode_slices(self) -> Iterator[list[Any]]:
        # Type checkers refuse a type that is a value at run time.
        decoder = json_decoding.decoder(list[self.after.element])  # type: ignore[name-defined]
        view = memoryview(self.data)
        for begin, end in self.slices:
            yield decoder.decode(b"".join((b"[", view[begin:end], b"]")))
        yield json_decoding.decoder(self.after.element).decode_all(self.after.raws)


def decode_saved(data: bytes, *, tx_hash: str | None = None) -> TxResult:
    """
    Decode the saved result of a transaction, as `decode_transaction` does.

    The elements of the long lists of a long document are not read before they are decoded.
    """
    decode = partial(decode_transaction, request="a saved transaction", tx_hash=tx_hash)
    slices_by_mark = _cut_lists(data) if len(data) >= LONG else {}
    if not slices_by_mark:
        return decode(data)
    try:
        result = decode(_shortened(data, slices_by_mark))
    except DecodeError:  # its path is not the path in the whole document
        return decode(data)
    marks: set[bytes] = set()
    lists: dict[str, Any] = {}
    for name in _LISTS:
        list_after = getattr(result, name)
        mark = bytes(list_after.raws[0]) if list_after is not None and list_after.raws else b""
        if mark in slices_by_mark:
            marks.add(mark)
            after = replace(list_after, raws=list_after.raws[1:])
            read_whole = partial(_read_list, decode, data, name)
            lists[name] = SlicedList(after.path, data, slices_by_mark[mark], after, read_whole)
    is_cut_right = marks == slices_by_mark.keys()
    return replace(result, **lists) if is_cut_right else decode(data)


def _read_list(decode: Callable[[bytes], TxResult], data: bytes, name: str) -> LazyList[Any]:
    elements: LazyList[Any] = getattr(decode(data), name)
    return elements


def _cut_lists(data: bytes) -> dict[bytes, Slices]:
    """Cut the long lists; return their slices by marks that the document cannot contain."""
    slices_by_mark: dict[bytes, Slices] = {}
    offset = 0
    while start := _LIST_START.search(data, offset, offset + LONG):
        slices = list(_slices(data, start.end()))
        offset = slices[-1][1] if slices else start.end()
        if slices:
            slices_by_mark[b'"%b"' % secrets.token_hex().encode()] = slices
    return slices_by_mark


def _slices(data: bytes, begin: int) -> Iterator[tuple[int, int]]:
    """Yield slices of the list at `begin`, which end where an element seems to begin."""
    opening = data[begin : data.find(b":", begin, begin + _KEY) + 1].lstrip()
    while opening:
        following = data.find(opening, begin + SLICE, begin + SLICE + _NEAR)
        comma = data.rfind(b",", begin, max(following, begin))
        if comma < 0 or data[comma + 1 : following].strip():
            return
        yield begin, comma
        begin = following


def _shortened(data: bytes, slices_by_mark: Mapping[bytes, Slices]) -> bytes:
    parts: list[bytes] = []
    offset = 0
    for mark, slices in slices_by_mark.items():
        parts += data[offset : slices[0][0]], mark
        offset = slices[-1][1]
    return b"".join([*parts, data[offset:]])
