"""Results of transactions, by hash from the Transactions API or with their sender from a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import progress
from ledgerkit.api import rpc
from ledgerkit.block_data import transaction_documents
from ledgerkit.errors import InvalidRequestError, LedgerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.api.models.transactions import TransactionResponse
    from ledgerkit.verbs.fetching import Fetcher

NODE_SOURCE, INDEX_SOURCE = "EXPERIMENTAL_tx_status", "/v0/transactions"
# The Transactions API has final blocks only, so its documents have reached these levels.
_REACHED = ("NONE", "INCLUDED", "INCLUDED_FINAL")
_ASK_A_NODE = "Or pass the account that signed the transaction as sender, to read it from a node."

Key = tuple[str, str | None]  # a transaction's hash, and its signer if it is known


def read_results(
    fetcher: Fetcher, keys: Sequence[Key], wait_until: str
) -> dict[str, TransactionResponse]:
    """
    Read results by transaction hash; those not done in time are read as far as they are.

    Transactions of an unknown signer are read from the Transactions API, others from a node, and
    so are those that the API has before they are done.
    """
    tx_hashes = [tx_hash for tx_hash, sender in keys if sender is None]
    values = _read_documents(fetcher, tx_hashes)
    pairs = [(tx_hash, sender) for tx_hash, sender in keys if sender is not None]
    for tx_hash, value in values.items():
        signer_id = _signer_to_ask(value, wait_until)
        if signer_id is not None:
            pairs.append((tx_hash, signer_id))
    values |= _read_from_node(fetcher, pairs, wait_until)
    results = {}
    for tx_hash, _ in keys:
        value = values[tx_hash]
        if isinstance(value, LedgerError):
            fetcher.fail(tx_hash, value)
        else:
            results[tx_hash] = value
    return results


def _read_documents(
    fetcher: Fetcher, tx_hashes: Sequence[str]
) -> dict[str, TransactionResponse | LedgerError]:
    values: dict[str, TransactionResponse | LedgerError] = {}
    if not tx_hashes:
        return values
    if fetcher.ledger.network.transactions_url is None:
        return dict.fromkeys(tx_hashes, transaction_documents.no_index_error(fetcher.ledger))
    is_single = len(tx_hashes) == 1 or not fetcher.progress
    with progress.bar(
        total=len(tx_hashes), desc="transactions", disable=is_single, delay=0.5, leave=False
    ) as bar:
        for batch in transaction_documents.stream_documents(fetcher.ledger, tx_hashes):
            values.update(batch)
            bar.update(len(batch))
    for value in values.values():
        if isinstance(value, LedgerError) and not value.remedy.endswith(_ASK_A_NODE):
            value.remedy = f"{value.remedy} {_ASK_A_NODE}"
    return values


def _signer_to_ask(value: TransactionResponse | LedgerError, wait_until: str) -> str | None:
    """Return the signer of a transaction that a node must wait for; None for any other."""
    if isinstance(value, LedgerError) or wait_until in _REACHED or value.result.has_finished():
        return None
    return value.transaction.signer_id if value.transaction else None


def _read_from_node(
    fetcher: Fetcher, pairs: Sequence[tuple[str, str]], wait_until: str
) -> dict[str, TransactionResponse | LedgerError]:
    if not pairs:
        return {}
    calls = [rpc.transaction_or_timeout(*pair, wait_until) for pair in pairs]
    received = fetcher.send(calls, "transactions")
    values: dict[tuple[str, str], Any] = dict(zip(pairs, received, strict=True))
    late = {pair: value for pair, value in values.items() if isinstance(value, rpc.TimedOut)}
    # The errors are collected: each is compared with the timeout before it.
    calls = [rpc.transaction_or_timeout(*pair, "NONE") for pair in late]
    answers = fetcher.ledger.send_many(calls, on_error="collect", progress=False) if late else []
    for (pair, value), answer in zip(late.items(), answers, strict=True):
        values[pair] = rpc.known_so_far(value, answer)
    return {pair[0]: _check_sender(answer, *pair) for pair, answer in values.items()}


def _check_sender(value: Any, tx_hash: str, sender: str) -> Any:
    """Return a result, or the error if another account signed the transaction."""
    # The node only derives the shard from the sender, and ignores it if it tracks that shard.
    transaction = None if isinstance(value, LedgerError) else value.result.transaction
    signer_id = transaction.signer_id if transaction else None
    if signer_id in (None, sender):
        return value
    expected = f"'{signer_id}', which signed transaction {tx_hash}"
    return InvalidRequestError.refuse("sender", sender, expected)


def source_of(answers: Sequence[TransactionResponse]) -> str:
    """Return the source of results, for `attrs`: a node, the Transactions API, or both."""
    sources = [
        answer.source or (INDEX_SOURCE if answer.result.is_indexed else NODE_SOURCE)
        for answer in answers
    ]
    return ", ".join(dict.fromkeys(sources)) or NODE_SOURCE
