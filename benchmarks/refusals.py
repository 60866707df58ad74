"""
Scattered refusals do not slow a ledger without a rate limit down.

3,000 accounts are read from a service in another process, which answers after 20 ms: once as it
is, and once with one request in a hundred refused at random (HTTP 429). Short rounds alternate.
"""

import time

from _canned import account_ids, running
from _verdict import finish, say

import ledgerkit as lk

COUNT = 3_000
ROUNDS = 3
SHARE = 0.01
MOST = 2.0  # times as long


def seconds(url: str) -> float:
    """Read the accounts; return the time."""
    with lk.connect("lab", api_url=url, in_flight=128) as ledger:
        begin = time.perf_counter()
        frame = lk.ft(account_ids(COUNT), ledger=ledger, progress=False)
        took = time.perf_counter() - begin
    if frame["account_id"].isna().any():
        msg = "an account is missing"
        raise RuntimeError(msg)
    return took


def main() -> None:
    with running(0.02) as service, running(0.02, refused=SHARE) as refusing:
        seconds(service)  # imports
        times = [(seconds(service), seconds(refusing)) for _ in range(ROUNDS)]
    undisturbed, disturbed = (min(column) for column in zip(*times, strict=True))
    print(f"{COUNT:,} accounts: {undisturbed:.2f} s; with refusals {disturbed:.2f} s")
    ratio = disturbed / undisturbed
    say(
        f"at most {MOST:g} x as long with 1 % of the requests refused",
        f"{ratio:.2f}",
        met=ratio <= MOST,
    )
    finish()


if __name__ == "__main__":
    main()
