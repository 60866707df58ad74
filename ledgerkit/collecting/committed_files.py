"""The committed files of a collection: the files that its commits name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ledgerkit import validation
from ledgerkit.collecting import manifests
from ledgerkit.collecting.part_files import check_file, read_table
from ledgerkit.errors import DecodeError, FileError, InvalidRequestError
from ledgerkit.frames import arrow_tables
from ledgerkit.u128 import arrow, parquet
from ledgerkit.units import count_text

if TYPE_CHECKING:
    from ledgerkit.collecting.manifests import Commit, File
    from ledgerkit.collecting.storage import Folder

_WILDCARDS = "*?["
# The files that this process has compared, by path: their versions, and what they were compared
# with.
_compared: dict[str, Any] = {}


class CommittedFiles:
    """
    The manifest, commits and files of a collection, read once.

    A file is compared with its commit before it is first read, and a local one only once in a
    process while its size and times stay the same.
    """

    def __init__(self, folder: Folder) -> None:
        manifest = manifests.read_manifest(folder)
        if manifest is None:
            msg = f"{folder} is not a collection: it has no manifest.json"
            remedy = "Pass the folder or address that was passed to collect() as out."
            raise InvalidRequestError(msg, remedy=remedy, field="out", value=str(folder))
        self.folder = folder
        self.manifest = manifest
        self.tables = tuple(manifests.table_names(manifest))
        # This is read before the commits, because a running process adds commits meanwhile.
        finished = manifests.read_finished(folder)
        self.commits = manifests.read_commits(folder)
        self.n_subjects = manifests.count_subjects(self.commits)
        self.finished = finished is not None and finished.subjects == self.n_subjects
        self._checked: set[str] = set()  # names of files

    def counts(self) -> dict[str, int]:
        kinds = dict.fromkeys(kind for commit in self.commits for kind in commit.counts)
        return {kind: manifests.count(self.commits, [kind]) for kind in kinds}

    def of_table(self, table: str) -> Iterator[tuple[Commit, File]]:
        """Yield the files of a table with their commits, in the order of the subjects."""
        validation.one_of(table, "table", self.tables)
        for commit in self.commits:
            if table in commit.files:
                yield commit, commit.files[table]

    def names(self, table: str) -> list[str]:
        """
        Return the file names of a table, in the order of the subjects; check each file once.

        Raises `DecodeError` if a file is missing or damaged, and `InvalidRequestError` if the
        collection was rewritten since it was opened.
        """
        self.check_sizes(table)
        for commit, file in self.of_table(table):
            if file.name not in self._checked:
                self._check_once(commit, table)
                self._checked.add(file.name)
        return [file.name for _, file in self.of_table(table)]

    def check_sizes(self, table: str) -> None:
        """Raise as `names` does if the size of a file differs from its commit."""
        sizes = self.folder.sizes(table)
        for commit, file in self.of_table(table):
            if sizes.get(file.name) != file.size:
                self._check(commit, table)

    def _check_once(self, commit: Commit, table: str) -> None:
        """Check a file, unless this process has checked the same version of it."""
        file = commit.files[table]
        path, version = self.folder.filesystem_path(file.name), self.folder.version(file.name)
        key = version, file, self.manifest.schemas[table]
        if version is None or _compared.get(path) != key:
            self._check(commit, table)
            _compared[path] = key

    def _check(self, commit: Commit, table: str) -> None:
        """Compare a file with its commit; raise as `names` does."""
        try:
            check_file(self.folder, commit, table, self.schema(table))
        except DecodeError:
            if manifests.read_commit(self.folder, commit.start) == commit:
                raise
            msg = f"{self.folder} was rewritten since it was opened: {commit.path} has changed"
            remedy = "Open it again with open_collection()."
            raise InvalidRequestError(
                msg, remedy=remedy, field="out", value=str(self.folder)
            ) from None

    def check_all(self) -> None:
        """Check all files; raise `DecodeError` with the names of the damaged ones."""
        errors: dict[str, DecodeError] = {}
        commits: dict[str, None] = {}
        for table in self.tables:
            for commit, file in self.of_table(table):
                try:
                    self._check(commit, table)
                except DecodeError as error:
                    errors[file.name] = error
                    commits[commit.path] = None
        if errors:
            sentences = "; ".join(error.sentence for error in errors.values())
            remedy = f"Remove {', '.join(commits)}: the next collect() requests these parts again."
            count = count_text(len(errors), "damaged file")
            raise DecodeError(f"{count}: {sentences}", remedy=remedy, path=next(iter(errors)))

    def schema(self, table: str) -> Any:
        """Return the Arrow schema of a table, with the columns that the run declared."""
        validation.one_of(table, "table", self.tables)
        declared = {name for name, _ in self.manifest.schemas[table]}
        full = arrow_tables.schema(table)
        fields = [field for field in full if _column_name(field) in declared]
        return arrow.library().schema(fields, metadata=full.metadata)

    def text_columns(self, table: str) -> dict[str, str]:
        """Return the text columns of large amounts by their number columns."""
        names = {_column_name(field): field.name for field in self.schema(table)}
        return {name: text for name, text in names.items() if name != text}

    def dataset(self, table: str) -> Any:
        """Open the files of a table as a `pyarrow.dataset.Dataset`."""
        dataset, systems = arrow.library("pyarrow.dataset"), arrow.library("pyarrow.fs")
        filesystem = self.folder.filesystem
        return dataset.FileSystemDataset.from_paths(
            [self.folder.filesystem_path(name) for name in self.names(table)],
            schema=self.schema(table),
            format=parquet.checked_format(),
            filesystem=systems.LocalFileSystem()
            if filesystem is None
            else systems.PyFileSystem(systems.FSSpecHandler(filesystem)),
        )

    def read(self, table: str, names: Sequence[str] | None = None, where: Any = None) -> Any:
        """
        Read a table into a `pyarrow.Table`, in the order of the subjects.

        `names` selects columns, with the text columns of large amounts; `where` is a pyarrow
        expression that filters the rows. Raises `DecodeError` if a file is missing or damaged.
        """
        fields = self.schema(table)
        columns = [f.name for f in fields if names is None or _column_name(f) in names]
        with self.reading(table):
            is_remote = self.folder.filesystem is not None
            if not is_remote or self._checked.issuperset(f.name for _, f in self.of_table(table)):
                return self.dataset(table).to_table(columns=columns, filter=where)
            # The check downloads whole files: the rows are read from the same download.
            parts = [fields.empty_table().select(columns)]
            open_dataset = arrow.library("pyarrow.dataset").dataset
            for commit, file in self.of_table(table):
                rows = read_table(self.folder, commit, table, fields)
                self._checked.add(file.name)
                parts.append(open_dataset(rows).to_table(columns=columns, filter=where))
            return arrow.library().concat_tables(parts)

    def check_again(self, tables: Iterable[str]) -> None:
        """Check all files of some tables, including files that were checked before."""
        for table in tables:
            for commit, _ in self.of_table(table):
                self._check(commit, table)

    @contextmanager
    def reading(self, table: str) -> Iterator[None]:
        """Convert errors about malformed content; name the file that causes the error."""
        try:
            with parquet.reading(f"the table {table} of {self.folder}", manifests.NEW_FOLDER):
                yield
        except (DecodeError, FileError):
            self.check_again([table])
            raise


def _column_name(field: Any) -> str:
    """Return the column of a field; the text field of large amounts belongs to the amounts."""
    name: str = (field.metadata or {}).get(parquet.MARK, field.name.encode()).decode()
    return name


def attach(
    connection: Any,
    files: CommittedFiles,
    tables: Iterable[str],
    schema: str,
    *,
    refuse_large: bool = False,
) -> None:
    """
    Create a DuckDB view for each of some tables, in a schema of the connection.

    An amount of 39 digits is null, or with `refuse_large` an error for a query that reads it.
    """
    if files.folder.filesystem is not None:
        connection.register_filesystem(files.folder.filesystem)
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    for table in tables:
        query = _select_query(connection, files, table)
        for name, text in files.text_columns(table).items() if refuse_large else ():
            error = f"has 39 digits: read {text}, or only rows WHERE {text} IS NULL"
            error = f"error('{name} ' || {text} || ' {error}')"
            number = f"CASE WHEN {text} IS NULL THEN {name} ELSE {error} END AS {name}"
            query = f"SELECT * REPLACE ({number}) FROM ({query})"  # noqa: S608 - only names of our schemas
        connection.execute(f"CREATE VIEW {schema}.{table} AS {query}")


def _select_query(connection: Any, files: CommittedFiles, table: str) -> str:
    """Return the query for a table; without files it selects its columns and no rows."""
    fields = files.schema(table)
    paths = [_quoted_path(files.folder, name) for name in files.names(table)]
    if paths:
        columns = ", ".join(_select_column(field) for field in fields)
        return f"SELECT {columns} FROM read_parquet([{', '.join(paths)}])"  # noqa: S608 - only names of our schemas
    empty = connection.from_arrow(fields.empty_table())
    columns = ", ".join(
        _select_column(field, f"CAST(NULL AS {sql_type})")
        for field, sql_type in zip(fields, empty.types, strict=True)
    )
    return f"SELECT {columns} WHERE false"


def _select_column(field: Any, value: str | None = None) -> str:
    expression = value or f'"{field.name}"'
    if arrow.library().types.is_timestamp(field.type):
        # DuckDB needs pytz to return times with a zone.
        expression = f"make_timestamp_ns(epoch_ns({expression}))"
    return f'{expression} AS "{field.name}"'


def _quoted_path(folder: Folder, name: str) -> str:
    """Return the path of a file as an SQL string, with the wildcards of DuckDB escaped."""
    path = folder.filesystem_path(name)
    if folder.filesystem is not None:
        path = folder.filesystem.unstrip_protocol(path)
    escaped = "".join(f"[{char}]" if char in _WILDCARDS else char for char in path)
    return "'" + escaped.replace("'", "''") + "'"
