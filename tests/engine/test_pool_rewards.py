"""Rewards with pools that earn, of an account, its lockup contract and its liquid tokens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import base58
import httpx
import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit.localnet import U128, Contract, Genesis, Settings, World, call, view
from ledgerkit.localnet.contract_sdk import to_json
from ledgerkit.localnet.contracts.liquid_staking import LiquidStaking
from ledgerkit.localnet.contracts.staking_pool import StakingPool
from ledgerkit.localnet.fees import TGAS
from ledgerkit.protocol import FunctionCall, SecretKey, Transaction
from ledgerkit.reconciling import liquid_staking, lockups, rewards, stakes
from ledgerkit.reconciling.model import Block, Entry
from ledgerkit.reconciling.reconcile import BalanceReader
from ledgerkit.verbs.lockups import lockup_id
from tests.local_transport import LocalTransport
from tests.lying_services import Hiding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NEAR = 10**24
KEY = SecretKey.from_text("ed25519:" + base58.b58encode(bytes([9] * 32)).decode())
POOL, LIQUID = "north.poolv1.near", "liquid.near"


class Lockup(Contract):
    """A lockup contract as far as it stakes: near/core-contracts, `lockup/src/owner.rs`."""

    @view
    def get_staking_pool_account_id(self) -> str:
        return POOL

    @call
    def deposit_and_stake(self, amount: U128) -> None:
        """Stake an amount of the contract's own balance."""
        promise = self.vm.promise(POOL)
        promise.function_call("deposit_and_stake", b"", deposit=int(amount), gas=100 * TGAS)


class Chain:
    """A world with a pool, a liquid token and a lockup, and alice, who uses them."""

    def __init__(
        self,
        pool_class: type[StakingPool] = StakingPool,
        liquid_class: type[LiquidStaking] = LiquidStaking,
        owner_id: str = "owner.near",
        others: tuple[str, ...] = ("bob.near",),
    ) -> None:
        genesis, own = Genesis(), 100_000 * NEAR + 10**12
        genesis.account("alice.near", 10_000 * NEAR, keys=[KEY.public_key])
        genesis.account("bob.near", 10 * NEAR, keys=[KEY.public_key])
        genesis.account(lockup_id("alice.near"), 5_000 * NEAR, contract=Lockup)
        key = KEY.public_key
        stakes_of_others = dict.fromkeys(others, (NEAR, 0))
        pool = pool_class.genesis(owner_id, str(key), own, stakes_of_others)
        locked = (100_000 + len(others)) * NEAR
        genesis.account(
            POOL, 10**12, contract=pool_class, records=pool, locked=locked, validator_key=key
        )
        liquid = LiquidStaking.genesis("owner.near", {"bob.near": 5 * NEAR}, [POOL])
        genesis.account(LIQUID, 25 * NEAR, contract=liquid_class, records=liquid)
        self.world = World(Settings(genesis_height=1000, epoch_length=20), genesis)
        self.world.summary.contracts["liquid"] = LIQUID
        self.ledger = lk.connect("local", world=self.world, make_default=False)
        self.hashes: list[str] = []
        self.skip = 0  # heights before each block in which a call runs

    def call(
        self,
        contract_id: str,
        method: str,
        deposit: int = 0,
        signer_id: str = "alice.near",
        **args: Any,
    ) -> None:
        action = FunctionCall(method, to_json(args), 300 * TGAS, deposit)
        head = self.world.chain.head.hash
        transaction = Transaction(
            signer_id, KEY.public_key, len(self.hashes) + 1, contract_id, head, [action]
        )
        signed = transaction.sign(KEY)
        self.world.submit(signed)
        for _ in range(8 if self.skip else 0):
            self.world.advance(skip=self.skip)
        self.world.settle()
        self.hashes.append(str(signed.hash))

    def pass_epochs(self, count: int) -> None:
        for _ in range(count):
            height = self.world.epochs.current.height
            while self.world.epochs.current.height == height:
                self.world.advance()
            self.call(POOL, "ping")

    def flows(self, account_id: str) -> list[Entry]:
        """Return an account's deposits and withdrawals, from the receipts of all calls."""
        is_pool = stakes.pool_test([])
        traces = [lk.trace(h, "alice.near", ledger=self.ledger) for h in self.hashes]
        return [e for trace in traces for e in stakes.stake_entries(trace, account_id, is_pool)]

    def total(self, account_id: str) -> int:
        args, head = to_json({"account_id": account_id}), self.world.chain.head
        return int(
            json.loads(self.world.view(POOL, "get_account_total_balance", args, head).result)
        )

    def reader(self) -> BalanceReader:
        return BalanceReader(self.ledger, "alice.near", progress=False)

    def ends(self) -> tuple[Block, Block]:
        first, final = self.world.chain.genesis, self.world.chain.final
        return Block(first.height, first.timestamp_ns), Block(final.height, final.timestamp_ns)


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    """Stake, earn, unstake and withdraw through fifteen epochs."""
    chain = Chain()
    chain.pass_epochs(2)
    chain.call(POOL, "deposit_and_stake", 500 * NEAR)
    chain.call(LIQUID, "deposit_and_stake", 70 * NEAR)
    chain.call(LIQUID, "epoch_stake")
    chain.call(lockup_id("alice.near"), "deposit_and_stake", amount=str(300 * NEAR))
    chain.pass_epochs(3)
    chain.call(POOL, "deposit", 7 * NEAR)
    chain.call(POOL, "stake", amount=str(5 * NEAR))
    chain.call(LIQUID, "epoch_update_rewards", validator_id=POOL)
    chain.pass_epochs(2)
    chain.call(POOL, "unstake_all")
    chain.pass_epochs(5)
    chain.call(POOL, "withdraw_all")
    chain.pass_epochs(2)
    chain.world.advance(5)
    with chain.ledger:
        yield chain


def test_the_flows_are_what_was_deposited_and_withdrawn(chain: Chain) -> None:
    """Deposits are the attached ones; the withdrawal is what the pool transferred."""
    flows = chain.flows("alice.near")
    assert [entry.cause for entry in flows] == [
        *("stake", "stake", "stake", "unstake", "withdraw"),
    ]
    assert [entry.change for entry in flows[:4]] == [500 * NEAR, 7 * NEAR, 0, 0]
    trace = lk.trace(str(flows[-1].tx_hash), "alice.near", ledger=chain.ledger)
    moved = trace.transfers
    paid = moved[(moved["sender_id"] == POOL) & (moved["kind"] == "transfer")]["amount"]
    assert paid.tolist() == [-flows[-1].change]


def test_rewards_and_flows_add_up_to_the_balance(chain: Chain) -> None:
    """Rewards add up to all that was not deposited, and each is of one epoch of the chain."""
    flows, (start, stop) = chain.flows("alice.near"), chain.ends()
    rows = rewards.read_rewards(
        chain.ledger, "alice.near", [POOL], start, stop, flows, chain.reader()
    )
    assert sum(r.reward for r in rows) + sum(e.change for e in flows) == chain.total("alice.near")
    assert len(rows) > 5
    starts = [epoch.start_height for epoch in chain.world.epochs.all]
    whole = [row for row in rows if row.apy is not None]
    assert all(starts.index(r.stop_height) == starts.index(r.start_height) + 1 for r in whole)
    assert len(whole) > 5
    # An epoch pays a ten-thousandth of the stake, and the owner of the pool keeps a tenth. Where a
    # ping came late, two epochs are paid at once; a deposit would be a hundred times more.
    assert all(row.reward < row.total_before * 2 // 10_000 for row in rows if row.reward > 10)
    assert sum(row.deposits for row in rows) in {0, 7 * NEAR, 507 * NEAR}


def test_a_lockup_contract_is_followed(chain: Chain) -> None:
    """The rewards of the contract at the owner's hash are found, with its own deposit."""
    start, stop = chain.ends()
    rows = lockups.lockup_rewards(chain.ledger, "alice.near", start, stop, [])
    account_id = lockup_id("alice.near")
    assert rows
    assert {row.account_id for row in rows} == {account_id}
    assert sum(row.reward for row in rows) == chain.total(account_id) - 300 * NEAR
    assert lockups.lockup_rewards(chain.ledger, "bob.near", start, stop, []) == []


def test_a_recording_without_lockups_has_all_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an earlier version recorded is still answered; the lockups are noted as unknown."""
    path, note = tmp_path / "case.lk", "the recording does not say whether bob.near has the lockup"
    with monkeypatch.context() as earlier:
        earlier.setattr("ledgerkit.verbs.lockups.lockup_sources", lambda _network: {})
        with lk.connect("local", record=path, make_default=False) as ledger:
            totals = lk.statement("bob.near", ledger=ledger).totals
            positions = lk.staking("bob.near", positions=True, ledger=ledger)
    with lk.connect(path, make_default=False) as ledger:
        statement = lk.statement("bob.near", ledger=ledger)
        replayed = lk.staking("bob.near", positions=True, ledger=ledger)
    pd.testing.assert_frame_equal(statement.totals, totals)
    pd.testing.assert_frame_equal(replayed, positions)
    sentence = f"{note} {lockup_id('bob.near')}"
    assert sentence in repr(statement).splitlines()
    assert sentence in replayed.attrs["notes"]


def test_a_statement_notes_a_lockup_that_names_no_pool() -> None:
    """The rewards of a lockup without its contract may lack some, and the text says so."""
    genesis = Genesis()
    genesis.account("carol.near", 10 * NEAR, keys=[KEY.public_key])
    genesis.account(lockup_id("carol.near"), 5 * NEAR)
    world = World(Settings(), genesis)
    world.advance(5)
    with lk.connect("local", world=world, make_default=False) as ledger:
        lines = repr(lk.statement("carol.near", ledger=ledger)).splitlines()
    lockup = f"the lockup of carol.near, {lockup_id('carol.near')}, has the status no_contract"
    assert f"{lockup}: a pool that only its contract knows is not read" in lines


def test_a_lockup_contract_has_the_account_of_its_owner() -> None:
    """A lockup contract's account is made of the hash of its owner's."""
    # Source: the accounts of a developer of the wallet Narwallets, in its public repository.
    expected = "f481fe97dddaa46fcede6ea5d24e685066b123b5.lockup.near"
    assert lockup_id("luciotato.near") == expected


def test_the_gain_of_a_liquid_token_is_apart_from_transfers(chain: Chain) -> None:
    """What tokens are worth less what was paid for them is their gain, but for roundings."""
    start, stop = chain.ends()
    balances = lk.ft("alice.near", ledger=chain.ledger)
    balance = int(balances[balances["contract_id"] == LIQUID]["balance"].iloc[0])
    traces = [lk.trace(h, "alice.near", ledger=chain.ledger) for h in chain.hashes]
    entries = [
        Entry(change.height or 0, None, change.asset, "mint", change.change or 0)
        for trace in traces
        for change in trace.balance_timeline()
        if change.account_id == "alice.near" and change.asset == f"nep141:{LIQUID}"
    ]
    gains = liquid_staking.liquid_gains(chain.ledger, "alice.near", [LIQUID], start, stop, entries)
    head = chain.world.chain.final
    rate = int(json.loads(chain.world.view(LIQUID, "ft_price", b"{}", head).result))
    gain = sum(row.reward for row in gains)
    assert rate > NEAR
    assert abs(gain - (balance * rate // NEAR - 70 * NEAR)) <= 2 * len(gains)
    assert {row.pool_id for row in gains} == {LIQUID}


class Forgetful(LocalTransport):
    """A transport to services without documents, or without the transactions of transfers."""

    def __init__(self, world: World, path: str) -> None:
        super().__init__(world)
        self.path = path.encode()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        target: bytes = request.extensions.get("target") or request.url.raw_path
        response = super().handle_request(request)
        if not target.endswith(self.path):
            return response
        page = json.loads(response.read())
        for row in page.get("transfers", ()):
            row["transaction_id"] = None
        if "transactions" in page:
            page["transactions"] = []
        return httpx.Response(200, json=page)


@pytest.mark.parametrize("path", ["/v0/transactions", "/v0/transfers"])
def test_the_deposits_of_a_lockup_count_once(chain: Chain, path: str) -> None:
    """Whichever of the two services lacks something, a deposit is no reward, and no loss."""
    ends = chain.ends()
    expected = lockups.lockup_rewards(chain.ledger, "alice.near", *ends, [])
    with lk.connect("local", transport=Forgetful(chain.world, path), make_default=False) as ledger:
        assert lockups.lockup_rewards(ledger, "alice.near", *ends, []) == expected != []


def own_rewards(statement: lk.Statement) -> int:
    """Return the sum of alice's rewards with the pool."""
    entries = statement.entries
    is_own = (entries["cause"] == "staking_reward") & (entries["asset"] == f"stake:{POOL}")
    return int(entries[is_own]["change"].sum())


@pytest.mark.parametrize("method", ["deposit", "deposit_and_stake", "withdraw_all"])
def test_a_flow_that_no_service_lists_is_a_gap_and_no_reward(chain: Chain, method: str) -> None:
    """Without a deposit or a withdrawal in the services, all rewards are those with it."""
    honest = lk.statement("alice.near", 1000, ledger=chain.ledger, progress=False)
    [flow] = [
        entry
        for entry in chain.flows("alice.near")
        if entry.asset == f"stake:{POOL}" and entry.method_name == method
    ]
    transport = Hiding(chain.world, str(flow.tx_hash), node_knows=False)
    with lk.connect("local", transport=transport, make_default=False) as ledger:
        statement = lk.statement("alice.near", 1000, ledger=ledger, progress=False)
    assert own_rewards(statement) == own_rewards(honest) > 0
    gaps = statement.gaps[statement.gaps["asset"] == f"stake:{POOL}"]
    assert gaps["missing"].tolist() == [flow.change]


def test_a_transaction_that_no_service_lists_is_read_from_the_node(chain: Chain) -> None:
    """A block names the hash of what took NEAR: its entries are those of a service that knows."""
    honest = lk.statement("alice.near", 1000, ledger=chain.ledger, progress=False)
    [flow] = [e for e in chain.flows("alice.near") if e.method_name == "deposit"]
    transport = Hiding(chain.world, str(flow.tx_hash), node_knows=True)
    with lk.connect("local", transport=transport, make_default=False) as ledger:
        statement = lk.statement("alice.near", 1000, ledger=ledger, progress=False)
    assert statement.gaps.empty
    columns = ["block_height", "asset", "cause", "change", "tx_hash"]
    own, same = (
        sorted(map(str, each.entries[columns].to_numpy().tolist())) for each in (statement, honest)
    )
    assert own == same


class Unrated(LocalTransport):
    """A transport to a world whose liquid token had no rate at a height."""

    def __init__(self, world: World, height: int, method: bytes) -> None:
        super().__init__(world)
        self.height, self.method = height, method

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Call another method there, which states no rate."""
        body = request.read()
        if b"ft_price" in body and json.loads(body)["params"].get("block_id") == self.height:
            other = body.replace(b"ft_price", self.method)
            extensions = request.extensions
            headers = {"content-type": "application/json"}
            request = httpx.Request("POST", request.url, content=other, headers=headers)
            request.extensions = extensions
        return super().handle_request(request)


def test_a_liquid_token_that_once_had_no_rate(chain: Chain, subtests: pytest.Subtests) -> None:
    """Tokens that were bought before the contract stated a rate are no gain, and no error."""
    start, stop = chain.ends()
    entries = list(lk.statement("alice.near", 1000, ledger=chain.ledger, progress=False).store)
    bought = next(e.block_height for e in entries if e.asset == f"nep141:{LIQUID}" and e.change > 0)
    gains = liquid_staking.liquid_gains(chain.ledger, "alice.near", [LIQUID], start, stop, entries)
    expected = [row for row in gains if row.start_height >= bought]
    for method in (b"no_price", b"ft_metadata"):  # missing, and no amount
        transport = Unrated(chain.world, bought, method)
        with lk.connect("local", transport=transport, make_default=False) as ledger:
            later = liquid_staking.liquid_gains(
                ledger, "alice.near", [LIQUID], start, stop, entries
            )
        with subtests.test(method=method):
            assert later == expected != []


def test_a_statement_has_all_rewards_and_adds_up(chain: Chain) -> None:
    """Own rewards are entries too; those of the lockup and of tokens stand apart."""
    statement = lk.statement("alice.near", 1000, ledger=chain.ledger, progress=False)
    frame, entries = statement.rewards, statement.entries
    pairs = set(frame[["account_id", "pool_id"]].itertuples(index=False, name=None))
    account_id = lockup_id("alice.near")
    assert pairs == {("alice.near", POOL), (account_id, POOL), ("alice.near", LIQUID)}
    own = frame[(frame["account_id"] == "alice.near") & (frame["pool_id"] == POOL)]
    rewards_of_entries = entries[entries["cause"] == "staking_reward"]
    assert rewards_of_entries["change"].tolist() == own["reward"].tolist()
    totals = statement.totals
    assert totals["missing"].tolist() == [0] * len(totals)
    assert statement.gaps.empty


@pytest.mark.parametrize("method", ["unstake", "deposit_and_stake"])
def test_a_delegator_who_moves_stake_hides_no_reward(method: str) -> None:
    """
    A pool pays before it stakes or unstakes, so staked and unstaked the others grew as much.

    Who deposits grew more, and the lower growth of the idle one is the pool's.
    """
    # Source: near/core-contracts, `staking-pool/src/lib.rs` (each calls internal_ping first).
    is_unstaked = method == "unstake"
    chain = Chain(others=("bob.near",) if is_unstaked else ("bob.near", "carol.near"))
    chain.call(POOL, "deposit_and_stake", 500 * NEAR)
    chain.pass_epochs(2)
    height = chain.world.epochs.current.height
    while chain.world.epochs.current.height == height:
        chain.world.advance()
    amount = {"amount": str(NEAR // 2)} if is_unstaked else {"deposit": NEAR // 2}
    chain.call(POOL, method, signer_id="bob.near", **amount)
    with chain.ledger as ledger:
        statement = lk.statement("alice.near", 1000, ledger=ledger, progress=False)
    assert statement.gaps.empty
    assert own_rewards(statement) == chain.total("alice.near") - 500 * NEAR > 0
