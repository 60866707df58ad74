"""
Submissions: a transaction's stages, result and receipt tree, and waiting for them.

A `Submission` goes through the stages of the specification: ``rejected``, or
``accepted``, ``in_mempool``, ``included``, ``first_receipt_succeeded`` or
``first_receipt_failed``, ``all_receipts_complete``, ``final``; and ``dropped`` if it
was accepted and can no longer be included. Before anything is known it is ``unknown``.
"""

from __future__ import annotations

import base64
import threading
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Never

import msgspec

from ledgerkit import cards, validation
from ledgerkit.api import chain_errors, rpc
from ledgerkit.api.models.transactions import Status, TransactionResponse, decode_member
from ledgerkit.block_data.headers import headers_by_hash
from ledgerkit.errors import DecodeError, LedgerError, UnknownTransactionError
from ledgerkit.frames import build
from ledgerkit.frames.human import human
from ledgerkit.progress import Line
from ledgerkit.sending import broadcast
from ledgerkit.sending.lifecycle import Stage, Tracker
from ledgerkit.tracing.trace import Trace
from ledgerkit.transport import networks
from ledgerkit.verbs.fetching import provenance
from ledgerkit.verbs.token_facts import read_token_facts
from ledgerkit.visible_text import html_text

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.ledger import Ledger
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
_EXECUTED = ("success_value", "success_receipt_id", "failure")
_MAX_RECENT = 256  # submissions of one ledger that `track` returns with their signed bytes
_HASH_CHARACTERS = 12  # in a repr


class Submission:
    """
    A transaction that was sent, or is being tracked.

    Returned by the verbs that send, and by `track`. The verb raises a
    rejection; a drop and a failed receipt are states, which `raise_for_status` raises.

    Parameters
    ----------
    tracker
        The tracker of the transaction's lifecycle.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> sent = lk.call("counter.near", "get_num", signer_id="alice.near")
    >>> sent.stage, sent.fully_succeeded, sent.value
    ('first_receipt_succeeded', True, 42)
    """

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker
        self._trace: Trace | None = None
        # The responses that the trace was built from, and whose blocks were read.
        self._trace_response: TransactionResponse | None = None
        self._located_response: TransactionResponse | None = None
        self._blocks: dict[str, tuple[int, int]] = {}  # height and time in ns, by hash

    # State --------------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """The ledger it was sent to."""
        return self.tracker.ledger

    @property
    def tx_hash(self) -> str:
        """The transaction's hash, known before it is sent."""
        return self.tracker.tx_hash

    @property
    def signer_id(self) -> str:
        """The account that signed it."""
        return self.tracker.signer_id

    @property
    def signed(self) -> SignedTransaction | None:
        """The signed transaction; None if it was not signed in this process."""
        return self.tracker.signed

    @property
    def nonce(self) -> int | None:
        """The transaction's nonce; None if it was not signed in this process."""
        return None if self.signed is None else self.signed.transaction.nonce

    @property
    def receiver_id(self) -> str | None:
        """The account that receives it; None if not known yet."""
        if self.signed is not None:
            return str(self.signed.transaction.receiver_id)
        response = self.tracker.response
        tx = None if response is None else response.result.transaction
        return None if tx is None else tx.receiver_id

    @property
    def is_included(self) -> bool:
        """True if a block is known to include it."""
        return self.tracker.is_included

    @property
    def is_over(self) -> bool:
        """True if it was rejected or dropped, or is final."""
        return self.tracker.is_over

    @property
    def stage(self) -> str:
        """The last stage reached."""
        return max((s.name for s in self._reached_stages()), key=STAGES.index, default="unknown")

    @property
    def drop_reason(self) -> str | None:
        """The reason of a drop: ``nonce overtaken``, ``expired`` or ``balance short``."""
        return self.tracker.drop_reason

    @property
    def fully_succeeded(self) -> bool | None:
        """True if its status and every receipt succeeded; None while unknown."""
        if self.tracker.refusal is not None:
            return None if self.tracker.is_unconfirmed else False
        verdict = self._current_trace().verdict if self.is_included else "pending"
        return None if verdict in ("pending", "unknown") else verdict == "fully_succeeded"

    @property
    def failure(self) -> LedgerError | None:
        """The error of its refusal, its drop or its first failed receipt; None without one."""
        if self.tracker.refusal is not None or not self.is_included:
            return self.tracker.refusal
        receipts = self._current_trace().receipts
        failed_ids = receipts.loc[receipts["status"] == "failure", "receipt_id"]
        failures = dict(self._failures())
        first = next((name for name in (self.tx_hash, *failed_ids) if name in failures), None)
        if first is None:
            return None
        error = chain_errors.receipt_failure(failures[first], receipt_id=first)
        networks.add_account_hint(self.ledger.network, error)
        return error

    @property
    def value(self) -> Any:
        """The returned value: decoded JSON, else bytes; None while there is none."""
        response = self.tracker.response
        status = None if response is None else response.result.status
        text = status.success_value if isinstance(status, Status) else None
        if not isinstance(text, str):
            return None
        try:
            return rpc.json_or_bytes(base64.b64decode(text, validate=True))
        except ValueError:
            path = "$.result.status.SuccessValue"
        msg = f"the value that transaction {self.tx_hash} returned is not base64 at {path}"
        raise DecodeError(msg, path=path)

    @property
    def logs(self) -> list[str]:
        """The logs of its receipts, in causal order."""
        if not self.is_included:
            return []
        return [line for lines in self._current_trace().receipts["logs"] for line in lines or ()]

    @property
    def trace(self) -> Trace | None:
        """The receipt tree, with heights and times; None until it is included."""
        self._locate()
        return self._trace if self.is_included else None

    @property
    def stages(self) -> pd.DataFrame:
        """The stages reached, with time and block of each, typed as ``schema("submission")``."""
        self._locate()
        return self._frame()

    def to_frame(self) -> pd.DataFrame:
        """
        Return the stages as a frame.

        Returns
        -------
        stages
            One row per stage, typed as `schema("submission")`.

        Notes
        -----
        Source: tx_status, on older nodes EXPERIMENTAL_tx_status; heights and times from block.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> sent = lk.transfer("bob.near", "1 NEAR", signer_id="alice.near")
        >>> sent.to_frame()[["stage", "time", "block_height"]]
                             stage                          time  block_height
        0                 accepted 2026-08-01 00:00:31.200+00:00     180000052
        1                 included 2026-08-01 00:00:31.800+00:00     180000053
        2  first_receipt_succeeded 2026-08-01 00:00:32.400+00:00     180000054
        3    all_receipts_complete 2026-08-01 00:00:33.000+00:00     180000055
        """
        return self.stages

    # Waiting ------------------------------------------------------------------------------

    def wait(self, wait_until: str = "FINAL", timeout_s: float | None = None) -> Submission:
        """
        Wait until the transaction reaches a level, or can no longer reach it.

        A transaction that no node knows is sent again, as the identical bytes.

        Parameters
        ----------
        wait_until
            The level: INCLUDED, EXECUTED_OPTIMISTIC, INCLUDED_FINAL, EXECUTED or FINAL.
        timeout_s
            The longest wait in seconds; None waits without a limit. A timeout is not an
            error: read `stage`, or call `wait` again.

        Returns
        -------
        submission
            This submission.

        Raises
        ------
        InvalidTransactionError
            If the ledger refuses the transaction for good, such as for its key.
        LedgerError
            If the node refuses the requests, such as for a wrong API key.

        Notes
        -----
        Source: tx_status, on older nodes EXPERIMENTAL_tx_status, and send_tx to send the bytes
        again; heights and times from block.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> sent = lk.transfer("bob.near", "1 NEAR", signer_id="alice.near")
        >>> sent.stage, sent.wait().stage
        ('first_receipt_succeeded', 'final')
        """
        level = validation.one_of(wait_until, "wait_until", validation.WAIT_LEVELS[1:])
        deadline = self.ledger.clock.monotonic() + (inf if timeout_s is None else timeout_s)
        wait_for_level(self, level, deadline)
        self._locate()
        return self

    def refresh(self) -> Submission:
        """
        Read the transaction's status once, without waiting.

        Returns
        -------
        submission
            This submission.

        Raises
        ------
        LedgerError
            If the status could not be read.

        Notes
        -----
        Source: tx_status, on older nodes EXPERIMENTAL_tx_status; heights and times from block.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> alice = lk.use_signer("alice.near", ledger.world.keys()["alice.near"])
        >>> sent = lk.transfer("bob.near", "1 NEAR", wait_until="INCLUDED")
        >>> sent.stage
        'included'
        >>> block = ledger.world.advance(3)
        >>> sent.refresh().stage
        'final'
        """
        if not self.is_over:
            self.tracker.refresh()
        self._locate()
        return self

    def raise_for_status(self) -> None:
        """
        Raise the error of the transaction, if it has one.

        Raises
        ------
        InvalidTransactionError
            If the ledger refused it.
        DroppedError
            If it was not included and can no longer be.
        ReceiptFailedError
            If a receipt failed; the error holds its id.

        Examples
        --------
        >>> ledger = lk.connect("local")
        >>> reason = {"message": "no"}
        >>> sent = lk.call("counter.near", "fail", reason, signer_id="alice.near")
        >>> try:
        ...     sent.raise_for_status()
        ... except lk.errors.ReceiptFailedError as error:
        ...     print(error.sentence)
        The function call failed: Smart contract panicked: no
        """
        failure = self.failure
        if failure is not None:
            raise failure

    # Reading ------------------------------------------------------------------------------

    def _current_trace(self) -> Trace:
        """Return the trace of the latest response, without sending a request."""
        response = self.tracker.response
        if response is None:
            raise UnknownTransactionError(transaction_hash=self.tx_hash)
        if self._trace is None or self._trace_response is not response:
            attrs = provenance(self.ledger, response.source)
            self._trace = Trace(
                response.result,
                response.body,
                blocks=self._blocks,
                attrs=attrs,
                tokens=partial(read_token_facts, self.ledger),
            )
            self._trace_response = response
        return self._trace

    def _locate(self) -> None:
        """Read the receipts and the blocks of the stages, once per response."""
        if not self.is_included or self._located_response is self.tracker.response:
            return
        response = broadcast.find_status(self.ledger, self.tx_hash, self.signer_id)
        if response is None:  # the block that included it was abandoned
            return
        self.tracker.update(response)
        self._read_blocks(response)
        if self.tracker.reaches("FINAL") and "final" not in self.tracker.stages:
            final = self.ledger.send(rpc.block(validation.block_reference("final"))).header
            stage = Stage("final", final.time_ns, final.height, final.hash)
            self.tracker.stages["final"] = stage
        self._located_response, self._trace_response = response, None
        self._current_trace()

    def _read_blocks(self, response: TransactionResponse) -> None:
        outcome = response.result.transaction_outcome
        hashes = {outcome.block_hash if outcome else None, *response.result.block_hashes()}
        missing = sorted(h for h in hashes if h is not None and h not in self._blocks)
        for block_hash, header in headers_by_hash(self.ledger, missing).items():
            self._blocks[block_hash] = (header.height, header.time_ns or 0)

    def _failures(self) -> Iterator[tuple[str, Any]]:
        if self.tracker.response is None:
            return
        result = self.tracker.response.result
        for outcome in (result.transaction_outcome, *result.outcomes):
            status = None if outcome is None else outcome.outcome.status
            failure = status.failure if isinstance(status, Status) else msgspec.UNSET
            if outcome is not None and failure is not msgspec.UNSET:
                yield outcome.id, decode_member(failure, f"the outcome of {outcome.id}")

    def _reached_stages(self) -> list[Stage]:
        stages = {stage.name: stage for stage in self._execution_stages()} | self.tracker.stages
        return sorted(stages.values(), key=lambda stage: STAGES.index(stage.name))

    def _execution_stages(self) -> Iterator[Stage]:
        if self.tracker.response is None or not self.is_included:
            return
        outcome = self.tracker.response.result.transaction_outcome
        yield self._stage_at("included", None if outcome is None else outcome.block_hash)
        receipts = self._current_trace().receipts
        executed = receipts[receipts["status"].isin(_EXECUTED)]
        if len(executed) and executed.index[0] == 0:
            yield self._first_receipt_stage(executed.iloc[0])
        if len(executed) and len(executed) == len(receipts):
            last_hash = self._highest_hash(list(executed["block_hash"]))
            yield self._stage_at("all_receipts_complete", last_hash)
        if self.tracker.reaches("FINAL"):
            yield Stage("final")

    def _first_receipt_stage(self, receipt: Any) -> Stage:
        if receipt["status"] != "failure":
            return self._stage_at("first_receipt_succeeded", receipt["block_hash"])
        message = str(receipt["error_message"])
        return self._stage_at("first_receipt_failed", receipt["block_hash"], message)

    def _highest_hash(self, hashes: list[str]) -> str:
        """Return the hash of the highest of these blocks; the last one if no height is known."""
        return max(reversed(hashes), key=lambda name: self._blocks.get(name, (0, 0))[0])

    def _stage_at(self, name: str, block_hash: str | None, detail: str | None = None) -> Stage:
        height, time_ns = self._blocks.get(block_hash or "", (None, None))
        return Stage(name, time_ns, height, block_hash, detail)

    # Display ------------------------------------------------------------------------------

    def _frame(self) -> pd.DataFrame:
        rows = self._reached_stages()
        members = {"stage": "name", "time": "time_ns", "block_height": "height"}
        hashes = [self.tx_hash] * len(rows)
        columns = build.columns_of("submission", rows, members, tx_hash=hashes)
        return build.build_frame("submission", columns, attrs={"network": self.ledger.network.name})

    def _summary(self) -> str:
        results = {True: ", fully succeeded", False: ", not fully succeeded", None: ""}
        receiver = f" -> {self.receiver_id}" if self.receiver_id else ""
        line = f"{self.tx_hash[:_HASH_CHARACTERS]}… {self.signer_id}{receiver}: {self.stage}"
        is_refused = self.stage in ("rejected", "dropped")
        return line if is_refused else line + results[self.fully_succeeded]

    def __repr__(self) -> str:
        return f"<Submission {self._summary()}>"

    def __reduce__(self) -> Never:
        """Raise a TypeError: a submission belongs to an open ledger."""
        msg = "a Submission is never pickled: store its tx_hash and signer_id, and call track()"
        raise TypeError(msg)

    def _repr_html_(self) -> str:
        names = ["stage", "time", "block_height", "detail"]
        table = human(self._frame()[names])._repr_html_()
        failure = self.failure
        problem = "" if failure is None else f"<p>{html_text(str(failure))}</p>"
        title = f"<p>{html_text(self._summary())}<br><code>{html_text(self.tx_hash)}</code></p>"
        headline = self._current_trace().headline() if self.is_included else ""
        summary = f"<p>{html_text(headline)}</p>" if headline else ""
        network = cards.network_line(self.ledger.network.name)
        return cards.card("ledgerkit-submission", [title, network, summary, problem, table])


def wait_for_level(submission: Submission, level: str, deadline: float) -> None:
    """Wait for a level until a time of the ledger's clock, and show the stage on one line."""
    clock, tracker = submission.ledger.clock, submission.tracker
    with Line() as line:
        while not (tracker.reaches(level) or tracker.is_over) and clock.monotonic() < deadline:
            line.show(lambda: repr(submission)[1:-1])
            tracker.advance(level, deadline)


# Recent submissions, for `track` ----------------------------------------------------------

_lock = threading.Lock()


def recent_submissions(ledger: Ledger) -> OrderedDict[str, Submission]:
    """Return the recent submissions of a ledger, by hash, oldest first."""
    submissions: OrderedDict[str, Submission] = ledger.memo("submissions", OrderedDict)
    return submissions


def remember(submission: Submission) -> None:
    """Store a submission for `track`, before it is sent."""
    with _lock:
        recent = recent_submissions(submission.ledger)
        recent[submission.tx_hash] = submission
        while len(recent) > _MAX_RECENT:
            recent.popitem(last=False)


def recall(ledger: Ledger, tx_hash: str, signer_id: str) -> Submission:
    """Return the submission that this ledger sent, or a new one for any other transaction."""
    with _lock:
        submission = recent_submissions(ledger).get(tx_hash)
    if submission is not None and submission.signer_id == signer_id:
        return submission
    return Submission(Tracker(ledger, tx_hash, signer_id))
