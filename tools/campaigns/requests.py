"""
Of many requests, each is answered with what the host has, or with a typed error, in its place.

One request in ten meets a fault: HTTP 429 and 5xx, a reset, a connection closed too early, a
truncated or stalled body, a body that is no JSON or another one. 128 requests are in flight, and
each is attempted twice at most. No answer may be missing, of another account, repeated, or
different from what the host has.
"""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
import time
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import ledgerkit as lk
from ledgerkit.api import rest
from ledgerkit.errors import LedgerError
from tools.campaigns import _host_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.campaigns._campaign import Tally

SHARE = 0.1  # of the requests have a fault
STALL_S = 30.0  # longer than any client waits
FAULTS = (
    *("429", "429 with Retry-After", "500", "502", "503"),
    *("connection reset", "connection closed without a response"),
    *("connection closed after a response", "truncated body", "stalled body"),
    *("stalled before the response", "no JSON", "other JSON"),
)
NO_JSON = (b"<html>busy</html>", b'{"account_id":', b"\xff\xfe", b"")
OTHER_JSON = (b'["tokens"]', b'{"account_id": 7, "tokens": {}}', b'"busy"', b"12")
ABORT = struct.pack("ii", 1, 0)  # for SO_LINGER: close with a reset

COUNT = 100_000
SMALL = 1_000
EXPECTED = ("answered", "TransportError", "DecodeError", *FAULTS)
TIMEOUT_S = 1.0


def tokens(account_id: str) -> list[dict[str, Any]]:
    """Return the tokens of an account, which depend on its id alone."""
    number = zlib.crc32(account_id.encode())
    return [
        {
            "contract_id": f"token{(number + at) % 97}.near",
            "balance": str(number * 10**28 + at),
            "last_update_block_height": number % 10**8 + at,
        }
        for at in range(number % 5)
    ]


def message(status: int, body: bytes, header: str = "") -> bytes:
    return (
        f"HTTP/1.1 {status} Status\r\ncontent-length: {len(body)}\r\n{header}\r\n".encode() + body
    )


class Host:
    """A REST API, and its faults so far."""

    def __init__(self, seed: int) -> None:
        self.luck = random.Random(seed)
        self.faults: Counter[str] = Counter()
        self.lock = threading.Lock()

    def talk(self, connection: socket.socket) -> None:
        """Answer the requests of one connection, until it is to be closed."""
        while head := connection.recv(65536):  # a request fits into one packet
            path = head.split(b" ", 2)[1].decode()
            if path == "/faults":
                connection.sendall(message(200, json.dumps(self.faults).encode()))
                continue
            account_id = path.split("/")[3]
            view = {"account_id": account_id, "tokens": tokens(account_id)}
            whole = message(200, json.dumps(view).encode())
            with self.lock:
                fault = self.luck.choice(FAULTS) if self.luck.random() < SHARE else None
                self.faults.update([fault] if fault else [])
            connection.sendall(whole if fault is None else self.faulty(fault, whole))
            if fault is not None and not (fault[0].isdigit() or fault.endswith(" JSON")):
                time.sleep(STALL_S if fault.startswith("stalled") else 0)
                if fault == "connection reset":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
                return

    def faulty(self, fault: str, whole: bytes) -> bytes:
        """Return what is sent in place of a whole response."""
        if fault[0].isdigit():
            pause = "retry-after: 1\r\n" if "Retry-After" in fault else ""
            return message(int(fault[:3]), b"busy", pause)
        if fault.endswith(" JSON"):
            bodies = NO_JSON if fault == "no JSON" else OTHER_JSON
            return message(200, self.luck.choice(bodies))
        if fault == "connection closed after a response":
            return whole
        return whole[: -self.luck.randint(1, 20)] if fault.endswith("body") else b""


def host(seed: int) -> Callable[[socket.socket], None]:
    return Host(seed).talk


def check(account_id: str, value: Any, tally: Tally) -> None:
    """Count the value of a call, or a violation."""
    if isinstance(value, LedgerError):
        tally.count(type(value).__name__)
    elif value is None:
        tally.violate(f"{account_id}: neither an answer nor an error")
    else:
        found = [
            {
                "contract_id": token.contract_id,
                "balance": str(token.balance),
                "last_update_block_height": token.last_update_block_height,
            }
            for token in value.tokens
        ]
        if value.account_id != account_id or found != tokens(account_id):
            tally.violate(f"{account_id}: {value.account_id} with {found}")
        else:
            tally.count("answered")


def run(count: int, seed: int, tally: Tally) -> None:
    """Read each account, compare, and count the faults of the host."""
    ids = [f"account-{number}.near" for number in range(count)]
    options: dict[str, Any] = {"in_flight": 128, "timeout_s": TIMEOUT_S}
    policy = lk.RetryPolicy(attempts=2)
    with (
        _host_process.running(host, seed) as url,
        lk.connect("lab", api_url=url, retries=policy, **options) as ledger,
    ):
        values = [value for batch in ledger.stream(map(rest.ft, ids)) for value in batch]
        with urlopen(f"{url}/faults") as response:  # noqa: S310 - of this campaign's host
            faults: dict[str, int] = json.load(response)
    if len(values) != count:
        tally.violate(f"{count:,} requests, but {len(values):,} values")
    for account_id, value in zip(ids, values, strict=False):
        check(account_id, value, tally)
    for fault, times in faults.items():
        tally.count(fault, times)
