"""
A transaction on its way: what is known of it, and how to wait for more.

A `Submission` walks through the stages of the specification: ``rejected``, or
``accepted``, ``in_mempool``, ``included``, ``first_receipt_succeeded`` or
``first_receipt_failed``, ``all_receipts_complete``, ``final``; and ``dropped`` where it
was accepted and can no longer be included. Before anything is known it is ``unknown``.
"""

from __future__ import annotations

import base64
import threading
import time
from collections import OrderedDict
from html import escape
from math import inf
from typing import TYPE_CHECKING, Any

import msgspec
import pandas as pd

from ledgerkit import validation
from ledgerkit.api import chain_errors, rpc
from ledgerkit.api.models.transactions import Status
from ledgerkit.errors import LedgerError, UnknownTransactionError
from ledgerkit.frames import build
from ledgerkit.progress import Line
from ledgerkit.sending import broadcast
from ledgerkit.sending.lifecycle import Course, Stage
from ledgerkit.tracing.trace import Trace
from ledgerkit.verbs.fetching import provenance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.api.rpc import TxAnswer
    from ledgerkit.client import Ledger
    from ledgerkit.protocol import SignedTransaction

STAGES = (
    "unknown",
    "accepted",
    "in_mempool",
    "rejected",
    "dropped",
    "included",
    "first_receipt_succeeded",
    "first_receipt_failed",
    "all_receipts_complete",
    "final",
)
UNTIL = {"included": "INCLUDED", "executed": "EXECUTED_OPTIMISTIC", "final": "FINAL"}
_RAN = ("success_value", "success_receipt_id", "failure")
_KEPT = 256  # submissions of a ledger that `resume` finds with all that is known of them
_SHOWN = 12  # characters of a hash


class Submission:
    """
    A transaction that was sent, or is being followed.

    Made by the verbs that send, and by `track` and `resume`. A rejection is raised by the
    verb; a drop and a failed receipt are states, which `raise_for_status` raises.

    Parameters
    ----------
    course
        What becomes of it.
    """

    def __init__(self, course: Course) -> None:
        self.course = course
        self._traced: TxAnswer | None = None  # what the trace was made of
        self._trace: Trace | None = None
        self._blocks: dict[str, tuple[int, int]] = {}
        self._located: TxAnswer | None = None

    # What is known ------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """Where it was sent."""
        return self.course.ledger

    @property
    def tx_hash(self) -> str:
        """Its hash, known before it was sent."""
        return self.course.tx_hash

    @property
    def signer_id(self) -> str:
        """Who signed it."""
        return self.course.signer_id

    @property
    def signed(self) -> SignedTransaction | None:
        """The signed bytes, where they are at hand."""
        return self.course.signed

    @property
    def nonce(self) -> int | None:
        """Its nonce, where the signed bytes are at hand."""
        return None if self.signed is None else self.signed.transaction.nonce

    @property
    def receiver_id(self) -> str | None:
        """Who receives it; None where that is not known yet."""
        if self.signed is not None:
            return str(self.signed.transaction.receiver_id)
        told = None if self.course.answer is None else self.course.answer.result.transaction
        return None if told is None else told.receiver_id

    @property
    def is_included(self) -> bool:
        """Whether a block has taken it, as far as is known."""
        return self.course.is_included

    @property
    def is_over(self) -> bool:
        """Whether nothing can become of it any more."""
        return self.course.is_over

    @property
    def stage(self) -> str:
        """The last stage that was reached."""
        return max((s.name for s in self._stages()), key=STAGES.index, default="unknown")

    @property
    def drop_reason(self) -> str | None:
        """Of a drop: ``nonce overtaken``, ``expired`` or ``balance short``."""
        return self.course.drop_reason

    @property
    def fully_succeeded(self) -> bool | None:
        """Whether its status and every receipt succeeded; None while that is open."""
        if self.course.refusal is not None:
            return False
        verdict = self._told().verdict if self.is_included else "pending"
        return {"pending": None, "unknown": None}.get(verdict, verdict == "fully_succeeded")

    @property
    def failure(self) -> LedgerError | None:
        """Why it did not fully succeed: the first failed receipt, a drop, a refusal."""
        if self.course.refusal is not None or not self.is_included:
            return self.course.refusal
        receipts = self._told().receipts
        failed = receipts.loc[receipts["status"] == "failure", "receipt_id"]
        found = dict(self._failures())
        first = next((ran for ran in (self.tx_hash, *failed) if ran in found), None)
        return (
            None if first is None else chain_errors.receipt_failure(found[first], receipt_id=first)
        )

    @property
    def value(self) -> Any:
        """What it returned: decoded JSON, else bytes; None while there is nothing."""
        status = None if self.course.answer is None else self.course.answer.result.status
        text = status.success_value if isinstance(status, Status) else None
        return rpc.json_or_bytes(base64.b64decode(text)) if isinstance(text, str) else None

    @property
    def logs(self) -> list[str]:
        """What its receipts logged, in causal order."""
        if not self.is_included:
            return []
        return [line for lines in self._told().receipts["logs"] for line in lines or ()]

    @property
    def trace(self) -> Trace | None:
        """Its receipt tree, with heights and times; None until it is included."""
        if self.is_included:
            self._locate()
        return self._trace if self.is_included else None

    @property
    def stages(self) -> pd.DataFrame:
        """The stages reached, with time and block of each, typed as ``schema("submission")``."""
        if self.is_included:
            self._locate()
        return self._frame()

    def to_frame(self) -> pd.DataFrame:
        """
        Tabulate the stages.

        Returns
        -------
        stages
            One row a stage, typed as `schema("submission")`.
        """
        return self.stages

    # Waiting ------------------------------------------------------------------------------

    def wait(self, until: str = "final", timeout_s: float | None = None) -> Submission:
        """
        Follow it.

        Parameters
        ----------
        until
            How far: ``included``, ``executed``, ``final``, or a level such as
            ``EXECUTED_OPTIMISTIC``. A drop ends it too.
        timeout_s
            The longest to wait; None is as long as it takes. That time is over is no
            failure: `stage` tells how far it is.

        Returns
        -------
        submission
            This one.

        Raises
        ------
        InvalidTransactionError
            If the ledger refuses it for good, such as for its key.
        LedgerError
            If nobody can be asked at all.
        """
        level = UNTIL.get(until, until)
        validation.one_of(level, "until", (*UNTIL, *validation.WAIT_LEVELS[1:]))
        follow(self, level, inf if timeout_s is None else timeout_s)
        if self.is_included:
            self._locate()
        return self

    def refresh(self) -> Submission:
        """
        Look once how far it is.

        Returns
        -------
        submission
            This one.

        Raises
        ------
        LedgerError
            If nobody can be asked.
        """
        if not self.is_over:
            self.course.look()
        if self.is_included:
            self._locate()
        return self

    def raise_for_status(self) -> None:
        """
        Raise what went wrong, if anything did.

        Raises
        ------
        InvalidTransactionError
            If the ledger refused it.
        DroppedError
            If it was never included, and can't be any more.
        ReceiptFailedError
            If a receipt failed; names it.
        """
        failure = self.failure
        if failure is not None:
            raise failure

    # Reading ------------------------------------------------------------------------------

    def _told(self) -> Trace:
        """Trace what is known, without asking for more."""
        answer = self.course.answer
        if answer is None:
            raise UnknownTransactionError(transaction_hash=self.tx_hash)
        if self._trace is None or self._traced is not answer:
            told = provenance(self.ledger, "EXPERIMENTAL_tx_status")
            self._trace = Trace(answer.result, answer.body, blocks=self._blocks, attrs=told)
            self._traced = answer
        return self._trace

    def _locate(self) -> None:
        """Read the receipts, and the blocks that tell the time of each stage; once a step."""
        if self._located is self.course.answer:
            return
        found = broadcast.look(self.ledger, self.tx_hash, self.signer_id)
        if found is None:  # a block that was abandoned
            return
        self.course.take(found)
        self._read_blocks(found)
        if self.course.reaches("FINAL") and "final" not in self.course.noted:
            final = self.ledger.send(rpc.block(validation.block_reference("final"))).header
            stage = Stage("final", final.time_ns, final.height, final.hash)
            self.course.noted["final"] = stage
        self._located, self._traced = found, None
        self._told()

    def _read_blocks(self, answer: TxAnswer) -> None:
        """Read the blocks that an answer names; each is read once."""
        first = answer.result.transaction_outcome
        hashes = {first.block_hash if first else None, *answer.result.block_hashes()}
        unknown = [one for one in hashes if one is not None and one not in self._blocks]
        calls = [rpc.block(validation.block_reference(one)) for one in sorted(unknown)]
        for block in self.ledger.send_many(calls, progress=False):
            if not isinstance(block, LedgerError):
                header = block.header
                self._blocks[header.hash] = (header.height, header.time_ns or 0)

    def _failures(self) -> Iterator[tuple[str, Any]]:
        """List what failed, by the id of the receipt or the transaction."""
        if self.course.answer is None:
            return
        result = self.course.answer.result
        ran = [outcome for _, piece in result.outcomes.pieces() for outcome in piece]
        for one in (result.transaction_outcome, *ran):
            status = None if one is None else one.outcome.status
            failure = status.failure if isinstance(status, Status) else msgspec.UNSET
            if one is not None and failure is not msgspec.UNSET:
                yield one.id, msgspec.json.decode(failure)

    def _stages(self) -> list[Stage]:
        """List the stages reached, in order."""
        found = {stage.name: stage for stage in self._executed()} | self.course.noted
        return sorted(found.values(), key=lambda stage: STAGES.index(stage.name))

    def _executed(self) -> Iterator[Stage]:
        """List the stages that a result tells."""
        if self.course.answer is None or not self.is_included:
            return
        first = self.course.answer.result.transaction_outcome
        yield self._at("included", None if first is None else first.block_hash)
        receipts = self._told().receipts
        ran = receipts[receipts["status"].isin(_RAN)]
        if len(ran) and ran.index[0] == 0:
            yield self._first(ran.iloc[0])
        if len(ran) and len(ran) == len(receipts):
            yield self._at("all_receipts_complete", self._last(list(ran["block_hash"])))
        if self.course.reaches("FINAL"):
            yield Stage("final")

    def _first(self, receipt: Any) -> Stage:
        """Place the running of the first receipt."""
        if receipt["status"] != "failure":
            return self._at("first_receipt_succeeded", receipt["block_hash"])
        detail = str(receipt["error_message"])
        return self._at("first_receipt_failed", receipt["block_hash"], detail)

    def _last(self, hashes: list[str]) -> str:
        """Choose the highest of some blocks; the last where no height is known."""
        return max(reversed(hashes), key=lambda one: self._blocks.get(one, (0, 0))[0])

    def _at(self, name: str, block_hash: str | None, detail: str | None = None) -> Stage:
        """Place a stage at a block."""
        height, time_ns = self._blocks.get(block_hash or "", (None, None))
        return Stage(name, time_ns, height, block_hash, detail)

    # Shown --------------------------------------------------------------------------------

    def _frame(self) -> pd.DataFrame:
        """Tabulate the stages as far as they are known."""
        rows = self._stages()
        columns = {
            "tx_hash": [self.tx_hash] * len(rows),
            "stage": [row.name for row in rows],
            "time": [row.time_ns for row in rows],
            "block_height": [row.height for row in rows],
            "block_hash": [row.block_hash for row in rows],
            "detail": [row.detail for row in rows],
        }
        return build.build_frame("submission", columns, attrs={"network": self.ledger.network.name})

    def _sentence(self) -> str:
        """Say in one line how far it is."""
        ended = {True: ", fully succeeded", False: ", not fully succeeded", None: ""}
        to = f" -> {self.receiver_id}" if self.receiver_id else ""
        return f"{self.tx_hash[:_SHOWN]}… {self.signer_id}{to}: {self.stage}" + (
            "" if self.stage in ("rejected", "dropped") else ended[self.fully_succeeded]
        )

    def __repr__(self) -> str:
        return f"<Submission {self._sentence()}>"

    def _repr_html_(self) -> str:
        """Show the stages as a card; every text from the chain is escaped."""
        names = ("stage", "time", "block_height", "detail")
        head = "".join(f"<th>{name}</th>" for name in names)
        rows = "".join(
            "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>"
            for row in self._frame()[list(names)].to_numpy(dtype=object)
        )
        failure = self.failure
        problem = "" if failure is None else f"<p>{escape(str(failure))}</p>"
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        title = f"{escape(self._sentence())}<br><code>{escape(self.tx_hash)}</code>"
        # These class names keep formulas out: a contract may panic with $A$.
        kept = "ledgerkit-submission tex2jax_ignore mathjax_ignore"
        return f'<div class="{kept}"><p>{title}</p>{problem}{table}</div>'


def _cell(value: Any) -> str:
    """Write one value into a table; what is missing is left empty."""
    return "" if pd.isna(value) else escape(str(value))


# Following --------------------------------------------------------------------------------


def follow(sent: Submission, level: str, timeout_s: float) -> None:
    """Wait for a level, reading no more than that takes; a line shows how far it is."""
    until = time.monotonic() + timeout_s
    course = sent.course
    with Line() as line:
        try:
            while not (course.reaches(level) or course.is_over) and time.monotonic() < until:
                line.show(repr(sent)[1:-1])
                course.step(level)
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(course.way_back())
            raise


# To be picked up again --------------------------------------------------------------------

_lock = threading.Lock()


def _recent(ledger: Ledger) -> OrderedDict[str, Submission]:
    """Find what was sent to a ledger; the ledger holds it, so that both go together."""
    found: OrderedDict[str, Submission] = vars(ledger).setdefault("_recent", OrderedDict())
    return found


def remember(submission: Submission) -> None:
    """Keep a submission for `resume`, before it is sent."""
    with _lock:
        recent = _recent(submission.ledger)
        recent[submission.tx_hash] = submission
        while len(recent) > _KEPT:
            recent.popitem(last=False)


def recall(ledger: Ledger, tx_hash: str, signer_id: str) -> Submission:
    """Find a submission that was sent to this ledger, or begin to follow another's."""
    with _lock:
        known = _recent(ledger).get(tx_hash)
    if known is not None and known.signer_id == signer_id:
        return known
    return Submission(Course(ledger, tx_hash, signer_id))
