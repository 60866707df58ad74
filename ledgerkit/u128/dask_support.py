"""The registration of u128 and i129 with Dask, which importing this module does."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ledgerkit.extras import require
from ledgerkit.u128 import arrow
from ledgerkit.u128.array import I129Dtype, U128Array, U128Dtype, WideDtype

_extensions = require("dask.dataframe.extensions", "dask", "A Dask frame")
_shuffled = require("dask.dataframe.dispatch", "dask", "A Dask frame").to_pyarrow_table_dispatch
_to_table = _shuffled.dispatch(pd.DataFrame)


@_extensions.make_array_nonempty.register((U128Dtype, I129Dtype))  # type: ignore[untyped-decorator]  # Dask's own
def _sample_rows(dtype: Any) -> Any:
    return pd.array([1, 1], dtype=dtype)


@_extensions.make_scalar.register((U128Dtype, I129Dtype))  # type: ignore[untyped-decorator]  # Dask's own
def _sample_value(_: WideDtype) -> int:
    return 1


class _Shuffled(U128Array):
    """Amounts on the way between workers: decimals that hold every value."""

    def __arrow_array__(self, type: Any = None) -> Any:  # noqa: A002 - pyarrow names it
        return super().__arrow_array__(arrow.every_value() if type is None else type)


class _ShuffledSigned(_Shuffled):
    signed = True


@_shuffled.register(pd.DataFrame)  # type: ignore[untyped-decorator]  # Dask's own
def _to_shuffled_table(frame: pd.DataFrame, **options: Any) -> Any:
    """Convert a part of a frame to the Arrow table that a worker sends to others."""
    frame = frame.copy(deep=False)
    for position, dtype in enumerate(frame.dtypes):
        if isinstance(dtype, WideDtype):
            array: Any = frame.iloc[:, position].array
            kind = _ShuffledSigned if dtype.signed else _Shuffled
            frame.isetitem(position, kind.of(array.planes, array.mask))
    return _to_table(frame, **options)
