"""
A real account's history, served as an archival node and a Transfers API would serve it.

The file has the balances of one mainnet account in 23 million blocks. Between two records nothing
changed. The stake was sampled at every 43,200th block, which are the first blocks of the epochs
here; a deposit with the pool counts from the transfer that made it. Hashes, the times of blocks
without a record, and another delegator of the pool, whose stake grew as much, are made up.

>>> with serve_history(read_history()) as server, connect_history(server) as ledger:
...     lk.statement(ACCOUNT_ID, ledger=ledger)
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_right
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from ledgerkit.protocol import CryptoHash
from tests.loopback import Reply, as_json, failure, result, serve

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tests.loopback import Server

FILE = Path(__file__).parents[2] / "shared/vectors/history/account.json"
EPOCH_LENGTH = 43_200
MAX_PAGE = 100  # of the Transfers API
OTHER_STAKE = 10**33
_NO_HASH = "1" * 32
_INTENTS = "intents.near"


def read_history() -> History:
    """Read the file; skip the test where it is absent."""
    if not FILE.exists():
        pytest.skip("the recorded account is not here")
    return History(json.loads(FILE.read_text(encoding="utf-8")))


@dataclass(slots=True)
class Series:
    """A quantity after blocks: its value at a height is that of the last change up to it."""

    heights: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)

    def at(self, height: int) -> int:
        index = bisect_right(self.heights, height)
        return self.values[index - 1] if index else 0


class History:
    """The records of the file, as balances after blocks and as rows of transfers."""

    def __init__(self, document: Any) -> None:
        self.account_id: str = document["accountId"]
        self.records: list[Any] = sorted(document["transactions"], key=lambda r: r["block"])
        self.pools: list[str] = document["stakingPools"]
        self.first: int = self.records[0]["block"]
        self.last: int = self.records[-1]["block"]
        self.near = Series()
        self.tokens: dict[str, Series] = {}
        self.intents: dict[str, Series] = {}
        self.stakes: dict[str, Series] = {pool_id: Series() for pool_id in self.pools}
        self.others: dict[str, Series] = {pool_id: Series() for pool_id in self.pools}
        self.rows: list[dict[str, Any]] = []
        timed = [record for record in self.records if record["timestamp"]]
        self._heights: list[int] = [record["block"] for record in timed]
        self._times: list[int] = [record["timestamp"] for record in timed]
        for record in self.records:
            self._add(record)

    # Balances ----------------------------------------------------------------------------

    def _add(self, record: Any) -> None:
        """Add a record; only what it says changed, and the balances before the first one."""
        height, changes = record["block"], record["changes"]
        if "stakingChanged" in changes:
            for pool_id, change in changes["stakingChanged"].items():
                own, other = self.stakes[pool_id], self.others[pool_id]
                before, after = own.at(height), int(change["end"])
                stake = other.at(height) or OTHER_STAKE
                self._put(other, height, str(stake * after // before if before else stake))
                self._put(own, height, str(after))
            return
        before, after = record["balanceBefore"], record["balanceAfter"]
        self._set(self.near, height, before["near"], after["near"])
        for name, series in ("fungibleTokens", self.tokens), ("intentsTokens", self.intents):
            for token_id in before[name].keys() | after[name].keys():
                values = before[name].get(token_id, "0"), after[name].get(token_id, "0")
                self._set(series.setdefault(token_id, Series()), height, *values)
        for index, transfer in enumerate(record["transfers"]):
            # 23 token transfers are repeated in the record of the NEAR that came with the call.
            is_repeated = transfer["type"] == "mt" and (
                transfer["tokenId"] not in changes["intentsChanged"]
            )
            if not is_repeated:
                self._add_transfer(record, index, transfer)

    def _set(self, series: Series, height: int, before: str, after: str) -> None:
        if not series.heights:
            self._put(series, 0, before)
        self._put(series, height, after)

    def _put(self, series: Series, height: int, value: str) -> None:
        """Set a balance after a block."""
        series.heights.append(height)
        series.values.append(int(value))

    def _add_transfer(self, record: Any, index: int, transfer: Any) -> None:
        """Add a row of the Transfers API, and the stake that a deposit adds at once."""
        sign = -1 if transfer["direction"] == "out" else 1
        amount, memo = sign * int(transfer["amount"]), transfer.get("memo")
        near = transfer["type"] == "near"
        other_id, height = transfer["counterparty"], record["block"]
        if near and other_id in self.stakes and memo == "deposit_and_stake":
            series = self.stakes[other_id]
            self._put(series, height, str(series.at(height) - amount))
        self.rows.append(
            {
                "block_height": str(height),
                "block_timestamp": str(self.time_ns(height)),
                "transaction_id": transfer.get("txHash"),
                "receipt_id": transfer.get("receiptId"),
                "transfer_index": index,
                "account_id": self.account_id,
                "other_account_id": other_id,
                "predecessor_id": self.account_id if sign < 0 else other_id,
                "asset_id": self._asset(transfer),
                "asset_type": {"near": "Near", "ft": "Ft", "mt": "Mt"}[transfer["type"]],
                "amount": str(amount),
                "method_name": memo if near else None,
                "transfer_type": ("AttachedDeposit" if memo else "NativeTransfer")
                if near
                else {"ft": "FtTransfer", "mt": "MtTransfer"}[transfer["type"]],
                "start_of_block_balance": None,
                "end_of_block_balance": None,
            }
        )

    def _asset(self, transfer: Any) -> str:
        kind = transfer["type"]
        if kind == "near":
            return "native:near"
        prefix = "nep141:" if kind == "ft" else f"nep245:{_INTENTS}:"
        return prefix + transfer["tokenId"]

    # Blocks ------------------------------------------------------------------------------

    def time_ns(self, height: int) -> int:
        """Return the time of a block: recorded, or in proportion between two records."""
        after = min(max(bisect_right(self._heights, height), 1), len(self._heights) - 1)
        low, high = self._heights[after - 1 : after + 1]
        early, late = self._times[after - 1 : after + 1]
        return early + (height - low) * (late - early) // (high - low)

    def header(self, height: int) -> dict[str, Any]:
        """Return the header of a block; no height is skipped."""
        epoch_start = height - height % EPOCH_LENGTH
        time_ns = self.time_ns(height)
        return {
            "height": height,
            "hash": block_hash(height),
            "prev_hash": block_hash(height - 1),
            "prev_height": height - 1,
            "epoch_id": block_hash(epoch_start - EPOCH_LENGTH - 1),
            "next_epoch_id": block_hash(epoch_start - 1),
            "chunks_included": 0,
            "gas_price": "100000000",
            "total_supply": "1",
            "timestamp": time_ns,
            "timestamp_nanosec": str(time_ns),
            "last_final_block": block_hash(height - 2),
            "latest_protocol_version": 80,
        }

    # JSON-RPC ----------------------------------------------------------------------------

    def rpc(self, method: str, params: Any) -> Reply:
        if method == "status":
            return result(self._status())
        height = self._height(params) if isinstance(params, dict) else None
        if height is None or not 0 < height <= self.last:
            return failure("UNKNOWN_BLOCK", {})
        if method == "block":
            return result({"author": "a.near", "header": self.header(height), "chunks": []})
        if method == "query":
            return self._query(params, height)
        return as_json({"jsonrpc": "2.0", "id": "0", "error": _METHOD_NOT_FOUND})

    def _height(self, params: Any) -> int | None:
        """Return the height of a block reference; None if there is no such block."""
        block_id = params.get("block_id")
        if params.get("sync_checkpoint"):
            return self.first - EPOCH_LENGTH
        if block_id is None:
            return self.last
        return block_id if isinstance(block_id, int) else _height_of(block_id)

    def _status(self) -> dict[str, Any]:
        sync = {"latest_block_hash": block_hash(self.last), "latest_block_height": self.last}
        times = {"latest_block_time": "2025-11-04T00:00:00Z", "syncing": False}
        version = {"version": "2.9.0", "build": "2.9.0"}
        return {"chain_id": "mainnet", "version": version, "sync_info": {**sync, **times}}

    def _query(self, params: Any, height: int) -> Reply:
        """Respond to a query of the account's state, or of a view method."""
        block = {"block_height": height, "block_hash": block_hash(height)}
        if params["request_type"] == "view_account":
            if params["account_id"] != self.account_id:
                info = {"requested_account_id": params["account_id"], **block}
                return failure("UNKNOWN_ACCOUNT", info)
            state = {"amount": str(self.near.at(height)), "locked": "0", "storage_usage": 1000}
            return result({**state, "code_hash": _NO_HASH, "storage_paid_at": 0, **block})
        if params["request_type"] == "call_function":
            args = json.loads(base64.b64decode(params["args_base64"]) or b"{}")
            value = self._view(params["account_id"], params["method_name"], args, height)
            if value is not None:
                return result({"result": list(json.dumps(value).encode()), "logs": [], **block})
        return failure("NO_CONTRACT_CODE", {"contract_account_id": params["account_id"], **block})

    def _view(self, contract_id: str, method: str, args: Any, height: int) -> Any:
        """Return the value of a view method; None if the contract has no such method."""
        is_own = args.get("account_id") == self.account_id
        if contract_id in self.stakes:
            if method == "get_accounts":
                return self._delegators(contract_id, height)
            return self._view_pool(method, self.stakes[contract_id].at(height) if is_own else 0)
        if contract_id == _INTENTS:
            return self._view_intents(method, args, height)
        if contract_id in self.tokens and method == "ft_balance_of":
            return str(self.tokens[contract_id].at(height)) if is_own else "0"
        if contract_id in self.tokens and method == "ft_metadata":
            names = {"spec": "ft-1.0.0", "name": contract_id, "symbol": contract_id[:8].upper()}
            return {**names, "decimals": 24 if contract_id == "wrap.near" else 6}
        return None

    def _delegators(self, pool_id: str, height: int) -> Any:
        stakes = {self.account_id: self.stakes[pool_id], "other.near": self.others[pool_id]}
        return [
            {"account_id": name, "staked_balance": str(series.at(height)), "unstaked_balance": "0"}
            for name, series in stakes.items()
        ]

    def _view_pool(self, method: str, total: int) -> Any:
        staked = {"staked_balance": str(total), "unstaked_balance": "0", "can_withdraw": True}
        return {
            "get_account": {"account_id": self.account_id, **staked},
            "get_account_total_balance": str(total),
            "get_account_staked_balance": str(total),
            "get_account_unstaked_balance": "0",
        }.get(method)

    def _view_intents(self, method: str, args: Any, height: int) -> Any:
        """Return the value of a view method of the multi-token contract."""
        token_ids = args.get("token_ids") or [args.get("token_id")]
        is_own = args.get("account_id") == self.account_id
        series = [self.intents.get(token_id, Series()) for token_id in token_ids]
        balances = [str(each.at(height)) if is_own else "0" for each in series]
        if method == "mt_batch_balance_of":
            return balances
        return balances[0] if method == "mt_balance_of" else None

    # Services ----------------------------------------------------------------------------

    def transfers(self, body: Any) -> Reply:
        """Respond to /v0/transfers: oldest first by default, pages of at most 100."""
        rows = self.rows if body["account_id"] == self.account_id else []
        first_ns = (body.get("from_timestamp_ms") or 0) * 10**6
        last_ns = (body.get("to_timestamp_ms") or 10**15) * 10**6
        sign = {"sender": -1, "receiver": 1}.get(body.get("direction") or "", 0)
        rows = [
            row
            for row in rows
            if first_ns <= int(row["block_timestamp"]) < last_ns
            and int(row["amount"]) * sign >= 0
            and body.get("asset_id") in (None, row["asset_id"])
        ]
        rows = rows[::-1] if body.get("desc") else rows
        token = body.get("resume_token")
        position = int(token) if token else 0
        limit = min(max(int(body.get("limit") or MAX_PAGE), 1), MAX_PAGE)
        page = rows[position : position + limit]
        next_token = str(position + limit) if len(page) == limit else None
        return as_json({"transfers": page, "resume_token": next_token})

    def respond(self, method: str, path: str, _headers: Any, body: bytes) -> Reply:
        """Respond to any request; no transaction is known."""
        content = json.loads(body) if body else {}
        path = path.split("?", maxsplit=1)[0]
        if path.endswith("/v0/transfers"):
            return self.transfers(content)
        if path.startswith("/v1/account/"):
            return as_json(self._indexed(path.split("/")[3], path.split("/")[4:]))
        if method == "POST" and "method" in content:
            return self.rpc(content["method"], content.get("params"))
        last_part = path.rpartition("/")[2]
        return as_json(_NOTHING[last_part]) if last_part in _NOTHING else as_json({}, 404)

    def _indexed(self, account_id: str, part: list[str]) -> dict[str, Any]:
        is_own = account_id == self.account_id
        pools = [{"pool_id": pool_id, "last_update_block_height": None} for pool_id in self.pools]
        tokens = [
            {"contract_id": token_id, "balance": str(series.at(self.last))}
            for token_id, series in self.tokens.items()
        ]
        members: dict[str, Any] = {
            "pools": pools if is_own else [],
            "tokens": tokens if is_own and part != ["nft"] else [],
        }
        names = {"staking": ["pools"], "ft": ["tokens"], "nft": ["tokens"]}
        chosen = names.get(part[0] if part else "", list(members))
        return {"account_id": account_id, **{name: members[name] for name in chosen}}


def serve_history(history: History) -> AbstractContextManager[Server]:
    """Run a server of the history until the block ends."""
    return serve(history.respond)


def connect_history(server: Server) -> lk.Ledger:
    url = server.url
    return lk.connect(
        "lab",
        rpc_url=url,
        api_url=url,
        transactions_url=url,
        transfers_url=url,
        make_default=False,
    )


_NOTHING = {
    "account": {"account_txs": [], "txs_count": 0},
    "transactions": {"transactions": []},
    "receipt": {"receipt": None, "transaction": None},
}
_METHOD_NOT_FOUND = {"code": -32601, "message": "Method not found", "data": "no such method"}


def block_hash(height: int) -> str:
    head = height.to_bytes(8, "big")
    return str(CryptoHash(head + sha256(head).digest()[:24]))


def _height_of(text: str) -> int | None:
    """Return the height of the block with a hash; None if there is none."""
    height = int.from_bytes(CryptoHash(text)[:8], "big")
    return height if block_hash(height) == text else None


__all__ = [
    "EPOCH_LENGTH",
    "History",
    "block_hash",
    "connect_history",
    "read_history",
    "serve_history",
]
