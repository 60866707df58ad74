"""
A service in a process of its own, whose work is not measured.

It sends each answer after a latency, with as little work as possible.
"""

import contextlib
import multiprocessing
import re
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection

Respond = Callable[[str, bytes], bytes]  # the whole response to the target and body of a request

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def message(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """Build a response."""
    lines = [f"HTTP/1.1 {status}", "content-type: application/json", *headers]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body


@contextlib.contextmanager
def running(make: Callable[[], Respond], latency_s: float = 0.0) -> Iterator[str]:
    """Run the service that `make` builds in another process; yield its address."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    server = context.Process(target=_serve, args=(sender, make, latency_s), daemon=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{receiver.recv()}"
    finally:
        server.terminate()
        server.join()


def _serve(pipe: Connection, make: Callable[[], Respond], latency_s: float) -> None:
    """Answer each request after the latency."""
    respond = make()
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
                selector.register(connection, selectors.EVENT_READ, (connection, bytearray()))
                continue
            connection, received = key.data
            packet = b""
            with contextlib.suppress(ConnectionError):  # the client has disconnected
                packet = connection.recv(2**20)
            if not packet:
                selector.unregister(connection)
                connection.close()
                continue
            received += packet
            if request := _whole(bytes(received)):
                received.clear()
                due.append((time.monotonic() + latency_s, connection, respond(*request)))
        while due and due[0][0] <= time.monotonic():
            _, connection, reply = due.popleft()
            with contextlib.suppress(OSError):
                connection.settimeout(60)
                connection.sendall(reply)


def _whole(received: bytes) -> tuple[str, bytes] | None:
    """Return the target and the body of a request; None if a part is missing."""
    head, separator, body = received.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    if not separator or len(body) < (int(length[1]) if length else 0):
        return None
    return head.split(b" ", 2)[1].decode(), body
