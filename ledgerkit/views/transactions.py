"""Verbs about one transaction: its result, its receipt tree, a single receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit import checks, client, rpc
from ledgerkit.errors import LedgerError
from ledgerkit.tracing import Trace
from ledgerkit.views._ask import Ask, provenance

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.calls import Call
    from ledgerkit.client import Ledger


def _call(tx_hash: str, sender: str, wait_until: str, *, receipts: bool) -> Call[rpc.TxAnswer]:
    """Check which transaction is meant, and describe the call."""
    return rpc.transaction(
        checks.crypto_hash(tx_hash, "tx_hash"),
        checks.account_id(sender, "sender"),
        checks.one_of(wait_until, "wait_until", checks.WAIT_LEVELS),
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
        times; each is read once a session.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    trace
        The tree, with frames `receipts` and `edges`, and a `verdict`.

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
    asked = client.current(ledger)
    answer = asked.send(_call(tx_hash, sender, wait_until, receipts=True))
    told = provenance(asked, "EXPERIMENTAL_tx_status")
    hashes = answer.result.block_hashes() if blocks else []
    calls = [rpc.block(checks.at(block_hash)) for block_hash in hashes]
    heads = Ask(asked, "raise").send(calls, "blocks")
    known = {
        b.header.hash: (b.header.height, b.header.time_ns or 0)
        for b in heads
        if not isinstance(b, LedgerError)
    }
    return Trace(answer.result, answer.body, blocks=known, attrs=told)


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
        rpc.receipt(checks.crypto_hash(receipt_id, "receipt_id"))
    )
    return found
