"""The blocks of a chain: their production and their finality."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ledgerkit.localnet import commitments, fees
from ledgerkit.localnet.chain_types import NO_CODE, Block, Change, Chunk, Outcome, Proposal
from ledgerkit.localnet.commitments import MerkleTree, PathItem
from ledgerkit.localnet.runtime import ShardResult
from ledgerkit.protocol import CryptoHash, Signature
from ledgerkit.protocol.borsh import u64

if TYPE_CHECKING:
    from ledgerkit.localnet.epochs import Epochs
    from ledgerkit.localnet.genesis import Genesis
    from ledgerkit.localnet.settings import Settings

# An epoch ends when the final block is this close to its last height, as in nearcore's
# EpochManager::is_next_block_in_next_epoch.
_EPOCH_MARGIN = 3
_MAX_TREES = 256  # in memory; a shard's outcomes get a tree when one of them is proved


def digest(*parts: object) -> CryptoHash:
    """Hash texts, numbers and bytes; each is prefixed with its length."""
    packed = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    return CryptoHash.of(b"".join([u64(len(data)) + data for data in packed]))


def root(hashes: Iterable[bytes]) -> CryptoHash:
    """Compute the root of a list of hashes; zeros for an empty list."""
    joined = b"".join(hashes)
    return digest(b"root", joined) if joined else NO_CODE


def next_gas_price(price: int, minimum: int, new_chunks: Sequence[Chunk]) -> int:
    """Compute the next gas price: at most 0.5 % higher or lower, by how full the chunks are."""
    limit = fees.CHUNK_GAS * len(new_chunks)
    if not limit:
        return price
    used = sum(chunk.gas_used for chunk in new_chunks)
    # price * (1 + (used / limit - 1/2) / 100), in integers
    adjusted = price * (200 * limit + 2 * used - limit) // (200 * limit)
    return max(minimum, min(adjusted, minimum * fees.MAX_GAS_PRICE_FACTOR))


class Chain:
    """The blocks from genesis to the head."""

    def __init__(self, settings: Settings, genesis: Genesis) -> None:
        self.settings = settings
        self.tree = MerkleTree()  # its leaves are the hashes of all blocks
        self._secret_keys = genesis.secret_keys
        self.finality_held = False
        self.next_timestamp_ns: int | None = None  # None: one block time after the head
        self._by_height: dict[int, Block] = {}
        self._by_hash: dict[CryptoHash, Block] = {}
        self._chunks: dict[CryptoHash, tuple[Chunk, Block]] = {}
        self._changes: dict[int, tuple[Change, ...]] = {}
        self._outcome_trees: dict[tuple[int, int], tuple[MerkleTree, dict[CryptoHash, int]]] = {}
        self._outcomes: dict[int, tuple[Outcome, ...]] = {}
        self.genesis = self._genesis_block(genesis)
        self.head = self.genesis
        self.earliest = self.genesis
        self._add(self.genesis)

    def _genesis_block(self, genesis: Genesis) -> Block:
        settings, validators = self.settings, genesis.validators
        height = settings.genesis_height
        time_ns = settings.genesis_time_ns
        seed = digest("genesis", settings.chain_id, height, time_ns, genesis.fingerprint)
        chunks = tuple(
            self._chunk(seed, height, ShardResult(shard), ShardResult(shard))
            for shard in range(len(settings.shard_ids))
        )
        block = Block(
            height=height,
            timestamp_ns=time_ns,
            epoch_start_height=height,
            gas_price=settings.gas_price,
            total_supply=genesis.total_supply,
            random_value=digest(seed, "random"),
            chunks=chunks,
            author=validators[0].account_id if validators else "validator.local",
            next_bp_hash=commitments.validators_hash(validators),
        )
        return self._seal_block(block, None)

    # Reading -----------------------------------------------------------------------------

    @property
    def final(self) -> Block:
        return self._by_hash.get(self.head.last_final_block, self.genesis)

    @property
    def near_final(self) -> Block:
        """The last block with doomslug finality."""
        return self._by_hash.get(self.head.last_ds_final_block, self.genesis)

    def by_height(self, height: int) -> Block | None:
        """Return the block at a height; None if it was skipped or is outside the chain."""
        return self._by_height.get(height)

    def by_hash(self, block_hash: CryptoHash) -> Block | None:
        return self._by_hash.get(block_hash)

    def height_of(self, block_hash: CryptoHash) -> int | None:
        block = self._by_hash.get(block_hash)
        return None if block is None else block.height

    def chunk(self, chunk_hash: CryptoHash) -> tuple[Chunk, Block] | None:
        return self._chunks.get(chunk_hash)

    def blocks(self) -> Iterator[Block]:
        return iter(list(self._by_height.values()))

    def last_of(self, epoch_id: CryptoHash) -> Block | None:
        """Return the last block with an epoch's id, which the first two epochs share, or None."""
        blocks = (
            block for block in reversed(self._by_height.values()) if block.epoch_id == epoch_id
        )
        return next(blocks, None)

    def above(self, height: int) -> Iterator[Block]:
        heights = range(height + 1, self.head.height + 1)
        return (self._by_height[number] for number in heights if number in self._by_height)

    def changes(self, height: int) -> tuple[Change, ...]:
        return self._changes.get(height, ())

    def outcomes_at(self, height: int) -> tuple[Outcome, ...]:
        """Return the outcomes of a block's application, of transactions and receipts."""
        return self._outcomes.get(height, ())

    def outcome_path(self, outcome: Outcome) -> list[PathItem]:
        """Return the path from an outcome to the root of its shard's outcomes."""
        height, shard_id = key = outcome.block_height, outcome.shard_id
        if key not in self._outcome_trees:
            if len(self._outcome_trees) >= _MAX_TREES:
                self._outcome_trees.clear()
            outcomes = [o for o in self.outcomes_at(height) if o.shard_id == shard_id]
            tree = MerkleTree(map(commitments.outcome_leaf, outcomes))
            positions = {o.id: position for position, o in enumerate(outcomes)}
            self._outcome_trees[key] = tree, positions
        tree, positions = self._outcome_trees[key]
        return tree.path(positions[outcome.id])

    # Production --------------------------------------------------------------------------

    def begins_epoch(self) -> bool:
        """Return True if the next block begins an epoch."""
        start = self.head.epoch_start_height
        return self.final.height + _EPOCH_MARGIN >= start + self.settings.epoch_length

    def random_value(self, height: int) -> CryptoHash:
        return digest(self.head.hash, "random", height)

    def timestamp_ns(self, height: int) -> int:
        if self.next_timestamp_ns is not None:
            return self.next_timestamp_ns
        return self.head.timestamp_ns + self.settings.block_time_ns * (height - self.head.height)

    def make_block(
        self,
        height: int,
        results: list[ShardResult],  # with transactions only; the previous one: no new chunk
        previous: list[ShardResult],  # the results of each shard's last application
        *,
        minted: int,
        epochs: Epochs,  # after the block's epoch has begun
    ) -> Block:
        """Build the next block and set it as the head; the caller applies it."""
        prev = self.head
        chunks = tuple(
            prev.chunks[result.shard]
            if result is last
            else self._chunk(prev.hash, height, last, result)
            for last, result in zip(previous, results, strict=True)
        )
        new_epoch = self.begins_epoch()
        ds_final, final = self._finality(height)
        new = [chunk for chunk in chunks if chunk.height_included == height]
        burnt = sum(chunk.balance_burnt for chunk in new)
        validators = epochs.current.validators.values()
        begins_next = new_epoch or prev is self.genesis
        block = Block(
            height=height,
            prev_height=prev.height,
            prev_hash=prev.hash,
            timestamp_ns=self.timestamp_ns(height),
            epoch_id=prev.next_epoch_id if new_epoch else prev.epoch_id,
            next_epoch_id=prev.hash if begins_next else prev.next_epoch_id,
            epoch_height=prev.epoch_height + new_epoch,
            epoch_start_height=height if new_epoch else prev.epoch_start_height,
            ordinal=prev.ordinal + 1,
            gas_price=next_gas_price(prev.gas_price, self.settings.gas_price, new),
            total_supply=prev.total_supply - burnt + minted,
            random_value=self.random_value(height),
            last_final_block=final,
            last_ds_final_block=ds_final,
            chunks=chunks,
            author=prev.author,
            next_bp_hash=(
                commitments.validators_hash(epochs.next_validators.values())
                if new_epoch
                else prev.next_bp_hash
            ),
            block_merkle_root=self.tree.root(),
            approvals=self._approvals(height, validators),
        )
        self.head = self._seal_block(block, epochs.current.validators.get(prev.author))
        self._add(self.head)
        return self.head

    def _seal_block(self, block: Block, producer: Proposal | None) -> Block:
        """Add a block's hash and its producer's signature."""
        roots = commitments.block_roots(block)
        version = fees.PROFILES[self.settings.profile].version
        rest_hash = commitments.rest_hash(block, version, roots)
        inner = commitments.inner_hash(block, rest_hash, roots)
        block_hash = commitments.combine(inner, block.prev_hash)
        key = self._secret_keys.get(producer.public_key) if producer else None
        signature = key.sign_as_validator(block_hash) if key else None
        return replace(block, hash=block_hash, rest_hash=rest_hash, signature=signature)

    def _approvals(
        self, height: int, validators: Iterable[Proposal]
    ) -> tuple[Signature | None, ...]:
        message = commitments.approved_message(self.head.hash, self.head.height, height)
        keys = [self._secret_keys.get(validator.public_key) for validator in validators]
        if self.finality_held:
            return (None,) * len(keys)
        return tuple(None if key is None else key.sign_as_validator(message) for key in keys)

    def _finality(self, height: int) -> tuple[CryptoHash, CryptoHash]:
        """Return the last doomslug-final and the last final block, as of the next block."""
        # A block is doomslug-final if a block at the next height follows it, and final if blocks
        # at the next two heights do (nearcore, core/primitives/src/block.rs).
        prev = self.head
        if self.finality_held or height != prev.height + 1:
            return prev.last_ds_final_block, prev.last_final_block
        if prev.last_ds_final_block == prev.prev_hash:
            return prev.hash, prev.prev_hash
        return prev.hash, prev.last_final_block

    def _chunk(
        self, prev_hash: CryptoHash, height: int, previous: ShardResult, result: ShardResult
    ) -> Chunk:
        receipts = tuple(previous.sent)
        transactions = tuple(record.signed for record in result.transactions)
        encoded = [signed.encode() for signed in transactions]
        tx_root = commitments.root_of(encoded)
        sent_root = root(receipt.receipt_id for receipt in receipts)
        return Chunk(
            shard_id=self.settings.shard_ids[result.shard],
            chunk_hash=digest(prev_hash, result.shard, height, tx_root, sent_root),
            prev_block_hash=prev_hash,
            prev_state_root=digest(prev_hash, "state", result.shard),
            outcome_root=commitments.root_of_leaves(
                [commitments.outcome_leaf(outcome) for outcome in previous.outcomes]
            ),
            outgoing_receipts_root=digest("sent", sent_root),
            tx_root=tx_root,
            height_created=height,
            height_included=height,
            gas_used=previous.gas_used,
            balance_burnt=previous.balance_burnt,
            validator_proposals=tuple(previous.proposals),
            transactions=transactions,
            receipts=receipts,
            encoded_length=8 + sum(map(len, encoded)),
        )

    def _add(self, block: Block) -> None:
        self._by_height[block.height] = block
        self._by_hash[block.hash] = block
        self.tree.append(block.hash)
        for chunk in block.new_chunks:
            self._chunks[chunk.chunk_hash] = chunk, block

    def add_results(
        self, height: int, results: list[ShardResult], epoch_changes: list[Change]
    ) -> None:
        changes = [change for result in results for change in result.changes]
        self._changes[height] = (*epoch_changes, *changes)
        self._outcomes[height] = tuple(outcome for result in results for outcome in result.outcomes)

    def add_changes(self, height: int, changes: Iterable[Change]) -> None:
        self._changes[height] = (*self._changes[height], *changes)
