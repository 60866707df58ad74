"""
Blocks collected from documents are the same after any number of kills, and faults of the service.

`collect_blocks` reads 2,000 heights of a random world in child processes that die as in the
campaign `kills`; some read with two workers, of which one may be killed instead. Meanwhile the
service redirects, fails, cuts its responses, lacks archives, and sends null for blocks that were
late. In the end every table must be equal to that of a run that was never disturbed, and a height
is listed as skipped if and only if the world has no block there.
"""

from __future__ import annotations

import random
import tempfile
from functools import cached_property
from itertools import count as numbers
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ledgerkit as lk
from tests.document_host import DocumentHost, scattered
from tests.unit.localnet.chaos import Chaos
from tests.world_hosts import documents_of, hosts
from tools.campaigns._killed import Work
from tools.campaigns._killing import MOST_KILLS, Children, differing, tables

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World
    from tests.loopback import Reply
    from tools.campaigns._campaign import Tally

COUNT = 100
SMALL = 3
EXPECTED = ("collect_documents killed at a file operation", "equal")
HEIGHTS, SMALL_HEIGHTS = 2_000, 120
TIMED = 0.4  # the share of the children that die at a time
FAULTY = 0.2  # the share of the documents and archives whose first request fails
WITH_WORKERS = 4  # each fourth collection has two workers


def random_world(seed: int, heights: int) -> World:
    """Build a world with transactions in some blocks, and heights left out."""
    luck = random.Random(seed)
    chaos = Chaos(seed)
    world: World = chaos.world
    while world.chain.head.height < world.chain.genesis.height + heights:
        step = luck.randrange(10)
        if step == 0:
            chaos.block()
        elif step == 1:
            world.advance(1, skip=luck.choice((1, 1, 2, 14)))  # also a whole archive
        else:
            world.advance(luck.randint(1, 8))
    return world


class Campaign(Children):
    """The services of a world, the undisturbed tables of its blocks, and the kills so far."""

    def __init__(self, folder: Path, seed: int, heights: int, tally: Tally) -> None:
        super().__init__(folder, seed, tally)
        self.world = random_world(seed, heights)
        self.ends = self.world.chain.genesis.height, self.world.chain.final.height + 1
        self.documents = documents_of(self.world)
        self.host = DocumentHost(
            self.documents, final=self.ends[1] - 1, archived=sum(self.ends) // 2
        )
        self.urls = ("", "")

    def measure(self) -> None:
        """Collect without a disturbance, and compare with the world and with its node."""
        self.expected, self.seconds = self.finish(self.work(self.folder / "undisturbed"))
        skipped = self.expected["errors"].query("kind == 'skipped'")["position"]
        if set(skipped) != set(range(*self.ends)) - set(self.documents):
            self.tally.violate("the skipped heights are not those without a block")
        with lk.connect("local", world=self.world, make_default=False) as ledger:
            options: Any = {"source": "rpc", "progress": False, "ledger": ledger}
            by_rpc = lk.collect_blocks(*self.ends, out=self.folder / "rpc", **options)
        for name in differing(tables(Path(by_rpc.path)), self.expected):
            self.tally.violate(f"the table {name} is not that of the node")
        n_rows = sum(map(len, self.expected.values()))
        self.tally.notes.append(f"{len(range(*self.ends)):,} heights, {n_rows:,} rows")

    @cached_property
    def seconds_with_workers(self) -> float:
        """The seconds that two workers take without a disturbance."""
        return self.finish(self.work(self.folder / "workers", n_workers=2))[1]

    def work(self, out: Path, **options: Any) -> Work:
        return Work("collect_documents", out, urls=self.urls, heights=self.ends, **options)

    def disturb(self, number: int, kills: int) -> None:
        """Collect with children that are killed, until one ends; then compare."""
        n_workers = 2 if number % WITH_WORKERS == WITH_WORKERS - 1 else 0
        out, last = self.folder / f"disturbed-{number}", self.n_kills + kills
        while True:
            self.disturb_service()
            work = self.work(out, n_workers=n_workers)
            if self.survives(*self.plan(work) if self.n_kills < last else (work, None)):
                break
        self.compare(self.expected, out)

    def disturb_service(self) -> None:
        """Choose which requests fail, which archives are missing, and which blocks are late."""
        counts: dict[str, int] = {}
        choose = scattered(self.luck.randrange(10**9), FAULTY)

        def fault(path: str, _earlier: int) -> Reply | None:
            counts[path] = counts.get(path, 0) + 1
            return choose(path, counts[path] - 1)

        heights = list(self.documents)
        self.host.fault = fault
        self.host.missing_archives = {h // 10 * 10 for h in self.luck.sample(heights, 5)}
        self.host.late = set(self.luck.sample(heights, len(heights) // 20))

    def plan(self, work: Work) -> tuple[Work, float | None]:
        """Plan the death of a child, or after how many seconds one of its workers dies."""
        if work.n_workers:
            seconds = self.luck.uniform(0.1, 0.8) * self.seconds_with_workers
            if self.luck.choice((True, False)):
                return work, seconds
            return work._replace(after_s=seconds), None
        if self.luck.random() < TIMED:
            return work._replace(after_s=self.luck.uniform(0.05, 0.6) * self.seconds), None
        return work._replace(operation=self.luck.randint(1, 40)), None


def run(count: int, seed: int, tally: Tally) -> None:
    """Kill so many children, of several collections."""
    heights = HEIGHTS if count >= COUNT else SMALL_HEIGHTS
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder), seed, heights, tally)
        with hosts(campaign.world, campaign.host) as ledger:
            network = ledger.network
            campaign.urls = network.rpc_url or "", network.blocks_url or ""
            campaign.measure()
            for number in numbers():
                remaining = count - campaign.n_kills
                if remaining <= 0:
                    break
                campaign.disturb(number, min(remaining, campaign.luck.randint(1, MOST_KILLS)))
