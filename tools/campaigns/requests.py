"""
Of many requests, each is answered with what the host has, or with a typed error, in its place.

One request in ten meets a fault: HTTP 429 and 5xx, a reset, a connection closed too early, a
truncated or stalled body, a body that is no JSON or another one. They go over the connection
pool for many requests, 128 in flight, and each is attempted twice at most. No answer may be
missing, of another account, repeated, or different from what the host has.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import ledgerkit as lk
from ledgerkit.api import rest
from ledgerkit.errors import LedgerError
from tools.campaigns import _faulty_host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.api.calls import Call
    from tools.campaigns._tally import Tally

COUNT = 100_000
SMALL = 1_000
EXPECTED = ("answered", "TransportError", "DecodeError", *_faulty_host.FAULTS)
TIMEOUT_S = 1.0


def account_ids(count: int) -> Iterator[str]:
    """Return the accounts to read."""
    return (f"account-{number}.near" for number in range(count))


def calls(count: int) -> Iterator[Call[Any]]:
    """Yield a call for each account."""
    return map(rest.ft, account_ids(count))


def rows(value: Any) -> list[dict[str, Any]]:
    """Return the tokens of an answer as the host has them."""
    return [
        {
            "contract_id": token.contract_id,
            "balance": str(token.balance),
            "last_update_block_height": token.last_update_block_height,
        }
        for token in value.tokens
    ]


def check(account_id: str, value: Any, tally: Tally) -> None:
    """Count the value of a call, or a violation."""
    if isinstance(value, LedgerError):
        tally.count(type(value).__name__)
    elif value is None:
        tally.violate(f"{account_id}: neither an answer nor an error")
    elif value.account_id != account_id or rows(value) != _faulty_host.tokens(account_id):
        tally.violate(f"{account_id}: {value.account_id} with {rows(value)}")
    else:
        tally.count("answered")


def run(count: int, seed: int, tally: Tally) -> None:
    """Read each account, compare, and count the faults of the host."""
    policy = lk.RetryPolicy(attempts=2)
    with (
        _faulty_host.running(seed) as url,
        lk.connect(
            "lab", api_url=url, in_flight=128, timeout_s=TIMEOUT_S, retries=policy
        ) as ledger,
    ):
        values = [value for batch in ledger.stream(calls(count)) for value in batch]
        with urlopen(f"{url}/faults") as response:  # noqa: S310 - of this campaign's host
            faults: dict[str, int] = json.load(response)
    if len(values) != count:
        tally.violate(f"{count:,} requests, but {len(values):,} values")
    for account_id, value in zip(account_ids(count), values, strict=False):
        check(account_id, value, tally)
    for fault, times in faults.items():
        tally.count(fault, times)
