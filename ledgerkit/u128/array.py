"""The dtypes u128 and i129 and their array: two planes of uint64, a mask and perhaps a sign."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionDtype, no_default, register_extension_dtype, take
from pandas.api.indexers import check_array_indexer

from ledgerkit.u128 import (
    casts,
    operations,
    ordering,
    pandas_hooks,
    parsing,
    planes,
    reductions,
)

if TYPE_CHECKING:
    from ledgerkit.u128.planes import Flags, Planes, Words

_PANDAS = (pd.Series, pd.Index, pd.DataFrame)
_READ_ONLY = "Cannot modify read-only array"
_NO_INTERPOLATION = (
    "{} is exact and does not interpolate, because the results would be rounded: "
    "use astype('float64').interpolate(), or ffill() to repeat the last value"
)


class WideDtype(ExtensionDtype):
    """Integers of 128 bits, exact, with a sign or without; missing values are `pandas.NA`."""

    type = int
    na_value = pd.NA
    signed: bool
    _is_numeric = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @classmethod
    def construct_from_string(cls, string: str) -> Any:
        """Build the dtype from its name, or from its name in Arrow's metadata."""
        is_stored = string == pandas_hooks.STORED_NAMES[cls.signed]
        return cls() if is_stored else super().construct_from_string(string)

    @classmethod
    def construct_array_type(cls) -> Any:
        """Return the array type of this dtype."""
        return I129Array if cls.signed else U128Array

    def __from_arrow__(self, array: Any) -> U128Array:
        return U128Array.of(*parsing.read(array, signed=self.signed))


@register_extension_dtype
class U128Dtype(WideDtype):
    """
    Unsigned integers of 128 bits, exact; missing values are `pandas.NA`.

    Examples
    --------
    >>> import pandas as pd
    >>> balances = pd.Series([2**128 - 1, None, 7], dtype="u128")
    >>> balances
    0    340282366920938463463374607431768211455
    1                                       <NA>
    2                                          7
    dtype: u128
    >>> balances.max() == 2**128 - 1
    True
    """

    name = "u128"
    kind = "u"
    itemsize = 16
    signed = False


@register_extension_dtype
class I129Dtype(WideDtype):
    """
    The differences of two u128, exact: integers from -(2^128 - 1) to 2^128 - 1.

    Examples
    --------
    >>> import pandas as pd
    >>> balances = pd.Series([5, 7, None], dtype="u128")
    >>> 6 - balances
    0       1
    1      -1
    2    <NA>
    dtype: i129
    """

    name = "i129"
    kind = "i"
    itemsize = 17
    signed = True

    def _get_common_dtype(self, dtypes: list[Any]) -> Any:
        """Return the dtype of concatenated columns: this one, if the others have integers."""
        return self if all(map(pd.api.types.is_integer_dtype, dtypes)) else None


class U128Array(pandas_hooks.PandasHooks):
    """
    A column of exact unsigned 128-bit integers.

    Parameters
    ----------
    hi
        The upper 64 bits of each value.
    lo
        The lower 64 bits of each value.
    mask
        True where a value is missing; by default, none is.
    copy
        Whether to copy the three arrays.

    Examples
    --------
    >>> import pandas as pd
    >>> array = pd.array([2**64, None, 7], dtype="u128")
    >>> array
    <U128Array>
    [18446744073709551616, <NA>, 7]
    Length: 3, dtype: u128
    >>> array.sum(), array.nbytes
    (18446744073709551623, 51)
    """

    planes: Planes
    mask: Flags
    signed = False

    # numpy's and pandas' own arrays leave operations to the type with the higher priority; a
    # pandas Index has 2000.
    __array_priority__ = 1000
    __pandas_priority__ = 1500

    def __init__(
        self, hi: Words, lo: Words, mask: Flags | None = None, *, copy: bool = False
    ) -> None:
        """Check the planes, and set them to 0 where a value is missing."""
        mask = np.zeros(len(hi), dtype=np.bool_) if mask is None else mask
        if not (hi.dtype == lo.dtype == np.uint64 and mask.dtype == np.bool_):
            raise TypeError("hi and lo must be arrays of uint64, and mask one of bool")
        if not hi.shape == lo.shape == mask.shape == (len(hi),):
            raise ValueError("hi, lo and mask must have the same length and one dimension")
        self.planes = parsing.check(planes.clean((hi, lo), mask), signed=self.signed)
        self.mask = mask
        if copy:
            self.planes, self.mask = planes.join([self.planes]), mask.copy()

    @classmethod
    def _from_sequence(cls, scalars: Any, *, dtype: Any = None, copy: bool = False) -> Self:  # noqa: ARG003 - pandas names the dtype
        if isinstance(scalars, _PANDAS):
            scalars = scalars.array
        if isinstance(scalars, U128Array):
            values = parsing.check(scalars.planes, signed=cls.signed)
            array = cls.of(values, scalars.mask)
            return array.copy() if copy else array
        return cls.of(*parsing.read(scalars, signed=cls.signed))

    @classmethod
    def of(cls, values: Planes, mask: Flags) -> Self:
        """
        Build an array of planes, without checks.

        Parameters
        ----------
        values
            The upper and lower 64 bits of each value, 0 where it is missing; for i129 those of
            the value modulo 2^128, and where it is negative.
        mask
            True where a value is missing.

        Returns
        -------
        array
            The array, which shares their memory.
        """
        signed = len(values) > 2  # noqa: PLR2004 - a plane of signs
        kind: Any = cls if cls.signed == signed else I129Array if signed else U128Array
        array: Self = kind.__new__(kind)
        array.planes, array.mask = values, mask
        return array

    @classmethod
    def _from_sequence_of_strings(
        cls, strings: Any, *, dtype: Any = None, copy: bool = False
    ) -> Self:
        return cls._from_sequence(parsing.objects(strings), dtype=dtype, copy=copy)

    # Properties -------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """The dtype, u128 or i129."""
        return I129Dtype() if self.signed else U128Dtype()

    @property
    def nbytes(self) -> int:
        """The size of the values in bytes: 17 each, with a sign 18."""
        return sum(plane.nbytes for plane in (*self.planes, self.mask))

    @property
    def hi(self) -> Any:
        """The upper 64 bits of the values; missing values are 0."""
        return self.planes[0]

    @property
    def lo(self) -> Any:
        """The lower 64 bits of the values; missing values are 0."""
        return self.planes[1]

    def __len__(self) -> int:
        return len(self.mask)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """Return the values as a list of Python ints, `pandas.NA` where missing."""
        values: list[Any] = self.to_numpy().tolist()
        return values

    def isna(self) -> Flags:
        """Return where values are missing."""
        return self.mask.copy()

    # Rows -------------------------------------------------------------------------------

    def __getitem__(self, item: Any) -> Any:
        item = check_array_indexer(self, item)
        mask = self.mask[item]
        if not isinstance(mask, np.ndarray):
            hi, lo, *negative = (int(plane[item]) for plane in self.planes)
            return pd.NA if mask else (hi << 64 | lo) - sum(negative) * planes.LIMIT
        selected = self.of(planes.take(self.planes, item), mask)
        if np.may_share_memory(mask, self.mask):
            pandas_hooks.mark_view(selected, self)
        return selected

    def __setitem__(self, key: Any, value: Any) -> None:
        if pandas_hooks.is_read_only(self):
            raise ValueError(_READ_ONLY)
        key = check_array_indexer(self, key)
        is_scalar = not pd.api.types.is_list_like(value)
        new = self._from_sequence([value] if is_scalar else value)
        rows = 0 if is_scalar else slice(None)
        for plane, values in zip((*self.planes, self.mask), (*new.planes, new.mask), strict=True):
            plane[key] = values[rows]

    def take(self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None) -> Self:
        """Select rows; with `allow_fill`, -1 selects the fill value."""
        rows = np.asarray(indices, dtype=np.intp)
        values: Any = tuple(
            take(plane, rows, allow_fill=allow_fill, fill_value=plane.dtype.type(0))
            for plane in self.planes
        )
        mask: Any = take(self.mask, rows, allow_fill=allow_fill, fill_value=True)
        selected = self.of(values, mask)
        if allow_fill and not pd.isna(fill_value):
            selected[rows == -1] = fill_value
        return selected

    def copy(self) -> Self:
        """Return a copy."""
        return self.of(planes.join([self.planes]), self.mask.copy())

    def view(self, dtype: Any = None) -> Any:
        """Return another array of the same values, cast if a dtype is passed."""
        return self.astype(dtype, copy=False) if dtype is not None else self[:]

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[Self]) -> Self:
        values = planes.join([array.planes for array in to_concat])
        return cls.of(values, np.concatenate([array.mask for array in to_concat]))

    def interpolate(self, **_: Any) -> Self:
        """Raise an error, because interpolated values would be rounded."""
        raise NotImplementedError(_NO_INTERPOLATION.format(self.dtype))

    def map(self, mapper: Any, na_action: Any = None) -> Any:
        """Apply a function, a dict or a Series; ints stay ints even if others are missing."""
        if isinstance(mapper, pd.Series) or na_action not in {None, "ignore"}:
            return super().map(mapper, na_action=na_action)
        function = casts.lookup(mapper) if isinstance(mapper, dict) else mapper
        skipped = pd.NA if na_action == "ignore" else None
        results = [value if value is skipped else function(value) for value in self]
        return self._cast_pointwise_result(parsing.objects(results))

    def round(self, decimals: int = 0, *_: Any, **__: Any) -> Self:
        """Round to a power of ten when `decimals` is negative."""
        if decimals >= 0:
            return self.copy()
        rounded = [value if value is pd.NA else round(value, decimals) for value in self]
        return self._from_sequence(rounded)

    # Casts ------------------------------------------------------------------------------

    def to_numpy(
        self,
        dtype: Any = None,
        copy: Any = no_default,  # always copied
        na_value: Any = no_default,
    ) -> np.ndarray:
        """Convert to a numpy array of Python ints, or of `dtype`."""
        if dtype is np.float64 and isinstance(na_value, float) and copy is no_default:
            pandas_hooks.refuse_windows(self)
        return casts.to_numpy(self, np.dtype(object if dtype is None else dtype), na_value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:  # noqa: FBT001 - numpy names it
        if copy is False:
            raise ValueError(f"{self.dtype} is no numpy array without a copy: omit copy=False")
        return self.to_numpy(dtype)

    def __arrow_array__(self, type: Any = None) -> Any:  # noqa: A002 - pyarrow names it
        from ledgerkit.u128 import arrow

        pandas_hooks.record_dtype(WideDtype)
        return arrow.to_arrow(self.planes, self.mask, type)

    def astype(self, dtype: Any, copy: bool = True) -> Any:  # noqa: FBT001, FBT002 - pandas names it
        """
        Cast to another dtype; an error names the row of a value that does not fit.

        Parameters
        ----------
        dtype
            Any dtype of numbers or text. Floats are rounded, all others are exact.
        copy
            Whether to copy if the dtype stays the same.

        Returns
        -------
        cast
            An array of that dtype.

        Raises
        ------
        OverflowError
            If a value is too large for an integer dtype.
        ValueError
            If a value is missing and the dtype cannot hold missing values.
        """
        dtype = pd.api.types.pandas_dtype(dtype)
        if dtype == self.dtype:
            return self.copy() if copy else self
        if isinstance(dtype, WideDtype):
            return dtype.construct_array_type()._from_sequence(self, copy=copy)  # noqa: SLF001 - its own
        if isinstance(dtype, np.dtype):
            return self.to_numpy(dtype)
        array = casts.to_extension(self, dtype)
        return super().astype(dtype, copy=copy) if array is None else array

    # Order and equality -----------------------------------------------------------------

    def argsort(
        self,
        *,
        ascending: bool = True,
        kind: str = "quicksort",  # noqa: ARG002 - numpy names it; every sort here is stable
        na_position: str = "last",
        **_: Any,
    ) -> np.ndarray:
        """Return the rows in the order of their values, stably."""
        return ordering.argsort(self.planes, self.mask, ascending=ascending, na=na_position)

    def _values_for_argsort(self) -> np.ndarray:
        return ordering.ranks(self.planes)

    def argmin(self, skipna: bool = True) -> int:  # noqa: FBT001, FBT002 - pandas names it
        """Return the first row of the smallest value."""
        return ordering.extreme(self.planes, self.mask, largest=False, skipna=skipna)

    def argmax(self, skipna: bool = True) -> int:  # noqa: FBT001, FBT002 - pandas names it
        """Return the first row of the largest value."""
        return ordering.extreme(self.planes, self.mask, largest=True, skipna=skipna)

    def searchsorted(self, value: Any, side: Any = "left", sorter: Any = None) -> Any:
        """Return the positions at which values would keep this sorted array sorted."""
        if self.mask.any():
            raise ValueError("searchsorted needs sorted values: drop the missing ones first")
        return ordering.searchsorted(self if sorter is None else self.take(sorter), value, side)

    @classmethod
    def _from_factorized(cls, values: Any, original: Any) -> Self:
        return cls._from_sequence(values, dtype=original.dtype)

    def unique(self) -> Self:
        """Return the distinct values in the order of their first rows."""
        return self.factorize(use_na_sentinel=False)[1]

    def isin(self, values: Any) -> Flags:
        """Return where values are among others."""
        return ordering.isin(self, values)

    def value_counts(self, dropna: bool = True) -> pd.Series:  # noqa: FBT001, FBT002 - pandas names it
        """Count the rows of each distinct value."""
        codes, distinct = self.factorize(use_na_sentinel=dropna)
        counts = np.bincount(codes[codes >= 0], minlength=len(distinct))
        index = pd.Index(distinct, dtype=self.dtype)
        return pd.Series(pd.array(counts, dtype="Int64"), index=index, name="count")

    # Operations -------------------------------------------------------------------------

    def __neg__(self) -> Any:
        return operations.arithmetic(self, 0, "rsub")

    def __invert__(self) -> Any:
        return operations.arithmetic(self, -1, "rsub")

    def __pos__(self) -> Self:
        return self.copy()

    def __abs__(self) -> Self:
        return self.of(planes.magnitudes(self.planes), self.mask).copy()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and operations.is_rounded(ufunc, options):
            return operations.round_inputs(self, ufunc, inputs, options)
        return super().__array_ufunc__(ufunc, method, *inputs, **options)

    # Reductions -------------------------------------------------------------------------

    def _reduce(
        self, name: str, *, skipna: bool = True, keepdims: bool = False, **options: Any
    ) -> Any:
        value = reductions.reduce(self, name, skipna=skipna, **options)
        return reductions.as_array(self, name, value) if keepdims else value

    @classmethod
    def _reduction(cls, name: str) -> Any:
        def reduction(self: Self, *, skipna: bool = True, **options: Any) -> Any:
            return self._reduce(name, skipna=skipna, **options)

        reduction.__name__ = name
        reduction.__doc__ = reductions.DOCSTRING.format(name=name)
        return reduction

    def _accumulate(self, name: str, *, skipna: bool = True, **_: Any) -> U128Array:
        return reductions.accumulate(self, name, skipna=skipna)


class I129Array(U128Array):
    """A column of exact signed integers, each a difference of two u128."""

    signed = True


def _arithmetic(name: str) -> Any:
    def arithmetic(self: U128Array, other: Any) -> Any:
        if isinstance(other, _PANDAS):
            return NotImplemented
        return operations.arithmetic(self, other, name)

    return arithmetic


def _comparison(name: str) -> Any:
    compare = getattr(operator, name)

    def comparison(self: U128Array, other: Any) -> Any:
        if isinstance(other, _PANDAS):
            return NotImplemented
        return operations.compare(self, other, compare)

    return comparison


for operation in ("add", "sub", "mul", "pow", "mod", "floordiv", "truediv", "divmod"):
    setattr(U128Array, f"__{operation}__", _arithmetic(operation))
    setattr(U128Array, f"__r{operation}__", _arithmetic(f"r{operation}"))
for operation in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(U128Array, f"__{operation}__", _comparison(operation))
# numpy's functions call these methods too.
for operation in (*reductions.EXACT, *reductions.LOGICAL, *reductions.ROUNDED):
    setattr(U128Array, operation, U128Array._reduction(operation))  # noqa: SLF001 - of this module
pandas_hooks.select_by_rank(U128Array)
pandas_hooks.warn_of_excel(WideDtype)
