"""The token of a widget: planning, reading, minting and confirming it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from ledgerkit import client, validation
from ledgerkit.api import rpc
from ledgerkit.api.models import chain
from ledgerkit.archiving import declaring
from ledgerkit.archiving.widget_sources import Record, Widget, parse_record
from ledgerkit.errors import InvalidRequestError, cut
from ledgerkit.sending import broadcast, verbs
from ledgerkit.verbs import nft_pages
from ledgerkit.verbs import tokens as token_verbs

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.ledger import Ledger
    from ledgerkit.sending.signers import Signer
    from ledgerkit.sending.submission import Submission

T = TypeVar("T")

PREFIX = "widget-"
ATTEMPTS = 5
PAUSE_S = 1.0
TIMEOUT_S = 120.0
DIGITS = 12  # digits of the hash in a token id
_MAX_PREFIX = 64  # characters
_PAGE = 100
_MAX_COPIES = 2**53  # other languages round larger JSON numbers


@dataclass(frozen=True, slots=True)
class TokenPlan:
    """
    The token to mint.

    Parameters
    ----------
    token_id
        The token id, derived from the source.
    receiver_id
        The account that will own it.
    metadata
        Title, description, copies, and the serialized record as `extra`.
    record
        The record.
    """

    token_id: str
    receiver_id: str
    metadata: dict[str, Any]
    record: Record


class TokenReading(NamedTuple):
    """A token read from a collection, or None, and the block at which it was read."""

    token: chain.NftToken | None
    block_height: int | None


# Planning -------------------------------------------------------------------------------


@declaring.shared_parameters
def plan_token(
    widget: Widget,
    receiver_id: str,
    *,
    token_prefix: str = PREFIX,
    title: str | None = None,
    description: str | None = None,
    copies: int = 1,
) -> TokenPlan:
    """
    Derive the token of a widget, without a request.

    Parameters
    ----------
    widget
        The widget.

    Returns
    -------
    plan
        The plan, which depends on the arguments only.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed.
    """
    check_plan_options(token_prefix, title, description, copies)
    default = f"The source of {widget.path}, written in block {widget.socialdb_block_height}"
    metadata = {
        "title": widget.widget_name if title is None else title,
        "description": default if description is None else description,
        "copies": int(copies),
        "extra": msgspec.json.encode(widget.record).decode(),
    }
    owner_id = validation.account_id(receiver_id, "receiver_id")
    return TokenPlan(token_prefix + widget.sha256[:DIGITS], owner_id, metadata, widget.record)


def differences(plan: TokenPlan, token: chain.NftToken) -> list[str]:
    """List the differences in owner and source hash between a token and its plan."""
    record = record_of(token)
    actual = "unknown" if record is None else record.source_sha256
    expected = plan.record.source_sha256
    sentences = []
    if token.owner_id != plan.receiver_id:
        sentences.append(f"its owner is {cut(token.owner_id)}, not {plan.receiver_id}")
    if actual != expected:
        sentences.append(f"its source_sha256 is {cut(actual)}, not {expected}")
    return sentences


def record_of(token: chain.NftToken) -> Record | None:
    """Return the record of a token, or None."""
    return None if token.metadata is None else parse_record(token.metadata.extra)


def check_plan_options(
    token_prefix: object, title: object, description: object, copies: object
) -> None:
    for name, value in {"title": title, "description": description}.items():
        if value is not None:
            check_text(value, name)
    is_short = isinstance(token_prefix, str) and len(token_prefix) <= _MAX_PREFIX
    if not is_short or not str(token_prefix).isprintable():
        expected = f"a text of at most {_MAX_PREFIX} printable characters"
        raise InvalidRequestError.refuse("token_prefix", token_prefix, expected)
    validation.integer(copies, "copies", least=1, most=_MAX_COPIES)


def check_text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequestError.refuse(name, value, "a text")
    return value


# Reading --------------------------------------------------------------------------------


@declaring.shared_parameters
def receiver_view(receiver_id: str, collection: str, *, target: Ledger) -> pd.DataFrame:
    """
    Check whether an account's NFT list includes a collection.

    Parameters
    ----------
    receiver_id
        The account.

    Returns
    -------
    listed
        One row if the collection is listed, else none, typed as `schema("nft")`.

    Raises
    ------
    InvalidRequestError
        If an id is malformed.
    LedgerError
        If the request fails.
    """
    contract_id = validation.account_id(collection, "collection")
    receiver_id = validation.account_id(receiver_id, "receiver_id")
    collections = token_verbs.nft(receiver_id, ledger=target)
    return collections[collections["contract_id"] == contract_id].reset_index(drop=True)


@declaring.shared_parameters
def find_token(
    token_id: str, collection: str, *, target: Ledger, at: object = None
) -> TokenReading:
    """
    Read a token from its collection.

    Returns
    -------
    reading
        The token, or None if it does not exist, and the block at which it was read.

    Raises
    ------
    LedgerError
        If the request fails, or the contract is not an NFT collection.

    Notes
    -----
    Source: view call nft_token.
    """
    ledger = client.current(target)
    contract_id = validation.account_id(collection, "collection")
    args = validation.json_args({"token_id": check_text(token_id, "token_id")})
    call = rpc.call_function(contract_id, "nft_token", args, ledger.locate(at))
    call_result = ledger.send(call)
    token: chain.NftToken | None = None
    # Some contracts return nothing in place of null.
    if rpc.result_bytes(call_result, call.request):
        token = rpc.result_json(call_result, chain.NftToken | None, call.request)
    return TokenReading(token, call_result.block_height)


@declaring.shared_parameters
def confirm_token(token_id: str, collection: str, *, target: Ledger) -> TokenReading:
    """
    Wait until a token is final, with up to five readings, a second apart.

    Returns
    -------
    reading
        The token, or None if it did not appear.

    Raises
    ------
    LedgerError
        As `find_token`.
    """
    ledger = client.current(target)
    return read_until(
        lambda: find_token(token_id, collection, target=ledger),
        lambda reading: reading.token is not None,
        ledger,
    )


@declaring.shared_parameters
def owner_has(plan: TokenPlan, collection: str, *, target: Ledger) -> bool:
    """
    Check whether the collection lists a token among its owner's, with up to five readings.

    Parameters
    ----------
    plan
        The token and its owner.

    Returns
    -------
    listed
        True if the token is listed.

    Raises
    ------
    LedgerError
        If a request fails.

    Notes
    -----
    Source: view call nft_tokens_for_owner.
    """
    ledger, contract_id = client.current(target), validation.account_id(collection, "collection")

    def is_listed() -> bool:
        token_ids: set[str | bytes] = set()
        new_ids: set[str | bytes] = {""}
        while new_ids and plan.token_id not in new_ids and len(token_ids) < nft_pages.MAX_TOKENS:
            start, at = len(token_ids), ledger.locate()
            call = nft_pages.tokens_page(plan.receiver_id, contract_id, start, _PAGE, at)
            page = nft_pages.decode_tokens(ledger.send(call), call.request)
            new_ids = {token.key for token in page} - token_ids
            token_ids |= new_ids
        return plan.token_id in new_ids

    return read_until(is_listed, bool, ledger)


def read_until(read: Callable[[], T], is_done: Callable[[T], bool], ledger: Ledger) -> T:
    """Read until the result is as expected, at most `ATTEMPTS` times; return the last result."""
    for _ in range(ATTEMPTS - 1):
        result = read()
        if is_done(result):
            return result
        broadcast.wait_for_block(ledger, PAUSE_S)
    return read()


# Minting --------------------------------------------------------------------------------


@declaring.shared_parameters
def mint_token(
    plan: TokenPlan,
    collection: str,
    *,
    target: Ledger,
    signer: Signer,
    deposit: str | int = "0.1 NEAR",
    wait_until: str = "FINAL",
    timeout_s: float = TIMEOUT_S,
    allow_mainnet: bool = False,
) -> Submission:
    """
    Mint a token, and wait for the transaction.

    Parameters
    ----------
    plan
        The token.
    wait_until
        The level to wait for.

    Returns
    -------
    submission
        The transaction and its state.

    Raises
    ------
    InvalidTransactionError
        If the ledger refused the transaction.
    LedgerError
        If it could not be sent.
    """
    return verbs.call(
        collection,
        "nft_mint",
        {"token_id": plan.token_id, "receiver_id": plan.receiver_id, "metadata": plan.metadata},
        gas="100 Tgas",
        deposit=deposit,
        signer_id=signer.account_id,
        key=signer,
        wait_until=wait_until,
        timeout_s=timeout_s,
        allow_mainnet=allow_mainnet,
        ledger=target,
    )
