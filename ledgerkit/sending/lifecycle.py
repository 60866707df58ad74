"""
The lifecycle of a transaction: broadcast, polled, sent again, included or dropped.

A `Tracker` stores the known state of one transaction and advances it; it displays nothing. Its
stages are the specification's. A refused transaction has the stage ``rejected``. An accepted one
passes ``accepted``, ``in_mempool`` and the stages of its receipts, or ends as ``dropped`` if it
can no longer be included.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, TypeVar

from ledgerkit import validation
from ledgerkit.api.chain_errors import (
    ExpiredError,
    InvalidNonceError,
    LackBalanceForStateError,
    NotEnoughAllowanceError,
    NotEnoughBalanceError,
    NotEnoughBalanceForDepositError,
    NotEnoughGasKeyBalanceError,
)
from ledgerkit.errors import (
    DroppedError,
    InvalidRequestError,
    InvalidTransactionError,
    LedgerError,
    RequestParseError,
    RequestRoutedError,
    TransactionTimeoutError,
    UnknownTransactionError,
)
from ledgerkit.sending import broadcast

if TYPE_CHECKING:
    from ledgerkit.api.models.transactions import TransactionResponse
    from ledgerkit.ledger import Ledger
    from ledgerkit.protocol import SignedTransaction
    from ledgerkit.sending.broadcast import DropCheck
    from ledgerkit.sending.nonces import NonceQueue

P = ParamSpec("P")
T = TypeVar("T")
_OUTDATED_REASONS = (broadcast.OVERTAKEN, broadcast.EXPIRED)  # a new signature may help
# The reported levels that imply a level. EXECUTED_OPTIMISTIC and INCLUDED_FINAL do not imply
# each other: receipts may run before the including block is final.
_IMPLIED_BY = {
    "INCLUDED": validation.WAIT_LEVELS[1:],
    "EXECUTED_OPTIMISTIC": ("EXECUTED_OPTIMISTIC", "EXECUTED", "FINAL"),
    "INCLUDED_FINAL": ("INCLUDED_FINAL", "EXECUTED", "FINAL"),
    "EXECUTED": ("EXECUTED", "FINAL"),
    "FINAL": ("FINAL",),
}
_OUTDATED_ERRORS = (InvalidNonceError, ExpiredError)
_BALANCE_ERRORS = (
    NotEnoughBalanceError,
    LackBalanceForStateError,
    NotEnoughAllowanceError,
    NotEnoughGasKeyBalanceError,
    NotEnoughBalanceForDepositError,
)


class Stage(NamedTuple):
    """A stage that was reached: its name, time, block and details."""

    name: str
    time_ns: int | None = None
    height: int | None = None
    block_hash: str | None = None
    detail: str | None = None


def _resumable(
    step: Callable[Concatenate[Tracker, P], T],
) -> Callable[Concatenate[Tracker, P], T]:
    """Decorate a step, so that its errors say how to resume: the transaction may be included."""

    @wraps(step)
    def run(self: Tracker, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return step(self, *args, **kwargs)
        except (InvalidTransactionError, RequestParseError):
            raise  # the ledger has refused it
        except LedgerError as error:
            self.add_hint(error)
            raise
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(self.resume_hint())
            raise

    return run


class Tracker:
    """
    The known state of one transaction, and the steps that advance it.

    With the signed bytes a lost transaction is sent again, and a drop can be detected;
    `anchor_height` is the height of the block that they reference.
    """

    def __init__(
        self,
        ledger: Ledger,
        tx_hash: str,
        signer_id: str,
        *,
        signed: SignedTransaction | None = None,
        anchor_height: int = 0,
        queue: NonceQueue | None = None,
    ) -> None:
        self.ledger = ledger
        self.tx_hash, self.signer_id = tx_hash, signer_id
        self.signed, self.anchor_height = signed, anchor_height
        self.stages: dict[str, Stage] = {}
        self.response: TransactionResponse | None = None
        self.refusal: LedgerError | None = None
        self.is_unconfirmed = False  # the refusal; earlier bytes may be included
        self.drop_reason: str | None = None
        self._queue = queue
        self._balance_refused_at: int | None = None

    @property
    def is_included(self) -> bool:
        """True if a block is known to include it."""
        outcome = None if self.response is None else self.response.result.transaction_outcome
        return outcome is not None or self.reaches("INCLUDED")  # some nodes send only the level

    @property
    def is_over(self) -> bool:
        """True if it was rejected for certain or dropped, or is final."""
        is_refused = self.refusal is not None and not self.is_unconfirmed
        return is_refused or self.reaches("FINAL")

    @property
    def is_rejected(self) -> bool:
        """True if the ledger refused it, and it has not been dropped since."""
        return "rejected" in self.stages and "dropped" not in self.stages

    def reaches(self, level: str) -> bool:
        """Return True if the transaction is known to have reached this level."""
        status = None if self.response is None else self.response.result.final_execution_status
        return status in _IMPLIED_BY[level]

    def resume_hint(self) -> str:
        """Return the sentence on how to resume this transaction."""
        return (
            f"Transaction {self.tx_hash} may be on its way: do not sign another one. "
            f'Call lk.track("{self.tx_hash}", "{self.signer_id}") to continue.'
        )

    def add_hint(self, error: LedgerError) -> None:
        """Add the sentence on how to resume to an error, once."""
        hint = self.resume_hint()
        if hint not in error.remedy:
            error.remedy = f"{error.remedy} {hint}".lstrip()

    # Steps --------------------------------------------------------------------------------

    @_resumable
    def send(self, signed: SignedTransaction, via: str, wait_until: str) -> None:
        """Send the signed bytes; a refusal becomes the stage ``rejected`` and is not raised."""
        start = broadcast.current_time(self.ledger)
        failed: list[LedgerError] = []
        try:
            response = broadcast.send_signed(self.ledger, signed, via, wait_until, failed)
        except (TransactionTimeoutError, RequestRoutedError):
            self.stages["accepted"] = Stage("accepted", *start)
        except InvalidTransactionError as error:
            self._mark_rejected(error)
            self.is_unconfirmed = bool(failed) or isinstance(error, _OUTDATED_ERRORS)
            if failed:
                self.add_hint(error)
                self.confirm_refusal()
        except InvalidRequestError:
            self._release_nonce()  # the node can't parse these bytes, now or later
            raise
        else:
            is_validated = via != "broadcast_tx_async" and wait_until != "NONE"
            detail = None if is_validated else "broadcast, not validated"
            self.stages["accepted"] = Stage("accepted", *start, detail)
            if is_validated:
                self.update(response)

    @_resumable
    def advance(self, level: str, deadline: float) -> None:
        """
        Poll for the next level on the way to `level`; without a response, check for a drop.

        A pause that the host asks for is cut at `deadline`, a time of the ledger's clock.
        """
        second = level if level == "INCLUDED_FINAL" else "EXECUTED_OPTIMISTIC"
        next_level = next((s for s in ("INCLUDED", second) if not self.reaches(s)), level)
        try:
            response = broadcast.poll_status(self.ledger, self.tx_hash, self.signer_id, next_level)
            self.update(response)
        except (TransactionTimeoutError, RequestRoutedError, UnknownTransactionError):
            if self.is_included:
                broadcast.wait_for_block(self.ledger)
            else:
                self._check_drop(resend=True)
        except LedgerError as error:
            if not error.retryable:
                raise
            pause_s = getattr(error, "retry_after", None)
            if pause_s is not None:
                pause_s = min(pause_s, max(0.0, deadline - self.ledger.clock.monotonic()))
            broadcast.wait_for_block(self.ledger, pause_s)

    @_resumable
    def refresh(self) -> None:
        """Read the status once; nothing is sent to the ledger."""
        response = broadcast.find_status(self.ledger, self.tx_hash, self.signer_id)
        if response is not None:
            self.update(response)
        elif self.signed is not None:
            self._check_drop(resend=False)

    def update(self, response: TransactionResponse) -> None:
        """Store a status; inclusion overrides an earlier refusal or drop."""
        self.response = response
        if self.is_included:
            self.refusal = self.drop_reason = None
            self.is_unconfirmed = False
            self.stages.pop("rejected", None)
            self.stages.pop("dropped", None)
            if self._queue is not None and self.signed is not None:
                self._queue.mark_used(self.signed.transaction.nonce)

    @_resumable
    def wait_until_signable(self) -> bool:
        """
        Return True if nonce or block were outdated and the signed bytes can't be included.

        Waits for final blocks until that is certain, or for at most `CONFIRM_TIMEOUT_S`.
        """
        if self.drop_reason is not None:
            return self.drop_reason in _OUTDATED_REASONS
        if self.signed is None or not isinstance(self.refusal, _OUTDATED_ERRORS):
            return False
        check = self._wait_for_check(self.signed, lambda check: check.reason is not None)
        if check is None:
            self.add_hint(self.refusal)
            return False
        self.is_unconfirmed = False
        return check.response is None

    @_resumable
    def confirm_refusal(self) -> None:
        """Check that refused bytes, which were broadcast before, were not included after all."""
        if self.refusal is None or isinstance(self.refusal, _OUTDATED_ERRORS):
            return
        if self.signed is not None:
            self._check_next_final(self.signed)

    # Drops and resending ------------------------------------------------------------------

    def _check_drop(self, *, resend: bool) -> None:
        """Check whether an unseen transaction can still be included; if so, send it again."""
        if self.signed is None:
            broadcast.wait_for_block(self.ledger)
            return
        if "accepted" in self.stages:
            self._add_stage("in_mempool", "inferred: accepted, and in no block yet")
        check = broadcast.check_drop(self.ledger, self.signed, self.anchor_height)
        if check.response is not None:
            self.update(check.response)
        elif check.reason is not None:
            self._mark_dropped(check.reason, check)
        elif resend:
            self._resend(self.signed, check)

    def _resend(self, signed: SignedTransaction, check: DropCheck) -> None:
        try:
            self.update(broadcast.send_signed(self.ledger, signed, "send_tx", "INCLUDED"))
            self._balance_refused_at = None
        except (TransactionTimeoutError, RequestRoutedError):
            self._balance_refused_at = None
        except InvalidTransactionError as error:
            self._handle_refusal(error, signed, check)
        except LedgerError as error:
            if not error.retryable:
                raise
            broadcast.wait_for_block(self.ledger)

    def _handle_refusal(
        self, error: InvalidTransactionError, signed: SignedTransaction, check: DropCheck
    ) -> None:
        """Raise the refusal, or wait for a block if it may pass or end in a drop."""
        if isinstance(error, _BALANCE_ERRORS):
            self._handle_short_balance(error, check)
        elif not isinstance(error, _OUTDATED_ERRORS) and not error.retryable:
            self._reject_or_update(error, signed)
            return
        broadcast.wait_for_block(self.ledger)

    def _reject_or_update(self, error: InvalidTransactionError, signed: SignedTransaction) -> None:
        """Raise a refusal for good, unless a block has included the bytes that were sent before."""
        # A transaction that deletes its own key or account is refused once it is included.
        check = self._check_next_final(signed)
        if check is not None and check.response is not None:
            return
        self._mark_rejected(error)
        if check is None:
            self.is_unconfirmed = True
            self.add_hint(error)
        raise error

    def _check_next_final(self, signed: SignedTransaction) -> DropCheck | None:
        height = broadcast.newest_block(self.ledger).header.height
        return self._wait_for_check(
            signed, lambda check: check.height is not None and check.height > height
        )

    def _wait_for_check(
        self, signed: SignedTransaction, is_enough: Callable[[DropCheck], bool]
    ) -> DropCheck | None:
        clock = self.ledger.clock
        deadline = clock.monotonic() + broadcast.CONFIRM_TIMEOUT_S
        while clock.monotonic() < deadline:
            check = broadcast.check_drop(self.ledger, signed, self.anchor_height)
            if check.response is not None:
                self.update(check.response)
            if check.response is not None or is_enough(check):
                return check
            broadcast.wait_for_block(self.ledger)
        return None

    def _handle_short_balance(self, error: InvalidTransactionError, check: DropCheck) -> None:
        """Mark it dropped if the balance is refused again after a newer final block."""
        if self._balance_refused_at is None:
            self._balance_refused_at = broadcast.newest_block(self.ledger).header.height
        elif check.height is not None and check.height > self._balance_refused_at:
            self._mark_dropped(f"{broadcast.SHORT}: {error.sentence}", check)

    def _mark_dropped(self, reason: str, check: DropCheck) -> None:
        self.is_unconfirmed = False
        self.drop_reason = reason.partition(":")[0]
        sentence = f"Transaction {self.tx_hash} was dropped ({reason})"
        self.refusal = DroppedError(sentence, transaction_hash=self.tx_hash)
        time_ns, *_ = broadcast.current_time(self.ledger)
        self.stages["dropped"] = Stage("dropped", time_ns, check.height, check.block_hash, reason)
        self._release_nonce()

    def _mark_rejected(self, error: InvalidTransactionError) -> None:
        self.is_unconfirmed = False
        self.refusal = error.with_traceback(None)
        self.stages.clear()
        self._add_stage("rejected", error.sentence)
        self._release_nonce()

    def _release_nonce(self) -> None:
        if self._queue is not None and self.signed is not None:
            self._queue.release(self.signed.transaction.nonce)

    def _add_stage(self, name: str, detail: str) -> None:
        if name not in self.stages:
            self.stages[name] = Stage(name, *broadcast.current_time(self.ledger), detail)
