"""
A transfer is applied exactly once, whatever the network does to its requests and answers.

One key sends transfers through a host that refuses, delays, loses, cuts and repeats requests,
delivers transactions late and twice, and loses some that it accepted; now and then another
program uses the same key. The caller does what the documentation says: an error that names a
hash is resumed, a dropped transaction is sent again, and after any other error the verb is
called again. At the end every transaction is delivered once more. The chain must have each
transfer exactly once, and the balances must add up to the yoctoNEAR.
"""

from __future__ import annotations

import base64
import json
import random
import re
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest import mock

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.localnet.http_gateway import Gateway
from ledgerkit.localnet.http_messages import HttpRequest
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import SecretKey, SignedTransaction, Transaction, Transfer
from ledgerkit.sending import broadcast
from ledgerkit.transport import retry
from ledgerkit.transport.background_loop import drive
from ledgerkit.transport.rate_limit import RateLimiter
from tests.loopback import Reply, failure, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.sending.submission import Submission
    from tools.campaigns._campaign import Tally

COUNT = 500
SMALL = 12
EXPECTED = ("applied exactly once", "fault: lost", "fault: refused", "fault: twice")

SENDER, RECEIVER = "near", "validator.near"
FIRST_AMOUNT = 10**20  # of the first transfer; each has its own amount, to be told apart
TIMEOUT_S = 1.0
THREADS = 4
TRIES = 60  # of one transfer
SENDING = ("send_tx", "broadcast_tx_async", "broadcast_tx_commit")
STATUSES = (429, 500, 502, 503, 504)
# Faults in percent of the requests.
FAULTS = {
    "refused": 6,  # not processed: an HTTP error
    "unheard": 3,  # not processed: the connection closes
    "lost": 6,  # processed, without an answer
    "cut": 2,  # processed, with a part of the answer
    "late": 0.3,  # processed, with an answer after the client's timeout
    "twice": 3,  # processed twice
    "outage": 0.7,  # this and the next requests are not processed
}
SENDING_FAULTS = {
    "held": 5,  # a transaction is delivered later, and the connection closes
    "forgotten": 3,  # a transaction is accepted and lost
    "disowned": 3,  # a transaction is applied, and refused for its nonce
    "congested": 2,  # a transaction is applied without an answer, and refused when repeated
}
OUTAGE = 12  # requests
UNPROCESSED = ("refused", "unheard", "outage")
REFUSALS = 10  # of one congested transaction: fewer or more than a verb's attempts
BLOCKS = 0.3  # the share of requests with which time passes
FOREIGN = 0.03  # the share of transfers before which another program uses the key
PAUSES: tuple[tuple[Any, str, Any], ...] = (
    (retry, "_FIRST_S", 0.002),
    (retry, "_LONGEST_S", 0.02),
    (broadcast, "POLL_INTERVAL_S", 0.002),
    (RateLimiter, "record", lambda *_, **__: None),  # a host that refuses is not spared
)

# The host --------------------------------------------------------------------------------


class Host:
    """A node behind a bad connection."""

    def __init__(self, seed: int, tally: Tally) -> None:
        self.world = open_world("empty")
        self.key = SecretKey.from_text(self.world.keys()[SENDER])
        self.gateway = Gateway(self.world)
        self.random = random.Random(seed)
        self.tally = tally
        self.lock = threading.Lock()
        self.held: list[tuple[int, SignedTransaction]] = []  # with the requests until its delivery
        self.seen: dict[str, SignedTransaction] = {}
        self.outage = 0
        self.congested: Counter[str] = Counter()  # the refusals to come, by hash

    def reply(self, method: str, path: str, headers: Any, body: bytes) -> Reply:
        """Answer a request, or do to it what the dice say."""
        name = json.loads(body)["method"]
        signed = self.note(body) if name in SENDING else None
        with self.lock:
            self.deliver_due()
            fault = self.pick(signed)
            if self.random.random() < BLOCKS:
                self.world.advance()
        request = HttpRequest(method, path, "", headers, body)
        if signed is not None and self.congested[str(signed.hash)]:
            self.congested[str(signed.hash)] -= 1
            return congestion()
        if fault is None:
            return self.processed(request)
        self.tally.count(f"fault: {fault}")
        if fault in UNPROCESSED:
            return self.unprocessed(fault)
        if signed is not None and fault in SENDING_FAULTS:
            return self.mishandled(fault, signed, request)
        return self.disturbed(fault, request)

    def disturbed(self, fault: str, request: HttpRequest) -> Reply:
        """Process a request, and lose, cut, delay or repeat it."""
        answer = self.processed(request)
        if fault == "twice":
            return self.processed(request)
        if fault == "late":
            return replace(answer, delay=1.2 * TIMEOUT_S)
        return replace(answer, truncate=len(answer.body) // 2, dropped=fault == "lost")

    def note(self, body: bytes) -> SignedTransaction:
        params = json.loads(body)["params"]
        signed = SignedTransaction.decode(base64.b64decode(params["signed_tx_base64"]))
        self.seen[str(signed.hash)] = signed
        return signed

    def deliver_due(self) -> None:
        """Deliver the held transactions whose time has come."""
        for requests, signed in self.held:
            if requests == 1:
                self.world.broadcast(signed)
        self.held = [(requests - 1, signed) for requests, signed in self.held if requests > 1]

    def pick(self, signed: SignedTransaction | None) -> str | None:
        """Choose a request's fault; None for most."""
        if self.outage:
            self.outage -= 1
            return "outage"
        faults = FAULTS if signed is None else FAULTS | SENDING_FAULTS
        weights = [*faults.values(), 100 - sum(faults.values())]
        fault = self.random.choices([*faults, None], weights)[0]
        if fault == "outage":
            self.outage = self.random.randint(1, OUTAGE)
        return fault

    def unprocessed(self, fault: str) -> Reply:
        """Refuse a request, or close the connection."""
        with self.lock:
            status = self.random.choice(STATUSES)
        if fault == "unheard" or (fault == "outage" and status == STATUSES[0]):
            return Reply(dropped=True)
        return Reply(status, b"<html>busy</html>", {"retry-after": "0"})

    def mishandled(self, fault: str, signed: SignedTransaction, request: HttpRequest) -> Reply:
        """Hold a transaction back, lose it, or apply it and refuse it."""
        with self.lock:
            if fault == "held":
                self.held.append((self.random.randint(1, 40), signed))
                return Reply(dropped=True)
            if fault == "forgotten":
                self.world.drop_transactions(1)
        answer = self.processed(request)
        if fault == "congested":
            self.congested[str(signed.hash)] = self.random.randint(1, REFUSALS)
            return Reply(dropped=True)
        if fault == "disowned" and self.world.transaction(signed.hash) is not None:
            return self.processed(overtaken(request, signed, self.key))
        return answer

    def processed(self, request: HttpRequest) -> Reply:
        response = drive(self.gateway.answer(request, self))
        return Reply(response.status, response.body, dict(response.headers[:1]))

    async def next_block(self) -> None:
        """Produce a block for a request that waits for one."""
        self.world.advance()

    async def sleep(self, seconds: float) -> None:
        """Return at once: the node injects no latency."""

    def use_key(self) -> None:
        """Use the key from another program."""
        world, public_key = self.world, self.key.public_key
        with world.lock:
            access_key = world.state().access_key(SENDER, public_key.packed)
            nonce = access_key.nonce + 1 if access_key else 1
            anchor = world.chain.final.hash
            tx = Transaction(SENDER, public_key, nonce, RECEIVER, anchor, [Transfer(1)])
            world.broadcast(tx.sign(self.key))


def congestion() -> Reply:
    """Build the refusal of a transaction whose shard has too much to do."""
    shard = {"ShardCongested": {"shard_id": 1, "congestion_level": 1.0}}
    data = {"TxExecutionError": {"InvalidTxError": shard}}
    return failure("INVALID_TRANSACTION", data=data)


def overtaken(request: HttpRequest, signed: SignedTransaction, key: SecretKey) -> HttpRequest:
    """Build a call with another transaction of the same nonce, which the node refuses for it."""
    tx = signed.transaction
    parts = (tx.signer_id, tx.public_key, tx.nonce, tx.signer_id, tx.block_hash)
    twin = Transaction(*parts, [Transfer(1)]).sign(key)
    call = json.loads(request.body) | {"method": "send_tx"}
    call["params"] = {"signed_tx_base64": twin.to_base64()}
    body = json.dumps(call).encode()
    return HttpRequest(request.method, request.path, "", request.headers, body)


# The caller ------------------------------------------------------------------------------


class Caller:
    """A program that sends, and after an error does what the error says."""

    def __init__(self, ledger: lk.Ledger, key: SecretKey, tally: Tally) -> None:
        self.options: dict[str, Any] = {"signer_id": SENDER, "key": key, "ledger": ledger}
        self.ledger, self.tally = ledger, tally

    def transfer(self, amount: int) -> str:
        """Send an amount until it is final; return the transaction's hash."""
        for _ in range(TRIES):
            submission = self.attempt(amount)
            if submission is not None and submission.stage == "final":
                return submission.tx_hash
            if submission is not None:
                self.tally.count(f"ended as {submission.stage}")
        return "given up"

    def attempt(self, amount: int) -> Submission | None:
        """Send an amount; None if an error says that nothing is on its way."""
        try:
            submission = lk.transfer(RECEIVER, f"{amount} yocto", **self.options)
        except errors.LedgerError as error:
            tx_hash = re.search(r'lk\.track\("(\w+)"', str(error))
            if tx_hash is None:
                self.tally.count(f"raised, to be called again: {type(error).__name__}")
                return None
            self.tally.count("raised and resumed")
            return self.resumed(tx_hash[1])
        return submission if submission.is_over else self.resumed(submission.tx_hash)

    def resumed(self, tx_hash: str) -> Submission | None:
        """Continue until the transaction is over."""
        for _ in range(TRIES):
            try:
                return lk.track(tx_hash, SENDER, ledger=self.ledger, timeout_s=0).wait("FINAL")
            except errors.InvalidTransactionError:
                return None  # refused for good
            except errors.LedgerError as error:
                self.tally.count(f"resumed again after {type(error).__name__}")
        return None


# Checks ----------------------------------------------------------------------------------


def applied(world: Any) -> Counter[int]:
    """Count the transfers of the chain by their amounts."""
    amounts: Counter[int] = Counter()
    for receipt in world.receipts():
        if receipt.receiver_id == RECEIVER and receipt.predecessor_id == SENDER:
            amounts[receipt.actions[0].deposit] += 1
    return amounts


def check(host: Host, before: dict[str, int], amounts: list[int], tally: Tally) -> None:
    """Deliver everything once more, and compare the chain with what was sent."""
    world = host.world
    for signed in host.seen.values():
        world.broadcast(signed)
    world.settle()
    times = applied(world)
    for amount in amounts:
        if times[amount] == 1:
            tally.count("applied exactly once")
        else:
            tally.violate(f"transfer {amount - FIRST_AMOUNT} was applied {times[amount]} times")
    moved = sum(amount * count for amount, count in times.items())
    heights = [block.height for block in world.chain.blocks()]
    burnt = sum(o.tokens_burnt for height in heights for o in world.chain.outcomes_at(height))
    expected = {SENDER: before[SENDER] - moved - burnt, RECEIVER: before[RECEIVER] + moved}
    balances = {name: world.balance(name) for name in expected}
    if balances != expected:
        tally.violate(f"the balances are {balances}, not {expected}")
    sent = sum(amounts) + times[1]
    if moved != sent:
        tally.violate(f"{moved} yoctoNEAR were moved, not {sent}")


@contextmanager
def short_pauses() -> Iterator[None]:
    """Wait less between attempts: the host is on this machine."""
    with ExitStack() as stack:
        for module, name, value in PAUSES:
            stack.enter_context(mock.patch.object(module, name, value))
        yield


def run(count: int, seed: int, tally: Tally) -> None:
    """Send the transfers, some one after the other and some from several threads."""
    host = Host(seed, tally)
    before = {name: host.world.balance(name) or 0 for name in (SENDER, RECEIVER)}
    amounts = [FIRST_AMOUNT + number for number in range(count)]
    dice = random.Random(seed)
    with short_pauses(), serve(host.reply) as server, ThreadPoolExecutor(THREADS) as pool:
        policy = lk.RetryPolicy(attempts=2, total_s=20)
        ledger = lk.connect(
            "lab", rpc_url=server.url, api_url=server.url, timeout_s=TIMEOUT_S, retries=policy
        )
        caller = Caller(ledger, host.key, tally)
        waiting = list(amounts)
        while waiting:
            batch = [waiting.pop() for _ in range(min(len(waiting), dice.choice((1, 1, THREADS))))]
            if dice.random() < FOREIGN:
                host.use_key()
            for amount, result in zip(batch, pool.map(caller.transfer, batch), strict=True):
                if result == "given up":
                    tally.violate(f"transfer {amount - FIRST_AMOUNT} did not end")
        lk.disconnect()
    check(host, before, amounts, tally)
    tally.notes.append(f"{len(server.requests):,} requests, {len(host.seen):,} transactions signed")
