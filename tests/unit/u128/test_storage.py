"""Storage: Arrow, Parquet, DuckDB, Polars, Dask, CSV, JSON and pickle, digit for digit."""

import importlib
import io
import json
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow.compute as pc
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
    ints = planes.to_ints(words)
    return [None if gap else value for value, gap in zip(ints, mask, strict=True)]


def u128(*values):
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


def write_as_text(frame, path):
    """Write balances as earlier versions did, if one of them had 39 digits."""
    schema = pa.Schema.from_pandas(frame.assign(balance=0))
    position = schema.get_field_index("balance")
    frame.to_parquet(path, schema=schema.set(position, pa.field("balance", pa.string())))


# Arrow arrays ---------------------------------------------------------------------------


@given(SMALL)
def test_a_column_becomes_decimals(values):
    """Decimals of 38 digits are the same integers, of an empty column too."""
    array = written(values)
    array.validate(full=True)

    assert array.type == pa.decimal128(38, 0)
    assert array.to_pylist() == [value if value is None else Decimal(value) for value in values]


@pytest.mark.parametrize("large", [END, 2**127 - 1, 2**127, TOP])
def test_a_value_of_39_digits_is_refused(large, tmp_path):
    """The form of a column does not depend on its values: the error names one and a way out."""
    frame = pd.DataFrame({"balance": u128(5, None, large)})
    sentence = f"{large} in row 2 is too large for decimal128(38, 0): astype('str') keeps"

    for write in (pa.table, lambda frame: frame.to_parquet(tmp_path / "f.parquet")):
        with pytest.raises(pa.ArrowInvalid) as caught:
            write(frame)
        assert sentence in str(caught.value)
        assert "column balance with type u128" in str(caught.value)
    with pytest.raises(InvalidRequestError) as refused:
        parquet.write_parquet(frame, tmp_path / "f.parquet")
    assert f"column balance with type u128: {sentence}" in str(refused.value)
    assert not list(tmp_path.iterdir())

    parquet.write_parquet(frame.astype({"balance": "str"}), tmp_path / "f.parquet")
    read = parquet.read_parquet(tmp_path / "f.parquet").astype({"balance": "u128"})
    assert as_ints(read["balance"]) == [5, None, large]


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
    with pytest.raises(pa.ArrowInvalid, match="Integer value"):
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


@pytest.mark.parametrize("kind", [pa.float64(), pa.bool_()], ids=str)
def test_types_to_write_are_exact(kind):
    """No column is written as floats."""
    with pytest.raises(TypeError, match="choose a decimal"):
        written([1], kind)


# Parquet --------------------------------------------------------------------------------


READERS = {"pandas": pd.read_parquet, "ledgerkit": parquet.read_parquet}
WRITERS = {"pandas": pd.DataFrame.to_parquet, "ledgerkit": parquet.write_parquet}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@given(balance=SMALL)
def test_every_value_comes_back_from_parquet(write, read, balance, tmp_path_factory):
    """Each value is the same integer, whether pandas or ledgerkit writes and reads the file."""
    path = tmp_path_factory.mktemp("round") / "f.parquet"
    frame = pd.DataFrame({"balance": u128(*balance), "other": u128(*reversed(balance))})

    write(frame, path)

    pd.testing.assert_frame_equal(read(path), frame)


@given(SMALL)
def test_every_value_comes_back_from_feather(values):
    """Feather, which is Arrow's own format, keeps the dtype too."""
    frame = pd.DataFrame({"balance": u128(*values)})
    buffer = io.BytesIO()

    frame.to_feather(buffer)

    pd.testing.assert_frame_equal(pd.read_feather(buffer), frame)


def test_pandas_options_of_parquet(tmp_path):
    """Partitions, columns in another order, filters, and labels of two levels keep the dtype."""
    frame = pd.DataFrame({"key": ["x", "y"], "n": [1, 2], "balance": u128(END - 1, None)})
    frame.to_parquet(tmp_path / "parts", partition_cols=["key"])
    frame.to_parquet(tmp_path / "f.parquet")
    labelled = frame.set_axis(pd.MultiIndex.from_product([["a"], frame.columns]), axis="columns")
    labelled.to_parquet(tmp_path / "labels.parquet")

    parts = pd.read_parquet(tmp_path / "parts")
    selected = pd.read_parquet(
        tmp_path / "f.parquet", columns=["balance", "n"], filters=[("n", "=", 1)]
    )

    assert as_ints(parts["balance"]) == [END - 1, None]
    assert selected.columns.tolist() == ["balance", "n"]
    assert selected["balance"].dtype == "u128"
    assert as_ints(selected["balance"]) == [END - 1]
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


@pytest.mark.parametrize("top", [END - 1, TOP], ids=["decimals", "an old text"])
def test_an_index_comes_back_from_parquet(top, tmp_path):
    """Amounts may be an index, which pandas reads as Decimals or texts, and other indexes stay."""
    frame = pd.DataFrame({"n": [1, 2]}, index=pd.MultiIndex.from_arrays([u128(5, top), ["a", "b"]]))
    frame.index.names = ["balance", "key"]
    kind = pa.decimal128(38, 0) if top < END else pa.string()
    schema = [("n", pa.int64()), ("balance", kind), ("key", pa.string())]
    frame.to_parquet(tmp_path / "f.parquet", schema=pa.schema(schema))

    read = parquet.read_parquet(tmp_path / "f.parquet")

    assert read.index.get_level_values("balance").dtype == "u128"
    assert read.index.tolist() == [(5, "a"), (top, "b")]
    by_pandas = pd.read_parquet(tmp_path / "f.parquet").index.get_level_values("balance")
    assert by_pandas.tolist() == ([5, top] if top < END else ["5", str(top)])


def test_pandas_without_ledgerkit_reads_every_digit(tokens, tmp_path):
    """Where the dtype is not registered, amounts are Decimals."""
    tokens.to_parquet(tmp_path / "tokens.parquet")
    code = "import pandas as pd; print(pd.read_parquet('tokens.parquet')['balance'].tolist())"

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == f"[Decimal('{END - 1}'), None, Decimal('{2**64}')]\n"


def test_filters_take_integers_of_any_size(tokens, hostile, tmp_path):
    """Rows are selected by numbers, in today's files and in those of text."""
    parquet.write_parquet(tokens, tmp_path / "decimals.parquet")
    write_as_text(hostile, tmp_path / "text.parquet")

    def read(name, *filters):
        frame = parquet.read_parquet(tmp_path / f"{name}.parquet", filters=list(filters))
        return as_ints(frame["balance"])

    assert read("decimals", ("balance", ">", 2**64)) == [END - 1]
    assert read("decimals", ("balance", "<=", 2**64), ("height", "=", 2**60 + 1)) == [2**64]
    assert read("decimals", [("balance", "=", END - 1)], [("height", ">", 1)]) == [END - 1, 2**64]
    assert read("decimals", ("balance", "in", [2**64, TOP])) == [2**64]
    assert read("decimals", ("balance", "<", 2**128)) == [END - 1, 2**64]
    assert read("text", ("balance", ">", 5)) == [TOP, END]
    assert read("text", ("id", "in", {"b", "d"}), ("balance", "!=", END)) == [5]
    for wrong in ([("paid", ">", 1)], [("contract_id", ">", 1)], [("balance", "~", 1)], [], "id"):
        with pytest.raises(InvalidRequestError, match=r"filters .* is not valid: expected such as"):
            parquet.read_parquet(tmp_path / "decimals.parquet", filters=wrong)


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
    write_as_text(pd.DataFrame({"balance": u128(TOP - 1, None)}), tmp_path / "b.parquet")
    pd.DataFrame({"balance": u128(7)}).to_parquet(tmp_path / "c.parquet")

    alone = parquet.read_parquet(tmp_path / "a.parquet")
    together = parquet.read_parquet(tmp_path)

    assert alone.columns.tolist() == together.columns.tolist() == ["balance"]
    assert as_ints(alone["balance"]) == [TOP, 5, None, END]
    assert as_ints(together["balance"]) == [TOP, 5, None, END, TOP - 1, None, 7]
    by_pandas = pd.read_parquet(tmp_path / "a.parquet")
    assert as_ints(by_pandas["balance"]) == [None, 5, None, None]
    assert by_pandas["balance_text"].dropna().tolist() == [str(TOP), str(END)]


@pytest.mark.parametrize("names", ["ab", "ba"], ids=["decimals first", "text first"])
def test_a_folder_of_files(tokens, hostile, names, tmp_path):
    """A column that is text in one file and decimals in another is read, in any order."""
    frames = dict(zip(names, (tokens[["balance"]], hostile[["balance"]]), strict=True))
    frames[names[0]].to_parquet(tmp_path / f"{names[0]}.parquet")
    write_as_text(frames[names[1]], tmp_path / f"{names[1]}.parquet")

    read = parquet.read_parquet(tmp_path)

    assert read["balance"].dtype == "u128"
    assert as_ints(read["balance"]) == [
        value for name in "ab" for value in as_ints(frames[name]["balance"])
    ]


@pytest.mark.parametrize("large", [END, 2**127 - 1, 2**127, TOP])
def test_pandas_misreads_no_folder(tokens, large, tmp_path):
    """Arrow casts texts of the second file to decimals of 128 bits, which wrap: an error."""
    tokens.to_parquet(tmp_path / "a.parquet")
    write_as_text(pd.DataFrame({"balance": u128(large)}), tmp_path / "b.parquet")

    with pytest.raises(ValueError, match=r"does not fit in (u128|precision 38)"):
        pd.read_parquet(tmp_path, columns=["balance"])


def test_a_folder_in_parts(tokens, tmp_path):
    """Folders named by a key, as `partition_cols` makes them, give the key back."""
    for key in "xy":
        tokens.assign(key=key).to_parquet(tmp_path, partition_cols=["key"])

    read = parquet.read_parquet(tmp_path)

    assert as_ints(read["balance"]) == 2 * [END - 1, None, 2**64]
    assert read["key"].tolist() == list("xxxyyy")
    (alone,) = (tmp_path / "key=x").iterdir()
    assert parquet.read_parquet(alone).columns.tolist() == tokens.columns.tolist()


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
    """Write amounts that floats and texts order wrongly, and give their sums by group."""
    amounts = [None if i % 7 == 0 else (i % 5 + 1) * 10**35 + i for i in range(100)]
    frame = pd.DataFrame({"key": ["a", "b"] * 50, "balance": u128(*amounts)})
    parquet.write_parquet(frame, tmp_path / "f.parquet")
    totals = {key: sum(filter(None, amounts["ab".index(key) :: 2])) for key in "ab"}
    return str(tmp_path / "f.parquet"), frame, totals


LINE = 5 * 10**35 + 68  # an amount of `sums`; as a float it is also that of others
END_FRAME = pd.DataFrame({"key": [1, 1], "balance": u128(END - 1, END - 1)})


def exact_results(frame):
    """Return what an engine must answer: the amounts in order, those above a line, and the top."""
    ordered = sorted(filter(None, as_ints(frame["balance"])), reverse=True)
    return ordered, [value for value in ordered if value > LINE], ordered[0]


def test_duckdb(sums):
    """DECIMAL(38,0) is exact, in a file and in an Arrow table; sums never wrap."""
    duckdb = pytest.importorskip("duckdb")
    path, frame, totals = sums
    ordered, above, top = exact_results(frame)
    for amounts in (duckdb.read_parquet(path), duckdb.from_arrow(parquet.to_arrow(frame))):
        found = amounts.aggregate("any_value(typeof(balance)), max(balance)").fetchall()
        assert found == [("DECIMAL(38,0)", top)]
        by_balance = amounts.filter("balance IS NOT NULL").order("balance DESC")
        assert [value for (value,) in by_balance.project("balance").fetchall()] == ordered
        rows = by_balance.filter(f"balance > {LINE}").project("balance").fetchall()
        assert [value for (value,) in rows] == above
        assert dict(amounts.aggregate("key, sum(balance)", "key").fetchall()) == totals
        assert amounts.df()["balance"].dtype == "float64"
        taken = pd.Series(amounts.to_arrow_table()["balance"], dtype=U128Dtype())
        assert as_ints(taken) == as_ints(frame["balance"])
    ends = duckdb.from_arrow(parquet.to_arrow(END_FRAME))
    for groups in ("", "key"):
        with pytest.raises(duckdb.OutOfRangeException):
            ends.aggregate("sum(balance)", groups).fetchall()


def test_polars(sums):
    """Decimal(38, 0) is exact in a file, an Arrow table and a frame; only grouped sums wrap."""
    pl = pytest.importorskip("polars")
    path, frame, totals = sums
    ordered, above, top = exact_results(frame)
    balance = pl.col("balance")
    table = pl.from_arrow(parquet.to_arrow(frame))
    for read in (pl.read_parquet(path), table, pl.from_pandas(frame)):
        assert read.schema["balance"] == pl.Decimal(38, 0)
        assert read["balance"].max() == top
        assert read["balance"].sum() == sum(totals.values())
        assert read["balance"].drop_nulls().sort(descending=True).to_list() == ordered
        assert read.filter(balance > LINE)["balance"].sort(descending=True).to_list() == above
        assert dict(read.group_by("key").agg(balance.sum()).rows()) == totals
    ends = pl.from_pandas(END_FRAME)
    with pytest.raises(pl.exceptions.ComputeError, match="overflow"):
        ends["balance"].sum()
    assert ends.group_by("key").agg(balance.sum())["balance"].item() < 0
    assert pl.Series([TOP, 5], dtype=pl.UInt128).sum() == 4  # not the dtype to add with


def test_pyarrow(sums):
    """Decimals are exact in Arrow, and with `dtype_backend="pyarrow"`, but their sums wrap."""
    path, frame, totals = sums
    ordered, above, top = exact_results(frame)
    table, field = pq.read_table(path), pc.field("balance")
    assert table["balance"].type == pa.decimal128(38, 0)
    assert pc.max(table["balance"]).as_py() == top
    by_balance = table.drop_null().sort_by([("balance", "descending")])
    assert by_balance["balance"].to_pylist() == ordered
    assert by_balance.filter(field > Decimal(LINE))["balance"].to_pylist() == above
    rows = table.group_by("key").aggregate([("balance", "sum")]).to_pylist()
    assert {row["key"]: row["balance_sum"] for row in rows} == totals
    with pytest.raises(pa.ArrowInvalid, match="Precision is not great enough"):
        table.filter(field > LINE % 10**9)
    ends = parquet.to_arrow(END_FRAME)
    assert pc.sum(ends["balance"]).as_py() < 0
    assert ends.to_pandas(types_mapper=pd.ArrowDtype)["balance"].sum() < 0
    assert pd.read_parquet(path, dtype_backend="numpy_nullable")["balance"].dtype == "u128"
    decimals = pd.read_parquet(path, dtype_backend="pyarrow")["balance"]
    assert decimals.dtype == pd.ArrowDtype(pa.decimal128(38, 0))
    pd.testing.assert_series_equal(decimals.astype(U128Dtype()), frame["balance"])


def test_duckdb_computes_with_39_digits_as_bignum(hostile, tmp_path):
    """`astype("str")` is the way out: BIGNUM has no limit, and UHUGEINT adds in doubles."""
    duckdb = pytest.importorskip("duckdb")
    hostile.astype({"balance": "str"}).to_parquet(tmp_path / "f.parquet")
    rows, number = duckdb.read_parquet(str(tmp_path / "f.parquet")), "balance::BIGNUM"

    totals = rows.aggregate(f"sum({number}), max({number})").fetchall()
    assert totals == [(str(TOP + 5 + END), str(TOP))]
    largest = rows.filter(f"{number} > 5").order(f"{number} DESC").project("id")
    assert largest.fetchall() == [("a",), ("d",)]
    assert rows.aggregate("typeof(sum(balance::UHUGEINT))").fetchall() == [("DOUBLE",)]


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


@pytest.fixture
def dask_frame():
    """Give a function that opens a folder with Dask, without threads or processes."""
    dask = pytest.importorskip("dask", reason="the extra `dask`")
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
    largest = sorted(filter(None, as_ints(frame["balance"])), reverse=True)[:2]
    assert exact.nlargest(2, "balance").compute()["balance"].tolist() == largest


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
def test_dask_writes_decimals(tokens, hostile, tmp_path):
    """All parts that Dask writes have one form: 39 digits are refused, or text on request."""
    from_pandas = importlib.import_module("dask.dataframe").from_pandas

    from_pandas(tokens, npartitions=2).to_parquet(tmp_path / "parts")
    assert as_ints(parquet.read_parquet(tmp_path / "parts")["balance"]) == [END - 1, None, 2**64]

    frame = from_pandas(hostile, npartitions=2)
    with pytest.raises(ValueError, match=r"too large for decimal128.*column balance"):
        frame.to_parquet(tmp_path / "refused")
    frame.to_parquet(tmp_path / "texts", schema={"balance": pa.string()})
    assert as_ints(pd.read_parquet(tmp_path / "texts")["balance"]) == [TOP, 5, None, END]


# Text -----------------------------------------------------------------------------------


def test_a_reader_that_makes_floats_is_refused():
    """Where pyarrow reads CSV, large numbers are floats before the dtype sees them."""
    text = io.BytesIO(f"balance\n{TOP}\n".encode())

    with pytest.raises(ValueError, match="in row 0 is a float"):
        pd.read_csv(text, dtype={"balance": "u128"}, engine="pyarrow")


@pytest.mark.parametrize("name", [".", "missing/x.parquet", "x" * 300])
def test_a_parquet_file_that_cannot_be_written_is_a_file_error(tmp_path, name):
    """A folder, a missing folder and too long a name are refused with our own error."""
    with pytest.raises(FileError, match="Could not write"):
        parquet.write_parquet(pd.DataFrame({"a": [1]}), tmp_path / name)
