"""
Panels for notebooks: fields, a button, and the answer as tables, pictures and a frame.

Each asks when its button is pressed, or Enter in one of its fields; `press` does so from
code. ``.result`` is the frame to go on with, ``.frames`` are all of them. Where no front end
runs, a panel shows its tables as plain HTML. They need ``pip install "ledgerkit[notebook]"``.
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
