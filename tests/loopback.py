"""
A real HTTP server on this machine, scripted by one function.

>>> with serve(lambda method, path, headers, body: Reply(200, b"{}")) as server:
...     ledger = connect(rpc_url=server.url, api_url=server.url)
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

import ledgerkit as lk

WAYS = ("own", "sync", "async")  # to a host; see `way_options`
TOKEN = {"contract_id": "t.near", "balance": "1"}  # an account without any is looked up
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts no certificate


@dataclass(frozen=True, slots=True)
class Reply:
    """
    A response to send.

    `truncate` closes the connection after that many bytes of the body, `dropped` before any.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    truncate: int | None = None
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A received request; the names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


_ID_FIRST = re.compile(rb'\s*{\s*(?:"jsonrpc"\s*:\s*"2.0"\s*,\s*)?"id"\s*:\s*("[^"]*"|[0-9]+)')
_ID_LAST = re.compile(rb',\s*"id"\s*:\s*("[^"]*"|[0-9]+)\s*}\s*$')
_ID_AT_END = 100  # bytes

Handler = Callable[[str, str, Mapping[str, str], bytes], Reply]


@dataclass(slots=True)
class Server:
    """A running server: its address, all requests it received, and the ledger that asks it."""

    url: str
    requests: list[Request] = field(default_factory=list)
    ledger: lk.Ledger = field(init=False)

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    @property
    def calls(self) -> list[Any]:
        """The decoded bodies of the requests, in order."""
        return [request.json for request in self.requests if request.body]

    def settled(self) -> int:
        """Count the requests, once those on their way have arrived."""
        count = -1
        while count != len(self.requests):
            count = len(self.requests)
            time.sleep(0.15)
        return count


def as_json(value: object, status: int = 200, **options: Any) -> Reply:
    headers = {"content-type": "application/json"}
    return Reply(status, json.dumps(value).encode(), headers, **options)


def result(value: object) -> Reply:
    """Build the response of a JSON-RPC call that succeeded."""
    return as_json({"jsonrpc": "2.0", "id": "ledgerkit", "result": value})


def failure(cause: str, info: object = None, status: int = 200, **members: object) -> Reply:
    """Build a JSON-RPC error response with a cause."""
    fields = {"name": "HANDLER_ERROR", "cause": {"name": cause, "info": info or {}}, "code": -32000}
    error = {**fields, "message": "Server error", **members}
    return as_json({"jsonrpc": "2.0", "id": "ledgerkit", "error": error}, status)


@contextmanager
def serve(handler: Handler, *, port: int = 0) -> Iterator[Server]:
    """Run a server until the block ends; port 0 is a free one."""
    seen: list[Request] = []
    with _Loopback(handler, seen, port) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield Server(f"http://127.0.0.1:{httpd.server_port}", seen)
        finally:
            httpd.shutdown()
            thread.join()


@contextmanager
def asking(handler: Handler, **options: Any) -> Iterator[Server]:
    """Run a server and connect the default ledger to it, without retries."""
    options = {"retries": lk.RetryPolicy(attempts=1, total_s=20.0), **options}
    with serve(handler) as server:
        try:
            server.ledger = lk.connect("lab", rpc_url=server.url, api_url=server.url, **options)
            yield server
        finally:
            lk.disconnect()


@contextmanager
def connected(handler: Handler, **options: Any) -> Iterator[tuple[lk.Ledger, Server]]:
    """Run a server and connect to it, for both surfaces, without retries."""
    options = {"retries": lk.RetryPolicy(attempts=1, total_s=10), **options}
    with (
        serve(handler) as server,
        lk.connect("lab", rpc_url=server.url, api_url=server.url, **options) as ledger,
    ):
        yield ledger, server


@contextmanager
def raw_host(serve_one: Callable[[socket.socket], None]) -> Iterator[str]:
    """Run a server that speaks bytes, one thread a connection; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

        def talk(connection: socket.socket) -> None:
            with connection:
                try:
                    serve_one(connection)
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def way_options(way: str) -> dict[str, Any]:
    """Return the options of `connect` that choose a way to a host, one of `WAYS`."""
    if way == "sync":
        # With threads, httpcore's pool may close an expired connection that a request just took.
        forever = httpx.Limits(keepalive_expiry=None)
        return {"in_flight": 8, "transport": httpx.HTTPTransport(verify=TLS, limits=forever)}
    if way == "async":
        return {"in_flight": 8, "transport": httpx.AsyncHTTPTransport(verify=TLS)}
    return {"in_flight": 16}


def with_id(reply: bytes, request: bytes) -> bytes:
    """Return a script's response with the id of the call, in place of its own one."""
    call_id = _ID_FIRST.match(request)
    if call_id is None:
        return reply
    first, last = _ID_FIRST.match(reply), _ID_LAST.search(reply[-_ID_AT_END:])
    if first is not None:
        return reply[: first.start(1)] + call_id[1] + reply[first.end(1) :]
    if last is not None and b'"jsonrpc"' in reply:
        offset = max(0, len(reply) - _ID_AT_END)
        return reply[: offset + last.start(1)] + call_id[1] + reply[offset + last.end(1) :]
    return reply


class _Loopback(ThreadingHTTPServer):
    """The server's socket; each connection has its own thread."""

    daemon_threads = True
    block_on_close = False  # a client may keep its connection open
    request_queue_size = 128

    def __init__(self, script: Handler, seen: list[Request], port: int) -> None:
        super().__init__(("127.0.0.1", port), _Connection)
        self.script = script
        self.seen = seen

    def handle_error(self, *_: object) -> None:
        """Ignore clients that disconnect."""


class _Connection(BaseHTTPRequestHandler):
    """One connection, kept open between requests."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Loopback

    def _answer(self) -> None:
        """Record the request, call the script and send its response."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): text for name, text in self.headers.items()}
        self.server.seen.append(Request(self.command, self.path, headers, body))
        try:
            reply = self.server.script(self.command, self.path, headers, body)
        except Exception as error:  # noqa: BLE001 - a script's mistake shows in the client's error
            reply = Reply(599, f"the test's own script failed: {error!r}".encode())
        time.sleep(reply.delay)
        self._send(replace(reply, body=with_id(reply.body, body)))

    do_GET = do_POST = do_HEAD = _answer  # noqa: N815 - the names that http.server looks for

    def _send(self, reply: Reply) -> None:
        """Send a response, complete or truncated, or none."""
        if reply.dropped:
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, text in reply.headers.items():
            self.send_header(name, text)
        self.send_header("content-length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body[: reply.truncate])
        self.close_connection = self.close_connection or reply.truncate is not None

    def log_message(self, *_: object) -> None:
        """Log nothing."""
