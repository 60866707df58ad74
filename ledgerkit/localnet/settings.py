"""What a chain is told before it starts: names, clock, shards, epochs, limits, keys."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

SECOND_NS = 10**9
ProfileName = Literal["84", "86", "87"]

# Where the public network divides its accounts, and how it calls the shards.
BOUNDARIES = (
    "650",
    "aurora",
    "aurora-0",
    "earn.kaiching",
    "game.hot.tg",
    "game.hot.tg-0",
    "kkuuue2akv_1630967379.near",
    "tge-lockup.sweat",
)
SHARD_IDS = (10, 11, 1, 8, 9, 6, 7, 4, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    Everything that makes one chain differ from another, but for its genesis.

    Parameters
    ----------
    chain_id
        What `status` answers. Never a public network's.
    profile
        The protocol version whose fees and rules hold.
    genesis_height, genesis_time_ns
        Where height and time begin.
    block_time_ns
        How far apart blocks are.
    real_time
        Whether blocks come by the wall clock; otherwise time moves when it is awaited.
    gas_price
        The least price of gas, in yoctoNEAR.
    boundaries, shard_ids
        The accounts at which a shard begins, sorted, and the shards' ids.
    epoch_length
        How many heights an epoch has.
    reward_per_epoch
        A validator's reward, as one part in this many of its stake; 0 for none.
    minimum_stake
        The least a validator may have at stake.
    archival
        Whether every block's state is kept.
    epochs_kept
        How many epochs a chain that is not archival keeps.
    validity
        For how many heights after its `block_hash` a transaction is valid.
    yield_timeout
        After how many blocks a yielded promise is resumed without an answer.
    timeout_ns
        How long the node holds a request that waits.
    indexer_lag, balance_lag
        How many final blocks the indexer is behind; and behind it, its balances.
    api_keys
        Keys of which a request must carry one; none are demanded if there are none.
    vm_gas
        What a method's own computation burns, by ``"contract_id.method"`` or ``".method"``,
        in place of what it would cost by the host functions it uses.
    """

    chain_id: str = "localnet"
    profile: ProfileName = "86"
    genesis_height: int = 180_000_000
    genesis_time_ns: int = 1_785_542_400 * SECOND_NS
    block_time_ns: int = 600_000_000
    real_time: bool = False
    gas_price: int = 10**8
    boundaries: tuple[str, ...] = BOUNDARIES
    shard_ids: tuple[int, ...] = SHARD_IDS
    epoch_length: int = 43_200
    reward_per_epoch: int = 10_000
    minimum_stake: int = 10**24
    archival: bool = True
    epochs_kept: int = 5
    validity: int = 86_400
    yield_timeout: int = 200
    timeout_ns: int = 10 * SECOND_NS
    indexer_lag: int = 0
    balance_lag: int = 0
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    vm_gas: Mapping[str, int] = field(default_factory=dict)

    def shard_of(self, account_id: str) -> int:
        """Give the position of an account's shard: ids are compared by their bytes."""
        return bisect_right(self.boundaries, account_id)
