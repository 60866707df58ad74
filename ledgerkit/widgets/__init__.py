"""
Panels for notebooks: input fields, a button, and the result as tables, pictures and a frame.

A panel sends its request when its button is pressed, or Enter in one of its fields; `press`
does so from code. ``.result`` is the main frame of the result, ``.frames`` holds all of them.
Without a front end, a panel shows its tables as plain HTML. Panels need
``pip install "ledgerkit[notebook]"``.
"""

from ledgerkit.widgets.accounts import AccountExplorer, KeyLookup
from ledgerkit.widgets.archive import ArchiveFlow
from ledgerkit.widgets.contracts import ContractViewer
from ledgerkit.widgets.explorer import Explorer, explore
from ledgerkit.widgets.gallery import NftGallery
from ledgerkit.widgets.networks import NetworkPicker
from ledgerkit.widgets.sending import SendForm
from ledgerkit.widgets.staking import StakingExposure
from ledgerkit.widgets.transactions import TransactionExplorer

__all__ = [
    "AccountExplorer",
    "ArchiveFlow",
    "ContractViewer",
    "Explorer",
    "KeyLookup",
    "NetworkPicker",
    "NftGallery",
    "SendForm",
    "StakingExposure",
    "TransactionExplorer",
    "explore",
]
