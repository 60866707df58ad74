"""
The demo world: some forty accounts with tokens, stakes and transactions of every kind.

Initial balances are part of the genesis. All later state is the result of executed transactions
that the accounts' published keys signed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ledgerkit.localnet.contract_sdk import U128, to_json, view
from ledgerkit.localnet.contracts.counter import Counter
from ledgerkit.localnet.contracts.dex import Dex
from ledgerkit.localnet.contracts.factory import Factory, TopLevelAccount
from ledgerkit.localnet.contracts.fungible_token import (
    REGISTRATION,
    FungibleMetadata,
    FungibleToken,
    WrappedNear,
)
from ledgerkit.localnet.contracts.non_fungible_token import NonFungibleToken
from ledgerkit.localnet.contracts.promises import PromisePatterns
from ledgerkit.localnet.contracts.social_db import SocialDb
from ledgerkit.localnet.contracts.token_receiver import TokenReceiver
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.world import World
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

NEAR = yocto("1 NEAR")
GOLD = 10**6  # smallest units of gold.near in one GOLD

# Each account's balance in milli-NEAR, and its description.
PEOPLE = {
    "alice.near": (12_345_678, "owns tokens, NFTs, stake with a pool and liquid stake"),
    "bob.near": (500_000, "stakes with pools directly, without liquid staking"),
    "carol.near": (320_500, "stakes through the liquid token only"),
    "dave.near": (20_000, "owns some NEAR and nothing else"),
    "erin.near": (0, "an account with 0 yoctoNEAR, which is allowed"),
    "frank.near": (75_250, "a wallet with five keys: two full-access, three function-call keys"),
    "grace.near": (900_000, "publishes NFT collections, each in a subaccount"),
    "heidi.near": (150_000, "writes to the social database: a profile and two widgets"),
    "ivan.near": (210_000, "swaps on the exchange; one swap was refunded, as it was paused"),
    "judy.near": (64_000, "sent a batch whose third action failed, which reverted it all"),
    "kate.near": (0, "owns tokens but no NEAR: a relayer pays for her transactions"),
    "leo.near": (42_000, "unstakes from a pool, and waits to withdraw"),
    "mallory.near": (33_300, "sends calls that fail: a panic, no such method, no code, no gas"),
    "nick.near": (88_000, "creates accounts, by the factory and under near"),
    "olga.near": (51_000, "created an account and deleted it again"),
    "peggy.near": (17_000, "calls contracts that call contracts"),
    "relay.near": (1_000_000, "relays transactions of others, and pays for them"),
    "trent.near": (2_500_000, "runs the exchange and mints the tokens"),
    "uma.near": (9_000, "owns two stamps"),
    "victor.near": (5_000, "has a key that can spend 0.25 NEAR on calls to the counter"),
    "wendy.near": (1_234, "owns a little NEAR, and sends nothing"),
}
CONTRACTS = {
    "near": "creates accounts under near",
    "registrar": "creates top-level accounts",
    "gold.near": "a token with 6 decimals",
    "moon.near": "a token with the greatest possible supply: 2^128 - 1",
    "dust.near": "a token whose balances are all 0",
    "slow.near": "a token transferred so recently that the indexer has no balances yet",
    "torn.near": "a token whose balances cannot be read: its contract panics",
    "wrap.near": "wrapped NEAR",
    "liquid.near": "a liquid staking token",
    "dex.near": "an exchange, paused",
    "social.near": "a social database",
    "counter.near": "a counter that every account can change",
    "factory.near": "creates accounts with contracts",
    "async.near": "calls itself and other contracts in every pattern",
    "shop.near": "keeps all tokens it is sent",
    "picky.near": "returns 400 units of every token transfer",
    "sour.near": "panics at every token transfer",
}
POOLS = {
    "north.poolv1.near": {"alice.near": (150, 0), "bob.near": (200, 0), "leo.near": (40, 0)},
    "south.poolv1.near": {"bob.near": (25, 75), "liquid.near": (1000, 0)},
    "east.poolv1.near": {"alice.near": (0, 20)},
}
ROLES: dict[str, str | list[str]] = {
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


class UnreadableToken(FungibleToken, code_name="ledgerkit.localnet.worlds.demo.Torn"):
    """A token whose balances cannot be read."""

    @view
    def ft_balance_of(self, account_id: AccountId) -> U128:
        self.vm.panic(f"Cannot deserialize the balance of {account_id}")


def open_demo(seed: int, changes: Mapping[str, Any]) -> World:
    """Open the world after all of its transactions, with some of its settings changed."""
    settings = replace(Settings(balance_lag=3), **changes)
    genesis = WorldGenesis("demo", seed)
    _add_people(genesis, settings)
    _add_tokens(genesis)
    _add_pools(genesis)
    _add_contracts(genesis, settings)
    descriptions = {name: description for name, (_, description) in PEOPLE.items()} | CONTRACTS
    descriptions |= dict.fromkeys(POOLS, "a staking pool, which validates")
    world = genesis.open(settings, descriptions, ROLES)
    sender = TransactionSender(world, genesis)
    for send_transactions in (_send_simple, _send_calls, _send_failures, _send_last):
        send_transactions(sender)
        world.settle()
    return world


# Genesis ---------------------------------------------------------------------------------


def _add_people(genesis: WorldGenesis, settings: Settings) -> None:
    for index, (account_id, (milli, _)) in enumerate(PEOPLE.items()):
        # The nonces look as if each key was added 100,000 blocks after the previous one.
        added = (settings.genesis_height - 9_000_000 + 100_000 * index) * 10**6
        keys = [(genesis.public_key(account_id), AccessKey(added + 10 + index))]
        for name, permission in _extra_keys(account_id):
            access_key = AccessKey(added + 10**6, permission) if permission else AccessKey(added)
            keys.append((genesis.public_key(name), access_key))
        genesis.account(account_id, milli * NEAR // 1000, keys=keys)


def _extra_keys(account_id: str) -> Iterable[tuple[str, FunctionCallPermission | None]]:
    """Yield an account's further keys with their permission, None for full access."""
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


def _add_tokens(genesis: WorldGenesis) -> None:
    gold = {name: (index * index * 137 + 11) * GOLD // 4 for index, name in enumerate(PEOPLE)}
    gold |= {"alice.near": 1250 * GOLD, "dex.near": 400_000 * GOLD, "shop.near": 0, "erin.near": 0}
    gold |= {"picky.near": 0, "sour.near": 0}
    moon = {"bob.near": 12 * 10**24, "shop.near": 1}
    moon["alice.near"] = U128_MAX - sum(moon.values())
    gold.pop("wendy.near")
    tokens: dict[str, tuple[type[FungibleToken], dict[str, int], str, int]] = {
        "gold.near": (FungibleToken, gold, "GOLD", 6),
        "moon.near": (FungibleToken, moon, "MOON", 18),
        "dust.near": (FungibleToken, {"alice.near": 0, "dave.near": 0}, "DUST", 0),
        "slow.near": (FungibleToken, {"carol.near": 7_900}, "SLOW", 3),
        "torn.near": (UnreadableToken, {"alice.near": 5, "uma.near": 6}, "TORN", 8),
    }
    for contract_id, (contract, holders, symbol, decimals) in tokens.items():
        metadata = FungibleMetadata(
            spec="ft-1.0.0", name=symbol.title(), symbol=symbol, decimals=decimals
        )
        records = contract.genesis("trent.near", holders, metadata)
        genesis.contract(contract_id, 100 * NEAR, contract, records)
    wrapped = {"ivan.near": 30 * NEAR, "dex.near": 5_000 * NEAR, "alice.near": 5 * NEAR // 2}
    backing = sum(wrapped.values()) + 10 * NEAR
    genesis.contract("wrap.near", backing, WrappedNear, WrappedNear.genesis(wrapped))


def _add_pools(genesis: WorldGenesis) -> None:
    """Add the pools, which validate, and the liquid token, which stakes with one of them."""
    for pool_id, delegators in POOLS.items():
        stakes = {name: (s * NEAR + 123_456_789, u * NEAR) for name, (s, u) in delegators.items()}
        genesis.staking_pool(pool_id, "trent.near", 500_000 * NEAR, stakes)
    holders = {"alice.near": 7 * NEAR // 2, "carol.near": 260 * NEAR}
    genesis.liquid_staking("trent.near", holders, ["south.poolv1.near"])


def _add_contracts(genesis: WorldGenesis, settings: Settings) -> None:
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
    genesis.account("registrar", 1_000 * NEAR, keys=[genesis.public_key("registrar")])


# Transactions ----------------------------------------------------------------------------


def _send_simple(sender: TransactionSender) -> None:
    """Send transfers, open collections, stake, and write to the social database."""
    sender.send("a plain transfer", "alice.near", "bob.near", Transfer(5 * NEAR))
    sender.send("a transfer to oneself", "dave.near", "dave.near", Transfer(NEAR))
    fresh = implicit_account_id(sender.key("fresh").public_key)
    sender.send("a transfer that creates an account", "trent.near", fresh, Transfer(2 * NEAR))
    address = "0x" + "c0ffee" * 6 + "c0de"
    sender.send("a transfer to an Ethereum address", "trent.near", address, Transfer(NEAR))
    _send_token(sender, "tokens sent", "trent.near", "uma.near", 250 * GOLD)
    for name, title in (("stamps", "Stamps"), ("tickets", "Tickets")):
        _send_collection(sender, name, title)
    stake = function_call("deposit_and_stake", gas=50, deposit="50 NEAR")
    sender.send("a stake with a pool", "bob.near", "north.poolv1.near", stake)
    unstake = function_call("unstake", {"amount": str(10 * NEAR)}, gas=50)
    sender.send("a stake reduced with a pool", "leo.near", "north.poolv1.near", unstake)
    liquid = function_call("deposit_and_stake", gas=50, deposit="40 NEAR")
    sender.send("a stake through the liquid token", "carol.near", "liquid.near", liquid)
    _send_social(
        sender, "a profile", {"profile": {"name": "Heidi", "about": "Draws with numbers."}}
    )
    wrap = function_call("near_deposit", gas=10, deposit="15 NEAR")
    sender.send("NEAR wrapped", "ivan.near", "wrap.near", wrap)
    limited = AccessKey(0, FunctionCallPermission(NEAR, "dex.near", ("withdraw",)))
    key = sender.key("ivan.near 2").public_key
    sender.send("a function-call key added", "ivan.near", "ivan.near", AddKey(key, limited))


def _send_calls(sender: TransactionSender) -> None:
    """Mint, swap, relay transfers, and send cross-contract calls."""
    _send_mint(sender, "stamps", "17", "alice.near", "Lighthouse", copies=100)
    _send_mint(sender, "stamps", "204", "alice.near", "Night ferry", copies=1)
    _send_mint(sender, "stamps", "205", "uma.near", "Lighthouse at dawn", copies=1)
    _send_mint(sender, "tickets", "A-1", "alice.near", "Opening night", copies=None)
    _send_swap(sender, "a swap", 120 * GOLD)
    _send_social(sender, "a widget", {"widget": {"Clock": {"": "return <p>12:00</p>;"}}})
    _send_relayed(sender, "a relayed token transfer", valid=True)
    _send_relayed(sender, "a delegate action that expired", valid=False)
    _send_token_call(sender, "tokens sent to a contract, which keeps them", "shop.near", 1000)
    _send_token_call(sender, "tokens sent to a contract, which gives some back", "picky.near", 1000)
    _send_token_call(sender, "tokens sent to a contract, which panics", "sour.near", 1000)
    receivers = ["counter.near", "async.near", "shop.near"]
    join = function_call("join", {"receiver_ids": receivers, "method_name": "get_num"}, gas=200)
    sender.send(
        "three calls, of which two fail, and one callback", "peggy.near", "async.near", join
    )
    chain = function_call("chain", {"depth": 8}, gas=200)
    sender.send("a chain of eight calls", "peggy.near", "async.near", chain)
    fan = function_call("fan_out", {"width": 12}, gas=250)
    sender.send("twelve parallel calls", "peggy.near", "async.near", fan)
    wait = function_call("wait_for", {"what": "a word"}, gas=50)
    sender.send("a yielded call that waits to be resumed", "peggy.near", "async.near", wait)
    increment = function_call("increment", {"by": 1}, gas=10)
    sender.send(
        "a call by a function-call key",
        "victor.near",
        "counter.near",
        increment,
        key="victor.near 2",
    )


def _send_failures(sender: TransactionSender) -> None:
    """Send transactions that fail or are refunded, create accounts, and delete a key."""
    pause = function_call("pause", gas=10)
    sender.send("the exchange is paused", "trent.near", "dex.near", pause)
    sender.world.settle()
    _send_swap(sender, "a swap that is refunded: the exchange is paused", 80 * GOLD)
    key = sender.key("judy.near 2").public_key
    batch = (CreateAccount(), AddKey(key), AddKey(key), Transfer(3 * NEAR))
    description = "a batch that rolls back at its third action"
    sender.send(description, "judy.near", "shop.judy.near", *batch)
    fail = function_call("fail", {"message": "not today"}, gas=10)
    sender.send("a call that panics", "mallory.near", "counter.near", fail)
    missing = function_call("no_such_method", gas=10, deposit=1)
    sender.send("a call of a missing method", "mallory.near", "counter.near", missing)
    sender.send("a call of an account without code", "mallory.near", "dave.near", missing)
    poor = function_call("fan_out", {"width": 40}, gas=3)
    sender.send("a call with too little gas", "mallory.near", "async.near", poor)
    swallow = function_call(
        "swallow", {"receiver_id": "counter.near", "method_name": "fail"}, gas=90
    )
    sender.send("a failed call whose callback succeeds", "peggy.near", "async.near", swallow)
    detached = function_call("detached_failure", gas=90)
    sender.send(
        "a detached failure: no callback waits for it", "peggy.near", "async.near", detached
    )
    _send_token(
        sender, "tokens to an account that is not registered", "uma.near", "wendy.near", GOLD
    )
    for name, description in (
        ("nina.near", "an account created under near"),
        ("bob.near", "an account creation refunded: the name is taken"),
    ):
        args = {"new_account_id": name, "new_public_key": str(sender.key(name).public_key)}
        create = function_call("create_account", args, gas=80, deposit="2 NEAR")
        sender.send(description, "nick.near", "near", create)
    clicks: dict[str, Any] = {"name": "clicks", "kind": "counter", "args": {"number": 7}}
    create = function_call("create", clicks, gas=120, deposit="3 NEAR")
    sender.send("an account created by the factory", "nick.near", "factory.near", create)
    key = sender.key("temp.olga.near").public_key
    creation = (CreateAccount(), Transfer(4 * NEAR), AddKey(key))
    sender.send("a subaccount created", "olga.near", "temp.olga.near", *creation)
    delete = DeleteKey(sender.key("frank.near 2").public_key)
    sender.send("a key deleted", "frank.near", "frank.near", delete)


def _send_last(sender: TransactionSender) -> None:
    """Delete an account, write again, and move the slow token."""
    delete = DeleteAccount("olga.near")
    sender.send("an account deleted", "temp.olga.near", "temp.olga.near", delete)
    _send_social(sender, "another widget", {"widget": {"Tide": {"": "return <p>high</p>;"}}})
    transfer = {"receiver_id": "uma.near", "token_id": "204"}
    transfer_call = function_call("nft_transfer", transfer, gas=15, deposit=1)
    sender.send("a stamp sold", "alice.near", "stamps.grace.near", transfer_call)
    sender.world.settle()
    register = function_call(
        "storage_deposit", {"account_id": "alice.near"}, gas=15, deposit=int(REGISTRATION)
    )
    sender.send("a storage deposit paid", "carol.near", "slow.near", register)
    args = {"receiver_id": "alice.near", "amount": "7000"}
    slow = function_call("ft_transfer", args, gas=15, deposit=1)
    sender.send("the newest transfer", "carol.near", "slow.near", slow)


def _send_token(
    sender: TransactionSender, description: str, sender_id: str, receiver_id: str, amount: int
) -> None:
    args = {"receiver_id": receiver_id, "amount": str(amount)}
    call = function_call("ft_transfer", args, gas=15, deposit=1)
    sender.send(description, sender_id, "gold.near", call)


def _send_token_call(
    sender: TransactionSender, description: str, receiver_id: str, amount: int
) -> None:
    args = {"receiver_id": receiver_id, "amount": str(amount), "msg": "for a lamp"}
    call = function_call("ft_transfer_call", args, gas=100, deposit=1)
    sender.send(description, "alice.near", "gold.near", call)


def _send_swap(sender: TransactionSender, description: str, amount: int) -> None:
    step = {"pool_id": 0, "token_in": "gold.near", "token_out": "wrap.near", "min_amount_out": "1"}
    message = to_json({"actions": [step]}).decode()
    args = {"receiver_id": "dex.near", "amount": str(amount), "msg": message}
    call = function_call("ft_transfer_call", args, gas=150, deposit=1)
    sender.send(description, "ivan.near", "gold.near", call)


def _send_collection(sender: TransactionSender, name: str, title: str) -> None:
    metadata = {
        "spec": "nft-1.0.0",
        "name": title,
        "symbol": name.upper(),
        "base_uri": "ipfs://demo",
    }
    new = function_call("new", {"owner_id": "grace.near", "metadata": metadata}, gas=20)
    account_id = f"{name}.grace.near"
    batch = (
        CreateAccount(),
        Transfer(6 * NEAR),
        AddKey(sender.key(account_id).public_key),
        DeployContract(NonFungibleToken.code),
        new,
    )
    sender.send(f"a collection opened: {title}", "grace.near", account_id, *batch)


def _send_mint(
    sender: TransactionSender,
    name: str,
    token_id: str,
    receiver_id: str,
    title: str,
    *,
    copies: int | None,
) -> None:
    metadata: dict[str, Any] = {"title": title, "media": f"{token_id}.svg"}
    metadata |= {} if copies is None else {"copies": copies}
    args = {"token_id": token_id, "receiver_id": receiver_id, "metadata": metadata}
    call = function_call("nft_mint", args, gas=30, deposit="0.1 NEAR")
    sender.send(f"{title} minted", "grace.near", f"{name}.grace.near", call)


def _send_social(sender: TransactionSender, description: str, branch: dict[str, Any]) -> None:
    args = {"data": {"heidi.near": branch}}
    call = function_call("set", args, gas=60, deposit="0.1 NEAR")
    sender.send(f"{description} in the social database", "heidi.near", "social.near", call)


def _send_relayed(sender: TransactionSender, description: str, *, valid: bool) -> None:
    """Relay a token transfer that an account without NEAR signed (NEP-366)."""
    args = {"receiver_id": "alice.near", "amount": str(3 * GOLD)}
    call = function_call("ft_transfer", args, gas=15, deposit=1)
    secret = sender.key("kate.near")
    head = sender.world.chain.head.height
    delegate_action = DelegateAction(
        "kate.near",
        "gold.near",
        [call],
        sender.next_nonce("kate.near", secret),
        head + 100 if valid else head - 1,
        secret.public_key,
    )
    sender.send(description, "relay.near", "kate.near", delegate_action.sign(secret))
