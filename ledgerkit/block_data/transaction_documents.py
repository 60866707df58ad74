"""The documents of transactions by their hashes, from the Transactions API or a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ledgerkit.api import rpc, services
from ledgerkit.api.models.transactions import Transaction, TransactionResponse
from ledgerkit.errors import AuthError, InvalidRequestError, LedgerError, UnknownTransactionError

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.api.services import Documents
    from ledgerkit.ledger import Ledger

    Group = dict[str, TransactionResponse | None]  # None: not in the caches

_MAX_GROUP = 10 * services.MAX_HASHES


def stream_documents(
    ledger: Ledger, tx_hashes: Iterable[str]
) -> Iterator[list[tuple[str, TransactionResponse | LedgerError]]]:
    """
    Yield any number of transactions by their hashes, in the order of the hashes.

    Hashes are requested a few requests ahead, in groups of up to 200 without duplicates. Finished
    transactions are read from the caches, and added to them. An unknown hash has an
    `UnknownTransactionError`, and the hashes of a failed request have its error.
    """
    requests = ((group, _call_for_missing(group)) for group in _groups(ledger, tx_hashes))
    in_flight = ledger.session.settings.in_flight  # the documents may be large
    for [(group, response)] in ledger.session.stream_pairs(requests, size=1, ahead=in_flight):
        yield _complete_group(group, {} if response is None else response)


def _call_for_missing(group: Group) -> Call[Documents] | None:
    missing = [tx_hash for tx_hash, document in group.items() if document is None]
    return services.transaction_documents(missing) if missing else None


def read_finished_from_node(
    ledger: Ledger, senders: Mapping[str, str], *, must_answer: bool = False
) -> dict[str, TransactionResponse]:
    """
    Read transactions by hash and sender from a node, which sends gas profiles, without waiting.

    Unknown and unfinished transactions are left out, and also those that could not be read; with
    `must_answer`, an error that may pass or a refused key is raised.
    """
    calls = [rpc.transaction_or_timeout(*pair, "NONE") for pair in senders.items()]
    responses = ledger.send_many(calls, on_error="collect", progress=False)
    finished: dict[str, TransactionResponse] = {}
    for tx_hash, response in zip(senders, responses, strict=True):
        if isinstance(response, LedgerError):
            if must_answer and (response.retryable or isinstance(response, AuthError)):
                raise response
        elif isinstance(response, TransactionResponse) and response.result.has_finished():
            finished[tx_hash] = response
    return finished


def no_index_error(ledger: Ledger) -> InvalidRequestError:
    """Build the error for a transaction without its signer, on a network with a node alone."""
    msg = f"{ledger.network.name} has no index of transactions by their hash"
    remedy = "Pass the account that signed the transaction too."
    return InvalidRequestError(msg, remedy=remedy, field="signer_id")


def read_document(ledger: Ledger, tx_hash: str) -> TransactionResponse:
    if ledger.network.transactions_url is None:
        raise no_index_error(ledger)
    return ledger.send(services.transaction_document(tx_hash))


def receipt_origin(ledger: Ledger, receipt_id: str) -> tuple[str, str | None]:
    """Return the hash of a receipt's transaction, and from a node its signer."""
    if ledger.network.transactions_url is None:
        origin = ledger.send(rpc.receipt_origin(receipt_id))
        return origin.transaction_hash, origin.sender_account_id
    document = ledger.send(services.receipt_document(receipt_id))
    transaction = document.transaction or Transaction()
    return transaction.hash or "", None


def _groups(ledger: Ledger, tx_hashes: Iterable[str]) -> Iterator[Group]:
    """Divide hashes into groups with as many unread hashes as one request may have."""
    group: Group = {}
    n_missing = 0
    for tx_hash in tx_hashes:
        if tx_hash in group:
            continue
        group[tx_hash] = document = _cached(ledger, tx_hash)
        n_missing += document is None
        if n_missing == services.MAX_HASHES or len(group) == _MAX_GROUP:
            yield group
            group, n_missing = {}, 0
    if group:
        yield group


def _cached(ledger: Ledger, tx_hash: str) -> TransactionResponse | None:
    [document] = ledger.session.cached(services.transaction_document(tx_hash)) or [None]
    return None if isinstance(document, LedgerError) else document


def _complete_group(
    group: Group, response: Documents | LedgerError
) -> list[tuple[str, TransactionResponse | LedgerError]]:
    completed: list[tuple[str, TransactionResponse | LedgerError]] = []
    for tx_hash, cached in group.items():
        document: TransactionResponse | LedgerError | None = cached
        if document is None:
            document = response if isinstance(response, LedgerError) else response.get(tx_hash)
        completed.append((tx_hash, document or UnknownTransactionError(transaction_hash=tx_hash)))
    return completed
