"""A panel about one transaction: its verdict, explanation, tree, timeline and receipts."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit import units
from ledgerkit.cards import children_by_parent
from ledgerkit.verbs import transactions
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Page, Panel, PanelResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ledgerkit.client import Ledger
    from ledgerkit.tracing.trace import Trace

_MAX_LINES = 300
_MAX_BARS = 80  # of a readable timeline
_MAX_INDENT = 20  # levels
_VERDICT_COLOURS = {"fully_succeeded": 2, "failed": 4, "succeeded_with_failed_receipts": 1}


class TransactionExplorer(Panel):
    """
    The verdict, explanation, tree, timeline and receipts of a transaction.

    Parameters
    ----------
    tx_hash, sender
        The initial values of the fields: the hash, and the account that signed.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    """

    title = "Transaction"
    action = "Trace"
    tooltip = "Look up the receipts of this transaction"

    def __init__(
        self, tx_hash: str = "", sender: str = "", *, ledger: Ledger | None = None
    ) -> None:
        fields = {
            "tx_hash": _panel.text_box("Transaction", tx_hash, "transaction hash"),
            "sender": _panel.text_box("Signer", sender, "alice.near"),
        }
        super().__init__(fields, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> PanelResult:
        """Read the trace of the transaction."""
        trace = transactions.trace(values["tx_hash"], values["sender"], ledger=ledger)
        receipts = trace.receipts
        pages = [
            Page("Summary", _summary(trace)),
            Page("Tree", receipt_tree(receipts)),
            *_timeline(trace),
            Page("Receipts", _html.table(receipts, slim=True), receipts),
        ]
        count = units.count_text(len(receipts), "receipt")
        sentence = f"{trace.verdict} on {ledger.network.name}: {count}."
        frames = {"receipts": receipts, "edges": trace.edges}
        return PanelResult(sentence, receipts, tuple(pages), frames, trace)


def _summary(trace: Trace) -> str:
    """Format the verdict and the explanation."""
    colour = _html.COLOURS[_VERDICT_COLOURS.get(trace.verdict, 3)]
    return f"<p>{_html.badge(trace.verdict, colour)}</p>{_html.prose(trace.explain())}"


def receipt_tree(receipts: pd.DataFrame) -> str:
    """Format receipts as a list of at most 300 lines, indented by depth."""
    rows = _tree_order(_html.records(receipts))
    lines = [_receipt_line(row) for row in rows[:_MAX_LINES]]
    hidden = _html.hidden_count(len(rows) - len(lines), "more receipt")
    return f'<ul class="tree">{"".join(lines)}</ul>{hidden}'


def _tree_order(rows: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
    """Order receipts so that each is followed by its descendants."""
    children = children_by_parent(rows)
    order, stack = [], children.get(None, [])[::-1]
    while stack:
        row = stack.pop()
        order.append(row)
        stack += children.pop(row["receipt_id"], [])[::-1]
    return order


def _receipt_line(row: Mapping[str, Any]) -> str:
    """Format one receipt: sender, receiver, action, block and status."""
    depth = 0 if pd.isna(row["depth"]) else int(row["depth"])
    has_failed = row["status"] == "failure"
    colour = _html.COLOURS[4 if has_failed else 2]
    style = f"margin-left:{2 * min(depth, _MAX_INDENT)}em;border-color:{colour}"
    status = _html.text(row["status"])
    if has_failed:
        status = f"<strong>failed: {_html.text(row['error_message'], 300)}</strong>"
    path = f"{_html.text(row['predecessor_id'])} → {_html.text(row['receiver_id'])}"
    height = row["block_height"]
    block = "" if pd.isna(height) else f" in block {height}"
    return (
        f'<li style="{style}">{"↳ " if depth else ""}{path}: '
        f"<code>{_html.text(_action(row))}</code>{block}, {status}</li>"
    )


def _action(row: Mapping[str, Any]) -> str:
    """Return the method or the actions of a receipt."""
    if row["kind"] == "refund":
        deposit = row["deposit"]
        return "refund" if pd.isna(deposit) else f"refund of {units.near_text(deposit)}"
    if isinstance(row["method_name"], str):
        return f"{row['method_name']}()"
    actions = row["actions"]
    return ", ".join(map(str, actions)) if isinstance(actions, list) else str(actions)


def _timeline(trace: Trace) -> Iterator[Page]:
    """Draw the timeline, unless it has no bars or too many to be readable."""
    if 0 < len(trace.receipts) <= _MAX_BARS:
        height = 2.0 + 0.4 * len(trace.receipts)
        png = draw_png(lambda ax: trace.plot("timeline", ax=ax), height)
        count = units.count_text(len(trace.receipts), "receipt")
        alt = f"Timeline of {count} by shard and block"
        yield Page("Timeline", _html.picture(png, alt), is_picture=True)


def draw_png(draw: Callable[[Any], object], height: float = 5.0) -> bytes:
    """Draw a plot as PNG, without pyplot, which is not thread-safe."""
    figure_class = _panel.widgets_library("matplotlib.figure").Figure
    figure = figure_class(figsize=(10, height), layout="constrained")
    draw(figure.subplots())
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    return buffer.getvalue()
