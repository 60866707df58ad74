"""Balances over time, as steps from reading to reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import units, validation
from ledgerkit.plots import canvas, inks, texts, token_units
from ledgerkit.plots.token_units import TokenUnit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_MAX_LINES = 7
_MAX_NAMES = 3  # accounts in the title; more are counted
_MAX_DOTS = 120  # readings per line; more dots would hide the line
_COLUMNS = ("account_id", "view", "contract_id", "time", "status")
_PARTS = {"accounts": ("balance", "locked"), "ft": ("balance",), "staking": ("staked", "unstaked")}
_QUANTITIES = {"accounts": "balance", "ft": "token balance", "staking": "stake"}
_STATUS_TEXTS = {
    "no_account": "account did not exist",
    "no_contract": "contract did not exist",
    "broken": "token call failed",
    "not_a_pool": "not a pool",
}


class _Line(NamedTuple):
    """A line: the function that writes its label, and exact amounts, None where unknown."""

    label: Callable[[int], str]
    times: Any
    amounts: list[int | None]
    unit: TokenUnit

    @property
    def values(self) -> list[float]:
        return [float("nan") if v is None else self.unit.number(v) for v in self.amounts]

    @property
    def known_amounts(self) -> list[int]:
        return [amount for amount in self.amounts if amount is not None]

    @property
    def extent(self) -> float:
        return self.unit.number(max(map(abs, self.known_amounts)))

    def hover_texts(self) -> list[str]:
        return [
            f"{self.label(200)}, {str(time)[:19]}: {self.unit.text(amount)}"
            for time, amount in zip(self.times, self.amounts, strict=True)
            if amount is not None
        ]


@canvas.plot
def history(
    frame: pd.DataFrame,
    *,
    view: str | None = None,
    change: bool = False,
    decimals: int | Mapping[str, int] = 0,
    tokens: pd.DataFrame | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """
    Draw the balances of accounts over time.

    Parameters
    ----------
    frame
        Typed as ``schema("history")``: the result of ``lk.history(...)``, or several of them
        concatenated.
    view
        The view to draw: ``accounts``, ``ft`` or ``staking``; None draws the first in the frame.
    change
        True draws the difference from each line's first known reading, which shows small
        steps of large amounts.
    decimals
        For ``ft``: the token's decimals, by contract or one number for all; 0 draws smallest
        units.
    tokens
        For ``ft``: symbols and decimals by contract, typed as ``schema("ft_metadata")``, such as
        the result of ``lk.ft(..., metadata=True)``.
    title
        The title; None names the accounts.

    Returns
    -------
    ax
        The axes: one line of steps per account, contract and part, each reading valid until
        the next. Unknown amounts are gaps, and counted in a note. With many lines, the seven
        that go farthest from zero are drawn.

    Raises
    ------
    InvalidRequestError
        If the frame lacks columns or the view, or matplotlib is not installed.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> past = lk.history("alice.near", "genesis", "final")
    >>> ax = lk.plots.history(past)
    >>> ax.get_title(loc="left")
    'balance of alice.near'
    """
    validation.flag(change, "change")
    parts = dict.fromkeys(part for names in _PARTS.values() for part in names)
    canvas.check_columns(frame, (*_COLUMNS, *parts), "lk.history")
    views = canvas.distinct_values(frame, "view", view, "a view of the frame")
    view = view or next(iter(views), "accounts")
    ax = canvas.axes_or_new(ax, 8.0, 4.0)
    rows = frame[frame["view"] == view]
    units_of = _Units(view, decimals, token_units.read_units(tokens))
    lines = [line for line in _lines(rows, view, units_of, change=change) if line.known_amounts]
    notes = _notes(rows, len(lines))
    if not lines:
        reason = "no known amounts" if len(rows) else "no readings"
        return canvas.draw_empty(ax, frame, reason, *notes)
    lines = _farthest(lines)
    handles = [_draw_line(ax, index, line) for index, line in enumerate(lines)]
    quantity = f"{'change in ' if change else ''}{_QUANTITIES[view]}"
    canvas.label_time_axes(ax, f"{quantity} ({token_units.axis_text(line.unit for line in lines)})")
    notes += token_units.note(line.unit for line in lines)
    accounts = list(dict.fromkeys(canvas.column_values(rows, "account_id")))

    def default_title(limit: int) -> str:
        names = ", ".join(texts.shorten(account_id, limit) for account_id in accounts)
        count = units.count_text(len(accounts), "account")
        return f"{quantity} of {names if len(accounts) <= _MAX_NAMES else count}"

    canvas.finish(ax, frame, title or default_title, handles=handles, notes=notes)
    return ax


class _Units(NamedTuple):
    view: str
    decimals: int | Mapping[str, int]
    units_of: Mapping[str, TokenUnit]

    def unit_of(self, contract_id: object) -> TokenUnit:
        if self.view != "ft":
            return token_units.NEAR
        name, decimals = str(contract_id), self.decimals
        n_decimals = decimals.get(name, 0) if isinstance(decimals, Mapping) else decimals
        fallback = TokenUnit("tokens", n_decimals) if n_decimals else token_units.SMALLEST
        return self.units_of.get(name, fallback)


def _lines(rows: pd.DataFrame, view: str, units_of: _Units, *, change: bool) -> list[_Line]:
    """Build a line per account, contract and part, without secondary parts that are always 0."""
    lines = []
    has_several = len(set(rows["account_id"])) > 1
    keys = ["account_id", "contract_id"]
    for (account_id, contract_id), readings in rows.groupby(keys, sort=False, dropna=False):
        ordered = readings.sort_values("time", kind="stable")
        names = [account_id] if has_several else []
        names += [contract_id] if view != "accounts" else []
        unit = units_of.unit_of(contract_id)
        times = ordered["time"].dt.tz_localize(None).to_numpy()
        for part in _PARTS[view]:
            amounts = canvas.column_values(ordered, part)
            first = next((v for v in amounts if v is not None), 0) if change else 0
            amounts = [None if v is None else v - first for v in amounts]
            if part == _PARTS[view][0] or any(amounts):
                label = partial(_label, names, unit.symbol if view == "ft" else "", part)
                lines.append(_Line(label, times, amounts, unit))
    return lines


def _label(names: Sequence[object], symbol: str, part: str, limit: int) -> str:
    words = [texts.shorten(name, limit) for name in names]
    if symbol not in ("", "units", "tokens"):
        words.insert(len(words) - 1, symbol)
    if not words or part != "balance":
        words.append(part)
    return " · ".join(words)


def _farthest(lines: list[_Line]) -> list[_Line]:
    chosen = sorted(range(len(lines)), key=lambda i: -lines[i].extent)[:_MAX_LINES]
    return [lines[i] for i in sorted(chosen)]


def _draw_line(ax: Axes, index: int, line: _Line) -> Any:
    has_dots = len(line.amounts) <= _MAX_DOTS
    values = line.values
    (handle,) = ax.step(
        line.times,
        values,
        where="post",
        color=inks.inside(ax).shape(inks.CYCLE[index]),
        ls=canvas.LINE_STYLES[index],
        lw=1.8,
        marker="o" if has_dots else None,
        markersize=3,
        label=texts.fit(line.label, canvas.legend_room(ax)),
    )
    canvas.set_hover(handle, *(line.hover_texts() if has_dots else [line.label(200)]))
    # matplotlib leaves NaN readings out of the limits: a gap at an end would not be visible.
    ends = canvas.mpl("dates").date2num([line.times.min(), line.times.max()])
    ax.update_datalim([(end, line.unit.number(line.known_amounts[0])) for end in ends])
    return handle


def _notes(rows: pd.DataFrame, n_lines: int) -> list[str]:
    counts = Counter(status for status in canvas.column_values(rows, "status") if status != "ok")
    notes = [
        f"{_STATUS_TEXTS.get(status, status)}: {n:,} of {len(rows):,} readings"
        for status, n in counts.items()
    ]
    return notes + texts.count_note("lines not drawn", n_lines - _MAX_LINES)
