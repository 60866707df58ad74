"""Settings of a chain: names, clock, shards, epochs, limits, API keys."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SECOND_NS = 10**9
YEAR_NS = 365 * 24 * 3600 * SECOND_NS
ProfileName = Literal["84", "86", "87", "88"]

# The shard layout of mainnet: the first accounts of its shards, and the shards' ids.
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
    The settings of a chain; everything else is in its genesis.

    Parameters
    ----------
    chain_id
        The chain id in `status`; never that of a public network.
    profile
        The protocol version whose fees and rules apply.
    genesis_height, genesis_time_ns
        The height and the Unix time of the first block.
    block_time_ns
        The time between blocks.
    real_time
        True if blocks come by the clock; otherwise they come when a request waits for one.
    gas_price
        The lowest price of gas, in yoctoNEAR.
    boundaries, shard_ids
        The accounts at which a shard begins, sorted, and the shards' ids.
    epoch_length
        The number of heights in an epoch.
    reward_per_epoch
        The divisor of a validator's stake that gives its reward; 0 for no rewards.
    minimum_stake
        The lowest stake of a validator, in yoctoNEAR.
    archival
        True to keep every block's state.
    epochs_kept
        The number of epochs whose states a chain that is not archival keeps.
    validity
        The number of heights after its `block_hash` for which a transaction is valid.
    yield_timeout
        The number of blocks after which a yielded promise is resumed without data.
    timeout_ns
        The time after which the node ends a request that waits.
    indexer_lag, balance_lag
        The number of final blocks that the index is behind, and its balances behind the index.
    duplicate_rows
        The number of copies of each row of the Transactions API that its database has not
        merged yet. With many, pages of `/v0/account` end early and `txs_count` is too high.
    api_keys
        The accepted API keys; if there are none, requests need no key.
    vm_gas
        The gas that a method's own computation burns, by ``"contract_id.method"`` or
        ``".method"``, in place of the sum of its host functions.
    spec_errors
        True to repeat the reason of a rejected transaction as ``error.InvalidTransaction``,
        the path in the API's specification. No node sends it, and clients that deny unknown
        members, such as those in Rust, cannot read such an error.
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
    duplicate_rows: int = 0
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    vm_gas: Mapping[str, int] = field(default_factory=dict)
    spec_errors: bool = False

    def shard_of(self, account_id: str) -> int:
        """Return the position of an account's shard; account ids compare by their bytes."""
        return bisect_right(self.boundaries, account_id)
