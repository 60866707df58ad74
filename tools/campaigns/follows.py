"""
A follower yields and stores each block of a running chain once, whatever becomes of its server.

A chain of random transactions goes on by the clock in a process of its own. `follow` reads it into
a folder, while the server is killed and started again, and the loop is now and then left: by
closing the iterator, by Ctrl-C in the loop or in the wait for a block, or by dropping it. The next
call continues. At the end, the heights that were yielded must be those of the chain, in order and
once each, and the tables those of `collect_blocks` over a chain that nothing has disturbed.
"""

from __future__ import annotations

import random
import signal
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import ledgerkit as lk
from ledgerkit.progress import Line
from tests.served_world import addresses
from tools.campaigns import sends
from tools.campaigns._killing import differing, tables
from tools.campaigns._running_chain import BLOCK_TIME_NS, ChainServer, open_chain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tools.campaigns._campaign import Tally

COUNT = 1_000
SMALL = 15
EXPECTED = ("block", "skipped height", "server killed", "equal table")
BLOCKS_A_KILL = 200
MOST_DOWN_S = 1.0
WAYS = ("close", "Ctrl-C in the loop", "Ctrl-C in a wait", "drop")
VIEWS = ("blocks", "transactions", "receipts", "outcomes")
MARGIN = 60  # blocks after the last one that is followed: its receipts run in them


def kill(server: ChainServer, n_kills: int, gap_s: float, luck: random.Random) -> None:
    """Kill the server some times, and start it again."""
    for _ in range(n_kills):
        time.sleep(gap_s * luck.uniform(0.5, 1.0))
        server.kill()
        time.sleep(luck.uniform(0, MOST_DOWN_S))
        server.start()


class Follower:
    """A program that follows a chain from a height into a folder, and is interrupted."""

    def __init__(self, ledger: lk.Ledger, start: int, out: Path) -> None:
        self._ledger, self._start, self._out = ledger, start, out
        self.heights: list[int] = []
        self.hashes: list[str] = []

    def read(self, n_blocks: int, way: str) -> None:
        """Read so many blocks; then leave the loop in one of the ways."""
        options: dict[str, Any] = {"out": self._out, "progress": False, "ledger": self._ledger}
        blocks = lk.follow(self._start, VIEWS, **options)
        last = len(self.heights) + n_blocks
        try:
            with interrupted_wait(lambda: way == "Ctrl-C in a wait" and len(self.heights) >= last):
                for block in blocks:
                    self.heights.append(block.height)
                    self.hashes += block["blocks"]["block_hash"].tolist()
                    if len(self.heights) >= last and way == "Ctrl-C in the loop":
                        signal.raise_signal(signal.SIGINT)
                    # A chain that is faster than this machine is not waited for.
                    most = last + n_blocks if way == "Ctrl-C in a wait" else last
                    if len(self.heights) >= most:
                        break
        except KeyboardInterrupt:
            return
        if way == "close":
            blocks.close()


@contextmanager
def interrupted_wait(is_due: Callable[[], bool]) -> Iterator[None]:
    """Press Ctrl-C in a wait for a block, once it is due."""
    show = Line.show

    def interrupt(line: Line, text: str) -> None:
        show(line, text)
        if "waiting for" in text and is_due():
            signal.raise_signal(signal.SIGINT)

    with mock.patch.object(Line, "show", interrupt):
        yield


def compare(follower: Follower, seed: int, out: Path, folder: Path, tally: Tally) -> None:
    """Compare what was read with the chain that nothing has disturbed."""
    last = follower.heights[-1]
    world = open_chain(seed, 0)
    while world.chain.head.height <= last:
        world.advance()
    for _ in range(MARGIN):
        world.advance()
    first = world.chain.genesis.height + 1
    blocks = [block for block in world.chain.blocks() if first <= block.height <= last]
    if follower.heights != [block.height for block in blocks]:
        tally.violate(f"seed {seed}: the heights {follower.heights} are not those of the chain")
    if follower.hashes != [str(block.hash) for block in blocks]:
        tally.violate(f"seed {seed}: the blocks are not those of the chain")
    stored = lk.open_collection(out)
    with lk.connect("local", world=world, make_default=False) as ledger:
        undisturbed = folder / "undisturbed"
        lk.collect_blocks(first, last + 1, stored.views, undisturbed, progress=False, ledger=ledger)
    expected = tables(undisturbed)
    unequal = differing(expected, tables(out))
    for name in unequal:
        tally.violate(f"seed {seed}: the table {name} differs")
    tally.count("equal table", len(expected) - len(unequal))
    tally.count("block", len(blocks))
    tally.count("skipped height", last - first + 1 - len(blocks))


def run(count: int, seed: int, tally: Tally) -> None:
    """Follow a chain for so many blocks."""
    luck = random.Random(seed)
    server = ChainServer(seed, n_blocks=30)
    first = open_chain(seed, 0).chain.genesis.height + 1
    n_kills = max(2, count // BLOCKS_A_KILL)
    gap_s = count * BLOCK_TIME_NS / 10**9 / n_kills
    with tempfile.TemporaryDirectory() as name, sends.short_pauses():
        folder = Path(name)
        server.start()
        killer = threading.Thread(target=kill, args=(server, n_kills, gap_s, luck))
        killer.start()
        retries = lk.RetryPolicy(attempts=2, total_s=5.0)
        urls = addresses(server.url)
        with lk.connect("lab", **urls, retries=retries, make_default=False) as ledger:
            follower = Follower(ledger, first, folder / "followed")
            while len(follower.heights) < count or killer.is_alive():
                way = luck.choice(WAYS)
                follower.read(luck.randint(1, count // 5), way)
                tally.count(f"left: {way}")
        killer.join()
        tally.count("server killed", n_kills)
        server.kill()
        compare(follower, seed, folder / "followed", folder, tally)
