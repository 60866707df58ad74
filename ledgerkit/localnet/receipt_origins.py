"""The transactions that receipts belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit.localnet.block_follower import BlockFollower

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import Block
    from ledgerkit.localnet.world import World
    from ledgerkit.protocol import CryptoHash


class ReceiptOrigins(BlockFollower):
    """The transaction of each receipt with actions, in all blocks up to the head."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.tx_hashes: dict[CryptoHash, CryptoHash] = {}  # by receipt id

    def catch_up(self) -> None:
        """Read the blocks up to the head."""
        for block in self._unread(self._world.chain.head):
            self._read_block(block)
            self.block = block

    def _read_block(self, block: Block) -> None:
        """Read which receipts were created by the transactions and receipts of a block."""
        for outcome in self._world.chain.outcomes_at(block.height):
            tx_hash = self.tx_hashes.get(outcome.id, outcome.id)
            for receipt_id in outcome.receipt_ids:
                self.tx_hashes[receipt_id] = tx_hash


def receipt_origins(world: World) -> dict[CryptoHash, CryptoHash]:
    """Return the transactions' hashes by receipt id, up to date."""
    origins = world.memo("receipt_origins", lambda: ReceiptOrigins(world))
    origins.catch_up()
    return origins.tx_hashes
