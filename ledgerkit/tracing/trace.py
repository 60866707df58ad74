"""A transaction's receipt tree, from whatever document tells it: frames and verdict."""

from __future__ import annotations

import json
import os
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ledgerkit import validation
from ledgerkit.api.models.protocol_rules import Rules, rules_of
from ledgerkit.api.models.transactions import (
    Kept,
    collector_paused,
    decode_kept,
    decode_transaction,
    with_kept,
)
from ledgerkit.extras import require
from ledgerkit.frames import build
from ledgerkit.tracing import actions as tracing_actions
from ledgerkit.tracing import explain as tracing_explain
from ledgerkit.tracing import transfers as tracing_transfers
from ledgerkit.tracing.tree import tree, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pandas as pd
    from matplotlib.axes import Axes

    from ledgerkit.api.models.transactions import Action, TxResult
    from ledgerkit.tracing.transfers import Movements

    Actions = Sequence[Action | str]

_PLOTS = ("tree", "timeline", "gas", "flow")


class Trace:
    """
    What a transaction set off.

    Parameters
    ----------
    result
        The decoded result of the transaction.
    source
        The bytes that it was decoded from, kept for `save`.
    blocks
        Height and time (nanoseconds since 1970) by block hash, for results without them.
    rules
        Those in force when it ran, which no result tells: where accounts live, and the share
        of the gas that contracts get.
    attrs
        Provenance to hang on the frames.

    Notes
    -----
    Source: EXPERIMENTAL_tx_status, tx, send_tx, or POST /v0/transactions of the Transactions
    API; a live answer and a saved one give the same frames.
    """

    def __init__(
        self,
        result: TxResult,
        source: bytes,
        *,
        blocks: Mapping[str, tuple[int, int]] | None = None,
        rules: Rules | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep what the frames are made from."""
        self._tree = tree(result, blocks=blocks, shard_of=None if rules is None else rules.shard_of)
        self._verdict = verdict(self._tree)  # the frame shares its values, and may be written to
        self._result, self._source = result, source
        self._kept = Kept(dict(blocks or {}), rules)
        self._attrs = dict(attrs or {})

    @classmethod
    def from_json(
        cls,
        data: bytes | str | dict[str, Any],
        *,
        tx_hash: str | None = None,
        blocks: Mapping[str, tuple[int, int]] | None = None,
        rules: Mapping[str, Any] | None = None,
    ) -> Self:
        """
        Read a document that holds the result of a transaction.

        Parameters
        ----------
        data
            A JSON-RPC answer or its bare result, or a Transactions API document, whole or
            one element; as text or decoded.
        tx_hash
            Which transaction to take, where a Transactions API document holds several.
        blocks
            Height and time (nanoseconds since 1970) by block hash, for results without them.
        rules
            What `protocol_config` returned for the time at which it ran: without it the
            shards and the rewards of contracts are not known.

        Returns
        -------
        trace
            The transaction's trace.

        Raises
        ------
        DecodeError
            If the document is not as documented; `path` names the place.
        LedgerError
            The typed error of a JSON-RPC answer that carries one.
        """
        source = _as_bytes(data)
        kept = decode_kept(source)
        known = {**kept.blocks, **(blocks or {})}
        told = kept.rules if rules is None else rules_of(rules)
        with collector_paused():
            result = decode_transaction(source, asked="a saved transaction", tx_hash=tx_hash)
            return cls(result, source, blocks=known, rules=told)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """
        Read a trace from a file, saved here or elsewhere.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        trace
            With frames equal to those of the trace that was saved.

        Raises
        ------
        LedgerError
            As `from_json`.
        """
        return cls.from_json(Path(path).read_bytes())

    def save(self, path: str | Path) -> Path:
        """
        Write the document that this trace was read from, byte for byte.

        Heights, times and rules that came from elsewhere are written into the document as one
        more member, which other readers skip. The file appears under its name when it is whole.

        Parameters
        ----------
        path
            The file; an existing one is replaced.

        Returns
        -------
        path
            Where it is.
        """
        path = Path(path)
        kept = decode_kept(self._source)
        data = self._source if kept == self._kept else with_kept(self._source, self._kept)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            part.write_bytes(data)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        return path

    @cached_property
    def receipts(self) -> pd.DataFrame:
        """One row a receipt in causal order, typed as ``schema("receipts")``; made once."""
        return self._frame("receipts", lambda: self._tree.columns)

    @cached_property
    def edges(self) -> pd.DataFrame:
        """One row an edge between receipts, by receipt, typed as ``schema("edges")``; made once."""
        return self._frame("edges", self._tree.edges)

    @cached_property
    def actions(self) -> pd.DataFrame:
        """One row an action, those inside a Delegate too, typed as ``schema("actions")``."""
        return self._frame(
            "actions", lambda: tracing_actions.action_columns(self._tree, self._asked)
        )

    @cached_property
    def logs(self) -> pd.DataFrame:
        """One row a log line, those of failed receipts too, typed as ``schema("logs")``."""
        return self._frame("logs", lambda: tracing_actions.log_columns(self._tree))

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row an event (NEP-297), broken ones with a note, typed as ``schema("events")``."""
        return self._frame("events", lambda: tracing_actions.event_columns(self._tree))

    @cached_property
    def transfers(self) -> pd.DataFrame:
        """One row a movement of NEAR or tokens that happened, typed as ``schema("transfers")``."""
        return self._frame(
            "transfers", lambda: tracing_transfers.transfer_columns(self._tree, self._moved)
        )

    @cached_property
    def balance_changes(self) -> pd.DataFrame:
        """One row an account and asset, with the exact ``change``; `notes` say what is missing."""
        return self._frame("balance_changes", lambda: tracing_transfers.change_columns(self._moved))

    @cached_property
    def gas(self) -> pd.DataFrame:
        """What the transaction and each receipt burnt, and who got what of it."""
        return self._frame("gas", lambda: tracing_transfers.gas_columns(self._tree, self._moved))

    @cached_property
    def _asked(self) -> list[Actions | None]:
        """What each receipt asks for."""
        with collector_paused():
            return tracing_actions.asked(self._tree, self._result)

    @cached_property
    def _moved(self) -> Movements:
        """What moved."""
        with collector_paused():
            return tracing_transfers.movements(
                self._tree, self._result, self._asked, self._kept.rules
            )

    def _frame(self, name: str, columns: Callable[[], Mapping[str, Any]]) -> pd.DataFrame:
        """Build a frame of this transaction."""
        with collector_paused():
            return build.build_frame(name, columns(), attrs=self._attrs)

    @property
    def verdict(self) -> str:
        """How the transaction ended; `ledgerkit.tracing.tree.verdict` lists the values."""
        return self._verdict

    @property
    def tx_hash(self) -> str | None:
        """The transaction's hash; None where the document does not say."""
        return self._tree.conversion.tx_hash

    @property
    def signer_id(self) -> str | None:
        """Who signed the transaction; None where the document does not say."""
        return self._tree.conversion.signer_id

    @property
    def sender_id(self) -> str | None:
        """Whose wish it was: who signed what a relayer sent, else the signer."""
        transaction = self._result.transaction
        for action in (transaction.actions if transaction else None) or ():
            inner = tracing_actions.delegated(action)
            if inner is not None and inner.sender_id is not None:
                return inner.sender_id
        return self.signer_id

    @property
    def notes(self) -> tuple[str, ...]:
        """What the document lacks, and what was left aside because it contradicts itself."""
        return (*self._tree.notes, *self._moved.notes)

    @property
    def block_hashes(self) -> list[str]:
        """The blocks in which receipts ran and whose height is not known, each once."""
        hashes, heights = self._tree.columns["block_hash"], self._tree.columns["block_height"]
        unknown = hashes[np.ma.getmaskarray(heights)]
        return [block_hash for block_hash in dict.fromkeys(unknown) if block_hash is not None]

    def explain(self) -> str:
        """
        Tell in plain words what happened, from the document alone.

        Returns
        -------
        text
            A few paragraphs: what was asked and by whom, how it ended, what ran where, what
            failed and what to do, what moved, how long it took. Always the same for the same
            trace.
        """
        with collector_paused():
            return tracing_explain.explain(
                self._tree, self._result, self._asked, self._moved, self.notes
            )

    def to_networkx(self) -> Any:
        """
        Make a graph of the receipts and their edges for networkx.

        Returns
        -------
        graph
            A `networkx.MultiDiGraph`: a node a receipt, with the columns of `receipts` as its
            attributes, and an edge for each row of `edges`, with `kind` and `data_id`.

        Raises
        ------
        InvalidRequestError
            If networkx is not installed.
        """
        graph = require("networkx", "graph", "to_networkx()").MultiDiGraph()
        receipts, edges = self.receipts, self.edges
        named = zip(receipts["receipt_id"], receipts.to_dict("records"), strict=True)
        graph.add_nodes_from(named)
        ends = zip(edges["parent_id"], edges["child_id"], strict=True)
        told = edges[["kind", "data_id"]].to_dict("records")
        graph.add_edges_from((*end, each) for end, each in zip(ends, told, strict=True))
        return graph

    def plot(self, kind: str = "tree", ax: Axes | None = None, **options: Any) -> Axes:
        """
        Draw the transaction.

        Parameters
        ----------
        kind
            ``tree``, ``timeline`` (by shard and block), ``gas`` (who burnt what) or ``flow``
            (what moved between accounts).
        ax
            Where to draw; None makes a figure.
        **options
            Passed on to the function of `ledgerkit.plots`.

        Returns
        -------
        ax
            Where it is drawn.

        Raises
        ------
        InvalidRequestError
            If there is no such kind.
        """
        validation.one_of(kind, "kind", _PLOTS)
        from ledgerkit import plots

        if kind == "gas":
            return plots.gas_icicle(self.receipts, ax=ax, **options)
        if kind == "flow":
            return plots.token_flow(self.transfers, ax=ax, **options)
        drawn = plots.receipt_tree if kind == "tree" else plots.timeline
        return drawn(self.receipts, self.edges, ax=ax, **options)

    def __repr__(self) -> str:
        """Say which transaction, how large, and how it ended."""
        relayed = "" if self.sender_id == self.signer_id else f", relayed by {self.signer_id}"
        what = f"{self.tx_hash} of {self.sender_id}{relayed}"
        return f"<Trace {what}: {len(self._tree)} receipts, {self.verdict}>"

    def _repr_html_(self) -> str:
        """Show a card: headline, story, tree; every text from the chain is escaped."""
        from ledgerkit import cards

        return cards.trace_card(
            headline=repr(self)[1:-1],
            explanation=self.explain(),
            receipts=self.receipts,
            edges=self.edges,
            transfers=self.transfers,
        )


def receipts_of(traces: Mapping[str, Trace]) -> pd.DataFrame:
    """
    Put the receipts of many transactions into one frame.

    Parameters
    ----------
    traces
        Their traces by hash.

    Returns
    -------
    receipts
        One row a receipt, transaction by transaction, typed as ``schema("traces")``.
    """
    if not traces:
        return build.empty_frame("traces")
    return build.build_frame("traces", _receipt_columns(traces))


def receipts_in(block_height: int, traces: Mapping[str, Trace]) -> pd.DataFrame:
    """
    Put the receipts of a block's transactions into one frame.

    Parameters
    ----------
    block_height
        The block that includes the transactions.
    traces
        Their traces by hash; at least one.

    Returns
    -------
    receipts
        One row a receipt, transaction by transaction, typed as
        ``schema("collected_receipts")``.
    """
    columns = _receipt_columns(traces)
    heights = [block_height] * len(columns["tx_hash"])
    return build.build_frame("collected_receipts", {"tx_block_height": heights, **columns})


def events_in(block_height: int, traces: Mapping[str, Trace]) -> pd.DataFrame:
    """
    Put the events of a block's transactions into one frame.

    Parameters
    ----------
    block_height
        The block that includes the transactions.
    traces
        Their traces by hash; at least one.

    Returns
    -------
    events
        One row an event, transaction by transaction, typed as ``schema("collected_events")``.
    """
    found = [tracing_actions.event_columns(trace._tree) for trace in traces.values()]  # noqa: SLF001 - of this module
    hashes = _repeated(traces, [len(each["event"]) for each in found])
    told = {"tx_block_height": [block_height] * len(hashes), "tx_hash": hashes}
    return build.build_frame("collected_events", told | _stacked(found))


def _receipt_columns(traces: Mapping[str, Trace]) -> dict[str, Any]:
    """Put the receipts of transactions one below the other."""
    trees = [trace._tree for trace in traces.values()]  # noqa: SLF001 - of this module
    hashes = _repeated(traces, [len(tree) for tree in trees])
    return {"tx_hash": hashes, **_stacked([tree.columns for tree in trees])}


def _repeated(hashes: Iterable[str], counts: Sequence[int]) -> np.ndarray:
    """Name the transaction of each row."""
    return np.repeat(np.array(list(hashes), dtype=object), counts)


def _stacked(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Put frames' columns one below the other."""
    return {name: _joined([part[name] for part in parts]) for name in parts[0]}


def _joined(parts: list[Any]) -> Any:
    """Put columns one below the other."""
    if isinstance(parts[0], np.ma.MaskedArray):
        missing = np.concatenate([np.ma.getmaskarray(part) for part in parts])
        return np.ma.MaskedArray(np.concatenate([np.ma.getdata(part) for part in parts]), missing)
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return list(chain.from_iterable(parts))


def _as_bytes(data: bytes | str | dict[str, Any]) -> bytes:
    """Take a document as text or decoded."""
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, dict):
        return json.dumps(data).encode()
    return bytes(data)
