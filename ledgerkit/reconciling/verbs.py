"""The verb `statement`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, overload

from ledgerkit import client, intervals, validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.reconciling.balances import check_assets
from ledgerkit.reconciling.building import Builder
from ledgerkit.reconciling.plan import Scope, StatementPlan, locate_ends, plan_statement
from ledgerkit.reconciling.statement import Statement
from ledgerkit.verbs.declaring import shared_parameters

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger


@overload
def statement(
    account_id: str,
    start: object = None,
    stop: object = None,
    *,
    assets: str | Iterable[str] | None = None,
    values: Literal["usd"] | None = None,
    dry_run: Literal[False] = False,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Statement: ...
@overload
def statement(
    account_id: str,
    start: object = None,
    stop: object = None,
    *,
    assets: str | Iterable[str] | None = None,
    values: Literal["usd"] | None = None,
    dry_run: Literal[True],
    progress: bool = True,
    ledger: Ledger | None = None,
) -> StatementPlan: ...
@shared_parameters
def statement(
    account_id: str,
    start: object = None,
    stop: object = None,
    *,
    assets: str | Iterable[str] | None = None,
    values: Literal["usd"] | None = None,
    dry_run: bool = False,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> Statement | StatementPlan:
    """
    Return everything that changed an account's balances, and whether it adds up.

    Parameters
    ----------
    assets
        The assets to read: ``near``, ``nep141:contract``, ``nep245:contract:token_id``,
        ``stake:pool`` or ``gas_key:public_key``; the contract alone is short for
        ``nep141:contract``. None reads all assets that any source names.
    values
        ``usd`` adds the columns `usd_amount`, `usd_source` and `usd_time` to `entries`: the values
        that the Transfers API sends with transfers, at no further request. It has values of
        transfers since late 2025. None adds no values.
    dry_run
        Whether to only print how many requests it would send. The blocks at the ends and the first
        page of transactions are requested even so.

    Returns
    -------
    statement
        Its `entries`, `by_transaction`, `gaps`, `totals` and `rewards` are frames, and its text
        sums up the earnings. Opening balances are read before block `start`, closing balances after
        the last block before `stop`. The opening balance plus the entries is the closing balance of
        each asset, to the smallest unit; otherwise `gaps` has the missing amount. With
        ``dry_run=True`` a `StatementPlan`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, `stop` is before `start`, or the network has no Transactions
        API, or for `values` no Transfers API. Malformed arguments are refused before anything is
        sent.
    UnknownAccountError
        If the account does not exist, and nothing lists it in the period.
    GarbageCollectedBlockError
        If the node no longer has the balances at an end. Connect with `archival_rpc_url`.
    LedgerError
        If a response could not be read.

    Notes
    -----
    Source: POST /v0/account and /v0/transactions of the Transactions API, POST /v0/transfers of the
    Transfers API, block documents, GET /v1/account/{account_id}/ft and /staking; query view_account
    and view calls at an archival node.

    A value in USD is a float of the service. It belongs to the entry with the receipt, asset and
    exact amount of its transfer. Other entries, such as fees, rewards and sums of several deposits,
    have none, and neither has an entry whose value is ambiguous.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> statement = lk.statement("ivan.near")
    >>> statement.totals[["asset", "n_entries", "missing"]]
                  asset  n_entries  missing
    0              near         17        0
    1  nep141:gold.near          3        0
    2  nep141:wrap.near          2        0
    """
    if validation.flag(dry_run, "dry_run"):
        statement_plan = plan(account_id, start, stop, assets, ledger, values=values)
        print(statement_plan)  # noqa: T201 - the purpose of a dry run
        return statement_plan
    scope = _scope(account_id, start, stop, assets, ledger, values=values, progress=progress)
    return Statement(*Builder(scope).build())


def plan(
    account_id: str,
    start: object,
    stop: object,
    assets: object,
    ledger: Ledger | None,
    *,
    values: object = None,
) -> StatementPlan:
    """Return the plan of a statement, with the arguments of `statement`."""
    scope = _scope(account_id, start, stop, assets, ledger, values=values)
    start_height = None if scope.start is None else scope.start.height + 1
    return plan_statement(
        scope.ledger, scope.account_id, start_height, scope.stop.height + 1, scope.assets
    )


def _scope(
    account_id: str,
    start: object,
    stop: object,
    assets: object,
    ledger: Ledger | None,
    *,
    values: object,
    progress: bool = True,
) -> Scope:
    account_id = validation.account_id(account_id)
    validation.flag(progress, "progress")
    checked = None if assets is None else check_assets(assets)
    ends = intervals.parse(start, stop)
    ledger = client.current(ledger)
    if values is not None:
        validation.one_of(values, "values", ("usd",))
        if ledger.network.transfers_url is None:
            expected = f"None: {ledger.network.name} has no Transfers API, which sends values"
            raise InvalidRequestError.refuse("values", values, expected)
    first, last = locate_ends(ledger, ends)
    return Scope(ledger, account_id, first, last, checked, progress, values is not None)
