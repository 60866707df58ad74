"""
A REST API of invented accounts, as fast as Python can send prepared responses.

It runs in its own process, so that the measured times are the client's. The response for an
account depends on its id alone, and is the same in each run.
"""

import contextlib
import multiprocessing
import selectors
import socket
import time
import zlib
from collections import deque
from collections.abc import Iterator
from multiprocessing.connection import Connection

import msgspec

VARIANTS = 64
MOST_TOKENS = 34  # 17 on average, as in accounts in use
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "


def account_ids(count: int) -> Iterator[str]:
    """Return the ids of invented accounts."""
    return (f"account-{number}.near" for number in range(count))


def count_tokens(count: int) -> int:
    """Count the tokens that the first `count` accounts hold."""
    variants = (zlib.crc32(name.encode()) % VARIANTS for name in account_ids(count))
    return sum(variant * MOST_TOKENS // (VARIANTS - 1) for variant in variants)


def tails() -> list[bytes]:
    """Build the part of a response after the account id, for each variant."""
    parts = []
    for variant in range(VARIANTS):
        tokens = [
            {
                "contract_id": f"token{(variant * 7 + n) % 97}.near",
                "balance": str(10**24 * (variant + 1) + n),
                "last_update_block_height": 170_000_000 + variant * n,
            }
            for n in range(variant * MOST_TOKENS // (VARIANTS - 1))
        ]
        view = {
            "tokens": tokens,
            "nfts": [{"contract_id": f"art{variant % 9}.near"}] * (variant % 2),
            "pools": [{"pool_id": f"node{variant % 5}.pool.near"}] * (variant % 3 == 0),
            "state": {"balance": str(10**24 + variant), "locked": "0", "storage_bytes": 182},
        }
        parts.append(b'",' + msgspec.json.encode(view)[1:])
    return parts


def answer(request: bytes, variants: list[bytes]) -> bytes:
    """Build the response to a request."""
    account_id = request.split(b" ", 2)[1].split(b"/")[3]
    tail = variants[zlib.crc32(account_id) % VARIANTS]
    size = b"%d" % (len(b'{"account_id":"') + len(account_id) + len(tail))
    return b"".join((_HEAD, size, b'\r\n\r\n{"account_id":"', account_id, tail))


def serve(pipe: Connection, latency_s: float) -> None:
    """Answer each request after the latency, with as little work as possible."""
    variants = tails()
    selector = selectors.DefaultSelector()
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    selector.register(listening, selectors.EVENT_READ)
    pipe.send(listening.getsockname()[1])
    due: deque[tuple[float, socket.socket, bytes]] = deque()
    while True:
        timeout_s = max(0.0, due[0][0] - time.monotonic()) if due else None
        for key, _ in selector.select(timeout_s):
            if key.data is None:
                connection = listening.accept()[0]
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(connection, selectors.EVENT_READ, connection)
                continue
            request = received(key.data)
            if request:  # complete, because it fits into one packet
                reply = answer(request, variants)
                due.append((time.monotonic() + latency_s, key.data, reply))
            else:
                selector.unregister(key.data)
                key.data.close()
        while due and due[0][0] <= time.monotonic():
            _, connection, body = due.popleft()
            with contextlib.suppress(OSError):
                connection.sendall(body)


def received(connection: socket.socket) -> bytes:
    """Read a request; empty if the client has disconnected."""
    try:
        return connection.recv(65536)
    except ConnectionError:
        return b""


@contextlib.contextmanager
def running(latency_s: float = 0.0) -> Iterator[str]:
    """Run the service in another process."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    server = context.Process(target=serve, args=(sender, latency_s), daemon=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{receiver.recv()}"
    finally:
        server.terminate()
        server.join()
