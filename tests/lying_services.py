"""
Services that lie: they leave out, repeat, delay, alter, cut and reorder what a world executed.

Which transactions a lie hides is decided by their hashes, so a service that lies once always does.
The node itself tells the truth.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import httpx

from tests.local_transport import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledgerkit.localnet.world import World

# Lies about a transaction, each with its share in percent.
HIDDEN = {
    "unlisted": 4,  # missing in the account's transactions
    "untransferred": 4,  # missing in the account's transfers
    "forgotten": 4,  # missing in both
    "lost": 4,  # listed, but its document is missing
    "altered": 4,  # each deposit in its document is a yoctoNEAR more
    "contradicted": 4,  # its document is missing, and its transfers are a yoctoNEAR more
    "doubled": 4,  # twice in all lists
    "late": 4,  # all of these, until `catch_up`
}
LARGEST = 2**127 - 1  # the Transfers API stores amounts in 128 signed bits
_REPEATED, CUT, _CLAMPED = 40, 40, 10  # pages, pages and rows in percent
_PAGE = 15  # rows of a page, so that there are many


def _altered(value: Any) -> Any:
    """Return a document in which each deposit is a yoctoNEAR more."""
    if isinstance(value, list):
        return [_altered(each) for each in value]
    if not isinstance(value, dict):
        return value
    changed = {name: _altered(each) for name, each in value.items()}
    deposit = changed.get("deposit")
    return changed if deposit in (None, "0") else {**changed, "deposit": str(int(deposit) + 1)}


class LyingServices(LocalTransport):
    """
    A transport to a world whose Transactions and Transfers API lie.

    Parameters
    ----------
    world
        The world.
    seed
        Of the lies.
    hidden
        The lies about transactions, with the share of each in percent.

    Attributes
    ----------
    fates
        The hidden transactions that a response should have had, with the lie.
    clamped
        The transactions of transfers whose amount was cut.
    cut_off
        The transactions that a page left out because it ended early.
    pages
        How many pages were repeated in part or ended early.
    """

    def __init__(self, world: World, seed: int, hidden: Mapping[str, int] = HIDDEN) -> None:
        super().__init__(world)
        self.seed, self.hidden = seed, hidden
        self.fates: dict[str, str] = {}
        self.clamped: set[str] = set()
        self.cut_off: set[str] = set()
        self.pages = 0
        self._is_late = True
        self._last_rows: dict[str, Any] = {}  # of the last page, by account

    def catch_up(self) -> None:
        """Tell the truth about late transactions from now on."""
        self._is_late = False
        self.fates = {tx_hash: fate for tx_hash, fate in self.fates.items() if fate != "late"}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the world's response, with lies."""
        target: bytes = request.extensions.get("target") or request.url.raw_path
        lies = {
            b"/transactions/v0/account": self._account,
            b"/transactions/v0/transactions": self._documents,
            b"/transfers/v0/transfers": self._transfers,
        }
        lie = lies.get(target.partition(b"?")[0])
        if lie is None:
            return super().handle_request(request)
        body = json.loads(request.read())
        if "account_id" in body:
            body["limit"] = _PAGE
        headers = {"content-type": "application/json"}
        short = httpx.Request("POST", request.url, json=body, headers=headers)
        short.extensions = request.extensions
        response = super().handle_request(short)
        if response.status_code == httpx.codes.OK:
            document = json.loads(response.read())
            lie(body, document)
            response = httpx.Response(200, json=document)
        return response

    def fate(self, tx_hash: str | None) -> str | None:
        """Return the lie about a transaction, or None."""
        number = self._number(tx_hash or "")
        for fate, percent in self.hidden.items():
            if number < percent:
                return None if fate == "late" and not self._is_late else fate
            number -= percent
        return None

    def _number(self, *parts: object) -> int:
        """Return a number below 100 that depends on the parts."""
        digest = sha256(repr((self.seed, *parts)).encode()).digest()
        return int.from_bytes(digest[:4], "big") % 100

    def _is_hidden(self, tx_hash: str | None, *fates: str) -> bool:
        """Return True for a transaction with one of these lies about it, and record it."""
        fate = self.fate(tx_hash)
        if tx_hash is None or fate is None or fate not in fates:
            return False
        self.fates[tx_hash] = fate
        return True

    def _doubled(self, rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
        """Return rows, twice those of doubled transactions, which `name` has."""
        return [row for row in rows for _ in range(1 + self._is_hidden(row[name], "doubled"))]

    def _account(self, body: dict[str, Any], page: dict[str, Any]) -> None:
        """Leave out transactions, repeat the row before the page, and end pages early."""
        rows = page["account_txs"]
        hidden = ("unlisted", "forgotten", "late")
        rows = [row for row in rows if not self._is_hidden(row["transaction_hash"], *hidden)]
        before = self._last_rows.get(body["account_id"])
        if before is not None and "resume_token" in body and self._number(body) < _REPEATED:
            self.pages += 1
            rows.insert(0, before)
        elif len(rows) > 1 and self._number("cut", body) < CUT:
            self.pages += 1
            middle = (len(rows) + 1) // 2
            self.cut_off |= {row["transaction_hash"] for row in rows[middle:]}
            del rows[middle:]
            page.pop("resume_token", None)
        if rows:
            self._last_rows[body["account_id"]] = rows[-1]
        page["account_txs"] = self._doubled(rows, "transaction_hash")

    def _documents(self, _body: dict[str, Any], page: dict[str, Any]) -> None:
        """Leave out, alter and repeat documents, and send the others in another order."""
        page["transactions"] = [
            _altered(each) if self._is_hidden(each["transaction"]["hash"], "altered") else each
            for each in reversed(page["transactions"])
            if not self._is_hidden(each["transaction"]["hash"], "lost", "contradicted", "late")
        ]
        page["transactions"] += [
            each
            for each in page["transactions"]
            if self._is_hidden(each["transaction"]["hash"], "doubled")
        ]

    def _transfers(self, _body: dict[str, Any], page: dict[str, Any]) -> None:
        """Leave out and alter transfers, send rows twice, and cut amounts."""
        rows = []
        for row in page["transfers"]:
            tx_hash = row["transaction_id"]
            if self._is_hidden(tx_hash, "untransferred", "forgotten", "late"):
                continue
            if self._is_hidden(tx_hash, "contradicted"):
                row["amount"] = str(int(row["amount"]) + (-1 if row["amount"][0] == "-" else 1))
            if self._number(tx_hash, "cut") < _CLAMPED:
                self.clamped.add(tx_hash)
                row["amount"] = str(-LARGEST if row["amount"].startswith("-") else LARGEST)
            is_twice = self._number(tx_hash, "twice") < _REPEATED
            rows += self._doubled([row], "transaction_id") * (2 if is_twice else 1)
        page["transfers"] = rows


class Hiding(LocalTransport):
    """A transport to services that know nothing of one transaction, nor perhaps does the node."""

    def __init__(self, world: World, tx_hash: str, *, node_knows: bool) -> None:
        super().__init__(world)
        self.tx_hash, self.node_knows = tx_hash, node_knows

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        target: bytes = request.extensions.get("target") or request.url.raw_path
        response = super().handle_request(request)
        if not self.node_knows and self.tx_hash.encode() in request.read():
            cause = {
                "name": "UNKNOWN_TRANSACTION",
                "info": {"requested_transaction_hash": self.tx_hash},
            }
            error = {"name": "HANDLER_ERROR", "cause": cause, "code": -32000, "message": "x"}
            request_id = json.loads(request.read()).get("id")
            return httpx.Response(200, json={"jsonrpc": "2.0", "id": request_id, "error": error})
        if b"/v0/" not in target:
            return response
        page = json.loads(response.read())
        for name, rows in page.items():
            if isinstance(rows, list):
                page[name] = [row for row in rows if self.tx_hash not in json.dumps(row)]
        return httpx.Response(response.status_code, json=page)
