"""Frames of whole block documents, and of their parts: a shard, or the block alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from ledgerkit.frames import build
from ledgerkit.tracing import actions
from ledgerkit.tracing.tree import build_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.api.models import chain
    from ledgerkit.api.models.block_documents import BlockDocument, Shard
    from ledgerkit.tracing.tree import Tree

_NOTE = (
    "a block document has the receipts that ran in one block: what their transactions' other "
    "blocks have (parent_id, depth, waits_for, subtree_gas, on_critical_path) is not known"
)


def shard_chunks(shard: Shard) -> list[tuple[int | None, chain.Chunk]]:
    """Return the chunk of a shard, if it has a new one, with the height of its block if known."""
    return [(shard.block_height, shard.chunk.as_node_sends())] if shard.chunk is not None else []


def receipts(shards: Sequence[Shard], document: BlockDocument | None = None) -> pd.DataFrame:
    """Build the receipts frame of the receipts that ran on shards, in the document's order."""
    parts = [_shard_receipts(at, shard, document)[1] for at, shard in enumerate(shards)]
    frame = pd.concat([build.empty_frame("receipts"), *parts], ignore_index=True)
    frame["order"] = pd.array(range(len(frame)), dtype="Int64")
    frame.attrs["notes"] = [_NOTE]
    return frame


def events(shards: Sequence[Shard], document: BlockDocument | None = None) -> pd.DataFrame:
    """Build the events frame of the receipts that ran on shards, in the document's order."""
    parts, n_before = [], 0
    for at, shard in enumerate(shards):
        tree, ran = _shard_receipts(at, shard, document)
        order = dict(zip(ran["receipt_id"], range(n_before, n_before + len(ran)), strict=True))
        n_before += len(ran)
        columns = actions.event_columns(tree, actions.parse_events(tree))
        part = build.build_frame("events", actions.with_receipts(columns, tree.columns))
        part["order"] = part["receipt_id"].map(order).astype("Int64")
        part["block_height"] = part["block_height"].fillna(shard.block_height)
        parts.append(part.sort_values(["order", "log_index"]))
    return pd.concat([build.empty_frame("events"), *parts], ignore_index=True)


def _shard_receipts(
    at: int, shard: Shard, document: BlockDocument | None
) -> tuple[Tree, pd.DataFrame]:
    """Read the receipts that ran on one shard: as a tree, and as rows in the document's order."""
    prefix = "$" if document is None else f"$.shards[{at}]"
    result = shard.result(f"{prefix}.receipt_execution_outcomes")
    tree = build_tree(result)
    frame = build.build_frame("receipts", tree.columns).set_index("receipt_id", drop=False)
    # The tree also has the receipts that were created, and ran in later blocks.
    frame = frame.loc[[outcome.id for outcome in result.outcomes]].reset_index(drop=True)
    local_ids = shard.chunk.local_ids() if shard.chunk else set()
    frame["is_local"] = frame["receipt_id"].isin(local_ids)
    frame["shard_id"] = pd.array([shard.shard_id] * len(frame), dtype="Int64")
    frame["block_height"] = frame["block_height"].fillna(shard.block_height)
    return tree, _without_other_blocks(frame)


def _without_other_blocks(frame: pd.DataFrame) -> pd.DataFrame:
    """Remove what one block does not show about the trees of its receipts."""
    frame["depth"] = pd.array([None] * len(frame), dtype="Int64")
    frame["subtree_gas"] = build.empty_frame("receipts")["subtree_gas"].reindex(frame.index)
    frame["on_critical_path"] = pd.array([None] * len(frame), dtype="boolean")
    waits = zip(frame["waits_for"], frame["input_data_ids"], strict=True)
    frame["waits_for"] = pd.Series(
        [None if inputs else known for known, inputs in waits], index=frame.index, dtype=object
    )
    return frame
