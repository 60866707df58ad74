"""A panel that classifies many accounts by staking exposure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import InvalidRequestError
from ledgerkit.units import count_text
from ledgerkit.verbs import tokens
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._blocks import Content, Page
from ledgerkit.widgets._fields import Field
from ledgerkit.widgets._panel import Panel
from ledgerkit.widgets._table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgerkit.ledger import Ledger

CLASSES = ("mixed", "direct_only", "liquid_only", "no_visible_staking_position")


class StakingExposure(Panel):
    """
    The staking exposure classes of many accounts.

    Parameters
    ----------
    account_ids
        The initial value of the field.
    nonzero
        True calls the pools, and ignores positions that are zero.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    """

    title = "Staking"
    action = "Classify"
    tooltip = "Look up and classify these accounts"

    def __init__(
        self,
        account_ids: Iterable[str] = (),
        *,
        nonzero: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        example = "one per line, or separated by commas"
        fields = {
            "account_ids": Field("Accounts", "\n".join(account_ids), example, kind="lines"),
            "nonzero": Field("Call pools, ignore zero positions", nonzero, kind="check"),
        }
        super().__init__(fields, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        ids = [name for name in re.split(r"[\s,;]+", values["account_ids"]) if name]
        if not ids:
            raise InvalidRequestError.required("account_ids", "one account per line")
        frame, errors = tokens.exposure(
            ids, nonzero=values["nonzero"], on_error="collect", progress=False, ledger=ledger
        )
        is_indexed = frame["status"] == "ok"
        sizes = frame.loc[is_indexed, "exposure_class"].value_counts()
        counts = {name.replace("_", " "): int(sizes.get(name, 0)) for name in CLASSES}
        if not is_indexed.all():
            counts["not indexed"] = int((~is_indexed).sum())
        pages = [
            Page("Classes", _html.bars(counts, f"Accounts by class, of {len(frame)}")),
            Page("Accounts", Table(frame, name="exposure")),
            *_panel.error_pages(errors),
        ]
        sentence = f"{count_text(len(frame), 'account')} on {ledger.network.name} classified"
        sentence += f", {count_text(len(errors), 'error')}." if len(errors) else "."
        return Content(sentence, frame, tuple(pages), {"exposure": frame, "errors": errors})
