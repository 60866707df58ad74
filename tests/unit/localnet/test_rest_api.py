"""What the REST API answers, path by path, over a small world whose transactions are executed."""

import gc
import json
import random
import weakref
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import pytest

from ledgerkit.localnet.contract_sdk import U128, view
from ledgerkit.localnet.contracts.fungible_token import (
    FungibleToken,
    FungibleTokenBase,
    WrappedNear,
)
from ledgerkit.localnet.contracts.liquid_staking import LiquidStaking
from ledgerkit.localnet.contracts.non_fungible_token import NonFungibleToken, TokenMetadata
from ledgerkit.localnet.contracts.staking_pool import StakingPool
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.indexer import Indexer
from ledgerkit.localnet.rest_api import respond
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.world import World
from ledgerkit.protocol import (
    AccessKey,
    AccountId,
    AddKey,
    CryptoHash,
    DeleteAccount,
    DeleteKey,
    DeployGlobalContract,
    FunctionCall,
    FunctionCallPermission,
    PublicKey,
    Transfer,
    UseGlobalContract,
    implicit_account_id,
)
from tests.unit.localnet.ledger import Ledger, Script, do, public

START = 1000
NEAR = 10**24
TGAS = 10**12
SAMPLES = Path(__file__).resolve().parents[3].parent / "shared" / "wire" / "samples" / "rest"


class Broken(FungibleTokenBase):
    """A token that no longer tells anybody's balance."""

    @view
    def ft_balance_of(self, account_id: AccountId) -> U128:
        self.vm.panic(f"no balance of {account_id}")


class Plain(Script):
    """A token that logs what it is told to, and returns the balances that it is told."""

    @view
    def ft_balance_of(self, account_id: str) -> bytes:
        return self.vm.storage_read(account_id.encode()) or b""


class Rich(Script):
    """A token of which everybody has nine."""

    @view
    def ft_balance_of(self, account_id: str) -> str:  # noqa: ARG002 - the standard's argument
        return "9"


ALICE, BOB, VALIDATOR = (public(name) for name in ("alice.near", "bob.near", "validator"))


def made_world(**settings) -> World:
    """Make a world of two people, two tokens, a broken one, a collection, two kinds of stake."""
    genesis = Genesis()
    limited = AccessKey(0, FunctionCallPermission(None, "ft.near"))
    genesis.account("alice.near", 100 * NEAR, keys=[ALICE])
    bob_keys: list[PublicKey | tuple[PublicKey, AccessKey]] = [
        BOB,
        (ALICE, limited),
    ]
    genesis.account("bob.near", 50 * NEAR, keys=bob_keys)
    tokens = {"alice.near": 1000, "bob.near": 70, "carol.near": 0}
    contracts = {
        "ft.near": (FungibleToken, FungibleToken.genesis("alice.near", tokens)),
        "broken.near": (Broken, FungibleToken.genesis("alice.near", {"bob.near": 3})),
        "wrap.near": (WrappedNear, WrappedNear.genesis({})),
        "liquid.near": (LiquidStaking, LiquidStaking.genesis("alice.near", {}, ["p.pool.near"])),
        "nft.near": (
            NonFungibleToken,
            NonFungibleToken.genesis("alice.near", [("1", "alice.near", TokenMetadata())]),
        ),
    }
    for account_id, (contract, records) in contracts.items():
        genesis.account(account_id, 30 * NEAR, contract=contract, records=records)
    delegators = {"alice.near": (5 * NEAR, 0)}
    genesis.account(
        "p.pool.near",
        30 * NEAR,
        contract=StakingPool,
        records=StakingPool.genesis("alice.near", str(VALIDATOR), 30 * NEAR, delegators),
        locked=35 * NEAR - 10**12,
        validator_key=VALIDATOR,
    )
    return World(Settings(genesis_height=START, **settings), genesis)


def send(world: World, signer_id: str, receiver_id: str, *actions) -> int:
    """Send a transaction; give the height at which its receipt was executed."""
    signed = world.submit_unsigned(signer_id, receiver_id, actions)
    world.settle()
    return executed(world, signed.hash)


def executed(world: World, tx_hash: CryptoHash) -> int:
    """Give the height at which a transaction's receipt was executed."""
    record = world.transaction(tx_hash)
    assert record is not None
    outcome = world.outcome(record.receipt.receipt_id)
    assert outcome is not None
    return outcome.block_height


def call(method_name: str, deposit: int = 1, **args) -> FunctionCall:
    return FunctionCall(method_name, json.dumps(args).encode(), 250 * TGAS, deposit)


def get(world: World, path: str):
    """Ask, and read the answer of a path that exists."""
    reply = respond(world, path)
    assert (reply.status, dict(reply.headers)["content-type"]) == (200, "application/json")
    return json.loads(reply.body)


# At genesis ---------------------------------------------------------------------------------


def test_ft() -> None:
    """Tokens stand by contract id, with the balance that each contract tells, or an empty text."""
    assert get(made_world(), "/v1/account/bob.near/ft") == {
        "account_id": "bob.near",
        "tokens": [
            {"balance": "", "contract_id": "broken.near", "last_update_block_height": None},
            {"balance": "70", "contract_id": "ft.near", "last_update_block_height": None},
        ],
    }


def test_full() -> None:
    """`full` has all lists and what the account itself holds, as texts and a number of bytes."""
    assert get(made_world(), "/v1/account/alice.near/full") == {
        "account_id": "alice.near",
        "nfts": [{"contract_id": "nft.near", "last_update_block_height": None}],
        "pools": [{"last_update_block_height": None, "pool_id": "p.pool.near"}],
        "state": {"balance": str(100 * NEAR), "locked": "0", "storage_bytes": 182},
        "tokens": [
            {"balance": "", "contract_id": "broken.near", "last_update_block_height": None},
            {"balance": "1000", "contract_id": "ft.near", "last_update_block_height": None},
        ],
    }


def test_lists() -> None:
    """Staking and NFT rows say when, version 0 lists ids alone."""
    world = made_world()
    assert {
        path: get(world, f"/{path}")
        for path in (
            "v1/account/alice.near/staking",
            "v1/account/alice.near/nft",
            "v0/account/alice.near/staking",
            "v0/account/alice.near/ft",
            "v0/account/alice.near/nft",
        )
    } == {
        "v1/account/alice.near/staking": {
            "account_id": "alice.near",
            "pools": [{"last_update_block_height": None, "pool_id": "p.pool.near"}],
        },
        "v1/account/alice.near/nft": {
            "account_id": "alice.near",
            "tokens": [{"contract_id": "nft.near", "last_update_block_height": None}],
        },
        "v0/account/alice.near/staking": {"account_id": "alice.near", "pools": ["p.pool.near"]},
        "v0/account/alice.near/ft": {
            "account_id": "alice.near",
            "contract_ids": ["broken.near", "ft.near"],
        },
        "v0/account/alice.near/nft": {
            "account_id": "alice.near",
            "contract_ids": ["nft.near"],
        },
    }


def test_unknown_account() -> None:
    """An account that nobody has heard of has empty lists and no state."""
    assert get(made_world(), "/v1/account/nobody.near/full") == {
        "account_id": "nobody.near",
        "nfts": [],
        "pools": [],
        "state": None,
        "tokens": [],
    }


def test_public_key() -> None:
    """A key has accounts of full access, all of them when asked, and the one it makes itself."""
    world = made_world()
    key = str(ALICE)
    own = implicit_account_id(key)
    full = {"account_ids": ["alice.near", own], "public_key": key}
    for path in (f"/v0/public_key/{key}", f"/v1/public_key/{quote(key, safe='')}"):
        assert get(world, path) == full
    assert get(world, f"/v1/public_key/{key.removeprefix('ed25519:')}") == full
    every = {"account_ids": ["alice.near", "bob.near", own], "public_key": key}
    assert get(world, f"/v0/public_key/{key}/all") == every
    assert get(world, f"/v1/public_key/{key}/all") == every


def test_top() -> None:
    """Holders stand by balance, zero ones too; a contract that is no token has none."""
    world = made_world()
    assert get(world, "/v1/ft/ft.near/top") == {
        "token_id": "ft.near",
        "accounts": [
            {"account_id": "alice.near", "balance": "1000"},
            {"account_id": "bob.near", "balance": "70"},
            {"account_id": "carol.near", "balance": "0"},
        ],
    }
    assert get(world, "/v1/ft/bob.near/top") == {"token_id": "bob.near", "accounts": []}


def test_top_is_cut() -> None:
    """No more than the hundred largest holders are told."""
    genesis = Genesis()
    holders = {f"a{number}.near": number for number in range(150)}
    records = FungibleToken.genesis("a0.near", holders)
    genesis.account("ft.near", 10 * NEAR, contract=FungibleToken, records=records)
    accounts = get(World(Settings(), genesis), "/v1/ft/ft.near/top")["accounts"]
    assert accounts[0] == {"account_id": "a149.near", "balance": "149"}
    assert accounts[-1] == {"account_id": "a50.near", "balance": "50"}
    assert len(accounts) == 100


# After transactions -------------------------------------------------------------------------


def test_transfer_shows_when_final() -> None:
    """A transfer shows once its block is final, for both, with that block's height."""
    world = made_world()
    before = get(world, "/v1/account/bob.near/ft")
    signed = world.submit_unsigned(
        "alice.near", "ft.near", [call("ft_transfer", receiver_id="bob.near", amount="30")]
    )
    world.advance(2)
    height = executed(world, signed.hash)
    assert height == world.chain.head.height
    world.advance()
    assert get(world, "/v1/account/bob.near/ft") == before
    world.advance()
    assert world.chain.final.height == height
    assert get(world, "/v1/account/bob.near/ft")["tokens"][1] == {
        "balance": "100",
        "contract_id": "ft.near",
        "last_update_block_height": height,
    }
    assert get(world, "/v1/ft/ft.near/top")["accounts"][0]["balance"] == "970"


def test_failed_transfer() -> None:
    """A transfer that fails changes no row."""
    world = made_world()
    before = get(world, "/v1/account/bob.near/ft")
    send(
        world,
        "alice.near",
        "ft.near",
        call("ft_transfer", receiver_id="bob.near", amount="1001"),
    )
    assert get(world, "/v1/account/bob.near/ft") == before


def test_registration_and_wrapping() -> None:
    """Registering lists a token with a balance of 0; wrapping, which logs no event, shows."""
    world = made_world()
    registration = 1250000000000000000000
    send(
        world,
        "alice.near",
        "ft.near",
        call("storage_deposit", registration, account_id="dave.near"),
    )
    height = send(world, "bob.near", "wrap.near", call("near_deposit", NEAR))
    send(world, "alice.near", "wrap.near", call("storage_deposit", registration))
    assert get(world, "/v1/account/alice.near/ft")["tokens"][-1]["balance"] == "0"
    [row] = get(world, "/v1/account/dave.near/ft")["tokens"]
    assert (row["contract_id"], row["balance"]) == ("ft.near", "0")
    assert get(world, "/v1/account/bob.near/ft")["tokens"][2] == {
        "balance": str(NEAR - registration),
        "contract_id": "wrap.near",
        "last_update_block_height": height,
    }


def test_collections() -> None:
    """Minting and giving away make rows for both owners, and the first keeps the row."""
    world = made_world()
    minted = send(
        world,
        "alice.near",
        "nft.near",
        call("nft_mint", NEAR, token_id="2", receiver_id="bob.near", metadata={"title": "two"}),
    )
    assert get(world, "/v1/account/bob.near/nft")["tokens"] == [
        {"contract_id": "nft.near", "last_update_block_height": minted}
    ]
    given = send(
        world,
        "bob.near",
        "nft.near",
        call("nft_transfer", receiver_id="eve.near", token_id="2"),
    )
    rows = [{"contract_id": "nft.near", "last_update_block_height": given}]
    assert get(world, "/v1/account/bob.near/nft")["tokens"] == rows
    assert get(world, "/v1/account/eve.near/nft")["tokens"] == rows


def test_staking() -> None:
    """Who deposits into a pool has it among the pools, with the height of the last such call."""
    world = made_world()
    send(world, "bob.near", "p.pool.near", call("ping", 0))
    assert get(world, "/v1/account/bob.near/staking")["pools"] == []
    for action in (call("deposit_and_stake", 2 * NEAR), call("unstake", 0, amount="1")):
        height = send(world, "bob.near", "p.pool.near", action)
        assert get(world, "/v1/account/bob.near/staking")["pools"] == [
            {"last_update_block_height": height, "pool_id": "p.pool.near"}
        ]


def test_liquid_staking() -> None:
    """A liquid staking contract is a token of who deposits, no pool, and itself has a pool."""
    world = made_world(epoch_length=20)
    height = send(world, "bob.near", "liquid.near", call("deposit_and_stake", 2 * NEAR))
    found = get(world, "/v1/account/bob.near/full")
    assert found["pools"] == []
    assert found["tokens"][2] == {
        "balance": str(2 * NEAR),
        "contract_id": "liquid.near",
        "last_update_block_height": height,
    }
    world.advance(20)  # it settles with pools once in an epoch
    send(world, "bob.near", "liquid.near", call("epoch_stake", 0))
    [row] = get(world, "/v1/account/liquid.near/staking")["pools"]
    assert row["pool_id"] == "p.pool.near"


def test_first_asked_late() -> None:
    """Where old states are forgotten, an index that is first asked for later knows the same."""
    early = made_world(archival=False, epoch_length=10, epochs_kept=2)
    late = made_world(archival=False, epoch_length=10, epochs_kept=2)
    get(early, "/v1/account/bob.near/full")
    for world in (early, late):
        send(world, "bob.near", "wrap.near", call("near_deposit", NEAR))
        send(world, "bob.near", "bob.near", DeleteKey(ALICE))
        world.advance(100)
        assert world.chain.earliest.height > START + 60
    for path in (
        "/v1/account/bob.near/full",
        "/v1/ft/wrap.near/top",
        f"/v1/public_key/{ALICE}/all",
    ):
        assert get(early, path) == get(late, path)


def test_deleted_account() -> None:
    """Of a deleted account the state and the keys are gone; what it ever held stays listed."""
    world = made_world()
    send(world, "bob.near", "bob.near", DeleteKey(ALICE))
    own = str(implicit_account_id(ALICE))
    every = get(world, f"/v1/public_key/{ALICE}/all")
    assert every["account_ids"] == ["alice.near", own]
    send(world, "bob.near", "bob.near", DeleteAccount("alice.near"))
    own = str(implicit_account_id(BOB))
    assert get(world, f"/v1/public_key/{BOB}/all")["account_ids"] == [own]
    found = get(world, "/v1/account/bob.near/full")
    assert found["state"] is None
    assert found["tokens"][1]["balance"] == "70"


def test_implicit_account() -> None:
    """The account that a transfer makes of a key is named once among the key's accounts."""
    world = made_world()
    key = public("somebody")
    own = str(implicit_account_id(key))
    send(world, "alice.near", own, Transfer(NEAR))
    assert get(world, f"/v1/public_key/{key}")["account_ids"] == [own]
    state = get(world, f"/v1/account/{own}/full")["state"]
    assert state == {"balance": str(NEAR), "locked": "0", "storage_bytes": 182}


def test_keys_come_and_go() -> None:
    """An added key is found after its block; a deleted one, or one made limited, is not."""
    ledger = Ledger("alice.near")
    key, own = public("k"), str(implicit_account_id(public("k")))
    limited = AccessKey(0, FunctionCallPermission(1, "dex.near"))
    for action, found in (
        (AddKey(key), ["alice.near", own]),
        (DeleteKey(key), [own]),
        (AddKey(key, limited), [own]),
    ):
        ledger.run("alice.near", "alice.near", action)
        assert get(ledger.world, f"/v0/public_key/{key}")["account_ids"] == found
    every = get(ledger.world, f"/v0/public_key/{key}/all")["account_ids"]
    assert every == ["alice.near", own]
    other = PublicKey("secp256k1", bytes(64))  # which makes no account
    assert get(ledger.world, f"/v0/public_key/{other}")["account_ids"] == []


# Events and what tokens return --------------------------------------------------------------


def event(name: str, *rows: Mapping[str, object], standard: str = "nep141") -> list[str]:
    data = {"standard": standard, "version": "1.0.0", "event": name, "data": rows}
    return ["log", "EVENT_JSON:" + json.dumps(data)]


@pytest.fixture
def ledger() -> Ledger:
    """Start a chain with a contract that does as it is told."""
    genesis = Genesis()
    genesis.account("ft.near", 1000 * NEAR, contract=Plain)
    return Ledger("alice.near", "author.near", "user.near", genesis=genesis)


def holders(ledger: Ledger, contract_id: str = "ft.near") -> dict[str, str]:
    """Return the holders of a token, in their order, with their balances."""
    rows = get(ledger.world, f"/v1/ft/{contract_id}/top")["accounts"]
    return {row["account_id"]: row["balance"] for row in rows}


def test_other_records_at_genesis() -> None:
    """Records that only begin like those named after accounts name nobody."""
    keys = (b"a", b"audit", b"a\xff\xff", b"a\4\0\0\0abc", b"a\1\0\0\0\xff")
    records = [*FungibleToken.genesis("owner.near", {}), *((key, b"") for key in keys)]
    genesis = Genesis()
    genesis.account("ft.near", 10 * NEAR, contract=FungibleToken, records=records)
    assert holders(Ledger(genesis=genesis)) == {"owner.near": "0"}


def test_token_events(ledger: Ledger) -> None:
    """Mint, burn and transfer make rows for their parties, with the height of their block."""
    outcome = ledger.run(
        "alice.near",
        "ft.near",
        do(
            event("ft_mint", {"owner_id": "a.near", "amount": "1"}),
            event("ft_transfer", {"old_owner_id": "b.near", "new_owner_id": "c.near"}),
            event("ft_burn", {"owner_id": "d.near", "amount": "1"}, {"owner_id": "e.near"}),
        ),
    )
    assert list(holders(ledger)) == [f"{name}.near" for name in "abcde"]
    [row] = get(ledger.world, "/v1/account/e.near/ft")["tokens"]
    assert row["last_update_block_height"] == outcome.block_height
    assert get(ledger.world, "/v1/account/e.near/nft")["tokens"] == []


def test_malformed_events(ledger: Ledger) -> None:
    """A log that is no event of a known kind, or of a failed receipt, names nobody."""
    owner = {"owner_id": "a.near"}
    logs = [
        ["log", "EVENT_JSON:"],
        ["log", "EVENT_JSON:{"],
        ["log", 'EVENT_JSON:{"standard":"nep141","event":"ft_mint","data":{"owner_id":"a.near"}}'],
        ["log", 'EVENT_JSON:{"standard":"nep141","event":"ft_mint","data":["a.near"]}'],
        ["log", 'EVENT_JSON:{"standard":"nep141","event":"ft_mint"}'],
        ["log", "EVENT_JSON:" + "[" * 10_000],
        ["log", 'event {"standard":"nep141","event":"ft_mint","data":[{"owner_id":"a.near"}]}'],
        event("ft_mint", {"owner_id": 7}),
        event("ft_mint", {"owner_id": "A"}),
        event("nft_mint", owner),
        event("mt_mint", owner, standard="nep245"),
    ]
    good = event("ft_mint", {"owner_id": "ok.near"})
    spaced = [good[0], good[1].replace(":", ":  ", 1).replace("ok.", "spaced.")]
    ledger.run("alice.near", "ft.near", do(*logs, good, spaced))
    ledger.run("alice.near", "ft.near", do(event("ft_mint", owner), ["panic", "no"]))
    assert holders(ledger) == {"ok.near": "", "spaced.near": ""}


def test_holders_stand_by_balance(ledger: Ledger) -> None:
    """As numbers, equal ones by id; where a contract returns no digits, the balance is empty."""
    returned = {
        "b.near": '"9"',
        "a.near": '"9"',
        "c.near": '"10"',
        "d.near": '"0"',
        "n0.near": "",
        "n1.near": "5",
        "n2.near": '"-5"',
        "n3.near": '"0x5"',
        "n4.near": "null",
        "n5.near": '"\u00b2"',
        "n6.near": '"' + "9" * 5000 + '"',
    }
    writes = [["write", name, text] for name, text in returned.items()]
    minted = event("ft_mint", *({"owner_id": name} for name in returned))
    ledger.run("alice.near", "ft.near", do(*writes, minted))
    good = {"c.near": "10", "a.near": "9", "b.near": "9", "d.near": "0"}
    expected = good | {name: "" for name in returned if name.startswith("n")}
    assert list(holders(ledger).items()) == list(expected.items())
    assert holders(ledger, "other.near") == {}


def test_a_republished_global_contract(ledger: Ledger) -> None:
    """When a global contract changes, the balances of who uses it are read again."""
    publish = DeployGlobalContract(Plain.code, "AccountId")
    ledger.run("author.near", "author.near", publish)
    ledger.run("user.near", "user.near", UseGlobalContract("author.near"))
    steps = ["write", "a.near", '"5"'], event("ft_mint", {"owner_id": "a.near"})
    ledger.run("alice.near", "user.near", do(*steps))
    assert holders(ledger, "user.near") == {"a.near": "5"}
    ledger.run("author.near", "author.near", DeployGlobalContract(Rich.code, "AccountId"))
    assert holders(ledger, "user.near") == {"a.near": "9"}


# Lagging ------------------------------------------------------------------------------------


def test_balances_that_lag() -> None:
    """With a lag a new holder's balance is null at first, and an old one's is an older balance."""
    world = made_world(balance_lag=3)
    height = send(world, "bob.near", "wrap.near", call("near_deposit", NEAR))
    assert world.chain.final.height == height + 2
    row = get(world, "/v1/account/bob.near/ft")["tokens"][2]
    assert (row["balance"], row["last_update_block_height"]) == (None, height)
    world.advance()
    row = get(world, "/v1/account/bob.near/ft")["tokens"][2]
    assert row["balance"] == str(NEAR - 1250000000000000000000)
    height = send(world, "bob.near", "wrap.near", call("near_deposit", NEAR))
    late = get(world, "/v1/account/bob.near/ft")["tokens"][2]
    assert late == row | {"last_update_block_height": height}


def test_index_equals_state() -> None:
    """After many transfers every balance told is the one that the contract keeps."""
    world = made_world()
    chance = random.Random(4)  # noqa: S311 - the same transfers each time
    people = ("alice.near", "bob.near")
    for number in range(30):
        sender = chance.choice(people)
        receiver = chance.choice([name for name in (*people, "carol.near") if name != sender])
        amount = str(chance.randrange(1, 200))
        send(
            world,
            sender,
            "ft.near",
            call("ft_transfer", receiver_id=receiver, amount=amount),
        )
        if number % 7:
            continue
        told = {
            row["account_id"]: row["balance"]
            for row in get(world, "/v1/ft/ft.near/top")["accounts"]
        }
        kept = {
            account_id: json.loads(
                world.view(
                    "ft.near",
                    "ft_balance_of",
                    json.dumps({"account_id": account_id}).encode(),
                    world.chain.head,
                ).result
            )
            for account_id in (*people, "carol.near")
        }
        assert told == kept


# How far it is ------------------------------------------------------------------------------


def test_status() -> None:
    """The status tells both blocks, the time of the first as a text, and how far behind it is."""
    world = made_world(indexer_lag=2, balance_lag=1)
    world.advance(6)
    assert get(world, "/status") == {
        "sync_balance_block_height": START + 1,
        "sync_block_height": START + 2,
        "sync_block_timestamp_nanosec": "1785542401200000000",
        "sync_latency_sec": 2.4,
        "version": "0.10.0",
    }


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "ok"),
        ({"indexer_lag": 14}, "ok"),
        ({"indexer_lag": 15}, "HighSyncLatency { latency: 10.2, max_latency: 10.0 }"),
        ({"balance_lag": 3}, "ok"),
        (
            {"balance_lag": 4},
            "HighSyncBlockDiff { sync_difference: 4, max_sync_difference: 3 }",
        ),
    ],
    ids=["near", "ten seconds", "late", "balances near", "balances late"],
)
def test_health(settings: dict[str, int], told: str) -> None:
    """An index more than ten seconds late, or whose balances are four blocks late, says so."""
    world = made_world(**settings)
    world.advance(30)
    assert get(world, "/health") == {"status": told}


# What is refused ----------------------------------------------------------------------------


def test_invalid_argument(subtests: pytest.Subtests) -> None:
    """A malformed id or key is refused with a JSON text, also one encoded twice."""
    cases = [
        "/v1/account/A.near/full",
        "/v1/account/a/ft",
        f"/v0/account/{'a' * 65}/nft",
        "/v1/account/a..near/staking",
        "/v1/account/a%2Fb/staking",
        "/v1/account/%ff%fe/ft",
        "/v1/ft/-/top",
        "/v1/public_key/ed25519:abc",
        "/v0/public_key/rsa:abc/all",
        f"/v1/public_key/{quote(quote(str(ALICE), safe=''), safe='')}",
    ]
    for path in cases:
        with subtests.test(path=path):
            reply = respond(made_world(), path)
            assert (reply.status, reply.body) == (400, b'"Invalid argument"')


def test_unknown_path(subtests: pytest.Subtests) -> None:
    """A path that there is not has no body."""
    cases = [
        "",
        "/",
        "/v1",
        "/v1/account/alice.near",
        "/v1/account/alice.near/",
        "/v1/account/alice.near/ft/",
        "/v1/account//ft",
        "/v0/account/alice.near/full",
        "/v0/ft/ft.near/top",
        "/v2/account/alice.near/ft",
        "/v1/account/alice.near/keys",
        "/v1/public_key/",
        "/status/",
        "/metrics",
    ]
    for path in cases:
        with subtests.test(path=path):
            reply = respond(made_world(), path)
            assert (reply.status, reply.body) == (404, b"")


# The rest -----------------------------------------------------------------------------------


def test_one_index_a_world() -> None:
    """A world has one index, which does not keep it alive."""
    world = made_world()
    assert Indexer.of(world) is Indexer.of(world)
    assert Indexer.of(world) is not Indexer.of(made_world())
    gone = weakref.ref(world)
    del world
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the recorded answers are not here")
@pytest.mark.parametrize(
    ("sample", "path"),
    [
        ("health", "/health"),
        ("status", "/status"),
        ("v0_public_key_root.near", f"/v0/public_key/{ALICE}"),
        ("v1_account_ft_here.tg", "/v1/account/alice.near/ft"),
        ("v1_account_full_here.tg", "/v1/account/alice.near/full"),
        ("v1_account_nft_sharddog.near", "/v1/account/alice.near/nft"),
        ("v1_account_staking_mob.near", "/v1/account/alice.near/staking"),
        ("v1_ft_top_first.tkn.near", "/v1/ft/ft.near/top"),
    ],
)
def test_members_as_recorded(sample: str, path: str) -> None:
    """An answer has the members of a recorded one, in its order, and in its rows too."""
    recorded = json.loads((SAMPLES / f"{sample}.json").read_text())
    answered = get(made_world(), path)
    assert list(answered) == list(recorded)
    for name, value in recorded.items():
        if isinstance(value, dict):
            assert list(answered[name]) == list(value)
        elif isinstance(value, list) and isinstance(value[0], dict):
            assert list(answered[name][0]) == list(value[0])
        else:
            assert type(answered[name]) is type(value)
