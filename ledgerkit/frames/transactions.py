"""The frame of the transactions of chunks: one row each, with the sums of its actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.api.models.actions import (
    action_name,
    deposit_texts,
    function_calls,
    read_actions,
    total_gas,
)
from ledgerkit.frames import amounts, build

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from ledgerkit.api.models import chain
    from ledgerkit.api.models.actions import Actions


def transactions(contents: Sequence[tuple[int | None, chain.Chunk]]) -> pd.DataFrame:
    """Build the transactions frame from chunks, each with the height of its block if known."""
    return build.build_frame("transactions", transaction_columns(contents))


def transaction_columns(contents: Sequence[tuple[int | None, chain.Chunk]]) -> dict[str, Any]:
    """Return the columns of the transactions frame."""
    rows = [
        (height, chunk.header.shard_id, tx)
        for height, chunk in contents
        for tx in chunk.transactions
    ]
    txs = [tx for _, _, tx in rows]
    actions = list(map(read_actions, txs))
    calls = [list(function_calls(listed)) for listed in actions]
    return {
        "block_height": [height for height, _, _ in rows],
        "shard_id": [shard_id for _, shard_id, _ in rows],
        "tx_hash": [tx.hash for tx in txs],
        "signer_id": [tx.signer_id for tx in txs],
        "receiver_id": [tx.receiver_id for tx in txs],
        "nonce": [tx.nonce for tx in txs],
        "public_key": [tx.public_key for tx in txs],
        "actions": ["+".join(map(action_name, listed)) for listed in actions],
        "method_name": ["+".join([c.method_name or "" for c in own]) or None for own in calls],
        "deposit": [_total_deposit(listed) for listed in actions],
        "gas_attached": [total_gas(own) for own in calls],
    }


def _total_deposit(actions: Actions) -> int | None:
    texts = deposit_texts(actions)
    if not texts:
        return None if texts is None else 0
    return sum(amounts.plain(texts) or amounts.parse(texts, name="deposit"))
