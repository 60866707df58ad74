"""The calls of the REST API: one function for each documented path."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from ledgerkit.api import calls
from ledgerkit.api.models import rest

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call


def _quote(text: str) -> str:
    """Return one part of a path, percent-encoded (the colon of a key too)."""
    return quote(text, safe="")


def accounts_of(public_key: str, *, every_kind: bool = False) -> Call[rest.KeyAccounts]:
    """Build the call for the accounts of a key: with full access, or with any permission."""
    path = f"/v1/public_key/{_quote(public_key)}" + ("/all" if every_kind else "")
    return calls.get(path, rest.KeyAccounts, request=f"the accounts of {public_key}")


def full(account_id: str) -> Call[rest.Full]:
    """Build the call for everything that is indexed about an account."""
    path = f"/v1/account/{_quote(account_id)}/full"
    return calls.get(path, rest.Full, request=f"the state and holdings of {account_id}")


def staking(account_id: str) -> Call[rest.Staking]:
    """Build the call for the staking pools of an account."""
    path = f"/v1/account/{_quote(account_id)}/staking"
    return calls.get(path, rest.Staking, request=f"the staking pools of {account_id}")


def ft(account_id: str) -> Call[rest.FungibleTokens]:
    """Build the call for the fungible tokens of an account."""
    path = f"/v1/account/{_quote(account_id)}/ft"
    return calls.get(path, rest.FungibleTokens, request=f"the tokens of {account_id}")


def nft(account_id: str) -> Call[rest.Collections]:
    """Build the call for the NFT collections of an account."""
    path = f"/v1/account/{_quote(account_id)}/nft"
    return calls.get(path, rest.Collections, request=f"the NFTs of {account_id}")


def top_holders(contract_id: str) -> Call[rest.TopHolders]:
    """Build the call for the largest holders of a token."""
    path = f"/v1/ft/{_quote(contract_id)}/top"
    return calls.get(path, rest.TopHolders, request=f"the top holders of {contract_id}")


def staking_v0(account_id: str) -> Call[rest.StakingV0]:
    """Build the version 0 call for the staking pools of an account."""
    path = f"/v0/account/{_quote(account_id)}/staking"
    return calls.get(path, rest.StakingV0, request=f"the staking pools of {account_id} (v0)")


def ft_v0(account_id: str) -> Call[rest.ContractsV0]:
    """Build the version 0 call for the token contracts of an account."""
    path = f"/v0/account/{_quote(account_id)}/ft"
    return calls.get(path, rest.ContractsV0, request=f"the tokens of {account_id} (v0)")


def nft_v0(account_id: str) -> Call[rest.ContractsV0]:
    """Build the version 0 call for the NFT contracts of an account."""
    path = f"/v0/account/{_quote(account_id)}/nft"
    return calls.get(path, rest.ContractsV0, request=f"the NFTs of {account_id} (v0)")


def status() -> Call[rest.IndexerStatus]:
    """Build the call for the status of the indexer."""
    return calls.get("/status", rest.IndexerStatus, request="the indexer's status")


def health() -> Call[rest.Health]:
    """Build the call for the health of the indexer."""
    return calls.get("/health", rest.Health, request="the indexer's health")
