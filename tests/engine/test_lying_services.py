"""Services that lie: what the readers of pages and documents make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ledgerkit as lk
from ledgerkit.block_data.transaction_documents import stream_documents
from ledgerkit.errors import UnknownTransactionError
from ledgerkit.verbs.account_history import transaction_rows, transfer_rows
from tests.lying_services import LyingServices
from tests.unit.localnet.full_world import FullWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

ANN = "ann.near"  # who takes part in most transactions


@pytest.fixture(scope="module")
def honest() -> Iterator[lk.Ledger]:
    """Return a ledger of a world in which much has happened."""
    with lk.connect(world=FullWorld(2).run(600), make_default=False) as ledger:
        yield ledger


def lying(honest: lk.Ledger, seed: int, **hidden: int) -> lk.Ledger:
    """Connect to services of the same world that lie."""
    services = LyingServices(honest.world, seed, hidden)
    return lk.connect("local", transport=services, make_default=False)


def services_of(ledger: lk.Ledger) -> LyingServices:
    """Return the services behind a ledger, which know what they hid."""
    services = ledger.session.settings.transport
    assert isinstance(services, LyingServices)
    return services


def test_pages_that_end_early_and_repeated_rows_lose_nothing(honest: lk.Ledger) -> None:
    """All rows arrive once, in their order."""
    expected = [row.transaction_hash for row in transaction_rows(honest, ANN)]
    assert len(expected) > 40
    pages = 0
    for seed in range(10):
        with lying(honest, seed) as ledger:
            assert [row.transaction_hash for row in transaction_rows(ledger, ANN)] == expected
            pages += services_of(ledger).pages
    assert pages > 10


@pytest.mark.parametrize("seed", range(3))
def test_cut_amounts_are_unknown_and_repeated_transfers_are_dropped(
    honest: lk.Ledger, seed: int
) -> None:
    """A transfer whose amount was cut has none; every other one arrives once, as it was."""
    expected = {row.key: row.change for row in transfer_rows(honest, ANN)}
    with lying(honest, seed) as ledger:
        rows = list(transfer_rows(ledger, ANN))
        cut = services_of(ledger).clamped
    assert len(rows) == len({row.key for row in rows}) == len(expected) > 30
    assert cut
    for row in rows:
        assert row.change == (None if row.transaction_id in cut else expected[row.key])


def test_a_document_that_is_lost_is_an_error_in_its_place(honest: lk.Ledger) -> None:
    """The others come in the order of the hashes, though the service sends them in another."""
    hashes = [row.transaction_hash for row in transaction_rows(honest, ANN)]
    with lying(honest, 1, lost=10) as ledger:
        documents = [pair for batch in stream_documents(ledger, hashes) for pair in batch]
        services = services_of(ledger)
    assert [tx_hash for tx_hash, _ in documents] == hashes
    lost = {tx_hash for tx_hash, each in documents if isinstance(each, UnknownTransactionError)}
    assert lost == services.fates.keys()
    assert 2 < len(lost) < len(hashes) / 4


def test_transactions_that_are_late_are_missing_amounts_until_they_come(honest: lk.Ledger) -> None:
    """Before, balances or gaps have what they changed; after, the statement is the honest one."""
    start = honest.world.chain.genesis.height
    whole = lk.statement(ANN, start=start, progress=False, ledger=honest)
    assert whole.facts.gaps == []
    with lying(honest, 3, late=20) as ledger:
        early = lk.statement(ANN, start=start, progress=False, ledger=ledger)
        assert services_of(ledger).fates
        services_of(ledger).catch_up()
        later = lk.statement(ANN, start=start, progress=False, ledger=ledger)
    assert early.facts.gaps
    assert early.facts.closing["near"] == whole.facts.closing["near"]
    changes = [entry.change for entry in early.store if entry.asset == "near"]
    missing = [gap.missing or 0 for gap in early.facts.gaps if gap.asset == "near"]
    opening, closing = early.facts.opening["near"], early.facts.closing["near"]
    assert (opening or 0) + sum(changes) + sum(missing) == closing
    assert list(later.store) == list(whole.store)
    assert later.facts.gaps == []
