"""The verb `follow`: the blocks of a chain as they are produced, one after another."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, overload

import pandas as pd

from ledgerkit import client, intervals, validation
from ledgerkit.api.models.block_documents import BlockDocument
from ledgerkit.block_data.contents import ContentsBuffer, DocumentContents
from ledgerkit.block_data.following import DocumentFeed
from ledgerkit.block_data.protocol_rules import read_rules
from ledgerkit.block_data.reading import Link
from ledgerkit.collecting import manifests, resuming, storage
from ledgerkit.collecting.blocks import DocumentReader, outcome_of
from ledgerkit.collecting.collect_blocks import blocks_manifest, read_final
from ledgerkit.collecting.manifests import WAITING, Commit, Manifest
from ledgerkit.collecting.part_files import read_table
from ledgerkit.collecting.part_writer import Job, PartWriter
from ledgerkit.errors import InvalidRequestError, LedgerError
from ledgerkit.frames import arrow_tables
from ledgerkit.progress import Line
from ledgerkit.verbs.declaring import shared_parameters

if TYPE_CHECKING:
    from ledgerkit.collecting.outcomes import Outcome
    from ledgerkit.collecting.storage import Folder
    from ledgerkit.intervals import Ends
    from ledgerkit.ledger import Ledger

T = TypeVar("T")
WholeSource = Literal["documents", "indexer_rpc"]
_MOST_BLOCKS = 10**15


@overload
def follow(  # type: ignore[overload-overlap]  # the name of one view, a text, is no list of names
    start: object,
    views: str,
    *,
    source: WholeSource = "documents",
    out: str | PathLike[str] | None = None,
    max_blocks: int | None = None,
    stop: object = None,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Following[pd.DataFrame]: ...
@overload
def follow(  # type: ignore[overload-overlap]  # as above
    start: object = "final",
    *,
    views: str,
    source: WholeSource = "documents",
    out: str | PathLike[str] | None = None,
    max_blocks: int | None = None,
    stop: object = None,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Following[pd.DataFrame]: ...
@overload
def follow(
    start: object = "final",
    views: Iterable[str] = ("blocks", "transactions"),
    *,
    source: WholeSource = "documents",
    out: str | PathLike[str] | None = None,
    max_blocks: int | None = None,
    stop: object = None,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Following[FollowedBlock]: ...
@shared_parameters
def follow(
    start: object = "final",
    views: str | Iterable[str] = ("blocks", "transactions"),
    *,
    source: WholeSource = "documents",
    out: str | PathLike[str] | None = None,
    max_blocks: int | None = None,
    stop: object = None,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Following[FollowedBlock] | Following[pd.DataFrame]:
    """
    Follow the chain: iterate over its final blocks, each once and in order, as they are produced.

    The iterator waits at the head of the chain, repeats requests that fail, and checks that each
    block follows its predecessor, so that no block is left out. A height without a block is
    passed over once the next block proves that the chain skipped it. Old blocks are read in
    archives of ten until the head is reached.

    Parameters
    ----------
    views
        What to read. ``blocks``, ``chunks``, ``transactions``, ``outcomes``, ``actions``,
        ``balances`` and ``data_receipts`` come with their block. ``receipts``, ``events``,
        ``transfers`` and ``intents`` are those of the transactions that the block includes; with
        one of these views, a block comes once their receipts have run, a few blocks later. The
        name of one view yields only its frames.
    source
        The source: ``"documents"``, the block documents; or ``"indexer_rpc"``, a node of your own,
        which has to serve whole blocks and to track all shards.
    out
        A folder to store the blocks in as well, as `collect_blocks` does: a new one, or one
        with a collection of the same views, which is continued after its last block, not at
        `start`.
    max_blocks
        Number of blocks after which to stop; None has no end.
    stop
        The block before which to stop, in the same forms as `start`; also a future height or time.
        None has no end.
    progress
        Whether to show the last block, and how far behind the head it is, while waiting.

    Returns
    -------
    blocks
        An iterator of `FollowedBlock`, a mapping from view to frame; for the name of one view an
        iterator of its frames, whose ``attrs`` have ``block_height`` and ``behind``, the number
        of heights up to the head. Closing the iterator stores the yielded blocks, as do Ctrl-C
        and the end of the process.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, `out` is of another run, or the network does not have the
        source; and from the iterator when the ledger is closed.
    AuthError
        If the host refuses the API key.
    TransportError
        From the iterator, if there is no usable response for ten minutes.
    UnmatchedResponseError
        If the last final block is of another network than the node; and from the iterator if a
        block does not follow its predecessor: it is of another chain.
    DecodeError
        From the iterator, if a document does not have the documented form.
    FileError
        If a file cannot be written.

    Warns
    -----
    UserWarning
        If no ledger is open.

    Notes
    -----
    Source: block documents: GET /v0/block/{height}, /v0/last_block/final, and archives; or block
    and EXPERIMENTAL_indexer_block of a node, with EXPERIMENTAL_receipt_to_tx for receipts of
    earlier transactions; for ``receipts`` and ``transfers`` EXPERIMENTAL_protocol_config, once an
    epoch.

    A receipt can wait for data for 200 blocks, and longer on congested shards. Once the
    documents that wait for it have 64 MiB, its block comes with the rows known so far, and the
    attribute ``waiting`` is set. In `out` such a block is a row of ``errors`` of kind
    ``waiting``, and the next call of `follow` or `collect_blocks` for this folder completes it.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> for block in lk.follow(180000048, max_blocks=3):
    ...     print(block.height, block.behind, len(block["transactions"]))
    180000048 2 0
    180000049 1 0
    180000050 0 0
    """
    validation.flag(progress, "progress")
    base = client.current(ledger)
    if max_blocks is not None:
        validation.integer(max_blocks, "max_blocks", least=1, most=_MOST_BLOCKS)
    folder = None if out is None else storage.folder(out)
    validation.one_of(source, "source", validation.WHOLE_BLOCK_SOURCES)
    manifest = blocks_manifest(base, source, views)
    ends = intervals.parse(start, stop, needs_start=True)
    is_stored = False
    if folder is not None:
        manifests.check_same_run(folder, manifest)
        is_stored = bool(manifests.read_commits(folder))
    first, last, end_ns = _interval(base, ends, source, is_stored=is_stored)
    line = Line(is_shown=progress)
    chain = _Chain(base, manifest, first, last, end_ns, max_blocks, line, folder)
    path = "" if folder is None else folder.filesystem_path("")
    if isinstance(views, str):
        return Following(_frames(chain.follow(), manifest.views[0]), path)
    return Following(chain.follow(), path)


def _interval(
    ledger: Ledger, ends: Ends, source: str, *, is_stored: bool
) -> tuple[int, int | None, int | None]:
    """Return the first height, which is 0 for a folder with blocks, and the stop or its time."""
    start, stop = ends["start"], ends.get("stop")
    time_ns = None if stop is None else stop.timestamp_ns  # it may be in the future
    is_final = start.params == {"finality": "final"}
    omitted = {"start": is_stored or is_final, "stop": time_ns is not None}
    heights = intervals.heights(
        ledger, {name: end for name, end in ends.items() if not omitted[name]}
    )
    if is_final and not is_stored:
        heights["start"] = read_final(ledger, source).height  # the last final block of the source
    return heights.get("start", 0), heights.get("stop"), time_ns


def _frames(
    blocks: Generator[FollowedBlock, None, None], view: str
) -> Generator[pd.DataFrame, None, None]:
    try:
        for block in blocks:
            yield block[view]
    finally:
        blocks.close()


class FollowedBlock(Mapping[str, pd.DataFrame]):
    """
    A block that `follow` read: a frame for each view, by name.

    Parameters
    ----------
    height
        The height of the block.
    time
        The time of the block.
    behind
        Number of heights between it and the last final block when it was yielded.
    waiting
        The reason that its transactions are not complete: receipts are pending in the blocks
        that were read. None if they are complete, or if no view needs their receipts.
    network
        The name of the network.
    tables
        A `pyarrow.Table` for each view.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> block = next(lk.follow(views=("blocks", "transactions")))
    >>> block
    <FollowedBlock 180000050 of local, 0 behind: blocks 1, transactions 0>
    >>> block["blocks"]["author"].tolist()
    ['north.poolv1.near']
    """

    def __init__(
        self,
        height: int,
        *,
        time: pd.Timestamp | None,
        behind: int,
        waiting: str | None,
        network: str,
        tables: dict[str, Any],
    ) -> None:
        self.height = height
        self.time = time
        self.behind = behind
        self.waiting = waiting
        self._network = network
        self._tables = tables

    def __getitem__(self, view: str) -> pd.DataFrame:
        attrs = {"network": self._network, "block_height": self.height, "behind": self.behind}
        return arrow_tables.frame(view, self._tables[view], **attrs)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        rows = ", ".join(f"{view} {table.num_rows}" for view, table in self._tables.items())
        return f"<FollowedBlock {self.height} of {self._network}, {self.behind} behind: {rows}>"


@dataclass(frozen=True)
class _Chain:
    """
    The blocks of a chain, and the folder to store them in.

    They end before the height `stop` or the time `stop_ns`, or after a number of blocks.
    """

    ledger: Ledger
    manifest: Manifest
    start: int
    stop: int | None
    stop_ns: int | None
    max_blocks: int | None
    line: Line
    folder: Folder | None

    def follow(self) -> Generator[FollowedBlock, None, None]:
        """Yield the blocks; yielded blocks are stored when the generator is closed."""
        try:
            if self.folder is None:
                yield from self._yield_blocks(self.start, None, lambda _: None)
            else:
                yield from self._store(self.folder)
        finally:
            self.line.clear()

    def _store(self, folder: Folder) -> Iterator[FollowedBlock]:
        """Complete the waiting blocks of the folder, then store the blocks after its last one."""
        job = Job(folder, self._reader())
        with manifests.writing(folder, self.manifest) as stored, closing(PartWriter(job)) as writer:
            for commit in resuming.with_kinds(stored, [WAITING]):
                resuming.retry(job, self.ledger, commit, [WAITING])
            commits = manifests.read_commits(folder)
            start = commits[-1].stop if commits else self.start
            try:
                yield from self._yield_blocks(start, _last_block(folder, commits), writer.add)
            finally:
                writer.finish()
                manifests.write_finished(folder)

    def _yield_blocks(
        self, start: int, previous: Link | None, add: Callable[[list[Outcome]], object]
    ) -> Iterator[FollowedBlock]:
        """Yield the block of each height up to the end, and store its outcome."""
        reader = self._reader()
        for outcome, head in self._limited(self._read(start, previous)):
            height, contents = outcome.subject.position, outcome.value
            if isinstance(contents, DocumentContents):
                block = self._block(contents, head - height, reader.tables([outcome]))
                self.line.clear()
                try:
                    yield block
                finally:  # the block was yielded, even if the iterator is closed now
                    add([outcome])
            else:
                add([outcome])
            self._show(f"block {height:,}, {head - height:,} behind the head")

    def _block(
        self, contents: DocumentContents, behind: int, tables: dict[str, Any]
    ) -> FollowedBlock:
        header, waiting = contents.document.block.header, contents.waiting
        return FollowedBlock(
            header.height,
            time=None if header.time_ns is None else pd.Timestamp(header.time_ns, tz="UTC"),
            behind=behind,
            waiting=None if waiting is None else str(waiting),
            network=self.ledger.network.name,
            tables=tables,
        )

    def _limited(self, reads: Iterator[tuple[Outcome, int]]) -> Iterator[tuple[Outcome, int]]:
        """Yield heights up to the end."""
        n_blocks = 0
        for outcome, head in reads:
            height, contents = outcome.subject.position, outcome.value
            is_block = isinstance(contents, DocumentContents)
            time_ns = contents.document.block.header.time_ns if is_block else None
            if self._is_end(height, time_ns):
                return
            n_blocks += is_block
            yield outcome, head
            if n_blocks == self.max_blocks or self._is_end(height + 1, None):
                return

    def _is_end(self, height: int, time_ns: int | None) -> bool:
        if self.stop is not None and height >= self.stop:
            return True
        return self.stop_ns is not None and time_ns is not None and time_ns >= self.stop_ns

    def _read(self, start: int, previous: Link | None) -> Iterator[tuple[Outcome, int]]:
        """
        Yield heights in order, each with the height of the head.

        A height comes once its transactions are complete, or have waited too long.
        """
        source, reader = self.manifest.source, self._reader()
        feed = DocumentFeed(self.ledger, start, self._show, source=source, previous=previous)
        window = ContentsBuffer(self.ledger, is_traced=reader.is_traced)
        origins = reader.origins(self.ledger)
        with closing(feed.read()) as reads:
            for read in reads:
                if reader.is_traced and isinstance(read.value, BlockDocument):
                    _repeat(feed, partial(read_rules, self.ledger, read.value.block.header))
                if origins is not None and isinstance(read.value, BlockDocument):
                    _repeat(feed, partial(origins.fill_in, read.value))
                for contents in window.add(read):
                    outcome = outcome_of(contents)
                    if outcome.subject.problem is None and isinstance(outcome.value, LedgerError):
                        raise outcome.value  # the block contradicts an earlier one
                    yield outcome, feed.head

    def _reader(self) -> DocumentReader:
        return DocumentReader(self.manifest.views, self.manifest.source)

    def _show(self, text: str) -> None:
        self.line.show(f"follow {self.ledger.network.name}: {text}")


def _repeat(feed: DocumentFeed, read: Callable[[], object]) -> None:
    """Call `read` until it succeeds; raise errors that are not temporary."""
    while True:
        try:
            read()
        except LedgerError as error:
            feed.wait_after(error)
        else:
            return


def _last_block(folder: Folder, commits: Sequence[Commit]) -> Link | None:
    for commit in reversed(commits):
        if "blocks" in commit.files:
            blocks = read_table(folder, commit, "blocks")
            heights, hashes = blocks["block_height"], blocks["block_hash"]
            return Link(heights[-1].as_py(), hashes[-1].as_py())
    return None


def _close(steps: Generator[Any, None, None]) -> None:
    with suppress(ValueError):
        steps.close()


# The open iterators by folder: the traceback of an interrupted loop keeps its iterator alive.
_open: weakref.WeakValueDictionary[str, Following[Any]] = weakref.WeakValueDictionary()
_superseded: weakref.WeakSet[Following[Any]] = weakref.WeakSet()


class Following(Iterator[T], Generic[T]):
    """
    The iterator that `follow` returns.

    Parameters
    ----------
    steps
        The generator of the blocks.
    folder
        The path of the folder that stores the blocks; empty without a folder.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> with lk.follow() as blocks:
    ...     next(blocks).height
    180000050
    """

    def __init__(self, steps: Generator[T, None, None], folder: str = "") -> None:
        self._steps = steps
        self._end = weakref.finalize(self, _close, steps)  # also at the end of the process
        if folder:
            earlier, _open[folder] = _open.get(folder), self
            if earlier is not None:
                with suppress(ValueError):  # another thread runs it, so the folder is locked
                    earlier.close()
                    _superseded.add(earlier)

    def __next__(self) -> T:
        if self in _superseded:
            msg = "a later call of follow() continues the folder of this one"
            raise InvalidRequestError(
                msg, remedy="Use the iterator of the later call.", field="out"
            )
        return next(self._steps)

    def close(self) -> None:
        """
        Stop, and store the yielded blocks; further calls do nothing.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> blocks = lk.follow(out="blocks")
        >>> next(blocks).height
        180000050
        >>> blocks.close()
        >>> lk.open_collection("blocks")
        <Collection blocks of local: finished, 1 ok>
        """
        self._steps.close()
        self._end.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
