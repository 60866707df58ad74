"""The registration of u128 with Dask, which importing this module does."""

from __future__ import annotations

import numpy as np

from ledgerkit.extras import require
from ledgerkit.u128.array import U128Array, U128Dtype

_extensions = require("dask.dataframe.extensions", "dask", "A Dask frame")


@_extensions.make_array_nonempty.register(U128Dtype)  # type: ignore[untyped-decorator]  # Dask's own
def _sample_rows(_: U128Dtype) -> U128Array:
    """Return sample rows, with which Dask infers the types of results."""
    return U128Array(np.zeros(2, dtype=np.uint64), np.ones(2, dtype=np.uint64))


@_extensions.make_scalar.register(U128Dtype)  # type: ignore[untyped-decorator]  # Dask's own
def _sample_value(_: U128Dtype) -> int:
    """Return a sample value, with which Dask infers the types of results."""
    return 1
