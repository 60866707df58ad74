"""A panel that signs and sends transactions, on the embedded ledger and testnet only."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ledgerkit import client
from ledgerkit.errors import InvalidRequestError
from ledgerkit.sending import signers, verbs
from ledgerkit.transport import networks
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Page, Panel, PanelResult
from ledgerkit.widgets._secret_field import SecretField
from ledgerkit.widgets.contracts import json_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd

    from ledgerkit.client import Ledger

ALLOWED = (networks.LOCAL, "testnet")
_STAGE_TIMEOUT_S = 60.0
_MAYBE_SENT = (
    "The transaction may have been sent: check the signer's last transactions before sending again."
)


def refuse_public(ledger: Ledger) -> Ledger:
    """Check that a ledger is the embedded one or testnet, and return it."""
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
    """Build a field for a secret key."""
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
    method, args
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

    def __init__(
        self,
        signer_id: str = "",
        receiver_id: str = "",
        amount: str = "0 NEAR",
        *,
        method: str = "",
        args: str = "{}",
        ledger: Ledger | None = None,
    ) -> None:
        self.key = secret_key_field()
        self.send = _panel.button("Send", "Send the previewed transaction", disabled=True)
        self._previewed: Callable[..., Any] | None = None
        self._is_sending = False
        self.submission: Any = None
        fields = {
            "signer_id": _panel.text_box("Signer", signer_id, "alice.near"),
            "receiver_id": _panel.text_box("Receiver", receiver_id, "bob.near"),
            "amount": _panel.text_box("Amount", amount, "0.1 NEAR"),
            "method": _panel.text_box("Method", method, "empty for a transfer"),
            "args": _panel.text_box("Arguments", args, "{}"),
        }
        super().__init__(fields, ledger, extra_fields=[self.key.box], buttons=[self.send])
        self.send.on_click(lambda _: self.submit())
        for widget in (*fields.values(), self.key.box):
            widget.observe(self._drop_preview, "value")

    def submit(self) -> None:
        """Send the previewed transaction once, as the button does; without waiting for it."""
        if not self._is_sending:
            send = self._previewed
            self._is_sending = self.send.disabled = True
            self._start(lambda: self._send_steps(send))

    def _send_steps(self, send: Callable[..., Any] | None) -> Iterator[PanelResult]:
        """Send the transaction, and show each stage that it reaches."""
        self.submission = None
        # A field may have changed between the click and the thread that runs this.
        if send is None or self._previewed is not send:
            raise InvalidRequestError(
                "Nothing was sent: there is no preview, or a field has changed since",
                remedy="Press Preview, check the transaction, then press Send.",
                field="preview",
            )
        self._previewed = None
        self.submission = send(wait_until="INCLUDED")
        yield _submission_result(self.submission)
        for stage in ("executed", "final"):
            self.submission.wait(stage, timeout_s=_STAGE_TIMEOUT_S)
            yield _submission_result(self.submission)

    def ask(self) -> None:
        """Preview the transaction, unless one is being sent."""
        if not self._is_sending:
            super().ask()

    def _read_steps(self, values: dict[str, Any]) -> Iterator[PanelResult]:
        """Preview the transaction."""
        ledger = refuse_public(client.current(self.ledger))
        send = send_function(values, self.key.secret, ledger)
        frame: pd.DataFrame = send(dry_run=True)
        sentence = f"Not sent yet. Press Send to send this transaction to {ledger.network.name}."
        names = ("amount", "method", "args") if values["method"] else ("amount",)
        facts = {"network": ledger.network.name, **{name: values[name] for name in names}}
        html = _html.facts({**facts, **_html.records(frame)[0]}.items())
        yield PanelResult(sentence, frame, (Page("Preview", html, frame),), value=send)

    def _show_result(self, result: PanelResult, warnings: Sequence[str] = ()) -> None:
        """Show a preview, which can then be sent, or a stage of the transaction."""
        super()._show_result(result, warnings)
        if not self._is_sending:
            self._previewed = result.value if callable(result.value) else None

    def _set_busy(self) -> None:
        """Disable all buttons but Cancel."""
        super()._set_busy()
        self.send.disabled = True
        if not self._is_sending:
            self._previewed = None

    def _set_ready(self) -> None:
        """Enable the buttons, and drop a key that was used."""
        if self._is_sending:
            self.key.clear()
        self._is_sending = False
        super()._set_ready()
        self.send.disabled = self._previewed is None

    def _show_cancelled(self) -> None:
        """Show that the request was cancelled; a transaction may have been sent all the same."""
        super()._show_cancelled()
        if self._is_sending:
            sent = _MAYBE_SENT if self.submission is None else self.submission.way_back()
            self._set_status(f"Cancelled. {sent}")

    def _show_error(self, error: Exception) -> None:
        """Show an error, and the transaction if it was sent before."""
        super()._show_error(error)
        if self._is_sending and self.submission is not None:
            self.status.value += _html.paragraph(self.submission.way_back())

    def _drop_preview(self, _: object) -> None:
        """Require a new preview after a field has changed."""
        self._previewed, self.send.disabled = None, True


def send_function(values: dict[str, Any], key: object, ledger: Ledger) -> Callable[..., Any]:
    """Build the function that sends a transaction, with ``dry_run=`` and ``wait_until=`` open."""
    options: Any = {"signer_id": values["signer_id"] or None, "key": key, "ledger": ledger}
    receiver_id, amount = values["receiver_id"], values["amount"]
    if not values["method"]:
        return partial(verbs.transfer, receiver_id, amount, **options)
    args = json_bytes(values["args"])
    options["deposit"] = amount or "0 NEAR"
    return partial(verbs.call, receiver_id, values["method"], args, **options)


def _submission_result(submission: Any) -> PanelResult:
    """Build the result that shows the stages of a submission."""
    frame = submission.to_frame()
    error = submission.failure
    alert = "" if error is None else _html.alert(error)
    outcome = "" if error is None else ", failed"
    sentence = f"Transaction {submission.tx_hash} of {submission.signer_id}: "
    sentence += f"{submission.stage}{outcome}."
    trace = submission.trace
    headline = "" if trace is None else _html.paragraph(trace.headline())
    html = headline + alert + _html.table(frame.drop(columns="tx_hash"), slim=True)
    return PanelResult(sentence, frame, (Page("Stages", html, frame),), value=submission)
