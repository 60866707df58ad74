"""A panel about a fungible token: its metadata, its supply and its largest holders."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from ledgerkit import units
from ledgerkit.plots import holdings
from ledgerkit.verbs import tokens
from ledgerkit.widgets import _html
from ledgerkit.widgets._blocks import Content, Page, Plot
from ledgerkit.widgets._panel import Field, Panel
from ledgerkit.widgets._table import Table

if TYPE_CHECKING:
    from ledgerkit.frames.tokens import Token
    from ledgerkit.ledger import Ledger

_COLUMNS = ["rank", "account_id", "balance", "share", "status", "symbol", "decimals"]


class TokenExplorer(Panel):
    """
    The name, symbol and supply of a token, and its largest holders with their shares.

    Parameters
    ----------
    contract_id
        The initial value of the field.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    """

    title = "Token"
    tooltip = "Look up the supply and the largest holders of this token"
    links: ClassVar = {"token": "contract_id"}

    def __init__(self, contract_id: str = "", *, ledger: Ledger | None = None) -> None:
        super().__init__({"contract_id": Field("Contract", contract_id, "wrap.near")}, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        contract_id = values["contract_id"]
        holders, token = tokens.read_holders(contract_id, ledger)
        facts = _html.facts_table(_facts(contract_id, token))
        pages = [Page("Token", facts, Table(holders[_COLUMNS], name="holders"))]
        if holders["balance"].gt(0).any():
            pages.append(Page("Curve", Plot(partial(holdings.concentration, holders))))
        sentence = f"{contract_id} on {ledger.network.name}: {_count(holders, token)}."
        return Content(sentence, holders, tuple(pages), value=token)


def _facts(contract_id: str, token: Token) -> pd.DataFrame:
    columns = {
        "name": [token.facts.name],
        "symbol": [token.facts.symbol],
        "contract_id": [contract_id],
        "total_supply": [token.total_supply],
        "decimals": [token.facts.decimals],
        "metadata_status": [token.facts.status],
    }
    return pd.DataFrame(columns).astype({"total_supply": "u128", "decimals": "Int64"})


def _count(holders: pd.DataFrame, token: Token) -> str:
    """Count the listed holders, with their share of the supply if all shares are known."""
    n_holders = int(holders["balance"].gt(0).sum())
    parts = [f"{units.count_text(n_holders, 'holder')} listed"]
    supply = token.total_supply
    if supply and len(holders) and holders["share"].notna().all():
        total = int(holders["balance"].sum())
        # Rounding down shows 99.999% as 99.99%, not as all.
        share = "all" if total == supply else f"{10_000 * total // supply / 100:.2f}%"
        parts.append(f"with {share} of the supply")
    n_others = len(holders) - n_holders
    if n_others:
        parts.append(f"{n_others:,} more with a balance that is 0 or unknown")
    return ", ".join(parts)
