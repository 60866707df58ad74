"""
The person world: one person who uses NEAR as people do, with the contracts that this takes.

Each part of the person's life is a `Part`: accounts of the genesis, then transactions.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from ledgerkit.localnet.contract_sdk import to_json
from ledgerkit.localnet.contracts.factory import TopLevelAccount
from ledgerkit.localnet.contracts.fungible_token import (
    SPEC,
    FungibleMetadata,
    FungibleToken,
    WrappedNear,
)
from ledgerkit.localnet.contracts.intents import Intents
from ledgerkit.localnet.contracts.lockup import Lockup
from ledgerkit.localnet.contracts.venear import Venear
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.world import World
from ledgerkit.localnet.worlds.builder import TransactionSender, WorldGenesis, function_call
from ledgerkit.protocol import CreateAccount, DeployContract, Transfer
from ledgerkit.protocol.signed_messages import OffchainMessage
from ledgerkit.units import yocto

NEAR = yocto("1 NEAR")
YEAR_NS = 365 * 86_400 * 10**9
PERSON = "maria.near"
POOL, LIQUID = "north.poolv1.near", "liquid.near"
VENEAR = "venear.dao"  # as on mainnet
# The hash of maria.near, below the contracts that create lockup contracts.
LOCKUP_ID, VENEAR_LOCKUP_ID = (
    f"{sha256(PERSON.encode()).hexdigest()[:40]}.{name}" for name in ("lockup.near", VENEAR)
)
WRAP, USDT = "wrap.near", "usdt.tether-token.near"
INTENTS, SOLVER = "intents.near", "solver.near"
DOLLARS = FungibleMetadata(spec=SPEC, name="Tether USD", symbol="USDt", decimals=6)


class Part(NamedTuple):
    """A part of the person's life, added after the parts before it."""

    accounts: Mapping[str, str]  # with their descriptions; the others are created later
    add: Callable[[WorldGenesis], None]
    send: Callable[[TransactionSender], None]
    contracts: Mapping[str, str | list[str]]  # by the names that `World.summary` uses


def open_person(seed: int, changes: Mapping[str, Any]) -> World:
    """Open the world after all of its transactions, with some of its settings changed."""
    genesis = WorldGenesis("person", seed)
    for part in PARTS:
        part.add(genesis)
    accounts = {name: text for part in PARTS for name, text in part.accounts.items()}
    contracts = {name: value for part in PARTS for name, value in part.contracts.items()}
    world = genesis.open(Settings(**changes), accounts, contracts)
    sender = TransactionSender(world, genesis)
    for part in PARTS:
        part.send(sender)
        world.settle()
    return world


# A wallet ----------------------------------------------------------------------------------


def _add_wallet(genesis: WorldGenesis) -> None:
    genesis.account(PERSON, 1_000 * NEAR, keys=[genesis.public_key(PERSON)])
    genesis.account("friend.near", 50 * NEAR, keys=[genesis.public_key("friend.near")])
    genesis.contract("near", 1_000_000 * NEAR, TopLevelAccount)


def _send_wallet(sender: TransactionSender) -> None:
    sender.send("a transfer to a friend", PERSON, "friend.near", Transfer(2 * NEAR))


# Staking -----------------------------------------------------------------------------------


def _add_stakes(genesis: WorldGenesis) -> None:
    genesis.staking_pool(POOL, "near", 500_000 * NEAR, {"friend.near": (30 * NEAR, 0)})
    genesis.liquid_staking("near", {"friend.near": 10 * NEAR}, [POOL])


def _send_stakes(sender: TransactionSender) -> None:
    stake = function_call("deposit_and_stake", gas=50, deposit="100 NEAR")
    sender.send("a stake with a pool", PERSON, POOL, stake)
    liquid = function_call("deposit_and_stake", gas=50, deposit="40 NEAR")
    sender.send("a stake through the liquid token", PERSON, LIQUID, liquid)


# Lockups -----------------------------------------------------------------------------------


def _add_lockups(genesis: WorldGenesis) -> None:
    genesis.account("lockup.near", 10_000 * NEAR, keys=[genesis.public_key("lockup.near")])
    genesis.contract(VENEAR, 100 * NEAR, Venear)


def _send_lockups(sender: TransactionSender) -> None:
    """Create a lockup contract that vests for four years, and one of House of Stake."""
    start_ns = sender.world.settings.genesis_time_ns - 2 * YEAR_NS
    times = {"start": start_ns, "cliff": start_ns + YEAR_NS, "end": start_ns + 4 * YEAR_NS}
    schedule = {f"{name}_timestamp": str(time) for name, time in times.items()}
    args = {
        "owner_account_id": PERSON,
        "lockup_duration": "0",
        "transfers_information": {
            "TransfersEnabled": {"transfers_timestamp": "1602614338293769340"}
        },
        "vesting_schedule": {"VestingSchedule": schedule},
        "staking_pool_whitelist_account_id": "lockup-whitelist.near",
        "foundation_account_id": "lockup.near",
    }
    creation = (CreateAccount(), Transfer(400 * NEAR), DeployContract(Lockup.code))
    new = function_call("new", args)
    sender.send("a lockup contract created", "lockup.near", LOCKUP_ID, *creation, new)
    register = function_call("storage_deposit", deposit="0.1 NEAR")
    deploy = function_call("deploy_lockup", gas=100, deposit="2 NEAR")
    sender.send("a House-of-Stake lockup created", PERSON, VENEAR, register, deploy)
    sender.world.settle()
    sender.send("NEAR to lock", PERSON, VENEAR_LOCKUP_ID, Transfer(60 * NEAR))
    for account_id, amount, deposit in ((LOCKUP_ID, 300, 0), (VENEAR_LOCKUP_ID, 25, 1)):
        pool_id = {"staking_pool_account_id": POOL}
        select = function_call("select_staking_pool", pool_id, gas=75, deposit=deposit)
        sender.send("a pool selected by a lockup contract", PERSON, account_id, select)
        sender.world.settle()
        staked = {"amount": str(amount * NEAR)}
        stake = function_call("deposit_and_stake", staked, gas=150, deposit=deposit)
        sender.send("a stake of a lockup contract", PERSON, account_id, stake)
        sender.world.settle()
    for method, amount in (("lock_near", 50), ("begin_unlock_near", 10)):
        change = function_call(method, {"amount": str(amount * NEAR)}, gas=50, deposit=1)
        sender.send("a change of locked NEAR", PERSON, VENEAR_LOCKUP_ID, change)
        sender.world.settle()


# NEAR Intents ------------------------------------------------------------------------------

SWAPPED, BOUGHT = 5 * NEAR, 12_500_000  # wNEAR for USDT, whose decimals are 6


def _add_intents(genesis: WorldGenesis) -> None:
    solver = {f"nep141:{WRAP}": 50 * NEAR, f"nep141:{USDT}": 1_000_000_000}
    holders = {PERSON: 20 * NEAR, INTENTS: 50 * NEAR}
    genesis.contract(WRAP, 70 * NEAR + NEAR, WrappedNear, WrappedNear.genesis(holders))
    dollars = FungibleToken.genesis("near", {INTENTS: 1_000_000_000, PERSON: 0}, DOLLARS)
    genesis.contract(USDT, 10 * NEAR, FungibleToken, dollars)
    keys = {SOLVER: [str(genesis.public_key(SOLVER))]}
    records = Intents.genesis(WRAP, {SOLVER: solver}, keys, fee=1, fee_collector="near")
    genesis.contract(INTENTS, 10 * NEAR, Intents, records)
    genesis.account(SOLVER, 10 * NEAR, keys=[genesis.public_key(SOLVER)])


def _send_intents(sender: TransactionSender) -> None:
    key = function_call(
        "add_public_key", {"public_key": str(sender.key(PERSON).public_key)}, deposit=1
    )
    sender.send("a key that signs intents", PERSON, INTENTS, key)
    args = {"receiver_id": INTENTS, "amount": str(10 * NEAR), "msg": ""}
    deposit = function_call("ft_transfer_call", args, gas=100, deposit=1)
    sender.send("a deposit of wNEAR with NEAR Intents", PERSON, WRAP, deposit)
    sender.world.settle()
    # Both amounts are before the fee of a millionth: 5 * 10^18 yoctoNEAR, and 13 units of USDT.
    wrap, dollars = f"nep141:{WRAP}", f"nep141:{USDT}"
    answer = {wrap: str(SWAPPED - 5 * 10**18), dollars: str(-BOUGHT - 13)}
    request = {wrap: str(-SWAPPED), dollars: str(BOUGHT)}
    withdrawal = {"token": USDT, "receiver_id": PERSON, "amount": "2500000"}
    signed = [
        _sign(sender, SOLVER, {"intent": "token_diff", "diff": answer}),
        _sign(
            sender,
            PERSON,
            {"intent": "token_diff", "diff": request, "referral": "app.near"},
            {"intent": "transfer", "receiver_id": "friend.near", "tokens": {dollars: "1000000"}},
            {"intent": "ft_withdraw", **withdrawal},
        ),
    ]
    call = function_call("execute_intents", {"signed": signed}, gas=300)
    sender.send("a swap with a solver, a gift and a withdrawal", INTENTS, INTENTS, call)


def _sign(sender: TransactionSender, signer_id: str, *intents: dict[str, Any]) -> dict[str, Any]:
    """Sign intents as wallets do (NEP-413)."""
    fields = {"signer_id": signer_id, "deadline": "2100-01-01T00:00:00Z", "intents": intents}
    nonce = sha256(signer_id.encode()).digest()
    message = OffchainMessage(to_json(fields).decode(), nonce, INTENTS)
    secret = sender.key(signer_id)
    return {
        "standard": "nep413",
        "payload": {
            "message": message.message,
            "nonce": b64encode(nonce).decode(),
            "recipient": INTENTS,
        },
        "public_key": str(secret.public_key),
        "signature": str(message.sign(secret)),
    }


PARTS = (
    Part(
        {
            PERSON: "the person",
            "friend.near": "a friend",
            "near": "creates accounts under near",
        },
        _add_wallet,
        _send_wallet,
        {},
    ),
    Part(
        {POOL: "a staking pool, which validates", LIQUID: "a liquid staking token"},
        _add_stakes,
        _send_stakes,
        {"pools": [POOL], "liquid": LIQUID},
    ),
    Part(
        {
            "lockup.near": "creates lockup contracts",
            VENEAR: "House of Stake: counts veNEAR, and creates lockup contracts",
        },
        _add_lockups,
        _send_lockups,
        {"venear": VENEAR},
    ),
    Part(
        {
            WRAP: "wrapped NEAR",
            USDT: "a token of dollars",
            INTENTS: "the verifier contract of NEAR Intents",
            SOLVER: "a solver, who swaps with the person",
        },
        _add_intents,
        _send_intents,
        {"wrap": WRAP, "intents": INTENTS},
    ),
)
