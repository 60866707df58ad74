"""
The changes that ledgerkit makes to pandas and pyarrow; other dtypes keep their own code.

`SelectNSeries.compute` (`Series.nlargest`, `Series.nsmallest` and those of frames): pandas selects
values with a routine that is compiled for numpy's numbers, and fails on any other array with "No
matching signature found". Support for extension arrays was requested in
https://github.com/pandas-dev/pandas/issues/42737, which was closed; pandas 3.1 has no hook.

`DataFrame.to_excel` and `Series.to_excel`: pandas passes the values to writers that round them to
floats. A warning names the columns.

`pyarrow.pandas_compat.get_column_metadata` (`DataFrame.to_parquet`, `to_feather` and all others
that convert frames to Arrow): pyarrow records the dtype of every column of decimals as "object",
so that pandas would read u128 as Decimals. pyarrow 26 has no hook.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit import user_warnings
from ledgerkit.u128 import ordering

if TYPE_CHECKING:
    from ledgerkit.u128.array import U128Array, U128Dtype

# numpy's name for any value of 16 bytes. Without ledgerkit, pandas would refuse a file with the
# name "u128"; with this one it reads Decimals or texts.
STORED_NAME = "V16"


def select_by_rank(array_type: type[U128Array]) -> None:
    """Patch `SelectNSeries.compute`, once, to select from arrays of a type by their ranks."""
    from pandas.core.methods.selectn import (  # type: ignore[import-not-found]  # not in the stubs
        SelectNSeries,
    )

    original = SelectNSeries.compute
    if hasattr(original, "__wrapped__"):
        return

    @wraps(original)
    def compute(self: Any, method: str) -> Any:
        column = self.obj
        if not isinstance(column.array, array_type):
            return original(self, method)
        ranks = pd.array(ordering.ranks(column.array.planes), dtype="Int64")
        ranks[column.array.mask] = pd.NA
        selected = original(type(self)(pd.Series(ranks), n=self.n, keep=self.keep), method)
        return column.iloc[selected.index]

    SelectNSeries.compute = compute


def warn_of_excel(dtype_class: type[U128Dtype]) -> None:
    """Patch `to_excel` of frames and Series, once, to warn of columns that have a dtype."""
    from pandas.core.generic import NDFrame

    original = NDFrame.to_excel
    if hasattr(original, "__wrapped__"):
        return

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

    NDFrame.to_excel = to_excel  # type: ignore[method-assign, misc]  # this is the patch


def record_dtype(dtype_class: type[U128Dtype]) -> None:
    """Patch pyarrow, once, to record a dtype in the metadata of the columns that have it."""
    from pyarrow import pandas_compat

    original = pandas_compat.get_column_metadata
    if hasattr(original, "__wrapped__"):
        return

    @wraps(original)
    def get_column_metadata(column: Any, *args: Any, **options: Any) -> dict[str, Any]:
        metadata: dict[str, Any] = original(column, *args, **options)
        if isinstance(column.dtype, dtype_class):
            metadata["numpy_type"] = STORED_NAME
        return metadata

    pandas_compat.get_column_metadata = get_column_metadata
