"""Frames of the history of accounts from services."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ledgerkit import units
from ledgerkit.frames import build

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.models.services import AccountTransaction, KeyValue, TransferRow
    from ledgerkit.frames.tokens import TokenFacts

_NEAR = "NEAR", 24
_MAX_DECIMALS = 77
_ROUNDING = 1e-9  # far above the relative error of a service's amounts in whole tokens


def account_transactions(rows: Sequence[AccountTransaction]) -> pd.DataFrame:
    name, members = "account_transactions", {"tx_hash": "transaction_hash", "time": "timestamp_ns"}
    return build.build_frame(name, build.columns_of(name, rows, members))


def transfers_of(
    rows: Sequence[TransferRow], metadata: Mapping[str, TokenFacts] | None = None
) -> pd.DataFrame:
    """Build the frame of transfers; `metadata` is by contract of a token."""
    changes = [row.change for row in rows]
    tokens = [_token(row, metadata or {}) for row in rows]
    columns = build.columns_of(
        "transfers_of",
        rows,
        {
            "block_height": "height",
            "time": "timestamp_ns",
            "tx_hash": "transaction_id",
            "counterparty_id": "other_account_id",
            "balance_before": "start_of_block_balance",
            "balance_after": "end_of_block_balance",
        },
        change=changes,
        is_exact=[change is not None for change in changes],
        symbol=[symbol for symbol, _ in tokens],
        amount=[
            None if change is None or decimals is None else units.to_text(change, decimals)
            for change, (_, decimals) in zip(changes, tokens, strict=True)
        ],
    )
    return build.build_frame("transfers_of", columns)


def key_values(rows: Sequence[KeyValue]) -> pd.DataFrame:
    members = {"contract_id": "current_account_id", "time": "block_timestamp"}
    return build.build_frame("key_values", build.columns_of("key_values", rows, members))


def _token(row: TransferRow, metadata: Mapping[str, TokenFacts]) -> tuple[str | None, int | None]:
    if row.asset == "near":
        return _NEAR
    facts = metadata.get(row.contract_id or "")
    if facts is not None and facts.decimals is not None:
        return facts.symbol, facts.decimals
    return None, _decimals(row.change, row.human_amount)


def _decimals(change: int | None, human_amount: float | None) -> int | None:
    """Return the decimals by which a service divided an amount; None if they are uncertain."""
    if not change or not human_amount or (change > 0) != (human_amount > 0):
        return None
    ratio = change / human_amount
    decimals = round(math.log10(ratio)) if 0 < ratio < math.inf else -1
    is_certain = 0 <= decimals <= _MAX_DECIMALS and abs(ratio / 10**decimals - 1) < _ROUNDING
    return decimals if is_certain else None
