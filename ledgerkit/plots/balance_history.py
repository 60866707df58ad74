"""Balances over time, as steps from reading to reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import units
from ledgerkit.errors import InvalidRequestError
from ledgerkit.plots import canvas

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_MAX_LINES = 7
_TICK_WIDTH = 10  # characters; wide enough for a time of day with a fraction
_MAX_NAMES = 3  # accounts in the title; more are counted
_COLUMNS = ("account_id", "view", "contract_id", "time", "status")
_PARTS = {"accounts": ("balance", "locked"), "ft": ("balance",), "staking": ("staked", "unstaked")}
_SUBJECTS = {"accounts": "NEAR", "ft": "tokens", "staking": "stake"}
_STATUS_TEXTS = {
    "no_account": "account did not exist",
    "no_contract": "contract did not exist",
    "broken": "token call failed",
    "not_a_pool": "not a pool",
}


class _Line(NamedTuple):
    """One line: its label, and its readings in human units, NaN where unknown."""

    label: str
    times: Any
    values: list[float]

    @property
    def known(self) -> list[float]:
        """The readings that have an amount."""
        return [value for value in self.values if not isnan(value)]

    @property
    def extent(self) -> float:
        """The largest distance from zero."""
        return max(map(abs, self.known))


def history(
    frame: pd.DataFrame,
    *,
    view: str | None = None,
    change: bool = False,
    decimals: int | Mapping[str, int] = 0,
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
        Which of its views: ``accounts``, ``ft`` or ``staking``; None is the first in the frame.
    change
        True draws the difference from each line's first known reading, which shows small
        steps of large amounts.
    decimals
        For ``ft``: the token's decimals, by contract or one number for all; 0 draws smallest
        units.
    ax
        The axes to draw on; None makes a figure.
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
    """
    parts = dict.fromkeys(part for names in _PARTS.values() for part in names)
    canvas.check_columns(frame, (*_COLUMNS, *parts), "lk.history")
    view = _check_view(frame, view)
    ax = canvas.axes_or_new(ax, 8.0, 4.0)
    rows = frame[frame["view"] == view]
    lines = [line for line in _lines(rows, view, decimals, change=change) if line.known]
    notes = _notes(rows, len(lines))
    if not lines:
        return canvas.draw_empty(ax, "no known amounts" if len(rows) else "no readings", *notes)
    handles = [_draw_line(ax, place, line) for place, line in enumerate(_farthest(lines))]
    _label_axes(ax, _unit(view, decimals, change=change))
    canvas.add_notes(ax, notes)
    canvas.draw_title(ax, title or _default_title(rows, view, change=change), handles)
    return ax


def _check_view(frame: pd.DataFrame, view: str | None) -> str:
    """Return the view to draw, after checking that the frame has it."""
    views = list(dict.fromkeys(canvas.column_values(frame, "view")))
    if view is not None and view not in views:
        expected = f"a view of the frame, which has {', '.join(views) or 'none'}"
        raise InvalidRequestError.refuse("view", view, expected)
    return view or next(iter(views), "accounts")


def _lines(
    rows: pd.DataFrame, view: str, decimals: int | Mapping[str, int], *, change: bool
) -> list[_Line]:
    """Build a line per account, contract and part; secondary parts that are always 0 have none."""
    lines = []
    has_several = len(set(rows["account_id"])) > 1
    keys = ["account_id", "contract_id"]
    for (account_id, contract_id), own in rows.groupby(keys, sort=False, dropna=False):
        ordered = own.sort_values("time", kind="stable")
        places = _decimals(view, str(contract_id), decimals)
        times = ordered["time"].dt.tz_localize(None).to_numpy()
        for part in _PARTS[view]:
            exact = _amounts(ordered, part, change=change)
            if part == _PARTS[view][0] or any(exact):
                values = [float("nan") if v is None else units.to_float(v, places) for v in exact]
                name = str(account_id) if has_several else None
                lines.append(_Line(_label(view, name, contract_id, part), times, values))
    return lines


def _amounts(rows: pd.DataFrame, part: str, *, change: bool) -> list[int | None]:
    """Read exact amounts, or their exact differences from the first known one."""
    exact = canvas.column_values(rows, part)
    start = next((v for v in exact if v is not None), 0) if change else 0
    return [None if v is None else v - start for v in exact]


def _decimals(view: str, contract_id: str, decimals: int | Mapping[str, int]) -> int:
    """Return the decimals of a line's amounts."""
    if view != "ft":
        return units.NEAR_DECIMALS
    return decimals.get(contract_id, 0) if isinstance(decimals, Mapping) else decimals


def _label(view: str, account_id: str | None, contract_id: object, part: str) -> str:
    """Label a line by what distinguishes it; `account_id` is None if all lines share one."""
    words = [] if account_id is None else [canvas.one_line(account_id, 30)]
    if view != "accounts":
        words.append(canvas.one_line(contract_id, 30))
    if not words or part != "balance":
        words.append(part)
    return " · ".join(words)


def _farthest(lines: list[_Line]) -> list[_Line]:
    """Choose the lines that go farthest from zero, in the order of the frame."""
    chosen = sorted(range(len(lines)), key=lambda place: -lines[place].extent)[:_MAX_LINES]
    return [lines[place] for place in sorted(chosen)]


def _draw_line(ax: Axes, place: int, line: _Line) -> Any:
    """Draw one line, with a dot per reading."""
    (handle,) = ax.step(
        line.times,
        line.values,
        where="post",
        color=canvas.CYCLE[place],
        ls=canvas.LINE_STYLES[place],
        lw=1.8,
        marker="o",
        markersize=3,
        label=line.label,
    )
    # matplotlib leaves NaN readings out of the limits: a gap at an end would not be visible.
    ends = canvas.mpl("dates").date2num([line.times.min(), line.times.max()])
    ax.update_datalim([(end, line.known[0]) for end in ends])
    return handle


def _label_axes(ax: Axes, unit: str) -> None:
    """Label the time below and the amounts, with all digits, at the left."""
    dates = canvas.mpl("dates")
    max_ticks = int(canvas.text_capacity(ax)[0] // _TICK_WIDTH)
    locator = dates.AutoDateLocator(minticks=3, maxticks=max(3, max_ticks))
    locator.intervald[dates.SECONDLY] = [1, 2, 5, 10, 15, 30]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(_date_formatter(locator))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    ax.xaxis.get_offset_text().set_fontsize(canvas.SMALL)
    ax.set_xlabel("time (UTC)", size=canvas.SMALL)
    ax.set_ylabel(unit, size=canvas.SMALL)
    canvas.hide_spines(ax, keep=("bottom", "left"))


def _date_formatter(locator: Any) -> Any:
    """Build a date formatter that writes seconds as a time of day."""
    # By default matplotlib writes "07", which could be an hour, a minute or a second.
    formatter = canvas.mpl("dates").ConciseDateFormatter(locator)
    formatter.formats[-1] = "%H:%M:%S.%f"
    formatter.zero_formats[-1] = "%H:%M:%S"
    formatter.offset_formats[-1] = "%Y-%b-%d"
    return formatter


def _unit(view: str, decimals: int | Mapping[str, int], *, change: bool) -> str:
    """Return the label of the vertical axis."""
    unit = "NEAR"
    if view == "ft":
        unit = "tokens, each in its own unit" if decimals else "smallest units of each token"
    return f"change in {unit}" if change else unit


def _default_title(rows: pd.DataFrame, view: str, *, change: bool) -> str:
    """Return the title, which names the accounts and the quantity."""
    ids = list(dict.fromkeys(rows["account_id"]))
    names = ", ".join(canvas.one_line(account_id, 40) for account_id in ids[:_MAX_NAMES])
    accounts = f"{len(ids):,} accounts" if len(ids) > _MAX_NAMES else names
    return f"{'change in ' if change else ''}{_SUBJECTS[view]} of {accounts}"


def _notes(rows: pd.DataFrame, n_lines: int) -> list[str]:
    """Count the readings without an amount by reason, and the lines that are not drawn."""
    counts = Counter(status for status in canvas.column_values(rows, "status") if status != "ok")
    notes = [
        f"{_STATUS_TEXTS.get(status, status)}: {n:,} of {len(rows):,} readings"
        for status, n in counts.items()
    ]
    notes += [f"lines not drawn: {n_lines - _MAX_LINES:,}"] if n_lines > _MAX_LINES else []
    return [" · ".join(notes)] if notes else []
