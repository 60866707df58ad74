"""Holdings of accounts: token balances, stake by pool, exposure classes and concentration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import accumulate
from math import log10
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import units
from ledgerkit.plots import canvas, inks, texts, token_units
from ledgerkit.plots.texts import SMALL
from ledgerkit.plots.token_units import TokenUnit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_ROW_HEIGHT = 0.28  # inches
_MAX_POOLS = 20
_MAX_TOKENS = 6
_LONG_NUMBER = 10**7  # from here on, the ticks of a logarithmic axis are powers of ten
_BALANCES = ("account_id", "contract_id", "status", "symbol", "decimals", "balance")
_IN_INTENTS = ("token_id", "held_in")  # with `intents=True`
_POSITIONS = ("account_id", "pool_id", "source", "staked", "unstaked", "can_withdraw")
_BY_LOCKUPS = ("lockup", "venear")  # sources
_HOLDERS = ("contract_id", "balance")
_CLASSES = {
    "direct_only": inks.BLUE,
    "liquid_only": inks.GREEN,
    "mixed": inks.ORANGE,
    "no_visible_staking_position": inks.GREY,
}
_NOT_INDEXED = "not_indexed"
_near = token_units.NEAR.number
_STAKE_PARTS = (  # label, colour, hatch
    ("staked", inks.BLUE, ""),
    ("unstaked, withdrawable", inks.SKY, "||"),
    ("unstaked, still locked", inks.ORANGE, "///"),
)


# Token balances -------------------------------------------------------------------------


class _Balance(NamedTuple):
    """A row of the frame; `amount` is exact, None if it or the token's decimals are unknown."""

    account_id: str
    contract_id: str
    status: str
    symbol: str | None
    amount: int | None
    unit: TokenUnit
    place: str  # where it is, unless in the wallet

    @property
    def value(self) -> float:
        return self.unit.number(self.amount or 0)

    @property
    def text(self) -> str:
        return self.unit.text(self.amount or 0)

    def token(self, limit: int) -> str:
        """Return the symbol and the contract, since any contract can use any symbol."""
        contract_id = texts.shorten(self.contract_id, limit)
        return f"{self.unit.symbol} · {contract_id}" if self.symbol else contract_id

    def label(self, limit: int, *, has_account: bool, has_token: bool) -> str:
        account = [texts.shorten(self.account_id, limit)] if has_account else []
        return ": ".join([*account, *([self.token(limit)] if has_token else [])]) + self.place


@canvas.plot
def balances(
    ft_frame: pd.DataFrame,
    *,
    top: int = 12,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """
    Draw token balances in their units.

    Parameters
    ----------
    ft_frame
        Typed as ``schema("ft_metadata")`` or ``schema("ft_intents_metadata")``: the result of
        ``lk.ft(..., metadata=True)``.
    top
        How many balances to draw, the largest numbers first.
    title
        The title; None names the account, or the token if several accounts hold only that one.

    Returns
    -------
    ax
        The axes: one dot per token on a logarithmic axis, with its amount. Each token has its
        own unit, so a larger number is not a larger value. If several accounts hold the same
        single token, there is one dot per account. Zero and unknown balances are listed in a
        note.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> ax = lk.plots.balances(lk.ft("alice.near", metadata=True))
    >>> ax.get_title(loc="left")
    'tokens of alice.near'
    """
    records = _balance_records(ft_frame)
    nonzero = sorted((row for row in records if row.amount), key=lambda row: -row.value)
    drawn = nonzero[:top]
    ax = canvas.axes_or_new(ax, 7.5, 1.3 + _ROW_HEIGHT * max(2, len(drawn)))
    accounts = list(dict.fromkeys(row.account_id for row in records))
    is_one_token = len({row.contract_id for row in records}) == 1
    by_account = len(accounts) > 1 and is_one_token
    notes = _balance_notes(records, len(nonzero) - len(drawn), by_account=by_account)
    if not drawn:
        return canvas.draw_empty(ax, ft_frame, "no token balances", *notes)
    amounts = [row.unit.label(row.amount or 0, canvas.side_room(ax)) for row in drawn]
    names = {"has_account": len(accounts) > 1, "has_token": not by_account}
    labels = [partial(row.label, **names) for row in drawn]
    canvas.label_rows(ax, labels, right_texts=amounts)
    _draw_balances(ax, drawn, amounts)
    unit = drawn[0].unit.symbol if is_one_token else "each token in its own unit"
    ax.set_xlabel(f"balance ({unit}, log scale)", size=SMALL, parse_math=False)

    def default_title(limit: int) -> str:
        if by_account:
            return f"holders of {drawn[0].token(limit)}"
        return f"tokens of {texts.join_names(accounts, limit)}"

    canvas.finish(ax, ft_frame, title or default_title, notes=notes)
    return ax


def _balance_records(ft_frame: pd.DataFrame) -> list[_Balance]:
    records = []
    columns = _BALANCES + _IN_INTENTS if "held_in" in ft_frame else _BALANCES
    rows = canvas.read_rows(ft_frame, columns, token_units.SOURCE)
    for account_id, contract_id, status, symbol, decimals, balance, *inside in rows:
        token_id, held_in = inside or ("", "wallet")
        name, place = contract_id or token_id, "" if held_in == "wallet" else f" in {held_in}"
        amount = None if decimals is None else balance
        unit = TokenUnit(units.token_symbol(symbol), int(decimals or 0))
        records.append(_Balance(account_id, name, status, symbol, amount, unit, place))
    return records


def _draw_balances(ax: Axes, drawn: Sequence[_Balance], amounts: Sequence[str]) -> None:
    values = [row.value for row in drawn]
    low, high = min(values) / 10, max(values) * 2
    levels, ink = range(len(drawn)), inks.inside(ax)
    ax.set_xscale("log")
    ax.hlines(levels, low, values, colors=ink.faint, lw=1, zorder=1)
    dots = ax.scatter(values, levels, s=46, c=ink.shape(inks.BLUE), zorder=3)
    canvas.set_hover(dots, *[f"{row.account_id}, {row.token(200)}: {row.text}" for row in drawn])
    for level, amount in enumerate(amounts):
        canvas.label_point(ax, amount, values[level], level, points=7)
    ax.set_xlim(low, high)
    _label_log_axis(ax, low, high)


def _label_log_axis(ax: Axes, low: float, high: float) -> None:
    """Label as many ticks as fit side by side: powers of ten, or also 2 and 5 between them."""
    ticker, widest, steps = canvas.mpl("ticker"), "10,000", [1.0]
    if high < _LONG_NUMBER:
        ax.xaxis.set_major_formatter(lambda value, _: texts.format_number(value))
        widest = max(map(texts.format_number, (low, high)), key=texts.width)
    n_ticks = int(canvas.size(ax)[0] // (texts.width(widest) + SMALL))
    if high < _LONG_NUMBER and 5 * log10(high / low) < n_ticks:  # 2 and 5 are close together
        steps = [1.0, 2.0, 5.0]
    ax.xaxis.set_major_locator(ticker.LogLocator(subs=steps, numticks=max(2, n_ticks)))
    ax.xaxis.set_minor_formatter(ticker.NullFormatter())


def _balance_notes(records: Sequence[_Balance], n_smaller: int, *, by_account: bool) -> list[str]:
    reasons = {
        "zero": [row for row in records if row.amount == 0],
        "not indexed yet": [row for row in records if row.status == "pending"],
        "broken": [row for row in records if row.status == "broken"],
        "contract did not exist": [row for row in records if row.status == "no_contract"],
        "unknown decimals": [row for row in records if row.status == "ok" and row.amount is None],
    }
    notes = []
    for reason, rows in reasons.items():
        names = [row.account_id if by_account else row.symbol or row.contract_id for row in rows]
        notes += [f"{reason}: {texts.join_names(names, 40)}"] if rows else []
    notes += [f"{n_smaller:,} smaller balances not drawn"] if n_smaller else []
    return notes


# Stake by pool --------------------------------------------------------------------------


class _Bar(NamedTuple):
    """A bar: its label with names shortened, and yoctoNEAR staked, withdrawable and locked."""

    label: Callable[[int], str]
    parts: tuple[int, int, int]

    @property
    def total(self) -> int:
        return sum(self.parts)


@canvas.plot
def staking(positions: pd.DataFrame, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """
    Draw stake by pool.

    Parameters
    ----------
    positions
        Typed as ``schema("staking_positions")``: the result of
        ``lk.staking(..., positions=True)``.
    title
        The title; None shows the total.

    Returns
    -------
    ax
        The axes: one bar in NEAR per pool and account, largest first, split into staked,
        unstaked and withdrawable, and unstaked but locked. The stakes of lockup contracts have
        bars of their own, which their sources name. Beyond twenty bars the smallest are
        not drawn: a note has their number and their sum. Unknown positions are counted, too.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> ax = lk.plots.staking(lk.staking("bob.near", positions=True))
    >>> ax.get_title(loc="left")
    '350.00 NEAR in stakes'
    """
    rows = canvas.read_rows(positions, _POSITIONS, "lk.staking(..., positions=True)")
    has_several = len({row[0] for row in rows}) > 1
    known_bars = [_stake_bar(row, with_account=has_several) for row in rows if row[3] is not None]
    bars = sorted((bar for bar in known_bars if bar.total), key=lambda bar: -bar.total)
    total = units.near_amount(sum(bar.total for bar in bars))
    bars, smaller = bars[:_MAX_POOLS], bars[_MAX_POOLS:]
    ax = canvas.axes_or_new(ax, 7.5, 1.4 + _ROW_HEIGHT * max(2, len(bars)))
    positions_text = units.count_text(len(rows), "position")
    n_unknown = len(rows) - len(known_bars)
    notes = [f"unknown: {n_unknown:,} of {positions_text}"] if n_unknown else []
    if smaller:
        stake = units.near_amount(sum(bar.total for bar in smaller))
        notes.append(f"not drawn: {units.count_text(len(smaller), 'smaller position')}, {stake}")
    if not bars:
        return canvas.draw_empty(ax, positions, "no stake", *notes)
    handles = _draw_stake(ax, bars)
    canvas.finish(ax, positions, title or f"{total} in stakes", handles=handles, notes=notes)
    return ax


def _stake_bar(row: tuple[Any, ...], *, with_account: bool) -> _Bar:
    account_id, pool_id, source, staked, unstaked, can_withdraw = row
    names = [account_id, pool_id] if with_account else [pool_id]
    names += [source] if source in _BY_LOCKUPS else []
    unstaked = unstaked or 0  # missing in a liquid token
    withdrawable = int(unstaked) if can_withdraw else 0

    def label(limit: int) -> str:
        return " · ".join(texts.shorten(name, limit) for name in names)

    return _Bar(label, (int(staked), withdrawable, int(unstaked) - withdrawable))


def _draw_stake(ax: Axes, bars: list[_Bar]) -> list[Any]:
    levels, ink, handles = range(len(bars)), inks.inside(ax), []
    for part, (label, palette, hatch) in enumerate(_STAKE_PARTS):
        lefts = [_near(sum(bar.parts[:part])) for bar in bars]
        widths = [_near(bar.parts[part]) for bar in bars]
        style: dict[str, Any] = {"facecolor": ink.shape(palette), "edgecolor": ink.face}
        style |= {"linewidth": 0.4, "hatch": hatch, "hatch_linewidth": 0.6, "label": label}
        drawn = ax.barh(levels, widths, left=lefts, height=0.66, **style)
        handles += [drawn] if any(widths) else []
        for bar, patch in zip(bars, drawn, strict=True):
            amount = units.near_amount(bar.parts[part])
            canvas.set_hover(patch, f"{bar.label(200)}: {amount} {label}")
    totals = [units.near_amount(bar.total) for bar in bars]
    canvas.label_rows(ax, [bar.label for bar in bars], right_texts=totals)
    for level, bar in enumerate(bars):
        canvas.label_point(ax, totals[level], _near(bar.total), level)
    ax.set_xlim(0, max(_near(bar.total) for bar in bars) * 1.02)
    canvas.label_x_axis(ax, "stake (NEAR)")
    return handles


# Exposure classes -----------------------------------------------------------------------


@canvas.plot
def exposure(frame: pd.DataFrame, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """
    Draw the number of accounts in each staking exposure class.

    Parameters
    ----------
    frame
        Typed as ``schema("exposure")``: the result of ``lk.exposure``.
    title
        The title; None counts the accounts.

    Returns
    -------
    ax
        The axes: one bar per class, empty ones too, with its count and share. Accounts that are
        not indexed have a bar of their own.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> ax = lk.plots.exposure(lk.exposure(["alice.near", "bob.near", "carol.near"]))
    >>> ax.get_title(loc="left")
    '3 accounts by staking exposure'
    """
    rows = canvas.read_rows(frame, ("exposure_class", "status"), "lk.exposure")
    classes = [_NOT_INDEXED if status == _NOT_INDEXED else name for name, status in rows]
    palette = {**dict.fromkeys(classes, inks.PURPLE), **_CLASSES, _NOT_INDEXED: inks.GREY}
    counts = {name: classes.count(name) for name in (*_CLASSES, *classes)}
    ax = canvas.axes_or_new(ax, 7.5, 1.1 + _ROW_HEIGHT * len(counts))
    if not classes:
        return canvas.draw_empty(ax, frame, "no accounts")
    levels, ink = range(len(counts)), inks.inside(ax)
    colours = [ink.shape(palette[name]) for name in counts]
    hatches = ["///" if name == _NOT_INDEXED else "" for name in counts]
    style: dict[str, Any] = {"color": colours, "hatch": hatches, "edgecolor": ink.face}
    drawn = ax.barh(levels, list(counts.values()), height=0.66, linewidth=0, **style)
    names = [str(name).replace("_", " ") for name in counts]
    canvas.label_rows(ax, [partial(texts.shorten, name) for name in names])
    for level, (name, count) in enumerate(zip(names, counts.values(), strict=True)):
        text = f"{count:,} ({texts.percent(count, len(classes))})"
        canvas.label_point(ax, text, count, level)
        canvas.set_hover(drawn[level], f"{name}: {text}")
    ax.set_xlim(0, max(counts.values()) * 1.02)
    canvas.label_x_axis(ax, "number of accounts")
    ax.xaxis.set_major_locator(canvas.mpl("ticker").MaxNLocator(integer=True))
    default_title = f"{units.count_text(len(classes), 'account')} by staking exposure"
    canvas.finish(ax, frame, title or default_title)
    return ax


# Concentration --------------------------------------------------------------------------


@canvas.plot
def concentration(
    holders: pd.DataFrame, *, ax: Axes | None = None, title: str | None = None
) -> Axes:
    """
    Draw how unevenly a token is distributed: Lorenz curves.

    Parameters
    ----------
    holders
        Typed as ``schema("top_holders")``, of one token or several.
    title
        The title; None describes the plot.

    Returns
    -------
    ax
        The axes: the share of the total balance that the smallest holders have together. The
        legend shows the Gini coefficient (0 if all balances are equal) and the share of the
        largest holder. Only listed holders with a balance above zero count: a truncated list
        makes a token look more evenly distributed than it is.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> ax = lk.plots.concentration(lk.top_holders("gold.near"))
    >>> ax.get_title(loc="left")
    'concentration among listed holders'
    """
    balances_of: dict[str, list[int]] = {}
    for contract_id, balance in canvas.read_rows(holders, _HOLDERS, "lk.top_holders"):
        if balance:
            balances_of.setdefault(contract_id, []).append(int(balance))
    ax = canvas.axes_or_new(ax, 6.4, 5.2)
    if not balances_of:
        return canvas.draw_empty(ax, holders, "no holders listed")
    drawn = list(balances_of.items())[:_MAX_TOKENS]
    lines = [_draw_lorenz_curve(ax, index, *item) for index, item in enumerate(drawn)]
    faint = inks.inside(ax).faint
    lines += ax.plot([0, 100], [0, 100], color=faint, lw=0.8, label="equal balances")
    ax.set_xlim(0, 100)
    ax.set_ylim(0, 100)
    ax.set_xlabel("% of holders, smallest first", size=SMALL)
    ax.set_ylabel("% of the total balance", size=SMALL)
    canvas.hide_spines(ax, keep=("bottom", "left"))
    notes = texts.count_note("tokens not drawn", len(balances_of) - len(drawn))
    default_title = "concentration among listed holders"
    canvas.finish(ax, holders, title or default_title, handles=lines, notes=notes)
    return ax


def _draw_lorenz_curve(ax: Axes, index: int, contract_id: str, amounts: list[int]) -> Any:
    amounts = sorted(amounts)
    total = sum(amounts)
    sums = [0, *accumulate(amounts)]
    facts = (
        f"Gini {float(gini(amounts)):.2f}, {units.count_text(len(amounts), 'holder')}, "
        f"largest {texts.percent(amounts[-1], total)}"
    )
    label = texts.fit(
        lambda limit: f"{texts.shorten(contract_id, limit)}: {facts}", canvas.legend_room(ax)
    )
    (line,) = ax.plot(
        [100 * n_holders / len(amounts) for n_holders in range(len(sums))],
        [100 * part / total for part in sums],
        color=inks.inside(ax).shape(inks.CYCLE[index]),
        ls=canvas.LINE_STYLES[index],
        lw=2,
        label=label,
    )
    canvas.set_hover(line, f"{texts.one_line(contract_id)}: {facts}")
    return line


def gini(amounts: Sequence[int]) -> Fraction:
    """Compute the exact Gini coefficient of ascending amounts, which must not all be 0."""
    weighted = sum(rank * amount for rank, amount in enumerate(amounts, 1))
    n = len(amounts)
    return Fraction(2 * weighted, n * sum(amounts)) - Fraction(n + 1, n)
