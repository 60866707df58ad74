"""
The use of what pyarrow does not document: the dtype that it records for a column.

`pyarrow.pandas_compat.get_column_metadata`, patched: pyarrow records the dtype of every column of
decimals as "object", so that pandas would read u128 as Decimals (`DataFrame.to_parquet`,
`to_feather` and all others that convert frames to Arrow). The dtype of an extension array has no
say. https://github.com/pandas-dev/pandas/issues/20612 (open)
"""

from __future__ import annotations

from functools import cache, wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ledgerkit.u128.array import U128Dtype

# numpy's name for any value of 16 bytes. Without ledgerkit, pandas would refuse a file with the
# name "u128"; with this one it reads Decimals or texts.
STORED_NAME = "V16"


@cache
def record_dtype(dtype_class: type[U128Dtype]) -> None:
    """Patch pyarrow, once, to record a dtype in the metadata of the columns that have it."""
    from pyarrow import pandas_compat

    original = pandas_compat.get_column_metadata

    @wraps(original)
    def get_column_metadata(column: Any, *args: Any, **options: Any) -> dict[str, Any]:
        metadata: dict[str, Any] = original(column, *args, **options)
        if isinstance(column.dtype, dtype_class):
            metadata["numpy_type"] = STORED_NAME
        return metadata

    pandas_compat.get_column_metadata = get_column_metadata
