"""
Headers of blocks, by height or hash, from a node or from the block documents.

A height without a block was skipped if the parent of the next block is below the height.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit import validation
from ledgerkit.api import rpc, services
from ledgerkit.errors import (
    LedgerError,
    TransportError,
    UnknownBlockError,
    UnmatchedResponseError,
)

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.api.models.chain import Block, BlockHeader
    from ledgerkit.ledger import Ledger

_MAX_SKIPPED = 100  # heights in a row
_SLICES = (1, 2, 4, 8, 16, 32, 64, 128)  # heights per round of requests


class NodeHeaders:
    """The headers of a node; `rate_limit_wait_s` is that of `Ledger.stream`."""

    def __init__(self, ledger: Ledger, rate_limit_wait_s: float = 0.0) -> None:
        self._ledger = ledger
        self._rate_limit_wait_s = rate_limit_wait_s

    def final(self) -> BlockHeader:
        return self._read(rpc.block(validation.block_reference("final")))

    def at(self, heights: Sequence[int]) -> dict[int, BlockHeader]:
        """Read the headers at heights; heights without a block are left out."""
        calls = [rpc.block(validation.block_reference(height)) for height in heights]
        headers = {}
        for height, response in zip(heights, self._answers(calls), strict=True):
            if not isinstance(response, LedgerError):
                headers[height] = response.header
            elif not isinstance(response, UnknownBlockError):
                raise response
        return headers

    def parent_height(self, header: BlockHeader) -> int:
        """Return the height of the previous block, which headers of the first years lack."""
        return self.parent(header).height if header.prev_height is None else header.prev_height

    def parent(self, header: BlockHeader) -> BlockHeader:
        return self._read(rpc.block(validation.received_hash(header.prev_hash)))

    def _read(self, call: Call[Block]) -> BlockHeader:
        [response] = self._answers([call])
        if isinstance(response, LedgerError):
            raise response
        return response.header

    def _answers(self, calls: Sequence[Call[Block]]) -> list[Block | LedgerError]:
        batches = self._ledger.session.stream(
            calls, size=max(1, len(calls)), rate_limit_wait_s=self._rate_limit_wait_s
        )
        return [response for batch in batches for response in batch]


class DocumentHeaders:
    """The headers of the block documents, read past all caches."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def final(self) -> BlockHeader:
        return self._ledger.send(services.last_final_block()).header

    def at(self, heights: Sequence[int]) -> dict[int, BlockHeader]:
        """Read the headers at heights; heights without a block are left out."""
        calls = [services.block_headers(height, fresh=True) for height in heights]
        blocks = self._ledger.send_many(calls, progress=False)
        return {
            height: block.header
            for height, block in zip(heights, blocks, strict=True)
            if block is not None
        }

    def parent(self, header: BlockHeader) -> BlockHeader:
        """Read the header of the previous block: the next lower height that has a block."""
        request = f"the block before block {header.height}"
        for height in range(header.height - 1, header.height - 1 - _MAX_SKIPPED, -1):
            parent = self.at([height]).get(height)
            if parent is None:
                continue
            if parent.hash != header.prev_hash:
                sentence = f"{request} is not {parent.height}, {parent.hash}"
                raise UnmatchedResponseError(sentence, request=request)
            return parent
        sentence = f"{_MAX_SKIPPED} heights in a row have no block, so {request} is not known"
        raise TransportError(sentence, request=request)


def source_headers(ledger: Ledger, source: str) -> NodeHeaders | DocumentHeaders:
    return DocumentHeaders(ledger) if source == "documents" else NodeHeaders(ledger)


def not_final_error(height: int, final: int) -> UnknownBlockError:
    remedy = f"The last final block is {final}: wait for a later one."
    request = f"the document of block {height}"
    return UnknownBlockError(block=height, request=request, remedy=remedy)


class Skipped(NamedTuple):
    """A height without a block; `previous_height` is the block below it."""

    previous_height: int


def first_headers_above(
    source: NodeHeaders | DocumentHeaders, heights: Sequence[int]
) -> dict[int, BlockHeader]:
    """Read the first header above each height: a final one, at most 255 heights above."""
    headers: dict[int, BlockHeader] = {}
    end: int | None = None
    for size in _SLICES:  # a slice starts at twice the distance of the previous slice
        missing = [height for height in heights if height not in headers]
        if not missing:
            break
        if size > 1 and end is None:
            end = source.final().height + 1
        above = {
            height: range(height + size, min(height + 2 * size, end or height + 2))
            for height in missing
        }
        read = source.at(sorted({height for candidates in above.values() for height in candidates}))
        for height, candidates in above.items():
            header = next(filter(None, map(read.get, candidates)), None)
            if header is not None:
                headers[height] = header
    return headers


def headers_by_hash(
    ledger: Ledger, hashes: Sequence[str], *, progress: bool = False
) -> dict[str, BlockHeader]:
    calls = [rpc.block(validation.received_hash(block_hash)) for block_hash in hashes]
    blocks = ledger.send_many(calls, progress=progress, label="blocks")
    return {h: block.header for h, block in zip(hashes, blocks, strict=True)}


def final_header(ledger: Ledger) -> BlockHeader:
    """
    Return the header of the last final block of the block documents.

    Documents do not name their network. So the same block is read from the node, if the ledger has
    one. Raises `UnmatchedResponseError` if the node has another block at that height.
    """
    documents, node = DocumentHeaders(ledger), NodeHeaders(ledger)
    final = documents.final()
    if ledger.network.address("rpc") is None:
        return final
    newest = node.final()
    height = min(newest.height, final.height)  # the newest block that both have
    document = final if final.height == height else documents.at([height]).get(height)
    other = newest if newest.height == height else node.at([height]).get(height)
    if document is None or other is None or document.hash != other.hash:
        sentence = (
            f"block {height} of the block documents is not that of the node: they are of"
            " different networks"
        )
        remedy = "Pass rpc_url= and blocks_url= of the same network to connect()."
        request = f"the document of block {height}"
        raise UnmatchedResponseError(sentence, remedy=remedy, request=request)
    return final
