"""
A decentralised exchange whose genesis has constant-product pools of two tokens.

Tokens arrive by ``ft_transfer_call``. An empty message deposits them; a message of swap
actions swaps them and sends the output to the sender. A paused exchange panics when tokens
arrive, so that the token's contract refunds them; deposits can still be withdrawn.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

import msgspec

from ledgerkit.localnet.contract_sdk import (
    STATE_KEY,
    U128,
    Contract,
    JsonMap,
    call,
    from_json,
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

Digits = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,39}\Z")]


class Action(msgspec.Struct):
    """A swap in one pool; in a list, each swap's input is the previous swap's output."""

    pool_id: int
    token_in: str
    token_out: str
    min_amount_out: Digits


class Message(msgspec.Struct):
    """The message of a transfer that swaps."""

    actions: Annotated[list[Action], msgspec.Meta(min_length=1)]


class Pool(msgspec.Struct):
    """A pool as it is stored: two tokens, their amounts, the fee and the shares."""

    token_ids: list[str]
    amounts: list[int]
    fee: int = FEE
    shares: int = 0

    def quote(self, token_in: str, amount_in: int, token_out: str) -> int | None:
        """Compute a swap's output, rounded down; None if the pool does not trade these tokens."""
        reserves = dict(zip(self.token_ids, self.amounts, strict=True))
        if token_in == token_out or not {token_in, token_out} <= reserves.keys():
            return None
        # The product of both amounts stays constant, apart from the fee.
        net = amount_in * (FEE_DIVISOR - self.fee)
        return net * reserves[token_out] // (reserves[token_in] * FEE_DIVISOR + net) if net else 0


class Dex(Contract):
    """An exchange that its owner can pause."""

    class State(msgspec.Struct):
        """The exchange's state, except pools and deposits."""

        owner_id: str
        pool_count: int = 0
        paused: bool = False

    state: State

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self._pools = JsonMap(vm, b"p", Pool)
        self._deposits = JsonMap(vm, b"d", dict[str, int])  # by account: amounts by token

    # The owner's methods --------------------------------------------------------------

    @call
    def pause(self) -> None:
        """Stop accepting tokens until `resume`."""
        self._assert_owner()
        self.state.paused = True
        self.vm.log("Paused")

    @call
    def resume(self) -> None:
        self._assert_owner()
        self.state.paused = False
        self.vm.log("Resumed")

    # Tokens in and out ----------------------------------------------------------------

    @call
    def ft_on_transfer(self, sender_id: AccountId, amount: U128, msg: str) -> U128:
        """Deposit or swap the tokens that arrive; return 0, since all of them are used."""
        self.require(not self.state.paused, "the contract is paused")
        token_id = self.vm.predecessor_id
        if msg:
            message: Message | None = from_json(msg, Message)
            if message is None:
                self.vm.panic("The message is not understood")
            token_out, amount_out = self._swap_all(message.actions, token_id, amount)
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

    # Views ----------------------------------------------------------------------------

    get_number_of_pools = state_view("pool_count")

    @view
    def get_deposits(self, account_id: AccountId) -> dict[str, U128]:
        deposits = self._deposits.get(account_id) or {}
        return {token_id: U128(amount) for token_id, amount in deposits.items()}

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
        pool = self._pools.required(str(action.pool_id), f"There is no pool {action.pool_id}")
        token_in, token_out = action.token_in, action.token_out
        amount_out = pool.quote(token_in, amount, token_out)
        if amount_out is None:
            self.vm.panic(f"Pool {action.pool_id} does not trade {token_in} for {token_out}")
        least = int(action.min_amount_out)
        self.require(amount_out > 0, "The amount is too small to swap")
        self.require(
            amount_out >= least, f"Slippage: {amount_out} is less than the least amount {least}"
        )
        index_in, index_out = (pool.token_ids.index(t) for t in (token_in, token_out))
        pool.amounts[index_in] = self._check_u128(pool.amounts[index_in] + amount)
        pool.amounts[index_out] -= amount_out
        self._pools.put(str(action.pool_id), pool)
        self.vm.log(f"Swapped {amount} {token_in} for {amount_out} {token_out}")
        return amount_out

    def _send(self, account_id: str, token_id: str, amount: int) -> Promise:
        """Transfer tokens of this contract; the callback deposits them if that fails."""
        transfer = to_json({"receiver_id": account_id, "amount": U128(amount)})
        promise = self.vm.promise(token_id)
        promise.function_call("ft_transfer", transfer, deposit=1, gas=6 * TGAS)
        args = {"account_id": account_id, "token_id": token_id, "amount": U128(amount)}
        return self.call_back(promise, "on_sent", 4 * TGAS, **args)

    # Records --------------------------------------------------------------------------

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
        self._deposits.put_or_remove(account_id, deposits)

    def _check_u128(self, amount: int) -> int:
        self.require(amount <= U128_MAX, "An amount exceeds 128 bits")
        return amount

    def _assert_owner(self) -> None:
        self.require(self.vm.predecessor_id == self.state.owner_id, "Only the owner may do this")

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
