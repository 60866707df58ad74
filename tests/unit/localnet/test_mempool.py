"""What waits for a block: by shard and lane, the lowest nonce first, a round at a time."""

from ledgerkit.localnet.mempool import Mempool
from ledgerkit.protocol import Transaction, Transfer
from tests.unit.localnet.ledger import START, Ledger, N, public, secret

BLOCK = bytes(32)


def signed(signer_id, nonce, key=None, **more):
    """Sign a transfer to oneself."""
    held = secret(key or signer_id)
    actions = [Transfer(nonce)]
    tx = Transaction(signer_id, held.public_key, nonce, signer_id, BLOCK, actions, **more)
    return tx.sign(held)


def offered(pool, shard=0):
    """List what a pool offers: signers and nonces."""
    return [(s.transaction.signer_id, s.transaction.nonce) for s in pool.pop_rounds(shard)]


def pool_of(*transactions, shard_of=lambda _: 0):
    """Make a pool."""
    pool = Mempool(shard_of)
    for one in transactions:
        pool.add(one)
    return pool


def test_each_round_takes_one_of_each_lane():
    """Two lanes: the lowest of each, then the next of each, until there are none."""
    pool = pool_of(
        *(signed("alice.near", nonce) for nonce in (3, 1, 2)),
        *(signed("bob.near", nonce) for nonce in (9, 8)),
    )
    assert offered(pool) == [
        ("alice.near", 1),
        ("bob.near", 8),
        ("alice.near", 2),
        ("bob.near", 9),
        ("alice.near", 3),
    ]
    assert len(pool) == 0
    assert offered(pool) == []


def test_keys_and_nonces_of_gas_keys_are_lanes_of_their_own():
    """One account, two keys, two nonces of a gas key: four lanes, one round."""
    lanes = [
        signed("alice.near", 5),
        signed("alice.near", 6, key="second"),
        signed("alice.near", 7, version=1, nonce_index=0),
        signed("alice.near", 8, version=1, nonce_index=1),
    ]
    later = [signed("alice.near", 9), signed("alice.near", 10, key="second")]
    assert [nonce for _, nonce in offered(pool_of(*later, *lanes))] == [5, 6, 7, 8, 9, 10]


def test_shards_are_apart():
    """A shard is offered its own signers' transactions only."""
    pool = pool_of(
        signed("alice.near", 1), signed("bob.near", 2), shard_of=lambda a: int(a[0] > "a")
    )
    assert offered(pool, 1) == [("bob.near", 2)]
    assert len(pool) == 1
    assert offered(pool, 0) == [("alice.near", 1)]
    assert offered(pool, 5) == []


def test_the_same_transaction_waits_once():
    """Admitted twice it is offered once; two of one nonce are two."""
    one = signed("alice.near", 1)
    other = signed("alice.near", 1, version=1)
    pool = pool_of(one, one, other)
    assert len(pool) == 2
    assert one.hash in pool
    assert bytes(32) not in pool
    assert list(pool.pop_rounds(0)) == [one, other]
    assert one.hash not in pool


def test_what_is_offered_can_be_kept():
    """Put back while the rounds go on, it is offered in its turn again."""
    pool = pool_of(signed("alice.near", 1))
    rounds = pool.pop_rounds(0)
    first = next(rounds)
    assert len(pool) == 0
    pool.add(first)
    assert first.hash in pool
    assert len(pool) == 1


def test_a_block_takes_transactions_in_rounds():
    """In the chunk stands one of each key, then the next of each, whatever came first."""
    ledger = Ledger("alice.near", "amy.near", balance=10 * N)
    for signer_id, nonce in (
        ("alice.near", 4),
        ("alice.near", 3),
        ("amy.near", 9),
        ("alice.near", 5),
        ("amy.near", 7),
    ):
        ledger.send(signer_id, signer_id, Transfer(1), nonce=nonce)
    block = ledger.world.advance()
    (found,) = [chunk.transactions for chunk in block.chunks if chunk.transactions]
    assert [(s.transaction.signer_id[:3], s.transaction.nonce) for s in found] == [
        ("ali", 3),
        ("amy", 7),
        ("ali", 4),
        ("amy", 9),
        ("ali", 5),
    ]


def test_a_chunk_takes_no_more_than_its_share():
    """Transactions take half of a chunk's gas at most; the rest waits, in order."""
    ledger = Ledger("alice.near", boundaries=(), shard_ids=(0,))
    gas = 223_182_562_500
    room = -(-500 * 10**12 // (2 * gas))  # a transfer to oneself burns its gas as a receipt too
    for _ in range(2500):
        ledger.send("alice.near", "alice.near", Transfer(1))
    block = ledger.world.advance()
    taken = len(block.chunks[0].transactions)
    assert room <= taken < 2500
    assert len(ledger.world.mempool) == 2500 - taken
    ledger.world.advance()
    nonces = [
        s.transaction.nonce
        for found in list(ledger.world.chain.blocks())[1:]
        for s in found.chunks[0].transactions
    ]
    assert nonces == list(range(1, 2501))
    assert ledger.access_key("alice.near").nonce == 2500
    assert ledger.world.chain.head.height == START + 2


def test_lost_transactions_leave_no_trace():
    """As told the next two vanish after they were admitted; the third is included."""
    ledger = Ledger("alice.near")
    ledger.world.drop_transactions(2)
    hashes = [ledger.send("alice.near", "alice.near", Transfer(1)) for _ in range(3)]
    ledger.world.advance()
    found = [ledger.world.transaction(one) is not None for one in hashes]
    assert found == [False, False, True]
    assert ledger.access_key("alice.near").nonce == 3
    assert public("alice.near") is public("alice.near")
