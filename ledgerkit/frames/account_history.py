"""Frames of the history of accounts as services list it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ledgerkit import units
from ledgerkit.frames import build
from ledgerkit.frames.schemas import ACCOUNT_FLAGS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from ledgerkit.api.models.services import AccountTransaction, KeyValue, TransferRow
    from ledgerkit.frames.tokens import TokenFacts

_NEAR = "NEAR", 24
_MAX_DECIMALS = 77
_ROUNDING = 1e-9  # the relative error of a service's amounts in whole tokens is far below


def account_transactions(rows: Sequence[AccountTransaction]) -> pd.DataFrame:
    """Build the frame of transactions that accounts took part in."""
    return build.build_frame(
        "account_transactions",
        {
            "account_id": [row.account_id for row in rows],
            "tx_hash": [row.transaction_hash for row in rows],
            "tx_block_height": [row.tx_block_height for row in rows],
            "time": [row.timestamp_ns for row in rows],
            "tx_index": [row.tx_index for row in rows],
            **{name: [getattr(row, name) for row in rows] for name in ACCOUNT_FLAGS},
        },
    )


def transfers_of(
    rows: Sequence[TransferRow], metadata: Mapping[str, TokenFacts] | None = None
) -> pd.DataFrame:
    """Build the frame of transfers; `metadata` is that of the contracts of tokens."""
    changes = [row.change for row in rows]
    tokens = [_token(row, metadata or {}) for row in rows]
    return build.build_frame(
        "transfers_of",
        {
            "account_id": [row.account_id for row in rows],
            "block_height": [row.height for row in rows],
            "time": [row.timestamp_ns for row in rows],
            "tx_hash": [row.transaction_id for row in rows],
            "receipt_id": [row.receipt_id for row in rows],
            "transfer_index": [row.transfer_index for row in rows],
            "asset": [row.asset for row in rows],
            "counterparty_id": [row.other_account_id for row in rows],
            "transfer_type": [row.transfer_type for row in rows],
            "method_name": [row.method_name for row in rows],
            "change": changes,
            "is_exact": [change is not None for change in changes],
            "symbol": [symbol for symbol, _ in tokens],
            "amount": [
                None if change is None or decimals is None else units.to_text(change, decimals)
                for change, (_, decimals) in zip(changes, tokens, strict=True)
            ],
            "usd_amount": [row.usd_amount for row in rows],
            "balance_before": [row.start_of_block_balance for row in rows],
            "balance_after": [row.end_of_block_balance for row in rows],
            "signer_id": [row.signer_id for row in rows],
            "predecessor_id": [row.predecessor_id for row in rows],
        },
    )


def key_values(rows: Sequence[KeyValue]) -> pd.DataFrame:
    """Build the frame of key-value data."""
    return build.build_frame(
        "kv",
        {
            "contract_id": [row.current_account_id for row in rows],
            "predecessor_id": [row.predecessor_id for row in rows],
            "key": [row.key for row in rows],
            "value": [row.value for row in rows],
            "block_height": [row.block_height for row in rows],
            "time": [row.block_timestamp for row in rows],
            "tx_hash": [row.tx_hash for row in rows],
            "receipt_id": [row.receipt_id for row in rows],
            "action_index": [row.action_index for row in rows],
            "signer_id": [row.signer_id for row in rows],
        },
    )


def _token(row: TransferRow, metadata: Mapping[str, TokenFacts]) -> tuple[str | None, int | None]:
    if row.asset == "near":
        return _NEAR
    facts = metadata.get(row.contract_id or "")
    if facts is not None and facts.decimals is not None:
        return facts.symbol, facts.decimals
    return None, _decimals(row.change, row.human_amount)


def _decimals(change: int | None, human_amount: float | None) -> int | None:
    """Return the decimals by which a service divided an amount; None unless that is certain."""
    if not change or not human_amount or (change > 0) != (human_amount > 0):
        return None
    ratio = change / human_amount
    decimals = round(math.log10(ratio)) if 0 < ratio < math.inf else -1
    is_certain = 0 <= decimals <= _MAX_DECIMALS and abs(ratio / 10**decimals - 1) < _ROUNDING
    return decimals if is_certain else None
