"""An opened collection: its tables for pandas, Arrow, DuckDB, Polars and Dask, exactly."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

from ledgerkit import cards, validation
from ledgerkit.collecting import manifests, storage
from ledgerkit.collecting.committed_files import CommittedFiles, attach
from ledgerkit.collecting.part_files import read_table
from ledgerkit.errors import DecodeError, InvalidRequestError, cut
from ledgerkit.extras import require
from ledgerkit.frames import arrow_tables, build, collected
from ledgerkit.u128 import arrow, parquet
from ledgerkit.visible_text import escape_invisible

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.collecting.manifests import Commit
    from ledgerkit.collecting.storage import Folder
    from ledgerkit.ledger import Ledger
    from ledgerkit.tracing.traces import Traces


def open_collection(out: str | PathLike[str]) -> Collection:
    """
    Open a collection that `collect` or `collect_blocks` wrote, finished or not.

    Parameters
    ----------
    out
        The folder or address that was passed to `collect` as `out`.

    Returns
    -------
    collection
        The parts stored at this moment; open it again to see later ones.

    Raises
    ------
    InvalidRequestError
        If the folder has no collection, or a newer ledgerkit wrote it.
    DecodeError
        If its manifest or a commit cannot be read.
    FileError
        If the folder cannot be read.

    Notes
    -----
    Source: the manifest and commits of the folder; no request is sent.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> run = lk.collect(["alice.near", "bob.near"], "ft", "monday")
    >>> lk.open_collection("monday").tables
    ('ft', 'subjects', 'errors')
    """
    return Collection(storage.folder(out))


class Collection:
    """
    A collection of accounts or blocks, as stored when it was opened.

    Amounts are exact in every reader. `pandas` and `dask` also return amounts of 39 digits. The
    files store such an amount as null and its digits in ``balance_text``. `arrow` and `dataset`
    return the same. A query of `duckdb` or `polars` that reads such a null is an error: omit these
    rows with ``WHERE balance_text IS NULL``.

    Parameters
    ----------
    folder
        The folder of the collection.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> run = lk.collect(["alice.near", "bob.near"], "ft", "monday")
    >>> run.finished, run.counts, run.tables
    (True, {'ok': 2}, ('ft', 'subjects', 'errors'))
    """

    def __init__(self, folder: Folder) -> None:
        self.files = CommittedFiles(folder)

    @property
    def path(self) -> str:
        """The folder or address."""
        return str(self.files.folder)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables: the views, ``subjects`` (entries read) and ``errors``."""
        return self.files.tables

    @property
    def views(self) -> tuple[str, ...]:
        """The views that were read."""
        return tuple(self.files.manifest.views)

    @property
    def network(self) -> str:
        """The network that was read."""
        return self.files.manifest.network

    @property
    def n_subjects(self) -> int:
        """The number of processed entries of the source, including failed ones."""
        return self.files.n_subjects

    @property
    def finished(self) -> bool:
        """True if the whole source was processed."""
        return self.files.finished

    @property
    def counts(self) -> dict[str, int]:
        """The number of entries by outcome: ok, and the kinds of rows of `errors`."""
        return self.files.counts()

    def __repr__(self) -> str:
        return f"<Collection {self._headline()}>"

    def _repr_html_(self) -> str:
        return cards.table_card(
            "collection",
            headline=f"Collection {self._headline()}",
            explanation=f"In {self.path}, created at {self.files.manifest.created_at}.",
            caption="Contents of the tables",
            rows=self.summary(),
            network=self.network,
        )

    def _headline(self) -> str:
        status = "finished" if self.finished else "not finished"
        counts = ", ".join(f"{count:,} {kind}" for kind, count in self.counts.items())
        headline = f"{self.path} of {self.network}: {status}, {counts or 'empty'}"
        return escape_invisible(headline)

    def summary(self) -> pd.DataFrame:
        """
        Count the stored files, rows and bytes of each table.

        Returns
        -------
        summary
            One row for each table, typed as ``schema("collection_summary")``. `attrs` has the
            network and the counts of entries.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> run = lk.collect(["alice.near", "bob.near"], "ft", "monday")
        >>> run.summary()[["table", "n_files", "n_rows"]]
              table  n_files  n_rows
        0        ft        1       9
        1  subjects        1       2
        2    errors        0       0
        """
        files = {table: [file for _, file in self.files.of_table(table)] for table in self.tables}
        columns = {
            "table": list(files),
            "n_files": [len(listed) for listed in files.values()],
            "n_rows": [sum(file.rows for file in listed) for listed in files.values()],
            "n_bytes": [sum(file.size for file in listed) for listed in files.values()],
        }
        attrs = {
            "network": self.network,
            "finished": self.finished,
            "n_subjects": self.n_subjects,
            **self.counts,
        }
        return build.build_frame("collection_summary", columns, attrs=attrs)

    def errors(self) -> pd.DataFrame:
        """
        List the entries of the source that are missing or not complete, with the reasons.

        Returns
        -------
        errors
            Failed requests, malformed ids, repeated ids, skipped heights, and heights with
            transactions that are not final yet; typed as ``schema("collection_errors")``.

        Raises
        ------
        DecodeError
            If a file of the table is missing or damaged.
        InvalidRequestError
            If the collection was rewritten since it was opened.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> run = lk.collect(["alice.near", "Not An Id"], "ft", "monday")
        >>> run.errors()[["position", "subject", "kind"]]
           position    subject       kind
        0         1  Not An Id  malformed
        """
        return self.pandas(collected.ERRORS)

    def check_files(self) -> None:
        """
        Read the manifest, the commits and all files again, and compare them with their digests.

        Every reader checks a file before this process first reads it, and again once its size or
        times have changed; a remote file is checked once for each opened collection. `check_files`
        also finds damage that changes neither, in all tables at once.

        Raises
        ------
        DecodeError
            If files are missing or damaged; the message names them, and the commits to remove.
        FileError
            If a file cannot be read.

        Notes
        -----
        Source: the files of the folder; no request is sent.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> run = lk.collect(["alice.near", "bob.near"], "ft", "monday")
        >>> run.check_files()  # raises a DecodeError if a file is damaged
        """
        CommittedFiles(self.files.folder).check_all()

    def pandas(
        self,
        table: str,
        *,
        columns: str | Iterable[str] | None = None,
        account_ids: str | Iterable[str] | None = None,
    ) -> pd.DataFrame:
        """
        Read a table, or some of its columns and rows, into a frame.

        Parameters
        ----------
        table
            One of `tables`.
        columns
            Columns to read; None is all.
        account_ids
            Read only the rows of these accounts.

        Returns
        -------
        frame
            In the order of the source, typed as ``schema(table)``. ``subjects`` is typed as
            ``schema("collected")``, ``errors`` as ``schema("collection_errors")``; in a
            collection of blocks ``receipts`` as ``schema("collected_receipts")``, ``events`` as
            ``schema("collected_events")``, ``transfers`` as ``schema("collected_transfers")``,
            ``intents`` as ``schema("collected_intents")``,
            ``outcomes`` as ``schema("collected_outcomes")``, ``actions`` as
            ``schema("collected_actions")``, ``balances`` as ``schema("collected_balances")`` and
            ``data_receipts`` as ``schema("collected_data_receipts")``.

        Raises
        ------
        DecodeError
            If a file is missing or damaged.
        InvalidRequestError
            If the table or a column does not exist, or the collection was rewritten since it
            was opened.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> run = lk.collect(["alice.near", "bob.near"], "ft", "monday")
        >>> columns = ["account_id", "contract_id", "balance"]
        >>> run.pandas("ft", columns=columns, account_ids="bob.near")
          account_id contract_id                     balance
        0   bob.near   gold.near                    37000000
        1   bob.near   moon.near  12000000000000000000000000
        """
        validation.one_of(table, "table", self.tables)
        names = None
        if columns is not None:
            declared = tuple(name for name, _ in self.files.manifest.schemas[table])
            names = validation.subset_of(columns, "columns", declared)
        where = None if account_ids is None else self._account_filter(table, account_ids)
        rows = self.files.read(table, names, where)
        with self.files.reading(table):
            return arrow_tables.frame(table, rows, network=self.network, source=self.path)

    def _account_filter(self, table: str, account_ids: object) -> Any:
        declared = {name for name, _ in self.files.manifest.schemas[table]}
        column = next((name for name in ("account_id", "subject") if name in declared), None)
        if column is None:
            msg = f"account_ids cannot be used: the table {table!r} has no column account_id"
            raise InvalidRequestError(msg, field="account_ids", value=account_ids)
        ids = validation.account_ids(account_ids, "account_ids")
        pa = arrow.library()
        return arrow.library("pyarrow.compute").field(column).isin(pa.array(ids, pa.string()))

    def traces(self, tx_hashes: Iterable[str], *, ledger: Ledger | None = None) -> Traces:
        """
        Build traces of transactions in a collection of blocks, as `ledgerkit.traces` reads them.

        Parameters
        ----------
        tx_hashes
            The transactions' hashes. Their blocks and the blocks in which their receipts ran must
            be in the collection: without later blocks a transaction looks unfinished.
        ledger
            The ledger to read the protocol's rules from, and the metadata of tokens for
            explanations. With None no request is sent, and the contracts' share of burnt gas is
            unknown, as each trace notes.

        Returns
        -------
        traces
            A mapping from hash to `Trace`, in the order of `tx_hashes`; its frames are the same
            as from `ledgerkit.traces`.

        Raises
        ------
        InvalidRequestError
            If a hash is malformed, if the collection does not have the views ``blocks``,
            ``transactions``, ``outcomes`` and ``actions``, or if `ledger` is of another network.
        UnknownTransactionError
            If the collection does not have the block of a transaction.
        DecodeError
            If a file of a table is missing or damaged.

        Notes
        -----
        Source: the tables of the collection; with `ledger` also EXPERIMENTAL_protocol_config.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> run = lk.collect_blocks(180000030, 180000040, out="blocks")
        >>> traces = run.traces(["AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY"])
        >>> [trace.verdict for trace in traces.values()]
        ['succeeded_with_failed_receipts']
        """
        from ledgerkit.collecting.stored_traces import read_traces

        return read_traces(self.files, tx_hashes, ledger)

    def arrow(self, table: str) -> Any:
        """
        Read a table into a `pyarrow.Table`.

        Parameters
        ----------
        table
            One of `tables`.

        Returns
        -------
        rows
            Amounts are decimal128(38, 0), null where they have 39 digits.

        Raises
        ------
        DecodeError
            If a file of the table is missing or damaged.
        InvalidRequestError
            If the table does not exist, the collection was rewritten since it was opened, or
            pyarrow is not installed.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> run = lk.collect(["alice.near", "bob.near"], "ft", "monday")
        >>> run.arrow("ft").schema.field("balance").type
        Decimal128Type(decimal128(38, 0))
        """
        return self.files.read(table)

    def dataset(self, table: str) -> Any:
        """
        Open a table that may be larger than memory, to read it in batches or filtered.

        Parameters
        ----------
        table
            One of `tables`.

        Returns
        -------
        dataset
            A `pyarrow.dataset.Dataset`; no rows are read yet.

        Raises
        ------
        DecodeError
            If a file of the table is missing or damaged.
        InvalidRequestError
            If the table does not exist, the collection was rewritten since it was opened, or
            pyarrow is not installed.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> run = lk.collect(["alice.near", "bob.near"], "ft", "monday")
        >>> run.dataset("ft").count_rows()
        9
        """
        return self.files.dataset(table)

    def duckdb(self) -> Any:
        """
        Open a DuckDB connection with a view for each table.

        Returns
        -------
        connection
            An in-memory connection, which the caller closes. Amounts are DECIMAL(38,0), times
            are in UTC. Sums are exact, or an error if they overflow (from DuckDB 2.0 on;
            earlier versions may wrap above 2**127).

        Raises
        ------
        DecodeError
            If a file is missing or damaged.
        InvalidRequestError
            If the collection was rewritten since it was opened, or DuckDB is not installed.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> run = lk.collect(["alice.near", "bob.near"], "ft", "monday")
        >>> query = "SELECT sum(balance) FROM ft WHERE contract_id = 'gold.near'"
        >>> with run.duckdb() as db:
        ...     db.sql(query).fetchall()
        [(Decimal('1289998400'),)]
        """
        duckdb = require("duckdb", "bulk", "A DuckDB connection")
        connection = duckdb.connect()
        try:
            attach(connection, self.files, self.tables, "main", refuse_large=True)
        except BaseException as error:
            connection.close()
            if not isinstance(error, duckdb.Error):
                raise
            msg = f"DuckDB cannot read the files of {self.path}: {cut(error)}"
            raise DecodeError(msg, remedy=manifests.NEW_FOLDER, path=self.path) from error
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
            A `polars.LazyFrame`; amounts are Decimal(38, 0). A collection at an fsspec address
            is read through pyarrow.

        Raises
        ------
        DecodeError
            If a file of the table is missing or damaged.
        InvalidRequestError
            If the table does not exist, the collection was rewritten since it was opened, or
            Polars is not installed.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> run = lk.collect(["alice.near", "bob.near"], "ft", "monday")
        >>> run.polars("ft").select("contract_id").unique().collect().height
        7
        """
        polars = require("polars", "bulk", "A Polars frame")
        paths = [self.files.folder.filesystem_path(name) for name in self.files.names(table)]
        if self.files.folder.filesystem is not None:
            rows = polars.scan_pyarrow_dataset(self.dataset(table))
        elif paths:
            rows = polars.scan_parquet(paths, glob=False)
        else:
            rows = polars.from_arrow(self.files.schema(table).empty_table()).lazy()
        return rows.with_columns(  # the cast is an error for 39 digits
            polars.coalesce(name, polars.col(text).cast(polars.Decimal(arrow.DIGITS, 0)))
            for name, text in self.files.text_columns(table).items()
        )

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
            A `dask.dataframe.DataFrame` with a partition for each file, each as `pandas`
            returns it: all amounts are u128. The workers need ledgerkit and access to the
            folder.

        Raises
        ------
        DecodeError
            If a file of the table is missing or damaged.
        InvalidRequestError
            If the table does not exist, the collection was rewritten since it was opened, or
            Dask is not installed.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> run = lk.collect(["alice.near", "bob.near"], "ft", "monday")
        >>> run.dask("ft").groupby("account_id").size().compute().to_dict()
        {'alice.near': 7, 'bob.near': 2}
        """
        name = collected.schema_name(table)
        commits: list[Commit | None] = [commit for commit, _ in self.files.of_table(table)]
        self.files.check_sizes(table)
        declared = [name for name, _ in self.files.manifest.schemas[table]]
        read = partial(_partition, self.files.folder, table, self.files.schema(table))
        library = require("dask.dataframe", "dask", "A Dask frame")
        config = require("dask.config", "dask", "A Dask frame")
        with config.set({"dataframe.convert-string": False}):  # it would convert lists to text
            return library.from_map(read, commits or [None], meta=build.empty_frame(name)[declared])


def _partition(folder: Folder, table: str, schema: Any, commit: Commit | None) -> pd.DataFrame:
    if commit is None:
        return arrow_tables.frame(table, schema.empty_table())
    rows = read_table(folder, commit, table, schema)
    with parquet.reading(f"the table {table} of {commit.path}", commit.remedy):
        return arrow_tables.frame(table, rows)
