"""Each drawing says what its frame says: counted, placed and named, at 5 and at 300 rows."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import colors
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from ledgerkit.errors import InvalidRequestError
from ledgerkit.plots import inks, texts
from tests.unit.plots.frames import NEAR, PLOTS, TGAS, frame, plots, receipt

if TYPE_CHECKING:
    from collections.abc import Callable

MATH = "$\\frac{_^$"  # an error, where texts are read as formulas
HOSTILE = f"{MATH}\u202e\x00\n<b>"


def five() -> pd.DataFrame:
    """Tell of a call that makes a transfer, one that fails and a callback that waits."""
    return frame(
        "receipts",
        [
            receipt("A", on_critical_path=True, gas_burnt=4 * TGAS),
            receipt("B", "A", receiver_id="wrap.near", block_height=101, on_critical_path=True,
                    shard_id=2, gas_burnt=3 * TGAS),
            receipt("C", "A", receiver_id="gold.near", status="failure", block_height=101),
            receipt("D", "B", kind="refund", receiver_id="alice.near", block_height=102,
                    shard_id=2),
            receipt("E", "A", method_name="on_swap", block_height=103, on_critical_path=True),
        ],
    )  # fmt: skip


def edges(*pairs: tuple[str, str]) -> pd.DataFrame:
    told = [{"parent_id": a, "child_id": b, "kind": "data", "data_id": "d"} for a, b in pairs]
    return frame("edges", [*told, {"parent_id": "A", "child_id": "B", "kind": "creation"}])


def tangle(n: int) -> pd.DataFrame:
    """Tell of receipts none of which is like another."""
    draw = np.random.default_rng(7)
    parents = [None, *(int(draw.integers(max(0, at - 30), at)) for at in range(1, n))]
    return frame(
        "receipts",
        [
            receipt(
                f"R{at}",
                None if parent is None else f"R{parent}",
                method_name=f"method_{at}",
                receiver_id=f"contract-{at % 11}.near",
                status="failure" if at % 17 == 5 else "success_value",
                shard_id=at % 4,
                block_height=100 + at // 3,
            )
            for at, parent in enumerate(parents)
        ],
    )


def fan(n: int) -> pd.DataFrame:
    """Tell of one receipt that makes many that are alike, each with a refund, and one more."""
    many = [receipt(f"C{at}", "A", method_name="echo", block_height=101) for at in range(n)]
    back = [receipt(f"F{at}", f"C{at}", kind="refund", block_height=102) for at in range(n)]
    many[3] |= {"status": "failure"}
    return frame("receipts", [receipt("A"), *many, *back, receipt("Z", "A", block_height=102)])


def names(ax: Any) -> list[str]:
    """List the names of the rows, from top to bottom."""
    return [text.get_text() for text in ax.get_yticklabels()]


def boxes(ax: Any, colour: str) -> list[tuple[float, float, float]]:
    """List the bars of a colour, as it is drawn on these axes: left, width and row."""
    colour = inks.inside(ax).shape(colour) if colour != "white" else colour
    found = [
        (patch.get_x(), patch.get_width(), patch.get_y() + patch.get_height() / 2)
        for patch in ax.patches
        if hasattr(patch, "get_x") and colors.same_color(patch.get_facecolor(), colour)
    ]
    return sorted((float(x), float(width), round(float(y), 6)) for x, width, y in found)


def dots(ax: Any, colour: str) -> list[list[float]]:
    """List the places of the markers of a colour, as it is drawn on these axes."""
    colour = inks.inside(ax).shape(colour)
    own = [one for one in ax.collections if colors.same_color(one.get_facecolor()[:1], colour)]
    return [place for one in own for place in np.asarray(one.get_offsets()).tolist()]


def legend(ax: Any) -> list[str]:
    drawn = ax.get_legend()
    return [] if drawn is None else [text.get_text() for text in drawn.get_texts()]


def overlapping(ax: Any) -> list[tuple[str, str]]:
    """List neighbouring names of rows of which one covers the other."""
    ax.figure.draw_without_rendering()
    told = [(text.get_window_extent(), text.get_text()) for text in ax.get_yticklabels()]
    told.sort(key=lambda item: item[0].y0)
    return [(a[1], b[1]) for a, b in pairwise(told) if a[0].y1 > b[0].y0 + 1]


# The receipt tree ---------------------------------------------------------------------


def test_a_tree_has_a_row_for_each_receipt_at_its_depth():
    """Rows read as a tree does, and markers stand at the depth; D is B's child."""
    ax = plots.receipt_tree(five(), edges(("B", "E")))
    assert names(ax) == [
        "swap · dex.near",
        "swap · wrap.near",
        "refund · alice.near",
        "swap · gold.near",
        "on_swap · dex.near",
    ]
    assert dots(ax, inks.BLUE) == [[0, 0], [1, 1], [1, 4]]
    assert dots(ax, inks.VERMILION) == [[1, 3]]
    assert dots(ax, inks.SKY) == [[2, 2]]
    assert ax.get_title(loc="left") == "5 receipts, 1 failed"
    assert legend(ax) == ["succeeded", "failed", "refund", "critical path", "data dependency"]


def test_a_tree_of_one_receipt_has_one_depth_and_no_path():
    """No depth is a fraction, and the legend explains only what is drawn."""
    ax = plots.receipt_tree(frame("receipts", [receipt("A", on_critical_path=True)]))
    ax.figure.draw_without_rendering()
    low, high = ax.get_xlim()
    assert [tick for tick in ax.get_xticks() if low <= tick <= high] == [0]
    assert legend(ax) == ["succeeded"]


def test_a_tree_joins_each_receipt_to_its_creator():
    """Four of five have one; two of these four joints are critical."""
    ax = plots.receipt_tree(five())
    plain, critical = (one for one in ax.collections if len(one.get_paths()[0].vertices) == 3)
    assert [len(plain.get_paths()), len(critical.get_paths())] == [2, 2]
    assert critical.get_paths()[0].vertices.tolist() == [[0, 0], [0, 1], [1, 1]]
    assert critical.get_linewidth()[0] > plain.get_linewidth()[0]


def test_a_joint_is_critical_only_where_both_its_ends_are():
    """The path may come to a receipt through the data that it waited for."""
    told = [receipt("A"), receipt("B", "A", on_critical_path=True)]
    ax = plots.receipt_tree(frame("receipts", told))
    (joints,) = (one for one in ax.collections if len(one.get_paths()[0].vertices) == 3)
    assert joints.get_linewidth()[0] == 1.0


def test_data_edges_are_arrows_between_rows():
    """From B in row 1 to E in row 4; the creation edge of the frame is no arrow."""
    ax = plots.receipt_tree(five(), edges(("B", "E"), ("B", "not drawn")))
    (arrow,) = [text for text in ax.texts if text.arrow_patch is not None]
    assert (arrow.xyann, arrow.xy) == ((1, 1), (1, 4))


def test_a_failure_is_told_without_colour():
    """Its name is bold and its marker another one."""
    ax = plots.receipt_tree(five())
    bold = [text.get_text() for text in ax.get_yticklabels() if text.get_weight() == "bold"]
    assert bold == ["swap · gold.near"]
    markers = {line.get_label(): line.get_marker() for line in ax.get_legend().get_lines()}
    assert markers["failed"] != markers["succeeded"]


def test_receipts_that_are_alike_share_a_row():
    """Of 150 calls 149 are alike, with their refunds; the failed one stands alone."""
    ax = plots.receipt_tree(fan(150), edges(*((f"C{at}", "Z") for at in range(150))))
    assert names(ax) == [
        "swap · dex.near",
        "echo · dex.near \N{MULTIPLICATION SIGN}149",
        "refund · dex.near \N{MULTIPLICATION SIGN}149",
        "echo · dex.near",
        "refund · dex.near",
        "swap · dex.near",
    ]
    assert ax.get_title(loc="left") == "302 receipts, 1 failed"
    assert len([text for text in ax.texts if text.arrow_patch is not None]) == 2
    gas = plots.gas_icicle(fan(150))
    assert gas.get_title(loc="left") == "302 Tgas in 302 receipts, 1 failed"


@pytest.mark.parametrize(
    "other", [{"shard_id": 2}, {"block_height": 102}, {"status": "failure"}, {"method_name": "b"}]
)
def test_receipts_share_a_row_only_where_they_read_the_same(other: dict[str, Any]):
    """The timeline would put them elsewhere, or the tree call them something else."""
    alike = [receipt(f"C{at}", "A") for at in range(50)]
    alike[1] |= other
    rows = names(plots.receipt_tree(frame("receipts", [receipt("A"), *alike])))
    assert len(rows) == 3
    assert rows[1] == "swap · dex.near \N{MULTIPLICATION SIGN}49"


def test_a_shared_row_is_critical_where_one_of_it_is():
    """The critical path leads through one of fifty."""
    alike = [receipt(f"C{at}", "A", on_critical_path=at == 1) for at in range(50)]
    ax = plots.receipt_tree(frame("receipts", [receipt("A", on_critical_path=True), *alike]))
    (joints,) = (one for one in ax.collections if len(one.get_paths()[0].vertices) == 3)
    assert joints.get_linewidth()[0] == 2.0


@pytest.mark.parametrize("draw", [plots.receipt_tree, plots.timeline])
@pytest.mark.parametrize("n", [5, 45, 300])
def test_names_of_rows_never_cover_each_other(draw: Callable[..., Any], n: int):
    """Rows for whose name there is no room have none, but every row is drawn."""
    ax = draw(tangle(n))
    assert overlapping(ax) == []
    assert len(names(ax)) == n if n < 50 else 30 < len(names(ax)) < n
    low, high = ax.get_ylim()
    assert round(low - high) == n


def test_failures_are_named_first():
    """Where there is room for some of the names only, failures keep theirs."""
    chain = tangle(300)
    chain["parent_id"] = chain["receipt_id"].shift()
    named = names(plots.receipt_tree(chain))
    assert len(named) < 150
    assert {f"method_{at} · contract-{at % 11}.near" for at in range(5, 300, 17)} <= set(named)


# The timeline -------------------------------------------------------------------------


def test_a_receipt_is_solid_where_it_ran_and_hatched_where_it_waited():
    """E could have run in 101, the block after A's, and ran in 103: it waited for two blocks."""
    ax = plots.timeline(five(), edges(("B", "E")))
    assert names(ax)[:3] == ["swap · dex.near", "swap · gold.near", "on_swap · dex.near"]
    assert boxes(ax, inks.BLUE) == [(0, 1, 0), (1, 1, 3), (3, 1, 2)]
    assert boxes(ax, inks.VERMILION) == [(1, 1, 1)]
    assert boxes(ax, "white") == [(1, 2, 2)]
    (waited,) = [p for p in ax.patches if colors.same_color(p.get_facecolor(), "white")]
    assert waited.get_hatch() == "////"
    assert legend(ax)[-3:] == ["waiting", "parent to child", "data dependency"]


def test_shards_are_named_and_kept_apart():
    """Three receipts ran in shard 1, two in shard 2: a line stands between rows 2 and 3."""
    ax = plots.timeline(five())
    told = {text.get_text(): text.get_position()[1] for text in ax.texts}
    assert told == {"shard 1": 1.0, "shard 2": 3.5}
    assert [line.get_ydata()[0] for line in ax.get_lines()] == [2.5]


def test_a_local_receipt_is_joined_to_its_own_block():
    """It ran where and when its creator did: it waited for nothing."""
    ax = plots.timeline(frame("receipts", [receipt("A"), receipt("B", "A")]))
    assert boxes(ax, "white") == []
    lines = [one.get_paths()[0].vertices.tolist() for one in ax.collections]
    assert [[1, 0], [0, 1]] in lines


def test_blocks_are_counted_from_the_first():
    """Heights have nine digits: the first is told once."""
    ax = plots.timeline(five())
    assert [text.get_text() for text in ax.get_xticklabels()] == ["+0", "+1", "+2", "+3"]
    assert ax.get_xlabel() == "blocks after block 100"


def test_a_long_wait_is_shortened_and_said_so():
    """Nothing ran in 199 blocks: they take the room of four, with their number."""
    late = [receipt("A"), receipt("B", "A", block_height=300)]
    ax = plots.timeline(frame("receipts", late))
    assert boxes(ax, inks.BLUE) == [(0, 1, 0), (5, 1, 1)]
    assert boxes(ax, "white") == [(1, 4, 1)]
    assert "199\nblocks" in [text.get_text() for text in ax.texts]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["+0", "+200"]


def test_the_length_of_a_gap_stays_within_the_gap():
    """Between fourteen blocks far apart there is room for a number, but not for two lines."""
    late = [
        receipt("A"),
        *(receipt(f"B{n}", "A", block_height=100 + 1000 * n) for n in range(1, 14)),
    ]
    ax = plots.timeline(frame("receipts", late))
    ax.figure.draw_without_rendering()
    boxes = sorted(
        (t.get_window_extent() for t in ax.texts if t.get_text() == "999"), key=lambda b: b.x0
    )
    assert len(boxes) == 13
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_what_has_not_run_is_an_outline_after_all_that_has():
    """Its block is not known yet."""
    open_ = receipt("B", "A", block_height=None, status="not_executed", gas_burnt=None)
    ax = plots.timeline(frame("receipts", [receipt("A"), open_]))
    assert boxes(ax, "white") == [(1, 1, 1)]
    assert legend(ax) == ["executed", "not executed", "parent to child"]


def test_a_receipt_of_unknown_status_that_burnt_gas_has_run():
    """It is neither a success nor one that waits; without gas it has not run."""
    rows = [receipt("A"), receipt("B", "A", status="unknown")]
    waiting = receipt("C", "A", status="unknown", gas_burnt=0, block_height=None)
    for draw, ran in (plots.timeline, "executed"), (plots.receipt_tree, "succeeded"):
        assert legend(draw(frame("receipts", rows)))[:2] == [ran, "status unknown"]
        assert "status unknown" not in legend(draw(frame("receipts", [rows[0], waiting])))


def test_without_heights_the_creators_count():
    """A trace read without blocks has none, and is drawn all the same."""
    told = [receipt("A", block_height=None), receipt("B", "A", block_height=None, shard_id=None)]
    ax = plots.timeline(frame("receipts", told))
    assert boxes(ax, inks.BLUE) == [(0, 1, 0), (1, 1, 1)]
    assert ax.get_xlabel() == "depth (block heights are unknown)"
    assert "shard\nunknown" in [text.get_text() for text in ax.texts]


# Gas ----------------------------------------------------------------------------------


def test_a_receipt_is_as_wide_as_the_gas_that_it_led_to():
    """A and all below it burnt 10 Tgas: B with its refund 4, C 1 and E 1 stand below it."""
    ax = plots.gas_icicle(five())
    own = [(p.get_x(), p.get_width(), p.get_y()) for p in ax.patches]
    assert own == [(0, 10, 0), (0, 4, 1), (4, 1, 1), (0, 1, 2), (5, 1, 1)]
    late = pd.concat([five(), frame("receipts", [receipt("F", "E", gas_burnt=0)])])
    late.loc[late["receipt_id"] == "F", "gas_burnt"] = 2 * TGAS
    last = plots.gas_icicle(late).patches[-1]
    assert (last.get_x(), last.get_width(), last.get_y()) == (5, 2, 2)
    assert legend(ax) == ["dex.near 50%", "wrap.near 30%", "gold.near 10%", "refund receipts 10%"]
    assert ax.get_title(loc="left") == "10 Tgas in 5 receipts, 1 failed"
    assert ax.get_xlabel() == "gas burnt (Tgas)"


def test_contracts_that_burnt_little_are_gathered():
    """Eleven contracts: six have colours and hatches of their own."""
    ax = plots.gas_icicle(tangle(300))
    assert len(legend(ax)) == 7
    assert legend(ax)[-1] == "other contracts 45%"
    looks = {(p.get_facecolor(), p.get_hatch()) for p in ax.patches}
    assert len(looks) == 7


def test_accounts_and_methods_may_have_any_name():
    """An account called others, or a method called refund, is what it is."""
    told = [receipt(f"R{at}", receiver_id=f"c{at}.near", gas_burnt=TGAS) for at in range(7)]
    told += [receipt("X", receiver_id="others", method_name="refund", gas_burnt=3 * TGAS)]
    ax = plots.gas_icicle(frame("receipts", told))
    assert legend(ax)[0] == "others 30%"
    assert legend(ax)[-1] == "other contracts 20%"


def test_names_in_boxes_are_cut_to_their_room():
    """No name is wider than its box."""
    ax = plots.gas_icicle(tangle(300))
    ax.figure.draw_without_rendering()
    own = {(p.get_x() + p.get_width() / 2, p.get_y() + 0.5): p for p in ax.patches}
    for text in ax.texts:
        box = own[text.get_position()].get_window_extent()
        assert text.get_window_extent().width <= box.width
    assert len(ax.texts) > 20


def test_no_gas_is_said():
    """What has not run burnt nothing."""
    told = receipt("A", gas_burnt=None, status="not_executed")
    ax = plots.gas_icicle(frame("receipts", [told]))
    assert [text.get_text() for text in ax.texts] == ["no gas burnt"]


def test_unknown_gas_is_not_none():
    """Receipts that have run and lack their gas are counted, also where equal ones are merged."""
    unknown = receipt("B", "A", gas_burnt=None, status="unknown")
    ax = plots.gas_icicle(frame("receipts", [receipt("A"), unknown]))
    assert ax.get_xlabel() == "gas burnt (Tgas)\nreceipts whose gas is unknown: 1"
    ax = plots.gas_icicle(frame("receipts", [unknown]))
    assert [text.get_text() for text in ax.texts] == ["receipts whose gas is unknown: 1"]
    many = fan(60)
    many.loc[many["kind"] == "refund", "gas_burnt"] = None
    assert plots.gas_icicle(many).get_xlabel().endswith("receipts whose gas is unknown: 60")


# Flows --------------------------------------------------------------------------------


def moved(giver: str | None, taker: str | None, amount: int | None, **told: Any) -> dict[str, Any]:
    """Tell of a movement, of NEAR unless told otherwise."""
    usual = {"kind": "transfer", "asset": "near", "sender_id": giver, "receiver_id": taker}
    return {**usual, "amount": amount, **told}


GOLD = {"kind": "token", "asset": "nep141:gold.near"}


def test_a_flow_stands_between_who_gave_and_who_got():
    """Equal pairs are summed exactly; the same account may stand at both sides."""
    ax = plots.token_flow(
        frame(
            "transfers",
            [
                moved("alice.near", "bob.near", NEAR),
                moved("alice.near", "bob.near", NEAR),
                moved("bob.near", "alice.near", 1),
                moved("alice.near", "system", 10**22, kind="fee"),
                moved(None, "carol.near", 500, **GOLD),
                moved("carol.near", None, 20, **GOLD),
            ],
        )
    )
    assert {text.get_text() for text in ax.texts} == {
        "NEAR",
        "alice.near · 2.01 NEAR",
        "bob.near · 2 NEAR",
        "bob.near · 1 yocto",
        "alice.near · 1 yocto",
        "system · 0.01 NEAR",
        "nep141:gold.near",
        "(minted) · 500 units",
        "carol.near · 500 units",
        "carol.near · 20 units",
        "(burnt) · 20 units",
    }
    assert legend(ax) == ["NEAR sent", "gas fee", "tokens"]
    assert ax.get_title(loc="left") == "5 flows between accounts"


def test_the_balance_of_a_gas_key_is_near():
    """What a gas key holds is written in NEAR; what an action burnt is no fee."""
    rows = [moved("alice.near", "system", 10**22, asset="gas_key:ed25519:K", kind="fee")]
    rows += [moved("alice.near", "system", 2 * 10**22, asset="near", kind="burnt")]
    ax = plots.token_flow(frame("transfers", rows))
    texts = {text.get_text() for text in ax.texts}
    assert {"gas_key:ed25519:K", "system · 0.01 NEAR", "system · 0.02 NEAR"} <= texts
    assert legend(ax) == ["gas fee", "NEAR burnt"]


def test_transfers_of_unknown_amount_are_counted():
    """They have no ribbon, and are not nothing; what did not arrive was not sent."""
    unknown = moved("alice.near", "system", None, kind="fee")
    rows = [unknown, moved("alice.near", "system", NEAR, kind="undelivered")]
    ax = plots.token_flow(frame("transfers", rows))
    assert ax.get_xlabel() == "transfers of unknown amount: 1"
    assert legend(ax) == ["deposit not delivered"]
    assert ax.get_title(loc="left") == "1 flow between accounts"
    ax = plots.token_flow(frame("transfers", [unknown]), asset="near")
    assert [text.get_text() for text in ax.texts] == ["transfers of unknown amount: 1"]


def test_ribbons_are_as_thick_as_amounts():
    """Three parts to one, within one asset."""
    ax = plots.token_flow(
        frame("transfers", [moved("a.near", "b.near", 3 * NEAR), moved("a.near", "c.near", NEAR)])
    )
    ribbons = [p for p in ax.patches if not hasattr(p, "get_x")]
    thick = [abs(p.get_path().vertices[0][1] - p.get_path().vertices[7][1]) for p in ribbons]
    assert thick[0] == pytest.approx(3 * thick[1])


def test_tokens_come_first_and_ribbons_cross_little():
    """NEAR moved most often and comes last; who got stands as high as who gave."""
    told = [moved(f"{one}.near", f"{one}{one}.near", NEAR) for one in "abc"]
    told += [moved("a.near", "cc.near", NEAR), moved("a.near", "d.near", 5, **GOLD)]
    ax = plots.token_flow(frame("transfers", told))
    titles = [text.get_text() for text in ax.texts if text.get_ha() == "center"]
    assert titles == ["nep141:gold.near", "NEAR"]
    got = {t.get_text(): t.get_position()[1] for t in ax.texts if t.get_ha() == "left"}
    assert sorted(got, key=lambda name: got[name]) == [
        "d.near · 5 units",
        "aa.near · 1 NEAR",
        "bb.near · 1 NEAR",
        "cc.near · 2 NEAR",
    ]
    told.reverse()
    ax = plots.token_flow(frame("transfers", told))
    got = {t.get_text(): t.get_position()[1] for t in ax.texts if t.get_ha() == "left"}
    assert sorted(got, key=lambda name: got[name])[1:] == [
        "aa.near · 1 NEAR",
        "cc.near · 2 NEAR",
        "bb.near · 1 NEAR",
    ]


def test_one_asset_can_be_drawn_alone_and_an_unknown_one_is_refused():
    """The refusal names those that moved."""
    told = frame(
        "transfers", [moved("a.near", "b.near", NEAR), moved("c.near", "d.near", 5, **GOLD)]
    )
    ax = plots.token_flow(told, asset="near")
    assert "NEAR" in [text.get_text() for text in ax.texts]
    assert "nep141:gold.near" not in [text.get_text() for text in ax.texts]
    with pytest.raises(InvalidRequestError, match=r"nep141:gold\.near"):
        plots.token_flow(told, asset="nep141:silver.near")


def test_the_accounts_that_moved_least_are_gathered():
    """Of 300 givers eleven are named and the others are one; nothing is lost."""
    told = [moved(f"a{at:03}.near", "b.near", (at + 1) * NEAR) for at in range(300)]
    ax = plots.token_flow(frame("transfers", told))
    texts = [text.get_text() for text in ax.texts]
    assert "289 others · 41,905 NEAR" in texts
    assert "a299.near · 300 NEAR" in texts
    assert "b.near · 45,150 NEAR" in texts
    assert len(texts) == 14


def test_names_of_accounts_never_cover_each_other():
    """Also where the axes are small."""
    draw = np.random.default_rng(3)
    told = [
        moved(f"a{draw.integers(30)}.near", f"b{draw.integers(30)}.near", int(size * NEAR))
        for size in draw.lognormal(0, 3, 300)
    ]
    for figure in (None, Figure(figsize=(5, 2), layout="constrained")):
        ax = plots.token_flow(
            frame("transfers", told), ax=None if figure is None else figure.add_subplot()
        )
        ax.figure.draw_without_rendering()
        for side in ("left", "right"):
            tops = sorted(
                (text.get_window_extent().y0, text.get_window_extent().y1)
                for text in ax.texts
                if text.get_ha() == side
            )
            assert all(a[1] <= b[0] + 1 for a, b in pairwise(tops))
            assert tops


# Holdings -----------------------------------------------------------------------------


def token(symbol: str | None, balance: int | None, **told: Any) -> dict[str, Any]:
    """Return a row of a balance in the smallest unit, of a token of one decimal."""
    usual = {"account_id": "alice.near", "contract_id": f"{symbol}.near".lower(), "status": "ok"}
    unit = {"symbol": symbol, "decimals": 1, "metadata_status": "ok"}
    return {**usual, **unit, "balance": balance, **told}


def test_balances_are_told_in_human_units_greatest_first():
    """What cannot be drawn on such an axis is named below, with the reason."""
    told = [
        token("GOLD", 25),
        token("MOON", 34 * 10**20),
        token("DUST", 0),
        token("SLOW", None, status="pending"),
        token("TORN", None, status="broken"),
        token("ODD", 7, decimals=None),
    ]
    ax = plots.balances(frame("ft_metadata", told))
    assert names(ax) == ["MOON · moon.near", "GOLD · gold.near"]
    assert dots(ax, inks.BLUE) == [[3.4e20, 0], [2.5, 1]]
    assert [text.get_text() for text in ax.texts] == [
        "340,000,000,000,000,000,000 MOON",
        "2.5 GOLD",
    ]
    assert ax.get_xscale() == "log"
    assert " · ".join(ax.get_xlabel().splitlines()[1:]) == (
        "zero: DUST · not indexed yet: SLOW · broken: TORN · unknown decimals: ODD"
    )
    assert ax.get_title(loc="left") == "tokens of alice.near"


@pytest.mark.parametrize("amounts", [(300,), (300, 310), (3, 2_000_000), (1, 10**30)])
def test_ticks_of_balances_do_not_overlap(amounts: tuple[int, ...]):
    """Few or many powers of ten: three or more labels of the axis are there, each with room."""
    rows = [token(f"T{n}", n, contract_id=f"t{n}.near", decimals=0) for n in amounts]
    ax = plots.balances(frame("ft_metadata", rows))
    ax.figure.draw_without_rendering()
    low, high = ax.get_xlim()
    labels = [t for t in ax.get_xticklabels(which="both") if low <= t.get_position()[0] <= high]
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    boxes.sort(key=lambda box: box.x0)
    assert len(boxes) >= 3
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_nothing_held_is_said_with_what_is_not_known():
    """An account may hold no token whose balance can be told."""
    told = [
        token("DUST", 0),
        token("SLOW", None, status="pending"),
        token("LATE", None, status="no_contract"),
    ]
    ax = plots.balances(frame("ft_metadata", told))
    assert [text.get_text() for text in ax.texts] == [
        "no token balances\nzero: DUST · not indexed yet: SLOW · contract did not exist: LATE"
    ]


def test_only_the_top_is_drawn_and_the_rest_is_counted():
    """Sixty tokens, five drawn."""
    told = [token(f"T{at}", 1 + at) for at in range(60)]
    ax = plots.balances(frame("ft_metadata", told), top=5)
    assert names(ax)[0] == "T59 · t59.near"
    assert len(names(ax)) == 5
    assert ax.get_xlabel().endswith("55 smaller balances not drawn")


def test_holders_of_one_token_are_named_by_account():
    """The token is told once, in the title and at the axis; who holds nothing is named."""
    told = [
        token("GOLD", 25),
        token("GOLD", 400, account_id="bob.near"),
        token("GOLD", 0, account_id="dave.near"),
    ]
    ax = plots.balances(frame("ft_metadata", told))
    assert names(ax) == ["bob.near", "alice.near"]
    assert ax.get_title(loc="left") == "holders of GOLD · gold.near"
    assert ax.get_xlabel() == "balance (GOLD, log scale)\nzero: dave.near"


def stake(pool: str, staked: int | None, unstaked: int | None, **told: Any) -> dict[str, Any]:
    """Tell of a position, in NEAR."""
    units = {
        name: None if value is None else value * NEAR
        for name, value in (("staked", staked), ("unstaked", unstaked))
    }
    usual = {"account_id": "bob.near", "pool_id": pool, "can_withdraw": True, "status": "ok"}
    return {**usual, **units, **told}


def test_stake_is_stacked_by_what_can_be_done_with_it():
    """Staked, free and locked NEAR follow each other; a pool that told nothing is counted."""
    told = [
        stake("north.near", 30, 10, can_withdraw=False),
        stake("south.near", 25, 75),
        stake("none.near", None, None, status="not_a_pool", can_withdraw=None),
    ]
    ax = plots.staking(frame("staking_positions", told))
    assert names(ax) == ["south.near", "north.near"]
    assert boxes(ax, inks.BLUE) == [(0, 25, 0), (0, 30, 1)]
    assert boxes(ax, inks.SKY) == [(25, 75, 0), (30, 0, 1)]
    assert boxes(ax, inks.ORANGE) == [(30, 10, 1), (100, 0, 0)]
    assert [text.get_text() for text in ax.texts] == ["100 NEAR", "40 NEAR"]
    assert ax.get_xlabel() == "stake (NEAR)\nunknown: 1 of 3 positions"
    assert ax.get_title(loc="left") == "140 NEAR in stakes"


def test_bars_of_one_pool_differ_by_their_source():
    """What a lockup contract stakes with the same pool has a bar with its source."""
    sources = {"indexed": 3, "lockup": 2, "venear": 1}
    told = [stake("p.near", amount, 0, source=name) for name, amount in sources.items()]
    ax = plots.staking(frame("staking_positions", told))
    assert names(ax) == ["p.near", "p.near · lockup", "p.near · venear"]


def test_dots_of_one_token_differ_by_their_place():
    """A token in intents.near has a dot of its own; another id has no contract, and a note."""
    usual = {"account_id": "a.near", "status": "ok", "symbol": "GOLD", "decimals": 6}
    inside = {"held_in": "intents.near", "balance": 10**6}
    told = [
        {**usual, "contract_id": "g.near", "held_in": "wallet", "balance": 2 * 10**6},
        {**usual, "contract_id": "g.near", "token_id": "nep141:g.near", **inside},
        {"account_id": "a.near", "status": "ok", "token_id": "nep171:n.near:1", **inside},
    ]
    ax = plots.balances(frame("ft_intents_metadata", told))
    assert names(ax) == ["GOLD · g.near", "GOLD · g.near in intents.near"]
    assert ax.get_xlabel().endswith("unknown decimals: nep171:n.near:1")


def test_small_positions_are_a_note_that_flattens_no_bar():
    """Of 300 positions twenty have a bar, and the sum of the others is written below."""
    told = [stake(f"p{at}.near", at + 1, 0, account_id=f"a{at}.near") for at in range(300)]
    ax = plots.staking(frame("staking_positions", told))
    assert len(names(ax)) == 20
    assert names(ax)[0] == "a299.near · p299.near"
    assert names(ax)[-1] == "a280.near · p280.near"
    assert ax.get_xlabel().endswith("not drawn: 280 smaller positions, 39,340 NEAR")
    assert ax.get_xlim()[1] == pytest.approx(300 * 1.02)
    assert ax.get_title(loc="left") == "45,150 NEAR in stakes"


def classed(*classes: str) -> pd.DataFrame:
    """Tell of accounts and how they stake."""
    told = [
        {"account_id": f"a{at}.near", "exposure_class": c, "status": "ok"}
        for at, c in enumerate(classes)
    ]
    return frame("exposure", told)


def test_accounts_are_counted_by_how_they_stake():
    """Each class has its row, also one that is empty; the share is of all."""
    ax = plots.exposure(classed("mixed", "direct_only", "mixed", "mixed"))
    assert names(ax) == ["direct only", "liquid only", "mixed", "no visible staking position"]
    assert [text.get_text() for text in ax.texts] == ["1 (25%)", "0 (0%)", "3 (75%)", "0 (0%)"]
    assert boxes(ax, inks.ORANGE) == [(0, 3, 2)]
    assert ax.get_title(loc="left") == "4 accounts by staking exposure"


def test_accounts_that_are_not_indexed_have_a_bar_of_their_own():
    """An account of which nothing is known is not counted as one without a position."""
    counted = classed("mixed", *["no_visible_staking_position"] * 3)
    counted.loc[1:2, "status"] = "not_indexed"
    ax = plots.exposure(counted)
    assert dict(zip(names(ax), [text.get_text() for text in ax.texts], strict=True)) == {
        "direct only": "0 (0%)",
        "liquid only": "0 (0%)",
        "mixed": "1 (25%)",
        "no visible staking position": "1 (25%)",
        "not indexed": "2 (50%)",
    }


def test_one_account_is_one_account():
    """The title counts as people do."""
    assert plots.exposure(classed("mixed")).get_title(loc="left") == "1 account by staking exposure"


def holders(*amounts: int | None, contract_id: str = "gold.near") -> list[dict[str, Any]]:
    return [{"contract_id": contract_id, "balance": one, "status": "ok"} for one in amounts]


def test_the_curve_and_the_coefficient_are_those_of_the_balances():
    """One unit and three: half the holders have a quarter; Gini 1/4 by hand."""
    ax = plots.concentration(frame("top_holders", holders(3, 1, 0, None)))
    curve, even = ax.get_lines()
    assert curve.get_xydata().tolist() == [[0, 0], [50, 25], [100, 100]]
    assert even.get_xydata().tolist() == [[0, 0], [100, 100]]
    assert legend(ax) == [
        "gold.near: Gini 0.25, 2 holders, largest 75%",
        "equal balances",
    ]


def test_a_share_that_is_not_all_is_not_called_all():
    """Rounded, it would be 100%."""
    ax = plots.concentration(frame("top_holders", holders(10**30, 1)))
    assert legend(ax)[0] == "gold.near: Gini 0.50, 2 holders, largest over 99%"


def test_tokens_have_lines_of_their_own():
    """Seven tokens: six are drawn, in colours and styles, and one is counted."""
    told = [row for at in range(7) for row in holders(1, 2, contract_id=f"t{at}.near")]
    ax = plots.concentration(frame("top_holders", told))
    drawn = ax.get_lines()[:-1]
    assert len({line.get_color() for line in drawn}) == 6
    assert ax.get_xlabel().endswith("tokens not drawn: 1")


# All of them --------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLOTS)
def test_given_axes_are_drawn_on_and_nothing_else_is_touched(name: str, ax: Any):
    """No figure is made, no setting changed, no frame written to."""
    draw, make = PLOTS[name]
    told = make()
    before, settings = told.copy(deep=True), dict(mpl.rcParams)
    assert draw(told, ax=ax) is ax
    assert plt.get_fignums() == []
    assert dict(mpl.rcParams) == settings
    pd.testing.assert_frame_equal(told, before)
    ax.figure.canvas.draw()


@pytest.mark.parametrize("name", PLOTS)
def test_without_axes_one_figure_is_made_that_notebooks_show(name: str):
    """The figures of pyplot are those that notebooks show; one title is the user's own."""
    draw, make = PLOTS[name]
    told = make()
    ax = draw(told, title=MATH)
    assert [plt.figure(number) for number in plt.get_fignums()] == [ax.figure]
    assert ax.get_title(loc="left") == MATH
    ax.figure.canvas.draw()


@pytest.mark.parametrize("name", PLOTS)
def test_an_empty_frame_is_drawn_as_nothing(name: str, ax: Any):
    """It says so instead of failing."""
    draw, make = PLOTS[name]
    told = make()
    assert draw(told.head(0), ax=ax) is ax
    assert len(ax.texts) == 1
    ax.figure.canvas.draw()


@pytest.mark.parametrize("name", PLOTS)
def test_texts_of_the_chain_are_drawn_as_they_are(name: str, ax: Any):
    """No formula, no line break and no invisible letter of theirs is obeyed."""
    draw, make = PLOTS[name]
    told = make()
    hostile = told.copy()
    texts = "account_id method_name receiver_id sender_id asset symbol contract_id pool_id".split()
    texts += ["exposure_class"]
    for column in set(texts) & set(told.columns):
        hostile[column] = HOSTILE
    draw(hostile, ax=ax)
    ax.figure.canvas.draw()
    drawn = [*ax.texts, *ax.get_yticklabels()]
    drawn += ax.get_legend().get_texts() if ax.get_legend() else []
    texts = [*(text.get_text() for text in drawn), ax.get_title(loc="left")]
    shown = [text for text in texts if MATH[:6] in text]
    assert shown
    assert not any(letter in text for text in shown for letter in "\u202e\x00\n")


@pytest.mark.parametrize("name", PLOTS)
def test_a_frame_of_another_kind_is_refused(name: str):
    """The sentence names what is missing and what would be right."""
    with pytest.raises(InvalidRequestError, match="with the columns"):
        PLOTS[name][0](pd.DataFrame({"a": [1]}))


def test_without_matplotlib_the_extra_is_named(
    subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
):
    """It is an extra's, which the sentence tells how to install."""
    for name in PLOTS:
        with subtests.test(name=name):
            draw, make = PLOTS[name]
            told = make()
            monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
            with pytest.raises(InvalidRequestError, match=r'pip install "ledgerkit\[notebook\]"'):
                draw(told)


def test_numbers_are_short(subtests: pytest.Subtests):
    """Three digits, or all before the point."""
    cases = [
        (0, "0"),
        (1, "1"),
        (0.00003, "0.00003"),
        (1234.5, "1,234"),
        (12.345, "12.3"),
        (9.999, "10"),
        (3.4e20, "3.4e20"),
        (1.5e-9, "1.5e-9"),
        (-2.5, "-2.5"),
    ]
    for value, text in cases:
        with subtests.test(value=value):
            assert texts.format_number(value) == text


def test_colours_are_okabes_and_itos():
    """Which colour-blind eyes tell apart."""
    published = "#E69F00 #56B4E9 #009E73 #F0E442 #0072B2 #D55E00 #CC79A7".split()
    assert sorted(inks.CYCLE) == sorted(published)
