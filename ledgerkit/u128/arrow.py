"""Columns of 128-bit integers to Arrow arrays and back: exact, or an error that names the row."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from ledgerkit.errors import DecodeError, InvalidRequestError, cut
from ledgerkit.u128 import decimal_text, planes

Columns: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]  # hi, lo, mask

DIGITS = 38  # of the widest decimal that Parquet's readers agree on
_WORD = 64
_EXTRAS = {
    "pyarrow": "bulk",
    "duckdb": "bulk",
    "polars": "bulk",
    "filelock": "bulk",
    "dask": "dask",
}
_REMEDY = "ledgerkit.write_parquet and ledgerkit.to_arrow keep it as text, in a column"


def library(name: str = "pyarrow") -> Any:
    """Import a library or a module of it, or say which extra brings it."""
    top = name.partition(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != top:
            raise
    msg = f"this needs the library {top}, which is not installed"
    remedy = f"pip install 'ledgerkit[{_EXTRAS[top]}]'"
    raise InvalidRequestError(msg, remedy=remedy, field="extra", value=_EXTRAS[top])


# To Arrow -------------------------------------------------------------------------------


def to_arrow(hi: np.ndarray, lo: np.ndarray, mask: np.ndarray, type: Any = None) -> Any:  # noqa: A002 - the word of `__arrow_array__`
    """
    Hold a column in an Arrow array.

    Parameters
    ----------
    hi, lo
        The upper and lower 64 bits of each value.
    mask
        True where a value is missing.
    type
        decimal128 or decimal256 without decimals, an integer or a text type;
        decimal128(38, 0) without one.

    Returns
    -------
    array
        A `pyarrow.Array` of that type.

    Raises
    ------
    OverflowError
        If a value does not fit the type; its row is named.
    TypeError
        If the type is none of these.
    """
    pa = library()
    wanted = pa.decimal128(DIGITS) if type is None else type
    if pa.types.is_decimal128(wanted) or pa.types.is_decimal256(wanted):
        return _decimals(hi, lo, mask, wanted)
    if pa.types.is_integer(wanted):
        return _integers(hi, lo, mask, wanted)
    if _is_text(wanted):
        return pa.array(decimal_text.write(hi, lo), type=wanted, mask=mask)
    msg = f"u128 does not become {wanted}: choose a decimal, integer or text type"
    raise TypeError(msg)


def _decimals(hi: np.ndarray, lo: np.ndarray, mask: np.ndarray, wanted: Any) -> Any:
    """Lay the words of each value side by side, lowest first."""
    _check_scale(wanted)
    _check_below(hi, lo, mask, 10**wanted.precision, wanted)
    words = np.zeros((len(hi), wanted.bit_width // _WORD), dtype="<u8")
    words[:, 0], words[:, 1] = lo, hi
    pa = library()
    return pa.Array.from_buffers(wanted, len(hi), [_validity(mask), pa.py_buffer(words)])


def _integers(hi: np.ndarray, lo: np.ndarray, mask: np.ndarray, wanted: Any) -> Any:
    """Hold the values in machine integers."""
    kind = np.dtype(wanted.to_pandas_dtype())
    _check_below(hi, lo, mask, int(np.iinfo(kind).max) + 1, wanted)
    return library().array(np.where(mask, np.uint64(0), lo).astype(kind), type=wanted, mask=mask)


def _validity(mask: np.ndarray) -> Any:
    """Write a mask as Arrow's bitmap, in which present is 1; None where nothing is missing."""
    if not mask.any():
        return None
    return library().py_buffer(np.packbits(~mask, bitorder="little"))


def _check_below(hi: np.ndarray, lo: np.ndarray, mask: np.ndarray, end: int, wanted: Any) -> None:
    """Refuse the first value that is not below `end`."""
    if end >= planes.LIMIT:
        return
    large = ~(planes.less((hi, lo), planes.from_ints([end])) | mask)
    if large.any():
        row = int(large.argmax())
        value = int(hi[row]) << _WORD | int(lo[row])
        msg = f"{value} in row {row} does not fit {wanted}"
        raise OverflowError(f"{msg}; {_REMEDY}" if end == 10**DIGITS else msg)


# From Arrow -----------------------------------------------------------------------------


def from_arrow(array: Any, *, name: str = "amount") -> Columns:
    """
    Read a column from an Arrow array.

    Parameters
    ----------
    array
        A `pyarrow.Array` or `ChunkedArray` of decimals without decimals, integers, texts of
        digits, or nothing but nulls.
    name
        The field, for the error.

    Returns
    -------
    hi, lo, mask
        The upper and lower 64 bits of each value, both 0 where it is missing, and where.

    Raises
    ------
    DecodeError
        If a value is no integer from 0 to 2^128 - 1; its row is named.
    TypeError
        If the type is another, such as float.
    """
    pa = library()
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    if pa.types.is_decimal(whole.type):
        return _of_decimals(whole, name)
    if pa.types.is_integer(whole.type) or pa.types.is_null(whole.type):
        return _of_integers(whole, name)
    if _is_text(whole.type):
        (hi, lo), mask = decimal_text.parse(whole.to_numpy(zero_copy_only=False), name=name)
        return hi, lo, mask
    msg = f"u128 is not read from {whole.type}: give decimals, integers or texts of digits"
    raise TypeError(msg)


def _of_decimals(array: Any, name: str) -> Columns:
    """Read the words of each value."""
    _check_scale(array.type)
    if array.type.bit_width < 2 * _WORD:
        array = array.cast(library().decimal128(DIGITS))
    words, mask = _words(array), _missing(array)
    rest = words[:, 2:].any(axis=1) if words.shape[1] > 2 else words[:, 1] >> np.uint64(_WORD - 1)  # noqa: PLR2004 - hi and lo
    _refuse_first(array, rest.astype(bool) & ~mask, name)
    keep = (~mask).astype(np.uint64)
    return words[:, 1] * keep, words[:, 0] * keep, mask


def _words(array: Any) -> np.ndarray:
    """View an array of decimals as rows of 64-bit words, lowest first."""
    wide = array.type.bit_width // _WORD
    if not len(array):
        return np.zeros((0, wide), dtype=np.uint64)
    end = array.offset + len(array)
    words = np.frombuffer(array.buffers()[1], dtype="<u8", count=end * wide)
    return words.reshape(end, wide)[array.offset :]


def _of_integers(array: Any, name: str) -> Columns:
    """Read machine integers, or nothing but nulls."""
    mask = _missing(array)
    filled = array.cast(library().int64()) if array.type == library().null() else array
    values = filled.fill_null(0).to_numpy(zero_copy_only=False)
    _refuse_first(array, values < 0, name)
    return np.zeros(len(values), dtype=np.uint64), values.astype(np.uint64), mask


def _missing(array: Any) -> np.ndarray:
    """Give the mask of an array: True where a value is missing."""
    if not array.null_count:
        return np.zeros(len(array), dtype=bool)
    mask: np.ndarray = array.is_null().to_numpy(zero_copy_only=False)
    return mask


# Both ways ------------------------------------------------------------------------------


def _is_text(kind: Any) -> bool:
    """Tell Arrow's types of text."""
    known = library().types
    return bool(known.is_string(kind) or known.is_large_string(kind) or known.is_string_view(kind))


def _check_scale(kind: Any) -> None:
    """Refuse decimals with a point: which digits are the whole ones is for the caller to say."""
    if kind.scale:
        msg = f"u128 holds integers, and {kind} has a scale of {kind.scale}: cast to scale 0 first"
        raise TypeError(msg)


def _refuse_first(array: Any, bad: np.ndarray, name: str) -> None:
    """Name the first row whose value is below zero or too large."""
    if bad.any():
        row = int(bad.argmax())
        msg = f"{name} {cut(array[row].as_py())} in row {row} does not fit 128 bits unsigned"
        raise DecodeError(msg, path=f"{name}[{row}]")
