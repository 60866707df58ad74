"""The indexed REST API: one function a documented path, nothing is sent here."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from ledgerkit import calls
from ledgerkit.wire import indexed

if TYPE_CHECKING:
    from ledgerkit.calls import Call


def _quoted(text: str) -> str:
    """Quote one part of a path; the colon of a key too."""
    return quote(text, safe="")


def accounts_of(public_key: str, *, every_kind: bool = False) -> Call[indexed.KeyAccounts]:
    """Describe the accounts of a key: full-access ones, or every kind."""
    path = f"/v1/public_key/{_quoted(public_key)}" + ("/all" if every_kind else "")
    return calls.get(path, indexed.KeyAccounts, asked=f"the accounts of {public_key}")


def full(account_id: str) -> Call[indexed.Full]:
    """Describe everything indexed of one account."""
    path = f"/v1/account/{_quoted(account_id)}/full"
    return calls.get(path, indexed.Full, asked=f"the full view of {account_id}")


def staking(account_id: str) -> Call[indexed.Staking]:
    """Describe the pools of one account."""
    path = f"/v1/account/{_quoted(account_id)}/staking"
    return calls.get(path, indexed.Staking, asked=f"the staking of {account_id}")


def ft(account_id: str) -> Call[indexed.FungibleTokens]:
    """Describe the fungible tokens of one account."""
    path = f"/v1/account/{_quoted(account_id)}/ft"
    return calls.get(path, indexed.FungibleTokens, asked=f"the tokens of {account_id}")


def nft(account_id: str) -> Call[indexed.Collections]:
    """Describe the NFT collections of one account."""
    path = f"/v1/account/{_quoted(account_id)}/nft"
    return calls.get(path, indexed.Collections, asked=f"the NFTs of {account_id}")


def top_holders(contract_id: str) -> Call[indexed.TopHolders]:
    """Describe the largest holders of a token."""
    path = f"/v1/ft/{_quoted(contract_id)}/top"
    return calls.get(path, indexed.TopHolders, asked=f"the top holders of {contract_id}")


def staking_v0(account_id: str) -> Call[indexed.StakingV0]:
    """Describe the pools of one account, as version 0 lists them."""
    path = f"/v0/account/{_quoted(account_id)}/staking"
    return calls.get(path, indexed.StakingV0, asked=f"the staking of {account_id} (v0)")


def ft_v0(account_id: str) -> Call[indexed.ContractsV0]:
    """Describe the token contracts of one account, as version 0 lists them."""
    path = f"/v0/account/{_quoted(account_id)}/ft"
    return calls.get(path, indexed.ContractsV0, asked=f"the tokens of {account_id} (v0)")


def nft_v0(account_id: str) -> Call[indexed.ContractsV0]:
    """Describe the NFT contracts of one account, as version 0 lists them."""
    path = f"/v0/account/{_quoted(account_id)}/nft"
    return calls.get(path, indexed.ContractsV0, asked=f"the NFTs of {account_id} (v0)")


def status() -> Call[indexed.IndexerStatus]:
    """Describe how far the indexer is."""
    return calls.get("/status", indexed.IndexerStatus, asked="the indexer's status")


def health() -> Call[indexed.Health]:
    """Describe the indexer's own judgement of its health."""
    return calls.get("/health", indexed.Health, asked="the indexer's health")
