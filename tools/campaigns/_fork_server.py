"""The fork server of child processes, and what it imports for all of them."""

from __future__ import annotations

import multiprocessing
from multiprocessing import forkserver
from typing import Any


def restart(module: str) -> None:
    """Start the fork server anew, with a module that its children then need not import."""
    # One that another campaign started has not loaded what the children need.
    server: Any = forkserver
    server._forkserver._stop()  # noqa: SLF001 - it has no public way to end
    context: Any = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([module])
