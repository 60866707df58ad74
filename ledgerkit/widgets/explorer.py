"""The explorer: a search box, and all panels as tabs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ledgerkit.widgets import _html
from ledgerkit.widgets._panel import Displayable, Panel
from ledgerkit.widgets._window import Window
from ledgerkit.widgets.accounts import (
    AccountExplorer,
    KeyLookup,
    StakingExposure,
    StatementExplorer,
)
from ledgerkit.widgets.archive import ArchiveFlow
from ledgerkit.widgets.contracts import ContractViewer
from ledgerkit.widgets.gallery import NftGallery
from ledgerkit.widgets.networks import NetworkPicker
from ledgerkit.widgets.search import Search
from ledgerkit.widgets.sending import SendForm
from ledgerkit.widgets.tokens import TokenExplorer
from ledgerkit.widgets.transactions import BlockExplorer, TransactionExplorer

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.ledger import Ledger


class Explorer(Displayable):
    """
    A search box, and all panels as tabs.

    Parameters
    ----------
    text
        What to search for first: an id, a symbol, or a contract and a method.
    tokens
        Contracts of tokens that the search also finds by symbol.
    ledger
        The ledger of all panels. None is the session's default, which the tab Network changes.

    Attributes
    ----------
    search, account, statement, key, transaction, block, staking, token, contract
        The panels.
    nfts, send, archive
        The panels.
    network
        The panel that chooses the network; None if `ledger` was passed.
    """

    def __init__(
        self, text: str = "", *, tokens: Iterable[str] = (), ledger: Ledger | None = None
    ) -> None:
        self.search = Search(text, tokens=tokens, ledger=ledger)
        self.network = NetworkPicker() if ledger is None else None
        self.account = AccountExplorer(ledger=ledger)
        self.statement = StatementExplorer(ledger=ledger)
        self.key = KeyLookup(ledger=ledger)
        self.transaction = TransactionExplorer(ledger=ledger)
        self.block = BlockExplorer(ledger=ledger)
        self.staking = StakingExposure(ledger=ledger)
        self.token = TokenExplorer(ledger=ledger)
        self.contract = ContractViewer(ledger=ledger)
        self.nfts = NftGallery(ledger=ledger)
        self.send = SendForm(ledger=ledger)
        self.archive = ArchiveFlow(ledger=ledger)
        # In the order of their tabs.
        panels = [panel for panel in vars(self).values() if panel is not None]
        self.window = Window(panels, ledger, has_tabs=True)
        for panel in panels:
            panel.window = self.window
        if text:
            self.search.press()

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The panels in the order of their tabs."""
        return tuple(self.window.panels)

    @property
    def selected(self) -> Panel:
        """The panel whose tab is open."""
        return self.window.selected

    @property
    def result(self) -> pd.DataFrame | None:
        """The main frame of the panel whose tab is open."""
        return self.selected.result

    def select(self, panel: Panel) -> Panel:
        """
        Open the tab of a panel; without a result it takes the account that was looked up last.

        Parameters
        ----------
        panel
            One of `panels`.

        Returns
        -------
        panel
            The same panel.
        """
        self.window.visit(panel)
        return panel

    def static(self) -> str:
        """
        Format the current content without widgets.

        Returns
        -------
        html
            Every panel that has a result or an error; texts from the chain are escaped.
        """
        used = [
            panel.static_body()
            for panel in self.panels
            if panel.result is not None or panel.error is not None
        ]
        titles = ", ".join(panel.title for panel in self.panels)
        head = f"<h2>ledgerkit explorer</h2><p>{_html.text(titles)}</p>"
        return f'{_html.STYLE}<div class="{_html.CLASSES}">{head}{"".join(used)}</div>'

    def __repr__(self) -> str:
        return f"<Explorer: {', '.join(map(repr, self.panels))}>"


def explore(
    text: str = "", *, tokens: Iterable[str] = (), ledger: Ledger | None = None
) -> Explorer:
    """
    Open the interactive explorer.

    Parameters
    ----------
    text
        What to open first: an account id, a public key, the hash of a transaction or block, a
        receipt id, a block height, the symbol of a token, or a contract and a method such as
        ``"wrap.near ft_metadata"``.
    tokens
        Contracts of tokens that the search also finds by symbol, beside those that were read in
        this session. The first search for a symbol costs a view call for each.
    ledger
        The ledger to use; None is the session's default, which the tab Network can change.

    Returns
    -------
    explorer
        The explorer, which a notebook shows. ``explorer.account.result`` is the frame of a
        panel, for the next cell.

    Raises
    ------
    InvalidRequestError
        If anywidget is not installed.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> explorer = lk.explore("alice.near")
    >>> explorer.account
    <AccountExplorer: alice.near on local: 7 tokens, 2 NFT collections, 2 pools.>
    >>> explorer.account.result[["account_id", "balance", "n_tokens"]]
       account_id                        balance  n_tokens
    0  alice.near  12340675470645764809599999996         7
    """
    return Explorer(text, tokens=tokens, ledger=ledger)
