"""Verbs about transactions: their results, their receipt trees, a single receipt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, overload

import msgspec

from ledgerkit import client, validation
from ledgerkit.api import rpc
from ledgerkit.errors import InvalidRequestError
from ledgerkit.tracing.trace import receipts_of
from ledgerkit.verbs.blocks import transactions
from ledgerkit.verbs.fetching import Ask
from ledgerkit.verbs.trace_inputs import SOURCE, traced

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.calls import Call
    from ledgerkit.client import Ledger, OnError
    from ledgerkit.tracing.trace import Trace
    from ledgerkit.verbs.fetching import Answer

Pairs = Iterable[tuple[str, str]]


def _call(tx_hash: str, sender: str, wait_until: str, *, receipts: bool) -> Call[rpc.TxAnswer]:
    """Check which transaction is meant, and describe the call."""
    return rpc.transaction(
        validation.crypto_hash(tx_hash, "tx_hash"),
        validation.account_id(sender, "sender"),
        validation.one_of(wait_until, "wait_until", validation.WAIT_LEVELS),
        receipts=receipts,
    )


def tx(
    tx_hash: str, sender: str, *, wait_until: str = "FINAL", ledger: Ledger | None = None
) -> dict[str, Any]:
    """
    Read a transaction's result as the node sends it.

    Parameters
    ----------
    tx_hash
        The transaction.
    sender
        The account that signed it.
    wait_until
        How far it must be: NONE, INCLUDED, EXECUTED_OPTIMISTIC, INCLUDED_FINAL,
        EXECUTED or FINAL.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    result
        The decoded result; integers exact.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was sent then.
    TransactionTimeoutError
        If the level was not reached in time, which says nothing about failure.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: tx.
    """
    answer = client.current(ledger).send(_call(tx_hash, sender, wait_until, receipts=False))
    result: dict[str, Any] = msgspec.json.decode(answer.body)["result"]
    return result


def trace(
    tx_hash: str,
    sender: str,
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    ledger: Ledger | None = None,
) -> Trace:
    """
    Read what a transaction set off: its receipt tree.

    Parameters
    ----------
    tx_hash
        The transaction.
    sender
        The account that signed it.
    wait_until
        How far it must be: NONE, INCLUDED, EXECUTED_OPTIMISTIC, INCLUDED_FINAL,
        EXECUTED or FINAL.
    blocks
        Whether to read the blocks that the receipts ran in, for their heights and
        times, and the rules in force then, for shards and the rewards of contracts; each
        is read once a session.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    trace
        The tree, with frames, a `verdict`, and a story to `explain`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was sent then.
    TransactionTimeoutError
        If the level was not reached in time, which says nothing about failure.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: EXPERIMENTAL_tx_status; heights and times: block; shards and rewards:
    EXPERIMENTAL_protocol_config.
    """
    asked = client.current(ledger)
    answer = asked.send(_call(tx_hash, sender, wait_until, receipts=True))
    return traced(asked, [answer], blocks=blocks)[0]


@overload
def traces(
    pairs: Pairs,
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    on_error: Literal["raise"] = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> pd.DataFrame: ...
@overload
def traces(
    pairs: Pairs,
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    on_error: Literal["collect"],
    progress: bool = True,
    ledger: Ledger | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def traces(
    pairs: Pairs,
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    on_error: OnError = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Answer:
    """
    Read the receipt trees of many transactions as one frame.

    Parameters
    ----------
    pairs
        Each transaction's hash, and the account that signed it.
    wait_until
        How far they must be: NONE, INCLUDED, EXECUTED_OPTIMISTIC, INCLUDED_FINAL,
        EXECUTED or FINAL.
    blocks
        Whether to read the blocks that the receipts ran in, for their heights, times and
        shards; each is read once a session.
    on_error
        ``raise`` stops at the first failure; ``collect`` gives a second frame of failures,
        by tx_hash.
    progress
        Whether a bar shows.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    receipts
        One row a receipt, transaction by transaction, each in causal order, typed as
        `schema("traces")`; with ``on_error="collect"`` also the errors.

    Raises
    ------
    InvalidRequestError
        If a pair or another argument is malformed; nothing was sent then.
    LedgerError
        If a transaction could not be read, unless collected, or one of the blocks.

    Notes
    -----
    Source: EXPERIMENTAL_tx_status; heights and times: block; shards:
    EXPERIMENTAL_protocol_config.
    """
    named = dict.fromkeys(_pair(pair) for pair in pairs)
    calls = [_call(tx_hash, sender, wait_until, receipts=True) for tx_hash, sender in named]
    ask = Ask(client.current(ledger), on_error, progress)
    found = ask.each([tx_hash for tx_hash, _ in named], calls, "transactions")
    answers = [answer for _, answer in found]
    made = traced(ask.ledger, answers, blocks=blocks, progress=progress)
    hashes = [tx_hash for tx_hash, _ in found]
    return ask.answer(receipts_of(dict(zip(hashes, made, strict=True))), SOURCE)


def _pair(pair: object) -> tuple[str, str]:
    """Check a transaction's hash and sender."""
    if isinstance(pair, str) or not isinstance(pair, Iterable) or len(both := tuple(pair)) != _TWO:
        rule = "pairs of a transaction's hash and its signer's account id"
        raise InvalidRequestError.refuse("pairs", pair, rule)
    return validation.crypto_hash(both[0], "tx_hash"), validation.account_id(both[1], "sender")


_TWO = 2


@overload
def trace_block(
    at: object = "final",
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    on_error: Literal["raise"] = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> pd.DataFrame: ...
@overload
def trace_block(
    at: object = "final",
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    on_error: Literal["collect"],
    progress: bool = True,
    ledger: Ledger | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def trace_block(
    at: object = "final",
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    on_error: OnError = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Answer:
    """
    Read the receipt trees of all transactions that a block includes.

    Parameters
    ----------
    at
        A height, a block hash, a finality name or a time.
    wait_until
        How far they must be: NONE, INCLUDED, EXECUTED_OPTIMISTIC, INCLUDED_FINAL,
        EXECUTED or FINAL.
    blocks
        Whether to read the blocks that the receipts ran in, for their heights, times and
        shards.
    on_error
        ``raise`` stops at the first failure; ``collect`` gives a second frame of the
        transactions that could not be read, by tx_hash.
    progress
        Whether a bar shows.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    receipts
        One row a receipt, transaction by transaction in the block's order, typed as
        `schema("traces")`; with ``on_error="collect"`` also the errors.

    Raises
    ------
    LedgerError
        If the block, one of its chunks, or, unless collected, one of its transactions could
        not be read.

    Notes
    -----
    Source: block, chunk and EXPERIMENTAL_tx_status; shards: EXPERIMENTAL_protocol_config.
    """
    validation.one_of(wait_until, "wait_until", validation.WAIT_LEVELS)
    included = transactions(at, progress=progress, ledger=ledger)
    pairs = zip(included["tx_hash"], included["signer_id"], strict=True)
    options: dict[str, Any] = {"wait_until": wait_until, "blocks": blocks, "progress": progress}
    return traces(pairs, **options, on_error=on_error, ledger=ledger)


def receipts(
    tx_hash: str,
    sender: str,
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    ledger: Ledger | None = None,
) -> pd.DataFrame:
    """
    Read the receipt tree of a transaction as a frame.

    Parameters
    ----------
    tx_hash
        The transaction.
    sender
        The account that signed it.
    wait_until
        How far it must be: NONE, INCLUDED, EXECUTED_OPTIMISTIC, INCLUDED_FINAL,
        EXECUTED or FINAL.
    blocks
        Whether to read the blocks that the receipts ran in, for their heights and times.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    receipts
        One row a receipt in causal order, typed as `schema("receipts")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was sent then.
    TransactionTimeoutError
        If the level was not reached in time, which says nothing about failure.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: EXPERIMENTAL_tx_status; heights and times: block.
    """
    return trace(tx_hash, sender, wait_until=wait_until, blocks=blocks, ledger=ledger).receipts


def receipt(receipt_id: str, *, ledger: Ledger | None = None) -> dict[str, Any]:
    """
    Read one receipt as the node sends it.

    Parameters
    ----------
    receipt_id
        The receipt.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    receipt
        The decoded receipt.

    Raises
    ------
    UnknownReceiptError
        If the node knows no such receipt.
    InvalidRequestError
        If the id is malformed; nothing was sent then.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: EXPERIMENTAL_receipt.
    """
    found: dict[str, Any] = client.current(ledger).send(
        rpc.receipt(validation.crypto_hash(receipt_id, "receipt_id"))
    )
    return found
