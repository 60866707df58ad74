"""
Panels for notebooks: input fields, a button, and the result as tables, pictures and a frame.

A panel sends its request when its button is pressed, or Enter in one of its fields; `press`
does so from code. ``.result`` is the main frame of the result, ``.frames`` holds all of them.
Without a front end, a panel shows its tables as plain HTML. Panels need
``pip install "ledgerkit[notebook]"``.
"""

from typing import TYPE_CHECKING

from ledgerkit import errors
from ledgerkit.widgets.accounts import (
    AccountExplorer,
    KeyLookup,
    StakingExposure,
    StatementExplorer,
)
from ledgerkit.widgets.archive import ArchiveFlow
from ledgerkit.widgets.contracts import ContractViewer
from ledgerkit.widgets.explorer import Explorer, explore
from ledgerkit.widgets.gallery import NftGallery
from ledgerkit.widgets.networks import NetworkPicker
from ledgerkit.widgets.search import Search
from ledgerkit.widgets.sending import SendForm
from ledgerkit.widgets.table import FrameView, TracePanel, show
from ledgerkit.widgets.tokens import TokenExplorer
from ledgerkit.widgets.transactions import BlockExplorer, TransactionExplorer

__all__ = [
    "AccountExplorer",
    "ArchiveFlow",
    "BlockExplorer",
    "ContractViewer",
    "Explorer",
    "FrameView",
    "KeyLookup",
    "NetworkPicker",
    "NftGallery",
    "Search",
    "SendForm",
    "StakingExposure",
    "StatementExplorer",
    "TokenExplorer",
    "TracePanel",
    "TransactionExplorer",
    "explore",
    "show",
]

if not TYPE_CHECKING:  # type checkers report unknown names
    __getattr__ = errors.suggest_attributes(__name__)
