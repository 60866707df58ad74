"""
The block documents: each block as one JSON document with its executions.

Requests for old blocks are redirected to `/archive`, in place of the archive hosts of the public
service. Tar archives of ten heights each are below `/raw`.
"""

# Source: fastnear/neardata-server, src/api.rs; the document as recorded from mainnet.neardata.xyz.
# The archives: src/reader.rs there, and fastnear/libs, neardata-fetcher/src/fetcher.rs.

from __future__ import annotations

import gzip
import io
import re
import tarfile
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ledgerkit.localnet import rpc_json
from ledgerkit.localnet.clock import pass_time
from ledgerkit.localnet.http_messages import HttpResponse, encode_json, json_response
from ledgerkit.localnet.rpc import blocks, changes
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.rpc.errors import HandlerError

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import Block, Change, Chunk
    from ledgerkit.localnet.clock import Clock
    from ledgerkit.localnet.http_messages import Header, HttpRequest
    from ledgerkit.localnet.world import World

Object = dict[str, Any]

_PREFIX = "/blocks"
_ARCHIVE = "/archive"
_MAX_HEIGHT = 10**15
_MAX_WAIT = 10  # a request waits for a block this many blocks ahead
_RECENT = 10  # this many last blocks are not in the archive
_DAY = ("cache-control", f"public, max-age={24 * 60 * 60}")
_YEAR = ("cache-control", f"public, max-age={365 * 24 * 60 * 60}")
_LAST = re.compile(r"/v0/last_block/([^/]+)(/?.*)")
_ARCHIVE_HEIGHTS = 10
_RAW = re.compile(r"/raw/(\d{6})/(\d{3})/(\1\2\d{3})\.tgz", re.ASCII)
_BLOCK = re.compile(r"/v0/block(_opt)?/([^/]+)(|/headers|/(?:chunk|shard)/[^/]+)")
# The kinds of changes in the order of their keys in the trie, by which a document sorts them.
# Source: nearcore, core/primitives/src/trie_key.rs, col.
_COLUMNS = {"account": 0, "code": 1, "access_key": 2, "gas_key_nonce": 2, "data": 9}


async def respond(world: World, request: HttpRequest, clock: Clock) -> HttpResponse:
    """Answer a request, whose path has the service's prefix."""
    path = request.path.removeprefix(_PREFIX)
    await pass_time(world, clock, path)
    for _ in range(2 * _MAX_WAIT):
        with world.lock:
            response = _read_path(world, path, request.query)
        if response is not None:
            return response
        await clock.next_block()
    return json_response("Cache error: The block is not cached", 500)


def _read_path(world: World, path: str, query: str) -> HttpResponse | None:
    """Answer a path; return None before its block."""
    suffix = f"?{query}" if query else ""
    in_archive = path.startswith(f"{_ARCHIVE}/")
    path = path.removeprefix(_ARCHIVE) if in_archive else path
    if path == "/health":
        return json_response({"status": "ok"})
    if path == "/v0/first_block":
        return _redirect(f"/v0/block/{world.chain.genesis.height}{suffix}", _DAY)
    if match := _LAST.fullmatch(path):
        return _redirect_to_last(world, match[1], match[2] + suffix)
    if match := _RAW.fullmatch(path):
        return _raw_archive(world, int(match[3]))
    if match := _BLOCK.fullmatch(path):
        return _answer_block(world, *match.groups(), query=suffix, in_archive=in_archive)
    return HttpResponse(404)


def _redirect(path: str, *headers: Header) -> HttpResponse:
    return HttpResponse(302, (("location", _PREFIX + path), *headers))


def _redirect_to_last(world: World, finality: str, suffix: str) -> HttpResponse:
    if finality == "final":
        return _redirect(f"/v0/block/{world.chain.final.height}{suffix}")
    if finality == "optimistic":
        return _redirect(f"/v0/block_opt/{world.chain.head.height}{suffix}")
    return json_response("Invalid argument", 400)


def _answer_block(
    world: World, opt: str | None, height_text: str, part: str, *, query: str, in_archive: bool
) -> HttpResponse | None:
    """Answer with a block or a part of it, or redirect to it; None before the block."""
    is_final = opt is None
    height = _parse_u64(height_text)
    shard_id = _parse_u64(part.rpartition("/")[2]) if part.count("/") > 1 else 0
    if height is None or shard_id is None:
        return json_response("Invalid argument", 400)
    last = (world.chain.final if is_final else world.chain.head).height
    refusal = _out_of_limits(world, height, last)
    if refusal is not None:
        return refusal
    is_old = height <= world.chain.final.height - _RECENT
    if is_old != in_archive or (is_old and not is_final):
        prefix = _ARCHIVE if is_old and is_final else ""
        # The archive redirects recent blocks. An old optimistic block is final.
        name = "block" if is_final or is_old else "block_opt"
        return _redirect(f"{prefix}/v0/{name}/{height}{part}{query}", _DAY)
    if height > last:
        return None
    block = world.chain.by_height(height)
    if block is None:
        return json_response(None, 200, _DAY)
    return json_response(_document_part(document(world, block), part, shard_id), 200, _YEAR)


def _parse_u64(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(2**64))
    return int(text) if is_number and int(text) < 2**64 else None


def _out_of_limits(world: World, height: int, last: int) -> HttpResponse | None:
    if height > _MAX_HEIGHT:
        return _error("Block height is too high", "BLOCK_HEIGHT_TOO_HIGH", _DAY)
    if height < world.chain.genesis.height:
        return _error("Block height is before the genesis", "BLOCK_HEIGHT_TOO_LOW", _DAY)
    if height > last + _MAX_WAIT:
        return _error("The block is too far in the future", "BLOCK_DOES_NOT_EXIST")
    return None


def _error(text: str, kind: str, *headers: Header) -> HttpResponse:
    return json_response({"error": text, "type": kind}, 404, *headers)


def _raw_archive(world: World, start: int) -> HttpResponse:
    """Answer with an archive; 404 if it would be empty, or if a height is not final."""
    heights = range(start, start + _ARCHIVE_HEIGHTS)
    present = [block for height in heights if (block := world.chain.by_height(height))]
    if start % _ARCHIVE_HEIGHTS or heights[-1] > world.chain.final.height or not present:
        return HttpResponse(404)
    members = [
        (f"{block.height:012}.json", encode_json(document(world, block))) for block in present
    ]
    return HttpResponse(200, (("content-type", "application/gzip"), _YEAR), archive_of(members))


def archive_of(members: Iterable[tuple[str, bytes]]) -> bytes:
    """Pack files into a gzipped tar, without times: the same files give the same bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


def _document_part(whole: Object, part: str, shard_id: int) -> Any:
    if not part:
        return whole
    if part == "/headers":
        return whole["block"]
    shard = next((s for s in whole["shards"] if s["shard_id"] == shard_id), None)
    return shard["chunk"] if shard and part.startswith("/chunk") else shard


# Documents ---------------------------------------------------------------------------------


def indexer_block(world: World, params: Any) -> Object:
    """Return the result of `EXPERIMENTAL_indexer_block`: a document as the node has it."""
    # Source: nearcore, chain/jsonrpc/src/api/indexer.rs and the handler of its requests.
    block_hash = read.member(read.members(params), "block_hash", read.crypto_hash)
    if unknown := params.keys() - {"block_hash"}:
        raise read.error(f"unknown field `{min(unknown)}`, expected `block_hash`")
    block = world.chain.by_hash(block_hash)
    if block is None or blocks.is_collected(world, block):
        text = f"DB Not Found Error: BLOCK: {block_hash} \n Cause: Unknown"
        info = {"error_message": text}
        raise HandlerError("DATA_UNAVAILABLE", {"name": "DATA_UNAVAILABLE", "info": info}, info)
    message = document(world, block)
    for shard in message["shards"]:
        for execution in shard["receipt_execution_outcomes"]:
            del execution["tx_hash"]
    return message | {"tracked_shards": [chunk.shard_id for chunk in block.chunks]}


def document(world: World, block: Block) -> Object:
    shards: list[list[Object]] = [[] for _ in block.chunks]
    for receipt, outcome in world.executions(block):
        execution = {
            "execution_outcome": rpc_json.outcome(outcome, block.hash),
            "receipt": rpc_json.receipt(receipt),
            "tx_hash": rpc_json.base58(world.origin(outcome.id)),
        }
        shards[outcome.shard_id].append(execution)
    shard_changes = _shard_changes(world, block)
    return {
        "block": rpc_json.block(block, world.runtime.profile.version),
        "shards": [
            {
                "shard_id": chunk.shard_id,
                "chunk": _chunk(world, block, chunk),
                "receipt_execution_outcomes": executions,
                "state_changes": [rpc_json.change(change) for change in changed],
            }
            for chunk, executions, changed in zip(block.chunks, shards, shard_changes, strict=True)
        ],
    }


def _shard_changes(world: World, block: Block) -> list[list[Change]]:
    """List the changes of each shard, sorted by key, then by time."""
    shards: list[list[Change]] = [[] for _ in block.chunks]
    for change in changes.of_block(world, block):
        if change.kind in _COLUMNS:
            shards[world.settings.shard_of(change.account_id)].append(change)
    for changed in shards:
        changed.sort(key=lambda change: (_COLUMNS[change.kind], change.account_id, change.key))
    return shards


def _chunk(world: World, block: Block, chunk: Chunk) -> Object | None:
    if chunk.height_included != block.height:
        return None
    records = [world.transaction(signed.hash) for signed in chunk.transactions]
    members = rpc_json.chunk(chunk, block.author)
    members["transactions"] = [
        {
            "transaction": rpc_json.transaction(record.signed),
            "outcome": {
                "execution_outcome": rpc_json.outcome(record.outcome, block.hash),
                "receipt": None,
            },
        }
        for record in records
        if record is not None
    ]
    local = [rpc_json.receipt(r.receipt) for r in records if r and r.is_local]
    return members | {"local_receipts": local}
