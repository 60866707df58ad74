"""Receipts, events and transfers from block documents are those that a node's results give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from ledgerkit.block_data.protocol_rules import rules_by_epoch
from ledgerkit.block_data.reading import read_document
from ledgerkit.block_data.skipped_heights import Skipped
from ledgerkit.block_data.transaction_assembly import TransactionAssembly
from ledgerkit.block_data.tree_tables import VIEWS, trace_included, tree_tables
from ledgerkit.collecting.blocks import BlockReader
from ledgerkit.collecting.sources import Subject
from tests.unit.localnet.full_world import FullWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.block_data.transaction_assembly import IncludedTransaction


@pytest.fixture(params=["demo", 2, 3, 6])
def ledger(request: pytest.FixtureRequest) -> Iterator[lk.Ledger]:
    """Connect to the demo world, or to a random one."""
    if request.param == "demo":
        yield lk.connect("local")
    else:
        yield lk.connect(world=FullWorld(request.param).run(120))
    lk.disconnect()


def assembled(ledger: lk.Ledger) -> tuple[list[int], list[IncludedTransaction]]:
    """Read all documents; return their heights and transactions."""
    assembly, status = TransactionAssembly(), lk.status().iloc[0]
    heights = []
    for height in range(status["earliest_block_height"], status["latest_block_height"] + 1):
        document = read_document(ledger, height)
        if not isinstance(document, Skipped):
            head = document.block.header
            assembly.add(document, rules_by_epoch(ledger, {head.hash: head})[head.epoch_id])
            heights.append(height)
    return heights, [item for height in heights for item in assembly.take(height)]


def by_rpc(ledger: lk.Ledger, heights: list[int]) -> dict[str, Any]:
    """Return the tables from the results of a node."""
    reader = BlockReader(VIEWS)
    subjects = [Subject(height, str(height)) for height in heights]
    outcomes = [item for batch in reader.read(ledger, subjects) for item in batch]
    return reader.tables(outcomes)


def test_tables_are_those_of_results(ledger: lk.Ledger) -> None:
    """Row for row, also of transactions that have not finished, and with equal metadata."""
    heights, transactions = assembled(ledger)
    tables, expected = (
        tree_tables(VIEWS, list(map(trace_included, transactions))),
        by_rpc(ledger, heights),
    )
    for view in VIEWS:
        assert tables[view].num_rows > 0
        assert tables[view].equals(expected[view], check_metadata=True)


def test_tables_may_be_empty() -> None:
    """Without transactions, the tables have their columns."""
    for view, table in tree_tables(VIEWS, []).items():
        assert table.num_rows == 0
        assert "tx_hash" in table.column_names, view
