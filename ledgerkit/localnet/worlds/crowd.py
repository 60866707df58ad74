"""
A world of many accounts, for bulk work: few have much, most have little.

Its genesis holds accounts, keys and the contracts' records; what happens after it is
executed. Drawn from a seed, the same on every machine.
"""

from __future__ import annotations

import random
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.contracts.fungible_token import FungibleMetadata, FungibleToken
from ledgerkit.localnet.contracts.liquid_staking import FIRST_BALANCE, LiquidStaking
from ledgerkit.localnet.contracts.non_fungible_token import NonFungibleToken, TokenMetadata
from ledgerkit.localnet.contracts.staking_pool import GUARANTEE_FUND, StakingPool
from ledgerkit.localnet.contracts.top_level_account import TopLevelAccount
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.world import World
from ledgerkit.localnet.world_summary import WorldSummary
from ledgerkit.localnet.worlds.builder import WorldGenesis
from ledgerkit.protocol import AccessKey
from ledgerkit.units import yocto

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "crowd"
NEAR = yocto("1 NEAR")
SIZE = 1_000
LARGEST = 5_000_000
TOKENS = 12
COLLECTIONS = 5
POOLS = 6
_TOLD = 20  # accounts whose keys are listed; the others' are made by the same rule
_EMPTIED = 0.1  # of balances
_LEAVING = 0.2  # of stakes, how many are being taken out
_MAX_DRAW = 60  # tokens that one account holds at most, before doubles


def open_crowd(
    size: int | None = None, seed: int = 0, changes: Mapping[str, Any] | None = None
) -> World:
    """
    Open the world.

    Parameters
    ----------
    size
        How many people; 1,000 unless said otherwise.
    seed
        Another one draws another world.
    changes
        Of its settings.

    Returns
    -------
    world
        At its first blocks.

    Raises
    ------
    InvalidRequestError
        If there would be nobody, or too many for one machine.
    """
    count = SIZE if size is None else size
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= LARGEST:
        raise InvalidRequestError.refuse("size", size, f"an integer from 1 to {LARGEST}")
    draw = random.Random(f"{NAME} {seed} {count}")  # noqa: S311 - a world, no secret
    people = person_ids(count)
    genesis = WorldGenesis(NAME, seed)
    _people(genesis, people, draw)
    _tokens(genesis, people, draw)
    _collections(genesis, people, draw)
    _stakes(genesis, people, draw)
    genesis.contract("near", 1_000_000 * NEAR, TopLevelAccount)
    world = World(Settings(**changes or {}), genesis)
    world.summary = _stories(genesis, people[:_TOLD])
    world.advance(3)
    return world


def person_ids(count: int) -> list[str]:
    """Name the people: by number, with room for all of them."""
    return [f"person{number:07}.near" for number in range(count)]


def _people(genesis: WorldGenesis, people: Sequence[str], draw: random.Random) -> None:
    """Put in the people: what they own falls off as a power of their rank, with noise."""
    access_key = AccessKey(170_000_000 * 10**6 + 3)
    for account_id in people:
        # A Pareto draw: one in a hundred has a hundred times what most have.
        amount = min(int(draw.paretovariate(1.1) * 10**6), 10**13) * NEAR // 10**6
        keys = [(genesis.public(account_id), access_key)]
        genesis.account(account_id, amount + draw.randrange(10**18), keys=keys)


def _drawn(people: Sequence[str], count: int, draw: random.Random) -> list[str]:
    """Draw people, with repeats: the first ones far more often."""
    return [people[int(len(people) * draw.random() ** 2)] for _ in range(count)]


def _tokens(genesis: WorldGenesis, people: Sequence[str], draw: random.Random) -> None:
    """Put in tokens: most people hold one or two, some dozens; some balances are used up."""
    weights = list(accumulate(1 / (rank + 1) for rank in range(TOKENS)))
    holders: list[dict[str, int]] = [{} for _ in range(TOKENS)]
    for account_id in people:
        held = min(int(draw.paretovariate(1.3)) - 1 + draw.randrange(2), _MAX_DRAW)
        for token in draw.choices(range(TOKENS), cum_weights=weights, k=held):
            amount = 0 if draw.random() < _EMPTIED else int(draw.paretovariate(0.6) * 10**15)
            holders[token][account_id] = min(amount, 10**30)
    for number, balances in enumerate(holders):
        name = f"token{number:02}.near"
        told = FungibleMetadata(
            spec="ft-1.0.0",
            name=f"Token {number}",
            symbol=f"T{number}",
            decimals=(18, 6, 24)[number % 3],
        )
        records = FungibleToken.genesis("near", balances, told)
        genesis.contract(name, (100 + len(balances)) * NEAR, FungibleToken, records)


def _collections(genesis: WorldGenesis, people: Sequence[str], draw: random.Random) -> None:
    """Put in NFT collections."""
    for number in range(COLLECTIONS):
        owners = _drawn(people, max(1, len(people) // (4 + 3 * number)), draw)
        tokens = [
            (str(place), owner, TokenMetadata(title=f"Piece {place}", copies=1))
            for place, owner in enumerate(owners)
        ]
        records = NonFungibleToken.genesis("near", tokens)
        amount = (100 + len(tokens)) * NEAR
        genesis.contract(f"art{number}.near", amount, NonFungibleToken, records)


def _stakes(genesis: WorldGenesis, people: Sequence[str], draw: random.Random) -> None:
    """Put in staking pools and the liquid token."""
    own = 100_000 * NEAR + GUARANTEE_FUND
    for number in range(POOLS):
        some = _drawn(people, max(1, len(people) // (3 + 2 * number)), draw)
        held = {name: (draw.randrange(1, 10**9) * 10**18, _unstaked(draw)) for name in some}
        pool_id = f"pool{number}.poolv1.near"
        key = genesis.public(pool_id)
        genesis.account(
            pool_id,
            GUARANTEE_FUND + sum(unstaked for _, unstaked in held.values()),
            keys=[key],
            contract=StakingPool,
            records=StakingPool.genesis("near", str(key), own, held),
            locked=own - GUARANTEE_FUND + sum(staked for staked, _ in held.values()),
            validator_key=key,
        )
    holders = {
        n: draw.randrange(1, 10**7) * 10**20 for n in _drawn(people, max(1, len(people) // 5), draw)
    }
    records = LiquidStaking.genesis("near", holders, ["pool0.poolv1.near"])
    amount = FIRST_BALANCE + sum(holders.values())
    genesis.contract("liquid.near", amount, LiquidStaking, records)


def _unstaked(draw: random.Random) -> int:
    """Draw what somebody has taken out of a stake: mostly nothing."""
    return draw.randrange(10**24) if draw.random() < _LEAVING else 0


def _stories(genesis: WorldGenesis, people: Sequence[str]) -> WorldSummary:
    """Tell who is who."""
    told = dict.fromkeys(people, "one of the crowd")
    told |= {f"token{number:02}.near": "a token" for number in range(TOKENS)}
    told |= {f"art{number}.near": "an NFT collection" for number in range(COLLECTIONS)}
    told |= {f"pool{number}.poolv1.near": "a staking pool" for number in range(POOLS)}
    told |= {"liquid.near": "a liquid staking token", "near": "creates accounts under near"}
    contracts: dict[str, str | list[str]] = {
        "ft": "token00.near",
        "nft": "art0.near",
        "pools": [f"pool{number}.poolv1.near" for number in range(POOLS)],
        "liquid": "liquid.near",
    }
    return WorldSummary(genesis.stories(told), contracts)
