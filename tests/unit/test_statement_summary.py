"""A statement in words and as a card: gaps are prominent, texts of the chain are texts."""

from __future__ import annotations

from typing import Any

import pytest

from ledgerkit import cards
from ledgerkit.reconciling import summary
from ledgerkit.reconciling.model import Gap, Reward, Token
from tests.unit.statement_frames import ONE, Frames, entry, statement
from tests.unit.test_cards import Page

GOLD = "nep141:gold.near"
ENTRIES = [
    entry(110, "near", "transfer", 3 * ONE),
    entry(111, "near", "fee", -(10**20)),
    entry(112, GOLD, "token", 2_500_000),
    entry(113, "nep141:dust.near", "mint", 1),
]
TOKENS = {GOLD: Token("GOLD", 6)}


def text(frames: Frames) -> str:
    return summary.text(frames.facts, len(frames.entries), frames.totals, frames.gaps)


def card(frames: Frames) -> str:
    return cards.statement_card(
        headline=summary.headline(frames.facts),
        sentences=summary.sentences(frames.facts, len(frames.entries), frames.totals),
        verdict=summary.verdict(frames.totals, frames.gaps),
        totals=frames.totals,
        gaps=frames.gaps,
        rewards=frames.rewards,
        network=frames.facts.network,
    )


def test_a_statement_in_words():
    """Account, network, period, whether it adds up, and each asset in its own unit."""
    day = "2026-08-01"
    ends = f"after block 100 ({day} 00:00:00 UTC) and after block 200 ({day} 00:01:40 UTC)"
    assert text(statement(ENTRIES, tokens=TOKENS, opening={"near": ONE})).splitlines() == [
        "Statement of alice.near on testnet",
        f"4 entries between the balances {ends}",
        "✓ every balance adds up: opening + entries = closing, with no gaps",
        "  near: 1 NEAR → 3.9999 NEAR (in 3 NEAR, out -0.0001 NEAR)",
        "  nep141:dust.near: 0 units → 1 unit (in 1 unit, out 0 units)",
        "  nep141:gold.near: 0 GOLD → 2.5 GOLD (in 2.5 GOLD, out 0 GOLD)",
    ]


def test_a_change_of_unknown_cause_has_no_tick():
    """Balances add up with it, and the verdict says that it is not explained."""
    lines = text(statement([*ENTRIES, entry(114, "near", "unknown", -ONE)])).splitlines()
    assert lines[2] == (
        "? every balance adds up, but changes of unknown cause are among them: near"
    )


def test_a_gap_stands_first():
    """Gaps come before the balances, with amount, blocks and note; no word says it adds up."""
    gaps = [Gap("near", 150, 151, -5 * ONE, "no transaction"), Gap(GOLD, 160, 180, None, "?")]
    frames = statement(ENTRIES, tokens=TOKENS, opening={"near": 9 * ONE}, gaps=gaps)
    lines = text(frames).splitlines()
    assert lines[2:5] == [
        "⚠ 2 gaps: changes that no entry explains",
        "  gap: near -5 NEAR, after block 150 up to block 151: no transaction",
        "  gap: nep141:gold.near unknown, after block 160 up to block 180: ?",
    ]
    page = Page(card(frames))
    assert page.summaries[0] == (0, "Gaps (2)")
    assert ("details", {"open": None}) in page.elements
    assert page.cells[5:10] == ["near", "150", "151", "-5 NEAR", "no transaction"]
    assert "adds up" not in text(frames) + card(frames)


@pytest.mark.parametrize(
    ("missing", "words"),
    [(3, "⚠ the entries do not add up: near"), (None, "? not checked: near, of which")],
)
def test_what_is_not_proved_is_not_claimed(missing: Any, words: str):
    """A total that is off, or that could not be computed, is named."""
    frames = statement(ENTRIES[:1])
    totals = frames.totals.assign(missing=[missing])
    assert summary.verdict(totals, frames.gaps).startswith(words)


def test_what_is_not_final_is_said():
    """Transactions that still run, and notes, have their own sentences."""
    frames = statement(ENTRIES)
    frames.facts.unfinished.append("T")
    frames.facts.notes.append("one pool could not be read")
    assert summary.sentences(frames.facts, 1, frames.totals)[1:] == [
        "still running at the end: 1 transaction, of which later changes are missing",
        "one pool could not be read",
    ]


def test_a_card():
    """Balances by asset with exact amounts as tooltips, and sums by cause."""
    html = card(statement(ENTRIES, tokens=TOKENS, opening={"near": ONE}))
    page = Page(html)
    assert page.summaries == [(0, "Balances (3)"), (0, "Causes (4)")]
    balances = "near|1 NEAR|3 NEAR|-0.0001 NEAR|-0.0001 NEAR|3.9999 NEAR|0 NEAR|2".split("|")
    assert page.cells[8:16] == balances
    assert "network: " in page.texts
    assert page.cells[-9:] == [
        *("near", "fee", "-0.0001 NEAR"),
        *("nep141:dust.near", "mint", "1 unit"),
        *("nep141:gold.near", "token", "2.5 GOLD"),
    ]


def reward(pool_id: str, **more: Any) -> Reward:
    """Build a reward of 0.01 NEAR on 100 NEAR in an epoch of half a day."""
    facts: dict[str, Any] = {
        "total_before": 100 * ONE,
        "total_after": 100 * ONE + ONE // 100,
        "apy": 0.0757,
    }
    period = {"epoch_id": "E1", "start_height": 1, "stop_height": 2, "timestamp_ns": 10**18}
    return Reward(pool_id=pool_id, deposits=0, withdrawals=0, **{**period, **facts, **more})


def earnings(rewards: list[Reward], *rows: Any, **more: Any) -> list[str]:
    """Return the sentences about earnings of a statement with these rewards and entries."""
    frames = statement(rows, **more)
    frames.facts.rewards = rewards
    return summary.sentences(frames.facts, 0, frames.totals)[1:]


def test_earnings_are_said_for_each_pool_and_in_all():
    """A rate is that of the epochs with a known one; epochs without a row before it count."""
    later: dict[str, Any] = {
        "total_before": 100 * ONE + ONE // 100,
        "total_after": 100 * ONE + ONE // 50,
    }
    later |= {"epoch_id": "E3", "timestamp_ns": 10**18 + 86_400 * 10**9}
    rewards = [reward("a.pool"), reward("a.pool", **later), reward("b.pool", apy=None)]
    assert earnings(rewards) == [
        "earned 0.03 NEAR in 2 epochs, 5.0 % a year, in all",
        "with a.pool: 0.02 NEAR in 2 epochs, 5.0 % a year",
        "with b.pool: 0.01 NEAR in 1 epoch, yearly rate unknown",
    ]


def test_a_gap_beside_rewards_is_said():
    """What is earned with a pool is not all where the balance with a pool has a gap."""
    gaps = [Gap("stake:a.pool", 150, 151, 7, "?")]
    lines = earnings([reward("a.pool")], opening={"stake:a.pool": ONE}, gaps=gaps)
    unknown = "other staking rewards are unknown: the balance with 1 pool is unknown or has gaps"
    assert lines == ["earned 0.01 NEAR in 1 epoch, 7.6 % a year, with a.pool", unknown]


def test_many_pools_are_counted():
    """Ten pools have a sentence, and the others are counted."""
    lines = earnings([reward(f"{number}.pool") for number in range(25)])
    assert lines[0] == "earned 0.25 NEAR in 1 epoch, 7.6 % a year, in all"
    assert (len(lines), lines[-1]) == (12, "and 15 more pools")


def test_a_row_of_several_epochs_and_a_lockup():
    """Their number is a lower bound, and the contract that stakes is named."""
    rewards = [reward("a.pool", epoch_id=None, apy=None, account_id="x.lockup.near")]
    assert earnings(rewards) == [
        "earned 0.01 NEAR in at least 2 epochs, yearly rate unknown, with a.pool by x.lockup.near"
    ]


def test_the_earnings_of_a_validator_are_said():
    """What an account earned as a validator is no row of the rewards."""
    [first] = earnings([], entry(110, "near", "validator_reward", 5 * ONE))
    assert first == "earned 5 NEAR as a validator"


@pytest.mark.parametrize(
    ("opening", "gaps", "words"),
    [
        ({"stake:a.pool": ONE}, [], "the balance with 1 pool did not grow by itself; a pool "),
        ({"stake:a.pool": None}, [], "the balance with 1 pool is unknown or has gaps"),
        (
            {"stake:a.pool": ONE},
            [Gap("stake:a.pool", 150, 151, 7, "?")],
            "the balance with 1 pool is unknown or has gaps",
        ),
    ],
)
def test_why_there_is_no_reward(opening: Any, gaps: list[Gap], words: str):
    """A stake that did not grow and one that is unknown differ; without a stake nothing is said."""
    [reason] = earnings([], opening=opening, gaps=gaps)
    assert words in reason
    assert earnings([]) == []


def test_texts_of_the_chain_are_escaped():
    """An asset, a symbol and a note are no markup, and have no invisible characters."""
    asset = "nep141:<script>\u202e"
    gaps = [Gap(asset, 1, 2, 1, "<b>\u202e")]
    frames = statement([entry(110, asset, "mint", 1)], tokens={asset: Token("<i>", 2)}, gaps=gaps)
    html = card(frames)
    assert not {"script", "b", "i"} & {name for name, _ in Page(html).elements}
    assert "\u202e" not in html + text(frames)


def test_many_rows_are_counted():
    """A statement of many assets and gaps stays a few lines long."""
    rows = [entry(110, f"nep141:t{at}.near", "mint", 1) for at in range(300)]
    gaps = [Gap("nep141:t1.near", at, at + 1, 1, "") for at in range(120)]
    frames = statement(rows, gaps=gaps)
    lines = text(frames).splitlines()
    assert len(lines) == 3 + 2 * 11
    assert lines[13] == "  … and 110 more gaps"
    assert lines[-1] == "  … and 290 more assets"
    assert "and 100 more in the frame" in card(frames)
