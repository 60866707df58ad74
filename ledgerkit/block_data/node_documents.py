"""Whole blocks of many heights from a node that serves them, and the origins of their receipts."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING

from ledgerkit.api import rpc
from ledgerkit.block_data.headers import NodeHeaders, Skipped, not_final_error
from ledgerkit.block_data.node_blocks import read_node_blocks
from ledgerkit.errors import LedgerError

if TYPE_CHECKING:
    from ledgerkit.api.models.block_documents import BlockDocument, BlockResponse
    from ledgerkit.block_data.node_blocks import NodeRead
    from ledgerkit.ledger import Ledger
    from ledgerkit.transport.session import Reader

    DocumentOfHeight = tuple[int, BlockResponse | Skipped | LedgerError]

_AHEAD = 16  # blocks whose hashes are read before their documents


def read_node_documents(
    ledger: Ledger, heights: Iterable[int], *, whole: bool = False
) -> Generator[DocumentOfHeight, None, None]:
    """
    Yield ascending heights with their document, `Skipped`, or the error of reading it.

    `whole` as in `decode_document`. A height above the last final block is an error.
    """
    remaining, headers, final = iter(heights), NodeHeaders(ledger), -1
    beyond: list[int] = []

    def final_heights() -> Iterator[int]:
        nonlocal final
        for height in remaining:
            if height > final:
                final = headers.final().height
            if height > final:
                beyond.append(height)
                return
            yield height

    async def read(reader: Reader, block: NodeRead) -> DocumentOfHeight:
        height, value = block
        if isinstance(value, Skipped | LedgerError):
            return height, value
        return height, await reader.answer(rpc.indexer_block(value.header.hash, whole=whole))

    # By default a node builds one document at a time, and refuses other requests as busy.
    # Source: nearcore, chain/jsonrpc, indexer_max_concurrent_requests.
    one_by_one = ledger.session.settings.in_flight
    with (
        closing(read_node_blocks(ledger, final_heights(), size=_AHEAD, ahead=1)) as blocks,
        closing(ledger.session.read_each(blocks, read, n_calls=one_by_one)) as responses,
    ):
        yield from responses
    for height in chain(beyond, remaining):
        yield height, not_final_error(height, final)


class Origins:
    """
    The transactions of receipts, which a node leaves out of its block documents.

    A receipt has the transaction of the execution that created it. The transactions of receipts
    that were created before the first block are requested.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._tx_hashes: dict[str, str | None] = {}  # by receipt id, until the receipt runs

    def fill_in(self, document: BlockDocument) -> None:
        """Fill in the transactions of executed receipts, except those that the node cannot name."""
        executed = [pair for shard in document.shards for pair in shard.receipt_execution_outcomes]
        for shard in document.shards:
            for item in shard.chunk.converted() if shard.chunk else ():
                self._add(item.outcome.execution_outcome.outcome.receipt_ids, item.transaction.hash)
        lists = (pair.execution_outcome.outcome.receipt_ids for pair in executed)
        created = set(chain.from_iterable(lists))
        ids = {pair.receipt.receipt_id for pair in executed} - created - self._tx_hashes.keys()
        self._request(sorted(ids))
        for pair in executed:
            pair.tx_hash = self._tx_hashes.pop(pair.receipt.receipt_id, None)
            self._add(pair.execution_outcome.outcome.receipt_ids, pair.tx_hash)

    def _add(self, receipt_ids: Iterable[str], tx_hash: str | None) -> None:
        self._tx_hashes.update(dict.fromkeys(receipt_ids, tx_hash))

    def _request(self, receipt_ids: list[str]) -> None:
        calls = [rpc.receipt_origin(receipt_id) for receipt_id in receipt_ids]
        responses = self._ledger.send_many(calls, on_error="collect", progress=False)
        for receipt_id, response in zip(receipt_ids, responses, strict=True):
            if not isinstance(response, LedgerError):
                self._tx_hashes[receipt_id] = response.transaction_hash
            elif response.retryable:
                raise response
