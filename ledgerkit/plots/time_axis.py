"""The axes of balances over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.plots import canvas, texts
from ledgerkit.plots.texts import SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TICK = "00:00:00.0"  # the widest label of the time axis
_LARGEST = 1e10  # larger ticks have fewer digits


def label_axes(ax: Axes, unit: str) -> None:
    """Label the time below and the amounts, with all digits, at the left."""
    dates = canvas.mpl("dates")
    max_ticks = int(canvas.size(ax)[0] // (texts.width(_TICK) + SMALL))
    locator = dates.AutoDateLocator(minticks=3, maxticks=max(3, max_ticks))
    locator.intervald[dates.SECONDLY] = [1, 2, 5, 10, 15, 30]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(_date_formatter(locator))
    ax.yaxis.set_major_formatter(lambda value, _: _tick_text(value))
    ax.xaxis.get_offset_text().set_fontsize(SMALL)
    ax.set_xlabel("time (UTC)", size=SMALL)
    ax.set_ylabel(unit, size=SMALL)
    canvas.hide_spines(ax, keep=("bottom", "left"))


def _tick_text(value: float) -> str:
    return f"{value:,.10g}" if abs(value) < _LARGEST else texts.format_number(value)


def _date_formatter(locator: Any) -> Any:
    """Build a date formatter that writes seconds as a time of day."""
    # By default matplotlib writes "07", which could be an hour, a minute or a second.
    formatter = canvas.mpl("dates").ConciseDateFormatter(locator)
    formatter.formats[-1] = "%H:%M:%S.%f"
    formatter.zero_formats[-1] = "%H:%M:%S"
    formatter.offset_formats[-1] = "%Y-%b-%d"
    return formatter
