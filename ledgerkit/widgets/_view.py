"""
The widget that front ends draw: one anywidget for all panels, whose content comes by messages.

The ES modules in ``static/`` are joined into one, since an anywidget has a single module: no
build step, and no host to load from. The widget's synchronised state holds nothing but HTML
without scripts, which stands in where no kernel answers; so a saved notebook holds no secret.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

from ledgerkit.extras import require

# Each module imports from those before it only.
_MODULES = ("dom", "table", "trace", "form", "panel")
_IMPORT = re.compile(r"^import .*?;\n", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


def _read(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")


def javascript() -> str:
    """Join the ES modules into one, by dropping their imports from each other."""
    sources = (_read(f"{name}.js") for name in _MODULES)
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", source)) for source in sources)


@cache
def view_class() -> Any:
    """Build the widget's class, which needs the notebook extra."""
    anywidget = require("anywidget", "notebook", "A panel")
    traitlets = require("traitlets", "notebook", "A panel")

    class View(anywidget.AnyWidget):  # type: ignore[misc, name-defined]  # loaded lazily
        """A panel in a front end."""

        _esm = javascript()
        _css = _read("static.css") + _read("style.css")
        fallback = traitlets.Unicode("").tag(sync=True)

    return View
