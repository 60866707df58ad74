"""A limit on memory, so that allocating what a hostile length claims fails."""

from __future__ import annotations

import resource
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = Path("/proc/self/statm")  # its first number is the address space in pages


@contextmanager
def limited_memory(more: int) -> Iterator[None]:
    """Limit the growth of the address space to `more` bytes, where the system can."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(PAGES.read_text().split()[0]) * resource.getpagesize() if PAGES.exists() else 0
    with suppress(ValueError, OSError):  # not every system can
        resource.setrlimit(resource.RLIMIT_AS, (used + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
