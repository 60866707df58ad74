"""
The registration of the dtype u128 with pandas, whichever of the two is imported first.

`import ledgerkit` must not import pandas, and yet `pd.Series(..., dtype="u128")` must work after
it. pandas knows only dtypes that were registered by code that has run: loading them through entry
points is proposed in https://github.com/pandas-dev/pandas/issues/29774, which is open. Until then
a finder on `sys.meta_path` waits for the import of pandas, registers the dtype and removes itself.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # importing typing would take longer than importing the package
if TYPE_CHECKING:
    from typing import Any


def register() -> None:
    """Register the dtype now if pandas is imported, otherwise when it is."""
    if "pandas" in sys.modules:
        import ledgerkit.u128.array  # noqa: F401 - registers the dtype
    elif not any(isinstance(finder, PandasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, PandasFinder())


class PandasFinder:
    """A finder of pandas, with a loader that registers the dtype after the import."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find pandas with the other finders, and wrap its loader."""
        if name != "pandas":
            return None
        others = [f for f in sys.meta_path if f is not self and hasattr(f, "find_spec")]
        spec: Any = next(filter(None, (f.find_spec(name, path, target) for f in others)), None)
        if spec is not None and spec.loader is not None:
            spec.loader = PandasLoader(spec.loader)
        return spec


class PandasLoader:
    """A loader that imports pandas with its own loader, and then registers the dtype."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: Any) -> None:
        """Execute pandas with its own loader; if that succeeds, register the dtype."""
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, PandasFinder)]
        import ledgerkit.u128.array  # noqa: F401 - registers the dtype
