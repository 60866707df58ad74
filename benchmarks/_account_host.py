"""
The services of an invented account with any number of transactions.

Each transaction is a copy of one that the embedded ledger executed, a call of ft_transfer_call with
six receipts, with ids, heights and times of its own. The services send what a statement reads:
pages of transactions and of transfers, documents, and balances that follow from what the receipts
burnt and the token's events.
"""

import json
import re
from collections import Counter
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import _host
from _copies import SUFFIX, Template, decode, encode

import ledgerkit as lk
from ledgerkit.errors import UnknownAccountError

ACCOUNT, TOKEN = "alice.near", "gold.near"
STEP = 10  # blocks from one transaction to the next
_BLOCK_NS = 600_000_000
_BALANCE = 10**30  # before the first transaction, in yoctoNEAR and in units of the token
_VARIABLE = re.compile(
    r"\b[1-9A-HJ-NP-Za-km-z]{36}(?P<id>[1-9A-HJ-NP-Za-km-z]{8})\b"
    r"|\b[1-9A-HJ-NP-Za-km-z]{35}(?P<short>[1-9A-HJ-NP-Za-km-z]{8})\b"
    r'|_height":"?(?P<height>\d+)|block_timestamp":"?(?P<time>\d+)'
)


class Copies:
    """Copies of a JSON value, which differ in ids, heights and times."""

    def __init__(self, value: Any) -> None:
        self._template = Template(json.dumps(value, separators=(",", ":")), _VARIABLE)

    def copy(self, number: int) -> bytes:
        """Return the copy of one transaction."""
        blocks, suffix = STEP * number, encode(number)
        values = {}
        for kind, text in self._template.marks:
            if kind == "height":
                values[kind, text] = b"%d" % (int(text) + blocks)
            elif kind == "time":
                values[kind, text] = b"%d" % (int(text) + blocks * _BLOCK_NS)
            else:
                values[kind, text] = suffix
        return self._template.fill(values)


class Host:
    """The services of the account."""

    def __init__(self, count: int) -> None:
        self.ledger, self.count = lk.connect("local"), count
        self.requests: Counter[str] = Counter()
        self.block = self.ledger.rpc("block", {"finality": "final"})
        self.view = self.ledger.rpc("query", {"request_type": "view_account", **self.place()})
        rows = self.ask("account", account_id=ACCOUNT, desc=False)["account_txs"]
        tx_hash = rows[1]["transaction_hash"]
        document = self.ask("transactions", tx_hashes=[tx_hash])["transactions"][0]
        transfers = self.ledger.post("/v0/transfers", {"account_id": ACCOUNT}, surface="transfers")[
            "transfers"
        ]
        own = [row for row in transfers if row["transaction_id"] == tx_hash]
        self.height, self.time_ns = rows[1]["tx_block_height"], int(rows[1]["tx_block_timestamp"])
        self.transfer_times = [int(row["block_timestamp"]) for row in own]
        self.row, self.document = Copies(rows[1]), Copies(document)
        self.transfers = [Copies(row) for row in own]
        self.changes = balance_changes(document)

    def place(self) -> dict[str, str]:
        """Return the parameters of a query of the account."""
        return {"account_id": ACCOUNT, "finality": "final"}

    def ask(self, path: str, **body: object) -> Any:
        """Ask the embedded Transactions API."""
        return self.ledger.post(f"/v0/{path}", body, surface="transactions")

    def respond(self, path: str, body: bytes) -> bytes:
        """Answer a request."""
        request = json.loads(body) if body else {}
        name = request.get("method", path)
        if path == "/requests":
            counts = json.dumps(self.requests).encode()
            self.requests.clear()
            return counts
        self.requests[name] += 1
        if path == "/v0/account":
            return self.transactions_page(request)
        if path == "/v0/transactions":
            documents = (self.document.copy(decode(text)) for text in request["tx_hashes"])
            return b'{"transactions":[' + b",".join(documents) + b"]}"
        if path == "/v0/transfers":
            return self.transfers_page(request)
        answer = self.rpc(name, request["params"])
        return json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}).encode()

    def transactions_page(self, request: dict[str, Any]) -> bytes:
        """Return a page of transactions, the oldest first."""
        low, high = request.get("from_tx_block_height", 0), request["to_tx_block_height"]
        first = min(max(0, -((self.height - low) // STEP)), self.count)
        last = max(first, min(self.count, (high - self.height) // STEP + 1))
        at = int(request.get("resume_token", first))
        stop = min(at + request["limit"], last)
        page = b'{"account_txs":[' + b",".join(map(self.row.copy, range(at, stop))) + b"]"
        if "resume_token" not in request:
            page += b',"txs_count":%d' % (last - first)
        is_full = stop - at == request["limit"]
        return page + (b',"resume_token":"%d"}' % stop if is_full else b"}")

    def transfers_page(self, request: dict[str, Any]) -> bytes:
        """Return a page of transfers, the oldest first."""
        width = STEP * _BLOCK_NS
        low_ns = request.get("from_timestamp_ms", 0) * 10**6
        high_ns = request.get("to_timestamp_ms", 2**63) * 10**6
        number = max(0, (low_ns - self.time_ns) // width - 1)
        rows: list[bytes] = []
        while number < self.count and len(rows) < request["limit"]:
            rows += [
                row.copy(number)
                for row, time_ns in zip(self.transfers, self.transfer_times, strict=True)
                if low_ns <= time_ns + number * width < high_ns
            ]
            if self.transfer_times[0] + number * width >= high_ns:
                break
            number += 1
        rows = rows[: request["limit"]]
        token = b'"next"' if len(rows) == request["limit"] else b"null"  # times lead further
        return b'{"transfers":[' + b",".join(rows) + b'],"resume_token":' + token + b"}"

    def rpc(self, method: str, params: Any) -> dict[str, Any]:
        """Answer a call of the node; all but blocks and balances as the embedded ledger does."""
        if method == "block":
            return {"result": self.block_at(self.height_of(params))}
        if method == "query":
            answer = self.query(params)
            if answer is None:
                return {"error": UNKNOWN_ACCOUNT}
            return {"result": answer}
        if method == "EXPERIMENTAL_protocol_config":
            return {"result": self.ledger.rpc(method, {"finality": "final"})}
        raise NotImplementedError(method)

    def height_of(self, params: dict[str, Any]) -> int:
        """Return the height that a request names; the final block is after all transactions."""
        block_id = params.get("block_id", self.height + STEP * self.count)
        return decode(block_id) if isinstance(block_id, str) else int(block_id)

    def block_at(self, height: int) -> dict[str, Any]:
        """Return a block without chunks."""
        header = dict(self.block["header"])
        time_ns = self.time_ns + (height - self.height) * _BLOCK_NS
        for name, own in (("hash", height), ("prev_hash", height - 1)):
            header[name] = header[name][:-SUFFIX] + encode(own).decode()
        header |= {"height": height, "prev_height": height - 1}
        header |= {"timestamp": time_ns, "timestamp_nanosec": str(time_ns)}
        return {**self.block, "header": header, "chunks": []}

    def query(self, params: dict[str, Any]) -> dict[str, Any] | None:
        """Return a balance, or the metadata of the token; None for another account."""
        height = self.height_of(params)
        place = {"block_height": height, "block_hash": self.block_at(height)["header"]["hash"]}
        n_done = max(0, min(self.count, (height - self.height + STEP // 2) // STEP))
        near, tokens = (_BALANCE + n_done * change for change in self.changes)
        if params["request_type"] == "view_account":
            is_own = params["account_id"] == ACCOUNT
            return {**self.view, "amount": str(near), **place} if is_own else None
        if params["method_name"] == "ft_balance_of":
            return {"result": [*json.dumps(str(tokens)).encode()], "logs": [], **place}
        latest = {**params, "finality": "final"}
        latest.pop("block_id", None)
        try:
            return {**self.ledger.rpc("query", latest), **place}
        except UnknownAccountError:  # such as the lockup contract of the account
            return None


UNKNOWN_ACCOUNT = {
    "name": "HANDLER_ERROR",
    "cause": {"name": "UNKNOWN_ACCOUNT", "info": {}},
    "code": -32000,
    "message": "Server error",
    "data": "account does not exist while viewing",
}


def balance_changes(document: dict[str, Any]) -> tuple[int, int]:
    """Return what a transaction changes of its signer's NEAR and tokens."""
    outcomes = [document["execution_outcome"]["outcome"]]
    outcomes += [each["execution_outcome"]["outcome"] for each in document["receipts"]]
    burnt = sum(int(outcome["tokens_burnt"]) for outcome in outcomes)
    events = [
        transfer
        for outcome in outcomes
        for log in outcome["logs"]
        for transfer in json.loads(log.removeprefix("EVENT_JSON:"))["data"]
    ]
    received = sum(int(e["amount"]) for e in events if e["new_owner_id"] == ACCOUNT)
    sent = sum(int(e["amount"]) for e in events if e["old_owner_id"] == ACCOUNT)
    return -burnt - 1, received - sent  # 1 yoctoNEAR is attached to the call


def running(count: int, latency_s: float) -> AbstractContextManager[str]:
    """Run the services in another process."""
    return _host.running(partial(host, count), latency_s)


def host(count: int) -> _host.Respond:
    """Build the services of an account."""
    services = Host(count)
    return lambda target, body: _host.message(services.respond(target, body))
