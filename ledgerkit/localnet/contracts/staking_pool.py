"""
A staking pool: the stake of many accounts with one validator.

An account owns shares of the staked balance. Rewards raise the price of a share, so that no
account's record changes when they arrive. Divisions are rounded in the pool's favour, a
small guarantee fund pays the difference, and the price never falls. Methods, logs and
panics follow near/core-contracts, staking-pool.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Never

from msgspec import Struct

from ledgerkit.localnet.contract_sdk import (
    STATE_KEY,
    U128,
    Contract,
    JsonMap,
    call,
    page,
    state_view,
    to_json,
    view,
)
from ledgerkit.localnet.execution_errors import PanicError
from ledgerkit.localnet.fees import TGAS
from ledgerkit.localnet.promises import Promise
from ledgerkit.localnet.vm import Vm
from ledgerkit.protocol import AccountId, PublicKey
from ledgerkit.protocol.borsh import text

GUARANTEE_FUND = 10**12  # yoctoNEAR that pay for rounding
EPOCHS_TO_UNLOCK = 4

# A Rust panic ends with its source line, which differs between revisions of the contract.
_LINES = {
    "Withdrawal amount should be positive": "internal.rs:48:9",
    "Not enough unstaked balance to withdraw": "internal.rs:52:9",
    "The unstaked balance is not yet available due to unstaking delay": "internal.rs:56:9",
    "Staking amount should be positive": "internal.rs:76:9",
    'The calculated number of "stake" shares received for staking should be positive': (
        "internal.rs:84:9"
    ),
    "Not enough unstaked balance to stake": "internal.rs:97:9",
    "Unstaking amount should be positive": "internal.rs:130:9",
    "The contract doesn't have staked balance": "internal.rs:135:9",
    "Not enough staked balance to unstake": "internal.rs:146:9",
    "The new total balance should not be less than the old total balance": "internal.rs:213:9",
    "The reward fee must be less or equal to 1": "lib.rs:127:9",
    "Account balance too low": "lib.rs:190:9",
}


def ceil(number: int, divisor: int) -> int:
    """Divide, rounding up."""
    return -(-number // divisor)


class Fraction(Struct, frozen=True):
    """The owner's part of a reward."""

    numerator: int
    denominator: int


class Delegator(Struct):
    """The balances of an account with the pool."""

    index: int  # in the pool's list
    unstaked: int = 0
    shares: int = 0
    unlocked_at: int = 0  # the first epoch in which `unstaked` can be withdrawn


class HumanReadableAccount(Struct):
    """An account as the view methods return it."""

    account_id: str
    unstaked_balance: U128
    staked_balance: U128
    can_withdraw: bool


class StakeShares(Contract):
    """The base of contracts that sell shares of a stake, whose price rises with the rewards."""

    def stake_totals(self) -> tuple[int, int]:
        """Return the staked balance, and the number of shares of it."""
        raise NotImplementedError

    def get_account(self, account_id: Any) -> Any:  # each contract has its own members
        """Return an account's balances."""
        raise NotImplementedError

    def price_purchase(self, amount: int, unstaked: int) -> tuple[int, int]:
        """Return the shares that an amount buys, and their cost."""
        self.require(amount > 0, "Staking amount should be positive")
        shares = self.shares_for(amount)
        self.require(
            shares > 0,
            'The calculated number of "stake" shares received for staking should be positive',
        )
        charged = self.value_of(shares)
        self.require(unstaked >= charged, "Not enough unstaked balance to stake")
        return shares, charged

    def price_sale(self, amount: int, owned_shares: int) -> tuple[int, int]:
        """Return the shares to sell for an amount, and their proceeds."""
        staked, total = self.stake_totals()
        self.require(amount > 0, "Unstaking amount should be positive")
        self.require(staked > 0, "The contract doesn't have staked balance")
        shares = ceil(amount * total, staked)
        self.require(owned_shares >= shares, "Not enough staked balance to unstake")
        return shares, ceil(shares * staked, total)

    def check_withdrawal(self, amount: int, unstaked: int, unlocked_at: int) -> None:
        """Panic if an amount cannot be withdrawn from an unstaked balance in this epoch."""
        self.require(amount > 0, "Withdrawal amount should be positive")
        self.require(unstaked >= amount, "Not enough unstaked balance to withdraw")
        self.require(
            unlocked_at <= self.vm.epoch_height,
            "The unstaked balance is not yet available due to unstaking delay",
        )

    def shares_for(self, amount: int) -> int:
        """Return the shares that an amount buys, rounded down."""
        staked, total = self.stake_totals()
        self.require(staked > 0, "The total staked balance can't be 0")
        return amount * total // staked

    def value_of(self, shares: int) -> int:
        """Return the value of shares, rounded down."""
        staked, total = self.stake_totals()
        self.require(total > 0, "The total number of stake shares can't be 0")
        return shares * staked // total

    def log_totals(self) -> None:
        staked, total = self.stake_totals()
        self.vm.log(f"Contract total staked balance is {staked}. Total number of shares {total}")

    @view
    def get_account_staked_balance(self, account_id: str) -> U128:
        return U128(self.get_account(account_id).staked_balance)

    @view
    def get_account_unstaked_balance(self, account_id: str) -> U128:
        return U128(self.get_account(account_id).unstaked_balance)

    @view
    def get_account_total_balance(self, account_id: str) -> U128:
        account = self.get_account(account_id)
        return U128(account.staked_balance + account.unstaked_balance)

    @view
    def is_account_unstaked_balance_available(self, account_id: str) -> bool:
        return bool(self.get_account(account_id).can_withdraw)


class StakingPool(StakeShares, code_name="ledgerkit.localnet.contracts.pool.StakingPool"):
    """A contract that stakes deposits with its own account and distributes the rewards."""

    class State(Struct):
        """The pool's totals and settings."""

        owner_id: str
        stake_public_key: str
        reward_fee_fraction: Fraction
        last_epoch_height: int
        last_total_balance: int
        total_staked_balance: int
        total_stake_shares: int
        accounts: int = 0
        paused: bool = False  # always: only the real contract can be paused

    prefix: ClassVar[bytes] = b"u"
    list_prefix: ClassVar[bytes] = b"i"

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self.accounts = JsonMap(vm, self.prefix, Delegator)
        self.names = JsonMap(vm, self.list_prefix, str)

    @call(init=True)
    def new(
        self, owner_id: AccountId, stake_public_key: PublicKey, reward_fee_fraction: Fraction
    ) -> None:
        """Initialize the pool; its own balance stays staked."""
        if reward_fee_fraction.denominator == 0:
            _panic(
                "assertion failed: `(left != right)`\n  left: `0`,\n right: `0`: "
                "Denominator must be a positive number",
                "lib.rs:126:9",
            )
        self.require(
            0 <= reward_fee_fraction.numerator <= reward_fee_fraction.denominator,
            "The reward fee must be less or equal to 1",
        )
        balance = self.vm.balance
        self.require(balance > GUARANTEE_FUND, "Account balance too low")
        self.state = self.first_state(
            owner_id, str(stake_public_key), reward_fee_fraction, balance, self.vm.epoch_height
        )
        self._restake()

    @classmethod
    def first_state(
        cls, owner_id: str, key: str, fee: Fraction, balance: int, epoch_height: int
    ) -> State:
        staked = balance - GUARANTEE_FUND
        return cls.State(str(owner_id), key, fee, epoch_height, balance, staked, staked)

    # Delegators --------------------------------------------------------------------------

    @call
    def ping(self) -> None:
        """Distribute the rewards of the epochs since the last ping."""
        self._restake(when=self._ping())

    @call(payable=True)
    def deposit(self) -> None:
        is_new_epoch = self._ping()
        self._deposit()
        self._restake(when=is_new_epoch)

    @call(payable=True)
    def deposit_and_stake(self) -> None:
        self._ping()
        self._stake(self._deposit())
        self._restake()

    @call
    def stake(self, amount: U128) -> None:
        self._ping()
        self._stake(amount)
        self._restake()

    @call
    def stake_all(self) -> None:
        self._ping()
        self._stake(self._account(self.vm.predecessor_id).unstaked)
        self._restake()

    @call
    def unstake(self, amount: U128) -> None:
        """Unstake an amount, which can be withdrawn four epochs later."""
        self._ping()
        self._unstake(amount)
        self._restake()

    @call
    def unstake_all(self) -> None:
        self._ping()
        self._unstake(self.value_of(self._account(self.vm.predecessor_id).shares))
        self._restake()

    @call
    def withdraw(self, amount: U128) -> None:
        is_new_epoch = self._ping()
        self._withdraw(amount)
        self._restake(when=is_new_epoch)

    @call
    def withdraw_all(self) -> None:
        is_new_epoch = self._ping()
        self._withdraw(self._account(self.vm.predecessor_id).unstaked)
        self._restake(when=is_new_epoch)

    @call(private=True)
    def on_stake_action(self) -> None:
        """Unstake everything if staking failed, so that withdrawals can be paid."""
        (result,) = self.vm.promise_results
        if result is None and self.vm.locked > 0:
            self._stake_promise(0)

    # Views -------------------------------------------------------------------------------

    @view
    def get_account(self, account_id: str) -> HumanReadableAccount:
        """Return an account's balances, zeros for an unknown account."""
        account = self._account(account_id)
        return HumanReadableAccount(
            account_id,
            U128(account.unstaked),
            U128(self.value_of(account.shares)),
            account.unlocked_at <= self.vm.epoch_height,
        )

    @view
    def get_accounts(self, from_index: int, limit: int) -> list[HumanReadableAccount]:
        """Return a page of accounts, in the order of the pool's list."""
        indices = page(self.state.accounts, from_index, limit)
        names = (self.names.get(str(index)) for index in indices)
        return [self.get_account(name) for name in names if name is not None]

    get_total_staked_balance = state_view("total_staked_balance", U128)
    get_number_of_accounts = state_view("accounts")
    get_owner_id = state_view("owner_id")
    get_reward_fee_fraction = state_view("reward_fee_fraction")
    get_staking_key = state_view("stake_public_key")
    is_staking_paused = state_view("paused")

    # Balances and shares -----------------------------------------------------------------

    def _ping(self) -> bool:
        """Distribute the rewards since the last ping; return True in a new epoch."""
        state, vm = self.state, self.vm
        if state.last_epoch_height == vm.epoch_height:
            return False
        state.last_epoch_height = vm.epoch_height
        total = vm.locked + vm.balance - vm.attached_deposit
        self.require(
            total >= state.last_total_balance,
            "The new total balance should not be less than the old total balance",
        )
        if total > state.last_total_balance:
            self._distribute(total - state.last_total_balance)
        state.last_total_balance = total
        return True

    def _distribute(self, reward: int) -> None:
        """Raise the price of a share, then credit the owner's fee as new shares."""
        state = self.state
        fraction = state.reward_fee_fraction
        fee = reward * fraction.numerator // fraction.denominator
        state.total_staked_balance += reward - fee
        shares = self.shares_for(fee)
        if shares:
            owner = self._account(state.owner_id)
            owner.shares += shares
            self._save(state.owner_id, owner)
            state.total_stake_shares += shares
        state.total_staked_balance += fee
        self.vm.log(
            f"Epoch {state.last_epoch_height}: Contract received total rewards of {reward} "
            f"tokens. New total staked balance is {state.total_staked_balance}. "
            f"Total number of shares {state.total_stake_shares}"
        )
        if shares:
            self.vm.log(f"Total rewards fee is {shares} stake shares.")

    def _deposit(self) -> int:
        account_id, amount = self.vm.predecessor_id, self.vm.attached_deposit
        account = self._account(account_id)
        account.unstaked += amount
        self._save(account_id, account)
        self.state.last_total_balance += amount
        self.vm.log(f"@{account_id} deposited {amount}. New unstaked balance is {account.unstaked}")
        return amount

    def _stake(self, amount: int) -> None:
        state, account_id = self.state, self.vm.predecessor_id
        account = self._account(account_id)
        shares, charged = self.price_purchase(amount, account.unstaked)
        account.unstaked -= charged
        account.shares += shares
        self._save(account_id, account)
        # The increase is rounded up, so that the price of a share never falls.
        increase = ceil(shares * state.total_staked_balance, state.total_stake_shares)
        state.total_staked_balance += increase
        state.total_stake_shares += shares
        self._log_staking(account_id, account, f"staking {charged}. Received {shares} new")

    def _unstake(self, amount: int) -> None:
        state, account_id = self.state, self.vm.predecessor_id
        account = self._account(account_id)
        shares, received = self.price_sale(amount, account.shares)
        account.shares -= shares
        account.unstaked += received
        account.unlocked_at = self.vm.epoch_height + EPOCHS_TO_UNLOCK
        self._save(account_id, account)
        state.total_staked_balance -= self.value_of(shares)
        state.total_stake_shares -= shares
        self._log_staking(account_id, account, f"unstaking {received}. Spent {shares}")

    def _log_staking(self, account_id: str, account: Delegator, change: str) -> None:
        self.vm.log(
            f"@{account_id} {change} staking shares. Total {account.unstaked} unstaked balance "
            f"and {account.shares} staking shares"
        )
        self.log_totals()

    def _withdraw(self, amount: int) -> None:
        account_id = self.vm.predecessor_id
        account = self._account(account_id)
        self.check_withdrawal(amount, account.unstaked, account.unlocked_at)
        account.unstaked -= amount
        self._save(account_id, account)
        self.vm.log(
            f"@{account_id} withdrawing {amount}. New unstaked balance is {account.unstaked}"
        )
        self.vm.promise(account_id).transfer(amount)
        self.state.last_total_balance -= amount

    def _restake(self, *, when: bool = True) -> None:
        """Stake the accounts' staked balance, with a callback that checks the result."""
        if when:
            stake = self._stake_promise(self.state.total_staked_balance)
            callback = stake.then(self.vm.current_account_id)
            callback.function_call("on_stake_action", b"", gas=20 * TGAS)

    def _stake_promise(self, amount: int) -> Promise:
        promise = self.vm.promise(self.vm.current_account_id)
        return promise.stake(amount, self.state.stake_public_key)

    def stake_totals(self) -> tuple[int, int]:
        return self.state.total_staked_balance, self.state.total_stake_shares

    def require(self, condition: object, message: str) -> None:
        """Panic with the message of a failed Rust assertion, unless a condition is true."""
        if not condition:
            _panic(message, _LINES.get(message, "internal.rs:264:9"))

    def _account(self, account_id: str) -> Delegator:
        """Return an account's record, or a new record at the end of the list."""
        return self.accounts.get(account_id) or Delegator(self.state.accounts)

    def _save(self, account_id: str, account: Delegator) -> None:
        """Write an account's record, or remove it if the account has no balance."""
        is_stored = account_id in self.accounts
        if not account.unstaked and not account.shares:
            if is_stored:
                self._remove(account_id, account.index)
            return
        if not is_stored:
            self.names.put(str(account.index), str(account_id))
            self.state.accounts += 1
        self.accounts.put(account_id, account)

    def _remove(self, account_id: str, index: int) -> None:
        """Remove an account from the list; the last account moves to its index."""
        self.state.accounts -= 1
        last = str(self.state.accounts)
        moved_id = self.names.get(last)
        if moved_id is not None and moved_id != account_id:
            moved_account = self._account(moved_id)
            moved_account.index = index
            self.accounts.put(moved_id, moved_account)
            self.names.put(str(index), moved_id)
        self.names.remove(last)
        self.accounts.remove(account_id)

    # Genesis -----------------------------------------------------------------------------

    @classmethod
    def genesis(
        cls,
        owner_id: str,
        stake_public_key: str,
        balance: int,  # the pool's own yoctoNEAR
        delegators: Mapping[str, tuple[int, int]],  # staked and unstaked yoctoNEAR
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the records that `new` and each account's deposits would write."""
        # The pool's account has to own `balance` and all staked and unstaked amounts. The total
        # staked balance, without GUARANTEE_FUND and the unstaked amounts, has to be locked.
        state = cls.first_state(owner_id, stake_public_key, Fraction(10, 100), balance, 0)
        holders = {name: amounts for name, amounts in delegators.items() if any(amounts)}
        for index, (account_id, (staked, unstaked)) in enumerate(holders.items()):
            state.last_total_balance += staked + unstaked
            state.total_staked_balance += staked  # a share costs one yoctoNEAR at first
            state.total_stake_shares += staked
            yield cls.prefix + text(account_id), to_json(Delegator(index, unstaked, staked))
            yield cls.list_prefix + text(str(index)), to_json(account_id)
        state.accounts = len(holders)
        yield STATE_KEY, to_json(state)


def _panic(message: str, source_line: str) -> Never:
    raise PanicError(f"panicked at '{message}', src/{source_line}")
