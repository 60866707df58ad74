"""The verb `statements`: the statements of many accounts to a Parquet dataset."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import client, intervals
from ledgerkit.block_data.contents import waiting_error
from ledgerkit.collecting import account_sources, manifests
from ledgerkit.collecting.collect import SourceRun
from ledgerkit.collecting.outcomes import Outcome
from ledgerkit.collecting.run import Options
from ledgerkit.errors import InvalidRequestError, LedgerError, TransactionTimeoutError
from ledgerkit.frames import arrow_tables, collected
from ledgerkit.ledger import Ledger, locate_arguments
from ledgerkit.reconciling import frames
from ledgerkit.reconciling.building import Builder
from ledgerkit.reconciling.plan import Scope, block_before, locate_ends
from ledgerkit.reconciling.statement import Statement
from ledgerkit.verbs.declaring import shared_parameters

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.calls import Surface
    from ledgerkit.block_search.bisection import Point
    from ledgerkit.collecting.account_sources import Source, Subject
    from ledgerkit.collecting.collection import Collection
    from ledgerkit.collecting.manifests import Manifest
    from ledgerkit.collecting.storage import Folder
    from ledgerkit.intervals import Ends
    from ledgerkit.validation import BlockReference

_VIEWS = collected.VIEWS["statements"]
_N_THREADS = 8  # statements read at the same time
_PART_SIZE = 1_000  # accounts in one set of files


@shared_parameters
def statements(
    account_ids: object,
    out: str | PathLike[str] | None = None,
    start: object = None,
    stop: object = None,
    *,
    in_flight: int | None = None,
    rate: float | None = None,
    resume: bool = True,
    retry_failed: bool = False,
    column: str = "account_id",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Collection:
    """
    Read the statements of any number of accounts into a Parquet dataset.

    The run can be killed at any moment: the same call continues it, without losing or
    repeating a row. The first call finds the blocks at both ends, and stores their heights in the
    folder: the calls that continue the run use these. Accounts that cannot be read, malformed ids
    and repeated ids are rows of the table ``errors``. An account whose transactions still run has
    the kind ``waiting``; each later call reads it again.

    Parameters
    ----------
    account_ids
        Account ids: a list, Series or iterator of any length, or the path of a file (text
        with one id a line, CSV, or Parquet).
    out
        The folder to write to: a new one, or one with a run of the same period to continue; or
        an fsspec address.
    resume
        Whether to continue a run in `out`; False raises if `out` has anything in it.
    retry_failed
        Whether to read the accounts again that failed before.
    column
        The column of a CSV or Parquet file that has the ids.

    Returns
    -------
    collection
        The same as `open_collection` returns. Its tables are ``entries``, ``gaps``, ``totals``
        and ``rewards``, with the columns of the frames of a `Statement`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, `out` is of another run, or `account_ids` is not the source
        that the run was started with.
    AuthError
        If a host refuses the API key.
    RateLimitedError
        If a host goes on refusing requests; statements before that are stored.
    TransportError
        If 64 accounts in a row have no usable response, or 10 requests none at all; statements
        before that are stored.
    FileError
        If a file cannot be written.

    Warns
    -----
    UserWarning
        If accounts could not be read, or are waiting.

    Notes
    -----
    Source: as `statement`, for each account.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> run = lk.statements(["alice.near", "bob.near"], "statements")
    >>> run
    <Collection statements of local: finished, 2 ok>
    >>> run.pandas("totals", account_ids="bob.near")[["asset", "n_entries", "missing"]]
                         asset  n_entries  missing
    0                     near          6        0
    1         nep141:gold.near          0        0
    2         nep141:moon.near          0        0
    3  stake:north.poolv1.near          1        0
    4  stake:south.poolv1.near          0        0
    """
    run = StatementRun(account_sources.source(account_ids, column), intervals.parse(start, stop))
    options = Options(
        in_flight=in_flight,
        rate=rate,
        resume=resume,
        retry_failed=retry_failed,
        progress=progress,
        part_size=_PART_SIZE,
    )
    return run.execute(client.current(ledger), out, options)


class StatementRun(SourceRun):
    """The run of `statements`; the period of a folder is that of its first run."""

    def __init__(self, source: Source, ends: Ends) -> None:
        super().__init__(source)
        self._ends = ends

    def manifest(self, ledger: Ledger, folder: Folder) -> Manifest:
        """Return the manifest with the heights after which balances are read."""
        stored = manifests.read_manifest(folder)
        if stored is None or stored.heights is None:
            first, last = locate_ends(ledger, self._ends)
            heights = None if first is None else first.height, last.height
        else:
            heights = stored.heights
            for name, height in zip(("start", "stop"), heights, strict=True):
                if name in self._ends:
                    _check_end(ledger, self._ends[name], name, height)
        return manifests.new_manifest("statements", ledger.network.name, _VIEWS, heights=heights)

    def open(self, ledger: Ledger, manifest: Manifest) -> StatementReader:
        """Return the reader of statements between the ends."""
        first, last = manifest.heights or (None, "final")
        heights = {"stop": last} if first is None else {"start": first, "stop": last}
        points = locate_arguments(ledger, heights)
        return StatementReader(points.get("start"), points["stop"])


def _check_end(ledger: Ledger, end: BlockReference, name: str, stored: int | None) -> None:
    """Raise if an end differs from that of the run, which reads balances after `stored`."""
    height = end.height
    if stored is not None and (
        height is None or height == stored + 1 or block_before(ledger, height).height == stored
    ):
        return
    expected = f"{None if stored is None else stored + 1}, as in the first call for this folder"
    raise InvalidRequestError.refuse(name, end.as_passed, expected)


class _ReadStatement(NamedTuple):
    """A statement, with the error of a pending transaction if it is not final."""

    statement: Statement
    waiting: TransactionTimeoutError | None


class StatementReader:
    """A reader of statements between two blocks."""

    noun = "accounts"
    surfaces: tuple[Surface, ...] = ("transactions", "transfers", "rpc", "archival_rpc")

    def __init__(self, start: Point | None, stop: Point) -> None:
        self._start, self._stop = start, stop

    def read(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[list[Outcome]]:
        """Read several statements at a time; yield each outcome, in the order of the accounts."""
        pending: deque[tuple[Subject, Future[Any] | None]] = deque()
        executor = ThreadPoolExecutor(_N_THREADS, thread_name_prefix="ledgerkit_statement")
        try:
            for subject in subjects:
                is_valid = subject.problem is None
                task = executor.submit(self._read, ledger, subject.text) if is_valid else None
                pending.append((subject, task))
                if len(pending) > _N_THREADS:
                    yield [_outcome(*pending.popleft())]
            while pending:
                yield [_outcome(*pending.popleft())]
        finally:  # running tasks end when the ledger is closed
            executor.shutdown(wait=False, cancel_futures=True)

    def _read(self, ledger: Ledger, account_id: str) -> _ReadStatement | LedgerError:
        try:
            scope = Scope(ledger, account_id, self._start, self._stop, None, progress=False)
            builder = Builder(scope)
            statement = Statement(*builder.build())
        except LedgerError as error:
            return error
        unfinished = statement.facts.unfinished
        waiting = waiting_error(unfinished, "statement") if unfinished else None
        return _ReadStatement(statement, waiting)

    def tables(self, batch: Sequence[Outcome]) -> dict[str, Any]:
        results = [value for _, value in batch if isinstance(value, _ReadStatement)]
        return {
            view: arrow_tables.of_frames(
                view, (frame for result in results for frame in _frames(view, result.statement))
            )
            for view in _VIEWS
        }


def _outcome(subject: Subject, task: Future[Any] | None) -> Outcome:
    return Outcome(subject, None if task is None else task.result())


def _frames(view: str, statement: Statement) -> Iterator[pd.DataFrame]:
    """Yield the frame of a view; the frame of entries may be long, and comes in parts."""
    if view == "entries":
        yield from frames.entry_frames(statement.facts, statement.store)
    else:
        yield getattr(statement, view)
