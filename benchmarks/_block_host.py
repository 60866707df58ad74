"""A service of block documents: archives of busy blocks, and a node."""

import json
import re
from collections import Counter
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import _host
from _busy_blocks import ARCHIVE_BLOCKS, START, Copies
from _host import message

import ledgerkit as lk

MISSING = "404 Not Found"
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

    def respond(self, target: str, body: bytes) -> bytes:
        """Answer a request to the service, or a POST to the node."""
        if body:
            return message(self.post(body))
        path = target.partition("?")[0]
        if path == "/requests":
            return message(json.dumps(self.requests).encode())
        self.requests["archive" if path.startswith("/raw/") else path] += 1
        if match := _ARCHIVE.fullmatch(path):
            start = int(match[1])
            is_written = START <= start <= self._final + 1 - ARCHIVE_BLOCKS
            return message(self._copies.archive(start)) if is_written else message(b"", MISSING)
        if path.startswith("/v0/last_block/final"):
            suffix = path.removeprefix("/v0/last_block/final")
            return message(b"", "302 Found", f"location: /v0/block/{self._final}{suffix}")
        if match := _BLOCK.fullmatch(path):
            document = self._copies.copy(int(match[1]) - START)
            block = json.dumps(json.loads(document)["block"]).encode() if match[2] else document
            return message(block)
        return message(b"", MISSING)

    def post(self, body: bytes) -> bytes:
        """Return the response of the node."""
        request: dict[str, Any] = json.loads(body)
        self.requests[request["method"]] += 1
        result = self._config
        if request["method"] == "block":  # the last final one
            result = json.loads(self._copies.copy(self._final - START))["block"]
        return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()


def host(count: int) -> _host.Respond:
    """Build the service with a number of blocks."""
    return Host(count).respond


def running(count: int) -> AbstractContextManager[str]:
    """Run the service with a number of blocks in another process."""
    return _host.running(partial(host, count))
