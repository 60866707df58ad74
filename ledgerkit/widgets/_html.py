"""HTML of panels: tables, lists and messages, with every text escaped and shortened."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit.cards import NO_MATH, html_text
from ledgerkit.errors import LedgerError, cut
from ledgerkit.units import count_text
from ledgerkit.visible_text import escape_invisible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MAX_TEXT = 100  # characters
_MAX_ROWS = 50
_MAX_COLUMNS = 50
_MAX_ITEMS = 1_000  # of a list in a cell, which shows far fewer
_MAX_LONG_TEXT = 20_000  # characters of an explanation or a decoded result
STYLE = """<style>
.ledgerkit-panel table { border-collapse: collapse }
.ledgerkit-panel caption { text-align: left; padding: .3em 0 }
.ledgerkit-panel th, .ledgerkit-panel td { padding: .2em .8em; text-align: left;
  white-space: nowrap; border-bottom: 1px solid #8885 }
.ledgerkit-panel th.number, .ledgerkit-panel td.number { text-align: right }
.ledgerkit-panel table.facts { width: auto }
.ledgerkit-panel table.facts td { text-align: left }
.ledgerkit-panel .scroll { overflow-x: auto }
.ledgerkit-panel .badge { border: 2px solid; border-radius: 1em; padding: .1em .7em }
.ledgerkit-panel [role="alert"] { border-left: 4px solid #b00020; padding: .4em .8em;
  line-height: 1.4; overflow-wrap: anywhere }
.ledgerkit-panel pre { white-space: pre-wrap; overflow-wrap: anywhere; word-break: normal;
  line-height: 1.4 }
.ledgerkit-panel .prose { white-space: pre-wrap; line-height: 1.5; max-width: 60em }
.ledgerkit-panel ul.tree { list-style: none; padding: 0 }
.ledgerkit-panel ul.tree li { padding: .1em .6em; border-left: 4px solid; line-height: 1.4 }
.ledgerkit-panel .cards { display: flex; flex-wrap: wrap; gap: .8em }
.ledgerkit-panel figure { border: 1px solid #8885; border-radius: 6px; padding: .6em; margin: 0;
  width: 15em; overflow-wrap: anywhere; line-height: 1.4 }
.ledgerkit-panel img { max-width: 100% }
.ledgerkit-panel a { color: #0072b2; text-decoration: underline }
</style>"""
CLASSES = f"ledgerkit-panel {NO_MATH}"
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#999999", "#CC79A7")  # colour-blind safe


# Texts ----------------------------------------------------------------------------------


def text(value: object, limit: int = _MAX_TEXT) -> str:
    """Format a value as one line, with markup and invisible characters escaped."""
    return html_text(cut(value, limit))


def paragraph(value: object, limit: int = 2_000) -> str:
    """Format a paragraph."""
    return f"<p>{text(value, limit)}</p>"


def preformatted(value: str) -> str:
    """Format a text of several lines as it is, cut at 20,000 characters."""
    return f"<pre>{_long_text(value)}</pre>{_cut_characters(value)}"


def prose(value: str) -> str:
    """Format sentences with their line breaks, cut at 20,000 characters."""
    return f'<p class="prose">{_long_text(value)}</p>{_cut_characters(value)}'


def badge(word: str, colour: str = COLOURS[0]) -> str:
    """Format a word as a badge."""
    return f'<strong class="badge" style="border-color:{colour}">{text(word)}</strong>'


def status(html: str) -> str:
    """Wrap a status message, which screen readers announce politely."""
    return f'<div role="status" aria-live="polite">{html}</div>'


def alert(error: Exception) -> str:
    """Format an error: what is wrong, then what to do."""
    if isinstance(error, LedgerError):
        message, remedy = str(error), escape_invisible(error.remedy)
        message = message.removesuffix(remedy).rstrip() if remedy else message
    else:
        message, remedy = f"{type(error).__name__}: {error}", ""
    advice = f"<br>What to do: {text(remedy, 600)}" if remedy else ""
    return f'<div role="alert"><strong>{text(message, 600)}</strong>{advice}</div>'


def _long_text(value: str) -> str:
    """Escape the start of a text, with its line breaks."""
    return html_text(value[:_MAX_LONG_TEXT], keep="\n\t")


def _cut_characters(value: str) -> str:
    """Count the characters that `_long_text` cuts."""
    return hidden_count(len(value) - _MAX_LONG_TEXT, "more character")


def hidden_count(number: int, noun: str, where: str = "") -> str:
    """Count what is not shown; nothing for zero."""
    return f"<p>… and {count_text(number, noun)}{where}</p>" if number > 0 else ""


# Tables ---------------------------------------------------------------------------------


def table(frame: pd.DataFrame, caption: str = "", *, slim: bool = False) -> str:
    """Format the first rows of a frame; with `slim`, without empty columns."""
    whole = frame.dropna(axis="columns", how="all") if slim and len(frame) else frame
    head = whole.iloc[:_MAX_ROWS, :_MAX_COLUMNS]
    columns = [column.tolist() for _, column in head.items()]
    classes = [' class="number"' if _is_numeric(values) else "" for values in columns]
    names = "".join(
        f'<th scope="col"{css}>{text(name)}</th>' for name, css in zip(head, classes, strict=True)
    )
    rows = "".join(_row(values, classes) for values in zip(*columns, strict=True))
    hidden = hidden_count(len(whole) - len(head), "more row", " in .result")
    hidden += hidden_count(whole.shape[1] - head.shape[1], "more column", " in .result")
    return (
        f'<div class="scroll"><table>{_caption(caption)}'
        f"<thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table></div>{hidden}"
    )


def facts(pairs: Iterable[tuple[str, object]], caption: str = "") -> str:
    """Format names and values as a table of two columns."""
    rows = "".join(
        f'<tr><th scope="row">{text(name)}</th><td>{text(_cell(value))}</td></tr>'
        for name, value in pairs
    )
    return f'<table class="facts">{_caption(caption)}<tbody>{rows}</tbody></table>'


def bars(counts: Mapping[str, int], caption: str) -> str:
    """Format counts as horizontal bars."""
    largest = max(counts.values(), default=0) or 1
    rows = "".join(
        f'<tr><th scope="row">{text(name)}</th>'
        f'<td style="width:22em"><div style="width:{100 * count // largest}%;height:1.1em;'
        f'background:{COLOURS[at % len(COLOURS)]}"></div></td><td>{count}</td></tr>'
        for at, (name, count) in enumerate(counts.items())
    )
    return f"<table>{_caption(caption)}<tbody>{rows}</tbody></table>"


def picture(png: bytes, alt: str) -> str:
    """Format a picture with its alternative text."""
    data = base64.b64encode(png).decode("ascii")
    return f'<img alt="{text(alt, 600)}" src="data:image/png;base64,{data}">'


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as dicts."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _caption(caption: str) -> str:
    """Format a table's caption."""
    return f"<caption>{text(caption, 200)}</caption>" if caption else ""


def _row(values: tuple[Any, ...], classes: list[str]) -> str:
    """Format a row; missing values are empty cells."""
    cells = zip(values, classes, strict=True)
    return f"<tr>{''.join(f'<td{css}>{text(_cell(value))}</td>' for value, css in cells)}</tr>"


def _is_numeric(values: list[Any]) -> bool:
    """Return True if a column holds only numbers, which are aligned right."""
    return all(map(_is_number, values)) and not all(map(_is_missing, values))


def _is_number(value: Any) -> bool:
    """Return True for numbers and missing values."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number or _is_missing(value)


def _is_missing(value: Any) -> bool:
    """Return True for None, NA and NaN."""
    return value is None or (not isinstance(value, dict | list | tuple) and bool(pd.isna(value)))


def _cell(value: Any) -> object:
    """Convert a value to what its cell shows."""
    if isinstance(value, float) and not pd.isna(value):
        return f"{value:.10g}"  # in human units; another column has the exact amount
    if isinstance(value, dict | list | tuple):
        try:
            return _container_text(value)
        except RecursionError:  # deeply nested; text() shortens it
            return value
    return "" if _is_missing(value) else value


def _container_text(value: dict[Any, Any] | list[Any] | tuple[Any, ...]) -> str:
    """Format an object as JSON, and the first items of a list between commas."""
    if isinstance(value, dict):
        return json.dumps(value, default=str) if value else ""
    return ", ".join(str(_cell(item)) for item in value[:_MAX_ITEMS])
