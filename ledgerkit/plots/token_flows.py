"""Transfers as ribbons from senders to receivers, one section per asset."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledgerkit import units
from ledgerkit.errors import InvalidRequestError
from ledgerkit.plots import canvas

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes

COLUMNS = ("kind", "asset", "sender_id", "receiver_id", "amount")
NEAR = "near"
_GAS_KEY = "gas_key"  # assets of this name are NEAR, too
_MAX_ACCOUNTS = 12  # a side; the smallest are summed
_MAX_ASSETS = 6
_LEFT, _RIGHT = 0.0, 1.0
_HALF_BAR = 0.02  # of the width
_TOTAL_HEIGHT = 0.9  # rows of an asset's whole flow, per account of the longer side
_MIN_HEIGHT = 0.05  # rows; thin enough for the smallest ribbon, and still visible
_SMALL_AMOUNT = 10**12  # yoctoNEAR; below, an amount is written in yocto or Tyocto
_GROUPS = {  # colour, hatch, label
    "value": (canvas.BLUE, "", "NEAR sent"),
    "fee": (canvas.FAINT, "//", "fee"),
    "burnt": (canvas.FAINT, "\\\\", "burnt"),
    "undelivered": (canvas.PALE, "--", "not delivered"),
    "refund": (canvas.SKY, "..", "refund"),
    "reward": (canvas.GREEN, "xx", "contract reward"),
    "token": (canvas.ORANGE, "", "tokens"),
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
        """The row of its middle."""
        return self.top + self.height / 2


@dataclass(frozen=True, slots=True)
class _Section:
    """The part of the plot for one asset."""

    asset: str
    flows: list[_Flow]
    senders: dict[str, _Node]
    receivers: dict[str, _Node]
    top: float

    @property
    def bottom(self) -> float:
        """The top row of the next section."""
        nodes = (*self.senders.values(), *self.receivers.values())
        return max(node.top + max(1.0, node.height) for node in nodes) + 0.6


def token_flow(
    transfers: pd.DataFrame,
    *,
    asset: str | None = None,
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
    ax
        The axes to draw on; None makes a figure.
    title
        The title; None counts the flows.

    Returns
    -------
    ax
        The axes: ribbons from senders at the left to receivers at the right, as thick as the
        amount. An account that sent and received is on both sides. The smallest amounts are
        lines. Token amounts are in the token's smallest unit. Transfers of unknown amount are
        counted in a note.

    Raises
    ------
    InvalidRequestError
        If the frame has no transfer of the asset or lacks columns, or matplotlib is not
        installed.
    """
    canvas.check_columns(transfers, COLUMNS, "Trace.transfers")
    by_asset, n_unknown = _flows_by_asset(transfers, asset)
    notes = [f"transfers of unknown amount: {n_unknown}"] if n_unknown else []
    sections = _sections(by_asset)
    n_rows = sections[-1].bottom if sections else 1.0
    ax = canvas.axes_or_new(ax, 8.0, max(1.8, 0.9 + 0.3 * n_rows))
    if not sections:
        return canvas.draw_empty(ax, *(notes or ["no transfers"]))
    line_height = n_rows / max(1.0, canvas.text_capacity(ax)[1])
    for section in sections:
        _draw_section(ax, section, line_height)
    _hide_axes(ax, n_rows)
    n_hidden = len(by_asset) - len(sections)
    canvas.add_notes(ax, notes + ([f"assets not drawn: {n_hidden}"] if n_hidden else []))
    n_flows = sum(map(len, by_asset.values()))
    groups = {flow.group for section in sections for flow in section.flows}
    canvas.draw_title(ax, title or f"{n_flows:,} flows between accounts", _legend_handles(groups))
    return ax


def _flows_by_asset(
    transfers: pd.DataFrame, asset: str | None
) -> tuple[dict[str, list[_Flow]], int]:
    """Sum the flows by asset, the most frequent first and NEAR last; count unknown amounts."""
    columns = [canvas.column_values(transfers, name) for name in COLUMNS]
    records = list(zip(*columns, strict=True))
    counts = Counter(record[1] for record in records)
    if asset is not None and asset not in counts:
        raise InvalidRequestError.refuse("asset", asset, f"one of {', '.join(counts) or 'none'}")
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
        name: [_Flow(*key, amount) for key, amount in own.items()]
        for name, own in sums.items()
        if own
    }
    return flows, n_unknown


def _sections(by_asset: dict[str, list[_Flow]]) -> list[_Section]:
    """Place the sections of the assets one below the other."""
    sections: list[_Section] = []
    top = 0.0
    for asset, asset_flows in list(by_asset.items())[:_MAX_ASSETS]:
        flows = _merge_small(asset_flows)
        sent, received = _side_sums(flows)
        total = sum(sent.values())
        scale = _TOTAL_HEIGHT * max(len(sent), len(received)) / total if total else 0.0
        senders = _stack(list(sent), sent, top + 0.6, scale)
        receivers = _stack(_receiver_order(flows, sent, received), received, top + 0.6, scale)
        sections.append(_Section(asset, flows, senders, receivers, top))
        top = sections[-1].bottom
    return sections


def _merge_small(flows: Sequence[_Flow]) -> list[_Flow]:
    """Merge the accounts with the smallest amounts if a side has too many."""
    sender_names, receiver_names = map(_drawn_names, _side_sums(flows))
    sums: Counter[tuple[str, str, str]] = Counter()
    for flow in flows:
        sums[sender_names[flow.sender], receiver_names[flow.receiver], flow.group] += flow.amount
    return [_Flow(*key, amount) for key, amount in sums.items()]


def _side_sums(flows: Sequence[_Flow]) -> tuple[dict[str, int], dict[str, int]]:
    """Sum the amounts that each account sent, and that each received."""
    sent: dict[str, int] = {}
    received: dict[str, int] = {}
    for flow in flows:
        sent[flow.sender] = sent.get(flow.sender, 0) + flow.amount
        received[flow.receiver] = received.get(flow.receiver, 0) + flow.amount
    return sent, received


def _drawn_names(sums: dict[str, int]) -> dict[str, str]:
    """Map each account of a side to the name under which it is drawn."""
    if len(sums) <= _MAX_ACCOUNTS:
        return {name: name for name in sums}
    largest = sorted(sums, key=lambda name: (-sums[name], name))[: _MAX_ACCOUNTS - 1]
    others = f"{len(sums) - len(largest):,} others"
    return {name: name if name in largest else others for name in sums}


def _draw_section(ax: Axes, section: _Section, line_height: float) -> None:
    """Draw the flows of one asset, with its name above them."""
    ax.text(
        0.5,
        section.top,
        canvas.one_line(section.asset, 70),
        ha="center",
        va="center",
        size=canvas.SMALL,
        weight="bold",
        color=canvas.INK,
        parse_math=False,
    )
    senders, receivers = section.senders, section.receivers
    for flow in sorted(section.flows, key=lambda flow: receivers[flow.receiver].top):
        _draw_ribbon(ax, flow, senders[flow.sender], receivers[flow.receiver])
    for nodes, x, align in ((senders, _LEFT, "right"), (receivers, _RIGHT, "left")):
        for node in nodes.values():
            ax.bar(x, node.height, width=2 * _HALF_BAR, bottom=node.top, color=canvas.INK)
        for node in _labelled_nodes(nodes, line_height):
            _label_node(ax, node, x, align, section.asset)


def _labelled_nodes(nodes: dict[str, _Node], line_height: float) -> list[_Node]:
    """Choose the accounts whose labels fit, largest amounts first."""
    chosen: list[_Node] = []
    for node in sorted(nodes.values(), key=lambda node: -node.amount):
        if all(abs(node.middle - other.middle) >= line_height for other in chosen):
            chosen.append(node)
    return chosen


def _receiver_order(
    flows: Sequence[_Flow], sent: dict[str, int], received: dict[str, int]
) -> list[str]:
    """Order receivers by the mean place of their senders, so that few ribbons cross."""
    place = {name: at for at, name in enumerate(sent)}
    places: dict[str, list[int]] = {name: [] for name in received}
    for flow in flows:
        places[flow.receiver].append(place[flow.sender])
    return sorted(received, key=lambda name: sum(places[name]) / len(places[name]))


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


def _draw_ribbon(ax: Axes, flow: _Flow, sender: _Node, receiver: _Node) -> None:
    """Draw one ribbon, below those that its ends already have."""
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
    ax.add_patch(patch(path(corners, codes), **_style(flow.group)))


def _style(group: str) -> dict[str, Any]:
    """Return the colour and hatch of a group's ribbons."""
    colour, hatch, _ = _GROUPS[group]
    return {
        "facecolor": f"{colour}8C",
        "edgecolor": colour,
        "hatch": hatch,
        "hatch_linewidth": 0.5,
        "linewidth": 0.4,
    }


def _label_node(ax: Axes, node: _Node, x: float, align: str, asset: str) -> None:
    """Write an account's name and amount beside its bar."""
    offset = -2 * _HALF_BAR if align == "right" else 2 * _HALF_BAR
    ax.text(
        x + offset,
        node.middle,
        f"{canvas.one_line(node.name, 28)}  {_amount_text(node.amount, asset)}",
        ha=align,
        va="center",
        size=canvas.SMALL,
        parse_math=False,
    )


def _amount_text(amount: int, asset: str) -> str:
    """Format an amount: in NEAR, or in a token's smallest unit."""
    if asset != NEAR and not asset.startswith(_GAS_KEY):
        return canvas.format_number(amount)
    if 0 < amount < _SMALL_AMOUNT:
        return units.near_text(amount)
    return f"{canvas.format_number(units.to_float(amount, units.NEAR_DECIMALS))} NEAR"


def _hide_axes(ax: Axes, bottom: float) -> None:
    """Set the limits, and hide ticks and frame."""
    ax.set_xlim(-0.05, 1.05)
    ax.set_ylim(bottom, -0.6)
    ax.set_xticks([])
    ax.set_yticks([])
    canvas.hide_spines(ax, keep=())


def _legend_handles(groups: set[str]) -> list[Any]:
    """Return the legend entries of the groups that are drawn."""
    patch = canvas.mpl("patches").Patch
    return [
        patch(**_style(group), label=label)
        for group, (_, _, label) in _GROUPS.items()
        if group in groups
    ]
