"""
A cheap load for an HTTP server: one request again and again, over connections that are kept.

Run with the port, the number of requests and that in flight, and the request on standard input;
prints the seconds. It only looks for the end of each response, so that it takes less time than
the server.
"""

from __future__ import annotations

import re
import selectors
import socket
import sys
import time

_HEAD = re.compile(rb"(?is)HTTP/1.1 200 .*?\r\ncontent-length: (\d+)\r\n(?:.*?\r\n)?\r\n")
TIMEOUT_S = 60


def is_complete(response: bytes) -> bool:
    head = _HEAD.match(response)
    assert head or b"\r\n\r\n" not in response, response
    return head is not None and len(response) == head.end() + int(head[1])


def load(port: int, count: int, in_flight: int, request: bytes) -> float:
    selector = selectors.DefaultSelector()
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(in_flight)]
    for connection in connections:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(connection, selectors.EVENT_READ, (connection, bytearray()))
    begin = time.perf_counter()
    for connection in connections:
        connection.sendall(request)
    sent, answered = in_flight, 0
    while answered < count:
        ready = selector.select(TIMEOUT_S)
        assert ready, f"no response within {TIMEOUT_S} s"
        for key, _ in ready:
            connection, received = key.data
            part = connection.recv(2**20)
            assert part, "the server closed a connection"
            received += part
            if is_complete(received):
                received.clear()
                answered += 1
                if sent < count:
                    connection.sendall(request)
                    sent += 1
    return time.perf_counter() - begin


if __name__ == "__main__":
    port, count, in_flight = map(int, sys.argv[1:])
    print(load(port, count, in_flight, sys.stdin.buffer.read()))
