"""Answers from recorded files instead of a network: a small transport, as a user writes one."""

import json
from pathlib import Path
from typing import Any

import httpx

EMPTY_LISTS = {"full": ["pools", "tokens", "nfts"], "staking": ["pools"]}


class Replay(httpx.BaseTransport):
    """
    Answers each request with what was recorded for it in a folder.

    `rest.json` holds answers by path, `rpc.json` by method and parameters. An account that was
    not recorded is answered as the services answer about an unknown one.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.paths = self._read("rest.json")
        self.calls = {wording(e["method"], e["params"]): e for e in self._read("rpc.json")}
        self.head = self.calls[wording("block", {"finality": "final"})]["answer"]["result"]

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Find the answer to one request."""
        if request.method == "GET":
            return httpx.Response(200, json=self._by_path(request.url.raw_path.decode()))
        asked = json.loads(request.read())
        found = self._by_call(asked["method"], asked["params"])
        answer = self._whole(found["answer"])
        whole = {"jsonrpc": "2.0", **answer, "id": asked["id"]}
        return httpx.Response(found.get("status", 200), json=whole)

    def _read(self, name: str) -> Any:
        """Read one of the recorded files."""
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def _whole(self, answer: Any) -> Any:
        """Read an answer that is a file of its own."""
        return self._read(answer) if isinstance(answer, str) else answer

    def _by_path(self, path: str) -> Any:
        """Answer a path of the indexed REST API."""
        if path in self.paths:
            return self._whole(self.paths[path])
        match path.strip("/").split("/"):
            case ["v1", "account", account_id, "full" | "ft" | "nft" | "staking" as view]:
                return unknown_to_indexer(account_id, view)
        raise LookupError(f"no answer was recorded for GET {path}")

    def _by_call(self, method: str, params: Any) -> dict[str, Any]:
        """Answer a JSON-RPC call."""
        found: dict[str, Any] | None = self.calls.get(wording(method, params))
        if found is not None:
            return found
        if method == "query" and not self._knows(params["account_id"]):
            return {"answer": self._unknown_account(params)}
        raise LookupError(f"no answer was recorded for {wording(method, params)}")

    def _knows(self, account_id: str) -> bool:
        """Tell whether anything was recorded of an account."""
        asked = (e["params"] for e in self.calls.values() if e["method"] == "query")
        return any(params["account_id"] == account_id for params in asked)

    def _unknown_account(self, params: dict[str, Any]) -> dict[str, Any]:
        """Answer as a node does about an account that does not exist."""
        header, account_id = self.head["header"], params["account_id"]
        read_at = {"block_height": header["height"], "block_hash": header["hash"]}
        if params["request_type"] == "view_access_key_list":
            return {"result": {"keys": [], **read_at}}
        info = {"requested_account_id": account_id, **read_at}
        error = {
            "name": "HANDLER_ERROR",
            "cause": {"name": "UNKNOWN_ACCOUNT", "info": info},
            "code": -32000,
            "message": "Server error",
            "data": f"account {account_id} does not exist while viewing",
        }
        return {"error": error}


def wording(method: str, params: Any) -> str:
    """Write a call so that equal ones read the same, whatever the order of their members."""
    return f"{method} {json.dumps(params, sort_keys=True)}"


def unknown_to_indexer(account_id: str, view: str) -> dict[str, Any]:
    """Answer as the indexer does about an account that it has never seen: with empty lists."""
    lists: dict[str, Any] = {name: [] for name in EMPTY_LISTS.get(view, ["tokens"])}
    state = {"state": None} if view == "full" else {}
    return {"account_id": account_id, **lists, **state}
