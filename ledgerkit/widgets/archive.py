"""The panel of the archive flow: a widget's source becomes a token, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import archiving, client
from ledgerkit.sending import signers
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Found, Panel, Part
from ledgerkit.widgets.sending import refuse_public, secret_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from ledgerkit.archiving import Archive
    from ledgerkit.client import Ledger

_WIDGET = ("author_account_id", "widget_name", "receiver_id")
_LEFT = "Cancelled before the first step; nothing was minted."


class ArchiveFlow(Panel):
    """
    Archive a widget of the social database as a token, and see each step as it is taken.

    Cancel leaves the flow after the step that runs, and says what there is of the token.
    Taking the flow again finishes one that broke off, without a second token.

    Parameters
    ----------
    author_account_id, widget_name
        The widget.
    receiver_id
        Whose the token becomes.
    collection
        The collection's contract.
    signer_id
        Who signs the minting and pays. The accounts of the embedded ledger have published
        keys; elsewhere the session's signer signs, or the key that is typed.
    source
        The ledger that holds the social database; None is the target.
    ledger
        The target, which holds the collection; None is the session's default at the time.
    """

    title = "Archive"
    action = "Archive"
    tooltip = "Read, hash, mint and check; an archived widget is not minted again"
    waiting = "Archiving…"

    def __init__(
        self,
        author_account_id: str = "",
        widget_name: str = "",
        receiver_id: str = "",
        collection: str = "",
        signer_id: str = "",
        *,
        source: Ledger | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.source = source
        self.key = secret_key()
        self._is_minting = False
        fields = {
            "author_account_id": _panel.text_box("Author", author_account_id, "heidi.near"),
            "widget_name": _panel.text_box("Widget", widget_name, "its name"),
            "receiver_id": _panel.text_box("Receiver", receiver_id, "alice.near"),
            "collection": _panel.text_box("Collection", collection, "stamps.grace.near"),
            "signer_id": _panel.text_box("Signed by", signer_id, "grace.near"),
        }
        super().__init__(fields, ledger, more=[self.key.box])
        self.key.box.on_msg(self._entered)

    def ask(self) -> None:
        """Take the flow, unless it is being taken."""
        if not self._is_minting:
            super().ask()

    def _steps(self, asked: dict[str, Any]) -> Iterator[Found]:
        """Show each step as it begins, with what those before it found."""
        target = refuse_public(client.current(self.ledger))
        signer = signers.find_signer(asked["signer_id"] or None, self.key.held, target)
        flow = archiving.archive_steps(
            *(asked[name] for name in _WIDGET),
            source=self.source or target,
            target=target,
            collection=asked["collection"],
            signer=signer,
        )
        yield from map(_course, flow)

    def _busy(self) -> None:
        """Begin; it is taken once at a time."""
        self._is_minting = True
        super()._busy()

    def _rest(self) -> None:
        """Be ready; a key that was used is dropped."""
        self._is_minting = False
        self.key.forget()
        super()._rest()

    def _cancelled(self) -> None:
        """Say what there is of the token, and how to go on; the step that runs ends unseen."""
        if not self._is_minting:
            super()._cancelled()
            return
        left = self.value
        self._clear()
        if left is None:
            self._say(_LEFT)
            return
        words = {"running": "left alone", "pending": "not_taken"}
        self._keep(left, left.steps.replace({"state": words}))
        self._say(f"Nobody waits any more. {left.way_back()}")

    def _fail(self, error: Exception) -> None:
        """Show what went wrong, at which step, and what there is of the token."""
        left = self.value
        super()._fail(error)
        if left is not None:
            self._keep(left, left.steps)
            self.status.value += _html.paragraph(left.way_back())

    def _keep(self, left: Archive, steps: pd.DataFrame) -> None:
        """Go on showing the steps of a flow that has no answer."""
        self.value, self.frames = left, {"steps": steps}
        self._place((Part("Steps", _html.table(steps, slim=True), steps),))


def _course(now: Archive) -> Found:
    """Tell how far a flow is, or how it went."""
    row, steps = now.to_frame(), now.steps
    frames = {"archive": row, "steps": steps}
    if now.outcome in archiving.MEANWHILE:
        shown = _html.table(steps, slim=True)
        return Found(_sentence(now), row, (Part("Steps", shown),), frames, now)
    parts = (
        Part("Steps", _html.table(steps, slim=True), steps),
        Part("Token", _html.facts(_html.records(row)[0].items()), row),
    )
    return Found(archiving.OUTCOMES[now.outcome], row, parts, frames, now)


def _sentence(now: Archive) -> str:
    """Say in a sentence which step is being taken."""
    step = now.step
    if step is None:
        return archiving.MEANWHILE[now.outcome]
    place = archiving.STEPS.index(step) + 1
    return f"Step {place} of {len(archiving.STEPS)}: {step}…"
