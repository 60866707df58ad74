"""The store of a statement's entries, and the file of a statement."""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import DecodeError, FileError, InvalidRequestError, LedgerError
from ledgerkit.reconciling import entry_store, statement_files
from ledgerkit.reconciling.entry_store import EntryStore
from ledgerkit.reconciling.model import CAUSES, Block, Entry, Gap, Reward, StatementData, Token

if TYPE_CHECKING:
    from pathlib import Path

AMOUNTS = st.integers(0, 2**128 - 1)
HEIGHTS = st.integers(0, 2**40)
TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
ASSETS = st.sampled_from(["near", "nep141:a.near", "nep245:a.near:b:c", "stake:pool.near"])
ENTRIES = st.builds(
    Entry,
    block_height=HEIGHTS,
    timestamp_ns=st.none() | st.integers(0, 2**63 - 1),
    asset=ASSETS,
    cause=st.sampled_from(sorted(CAUSES)),
    change=AMOUNTS | AMOUNTS.map(lambda amount: -amount),
    tx_hash=TEXTS,
    receipt_id=TEXTS,
    counterparty_id=TEXTS,
    method_name=TEXTS,
    memo=TEXTS,
    evidence=st.sampled_from(["proved", "derived", "indexed"]),
    headline=TEXTS,
    usd_amount=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    usd_time_ns=st.none() | st.integers(0, 2**63 - 1),
)
GAPS = st.builds(
    Gap, ASSETS, HEIGHTS, HEIGHTS, st.none() | st.integers(-(2**130), 2**130), st.text(max_size=5)
)
REWARDS = st.builds(
    Reward,
    pool_id=st.just("pool.near"),
    epoch_id=TEXTS,
    start_height=HEIGHTS,
    stop_height=HEIGHTS,
    timestamp_ns=st.none() | st.integers(0, 2**63 - 1),
    total_before=AMOUNTS,
    deposits=AMOUNTS,
    withdrawals=AMOUNTS,
    total_after=AMOUNTS,
    apy=st.none() | st.floats(allow_nan=False, allow_infinity=False),
)
BALANCES = st.dictionaries(ASSETS, st.none() | AMOUNTS)
FACTS = st.builds(
    StatementData,
    account_id=st.just("alice.near"),
    network=st.just("mainnet"),
    start=st.builds(Block, st.just(0), st.just(0), TEXTS),
    stop=st.builds(Block, HEIGHTS, st.integers(0, 2**63 - 1), TEXTS),
    opening=BALANCES,
    closing=BALANCES,
    tokens=st.dictionaries(ASSETS, st.builds(Token, TEXTS, st.none() | st.integers(0, 255))),
    gaps=st.lists(GAPS, max_size=3),
    rewards=st.lists(REWARDS, max_size=3),
    unfinished=st.lists(st.just("8n1FhKEy8beosT9iYcLcWhesqQBiF63EfdZDzbjH6NCE"), max_size=2),
    notes=st.lists(st.text(max_size=5), max_size=2),
    n_valued=st.sampled_from([None, 0]),
)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(entry_store, "MAX_IN_MEMORY", 7)


def entry(number: int) -> Entry:
    """Return an entry with an amount of more than 64 bits."""
    return Entry(number, None, "near", "fee", -(2**100) - number)


@pytest.mark.usefixtures("small")
def test_what_is_not_in_memory_is_in_files_in_the_same_order():
    """Beyond a size entries are in files; iteration yields all, in order, also while it grows."""
    store = EntryStore(map(entry, range(10)))
    store.extend(map(entry, range(10, 30)))
    passes = iter(store)
    assert next(passes) == entry(0)
    store.extend([entry(30)])
    assert list(passes) == list(map(entry, range(1, 30)))
    assert list(store) == list(map(entry, range(31)))
    assert (len(store), store.last) == (31, entry(30))
    assert sum(len(table) for table in store.tables()) == 31


@pytest.mark.usefixtures("small")
def test_the_files_go_with_the_store(tmp_path, monkeypatch):
    """No name of a file stays behind, however the process ends."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    store = EntryStore(map(entry, range(20)))
    assert list(store) == list(map(entry, range(20)))
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("small")
def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    """A temporary folder that is missing is an error that names it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(FileError, match="missing"):
        EntryStore(map(entry, range(20)))


FORKING = """
import os
from ledgerkit.reconciling import entry_store
from ledgerkit.reconciling.model import Entry

entry_store.MAX_IN_MEMORY = 7
entries = [Entry(number, None, "near", "fee", -number) for number in range(20)]
store = entry_store.EntryStore(entries)
reader = iter(store)
assert next(reader) == entries[0]
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
    assert list(reader) == entries[1:]
else:
    assert list(store) == entries
    del store, reader
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_reads_and_drops_its_own():
    """A forked child that reads all, and drops the store, takes nothing from its parent."""
    done = subprocess.run(
        [sys.executable, "-c", FORKING], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.usefixtures("small")
def test_without_pyarrow_all_is_in_memory(monkeypatch):
    """Where pyarrow is missing, a statement is still whole."""
    monkeypatch.setattr(entry_store, "find_spec", lambda _name: None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    store = EntryStore(map(entry, range(20)))
    assert list(store) == list(map(entry, range(20)))


@given(st.lists(ENTRIES, max_size=20), FACTS)
def test_a_file_restores_a_statement(tmp_path_factory, entries, facts):
    """`read` returns what `write` was given, exactly."""
    path = tmp_path_factory.mktemp("saved") / "statement.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entry_store, "MAX_IN_MEMORY", 6)
        assert statement_files.write(path, facts, EntryStore(entries)) == path
        read_facts, read_entries = statement_files.read(path)
    assert read_facts == facts
    assert list(read_entries) == entries
    assert [item.name for item in path.parent.iterdir()] == [path.name]


@given(st.lists(ENTRIES, max_size=20), FACTS)
def test_a_file_of_an_earlier_version_is_read(tmp_path_factory, entries, facts):
    """Files were once written without values, and without headlines; all else in them is read."""
    path = statement_files.write(
        tmp_path_factory.mktemp("saved") / "statement.parquet", facts, EntryStore(entries)
    )
    for names in (["usd_amount", "usd_time_ns"], ["headline"]):
        pq.write_table(pq.read_table(path).drop_columns(names), path)
        entries = [each._replace(**dict.fromkeys(names)) for each in entries]
        read_facts, read_entries = statement_files.read(path)
        assert read_facts == facts
        assert list(read_entries) == entries


# Files that are damaged, or that somebody made --------------------------------------------


@pytest.fixture
def saved(tmp_path) -> Path:
    facts = StatementData("alice.near", "mainnet", Block(1, 0), Block(9, 0), {"near": 7})
    facts.tokens["near"] = Token("NEAR", 24)
    facts.gaps.append(Gap("near", 3, 4, -1, "a note"))
    path = tmp_path / "statement.parquet"
    return statement_files.write(path, facts, EntryStore(map(entry, range(1, 4))))


def change_document(path: Path, change: Any) -> None:
    """Change the document of a file, and its checksum accordingly."""
    table = pq.read_table(path)
    document = json.loads(table.schema.metadata[b"ledgerkit.statement"])
    change(document)
    body = json.dumps(document).encode()
    checksum = hashlib.sha256(body).hexdigest()
    metadata = {b"ledgerkit.statement": body, b"ledgerkit.checksum": checksum}
    pq.write_table(table.replace_schema_metadata(metadata), path)


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("account_id", "Not An Id", "Not An Id"),
        ("start", [12, 0, None], "starts after its stop"),
        ("stop", [2**80, 0, None], "height"),
        ("opening", {"near": -1}, "amount -1"),
        ("opening", {"near": 2**128}, "amount"),
        ("tokens", {"near": ["N", 10**9]}, "decimals 1000000000"),
        ("gaps", [["near", 1, 2, 10**500, ""]], "missing amount"),
        ("gaps", "none", "Expected `array`"),
        ("unfinished", [1], "Expected `str`"),
        ("n_valued", 4, "number of values 4"),
    ],
)
def test_impossible_facts_are_refused(saved, member, value, message):
    """Whoever computes the checksum too still can't pass values that no statement has."""
    change_document(saved, lambda document: document["facts"].update({member: value}))
    with pytest.raises(DecodeError, match=message):
        statement_files.read(saved)


def test_a_later_format_is_refused(saved):
    """The error names the format."""
    change_document(saved, lambda document: document.update(format=2))
    with pytest.raises(InvalidRequestError, match="format 1 or older, and it has format 2"):
        statement_files.read(saved)


def test_missing_entries_are_noticed(saved):
    """The document has the number of entries."""
    change_document(saved, lambda document: document.update(n_entries=4))
    with pytest.raises(DecodeError, match="has 3 entries, and its document 4"):
        statement_files.read(saved)


def test_a_changed_document_is_noticed(saved):
    """Its checksum must fit."""
    table = pq.read_table(saved)
    metadata = dict(table.schema.metadata)
    metadata[b"ledgerkit.statement"] = metadata[b"ledgerkit.statement"].replace(b":7", b":8")
    pq.write_table(table.replace_schema_metadata(metadata), saved)
    with pytest.raises(DecodeError, match="its checksum is wrong"):
        statement_files.read(saved)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("change", "1" * 40),
        ("change", "1.5"),
        ("change", ""),
        ("change", "\u0661"),
        ("cause", "theft"),
        ("cause", None),
        ("asset", ""),
        ("evidence", "hearsay"),
        ("block_height", -1),
        ("block_height", None),
        ("usd_amount", math.inf),
    ],
)
def test_impossible_entries_are_refused(saved, column, value):
    """Every value of an entry is one that a statement writes."""
    table = pq.read_table(saved)
    rows = table.to_pylist()
    rows[1][column] = value
    pq.write_table(type(table).from_pylist(rows, schema=table.schema), saved)
    with pytest.raises(DecodeError, match=column):
        statement_files.read(saved)


def test_other_files_are_refused(saved, tmp_path):
    """Parquet of another program, another table, no Parquet, cut Parquet, nothing: typed errors."""
    table = pq.read_table(saved)
    pq.write_table(table.replace_schema_metadata({}), tmp_path / "plain")
    pq.write_table(table.drop_columns("memo"), tmp_path / "narrow")
    (tmp_path / "text").write_text("a,b")
    whole = saved.read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    for name in ("plain", "narrow", "text", "cut"):
        with pytest.raises(DecodeError):
            statement_files.read(tmp_path / name)
    with pytest.raises(FileError, match="no such file"):
        statement_files.read(tmp_path / "absent")
    with pytest.raises(InvalidRequestError):
        statement_files.read(7)  # type: ignore[arg-type]  # what the test is about


def test_flipped_bits_are_noticed(saved):
    """A file with one changed byte is refused or the same, never another statement."""
    facts, entries = statement_files.read(saved)
    whole = bytearray(saved.read_bytes())
    n_refused = 0
    for at in range(0, len(whole), 7):
        damaged = whole.copy()
        damaged[at] ^= 0x10
        saved.write_bytes(damaged)
        try:
            read_facts, read_entries = statement_files.read(saved)
        except LedgerError:
            n_refused += 1
        else:
            assert (read_facts, list(read_entries)) == (facts, list(entries))
    assert n_refused > 100


def test_a_failed_write_changes_nothing(saved, monkeypatch):
    """If writing fails, the earlier file is unchanged and no other is left."""
    before = saved.read_bytes()
    facts, entries = statement_files.read(saved)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(FileError, match="No space left"):
        statement_files.write(saved, facts, entries)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]
