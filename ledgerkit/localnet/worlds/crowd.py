"""
The crowd world: many accounts for bulk work; few accounts own much, most own little.

All accounts, keys and contract records are part of the genesis, drawn from a seed. There are no
transactions.
"""

import random
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.contracts.factory import TopLevelAccount
from ledgerkit.localnet.contracts.fungible_token import FungibleMetadata, FungibleToken
from ledgerkit.localnet.contracts.non_fungible_token import NonFungibleToken, TokenMetadata
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.world import World
from ledgerkit.localnet.worlds.builder import WorldGenesis
from ledgerkit.protocol import AccessKey
from ledgerkit.units import yocto

NAME = "crowd"
NEAR = yocto("1 NEAR")
DEFAULT_SIZE = 1_000
MAX_SIZE = 5_000_000
TOKENS = 12
COLLECTIONS = 5
POOLS = 6
_MAX_SUMMARIES = 20  # people with a listed key; the others' keys are derived by the same rule
_EMPTY_BALANCES = 0.1  # the share of all token balances
_UNSTAKING = 0.2  # the share of all delegators
_MAX_TOKENS = 60  # draws of one account, repeated tokens included


def open_crowd(seed: int, changes: Mapping[str, Any], size: int | None = None) -> World:
    """Open the world with `size` people, by default 1,000, and some of its settings changed."""
    count = DEFAULT_SIZE if size is None else size
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_SIZE:
        raise InvalidRequestError.refuse("size", size, f"an integer from 1 to {MAX_SIZE}")
    rng = random.Random(f"{NAME} {seed} {count}")  # noqa: S311 - balances, no secrets
    people = [f"person{number:07}.near" for number in range(count)]
    genesis = WorldGenesis(NAME, seed)
    _add_people(genesis, people, rng)
    _add_tokens(genesis, people, rng)
    _add_collections(genesis, people, rng)
    _add_stakes(genesis, people, rng)
    genesis.contract("near", 1_000_000 * NEAR, TopLevelAccount)
    pools = [f"pool{number}.poolv1.near" for number in range(POOLS)]
    descriptions = {
        **dict.fromkeys(people[:_MAX_SUMMARIES], "one of the crowd"),
        **{f"token{number:02}.near": "a token" for number in range(TOKENS)},
        **{f"art{number}.near": "an NFT collection" for number in range(COLLECTIONS)},
        **dict.fromkeys(pools, "a staking pool"),
        "liquid.near": "a liquid staking token",
        "near": "creates accounts under near",
    }
    contracts: dict[str, str | list[str]] = {
        "ft": "token00.near",
        "nft": "art0.near",
        "pools": pools,
        "liquid": "liquid.near",
    }
    return genesis.open(Settings(**changes), descriptions, contracts)


def _add_people(genesis: WorldGenesis, people: Sequence[str], rng: random.Random) -> None:
    """Add the people, with balances that follow a power law plus noise."""
    access_key = AccessKey(170_000_000 * 10**6 + 3)
    for account_id in people:
        # A Pareto draw: one account in a hundred owns more than 60 times the lowest balance.
        amount = min(int(rng.paretovariate(1.1) * 10**6), 10**13) * NEAR // 10**6
        keys = [(genesis.public_key(account_id), access_key)]
        genesis.account(account_id, amount + rng.randrange(10**18), keys=keys)


def _draw_people(people: Sequence[str], count: int, rng: random.Random) -> list[str]:
    """Draw people with repeats, the first people far more often than the last."""
    return [people[int(len(people) * rng.random() ** 2)] for _ in range(count)]


def _add_tokens(genesis: WorldGenesis, people: Sequence[str], rng: random.Random) -> None:
    """Add tokens: most people own one or two, a few own dozens; some balances are 0."""
    weights = list(accumulate(1 / (rank + 1) for rank in range(TOKENS)))
    holders: list[dict[str, int]] = [{} for _ in range(TOKENS)]
    for account_id in people:
        count = min(int(rng.paretovariate(1.3)) - 1 + rng.randrange(2), _MAX_TOKENS)
        for token in rng.choices(range(TOKENS), cum_weights=weights, k=count):
            amount = 0 if rng.random() < _EMPTY_BALANCES else int(rng.paretovariate(0.6) * 10**15)
            holders[token][account_id] = min(amount, 10**30)
    for number, balances in enumerate(holders):
        metadata = FungibleMetadata(
            spec="ft-1.0.0",
            name=f"Token {number}",
            symbol=f"T{number}",
            decimals=(18, 6, 24)[number % 3],
        )
        records = FungibleToken.genesis("near", balances, metadata)
        amount = (100 + len(balances)) * NEAR
        genesis.contract(f"token{number:02}.near", amount, FungibleToken, records)


def _add_collections(genesis: WorldGenesis, people: Sequence[str], rng: random.Random) -> None:
    for number in range(COLLECTIONS):
        owners = _draw_people(people, max(1, len(people) // (4 + 3 * number)), rng)
        tokens = [
            (str(index), owner, TokenMetadata(title=f"Piece {index}", copies=1))
            for index, owner in enumerate(owners)
        ]
        records = NonFungibleToken.genesis("near", tokens)
        amount = (100 + len(tokens)) * NEAR
        genesis.contract(f"art{number}.near", amount, NonFungibleToken, records)


def _add_stakes(genesis: WorldGenesis, people: Sequence[str], rng: random.Random) -> None:
    for number in range(POOLS):
        delegators = _draw_people(people, max(1, len(people) // (3 + 2 * number)), rng)
        stakes = {
            name: (
                rng.randrange(1, 10**9) * 10**18,
                rng.randrange(10**24) if rng.random() < _UNSTAKING else 0,
            )
            for name in delegators
        }
        genesis.staking_pool(f"pool{number}.poolv1.near", "near", 100_000 * NEAR, stakes)
    liquid_holders = _draw_people(people, max(1, len(people) // 5), rng)
    deposits = {name: rng.randrange(1, 10**7) * 10**20 for name in liquid_holders}
    genesis.liquid_staking("near", deposits, ["pool0.poolv1.near"])
