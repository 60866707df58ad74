"""The statement of one real account, against 412 recorded changes over 23 million blocks."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from tests.history_node import History, read_history, serve_history

if TYPE_CHECKING:
    from collections.abc import Iterator

POOL = "stake:astro-stakers.poolv1.near"


@pytest.fixture(scope="module")
def recorded() -> History:
    return read_history()


@pytest.fixture(scope="module")
def statement(recorded: History) -> Iterator[lk.Statement]:
    """Build the statement from an archival node and a transfers service with the records."""
    services = "rpc_url api_url transactions_url transfers_url".split()
    with serve_history(recorded) as server:
        urls: dict[str, Any] = dict.fromkeys(services, server.url)
        with lk.connect("lab", **urls, make_default=False) as ledger:
            start, stop = recorded.first, recorded.last + 1
            yield lk.statement(recorded.account_id, start, stop, ledger=ledger, progress=False)


def by_block(statement: lk.Statement) -> dict[tuple[int, str], int]:
    """Sum entries and gaps by block and asset."""
    sums: dict[tuple[int, str], int] = defaultdict(int)
    entries, gaps = statement.entries, statement.gaps
    for height, asset, change in zip(
        entries["block_height"], entries["asset"], entries["change"], strict=True
    ):
        sums[height, asset] += change
    assert (gaps["stop_height"] - gaps["start_height"] == 1).all()
    for height, asset, missing in zip(
        gaps["stop_height"], gaps["asset"], gaps["missing"], strict=True
    ):
        sums[height, asset] += missing
    return {place: change for place, change in sums.items() if change}


def recorded_changes(recorded: History) -> dict[tuple[int, str], int]:
    """Return what the records say changed, by block and asset, without the stake."""
    changes: dict[tuple[int, str], int] = {}
    for record in recorded.records:
        height, own = record["block"], record["changes"]
        if own["nearChanged"]:
            changes[height, "near"] = int(own["nearDiff"])
        for token_id, change in own["intentsChanged"].items():
            changes[height, f"nep245:intents.near:{token_id}"] = int(change["diff"])
        for token_id, change in own["tokensChanged"].items():
            changes[height, f"nep141:{token_id}"] = int(change["diff"])
    return changes


def test_every_recorded_change_is_an_entry_or_a_gap(
    recorded: History, statement: lk.Statement
) -> None:
    """In each block and of each asset, entries and gaps are what the balances changed by."""
    # Source: shared/vectors/history/account.json.
    own = {place: change for place, change in by_block(statement).items() if place[1] != POOL}
    assert own == recorded_changes(recorded)


def test_the_rewards_are_those_recorded(statement: lk.Statement) -> None:
    """233 rewards of 18.69… NEAR; the deposit of 1,000 NEAR is no reward."""
    # Source: shared/vectors/history/README.md.
    stake = statement.entries[statement.entries["asset"] == POOL]
    rewards = stake[stake["cause"] == "staking_reward"]
    assert len(rewards) == len(statement.rewards) == 233
    assert sum(rewards["change"]) == sum(statement.rewards["reward"]) == 18698318922593263831261188
    others = stake[stake["cause"] != "staking_reward"]
    columns = ["block_height", "cause", "change", "counterparty_id"]
    assert others[columns].to_numpy().tolist() == [
        [161_048_664, "stake", 10**27, POOL.removeprefix("stake:")]
    ]


def test_the_earnings_are_a_sentence(recorded: History, statement: lk.Statement) -> None:
    """Text and card say what was earned, in how many epochs, and the recorded yearly rate."""
    # Source: shared/vectors/history/account.json: a stake of 1,000 NEAR grew by 18.698… NEAR.
    times = {record["block"]: record["timestamp"] for record in recorded.records}
    years = (times[171_115_200] - times[161_048_664]) / (365 * 24 * 3600 * 10**9)
    rate = 1.018698318922593 ** (1 / years) - 1
    earned = f"earned 18.698 NEAR in 233 epochs, {rate:.1%}".replace("%", " % a year")
    assert f"{earned} in 224 of them, with {POOL.removeprefix('stake:')}\n" in repr(statement)
    assert f"<p>{earned} in 224 of them" in statement._repr_html_()


def test_the_totals_hold_with_the_gaps(statement: lk.Statement) -> None:
    """What totals say is missing is the sum of the gaps, and nothing else."""
    missing: dict[str, int] = defaultdict(int)
    for asset, amount in zip(statement.gaps["asset"], statement.gaps["missing"], strict=True):
        missing[asset] += amount
    totals = statement.totals
    for asset, amount in zip(totals["asset"], totals["missing"], strict=True):
        assert amount == missing[asset]


def test_transactions_add_up_to_the_recorded_balances(
    recorded: History, statement: lk.Statement
) -> None:
    """Net changes, fees and gaps of NEAR are what the recorded balance changed by."""
    rows, gaps = statement.by_transaction, statement.gaps
    change = sum(changes.get("near", 0) for changes in rows["changes"]) + sum(rows["fee"])
    missing = sum(gaps.loc[gaps["asset"] == "near", "missing"])
    assert change + missing == recorded.near.values[-1] - recorded.near.at(recorded.first - 1)
    assert sum(rows["n_entries"]) == len(statement.entries)


def test_balances_are_those_recorded(recorded: History, statement: lk.Statement) -> None:
    """The balance after the last entry of a block, with the block's gap, is the recorded one."""
    entries = statement.entries[statement.entries["asset"] == "near"]
    last = entries.groupby("block_height")["balance_after"].last()
    gaps = statement.gaps.set_index(["asset", "stop_height"])["missing"].to_dict()
    for height, balance in zip(last.index.tolist(), last, strict=True):
        assert balance + gaps.get(("near", height), 0) == recorded.near.at(height)
