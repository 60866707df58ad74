"""
Fungible tokens: balances, transfers, registration and metadata (NEP-141, NEP-145, NEP-148).

`FungibleTokenBase` implements the standards, for contracts with their own rules of minting.
`FungibleToken` is the plain token, which only its owner can mint, and `WrappedNear` a token whose
smallest unit is worth one yoctoNEAR.

Storage: ``a`` + account id -> balance in 16 bytes, at most 125 bytes per record. Everything
else is in the state.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import Meta, Struct

from ledgerkit.localnet.contract_sdk import (
    STATE_KEY,
    U128,
    BalanceMap,
    Contract,
    call,
    from_json,
    state_view,
    to_json,
    view,
)
from ledgerkit.localnet.fees import STORAGE_BYTE_PRICE, TGAS
from ledgerkit.localnet.promises import Promise
from ledgerkit.localnet.vm import Vm
from ledgerkit.protocol import AccountId
from ledgerkit.protocol.borsh import text
from ledgerkit.units import U128_MAX

SPEC = "ft-1.0.0"
PREFIX = b"a"
ACCOUNT_BYTES = 125  # the record with the longest account id
REGISTRATION = U128(ACCOUNT_BYTES * STORAGE_BYTE_PRICE)
TOO_SMALL = "The attached deposit is less than the minimum storage balance"
TOO_LARGE = "The amount is greater than the available storage balance"
KEEPS_BALANCE = "Can't unregister the account with the positive balance without force"


class FungibleMetadata(Struct, frozen=True, kw_only=True):
    """The metadata of a fungible token (NEP-148)."""

    spec: str
    name: str
    symbol: str
    icon: str | None = None
    reference: str | None = None
    reference_hash: str | None = None
    decimals: Annotated[int, Meta(ge=0, le=255)]


class StorageBalance(Struct, frozen=True):
    """The storage deposit of an account (NEP-145), in yoctoNEAR."""

    total: U128
    available: U128


class StorageBounds(Struct, frozen=True):
    """The least and greatest storage deposit of an account (NEP-145), in yoctoNEAR."""

    min: U128
    max: U128 | None = None


PAID = StorageBalance(REGISTRATION, U128(0))
EXAMPLE = FungibleMetadata(
    spec=SPEC, name="Example NEAR fungible token", symbol="EXAMPLE", decimals=24
)
WRAPPED = FungibleMetadata(
    spec=SPEC, name="Wrapped NEAR fungible token", symbol="wNEAR", decimals=24
)


def balance_records(holders: Mapping[str, int]) -> Iterator[tuple[bytes, bytes]]:
    for account_id, balance in holders.items():
        yield PREFIX + text(account_id), balance.to_bytes(16, "little")


class FungibleTokenBase(Contract):
    """The base of tokens: the standards' methods, without minting."""

    class State(Struct, kw_only=True):
        """The state of every token."""

        metadata: FungibleMetadata
        total_supply: int = 0

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self.accounts = BalanceMap(vm, PREFIX)

    # NEP-141 -----------------------------------------------------------------------------

    @call(payable=True)
    def ft_transfer(self, receiver_id: AccountId, amount: U128, memo: str | None = None) -> None:
        self.assert_one_yocto()
        self.move(self.vm.predecessor_id, receiver_id, amount, memo)

    @call(payable=True)
    def ft_transfer_call(
        self, receiver_id: AccountId, amount: U128, msg: str, memo: str | None = None
    ) -> Promise:
        """Transfer tokens and call the receiver, which returns the amount it does not use."""
        self.assert_one_yocto()
        sender_id = self.vm.predecessor_id
        self.move(sender_id, receiver_id, amount, memo)
        receiver_args = {"sender_id": sender_id, "amount": amount, "msg": msg}
        resolve_args = {"sender_id": sender_id, "receiver_id": receiver_id, "amount": amount}
        promise = self.vm.promise(receiver_id)
        promise.function_call("ft_on_transfer", to_json(receiver_args), weight=1)
        return self.call_back(promise, "ft_resolve_transfer", 5 * TGAS, **resolve_args)

    @call(private=True)
    def ft_resolve_transfer(
        self, sender_id: AccountId, receiver_id: AccountId, amount: U128
    ) -> U128:
        """Refund the unused amount to the sender; return the amount that was used."""
        unused: int | None = from_json(self.vm.promise_results[0], U128)
        if unused is None:  # without a valid result, the receiver used nothing
            unused = amount
        refund = min(amount, unused, self.accounts.get(receiver_id) or 0)
        if not refund:
            return amount
        self.debit(receiver_id, refund)
        if sender_id not in self.accounts:
            self.vm.log("The account of the sender was deleted")
            self.log_burn(receiver_id, refund, "refund")
            return amount
        self.credit(sender_id, refund)
        self._log_transfer(receiver_id, sender_id, refund, "refund")
        return U128(amount - refund)

    @view
    def ft_balance_of(self, account_id: AccountId) -> U128:
        """Return an account's balance, 0 if it is not registered."""
        return U128(self.accounts.get(account_id) or 0)

    ft_total_supply = state_view("total_supply", U128)

    # NEP-148 -----------------------------------------------------------------------------

    ft_metadata = state_view("metadata")

    # NEP-145 -----------------------------------------------------------------------------

    @call(payable=True)
    def storage_deposit(
        self,
        account_id: AccountId | None = None,
        registration_only: bool | None = None,  # noqa: ARG002, FBT001 - registration is the only storage cost
    ) -> StorageBalance:
        """Register an account, by default the caller's."""
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
        """Withdraw the available storage deposit, which is always 0."""
        self.assert_one_yocto()
        self.balance(self.vm.predecessor_id)
        self.require(not amount, TOO_LARGE)
        return PAID

    @call(payable=True)
    def storage_unregister(self, force: bool | None = None) -> bool:  # noqa: FBT001 - by name, as JSON
        """Unregister the caller and refund its deposit; `force` burns the remaining tokens."""
        self.assert_one_yocto()
        account_id = self.vm.predecessor_id
        balance = self.accounts.get(account_id)
        if balance is None:
            self.vm.log(f"The account {account_id} is not registered")
            return False
        self.require(force or not balance, KEEPS_BALANCE)
        self.accounts.remove(account_id)
        self.state.total_supply -= balance  # without an event, as in near-contract-standards
        self.vm.log(f"Closed @{account_id} with {balance}")
        self.vm.promise(account_id).transfer(REGISTRATION + 1)
        return True

    @view
    def storage_balance_of(self, account_id: AccountId) -> StorageBalance | None:
        """Return an account's storage deposit, null if it is not registered."""
        return PAID if account_id in self.accounts else None

    @view
    def storage_balance_bounds(self) -> StorageBounds:
        """Return the cost of registration, as both bounds."""
        return StorageBounds(REGISTRATION, REGISTRATION)

    # For derived contracts ---------------------------------------------------------------

    def register(self, account_id: str) -> None:
        self.accounts.put(account_id, 0)

    def balance(self, account_id: str) -> int:
        return self.accounts.required(account_id, f"The account {account_id} is not registered")

    def credit(self, account_id: str, amount: int) -> None:
        balance = self.balance(account_id)
        self.state.total_supply += amount
        self.require(self.state.total_supply <= U128_MAX, "Total supply overflow")
        self.accounts.put(account_id, balance + amount)

    def debit(self, account_id: str, amount: int) -> None:
        balance = self.balance(account_id)
        self.require(amount <= balance, "The account doesn't have enough balance")
        self.state.total_supply -= amount
        self.accounts.put(account_id, balance - amount)

    def move(self, sender_id: str, receiver_id: str, amount: int, memo: str | None) -> None:
        self.require(sender_id != receiver_id, "Sender and receiver should be different")
        self.require(amount > 0, "The amount should be a positive number")
        self.debit(sender_id, amount)
        self.credit(receiver_id, amount)
        self._log_transfer(sender_id, receiver_id, amount, memo)

    def log_mint(self, owner_id: str, amount: int, memo: str | None = None) -> None:
        self._log_event("ft_mint", {"owner_id": owner_id, "amount": str(amount), "memo": memo})

    def log_burn(self, owner_id: str, amount: int, memo: str | None = None) -> None:
        self._log_event("ft_burn", {"owner_id": owner_id, "amount": str(amount), "memo": memo})

    def _log_transfer(
        self, old_owner_id: str, new_owner_id: str, amount: int, memo: str | None
    ) -> None:
        owners = {"old_owner_id": old_owner_id, "new_owner_id": new_owner_id}
        self._log_event("ft_transfer", {**owners, "amount": str(amount), "memo": memo})

    def _log_event(self, event: str, row: dict[str, str | None]) -> None:
        self.event("nep141", "1.0.0", event, [row])


class FungibleToken(FungibleTokenBase, code_name="ledgerkit.localnet.contracts.fungible.Fungible"):
    """A token that only its owner can mint."""

    class State(FungibleTokenBase.State, kw_only=True):
        """The state of a token with an owner."""

        owner_id: str

    @call(init=True)
    def new(self, owner_id: AccountId, total_supply: U128, metadata: FungibleMetadata) -> None:
        """Initialize the token with its whole supply in the owner's account."""
        self.require(metadata.spec == SPEC, f"The spec should be {SPEC}")
        self.state = self.State(owner_id=str(owner_id), metadata=metadata)
        self.register(owner_id)
        self.credit(owner_id, total_supply)
        self.log_mint(owner_id, total_supply, "new tokens are minted")

    @call(init=True)
    def new_default_meta(self, owner_id: AccountId, total_supply: U128) -> None:
        self.new(owner_id, total_supply, EXAMPLE)

    @call
    def mint(self, account_id: AccountId, amount: U128) -> None:
        owner_id = self.state.owner_id
        self.require(self.vm.predecessor_id == owner_id, f"Only {owner_id} can mint")
        self.require(amount > 0, "The amount should be a positive number")
        self.credit(account_id, amount)
        self.log_mint(account_id, amount)

    @classmethod
    def genesis(
        cls, owner_id: str, holders: Mapping[str, int], metadata: FungibleMetadata = EXAMPLE
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the records of a token with registered holders; the owner is registered too."""
        supply = sum(holders.values())
        state = cls.State(owner_id=owner_id, metadata=metadata, total_supply=supply)
        yield STATE_KEY, to_json(state)
        yield from balance_records({owner_id: 0, **holders})


class WrappedNear(FungibleTokenBase, code_name="ledgerkit.localnet.contracts.wrapped.Wrapped"):
    """The wrapped token; the contract's account has one yoctoNEAR for each unit."""

    @call(init=True)
    def new(self) -> None:
        self.state = self.State(metadata=WRAPPED)

    @call(payable=True)
    def near_deposit(self) -> None:
        """Wrap the deposit; the first deposit also pays for registration."""
        account_id, amount = self.vm.predecessor_id, self.vm.attached_deposit
        self.require(amount > 0, "Requires positive attached deposit")
        if account_id not in self.accounts:
            self.require(amount >= REGISTRATION, "ERR_DEPOSIT_TOO_SMALL")
            self.register(account_id)
            amount -= REGISTRATION
        self.credit(account_id, amount)
        self.vm.log(f"Deposit {amount} NEAR to {account_id}")

    @call(payable=True)
    def near_withdraw(self, amount: U128) -> Promise:
        """Unwrap an amount; the attached yoctoNEAR is returned too."""
        self.assert_one_yocto()
        account_id = self.vm.predecessor_id
        self.debit(account_id, amount)
        self.vm.log(f"Withdraw {amount} NEAR from {account_id}")
        return self.vm.promise(account_id).transfer(amount + 1)

    @classmethod
    def genesis(cls, holders: Mapping[str, int]) -> Iterator[tuple[bytes, bytes]]:
        """Yield the records of a token with holders; its account has to own the sum of balances."""
        yield STATE_KEY, to_json(cls.State(metadata=WRAPPED, total_supply=sum(holders.values())))
        yield from balance_records(holders)
