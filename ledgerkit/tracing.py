"""A transaction's receipt tree, from whatever document tells it: frames and verdict."""

from __future__ import annotations

import json
import os
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ledgerkit import frames
from ledgerkit.tree import tree, verdict
from ledgerkit.wire.transactions import (
    collector_paused,
    decode_kept_blocks,
    decode_transaction,
    with_blocks,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from ledgerkit.wire.transactions import TxResult

_SHOWN_ROWS = 20
_SHOWN_COLUMNS = ("order", "depth", "kind", "receiver_id", "actions", "method_name", "status")


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
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep what the frames are made from."""
        self._tree = tree(result, blocks=blocks)
        self._verdict = verdict(self._tree)  # the frame shares its values, and may be written to
        self._source = source
        self._blocks = dict(blocks or {})
        self._attrs = dict(attrs or {})

    @classmethod
    def from_json(
        cls,
        data: bytes | str | dict[str, Any],
        *,
        tx_hash: str | None = None,
        blocks: Mapping[str, tuple[int, int]] | None = None,
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
        known = {**decode_kept_blocks(source), **(blocks or {})}
        with collector_paused():
            result = decode_transaction(source, asked="a saved transaction", tx_hash=tx_hash)
            return cls(result, source, blocks=known)

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

        Heights and times that came from elsewhere are written into the document as one more
        member, which other readers skip. The file appears under its name when it is whole.

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
        kept = decode_kept_blocks(self._source)
        data = self._source if kept == self._blocks else with_blocks(self._source, self._blocks)
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
        with collector_paused():
            return frames.build("receipts", self._tree.columns, attrs=self._attrs)

    @cached_property
    def edges(self) -> pd.DataFrame:
        """One row an edge between receipts, by receipt, typed as ``schema("edges")``; made once."""
        return frames.build("edges", self._tree.edges(), attrs=self._attrs)

    @property
    def verdict(self) -> str:
        """How the whole transaction ended; the words are told at `ledgerkit.tree.verdict`."""
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
    def notes(self) -> tuple[str, ...]:
        """What the document lacks, and what was left aside because it contradicts itself."""
        return self._tree.notes

    @property
    def block_hashes(self) -> list[str]:
        """The blocks in which receipts ran and whose height is not known, each once."""
        hashes, heights = self._tree.columns["block_hash"], self._tree.columns["block_height"]
        unknown = hashes[np.ma.getmaskarray(heights)]
        return [block_hash for block_hash in dict.fromkeys(unknown) if block_hash is not None]

    def __repr__(self) -> str:
        """Say which transaction, how large, and how it ended."""
        what = f"{self.tx_hash} of {self.signer_id}"
        return f"<Trace {what}: {len(self._tree)} receipts, {self.verdict}>"

    def _repr_html_(self) -> str:
        """Show the first receipts as a table; every text from the chain is escaped."""
        shown = self.receipts[list(_SHOWN_COLUMNS)].head(_SHOWN_ROWS)
        head = "".join(f"<th>{escape(str(name))}</th>" for name in shown)
        rows = "".join(
            "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>"
            for row in shown.to_numpy(dtype=object)
        )
        more = len(self._tree) - len(shown)
        rest = f"<p>… and {more} more</p>" if more > 0 else ""
        caption = escape(repr(self)[1:-1])
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<div><p>{caption}</p>{table}{rest}</div>"


def _cell(value: object) -> str:
    """Write one value into a table; missing text is NaN, which is no text."""
    return "" if isinstance(value, float) else escape(str(value))


def _as_bytes(data: bytes | str | dict[str, Any]) -> bytes:
    """Take a document as text or decoded."""
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, dict):
        return json.dumps(data).encode()
    return bytes(data)
