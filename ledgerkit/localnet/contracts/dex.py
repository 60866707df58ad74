"""
A decentralised exchange: pools of two tokens, which trade at the ratio of what they hold.

Whoever sends a token here by ``ft_transfer_call`` says in the message what to do with it:
nothing said, it is deposited; actions, it is swapped, and what comes out is sent back at
once. While the exchange is paused it takes nothing in, so that the token's own contract
gives senders back what they sent; what is deposited can still be withdrawn.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

import msgspec

from ledgerkit.localnet.contract_sdk import (
    STATE_KEY,
    U128,
    BalanceMap,
    Contract,
    JsonMap,
    call,
    to_json,
    view,
)
from ledgerkit.localnet.contracts.callbacks import succeeded
from ledgerkit.localnet.vm import Promise, Vm
from ledgerkit.protocol import AccountId
from ledgerkit.protocol.borsh import text, u128
from ledgerkit.units import U128_MAX

FEE = 30  # of FEE_DIVISOR, taken from what comes in; it stays in the pool
FEE_DIVISOR = 10_000
FIRST_SHARES = 10**24  # what a pool's first provider gets, whatever the amounts
FT_TRANSFER_GAS = 6 * 10**12
ON_SENT_GAS = 4 * 10**12
PAUSED = "the contract is paused"
BAD_MESSAGE = "The message is not understood"
OVERFLOW = "An amount exceeds 128 bits"

Digits = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,39}\Z")]


class Action(msgspec.Struct):
    """A swap in one pool; of several, each goes on with what the one before gave."""

    pool_id: int
    token_in: str
    token_out: str
    min_amount_out: Digits


class Message(msgspec.Struct):
    """What the message of a transfer says."""

    actions: Annotated[list[Action], msgspec.Meta(min_length=1)]


class PoolView(msgspec.Struct):
    """What is told of a pool."""

    pool_kind: str
    token_account_ids: list[str]
    amounts: list[U128]
    total_fee: int
    shares_total_supply: U128


class Pool(msgspec.Struct):
    """Two tokens, how much of each is held, and into how many shares it is divided."""

    token_ids: list[str]
    amounts: list[int]
    fee: int = FEE
    shares: int = 0

    def sides(self, token_in: str, token_out: str) -> tuple[int, int] | None:
        """Find the places of two tokens; None if they are not the two traded here."""
        if token_in == token_out or not {token_in, token_out} <= set(self.token_ids):
            return None
        return self.token_ids.index(token_in), self.token_ids.index(token_out)

    def quote(self, token_in: str, amount_in: int, token_out: str) -> int | None:
        """
        Tell what a swap gives: amount_in less the fee, at a constant product of the two sides.

        Parameters
        ----------
        token_in, amount_in
            What goes in.
        token_out
            What comes out.

        Returns
        -------
        amount_out
            Rounded down; None if the pool does not trade these tokens.
        """
        sides = self.sides(token_in, token_out)
        if sides is None:
            return None
        held_in, held_out = self.amounts[sides[0]], self.amounts[sides[1]]
        net = amount_in * (FEE_DIVISOR - self.fee)
        return net * held_out // (held_in * FEE_DIVISOR + net) if net else 0

    def shown(self) -> PoolView:
        """Write it as the views do."""
        amounts = [U128(amount) for amount in self.amounts]
        return PoolView("SIMPLE_POOL", self.token_ids, amounts, self.fee, U128(self.shares))


class Dex(Contract):
    """The exchange."""

    class State(msgspec.Struct):
        """What is kept, beside the pools, the shares and the deposits."""

        owner_id: str
        pool_count: int = 0
        paused: bool = False

    state: State

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self._pools = JsonMap(vm, b"p", Pool)
        self._shares = BalanceMap(vm, b"s")  # by "pool_id:account_id"
        self._deposits = JsonMap(vm, b"d", dict[str, int])  # by account: amounts by token

    # The owner's ----------------------------------------------------------------------

    @call(init=True)
    def new(self, owner_id: AccountId) -> None:
        """Begin, without pools."""
        self.state = self.State(str(owner_id))

    @call
    def add_simple_pool(self, tokens: list[AccountId]) -> int:
        """Open a pool of two tokens; return its id."""
        self._only_owner()
        self.require(len(set(tokens)) == len(tokens) == 2, "A pool has two different tokens")  # noqa: PLR2004 - two
        pool_id = self.state.pool_count
        self._pools.put(str(pool_id), Pool([str(token) for token in tokens], [0, 0]))
        self.state.pool_count += 1
        return pool_id

    @call
    def pause(self) -> None:
        """Take nothing in until `resume`."""
        self._only_owner()
        self.state.paused = True
        self.vm.log("Paused")

    @call
    def resume(self) -> None:
        """Go on."""
        self._only_owner()
        self.state.paused = False
        self.vm.log("Resumed")

    # Tokens in and out ----------------------------------------------------------------

    @call
    def ft_on_transfer(self, sender_id: AccountId, amount: U128, msg: str) -> U128:
        """Deposit what the calling token sent, or swap it; all of it is used."""
        self._running()
        token_id = self.vm.predecessor_id
        if msg:
            token_out, amount_out = self._swap_along(_read(self.vm, msg), token_id, amount)
            self._send(sender_id, token_out, amount_out)
        else:
            self._credit(sender_id, token_id, amount)
            self.vm.log(f"Deposited {amount} {token_id} for {sender_id}")
        return U128(0)

    @call(payable=True)
    def withdraw(self, token_id: AccountId, amount: U128) -> Promise:
        """Send the caller what it has deposited; tell whether it arrived."""
        self.assert_one_yocto()
        self.require(amount > 0, "The amount should be a positive number")
        self._debit(self.vm.predecessor_id, token_id, amount)
        return self._send(self.vm.predecessor_id, token_id, amount)

    @call(private=True)
    def on_sent(self, account_id: AccountId, token_id: AccountId, amount: U128) -> bool:
        """Deposit what could not be sent."""
        sent = succeeded(self.vm)
        if not sent:
            self._credit(account_id, token_id, amount)
            self.vm.log(f"Could not send {amount} {token_id} to {account_id}: it is deposited")
        return sent

    # Liquidity ------------------------------------------------------------------------

    @call
    def add_liquidity(self, pool_id: int, amounts: list[U128]) -> U128:
        """Move deposits into a pool, at most these amounts, at its ratio; return the shares."""
        self._running()
        pool, provider_id = self._pool(pool_id), self.vm.predecessor_id
        self.require(len(amounts) == len(pool.amounts), "Give an amount for each token")
        minted, used = _fair(pool, amounts)
        self.require(minted > 0, "The amounts are too small")
        for place, token_id in enumerate(pool.token_ids):
            self._debit(provider_id, token_id, used[place])
            pool.amounts[place] = self._bounded(pool.amounts[place] + used[place])
        self._change_shares(pool_id, pool, provider_id, minted)
        self.vm.log(f"Liquidity added {_told(pool, used)}, minted {minted} shares")
        return U128(minted)

    @call
    def remove_liquidity(self, pool_id: int, shares: U128) -> list[U128]:
        """Move a part of a pool into the caller's deposits; return the amounts."""
        pool, provider_id = self._pool(pool_id), self.vm.predecessor_id
        self.require(shares > 0, "The shares should be a positive number")
        self.require(shares <= self._shares_of(pool_id, provider_id), "Not enough shares")
        amounts = [held * shares // pool.shares for held in pool.amounts]
        for place, token_id in enumerate(pool.token_ids):
            pool.amounts[place] -= amounts[place]
            self._credit(provider_id, token_id, amounts[place])
        self._change_shares(pool_id, pool, provider_id, -shares)
        self.vm.log(f"Liquidity removed {_told(pool, amounts)}, burnt {shares} shares")
        return [U128(amount) for amount in amounts]

    # Views ----------------------------------------------------------------------------

    @view
    def get_pool(self, pool_id: int) -> PoolView:
        """Give a pool."""
        return self._pool(pool_id).shown()

    @view
    def get_pools(self, from_index: int = 0, limit: int = 100) -> list[PoolView]:
        """Give some of the pools."""
        end = min(from_index + limit, self.state.pool_count)
        return [self._pool(pool_id).shown() for pool_id in range(max(from_index, 0), end)]

    @view
    def get_number_of_pools(self) -> int:
        """Count the pools."""
        return self.state.pool_count

    @view
    def get_return(
        self, pool_id: int, token_in: AccountId, amount_in: U128, token_out: AccountId
    ) -> U128:
        """Tell what a swap would give now."""
        return U128(self._quote(self._pool(pool_id), pool_id, token_in, amount_in, token_out))

    @view
    def get_deposits(self, account_id: AccountId) -> dict[str, U128]:
        """Give what an account has deposited, by token."""
        held = self._deposits.get(account_id) or {}
        return {token_id: U128(amount) for token_id, amount in held.items()}

    @view
    def get_pool_shares(self, pool_id: int, account_id: AccountId) -> U128:
        """Give an account's shares of a pool."""
        return U128(self._shares_of(pool_id, account_id))

    @view
    def get_owner(self) -> str:
        """Name the owner."""
        return self.state.owner_id

    @view
    def is_paused(self) -> bool:
        """Tell whether the exchange is paused."""
        return self.state.paused

    # Swapping and sending -------------------------------------------------------------

    def _swap_along(self, actions: list[Action], token_id: str, amount: int) -> tuple[str, int]:
        """Do swaps, each with what the one before gave; give the last token and amount."""
        for action in actions:
            self.require(action.token_in == token_id, f"{token_id} is not the token to swap")
            amount = self._swap(action, amount)
            token_id = action.token_out
        return token_id, amount

    def _swap(self, action: Action, amount: int) -> int:
        """Swap in one pool."""
        pool = self._pool(action.pool_id)
        out = self._quote(pool, action.pool_id, action.token_in, amount, action.token_out)
        least = int(action.min_amount_out)
        self.require(out > 0, "The amount is too small to swap")
        self.require(out >= least, f"Slippage: {out} is less than the least amount {least}")
        place_in, place_out = (pool.token_ids.index(t) for t in (action.token_in, action.token_out))
        pool.amounts[place_in] = self._bounded(pool.amounts[place_in] + amount)
        pool.amounts[place_out] -= out
        self._pools.put(str(action.pool_id), pool)
        self.vm.log(f"Swapped {amount} {action.token_in} for {out} {action.token_out}")
        return out

    def _quote(
        self, pool: Pool, pool_id: int, token_in: str, amount_in: int, token_out: str
    ) -> int:
        """Tell what a swap gives, where the pool trades the tokens."""
        out = pool.quote(token_in, amount_in, token_out)
        if out is None:
            self.vm.panic(f"Pool {pool_id} does not trade {token_in} for {token_out}")
        return out

    def _send(self, account_id: str, token_id: str, amount: int) -> Promise:
        """Send tokens of this account, and deposit them where that fails."""
        transfer = to_json({"receiver_id": account_id, "amount": U128(amount)})
        sent = {"account_id": account_id, "token_id": token_id, "amount": U128(amount)}
        promise = self.vm.promise(token_id).function_call(
            "ft_transfer", transfer, deposit=1, gas=FT_TRANSFER_GAS
        )
        return promise.then(self.vm.current_account_id).function_call(
            "on_sent", to_json(sent), gas=ON_SENT_GAS
        )

    # Records --------------------------------------------------------------------------

    def _pool(self, pool_id: int) -> Pool:
        """Read a pool."""
        pool = self._pools.get(str(pool_id))
        if pool is None:
            self.vm.panic(f"There is no pool {pool_id}")
        return pool

    def _shares_of(self, pool_id: int, account_id: str) -> int:
        """Read an account's shares of a pool."""
        return self._shares.get(f"{pool_id}:{account_id}") or 0

    def _change_shares(self, pool_id: int, pool: Pool, account_id: str, by: int) -> None:
        """Mint or burn shares, and keep the pool."""
        pool.shares = self._bounded(pool.shares + by)
        self._pools.put(str(pool_id), pool)
        left = self._shares_of(pool_id, account_id) + by
        if left:
            self._shares.put(f"{pool_id}:{account_id}", left)
        else:
            self._shares.remove(f"{pool_id}:{account_id}")

    def _credit(self, account_id: str, token_id: str, amount: int) -> None:
        """Add to an account's deposit."""
        held = self._deposits.get(account_id) or {}
        held[str(token_id)] = self._bounded(held.get(token_id, 0) + amount)
        self._deposits.put(account_id, held)

    def _debit(self, account_id: str, token_id: str, amount: int) -> None:
        """Take from an account's deposit; nothing is kept of one that is used up."""
        held = self._deposits.get(account_id) or {}
        left = held.pop(token_id, 0) - amount
        self.require(left >= 0, f"{account_id} has not deposited enough {token_id}")
        if left:
            held[str(token_id)] = left
        if held:
            self._deposits.put(account_id, held)
        else:
            self._deposits.remove(account_id)

    def _bounded(self, amount: int) -> int:
        """Refuse an amount that the chain could not write."""
        self.require(amount <= U128_MAX, OVERFLOW)
        return amount

    def _only_owner(self) -> None:
        """Refuse everybody else."""
        self.require(self.vm.predecessor_id == self.state.owner_id, "Only the owner may do this")

    def _running(self) -> None:
        """Refuse while the exchange is paused."""
        self.require(not self.state.paused, PAUSED)

    @classmethod
    def genesis(
        cls, owner_id: str, pools: Iterable[Mapping[str, int]] = (), *, paused: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """
        Give the records of an exchange whose owner has filled its pools.

        Parameters
        ----------
        owner_id
            The owner, and the pools' only provider.
        pools
            For each pool the amounts of its two tokens; the tokens' own records have to
            say that this contract holds them.
        paused
            Whether it is paused.

        Yields
        ------
        key, value
            A record.
        """
        count = 0
        for count, held in enumerate(pools, start=1):
            pool_id = str(count - 1)
            pool = Pool(list(held), list(held.values()), shares=FIRST_SHARES)
            yield b"p" + text(pool_id), to_json(pool)
            yield b"s" + text(f"{pool_id}:{owner_id}"), u128(FIRST_SHARES)
        yield STATE_KEY, to_json(cls.State(owner_id, count, paused))


def _read(vm: Vm, msg: str) -> list[Action]:
    """Read the message of a swap."""
    try:
        return msgspec.json.decode(msg, type=Message).actions
    except (msgspec.DecodeError, RecursionError):
        vm.panic(BAD_MESSAGE)


def _fair(pool: Pool, amounts: list[U128]) -> tuple[int, list[int]]:
    """Tell how many shares amounts are worth, and how much of them that takes, rounded up."""
    if not pool.shares:
        return (FIRST_SHARES if all(amounts) else 0), [int(amount) for amount in amounts]
    pairs = list(zip(amounts, pool.amounts, strict=True))
    minted = min(amount * pool.shares // held for amount, held in pairs)
    return minted, [-(-held * minted // pool.shares) for held in pool.amounts]


def _told(pool: Pool, amounts: list[int]) -> str:
    """Write amounts with their tokens."""
    pairs = zip(amounts, pool.token_ids, strict=True)
    return " and ".join(f"{amount} {token_id}" for amount, token_id in pairs)
