"""Rewards of staking, against a recorded account and against pools that really earn."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

import ledgerkit as lk
from ledgerkit.reconciling import rewards
from ledgerkit.reconciling.model import Block, Entry
from ledgerkit.reconciling.reconcile import BalanceReader
from tests.history_node import connect_history, read_history, serve_history

if TYPE_CHECKING:
    from collections.abc import Iterator

POOL = "astro-stakers.poolv1.near"
DEPOSIT = Entry(161_048_664, None, f"stake:{POOL}", "stake", 10**27)


@pytest.fixture
def history() -> Iterator[lk.Ledger]:
    """Connect to an archival node with the recorded account."""
    with serve_history(read_history()) as server, connect_history(server) as ledger:
        yield ledger


def test_a_yield_is_compounded_by_the_recorded_times(history: lk.Ledger) -> None:
    """The yield of the last epoch follows from its recorded reward and times."""
    # Source: shared/vectors/history/account.json, blocks 171,072,000 and 171,115,200.
    start, stop = Block(171_072_000, 0), Block(171_115_200, 0)
    account_id = read_history().account_id
    [row] = rewards.read_rewards(
        history, account_id, [POOL], start, stop, [], BalanceReader(history, account_id)
    )
    growth = 1 + Fraction(39967482501013975895146, 1018658351440092249855366042)
    year_ns = 365 * 24 * 3600 * 10**9
    epochs = year_ns / (1762209579348060000 - 1762183235026721300)
    assert row.apy == pytest.approx(float(growth) ** epochs - 1, rel=1e-9)


def test_what_was_never_staked_is_not_read() -> None:
    """Without a balance and a deposit, only the two ends are read."""
    recorded = read_history()
    with serve_history(recorded) as server, connect_history(server) as ledger:
        start, stop = Block(recorded.first, 0), Block(161_000_000, 0)
        assert (
            rewards.read_rewards(
                ledger,
                recorded.account_id,
                [POOL],
                start,
                stop,
                [],
                BalanceReader(ledger, recorded.account_id),
            )
            == []
        )
        assert [call["method"] for call in server.calls] == ["block", "block", "query", "query"]


def test_epochs_before_the_first_deposit_are_not_read() -> None:
    """Blocks are read from the first deposit on: three for an epoch, the balance, and others'."""
    recorded = read_history()
    with serve_history(recorded) as server, connect_history(server) as ledger:
        start, stop = Block(recorded.first, 0), Block(recorded.last, 0)
        rewards.read_rewards(
            ledger,
            recorded.account_id,
            [POOL],
            start,
            stop,
            [DEPOSIT],
            BalanceReader(ledger, recorded.account_id),
        )
        methods = Counter(call["method"] for call in server.calls)
        assert methods["query"] == (2 + 234) + 1 + 234
        assert methods["block"] <= 2 + 234 * 8 // 3 + 4


def test_a_deposit_that_no_service_lists_is_a_gap() -> None:
    """Without the row of the deposit, 1,000 NEAR are missing from the stake, and no reward."""
    recorded = read_history()
    recorded.rows = [row for row in recorded.rows if row["other_account_id"] != POOL]
    with serve_history(recorded) as server, connect_history(server) as ledger:
        statement = lk.statement(
            recorded.account_id,
            161_000_000,
            161_200_000,
            assets=f"stake:{POOL}",
            ledger=ledger,
            progress=False,
        )
    assert len(statement.rewards) == 3
    [gap] = statement.gaps.to_dict("records")
    assert (gap["stop_height"], gap["missing"]) == (161_048_664, 10**27)


def test_without_an_indexer_no_pool_is_listed() -> None:
    """A network without the REST API lists no pools, and nothing is sent."""
    with serve_history(read_history()) as server:
        with lk.connect("lab", rpc_url=server.url, make_default=False) as ledger:
            assert rewards.listed_pools(ledger, "alice.near") == []
        assert server.requests == []
