"""Texts as they are displayed: none acts on a terminal, hides or reorders a line."""

from __future__ import annotations

import io
import json
import traceback
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit import errors, progress, user_warnings
from ledgerkit.collecting import plan
from ledgerkit.protocol import CryptoHash, FunctionCall, PublicKey, Transaction
from ledgerkit.transport import networks, rate_limit
from ledgerkit.visible_text import escape_invisible
from tests.hostile import hidden_characters

HOSTILE = "\x1b]0;title\x07\x9b2Jgold\u202e\u2066\u200b.near"
SHOWN = r"\x1b]0;title\x07\x9b2Jgold\u202e\u2066\u200b.near"
CALL = FunctionCall(HOSTILE, b"", 1, 0)
KEY = PublicKey.from_text("ed25519:" + "1" * 32)
NASTY = st.text(
    st.sampled_from("a1$\u0301\u200c\u200d\ufe0e\ufe0f\u20e3\U0001f600\u2764\u0915\u094d\u0645\x1b")
    | st.characters(),
    max_size=60,
)


def test_what_acts_or_hides_is_written_as_an_escape(subtests: pytest.Subtests):
    """Each kind of character that is not seen stands as Python writes it."""
    cases = [
        ("\x1b[31m\x07\x7f\x9b", r"\x1b[31m\x07\x7f\x9b"),  # C0, DEL and C1
        ("a\tb\r\nc", r"a\tb\r\nc"),
        ("\u202a\u202b\u202c\u202d\u202e", r"\u202a\u202b\u202c\u202d\u202e"),
        (
            "\u2066\u2067\u2068\u2069\u200e\u200f\u061c",
            r"\u2066\u2067\u2068\u2069\u200e\u200f\u061c",
        ),
        ("a\u200b\u2060\ufeff\u00adb", r"a\u200b\u2060\ufeff\xadb"),
        ("\u3164\u115f\u034f\uffa0", r"\u3164\u115f\u034f\uffa0"),  # letters and marks not seen
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("\ud800", r"\ud800"),
        ("x\U000e0041\U000e007f", r"x\U000e0041\U000e007f"),  # tags
        ("\ue000\U0010ffff", r"\ue000\U0010ffff"),  # private use and noncharacters
        ("e" + "\u0301" * 6, "e" + "\u0301" * 4 + r"\u0301\u0301"),
        ("\u0301e", r"\u0301e"),  # it would be drawn over the text before
        ("a\u200db\ufe0f", r"a\u200db\ufe0f"),
        ("\u2764\ufe0f\ufe0f", "\u2764\ufe0f" + r"\ufe0f"),
    ]
    for text, escaped in cases:
        with subtests.test(text=text):
            assert escape_invisible(text) == escaped


@pytest.mark.parametrize(
    "text",
    [
        "alice.near, 100 NEAR",
        r"C:\new and \x1b",  # a backslash stays, so that a text may be escaped twice
        "Việt नमस्ते ไทย עברית 中文\u3000テスト 1\u00a0000 €",
        "\U0001f469\u200d\U0001f680 \u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3 \U0001f1fa",
        "\u0915\u094d\u200d\u0937 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    ],
)
def test_words_of_any_language_stay(text: str):
    """Scripts keep their marks and joiners, emoji their sequences."""
    assert escape_invisible(text) == text


@given(text=NASTY)
def test_escaping_leaves_nothing_hidden(text: str):
    """Whatever the text, nothing hidden is left, and a second time changes nothing."""
    escaped = escape_invisible(text)
    assert hidden_characters(escaped, keep="") == []
    assert escape_invisible(escaped) == escaped


@given(text=NASTY)
def test_json_stays_the_same_document(text: str):
    """The escapes of JSON are read back as the characters."""
    document = json.dumps({text: [text]}, ensure_ascii=False)
    escaped = escape_invisible(document, as_json=True)
    assert json.loads(escaped) == {text: [text]}
    assert hidden_characters(escaped, keep="") == []


@given(text=NASTY, limit=st.integers(2, 80))
def test_a_shortened_text_hides_nothing(text: str, limit: int):
    """A cut between an emoji and its joiner leaves none behind."""
    escaped = errors.cut(text, limit)
    assert hidden_characters(escaped, keep="") == []
    assert len(escaped) <= limit


def test_an_error_is_printed_visibly(subtests: pytest.Subtests):
    """The text of an error, its repr and its traceback show what would act on the terminal."""
    cases = [
        lk.LedgerError(HOSTILE),
        lk.LedgerError("failed", remedy=HOSTILE),
        lk.LedgerError("failed", request=HOSTILE),
        errors.UnknownAccountError(account_id=HOSTILE),
        errors.ContractPanicError(panic_msg=HOSTILE),
        errors.InvalidRequestError.refuse("account_id", "a", HOSTILE),
        errors.from_status(503, HOSTILE, request="GET /"),
    ]
    for error in cases:
        with subtests.test(error=error):
            for text in (str(error), "".join(traceback.format_exception(error))):
                assert SHOWN in text
                assert hidden_characters(text) == []
            assert hidden_characters(repr(error) + error.sentence) == []


@pytest.mark.parametrize(
    "value",
    [
        networks.Network(HOSTILE, "https://a.example", "https://b.example", "https://c.example"),
        plan.Plan(HOSTILE, HOSTILE, "GET /", 1, rate_limit.Limit(1.0), 0, 0, {HOSTILE: 1}),
        CALL,
        Transaction("a.near", KEY, 1, "b.near", CryptoHash(bytes(32)), [CALL]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_is_printed_visibly(value: object):
    """The repr and the text of a value escape names, addresses and methods."""
    escaped = repr(value) + str(value)
    assert r"gold\u202e" in escaped
    assert hidden_characters(escaped) == []


def test_the_attributes_of_an_error_are_exact():
    """A program that reads the panic gets every character."""
    assert errors.ContractPanicError(panic_msg=HOSTILE).panic_msg == HOSTILE


def test_a_line_break_in_an_error_is_no_line():
    """A host cannot write a line of its own below an error."""
    assert str(lk.LedgerError("failed\nall is well")) == r"failed\nall is well."


def test_a_warning_is_printed_visibly():
    """A warning about an account or a folder escapes its name."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        user_warnings.warn(HOSTILE)
    assert str(issued[0].message) == SHOWN
    with user_warnings.collect_warnings() as messages:
        user_warnings.warn(HOSTILE)
    assert messages == [SHOWN]


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_is_printed_visibly(monkeypatch: pytest.MonkeyPatch):
    """The status line and the title of a progress bar escape names."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress.Line(at_once=True) as line:
        line.show(HOSTILE)
    assert SHOWN in terminal.getvalue()
    with progress.Bar(total=1, desc=HOSTILE, disable=False, file=terminal, delay=0) as bar:
        bar.refresh()
    assert terminal.getvalue().count(SHOWN) >= 2
    assert hidden_characters(terminal.getvalue().replace("\r", "")) == []
