"""The index behind the key-value data: the values that calls of `__fastdata_kv` wrote."""

# Source: fastnear/fastdata-indexer, main-indexer/src/main.rs, and the rules of its
# kv-sub-indexer. Failed calls count too: accounts need no such method.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from ledgerkit.localnet.block_follower import BlockFollower
from ledgerkit.localnet.chain_types import ActionReceipt, Block
from ledgerkit.localnet.contract_sdk import from_json
from ledgerkit.protocol import CryptoHash, FunctionCall

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

METHOD = "__fastdata_kv"
_MAX_KEYS = 256
_MAX_KEY_BYTES = 1024
_MAX_VALUE_BYTES = 262_144
_MAX_INTEGER = 2**64  # serde_json reads larger numbers as floats
_MIN_INTEGER = -(2**63)

_encoder = msgspec.json.Encoder(order="sorted")


class KeyValueRow(Struct, frozen=True):
    """A value that was written under a key."""

    receipt: ActionReceipt
    action_index: int
    tx_hash: CryptoHash
    block: Block
    order_id: int  # sorts the rows of a block
    key: str
    value: bytes  # JSON


class KeyValueIndex(BlockFollower):
    """The values that were written, in order."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.rows: list[KeyValueRow] = []

    def _read_block(self, block: Block) -> None:
        receipts: Counter[int] = Counter()  # by shard
        for receipt, outcome in self._world.executions(block):
            shard_id = self._world.settings.shard_ids[outcome.shard_id]
            first = (shard_id * 100_000 + receipts[shard_id]) * 1000
            receipts[shard_id] += 1
            tx_hash = self._world.origin(outcome.id)
            for index, action in enumerate(receipt.actions):
                if isinstance(action, FunctionCall) and action.method_name == METHOD:
                    self.rows += [
                        KeyValueRow(receipt, index, tx_hash, block, first + index, key, value)
                        for key, value in values(action.args)
                    ]


def values(args: bytes) -> Iterator[tuple[str, bytes]]:
    """Iterate over the accepted keys and values of a call, sorted by key."""
    members = from_json(args)
    if not isinstance(members, dict) or len(members) > _MAX_KEYS:
        return
    for key in sorted(members):
        value = _encoder.encode(_as_stored(members[key]))
        if len(key.encode()) <= _MAX_KEY_BYTES and len(value) <= _MAX_VALUE_BYTES:
            yield key, value


def _as_stored(value: Any) -> Any:
    """Replace integers of more than 64 bits by floats, as serde_json does."""
    if isinstance(value, dict):
        return {key: _as_stored(member) for key, member in value.items()}
    if isinstance(value, list):
        return [*map(_as_stored, value)]
    is_large = isinstance(value, int) and not _MIN_INTEGER <= value < _MAX_INTEGER
    return float(value) if is_large else value
