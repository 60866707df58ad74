"""A hook in forked children, for objects whose connections, files or locks the parent has open."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

if TYPE_CHECKING:

    class Holder(Protocol):
        """An object with connections, files or locks that a forked child must not use."""

        def after_fork(self) -> None:
            """Reset the object in the child; open connections and files are the parent's."""


_holders: WeakSet[Holder] = WeakSet()

# Objects of the parent, referenced for as long as the child runs. If the child collected a
# connection of the parent, its file descriptors would leave the epoll instance that both processes
# share, and the parent would wait forever. The thread of the background loop references this list,
# too: it does not exist in the child, so this reference outlives the end of the interpreter.
inherited: list[object] = []


def register(holder: Holder) -> None:
    """Call `holder.after_fork()` in each forked child."""
    _holders.add(holder)


def _start_child() -> None:
    for holder in list(_holders):
        holder.after_fork()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_start_child)
