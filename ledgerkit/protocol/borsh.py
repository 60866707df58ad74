"""
Borsh, the binary form that is hashed and signed: packers and a strict reader.

Integers are little-endian; texts and lists carry their length first. A value has one
encoding only, so the reader refuses everything else: bytes left over, unknown tags,
lengths beyond the end, broken utf-8, other booleans than 0 and 1. It never allocates
what a length merely claims.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Self, TypeVar

from ledgerkit.errors import DecodeError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_T = TypeVar("_T")

_U16 = Struct("<H")
_U32 = Struct("<I")
_U64 = Struct("<Q")
_REMEDY = "Check that these are all the bytes, unchanged, of the kind that you named."

u16 = _U16.pack
u32 = _U32.pack
u64 = _U64.pack


def u128(value: int) -> bytes:
    """Pack an unsigned integer into 16 bytes."""
    return value.to_bytes(16, "little")


def blob(data: bytes) -> bytes:
    """Pack bytes behind their length."""
    return u32(len(data)) + data


def text(value: str) -> bytes:
    """Pack a text as utf-8 behind its length in bytes."""
    data = value.encode()
    return u32(len(data)) + data


def option(packed: bytes | None) -> bytes:
    """Pack something that may be absent."""
    return b"\0" if packed is None else b"\1" + packed


def items(packed: Sequence[bytes]) -> bytes:
    """Pack a list behind its count."""
    return u32(len(packed)) + b"".join(packed)


class Reader:
    """
    Takes values off the front of bytes, refusing what no encoder would write.

    Parameters
    ----------
    data
        The bytes.
    what
        What they are said to be, for the errors.
    """

    __slots__ = ("at", "data", "what")

    def __init__(self, data: bytes, what: str = "value") -> None:
        self.data, self.what, self.at = data, what, 0

    def refuse(self, reason: str, at: int | None = None) -> DecodeError:
        """Describe bytes that no encoder would write, by where they are."""
        place = f"byte {self.at if at is None else at}"
        return DecodeError(
            f"These are not the bytes of a {self.what}: {reason} at {place} of {len(self.data)}",
            remedy=_REMEDY,
            path=place,
        )

    def fixed(self, count: int) -> bytes:
        """Take so many bytes."""
        start, end = self.at, self.at + count
        if end > len(self.data):
            raise self.refuse(f"{count} bytes are needed, {len(self.data) - start} are left")
        self.at = end
        return self.data[start:end]

    def u8(self) -> int:
        """Take an integer of 1 byte."""
        return self.fixed(1)[0]

    def u16(self) -> int:
        """Take an integer of 2 bytes."""
        return int.from_bytes(self.fixed(2), "little")

    def u32(self) -> int:
        """Take an integer of 4 bytes."""
        return int.from_bytes(self.fixed(4), "little")

    def u64(self) -> int:
        """Take an integer of 8 bytes."""
        return int.from_bytes(self.fixed(8), "little")

    def u128(self) -> int:
        """Take an integer of 16 bytes."""
        return int.from_bytes(self.fixed(16), "little")

    def blob(self) -> bytes:
        """Take bytes behind their length."""
        return self.fixed(self.u32())

    def text(self) -> str:
        """Take a text; utf-8 has one spelling for each."""
        start = self.at
        try:
            return self.blob().decode()
        except UnicodeDecodeError:
            broken = self.refuse("a text is not utf-8", start)
        raise broken

    def boolean(self) -> bool:
        """Take a 0 or 1."""
        return self.tag(2, "a boolean") == 1

    def tag(self, count: int, of: str) -> int:
        """Take the position of a variant among so many."""
        at = self.at
        tag = self.u8()
        if tag >= count:
            raise self.refuse(f"{of} has no variant {tag}", at)
        return tag

    def option(self, read: Callable[[], _T]) -> _T | None:
        """Take something that may be absent."""
        return read() if self.tag(2, "an option") else None

    def items(self, read: Callable[[], _T], least: int = 1) -> list[_T]:
        """Take a list, of which each item has at least so many bytes."""
        at = self.at
        count = self.u32()
        if count * least > len(self.data) - self.at:
            raise self.refuse(f"a list claims {count} items, more than there are bytes", at)
        return [read() for _ in range(count)]

    def checked(self, make: Callable[[], _T]) -> _T:
        """Make a value of what was read; one that its own rule refuses was badly encoded."""
        at = self.at
        try:
            return make()
        except InvalidRequestError as error:
            refused = self.refuse(error.sentence, at)
        raise refused

    def end(self) -> None:
        """Refuse bytes that are left over."""
        if self.at != len(self.data):
            raise self.refuse(f"{len(self.data) - self.at} bytes are left over")


class Borsh:
    """Something with exactly one binary form."""

    __slots__ = ()

    def encode(self) -> bytes:
        """
        Write the binary form.

        Returns
        -------
        data
            Borsh; equal values have equal bytes.
        """
        raise NotImplementedError

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Take one off the front of a reader."""
        raise NotImplementedError

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """
        Read the binary form.

        Parameters
        ----------
        data
            All the bytes, and no more.

        Returns
        -------
        value
            Whose `encode` gives the same bytes again.

        Raises
        ------
        DecodeError
            If no encoder would write these bytes; `path` says where.
        """
        reader = Reader(bytes(data), cls.__name__)
        value = cls.read(reader)
        reader.end()
        return value
