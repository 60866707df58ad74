"""
A staking pool: many people's stake behind one validator.

Shares are what an account owns of the staked balance; rewards raise the price of a share,
so nobody's record changes when they come in. Divisions are rounded in the pool's favour
with a small fund that pays the difference, and the price never falls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Never

from msgspec import Struct

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.contract_sdk import (
    BAD_INPUT,
    STATE_KEY,
    U128,
    Contract,
    JsonMap,
    call,
    to_json,
    view,
)
from ledgerkit.localnet.execution_errors import PanicError
from ledgerkit.protocol import AccountId, PublicKey
from ledgerkit.protocol.borsh import text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ledgerkit.localnet.vm import Promise, Vm

GUARANTEE_FUND = 10**12  # yoctoNEAR that make up for rounding
EPOCHS_TO_UNLOCK = 4
ON_STAKE_GAS = 20 * 10**12

# Where the public pools' source says what, so that a panic reads the same here.
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
    "The staking is already paused": "lib.rs:440:9",
    "The staking is not paused": "lib.rs:451:9",
}


def ceil(number: int, divisor: int) -> int:
    """Divide, rounding up."""
    return -(-number // divisor)


class Fraction(Struct, frozen=True):
    """A part of a reward."""

    numerator: int
    denominator: int


class Delegator(Struct):
    """What the pool holds for an account."""

    index: int  # in the pool's list
    unstaked: int = 0
    shares: int = 0
    unlocked_at: int = 0  # the epoch from which what is unstaked can be withdrawn


class HumanReadableAccount(Struct):
    """An account as people read it."""

    account_id: str
    unstaked_balance: U128
    staked_balance: U128
    can_withdraw: bool


class StakingPool(Contract, code_name="ledgerkit.localnet.contracts.pool.StakingPool"):
    """
    Takes deposits, stakes them with its own account, and shares out what that earns.

    Parameters
    ----------
    vm
        The machine.
    """

    class State(Struct):
        """The pool's totals and its owner's choices."""

        owner_id: str
        stake_public_key: str
        reward_fee_fraction: Fraction
        last_epoch_height: int
        last_total_balance: int
        total_staked_balance: int
        total_stake_shares: int
        accounts: int = 0
        paused: bool = False

    prefix: ClassVar[bytes] = b"u"
    list_prefix: ClassVar[bytes] = b"i"

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self.accounts = JsonMap(vm, self.prefix, Delegator)
        self.names = JsonMap(vm, self.list_prefix, str)

    # The owner ---------------------------------------------------------------------------

    @call(init=True)
    def new(
        self, owner_id: AccountId, stake_public_key: str, reward_fee_fraction: Fraction
    ) -> None:
        """Begin: what the account has is staked, and nobody can take it out."""
        _check_fraction(reward_fee_fraction)
        balance = self.vm.balance
        _ensure(balance > GUARANTEE_FUND, "Account balance too low")
        self.state = self.first_state(
            owner_id, stake_public_key, reward_fee_fraction, balance, self.vm.epoch_height
        )
        self._restake()

    @classmethod
    def first_state(
        cls, owner_id: str, stake_public_key: str, fee: Fraction, balance: int, epoch_height: int
    ) -> State:
        """Make the state of a pool that has nothing but its own balance."""
        staked = balance - GUARANTEE_FUND
        key = _key(stake_public_key)
        return cls.State(str(owner_id), key, fee, epoch_height, balance, staked, staked)

    @call
    def update_staking_key(self, stake_public_key: str) -> None:
        """Validate with another key."""
        self._owner_only()
        self._ping()
        self.state.stake_public_key = _key(stake_public_key)
        self._restake()

    @call
    def update_reward_fee_fraction(self, reward_fee_fraction: Fraction) -> None:
        """Take another part of the rewards."""
        self._owner_only()
        _check_fraction(reward_fee_fraction)
        is_new = self._ping()
        self.state.reward_fee_fraction = reward_fee_fraction
        self._restake(when=is_new)

    @call
    def pause_staking(self) -> None:
        """Unstake everything, for the validator to be looked after."""
        self._owner_only()
        _ensure(not self.state.paused, "The staking is already paused")
        self._ping()
        self.state.paused = True
        self._stake_promise(0)

    @call
    def resume_staking(self) -> None:
        """Stake again."""
        self._owner_only()
        _ensure(self.state.paused, "The staking is not paused")
        self._ping()
        self.state.paused = False
        self._restake()

    # Delegators --------------------------------------------------------------------------

    @call
    def ping(self) -> None:
        """Share out the rewards of the epochs since."""
        self._restake(when=self._ping())

    @call(payable=True)
    def deposit(self) -> None:
        """Take a deposit, unstaked."""
        is_new = self._ping()
        self._deposit()
        self._restake(when=is_new)

    @call(payable=True)
    def deposit_and_stake(self) -> None:
        """Take a deposit and stake it."""
        self._ping()
        self._stake(self._deposit())
        self._restake()

    @call
    def stake(self, amount: U128) -> None:
        """Stake some of what the caller has unstaked."""
        self._ping()
        self._stake(amount)
        self._restake()

    @call
    def stake_all(self) -> None:
        """Stake all that the caller has unstaked."""
        self._ping()
        self._stake(self._account(self.vm.predecessor_id).unstaked)
        self._restake()

    @call
    def unstake(self, amount: U128) -> None:
        """Unstake; it can be withdrawn four epochs later."""
        self._ping()
        self._unstake(amount)
        self._restake()

    @call
    def unstake_all(self) -> None:
        """Unstake everything; it can be withdrawn four epochs later."""
        self._ping()
        self._unstake(self._worth(self._account(self.vm.predecessor_id).shares))
        self._restake()

    @call
    def withdraw(self, amount: U128) -> None:
        """Pay out some of what the caller has unstaked."""
        is_new = self._ping()
        self._withdraw(amount)
        self._restake(when=is_new)

    @call
    def withdraw_all(self) -> None:
        """Pay out all that the caller has unstaked."""
        is_new = self._ping()
        self._withdraw(self._account(self.vm.predecessor_id).unstaked)
        self._restake(when=is_new)

    @call(private=True)
    def on_stake_action(self) -> None:
        """Unstake if staking failed, so that what is owed can be paid out."""
        (staked,) = self.vm.promise_results
        if staked is None and self.vm.locked > 0:
            self._stake_promise(0)

    # Views -------------------------------------------------------------------------------

    @view
    def get_account(self, account_id: str) -> HumanReadableAccount:
        """Tell what an account has here: zeros if it never came."""
        account = self._account(account_id)
        return HumanReadableAccount(
            account_id,
            U128(account.unstaked),
            U128(self._worth(account.shares)),
            account.unlocked_at <= self.vm.epoch_height,
        )

    @view
    def get_accounts(self, from_index: int, limit: int) -> list[HumanReadableAccount]:
        """Tell what several accounts have, in the order of the pool's list."""
        end = min(from_index + limit, self.state.accounts)
        names = (self.names.get(str(index)) for index in range(max(from_index, 0), end))
        return [self.get_account(name) for name in names if name is not None]

    @view
    def get_number_of_accounts(self) -> int:
        """Count the accounts that have anything here."""
        return int(self.state.accounts)

    @view
    def get_account_staked_balance(self, account_id: str) -> U128:
        """Tell what an account has staked, at the present price."""
        return self.get_account(account_id).staked_balance

    @view
    def get_account_unstaked_balance(self, account_id: str) -> U128:
        """Tell what an account has unstaked."""
        return self.get_account(account_id).unstaked_balance

    @view
    def get_account_total_balance(self, account_id: str) -> U128:
        """Tell what an account has, staked or not."""
        account = self.get_account(account_id)
        return U128(account.staked_balance + account.unstaked_balance)

    @view
    def is_account_unstaked_balance_available(self, account_id: str) -> bool:
        """Tell whether what an account has unstaked can be withdrawn in this epoch."""
        return self.get_account(account_id).can_withdraw

    @view
    def get_total_staked_balance(self) -> U128:
        """Tell what all have staked, as of the last ping."""
        return U128(self.state.total_staked_balance)

    @view
    def get_owner_id(self) -> str:
        """Tell who runs the pool."""
        return str(self.state.owner_id)

    @view
    def get_reward_fee_fraction(self) -> Fraction:
        """Tell which part of the rewards the owner takes."""
        fraction: Fraction = self.state.reward_fee_fraction
        return fraction

    @view
    def get_staking_key(self) -> str:
        """Tell the validator's key."""
        return str(self.state.stake_public_key)

    @view
    def is_staking_paused(self) -> bool:
        """Tell whether the pool stakes nothing for now."""
        return bool(self.state.paused)

    # What the methods share --------------------------------------------------------------

    def _ping(self) -> bool:
        """Share out what came in since the last epoch; tell whether this is a new one."""
        state, vm = self.state, self.vm
        if state.last_epoch_height == vm.epoch_height:
            return False
        state.last_epoch_height = vm.epoch_height
        total = vm.locked + vm.balance - vm.attached_deposit
        _ensure(
            total >= state.last_total_balance,
            "The new total balance should not be less than the old total balance",
        )
        if total > state.last_total_balance:
            self._reward(total - state.last_total_balance)
        state.last_total_balance = total
        return True

    def _reward(self, reward: int) -> None:
        """Raise the price of a share, then sell the owner some for the fee."""
        state = self.state
        fraction = state.reward_fee_fraction
        fee = reward * fraction.numerator // fraction.denominator
        state.total_staked_balance += reward - fee
        shares = self._shares(fee)
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
        """Add the attached deposit to the caller's unstaked balance."""
        account_id, amount = self.vm.predecessor_id, self.vm.attached_deposit
        account = self._account(account_id)
        account.unstaked += amount
        self._save(account_id, account)
        self.state.last_total_balance += amount
        self.vm.log(f"@{account_id} deposited {amount}. New unstaked balance is {account.unstaked}")
        return amount

    def _stake(self, amount: int) -> None:
        """Buy shares from the caller's unstaked balance."""
        state, account_id = self.state, self.vm.predecessor_id
        account = self._account(account_id)
        shares, charged = self._buy(amount, account.unstaked)
        account.unstaked -= charged
        account.shares += shares
        self._save(account_id, account)
        grown = ceil(shares * state.total_staked_balance, state.total_stake_shares)
        state.total_staked_balance += grown
        state.total_stake_shares += shares
        self._tell(account_id, account, f"staking {charged}. Received {shares} new")

    def _buy(self, amount: int, unstaked: int) -> tuple[int, int]:
        """Tell how many shares an amount buys, and what they cost."""
        _ensure(amount > 0, "Staking amount should be positive")
        shares = self._shares(amount)
        _ensure(
            shares > 0,
            'The calculated number of "stake" shares received for staking should be positive',
        )
        charged = self._worth(shares)
        _ensure(unstaked >= charged, "Not enough unstaked balance to stake")
        return shares, charged

    def _unstake(self, amount: int) -> None:
        """Sell the caller's shares."""
        state, account_id = self.state, self.vm.predecessor_id
        account = self._account(account_id)
        shares, received = self._sell(amount, account.shares)
        account.shares -= shares
        account.unstaked += received
        account.unlocked_at = self.vm.epoch_height + EPOCHS_TO_UNLOCK
        self._save(account_id, account)
        state.total_staked_balance -= self._worth(shares)
        state.total_stake_shares -= shares
        self._tell(account_id, account, f"unstaking {received}. Spent {shares}")

    def _sell(self, amount: int, held: int) -> tuple[int, int]:
        """Tell how many shares have to be sold for an amount, and what they bring."""
        staked, total = self.state.total_staked_balance, self.state.total_stake_shares
        _ensure(amount > 0, "Unstaking amount should be positive")
        _ensure(staked > 0, "The contract doesn't have staked balance")
        shares = ceil(amount * total, staked)
        _ensure(held >= shares, "Not enough staked balance to unstake")
        return shares, ceil(shares * staked, total)

    def _tell(self, account_id: str, account: Delegator, what: str) -> None:
        """Log what was staked or unstaked, and the totals after it."""
        self.vm.log(
            f"@{account_id} {what} staking shares. Total {account.unstaked} unstaked balance "
            f"and {account.shares} staking shares"
        )
        self.vm.log(
            f"Contract total staked balance is {self.state.total_staked_balance}. "
            f"Total number of shares {self.state.total_stake_shares}"
        )

    def _withdraw(self, amount: int) -> None:
        """Pay out of the caller's unstaked balance."""
        account_id = self.vm.predecessor_id
        account = self._account(account_id)
        _ensure(amount > 0, "Withdrawal amount should be positive")
        _ensure(account.unstaked >= amount, "Not enough unstaked balance to withdraw")
        _ensure(
            account.unlocked_at <= self.vm.epoch_height,
            "The unstaked balance is not yet available due to unstaking delay",
        )
        account.unstaked -= amount
        self._save(account_id, account)
        self.vm.log(
            f"@{account_id} withdrawing {amount}. New unstaked balance is {account.unstaked}"
        )
        self.vm.promise(account_id).transfer(amount)
        self.state.last_total_balance -= amount

    def _restake(self, *, when: bool = True) -> None:
        """Have at stake what the accounts have staked, and look whether that worked."""
        if when and not self.state.paused:
            staked = self._stake_promise(self.state.total_staked_balance)
            callback = staked.then(self.vm.current_account_id)
            callback.function_call("on_stake_action", b"", gas=ON_STAKE_GAS)

    def _stake_promise(self, amount: int) -> Promise:
        """Propose a stake to the chain."""
        promise = self.vm.promise(self.vm.current_account_id)
        return promise.stake(amount, self.state.stake_public_key)

    def _shares(self, amount: int) -> int:
        """Count the shares that an amount buys, rounded down."""
        staked = self.state.total_staked_balance
        _ensure(staked > 0, "The total staked balance can't be 0")
        return int(amount * self.state.total_stake_shares // staked)

    def _worth(self, shares: int) -> int:
        """Tell what shares are worth, rounded down."""
        total = self.state.total_stake_shares
        _ensure(total > 0, "The total number of stake shares can't be 0")
        return int(shares * self.state.total_staked_balance // total)

    def _owner_only(self) -> None:
        """Refuse everybody else."""
        caller, owner = self.vm.predecessor_id, self.state.owner_id
        if caller != owner:
            _panic(
                f'assertion failed: `(left == right)`\n  left: `"{caller}"`,\n right: `"{owner}"`: '
                "Can only be called by the owner",
                "internal.rs:190:9",
            )

    def _account(self, account_id: str) -> Delegator:
        """Give an account's record, a new one at the list's end if there is none."""
        return self.accounts.get(account_id) or Delegator(self.state.accounts)

    def _save(self, account_id: str, account: Delegator) -> None:
        """Keep an account's record, or none where nothing is left."""
        is_kept = account_id in self.accounts
        if not account.unstaked and not account.shares:
            if is_kept:
                self._drop(account_id, account.index)
            return
        if not is_kept:
            self.names.put(str(account.index), str(account_id))
            self.state.accounts += 1
        self.accounts.put(account_id, account)

    def _drop(self, account_id: str, index: int) -> None:
        """Take an account off the list; the last one moves into its place."""
        self.state.accounts -= 1
        last = str(self.state.accounts)
        moved_id = self.names.get(last)
        if moved_id is not None and moved_id != account_id:
            moved = self._account(moved_id)
            moved.index = index
            self.accounts.put(moved_id, moved)
            self.names.put(str(index), moved_id)
        self.names.remove(last)
        self.accounts.remove(account_id)

    # Worlds ------------------------------------------------------------------------------

    @classmethod
    def genesis(
        cls,
        owner_id: str,
        stake_public_key: str,
        balance: int,
        delegators: Mapping[str, tuple[int, int]],
        *,
        fee: tuple[int, int] = (10, 100),
        epoch_height: int = 0,
    ) -> Iterator[tuple[bytes, bytes]]:
        """
        Write the records that `new` and then each account's deposits would leave.

        The account has to have what the records say: `balance` and all that is staked and
        unstaked, of which the total staked balance (that without `GUARANTEE_FUND` and what
        is unstaked) is locked.

        Parameters
        ----------
        owner_id
            Who runs the pool.
        stake_public_key
            The validator's key.
        balance
            What the pool's account had at the beginning.
        delegators
            What each account has staked and unstaked, in the order they came.
        fee
            The owner's part of the rewards, as numerator and denominator.
        epoch_height
            The epoch of the genesis.

        Yields
        ------
        record
            A key and a value.
        """
        state = cls.first_state(owner_id, stake_public_key, Fraction(*fee), balance, epoch_height)
        holders = {name: held for name, held in delegators.items() if any(held)}
        for index, (account_id, (staked, unstaked)) in enumerate(holders.items()):
            state.last_total_balance += staked + unstaked
            state.total_staked_balance += staked  # at the price of 1 a share is a yoctoNEAR
            state.total_stake_shares += staked
            yield cls.prefix + text(account_id), to_json(Delegator(index, unstaked, staked))
            yield cls.list_prefix + text(str(index)), to_json(account_id)
        state.accounts = len(holders)
        yield STATE_KEY, to_json(state)


def _check_fraction(fraction: Fraction) -> None:
    """Refuse a fee that is no part of a reward."""
    if fraction.denominator == 0:
        _panic(
            "assertion failed: `(left != right)`\n  left: `0`,\n right: `0`: "
            "Denominator must be a positive number",
            "lib.rs:126:9",
        )
    _ensure(
        0 <= fraction.numerator <= fraction.denominator,
        "The reward fee must be less or equal to 1",
    )


def _key(key: str) -> str:
    """Check the text of a public key."""
    try:
        return str(PublicKey.from_text(key))
    except InvalidRequestError:
        raise PanicError(BAD_INPUT) from None


def _ensure(holds: Any, message: str) -> None:
    """Panic as an assertion of the public pools does, unless something holds."""
    if not holds:
        _panic(message, _LINES.get(message, "internal.rs:264:9"))


def _panic(message: str, place: str) -> Never:
    """Panic in the words of the pools' language."""
    raise PanicError(f"panicked at '{message}', src/{place}")
