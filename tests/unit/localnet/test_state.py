"""State with a past: written, rolled back, committed, read at any height, forgotten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.localnet.chain_types import Account
from ledgerkit.localnet.state import StateStore, nonce_key, split_nonce_key
from ledgerkit.protocol import CryptoHash
from tests.unit.localnet.ledger import public

CAUSE = ("receipt_processing", CryptoHash(bytes(32)))
ACCOUNTS = ("a", "b")
KEYS = (b"", b"k", b"k2", b"x")

# What is done: write a value at a place, or mark, undo, or end a block after so many heights.
_WRITE = st.tuples(
    st.just("write"),
    st.sampled_from(ACCOUNTS),
    st.sampled_from(KEYS),
    st.one_of(st.none(), st.binary(max_size=2)),
)
_STEPS = st.lists(
    st.one_of(
        _WRITE,
        st.just(("mark",)),
        st.just(("undo",)),
        st.just(("settle",)),
        st.tuples(st.just("block"), st.integers(1, 3)),
    ),
    max_size=60,
)


class Naive:
    """The same state kept whole at every height."""

    def __init__(self):
        self.now = {}
        self.marks = []
        self.height = 10
        self.past: dict[int, dict] = {10: {}}

    def write(self, account_id, key, value):
        if value is None:
            self.now.pop((account_id, key), None)
        else:
            self.now[account_id, key] = value

    def mark(self):
        self.marks.append(dict(self.now))

    def undo(self):
        self.now = self.marks.pop()


class Both:
    """A store and the naive one, doing the same."""

    def __init__(self):
        self.store, self.naive = StateStore(), Naive()
        self.marks: list[int] = []

    def do(self, verb, *operands):
        getattr(self, verb)(*operands)

    def write(self, account_id, key, value):
        self.store.data.put(account_id, key, value)
        self.naive.write(account_id, key, value)

    def mark(self):
        self.marks.append(self.store.mark())
        self.naive.mark()

    def undo(self):
        if self.marks:
            self.store.rollback(self.marks.pop())
            self.naive.undo()

    def settle(self):
        """Commit in the midst of a block, as each receipt does."""
        before = self.naive.past.get(self.naive.height + 1, self.naive.past[self.naive.height])
        changes = self.store.commit(self.naive.height + 1, CAUSE)
        told = {(c.account_id, c.key): c.value for c in changes}
        places = before.keys() | self.naive.now.keys()
        assert told == {
            place: self.naive.now.get(place)
            for place in places
            if before.get(place) != self.naive.now.get(place)
        }
        self.naive.past[self.naive.height + 1] = dict(self.naive.now)
        self.marks.clear()
        self.naive.marks.clear()

    def block(self, skip):
        """End a block; the next one may be some heights further."""
        self.settle()
        height = self.naive.height + 1
        for between in range(height, height + skip):
            self.naive.past[between] = dict(self.naive.now)
        self.naive.height = height + skip - 1


def all_of(state):
    """Gather what a state has, key by key and by going through it."""
    single = {
        (account_id, key): value
        for account_id in ACCOUNTS
        for key in KEYS
        if (value := state.data(account_id, key)) is not None
    }
    listed = {
        (account_id, key): value
        for account_id in ACCOUNTS
        for key, value in state.records(account_id)
    }
    assert single == listed
    return single


@given(_STEPS)
def test_every_height_is_what_it_was(steps):
    """After any steps the state at each height is the whole copy that was kept of it."""
    both = Both()
    for step in steps:
        both.do(*step)
    both.block(1)
    for height, expected in both.naive.past.items():
        assert all_of(both.store.at(height)) == expected
    assert all_of(both.store.at()) == both.naive.now


@given(_STEPS, st.integers(0, 30))
def test_what_is_forgotten_harms_nothing_later(steps, ago):
    """Without the states before a height, those from it on are the same."""
    both = Both()
    for step in steps:
        both.do(*step)
    both.block(1)
    oldest = max(10, both.naive.height - ago)
    both.store.prune(oldest)
    for height, expected in both.naive.past.items():
        if height >= oldest:
            assert all_of(both.store.at(height)) == expected


def test_records_come_in_the_order_of_their_keys():
    """By bytes, those of one prefix, of one account, without the deleted."""
    store = StateStore()
    for key in (b"kb", b"a", b"ka", b"k", b"l"):
        store.data.put("a", key, key)
    store.data.put("b", b"kz", b"")
    store.data.put("a", b"ka", None)
    assert [key for key, _ in store.at().records("a", b"k")] == [b"k", b"kb"]
    assert [key for key, _ in store.at().records("a")] == [b"a", b"k", b"kb", b"l"]
    assert list(store.at().records("c")) == []


@pytest.mark.parametrize("by_hash", [True, False])
def test_global_code_has_a_past_too(by_hash):
    """A follower of an account runs what the account had published by then."""
    store = StateStore()
    code = CryptoHash.of(b"code")
    store.codes[code] = b"code"
    identifier = code if by_hash else "a"
    store.global_codes.put(code.hex() if by_hash else "a", b"", code)
    store.commit(5, CAUSE)
    account = Account(1, global_contract=identifier)
    assert store.at().global_code_hash(identifier) == code
    assert store.at().global_code_hash(CryptoHash.of(b"other")) is None
    assert store.at(5).code_hash(account) == code
    assert store.at(4).code_hash(account) is None
    assert store.at(5).code_hash(Account(1, code_hash=code)) == code
    assert store.at(5).code_hash(Account(1)) is None


def test_nonces_of_a_gas_key_have_a_past():
    """Each index is on its own, in the order of the indexes, and as it was at each height."""
    store = StateStore()
    key, other = public("k").packed, public("other").packed
    for index in (256, 1, 0):
        store.gas_key_nonces.put("a", nonce_key(key, index), 10 + index)
    store.gas_key_nonces.put("a", nonce_key(other, 0), 1)
    store.commit(5, CAUSE)
    store.gas_key_nonces.put("a", nonce_key(key, 1), 99)
    store.commit(6, CAUSE)
    assert store.at().gas_key_nonces("a", key) == [10, 99, 266]
    assert store.at(5).gas_key_nonces("a", key) == [10, 11, 266]
    assert store.at(4).gas_key_nonces("a", key) == []
    assert store.at().gas_key_nonce("a", key, 2) is None
    assert split_nonce_key(nonce_key(key, 256)) == (key, 256)
