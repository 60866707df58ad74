"""Statements of accounts with pools of other kinds: what is no reward, and what is one."""

from __future__ import annotations

import json
import warnings
from decimal import Decimal
from typing import TYPE_CHECKING

import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit.localnet.contracts.liquid_staking import LiquidStaking
from ledgerkit.localnet.contracts.staking_pool import StakingPool
from tests.engine.test_pool_rewards import LIQUID, NEAR, POOL, Chain, own_rewards
from tests.lying_services import Hiding

if TYPE_CHECKING:
    from pathlib import Path


class OtherWords(StakingPool):
    """A pool that logs deposits in words of its own."""

    def _deposit(self) -> int:
        amount = super()._deposit()
        self.vm.logs[-1] = self.vm.logs[-1].replace(" deposited ", " added ")
        return amount


class Silent(LiquidStaking):
    """A liquid token that logs no event when it is minted: Narwallets/meta-pool, stNEAR."""

    def log_mint(self, owner_id: str, amount: int, memo: str | None = None) -> None:
        """Log nothing."""


def staked(chain: Chain, deposit: int = 500 * NEAR) -> Chain:
    """Stake as alice, earn, stake again, and earn."""
    chain.pass_epochs(2)
    chain.call(POOL, "deposit_and_stake", deposit)
    chain.pass_epochs(3)
    chain.call(POOL, "deposit_and_stake", deposit)
    chain.pass_epochs(3)
    chain.world.advance(5)
    return chain


def statement(chain: Chain) -> lk.Statement:
    return lk.statement("alice.near", 1000, ledger=chain.ledger, progress=False)


def koinly_rewards(own: lk.Statement, folder: Path) -> int:
    """Return the sum of the rewards in a file for Koinly, in yoctoNEAR."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of gaps
        path = own.to_csv(folder / "alice.csv", "koinly")
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    amounts = rows[rows["Label"] == "Reward"]["Received Amount"]
    return sum(int(Decimal(amount).scaleb(24)) for amount in amounts)


def check_hidden_deposit(chain: Chain, whole: lk.Statement, with_it: int = 1) -> None:
    """Check that the second deposit is a gap if no source has it, with little of the rewards."""
    transport = Hiding(chain.world, chain.hashes[-4], node_knows=False)
    with lk.connect("local", transport=transport, make_default=False) as ledger:
        part = lk.statement("alice.near", 1000, ledger=ledger, progress=False)
    [missing] = part.gaps[part.gaps["asset"] == f"stake:{POOL}"]["missing"]
    assert 0 <= missing - 500 * NEAR <= with_it  # what the pool rounds, or pays in that block
    assert own_rewards(part) + missing == own_rewards(whole) + 500 * NEAR


def test_deposits_in_other_words_are_no_rewards(tmp_path: Path) -> None:
    """Deposits that the pool logs in words of its own are gaps, and its rewards are all there."""
    chain = staked(Chain(OtherWords))
    own = statement(chain)
    assert own.gaps["missing"].tolist() == [500 * NEAR] * 2
    assert own_rewards(own) == chain.total("alice.near") - 1000 * NEAR > 0
    assert koinly_rewards(own, tmp_path) == own_rewards(own)


def test_the_owner_has_the_fee_too(tmp_path: Path) -> None:
    """All that an owner's stake grew by beyond deposits is a reward, and a hidden deposit none."""
    chain = staked(Chain(owner_id="alice.near"))
    own = statement(chain)
    assert own.gaps.empty
    assert own_rewards(own) == chain.total("alice.near") - 1000 * NEAR
    # The owner keeps a tenth of what more than 100,000 NEAR earn.
    assert own_rewards(own) > 5 * 1000 * NEAR // 10_000
    assert koinly_rewards(own, tmp_path) == own_rewards(own)
    check_hidden_deposit(chain, own)


@pytest.mark.parametrize("owner_id", ["owner.near", "alice.near"])
def test_a_pool_without_others_shows_rewards_by_its_own_stake(
    owner_id: str, tmp_path: Path
) -> None:
    """What is staked with a pool and is nobody's grows at its pace too."""
    chain = staked(Chain(owner_id=owner_id, others=()))
    own = statement(chain)
    assert own.gaps.empty
    assert own_rewards(own) == chain.total("alice.near") - 1000 * NEAR > 0
    assert koinly_rewards(own, tmp_path) == own_rewards(own)
    check_hidden_deposit(chain, own)


@pytest.mark.parametrize("skip", [1, 2])
def test_a_hidden_deposit_after_skipped_heights_is_a_gap(skip: int) -> None:
    """The block before that of the deposit is not at the height before it."""
    chain = Chain()
    chain.pass_epochs(2)
    chain.skip = skip
    chain.call(POOL, "deposit_and_stake", 500 * NEAR)
    chain.call(POOL, "deposit_and_stake", 500 * NEAR)
    chain.pass_epochs(3)
    chain.world.advance(5)
    check_hidden_deposit(chain, statement(chain), NEAR // 10)


def test_the_gap_of_a_liquid_token_is_no_gain(tmp_path: Path) -> None:
    """Tokens without an event are a gap, and no gain; what the rate added to them is one."""
    chain = Chain(liquid_class=Silent)
    chain.pass_epochs(2)
    chain.call(LIQUID, "deposit_and_stake", 70 * NEAR)
    chain.call(LIQUID, "epoch_stake")
    chain.pass_epochs(3)
    chain.call(LIQUID, "epoch_update_rewards", validator_id=POOL)
    chain.pass_epochs(1)
    chain.call(LIQUID, "ft_transfer", 1, receiver_id="bob.near", amount="1")  # names the token
    chain.call(LIQUID, "deposit_and_stake", 70 * NEAR)
    chain.pass_epochs(3)
    chain.world.advance(5)
    own = statement(chain)
    assert set(own.gaps["asset"]) == {f"nep141:{LIQUID}"}
    gain = sum(own.rewards[own.rewards["pool_id"] == LIQUID]["reward"])
    balances = lk.ft("alice.near", ledger=chain.ledger).set_index("contract_id")["balance"]
    rate = json.loads(chain.world.view(LIQUID, "ft_price", b"{}", chain.world.chain.final).result)
    grown = int(balances[LIQUID]) * int(rate) // NEAR - 140 * NEAR
    assert abs(gain - grown) < 100 < grown  # but for roundings
    assert koinly_rewards(own, tmp_path) == 0
