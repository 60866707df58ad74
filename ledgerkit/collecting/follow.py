"""The verb `follow`: the blocks of a chain as they are produced, one after another."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from ledgerkit import client, validation
from ledgerkit.block_data.headers import final_header
from ledgerkit.collecting import manifests, storage
from ledgerkit.collecting.collect_blocks import blocks_manifest, resolve_height
from ledgerkit.collecting.following import FollowedBlock, Options, Target, follow_blocks
from ledgerkit.errors import InvalidRequestError
from ledgerkit.progress import Line, NoLine

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from os import PathLike
    from types import TracebackType

    import pandas as pd

    from ledgerkit.ledger import Ledger
    from ledgerkit.validation import BlockReference

T = TypeVar("T")
_MOST_BLOCKS = 10**15


@overload
def follow(  # type: ignore[overload-overlap]  # the name of one view, a text, is no list of names
    start: object,
    views: str,
    *,
    out: str | PathLike[str] | None = None,
    max_blocks: int | None = None,
    until: object = None,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Following[pd.DataFrame]: ...
@overload
def follow(  # type: ignore[overload-overlap]  # as above
    start: object = "final",
    *,
    views: str,
    out: str | PathLike[str] | None = None,
    max_blocks: int | None = None,
    until: object = None,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Following[pd.DataFrame]: ...
@overload
def follow(
    start: object = "final",
    views: Iterable[str] = ("blocks", "transactions"),
    *,
    out: str | PathLike[str] | None = None,
    max_blocks: int | None = None,
    until: object = None,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Following[FollowedBlock]: ...
def follow(
    start: object = "final",
    views: str | Iterable[str] = ("blocks", "transactions"),
    *,
    out: str | PathLike[str] | None = None,
    max_blocks: int | None = None,
    until: object = None,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Following[FollowedBlock] | Following[pd.DataFrame]:
    """
    Follow the chain: an iterator of its final blocks, each once and in order, as they come.

    It waits at the head of the chain, repeats requests that fail, and checks that each block
    follows on the one before, so that no block is left out. A height without a block is passed
    over once the next block proves that the chain skipped it. Old blocks are read in archives
    of ten until the head is reached.

    Parameters
    ----------
    start
        The first block: a height, a block hash, a finality name or a time. A folder that has
        blocks is continued after its last one instead.
    views
        What to read: some of ``blocks``, ``chunks``, ``transactions``, ``outcomes``,
        ``actions``, ``balances`` and ``data_receipts``, which come with their block; and of
        ``receipts``, ``events`` and ``transfers``, those of the transactions that the block
        includes. With these a block comes once their receipts have run, a few blocks later.
        The name of one view yields its frames alone.
    out
        A folder to store the blocks in as well, as `collect_blocks` does: a new one, or one
        with a collection of the same views, which is continued after its last block.
    max_blocks
        Number of blocks after which to stop; None is without end.
    until
        Where to stop: the height, block hash or finality name of a block, or a time. That
        block, or the first one at or after that time, is not read any more.
    progress
        Whether to show the last block, and how far behind the head it is, while waiting.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    blocks
        An iterator of `FollowedBlock`, a mapping of a frame to each view; for the name of one
        view of its frames, whose ``attrs`` have ``block_height`` and ``behind``, the number of
        heights up to the head. Closing it stores what has been yielded, as do Ctrl-C and the
        end of the process.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, `out` is of another run, or the network has no block
        documents; and from the iterator when the ledger is closed.
    AuthError
        If the host refuses the API key.
    TransportError
        From the iterator, if there is no usable response for ten minutes.
    UnmatchedResponseError
        If the last final block is of another network than the node; and from the iterator if a
        block does not follow on the one before: it is of another chain.
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
    Source: block documents: GET /v0/block/{height}, /v0/last_block/final, and archives; for
    ``receipts`` and ``transfers`` EXPERIMENTAL_protocol_config, once an epoch.

    A receipt can wait for data for 200 blocks, and longer on congested shards. Once the
    documents that wait for it have 64 MiB, its block comes with the rows known so far, and its
    attribute ``waiting`` says so. In `out` such a block is a row of ``errors`` of kind
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
    base = client.current(ledger)
    if max_blocks is not None:
        validation.integer(max_blocks, "max_blocks", least=1, most=_MOST_BLOCKS)
    folder = None if out is None else storage.folder(out)
    manifest = blocks_manifest(base, "documents", views)
    first = validation.block_reference(start, "start")
    target = _target(base, until, max_blocks)
    is_stored = False
    if folder is not None:
        manifests.check_same_run(folder, manifest)
        is_stored = bool(manifests.read_commits(folder))
    options = Options(
        ledger=base,
        views=manifest.views,
        start=0 if is_stored else _first_height(base, first),
        target=target,
        line=Line() if progress else NoLine(),
        manifest=manifest,
        folder=folder,
    )
    steps = follow_blocks(options)
    path = "" if folder is None else folder.filesystem_path("")
    if isinstance(views, str):
        return Following(_frames(steps, manifest.views[0]), path)
    return Following(steps, path)


def _target(ledger: Ledger, until: object, max_blocks: int | None) -> Target:
    """Return where to stop; a block is resolved to its height."""
    if until is None:
        return Target(max_blocks=max_blocks)
    reference = validation.block_reference(until, "until")
    if reference.timestamp_ns is not None:
        return Target(time_ns=reference.timestamp_ns, max_blocks=max_blocks)
    return Target(height=resolve_height(ledger, reference), max_blocks=max_blocks)


def _first_height(ledger: Ledger, start: BlockReference) -> int:
    """Return the height of a block; the last final one is that of the block documents."""
    if start.params == {"finality": "final"}:
        return final_header(ledger).height
    return resolve_height(ledger, start)


def _frames(
    blocks: Generator[FollowedBlock, None, None], view: str
) -> Generator[pd.DataFrame, None, None]:
    """Yield the frame of one view of each block."""
    try:
        for block in blocks:
            yield block[view]
    finally:
        blocks.close()


def _close(steps: Generator[Any, None, None]) -> None:
    """Close a generator, unless another thread runs it."""
    with suppress(ValueError):
        steps.close()


# The iterators that are open, by folder: the traceback of an interrupted loop keeps its own alive.
_open: weakref.WeakValueDictionary[str, Following[Any]] = weakref.WeakValueDictionary()
_superseded: weakref.WeakSet[Following[Any]] = weakref.WeakSet()


def _replace_open(folder: str, new: Following[Any]) -> None:
    """Close the iterator that stores in a folder, unless another thread runs it."""
    earlier = _open.get(folder)
    if earlier is not None:
        with suppress(ValueError):  # it is running, and so the folder is locked
            earlier.close()
            _superseded.add(earlier)
    _open[folder] = new


class Following(Iterator[T], Generic[T]):
    """
    The iterator that `follow` returns.

    Parameters
    ----------
    steps
        Yields the blocks.
    folder
        The path of the folder that they are stored in; empty if they are not.

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
            _replace_open(folder, self)

    def __next__(self) -> T:
        if self in _superseded:
            msg = "a later call of follow() continues the folder of this one"
            raise InvalidRequestError(
                msg, remedy="Use the iterator of the later call.", field="out"
            )
        return next(self._steps)

    def close(self) -> None:
        """
        Stop, and store the blocks that were yielded; calling it again does nothing.

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
