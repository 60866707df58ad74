"""Following a chain: blocks in order, their tables, and the collection that they are stored in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from ledgerkit.api.models.block_documents import BlockDocument
from ledgerkit.block_data.contents import DocumentContents, Window
from ledgerkit.block_data.following import DocumentFeed, Link
from ledgerkit.block_data.protocol_rules import read_rules
from ledgerkit.collecting import manifests, resuming
from ledgerkit.collecting.document_reader import DocumentReader, outcome_of
from ledgerkit.collecting.manifests import WAITING
from ledgerkit.collecting.part_files import utc_now
from ledgerkit.collecting.part_reading import read_table
from ledgerkit.collecting.part_writer import PART_BYTES, Job, PartWriter
from ledgerkit.collecting.sources import Subject
from ledgerkit.errors import LedgerError
from ledgerkit.frames import arrow_tables
from ledgerkit.u128 import arrow

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from ledgerkit.api.models.chain import BlockHeader
    from ledgerkit.collecting.manifests import Commit, Manifest
    from ledgerkit.collecting.outcomes import Outcome
    from ledgerkit.collecting.storage import Folder
    from ledgerkit.errors import TransactionTimeoutError
    from ledgerkit.ledger import Ledger
    from ledgerkit.progress import Line, NoLine


class FollowedBlock(Mapping[str, pd.DataFrame]):
    """
    A block that `follow` read: a frame for each view, by name.

    Parameters
    ----------
    height
        Its height.
    time
        Its time.
    behind
        Number of heights between it and the last final block when it was passed on.
    waiting
        Why transactions of it are not complete: receipts of them have not run in the blocks that
        were read; None if they are complete, or if no view needs their receipts.
    network
        The name of its network.
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
        frame = arrow_tables.frame(manifests.schema_name(view), self._tables[view])
        frame.attrs.update(network=self._network, block_height=self.height, behind=self.behind)
        return frame

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        rows = ", ".join(f"{view} {table.num_rows}" for view, table in self._tables.items())
        return f"<FollowedBlock {self.height} of {self._network}, {self.behind} behind: {rows}>"


class Target(NamedTuple):
    """Where to stop: before a height or a time, after a number of blocks; None is nowhere."""

    height: int | None = None
    time_ns: int | None = None
    max_blocks: int | None = None

    def is_reached(self, height: int, time_ns: int | None) -> bool:
        """Return True for a height, or the time of its block, that is not passed on."""
        if self.height is not None and height >= self.height:
            return True
        return self.time_ns is not None and time_ns is not None and time_ns >= self.time_ns


@dataclass(frozen=True)
class Options:
    """The task of following: views of blocks from a height on, to a target or into a folder."""

    ledger: Ledger
    views: Sequence[str]
    start: int
    target: Target
    line: Line | NoLine
    manifest: Manifest
    folder: Folder | None = None

    def show(self, text: str) -> None:
        """Show where following is."""
        self.line.show(f"follow {self.ledger.network.name}: {text}")

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Remove the line at the end."""
        try:
            yield
        finally:
            self.line.clear()


def follow_blocks(options: Options) -> Generator[FollowedBlock, None, None]:
    """Yield blocks up to the target; those passed on are stored when the generator is closed."""
    with options.showing():
        if options.folder is None:
            yield from _blocks(options, _read(options, options.start))
            return
        with _storing(options, options.folder) as store:
            start = options.start if store.stop is None else store.stop
            reads = _read(options, start, store.last_block())
            yield from _blocks(options, reads, store)


def _blocks(
    options: Options, reads: Iterator[_Read], store: _Store | None = None
) -> Iterator[FollowedBlock]:
    """Store each height up to the target, and yield its block."""
    for outcome, head in _limited(options.target, reads):
        height, value = outcome.subject.position, outcome.value
        try:
            if isinstance(value, _Contents):
                options.line.clear()
                yield _block(options, height, head - height, value)
        except GeneratorExit:  # the block was passed on all the same
            _add(store, outcome)
            raise
        _add(store, outcome)
        options.show(f"block {height:,}, {head - height:,} behind the head")


def _block(options: Options, height: int, behind: int, contents: _Contents) -> FollowedBlock:
    """Build the block that is passed on."""
    time_ns, waiting = contents.header.time_ns, contents.waiting
    return FollowedBlock(
        height,
        time=None if time_ns is None else pd.Timestamp(time_ns, tz="UTC"),
        behind=behind,
        waiting=None if waiting is None else str(waiting),
        network=options.ledger.network.name,
        tables=contents.tables,
    )


def _add(store: _Store | None, outcome: Outcome) -> None:
    """Add a height to the collection, if there is one."""
    if store is not None:
        store.add(outcome)


class _Read(NamedTuple):
    """A height that was read, with the tables of its block, and the height of the head then."""

    outcome: Outcome
    head: int


class _Contents(NamedTuple):
    """A block as it is stored."""

    header: BlockHeader
    tables: dict[str, Any]
    size: int  # bytes of its document
    waiting: TransactionTimeoutError | None


def _read(options: Options, start: int, previous: Link | None = None) -> Iterator[_Read]:
    """Yield heights in order, once their transactions are complete or wait for too long."""
    feed = DocumentFeed(options.ledger, start, options.show, previous=previous)
    reader = DocumentReader(options.views)
    window = Window(options.ledger, is_traced=reader.is_traced)
    with closing(feed.read()) as reads:
        for read in reads:
            if reader.is_traced and isinstance(read.value, BlockDocument):
                _read_rules(feed, options.ledger, read.value.block.header)
            for contents in window.add(read):
                subject = Subject(contents.height, str(contents.height))
                outcome = _with_tables(reader, outcome_of(subject, contents))
                yield _Read(outcome, feed.head)


def _read_rules(feed: DocumentFeed, ledger: Ledger, header: BlockHeader) -> None:
    """Read the protocol's rules at a block; requests without a response are repeated."""
    while True:
        try:
            read_rules(ledger, header)
        except LedgerError as error:
            feed.wait_after(error)
        else:
            return


def _with_tables(reader: DocumentReader, outcome: Outcome) -> Outcome:
    """Build the tables of a block; raise the error of one that contradicts an earlier one."""
    value = outcome.value
    if isinstance(value, DocumentContents):
        header, tables = value.document.block.header, reader.tables([outcome])
        return outcome._replace(value=_Contents(header, tables, value.size, value.waiting))
    if outcome.subject.problem is None:
        raise value
    return outcome


def _limited(target: Target, reads: Iterator[_Read]) -> Iterator[_Read]:
    """Yield heights up to the target."""
    n_blocks = 0
    for read in reads:
        height, value = read.outcome.subject.position, read.outcome.value
        is_block = isinstance(value, _Contents)
        if target.is_reached(height, value.header.time_ns if is_block else None):
            return
        n_blocks += is_block
        yield read
        if n_blocks == target.max_blocks or target.is_reached(height + 1, None):
            return


# Storing ----------------------------------------------------------------------------------


class _BuiltTables(DocumentReader):
    """The tables of blocks, which are built already."""

    def tables(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        """Concatenate the tables of blocks."""
        contents = [value for _, value in outcomes if isinstance(value, _Contents)]
        return {view: _concatenated(view, contents) for view in self._views}


def _concatenated(view: str, contents: Sequence[_Contents]) -> Any:
    """Concatenate a table of blocks."""
    empty = arrow_tables.schema(manifests.schema_name(view)).empty_table()
    return arrow.library().concat_tables([empty, *(item.tables[view] for item in contents)])


@contextmanager
def _storing(options: Options, folder: Folder) -> Iterator[_Store]:
    """Open the collection in a folder to store blocks after those it has."""
    with folder.lock():
        manifest = manifests.open_manifest(folder, options.manifest)
        with manifests.marked_run(folder):
            commits = manifests.read_commits(folder)
            manifests.remove_uncommitted(folder, manifest, commits)
            job = Job(folder, DocumentReader(options.views))
            commits = [
                resuming.retry(job, options.ledger, commit, [WAITING])
                if resuming.count([commit], [WAITING])
                else commit
                for commit in commits
            ]
            with closing(_Store(options, folder, commits)) as store:
                yield store


class _Store:
    """
    A collection to which blocks are added at its end.

    Parameters
    ----------
    options
        What is followed.
    folder
        The folder of the collection.
    commits
        Its parts.
    """

    def __init__(self, options: Options, folder: Folder, commits: Sequence[Commit]) -> None:
        self._folder = folder
        self._commits = commits
        reader = _BuiltTables(options.views)
        self._writer = PartWriter(Job(folder, reader, part_bytes=PART_BYTES))

    @property
    def stop(self) -> int | None:
        """The height after the last one that is stored; None if there is none."""
        return self._commits[-1].stop if self._commits else None

    def last_block(self) -> Link | None:
        """Return the last block that is stored, if a table has it."""
        schema = arrow_tables.schema("blocks")
        for commit in reversed(self._commits):
            if "blocks" in commit.files:
                blocks = read_table(self._folder, commit, "blocks", schema)
                heights, hashes = blocks["block_height"], blocks["block_hash"]
                return Link(heights[-1].as_py(), hashes[-1].as_py())
        return None

    def add(self, outcome: Outcome) -> None:
        """Add the next height."""
        for _ in self._writer.add([outcome]):
            pass

    def close(self) -> None:
        """Store what was added; the collection is then finished, up to its last block."""
        with closing(self._writer):
            self._writer.finish()
        commits = manifests.read_commits(self._folder)
        n_subjects = sum(commit.stop - commit.start for commit in commits)
        manifests.write_finished(self._folder, n_subjects, utc_now())
