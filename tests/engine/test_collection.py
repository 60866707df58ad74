"""`open_collection`: every reader gives the same exact numbers, of what was committed only."""

from __future__ import annotations

import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest
from pandas.testing import assert_frame_equal

import ledgerkit as lk
from ledgerkit.errors import InvalidRequestError
from ledgerkit.frames import build
from ledgerkit.frames.schemas import SCHEMAS
from tests.loopback import as_json, serve
from tests.unit.collecting.builders import (
    Holdings,
    rewrite,
    write_collection,
    write_end,
    write_part,
)

EDGE = 10**38 - 1
LARGE = 10**38 + 7
BALANCES = [0, 1, 2**53 + 1, 2**64, 10**37 - 1, LARGE, 2**127, 2**128 - 1, 17, 3, EDGE]
SMALL = [balance for balance in BALANCES if balance < 10**38]
TABLES = ("accounts", "ft", "nft", "staking", "exposure", "subjects", "errors")
PLAIN = {"subjects": "collected", "errors": "collection_errors"}


def accounts() -> dict[str, Holdings | None]:
    """Hold all the balances, one of them unknown, in accounts of several parts."""
    held: dict[str, Holdings | None] = {
        f"a{place}.near": Holdings(
            (place, "ok"),
            {"t.near": (balance, "ok")},
            ["n.near"] * (place % 2),
            ["p.near", "q.near"] * (place % 3 == 0),
            "direct_only" if place % 3 == 0 else "no_visible_staking_position",
        )
        for place, balance in enumerate(BALANCES)
    }
    return held | {
        "ill.near": None,
        "late.near": Holdings(ft={"t.near": (None, "pending"), "u.near": (None, "broken")}),
    }


@pytest.fixture(params=["local", "remote"])
def collection(request: pytest.FixtureRequest, tmp_path: Path) -> lk.types.Collection:
    """Give a collection of several files, on this machine and in fsspec's memory."""
    remote = f"memory://{uuid.uuid4().hex}/run"
    return write_collection(
        tmp_path / "a run" if request.param == "local" else remote, accounts(), part_size=4
    )


def test_every_value_comes_back(collection: lk.types.Collection) -> None:
    """Pandas gets the balances that were written, 2^128 - 1 among them, in their order."""
    frame = collection.pandas("ft")
    assert frame["account_id"].tolist()[:3] == ["a0.near", "a1.near", "a2.near"]
    assert [None if one is pd.NA else one for one in frame["balance"]] == [*BALANCES, None, None]
    assert frame["status"].tolist()[-2:] == ["pending", "broken"]
    assert collection.pandas("exposure")["direct_pools"].tolist()[:2] == [["p.near", "q.near"], []]
    for table in TABLES:
        declared = build.empty_frame(PLAIN.get(table, table)).dtypes
        pd.testing.assert_series_equal(collection.pandas(table).dtypes, declared)


def test_all_readers_agree_on_exact_sums(collection: lk.types.Collection) -> None:
    """Sums of what fits 38 digits are equal, in every reader, to the last digit."""
    limit = 10**37
    wanted = sum(one for one in SMALL if one < limit)
    some = collection.pandas("ft")["balance"]
    assert some[some < limit].sum() == wanted
    with collection.duckdb() as db:
        where = f"balance_text IS NULL AND balance < {limit}"
        query = f"SELECT sum(balance) FROM ft WHERE {where}"  # noqa: S608 - ours
        assert db.sql(query).fetchall() == [(Decimal(wanted),)]
        twice = "FROM (FROM ft UNION ALL FROM ft) WHERE balance_text IS NULL"
        with pytest.raises(duckdb.OutOfRangeException):  # an error, never wrapped
            db.sql(f"SELECT sum(balance) {twice}").fetchall()
    tokens, small = pl.col("balance"), pl.col("balance_text").is_null()
    rows = collection.polars("ft").filter(small, tokens < limit).select(tokens.sum()).collect()
    assert rows.item() == Decimal(wanted)
    held = collection.arrow("ft")["balance"].drop_null().to_pylist()
    assert sorted(map(int, held)) == sorted(SMALL)
    assert sum(held for held in some.dropna().astype(object)) == sum(BALANCES)


def test_no_query_omits_the_largest_balances(collection: lk.types.Collection) -> None:
    """In files they are digits beside a null: queries that read one are refused, others exact."""
    large = [str(one) for one in BALANCES if one >= 10**38]
    told = collection.arrow("ft").to_pydict()
    beside = zip(told["balance"], told["balance_text"], strict=True)
    assert [text for value, text in beside if value is None and text] == large

    small, top = "WHERE balance_text IS NULL", Decimal(EDGE)
    with collection.duckdb() as db:
        for query in (
            "max(balance) FROM ft",
            "1 FROM ft WHERE balance > 3",
            "* FROM ft ORDER BY 3",
        ):
            refused = f"balance {large[0]} has 39 digits: read balance_text, or only rows {small}"
            with pytest.raises(duckdb.InvalidInputException, match=refused):
                db.sql(f"SELECT {query}").fetchall()
        assert db.sql(f"SELECT max(balance) FROM ft {small}").fetchall() == [(top,)]  # noqa: S608 - ours
        query = "SELECT max(balance_text::BIGNUM), count(*), count(status) FROM ft"
        assert db.sql(query).fetchall() == [(large[-1], 13, 13)]

    rows, balance = collection.polars("ft"), pl.col("balance")
    for refused in (rows.select(balance.max()), rows.filter(balance > 3), rows.sort(balance)):
        with pytest.raises(pl.exceptions.InvalidOperationError, match=large[0]):
            refused.collect()
    some = rows.filter(pl.col("balance_text").is_null())
    assert some.select(balance.max()).collect().item() == top
    assert rows.select("balance_text").collect()["balance_text"].drop_nulls().to_list() == large


def test_dask_reads_each_partition_as_pandas_would(collection: lk.types.Collection) -> None:
    """Dask's frames hold u128, the largest values too, lists as lists, and sum exactly."""
    for table in TABLES:
        found = collection.dask(table)
        together = found.compute(scheduler="synchronous").reset_index(drop=True)
        wanted = collection.pandas(table)
        wanted.attrs.clear()
        assert_frame_equal(together, wanted)
        pd.testing.assert_series_equal(found.dtypes, wanted.dtypes)
    tokens = collection.dask("ft")
    assert tokens.npartitions == 4
    small = tokens[tokens["balance"] < 2**120]["balance"].sum()
    assert small.compute(scheduler="synchronous") == sum(one for one in BALANCES if one < 2**120)


def test_a_slice_by_account_and_column(collection: lk.types.Collection) -> None:
    """Only the rows and columns asked for are read, exact all the same."""
    names = ["a5.near", "a8.near", "late.near", "nobody.near"]
    found = collection.pandas("ft", columns=["balance", "account_id"], account_ids=names)
    assert list(found.columns) == ["account_id", "balance"]
    assert found["account_id"].tolist() == ["a5.near", "a8.near", "late.near", "late.near"]
    assert found["balance"].tolist()[:2] == [LARGE, 17]
    near = lk.human(collection.pandas("accounts", columns=["balance"])).texts()["balance"]
    assert near.str.fullmatch(r"[\d,.]+ (NEAR|yocto)|").all()
    assert str(found["balance"].dtype) == "u128"
    assert collection.pandas("subjects", account_ids="a5.near")["position"].tolist() == [5]
    assert collection.pandas("errors", account_ids=["a5.near"]).empty
    assert collection.pandas("ft", account_ids=[]).dtypes.equals(collection.pandas("ft").dtypes)
    for options, field in (
        ({"columns": ["amount"]}, "columns"),
        ({"account_ids": ["NO"]}, "account_ids"),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            collection.pandas("ft", **options)
        assert caught.value.field == field
    with pytest.raises(
        InvalidRequestError, match="table 'tokens' is not valid: expected one of accounts"
    ):
        collection.pandas("tokens")


def test_what_a_collection_says_of_itself(collection: lk.types.Collection) -> None:
    """Its summary counts files and rows, its errors are listed, its line says how it went."""
    summary = collection.summary().set_index("table")
    assert summary["n_rows"].to_dict() == {
        "accounts": 12,
        "ft": 13,
        "nft": 5,
        "staking": 8,
        "exposure": 12,
        "subjects": 12,
        "errors": 1,
    }
    assert summary["n_files"].to_dict() == dict.fromkeys(TABLES, 4) | {
        "nft": 3,
        "staking": 3,
        "errors": 1,
    }
    assert (summary["n_bytes"] > 1000).all()
    told = {"network": "lab", "finished": True, "n_subjects": 13, "ok": 12, "failed": 1}
    assert collection.summary().attrs == told | {"schema": "collection_summary"}
    assert collection.errors()["subject"].tolist() == ["ill.near"]
    assert (collection.tables, collection.views) == (TABLES, TABLES[:5])
    assert repr(collection) == (f"<Collection {collection.path} of lab: finished, 12 ok, 1 failed>")


def test_a_table_without_rows_has_its_columns_in_every_reader(
    collection: lk.types.Collection,
) -> None:
    """Where no part has a row there is no file; types are the same as with rows."""
    empty = (
        write_collection(f"memory://{uuid.uuid4().hex}", {}) if "://" in collection.path else None
    )
    bare = empty or write_collection(Path(collection.path).parent / "bare", {})
    with bare.duckdb() as none, collection.duckdb() as some:
        for table in TABLES:
            assert bare.arrow(table).schema == collection.arrow(table).schema
            assert bare.pandas(table).dtypes.equals(collection.pandas(table).dtypes)
            assert bare.polars(table).collect_schema() == collection.polars(table).collect_schema()
            found = bare.dask(table).compute(scheduler="synchronous")
            assert found.dtypes.equals(collection.pandas(table).dtypes)
            told = [db.sql(f"SELECT * FROM {table}") for db in (none, some)]  # noqa: S608 - ours
            assert (told[0].columns, told[0].types) == (told[1].columns, told[1].types)
            assert told[0].fetchall() == []
    assert repr(bare).endswith(" of lab: finished, empty>")


# What counts ------------------------------------------------------------------------------


def test_only_what_a_commit_names_is_read(tmp_path: Path) -> None:
    """A file that was not committed, such as one being written, is in no reader's rows."""
    collection = write_collection(tmp_path / "run", accounts(), part_size=4)
    body = (tmp_path / "run/ft/part-000000000000.parquet").read_bytes()
    (tmp_path / "run/ft/part-000000000099.parquet").write_bytes(body)
    (tmp_path / f"run/ft/.part-000000000100.parquet.{uuid.uuid4().hex}.tmp").write_bytes(b"half")
    again = lk.open_collection(tmp_path / "run")
    for opened in (collection, again):
        with opened.duckdb() as db:
            assert db.sql("SELECT count(*) FROM ft").fetchall() == [(13,)]
        rows = opened.polars("ft").select("account_id").collect()
        assert len(opened.pandas("ft")) == len(rows) == 13
        assert len(opened.dask("ft")) == opened.dataset("ft").count_rows() == 13


def test_a_folder_named_like_a_pattern_reads_its_own_files(tmp_path: Path) -> None:
    """Stars and brackets in a folder's name match no other folder."""
    write_collection(tmp_path / "run1", accounts())
    odd = write_collection(
        tmp_path / "ru*[1] it's?", {"a.near": Holdings(ft={"t.near": (5, "ok")})}
    )
    with odd.duckdb() as db:
        assert db.sql("SELECT balance FROM ft").fetchall() == [(Decimal(5),)]
    assert odd.polars("ft").collect()["balance"].to_list() == [Decimal(5)]
    assert odd.pandas("ft")["balance"].tolist() == [5]


def test_what_comes_later_is_seen_when_opened_again(tmp_path: Path) -> None:
    """A collection is a snapshot: a part stored since is not half in it."""
    held = accounts()
    first = write_collection(tmp_path / "run", dict(list(held.items())[:4]), finished=False)
    assert not first.finished
    write_part(tmp_path / "run", 4, dict(list(held.items())[4:]), first.views)
    write_end(tmp_path / "run")
    second = lk.open_collection(tmp_path / "run")
    assert (first.n_subjects, len(first.pandas("ft")), first.finished) == (4, 4, False)
    assert (second.n_subjects, len(second.pandas("ft")), second.finished) == (13, 13, True)
    assert "not finished" in repr(first)


def test_a_rewritten_part_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    """A retry takes the old files away: whoever opened before is told to open again."""
    ill = {"a1.near"}

    def answer(_method: str, path: str, *_: object) -> Any:
        who = path.split("/")[3]
        if who in ill:
            return as_json({"account_id": "somebody.else", "tokens": []})
        return as_json({"account_id": who, "tokens": [{"contract_id": "t.near", "balance": "5"}]})

    with serve(answer) as server, lk.connect("lab", api_url=server.url) as ledger:
        again: dict[str, Any] = {
            "views": "ft",
            "out": tmp_path / "run",
            "ledger": ledger,
            "progress": False,
        }
        with pytest.warns(UserWarning, match="1 account could not be read"):
            before = lk.collect(["a0.near", "a1.near"], **again)
        ill.clear()
        after = lk.collect(["a0.near", "a1.near"], retry_failed=True, **again)
    lk.disconnect()
    with pytest.raises(InvalidRequestError, match="was rewritten since it was opened"):
        before.pandas("ft")
    assert after.pandas("ft")["balance"].tolist() == [5, 5]


def test_what_is_no_collection_is_refused(tmp_path: Path) -> None:
    """A folder of somebody else, none at all, and an address without one: each with a remedy."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other/data.csv").write_text("account_id\n")
    for out in (tmp_path / "other", tmp_path / "none", f"memory://{uuid.uuid4().hex}/none"):
        with pytest.raises(InvalidRequestError) as caught:
            lk.open_collection(out)
        assert f"{out} is not a collection: it has no manifest.json" in str(caught.value)
        assert caught.value.remedy.startswith("Pass the folder or address")
    with pytest.raises(InvalidRequestError) as caught:
        lk.open_collection(None)  # type: ignore[arg-type]  # as whoever forgets it
    assert caught.value.field == "out"


def test_an_older_schema_is_read_as_it_was(tmp_path: Path) -> None:
    """Columns that a run did not have yet are not made up."""
    held: dict[str, Holdings | None] = {"a.near": Holdings(ft={"t.near": (LARGE, "ok")})}
    write_collection(tmp_path / "run", held)
    rewrite(
        tmp_path / "run/manifest.json",
        lambda document: document["schemas"]["ft"].remove(["status", "str"]),
    )
    frame = lk.open_collection(tmp_path / "run").pandas("ft")
    names = [column.name for column in SCHEMAS["ft"]]
    assert list(frame.columns) == [name for name in names if name != "status"]
    assert frame["balance"].tolist() == [LARGE]
