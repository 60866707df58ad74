"""Cards for notebooks: HTML that needs no script, no style and no live kernel."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any
from unicodedata import category

from ledgerkit.errors import cut
from ledgerkit.units import TGAS_DECIMALS, gas_text, near_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    Record = Mapping[str, Any]

_MOST_ROWS = 200  # a page with more is slow to open and to read
_SHORT = 40  # a longer tree begins folded
_DEEPEST = 30  # lists within lists; below, receipts stand side by side
_MOST_LOGS = 10
_LONG = 200
_MOST_MARKS = 4  # on one letter, as no language has
_END = "</details></li>"
_WORDS = {
    "success_value": "✓ succeeded",
    "success_receipt_id": "✓ succeeded, left its result to another receipt",
    "failure": "✗ failed",
    "not_executed": "… not run yet",
    "unknown": "? not known",
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
    Write a trace as HTML.

    Parameters
    ----------
    headline
        One line: which transaction, and how it ended.
    explanation
        Plain text; an empty line parts paragraphs.
    receipts
        Typed as ``schema("receipts")``.
    edges
        Typed as ``schema("edges")``.
    transfers
        Typed as ``schema("transfers")``.

    Returns
    -------
    html
        A fragment: headline, explanation, the receipts as a tree that folds and as a table,
        the movements as a table. All text is escaped, long texts are shortened, and beyond
        200 rows the rest is counted. Where folding is not supported everything is open.
    """
    rows = _records(receipts)
    is_short = len(rows) <= _SHORT
    parts = [
        f"<h3>{_text(headline)}</h3>",
        *_paragraphs(explanation),
        _section("Receipts as a tree", len(receipts), _tree(rows), is_open=is_short),
        _section("Receipts as a table", len(receipts), _receipt_table(rows, edges)),
        _section("What moved", len(transfers), _transfer_table(_records(transfers))),
    ]
    return _card("ledgerkit-trace", parts)


def table_card(
    kind: str, *, headline: str, explanation: str, caption: str, rows: pd.DataFrame
) -> str:
    """
    Write a short table as HTML, with what there is to say about it.

    Parameters
    ----------
    kind
        What it is a card of, for its class.
    headline
        One line: what it is.
    explanation
        Plain text; an empty line parts paragraphs.
    caption
        One line: what a row of the table is.
    rows
        A frame of texts and numbers.

    Returns
    -------
    html
        A fragment; all text is escaped, and rows beyond 200 are left out.
    """
    body = [[_number(value) for value in record.values()] for record in _records(rows)]
    table = _table(_text(caption), [_text(name) for name in rows.columns], body)
    parts = [f"<h3>{_text(headline)}</h3>", *_paragraphs(explanation), table]
    return _card(f"ledgerkit-{kind}", parts)


def _card(name: str, parts: Iterable[str]) -> str:
    """Wrap a card's parts; the class names keep formulas out: a token may be called $A$."""
    return f'<div class="{name} tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


def _records(frame: pd.DataFrame) -> list[Record]:
    """Take the first rows of a frame as Python values, None where one is missing."""
    few = frame.head(_MOST_ROWS).astype(object)
    records: list[Any] = few.where(few.notna(), None).to_dict("records")
    return records


def _text(value: object, limit: int = _LONG) -> str:
    """Escape a text of the chain: one line, shortened, of visible characters; say what is none."""
    if value is None:
        return "not told"
    return escape(visible(cut(value, limit)))


def visible(line: str) -> str:
    """
    Make a line of which each letter can be seen, and none covers what is around it.

    Parameters
    ----------
    line
        Any text.

    Returns
    -------
    line
        With U+FFFD in the place of each letter that does not print, such as a change of
        direction, and of the marks on one letter after the fourth.
    """
    if line.isascii() and line.isprintable():
        return line
    found: list[str] = []
    marks = 0
    for char in line:
        marks = marks + 1 if category(char).startswith("M") else 0
        if marks <= _MOST_MARKS:
            found.append(char if char.isprintable() else "\ufffd")
        elif marks == _MOST_MARKS + 1:
            found.append("\ufffd")
    return "".join(found)


def _paragraphs(explanation: str) -> Iterable[str]:
    """Write paragraphs; the lines of one stay lines."""
    for paragraph in explanation.split("\n\n"):
        lines = [_text(line, 4 * _LONG) for line in paragraph.splitlines() if line.strip()]
        if lines:
            yield f"<p>{'<br>'.join(lines)}</p>"


def _section(name: str, n_rows: int, body: str, *, is_open: bool = False) -> str:
    """Write a part that folds; the parts that are long begin folded."""
    more = n_rows - _MOST_ROWS
    left_out = f"<p>and {more:,} more, which the frame has</p>" if more > 0 else ""
    opened = " open" if is_open else ""
    title = f"<summary><strong>{name}</strong> ({n_rows:,})</summary>"
    return f"<details{opened}>{title}{body}{left_out}</details>"


def _tree(rows: Sequence[Record]) -> str:
    """Write receipts as lists within lists, each with what is known of it inside."""
    if not rows:
        return "<p>none</p>"
    known = {row["receipt_id"] for row in rows}
    below: dict[object, list[Record]] = {}
    for row in rows:
        below.setdefault(row["parent_id"] if row["parent_id"] in known else None, []).append(row)
    pieces: list[str] = []
    # What remains to be written, last first: closing tags and receipts with their depth.
    waiting: list[tuple[int, Record | str]] = [(0, "</ul>"), *_turned(below.get(None, []), 0)]
    pieces.append("<ul>")
    while waiting:
        depth, item = waiting.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        pieces.append(f"<li>{_receipt(item)}")
        made = below.pop(item["receipt_id"], [])
        if not made:
            pieces.append(_END)
        elif depth < _DEEPEST:
            pieces.append("<ul>")
            waiting += [(depth, f"</ul>{_END}"), *_turned(made, depth + 1)]
        else:
            pieces.append(_END)
            waiting += _turned(made, depth)
    return "".join(pieces)


def _turned(rows: Sequence[Record], depth: int) -> list[tuple[int, Record | str]]:
    """Put rows on a stack so that the first comes off first."""
    return [(depth, row) for row in reversed(rows)]


def _receipt(row: Record) -> str:
    """Begin one receipt: a line that folds all below it, and what is known, folded."""
    line = f"{_status(row)}: <strong>{_what(row)}</strong> of {_text(row['receiver_id'])}"
    items = "".join(f"<li>{name}: {told}</li>" for name, told in _facts(row))
    return (
        f"<details open><summary>{line}</summary>"
        f"<details><summary>{_ran(row)}</summary><ul>{items}</ul></details>"
    )


def _what(row: Record) -> str:
    """Say what a receipt asks for."""
    if row["kind"] == "refund":
        return "refund"
    return _text(row["method_name"] or row["actions"])


def _status(row: Record) -> str:
    """Say how a receipt ended."""
    return _WORDS.get(row["status"], "? not known")


def _facts(row: Record) -> Iterable[tuple[str, str]]:
    """Tell what is known of a receipt, with names for it."""
    if row["error_message"] or row["error_kind"]:
        told = ": ".join(filter(None, (row["error_kind"], row["error_message"])))
        yield "why it failed", _text(told, 2 * _LONG)
    if row["args"] is not None:
        yield "arguments", f"<code>{_arguments(row['args'])}</code>"
    if row["deposit"]:
        yield "deposit", _text(near_text(int(row["deposit"])))
    if row["gas_burnt"] is not None:
        yield "gas burnt", _text(gas_text(int(row["gas_burnt"])))
    yield from _logged(row["logs"] or [])
    yield "from", _text(row["predecessor_id"])
    yield "receipt", f"<code>{_text(row['receipt_id'])}</code>"


def _arguments(args: object) -> str:
    """Write arguments as JSON, or count their bytes."""
    if isinstance(args, bytes):
        unit = "byte" if len(args) == 1 else "bytes"
        return f"{len(args):,} {unit}: {_text(args[:32].hex(), 64)}"
    try:
        return _text(json.dumps(args, ensure_ascii=False, default=repr))
    except RecursionError:  # levels upon levels
        return _text(args)


def _ran(row: Record) -> str:
    """Say where a receipt ran, and what it burnt."""
    block, shard, gas = row["block_height"], row["shard_id"], row["gas_burnt"]
    told = [f"block {block}"] if block is not None else []
    told += [f"shard {shard}"] if shard is not None else []
    told += [f"{_tgas(gas)} Tgas"] if gas is not None else []
    return _text(", ".join(told) or "more")


def _tgas(gas: int) -> str:
    """Write gas in Tgas, rounded."""
    return f"{gas / 10**TGAS_DECIMALS:.3f}"


def _logged(logs: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Tell what a receipt logged, the first lines of it."""
    for line in logs[:_MOST_LOGS]:
        yield "log", f"<code>{_text(line)}</code>"
    if len(logs) > _MOST_LOGS:
        rest = len(logs) - _MOST_LOGS
        yield "log", f"and {rest:,} more line{'' if rest == 1 else 's'}"


def _receipt_table(rows: Sequence[Record], edges: pd.DataFrame) -> str:
    """Write receipts as a table, in the order in which they ran."""
    waits = _waits(rows, edges)
    head = ("", "What", "Where", "Depth", "Block", "Shard", "Tgas burnt", "Waits for", "Result")
    body = [
        (
            _text(place),
            _what(row),
            _text(row["receiver_id"]),
            _cell(row["depth"]),
            _cell(row["block_height"]),
            _cell(row["shard_id"]),
            "" if row["gas_burnt"] is None else _tgas(row["gas_burnt"]),
            ", ".join(waits.get(row["receipt_id"], [])),
            _result(row),
        )
        for place, row in enumerate(rows, 1)
    ]
    return _table("Receipts in causal order; numbers name rows", head, body)


def _waits(rows: Sequence[Record], edges: pd.DataFrame) -> dict[str, list[str]]:
    """List for each receipt the rows that it waits for."""
    place = {row["receipt_id"]: str(at) for at, row in enumerate(rows, 1)}
    waits: dict[str, list[str]] = {}
    data = edges.loc[edges["kind"] == "data", ["parent_id", "child_id"]].drop_duplicates()
    for parent_id, child_id in data.values:
        if parent_id in place:
            waits.setdefault(child_id, []).append(place[parent_id])
    return waits


def _result(row: Record) -> str:
    """Say how a receipt ended, and why it failed."""
    why = row["error_message"] or row["error_kind"]
    return f"{_status(row)}: {_text(why)}" if why else _status(row)


def _cell(value: object) -> str:
    """Write a number, or nothing where it is missing."""
    return "" if value is None else _text(value)


def _number(value: object) -> str:
    """Write a number with its thousands apart, or a text."""
    return f"{value:,}" if isinstance(value, int) else _cell(value)


def _transfer_table(rows: Sequence[Record]) -> str:
    """Write movements as a table."""
    head = ("", "Kind", "Asset", "From", "To", "Amount", "Memo")
    body = [
        (
            _text(place),
            _text(row["kind"]),
            _text(row["asset"]),
            _text(row["sender_id"] or "(minted)"),
            _text(row["receiver_id"] or "(burnt)"),
            _amount(row),
            _cell(row["memo"]),
        )
        for place, row in enumerate(rows, 1)
    ]
    return _table("What moved, amounts of tokens in their smallest unit", head, body)


def _amount(row: Record) -> str:
    """Write an amount, NEAR as people read it."""
    if row["amount"] is None:
        return "not told"
    units = int(row["amount"])
    return _text(near_text(units) if row["asset"] == "near" else f"{units:,}")


def _table(caption: str, head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Write a table of which each column and row has a heading; cells are HTML already."""
    if not body:
        return "<p>none</p>"
    names = "".join(f'<th scope="col">{name or "#"}</th>' for name in head)
    lines = [
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
        for first, *rest in body
    ]
    return (
        f"<table><caption>{caption}</caption><thead><tr>{names}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table>"
    )
