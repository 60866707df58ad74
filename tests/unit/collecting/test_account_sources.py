"""Where account ids come from: their places, what is wrong with them, and which are repeated."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.collecting.account_sources import Digest, SeenTexts, Subject, source
from ledgerkit.errors import DecodeError, FileError, InvalidRequestError

if TYPE_CHECKING:
    from pathlib import Path

IDS = ["a.near", "b.near", "c.near"]


def texts(ids: object, **options: str) -> list[str]:
    return [subject.text for subject in source(ids, **options)]


@given(st.lists(st.lists(st.text(max_size=3), max_size=30), max_size=6))
def test_what_was_seen_is_known(batches: list[list[str]]) -> None:
    """Batch by batch, as a plain set tells it."""
    seen, known = SeenTexts(), set[str]()
    for batch in batches:
        wanted = []
        for text in batch:
            wanted.append(text in known)
            known.add(text)
        assert seen.add(batch).tolist() == wanted


def test_repeats_are_found_over_many_batches() -> None:
    """However far apart they stand."""
    ids = [f"a{number % 2_500}.near" for number in range(5_000)]
    problems = [subject.problem for subject in source(ids)]
    assert problems == [None] * 2_500 + ["duplicate"] * 2_500


def test_files_give_their_entries_in_order(tmp_path: Path) -> None:
    """Text by line, CSV and Parquet by column; any number of times."""
    text = tmp_path / "ids.txt"
    text.write_text("a.near\n\n  b.near \nc.near\n")
    csv = tmp_path / "ids.csv"
    csv.write_text('note,account_id\n"x, y",a.near\n,b.near\nz,c.near\n')
    parquet = tmp_path / "ids.parquet"
    pd.DataFrame({"account_id": IDS, "owner": IDS[::-1]}).to_parquet(parquet)
    for file in (text, csv, parquet, str(parquet)):
        found = source(file)
        assert [*map(str, (s.text for s in found))] == IDS
        assert [s.text for s in found] == IDS
        assert (found.total, found.is_repeatable) == (3, True)
    assert texts(parquet, column="owner") == IDS[::-1]
    (tmp_path / "many").mkdir()
    for name in ("1", "2"):
        pd.DataFrame({"account_id": [f"{name}.near"]}).to_parquet(tmp_path / f"many/{name}.parquet")
    assert texts(tmp_path / "many") == ["1.near", "2.near"]


def test_lists_and_iterators_are_sources() -> None:
    """An iterator can be read once, and nobody knows its length."""
    assert texts("a.near") == ["a.near"]
    assert texts(pd.Series(IDS)) == IDS
    assert (source(pd.Index(IDS)).total, source(iter(IDS)).total) == (3, None)
    assert (source(IDS).is_repeatable, source(iter(IDS)).is_repeatable) == (True, False)


def test_a_missing_value_is_a_malformed_id() -> None:
    """Of whatever kind it is."""
    found = list(source(["a.near", None, float("nan"), pd.NA, 7]))
    assert [s.problem for s in found] == [None, *["malformed"] * 4]
    assert [s.position for s in found] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "body", "column", "told"),
    [
        ("ids.csv", b"a,b\n1,2\n", "account_id", "which has a, b"),
        ("ids.csv", b"", "account_id", "which has none"),
        ("ids.csv", b"account_id\n\xff\n", "account_id", "a CSV file in UTF-8"),
    ],
)
def test_a_file_of_another_kind_is_refused(
    tmp_path: Path, name: str, body: bytes, column: str, told: str
) -> None:
    """With what would be right."""
    (tmp_path / name).write_bytes(body)
    with pytest.raises(InvalidRequestError, match=told):
        source(tmp_path / name, column)


@pytest.mark.parametrize("change", [b"not parquet", None])
def test_a_damaged_parquet_file_of_ids_is_refused(tmp_path: Path, change: bytes | None) -> None:
    """Neither the footer nor a page that pyarrow can't read raises an error of pyarrow."""
    path = tmp_path / "ids.parquet"
    pd.DataFrame({"account_id": [f"a{at}.near" for at in range(3_000)]}).to_parquet(path)
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)  # the head of the first page
    path.write_bytes(data if change is None else change)
    with pytest.raises(DecodeError, match=r"ids\.parquet can't be read as Parquet"):
        list(source(path))


def test_a_csv_line_without_end_is_refused(tmp_path: Path) -> None:
    """A field beyond the limit of the csv module is no error of that module."""
    (tmp_path / "ids.csv").write_bytes(b'account_id\n"' + b"a" * 200_000)
    with pytest.raises(InvalidRequestError, match="a CSV file in UTF-8"):
        source(tmp_path / "ids.csv")


def test_a_missing_file_is_no_empty_source(tmp_path: Path) -> None:
    """It could not be read, and the error names it."""
    with pytest.raises(FileError, match=r"none\.txt: No such file"):
        source(tmp_path / "none.txt")
    with pytest.raises(InvalidRequestError, match="a folder with Parquet files"):
        source(tmp_path)


def test_digests_tell_sources_apart() -> None:
    """By what stands where, also where the letters are the same."""
    digests = set()
    for entries in (["ab", "c"], ["a", "bc"], ["c", "ab"], ["ab"], ["\udcff"]):
        digest = Digest()
        for place, text in enumerate(entries):
            digest.add(Subject(place, text))
        digests.add(digest.text())
    assert len(digests) == 5
    assert all(one != other for one, other in pairwise(sorted(digests)))


@pytest.mark.parametrize("scheme", ["https", "s3"])
def test_an_address_is_no_file(scheme: str) -> None:
    """It is refused before anything is read, and a password in it is in no error below."""
    with pytest.raises(InvalidRequestError, match="or the path of a file on disk") as caught:
        source(f"{scheme}://me:hunter2hunter2@host.example/ids.csv")
    assert caught.value.field == "account_ids"
    assert caught.value.__context__ is None
    assert "hunter2" not in str(caught.value)
