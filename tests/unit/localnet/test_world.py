"""A world as it is asked: who is there, what waits, what is under way, what became of it."""

from ledgerkit.protocol import Transfer
from tests.unit.localnet.ledger import START, Ledger, N, do


def test_a_world_names_itself_and_its_accounts():
    """By chain, head and number of accounts; their ids come in order."""
    ledger = Ledger("bob.near", "alice.near", chain_id="mine")
    assert repr(ledger.world) == "<World mine: block 1000, 2 accounts>"
    assert ledger.world.account_ids() == ["alice.near", "bob.near"]
    assert ledger.world.balance("alice.near") == 1000 * N
    assert ledger.world.balance("nobody.near") is None


def test_a_transaction_goes_through_its_stages():
    """Pending, included, under way, done: each is told, and the tokens are always somewhere."""
    ledger = Ledger("alice.near", "bob.near")
    world = ledger.world
    signed = ledger.sign("alice.near", "bob.near", Transfer(5 * N))
    assert not world.is_busy
    world.submit(signed)
    assert (world.is_pending(signed.hash), world.transaction(signed.hash)) == (True, None)
    assert world.is_busy
    world.advance()
    record = world.transaction(signed.hash)
    assert record is not None
    assert (record.signed, record.is_local) == (signed, False)
    assert not world.is_pending(signed.hash)
    assert world.receipt(record.receipt.receipt_id) == record.receipt
    assert world.outcome(record.receipt.receipt_id) is None
    assert world.value_in_receipts() == 5 * N + 223_182_562_500 * 10**9
    world.advance()
    assert world.balance("bob.near") == 1005 * N
    assert world.value_in_receipts() == 223_182_562_500 * (10**9 - 10**8)
    world.advance()
    assert world.value_in_receipts() == 0
    assert world.receipts() == [
        record.receipt,
        *(world.receipt(child) for child in ledger.children(record.outcome)[0].receipt_ids),
    ]


def test_settling_takes_as_long_as_it_takes():
    """It ends when nothing moves, and what happened is final; a yield is nothing that moves."""
    ledger = Ledger("alice.near", scripts=["s.near"])
    chain = [["call", "a", "s.near", [["call", "b", "s.near", []]]]]
    ledger.send("alice.near", "s.near", do(*chain))
    head = ledger.world.settle()
    last = max(o.block_height for b in ledger.world.chain.blocks() for o in applied(ledger, b))
    assert last == START + 5  # the third call ran in 1004, its refund in 1005
    assert ledger.world.chain.final.height >= last
    assert not ledger.world.is_busy
    ledger.run("alice.near", "s.near", do(["wait", "w", []]))
    assert ledger.world.chain.head.height < head.height + 20
    assert not ledger.world.is_busy


def applied(ledger, block):
    return ledger.world.chain.outcomes_at(block.height)
