"""Epochs and validators: who validates, with what stake, and what the end of an epoch changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ledgerkit.localnet.chain_types import Account, Proposal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgerkit.localnet.settings import Settings
    from ledgerkit.localnet.state import StateStore


class Epoch(Struct):
    """One epoch's validators, and what was proposed and paid in it."""

    height: int  # how many epochs there were before
    start_height: int
    validators: dict[str, Proposal]
    proposals: dict[str, Proposal]
    rewards: dict[str, int]  # paid at its beginning, for the epoch before


class Epochs:
    """
    The epochs of a chain, from its first on.

    Parameters
    ----------
    settings
        Length and reward.
    validators
        Of the first two epochs.
    """

    def __init__(self, settings: Settings, validators: Iterable[Proposal]) -> None:
        self._settings = settings
        first = {proposal.account_id: proposal for proposal in validators}
        self.all = [Epoch(0, settings.genesis_height, first, {}, {})]
        self.next_validators = first  # of the epoch after the head's

    @property
    def current(self) -> Epoch:
        """The epoch of the head."""
        return self.all[-1]

    def propose(self, proposals: Iterable[Proposal]) -> None:
        """Take what was proposed in a block."""
        self.current.proposals.update({p.account_id: p for p in proposals})

    def turn(self, start_height: int, store: StateStore) -> int:
        """
        Begin an epoch: pay the last one's validators, and unlock what is no longer at stake.

        Parameters
        ----------
        start_height
            Of its first block.
        store
            Where the accounts are; the caller commits.

        Returns
        -------
        minted
            How many yoctoNEAR there are more.
        """
        ended = self.current
        rewards = self._pay(ended, store)
        current = self.next_validators
        later = {name: p for name, p in (current | ended.proposals).items() if p.stake}
        # Who gets a reward has it at stake too, unless it wants otherwise.
        for account_id, reward in rewards.items():
            if account_id not in ended.proposals and account_id in later:
                held = later[account_id]
                later[account_id] = Proposal(account_id, held.public_key, held.stake + reward)
        self.next_validators = later
        self.all.append(Epoch(ended.height + 1, start_height, current, {}, rewards))
        locked = [name for name, held in store.accounts.head.items() if held and held[b""].locked]
        for account_id in locked:
            _unlock(account_id, [ended.validators, current, later], store)
        return sum(rewards.values())

    def _pay(self, ended: Epoch, store: StateStore) -> dict[str, int]:
        """Add a validator's reward to what it has locked."""
        rewards: dict[str, int] = {}
        share = self._settings.reward_per_epoch
        for account_id, validator in ended.validators.items():
            account = store.accounts.get(account_id)
            if share and account is not None:
                rewards[account_id] = reward = validator.stake // share
                _move(account_id, account, reward, 0, store)
        return rewards


def _unlock(account_id: str, stakes: list[dict[str, Proposal]], store: StateStore) -> None:
    """Give back what an account has locked beyond its stake in any epoch that still counts."""
    account = store.accounts.get(account_id)
    if account is None:
        return
    counted = [held[account_id].stake for held in stakes if account_id in held]
    free = account.locked - max(counted, default=0)
    if free > 0:
        _move(account_id, account, -free, free, store)


def _move(account_id: str, account: Account, locked: int, amount: int, store: StateStore) -> None:
    """Change what an account has and has locked."""
    changed = Account(
        account.amount + amount,
        account.locked + locked,
        account.code_hash,
        account.storage_usage,
        account.global_contract,
    )
    store.accounts.put(account_id, b"", changed)
