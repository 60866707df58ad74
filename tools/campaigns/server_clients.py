"""
A served ledger answers or closes each malformed connection, logs nothing, and serves on.

Each connection sends valid requests that were cut, changed, joined or repeated, or random
bytes, and then reads until the server closes or is silent. Another client is answered
meanwhile. Last, the server is stopped while some connections are open.
"""

from __future__ import annotations

import http.client
import os
import random
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from tools.campaigns import _byte_mutations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.campaigns._tally import Tally

COUNT = 20_000
SMALL = 300
EXPECTED = ("answered", "closed", "status 200", "status 400", "status 403")

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 20.0  # longer than the server keeps a connection without requests
OPEN = 50  # connections at a time
BODY = b'{"jsonrpc":"2.0","id":1,"method":"gas_price","params":[null]}'
JSON = b"content-type: application/json\r\n"
HOST = b"host: localhost\r\n"
HEADERS = (
    JSON,
    b"content-length: 5\r\n",
    b"content-length: 99999999999999999999\r\n",
    b"transfer-encoding: chunked\r\n",
    b"transfer-encoding: gzip, chunked\r\n",
    b"connection: close\r\n",
    b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n",
    b"connection: upgrade\r\nupgrade: h2c\r\n",
    b"expect: 100-continue\r\n",
    b"origin: https://evil.example\r\n",
    b"origin: http://localhost:5173\r\n",
    b"host: evil.example\r\n",
    b"x-ledgerkit-fault: latency=\xff\r\n",
    b"x-ledgerkit-fault: drop\r\n",
    b"x-ledgerkit-fault: truncate=9\r\n",
    b"x-ledgerkit-fault: status=429; retry-after=\xe9\r\n",
    b"x: \x1b]0;owned\x07\r\n",
    b"authorization: Bearer \xff\r\n",
    b" folded\r\n",
    b"no-colon\r\n",
    b"x: " + b"y" * 70_000 + b"\r\n",
)
METHODS = (b"GET", b"POST", b"HEAD", b"OPTIONS", b"PUT", b"CONNECT", b"TRACE", b"PRI", b"get")
TARGETS: tuple[bytes, ...] = (
    b"/",
    b"/api/health",
    b"/api/v1/account/near/full",
    b"/status",
    b"*",
    b"//",
    b"/%00",
)
TARGETS += (b"http://evil.example/", b"/\xff", b"/api/v1/account/%ff/ft", b"/?apiKey=%00", b"")
VERSIONS = (b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9", b"")
BODIES = (BODY, b"", b"[" * 20_000, BODY[:-9], b"\xff" * 9, b"5\r\nhello\r\n0\r\n\r\n", b"zz\r\n")


def valid(rng: random.Random) -> bytes:
    """Return a valid request."""
    if rng.randrange(2):
        return b"GET /api/health HTTP/1.1\r\n" + HOST + b"\r\n"
    length = b"content-length: %d\r\n" % len(BODY)
    return b"POST / HTTP/1.1\r\n" + HOST + JSON + length + b"\r\n" + BODY


def assembled(rng: random.Random) -> bytes:
    """Return a request of parts that do not fit."""
    line = b" ".join((rng.choice(METHODS), rng.choice(TARGETS), rng.choice(VERSIONS)))
    headers = b"".join(rng.choices((HOST, *HEADERS), k=rng.randrange(5)))
    host = rng.choice((HOST, HOST, HOST, b""))
    return line + b"\r\n" + host + headers + b"\r\n" + rng.choice(BODIES)


def damaged(rng: random.Random) -> bytes:
    """Return a request after a mutation of its bytes, or random bytes."""
    requests = [rng.choice((valid, assembled))(rng) for _ in range(2)]
    return rng.choice(_byte_mutations.WAYS)(rng, requests)


WAYS = (valid, assembled, assembled, damaged, damaged, damaged)


def conversation(rng: random.Random) -> bytes:
    """Return what one client sends: one request or several."""
    return b"".join(rng.choice(WAYS)(rng) for _ in range(rng.choice((1, 1, 2, 5))))


# The server ------------------------------------------------------------------------------


@contextmanager
def served(log: IO[str]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Serve a world in a process of its own, which writes its log to a file."""
    command = [sys.executable, "-W", "error", "-m", "ledgerkit", "serve", "--world", "empty"]
    with subprocess.Popen(
        [*command, "--port", "0"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield process, int(re.findall(r":(\d+) ", line)[0])
        finally:
            process.kill()


def opened(port: int, data: bytes) -> socket.socket:
    """Open a connection, send the data and end the sending."""
    client = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
    try:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
    except OSError:  # closed by the server meanwhile
        pass
    return client


def last_words(client: socket.socket) -> bytes:
    """Read until the server closes; raises TimeoutError if it does not."""
    parts = []
    with client:
        try:
            while part := client.recv(65_536):
                parts.append(part)
        except ConnectionError:
            pass
    return b"".join(parts)


def is_healthy(port: int) -> bool:
    """Return True if another client is answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("POST", "/", BODY, {"content-type": "application/json"})
        return b'"gas_price":"100000000"' in connection.getresponse().read()
    except OSError:
        return False
    finally:
        connection.close()


def run(count: int, seed: int, tally: Tally) -> None:
    """Open the connections in groups, then stop the server."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    with TemporaryFile("w+") as log, served(log) as (process, port):
        for begin in range(0, count, OPEN):
            sent = [conversation(rng) for _ in range(min(OPEN, count - begin))]
            clients = [opened(port, data) for data in sent]
            if not is_healthy(port):
                tally.violate(f"after {begin} connections another client was not answered")
            for data, client in zip(sent, clients, strict=True):
                review(tally, data, client)
        clients = [opened(port, conversation(rng)) for _ in range(OPEN)]
        process.send_signal(signal.SIGINT)
        if process.wait(TIMEOUT_S):
            tally.violate(f"the server ended with {process.returncode}")
        for client in clients:
            client.close()
        log.seek(0)
        lines = sorted(set(log))
    tally.violations += [f"the log has {line!r}" for line in lines[:20]]


def review(tally: Tally, data: bytes, client: socket.socket) -> None:
    """Check the end of one connection."""
    try:
        answer = last_words(client)
    except TimeoutError:
        tally.violate(f"not closed after {data[:200]!r}")
        return
    tally.count("answered" if answer else "closed")
    if answer and not answer.startswith(b"HTTP/1.1 "):
        tally.violate(f"{answer[:60]!r} after {data[:200]!r}")
    for status in set(re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)):
        tally.count(f"status {status.decode()}")
