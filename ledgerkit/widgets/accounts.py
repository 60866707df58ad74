"""Panels about accounts: their holdings, and the accounts of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit import units
from ledgerkit.verbs import accounts, tokens
from ledgerkit.visible_text import escape_invisible
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Page, Panel, PanelResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.client import Ledger

_AMOUNTS = ("balance", "locked", "storage_cost", "spendable")


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
            "account_id": _panel.text_box("Account", account_id, "alice.near"),
            "details": _panel.check_box(
                "Call contracts for symbols, amounts and stakes", value=details
            ),
        }
        super().__init__(fields, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> PanelResult:
        """Read the snapshot, and details from contracts."""
        snapshot = accounts.snapshot(values["account_id"], ledger=ledger)
        ft, staking, errors = snapshot.ft, snapshot.staking, pd.DataFrame()
        if values["details"]:
            ft, staking, errors = _read_details(snapshot.account_id, ledger)
        exposure = _read_exposure(snapshot.account_id, ledger)
        state, nft = snapshot.state, snapshot.nft
        frames = {"account": state, "ft": ft, "nft": nft, "staking": staking}
        pages = [Page("Account", _account_card(state, exposure), state)]
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
        return PanelResult(sentence, state, tuple(pages), frames, snapshot)


def _read_details(
    account_id: str, ledger: Ledger
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Read tokens, staking positions and errors from contracts."""
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
    """Format the exposure class as a badge, and the state as a table of names and values."""
    word = "unknown" if exposure is None else _exposure_word(exposure)
    pairs = [(name, _state_value(name, value)) for name, value in _html.records(state)[0].items()]
    return f"<p>Staking exposure: {_html.badge(word)}</p>{_html.facts(pairs)}"


def _exposure_word(exposure: pd.DataFrame) -> str:
    """Return the exposure class, or the status of an account that is not indexed."""
    column = "exposure_class" if exposure["status"].iloc[0] == "ok" else "status"
    return str(exposure[column].iloc[0])


def _state_value(name: str, value: Any) -> object:
    """Format amounts in NEAR and in yoctoNEAR."""
    if name not in _AMOUNTS or pd.isna(value):
        return value
    return f"{units.near_text(value)} ({value} yoctoNEAR)"


def _table_pages(ft: pd.DataFrame, nft: pd.DataFrame, staking: pd.DataFrame) -> list[Page]:
    """Build one page per table."""
    frames = {"Tokens": ft, "NFTs": nft, "Staking": staking}
    return [
        Page(
            title,
            _html.table(frame.drop(columns="account_id")) if len(frame) else "<p>None.</p>",
            frame,
        )
        for title, frame in frames.items()
    ]


class KeyLookup(Panel):
    """
    The accounts of a public key, and a button that looks one of them up.

    Parameters
    ----------
    public_key
        The initial value of the field.
    include_limited
        True includes accounts on which it is a function-call key.
    opens
        The panel that shows the chosen account; None adds one below.
    ledger
        The ledger to use; None is the session's default at the time of the request.

    Attributes
    ----------
    account
        The panel that shows the chosen account.
    """

    title = "Key"
    tooltip = "Look up the accounts of this key"

    def __init__(
        self,
        public_key: str = "",
        *,
        include_limited: bool = False,
        opens: AccountExplorer | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        kinds = [("full-access keys only", "full"), ("all keys", "all")]
        fields = {
            "public_key": _panel.text_box("Public key", public_key, "ed25519:…"),
            "kinds": _panel.drop_down("Key type", kinds, "all" if include_limited else "full"),
        }
        self.account = AccountExplorer(ledger=ledger) if opens is None else opens
        self.chosen = _panel.drop_down("Account", [])
        self.open = _panel.button("Open account", "Look up the chosen account", disabled=True)
        self.open.on_click(self._open_chosen)
        super().__init__(fields, ledger)
        row = _panel.widgets_library().HBox([self.chosen, self.open])
        below = () if opens is not None else (self.account.view,)
        self.view.children = (*self.view.children, row, *below)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> PanelResult:
        """Read the accounts of the key."""
        limited = values["kinds"] == "all"
        frame = accounts.accounts_of(values["public_key"], include_limited=limited, ledger=ledger)
        count = units.count_text(len(frame), "account")
        sentence = f"{count} on {ledger.network.name}; choose one below to open it."
        page = Page("Accounts", _html.table(frame.drop(columns="public_key")), frame)
        return PanelResult(sentence, frame, (page,))

    def _show_result(self, result: PanelResult, warnings: Sequence[str] = ()) -> None:
        """Show the accounts, and offer them in the drop-down."""
        super()._show_result(result, warnings)
        self._offer(result.result["account_id"].tolist())

    def _clear_result(self) -> None:
        """Drop the accounts."""
        super()._clear_result()
        self._offer([])

    def _offer(self, account_ids: list[str]) -> None:
        """Set the options of the drop-down."""
        self.chosen.options = [escape_invisible(account_id) for account_id in account_ids]
        self.chosen.index = 0 if account_ids else None
        self.chosen.disabled = self.open.disabled = not account_ids

    def _open_chosen(self, _: object) -> None:
        """Look up the chosen account."""
        if self.chosen.value is not None:
            self.account.fields["account_id"].value = self.chosen.value
            self.account.ask()
