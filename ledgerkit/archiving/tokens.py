"""The token of a widget: decided, looked for, minted, confirmed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from ledgerkit import client, validation
from ledgerkit.api import rpc
from ledgerkit.api.models import chain
from ledgerkit.archiving.sources import recorded
from ledgerkit.errors import ContractPanicError, InvalidRequestError, cut
from ledgerkit.sending import broadcast, verbs
from ledgerkit.verbs import tokens as token_views

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

    from ledgerkit.archiving.sources import Record, Widget
    from ledgerkit.client import Ledger
    from ledgerkit.sending.signers import Signer
    from ledgerkit.sending.submission import Submission

T = TypeVar("T")

PREFIX = "widget-"
ATTEMPTS = 5
PAUSE_S = 1.0
PATIENCE_S = 120.0
DIGITS = 12  # of the hash, in a token's id
MINT_GAS = "100 Tgas"
_LONGEST_PREFIX = 64
_PAGE = 100
_MOST_TOKENS = 100_000  # of one owner; a hostile contract never ends
MOST_COPIES = 2**53  # beyond, other languages round


@dataclass(frozen=True, slots=True)
class TokenPlan:
    """
    The token that is to be.

    Parameters
    ----------
    token_id
        Its id, which follows from the source.
    receiver_id
        Whose it becomes.
    metadata
        Title, description, copies, and the serialized record as `extra`.
    record
        What that record says.
    """

    token_id: str
    receiver_id: str
    metadata: dict[str, Any]
    record: Record


class Seen(NamedTuple):
    """A token as a collection tells it, and at which block it did."""

    token: chain.NftToken | None
    block_height: int | None


# Deciding -------------------------------------------------------------------------------


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
    Decide the token of a widget; nothing is asked.

    Parameters
    ----------
    widget
        The widget, as it was read.
    receiver_id
        Whose the token becomes.
    token_prefix
        What its id begins with; the first 12 digits of the source's hash follow.
    title, description
        Of its metadata; None is the widget's name, and its path and block.
    copies
        How many copies it stands for.

    Returns
    -------
    plan
        The same for the same source, prefix and words.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed.
    """
    told = f"The source of {widget.path}, written in block {widget.socialdb_block_height}"
    metadata = {
        "title": checked_text(widget.widget_name if title is None else title, "title"),
        "description": checked_text(told if description is None else description, "description"),
        "copies": validation.integer(copies, "copies", least=1, most=MOST_COPIES),
        "extra": msgspec.json.encode(widget.record).decode(),
    }
    token_id = checked_prefix(token_prefix) + widget.sha256[:DIGITS]
    owner_id = validation.account_id(receiver_id, "receiver_id")
    return TokenPlan(token_id, owner_id, metadata, widget.record)


def differences(plan: TokenPlan, token: chain.NftToken) -> list[str]:
    """Compare a token with the plan: its owner, and the hash of its source."""
    record = record_of(token)
    found = None if record is None else record.source_sha256
    wanted = plan.record.source_sha256
    owner = f"its owner is {cut(token.owner_id)}, not {plan.receiver_id}"
    source = f"its source_sha256 is {cut(found or 'not told')}, not {wanted}"
    wrong = ((token.owner_id != plan.receiver_id, owner), (found != wanted, source))
    return [sentence for is_wrong, sentence in wrong if is_wrong]


def record_of(token: chain.NftToken) -> Record | None:
    """Read the record of a token."""
    return None if token.metadata is None else recorded(token.metadata.extra)


def checked_prefix(value: object) -> str:
    """Check what a token's id begins with."""
    if isinstance(value, str) and len(value) <= _LONGEST_PREFIX and value.isprintable():
        return value
    rule = f"a text of at most {_LONGEST_PREFIX} printable characters"
    raise InvalidRequestError.refuse("token_prefix", value, rule)


def checked_text(value: object, name: str) -> str:
    """Check a text of the metadata."""
    if not isinstance(value, str):
        raise InvalidRequestError.refuse(name, value, "a text")
    return value


# Reading --------------------------------------------------------------------------------


def receiver_view(receiver_id: str, collection: str, *, target: Ledger) -> pd.DataFrame:
    """
    Check whether an account's NFT view lists a collection.

    Parameters
    ----------
    receiver_id
        The account.
    collection
        The collection's contract.
    target
        The ledger that holds it.

    Returns
    -------
    listed
        One row where it is listed, none where it is not, typed as `schema("nft")`.

    Raises
    ------
    InvalidRequestError
        If an id is malformed.
    LedgerError
        If the view could not be read.
    """
    contract_id = validation.account_id(collection, "collection")
    receiver_id = validation.account_id(receiver_id, "receiver_id")
    held = token_views.nft(receiver_id, ledger=target)
    return held[held["contract_id"] == contract_id].reset_index(drop=True)


def find_token(token_id: str, collection: str, *, target: Ledger, at: object = None) -> Seen:
    """
    Ask a collection for a token.

    Parameters
    ----------
    token_id
        The token's id.
    collection
        The collection's contract.
    target
        The ledger that holds it.
    at
        A height, a block hash, a finality name or a time; None is ``final``.

    Returns
    -------
    seen
        The token, None where there is none, and the block at which that was read.

    Raises
    ------
    LedgerError
        If it could not be asked, or the contract is no collection.

    Notes
    -----
    Source: view call nft_token.
    """
    asked = client.current(target)
    contract_id = validation.account_id(collection, "collection")
    args = validation.json_args({"token_id": checked_text(token_id, "token_id")})
    call = rpc.call_function(contract_id, "nft_token", args, asked.locate(at))
    answer = asked.send(call)
    token: chain.NftToken | None = None
    if rpc.returned(answer, call.asked):  # some contracts return nothing in place of null
        token = rpc.decoded(answer, chain.NftToken | None, call.asked)
    return Seen(token, answer.block_height)


def confirm_token(token_id: str, collection: str, *, target: Ledger) -> Seen:
    """
    Ask for a token that is final, up to five times, a second apart.

    Parameters
    ----------
    token_id
        The token's id.
    collection
        The collection's contract.
    target
        The ledger that holds it.

    Returns
    -------
    seen
        The token; None if it did not appear.

    Raises
    ------
    LedgerError
        As `find_token`.
    """
    asked = client.current(target)
    return until(
        lambda: find_token(token_id, collection, target=asked),
        lambda seen: seen.token is not None,
        asked,
    )


def owner_has(plan: TokenPlan, collection: str, *, target: Ledger) -> bool:
    """
    Tell whether the collection lists a token among its owner's, asking as `confirm_token` does.

    Parameters
    ----------
    plan
        The token and its owner.
    collection
        The collection's contract.
    target
        The ledger that holds it.

    Returns
    -------
    listed
        Whether it does.

    Raises
    ------
    LedgerError
        If the list could not be read.

    Notes
    -----
    Source: view call nft_tokens_for_owner.
    """
    asked, contract_id = client.current(target), validation.account_id(collection, "collection")

    def listed() -> bool:
        pages = _pages_of_owner(plan.receiver_id, contract_id, asked)
        return any(token.token_id == plan.token_id for page in pages for token in page)

    return until(listed, bool, asked)


def _pages_of_owner(
    owner_id: str, contract_id: str, asked: Ledger
) -> Iterator[list[chain.NftToken]]:
    """Read an owner's tokens page by page, at the blocks that are final."""
    found: set[str] = set()
    while len(found) < _MOST_TOKENS:
        args = {"account_id": owner_id, "from_index": str(len(found)), "limit": _PAGE}
        data = validation.json_args(args)
        call = rpc.call_function(contract_id, "nft_tokens_for_owner", data, asked.locate())
        try:
            page = rpc.decoded(asked.send(call), list[chain.NftToken], call.asked)
        except ContractPanicError:
            if found:  # many contracts panic where an index is behind the last token
                return
            raise
        yield page
        new = {token.token_id for token in page} - found
        if not new:
            return
        found |= new


def until(look: Callable[[], T], is_there: Callable[[T], bool], asked: Ledger) -> T:
    """Look until it is there, as often as `ATTEMPTS` says."""
    for _ in range(ATTEMPTS - 1):
        found = look()
        if is_there(found):
            return found
        broadcast.wait_for_block(asked, PAUSE_S)
    return look()


# Acting ---------------------------------------------------------------------------------


def mint_token(
    plan: TokenPlan,
    collection: str,
    *,
    target: Ledger,
    signer: Signer,
    deposit: str | int = "0.1 NEAR",
    wait_until: str = "FINAL",
    timeout_s: float = PATIENCE_S,
    allow_mainnet: bool = False,
) -> Submission:
    """
    Mint the token of a plan, and follow the transaction.

    Parameters
    ----------
    plan
        The token.
    collection
        The collection's contract.
    target
        The ledger that holds it.
    signer
        Who signs, and pays.
    deposit
        What is attached; of it the collection pays for the token's bytes.
    wait_until
        How far to follow it.
    timeout_s
        How long to do so.
    allow_mainnet
        Whether to sign where the chain is mainnet.

    Returns
    -------
    submission
        How far the transaction came.

    Raises
    ------
    InvalidTransactionError
        If the ledger refused it.
    LedgerError
        If it could not be sent.
    """
    told = {"token_id": plan.token_id, "receiver_id": plan.receiver_id, "metadata": plan.metadata}
    return verbs.call(
        collection,
        "nft_mint",
        told,
        gas=MINT_GAS,
        deposit=deposit,
        signer_id=signer.account_id,
        key=signer,
        wait_until=wait_until,
        timeout_s=timeout_s,
        allow_mainnet=allow_mainnet,
        ledger=target,
    )
