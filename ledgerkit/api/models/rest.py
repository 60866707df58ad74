"""Responses of the REST API; unknown members are ignored, lists may be absent."""

from __future__ import annotations

from msgspec import Struct


class KeyAccounts(Struct, gc=False):
    """``/v1/public_key/{public_key}``: the accounts of a key."""

    public_key: str
    account_ids: list[str] | None = None


class Pool(Struct, gc=False):
    """A staking pool that an account delegated to at any time."""

    pool_id: str
    last_update_block_height: int | None = None


class Token(Struct, gc=False):
    """A fungible token that an account held at any time."""

    contract_id: str
    balance: str | None = None
    last_update_block_height: int | None = None


class Collection(Struct, gc=False):
    """A collection of which an account held an NFT at any time."""

    contract_id: str
    last_update_block_height: int | None = None


class State(Struct, gc=False):
    """An account's own balance (yoctoNEAR) and storage."""

    balance: str
    locked: str
    storage_bytes: int


class Staking(Struct, gc=False):
    """``/v1/account/{id}/staking``."""

    account_id: str
    pools: list[Pool] | None = None


class FungibleTokens(Struct, gc=False):
    """``/v1/account/{id}/ft``."""

    account_id: str
    tokens: list[Token] | None = None


class Collections(Struct, gc=False):
    """``/v1/account/{id}/nft``."""

    account_id: str
    tokens: list[Collection] | None = None


class Full(Struct, gc=False):
    """``/v1/account/{id}/full``."""

    account_id: str
    pools: list[Pool] | None = None
    tokens: list[Token] | None = None
    nfts: list[Collection] | None = None
    state: State | None = None


class StakingV0(Struct, gc=False):
    """``/v0/account/{id}/staking``."""

    account_id: str
    pools: list[str] | None = None


class ContractsV0(Struct, gc=False):
    """``/v0/account/{id}/ft`` and ``/nft``."""

    account_id: str
    contract_ids: list[str] | None = None


class Holder(Struct, gc=False):
    """One holder of a token."""

    account_id: str
    balance: str | None = None


class TopHolders(Struct, gc=False):
    """``/v1/ft/{token}/top``."""

    token_id: str
    accounts: list[Holder] | None = None


class IndexerStatus(Struct, gc=False):
    """``/status``."""

    version: str
    sync_block_height: int | None = None
    sync_latency_sec: float | None = None
    sync_block_timestamp_nanosec: str | None = None
    sync_balance_block_height: int | None = None


class Health(Struct, gc=False):
    """``/health``."""

    status: str
