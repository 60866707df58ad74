"""What holds in every world, whatever happens: nothing is lost, nothing happens twice."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from ledgerkit.localnet.chain_types import ActionReceipt, DataReceipt, Failure, Receipt
from ledgerkit.localnet.rpc.outcomes import find_execution
from ledgerkit.localnet.services import documents
from ledgerkit.localnet.services.transaction_index import TransactionIndex
from ledgerkit.localnet.state import split_nonce_key
from ledgerkit.protocol import (
    CryptoHash,
    DelegateV2,
    FullAccess,
    GasKeyFullAccess,
    PublicKey,
    TransferToGasKey,
    UniversalStateInit,
    WithdrawFromGasKey,
    implicit_account_id,
)
from ledgerkit.protocol.access_keys import GasKey
from ledgerkit.protocol.actions import KINDS
from tests.unit.localnet.chaos import TOKEN, Chaos
from tests.unit.localnet.ledger import is_postponed

SEEDS = (1, 2, 3, 5)  # of each version of the protocol, length of epoch and kind of layout
TRANSACTIONS = 1000


def check_supply(chaos):
    """Assert that no yoctoNEAR came from nowhere or was lost."""
    world = chaos.world
    assert world.total_supply() == chaos.genesis.total_supply + world.minted - world.burnt
    assert all(
        held[b""].amount >= 0 and held[b""].locked >= 0
        for held in world.store.accounts.head.values()
        if held
    )
    assert all(
        key.permission.balance >= 0
        for keys in world.store.access_keys.head.values()
        for key in keys.values()
        if isinstance(key.permission, GasKey)
    )


def snapshot(state, names):
    return {
        name: (account, keys(state, name), dict(state.records(name)))
        for name in names
        if (account := state.account(name)) is not None
    }


def keys(state, name):
    """Gather an account's access keys, with the nonces of its gas keys."""
    return {
        packed: (key, state.gas_key_nonces(name, packed)) for packed, key in state.access_keys(name)
    }


@pytest.fixture(scope="module", params=SEEDS, ids=str)
def chaos(request):
    """Return a world after a thousand transactions, in which all that can has ended."""
    made = Chaos(request.param)
    while made.made < TRANSACTIONS:
        made.block()
        check_supply(made)
        made.indexer.catch_up()
        TransactionIndex.of(made.world)
        known = list(made.world.store.accounts.head)
        made.kept[made.world.chain.head.height] = snapshot(made.world.state(), known)
    made.world.advance(made.settings.yield_timeout + 2)
    made.world.settle()
    made.indexer.catch_up()
    return made


def outcomes(world):
    return [o for block in world.chain.blocks() for o in world.chain.outcomes_at(block.height)]


def test_much_happens(chaos):
    """The worlds are no quiet ones: calls that wait, fail, create and delete are in each."""
    found = outcomes(chaos.world)
    failed = [o for o in found if isinstance(o.status, Failure)]
    kinds = Counter(
        next(iter(kind)) if isinstance(kind, dict) else kind
        for kind in (o.status.error["ActionError"]["kind"] for o in failed)
    )
    receipts = chaos.world.receipts()
    assert len(found) > 2000
    assert len(kinds) >= 8
    assert sum(isinstance(receipt, DataReceipt) for receipt in receipts) > 50
    assert sum(isinstance(r, ActionReceipt) and r.is_promise_yield for r in receipts) > 5


def test_each_action_succeeds(chaos):
    """Each kind of action is executed in each world, and gas keys sign where there are any."""
    world = chaos.world
    executed = {
        type(action)
        for receipt in world.receipts()
        if isinstance(receipt, ActionReceipt)
        and (outcome := world.outcome(receipt.receipt_id)) is not None
        and not isinstance(outcome.status, Failure)
        for action in receipt.actions
    }
    later: set[type] = {TransferToGasKey, WithdrawFromGasKey} if not chaos.has_gas_keys else set()
    later |= {DelegateV2} if chaos.settings.profile != "86" else set()
    later |= {UniversalStateInit} if chaos.settings.profile != "87" else set()
    assert executed == {kind.action for kind in KINDS} - later
    signed = [tx for block in world.chain.blocks() for tx in new(block)]
    by_gas_keys = [tx for tx in signed if tx.transaction.nonce_index is not None]
    assert (len(by_gas_keys) > 20) is chaos.has_gas_keys
    assert any(
        outcome.tokens_burnt > 10**23 and outcome.gas_burnt < 10**14 for outcome in outcomes(world)
    )


def test_no_token_is_lost(chaos):
    """Accounts and what is under way are genesis, plus minted, less burnt, after each block."""
    check_supply(chaos)
    assert chaos.world.value_in_receipts() == 0
    assert chaos.world.chain.head.total_supply == chaos.world.total_supply()


def test_the_transactions_service_lists_each_receipt(chaos):
    """Read block by block, it has the receipts and outcomes that a node has of a transaction."""
    index = TransactionIndex.of(chaos.world)
    executed = 0
    for entry in index.blocks.values():
        for transaction in entry.transactions:
            execution = find_execution(chaos.world, transaction.record.signed.hash)
            assert execution is not None
            ids = [row.appearance.receipt.receipt_id for row in transaction.receipts]
            assert sorted(ids) == sorted(outcome.id for outcome in execution.outcomes)
            assert transaction.missing == len(execution.missing)
            assert [row.block.height for row in transaction.receipts] == [
                chaos.world.outcome(receipt_id).block_height for receipt_id in ids
            ]
            data: list[Any] = [row.appearance.receipt for row in transaction.data_receipts]
            receipts: list[Any] = [row.appearance.receipt for row in transaction.receipts]
            used = [each.data_id for each in data]
            assert used == [data_id for each in receipts for data_id in each.input_data_ids]
            assert (documents.document(transaction)["receipts"] == []) is (not ids)
            assert {each.receiver_id for each in receipts} <= set(transaction.roles)
            executed += len(ids)
    assert executed > 1000


def test_everything_happens_once(chaos):
    """Each receipt has one outcome, or waits for data; each transaction is in one chunk."""
    world = chaos.world
    executed = Counter(outcome.id for outcome in outcomes(world))
    assert set(executed.values()) == {1}
    for receipt in world.receipts():
        if isinstance(receipt, ActionReceipt):
            done = world.outcome(receipt.receipt_id) is not None
            assert done is not is_postponed(world, receipt.receipt_id)
    included = Counter(tx.hash for block in world.chain.blocks() for tx in new(block))
    assert set(included.values()) == {1}
    assert all(world.outcome(tx_hash) is not None for tx_hash in included)
    actions = {r.receipt_id for r in world.receipts() if isinstance(r, ActionReceipt)}
    assert executed.keys() <= actions | included.keys()


def new(block):
    return [
        tx
        for chunk in block.chunks
        if chunk.height_included == block.height
        for tx in chunk.transactions
    ]


def test_every_receipt_travels_once(chaos):
    """It is in one chunk, but for local ones and yields, which never leave their shard."""
    world = chaos.world
    sent = Counter(
        receipt.receipt_id
        for block in world.chain.blocks()
        for chunk in block.chunks
        if chunk.height_included == block.height
        for receipt in chunk.receipts
    )
    assert set(sent.values()) == {1}
    local = {
        record.receipt.receipt_id
        for block in world.chain.blocks()
        for tx in new(block)
        if (record := world.transaction(tx.hash)) is not None and record.is_local
    }
    for receipt in world.receipts():
        stays = receipt.receipt_id in local
        stays |= isinstance(receipt, ActionReceipt) and receipt.is_promise_yield
        assert (receipt.receipt_id in sent) is not stays


def test_no_effect_comes_before_its_cause(chaos):
    """A child's block is after its parent's; a local receipt's is its transaction's."""
    world = chaos.world
    parents: dict[CryptoHash, int] = {}
    for outcome in outcomes(world):
        record = world.transaction(outcome.id)
        for child in outcome.receipt_ids:
            assert child not in parents
            parents[child] = outcome.block_height
            done = world.outcome(child)
            if record is not None and record.is_local:
                assert done.block_height >= outcome.block_height  # later where a chunk is full
            elif done is not None:
                assert done.block_height > outcome.block_height
    orphans = [r for r in world.receipts() if isinstance(r, ActionReceipt)]
    assert all(receipt.receipt_id in parents for receipt in orphans)


def test_nobody_runs_before_what_it_waits_for(chaos):
    """Each input was made for that receiver by a block before, and by one receipt only."""
    world = chaos.world
    made = {}
    for block in world.chain.blocks():
        for chunk in block.chunks:
            if chunk.height_included == block.height:
                for receipt in chunk.receipts:
                    if isinstance(receipt, DataReceipt) and not receipt.is_promise_resume:
                        assert (receipt.receiver_id, receipt.data_id) not in made
                        made[receipt.receiver_id, receipt.data_id] = block.height
    for receipt in world.receipts():
        if isinstance(receipt, ActionReceipt) and not receipt.is_promise_yield:
            done = world.outcome(receipt.receipt_id)
            for data_id in receipt.input_data_ids:
                at = made.get((receipt.receiver_id, data_id))
                assert (done is None) or (at is not None and at <= done.block_height)


def test_nonces_rise(chaos):
    """For each key, in the order of the chain, every transaction's is above the last."""
    seen: dict = {}
    for block in chaos.world.chain.blocks():
        for signed in new(block):
            tx = signed.transaction
            lane = (tx.signer_id, tx.public_key, tx.nonce_index)
            assert tx.nonce > seen.get(lane, -1)
            assert tx.nonce < block.height * 10**6
            seen[lane] = tx.nonce
    assert len(seen) > 10


def test_a_keys_nonce_never_falls(chaos):
    """Neither transactions nor delegates, refunds, deletion and addition lower it."""
    seen: dict = {}
    for block in chaos.world.chain.blocks():
        for change in chaos.world.chain.changes(block.height):
            if change.kind in ("access_key", "gas_key_nonce") and change.value is not None:
                lane = (change.kind, change.account_id, change.key)
                nonce = change.value if isinstance(change.value, int) else change.value.nonce
                assert nonce >= seen.get(lane, 0)
                seen[lane] = nonce
    assert len(seen) > 20


def test_changes_add_up_to_the_state(chaos):
    """Whoever replays every change from genesis on has the state of the head."""
    world = chaos.world
    state = world.state()
    held: dict = {}
    for block in world.chain.blocks():
        for change in world.chain.changes(block.height):
            held[change.kind, change.account_id, change.key] = change.value
    read = {"account": lambda a, _: state.account(a), "access_key": state.access_key}
    read |= {"data": state.data}
    read["gas_key_nonce"] = lambda a, key: state.gas_key_nonce(a, *split_nonce_key(key))
    read["global_code"] = lambda name, _: world.store.global_codes.get(name)
    read["global_nonce"] = lambda name, _: world.store.global_nonces.get(name)
    for (kind, account_id, key), value in held.items():
        assert read[kind](account_id, key) == value
    later = set() if chaos.has_gas_keys else {"gas_key_nonce"}
    assert {kind for kind, _, _ in held} == read.keys() - later


def test_blocks_are_in_line(chaos):
    """Heights and times rise, finality follows, and a header's supply moves by what burnt."""
    for older, newer in pairwise(chaos.world.chain.blocks()):
        assert newer.height > older.height
        assert newer.timestamp_ns > older.timestamp_ns
        assert newer.prev_hash == older.hash
        burnt = sum(c.balance_burnt for c in newer.chunks if c.height_included == newer.height)
        assert newer.total_supply >= older.total_supply - burnt


def test_storage_is_counted(chaos):
    """An account's storage usage is what its keys, code and records take."""
    world = chaos.world
    state = world.state()
    for name in world.account_ids():
        account = state.account(name)
        held = list(state.access_keys(name))
        keys = sum(len(packed) + len(key.encode()) + 40 for packed, key in held)
        keys += sum(83 * len(state.gas_key_nonces(name, packed)) for packed, _ in held)
        records = sum(len(key) + len(value) + 40 for key, value in state.records(name))
        code = len(world.store.codes[account.code_hash])
        if account.global_contract is not None:
            code = len(account.global_contract)
        assert account.storage_usage == 100 + keys + records + code


def test_the_index_knows_whose_keys_they_are(chaos):
    """By each key it lists the accounts that state has it on, full access and all."""
    world = chaos.world
    state = world.state(chaos.indexer.block.height)
    every: dict = {}
    full: dict = {}
    for name in world.account_ids():
        for packed, key in state.access_keys(name):
            every.setdefault(packed, set()).add(name)
            if isinstance(key.permission, FullAccess | GasKeyFullAccess):
                full.setdefault(packed, set()).add(name)
    for packed, names in every.items():
        key = PublicKey.decode(packed)
        own = {str(implicit_account_id(key))}
        assert set(chaos.indexer.keys.accounts(key, every_kind=True)) == names | own
        assert set(chaos.indexer.keys.accounts(key)) == full.get(packed, set()) | own


def test_the_index_knows_who_holds_the_token(chaos):
    """Every balance in the contract's state is listed, and nothing else has one."""
    world = chaos.world
    state = world.state(chaos.indexer.block.height)
    kept = {
        key[5:].decode(): int.from_bytes(value, "little")
        for key, value in state.records(TOKEN, b"a")
    }
    listed = {name: int(balance or "0") for name, balance in chaos.indexer.holders(TOKEN)}
    assert kept.items() <= listed.items()
    assert not any(balance for name, balance in listed.items() if name not in kept)
    assert len(kept) > 5


def test_the_past_stays_what_it_was(chaos):
    """Ten of the heights, read in the end, have what was there when they were the head."""
    heights, known = list(chaos.kept), list(chaos.world.store.accounts.head)
    for height in heights[:: len(heights) // 10]:
        expected = chaos.kept[height]
        assert snapshot(chaos.world.state(height), known) == expected
    assert chaos.kept[heights[0]] != chaos.kept[heights[-1]]


@pytest.mark.parametrize("archival", [True, False])
def test_chance_is_the_seeds(archival):
    """The same seed makes the same blocks and the same state, whatever is kept of the past."""
    first, second = Chaos(7), Chaos(7, archival=archival)
    for one in (first, second):
        for _ in range(15):
            one.block()
    hashes = [[block.hash for block in one.world.chain.blocks()] for one in (first, second)]
    assert hashes[0] == hashes[1]
    known = list(first.world.store.accounts.head)
    states = [snapshot(one.world.state(), known) for one in (first, second)]
    assert states[0] == states[1]
    assert first.made > 100


def test_receipts_are_named_once(chaos):
    """No two receipts and no two pieces of data have one id."""
    receipts: list[Receipt] = chaos.world.receipts()
    assert len({receipt.receipt_id for receipt in receipts}) == len(receipts)
