"""A service of block documents in a process of its own: archives of busy blocks, and a node."""

import contextlib
import json
import multiprocessing
import re
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any

from _busy_blocks import ARCHIVE_BLOCKS, START, Copies

import ledgerkit as lk

BEYOND = 50  # blocks after the last one that is collected
_ARCHIVE = re.compile(r"/raw/\d{6}/\d{3}/(\d{12})\.tgz")
_BLOCK = re.compile(r"/v0/block/(\d+)(/headers)?")


class Host:
    """The responses of the service, which has a number of blocks, and of a node."""

    def __init__(self, count: int) -> None:
        self.requests: Counter[str] = Counter()
        self._copies, self._final = Copies(), START + count + BEYOND - 1
        self._config = lk.connect("local").rpc(
            "EXPERIMENTAL_protocol_config", {"finality": "final"}
        )

    def get(self, target: str) -> tuple[int, bytes]:
        """Return the status and the body, or the address that the request is redirected to."""
        path = target.partition("?")[0]
        if path == "/requests":
            return 200, json.dumps(self.requests).encode()
        self.requests["archive" if path.startswith("/raw/") else path] += 1
        if match := _ARCHIVE.fullmatch(path):
            start = int(match[1])
            is_written = START <= start <= self._final + 1 - ARCHIVE_BLOCKS
            return (200, self._copies.archive(start)) if is_written else (404, b"")
        if path.startswith("/v0/last_block/final"):
            suffix = path.removeprefix("/v0/last_block/final")
            return 302, f"/v0/block/{self._final}{suffix}".encode()
        if match := _BLOCK.fullmatch(path):
            body = self._copies.copy(int(match[1]) - START)
            return 200, json.dumps(json.loads(body)["block"]).encode() if match[2] else body
        return 404, b""

    def post(self, body: bytes) -> bytes:
        """Return the response of the node."""
        request: dict[str, Any] = json.loads(body)
        self.requests[request["method"]] += 1
        result = self._config
        if request["method"] == "block":  # the last final one
            result = json.loads(self._copies.copy(self._final - START))["block"]
        return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()


def serve(pipe: Connection, count: int) -> None:
    """Answer requests until the process is stopped."""
    host = Host(count)

    class Handler(BaseHTTPRequestHandler):
        """The handler of one connection."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Answer a GET."""
            status, body = host.get(self.path.partition("?")[0])
            is_redirect = status == 302
            self.send_response(status)
            if is_redirect:
                self.send_header("location", body.decode())
            self.reply(b"" if is_redirect else body)

        def do_POST(self) -> None:
            """Answer a POST."""
            answer = host.post(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.reply(answer)

        def reply(self, body: bytes) -> None:
            """Send the headers and the body; the client may be gone."""
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Write no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        pipe.send(server.server_address[1])
        server.serve_forever()


@contextlib.contextmanager
def running(count: int) -> Iterator[str]:
    """Run the service with a number of blocks in another process."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    server = context.Process(target=serve, args=(sender, count), daemon=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{receiver.recv()}"
    finally:
        server.terminate()
        server.join()
