"""The index behind the key-value data: the values that calls of `__fastdata_kv` wrote."""

# Source: fastnear/fastdata-indexer, main-indexer/src/main.rs, and the rules of its
# kv-sub-indexer. Failed calls count too: accounts need no such method.

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from ledgerkit.localnet.block_follower import BlockFollower
from ledgerkit.localnet.contract_sdk import from_json
from ledgerkit.protocol import CryptoHash, FunctionCall

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import ActionReceipt, Block
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

    receipt_id: CryptoHash
    action_index: int
    tx_hash: CryptoHash
    signer_id: str
    predecessor_id: str
    current_account_id: str
    block_height: int
    block_timestamp: int  # nanoseconds
    order_id: int  # sorts the rows of a block
    key: str
    value: bytes  # JSON


class KeyValueIndex(BlockFollower):
    """The values that were written, by writer, by contract and by key."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.by_writer: dict[str, list[KeyValueRow]] = defaultdict(list)
        self.by_account: dict[str, list[KeyValueRow]] = defaultdict(list)
        self.by_key: dict[str, list[KeyValueRow]] = defaultdict(list)

    def of_writer(self, writer_id: str, account_id: str | None = None) -> list[KeyValueRow]:
        rows = self.by_writer.get(writer_id, ())
        return [row for row in rows if account_id in (None, row.current_account_id)]

    def _read_block(self, block: Block) -> None:
        receipts: Counter[int] = Counter()  # by shard
        for receipt, outcome in self._world.executions(block):
            shard_id = self._world.settings.shard_ids[outcome.shard_id]
            first = (shard_id * 100_000 + receipts[shard_id]) * 1000
            receipts[shard_id] += 1
            for index, action in enumerate(receipt.actions):
                if isinstance(action, FunctionCall) and action.method_name == METHOD:
                    self._add(receipt, index, action, block, first + index)

    def _add(
        self, receipt: ActionReceipt, index: int, call: FunctionCall, block: Block, order_id: int
    ) -> None:
        for key, value in values(call.args):
            row = KeyValueRow(
                receipt.receipt_id,
                index,
                self._world.origin(receipt.receipt_id),
                str(receipt.signer_id),
                str(receipt.predecessor_id),
                str(receipt.receiver_id),
                block.height,
                block.timestamp_ns,
                order_id,
                key,
                value,
            )
            self.by_writer[row.predecessor_id].append(row)
            self.by_account[row.current_account_id].append(row)
            self.by_key[key].append(row)


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
