"""The first blocks of epochs: when a balance with a staking pool is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ledgerkit.api.models.commitments import NO_HASH
from ledgerkit.block_data.headers import NodeHeaders, first_headers_above, headers_by_hash
from ledgerkit.errors import DecodeError

if TYPE_CHECKING:
    from ledgerkit.api.models import chain
    from ledgerkit.ledger import Ledger


def epoch_starts(
    ledger: Ledger, start_height: int, stop: chain.BlockHeader
) -> list[chain.BlockHeader]:
    """
    Return the first blocks of the epochs that begin after a height and up to a block, oldest first.

    A header's `next_epoch_id` is the hash of the last block of the previous epoch, and its
    `epoch_id` is the hash of the last block two epochs before. Blocks at regular distances, shorter
    than any two epochs, therefore name the last blocks of all epochs: two rounds of concurrent
    requests suffice. If epochs were shorter in the past, the missed blocks are read by hash.

    Raises `LedgerError` if a block could not be read, or blocks contradict each other.
    """
    # Source: near/nearcore, chain/epoch-manager/src/lib.rs, get_next_epoch_id_from_info
    # (`EpochId(*first_block_info.prev_hash())`), and core/primitives/src/types.rs ("EpochId of
    # epoch T is the hash of last block in T-2").
    last_blocks: dict[str, chain.BlockHeader] = {}
    _read_hashes(ledger, last_blocks, (stop.next_epoch_id, stop.epoch_id))
    probes = NodeHeaders(ledger).at(_probe_heights(last_blocks, start_height, stop))
    hashes = [
        name for header in probes.values() for name in (header.next_epoch_id, header.epoch_id)
    ]
    _read_hashes(ledger, last_blocks, hashes)
    ends: list[chain.BlockHeader] = []
    next_hash = _next_epoch_id(stop)
    # The last end is below the start, but the block after it may be above the start.
    while next_hash != NO_HASH and (not ends or ends[-1].height >= start_height):
        _read_hashes(ledger, last_blocks, [next_hash])
        header = last_blocks[next_hash]
        if ends and header.height >= ends[-1].height:
            raise _contradiction(header)
        ends.append(header)
        next_hash = _next_epoch_id(header)
    return [h for h in _first_blocks(ledger, ends[::-1]) if h.height > start_height]


def _probe_heights(
    last_blocks: dict[str, chain.BlockHeader], start_height: int, stop: chain.BlockHeader
) -> range:
    """Return the heights to read between the second last epoch's end and the start."""
    newer, older = last_blocks.get(_next_epoch_id(stop)), last_blocks.get(stop.epoch_id)
    if newer is None or older is None:
        return range(0)
    # An epoch is never shorter than `epoch_length` heights. It ends when the final block is less
    # than 3 heights before the epoch's last height (nearcore, is_next_block_in_next_epoch).
    distance = (newer.height - older.height) * 3 // 2
    return range(older.height, start_height, -max(distance, 1))


def _read_hashes(
    ledger: Ledger, headers: dict[str, chain.BlockHeader], hashes: Iterable[str | None]
) -> None:
    ignored = {None, NO_HASH, *headers}
    unread = [h for h in dict.fromkeys(hashes) if h and h not in ignored]
    headers |= headers_by_hash(ledger, unread)


def _first_blocks(ledger: Ledger, ends: list[chain.BlockHeader]) -> list[chain.BlockHeader]:
    followers = first_headers_above(NodeHeaders(ledger), [end.height for end in ends])
    for end in ends:
        follower = followers.get(end.height)
        if follower is None or follower.prev_hash != end.hash:
            raise _contradiction(end)
    return [followers[end.height] for end in ends]


def _next_epoch_id(header: chain.BlockHeader) -> str:
    """Return the id of the next epoch, the hash of the last block before the header's epoch."""
    if header.next_epoch_id is None:
        msg = f"block {header.height} has no next_epoch_id"
        raise DecodeError(msg, request=f"block {header.height}", path="$.result.header")
    return header.next_epoch_id


def _contradiction(header: chain.BlockHeader) -> DecodeError:
    msg = f"block {header.height} is not the last one of an epoch, although others say so"
    return DecodeError(msg, request=f"block {header.height}", path="$.result.header")
