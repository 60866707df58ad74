"""Storage: Arrow, Parquet, DuckDB, Polars, Dask, CSV, JSON and pickle, digit for digit."""

import importlib
import io
import json
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import DecodeError, FileError, InvalidRequestError
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
    return pa.array(u128(*values), type=kind)


def listed(words, mask):
    """List the values that planes and a mask hold."""
    ints = planes.to_ints(*words)
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


@given(SMALL, st.lists(st.integers(END, TOP), max_size=1))
def test_a_column_becomes_decimals_or_text(values, large):
    """Decimals are the same integers; one value of 39 digits makes the column text."""
    array = written([*values, *large])
    array.validate(full=True)

    kind, convert = (pa.string(), str) if large else (pa.decimal128(38, 0), Decimal)
    assert array.type == kind
    assert array.to_pylist() == [v if v is None else convert(v) for v in [*values, *large]]


@given(VALUES, st.sampled_from([pa.decimal256(39, 0), pa.string(), pa.large_string()]))
def test_a_column_comes_back(values, kind):
    """Types wide enough for every value give every value back, missing ones too."""
    array = written(values, kind)
    array.validate(full=True)

    assert array.type == kind
    assert listed(*arrow.from_arrow(array)) == values


@given(VALUES, st.integers(0, 50))
def test_parts_and_chunks(values, end):
    """A slice, which shares the buffers of the whole, is read alone, and chunks as one array."""
    array = written(values, pa.decimal256(39, 0))
    parts = [array[:end], array[end:]]

    for part, expected in zip(parts, (values[:end], values[end:]), strict=True):
        assert listed(*arrow.from_arrow(part)) == expected
    assert listed(*arrow.from_arrow(pa.chunked_array(parts, array.type))) == values


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int64(), pa.uint64()], ids=str)
def test_machine_integers(kind):
    """Integers of any width are read, and written where they fit."""
    top = np.iinfo(kind.to_pandas_dtype()).max
    array = pa.array([0, None, top], kind)

    assert listed(*arrow.from_arrow(array)) == [0, None, top]
    assert written([0, None, top], kind).equals(array)
    with pytest.raises(OverflowError, match=rf"^{top + 1} in row 1 does not fit {kind}$"):
        written([0, top + 1], kind)


def test_other_arrays_are_read(subtests):
    """Whatever holds integers exactly is read exactly."""
    cases = [
        (pa.nulls(2), [None, None]),
        (pa.array(["5", None, "5"]).dictionary_encode(), [5, None, 5]),
        (pa.array(["007"], pa.large_string()), [7]),
        (pa.array([Decimal(7), None], pa.decimal32(5, 0)), [7, None]),
        (pa.array([Decimal(7), None], pa.decimal64(18, 0)), [7, None]),
        (pa.chunked_array([], pa.string()), []),
        (pa.array([], pa.decimal128(38, 0)), []),
    ]
    for array, values in cases:
        with subtests.test(values=values):
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


def test_texts_are_read_as_digits(subtests):
    """An array of text goes the strict way, not through Arrow's own cast."""
    for text in ["", "-1", "1_000", " 1", "1.0", "1e3", str(TOP + 1)]:
        with subtests.test(text=text), pytest.raises(DecodeError, match="row 1"):
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
    """Where decimals are required, the error names the value, its row, and a type for it."""
    with pytest.raises(OverflowError) as caught:
        written([0, None, END], pa.decimal128(38, 0))

    assert str(caught.value) == (
        f"{END} in row 2 does not fit decimal128(38, 0); "
        "pass the type pyarrow.string(), which holds every value"
    )


# Parquet --------------------------------------------------------------------------------


READERS = {"pandas": pd.read_parquet, "ledgerkit": parquet.read_parquet}
WRITERS = {"pandas": pd.DataFrame.to_parquet, "ledgerkit": parquet.write_parquet}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@given(balance=VALUES)
def test_every_value_comes_back_from_parquet(write, read, balance, tmp_path_factory):
    """Each value is the same integer, whether pandas or ledgerkit writes and reads the file."""
    path = tmp_path_factory.mktemp("round") / "f.parquet"
    frame = pd.DataFrame({"balance": u128(*balance), "other": u128(*reversed(balance))})

    write(frame, path)

    pd.testing.assert_frame_equal(read(path), frame)


@given(VALUES)
def test_every_value_comes_back_from_feather(values):
    """Feather, which is Arrow's own format, keeps the dtype too."""
    frame = pd.DataFrame({"balance": u128(*values)})
    buffer = io.BytesIO()

    frame.to_feather(buffer)

    pd.testing.assert_frame_equal(pd.read_feather(buffer), frame)


@pytest.mark.parametrize("top", [END - 1, TOP], ids=["38 digits", "39 digits"])
def test_pandas_options_of_parquet(top, tmp_path):
    """Partitions, columns in another order, filters, and labels of two levels keep the dtype."""
    frame = pd.DataFrame({"key": ["x", "y"], "n": [1, 2], "balance": u128(top, None)})
    frame.to_parquet(tmp_path / "parts", partition_cols=["key"])
    frame.to_parquet(tmp_path / "f.parquet")
    labelled = frame.set_axis(pd.MultiIndex.from_product([["a"], frame.columns]), axis="columns")
    labelled.to_parquet(tmp_path / "labels.parquet")

    parts = pd.read_parquet(tmp_path / "parts")
    selected = pd.read_parquet(
        tmp_path / "f.parquet", columns=["balance", "n"], filters=[("n", "=", 1)]
    )

    assert as_ints(parts["balance"]) == [top, None]
    assert selected.columns.tolist() == ["balance", "n"]
    assert selected["balance"].dtype == "u128"
    assert as_ints(selected["balance"]) == [top]
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "labels.parquet"), labelled)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_frame_comes_back_from_parquet(read, tokens, tmp_path):
    """Other columns and the attributes too; ledgerkit's dtype of text depends on no pyarrow."""
    parquet.write_parquet(tokens, tmp_path / "ft.parquet")

    found = read(tmp_path / "ft.parquet")

    texts = {"contract_id": TEXT} if read is pd.read_parquet else {}
    pd.testing.assert_frame_equal(found.astype(texts), tokens)
    assert found.attrs == {"network": "mainnet"}


def test_a_flipped_bit_of_a_page_is_refused(tokens, tmp_path):
    """Pages have checksums, which `read_parquet` compares: no balance becomes another."""
    path = tmp_path / "ft.parquet"
    parquet.write_parquet(tokens, path)
    body = path.read_bytes()
    column = pq.ParquetFile(path).metadata.row_group(0).column(1)
    start = column.dictionary_page_offset or column.data_page_offset
    for bit in range(8):
        damaged = bytearray(body)
        damaged[start + column.total_compressed_size - 1] ^= 1 << bit
        path.write_bytes(damaged)
        with pytest.raises((DecodeError, OSError), match="CRC"):
            parquet.read_parquet(path)


@pytest.mark.parametrize("top", [END - 1, TOP], ids=["38 digits", "39 digits"])
def test_an_index_comes_back_from_parquet(top, tmp_path):
    """Amounts may be an index, and other indexes stay."""
    frame = pd.DataFrame({"n": [1, 2]}, index=pd.MultiIndex.from_arrays([u128(5, top), ["a", "b"]]))
    frame.index.names = ["balance", "key"]
    frame.to_parquet(tmp_path / "f.parquet")

    read = parquet.read_parquet(tmp_path / "f.parquet")

    assert read.index.get_level_values("balance").dtype == "u128"
    assert read.index.tolist() == [(5, "a"), (top, "b")]


def test_pandas_reads_an_index_as_other_objects(tmp_path):
    """No dtype is asked about an index: pandas gets every digit, but Decimals or texts."""
    for top, values in ((END - 1, [5, END - 1]), (TOP, ["5", str(TOP)])):
        frame = pd.DataFrame({"n": [1, 2]}, index=pd.Index(u128(5, top), name="balance"))
        frame.to_parquet(tmp_path / "f.parquet")

        assert pd.read_parquet(tmp_path / "f.parquet").index.tolist() == values


def test_pandas_without_ledgerkit_reads_every_digit(tokens, hostile, tmp_path):
    """Where the dtype is not registered, amounts are Decimals, or texts if one has 39 digits."""
    tokens.to_parquet(tmp_path / "tokens.parquet")
    hostile.to_parquet(tmp_path / "hostile.parquet")
    code = (
        "import pandas as pd\n"
        "for name in ('tokens', 'hostile'):\n"
        "    print(pd.read_parquet(f'{name}.parquet')['balance'].tolist())\n"
    )

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    first, second = done.stdout.splitlines()
    assert first == f"[Decimal('{END - 1}'), None, Decimal('{2**64}')]"
    assert second == f"['{TOP}', '5', nan, '{END}']"


def write_in_two_columns(path, balance, texts):
    """Write a file as earlier versions did: the name u128, and large values in a text column."""
    mark = pa.field("balance_text", pa.string(), metadata={"u128": "balance"})
    schema = pa.schema([pa.field("balance", pa.decimal128(38, 0)), mark])
    table = pa.table([balance, texts], schema=schema)
    columns = [
        {"name": name, "field_name": name, "numpy_type": dtype, "pandas_type": kind}
        | {"metadata": None}
        for name, dtype, kind in (("balance", "u128", "decimal"), ("balance_text", "str", "str"))
    ]
    metadata = {"columns": columns, "index_columns": [], "column_indexes": []}
    pa.parquet.write_table(table.replace_schema_metadata({"pandas": json.dumps(metadata)}), path)


def test_files_of_two_columns_are_read(tmp_path):
    """Files with large values in a text column stay readable, also beside files without one."""
    large = [str(TOP), None, None, str(END)]
    write_in_two_columns(tmp_path / "a.parquet", [None, Decimal(5), None, None], large)
    pd.DataFrame({"balance": u128(TOP - 1, None)}).to_parquet(tmp_path / "b.parquet")
    pd.DataFrame({"balance": u128(7)}).to_parquet(tmp_path / "c.parquet")

    alone = parquet.read_parquet(tmp_path / "a.parquet")
    together = parquet.read_parquet(tmp_path)

    assert alone.columns.tolist() == together.columns.tolist() == ["balance"]
    assert as_ints(alone["balance"]) == [TOP, 5, None, END]
    assert as_ints(together["balance"]) == [TOP, 5, None, END, TOP - 1, None, 7]
    by_pandas = pd.read_parquet(tmp_path / "a.parquet")
    assert as_ints(by_pandas["balance"]) == [None, 5, None, None]
    assert by_pandas["balance_text"].dropna().tolist() == [str(TOP), str(END)]


@pytest.mark.parametrize("names", ["ab", "ba"], ids=["38 digits first", "39 digits first"])
def test_a_folder_of_files(tokens, hostile, names, tmp_path):
    """A column that is text in one file and decimals in another is read, in any order."""
    frames = dict(zip(names, (tokens[["balance"]], hostile[["balance"]]), strict=True))
    for name, frame in frames.items():
        frame.to_parquet(tmp_path / f"{name}.parquet")

    read = parquet.read_parquet(tmp_path)

    assert read["balance"].dtype == "u128"
    assert as_ints(read["balance"]) == [
        value for name in "ab" for value in as_ints(frames[name]["balance"])
    ]


@pytest.mark.parametrize("large", [END, 2**127 - 1, 2**127, TOP])
def test_pandas_misreads_no_folder(tokens, large, tmp_path):
    """Arrow casts texts of the second file to decimals of 128 bits, which wrap: an error."""
    tokens.to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"balance": u128(large)}).to_parquet(tmp_path / "b.parquet")

    with pytest.raises(ValueError, match=r"does not fit in (u128|precision 38)"):
        pd.read_parquet(tmp_path, columns=["balance"])


def test_a_folder_in_parts(hostile, tmp_path):
    """Folders named by a key, as `partition_cols` makes them, give the key back."""
    for key in "xy":
        hostile.assign(key=key).to_parquet(tmp_path, partition_cols=["key"])

    read = parquet.read_parquet(tmp_path)

    assert as_ints(read["balance"]) == 2 * [TOP, 5, None, END]
    assert read["key"].tolist() == list("xxxxyyyy")
    (alone,) = (tmp_path / "key=x").iterdir()
    assert parquet.read_parquet(alone).columns.tolist() == ["id", "balance"]


def test_nothing_to_read_is_an_error(tmp_path):
    """A wrong path is no frame without rows."""
    for path in (tmp_path, tmp_path / "f.parquet"):
        with pytest.raises(FileError, match="Could not read"):
            parquet.read_parquet(path)


def test_a_number_beside_its_digits_is_refused(tmp_path):
    """Where a file has been changed, no value is chosen over the other."""
    write_in_two_columns(tmp_path / "f.parquet", [Decimal(1), Decimal(2)], [None, "3"])

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


def test_engines_refuse_to_add_texts(hostile, tmp_path):
    """No engine adds a column with 39 digits by itself, so none omits or rounds a value."""
    duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    path = str(tmp_path / "f.parquet")
    hostile.to_parquet(path)

    with pytest.raises(duckdb.BinderException, match=r"sum\(VARCHAR\)"):
        duckdb.read_parquet(path).sum("balance")
    with pytest.raises(pl.exceptions.InvalidOperationError, match="`sum` operation not supported"):
        pl.read_parquet(path)["balance"].sum()


def test_duckdb_adds_39_digits_as_bignum(hostile, tmp_path):
    """BIGNUM has no limit: its sums are exact above 2^128 too, and UHUGEINT's are doubles."""
    duckdb = pytest.importorskip("duckdb")
    path = str(tmp_path / "f.parquet")
    hostile.to_parquet(path)

    def query(expression):
        return duckdb.read_parquet(path).aggregate(expression).fetchall()[0]

    total = TOP + 5 + END
    assert query("sum(balance::BIGNUM)::VARCHAR") == (str(total),)
    assert query("sum(balance::UHUGEINT), typeof(sum(balance::UHUGEINT))") == (
        float(total),
        "DOUBLE",
    )
    assert query("sum(TRY_CAST(balance AS DECIMAL(38, 0)))") == (Decimal(5),)


def test_duckdb_never_wraps():
    """Sums of decimals above 38 digits are an error, all together and by group."""
    duckdb = pytest.importorskip("duckdb")
    amounts = duckdb.from_arrow(parquet.to_arrow(pd.DataFrame({"n": u128(END - 1, END - 1)})))

    for groups in ("", "n"):
        with pytest.raises(duckdb.OutOfRangeException):
            amounts.aggregate("sum(n)", groups).fetchall()


def test_polars_wraps_by_group():
    """Grouped sums of decimals and all sums of UInt128 wrap in Polars, as the page u128 warns."""
    pl = pytest.importorskip("polars")
    decimals = pl.DataFrame({"k": [1, 1], "v": [Decimal(END - 1)] * 2})
    decimals = decimals.with_columns(pl.col("v").cast(pl.Decimal(38, 0)))

    with pytest.raises(pl.exceptions.ComputeError, match="overflow"):
        decimals["v"].sum()
    ((_, wrapped),) = decimals.group_by("k").agg(pl.col("v").sum()).rows()
    assert wrapped < 0
    assert pl.Series([TOP, 5], dtype=pl.UInt128).sum() == 4


@pytest.mark.parametrize("values", [(END - 1, None), (TOP, None)])
def test_other_dtypes_of_pandas_keep_every_digit(tmp_path, values):
    """With a `dtype_backend` the columns are those that the page u128 lists."""
    path = tmp_path / "f.parquet"
    pd.DataFrame({"n": u128(*values)}).to_parquet(path)
    is_text = values[0] == TOP

    nullable = pd.read_parquet(path, dtype_backend="numpy_nullable")["n"]
    assert nullable.dtype == ("string" if is_text else "u128")
    arrow = pd.read_parquet(path, dtype_backend="pyarrow")["n"]
    kind = pa.string() if is_text else pa.decimal128(38, 0)
    assert arrow.dtype == pd.ArrowDtype(kind)
    for column in (nullable, arrow):
        assert as_ints(column.astype(U128Dtype())) == list(values)


def test_pyarrow_wraps():
    """Sums of decimals that pyarrow adds wrap above 2^127, as the page u128 warns."""
    decimals = pd.Series(u128(END - 1, END - 1)).astype(pd.ArrowDtype(pa.decimal128(38, 0)))

    assert decimals.sum() < 0


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


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.set_index")
@pytest.mark.usefixtures("dask_frame")
def test_dask_writes_39_digits_as_text(hostile, tmp_path):
    """All parts that Dask writes have one schema: with text in it, every value comes back."""
    frame = importlib.import_module("dask.dataframe").from_pandas(hostile, npartitions=2)

    with pytest.raises(OverflowError, match=r"does not fit decimal128.*pyarrow\.string"):
        frame.to_parquet(tmp_path / "refused")
    frame.to_parquet(tmp_path / "parts", schema={"balance": pa.string()})

    for read in (pd.read_parquet, parquet.read_parquet):
        balance = read(tmp_path / "parts")["balance"].astype(U128Dtype())
        assert as_ints(balance) == [TOP, 5, None, END]


# Text -----------------------------------------------------------------------------------


def test_a_reader_that_makes_floats_is_refused():
    """Where pyarrow reads CSV, large numbers are floats before the dtype sees them."""
    text = io.BytesIO(f"balance\n{TOP}\n".encode())

    with pytest.raises(ValueError, match="in row 0 is a float"):
        pd.read_csv(text, dtype={"balance": "u128"}, engine="pyarrow")


@pytest.mark.usefixtures("dask_frame")
def test_dask_selects_the_largest(hostile):
    """`nlargest` compares numbers, over all parts."""
    frame = importlib.import_module("dask.dataframe").from_pandas(hostile, npartitions=2)

    assert frame["balance"].nlargest(2).compute().tolist() == [TOP, END]
    assert frame.nlargest(2, "balance").compute()["balance"].tolist() == [TOP, END]


@pytest.mark.parametrize("name", [".", "missing/x.parquet", "x" * 300])
def test_a_parquet_file_that_cannot_be_written_is_a_file_error(tmp_path, name):
    """A folder, a missing folder and too long a name are refused with our own error."""
    with pytest.raises(FileError, match="Could not write"):
        parquet.write_parquet(pd.DataFrame({"a": [1]}), tmp_path / name)
