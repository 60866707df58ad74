"""Tampered collections: nothing outside is touched, and only errors of ledgerkit are raised."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import sys
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fsspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ledgerkit as lk
from ledgerkit.errors import DecodeError, FileError, InvalidRequestError, LedgerError
from ledgerkit.frames import arrow_tables
from tests.loopback import as_json, serve
from tests.unit.collecting.builders import (
    Holdings,
    rewrite,
    write_collection,
    write_part,
    write_tables,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMIT = "commits/000000000000.json"
PART = "ft/part-000000000000.parquet"
VIEWS = ["ft"]
REMEDY = f"Remove {COMMIT}: the next collect() requests its part again."


def accounts() -> dict[str, Holdings | None]:
    """Return two accounts that were read, and one that failed."""
    return {
        "a.near": Holdings(ft={"t.near": (5, "ok")}),
        "b.near": Holdings(ft={"t.near": (7, "ok"), "u.near": (10**38, "ok")}),
        "ill.near": None,
    }


def answer(_method: str, path: str, *_: object) -> Any:
    """Return no tokens of any account."""
    return as_json({"account_id": path.split("/")[3], "tokens": []})


def collect(out: Path, **options: Any) -> Any:
    """Continue the collection over a real server."""
    with serve(answer) as server, lk.connect("lab", api_url=server.url) as ledger:
        try:
            options = {"progress": False, "ledger": ledger, **options}
            return lk.collect(list(accounts()), VIEWS, out, **options)
        finally:
            lk.disconnect()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the folder of a collection whose last account failed."""
    write_collection(tmp_path / "run", accounts(), views=VIEWS)
    return tmp_path / "run"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Return a folder beside the collection, with files of the user."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "anything.txt").write_text("mine")
    (folder / "part-000000000009.parquet").write_text("mine too")
    return folder


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """Check that a folder has the same files, contents and times of change afterwards."""

    def state() -> dict[str, tuple[bytes, int]]:
        return {
            str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()
        }

    before = state()
    yield
    assert state() == before


WAYS: dict[str, Callable[[Path], Any]] = {
    "retry": lambda run: collect(run, retry_failed=True),
    "resume": collect,
    "dry run": lambda run: collect(run, retry_failed=True, dry_run=True),
    "pandas": lambda run: lk.open_collection(run).pandas("ft"),
    "arrow": lambda run: lk.open_collection(run).arrow("ft"),
    "dataset": lambda run: lk.open_collection(run).dataset("ft").to_table(),
    "duckdb": lambda run: lk.open_collection(run).duckdb().sql("FROM ft").fetchall(),
    "polars": lambda run: lk.open_collection(run).polars("ft").collect(),
    "dask": lambda run: lk.open_collection(run).dask("ft").compute(scheduler="synchronous"),
    "diff": lambda run: lk.diff(run, run),
    "check": lambda run: lk.open_collection(run).check_files(),
}
# DuckDB's own queries raise its own errors; what opens the views raises ours.
OPENERS = {**WAYS, "duckdb": lambda run: lk.open_collection(run).duckdb().close()}
READERS = ["pandas", "arrow", "dataset", "duckdb", "polars", "dask", "diff", "check"]


# Names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "../outside/anything.txt",
        "{outside}/anything.txt",
        "ft/../../outside/anything.txt",
        "../outside/part-000000000009.parquet",
        "ft/part-000000000001.parquet",
        "ft/part-000000000000-1.parquet",
        "subjects/part-000000000000.parquet",
        "manifest.json",
        "ft/part-000000000000.parquet\0",
        "",
    ],
)
def test_a_name_that_no_run_writes_refuses_the_collection(
    name: str, run: Path, outside: Path
) -> None:
    """A commit that lists another file than its own is refused, and the file stays."""
    name = name.format(outside=outside)
    rewrite(run / COMMIT, lambda commit: commit["files"]["ft"].update(name=name))
    with untouched(outside), untouched(run / "ft"):
        for way in ("retry", "dry run", "pandas"):
            with pytest.raises(DecodeError, match="cannot be right: it names the file") as caught:
                WAYS[way](run)
            assert caught.value.remedy == REMEDY
    assert (run / "manifest.json").exists()


@pytest.mark.parametrize("way", ["retry", "pandas"])
@pytest.mark.parametrize("table", ["../outside", "{outside}", "", ".", "commits", "nft\0"])
def test_a_table_that_no_run_writes_refuses_the_collection(
    table: str, way: str, run: Path, outside: Path
) -> None:
    """Files of an uncommitted part are removed in no folder that a manifest invents."""
    table = table.format(outside=outside)

    def change(manifest: dict[str, Any]) -> None:
        manifest["views"].append(table)
        manifest["schemas"][table] = manifest["schemas"]["ft"]

    rewrite(run / "manifest.json", change)
    with untouched(outside), pytest.raises((DecodeError, InvalidRequestError)):
        WAYS[way](run)


# Links, pipes, folders --------------------------------------------------------------------


def link_to_copy(path: Path, outside: Path) -> None:
    """Replace a file or folder by a symbolic link to a copy of it."""
    copy = outside / path.name
    if path.is_dir():
        shutil.copytree(path, copy)
        shutil.rmtree(path)
        (copy / "part-000000000009.parquet").write_text("mine too")
    elif path.exists():
        shutil.copy(path, copy)
        path.unlink()
    else:
        copy.write_text("mine")
    path.symlink_to(copy)


def pipe(path: Path, _outside: Path) -> None:
    """Replace a file by a pipe, which blocks whoever opens it."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def listener(path: Path, _outside: Path) -> None:
    """Replace a file by a socket."""
    path.unlink(missing_ok=True)
    before = Path.cwd()
    os.chdir(path.parent)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as stream:
            stream.bind(path.name)
    finally:
        os.chdir(before)


def device(path: Path, _outside: Path) -> None:
    """Replace a file by a link to a device that has no end."""
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def folder(path: Path, _outside: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


REPLACEMENTS = [link_to_copy, pipe, listener, device, folder]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
@pytest.mark.parametrize("replace", REPLACEMENTS)
@pytest.mark.parametrize(
    ("name", "ways"),
    [
        ("manifest.json", ["pandas", "retry", "dry run"]),
        ("finished.json", ["pandas"]),
        (COMMIT, ["pandas", "retry", "dry run"]),
        (PART, [*READERS, "retry"]),
        (".lock", ["retry", "resume"]),
        (".run", ["retry", "resume"]),
    ],
)
def test_only_regular_files_are_opened(
    name: str, ways: list[str], replace: Callable[[Path, Path], None], run: Path, outside: Path
) -> None:
    """A link, pipe, socket, device or folder in place of a file is refused and not opened."""
    replace(run / name, outside)
    for way in ways:
        with untouched(outside), pytest.raises(FileError) as caught:
            WAYS[way](run)
        assert str(run / name) in str(caught.value)
        assert ("symbolic link" in str(caught.value)) == (run / name).is_symlink()


@pytest.mark.parametrize("way", ["pandas", "retry", "resume", "check"])
@pytest.mark.parametrize("name", ["commits", "ft", "errors"])
def test_no_folder_of_a_collection_is_a_link(name: str, way: str, run: Path, outside: Path) -> None:
    """Behind a linked folder nothing is read, written or removed."""
    link_to_copy(run / name, outside)
    if (name, way) == ("errors", "pandas"):  # which reads another table
        return
    with untouched(outside), pytest.raises(FileError, match="symbolic link"):
        WAYS[way](run)


def test_a_new_collection_writes_into_no_linked_folder(tmp_path: Path, outside: Path) -> None:
    """Parts are not written through a link that is there before the run."""
    (tmp_path / "new").mkdir()
    write_collection(tmp_path / "new", {}, views=VIEWS, finished=False)
    (tmp_path / "new/ft").symlink_to(outside)
    with untouched(outside), pytest.raises(FileError, match="symbolic link"):
        write_part(tmp_path / "new", 0, accounts(), VIEWS)


def test_the_folder_itself_may_be_a_link(run: Path, tmp_path: Path) -> None:
    """The user names the folder, through a link if they wish."""
    (tmp_path / "link").symlink_to(run)
    assert len(lk.open_collection(tmp_path / "link").pandas("ft")) == 3
    collect(tmp_path / "link", retry_failed=True)
    assert lk.open_collection(run).counts == {"ok": 3}
    (tmp_path / "empty").mkdir()
    (tmp_path / "new").symlink_to(tmp_path / "empty")
    collect(tmp_path / "new")
    assert lk.open_collection(tmp_path / "empty").counts == {"ok": 3}


def test_files_of_other_names_stay(run: Path) -> None:
    """Of the files that no commit names, only those named as a run names its own are removed."""
    mine = {".mine.tmp", "mine.parquet", ".mine.0123.tmp"}
    for folder in (".", "ft", "commits"):
        for name in mine:
            (run / folder / name).write_text("mine")
        (run / folder / f".mine.{uuid.uuid4().hex}.tmp").write_text("of a killed run")
    (run / "ft/part-000000000009.parquet").write_text("of a killed run")
    with pytest.warns(UserWarning, match="1 account could not be read"):
        collect(run)
    assert {path.name for path in (run / "ft").iterdir()} == {*mine, Path(PART).name}
    assert {path.name for path in (run / "commits").iterdir()} == {*mine, Path(COMMIT).name}
    assert mine < {path.name for path in run.iterdir()}


@pytest.mark.parametrize("out", ["a\0b", "\ud800", "nosuch://bucket/run", "file://", b"run"])
def test_an_address_that_is_none_is_refused(out: Any) -> None:
    """A path with NUL, one that is not text, and an unknown protocol are invalid arguments."""
    with pytest.raises(InvalidRequestError) as caught:
        lk.open_collection(out)
    assert caught.value.field == "out"


# Digests ----------------------------------------------------------------------------------


def page_bit(path: Path) -> int:
    """Return a bit of the page with the balances, behind its header."""
    column = pq.ParquetFile(path).metadata.row_group(0).column(2)
    start = column.dictionary_page_offset or column.data_page_offset
    return int(8 * (start + column.total_compressed_size) - 1)


def flip(path: Path, bit: int) -> None:
    body = bytearray(path.read_bytes())
    body[bit // 8] ^= 1 << bit % 8
    path.write_bytes(body)


@pytest.mark.parametrize("way", [*READERS, "retry"])
def test_a_short_or_missing_file_is_refused_by_every_reader(way: str, run: Path) -> None:
    """It is named with what to do, and no row is returned; Dask refuses it when it opens."""
    body = (run / PART).read_bytes()
    (run / PART).write_bytes(body[:-1])
    for problem in (f"has {len(body) - 1:,} of {len(body):,} bytes", "is missing"):
        with pytest.raises(DecodeError, match=rf"{PART}, a file of {COMMIT}, {problem}") as caught:
            lk.open_collection(run).dask("ft") if way == "dask" else WAYS[way](run)
        assert COMMIT in caught.value.remedy
        (run / PART).unlink(missing_ok=True)


def test_what_is_damaged_later_is_found_by_check_files(run: Path) -> None:
    """A file is compared once; `check_files` compares all again and names each damaged one."""
    collection = lk.open_collection(run)
    collection.check_files()
    assert len(collection.pandas("ft")) == 3
    for name in (PART, PART.replace("ft/", "subjects/")):
        flip(run / name, 8 * 40)
    with pytest.raises(DecodeError) as caught:
        collection.check_files()
    assert caught.value.sentence.startswith("2 damaged files: ")
    assert "ft/part-000000000000.parquet" in caught.value.sentence
    assert "subjects/part-000000000000.parquet" in caught.value.sentence
    assert caught.value.remedy.startswith(f"Remove {COMMIT}: ")


def test_a_whole_file_of_another_size_is_refused_later_too(run: Path) -> None:
    """A file with more rows that takes the place of one that was compared is not read."""
    collection = lk.open_collection(run)
    assert len(collection.pandas("ft")) == 3
    table = pq.read_table(run / PART)
    pq.write_table(pa.concat_tables([table, table]), run / PART)
    for read in (collection.pandas, collection.arrow, collection.dataset):
        with pytest.raises(DecodeError, match="ft/part-000000000000"):
            read("ft")


def test_a_file_is_compared_once_in_a_session(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of another collection object is compared again only if its size or times changed."""
    digests: list[Any] = []

    def count(stream: Any, name: str) -> Any:
        digests.append(stream)
        return file_digest(stream, name)

    file_digest = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", count)
    for path in run.rglob("*.parquet"):
        os.utime(path, ns=(0, 10**18))  # a file of the last seconds is compared each time
    for way in ("duckdb", "pandas", "duckdb"):
        OPENERS[way](run)
    assert len(digests) == len([*run.rglob("*.parquet")])
    lk.open_collection(run).check_files()
    assert len(digests) == 2 * len([*run.rglob("*.parquet")])
    flip(run / PART, 8 * 40)
    os.utime(run / PART, ns=(0, 10**18))  # the time of writing is as before
    for way in ("duckdb", "pandas", "dataset"):
        with pytest.raises(DecodeError, match="is damaged: its SHA-256"):
            OPENERS[way](run)


def test_pages_have_checksums(run: Path) -> None:
    """Damage after the comparison is found where pyarrow reads the page, also in a dataset."""
    collection = lk.open_collection(run)
    dataset = collection.dataset("ft")
    flip(run / PART, page_bit(run / PART))
    with pytest.raises(OSError, match="CRC"):
        dataset.to_table()
    with pytest.raises(DecodeError, match="is damaged"):
        collection.pandas("ft")


def test_a_removed_commit_repairs_the_collection(run: Path) -> None:
    """The remedy of the error works: the part is requested again."""
    flip(run / PART, 8 * 40)
    (run / COMMIT).unlink()
    assert collect(run).counts == {"ok": 3}
    lk.open_collection(run).check_files()


def test_a_collection_without_digests_is_refused(run: Path) -> None:
    """A folder of an earlier version has no checksums: the error says what to do."""
    document = json.loads((run / "manifest.json").read_bytes())
    del document["checksum"]
    (run / "manifest.json").write_text(json.dumps(document))
    with pytest.raises(DecodeError, match="has no checksum") as caught:
        lk.open_collection(run)
    assert caught.value.remedy == "Restore it from a copy, or collect into a new folder."


def test_remote_files_are_compared_too() -> None:
    """A file at an fsspec address is compared with its commit like a local one."""
    url = f"memory://{uuid.uuid4().hex}/run"
    write_collection(url, accounts(), views=VIEWS)
    with fsspec.open(f"{url}/{PART}", "rb") as file:
        body = bytearray(file.read())
    body[40] ^= 1
    with fsspec.open(f"{url}/{PART}", "wb") as file:
        file.write(body)
    for way in READERS:
        with pytest.raises(DecodeError, match="is damaged: its SHA-256"):
            WAYS[way](url)  # type: ignore[arg-type]  # an address in place of a path


@pytest.mark.parametrize("method", ["open", "ls", "put_file", "rm_file"])
def test_errors_of_a_remote_library_are_ours(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a library of an object store raises becomes a FileError."""
    url = f"memory://{uuid.uuid4().hex}/run"
    write_collection(url, accounts(), views=VIEWS)
    system: Any = type(fsspec.filesystem("memory"))

    def refuse(*_: object, **__: object) -> None:
        raise LookupError("no credentials")

    monkeypatch.setattr(system, method, refuse)
    with pytest.raises(FileError, match=r"Could not .*: no credentials"):
        collect(url, retry_failed=True)  # type: ignore[arg-type]  # an address in place of a path


def test_a_remote_file_is_downloaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first read compares a file and uses its rows; later ones read the columns they need."""
    url = f"memory://{uuid.uuid4().hex}/run"
    write_collection(url, accounts(), views=VIEWS, part_size=2)
    opened: list[str] = []
    collection = lk.open_collection(url)
    system: Any = type(fsspec.filesystem("memory"))
    open_file = system.open

    def count(self: Any, path: str, *args: Any, **options: Any) -> Any:
        opened.extend([path] * path.endswith(".parquet"))
        return open_file(self, path, *args, **options)

    monkeypatch.setattr(system, "open", count)
    first = collection.pandas("ft", account_ids="b.near", columns=["account_id", "balance"])
    assert len(opened) == collection.summary().set_index("table")["n_files"]["ft"]
    again = collection.pandas("ft", account_ids="b.near", columns=["account_id", "balance"])
    pd.testing.assert_frame_equal(again, first)
    assert first["balance"].tolist() == [7, 10**38]
    assert list(first) == ["account_id", "balance"]


# Impossible documents ---------------------------------------------------------------------


def commit_changes() -> dict[str, Callable[[dict[str, Any]], object]]:
    return {
        "other start": lambda c: c.update(start=1),
        "huge start": lambda c: c.update(start=10**30),
        "stop before start": lambda c: c.update(stop=0),
        "stop too far": lambda c: c.update(stop=10**9),
        "sum above the part": lambda c: c["counts"].update(ok=3),
        "unknown outcome": lambda c: c.update(counts={"ok": 2, "lost": 1}),
        "failed as ok": lambda c: c.update(counts={"ok": 3}),
        "no rows": lambda c: c["files"]["ft"].update(rows=0),
        "more rows": lambda c: c["files"]["ft"].update(rows=4),
        "rows of subjects": lambda c: c["files"]["subjects"].update(rows=3),
        "other size": lambda c: c["files"]["ft"].update(size=10**15),
        "other digest": lambda c: c["files"]["ft"].update(sha256="0" * 64),
        "unknown table": lambda c: c["files"].update(tokens=c["files"].pop("ft")),
        "no errors": lambda c: c["files"].pop("errors"),
        "other generation": lambda c: c.update(generation=1),
        "no digest": lambda c: c["files"]["ft"].pop("sha256"),
    }


@pytest.mark.parametrize("change", commit_changes())
def test_an_impossible_commit_is_refused(change: str, run: Path) -> None:
    """Counts, positions, rows and sizes are compared with each other and with the files."""
    rewrite(run / COMMIT, commit_changes()[change])
    with pytest.raises(DecodeError) as caught:
        lk.open_collection(run).pandas("ft")
    assert caught.value.remedy == REMEDY


@pytest.mark.parametrize("generation", [2**63 - 2, 2**63 - 1], ids=["last but one", "last"])
def test_a_retry_writes_a_readable_commit(generation: int, run: Path) -> None:
    """A retry after the highest generation that can be read loses no rows."""

    def change(commit: dict[str, Any]) -> None:
        commit["generation"] = generation
        for table, file in commit["files"].items():
            name = f"{table}/part-000000000000-{generation}.parquet"
            (run / file["name"]).rename(run / name)
            file["name"] = name

    rewrite(run / COMMIT, change)
    collect(run, retry_failed=True)
    assert lk.open_collection(run).counts == {"ok": 3}
    assert lk.open_collection(run).pandas("subjects")["subject"].tolist() == list(accounts())


def test_commits_that_overlap_are_refused(run: Path) -> None:
    """No subject is in two parts, and no part has two commits."""
    write_part(run, 2, {"c.near": None}, VIEWS)
    with pytest.raises(DecodeError, match="it starts at 2, before the end of the previous"):
        lk.open_collection(run)
    shutil.move(run / "commits/000000000002.json", run / "commits/000000000007.json")
    with pytest.raises(DecodeError, match="it starts at 2"):
        lk.open_collection(run)


@pytest.mark.parametrize(
    "change",
    [
        {"schemas": {}},
        {"schemas": {"ft": [], "subjects": [], "errors": []}},
        {"schemas": []},
        {"views": []},
        {"views": ["ft", "ft"]},
        {"views": ["blocks"]},
        {"views": [7]},
        {"kind": "people"},
        {"format": -1},
        {"format": 10**30},
        {"format": 3},
        {"liquid_tokens": "x"},
        {"network": None},
    ],
)
def test_an_impossible_manifest_is_refused(change: dict[str, Any], run: Path) -> None:
    """Opening an impossible manifest raises a LedgerError with a remedy or what is expected."""
    rewrite(run / "manifest.json", lambda manifest: manifest.update(change))
    with pytest.raises(
        (DecodeError, InvalidRequestError), match=r"manifest\.json|format 2 or older"
    ):
        lk.open_collection(run)


def test_a_manifest_of_a_later_format_is_told_from_a_damaged_one(run: Path) -> None:
    """Its members may be others: the remedy is a newer ledgerkit, and not a copy."""
    later = {"format": 3, "views": {"ft": {}}}
    rewrite(run / "manifest.json", lambda manifest: manifest.update(later))
    with pytest.raises(InvalidRequestError, match=r"has format 3.*pip install -U ledgerkit"):
        lk.open_collection(run)


DEEP = 200_000
BODIES = {
    "empty": b"",
    "not JSON": b"\x00\xff",
    "an array": b"[]",
    "deep": b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep member": b'{"schemas":' + b'{"a":' * DEEP + b"}" * DEEP + b"}",
    "deep counts": b'{"start":0,"counts":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "not UTF-8": b'{"kind":"\xff"}',
    "surrogate": b'{"kind":"\\ud800"}',
    "many digits": b'{"start":' + b"9" * 100_000 + b',"format":' + b"9" * 5000 + b"}",
    "long": b'{"kind":"' + b"k" * 2**23 + b'"}',
}


@pytest.mark.parametrize("has_checksum", [False, True])
@pytest.mark.parametrize("body", BODIES)
def test_hostile_bytes_in_documents_raise_only_ours(
    body: str, run: Path, *, has_checksum: bool
) -> None:
    """Malformed, deep and endless documents are refused by name, with their checksum or not."""
    content = BODIES[body]
    if has_checksum:
        content = content[:-1]
        content += b',"checksum":"' + hashlib.sha256(content).hexdigest().encode() + b'"}'
    for name in ("manifest.json", COMMIT, "finished.json"):
        before = (run / name).read_bytes()
        (run / name).write_bytes(content)
        with pytest.raises(DecodeError) as caught:
            lk.open_collection(run)
        assert name in caught.value.sentence
        assert len(str(caught.value)) < 1000
        (run / name).write_bytes(before)


# Hostile Parquet --------------------------------------------------------------------------


def replace_part(run: Path, table: str, body: bytes, rows: int) -> None:
    """Replace a file of the part, with the right digest, size and number of rows."""
    name = f"{table}/part-000000000000.parquet"
    (run / name).write_bytes(body)
    digest = hashlib.sha256(body).hexdigest()
    change = {"sha256": digest, "size": len(body), "rows": rows}
    rewrite(run / COMMIT, lambda commit: commit["files"][table].update(change))


def parquet(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def bad_text() -> Any:
    """Return text that is not UTF-8."""
    offsets = pa.py_buffer(bytes([0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]))
    return pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"\xff\xfe\xfd"))


def hostile_files(run: Path) -> dict[str, bytes]:
    """Return files whose digests are right and whose content is not."""
    good = (run / PART).read_bytes()
    table = pq.read_table(run / PART)
    schema = arrow_tables.schema("ft")
    negative = pa.array([-1, -2, -3], pa.decimal128(38))
    both = table.set_column(3, schema.field(3), pa.array(["1", "2", "3"]))
    digits = table.set_column(3, schema.field(3), pa.array(["x", "y", "z"]))
    return {
        "empty": b"",
        "no Parquet": b"PAR1" * 40,
        "cut": good[:-30],
        "footer length": good[:-8] + b"\xff\xff\xff\x7fPAR1",
        "zeros in pages": good[:4] + bytes(100) + good[104:],
        "zeros in footer": good[:-200] + bytes(192) + good[-8:],
        "encrypted": good[:-4] + b"PARE",
        "other columns": parquet(pa.table({"x": [1, 2, 3]})),
        "no columns": parquet(pa.table({})),
        "other types": parquet(table.cast(pa.schema([(f.name, pa.string()) for f in schema]))),
        "fewer rows": parquet(table.slice(1)),
        "negative": parquet(table.set_column(2, schema.field(2), negative)),
        "both": parquet(both),
        "digits": parquet(digits),
        "not UTF-8": parquet(table.set_column(0, schema.field(0), bad_text())),
    }


@pytest.mark.parametrize("way", ["pandas", "arrow", "duckdb", "dask", "diff", "check", "retry"])
def test_hostile_parquet_raises_only_ours(way: str, run: Path) -> None:
    """Files with the right digest and wrong content raise a LedgerError, or are read as is."""
    for body in hostile_files(run).values():
        replace_part(run, "ft", body, 3)
        with suppress(LedgerError):
            OPENERS[way](run)


@pytest.mark.parametrize("kind", ["cut", "other columns", "fewer rows", "other types"])
def test_a_file_that_does_not_fit_its_commit_is_refused(kind: str, run: Path) -> None:
    """The rows and columns of a file are those of its commit and of its table."""
    replace_part(run, "ft", hostile_files(run)[kind], 3)
    for way in READERS:
        with pytest.raises(DecodeError, match=rf"{PART}, a file of {COMMIT}") as caught:
            WAYS[way](run)
        assert COMMIT in caught.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"bytes_base64":5}',
        '{"bytes_base64":"*"}',
        '{"bytes_base64":"a"}',
        "[" * 900 + "]" * 900,
        "[" * DEEP,
        "9" * 5000,
    ],
    ids=["empty", "cut", "number", "no base64", "short", "deep", "open", "digits"],
)
def test_hostile_json_in_a_column_raises_only_ours(text: str, tmp_path: Path) -> None:
    """A malformed column of JSON raises a LedgerError, in pandas and in Dask."""
    views = ["events"]
    collection = write_collection(tmp_path / "run", {}, views=views, kind="blocks")
    schema = arrow_tables.schema("events")
    row = {field.name: [text if field.name == "data" else None] for field in schema}
    kinds = {"position": [7], "subject": ["7"], "fetched_at": [0]}
    tables = {
        "events": pa.table(row, schema=schema),
        "subjects": pa.table(kinds, schema=arrow_tables.schema("subjects")),
    }
    write_tables(collection.path, {7: ("7", "ok")}, tables)
    for way in ("pandas", "dask"):
        opened = lk.open_collection(tmp_path / "run")
        with suppress(DecodeError):
            frame = getattr(opened, way)("events")
            frame.compute(scheduler="synchronous") if way == "dask" else None
    assert len(lk.open_collection(tmp_path / "run").arrow("events")) == 1


@pytest.mark.parametrize(
    "column", [{"position": [99]}, {"position": [None]}, {"subject": [None]}, {"kind": ["ok"]}]
)
def test_a_retry_requests_only_what_its_commit_counts(
    column: dict[str, list[Any]], run: Path
) -> None:
    """Rows of `errors` that are not those of the part are refused, and nothing is rewritten."""
    schema = arrow_tables.schema("errors")
    rows = pq.read_table(run / PART.replace("ft/", "errors/")).to_pydict()
    replace_part(run, "errors", parquet(pa.table({**rows, **column}, schema=schema)), 1)
    with untouched(run / "ft"), pytest.raises(DecodeError, match="rows of errors of commits"):
        collect(run, retry_failed=True)
