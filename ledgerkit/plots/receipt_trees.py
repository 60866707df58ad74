"""Receipts as a tree: creators above the receipts they made, with data dependencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.plots import canvas, receipt_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ledgerkit.plots.receipt_rows import Row, Rows


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
    ax
        The axes to draw on; None makes a figure.
    title
        The title; None counts the receipts.

    Returns
    -------
    ax
        The axes: one row per receipt, indented by its depth. With more than 45 receipts,
        siblings with equal subtrees share a row, and labels that do not fit are left out.

    Raises
    ------
    InvalidRequestError
        If a frame lacks columns, or matplotlib is not installed.
    """
    rows = receipt_rows.drawn_rows(receipts)
    ax = canvas.axes_or_new(ax, 8.0, receipt_rows.figure_height(len(rows.rows)))
    if not rows.rows:
        return canvas.draw_empty(ax, "no receipts")
    order = rows.preorder()
    ordered = [rows.rows[at] for at in order]
    level = {at: y for y, at in enumerate(order)}
    _draw_creation(ax, rows, level)
    _draw_markers(ax, ordered)
    pairs = receipt_rows.data_pairs(edges, rows.row_of)
    points = {at: (float(rows.rows[at].depth), float(y)) for at, y in level.items()}
    receipt_rows.draw_data(ax, rows, pairs, [(points[a], points[b]) for a, b in pairs])
    _label_axes(ax, ordered)
    handles = _legend_handles(rows, has_data=bool(pairs))
    canvas.draw_title(ax, title or receipt_rows.summary(rows), handles)
    return ax


def _draw_creation(ax: Axes, rows: Rows, level: dict[int, int]) -> None:
    """Draw an elbow from each creator to the receipts it made, dark on the critical path."""
    elbows: dict[bool, list[Any]] = {False: [], True: []}
    for at, row in enumerate(rows.rows):
        if row.parent < 0:
            continue
        parent = rows.rows[row.parent]
        corner = (parent.depth, level[at])
        is_critical = row.is_critical and parent.is_critical
        elbows[is_critical].append(
            [(parent.depth, level[row.parent]), corner, (row.depth, level[at])]
        )
    canvas.draw_lines(ax, elbows[False], canvas.FAINT, 1.0)
    canvas.draw_lines(ax, elbows[True], canvas.BLACK, 2.0)


def _draw_markers(ax: Axes, ordered: list[Row]) -> None:
    """Draw a marker per row, by its state."""
    for state, colour in receipt_rows.COLOURS.items():
        points = [(row.depth, y) for y, row in enumerate(ordered) if row.state == state]
        if points:
            style = _marker(state, colour, len(ordered))
            ax.scatter(*zip(*points, strict=True), **style, zorder=3)


def _marker(state: str, colour: str, n_rows: int) -> dict[str, Any]:
    """Return the marker of a state; it is smaller in a plot of many rows."""
    size = 60.0 if n_rows <= receipt_rows.MAX_UNMERGED else 18.0
    edge = canvas.INK if state == receipt_rows.WAITING else "white"
    return {
        "c": colour,
        "marker": receipt_rows.MARKERS[state],
        "s": size * (1.3 if state == receipt_rows.FAILED else 1.0),
        "edgecolors": edge,
        "linewidths": 0.8,
    }


def _label_axes(ax: Axes, ordered: list[Row]) -> None:
    """Label the rows at the right, and number the depths."""
    max_depth = max(row.depth for row in ordered)
    ax.set_xlim(-0.4, max_depth + 0.6)
    starts = [float(row.depth) for row in ordered]
    receipt_rows.label_rows(ax, ordered, starts, max_depth + 0.6)
    ax.xaxis.set_major_locator(canvas.mpl("ticker").MaxNLocator(integer=True))
    ax.set_xlabel("depth", size=canvas.SMALL)
    canvas.hide_spines(ax)
    ax.tick_params(axis="y", length=0)


def _legend_handles(rows: Rows, *, has_data: bool) -> list[Any]:
    """Return the legend entries: the states, and the kinds of lines."""
    line = canvas.mpl("lines").Line2D
    handles = [
        line(
            [],
            [],
            ls="",
            marker=receipt_rows.MARKERS[state],
            mfc=receipt_rows.COLOURS[state],
            label=state,
            mec=canvas.INK if state == receipt_rows.WAITING else receipt_rows.COLOURS[state],
            ms=7,
        )
        for state in rows.states()
    ]
    handles.append(line([], [], color=canvas.BLACK, lw=2, label="critical path"))
    if has_data:
        handles.append(receipt_rows.data_handle())
    return handles
