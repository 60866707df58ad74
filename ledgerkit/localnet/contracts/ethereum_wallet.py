"""The wallet contract of ETH-implicit accounts (NEP-518); only its presence is modelled."""

from __future__ import annotations

from ledgerkit.localnet.contract_sdk import Contract


class EthereumWallet(Contract, code_name="ledgerkit.localnet.contracts.wallet.ImplicitWallet"):
    """The global contract that every account with an Ethereum address as its id uses."""
