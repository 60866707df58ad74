"""HTML cards for notebooks, without scripts, styles or a live kernel."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import cut
from ledgerkit.units import TGAS_DECIMALS, gas_text, near_text
from ledgerkit.visible_text import escape_invisible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    Record = Mapping[str, Any]

MAX_ROWS = 200  # a page with more is slow to open and to read
_MAX_OPEN = 40  # receipts; a larger tree starts folded
_MAX_DEPTH = 30  # nested lists; deeper receipts are siblings
_MAX_LOGS = 10
_MAX_TEXT = 200  # characters
_END = "</details></li>"
NO_MATH = "tex2jax_ignore mathjax_ignore"  # turns MathJax off: a token may be called $A$
_UNKNOWN = "? unknown"
_STATUSES = {
    "success_value": "✓ succeeded",
    "success_receipt_id": "✓ succeeded, another receipt returns the result",
    "failure": "✗ failed",
    "not_executed": "… not run yet",
}


def trace_card(
    *,
    headline: str,
    explanation: str,
    receipts: pd.DataFrame,
    edges: pd.DataFrame,
    transfers: pd.DataFrame,
) -> str:
    """
    Format a trace as HTML: headline, explanation, receipts as a tree and a table, transfers.

    All text is escaped, long texts are shortened, and rows after the 200th are counted.
    """
    rows = _records(receipts)
    is_short = len(rows) <= _MAX_OPEN
    parts = [
        f"<h3>{_text(headline, 4 * _MAX_TEXT)}</h3>",
        *_paragraphs(explanation),
        _section("Receipts as a tree", len(receipts), _tree(rows), is_open=is_short),
        _section("Receipts as a table", len(receipts), _receipt_table(rows, edges)),
        _section("Transfers", len(transfers), _transfer_table(_records(transfers))),
    ]
    return _card("ledgerkit-trace", parts)


def table_card(
    kind: str, *, headline: str, explanation: str, caption: str, rows: pd.DataFrame
) -> str:
    """
    Format a short table as HTML, with a headline and an explanation.

    All text is escaped, and rows after the 200th are left out. `kind` is part of the CSS class.
    """
    body = [[_number(value) for value in record.values()] for record in _records(rows)]
    table = _table(_text(caption), [_text(name) for name in rows.columns], body)
    parts = [f"<h3>{_text(headline)}</h3>", *_paragraphs(explanation), table]
    return _card(f"ledgerkit-{kind}", parts)


def _card(css_class: str, parts: Iterable[str]) -> str:
    """Wrap the parts of a card."""
    return f'<div class="{css_class} {NO_MATH}">{"".join(parts)}</div>'


def _records(frame: pd.DataFrame) -> list[Record]:
    """Return the first rows of a frame as dicts, with None for missing values."""
    head = frame.head(MAX_ROWS).astype(object)
    records: list[Any] = head.where(head.notna(), None).to_dict("records")
    return records


def _text(value: object, limit: int = _MAX_TEXT) -> str:
    """Format a value as one short, escaped line, or "unknown" for None."""
    return "unknown" if value is None else html_text(cut(value, limit))


def html_text(text: str, *, keep: str = "") -> str:
    """Return a text as HTML, with markup and invisible characters escaped."""
    return escape(escape_invisible(text, keep=keep))


def _paragraphs(explanation: str) -> Iterable[str]:
    """Format paragraphs, with their line breaks."""
    for paragraph in explanation.split("\n\n"):
        lines = [_text(line, 4 * _MAX_TEXT) for line in paragraph.splitlines() if line.strip()]
        if lines:
            yield f"<p>{'<br>'.join(lines)}</p>"


def _section(name: str, n_rows: int, body: str, *, is_open: bool = False) -> str:
    """Format a section that folds."""
    n_hidden = n_rows - MAX_ROWS
    hidden = f"<p>and {n_hidden:,} more in the frame</p>" if n_hidden > 0 else ""
    title = f"<summary><strong>{name}</strong> ({n_rows:,})</summary>"
    return f"<details{' open' if is_open else ''}>{title}{body}{hidden}</details>"


# Receipts as a tree ---------------------------------------------------------------------


def _tree(rows: Sequence[Record]) -> str:
    """Format receipts as nested lists."""
    if not rows:
        return "<p>none</p>"
    children = children_by_parent(rows)
    pieces = ["<ul>"]
    # A stack in place of recursion, since traces can be deeper than Python's recursion limit.
    # It holds closing tags, and receipts with their depth.
    stack: list[tuple[int, Record | str]] = [(0, "</ul>"), *_reversed(children.get(None, []), 0)]
    while stack:
        depth, item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        pieces.append(f"<li>{_receipt(item)}")
        own = children.pop(item["receipt_id"], [])
        if own and depth < _MAX_DEPTH:
            pieces.append("<ul>")
            stack += [(depth, f"</ul>{_END}"), *_reversed(own, depth + 1)]
        else:
            pieces.append(_END)
            stack += _reversed(own, depth)
    return "".join(pieces)


def children_by_parent(rows: Sequence[Record]) -> dict[object, list[Record]]:
    """Group receipts by `parent_id`; None stands for a parent that is not among them."""
    known = {row["receipt_id"] for row in rows}
    children: dict[object, list[Record]] = {}
    for row in rows:
        parent = row["parent_id"] if row["parent_id"] in known else None
        children.setdefault(parent, []).append(row)
    return children


def _reversed(rows: Sequence[Record], depth: int) -> list[tuple[int, Record | str]]:
    """Return the items to push on a stack so that the first row is popped first."""
    return [(depth, row) for row in reversed(rows)]


def _receipt(row: Record) -> str:
    """Format the start of a receipt: a line that folds its children, and folded details."""
    line = f"{_status(row)}: <strong>{_action(row)}</strong> on {_text(row['receiver_id'])}"
    items = "".join(f"<li>{name}: {value}</li>" for name, value in _details(row))
    return (
        f"<details open><summary>{line}</summary>"
        f"<details><summary>{_execution(row)}</summary><ul>{items}</ul></details>"
    )


def _action(row: Record) -> str:
    """Return the method or the actions of a receipt."""
    if row["kind"] == "refund":
        return "refund"
    return _text(row["method_name"] or row["actions"])


def _status(row: Record) -> str:
    """Return the status of a receipt in words."""
    return _STATUSES.get(row["status"], _UNKNOWN)


def _details(row: Record) -> Iterable[tuple[str, str]]:
    """List what is known of a receipt, as names and HTML."""
    if row["error_message"] or row["error_kind"]:
        error = ": ".join(filter(None, (row["error_kind"], row["error_message"])))
        yield "error", _text(error, 2 * _MAX_TEXT)
    if row["args"] is not None:
        yield "arguments", f"<code>{_arguments(row['args'])}</code>"
    if row["deposit"]:
        yield "deposit", _text(near_text(int(row["deposit"])))
    if row["gas_burnt"] is not None:
        yield "gas burnt", _text(gas_text(int(row["gas_burnt"])))
    yield from _logs(row["logs"] or [])
    yield "from", _text(row["predecessor_id"])
    yield "receipt", f"<code>{_text(row['receipt_id'])}</code>"


def _arguments(args: object) -> str:
    """Format arguments as JSON, or as a number of bytes and the first 32."""
    if isinstance(args, bytes):
        unit = "byte" if len(args) == 1 else "bytes"
        return f"{len(args):,} {unit}: {_text(args[:32].hex(), 64)}"
    try:
        return _text(json.dumps(args, ensure_ascii=False, default=repr))
    except RecursionError:
        return _text(args)


def _execution(row: Record) -> str:
    """Return where a receipt ran, and the gas that it burnt."""
    block, shard, gas = row["block_height"], row["shard_id"], row["gas_burnt"]
    parts = [f"block {block}"] if block is not None else []
    parts += [f"shard {shard}"] if shard is not None else []
    parts += [f"{_tgas(gas)} Tgas"] if gas is not None else []
    return _text(", ".join(parts) or "details")


def _tgas(gas: int) -> str:
    """Format gas in Tgas with three decimals."""
    return f"{gas / 10**TGAS_DECIMALS:.3f}"


def _logs(logs: Sequence[str]) -> Iterable[tuple[str, str]]:
    """List the first log lines of a receipt."""
    for line in logs[:_MAX_LOGS]:
        yield "log", f"<code>{_text(line)}</code>"
    n_hidden = len(logs) - _MAX_LOGS
    if n_hidden > 0:
        yield "log", f"and {n_hidden:,} more line{'' if n_hidden == 1 else 's'}"


# Tables ---------------------------------------------------------------------------------


def _receipt_table(rows: Sequence[Record], edges: pd.DataFrame) -> str:
    """Format receipts as a table, in causal order."""
    waits = _dependencies(rows, edges)
    head = ("", "Action", "Receiver", "Depth", "Block", "Shard", "Tgas", "Waits for", "Result")
    body = [
        (
            _text(number),
            _action(row),
            _text(row["receiver_id"]),
            _cell(row["depth"]),
            _cell(row["block_height"]),
            _cell(row["shard_id"]),
            "" if row["gas_burnt"] is None else _tgas(row["gas_burnt"]),
            ", ".join(waits.get(row["receipt_id"], [])),
            _result(row),
        )
        for number, row in enumerate(rows, 1)
    ]
    return _table("Receipts in causal order; Waits for: row numbers", head, body)


def _dependencies(rows: Sequence[Record], edges: pd.DataFrame) -> dict[str, list[str]]:
    """Map each receipt to the numbers of the rows whose data it waits for."""
    number = {row["receipt_id"]: str(at) for at, row in enumerate(rows, 1)}
    numbers: dict[str, list[str]] = {}
    data = edges.loc[edges["kind"] == "data", ["parent_id", "child_id"]].drop_duplicates()
    for parent_id, child_id in data.values:
        if parent_id in number:
            numbers.setdefault(child_id, []).append(number[parent_id])
    return numbers


def _result(row: Record) -> str:
    """Return the status of a receipt, and its error."""
    error = row["error_message"] or row["error_kind"]
    return f"{_status(row)}: {_text(error)}" if error else _status(row)


def _cell(value: object) -> str:
    """Format a value, or nothing if it is missing."""
    return "" if value is None else _text(value)


def _number(value: object) -> str:
    """Format an integer grouped by thousands, and any other value as text."""
    return f"{value:,}" if isinstance(value, int) else _cell(value)


def _transfer_table(rows: Sequence[Record]) -> str:
    """Format transfers as a table."""
    head = ("", "Kind", "Asset", "From", "To", "Amount", "Memo")
    body = [
        (
            _text(number),
            _text(row["kind"]),
            _text(row["asset"]),
            _text(row["sender_id"] or "(minted)"),
            _text(row["receiver_id"] or "(burnt)"),
            _amount(row),
            _cell(row["memo"]),
        )
        for number, row in enumerate(rows, 1)
    ]
    return _table("Transfers; token amounts are in the smallest unit", head, body)


def _amount(row: Record) -> str:
    """Format an amount: in NEAR, or in a token's smallest unit."""
    if row["amount"] is None:
        return "unknown"
    amount = int(row["amount"])
    asset = row["asset"]
    is_near = asset == "near" or asset.startswith("gas_key")
    return _text(near_text(amount) if is_near else f"{amount:,}")


def _table(caption: str, head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Format a table with column and row headings; all texts are HTML already."""
    if not body:
        return "<p>none</p>"
    names = "".join(f'<th scope="col">{name or "#"}</th>' for name in head)
    lines = [
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for first, *cells in body
    ]
    return (
        f"<table><caption>{caption}</caption><thead><tr>{names}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table>"
    )
