"""Transactions that wait for a block: by key, the lowest nonce first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ledgerkit.protocol import CryptoHash, SignedTransaction

Lane = tuple[str, bytes, int | None]  # signer, key, and which of a gas key's nonces


class Mempool:
    """
    What was admitted and is not yet in a block, by shard and lane.

    Parameters
    ----------
    shard_of
        Gives the position of an account's shard.
    """

    def __init__(self, shard_of: Callable[[str], int]) -> None:
        self._shard_of = shard_of
        self._lanes: dict[int, dict[Lane, list[SignedTransaction]]] = {}
        self._known: set[CryptoHash] = set()

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, tx_hash: object) -> bool:
        return tx_hash in self._known

    def add(self, signed: SignedTransaction) -> None:
        """Admit a transaction; the same one again changes nothing."""
        if signed.hash in self._known:
            return
        self._known.add(signed.hash)
        tx = signed.transaction
        lanes = self._lanes.setdefault(self._shard_of(tx.signer_id), {})
        lane = lanes.setdefault((tx.signer_id, tx.public_key.packed, tx.nonce_index), [])
        lane.append(signed)
        lane.sort(key=_nonce)

    def rounds(self, shard: int) -> Iterator[SignedTransaction]:
        """
        Offer a shard's transactions, a round at a time: of each lane the lowest nonce.

        Parameters
        ----------
        shard
            The shard's position.

        Yields
        ------
        signed
            One to include or to drop; what is offered is no longer held, unless it is
            kept by `add`.
        """
        lanes = self._lanes.get(shard, {})
        while lanes:
            for key in list(lanes):
                lane = lanes[key]
                signed = lane.pop(0)
                if not lane:
                    del lanes[key]
                self._known.discard(signed.hash)
                yield signed


def _nonce(signed: SignedTransaction) -> int:
    """Give a transaction's nonce."""
    return signed.transaction.nonce
