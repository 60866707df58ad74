"""Parts: consecutive subjects in Parquet files that appear together, or not at all."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any, Self

import msgspec

from ledgerkit.collecting import manifests
from ledgerkit.collecting.manifests import Commit, File
from ledgerkit.collecting.sources import Digest
from ledgerkit.frames import arrow_tables
from ledgerkit.u128 import arrow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from ledgerkit.collecting.sources import Subject
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
    """A file open for writing, and the SHA-256 of what was written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._hash = file, hashlib.sha256()
        self.size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: bytes) -> int:
        """Write at the end."""
        self._hash.update(data)
        n_bytes = self._file.write(data)
        self.size += n_bytes
        return n_bytes

    def discard(self) -> None:
        """Write no more to the file; the rest is lost."""
        self._file = BytesIO()

    def sha256(self) -> str:
        """Return the digest of all bytes."""
        return self._hash.hexdigest()


class _TableWriter:
    """A Parquet file being written."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self._schema = arrow_tables.schema(manifests.schema_name(name))
        repeated = [column for column in _DICTIONARY_COLUMNS if column in self._schema.names]
        self._file = _HashedFile(file)
        self._writer = arrow.library("pyarrow.parquet").ParquetWriter(
            self._file,
            self._schema,
            compression="zstd",
            use_dictionary=repeated,
            write_page_checksum=True,
        )
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
        """Write the buffered rows."""
        if self._buffer:
            self._writer.write_table(arrow.library().concat_tables(self._buffer), _ROW_GROUP)
        self._buffer, self._n_buffered, self._n_bytes = [], 0, 0

    def close(self, path: str) -> File:
        """Write the remaining rows and the footer; return the record of the file."""
        self._flush()
        self._writer.close()
        return File(path, self.rows, self._file.size, self._file.sha256())

    def discard(self) -> None:
        """Close the writer of a file that will be removed."""
        self._file.discard()  # on a full disk the footer could not be written
        self._writer.close()


class Part:
    """
    A part being written.

    Parameters
    ----------
    folder
        The folder of the collection.
    start
        Position of its first subject.
    generation
        Number of times the part was written before.
    """

    def __init__(self, folder: Folder, start: int, generation: int = 0) -> None:
        self.start = self.stop = start
        self._folder = folder
        self._generation = generation
        self._digest = Digest()
        self._began_at = utc_now()
        self._files = ExitStack()
        self._tables: dict[str, _TableWriter] = {}
        self.counts: dict[str, int] = {}
        self.is_consistent = True

    def add_subject(self, subject: Subject, outcome: str) -> None:
        """Add the next subject and its outcome."""
        self.stop = subject.position + 1
        self._digest.add(subject)
        self.counts[outcome] = self.counts.get(outcome, 0) + 1

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Mark the part as inconsistent until the block succeeds."""
        self.is_consistent = False
        yield
        self.is_consistent = True

    def add(self, table: str, rows: Any) -> None:
        """Add the rows of a `pyarrow.Table`; a table without rows gets no file."""
        if not len(rows):
            return
        if table not in self._tables:
            file = self._files.enter_context(self._folder.create(self._path(table)))
            self._tables[table] = _TableWriter(table, file)
        self._tables[table].add(rows)

    def _path(self, table: str) -> str:
        """Return the path of the file of a table."""
        return manifests.part_path(table, self.start, self._generation)

    def commit(self) -> Commit:
        """Close the files and write their commit."""
        return self._commit(
            Commit(
                start=self.start,
                stop=self.stop,
                digest=self._digest.text(),
                files={},
                counts=self.counts,
                began_at=self._began_at,
                ended_at=utc_now(),
            )
        )

    def replace(self, stored: Commit, counts: dict[str, int]) -> Commit:
        """Close the files and write a commit that replaces the stored one of the same part."""
        changes = {"counts": counts, "generation": self._generation, "ended_at": utc_now()}
        return self._commit(msgspec.structs.replace(stored, **changes))

    def _commit(self, commit: Commit) -> Commit:
        """Close the files, then write the commit with their names: the order matters on a kill."""
        files = {name: table.close(self._path(name)) for name, table in self._tables.items()}
        self._files.close()
        commit = msgspec.structs.replace(commit, files=files)
        manifests.write_commit(self._folder, commit)
        return commit

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Files that are still open were not committed. `Folder.create` removes a file when an
        # error passes through its block, so an error is passed also when there was none.
        for table in self._tables.values():
            table.discard()
        self._files.__exit__(kind or _PartDiscarded, error or _PartDiscarded(), trace)


class _PartDiscarded(Exception):  # noqa: N818 - internal, never raised to a caller
    """The part was not committed: its files are removed."""


def utc_now() -> str:
    """Return the current time as commits record it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
