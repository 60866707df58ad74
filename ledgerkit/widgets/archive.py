"""A panel that archives a social database widget as a token, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ledgerkit import archiving, client
from ledgerkit.sending import signers
from ledgerkit.widgets import _html
from ledgerkit.widgets._blocks import Content, Page
from ledgerkit.widgets._panel import Field, Panel
from ledgerkit.widgets._table import Table
from ledgerkit.widgets.sending import refuse_public, secret_key_field

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.archiving import Archive
    from ledgerkit.ledger import Ledger

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
    hint = (
        "Archive reads the source of a widget from the social database, hashes it, and mints a"
        " token with the source and its hash for the receiver; then it reads the token back. It"
        " sends one transaction, which the signer pays, unless the token is there already."
    )
    can_return = False

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
        fields = {
            "author_account_id": Field("Author", author_account_id, "heidi.near"),
            "widget_name": Field("Widget", widget_name, "widget name"),
            "receiver_id": Field("Receiver", receiver_id, "alice.near"),
            "collection": Field("Collection", collection, "stamps.grace.near"),
            "signer_id": Field("Signer", signer_id, "grace.near"),
        }
        super().__init__(fields, ledger, secrets={"key": self.key})

    def ask(self) -> None:
        """Archive the widget, unless one is being archived."""
        if not self.is_busy:
            super().ask()

    def _results(self, values: dict[str, Any]) -> Iterator[Content]:
        target = refuse_public(client.current(self.ledger))
        signer = signers.find_signer(values["signer_id"] or None, self.key.secret, target)
        archives = archiving.archive_steps(
            *(values[name] for name in _WIDGET),
            source=self.source or target,
            target=target,
            collection=values["collection"],
            signer=signer,
        )
        yield from map(_archive_content, archives)

    def _set_ready(self) -> None:
        self.key.clear()
        super()._set_ready()

    def _show_cancelled(self) -> None:
        archive = self.value
        if archive is None:
            minted = " before the first step. Nothing was minted" if self.is_busy else ""
            self._show(Content(f"Cancelled{minted}."))
            return
        steps = archive.steps.replace({"state": _CANCELLED})
        self._show(_steps_content(f"Cancelled. {archive.way_back()}", archive, steps))

    def _show_error(self, error: Exception) -> None:
        archive = self.value
        if archive is None:
            super()._show_error(error)
            return
        content = _steps_content(archive.way_back(), archive, archive.steps)
        self._show(replace(content, error=error))


def _steps_content(status: str, archive: Archive, steps: pd.DataFrame) -> Content:
    page = Page("Steps", Table(steps, name="steps", slim=True))
    return Content(status, pages=(page,), frames={"steps": steps}, value=archive)


def _archive_content(archive: Archive) -> Content:
    row, steps = archive.to_frame(), archive.steps
    pages = [Page("Steps", Table(steps, name="steps", slim=True))]
    if archive.outcome in archiving.OUTCOMES:
        pages.append(Page("Token", _html.facts_table(row)))
    status = {**archiving.OUTCOMES, **archiving.MEANWHILE}[archive.outcome]
    if archive.step is not None:
        number = archiving.STEPS.index(archive.step) + 1
        status = f"Step {number} of {len(archiving.STEPS)}: {archive.step}…"
    frames = {"archive": row, "steps": steps}
    return Content(status, row, tuple(pages), frames, archive)
