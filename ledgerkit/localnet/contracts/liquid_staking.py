"""
Liquid staking: shares in one stake with many validators, which are a token.

People deposit and stake here without any call to a pool; what they ask for is settled
later, by whoever calls the `epoch_` methods: these stake with a validator's pool, unstake,
withdraw, and bring in rewards, each with a callback that undoes what failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from ledgerkit.localnet.contract_sdk import STATE_KEY, U128, JsonMap, call, from_json, to_json, view
from ledgerkit.localnet.contracts.fungible_token import (
    SPEC,
    FungibleMetadata,
    FungibleTokenBase,
    balance_records,
)
from ledgerkit.localnet.contracts.staking_pool import EPOCHS_TO_UNLOCK, ceil
from ledgerkit.localnet.fees import TGAS
from ledgerkit.localnet.vm import Promise  # noqa: TC001 - annotations are read when it runs
from ledgerkit.protocol import AccountId  # noqa: TC001 - annotations are read when it runs
from ledgerkit.protocol.borsh import text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ledgerkit.localnet.vm import Vm

NEAR = 10**24
FIRST_STAKE = 10 * NEAR  # nobody's: it keeps the price of a share from being inflated
FIRST_BALANCE = 20 * NEAR
RESERVE = NEAR  # for storage
LEAST = NEAR  # less is not worth a call to a pool
POOL_GAS = 75 * TGAS
CALLBACK_GAS = 25 * TGAS
DETAILS = b"w"
METADATA = FungibleMetadata(spec=SPEC, name="LiNEAR", symbol="LINEAR", decimals=24)


class Unstaked(Struct):
    """What an account has here that is not staked, and from which epoch it can be withdrawn."""

    amount: int = 0
    unlocked_at: int = 0


class Validator(Struct):
    """What the contract has in a pool."""

    staked: int = 0
    unstaked: int = 0


class LiquidAccount(Struct):
    """An account as people read it."""

    account_id: str
    unstaked_balance: U128
    staked_balance: U128
    unstaked_available_epoch_height: int
    can_withdraw: bool


class LiquidStaking(
    FungibleTokenBase, code_name="ledgerkit.localnet.contracts.liquid.LiquidStaking"
):
    """
    Takes deposits, gives shares for them, and stakes with pools once in an epoch.

    Parameters
    ----------
    vm
        The machine.
    """

    class State(FungibleTokenBase.State, kw_only=True):
        """The stake behind the shares, and what of it is still to be settled with pools."""

        owner_id: str
        total_staked: int = FIRST_STAKE
        requested_stake: int = FIRST_STAKE
        requested_unstake: int = 0
        stake_to_settle: int = 0
        unstake_to_settle: int = 0
        settled_at: int = -1  # in no epoch yet
        validators: dict[str, Validator] = field(default_factory=dict)

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self.details = JsonMap(vm, DETAILS, Unstaked)

    # The owner ---------------------------------------------------------------------------

    @call(init=True)
    def new(self, owner_id: AccountId) -> None:
        """Begin, with a first stake from the contract's own balance."""
        self.require(
            self.vm.balance >= FIRST_BALANCE,
            "The account doesn't have enough balance for initialization. "
            f"required: {FIRST_BALANCE}",
        )
        self.state = self.first_state(owner_id)

    @classmethod
    def first_state(cls, owner_id: str) -> State:
        """Make the state of a contract that nobody has used."""
        return cls.State(owner_id=str(owner_id), metadata=METADATA, total_supply=FIRST_STAKE)

    @call
    def add_validator(self, validator_id: AccountId) -> None:
        """Stake with one more pool."""
        self.require(
            self.vm.predecessor_id == self.state.owner_id, "Only owner can perform this action"
        )
        self.require(validator_id not in self.state.validators, "Validator already exists")
        self.state.validators[str(validator_id)] = Validator()

    # People ------------------------------------------------------------------------------

    @call(payable=True)
    def deposit(self) -> None:
        """Take a deposit, unstaked."""
        self._deposit()

    @call(payable=True)
    def deposit_and_stake(self) -> U128:
        """Take a deposit and stake it; tell the shares it buys."""
        return self._stake(self._deposit())

    @call
    def stake(self, amount: U128) -> U128:
        """Stake some of what the caller has unstaked; tell the shares it buys."""
        return self._stake(amount)

    @call
    def stake_all(self) -> U128:
        """Stake all that the caller has unstaked; tell the shares it buys."""
        return self._stake(self._details(self.vm.predecessor_id).amount)

    @call
    def unstake(self, amount: U128) -> None:
        """Sell shares; the amount can be withdrawn four epochs later."""
        self._unstake(amount)

    @call
    def unstake_all(self) -> None:
        """Sell all shares; what they are worth can be withdrawn four epochs later."""
        self._unstake(self._worth(self.accounts.get(self.vm.predecessor_id) or 0))

    @call
    def withdraw(self, amount: U128) -> None:
        """Pay out some of what the caller has unstaked."""
        self._withdraw(amount)

    @call
    def withdraw_all(self) -> None:
        """Pay out all that the caller has unstaked."""
        self._withdraw(self._details(self.vm.predecessor_id).amount)

    @call(payable=True)
    def storage_unregister(self, force: bool | None = None) -> bool:  # noqa: FBT001 - as the base
        """Close the caller's account, unless something can still be withdrawn."""
        account_id = self.vm.predecessor_id
        self.require(
            not self._details(account_id).amount,
            "Cannot delete the account because the unstaked amount is not empty. "
            "Withdraw your balance first.",
        )
        self.details.remove(account_id)
        return super().storage_unregister(force)

    def _deposit(self) -> int:
        """Add the attached deposit to the caller's unstaked balance; it registers, too."""
        account_id, amount = self.vm.predecessor_id, self.vm.attached_deposit
        if account_id not in self.accounts:
            self.register(account_id)
        details = self._details(account_id)
        details.amount += amount
        self.details.put(account_id, details)
        self._tell("deposit", account_id, amount=amount, new_unstaked_balance=details.amount)
        return amount

    def _stake(self, amount: int) -> U128:
        """Buy shares from the caller's unstaked balance."""
        state, account_id = self.state, self.vm.predecessor_id
        details = self._details(account_id)
        shares, charged = self._buy(amount, details.amount)
        details.amount -= charged
        self.details.put(account_id, details)
        grown = ceil(shares * state.total_staked, state.total_supply)
        self.credit(account_id, shares)
        state.total_staked += grown
        state.requested_stake += grown
        told = {"staked_amount": charged, "minted_stake_shares": shares}
        self._tell("stake", account_id, **told, **self._left(account_id, details))
        self.log_mint(account_id, shares, "stake")
        self._tell_totals()
        return U128(shares)

    def _buy(self, amount: int, unstaked: int) -> tuple[int, int]:
        """Tell how many shares an amount buys, and what they cost."""
        self.require(amount > 0, "Staking amount should be positive")
        shares = self._shares(amount)
        self.require(
            shares > 0,
            'The calculated number of "stake" shares received for staking should be positive',
        )
        charged = self._worth(shares)
        self.require(unstaked >= charged, "Not enough unstaked balance to stake")
        return shares, charged

    def _unstake(self, amount: int) -> None:
        """Sell the caller's shares."""
        state, account_id = self.state, self.vm.predecessor_id
        details = self._details(account_id)
        shares, received = self._sell(amount, self.accounts.get(account_id) or 0)
        shrunk = self._worth(shares)
        details.amount += received
        details.unlocked_at = self.vm.epoch_height + EPOCHS_TO_UNLOCK
        self.details.put(account_id, details)
        self.debit(account_id, shares)
        state.total_staked -= shrunk
        state.requested_unstake += shrunk
        told = {"unstaked_amount": received, "burnt_stake_shares": shares}
        left = self._left(account_id, details)
        self._tell("unstake", account_id, epoch=details.unlocked_at, **told, **left)
        self.log_burn(account_id, shares, "unstake")
        self._tell_totals()

    def _sell(self, amount: int, held: int) -> tuple[int, int]:
        """Tell how many shares have to be sold for an amount, and what they bring."""
        staked, total = self.state.total_staked, self.state.total_supply
        self.require(amount > 0, "Unstaking amount should be positive")
        shares = ceil(amount * total, staked)
        self.require(held >= shares, "Not enough staked balance to unstake")
        return shares, ceil(shares * staked, total)

    def _left(self, account_id: str, details: Unstaked) -> dict[str, int]:
        """Tell what an account has after it staked or unstaked."""
        shares = self.balance(account_id)
        return {"new_unstaked_balance": details.amount, "new_stake_shares": shares}

    def _withdraw(self, amount: int) -> None:
        """Pay out of the caller's unstaked balance."""
        account_id = self.vm.predecessor_id
        details = self._details(account_id)
        self.require(amount > 0, "Withdrawal amount should be positive")
        self.require(details.amount >= amount, "Not enough unstaked balance to withdraw")
        self.require(
            details.unlocked_at <= self.vm.epoch_height,
            "The unstaked balance is not yet available due to unstaking delay",
        )
        self.require(
            self.vm.balance - RESERVE >= amount,
            "No enough balance in contract to perform withdraw",
        )
        details.amount -= amount
        self.details.put(account_id, details)
        self._tell("withdraw", account_id, amount=amount, new_unstaked_balance=details.amount)
        self.vm.promise(account_id).transfer(amount)

    # Settling with pools -----------------------------------------------------------------

    @call
    def epoch_stake(self) -> Promise | bool:
        """Stake what is to be staked, with the pool that has least; false if there is nothing."""
        self._settle()
        pool_id = min(self.state.validators, key=self._staked_with, default=None)
        amount = self.state.stake_to_settle
        if pool_id is None or amount < LEAST:
            return self._nothing("stake", amount)
        self.require(self.vm.balance >= amount + RESERVE, "Contract min reserve error")
        self.state.stake_to_settle = 0
        self._tell_pool("epoch_stake_attempt", pool_id, amount)
        promise = self.vm.promise(pool_id)
        promise.function_call("deposit_and_stake", b"", deposit=amount, gas=POOL_GAS)
        return self._then(promise, "validator_staked_callback", pool_id, amount)

    @call(private=True)
    def validator_staked_callback(self, validator_id: AccountId, amount: U128) -> bool:
        """Count what was staked, or try again another time."""
        if self._failed("epoch_stake", validator_id, amount):
            self.state.stake_to_settle += amount
            return False
        self.state.validators[validator_id].staked += amount
        return True

    @call
    def epoch_unstake(self) -> Promise | bool:
        """Unstake what is to be paid out, with the pool that has most; false if nothing is."""
        self._settle()
        pool_id = max(self.state.validators, key=self._staked_with, default=None)
        wanted = self.state.unstake_to_settle
        amount = 0 if pool_id is None else min(wanted, self._staked_with(pool_id))
        if pool_id is None or amount < LEAST:
            return self._nothing("unstake", amount)
        self.state.unstake_to_settle -= amount
        self._tell_pool("epoch_unstake_attempt", pool_id, amount)
        promise = self.vm.promise(pool_id)
        promise.function_call("unstake", to_json({"amount": U128(amount)}), gas=POOL_GAS)
        return self._then(promise, "validator_unstaked_callback", pool_id, amount)

    @call(private=True)
    def validator_unstaked_callback(self, validator_id: AccountId, amount: U128) -> bool:
        """Count what was unstaked, or try again another time."""
        if self._failed("epoch_unstake", validator_id, amount):
            self.state.unstake_to_settle += amount
            return False
        validator = self.state.validators[validator_id]
        validator.staked -= amount
        validator.unstaked += amount
        return True

    @call
    def epoch_withdraw(self, validator_id: AccountId) -> Promise:
        """Fetch what was unstaked with a pool."""
        amount = self._validator(validator_id).unstaked
        self._tell_pool("epoch_withdraw_attempt", validator_id, amount)
        promise = self.vm.promise(validator_id)
        promise.function_call("withdraw", to_json({"amount": U128(amount)}), gas=POOL_GAS)
        return self._then(promise, "validator_withdraw_callback", validator_id, amount)

    @call(private=True)
    def validator_withdraw_callback(self, validator_id: AccountId, amount: U128) -> bool:
        """Count what was fetched."""
        if self._failed("epoch_withdraw", validator_id, amount):
            return False
        self.state.validators[validator_id].unstaked -= amount
        return True

    @call
    def epoch_update_rewards(self, validator_id: AccountId) -> Promise:
        """Ask a pool what it earned."""
        self._validator(validator_id)
        promise = self.vm.promise(validator_id)
        promise.function_call("ping", b"", gas=POOL_GAS)
        asked = {"account_id": self.vm.current_account_id}
        promise.function_call("get_account_total_balance", to_json(asked), gas=CALLBACK_GAS)
        return self._then(promise, "validator_get_balance_callback", validator_id)

    @call(private=True)
    def validator_get_balance_callback(self, validator_id: AccountId) -> None:
        """Let rewards raise the price of a share."""
        told = from_json(self.vm.promise_results[0])
        if not isinstance(told, str) or not told.isascii() or not told.isdigit():
            return
        validator = self._validator(validator_id)
        old, new = validator.staked + validator.unstaked, int(told)
        rewards = max(new - old, 0)
        self._tell_linear(
            "epoch_update_rewards",
            {
                "validator_id": validator_id,
                "old_balance": U128(old),
                "new_balance": U128(new),
                "rewards": U128(rewards),
            },
        )
        validator.staked = max(new - validator.unstaked, 0)
        self.state.total_staked += rewards

    def _settle(self) -> None:
        """Set off what is to be staked against what is to be unstaked, once in an epoch."""
        state = self.state
        if state.settled_at == self.vm.epoch_height:
            return
        state.settled_at = self.vm.epoch_height
        stake = state.stake_to_settle + state.requested_stake
        unstake = state.unstake_to_settle + state.requested_unstake
        both = min(stake, unstake)
        state.stake_to_settle, state.unstake_to_settle = stake - both, unstake - both
        state.requested_stake = state.requested_unstake = 0
        left = {
            "stake_amount_to_settle": U128(stake - both),
            "unstake_amount_to_settle": U128(unstake - both),
        }
        self._tell_linear("epoch_cleanup", left)

    def _nothing(self, what: str, amount: int) -> bool:
        """Log why there is nothing to settle."""
        if not self.state.validators:
            self.vm.log(f"no candidate found to {what}")
        elif not amount:
            self.vm.log(f"no need to {what}, amount to settle is zero")
        else:
            self.vm.log(f"{what} amount too low: {amount}")
        return False

    def _then(
        self, promise: Promise, method_name: str, pool_id: str, amount: int | None = None
    ) -> Promise:
        """Have a pool's answer brought back."""
        told: dict[str, str | U128] = {"validator_id": pool_id}
        if amount is not None:
            told["amount"] = U128(amount)
        callback = promise.then(self.vm.current_account_id)
        return callback.function_call(method_name, to_json(told), gas=CALLBACK_GAS)

    def _failed(self, event: str, pool_id: str, amount: int) -> bool:
        """Tell, and log, whether a pool failed."""
        has_failed = self.vm.promise_results[0] is None
        self._tell_pool(f"{event}_{'failed' if has_failed else 'success'}", pool_id, amount)
        return has_failed

    def _validator(self, pool_id: str) -> Validator:
        """Give what the contract has in a pool."""
        validator: Validator | None = self.state.validators.get(pool_id)
        if validator is None:
            self.vm.panic("Validator not exist")
        return validator

    def _staked_with(self, pool_id: str) -> int:
        """Tell what the contract has staked with a pool."""
        return self._validator(pool_id).staked

    # Views -------------------------------------------------------------------------------

    @view
    def get_account(self, account_id: AccountId) -> LiquidAccount:
        """Tell what an account has here: zeros if it never came."""
        details = self._details(account_id)
        return LiquidAccount(
            str(account_id),
            U128(details.amount),
            U128(self._worth(self.accounts.get(account_id) or 0)),
            details.unlocked_at,
            details.unlocked_at <= self.vm.epoch_height,
        )

    @view
    def get_account_staked_balance(self, account_id: AccountId) -> U128:
        """Tell what an account's shares are worth."""
        return self.get_account(account_id).staked_balance

    @view
    def get_account_unstaked_balance(self, account_id: AccountId) -> U128:
        """Tell what an account has unstaked."""
        return self.get_account(account_id).unstaked_balance

    @view
    def get_account_total_balance(self, account_id: AccountId) -> U128:
        """Tell what an account has, staked or not."""
        account = self.get_account(account_id)
        return U128(account.staked_balance + account.unstaked_balance)

    @view
    def is_account_unstaked_balance_available(self, account_id: AccountId) -> bool:
        """Tell whether what an account has unstaked can be withdrawn in this epoch."""
        return self.get_account(account_id).can_withdraw

    @view
    def get_total_staked_balance(self) -> U128:
        """Tell what all shares are worth."""
        return U128(self.state.total_staked)

    @view
    def get_owner_id(self) -> str:
        """Tell who chooses the pools."""
        return str(self.state.owner_id)

    @view
    def get_validators(self) -> list[str]:
        """List the pools, in the order they were added."""
        return list(self.state.validators)

    @view
    def ft_price(self) -> U128:
        """Tell what 10^24 shares are worth."""
        return U128(self._worth(NEAR))

    def _details(self, account_id: str) -> Unstaked:
        """Give what an account has unstaked."""
        return self.details.get(account_id) or Unstaked()

    def _shares(self, amount: int) -> int:
        """Count the shares that an amount buys, rounded down."""
        return int(amount * self.state.total_supply // self.state.total_staked)

    def _worth(self, shares: int) -> int:
        """Tell what shares are worth, rounded down."""
        return int(shares * self.state.total_staked // self.state.total_supply)

    # Telling -----------------------------------------------------------------------------

    def _tell(
        self, event: str, account_id: str, *, epoch: int | None = None, **amounts: int
    ) -> None:
        """Log what an account did."""
        told = {name: U128(amount) for name, amount in amounts.items()}
        row = {"account_id": account_id, **told, "unstaked_available_epoch_height": epoch}
        self._tell_linear(event, row)

    def _tell_pool(self, event: str, pool_id: str, amount: int) -> None:
        """Log what was done with a pool."""
        self._tell_linear(event, {"validator_id": pool_id, "amount": U128(amount)})

    def _tell_linear(self, event: str, row: Mapping[str, str | int | None]) -> None:
        """Log an event of this contract's own standard."""
        self.event("linear", "1.0.1", event, [dict(row)])

    def _tell_totals(self) -> None:
        """Log what all shares are worth, and their number."""
        self.vm.log(
            f"Contract total staked balance is {self.state.total_staked}. "
            f"Total number of shares {self.state.total_supply}"
        )

    # Worlds ------------------------------------------------------------------------------

    @classmethod
    def genesis(
        cls,
        owner_id: str,
        holders: Mapping[str, int],
        validators: Sequence[str] = (),
    ) -> Iterator[tuple[bytes, bytes]]:
        """
        Write the records that `new`, `add_validator` and `deposit_and_stake` would leave.

        The account has to have `FIRST_BALANCE` and all that is staked: nothing is settled
        with the pools yet.

        Parameters
        ----------
        owner_id
            Who chooses the pools.
        holders
            What each account deposited and staked; at first a share is a yoctoNEAR.
        validators
            The pools to stake with.

        Yields
        ------
        key, value
            A record.
        """
        state, staked = cls.first_state(owner_id), sum(holders.values())
        state.total_supply += staked
        state.total_staked += staked
        state.requested_stake += staked
        state.validators = {pool_id: Validator() for pool_id in validators}
        yield STATE_KEY, to_json(state)
        yield from balance_records(holders)
        for account_id in holders:
            yield DETAILS + text(account_id), to_json(Unstaked())
