"""A transport that repeats the responses of the embedded ledger, and can change them first."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx

import ledgerkit as lk
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import Transfer
from tests.local_transport import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    Change = Callable[[bytes, int], tuple[bytes, int]]

TGAS = 10**12
RETRIES = lk.RetryPolicy(attempts=1, total_s=5.0)


class Replay(httpx.BaseTransport):
    """
    The responses of the demo world, each computed once.

    Attributes
    ----------
    change
        Returns the body and the status to send, from those of the world.
    bodies
        The bodies of all responses so far, by request.
    """

    def __init__(self) -> None:
        self.local = LocalTransport(open_world("demo"))
        self.change: Change = lambda body, status: (body, status)
        self.bodies: dict[tuple[str, str], tuple[bytes, int]] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response of the world, or what `change` makes of it."""
        document = json.loads(request.read() or b"{}")
        call_id = document.pop("id", None)
        key = (request.url.raw_path.decode(), json.dumps(document))
        if key not in self.bodies:
            answer = self.local.handle_request(request)
            self.bodies[key] = (_with_id(answer.read(), call_id, "ID"), answer.status_code)
        body, status = self.change(*self.bodies[key])
        return httpx.Response(status, content=_with_id(body, "ID", call_id))


def _with_id(body: bytes, old: Any, new: Any) -> bytes:
    return body.replace(b'"id":' + json.dumps(old).encode(), b'"id":' + json.dumps(new).encode(), 1)


def connect(replay: Replay) -> lk.Ledger:
    """Open a ledger that sends one request after the other."""
    return lk.connect(
        "lab",
        rpc_url="http://localhost",
        api_url="http://localhost/api",
        transactions_url="http://localhost/transactions",
        transfers_url="http://localhost/transfers",
        kv_url="http://localhost/kv",
        transport=replay,
        retries=RETRIES,
        in_flight=1,
    )


def verbs(replay: Replay) -> dict[str, Callable[[lk.Ledger], Any]]:
    """Return the verbs that read from a network, by name, each with arguments that work."""
    world = replay.local.world
    key = world.keys()["alice.near"]
    pairs = [(tx.tx_hash, tx.signer_id) for tx in world.summary.transactions]
    pair, pairs_of_two = pairs[4], pairs[4:6]
    first = lk.receipts(*pair, ledger=connect(replay))
    receipt_id = str(first["receipt_id"][0])
    at, time = int(first["block_height"][0]), first["time"][0]
    shard_id = int(first["shard_id"][0])
    public_key = str(lk.protocol.SecretKey.from_text(key).public_key)
    owned: dict[str, Any] = {"signer_id": "alice.near", "key": key, "timeout_s": 0.05}
    quiet: dict[str, Any] = {"progress": False}
    collect: dict[str, Any] = {"progress": False, "on_error": "collect"}
    contract = "counter.near"
    both = ["alice.near", "bob.near"]
    reading: dict[str, Callable[[lk.Ledger], Any]] = {
        "accounts": lambda on: lk.accounts(both, ledger=on, **quiet),
        "accounts at": lambda on: lk.accounts(both, at="final", ledger=on, **collect),
        "snapshot": lambda on: lk.snapshot("alice.near", ledger=on),
        "accounts_of": lambda on: lk.accounts_of(public_key, ledger=on),
        "keys": lambda on: lk.keys("frank.near", ledger=on),
        "ft": lambda on: lk.ft(both, metadata=True, ledger=on, **quiet),
        "ft collected": lambda on: lk.ft(both, ledger=on, **collect),
        "ft of contracts": lambda on: lk.ft(
            both, contracts=["gold.near", "wrap.near"], at=at, ledger=on, **collect
        ),
        "token_metadata": lambda on: lk.token_metadata("gold.near", ledger=on, **quiet),
        "balance": lambda on: lk.balance("alice.near", ledger=on),
        "balance of a token": lambda on: lk.balance("alice.near", "gold.near", ledger=on),
        "nft": lambda on: lk.nft(both, ledger=on, **quiet),
        "nft_tokens": lambda on: lk.nft_tokens(
            ["uma.near", "alice.near"], "stamps.grace.near", ledger=on, **quiet
        ),
        "staking": lambda on: lk.staking(both, positions=True, ledger=on, **quiet),
        "exposure": lambda on: lk.exposure(
            both, liquid_tokens=["liquid.near"], ledger=on, **collect
        ),
        "top_holders": lambda on: lk.top_holders("gold.near", ledger=on),
        "history": lambda on: lk.history("alice.near", at - 3, at, every=1, ledger=on, **quiet),
        "account_transactions": lambda on: lk.account_transactions(both, ledger=on, **quiet),
        "transfers_of": lambda on: lk.transfers_of(both, ledger=on, **collect),
        "key_values": lambda on: lk.key_values("data.near", ledger=on, **quiet),
        "view": lambda on: lk.view("gold.near", "ft_metadata", ledger=on),
        "view raw": lambda on: lk.view("gold.near", "ft_metadata", raw=True, ledger=on),
        "view_many": lambda on: lk.view_many(
            [("gold.near", "ft_metadata"), ("gold.near", "ft_total_supply")], ledger=on, **quiet
        ),
        "contract_code": lambda on: lk.contract_code(contract, ledger=on),
        "global contract": lambda on: lk.contract_code(
            global_contract_account_id="alice.near", ledger=on
        ),
        "contract_state": lambda on: lk.contract_state(contract, ledger=on),
        "status": lambda on: lk.status(ledger=on),
        "doctor": lambda on: lk.doctor(ledger=on),
        "gas_price": lambda on: lk.gas_price(ledger=on),
        "validators": lambda on: lk.validators(ledger=on),
        "protocol_config": lambda on: lk.protocol_config(ledger=on),
        "block": lambda on: lk.block("final", ledger=on),
        "block by time": lambda on: lk.block(time, ledger=on),
        "blocks": lambda on: lk.blocks(at, at + 2, ledger=on, **quiet),
        "chunks": lambda on: lk.chunks(at, ledger=on),
        "chunk": lambda on: lk.chunks(at, shard_id=shard_id, ledger=on),
        "transactions": lambda on: lk.transactions(at, ledger=on, **quiet),
        "changes": lambda on: lk.changes("alice.near", at=at, ledger=on),
        "changes of keys": lambda on: lk.changes(
            "alice.near", "all_access_key_changes", at=at, ledger=on
        ),
        "changes of data": lambda on: lk.changes("gold.near", "data_changes", at=at, ledger=on),
        "trace": lambda on: lk.trace(*pair, ledger=on),
        "traces": lambda on: lk.traces(pairs_of_two, ledger=on, **collect),
        "trace_block": lambda on: lk.trace_block(at, ledger=on, **quiet),
        "receipt": lambda on: lk.receipt(receipt_id, ledger=on),
        "track": lambda on: lk.track(*pair, timeout_s=0.05, ledger=on),
        "track once": lambda on: lk.track(*pair, ledger=on, timeout_s=0),
        "rpc": lambda on: on.rpc("block", {"finality": "final"}),
        "get": lambda on: on.get("/v1/account/alice.near/full"),
        "verify_archive": lambda on: lk.archiving.verify_archive(
            "1", source=on, target=on, collection="stamps.grace.near"
        ),
    }
    sending: dict[str, Callable[[lk.Ledger], Any]] = {
        "transfer": lambda on: lk.transfer("bob.near", "1 yocto", ledger=on, **owned),
        "call": lambda on: lk.call(contract, "increment", gas=9 * TGAS, ledger=on, **owned),
        "send": lambda on: lk.send(
            "bob.near", [Transfer(1)], via="broadcast_tx_commit", ledger=on, **owned
        ),
        "send async": lambda on: lk.send(
            "bob.near", [Transfer(2)], via="broadcast_tx_async", ledger=on, **owned
        ),
        "dry run": lambda on: lk.transfer("bob.near", "1 yocto", dry_run=True, ledger=on, **owned),
        "delegate": lambda on: lk.delegate(
            "bob.near", [Transfer(1)], signer_id="alice.near", key=key, ledger=on
        ),
    }
    traces = {f"trace {number}": partial(_trace, pair) for number, pair in enumerate(pairs)}
    return reading | sending | traces


def _trace(pair: tuple[str, str], ledger: lk.Ledger) -> lk.Trace:
    return lk.trace(*pair, ledger=ledger)
