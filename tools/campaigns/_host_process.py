"""A host that speaks bytes, in a process of its own: its work and memory are not the client's."""

from __future__ import annotations

import multiprocessing
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tests.loopback import raw_host

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    Talk = Callable[[socket.socket], None]


@contextmanager
def running(make: Callable[[int], Talk], seed: int) -> Iterator[str]:
    """Run the host that `make` builds of a seed; yield its address."""
    context = multiprocessing.get_context("forkserver")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(make, seed, there), daemon=True)
    process.start()
    there.close()
    with here:
        yield here.recv()
    process.join()
    process.close()


def _serve(make: Callable[[int], Talk], seed: int, parent: Connection) -> None:
    """Run the host until the parent process closes its end of the pipe."""
    with raw_host(make(seed)) as url:
        parent.send(url)
        with suppress(EOFError):
            parent.recv()
