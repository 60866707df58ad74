"""The indexed REST API: one function a documented path, nothing is sent here."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from ledgerkit.api import calls
from ledgerkit.api.models import rest

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call


def _quoted(text: str) -> str:
    """Quote one part of a path; the colon of a key too."""
    return quote(text, safe="")


def accounts_of(public_key: str, *, every_kind: bool = False) -> Call[rest.KeyAccounts]:
    """Describe the accounts of a key: full-access ones, or every kind."""
    path = f"/v1/public_key/{_quoted(public_key)}" + ("/all" if every_kind else "")
    return calls.get(path, rest.KeyAccounts, asked=f"the accounts of {public_key}")


def full(account_id: str) -> Call[rest.Full]:
    """Describe everything indexed of one account."""
    path = f"/v1/account/{_quoted(account_id)}/full"
    return calls.get(path, rest.Full, asked=f"the full view of {account_id}")


def staking(account_id: str) -> Call[rest.Staking]:
    """Describe the pools of one account."""
    path = f"/v1/account/{_quoted(account_id)}/staking"
    return calls.get(path, rest.Staking, asked=f"the staking of {account_id}")


def ft(account_id: str) -> Call[rest.FungibleTokens]:
    """Describe the fungible tokens of one account."""
    path = f"/v1/account/{_quoted(account_id)}/ft"
    return calls.get(path, rest.FungibleTokens, asked=f"the tokens of {account_id}")


def nft(account_id: str) -> Call[rest.Collections]:
    """Describe the NFT collections of one account."""
    path = f"/v1/account/{_quoted(account_id)}/nft"
    return calls.get(path, rest.Collections, asked=f"the NFTs of {account_id}")


def top_holders(contract_id: str) -> Call[rest.TopHolders]:
    """Describe the largest holders of a token."""
    path = f"/v1/ft/{_quoted(contract_id)}/top"
    return calls.get(path, rest.TopHolders, asked=f"the top holders of {contract_id}")


def staking_v0(account_id: str) -> Call[rest.StakingV0]:
    """Describe the pools of one account, as version 0 lists them."""
    path = f"/v0/account/{_quoted(account_id)}/staking"
    return calls.get(path, rest.StakingV0, asked=f"the staking of {account_id} (v0)")


def ft_v0(account_id: str) -> Call[rest.ContractsV0]:
    """Describe the token contracts of one account, as version 0 lists them."""
    path = f"/v0/account/{_quoted(account_id)}/ft"
    return calls.get(path, rest.ContractsV0, asked=f"the tokens of {account_id} (v0)")


def nft_v0(account_id: str) -> Call[rest.ContractsV0]:
    """Describe the NFT contracts of one account, as version 0 lists them."""
    path = f"/v0/account/{_quoted(account_id)}/nft"
    return calls.get(path, rest.ContractsV0, asked=f"the NFTs of {account_id} (v0)")


def status() -> Call[rest.IndexerStatus]:
    """Describe how far the indexer is."""
    return calls.get("/status", rest.IndexerStatus, asked="the indexer's status")


def health() -> Call[rest.Health]:
    """Describe the indexer's own judgement of its health."""
    return calls.get("/health", rest.Health, asked="the indexer's health")
