"""The HTML of panels: every text is escaped, shortened and kept in its place."""

from __future__ import annotations

import base64
import json
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit.cards import visible
from ledgerkit.errors import LedgerError, cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LONGEST = 100
_MOST_ROWS = 50
_MOST_COLUMNS = 50
_MOST_LISTED = 1_000  # parts of a cell; far more than are shown of it
_MOST_WRITTEN = 20_000  # characters of a decoded answer
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
PLAIN = "tex2jax_ignore mathjax_ignore"  # keeps formulas out: a token may be called $A$
CLASSES = f"ledgerkit-panel {PLAIN}"
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#999999", "#CC79A7")  # told apart by any eye


def text(value: object, limit: int = _LONGEST) -> str:
    """Write a value on one line; what does not print, such as a change of direction, shows."""
    return escape(visible(cut(value, limit)))


def counted(number: int, one: str, many: str = "") -> str:
    """Write a number and what is counted, one or many."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def paragraph(value: object, limit: int = 2_000) -> str:
    """Write a paragraph."""
    return f"<p>{text(value, limit)}</p>"


def written(value: str) -> str:
    """Write a text of several lines as it is; of a long one the beginning."""
    return f"<pre>{_begun(value)}</pre>{_more(len(value) - _MOST_WRITTEN, 'character')}"


def prose(value: str) -> str:
    """Write sentences, with their line breaks; of many the first."""
    rest = _more(len(value) - _MOST_WRITTEN, "character")
    return f'<p class="prose">{_begun(value)}</p>{rest}'


def badge(word: str, colour: str = COLOURS[0]) -> str:
    """Write a word as a badge."""
    return f'<strong class="badge" style="border-color:{colour}">{text(word)}</strong>'


def status(value: str) -> str:
    """Write what is going on; a screen reader says it when it is free."""
    return f'<div role="status" aria-live="polite">{value}</div>'


def failure(error: Exception) -> str:
    """Write an error: what happened, then what to do."""
    if isinstance(error, LedgerError):
        whole, remedy = str(error), error.remedy
        happened = whole.removesuffix(remedy).rstrip() if remedy else whole
    else:
        happened, remedy = f"{type(error).__name__}: {error}", ""
    advice = f"<br>What to do: {text(remedy, 600)}" if remedy else ""
    return f'<div role="alert"><strong>{text(happened, 600)}</strong>{advice}</div>'


def table(frame: pd.DataFrame, caption: str = "", *, slim: bool = False) -> str:
    """Write the first rows of a frame; with `slim` without columns that hold nothing."""
    whole = frame.dropna(axis="columns", how="all") if slim and len(frame) else frame
    shown = whole.iloc[:_MOST_ROWS, :_MOST_COLUMNS]
    columns = [column.tolist() for _, column in shown.items()]
    kinds = [' class="number"' if _is_numbers(values) else "" for values in columns]
    head = "".join(
        f'<th scope="col"{kind}>{text(name)}</th>' for name, kind in zip(shown, kinds, strict=True)
    )
    rows = "".join(_row(values, kinds) for values in zip(*columns, strict=True))
    more = _more(len(whole) - len(shown), "row", held=True)
    more += _more(whole.shape[1] - shown.shape[1], "column", held=True)
    told = f"<caption>{text(caption, 200)}</caption>" if caption else ""
    return (
        '<div class="scroll"><table>'
        f"{told}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{more}"
    )


def facts(pairs: Iterable[tuple[str, object]], caption: str = "") -> str:
    """Write names and values, one pair a line, each value beside its name."""
    rows = "".join(
        f'<tr><th scope="row">{text(name)}</th><td>{text(_plain(value))}</td></tr>'
        for name, value in pairs
    )
    told = f"<caption>{text(caption, 200)}</caption>" if caption else ""
    return f'<table class="facts">{told}<tbody>{rows}</tbody></table>'


def bars(counts: Mapping[str, int], caption: str) -> str:
    """Draw counts as bars, each with its name and number beside it."""
    most = max(counts.values(), default=0) or 1
    rows = "".join(
        f'<tr><th scope="row">{text(name)}</th>'
        f'<td style="width:22em"><div style="width:{100 * count // most}%;height:1.1em;'
        f'background:{COLOURS[at % len(COLOURS)]}"></div></td><td>{count}</td></tr>'
        for at, (name, count) in enumerate(counts.items())
    )
    told = f"<caption>{text(caption, 200)}</caption>"
    return f"<table>{told}<tbody>{rows}</tbody></table>"


def picture(png: bytes, alt: str) -> str:
    """Show a picture, with words for whoever does not see it."""
    data = base64.b64encode(png).decode("ascii")
    return f'<img alt="{text(alt, 600)}" src="data:image/png;base64,{data}">'


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Give the rows of a frame, each value by the name of its column."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _begun(value: str) -> str:
    """Write the beginning of a text, with its line breaks."""
    return escape("\n".join(map(visible, value[:_MOST_WRITTEN].split("\n"))))


def _more(rest: int, what: str, *, held: bool = False) -> str:
    """Say how much is not shown, and where it is."""
    where = "; .result holds them all" if held else ""
    return f"<p>… and {counted(rest, f'more {what}')}{where}</p>" if rest > 0 else ""


def _is_numbers(values: list[Any]) -> bool:
    """Tell whether a column holds numbers only, which stand to the right."""
    return all(map(_is_number, values)) and not all(map(_is_missing, values))


def _is_number(value: Any) -> bool:
    """Tell a number, or one that is missing."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number or _is_missing(value)


def _is_missing(value: Any) -> bool:
    """Tell what stands for no value."""
    return value is None or (not isinstance(value, dict | list | tuple) and bool(pd.isna(value)))


def _row(values: tuple[Any, ...], kinds: list[str]) -> str:
    """Write a row; what is missing is nothing."""
    cells = zip(values, kinds, strict=True)
    return f"<tr>{''.join(f'<td{kind}>{text(_plain(value))}</td>' for value, kind in cells)}</tr>"


def _plain(value: Any) -> object:
    """Turn a value into text."""
    if isinstance(value, float) and not pd.isna(value):
        return f"{value:.10g}"  # in human units; the exact amount stands beside it
    if isinstance(value, dict | list | tuple):
        try:
            return _listed(value)
        except RecursionError:  # levels upon levels
            return value
    return "" if _is_missing(value) else value


def _listed(value: dict[Any, Any] | list[Any] | tuple[Any, ...]) -> str:
    """Write an object as JSON, a list between commas; of a long one the beginning."""
    if isinstance(value, dict):
        return json.dumps(value, default=str) if value else ""
    return ", ".join(str(_plain(one)) for one in value[:_MOST_LISTED])
