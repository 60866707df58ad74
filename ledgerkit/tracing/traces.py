"""The `Traces` of many transactions: their frames, combined."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit.frames import build
from ledgerkit.frames.schemas import TRACES_PREFIX
from ledgerkit.tracing.actions import with_receipts
from ledgerkit.units import count_text

if TYPE_CHECKING:
    from ledgerkit.tracing.trace import Trace


class Traces(Mapping[str, "Trace"]):
    """
    The traces of several transactions by hash, with their frames combined.

    It is a mapping: ``traces[tx_hash]`` is one `Trace`, ``len(traces)`` counts them, and
    iterating lists the hashes. Each frame begins with `tx_hash` and `time`. `time` is the timestamp
    of the block in which the row's receipt ran; an edge takes its child's. A row without a receipt
    has the time of the transaction's first receipt.

    Parameters
    ----------
    traces
        The traces by transaction hash; the frames have their order.
    attrs
        Provenance for the frames' `attrs`.
    notes
        Notes on what is unknown about all of the transactions.

    Notes
    -----
    Source: POST /v0/transactions of the Transactions API, or tx_status for each, on older nodes
    EXPERIMENTAL_tx_status.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> traces = lk.trace_block(180000032)
    >>> len(traces)
    14
    >>> [trace.verdict for trace in traces.values()][:3]
    ['fully_succeeded', 'succeeded_with_failed_receipts', 'failed']
    >>> traces.gas.groupby("tx_hash", sort=False)["gas_burnt"].sum().head(2)
    tx_hash
    9L2Aj9kZCxzP3uxnmicGWvXKd4UFmawXGpb69gyeXpHn     629194812500
    AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY    8143979935020
    Name: gas_burnt, dtype: u128
    """

    def __init__(
        self,
        traces: Mapping[str, Trace],
        *,
        attrs: Mapping[str, Any] | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        """Store the traces; the frames are built when they are first used."""
        self._traces, self._attrs, self._notes = dict(traces), dict(attrs or {}), tuple(notes)

    def __getitem__(self, tx_hash: str) -> Trace:
        return self._traces[tx_hash]

    def __iter__(self) -> Iterator[str]:
        return iter(self._traces)

    def __len__(self) -> int:
        return len(self._traces)

    @cached_property
    def receipts(self) -> pd.DataFrame:
        """One row per receipt, typed as ``schema("traces_receipts")``."""
        return self._frame("receipts")

    @cached_property
    def edges(self) -> pd.DataFrame:
        """One row per edge between receipts, typed as ``schema("traces_edges")``."""
        return self._frame("edges")

    @cached_property
    def actions(self) -> pd.DataFrame:
        """One row per action, typed as ``schema("traces_actions")``."""
        return self._frame("actions")

    @cached_property
    def logs(self) -> pd.DataFrame:
        """One row per log line, typed as ``schema("traces_logs")``."""
        return self._frame("logs")

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row per event (NEP-297), typed as ``schema("traces_events")``."""
        return self._frame("events")

    @cached_property
    def transfers(self) -> pd.DataFrame:
        """One row per executed transfer, typed as ``schema("traces_transfers")``."""
        return self._frame("transfers")

    @cached_property
    def intents(self) -> pd.DataFrame:
        """One row per swap or move in NEAR Intents: ``schema("traces_intents")``."""
        return self._frame("intents")

    @cached_property
    def balance_changes(self) -> pd.DataFrame:
        """One row per transaction, account and asset: ``schema("traces_balance_changes")``."""
        return self._frame("balance_changes")

    @cached_property
    def gas(self) -> pd.DataFrame:
        """One row per transaction and per receipt, typed as ``schema("traces_gas")``."""
        return self._frame("gas")

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of all traces, each after its transaction's hash, and those of the block."""
        notes = (f"{tx_hash}: {note}" for tx_hash, trace in self.items() for note in trace.notes)
        return (*notes, *self._notes)

    def _frame(self, name: str) -> pd.DataFrame:
        if not self._traces:
            frame = build.empty_frame(TRACES_PREFIX + name)
            frame.attrs.update(self._attrs)
            return frame
        columns = _combine(self._traces, name)
        return build.build_frame(TRACES_PREFIX + name, columns, attrs=self._attrs)

    def __repr__(self) -> str:
        return f"<Traces: {self._count()}>"

    def _count(self) -> str:
        verdicts = Counter(trace.verdict for trace in self.values())
        counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
        return count_text(len(self), "transaction") + (f" ({counts})" if counts else "")

    def _repr_html_(self) -> str:
        """Return a table as HTML, with one row per transaction; its texts are escaped."""
        from ledgerkit import cards

        # Without metadata, because it would have to be read for the tokens of every transaction.
        rows = [
            (tx_hash, trace.headline(metadata=False), len(trace.receipts), _words(trace.verdict))
            for tx_hash, trace in islice(self.items(), cards.MAX_ROWS)
        ]
        columns = ["Transaction", "Headline", "Receipts", "Verdict"]
        return cards.table_card(
            "traces",
            headline=_words(self._count()),
            explanation="traces[tx_hash] is one trace; traces.receipts and the other frames "
            "contain the rows of all. Amounts of tokens are in their smallest unit here; "
            "traces[tx_hash].headline() reads their symbols and decimals.",
            caption="Transactions",
            rows=pd.DataFrame(rows, columns=columns),
            network=self._attrs.get("network"),
        )


def _words(text: str) -> str:
    return text.replace("_", " ")


def _combine(traces: Mapping[str, Trace], name: str) -> dict[str, Any]:
    """Combine the columns of a frame, and add `tx_hash` and `time`."""
    combined: dict[str, list[Any]] = defaultdict(list)
    for tx_hash, trace in traces.items():
        columns, receipts = trace._columns(name), trace._tree.columns  # noqa: SLF001 - of this package
        n_rows = len(next(iter(columns.values())))
        if name != "receipts":
            times, rows = receipts["time"], _first_or_own(receipts["receipt_id"], columns, n_rows)
            columns["time"] = [times[row] if times else None for row in rows]
            columns = with_receipts(columns, receipts)
        for key, values in {**columns, "tx_hash": [tx_hash] * n_rows}.items():
            combined[key] += values
    return combined


def _first_or_own(ids: Sequence[str], columns: Mapping[str, Any], n_rows: int) -> Iterable[int]:
    """Return the row of each row's receipt: an edge's child, the first for a transaction."""
    if "child_id" in columns:
        row_of = {receipt_id: row for row, receipt_id in enumerate(ids)}
        return map(row_of.__getitem__, columns["child_id"])
    return (max(position, 0) for position in columns.get("position", [0] * n_rows))
