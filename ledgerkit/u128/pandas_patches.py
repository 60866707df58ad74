"""
`nlargest` and `nsmallest` for u128, which pandas offers no hook for.

pandas picks values with a routine that knows numpy's numbers only, and would say "No
matching signature found". Here each value's place in the order stands for it. Other
dtypes go to pandas untouched.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import pandas as pd

from ledgerkit.u128 import ordering

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.u128.array import U128Array


def offer(kind: type[U128Array]) -> None:
    """Teach pandas' selection of values this kind of array; once is enough."""
    from pandas.core.methods.selectn import (  # type: ignore[import-not-found]  # not in the stubs
        SelectNSeries,
    )

    if not hasattr(SelectNSeries.compute, "__wrapped__"):
        SelectNSeries.compute = _also(SelectNSeries.compute, kind)


def _also(theirs: Callable[[Any, str], Any], kind: type[U128Array]) -> Callable[[Any, str], Any]:
    """Let places in the order stand for the values of one kind of array."""

    @wraps(theirs)
    def compute(self: Any, method: str) -> Any:
        column = self.obj
        if not isinstance(column.array, kind):
            return theirs(self, method)
        places = pd.array(ordering.ranks(column.array.planes), dtype="Int64")
        places[column.array.mask] = pd.NA
        chosen = theirs(type(self)(pd.Series(places), n=self.n, keep=self.keep), method)
        return column.iloc[chosen.index]

    return compute
