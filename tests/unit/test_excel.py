"""Excel files: every digit as text, human units beside, and a warning where pandas would round."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import FileError, InvalidRequestError
from ledgerkit.frames import build
from ledgerkit.frames.excel import to_excel
from ledgerkit.u128.array import U128Array

TOP = 2**128 - 1
AMOUNTS = st.lists(st.none() | st.integers(0, TOP), max_size=5)


def u128(*values):
    return U128Array._from_sequence(values)


@pytest.fixture(scope="module")
def written():
    """Return a function that writes a frame and opens the workbook with another library."""
    pytest.importorskip("xlsxwriter", reason="the extra `excel`")
    openpyxl = pytest.importorskip("openpyxl")

    def write_and_open(frame, **options):
        buffer = io.BytesIO()
        to_excel(frame, buffer, **options)
        return openpyxl.load_workbook(buffer)

    return write_and_open


@pytest.fixture(scope="module")
def rows(written):
    """Return a function that writes a frame and reads all cells of its sheet."""

    def write_and_read(frame, **options):
        sheet = written(frame, **options)[options.get("sheet_name", "Sheet1")]
        return [list(row) for row in sheet.iter_rows(values_only=True)]

    return write_and_read


@given(AMOUNTS)
def test_amounts_keep_every_digit(rows, values):
    """A cell of an amount is a text of its digits, and empty where it is missing."""
    header, *cells = rows(pd.DataFrame({"row": range(len(values)), "paid": u128(*values)}))

    assert header == ["row", "paid"]
    assert [paid for _, paid in cells] == [None if v is None else str(v) for v in values]


def test_amounts_of_near_stand_beside(rows):
    """Columns that are declared in yoctoNEAR have a column of numbers in NEAR beside them."""
    frame = pd.DataFrame({"deposit": u128(1_500_000 * 10**18, None, 1), "gas_used": u128(5, 6, 7)})

    assert rows(frame) == [
        ["deposit", "deposit (NEAR, rounded)", "gas_used"],
        ["1500000000000000000000000", 1.5, "5"],
        [None, None, "6"],
        ["1", 1e-24, "7"],
    ]


def test_a_balance_is_near_in_a_frame_of_accounts_only(rows):
    """The unit of `balance` differs between frames: the other columns decide, or none is used."""
    columns = {column: u128(10**24) for column in ("balance", "locked")}
    accounts = pd.DataFrame(columns).assign(storage_cost=u128(0))

    assert rows(accounts)[1][:4] == ["1000000000000000000000000", 1, "1000000000000000000000000", 1]
    assert rows(pd.DataFrame({"account_id": ["a.near"], "balance": u128(10**24)})) == [
        ["account_id", "balance"],
        ["a.near", "1000000000000000000000000"],
    ]


def test_tokens_stand_beside_where_decimals_are_known(rows):
    """A column `decimals` converts each row; a row without decimals has no amount in tokens."""
    frame = pd.DataFrame(
        {
            "contract_id": ["usdt.near", "wrap.near", "spam.near"],
            "balance": u128(1_500_000, 10**24, TOP),
            "decimals": pd.array([6, 24, None], dtype="Int64"),
        },
        index=[5, 3, 1],
    )

    header, *cells = rows(frame)

    assert header == ["index", "contract_id", "balance", "balance (tokens, rounded)", "decimals"]
    assert [row[2:4] for row in cells] == [["1500000", 1.5], [str(10**24), 1], [str(TOP), None]]
    assert [row[0] for row in cells] == [5, 3, 1]


def test_times_are_in_utc(rows):
    """Excel has no time zones: the header names the zone, whatever it was in the frame."""
    times = pd.DatetimeIndex(["2024-05-01T12:00:00.250Z", pd.NaT]).tz_convert("Asia/Tokyo")

    header, first, second = rows(pd.DataFrame({"fetched_at": times, "n": [1, 2]}))

    assert header == ["fetched_at (UTC)", "n"]
    assert first[0].isoformat(timespec="milliseconds") == "2024-05-01T12:00:00.250"
    assert second[0] is None


def test_texts_stay_texts(subtests, rows):
    """What a contract named itself is never a formula, a link or a number."""
    cases = ["=1+1", "{=1+1}", "+1", "-1", "@SUM(A1)", "http://a.near", "007", "1e5", "\t=1"]
    for text in cases:
        with subtests.test(text=text):
            assert rows(pd.DataFrame({"symbol": [text], text: [1]})) == [
                ["symbol", text],
                [text, 1],
            ]


def test_integers_that_excel_rounds_are_texts(rows):
    """Integers of 16 digits and signed differences are texts; small ones stay numbers."""
    frame = pd.DataFrame(
        {
            "nonce": pd.array([10**15, None], dtype="UInt64"),
            "height": pd.array([10**15 - 1, None], dtype="Int64"),
            "difference": pd.Series([-(10**30), pd.NA], dtype="i129"),
            "row": [1, 2],
        }
    )

    assert rows(frame)[1:] == [
        ["1000000000000000", 10**15 - 1, "-1000000000000000000000000000000", 1],
        [None, None, None, 2],
    ]


@pytest.mark.parametrize("kind", ["category", "arrow"])
def test_amounts_of_other_dtypes_keep_every_digit(rows, kind):
    """Categories of amounts, and decimals of Arrow, are texts too."""
    pa = pytest.importorskip("pyarrow", reason="the extra `bulk`")
    dtype = kind if kind == "category" else pd.ArrowDtype(pa.decimal128(38, 0))
    frame = pd.DataFrame({"paid": pd.Series(u128(10**37 + 1, None)).astype(dtype), "row": [1, 2]})

    assert rows(frame)[1:] == [[str(10**37 + 1), 1], [None, 2]]


def test_other_values(rows):
    """Lists and decoded JSON become JSON; numbers and flags stay what they are."""
    frame = pd.DataFrame(
        {"args": [{"a": "1"}, ["x"]], "amount": [0.5, None], "is_final": [True, False]},
        index=pd.MultiIndex.from_arrays([["x", "y"], u128(1, TOP)], names=["key", None]),
    )

    assert rows(frame) == [
        ["key", "index", "args", "amount", "is_final"],
        ["x", "1", '{"a": "1"}', 0.5, True],
        ["y", str(TOP), '["x"]', None, False],
    ]


def test_an_empty_frame_has_its_headers(rows):
    """A frame without rows is a sheet of the same columns."""
    (header,) = rows(build.empty_frame("receipts"), sheet_name="receipts")

    assert header[:2] == ["receipt_id", "parent_id"]
    assert "deposit (NEAR, rounded)" in header


@pytest.mark.parametrize(
    ("frame", "path", "options", "sentence"),
    [
        (
            pd.DataFrame(index=range(1_048_576)),
            "a.xlsx",
            {},
            "expected at most 1,048,575 rows, which a sheet of Excel holds: use Parquet or CSV",
        ),
        (
            pd.DataFrame(columns=pd.MultiIndex.from_tuples([("a", "b")])),
            "a.xlsx",
            {},
            "frame '2 levels' is not valid: expected columns of one level",
        ),
        (
            pd.DataFrame(),
            "a.csv",
            {},
            "path 'a.csv' is not valid: expected a name that ends in \".xlsx\"",
        ),
        (
            pd.DataFrame(),
            "a.xlsx",
            {"sheet_name": "a/b"},
            "sheet_name 'a/b' is not valid: expected 1 to 31 characters, none of []:*?/\\ and ",
        ),
        (
            pd.DataFrame({"args": ["", "x" * 32_768]}),
            "a.xlsx",
            {},
            "args in row 1 has 32,768 characters, and a cell of Excel at most 32,767",
        ),
    ],
    ids=["rows", "levels", "path", "sheet", "text"],
)
def test_what_excel_cannot_hold_is_refused(frame, path, options, sentence):
    """Nothing is truncated: an error says what does not fit, and no file is written."""
    pytest.importorskip("xlsxwriter", reason="the extra `excel`")

    with pytest.raises(InvalidRequestError) as caught:
        to_excel(frame, path, **options)

    assert sentence in caught.value.sentence
    assert not Path(path).exists()


def test_a_missing_library_is_named(monkeypatch):
    """Without xlsxwriter the error names the extra."""
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)

    with pytest.raises(InvalidRequestError, match=r'pip install "ledgerkit\[excel\]"'):
        to_excel(pd.DataFrame(), "a.xlsx")


def test_pandas_reads_the_digits(rows, tmp_path):
    """Who names the dtype reads the amounts of the file exactly, as with CSV."""
    del rows  # skips without the libraries
    frame = pd.DataFrame({"row": [1, 2, 3], "paid": u128(TOP, None, 10**24 + 1)})
    to_excel(frame, tmp_path / "a.xlsx")

    read = pd.read_excel(tmp_path / "a.xlsx", dtype={"paid": "u128"})

    pd.testing.assert_frame_equal(read, frame)


# What pandas writes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "write",
    [
        lambda frame, file: frame.to_excel(file, engine="xlsxwriter"),
        lambda frame, file: frame["paid"].to_excel(file, engine="xlsxwriter"),
        lambda frame, file: frame.to_excel(file, columns=["paid"], engine="xlsxwriter"),
        lambda frame, file: frame.set_index("paid").to_excel(file, engine="xlsxwriter"),
    ],
    ids=["frame", "Series", "columns", "index"],
)
def test_pandas_warns_of_rounding(write):
    """Excel gets floats from pandas: a warning names the column and what keeps the digits."""
    pytest.importorskip("xlsxwriter", reason="the extra `excel`")
    frame = pd.DataFrame({"row": [1], "paid": u128(TOP)})

    with pytest.warns(UserWarning, match="15 digits") as caught:
        write(frame, io.BytesIO())

    (warning,) = caught
    assert str(warning.message) == (
        "Excel files round numbers to 15 digits: paid; ledgerkit.to_excel writes every digit"
    )
    assert warning.filename == __file__


def test_pandas_does_not_warn_of_other_columns():
    """Columns without amounts are written as before, without a warning."""
    pytest.importorskip("xlsxwriter", reason="the extra `excel`")
    frame = pd.DataFrame({"row": [1], "paid": u128(TOP)})

    frame.to_excel(io.BytesIO(), columns=["row"], engine="xlsxwriter")
    frame["row"].to_excel(io.BytesIO(), engine="xlsxwriter")
    frame.set_index("paid").to_excel(io.BytesIO(), index=False, engine="xlsxwriter")


def test_a_file_that_cannot_be_written_is_a_file_error(tmp_path: Path):
    """A missing folder and a path of another type are refused with our own errors."""
    with pytest.raises(FileError, match=r"Could not write .*missing"):
        to_excel(pd.DataFrame({"a": [1]}), tmp_path / "missing" / "x.xlsx")
    with pytest.raises(InvalidRequestError, match="expected the path of a file"):
        to_excel(pd.DataFrame({"a": [1]}), 10**5000)  # type: ignore[arg-type]  # the point


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes")
@pytest.mark.parametrize("limit", [1_000, 12_000], ids=["temporary files", "the file"])
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, limit: int):
    """Without room for the workbook or what it is made of, the file is what it was before."""
    pytest.importorskip("xlsxwriter", reason="the extra `excel`")
    path = tmp_path / "x.xlsx"
    to_excel(pd.DataFrame({"a": [1]}), path)
    before = path.read_bytes()
    script = (
        "import random, resource, signal, string, sys, pandas as pd, ledgerkit as lk\n"
        "text = ''.join(random.choices(string.ascii_letters + string.digits, k=10_000))\n"
        "import tempfile; tempfile.tempdir = sys.argv[1]\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a larger file is an error instead\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), -1))\n"
        "try: lk.to_excel(pd.DataFrame({'a': [text]}), sys.argv[2])\n"
        "except lk.errors.FileError as error: print(error)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path), str(path), str(limit)]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert (done.stdout[:20], done.stderr) == (f"Could not write {path}"[:20], "")
    assert path.read_bytes() == before


def test_transfers_of_near_stand_beside(rows):
    """The asset of a row says that its amount is NEAR; decimals of other tokens are unknown."""
    frame = pd.DataFrame(
        {"asset": ["near", "nep141:gold.near"], "amount": u128(15 * 10**23, 7), "memo": ["", "x"]}
    )

    assert rows(frame) == [
        ["asset", "amount", "amount (tokens, rounded)", "memo"],
        ["near", "1500000000000000000000000", 1.5, None],
        ["nep141:gold.near", "7", None, "x"],
    ]


def test_a_signed_change_stands_beside(rows):
    """A balance change is text with its sign, and a number below zero."""
    frame = pd.DataFrame(
        {
            "account_id": ["a.near"],
            "asset": ["near"],
            "change": pd.Series([-(15 * 10**23)], dtype="i129"),
        }
    )

    assert rows(frame)[1] == ["a.near", "near", "-1500000000000000000000000", -1.5]


@pytest.mark.parametrize(
    ("network", "name"), [("testnet", "testnet"), (None, "Sheet1"), ("a/b", "Sheet1")]
)
def test_the_sheet_is_named_after_the_network(written, network, name):
    """Invented and real data differ by the name on the tab."""
    frame = pd.DataFrame({"deposit": u128(5)})
    frame.attrs.update({} if network is None else {"network": network})

    assert written(frame).sheetnames == [name]


def test_large_numbers_have_no_exponent(written):
    """Excel would show 3.4E+20: rounded amounts, also of tokens, have thousands separators."""
    tokens = build.empty_frame("ft_metadata")[["contract_id", "amount"]]
    for frame in (pd.DataFrame({"deposit": u128(TOP)}), tokens):
        column = written(frame)["Sheet1"].column_dimensions["B"]
        assert column.width >= len("340,282,366,920,938.46")
        assert column.number_format == "[>=0.01]#,##0.00;[<=-0.01]-#,##0.00;General"
