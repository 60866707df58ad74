"""Epochs and their validators: stakes, rewards and the release of locked balances."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from ledgerkit.localnet.chain_types import Proposal

if TYPE_CHECKING:
    from ledgerkit.localnet.settings import Settings
    from ledgerkit.localnet.state import StateStore


class Epoch(Struct):
    """One epoch: its validators, and the proposals and rewards in it."""

    height: int  # the number of epochs before it
    start_height: int
    validators: dict[str, Proposal]
    proposals: dict[str, Proposal]
    rewards: dict[str, int]  # paid at its beginning for the previous epoch


class Epochs:
    """The epochs of a chain."""

    def __init__(self, settings: Settings, validators: Iterable[Proposal]) -> None:
        self._settings = settings
        genesis_validators = {proposal.account_id: proposal for proposal in validators}
        self.all = [Epoch(0, settings.genesis_height, genesis_validators, {}, {})]
        self.next_validators = genesis_validators  # the validators after the current epoch

    @property
    def current(self) -> Epoch:
        return self.all[-1]

    def validators_after(self, epoch: Epoch) -> Iterable[Proposal]:
        """Return the validators of the epoch that follows `epoch`."""
        is_current = epoch is self.current
        later = self.next_validators if is_current else self.all[epoch.height + 1].validators
        return later.values()

    def stakes(self) -> dict[str, int]:
        """Return the stakes of the current epoch's validators, in yoctoNEAR."""
        return {name: proposal.stake for name, proposal in self.current.validators.items()}

    def add_proposals(self, proposals: Iterable[Proposal]) -> None:
        self.current.proposals.update({p.account_id: p for p in proposals})

    def begin_epoch(self, start_height: int, store: StateStore) -> int:
        """Start an epoch: pay rewards, release unstaked balances; return the minted yoctoNEAR."""
        previous = self.current
        rewards = self._pay_rewards(previous, store)
        current = self.next_validators
        stakes = current | previous.proposals
        later = {account_id: proposal for account_id, proposal in stakes.items() if proposal.stake}
        # A reward is staked too, unless the validator itself proposed a stake.
        for account_id, reward in rewards.items():
            if account_id not in previous.proposals and account_id in later:
                staked = later[account_id]
                later[account_id] = Proposal(account_id, staked.public_key, staked.stake + reward)
        self.next_validators = later
        self.all.append(Epoch(previous.height + 1, start_height, current, {}, rewards))
        # What is locked beyond the highest stake in these epochs is released.
        eras = (previous.validators, current, later)
        heads = store.accounts.head.items()
        for account_id, account in [(name, values[b""]) for name, values in heads if values]:
            seats = [validators[account_id] for validators in eras if account_id in validators]
            excess = account.locked - max((seat.stake for seat in seats), default=0)
            if excess > 0:
                store.accounts.put(account_id, b"", account.plus(amount=excess, locked=-excess))
        return sum(rewards.values())

    def _pay_rewards(self, epoch: Epoch, store: StateStore) -> dict[str, int]:
        rewards: dict[str, int] = {}
        divisor = self._settings.reward_per_epoch
        for account_id, validator in epoch.validators.items():
            account = store.accounts.get(account_id)
            if divisor and account is not None:
                rewards[account_id] = reward = validator.stake // divisor
                store.accounts.put(account_id, b"", account.plus(locked=reward))
        return rewards
