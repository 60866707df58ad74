"""A panel that archives a social database widget as a token, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import archiving, client
from ledgerkit.sending import signers
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Page, Panel, PanelResult
from ledgerkit.widgets.sending import refuse_public, secret_key_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from ledgerkit.archiving import Archive
    from ledgerkit.client import Ledger

_WIDGET = ("author_account_id", "widget_name", "receiver_id")
# States of a cancelled flow. The step that was running still ends, unobserved, in its thread.
_CANCELLED = {"running": "cancelled", "pending": "not_taken"}


class ArchiveFlow(Panel):
    """
    Archiving of a social database widget as a token, with the state of each step.

    Cancel ends the flow after the current step, and shows whether the token was minted.
    Archiving the widget again finishes an interrupted flow, without a second token.

    Parameters
    ----------
    author_account_id, widget_name
        The widget.
    receiver_id
        The account that will own the token.
    collection
        The contract of the collection.
    signer_id
        The account that signs and pays. The keys of the embedded ledger's accounts are
        known; elsewhere the key that is entered signs, or the session's signer.
    source
        The ledger that holds the social database; None is the target.
    ledger
        The target, which holds the collection; None is the session's default at the time of
        the request.
    """

    title = "Archive"
    action = "Archive"
    tooltip = "Read and hash the widget, mint the token and check it"
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
        self.key = secret_key_field()
        self._is_archiving = False
        fields = {
            "author_account_id": _panel.text_box("Author", author_account_id, "heidi.near"),
            "widget_name": _panel.text_box("Widget", widget_name, "widget name"),
            "receiver_id": _panel.text_box("Receiver", receiver_id, "alice.near"),
            "collection": _panel.text_box("Collection", collection, "stamps.grace.near"),
            "signer_id": _panel.text_box("Signer", signer_id, "grace.near"),
        }
        super().__init__(fields, ledger, extra_fields=[self.key.box])

    def ask(self) -> None:
        """Archive the widget, unless one is being archived."""
        if not self._is_archiving:
            super().ask()

    def _read_steps(self, values: dict[str, Any]) -> Iterator[PanelResult]:
        """Archive the widget, and show the state at each step."""
        target = refuse_public(client.current(self.ledger))
        signer = signers.find_signer(values["signer_id"] or None, self.key.secret, target)
        archives = archiving.archive_steps(
            *(values[name] for name in _WIDGET),
            source=self.source or target,
            target=target,
            collection=values["collection"],
            signer=signer,
        )
        yield from map(_archive_result, archives)

    def _set_busy(self) -> None:
        """Disable all buttons but Cancel."""
        self._is_archiving = True
        super()._set_busy()

    def _set_ready(self) -> None:
        """Enable the button, and drop the key."""
        self._is_archiving = False
        self.key.clear()
        super()._set_ready()

    def _show_cancelled(self) -> None:
        """Show whether the token was minted, and how to finish."""
        if not self._is_archiving:
            super()._show_cancelled()
            return
        archive = self.value
        self._clear_result()
        if archive is None:
            self._set_status("Cancelled before the first step. Nothing was minted.")
            return
        self._show_steps(archive, archive.steps.replace({"state": _CANCELLED}))
        self._set_status(f"Cancelled. {archive.way_back()}")

    def _show_error(self, error: Exception) -> None:
        """Show the error, the steps, and whether the token was minted."""
        archive = self.value
        super()._show_error(error)
        if archive is not None:
            self._show_steps(archive, archive.steps)
            self.status.value += _html.paragraph(archive.way_back())

    def _show_steps(self, archive: Archive, steps: pd.DataFrame) -> None:
        """Show the steps of a flow without a result."""
        self.value, self.frames = archive, {"steps": steps}
        self._show_pages((Page("Steps", _html.table(steps, slim=True), steps),))


def _archive_result(archive: Archive) -> PanelResult:
    """Build the result that shows the state or the outcome of a flow."""
    row, steps = archive.to_frame(), archive.steps
    frames = {"archive": row, "steps": steps}
    table = _html.table(steps, slim=True)
    if archive.outcome in archiving.MEANWHILE:
        return PanelResult(_step_text(archive), row, (Page("Steps", table),), frames, archive)
    pages = (
        Page("Steps", table, steps),
        Page("Token", _html.facts(_html.records(row)[0].items()), row),
    )
    return PanelResult(archiving.OUTCOMES[archive.outcome], row, pages, frames, archive)


def _step_text(archive: Archive) -> str:
    """Return the number and name of the current step."""
    if archive.step is None:
        return archiving.MEANWHILE[archive.outcome]
    number = archiving.STEPS.index(archive.step) + 1
    return f"Step {number} of {len(archiving.STEPS)}: {archive.step}…"
