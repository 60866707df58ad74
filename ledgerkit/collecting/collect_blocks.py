"""The verb `collect_blocks`: the blocks of a range of heights to a Parquet dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from ledgerkit import client, intervals, validation
from ledgerkit.api import rpc
from ledgerkit.block_data.archives import HEIGHTS_PER_ARCHIVE
from ledgerkit.block_data.headers import NodeHeaders, final_header
from ledgerkit.block_data.reading import LOOK_AHEAD
from ledgerkit.collecting import manifests
from ledgerkit.collecting.account_sources import Subject, height_subject
from ledgerkit.collecting.blocks import BlockReader, DocumentReader
from ledgerkit.collecting.run import Options, Planning, Run, Running
from ledgerkit.errors import InvalidRequestError
from ledgerkit.frames import collected
from ledgerkit.frames.collected import TRACED
from ledgerkit.verbs.declaring import shared_parameters, with_options

if TYPE_CHECKING:
    from ledgerkit.api.models.chain import BlockHeader
    from ledgerkit.collecting.collection import Collection
    from ledgerkit.collecting.manifests import Commit, Manifest
    from ledgerkit.collecting.plan import Plan
    from ledgerkit.collecting.storage import Folder
    from ledgerkit.intervals import Ends
    from ledgerkit.ledger import Ledger

BlockSource = Literal["documents", "rpc", "indexer_rpc"]


@overload
def collect_blocks(
    start: object,
    stop: object = None,
    views: str | Iterable[str] | None = None,
    out: str | PathLike[str] | None = None,
    *,
    source: BlockSource | None = None,
    verify: bool = False,
    workers: int | None = None,
    **options: Unpack[Running],
) -> Collection: ...
@overload
def collect_blocks(
    start: object,
    stop: object = None,
    views: str | Iterable[str] | None = None,
    out: str | PathLike[str] | None = None,
    *,
    source: BlockSource | None = None,
    verify: bool = False,
    workers: int | None = None,
    **options: Unpack[Planning],
) -> Plan: ...
@shared_parameters
@with_options(Options)
def collect_blocks(
    start: object,
    stop: object = None,
    views: str | Iterable[str] | None = None,
    out: str | PathLike[str] | None = None,
    *,
    source: BlockSource | None = None,
    verify: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Collection | Plan:
    """
    Read the final blocks from `start` to before `stop`, and their contents, into a Parquet dataset.

    Blocks are read from the block documents, in archives of ten blocks per request, or from a
    node, as whole blocks or with many requests per block; all give the same rows. The run can be
    killed at any moment: the same call continues it, without losing or repeating a row.

    A height that is not complete in all tables is a row of the table ``errors``. Its kind is
    ``failed`` if the block or a part of it could not be read, and ``skipped`` if the chain has no
    block there, as the parent of the next block shows. Its kind is ``waiting`` if transactions of
    the block are not final in time, for example because a receipt waits for data. The tables then
    have the rows known so far, and each later call over this height reads it again until it is
    complete. Other ranges, wider or elsewhere, can be added to the same folder.

    Parameters
    ----------
    views
        What to read: some of ``blocks``, ``chunks``, ``transactions``, ``receipts``, ``events``,
        ``transfers`` and ``intents``; from whole blocks also ``outcomes`` and ``actions`` (of
        all receipts that a block executed), ``balances`` and ``data_receipts``. None reads
        all views that the source has.
    out
        The folder to write to: a new one, or one with a run of the same views to continue; or
        an fsspec address.
    source
        ``"documents"`` (one request per ten heights), or ``"rpc"``: one request per height, one
        more per new chunk, and for the four views after ``transactions`` one more per transaction.
        ``"indexer_rpc"`` reads whole blocks from a node of your own, which has to serve them and
        to track all shards: two requests per height. None is documents if the network has them.
    verify
        Store only proved blocks: whole headers are hashed and linked, validators with more than
        two thirds of the stake approved them, and they commit to all outcomes of a block. A height
        that is not proved is a ``failed`` row of ``errors``. It needs whole blocks, which
        ``source="rpc"`` lacks, and a node for the validators of each epoch.
    workers
        Number of processes of this machine to read and write with; they share the rate. It needs
        ``ledgerkit[dask]``; in a script, call it below ``if __name__ == "__main__":``.
    resume
        Whether to continue a collection in `out`.
    retry_failed
        Whether to request heights again that failed before, in the stored parts that the
        range overlaps.
    dry_run
        Whether to only print what would be done. The final block and the blocks that `start` and
        `stop` refer to are requested even so.
    part_size
        Maximum number of heights in one set of files. A part is stored when it is full or a
        minute old, so a killed run loses at most a minute.

    Returns
    -------
    collection
        The same as `open_collection` returns; with ``dry_run=True`` a `Plan`. Receipts, events,
        transfers and intents belong to the transactions that the range includes, whichever block
        the receipts ran in. ``finished`` is True if the last call reached the end of its range;
        heights that are not complete are then rows of ``errors``.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, a height is not final yet, or `out` is of another run.
    AuthError
        If the host refuses the API key.
    RateLimitedError
        If every request is rate limited for ten minutes.
    UnmatchedResponseError
        If the block documents are of another network than the node.
    UnavailableShardError
        If the node of ``source="indexer_rpc"`` does not track all shards.
    TransportError
        If 64 heights in a row have no usable response, or 10 requests none at all; responses
        before that are stored.
    FileError
        If a file cannot be written.

    Warns
    -----
    UserWarning
        If heights could not be read, or are waiting.

    Notes
    -----
    Source: the block documents, as archives or GET /v0/block/{height}, with
    EXPERIMENTAL_protocol_config for each epoch, and with `verify` also
    EXPERIMENTAL_validators_ordered and block; or block; chunk; tx_status, on older nodes
    EXPERIMENTAL_tx_status, with block for heights and times and EXPERIMENTAL_protocol_config for
    shards; or block and EXPERIMENTAL_indexer_block, with EXPERIMENTAL_receipt_to_tx for receipts
    of transactions before the range.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> run = lk.collect_blocks(180000030, 180000035, "transactions", "blocks")
    >>> run
    <Collection blocks of local: finished, 5 ok>
    >>> run.pandas("transactions")["signer_id"].value_counts().head(2)
    signer_id
    mallory.near    4
    nick.near       3
    Name: count, dtype: int64
    """
    checked = Options(**options)
    base = client.current(checked.ledger)
    manifest = blocks_manifest(base, _choose_source(base, source), views, verify=verify)
    run = BlockRun(manifest, intervals.parse(start, stop, needs_start=True), workers)
    return run.start(base, out, checked)


def _choose_source(ledger: Ledger, source: str | None) -> str:
    """Return the source; raise if the network does not have it."""
    has_documents = ledger.network.address("blocks") is not None
    if source is None:
        return "documents" if has_documents else "rpc"
    validation.one_of(source, "source", validation.BLOCK_SOURCES)
    if source == "documents" and not has_documents:
        expected = "a network with block documents: pass blocks_url= to connect()"
        raise InvalidRequestError.refuse("source", source, expected)
    return source


def blocks_manifest(
    ledger: Ledger, source: str, views: str | Iterable[str] | None, *, verify: bool = False
) -> Manifest:
    """Return the manifest of the run; raise if the source lacks a view or can't be verified."""
    validation.flag(verify, "verify")
    if verify and (source == "rpc" or ledger.network.address("rpc") is None):
        expected = 'False, or source="documents" and a network with a JSON-RPC endpoint'
        raise InvalidRequestError.refuse("verify", verify, expected)
    available = collected.NODE_VIEWS if source == "rpc" else collected.VIEWS["blocks"]
    names = validation.subset_of(
        available if views is None else views, "views", collected.VIEWS["blocks"]
    )
    for name in names:
        if name not in available:
            expected = f"some of {', '.join(available)}, which are those of source={source!r}"
            raise InvalidRequestError.refuse("views", name, expected, choices=available)
    return manifests.new_manifest(
        "blocks", ledger.network.name, names, source=source, verified=verify
    )


def read_final(ledger: Ledger, source: str) -> BlockHeader:
    """
    Read the header of a source's last final block.

    Raises `UnmatchedResponseError` for documents of another network, and `UnavailableShardError`
    for a node without all shards.
    """
    if source == "documents":
        return final_header(ledger)
    header = NodeHeaders(ledger).final()
    if source == "indexer_rpc":
        ledger.send(rpc.indexer_block(header.hash))  # raises at once if the node does not serve it
    return header


class BlockRun(Run):
    """The run of `collect_blocks`: the heights of an interval."""

    def __init__(self, manifest: Manifest, ends: Ends, workers: int | None) -> None:
        self._manifest, self._ends, self.workers = manifest, ends, workers

    def manifest(self, ledger: Ledger, folder: Folder) -> Manifest:  # noqa: ARG002 - the arguments were checked
        return self._manifest

    def open(self, ledger: Ledger, manifest: Manifest) -> BlockReader | DocumentReader:
        """Resolve the heights of the range; raise if one of them is not final."""
        head = read_final(ledger, manifest.source).height
        self.span = intervals.final_blocks(ledger, self._ends, lambda: head)
        if self.span.stop > head + 1:
            expected = f"at most {head + 1}: the last final block is {head}"
            name = "stop" if self.span else "start"
            raise InvalidRequestError.refuse(name, self.span.stop, expected)
        self.total = len(self.span)
        self.retry_limit_position = head - LOOK_AHEAD
        if manifest.source == "rpc":
            return BlockReader(manifest.views)
        return DocumentReader(manifest.views, manifest.source, verify=manifest.verified)

    def request(self, manifest: Manifest) -> tuple[str, int]:
        if manifest.source == "documents":
            return "archive of ten blocks", HEIGHTS_PER_ARCHIVE
        if manifest.source == "indexer_rpc":
            return "block; one EXPERIMENTAL_indexer_block for each block", 1
        requests = ["block"]
        if manifest.views != ["blocks"]:
            requests.append("one chunk for each new chunk of a block")
        if not set(TRACED).isdisjoint(manifest.views):
            requests.append("one tx_status for each transaction")
        return "; ".join(requests), 1

    def remaining(self, commits: Sequence[Commit]) -> Iterator[Subject]:
        return map(height_subject, chain.from_iterable(self.gaps(commits)))
