"""The receipt tree: who made whom, downwards as it is read, with data edges beside it."""

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
        Typed as ``schema("edges")``; adds who waited for whose result.
    ax
        Where to draw; None makes a figure.
    title
        Above the drawing; None counts the receipts.

    Returns
    -------
    ax
        Where it is drawn: a row a receipt, its depth to the right. Of more than 45 receipts,
        siblings that are alike in all they led to share a row, and rows for whose names there
        is no room go without.

    Raises
    ------
    InvalidRequestError
        If a frame lacks columns, or matplotlib is not installed.
    """
    every = receipt_rows.folded(receipt_rows.read(receipts), receipt_rows.UNFOLDED)
    ax = canvas.axes(ax, 8.0, receipt_rows.figure_height(len(every.rows)))
    if not every.rows:
        return canvas.empty(ax, "no receipts")
    order = every.preorder()
    drawn = [every.rows[at] for at in order]
    level = {at: y for y, at in enumerate(order)}
    _draw_creation(ax, every, level)
    _draw_markers(ax, drawn)
    pairs = receipt_rows.data_pairs(edges, every.row_of)
    spots = {at: (float(every.rows[at].depth), float(y)) for at, y in level.items()}
    receipt_rows.draw_data(ax, every, pairs, [(spots[a], spots[b]) for a, b in pairs])
    _finish(ax, drawn)
    canvas.header(ax, title or receipt_rows.summary(every), _handles(every, has_data=bool(pairs)))
    return ax


def _draw_creation(ax: Axes, every: Rows, level: dict[int, int]) -> None:
    """Draw an elbow from each creator to what it made; those of the critical path are dark."""
    elbows: dict[bool, list[Any]] = {False: [], True: []}
    for at, row in enumerate(every.rows):
        if row.parent < 0:
            continue
        above = every.rows[row.parent]
        corner = (above.depth, level[at])
        is_critical = row.is_critical and above.is_critical
        elbows[is_critical].append(
            [(above.depth, level[row.parent]), corner, (row.depth, level[at])]
        )
    collection = canvas.library("collections").LineCollection
    for is_critical, colour, width in ((False, canvas.FAINT, 1.0), (True, canvas.BLACK, 2.0)):
        if elbows[is_critical]:
            ax.add_collection(
                collection(elbows[is_critical], colors=colour, linewidths=width, zorder=2)
            )


def _draw_markers(ax: Axes, drawn: list[Row]) -> None:
    """Draw a marker a row, by how it ended."""
    for state, colour in receipt_rows.COLOURS.items():
        own = [(row.depth, y) for y, row in enumerate(drawn) if row.state == state]
        if own:
            ax.scatter(*zip(*own, strict=True), **_marker(state, colour, len(drawn)), zorder=3)


def _marker(state: str, colour: str, n_rows: int) -> dict[str, Any]:
    """Describe the marker of a state; smaller where there are many."""
    size = 60.0 if n_rows <= receipt_rows.UNFOLDED else 18.0
    edge = canvas.INK if state == receipt_rows.WAITING else "white"
    return {
        "c": colour,
        "marker": receipt_rows.MARKERS[state],
        "s": size * (1.3 if state == receipt_rows.FAILED else 1.0),
        "edgecolors": edge,
        "linewidths": 0.8,
    }


def _finish(ax: Axes, drawn: list[Row]) -> None:
    """Name the rows at the right, as far as there is room, and number the depths."""
    deepest = max(row.depth for row in drawn)
    ax.set_xlim(-0.4, deepest + 0.6)
    receipt_rows.name(ax, drawn, [float(row.depth) for row in drawn], deepest + 0.6)
    ax.xaxis.set_major_locator(canvas.library("ticker").MaxNLocator(integer=True))
    ax.set_xlabel("creators above", size=canvas.SMALL)
    canvas.bare(ax)
    ax.tick_params(axis="y", length=0)


def _handles(every: Rows, *, has_data: bool) -> list[Any]:
    """Make the legend: how receipts ended, and what the lines are."""
    line = canvas.library("lines").Line2D
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
        for state in every.states()
    ]
    handles.append(line([], [], color=canvas.BLACK, lw=2, label="critical path"))
    if has_data:
        handles.append(receipt_rows.data_handle())
    return handles
