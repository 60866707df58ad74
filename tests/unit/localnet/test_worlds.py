"""The worlds: the same on every machine, and what their stories say is what happened."""

import json
from collections import Counter
from statistics import mean, median
from typing import Any

import pytest

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import Contract, call, open_world, view
from ledgerkit.localnet.chain_types import SuccessValue
from ledgerkit.protocol import CryptoHash, FullAccess, FunctionCall, SecretKey, Transaction
from ledgerkit.units import U128_MAX
from tests.world_copies import open_copy

NEAR = 10**24
GOLD = 10**6
HEADS = {
    ("empty", None): "Co9KK2B4c5DrMpRS6SmEibzL6pVq5AyA4fEcbr98P3oY",
    ("demo", None): "EGfdmc3KSDMDQupHwt58uCnLoZagAGTvueids23S7Ffa",
    ("crowd", 100): "7pubdnEArHGRgApCHtxp5i5iswJYZ57ZGzESxYdunXm4",
}

# The receipts that fail in each story: where, at which action, and of what. None of the rest.
FAILURES = {
    "a delegate action that expired": [("kate.near", 0, "DelegateActionExpired")],
    "tokens sent to a contract, which panics": [
        ("sour.near", 0, "Smart contract panicked: no thanks")
    ],
    "three calls, of which two fail, and one callback": [
        ("async.near", 0, "MethodNotFound"),
        ("shop.near", 0, "MethodNotFound"),
    ],
    "a swap that is refunded: the exchange is paused": [
        ("dex.near", 0, "Smart contract panicked: the contract is paused")
    ],
    "a batch that rolls back at its third action": [("shop.judy.near", 2, "AddKeyAlreadyExists")],
    "a call that panics": [("counter.near", 0, "Smart contract panicked: not today")],
    "a call of a missing method": [("counter.near", 0, "MethodNotFound")],
    "a call of an account without code": [("dave.near", 0, "CodeDoesNotExist")],
    "a call with too little gas": [("async.near", 0, "Exceeded the prepaid gas.")],
    "a failed call whose callback succeeds": [
        ("counter.near", 0, "Smart contract panicked: The counter was told to fail")
    ],
    "a detached failure: no callback waits for it": [
        ("async.near", 0, "Smart contract panicked: told to fail")
    ],
    "tokens to an account that is not registered": [
        ("gold.near", 0, "Smart contract panicked: The account wendy.near is not registered")
    ],
    "an account creation refunded: the name is taken": [("bob.near", 0, "AccountAlreadyExists")],
    "an account deleted": [("temp.olga.near", 0, "AccountDoesNotExist")],  # the gas refund
}
NESTS = {"FunctionCallError", "ExecutionError", "MethodResolveError", "CompilationError"}
WAITING = "a yielded call that waits to be resumed"


class Guestbook(Contract):
    """Remembers who was there last."""

    @view
    def last(self) -> str:
        return (self.vm.storage_read(b"last") or b"nobody").decode()

    @call
    def sign(self) -> None:
        self.vm.storage_write(b"last", self.vm.predecessor_id.encode())


def opened(name, **options) -> Any:
    return open_world(name, **options)


@pytest.fixture(scope="module")
def demo():
    """Open the demo world once, to read in it."""
    return opened("demo")


@pytest.fixture(scope="module")
def crowd():
    """Open a crowd of a thousand once, to read in it."""
    return opened("crowd", size=1000)


def outcomes(world, story):
    """Collect the outcomes of a story's transaction and all its receipts; None where one waits."""
    record = world.transaction(CryptoHash(story.tx_hash))
    collected, stack = [], [record.outcome]
    while stack:
        outcome = stack.pop()
        collected.append(outcome)
        stack += [world.outcome(child) for child in outcome.receipt_ids] if outcome else []
    return collected


def reason(kind):
    """Return the innermost text or name of an action's error."""
    if isinstance(kind, str):
        return kind
    [(name, inner)] = kind.items()
    return reason(inner) if name in NESTS else name


def failures(world, story):
    """List the failed receipts of a story: account, action, reason."""
    ended = [(one.executor_id, one.status) for one in outcomes(world, story) if one]
    errors = [(where, s.error["ActionError"]) for where, s in ended if hasattr(s, "error")]
    return sorted((where, error["index"], reason(error["kind"])) for where, error in errors)


def call_view(world, contract_id, method_name, **args):
    data = json.dumps(args).encode()
    return json.loads(world.view(contract_id, method_name, data, world.chain.head).result)


def holdings(world, people):
    """Return the balances of people, in yoctoNEAR."""
    return [world.balance(name) for name in people]


# The same on every machine ----------------------------------------------------------------


@pytest.mark.parametrize(("name", "size"), HEADS, ids=lambda value: str(value or ""))
def test_a_world_is_the_same_on_every_machine(name, size):
    """The head's hash, which depends on everything before it, is the one known."""
    world = opened(name, size=size)

    assert str(world.chain.head.hash) == HEADS[name, size]


def test_a_world_opened_twice_is_the_same(demo):
    """Receipts, their outcomes, stories and keys come again, one by one."""
    again = opened("demo")

    assert again.chain.head.hash == demo.chain.head.hash
    assert again.receipts() == demo.receipts()
    assert [again.outcome(r.receipt_id) for r in again.receipts()] == [
        demo.outcome(r.receipt_id) for r in demo.receipts()
    ]
    assert again.summary == demo.summary


@pytest.mark.parametrize("name", ["empty", "demo", "crowd", "person"])
def test_another_seed_is_another_world(name):
    """Neither the hashes nor the keys of two seeds are the same."""
    one, other = opened(name), opened(name, seed=1)

    assert one.chain.head.hash != other.chain.head.hash
    assert one.chain.head.height == other.chain.head.height
    assert set(one.keys().values()) & set(other.keys().values()) == set()


# The demo ---------------------------------------------------------------------------------


def test_every_story_is_told_here(demo):
    """Each story is one transaction of the account that it is said to be of."""
    stories = {tx.description for tx in demo.summary.transactions}

    assert len(stories) == len(demo.summary.transactions) > 45
    assert stories >= {*FAILURES, WAITING}
    for tx in demo.summary.transactions:
        signed = demo.transaction(CryptoHash(tx.tx_hash)).signed
        assert signed.transaction.signer_id == tx.signer_id, tx.description


def test_every_story_ends_as_it_says(demo):
    """What is to fail fails, where and of what it is said to, and nothing else does."""
    ended = {tx.description: failures(demo, tx) for tx in demo.summary.transactions}

    assert {story: errors for story, errors in ended.items() if errors} == FAILURES


def test_only_one_story_has_no_end_yet(demo):
    """A call waits for a word that nobody says; all other receipts were executed."""
    open_ended = [tx.description for tx in demo.summary.transactions if None in outcomes(demo, tx)]

    assert open_ended == [WAITING]


def test_the_call_that_waits_is_answered_in_the_end():
    """After 200 blocks a yielded call goes on without an answer, and nothing waits."""
    world = opened("demo")
    story = next(tx for tx in world.summary.transactions if tx.description == WAITING)

    world.advance(200)

    last = outcomes(world, story)
    assert None not in last
    assert failures(world, story) == []


def test_amounts_add_up_in_the_end(demo):
    """What people own is what they began with, and what their stories moved."""
    assert demo.balance("wendy.near") == 1_234 * NEAR // 1000
    assert demo.balance("erin.near") == demo.balance("kate.near") == 0
    alice = 1250 * GOLD - 1000 - (1000 - 400) + 3 * GOLD  # shop keeps, picky gives back, kate
    assert call_view(demo, "gold.near", "ft_balance_of", account_id="alice.near") == str(alice)
    ivan = (8 * 8 * 137 + 11) * GOLD // 4 - 120 * GOLD  # one swap of two
    assert call_view(demo, "gold.near", "ft_balance_of", account_id="ivan.near") == str(ivan)
    kate = (10 * 10 * 137 + 11) * GOLD // 4 - 3 * GOLD
    assert call_view(demo, "gold.near", "ft_balance_of", account_id="kate.near") == str(kate)
    carol = (260 + 40) * NEAR
    assert call_view(demo, "liquid.near", "ft_balance_of", account_id="carol.near") == str(carol)
    bob = (200 + 50) * NEAR + 123_456_789
    staked = call_view(
        demo, "north.poolv1.near", "get_account_staked_balance", account_id="bob.near"
    )
    assert staked == str(bob)
    assert call_view(demo, "counter.near", "get_num") == 41 + 1
    assert call_view(demo, "moon.near", "ft_total_supply") == str(U128_MAX)
    assert call_view(demo, "slow.near", "ft_balance_of", account_id="carol.near") == str(
        7900 - 7000
    )


def test_accounts_come_and_go(demo):
    """Created accounts are there, closed and rolled back ones are not, and a key is gone."""
    ids = set(demo.account_ids())

    assert {"nina.near", "clicks.factory.near", "stamps.grace.near", "tickets.grace.near"} <= ids
    assert {"temp.olga.near", "shop.judy.near"} & ids == set()
    assert demo.balance("nina.near") == 2 * NEAR
    assert call_view(demo, "clicks.factory.near", "get_num") == 7
    assert len(list(demo.state().access_keys("frank.near"))) == 4
    owners = [
        call_view(demo, "stamps.grace.near", "nft_token", token_id=one)["owner_id"]
        for one in ("17", "204", "205")
    ]
    assert owners == ["alice.near", "uma.near", "uma.near"]


@pytest.mark.parametrize("name", ["empty", "demo", "crowd", "person"])
def test_published_keys_are_the_accounts_keys(name):
    """Every story's secret key fits a full access key of its account."""
    world = opened(name)

    for story in world.summary.accounts:
        public = SecretKey.from_text(story.secret_key).public_key
        access_key = world.state().access_key(story.account_id, public.packed)
        assert access_key is not None, story.account_id
        assert access_key.permission == FullAccess(), story.account_id


@pytest.mark.parametrize("name", ["empty", "demo", "crowd", "person"])
def test_no_yocto_is_made_or_lost(name):
    """All there is was there at the beginning, but for the gas that was burnt."""
    world = opened(name)

    assert world.minted == 0
    assert (world.burnt > 0) == (name in {"demo", "person"})
    assert world.total_supply() == world.chain.genesis.total_supply - world.burnt
    assert world.chain.head.total_supply == world.total_supply()


# The person --------------------------------------------------------------------------------


def test_a_persons_transactions_succeed():
    """Each transaction is the signer's own, and nothing in it fails."""
    world = opened("person")

    assert {tx.signer_id for tx in world.summary.transactions} >= {"maria.near"}
    for tx in world.summary.transactions:
        signed = world.transaction(CryptoHash(tx.tx_hash)).signed
        assert signed.transaction.signer_id == tx.signer_id, tx.description
        assert None not in outcomes(world, tx), tx.description
        assert failures(world, tx) == [], tx.description


# Empty and crowd ----------------------------------------------------------------------------


def test_the_empty_world_is_empty():
    """There is an owner and a validator, and nothing has happened."""
    world = opened("empty")

    assert world.account_ids() == ["near", "validator.near"]
    assert world.balance("near") == 10**9 * NEAR
    assert world.state().account("validator.near").locked == 10**7 * NEAR
    assert world.receipts() == []
    assert [story.account_id for story in world.summary.accounts] == ["near"]


def test_few_have_much_and_most_have_little(crowd):
    """The richest tenth has most of all NEAR; half of all have less than a tenth of the mean."""
    people = [name for name in crowd.account_ids() if name.startswith("person")]
    owned = sorted(holdings(crowd, people), reverse=True)

    assert len(people) == 1000
    assert 0.6 < sum(owned[:100]) / sum(owned) < 0.9
    assert sum(owned[500:]) / sum(owned) < 0.15
    assert median(owned) < mean(owned) / 3
    assert owned[-1] >= NEAR


def test_first_tokens_are_held_by_more(crowd):
    """A token's holders fall off with its rank, and some balances are used up."""
    state = crowd.state()
    holders = [
        [value for _, value in state.records(f"token{number:02}.near") if len(value) == 16]
        for number in (0, 1, 11)
    ]

    counts = [len(balances) for balances in holders]
    assert counts[0] > counts[1] > counts[2] > 0
    assert counts[0] > 5 * counts[2]
    emptied = Counter(value == bytes(16) for value in holders[0])
    assert 0.05 < emptied[True] / emptied.total() < 0.15


def test_a_crowd_can_be_as_small_as_one():
    """One person is a crowd."""
    world = opened("crowd", size=1)

    assert [name for name in world.account_ids() if name.startswith("person")] == [
        "person0000000.near"
    ]


@pytest.mark.parametrize("size", [0, -1, 5_000_001, True, 1.5, "10"])
def test_a_crowd_that_cannot_be_is_refused(size):
    """Nobody, too many, and what is no number are refused by name."""
    with pytest.raises(InvalidRequestError, match="an integer from 1 to 5000000") as caught:
        opened("crowd", size=size)
    assert caught.value.field == "size"


@pytest.mark.parametrize(
    ("name", "size", "field"), [("demo", 5, "size"), ("empty", 5, "size"), ("moon", None, "world")]
)
def test_a_world_that_cannot_be_is_refused(name, size, field):
    """A size where it is fixed, and an unknown name, are refused by name."""
    with pytest.raises(InvalidRequestError) as caught:
        opened(name, size=size)
    assert caught.value.field == field


def test_a_world_takes_settings():
    """What is asked for takes the place of the world's own setting, and of no other."""
    world = opened("demo", chain_id="mynet")

    assert world.settings.chain_id == "mynet"
    assert world.settings.balance_lag == opened("demo").settings.balance_lag > 0
    assert world.chain.head.hash != opened("demo").chain.head.hash


def test_another_clock_changes_no_history():
    """Blocks come at another pace from now on; what happened keeps its hashes."""
    world = open_world("demo", block_time_ns=10**9, real_time=True, api_keys=("k",))

    assert world.chain.head.hash == opened("demo").chain.head.hash
    before = world.chain.head.timestamp_ns
    assert world.advance(5).timestamp_ns - before == 5 * 10**9


def test_a_setting_that_there_is_not_is_refused():
    """A mistyped setting is named, with those there are."""
    with pytest.raises(InvalidRequestError, match=r"'block_tim' .* block_time_ns") as caught:
        opened("empty", block_tim=5)
    assert caught.value.field == "settings"


# A contract of one's own ------------------------------------------------------------------


def test_a_contract_of_ones_own():
    """It is deployed by a transaction, keeps what calls write, and answers views."""
    world = opened("empty")
    created = world.deploy("book.near", Guestbook, balance="3 NEAR")
    receipt = world.transaction(created.hash).receipt
    assert world.outcome(receipt.receipt_id).status == SuccessValue(b"")
    assert world.balance("book.near") == 3 * NEAR
    assert call_view(world, "book.near", "last") == "nobody"
    assert world.state().code_hash(world.state().account("book.near")) == Guestbook.code_hash

    key = SecretKey.from_text(world.keys()["near"])
    nonce = world.state().access_key("near", key.public_key.packed).nonce + 1
    sign = FunctionCall("sign", b"{}", 10**13, 0)
    final = world.chain.final.hash
    world.submit(Transaction("near", key.public_key, nonce, "book.near", final, [sign]).sign(key))
    world.settle()

    assert call_view(world, "book.near", "last") == "near"
    assert world.total_supply() == world.chain.genesis.total_supply - world.burnt


@pytest.mark.parametrize(
    ("account_id", "words"),
    [
        ("book.nowhere.near", "a sub-account of an account with a published key"),
        ("book", "a sub-account of an account with a published key"),
        ("Book.near", "a-z, 0-9"),
    ],
)
def test_an_account_that_nobody_can_create_is_refused(account_id, words):
    """The account above has to be one whose key is published; nothing is sent."""
    world = opened("empty")

    with pytest.raises(InvalidRequestError, match=words) as caught:
        world.deploy(account_id, Guestbook)

    assert caught.value.field == "account_id"
    assert not world.is_busy


def test_deploying_where_an_account_is_says_so() -> None:
    """What the chain refuses is told, and nothing seems to have worked."""
    world = open_world("demo")
    with pytest.raises(InvalidRequestError, match="AccountAlreadyExists"):
        world.deploy("bob.near", Guestbook)


@pytest.mark.parametrize("name", ["demo", "empty"])
def test_a_copy_continues_as_the_world_itself(name):
    """The copies that other tests open have the state and the future of a new world."""
    built, changed, copied = open_world(name), open_copy(name), open_copy(name)
    changed.deploy(f"book.{next(iter(changed.keys()))}", Guestbook)
    changed.settle()
    for world in (built, copied):
        world.advance(3)
        world.settle()

    assert copied.chain.head == built.chain.head
    assert copied.keys() == built.keys()
    assert copied.total_supply() == built.total_supply()
    assert changed.chain.head != built.chain.head
