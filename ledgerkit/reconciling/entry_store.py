"""The entries of a statement: in memory, and beyond a size in temporary Parquet files."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from itertools import islice, starmap
from mmap import ACCESS_READ, mmap
from typing import Any, get_args

from ledgerkit.errors import DecodeError, cut
from ledgerkit.files import file_errors
from ledgerkit.reconciling.model import CAUSES, Entry, Evidence
from ledgerkit.u128 import arrow, parquet

MAX_IN_MEMORY = 50_000  # entries, 30 MB
_BATCH = 8_192  # entries decoded at a time
_INTEGERS = ("block_height", "timestamp_ns", "usd_time_ns")
_MIN_COLUMNS = Entry._fields.index("headline")
_SOURCE = "a temporary file of a statement"
REMEDY = "Check that the file is complete, or save the statement again."


class EntryStore:
    """
    A list of entries in causal order, which can only grow.

    Whenever many entries are in memory they are moved to a temporary Parquet file. The file has no
    name, so it vanishes with the store or the process. Without pyarrow all entries stay in memory.

    Parameters
    ----------
    entries
        The first entries.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.last: Entry | None = None
        self._in_memory: list[Entry] = []
        self._files: list[mmap] = []  # mapped, so readers and forked processes share no position
        self._n_stored = 0
        self.extend(entries)

    def extend(self, entries: Iterable[Entry]) -> None:
        """Add entries; raise `FileError` if the temporary folder is full."""
        for entry in entries:
            self._in_memory.append(entry)
            self.last = entry
            if len(self._in_memory) >= MAX_IN_MEMORY and find_spec("pyarrow") is not None:
                self._spill()

    def __len__(self) -> int:
        return self._n_stored + len(self._in_memory)

    def __iter__(self) -> Iterator[Entry]:
        files, in_memory = tuple(self._files), tuple(self._in_memory)
        for file in files:
            yield from read_entries(arrow.library().BufferReader(file), _SOURCE)
        yield from in_memory

    def tables(self) -> Iterator[Any]:
        """Yield the entries as `pyarrow.Table`s, at most `MAX_IN_MEMORY` in each."""
        entries = iter(self)
        while part := list(islice(entries, MAX_IN_MEMORY)):
            yield _to_table(part)

    def _spill(self) -> None:
        with file_errors(f"write {tempfile.gettempdir()}"), tempfile.TemporaryFile() as file:
            with parquet.open_writer(file, schema()) as writer:
                writer.write_table(_to_table(self._in_memory))
            file.flush()
            self._files.append(mmap(file.fileno(), 0, access=ACCESS_READ))
        self._n_stored += len(self._in_memory)
        self._in_memory.clear()


# Parquet --------------------------------------------------------------------------------


@cache
def schema() -> Any:
    """Return the `pyarrow.Schema` of entries; a change is text, because it may have 39 digits."""
    pa = arrow.library()
    types = {**dict.fromkeys(_INTEGERS, pa.int64()), "usd_amount": pa.float64()}
    return pa.schema([(name, types.get(name, pa.string())) for name in Entry._fields])


def _to_table(entries: Iterable[Entry]) -> Any:
    pa = arrow.library()
    columns = dict(zip(Entry._fields, map(list, zip(*entries, strict=True)), strict=True))
    columns["change"] = [str(change) for change in columns["change"]]
    arrays = [pa.array(columns[field.name], field.type) for field in schema()]
    return pa.Table.from_arrays(arrays, schema=schema())


def read_entries(source: Any, name: object) -> Iterator[Entry]:
    """
    Yield the entries of a Parquet file, given as a path or an open file.

    Raises `DecodeError`, with the name, if the file is not one of a statement.
    """
    open_file = arrow.library("pyarrow.parquet").ParquetFile
    with (
        parquet.reading(name),
        open_file(source, page_checksum_verification=True) as file,
    ):
        n_columns = len(file.schema_arrow)  # files of earlier versions lack the last ones
        declared = arrow.library().schema(list(schema())[:n_columns])
        if n_columns < _MIN_COLUMNS or not file.schema_arrow.equals(declared):
            raise DecodeError(f"{name} has other columns than a statement", remedy=REMEDY)
        for batch in file.iter_batches(_BATCH):
            yield from _to_entries(batch)


def _to_entries(batch: Any) -> Iterator[Entry]:
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    for name, is_allowed in _ALLOWED.items():
        for value in set(columns.get(name, ())):
            if not is_allowed(value):
                msg = f"{name} has the value {cut(value)}"
                raise ValueError(msg)
    columns["change"] = list(map(int, columns["change"]))
    return starmap(Entry, zip(*columns.values(), strict=True))


_ALLOWED: dict[str, Callable[[Any], object]] = {
    "block_height": lambda height: height is not None and height >= 0,
    "asset": bool,
    "cause": CAUSES.__contains__,
    "change": lambda text: re.fullmatch(r"-?[0-9]{1,39}", text or ""),
    "evidence": get_args(Evidence).__contains__,
    "usd_amount": lambda usd: usd is None or math.isfinite(usd),
}
