"""Blocks and chunks: how they are made, what each holds, which of them are final."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from ledgerkit.localnet import fees
from ledgerkit.localnet.records import NO_CODE, Block, Change, Chunk, Outcome
from ledgerkit.localnet.runtime import Work
from ledgerkit.protocol import CryptoHash, SignedTransaction
from ledgerkit.protocol.borsh import u64

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ledgerkit.localnet.settings import Settings

NOTHING = NO_CODE  # the root of nothing
ONES = NO_CODE  # the id of the first two epochs
_EPOCH_MARGIN = 3


def digest(*parts: object) -> CryptoHash:
    """Hash texts, numbers and bytes, each kept apart from the next."""
    hasher = sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        hasher.update(u64(len(data)) + data)
    return CryptoHash(hasher.digest())


def root(values: Iterable[bytes]) -> CryptoHash:
    """Hash a list of hashes; nothing has a root of zeros."""
    joined = b"".join(values)
    return digest(b"root", joined) if joined else NOTHING


class Chain:
    """
    The blocks, from genesis to head.

    Parameters
    ----------
    settings
        Clock, shards, epochs.
    total_supply
        At genesis.
    author
        Who makes all blocks.
    fingerprint
        Of the state at genesis, so that no two worlds share a hash.
    """

    def __init__(
        self, settings: Settings, total_supply: int, author: str, fingerprint: bytes = b""
    ) -> None:
        self.settings = settings
        self.finality_held = False
        self._by_height: dict[int, Block] = {}
        self._by_hash: dict[CryptoHash, Block] = {}
        self._chunks: dict[CryptoHash, tuple[int, CryptoHash]] = {}
        self._changes: dict[int, tuple[Change, ...]] = {}
        self._applied: dict[int, tuple[Outcome, ...]] = {}
        self.genesis = self._genesis(total_supply, author, fingerprint)
        self.head = self.genesis
        self.earliest = self.genesis
        self._add(self.genesis)

    def _genesis(self, total_supply: int, author: str, fingerprint: bytes) -> Block:
        """Make the first block."""
        settings = self.settings
        height = settings.genesis_height
        named = digest("genesis", settings.chain_id, height, settings.genesis_time_ns, fingerprint)
        chunks = tuple(
            self._chunk(position, named, height, Work(position), ())
            for position in range(len(settings.shard_ids))
        )
        return Block(
            height,
            digest(named, "block"),
            None,
            NOTHING,
            settings.genesis_time_ns,
            ONES,
            ONES,
            0,
            height,
            0,
            settings.gas_price,
            total_supply,
            digest(named, "random"),
            NOTHING,
            NOTHING,
            chunks,
            author,
        )

    # Finding -----------------------------------------------------------------------------

    @property
    def final(self) -> Block:
        """The last block that nothing can undo."""
        return self._by_hash.get(self.head.last_final_block, self.genesis)

    @property
    def near_final(self) -> Block:
        """The last block that is almost so."""
        return self._by_hash.get(self.head.last_ds_final_block, self.genesis)

    def by_height(self, height: int) -> Block | None:
        """Find a block; None where the height was skipped, or is not of this chain."""
        return self._by_height.get(height)

    def by_hash(self, block_hash: CryptoHash) -> Block | None:
        """Find a block."""
        return self._by_hash.get(block_hash)

    def height_of(self, block_hash: CryptoHash) -> int | None:
        """Find a block's height."""
        block = self._by_hash.get(block_hash)
        return None if block is None else block.height

    def chunk(self, chunk_hash: CryptoHash) -> tuple[Chunk, Block] | None:
        """Find a chunk, and the block it was included in."""
        found = self._chunks.get(chunk_hash)
        if found is None:
            return None
        position, block_hash = found
        block = self._by_hash[block_hash]
        return block.chunks[position], block

    def blocks(self) -> Iterator[Block]:
        """Go through the blocks, from genesis on."""
        return iter(list(self._by_height.values()))

    def changes(self, height: int) -> tuple[Change, ...]:
        """List the changes of state in the application of a block."""
        return self._changes.get(height, ())

    def receipts_applied(self, height: int) -> tuple[Outcome, ...]:
        """List the outcomes of the application of a block, transactions' too."""
        return self._applied.get(height, ())

    # Making ------------------------------------------------------------------------------

    def begins_epoch(self) -> bool:
        """Tell whether the next block begins an epoch."""
        start = self.head.epoch_start_height
        return self.final.height + _EPOCH_MARGIN >= start + self.settings.epoch_length

    def random_value(self, height: int) -> CryptoHash:
        """Give the random value of the next block."""
        return digest(self.head.hash, "random", height)

    def make(
        self,
        height: int,
        included: list[tuple[SignedTransaction, ...]],
        before: list[Work],
        *,
        missing: frozenset[int],
        minted: int,
    ) -> Block:
        """
        Make the next block and let it be the head; applying it is the caller's.

        Parameters
        ----------
        height
            Its height.
        included
            The transactions, by shard.
        before
            What each shard did in its last application.
        missing
            The positions of shards that have no new chunk in it.
        minted
            How many yoctoNEAR the beginning of an epoch made.

        Returns
        -------
        block
            The head.
        """
        prev = self.head
        chunks = tuple(
            prev.chunks[position]
            if position in missing
            else self._chunk(position, prev.hash, height, before[position], txs)
            for position, txs in enumerate(included)
        )
        new_epoch = self.begins_epoch()
        ds_final, final = self._finality(height)
        burnt = sum(c.balance_burnt for c in chunks if c.height_included == height)
        timestamp_ns = prev.timestamp_ns + self.settings.block_time_ns * (height - prev.height)
        named = digest(prev.hash, height, timestamp_ns, *(chunk.chunk_hash for chunk in chunks))
        self.head = Block(
            height,
            named,
            prev.height,
            prev.hash,
            timestamp_ns,
            prev.next_epoch_id if new_epoch else prev.epoch_id,
            prev.hash if new_epoch else prev.next_epoch_id,
            prev.epoch_height + new_epoch,
            height if new_epoch else prev.epoch_start_height,
            prev.ordinal + 1,
            self._gas_price(chunks, height),
            prev.total_supply - burnt + minted,
            self.random_value(height),
            final,
            ds_final,
            chunks,
            prev.author,
        )
        self._add(self.head)
        return self.head

    def _finality(self, height: int) -> tuple[CryptoHash, CryptoHash]:
        """Tell which blocks the next one makes almost final, and final."""
        prev = self.head
        if self.finality_held or height != prev.height + 1:
            return prev.last_ds_final_block, prev.last_final_block
        if prev.last_ds_final_block == prev.prev_hash:
            return prev.hash, prev.prev_hash
        return prev.hash, prev.last_final_block

    def _gas_price(self, chunks: tuple[Chunk, ...], height: int) -> int:
        """Tell the price of the next block: a hundredth up or down by how full this one is."""
        new = [chunk for chunk in chunks if chunk.height_included == height]
        limit = fees.CHUNK_GAS * len(new)
        price, least = self.head.gas_price, self.settings.gas_price
        if not limit:
            return price
        used = sum(chunk.gas_used for chunk in new)
        moved = price * (200 * limit + 2 * used - limit) // (200 * limit)
        return max(least, min(moved, least * fees.MAX_GAS_PRICE_FACTOR))

    def _chunk(
        self,
        position: int,
        prev_hash: CryptoHash,
        height: int,
        before: Work,
        transactions: tuple[SignedTransaction, ...],
    ) -> Chunk:
        """Make a chunk, which tells the results of the application before."""
        receipts = tuple(before.sent)
        tx_root = root(signed.hash for signed in transactions)
        sent_root = root(receipt.receipt_id for receipt in receipts)
        named = digest(prev_hash, position, height, tx_root, sent_root)
        return Chunk(
            shard_id=self.settings.shard_ids[position],
            chunk_hash=named,
            prev_block_hash=prev_hash,
            prev_state_root=digest(prev_hash, "state", position),
            outcome_root=root(outcome.id for outcome in before.outcomes),
            outgoing_receipts_root=digest("sent", sent_root),
            tx_root=tx_root,
            height_created=height,
            height_included=height,
            gas_used=before.gas_used,
            balance_burnt=before.balance_burnt,
            validator_proposals=tuple(before.proposals),
            transactions=transactions,
            receipts=receipts,
            encoded_length=8 + sum(signed.wire_size for signed in transactions),
        )

    def _add(self, block: Block) -> None:
        """Let a block and its new chunks be found."""
        self._by_height[block.height] = block
        self._by_hash[block.hash] = block
        for position, chunk in enumerate(block.chunks):
            if chunk.height_included == block.height:
                self._chunks[chunk.chunk_hash] = (position, block.hash)

    def applied(self, height: int, works: list[Work], more: list[Change]) -> None:
        """Note what the application of a block did."""
        changes = [change for work in works for change in work.changes]
        self._changes[height] = (*more, *changes)
        self._applied[height] = tuple(outcome for work in works for outcome in work.outcomes)
