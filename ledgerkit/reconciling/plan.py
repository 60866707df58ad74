"""The period of a statement, and its plan: what it would request, and how long that takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pandas import Timestamp

from ledgerkit import intervals
from ledgerkit.api import services
from ledgerkit.api.models.commitments import NO_HASH
from ledgerkit.block_search.bisection import Point
from ledgerkit.errors import InvalidRequestError, LedgerError, UnknownBlockError
from ledgerkit.frames.human import plain_text
from ledgerkit.ledger import Ledger, locate_arguments
from ledgerkit.reconciling.model import NEAR
from ledgerkit.units import count_text, duration_text

if TYPE_CHECKING:
    from ledgerkit.api.calls import Surface
    from ledgerkit.intervals import Ends
    from ledgerkit.transport.rate_limit import Limit

PART = 500  # transactions whose transfers are read page by page, at the same time as other parts
_SERVICES: dict[Surface, str] = {
    "transactions": "Transactions API",
    "transfers": "Transfers API",
    "archival_rpc": "archival node",
    "rpc": "node",
    "api": "REST API",
}

# A transaction may begin this many blocks before the start and go on after it: a yield ends after
# 200 blocks (nearcore, yield_timeout_length_in_blocks), and its callback may yield again.
_MARGIN = 1_000


@dataclass(frozen=True)
class StatementPlan:
    """
    The plan of a statement.

    Parameters
    ----------
    account_id
        The account.
    start_height
        The first height; None is the height of the account's first change.
    stop_height
        The height after the last one, as in `range`.
    transactions
        Number of transactions that the Transactions API counts; it may count some twice.
    requests
        Minimum number of requests by service. Further pages of transfers, tokens, epochs with a
        staking pool and gaps to search add to it.
    limits
        Rate limit of each service.

    Examples
    --------
    >>> from contextlib import redirect_stdout
    >>> ledger = lk.connect("local")
    >>> with redirect_stdout(None):  # a dry run prints its plan
    ...     plan = lk.statement("bob.near", dry_run=True)
    >>> plan.requests["Transfers API"]
    1
    """

    account_id: str
    start_height: int | None
    stop_height: int
    transactions: int
    requests: dict[str, int]
    limits: dict[str, Limit]

    @property
    def seconds(self) -> float:
        """The minimum time of the requests in seconds: one service is read after the other."""
        return sum(self.limits[name].seconds(count) or 0.0 for name, count in self.requests.items())

    def __str__(self) -> str:
        first = "the first change" if self.start_height is None else f"block {self.start_height:,}"
        last = f"block {self.stop_height - 1:,}"
        transactions = count_text(self.transactions, "transaction")
        lines = [
            f"would read the statement of {self.account_id}",
            f"  from {first} to {last}, both included: {transactions}",
        ]
        for name, count in self.requests.items():
            requests = f"{count_text(count, 'request')} or more"
            lines.append(f"  {name:<18}{requests:<24}{self.limits[name]}")
        return "\n".join([*lines, f"  {'time':<18}{duration_text(self.seconds)} or more"])


def plan_statement(
    ledger: Ledger,
    account_id: str,
    start_height: int | None,
    stop_height: int,
    assets: tuple[str, ...] | None = None,
) -> StatementPlan:
    """Compute the plan of a statement, with one request for the number of transactions."""
    last = stop_height - 1
    call = services.account_page(account_id, start_height=start_height, stop_height=last)
    page = ledger.send(call)
    count = max(page.txs_count or 0, len(page.account_txs))
    settings = ledger.session.settings
    has_archive = settings.network.address("archival_rpc") is not None
    node: Surface = "archival_rpc" if has_archive else "rpc"
    n_documents = -(-count // services.MAX_HASHES)
    # Blocks and balances at both ends, and the protocol rules at the first and last transaction.
    n_node = 2 + 2 * len(assets or [NEAR]) + min(count, 2)
    requests: dict[Surface, int] = {
        "transactions": 1 + count // services.ACCOUNT_PAGE + n_documents,
        "transfers": 1 + count // PART,
        node: n_node,
    }
    if assets is None:
        requests["api"] = 2  # pools and tokens
        requests[node] += settings.network.name != "testnet"  # the lockup contract
    available = [surface for surface in requests if settings.network.address(surface)]
    return StatementPlan(
        account_id,
        start_height,
        stop_height,
        count,
        {_SERVICES[surface]: requests[surface] for surface in available},
        {_SERVICES[surface]: settings.limit(surface) for surface in available},
    )


# The period ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scope:
    """
    The account, period and assets of a statement, and the ledger to read from.

    Balances are read after block `start`, the last block before the period, and after `stop`, the
    last block of the period. Without a start the period begins with the account's first
    transaction. Without `assets` the statement has all assets. `has_values` asks for values of
    entries.
    """

    ledger: Ledger
    account_id: str
    start: Point | None
    stop: Point
    assets: tuple[str, ...] | None
    progress: bool
    has_values: bool = False

    def has_asset(self, asset: str) -> bool:
        return self.assets is None or asset in self.assets


def locate_ends(ledger: Ledger, ends: Ends) -> tuple[Point | None, Point]:
    """Find the blocks after which the balances at both ends of an interval are read."""
    heights = intervals.heights(ledger, ends)
    stop = heights["stop"] - 1 if "stop" in heights else "final"
    last = locate_arguments(ledger, {"stop": stop})["stop"]
    if "start" not in heights:
        return None, last
    first, start = block_before(ledger, heights["start"]), ends["start"]
    if first.height >= last.height and (start.timestamp_ns or 0) > last.time_ns:
        expected = f"a time before the last block, {plain_text(Timestamp(last.time_ns, tz='UTC'))}"
        raise InvalidRequestError.refuse("start", start.as_passed, expected)
    if first.height > last.height:
        expected = f"a block up to the last final one, which is block {last.height}"
        raise InvalidRequestError.refuse("start", start.as_passed, expected)
    return first, last


def block_before(ledger: Ledger, height: int) -> Point:
    """Return the last block below a height, or the first block of the chain if there is none."""
    [point] = ledger.locate_many([max(0, height - 1)])
    if isinstance(point, UnknownBlockError):
        [first] = ledger.locate_many([height])
        # Nothing happens in the first block: its balances are those that the chain begins with.
        if isinstance(first, Point) and first.prev_hash == NO_HASH:
            return first
    if isinstance(point, LedgerError):
        raise point
    return point


def first_height(start: int) -> int:
    """Return the height from which transactions are listed, for a period after block `start`."""
    return max(0, start - _MARGIN)
