"""Frames of blocks, chunks, transactions, contract state, validators and node status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit.api.models import chain
from ledgerkit.api.models.actions import (
    action_name,
    deposit_texts,
    function_calls,
    read_actions,
    total_gas,
)
from ledgerkit.api.models.other_kinds import OtherTransaction
from ledgerkit.errors import DecodeError, excerpt
from ledgerkit.frames import amounts, build

if TYPE_CHECKING:
    from ledgerkit.api.models.actions import Actions

    # The height of a block, the header of a chunk, and the chunk if it was read.
    ChunkRow = tuple[int | None, chain.ChunkHeader, chain.Chunk | None]


def blocks(responses: Sequence[chain.Block]) -> pd.DataFrame:
    """Build the blocks frame; gas is summed over the new chunks of a block."""
    return build.build_frame("blocks", block_columns(responses))


def block_columns(responses: Sequence[chain.Block]) -> dict[str, Any]:
    headers = [response.header for response in responses]
    stamps = amounts.parse([head.timestamp_nanosec for head in headers], name="timestamp_nanosec")
    new_chunks = [None if r.chunks is None else r.new_chunks() for r in responses]
    return build.columns_of(
        "blocks",
        headers,
        {
            "block_height": "height",
            "block_hash": "hash",
            "protocol_version": "latest_protocol_version",
        },
        time=[  # old nodes send only the integer
            head.timestamp if stamp is pd.NA else stamp
            for head, stamp in zip(headers, stamps, strict=True)
        ],
        author=[response.author for response in responses],
        # Documents list the new chunks alone; the mask has all shards.
        n_chunks=[
            None if r.chunks is None else len(r.header.chunk_mask or r.chunks) for r in responses
        ],
        gas_used=[None if new is None else sum(c.gas_used for c in new) for new in new_chunks],
        gas_limit=[None if new is None else sum(c.gas_limit for c in new) for new in new_chunks],
    )


def chunk_rows(block: chain.Block, chunks: Sequence[chain.Chunk]) -> list[ChunkRow]:
    """List the chunks of a block in its order: their headers, and the chunks that were read."""
    # Until new shards have chunks after a resharding, they repeat the header of the split shard,
    # which is one chunk. Source: nearcore, Chain::get_prev_chunk_headers.
    height = block.header.height
    if block.chunks is None:
        return [(height, chunk.header, chunk) for chunk in chunks]
    read = {chunk.header.chunk_hash: chunk for chunk in chunks}
    headers = {header.chunk_hash: header for header in block.chunks}
    return [(height, header, read.get(header.chunk_hash)) for header in headers.values()]


def chunks(rows: Sequence[ChunkRow]) -> pd.DataFrame:
    """Build the chunks frame from block heights, headers, and the chunks that were read."""
    return build.build_frame("chunks", chunk_columns(rows))


def chunk_columns(rows: Sequence[ChunkRow]) -> dict[str, Any]:
    heights, headers = [height for height, _, _ in rows], [head for _, head, _ in rows]
    contents = [content for _, _, content in rows]
    return build.columns_of(
        "chunks",
        headers,
        block_height=heights,
        author=[c and c.author for c in contents],
        is_new=[
            None if height is None else head.height_included == height
            for height, head in zip(heights, headers, strict=True)
        ],
        n_transactions=[c and len(c.transactions) for c in contents],
        n_receipts=[c and len(c.receipts) for c in contents],
    )


def status(response: chain.Status) -> pd.DataFrame:
    sync = response.sync_info
    row = {
        "chain_id": response.chain_id,
        "latest_block_height": sync.latest_block_height,
        "latest_block_hash": sync.latest_block_hash,
        "latest_block_time": _rfc3339_ns(sync.latest_block_time),
        "syncing": sync.syncing,
        "earliest_block_height": sync.earliest_block_height,
        "epoch_id": sync.epoch_id,
        "epoch_start_height": sync.epoch_start_height,
        "protocol_version": response.protocol_version,
        "latest_protocol_version": response.latest_protocol_version,
        "version": response.version.version,
        "n_validators": len(response.validators),
    }
    return build.of_rows("status", [row])


def _rfc3339_ns(text: str) -> int:
    try:
        time = pd.Timestamp(text)
        return (time if time.tzinfo else time.tz_localize("UTC")).as_unit("ns").value
    except ValueError:
        problem = f"latest_block_time {excerpt(text, 60)!r} is not an RFC 3339 time"
    raise DecodeError(problem, path="$.sync_info.latest_block_time")


def gas_price(response: chain.GasPrice) -> pd.DataFrame:
    return build.of_rows("gas_price", [{"gas_price": response.gas_price}])


def validators(rows: Sequence[chain.Validator | chain.Kickout]) -> pd.DataFrame:
    """Build the validators frame of an epoch's validators, proposals or kickouts."""
    columns: dict[str, Any] = {
        name: [getattr(row, name, None) for row in rows]
        for name in chain.Validator.__struct_fields__
    }
    columns["reason"] = [_reason(getattr(row, "reason", None)) for row in rows]
    return build.build_frame("validators", columns)


def _reason(value: str | dict[str, Any] | None) -> str | None:
    if not isinstance(value, dict):
        return value
    parts = []
    for name, details in value.items():
        fields = details.items() if isinstance(details, dict) else ()
        parts.append(name + "".join(f" {field}={number}" for field, number in fields))
    return ", ".join(parts)


def changes(response: chain.Changes) -> pd.DataFrame:
    causes = [change.cause for change in response.changes]
    columns = {
        "type": [change.type for change in response.changes],
        "account_id": [change.change.get("account_id") for change in response.changes],
        "cause": [cause.get("type") for cause in causes],
        "cause_hash": [cause.get("tx_hash") or cause.get("receipt_hash") for cause in causes],
        "change": [change.change for change in response.changes],
    }
    return build.build_frame("changes", columns)


def state(response: chain.State) -> pd.DataFrame:
    """Build the state frame of a contract: one row per key."""
    return build.build_frame("state", build.columns_of("state", response.values))


def transactions(contents: Sequence[tuple[int | None, chain.Chunk]]) -> pd.DataFrame:
    """Build the transactions frame from chunks with the heights of their blocks, if known."""
    return build.build_frame("transactions", transaction_columns(contents))


def transaction_columns(contents: Sequence[tuple[int | None, chain.Chunk]]) -> dict[str, Any]:
    rows = [
        (height, chunk.header.shard_id, tx)
        for height, chunk in contents
        for tx in chunk.transactions
    ]
    txs = [tx for _, _, tx in rows]
    others = [tx if isinstance(tx, OtherTransaction) else None for tx in txs]
    actions = list(map(read_actions, txs))
    calls = [list(function_calls(listed or ())) for listed in actions]
    return build.columns_of(
        "transactions",
        txs,
        {"tx_hash": "hash"},
        block_height=[height for height, _, _ in rows],
        shard_id=[shard_id for _, shard_id, _ in rows],
        actions=[
            None if listed is None else "+".join(map(action_name, listed)) for listed in actions
        ],
        method_name=["+".join([c.method_name or "" for c in group]) or None for group in calls],
        deposit=[_total_deposit(listed) for listed in actions],
        gas_attached=[
            None if listed is None else total_gas(group)
            for listed, group in zip(actions, calls, strict=True)
        ],
        kind=["signed" if other is None else other.kind for other in others],
        content=[other and other.content for other in others],
    )


def _total_deposit(actions: Actions | None) -> int | None:
    texts = None if actions is None else deposit_texts(actions)
    if not texts:
        return None if texts is None else 0
    return sum(amounts.plain(texts) or amounts.parse(texts, name="deposit"))
