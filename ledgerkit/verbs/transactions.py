"""Verbs about transactions: results, receipt trees, single receipts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, overload

from ledgerkit import client, validation
from ledgerkit.api import calls, rpc
from ledgerkit.errors import InvalidRequestError
from ledgerkit.tracing.traces import Traces
from ledgerkit.verbs.blocks import transactions
from ledgerkit.verbs.fetching import Fetcher, errors_frame, provenance
from ledgerkit.verbs.trace_inputs import SOURCE, build_traces, read_results

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.client import Ledger, OnError
    from ledgerkit.tracing.trace import Trace

Pairs = Iterable[tuple[str, str]]


def tx(
    tx_hash: str, sender: str, *, wait_until: str = "FINAL", ledger: Ledger | None = None
) -> dict[str, Any]:
    """
    Return the result of a transaction as the node sends it.

    Parameters
    ----------
    tx_hash
        The transaction's hash.
    sender
        The account that signed it.
    wait_until
        The level to wait for: NONE, INCLUDED, EXECUTED_OPTIMISTIC, INCLUDED_FINAL,
        EXECUTED or FINAL.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    result
        The decoded JSON, with exact integers.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed. Nothing is sent.
    TransactionTimeoutError
        If the level was not reached in time; the transaction may still succeed.
    LedgerError
        If the response could not be read.

    Notes
    -----
    Source: tx.
    """
    call = rpc.transaction(
        *_check_pair((tx_hash, sender)), _check_level(wait_until), receipts=False
    )
    answer = client.current(ledger).send(call)
    result: dict[str, Any] = calls.read_rpc(calls.Response(answer.body), Any, call.request)
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
    Return the trace of a transaction: its tree of receipts.

    Parameters
    ----------
    tx_hash
        The transaction's hash.
    sender
        The account that signed it.
    wait_until
        The level to wait for: NONE, INCLUDED, EXECUTED_OPTIMISTIC, INCLUDED_FINAL,
        EXECUTED or FINAL. A transaction that does not reach it in time is returned as far
        as it is known.
    blocks
        Read the blocks in which the receipts ran, for heights and times, and the protocol
        configuration in force, for shards and contract rewards. Each is read once and
        cached.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    trace
        The tree of receipts, with frames, a `verdict` and an explanation. The verdict is
        ``pending`` while receipts have not run.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing is sent then. If another account signed the
        transaction.
    UnknownTransactionError
        If there is no such transaction, or the host does not have it.
    TransactionTimeoutError
        If the host does not know in time what became of the transaction.
    LedgerError
        If the response could not be read.

    Notes
    -----
    Source: EXPERIMENTAL_tx_status; heights and times from block; shards and rewards from
    EXPERIMENTAL_protocol_config.
    """
    pair, level = _check_pair((tx_hash, sender)), _check_level(wait_until)
    fetcher = Fetcher(client.current(ledger))
    results = read_results(fetcher, [pair], level)
    return build_traces(fetcher.ledger, list(results.values()), blocks=blocks)[0]


@overload
def traces(
    pairs: Pairs,
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    on_error: Literal["raise"] = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Traces: ...
@overload
def traces(
    pairs: Pairs,
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    on_error: Literal["collect"],
    progress: bool = True,
    ledger: Ledger | None = None,
) -> tuple[Traces, pd.DataFrame]: ...
def traces(
    pairs: Pairs,
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    on_error: OnError = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Traces | tuple[Traces, pd.DataFrame]:
    """
    Return the traces of several transactions, with the frames of all of them combined.

    Parameters
    ----------
    pairs
        Pairs of a transaction's hash and the account that signed it.
    wait_until
        The level to wait for: NONE, INCLUDED, EXECUTED_OPTIMISTIC, INCLUDED_FINAL,
        EXECUTED or FINAL. A transaction that does not reach it in time is returned as far
        as it is known.
    blocks
        Read the blocks in which the receipts ran, for heights and times, and the protocol
        configuration in force, for shards and contract rewards. Each is read once and
        cached.
    on_error
        ``raise`` raises the first failure; ``collect`` also returns a frame of all failures,
        by transaction hash.
    progress
        Show a progress bar.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    traces
        A mapping from hash to `Trace`, in the order of `pairs`. Its frames, such as
        `receipts` and `transfers`, are those of a trace with `tx_hash` and `time` on each row.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing is sent then. If another account signed a
        transaction and failures are not collected.
    LedgerError
        If a transaction is unknown or could not be read and failures are not collected,
        or if a block could not be read.

    Notes
    -----
    Source: EXPERIMENTAL_tx_status; heights and times from block; shards and rewards from
    EXPERIMENTAL_protocol_config.
    """
    checked = list(dict.fromkeys(_check_pair(pair) for pair in pairs))
    level = _check_level(wait_until)
    fetcher = Fetcher(client.current(ledger), on_error, progress)
    results = read_results(fetcher, checked, level)
    answers = list(results.values())
    built = build_traces(fetcher.ledger, answers, blocks=blocks, progress=progress)
    by_hash = dict(zip(results, built, strict=True))
    result = Traces(by_hash, attrs=provenance(fetcher.ledger, SOURCE))
    return (result, errors_frame(fetcher.failures)) if on_error == "collect" else result


def _check_pair(pair: object) -> tuple[str, str]:
    """Check a transaction's hash and sender."""
    items = () if isinstance(pair, str) or not isinstance(pair, Iterable) else tuple(pair)
    if len(items) != 2:  # noqa: PLR2004 - a pair
        rule = "pairs of a transaction's hash and its signer's account id"
        raise InvalidRequestError.refuse("pairs", pair, rule)
    return validation.crypto_hash(items[0], "tx_hash"), validation.account_id(items[1], "sender")


def _check_level(wait_until: str) -> str:
    """Check the level to wait for."""
    return validation.one_of(wait_until, "wait_until", validation.WAIT_LEVELS)


@overload
def trace_block(
    at: object = "final",
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    on_error: Literal["raise"] = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Traces: ...
@overload
def trace_block(
    at: object = "final",
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    on_error: Literal["collect"],
    progress: bool = True,
    ledger: Ledger | None = None,
) -> tuple[Traces, pd.DataFrame]: ...
def trace_block(
    at: object = "final",
    *,
    wait_until: str = "FINAL",
    blocks: bool = True,
    on_error: OnError = "raise",
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Traces | tuple[Traces, pd.DataFrame]:
    """
    Return the traces of all transactions that a block includes, with their frames combined.

    Parameters
    ----------
    at
        A height, block hash, finality name or time.
    wait_until
        The level to wait for: NONE, INCLUDED, EXECUTED_OPTIMISTIC, INCLUDED_FINAL,
        EXECUTED or FINAL. A transaction that does not reach it in time is returned as far
        as it is known.
    blocks
        Read the blocks in which the receipts ran, for heights and times, and the protocol
        configuration in force, for shards and contract rewards.
    on_error
        ``raise`` raises the first failure; ``collect`` also returns a frame of all failures,
        by transaction hash.
    progress
        Show a progress bar.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    traces
        A mapping from hash to `Trace`, in the block's order. Its frames, such as `receipts`
        and `transfers`, are those of a trace with `tx_hash` and `time` on each row.

    Raises
    ------
    LedgerError
        If the block or one of its chunks could not be read, or if a transaction could not
        be read and failures are not collected.

    Notes
    -----
    Source: block, chunk and EXPERIMENTAL_tx_status; shards and rewards from
    EXPERIMENTAL_protocol_config.
    """
    _check_level(wait_until)
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
    Return the receipts of a transaction as a frame.

    Parameters
    ----------
    tx_hash
        The transaction's hash.
    sender
        The account that signed it.
    wait_until
        The level to wait for: NONE, INCLUDED, EXECUTED_OPTIMISTIC, INCLUDED_FINAL,
        EXECUTED or FINAL. A transaction that does not reach it in time is returned as far
        as it is known.
    blocks
        Read the blocks in which the receipts ran, for heights and times.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    receipts
        One row per receipt in causal order, typed as `schema("receipts")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing is sent then. If another account signed the
        transaction.
    UnknownTransactionError
        If there is no such transaction, or the host does not have it.
    TransactionTimeoutError
        If the host does not know in time what became of the transaction.
    LedgerError
        If the response could not be read.

    Notes
    -----
    Source: EXPERIMENTAL_tx_status; heights and times from block.
    """
    return trace(tx_hash, sender, wait_until=wait_until, blocks=blocks, ledger=ledger).receipts


def receipt(receipt_id: str, *, ledger: Ledger | None = None) -> dict[str, Any]:
    """
    Return one receipt as the node sends it.

    Parameters
    ----------
    receipt_id
        The receipt's id.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    receipt
        The decoded JSON, with exact integers.

    Raises
    ------
    UnknownReceiptError
        If the node does not know the receipt.
    InvalidRequestError
        If the id is malformed. Nothing is sent.
    LedgerError
        If the response could not be read.

    Notes
    -----
    Source: EXPERIMENTAL_receipt.
    """
    call = rpc.receipt(validation.crypto_hash(receipt_id, "receipt_id"))
    response: dict[str, Any] = client.current(ledger).send(call)
    return response
