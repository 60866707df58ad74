"""The panel about many accounts and how each is exposed to staking."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import InvalidRequestError
from ledgerkit.verbs import tokens
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Found, Panel, Part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgerkit.client import Ledger

CLASSES = ("mixed", "direct_only", "liquid_only", "no_visible_staking_position")


class StakingExposure(Panel):
    """
    Many accounts, classed by how they are exposed to staking.

    Parameters
    ----------
    account_ids
        The accounts to begin with; `press` asks.
    nonzero
        Whether pools are asked, and entries known to be zero left out.
    ledger
        The ledger to ask; None is the session's default at the time of the question.
    """

    title = "Staking"
    action = "Class accounts"
    tooltip = "Read and class these accounts"

    def __init__(
        self,
        account_ids: Iterable[str] = (),
        *,
        nonzero: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        box = _panel.library().Textarea(
            description="Accounts",
            value="\n".join(account_ids),
            placeholder="one a line, or between commas",
            continuous_update=False,  # else each letter is a message to the kernel
            rows=5,
            style={"description_width": "9em"},
            layout={"width": "44em", "max_width": "100%"},
        )
        label = "Ask pools, and leave out what is zero"
        fields = {"account_ids": box, "nonzero": _panel.tick_box(label, value=nonzero)}
        super().__init__(fields, ledger)

    def _find(self, asked: dict[str, Any], ledger: Ledger) -> Found:
        """Class the accounts; one that could not be read has its own table."""
        ids = [one for one in re.split(r"[\s,;]+", asked["account_ids"]) if one]
        if not ids:
            raise InvalidRequestError.refuse("account_ids", "", "one account a line")
        frame, failures = tokens.exposure(
            ids, nonzero=asked["nonzero"], on_error="collect", progress=False, ledger=ledger
        )
        found = frame["exposure_class"].value_counts()
        counts = {name: int(found.get(name, 0)) for name in CLASSES}
        parts = [
            Part("Classes", _html.bars(counts, f"Accounts by class, of {len(frame)}")),
            Part("Accounts", _html.table(frame), frame),
        ]
        frames = {"exposure": frame, "errors": failures}
        if len(failures):
            parts.append(Part("Not read", _html.table(failures), failures))
        counted = _html.counted(len(frame), "account")
        sentence = f"{counted} on {ledger.network.name} classed"
        sentence += f", {len(failures)} not read." if len(failures) else "."
        return Found(sentence, frame, tuple(parts), frames)
