"""
Borsh, the binary form that is hashed and signed: packers, a strict reader, and records.

Integers are little-endian; texts and lists begin with their length. Every value has exactly one
encoding, so the reader refuses all other bytes: trailing bytes, unknown variants, lengths beyond
the end, and invalid UTF-8. It allocates nothing for a length that the remaining bytes cannot fill.

A record is a dataclass that declares the Borsh type of each field once, in the field's metadata::

    amount: int = field(metadata={"borsh": U128})

Its checks, its encoding and its decoding all follow from that declaration.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Sequence
from dataclasses import fields
from struct import Struct
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from ledgerkit import validation
from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.units import U64_MAX, U128_MAX

_T = TypeVar("_T")

U16_MAX = 2**16 - 1
_REMEDY = "Pass all the bytes of one value of that type, unchanged."
_TAGS = tuple(bytes([tag]) for tag in range(256))

set_field = object.__setattr__  # the only way to set fields of a frozen dataclass

u16 = Struct("<H").pack
u32 = Struct("<I").pack
u64 = Struct("<Q").pack


def u128(value: int) -> bytes:
    """Pack an unsigned integer into 16 bytes."""
    return value.to_bytes(16, "little")


def blob(data: bytes) -> bytes:
    """Pack bytes after their length."""
    return u32(len(data)) + data


def text(value: str) -> bytes:
    """Pack a text as UTF-8 after its length in bytes."""
    return blob(value.encode())


def decode_base64(encoded: str, kind: str) -> bytes:
    """Decode canonical base64: padded, without spaces or other characters."""
    try:
        data = binascii.a2b_base64(encoded, strict_mode=True)
    except (ValueError, TypeError):  # also for characters beyond ASCII
        data = None
    if data is None or binascii.b2a_base64(data, newline=False).decode() != encoded:
        raise DecodeError(
            f"The text is not the base64 of a {kind}",
            remedy="Pass the base64 text alone, complete and without spaces.",
            path="base64",
        )
    return data


def items(packed: Sequence[bytes]) -> bytes:
    """Pack a list after its count."""
    return u32(len(packed)) + b"".join(packed)


class Reader:
    """A cursor over bytes that should decode to a value of type `kind`, which errors name."""

    __slots__ = ("data", "kind", "position")

    def __init__(self, data: bytes, kind: str = "value") -> None:
        self.data, self.kind, self.position = data, kind, 0

    def refuse(self, reason: str, position: int | None = None) -> DecodeError:
        """Build the error for malformed bytes at a position, by default the current one."""
        path = f"byte {self.position if position is None else position}"
        return DecodeError(
            f"The bytes do not decode to a {self.kind}: {reason} at {path} of {len(self.data)}",
            remedy=_REMEDY,
            path=path,
        )

    def fixed(self, count: int) -> bytes:
        start, end = self.position, self.position + count
        if end > len(self.data):
            remaining = len(self.data) - start
            raise self.refuse(f"{count} bytes are needed and {remaining} remain")
        self.position = end
        return self.data[start:end]

    def u8(self) -> int:
        return self.fixed(1)[0]

    def u16(self) -> int:
        return int.from_bytes(self.fixed(2), "little")

    def u32(self) -> int:
        return int.from_bytes(self.fixed(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.fixed(8), "little")

    def u128(self) -> int:
        return int.from_bytes(self.fixed(16), "little")

    def blob(self) -> bytes:
        """Read bytes after their length."""
        return self.fixed(self.u32())

    def text(self) -> str:
        """Read a UTF-8 text after its length."""
        start = self.position
        try:
            return self.blob().decode()
        except UnicodeDecodeError:
            error = self.refuse("a text is not UTF-8", start)
        raise error  # outside the handler, so that the error has no context

    def tag(self, count: int, enum: str) -> int:
        """Read the position of a variant in an enum of `count` variants."""
        start = self.position
        tag = self.u8()
        if tag >= count:
            raise self.refuse(f"{enum} has no variant {tag}", start)
        return tag

    def option(self, read: Callable[[Reader], _T]) -> _T | None:
        """Read an optional value; None if it is absent."""
        return read(self) if self.tag(2, "an option") else None

    def items(self, read: Callable[[Reader], _T], min_bytes: int = 1) -> list[_T]:
        """Read a list whose items take at least `min_bytes` bytes each."""
        start = self.position
        count = self.u32()
        if count * min_bytes > len(self.data) - self.position:
            raise self.refuse(f"a list claims {count} items, more than the bytes can hold", start)
        return [read(self) for _ in range(count)]

    def checked(self, build: Callable[[], _T]) -> _T:
        """Build a value; raise DecodeError if its own check refuses it."""
        start = self.position
        try:
            return build()
        except InvalidRequestError as invalid:
            error = self.refuse(invalid.sentence, start)
        raise error  # as in `text`

    def end(self) -> None:
        """Check that no bytes are left."""
        if self.position != len(self.data):
            raise self.refuse(f"{len(self.data) - self.position} bytes are left over")


class Borsh:
    """A value with exactly one binary form."""

    __slots__ = ()

    def encode(self) -> bytes:
        """
        Encode the value.

        Returns
        -------
        data
            Borsh; equal values have equal bytes.
        """
        raise NotImplementedError

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read one value at the reader's position."""
        raise NotImplementedError

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """
        Decode a value.

        Parameters
        ----------
        data
            All the bytes of one value.

        Returns
        -------
        value
            Its `encode` returns the same bytes.

        Raises
        ------
        DecodeError
            If the bytes are malformed; `path` names the position.
        """
        reader = Reader(bytes(data), cls.__name__)
        value = cls.read(reader)
        reader.end()
        return value


# Types of fields ------------------------------------------------------------------------


class Codec(NamedTuple):
    """The Borsh type of a field: the functions that check, encode and read its values."""

    check: Callable[[Any, str], Any]
    encode: Callable[[Any], bytes]
    read: Callable[[Reader], Any]


def _integer(most: int, encode: Callable[[int], bytes], read: Callable[[Reader], int]) -> Codec:
    return Codec(lambda value, name: validation.integer(value, name, most=most), encode, read)


U16 = _integer(U16_MAX, u16, Reader.u16)
U64 = _integer(U64_MAX, u64, Reader.u64)
U128 = _integer(U128_MAX, u128, Reader.u128)
TEXT = Codec(validation.plain_text, text, Reader.text)
BLOB = Codec(validation.raw_bytes, blob, Reader.blob)


def optional(codec: Codec) -> Codec:
    """Build the codec of a value that may be None."""
    return Codec(
        lambda value, name: None if value is None else codec.check(value, name),
        lambda value: b"\0" if value is None else b"\1" + codec.encode(value),
        lambda reader: reader.option(codec.read),
    )


def nested(kind: type[Borsh], expected: str) -> Codec:
    """Build the codec of a field whose value is a `Borsh` object."""

    def check(value: object, name: str) -> object:
        if not isinstance(value, kind):
            raise InvalidRequestError.refuse(name, value, expected)
        return value

    return Codec(check, lambda value: value.encode(), kind.read)


# Records --------------------------------------------------------------------------------


_layouts: dict[type[Any], tuple[tuple[str, Codec], ...]] = {}


def layout_of(kind: type[Any]) -> tuple[tuple[str, Codec], ...]:
    """Return the names and codecs of a record's fields, in the order of their bytes."""
    layout = _layouts.get(kind)
    if layout is None:
        layout = tuple((field.name, field.metadata["borsh"]) for field in fields(kind))
        _layouts[kind] = layout
    return layout


class Record(Borsh):
    """A dataclass whose fields declare their Borsh types."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name, codec in layout_of(type(self)):
            set_field(self, name, codec.check(getattr(self, name), name))

    def encode_fields(self) -> bytes:
        layout = layout_of(type(self))
        return b"".join([codec.encode(getattr(self, name)) for name, codec in layout])

    @classmethod
    def read_fields(cls, reader: Reader) -> Self:
        return cls(*[codec.read(reader) for _, codec in layout_of(cls)])

    def encode(self) -> bytes:
        return self.encode_fields()

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls.read_fields(reader)


class Variant(Record):
    """A record that is a variant of an enum: its bytes begin with its position in the enum."""

    __slots__ = ()
    tag: ClassVar[int]
    variants: ClassVar[tuple[type[Any], ...]]
    enum: ClassVar[str]  # for errors, such as "an action"

    def encode(self) -> bytes:
        """Encode the value: its tag, then its fields."""
        return _TAGS[self.tag] + self.encode_fields()

    @classmethod
    def read_kind(cls, reader: Reader) -> type[Self]:
        """Read the tag, and return the variant's class."""
        kind: type[Self] = cls.variants[reader.tag(len(cls.variants), cls.enum)]
        return kind

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read a value: any variant of an enum, or only the variant of this class."""
        start = reader.position
        kind = cls.read_kind(reader)
        if not issubclass(kind, cls):
            raise reader.refuse(f"the variant is {kind.__name__}", start)
        return kind.read_fields(reader)


def number_variants(enum: type[Variant], variants: Sequence[type[Variant]]) -> None:
    """Declare the variants of an enum; the tag of each is its position."""
    enum.variants = tuple(variants)
    for tag, kind in enumerate(variants):
        kind.tag = tag
