"""
Tables of panels: pages of a frame, which the kernel filters, sorts and writes to files.

A front end receives texts only, so that no digit of a large number is lost, and never more than
a page of them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ledgerkit import validation
from ledgerkit.errors import InvalidRequestError, LedgerError, cut
from ledgerkit.frames import html_tables
from ledgerkit.frames.human import column_formats, exact_text, id_kinds, readable
from ledgerkit.frames.schemas import AMOUNT_UNIT, declared_columns
from ledgerkit.units import count_text
from ledgerkit.visible_text import escape_invisible
from ledgerkit.widgets import _downloads, _html
from ledgerkit.widgets._blocks import Block, Page
from ledgerkit.widgets._selection import Rows, Selection, Source, is_number

_PAGE = 25  # rows
_MAX_PAGE = 500
_MAX_COLUMNS = 50  # at first; others can be chosen
_MAX_CHOICE = 1_000  # columns to choose from
_MAX_STATIC = 50  # rows in a notebook without a kernel
_MAX_NAME = 100  # characters
_MAX_EXACT = 400  # characters of a cell's exact text; longer ones are sent on request
_MAX_SAVED = 2_000_000  # cells of a file that goes through the front end
_MAX_SENT = 48 * 2**20  # bytes
_LEADING = {  # columns of each schema that a person looks for, before all others
    "ft": "account_id contract_id balance status",
    "ft_metadata": "account_id contract_id balance status symbol",
    "ft_intents": "account_id contract_id held_in balance status token_id",
    "ft_intents_metadata": "account_id contract_id held_in balance status symbol token_id",
    "intents": "kind account_id given given_asset received received_asset fee counterparty_id "
    "referral",
    "lockups": "account_id source liquid locked unvested pending deposited staking_pool_id status",
    "staking_positions": "account_id pool_id source staked unstaked can_withdraw status",
    "history": "account_id view contract_id time status balance locked staked unstaked",
    "keys": "account_id public_key permission receiver_id method_names allowance is_unlimited",
    "transactions": "tx_hash signer_id receiver_id actions method_name deposit gas_attached",
    "receipts": "receipt_id predecessor_id receiver_id actions method_name status error_message "
    "deposit gas_burnt time",
    "account_transactions": "time tx_hash account_id is_success",
    "transfers_of": "time asset change balance_after counterparty_id transfer_type method_name",
    "statement": "time asset change balance_after cause counterparty_id evidence",
    "statement_values": "time asset change balance_after usd_amount cause counterparty_id evidence",
    "statement_rewards": "time pool_id reward apy total_after",
}
_MAX_FRONT_ENDS = 100  # front ends whose newest requests are remembered


class _SupersededError(Exception):
    """The front end has sent a newer request."""


class Table(Block):
    """
    A frame as a table: sorted, filtered and searched in the kernel, page by page.

    The columns that a person looks for come first; saved files have the order of the frame, and
    the name `name` without an ending. A `slim` table leaves out columns without values.
    """

    kind = "table"

    def __init__(
        self, frame: pd.DataFrame, caption: str = "", *, name: str = "table", slim: bool = False
    ) -> None:
        whole = index_as_columns(frame)
        self.frame, self.caption, self.name = whole, caption, name
        if slim and len(whole):
            whole = whole.dropna(axis="columns", how="all")
        self._n_hidden = max(whole.shape[1] - _MAX_CHOICE, 0)
        self._displayed = _leading_first(whole).iloc[:, :_MAX_CHOICE]
        self._columns = _columns(self._displayed)
        self._rows = Rows(self._columns, len(whole))
        self._newest: dict[str, int] = {}

    # Messages -----------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        kinds, declared = id_kinds(self._displayed), declared_columns(self._displayed)
        # Without a schema, a column of the same name may mean something else.
        described = declared if "schema" in self._displayed.attrs else {}
        columns = [
            {
                "name": column.name,
                "kind": column.kind,
                "note": _note(described[name].meaning if name in described else "", column),
                "id": kinds.get(name),
                "right": column.is_number,
            }
            for name, column in zip(self._displayed.columns, self._columns, strict=True)
        ]
        visible = range(min(len(columns), _MAX_COLUMNS))
        return {
            "caption": cut(self.caption, 2 * _MAX_NAME),
            "columns": columns,
            "n_hidden": self._n_hidden,
            "n_rows": len(self._displayed),
            "size": _PAGE,
            "visible": list(visible),
            "formats": _downloads.available(),
            "rows": self._cells(np.arange(min(len(self._displayed), _PAGE)), visible),
        }

    def handle(self, message: Mapping[str, Any]) -> dict[str, Any]:
        actions = {"page": self._page, "cell": self._cell, "save": self._save}
        try:
            return actions[validation.one_of(message.get("do"), "do", tuple(actions))](message)
        except _SupersededError:
            return {"superseded": True}
        except LedgerError as error:
            return {"error": str(error)}

    def _page(self, message: Mapping[str, Any]) -> dict[str, Any]:
        start = validation.integer(message.get("start"), "start", most=2**53)
        count = validation.integer(message.get("count"), "count", least=1, most=_MAX_PAGE)
        visible = [self._position(column) for column in _list(message, "columns")]
        rows = self._select(message)
        page = rows[start : start + count]
        return {"n_rows": len(rows), "start": start, "rows": self._cells(page, visible)}

    def _cell(self, message: Mapping[str, Any]) -> dict[str, Any]:
        row = validation.integer(message.get("row"), "row", most=max(len(self._displayed) - 1, 0))
        column = self._position(message.get("column"))
        text = exact_text(self._displayed.iloc[:, column].iloc[row])
        exact = text.encode("utf-8", "backslashreplace").decode()
        return {"text": exact, "visible": escape_invisible(text, keep="\n\t")}

    def _save(self, message: Mapping[str, Any]) -> dict[str, Any]:
        endings = tuple(_downloads.available())
        ending = validation.one_of(message.get("format"), "format", endings)
        form = _downloads.FORMATS[ending]
        rows = self._select(message)
        advice = f'save the frame in Python: ledgerkit.show(frame).save("{self.name}.{ending}")'
        if len(rows) * self.frame.shape[1] > _MAX_SAVED:
            raise _too_large(f"{count_text(len(rows), 'row')}", advice)
        data = form.write(self.frame.iloc[rows].reset_index(drop=True))
        if len(data) > _MAX_SENT:
            raise _too_large(f"{len(data):,} bytes", advice)
        return {
            "name": f"{self.name}.{ending}",
            "media_type": form.media_type,
            "data": base64.b64encode(data).decode("ascii"),
            "n_rows": len(rows),
        }

    def _select(self, message: Mapping[str, Any]) -> np.ndarray:
        filters = message.get("filters") or {}
        if not isinstance(filters, dict):
            raise InvalidRequestError.refuse("filters", filters, "an object of texts")
        selection = Selection(
            sort=tuple(map(self._sort_key, _list(message, "sort"))),
            filters=tuple(
                (self._position(column), validation.plain_text(text, "filter"))
                for column, text in filters.items()
            ),
            search=validation.plain_text(message.get("search", ""), "search").strip(),
            is_exact=bool(message.get("exact")),
        )
        rows = self._rows.select(selection, self._newer_request_check(message))
        return np.arange(len(self._displayed)) if rows is None else rows

    def _newer_request_check(self, message: Mapping[str, Any]) -> Callable[[], None]:
        """Return a function that raises once the same front end has sent a newer request."""
        if "number" not in message:
            return lambda: None
        client = cut(message.get("client"), _MAX_NAME)
        number = validation.integer(message["number"], "number", most=2**53)
        if len(self._newest) >= _MAX_FRONT_ENDS:
            self._newest.clear()
        self._newest[client] = max(number, self._newest.get(client, 0))

        def check() -> None:
            if self._newest.get(client, number) != number:
                raise _SupersededError

        return check

    def _sort_key(self, key: object) -> tuple[int, bool]:
        if not isinstance(key, dict):
            raise InvalidRequestError.refuse("sort", key, "objects with column and descending")
        return self._position(key.get("column")), bool(key.get("descending"))

    def _position(self, column: object) -> int:
        number = int(column) if isinstance(column, str) and column.isdecimal() else column
        return validation.integer(number, "column", most=len(self._columns) - 1)

    # Texts --------------------------------------------------------------------------------

    def _cells(self, rows: np.ndarray, visible: Iterable[int]) -> list[dict[str, Any]]:
        page = self._displayed.iloc[rows]
        texts = readable(page)
        columns = [
            [
                _cell(text, exact_text(value))
                for text, value in zip(
                    texts.iloc[:, column], page.iloc[:, column].tolist(), strict=True
                )
            ]
            for column in visible
        ]
        cells = zip(*columns, strict=True) if columns else ([] for _ in rows)
        return [
            {"row": int(row), "cells": list(row_cells)}
            for row, row_cells in zip(rows, cells, strict=True)
        ]

    def static(self) -> str:
        columns = self._columns[:_MAX_COLUMNS]
        rows = self._cells(np.arange(min(len(self._displayed), _MAX_STATIC)), range(len(columns)))
        table = html_tables.table(
            [html_tables.row(map(_static_cell, row["cells"], columns)) for row in rows],
            head=[html_tables.heading(_html.text(c.name), _alignment(c)) for c in columns],
            caption=_html.text(self.caption, 2 * _MAX_NAME),
        )
        hidden = _html.hidden_count(len(self._displayed) - len(rows), "more row", " in .result")
        n_more = len(self._columns) + self._n_hidden - len(columns)
        hidden += _html.hidden_count(n_more, "more column", " in .result")
        return f'<div class="scroll">{table}</div>{hidden}'


def error_pages(errors: pd.DataFrame) -> list[Page]:
    """Return a page that lists errors, if there are any."""
    return [Page("Errors", Table(errors, name="errors"))] if len(errors) else []


def index_as_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose index is the row numbers; another index becomes its first columns."""
    flat = frame.copy(deep=False)  # pandas copies on write
    flat.index = pd.RangeIndex(len(frame))
    labels = [
        " / ".join(map(str, name)) if isinstance(name, tuple) else str(name)
        for name in frame.columns
    ]
    flat.columns = pd.Index(labels, dtype=object)
    if not isinstance(frame.index, pd.RangeIndex):
        for level, name in enumerate(frame.index.names):
            default = f"index {level}" if level else "index"
            values = frame.index.get_level_values(level).array
            label = default if name is None else str(name)
            flat.insert(level, label, values, allow_duplicates=True)
    return flat


def _leading_first(frame: pd.DataFrame) -> pd.DataFrame:
    leading = _LEADING.get(str(frame.attrs.get("schema")), "").split()
    rank = {name: i for i, name in enumerate(leading)}
    names = [str(name) for name in frame.columns]
    order = sorted(range(len(names)), key=lambda i: rank.get(names[i], len(rank)))
    return frame.iloc[:, order] if leading else frame


def _columns(frame: pd.DataFrame) -> list[Source]:
    formats = column_formats(frame, short_ids=False)
    declared = declared_columns(frame)
    kinds = id_kinds(frame)
    sources = []
    for position, name in enumerate(frame.columns):
        kind = _kind(frame.iloc[:, position])
        unit = declared[name].unit if name in declared and kind == "number" else ""
        write = formats.get(name) if kind == "text" and name not in kinds else None
        sources.append(Source(frame, position, kind, unit, cut(name, _MAX_NAME), write))
    return sources


def _note(meaning: str, column: Source) -> str:
    order = "sorts within each token; exact values sort as integers"
    return "; ".join(filter(None, [meaning, order if column.unit == AMOUNT_UNIT else ""]))


def _kind(values: pd.Series[Any]) -> str:
    dtype = values.dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        inferred = pd.api.types.infer_dtype(values, skipna=True)
        is_mixed = inferred.startswith("mixed") and all(map(is_number, values.dropna()))
        if is_mixed or inferred in ("integer", "decimal", "floating"):
            return "number"
        return "bool" if inferred == "boolean" else "text"
    if pd.api.types.is_bool_dtype(dtype):
        return "bool"
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return "time"
    is_text = isinstance(dtype, pd.CategoricalDtype) or dtype.kind in "cmV"
    return "text" if is_text or not pd.api.types.is_numeric_dtype(dtype) else "number"


def _cell(text: str, exact: str) -> Any:
    """
    Return a cell for the front end: its text, and its exact text if that differs.

    ``more`` replaces an exact text that is long or not visible, and is sent on request.
    """
    if exact == text:
        return text
    if len(exact) > _MAX_EXACT or escape_invisible(exact) != exact:
        return {"text": text, "more": True}
    return {"text": text, "exact": exact}


def _static_cell(cell: Any, column: Source) -> str:
    text, exact = (cell["text"], cell.get("exact", "")) if isinstance(cell, dict) else (cell, "")
    title = f' title="{_html.text(exact, _MAX_EXACT)}"' if column.is_number and exact else ""
    return html_tables.cell(_html.text(text), f"{_alignment(column)}{title}")


def _alignment(column: Source) -> str:
    return ' class="number"' if column.is_number else ""


def _list(message: Mapping[str, Any], name: str) -> list[Any]:
    value = message.get(name) or []
    if not isinstance(value, list) or len(value) > _MAX_CHOICE:
        raise InvalidRequestError.refuse(name, value, f"a list of at most {_MAX_CHOICE}")
    return value


def _too_large(size: str, remedy: str) -> InvalidRequestError:
    sentence = f"{size} are too large to pass through the notebook's page"
    return InvalidRequestError(sentence, field="format", remedy=remedy)
