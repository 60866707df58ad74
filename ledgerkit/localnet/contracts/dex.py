"""
A decentralised exchange with constant-product pools of two tokens.

Tokens arrive by ``ft_transfer_call``. With an empty message they are deposited; with a
message of swap actions they are swapped, and the output is sent to the sender. A paused
exchange panics on arriving tokens, so that the token's contract refunds them; deposits can
still be withdrawn.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

import msgspec

from ledgerkit import json_decoding
from ledgerkit.localnet.contract_sdk import (
    STATE_KEY,
    U128,
    BalanceMap,
    Contract,
    JsonMap,
    call,
    page,
    state_view,
    succeeded,
    to_json,
    view,
)
from ledgerkit.localnet.fees import TGAS
from ledgerkit.localnet.promises import Promise
from ledgerkit.localnet.vm import Vm
from ledgerkit.protocol import AccountId
from ledgerkit.protocol.borsh import text, u128
from ledgerkit.units import U128_MAX

FEE = 30  # in 1/FEE_DIVISOR of the input amount; the fee stays in the pool
FEE_DIVISOR = 10_000
FIRST_SHARES = 10**24  # shares of a pool's first provider, for any amounts
FT_TRANSFER_GAS = 6 * TGAS
ON_SENT_GAS = 4 * TGAS
PAUSED = "the contract is paused"
BAD_MESSAGE = "The message is not understood"
OVERFLOW = "An amount exceeds 128 bits"

Digits = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,39}\Z")]


class Action(msgspec.Struct):
    """A swap in one pool; in a list, each swap's input is the output of the one before."""

    pool_id: int
    token_in: str
    token_out: str
    min_amount_out: Digits


class Message(msgspec.Struct):
    """The message of a transfer that swaps."""

    actions: Annotated[list[Action], msgspec.Meta(min_length=1)]


class PoolView(msgspec.Struct):
    """A pool as the view methods return it."""

    pool_kind: str
    token_account_ids: list[str]
    amounts: list[U128]
    total_fee: int
    shares_total_supply: U128


class Pool(msgspec.Struct):
    """A pool as it is stored: two tokens, their amounts, the fee and the shares."""

    token_ids: list[str]
    amounts: list[int]
    fee: int = FEE
    shares: int = 0

    def sides(self, token_in: str, token_out: str) -> tuple[int, int] | None:
        """Return the indices of two tokens, None if the pool does not trade them."""
        if token_in == token_out or not {token_in, token_out} <= set(self.token_ids):
            return None
        return self.token_ids.index(token_in), self.token_ids.index(token_out)

    def quote(self, token_in: str, amount_in: int, token_out: str) -> int | None:
        """Compute a swap's output, rounded down; None if the pool does not trade these tokens."""
        sides = self.sides(token_in, token_out)
        if sides is None:
            return None
        reserve_in, reserve_out = self.amounts[sides[0]], self.amounts[sides[1]]
        # The product of both amounts stays constant, apart from the fee.
        net = amount_in * (FEE_DIVISOR - self.fee)
        return net * reserve_out // (reserve_in * FEE_DIVISOR + net) if net else 0

    def to_view(self) -> PoolView:
        """Return the pool as the view methods return it."""
        amounts = [U128(amount) for amount in self.amounts]
        return PoolView("SIMPLE_POOL", self.token_ids, amounts, self.fee, U128(self.shares))


class Dex(Contract):
    """An exchange whose owner opens pools and can pause it."""

    class State(msgspec.Struct):
        """The exchange's state, except pools, shares and deposits."""

        owner_id: str
        pool_count: int = 0
        paused: bool = False

    state: State

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self._pools = JsonMap(vm, b"p", Pool)
        self._shares = BalanceMap(vm, b"s")  # by "pool_id:account_id"
        self._deposits = JsonMap(vm, b"d", dict[str, int])  # by account: amounts by token

    # The owner's methods --------------------------------------------------------------

    @call(init=True)
    def new(self, owner_id: AccountId) -> None:
        """Initialize the exchange without pools."""
        self.state = self.State(str(owner_id))

    @call
    def add_simple_pool(self, tokens: list[AccountId]) -> int:
        """Create a pool of two tokens; return its id."""
        self._assert_owner()
        self.require(len(set(tokens)) == len(tokens) == 2, "A pool has two different tokens")  # noqa: PLR2004 - two
        pool_id = self.state.pool_count
        self._pools.put(str(pool_id), Pool([str(token) for token in tokens], [0, 0]))
        self.state.pool_count += 1
        return pool_id

    @call
    def pause(self) -> None:
        """Stop accepting tokens and liquidity until `resume`."""
        self._assert_owner()
        self.state.paused = True
        self.vm.log("Paused")

    @call
    def resume(self) -> None:
        """End a pause."""
        self._assert_owner()
        self.state.paused = False
        self.vm.log("Resumed")

    # Tokens in and out ----------------------------------------------------------------

    @call
    def ft_on_transfer(self, sender_id: AccountId, amount: U128, msg: str) -> U128:
        """Deposit or swap the tokens that arrive; return 0, since all of them are used."""
        self._assert_not_paused()
        token_id = self.vm.predecessor_id
        if msg:
            token_out, amount_out = self._swap_all(_parse_message(self.vm, msg), token_id, amount)
            self._send(sender_id, token_out, amount_out)
        else:
            self._credit(sender_id, token_id, amount)
            self.vm.log(f"Deposited {amount} {token_id} for {sender_id}")
        return U128(0)

    @call(payable=True)
    def withdraw(self, token_id: AccountId, amount: U128) -> Promise:
        """Send a deposit to the caller; return whether the transfer succeeded."""
        self.assert_one_yocto()
        self.require(amount > 0, "The amount should be a positive number")
        self._debit(self.vm.predecessor_id, token_id, amount)
        return self._send(self.vm.predecessor_id, token_id, amount)

    @call(private=True)
    def on_sent(self, account_id: AccountId, token_id: AccountId, amount: U128) -> bool:
        """Deposit the tokens again if the transfer failed."""
        is_sent = succeeded(self.vm)
        if not is_sent:
            self._credit(account_id, token_id, amount)
            self.vm.log(f"Could not send {amount} {token_id} to {account_id}: it is deposited")
        return is_sent

    # Liquidity ------------------------------------------------------------------------

    @call
    def add_liquidity(self, pool_id: int, amounts: list[U128]) -> U128:
        """Move at most these deposits into a pool, at its ratio; return the minted shares."""
        self._assert_not_paused()
        pool, provider_id = self._pool(pool_id), self.vm.predecessor_id
        self.require(len(amounts) == len(pool.amounts), "Give an amount for each token")
        minted, used = _shares_for(pool, amounts)
        self.require(minted > 0, "The amounts are too small")
        for index, token_id in enumerate(pool.token_ids):
            self._debit(provider_id, token_id, used[index])
            pool.amounts[index] = self._check_u128(pool.amounts[index] + used[index])
        self._change_shares(pool_id, pool, provider_id, minted)
        self.vm.log(f"Liquidity added {_format_amounts(pool, used)}, minted {minted} shares")
        return U128(minted)

    @call
    def remove_liquidity(self, pool_id: int, shares: U128) -> list[U128]:
        """Burn shares and move their part of the pool to the caller's deposits; return it."""
        pool, provider_id = self._pool(pool_id), self.vm.predecessor_id
        self.require(shares > 0, "The shares should be a positive number")
        self.require(shares <= self._shares_of(pool_id, provider_id), "Not enough shares")
        amounts = [reserve * shares // pool.shares for reserve in pool.amounts]
        for index, token_id in enumerate(pool.token_ids):
            pool.amounts[index] -= amounts[index]
            self._credit(provider_id, token_id, amounts[index])
        self._change_shares(pool_id, pool, provider_id, -shares)
        self.vm.log(f"Liquidity removed {_format_amounts(pool, amounts)}, burnt {shares} shares")
        return [U128(amount) for amount in amounts]

    # Views ----------------------------------------------------------------------------

    @view
    def get_pool(self, pool_id: int) -> PoolView:
        """Return a pool."""
        return self._pool(pool_id).to_view()

    @view
    def get_pools(self, from_index: int = 0, limit: int = 100) -> list[PoolView]:
        """Return a page of the pools."""
        pool_ids = page(self.state.pool_count, from_index, limit)
        return [self._pool(pool_id).to_view() for pool_id in pool_ids]

    get_number_of_pools = state_view("pool_count")

    @view
    def get_return(
        self, pool_id: int, token_in: AccountId, amount_in: U128, token_out: AccountId
    ) -> U128:
        """Return the output of a swap at the current amounts."""
        return U128(self._quote(self._pool(pool_id), pool_id, token_in, amount_in, token_out))

    @view
    def get_deposits(self, account_id: AccountId) -> dict[str, U128]:
        """Return an account's deposits, by token."""
        deposits = self._deposits.get(account_id) or {}
        return {token_id: U128(amount) for token_id, amount in deposits.items()}

    @view
    def get_pool_shares(self, pool_id: int, account_id: AccountId) -> U128:
        """Return an account's shares of a pool."""
        return U128(self._shares_of(pool_id, account_id))

    get_owner = state_view("owner_id")
    is_paused = state_view("paused")

    # Swapping and sending -------------------------------------------------------------

    def _swap_all(self, actions: list[Action], token_id: str, amount: int) -> tuple[str, int]:
        """Execute a chain of swaps; return the last output's token and amount."""
        for action in actions:
            self.require(action.token_in == token_id, f"{token_id} is not the token to swap")
            amount = self._swap(action, amount)
            token_id = action.token_out
        return token_id, amount

    def _swap(self, action: Action, amount: int) -> int:
        pool = self._pool(action.pool_id)
        amount_out = self._quote(pool, action.pool_id, action.token_in, amount, action.token_out)
        least = int(action.min_amount_out)
        self.require(amount_out > 0, "The amount is too small to swap")
        self.require(
            amount_out >= least, f"Slippage: {amount_out} is less than the least amount {least}"
        )
        index_in, index_out = (pool.token_ids.index(t) for t in (action.token_in, action.token_out))
        pool.amounts[index_in] = self._check_u128(pool.amounts[index_in] + amount)
        pool.amounts[index_out] -= amount_out
        self._pools.put(str(action.pool_id), pool)
        self.vm.log(f"Swapped {amount} {action.token_in} for {amount_out} {action.token_out}")
        return amount_out

    def _quote(
        self, pool: Pool, pool_id: int, token_in: str, amount_in: int, token_out: str
    ) -> int:
        """Compute a swap's output, or panic if the pool does not trade the tokens."""
        amount_out = pool.quote(token_in, amount_in, token_out)
        if amount_out is None:
            self.vm.panic(f"Pool {pool_id} does not trade {token_in} for {token_out}")
        return amount_out

    def _send(self, account_id: str, token_id: str, amount: int) -> Promise:
        """Transfer tokens of this contract; the callback deposits them if that fails."""
        transfer = to_json({"receiver_id": account_id, "amount": U128(amount)})
        promise = self.vm.promise(token_id)
        promise.function_call("ft_transfer", transfer, deposit=1, gas=FT_TRANSFER_GAS)
        args = {"account_id": account_id, "token_id": token_id, "amount": U128(amount)}
        return self.call_back(promise, "on_sent", ON_SENT_GAS, **args)

    # Records --------------------------------------------------------------------------

    def _pool(self, pool_id: int) -> Pool:
        return self._pools.required(str(pool_id), f"There is no pool {pool_id}")

    def _shares_of(self, pool_id: int, account_id: str) -> int:
        return self._shares.get(f"{pool_id}:{account_id}") or 0

    def _change_shares(self, pool_id: int, pool: Pool, account_id: str, change: int) -> None:
        pool.shares = self._check_u128(pool.shares + change)
        self._pools.put(str(pool_id), pool)
        shares = self._shares_of(pool_id, account_id) + change
        self._shares.keep(f"{pool_id}:{account_id}", shares)

    def _credit(self, account_id: str, token_id: str, amount: int) -> None:
        deposits = self._deposits.get(account_id) or {}
        deposits[str(token_id)] = self._check_u128(deposits.get(token_id, 0) + amount)
        self._deposits.put(account_id, deposits)

    def _debit(self, account_id: str, token_id: str, amount: int) -> None:
        """Subtract from an account's deposit of a token; a deposit of 0 is not stored."""
        deposits = self._deposits.get(account_id) or {}
        remainder = deposits.pop(token_id, 0) - amount
        self.require(remainder >= 0, f"{account_id} has not deposited enough {token_id}")
        if remainder:
            deposits[str(token_id)] = remainder
        self._deposits.keep(account_id, deposits)

    def _check_u128(self, amount: int) -> int:
        self.require(amount <= U128_MAX, OVERFLOW)
        return amount

    def _assert_owner(self) -> None:
        self.require(self.vm.predecessor_id == self.state.owner_id, "Only the owner may do this")

    def _assert_not_paused(self) -> None:
        self.require(not self.state.paused, PAUSED)

    @classmethod
    def genesis(
        cls, owner_id: str, pools: Iterable[Mapping[str, int]] = ()
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the records of an exchange with pools: amounts by token, provided by the owner."""
        count = 0
        for count, reserves in enumerate(pools, start=1):
            pool_id = str(count - 1)
            pool = Pool(list(reserves), list(reserves.values()), shares=FIRST_SHARES)
            yield b"p" + text(pool_id), to_json(pool)
            yield b"s" + text(f"{pool_id}:{owner_id}"), u128(FIRST_SHARES)
        yield STATE_KEY, to_json(cls.State(owner_id, count))


def _parse_message(vm: Vm, msg: str) -> list[Action]:
    try:
        return json_decoding.decode(msg, Message).actions
    except msgspec.DecodeError:
        vm.panic(BAD_MESSAGE)


def _shares_for(pool: Pool, amounts: list[U128]) -> tuple[int, list[int]]:
    """Compute the shares that amounts buy, and the amounts they cost, rounded up."""
    if not pool.shares:
        return (FIRST_SHARES if all(amounts) else 0), [int(amount) for amount in amounts]
    pairs = list(zip(amounts, pool.amounts, strict=True))
    minted = min(amount * pool.shares // reserve for amount, reserve in pairs)
    return minted, [-(-reserve * minted // pool.shares) for reserve in pool.amounts]


def _format_amounts(pool: Pool, amounts: list[int]) -> str:
    pairs = zip(amounts, pool.token_ids, strict=True)
    return " and ".join(f"{amount} {token_id}" for amount, token_id in pairs)
