"""The dtype u128 made known to pandas, whichever of the two is imported first."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as in the package itself: importing typing would cost more than the rest
if TYPE_CHECKING:
    from typing import Any


def arrange() -> None:
    """Register the dtype now if pandas is there, otherwise as soon as it is."""
    if "pandas" in sys.modules:
        import ledgerkit.u128.array  # noqa: F401 - registers the dtype
    elif not any(isinstance(finder, Follower) for finder in sys.meta_path):
        sys.meta_path.insert(0, Follower())


class Follower:
    """Finds pandas as all others do, loads it with its own loader, registers and steps aside."""

    loader: Any = None

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Ask the other finders for pandas, and stand in for its loader."""
        if name != "pandas":
            return None
        others = [f for f in sys.meta_path if f is not self and hasattr(f, "find_spec")]
        spec: Any = next(filter(None, (f.find_spec(name, path, target) for f in others)), None)
        if spec is not None and spec.loader is not None:
            self.loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: Any) -> Any:
        """Leave the module to its own loader."""
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Run pandas; unless that fails, step aside and register the dtype."""
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        import ledgerkit.u128.array  # noqa: F401 - registers the dtype
