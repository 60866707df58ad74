"""
Fungible tokens: balances, transfers with and without a call, registration (NEP-141, 145, 148).

`FungibleBase` has what the standards ask for; a contract that mints by a rule of its own
derives from it. `Fungible` is the plain token, whose owner mints.

Records: ``a`` + account id → balance, 16 bytes, so that the longest id costs 125 bytes;
the rest is in the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from ledgerkit.localnet.contract_sdk import (
    STATE_KEY,
    U128,
    BalanceMap,
    Contract,
    call,
    from_json,
    to_json,
    view,
)
from ledgerkit.localnet.fees import STORAGE_BYTE, TGAS
from ledgerkit.localnet.vm import Promise  # noqa: TC001 - annotations are read when it runs
from ledgerkit.protocol import AccountId
from ledgerkit.protocol.borsh import text
from ledgerkit.units import U128_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ledgerkit.localnet.vm import Vm

SPEC = "ft-1.0.0"
PREFIX = b"a"
ACCOUNT_BYTES = 125  # of the longest account's record
REGISTRATION = U128(ACCOUNT_BYTES * STORAGE_BYTE)
RESOLVE_GAS = 5 * TGAS
NOT_ENOUGH = "The account doesn't have enough balance"
TOO_SMALL = "The attached deposit is less than the minimum storage balance"
KEEPS_BALANCE = "Can't unregister the account with the positive balance without force"


class FungibleMetadata(Struct, frozen=True, kw_only=True):
    """What a token says of itself."""

    spec: str
    name: str
    symbol: str
    icon: str | None = None
    reference: str | None = None
    reference_hash: str | None = None
    decimals: Annotated[int, Meta(ge=0, le=255)]


class StorageBalance(Struct, frozen=True):
    """What an account has paid for its record."""

    total: U128
    available: U128


class StorageBounds(Struct, frozen=True):
    """What an account has to pay for its record, and what it can pay at most."""

    min: U128
    max: U128


PAID = StorageBalance(REGISTRATION, U128(0))
EXAMPLE = FungibleMetadata(
    spec=SPEC, name="Example NEAR fungible token", symbol="EXAMPLE", decimals=24
)


def balance_records(holders: Mapping[str, int]) -> Iterator[tuple[bytes, bytes]]:
    """Write the records of registered accounts and their balances."""
    for account_id, balance in holders.items():
        yield PREFIX + text(account_id), balance.to_bytes(16, "little")


class FungibleTokenBase(Contract):
    """
    What the standards ask of a token, for contracts that mint by rules of their own.

    Parameters
    ----------
    vm
        The machine.
    """

    class State(Struct, kw_only=True):
        """What every token keeps beside its balances."""

        metadata: FungibleMetadata
        total_supply: int = 0

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self.accounts = BalanceMap(vm, PREFIX)

    # NEP-141 -----------------------------------------------------------------------------

    @call(payable=True)
    def ft_transfer(self, receiver_id: AccountId, amount: U128, memo: str | None = None) -> None:
        """Send tokens."""
        self.assert_one_yocto()
        self.move(self.vm.predecessor_id, receiver_id, amount, memo)

    @call(payable=True)
    def ft_transfer_call(
        self, receiver_id: AccountId, amount: U128, msg: str, memo: str | None = None
    ) -> Promise:
        """Send tokens to a contract and tell it; what it leaves over comes back."""
        self.assert_one_yocto()
        sender_id = self.vm.predecessor_id
        self.move(sender_id, receiver_id, amount, memo)
        told = {"sender_id": sender_id, "amount": amount, "msg": msg}
        moved = {"sender_id": sender_id, "receiver_id": receiver_id, "amount": amount}
        promise = self.vm.promise(receiver_id)
        promise.function_call("ft_on_transfer", to_json(told), weight=1)
        resolve = promise.then(self.vm.current_account_id)
        return resolve.function_call("ft_resolve_transfer", to_json(moved), gas=RESOLVE_GAS)

    @call(private=True)
    def ft_resolve_transfer(
        self, sender_id: AccountId, receiver_id: AccountId, amount: U128
    ) -> U128:
        """Take back what the receiver left over, and tell how much it used."""
        refund = min(self._unused(amount), self.accounts.get(receiver_id) or 0)
        if not refund:
            return amount
        self.debit(receiver_id, refund)
        if sender_id not in self.accounts:
            self.vm.log("The account of the sender was deleted")
            self.burnt(receiver_id, refund, "refund")
            return amount
        self.credit(sender_id, refund)
        self._moved(receiver_id, sender_id, refund, "refund")
        return U128(amount - refund)

    @view
    def ft_balance_of(self, account_id: AccountId) -> U128:
        """Tell an account's balance, 0 if it is not registered."""
        return U128(self.accounts.get(account_id) or 0)

    @view
    def ft_total_supply(self) -> U128:
        """Tell how much there is."""
        return U128(self.state.total_supply)

    # NEP-148 -----------------------------------------------------------------------------

    @view
    def ft_metadata(self) -> FungibleMetadata:
        """Tell name, symbol, decimals."""
        metadata: FungibleMetadata = self.state.metadata
        return metadata

    # NEP-145 -----------------------------------------------------------------------------

    @call(payable=True)
    def storage_deposit(
        self,
        account_id: AccountId | None = None,
        registration_only: bool | None = None,  # noqa: ARG002, FBT001 - there is nothing else to pay
    ) -> StorageBalance:
        """Register an account, the caller's own unless told."""
        payer_id, deposit = self.vm.predecessor_id, self.vm.attached_deposit
        account_id = account_id or AccountId(payer_id)
        if account_id in self.accounts:
            self.vm.log("The account is already registered, refunding the deposit")
        else:
            self.require(deposit >= REGISTRATION, TOO_SMALL)
            self.register(account_id)
            deposit -= REGISTRATION
        if deposit:
            self.vm.promise(payer_id).transfer(deposit)
        return PAID

    @call(payable=True)
    def storage_withdraw(self, amount: U128 | None = None) -> StorageBalance:
        """Pay back what is not needed, which is never anything."""
        self.assert_one_yocto()
        self.balance(self.vm.predecessor_id)
        self.require(not amount, "The amount is greater than the available storage balance")
        return PAID

    @call(payable=True)
    def storage_unregister(self, force: bool | None = None) -> bool:  # noqa: FBT001 - by name, as JSON
        """Close the caller's account and pay back its registration; tokens left are burnt."""
        self.assert_one_yocto()
        account_id = self.vm.predecessor_id
        balance = self.accounts.get(account_id)
        if balance is None:
            self.vm.log(f"The account {account_id} is not registered")
            return False
        self.require(force or not balance, KEEPS_BALANCE)
        self.accounts.remove(account_id)
        self.state.total_supply -= balance
        if balance:
            self.burnt(account_id, balance)
        self.vm.promise(account_id).transfer(REGISTRATION + 1)
        return True

    @view
    def storage_balance_of(self, account_id: AccountId) -> StorageBalance | None:
        """Tell what an account has paid; null if it is not registered."""
        return PAID if account_id in self.accounts else None

    @view
    def storage_balance_bounds(self) -> StorageBounds:
        """Tell what registration costs."""
        return StorageBounds(REGISTRATION, REGISTRATION)

    # For contracts that derive from this -------------------------------------------------

    def register(self, account_id: str) -> None:
        """Open an account."""
        self.accounts.put(account_id, 0)

    def balance(self, account_id: str) -> int:
        """Give the balance of an account that must be registered."""
        balance = self.accounts.get(account_id)
        if balance is None:
            self.vm.panic(f"The account {account_id} is not registered")
        return balance

    def credit(self, account_id: str, amount: int) -> None:
        """Add new tokens to an account."""
        balance = self.balance(account_id)
        self.state.total_supply += amount
        self.require(self.state.total_supply <= U128_MAX, "Total supply overflow")
        self.accounts.put(account_id, balance + amount)

    def debit(self, account_id: str, amount: int) -> None:
        """Take tokens off an account and out of the supply."""
        balance = self.balance(account_id)
        self.require(amount <= balance, NOT_ENOUGH)
        self.state.total_supply -= amount
        self.accounts.put(account_id, balance - amount)

    def move(self, sender_id: str, receiver_id: str, amount: int, memo: str | None) -> None:
        """Move tokens from one account to another."""
        self.require(sender_id != receiver_id, "Sender and receiver should be different")
        self.require(amount > 0, "The amount should be a positive number")
        self.debit(sender_id, amount)
        self.credit(receiver_id, amount)
        self._moved(sender_id, receiver_id, amount, memo)

    def minted(self, owner_id: str, amount: int, memo: str | None = None) -> None:
        """Tell of new tokens."""
        self._told("ft_mint", {"owner_id": owner_id, "amount": str(amount), "memo": memo})

    def burnt(self, owner_id: str, amount: int, memo: str | None = None) -> None:
        """Tell of tokens that are no more."""
        self._told("ft_burn", {"owner_id": owner_id, "amount": str(amount), "memo": memo})

    def _moved(self, old_owner_id: str, new_owner_id: str, amount: int, memo: str | None) -> None:
        """Tell of tokens that changed hands."""
        owners = {"old_owner_id": old_owner_id, "new_owner_id": new_owner_id}
        self._told("ft_transfer", {**owners, "amount": str(amount), "memo": memo})

    def _told(self, event: str, row: dict[str, str | None]) -> None:
        """Log an event of the standard."""
        self.event("nep141", "1.0.0", event, [row])

    def _unused(self, amount: int) -> int:
        """Read what the receiver left over: all of it, if it failed or answered nonsense."""
        left = from_json(self.vm.promise_results[0])
        is_digits = isinstance(left, str) and left.isascii() and left.isdigit()
        if not is_digits or len(left) > len(str(U128_MAX)):
            return amount
        return min(int(left), amount) if int(left) <= U128_MAX else amount


class FungibleToken(FungibleTokenBase, code_name="ledgerkit.localnet.contracts.fungible.Fungible"):
    """A token whose owner mints."""

    class State(FungibleTokenBase.State, kw_only=True):
        """Whose it is, too."""

        owner_id: str

    @call(init=True)
    def new(self, owner_id: AccountId, total_supply: U128, metadata: FungibleMetadata) -> None:
        """Begin, with all tokens in the owner's account."""
        self.require(metadata.spec == SPEC, f"The spec should be {SPEC}")
        self.state = self.State(owner_id=str(owner_id), metadata=metadata)
        self.register(owner_id)
        self.credit(owner_id, total_supply)
        self.minted(owner_id, total_supply, "new tokens are minted")

    @call(init=True)
    def new_default_meta(self, owner_id: AccountId, total_supply: U128) -> None:
        """Begin as an example token."""
        self.new(owner_id, total_supply, EXAMPLE)

    @call
    def mint(self, account_id: AccountId, amount: U128) -> None:
        """Make new tokens for a registered account."""
        owner_id = self.state.owner_id
        self.require(self.vm.predecessor_id == owner_id, f"Only {owner_id} can mint")
        self.require(amount > 0, "The amount should be a positive number")
        self.credit(account_id, amount)
        self.minted(account_id, amount)

    @classmethod
    def genesis(
        cls,
        owner_id: str,
        holders: Mapping[str, int],
        metadata: FungibleMetadata = EXAMPLE,
    ) -> Iterator[tuple[bytes, bytes]]:
        """
        Write the records of a token that has its holders already.

        Parameters
        ----------
        owner_id
            Who mints; registered like the holders.
        holders
            The registered accounts and their balances.
        metadata
            What the token says of itself.

        Yields
        ------
        key, value
            As calls of `new`, `storage_deposit` and `mint` would leave them.
        """
        supply = sum(holders.values())
        state = cls.State(owner_id=owner_id, metadata=metadata, total_supply=supply)
        yield STATE_KEY, to_json(state)
        yield from balance_records({owner_id: 0, **holders})
