"""Frames of whole block documents, and of their parts: a shard, or the block alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from ledgerkit.frames import build
from ledgerkit.tracing import actions
from ledgerkit.tracing.tree import build_forest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.api.models import chain
    from ledgerkit.api.models.block_documents import BlockDocument, Shard
    from ledgerkit.tracing.tree import Forest

_NOTE = (
    "a block document has the receipts that ran in one block: what their transactions' other "
    "blocks have (parent_id, depth, waits_for, subtree_gas, on_critical_path) is not known"
)


def shard_chunks(shard: Shard) -> list[tuple[int | None, chain.Chunk]]:
    """Return the chunk of a shard, if it has a new one, with the height of its block if known."""
    return [(shard.block_height, shard.chunk.as_node_sends())] if shard.chunk is not None else []


def receipts(shards: Sequence[Shard], document: BlockDocument | None = None) -> pd.DataFrame:
    """Build the receipts frame of the receipts that ran on shards, in the document's order."""
    forest = _forest(shards, document)
    frame = build.build_frame("receipts", forest.columns).set_index("receipt_id", drop=False)
    # The trees also have the receipts that were created, and ran in later blocks.
    frame = frame.loc[_executed_ids(forest)].reset_index(drop=True)
    chunks = [shard.chunk for shard in shards if shard.chunk is not None]
    local_ids = {receipt_id for chunk in chunks for receipt_id in chunk.local_ids()}
    frame["is_local"] = frame["receipt_id"].isin(local_ids)
    frame["order"] = pd.array(range(len(frame)), dtype="Int64")
    frame.attrs["notes"] = [_NOTE]
    return _without_other_blocks(frame)


def events(shards: Sequence[Shard], document: BlockDocument | None = None) -> pd.DataFrame:
    """Build the events frame of the receipts that ran on shards, in the document's order."""
    forest = _forest(shards, document)
    columns = actions.event_columns(forest, actions.parse_events(forest))
    frame = build.build_frame("events", actions.with_receipts(columns, forest.columns))
    order = {receipt_id: at for at, receipt_id in enumerate(_executed_ids(forest))}
    frame["order"] = frame["receipt_id"].map(order).astype("Int64")
    return frame.sort_values(["order", "log_index"], ignore_index=True)


def _forest(shards: Sequence[Shard], document: BlockDocument | None) -> Forest:
    places = ["$"] if document is None else [f"$.shards[{at}]" for at in range(len(shards))]
    return build_forest(
        [
            shard.result(f"{place}.receipt_execution_outcomes")
            for place, shard in zip(places, shards, strict=True)
        ]
    )


def _executed_ids(forest: Forest) -> list[str]:
    return [outcome.id for result in forest.results for outcome in result.outcomes]


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
