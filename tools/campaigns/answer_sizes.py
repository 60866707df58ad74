"""
Every answer is read whole or refused, in time, and in memory that its limit bounds.

Each case is an answer of a host in a process of its own: sound, packed a thousandfold, packed
twice, without an end, of a length that is wrong, or damaged. Batches of them are read on each way
to a host. An answer within the limit must be read exactly; each of the others must be refused with
the error of its kind before the timeout.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import time
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import ledgerkit as lk
from tests.loopback import WAYS, way_options
from tools.campaigns import _host_process

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from tools.campaigns._campaign import Tally

COUNT = 10_000
SMALL = 160
EXPECTED = ("read", "ResponseTooLargeError", "TransportError", "DecodeError")
LIMIT = 2**18
BATCH = 8  # below the number of failures in a row after which the rest is not sent
TIMEOUT_S = 20.0
MEMORY = 64 * 2**20  # for a batch of answers, and the heaps of the threads that read it
PEAK = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")
PATH = re.compile(rb"/v1/account/c(\d+)\.near/")
END = b"0\r\n\r\n"
GZIP = b"content-encoding: gzip\r\n"


class Case(NamedTuple):
    """An answer: its headers and body, a part to repeat without an end, and what it must become."""

    headers: bytes
    body: bytes
    results: tuple[str, ...]
    repeated: bytes = b""


# Bodies ---------------------------------------------------------------------------------


def document(number: int, size: int) -> bytes:
    """Return the answer for an account in so many bytes."""
    row = {"contract_id": f"of-{number}", "balance": "1", "last_update_block_height": 1}
    body = json.dumps({"account_id": f"c{number}.near", "tokens": [row]}).encode()
    return body + b" " * (size - len(body))


def framed(rng: random.Random, body: bytes, headers: bytes = b"") -> tuple[bytes, bytes]:
    """Return headers and a body: with its length, or in chunks."""
    if rng.getrandbits(1):
        return headers + b"content-length: %d\r\n" % len(body), body
    chunks, at = [], 0
    while at < len(body):
        size = rng.choice((1, 100, 5000, 2**16, 2**20))
        chunks.append(chunk(body[at : at + size]))
        at += size
    return headers + b"transfer-encoding: chunked\r\n", b"".join([*chunks, END])


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def bomb(mebibytes: int) -> bytes:
    """Return gzip that unpacks to so many mebibytes; each takes a kilobyte."""
    deflate = zlib.compressobj(wbits=-15)
    block = deflate.compress(b" " * 2**20) + deflate.flush(zlib.Z_FULL_FLUSH)
    return gzip.compress(b"")[:10] + block * mebibytes


# Kinds of answers ------------------------------------------------------------------------


def sound(rng: random.Random, number: int) -> Case:
    """Return an answer within the limit, packed or not."""
    body = document(number, rng.choice((200, 4000, LIMIT - 1, LIMIT)))
    if rng.getrandbits(1):
        return Case(*framed(rng, body), ("read",))
    return Case(*framed(rng, gzip.compress(body), GZIP), ("read",))


def too_large(rng: random.Random, number: int) -> Case:
    """Return an answer above the limit, by a byte or seven times."""
    body = document(number, LIMIT + rng.choice((1, 2, 1000, LIMIT, 7 * LIMIT)))
    return Case(*framed(rng, body), ("ResponseTooLargeError",))


def packed_large(rng: random.Random, number: int) -> Case:
    """Return a small answer that unpacks to a byte above the limit, or to a thousand times it."""
    body = gzip.compress(document(number, LIMIT + 1))
    if rng.getrandbits(2):
        body = bomb(rng.choice((1, 16, 256)))
    return Case(*framed(rng, body, GZIP), ("ResponseTooLargeError",))


def packed_again(rng: random.Random, number: int) -> Case:
    """Return gzip in gzip, announced as such or as gzip once."""
    body = document(number, 4000)
    depth = rng.randint(2, 6)
    for _ in range(depth):
        body = gzip.compress(body)
    if rng.getrandbits(1):
        return Case(*framed(rng, body, GZIP), ("DecodeError",))
    joined = b"content-encoding: " + b", ".join([b"gzip"] * depth) + b"\r\n"
    headers = rng.choice((joined, GZIP * depth))
    return Case(*framed(rng, body, headers), ("TransportError",))


def other_encoding(rng: random.Random, number: int) -> Case:
    """Return an answer with an encoding that was not requested."""
    name = rng.choice((b"br", b"zstd", b"deflate", b"compress", b"gzip;q=1", b"x", b"br, gzip"))
    body = zlib.compress(document(number, 4000))
    return Case(*framed(rng, body, b"content-encoding: %s\r\n" % name), ("TransportError",))


def endless(rng: random.Random, _number: int) -> Case:
    """Return a body without an end, packed or not."""
    refused = ("ResponseTooLargeError",)
    data = b" " * rng.choice((100, 2**14))
    if rng.getrandbits(1):
        return Case(b"connection: close\r\n", b"", refused, data)
    headers = b"transfer-encoding: chunked\r\n"
    if rng.getrandbits(1):
        return Case(headers, b"", refused, chunk(data))
    whole = bomb(1)
    packed = headers + GZIP
    return Case(packed, chunk(whole[:10]), refused, chunk(whole[10:]))


def wrong_length(rng: random.Random, number: int) -> Case:
    """Return a length that the body does not have; above the limit no body is sent."""
    body = document(number, 4000)
    if rng.getrandbits(1):
        length = rng.choice((LIMIT + 1, 2**31, 2**63 - 1))
        return Case(b"content-length: %d\r\n" % length, b"", ("ResponseTooLargeError",))
    length = len(body) + rng.choice((1, 1000))
    return Case(b"content-length: %d\r\n" % length, body, ("TransportError",))


def damaged(rng: random.Random, number: int) -> Case:
    """Return gzip with a bit flipped, cut, or continued."""
    body = bytearray(gzip.compress(document(number, 4000), mtime=0))
    kind, results = rng.randrange(3), ["TransportError"]
    if kind == 0:  # the header has bits that mean nothing
        body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
        results += ["read", "ResponseTooLargeError"]
    elif kind == 1:
        del body[rng.randrange(1, len(body)) :]
    else:
        body += rng.choice((b"x", bytes(body), rng.randbytes(70_000)))
    return Case(*framed(rng, bytes(body), GZIP), tuple(results))


KINDS: tuple[Callable[[random.Random, int], Case], ...] = (
    sound,
    sound,
    too_large,
    packed_large,
    packed_again,
    other_encoding,
    endless,
    wrong_length,
    damaged,
)

# The host -------------------------------------------------------------------------------


def case(seed: int, number: int) -> tuple[str, Case]:
    rng = random.Random(f"{seed} {number}")
    build = rng.choice(KINDS)
    return build.__name__, build(rng, number)


def host(seed: int) -> Callable[[socket.socket], None]:
    """Return a host that answers each request with the case of its path."""

    def talk(connection: socket.socket) -> None:
        while match := PATH.search(connection.recv(65536)):
            kind, answer = case(seed, int(match[1]))
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + answer.headers + b"\r\n" + answer.body)
            while answer.repeated:
                connection.sendall(answer.repeated)
            if kind == wrong_length.__name__:
                return

    return talk


# Checks ----------------------------------------------------------------------------------


def results_of(ledger: lk.Ledger, numbers: range) -> dict[str, str]:
    """Read the accounts of a batch; return what each became, by account."""
    ids = [f"c{number}.near" for number in numbers]
    rows, errors = lk.ft(ids, ledger=ledger, on_error="collect", progress=False)
    results = dict(zip(errors["subject"], errors["error"], strict=True))
    for account_id, contract_id in zip(rows["account_id"], rows["contract_id"], strict=True):
        is_right = contract_id == f"of-{account_id[1:-5]}"
        results[account_id] = "read" if is_right else f"read as {contract_id}"
    return results


def peak_memory() -> int:
    """Return the peak of this process's memory in bytes since the last reset; 0 if unknown."""
    match = re.search(r"VmHWM:\s+(\d+) kB", PEAK.read_text()) if PEAK.exists() else None
    return 1024 * int(match[1]) if match else 0


def check_batch(ledger: lk.Ledger, seed: int, numbers: range, tally: Tally) -> float:
    """Read a batch and compare its results; return the seconds it took."""
    start = time.monotonic()
    results = results_of(ledger, numbers)
    took = time.monotonic() - start
    for number in numbers:
        kind, expected = case(seed, number)
        result = results.get(f"c{number}.near", "missing")
        if result in expected.results:
            tally.count(result)
        else:
            tally.violate(f"case {number} ({kind}): {result}, not {' or '.join(expected.results)}")
    if took > TIMEOUT_S:
        tally.violate(f"cases {numbers.start} to {numbers.stop - 1} took {took:.1f} s")
    return took


def run(count: int, seed: int, tally: Tally) -> None:
    """Read all cases, a batch on each way in turn."""
    once = lk.RetryPolicy(attempts=1, total_s=TIMEOUT_S)
    options: dict[str, Any] = {"max_response_bytes": LIMIT, "timeout_s": TIMEOUT_S, "retries": once}
    slowest_s = 0.0
    with ExitStack() as stack:
        url = stack.enter_context(_host_process.running(host, seed))
        ledgers = [
            stack.enter_context(lk.connect("lab", api_url=url, **options, **way_options(way)))
            for way in WAYS
        ]
        for ledger in ledgers:  # loads what would count as memory
            results_of(ledger, range(BATCH))
        if RESET.exists():
            RESET.write_text("5")
        before = peak_memory()
        for first in range(0, count, BATCH):
            ledger = ledgers[first // BATCH % len(ledgers)]
            numbers = range(first, min(first + BATCH, count))
            slowest_s = max(slowest_s, check_batch(ledger, seed, numbers, tally))
        grown = peak_memory() - before
    if grown > MEMORY:
        tally.violate(f"the process took {grown / 2**20:.0f} MiB more")
    tally.notes.append(f"slowest batch {slowest_s:.2f} s; {grown / 2**20:.0f} MiB more memory")
