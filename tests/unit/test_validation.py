"""What callers pass is checked by the chain's own rules, before anything is sent."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import base58
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ledgerkit import protocol, validation
from ledgerkit.api import rpc
from ledgerkit.errors import InvalidRequestError


def text58(size: int, byte: int = 7) -> str:
    """Give so many bytes in base58."""
    return base58.b58encode(bytes([byte]) * size).decode()


HASH = text58(32)
_LARGE = pd.ArrowDtype(pa.large_string())


def refusal(check: Any, *args: Any, **options: Any) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as caught:
        check(*args, **options)
    return caught.value


# Account ids ----------------------------------------------------------------------------


def test_many_account_ids(subtests: pytest.Subtests) -> None:
    """Lists, Series and the like are read in order, repeats dropped."""
    cases = [
        ["b.near", "a.near", "b.near"],
        ("b.near", "a.near"),
        {"b.near": 1, "a.near": 2}.keys(),
        pd.Series(["b.near", "a.near", "a.near"]),
        pd.Index(["b.near", "a.near"]),
        np.array(["b.near", "a.near"], dtype=object),
        (one for one in ("b.near", "a.near")),
        *(
            pd.Series(["b.near", "a.near"], dtype=dtype)
            for dtype in ("string[python]", "string[pyarrow]", "str", "category", _LARGE)
        ),
        pa.array(["b.near", "a.near"]),
        pa.array(["b.near", "a.near"], pa.string_view()),
        pa.array(["b.near", "a.near"]).dictionary_encode(),
        pa.chunked_array([["b.near"], ["a.near"]], pa.large_string()),
    ]
    for many in cases:
        with subtests.test(many=many):
            assert validation.account_ids(many) == ["b.near", "a.near"]


def test_one_account_id_is_a_list_of_one() -> None:
    """A text is one id, not its letters."""
    assert validation.account_ids("bob.near") == ["bob.near"]
    assert validation.account_ids([]) == []


@pytest.mark.parametrize(
    "value",
    [
        *(None, 7, b"bob.near", {"bob.near": 1}, pd.DataFrame({"bob.near": [1]})),
        *(pa.table({"bob.near": [1]}), pa.scalar("bob.near"), pa.array([b"bob.near"])),
        *(pa.array([7]), pa.array(["bob.near", None])),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_list_of_account_ids(value: object) -> None:
    """A dictionary, a table or a number is not read as a list of ids."""
    assert refusal(validation.account_ids, value).field == "account_ids"


# Keys and hashes ------------------------------------------------------------------------


def test_public_keys() -> None:
    """A key of each curve is taken, without a curve an ed25519 key; others by the rule."""
    for curve, size in (("ed25519", 32), ("secp256k1", 64), ("ml-dsa-65", 1952)):
        text = f"{curve}:{text58(size)}"
        assert validation.public_key(text) == text
        for value in (f"{curve}:{text58(size + 1)}", text + "\n", f"{curve}:", None):
            error = refusal(validation.public_key, value)
            assert error.field == "public_key"
            assert error.rule == (
                "ed25519:<base58 of 32 bytes>, secp256k1:<base58 of 64 bytes> or "
                "ml-dsa-65:<base58 of 1952 bytes>"
            )
    assert validation.public_key(text58(32)) == f"ed25519:{text58(32)}"
    assert refusal(validation.public_key, f"ed448:{text58(32)}").field == "public_key"


def test_hashes() -> None:
    """32 bytes in base58 are a hash."""
    assert validation.crypto_hash(HASH) == HASH
    assert validation.crypto_hash("1" * 32) == "1" * 32


def test_what_is_no_hash(subtests: pytest.Subtests) -> None:
    """Anything else is none, by name and rule."""
    cases = ["", HASH[:-1], text58(33), "ab" * 32, HASH + " ", "0" * 44, None, 5, "1" * 45]
    for value in cases:
        with subtests.test(value=value):
            error = refusal(validation.crypto_hash, value, "receipt_id")
            assert error.field == "receipt_id"
            assert error.rule == "32 bytes in base58, 43 or 44 characters"


# Numbers --------------------------------------------------------------------------------


def test_heights(subtests: pytest.Subtests) -> None:
    """Plain and numpy integers are heights, and come out plain."""
    cases: list[Any] = [0, 1, 2**64 - 1, np.int64(5), np.uint64(2**64 - 1), np.int8(1), np.array(7)]
    for value in cases:
        with subtests.test(value=value):
            height = validation.block_height(value)
            assert type(height) is int
            assert height == int(value)


def test_what_is_no_height(subtests: pytest.Subtests) -> None:
    """Booleans, floats, texts, arrays and what is out of range are none."""
    cases = [
        -1,
        2**64,
        True,
        False,
        np.True_,
        1.0,
        np.float64(1),
        "1",
        None,
        np.array([1, 2]),
        1 + 0j,
    ]
    for value in cases:
        with subtests.test(value=value):
            error = refusal(validation.block_height, value)
            assert error.field == "block_height"
            assert error.rule == "a block height, an integer from 0 to 18446744073709551615"


def test_whole_numbers_have_bounds() -> None:
    """A number outside its bounds is refused with them."""
    assert validation.integer(5, "page", least=1, most=10) == 5
    error = refusal(validation.integer, 11, "page", least=1, most=10)
    assert error.rule == "a number, an integer from 1 to 10"


def test_words_are_from_a_list() -> None:
    """A word is one of those there are, to the letter."""
    assert validation.one_of("raise", "on_error", ("raise", "collect")) == "raise"
    for value in ("Raise", "", None, ["raise"]):
        error = refusal(validation.one_of, value, "on_error", ("raise", "collect"))
        assert error.rule == "one of raise, collect"


def test_a_misspelt_word_names_the_likely_one() -> None:
    """The remedy of a refused word, list of words or id has the valid one that is most like it."""
    choices = ("accounts", "accounts_of", "ft")
    for value, remedy in (
        ("acounts", "Did you mean 'accounts'?"),
        ("Accounts_of", "Did you mean 'accounts_of'?"),
        ("blocks", ""),
        (None, ""),
    ):
        assert refusal(validation.one_of, value, "view", choices).remedy == remedy
    error = refusal(validation.subset_of, ["ft", "acounts"], "views", choices)
    assert (error.value, error.remedy) == ("acounts", "Did you mean 'accounts'?")
    assert refusal(validation.block_reference, "finl").remedy == "Did you mean 'final'?"
    assert refusal(validation.account_id, " Alice.near").remedy == "Did you mean 'alice.near'?"
    assert refusal(validation.account_id, "A").remedy == ""
    secret = "ed25519:" + "3" * 88
    error = refusal(validation.one_of, secret[:-1], "view", (*choices, secret))
    assert secret[:-1] not in str(error)


# Points in time -------------------------------------------------------------------------

NS = 1771106600329561530
EXACT = pd.Timestamp(NS, tz="UTC")


def test_at_by_reference(subtests: pytest.Subtests) -> None:
    """Finality, checkpoint, height and hash are passed on as the wire wants them."""
    cases = [
        (None, {"finality": "final"}),
        ("final", {"finality": "final"}),
        ("near-final", {"finality": "near-final"}),
        ("earliest_available", {"sync_checkpoint": "earliest_available"}),
        (0, {"block_id": 0}),
        (np.int64(9), {"block_id": 9}),
        (HASH, {"block_id": HASH}),
    ]
    for value, params in cases:
        with subtests.test(value=value):
            found = validation.block_reference(value)
            assert (found.params, found.timestamp_ns) == (params, None)
            assert found.pinned == (value == HASH)


def test_at_by_time(subtests: pytest.Subtests) -> None:
    """A time is read to the nanosecond; without a zone it is UTC."""
    cases = [
        (EXACT, NS),
        (EXACT.tz_convert("Asia/Kolkata"), NS),
        (EXACT.tz_localize(None), NS),
        (EXACT.as_unit("us"), NS // 1000 * 1000),
        (EXACT.to_datetime64(), NS),
        (np.datetime64("2026-02-14"), 1771027200 * 10**9),
        (datetime(2026, 2, 14, 22, 3, 20, 329561), NS // 1000 * 1000),  # noqa: DTZ001 - reads as UTC
        (datetime(2026, 2, 14, 22, 3, 20, tzinfo=UTC), NS // 10**9 * 10**9),
        (
            datetime(2026, 2, 15, 0, 3, 20, tzinfo=timezone(timedelta(hours=2))),
            NS // 10**9 * 10**9,
        ),
        ("2026-02-14T22:03:20.329561530Z", NS),
        ("2026-02-14T22:03:20.3295615Z", NS // 100 * 100),
        ("2026-02-15 00:03:20.329561530+02:00", NS),
        ("2026-02-14T22:03:20", NS // 10**9 * 10**9),
        ("2026-02-14", 1771027200 * 10**9),
        (date(2026, 2, 14), 1771027200 * 10**9),
        ("2026-07", 1782864000 * 10**9),
        ("1969-12-31T23:59:59", -(10**9)),
    ]
    for value, ns in cases:
        with subtests.test(value=value):
            found = validation.block_reference(value)
            assert (found.params, found.timestamp_ns) == ({}, ns)
            assert not found.pinned


def test_what_is_no_point_in_time(subtests: pytest.Subtests) -> None:
    """Anything else is refused as `at`, and a height as text is no date."""
    cases = [
        "Final",
        "",
        "20260214",
        "2026-13-01",
        HASH[:-1],
        1.5,
        True,
        2**64,
        pd.NaT,
        np.datetime64("NaT", "s"),
        np.datetime64("2500-01-01"),
        np.True_,
        *("2026", "2026-00", "2026-13", "0000-01", "2026-7", "2026-07-", "next month"),
        {"finality": "final"},
    ]
    for value in cases:
        with subtests.test(value=value):
            assert refusal(validation.block_reference, value).field == "at"


# Addresses ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("https://rpc.example.com", "https://rpc.example.com"),
        ("https://rpc.example.com/", "https://rpc.example.com"),
        ("http://127.0.0.1:3030/path/", "http://127.0.0.1:3030/path"),
        ("http://[::1]:3030", "http://[::1]:3030"),
        ("HTTPS://rpc.example.com", "https://rpc.example.com"),
    ],
)
def test_addresses(text: str, read: str) -> None:
    """An address is taken without its last slash."""
    assert validation.url(text, "rpc_url") == read


LEAK = "PLANTED-LEAK"


def test_addresses_that_hold_more_than_they_may(subtests: pytest.Subtests) -> None:
    """A malformed address, or one with credentials, is refused without showing them."""
    cases = [
        f"https://user:{LEAK}@rpc.example.com",
        f"https://rpc.example.com/v1?apiKey={LEAK}",
        f"https://rpc.example.com#{LEAK}",
        f"rpc.example.com/v1/{LEAK}",
        f"user:{LEAK}@rpc.example.com",
        f"ftp://user:{LEAK}@rpc.example.com/{LEAK}",
        f"https://rpc.example.com:{LEAK}",
        f"https://[::1/{LEAK}",
        f"https:///{LEAK}",
        f"https://rpc.example.com/\n{LEAK}",
    ]
    for text in cases:
        with subtests.test(text=text):
            error = refusal(validation.url, text, "rpc_url")
            assert error.field == "rpc_url"
            assert LEAK not in f"{error} {error!r} {error.args} {vars(error)}"


@pytest.mark.parametrize("value", ["", "localhost", "mainnet", "/rpc", 5, None], ids=repr)
def test_what_is_no_address(value: object) -> None:
    """Whatever has no scheme and host is none."""
    assert refusal(validation.url, value, "api_url").rule == "a URL such as https://rpc.example.com"


# Arguments ------------------------------------------------------------------------------


def test_arguments(subtests: pytest.Subtests) -> None:
    """Arguments are JSON, bytes are sent as they are."""
    cases = [
        ({}, b"{}"),
        ({"a": 1, "b": [None, True]}, b'{"a":1,"b":[null,true]}'),
        ([1, "ü"], '[1,"ü"]'.encode()),
        ("text", b'"text"'),
        (2**80, b"1208925819614629174706176"),
        (b"\x00raw", b"\x00raw"),
        (b"", b""),
    ]
    for value, sent in cases:
        with subtests.test(value=value):
            assert validation.json_args(value) == sent


@pytest.mark.parametrize(
    "value", [object(), {1j: 2}, lambda: 0], ids=["object", "complex", "function"]
)
def test_what_is_no_argument(value: object) -> None:
    """What JSON cannot say is refused as `args`."""
    assert refusal(validation.json_args, value).field == "args"


@pytest.mark.parametrize("value", ["", "x" * 257, "ü" * 129, None, 5], ids=repr)
def test_what_is_no_method(value: object) -> None:
    """A method's name has 1 to 256 bytes."""
    assert validation.method_name("x" * 256) == "x" * 256
    assert refusal(validation.method_name, value).rule == "a str of 1 to 256 bytes"


def test_values_that_the_protocol_has_checked_read_as_their_text() -> None:
    """An id, hash or key of `ledgerkit.protocol` goes into any verb, as plain text."""
    digest = protocol.CryptoHash(bytes(31) + b"\1")
    key = protocol.PublicKey("ed25519", bytes(31) + b"\1")
    assert type(validation.account_id(protocol.AccountId("a.near"))) is str
    assert validation.crypto_hash(digest) == "1" * 31 + "2"
    assert validation.public_key(key) == "ed25519:" + "1" * 31 + "2"


def test_arguments_that_no_document_can_have_are_refused() -> None:
    """Deep nesting and a lone surrogate are refused as values, and as a method's name."""
    deep: list[Any] = []
    # From Python 3.14 on the size of the stack is the limit.
    for _ in range(200_000 if sys.version_info >= (3, 14) else 5_000):
        deep = [deep]
    assert refusal(validation.json_args, deep).field == "args"
    assert refusal(validation.json_args, ["\ud800"]).field == "args"
    assert refusal(validation.method_name, "\ud800").field == "method_name"
    for params in (deep, 10**5000, "\ud800"):
        assert refusal(rpc.call, "status", params).field == "params"


def test_words_of_other_types_are_refused() -> None:
    """Lists and arrays in the place of words are no words."""
    table = np.array([["ft", 1], [None, 2]], dtype=object)
    assert refusal(validation.one_of, table, "kind", ("ft", "nft")).field == "kind"
    assert refusal(validation.subset_of, [["ft"]], "views", ("ft", "nft")).field == "views"
    assert refusal(validation.subset_of, table, "views", ("ft", "nft")).field == "views"
