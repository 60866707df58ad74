"""The mempool: valid transactions that wait for a block, in the order of their nonces."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledgerkit.protocol import CryptoHash, SignedTransaction

NonceQueue = tuple[str, bytes, int | None]  # signer, packed key, nonce index of a gas key


class Mempool:
    """The transactions that wait for a block, by shard and nonce queue."""

    def __init__(self, shard_of: Callable[[str], int]) -> None:
        self._shard_of = shard_of
        self._queues: dict[int, dict[NonceQueue, deque[SignedTransaction]]] = {}
        self._hashes: set[CryptoHash] = set()

    def __len__(self) -> int:
        return len(self._hashes)

    def __contains__(self, tx_hash: object) -> bool:
        return tx_hash in self._hashes

    def add(self, signed: SignedTransaction) -> None:
        """Add a transaction unless it is already there."""
        if signed.hash in self._hashes:
            return
        self._hashes.add(signed.hash)
        self._enqueue(signed)

    def _enqueue(self, signed: SignedTransaction) -> None:
        tx = signed.transaction
        queues = self._queues.setdefault(self._shard_of(tx.signer_id), {})
        queue = queues.setdefault((tx.signer_id, tx.public_key.packed, tx.nonce_index), deque())
        insort(queue, signed, key=lambda queued: queued.transaction.nonce)

    def pop_rounds(self, shard: int) -> Iterator[SignedTransaction]:
        """Remove a shard's transactions one by one, the lowest nonce of each queue in turn."""
        queues = self._queues.get(shard, {})
        while queues:
            for key in list(queues):
                queue = queues[key]
                signed = queue.popleft()
                if not queue:
                    del queues[key]
                self._hashes.discard(signed.hash)
                yield signed


class ChunkMempool(Mempool):
    """A mempool of chunks that begin early: a transaction waits for the chunk after next."""

    # Source: nearcore, Client::on_block_accepted_with_optional_chunk_produce: the chunks of the
    # next block are produced once a block is accepted.

    def __init__(self, shard_of: Callable[[str], int]) -> None:
        super().__init__(shard_of)
        self._new_transactions: list[SignedTransaction] = []

    def begin_chunks(self) -> None:
        """Begin the next block's chunks with the transactions that arrived so far."""
        for signed in self._new_transactions:
            super()._enqueue(signed)
        self._new_transactions = []

    def _enqueue(self, signed: SignedTransaction) -> None:
        self._new_transactions.append(signed)
