"""A collection, opened: its tables for pandas, Arrow, DuckDB, Polars and Dask, digit for digit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ledgerkit import cards, validation
from ledgerkit.collecting import arrow_tables as held
from ledgerkit.collecting import manifest, resume, storage
from ledgerkit.collecting.committed_files import Stored, attach
from ledgerkit.errors import InvalidRequestError
from ledgerkit.frames import build
from ledgerkit.u128 import arrow

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    import pandas as pd

    from ledgerkit.collecting.manifest import Commit
    from ledgerkit.collecting.storage import Folder


def open_collection(out: str | PathLike[str]) -> Collection:
    """
    Open what `collect` has written, be it finished or not.

    Parameters
    ----------
    out
        The folder, or the address, that `collect` was given.

    Returns
    -------
    collection
        What is stored at this moment; what is written later is seen when opened again.

    Raises
    ------
    InvalidRequestError
        If it is no collection, or a newer ledgerkit wrote it.
    DecodeError
        If what it says of itself cannot be read.
    FileError
        If it cannot be reached.

    Notes
    -----
    Source: the folder's manifest and commits; nothing is asked.
    """
    return Collection(storage.folder(out))


class Collection:
    """
    A collection as it was stored at one moment.

    Amounts are exact in every reader. Those of 10**38 and more are restored by `pandas` and
    `dask`; all others see null in their place, and the digits in ``balance_text``.

    Parameters
    ----------
    folder
        Where it is.
    """

    def __init__(self, folder: Folder) -> None:
        self.stored = Stored(folder)

    @property
    def path(self) -> str:
        """Where it is."""
        return str(self.stored.folder)

    @property
    def tables(self) -> tuple[str, ...]:
        """What it has: a table a view, ``subjects`` (who was answered) and ``errors``."""
        return self.stored.tables

    @property
    def views(self) -> tuple[str, ...]:
        """What was asked about each subject."""
        return tuple(self.stored.manifest.views)

    @property
    def network(self) -> str:
        """Whom was asked."""
        return self.stored.manifest.network

    @property
    def n_subjects(self) -> int:
        """How many entries of the source are through, whatever came of them."""
        return self.stored.n_subjects

    @property
    def finished(self) -> bool:
        """Whether that is the whole source."""
        return self.stored.finished

    @property
    def counts(self) -> dict[str, int]:
        """How many entries were ok, failed, malformed or duplicate."""
        return self.stored.counts()

    def __repr__(self) -> str:
        return f"<Collection {self._headline()}>"

    def _repr_html_(self) -> str:
        return cards.table_card(
            "collection",
            headline=f"Collection {self._headline()}",
            explanation=f"In {self.path}, since {self.stored.manifest.created_at}.",
            caption="What each table holds",
            rows=self.summary(),
        )

    def _headline(self) -> str:
        """Say in one line what it is."""
        ended = "finished" if self.finished else "not finished"
        told = ", ".join(f"{count:,} {kind}" for kind, count in self.counts.items())
        return f"{self.path} of {self.network}: {ended}, {told or 'nobody yet'}"

    def summary(self) -> pd.DataFrame:
        """
        Count what is stored.

        Returns
        -------
        summary
            A row a table, typed as ``schema("collection_summary")``. `attrs` says whom was
            asked, and how it went.
        """
        found = {table: [file for _, file in self.stored.named(table)] for table in self.tables}
        listed = {
            "table": list(found),
            "n_files": [len(files) for files in found.values()],
            "n_rows": [sum(file.rows for file in files) for files in found.values()],
            "n_bytes": [sum(file.size for file in files) for files in found.values()],
        }
        attrs = {
            "network": self.network,
            "finished": self.finished,
            "n_subjects": self.n_subjects,
            **self.counts,
        }
        return build.build_frame("collection_summary", listed, attrs=attrs)

    def errors(self) -> pd.DataFrame:
        """
        List the entries of the source that have no answer, and why.

        Returns
        -------
        errors
            Those asked in vain, malformed ids, and ids that stood in the source before; typed
            as ``schema("collection_errors")``.
        """
        return self.pandas(manifest.ERRORS)

    def pandas(
        self,
        table: str,
        *,
        columns: str | Iterable[str] | None = None,
        account_ids: str | Iterable[str] | None = None,
    ) -> pd.DataFrame:
        """
        Read a table, or a part of it, into a frame.

        Parameters
        ----------
        table
            One of `tables`.
        columns
            Some of its columns; None is all of them.
        account_ids
            Only rows of these accounts; only they leave the files.

        Returns
        -------
        frame
            Typed as ``schema(table)``, in the order of the source; but ``subjects`` as
            ``schema("collected")``, ``errors`` as ``schema("collection_errors")`` and, of blocks,
            ``receipts`` as ``schema("collected_receipts")``, ``events`` as
            ``schema("collected_events")``.

        Raises
        ------
        DecodeError
            If a file is missing or torn: there are never fewer rows than were stored.
        InvalidRequestError
            If there is no such table or column, or the collection was written anew.
        """
        validation.one_of(table, "table", self.tables)
        names = None
        if columns is not None:
            declared = tuple(name for name, _ in self.stored.manifest.schemas[table])
            names = validation.subset_of(columns, "columns", declared)
        where = None if account_ids is None else self._of(table, account_ids)
        frame = held.frame(manifest.frame_name(table), self.stored.read(table, names, where))
        frame.attrs.update(network=self.network, source=self.path)
        return frame

    def _of(self, table: str, account_ids: object) -> Any:
        """Write the condition that a row is of some accounts."""
        declared = {name for name, _ in self.stored.manifest.schemas[table]}
        column = next((name for name in ("account_id", "subject") if name in declared), None)
        if column is None:
            rule = f"left out: the table {table} knows no accounts"
            raise InvalidRequestError.refuse("account_ids", account_ids, rule)
        wanted = validation.account_ids(account_ids, "account_ids")
        pa = arrow.library()
        return arrow.library("pyarrow.compute").field(column).isin(pa.array(wanted, pa.string()))

    def arrow(self, table: str) -> Any:
        """
        Read a table into Arrow's memory.

        Parameters
        ----------
        table
            One of `tables`.

        Returns
        -------
        rows
            A `pyarrow.Table`; amounts are decimal128(38, 0).
        """
        return self.stored.read(table)

    def dataset(self, table: str) -> Any:
        """
        Open a table that may be larger than memory, to be read in batches or filtered.

        Parameters
        ----------
        table
            One of `tables`.

        Returns
        -------
        dataset
            A `pyarrow.dataset.Dataset`; nothing of it was read yet.
        """
        return self.stored.dataset(table)

    def duckdb(self) -> Any:
        """
        Open a DuckDB connection with a view for each table.

        Returns
        -------
        connection
            In memory, the caller's to close. The views read the files that are stored now;
            amounts are DECIMAL(38,0), times are in UTC. Sums are exact or an error from DuckDB
            2.0 on; before, one beyond 2**127 may wrap.
        """
        connection = arrow.library("duckdb").connect()
        try:
            attach(connection, self.stored, "main")
        except BaseException:
            connection.close()
            raise
        return connection

    def polars(self, table: str) -> Any:
        """
        Open a table for Polars.

        Parameters
        ----------
        table
            One of `tables`.

        Returns
        -------
        rows
            A `polars.LazyFrame`; amounts are Decimal(38, 0). Of an address Polars reads what
            pyarrow hands it.
        """
        polars = arrow.library("polars")
        if self.stored.folder.system is not None:
            return polars.scan_pyarrow_dataset(self.dataset(table))
        paths = [self.stored.folder.within(name) for name in self.stored.files(table)]
        if not paths:
            return polars.from_arrow(self.stored.schema(table).empty_table()).lazy()
        return polars.scan_parquet(paths, glob=False)

    def dask(self, table: str) -> Any:
        """
        Open a table for Dask, whose workers read the files where they are.

        Parameters
        ----------
        table
            One of `tables`.

        Returns
        -------
        frame
            A `dask.dataframe.DataFrame` of a partition a file, each as `pandas` would give it:
            amounts are u128, the largest ones too. Workers need ledgerkit, and a folder of
            this machine has to be one of theirs.
        """
        import ledgerkit.u128.dask_support  # noqa: F401 - tells Dask what u128 is

        name = manifest.frame_name(table)
        commits: list[Commit | None] = [commit for commit, _ in self.stored.named(table)]
        self.stored.files(table)  # checks them
        declared = [name for name, _ in self.stored.manifest.schemas[table]]
        read = partial(_partition, self.stored.folder, table)
        library, config = arrow.library("dask.dataframe"), arrow.library("dask.config")
        with config.set({"dataframe.convert-string": False}):  # lists would become texts
            return library.from_map(read, commits or [None], meta=build.empty_frame(name)[declared])


def _partition(folder: Folder, table: str, commit: Commit | None) -> pd.DataFrame:
    """Read the rows of one stretch."""
    name = manifest.frame_name(table)
    if commit is None:
        return build.empty_frame(name)
    return held.frame(name, resume.read_table(folder, commit, table))
