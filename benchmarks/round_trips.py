"""
Requests and round trips of every verb that uses a network, at a host with latency.

Each verb runs once with a new connection to a new demo world; every request takes 100 ms. The
time divided by the latency is the number of round trips that the verb waits for, plus the work
of ledger and client. The verbs that need several requests have a target.
"""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import httpx
from _verdict import finish, say

import ledgerkit as lk
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import (
    AccessKey,
    AddKey,
    DeployGlobalContract,
    GasKeyFullAccess,
    SecretKey,
    Transfer,
)
from tests.local_transport import LocalTransport

LATENCY_S = 0.100
ROUNDS = 3
ACCOUNT, COLLECTION = "alice.near", "stamps.grace.near"
EMPTY_MODULE = b"\0asm\1\0\0\0"  # of WebAssembly


class Distant(httpx.BaseTransport):
    """The embedded ledger behind a latency, with a count of the requests."""

    def __init__(self, local: LocalTransport) -> None:
        self.local, self.world = local, local.world
        self.requests = 0
        self._lock = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request after the latency."""
        with self._lock:
            self.requests += 1
        time.sleep(LATENCY_S)
        return self.local.handle_request(request)


class Case(NamedTuple):
    """
    A verb with its arguments, and the most round trips that it should wait for.

    `prepare` changes the world before, without latency.
    """

    name: str
    run: Callable[[lk.Ledger], object]
    target: float | None = None
    prepare: Callable[[lk.Ledger], object] | None = None


def cases(folder: Callable[[], str]) -> list[Case]:
    """List the verbs, with ids of the demo world; `folder` makes one for a collection."""
    with lk.connect("local") as ledger:
        summary, head = ledger.world.summary, ledger.world.chain.head
        swap = next(tx for tx in summary.transactions if tx.description == "a swap")
        key = next(a.secret_key for a in summary.accounts if a.account_id == ACCOUNT)
        receipt_id = lk.receipts(swap.tx_hash, swap.signer_id, ledger=ledger)["receipt_id"].iloc[0]
        [public_key, *_] = lk.keys(ACCOUNT, ledger=ledger)["public_key"]
        blocks = lk.blocks(head.height - 40, head.height - 2, ledger=ledger)
        delegate = lk.delegate("bob.near", [Transfer(1)], signer_id="carol.near", ledger=ledger)
    pair = (swap.tx_hash, swap.signer_id)
    pairs = [(tx.tx_hash, tx.signer_id) for tx in summary.transactions[:8]]
    ids = [account.account_id for account in summary.accounts[:8]]
    first, last = int(blocks["block_height"].iloc[0]), int(blocks["block_height"].iloc[-1])
    heights = first, last
    middle = blocks["time"].iloc[20]
    times = blocks["time"].iloc[0], blocks["time"].iloc[-1]
    views = [("gold.near", "ft_balance_of", {"account_id": account_id}) for account_id in ids]
    signer: dict[str, Any] = {"signer_id": ACCOUNT, "key": key}
    new_key = SecretKey.generate().public_key
    gas_key = AddKey(new_key, AccessKey(0, GasKeyFullAccess(0, 2)))
    publish = DeployGlobalContract(bytes(10), "AccountId")
    return [
        Case("status", lambda on: lk.status(ledger=on)),
        Case("accounts, 8", lambda on: lk.accounts(ids, ledger=on)),
        Case("accounts at a time", lambda on: lk.accounts(ACCOUNT, at=middle, ledger=on), 4.5),
        Case("ft, 8", lambda on: lk.ft(ids, ledger=on)),
        Case("ft with metadata", lambda on: lk.ft(ACCOUNT, metadata=True, ledger=on)),
        Case("nft", lambda on: lk.nft(ACCOUNT, ledger=on)),
        Case("nft_tokens", lambda on: lk.nft_tokens("uma.near", COLLECTION, ledger=on), 2.5),
        Case("staking", lambda on: lk.staking(ACCOUNT, ledger=on)),
        Case("staking, positions", lambda on: lk.staking(ACCOUNT, positions=True, ledger=on)),
        Case("exposure, 8", lambda on: lk.exposure(ids, liquid_tokens="liquid.near", ledger=on)),
        Case("snapshot", lambda on: lk.snapshot(ACCOUNT, ledger=on)),
        Case("top_holders", lambda on: lk.top_holders("gold.near", ledger=on)),
        Case("accounts_of", lambda on: lk.accounts_of(public_key, ledger=on)),
        Case("keys", lambda on: lk.keys(ACCOUNT, ledger=on)),
        Case("history, 24 heights", lambda on: lk.history(ACCOUNT, *heights, ledger=on), 4.5),
        Case("history, 24 times", lambda on: lk.history(ACCOUNT, *times, ledger=on)),
        Case("history, 4 heights", lambda on: lk.history(ACCOUNT, *heights, every=12, ledger=on)),
        Case("history, 4 times", lambda on: lk.history(ACCOUNT, *times, every="12s", ledger=on)),
        Case("block", lambda on: lk.block(ledger=on)),
        Case("block at a time", lambda on: lk.block(middle, ledger=on)),
        Case("blocks, 8", lambda on: lk.blocks(last - 7, last, ledger=on)),
        Case("chunk", lambda on: lk.chunk(at=last, shard_id=1, ledger=on)),
        Case("chunks", lambda on: lk.chunks(last, ledger=on)),
        Case("transactions", lambda on: lk.transactions(last, ledger=on)),
        Case("changes", lambda on: lk.changes("account_changes", ACCOUNT, at=last, ledger=on)),
        Case("tx", lambda on: lk.tx(*pair, ledger=on)),
        Case("trace", lambda on: lk.trace(*pair, ledger=on), 2.3),
        Case("receipts", lambda on: lk.receipts(*pair, ledger=on)),
        Case("traces, 8", lambda on: lk.traces(pairs, ledger=on)),
        Case("trace_block", lambda on: lk.trace_block(last, ledger=on)),
        Case("receipt", lambda on: lk.receipt(receipt_id, ledger=on)),
        Case("view_many, 8", lambda on: lk.view_many(views, ledger=on)),
        Case("view", lambda on: lk.view("gold.near", "ft_metadata", ledger=on)),
        Case("contract_code", lambda on: lk.contract_code("gold.near", ledger=on)),
        Case("contract_state", lambda on: lk.contract_state("counter.near", ledger=on)),
        Case("validators", lambda on: lk.validators(ledger=on)),
        Case("gas_price", lambda on: lk.gas_price(ledger=on)),
        Case("protocol_config", lambda on: lk.protocol_config(ledger=on)),
        Case("health", lambda on: lk.health(ledger=on)),
        Case("indexer_status", lambda on: lk.indexer_status(ledger=on)),
        Case("doctor", lambda on: lk.doctor(ledger=on)),
        Case(
            "global_contract_code",
            lambda on: lk.global_contract_code(account_id=ACCOUNT, ledger=on),
            prepare=lambda on: lk.send(ACCOUNT, [publish], wait_until="FINAL", **signer, ledger=on),
        ),
        Case(
            "gas_key_nonces",
            lambda on: lk.gas_key_nonces(ACCOUNT, str(new_key), ledger=on),
            prepare=lambda on: lk.send(ACCOUNT, [gas_key], wait_until="FINAL", **signer, ledger=on),
        ),
        Case(
            "collect, 8 accounts",
            lambda on: lk.collect(ids, ["accounts", "ft"], folder(), progress=False, ledger=on),
        ),
        Case(
            "collect_blocks, 8 blocks",
            lambda on: lk.collect_blocks(last - 8, last, out=folder(), progress=False, ledger=on),
        ),
        Case("track", lambda on: lk.track(*pair, ledger=on)),
        Case("resume", lambda on: lk.resume(*pair, ledger=on)),
        Case("call", lambda on: lk.call("counter.near", "increment", **signer, ledger=on)),
        Case("send", lambda on: lk.send("bob.near", [Transfer(1)], **signer, ledger=on)),
        Case("add_key", lambda on: lk.add_key(new_key, **signer, ledger=on)),
        Case("delete_key", lambda on: lk.delete_key(public_key, **signer, ledger=on)),
        Case(
            "create_account",
            lambda on: lk.create_account(
                f"new.{ACCOUNT}", public_key=new_key, balance="1 NEAR", **signer, ledger=on
            ),
        ),
        Case("deploy", lambda on: lk.deploy(EMPTY_MODULE, **signer, ledger=on)),
        Case("delegate", lambda on: lk.delegate("bob.near", [Transfer(1)], **signer, ledger=on)),
        Case("relay", lambda on: lk.relay(delegate, **signer, ledger=on)),
        Case("transfer, dry run", lambda on: transfer(on, dry_run=True, **signer), 2.5),
        Case("transfer", lambda on: transfer(on, **signer), 3.5),
    ]


def transfer(ledger: lk.Ledger, **options: Any) -> object:
    """Transfer 1 NEAR."""
    return lk.transfer("bob.near", "1 NEAR", ledger=ledger, **options)


def measure(case: Case) -> tuple[int, float]:
    """Run a verb with a new connection to a new world; return its requests and round trips."""
    distant = Distant(LocalTransport(open_world("demo")))
    if case.prepare is not None:
        with lk.connect("local", world=distant.world) as ledger:
            case.prepare(ledger)
    urls: dict[str, Any] = {
        "rpc_url": "http://127.0.0.1:3030",
        "api_url": "http://127.0.0.1:3030/api",
    }
    with lk.connect("lab", **urls, transport=distant) as ledger:
        begin = time.perf_counter()
        case.run(ledger)
        took = time.perf_counter() - begin
    return distant.requests, took / LATENCY_S


def main() -> None:
    """Print the table, and compare the round trips with the targets."""
    print(f"| verb | requests | round trips of {LATENCY_S * 1e3:.0f} ms |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(partial(tempfile.mkdtemp, dir=folder)):
            figures = [measure(case) for _ in range(ROUNDS)]
            requests, round_trips = figures[0][0], statistics.median(trips for _, trips in figures)
            print(f"| {case.name} | {requests} | {round_trips:.1f} |", flush=True)
            if case.target is not None:
                claim = f"{case.name}: at most {case.target} round trips"
                say(claim, f"{round_trips:.1f}", met=round_trips <= case.target)
    finish()


if __name__ == "__main__":
    main()
