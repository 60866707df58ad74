"""The panel that signs and sends; only to the embedded ledger and to testnet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import client
from ledgerkit.errors import InvalidRequestError
from ledgerkit.sending import signers, verbs
from ledgerkit.transport import networks
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Found, Panel, Part
from ledgerkit.widgets._secret import Secret
from ledgerkit.widgets.contracts import checked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd

    from ledgerkit.client import Ledger

ALLOWED = (networks.LOCAL, "testnet")
_PATIENCE_S = 60.0
_DOUBT = "It may be on its way: look at the account's last transactions before sending again."


def refuse_public(ledger: Ledger) -> Ledger:
    """
    Refuse to send anywhere but to the embedded ledger and to testnet.

    Parameters
    ----------
    ledger
        Where it would be sent.

    Returns
    -------
    ledger
        That one.

    Raises
    ------
    InvalidRequestError
        If it is another network. The verbs that send ask the node for its chain besides.
    """
    if ledger.network.name not in ALLOWED:
        raise InvalidRequestError(
            f"A panel sends nothing to {ledger.network.name}",
            remedy='Connect to "local" or "testnet", or send with lk.transfer or lk.call.',
            field="network",
            value=ledger.network.name,
            rule="local or testnet",
        )
    return ledger


def secret_key() -> Secret:
    """
    Make a field for a secret key.

    Returns
    -------
    field
        The text that is typed is sealed at once; the embedded ledger's accounts need none.
    """
    return Secret("Secret key", signers.seal)


class SendForm(Panel):
    """
    Send NEAR or call a contract: first look at what would be sent, then send exactly that.

    Parameters
    ----------
    signer_id
        Who signs and pays. The accounts of the embedded ledger have published keys;
        elsewhere the session's signer signs, or the key that is typed.
    receiver_id
        Who receives it: an account, or the contract to call.
    amount
        How much NEAR, such as ``"0.1 NEAR"``.
    method, args
        The method to call, with arguments as a text of JSON; empty is a plain transfer.
    ledger
        Where it is sent; None is the session's default at the time.

    Attributes
    ----------
    submission
        What was sent last, as the verbs give it.
    """

    title = "Send"
    action = "Preview"
    tooltip = "Show what would be sent; nothing is signed for the ledger yet"
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
        self.key = secret_key()
        self.send = _panel.button("Send", "Sign and send what is previewed", disabled=True)
        self._order: Callable[..., Any] | None = None
        self._is_sending = False
        self.submission: Any = None
        fields = {
            "signer_id": _panel.text_box("Signed by", signer_id, "alice.near"),
            "receiver_id": _panel.text_box("To", receiver_id, "bob.near"),
            "amount": _panel.text_box("Amount", amount, "0.1 NEAR"),
            "method": _panel.text_box("Method", method, "empty: a plain transfer"),
            "args": _panel.text_box("Arguments", args, "{}"),
        }
        super().__init__(fields, ledger, more=[self.key.box], buttons=[self.send])
        self.send.on_click(lambda _: self.submit())
        self.key.box.on_msg(self._entered)
        for one in (*fields.values(), self.key.box):
            one.observe(self._changed, "value")

    def submit(self) -> None:
        """Send what was previewed, once; as the button does, without waiting for it."""
        if not self._is_sending:
            order = self._order
            self._is_sending = self.send.disabled = True
            self._begin(lambda: self._sent(order))

    def _sent(self, order: Callable[..., Any] | None) -> Iterator[Found]:
        """Send, and tell each stage that is reached."""
        self.submission = None
        self.submission = self._taken(order)(wait_until="INCLUDED")
        yield _course(self.submission)
        for stage in ("executed", "final"):
            self.submission.wait(stage, timeout_s=_PATIENCE_S)
            yield _course(self.submission)

    def _taken(self, order: Callable[..., Any] | None) -> Callable[..., Any]:
        """Take what is to be sent, unless a field has changed since it was shown."""
        if order is None or self._order is not order:
            raise InvalidRequestError(
                "Nothing was sent: a field has changed since the preview, or there is none",
                remedy="Press Preview, look at what it shows, then press Send.",
                field="preview",
            )
        self._order = None
        return order

    def ask(self) -> None:
        """Preview; while something is being sent nothing else begins."""
        if not self._is_sending:
            super().ask()

    def _steps(self, asked: dict[str, Any]) -> Iterator[Found]:
        """Show what would be sent."""
        ledger = refuse_public(client.current(self.ledger))
        order = ordered(asked, self.key.held, ledger)
        frame: pd.DataFrame = order(dry_run=True)
        sentence = f"Nothing is sent yet. Send hands this to {ledger.network.name}."
        called = ("amount", "method", "args") if asked["method"] else ("amount",)
        told = {"network": ledger.network.name, **{name: asked[name] for name in called}}
        shown = _html.facts({**told, **_html.records(frame)[0]}.items())
        yield Found(sentence, frame, (Part("Preview", shown, frame),), value=order)

    def _show(self, found: Found, notes: Sequence[str] = ()) -> None:
        """Let be sent what is previewed."""
        super()._show(found, notes)
        if not self._is_sending:
            self._order = found.value if callable(found.value) else None

    def _busy(self) -> None:
        """Let nothing be sent meanwhile."""
        super()._busy()
        self.send.disabled = True
        if not self._is_sending:
            self._order = None

    def _rest(self) -> None:
        """Be ready; a key that was used is dropped."""
        if self._is_sending:
            self.key.forget()
        self._is_sending = False
        super()._rest()
        self.send.disabled = self._order is None

    def _cancelled(self) -> None:
        """Say what a cancelled sending means: it may have happened all the same."""
        if not self._is_sending:
            super()._cancelled()
        elif self.submission is None:
            self._say(f"Nobody waits any more. {_DOUBT}")
        else:
            self._say(f"Nobody waits any more. {self.submission.way_back()}")

    def _fail(self, error: Exception) -> None:
        """Show what went wrong; what was sent before that is not lost sight of."""
        super()._fail(error)
        if self._is_sending and self.submission is not None:
            self.status.value += _html.paragraph(self.submission.way_back())

    def _changed(self, _: object) -> None:
        """Ask for a new preview where a field has changed."""
        self._order, self.send.disabled = None, True


def ordered(asked: dict[str, Any], key: object, ledger: Ledger) -> Callable[..., Any]:
    """
    Describe what is to be sent.

    Parameters
    ----------
    asked
        The fields.
    key
        What signs, sealed; None finds a key.
    ledger
        Where it goes.

    Returns
    -------
    order
        Takes ``dry_run=`` or ``wait_until=``, and does it.
    """
    how: Any = {"signer_id": asked["signer_id"] or None, "key": key, "ledger": ledger}
    if not asked["method"]:
        return lambda **more: verbs.transfer(asked["receiver_id"], asked["amount"], **how, **more)
    args, deposit = checked(asked["args"]), asked["amount"] or "0 NEAR"
    return lambda **more: verbs.call(
        asked["receiver_id"], asked["method"], args, deposit=deposit, **how, **more
    )


def _course(submission: Any) -> Found:
    """Tell how far a submission is."""
    frame = submission.to_frame()
    failed = submission.failure
    problem = "" if failed is None else _html.failure(failed)
    ended = "" if failed is None else ", and it failed"
    sentence = f"{submission.tx_hash} of {submission.signer_id}: {submission.stage}{ended}."
    shown = _html.table(frame.drop(columns="tx_hash"), slim=True)
    parts = (Part("Stages", problem + shown, frame),)
    return Found(sentence, frame, parts, value=submission)
