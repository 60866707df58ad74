"""Amounts of tokens in their units, as far as symbol and decimals are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from ledgerkit import units
from ledgerkit.plots import canvas, texts

_COLUMNS = ("symbol", "decimals")
SOURCE = "lk.ft(..., metadata=True)"


class TokenUnit(NamedTuple):
    """The unit of an asset: its symbol and its decimals; by default the smallest unit."""

    symbol: str = "units"
    decimals: int = 0

    def text(self, amount: int) -> str:
        """Format an amount such as "80 GOLD", or "80,000,000 units"."""
        if self == NEAR:
            return units.near_amount(amount)
        return units.amount_text(amount, self.decimals, self.symbol)

    def label(self, amount: int, room: float) -> str:
        """Format an amount, with three digits if all would take more than `room` points."""
        text = self.text(amount)
        if texts.width(text) <= room:
            return text
        return f"{texts.format_number(self.number(amount))} {self.symbol}"

    def number(self, amount: int) -> float:
        return units.to_float(amount, self.decimals)


NEAR = TokenUnit("NEAR", units.NEAR_DECIMALS)
SMALLEST = TokenUnit()


def axis_text(drawn: Iterable[TokenUnit]) -> str:
    """Return the unit of an axis: a symbol, if everything on it has the same unit."""
    distinct = set(drawn)
    if distinct == {SMALLEST}:
        return "smallest units of each token"
    symbol = next(iter(distinct)).symbol
    return symbol if len(distinct) == 1 and symbol != "tokens" else "each token in its own unit"


def note(drawn: Iterable[TokenUnit]) -> list[str]:
    """Return a note on amounts of tokens in their smallest units, if there are any."""
    return [f"in smallest units: pass tokens={SOURCE}"] if SMALLEST in drawn else []


def read_units(
    tokens: pd.DataFrame | None, key: str = "contract_id", source: str = SOURCE
) -> Mapping[str, TokenUnit]:
    """Read the units of a frame's tokens with known decimals, by the column `key`."""
    if tokens is None:
        return {}
    return {
        token: TokenUnit(units.token_symbol(symbol), int(decimals))
        for token, symbol, decimals in canvas.read_rows(tokens, (key, *_COLUMNS), source)
        if decimals is not None
    }


def tokens_frame(facts: Mapping[str, Any]) -> pd.DataFrame:
    """Tabulate the symbols and decimals of tokens by contract, for `read_units`."""
    rows = [(contract_id, fact.symbol, fact.decimals) for contract_id, fact in facts.items()]
    return pd.DataFrame(rows, columns=["contract_id", *_COLUMNS])
