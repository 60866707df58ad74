"""The explorer: all panels as tabs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit.cards import NO_MATH
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Displayable, Panel
from ledgerkit.widgets.accounts import AccountExplorer, KeyLookup
from ledgerkit.widgets.archive import ArchiveFlow
from ledgerkit.widgets.contracts import ContractViewer
from ledgerkit.widgets.gallery import NftGallery
from ledgerkit.widgets.networks import NetworkPicker
from ledgerkit.widgets.sending import SendForm
from ledgerkit.widgets.staking import StakingExposure
from ledgerkit.widgets.transactions import TransactionExplorer

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.client import Ledger


class Explorer(Displayable):
    """
    All panels, as tabs.

    Parameters
    ----------
    ledger
        The ledger of all panels. None is the session's default, which the first tab changes.

    Attributes
    ----------
    account, key, transaction, staking, contract, nfts, send, archive
        The panels.
    network
        The panel that chooses the network; None if `ledger` was passed.
    """

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.account = AccountExplorer(ledger=ledger)
        self.key = KeyLookup(opens=self.account, ledger=ledger)
        self.transaction = TransactionExplorer(ledger=ledger)
        self.staking = StakingExposure(ledger=ledger)
        self.contract = ContractViewer(ledger=ledger)
        self.nfts = NftGallery(ledger=ledger)
        self.send = SendForm(ledger=ledger)
        self.archive = ArchiveFlow(ledger=ledger)
        self.network = NetworkPicker() if ledger is None else None
        views = [panel.view for panel in self.panels]
        titles = [panel.title for panel in self.panels]
        self.view = _panel.widgets_library().Tab(children=views, titles=titles, selected_index=0)
        self.key.open.on_click(lambda _: self.select(self.account))

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The panels in the order of their tabs."""
        network = () if self.network is None else (self.network,)
        accounts = (self.account, self.key)
        chain = (self.transaction, self.staking, self.contract, self.nfts)
        return (*network, *accounts, *chain, self.send, self.archive)

    @property
    def selected(self) -> Panel:
        """The panel whose tab is open."""
        return self.panels[self.view.selected_index or 0]

    @property
    def result(self) -> pd.DataFrame | None:
        """The main frame of the panel whose tab is open."""
        return self.selected.result

    def select(self, panel: Panel) -> Panel:
        """
        Open the tab of a panel.

        Parameters
        ----------
        panel
            One of `panels`.

        Returns
        -------
        panel
            The same panel.
        """
        self.view.selected_index = self.panels.index(panel)
        return panel

    def static(self) -> str:
        """
        Format the current content without widgets.

        Returns
        -------
        html
            Every panel that has a result or an error; texts from the chain are escaped.
        """
        used = [p.static() for p in self.panels if p.result is not None or p.error is not None]
        titles = ", ".join(panel.title for panel in self.panels)
        head = f"<h2>ledgerkit explorer</h2><p>{_html.text(titles)}</p>"
        return f'<div class="ledgerkit-explorer {NO_MATH}">{head}{"".join(used)}</div>'

    def __repr__(self) -> str:
        return f"<Explorer: {', '.join(map(repr, self.panels))}>"


def explore(*, ledger: Ledger | None = None) -> Explorer:
    """
    Open the interactive explorer.

    Parameters
    ----------
    ledger
        The ledger to use; None is the session's default, which the first tab can change.

    Returns
    -------
    explorer
        The explorer, which a notebook shows. ``explorer.account.result`` is the frame of a
        panel, for the next cell.

    Raises
    ------
    InvalidRequestError
        If ipywidgets is not installed.
    """
    return Explorer(ledger)
