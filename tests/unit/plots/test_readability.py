"""What a person sees of each plot: readable colours, whole names, units and the network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import colors
from matplotlib import pyplot as plt
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from ledgerkit.plots import receipt_rows
from tests.unit.plots.frames import (
    PLOTS,
    every_state,
    frame,
    plots,
    positions,
    readings,
    receipt,
    tokens,
    transfers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

STYLES = {
    "default": {},
    "dark_background": {},
    "ggplot": {},
    # What older kernels set for a dark theme: a transparent figure with light texts.
    "transparent": {
        "figure.facecolor": "#00000000",
        "axes.facecolor": "none",
        "text.color": "#e0e0e0",
    },
}


def test_every_plot_is_tested_here():
    """A new plot cannot be forgotten."""
    assert set(PLOTS) == set(plots.__all__)


# Contrast -----------------------------------------------------------------------------


def luminance(colour: Any) -> float:
    """Compute the relative luminance as WCAG 2.2 defines it."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: Any, other: Any) -> float:
    """Compute the contrast ratio as WCAG 2.2 defines it."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def over(colour: Any, below: Any) -> tuple[float, ...]:
    *parts, alpha = colors.to_rgba(colour)
    return tuple(a * alpha + b * (1 - alpha) for a, b in zip(parts, below, strict=False))


def faces(ax: Any) -> tuple[Any, Any]:
    """Return the colours of the figure and of the axes, on a black page if texts are light."""
    page = (
        (0.0, 0.0, 0.0) if luminance(colors.to_rgb(mpl.rcParams["text.color"])) > 0.5 else (1,) * 3
    )
    outside = over(ax.figure.get_facecolor(), page)
    return outside, over(ax.get_facecolor(), outside)


def text_background(text: Text, ax: Any) -> Any:
    """Return what is behind a text: its own box, or the axes, or the figure."""
    outside, inside = faces(ax)
    own = text.get_bbox_patch()
    if own is not None:
        return over(own.get_facecolor(), inside)
    box, area = text.get_window_extent(), ax.get_window_extent()
    return (
        inside
        if area.x0 < (box.x0 + box.x1) / 2 < area.x1 and area.y0 < box.y1 < area.y1
        else outside
    )


def shape_colours(ax: Any) -> Iterator[list[Any]]:
    """Yield the colours of each line and area, of which one has to be visible."""
    for artist in (*ax.lines, *ax.collections, *ax.patches, *ax.texts):
        if isinstance(artist, Line2D):
            yield [artist.get_color()]
        elif isinstance(artist, Collection):
            yield [*artist.get_facecolor()[:1], *artist.get_edgecolor()[:1]]
        elif isinstance(artist, Text) and getattr(artist, "arrow_patch", None) is not None:
            yield [artist.arrow_patch.get_edgecolor()]  # type: ignore[attr-defined] # of Annotation
        elif isinstance(artist, Patch) and artist.get_zorder() > 0:  # below, a gap with a text
            yield [artist.get_facecolor(), artist.get_edgecolor()]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", PLOTS)
def test_texts_and_shapes_are_visible_on_every_background(name: str, style: str):
    """Texts have a contrast of 4.5:1 with what is behind them, lines and areas of 3:1 (WCAG)."""
    draw, make = PLOTS[name]
    with plt.style.context([style if not STYLES[style] else "default", STYLES[style]]):
        ax = draw(make("mainnet"))
        ax.figure.set_layout_engine("none")  # takes longest, and changes no colour
        ax.figure.draw_without_rendering()
        written = [t for t in ax.figure.findobj(Text) if t.get_text().strip() and t.get_visible()]
        assert len(written) > 5
        for text in written:
            behind = text_background(text, ax)
            assert contrast(over(text.get_color(), behind), behind) >= 4.5, text
        _, inside = faces(ax)
        drawn = list(shape_colours(ax))
        assert drawn
        for choices in drawn:
            assert max(contrast(over(one, inside), inside) for one in choices) >= 3, choices


def test_the_critical_path_is_white_on_black():
    """With `dark_background`, black lines on black would not be visible."""
    with plt.style.context("dark_background"):
        ax = plots.receipt_tree(every_state())
    (bold,) = [one for one in ax.collections if one.get_linewidth()[0] == 2.0]
    assert colors.to_hex(bold.get_color()[0]) == "#ffffff"


def test_a_background_of_its_own_is_respected():
    """Axes that the user painted black have light texts, whatever the style says."""
    figure = Figure(facecolor="black", layout="constrained")
    ax = plots.history(readings(), ax=figure.add_subplot(facecolor="black"))
    assert colors.to_hex(ax.yaxis.label.get_color()) == "#ffffff"
    assert colors.to_hex(ax.get_xticklabels()[0].get_color()) == "#ffffff"


def test_a_subfigure_is_as_dark_as_its_figure():
    """The face of a subfigure is transparent: what is behind it counts."""
    figure = Figure(facecolor="black", layout="constrained")
    part: Any = figure.subfigures()
    ax = part.add_subplot(facecolor="none")
    plots.gas_icicle(every_state("mainnet"), ax=ax)
    figure.draw_without_rendering()
    assert colors.to_hex(ax.xaxis.label.get_color()) == "#ffffff"


# Room ---------------------------------------------------------------------------------

LONG = "98793cd91a3f870fb126f66285808c7e094afcfc4eda8a970f6648cdf0dbd6de"  # an implicit account


def test_names_are_whole_where_there_is_room():
    """Account ids may have 64 characters; the timeline has room for one of 30."""
    name = "a-somewhat-longer-name.pool.near"
    for draw in (plots.receipt_tree, plots.timeline):
        ax = draw(frame("receipts", [receipt("A", receiver_id=name)]))
        assert [text.get_text() for text in ax.get_yticklabels()] == [f"swap · {name}"]
    ax = plots.staking(positions().assign(pool_id=name))
    assert {text.get_text() for text in ax.get_yticklabels()} == {name}


@pytest.mark.parametrize(
    ("width", "least", "most"), [(3.0, 5, 30), (8.0, 30, 80), (20.0, 133, 133)]
)
def test_ids_are_cut_in_the_middle_where_there_is_none(width: float, least: int, most: int):
    """Beginning and end are left, and more of them in a wider figure; nothing leaves it."""
    long = LONG * 2 + ".near"
    rows = frame("receipts", [receipt("A"), receipt("B", "A", receiver_id=long)])
    for draw in (plots.receipt_tree, plots.timeline):
        figure = Figure(figsize=(width, 4), layout="constrained")
        ax = draw(rows, ax=figure.add_subplot())
        figure.draw_without_rendering()
        label = ax.get_yticklabels()[1]
        name = label.get_text().partition(" · ")[2]
        if name != long:
            head, _, tail = name.partition("…")
            assert long.startswith(head)
            assert long.endswith(tail)
            assert abs(len(head) - len(tail)) <= 1
        assert label.get_window_extent().x1 <= figure.bbox.x1 + 1
        assert least <= len(name) <= most


@pytest.mark.parametrize("name", PLOTS)
def test_nothing_leaves_the_figure(name: str):
    """Long names make room for themselves, or are shortened: on a figure of 600 pixels, too."""
    draw, make = PLOTS[name]
    rows = make("mainnet").copy()
    for column in "account_id receiver_id sender_id pool_id contract_id method_name".split():
        if column in rows:
            rows[column] = [LONG] * len(rows)
    figure = Figure(figsize=(6, 4), layout="constrained")
    ax = draw(rows, ax=figure.add_subplot())
    figure.draw_without_rendering()
    box = ax.get_tightbbox()
    assert box.x0 >= -1
    assert box.x1 <= figure.bbox.x1 + 1


# Units and the network ----------------------------------------------------------------


@pytest.mark.parametrize("name", PLOTS)
def test_the_network_is_named(name: str):
    """Invented and real data look different; a frame without a network has none."""
    draw, make = PLOTS[name]
    assert draw(make("mainnet")).get_title(loc="right") == "mainnet"
    assert draw(make("mainnet").head(0)).get_title(loc="right") == "mainnet"
    assert draw(make()).get_title(loc="right") == ""


def written(ax: Any) -> set[str]:
    return {text.get_text() for text in ax.texts}


def test_token_flows_are_in_units_where_they_are_known():
    """With metadata 80,000,000 smallest units of 6 decimals are 80 GOLD."""
    assert {"alice.near · 80,000,000 units", "nep141:gold.near"} <= written(
        plots.token_flow(transfers())
    )
    ax = plots.token_flow(transfers(), tokens=tokens())
    assert {"alice.near · 80 GOLD", "bob.near · 80 GOLD", "GOLD · nep141:gold.near"} <= written(ax)


@pytest.mark.parametrize("symbol", ["NEAR", "near", " yocto", "NE\u0410R", None, ""])
def test_no_token_passes_for_near(symbol: str | None):
    """A contract chooses its symbol: amounts of one that calls itself NEAR are tokens."""
    fake = tokens().assign(symbol=symbol)
    ax = plots.token_flow(transfers().tail(1), tokens=fake)
    assert {"alice.near · 80 tokens", "tokens · nep141:gold.near"} <= written(ax)


def test_amounts_of_any_length_leave_room_for_the_plot():
    """All digits stand beside a dot where they fit; an amount of 250 zeros is written short."""
    most = {"contract_id": "a.near", "symbol": "MOST", "decimals": 18, "balance": 2**128 - 1}
    least = {"contract_id": "b.near", "symbol": "LEAST", "decimals": 255, "balance": 1}
    usual = {"account_id": LONG, "status": "ok"}
    ax = plots.balances(frame("ft_metadata", [{**usual, **most}, {**usual, **least}]))
    ax.figure.draw_without_rendering()
    assert written(ax) == {"340,282,366,920,938,463,463.37 MOST", "1e-255 LEAST"}
    moved = transfers().tail(1).assign(amount=2**128 - 1, sender_id=LONG, receiver_id=LONG)
    ax = plots.token_flow(moved)
    ax.figure.draw_without_rendering()
    assert {text.rpartition(" · ")[2] for text in written(ax)} >= {"3.4e38 units"}


def test_a_history_of_a_token_is_in_its_unit():
    """The axis has the symbol, if all lines share it; the legend names the contract, too."""
    rows = readings(view="ft").assign(contract_id="gold.near", balance=80_000_000)
    ax = plots.history(rows, tokens=tokens())
    assert ax.get_ylabel() == "token balance (GOLD)"
    assert set(ax.get_lines()[0].get_ydata()) == {80.0}
    assert ax.get_legend().get_texts()[0].get_text() == "GOLD · gold.near"
    mixed = plots.history(readings(view="ft"), tokens=tokens().assign(contract_id=["p1.near", "x"]))
    assert mixed.get_ylabel() == "token balance (each token in its own unit)"


# Many receipts ------------------------------------------------------------------------


def many(n: int) -> pd.DataFrame:
    """Return receipts of which no two are equal: a chain, failures, and many children."""
    rows = [receipt("R0", on_critical_path=True)]
    rows += [
        receipt(
            f"R{at}",
            f"R{at - 1}" if at < 10 else f"R{at % 500 if at >= 500 else 0}",
            method_name=f"method_{at}",
            status="failure" if at % 1000 == 999 else "success_value",
            on_critical_path=at < 10,
        )
        for at in range(1, n)
    ]
    return frame("receipts", rows)


def test_a_plot_of_10_000_receipts_says_what_it_leaves_out():
    """400 rows are drawn: all failures and the critical path with their parents, and a note."""
    rows = receipt_rows.drawn_rows(many(10_000))
    assert len(rows.rows) == 400
    assert sum(row.state == receipt_rows.FAILED for row in rows.rows) == 10
    assert sum(row.is_critical for row in rows.rows) == 10
    assert [at for at, row in enumerate(rows.rows) if row.parent < 0] == [0]
    assert all(row.parent < at for at, row in enumerate(rows.rows))
    assert all(at in rows.rows[row.parent].children for at, row in enumerate(rows.rows) if at)
    for draw in (plots.receipt_tree, plots.timeline):
        ax = draw(many(10_000))
        assert "9,600 of 10,000 receipts are not drawn" in ax.get_xlabel()
        assert ax.get_title(loc="left") == "10,000 receipts, 10 failed"
        ax.figure.canvas.draw()


def test_boxes_that_cannot_be_seen_are_counted():
    """Of 10,000 receipts only those wider than a third of a point have a box."""
    ax = plots.gas_icicle(many(10_000))
    assert len(ax.patches) < 3_000
    n_boxes = len(ax.patches)
    assert f"receipts too narrow to draw: {10_000 - n_boxes:,}" in ax.get_xlabel()


@pytest.mark.parametrize("name", PLOTS)
def test_missing_values_are_drawn_as_unknown(name: str):
    """A single row can be drawn, and a frame in which all that may be missing is missing."""
    draw, make = PLOTS[name]
    rows = make("mainnet").head(2).copy()
    keys = {"receipt_id", "parent_id", "account_id", "view", "asset", "kind", "status", "time"}
    for column in set(rows.columns) - keys:
        if str(rows[column].dtype) != "bool":
            rows[column] = rows[column].where(np.zeros(len(rows), bool))
    for drawn in (make("mainnet").head(1), rows):
        draw(drawn).figure.canvas.draw()
