"""Panels about accounts: their holdings, and the accounts of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit import units
from ledgerkit.frames.human import readable
from ledgerkit.verbs import accounts, tokens
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._blocks import Content, Page
from ledgerkit.widgets._fields import Field
from ledgerkit.widgets._panel import Panel
from ledgerkit.widgets._table import Table

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger

_HIDDEN = ["account_id", "amount"]  # the subject, and a rounded copy of the balance


class AccountExplorer(Panel):
    """
    The state, tokens, NFTs and stake of an account.

    Parameters
    ----------
    account_id
        The initial value of the field.
    details
        True also calls contracts: for token symbols and amounts, and positions in pools.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    """

    title = "Account"
    tooltip = "Look up the holdings of this account"

    def __init__(
        self, account_id: str = "", *, details: bool = True, ledger: Ledger | None = None
    ) -> None:
        fields = {
            "account_id": Field("Account", account_id, "alice.near"),
            "details": Field(
                "Call contracts for symbols, amounts and stakes", details, kind="check"
            ),
        }
        super().__init__(fields, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        snapshot = accounts.snapshot(values["account_id"], ledger=ledger)
        ft, staking, errors = snapshot.ft, snapshot.staking, pd.DataFrame()
        if values["details"]:
            ft, staking, errors = _read_details(snapshot.account_id, ledger)
        exposure = _read_exposure(snapshot.account_id, ledger)
        state, nft = snapshot.state, snapshot.nft
        frames = {"account": state, "ft": ft, "nft": nft, "staking": staking}
        pages = [Page("Account", _account_card(state, exposure))]
        pages += _table_pages(ft, nft, staking)
        if exposure is not None:
            frames["exposure"] = exposure
        if len(errors):
            frames["errors"] = errors
        pages += _panel.error_pages(errors)
        sentence = f"{snapshot.account_id} on {ledger.network.name}"
        nouns = {"n_tokens": "token", "n_nfts": "NFT collection", "n_pools": "pool"}
        counts = state[list(nouns)].iloc[0]
        if counts.isna().any():
            sentence += " is not indexed."
        else:
            counted = (units.count_text(int(counts[name]), noun) for name, noun in nouns.items())
            sentence += f": {', '.join(counted)}."
        return Content(sentence, state, tuple(pages), frames, snapshot)


def _read_details(
    account_id: str, ledger: Ledger
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    options: Any = {"on_error": "collect", "progress": False, "ledger": ledger}
    ft, ft_errors = tokens.ft(account_id, metadata=True, **options)
    staking, staking_errors = tokens.staking(account_id, positions=True, **options)
    return ft, staking, pd.concat([ft_errors, staking_errors], ignore_index=True)


def _read_exposure(account_id: str, ledger: Ledger) -> pd.DataFrame | None:
    """Read the exposure class; None if the network has no known liquid staking tokens."""
    if not ledger.network.liquid_tokens:
        return None
    return tokens.exposure(account_id, progress=False, ledger=ledger)


def _account_card(state: pd.DataFrame, exposure: pd.DataFrame | None) -> str:
    word = "unknown" if exposure is None else _exposure_word(exposure)
    account_id = str(state["account_id"].iloc[0])
    statement = _html.link("statement", account_id, f"Statement of {account_id}")
    return f"<p>Staking exposure: {_html.badge(word)}</p><p>{statement}</p>{_html.record(state)}"


def _exposure_word(exposure: pd.DataFrame) -> str:
    column = "exposure_class" if exposure["status"].iloc[0] == "ok" else "status"
    return str(readable(exposure)[column].iloc[0])


def _table_pages(ft: pd.DataFrame, nft: pd.DataFrame, staking: pd.DataFrame) -> list[Page]:
    frames = {"Tokens": ft, "NFTs": nft, "Staking": staking}
    return [
        Page(title, Table(frame.drop(columns=_HIDDEN, errors="ignore"), name=title.lower()))
        for title, frame in frames.items()
    ]


class KeyLookup(Panel):
    """
    The accounts of a public key.

    Parameters
    ----------
    public_key
        The initial value of the field.
    include_limited
        True includes accounts on which it is a function-call key.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    """

    title = "Key"
    tooltip = "Look up the accounts of this key"

    def __init__(
        self, public_key: str = "", *, include_limited: bool = False, ledger: Ledger | None = None
    ) -> None:
        kinds = (("full-access keys only", "full"), ("all keys", "all"))
        fields = {
            "public_key": Field("Public key", public_key, "ed25519:…"),
            "kinds": Field(
                "Key type", "all" if include_limited else "full", kind="choice", options=kinds
            ),
        }
        super().__init__(fields, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        limited = values["kinds"] == "all"
        frame = accounts.accounts_of(values["public_key"], include_limited=limited, ledger=ledger)
        sentence = f"{units.count_text(len(frame), 'account')} on {ledger.network.name}."
        page = Page("Accounts", Table(frame.drop(columns="public_key"), name="accounts"))
        return Content(sentence, frame, (page,))
