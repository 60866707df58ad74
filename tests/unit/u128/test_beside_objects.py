"""What pandas computes with amounts, beside what it computes with Python's integers as objects."""

from __future__ import annotations

import math
import random
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

TOP = 2**128 - 1
LOWEST = {"u128": 0, "i129": -TOP}
BOTH = pytest.mark.parametrize("dtype", LOWEST)
FRAME = pd.DataFrame(
    {
        "k": list("aabba"),
        "j": [1, 2, 1, 2, 1],
        "v": 0,
        "w": 0,
        "n": [1, 2, 3, 4, 5],
        "t": pd.date_range("2026-01-01", periods=5, freq="12h", tz="UTC"),
    }
)

SAMPLE = [5, 3, None, 1, 3, 1, 0, 2, 7, 1]

# The sum of five of them fits.
LARGE = [0, 1, 2, 3, 2**53 + 1, 2**63, 2**64 - 1, 2**64, 10**24, 2**125]


def read_operations() -> dict[str, dict[str, Any]]:
    """Read the compiled statements of each operation, by section."""
    sections: dict[str, dict[str, Any]] = {}
    for line in Path(__file__).with_name("operations.txt").read_text().splitlines():
        if line.startswith("["):
            operations = sections[line.strip("[]")] = {}
        elif line and not line.startswith("#"):
            *statements, result = line.split("; ")
            compiled = compile("; ".join(statements), line, "exec")
            operations[line] = compiled, compile(result, line, "eval")
    return sections


OPERATIONS = read_operations()


def compute(operation: Any, values: list[Any], dtype: str) -> Any:
    listed = [pd.NA if value is None else value for value in values]
    frame = FRAME.assign(v=pd.Series(listed[:5], dtype=dtype), w=pd.Series(listed[5:], dtype=dtype))
    names = {"d": frame, "pd": pd, "np": np, "Decimal": Decimal}
    statements, result = operation
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of pandas for objects
        exec(statements, names)  # noqa: S102 - lines of the file beside
        return plain(eval(result, names))  # noqa: S307 - as above


def plain(result: Any) -> Any:
    """Return the labels and values of a result as lists; a missing value is None."""
    if isinstance(result, pd.DataFrame):
        columns = [plain(result.iloc[:, position]) for position in range(result.shape[1])]
        return [plain(result.columns), columns]
    if isinstance(result, pd.Series):
        return [plain(result.index), plain(list(result))]
    if isinstance(result, dict):
        return {name: plain(value) for name, value in result.items()}
    if pd.api.types.is_list_like(result):
        return [plain(value) for value in result]
    if isinstance(result, np.generic):
        result = result.item()
    return None if result is pd.NA or result is pd.NaT or result != result else result  # noqa: PLR0124 - NaN


def agree(result: Any, expected: Any) -> bool:
    """Return True for equal values; in place of a float, also for an integer that is close."""
    if isinstance(expected, list) and isinstance(result, list):
        return len(result) == len(expected) and all(map(agree, result, expected))
    if isinstance(expected, dict) and isinstance(result, dict):
        return list(result) == list(expected) and all(
            map(agree, result.values(), expected.values())
        )
    if isinstance(expected, float) and isinstance(result, int | float):
        return math.isclose(result, expected, rel_tol=1e-9, abs_tol=1e-9)
    return type(result) is type(expected) and bool(result == expected)


def is_outside(result: Any, lowest: int) -> bool:
    """Return True if a value of a result does not fit."""
    if isinstance(result, list):
        return any(is_outside(value, lowest) for value in result)
    return isinstance(result, int) and not lowest <= result <= TOP


def check(line: str, oracle: str, values: list[Any], dtype: str) -> bool:
    """Compare an operation with that on other columns; return False if that one fails."""
    operation = OPERATIONS[oracle][line]
    try:
        expected = compute(operation, values, oracle)
    except (TypeError, ValueError, ArithmeticError):
        return False
    try:
        result = compute(operation, values, dtype)
    except OverflowError:
        assert is_outside(expected, LOWEST[dtype]), line
        return True
    assert agree(result, expected), (line, result, expected)
    return True


@BOTH
@pytest.mark.parametrize("oracle", ["object", "Int64"])
def test_each_operation_has_a_result(oracle, dtype):
    """No operation of the list is refused for ordinary values, and no comparison is empty."""
    positive = [value or 3 for value in SAMPLE]
    for line in OPERATIONS[oracle]:
        compared = [check(line, oracle, values, dtype) for values in (SAMPLE, positive)]
        assert any(compared), line
    assert sum(len(operations) for operations in OPERATIONS.values()) > 330


def random_values(seed: int, numbers: list[int], *, signed: bool) -> list[Any]:
    """Return the values of two columns, of which the first may have missing ones."""
    # A seed for each case, because drawing ten numbers would take as long as the operation.
    draw = random.Random(seed)  # noqa: S311 - values of tests
    values = [draw.choice([*numbers, draw.randrange(max(numbers))]) for _ in range(10)]
    if signed:
        values = [value * draw.choice([1, -1]) for value in values]
    gaps = draw.sample(range(5), draw.randrange(4))
    return [None if row in gaps else value for row, value in enumerate(values)]


def compare_random_cases(oracle: str, dtype: str, numbers: list[int], cases: int) -> None:
    """Compare random operations of a section on random columns."""

    @settings(max_examples=cases)
    @given(line=st.sampled_from(list(OPERATIONS[oracle])), seed=st.integers(0, 2**64))
    def compare(line: str, seed: int) -> None:
        check(line, oracle, random_values(seed, numbers, signed=dtype == "i129"), dtype)

    compare()


@BOTH
def test_operations_agree_with_objects(dtype):
    """Each operation gives the values that it gives for Python's integers, or names an overflow."""
    compare_random_cases("object", dtype, LARGE, 4400)


@BOTH
def test_operations_agree_with_int64(dtype):
    """Where objects have no answer or another one for missing values, pandas agrees with Int64."""
    compare_random_cases("Int64", dtype, list(range(10)), 600)


@BOTH
def test_what_would_be_rounded_is_refused(dtype):
    """An operation whose result would be rounded is an error that names a way out."""
    for operation in OPERATIONS["refused"].values():
        with pytest.raises((TypeError, ArithmeticError, NotImplementedError), match="astype"):
            compute(operation, SAMPLE, dtype)
