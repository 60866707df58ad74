"""Base58 of hashes: the same bytes as the reference package, everything else refused."""

from __future__ import annotations

import base58
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerkit.errors import DecodeError
from ledgerkit.proofs.headers import decode_hashes

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
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


def test_known_texts(subtests: pytest.Subtests) -> None:
    """Texts worked out by hand are read, alone and among others."""
    for case, (value, text) in BY_HAND.items():
        with subtests.test(case=case):
            assert decode_hashes(text) == [value]
            assert decode_hashes(TOP[1], text, ZERO[1]) == [TOP[0], value, ZERO[0]]


@given(st.lists(st.binary(min_size=32, max_size=32)))
def test_any_hashes_agree_with_the_reference(values: list[bytes]) -> None:
    """Any values are read from the texts that the base58 package writes."""
    assert decode_hashes(*(base58.b58encode(value).decode() for value in values)) == values


@settings(max_examples=300)
@given(st.text(ALPHABET, min_size=30, max_size=46))
def test_a_text_is_read_only_if_it_holds_32_bytes(text: str) -> None:
    """Any base58 text is read as the reference reads it, or refused for its size."""
    expected = base58.b58decode(text)
    if len(expected) == 32:
        assert decode_hashes(text) == [expected]
        return
    with pytest.raises(DecodeError):
        decode_hashes(text)


FAULTS = {
    "zero digit": "0" * 32,
    "capital o": "O" + TOP[1][1:],
    "capital i": TOP[1][:-1] + "I",
    "small l": TOP[1][:20] + "l" + TOP[1][21:],
    "space before": " " + ZERO[1],
    "line end": ZERO[1] + "\n",
    "line ends before": "\n" * 3 + ZERO[1],
    "line ends only": "\n" * 32,
    "not ascii": "é" * 40,
    "full width": "\uff11" * 32,
    "half a character": "\ud800" * 32,
    "null": "\0" * 44,
    "empty": "",
    "short": "1" * 31,
    "long": "1" * 45,
    "far too long": "2" * 100_000,
    "over": OVER,
    "far over": "z" * 44,
    "a zero too many": "1" + TOP[1][:43],
    "a zero too few": "1" * 30 + "22",
    "33 zeros": "1" * 33,
}


def test_anything_else_is_refused(subtests: pytest.Subtests) -> None:
    """What is not 32 bytes in base58 is refused among others, in a short sentence."""
    for name, text in FAULTS.items():
        with subtests.test(case=name), pytest.raises(DecodeError) as caught:
            decode_hashes(TOP[1], text, ZERO[1])
        assert "is not a hash, 32 bytes in base58" in str(caught.value)
        assert len(str(caught.value)) < 300
