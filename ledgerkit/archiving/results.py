"""What the results of the flow share: columns of a record, and a card."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.archiving.widget_sources import Record


def columns_of(record: Record | None, *names: str) -> dict[str, Any]:
    """Give columns of a record: those named, and where the source was read."""
    where = ("source_contract_id", "source_network", "socialdb_block_height", "source_sha256")
    return {name: getattr(record, name, None) for name in (*names, *where)}


def card(kind: str, title: str, sentence: str, frame: pd.DataFrame) -> str:
    """Draw a card over a table."""
    shown = frame.astype(object).where(frame.notna(), "")
    table = shown.to_html(escape=True, border=0, index=False)
    head = f"<h3>{escape(title)}</h3><p>{escape(sentence)}</p>"
    kept = f"ledgerkit-{kind} tex2jax_ignore mathjax_ignore"  # no formulas, as in cards
    return f'<div class="{kept}">{head}{table}</div>'
