"""
The registration of the dtype u128 with pandas and Dask, whichever of them is imported first.

`import ledgerkit` must not import pandas, and yet `pd.Series(..., dtype="u128")` must work after
it. pandas knows only dtypes that were registered by code that has run: loading them through entry
points is proposed in https://github.com/pandas-dev/pandas/issues/29774, which is open. Until then
a finder on `sys.meta_path` waits for the import of pandas, registers the dtype and removes itself.
Another one waits for Dask: its workers import ledgerkit only when they receive a column.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # importing typing would take longer than importing the package
if TYPE_CHECKING:
    from typing import Any

# The module that registers the dtype with a library, by the module of the library.
_REGISTERING = {
    "pandas": "ledgerkit.u128.array",
    "dask.dataframe": "ledgerkit.u128.dask_support",
}


def register() -> None:
    """Register the dtype now with libraries that are imported, with others when they are."""
    for library in _REGISTERING:
        if library in sys.modules:
            _register_with(library)
        elif library not in [f.library for f in sys.meta_path if isinstance(f, LibraryFinder)]:
            sys.meta_path.insert(0, LibraryFinder(library))


def _register_with(library: str) -> None:
    __import__(_REGISTERING[library])


class LibraryFinder:
    """A finder of a library, with a loader that registers the dtype after the import."""

    def __init__(self, library: str) -> None:
        self.library = library

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find the library with the other finders, and wrap its loader."""
        if name != self.library:
            return None
        others = [f for f in sys.meta_path if f is not self and hasattr(f, "find_spec")]
        spec: Any = next(filter(None, (f.find_spec(name, path, target) for f in others)), None)
        if spec is not None and spec.loader is not None:
            spec.loader = LibraryLoader(spec.loader, self)
        return spec


class LibraryLoader:
    """A loader that imports a library with its own loader, and then registers the dtype."""

    def __init__(self, loader: Any, finder: LibraryFinder) -> None:
        self._loader, self._finder = loader, finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: Any) -> None:
        """Execute the library with its own loader; if that succeeds, register the dtype."""
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        sys.meta_path[:] = [f for f in sys.meta_path if f is not self._finder]
        _register_with(self._finder.library)
