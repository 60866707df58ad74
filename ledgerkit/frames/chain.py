"""Frames of blocks, chunks, transactions, state, validators and the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pandas as pd

from ledgerkit.api.models.transactions import Deposit, FunctionCall
from ledgerkit.errors import DecodeError
from ledgerkit.frames import amounts, build

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ledgerkit.api.models import chain, rest


def blocks(views: Sequence[chain.Block]) -> pd.DataFrame:
    """
    Tabulate blocks.

    Parameters
    ----------
    views
        Decoded blocks.

    Returns
    -------
    blocks
        One row a block, typed as `schema("blocks")`. Gas is summed over the chunks
        that are new in the block.

    Raises
    ------
    DecodeError
        If a price, supply or time is not decimal digits.

    Notes
    -----
    Source: block.
    """
    heads = [view.header for view in views]
    stamps = amounts.parse([head.timestamp_nanosec for head in heads], name="timestamp_nanosec")
    fresh = [[c for c in v.chunks if c.height_included == v.header.height] for v in views]
    return build.build_frame(
        "blocks",
        {
            "block_height": [head.height for head in heads],
            "block_hash": [head.hash for head in heads],
            "time": [  # old nodes send only the integer
                head.timestamp if stamp is pd.NA else stamp
                for head, stamp in zip(heads, stamps, strict=True)
            ],
            "author": [view.author for view in views],
            "prev_height": [head.prev_height for head in heads],
            "prev_hash": [head.prev_hash for head in heads],
            "epoch_id": [head.epoch_id for head in heads],
            "last_final_block": [head.last_final_block for head in heads],
            "n_chunks": [len(view.chunks) for view in views],
            "chunks_included": [head.chunks_included for head in heads],
            "gas_used": [sum(c.gas_used for c in some) for some in fresh],
            "gas_limit": [sum(c.gas_limit for c in some) for some in fresh],
            "gas_price": amounts.parse([head.gas_price for head in heads], name="gas_price"),
            "total_supply": amounts.parse([h.total_supply for h in heads], name="total_supply"),
            "protocol_version": [head.latest_protocol_version for head in heads],
        },
    )


def chunks(
    headers: Sequence[chain.ChunkHeader],
    *,
    block_height: int | None = None,
    contents: Sequence[chain.Chunk] | None = None,
) -> pd.DataFrame:
    """
    Tabulate chunks.

    Parameters
    ----------
    headers
        Their decoded headers.
    block_height
        The block they were read from.
    contents
        The chunks themselves, where they were read.

    Returns
    -------
    chunks
        One row a chunk, typed as `schema("chunks")`.

    Notes
    -----
    Source: chunk, or the chunk headers of block.
    """
    read: Sequence[chain.Chunk | None] = contents or [None] * len(headers)
    return chunks_of([(block_height, *both) for both in zip(headers, read, strict=True)])


def chunks_of(
    rows: Sequence[tuple[int | None, chain.ChunkHeader, chain.Chunk | None]],
) -> pd.DataFrame:
    """
    Tabulate chunks of any blocks.

    Parameters
    ----------
    rows
        The block each was read from, its header, and the chunk itself where it was read.

    Returns
    -------
    chunks
        One row a chunk, typed as `schema("chunks")`.

    Notes
    -----
    Source: the chunk headers of block, and chunk.
    """
    heights, headers = [height for height, _, _ in rows], [head for _, head, _ in rows]
    contents = [content for _, _, content in rows]
    return build.build_frame(
        "chunks",
        {
            "block_height": heights,
            "shard_id": [head.shard_id for head in headers],
            "chunk_hash": [head.chunk_hash for head in headers],
            "author": [c and c.author for c in contents],
            "is_new": [
                None if height is None else head.height_included == height
                for height, head in zip(heights, headers, strict=True)
            ],
            "height_created": [head.height_created for head in headers],
            "height_included": [head.height_included for head in headers],
            "gas_used": [head.gas_used for head in headers],
            "gas_limit": [head.gas_limit for head in headers],
            "balance_burnt": amounts.parse(
                [head.balance_burnt for head in headers], name="balance_burnt"
            ),
            "n_transactions": [c and len(c.transactions) for c in contents],
            "n_receipts": [c and len(c.receipts) for c in contents],
        },
    )


def transactions(block_height: int | None, contents: Sequence[chain.Chunk]) -> pd.DataFrame:
    """
    Tabulate the transactions of chunks.

    Parameters
    ----------
    block_height
        The block that includes the chunks; None where it is not known.
    contents
        The decoded chunks.

    Returns
    -------
    transactions
        One row a transaction, typed as `schema("transactions")`. A Delegate shows as
        such, with the methods that it relays.

    Raises
    ------
    DecodeError
        If an action's amount or gas is not as documented.

    Notes
    -----
    Source: chunk.
    """
    return transactions_of([(block_height, chunk) for chunk in contents])


def transactions_of(contents: Sequence[tuple[int | None, chain.Chunk]]) -> pd.DataFrame:
    """
    Tabulate the transactions of chunks of any blocks.

    Parameters
    ----------
    contents
        The decoded chunks, each with the height of the block that includes it.

    Returns
    -------
    transactions
        As `transactions` has them.

    Raises
    ------
    DecodeError
        If an action's amount or gas is not as documented.

    Notes
    -----
    Source: chunk.
    """
    rows = [
        (height, chunk.header.shard_id, tx)
        for height, chunk in contents
        for tx in chunk.transactions
    ]
    sent = [tx for _, _, tx in rows]
    actions = [[_named(action) for action in tx.actions] for tx in sent]
    calls = [list(_calls(some)) for some in actions]
    return build.build_frame(
        "transactions",
        {
            "block_height": [height for height, _, _ in rows],
            "shard_id": [shard_id for _, shard_id, _ in rows],
            "tx_hash": [tx.hash for tx in sent],
            "signer_id": [tx.signer_id for tx in sent],
            "receiver_id": [tx.receiver_id for tx in sent],
            "nonce": [tx.nonce for tx in sent],
            "public_key": [tx.public_key for tx in sent],
            "actions": ["+".join(name for name, _ in some) for some in actions],
            "method_name": ["+".join(c.method_name or "" for c in some) or None for some in calls],
            "deposit": [_deposit(some) for some in actions],
            "gas_attached": [sum(call.gas or 0 for call in some) for some in calls],
        },
    )


def _named(action: Any) -> tuple[str, Any]:
    """Read an action: a word, or an object of one member; unknown names are kept."""
    if isinstance(action, dict) and len(action) == 1:
        return next(iter(action.items()))
    return (action, {}) if isinstance(action, str) else ("Unknown", {})


def _calls(actions: Sequence[tuple[str, Any]]) -> Iterator[FunctionCall]:
    """Find the function calls, those that a Delegate relays too."""
    for name, payload in actions:
        if name == "FunctionCall":
            yield _read(payload, FunctionCall)
        elif name in ("Delegate", "DelegateV2"):
            yield from _calls([_named(action) for action in _relayed(payload)])


def _relayed(payload: Any) -> list[Any]:
    """List the actions inside a Delegate; the second version has them one member deeper."""
    inner = payload.get("delegate_action") if isinstance(payload, dict) else None
    inner = inner.get("V2", inner) if isinstance(inner, dict) else None
    actions = inner.get("actions") if isinstance(inner, dict) else None
    return actions if isinstance(actions, list) else []


_MOVING = ("FunctionCall", "Transfer", "DeterministicStateInit", "TransferToGasKey")


def _deposit(actions: Sequence[tuple[str, Any]]) -> int:
    """Add up the tokens that a transaction moves."""
    sent = [_read(payload, Deposit).deposit for name, payload in actions if name in _MOVING]
    texts = [text for text in sent if text is not None]
    return sum(amounts.plain(texts) or amounts.parse(texts, name="deposit"))


def _read(payload: Any, kind: Any) -> Any:
    """Read an action's members."""
    try:
        return msgspec.convert(payload, kind)
    except msgspec.ValidationError as error:
        problem = error
    raise DecodeError(f"an action is not as documented: {problem}", path="actions")


def status(view: chain.Status) -> pd.DataFrame:
    """
    Tabulate a node's status.

    Parameters
    ----------
    view
        The decoded status.

    Returns
    -------
    status
        One row, typed as `schema("status")`.

    Notes
    -----
    Source: status.
    """
    sync = view.sync_info
    row = {
        "chain_id": view.chain_id,
        "latest_block_height": sync.latest_block_height,
        "latest_block_hash": sync.latest_block_hash,
        "latest_block_time": _rfc3339_ns(sync.latest_block_time),
        "syncing": sync.syncing,
        "earliest_block_height": sync.earliest_block_height,
        "epoch_id": sync.epoch_id,
        "epoch_start_height": sync.epoch_start_height,
        "protocol_version": view.protocol_version,
        "latest_protocol_version": view.latest_protocol_version,
        "version": view.version.version,
        "n_validators": len(view.validators),
    }
    return build.build_frame("status", {name: [value] for name, value in row.items()})


def _rfc3339_ns(text: str) -> int:
    """Read a time with nanoseconds, exactly."""
    try:
        time = pd.Timestamp(text)
        return (time if time.tzinfo else time.tz_localize("UTC")).as_unit("ns").value
    except ValueError:
        problem = f"latest_block_time {text[:60]!r} is not a time"
    raise DecodeError(problem, path="$.sync_info.latest_block_time")


def indexer_status(view: rest.IndexerStatus) -> pd.DataFrame:
    """
    Tabulate the indexer's status.

    Parameters
    ----------
    view
        The decoded status.

    Returns
    -------
    status
        One row, typed as `schema("indexer_status")`.

    Notes
    -----
    Source: GET /status.
    """
    stamp = amounts.parse([view.sync_block_timestamp_nanosec], name="sync_block_timestamp_nanosec")
    row = {
        "version": view.version,
        "sync_block_height": view.sync_block_height,
        "sync_block_time": stamp[0],
        "sync_latency_s": view.sync_latency_sec,
        "sync_balance_block_height": view.sync_balance_block_height,
    }
    return build.build_frame("indexer_status", {name: [value] for name, value in row.items()})


def gas_price(view: chain.GasPrice) -> pd.DataFrame:
    """
    Tabulate a gas price.

    Parameters
    ----------
    view
        The decoded price.

    Returns
    -------
    price
        One row, typed as `schema("gas_price")`.

    Notes
    -----
    Source: gas_price.
    """
    return build.build_frame("gas_price", {"gas_price": amounts.parse([view.gas_price])})


_COUNTERS = (
    "num_produced_blocks",
    "num_expected_blocks",
    "num_produced_chunks",
    "num_expected_chunks",
    "num_produced_endorsements",
    "num_expected_endorsements",
)


def validators(rows: Sequence[chain.Validator | chain.Kickout]) -> pd.DataFrame:
    """
    Tabulate validators.

    Parameters
    ----------
    rows
        Validators of an epoch or proposals, or kickouts.

    Returns
    -------
    validators
        One row a validator, typed as `schema("validators")`.

    Notes
    -----
    Source: validators.
    """
    columns: dict[str, Any] = {
        name: [getattr(row, name, None) for row in rows]
        for name in ("account_id", "public_key", "shards", *_COUNTERS)
    }
    columns["stake"] = amounts.parse([getattr(row, "stake", None) for row in rows], name="stake")
    columns["reason"] = [_reason(getattr(row, "reason", None)) for row in rows]
    return build.build_frame("validators", columns)


def _reason(value: str | dict[str, Any] | None) -> str | None:
    """Write a kickout's reason on one line."""
    if not isinstance(value, dict):
        return value
    parts = []
    for word, details in value.items():
        told = details.items() if isinstance(details, dict) else ()
        parts.append(word + "".join(f" {name}={number}" for name, number in told))
    return ", ".join(parts)


def changes(view: chain.Changes) -> pd.DataFrame:
    """
    Tabulate changes of state.

    Parameters
    ----------
    view
        The decoded changes.

    Returns
    -------
    changes
        One row a change, typed as `schema("changes")`.

    Notes
    -----
    Source: EXPERIMENTAL_changes.
    """
    causes = [change.cause for change in view.changes]
    columns = {
        "type": [change.type for change in view.changes],
        "account_id": [change.change.get("account_id") for change in view.changes],
        "cause": [cause.get("type") for cause in causes],
        "cause_hash": [cause.get("tx_hash") or cause.get("receipt_hash") for cause in causes],
        "change": [change.change for change in view.changes],
    }
    return build.build_frame("changes", columns)


def state(view: chain.State) -> pd.DataFrame:
    """
    Tabulate a contract's state.

    Parameters
    ----------
    view
        The decoded state.

    Returns
    -------
    state
        One row a key, bytes, typed as `schema("state")`.

    Notes
    -----
    Source: query view_state.
    """
    columns = {"key": [i.key for i in view.values], "value": [i.value for i in view.values]}
    return build.build_frame("state", columns)
