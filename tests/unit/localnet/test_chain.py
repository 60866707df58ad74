"""Blocks: heights, finality, chunks and their gas, the price of gas, epochs, what is kept."""

from itertools import pairwise

from msgspec import structs

from ledgerkit.localnet.chain import next_gas_price
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.settings import BOUNDARIES, SHARD_IDS, Settings
from ledgerkit.protocol import CryptoHash, DeleteAccount, Stake, Transfer
from tests.unit.localnet.ledger import PRICE, START, TGAS, Ledger, N, do, public, result_of

ZERO = CryptoHash(bytes(32))
ONE_SHARD = {"boundaries": (), "shard_ids": (0,)}
LIMIT = 1000 * TGAS


def heights(chain):
    """Tell how far below the head the near-final and the final block are, as heights."""
    return chain.head.height, chain.near_final.height, chain.final.height


# Heights and finality --------------------------------------------------------------------


def test_blocks_become_final_after_two_more():
    """Without skips the head's parent is near-final, the parent's parent final."""
    world = Ledger().world
    assert heights(world.chain) == (1000, 1000, 1000)
    world.advance()
    assert heights(world.chain) == (1001, 1000, 1000)
    world.advance()
    assert heights(world.chain) == (1002, 1001, 1000)
    world.advance()
    assert heights(world.chain) == (1003, 1002, 1001)


def test_a_skipped_height_delays_finality():
    """After a gap nothing moves; the next block makes the head near-final, the third final."""
    world = Ledger().world
    world.advance(5)
    assert heights(world.chain) == (1005, 1004, 1003)
    world.advance(skip=1)
    assert heights(world.chain) == (1007, 1004, 1003)
    world.advance()
    assert heights(world.chain) == (1008, 1007, 1003)
    world.advance()
    assert heights(world.chain) == (1009, 1008, 1007)
    assert world.chain.by_height(1006) is None


def test_every_other_height_skipped_makes_nothing_final():
    """Three blocks with gaps between them leave both heads where they were."""
    world = Ledger().world
    world.advance(3)
    for _ in range(3):
        world.advance(skip=1)
    assert heights(world.chain) == (1009, 1002, 1001)


def test_finality_can_be_held():
    """While it is held blocks come, none becomes final; released, two more make it move."""
    world = Ledger().world
    world.advance(3)
    world.hold_finality()
    world.advance(4)
    assert heights(world.chain) == (1007, 1002, 1001)
    world.hold_finality(hold=False)
    world.advance(3)
    assert heights(world.chain) == (1010, 1009, 1008)


def test_time_goes_with_heights():
    """A skipped height takes its time too; timestamps strictly increase."""
    world = Ledger(block_time_ns=7).world
    first = world.chain.head.timestamp_ns
    assert world.advance().timestamp_ns == first + 7
    assert world.advance(skip=2).timestamp_ns == first + 28
    assert world.advance(2).timestamp_ns == first + 42


def test_blocks_are_linked():
    """Each names the one before by hash and height, and is found by both."""
    world = Ledger("alice.near").world
    world.advance(3)
    world.advance(2, skip=3)
    for older, newer in pairwise(world.chain.blocks()):
        assert (newer.prev_hash, newer.prev_height) == (older.hash, older.height)
        assert newer.ordinal == older.ordinal + 1
        assert world.chain.by_hash(newer.hash) is newer
        assert world.chain.by_height(newer.height) is newer
    assert world.chain.by_height(START - 1) is None
    assert world.chain.by_height(START + 100) is None
    assert world.chain.by_hash(ZERO) is None
    assert world.chain.chunk(ZERO) is None
    assert world.chain.height_of(ZERO) is None


# Shards ----------------------------------------------------------------------------------


def test_accounts_live_between_boundaries(subtests):
    """The index is the number of boundaries not above the id, compared by bytes."""
    cases = [
        ("0", 10),
        ("64" * 32, 10),
        ("650", 11),
        ("alice.near", 11),
        ("aurora", 1),
        ("aurora-0", 8),
        ("aurora.near", 8),
        ("bob.near", 8),
        ("earn.kaiching", 9),
        ("game.hot.tg", 6),
        ("game.hot.tg-0", 7),
        ("kkuuue2akv_1630967379.near", 4),
        ("tge-lockup.sweat", 5),
        ("zz", 5),
    ]
    for account_id, shard_id in cases:
        with subtests.test(account_id=account_id):
            assert sum(boundary <= account_id for boundary in BOUNDARIES) == Settings().shard_of(
                account_id
            )
            assert SHARD_IDS[Settings().shard_of(account_id)] == shard_id


def test_a_receipt_travels_in_the_senders_chunk():
    """The chunk after a transaction's holds its receipt; the receiver's chunk has none."""
    ledger = Ledger("alice.near", "bob.near")
    tx_hash = ledger.send("alice.near", "bob.near", Transfer(1))
    block = ledger.world.advance()
    (including,) = [chunk for chunk in block.chunks if chunk.transactions]
    assert (including.shard_id, including.transactions[0].hash) == (11, tx_hash)
    block = ledger.world.advance()
    (sending,) = [chunk for chunk in block.chunks if chunk.receipts]
    assert sending.shard_id == 11
    assert [r.receipt_id for r in sending.receipts] == list(ledger.outcome(tx_hash).receipt_ids)
    assert sending.prev_block_hash == block.prev_hash
    assert ledger.world.chain.chunk(sending.chunk_hash) == (sending, block)


def test_a_chunk_tells_of_the_application_before():
    """Gas and burnt tokens of block h stand in the chunks of h+1; the root of nothing is 0."""
    ledger = Ledger("alice.near", "bob.near")
    tx = ledger.send("alice.near", "bob.near", Transfer(1))
    (mine,) = [chunk for chunk in ledger.world.advance().chunks if chunk.transactions]
    assert (mine.gas_used, mine.balance_burnt, mine.outcome_root) == (0, 0, ZERO)
    assert mine.tx_root != ZERO
    block = ledger.world.advance()
    told_of = [chunk for chunk in block.chunks if chunk.gas_used]
    outcome = ledger.outcome(tx)
    assert [(c.gas_used, c.balance_burnt) for c in told_of] == [
        (outcome.gas_burnt, outcome.tokens_burnt)
    ]
    assert told_of[0].tx_root == ZERO
    assert told_of[0].outcome_root != ZERO


def test_a_missing_chunk_repeats_the_old_one():
    """The mask is false, the header the older one; transactions and receipts wait."""
    ledger = Ledger("alice.near", "bob.near")
    ledger.world.advance()
    tx_hash = ledger.send("alice.near", "bob.near", Transfer(1))
    block = ledger.world.advance(missing=[11])
    assert block.chunk_mask == tuple(shard_id != 11 for shard_id in SHARD_IDS)
    repeated = block.chunks[SHARD_IDS.index(11)]
    assert repeated.height_included == START + 1
    assert ledger.world.is_pending(tx_hash)
    ledger.world.advance()
    assert ledger.outcome(tx_hash).block_height == START + 3
    # Made in 1003, the receipt leaves with the next chunk there is, that of 1005.
    assert not ledger.world.advance(missing=[11]).chunk_mask[1]
    assert ledger.world.outcome(ledger.outcome(tx_hash).receipt_ids[0]) is None
    ledger.world.advance()
    assert ledger.outcome(ledger.outcome(tx_hash).receipt_ids[0]).block_height == START + 5
    ledger.world.settle()
    assert ledger.is_whole()


def test_a_receiver_without_a_chunk_gets_its_receipts_later():
    """What was sent to a shard that has no chunk is applied with its next one."""
    ledger = Ledger("alice.near", "bob.near")
    tx_hash = ledger.send("alice.near", "bob.near", Transfer(1))
    ledger.world.advance()
    ledger.world.advance(2, missing=[8])
    (receipt_id,) = ledger.outcome(tx_hash).receipt_ids
    assert ledger.world.outcome(receipt_id) is None
    assert ledger.is_whole()
    ledger.world.advance()
    assert ledger.outcome(receipt_id).block_height == START + 4


# Gas -------------------------------------------------------------------------------------


def burners(ledger, count, gas):
    """Send calls that burn gas; give the ids of their receipts, in order."""
    hashes = [
        ledger.send("alice.near", "s.near", do(["burn", gas], gas=gas + 50 * TGAS))
        for _ in range(count)
    ]
    ledger.world.advance()
    return [ledger.outcome(tx_hash).receipt_ids[0] for tx_hash in hashes]


def test_a_chunk_that_is_full_delays_receipts():
    """Once 1000 Tgas are used the rest waits for the next block, in its order."""
    ledger = Ledger("alice.near", scripts=["s.near"], **ONE_SHARD)
    receipts = burners(ledger, 6, 300 * TGAS)
    assert ledger.world.is_busy
    ledger.world.settle()
    found = [ledger.outcome(receipt_id).block_height - START for receipt_id in receipts]
    assert found == [2, 2, 2, 2, 3, 3]
    assert ledger.is_whole()


def test_what_was_delayed_comes_before_what_arrives():
    """Receipts of a later block stand behind the ones that waited."""
    ledger = Ledger("alice.near", "bob.near", scripts=["s.near"], **ONE_SHARD)
    burners(ledger, 8, 300 * TGAS)
    late = ledger.send("bob.near", "s.near", do(["burn", 300 * TGAS], gas=350 * TGAS))
    ledger.world.settle()
    (receipt_id,) = ledger.outcome(late).receipt_ids
    assert ledger.outcome(late).block_height == START + 2
    assert ledger.outcome(receipt_id).block_height == START + 4


def test_data_waits_too_where_a_chunk_is_full():
    """A callback's data behind 1000 Tgas of others comes with the next block."""
    ledger = Ledger("alice.near", scripts=["s.near", "t.near"], **ONE_SHARD)
    steps = [
        ["call", "a", "t.near", []],
        ["then", "b", "a", "s.near", [["results"]]],
        ["give", "b"],
    ]
    tx_hash = ledger.send("alice.near", "s.near", do(*steps))
    ledger.world.advance(2)
    burners(ledger, 5, 300 * TGAS)
    ledger.world.settle()
    called, back, _ = ledger.children(ledger.children(ledger.outcome(tx_hash))[0])
    assert called.block_height == START + 3
    # In 1004 arrive, in the order of their making, five calls of a transaction and the data.
    assert back.block_height == START + 5
    assert result_of(back) == ["null"]


def test_the_price_of_gas_follows_the_load():
    """A full block raises it by half a hundredth and more, an empty one lowers it to the least."""
    ledger = Ledger("alice.near", scripts=["s.near"], **ONE_SHARD)
    receipts = burners(ledger, 4, 300 * TGAS)
    ledger.world.advance()
    used = sum(ledger.outcome(receipt_id).gas_burnt for receipt_id in receipts)
    assert used > LIMIT
    block = ledger.world.advance()
    assert block.chunks[0].gas_used == used
    expected = PRICE + PRICE * (2 * used - LIMIT) // (200 * LIMIT)
    assert block.gas_price == expected
    assert expected > PRICE * 1007 // 1000
    price = ledger.world.advance().gas_price
    assert PRICE < price < expected
    ledger.world.advance(2)
    assert ledger.world.chain.head.gas_price == PRICE


def test_the_price_of_gas_moves_by_half_a_hundredth(subtests):
    """Down when a block is empty, up when it is full, between the least and twenty times it."""
    cases = [
        (PRICE, 0, PRICE),
        (2 * PRICE, 0, 199_000_000),
        (2 * PRICE, LIMIT // 2, 2 * PRICE),
        (2 * PRICE, LIMIT, 201_000_000),
        (20 * PRICE, LIMIT, 20 * PRICE),
        (20 * PRICE - 1, LIMIT, 20 * PRICE),
        (PRICE + 1, 0, PRICE),
    ]
    for price, used, expected in cases:
        with subtests.test(price=price):
            chunk = structs.replace(Ledger(**ONE_SHARD).world.chain.head.chunks[0], gas_used=used)
            assert next_gas_price(price, PRICE, [chunk]) == expected
            assert next_gas_price(price, PRICE, []) == price


def test_a_higher_price_is_paid():
    """A transaction burns at the price of the header before its block."""
    ledger = Ledger("alice.near", scripts=["s.near"], **ONE_SHARD)
    burners(ledger, 4, 300 * TGAS)
    block = ledger.world.advance(2)
    assert block.gas_price > PRICE
    tx_hash = ledger.send("alice.near", "alice.near", Transfer(1))
    ledger.world.advance()
    outcome = ledger.outcome(tx_hash)
    assert outcome.tokens_burnt == outcome.gas_burnt * block.gas_price
    ledger.world.settle()
    assert ledger.is_whole()


def test_version_84_burns_at_what_was_paid():
    """A receipt bought at the least price burns at it, though gas became dearer meanwhile."""
    ledger = Ledger("alice.near", "bob.near", scripts=["s.near"], profile="84", **ONE_SHARD)
    burners(ledger, 5, 300 * TGAS)
    ledger.world.advance()
    tx_hash = ledger.send("alice.near", "bob.near", Transfer(1))
    ledger.world.advance()
    ledger.world.settle()
    (child,) = ledger.children(ledger.outcome(tx_hash))
    assert child.tokens_burnt == child.gas_burnt * ledger.receipt(child.id).gas_price
    assert ledger.is_whole()


# Epochs ----------------------------------------------------------------------------------


def staked(*names, **settings):
    """Make a chain with validators of 50 at stake, and epochs of ten heights."""
    genesis = Genesis()
    for name in names:
        genesis.account(
            name, 100 * N, keys=[public(name)], locked=50 * N, validator_key=public(name)
        )
    given = {"epoch_length": 10, "reward_per_epoch": 0} | settings
    return Ledger("alice.near", genesis=genesis, **given)


def test_epochs_begin_when_the_last_is_nearly_final():
    """The next begins at final + 3 >= start + length, so without gaps every ten heights."""
    ledger = staked("v.near")
    ledger.world.advance(45)
    starts: dict[int, int] = {}
    for block in ledger.world.chain.blocks():
        starts.setdefault(block.epoch_height, block.height)
    assert starts == {0: 1000, 1: 1010, 2: 1020, 3: 1030, 4: 1040}
    assert [epoch.start_height for epoch in ledger.world.epochs.all] == list(starts.values())


def test_an_epochs_id_is_a_hash_of_two_epochs_ago():
    """That of T+2 is the hash of T's last block; genesis is an epoch of its own, named by zeros."""
    # Source: nearcore, chain/epoch-manager, init_after_genesis: its first two epochs share an id.
    ledger = staked("v.near")
    ledger.world.advance(45)
    genesis = ledger.world.chain.genesis
    by_epoch: dict[int, list] = {}
    for block in ledger.world.chain.blocks():
        by_epoch.setdefault(block.epoch_height, []).append(block)
    for number, blocks in by_epoch.items():
        before = {0: ZERO, 1: genesis.hash}
        expected = before[number] if number < 2 else by_epoch[number - 2][-1].hash
        following = genesis.hash if number < 1 else by_epoch[number - 1][-1].hash
        assert {block.epoch_id for block in blocks} == {expected}
        assert {b.next_epoch_id for b in blocks if b is not genesis} == {following}
    assert genesis.next_epoch_id == ZERO


def test_an_epoch_waits_for_finality():
    """While nothing becomes final, no epoch ends."""
    ledger = staked("v.near")
    ledger.world.advance(5)
    ledger.world.hold_finality()
    ledger.world.advance(20)
    assert ledger.world.chain.head.epoch_height == 0
    ledger.world.hold_finality(hold=False)
    ledger.world.advance(4)
    assert ledger.world.chain.head.epoch_height == 1


def test_rewards_are_minted_into_the_stake():
    """One part in a hundred of the stake, for each validator, at each epoch's beginning."""
    ledger = staked("v.near", "w.near", reward_per_epoch=100)
    ledger.world.advance(10)
    assert ledger.world.minted == N
    account = ledger.account("v.near")
    assert (account.amount, account.locked) == (100 * N, 50 * N + N // 2)
    assert ledger.world.chain.head.total_supply == 1300 * N + N
    assert ledger.is_whole()
    ledger.world.advance(40)
    assert ledger.is_whole()
    assert ledger.world.chain.head.total_supply == 1300 * N + ledger.world.minted


def test_a_new_validator_validates_two_epochs_later():
    """Proposed in epoch 0, at stake at once, among the validators from epoch 2 on."""
    ledger = staked("v.near")
    ledger.run("alice.near", "alice.near", Stake(60 * N, public("a")))
    ledger.world.advance(40)
    found = [sorted(epoch.validators) for epoch in ledger.world.epochs.all]
    assert found[:3] == [["v.near"], ["v.near"], ["alice.near", "v.near"]]
    assert ledger.account("alice.near").locked == 60 * N


def test_a_stake_that_ends_is_unlocked_epochs_later():
    """Proposed to 0 in epoch 0: it still validates in 1, and has all back a while after."""
    ledger = staked("v.near", "w.near")
    ledger.run("v.near", "v.near", Stake(0, public("v.near")))
    unlocked = None
    for _ in range(60):
        block = ledger.world.advance()
        if unlocked is None and not ledger.account("v.near").locked:
            unlocked = block.epoch_height
    assert [sorted(e.validators) for e in ledger.world.epochs.all[:3]] == [
        ["v.near", "w.near"],
        ["v.near", "w.near"],
        ["w.near"],
    ]
    assert unlocked in (3, 4)
    account = ledger.account("v.near")
    assert 149 * N < account.amount < 150 * N
    assert ledger.account("w.near").locked == 50 * N
    ledger.run("v.near", "v.near", DeleteAccount("w.near"))
    assert ledger.account("v.near") is None
    assert ledger.is_whole()


def test_a_smaller_stake_is_unlocked_by_the_difference():
    """From 50 to 20: at stake are 50 until the old stake counts no more, then 20."""
    ledger = staked("v.near")
    ledger.run("v.near", "v.near", Stake(20 * N, public("v.near")))
    assert ledger.account("v.near").locked == 50 * N
    ledger.world.advance(60)
    assert ledger.account("v.near").locked == 20 * N
    assert ledger.is_whole()


# What is kept ----------------------------------------------------------------------------


def snapshot(state, names):
    """Gather all that a state has of some accounts."""
    return {
        name: (
            state.account(name),
            list(state.access_keys(name)),
            list(state.records(name)),
        )
        for name in names
    }


def busy(ledger, blocks):
    """Let something change in every block; give the state after each, by height."""
    names = ["alice.near", "s.near"]
    kept = {ledger.world.chain.head.height: snapshot(ledger.world.state(), names)}
    for number in range(blocks):
        key = f"k{number % 3}"
        step = ["remove", key] if number % 5 == 0 else ["write", key, str(number)]
        ledger.send("alice.near", "s.near", do(step, gas=10 * TGAS))
        height = ledger.world.advance(skip=number % 4 // 3).height
        kept[height] = snapshot(ledger.world.state(), names)
    return kept


def test_a_node_that_is_no_archive_forgets():
    """Five epochs are kept; what they hold is exact, what came before is gone."""
    ledger = Ledger("alice.near", scripts=["s.near"], archival=False, epoch_length=10)
    kept = busy(ledger, 90)
    earliest = ledger.world.chain.earliest.height
    assert earliest == ledger.world.epochs.all[-5].start_height
    assert earliest > START + 40
    for height, expected in kept.items():
        if height >= earliest:
            assert snapshot(ledger.world.state(height), expected) == expected
    past = ledger.world.store.data._history
    assert all(heights[0] > earliest for held in past.values() for heights, _ in held.values())


def test_changes_tell_what_a_block_did():
    """Who paid, who received, and why: by transaction, receipt and reward."""
    ledger = Ledger("alice.near", scripts=["s.near"])
    tx_hash = ledger.send("alice.near", "s.near", do(["write", "k", "v"]))
    ledger.world.advance(2)
    found = ledger.world.chain.changes(START + 1)
    assert [(c.cause, c.kind, c.account_id) for c in found] == [
        (("transaction_processing", tx_hash), "account", "alice.near"),
        (("transaction_processing", tx_hash), "access_key", "alice.near"),
    ]
    assert found[0].value == ledger.world.state(START + 1).account("alice.near")
    (receipt_id,) = ledger.outcome(tx_hash).receipt_ids
    found = ledger.world.chain.changes(START + 2)
    told_of = [(c.cause, c.kind, c.key) for c in found]
    assert (("receipt_processing", receipt_id), "data", b"k") in told_of
    assert told_of[-1] == (("action_receipt_gas_reward", receipt_id), "account", b"")
    assert found[-1].value == ledger.account("s.near")
