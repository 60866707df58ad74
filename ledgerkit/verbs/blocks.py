"""Verbs about blocks: headers, chunks, transactions, changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import client, validation
from ledgerkit.api import rpc
from ledgerkit.errors import InvalidRequestError, LedgerError, UnknownBlockError
from ledgerkit.frames import chain as tables
from ledgerkit.verbs.fetching import Ask, framed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from ledgerkit.api.models import chain
    from ledgerkit.client import Ledger

_MOST_BLOCKS = 100_000
_LOOK_AHEAD = 1_000


def block(at: object = "final", *, ledger: Ledger | None = None) -> pd.DataFrame:
    """
    Read one block.

    Parameters
    ----------
    at
        A height, a block hash, a finality name or a time (the last block then).
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    block
        One row, typed as `schema("blocks")`.

    Raises
    ------
    UnknownBlockError
        If there is no such block: its height was skipped, or is not here yet.
    InvalidRequestError
        If `at` is malformed; nothing was sent then.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: block.
    """
    asked = client.current(ledger)
    return framed(asked, lambda: tables.blocks([asked.send(rpc.block(asked.locate(at)))]), "block")


def blocks(
    start: int, stop: int, *, progress: bool = True, ledger: Ledger | None = None
) -> pd.DataFrame:
    """
    Read the blocks of a range of heights.

    Parameters
    ----------
    start
        The first height.
    stop
        The height after the last, as in `range`.
    progress
        Whether a bar shows.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    blocks
        One row a block in order of height, typed as `schema("blocks")`. Heights
        that the chain skipped have no row.

    Raises
    ------
    UnknownBlockError
        If a height has no block and its neighbours do not show that it was skipped.
    InvalidRequestError
        If the range is malformed or above 100,000 heights; nothing was sent then.
    LedgerError
        If a block could not be read.

    Notes
    -----
    Source: block, one call a height.
    """
    asked = client.current(ledger)
    first, last = validation.block_height(start, "start"), validation.block_height(stop, "stop")
    if not first <= last <= first + _MOST_BLOCKS:
        rule = f"from start ({first}) up to {_MOST_BLOCKS} heights above it"
        raise InvalidRequestError.refuse("stop", stop, rule)
    heights = range(first, last)
    calls = [rpc.block(validation.block_reference(height)) for height in heights]
    answers = Ask(asked, "collect", progress).send(calls, "blocks")
    found = _present(asked, dict(zip(heights, answers, strict=True)))
    return framed(asked, lambda: tables.blocks(found), "block")


def _present(asked: Ledger, answers: dict[int, chain.Block | LedgerError]) -> list[chain.Block]:
    """Leave out heights that were skipped, as the next block's parent proves."""
    found: list[chain.Block] = []
    gap: UnknownBlockError | None = None
    for answer in answers.values():
        if isinstance(answer, UnknownBlockError):
            gap = gap or answer
        elif isinstance(answer, LedgerError):
            raise answer
        else:
            if gap is not None and not _follows(answer, found, min(answers)):
                raise gap
            found.append(answer)
            gap = None
    if gap is not None:
        _check_tail(asked, answers, found, gap)
    return found


def _follows(block: chain.Block, found: Sequence[chain.Block], first: int) -> bool:
    """Tell whether nothing lies between a block and the one before it."""
    if found:
        return block.header.prev_hash == found[-1].header.hash
    return block.header.prev_height is not None and block.header.prev_height < first


def _check_tail(
    asked: Ledger,
    answers: dict[int, chain.Block | LedgerError],
    found: Sequence[chain.Block],
    gap: UnknownBlockError,
) -> None:
    """Find the next block above a range that ends in a gap, to prove the gap."""
    head = asked.send(rpc.block(validation.block_reference("final"))).header.height
    for height in range(max(answers) + 1, min(head, max(answers) + _LOOK_AHEAD) + 1):
        try:
            block = asked.send(rpc.block(validation.block_reference(height)))
        except UnknownBlockError:
            continue
        if _follows(block, found, min(answers)):
            return
        break
    raise gap


def chunk(
    chunk_id: str | None = None,
    *,
    at: object = None,
    shard_id: int | None = None,
    ledger: Ledger | None = None,
) -> pd.DataFrame:
    """
    Read one chunk, by its hash or by its block and shard.

    Parameters
    ----------
    chunk_id
        The chunk's hash.
    at
        Its block, beside `shard_id`: a height, a block hash, a finality name or a time.
    shard_id
        Its shard.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    chunk
        One row, typed as `schema("chunks")`.

    Raises
    ------
    InvalidRequestError
        If neither, or both, ways to name the chunk are used.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: chunk.
    """
    asked = client.current(ledger)
    if (chunk_id is None) == (shard_id is None):
        rule = "either a chunk's hash, or at= and shard_id="
        raise InvalidRequestError.refuse("chunk_id", chunk_id, rule)
    if shard_id is None:
        found = asked.send(rpc.chunk(validation.crypto_hash(chunk_id, "chunk_id")))
        height = None
    else:
        shard = validation.integer(shard_id, "shard_id", most=2**64 - 1)
        head = asked.send(rpc.block(asked.locate(at))).header
        found, height = asked.send(rpc.chunk_of(head.hash, shard)), head.height

    def frame() -> pd.DataFrame:
        return tables.chunks([found.header], block_height=height, contents=[found])

    return framed(asked, frame, "chunk")


def chunks(at: object = "final", *, ledger: Ledger | None = None) -> pd.DataFrame:
    """
    Read the chunk headers of a block.

    Parameters
    ----------
    at
        A height, a block hash, a finality name or a time.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    chunks
        One row a shard in the block's order, typed as `schema("chunks")`.

    Raises
    ------
    LedgerError
        If the block could not be read.

    Notes
    -----
    Source: block.
    """
    asked = client.current(ledger)
    found = asked.send(rpc.block(asked.locate(at)))
    return framed(
        asked, lambda: tables.chunks(found.chunks, block_height=found.header.height), "block"
    )


def transactions(
    at: object = "final", *, progress: bool = True, ledger: Ledger | None = None
) -> pd.DataFrame:
    """
    Read all transactions that a block includes.

    Parameters
    ----------
    at
        A height, a block hash, a finality name or a time.
    progress
        Whether a bar shows.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    transactions
        One row a transaction, by shard in the block's order, typed as
        `schema("transactions")`.

    Raises
    ------
    LedgerError
        If the block or one of its chunks could not be read.

    Notes
    -----
    Source: block, then chunk for each chunk that is new in it.
    """
    asked = client.current(ledger)
    head = asked.send(rpc.block(asked.locate(at)))
    height = head.header.height
    calls = [rpc.chunk(c.chunk_hash) for c in head.chunks if c.height_included == height]
    found = Ask(asked, "raise", progress).send(calls, "chunks")
    contents = [chunk for chunk in found if not isinstance(chunk, LedgerError)]
    read_at = {"block_height": height, "block_hash": head.header.hash}
    return framed(asked, lambda: tables.transactions(height, contents), "chunk", **read_at)


_ACCOUNT_CHANGES = ("account_changes", "all_access_key_changes", "contract_code_changes")


def changes(
    changes_type: str,
    ids: str | Iterable[str],
    *,
    at: object = "final",
    prefix: bytes = b"",
    public_key: str | None = None,
    ledger: Ledger | None = None,
) -> pd.DataFrame:
    """
    Read what one block changed of some accounts.

    Parameters
    ----------
    changes_type
        ``account_changes``, ``all_access_key_changes``, ``contract_code_changes``,
        ``data_changes`` or ``single_access_key_changes``.
    ids
        One account id or many.
    at
        The block: a height, a block hash, a finality name or a time.
    prefix
        For ``data_changes``: the keys to follow begin with it.
    public_key
        For ``single_access_key_changes``: the key to follow.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    changes
        One row a change, typed as `schema("changes")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was sent then.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: EXPERIMENTAL_changes.
    """
    kinds = (*_ACCOUNT_CHANGES, "data_changes", "single_access_key_changes")
    kind = validation.one_of(changes_type, "changes_type", kinds)
    many = validation.account_ids(ids)
    subject: dict[str, Any] = {"account_ids": many}
    if kind == "data_changes":
        subject["key_prefix_base64"] = rpc.base64_text(validation.raw_bytes(prefix, "prefix"))
    elif kind == "single_access_key_changes":
        key = validation.public_key(public_key)
        subject = {"keys": [{"account_id": one, "public_key": key} for one in many]}
    asked = client.current(ledger)
    found = asked.send(rpc.changes(kind, asked.locate(at), subject))
    source = "EXPERIMENTAL_changes"
    return framed(asked, lambda: tables.changes(found), source, block_hash=found.block_hash)
