"""
A service of the benchmarks' own: full views of made-up accounts, as fast as Python can send them.

It stands in for the indexed REST API, in a process of its own, so that a figure is the
client's. An account's answer depends on its id alone: the same in each run.
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
MOST_TOKENS = 34  # 17 on average, as accounts that are in use have
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "


def account_ids(count: int) -> Iterator[str]:
    """Name accounts."""
    return (f"account-{number}.near" for number in range(count))


def count_tokens(count: int) -> int:
    """Count the tokens that so many accounts hold."""
    variants = (zlib.crc32(name.encode()) % VARIANTS for name in account_ids(count))
    return sum(variant * MOST_TOKENS // (VARIANTS - 1) for variant in variants)


def tails() -> list[bytes]:
    """Write what follows the account's id in an answer, for each variant."""
    made = []
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
        made.append(b'",' + msgspec.json.encode(view)[1:])
    return made


def answer(request: bytes, variants: list[bytes]) -> bytes:
    """Write the answer to one request."""
    account_id = request.split(b" ", 2)[1].split(b"/")[3]
    tail = variants[zlib.crc32(account_id) % VARIANTS]
    size = b"%d" % (len(b'{"account_id":"') + len(account_id) + len(tail))
    return b"".join((_HEAD, size, b'\r\n\r\n{"account_id":"', account_id, tail))


def serve(tell: Connection, latency_s: float) -> None:
    """Answer each request after the latency, with as little work as can be."""
    variants = tails()
    selector = selectors.DefaultSelector()
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    selector.register(listening, selectors.EVENT_READ)
    tell.send(listening.getsockname()[1])
    due: deque[tuple[float, socket.socket, bytes]] = deque()
    while True:
        patience = max(0.0, due[0][0] - time.monotonic()) if due else None
        for key, _ in selector.select(patience):
            if key.data is None:
                connection = listening.accept()[0]
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(connection, selectors.EVENT_READ, connection)
                continue
            request = received(key.data)
            if request:  # whole, for it fits one packet
                due.append((time.monotonic() + latency_s, key.data, answer(request, variants)))
            else:
                selector.unregister(key.data)
                key.data.close()
        while due and due[0][0] <= time.monotonic():
            _, connection, body = due.popleft()
            with contextlib.suppress(OSError):
                connection.sendall(body)


def received(connection: socket.socket) -> bytes:
    """Read a request; nothing, if its sender is gone."""
    try:
        return connection.recv(65536)
    except ConnectionError:
        return b""


@contextlib.contextmanager
def running(latency_s: float = 0.0) -> Iterator[str]:
    """Run the service in another process; gives its address."""
    context = multiprocessing.get_context("spawn")
    hear, tell = context.Pipe(duplex=False)
    server = context.Process(target=serve, args=(tell, latency_s), daemon=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{hear.recv()}"
    finally:
        server.terminate()
        server.join()
