"""
Liquid staking: a fungible token whose units are shares of a stake with many validators.

Deposits, stakes and unstakes of users call no pool. The `epoch_` methods, which any account
can call, settle them once an epoch: they stake, unstake and withdraw with the validators'
pools and add rewards, each with a callback that reverts a failed step. Methods, logs and
panics follow contracts/linear of linear-protocol/LiNEAR.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from ledgerkit.localnet.contract_sdk import (
    STATE_KEY,
    U128,
    JsonMap,
    call,
    from_json,
    state_view,
    to_json,
    view,
)
from ledgerkit.localnet.contracts.fungible_token import (
    SPEC,
    FungibleMetadata,
    FungibleTokenBase,
    balance_records,
)
from ledgerkit.localnet.contracts.staking_pool import EPOCHS_TO_UNLOCK, StakeShares, ceil
from ledgerkit.localnet.fees import TGAS
from ledgerkit.localnet.promises import Promise
from ledgerkit.localnet.vm import Vm
from ledgerkit.protocol import AccountId
from ledgerkit.protocol.borsh import text

NEAR = 10**24
FIRST_STAKE = 10 * NEAR  # owned by no account: it prevents inflating the share price
FIRST_BALANCE = 20 * NEAR
RESERVE = NEAR  # kept for storage
MIN_SETTLEMENT = NEAR  # a smaller amount is not worth a call to a pool
POOL_GAS = 75 * TGAS
CALLBACK_GAS = 25 * TGAS
UNSTAKED = b"w"  # prefix of storage keys
METADATA = FungibleMetadata(spec=SPEC, name="LiNEAR", symbol="LINEAR", decimals=24)


class Unstaked(Struct):
    """An account's unstaked balance, and the epoch from which it can be withdrawn."""

    amount: int = 0
    unlocked_at: int = 0


class Validator(Struct):
    """The contract's balances with a validator's pool."""

    staked: int = 0
    unstaked: int = 0


class LiquidAccount(Struct):
    """An account as `get_account` returns it."""

    account_id: str
    unstaked_balance: U128
    staked_balance: U128
    unstaked_available_epoch_height: int
    can_withdraw: bool


class LiquidStaking(
    FungibleTokenBase, StakeShares, code_name="ledgerkit.localnet.contracts.liquid.LiquidStaking"
):
    """A token of staking shares, with the methods of a staking pool."""

    class State(FungibleTokenBase.State, kw_only=True):
        """The stake of all shares, and the amounts still to be settled with the pools."""

        owner_id: str
        total_staked: int = FIRST_STAKE
        requested_stake: int = FIRST_STAKE
        requested_unstake: int = 0
        stake_to_settle: int = 0
        unstake_to_settle: int = 0
        settled_at: int = -1  # the epoch of the last settlement
        validators: dict[str, Validator] = field(default_factory=dict)

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self.unstaked = JsonMap(vm, UNSTAKED, Unstaked)

    # The owner's methods -----------------------------------------------------------------

    @call(init=True)
    def new(self, owner_id: AccountId) -> None:
        """Initialize the contract with a first stake from its own balance."""
        self.require(
            self.vm.balance >= FIRST_BALANCE,
            "The account doesn't have enough balance for initialization. "
            f"required: {FIRST_BALANCE}",
        )
        self.state = self.first_state(owner_id)

    @classmethod
    def first_state(cls, owner_id: str) -> State:
        return cls.State(owner_id=str(owner_id), metadata=METADATA, total_supply=FIRST_STAKE)

    @call
    def add_validator(self, validator_id: AccountId) -> None:
        self.require(
            self.vm.predecessor_id == self.state.owner_id, "Only owner can perform this action"
        )
        self.require(validator_id not in self.state.validators, "Validator already exists")
        self.state.validators[str(validator_id)] = Validator()

    # Methods of users --------------------------------------------------------------------

    @call(payable=True)
    def deposit(self) -> None:
        self._deposit()

    @call(payable=True)
    def deposit_and_stake(self) -> U128:
        """Stake the deposit; return the shares it buys."""
        return self._stake(self._deposit())

    @call
    def stake(self, amount: U128) -> U128:
        return self._stake(amount)

    @call
    def stake_all(self) -> U128:
        return self._stake(self._unstaked_of(self.vm.predecessor_id).amount)

    @call
    def unstake(self, amount: U128) -> None:
        """Unstake an amount, which can be withdrawn four epochs later."""
        self._unstake(amount)

    @call
    def unstake_all(self) -> None:
        self._unstake(self.value_of(self.accounts.get(self.vm.predecessor_id) or 0))

    @call
    def withdraw(self, amount: U128) -> None:
        self._withdraw(amount)

    @call
    def withdraw_all(self) -> None:
        self._withdraw(self._unstaked_of(self.vm.predecessor_id).amount)

    @call(payable=True)
    def storage_unregister(self, force: bool | None = None) -> bool:  # noqa: FBT001 - as in the base
        """Unregister the caller, or panic if its unstaked balance is not 0."""
        account_id = self.vm.predecessor_id
        self.require(
            not self._unstaked_of(account_id).amount,
            "Cannot delete the account because the unstaked amount is not empty. "
            "Withdraw your balance first.",
        )
        self.unstaked.remove(account_id)
        return super().storage_unregister(force)

    def _deposit(self) -> int:
        """Add the deposit to the caller's unstaked balance, and register the caller."""
        account_id, amount = self.vm.predecessor_id, self.vm.attached_deposit
        if account_id not in self.accounts:
            self.register(account_id)
        unstaked = self._unstaked_of(account_id)
        unstaked.amount += amount
        self.unstaked.put(account_id, unstaked)
        self._log_account_event(
            "deposit", account_id, amount=amount, new_unstaked_balance=unstaked.amount
        )
        return amount

    def _stake(self, amount: int) -> U128:
        state, account_id = self.state, self.vm.predecessor_id
        unstaked = self._unstaked_of(account_id)
        shares, charged = self.price_purchase(amount, unstaked.amount)
        unstaked.amount -= charged
        self.unstaked.put(account_id, unstaked)
        # The increase is rounded up, so that the price of a share never falls.
        increase = ceil(shares * state.total_staked, state.total_supply)
        self.credit(account_id, shares)
        state.total_staked += increase
        state.requested_stake += increase
        amounts = {"staked_amount": charged, "minted_stake_shares": shares}
        balances = self._new_balances(account_id, unstaked)
        self._log_account_event("stake", account_id, **amounts, **balances)
        self.log_mint(account_id, shares, "stake")
        self.log_totals()
        return U128(shares)

    def _unstake(self, amount: int) -> None:
        state, account_id = self.state, self.vm.predecessor_id
        unstaked = self._unstaked_of(account_id)
        shares, received = self.price_sale(amount, self.accounts.get(account_id) or 0)
        decrease = self.value_of(shares)
        unstaked.amount += received
        unstaked.unlocked_at = self.vm.epoch_height + EPOCHS_TO_UNLOCK
        self.unstaked.put(account_id, unstaked)
        self.debit(account_id, shares)
        state.total_staked -= decrease
        state.requested_unstake += decrease
        amounts = {"unstaked_amount": received, "burnt_stake_shares": shares}
        balances = self._new_balances(account_id, unstaked)
        self._log_account_event(
            "unstake", account_id, epoch=unstaked.unlocked_at, **amounts, **balances
        )
        self.log_burn(account_id, shares, "unstake")
        self.log_totals()

    def _new_balances(self, account_id: str, unstaked: Unstaked) -> dict[str, int]:
        shares = self.balance(account_id)
        return {"new_unstaked_balance": unstaked.amount, "new_stake_shares": shares}

    def _withdraw(self, amount: int) -> None:
        account_id = self.vm.predecessor_id
        unstaked = self._unstaked_of(account_id)
        self.check_withdrawal(amount, unstaked.amount, unstaked.unlocked_at)
        self.require(
            self.vm.balance - RESERVE >= amount,
            "No enough balance in contract to perform withdraw",
        )
        unstaked.amount -= amount
        self.unstaked.put(account_id, unstaked)
        self._log_account_event(
            "withdraw", account_id, amount=amount, new_unstaked_balance=unstaked.amount
        )
        self.vm.promise(account_id).transfer(amount)

    # Settlement with the pools -----------------------------------------------------------

    @call
    def epoch_stake(self) -> Promise | bool:
        """Stake the net amount with the pool that has the least; return false if it is too low."""
        self._net_requests()
        pool_id = min(self.state.validators, key=self._staked_with, default=None)
        amount = self.state.stake_to_settle
        if pool_id is None or amount < MIN_SETTLEMENT:
            return self._log_no_settlement("stake", amount)
        self.require(self.vm.balance >= amount + RESERVE, "Contract min reserve error")
        self.state.stake_to_settle = 0
        self._log_pool_event("epoch_stake_attempt", pool_id, amount)
        promise = self.vm.promise(pool_id)
        promise.function_call("deposit_and_stake", b"", deposit=amount, gas=POOL_GAS)
        return self._add_callback(promise, "validator_staked_callback", pool_id, amount)

    @call(private=True)
    def validator_staked_callback(self, validator_id: AccountId, amount: U128) -> bool:
        """Add the amount to the pool's staked balance, or to the next settlement on failure."""
        if self._log_failed("epoch_stake", validator_id, amount):
            self.state.stake_to_settle += amount
            return False
        self.state.validators[validator_id].staked += amount
        return True

    @call
    def epoch_unstake(self) -> Promise | bool:
        """Unstake the net amount with the pool that has the most; return false if it is too low."""
        self._net_requests()
        pool_id = max(self.state.validators, key=self._staked_with, default=None)
        unstake = self.state.unstake_to_settle
        amount = 0 if pool_id is None else min(unstake, self._staked_with(pool_id))
        if pool_id is None or amount < MIN_SETTLEMENT:
            return self._log_no_settlement("unstake", amount)
        self.state.unstake_to_settle -= amount
        return self._call_pool("unstake", pool_id, amount, "validator_unstaked_callback")

    @call(private=True)
    def validator_unstaked_callback(self, validator_id: AccountId, amount: U128) -> bool:
        """Move the amount to the pool's unstaked balance, or to the next settlement on failure."""
        if self._log_failed("epoch_unstake", validator_id, amount):
            self.state.unstake_to_settle += amount
            return False
        validator = self.state.validators[validator_id]
        validator.staked -= amount
        validator.unstaked += amount
        return True

    @call
    def epoch_withdraw(self, validator_id: AccountId) -> Promise:
        amount = self._validator(validator_id).unstaked
        return self._call_pool("withdraw", validator_id, amount, "validator_withdraw_callback")

    @call(private=True)
    def validator_withdraw_callback(self, validator_id: AccountId, amount: U128) -> bool:
        """Subtract a withdrawn amount from the pool's record."""
        if self._log_failed("epoch_withdraw", validator_id, amount):
            return False
        self.state.validators[validator_id].unstaked -= amount
        return True

    @call
    def epoch_update_rewards(self, validator_id: AccountId) -> Promise:
        """Ping a pool and read the contract's total balance with it."""
        self._validator(validator_id)
        promise = self.vm.promise(validator_id)
        promise.function_call("ping", b"", gas=POOL_GAS)
        args = to_json({"account_id": self.vm.current_account_id})
        promise.function_call("get_account_total_balance", args, gas=CALLBACK_GAS)
        callback = "validator_get_balance_callback"
        return self.call_back(promise, callback, CALLBACK_GAS, validator_id=validator_id)

    @call(private=True)
    def validator_get_balance_callback(self, validator_id: AccountId) -> None:
        """Add the rewards to the total stake, which raises the price of a share."""
        balance = from_json(self.vm.promise_results[0], U128)
        if balance is None:
            return
        validator = self._validator(validator_id)
        old_balance = validator.staked + validator.unstaked
        rewards = max(balance - old_balance, 0)
        balances = {"old_balance": U128(old_balance), "new_balance": balance}
        row = {"validator_id": validator_id, **balances, "rewards": U128(rewards)}
        self._log_linear_event("epoch_update_rewards", row)
        validator.staked = max(balance - validator.unstaked, 0)
        self.state.total_staked += rewards

    def _net_requests(self) -> None:
        """Offset the requested stakes and unstakes against each other, once an epoch."""
        state = self.state
        if state.settled_at == self.vm.epoch_height:
            return
        state.settled_at = self.vm.epoch_height
        stake = state.stake_to_settle + state.requested_stake
        unstake = state.unstake_to_settle + state.requested_unstake
        offset = min(stake, unstake)
        state.stake_to_settle, state.unstake_to_settle = stake - offset, unstake - offset
        state.requested_stake = state.requested_unstake = 0
        row = {
            "stake_amount_to_settle": U128(stake - offset),
            "unstake_amount_to_settle": U128(unstake - offset),
        }
        self._log_linear_event("epoch_cleanup", row)

    def _log_no_settlement(self, operation: str, amount: int) -> bool:
        """Log the reason for not settling an amount; return False."""
        if not self.state.validators:
            self.vm.log(f"no candidate found to {operation}")
        elif not amount:
            self.vm.log(f"no need to {operation}, amount to settle is zero")
        else:
            self.vm.log(f"{operation} amount too low: {amount}")
        return False

    def _call_pool(self, method_name: str, pool_id: str, amount: int, callback: str) -> Promise:
        """Call a method of a pool with an amount, and then a callback."""
        self._log_pool_event(f"epoch_{method_name}_attempt", pool_id, amount)
        promise = self.vm.promise(pool_id)
        promise.function_call(method_name, to_json({"amount": U128(amount)}), gas=POOL_GAS)
        return self._add_callback(promise, callback, pool_id, amount)

    def _add_callback(
        self, promise: Promise, method_name: str, pool_id: str, amount: int
    ) -> Promise:
        args = {"validator_id": pool_id, "amount": U128(amount)}
        return self.call_back(promise, method_name, CALLBACK_GAS, **args)

    def _log_failed(self, event: str, pool_id: str, amount: int) -> bool:
        """Log the result of a call to a pool; return True if it failed."""
        has_failed = self.vm.promise_results[0] is None
        self._log_pool_event(f"{event}_{'failed' if has_failed else 'success'}", pool_id, amount)
        return has_failed

    def _validator(self, pool_id: str) -> Validator:
        validator: Validator | None = self.state.validators.get(pool_id)
        if validator is None:
            self.vm.panic("Validator not exist")
        return validator

    def _staked_with(self, pool_id: str) -> int:
        return self._validator(pool_id).staked

    # Views -------------------------------------------------------------------------------

    @view
    def get_account(self, account_id: AccountId) -> LiquidAccount:
        """Return an account's balances, zeros for an unknown account."""
        unstaked = self._unstaked_of(account_id)
        return LiquidAccount(
            str(account_id),
            U128(unstaked.amount),
            U128(self.value_of(self.accounts.get(account_id) or 0)),
            unstaked.unlocked_at,
            unstaked.unlocked_at <= self.vm.epoch_height,
        )

    get_total_staked_balance = state_view("total_staked", U128)
    get_owner_id = state_view("owner_id")
    get_validators = state_view("validators", list)

    @view
    def ft_price(self) -> U128:
        """Return the value of 10^24 shares."""
        return U128(self.value_of(NEAR))

    def _unstaked_of(self, account_id: str) -> Unstaked:
        return self.unstaked.get(account_id) or Unstaked()

    def stake_totals(self) -> tuple[int, int]:
        return self.state.total_staked, self.state.total_supply

    # Logs --------------------------------------------------------------------------------

    def _log_account_event(
        self, event: str, account_id: str, *, epoch: int | None = None, **amounts: int
    ) -> None:
        members = {name: U128(amount) for name, amount in amounts.items()}
        row = {"account_id": account_id, **members, "unstaked_available_epoch_height": epoch}
        self._log_linear_event(event, row)

    def _log_pool_event(self, event: str, pool_id: str, amount: int) -> None:
        self._log_linear_event(event, {"validator_id": pool_id, "amount": U128(amount)})

    def _log_linear_event(self, event: str, row: Mapping[str, str | int | None]) -> None:
        self.event("linear", "1.0.1", event, [dict(row)])

    # Genesis -----------------------------------------------------------------------------

    @classmethod
    def genesis(
        cls, owner_id: str, holders: Mapping[str, int], validators: Sequence[str] = ()
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the records of stakes; the account has to own their sum and `FIRST_BALANCE`."""
        state, staked = cls.first_state(owner_id), sum(holders.values())
        state.total_supply += staked
        state.total_staked += staked
        state.requested_stake += staked
        state.validators = {pool_id: Validator() for pool_id in validators}
        yield STATE_KEY, to_json(state)
        yield from balance_records(holders)
        for account_id in holders:
            yield UNSTAKED + text(account_id), to_json(Unstaked())
