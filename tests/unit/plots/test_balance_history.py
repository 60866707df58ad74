"""What is drawn of a history: steps at the right height, gaps where nothing is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from matplotlib import dates

from ledgerkit import plots
from ledgerkit.errors import InvalidRequestError
from ledgerkit.frames import build
from ledgerkit.frames.schemas import SCHEMAS

if TYPE_CHECKING:
    import pandas as pd

NEAR = 10**24
START_NS = 1_785_542_400 * 10**9
DAY_NS = 86_400 * 10**9


def told(*rows: dict[str, Any]) -> pd.DataFrame:
    """Build a history of which only some columns are told; a row a day, unless it says which."""
    usual = {"account_id": "alice.near", "view": "accounts", "status": "ok"}
    full = [{"time": START_NS + place * DAY_NS, **usual, **row} for place, row in enumerate(rows)]
    names = [column.name for column in SCHEMAS["history"]]
    return build.build_frame("history", {name: [row.get(name) for row in full] for name in names})


def lines(ax: Any) -> dict[str, list[float]]:
    return {line.get_label(): [float(y) for y in line.get_ydata()] for line in ax.get_lines()}


def test_steps_in_near(ax: Any) -> None:
    """A balance is a line of steps in NEAR at the times of its blocks."""
    frame = told({"balance": 5 * NEAR, "locked": 0}, {"balance": 2 * NEAR + NEAR // 4, "locked": 0})
    assert plots.history(frame, ax=ax) is ax
    line: Any = ax.get_lines()[0]
    assert line.get_drawstyle() == "steps-post"
    assert lines(ax) == {"balance": [5.0, 2.25]}
    first = dates.date2num(line.get_xdata()[0])
    assert first == START_NS / DAY_NS
    assert (ax.get_ylabel(), ax.get_title(loc="left")) == (
        "balance (NEAR)",
        "balance of alice.near",
    )
    assert ax.get_xlabel() == "time (UTC)"


def test_one_reading_is_shown_within_its_hour(ax: Any) -> None:
    """A single time says nothing of the years around it."""
    plots.history(told({"balance": NEAR, "locked": 0}), ax=ax)
    left, right = ax.get_xlim()
    assert (left + right) / 2 == pytest.approx(START_NS / DAY_NS)
    assert right - left == pytest.approx(1 / 24)


def test_smallest_units_say_how_to_get_tokens(ax: Any) -> None:
    """Without metadata a token is drawn in its smallest units, and a note names the argument."""
    plots.history(told({"view": "ft", "contract_id": "gold.near", "balance": 80_000_000}), ax=ax)
    assert ax.get_xlabel().endswith("in smallest units: pass tokens=lk.ft(..., metadata=True)")


def test_what_is_locked_is_a_line_of_its_own(ax: Any) -> None:
    """A part that is not always zero is drawn beside the first."""
    frame = told({"balance": NEAR, "locked": 0}, {"balance": NEAR, "locked": 3 * NEAR})
    plots.history(frame, ax=ax)
    assert list(lines(ax).items()) == [("balance", [1.0, 1.0]), ("locked", [0.0, 3.0])]


def test_what_is_not_known_is_a_gap(ax: Any) -> None:
    """An account that is not there yet is no zero, and is counted below."""
    frame = told({"status": "no_account"}, {"status": "no_account"}, {"balance": 0, "locked": 0})
    plots.history(frame, ax=ax)
    values = lines(ax)["balance"]
    assert [math.isnan(value) for value in values] == [True, True, False]
    assert values[2] == 0
    assert "account did not exist: 2 of 3 readings" in ax.get_xlabel()
    assert ax.get_xlim()[0] < START_NS / DAY_NS  # the axis tells of them too


@pytest.mark.parametrize(
    ("decimals", "values", "unit"),
    [
        (0, [2_500_000.0, 7.0], "token balance (smallest units of each token)"),
        (6, [2.5, 7e-6], "token balance (each token in its own unit)"),
        ({"gold.near": 6}, [2.5, 7.0], "token balance (each token in its own unit)"),
    ],
)
def test_tokens(ax: Any, decimals: Any, values: list[float], unit: str) -> None:
    """Tokens are counted with the decimals given, and in their smallest unit without."""
    both: list[dict[str, Any]] = [
        {"view": "ft", "contract_id": name, "balance": balance, "time": START_NS}
        for name, balance in (("gold.near", 2_500_000), ("dust.near", 7))
    ]
    plots.history(told(*both), decimals=decimals, ax=ax)
    found = lines(ax)
    assert [found["gold.near"], found["dust.near"]] == [[values[0]], [values[1]]]
    assert ax.get_ylabel() == unit


def test_a_view_is_chosen(ax: Any) -> None:
    """Of several views one is drawn: the first, or the one that is named."""
    frame = told(
        {"balance": NEAR, "locked": 0},
        {"view": "staking", "contract_id": "p.near", "staked": 2 * NEAR, "unstaked": NEAR},
        {"view": "staking", "contract_id": "q.near", "staked": 3 * NEAR, "unstaked": 0},
    )
    plots.history(frame, view="staking", ax=ax)
    assert lines(ax) == {
        "q.near · staked": [3.0],
        "p.near · staked": [2.0],
        "p.near · unstaked": [1.0],
    }
    assert list(lines(plots.history(frame))) == ["balance"]


def test_many_lines() -> None:
    """The seven farthest from 0 are drawn, each in a style of its own; the rest is counted."""
    frame = told(
        *[
            {"view": "ft", "contract_id": f"t{n}.near", "balance": n, "time": START_NS + day}
            for n in range(20)
            for day in (0, DAY_NS)
        ]
    )
    ax = plots.history(frame)
    assert list(lines(ax)) == [f"t{n}.near" for n in range(13, 20)]
    assert len({(line.get_color(), str(line.get_linestyle())) for line in ax.get_lines()}) == 7
    assert "lines not drawn: 13" in ax.get_xlabel()


def course(account_id: str, *balances: int | None) -> list[dict[str, Any]]:
    """Tell of an account's balance day by day."""
    return [
        {"account_id": account_id, "time": START_NS + day * DAY_NS, "balance": balance, "locked": 0}
        for day, balance in enumerate(balances)
    ]


def test_accounts_have_lines_of_their_own() -> None:
    """Of several accounts in one frame each line bears the name; colour and style differ."""
    ax = plots.history(told(*course("a.near", NEAR, 2 * NEAR), *course("b.near", 3 * NEAR)))
    assert list(lines(ax).items()) == [("a.near", [1.0, 2.0]), ("b.near", [3.0])]
    assert len({(line.get_color(), str(line.get_linestyle())) for line in ax.get_lines()}) == 2
    assert ax.get_title(loc="left") == "balance of a.near, b.near"
    more = told(*[row for n in range(4) for row in course(f"a{n}.near", NEAR)])
    assert plots.history(more).get_title(loc="left") == "balance of 4 accounts"


def test_an_account_is_named_beside_what_it_holds(ax: Any) -> None:
    """A token of two accounts is two lines, and so is what one of them has locked."""
    rows = [
        {"account_id": name, "view": "ft", "contract_id": "gold.near", "balance": 7, "time": at}
        for at in (START_NS, START_NS + DAY_NS)
        for name in ("a.near", "b.near")
    ]
    plots.history(told(*rows), ax=ax)
    assert lines(ax) == {"a.near · gold.near": [7.0, 7.0], "b.near · gold.near": [7.0, 7.0]}
    kept = course("b.near", NEAR)
    kept[0]["locked"] = NEAR
    named = lines(plots.history(told(*course("a.near", NEAR), *kept)))
    assert list(named) == ["a.near", "b.near", "b.near · locked"]


def test_readings_are_drawn_in_the_order_of_time(ax: Any) -> None:
    """However the rows of a frame lie."""
    frame = told(*course("a.near", NEAR, 2 * NEAR, 3 * NEAR)).iloc[[2, 0, 1]]
    plots.history(frame, ax=ax)
    assert lines(ax) == {"balance": [1.0, 2.0, 3.0]}


def test_a_change_is_taken_while_it_is_exact(ax: Any) -> None:
    """One unit of 2^128 would be lost in a float; it counts from the first known reading."""
    amounts = [None, 2**128 - 2, 2**128 - 1, 2**128 - 9]
    rows = [
        {
            "view": "ft",
            "contract_id": "t.near",
            "balance": balance,
            "status": "ok" if balance else "x",
        }
        for balance in amounts
    ]
    plots.history(told(*rows), change=True, ax=ax)
    values = lines(ax)["t.near"]
    assert math.isnan(values[0])
    assert values[1:] == [0.0, 1.0, -7.0]
    assert ax.get_ylabel() == "change in token balance (smallest units of each token)"
    assert ax.get_title(loc="left") == "change in token balance of alice.near"


def test_each_line_changes_from_its_own_beginning(ax: Any) -> None:
    """Falls and small steps are seen; what is locked and stays so is no line."""
    rows = [*course("a.near", 5 * NEAR, 3 * NEAR), *course("b.near", None, NEAR, NEAR + 1)]
    for row in rows:
        row["locked"] = 4 * NEAR
    plots.history(told(*rows), change=True, ax=ax)
    found = lines(ax)
    assert list(found) == ["a.near", "b.near"]
    assert found["a.near"] == [0.0, -2.0]
    assert found["b.near"][1:] == [0.0, 1e-24]
    assert ax.get_ylabel() == "change in balance (NEAR)"


def test_the_lines_that_changed_most_are_drawn() -> None:
    """A fall counts as a rise does."""
    frame = told(*[row for n in range(9) for row in course(f"a{n}.near", 9 * NEAR, n * NEAR)])
    ax = plots.history(frame, change=True)
    assert list(lines(ax)) == [f"a{n}.near" for n in range(7)]
    assert "lines not drawn: 2" in ax.get_xlabel()


@pytest.mark.parametrize(
    ("step_ns", "ticks"),
    [
        (6 * 10**8, ["00:00:00", "00:00:01", "00:00:02", "00:00:03", "00:00:04", "00:00:05"]),
        (DAY_NS, ["Aug", "03", "05", "07", "09"]),
    ],
)
def test_seconds_are_written_as_a_time_of_day(step_ns: int, ticks: list[str]) -> None:
    """Blocks of a few seconds have whole times below; days have days."""
    rows = [{"balance": 1, "locked": 0, "time": START_NS + n * step_ns} for n in range(10)]
    ax = plots.history(told(*rows))
    ax.figure.canvas.draw()
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ticks


@pytest.mark.parametrize(
    ("rows", "words"),
    [([], ["no readings"]), ([{"status": "no_account"}], ["no known amounts", "1 of 1"])],
)
def test_nothing_to_draw(ax: Any, rows: list[dict[str, Any]], words: list[str]) -> None:
    """A history without amounts says so in place of a drawing."""
    plots.history(told(*rows), ax=ax)
    [text] = ax.texts
    assert all(word in text.get_text() for word in words)


def test_what_is_refused() -> None:
    """Another frame, and a view that was not read, are refused by name."""
    with pytest.raises(InvalidRequestError, match=r"lk\.history"):
        plots.history(build.empty_frame("ft"))
    with pytest.raises(InvalidRequestError, match="which has none") as caught:
        plots.history(build.empty_frame("history"), view="ft")
    assert caught.value.field == "view"
    with pytest.raises(InvalidRequestError, match="accounts"):
        plots.history(told({"balance": 1, "locked": 0}), view="nft")
