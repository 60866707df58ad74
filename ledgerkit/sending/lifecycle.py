"""
What becomes of a transaction, step by step: sent, asked after, sent again, given up.

A `Course` knows and changes; it shows nothing. Its stages are the specification's:
``rejected``, or ``accepted``, ``in_mempool`` and, from its receipts, what follows; and
``dropped`` where it was accepted and can no longer be included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ledgerkit import validation
from ledgerkit.api.chain_errors import (
    ExpiredError,
    InvalidNonceError,
    LackBalanceForStateError,
    NotEnoughAllowanceError,
    NotEnoughBalanceError,
)
from ledgerkit.errors import (
    DroppedError,
    InvalidRequestError,
    InvalidTransactionError,
    LedgerError,
    RequestRoutedError,
    TransactionTimeoutError,
    UnknownTransactionError,
)
from ledgerkit.sending import broadcast

if TYPE_CHECKING:
    from ledgerkit.api.rpc import TxAnswer
    from ledgerkit.client import Ledger
    from ledgerkit.protocol import SignedTransaction
    from ledgerkit.sending.broadcast import Fate
    from ledgerkit.sending.nonces import Lane

OUTDATED = (broadcast.OVERTAKEN, broadcast.EXPIRED)  # why signing anew may help
# How far a transaction must be told to be for a level to be reached.
_ENOUGH = {
    "INCLUDED": validation.WAIT_LEVELS[1:],
    "EXECUTED_OPTIMISTIC": ("EXECUTED_OPTIMISTIC", "EXECUTED", "FINAL"),
    "INCLUDED_FINAL": ("INCLUDED_FINAL", "EXECUTED", "FINAL"),
    "EXECUTED": ("EXECUTED", "FINAL"),
    "FINAL": ("FINAL",),
}
_ON_THE_WAY = ("INCLUDED", "EXECUTED_OPTIMISTIC")
_STALE = (InvalidNonceError, ExpiredError)
_SHORT = (NotEnoughBalanceError, LackBalanceForStateError, NotEnoughAllowanceError)
_UNSEEN = "handed over, not validated"
_INFERRED = "inferred: accepted, and in no block yet"


class Stage(NamedTuple):
    """One stage that was reached: when, at which block, and what there is to say of it."""

    name: str
    time_ns: int | None = None
    height: int | None = None
    block_hash: str | None = None
    detail: str | None = None


class Course:
    """
    What is known of a transaction, and how to know more.

    Parameters
    ----------
    ledger
        Where it was sent.
    tx_hash
        Its hash, known before it was sent.
    signer_id
        Who signed.
    signed
        The signed bytes, where they are at hand. With them what never arrived is sent
        again, and it is found out whether it still can be included.
    signed_at
        Height of the block that they refer to.
    lane
        Whose nonce it uses.
    """

    def __init__(
        self,
        ledger: Ledger,
        tx_hash: str,
        signer_id: str,
        *,
        signed: SignedTransaction | None = None,
        signed_at: int = 0,
        lane: Lane | None = None,
    ) -> None:
        self.ledger = ledger
        self.tx_hash, self.signer_id = tx_hash, signer_id
        self.signed, self.signed_at = signed, signed_at
        self.noted: dict[str, Stage] = {}
        self.answer: TxAnswer | None = None
        self.refusal: LedgerError | None = None
        self.drop_reason: str | None = None
        self._lane = lane
        self._short_since: int | None = None

    @property
    def is_included(self) -> bool:
        """Whether a block has taken it, as far as is known."""
        told = None if self.answer is None else self.answer.result.transaction_outcome
        return told is not None or self.reaches("INCLUDED")  # which some nodes say without more

    @property
    def is_over(self) -> bool:
        """Whether nothing can become of it any more."""
        return self.refusal is not None or self.reaches("FINAL")

    def reaches(self, level: str) -> bool:
        """Tell whether it is known to be so far."""
        told = None if self.answer is None else self.answer.result.final_execution_status
        return told in _ENOUGH[level]

    def way_back(self) -> str:
        """Say how to pick it up again."""
        return (
            f"Transaction {self.tx_hash} may be on its way: do not sign another one. "
            f'lk.resume("{self.tx_hash}", "{self.signer_id}") picks it up.'
        )

    # Steps --------------------------------------------------------------------------------

    def hand_over(self, signed: SignedTransaction, via: str, wait_until: str) -> None:
        """
        Send the signed bytes.

        Parameters
        ----------
        signed
            The bytes.
        via
            The method.
        wait_until
            How far it is to be when the node answers.

        Raises
        ------
        LedgerError
            If nobody could be reached; says how to pick it up again. A refusal is not
            raised: it is the stage ``rejected``.
        """
        begun = broadcast.now(self.ledger)
        try:
            answer = broadcast.deliver(self.ledger, signed, via, wait_until)
        except (TransactionTimeoutError, RequestRoutedError):
            self.noted["accepted"] = Stage("accepted", *begun)
        except InvalidTransactionError as error:
            self._reject(error)
        except InvalidRequestError:
            self._free()  # it can't be read, and never will be
            raise
        except LedgerError as error:
            error.remedy = f"{error.remedy} {self.way_back()}"
            raise
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(self.way_back())
            raise
        else:
            unseen = via == "broadcast_tx_async" or wait_until == "NONE"
            self.noted["accepted"] = Stage("accepted", *begun, _UNSEEN if unseen else None)
            if not unseen:
                self.take(answer)

    def step(self, level: str) -> None:
        """Ask for the next level on the way to one; where there is no answer, find out why."""
        ahead = ("INCLUDED", level) if level == "INCLUDED_FINAL" else _ON_THE_WAY
        wanted = next((step for step in ahead if not self.reaches(step)), level)
        try:
            self.take(broadcast.ask(self.ledger, self.tx_hash, self.signer_id, wanted))
        except (TransactionTimeoutError, RequestRoutedError, UnknownTransactionError):
            if self.is_included:
                broadcast.pass_time(self.ledger)
            else:
                self._doubt(send=True)
        except LedgerError as error:
            if not error.retryable:
                raise
            broadcast.pass_time(self.ledger, getattr(error, "retry_after", None))

    def look(self) -> None:
        """Look once how far it is; sends nothing."""
        found = broadcast.look(self.ledger, self.tx_hash, self.signer_id)
        if found is not None:
            self.take(found)
        elif self.signed is not None:
            self._doubt(send=False)

    def take(self, answer: TxAnswer) -> None:
        """Take what a node tells."""
        self.answer = answer
        if self.is_included:
            self.refusal = self.drop_reason = None
            self.noted.pop("rejected", None)
            self.noted.pop("dropped", None)
            if self._lane is not None and self.signed is not None:
                self._lane.landed(self.signed.transaction.nonce)

    def is_lost(self) -> bool:
        """Tell whether nonce or block were out of date, and the bytes certainly can't land."""
        if self.drop_reason is not None:
            return self.drop_reason in OUTDATED
        if self.signed is None or not isinstance(self.refusal, _STALE):
            return False
        found = broadcast.is_surely_lost(self.ledger, self.signed, self.signed_at)
        if found is not None and found.answer is not None:
            self.take(found.answer)
        return found is not None and found.answer is None

    def confirm(self) -> None:
        """Make sure that bytes which were handed over before they were refused did not land."""
        if self.refusal is None or self.signed is None or isinstance(self.refusal, _STALE):
            return
        found = broadcast.is_still_unknown(self.ledger, self.signed, self.signed_at)
        if found is not None:
            self.take(found)

    # In doubt -----------------------------------------------------------------------------

    def _doubt(self, *, send: bool) -> None:
        """Find out whether what was not seen can still be included; if so, send it again."""
        if self.signed is None:
            broadcast.pass_time(self.ledger)
            return
        if "accepted" in self.noted:
            self._note("in_mempool", _INFERRED)
        found = broadcast.fate(self.ledger, self.signed, self.signed_at)
        if found.answer is not None:
            self.take(found.answer)
        elif found.reason is not None:
            self._drop(found.reason, found)
        elif send:
            self._send_again(self.signed, found)

    def _send_again(self, signed: SignedTransaction, found: Fate) -> None:
        """Send the identical bytes once more."""
        try:
            self.take(broadcast.deliver(self.ledger, signed, "send_tx", "INCLUDED"))
            self._short_since = None
        except (TransactionTimeoutError, RequestRoutedError):
            self._short_since = None
        except InvalidTransactionError as error:
            self._weigh(error, found)
        except LedgerError as error:
            if not error.retryable:
                raise
            broadcast.pass_time(self.ledger)

    def _weigh(self, error: InvalidTransactionError, found: Fate) -> None:
        """Tell a refusal that may pass, or that the next final block will explain."""
        if isinstance(error, _SHORT):
            self._weigh_lack(error, found)
        elif not isinstance(error, _STALE) and not error.retryable:
            self._reject(error)
            raise error
        broadcast.pass_time(self.ledger)

    def _weigh_lack(self, error: InvalidTransactionError, found: Fate) -> None:
        """Call it dropped when a final block later than the first such refusal lacks it too."""
        since = self._short_since
        if since is None:
            self._short_since = broadcast.head(self.ledger).header.height
        elif found.height is not None and found.height > since:
            self._drop(f"{broadcast.SHORT}: {error.sentence}", found)

    def _drop(self, reason: str, found: Fate) -> None:
        """Note that it can't be included any more."""
        self.drop_reason = reason.partition(":")[0]
        sentence = f"Transaction {self.tx_hash} was dropped ({reason})"
        self.refusal = DroppedError(sentence, transaction_hash=self.tx_hash)
        seen, *_ = broadcast.now(self.ledger)
        self.noted["dropped"] = Stage("dropped", seen, found.height, found.block_hash, reason)
        self._free()

    def _reject(self, error: InvalidTransactionError) -> None:
        """Note that the ledger refused it."""
        self.refusal = error.with_traceback(None)
        self.noted.clear()
        self._note("rejected", error.sentence)
        self._free()

    def _free(self) -> None:
        """Let the nonce be used by another."""
        if self._lane is not None and self.signed is not None:
            self._lane.give_back(self.signed.transaction.nonce)

    def _note(self, name: str, detail: str) -> None:
        """Note a stage when it is first seen."""
        if name not in self.noted:
            self.noted[name] = Stage(name, *broadcast.now(self.ledger), detail)
