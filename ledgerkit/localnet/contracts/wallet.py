"""The contract behind account ids that are Ethereum addresses; only its presence is modelled."""

from __future__ import annotations

from ledgerkit.localnet.contract_sdk import Contract


class ImplicitWallet(Contract):
    """Stands on every account of an Ethereum address, shared by all of them."""
