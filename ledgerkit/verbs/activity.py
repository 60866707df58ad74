"""The latest transactions of accounts, each described in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Unpack, overload

from ledgerkit import validation
from ledgerkit.block_data.transaction_documents import stream_documents
from ledgerkit.errors import LedgerError
from ledgerkit.frames import build
from ledgerkit.tracing.activity import Activity, describe_activity
from ledgerkit.tracing.amount_texts import AmountTexts
from ledgerkit.tracing.transaction_data import TransactionData, token_contracts
from ledgerkit.verbs import service_pages
from ledgerkit.verbs.declaring import Collecting, Raising, verb_of_many
from ledgerkit.verbs.fetching import Fetcher, FrameResult, Ids, open_fetcher
from ledgerkit.verbs.token_facts import read_token_facts
from ledgerkit.verbs.trace_reading import build_traces

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.models.services import AccountTransaction
    from ledgerkit.api.models.transactions import TransactionResponse
    from ledgerkit.ledger import Ledger

_MAX_TRANSACTIONS = 1_000  # per account; their documents need 50 requests
_MEMBERS = {"tx_hash": "transaction_hash", "time": "timestamp_ns"}


@overload
def activity(
    account_ids: Ids, *, limit: int = 20, metadata: bool = True, **options: Unpack[Raising]
) -> pd.DataFrame: ...
@overload
def activity(
    account_ids: Ids, *, limit: int = 20, metadata: bool = True, **options: Unpack[Collecting]
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
@verb_of_many
def activity(
    account_ids: Ids, *, limit: int = 20, metadata: bool = True, **options: Any
) -> FrameResult:
    """
    Return the newest transactions of accounts, each with a headline and a verdict.

    Parameters
    ----------
    limit
        Maximum number of transactions of each account, from 1 to 1,000.
    metadata
        Read the symbol and decimals of each fungible token from its contract; False writes
        token amounts in their smallest unit.

    Returns
    -------
    activity
        One row per account and transaction, each account's newest first, typed as
        `schema("activity")`. `verdict` covers all receipts: a swap that the exchange refused is
        ``succeeded_with_failed_receipts``, although its status is success. `amounts` are rounded
        for reading; `near_change` and `token_changes` are exact.

    Notes
    -----
    Source: POST /v0/account and POST /v0/transactions of the Transactions API; the view method
    ft_metadata. An account costs one request per 200 transactions, one more per 20 documents, and
    one for each token whose metadata is not cached.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> activity = lk.activity("ivan.near", limit=2)
    >>> activity[["method_name", "counterparty_id", "verdict"]]
            method_name counterparty_id                         verdict
    0  ft_transfer_call        dex.near  succeeded_with_failed_receipts
    1  ft_transfer_call        dex.near                 fully_succeeded
    >>> activity[["amounts", "near_change"]]
                                    amounts              near_change
    0                         -0.00075 NEAR   -747443224752000000001
    1  -0.0012 NEAR, -120 GOLD, +1.50 wNEAR  -1214380038570500000001
    >>> activity["headline"][1]
    'ivan.near swapped 120 GOLD for 1.50 wNEAR on dex.near.'
    """
    fetcher = open_fetcher(**options)
    ids = validation.account_ids(account_ids, "account_ids")
    max_rows = validation.integer(limit, "limit", least=1, most=_MAX_TRANSACTIONS)
    with_metadata = validation.flag(metadata, "metadata")
    newest = partial(service_pages.transactions, newest_first=True)
    pages = {account_id: partial(newest, account_id=account_id) for account_id in ids}
    fetched = service_pages.collect(fetcher, pages, "transactions", max_rows)
    rows = list(chain.from_iterable(account_rows for _, account_rows in fetched))
    documents = _read_documents(fetcher, [row.transaction_hash for row in rows])
    if with_metadata:
        _read_metadata(fetcher.ledger, documents)
    activities = [_describe(fetcher, row, documents) for row in rows]
    computed = {name: [getattr(item, name) for item in activities] for name in Activity._fields}
    frame = build.build_frame("activity", build.columns_of("activity", rows, _MEMBERS, **computed))
    return fetcher.result(frame, "POST /v0/transactions of the Transactions API")


def _read_documents(fetcher: Fetcher, tx_hashes: Iterable[str]) -> dict[str, TransactionData]:
    """Read transactions by hash; failures are added to the fetcher."""
    responses = dict(chain.from_iterable(stream_documents(fetcher.ledger, tx_hashes)))

    def data_of(_tx_hash: str, response: TransactionResponse) -> TransactionData:
        [trace] = build_traces(fetcher.ledger, [response], blocks=False)
        return trace._data(metadata=False)  # noqa: SLF001 - of this package

    return dict(fetcher.convert(fetcher.succeeded(responses, responses.values()), data_of))


def _read_metadata(ledger: Ledger, documents: Mapping[str, TransactionData]) -> None:
    """Read the metadata of all tokens concurrently, and use it in the texts of amounts."""
    contracts = [token_contracts(tx.request, tx.transfers) for tx in documents.values()]
    facts = read_token_facts(ledger, list(dict.fromkeys(chain.from_iterable(contracts))))
    for tx in documents.values():
        tx.amounts = AmountTexts(facts)


def _describe(
    fetcher: Fetcher, row: AccountTransaction, documents: Mapping[str, TransactionData]
) -> Activity:
    try:
        tx = documents.get(row.transaction_hash)
        return Activity() if tx is None else describe_activity(tx, row.account_id)
    except LedgerError as error:
        fetcher.fail(row.transaction_hash, error)
        return Activity()
