"""
The hooks that pandas calls and does not document, and the functions that are patched.

`_cast_pointwise_result`: the dtype of what a function returned for each value. The default makes
u128 of everything that can be read as u128, texts included.
https://github.com/pandas-dev/pandas/issues/33254 (open) and
https://github.com/pandas-dev/pandas/pull/65270, which recommends it to other libraries.

`_values_for_json`: `to_json`. The default passes Python integers, which fail above 64 bits.
https://github.com/pandas-dev/pandas/issues/65047

`_quantile`: `quantile`. The default reads the rounded results as u128, which fails for fractions.
https://github.com/pandas-dev/pandas/pull/44412

`_groupby_op`, `_groupby_quantile`: operations by group. Without `_groupby_op`, pandas loops over
groups and lacks `cumsum` and `rank`. The default `_groupby_quantile` casts to int64.
https://github.com/pandas-dev/pandas/issues/43682 and
https://github.com/pandas-dev/pandas/pull/64831

`_readonly`: true for arrays that pandas lends without a copy. An array must refuse changes
itself. https://github.com/pandas-dev/pandas/issues/58007 (open)

`to_numpy(np.float64, na_value=nan)`: `rolling`, `expanding` and `ewm`, which add up and subtract
floats. Frames also ask for floats, but pass a dtype; Series and Indexes pass `copy`. So the hook
can tell windows apart.
https://github.com/pandas-dev/pandas/issues/40043

Three documented methods are patched, because pandas has no hook for them:

`Series.nlargest` and `Series.nsmallest`, which frames and groups call, too: pandas selects
values with a routine that is compiled for numpy's numbers, and fails on any other array with "No
matching signature found". https://github.com/pandas-dev/pandas/issues/42737 asked for support of
extension arrays, and was closed.

`to_excel` of frames and Series: pandas passes the values to writers that round them to floats. A
warning names the columns. https://github.com/pandas-dev/pandas/issues/24122

One undocumented function of pyarrow is patched: `pandas_compat.get_column_metadata` records the
dtype of every column of decimals as "object", so that pandas would read u128 as Decimals
(`DataFrame.to_parquet`, `to_feather` and all others that convert frames to Arrow). The dtype of an
extension array is not read. https://github.com/pandas-dev/pandas/issues/20612 (open)
"""

from __future__ import annotations

from functools import cache, wraps
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from ledgerkit import user_warnings
from ledgerkit.u128 import casts, decimal_text, groupby, ordering, parsing, planes

if TYPE_CHECKING:
    from ledgerkit.u128.array import U128Array, WideDtype

# numpy's names for any value of 16 or 17 bytes. Without ledgerkit, pandas would refuse a file with
# the names "u128" and "i129"; with these it reads Decimals or texts.
STORED_NAMES = ("V16", "V17")


_WINDOWS = (
    "windows of {} would be computed with floats: cumsum(), cummax() and "
    "[window.sum() for window in column.rolling(3)] are exact; to round, use "
    "astype('float64').rolling(3)"
)


class PandasHooks(ExtensionArray):
    """The methods of `U128Array` that pandas calls and does not document."""

    def _cast_pointwise_result(self: Any, values: Any) -> Any:
        try:
            ints, mask = parsing.read_ints(values)
        except (TypeError, ValueError, OverflowError):
            array = casts.from_results(values)
            return _inferred(values) if array is None else array
        return self.of(planes.signed(ints) if self.signed else ints, mask)

    def _values_for_json(self: Any) -> np.ndarray:
        # Texts, because many JSON parsers read numbers as floats and would lose digits.
        texts = decimal_text.format_texts(self.planes)
        texts[self.mask] = None
        return texts

    def _quantile(self: Any, qs: Any, interpolation: Any) -> Any:
        floats: Any = pd.Series(self.to_numpy(np.float64))
        return floats.quantile(qs, interpolation=interpolation).to_numpy()

    def _groupby_op(self: Any, *, how: str, **options: Any) -> Any:
        return groupby.apply(self, how, options)

    def _groupby_quantile(self: Any, **options: Any) -> np.ndarray:
        return groupby.quantile(self, options)


def is_column(other: object) -> TypeGuard[U128Array]:
    """Return True for an array of u128 or i129."""
    return isinstance(other, PandasHooks)


def _inferred(values: Any) -> Any:
    array = pd.Series(parsing.objects(values), dtype=object).infer_objects().array
    return array.to_numpy() if isinstance(array, pd.arrays.NumpyExtensionArray) else array


def refuse_windows(array: Any) -> None:
    """Raise for values that a window would compute with as floats."""
    if not array.mask.all():
        # pandas replaces a TypeError, a ValueError and a NotImplementedError by one of its own.
        raise FloatingPointError(_WINDOWS.format(array.dtype))


def is_read_only(array: Any) -> bool:
    """Return True for an array that pandas has lent without a copy."""
    return bool(array._readonly)  # noqa: SLF001 - see above


def mark_view(view: Any, array: Any) -> None:
    """Mark a view as read-only if the array is."""
    view._readonly = array._readonly  # noqa: SLF001 - see above


def select_by_rank(array_type: type[U128Array]) -> None:
    """Patch `nlargest` and `nsmallest` to select from arrays of a type by their ranks."""
    for name in ("nlargest", "nsmallest"):
        setattr(pd.Series, name, _selecting_by_rank(getattr(pd.Series, name), array_type))


def _selecting_by_rank(original: Any, array_type: type[U128Array]) -> Any:
    @wraps(original)
    def select(self: Any, n: int = 5, keep: Any = "first") -> Any:
        array = self.array
        if not isinstance(array, array_type):
            return original(self, n, keep)
        ranks = pd.array(ordering.ranks(array.planes), dtype="Int64")
        ranks[array.mask] = pd.NA
        return self.iloc[original(pd.Series(ranks), n, keep).index]

    return select


def warn_of_excel(dtype_class: type[WideDtype]) -> None:
    """Patch `to_excel` of frames and Series to warn of columns that have a dtype."""
    for patched in (pd.DataFrame, pd.Series):
        setattr(patched, "to_excel", _warning_to_excel(patched.to_excel, dtype_class))  # noqa: B010 - a patch


def _warning_to_excel(original: Any, dtype_class: type[WideDtype]) -> Any:
    @wraps(original)
    def to_excel(self: Any, *args: Any, **options: Any) -> None:
        frame = self if isinstance(self, pd.DataFrame) else self.to_frame()
        columns = options.get("columns")
        dtypes = list((frame if columns is None else frame[columns]).dtypes.items())
        if options.get("index", True):
            levels = [frame.index.get_level_values(n) for n in range(frame.index.nlevels)]
            dtypes += [(level.name, level.dtype) for level in levels]
        names = [str(name) for name, dtype in dtypes if isinstance(dtype, dtype_class)]
        if names:
            user_warnings.warn(
                f"Excel files round numbers to 15 digits: {', '.join(names)};"
                " ledgerkit.to_excel writes every digit"
            )
        original(self, *args, **options)

    return to_excel


@cache
def record_dtype(dtype_class: type[WideDtype]) -> None:
    """Patch pyarrow, once, to record a dtype in the metadata of the columns that have it."""
    from pyarrow import pandas_compat

    original = pandas_compat.get_column_metadata

    @wraps(original)
    def get_column_metadata(column: Any, *args: Any, **options: Any) -> dict[str, Any]:
        metadata: dict[str, Any] = original(column, *args, **options)
        if isinstance(column.dtype, dtype_class):
            metadata["numpy_type"] = STORED_NAMES[column.dtype.signed]
        return metadata

    pandas_compat.get_column_metadata = get_column_metadata
