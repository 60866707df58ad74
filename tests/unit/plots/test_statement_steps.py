"""What is drawn of a statement: steps, colours of causes, and gaps where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ledgerkit import plots
from ledgerkit.errors import InvalidRequestError
from ledgerkit.reconciling.model import CAUSES, Gap, Token
from tests.unit.statement_frames import FIRST, ONE, START_NS, entry, statement

GOLD = "nep141:gold.near"
TOKENS = {GOLD: Token("GOLD", 6)}
DAY_NS = 86_400 * 10**9


def day(height: int) -> float:
    """Return the place of a block on the time axis: blocks are a second apart."""
    return (START_NS + (height - FIRST) * 10**9) / DAY_NS


def line(ax: Any, label: str) -> tuple[list[float], list[float]]:
    [drawn] = [line for line in ax.get_lines() if line.get_label() == label]
    return [float(x) for x in drawn.get_xdata()], [float(y) for y in drawn.get_ydata()]


def test_a_balance_is_a_line_of_steps(ax: Any):
    """From before the first change to after the last, in NEAR, at the times of the blocks."""
    rows = [entry(110, "near", "transfer", ONE), entry(120, "near", "fee", -ONE // 4)]
    plots.statement(statement(rows, opening={"near": 2 * ONE}).entries, ax=ax)
    x, y = line(ax, "near")
    assert x == pytest.approx([day(110), day(110), day(120), day(120)])
    assert y == [2.0, 3.0, 3.0, 2.75]
    assert ax.get_ylabel() == "balance (NEAR)"
    assert ax.get_xlabel() == "time (UTC)"
    assert ax.get_title(loc="left") == "balances of alice.near"


def test_entries_bring_the_units_of_their_tokens(ax: Any):
    """A statement names the decimals that it read; its totals are not needed for them."""
    entries = statement([entry(110, GOLD, "token", 80_000_000)]).entries
    entries.attrs["tokens"] = {GOLD: [6, "GOLD"]}
    plots.statement(entries, ax=ax)
    assert ax.get_ylabel() == "balance (GOLD)"
    assert line(ax, GOLD)[1] == [0.0, 80.0]
    assert ax.get_xlim()[1] - ax.get_xlim()[0] == pytest.approx(1 / 24)  # an hour


def test_causes_have_colours(ax: Any):
    """Each change has a marker in the colour of its cause; the rarest causes share one."""
    causes = [cause for cause in CAUSES if cause != "unknown"]
    rows = [
        entry(100 + 10 * n + at, "near", cause, ONE)
        for n, cause in enumerate(causes)
        for at in range(1 + (n < 3))
    ]
    plots.statement(statement(rows).entries, ax=ax)
    markers = {d.get_label(): d for d in ax.get_lines() if d.get_marker() not in ("None", None)}
    assert list(markers)[:3] == sorted(cause.replace("_", " ") for cause in causes[:3])
    assert list(markers)[-1] == "other causes"
    assert len(markers) == 7
    assert len({d.get_color() for d in markers.values()}) == 7
    assert sum(len(d.get_xdata()) for d in markers.values()) == len(rows)


def test_a_gap_is_hatched_between_its_blocks(ax: Any):
    """It is placed by its heights, also between entries; the line goes up to it, and on after."""
    rows = [entry(110, "near", "transfer", ONE), entry(130, "near", "transfer", ONE)]
    frames = statement(rows, gaps=[Gap("near", 115, 120, 5 * ONE, "no transaction")])
    plots.statement(frames.entries, frames.totals, frames.gaps, ax=ax)
    [area] = [patch for patch in ax.patches if patch.get_hatch()]
    assert area.get_x() == pytest.approx(day(115))
    assert area.get_x() + area.get_width() == pytest.approx(day(120))
    assert area.hover_texts == [
        "gap: 5 NEAR of near, after block 115 up to block 120: no transaction"
    ]
    x, y = line(ax, "near")
    assert [str(value) for value in y] == ["0.0", "1.0", "1.0", "nan", "6.0", "6.0", "7.0"]
    assert x == pytest.approx([day(at) for at in (110, 110, 115, 115, 120, 130, 130)])
    assert "gap" in [text.get_text()[:3] for text in ax.get_legend().get_texts()]


def test_a_gap_outside_of_the_entries_reaches_to_the_edge(ax: Any):
    """Its block is not between two entries, so its time is not known."""
    frames = statement([entry(150, "near", "transfer", 1)], gaps=[Gap("near", 160, 170, None, "?")])
    plots.statement(frames.entries, frames.totals, frames.gaps, ax=ax)
    [area] = [patch for patch in ax.patches if patch.get_hatch()]
    assert area.get_x() == ax.get_xlim()[1]
    assert "unknown" in area.hover_texts[0]


def test_a_gap_before_the_entries_has_the_width_of_its_blocks(ax: Any):
    """Its time follows from the speed of the blocks, so that one block is no month."""
    rows = [entry(110, "near", "transfer", ONE), entry(130, "near", "transfer", ONE)]
    frames = statement(rows, gaps=[Gap("near", 109, 110, ONE, "?")])
    plots.statement(frames.entries, frames.totals, frames.gaps, ax=ax)
    [area] = [patch for patch in ax.patches if patch.get_hatch()]
    assert area.get_x() == pytest.approx(day(109))
    assert area.get_x() + area.get_width() == pytest.approx(day(110))


def test_near_is_drawn_before_tokens_without_decimals(ax: Any):
    """An amount in smallest units would flatten all that is in whole tokens."""
    rows = [entry(110, "near", "fee", -1), entry(111, "nep141:x.near", "token", 10**30)]
    rows += [entry(112 + n, f"nep141:t{n}.near", "token", 10**9) for n in range(8)]
    tokens = {f"nep141:t{n}.near": Token("T", 6) for n in range(8)}
    frames = statement(rows, tokens=tokens)
    plots.statement(frames.entries, frames.totals, ax=ax)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "near" in labels
    assert "nep141:x.near" not in labels
    assert "assets not drawn: 3" in ax.get_xlabel()


def test_each_asset_has_its_own_unit_and_line(ax: Any):
    """Tokens are in whole tokens if decimals are known; one asset can be chosen."""
    rows = [entry(110, "near", "transfer", ONE), entry(111, GOLD, "token", 2_500_000)]
    frames = statement(rows, tokens=TOKENS)
    plots.statement(frames.entries, frames.totals, ax=ax)
    assert line(ax, GOLD)[1] == [0.0, 2.5]
    assert ax.get_ylabel() == "balance (each token in its own unit)"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["token", "transfer", "near", GOLD]
    only = plots.statement(frames.entries, frames.totals, asset=GOLD)
    assert only.get_ylabel() == "balance (GOLD)"
    assert plots.statement(frames.entries, asset=GOLD).get_ylabel().endswith("each token)")


def test_what_is_not_drawn_is_counted(ax: Any):
    """The seven largest balances are drawn, gaps of the others are counted; 0 is no step."""
    rows = [entry(110 + n, f"nep141:t{n}.near", "mint", n) for n in range(10)]
    frames = statement(rows, gaps=[Gap("nep141:t1.near", 120, 130, 1, "")])
    plots.statement(frames.entries, None, frames.gaps, ax=ax)
    lines = [d.get_label() for d in ax.get_lines() if d.get_label().startswith("nep141")]
    assert lines == [f"nep141:t{n}.near" for n in range(3, 10)]
    assert "assets not drawn: 2" in ax.get_xlabel()
    assert "gaps of assets not drawn: 1" in ax.get_xlabel()


def test_without_times_heights_are_drawn(ax: Any):
    """An entry whose time is unknown has its height."""
    rows = [entry(110, "near", "transfer", 1)._replace(timestamp_ns=None)]
    plots.statement(statement(rows).entries, ax=ax)
    assert line(ax, "near")[0] == [110.0, 110.0]
    assert ax.get_xlabel() == "block height"


def test_an_unknown_balance_is_not_drawn(ax: Any):
    """An asset without an opening has no line."""
    frames = statement([entry(110, "near", "transfer", 1)], opening={"near": None})
    plots.statement(frames.entries, ax=ax)
    assert np.isnan(line(ax, "near")[1]).all()


def test_an_asset_that_is_not_there():
    """The error lists the assets."""
    with pytest.raises(InvalidRequestError, match="which has near") as caught:
        plots.statement(statement([entry(110, "near", "fee", -1)]).entries, asset="nea")
    assert caught.value.field == "asset"
