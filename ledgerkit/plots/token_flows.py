"""The flow of value: who gave at the left, who got at the right, asset by asset."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import InvalidRequestError
from ledgerkit.plots import canvas
from ledgerkit.units import NEAR_DECIMALS, near_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes

COLUMNS = ("kind", "asset", "sender_id", "receiver_id", "amount")
SOURCE = "transfers, such as Trace.transfers gives"
NEAR, SYSTEM = "near", "system"
_ACCOUNTS = 12  # a side; those that moved least are gathered
_ASSETS = 6
_LEFT, _RIGHT = 0.0, 1.0
_NODE = 0.02  # half as wide as a node's bar
_THICK = 0.9  # rows that all of an asset's flow takes, for each account of the fuller side
_THIN = 0.05  # rows; the least that is still seen
_WORDS = {
    "value": (canvas.BLUE, "", "NEAR sent"),
    "fee": (canvas.FAINT, "//", "fee"),
    "refund": (canvas.SKY, "..", "refund"),
    "reward": (canvas.GREEN, "xx", "contract's reward"),
    "token": (canvas.ORANGE, "", "tokens"),
}
_GROUPS = {
    "fee": "fee",
    "refund_gas": "refund",
    "refund_deposit": "refund",
    "contract_reward": "reward",
    "token": "token",
    "nft": "token",
    "multi_token": "token",
}


@dataclass(frozen=True, slots=True)
class _Flow:
    """What went from one account to another, of one asset and one sort."""

    giver: str
    taker: str
    group: str
    amount: int


@dataclass(slots=True)
class _Node:
    """An account at one side: its amount, its first row and how many rows it takes."""

    name: str
    amount: int = 0
    top: float = 0.0
    thick: float = 0.0
    used: float = 0.0

    @property
    def middle(self) -> float:
        """Tell the row of its middle."""
        return self.top + self.thick / 2


@dataclass(frozen=True, slots=True)
class _Section:
    """One asset's part of the drawing."""

    asset: str
    flows: list[_Flow]
    givers: dict[str, _Node]
    takers: dict[str, _Node]
    top: float

    @property
    def bottom(self) -> float:
        """Tell the row at which the next section can begin."""
        nodes = (*self.givers.values(), *self.takers.values())
        return max(node.top + max(1.0, node.thick) for node in nodes) + 0.6


def token_flow(
    transfers: pd.DataFrame,
    *,
    asset: str | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """
    Draw what moved between accounts.

    Parameters
    ----------
    transfers
        Typed as ``schema("transfers")``.
    asset
        Which to draw, as the frame names it; None draws the six that moved most often, each
        on its own scale.
    ax
        Where to draw; None makes a figure.
    title
        Above the drawing; None counts the movements.

    Returns
    -------
    ax
        Where it is drawn: ribbons from who gave to who got, as thick as the amount; an account
        that did both stands at both sides. What is too little for a ribbon is a line. Amounts
        of tokens are in their smallest unit, which the frame does not tell the name of.

    Raises
    ------
    InvalidRequestError
        If the asset did not move, the frame lacks columns, or matplotlib is not installed.
    """
    canvas.require(transfers, COLUMNS, SOURCE)
    by_asset = _by_asset(transfers, asset)
    sections = _sections(by_asset)
    rows = sections[-1].bottom if sections else 1.0
    ax = canvas.axes(ax, 8.0, max(1.8, 0.9 + 0.3 * rows))
    if not sections:
        return canvas.empty(ax, "nothing moved")
    line = rows / max(1.0, canvas.letters(ax)[1])
    for section in sections:
        _draw_section(ax, section, line)
    _finish(ax, rows)
    left_out = len(by_asset) - len(sections)
    canvas.note(ax, [f"{left_out} more assets moved"] if left_out else [])
    n_moves = sum(map(len, by_asset.values()))
    groups = [flow.group for section in sections for flow in section.flows]
    canvas.header(ax, title or f"{n_moves:,} flows between accounts", _handles(groups))
    return ax


def _by_asset(transfers: pd.DataFrame, asset: str | None) -> dict[str, list[_Flow]]:
    """Sum the flows by asset, those that moved most often first and NEAR last."""
    columns = [canvas.values(transfers, name) for name in COLUMNS]
    moved = [row for row in zip(*columns, strict=True) if row[4] is not None]
    counts = Counter(row[1] for row in moved)
    if asset is not None and asset not in counts:
        raise InvalidRequestError.refuse("asset", asset, f"one of {', '.join(counts) or 'none'}")
    wanted = [asset] if asset else sorted(counts, key=lambda name: (name == NEAR, -counts[name]))
    sums: dict[str, Counter[tuple[str, str, str]]] = {name: Counter() for name in wanted}
    for kind, name, giver, taker, amount in moved:
        if name in sums:
            key = (
                _account(giver, "(minted)"),
                _account(taker, "(burnt)"),
                _GROUPS.get(kind, "value"),
            )
            sums[name][key] += int(amount)
    return {
        name: [_Flow(*key, amount) for key, amount in own.items()] for name, own in sums.items()
    }


def _sections(by_asset: dict[str, list[_Flow]]) -> list[_Section]:
    """Place the assets that are drawn one below the other."""
    sections: list[_Section] = []
    top = 0.0
    for asset, every in list(by_asset.items())[:_ASSETS]:
        flows = _gathered(every)
        gave, got = _sides(flows)
        total = sum(gave.values())
        scale = _THICK * max(len(gave), len(got)) / total if total else 0.0
        givers = _placed(list(gave), gave, top + 0.6, scale)
        takers = _placed(_by_middle(flows, list(gave), got), got, top + 0.6, scale)
        sections.append(_Section(asset, flows, givers, takers, top))
        top = sections[-1].bottom
    return sections


def _account(account_id: str | None, otherwise: str) -> str:
    """Name a side of a movement."""
    if account_id is None:
        return otherwise
    return "the chain" if account_id == SYSTEM else account_id


def _gathered(flows: Sequence[_Flow]) -> list[_Flow]:
    """Gather the accounts that moved least where there are too many at a side."""
    givers, takers = (_kept(side) for side in _sides(flows))
    sums: Counter[tuple[str, str, str]] = Counter()
    for flow in flows:
        giver, taker = givers.get(flow.giver, ""), takers.get(flow.taker, "")
        sums[giver, taker, flow.group] += flow.amount
    return [_Flow(*key, amount) for key, amount in sums.items()]


def _sides(flows: Sequence[_Flow]) -> tuple[dict[str, int], dict[str, int]]:
    """Sum what each account gave, and what each got."""
    gave: dict[str, int] = {}
    got: dict[str, int] = {}
    for flow in flows:
        gave[flow.giver] = gave.get(flow.giver, 0) + flow.amount
        got[flow.taker] = got.get(flow.taker, 0) + flow.amount
    return gave, got


def _kept(side: dict[str, int]) -> dict[str, str]:
    """Say under which name each account is drawn."""
    if len(side) <= _ACCOUNTS:
        return {name: name for name in side}
    great = sorted(side, key=lambda name: (-side[name], name))[: _ACCOUNTS - 1]
    others = f"{len(side) - len(great):,} others"
    return {name: name if name in great else others for name in side}


def _draw_section(ax: Axes, section: _Section, line: float) -> None:
    """Draw one asset with its name above; a name takes `line` rows."""
    ax.text(
        0.5,
        section.top,
        canvas.shown(section.asset, 70),
        ha="center",
        va="center",
        size=canvas.SMALL,
        weight="bold",
        color=canvas.INK,
        parse_math=False,
    )
    givers, takers = section.givers, section.takers
    for flow in sorted(section.flows, key=lambda one: takers[one.taker].top):
        _draw_ribbon(ax, flow, givers[flow.giver], takers[flow.taker])
    for nodes, x, side in ((givers, _LEFT, "right"), (takers, _RIGHT, "left")):
        for node in nodes.values():
            ax.bar(x, node.thick, width=2 * _NODE, bottom=node.top, color=canvas.INK)
        for node in _with_room(nodes, line):
            _name(ax, node, x, side, section.asset)


def _with_room(nodes: dict[str, _Node], line: float) -> list[_Node]:
    """Choose the accounts whose names have room, those that moved most first."""
    named: list[_Node] = []
    for node in sorted(nodes.values(), key=lambda one: -one.amount):
        if all(abs(node.middle - other.middle) >= line for other in named):
            named.append(node)
    return named


def _by_middle(flows: Sequence[_Flow], givers: list[str], got: dict[str, int]) -> list[str]:
    """Order those who got by where, in the middle, it came from, so that few ribbons cross."""
    places: dict[str, list[int]] = {name: [] for name in got}
    for flow in flows:
        places[flow.taker].append(givers.index(flow.giver))
    return sorted(got, key=lambda name: sum(places[name]) / len(places[name]))


def _placed(
    order: Sequence[str], amounts: dict[str, int], top: float, scale: float
) -> dict[str, _Node]:
    """Stack the accounts of a side: each takes a row at least, so that names have room."""
    nodes: dict[str, _Node] = {}
    for name in order:
        thick = max(_THIN, amounts[name] * scale)
        nodes[name] = _Node(name, amounts[name], top, thick)
        top += max(1.0, thick + 0.1)
    return nodes


def _draw_ribbon(ax: Axes, flow: _Flow, giver: _Node, taker: _Node) -> None:
    """Draw one ribbon, below those that its ends already have."""
    path = canvas.library("path").Path
    own = giver.thick * flow.amount / giver.amount if giver.amount else 0.0
    thick = max(_THIN, own)
    y0, y1 = giver.top + giver.used, taker.top + taker.used
    giver.used += own
    taker.used += own
    x0, x1, middle = _LEFT + _NODE, _RIGHT - _NODE, (_LEFT + _RIGHT) / 2
    corners = [(x0, y0), (middle, y0), (middle, y1), (x1, y1), (x1, y1 + thick)]
    corners += [(middle, y1 + thick), (middle, y0 + thick), (x0, y0 + thick), (x0, y0)]
    codes = [path.MOVETO, *[path.CURVE4] * 3, path.LINETO, *[path.CURVE4] * 3, path.CLOSEPOLY]
    patch = canvas.library("patches").PathPatch
    ax.add_patch(patch(path(corners, codes), **_look(flow.group)))


def _look(group: str) -> dict[str, Any]:
    """Describe the ribbons of a sort: a colour, and a hatch that shows without it."""
    colour, hatch, _ = _WORDS[group]
    return {
        "facecolor": f"{colour}8C",
        "edgecolor": colour,
        "hatch": hatch,
        "hatch_linewidth": 0.5,
        "linewidth": 0.4,
    }


def _name(ax: Axes, node: _Node, x: float, side: str, asset: str) -> None:
    """Write an account's name and amount beside its bar."""
    away = -2 * _NODE if side == "right" else 2 * _NODE
    ax.text(
        x + away,
        node.middle,
        f"{canvas.shown(node.name, 28)}  {_amount(node.amount, asset)}",
        ha=side,
        va="center",
        size=canvas.SMALL,
        parse_math=False,
    )


def _amount(units: int, asset: str) -> str:
    """Write an amount: NEAR as people read it, tokens in their smallest unit."""
    if asset != NEAR:
        return canvas.number(units)
    marks = units and units < 10**12
    return (
        near_text(units) if marks else f"{canvas.number(canvas.human(units, NEAR_DECIMALS))} NEAR"
    )


def _finish(ax: Axes, bottom: float) -> None:
    """Leave no axes, only what is drawn."""
    ax.set_xlim(-0.05, 1.05)
    ax.set_ylim(bottom, -0.6)
    ax.set_xticks([])
    ax.set_yticks([])
    canvas.bare(ax, keep=())


def _handles(groups: Sequence[str]) -> list[Any]:
    """Make the legend: sorts of movement."""
    patch = canvas.library("patches").Patch
    return [
        patch(**_look(group), label=label)
        for group, (_, _, label) in _WORDS.items()
        if group in groups
    ]
