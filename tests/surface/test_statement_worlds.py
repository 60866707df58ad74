"""Statements of accounts whose transactions do not say all: gas keys that were deleted, rewards."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

import ledgerkit as lk
from ledgerkit.protocol import (
    AccessKey,
    AddKey,
    DeleteAccount,
    DeleteKey,
    DeterministicStateInit,
    GasKeyFullAccess,
    StateInit,
    Transfer,
    TransferToGasKey,
    deterministic_account_id,
)
from tests.local_transport import LocalTransport
from tests.lying_services import Hiding
from tests.unit.localnet.ledger import TGAS, Ledger, N, Script, do, public

KEY = f"gas_key:{public('gas')}"


def scripted() -> Ledger:
    """Open a world with people and contracts that do given steps."""
    names, scripts = ("ann.near", "ben.near", "x.ann.near"), ("s.near", "t.near")
    return Ledger(*names, scripts=scripts, boundaries=(), shard_ids=(0,))


def fund(ledger: Ledger, account_id: str, *keys: str, amount: int) -> None:
    access = AccessKey(0, GasKeyFullAccess(0, 2))
    adding = [AddKey(public(key), access) for key in keys]
    funding = [TransferToGasKey(public(key), amount) for key in keys]
    ledger.run(account_id, account_id, *adding, *funding)


def statement(ledger: Ledger, account_id: str) -> lk.Statement:
    """Return the statement of an account since genesis, and check that it adds up."""
    local = lk.connect(world=ledger.world, make_default=False)
    with local:
        whole = lk.statement(account_id, start=1000, progress=False, ledger=local)
    assert whole.facts.gaps == []
    assert set(whole.totals["missing"]) == {0}
    return whole


def test_a_refund_to_a_deleted_gas_key_is_the_accounts() -> None:
    """The key bought the gas, another transaction deleted it, and the rest went to the account."""
    # Source: nearcore, runtime/runtime/src/actions.rs: `action_transfer_or_implicit_account`.
    ledger = scripted()
    fund(ledger, "ann.near", "gas", amount=N)
    nonce = ledger.world.state().gas_key_nonce("ann.near", public("gas").packed, 0)
    assert nonce is not None
    ledger.send("ann.near", "s.near", do(), key="gas", version=1, nonce_index=0, nonce=nonce + 1)
    ledger.world.advance()
    ledger.run("ann.near", "ann.near", DeleteKey(public("gas")))
    whole = statement(ledger, "ann.near")
    by_asset = {asset: [e for e in whole.store if e.asset == asset] for asset in ("near", KEY)}
    assert [(e.cause, e.change > 0) for e in by_asset[KEY]] == [
        ("gas_key", True),
        ("fee", False),
        ("deleted", False),
    ]
    bought = -by_asset[KEY][1].change
    assert by_asset[KEY][2].change == bought - N
    refunds = [e for e in by_asset["near"] if e.cause == "fee" and 0 < e.change < bought]
    assert any(e.tx_hash == by_asset[KEY][1].tx_hash for e in refunds)


def test_a_refund_to_a_deleted_gas_key_is_found_by_the_node() -> None:
    """What no service lists of such a transaction leads to the entries of honest services."""
    ledger = scripted()
    fund(ledger, "ann.near", "gas", amount=N)
    nonce = ledger.world.state().gas_key_nonce("ann.near", public("gas").packed, 0)
    assert nonce is not None
    options = {"key": "gas", "version": 1, "nonce_index": 0, "nonce": nonce + 1}
    tx_hash = ledger.send("ann.near", "s.near", do(deposit=N), **options)
    ledger.world.advance()
    ledger.run("ann.near", "ann.near", DeleteKey(public("gas")))
    honest = statement(ledger, "ann.near")
    transport = Hiding(ledger.world, str(tx_hash), node_knows=True)
    with lk.connect("local", transport=transport, make_default=False) as local:
        hidden = lk.statement("ann.near", start=1000, progress=False, ledger=local)
    assert sorted(map(str, hidden.store)) == sorted(map(str, honest.store))
    assert hidden.gaps.empty


@pytest.mark.filterwarnings("ignore:the embedded ledger has no account")  # it was deleted
def test_the_gas_keys_of_a_deleted_account_are_burnt() -> None:
    """Its transaction does not say which of them had how much; their balances do."""
    ledger = scripted()
    fund(ledger, "x.ann.near", "gas", "other", amount=N // 5)
    ledger.run("x.ann.near", "x.ann.near", DeleteAccount("ben.near"))
    whole = statement(ledger, "x.ann.near")
    burnt = [e for e in whole.store if e.asset.startswith("gas_key") and e.cause == "deleted"]
    assert [(e.change, e.evidence) for e in burnt] == [(-N // 5, "proved")] * 2
    assert {e.asset for e in burnt} == {KEY, f"gas_key:{public('other')}"}
    assert whole.facts.closing == dict.fromkeys(whole.facts.opening, 0)


def deleted_with_refund(amount: int) -> list[Any]:
    """Return what happened to a key that holds an amount: a refund and its deletion in a block."""
    ledger = scripted()
    fund(ledger, "s.near", "gas", amount=amount)
    nonce = ledger.world.state().gas_key_nonce("s.near", public("gas").packed, 0)
    assert nonce is not None
    ledger.send("s.near", "t.near", do(), key="gas", version=1, nonce_index=0, nonce=nonce + 1)
    deletion = do(["batch", "end", "s.near", ["delete_account", "ben.near"]])
    ledger.send("ann.near", "s.near", deletion)
    ledger.world.settle()
    entries = [entry for entry in statement(ledger, "s.near").store if entry.asset == KEY]
    assert entries[2].block_height == entries[3].block_height
    return entries


@pytest.mark.filterwarnings("ignore:the embedded ledger has no account")  # it was deleted
def test_a_refund_is_burnt_with_its_gas_key() -> None:
    """A refund to a key that is deleted in the same block is not the account's, but burnt."""
    # Source: nearcore, runtime/runtime/src/actions.rs: `action_delete_account` burns the balances.
    whole = deleted_with_refund(N)
    bought, refund = -whole[1].change, whole[2].change
    emptied = deleted_with_refund(bought)
    assert [e.change for e in emptied] == [bought, -bought, refund, -refund]
    assert [e.change for e in whole] == [N, -bought, refund, bought - refund - N]
    assert (whole[3].cause, emptied[3].cause) == ("deleted", "deleted")


def test_a_failed_call_is_still_running_while_its_receipts_are() -> None:
    """Its result is a failure, but another of its promises has yet to pay the account."""
    ledger = scripted()
    ledger.world.adjust(real_time=True)  # and without a clock, so that no read produces a block
    steps: list[Any] = [["transfer", "payment", "ann.near", str(N)]]
    for _ in range(4):
        steps = [["call", "next", "s.near", steps]]
    failing = [["call", "failing", "t.near", [["panic", "no"]]], ["give", "failing"]]
    tx_hash = str(ledger.send("ann.near", "s.near", do(*failing, *steps, gas=300 * TGAS)))
    ledger.world.advance(6)
    with lk.connect(world=ledger.world, make_default=False) as local:
        trace = lk.trace(tx_hash, "ann.near", wait_until="NONE", ledger=local)
        early = lk.statement("ann.near", start=1000, progress=False, ledger=local)
        ledger.world.settle()
        late = early.extend(progress=False, ledger=local)
    assert (trace.verdict, early.facts.unfinished) == ("failed", [tx_hash])
    assert "still running at the end: 1 transaction" in repr(early)
    assert (late.facts.unfinished, late.facts.gaps) == ([], [])
    assert [e.change for e in late.store if e.cause == "transfer"] == [N]


class Unindexed(LocalTransport):
    """A transport to a world whose services list no transaction and no transfer."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(super().handle_request(request).read())
        nothing: dict[str, Any] = {
            "account_txs": [],
            "transfers": [],
            "resume_token": None,
            "txs_count": 0,
        }
        return httpx.Response(200, json={k: nothing.get(k, value) for k, value in body.items()})


def test_a_block_that_explains_a_part_of_a_gap_explains_nothing_of_it() -> None:
    """Three changes in a block of which one has a transaction: the others stay a gap."""
    ledger = scripted()
    for name in ("ann.near", "ben.near"):
        ledger.send(name, "x.ann.near", Transfer(N))
    ledger.world.advance()
    ledger.send("x.ann.near", "ann.near", Transfer(3 * N))
    start, before = ledger.world.chain.head.height, ledger.account("x.ann.near").amount
    ledger.world.advance()
    missing = ledger.account("x.ann.near").amount - before
    ledger.world.settle()
    with lk.connect("local", transport=Unindexed(ledger.world), make_default=False) as local:
        options: dict[str, Any] = {"progress": False, "ledger": local}
        part = lk.statement("x.ann.near", start=start + 1, stop=start + 2, **options)
    # The node knows the account's own transaction, and no service whose the other two are.
    own = sum(entry.change for entry in part.store)
    assert {entry.cause for entry in part.store} == {"transfer", "fee"}
    assert own + 2 * N == missing
    assert [(gap.stop_height, gap.missing) for gap in part.facts.gaps] == [(start + 1, 2 * N)]
    assert part.totals["missing"].tolist() == [2 * N]


@pytest.mark.filterwarnings("ignore:the embedded ledger has no account")  # it was deleted
@pytest.mark.parametrize("beneficiary_id", ["nobody.near", "ab" * 32, "x.ann.near"])
@pytest.mark.parametrize("first", [(), (Transfer(1),)])
def test_what_a_deletion_loses_is_named(beneficiary_id: str, first: tuple[Any, ...]) -> None:
    """Without the beneficiary, the balance is burnt: a simulation, the entry and a trace say so."""
    # Source: near/near-cli-rs, pull 596, and near/docs, issue 171.
    ledger = scripted()
    actions = [*first, DeleteAccount(beneficiary_id)]
    with lk.connect(world=ledger.world, make_default=False) as local:
        simulated = lk.simulate("x.ann.near", actions, signer_id="x.ann.near", ledger=local)
    ledger.run("x.ann.near", "x.ann.near", *actions)
    last = list(statement(ledger, "x.ann.near").store)[-1]
    assert (last.asset, last.cause) == ("near", "deleted")
    with lk.connect(world=ledger.world, make_default=False) as local:
        trace = lk.trace(str(last.tx_hash), "x.ann.near", ledger=local)
    lost = f"{-last.change / N:,.4f} NEAR was lost, because {beneficiary_id} does not exist."
    for each in (simulated, trace):
        assert each.headline().endswith(f"; {lost}")
        assert f"It succeeded, but {lost}" in each.explain()


@pytest.mark.filterwarnings("ignore:the embedded ledger has no account")  # it was deleted
def test_a_deletion_with_a_beneficiary_loses_nothing() -> None:
    """The refund of its gas comes too late, which is a part of the fee."""
    ledger = scripted()
    with lk.connect(world=ledger.world, make_default=False) as local:
        action = DeleteAccount("ann.near")
        trace = lk.simulate("x.ann.near", action, signer_id="x.ann.near", ledger=local)
        text = trace.explain()
    assert "leaving" in trace.headline()
    assert "lost" not in text
    assert "a refund of gas failed because its receiver no longer exists" in text


class RawPermissions(LocalTransport):
    """A transport to a node that writes the permission of a gas key in its raw form."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = super().handle_request(request).read()
        raw = re.sub(rb'("GasKeyFullAccess":)({[^}]*})', rb"\1[\2]", body)
        return httpx.Response(200, content=raw)


def test_the_balance_of_a_gas_key_in_its_raw_form_is_read() -> None:
    """The members of a permission may stand in an array; the balance is the same."""
    ledger = scripted()
    fund(ledger, "ann.near", "gas", amount=N)
    transport = RawPermissions(ledger.world)
    with lk.connect("local", transport=transport, make_default=False) as local:
        options: dict[str, Any] = {"assets": KEY, "progress": False, "ledger": local}
        totals = lk.statement("ann.near", start=1000, **options).totals
        assert lk.keys("ann.near", ledger=local)["balance"].dropna().tolist() == [N]
    assert totals[["closing", "missing"]].iloc[0].tolist() == [N, 0]


def test_the_reward_of_a_failed_call_of_a_deterministic_account_is_found() -> None:
    """Its transaction does not say whether the account existed; the block's changes do."""
    ledger = scripted()
    state_init = StateInit(Script.code_hash, {})
    account_id = str(deterministic_account_id(state_init))
    ledger.genesis.code(Script.code)
    ledger.world.store.global_codes.head[Script.code_hash.hex()] = {b"": Script.code_hash}
    ledger.run("ann.near", account_id, DeterministicStateInit(state_init, N))
    failing = DeterministicStateInit(state_init, 0), do(["panic", "no"])
    ledger.run("ann.near", account_id, *failing)
    whole = statement(ledger, account_id)
    rewards = [e for e in whole.store if e.cause == "gas_reward"]
    assert [e.evidence for e in rewards] == ["proved"]
    assert rewards[0].change > 0
