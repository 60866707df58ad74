"""HTTP by httpx, imported without its command line: without click, pygments and rich."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

__all__ = ["httpx"]

if TYPE_CHECKING or "httpx" in sys.modules:
    import httpx
else:
    # Importing this part of httpx then fails, as where rich is not installed.
    sys.modules["httpx._main"] = None
    try:
        import httpx
    finally:
        del sys.modules["httpx._main"]
