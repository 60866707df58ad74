"""
A host of block documents, as the public ones: single documents, archives of ten, redirects.

>>> host = DocumentHost(documents, final=max(documents))
>>> with serve(host) as server:
...     ledger = connect("lab", rpc_url=…, blocks_url=server.url)
"""

# Source: fastnear/neardata-server, src/api.rs and src/reader.rs; fastnear/libs, neardata-fetcher.

from __future__ import annotations

import gzip
import json
import random
import re
import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import base58

import ledgerkit as lk
from tests.loopback import Reply, as_json, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tests.loopback import Handler, Server

    # Called with the path and the number of earlier requests for it: a fault, or None.
    Fault = Callable[[str, int], Reply | None]

ARCHIVE_BLOCKS = 10
_ARCHIVE = re.compile(r"/raw/(\d{6})/(\d{3})/(\d{12})\.tgz")
_BLOCK = re.compile(r"/v0/block/(\d+)(/headers)?")
_LAST = re.compile(r"/v0/last_block/final(/headers)?")
_MAX_HEIGHT = 10**15
_DAY = {"cache-control": f"public, max-age={24 * 60 * 60}"}
_YEAR = {"cache-control": f"public, max-age={365 * 24 * 60 * 60}"}
_JSON = {"content-type": "application/json; charset=utf-8"}


@contextmanager
def hosting(host: Handler, **options: Any) -> Iterator[tuple[lk.Ledger, Server]]:
    """Serve a host, and connect to a network that has nothing else."""
    retries = lk.RetryPolicy(attempts=2, total_s=20.0)
    options = {"retries": retries, "make_default": False, **options}
    with serve(host) as server, lk.connect("lab", blocks_url=server.url, **options) as ledger:
        yield ledger, server


class DocumentHost:
    """
    The handler of a server with the documents of some blocks.

    Parameters
    ----------
    documents
        The JSON of each block by height; a height between two of them was skipped.
    final
        The height of the last final block, which a test may raise.
    archived
        Heights below this one are redirected to ``/archive``, as the public service redirects them
        to hosts of archives; None redirects none.
    missing_archives
        The first heights of archives that the host does not have.
    late
        Heights answered with null by a cache: only a query that it has not seen passes it.
    fault
        Returns a response in place of the host's own.
    waits
        Seconds for which a request for one of the ten heights after the last final block waits.
    """

    def __init__(
        self,
        documents: Mapping[int, bytes],
        *,
        final: int,
        archived: int | None = None,
        missing_archives: Iterable[int] = (),
        late: Iterable[int] = (),
        fault: Fault | None = None,
        waits: float = 0.0,
    ) -> None:
        self.documents = documents
        self.final = final
        self.first = min(documents)
        self.archived = self.first if archived is None else archived
        self.missing_archives = set(missing_archives)
        self.late = set(late)
        self.fault = fault
        self.waits = waits
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(
        self, _method: str, target: str, _headers: Mapping[str, str], _body: bytes
    ) -> Reply:
        parts = urlsplit(target)
        with self._lock:
            earlier = self._counts[parts.path]
            self._counts[parts.path] += 1
        reply = self.fault(parts.path, earlier) if self.fault else None
        return reply or self._respond(parts.path, parts.query)

    def _respond(self, whole_path: str, query: str) -> Reply:
        """Answer a request without a fault."""
        suffix = f"?{query}" if query else ""
        path = whole_path.removeprefix("/archive")
        if match := _ARCHIVE.fullmatch(path):
            return self._archive(*match.groups())
        if match := _LAST.fullmatch(path):
            return _redirect(f"/v0/block/{self.final}{match[1] or ''}{suffix}")
        if path == "/v0/first_block":
            return _redirect(f"/v0/block/{self.first}{suffix}", _DAY)
        if match := _BLOCK.fullmatch(path):
            height, part = int(match[1]), match[2] or ""
            if self.first <= height < self.archived and path == whole_path:
                return _redirect(f"/archive{path}{suffix}", _DAY)
            return self._block(height, part, is_cached=not _is_fresh(query))
        return Reply(404)

    def _block(self, height: int, part: str, *, is_cached: bool) -> Reply:
        if height > _MAX_HEIGHT:
            return _refusal("Block height is too high", "BLOCK_HEIGHT_TOO_HIGH")
        if height < self.first:
            return _refusal("Block height is before the genesis", "BLOCK_HEIGHT_TOO_LOW")
        if height > self.final + 10:
            return _refusal("The block is too far in the future", "BLOCK_DOES_NOT_EXIST")
        if height > self.final:
            delay = self.waits * (height - self.final)
            return as_json("Cache error: The block is not cached", 500, delay=delay)
        body = self.documents.get(height)
        if body is None or (height in self.late and is_cached):
            return Reply(200, b"null", _JSON | _DAY)
        if part:
            body = json.dumps(json.loads(body)["block"]).encode()
        return Reply(200, body, _JSON | _YEAR)

    def _archive(self, *names: str) -> Reply:
        """Answer with an archive of ten heights."""
        first = int(names[2])
        is_named = names[2].startswith("".join(names[:2])) and first % ARCHIVE_BLOCKS == 0
        heights = range(first, first + ARCHIVE_BLOCKS)
        present = [height for height in heights if height in self.documents]
        is_written = first + ARCHIVE_BLOCKS <= self.final
        if not (is_named and present and is_written) or first in self.missing_archives:
            return Reply(404, b"<html><h1>404 Not Found</h1></html>", {"content-type": "text/html"})
        body = archive({height: self.documents[height] for height in present})
        return Reply(200, body, {"content-type": "application/gzip"})


def _is_fresh(query: str) -> bool:
    """Return True for a query that a cache has not seen: it has more than a key."""
    return any(name != "apiKey" for name, _ in parse_qsl(query))


def _redirect(path: str, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(302, headers={"location": path, **(headers or {})})


def _refusal(text: str, kind: str) -> Reply:
    """Refuse a height that no block has."""
    return as_json({"error": text, "type": kind}, 404)


def archive(documents: Mapping[int, bytes]) -> bytes:
    return pack(tar(documents))


def pack(data: bytes) -> bytes:
    """Compress as fast as can be."""
    return gzip.compress(data, 1, mtime=0)


def tar(documents: Mapping[int, bytes]) -> bytes:
    files = [member(f"{height:012d}.json", body) for height, body in documents.items()]
    return b"".join(files) + bytes(1024)


def member(name: str, body: bytes, *, kind: bytes = b"0", size: int | None = None) -> bytes:
    """Build a file of a tar, of a size that may be another than its own."""
    header = bytearray(512)
    header[:100] = name.encode().ljust(100, b"\0")
    length = len(body) if size is None else size
    for start, value, digits in [(100, 0o644, 7), (108, 0, 7), (116, 0, 7), (124, length, 11)]:
        header[start : start + digits + 1] = f"{value:0{digits}o}\0".encode()
    header[136:148] = b"00000000000\0"
    header[156:157] = kind
    header[257:265] = b"ustar  \0"
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    return bytes(header) + body + bytes(-len(body) % 512)


def scattered(seed: int, share: float) -> Fault:
    """Build faults for the first request of a share of the paths: errors and cut responses."""

    def fault(path: str, earlier: int) -> Reply | None:
        draw = random.Random(f"{seed} {path}")  # noqa: S311 - faults, no secrets
        if earlier or draw.random() >= share:
            return None
        damaged = Reply(200, pack(tar({}))[:20]) if path.endswith(".tgz") else Reply(503)
        choices = [Reply(500, b'"Cache error: Redis error"'), Reply(dropped=True), damaged]
        return draw.choice([*choices, Reply(200, b"[" * 100, truncate=50)])

    return fault


def small_documents(
    heights: Iterable[int], *, network: int = 0, has_heights: bool = True
) -> dict[int, bytes]:
    """
    Build documents of blocks without shards that follow on each other.

    Blocks of another `network` have other hashes. Without `has_heights`, the headers do not
    state the height of the block before, as on old blocks.
    """
    documents: dict[int, bytes] = {}
    before = min(heights := list(heights)) - 1
    for height in heights:
        header = {
            "height": height,
            "hash": block_hash(height, network),
            "prev_hash": block_hash(before, network),
            "epoch_id": block_hash(0, network),
            "chunks_included": 0,
            "gas_price": "100000000",
            "total_supply": "1",
            "timestamp": 1_700_000_000_000_000_000 + height,
            "timestamp_nanosec": str(1_700_000_000_000_000_000 + height),
        }
        if has_heights:
            header["prev_height"] = before
        block = {"author": "a.near", "header": header, "chunks": []}
        documents[height] = json.dumps({"block": block, "shards": []}).encode()
        before = height
    return documents


def block_hash(height: int, network: int = 0) -> str:
    """Return the hash of a block of `small_documents`."""
    encoded: bytes = base58.b58encode(network.to_bytes(8, "big") + height.to_bytes(24, "big"))
    return encoded.decode()
