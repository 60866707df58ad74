"""What the Python clients' scripts share: the world they meet, fees by hand, a line per check."""

from __future__ import annotations

import json
import sys
from typing import Any, NamedTuple

NEAR = 10**24
PRICE, PURCHASE = 10**8, 10**9  # of one gas: what is burnt at rest, and what is bought at first
TRANSFER_GAS = 108_059_500_000 + 115_123_062_500  # a receipt and its one action
TRANSFER_FEE = 2 * TRANSFER_GAS * PRICE  # once when the receipt is sent, once when it runs
TRANSFER_DEBIT = TRANSFER_GAS * (PRICE + PURCHASE)  # before the refund
REGISTRATION = 125 * 10**19  # storage of an account with the longest id, in yocto
PLAIN = 182  # bytes of storage of an account with one full-access key
WAITING = "a yielded call that waits to be resumed"  # the one transaction of the demo under way


class Demo(NamedTuple):
    """Where the ledger listens, who acts, and what `ledgerkit world demo --json` prints."""

    url: str
    sender_id: str
    secret_key: str
    receiver_id: str
    contracts: dict[str, Any]
    accounts: list[dict[str, Any]]
    transactions: list[dict[str, Any]]

    @property
    def finished(self) -> list[dict[str, Any]]:
        """The transactions that wait for nothing."""
        return [row for row in self.transactions if row["description"] != WAITING]


def demo() -> Demo:
    """Read the address from the command line and the world from standard input."""
    world = json.load(sys.stdin)
    secrets = {row["account_id"]: row["secret_key"] for row in world["accounts"]}
    sender_id, receiver_id = world["actors"]
    return Demo(
        url=sys.argv[1],
        sender_id=sender_id,
        secret_key=secrets[sender_id],
        receiver_id=receiver_id,
        contracts=world["contracts"],
        accounts=world["accounts"],
        transactions=world["transactions"],
    )


class Checks:
    """Prints a line per check, and remembers whether one failed."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.failed = 0

    def equal(self, what: str, got: Any, wanted: Any) -> None:
        """Compare two values; where they differ, print both."""
        if got == wanted:
            sys.stdout.write(f"ok     {self.client}: {what}\n")
            return
        self.failed += 1
        values = f"       got    {got!r}\n       wanted {wanted!r}\n"
        sys.stdout.write(f"FAILED {self.client}: {what}\n{values}")

    def done(self) -> None:
        """End the script, with an exit code of 1 where a check failed."""
        sys.exit(f"{self.failed} checks of {self.client} failed" if self.failed else 0)
