"""Tables as lines of text that fit the width of a terminal."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pandas as pd

from ledgerkit.frames import human
from ledgerkit.visible_text import escape_invisible

Line = list[tuple[str, str]]  # texts with their styles

_GAP = "  "
_STATUS_STYLES = {
    **dict.fromkeys(("ok", "success_value", "success_receipt_id"), "good"),
    **dict.fromkeys(("pending", "not_executed", "unknown"), "waiting"),
    **dict.fromkeys(("failure", "failed", "broken"), "bad"),
}


class Column(NamedTuple):
    """A column of a table: its heading, the text and the style of each cell."""

    name: str
    texts: list[str]
    styles: list[str]
    is_number: bool
    width: int


def layout(
    frame: pd.DataFrame, names: Sequence[str] | None, width: int | None, *, exact: bool, raw: bool
) -> Iterator[Line]:
    """
    Lay out the columns of a frame in lines of at most `width` characters, if no cell is wider.

    Amounts are written in units, or with `exact` all digits in the smallest unit. If the table
    does not fit, ids are shortened and columns without a value are named below it. If it is still
    too wide, a single row has a line per value, and several rows are laid out in blocks of columns.
    """
    # The units of an amount may be in a column that is not printed.
    texts = frame.map(human.exact_text) if exact else human.readable(frame, short_ids=False)
    table = _table(frame, texts, names, raw=raw)
    empty: list[str] = []
    if width is not None and not exact and _total_width(table) > width:
        table = _table(frame, human.readable(frame), names, raw=raw)
        if not names:
            empty = [column.name for column in table if not any(column.texts)]
        table = [column for column in table if column.name not in empty] or table
    if width is None or _total_width(table) <= width:
        yield from _block(table)
    elif len(frame) == 1:
        yield from _record(table)
    else:
        yield from _blocks(table, width)
    if empty:
        lines = textwrap.wrap(f"no values: {', '.join(empty)}", width or 80)
        yield from ([(line, "")] for line in lines)


def _table(
    frame: pd.DataFrame, texts: pd.DataFrame, names: Sequence[str] | None, *, raw: bool
) -> list[Column]:
    return [_column(name, frame[name], texts[name], raw=raw) for name in names or frame.columns]


def _column(name: str, values: pd.Series[Any], texts: pd.Series[Any], *, raw: bool) -> Column:
    """Build a column; a line break in a text could imitate a row, and is escaped unless `raw`."""
    cells = [text if raw else escape_invisible(text) for text in texts]
    is_status = name.endswith("status")
    styles = [_STATUS_STYLES.get(str(value), "") if is_status else "" for value in values]
    return Column(name, cells, styles, _is_numeric(values), max(map(_width, [name, *cells])))


def _is_numeric(values: pd.Series[Any]) -> bool:
    is_flag = pd.api.types.is_bool_dtype(values.dtype)
    return pd.api.types.is_numeric_dtype(values.dtype) and not is_flag


def _total_width(table: Sequence[Column]) -> int:
    return sum(column.width for column in table) + len(_GAP) * (len(table) - 1)


def _block(table: Sequence[Column]) -> Iterator[Line]:
    yield [part for c in table for part in ((_padded(c, c.name), "heading"), (_GAP, ""))]
    for row in range(len(table[0].texts)):
        cells = ((_padded(c, c.texts[row]), c.styles[row]) for c in table)
        yield [part for cell in cells for part in (cell, (_GAP, ""))]


def _record(table: Sequence[Column]) -> Iterator[Line]:
    widest = max(len(column.name) for column in table)
    for column in table:
        value = column.texts[0], column.styles[0]
        yield [(column.name.ljust(widest), "heading"), (_GAP, ""), value]


def _blocks(table: Sequence[Column], width: int) -> Iterator[Line]:
    """Lay out columns in blocks below each other, which begin with the columns that name a row."""
    key = _key(table, width)
    block = list(key)
    for column in table:
        if column in key:
            continue
        if _total_width([*block, column]) > width:
            yield from _block(block)
            yield []
            block = list(key) if _total_width([*key, column]) <= width else []
        block.append(column)
    yield from _block(block)


def _key(table: Sequence[Column], width: int) -> list[Column]:
    """Return the columns that identify the rows, if they leave room; else the first column."""
    rows = [""] * len(table[0].texts)
    key: list[Column] = []
    for column in table:
        if len(set(column.texts)) > 1:
            key.append(column)
            rows = [f"{row}\n{text}" for row, text in zip(rows, column.texts, strict=True)]
        if _total_width(key) > width // 2:
            break
        if len(set(rows)) == len(rows):
            return key
    return [table[0]]


def _padded(column: Column, text: str) -> str:
    padding = " " * (column.width - _width(text))
    return padding + text if column.is_number else text + padding


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    marks = sum(unicodedata.category(char) in ("Mn", "Me", "Cf") for char in text)
    return len(text) - marks + sum(unicodedata.east_asian_width(char) in "WF" for char in text)
