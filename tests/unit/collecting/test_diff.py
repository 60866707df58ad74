"""`diff`: what changed between two collections, against a plain-Python reference."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit.collecting import diff
from ledgerkit.errors import FileError, InvalidRequestError
from ledgerkit.frames import arrow_tables, build
from tests.unit.collecting.builders import (
    Balance,
    Holdings,
    status_columns,
    view_columns,
    write_collection,
    write_tables,
)

BIG = 10**38 + 7
TOP = 2**128 - 1
NONE = "no_visible_staking_position"


def records(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """List the rows of a frame as Python values, None where one is missing."""
    plain = frame.astype(object)
    return [tuple(row) for row in plain.where(plain.notna(), None).itertuples(index=False)]


def of_ft(tmp_path: Path, before: dict[str, Balance], after: dict[str, Balance]) -> pd.DataFrame:
    was = write_collection(tmp_path / "before", {"a.near": Holdings(ft=before)})
    now = write_collection(tmp_path / "after", {"a.near": Holdings(ft=after)})
    return lk.diff(was, now).changes


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (None, (5, "ok"), ("entered", 0, 5, 5, "not_listed", "ok")),
        ((0, "ok"), (5, "ok"), ("entered", 0, 5, 5, "ok", "ok")),
        ((5, "ok"), (0, "ok"), ("left", 5, 0, -5, "ok", "ok")),
        ((5, "ok"), None, ("left", 5, 0, -5, "ok", "not_listed")),
        ((5, "ok"), (7, "ok"), ("grew", 5, 7, 2, "ok", "ok")),
        ((7, "ok"), (5, "ok"), ("shrank", 7, 5, -2, "ok", "ok")),
        ((5, "ok"), (BIG, "ok"), ("grew", 5, BIG, BIG - 5, "ok", "ok")),
        ((BIG, "ok"), (10**38 - 1, "ok"), ("shrank", BIG, 10**38 - 1, -8, "ok", "ok")),
        ((BIG, "ok"), (BIG + 1, "ok"), ("grew", BIG, BIG + 1, 1, "ok", "ok")),
        ((TOP, "ok"), None, ("left", TOP, 0, -TOP, "ok", "not_listed")),
        (None, (2**127, "ok"), ("entered", 0, 2**127, 2**127, "not_listed", "ok")),
        ((5, "ok"), (None, "pending"), ("became_unknown", 5, None, None, "ok", "pending")),
        ((None, "broken"), (5, "ok"), ("became_known", None, 5, None, "broken", "ok")),
        (None, (None, "broken"), ("became_unknown", 0, None, None, "not_listed", "broken")),
        ((None, "pending"), None, ("became_known", None, 0, None, "pending", "not_listed")),
        ((5, "ok"), (5, "ok"), None),
        ((BIG, "ok"), (BIG, "ok"), None),
        ((0, "ok"), None, None),
        (None, (0, "ok"), None),
        ((None, "pending"), (None, "broken"), None),
    ],
)
def test_what_a_change_is_called(tmp_path, before, after, told):
    """Each pair of balances has its word, and a difference exact to the last unit."""
    pair = [{} if one is None else {"t.near": one} for one in (before, after)]
    assert records(of_ft(tmp_path, *pair)) == (
        [] if told is None else [("a.near", "t.near", *told)]
    )


def test_differences_are_python_integers(tmp_path):
    """A difference has a sign, which no amount has."""
    changes = of_ft(tmp_path, {"t.near": (TOP, "ok")}, {"t.near": (1, "ok"), "u.near": (3, "ok")})
    assert [type(one) for one in changes["difference"]] == [int, int]
    assert sum(changes["difference"]) == 4 - TOP


def test_the_frames_are_as_declared_with_and_without_rows(tmp_path):
    """Columns and dtypes are those that `schema` tells, for no change as for some."""
    some = {"a.near": Holdings((1, "ok"), {"t.near": (BIG, "ok")}, ["n.near"], ["p.near"], "mixed")}
    write_collection(tmp_path / "one", some)
    write_collection(tmp_path / "other", {"a.near": Holdings()})
    for view in ("accounts", "ft", "nft", "staking", "exposure"):
        full = lk.diff(tmp_path / "one", tmp_path / "other", view).changes
        empty = lk.diff(tmp_path / "one", tmp_path / "one", view).changes
        assert list(full.columns) == lk.schema(f"diff_{view}")["name"].tolist()
        assert len(full) == 1
        assert len(empty) == 0
        pd.testing.assert_series_equal(full.dtypes, empty.dtypes)


def test_collections_pools_and_classes(tmp_path):
    """Where there are no amounts it is told what entered, left, and changed its class."""
    was = write_collection(
        tmp_path / "before",
        {
            "a.near": Holdings(
                nft=["n.near", "m.near"], staking=["p.near"], exposure="direct_only"
            ),
            "b.near": Holdings(),
            "c.near": Holdings(exposure="mixed"),
            "d.near": Holdings(exposure="mixed"),
        },
    )
    now = write_collection(
        tmp_path / "after",
        {
            "d.near": Holdings(exposure="mixed"),
            "c.near": Holdings(),
            "b.near": Holdings(staking=["q.near"], exposure="direct_only"),
            "a.near": Holdings(nft=["m.near", "o.near"], staking=["p.near"], exposure="mixed"),
        },
    )
    assert records(lk.diff(was, now, "nft").changes) == [
        ("a.near", "n.near", None, "left"),
        ("a.near", "o.near", None, "entered"),
    ]
    assert records(lk.diff(was, now, "staking").changes) == [("b.near", "q.near", "entered")]
    assert records(lk.diff(was, now, "exposure").changes) == [
        ("a.near", "changed", "direct_only", "mixed"),
        ("b.near", "entered", NONE, "direct_only"),
        ("c.near", "left", "mixed", NONE),
    ]


def test_tokens_of_one_collection_are_compared_one_by_one(tmp_path):
    """Two tokens of a collection are two holdings: one of them may leave, and another enter."""
    tokens = [[("n.near", "1"), ("n.near", "2")], [("n.near", "2"), ("n.near", "3")]]
    before, after = (
        write_collection(tmp_path / str(at), {"a.near": Holdings(nft=[*listed, "m.near"])})
        for at, listed in enumerate(tokens)
    )

    found = lk.diff(before, after, "nft")

    assert found.n_compared == 1
    assert records(found.changes) == [
        ("a.near", "n.near", "1", "left"),
        ("a.near", "n.near", "3", "entered"),
    ]


def test_an_account_that_is_not_indexed_any_more_lost_nothing_known(tmp_path):
    """The indexer's silence about an account is no loss of its balance."""
    was = write_collection(
        tmp_path / "before", {"a.near": Holdings((9, "ok")), "b.near": Holdings((9, "ok"))}
    )
    now = write_collection(
        tmp_path / "after",
        {"a.near": Holdings((None, "not_indexed")), "b.near": Holdings((4, "ok"))},
    )
    assert records(lk.diff(was, now, "accounts").changes) == [
        ("a.near", "became_unknown", 9, None, None, "ok", "not_indexed"),
        ("b.near", "shrank", 9, 4, -5, "ok", "ok"),
    ]


def test_an_account_that_is_not_indexed_any_more_left_no_class(tmp_path):
    """Whether it has a position is unknown: the class changed, and nobody entered or left."""
    unknown = Holdings((None, "not_indexed"))
    direct = Holdings(exposure="direct_only")
    was = write_collection(
        tmp_path / "before", {"a.near": direct, "b.near": Holdings(), "c.near": unknown}
    )
    now = write_collection(
        tmp_path / "after", {"a.near": unknown, "b.near": unknown, "c.near": direct}
    )
    assert records(lk.diff(was, now, "exposure").changes) == [
        ("a.near", "changed", "direct_only", "not_indexed"),
        ("b.near", "changed", NONE, "not_indexed"),
        ("c.near", "changed", "not_indexed", "direct_only"),
    ]


def test_who_was_not_asked_lost_nothing(tmp_path):
    """Accounts without an answer in both are listed with the reason, and not compared."""
    rich = Holdings(ft={"t.near": (5, "ok")})
    was = write_collection(
        tmp_path / "before",
        {"both.near": rich, "lost.near": rich, "gone.near": rich, "ill.near": None},
    )
    now = write_collection(
        tmp_path / "after",
        {"both.near": Holdings(), "lost.near": None, "ill.near": None, "new.near": rich},
    )
    found = lk.diff(was, now)
    assert records(found.changes) == [("both.near", "t.near", "left", 5, 0, -5, "ok", "not_listed")]
    assert records(found.not_compared) == [
        ("gone.near", "answered", "absent"),
        ("ill.near", "failed", "failed"),
        ("lost.near", "answered", "failed"),
        ("new.near", "absent", "answered"),
    ]
    assert found.n_compared == 1
    assert repr(found) == "<Diff of ft: 1 changes of 1 accounts, 4 not compared>"
    summary = found.summary()
    assert dict(zip(summary["change"], summary["n_rows"], strict=True)) == {
        "entered": 0,
        "left": 1,
        "grew": 0,
        "shrank": 0,
        "became_known": 0,
        "became_unknown": 0,
    }
    assert (summary.attrs["n_compared"], summary.attrs["n_not_compared"]) == (1, 4)


def test_the_frames_name_the_network(tmp_path):
    """Each frame of a comparison names the network that both collections were read from."""
    collection = write_collection(tmp_path / "before", {"both.near": Holdings()})
    comparison = lk.diff(collection, collection)
    frames = (comparison.changes, comparison.not_compared, comparison.summary())
    network = collection.network
    assert [frame.attrs["network"] for frame in frames] == [network] * 3
    assert all(repr(lk.human(frame)).endswith(f"network: {network}") for frame in frames)


def test_a_token_told_twice_is_not_compared(tmp_path):
    """Of two balances of one token nobody knows which is right, so nothing is said."""
    was = write_collection(tmp_path / "before", {"a.near": Holdings(ft={"t.near": (1, "ok")})})
    write_collection(tmp_path / "after", {})
    told = view_columns({"a.near": Holdings(ft={"t.near": (5, "ok")})})["ft"]
    twice = {name: values * 2 for name, values in told.items()} | {"balance": [5, 7]}
    made = status_columns({0: "a.near"}, {})["subjects"]
    tables = {
        "ft": arrow_tables.of_frame("ft", build.build_frame("ft", twice)),
        "subjects": arrow_tables.of_frame("subjects", build.build_frame("collected", made)),
    }
    write_tables(tmp_path / "after", {0: ("a.near", "ok")}, tables)
    found = lk.diff(was, tmp_path / "after")
    assert found.changes.empty
    assert records(found.not_compared) == [("a.near", "answered", "unclear")]


def test_what_cannot_be_compared_is_refused(tmp_path):
    """Another network, other liquid tokens, a view that is not there, and no collection."""
    one = write_collection(tmp_path / "one", {"a.near": Holdings()})
    other = write_collection(tmp_path / "other", {"a.near": Holdings()}, network="elsewhere")
    liquid = write_collection(tmp_path / "liquid", {"a.near": Holdings()}, liquid_tokens=["l.near"])
    narrow = write_collection(tmp_path / "narrow", {"a.near": Holdings()}, views=("ft",))
    refused: list[tuple[Any, str, str]] = [
        ((one, other), "ft", "network is lab before and elsewhere after"),
        ((one, liquid), "exposure", "liquid_tokens is [] before and ['l.near'] after"),
        ((one, narrow), "nft", "a view of after, which has ft"),
        ((one, tmp_path / "nothing"), "ft", "is not a collection"),
        ((one, one), "errors", "one of accounts, ft"),
    ]
    for (before, after), view, words in refused:
        with pytest.raises(InvalidRequestError) as caught:
            lk.diff(before, after, view)
        assert words in str(caught.value)
    assert lk.diff(one, liquid, "ft").changes.empty
    assert lk.diff(one, narrow, "ft").changes.empty


def test_what_duckdb_cannot_do_is_an_error_of_ours(tmp_path, monkeypatch):
    """Where memory and disk do not suffice, a FileError says so; nothing is left behind."""
    held = {f"a{n}.near": Holdings(ft={"t.near": (n, "ok")}) for n in range(50)}
    was = write_collection(tmp_path / "before", held)
    (tmp_path / "spilled").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spilled"))
    monkeypatch.setattr(diff, "_LIMITS", {"memory_limit": "1KB", "threads": "1"})
    with pytest.raises(FileError, match="Could not compare the collections: "):
        lk.diff(was, was)
    assert list((tmp_path / "spilled").iterdir()) == []


# Against a reference ----------------------------------------------------------------------

AMOUNTS = st.one_of(
    st.sampled_from([0, 1, 2**64, 2**127, 10**38 - 1, 10**38, BIG, TOP]), st.integers(0, TOP)
)
TOLD = st.one_of(
    st.tuples(AMOUNTS, st.just("ok")),
    st.tuples(st.none(), st.sampled_from(["pending", "broken"])),
)
TOKENS = st.dictionaries(st.sampled_from(["t.near", "u.near", "v.near"]), TOLD)
ACCOUNTS = st.dictionaries(
    st.sampled_from(["a.near", "b.near", "c.near", "d.near"]), st.none() | TOKENS
)


def word(was: int | None, now: int | None) -> str | None:
    if was is None or now is None:
        return None if was == now else ("became_known" if was is None else "became_unknown")
    if was == now:
        return None
    if 0 in (was, now):
        return "left" if now == 0 else "entered"
    return "grew" if now > was else "shrank"


def reference(before: Any, after: Any) -> list[tuple[Any, ...]]:
    found = []
    for who in sorted(set(before) & set(after)):
        if before[who] is None or after[who] is None:
            continue
        for what in sorted(set(before[who]) | set(after[who])):
            (was, first), (now, last) = (
                side[who].get(what, (0, "not_listed")) for side in (before, after)
            )
            if change := word(was, now):
                apart = None if None in (was, now) else now - was
                found.append((who, what, change, was, now, apart, first, last))
    return found


@settings(max_examples=20)
@given(ACCOUNTS, ACCOUNTS, st.integers(1, 3))
@example({"a.near": {"t.near": (BIG, "ok")}}, {"a.near": {"t.near": (BIG + 1, "ok")}}, 1)
@example({}, {}, 1)
def test_any_two_collections_are_compared_as_in_plain_python(before, after, size):
    """Whatever two collections hold, in however many files, the changes are the reference's."""
    with tempfile.TemporaryDirectory() as name:
        held = [
            {who: None if ft is None else Holdings(ft=ft) for who, ft in side.items()}
            for side in (before, after)
        ]
        was = write_collection(Path(name) / "before", held[0], part_size=size)
        now = write_collection(Path(name) / "after", held[1], part_size=2)
        found = lk.diff(was, now)
    assert records(found.changes) == reference(before, after)
    asked = set(before) | set(after)
    both = {who for who in asked if before.get(who) is not None and after.get(who) is not None}
    assert found.n_compared == len(both)
    assert found.not_compared["account_id"].tolist() == sorted(asked - both)
