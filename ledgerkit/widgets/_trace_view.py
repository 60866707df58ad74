"""A trace as an interactive view: the receipt tree, a receipt's details, timeline, balances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from ledgerkit.cards import STATUSES, UNKNOWN_STATUS
from ledgerkit.errors import InvalidRequestError, cut
from ledgerkit.tracing.transfers import balance_change_columns
from ledgerkit.units import count_text, gas_amount
from ledgerkit.widgets._blocks import Block
from ledgerkit.widgets._receipt_details import ReceiptDetails, change_value, id_value

if TYPE_CHECKING:
    from ledgerkit.tracing.trace import Trace
    from ledgerkit.tracing.transaction_data import TransactionData

    Json = dict[str, Any]

_PAGE = 100  # balance changes
VERDICTS = {
    "fully_succeeded": ("✓", "succeeded", "ok"),
    "succeeded_with_failed_receipts": ("!", "succeeded, but receipts failed", "warn"),
    "failed": ("✗", "failed", "bad"),
    "pending": ("…", "not finished yet", "muted"),
    "dropped": ("✗", "dropped: never included in a block", "bad"),
    "unknown": ("?", "result unknown", "muted"),
}
_TONES = {"failure": "bad", "not_executed": "warn", "unknown": "muted"}


class TraceView(Block):
    """
    A trace, whose receipts are described when they are selected.

    The first selection is `receipt_id`, or the first receipt that failed, or the root.
    """

    kind: ClassVar[str] = "trace"

    def __init__(self, trace: Trace, receipt_id: str | None = None) -> None:
        self.trace = trace
        self._receipt_id = receipt_id

    def describe(self) -> dict[str, Any]:
        tx, names = self._tx, [*STATUSES, "unknown"]
        receivers, shards = tx.column("receiver_id"), tx.column("shard_id")
        headline, *paragraphs = self.trace.explain().split("\n\n")
        selected, statuses = self._first_selected(), tx.column("status")
        n_failed, count = statuses.count("failure"), count_text(len(tx.tree), "receipt")
        return {
            "verdict": VERDICTS[self.trace.verdict],
            "transaction": id_value("transaction", self.trace.tx_hash),
            "network": cut(self.trace.receipts.attrs.get("network", "an unknown network")),
            "headline": headline,
            "explanation": paragraphs,
            "summary": f"{count}, {n_failed:,} failed" if n_failed else count,
            "statuses": [
                (*STATUSES.get(name, UNKNOWN_STATUS).split(" ", 1), _TONES.get(name, "ok"))
                for name in names
            ],
            "status": [names.index(name) for name in statuses],
            "parent": tx.tree.parents,
            "label": _coded(self._labels),
            "receiver": _coded("an unknown account" if i is None else cut(i) for i in receivers),
            "gas": ["" if gas is None else gas_amount(gas) for gas in tx.column("gas_burnt")],
            "shard": _coded("shard unknown" if i is None else f"shard {i}" for i in shards),
            "timeline": self._timeline(),
            "moved": self._changes_page(0),
            "selected": selected,
            "details": None if selected is None else self._details.describe(selected),
        }

    def handle(self, message: Mapping[str, Any]) -> dict[str, Any]:
        action, position = message.get("do"), message.get("at")
        actions = {
            "receipt": (self._details.describe, len(self._labels)),
            "moved": (self._changes_page, len(self._changes)),
        }
        if not isinstance(action, str) or action not in actions:
            raise InvalidRequestError.refuse("do", action, "'receipt' or 'moved'")
        describe, length = actions[action]
        if type(position) is not int or not 0 <= position < length:
            raise InvalidRequestError.refuse("at", position, f"an integer from 0 to {length - 1}")
        return describe(position)

    def static(self) -> str:
        """Return the card of the trace, which folds without scripts."""
        return self.trace._repr_html_()

    @cached_property
    def _tx(self) -> TransactionData:
        return self.trace._data(metadata=True)  # noqa: SLF001 - a class of this package

    @cached_property
    def _labels(self) -> list[str]:
        columns = (self._tx.column(name) for name in ("kind", "method_name", "actions"))
        return [_label(*values) for values in zip(*columns, strict=True)]

    @cached_property
    def _details(self) -> ReceiptDetails:
        return ReceiptDetails(self.trace, self._tx, self._labels)

    @cached_property
    def _changes(self) -> list[tuple[Any, ...]]:
        columns = balance_change_columns(self._tx.transfers)
        return list(zip(*columns.values(), strict=True))

    def _first_selected(self) -> int | None:
        tx = self._tx
        if self._receipt_id is None:
            return next(iter([*tx.failed_receipts, *range(len(tx.tree))]), None)
        ids = tx.tree.ids
        if self._receipt_id not in ids:
            expected = f"a receipt of transaction {self.trace.tx_hash}"
            raise InvalidRequestError.refuse("receipt_id", self._receipt_id, expected)
        return ids.index(self._receipt_id)

    def _timeline(self) -> Json:
        heights, depths = self._tx.column("block_height"), self._tx.column("depth")
        has_blocks = any(height is not None for height in heights)
        keys = heights if has_blocks else depths
        ordered = sorted({key for key in keys if key is not None})
        column = {key: position for position, key in enumerate(ordered)}
        first, sign = (ordered[0], "+") if has_blocks else (0, "")
        title = f"Block, counted from {first}" if has_blocks else "Depth; blocks are unknown"
        return {
            "title": title,
            "labels": [f"{sign}{key - first:,}" for key in ordered],
            "skipped": [b - a - 1 for a, b in pairwise(ordered)] if has_blocks else [],
            "column": [column.get(key, -1) for key in keys],
        }

    def _changes_page(self, start: int) -> Json:
        amounts, page = self._tx.amounts, self._changes[start : start + _PAGE]
        rows = [(id_value("account", id_), change_value(amounts, *by)) for id_, *by in page]
        return {"rows": rows, "total": len(self._changes)}


def _coded(texts: Iterable[str]) -> Json:
    """Return the distinct texts, and the position of each text among them."""
    code: dict[str, int] = {}
    positions = [code.setdefault(text, len(code)) for text in texts]
    return {"texts": list(code), "at": positions}


def _label(kind: str | None, method: str | None, actions: str | None) -> str:
    if kind == "refund":
        return "refund"
    return f"{cut(method)}()" if method else cut(actions or "no actions")
