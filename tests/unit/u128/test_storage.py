"""Storage: Arrow, Parquet, DuckDB, Polars, Dask, CSV, JSON and pickle, digit for digit."""

import importlib
import io
import json
import pickle
import subprocess
import sys
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.u128 import arrow, parquet, planes
from ledgerkit.u128.array import U128Array, U128Dtype
from ledgerkit.u128.human_units import TEXT

pa = pytest.importorskip("pyarrow", reason="the extra `bulk`")

TOP = 2**128 - 1
END = 10**38
EDGES = [0, 1, 2**32, 2**63, 2**64 - 1, 2**64, 2**64 + 1, END - 1, END, 2**127 - 1, 2**127, TOP]
VALUES = st.lists(st.none() | st.sampled_from(EDGES) | st.integers(0, TOP), max_size=40)
SMALL = st.lists(st.none() | st.sampled_from(EDGES[:8]) | st.integers(0, END - 1), max_size=40)


def written(values, kind=None):
    """Hold values, None where missing, in an Arrow array."""
    hi, lo = planes.from_ints([value or 0 for value in values])
    mask = np.array([value is None for value in values], dtype=bool)
    return arrow.to_arrow(hi, lo, mask, kind)


def listed(hi, lo, mask):
    """List the values that planes and a mask hold."""
    ints = planes.to_ints(hi, lo)
    return [None if gap else value for value, gap in zip(ints, mask, strict=True)]


def u128(*values):
    """Give an array of u128."""
    return U128Array._from_sequence(values)


def as_ints(series):
    """Return a column as Python ints, None where missing."""
    return [None if value is pd.NA else value for value in series]


@pytest.fixture
def tokens():
    """Balances below 10**38 beside columns of other dtypes."""
    frame = pd.DataFrame(
        {
            "contract_id": pd.array(["wrap.near", "usdt.near", None], dtype=TEXT),
            "balance": u128(END - 1, None, 2**64),
            "height": pd.array([1, None, 2**60 + 1], dtype="Int64"),
        }
    )
    frame.attrs["network"] = "mainnet"
    return frame


@pytest.fixture
def hostile():
    """Balances that no decimal128(38, 0) holds, beside others."""
    return pd.DataFrame({"id": ["a", "b", "c", "d"], "balance": u128(TOP, 5, None, END)})


# Arrow arrays ---------------------------------------------------------------------------


@given(SMALL)
def test_a_column_becomes_decimals(values):
    """Each value is the same integer as an Arrow decimal, and null where missing."""
    array = written(values)
    array.validate(full=True)

    assert array.type == pa.decimal128(38, 0)
    assert array.to_pylist() == [None if value is None else Decimal(value) for value in values]


@given(VALUES, st.sampled_from([pa.decimal256(39, 0), pa.string(), pa.large_string()]))
def test_a_column_comes_back(values, kind):
    """Types wide enough for every value give every value back, missing ones too."""
    array = written(values, kind)
    array.validate(full=True)

    assert array.type == kind
    assert listed(*arrow.from_arrow(array)) == values


@given(VALUES, st.integers(0, 50), st.integers(0, 50))
def test_a_part_of_an_array(values, begin, length):
    """A slice shares the buffers of the whole, and is read from where it begins."""
    array = written(values, pa.decimal256(39, 0))

    assert listed(*arrow.from_arrow(array[begin : begin + length])) == values[begin:][:length]


@given(SMALL, SMALL)
def test_chunks_are_read_in_order(first, second):
    """A chunked array is read as one."""
    parts = [written(first), written(second)]

    read = arrow.from_arrow(pa.chunked_array(parts, pa.decimal128(38, 0)))

    assert listed(*read) == first + second


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int64(), pa.uint64()], ids=str)
def test_machine_integers(kind):
    """Integers of any width are read, and written where they fit."""
    top = np.iinfo(kind.to_pandas_dtype()).max
    array = pa.array([0, None, top], kind)

    assert listed(*arrow.from_arrow(array)) == [0, None, top]
    assert written([0, None, top], kind).equals(array)
    with pytest.raises(OverflowError, match=rf"^{top + 1} in row 1 does not fit {kind}$"):
        written([0, top + 1], kind)


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (pa.nulls(2), [None, None]),
        (pa.array(["5", None, "5"]).dictionary_encode(), [5, None, 5]),
        (pa.array(["007"], pa.large_string()), [7]),
        (pa.array([Decimal(7), None], pa.decimal32(5, 0)), [7, None]),
        (pa.array([Decimal(7), None], pa.decimal64(18, 0)), [7, None]),
        (pa.chunked_array([], pa.string()), []),
        (pa.array([], pa.decimal128(38, 0)), []),
    ],
    ids=["nulls", "dictionary", "large text", "decimal32", "decimal64", "no chunk", "no row"],
)
def test_other_arrays_are_read(array, values):
    """Whatever holds integers exactly is read exactly."""
    assert listed(*arrow.from_arrow(array)) == values


@pytest.mark.parametrize(
    ("array", "shown"),
    [
        (pa.array([1, -1]), "-1"),
        (pa.array([Decimal(0), Decimal(-5)], pa.decimal128(38, 0)), "-5"),
        (pa.array([Decimal(0), Decimal(-5)], pa.decimal256(39, 0)), "-5"),
        (pa.array([Decimal(0), Decimal(-7)], pa.decimal32(5, 0)), "-7"),
        (pa.array([Decimal(0), Decimal(TOP + 1)], pa.decimal256(39, 0)), str(TOP + 1)),
    ],
    ids=["int", "decimal128", "decimal256", "decimal32", "too large"],
)
def test_values_out_of_range_are_refused(array, shown):
    """What is below zero or above 2^128 - 1 is named, never wrapped."""
    with pytest.raises(DecodeError) as caught:
        arrow.from_arrow(array, name="balance")

    assert caught.value.sentence == f"balance {shown} in row 1 does not fit in u128"
    assert caught.value.path == "balance[1]"


def test_a_damaged_decimal_is_refused():
    """Where Arrow casts the text 2^128 - 1 to decimal128 it makes -1: that is seen."""
    damaged = pa.array([str(TOP)]).cast(pa.decimal128(38, 0))

    assert damaged.to_pylist() == [Decimal(-1)]
    with pytest.raises(DecodeError, match="amount -1 in row 0"):
        arrow.from_arrow(damaged)


@pytest.mark.parametrize("text", ["", "-1", "1_000", " 1", "1.0", "1e3", str(TOP + 1)])
def test_texts_are_read_as_digits(text):
    """An array of text goes the strict way, not through Arrow's own cast."""
    with pytest.raises(DecodeError, match="row 1"):
        arrow.from_arrow(pa.array(["0", text]))


@pytest.mark.parametrize(
    ("array", "rule"),
    [
        (pa.array([1.0]), "u128 cannot be read from double: pass decimals, integers or texts"),
        (pa.array([True]), "u128 cannot be read from bool"),
        (pa.array([Decimal("1.0")]), "has a scale of 1: cast to scale 0 first"),
    ],
    ids=["float", "bool", "scale"],
)
def test_types_that_hold_no_integers_are_refused(array, rule):
    """Nothing passes through a float, and no point is guessed."""
    with pytest.raises(TypeError, match=rule):
        arrow.from_arrow(array)


@pytest.mark.parametrize("kind", [pa.float64(), pa.bool_(), pa.decimal128(38, 2)], ids=str)
def test_types_to_write_are_exact(kind):
    """No column is written as floats."""
    with pytest.raises(TypeError, match=r"choose a decimal|cast to scale 0"):
        written([1], kind)


def test_what_no_decimal128_holds_is_named():
    """The sentence names the value, its row, and the way that keeps it."""
    with pytest.raises(OverflowError) as caught:
        written([0, None, END])

    assert str(caught.value) == (
        f"{END} in row 2 does not fit decimal128(38, 0); "
        "ledgerkit.write_parquet and ledgerkit.to_arrow store it as text in another column"
    )


# The array and its dtype ----------------------------------------------------------------


def test_pyarrow_takes_the_array():
    """`pa.array` asks the array itself, so that nothing is guessed."""
    array = pa.array(u128(1, None, END - 1))

    assert array.type == pa.decimal128(38, 0)
    assert array.to_pylist() == [Decimal(1), None, Decimal(END - 1)]
    assert pa.array(u128(TOP), type=pa.string()).to_pylist() == [str(TOP)]


def test_pandas_takes_arrow_arrays():
    """Decimals, texts and integers of Arrow become the dtype, and so do chunks."""
    texts = pa.chunked_array([["1"], [None, str(TOP)]])

    assert as_ints(U128Dtype().__from_arrow__(texts)) == [1, None, TOP]
    assert as_ints(U128Dtype().__from_arrow__(pa.array([Decimal(7)]))) == [7]
    assert as_ints(pd.array(texts, dtype="u128")) == [1, None, TOP]
    assert as_ints(pd.Series(pa.array([5, None]), dtype="u128")) == [5, None]


# Tables ---------------------------------------------------------------------------------


def test_a_table_of_a_frame(tokens):
    """Amounts are decimals of 38 digits; the other columns are as pyarrow makes them."""
    table = parquet.to_arrow(tokens)

    assert table.schema.field("balance").type == pa.decimal128(38, 0)
    assert table.column_names == ["contract_id", "balance", "height"]
    assert table["balance"].to_pylist() == [Decimal(END - 1), None, Decimal(2**64)]
    assert table["height"].to_pylist() == [1, None, 2**60 + 1]


def test_a_table_gives_the_frame_back(tokens):
    """The metadata of pandas names the dtype, and carries the provenance."""
    frame = parquet.to_arrow(tokens).to_pandas()

    assert frame["balance"].dtype == "u128"
    assert frame["balance"].equals(tokens["balance"])
    assert frame.attrs == {"network": "mainnet"}


def test_a_table_without_rows():
    """A frame without rows has the same types."""
    table = parquet.to_arrow(pd.DataFrame({"balance": u128()}))

    assert table.schema.field("balance").type == pa.decimal128(38, 0)
    assert table.to_pandas()["balance"].dtype == "u128"


def test_large_values_stand_beside_as_text(hostile):
    """Nothing is clipped: null in the decimals, every digit in a column of text, a warning."""
    with pytest.warns(UserWarning, match="values of 'balance'") as caught:
        table = parquet.to_arrow(hostile)

    assert table.column_names == ["id", "balance", "balance_text"]
    assert table["balance"].to_pylist() == [None, Decimal(5), None, None]
    assert table["balance_text"].to_pylist() == [str(TOP), None, None, str(END)]
    (warning,) = caught
    assert str(warning.message) == (
        "2 values of 'balance' at or above 10**38: null in decimal128(38, 0), with the digits in"
        " 'balance_text'; ledgerkit.read_parquet restores them"
    )
    assert warning.filename == __file__


def test_the_frame_itself_stays(hostile):
    """What was given is not changed by being written."""
    with pytest.warns(UserWarning, match="2 values"):
        parquet.to_arrow(hostile)

    assert hostile.columns.tolist() == ["id", "balance"]
    assert as_ints(hostile["balance"]) == [TOP, 5, None, END]


def test_a_column_in_the_way_is_named(hostile):
    """A column of the same name as the digits need is not overwritten."""
    hostile["balance_text"] = "mine"

    with pytest.raises(InvalidRequestError, match="has a column 'balance_text'"):
        parquet.to_arrow(hostile)


def test_an_index_has_to_fit():
    """An index has no column beside it; the row that does not fit is named."""
    frame = pd.DataFrame({"n": [1, 2]}, index=pd.Index(u128(1, TOP), name="balance"))

    with pytest.raises(OverflowError, match="in row 1 does not fit decimal128"):
        parquet.to_arrow(frame)
    with pytest.warns(UserWarning, match="1 value of 'balance' at or above 10"):
        assert parquet.to_arrow(frame.reset_index()).num_rows == 2


# Parquet --------------------------------------------------------------------------------


@given(balance=VALUES)
def test_every_value_comes_back_from_parquet(balance, tmp_path_factory):
    """Written and read, each value is the same integer, above 10**38 too."""
    path = tmp_path_factory.mktemp("round") / "f.parquet"
    frame = pd.DataFrame({"balance": u128(*balance), "other": u128(*reversed(balance))})

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="[0-9]+ values? of '(balance|other)'")
        parquet.write_parquet(frame, path)
    read = parquet.read_parquet(path)

    pd.testing.assert_frame_equal(read, frame)


def test_a_frame_comes_back_from_parquet(tokens, tmp_path):
    """Dtypes of text do not depend on pyarrow being there."""
    parquet.write_parquet(tokens, tmp_path / "ft.parquet")

    read = parquet.read_parquet(tmp_path / "ft.parquet")

    pd.testing.assert_frame_equal(read, tokens)
    assert read.attrs == {"network": "mainnet"}


def test_an_index_comes_back_from_parquet(tmp_path):
    """Amounts may be an index, and other indexes stay."""
    frame = pd.DataFrame(
        {"n": [1, 2]}, index=pd.MultiIndex.from_arrays([u128(5, END - 1), ["a", "b"]])
    )
    frame.index.names = ["balance", "key"]
    parquet.write_parquet(frame, tmp_path / "f.parquet")

    read = parquet.read_parquet(tmp_path / "f.parquet")

    assert read.index.get_level_values("balance").dtype == "u128"
    assert read.index.tolist() == [(5, "a"), (END - 1, "b")]


def test_pandas_reads_the_dtype(tokens, tmp_path):
    """`read_parquet` of pandas gives the dtype back, for one column too."""
    parquet.write_parquet(tokens, tmp_path / "f.parquet")

    for columns in (None, ["balance"]):
        read = pd.read_parquet(tmp_path / "f.parquet", columns=columns)
        assert read["balance"].dtype == "u128"
        assert as_ints(read["balance"]) == [END - 1, None, 2**64]


def test_pandas_writes_every_digit(tokens, tmp_path):
    """`to_parquet` of pandas writes the same decimals, but names no dtype: Decimals come back."""
    tokens.to_parquet(tmp_path / "f.parquet")

    read = pd.read_parquet(tmp_path / "f.parquet")["balance"]

    assert read.tolist() == [Decimal(END - 1), None, Decimal(2**64)]
    assert as_ints(read.astype(U128Dtype())) == [END - 1, None, 2**64]
    assert parquet.read_parquet(tmp_path / "f.parquet")["balance"].dtype == "u128"


def test_pandas_refuses_what_it_would_lose(hostile, tmp_path):
    """`to_parquet` of pandas knows no second column, so it fails and names the row."""
    with pytest.raises(OverflowError, match=r"in row 0 does not fit decimal128.*write_parquet"):
        hostile.to_parquet(tmp_path / "f.parquet")


def test_pandas_sees_large_values_beside(hostile, tmp_path):
    """Plain `read_parquet` gives NA and the digits in a column of their own."""
    with pytest.warns(UserWarning, match="2 values of 'balance'"):
        parquet.write_parquet(hostile, tmp_path / "f.parquet")

    read = pd.read_parquet(tmp_path / "f.parquet")

    assert as_ints(read["balance"]) == [None, 5, None, None]
    assert read["balance_text"].dropna().tolist() == [str(TOP), str(END)]


def test_pandas_without_ledgerkit_is_told_how(tokens, tmp_path):
    """Where the dtype is not registered, pandas names it; as Arrow decimals it reads them."""
    parquet.write_parquet(tokens, tmp_path / "f.parquet")
    code = (
        "import pandas as pd\n"
        "import pyarrow.parquet as pq\n"
        "try: pd.read_parquet('f.parquet')\n"
        "except TypeError as error: print(error)\n"
        "print(pq.read_table('f.parquet').to_pandas(ignore_metadata=True)['balance'].tolist())\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    first, second = done.stdout.splitlines()
    assert first == "data type 'u128' not understood"
    assert second == f"[Decimal('{END - 1}'), None, Decimal('{2**64}')]"


def test_a_folder_of_files(tokens, hostile, tmp_path):
    """Digits beside one file's column are found, whichever file is read first."""
    parquet.write_parquet(tokens[["balance"]], tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match="2 values of 'balance'"):
        parquet.write_parquet(hostile[["balance"]], tmp_path / "b.parquet")

    read = parquet.read_parquet(tmp_path)

    assert read.columns.tolist() == ["balance"]
    assert as_ints(read["balance"]) == [END - 1, None, 2**64, TOP, 5, None, END]
    assert read.index.tolist() == list(range(7))


def test_a_folder_in_parts(hostile, tmp_path):
    """Folders named by a key, as `partition_cols` makes them, give the key back."""
    for key in "xy":
        (tmp_path / f"key={key}").mkdir()
        with pytest.warns(UserWarning, match="values? of 'balance'"):
            parquet.write_parquet(hostile[["balance"]], tmp_path / f"key={key}" / "f.parquet")

    read = parquet.read_parquet(tmp_path)

    assert as_ints(read["balance"]) == 2 * [TOP, 5, None, END]
    assert read["key"].tolist() == list("xxxxyyyy")
    alone = parquet.read_parquet(tmp_path / "key=x" / "f.parquet")
    assert alone.columns.tolist() == ["balance"]


def test_nothing_to_read_is_an_error(tmp_path):
    """A wrong path is no frame without rows."""
    for path in (tmp_path, tmp_path / "f.parquet"):
        with pytest.raises(FileNotFoundError):
            parquet.read_parquet(path)


def test_a_number_beside_its_digits_is_refused(tmp_path):
    """Where a file has been changed, no value is chosen over the other."""
    field = pa.field("balance_text", pa.string(), metadata={"u128": "balance"})
    schema = pa.schema([pa.field("balance", pa.decimal128(38, 0)), field])
    table = pa.table([[Decimal(1), Decimal(2)], [None, "3"]], schema=schema)
    pa.parquet.write_table(table, tmp_path / "f.parquet")

    with pytest.raises(DecodeError, match="balance has a number and a text in row 1"):
        parquet.read_parquet(tmp_path / "f.parquet")


def test_files_of_others(tmp_path):
    """A decimal of 38 digits is an amount, whoever wrote it; other decimals stay."""
    kinds = [pa.decimal128(38, 0), pa.decimal128(38, 2)]
    table = pa.table([pa.array([Decimal(2**64), None], kind) for kind in kinds], ["paid", "rate"])
    pa.parquet.write_table(table, tmp_path / "f.parquet")

    read = parquet.read_parquet(tmp_path / "f.parquet")

    assert read["paid"].dtype == "u128"
    assert as_ints(read["paid"]) == [2**64, None]
    assert read["rate"].tolist() == [Decimal(2**64), None]


def test_negative_decimals_of_others_are_refused(tmp_path):
    """A difference that somebody wrote is no amount, and is not wrapped into one."""
    table = pa.table({"change": pa.array([Decimal(5), Decimal(-5)], pa.decimal128(38, 0))})
    pa.parquet.write_table(table, tmp_path / "f.parquet")

    with pytest.raises(ValueError, match="-5 in row 1 does not fit in u128"):
        parquet.read_parquet(tmp_path / "f.parquet")


def test_without_pyarrow_the_extra_is_named(monkeypatch, tokens):
    """The core does without pyarrow; whoever needs it learns how to get it."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(InvalidRequestError, match=r'pip install "ledgerkit\[bulk\]"'):
        parquet.to_arrow(tokens)


# Others that read it --------------------------------------------------------------------


@pytest.fixture
def sums(tmp_path):
    """Write amounts whose sums need 128 bits, and give the sums by group."""
    frame = pd.DataFrame(
        {
            "key": ["a", "b"] * 50,
            "balance": u128(*[None if i % 7 == 0 else 10**35 + i**17 for i in range(100)]),
        }
    )
    parquet.write_parquet(frame, tmp_path / "f.parquet")
    amounts = [0 if i % 7 == 0 else 10**35 + i**17 for i in range(100)]
    return str(tmp_path / "f.parquet"), frame, {"a": sum(amounts[::2]), "b": sum(amounts[1::2])}


def test_pandas_adds_what_was_written(sums):
    """Sums by group after the round trip are those of Python's integers."""
    path, _, expected = sums

    assert pd.read_parquet(path).groupby("key")["balance"].sum().to_dict() == expected


def test_duckdb_reads_and_adds(sums):
    """DuckDB sees DECIMAL(38,0), in a file and in a table of Arrow, and adds exactly."""
    duckdb = pytest.importorskip("duckdb")
    path, frame, expected = sums
    amounts = parquet.to_arrow(frame)  # found by DuckDB under its name
    query = "SELECT key, sum(balance), any_value(typeof(balance)) FROM {} GROUP BY key"

    with duckdb.connect() as database:
        of_file = database.sql(query.format(f"'{path}'")).fetchall()
        of_table = database.sql(query.format("amounts")).fetchall()

    assert amounts.num_rows == 100
    assert {key: int(total) for key, total, _ in of_file} == expected
    assert sorted(of_file) == sorted(of_table)
    assert {kind for _, _, kind in of_file} == {"DECIMAL(38,0)"}


def test_polars_reads_and_adds(sums):
    """Polars sees Decimal(38, 0), in a file and in a table of Arrow, and adds exactly."""
    pl = pytest.importorskip("polars")
    path, frame, expected = sums

    for read in (pl.read_parquet(path), pl.from_arrow(parquet.to_arrow(frame))):
        assert read.schema["balance"] == pl.Decimal(38, 0)
        rows = read.group_by("key").agg(pl.col("balance").sum()).rows()
        assert {key: int(total) for key, total in rows} == expected


def test_files_that_others_wrote_are_amounts_again(sums, tmp_path):
    """DuckDB and Polars write decimals of 38 digits, which `read_parquet` knows."""
    duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    path, frame, _ = sums
    with duckdb.connect() as database:
        database.sql(f"COPY (FROM '{path}') TO '{tmp_path / 'd.parquet'}' (FORMAT parquet)")
    pl.read_parquet(path).write_parquet(tmp_path / "p.parquet")

    for name in "dp":
        read = parquet.read_parquet(tmp_path / f"{name}.parquet")
        pd.testing.assert_frame_equal(read, frame, check_dtype=False)
        assert read["balance"].dtype == "u128"


def test_polars_takes_the_frame(sums):
    """Polars asks pyarrow for the columns of a frame of pandas, so that nothing is guessed."""
    pl = pytest.importorskip("polars")
    _, frame, _ = sums

    taken = pl.from_pandas(frame)["balance"]

    assert taken.dtype == pl.Decimal(38, 0)
    assert [None if v is None else int(v) for v in taken] == as_ints(frame["balance"])


@pytest.fixture
def dask_frame():
    """Give a function that opens a folder with Dask, without threads or processes."""
    dask = pytest.importorskip("dask", reason="the extra `dask`")
    importlib.import_module("ledgerkit.u128.dask_support")
    with dask.config.set(scheduler="synchronous"):
        yield importlib.import_module("dask.dataframe").read_parquet


# Dask sets its indexes in a way that pandas 4 will not know.
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.set_index")
def test_dask_reads_and_adds(sums, dask_frame):
    """Dask sees decimals, and as u128 adds them exactly, by group and all together."""
    path, frame, expected = sums

    decimals = dask_frame(path)
    assert str(decimals["balance"].dtype) == "decimal128(38, 0)[pyarrow]"
    by_key = decimals.groupby("key")["balance"].sum().compute()
    assert {key: int(total) for key, total in by_key.items()} == expected

    exact = decimals.astype({"balance": "u128"})
    assert exact.groupby("key")["balance"].sum().compute().to_dict() == expected
    assert exact["balance"].sum().compute() == sum(expected.values())
    assert exact["balance"].max().compute() == frame["balance"].max()


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.set_index")
def test_dask_refuses_what_would_wrap(tmp_path, dask_frame):
    """A sum beyond 128 bits is an error in Dask too, and one beyond 127 bits is exact."""
    for name in "ab":
        frame = pd.DataFrame({"key": ["x", "y"] * 2, "balance": u128(END - 1, 1, END - 1, 2)})
        parquet.write_parquet(frame, tmp_path / f"{name}.parquet")
    exact = dask_frame(tmp_path).astype({"balance": "u128"})

    by_key = exact[exact["key"] == "y"].groupby("key")["balance"].sum().compute()
    assert by_key.to_dict() == {"y": 6}
    with pytest.raises(OverflowError):
        exact.groupby("key")["balance"].sum().compute()


# Text -----------------------------------------------------------------------------------


@given(VALUES)
def test_csv_is_lossless(values):
    """A file of text holds the digits, and is read straight into the dtype."""
    frame = pd.DataFrame({"row": range(len(values)), "balance": u128(*values)})

    text = frame.to_csv(index=False)
    read = pd.read_csv(io.StringIO(text), dtype={"row": "int64", "balance": "u128"})

    pd.testing.assert_frame_equal(read, frame)


@given(VALUES)
def test_json_is_lossless(values):
    """Digits are texts in JSON: a number may be read as a float there."""
    frame = pd.DataFrame({"row": range(len(values)), "balance": u128(*values)})

    text = frame.to_json(orient="split")
    dtypes = {"row": "int64", "balance": "u128"}
    read = pd.read_json(io.StringIO(text), orient="split", dtype=dtypes)

    shown = [None if value is None else str(value) for value in values]
    assert [balance for _, balance in json.loads(text)["data"]] == shown
    assert as_ints(read["balance"]) == values


def test_a_reader_that_makes_floats_is_refused():
    """Where pyarrow reads CSV, large numbers are floats before the dtype sees them."""
    text = io.BytesIO(f"balance\n{TOP}\n".encode())

    with pytest.raises(ValueError, match="in row 0 is a float"):
        pd.read_csv(text, dtype={"balance": "u128"}, engine="pyarrow")


@given(VALUES)
def test_pickle_is_lossless(values):
    """A pickled column is the same column."""
    series = pd.Series(u128(*values))

    read = pickle.loads(pickle.dumps(series))  # noqa: S301 - pickled in this very line
    pd.testing.assert_series_equal(read, series)
