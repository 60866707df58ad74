"""What accounts held over time: steps from reading to reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.errors import InvalidRequestError
from ledgerkit.plots import canvas
from ledgerkit.units import NEAR_DECIMALS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_LINES = 7
_TICK = 10  # letters; the place that a time of day with a fraction takes below the axis
_NAMED = 3  # accounts; beyond, the title counts them
_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
_COLUMNS = ("account_id", "view", "contract_id", "time", "status")
_PARTS = {"accounts": ("balance", "locked"), "ft": ("balance",), "staking": ("staked", "unstaked")}
_WORDS = {
    "no_account": "no account there",
    "no_contract": "no contract there",
    "broken": "the token's call failed",
    "not_a_pool": "not a pool",
}


class _Curve(NamedTuple):
    """One line: what it is of, and its readings in human units, not a number where unknown."""

    label: str
    times: Any
    values: list[float]

    @property
    def known(self) -> list[float]:
        """The readings that have an amount."""
        return [value for value in self.values if not isnan(value)]

    @property
    def top(self) -> float:
        """How far it goes from zero."""
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
    Draw what accounts held over time.

    Parameters
    ----------
    frame
        Typed as ``schema("history")``: what ``lk.history(...)`` gives, or several of these
        concatenated.
    view
        Which of its views: ``accounts``, ``ft`` or ``staking``; None is the first there is.
    change
        Whether to draw how much more or less each line became than at its first known
        reading, which shows small steps of large amounts.
    decimals
        For ``ft``: the digits after the decimal point, by contract or the same for all;
        0 counts in the smallest unit.
    ax
        Where to draw; None makes a figure.
    title
        Above the drawing; None names the accounts.

    Returns
    -------
    ax
        Where it is drawn: a line of steps an account, contract and part, for what was read
        holds until the next reading, as far as anyone looked. What is not known is a gap,
        and counted below. Of many lines the seven that go farthest from 0 are drawn.

    Raises
    ------
    InvalidRequestError
        If the frame lacks columns or the view, or matplotlib is not installed.
    """
    parts = dict.fromkeys(part for names in _PARTS.values() for part in names)
    canvas.require(frame, (*_COLUMNS, *parts), "lk.history")
    chosen = _chosen(frame, view)
    ax = canvas.axes(ax, 8.0, 4.0)
    rows = frame[frame["view"] == chosen]
    curves = _curves(rows, chosen, decimals, change=change)
    known = [curve for curve in curves if curve.known]
    told = _not_drawn(rows, len(known))
    if not known:
        return canvas.empty(ax, "nothing is known" if len(rows) else "nothing was read", *told)
    handles = [_draw(ax, place, curve) for place, curve in enumerate(_farthest(known))]
    _finish(ax, _unit(chosen, decimals, change=change))
    canvas.note(ax, told)
    canvas.header(ax, title or _title(rows, chosen, change=change), handles)
    return ax


def _chosen(frame: pd.DataFrame, view: str | None) -> str:
    """Choose the view to draw."""
    views = list(dict.fromkeys(canvas.values(frame, "view")))
    if view is not None and view not in views:
        rule = f"one that the frame has: {', '.join(views) or 'it has none'}"
        raise InvalidRequestError.refuse("view", view, rule)
    return view or next(iter(views), "accounts")


def _curves(
    rows: pd.DataFrame, view: str, decimals: int | Mapping[str, int], *, change: bool
) -> list[_Curve]:
    """Make a line of each account, contract and part; a part that is always zero has none."""
    curves = []
    several = len(set(rows["account_id"])) > 1
    keys = ["account_id", "contract_id"]
    for (account_id, contract_id), own in rows.groupby(keys, sort=False, dropna=False):
        ordered = own.sort_values("time", kind="stable")
        places = _decimals(view, str(contract_id), decimals)
        times = ordered["time"].dt.tz_localize(None).to_numpy()
        for part in _PARTS[view]:
            exact = _amounts(ordered, part, change=change)
            if part == _PARTS[view][0] or any(exact):
                values = [float("nan") if v is None else canvas.human(v, places) for v in exact]
                label = _label(view, str(account_id) if several else None, contract_id, part)
                curves.append(_Curve(label, times, values))
    return curves


def _amounts(rows: pd.DataFrame, part: str, *, change: bool) -> list[int | None]:
    """Read the amounts, or how far they are from the first known one, while they are exact."""
    exact = canvas.values(rows, part)
    start = next((v for v in exact if v is not None), 0) if change else 0
    return [None if v is None else v - start for v in exact]


def _decimals(view: str, contract_id: str, decimals: int | Mapping[str, int]) -> int:
    """Tell the digits after the decimal point."""
    if view != "ft":
        return NEAR_DECIMALS
    return decimals.get(contract_id, 0) if isinstance(decimals, Mapping) else decimals


def _label(view: str, account_id: str | None, contract_id: object, part: str) -> str:
    """Name a line by what tells it from the others; the account is None if there is one only."""
    words = [] if account_id is None else [canvas.shown(account_id, 30)]
    if view != "accounts":
        words.append(canvas.shown(contract_id, 30))
    if not words or part != "balance":
        words.append(part)
    return " · ".join(words)


def _farthest(curves: list[_Curve]) -> list[_Curve]:
    """Choose what is drawn, in the order of the frame, so that a part of it looks like all."""
    chosen = sorted(range(len(curves)), key=lambda place: -curves[place].top)[:_LINES]
    return [curves[place] for place in sorted(chosen)]


def _draw(ax: Axes, place: int, curve: _Curve) -> Any:
    """Draw one line, with a dot a reading; its gaps at the ends have their place too."""
    (line,) = ax.step(
        curve.times,
        curve.values,
        where="post",
        color=canvas.CYCLE[place],
        ls=_STYLES[place],
        lw=1.8,
        marker="o",
        markersize=3,
        label=curve.label,
    )
    ends = canvas.library("dates").date2num([curve.times.min(), curve.times.max()])
    ax.update_datalim([(end, curve.known[0]) for end in ends])
    return line


def _finish(ax: Axes, unit: str) -> None:
    """Write both axes: the time below, the amounts with all their digits beside."""
    dates = canvas.library("dates")
    most = int(canvas.letters(ax)[0] // _TICK)
    locator = dates.AutoDateLocator(minticks=3, maxticks=max(3, most))
    locator.intervald[dates.SECONDLY] = [1, 2, 5, 10, 15, 30]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(_clock(dates.ConciseDateFormatter(locator)))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    ax.xaxis.get_offset_text().set_fontsize(canvas.SMALL)
    ax.set_xlabel("time (UTC)", size=canvas.SMALL)
    ax.set_ylabel(unit, size=canvas.SMALL)
    canvas.bare(ax, keep=("bottom", "left"))


def _clock(formatter: Any) -> Any:
    """Write seconds as a time of day: a lone 07 could be an hour or a minute."""
    formatter.formats[-1] = "%H:%M:%S.%f"
    formatter.zero_formats[-1] = "%H:%M:%S"
    formatter.offset_formats[-1] = "%Y-%b-%d"
    return formatter


def _unit(view: str, decimals: int | Mapping[str, int], *, change: bool) -> str:
    """Say what is counted."""
    unit = "NEAR"
    if view == "ft":
        unit = "tokens, each in its own unit" if decimals else "smallest units of each token"
    return f"change in {unit}" if change else unit


def _title(rows: pd.DataFrame, view: str, *, change: bool) -> str:
    """Say whose, and what."""
    ids = list(dict.fromkeys(rows["account_id"]))
    many = len(ids) > _NAMED
    names = f"{len(ids):,} accounts" if many else ", ".join(canvas.shown(name, 40) for name in ids)
    what = {"accounts": "NEAR", "ft": "tokens", "staking": "stake"}[view]
    return f"change in {what} of {names}" if change else f"{what} of {names}"


def _not_drawn(rows: pd.DataFrame, n_known: int) -> list[str]:
    """Count the readings without an amount, by reason, and the lines left out."""
    counts = Counter(status for status in canvas.values(rows, "status") if status != "ok")
    told = [
        f"{_WORDS.get(word, word)}: {n:,} of {len(rows):,} readings" for word, n in counts.items()
    ]
    more = [f"lines not drawn: {n_known - _LINES:,}"] if n_known > _LINES else []
    return [" · ".join([*told, *more])] if told or more else []
