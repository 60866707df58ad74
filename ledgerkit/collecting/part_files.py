"""
The Parquet files of a part, which has consecutive subjects, each in all files or in none.

A file is compared with its commit before its rows are used.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import AbstractContextManager, ExitStack, suppress
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any

import msgspec

from ledgerkit.collecting import manifests
from ledgerkit.collecting.account_sources import Digest, Subject
from ledgerkit.collecting.manifests import Commit, File
from ledgerkit.errors import DecodeError, cut
from ledgerkit.files import file_errors
from ledgerkit.frames import arrow_tables
from ledgerkit.u128 import arrow, parquet

if TYPE_CHECKING:
    from ledgerkit.collecting.storage import Folder

_ROW_GROUP = 131_072
_MAX_BUFFERED_BYTES = 2**22
_DICTIONARY_COLUMNS = (  # columns with many repeated values
    "account_id",
    "actions",
    "asset",
    "block_hash",
    "cause",
    "contract_id",
    "event",
    "evidence",
    "kind",
    "method_name",
    "pool_id",
    "predecessor_id",
    "receiver_id",
    "signer_id",
    "standard",
    "status",
    "symbol",
    "tx_hash",
)


class _HashedFile:
    """A file open for writing, with the size and SHA-256 of the written bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.hash, self.size = file, hashlib.sha256(), 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        n_bytes = self._file.write(data)
        self.size += n_bytes
        return n_bytes

    def discard(self) -> None:
        self._file = BytesIO()


class _TableWriter:
    """A Parquet file being written."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        schema = arrow_tables.schema(name)
        repeated = [column for column in _DICTIONARY_COLUMNS if column in schema.names]
        self._file = _HashedFile(file)
        self._writer = parquet.open_writer(self._file, schema, use_dictionary=repeated)
        self._buffer: list[Any] = []
        self._n_buffered = self._n_bytes = 0
        self.rows = 0

    def add(self, table: Any) -> None:
        """Add rows; they are written one row group at a time."""
        self._buffer.append(table)
        self._n_buffered += len(table)
        self._n_bytes += table.nbytes
        self.rows += len(table)
        if self._n_buffered >= _ROW_GROUP or self._n_bytes >= _MAX_BUFFERED_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._buffer:
            self._writer.write_table(arrow.library().concat_tables(self._buffer), _ROW_GROUP)
        self._buffer, self._n_buffered, self._n_bytes = [], 0, 0

    def close(self, path: str) -> File:
        """Write the remaining rows and the footer; return the record of the file."""
        self._flush()
        self._writer.close()
        return File(path, self.rows, self._file.size, self._file.hash.hexdigest())

    def discard(self) -> None:
        self._file.discard()  # on a full disk the footer could not be written
        self._writer.close()


class Part:
    """
    A part being written, from the position of its first subject.

    If the part was stored before, its files and outcomes replace the stored ones.
    """

    def __init__(self, folder: Folder, start: int, stored: Commit | None = None) -> None:
        self.start = self.stop = start
        self._folder = folder
        self._stored = stored
        self._generation = stored.next_generation if stored else 0
        self._digest = Digest()
        self._began_at = manifests.utc_now()
        self._files = ExitStack()
        self._tables: dict[str, _TableWriter] = {}
        self.counts: dict[str, int] = {}

    def add_subject(self, subject: Subject, outcome: str) -> None:
        self.stop = subject.position + 1
        self._digest.add(subject)
        self.counts[outcome] = self.counts.get(outcome, 0) + 1

    def add(self, table: str, rows: Any) -> None:
        """Add the rows of a `pyarrow.Table`; a table without rows gets no file."""
        if not len(rows):
            return
        if table not in self._tables:
            file = self._files.enter_context(self._folder.create(self._path(table)))
            self._tables[table] = _TableWriter(table, file)
        with self._writing(table):
            self._tables[table].add(rows)

    def _path(self, table: str) -> str:
        return manifests.part_path(table, self.start, self._generation)

    def _writing(self, table: str) -> AbstractContextManager[None]:
        return file_errors(f"write {self._folder.uri(self._path(table))}")

    def commit(self) -> Commit:
        """Close the files, then write the commit: a kill in between leaves no incomplete part."""
        files = {}
        for name, table in self._tables.items():
            with self._writing(name):
                files[name] = table.close(self._path(name))
        self._files.close()
        commit = Commit(
            start=self.start,
            stop=self.stop,
            digest=self._digest.text(),
            files=files,
            counts=self.counts,
            began_at=self._began_at,
            ended_at=manifests.utc_now(),
            generation=self._generation,
        )
        if stored := self._stored:  # it has the same subjects
            same = {"stop": stored.stop, "digest": stored.digest, "began_at": stored.began_at}
            commit = msgspec.structs.replace(commit, **same)
        manifests.write_commit(self._folder, commit)
        return commit

    def close(self) -> None:
        """Remove the files of a part that was not committed."""
        for table in self._tables.values():
            table.discard()
        # `Folder.create` removes a file when an error passes through its block.
        with suppress(_PartDiscarded), self._files:
            raise _PartDiscarded


class _PartDiscarded(Exception):  # noqa: N818 - internal, never raised to a caller
    """The part was not committed: its files are removed."""


def read_table(folder: Folder, commit: Commit, name: str, schema: Any = None) -> Any:
    """
    Read a table of a part into a `pyarrow.Table` with a schema; None is the current schema.

    Raises `DecodeError` if the file is missing or damaged, `FileError` if it cannot be read.
    """
    schema = arrow_tables.schema(name) if schema is None else schema
    if name not in commit.files:
        return schema.empty_table()
    file = commit.files[name]
    body = folder.read(file.name, file.size)
    if body is None:
        raise _damaged(folder, commit, file, "is missing")
    if problem := _problem(BytesIO(body), file, schema):
        raise _damaged(folder, commit, file, problem)
    with parquet.reading(f"{folder.uri(file.name)}, a file of {commit.path},", commit.remedy):
        source = arrow.library().BufferReader(body)
        table = arrow.library("pyarrow.parquet").read_table(
            source, columns=schema.names, page_checksum_verification=True
        )
        columns = table.select(schema.names).columns
        return arrow.library().Table.from_arrays(columns, schema=schema)


def check_file(folder: Folder, commit: Commit, name: str, schema: Any) -> None:
    """
    Read the file of a table in a part, and compare it with its commit.

    Raises `DecodeError` if it is missing or damaged, `FileError` if it cannot be read.
    """
    file = commit.files[name]
    with folder.open(file.name) as stream:
        problem = "is missing" if stream is None else _problem(stream, file, schema)
    if problem:
        raise _damaged(folder, commit, file, problem)


def _problem(stream: Any, file: File, schema: Any) -> str:
    size = stream.seek(0, os.SEEK_END)
    if size != file.size:
        return f"has {size:,} of {file.size:,} bytes"
    stream.seek(0)
    if hashlib.file_digest(stream, "sha256").hexdigest() != file.sha256:
        return "is damaged: its SHA-256 is not the one in its commit"
    try:
        with parquet.reading(file.name):
            return _content_problem(stream, file, schema)
    except DecodeError as error:
        return f"is damaged: {error.sentence}"


def _content_problem(stream: Any, file: File, schema: Any) -> str:
    stream.seek(0)
    content = arrow.library("pyarrow.parquet").ParquetFile(stream)
    if content.metadata.num_rows != file.rows:
        return f"has {content.metadata.num_rows:,} rows, and its commit {file.rows:,}"
    types = {field.name: field.type for field in content.schema_arrow}
    others = [field.name for field in schema if types.get(field.name) != field.type]
    return f"has other columns than its table: {cut(', '.join(others))}" if others else ""


def _damaged(folder: Folder, commit: Commit, file: File, problem: str) -> DecodeError:
    sentence = f"{folder.uri(file.name)}, a file of {commit.path}, {problem}"
    return DecodeError(sentence, remedy=commit.remedy, path=file.name)
