"""What a forked child does with what its parent has open: one hook for all of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

if TYPE_CHECKING:

    class Holder(Protocol):
        """An object with connections, files or locks that a forked child must not use."""

        def after_fork(self) -> None:
            """Start anew in the child, and leave what is open to the parent."""


_holders: WeakSet[Holder] = WeakSet()

# Kept for as long as the child runs. Were a connection of the parent collected in the child, its
# file descriptors would leave the epoll instance that both processes share, and the parent would
# wait forever. The thread of the background loop holds this list: that thread does not exist in
# the child, so what it holds there is never dropped, not even when the interpreter ends.
inherited: list[object] = []


def register(holder: Holder) -> None:
    """Call `holder.after_fork()` in each forked child."""
    _holders.add(holder)


def _start_child() -> None:
    for holder in list(_holders):
        holder.after_fork()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_start_child)
