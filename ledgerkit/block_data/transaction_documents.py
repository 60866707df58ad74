"""Documents of many transactions by their hashes, from the Transactions API or from a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit.api import rpc, services
from ledgerkit.api.models.transactions import Transaction, TransactionResponse
from ledgerkit.errors import AuthError, InvalidRequestError, LedgerError, UnknownTransactionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ledgerkit.api.calls import Call
    from ledgerkit.api.services import Documents
    from ledgerkit.ledger import Ledger

    Group = dict[str, TransactionResponse | None]  # None: not in the caches

_MAX_GROUP = 10 * services.MAX_HASHES


def stream_documents(
    ledger: Ledger, tx_hashes: Iterable[str]
) -> Iterator[list[tuple[str, TransactionResponse | LedgerError]]]:
    """
    Yield transactions by their hashes, however many there are, in the order of the hashes.

    The hashes are taken a few requests ahead, and each hash once from a group of up to 200.
    Finished transactions come from the caches, and are added to them. In the place of an unknown
    hash is an `UnknownTransactionError`, and in that of a failed request its error.
    """
    requests = ((group, _missing_call(group)) for group in _groups(ledger, tx_hashes))
    in_flight = ledger.session.settings.in_flight  # the documents may be large
    for [(group, answer)] in ledger.session.stream_pairs(requests, size=1, ahead=in_flight):
        yield _completed(group, {} if answer is None else answer)


def _missing_call(group: Group) -> Call[Documents] | None:
    """Return the call for what the caches do not have of a group."""
    missing = [tx_hash for tx_hash, document in group.items() if document is None]
    return services.transaction_documents(missing) if missing else None


def read_finished_from_node(
    ledger: Ledger, senders: Mapping[str, str], *, must_answer: bool = False
) -> dict[str, TransactionResponse]:
    """
    Read transactions by hash and sender from a node, which sends gas profiles, without waiting.

    Those that it does not have, or whose receipts have not all run, are left out. So are those that
    could not be read; with `must_answer`, an error that may pass, or of a refused key, is raised.
    """
    calls = [rpc.transaction_or_timeout(*pair, "NONE") for pair in senders.items()]
    answers = ledger.send_many(calls, on_error="collect", progress=False)
    finished: dict[str, TransactionResponse] = {}
    for tx_hash, answer in zip(senders, answers, strict=True):
        if isinstance(answer, LedgerError):
            if must_answer and (answer.retryable or isinstance(answer, AuthError)):
                raise answer
        elif isinstance(answer, TransactionResponse) and answer.result.has_finished():
            finished[tx_hash] = answer
    return finished


def no_index_error(ledger: Ledger) -> InvalidRequestError:
    """Build the error for a transaction without its signer, on a network with a node alone."""
    msg = f"{ledger.network.name} has no index of transactions by their hash"
    remedy = "Pass the account that signed the transaction too."
    return InvalidRequestError(msg, remedy=remedy, field="signer_id")


def read_document(ledger: Ledger, tx_hash: str) -> TransactionResponse:
    """Read one transaction by its hash."""
    if ledger.network.transactions_url is None:
        raise no_index_error(ledger)
    return ledger.send(services.transaction_document(tx_hash))


def receipt_origin(ledger: Ledger, receipt_id: str) -> tuple[str, str | None]:
    """Return the transaction that a receipt belongs to: its hash and, from a node, its signer."""
    if ledger.network.transactions_url is None:
        origin = ledger.send(rpc.receipt_origin(receipt_id))
        return origin.transaction_hash, origin.sender_account_id
    document = ledger.send(services.receipt_document(receipt_id))
    transaction = document.transaction or Transaction()
    return transaction.hash or "", None


def _groups(ledger: Ledger, tx_hashes: Iterable[str]) -> Iterator[Group]:
    """Divide hashes into groups with as many unread ones as one request may have."""
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


def _completed(
    group: Group, answer: Documents | LedgerError
) -> list[tuple[str, TransactionResponse | LedgerError]]:
    """Return the documents of a group, with those that were requested."""
    completed: list[tuple[str, TransactionResponse | LedgerError]] = []
    for tx_hash, cached in group.items():
        document: TransactionResponse | LedgerError | None = cached
        if document is None:
            document = answer if isinstance(answer, LedgerError) else answer.get(tx_hash)
        completed.append((tx_hash, document or UnknownTransactionError(transaction_hash=tx_hash)))
    return completed
