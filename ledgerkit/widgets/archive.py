"""The panel of the archive flow: a widget's source becomes a token, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit import archiving, client, signers
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Found, Panel, Part
from ledgerkit.widgets.sending import refuse_public, secret_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.client import Ledger

_WIDGET = ("author_account_id", "widget_name", "receiver_id")


class ArchiveFlow(Panel):
    """
    Archive a widget of the social database as a token, and see how each step went.

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
        """Show the steps ahead, then how each went."""
        target = refuse_public(client.current(self.ledger))
        signer = signers.find(asked["signer_id"] or None, self.key.held, target)
        ahead = pd.DataFrame({"step": archiving.STEPS, "state": "not_taken"})
        yield Found("Archiving…", ahead, (Part("Steps", _html.table(ahead)),))
        done = archiving.archive_widget(
            *(asked[name] for name in _WIDGET),
            source=self.source or target,
            target=target,
            collection=asked["collection"],
            signer=signer,
        )
        row = done.to_frame()
        parts = (
            Part("Steps", _html.table(done.steps, slim=True), done.steps),
            Part("Token", _html.facts(_html.records(row)[0].items()), row),
        )
        frames = {"archive": row, "steps": done.steps}
        yield Found(archiving.OUTCOMES[done.outcome], row, parts, frames, done)

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
        """Say what a cancelled flow means."""
        self._clear()
        self._say(
            "Nobody waits any more. A token may be on its way: take the flow again to see, "
            "it mints no second one."
        )
