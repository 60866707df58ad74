"""Base58 columns: the same texts and bytes as the reference package, everything else refused."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import base58
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.frames import base58_columns

# By hand: a leading zero byte is a leading "1"; after them "1" to "z" count 0 to 57.
BY_HAND = {
    "zeros": (bytes(32), "1" * 32),
    "one": (bytes(31) + b"\1", "1" * 31 + "2"),
    "fifty seven": (bytes(31) + b"\x39", "1" * 31 + "z"),
    "fifty eight": (bytes(31) + b"\x3a", "1" * 31 + "21"),
    "58 squared less one": (bytes(30) + (3363).to_bytes(2, "big"), "1" * 30 + "zz"),
    "58 squared": (bytes(30) + (3364).to_bytes(2, "big"), "1" * 30 + "211"),
    "58 to the fourth": (bytes(29) + (11_316_496).to_bytes(3, "big"), "1" * 29 + "21111"),
    "256 squared": (bytes(29) + b"\1\0\0", "1" * 29 + "LUw"),
    "2^256 - 1": (b"\xff" * 32, "JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFG"),
}
ZERO, TOP = BY_HAND["zeros"], BY_HAND["2^256 - 1"]
# One more than 2^256 - 1: the digit after "G" is "H".
OVER = TOP[1][:-1] + "H"

values_of_one_size = st.integers(1, 70).flatmap(
    lambda size: st.tuples(st.just(size), st.lists(st.binary(min_size=size, max_size=size)))
)


def reference(value: bytes) -> str:
    return base58.b58encode(value).decode()


def test_known_texts(subtests: pytest.Subtests) -> None:
    """Texts worked out by hand are written and read, alone and among others."""
    for case, (value, text) in BY_HAND.items():
        with subtests.test(case=case):
            assert base58_columns.encode([value]) == [text]
            assert base58_columns.encode([TOP[0], value, ZERO[0]]) == [TOP[1], text, ZERO[1]]
            assert base58_columns.decode([text]).tobytes() == value
            assert (
                base58_columns.decode([TOP[1], text, ZERO[1]]).tobytes() == TOP[0] + value + ZERO[0]
            )


@given(values_of_one_size)
def test_any_size_agrees_with_the_reference(sized: tuple[int, list[bytes]]) -> None:
    """Values of any one size agree both ways with the base58 package."""
    size, values = sized
    texts = base58_columns.encode(values, size=size)
    assert texts == [reference(value) for value in values]
    assert base58_columns.decode(texts, size=size).tobytes() == b"".join(values)


def test_the_largest_value_of_a_size() -> None:
    """The largest value fits; the number after it is refused, as it takes a byte more."""
    for size in (*range(1, 12), 63, 65, 255, 256):
        most = b"\xff" * size
        (text,) = base58_columns.encode([most], size=size)
        assert text == reference(most)
        assert base58_columns.decode([text], size=size).tobytes() == most
        with pytest.raises(DecodeError, match=f"{size + 1} bytes|characters"):
            base58_columns.decode([reference(b"\1" + bytes(size))], size=size)


@settings(max_examples=300)
@given(st.text(base58_columns.ALPHABET, min_size=30, max_size=46))
def test_a_text_is_read_only_if_it_holds_32_bytes(text: str) -> None:
    """Any base58 text is read as the reference reads it, or refused for its size."""
    expected = base58.b58decode(text)
    if len(expected) == 32:
        assert base58_columns.decode([text]).tobytes() == expected
        return
    with pytest.raises(DecodeError):
        base58_columns.decode([text])


@given(st.lists(st.text(max_size=50), max_size=4))
def test_any_texts_are_read_or_refused(texts: list[str]) -> None:
    """Whatever the texts, they are read and written back the same, or refused and no other way."""
    with suppress(DecodeError):
        assert base58_columns.encode(base58_columns.decode(texts)) == texts


def test_many_blocks() -> None:
    """More rows than one block holds keep their order and values."""
    rows = np.random.default_rng(1).integers(0, 256, (5000, 32), dtype=np.uint8)
    rows[::7, :3] = 0
    texts = base58_columns.encode(rows)
    assert texts == [reference(row.tobytes()) for row in rows]
    assert np.array_equal(base58_columns.decode(texts), rows)


def test_what_a_column_may_be() -> None:
    """Arrays, sliced arrays, object arrays, lists, tuples and Series all do."""
    rows = np.arange(128, dtype=np.uint8).reshape(4, 32)
    texts = [reference(row.tobytes()) for row in rows]
    packed = [row.tobytes() for row in rows]
    assert base58_columns.encode(rows[::2]) == texts[::2]
    assert base58_columns.encode(np.asfortranarray(rows)) == texts
    assert base58_columns.encode(np.array(packed, dtype=object)) == texts
    assert base58_columns.encode(tuple(map(bytearray, packed))) == texts
    for column in (texts, tuple(texts), np.array(texts), pd.Series(texts), iter(texts)):
        assert np.array_equal(base58_columns.decode(column), rows)


def test_the_result_is_one_own_array() -> None:
    """Decoding gives a writable array of uint8, 32 to a row, also for no rows."""
    values = base58_columns.decode([ZERO[1]])
    values[0, 0] = 1
    assert (str(values.dtype), values.shape) == ("uint8", (1, 32))
    assert base58_columns.decode([]).shape == (0, 32)
    assert base58_columns.decode([], size=64).shape == (0, 64)
    assert base58_columns.encode([]) == []
    assert base58_columns.encode(np.empty((0, 32), dtype=np.uint8)) == []


FAULTS: dict[str, tuple[Any, str]] = {
    "zero digit": ("0" * 32, "is not base58"),
    "capital o": ("O" + TOP[1][1:], "is not base58"),
    "capital i": (TOP[1][:-1] + "I", "is not base58"),
    "small l": (TOP[1][:20] + "l" + TOP[1][21:], "is not base58"),
    "space before": (" " + ZERO[1], "is not base58"),
    "line end": (ZERO[1] + "\n", "is not base58"),
    "line ends before": ("\n" * 3 + ZERO[1], "is not base58"),
    "line ends only": ("\n" * 32, "is not base58"),
    "not ascii": ("é" * 40, "is not base58"),
    "full width": ("\uff11" * 32, "is not base58"),
    "half a character": ("\ud800" * 32, "is not base58"),
    "null": ("\0" * 44, "is not base58"),
    "empty": ("", "has 0 characters; 32 bytes are 32 to 44 characters"),
    "short": ("1" * 31, "has 31 characters; 32 bytes are 32 to 44 characters"),
    "long": ("1" * 45, "has 45 characters; 32 bytes are 32 to 44 characters"),
    "far too long": ("2" * 100_000, "has 100000 characters; 32 bytes are 32 to 44 characters"),
    "over": (OVER, "is 33 bytes, not 32"),
    "far over": ("z" * 44, "is 33 bytes, not 32"),
    "a zero too many": ("1" + TOP[1][:43], "is 33 bytes, not 32"),
    "a zero too few": ("1" * 30 + "22", "is 31 bytes, not 32"),
    "33 zeros": ("1" * 33, "is 33 bytes, not 32"),
    "missing": (None, "is not a text"),
    "not a number": (float("nan"), "is not a text"),
    "bytes": (ZERO[1].encode(), "is not a text"),
    "a list": ([ZERO[1]] * 32, "is not a text"),
}


@pytest.mark.parametrize("before", [2, 2500], ids=["first block", "second block"])
def test_anything_else_is_refused_by_row(before: int) -> None:
    """What is not 32 bytes in base58 is refused, naming field, row and rule, at any row."""
    for name, (text, rule) in FAULTS.items():
        with pytest.raises(DecodeError) as caught:
            base58_columns.decode([TOP[1]] * before + [text, TOP[1], ""], name="receipt_id")
        assert caught.value.path == f"receipt_id[{before}]", name
        assert caught.value.sentence.startswith("receipt_id ")
        assert caught.value.sentence.endswith(f"in row {before} {rule}"), name
        assert len(str(caught.value)) < 300


ODD_VALUES: dict[str, tuple[object, str]] = {
    "short": (bytes(31), "(31 bytes)"),
    "long": (bytes(33), "(33 bytes)"),
    "empty": (b"", "(0 bytes)"),
    "text": ("1" * 32, "(a str)"),
    "missing": (None, "(a NoneType)"),
    "number": (7, "(a int)"),
}


@pytest.mark.parametrize(("value", "shown"), ODD_VALUES.values(), ids=ODD_VALUES)
def test_values_of_another_length_are_refused_by_row(value: bytes, shown: str) -> None:
    """A value that is not 32 bytes is refused by row, never cut or filled up."""
    with pytest.raises(DecodeError) as caught:
        base58_columns.encode([bytes(32), value, b"", bytes(33)], name="block_hash")
    assert caught.value.path == "block_hash[1]"
    assert caught.value.sentence == f"block_hash {shown} in row 1 is not a value of 32 bytes"


def test_lengths_that_even_out_are_refused() -> None:
    """31 and 33 bytes are not two values of 32, though their sum is right."""
    with pytest.raises(DecodeError, match="row 0"):
        base58_columns.encode([bytes(31), bytes(33)])


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((2, 31), dtype=np.uint8),
        np.zeros(32, dtype=np.uint8),
        np.zeros((2, 32), dtype=np.int64),
        np.zeros((2, 32, 1), dtype=np.uint8),
        np.array([bytes(31) + b"\1"]),
    ],
    ids=["31 columns", "no rows", "wide integers", "3 dimensions", "numpy bytes"],
)
def test_arrays_of_another_shape_are_refused(array: np.ndarray) -> None:
    """An array that is not (n, 32) of uint8 is refused whole; numpy bytes lose their zeros."""
    with pytest.raises(InvalidRequestError, match=r"expected shape \(n, 32\) and dtype uint8"):
        base58_columns.encode(array)


@pytest.mark.parametrize("size", [0, -1, 257])
def test_sizes_beyond_what_is_exact_are_refused(size: int) -> None:
    """A size for which the arithmetic was not shown to be exact is refused both ways."""
    with pytest.raises(InvalidRequestError, match="1 to 256 bytes"):
        base58_columns.encode([], size=size)
    with pytest.raises(InvalidRequestError, match="1 to 256 bytes"):
        base58_columns.decode([], size=size)
