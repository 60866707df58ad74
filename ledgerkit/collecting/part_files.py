"""One stretch of subjects on its way into Parquet files that appear together, or not at all."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import msgspec

from ledgerkit.collecting import arrow_tables, manifest
from ledgerkit.collecting.manifest import Commit, File
from ledgerkit.collecting.sources import Digest
from ledgerkit.u128 import arrow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from ledgerkit.collecting.sources import Subject
    from ledgerkit.collecting.storage import Folder

_ROW_GROUP = 131_072
_HELD = 2**25  # bytes of a table that wait at most
_REPEATED = (  # worth a dictionary
    "account_id",
    "actions",
    "block_hash",
    "contract_id",
    "event",
    "kind",
    "method_name",
    "pool_id",
    "predecessor_id",
    "receiver_id",
    "signer_id",
    "standard",
    "status",
    "tx_hash",
)


class _Table:
    """
    One Parquet file being written.

    Parameters
    ----------
    name
        The table.
    file
        Open for writing.
    """

    def __init__(self, name: str, file: Any) -> None:
        self._schema = arrow_tables.schema(manifest.frame_name(name))
        repeated = [column for column in _REPEATED if column in self._schema.names]
        self._file = file
        self._writer = arrow.library("pyarrow.parquet").ParquetWriter(
            file, self._schema, compression="zstd", use_dictionary=repeated
        )
        self._held: list[Any] = []
        self._waiting = self._bytes = 0
        self.rows = 0

    def add(self, table: Any) -> None:
        """Add rows; they are written a row group at a time."""
        self._held.append(table)
        self._waiting += len(table)
        self._bytes += table.nbytes
        self.rows += len(table)
        if self._waiting >= _ROW_GROUP or self._bytes >= _HELD:
            self._flush()

    def _flush(self) -> None:
        """Write what waits."""
        if self._held:
            self._writer.write_table(arrow.library().concat_tables(self._held), _ROW_GROUP)
        self._held, self._waiting, self._bytes = [], 0, 0

    def close(self) -> int:
        """Write the rest and the footer; gives the file's size."""
        self._flush()
        self._writer.close()
        return int(self._file.tell())

    def drop(self) -> None:
        """Let go of a file that vanishes; a full disk refuses even its footer."""
        with suppress(OSError):
            self._writer.close()
        self._writer.is_open = False  # or its end would try once more


class Part:
    """
    A stretch being written.

    Parameters
    ----------
    folder
        Where to.
    start
        The position of its first subject.
    generation
        How often this stretch was written before.
    """

    def __init__(self, folder: Folder, start: int, generation: int = 0) -> None:
        self.start = self.stop = start
        self._folder = folder
        self._generation = generation
        self._digest = Digest()
        self._began = now()
        self._files = ExitStack()
        self._tables: dict[str, _Table] = {}
        self.counts: dict[str, int] = {}
        self.whole = True

    def subject(self, subject: Subject, outcome: str) -> None:
        """Take in the next subject and how it went."""
        self.stop = subject.position + 1
        self._digest.add(subject)
        self.counts[outcome] = self.counts.get(outcome, 0) + 1

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Mark the part as torn while subjects and their rows are added, for good if that fails."""
        self.whole = False
        yield
        self.whole = True

    def add(self, table: str, rows: Any) -> None:
        """Add the rows of a `pyarrow.Table`; a table without any has no file."""
        if not len(rows):
            return
        if table not in self._tables:
            file = self._files.enter_context(self._folder.create(self._path(table)))
            self._tables[table] = _Table(table, file)
        self._tables[table].add(rows)

    def _path(self, table: str) -> str:
        """Name the file of a table."""
        again = f"-{self._generation}" if self._generation else ""
        return f"{table}/part-{self.start:012d}{again}.parquet"

    def commit(self) -> Commit:
        """Publish the files, then the commit that makes them count."""
        return self._commit(
            Commit(
                start=self.start,
                stop=self.stop,
                digest=self._digest.text(),
                files={},
                counts=self.counts,
                began_at=self._began,
                ended_at=now(),
            )
        )

    def replace(self, stored: Commit, counts: dict[str, int]) -> Commit:
        """Publish the files, then a commit in the place of one of the same stretch."""
        again = {"counts": counts, "generation": self._generation, "ended_at": now()}
        return self._commit(msgspec.structs.replace(stored, **again))

    def _commit(self, described: Commit) -> Commit:
        """Publish the files, then the commit that names them."""
        sizes = {name: table.close() for name, table in self._tables.items()}
        self._files.close()
        files = {
            name: File(self._path(name), table.rows, sizes[name])
            for name, table in self._tables.items()
        }
        made = msgspec.structs.replace(described, files=files)
        manifest.commit(self._folder, made)
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What is still open was not committed: as an error passes, its files vanish.
        for table in self._tables.values():
            table.drop()
        self._files.__exit__(kind or _Dropped, error or _Dropped(), trace)


class _Dropped(Exception):  # noqa: N818 - nobody ever sees it
    """Lets the files of a part vanish that nobody wants."""


def now() -> str:
    """Tell the time as a commit notes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
