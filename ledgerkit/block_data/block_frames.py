"""Frames of whole block documents or of one shard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit.api.models.block_documents import Shard, result_of
from ledgerkit.frames import build
from ledgerkit.tracing import actions
from ledgerkit.tracing.tree import build_forest

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.models import chain
    from ledgerkit.api.models.block_documents import BlockDocument
    from ledgerkit.tracing.tree import Forest

_NOTE = (
    "a block document has the receipts that ran in one block: what their transactions' other "
    "blocks have (parent_id, depth, waits_for, subtree_gas, on_critical_path) is unknown"
)


def shard_chunks(shard: Shard) -> list[tuple[int | None, chain.Chunk]]:
    """Return the new chunk of a shard, if any, with the height of its block if known."""
    return [(shard.block_height, shard.chunk.as_node_sends())] if shard.chunk is not None else []


def receipts(document: BlockDocument | Shard) -> pd.DataFrame:
    """Build the receipts frame of the receipts that ran, in the document's order."""
    forest = _forest(document)
    chunks = [shard.chunk for shard in _shards(document).values() if shard.chunk is not None]
    local_ids = {receipt_id for chunk in chunks for receipt_id in chunk.local_ids()}
    waits = zip(forest.columns["waits_for"], forest.columns["input_data_ids"], strict=True)
    columns = {
        **forest.columns,
        **dict.fromkeys(("depth", "subtree_gas", "on_critical_path"), [None] * len(forest)),
        "order": forest.outcome_at,
        "is_local": [receipt_id in local_ids for receipt_id in forest.ids],
        "waits_for": [None if inputs else producers for producers, inputs in waits],
    }
    frame = build.build_frame("receipts", columns)
    # The trees also have the receipts that were created, and ran in later blocks.
    frame = frame[frame["order"] >= 0].sort_values("order", ignore_index=True)
    frame.attrs["notes"] = [_NOTE]
    return frame


def events(document: BlockDocument | Shard) -> pd.DataFrame:
    """Build the events frame of the receipts that ran, in the document's order."""
    forest = _forest(document)
    columns = actions.event_columns(forest, actions.parse_events(forest))
    ordered = {**forest.columns, "order": forest.outcome_at}
    frame = build.build_frame("events", actions.with_receipts(columns, ordered))
    return frame.sort_values(["order", "log_index"], ignore_index=True)


def _forest(document: BlockDocument | Shard) -> Forest:
    return build_forest(
        [
            result_of(shard.receipt_execution_outcomes, f"{path}.receipt_execution_outcomes")
            for path, shard in _shards(document).items()
        ]
    )


def _shards(document: BlockDocument | Shard) -> dict[str, Shard]:
    """Return the shards of a document by their paths; a single shard has the path "$"."""
    if isinstance(document, Shard):
        return {"$": document}
    return {f"$.shards[{index}]": shard for index, shard in enumerate(document.shards)}
