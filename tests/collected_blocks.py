"""Blocks that tests collect: in small parts, and compared table by table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pandas.testing import assert_frame_equal

import ledgerkit as lk
from tests.unit.localnet.ledger import Ledger, do

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pandas as pd

    from ledgerkit.localnet import World

UNTYPED: Any = lk  # as whoever calls it without a type checker


def collect(start: object, stop: object, out: Path, ledger: lk.Ledger, **options: Any) -> Any:
    """Collect in small parts, quietly."""
    options = {"part_size": 8, "progress": False, **options}
    return UNTYPED.collect_blocks(start, stop, out=out, ledger=ledger, **options)


def ends(world: World) -> tuple[int, int]:
    """Return the first height of a world and the one after the last final one."""
    return world.chain.genesis.height, world.chain.final.height + 1


def heights_of(world: World) -> list[int]:
    return [b.height for b in world.chain.blocks() if b.height <= world.chain.final.height]


def read_rows(run: lk.types.Collection, table: str) -> pd.DataFrame:
    """Read a table without the times of reading and without provenance."""
    frame = run.pandas(table).drop(columns="fetched_at", errors="ignore")
    frame.attrs.clear()
    return frame


def assert_same(
    one: lk.types.Collection, other: lk.types.Collection, tables: Iterable[str] = ()
) -> None:
    """Compare the tables of two collections row by row: all of the first, or some."""
    for table in tables or one.tables:
        assert_frame_equal(read_rows(one, table), read_rows(other, table), obj=table)


def yielding_world(timeout: int = 200, blocks: int = 12) -> tuple[World, str]:
    """Return a world with a call that waits to be resumed, and the hash of its transaction."""
    ledger = Ledger("ann.near", scripts=["s.near"], yield_timeout=timeout)
    tx_hash = ledger.send("ann.near", "s.near", do(["wait", "w", [["results"]]], ["give", "w"]))
    ledger.world.advance(blocks)
    return ledger.world, str(tx_hash)
