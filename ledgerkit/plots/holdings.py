"""What accounts hold: balances, stake by pool, and how unevenly a token is held."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ledgerkit.plots import canvas
from ledgerkit.units import NEAR_DECIMALS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes

_LINE = 0.28  # inches a row
_OWN_UNIT = "tokens, each in its own unit"
_POOLS = 20
_TOKENS = 6
_NAMED = 4
_WHOLE = 100
_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
_BALANCES = ("account_id", "contract_id", "status", "symbol", "amount", "metadata_status")
_POSITIONS = ("account_id", "pool_id", "staked", "unstaked", "can_withdraw", "status")
_HOLDERS = ("contract_id", "balance", "status")
_CLASSES = {
    "direct_only": canvas.BLUE,
    "liquid_only": canvas.GREEN,
    "mixed": canvas.ORANGE,
    "no_visible_staking_position": canvas.FAINT,
}
_PARTS = (
    ("staked", canvas.BLUE, ""),
    ("unstaked, can be withdrawn", canvas.SKY, ".."),
    ("unstaked, still locked", canvas.ORANGE, "///"),
)


def balances(
    ft_frame: pd.DataFrame,
    *,
    top: int = 12,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """
    Draw the balances of tokens in human units.

    Parameters
    ----------
    ft_frame
        Typed as ``schema("ft_metadata")``: what ``lk.ft(..., metadata=True)`` gives.
    top
        How many to draw, the greatest numbers first.
    ax
        Where to draw; None makes a figure.
    title
        Above the drawing; None names the account, or the token where several hold only that.

    Returns
    -------
    ax
        Where it is drawn: a dot a token on a logarithmic axis, its number beside it. Each is
        counted in its own token: more of one is not worth more than less of another. Where
        several accounts hold one and the same token, a dot is an account. What is zero or not
        known is named below.

    Raises
    ------
    InvalidRequestError
        If the frame lacks columns, or matplotlib is not installed.
    """
    canvas.require(ft_frame, _BALANCES, "lk.ft(..., metadata=True)")
    columns = {name: canvas.values(ft_frame, name) for name in _BALANCES}
    told = [dict(zip(_BALANCES, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    held = sorted((row for row in told if row["amount"]), key=lambda row: -row["amount"])
    drawn = held[:top]
    ax = canvas.axes(ax, 7.5, 1.3 + _LINE * max(2, len(drawn)))
    several, is_one = len(set(columns["account_id"])) > 1, len(set(columns["contract_id"])) == 1
    by_account = several and is_one
    left_out = _not_drawn(told, len(held) - len(drawn), by_account=by_account)
    if not drawn:
        return canvas.empty(ax, "no token is held", *left_out)
    if by_account:
        labels = [canvas.shown(row["account_id"], 30) for row in drawn]
    else:
        labels = [_token(row, several=several) for row in drawn]
    _draw_balances(ax, drawn, labels)
    unit = canvas.shown(drawn[0]["symbol"] or "tokens", 12) if is_one else _OWN_UNIT
    ax.set_xlabel(f"{unit}; logarithmic", size=canvas.SMALL, parse_math=False)
    canvas.note(ax, left_out)
    names = list(dict.fromkeys(columns["account_id"]))
    usual = f"holders of {_token(drawn[0])}" if by_account else f"tokens of {_some(names)}"
    canvas.header(ax, title or usual)
    return ax


def _draw_balances(ax: Axes, drawn: list[dict[str, Any]], labels: list[str]) -> None:
    """Draw a dot a row, with its number."""
    amounts = [row["amount"] for row in drawn]
    levels = range(len(drawn))
    ax.set_xscale("log")
    low, high = min(amounts) / 10, max(amounts) * 10
    ax.hlines(levels, low, amounts, colors=canvas.PALE, lw=2, zorder=1)
    ax.scatter(amounts, levels, s=46, c=canvas.BLUE, zorder=3)
    for level, amount in zip(levels, amounts, strict=True):
        ax.annotate(
            canvas.number(amount),
            (amount, level),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            size=canvas.SMALL,
        )
    ax.set_xlim(low, high * 3)
    _name_rows(ax, labels)


def _name_rows(ax: Axes, labels: list[str]) -> None:
    """Name rows from top to bottom."""
    ax.set_yticks(range(len(labels)), labels, size=canvas.SMALL, parse_math=False)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    canvas.bare(ax)
    ax.tick_params(axis="y", length=0)


def _token(row: dict[str, Any], *, several: bool = False) -> str:
    """Name a token by symbol and contract: anybody may take a symbol."""
    symbol = f"{canvas.shown(row['symbol'], 12)} · " if row["symbol"] else ""
    owner = f"{canvas.shown(row['account_id'], 20)}: " if several else ""
    return f"{owner}{symbol}{canvas.shown(row['contract_id'], 28)}"


def _not_drawn(told: list[dict[str, Any]], n_more: int, *, by_account: bool = False) -> list[str]:
    """Say which tokens, or whose, are not drawn, and why."""
    reasons = {
        "zero": [row for row in told if row["amount"] == 0],
        "not fetched yet": [row for row in told if row["status"] == "pending"],
        "broken": [row for row in told if row["status"] == "broken"],
        "decimals not known": [
            row for row in told if row["status"] == "ok" and row["amount"] is None
        ],
    }
    sentences = [
        f"{reason}: {_some([_short(row, by_account=by_account) for row in rows])}"
        for reason, rows in reasons.items()
        if rows
    ]
    more = [f"{n_more:,} more with smaller numbers"] if n_more else []
    return [" · ".join([*sentences, *more])] if sentences or more else []


def _short(row: dict[str, Any], *, by_account: bool) -> str:
    """Name a token, or its holder, in one word."""
    return str(row["account_id"] if by_account else row["symbol"] or row["contract_id"])


def _some(names: Sequence[str]) -> str:
    """Name the first of many."""
    told = ", ".join(canvas.shown(name, 24) for name in names[:_NAMED])
    return f"{told} and {len(names) - _NAMED:,} more" if len(names) > _NAMED else told


def staking(positions: pd.DataFrame, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """
    Draw stake by pool.

    Parameters
    ----------
    positions
        Typed as ``schema("staking_positions")``: what ``lk.staking(..., positions=True)``
        gives.
    ax
        Where to draw; None makes a figure.
    title
        Above the drawing; None tells the sum.

    Returns
    -------
    ax
        Where it is drawn: a bar a pool and account in NEAR, the greatest first: what is staked,
        what is unstaked and can be withdrawn, and what is still locked. Beyond twenty bars the
        rest is one. What is not known is counted below.

    Raises
    ------
    InvalidRequestError
        If the frame lacks columns, or matplotlib is not installed.
    """
    canvas.require(positions, _POSITIONS, "lk.staking(..., positions=True)")
    columns = [canvas.values(positions, name) for name in _POSITIONS]
    rows = list(zip(*columns, strict=True))
    several = len({row[0] for row in rows}) > 1
    known = [_position(row, several=several) for row in rows if None not in row[2:4]]
    bars = _greatest([bar for bar in known if sum(bar[1])])
    ax = canvas.axes(ax, 7.5, 1.4 + _LINE * max(2, len(bars)))
    unknown = len(rows) - len(known)
    left_out = [f"not known: {unknown} of {len(rows)} positions"] if unknown else []
    if not bars:
        return canvas.empty(ax, "nothing is staked", *left_out)
    _draw_stake(ax, bars)
    canvas.note(ax, left_out)
    total = sum(sum(parts) for _, parts in bars)
    canvas.header(ax, title or f"{_near(total)} NEAR with pools", _stake_handles(bars))
    return ax


_Stake = tuple[str, tuple[int, int, int]]


def _position(row: tuple[Any, ...], *, several: bool) -> _Stake:
    """Name a position and tell its three parts, exactly."""
    account_id, pool_id, staked, unstaked, can_withdraw, _ = row
    label = canvas.shown(pool_id, 30)
    if several:
        label = f"{canvas.shown(account_id, 24)} · {label}"
    free = int(unstaked) if can_withdraw else 0
    return label, (int(staked), free, int(unstaked) - free)


def _greatest(bars: list[_Stake]) -> list[_Stake]:
    """Order bars by size, and gather the smallest in one."""
    bars = sorted(bars, key=lambda bar: -sum(bar[1]))
    if len(bars) <= _POOLS:
        return bars
    kept, rest = bars[: _POOLS - 1], bars[_POOLS - 1 :]
    staked, free, locked = (sum(bar[1][part] for bar in rest) for part in range(3))
    return [*kept, (f"{len(rest):,} others", (staked, free, locked))]


def _draw_stake(ax: Axes, bars: list[_Stake]) -> None:
    """Stack the parts of each bar, and write its sum at the end."""
    levels = range(len(bars))
    for part, (label, colour, hatch) in enumerate(_PARTS):
        lefts = [canvas.human(sum(parts[:part]), NEAR_DECIMALS) for _, parts in bars]
        widths = [canvas.human(parts[part], NEAR_DECIMALS) for _, parts in bars]
        look: dict[str, Any] = {
            "color": colour,
            "hatch": hatch,
            "edgecolor": "white",
            "hatch_linewidth": 0.6,
        }
        ax.barh(levels, widths, left=lefts, height=0.66, label=label, linewidth=0.4, **look)
    longest = max(canvas.human(sum(parts), NEAR_DECIMALS) for _, parts in bars)
    for level, (_, parts) in enumerate(bars):
        ax.annotate(
            _near(sum(parts)),
            (canvas.human(sum(parts), NEAR_DECIMALS), level),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            size=canvas.SMALL,
        )
    ax.set_xlim(0, longest * 1.15)
    _name_rows(ax, [label for label, _ in bars])
    canvas.count(ax, "NEAR")


def _near(yocto: int) -> str:
    """Write an amount of NEAR in a few digits."""
    return canvas.number(canvas.human(yocto, NEAR_DECIMALS))


def _stake_handles(bars: list[_Stake]) -> list[Any]:
    """Make the legend: the parts that occur."""
    patch = canvas.library("patches").Patch
    return [
        patch(facecolor=colour, hatch=hatch, edgecolor="white", label=label)
        for part, (label, colour, hatch) in enumerate(_PARTS)
        if any(parts[part] for _, parts in bars)
    ]


def exposure(frame: pd.DataFrame, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """
    Draw how many accounts stake, and how.

    Parameters
    ----------
    frame
        Typed as ``schema("exposure")``: what ``lk.exposure`` gives.
    ax
        Where to draw; None makes a figure.
    title
        Above the drawing; None counts the accounts.

    Returns
    -------
    ax
        Where it is drawn: a bar a class, also where no account is in it, with its count and
        share.

    Raises
    ------
    InvalidRequestError
        If the frame lacks columns, or matplotlib is not installed.
    """
    canvas.require(frame, ("exposure_class",), "lk.exposure")
    told = canvas.values(frame, "exposure_class")
    colours = {**dict.fromkeys(told, canvas.PURPLE), **_CLASSES}
    counts = {name: told.count(name) for name in (*_CLASSES, *told)}
    ax = canvas.axes(ax, 7.5, 1.1 + _LINE * len(counts))
    if not told:
        return canvas.empty(ax, "no account is told")
    levels = range(len(counts))
    ax.barh(levels, list(counts.values()), height=0.66, color=[colours[name] for name in counts])
    for level, number in enumerate(counts.values()):
        words = f"{number:,} ({_percent(number, len(told))})"
        where: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points"}
        ax.annotate(words, (number, level), va="center", size=canvas.SMALL, **where)
    ax.set_xlim(0, max(counts.values()) * 1.15)
    _name_rows(ax, [canvas.shown(name, 30) for name in counts])
    canvas.count(ax, "accounts")
    people = "1 account by how it stakes"
    canvas.header(
        ax, title or (f"{len(told):,} accounts by how they stake" if told[1:] else people)
    )
    return ax


def concentration(
    holders: pd.DataFrame, *, ax: Axes | None = None, title: str | None = None
) -> Axes:
    """
    Draw how unevenly a token is held: Lorenz curves.

    Parameters
    ----------
    holders
        Typed as ``schema("top_holders")``, of one token or several.
    ax
        Where to draw; None makes a figure.
    title
        Above the drawing; None says what is drawn.

    Returns
    -------
    ax
        Where it is drawn: the share of the balances that the smallest holders have together,
        the Gini coefficient in the legend (0: all hold the same), and what the greatest
        holder has. Only listed holders of more than nothing count: a list that is cut off
        makes a token look more even than it is.

    Raises
    ------
    InvalidRequestError
        If the frame lacks columns, or matplotlib is not installed.
    """
    canvas.require(holders, _HOLDERS, "lk.top_holders")
    columns = [canvas.values(holders, name) for name in _HOLDERS]
    held: dict[str, list[int]] = {}
    for contract_id, balance, _ in zip(*columns, strict=True):
        if balance:
            held.setdefault(contract_id, []).append(int(balance))
    ax = canvas.axes(ax, 6.4, 5.2)
    if not held:
        return canvas.empty(ax, "no holder is listed")
    drawn = list(held.items())[:_TOKENS]
    lines = [_draw_curve(ax, place, *one) for place, one in enumerate(drawn)]
    lines += ax.plot([0, 100], [0, 100], color=canvas.FAINT, lw=0.8, label="all hold the same")
    _finish_curves(ax)
    left_out = len(held) - len(drawn)
    canvas.note(ax, [f"tokens not drawn: {left_out}"] if left_out else [])
    canvas.header(ax, title or "how the listed holders share", lines)
    return ax


def _draw_curve(ax: Axes, place: int, contract_id: str, held: list[int]) -> Any:
    """Draw one token's curve, and say what the greatest holder has."""
    held = sorted(held)
    total = sum(held)
    sums = [0, *accumulate(held)]
    label = (
        f"{canvas.shown(contract_id, 30)}: Gini {float(gini(held)):.2f}, {len(held):,} holders, "
        f"the greatest has {_percent(held[-1], total)}"
    )
    across = [100 * at / len(held) for at in range(len(sums))]
    (line,) = ax.plot(
        across,
        [100 * part / total for part in sums],
        color=canvas.CYCLE[place],
        ls=_STYLES[place],
        lw=2,
        label=label,
    )
    return line


def _percent(part: int, whole: int) -> str:
    """Write a share; only the whole is 100%."""
    share = 100 * part / whole
    return "over 99%" if part < whole and round(share) >= _WHOLE else f"{share:.0f}%"


def gini(held: Sequence[int]) -> Fraction:
    """Compute the Gini coefficient of amounts, exactly; they are in rising order and not all 0."""
    weighted = sum(rank * amount for rank, amount in enumerate(held, 1))
    n = len(held)
    return Fraction(2 * weighted, n * sum(held)) - Fraction(n + 1, n)


def _finish_curves(ax: Axes) -> None:
    """Count both axes in percent."""
    ax.set_xlim(0, 100)
    ax.set_ylim(0, 100)
    ax.set_xlabel("% of the holders, the smallest first", size=canvas.SMALL)
    ax.set_ylabel("% of what they hold together", size=canvas.SMALL)
    ax.set_aspect("equal")
    canvas.bare(ax, keep=("bottom", "left"))
