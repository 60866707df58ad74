"""The panel about one transaction: how it ended, its story, its tree, its receipts."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit import units
from ledgerkit.verbs import transactions
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Found, Panel, Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ledgerkit.client import Ledger
    from ledgerkit.tracing.trace import Trace

_MOST_LINES = 300
_MOST_BARS = 80
_DEEPEST = 20  # levels that are still indented
_ENDED = {"fully_succeeded": 2, "failed": 4, "succeeded_with_failed_receipts": 1}


class TransactionExplorer(Panel):
    """
    What a transaction set off: its verdict, an explanation, its tree and its receipts.

    Parameters
    ----------
    tx_hash, sender
        The transaction to begin with, and who signed it; `press` asks.
    ledger
        The ledger to ask; None is the session's default at the time of the question.
    """

    title = "Transaction"
    action = "Trace"
    tooltip = "Read the receipt tree of this transaction"

    def __init__(
        self, tx_hash: str = "", sender: str = "", *, ledger: Ledger | None = None
    ) -> None:
        fields = {
            "tx_hash": _panel.text_box("Transaction", tx_hash, "its hash"),
            "sender": _panel.text_box("Signed by", sender, "alice.near"),
        }
        super().__init__(fields, ledger)

    def _find(self, asked: dict[str, Any], ledger: Ledger) -> Found:
        """Trace the transaction."""
        trace = transactions.trace(asked["tx_hash"], asked["sender"], ledger=ledger)
        receipts = trace.receipts
        parts = [
            Part("What happened", _story(trace)),
            Part("Tree", tree(receipts)),
            *_timeline(trace),
            Part("Receipts", _html.table(receipts, slim=True), receipts),
        ]
        counted = _html.counted(len(receipts), "receipt")
        sentence = f"{trace.verdict} on {ledger.network.name}, in {counted}."
        frames = {"receipts": receipts, "edges": trace.edges}
        return Found(sentence, receipts, tuple(parts), frames, trace)


def _story(trace: Trace) -> str:
    """Write the verdict and the story."""
    colour = _html.COLOURS[_ENDED.get(trace.verdict, 3)]
    return f"<p>{_html.badge(trace.verdict, colour)}</p>{_html.prose(trace.explain())}"


def tree(receipts: pd.DataFrame) -> str:
    """
    Write receipts as a tree, each below the one that made it.

    Parameters
    ----------
    receipts
        Of one transaction, typed as `schema("receipts")`.

    Returns
    -------
    html
        A list; a line a receipt, moved to the right by its depth.
    """
    rows = _html.records(receipts)
    lines = [_line(rows[at]) for at in _in_tree_order(rows)[:_MOST_LINES]]
    rest = len(rows) - len(lines)
    more = f"<p>… and {_html.counted(rest, 'more receipt')}</p>" if rest > 0 else ""
    return f'<ul class="tree">{"".join(lines)}</ul>{more}'


def _in_tree_order(rows: list[dict[str, Any]]) -> list[int]:
    """Order receipts so that what one made follows it, however deep."""
    children: dict[str | None, list[int]] = {}
    known = {row["receipt_id"] for row in rows}
    for at, row in enumerate(rows):
        parent = row["parent_id"] if row["parent_id"] in known else None
        children.setdefault(parent, []).append(at)
    order, open_rows = [], children.get(None, [])[::-1]
    while open_rows:
        at = open_rows.pop()
        order.append(at)
        open_rows += children.pop(rows[at]["receipt_id"], [])[::-1]
    return order


def _line(row: dict[str, Any]) -> str:
    """Write one receipt: from whom to whom, what, where, and how it ended."""
    depth = 0 if pd.isna(row["depth"]) else int(row["depth"])
    failed = row["status"] == "failure"
    colour = _html.COLOURS[4 if failed else 2]
    style = f"margin-left:{2 * min(depth, _DEEPEST)}em;border-color:{colour}"
    ended = _html.text(row["status"])
    if failed:
        ended = f"<strong>failed: {_html.text(row['error_message'], 300)}</strong>"
    path = f"{_html.text(row['predecessor_id'])} → {_html.text(row['receiver_id'])}"
    height = row["block_height"]
    place = "" if pd.isna(height) else f" in block {height}"
    return (
        f'<li style="{style}">{"↳ " if depth else ""}{path}: '
        f"<code>{_html.text(_what(row))}</code>{place}, {ended}</li>"
    )


def _what(row: dict[str, Any]) -> str:
    """Say what a receipt was to do."""
    if row["kind"] == "refund":
        deposit = row["deposit"]
        return "refund" if pd.isna(deposit) else f"refund of {units.near_text(deposit)}"
    if isinstance(row["method_name"], str):
        return f"{row['method_name']}()"
    found = row["actions"]
    return ", ".join(map(str, found)) if isinstance(found, list) else str(found)


def _timeline(trace: Trace) -> Iterator[Part]:
    """Draw the timeline, where its bars can still be told apart."""
    if 0 < len(trace.receipts) <= _MOST_BARS:
        png = drawn(lambda ax: trace.plot("timeline", ax=ax), 2.0 + 0.4 * len(trace.receipts))
        counted = _html.counted(len(trace.receipts), "receipt")
        alt = f"When and where the {counted} ran, by shard and block"
        yield Part("Timeline", _html.picture(png, alt), is_picture=True)


def drawn(draw: Callable[[Any], object], height: float = 5.0) -> bytes:
    """
    Draw on a figure of its own, which a thread may do.

    Parameters
    ----------
    draw
        Draws on the Axes that it is given.
    height
        Of the figure, in inches.

    Returns
    -------
    png
        The picture.
    """
    figure = _panel.library("matplotlib.figure").Figure(figsize=(10, height), layout="constrained")
    draw(figure.subplots())
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    return buffer.getvalue()
