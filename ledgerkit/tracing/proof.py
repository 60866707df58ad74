"""`Proof`: which outcomes of a transaction are proved, and by which blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

LEVELS = ("no", "outcome", "block", "signed")


@dataclass(frozen=True, eq=False)
class Proof:
    """
    How far the outcomes of a transaction are proved.

    `Trace.verify` returns it. A leaf commits to an outcome's id, executor, status, gas and tokens
    burnt, logs, and the receipts that it created, and so to the order of the receipts. It does not
    commit to the actions of a receipt, the gas profile or the message of a failure.

    Parameters
    ----------
    rows
        One row per outcome, the transaction's first, typed as ``schema("proof")``.
    head_hash
        The block that all paths lead to.
    head_height
        Its height.
    is_trusted
        True if the caller named that block, so that no signature is needed.
    trusted_hash
        The block from which on validators' signatures were checked; one that the network named
        unless the caller did.
    is_anchored
        True if the caller named the block that the proof begins or ends with.
    is_signed_by_sender
        True if the transaction's signature belongs to its hash and key; None if the document has
        no signature.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> trace = lk.trace("8n1FhKEy8beosT9iYcLcWhesqQBiF63EfdZDzbjH6NCE", "alice.near")
    >>> proof = trace.verify()
    >>> proof.is_complete
    True
    """

    rows: pd.DataFrame = field(repr=False)
    head_hash: str
    head_height: int
    is_trusted: bool
    trusted_hash: str
    is_anchored: bool
    is_signed_by_sender: bool | None

    @property
    def is_complete(self) -> bool:
        """True if every outcome is proved as far as the head, and the head is trusted or signed."""
        goal = LEVELS.index("block" if self.is_trusted else "signed")
        levels = [LEVELS.index(level) for level in self.rows["proved"].dropna()]
        is_whole = len(levels) == len(self.rows) and all(level >= goal for level in levels)
        return is_whole and self.is_signed_by_sender is not False

    @property
    def summary(self) -> str:
        """One sentence: how many outcomes are proved, and by what."""
        counts = self.rows["proved"].value_counts(dropna=False).to_dict()
        n_rows, end = len(self.rows), f"block {self.head_height}"
        end += ", which you named" if self.is_trusted else ", signed by two thirds of the stake"
        if self.is_complete:
            text = f"Proved: all {n_rows} outcomes are committed to by {end}."
        else:
            reached = sum(counts.get(level, 0) for level in LEVELS[1:])
            refuted = counts.get("no", 0)
            unchecked = n_rows - reached - refuted
            text = f"Not proved: {reached} of {n_rows} outcomes lead to a block's outcome root"
            text += f", {refuted} contradict it" if refuted else ""
            text += f", {unchecked} not checked." if unchecked else "."
        if self.is_signed_by_sender is False:
            text += " The transaction's signature is not that of its key."
        if not self.is_anchored:
            text += " The validators are those that the network itself lists: name a block that you"
            text += " trust to check them."
        return text

    def __repr__(self) -> str:
        return f"<Proof {self.summary}>"
