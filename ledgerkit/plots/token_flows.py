"""Transfers as ribbons from senders to receivers, one section per asset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ledgerkit import units, validation
from ledgerkit.frames.human import is_near
from ledgerkit.plots import canvas, inks, texts, token_units
from ledgerkit.plots.texts import SMALL

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ledgerkit.plots.inks import Inks
    from ledgerkit.plots.token_units import TokenUnit

_COLUMNS = ("kind", "asset", "sender_id", "receiver_id", "amount")
NEAR = "near"
_MAX_ACCOUNTS = 12  # per side; the smallest are summed
_MAX_ASSETS = 6
_LEFT, _RIGHT = 0.0, 1.0
_HALF_BAR = 0.02  # share of the width
_TOTAL_HEIGHT = 0.9  # rows of an asset's whole flow, per account of the longer side
_MIN_HEIGHT = 0.05  # rows; thin enough for the smallest ribbon, and still visible
_FUNGIBLE = "nep141"
_OPACITY = "D9"  # as in #rrggbbaa
_GROUPS = {  # colour, hatch, label
    "value": (inks.BLUE, "", "NEAR sent"),
    "fee": (inks.GREY, "//", "gas fee"),
    "burnt": (inks.GREY, "\\\\", "NEAR burnt"),
    "undelivered": (inks.GREY, "--", "deposit not delivered"),
    "refund": (inks.SKY, "||", "refund"),
    "reward": (inks.GREEN, "xx", "contract reward"),
    "token": (inks.ORANGE, "", "tokens"),
}
_GROUP_OF_KIND = {
    "fee": "fee",
    "burnt": "burnt",
    "undelivered": "undelivered",
    "refund_gas": "refund",
    "refund_deposit": "refund",
    "contract_reward": "reward",
    "token": "token",
    "nft": "token",
    "multi_token": "token",
}


@dataclass(frozen=True, slots=True)
class _Flow:
    """The amount of one asset and group that one account sent to another."""

    sender: str
    receiver: str
    group: str
    amount: int


@dataclass(slots=True)
class _Node:
    """An account at one side: its amount, its top row, its height and the height in use."""

    name: str
    amount: int = 0
    top: float = 0.0
    height: float = 0.0
    used: float = 0.0

    @property
    def middle(self) -> float:
        return self.top + self.height / 2


@dataclass(frozen=True, slots=True)
class _Section:
    asset: str
    unit: TokenUnit
    flows: list[_Flow]
    senders: dict[str, _Node]
    receivers: dict[str, _Node]
    top: float

    @property
    def bottom(self) -> float:
        nodes = (*self.senders.values(), *self.receivers.values())
        return max(node.top + max(1.0, node.height) for node in nodes) + 0.6

    @property
    def heading(self) -> str:
        """The asset; a token's symbol before its contract, since any contract can use any."""
        if self.asset == NEAR:
            return self.unit.symbol
        is_known = self.unit not in (token_units.SMALLEST, token_units.NEAR)
        name = texts.one_line(self.asset)
        return f"{self.unit.symbol} · {name}" if is_known else name


@canvas.plot
def token_flow(
    transfers: pd.DataFrame,
    *,
    asset: str | None = None,
    tokens: pd.DataFrame | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """
    Draw transfers between accounts.

    Parameters
    ----------
    transfers
        Typed as ``schema("transfers")``.
    asset
        The asset to draw, as in the frame; None draws the six with the most transfers, each
        on its own scale.
    tokens
        Symbols and decimals of tokens by contract, typed as ``schema("ft_metadata")``, such as
        the result of ``lk.ft(..., metadata=True)``. Amounts of other tokens are drawn in the
        token's smallest unit. ``Trace.plot("flow")`` passes the trace's tokens.
    title
        The title; None counts the flows, which are sums by sender, receiver and kind.

    Returns
    -------
    ax
        The axes: ribbons from senders at the left to receivers at the right, as thick as the
        amount. An account that sent and received is on both sides. The smallest amounts are
        lines. Transfers of unknown amount are counted in a note.

    Raises
    ------
    InvalidRequestError
        If the frame has no transfer of the asset or lacks columns, or matplotlib is not
        installed.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> trace = lk.trace("AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY", "ivan.near")
    >>> ax = lk.plots.token_flow(trace.transfers)
    >>> ax.get_title(loc="left")
    '6 flows between accounts'
    """
    by_asset, n_unknown = _flows_by_asset(transfers, asset)
    notes = texts.count_note("transfers of unknown amount", n_unknown)
    sections = _sections(by_asset, token_units.read_units(tokens))
    n_rows = sections[-1].bottom if sections else 1.0
    ax = canvas.axes_or_new(ax, 8.0, max(1.8, 0.9 + 0.3 * n_rows))
    if not sections:
        return canvas.draw_empty(ax, transfers, *(notes or ["no transfers"]))
    line_height = n_rows / max(1.0, canvas.line_capacity(ax))
    for section in sections:
        _draw_section(ax, section, line_height)
    ax.set_xlim(-0.05, 1.05)
    ax.set_ylim(n_rows, -0.6)
    ax.set_xticks([])
    ax.set_yticks([])
    canvas.hide_spines(ax, keep=())
    notes += texts.count_note("assets not drawn", len(by_asset) - len(sections))
    default_title = f"{units.count_text(sum(map(len, by_asset.values())), 'flow')} between accounts"
    notes += token_units.note(
        section.unit for section in sections if section.asset.startswith(f"{_FUNGIBLE}:")
    )
    groups = {flow.group for section in sections for flow in section.flows}
    handles = _legend_handles(groups, inks.inside(ax))
    canvas.finish(ax, transfers, title or default_title, handles=handles, notes=notes)
    return ax


def _flows_by_asset(
    transfers: pd.DataFrame, asset: str | None
) -> tuple[dict[str, list[_Flow]], int]:
    records = canvas.read_rows(transfers, _COLUMNS, "Trace.transfers")
    counts = Counter(record[1] for record in records)
    if asset is not None:
        validation.one_of(asset, "asset", tuple(counts))
    assets = [asset] if asset else sorted(counts, key=lambda name: (name == NEAR, -counts[name]))
    sums: dict[str, Counter[tuple[str, str, str]]] = {name: Counter() for name in assets}
    n_unknown = 0
    for kind, name, sender_id, receiver_id, amount in records:
        if name in sums and amount is None:
            n_unknown += 1
        elif name in sums:
            sender, receiver = sender_id or "(minted)", receiver_id or "(burnt)"
            sums[name][sender, receiver, _GROUP_OF_KIND.get(kind, "value")] += int(amount)
    flows = {
        name: [_Flow(*key, amount) for key, amount in asset_sums.items()]
        for name, asset_sums in sums.items()
        if asset_sums
    }
    return flows, n_unknown


def _sections(
    by_asset: dict[str, list[_Flow]], units_of: Mapping[str, TokenUnit]
) -> list[_Section]:
    sections: list[_Section] = []
    top = 0.0
    for asset, asset_flows in list(by_asset.items())[:_MAX_ASSETS]:
        flows = _merge_small(asset_flows)
        sent, received = _side_sums(flows)
        total = sum(sent.values())
        scale = _TOTAL_HEIGHT * max(len(sent), len(received)) / total if total else 0.0
        senders = _stack(list(sent), sent, top + 0.6, scale)
        receivers = _stack(_receiver_order(flows, sent, received), received, top + 0.6, scale)
        unit = _asset_unit(asset, units_of)
        sections.append(_Section(asset, unit, flows, senders, receivers, top))
        top = sections[-1].bottom
    return sections


def _asset_unit(asset: str, units_of: Mapping[str, TokenUnit]) -> TokenUnit:
    if is_near(asset):
        return token_units.NEAR
    standard, _, contract_id = asset.partition(":")
    if standard != _FUNGIBLE:
        return token_units.SMALLEST
    return units_of.get(contract_id, token_units.SMALLEST)


def _merge_small(flows: Sequence[_Flow]) -> list[_Flow]:
    sender_names, receiver_names = map(_drawn_names, _side_sums(flows))
    sums: Counter[tuple[str, str, str]] = Counter()
    for flow in flows:
        sums[sender_names[flow.sender], receiver_names[flow.receiver], flow.group] += flow.amount
    return [_Flow(*key, amount) for key, amount in sums.items()]


def _side_sums(flows: Sequence[_Flow]) -> tuple[Counter[str], Counter[str]]:
    sent, received = Counter[str](), Counter[str]()
    for flow in flows:
        sent[flow.sender] += flow.amount
        received[flow.receiver] += flow.amount
    return sent, received


def _drawn_names(sums: dict[str, int]) -> dict[str, str]:
    if len(sums) <= _MAX_ACCOUNTS:
        return {name: name for name in sums}
    largest = sorted(sums, key=lambda name: (-sums[name], name))[: _MAX_ACCOUNTS - 1]
    others = f"{len(sums) - len(largest):,} others"
    return {name: name if name in largest else others for name in sums}


def _draw_section(ax: Axes, section: _Section, line_height: float) -> None:
    ink = inks.inside(ax)
    ax.text(
        0.5,
        section.top,
        section.heading,
        ha="center",
        va="center",
        size=SMALL,
        weight="bold",
        color=ink.text,
        parse_math=False,
    )
    senders, receivers = section.senders, section.receivers
    for flow in sorted(section.flows, key=lambda flow: receivers[flow.receiver].top):
        ribbon = _ribbon(flow, senders[flow.sender], receivers[flow.receiver], ink)
        ax.add_patch(ribbon)
        label = _GROUPS[flow.group][2]
        ends = f"{texts.one_line(flow.sender)} to {texts.one_line(flow.receiver)}"
        canvas.set_hover(ribbon, f"{ends}: {section.unit.text(flow.amount)}, {label}")
    room = canvas.side_room(ax) / 2
    for nodes, x, align in ((senders, _LEFT, "right"), (receivers, _RIGHT, "left")):
        for node in nodes.values():
            bar = ax.bar(x, node.height, width=2 * _HALF_BAR, bottom=node.top, color=ink.text)
            name = texts.one_line(node.name)
            canvas.set_hover(bar[0], f"{name} · {section.unit.text(node.amount)}")
        for node in _labelled_nodes(nodes, line_height):
            format_text = partial(_node_text, node, section.unit.label(node.amount, room))
            _label_node(ax, texts.fit(format_text, room), x, node.middle, align)


def _node_text(node: _Node, amount: str, limit: int) -> str:
    return f"{texts.shorten(node.name, limit)} · {amount}"


def _labelled_nodes(nodes: dict[str, _Node], line_height: float) -> list[_Node]:
    chosen: list[_Node] = []
    for node in sorted(nodes.values(), key=lambda node: -node.amount):
        if all(abs(node.middle - other.middle) >= line_height for other in chosen):
            chosen.append(node)
    return chosen


def _receiver_order(
    flows: Sequence[_Flow], sent: dict[str, int], received: dict[str, int]
) -> list[str]:
    """Order receivers by the mean position of their senders, so that few ribbons cross."""
    position = {name: index for index, name in enumerate(sent)}
    positions: dict[str, list[int]] = {name: [] for name in received}
    for flow in flows:
        positions[flow.receiver].append(position[flow.sender])
    return sorted(received, key=lambda name: sum(positions[name]) / len(positions[name]))


def _stack(
    order: Sequence[str], amounts: dict[str, int], top: float, scale: float
) -> dict[str, _Node]:
    """Place the accounts of a side below each other, each at least one row high."""
    nodes: dict[str, _Node] = {}
    for name in order:
        height = max(_MIN_HEIGHT, amounts[name] * scale)
        nodes[name] = _Node(name, amounts[name], top, height)
        top += max(1.0, height + 0.1)
    return nodes


def _ribbon(flow: _Flow, sender: _Node, receiver: _Node, ink: Inks) -> Any:
    """Build a ribbon below the ribbons that its ends already have."""
    path = canvas.mpl("path").Path
    share = sender.height * flow.amount / sender.amount if sender.amount else 0.0
    height = max(_MIN_HEIGHT, share)
    y0, y1 = sender.top + sender.used, receiver.top + receiver.used
    sender.used += share
    receiver.used += share
    x0, x1, middle = _LEFT + _HALF_BAR, _RIGHT - _HALF_BAR, (_LEFT + _RIGHT) / 2
    corners = [(x0, y0), (middle, y0), (middle, y1), (x1, y1), (x1, y1 + height)]
    corners += [(middle, y1 + height), (middle, y0 + height), (x0, y0 + height), (x0, y0)]
    codes = [path.MOVETO, *[path.CURVE4] * 3, path.LINETO, *[path.CURVE4] * 3, path.CLOSEPOLY]
    patch = canvas.mpl("patches").PathPatch
    return patch(path(corners, codes), **_style(flow.group, ink))


def _style(group: str, ink: Inks) -> dict[str, Any]:
    palette, hatch, _ = _GROUPS[group]
    colour = ink.shape(palette)
    return {
        "facecolor": f"{ink.tint(colour)}{_OPACITY}",
        "edgecolor": colour,
        "hatch": hatch,
        "hatch_linewidth": 0.5,
        "linewidth": 0.8,
    }


def _label_node(ax: Axes, text: str, x: float, y: float, align: str) -> None:
    offset = -2 * _HALF_BAR if align == "right" else 2 * _HALF_BAR
    colour = inks.outside(ax).text
    style: dict[str, Any] = {"ha": align, "va": "center", "size": SMALL, "color": colour}
    ax.text(x + offset, y, text, parse_math=False, **style)


def _legend_handles(groups: set[str], ink: Inks) -> list[Any]:
    patch = canvas.mpl("patches").Patch
    return [
        patch(**_style(group, ink), label=label)
        for group, (_, _, label) in _GROUPS.items()
        if group in groups
    ]
