"""What waits for a block: by shard and lane, the lowest nonce first, a round at a time."""

from ledgerkit.localnet.genesis import Genesis
from ledgerkit.protocol import Transfer
from tests.unit.localnet.ledger import START, Ledger, N, public


def test_a_block_takes_transactions_in_rounds():
    """In the chunk stands one of each key, then the next of each, whatever came first."""
    genesis = Genesis()
    genesis.account("alice.near", 10 * N, keys=[public("alice.near"), public("second")])
    ledger = Ledger("amy.near", genesis=genesis)
    for signer_id, key, nonce in (
        ("alice.near", "alice.near", 4),
        ("alice.near", "second", 8),
        ("alice.near", "alice.near", 3),
        ("amy.near", "amy.near", 9),
        ("alice.near", "alice.near", 5),
        ("amy.near", "amy.near", 7),
    ):
        ledger.send(signer_id, signer_id, Transfer(1), key=key, nonce=nonce)
    block = ledger.world.advance()
    (found,) = [chunk.transactions for chunk in block.chunks if chunk.transactions]
    taken = [(s.transaction.signer_id[:3], s.transaction.nonce) for s in found]
    first, second, third = taken[:3], taken[3:5], taken[5:]
    assert sorted(first) == [("ali", 3), ("ali", 8), ("amy", 7)]
    assert (sorted(second), third) == ([("ali", 4), ("amy", 9)], [("ali", 5)])


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
