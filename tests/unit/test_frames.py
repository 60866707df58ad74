"""Frames keep their promise: columns, order and dtypes, whatever the rows."""

from __future__ import annotations

import io
import json
import pickle
import pkgutil
import re
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerkit as lk
from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.frames import build
from ledgerkit.frames.schemas import SCHEMAS, Column

U128_MAX = 2**128 - 1
U128 = st.integers(0, U128_MAX).map(str)
DTYPES = {
    "str": "str",
    "u128": "u128",
    "i129": "i129",
    "Int64": "Int64",
    "UInt64": "UInt64",
    "boolean": "boolean",
    "bool": "bool",
    "float64": "float64",
    "Float64": "Float64",
    "time": "datetime64[ns, UTC]",
    "object": "object",
}
SOME: dict[str, list[Any]] = {
    "str": ["a", ""],
    "u128": [U128_MAX, 0],
    "i129": [-U128_MAX, 0],
    "Int64": [2**63 - 1, -(2**63)],
    "UInt64": [2**64 - 1, 0],
    "boolean": [True, False],
    "bool": [True, False],
    "float64": [0.5, 1e300],
    "Float64": [0.5, 1e300],
    "time": [1771106600329561530, 0],
    "object": [["x"], {"k": 1}],
}
MISSING_OF = {"bool": [False, False]}


def columns(name: str, values: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Give values for each column of a schema, by its dtype."""
    return {column.name: values[column.dtype] for column in SCHEMAS[name]}


def ft_frame(*balances: str | None) -> pd.DataFrame:
    """Frame balances as the wire sends them."""
    tokens = [
        {"contract_id": f"t{n}.near", "balance": balance, "last_update_block_height": n}
        for n, balance in enumerate(balances)
    ]
    return lk.read_response(json.dumps({"account_id": "a.near", "tokens": tokens}).encode(), "ft")


@given(st.lists(U128, min_size=1, max_size=20))
def test_u128_from_wire_to_csv_and_back(texts: list[str]) -> None:
    """Any u128 text goes from wire to frame to CSV and back without loss."""
    frame = ft_frame(*texts)
    read = pd.read_csv(io.StringIO(frame.to_csv(index=False)), dtype="str")
    assert frame["balance"].tolist() == [int(text) for text in texts]
    assert read["balance"].tolist() == texts


@given(st.lists(U128, max_size=20))
def test_sums_never_wrap(texts: list[str]) -> None:
    """The sum of a column is the sum of its integers, or an error past 2^128-1."""
    balance, total = ft_frame(*texts)["balance"], sum(int(text) for text in texts)
    if total <= U128_MAX:
        assert balance.sum() == total
    else:
        with pytest.raises(OverflowError, match="does not fit in u128"):
            balance.sum()
    assert balance.astype(object).sum() == total


def test_the_largest_amounts_sum_exactly() -> None:
    """Of 2^128-1 and 0 the sum is 2^128-1, in a frame, by group and over a gap."""
    frame = ft_frame(str(U128_MAX), "0")
    assert frame["balance"].sum() == 340282366920938463463374607431768211455
    by_group = frame.groupby("account_id")["balance"].sum()
    assert by_group.dtype == "u128"
    assert by_group.tolist() == [340282366920938463463374607431768211455]
    gap = ft_frame(str(U128_MAX), None, "0")["balance"]
    assert gap.sum() == gap.dropna().sum() == U128_MAX


def test_sums_past_the_largest_amount_are_refused() -> None:
    """Twice 2^128-1 is an error, in a frame, by group and over a gap; as Python ints it is not."""
    frame = ft_frame(str(U128_MAX), None, str(U128_MAX))
    for too_much in (
        frame["balance"].sum,
        frame["balance"].cumsum,
        frame.groupby("account_id")["balance"].sum,
    ):
        with pytest.raises(OverflowError, match=r"does not fit in u128.* astype\(object\)"):
            too_much()
    exact = frame["balance"].dropna().astype(object)
    assert exact.sum() == 680564733841876926926749214863536422910
    by_group = exact.groupby(frame["account_id"]).sum()
    assert by_group.tolist() == [680564733841876926926749214863536422910]


def test_differences_are_signed() -> None:
    """A smaller balance minus a larger one is negative, not wrapped."""
    balance = ft_frame("0", str(U128_MAX))["balance"]
    assert (balance - balance.iloc[1]).tolist() == [-U128_MAX, 0]
    assert (balance.iloc[0] - balance).tolist() == [0, -U128_MAX]
    assert balance.diff().tolist()[1] == U128_MAX


def test_dtypes_are_as_declared() -> None:
    """Empty, full and all-missing frames have the declared columns and dtypes."""
    for name in SCHEMAS:
        declared = [(column.name, DTYPES[column.dtype]) for column in SCHEMAS[name]]
        missing = {word: MISSING_OF.get(word, [None, None]) for word in DTYPES}
        for frame in (
            build.empty_frame(name),
            build.build_frame(name, columns(name, SOME)),
            build.build_frame(name, columns(name, missing)),
        ):
            found = [(column, str(dtype)) for column, dtype in frame.dtypes.items()]
            assert found == declared
            assert isinstance(frame.index, pd.RangeIndex)


def test_values_come_back_as_they_went_in() -> None:
    """No dtype changes a value on its way through a frame."""
    for name in SCHEMAS:
        frame = build.build_frame(name, columns(name, SOME))
        for column in SCHEMAS[name]:
            values = frame[column.name].tolist()
            if column.dtype == "time":
                values = [value.as_unit("ns").value for value in values]
            assert values == SOME[column.dtype]


def test_missing_values_are_missing() -> None:
    """None is missing in each dtype, and never zero, false or the word None."""
    for name in SCHEMAS:
        nullable = [c.name for c in SCHEMAS[name] if c.dtype not in ("bool", "object")]
        missing = {word: MISSING_OF.get(word, [None, None]) for word in DTYPES}
        frame = build.build_frame(name, columns(name, missing))
        assert frame[nullable].isna().all(axis=None) == True  # noqa: E712 - of a numpy type


def test_text_has_one_storage() -> None:
    """Text does not depend on whether pyarrow is installed."""
    dtype: Any = build.empty_frame("ft")["contract_id"].dtype
    assert (dtype.storage, str(dtype)) == ("python", "str")


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("Int64", 2**63), ("Int64", -(2**63) - 1), ("UInt64", 2**64), ("UInt64", -1)],
)
def test_integers_beyond_their_column(dtype: str, value: int) -> None:
    """An integer that its column cannot hold is an error by name and row, never wrapped."""
    view, column = {"Int64": ("nft", "last_update_block_height"), "UInt64": ("keys", "nonce")}[
        dtype
    ]
    given_ = columns(view, SOME) | {column: [1, value]}
    with pytest.raises(DecodeError) as caught:
        build.build_frame(view, given_)
    assert caught.value.path == f"{view}.{column}[1]"
    assert str(value) in str(caught.value)


def test_a_height_beyond_int64_on_the_wire() -> None:
    """The same from the wire on."""
    tokens = [{"contract_id": "t.near", "balance": "1", "last_update_block_height": 2**63}]
    body = json.dumps({"account_id": "a.near", "tokens": tokens}).encode()
    with pytest.raises(DecodeError) as caught:
        lk.read_response(body, "ft")
    assert caught.value.path == "ft.last_update_block_height[0]"


def test_a_time_beyond_its_column() -> None:
    """A time past the year 2262 does not wrap around."""
    with pytest.raises(DecodeError):
        build.build_frame("blocks", columns("blocks", SOME) | {"time": [0, 2**63]})


def test_integers_never_pass_through_floats() -> None:
    """Odd integers above 2^53 beside a gap stay odd."""
    body = columns("nft", SOME) | {"last_update_block_height": [2**53 + 1, None]}
    heights = build.build_frame("nft", body)["last_update_block_height"]
    assert heights.iloc[0] == 9007199254740993
    assert heights.iloc[1] is pd.NA


def test_provenance_travels_along() -> None:
    """Attributes given to a frame are on it, and survive pickling."""
    frame = build.build_frame("nft", columns("nft", SOME), attrs={"network": "lab"})
    assert frame.attrs == {"network": "lab", "schema": "nft"}
    assert pickle.loads(pickle.dumps(frame)).attrs == frame.attrs  # noqa: S301 - our own


def test_schema_shows_the_promise() -> None:
    """Each frame's schema has a line a column, each with a meaning."""
    for name in SCHEMAS:
        shown = lk.schema(name)
        assert list(shown.columns) == ["name", "dtype", "unit", "meaning"]
        assert shown["name"].tolist() == [column.name for column in SCHEMAS[name]]
        assert set(shown["dtype"]) <= set(DTYPES)
        assert (shown["meaning"] != "").all()
        assert not shown.isna().any(axis=None)


def test_names_in_meanings_can_be_imported() -> None:
    """Each name of ledgerkit that explains the values of a column is public, and explains them."""
    texts = [column.meaning for columns in SCHEMAS.values() for column in columns]
    names = {name for text in texts for name in re.findall(r"`(ledgerkit[\w.]+)`", text)}
    assert names >= {"ledgerkit.archiving.OUTCOMES", "ledgerkit.reconciling.CAUSES"}
    for name in names:
        explanations = pkgutil.resolve_name(name)
        assert explanations
        assert all(explanations.values())


def test_amounts_tell_their_unit() -> None:
    """No exact amount is without a unit."""
    declared = [c for fields in SCHEMAS.values() for c in fields if c.dtype == "u128"]
    assert len(declared) > 20
    assert [column for column in declared if not column.unit] == []
    assert all(isinstance(column, Column) for column in declared)


def test_no_such_schema() -> None:
    """A frame that does not exist is refused, with a list of those that do."""
    with pytest.raises(InvalidRequestError) as caught:
        lk.schema("fts")
    assert caught.value.field == "name"
    assert "accounts_of" in str(caught.value)
