"""The calls of the REST API: one function per documented path."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from ledgerkit import errors
from ledgerkit.api import calls
from ledgerkit.api.models import rest

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call, Response

Listing = TypeVar("Listing", bound=rest.Listing)

_MOST_MEMBERS = 8  # names of members in the error for an unexpected document


def read_listing(response: Response, kind: type[Listing], request: str) -> Listing:
    """
    Decode a response about one account, key or token.

    A response may lack content if it has only its subject. With other members it belongs to
    another path, and is an error.
    """
    value: Listing = calls.read_api(response, kind, request)
    if not value.has_content:
        members = calls.read_api(response, dict[str, msgspec.Raw], request)
        if members.keys() != {kind.subject} and members.keys().isdisjoint(kind.content):
            raise calls.not_as_documented(request, _no_content(kind, members))
    return value


def _no_content(kind: type[Any], members: dict[str, Any]) -> msgspec.DecodeError:
    expected = " or ".join(f"`{name}`" for name in kind.content)
    present = ", ".join(f"`{errors.cut(name)}`" for name in list(members)[:_MOST_MEMBERS])
    return msgspec.DecodeError(f"Object has no {expected}, but {present or 'no members'}")


def _get(path: str, kind: type[Listing], subject: str, noun: str) -> Call[Listing]:
    """Build the call for a listing; `read` adds the subject to responses without it."""
    request = f"{noun} of {subject}"
    read = partial(_read_subject, kind, subject, request)
    part = quote(subject, safe="")  # the colon of a key too
    return calls.get(path.format(part), kind, request=request, read=read)


def _read_subject(kind: type[Listing], subject: str, request: str, response: Response) -> Listing:
    value = read_listing(response, kind, request)
    if getattr(value, kind.subject) is None:
        setattr(value, kind.subject, subject)
    return value


def accounts_of(public_key: str, *, every_kind: bool = False) -> Call[rest.KeyAccounts]:
    """Build the call for the accounts of a key: with full access, or with any permission."""
    path = "/v1/public_key/{}/all" if every_kind else "/v1/public_key/{}"
    return _get(path, rest.KeyAccounts, public_key, "the accounts")


def full(account_id: str) -> Call[rest.Full]:
    return _get("/v1/account/{}/full", rest.Full, account_id, "the state and holdings")


def staking(account_id: str) -> Call[rest.Staking]:
    return _get("/v1/account/{}/staking", rest.Staking, account_id, "the staking pools")


def ft(account_id: str) -> Call[rest.FungibleTokens]:
    return _get("/v1/account/{}/ft", rest.FungibleTokens, account_id, "the tokens")


def nft(account_id: str) -> Call[rest.Collections]:
    return _get("/v1/account/{}/nft", rest.Collections, account_id, "the NFTs")


def top_holders(contract_id: str) -> Call[rest.TopHolders]:
    return _get("/v1/ft/{}/top", rest.TopHolders, contract_id, "the top holders")


def status() -> Call[rest.IndexerStatus]:
    return calls.get("/status", rest.IndexerStatus, request="the indexer's status")
