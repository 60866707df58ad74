"""Base58 of hashes: the same bytes as the reference package, everything else refused."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import base58
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerkit.errors import DecodeError
from ledgerkit.proofs import base58_hashes

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


def reference(value: bytes) -> str:
    return base58.b58encode(value).decode()


def test_known_texts(subtests: pytest.Subtests) -> None:
    """Texts worked out by hand are read, alone and among others."""
    for case, (value, text) in BY_HAND.items():
        with subtests.test(case=case):
            assert base58_hashes.decode([text]).tobytes() == value
            assert (
                base58_hashes.decode([TOP[1], text, ZERO[1]]).tobytes() == TOP[0] + value + ZERO[0]
            )


@given(st.lists(st.binary(min_size=32, max_size=32)))
def test_any_hashes_agree_with_the_reference(values: list[bytes]) -> None:
    """Any values are read from the texts that the base58 package writes."""
    assert base58_hashes.decode(list(map(reference, values))).tobytes() == b"".join(values)


@settings(max_examples=300)
@given(st.text(base58_hashes.ALPHABET, min_size=30, max_size=46))
def test_a_text_is_read_only_if_it_holds_32_bytes(text: str) -> None:
    """Any base58 text is read as the reference reads it, or refused for its size."""
    expected = base58.b58decode(text)
    if len(expected) == 32:
        assert base58_hashes.decode([text]).tobytes() == expected
        return
    with pytest.raises(DecodeError):
        base58_hashes.decode([text])


@given(st.lists(st.text(max_size=50), max_size=4))
def test_any_texts_are_read_or_refused(texts: list[str]) -> None:
    """Whatever the texts, they are read as the reference reads them, or refused."""
    with suppress(DecodeError):
        rows = base58_hashes.decode(texts)
        assert [reference(row.tobytes()) for row in rows] == texts


def test_many_blocks() -> None:
    """More rows than one block holds keep their order and values; no rows are none."""
    rows = np.random.default_rng(1).integers(0, 256, (5000, 32), dtype=np.uint8)
    rows[::7, :3] = 0
    texts = [reference(row.tobytes()) for row in rows]
    assert np.array_equal(base58_hashes.decode(texts), rows)
    assert base58_hashes.decode([]).shape == (0, 32)


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
            base58_hashes.decode([TOP[1]] * before + [text, TOP[1], ""], name="receipt_id")
        assert caught.value.path == f"receipt_id[{before}]", name
        assert caught.value.sentence.startswith("receipt_id ")
        assert caught.value.sentence.endswith(f"in row {before} {rule}"), name
        assert len(str(caught.value)) < 300
