"""Responses of the REST API; unknown members are ignored, lists may be absent."""

from __future__ import annotations

from typing import ClassVar

from msgspec import UNSET, Raw, Struct, UnsetType


class Listing(Struct, gc=False):
    """
    A list for one account, key or token.

    `subject` is the member that repeats the request, and may be absent. A response of this kind is
    recognized by the members `content`.
    """

    subject: ClassVar[str] = "account_id"
    content: ClassVar[tuple[str, ...]] = ()

    @property
    def has_content(self) -> bool:
        """True if a member was sent that identifies this kind."""
        return getattr(self, self.content[0]) is not None


class KeyAccounts(Listing, gc=False):
    """``/v1/public_key/{public_key}``: the accounts of a key."""

    subject: ClassVar[str] = "public_key"
    content: ClassVar[tuple[str, ...]] = ("account_ids",)

    public_key: str | None = None
    account_ids: list[str] | None = None


class Pool(Struct, gc=False):
    """A staking pool that an account delegated to at any time."""

    pool_id: str
    last_update_block_height: int | None = None


class Token(Struct, gc=False):
    """A fungible token that an account held at any time; the balance may be null."""

    contract_id: str
    balance: str | None
    last_update_block_height: int | None = None


class Collection(Struct, gc=False):
    """
    An NFT collection that an account held at any time, or a token of it.

    The service lists collections; entries of tokens have a `token_id`.
    """

    contract_id: str
    last_update_block_height: int | None = None
    token_id: str | None = None
    balance: Raw | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Refuse the entry of a fungible token."""
        if self.balance is not UNSET:
            raise ValueError("Object has a `balance`: this is a fungible token, no NFT")


class State(Struct, gc=False):
    """An account's balance (yoctoNEAR) and storage; any member may be absent."""

    balance: str | None = None
    locked: str | None = None
    storage_bytes: int | None = None


class Staking(Listing, gc=False):
    """``/v1/account/{id}/staking``."""

    content: ClassVar[tuple[str, ...]] = ("pools",)

    account_id: str | None = None
    pools: list[Pool] | None = None


class FungibleTokens(Listing, gc=False):
    """``/v1/account/{id}/ft``."""

    content: ClassVar[tuple[str, ...]] = ("tokens",)

    account_id: str | None = None
    tokens: list[Token] | None = None


class Collections(Listing, gc=False):
    """``/v1/account/{id}/nft``."""

    content: ClassVar[tuple[str, ...]] = ("tokens",)

    account_id: str | None = None
    tokens: list[Collection] | None = None


class Full(Listing, gc=False):
    """``/v1/account/{id}/full``."""

    content: ClassVar[tuple[str, ...]] = ("nfts", "state")

    account_id: str | None = None
    pools: list[Pool] | None = None
    tokens: list[Token] | None = None
    nfts: list[Collection] | None = None
    state: State | None = None

    @property
    def has_content(self) -> bool:
        """True if the members that were sent are in no other kind of response."""
        has_two = self.pools is not None and self.tokens is not None
        return has_two or self.nfts is not None or self.state is not None

    @property
    def is_indexed(self) -> bool:
        """False if the indexer has neither a state nor holdings of the account."""
        return bool(self.state is not None or self.pools or self.tokens or self.nfts)


class Holder(Struct, gc=False):
    """A holder of a token."""

    account_id: str
    balance: str | None


class TopHolders(Listing, gc=False):
    """``/v1/ft/{token}/top``."""

    subject: ClassVar[str] = "token_id"
    content: ClassVar[tuple[str, ...]] = ("accounts",)

    token_id: str | None = None
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
