"""Receipts: their ids, when they run, what they wait for, what becomes of those that fail."""

from hashlib import sha256

import pytest
from msgspec import structs

from ledgerkit.localnet.chain_types import (
    ActionReceipt,
    BlockContext,
    DataReceipt,
    SuccessReceiptId,
    SuccessValue,
)
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.runtime import ShardResult
from ledgerkit.protocol import (
    AccessKey,
    AddKey,
    CreateAccount,
    CryptoHash,
    DeleteAccount,
    DeleteKey,
    FunctionCall,
    FunctionCallPermission,
    Transfer,
    implicit_account_id,
)
from tests.unit.localnet.ledger import (
    PRICE,
    START,
    TGAS,
    Ledger,
    N,
    Script,
    do,
    index_of,
    is_postponed,
    public,
    result_of,
)

LAST = 2**64 - 1
RECEIPT = 108_059_500_000
TRANSFER = 115_123_062_500
CREATE = 7_200_000_000_000
PURCHASE = 10**9


def named(base, height, salt):
    """Make an id as the protocol does: base, height and salt, little-endian, hashed."""
    data = base + height.to_bytes(8, "little") + salt.to_bytes(8, "little")
    return CryptoHash(sha256(data).digest())


@pytest.fixture
def ledger():
    """Return a chain with two people and three contracts, in several shards."""
    return Ledger("alice.near", "bob.near", scripts=("s.near", "t.near", "u.near"))


def execution_of(call):
    """Tell the gas to execute a receipt of one call, before the call's own."""
    return RECEIPT + 780_000_000_000 + 2_235_934 * (len(call.method_name) + len(call.args))


def sent_at(world, receipt_id):
    """Tell the height of the block whose application made a receipt: one before its chunk's."""
    for block in world.chain.blocks():
        for chunk in block.chunks:
            if receipt_id in [receipt.receipt_id for receipt in chunk.receipts]:
                return block.prev_height
    return None


CALL_AND_BACK = (
    ["call", "a", "t.near", [["value", 7]]],
    ["then", "b", "a", "s.near", [["results"]]],
    ["give", "b"],
)


# Ids -------------------------------------------------------------------------------------


def test_receipts_are_named_after_what_made_them(ledger):
    """The ids of a call and its callback are hashes of creator, height and place."""
    tx_hash = ledger.send("alice.near", "s.near", do(*CALL_AND_BACK))
    ledger.world.settle()
    first = ledger.outcome(tx_hash).receipt_ids[0]
    assert first == named(tx_hash, START + 1, 0)
    outcome = ledger.outcome(first)
    assert outcome.receipt_ids == tuple(named(first, START + 2, salt) for salt in range(3))
    called, back, refund = map(ledger.receipt, outcome.receipt_ids)
    assert [r.predecessor_id for r in (called, back, refund)] == ["s.near", "s.near", "system"]
    action = named(first, START + 2, LAST)
    assert called.output_data_receivers == ((named(action, START + 2, 0), "s.near"),)
    assert back.input_data_ids == (named(action, START + 2, 0),)


def test_data_has_a_place_but_is_not_told(ledger):
    """A callee's gas refund has salt 0, its data salt 1; only the refund is in the outcome."""
    outcome = ledger.run("alice.near", "s.near", do(*CALL_AND_BACK))
    called = ledger.children(outcome)[0]
    assert called.receipt_ids == (named(called.id, START + 3, 0),)
    data = ledger.receipt(named(called.id, START + 3, 1))
    assert isinstance(data, DataReceipt)
    assert (data.predecessor_id, data.receiver_id, data.data) == ("t.near", "s.near", b"7")
    assert data.data_id == ledger.receipt(called.id).output_data_receivers[0][0]


def test_actions_of_a_batch_have_hashes_of_their_own(ledger):
    """The second call of a batch names its data after action 1, and both count from 0."""
    steps = [["call", "a", "t.near", []], ["then", "b", "a", "u.near", []]]
    outcome = ledger.run("alice.near", "s.near", do(*steps), do(*steps))
    assert len(outcome.receipt_ids) == 5
    receipts = [ledger.receipt(child) for child in outcome.receipt_ids]
    found = [receipt.input_data_ids for receipt in receipts]
    actions = [named(outcome.id, START + 2, LAST - place) for place in (0, 1)]
    data = [(named(action, START + 2, 0),) for action in actions]
    assert found == [(), data[0], (), data[1], ()]


def test_each_dependency_has_data_of_its_own(ledger):
    """A join of two names its data 0 and 1 of the action, in the order of the join."""
    outcome = ledger.run(
        "alice.near",
        "s.near",
        do(
            ["call", "a", "t.near", []],
            ["call", "b", "u.near", []],
            ["join", "both", "b", "a"],
            ["then", "c", "both", "s.near", []],
        ),
    )
    first, second, joined, _ = map(ledger.receipt, outcome.receipt_ids)
    action = named(outcome.id, START + 2, LAST)
    ids = tuple(named(action, START + 2, place) for place in (0, 1))
    assert joined.input_data_ids == ids
    assert second.output_data_receivers == ((ids[0], "s.near"),)
    assert first.output_data_receivers == ((ids[1], "s.near"),)


def test_a_call_has_a_random_seed_of_its_own(ledger):
    """The seed is the hash of the action's hash and the block's random value."""
    outcome = ledger.run("alice.near", "s.near", do(["tell", "random_seed"]))
    block = ledger.world.chain.by_height(START + 2)
    action = named(outcome.id, START + 2, LAST)
    seed = CryptoHash(sha256(action + block.random_value).digest())
    assert result_of(outcome) == [str(seed)]


def test_children_inherit_signer_key_and_price(ledger):
    """A receipt of a receipt has the transaction's signer, key and price of gas."""
    outcome = ledger.run("alice.near", "s.near", do(*CALL_AND_BACK))
    for child in outcome.receipt_ids[:2]:
        receipt = ledger.receipt(child)
        assert receipt.signer_id == "alice.near"
        assert receipt.signer_public_key == public("alice.near")
        assert receipt.gas_price == PURCHASE


# Timing ----------------------------------------------------------------------------------


def test_a_call_with_a_callback_takes_five_blocks(ledger):
    """Tx h, receipt h+1, callee h+2, callback h+3, last refund h+4."""
    tx_hash = ledger.send("alice.near", "s.near", do(*CALL_AND_BACK))
    ledger.world.settle()
    tx = ledger.outcome(tx_hash)
    first = ledger.children(tx)[0]
    called, back, refund = ledger.children(first)
    assert [o.block_height - START for o in (tx, first, called, back)] == [1, 2, 3, 4]
    assert refund.block_height == START + 3
    assert [o.block_height - START for o in ledger.children(called)] == [4]
    assert [o.block_height - START for o in ledger.children(back)] == [5]


def test_a_receipt_to_oneself_runs_in_the_transactions_block(ledger):
    """It never leaves the shard, so no chunk holds it; its refund comes a block later."""
    outcome = ledger.run("alice.near", "alice.near", Transfer(1))
    assert outcome.block_height == START + 1
    assert sent_at(ledger.world, outcome.id) is None
    refund = ledger.children(outcome)[0]
    assert refund.block_height == START + 2
    assert sent_at(ledger.world, refund.id) == START + 1


def test_a_contract_calling_itself_waits_a_block(ledger):
    """Only a transaction's own receipt is local: a promise to oneself takes a hop."""
    outcome = ledger.run("s.near", "s.near", do(["call", "a", "s.near", []]))
    assert outcome.block_height == START + 1
    assert ledger.children(outcome)[0].block_height == START + 2


def test_neighbours_in_a_shard_are_a_hop_apart():
    """Where there is one shard, a transfer to another account takes a block all the same."""
    ledger = Ledger("alice.near", "bob.near", boundaries=(), shard_ids=(0,))
    outcome = ledger.run("alice.near", "bob.near", Transfer(1))
    assert outcome.block_height == START + 2
    assert ledger.children(outcome)[0].block_height == START + 3


def test_a_callback_has_no_outcome_while_it_waits(ledger):
    """At h+2 the callee has run; the callback is there, known, postponed, and untold."""
    tx_hash = ledger.send("alice.near", "s.near", do(*CALL_AND_BACK))
    ledger.world.advance(3)
    _, back, _ = ledger.outcome(ledger.outcome(tx_hash).receipt_ids[0]).receipt_ids
    assert is_postponed(ledger.world, back)
    assert ledger.world.outcome(back) is None
    ledger.world.advance()
    assert not is_postponed(ledger.world, back)
    assert ledger.outcome(back).block_height == START + 4


def by_hand(ledger, *receipts):
    """Let receipts arrive in one block, in an order; give the outcomes."""
    block = BlockContext(START + 1, 0, 0, CryptoHash(bytes(32)), PRICE, {})
    result = ShardResult(0)
    for receipt in receipts:
        ledger.world.runtime.receive(receipt, block, result)
    return result.outcomes


def test_data_may_come_before_what_waits_for_it(ledger):
    """Whichever comes last, action or data, the action runs then, with that data."""
    ids = [CryptoHash.of(b"d%d" % place) for place in range(2)]
    data = [
        DataReceipt(CryptoHash.of(b"r%d" % place), "t.near", "s.near", one, b"%d" % place)
        for place, one in enumerate(ids)
    ]
    action = ActionReceipt(
        CryptoHash.of(b"action"),
        "s.near",
        "s.near",
        "alice.near",
        public("alice.near"),
        PURCHASE,
        (do(["results"]),),
        tuple(ids),
    )
    orders = [
        (action, *data),
        (data[0], action, data[1]),
        (*data, action),
        (data[1], data[0], action),
    ]
    for number, order in enumerate(orders):
        assert by_hand(ledger, *order[:-1]) == []
        (outcome,) = by_hand(ledger, order[-1])
        assert result_of(outcome) == ["0", "1"], number
        assert outcome.id == action.receipt_id


def test_data_for_another_account_is_other_data(ledger):
    """Data is kept for its receiver: the same id elsewhere wakes nobody."""
    one = CryptoHash.of(b"d")
    action = ActionReceipt(
        CryptoHash.of(b"action"),
        "s.near",
        "s.near",
        "alice.near",
        public("alice.near"),
        PURCHASE,
        (do(["results"]),),
        (one,),
    )
    wrong = DataReceipt(CryptoHash.of(b"r"), "t.near", "t.near", one, b"1")
    assert by_hand(ledger, action, wrong) == []
    right = structs.replace(wrong, receiver_id="s.near")
    assert [result_of(outcome) for outcome in by_hand(ledger, right)] == [["1"]]


# Promises --------------------------------------------------------------------------------


def test_a_join_keeps_the_order_of_its_arguments(ledger):
    """Three calls, of which the second fails; the callback sees value, nothing, value."""
    outcome = ledger.run(
        "alice.near",
        "s.near",
        do(
            ["call", "a", "t.near", [["value", 1]]],
            ["call", "b", "u.near", [["panic", "no"]]],
            ["call", "c", "s.near", [["value", 3]]],
            ["join", "all", "c", "b", "a"],
            ["then", "d", "all", "s.near", [["results"]]],
            ["give", "d"],
        ),
    )
    children = ledger.children(outcome)
    assert outcome.status == SuccessReceiptId(children[3].id)
    assert result_of(children[3]) == ["3", None, "1"]
    assert result_of(children[1]) == {
        "FunctionCallError": {"ExecutionError": "Smart contract panicked: no"}
    }


def test_a_join_waits_for_the_last(ledger):
    """One branch returns a promise of its own, two hops more; the callback runs after it."""
    far = [["call", "x", "u.near", [["value", "far"]]], ["give", "x"]]
    outcome = ledger.run(
        "alice.near",
        "s.near",
        do(
            ["call", "a", "t.near", [["value", "near"]]],
            ["call", "b", "t.near", far],
            ["join", "all", "a", "b"],
            ["then", "c", "all", "s.near", [["results"]]],
            ["give", "c"],
        ),
    )
    back = ledger.children(outcome)[2]
    assert result_of(back) == ['"near"', '"far"']
    assert back.block_height == START + 5


def test_what_a_promise_returns_is_told_by_it(ledger):
    """Through three returned promises the value reaches the callback, told by the last."""
    third = [["value", "deep"]]
    second = [["call", "x", "s.near", third], ["give", "x"]]
    first = [["call", "x", "u.near", second], ["give", "x"]]
    outcome = ledger.run(
        "alice.near",
        "s.near",
        do(
            ["call", "a", "t.near", first],
            ["then", "b", "a", "s.near", [["results"]]],
            ["give", "b"],
        ),
    )
    called, back, _ = ledger.children(outcome)
    middle = ledger.children(called)[0]
    last = ledger.children(middle)[0]
    assert called.status == SuccessReceiptId(middle.id)
    assert middle.status == SuccessReceiptId(last.id)
    assert last.status == SuccessValue(b'"deep"')
    assert result_of(back) == ['"deep"']
    receivers = [ledger.receipt(o.id).output_data_receivers for o in (called, middle, last)]
    assert receivers[0] == receivers[1] == receivers[2] != ()
    assert [o.block_height - START for o in (called, middle, last, back)] == [3, 4, 5, 6]
    data = [r for r in ledger.world.receipts() if isinstance(r, DataReceipt)]
    assert [(r.predecessor_id, r.data) for r in data] == [("s.near", b'"deep"')]


def test_a_returned_chain_is_told_by_its_last_link(ledger):
    """If a.then(b) is returned, whoever waits gets b's result, while b waits for a's."""
    chain = [
        ["call", "a", "u.near", [["value", 1]]],
        ["then", "b", "a", "t.near", [["results"]]],
        ["give", "b"],
    ]
    outcome = ledger.run(
        "alice.near",
        "s.near",
        do(
            ["call", "c", "t.near", chain],
            ["then", "d", "c", "s.near", [["results"]]],
            ["give", "d"],
        ),
    )
    assert result_of(ledger.children(outcome)[1]) == ['["1"]']


def test_a_promise_that_is_not_returned_goes_its_own_way(ledger):
    """The call's own value is the result; that its promise fails changes nothing."""
    outcome = ledger.run(
        "alice.near", "s.near", do(["call", "a", "t.near", [["panic", "late"]]], ["value", 5])
    )
    assert result_of(outcome) == 5
    failed = ledger.children(outcome)[0]
    assert "FunctionCallError" in result_of(failed)


def test_nothing_returned_is_empty_data(ledger):
    """A callback after a transfer sees a success without bytes."""
    outcome = ledger.run(
        "alice.near",
        "s.near",
        do(
            ["transfer", "a", "bob.near", "5"],
            ["then", "b", "a", "s.near", [["results"]]],
            ["give", "b"],
        ),
    )
    assert result_of(ledger.children(outcome)[1]) == [""]
    assert ledger.account("bob.near").amount == 1000 * N + 5


def test_only_the_last_action_answers(ledger):
    """A batch of two calls returns what the second does; of call and transfer, nothing."""
    outcome = ledger.run("alice.near", "s.near", do(["value", 1]), do(["value", 2]))
    assert outcome.status == SuccessValue(b"2")
    outcome = ledger.run("alice.near", "s.near", do(["value", 1]), Transfer(1))
    assert outcome.status == SuccessValue(b"")


def test_a_callback_runs_after_a_failure(ledger):
    """It sees that its dependency failed, and its own value is the transaction's."""
    steps = (
        ["call", "a", "missing.near", []],
        ["then", "b", "a", "s.near", [["results"]]],
        ["give", "b"],
    )
    outcome = ledger.run("alice.near", "s.near", do(*steps))
    failed, back, _ = ledger.children(outcome)
    assert result_of(failed) == {"AccountDoesNotExist": {"account_id": "missing.near"}}
    assert index_of(failed) == 0
    assert result_of(back) == [None]


def test_a_batch_promise_is_one_receipt(ledger):
    """All actions of a promise stand in one receipt, all or nothing."""
    actions = [["create_account"], ["transfer", 2 * N], ["add_full_access_key", str(public("k"))]]
    outcome = ledger.run("alice.near", "s.near", do(["batch", "a", "sub.s.near", *actions]))
    made = ledger.receipt(outcome.receipt_ids[0])
    assert made.actions == (CreateAccount(), Transfer(2 * N), AddKey(public("k")))
    assert ledger.account("sub.s.near").amount == 2 * N
    assert ledger.access_key("sub.s.near", "k").nonce == (START + 2) * 10**6


# Weights ---------------------------------------------------------------------------------


def test_spare_gas_is_split_by_weight(ledger):
    """Weights of 1 and 3 share the rest, the last gets the remainder; static gas is exact."""
    steps = (
        ["call", "a", "t.near", [], {"weight": 1}],
        ["call", "b", "t.near", [], {"gas": 7 * TGAS}],
        ["call", "c", "t.near", [], {"gas": 2 * TGAS, "weight": 3}],
    )
    outcome = ledger.run("alice.near", "s.near", do(*steps, gas=50 * TGAS))
    receipts = [ledger.receipt(child) for child in outcome.receipt_ids[:3]]
    first, second, third = (receipt.actions[0].gas for receipt in receipts)
    burnt = outcome.gas_burnt - execution_of(do(*steps))
    carried = sum(execution_of(receipt.actions[0]) for receipt in receipts)
    spare = 50 * TGAS - burnt - carried - 9 * TGAS
    assert second == 7 * TGAS
    assert first == spare // 4
    assert third == 2 * TGAS + spare - spare // 4


# Yield and resume ------------------------------------------------------------------------


WAIT = (["wait", "w", [["results"]]], ["give", "w"])


def test_a_yielded_call_runs_when_it_is_resumed(ledger):
    """The data that somebody brings two blocks later is what the waiting call sees."""
    tx_hash = ledger.send("alice.near", "s.near", do(*WAIT))
    ledger.world.advance(2)
    outcome = ledger.outcome(ledger.outcome(tx_hash).receipt_ids[0])
    waiting = outcome.status.receipt_id
    assert ledger.receipt(waiting).is_promise_yield
    assert ledger.world.outcome(waiting) is None
    resumed = ledger.run("bob.near", "s.near", do(["resume", "here"]))
    assert result_of(resumed) == [True]
    assert result_of(ledger.outcome(waiting)) == ["here"]
    assert ledger.outcome(waiting).block_height == resumed.block_height + 1
    assert ledger.is_whole()


def test_a_yielded_call_is_resumed_once(ledger):
    """The second time in one call, and any time later, nothing waits there any more."""
    ledger.send("alice.near", "s.near", do(*WAIT))
    ledger.world.advance(2)
    outcome = ledger.run("bob.near", "s.near", do(["resume", "here", 2]))
    assert result_of(outcome) == [True, False]
    outcome = ledger.run("bob.near", "s.near", do(["resume", "again"]))
    assert result_of(outcome) == [False]


def test_a_yielded_call_ends_after_200_blocks(ledger):
    """Nobody comes: at h+200 time is up, and the call runs with a failure instead of data."""
    outcome = ledger.run("alice.near", "s.near", do(*WAIT))
    waiting = outcome.status.receipt_id
    made = outcome.block_height
    ledger.world.advance(made + 200 - ledger.world.chain.head.height)
    assert ledger.world.outcome(waiting) is None
    ledger.world.advance()
    ended = ledger.outcome(waiting)
    assert result_of(ended) == [None]
    assert ended.block_height == made + 201
    outcome = ledger.run("bob.near", "s.near", do(["resume", "late"]))
    assert result_of(outcome) == [False]
    assert ledger.is_whole()


def test_a_timeouts_receipt_is_named_after_the_data():
    """The resume receipt of a timeout is H(data id, height, index)."""
    ledger = Ledger("alice.near", scripts=["s.near"], yield_timeout=3)
    outcome = ledger.run("alice.near", "s.near", do(*WAIT))
    waiting = ledger.receipt(outcome.status.receipt_id)
    (data_id,) = waiting.input_data_ids
    ledger.world.advance(5)
    resume = ledger.receipt(named(data_id, outcome.block_height + 3, 0))
    assert isinstance(resume, DataReceipt)
    assert resume.is_promise_resume
    assert resume.data is None


def test_a_yield_may_be_resumed_where_it_was_made(ledger):
    """A call that yields and resumes at once has its answer a block later."""
    outcome = ledger.run(
        "alice.near", "s.near", do(["wait", "w", [["results"]]], ["resume", "now"], ["give", "w"])
    )
    waiting = ledger.outcome(outcome.status.receipt_id)
    assert result_of(waiting) == ["now"]
    assert waiting.block_height == outcome.block_height + 1


def test_others_can_wait_for_a_yielded_call(ledger):
    """What the resumed call returns is what the callback after it sees."""
    steps = (
        ["wait", "w", [["value", "done"]]],
        ["then", "b", "w", "s.near", [["results"]]],
        ["give", "b"],
    )
    outcome = ledger.run("alice.near", "s.near", do(*steps))
    back = outcome.status.receipt_id
    assert is_postponed(ledger.world, back)
    ledger.run("bob.near", "s.near", do(["resume", "go"]))
    assert result_of(ledger.outcome(back)) == ['"done"']


def test_nobody_else_resumes_a_yielded_call(ledger):
    """The data id is its account's own: another contract that knows it finds nothing."""
    outcome = ledger.run("alice.near", "s.near", do(*WAIT))
    data_id = ledger.world.state().data("s.near", b"wait")
    ledger.world.store.data.put("t.near", b"wait", data_id)
    assert result_of(ledger.run("bob.near", "t.near", do(["resume", "x"]))) == [False]
    assert is_postponed(ledger.world, outcome.status.receipt_id)


# Failures --------------------------------------------------------------------------------


def test_a_batch_that_fails_leaves_nothing(ledger):
    """Action 3 of 4 fails: no account, key or record remains; logs, nonce and fees do."""
    before = ledger.account("s.near")
    outcome = ledger.run(
        "s.near",
        "s.near",
        AddKey(public("new")),
        do(["write", "k", "v"], ["log", "kept"], ["call", "a", "t.near", []]),
        DeleteKey(public("absent")),
        DeleteKey(public("s.near")),
    )
    assert index_of(outcome) == 2
    assert result_of(outcome) == {
        "DeleteKeyDoesNotExist": {"account_id": "s.near", "public_key": str(public("absent"))}
    }
    assert outcome.logs == ("kept",)
    assert len(outcome.receipt_ids) == 1
    after = ledger.account("s.near")
    assert after.storage_usage == before.storage_usage
    assert ledger.access_key("s.near", "new") is None
    assert ledger.access_key("s.near").nonce == 1
    assert ledger.world.state().data("s.near", b"k") is None
    assert after.amount < before.amount
    assert ledger.is_whole()


def test_what_came_after_the_failure_is_not_paid_for(ledger):
    """Burnt are the receipt and the actions up to the failing one; the rest is given back."""
    create, fails = CreateAccount(), DeleteKey(public("absent"))
    outcome = ledger.run("alice.near", "sub.alice.near", create, fails, Transfer(3 * N))
    burnt = RECEIPT + CREATE + 94_946_625_000
    assert index_of(outcome) == 1
    assert outcome.gas_burnt == burnt
    assert outcome.tokens_burnt == burnt * PRICE
    deposit, gas = (ledger.receipt(child) for child in outcome.receipt_ids)
    assert deposit.actions == (Transfer(3 * N),)
    assert (deposit.receiver_id, deposit.signer_id) == ("alice.near", "system")
    assert str(deposit.signer_public_key) == "ed25519:11111111111111111111111111111111"
    assert deposit.gas_price == 0
    assert gas.actions == (Transfer(TRANSFER * PURCHASE + burnt * (PURCHASE - PRICE)),)
    assert (gas.receiver_id, gas.signer_id) == ("alice.near", "alice.near")
    assert gas.signer_public_key == public("alice.near")


def test_a_deposit_goes_back_to_the_calling_contract(ledger):
    """The user pays the contract, its call fails: the contract has the deposit, not the user."""
    steps = (["call", "a", "t.near", [["panic", "no"]], {"deposit": 5 * N, "weight": 1}],)
    outcome = ledger.run("alice.near", "s.near", do(*steps, deposit=5 * N))
    failed = ledger.children(outcome)[0]
    deposit, gas = (ledger.receipt(child) for child in failed.receipt_ids)
    assert (deposit.receiver_id, deposit.actions) == ("s.near", (Transfer(5 * N),))
    assert gas.receiver_id == "alice.near"
    assert ledger.account("s.near").amount > 1005 * N
    assert ledger.account("t.near").amount < 1001 * N
    assert ledger.account("alice.near").amount < 995 * N


def test_a_contract_names_who_gets_a_deposit_back(ledger):
    """The deposit of its failed call goes to the account that it named, and not to itself."""
    # Source: nearcore, `promise_set_refund_to` in near-vm-runner and `balance_refund_receiver`
    # in core/primitives/src/receipt.rs.
    calling = ["call", "p", "t.near", [["panic", "no"]], {"weight": 1, "deposit": 7}]
    outcome = ledger.run("alice.near", "s.near", do(calling, ["refund_to", "p", "bob.near"]))
    failed = ledger.outcome(outcome.receipt_ids[0])
    assert isinstance(result_of(failed), dict)
    assert ledger.receipt(failed.id).refund_to == "bob.near"
    assert ledger.account("bob.near").amount == 1000 * N + 7
    assert ledger.receipt(failed.receipt_ids[0]).receiver_id == "bob.near"


def test_a_transaction_may_do_nothing(ledger):
    """Without actions it costs its receipts, succeeds, and returns nothing."""
    outcome = ledger.run("alice.near", "bob.near")
    assert outcome.gas_burnt == RECEIPT
    assert outcome.status == SuccessValue(b"")
    assert ledger.account("alice.near").amount == 1000 * N - 2 * RECEIPT * PRICE


def test_a_refund_costs_nothing(ledger):
    """It burns gas in name only, makes no receipt, and returns nothing."""
    outcome = ledger.run("alice.near", "bob.near", Transfer(1))
    (refund,) = ledger.children(outcome)
    assert (refund.gas_burnt, refund.tokens_burnt) == (223_182_562_500, 0)
    assert refund.receipt_ids == ()
    assert refund.status == SuccessValue(b"")


# Money -----------------------------------------------------------------------------------


def test_what_a_call_does_not_use_comes_back(ledger):
    """The gas refund is the rest at the purchase price, and the difference on what burnt."""
    call = do(gas=30 * TGAS)
    outcome = ledger.run("alice.near", "s.near", call)
    burnt = outcome.gas_burnt
    unused = execution_of(call) + 30 * TGAS - burnt
    (refund,) = (ledger.receipt(child) for child in outcome.receipt_ids)
    assert refund.actions == (Transfer(unused * PURCHASE + burnt * (PURCHASE - PRICE)),)
    assert outcome.tokens_burnt == burnt * PRICE


def test_a_calls_computation_is_paid_in_part_to_its_contract(ledger):
    """30 % of what burns inside the call, at the burn price; the tokens burnt stay the same."""
    call = do(["write", "k", "v"])
    outcome = ledger.run("alice.near", "s.near", call)
    inside = outcome.gas_burnt - execution_of(call)
    assert ledger.account("s.near").amount == 1000 * N + inside * 30 // 100 * PRICE
    assert outcome.tokens_burnt == outcome.gas_burnt * PRICE


def test_a_call_that_fails_pays_its_contract_too(ledger):
    """The computation was done, so the contract gets its share."""
    call = do(["panic", "no"])
    outcome = ledger.run("alice.near", "s.near", call)
    inside = outcome.gas_burnt - execution_of(call)
    assert inside > TGAS
    assert ledger.account("s.near").amount == 1000 * N + inside * 30 // 100 * PRICE
    assert ledger.is_whole()


def test_contracts_get_nothing_from_version_87_on():
    """The reward is 0 there, and everything burns."""
    ledger = Ledger("alice.near", scripts=["s.near"], profile="87")
    outcome = ledger.run("alice.near", "s.near", do(["write", "k", "v"]))
    assert ledger.account("s.near").amount == 1000 * N
    assert outcome.gas_burnt > TGAS
    assert ledger.is_whole()


def test_a_gas_refund_restores_the_allowance():
    """After the call the key's allowance lacks what was burnt, and no more."""
    genesis = Genesis()
    key = (public("alice.near"), AccessKey(0, FunctionCallPermission(N, "s.near")))
    genesis.account("alice.near", 10 * N, keys=[key])
    ledger = Ledger(scripts=["s.near"], genesis=genesis)
    tx_hash = ledger.send("alice.near", "s.near", do())
    ledger.world.advance()
    assert ledger.access_key("alice.near").permission.allowance < 9 * N // 10
    ledger.world.settle()
    tx = ledger.outcome(tx_hash)
    burnt = tx.tokens_burnt + ledger.children(tx)[0].tokens_burnt
    assert ledger.access_key("alice.near").permission.allowance == N - burnt
    assert ledger.account("alice.near").amount == 10 * N - burnt


def test_a_deposit_refund_restores_no_allowance(ledger):
    """Nor does a refund whose key is gone do any harm."""
    outcome = ledger.run("alice.near", "alice.near", DeleteKey(public("alice.near")))
    (refund,) = ledger.children(outcome)
    assert refund.status == SuccessValue(b"")
    assert ledger.access_key("alice.near") is None


def test_creation_burns_a_charge():
    """7 milliNEAR in all: the gas at the burn price, and the rest of it off the surplus."""
    ledger = Ledger("alice.near")
    outcome = ledger.run("alice.near", "sub.alice.near", CreateAccount(), Transfer(N))
    burnt = RECEIPT + CREATE + TRANSFER
    charge = 7 * 10**21 - PRICE * CREATE
    assert outcome.tokens_burnt == burnt * PRICE + charge
    (refund,) = (ledger.receipt(child) for child in outcome.receipt_ids)
    assert refund.actions == (Transfer(burnt * (PURCHASE - PRICE) - charge),)


def test_a_dear_creation_is_charged_no_more():
    """Where gas costs 10^9 the creation's gas burns more than 7 milliNEAR: no charge, no refund."""
    ledger = Ledger("alice.near", gas_price=10**9)
    outcome = ledger.run("alice.near", "sub.alice.near", CreateAccount(), Transfer(N))
    assert outcome.tokens_burnt == (RECEIPT + CREATE + TRANSFER) * 10**9
    assert outcome.receipt_ids == ()
    assert ledger.is_whole()


def test_a_dearer_creation_is_charged_less():
    """At a price of 9*10^8 the gas burns 6.48 milliNEAR, and the charge makes up 0.52 more."""
    price = 9 * 10**8
    ledger = Ledger("alice.near", gas_price=price)
    outcome = ledger.run("alice.near", "sub.alice.near", CreateAccount(), Transfer(N))
    burnt = RECEIPT + CREATE + TRANSFER
    assert outcome.tokens_burnt == burnt * price + 520 * 10**18
    assert ledger.is_whole()


def test_version_84_names_no_contracts():
    """Of an outcome's metadata only the later versions tell the contract before each action."""
    for profile, expected in (("84", None), ("86", (("local", Script.code_hash),))):
        ledger = Ledger("alice.near", scripts=["s.near"], profile=profile)
        assert ledger.run("alice.near", "s.near", do()).contracts == expected
    assert ledger.run("alice.near", "alice.near", Transfer(1)).contracts == (None,)


def test_version_84_gives_back_what_a_call_does_not_use():
    """The rest at the one price; creation costs its gas and no charge."""
    ledger = Ledger("alice.near", scripts=["s.near"], profile="84")
    call = do(gas=30 * TGAS)
    outcome = ledger.run("alice.near", "s.near", call)
    (refund,) = (ledger.receipt(child) for child in outcome.receipt_ids)
    unused = execution_of(call) + 30 * TGAS - outcome.gas_burnt
    assert refund.actions == (Transfer(unused * PRICE),)
    outcome = ledger.run("alice.near", "sub.alice.near", CreateAccount(), Transfer(N))
    assert outcome.tokens_burnt == (RECEIPT + 3_850_000_000_000 + TRANSFER) * PRICE
    assert ledger.is_whole()


def test_refunds_to_an_account_that_is_gone_burn(ledger):
    """Alice deletes herself; the gas refund finds nobody, and nobody has it."""
    supply = ledger.world.total_supply()
    outcome = ledger.run("alice.near", "alice.near", DeleteAccount("bob.near"))
    to_bob, gas = ledger.children(outcome)
    assert result_of(gas) == {"AccountDoesNotExist": {"account_id": "alice.near"}}
    assert gas.tokens_burnt == 0
    assert gas.receipt_ids == ()
    assert ledger.receipt(to_bob.id).predecessor_id == "system"
    lost = ledger.receipt(gas.id).actions[0].deposit
    tx = next(o for o in ledger.world.chain.outcomes_at(START + 1) if o.gas_profile is None)
    assert supply - ledger.world.total_supply() == lost + tx.tokens_burnt + outcome.tokens_burnt
    assert ledger.is_whole()


def test_a_refund_creates_no_account(ledger):
    """What an account leaves to an implicit id that is not there burns."""
    heir = implicit_account_id(public("heir"))
    outcome = ledger.run("alice.near", "alice.near", DeleteAccount(heir))
    left = ledger.children(outcome)[0]
    assert result_of(left) == {"AccountDoesNotExist": {"account_id": heir}}
    assert ledger.account(heir) is None
    assert ledger.world.burnt > 999 * N
    assert ledger.is_whole()


# Calls that fail -------------------------------------------------------------------------


def test_calls_fail_in_the_nodes_words(ledger):
    """No method, no code, a panic, too little gas, too little balance: the exact errors."""

    def error(receiver_id, call):
        return result_of(ledger.run("alice.near", receiver_id, call))["FunctionCallError"]

    assert error("s.near", FunctionCall("nothing", b"", TGAS * 5)) == {
        "MethodResolveError": "MethodNotFound"
    }
    assert error("bob.near", do()) == {
        "CompilationError": {"CodeDoesNotExist": {"account_id": "bob.near"}}
    }
    assert error("s.near", do(["panic", "why"])) == {
        "ExecutionError": "Smart contract panicked: why"
    }
    assert error("s.near", do(["burn", 99 * TGAS])) == {
        "ExecutionError": "Exceeded the prepaid gas."
    }
    assert error("s.near", do(["transfer", "a", "bob.near", str(2000 * N)])) == {
        "ExecutionError": "Exceeded the account balance."
    }


def test_gas_that_runs_out_is_all_burnt(ledger):
    """Nothing of what was attached comes back, but the difference of prices."""
    call = do(["burn", 40 * TGAS], gas=30 * TGAS)
    outcome = ledger.run("alice.near", "s.near", call)
    assert outcome.gas_burnt == execution_of(call) + 30 * TGAS
    (refund,) = (ledger.receipt(child) for child in outcome.receipt_ids)
    assert refund.actions == (Transfer(outcome.gas_burnt * (PURCHASE - PRICE)),)


def test_promises_reserve_the_gas_of_what_they_send(ledger):
    """A call that attaches more gas than it has left fails, and its promise is not made."""
    steps = ["call", "a", "t.near", [], {"gas": 40 * TGAS}]
    outcome = ledger.run("alice.near", "s.near", do(steps, gas=30 * TGAS))
    error = {"ExecutionError": "Exceeded the prepaid gas."}
    assert result_of(outcome) == {"FunctionCallError": error}
    assert len(outcome.receipt_ids) == 1
    inside = outcome.gas_burnt - execution_of(do(steps, gas=30 * TGAS))
    assert inside == sum(line.gas_used for line in outcome.gas_profile)
    assert TGAS < inside < 3 * TGAS  # what was only set aside is given back


def test_a_call_sees_what_it_came_with(ledger):
    """Signer, predecessor, deposit, balance and gas are the receipt's own."""
    inner = [["tell", "signer_id", "predecessor_id", "current_account_id", "attached_deposit"]]
    steps = (["call", "a", "t.near", inner, {"deposit": 3, "weight": 1}], ["give", "a"])
    outcome = ledger.run("alice.near", "s.near", do(*steps))
    called = ledger.children(outcome)[0]
    assert result_of(called) == ["alice.near", "s.near", "t.near", "3"]
    names = ["balance", "prepaid_gas", "block_height", "block_timestamp", "epoch_height"]
    before = ledger.account("s.near").amount
    outcome = ledger.run("alice.near", "s.near", do(["tell", *names], gas=9 * TGAS, deposit=4))
    block = ledger.world.chain.by_height(outcome.block_height)
    expected = [before + 4, 9 * TGAS, block.height, block.timestamp_ns, 0]
    assert result_of(outcome) == [str(value) for value in expected]


def test_a_contract_spends_its_deposit_at_once(ledger):
    """What is attached is in the balance, and what a promise takes is out of it."""
    outcome = ledger.run(
        "alice.near",
        "s.near",
        do(["transfer", "a", "bob.near", str(1003 * N)], ["tell", "balance"], deposit=5 * N),
    )
    assert result_of(outcome) == [str(2 * N)]
    assert ledger.account("bob.near").amount == 2003 * N
    assert ledger.is_whole()
