"""Tables of panels: every digit through pages, sorting, filters, copying and files."""

from __future__ import annotations

import base64
import io
import json
import threading
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.frames.human import exact_text
from ledgerkit.frames.schemas import SCHEMAS
from ledgerkit.widgets import _selection, _table
from ledgerkit.widgets._table import Table, index_as_columns
from tests import hostile

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("anywidget")

MOST = 2**128 - 1
NEAR = 10**24
SUM = lk.units.from_units("0.1", 18) + lk.units.from_units("0.2", 18)


def accounts(**columns: Any) -> pd.DataFrame:
    frame = pd.DataFrame(columns)
    frame.attrs["schema"] = "accounts"
    return frame


def balances(*values: int | None) -> pd.DataFrame:
    return accounts(balance=pd.Series(values, dtype="u128"))


def tokens() -> pd.DataFrame:
    """Build a frame with balances of tokens of different decimals."""
    frame = pd.DataFrame(
        {
            "balance": pd.Series([SUM, SUM + 1, MOST, None], dtype="u128"),
            "decimals": pd.array([18, 18, 0, 6], dtype="Int64"),
            "symbol": pd.Series(["GOLD", "GOLD", "WHOLE", "USD"], dtype="str"),
        }
    )
    frame.attrs["schema"] = "ft_metadata"
    return frame


def ask(table: Table, **settings: Any) -> dict[str, Any]:
    """Request a page as the front end does: the message and the reply pass as JSON."""
    columns = list(range(len(table.describe()["columns"])))
    message = {"do": "page", "start": 0, "count": 100, "columns": columns, **settings}
    reply: dict[str, Any] = json.loads(json.dumps(table.handle(json.loads(json.dumps(message)))))
    return reply


def rows(frame: pd.DataFrame, **settings: Any) -> list[int]:
    reply = ask(Table(frame), **settings)
    assert "error" not in reply, reply
    return [row["row"] for row in reply["rows"]]


def filtered(frame: pd.DataFrame, text: str, column: int = 0) -> list[int]:
    return rows(frame, filters={str(column): text})


def exact(reply: dict[str, Any], column: int) -> list[str]:
    cells = [row["cells"][column] for row in reply["rows"]]
    return [cell if isinstance(cell, str) else cell["exact"] for cell in cells]


# Digits ---------------------------------------------------------------------------------


def test_a_page_has_every_digit():
    """Amounts are shown in units, and their exact texts have every digit."""
    reply = ask(Table(tokens()))
    assert exact(reply, 0) == [str(SUM), str(SUM + 1), str(MOST), ""]
    shown = [row["cells"][0]["text"] for row in reply["rows"][:3]]
    assert shown[0] == "0.3 GOLD"
    assert shown[2] == "340,282,366,920,938,463,463,374,607,431,768,211,455 WHOLE"


@pytest.mark.parametrize("is_descending", [False, True])
def test_sorting_is_exact(*, is_descending: bool):
    """Amounts that no float can tell apart are sorted, missing ones last in both directions."""
    frame = balances(MOST - 1, None, MOST, 0, MOST - 2)
    order = [3, 4, 0, 2]
    expected = [*(order[::-1] if is_descending else order), 1]
    assert rows(frame, sort=[{"column": 0, "descending": is_descending}]) == expected


def test_sorting_by_two_columns_is_stable():
    """Rows with equal values stay in the order of the next column, then in the frame's."""
    frame = pd.DataFrame({"a": ["x", "y", "x", "y", "x"], "b": [1, 2, 3, 2, 1]})
    sort = [{"column": 0, "descending": True}, {"column": 1, "descending": False}]
    assert rows(frame, sort=sort) == [1, 3, 0, 4, 2]


def test_any_mixture_has_an_order():
    """In a column of Python objects numbers come first, then texts, then all others."""
    values = ["b", 2**200, None, [2], Decimal("1.5"), -MOST, "a", [1], float("nan"), 1.25]
    frame = pd.DataFrame({"mixed": pd.Series(values, dtype=object)})
    ascending = [5, 9, 4, 1, 6, 0, 7, 3]
    assert rows(frame, sort=[{"column": 0}]) == [*ascending, 2, 8]
    descending = rows(frame, sort=[{"column": 0, "descending": True}])
    assert descending == [*ascending[::-1], 2, 8]


# Filters --------------------------------------------------------------------------------


def test_amounts_are_filtered_exactly(subtests: pytest.Subtests):
    """A comparison of amounts in any unit is exact to the last digit."""
    cases = [
        ("> 5 NEAR", [1, 2]),
        (">= 5 NEAR", [0, 1, 2]),
        ("= 5 near", [0]),
        ("!= 5 NEAR", [1, 2, 3, 4]),
        ("< 0.5 yocto", []),
        ("<= 1.5 yocto", [3]),
        (f"= {MOST} yocto", [2]),
        (f"> {MOST - 1} yocto", [2]),
        (f"> {MOST} yocto", []),
        ("1 yocto..5 yocto", [3]),
        ("1..5 NEAR", [0]),
        ("> 5", [1, 2]),
        ("1..5", [0]),
        ("!= 5", [1, 2, 3, 4]),
        ("5,000.00 NEAR", []),
        ("5.00", [0, 1]),
        ("000000000000000000000001", [1]),
        ("empty", [4]),
        ("not empty", [0, 1, 2, 3]),
    ]
    for text, expected in cases:
        with subtests.test(text=text):
            assert filtered(balances(5 * NEAR, 5 * NEAR + 1, MOST, 1, None), text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("= 0.3 GOLD", [0]),
        ("> 0.3 gold", [1]),
        (f"= {MOST} whole", [2]),
        (f"= {SUM} units", [0]),
        ("0.30", [0, 1]),
    ],
)
def test_amounts_of_tokens_have_the_decimals_of_their_row(text: str, expected: list[int]):
    """A filter with a symbol concerns the rows of that token, with its decimals."""
    assert filtered(tokens(), text) == expected


def test_a_bare_number_is_in_the_unit_that_is_shown():
    """Above 0.25 are 0.3 GOLD and 5 units of an unknown token; exact values are integers."""
    frame = tokens().assign(decimals=pd.array([18, 18, None, 6], dtype="Int64"))
    frame["balance"] = pd.Series([SUM, 2 * 10**17, 5, 10**5], dtype="u128")
    assert filtered(frame, "> 0.25") == [0, 2]
    assert filtered(frame, "0.1..0.25") == [1, 3]
    assert rows(frame, filters={"0": "4..100000"}, exact=True) == [2, 3]
    assert rows(frame, filters={"0": "> 0.25 GOLD"}, exact=True) == [0]


def test_a_rate_is_filtered_as_the_percentage_that_is_shown():
    """A rate of 0.051 is shown as 5.10%."""
    frame = pd.DataFrame({"apy": [0.051, 0.049, None]})
    frame.attrs["schema"] = "statement_rewards"
    assert [filtered(frame, text) for text in ("> 5", "5.10", "< 5 %")] == [[0], [0], [1]]
    assert rows(frame, filters={"0": "> 0.05"}, exact=True) == [0]


def test_columns_of_arrow_are_filtered_as_others():
    """Numbers, texts and lists that Arrow stores are compared exactly and found."""
    arrow = pytest.importorskip("pyarrow")
    numbers = {"int64": arrow.int64(), "decimal": arrow.decimal128(38, 0)}
    for name, kind in numbers.items():
        frame = pd.DataFrame({name: pd.Series([5, None, 7], dtype=pd.ArrowDtype(kind))})
        cases = [("> 5", [2]), (f"< {10**40}", [0, 2]), ("5.5..8", [2]), ("7", [2])]
        for text, expected in cases:
            assert filtered(frame, text) == expected, (name, text)
    texts = pd.DataFrame({"t": pd.Series(["Alice", None], dtype=pd.ArrowDtype(arrow.string()))})
    assert [filtered(texts, text) for text in ("ali", "= Alice", "empty")] == [[0], [0], [1]]
    kind = pd.ArrowDtype(arrow.list_(arrow.string()))
    lists = pd.DataFrame({"l": pd.Series([["a", "b"], ["c"]], dtype=kind)})
    assert filtered(lists, "c") == [1]


@pytest.mark.parametrize(
    ("is_descending", "expected"), [(False, [2, 0, 3, 1]), (True, [0, 2, 1, 3])]
)
def test_amounts_sort_within_their_token(*, is_descending: bool, expected: list[int]):
    """5 of a token without decimals is no less than 2 of one with 18; exact values are integers."""
    frame = pd.DataFrame(
        {
            "contract_id": ["whole.near", "gold.near", "whole.near", "gold.near"],
            "balance": pd.Series([5, 2 * 10**18, 3, 10**18], dtype="u128"),
            "decimals": pd.array([0, 18, 0, 18], dtype="Int64"),
            "symbol": ["WHOLE", "GOLD", "WHOLE", "GOLD"],
        }
    )
    frame.attrs["schema"] = "ft_metadata"
    sort = [{"column": 1, "descending": is_descending}]
    assert rows(frame, sort=sort) == expected
    integers = [2, 0, 3, 1]
    assert rows(frame, sort=sort, exact=True) == (integers[::-1] if is_descending else integers)
    assert "within each token" in Table(frame).describe()["columns"][1]["note"]


def test_other_columns_are_filtered_by_their_kind(subtests: pytest.Subtests):
    """Numbers of any type, yes or no, texts, objects and categories have filters of their own."""
    cases = [
        (pd.array([1, 20, None], dtype="Int64"), "> 2.5", [1]),
        (pd.array([1, 20, None], dtype="Int64"), "1..20", [0, 1]),
        (pd.array([1, 20, None], dtype="Int64"), f"< {2**70}", [0, 1]),
        (pd.array([2**64 - 1, 2], dtype="UInt64"), f"= {2**64 - 1}", [0]),
        ([0.1 + 0.2, 0.3], "= 0.3", [1]),
        (pd.Series([-MOST, 2**200, None, Decimal("0.3")], dtype=object), f"< -{MOST - 1}", [0]),
        (pd.Series([-MOST, 2**200, None, Decimal("0.3")], dtype=object), "= 0.3", [3]),
        (pd.array([True, None, False], dtype="boolean"), "no", [2]),
        (["alice.near", "bob.near", None], "ALICE", [0]),
        (["alice.near", "bob.near", None], "= bob.near", [1]),
        (["alice.near", "bob.near", None], "!= bob.near", [0, 2]),
        (["> 5", "x", ""], '"> 5"', [0]),
        (["> 5", "x", ""], "empty", [2]),
        (pd.Series([[1, "Dog"], {"a": "cat"}], dtype=object), "dog", [0]),
        (pd.Categorical(["red", None, "blue"]), "re", [0]),
    ]
    for values, text, expected in cases:
        with subtests.test(text=text):
            assert filtered(pd.DataFrame({"x": values}), text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01", [0, 1]),
        ("= 2026-01-31", [1]),
        ("> 2026-01-30", [1, 2]),
        ("<= 2026-01-31", [0, 1]),
        ("2026-01-31 23:59..2026-02-01", [1, 2]),
    ],
)
def test_a_time_may_be_a_day_or_a_month(text: str, expected: list[int]):
    """A year, month, day or minute is a period: after a day means after its end."""
    times = ["2026-01-01T00:00:00", "2026-01-31T23:59:59.999999999", "2026-02-01T00:00:00", None]
    column = pd.to_datetime(pd.Series(times), utc=True, format="ISO8601")
    assert filtered(pd.DataFrame({"time": column}), text) == expected


def test_a_status_is_found_by_its_words():
    """A text that is shown as other words is found by both."""
    frame = pd.DataFrame({"status": ["success_value", "failure"]})
    frame.attrs["schema"] = "receipts"
    assert filtered(frame, "succeeded") == filtered(frame, "success_v") == [0]


@pytest.mark.parametrize(
    "text", ["> five", "five NEAR", "> 5 GOLD", "1..x", "5" * 300, "1 yocto..2 NEAR x"]
)
def test_a_filter_that_means_nothing_is_refused(text: str):
    """The reply names the column and the forms that a filter may have."""
    reply = ask(Table(balances(1, 2)), filters={"0": text})
    assert "filter of balance" in reply["error"]
    assert len(text) > 200 or '"> 100 NEAR"' in reply["error"]


def test_search_looks_into_all_columns():
    """A search finds texts, digits of numbers, amounts as they are shown, and times."""
    frame = accounts(
        account_id=["alice.near", "bob.near", "a45.near"],
        balance=pd.Series([12345 * NEAR + 678 * 10**21, 45, None], dtype="u128"),
        time=pd.to_datetime(["2026-01-01", "2026-02-01", "2026-03-01"], utc=True),
    )
    table = Table(frame)
    found = {
        text: [row["row"] for row in ask(table, search=text)["rows"]]
        for text in ("ALICE", "45", "12,345.68", "12,345.68 NEAR", "2026-02", "nobody")
    }
    assert found["ALICE"] == found["12,345.68"] == found["12,345.68 NEAR"] == [0]
    assert found["45"] == [0, 1, 2]
    assert found["2026-02"] == [1]
    assert found["nobody"] == []


# Pages ----------------------------------------------------------------------------------


def test_pages_follow_each_other():
    """The pages of any number of rows are all rows, each once; the first comes unasked."""
    table = Table(pd.DataFrame({"n": np.arange(1_000)}))
    first = table.describe()
    assert [row["row"] for row in first["rows"]] == list(range(25))
    seen = [
        row["row"]
        for start in range(0, 1_025, 25)
        for row in ask(table, start=start, count=25)["rows"]
    ]
    assert seen == list(range(1_000))


def test_columns_that_a_person_looks_for_come_first():
    """The status stands beside its balance, and a change before hashes; files keep their order."""
    frame = lk.ft("alice.near", ledger=lk.connect("local"))
    described = Table(frame).describe()
    names = [column["name"] for column in described["columns"]]
    assert names == ["account_id", "contract_id", "balance", "status", "last_update_block_height"]
    assert saved(frame, "csv").decode().splitlines()[0] == ",".join(map(str, frame))
    assert set(_table._LEADING) <= set(SCHEMAS)
    assert {"intents", "ft_intents", "lockups"} <= set(_table._LEADING)
    for schema, leading in _table._LEADING.items():
        assert set(leading.split()) <= {column.name for column in SCHEMAS[schema]}, schema


def test_only_chosen_columns_are_sent():
    """Of a frame with many columns a page has those that somebody chose."""
    table = Table(pd.DataFrame([range(1_200)]))
    described = table.describe()
    assert (len(described["columns"]), described["n_hidden"]) == (1_000, 200)
    assert len(described["rows"][0]["cells"]) == 50
    assert ask(table, columns=[999, 0])["rows"][0]["cells"] == ["999", "0"]


def test_a_newer_request_replaces_an_older_one(monkeypatch: pytest.MonkeyPatch):
    """A search that is under way ends at its next step when the same front end asks again."""
    table = Table(pd.DataFrame({f"c{n}": ["x"] for n in range(5)}))
    began, go_on = threading.Event(), threading.Event()
    plain = _selection.search_column
    searched = []

    def slow(source: Any, text: str) -> Any:
        searched.append(text)
        began.set()
        if text == "old":
            go_on.wait(60)
        return plain(source, text)

    monkeypatch.setattr(_selection, "search_column", slow)
    replies = {}

    def request(text: str, number: int) -> None:
        replies[text] = ask(table, search=text, client="one", number=number)

    old = threading.Thread(target=request, args=("old", 1))
    old.start()
    began.wait(60)
    new = threading.Thread(target=request, args=("x", 2))
    new.start()
    while table._newest["one"] != 2:
        threading.Event().wait(0.001)
    go_on.set()
    old.join(60)
    new.join(60)
    assert replies["old"] == {"superseded": True}
    assert replies["x"]["n_rows"] == 1
    assert searched.count("old") == 1


def test_a_message_that_no_table_sends_is_refused(subtests: pytest.Subtests):
    """Every part of a message is checked, and the reply says what is wrong."""
    cases: list[Any] = [
        {"do": "destroy"},
        {"do": "page", "start": -1, "count": 5},
        {"do": "page", "start": 0, "count": 10**9},
        {"do": "page", "start": 0, "count": 5, "columns": [7]},
        {"do": "page", "start": 0, "count": 5, "columns": "0"},
        {"do": "page", "start": 0, "count": 5, "sort": [3]},
        {"do": "page", "start": 0, "count": 5, "filters": ["x"]},
        {"do": "page", "start": 0, "count": 5, "filters": {"0": 5}},
        {"do": "page", "start": 0, "count": 5, "search": None},
        {"do": "page", "start": 0, "count": 5, "client": "a", "number": "1"},
        {"do": "cell", "row": 2, "column": 0},
        {"do": "cell", "row": 0},
        {"do": "save", "format": "exe"},
    ]
    for message in cases:
        with subtests.test(message=message):
            reply = Table(balances(1, 2)).handle(message)
            assert "is not valid" in reply["error"]


def test_a_frame_that_changes_later_stays_as_it_was_shown():
    """A table shows the frame of the moment it was made."""
    frame = balances(1, 2)
    table = Table(frame)
    frame.loc[0, "balance"] = 9
    assert exact(ask(table), 0) == ["1", "2"]


def test_an_index_becomes_columns():
    """Labels are shown as columns, and columns of several levels have joined names."""
    frame = pd.DataFrame(
        [[1, 2]],
        columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]),
        index=pd.MultiIndex.from_tuples([("k", 5)], names=["key", None]),
    )
    flat = index_as_columns(frame)
    assert list(flat.columns) == ["key", "index 1", "a / x", "a / y"]
    assert flat.iloc[0].tolist() == ["k", 5, 1, 2]
    assert list(index_as_columns(pd.DataFrame([[1, 2]], columns=["a", "a"])).columns) == ["a", "a"]


# Files ----------------------------------------------------------------------------------


def saved(frame: pd.DataFrame, ending: str, **settings: Any) -> bytes:
    """Save a file as the front end does."""
    reply = Table(frame, name="tokens").handle({"do": "save", "format": ending, **settings})
    assert reply["name"] == f"tokens.{ending}"
    return base64.b64decode(reply["data"])


def test_files_have_every_digit(tmp_path: Path):
    """CSV, Parquet and Excel files have the selected rows with the same exact integers."""
    sort = [{"column": 0, "descending": True}]
    values = [SUM + 1, SUM, MOST, None]  # within each token
    text = saved(tokens(), "csv", sort=sort).decode()
    assert [line.split(",")[0] for line in text.splitlines()[1:]] == [
        "" if value is None else str(value) for value in values
    ]
    path = tmp_path / "tokens.parquet"
    path.write_bytes(saved(tokens(), "parquet", sort=sort, filters={"1": "GOLD"}))
    assert lk.read_parquet(path)["balance"].tolist() == [SUM + 1, SUM]
    refused = Table(tokens(), name="tokens").handle({"do": "save", "format": "parquet"})["error"]
    assert f"balance with type u128: {MOST} in row 2 is too large" in refused
    assert "or write CSV or Excel, which hold all digits" in refused
    sheet = openpyxl.load_workbook(io.BytesIO(saved(tokens(), "xlsx", sort=sort))).active
    assert [row[0] for row in sheet.values][1:] == [
        None if value is None else str(value) for value in values
    ]
    filters = {"0": "= 0.3 GOLD"}
    assert saved(tokens(), "csv", filters=filters).decode().splitlines()[1].startswith(f"{SUM},")


def test_no_cell_of_a_file_is_a_formula():
    """A text that begins like a formula is a text in CSV and Excel."""
    frame = pd.DataFrame({"=name": ["=1+1"], "list": pd.Series([["@x"]], dtype=object)})
    assert saved(frame, "csv").decode().splitlines() == ["'=name,list", '\'=1+1,"[""@x""]"']
    sheet = openpyxl.load_workbook(io.BytesIO(saved(frame, "xlsx"))).active
    assert {cell.data_type for row in sheet.iter_rows() for cell in row} == {"s"}


def test_a_file_too_large_for_a_page_names_the_way_in_python():
    """A file of millions of cells is refused before it is written."""
    frame = pd.DataFrame({"n": np.arange(2_000_001)})
    reply = Table(frame, name="numbers").handle({"do": "save", "format": "csv"})
    assert 'save("numbers.csv")' in reply["error"]


# What a front end receives ----------------------------------------------------------------


def test_hostile_texts_are_texts():
    """Names and values of any kind pass as visible text, and exactly when a cell is copied."""
    texts = [*hostile.TEXTS.values(), "\ud800"]
    lists = pd.Series([[text] for text in texts], dtype=object)
    frame = pd.DataFrame({hostile.MARKUP: pd.Series(texts, dtype=object), "lists": lists})
    table = Table(frame, hostile.BREAKS_OUT)
    sent = [*_texts(table.describe()), *_texts(ask(table))]
    assert [text for text in sent if hostile.hidden_characters(text, keep="")] == []
    assert hostile.MARKUP in hostile.read(table.static())
    for row, text in enumerate(texts[:-1]):
        cell = table.handle({"do": "cell", "row": row, "column": 0})
        assert cell["text"] == text
        assert hostile.hidden_characters(cell["visible"]) == []
    last = table.handle({"do": "cell", "row": len(texts) - 1, "column": 0})
    assert last == {"text": "\\ud800", "visible": "\\ud800"}


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


def test_exact_texts_of_all_types():
    """A cell is copied with everything that its value has."""
    values = [MOST, "a", None, pd.NA, True, b"\x00\xff", [MOST, "ä"], 0.1 + 0.2]
    assert list(map(exact_text, values)) == [
        *(str(MOST), "a", "", "", "True", "00ff", f'[{MOST}, "ä"]', "0.30000000000000004"),
    ]
    time = pd.Timestamp("2026-01-01T00:00:00.123456789Z")
    assert exact_text(time) == "2026-01-01 00:00:00.123456789+00:00"


# show -----------------------------------------------------------------------------------


def test_show_displays_any_frame(tmp_path: Path):
    """A notebook has the widget and its HTML, a terminal the text; files are exact."""
    view = lk.show(tokens(), caption="Tokens")
    bundle = view._repr_mimebundle_()
    assert "<caption>Tokens</caption>" in bundle["text/html"]
    assert f'title="{MOST}"' in bundle["text/html"]
    assert "0.3 GOLD" in repr(view)
    view.save(tmp_path / "tokens.xlsx")
    view.save(tmp_path / "tokens.csv")
    assert str(MOST) in (tmp_path / "tokens.csv").read_text(encoding="utf-8")
    view.view.close()
    with pytest.raises(errors.InvalidRequestError, match="a pandas DataFrame"):
        lk.show([1, 2])  # type: ignore[call-overload]  # the wrong type is what is tested


def test_a_shown_frame_names_its_own_network():
    """The caption names where the rows are from, also when the session uses another network."""
    with lk.connect("local") as ledger:
        frame = lk.validators(ledger=ledger)
        frame.attrs["network"] = "mainnet"
        html = lk.show(frame)._repr_mimebundle_()["text/html"]
        assert "<caption>network: mainnet</caption>" in html
        html = lk.show(frame, caption="<b>")._repr_mimebundle_()["text/html"]
        assert "<caption>&lt;b&gt;; network: mainnet</caption>" in html


def test_a_selection_of_nothing_is_empty():
    """Frames without rows or columns have an empty page, and can be sorted and saved."""
    for frame in (pd.DataFrame(), balances(), pd.DataFrame(index=range(3))):
        table = Table(frame)
        assert "<table>" in table.static()
        assert "error" not in ask(table)
        assert "data" in table.handle({"do": "save", "format": "csv"})
    assert rows(balances(), sort=[{"column": 0}]) == []
