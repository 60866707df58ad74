"""The details of a receipt as texts in sections, which a front end requests one by one."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit import json_decoding
from ledgerkit.errors import cut
from ledgerkit.tracing.transfers import balance_change_columns
from ledgerkit.tracing.tree.frame_columns import SYSTEM
from ledgerkit.u128.human_units import is_missing
from ledgerkit.units import count_text, gas_amount, near_amount
from ledgerkit.visible_text import escape_invisible

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.tracing.amount_texts import AmountTexts
    from ledgerkit.tracing.token_events import Transfer
    from ledgerkit.tracing.trace import Trace
    from ledgerkit.tracing.transaction_data import TransactionData

    Json = dict[str, Any]

_MAX_CHARACTERS = 20_000  # characters of a JSON document
_MAX_LINE = 2_000  # characters of a log line
_MAX_ITEMS = 100  # actions, logs, events or transfers
_MAX_LINKS = 20
_MAX_BYTES = 256
_MAX_ID = 160  # characters; a receipt id has 44, and a token's id may be long
_TRANSFERS = {
    "deposit": "deposit of a call",
    "delegated": "deposit that the relayer pays",
    "gas_key": "balance of a gas key",
    "undelivered": "not delivered",
    "refund_deposit": "refund of a deposit",
    "beneficiary": "balance of the deleted account",
    "refund_gas": "refund of gas",
    "contract_reward": "share of the burnt gas",
    "fee": "fee",
    "burnt": "burnt",
}


class ReceiptDetails:
    """Describes the receipts of a trace, each named by its method or its actions."""

    def __init__(self, trace: Trace, tx: TransactionData, labels: Sequence[str]) -> None:
        self._trace, self._tx, self._labels = trace, tx, labels

    def describe(self, position: int) -> Json:
        """
        Describe a receipt: its `failure` and `remedy`, or "", and `sections` of items.

        An item has a `line` of values, `facts` (pairs of a name and a value), a `json` text or a
        `note`. A value is a text; an id (`kind`, `text`, and `id` if it can be opened); another
        receipt (`at` and `text`); or an amount (`text`, and with all digits `exact`).
        """
        trace = self._trace
        row, logs = _row(trace.receipts, position), trace.logs
        transfers = [t for t in self._tx.transfers if t.position == position]
        sections = (
            ("Receipt", [{"facts": self._facts(position, row)}]),
            ("Actions", _items(trace.actions, position, _action)),
            ("Gas", [{"facts": self._gas(position, row)}]),
            ("Result", self._result(row["receipt_id"])),
            ("Logs", _items(logs[~logs["is_event"]], position, lambda log: _code(log["log"]))),
            ("Events", _items(trace.events, position, _event)),
            ("Transfers", _limit([self._transfer(transfer) for transfer in transfers])),
            ("Balance changes", _limit(self._changes(transfers))),
        )
        failure = self._tx.failures.get(position)
        reason = [
            text for text in (row["error_kind"], row["error_message"]) if not is_missing(text)
        ]
        return {
            "at": position,
            "failure": cut(": ".join(reason), _MAX_LINE),
            "remedy": "" if failure is None else escape_invisible(failure.remedy),
            "sections": [
                {"title": title, "items": items}
                for title, items in sections
                if any(item != {"facts": []} for item in items)
            ],
        }

    # Sections -------------------------------------------------------------------------------

    def _facts(self, position: int, row: Json) -> list[Any]:
        parents, ids = self._tx.tree.parents, self._tx.tree.ids
        parent = parents[position]
        created = [i for i, creator in enumerate(parents) if creator == position]
        return _drop_missing(
            ("Receipt", id_value("receipt", row["receipt_id"])),
            ("From", id_value("account", row["predecessor_id"])),
            ("To", id_value("account", row["receiver_id"])),
            ("Block", id_value("block", row["block_height"])),
            ("Shard", None if is_missing(row["shard_id"]) else str(row["shard_id"])),
            ("Time", None if is_missing(row["time"]) else f"{row['time']:%Y-%m-%d %H:%M:%S} UTC"),
            ("Created by", self._links([parent] if parent >= 0 else [])),
            (
                "Created",
                self._links(created),
            ),
            ("Waited for", self._links([ids.index(receipt_id) for receipt_id in row["waits_for"]])),
        )

    def _links(self, positions: list[int]) -> list[Any] | None:
        links: list[Any] = [{"at": i, "text": self._labels[i]} for i in positions[:_MAX_LINKS]]
        n_others = len(positions) - len(links)
        return [*links, *([f"and {n_others:,} more"] if n_others > 0 else [])] or None

    def _gas(self, position: int, row: Json) -> list[Any]:
        gas = _row(self._trace.gas, position + 1)  # the first row is the transaction
        return _drop_missing(
            ("Burnt", _gas(row["gas_burnt"])),
            ("Burnt inside calls", _gas(gas["gas_in_calls"])),
            ("Attached to calls", _gas(_positive(row["gas_attached"]))),
            ("Burnt by it and all below it", _gas(row["subtree_gas"])),
            ("Cost", _near(row["tokens_burnt"])),
            ("Refund of unused gas", _near(_positive(gas["gas_refund"]))),
            ("Share of the contract", _near(_positive(gas["contract_reward"]))),
        )

    def _result(self, receipt_id: str) -> list[Json]:
        outcomes = [o for o in self._tx.result.outcomes if o.id == receipt_id]
        status = outcomes[0].outcome.status if outcomes else None
        value = getattr(status, "success_value", None)
        if not isinstance(value, str) or not value:
            return []
        try:
            data = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            return [_code(value)]
        try:
            return [_document(json_decoding.decode(data))]
        except msgspec.DecodeError:
            return [_document(data)]

    def _transfer(self, transfer: Transfer) -> Json:
        sender = id_value("account", transfer.sender_id) or "minted"
        receiver = id_value("account", transfer.receiver_id) or "burnt"
        amount = amount_value(self._tx.amounts, transfer.asset, transfer.amount)
        kind = _TRANSFERS.get(transfer.kind)
        line = [sender, " → ", receiver, ": ", amount, *([f" ({kind})"] if kind else [])]
        memo = [] if transfer.memo is None else [("Memo", cut(transfer.memo, _MAX_LINE))]
        return {"line": line, "facts": memo}

    def _changes(self, transfers: Iterable[Transfer]) -> list[Json]:
        rows = zip(*balance_change_columns(transfers).values(), strict=True)
        return [
            {"line": [id_value("account", account_id), ": ", change_value(self._tx.amounts, *by)]}
            for account_id, *by in rows
        ]


# Values -----------------------------------------------------------------------------------


def _row(frame: pd.DataFrame, position: int) -> Json:
    return {str(name): column.iloc[position] for name, column in frame.items()}


def id_value(kind: str, value: Any) -> Json | None:
    """Return an id, which can be opened unless it is shortened or the system account's."""
    if is_missing(value):
        return None
    text = cut(value, _MAX_ID)
    can_open = text == str(value) and text != SYSTEM
    return {"kind": kind, "text": text, "id": text if can_open else None}


def amount_value(amounts: AmountTexts, asset: str, amount: Any, sign: str = "") -> Any:
    """Return an amount in units and with all digits, and the fungible token that it opens."""
    if is_missing(amount):
        return "an unknown amount"
    texts = amounts.text(asset, amount), amounts.text(asset, amount, None)
    standard, _, contract_id = asset.partition(":")
    token = id_value("token", contract_id) if standard == "nep141" else None
    link = {} if token is None else {"kind": "token", "id": token["id"]}
    return {"text": f"{sign}{texts[0]}", "exact": f"{sign}{texts[1]}", **link}


def change_value(amounts: AmountTexts, asset: str, change: Any) -> Any:
    if is_missing(change):
        return "an unknown amount"
    return amount_value(amounts, asset, abs(change), "-" if change < 0 else "+")


def _drop_missing(*facts: tuple[str, Any]) -> list[tuple[str, Any]]:
    return [fact for fact in facts if fact[1] is not None]


def _positive(value: Any) -> Any:
    return None if is_missing(value) else value or None


def _gas(gas: Any) -> Json | None:
    return None if is_missing(gas) else {"text": gas_amount(gas), "exact": gas_amount(gas, None)}


def _near(amount: Any) -> Json | None:
    if is_missing(amount):
        return None
    return {"text": near_amount(amount), "exact": near_amount(amount, None)}


# Items ------------------------------------------------------------------------------------


def _items(frame: pd.DataFrame, position: int, item: Callable[[Json], Json]) -> list[Json]:
    rows = frame[frame["order"] == position]
    return _limit([item(_row(rows, n)) for n in range(min(len(rows), _MAX_ITEMS))], len(rows))


def _limit(items: list[Json], total: int | None = None) -> list[Json]:
    n_others = (len(items) if total is None else total) - _MAX_ITEMS
    more = [{"note": f"… and {n_others:,} more in the frame"}] if n_others > 0 else []
    return items[:_MAX_ITEMS] + more


def _action(row: Json) -> Json:
    is_inner = not is_missing(row["inner_index"])
    method = "" if is_missing(row["method_name"]) else f" {cut(row['method_name'])}()"
    facts = _drop_missing(
        ("Signed by", id_value("account", row["sender_id"]) if is_inner else None),
        ("Applied to", id_value("account", row["receiver_id"]) if is_inner else None),
        ("Deposit", _near(_positive(row["deposit"]))),
        ("Gas attached", _gas(row["gas_attached"])),
    )
    title = f"{'in the Delegate: ' if is_inner else ''}{cut(row['action'])}{method}"
    item: Json = {"line": [title], "facts": facts}
    for name in ("args", "details"):
        if not is_missing(row[name]):
            item |= _document(row[name])
    return item


def _event(row: Json) -> Json:
    names = (row["standard"], row["version"], row["event"])
    title = " ".join(cut(name) for name in names if not is_missing(name))
    item: Json = {"line": [title or "invalid event"]}
    if not is_missing(row["note"]):
        item["note"] = cut(row["note"], _MAX_LINE)
    return item if is_missing(row["data"]) else _document(row["data"]) | item


def _document(value: Any) -> Json:
    if isinstance(value, bytes):
        note = f"{count_text(len(value), 'byte')}, not JSON"
        return _code(value[:_MAX_BYTES].hex()) | {"note": note}
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, default=repr)
    except RecursionError:
        return {"note": "nested too deeply to show"}
    n_hidden = len(text) - _MAX_CHARACTERS
    item = {"json": escape_invisible(text[:_MAX_CHARACTERS], keep="\n")}
    if n_hidden > 0:
        item["note"] = f"… and {count_text(n_hidden, 'more character')}"
    return item


def _code(text: str) -> Json:
    return {"json": cut(text, _MAX_LINE)}
