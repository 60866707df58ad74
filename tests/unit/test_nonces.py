"""The count of a key's nonces: what comes next, who sends when, what is given back."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.protocol import CryptoHash, SecretKey, Transaction, Transfer
from ledgerkit.sending import nonces
from ledgerkit.sending.nonces import Anchor, KeyQueues, NonceQueue, next_nonce

ANCHOR = Anchor(100, CryptoHash.of(b"a block"))


def signed(nonce):
    key = SecretKey.generate()
    block_hash = ANCHOR.block_hash
    tx = Transaction("a.near", key.public_key, nonce, "b.near", block_hash, [Transfer(1)])
    return tx.sign(key)


def test_the_next_nonce(subtests):
    """Above all that is under way; for a strict key the lowest that is free."""
    cases = [
        (0, (), 1, 1),
        (7, (), 8, 8),
        (7, (8, 9), 10, 10),
        (7, (9,), 10, 8),  # a gap: passed over, or filled
        (7, (8, 10, 12), 13, 9),
        (7, (3, 5), 8, 8),  # used up long ago
        (2**63, (2**63 + 1,), 2**63 + 2, 2**63 + 2),
    ]
    for ak_nonce, reserved, monotonic, strict in cases:
        with subtests.test(ak_nonce=ak_nonce, reserved=reserved):
            assert next_nonce(ak_nonce, reserved) == monotonic
            assert next_nonce(ak_nonce, reserved, strict=True) == strict


@given(st.integers(0, 50), st.sets(st.integers(0, 60)))
def test_the_next_nonce_is_always_free(ak_nonce, reserved):
    """It is never used up nor reserved, and a strict one leaves nothing free below it."""
    nonce = next_nonce(ak_nonce, reserved)
    assert nonce > ak_nonce
    assert nonce > max(reserved, default=0)
    strict = next_nonce(ak_nonce, reserved, strict=True)
    assert set(range(ak_nonce + 1, strict)) <= reserved
    assert ak_nonce < strict
    assert strict not in reserved


def test_a_key_is_read_when_nobody_uses_it():
    """A reading serves while transactions are under way, and no longer than it is fresh."""
    queue = NonceQueue()
    assert queue.anchor is None
    queue.update(7, ANCHOR)
    assert queue.anchor is None  # nobody is under way: somebody else may use the key
    assert queue.reserve() == 8
    assert queue.anchor == ANCHOR
    queue._read_at = time.monotonic() - 31
    assert queue.anchor is None
    queue.update(7, ANCHOR)
    assert (queue.peek(7), queue.peek(20), queue.reserve()) == (9, 21, 9)


def test_what_has_landed_is_not_forgotten():
    """A node that is behind does not make a used nonce come again."""
    queue = NonceQueue()
    queue.update(7, ANCHOR)
    assert [queue.reserve(), queue.reserve()] == [8, 9]
    queue.mark_used(9)
    queue.update(7, ANCHOR)
    assert queue.reserve() == 10
    queue.release(10)
    queue._used_at = time.monotonic() - 31  # so far behind is no node: it is another chain
    queue.update(7, ANCHOR)
    assert queue.reserve() == 8


def test_what_is_given_back_comes_again():
    """The last one given back is the next; one in the middle is a gap for strict ones only."""
    queue = NonceQueue()
    queue.update(0, ANCHOR)
    assert [queue.reserve() for _ in range(3)] == [1, 2, 3]
    queue.release(3)
    assert queue.anchor is None  # the key is read again
    assert queue.reserve() == 3
    for nonce in (2, 3):
        queue.add_signed(signed(nonce))
    queue.release(1)
    assert queue.reserve() == 4
    assert queue.reserve(strict=True) == 1
    queue.release(77)


def test_a_strict_nonce_waits_for_nothing_unsent():
    """What was signed for somebody else to send does not block a strict key."""
    queue = NonceQueue()
    queue.update(0, ANCHOR)
    assert queue.reserve() == 1  # of a delegated action
    queue.add_signed(signed(queue.reserve()))
    assert queue.reserve(strict=True) == 1


def test_what_has_not_landed():
    """What was signed and did not land is there to be sent again."""
    queue = NonceQueue()
    queue.update(0, ANCHOR)
    kept = [signed(queue.reserve()) for _ in range(3)]
    queue.reserve()  # not signed yet
    for one in kept[:2]:
        queue.add_signed(one)
    assert queue.unconfirmed() == kept[:2]
    queue.mark_used(1)
    assert queue.unconfirmed() == kept[1:2]
    queue.release(2)
    assert queue.unconfirmed() == []


def test_turns_are_taken_one_at_a_time():
    """One sends at a time, each knows whether others wait, and a failure ends its turn."""
    queue, inside, crowded = NonceQueue(), [], []
    queue.update(0, ANCHOR)

    def send(_):
        with queue.turn():
            inside.append(1)
            assert len(inside) == 1
            nonce = queue.reserve()
            crowded.append(not queue.has_one_sender)
            time.sleep(0.001)
            inside.pop()
            return nonce

    with ThreadPoolExecutor(16) as pool:
        handed = list(pool.map(send, range(200)))
    assert sorted(handed) == list(range(1, 201))
    assert any(crowded)
    with pytest.raises(KeyError), queue.turn():
        raise KeyError
    with queue.turn():
        assert queue.has_one_sender


def test_a_lane_is_shared_by_the_process():
    """One key on one ledger has one queue, whichever thread asks; others have their own."""

    class Chain:
        """Stands for a world, or a ledger."""

        def __init__(self) -> None:
            self.objects: dict[str, Any] = {}

        def memo(self, key, factory):
            return self.objects.setdefault(key, factory())

    chain, found = Chain(), []

    def look(where=chain):
        found.append(nonces.key_queues(where, "a.near", "k"))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
    others = [
        nonces.key_queues(chain, "b.near", "k"),
        nonces.key_queues(chain, "a.near", "l"),
        nonces.key_queues(Chain(), "a.near", "k"),
        nonces.key_queues("https://a", "a.near", "k"),
    ]
    assert len({*map(id, [*others, found[0]])}) == 5
    assert nonces.key_queues("https://a", "a.near", "k") is others[3]
    shared = weakref.ref(found[0])
    del chain, look, threads, thread
    found.clear()
    gc.collect()
    assert shared() is None


def test_senders_of_a_gas_key_share_its_nonces():
    """Each takes the first index that nobody uses, then those with the fewest senders."""
    queues = KeyQueues()
    assert queues.pick() is queues.pick() is queues.ordinary
    queues.num_nonces = 3
    with queues.pick().turn(), queues.pick().turn(), queues.pick().turn():
        assert queues.pick().nonce_index == 0
        assert [queue.sender_count for queue in queues._queues.values()] == [0, 1, 1, 1]
    with queues.pick().turn():
        assert queues.pick().nonce_index == 1
    assert queues.pick().nonce_index == 0


def test_a_queue_fits_one_kind_of_key():
    """An ordinary key has no index, and a gas key has as many as it has nonces."""
    queues = KeyQueues()
    last = NonceQueue(2)
    assert (queues.fits(queues.ordinary), queues.fits(last)) == (True, False)
    queues.num_nonces = 3
    assert (queues.fits(queues.ordinary), queues.fits(last)) == (False, True)
    queues.num_nonces = 2
    assert not queues.fits(last)
