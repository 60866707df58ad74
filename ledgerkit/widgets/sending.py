"""A panel that signs and sends transactions, on the embedded ledger and testnet only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import InvalidRequestError
from ledgerkit.sending import signers, verbs
from ledgerkit.transport import networks
from ledgerkit.widgets import _html
from ledgerkit.widgets._blocks import Content, Page
from ledgerkit.widgets._panel import Button, Field, Panel, SecretField
from ledgerkit.widgets._table import Table
from ledgerkit.widgets.contracts import json_bytes

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.ledger import Ledger

ALLOWED = (networks.LOCAL, "testnet")
_STAGE_TIMEOUT_S = 60.0
_MAYBE_SENT = (
    "The transaction may have been sent: check the signer's last transactions before sending again."
)


def refuse_public(ledger: Ledger) -> Ledger:
    # The sending verbs also check the chain id of the node, which a name alone does not prove.
    if ledger.network.name not in ALLOWED:
        raise InvalidRequestError(
            f"Panels do not send transactions to {ledger.network.name}",
            remedy='Connect to "local" or "testnet", or send with lk.transfer or lk.call.',
            field="network",
            value=ledger.network.name,
            rule="local or testnet",
        )
    return ledger


def secret_key_field() -> SecretField:
    return SecretField("Secret key", signers.seal)


class SendForm(Panel):
    """
    A form that sends NEAR or calls a contract, after a preview of the transaction.

    Parameters
    ----------
    signer_id
        The account that signs and pays. The keys of the embedded ledger's accounts are
        known; elsewhere the key that is entered signs, or the session's signer.
    receiver_id
        The account that receives NEAR, or the contract to call.
    amount
        An amount such as ``"0.1 NEAR"``.
    method_name, args
        The method to call, with arguments as JSON text; without a method it is a transfer.
    ledger
        The ledger to send to; None is the session's default at the time of the request.

    Attributes
    ----------
    submission
        The last `Submission`, or None.
    """

    title = "Send"
    action = "Preview"
    tooltip = "Show the transaction without sending it"
    waiting = "Working…"
    can_return = False

    def __init__(
        self,
        signer_id: str = "",
        receiver_id: str = "",
        amount: str = "0 NEAR",
        *,
        method_name: str = "",
        args: str = "{}",
        ledger: Ledger | None = None,
    ) -> None:
        self.key = secret_key_field()
        self.send = Button("Send", "Send the previewed transaction", self.submit)
        self._previewed: tuple[dict[str, Any], Callable[..., Any]] | None = None
        self._is_sending = False
        self.submission: Any = None
        fields = {
            "signer_id": Field("Signer", signer_id, "alice.near"),
            "receiver_id": Field("Receiver", receiver_id, "bob.near"),
            "amount": Field("Amount", amount, "0.1 NEAR"),
            "method_name": Field("Method", method_name, "empty for a transfer"),
            "args": Field("Arguments", args, "{}"),
        }
        secrets, buttons = {"key": self.key}, {"send": self.send}
        super().__init__(fields, ledger, secrets=secrets, buttons=buttons)

    def submit(self) -> None:
        """Send the previewed transaction once, as the button does; without waiting for it."""
        if not self._is_sending:
            previewed, self._previewed = self._previewed, None
            self._is_sending = True
            self._start(self._send(previewed, self.values()))

    def _send(
        self, previewed: tuple[dict[str, Any], Callable[..., Any]] | None, values: dict[str, Any]
    ) -> Iterator[Content]:
        """Send the transaction if it was previewed as the form is now, and follow its stages."""
        self.submission = None
        if previewed is None or previewed[0] != values:
            raise InvalidRequestError(
                "Nothing was sent: there is no preview, or a field has changed since",
                remedy="Press Preview, check the transaction, then press Send.",
                field="preview",
            )
        self.submission = previewed[1](wait_until="INCLUDED")
        yield _submission_content(self.submission)
        for level in ("EXECUTED_OPTIMISTIC", "FINAL"):
            self.submission.wait(level, timeout_s=_STAGE_TIMEOUT_S)
            yield _submission_content(self.submission)

    def ask(self) -> None:
        """Preview the transaction, unless one is being sent."""
        if not self._is_sending:
            super().ask()

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        refuse_public(ledger)
        send = send_function(values, self.key.secret, ledger)
        frame: pd.DataFrame = send(dry_run=True)
        sentence = f"Not sent yet. Press Send to send this transaction to {ledger.network.name}."
        names = ("amount", "method_name", "args") if values["method_name"] else ("amount",)
        facts = {"network": ledger.network.name, **{name: values[name] for name in names}}
        page = Page("Preview", _html.facts_table(frame, facts.items()))
        return Content(sentence, frame, (page,), value=(values, send))

    def _show(self, content: Content) -> None:
        if not self._is_sending:
            self._previewed = content.value
        super()._show(content)

    def _set_busy(self) -> None:
        self.send.enabled = False
        super()._set_busy()

    def _set_ready(self) -> None:
        if self._is_sending:
            self.key.clear()
        self._is_sending = False
        self.send.enabled = self._previewed is not None
        super()._set_ready()

    def _show_cancelled(self) -> None:
        """Show that the request was cancelled; a transaction may have been sent all the same."""
        self._show(Content(f"Cancelled. {self._outcome()}" if self._is_sending else "Cancelled."))

    def _show_error(self, error: Exception) -> None:
        is_sent = self._is_sending and self.submission is not None
        self._show(Content(self._outcome() if is_sent else "", error=error))

    def _outcome(self) -> str:
        sent = self.submission
        return _MAYBE_SENT if sent is None else sent.tracker.resume_hint()


def send_function(values: dict[str, Any], key: object, ledger: Ledger) -> Callable[..., Any]:
    """Build the function that sends a transaction, with ``dry_run=`` and ``wait_until=`` open."""
    options: Any = {"signer_id": values["signer_id"] or None, "key": key, "ledger": ledger}
    receiver_id, amount = values["receiver_id"], values["amount"]
    if not values["method_name"]:
        return partial(verbs.transfer, receiver_id, amount, **options)
    args = json_bytes(values["args"])
    options["deposit"] = amount or "0 NEAR"
    return partial(verbs.call, receiver_id, values["method_name"], args, **options)


def _submission_content(submission: Any) -> Content:
    frame = submission.to_frame()
    error = submission.failure
    alert = "" if error is None else _html.alert(error)
    outcome = "" if error is None else ", failed"
    sentence = f"Transaction {submission.tx_hash} of {submission.signer_id}: "
    sentence += f"{submission.stage}{outcome}."
    trace = submission.trace
    headline = "" if trace is None else _html.paragraph(trace.headline())
    table = Table(frame.drop(columns="tx_hash"), name="stages", slim=True)
    page = Page("Stages", headline + alert, table)
    return Content(sentence, frame, (page,), value=submission)
