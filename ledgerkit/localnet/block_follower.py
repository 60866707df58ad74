"""Readers of the blocks of a world that became final, as an index reads them."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import Block
    from ledgerkit.localnet.world import World


class BlockFollower:
    """
    A reader of the final blocks of a world, once and in order.

    `block` is the last block that was read; at first it is genesis, which is not read.
    """

    def __init__(self, world: World) -> None:
        # The world holds its readers: a strong reference back would keep both alive for ever.
        self._world: World = weakref.proxy(world)
        self.block = world.chain.genesis

    @classmethod
    def of(cls, world: World) -> Self:
        """Return the reader of a world, up to date; it is built on first use."""
        reader = world.memo(cls.__name__, lambda: cls(world))
        reader.catch_up()
        return reader

    def catch_up(self) -> None:
        """Read the blocks that became final, up to `indexer_lag` blocks before the last one."""
        last = self._earlier(self._world.chain.final, self._world.settings.indexer_lag)
        for block in self._unread(last):
            self._read_block(block)
            self.block = block

    def _read_block(self, block: Block) -> None:
        raise NotImplementedError

    def _earlier(self, block: Block, count: int) -> Block:
        for _ in range(count):
            previous = self._world.chain.by_hash(block.prev_hash)
            if previous is None:
                break
            block = previous
        return block

    def _unread(self, last: Block) -> list[Block]:
        blocks = []
        block: Block | None = last
        while block is not None and block.height > self.block.height:
            blocks.append(block)
            block = self._world.chain.by_hash(block.prev_hash)
        return blocks[::-1]
