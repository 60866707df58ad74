"""Panels about accounts: what one holds, and which ones a key opens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit import units
from ledgerkit.verbs import accounts, tokens
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Found, Panel, Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.client import Ledger
    from ledgerkit.verbs.accounts import Snapshot

_AMOUNTS = ("balance", "locked", "storage_cost", "spendable")


class AccountExplorer(Panel):
    """
    What an account holds: a card, its tokens, NFTs and staking.

    Parameters
    ----------
    account_id
        The account to begin with; `press` asks.
    details
        Whether contracts are asked too: symbols and amounts of tokens, positions in pools.
    ledger
        The ledger to ask; None is the session's default at the time of the question.
    """

    title = "Account"
    tooltip = "Read what this account holds"

    def __init__(
        self, account_id: str = "", *, details: bool = True, ledger: Ledger | None = None
    ) -> None:
        fields = {
            "account_id": _panel.text_box("Account", account_id, "alice.near"),
            "details": _panel.tick_box(
                "Ask contracts too: symbols, amounts, stakes", value=details
            ),
        }
        super().__init__(fields, ledger)

    def _find(self, asked: dict[str, Any], ledger: Ledger) -> Found:
        """Read the snapshot, then what contracts tell."""
        held = accounts.snapshot(asked["account_id"], ledger=ledger)
        ft, staking, failures = held.ft, held.staking, pd.DataFrame()
        if asked["details"]:
            ft, staking, failures = _details(held.account_id, ledger)
        exposure = _exposure(held.account_id, ledger)
        frames = {"account": held.state, "ft": ft, "nft": held.nft, "staking": staking}
        parts = [Part("Account", _card(held, exposure), held.state), *_pages(ft, held.nft, staking)]
        if exposure is not None:
            frames["exposure"] = exposure
        if len(failures):
            frames["errors"] = failures
            parts.append(Part("Not read", _html.table(failures), failures))
        words = {"token": ft, "NFT collection": held.nft, "pool": staking}
        counted = ", ".join(_html.counted(len(frame), word) for word, frame in words.items())
        sentence = f"{held.account_id} on {ledger.network.name}: {counted}."
        if held.state["status"].iloc[0] == "not_indexed":
            sentence = f"{held.account_id} on {ledger.network.name} is not indexed."
        return Found(sentence, held.state, tuple(parts), frames, held)


def _details(account_id: str, ledger: Ledger) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Ask the contracts; one that does not answer costs its own columns only."""
    ft, no_ft = tokens.ft(
        account_id, metadata=True, on_error="collect", progress=False, ledger=ledger
    )
    staking, no_staking = tokens.staking(
        account_id, positions=True, on_error="collect", progress=False, ledger=ledger
    )
    return ft, staking, pd.concat([no_ft, no_staking], ignore_index=True)


def _exposure(account_id: str, ledger: Ledger) -> pd.DataFrame | None:
    """Class the account; None where no liquid tokens are known for the network."""
    if not ledger.network.liquid_tokens:
        return None
    return tokens.exposure(account_id, progress=False, ledger=ledger)


def _card(held: Snapshot, exposure: pd.DataFrame | None) -> str:
    """Write the card: a badge for the exposure, then every fact."""
    word = "exposure not known here" if exposure is None else exposure["exposure_class"].iloc[0]
    pairs = [(name, _fact(name, value)) for name, value in _html.records(held.state)[0].items()]
    return f"<p>Staking exposure: {_html.badge(word)}</p>{_html.facts(pairs)}"


def _fact(name: str, value: Any) -> object:
    """Write amounts of NEAR as people read them, and exactly."""
    if name not in _AMOUNTS or pd.isna(value):
        return value
    return f"{units.near_text(value)} ({value} yoctoNEAR)"


def _pages(ft: pd.DataFrame, nft: pd.DataFrame, staking: pd.DataFrame) -> list[Part]:
    """Make a page a view."""
    named = {"Tokens": ft, "NFTs": nft, "Staking": staking}
    return [
        Part(
            title,
            _html.table(frame.drop(columns="account_id")) if len(frame) else "<p>None.</p>",
            frame,
        )
        for title, frame in named.items()
    ]


class KeyLookup(Panel):
    """
    The accounts that a key opens, each to be looked up in turn.

    Parameters
    ----------
    public_key
        The key to begin with; `press` asks.
    include_limited
        Whether function-call keys count too, not only full-access keys.
    opens
        The panel in which a chosen account opens; None makes one below.
    ledger
        The ledger to ask; None is the session's default at the time of the question.

    Attributes
    ----------
    account
        The panel in which a chosen account opens.
    """

    title = "Key"
    tooltip = "Find the accounts of this key"

    def __init__(
        self,
        public_key: str = "",
        *,
        include_limited: bool = False,
        opens: AccountExplorer | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        kinds = [("full-access keys", "full"), ("keys of every kind", "all")]
        fields = {
            "public_key": _panel.text_box("Public key", public_key, "ed25519:…"),
            "kinds": _panel.choice("As", kinds, "all" if include_limited else "full"),
        }
        self.account = AccountExplorer(ledger=ledger) if opens is None else opens
        self.chosen = _panel.choice("Account", [])
        self.open = _panel.button("Open account", "Look the chosen account up", disabled=True)
        self.open.on_click(self._opened)
        super().__init__(fields, ledger)
        row = _panel.library().HBox([self.chosen, self.open])
        below = () if opens is not None else (self.account.view,)
        self.view.children = (*self.view.children, row, *below)

    def _find(self, asked: dict[str, Any], ledger: Ledger) -> Found:
        """Read the accounts of a key."""
        limited = asked["kinds"] == "all"
        frame = accounts.accounts_of(asked["public_key"], include_limited=limited, ledger=ledger)
        count = _html.counted(len(frame), "account")
        sentence = f"{count} on {ledger.network.name}; choose one below to open it."
        shown = _html.table(frame.drop(columns="public_key"))
        return Found(sentence, frame, (Part("Accounts", shown, frame),))

    def _show(self, found: Found, notes: Sequence[str] = ()) -> None:
        """Offer the accounts that were found."""
        super()._show(found, notes)
        self._offer(found.result["account_id"].tolist())

    def _clear(self) -> None:
        """Forget the accounts that were found."""
        super()._clear()
        self._offer([])

    def _offer(self, account_ids: list[str]) -> None:
        """Let one of these be chosen."""
        self.chosen.options = account_ids
        self.chosen.value = account_ids[0] if account_ids else None
        self.chosen.disabled = self.open.disabled = not account_ids

    def _opened(self, _: object) -> None:
        """Look the chosen account up."""
        if self.chosen.value is not None:
            self.account.fields["account_id"].value = self.chosen.value
            self.account.ask()
