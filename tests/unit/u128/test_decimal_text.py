"""Texts: read and written as `int` and `str` do it, and only plain digits are read."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import DecodeError
from ledgerkit.u128 import decimal_text, planes

TOP = 2**128 - 1
EDGES = sorted(
    {0, TOP}
    | {2**bits + more for bits in (32, 64, 127) for more in (-1, 0, 1)}
    | {10**digits + more for digits in (*range(1, 39), 38) for more in (-1, 0)}
)
ROWS = 20_000  # more than two blocks

values = st.one_of(st.sampled_from(EDGES), st.integers(0, TOP), st.integers(0, 10**9))
padded = st.builds(lambda value, zeros: "0" * zeros + str(value), values, st.integers(0, 3))


def read(listed: list[str | None]) -> list[int]:
    (hi, lo), missing = decimal_text.parse(listed)
    assert hi.dtype == lo.dtype == np.uint64
    assert not missing.any()
    return planes.to_ints((hi, lo)).tolist()


def written(ints: list[int]) -> list[str]:
    hi, lo = planes.from_ints(ints)
    hi.flags.writeable = lo.flags.writeable = False
    found = decimal_text.format_texts((hi, lo))
    assert found.dtype == object
    return found.tolist()


def refusal(listed: list[str | None], **options: Any) -> DecodeError:
    """Parse what must be refused."""
    with pytest.raises(DecodeError) as caught:
        decimal_text.parse(listed, **options)
    return caught.value


def test_by_hand() -> None:
    """The first and the last value, and those beside a change of length, keep every digit."""
    listed = ["0", "9", "10", "99999999", "100000000", "18446744073709551616"]
    top = "340282366920938463463374607431768211455"
    ints = [0, 9, 10, 99_999_999, 100_000_000, 2**64]
    assert read([*listed, top]) == [*ints, 2**128 - 1]
    assert written([*ints, 2**128 - 1]) == [*listed, top]
    for value, text in zip(ints, listed, strict=True):
        assert read([text]) == [value]
        assert written([value]) == [text]


@given(st.lists(padded, max_size=30))
def test_reading(listed: list[str | None]) -> None:
    """A column of digits is read as `int` reads each text."""
    assert read(listed) == [int(text or "") for text in listed]


@given(st.lists(values, max_size=30))
def test_writing(ints: list[int]) -> None:
    """A column is written as `str` writes each value."""
    assert written(ints) == [str(value) for value in ints]


@given(st.lists(st.one_of(st.none(), padded), max_size=30))
def test_missing(listed: list[str | None]) -> None:
    """None is missing, and 0 in the planes."""
    (hi, lo), missing = decimal_text.parse(listed)
    assert missing.dtype == bool
    assert missing.tolist() == [text is None for text in listed]
    assert planes.to_ints((hi, lo)).tolist() == [int(text or "0") for text in listed]


def test_long_columns(subtests: pytest.Subtests) -> None:
    """Long columns, of short texts or long ones, come through both ways."""
    for length in [0, 1, 8, 16, 24, 38, 39]:
        with subtests.test(length=length):
            ints = [(value * 10**35 + value) % 10**length % 2**128 for value in range(ROWS)]
            listed = [str(value) for value in ints]
            assert written(ints) == listed
            assert read([*listed]) == ints
            gaps = [None if row % 9 == 4 else text for row, text in enumerate(listed)]
            (hi, lo), missing = decimal_text.parse(gaps)
            assert missing.nonzero()[0].tolist() == list(range(4, ROWS, 9))
            known = ~missing
            assert planes.to_ints((hi[known], lo[known])).tolist() == [
                int(text) for text in gaps if text
            ]


def test_zeros_in_front() -> None:
    """Zeros in front count for nothing, however many they are."""
    assert read(["007", "0" * 60, "0" * 100_000 + str(TOP), "1"]) == [7, 0, TOP, 1]


def test_forms_of_columns() -> None:
    """Lists, tuples and arrays are read alike and stay as they are."""
    listed: list[str | None] = ["1", None, "3"]
    array = np.array(listed, dtype=object)
    array.flags.writeable = False
    for column in (listed, tuple(listed), array):
        (hi, lo), missing = decimal_text.parse(column)
        assert (hi.tolist(), lo.tolist()) == ([0, 0, 0], [1, 0, 3])
        assert missing.tolist() == [False, True, False]
    assert listed == ["1", None, "3"]


NO_DIGITS = ["", "-1", "+1", " 1", "1 ", "1\n", "1_000", "1,000", "1.0", "1e3", "0x1f", "/", ":"]
NO_DIGITS += ["\0", "1\0", "٣٤", "2²", "\uff11\uff12", "\ud800", "nan", "-0"]
NO_DIGITS += ["-" + "1" * 39, "0" * 60 + "x"]
FOLLOWING: list[list[str | None]] = [["8"], ["8", None, "?"]]


@pytest.mark.parametrize("row", [0, 5, 9000])
def test_no_digits(row: int) -> None:
    """Whatever is not ASCII digits is refused, and its row named, in any block."""
    for text, others in itertools.product(NO_DIGITS, FOLLOWING):
        error = refusal([*["7"] * row, text, *others], name="amount")
        assert error.path == f"amount[{row}]", text
        assert f" in row {row} is not a string of decimal digits" in str(error), text


def test_no_text() -> None:
    """What is no text is refused, numbers too."""
    for value in (5, 5.0, True, b"5", float("nan")):
        error = refusal(["1", value])  # type: ignore[list-item]  # that is the point
        assert f"balance {value!r} in row 1 is not a string of decimal digits" in str(error)


def test_too_large() -> None:
    """Values above 2^128 - 1 are refused, the first of them named, never cut."""
    large = [str(2**128), "9" * 39, "1" + "0" * 39, "00" + str(2**128), "9" * 5000]
    for text, others in itertools.product(large, ([], ["9" * 40])):
        error = refusal(["1", str(TOP), text, *others])
        assert error.path == "balance[2]", text
        assert "in row 2 does not fit in u128" in str(error), text
        assert len(str(error)) < 400


def test_first_fault() -> None:
    """Of several faults of different kinds the first row is named."""
    assert refusal(["1", "9" * 39, "x"]).path == "balance[1]"
    assert refusal(["1", "x", "9" * 39]).path == "balance[1]"
    assert refusal([None, "-1", ""]).path == "balance[1]"
