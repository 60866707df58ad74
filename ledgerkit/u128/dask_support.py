"""What Dask has to know before it computes with u128: importing this module tells it."""

from __future__ import annotations

import numpy as np

from ledgerkit.u128 import arrow
from ledgerkit.u128.array import U128Array, U128Dtype

_extensions = arrow.library("dask.dataframe.extensions")


@_extensions.make_array_nonempty.register(U128Dtype)  # type: ignore[untyped-decorator]  # Dask's own
def _two_rows(_: U128Dtype) -> U128Array:
    """Give the rows by which Dask learns what type a result has."""
    return U128Array(np.zeros(2, dtype=np.uint64), np.ones(2, dtype=np.uint64))


@_extensions.make_scalar.register(U128Dtype)  # type: ignore[untyped-decorator]  # Dask's own
def _one_value(_: U128Dtype) -> int:
    """Give the value by which Dask learns what type a result has."""
    return 1
