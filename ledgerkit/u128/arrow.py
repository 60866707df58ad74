"""Conversion between columns of 128-bit integers and Arrow arrays, exact or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ledgerkit.errors import DecodeError, cut
from ledgerkit.extras import require
from ledgerkit.u128 import decimal_text, planes

if TYPE_CHECKING:
    from ledgerkit.u128.planes import Flags, Planes

DIGITS = 38  # the widest decimal that DuckDB, Polars and all common Parquet readers support
_WORD = 64  # bits


def library(name: str = "pyarrow") -> Any:
    return require(name, "bulk", "An Arrow or Parquet table")


# To Arrow -------------------------------------------------------------------------------


def to_arrow(values: Planes, mask: Flags, type: Any = None) -> Any:  # noqa: A002 - the word of `__arrow_array__`
    """
    Convert to an Arrow array of decimals, integers or texts.

    Without a type these are decimals of 38 digits, whatever the values: DuckDB, Polars and pyarrow
    add, order and compare them. A value of 39 digits is an `ArrowInvalid` that names its row, and
    to which pyarrow adds the column.
    """
    pa = library()
    if type is None or type == pa.decimal128(DIGITS):
        if (row := planes.first(too_large(values, mask))) is not None:
            (value,) = planes.to_ints(planes.take(values, [row]))
            msg = f"{value} in row {row} is too large for decimal128({DIGITS}, 0)"
            raise pa.ArrowInvalid(f"{msg}: astype('str') keeps every digit")
        return _to_decimals(values, mask, pa.decimal128(DIGITS))
    if not (pa.types.is_decimal(type) or pa.types.is_integer(type) or _is_text(type)):
        name = planes.NAMES[len(values) > 2]  # noqa: PLR2004 - a plane of signs
        msg = f"{name} cannot be converted to {type}: choose a decimal, integer or text type"
        raise TypeError(msg)
    return _to_decimals(values, mask, every_value()).cast(type)


def every_value(*, signed: bool = False) -> Any:
    """Return decimals of 39 digits, which few engines have, or of 40 digits for i129."""
    return library().decimal256(DIGITS + 1 + signed)


def too_large(values: Planes, mask: Flags) -> Flags:
    return ~(planes.less(planes.magnitudes(values), planes.from_ints([10**DIGITS])) | mask)


def _to_decimals(values: Planes, mask: Flags, target: Any) -> Any:
    """Build an array of decimals from the words of each value, the lowest first."""
    pa = library()
    words = np.zeros((len(mask), target.bit_width // _WORD), dtype="<u8")
    words[:, 2:] -= planes.flags(values)[:, None]
    words[:, 1], words[:, 0] = values[:2]
    present = pa.array(~mask).buffers()[1]
    return pa.Array.from_buffers(target, len(mask), [present, pa.py_buffer(words)])


# From Arrow -----------------------------------------------------------------------------


def from_arrow(array: Any, *, name: str = "amount", signed: bool = False) -> tuple[Planes, Flags]:
    """Read an Arrow array of decimals of scale 0, integers, texts of digits, or only nulls."""
    pa = library()
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_integer(array.type) or pa.types.is_null(array.type):
        array = array.cast(pa.decimal128(DIGITS))
    if pa.types.is_decimal(array.type):
        return _from_decimals(array, name, signed=signed)
    if _is_text(array.type):
        texts = array.to_numpy(zero_copy_only=False)
        return decimal_text.parse(texts, name=name, signed=signed)
    dtype = planes.NAMES[signed]
    msg = f"{dtype} cannot be read from {array.type}: pass decimals, integers or texts of digits"
    raise TypeError(msg)


def _from_decimals(array: Any, name: str, *, signed: bool) -> tuple[Planes, Flags]:
    dtype = planes.NAMES[signed]
    if array.type.scale:
        msg = f"{dtype} holds integers, and {array.type} has a scale of {array.type.scale}"
        raise TypeError(f"{msg}: cast to scale 0 first")
    if array.type.bit_width < 2 * _WORD:
        array = array.cast(library().decimal128(DIGITS))
    words, mask = _words(array), missing(array)
    negative = (words[:, -1] >> np.uint64(_WORD - 1)).astype(np.bool_)  # the sign bit
    # The words above the lowest two are all zeros or all ones where the value fits.
    outside = (words[:, 2:] != (np.uint64(0) - negative)[:, None]).any(axis=1)
    outside |= negative & ((words[:, 0] | words[:, 1]) == 0) if signed else negative
    if (row := planes.first(outside & ~mask)) is not None:
        msg = f"{name} {cut(array[row].as_py())} in row {row} does not fit in {dtype}"
        raise DecodeError(msg, path=f"{name}[{row}]")
    keep = (~mask).astype(np.uint64)
    values = words[:, 1] * keep, words[:, 0] * keep
    return (*values, negative & ~mask) if signed else values, mask


def _words(array: Any) -> np.ndarray:
    """View an array of decimals as rows of 64-bit words, the lowest first."""
    width = array.type.bit_width // _WORD
    if not len(array):
        return np.zeros((0, width), dtype=np.uint64)
    end = array.offset + len(array)
    words = np.frombuffer(array.buffers()[1], dtype="<u8", count=end * width)
    return words.reshape(end, width)[array.offset :]


def missing(array: Any) -> np.ndarray:
    mask: np.ndarray = array.is_null().to_numpy(zero_copy_only=False)
    return mask


def _is_text(kind: Any) -> bool:
    types = library().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))
