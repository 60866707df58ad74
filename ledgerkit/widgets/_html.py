"""HTML of panels: tables, lists and messages, with every text escaped and shortened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from itertools import cycle
from typing import TYPE_CHECKING

from ledgerkit.errors import LedgerError, cut
from ledgerkit.frames import html_tables
from ledgerkit.frames.human import full_text, id_kinds, readable
from ledgerkit.units import count_text
from ledgerkit.visible_text import escape_invisible, html_text

if TYPE_CHECKING:
    import pandas as pd

_MAX_TEXT = 100  # characters
_MAX_HEADLINE = 600
_MAX_LONG_TEXT = 20_000  # characters of an explanation or a decoded result
STYLE = f"<style>{files(__package__).joinpath('static', 'static.css').read_text('utf-8')}</style>"
CLASSES = f"ledgerkit ledgerkit-panel {html_tables.NO_MATH}"
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#999999", "#CC79A7")  # colour-blind safe


# Texts ----------------------------------------------------------------------------------


def text(value: object, limit: int = _MAX_TEXT) -> str:
    """Format a value as one line, with markup and invisible characters escaped."""
    return html_text(cut(value, limit))


def paragraph(value: object) -> str:
    return f"<p>{text(value, 2_000)}</p>"


def preformatted(value: str) -> str:
    """Format a text of several lines unchanged, cut at 20,000 characters."""
    start = html_text(value[:_MAX_LONG_TEXT], keep="\n\t")
    return f"<pre>{start}</pre>{hidden_count(len(value) - _MAX_LONG_TEXT, 'more character')}"


def badge(label: str) -> str:
    return f'<strong class="badge" style="border-color:{COLOURS[0]}">{text(label)}</strong>'


def link(kind: str, id_: str, label: str = "") -> str:
    """Format an id, which a front end makes a link to its view."""
    target = f'data-kind="{text(kind)}" data-id="{html_text(id_)}"'
    return f"<span {target}>{text(label or id_, _MAX_HEADLINE)}</span>"


def status(html: str) -> str:
    """Wrap a status message, which screen readers announce politely."""
    return f'<div role="status" aria-live="polite">{html}</div>'


def alert(error: Exception, rewrite: Callable[[str], str] = str) -> str:
    """Format an error: what is wrong, then what to do; `rewrite` adapts both to the reader."""
    if isinstance(error, LedgerError):
        message, remedy = rewrite(str(error)), rewrite(escape_invisible(error.remedy))
        message = message.removesuffix(remedy).rstrip() if remedy else message
    else:
        message, remedy = f"{type(error).__name__}: {error}", ""
    advice = f"<br>What to do: {text(remedy, 600)}" if remedy else ""
    return f'<div role="alert"><strong>{text(message, 600)}</strong>{advice}</div>'


def hidden_count(number: int, noun: str, where: str = "") -> str:
    """Return a paragraph that counts what is left out; "" for none."""
    return f"<p>… and {count_text(number, noun)}{where}</p>" if number > 0 else ""


# Tables ---------------------------------------------------------------------------------


def facts_table(frame: pd.DataFrame, more: Iterable[tuple[str, object]] = ()) -> str:
    """Format the first row of a frame for reading; an exact value is the cell's tooltip."""
    row = frame.head(1)
    readable_row, kinds = readable(row, short_ids=False).iloc[0], id_kinds(row)
    cells = {name: text(value, 600) for name, value in more}
    for name, value in row.iloc[0].items():
        readable_text, exact = str(readable_row[str(name)]), full_text(value)
        kind = kinds.get(str(name))
        title = f' title="{text(exact, 600)}"' if exact != readable_text else ""
        plain = f"<span{title}>{text(readable_text)}</span>"
        cells[str(name)] = link(kind, exact) if kind and exact else plain
    return html_tables.table(
        (html_tables.row([html_tables.cell(c)], name=text(name)) for name, c in cells.items()),
        css_class="facts",
    )


def bars(counts: Mapping[str, int], caption: str) -> str:
    largest = max(counts.values(), default=0) or 1
    rows = []
    for (name, count), colour in zip(counts.items(), cycle(COLOURS), strict=False):
        style = f"width:{100 * count // largest}%;height:1.1em;background:{colour}"
        bar = html_tables.cell(f'<div style="{style}"></div>', ' style="width:22em"')
        rows.append(html_tables.row([bar, html_tables.cell(str(count))], name=text(name)))
    return html_tables.table(rows, caption=text(caption))
