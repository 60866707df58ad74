"""Secrets are recognised in whatever form they were passed, and ordinary values are not."""

from __future__ import annotations

import ast
import json
import pickle
from pathlib import Path
from typing import Any, Never

import base58
import pandas as pd
import pytest

import ledgerkit
from ledgerkit import errors, redaction
from ledgerkit.collecting import account_sources
from ledgerkit.errors import InvalidRequestError, LedgerError
from ledgerkit.protocol import SecretKey
from ledgerkit.tracing.trace import Trace

PHRASE = "legal winner thank year wave sausage worth useful legal winner thank yellow"
KEY = SecretKey.from_seed_phrase(PHRASE).reveal()
BODY = KEY.removeprefix("ed25519:")
SECP = "secp256k1:" + base58.b58encode(bytes(range(200, 232))).decode()
TOKEN = "a1B2c3D4e5F6g7H8j9K0mNpQ"
HASH = base58.b58encode(bytes(range(32))).decode()

SECRETS: dict[str, Any] = {
    "ed25519": KEY,
    "without its curve": BODY,
    "secp256k1": SECP,
    "a character lost": KEY[:40] + KEY[41:],
    "a character mistyped": KEY[:40] + "0" + KEY[41:],
    "its end lost": KEY[:60],
    "broken by a line": f"{KEY[:40]}\n  {KEY[40:]}",
    "without its curve, broken": f"{BODY[:40]}\n{BODY[40:]}",
    "broken by an invisible character": f"{KEY[:20]}\u200b{KEY[20:]}",
    "upper-case curve": "ED25519:" + BODY,
    "in a list": ["alice.near", KEY],
    "in a dict": {"a": {"b": (KEY,)}},
    "as a member's name": {KEY: 1},
    "as a column's name": pd.DataFrame({KEY: [1]}),
    "as a row's name": pd.Series([1], index=[KEY]),
    "as the name of a Series": pd.Series([1], name=BODY),
    "as the name of an Index": pd.Index(["a"], name=KEY),
    "in a Series": pd.Series(["alice.near", KEY]),
    "in a DataFrame, far down": pd.DataFrame({"a": ["x"] * 500 + [KEY]}),
    "as bytes": KEY.encode(),
    "as raw bytes": bytes(64),
    "in a path": Path("folder", KEY),
    "in an address": f"https://host.example/{KEY}",
    "quoted for a URL": "ed25519%3A" + BODY,
    "in JSON": json.dumps({"private_key": KEY}),
    "in a long text": f"{'x, ' * 900}{KEY}{', y' * 900}",
    "as hexadecimal": "0x" + "0f" * 32,
    "an object": SecretKey.from_text(KEY),
    "a phrase": PHRASE,
    "a phrase in upper case": PHRASE.upper(),
    "a phrase by words": PHRASE.split(),
    "a phrase with commas": PHRASE.replace(" ", ", "),
    "a phrase in lines": PHRASE.replace(" ", "\n"),
    "a numbered phrase": " ".join(f"{n}. {word}" for n, word in enumerate(PHRASE.split())),
    "an API key": TOKEN,
    "a UUID": "3f2c9d1e-8a7b-4c6d-9e0f-1a2b3c4d5e6f",
    "a query": "https://host.example/?apiKey=abc",
    "a header": "Bearer abcdefgh1",
    "a login": "https://me:word@host.example",
}


def pieces() -> list[str]:
    """Return parts of the secrets that must not be shown."""
    return [BODY[:12], BODY[40:52], SECP[12:24], "winner thank", "'winner'", TOKEN[:8], "me:word"]


def test_a_secret_is_in_no_part_of_a_refusal(subtests: pytest.Subtests) -> None:
    """The message names what it is instead, and no attribute or pickle has the value."""
    for case, value in SECRETS.items():
        with subtests.test(case=case):
            error = InvalidRequestError.refuse("receiver_id", value, "an account id")
            texts = f"{error} {error!r} {error.args} {vars(error)} {pickle.dumps(error)!r}"
            assert [piece for piece in pieces() if piece in texts] == []
            assert "was passed as receiver_id, and is not shown: expected an account id" in str(
                error
            )
            assert error.value is None
            assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own


def test_the_kind_of_secret_is_named() -> None:
    """A reader learns what to look for."""
    assert str(InvalidRequestError.refuse("receiver_id", KEY, "an account id")) == (
        "a secret key was passed as receiver_id, and is not shown: expected an account id."
    )
    assert redaction.secret_in(PHRASE) == "a seed phrase"
    assert redaction.secret_in("https://me:word@host.example") == "a password"


def test_ordinary_values_are_shown(subtests: pytest.Subtests) -> None:
    """Whatever is no secret is quoted, and kept in the attribute."""
    cases = [
        "Alice.near",
        "a" * 65,
        "ab" * 32,
        "0x" + "cd" * 20,
        HASH,
        HASH + "1",
        "mainet",
        "/tmp/pytest-of-root/pytest-12/test_collect0/accounts.parquet",  # noqa: S108 - not opened
        ["alice.near", "bob.near", "carol.near", "dave.near", "erin.near", "frank.near"],
        {"account_id": "alice.near", "amount": "1"},
        "The contract panicked because the account has not enough balance for the transfer",
        b"abc",
        10**30,
        None,
        1.5,
        range(3),
    ]
    for value in cases:
        with subtests.test(value=value):
            error = InvalidRequestError.refuse("field", value, "something else")
            assert repr(value)[:100] in str(error)
            assert error.value is value


@pytest.mark.parametrize("secret", [KEY, BODY, SECP, PHRASE], ids=["ed25519", "bare", "secp", "12"])
def test_a_sentence_loses_the_secret_only(secret: str) -> None:
    """In a message that someone else wrote, the words around a secret are left."""
    error = LedgerError(f"cannot open 's3://{secret}/x' now", reason=f"no {secret}, sorry")
    assert [piece for piece in pieces() if piece in f"{error} {vars(error)}"] == []
    assert str(error).startswith("cannot open 's3://[")
    assert str(error).endswith(" hidden]/x' now.")


def test_public_texts_are_left() -> None:
    """Public keys, hashes, account ids and times in a message stay as they are."""
    public = str(SecretKey.from_text(KEY).public_key)
    long_public = "secp256k1:" + base58.b58encode(bytes(range(64))).decode()
    text = f"{public}, {long_public}, {HASH} of {'ab' * 32} at 2026-01-01T00:00:00Z"
    assert redaction.hide(text) == text


def test_no_sentence_of_the_package_is_changed() -> None:
    """No text in the code reads as a secret, but an alphabet and an example."""
    folder = Path(ledgerkit.__file__).parent
    texts = {
        node.value
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    changed = sorted(text[:20] for text in texts if redaction.hide(text) != text)
    assert changed == ["ABCDEFGHIJKLMNOPQRST", "Write it as http://u"]


def test_a_secret_text_is_hidden_while_it_is_used() -> None:
    """A password in use is found in any spelling, and forgotten with its object."""
    password = redaction.SecretText("pa55/word+x")
    assert redaction.hide("GET /?p=pa55%2Fword%2Bx") == "GET /?p=[password hidden]"
    assert redaction.secret_in("x pa55/word+x") == "a password"
    assert repr(password) == "<SecretText hidden>"
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(password)
    del password
    assert redaction.secret_in("x pa55/word+x") is None


class Broken:
    """An object of another library, which can be neither shown nor converted."""

    def __repr__(self) -> str:
        raise OSError("no repr")

    def to_numpy(self) -> Never:
        raise OSError("no array")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (10**5000, "<int>"),
        (nested(100_000), "<list>"),
        (Broken(), "<Broken>"),
    ],
    ids=["digits", "nesting", "object"],
)
def test_a_value_without_a_repr_is_refused_by_its_type(value: Any, shown: str) -> None:
    """Whatever cannot be shown is refused like any other value."""
    error = InvalidRequestError.refuse("account_id", value, "an account id")
    assert str(error) == f"account_id {shown} is not valid: expected an account id."
    assert errors.quote(value) == shown


def test_a_list_that_contains_itself_is_searched_once() -> None:
    """A secret is found in it, and its absence, too."""
    value: list[Any] = []
    value += [value, {"items": value}, value]
    assert redaction.secret_in(value) is None
    value.append(KEY)
    assert redaction.secret_in(value) == "a secret key"
    deep = nested(1000)
    deep.append([[KEY]])
    assert redaction.secret_in([deep]) == "a secret key"


def test_a_password_of_backslashes_is_found_in_linear_time() -> None:
    """Each of its spellings is found, and a long row of backslashes is read once."""
    password = redaction.SecretText("\\" * 30 + "x")
    assert redaction.hide("=" + "\\" * 30 + "x") == "=[password hidden]"
    assert redaction.hide("=" + "\\" * 60 + "x") == "=[password hidden]"
    assert redaction.hide("=" + "%5C" * 30 + "x") == "=[password hidden]"
    row = "\\" * 2000
    assert redaction.hide(row) == row
    del password


def test_a_mistyped_hash_is_shown() -> None:
    """Base58 lacks 0, O, I and l: the reader must see which letter is wrong."""
    mistyped = HASH[:-1] + "0"
    assert f"'{mistyped}'" in str(InvalidRequestError.refuse("tx_hash", mistyped, "a hash"))


def test_a_secret_of_eight_characters_is_hidden() -> None:
    """A shorter one may be a part of ordinary data, and is left."""
    long, short = redaction.SecretText("zq7Kp2w9"), redaction.SecretText("zq7Kp2w")
    assert long.hide(b"sent zq7Kp2w9 away") == b"sent [password hidden] away"
    assert short.hide(b"sent zq7Kp2w away") == b"sent zq7Kp2w away"


def test_what_may_be_public_is_recognised_by_its_beginning() -> None:
    """A public key that lost a letter, or a file's id, is named by four letters and its length."""
    public = str(SecretKey.from_text(KEY).public_key)
    assert str(InvalidRequestError.refuse("public_key", public[:-3], "a key")) == (
        f"what may be a secret key ({public[8:12]}…, {len(public) - 11} characters) was passed as"
        " public_key, and is not shown: expected a key."
    )
    path = "/data/123e4567-e89b-12d3-a456-426614174000/ids.csv"
    assert redaction.secret_in(path) == "what may be an API key (123e…, 36 characters)"


@pytest.mark.parametrize("secret", [KEY, SECP, PHRASE], ids=["ed25519", "secp", "phrase"])
def test_no_part_of_a_secret_is_left_where_a_text_is_shortened(
    subtests: pytest.Subtests, secret: str
) -> None:
    """A shortened text ends before a secret, or has its placeholder."""
    for length in [0, 30, 60, 100, 110, 119, 150, 190]:
        with subtests.test(length=length):
            text = f"{'. ' * (length // 2)}{secret} and so on"
            shown = (
                f"{errors.from_status(500, text, request='GET /x')}"
                f"{errors.ContractPanicError(panic_msg=text)}{errors.excerpt(text, 60)}"
            )
            assert [piece for piece in pieces() if piece in shown] == []
            assert secret[:15] not in shown


def test_a_response_that_is_not_json_is_quoted_without_its_secret() -> None:
    """The first 60 characters are quoted, and a key that goes on beyond them is hidden."""
    with pytest.raises(errors.DecodeError) as caught:
        Trace.from_json(f"https://host/{KEY}".encode())
    assert "it starts with 'https://host/[secret key hidden]'" in str(caught.value)


@pytest.mark.parametrize("value", [{KEY: 1}, pd.DataFrame({KEY: [1]}), [KEY]])
def test_a_path_of_another_type_is_refused_without_its_secret(value: Any) -> None:
    """Reading a Parquet file refuses values that are no path."""
    with pytest.raises(InvalidRequestError, match="a secret key was passed as path"):
        ledgerkit.read_parquet(value)


def test_a_path_with_a_secret_is_not_opened(tmp_path: Path) -> None:
    """The error of the system has the path as an attribute, so none is caused."""
    with pytest.raises(InvalidRequestError) as caught:
        account_sources.source(tmp_path / KEY)
    assert caught.value.__context__ is None
