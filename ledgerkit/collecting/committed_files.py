"""What a collection's folder holds at one moment: the files that commits name, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit import validation
from ledgerkit.collecting import arrow_tables, manifest, resume
from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.u128 import arrow, parquet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ledgerkit.collecting.manifest import Commit, File
    from ledgerkit.collecting.storage import Folder

_GLOBS = "*?["


class Stored:
    """
    The commits of a folder, listed once.

    Parameters
    ----------
    folder
        The folder.
    """

    def __init__(self, folder: Folder) -> None:
        found = manifest.read(folder)
        if found is None:
            msg = f"{folder} holds no collection: there is no manifest.json"
            remedy = "Give the folder, or the address, that collect() was given as out."
            raise InvalidRequestError(msg, remedy=remedy, field="out", value=str(folder))
        self.folder = folder
        self.manifest = found
        self.tables = tuple(manifest.tables(found))
        finished = manifest.finished(folder)  # before the commits: there may be more, never fewer
        self.commits = manifest.commits(folder)
        self.n_subjects = sum(commit.stop - commit.start for commit in self.commits)
        self.finished = finished is not None and finished.subjects == self.n_subjects

    def counts(self) -> dict[str, int]:
        """Count subjects by how it went."""
        told: dict[str, int] = {}
        for commit in self.commits:
            for kind, count in commit.counts.items():
                told[kind] = told.get(kind, 0) + count
        return told

    def named(self, table: str) -> Iterator[tuple[Commit, File]]:
        """Give the files of a table, in the order of their subjects."""
        validation.one_of(table, "table", self.tables)
        for commit in self.commits:
            if table in commit.files:
                yield commit, commit.files[table]

    def files(self, table: str) -> list[str]:
        """
        Name the files of a table.

        Parameters
        ----------
        table
            The table.

        Returns
        -------
        names
            In the order of their subjects.

        Raises
        ------
        DecodeError
            If one is missing, or has another size than its commit says.
        InvalidRequestError
            If the collection was written anew since this was opened.
        """
        sizes = self.folder.sizes(table)
        names = []
        for commit, file in self.named(table):
            if sizes.get(file.name) != file.size:
                raise self._lost(commit, file, sizes.get(file.name))
            names.append(file.name)
        return names

    def _lost(self, commit: Commit, file: File, size: int | None) -> Exception:
        """Say which file is not as its commit says."""
        if self.folder.read(commit.path) != msgspec.json.encode(commit):
            msg = f"{self.folder} was written to since it was opened: {commit.path} is another now"
            remedy = "Open it again: open_collection reads what is there now."
            return InvalidRequestError(msg, remedy=remedy, field="out", value=str(self.folder))
        problem = "is not there" if size is None else f"has {size:,} bytes of {file.size:,}"
        msg = f"{self.folder.uri(file.name)}, which {commit.path} names, {problem}"
        remedy = f"Remove {commit.path}: the next collect() asks for its stretch again."
        return DecodeError(msg, remedy=remedy, path=file.name)

    def schema(self, table: str) -> Any:
        """Give the Arrow schema of a table: of its columns those that the run declared."""
        validation.one_of(table, "table", self.tables)
        declared = {name for name, _ in self.manifest.schemas[table]}
        whole = arrow_tables.schema(manifest.frame_name(table))
        kept = [field for field in whole if _owner(field) in declared]
        return arrow.library().schema(kept, metadata=whole.metadata)

    def dataset(self, table: str) -> Any:
        """
        Open a table as a `pyarrow.dataset.Dataset`.

        Parameters
        ----------
        table
            The table.

        Returns
        -------
        dataset
            Of the files that were committed, in the order of their subjects.
        """
        dataset, systems = arrow.library("pyarrow.dataset"), arrow.library("pyarrow.fs")
        system = self.folder.system
        return dataset.FileSystemDataset.from_paths(
            [self.folder.within(name) for name in self.files(table)],
            schema=self.schema(table),
            format=dataset.ParquetFileFormat(),
            filesystem=systems.LocalFileSystem()
            if system is None
            else systems.PyFileSystem(systems.FSSpecHandler(system)),
        )

    def read(self, table: str, names: Sequence[str] | None = None, where: Any = None) -> Any:
        """
        Read a table.

        Parameters
        ----------
        table
            The table.
        names
            Some of its columns; None is all. The digits of large amounts come along.
        where
            A condition of pyarrow's.

        Returns
        -------
        rows
            A `pyarrow.Table`, in the order of the subjects.

        Raises
        ------
        DecodeError
            If a file is missing or torn.
        """
        wanted = [f.name for f in self.schema(table) if names is None or _owner(f) in names]
        dataset = self.dataset(table)
        try:
            return dataset.to_table(columns=wanted, filter=where)
        except (arrow.library().ArrowInvalid, OSError):
            self.verify(table)
            raise

    def verify(self, table: str) -> None:
        """
        Read each file of a table, for the sake of what is wrong with one.

        Parameters
        ----------
        table
            The table.

        Raises
        ------
        DecodeError
            If a file is missing or torn.
        """
        for commit, _ in self.named(table):
            resume.read_table(self.folder, commit, table)


def _owner(field: Any) -> str:
    """Name the column that a field of a file belongs to."""
    name: str = (field.metadata or {}).get(parquet.MARK, field.name.encode()).decode()
    return name


def attach(connection: Any, stored: Stored, schema: str) -> None:
    """
    Show DuckDB the tables of a collection as views.

    Parameters
    ----------
    connection
        An open connection.
    stored
        The collection.
    schema
        Where the views go; it is made if it is not there.
    """
    if stored.folder.system is not None:
        connection.register_filesystem(stored.folder.system)
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    for table in stored.tables:
        query = _selected(connection, stored, table)
        connection.execute(f"CREATE VIEW {schema}.{table} AS {query}")


def _selected(connection: Any, stored: Stored, table: str) -> str:
    """Write the query that reads a table's files; without any it has its columns all the same."""
    fields = stored.schema(table)
    addresses = [_address(stored.folder, name) for name in stored.files(table)]
    if addresses:
        told = ", ".join(_plain(field) for field in fields)
        files = ", ".join(addresses)
        return f"SELECT {told} FROM read_parquet([{files}])"  # noqa: S608 - names of our own schemas
    empty = connection.from_arrow(fields.empty_table())
    told = ", ".join(
        _plain(field, f"CAST(NULL AS {kind})")
        for field, kind in zip(fields, empty.types, strict=True)
    )
    return f"SELECT {told} WHERE false"


def _plain(field: Any, value: str | None = None) -> str:
    """Write one column; times without their zone, for which DuckDB asks for another library."""
    found = value or f'"{field.name}"'
    if arrow.library().types.is_timestamp(field.type):
        found = f"make_timestamp_ns(epoch_ns({found}))"
    return f'{found} AS "{field.name}"'


def _address(folder: Folder, name: str) -> str:
    """Write a file's address for DuckDB, which takes it for a pattern otherwise."""
    path = folder.within(name)
    if folder.system is not None:
        path = folder.system.unstrip_protocol(path)
    escaped = "".join(f"[{one}]" if one in _GLOBS else one for one in path)
    return "'" + escaped.replace("'", "''") + "'"
