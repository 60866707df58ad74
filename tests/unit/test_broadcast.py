"""Transactions on their way: stages, drops of every kind, re-signing, interruptions."""

from __future__ import annotations

import gc
import io
import re
import sys
import time
import weakref
from contextlib import redirect_stderr
from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.api import chain_errors, rpc
from ledgerkit.api.calls import Response
from ledgerkit.localnet import open_world
from ledgerkit.progress import Line
from ledgerkit.protocol import (
    AddKey,
    CryptoHash,
    DeleteKey,
    SecretKey,
    Transaction,
    Transfer,
)
from ledgerkit.sending import broadcast, nonces, submission

if TYPE_CHECKING:
    from ledgerkit.localnet import World

pytestmark = pytest.mark.usefixtures("no_session_left")

NEAR = 10**24
ALICE: Any = {"signer_id": "alice.near"}
REACHED = ["accepted", "included", "first_receipt_succeeded", "all_receipts_complete", "final"]


@pytest.fixture
def world() -> World:
    """Open the demo world as the session's ledger."""
    return lk.connect("local").world


def short_lived(validity: int = 20) -> World:
    """Open a world whose transactions expire soon, as the session's ledger."""
    found = open_world("empty", validity=validity)
    lk.connect(world=found)
    return found


def balance(world: World, account_id: str) -> int:
    found = world.balance(account_id)
    assert found is not None
    return found


def nonce_of(world: World, account_id: str) -> int:
    """Read the nonce of an account's published key at the head."""
    key = SecretKey.from_text(world.keys()[account_id]).public_key
    held = world.state().access_key(account_id, key.packed)
    assert held is not None
    return held.nonce


def foreign(world: World, account_id: str, nonce: int, amount: int) -> CryptoHash:
    """Let another program use an account's key, and its transaction become final."""
    key = SecretKey.from_text(world.keys()[account_id])
    block_hash = world.chain.final.hash
    tx = Transaction(account_id, key.public_key, nonce, "dave.near", block_hash, [Transfer(amount)])
    world.submit(tx.sign(key))
    world.settle()
    return tx.hash


# Stages ---------------------------------------------------------------------------------


def test_the_stages_of_a_transfer(world):
    """A transfer is accepted, included, run and final, each at its block and time."""
    sent = lk.transfer("dave.near", "1 NEAR", **ALICE)
    head = world.chain.head.height
    frame = sent.wait().stages

    assert frame["stage"].tolist() == REACHED
    included, ran, complete, final = frame["block_height"].tolist()[1:]
    record = world.transaction(CryptoHash(sent.tx_hash))
    assert included == record.outcome.block_height
    assert (ran, complete) == (included + 1, included + 2)
    assert included <= head
    assert complete <= final <= world.chain.head.height
    by_height = [world.chain.by_height(height) for height in (included, ran, complete, final)]
    assert frame["block_hash"].tolist()[1:] == [str(block.hash) for block in by_height]
    assert [t.value for t in frame["time"]][1:] == [block.timestamp_ns for block in by_height]
    kinds = ["str", "str", "datetime64[ns, UTC]", "Int64", "str", "str"]
    assert [str(kind) for kind in frame.dtypes] == kinds
    assert (sent.stage, sent.fully_succeeded, sent.failure) == ("final", True, None)
    assert sent.is_over


@pytest.mark.parametrize("level", ["INCLUDED", "EXECUTED_OPTIMISTIC", "EXECUTED", "FINAL"])
def test_a_verb_waits_as_far_as_it_is_told(world, level):
    """The level asked for is reached when the verb returns."""
    sent = lk.transfer("dave.near", "5 yocto", **ALICE, wait_until=level)
    assert sent.tracker.reaches(level)
    assert world.transaction(CryptoHash(sent.tx_hash)) is not None


def test_not_waiting_and_waiting_later(world):
    """With NONE it is handed over; later it is in the mempool, and at last final."""
    before = balance(world, "dave.near")
    sent = lk.transfer("dave.near", "7 yocto", **ALICE, wait_until="NONE")
    assert (sent.stage, sent.fully_succeeded, sent.trace, sent.value) == (
        "accepted",
        None,
        None,
        None,
    )
    assert sent.stages["detail"].tolist() == ["broadcast, not validated"]
    assert world.is_pending(CryptoHash(sent.tx_hash))
    sent.wait("EXECUTED_OPTIMISTIC")
    assert sent.fully_succeeded is True
    assert balance(world, "dave.near") == before + 7


def test_in_the_mempool_while_no_block_takes_it(world):
    """What was accepted and is in no block yet is inferred to be in the mempool."""
    world.drop_transactions(1)
    sent = lk.transfer("dave.near", "7 yocto", **ALICE, wait_until="NONE").refresh()
    assert sent.stage == "in_mempool"
    assert sent.fully_succeeded is None
    assert sent.failure is None
    sent.raise_for_status()


def test_a_failed_receipt_is_a_state(world):
    """A call that panics raises nothing; its receipt is named, with error and remedy."""
    sent = lk.call("counter.near", "fail", {"message": "not now"}, **ALICE, wait_until="FINAL")
    assert sent.fully_succeeded is False
    names = ["first_receipt_failed" if n == REACHED[2] else n for n in REACHED]
    assert sent.stages["stage"].tolist() == names
    assert sent.stages["detail"][2] == "Smart contract panicked: not now"
    record = world.transaction(CryptoHash(sent.tx_hash))
    with pytest.raises(chain_errors.ExecutionError) as caught:
        sent.raise_for_status()
    assert caught.value.receipt_id == str(record.receipt.receipt_id)
    assert (caught.value.index, caught.value.panic_msg) == (0, "not now")
    assert caught.value.remedy == chain_errors.ExecutionError.remedy


@pytest.mark.usefixtures("world")
def test_success_beside_a_failed_receipt_is_not_full():
    """Where the status is a success and a receipt failed, the receipt is what failed."""
    sent = lk.call("async.near", "detached_failure", gas="90 Tgas", **ALICE, wait_until="FINAL")
    assert sent.trace.verdict == "succeeded_with_failed_receipts"
    assert sent.fully_succeeded is False
    failed = sent.trace.receipts.query("status == 'failure'")["receipt_id"].tolist()
    assert [sent.failure.receipt_id] == failed
    assert isinstance(sent.failure, errors.ReceiptFailedError)


def test_what_it_returns_and_logs():
    """The value of the last receipt is decoded, and logs stand in causal order."""
    lk.connect("local")
    sent = lk.call("counter.near", "increment", {"by": 3}, **ALICE)
    assert sent.logs == ["Increased number to 45"]
    fan = lk.call("async.near", "fan_out", {"width": 2}, gas="250 Tgas", **ALICE)
    assert fan.fully_succeeded is True
    data = {"data": {"alice.near": {"profile": {"name": "A"}}}}
    wrote = lk.call("social.near", "set", data, deposit="0.1 NEAR", **ALICE)
    assert set(wrote.value) == {"block_height"}


def test_a_node_that_says_no_more_than_the_level(world, monkeypatch):
    """Below EXECUTED_OPTIMISTIC a node may leave out everything but the level."""
    send_signed, head = broadcast.send_signed, b'{"jsonrpc":"2.0","id":1,"result":'

    def terse(ledger, signed, *asked):
        send_signed(ledger, signed, *asked)
        body = head + b'{"final_execution_status":"INCLUDED"}}'
        return rpc.transaction(str(signed.hash), "alice.near", "NONE").read(Response(body))

    monkeypatch.setattr(broadcast, "send_signed", terse)
    sent = lk.transfer("dave.near", "5 yocto", **ALICE, wait_until="INCLUDED")
    assert (sent.stage, sent.is_included, sent.fully_succeeded) == ("included", True, None)
    assert (sent.failure, sent.value, sent.logs) == (None, None, [])
    assert "included" in sent._repr_html_()
    assert sent.wait().fully_succeeded is True
    assert world.transaction(CryptoHash(sent.tx_hash)) is not None


# Losses, and drops of three kinds -------------------------------------------------------


def test_lost_bytes_are_sent_again(world):
    """What a network loses is sent again, the identical bytes, and applied once."""
    before, nonce = balance(world, "dave.near"), nonce_of(world, "alice.near")
    world.drop_transactions(1)
    sent = lk.transfer("dave.near", "9 yocto", **ALICE, wait_until="FINAL")
    assert "in_mempool" in sent.stages["stage"].tolist()
    assert (sent.nonce, nonce_of(world, "alice.near")) == (nonce + 1, nonce + 1)
    assert balance(world, "dave.near") == before + 9


def test_dropped_because_its_nonce_was_overtaken(world):
    """A lost transaction whose nonce another has passed is dropped, on final evidence."""
    before = balance(world, "dave.near")
    world.drop_transactions(1)
    lost = lk.transfer("dave.near", "100 yocto", **ALICE, wait_until="NONE")
    other = lk.transfer("dave.near", "1 yocto", **ALICE, wait_until="EXECUTED_OPTIMISTIC")
    assert other.nonce == lost.nonce + 1
    world.advance(3)
    lost.wait(timeout_s=20)

    assert (lost.stage, lost.fully_succeeded, lost.is_over) == ("dropped", False, True)
    row = lost.stages.iloc[-1]
    assert row["detail"] == (
        f"nonce overtaken: the key is at {other.nonce}, the transaction has {lost.nonce}"
    )
    assert row["block_height"] == world.chain.final.height - 1  # it looked once more since
    with pytest.raises(errors.DroppedError, match="nonce overtaken") as caught:
        lost.raise_for_status()
    assert caught.value.transaction_hash == lost.tx_hash
    assert balance(world, "dave.near") == before + 1


def test_not_dropped_before_the_evidence_is_final(world):
    """While no final block shows the nonce passed, it is not said to be dropped."""
    world.hold_finality()
    world.drop_transactions(1)
    lost = lk.transfer("dave.near", "100 yocto", **ALICE, wait_until="NONE")
    lk.transfer("dave.near", "1 yocto", **ALICE)
    world.advance(5)
    assert lost.refresh().stage == "in_mempool"
    world.hold_finality(hold=False)
    world.advance(5)
    assert lost.refresh().stage == "dropped"


def test_dropped_because_it_expired():
    """A lost transaction whose block is too old at a final block is dropped."""
    world = short_lived()
    world.drop_transactions(1)
    lost = lk.transfer("validator.near", "3 yocto", signer_id="near", wait_until="NONE")
    signed_at = lost.tracker.anchor_height
    world.advance(20)
    assert world.chain.final.height == signed_at + 20
    assert lost.refresh().stage == "in_mempool"  # the last block that may take it
    world.advance()
    lost.wait(timeout_s=20)
    assert lost.stage == "dropped"
    reason = f"expired: no block above {signed_at + 20} can include it"
    assert lost.stages["detail"].iloc[-1] == reason
    assert lost.stages["block_height"].iloc[-1] == signed_at + 21


def test_dropped_because_the_balance_is_short(world):
    """Of two that the account can pay only one of, the second is dropped with that reason."""
    had = balance(world, "dave.near")
    first = lk.transfer("bob.near", had - NEAR, signer_id="dave.near", wait_until="NONE")
    second = lk.transfer("bob.near", had - NEAR, signer_id="dave.near", wait_until="NONE")
    second.wait(timeout_s=20)
    assert first.wait().fully_succeeded is True
    assert second.stage == "dropped"
    detail = second.stages["detail"].iloc[-1]
    assert detail.startswith("balance short: dave.near has ")
    with pytest.raises(errors.DroppedError, match="balance short"):
        second.raise_for_status()


def test_a_short_balance_that_is_filled_up_in_time(world):
    """Money that comes before a final block has shown the lack lets it happen after all."""
    had = balance(world, "dave.near")
    lk.transfer("bob.near", had - NEAR, signer_id="dave.near")
    world.drop_transactions(1)
    with pytest.raises(chain_errors.NotEnoughBalanceError):
        lk.transfer("bob.near", 2 * NEAR, signer_id="dave.near")
    lk.transfer("dave.near", 3 * NEAR, **ALICE)
    sent = lk.transfer("bob.near", 2 * NEAR, signer_id="dave.near")
    assert sent.fully_succeeded is True


def test_refused_for_good_after_it_was_lost(world):
    """Bytes that the ledger will never take are rejected, by the reason's class."""
    world.drop_transactions(1)
    lost = lk.transfer("dave.near", "7 yocto", **ALICE, wait_until="NONE")
    held = lk.keys("alice.near").query("permission == 'FullAccess'")["public_key"]
    spare = SecretKey.generate()
    alice = SecretKey.from_text(world.keys()["alice.near"])
    assert str(alice.public_key) in held.tolist()
    batch = [AddKey(spare.public_key), DeleteKey(alice.public_key)]
    tx = Transaction(
        "alice.near",
        alice.public_key,
        nonce_of(world, "alice.near") + 1,
        "alice.near",
        world.chain.final.hash,
        batch,
    )
    world.submit(tx.sign(alice))
    world.settle()
    with pytest.raises(chain_errors.AccessKeyNotFoundError):
        lost.wait(timeout_s=20)
    assert (lost.stage, lost.fully_succeeded) == ("rejected", False)
    with pytest.raises(chain_errors.AccessKeyNotFoundError):
        lost.raise_for_status()


def test_a_transaction_that_deletes_its_own_key_is_no_refusal(world, monkeypatch):
    """Bytes that are included just before they are sent again are refused without their key."""
    key = SecretKey.from_text(world.keys()["alice.near"]).public_key
    sent = lk.delete_key(key, **ALICE, wait_until="NONE")
    check_drop = broadcast.check_drop

    def before_inclusion(*_):
        monkeypatch.setattr(broadcast, "check_drop", check_drop)
        world.settle()
        return broadcast.DropCheck(None, None, None, None)

    def unknown(*_):
        monkeypatch.setattr(broadcast, "poll_status", poll_status)
        raise errors.UnknownTransactionError(transaction_hash=sent.tx_hash)

    poll_status = broadcast.poll_status
    monkeypatch.setattr(broadcast, "check_drop", before_inclusion)
    monkeypatch.setattr(broadcast, "poll_status", unknown)
    assert sent.wait(timeout_s=20).fully_succeeded is True
    assert sent.stage == "final"


def test_a_refusal_that_is_not_confirmed_in_time_stays_open(world, monkeypatch):
    """Without a final block, a refusal of bytes that were sent before says how to resume."""
    world.drop_transactions(1)
    lost = lk.transfer("dave.near", "7 yocto", **ALICE, wait_until="NONE")
    refusal = chain_errors.AccessKeyNotFoundError(account_id="alice.near", public_key="ed25519:1")

    def refused(*_):
        raise refusal

    monkeypatch.setattr(broadcast, "send_signed", refused)
    monkeypatch.setattr(broadcast, "CONFIRM_TIMEOUT_S", 0.0)
    with pytest.raises(chain_errors.AccessKeyNotFoundError, match=r"lk\.track"):
        lost.wait(timeout_s=20)
    assert (lost.is_over, lost.fully_succeeded) == (False, None)
    monkeypatch.undo()
    assert lost.wait().fully_succeeded is True


def test_faults_on_the_way_do_not_end_the_wait(world, monkeypatch):
    """A host that fails now and then is asked again, whatever is being asked."""
    monkeypatch.setattr(broadcast, "_ATTEMPTS", 2)
    ledger = lk.connect(world=world, retries=lk.RetryPolicy(attempts=1, total_s=5))
    sent = lk.transfer("dave.near", "7 yocto", **ALICE, wait_until="NONE")
    ledger.faults.add("status=503; times=3")
    assert sent.wait().fully_succeeded is True
    world.drop_transactions(1)
    lost = lk.transfer("dave.near", "7 yocto", **ALICE, wait_until="NONE")
    send_signed, failing = broadcast.send_signed, iter([True, True, False])

    def busy(*asked):
        if next(failing):
            raise errors.TransportError
        return send_signed(*asked)

    monkeypatch.setattr(broadcast, "send_signed", busy)
    assert lost.wait().fully_succeeded is True


def test_a_pause_that_a_host_asks_for_ends_with_the_timeout():
    """A Retry-After of an hour delays a wait to its timeout, and raises when sending."""
    ledger = lk.connect(world=open_world("empty", block_time_ns=10**8, real_time=True))
    sent = lk.transfer("near", "7 yocto", signer_id="near", wait_until="NONE")
    ledger.faults.add("status=429; retry-after=3600")
    begin = time.monotonic()
    sent.wait(timeout_s=0.3)
    with pytest.raises(errors.RateLimitedError, match=r"lk\.track"):
        lk.transfer("near", "8 yocto", signer_id="near")
    assert time.monotonic() - begin < 60
    ledger.faults.clear()


def test_a_host_that_refuses_us_ends_the_wait(world, monkeypatch):
    """What asking again can't help is raised, and tells how to pick the transaction up."""
    ledger = lk.connect(world=world)
    sent = lk.transfer("dave.near", "7 yocto", **ALICE, wait_until="NONE")
    ledger.faults.add("status=401; times=1")
    with pytest.raises(errors.AuthError):
        sent.wait()
    assert sent.wait().fully_succeeded is True

    def undecodable(*_):
        raise errors.RequestParseError(error_message="no such version")

    monkeypatch.setattr(broadcast, "send_signed", undecodable)
    with pytest.raises(errors.RequestParseError):
        lk.transfer("dave.near", "7 yocto", **ALICE)
    monkeypatch.undo()
    again = lk.transfer("dave.near", "7 yocto", **ALICE)
    assert again.nonce == (sent.nonce or 0) + 1


# Signing anew ---------------------------------------------------------------------------


def test_a_used_nonce_is_signed_anew_once(world):
    """A nonce that another program used is refused, and the transfer signed with the next."""
    before = balance(world, "dave.near")
    one = lk.transfer("dave.near", "1 yocto", **ALICE, wait_until="NONE")
    foreign(world, "alice.near", one.nonce + 1, 10)
    sent = lk.transfer("dave.near", "100 yocto", **ALICE)
    assert sent.nonce == one.nonce + 2
    assert sent.fully_succeeded is True
    assert balance(world, "dave.near") == before + 111


def test_an_expired_block_is_replaced_once():
    """A block that has become too old meanwhile is refused, and a fresh one signed."""
    world = short_lived()
    before = balance(world, "validator.near")
    one = lk.transfer("validator.near", "1 yocto", signer_id="near", wait_until="NONE")
    world.advance(30)
    sent = lk.transfer("validator.near", "100 yocto", signer_id="near")
    assert sent.tracker.anchor_height > one.tracker.anchor_height + 20
    assert sent.fully_succeeded is True
    assert balance(world, "validator.near") == before + 101


def test_nothing_is_signed_anew_without_certainty(world, monkeypatch):
    """While the first bytes could still land, the refusal is raised and nothing more is sent."""
    monkeypatch.setattr(broadcast, "CONFIRM_TIMEOUT_S", 0.2)
    before = balance(world, "dave.near")
    one = lk.transfer("dave.near", "1 yocto", **ALICE, wait_until="NONE")
    world.hold_finality()
    foreign(world, "alice.near", one.nonce + 1, 10)
    with pytest.raises(chain_errors.InvalidNonceError) as caught:
        lk.transfer("dave.near", "100 yocto", **ALICE)
    assert (caught.value.tx_nonce, caught.value.ak_nonce) == (one.nonce + 1, one.nonce + 1)
    world.settle()
    assert balance(world, "dave.near") == before + 11


def test_bytes_that_landed_are_not_signed_anew(world, monkeypatch):
    """A refusal of bytes that have landed all the same is no refusal."""
    before = balance(world, "dave.near")
    send_signed, refused = broadcast.send_signed, []

    def twice(ledger, signed, via, wait_until, _failed):
        send_signed(ledger, signed, via, wait_until)
        world.settle()
        refused.append(signed.hash)
        nonce = signed.transaction.nonce
        raise chain_errors.InvalidNonceError(tx_nonce=nonce, ak_nonce=nonce)

    monkeypatch.setattr(broadcast, "send_signed", twice)
    sent = lk.transfer("dave.near", "100 yocto", **ALICE)
    assert refused == [CryptoHash(sent.tx_hash)]
    assert sent.fully_succeeded is True
    assert balance(world, "dave.near") == before + 100


# Several senders ------------------------------------------------------------------------


@pytest.fixture
def _crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it seem that others wait for their turn with every key."""
    monkeypatch.setattr(nonces.NonceQueue, "has_one_sender", False)


@pytest.mark.usefixtures("_crowded")
def test_a_refusal_in_a_crowd_is_certain(world):
    """Bytes that were handed over first are refused only when they certainly did not land."""
    before = balance(world, "bob.near")
    with pytest.raises(chain_errors.NotEnoughBalanceError):
        lk.transfer("bob.near", 10**30, signer_id="dave.near")
    assert lk.transfer("bob.near", "1 yocto", signer_id="dave.near").fully_succeeded is True
    assert balance(world, "bob.near") == before + 1


@pytest.mark.usefixtures("_crowded")
def test_bytes_that_land_in_a_crowd_are_not_refused(world, monkeypatch):
    """What a node refuses after another has taken it has happened, and is told so."""
    before, send_signed = balance(world, "bob.near"), broadcast.send_signed

    def late(ledger, signed, via, wait_until, _failed):
        if via == "broadcast_tx_async":
            return send_signed(ledger, signed, via, wait_until)
        raise chain_errors.NotEnoughBalanceError(signer_id="dave.near", balance=1, cost=2)

    monkeypatch.setattr(broadcast, "send_signed", late)
    sent = lk.transfer("bob.near", "5 yocto", signer_id="dave.near")
    assert (sent.fully_succeeded, sent.failure) == (True, None)
    assert balance(world, "bob.near") == before + 5


# Interrupted, and picked up -------------------------------------------------------------


@pytest.mark.parametrize("step", ["send_signed", "poll_status"])
def test_an_interrupt_says_how_to_go_on(world, monkeypatch, step):
    """Ctrl-C leaves the transaction on its way; `resume` finds it with its signed bytes."""
    before, run = balance(world, "dave.near"), getattr(broadcast, step)

    def interrupted(*asked):
        run(*asked)
        raise KeyboardInterrupt

    monkeypatch.setattr(broadcast, step, interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        lk.transfer("dave.near", "5 yocto", **ALICE)
    monkeypatch.undo()
    [note] = caught.value.__notes__
    tx_hash = note.split('lk.track("')[1].split('"')[0]
    assert f'lk.track("{tx_hash}", "alice.near")' in note
    found = lk.track(tx_hash, "alice.near", timeout_s=0)
    assert found.signed is not None
    assert found.wait().fully_succeeded is True
    assert balance(world, "dave.near") == before + 5


def test_a_host_that_nobody_reaches(world, monkeypatch):
    """Where no answer comes at all, the error names the hash and the way to pick it up."""
    ledger = lk.connect(world=world)
    lk.transfer("dave.near", "1 yocto", **ALICE)  # the chain is known from here on
    before, send = balance(world, "dave.near"), ledger.send

    def lost(call):
        if "the sending of" in call.request:
            raise errors.TransportError(request=call.request)
        return send(call)

    monkeypatch.setattr(broadcast, "_ATTEMPTS", 2)
    monkeypatch.setattr(ledger, "send", lost)
    with pytest.raises(errors.TransportError, match=r"lk\.track") as caught:
        lk.transfer("dave.near", "5 yocto", **ALICE)
    assert caught.value.remedy.startswith("Check the connection")
    tx_hash = caught.value.remedy.split('lk.track("')[1].split('"')[0]
    found = lk.track(tx_hash, "alice.near", timeout_s=0)
    assert found.stage == "unknown"
    monkeypatch.undo()
    assert found.wait().fully_succeeded is True
    assert balance(world, "dave.near") == before + 5


def hash_in(error: errors.LedgerError) -> str:
    """Return the hash in an error's advice on how to resume."""
    assert error.remedy.count("lk.track(") == 1
    return error.remedy.split('lk.track("')[1].split('"')[0]


def failing(*_: object) -> None:
    """Fail as a request without an answer does."""
    raise errors.TransportError


@pytest.mark.parametrize("step", ["poll_status", "check_drop"])
def test_a_host_that_fails_after_the_sending(world, monkeypatch, step):
    """An error of the wait names the hash, so that nobody has to send a second time."""
    before = balance(world, "dave.near")
    read = getattr(broadcast, step)
    monkeypatch.setattr(broadcast, step, failing)
    monkeypatch.setattr(errors.TransportError, "retryable", False)
    world.drop_transactions(1)
    with pytest.raises(errors.TransportError) as caught:
        lk.transfer("dave.near", "5 yocto", **ALICE)
    monkeypatch.setattr(broadcast, step, read)
    assert lk.track(hash_in(caught.value), "alice.near", timeout_s=0).wait().fully_succeeded is True
    assert balance(world, "dave.near") == before + 5


def disowned(monkeypatch, world):
    """Make the host apply the next transaction, and refuse it for its nonce."""
    send_signed = broadcast.send_signed

    def late(ledger, signed, via, wait_until, failed):
        monkeypatch.setattr(broadcast, "send_signed", send_signed)
        send_signed(ledger, signed, via, wait_until, failed)
        world.settle()
        nonce = signed.transaction.nonce
        raise chain_errors.InvalidNonceError(tx_nonce=nonce, ak_nonce=nonce)

    monkeypatch.setattr(broadcast, "send_signed", late)


def test_a_refusal_is_open_until_it_is_confirmed(world, monkeypatch):
    """A submission refused for its nonce is not over, has no verdict yet, and can be resumed."""
    before, check_drop = balance(world, "dave.near"), broadcast.check_drop
    lk.connect(world=world)
    disowned(monkeypatch, world)
    monkeypatch.setattr(broadcast, "check_drop", failing)
    with pytest.raises(errors.TransportError) as caught:
        lk.transfer("dave.near", "5 yocto", **ALICE)
    monkeypatch.setattr(broadcast, "check_drop", check_drop)
    ledger = lk.client.current(None)
    known = submission.recall(ledger, hash_in(caught.value), "alice.near")
    assert (known.stage, known.is_over, known.fully_succeeded) == ("rejected", False, None)
    resumed = lk.track(known.tx_hash, "alice.near", timeout_s=0)
    assert (resumed.stage, resumed.fully_succeeded) == ("final", True)
    assert balance(world, "dave.near") == before + 5


def test_the_second_signature_is_confirmed_too(world, monkeypatch):
    """Bytes that were signed again, landed and were refused for their nonce are no failure."""
    before = balance(world, "dave.near")
    one = lk.transfer("dave.near", "1 yocto", **ALICE, wait_until="NONE")
    foreign(world, "alice.near", one.nonce + 1, 10)
    send_signed, sent = broadcast.send_signed, []

    def second(ledger, signed, via, wait_until, failed):
        sent.append(signed)
        if len(sent) == 2:
            monkeypatch.setattr(broadcast, "send_signed", send_signed)
            disowned(monkeypatch, world)
            return broadcast.send_signed(ledger, signed, via, wait_until, failed)
        return send_signed(ledger, signed, via, wait_until, failed)

    monkeypatch.setattr(broadcast, "send_signed", second)
    again = lk.transfer("dave.near", "100 yocto", **ALICE)
    assert len(sent) == 2
    assert (again.tx_hash, again.fully_succeeded) == (str(sent[1].hash), True)
    assert balance(world, "dave.near") == before + 111


def test_a_refusal_after_a_lost_answer_is_no_refusal(world, monkeypatch):
    """Congestion refuses the repeated bytes; the first ones, whose answer was lost, landed."""
    ledger = lk.connect(world=world)
    lk.transfer("dave.near", "1 yocto", **ALICE)
    before, send, attempts = balance(world, "dave.near"), ledger.send, []

    def congested(call):
        if "the sending of" not in call.request:
            return send(call)
        attempts.append(call)
        if len(attempts) == 1:
            send(call)
            raise errors.TransportError(request=call.request)
        raise chain_errors.ShardCongestedError(shard_id=1, congestion_level=1.0)

    monkeypatch.setattr(broadcast, "_ATTEMPTS", 2)
    monkeypatch.setattr(ledger, "send", congested)
    sent = lk.transfer("dave.near", "5 yocto", **ALICE)
    assert (len(attempts), sent.fully_succeeded) == (2, True)
    assert balance(world, "dave.near") == before + 5


def test_a_refusal_after_an_unprocessed_attempt_says_how_to_resume(world, monkeypatch):
    """The first attempt may have arrived, so the refusal names the hash."""
    ledger = lk.connect(world=world)
    lk.transfer("dave.near", "1 yocto", **ALICE)
    before, send = balance(world, "dave.near"), ledger.send
    refusal = chain_errors.ShardCongestedError(shard_id=1, congestion_level=1.0)
    answers = iter([errors.TransportError(), refusal])

    def congested(call):
        if "the sending of" in call.request:
            raise next(answers)
        return send(call)

    monkeypatch.setattr(broadcast, "_ATTEMPTS", 2)
    monkeypatch.setattr(ledger, "send", congested)
    with pytest.raises(chain_errors.ShardCongestedError) as caught:
        lk.transfer("dave.near", "5 yocto", **ALICE)
    monkeypatch.undo()
    assert lk.track(hash_in(caught.value), "alice.near", timeout_s=0).wait().fully_succeeded is True
    assert balance(world, "dave.near") == before + 5


def test_an_answer_that_is_lost_is_no_second_transfer(world):
    """A connection that breaks after the node took the bytes leads to one transfer."""
    before = balance(world, "dave.near")
    ledger = lk.connect(world=world)
    lk.transfer("dave.near", "1 yocto", **ALICE)
    for _ in range(3):
        ledger.faults.add("drop=after; times=1")
        ledger.faults.add("truncate=3; times=1")
        ledger.faults.add("status=503; times=1")
        lk.transfer("dave.near", "10 yocto", **ALICE)
        ledger.faults.clear()
    assert balance(world, "dave.near") == before + 31


def test_tracking_somebody_elses(world):
    """A hash and its signer are enough to follow a transaction to its end."""
    tx_hash = foreign(world, "alice.near", nonce_of(world, "alice.near") + 1, 10)
    lk.disconnect()
    lk.connect(world=world)
    found = lk.track(str(tx_hash), "alice.near")
    assert (found.stage, found.fully_succeeded, found.signed) == ("final", True, None)
    assert found.receiver_id == "dave.near"
    assert found.stages["stage"].tolist() == REACHED[1:]


@pytest.mark.usefixtures("world")
def test_a_hash_that_nobody_has_seen():
    """An unknown transaction is unknown, which is neither success nor failure."""
    tx_hash = str(CryptoHash.of(b"nothing"))
    found = lk.track(tx_hash, "alice.near", timeout_s=0.05)
    assert (found.stage, found.fully_succeeded, len(found.stages)) == ("unknown", None, 0)
    assert lk.track(tx_hash, "alice.near", timeout_s=0).failure is None
    for bad in ({"tx_hash": "0" * 44}, {"signer_id": "A"}, {"timeout_s": -1}):
        options: dict[str, Any] = {"tx_hash": tx_hash, "signer_id": "alice.near"} | bad
        with pytest.raises(errors.InvalidRequestError):
            lk.track(**options)


@pytest.mark.parametrize("kind", [errors.TransactionTimeoutError, errors.RequestRoutedError])
def test_a_timeout_is_no_failure(monkeypatch, kind, world):
    """A node that gives up waiting, or passes it on, says nothing about the transaction."""
    world.adjust(real_time=True)  # and without a clock, so that no read produces a block
    poll_status, send_signed = broadcast.poll_status, broadcast.send_signed

    def patient(ledger, signed, *_):
        send_signed(ledger, signed, "send_tx", "NONE")
        raise kind

    def busy(*_):
        raise kind

    monkeypatch.setattr(broadcast, "send_signed", patient)
    monkeypatch.setattr(broadcast, "poll_status", busy)
    monkeypatch.setattr(broadcast, "find_status", lambda *_: None)
    sent = lk.transfer("dave.near", "5 yocto", **ALICE, timeout_s=0.05)
    assert (sent.stage, sent.failure, sent.fully_succeeded) == ("in_mempool", None, None)
    monkeypatch.undo()
    world.adjust(real_time=False)
    assert (broadcast.poll_status, broadcast.send_signed) == (poll_status, send_signed)
    assert sent.wait().fully_succeeded is True


@pytest.mark.parametrize("level", ["INCLUDED", "EXECUTED_OPTIMISTIC", "FINAL"])
def test_a_timeout_is_waited_for_once(monkeypatch, world, level):
    """A verb that reaches no level returns after `timeout_s`, which the sending is a part of."""
    world.adjust(real_time=True)
    now = 0.0

    class Clock:
        time_ns = staticmethod(time.time_ns)

        @staticmethod
        def monotonic():
            return now

    def unheard(*_):
        nonlocal now
        now = now or 5  # a node holds the first `send_tx` for up to ten seconds
        raise errors.TransactionTimeoutError

    def busy(*_):
        nonlocal now
        now += 0.25
        raise errors.TransactionTimeoutError

    ledger = lk.connect(world=world)
    monkeypatch.setattr(ledger, "clock", Clock)
    monkeypatch.setattr(broadcast, "poll_status", busy)
    monkeypatch.setattr(broadcast, "check_drop", lambda *_: broadcast.DropCheck(*[None] * 4))
    monkeypatch.setattr(broadcast, "send_signed", unheard)
    options = {**ALICE, "timeout_s": 10, "ledger": ledger, "wait_until": level}
    sent = lk.transfer("dave.near", "5 yocto", **options)
    assert (sent.stage, now) == ("in_mempool", 10)


@pytest.mark.usefixtures("world")
def test_waiting_until_nonsense():
    """A level that does not exist is refused before anything is asked."""
    sent = lk.transfer("dave.near", "5 yocto", **ALICE)
    with pytest.raises(errors.InvalidRequestError, match="wait_until 'soon'"):
        sent.wait("soon")


# Shown ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("world")
def test_a_card_shows_the_stages_escaped():
    """The card has stages as words, short times, and the failure; no text is markup."""
    sent = lk.call("counter.near", "fail", {"message": "<script>alert(1)</script>"}, **ALICE)
    card = sent.wait()._repr_html_()
    assert "alice.near tried to call fail on counter.near; the contract panicked: " in card
    assert "first receipt failed" in card
    assert re.search(r"<td>2026-08-01 00:00:\d\d UTC</td>", card)
    assert "&lt;script&gt;" in card
    assert "<script>" not in card
    assert sent.tx_hash in card
    short = f"{sent.tx_hash[:12]}…"
    assert (
        repr(sent) == f"<Submission {short} alice.near -> counter.near: final, not fully succeeded>"
    )
    fresh = lk.transfer("dave.near", "5 yocto", **ALICE, wait_until="NONE")
    assert "not validated" in fresh._repr_html_()
    assert repr(fresh) == f"<Submission {fresh.tx_hash[:12]}… alice.near -> dave.near: accepted>"


def test_a_line_on_a_terminal_and_nothing_elsewhere(monkeypatch):
    """Progress is one line that is rewritten and wiped, on a terminal only."""
    monkeypatch.setattr("ledgerkit.progress._DELAY_S", -1.0)
    for tty, shown in ((True, "\rlonger\rab    \r  \r"), (False, "")):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda tty=tty: tty)
        with redirect_stderr(stream), Line() as line:
            line.show("longer")
            line.show("ab")
        assert stream.getvalue() == shown


def test_a_line_in_a_notebook(monkeypatch):
    """In a notebook the line is one display that is updated, and empty in the end."""
    seen = []

    class Handle:
        def update(self, data, *, raw):
            assert raw
            seen.append(data["text/plain"])

    class Shell:
        kernel = object()

    class Module:
        get_ipython = staticmethod(Shell)

    class Display:
        @staticmethod
        def display(data, *, raw, display_id):
            assert raw
            assert display_id
            seen.append(data["text/plain"])
            return Handle()

    monkeypatch.setattr("ledgerkit.progress._DELAY_S", -1.0)
    monkeypatch.setitem(sys.modules, "IPython", Module)
    monkeypatch.setitem(sys.modules, "IPython.display", Display)
    with Line() as line:
        line.show("accepted")
        line.show("included")
    assert seen == ["accepted", "included", ""]


def test_a_ledger_keeps_a_bounded_number(monkeypatch):
    """Old submissions are forgotten, and all of them with their ledger."""
    monkeypatch.setattr(submission, "_MAX_RECENT", 2)
    ledger = lk.connect("local")
    sent = [lk.transfer("dave.near", f"{n} yocto", **ALICE).tx_hash for n in (1, 2, 3)]
    assert list(submission.recent_submissions(ledger)) == sent[-2:]
    assert lk.track(sent[0], "alice.near", timeout_s=0).signed is None
    assert lk.track(sent[1], "alice.near", timeout_s=0).signed is not None
    world = weakref.ref(ledger.world)
    lk.disconnect()
    del ledger
    gc.collect()
    assert world() is None
