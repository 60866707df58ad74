"""The course of balances over blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import checks
from ledgerkit.plots import canvas
from ledgerkit.units import NEAR_DECIMALS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes

COLUMNS = ("account_id", "block_height", "balance")
SOURCE = "balances over blocks"
_ACCOUNTS = 6
_FEW = 40  # blocks; each has a dot as long as dots stand apart
_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
_MOST_DECIMALS = 255

Course = list[tuple[int, int | None]]


def history(
    frame: pd.DataFrame,
    *,
    change: bool = False,
    decimals: int = NEAR_DECIMALS,
    unit: str = "NEAR",
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """
    Draw balances over blocks.

    Parameters
    ----------
    frame
        A row an account and block, with the columns ``account_id``, ``block_height`` and
        ``balance``, in any order.
    change
        Whether to draw what each balance became more or less than its first known one, which
        shows small steps of large balances.
    decimals
        Of the unit: 10**decimals of the balance are one.
    unit
        What stands at the axis.
    ax
        Where to draw; None makes a figure.
    title
        Above the drawing; None names the accounts.

    Returns
    -------
    ax
        Where it is drawn: a line of steps for each of the first six accounts, which keeps its
        height up to the next block that is told; the others are counted below. Where a balance
        is missing the line has a gap, since that is not zero.

    Raises
    ------
    InvalidRequestError
        If the frame lacks columns, or matplotlib is not installed.
    """
    canvas.require(frame, COLUMNS, SOURCE)
    checks.whole(decimals, "decimals", least=0, most=_MOST_DECIMALS)
    courses = _courses(frame)
    ax = canvas.axes(ax, 7.5, 3.4)
    if not courses:
        return canvas.empty(ax, "no balance is told")
    first = min(course[0][0] for course in courses.values())
    drawn = list(courses.items())[:_ACCOUNTS]
    lines = [
        _draw(ax, place, name, _heights(course, decimals, change=change), first)
        for place, (name, course) in enumerate(drawn)
    ]
    _finish(ax, first, f"change in {unit}" if change else unit)
    left_out = len(courses) - len(drawn)
    canvas.note(ax, [f"accounts not drawn: {left_out:,}"] if left_out else [])
    told = ", ".join(canvas.shown(name, 24) for name, _ in drawn)
    how = "change of the balance of" if change else "balance of"
    canvas.header(ax, title or f"{how} {told}", lines if len(drawn) > 1 else ())
    return ax


def _courses(frame: pd.DataFrame) -> dict[str, Course]:
    """Read each account's balances in the order of blocks; an account that told none has none."""
    courses: dict[str, Course] = {}
    columns = [canvas.values(frame, name) for name in COLUMNS]
    for account_id, height, balance in zip(*columns, strict=True):
        if height is not None:
            known = None if balance is None else int(balance)
            courses.setdefault(str(account_id), []).append((int(height), known))
    return {
        name: sorted(course, key=lambda one: one[0])
        for name, course in courses.items()
        if any(balance is not None for _, balance in course)
    }


def _heights(course: Course, decimals: int, *, change: bool) -> list[tuple[int, float]]:
    """Turn balances into what is drawn; differences are taken while they are exact."""
    start = next(one for _, one in course if one is not None) if change else 0
    return [
        (at, float("nan") if one is None else canvas.human(one - start, decimals))
        for at, one in course
    ]


def _draw(ax: Axes, place: int, name: str, points: Sequence[tuple[int, float]], first: int) -> Any:
    """Draw one account's steps."""
    colour = canvas.CYCLE[place]
    (line,) = ax.step(
        [at - first for at, _ in points],
        [height for _, height in points],
        where="post",
        color=colour,
        ls=_STYLES[place],
        lw=1.8,
        marker="o" if len(points) <= _FEW else "",
        ms=3.5,
        label=canvas.shown(name, 30),
    )
    return line


def _finish(ax: Axes, first: int, words: str) -> None:
    """Count blocks from the first along the bottom, and the unit at the left."""
    canvas.count(ax, f"block, counted from {first}")
    ax.xaxis.set_major_locator(canvas.library("ticker").MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(lambda value, _: canvas.number(value))
    ax.set_ylabel(canvas.shown(words, 40), size=canvas.SMALL, parse_math=False)
    canvas.bare(ax, keep=("bottom", "left"))
