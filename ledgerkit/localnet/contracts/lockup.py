"""
Lockup contracts: NEAR that an owner cannot spend yet, but can stake.

`Lockup` releases and vests its first balance over time. Methods and results follow
near/core-contracts, lockup. Left out are unstaking, refreshing the known deposit, the whitelist of
pools, private vesting schedules, terminated ones, and the time before transfers were enabled.
"""

from typing import Any

from msgspec import Struct

from ledgerkit.localnet.contract_sdk import U128, Contract, call, state_view, succeeded, view
from ledgerkit.localnet.fees import TGAS
from ledgerkit.localnet.promises import Promise
from ledgerkit.protocol import AccountId

BASE_GAS = 25 * TGAS
MIN_BALANCE_FOR_STORAGE = 35 * 10**23  # yoctoNEAR
NOT_ENOUGH = "The balance that can be deposited to the staking pool is lower than the extra amount"


class StakingLockup(Contract):
    """The base of lockup contracts, whose owner selects one pool and stakes with it."""

    class State(Struct, kw_only=True):
        """The owner, and the deposit with the selected pool."""

        owner_account_id: str
        staking_pool_account_id: str | None = None
        deposit_amount: int = 0
        is_busy: bool = False

    def check_owner(self) -> None:
        is_owner = self.vm.predecessor_id == self.state.owner_account_id
        self.require(is_owner, "Can only be called by the owner")

    def available(self) -> int:
        """Return the account's balance without what its storage needs."""
        raise NotImplementedError

    def transferable(self) -> int:
        """Return what the owner can transfer now."""
        raise NotImplementedError

    @call(payable=True)
    def select_staking_pool(self, staking_pool_account_id: AccountId) -> bool:
        self.check_owner()
        selected = self.state.staking_pool_account_id
        self.require(selected is None, "Staking pool is already selected")
        self.state.staking_pool_account_id = str(staking_pool_account_id)
        return True

    @call(payable=True)
    def deposit_and_stake(self, amount: U128) -> Promise:
        """Stake from the account's balance; locked NEAR too."""
        self._check_idle()
        self.require(self.available() >= amount, NOT_ENOUGH)
        self.state.is_busy = True
        pool_id = self.state.staking_pool_account_id
        self.vm.log(f"Depositing and staking {amount} to the staking pool @{pool_id}")
        promise = self.vm.promise(pool_id)
        promise.function_call("deposit_and_stake", b"", deposit=int(amount), gas=3 * BASE_GAS)
        return self.call_back(promise, "on_staking_pool_deposit_and_stake", BASE_GAS, amount=amount)

    @call(private=True)
    def on_staking_pool_deposit_and_stake(self, amount: U128) -> bool:
        """Add the amount to the known deposit, unless the pool failed."""
        is_done, state = succeeded(self.vm), self.state
        state.is_busy = False
        state.deposit_amount += amount if is_done else 0
        result = "succeeded" if is_done else "has failed"
        pool_id = state.staking_pool_account_id
        self.vm.log(f"The deposit and stake of {amount} to @{pool_id} {result}")
        return is_done

    @call(payable=True)
    def transfer(self, amount: U128, receiver_id: AccountId) -> Promise:
        self.check_owner()
        liquid = self.transferable()
        message = f"The available liquid balance {liquid} is smaller than the requested transfer"
        self.require(0 < amount <= liquid, f"{message} amount {amount}")
        return self.vm.promise(receiver_id).transfer(int(amount))

    def _check_idle(self) -> None:
        self.check_owner()
        self.require(self.state.staking_pool_account_id, "Staking pool is not selected")
        message = "Contract is currently busy with another operation"
        self.require(not self.state.is_busy, message)

    get_owner_account_id = state_view("owner_account_id")
    get_staking_pool_account_id = state_view("staking_pool_account_id")
    get_known_deposited_balance = state_view("deposit_amount", U128)

    @view
    def get_balance(self) -> U128:
        """Return the account's balance and the known deposit."""
        return U128(self.vm.balance + self.state.deposit_amount)


class VestingSchedule(Struct):
    """The times of vesting, in nanoseconds."""

    start_timestamp: U128
    cliff_timestamp: U128
    end_timestamp: U128


class PublicVesting(Struct):
    """A vesting schedule as an argument and as a result."""

    VestingSchedule: VestingSchedule


class Lockup(StakingLockup):
    """A contract whose first balance is released and vests over time."""

    class State(StakingLockup.State, kw_only=True):
        """The schedules; the first balance is the locked amount."""

        lockup_amount: int
        lockup_start: int  # nanoseconds, as the next two
        release_duration: int
        vesting_schedule: VestingSchedule | None

    @call(init=True)
    def new(  # noqa: PLR0917 - the arguments of the original
        self,
        owner_account_id: AccountId,
        lockup_duration: U128,
        transfers_information: dict[str, dict[str, U128]],
        staking_pool_whitelist_account_id: AccountId,  # noqa: ARG002 - left out, see above
        lockup_timestamp: U128 | None = None,
        vesting_schedule: PublicVesting | None = None,
        release_duration: U128 | None = None,
        foundation_account_id: AccountId | None = None,  # noqa: ARG002 - may end a schedule
    ) -> None:
        """Lock the account's balance."""
        enabled = transfers_information["TransfersEnabled"]["transfers_timestamp"]
        self.state = self.State(
            owner_account_id=str(owner_account_id),
            lockup_amount=self.vm.balance,
            lockup_start=max(enabled + lockup_duration, lockup_timestamp or 0),
            release_duration=int(release_duration or 0),
            vesting_schedule=vesting_schedule.VestingSchedule if vesting_schedule else None,
        )

    def available(self) -> int:
        return max(self.vm.balance - MIN_BALANCE_FOR_STORAGE, 0)

    def transferable(self) -> int:
        return min(self.get_owners_balance(), self.available())

    @view
    def get_locked_amount(self) -> U128:
        """Return the amount that is not released or not vested yet."""
        state, now = self.state, self.vm.block_timestamp
        if now < state.lockup_start:
            return U128(state.lockup_amount)
        left = max(state.lockup_start + state.release_duration - now, 0)
        unreleased = state.lockup_amount * left // state.release_duration if left else 0
        schedule = state.vesting_schedule
        return U128(max(unreleased, self.get_unvested_amount(schedule) if schedule else 0))

    @view
    def get_unvested_amount(self, vesting_schedule: VestingSchedule) -> U128:
        """Return the amount that has not vested by a schedule; 0 if the contract has none."""
        amount, now = self.state.lockup_amount, self.vm.block_timestamp
        if self.state.vesting_schedule is None or now >= vesting_schedule.end_timestamp:
            return U128(0)
        if now < vesting_schedule.cliff_timestamp:
            return U128(amount)
        total = vesting_schedule.end_timestamp - vesting_schedule.start_timestamp
        return U128(amount * (vesting_schedule.end_timestamp - now) // total)

    @view
    def get_vesting_information(self) -> Any:
        schedule = self.state.vesting_schedule
        return "None" if schedule is None else PublicVesting(schedule)

    @view
    def get_owners_balance(self) -> U128:
        """Return the balance and the known deposit without the locked amount."""
        return U128(max(self.get_balance() - self.get_locked_amount(), 0))

    @view
    def get_liquid_owners_balance(self) -> U128:
        return U128(self.transferable())

    @view
    def are_transfers_enabled(self) -> bool:
        """Return True, as on mainnet since 2020."""
        return True
