"""Frames for reading: amounts in units, short ids, times to the second, plain words."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import UTC
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ledgerkit import units
from ledgerkit.errors import InvalidRequestError, cut
from ledgerkit.frames import html_tables
from ledgerkit.frames.schemas import (
    AMOUNT_UNIT,
    FRACTION,
    UNITS_BY_ASSET,
    YOCTO,
    declared_columns,
    schema_names,
)
from ledgerkit.u128.array import WideDtype
from ledgerkit.u128.human_units import is_missing
from ledgerkit.visible_text import html_text

if TYPE_CHECKING:
    Format = Callable[[object], str]
    TokenUnit = tuple[int, str] | None  # decimals and symbol, if they are known

NEAR = (units.NEAR_DECIMALS, "NEAR")
_MAX_TEXT, _MAX_FULL_TEXT = 80, 2000  # characters
_MAX_HASH, _MAX_NAME = 24, 36  # longer ids are shortened
_MAX_EXPONENT = 40
_MORE = "\u2026"
_ALL_ROWS = "display.max_rows", None, "display.max_colwidth", None, "display.show_dimensions", False
_RIGHT = "text-align:right;white-space:nowrap"

_WORD_COLUMNS = frozenset(
    "status before_status after_status metadata_status kind change exposure_class before after "
    "stage state outcome verdict evidence view source cause causes".split()
)
_WORDS = {
    "success_value": "succeeded",
    "success_receipt_id": "succeeded",
    "failure": "failed",
    "not_executed": "not run yet",
}

_ID_KINDS = {
    "account": (
        "account_id owner_id signer_id sender_id receiver_id predecessor_id counterparty_id author "
        "author_account_id executor_id"
    ),
    "transaction": "tx_hash",
    "receipt": "receipt_id parent_id child_id",
    "block": "block_hash prev_hash last_final_block latest_block_hash",
    "key": "public_key",
    "contract": "contract_id pool_id source_contract_id",
    "asset": "asset",
}
_KIND_OF = {name: kind for kind, names in _ID_KINDS.items() for name in names.split()}
_TOKEN_SCHEMAS = frozenset(
    "ft ft_metadata ft_intents ft_intents_metadata top_holders top_holders_metadata diff_ft".split()
)
_HASHES = ("transaction", "receipt", "block", "key")
_HASH_NAMES = ("_hash", "_sha256", "_root", "epoch_id")  # endings of other columns of hashes


def human(frame: pd.DataFrame, *, digits: int | None = 2) -> Human:
    """
    Return a frame for reading: as a table in a notebook, as text in a terminal.

    Amounts of NEAR and gas, and of tokens whose `decimals` are in the frame, are written in
    units with symbols. Ids are shortened in the middle, times end with the second, and statuses
    are words. In a notebook each shortened cell has its full text as a tooltip.

    Parameters
    ----------
    frame
        Any frame. Columns that ledgerkit does not know are shown as they are.
    digits
        Decimals of amounts, as in `amount_format`; None shows all digits, whole ids and times.

    Returns
    -------
    human
        An object that displays the frame, with as many rows as pandas would. The frame itself is
        not changed: compute with it.

    Raises
    ------
    InvalidRequestError
        If `frame` is no DataFrame, or `digits` neither None nor an integer from 0 on.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> frame = lk.transactions(180000032)
    >>> lk.human(frame[["tx_hash", "signer_id", "receiver_id", "deposit"]].tail(3))
            tx_hash     signer_id   receiver_id  deposit
    11  548pc9…RixG     nick.near  factory.near   3 NEAR
    12  EyvTKb…7aQG  mallory.near    async.near   0 NEAR
    13  E1xG5F…NbqS      uma.near     gold.near  1 yocto
    <BLANKLINE>
    3 rows; network: local
    """
    if not isinstance(frame, pd.DataFrame):
        raise InvalidRequestError.refuse("frame", frame, "a pandas DataFrame")
    units.near_amount(0, digits)  # refuses invalid digits here, not when the frame is displayed
    return Human(frame, digits)


class Human:
    """
    A frame for reading, as `ledgerkit.human` returns it.

    Parameters
    ----------
    frame
        The frame.
    digits
        Decimals of amounts; None for all.
    """

    def __init__(self, frame: pd.DataFrame, digits: int | None) -> None:
        self._frame, self._digits = frame, digits

    def texts(self) -> pd.DataFrame:
        """
        Return the texts of all rows.

        Returns
        -------
        texts
            A frame of texts with the index and the columns of the frame.
        """
        return readable(self._frame, digits=self._digits)

    def __repr__(self) -> str:
        """Return the table as text, as wide as pandas would print it."""
        head, tail = _displayed_rows(self._frame)
        rows = readable(head, digits=self._digits)
        if len(tail):
            more = pd.DataFrame([[_MORE] * rows.shape[1]], columns=rows.columns, index=[_MORE])
            rows = pd.concat([rows, more, readable(tail, digits=self._digits)])
        with pd.option_context(*_ALL_ROWS):
            text = repr(rows)
        return f"{text}\n\n{_caption(self._frame)}"

    def _repr_html_(self) -> str:
        head, tail = _displayed_rows(self._frame)
        rows = _html_rows(head, self._digits)
        if len(tail):
            more = html_tables.cell(_MORE)
            rows.append(html_tables.row([more] * self._frame.shape[1], name=_MORE))
            rows += _html_rows(tail, self._digits)
        styles = zip(self._frame.columns, _styles(self._frame), strict=True)
        names = [html_tables.heading(html_text(str(name)), style) for name, style in styles]
        caption = html_text(_caption(self._frame))
        table = html_tables.table(
            rows, head=[html_tables.cell(""), *names], caption=caption, css_class="dataframe"
        )
        return f'<div class="ledgerkit-human {html_tables.NO_MATH}">{table}</div>'


def readable(
    frame: pd.DataFrame, *, digits: int | None = 2, short_ids: bool = True
) -> pd.DataFrame:
    """
    Return a frame of texts with the same index and columns; "" where a value is missing.

    `digits` are the decimals of amounts; None is all digits, whole ids and times.
    """
    formats = column_formats(frame, digits=digits, short_ids=short_ids)
    token_columns = _token_columns(frame)
    columns: list[list[str]] = []
    for position, name in enumerate(frame.columns):
        values = frame.iloc[:, position].tolist()
        if name in token_columns:
            amounts = zip(values, row_units(frame), strict=True)
            texts = [_amount(value, unit, digits) for value, unit in amounts]
        elif name == "amount" and {"balance", "decimals"} <= set(frame):
            texts = _floats_of_balances(frame, values, digits)
        else:
            texts = list(map(formats.get(name, plain_text), values))
        columns.append(texts)
    data = pd.DataFrame(dict(enumerate(columns)), index=frame.index, dtype=object)
    data.columns = frame.columns
    return data


def column_formats(
    frame: pd.DataFrame, *, digits: int | None = 2, short_ids: bool = True
) -> dict[str, Format]:
    """
    Return the functions that write the values of columns; `plain_text` writes all others.

    Amounts of tokens are in the smallest unit here, because the token differs by row: `readable`
    writes them in units. The values of the frame are not read.
    """
    kinds = id_kinds(frame) if short_ids and digits is not None else {}
    formats: dict[str, Format] = {}
    for name, column in declared_columns(frame).items():
        if column.dtype in ("u128", "i129", "object") and column.unit:
            formats[name] = _amount_format(column.unit, digits, frame.attrs.get("tokens"))
        elif column.dtype == "Int64" and column.unit in ("count", "byte"):
            formats[name] = _grouped
        elif column.unit == FRACTION:
            formats[name] = lambda value: _percent(value, digits)
        elif column.dtype == "str" and name in _WORD_COLUMNS:
            formats[name] = _words
        elif column.dtype == "str" and (short := _id_format(name, kinds)):
            formats[name] = short
    for label, dtype in frame.dtypes.items():
        if isinstance(dtype, WideDtype):
            formats.setdefault(str(label), _grouped)
    if digits is None:
        formats = {str(label): full_text for label in frame} | formats
    return formats


def _id_format(name: str, kinds: dict[str, str]) -> Format | None:
    if kinds.get(name) in _HASHES or (kinds and name.endswith(_HASH_NAMES)):
        return _short_hash
    return _short_name if name in kinds else None


def id_kinds(frame: pd.DataFrame) -> dict[str, str]:
    """
    Return the kind of the ids of each column; the values of the frame are not read.

    Kinds are ``"account"``, ``"transaction"``, ``"receipt"``, ``"block"`` (also heights),
    ``"key"``, ``"token"`` (contract of a fungible token), ``"contract"`` or ``"asset"``.
    """
    names = [str(name) for name in frame.columns]
    declared = declared_columns(frame)
    kinds = {name: _KIND_OF[name] for name in names if name in _KIND_OF}
    kinds |= {name: "block" for name, column in declared.items() if column.unit == "block"}
    schemas = schema_names(names, frame.attrs.get("schema"))
    if "contract_id" in kinds and not _TOKEN_SCHEMAS.isdisjoint(schemas):
        kinds["contract_id"] = "token"
    return kinds


def plain_text(value: object, limit: int = _MAX_TEXT) -> str:
    """
    Write any value as one short line for a person, "" if it is missing.

    Times are in UTC to the second, bytes in hexadecimal, lists and dicts JSON; a float has no
    exponent. Invisible characters are escaped.
    """
    if is_missing(value):
        return ""
    if isinstance(value, (bool, np.bool)):
        return "yes" if value else "no"
    return cut(_text(value), limit)


def full_text(value: object) -> str:
    """Write any value as `plain_text` does, with fractions of a second and up to 2,000 letters."""
    if isinstance(value, pd.Timestamp) and not is_missing(value):
        return _time(value)
    return plain_text(value, _MAX_FULL_TEXT)


def exact_text(value: object) -> str:
    """
    Write any value with all its digits and letters, "" if it is missing.

    A float has no exponent, bytes are hexadecimal, and lists and dicts JSON.
    """
    if isinstance(value, str):
        return value
    if is_missing(value):
        return ""
    if isinstance(value, float):
        return f"{Decimal(repr(float(value))):f}"
    if isinstance(value, bytes):
        return value.hex()
    return json_text(value) if isinstance(value, (list, dict, tuple)) else str(value)


def json_text(value: object) -> str:
    """Write a value as JSON, or as Python does if JSON can't: other keys, or deep nesting."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return cut(value, _MAX_FULL_TEXT)


def record_html(frame: pd.DataFrame) -> str:
    """Write the first row of a frame as an HTML table of names and values, all escaped."""
    texts, full = (readable(frame.head(1), digits=digits).iloc[0] for digits in (2, None))
    return html_tables.table(
        html_tables.row([_cell(text, full_text, "")], name=html_text(str(name)))
        for name, text, full_text in zip(frame.columns, texts, full, strict=True)
    )


# Values -----------------------------------------------------------------------------------


def _text(value: object) -> object:
    if isinstance(value, pd.Timestamp):
        return _time(value.floor("s"))
    if isinstance(value, float) and math.isfinite(value):
        number = Decimal(repr(float(value)))
        is_short = abs(number.adjusted()) <= _MAX_EXPONENT
        return f"{number:,f}".removesuffix(".0") if is_short else value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (list, dict)):
        return json_text(value)
    return value


def _amount_format(unit: str, digits: int | None, tokens: Any) -> Format:
    if unit == UNITS_BY_ASSET:
        return partial(_changes_text, tokens, digits)
    if unit == YOCTO:
        return lambda value: _amount(value, NEAR, digits)
    if unit == "gas":
        return lambda value: _amount(value, (units.TGAS_DECIMALS, "Tgas"), digits)
    if unit == AMOUNT_UNIT:
        return lambda value: _amount(value, None, digits)
    return _grouped


def _amount(value: Any, unit: TokenUnit, digits: int | None) -> str:
    if isinstance(value, dict):
        texts = (f"{_words(name)}: {_amount(part, unit, digits)}" for name, part in value.items())
        return ", ".join(texts)
    if not _is_integer(value):
        return plain_text(value)
    return unit_text(value, unit, digits)


def unit_text(amount: int, unit: TokenUnit, digits: int | None = 2) -> str:
    """Write an amount in its unit, or in the smallest unit if the unit is unknown."""
    if unit is None:
        return f"{amount:,} {'unit' if abs(amount) == 1 else 'units'}"
    if unit is NEAR:
        return units.near_amount(amount, digits)
    return units.amount_text(amount, *unit, digits)


def _percent(value: Any, digits: int | None) -> str:
    if is_missing(value) or not math.isfinite(value):
        return plain_text(value)
    percent = Decimal(repr(float(value))).scaleb(2)
    if digits is None:
        return f"{percent:,f}%"
    smallest = Decimal(1).scaleb(-digits)
    if 0 < percent < smallest / 2:
        return f"<{smallest}%"  # only 0 is written as 0
    return f"{percent:,.{digits}f}%"


def _grouped(value: Any) -> str:
    return f"{value:,}" if _is_integer(value) else plain_text(value)


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _words(value: Any) -> str:
    return _WORDS.get(value, plain_text(value).replace("_", " "))


def _short_hash(value: Any) -> str:
    """Shorten a hash in the middle; a key keeps the name of its curve."""
    text = plain_text(value, _MAX_FULL_TEXT)
    curve, colon, key = text.rpartition(":")
    return text if len(text) <= _MAX_HASH else f"{curve}{colon}{key[:6]}{_MORE}{key[-4:]}"


def _short_name(value: Any) -> str:
    text = plain_text(value, _MAX_FULL_TEXT)
    return text if len(text) <= _MAX_NAME else f"{text[:20]}{_MORE}{text[-12:]}"


def _time(stamp: pd.Timestamp) -> str:
    if stamp.tzinfo is None:
        return stamp.isoformat(sep=" ")
    return f"{stamp.tz_convert(UTC).tz_localize(None).isoformat(sep=' ')} UTC"


# Amounts of tokens ------------------------------------------------------------------------


def _floats_of_balances(frame: pd.DataFrame, values: list[Any], digits: int | None) -> list[str]:
    """Write floats with the digits of the exact balances in the same rows."""
    rows = zip(values, frame["balance"], row_units(frame), strict=True)
    return [
        units.amount_text(balance, unit[0], "", digits)
        if unit and isinstance(value, float) and units.to_float(balance, unit[0]) == value
        else plain_text(value)
        for value, balance, unit in rows
    ]


def _token_columns(frame: pd.DataFrame) -> set[str]:
    declared = declared_columns(frame)
    return {name for name, column in declared.items() if column.unit == AMOUNT_UNIT}


def row_units(frame: pd.DataFrame) -> Sequence[TokenUnit]:
    """
    Return the decimals and the symbol of each row's token; None where they are unknown.

    NEAR is recognized by the column `asset` or `view`, a token by `decimals` and `symbol`, or by
    `asset` and the frame's `attrs["tokens"]`: lists of decimals and symbol by asset.
    """
    token_units: list[TokenUnit] = [None] * len(frame)
    if "decimals" in frame:
        symbols = frame.get("symbol", token_units)
        token_units = [
            (int(decimals), units.token_symbol(symbol)) if _is_decimals(decimals) else None
            for decimals, symbol in zip(frame["decimals"], symbols, strict=True)
        ]
    if "asset" in frame:
        pairs = zip(frame["asset"], token_units, strict=True)
        tokens = frame.attrs.get("tokens", {})
        return [NEAR if is_near(asset) else unit or _unit(tokens, asset) for asset, unit in pairs]
    if "view" in frame and "decimals" not in frame:
        return [NEAR if view == "accounts" else None for view in frame["view"]]
    return token_units


def _unit(tokens: Any, asset: Any) -> TokenUnit:
    entry = tokens.get(asset) if isinstance(tokens, dict) and isinstance(asset, str) else None
    if not isinstance(entry, (list, tuple)) or len(entry) != len(NEAR):
        return None
    decimals, symbol = entry
    return (int(decimals), units.token_symbol(symbol)) if _is_decimals(decimals) else None


def _is_decimals(value: Any) -> bool:
    return _is_integer(value) and 0 <= value <= units.MAX_DECIMALS


def _changes_text(tokens: Any, digits: int | None, value: Any) -> str:
    """Write the changes of assets, a dict by asset; the asset follows its change, except NEAR."""
    if not isinstance(value, dict):
        return plain_text(value)
    return ", ".join(
        unit_text(change, NEAR if is_near(asset) else _unit(tokens, asset), digits)
        + ("" if asset == "near" else f" ({_short_name(asset)})")
        for asset, change in value.items()
    )


def is_near(asset: object) -> bool:
    """Return True for NEAR, on an account, in a gas key or with a staking pool."""
    return isinstance(asset, str) and (asset == "near" or asset.startswith(("gas_key", "stake:")))


# Tables -----------------------------------------------------------------------------------


def _displayed_rows(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the first and the last rows that pandas would display; few rows are all first."""
    most = pd.get_option("display.max_rows") or len(frame)
    if len(frame) <= most:
        return frame, frame.iloc[:0]
    half = max(1, min(pd.get_option("display.min_rows") or most, most) // 2)
    return frame.iloc[:half], frame.iloc[-half:]


def _caption(frame: pd.DataFrame) -> str:
    network = frame.attrs.get("network")
    rows = units.count_text(len(frame), "row")
    return rows if network is None else f"{rows}; network: {cut(network)}"


def _html_rows(frame: pd.DataFrame, digits: int | None) -> list[str]:
    texts, full = readable(frame, digits=digits), readable(frame, digits=None)
    styles = _styles(frame)
    rows = []
    for label, row, full_row in zip(frame.index, texts.values, full.values, strict=True):
        cells = map(_cell, row, full_row, styles)
        rows.append(html_tables.row(cells, name=html_text(plain_text(label))))
    return rows


def _styles(frame: pd.DataFrame) -> list[str]:
    amounts = _token_columns(frame)
    is_number = pd.api.types.is_numeric_dtype
    is_bool = pd.api.types.is_bool_dtype
    return [
        f' style="{_RIGHT}"' if name in amounts or (is_number(dtype) and not is_bool(dtype)) else ""
        for name, dtype in frame.dtypes.items()
    ]


def _cell(text: str, full: str, style: str) -> str:
    title = "" if text == full else f' title="{html_text(full)}"'
    return html_tables.cell(html_text(text), f"{style}{title}")
