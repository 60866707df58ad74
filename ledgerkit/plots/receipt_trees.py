"""Receipts as a tree: each below its parent, with data dependencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.plots import canvas, inks, receipt_rows
from ledgerkit.plots.texts import SMALL

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ledgerkit.plots.receipt_rows import Row, Rows


@canvas.plot
def receipt_tree(
    receipts: pd.DataFrame,
    edges: pd.DataFrame | None = None,
    *,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """
    Draw receipts as a tree.

    Parameters
    ----------
    receipts
        Typed as ``schema("receipts")``.
    edges
        Typed as ``schema("edges")``; adds an arrow per data dependency.
    title
        The title; None counts the receipts.

    Returns
    -------
    ax
        The axes: one row per receipt, indented by its depth. With more than 45 receipts,
        siblings with equal subtrees share a row, and labels that do not fit are left out. At
        most 400 rows are drawn, failed receipts and the critical path first; a note counts the
        others.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> trace = lk.trace("AXGjZSDre6NRvi3iEThDeVShvFZ1GphoqtUcCxGwv3CY", "ivan.near")
    >>> ax = lk.plots.receipt_tree(trace.receipts, trace.edges)
    >>> ax.get_title(loc="left")
    '6 receipts, 1 failed'
    """
    rows = receipt_rows.drawn_rows(receipts)
    ax = canvas.axes_or_new(ax, 8.0, receipt_rows.figure_height(len(rows.rows)))
    if not rows.rows:
        return canvas.draw_empty(ax, receipts, "no receipts")
    order = rows.preorder()
    ordered = [rows.rows[i] for i in order]
    level = {i: y for y, i in enumerate(order)}
    _draw_creation(ax, rows, level)
    _draw_markers(ax, ordered)
    pairs = receipt_rows.data_pairs(edges, rows.row_of)
    points = {i: (float(rows.rows[i].depth), float(y)) for i, y in level.items()}
    receipt_rows.draw_data(ax, rows, pairs, [(points[a], points[b]) for a, b in pairs])
    _label_axes(ax, ordered)
    handles = _legend_handles(ax, rows, has_data=bool(pairs))
    canvas.finish(ax, receipts, title or rows.summary, handles=handles, notes=rows.notes)
    return ax


def _draw_creation(ax: Axes, rows: Rows, level: dict[int, int]) -> None:
    elbows: dict[bool, list[Any]] = {False: [], True: []}
    for i, row in enumerate(rows.rows):
        if row.parent < 0:
            continue
        parent = rows.rows[row.parent]
        corner = (parent.depth, level[i])
        is_critical = row.is_critical and parent.is_critical
        elbows[is_critical].append(
            [(parent.depth, level[row.parent]), corner, (row.depth, level[i])]
        )
    ink = inks.inside(ax)
    canvas.draw_lines(ax, elbows[False], ink.faint, 1.0)
    canvas.draw_lines(ax, elbows[True], ink.text, 2.0)


def _draw_markers(ax: Axes, ordered: list[Row]) -> None:
    size = 60.0 if len(ordered) <= receipt_rows.MAX_UNMERGED else 18.0
    for state in receipt_rows.STATES:
        state_rows = [(row, y) for y, row in enumerate(ordered) if row.state == state]
        if state_rows:
            depths, levels = [row.depth for row, _ in state_rows], [y for _, y in state_rows]
            area = size * (1.3 if state == receipt_rows.FAILED else 1.0)
            markers = ax.scatter(depths, levels, s=area, zorder=3, **_style(ax, state))
            canvas.set_hover(markers, *[row.hover_text for row, _ in state_rows])


def _style(ax: Axes, state: str) -> dict[str, Any]:
    ink = inks.inside(ax)
    edge = ink.text if state == receipt_rows.WAITING else ink.face
    return {
        "c": receipt_rows.colour(state, ink),
        "marker": receipt_rows.MARKERS[state],
        "edgecolors": edge,
        "linewidths": 0.8,
    }


def _label_axes(ax: Axes, ordered: list[Row]) -> None:
    max_depth = max(row.depth for row in ordered)
    ax.set_xlim(-0.4, max_depth + 0.6)
    starts = [float(row.depth) for row in ordered]
    receipt_rows.label_rows(ax, ordered, starts, max_depth + 0.6)
    ax.xaxis.set_major_locator(canvas.mpl("ticker").MaxNLocator(integer=True, min_n_ticks=1))
    ax.set_xlabel("depth in the receipt tree", size=SMALL)


def _legend_handles(ax: Axes, rows: Rows, *, has_data: bool) -> list[Any]:
    line, ink = canvas.mpl("lines").Line2D, inks.inside(ax)
    handles = []
    for state in rows.states():
        colour = receipt_rows.colour(state, ink)
        edge = ink.text if state == receipt_rows.WAITING else colour
        style = {"marker": receipt_rows.MARKERS[state], "mfc": colour, "mec": edge, "ms": 7}
        handles.append(line([], [], ls="", label=state, **style))
    if any(row.is_critical for row in rows.rows if row.parent >= 0):
        handles.append(line([], [], color=ink.text, lw=2, label="critical path"))
    if has_data:
        handles.append(receipt_rows.data_handle(ax))
    return handles
