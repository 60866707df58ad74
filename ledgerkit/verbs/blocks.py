"""Verbs about blocks: headers, chunks, transactions, changes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from ledgerkit import client, intervals, validation
from ledgerkit.api import rpc
from ledgerkit.api.models.block_documents import BlockDocument
from ledgerkit.block_data.headers import NodeHeaders, Skipped, final_header
from ledgerkit.block_data.node_blocks import read_node_blocks
from ledgerkit.block_data.reading import LOOK_AHEAD, DocumentRead, read_documents
from ledgerkit.block_data.verified_documents import HeaderChecks, Headers
from ledgerkit.errors import (
    InvalidRequestError,
    LedgerError,
    ProofNotReadyError,
    UnknownBlockError,
)
from ledgerkit.frames import chain as chain_frames
from ledgerkit.ledger import Ledger, newest_block_in_errors
from ledgerkit.progress import Bar
from ledgerkit.verbs.declaring import verb
from ledgerkit.verbs.fetching import sourced_frame

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.models import chain
    from ledgerkit.block_data.node_blocks import NodeRead

    Reads = Generator[NodeRead | DocumentRead, None, None]

_MAX_BLOCKS = 100_000
_BATCH = 64  # blocks
_LATER = 4  # heights after a range that are read at once; usually the first block proves it


@verb
def block(at: object = "final", *, ledger: Ledger | None = None) -> pd.DataFrame:
    """
    Return the header of one block.

    Parameters
    ----------
    at
        A height, block hash, finality name or time. A time is the last final block at or
        before it.

    Returns
    -------
    block
        One row, typed as `schema("blocks")`.

    Raises
    ------
    UnknownBlockError
        If the block does not exist: its height was skipped, or not reached yet.

    Notes
    -----
    Source: block.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> block = lk.block("2026-08-01T00:00:20")
    >>> block[["block_height", "time", "author", "chunks_included"]]
       block_height                          time             author  chunks_included
    0     180000033 2026-08-01 00:00:19.800+00:00  north.poolv1.near                9
    """
    ledger = client.current(ledger)
    response = ledger.send(rpc.block(ledger.locate(at)))
    return sourced_frame(ledger, lambda: chain_frames.blocks([response]), "block")


@verb
def blocks(
    start: object,
    stop: object = None,
    *,
    source: Literal["rpc", "documents", "indexer_rpc"] = "rpc",
    verify: bool = False,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> pd.DataFrame:
    """
    Return the headers of the blocks from `start` to before `stop`.

    Parameters
    ----------
    source
        The source: ``"rpc"``, a node, with a small request for each height; ``"documents"``, the
        block documents, final blocks only, ten whole documents in a request; or
        ``"indexer_rpc"``, block documents from a node of your own, which has to serve them.
    verify
        Recompute the hash of each header, and check that it names the block before it, that its
        author signed it, and that validators with more than two thirds of the stake approved it,
        which the blocks after it show. The header of the last block before an epoch commits to the
        epoch's validators. `gas_used` and `gas_limit` are not covered.

    Returns
    -------
    blocks
        One row per block in order of height, typed as `schema("blocks")`. Skipped
        heights have no row. With `verify`, ``attrs["proved"]`` is ``"signed"``.

    Raises
    ------
    UnknownBlockError
        If a height has no block, and the blocks around it do not prove that it was
        skipped.
    InvalidRequestError
        If an argument is malformed, or the interval is longer than 100,000 heights.
    ProofError
        With `verify`: if a block is not what its hash commits to, or is not linked or approved.
    ProofNotReadyError
        With `verify`: if the chain has no later block yet that approves the last one.
    LedgerError
        If a block could not be read.

    Notes
    -----
    Source: block, one request per height, and with `verify` EXPERIMENTAL_validators_ordered; or the
    archives of block documents, with /v0/block and /v0/last_block/final; or
    EXPERIMENTAL_indexer_block.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> blocks = lk.blocks(180000032, 180000035)
    >>> blocks[["block_height", "time", "chunks_included", "gas_used"]]
       block_height                          time  chunks_included        gas_used
    0     180000032 2026-08-01 00:00:19.200+00:00                9               0
    1     180000033 2026-08-01 00:00:19.800+00:00                9   5578990594775
    2     180000034 2026-08-01 00:00:20.400+00:00                9  40972688468776
    """
    ledger = client.current(ledger)
    ends = intervals.parse(start, stop, needs_start=True)
    validation.flag(verify, "verify")
    validation.flag(progress, "progress")
    validation.one_of(source, "source", validation.BLOCK_SOURCES)
    final = final_header if source == "documents" else lambda ledger: NodeHeaders(ledger).final()
    heights = intervals.final_blocks(ledger, ends, lambda: final(ledger).height)
    if len(heights) > _MAX_BLOCKS:
        rule = f"a block up to {_MAX_BLOCKS:,} heights after start, which is {heights.start}"
        raise InvalidRequestError.refuse("stop", heights.stop if stop is None else stop, rule)
    checks = HeaderChecks(Headers(ledger)) if verify else None
    read: Callable[[range], Reads]
    read = partial(read_node_blocks, ledger, size=_BATCH, whole=verify)
    if source != "rpc":
        read = partial(read_documents, ledger, source=source, whole=verify)
    existing = _existing_blocks(ledger, read, heights, checks, progress=progress)
    proved = {"proved": "signed"} if verify else {}
    return sourced_frame(ledger, lambda: chain_frames.blocks(existing), "block", **proved)


def _existing_blocks(
    ledger: Ledger,
    read: Callable[[range], Reads],
    heights: range,
    checks: HeaderChecks | None,
    *,
    progress: bool,
) -> list[chain.Block]:
    """Return the blocks at heights, each checked with its predecessor; raise the first error."""
    blocks: list[chain.Block] = []
    with (
        newest_block_in_errors(ledger),
        Bar(desc="blocks", total=len(heights), disable=not progress) as tracker,
        closing(read(heights)) as reads,
    ):
        for height, value, *_ in reads:
            block = _block_of(value)
            if block is not None:
                blocks.append(block)
                if checks is not None:
                    checks.add(block)
            elif checks is not None:
                checks.skip(height)
            tracker.update(1)
        if checks is not None and heights:
            last = heights.stop - 1
            if not any(checks.add(block) for block in _later_blocks(read, heights.stop)):
                text = f"no later block shows that block {last} is approved"
                raise ProofNotReadyError(text=text, block_height=last)
    return blocks


def _block_of(value: BlockDocument | chain.Block | Skipped | LedgerError) -> Any:
    """Return the block of a reading; None for a skipped height."""
    if isinstance(value, LedgerError):
        raise value
    if isinstance(value, Skipped):
        return None
    return value.block if isinstance(value, BlockDocument) else value


def _later_blocks(read: Callable[[range], Reads], stop: int) -> Iterator[Any]:
    for start in range(stop, stop + LOOK_AHEAD, _LATER):
        with closing(read(range(start, start + _LATER))) as reads:
            for _, value, *_ in reads:
                if isinstance(value, UnknownBlockError):
                    return
                block = _block_of(value)
                if block is not None:
                    yield block


@verb
def chunks(
    at: object = "final",
    *,
    shard_id: int | None = None,
    chunk_id: str | None = None,
    ledger: Ledger | None = None,
) -> pd.DataFrame:
    """
    Return the chunk headers of a block, or one chunk.

    Parameters
    ----------
    shard_id
        Read only the chunk of this shard, with the numbers of its transactions and receipts,
        which a block does not have.
    chunk_id
        The hash of a chunk to read in the same way, instead of `at` and `shard_id`.

    Returns
    -------
    chunks
        One row per shard, in the block's order, typed as `schema("chunks")`.

    Raises
    ------
    InvalidRequestError
        If both `chunk_id` and `shard_id` are passed, or an argument is malformed.
    LedgerError
        If the block or the chunk could not be read.

    Notes
    -----
    Source: block; with `shard_id` also chunk, with `chunk_id` only chunk.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> chunks = lk.chunks(180000034)
    >>> chunks[["shard_id", "height_included", "gas_used", "gas_limit"]].head(3)
       shard_id  height_included       gas_used         gas_limit
    0        10        180000034              0  1000000000000000
    1        11        180000034  7282665385072  1000000000000000
    2         1        180000034              0  1000000000000000
    >>> chunk = lk.chunks(180000034, shard_id=11)
    >>> chunk[["block_height", "shard_id", "gas_used", "n_transactions", "n_receipts"]]
       block_height  shard_id       gas_used  n_transactions  n_receipts
    0     180000034        11  7282665385072               0           6
    """
    ledger = client.current(ledger)
    if chunk_id is not None and shard_id is not None:
        rule = "either a chunk's hash alone, or shard_id= with at="
        raise InvalidRequestError.refuse("chunk_id", chunk_id, rule)
    rows: list[tuple[int | None, chain.ChunkHeader, chain.Chunk | None]]
    if chunk_id is not None:
        content = ledger.send(rpc.chunk(validation.crypto_hash(chunk_id, "chunk_id")))
        rows = [(None, content.header, content)]
    elif shard_id is not None:
        shard = validation.integer(shard_id, "shard_id", most=2**64 - 1)
        height, block_hash = ledger.pin(at)
        content = ledger.send(rpc.chunk_of(block_hash, shard))
        rows = [(height, content.header, content)]
    else:
        rows = chain_frames.chunk_rows(ledger.send(rpc.block(ledger.locate(at))), [])
    source = "block" if chunk_id is None and shard_id is None else "chunk"
    return sourced_frame(ledger, lambda: chain_frames.chunks(rows), source)


@verb
def transactions(
    at: object = "final", *, progress: bool = True, ledger: Ledger | None = None
) -> pd.DataFrame:
    """
    Return all transactions that a block includes.

    Returns
    -------
    transactions
        One row per transaction or other item of a chunk (see `kind`), in the block's order of
        shards, typed as `schema("transactions")`.

    Raises
    ------
    LedgerError
        If the block or one of its chunks could not be read.

    Notes
    -----
    Source: block, then chunk for each chunk that is new in the block.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> frame = lk.transactions(180000032)
    >>> frame[["signer_id", "receiver_id", "method_name", "deposit"]].tail(3)
           signer_id   receiver_id  method_name                    deposit
    11     nick.near  factory.near       create  3000000000000000000000000
    12  mallory.near    async.near      fan_out                          0
    13      uma.near     gold.near  ft_transfer                          1
    """
    validation.flag(progress, "progress")
    ledger = client.current(ledger)
    block = ledger.send(rpc.block(ledger.locate(at)))
    head = block.header
    calls = [rpc.chunk(header.chunk_hash) for header in block.new_chunks()]
    contents = ledger.send_many(calls, progress=progress, label="chunks")
    return sourced_frame(
        ledger,
        lambda: chain_frames.transactions([(head.height, chunk) for chunk in contents]),
        "chunk",
        block_height=head.height,
        block_hash=head.hash,
    )


@verb
def changes(
    account_ids: str | Iterable[str],
    kind: str = "account_changes",
    *,
    at: object = "final",
    prefix: bytes = b"",
    public_key: str | None = None,
    ledger: Ledger | None = None,
) -> pd.DataFrame:
    """
    Return the state changes that one block made to accounts.

    Parameters
    ----------
    kind
        ``account_changes``, ``all_access_key_changes``, ``contract_code_changes``,
        ``data_changes`` or ``single_access_key_changes``.
    at
        The block: a height, block hash, finality name or time.
    prefix
        For ``data_changes``: only storage keys that begin with these bytes.
    public_key
        For ``single_access_key_changes``: the access key.

    Returns
    -------
    changes
        One row per change, typed as `schema("changes")`.

    Notes
    -----
    Source: EXPERIMENTAL_changes.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> changes = lk.changes("bob.near", at=180000005)
    >>> changes[["type", "account_id", "cause"]]
                 type account_id               cause
    0  account_update   bob.near  receipt_processing
    >>> changes["change"][0]["amount"]
    '454949081001468195500000000'
    """
    kinds = "account_changes", "all_access_key_changes", "contract_code_changes"
    validation.one_of(kind, "kind", (*kinds, "data_changes", "single_access_key_changes"))
    account_ids = validation.account_ids(account_ids)
    params: dict[str, Any] = {"account_ids": account_ids}
    for name, value, only in (
        ("prefix", prefix, "data_changes"),
        ("public_key", public_key, "single_access_key_changes"),
    ):
        if value and kind != only:
            raise InvalidRequestError(f'{name}= needs kind="{only}"', field=name, value=value)
    if kind == "data_changes":
        params["key_prefix_base64"] = rpc.base64_text(validation.raw_bytes(prefix, "prefix"))
    elif kind == "single_access_key_changes":
        key = validation.public_key(public_key)
        params = {"keys": [{"account_id": name, "public_key": key} for name in account_ids]}
    ledger = client.current(ledger)
    response = ledger.send(rpc.changes(kind, ledger.locate(at), params))
    return sourced_frame(
        ledger,
        lambda: chain_frames.changes(response),
        "EXPERIMENTAL_changes",
        block_hash=response.block_hash,
    )
