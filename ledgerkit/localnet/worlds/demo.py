"""
The world to look around in: some forty accounts, each with a story.

What they own at the beginning is genesis; everything that happened to them since was
signed with their published keys and executed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import structs

from ledgerkit.localnet.contract_sdk import U128, view
from ledgerkit.localnet.contracts.counter import Counter
from ledgerkit.localnet.contracts.dex import Dex
from ledgerkit.localnet.contracts.factory import Factory
from ledgerkit.localnet.contracts.fungible_token import (
    REGISTRATION,
    FungibleMetadata,
    FungibleToken,
)
from ledgerkit.localnet.contracts.liquid_staking import FIRST_BALANCE, LiquidStaking
from ledgerkit.localnet.contracts.non_fungible_token import NonFungibleToken, TokenMetadata
from ledgerkit.localnet.contracts.promises import PromisePatterns
from ledgerkit.localnet.contracts.social_db import SocialDb
from ledgerkit.localnet.contracts.staking_pool import GUARANTEE_FUND, StakingPool
from ledgerkit.localnet.contracts.token_receiver import TokenReceiver
from ledgerkit.localnet.contracts.top_level_account import TopLevelAccount
from ledgerkit.localnet.contracts.wrapped_near import WrappedNear
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.world import World
from ledgerkit.localnet.world_summary import WorldSummary
from ledgerkit.localnet.worlds.builder import TransactionSender, WorldGenesis, function_call
from ledgerkit.protocol import (
    AccessKey,
    AccountId,
    AddKey,
    CreateAccount,
    DelegateAction,
    DeleteAccount,
    DeleteKey,
    DeployContract,
    FunctionCallPermission,
    Transfer,
    implicit_account_id,
)
from ledgerkit.units import U128_MAX, yocto

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NAME = "demo"
NEAR = yocto("1 NEAR")
GOLD = 10**6  # its smallest units in one
SETTINGS = Settings(balance_lag=3)

# Account, its NEAR in milli-NEAR, and what it is there for.
PEOPLE = {
    "alice.near": (12_345_678, "holds many things: tokens, NFTs, stake with a pool and liquid"),
    "bob.near": (500_000, "stakes with pools directly, and holds nothing liquid"),
    "carol.near": (320_500, "stakes through the liquid token only"),
    "dave.near": (20_000, "owns some NEAR and nothing else"),
    "erin.near": (0, "an account without a yoctoNEAR: empty, and allowed to be"),
    "frank.near": (75_250, "a wallet with five keys: two full ones, three that may only call"),
    "grace.near": (900_000, "publishes NFT collections, each in an account below her own"),
    "heidi.near": (150_000, "writes to the social database: a profile and two widgets"),
    "ivan.near": (210_000, "swaps on the exchange; one swap came back because it was paused"),
    "judy.near": (64_000, "sent a batch whose third action failed, so that nothing remained"),
    "kate.near": (0, "owns tokens but no NEAR: others relay what she signs"),
    "leo.near": (42_000, "takes his stake out, and waits for it"),
    "mallory.near": (33_300, "calls what fails: a panic, a missing method, no code, no gas"),
    "nick.near": (88_000, "has accounts created, by the factory and under near"),
    "olga.near": (51_000, "opened an account and closed it again"),
    "peggy.near": (17_000, "calls contracts that call contracts"),
    "relay.near": (1_000_000, "relays what others signed, and pays for it"),
    "trent.near": (2_500_000, "runs the exchange and mints the tokens"),
    "uma.near": (9_000, "bought a lighthouse"),
    "victor.near": (5_000, "may spend 0.25 NEAR on calls to the counter, by a key of his own"),
    "wendy.near": (1_234, "just looks around"),
}
CONTRACTS = {
    "near": "creates accounts under near",
    "registrar": "creates top-level accounts",
    "gold.near": "a token with 6 decimals",
    "moon.near": "a token whose supply is the greatest there can be: 2^128 - 1",
    "dust.near": "a token that nobody holds any more",
    "slow.near": "a token that was moved so recently that the indexer has no balances yet",
    "torn.near": "a token whose balances can't be read: its contract panics",
    "wrap.near": "NEAR as a token",
    "liquid.near": "a liquid staking token",
    "dex.near": "an exchange, paused",
    "social.near": "a social database",
    "counter.near": "a counter that anybody may move",
    "factory.near": "creates accounts with contracts",
    "async.near": "calls itself and others in every way there is",
    "shop.near": "takes whatever tokens it is sent",
    "picky.near": "gives back 400 units of every token transfer",
    "sour.near": "panics at every token transfer",
}
POOLS = {
    "north.poolv1.near": {"alice.near": (150, 0), "bob.near": (200, 0), "leo.near": (40, 0)},
    "south.poolv1.near": {"bob.near": (25, 75), "liquid.near": (1000, 0)},
    "east.poolv1.near": {"alice.near": (0, 20)},
}


class UnreadableToken(FungibleToken, code_name="ledgerkit.localnet.worlds.demo.Torn"):
    """A token whose balances can't be read."""

    @view
    def ft_balance_of(self, account_id: AccountId) -> U128:
        """Panic."""
        self.vm.panic(f"Cannot deserialize the balance of {account_id}")


def open_demo(seed: int = 0, changes: Mapping[str, Any] | None = None) -> World:
    """
    Open the world, after everything that happened in it.

    Parameters
    ----------
    seed
        Another one gives other keys, ids and hashes.
    changes
        Of its settings.

    Returns
    -------
    world
        With its stories.
    """
    chosen = replace(SETTINGS, **changes or {})
    genesis = WorldGenesis(NAME, seed)
    _people(genesis, chosen)
    _tokens(genesis)
    _pools(genesis)
    _others(genesis, chosen)
    world = World(chosen, genesis)
    world.summary = _stories(genesis)
    world.advance(3)
    script = TransactionSender(world, genesis)
    for act in (_first_act, _second_act, _third_act, _last_act):
        act(script)
        world.settle()
    return world


# Genesis ---------------------------------------------------------------------------------


def _people(genesis: WorldGenesis, settings: Settings) -> None:
    """Put in the people, with their keys."""
    for place, (account_id, (milli, _)) in enumerate(PEOPLE.items()):
        # As if each key had been added some 100,000 blocks after the one before.
        added = (settings.genesis_height - 9_000_000 + 100_000 * place) * 10**6
        keys = [(genesis.public(account_id), AccessKey(added + 10 + place))]
        for name, permission in _more_keys(account_id):
            access_key = AccessKey(added + 10**6, permission) if permission else AccessKey(added)
            keys.append((genesis.public(name), access_key))
        genesis.account(account_id, milli * NEAR // 1000, keys=keys)


def _more_keys(account_id: str) -> Iterable[tuple[str, FunctionCallPermission | None]]:
    """Name an account's further keys, and what they may do; None for everything."""
    quarter = NEAR // 4
    if account_id == "alice.near":
        yield "alice.near 2", FunctionCallPermission(quarter, "shop.near", ("buy",))
        yield "alice.near 3", FunctionCallPermission(None, "social.near")
    elif account_id == "frank.near":
        yield "frank.near 2", None
        yield "frank.near 3", FunctionCallPermission(quarter, "counter.near", ("increment",))
        yield "frank.near 4", FunctionCallPermission(None, "dex.near")
        yield "alice.near 3", FunctionCallPermission(quarter, "social.near", ("set",))
    elif account_id == "victor.near":
        yield "victor.near 2", FunctionCallPermission(quarter, "counter.near")


def _tokens(genesis: WorldGenesis) -> None:
    """Put in the tokens and who holds them."""
    people = list(PEOPLE)
    gold = {name: (place * place * 137 + 11) * GOLD // 4 for place, name in enumerate(people)}
    gold |= {"alice.near": 1250 * GOLD, "dex.near": 400_000 * GOLD, "shop.near": 0, "erin.near": 0}
    gold |= {"picky.near": 0, "sour.near": 0}
    moon = {"bob.near": 12 * 10**24, "shop.near": 1}
    moon["alice.near"] = U128_MAX - sum(moon.values())
    held: dict[str, tuple[type[FungibleToken], dict[str, int], str, int]] = {
        "gold.near": (
            FungibleToken,
            {k: v for k, v in gold.items() if k != "wendy.near"},
            "GOLD",
            6,
        ),
        "moon.near": (FungibleToken, moon, "MOON", 18),
        "dust.near": (FungibleToken, {"alice.near": 0, "dave.near": 0}, "DUST", 0),
        "slow.near": (FungibleToken, {"carol.near": 7_900}, "SLOW", 3),
        "torn.near": (UnreadableToken, {"alice.near": 5, "uma.near": 6}, "TORN", 8),
    }
    for contract_id, (kind, holders, symbol, decimals) in held.items():
        told = FungibleMetadata(
            spec="ft-1.0.0", name=symbol.title(), symbol=symbol, decimals=decimals
        )
        records = kind.genesis("trent.near", holders, told)
        genesis.contract(contract_id, 100 * NEAR, kind, records)
    wrapped = {"ivan.near": 30 * NEAR, "dex.near": 5_000 * NEAR, "alice.near": 5 * NEAR // 2}
    backing = sum(wrapped.values()) + 10 * NEAR
    genesis.contract("wrap.near", backing, WrappedNear, WrappedNear.genesis(wrapped))


def _pools(genesis: WorldGenesis) -> None:
    """Put in the pools, which validate, and the liquid token, which stakes with one of them."""
    own = 500_000 * NEAR + GUARANTEE_FUND
    for pool_id, delegators in POOLS.items():
        held = {name: (s * NEAR + 123_456_789, u * NEAR) for name, (s, u) in delegators.items()}
        key = genesis.public(pool_id)
        genesis.account(
            pool_id,
            GUARANTEE_FUND + sum(unstaked for _, unstaked in held.values()),
            keys=[key],
            contract=StakingPool,
            records=StakingPool.genesis("trent.near", str(key), own, held),
            locked=own - GUARANTEE_FUND + sum(staked for staked, _ in held.values()),
            validator_key=key,
        )
    holders = {"alice.near": 7 * NEAR // 2, "carol.near": 260 * NEAR}
    records = LiquidStaking.genesis("trent.near", holders, ["south.poolv1.near"])
    amount = FIRST_BALANCE + sum(holders.values())
    genesis.contract("liquid.near", amount, LiquidStaking, records)


def _others(genesis: WorldGenesis, settings: Settings) -> None:
    """Put in the rest of the contracts."""
    pools = [{"gold.near": 400_000 * GOLD, "wrap.near": 5_000 * NEAR}]
    genesis.contract("dex.near", 50 * NEAR, Dex, Dex.genesis("trent.near", pools))
    data = {"alice.near": {"profile": {"name": "Alice", "about": "Collects lighthouses."}}}
    social = SocialDb.genesis(data, deposit=NEAR, block_height=settings.genesis_height)
    genesis.contract("social.near", 20 * NEAR, SocialDb, social)
    genesis.contract("counter.near", 10 * NEAR, Counter, Counter.genesis(41))
    genesis.contract("factory.near", 10 * NEAR, Factory)
    genesis.contract("async.near", 10 * NEAR, PromisePatterns)
    genesis.contract("shop.near", 5 * NEAR, TokenReceiver, TokenReceiver.genesis())
    genesis.contract("picky.near", 5 * NEAR, TokenReceiver, TokenReceiver.genesis(400))
    sour = TokenReceiver.genesis(panics="no thanks")
    genesis.contract("sour.near", 5 * NEAR, TokenReceiver, sour)
    genesis.contract("near", 1_000_000 * NEAR, TopLevelAccount)
    genesis.account("registrar", 1_000 * NEAR, keys=[genesis.public("registrar")])


def _stories(genesis: WorldGenesis) -> WorldSummary:
    """Tell who is who."""
    told = {name: story for name, (_, story) in PEOPLE.items()} | CONTRACTS
    accounts = genesis.stories(told | dict.fromkeys(POOLS, "a staking pool, which validates"))
    contracts: dict[str, str | list[str]] = {
        "ft": "gold.near",
        "wrap": "wrap.near",
        "nft": "stamps.grace.near",
        "pools": list(POOLS),
        "liquid": "liquid.near",
        "social": "social.near",
        "dex": "dex.near",
        "counter": "counter.near",
        "factory": "factory.near",
        "receiver": "shop.near",
    }
    return WorldSummary(accounts, contracts)


# What happened ---------------------------------------------------------------------------


def _first_act(do: TransactionSender) -> None:
    """Transfers, tokens, collections, stakes, the first words in the database."""
    do.act("a plain transfer", "alice.near", "bob.near", Transfer(5 * NEAR))
    do.act("a transfer to oneself", "dave.near", "dave.near", Transfer(NEAR))
    fresh = implicit_account_id(do.key("fresh").public_key)
    do.act("a transfer that creates an account", "trent.near", fresh, Transfer(2 * NEAR))
    address = "0x" + "c0ffee" * 6 + "c0de"
    do.act("a transfer to an Ethereum address", "trent.near", address, Transfer(NEAR))
    _token(do, "tokens sent", "trent.near", "uma.near", 250 * GOLD)
    for name, title in (("stamps", "Stamps"), ("tickets", "Tickets")):
        _collection(do, name, title)
    stake = function_call("deposit_and_stake", gas=50, deposit="50 NEAR")
    do.act("a stake with a pool", "bob.near", "north.poolv1.near", stake)
    unstake = function_call("unstake", {"amount": str(10 * NEAR)}, gas=50)
    do.act("a stake taken out of a pool", "leo.near", "north.poolv1.near", unstake)
    liquid = function_call("deposit_and_stake", gas=50, deposit="40 NEAR")
    do.act("a stake through the liquid token", "carol.near", "liquid.near", liquid)
    _write(do, "a profile", {"profile": {"name": "Heidi", "about": "Draws with numbers."}})
    wrap = function_call("near_deposit", gas=10, deposit="15 NEAR")
    do.act("NEAR made a token", "ivan.near", "wrap.near", wrap)
    limited = AccessKey(0, FunctionCallPermission(NEAR, "dex.near", ("withdraw",)))
    key = do.key("ivan.near 2").public_key
    do.act("a key that may only call", "ivan.near", "ivan.near", AddKey(key, limited))


def _second_act(do: TransactionSender) -> None:
    """Mints, swaps, delegated transfers, calls of calls."""
    _mint(do, "stamps", "17", "alice.near", "Lighthouse", copies=100)
    _mint(do, "stamps", "204", "alice.near", "Night ferry", copies=1)
    _mint(do, "stamps", "205", "uma.near", "Lighthouse at dawn", copies=1)
    _mint(do, "tickets", "A-1", "alice.near", "Opening night", copies=None)
    _swap(do, "a swap", 120 * GOLD)
    _write(do, "a widget", {"widget": {"Clock": {"": "return <p>12:00</p>;"}}})
    _relay(do, "a token transfer that somebody else paid for", valid=True)
    _relay(do, "a delegated action that came too late", valid=False)
    _pay(do, "tokens sent to a contract, which keeps them", "shop.near", 1000)
    _pay(do, "tokens sent to a contract, which gives some back", "picky.near", 1000)
    _pay(do, "tokens sent to a contract, which panics", "sour.near", 1000)
    receivers = ["counter.near", "async.near", "shop.near"]
    join = function_call("join", {"receiver_ids": receivers, "method_name": "get_num"}, gas=200)
    do.act("three calls, of which two fail, and one callback", "peggy.near", "async.near", join)
    chain = function_call("chain", {"depth": 8}, gas=200)
    do.act("a chain of eight calls", "peggy.near", "async.near", chain)
    fan = function_call("fan_out", {"width": 12}, gas=250)
    do.act("twelve calls side by side", "peggy.near", "async.near", fan)
    wait = function_call("wait_for", {"what": "a word"}, gas=50)
    do.act("a call that waits for somebody's word", "peggy.near", "async.near", wait)
    increment = function_call("increment", {"by": 1}, gas=10)
    do.act("a call by a limited key", "victor.near", "counter.near", increment, key="victor.near 2")


def _third_act(do: TransactionSender) -> None:
    """Fail in several ways, send back, and undo."""
    pause = function_call("pause", gas=10)
    do.act("the exchange is paused", "trent.near", "dex.near", pause)
    do.world.settle()
    _swap(do, "a swap that is refunded: the exchange is paused", 80 * GOLD)
    key = do.key("judy.near 2").public_key
    batch = (CreateAccount(), AddKey(key), AddKey(key), Transfer(3 * NEAR))
    story = "a batch that rolls back at its third action"
    do.act(story, "judy.near", "shop.judy.near", *batch)
    fail = function_call("fail", {"message": "not today"}, gas=10)
    do.act("a call that panics", "mallory.near", "counter.near", fail)
    missing = function_call("no_such_method", gas=10, deposit=1)
    do.act("a call of a method that is not there", "mallory.near", "counter.near", missing)
    do.act("a call of an account without code", "mallory.near", "dave.near", missing)
    poor = function_call("fan_out", {"width": 40}, gas=3)
    do.act("a call with too little gas", "mallory.near", "async.near", poor)
    swallow = function_call(
        "swallow", {"receiver_id": "counter.near", "method_name": "fail"}, gas=90
    )
    do.act("a failure that a callback swallows", "peggy.near", "async.near", swallow)
    detached = function_call("detached_failure", gas=90)
    do.act("a failure that nobody waits for", "peggy.near", "async.near", detached)
    _token(do, "tokens to an account that is not registered", "uma.near", "wendy.near", GOLD)
    for name, story in (
        ("nina.near", "an account created under near"),
        ("bob.near", "one that is taken"),
    ):
        args = {"new_account_id": name, "new_public_key": str(do.key(name).public_key)}
        create = function_call("create_account", args, gas=80, deposit="2 NEAR")
        do.act(story, "nick.near", "near", create)
    clicks: dict[str, Any] = {"name": "clicks", "kind": "counter", "args": {"number": 7}}
    made = function_call("create", clicks, gas=120, deposit="3 NEAR")
    do.act("an account made by the factory", "nick.near", "factory.near", made)
    own = (CreateAccount(), Transfer(4 * NEAR), AddKey(do.key("temp.olga.near").public_key))
    do.act("an account of one's own", "olga.near", "temp.olga.near", *own)
    do.act(
        "a key taken away", "frank.near", "frank.near", DeleteKey(do.key("frank.near 2").public_key)
    )


def _last_act(do: TransactionSender) -> None:
    """Close an account, write once more, and move the slow token."""
    gone = DeleteAccount("olga.near")
    do.act("an account closed", "temp.olga.near", "temp.olga.near", gone)
    _write(do, "another widget", {"widget": {"Tide": {"": "return <p>high</p>;"}}})
    transfer = {"receiver_id": "uma.near", "token_id": "204"}
    moved = function_call("nft_transfer", transfer, gas=15, deposit=1)
    do.act("a stamp sold", "alice.near", "stamps.grace.near", moved)
    do.world.settle()
    register = function_call(
        "storage_deposit", {"account_id": "alice.near"}, gas=15, deposit=int(REGISTRATION)
    )
    do.act("a place for tokens paid for", "carol.near", "slow.near", register)
    args = {"receiver_id": "alice.near", "amount": "7000"}
    slow = function_call("ft_transfer", args, gas=15, deposit=1)
    do.act("the newest transfer", "carol.near", "slow.near", slow)


def _token(
    do: TransactionSender, story: str, sender_id: str, receiver_id: str, amount: int
) -> None:
    """Send gold."""
    args = {"receiver_id": receiver_id, "amount": str(amount)}
    call = function_call("ft_transfer", args, gas=15, deposit=1)
    do.act(story, sender_id, "gold.near", call)


def _pay(do: TransactionSender, story: str, receiver_id: str, amount: int) -> None:
    """Send gold to a contract, which answers."""
    args = {"receiver_id": receiver_id, "amount": str(amount), "msg": "for a lamp"}
    call = function_call("ft_transfer_call", args, gas=100, deposit=1)
    do.act(story, "alice.near", "gold.near", call)


def _swap(do: TransactionSender, story: str, amount: int) -> None:
    """Swap gold for wrapped NEAR."""
    step = {"pool_id": 0, "token_in": "gold.near", "token_out": "wrap.near", "min_amount_out": "1"}
    message = '{"actions":[' + function_call("", step).args.decode() + "]}"
    args = {"receiver_id": "dex.near", "amount": str(amount), "msg": message}
    call = function_call("ft_transfer_call", args, gas=150, deposit=1)
    do.act(story, "ivan.near", "gold.near", call)


def _collection(do: TransactionSender, name: str, title: str) -> None:
    """Open a collection in an account below the publisher's."""
    told = {"spec": "nft-1.0.0", "name": title, "symbol": name.upper(), "base_uri": "ipfs://demo"}
    new = function_call("new", {"owner_id": "grace.near", "metadata": told}, gas=20)
    account_id = f"{name}.grace.near"
    batch = (
        CreateAccount(),
        Transfer(6 * NEAR),
        AddKey(do.key(account_id).public_key),
        DeployContract(NonFungibleToken.code),
        new,
    )
    do.act(f"a collection opened: {title}", "grace.near", account_id, *batch)


def _mint(
    do: TransactionSender,
    name: str,
    token_id: str,
    receiver_id: str,
    title: str,
    *,
    copies: int | None,
) -> None:
    """Mint a token of a collection."""
    metadata = TokenMetadata(title=title, media=f"{token_id}.svg", copies=copies)
    told = {k: v for k, v in structs.asdict(metadata).items() if v is not None}
    args = {"token_id": token_id, "receiver_id": receiver_id, "metadata": told}
    call = function_call("nft_mint", args, gas=30, deposit="0.1 NEAR")
    do.act(f"{title} minted", "grace.near", f"{name}.grace.near", call)


def _write(do: TransactionSender, story: str, branch: dict[str, Any]) -> None:
    """Write to the social database."""
    args = {"data": {"heidi.near": branch}}
    call = function_call("set", args, gas=60, deposit="0.1 NEAR")
    do.act(f"{story} in the social database", "heidi.near", "social.near", call)


def _relay(do: TransactionSender, story: str, *, valid: bool) -> None:
    """Relay a transfer of tokens that somebody without NEAR signed."""
    args = {"receiver_id": "alice.near", "amount": str(3 * GOLD)}
    call = function_call("ft_transfer", args, gas=15, deposit=1)
    secret = do.key("kate.near")
    head = do.world.chain.head.height
    wanted = DelegateAction(
        "kate.near",
        "gold.near",
        [call],
        do.next_nonce("kate.near", secret),
        head + 100 if valid else head - 1,
        secret.public_key,
    )
    do.act(story, "relay.near", "kate.near", wanted.sign(secret))
