"""CSV for spreadsheets: no text is computed, and numbers stay exact."""

from __future__ import annotations

import csv
import io

import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit.frames.csv_text import csv_text
from ledgerkit.widgets._blocks import Content

FORMULAS = (
    '=HYPERLINK("http://elsewhere.example/","x")',
    "+1+cmd|'/c calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "  =1+1",
    "\uff1d1+1",
    "-",
    "-1e400",
)
NUMBERS = ("-12", "+3.5", "340282366920938463463374607431768211455", "-0.000001")


def cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("dtype", ["object", "str", "category"])
def test_a_formula_is_text(subtests: pytest.Subtests, dtype: str):
    """A cell or a header that a spreadsheet would compute begins with an apostrophe."""
    for formula in FORMULAS:
        with subtests.test(formula=formula):
            frame = pd.DataFrame({formula: pd.Series([formula], dtype=dtype)})
            assert cells(csv_text(frame)) == [[f"'{formula}"], [f"'{formula}"]]


def test_separators_and_controls(subtests: pytest.Subtests):
    """A separator starts no formula, and control characters are escaped."""
    cases = [
        ("a;=1+1", "a;'=1+1"),  # where the list separator is a semicolon
        ('a;"=1+1', "a;'\"=1+1"),
        ("a\n=1+1", "a\n'=1+1"),
        ("a\r=1+1", r"a\r=1+1"),
        ("\t=1+1", r"\t=1+1"),
        ("\x1b[31m\u202e", r"\x1b[31m\u202e"),
        ("a=b, c+d", "a=b, c+d"),
    ]
    for text, escaped in cases:
        with subtests.test(text=text):
            assert cells(csv_text(pd.DataFrame({"text": [text]}))) == [["text"], [escaped]]


def test_signed_numbers_stay_exact(subtests: pytest.Subtests):
    """A difference stays a number, as text or as an integer."""
    for number in NUMBERS:
        with subtests.test(number=number):
            frame = pd.DataFrame({"text": [number], "n": pd.Series([-(10**30)], dtype=object)})
            assert cells(csv_text(frame))[1] == [number, str(-(10**30))]


def test_lists_are_texts_too():
    """A separator within a list or bytes starts no formula either."""
    frame = pd.DataFrame({"logs": [["x;=1+1"]], "data": [b"x;=1+1"], "none": [None]})
    assert cells(csv_text(frame))[1] == ["['x;'=1+1']", "b'x;'=1+1'", ""]


def test_a_panel_saves_no_formula(tmp_path):
    """The file of a panel is for a spreadsheet; Parquet is exact."""
    frame = pd.DataFrame({"title": ["=1+1\x1b"], "n": [-5]})
    expected = "title,n\n'=1+1\\x1b,-5\n"

    pytest.importorskip("anywidget")
    panel = lk.widgets.AccountExplorer()
    panel.content = Content("", result=frame)
    panel.save(tmp_path / "tokens.csv")
    assert (tmp_path / "tokens.csv").read_text() == expected
