"""Verbs about the lists of services: transactions and transfers of accounts, key-value data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from ledgerkit import intervals, validation
from ledgerkit.api.models import services
from ledgerkit.errors import InvalidRequestError
from ledgerkit.frames import account_history as frames
from ledgerkit.frames.schemas import ACCOUNT_FLAGS
from ledgerkit.verbs import service_pages
from ledgerkit.verbs.declaring import Collecting, Raising, verb_of_many
from ledgerkit.verbs.fetching import Fetcher, FrameResult, Ids, open_fetcher
from ledgerkit.verbs.token_facts import read_token_facts

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.models.services import AccountTransaction, TransferRow
    from ledgerkit.frames.tokens import TokenFacts
    from ledgerkit.ledger import Ledger

ROLES = tuple(name.removeprefix("is_") for name in ACCOUNT_FLAGS if name != "is_success")
_MOST_ROWS = 2**63 - 1
_MAX_PARTS = 64  # read at the same time, each with a page of 100 transfers in memory
_ASSET_RULE = "near, nep141:<contract> or nep245:<contract>:<token_id>"


# Rows, one at a time ----------------------------------------------------------------------


def transaction_rows(
    ledger: Ledger, account_id: str, start_height: int, stop_height: int
) -> Iterator[AccountTransaction]:
    """
    Yield the transactions of an account, the oldest first, each once.

    Both heights are inclusive heights of the blocks that include the transactions.
    """
    pages = partial(
        service_pages.transactions,
        account_id=account_id,
        start_height=start_height,
        stop_height=stop_height,
    )
    with closing(ledger.session.iterate(pages)) as lists:
        yield from chain.from_iterable(lists)


def selected_transfers(
    ledger: Ledger,
    account_id: str,
    borders_ns: Sequence[int],
    where: Callable[[TransferRow], bool],
    *,
    asset: str | None = None,
    progress: bool = True,
) -> list[TransferRow]:
    """
    Return the transfers of an account, or of one asset, for which `where` is True, oldest first.

    The period starts at the first border and ends before the last one. The parts between borders
    are read concurrently, `_MAX_PARTS` at a time.
    """
    fetcher = Fetcher(ledger, progress=progress)
    asset_id = None if asset is None else services.indexed_asset(asset)
    parts = list(pairwise(borders_ns))
    rows: list[TransferRow] = []
    for first in range(0, len(parts), _MAX_PARTS):
        pages = {
            str(low): partial(
                service_pages.transfers,
                account_id=account_id,
                start_ns=low,
                stop_ns=high - 1,
                asset_id=asset_id,
                where=where,
            )
            for low, high in parts[first : first + _MAX_PARTS]
        }
        fetched = service_pages.collect(fetcher, pages, "transfers", None)
        rows += _joined([part_rows for _, part_rows in fetched])
    return rows


# Verbs ------------------------------------------------------------------------------------


@overload
def account_transactions(
    account_ids: Ids,
    start: object = None,
    stop: object = None,
    *,
    role: str | Iterable[str] | None = None,
    success: bool | None = None,
    limit: int | None = None,
    **options: Unpack[Raising],
) -> pd.DataFrame: ...
@overload
def account_transactions(
    account_ids: Ids,
    start: object = None,
    stop: object = None,
    *,
    role: str | Iterable[str] | None = None,
    success: bool | None = None,
    limit: int | None = None,
    **options: Unpack[Collecting],
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
@verb_of_many
def account_transactions(
    account_ids: Ids,
    start: object = None,
    stop: object = None,
    *,
    role: str | Iterable[str] | None = None,
    success: bool | None = None,
    limit: int | None = None,
    **options: Any,
) -> FrameResult:
    """
    Return the transactions that accounts took part in, with their roles.

    Parameters
    ----------
    role
        Only transactions in which the account has this role, or all of these roles: ``signer``,
        ``delegated_signer``, ``real_signer``, ``any_signer``, ``predecessor``,
        ``explicit_refund_to``, ``receiver``, ``real_receiver``, ``function_call``,
        ``action_arg`` or ``event_log``. None includes all.
    success
        True for transactions that succeeded, False for the others; None for all.
    limit
        Maximum number of transactions of each account: the newest ones of the range.

    Returns
    -------
    transactions
        One row per account and transaction, in the order of the accounts and of the chain,
        typed as `schema("account_transactions")`. The block is the block of the transaction:
        its effects on the account may be in later blocks. While receipts are pending,
        `is_success` is False.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, or the network has no Transactions API.

    Notes
    -----
    Source: POST /v0/account of the Transactions API, all its pages; block for times.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> signed = lk.account_transactions("alice.near", role="signer", limit=2)
    >>> signed[["tx_block_height", "is_signer", "is_success"]]
       tx_block_height  is_signer  is_success
    0        180000012       True        True
    1        180000041       True        True
    """
    fetcher = open_fetcher(**options)
    ids = validation.account_ids(account_ids, "account_ids")
    roles = [] if role is None else validation.subset_of(role, "role", ROLES)
    filters = {f"is_{name}": True for name in roles}
    if success is not None:
        filters["is_success"] = validation.flag(success, "success")
    max_rows = _row_limit(limit)
    ends = intervals.heights(fetcher.ledger, intervals.parse(start, stop))
    pages = partial(
        service_pages.transactions,
        start_height=ends.get("start", 0),
        stop_height=ends["stop"] - 1 if "stop" in ends else None,
        filters=filters,
        newest_first=max_rows is not None,
    )
    fetched = _collect(fetcher, ids, pages, "transactions", max_rows)
    frame = fetcher.frame(
        fetched, lambda lists: frames.account_transactions(_joined(lists)), "transactions"
    )
    return fetcher.result(frame, "POST /v0/account of the Transactions API")


@overload
def transfers_of(
    account_ids: Ids,
    start: object = None,
    stop: object = None,
    *,
    assets: str | Iterable[str] | None = None,
    direction: Literal["sender", "receiver"] | None = None,
    metadata: bool = False,
    limit: int | None = None,
    **options: Unpack[Raising],
) -> pd.DataFrame: ...
@overload
def transfers_of(
    account_ids: Ids,
    start: object = None,
    stop: object = None,
    *,
    assets: str | Iterable[str] | None = None,
    direction: Literal["sender", "receiver"] | None = None,
    metadata: bool = False,
    limit: int | None = None,
    **options: Unpack[Collecting],
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
@verb_of_many
def transfers_of(
    account_ids: Ids,
    start: object = None,
    stop: object = None,
    *,
    assets: str | Iterable[str] | None = None,
    direction: Literal["sender", "receiver"] | None = None,
    metadata: bool = False,
    limit: int | None = None,
    **options: Any,
) -> FrameResult:
    """
    Return the transfers of accounts that the Transfers API lists, with exact amounts.

    Parameters
    ----------
    assets
        Only transfers of these assets, one or several: ``near``, ``nep141:<contract>`` or
        ``nep245:<contract>:<token_id>``.
    direction
        ``sender`` for transfers from the accounts, ``receiver`` for transfers to them; None for
        both.
    metadata
        Read the symbol and decimals of each fungible token from its contract.
    limit
        Maximum number of transfers of each account: the newest ones of the range.

    Returns
    -------
    transfers
        One row per account and transfer, in the order of the accounts and of the chain, typed as
        `schema("transfers_of")`. The sum of `change` is not the change of a balance: the service
        does not list gas, rewards or failed receipts. It stores amounts in 127 bits; for a larger
        amount `change` is missing and `is_exact` False.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, or the network, such as testnet, has no Transfers API.

    Notes
    -----
    Source: POST /v0/transfers of the Transfers API, all its pages; block for heights; the view
    method ft_metadata.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> received = lk.transfers_of("nina.near", direction="receiver", assets="near")
    >>> received[["block_height", "counterparty_id", "amount", "symbol"]]
       block_height counterparty_id amount symbol
    0     180000034            near      2   NEAR
    """
    fetcher = open_fetcher(**options)
    ids = validation.account_ids(account_ids, "account_ids")
    validation.flag(metadata, "metadata")
    asset_ids = _asset_ids(assets)
    has_many = len(asset_ids) > 1  # the service filters by a single asset
    if direction is not None:
        validation.one_of(direction, "direction", ("sender", "receiver"))
    max_rows = _row_limit(limit)
    ends = intervals.times(fetcher.ledger, intervals.parse(start, stop))
    pages = partial(
        service_pages.transfers,
        start_ns=ends.get("start", 0),
        stop_ns=ends["stop"] - 1 if "stop" in ends else None,
        asset_id=None if has_many else next(iter(asset_ids), None),
        where=(lambda row: row.asset_id in asset_ids) if has_many else None,
        direction=direction,
        newest_first=max_rows is not None,
    )
    fetched = _collect(fetcher, ids, pages, "transfers", max_rows)
    facts = _metadata(fetcher, fetched) if metadata else None
    frame = fetcher.frame(
        fetched, lambda lists: frames.transfers_of(_joined(lists), facts), "transfers"
    )
    return fetcher.result(frame, "POST /v0/transfers of the Transfers API")


@overload
def key_values(
    contract_id: str,
    predecessor_id: str | None = None,
    *,
    key: str | None = None,
    prefix: str | None = None,
    history: bool = False,
    limit: int | None = None,
    **options: Unpack[Raising],
) -> pd.DataFrame: ...
@overload
def key_values(
    contract_id: str,
    predecessor_id: str | None = None,
    *,
    key: str | None = None,
    prefix: str | None = None,
    history: bool = False,
    limit: int | None = None,
    **options: Unpack[Collecting],
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
@verb_of_many
def key_values(
    contract_id: str,
    predecessor_id: str | None = None,
    *,
    key: str | None = None,
    prefix: str | None = None,
    history: bool = False,
    limit: int | None = None,
    **options: Any,
) -> FrameResult:
    """
    Return the key-value data that accounts wrote to a contract by calling ``__fastdata_kv``.

    Parameters
    ----------
    contract_id
        The account that the data was written to, which need not exist.
    predecessor_id
        The account that wrote the data; None includes all.
    key
        Only entries of this key.
    prefix
        Only entries whose key begins with this text.
    history
        True for all entries that were ever written, the oldest entry of each key first; False
        for the latest entry of each key and writer.
    limit
        Maximum number of entries; the first ones are returned.
    on_error
        ``raise`` raises a failure; ``collect`` returns it in a second frame.

    Returns
    -------
    entries
        One row per entry, in the order of the service, typed as `schema("key_values")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, `key` and `prefix` are both passed, or the network has no
        key-value data.
    LedgerError
        If the data could not be read.

    Notes
    -----
    Source: POST /v0/latest/{contract_id} and /v0/history/{contract_id} of the key-value data,
    with the predecessor_id in the path if there is one, all pages.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> _ = lk.use_signer("alice.near", ledger.world.keys()["alice.near"])
    >>> for args in ({"color": "blue"}, {"color": "red", "size": [1, 2]}):
    ...     _ = lk.call("data.near", "__fastdata_kv", args, wait_until="FINAL")
    >>> lk.key_values("data.near", "alice.near")[["key", "value", "block_height"]]
         key   value  block_height
    0  color     red     180000059
    1   size  [1, 2]     180000059
    >>> colors = lk.key_values("data.near", key="color", history=True)
    >>> colors[["key", "value", "block_height"]]
         key value  block_height
    0  color  blue     180000054
    1  color   red     180000059
    """
    fetcher = open_fetcher(**options)
    contract_id = validation.account_id(contract_id, "contract_id")
    if predecessor_id is not None:
        predecessor_id = validation.account_id(predecessor_id, "predecessor_id")
    if key is not None and prefix is not None:
        raise InvalidRequestError.refuse("prefix", prefix, "None if key= is passed")
    pages = partial(
        service_pages.key_values,
        contract_id=contract_id,
        predecessor_id=predecessor_id,
        history=validation.flag(history, "history"),
        key=None if key is None else validation.plain_text(key, "key"),
        prefix=None if prefix is None else validation.plain_text(prefix, "prefix"),
    )
    fetched = service_pages.collect(fetcher, {contract_id: pages}, "entries", _row_limit(limit))
    frame = fetcher.frame(fetched, lambda lists: frames.key_values(_joined(lists)), "the entries")
    kind = "history" if history else "latest"
    return fetcher.result(frame, f"POST /v0/{kind} of the key-value data")


# Arguments --------------------------------------------------------------------------------


def _row_limit(limit: object) -> int | None:
    return None if limit is None else validation.integer(limit, "limit", least=1, most=_MOST_ROWS)


def _asset_ids(assets: object) -> frozenset[str]:
    if assets is None:
        return frozenset()
    listed = [assets] if isinstance(assets, str) or not isinstance(assets, Iterable) else assets
    asset_ids = frozenset(map(_asset_id, listed))
    if not asset_ids:
        raise InvalidRequestError.required("assets", "at least one asset, or None for all")
    return asset_ids


def _asset_id(asset: object) -> str:
    text = asset if isinstance(asset, str) else ""
    standard, _, name = text.partition(":")
    contract_id = name.partition(":")[0] if standard == "nep245" else name
    is_token = standard in ("nep141", "nep245") and validation.is_account_id(contract_id)
    has_token_id = standard != "nep245" or name.partition(":")[2]
    if text not in ("near", services.NATIVE) and not (is_token and has_token_id):
        choices = [f"nep141:{text}"] if validation.is_account_id(text) else ["near"]
        raise InvalidRequestError.refuse("assets", asset, _ASSET_RULE, choices=choices)
    return services.indexed_asset(text)


# Rows -------------------------------------------------------------------------------------


def _collect(
    fetcher: Fetcher, ids: Sequence[str], pages: Callable[..., Any], label: str, limit: int | None
) -> list[tuple[str, list[Any]]]:
    """Collect the rows of accounts, the oldest first; with a limit, reverse the newest rows."""
    pages_by_id = {account_id: partial(pages, account_id=account_id) for account_id in ids}
    fetched = service_pages.collect(fetcher, pages_by_id, label, limit)
    return fetched if limit is None else [(name, rows[::-1]) for name, rows in fetched]


def _joined(lists: Sequence[list[Any]]) -> list[Any]:
    return list(chain.from_iterable(lists))


def _metadata(
    fetcher: Fetcher, fetched: Sequence[tuple[str, list[TransferRow]]]
) -> dict[str, TokenFacts]:
    contracts = (row.contract_id for _, rows in fetched for row in rows)
    contract_ids = list(dict.fromkeys(name for name in contracts if name is not None))
    return read_token_facts(fetcher.ledger, contract_ids)
