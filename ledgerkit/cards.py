"""HTML cards for notebooks, without scripts, styles or a live kernel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import cut
from ledgerkit.frames import html_tables, human
from ledgerkit.units import (
    TGAS_DECIMALS,
    amount_text,
    count_text,
    gas_amount,
    near_amount,
    token_symbol,
)
from ledgerkit.visible_text import html_text

if TYPE_CHECKING:
    import pandas as pd

    Record = Mapping[str, Any]
    Format = Callable[[str, int, int | None], str]  # asset, amount and digits

MAX_ROWS = 200  # larger tables are slow to open and to read
_MAX_OPEN = 40  # receipts; a larger tree starts folded
_MAX_DEPTH = 30  # nested lists; deeper receipts are siblings
_MAX_LOGS = 10
_MAX_TEXT = 200  # characters
_LIST = '<ul style="padding-left:1.5em">'  # marimo shows lists without an indent
_END = "</details></li>"
UNKNOWN_STATUS = "? unknown"
STATUSES = {
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
    format_amount: Format,
    network: object = None,
) -> str:
    """
    Format a trace as HTML: headline, tree of receipts, explanation, receipts, transfers.

    All text is escaped, long texts are shortened, and rows after the 200th are counted. Amounts
    are rounded, with all digits as tooltips. `network` is the name of the network, if it is known.
    """
    rows = records(receipts)
    is_short = len(rows) <= _MAX_OPEN
    parts = [
        *_head(headline, network, 4 * _MAX_TEXT),
        _section("Receipts as a tree", len(receipts), _tree(rows), is_open=is_short),
        _folded("In words", "".join(_paragraphs(explanation)), is_open=not is_short),
        _section("Receipts as a table", len(receipts), _receipt_table(rows, edges)),
        _section("Transfers", len(transfers), _transfer_table(records(transfers), format_amount)),
    ]
    return card("ledgerkit-trace", parts)


def table_card(
    kind: str,
    *,
    headline: str,
    explanation: str,
    caption: str,
    rows: pd.DataFrame,
    network: object = None,
) -> str:
    """
    Format a short table as HTML, with a headline and an explanation.

    All text is escaped, and rows after the 200th are left out. `kind` is part of the CSS class.
    """
    body = [[_number(value) for value in record.values()] for record in records(rows)]
    table = _table(_text(caption), [_text(name) for name in rows.columns], body)
    parts = [*_head(headline, network), *_paragraphs(explanation), table]
    return card(f"ledgerkit-{kind}", parts)


def statement_card(
    *,
    headline: str,
    sentences: Iterable[str],
    verdict: str,
    totals: pd.DataFrame,
    gaps: pd.DataFrame,
    rewards: pd.DataFrame,
    network: object = None,
) -> str:
    """
    Format a statement as HTML: whether it adds up, its gaps, balances, causes and rewards.

    All text is escaped, and rows after the 200th are counted. Amounts are rounded, with all
    digits as tooltips; a gap is always in view.
    """
    assets = records(totals)
    parts = [
        *_head(headline, network),
        *(f"<p>{_text(sentence, 4 * _MAX_TEXT)}</p>" for sentence in sentences),
        f"<p><strong>{_text(verdict, 4 * _MAX_TEXT)}</strong></p>",
    ]
    if len(gaps):
        body = _gap_table(records(gaps), assets)
        parts.append(_section("Gaps", len(gaps), body, is_open=True))
    parts += [
        _section("Balances", len(totals), _total_table(assets), is_open=True),
        _section("Causes", len(causes := _causes(assets)), _cause_table(causes)),
    ]
    if len(rewards):
        parts.append(_section("Rewards", len(rewards), _reward_table(records(rewards))))
    return card("ledgerkit-statement", parts)


def card(css_class: str, parts: Iterable[str]) -> str:
    return f'<div class="{css_class} {html_tables.NO_MATH}">{"".join(parts)}</div>'


def _head(headline: str, network: object, limit: int = _MAX_TEXT) -> tuple[str, str]:
    return f"<h3>{_text(headline, limit)}</h3>", network_line(network)


def network_line(network: object) -> str:
    """Format the name of a network as a paragraph; nothing if it is unknown."""
    return "" if network is None else f"<p>network: <strong>{_text(network)}</strong></p>"


def records(frame: pd.DataFrame, limit: int = MAX_ROWS) -> list[Record]:
    """Return the first rows of a frame as dicts, with None for missing values."""
    head = frame.head(limit).astype(object)
    rows: list[Any] = head.where(head.notna(), None).to_dict("records")
    return rows


def _text(value: object, limit: int = _MAX_TEXT) -> str:
    """Format a value as one short, escaped line, or "unknown" for None."""
    return "unknown" if value is None else html_text(cut(value, limit))


def _paragraphs(explanation: str) -> Iterable[str]:
    for paragraph in explanation.split("\n\n"):
        lines = [_text(line, 4 * _MAX_TEXT) for line in paragraph.splitlines() if line.strip()]
        if lines:
            yield f"<p>{'<br>'.join(lines)}</p>"


def _section(name: str, n_rows: int, body: str, *, is_open: bool = False) -> str:
    n_hidden = n_rows - MAX_ROWS
    hidden = f"<p>and {n_hidden:,} more in the frame</p>" if n_hidden > 0 else ""
    return _folded(name, f"{body}{hidden}", f" ({n_rows:,})", is_open=is_open)


def _folded(name: str, body: str, count: str = "", *, is_open: bool = False) -> str:
    title = f"<summary><strong>{name}</strong>{count}</summary>"
    return f"<details{' open' if is_open else ''}>{title}{body}</details>"


# Receipts as a tree ---------------------------------------------------------------------


def _tree(rows: Sequence[Record]) -> str:
    if not rows:
        return "<p>none</p>"
    children = _children_by_parent(rows)
    pieces = [_LIST]
    # A stack of receipts with their depth, and of closing tags: traces can be deeper than Python's
    # recursion limit.
    stack: list[tuple[int, Record | str]] = [
        (0, "</ul>"),
        *_stack_entries(children.get(None, []), 0),
    ]
    while stack:
        depth, item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        pieces.append(f"<li>{_receipt(item)}")
        nested = children.pop(item["receipt_id"], [])
        if nested and depth < _MAX_DEPTH:
            pieces.append(_LIST)
            stack += [(depth, f"</ul>{_END}"), *_stack_entries(nested, depth + 1)]
        else:
            pieces.append(_END)
            stack += _stack_entries(nested, depth)
    return "".join(pieces)


def _children_by_parent(rows: Sequence[Record]) -> dict[object, list[Record]]:
    """Group receipts by `parent_id`, or by None if the parent is not among them."""
    receipt_ids = {row["receipt_id"] for row in rows}
    children: dict[object, list[Record]] = {}
    for row in rows:
        parent = row["parent_id"] if row["parent_id"] in receipt_ids else None
        children.setdefault(parent, []).append(row)
    return children


def _stack_entries(rows: Sequence[Record], depth: int) -> list[tuple[int, Record | str]]:
    return [(depth, row) for row in reversed(rows)]


def _receipt(row: Record) -> str:
    line = f"{_status(row)}: <strong>{_action(row)}</strong> on {_text(row['receiver_id'])}"
    items = "".join(f"<li>{name}: {value}</li>" for name, value in _details(row))
    return (
        f"<details open><summary>{line}</summary>"
        f"<details><summary>{_execution(row)}</summary>{_LIST}{items}</ul></details>"
    )


def _action(row: Record) -> str:
    if row["kind"] == "refund":
        return "refund"
    return _text(row["method_name"] or row["actions"])


def _status(row: Record) -> str:
    return STATUSES.get(row["status"], UNKNOWN_STATUS)


def _details(row: Record) -> Iterable[tuple[str, str]]:
    if row["error_message"] or row["error_kind"]:
        error = ": ".join(filter(None, (row["error_kind"], row["error_message"])))
        yield "error", _text(error, 2 * _MAX_TEXT)
    if row["args"] is not None:
        yield "arguments", f"<code>{_arguments(row['args'])}</code>"
    if row["deposit"]:
        yield "deposit", _rounded(near_amount, int(row["deposit"]))
    if row["gas_burnt"] is not None:
        yield "gas burnt", _rounded(gas_amount, int(row["gas_burnt"]))
    yield from _logs(row["logs"] or [])
    yield "from", _text(row["predecessor_id"])
    yield "receipt", f"<code>{_text(row['receipt_id'])}</code>"


def _arguments(args: object) -> str:
    if isinstance(args, bytes):
        return f"{count_text(len(args), 'byte')}: {_text(args[:32].hex(), 64)}"
    try:
        return _text(json.dumps(args, ensure_ascii=False, default=repr))
    except RecursionError:
        return _text(args)


def _execution(row: Record) -> str:
    block, shard, gas = row["block_height"], row["shard_id"], row["gas_burnt"]
    parts = [f"block {block}"] if block is not None else []
    parts += [f"shard {shard}"] if shard is not None else []
    parts += [gas_amount(gas)] if gas is not None else []
    return _text(", ".join(parts) or "details")


def _logs(logs: Sequence[str]) -> Iterable[tuple[str, str]]:
    for line in logs[:_MAX_LOGS]:
        yield "log", f"<code>{_text(line)}</code>"
    n_hidden = len(logs) - _MAX_LOGS
    if n_hidden > 0:
        yield "log", f"and {count_text(n_hidden, 'more line')}"


# Tables ---------------------------------------------------------------------------------


def _receipt_table(rows: Sequence[Record], edges: pd.DataFrame) -> str:
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
            _tgas(row["gas_burnt"]),
            ", ".join(waits.get(row["receipt_id"], [])),
            _result(row),
        )
        for number, row in enumerate(rows, 1)
    ]
    return _table("Receipts in causal order; Waits for: row numbers", head, body)


def _tgas(gas: Any) -> str:
    return "" if gas is None else _rounded(amount_text, gas, TGAS_DECIMALS, "")


def _dependencies(rows: Sequence[Record], edges: pd.DataFrame) -> dict[str, list[str]]:
    """Map each receipt to the numbers of the rows whose data it waits for."""
    number = {row["receipt_id"]: str(position) for position, row in enumerate(rows, 1)}
    numbers: dict[str, list[str]] = {}
    data = edges.loc[edges["kind"] == "data", ["parent_id", "child_id"]].drop_duplicates()
    for parent_id, child_id in data.values:
        if parent_id in number:
            numbers.setdefault(child_id, []).append(number[parent_id])
    return numbers


def _result(row: Record) -> str:
    error = row["error_message"] or row["error_kind"]
    return f"{_status(row)}: {_text(error)}" if error else _status(row)


def _cell(value: object) -> str:
    return "" if value is None else _text(value)


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else _cell(value)


def _transfer_table(rows: Sequence[Record], format_amount: Format) -> str:
    head = ("", "Kind", "Asset", "From", "To", "Amount", "Memo")
    body = [
        (
            _text(number),
            _text(row["kind"]),
            _text(row["asset"]),
            _text(row["sender_id"] or "(minted)"),
            _text(row["receiver_id"] or "(burnt)"),
            _rounded_or_unknown(row["amount"], partial(format_amount, row["asset"])),
            _cell(row["memo"]),
        )
        for number, row in enumerate(rows, 1)
    ]
    return _table("Transfers", head, body)


# Statements -----------------------------------------------------------------------------


def asset_amount(row: Record, amount: Any, digits: int | None = 2) -> str:
    if amount is None:
        return "unknown"
    unit: human.TokenUnit = None
    if row["decimals"] is not None:
        is_near = human.is_near(row["asset"])
        unit = human.NEAR if is_near else (int(row["decimals"]), token_symbol(row["symbol"]))
    return human.unit_text(int(amount), unit, digits)


def gap_asset(gap: Record, assets: Sequence[Record]) -> Record:
    """Find the row of a gap's asset. If there is none, the decimals are unknown."""
    totals = (row for row in assets if row["asset"] == gap["asset"])
    return next(totals, {**gap, "decimals": None})


def _total_table(assets: Sequence[Record]) -> str:
    head = ("Asset", "Opening", "In", "Out", "of it fees", "Closing", "Missing", "Entries")
    names = ("opening", "inflow", "outflow", "fees", "closing", "missing")
    body = [
        (
            _text(row["asset"]),
            *(_rounded(asset_amount, row, row[name]) for name in names),
            _number(row["n_entries"]),
        )
        for row in assets
    ]
    return _table("Missing: closing - opening - in - out", head, body)


def _causes(assets: Sequence[Record]) -> list[tuple[Record, str, int]]:
    return [
        (row, cause, amount)
        for row in assets
        for flow in ("in_by_cause", "out_by_cause")
        for cause, amount in row[flow].items()
    ]


def _cause_table(causes: Sequence[tuple[Record, str, int]]) -> str:
    body = [
        (_text(row["asset"]), _text(cause.replace("_", " ")), _rounded(asset_amount, row, amount))
        for row, cause, amount in causes[:MAX_ROWS]
    ]
    return _table("Sums by cause", ("Asset", "Cause", "Change"), body)


def _gap_table(gaps: Sequence[Record], assets: Sequence[Record]) -> str:
    head = ("Asset", "After block", "Up to block", "Missing", "Note")
    body = [
        (
            _text(gap["asset"]),
            _text(gap["start_height"]),
            _text(gap["stop_height"]),
            _rounded(asset_amount, gap_asset(gap, assets), gap["missing"]),
            _cell(gap["note"]),
        )
        for gap in gaps
    ]
    return _table("Changes of balances that no entry explains", head, body)


def _reward_table(rewards: Sequence[Record]) -> str:
    head = ("Time", "Reward", "APY", "Pool", "Stake after it")
    body = [
        (
            _text(human.plain_text(row["time"])),
            _rounded_or_unknown(row["reward"], near_amount),
            "" if row["apy"] is None else f"{row['apy']:.2%}",
            _text(row["pool_id"]),
            _rounded_or_unknown(row["total_after"], near_amount),
        )
        for row in rewards
    ]
    return _table("Growth of stakes, without deposits and withdrawals", head, body)


def _rounded_or_unknown(amount: Any, format_number: Callable[[int, int | None], str]) -> str:
    return "unknown" if amount is None else _rounded(format_number, int(amount))


def _rounded(format_number: Callable[..., str], *args: Any) -> str:
    """Format an amount with two decimals; all its digits are the tooltip."""
    short, full = format_number(*args, 2), format_number(*args, None)
    return _text(short) if short == full else f'<span title="{_text(full)}">{_text(short)}</span>'


def _table(caption: str, head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Format a table with column and row headings; all texts are HTML already."""
    if not body:
        return "<p>none</p>"
    names = [html_tables.heading(name or "#") for name in head]
    # On a narrow page, the cells of a row are below each other with these names.
    labels = [f' data-label="{name}"' for name in head[1:]]
    rows = (html_tables.row(map(html_tables.cell, cells, labels), name=n) for n, *cells in body)
    return html_tables.table(rows, head=names, caption=caption)
