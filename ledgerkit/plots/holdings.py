"""Holdings of accounts: token balances, stake by pool, exposure classes and concentration."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ledgerkit import units
from ledgerkit.plots import canvas

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes

_ROW_HEIGHT = 0.28  # inches
_MAX_POOLS = 20
_MAX_TOKENS = 6
_MAX_NAMES = 4
_BALANCES = ("account_id", "contract_id", "status", "symbol", "amount")
_POSITIONS = ("account_id", "pool_id", "staked", "unstaked", "can_withdraw")
_HOLDERS = ("contract_id", "balance")
_CLASSES = {
    "direct_only": canvas.BLUE,
    "liquid_only": canvas.GREEN,
    "mixed": canvas.ORANGE,
    "no_visible_staking_position": canvas.FAINT,
}
_NOT_INDEXED = "not_indexed"
_STAKE_PARTS = (  # label, colour, hatch
    ("staked", canvas.BLUE, ""),
    ("unstaked, withdrawable", canvas.SKY, ".."),
    ("unstaked, still locked", canvas.ORANGE, "///"),
)


# Token balances -------------------------------------------------------------------------


def balances(
    ft_frame: pd.DataFrame,
    *,
    top: int = 12,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """
    Draw token balances in human units.

    Parameters
    ----------
    ft_frame
        Typed as ``schema("ft_metadata")``: the result of ``lk.ft(..., metadata=True)``.
    top
        How many balances to draw, the largest numbers first.
    ax
        The axes to draw on; None makes a figure.
    title
        The title; None names the account, or the token if several accounts hold only that one.

    Returns
    -------
    ax
        The axes: one dot per token on a logarithmic axis, with its number. Each token has its
        own unit, so a larger number is not a larger value. If several accounts hold the same
        single token, there is one dot per account. Zero and unknown balances are listed in a
        note.

    Raises
    ------
    InvalidRequestError
        If the frame lacks columns, or matplotlib is not installed.
    """
    records = _balance_records(ft_frame)
    nonzero = sorted((row for row in records if row["amount"]), key=lambda row: -row["amount"])
    drawn = nonzero[:top]
    ax = canvas.axes_or_new(ax, 7.5, 1.3 + _ROW_HEIGHT * max(2, len(drawn)))
    accounts = list(dict.fromkeys(row["account_id"] for row in records))
    has_several = len(accounts) > 1
    is_one_token = len({row["contract_id"] for row in records}) == 1
    by_account = has_several and is_one_token
    notes = _balance_notes(records, len(nonzero) - len(drawn), by_account=by_account)
    if not drawn:
        return canvas.draw_empty(ax, "no token balances", *notes)
    if by_account:
        labels = [canvas.one_line(row["account_id"], 30) for row in drawn]
    else:
        labels = [_token_label(row, with_account=has_several) for row in drawn]
    _draw_balances(ax, drawn, labels)
    symbol = canvas.one_line(drawn[0]["symbol"] or "tokens", 12)
    unit = symbol if is_one_token else "tokens, each in its own unit"
    ax.set_xlabel(f"{unit} (log scale)", size=canvas.SMALL, parse_math=False)
    canvas.add_notes(ax, notes)
    usual = (
        f"holders of {_token_label(drawn[0])}"
        if by_account
        else f"tokens of {_join_names(accounts)}"
    )
    canvas.draw_title(ax, title or usual)
    return ax


def _balance_records(ft_frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Read the rows of the frame as dicts."""
    canvas.check_columns(ft_frame, _BALANCES, "lk.ft(..., metadata=True)")
    columns = [canvas.column_values(ft_frame, name) for name in _BALANCES]
    return [dict(zip(_BALANCES, row, strict=True)) for row in zip(*columns, strict=True)]


def _draw_balances(ax: Axes, drawn: list[dict[str, Any]], labels: list[str]) -> None:
    """Draw a dot and a number per row."""
    amounts = [row["amount"] for row in drawn]
    levels = range(len(drawn))
    ax.set_xscale("log")
    low, high = min(amounts) / 10, max(amounts) * 10
    ax.hlines(levels, low, amounts, colors=canvas.PALE, lw=2, zorder=1)
    ax.scatter(amounts, levels, s=46, c=canvas.BLUE, zorder=3)
    for level, amount in zip(levels, amounts, strict=True):
        canvas.write_beside(ax, canvas.format_number(amount), amount, level, points=7)
    ax.set_xlim(low, high * 3)
    canvas.label_rows(ax, labels)


def _token_label(row: dict[str, Any], *, with_account: bool = False) -> str:
    """Label a token by symbol and contract, since any contract can use any symbol."""
    symbol = f"{canvas.one_line(row['symbol'], 12)} · " if row["symbol"] else ""
    account = f"{canvas.one_line(row['account_id'], 20)}: " if with_account else ""
    return f"{account}{symbol}{canvas.one_line(row['contract_id'], 28)}"


def _balance_notes(records: list[dict[str, Any]], n_smaller: int, *, by_account: bool) -> list[str]:
    """List the balances that are not drawn, with the reason."""
    reasons = {
        "zero": [row for row in records if row["amount"] == 0],
        "not fetched yet": [row for row in records if row["status"] == "pending"],
        "broken": [row for row in records if row["status"] == "broken"],
        "unknown decimals": [
            row for row in records if row["status"] == "ok" and row["amount"] is None
        ],
    }
    notes = [
        f"{reason}: {_join_names([_short_name(row, by_account=by_account) for row in rows])}"
        for reason, rows in reasons.items()
        if rows
    ]
    notes += [f"{n_smaller:,} smaller balances not drawn"] if n_smaller else []
    return [" · ".join(notes)] if notes else []


def _short_name(row: dict[str, Any], *, by_account: bool) -> str:
    """Return the account, or the token's symbol or contract."""
    return str(row["account_id"] if by_account else row["symbol"] or row["contract_id"])


def _join_names(names: Sequence[str]) -> str:
    """Join the first names, and count the others."""
    listed = ", ".join(canvas.one_line(name, 24) for name in names[:_MAX_NAMES])
    n_others = len(names) - _MAX_NAMES
    return f"{listed} and {n_others:,} more" if n_others > 0 else listed


# Stake by pool --------------------------------------------------------------------------

_Bar = tuple[str, tuple[int, int, int]]  # label; yoctoNEAR staked, withdrawable and locked


def staking(positions: pd.DataFrame, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """
    Draw stake by pool.

    Parameters
    ----------
    positions
        Typed as ``schema("staking_positions")``: the result of
        ``lk.staking(..., positions=True)``.
    ax
        The axes to draw on; None makes a figure.
    title
        The title; None shows the total.

    Returns
    -------
    ax
        The axes: one bar in NEAR per pool and account, largest first, split into staked,
        unstaked and withdrawable, and unstaked but locked. Beyond twenty bars the smallest are
        summed. Unknown positions are counted in a note.

    Raises
    ------
    InvalidRequestError
        If the frame lacks columns, or matplotlib is not installed.
    """
    canvas.check_columns(positions, _POSITIONS, "lk.staking(..., positions=True)")
    columns = [canvas.column_values(positions, name) for name in _POSITIONS]
    rows = list(zip(*columns, strict=True))
    has_several = len({row[0] for row in rows}) > 1
    known = [_stake_bar(row, with_account=has_several) for row in rows if None not in row[2:4]]
    bars = _largest_bars([bar for bar in known if sum(bar[1])])
    ax = canvas.axes_or_new(ax, 7.5, 1.4 + _ROW_HEIGHT * max(2, len(bars)))
    n_unknown = len(rows) - len(known)
    notes = [f"unknown: {n_unknown} of {len(rows)} positions"] if n_unknown else []
    if not bars:
        return canvas.draw_empty(ax, "no stake", *notes)
    _draw_stake(ax, bars)
    canvas.add_notes(ax, notes)
    total = _near_text(sum(sum(parts) for _, parts in bars))
    canvas.draw_title(ax, title or f"{total} NEAR in staking pools", _stake_handles(bars))
    return ax


def _stake_bar(row: tuple[Any, ...], *, with_account: bool) -> _Bar:
    """Return the label and the three parts of a position."""
    account_id, pool_id, staked, unstaked, can_withdraw = row
    label = canvas.one_line(pool_id, 30)
    if with_account:
        label = f"{canvas.one_line(account_id, 24)} · {label}"
    withdrawable = int(unstaked) if can_withdraw else 0
    return label, (int(staked), withdrawable, int(unstaked) - withdrawable)


def _largest_bars(bars: list[_Bar]) -> list[_Bar]:
    """Sort bars by size, and sum the smallest."""
    bars = sorted(bars, key=lambda bar: -sum(bar[1]))
    if len(bars) <= _MAX_POOLS:
        return bars
    largest, others = bars[: _MAX_POOLS - 1], bars[_MAX_POOLS - 1 :]
    staked, withdrawable, locked = (sum(bar[1][part] for bar in others) for part in range(3))
    return [*largest, (f"{len(others):,} others", (staked, withdrawable, locked))]


def _draw_stake(ax: Axes, bars: list[_Bar]) -> None:
    """Stack the parts of each bar, and write its sum at the end."""
    levels = range(len(bars))
    for part, (label, colour, hatch) in enumerate(_STAKE_PARTS):
        lefts = [_near(sum(parts[:part])) for _, parts in bars]
        widths = [_near(parts[part]) for _, parts in bars]
        style: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "white"}
        style |= {"hatch_linewidth": 0.6, "linewidth": 0.4}
        ax.barh(levels, widths, left=lefts, height=0.66, label=label, **style)
    for level, (_, parts) in enumerate(bars):
        canvas.write_beside(ax, _near_text(sum(parts)), _near(sum(parts)), level)
    ax.set_xlim(0, max(_near(sum(parts)) for _, parts in bars) * 1.15)
    canvas.label_rows(ax, [label for label, _ in bars])
    canvas.label_x_axis(ax, "NEAR")


def _near(yocto: int) -> float:
    """Convert yoctoNEAR to NEAR."""
    return units.to_float(yocto, units.NEAR_DECIMALS)


def _near_text(yocto: int) -> str:
    """Format yoctoNEAR as a short number of NEAR."""
    return canvas.format_number(_near(yocto))


def _stake_handles(bars: list[_Bar]) -> list[Any]:
    """Return the legend entries of the parts that occur."""
    patch = canvas.mpl("patches").Patch
    return [
        patch(facecolor=colour, hatch=hatch, edgecolor="white", label=label)
        for part, (label, colour, hatch) in enumerate(_STAKE_PARTS)
        if any(parts[part] for _, parts in bars)
    ]


# Exposure classes -----------------------------------------------------------------------


def exposure(frame: pd.DataFrame, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """
    Draw the number of accounts in each staking exposure class.

    Parameters
    ----------
    frame
        Typed as ``schema("exposure")``: the result of ``lk.exposure``.
    ax
        The axes to draw on; None makes a figure.
    title
        The title; None counts the accounts.

    Returns
    -------
    ax
        The axes: one bar per class, empty ones too, with its count and share. Accounts that are
        not indexed have a bar of their own.

    Raises
    ------
    InvalidRequestError
        If the frame lacks columns, or matplotlib is not installed.
    """
    canvas.check_columns(frame, ("exposure_class", "status"), "lk.exposure")
    columns = (canvas.column_values(frame, name) for name in ("exposure_class", "status"))
    classes = [
        _NOT_INDEXED if status == _NOT_INDEXED else name
        for name, status in zip(*columns, strict=True)
    ]
    colours = {**dict.fromkeys(classes, canvas.PURPLE), **_CLASSES, _NOT_INDEXED: canvas.PALE}
    counts = {name: classes.count(name) for name in (*_CLASSES, *classes)}
    ax = canvas.axes_or_new(ax, 7.5, 1.1 + _ROW_HEIGHT * len(counts))
    if not classes:
        return canvas.draw_empty(ax, "no accounts")
    levels = range(len(counts))
    ax.barh(levels, list(counts.values()), height=0.66, color=[colours[name] for name in counts])
    for level, count in enumerate(counts.values()):
        canvas.write_beside(ax, f"{count:,} ({_percent(count, len(classes))})", count, level)
    ax.set_xlim(0, max(counts.values()) * 1.15)
    canvas.label_rows(ax, [canvas.one_line(name, 30) for name in counts])
    canvas.label_x_axis(ax, "accounts")
    plural = "" if len(classes) == 1 else "s"
    canvas.draw_title(ax, title or f"{len(classes):,} account{plural} by staking exposure")
    return ax


# Concentration --------------------------------------------------------------------------


def concentration(
    holders: pd.DataFrame, *, ax: Axes | None = None, title: str | None = None
) -> Axes:
    """
    Draw how unevenly a token is distributed: Lorenz curves.

    Parameters
    ----------
    holders
        Typed as ``schema("top_holders")``, of one token or several.
    ax
        The axes to draw on; None makes a figure.
    title
        The title; None describes the plot.

    Returns
    -------
    ax
        The axes: the share of the total balance that the smallest holders have together. The
        legend shows the Gini coefficient (0 if all balances are equal) and the share of the
        largest holder. Only listed holders with a balance above zero count: a truncated list
        makes a token look more evenly distributed than it is.

    Raises
    ------
    InvalidRequestError
        If the frame lacks columns, or matplotlib is not installed.
    """
    canvas.check_columns(holders, _HOLDERS, "lk.top_holders")
    columns = [canvas.column_values(holders, name) for name in _HOLDERS]
    balances_of: dict[str, list[int]] = {}
    for contract_id, balance in zip(*columns, strict=True):
        if balance:
            balances_of.setdefault(contract_id, []).append(int(balance))
    ax = canvas.axes_or_new(ax, 6.4, 5.2)
    if not balances_of:
        return canvas.draw_empty(ax, "no holders listed")
    drawn = list(balances_of.items())[:_MAX_TOKENS]
    lines = [_draw_lorenz_curve(ax, place, *item) for place, item in enumerate(drawn)]
    lines += ax.plot([0, 100], [0, 100], color=canvas.FAINT, lw=0.8, label="equal balances")
    _label_percent_axes(ax)
    n_hidden = len(balances_of) - len(drawn)
    canvas.add_notes(ax, [f"tokens not drawn: {n_hidden}"] if n_hidden else [])
    canvas.draw_title(ax, title or "concentration among listed holders", lines)
    return ax


def _draw_lorenz_curve(ax: Axes, place: int, contract_id: str, amounts: list[int]) -> Any:
    """Draw the curve of one token."""
    amounts = sorted(amounts)
    total = sum(amounts)
    sums = [0, *accumulate(amounts)]
    label = (
        f"{canvas.one_line(contract_id, 30)}: Gini {float(gini(amounts)):.2f}, "
        f"{len(amounts):,} holders, largest {_percent(amounts[-1], total)}"
    )
    (line,) = ax.plot(
        [100 * at / len(amounts) for at in range(len(sums))],
        [100 * part / total for part in sums],
        color=canvas.CYCLE[place],
        ls=canvas.LINE_STYLES[place],
        lw=2,
        label=label,
    )
    return line


def _percent(part: int, whole: int) -> str:
    """Format a share; less than the whole is never rounded to 100%."""
    text = f"{100 * part / whole:.0f}%"
    return "over 99%" if part < whole and text == "100%" else text


def gini(amounts: Sequence[int]) -> Fraction:
    """Compute the exact Gini coefficient of ascending amounts, which must not all be 0."""
    weighted = sum(rank * amount for rank, amount in enumerate(amounts, 1))
    n = len(amounts)
    return Fraction(2 * weighted, n * sum(amounts)) - Fraction(n + 1, n)


def _label_percent_axes(ax: Axes) -> None:
    """Label both axes in percent."""
    ax.set_xlim(0, 100)
    ax.set_ylim(0, 100)
    ax.set_xlabel("% of holders, smallest first", size=canvas.SMALL)
    ax.set_ylabel("% of the total balance", size=canvas.SMALL)
    ax.set_aspect("equal")
    canvas.hide_spines(ax, keep=("bottom", "left"))
