"""Wrapped NEAR: a fungible token whose smallest unit is worth one yoctoNEAR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit.localnet.contract_sdk import STATE_KEY, U128, call, to_json
from ledgerkit.localnet.contracts.fungible_token import (
    REGISTRATION,
    SPEC,
    FungibleMetadata,
    FungibleTokenBase,
    balance_records,
)
from ledgerkit.localnet.promises import Promise  # noqa: TC001 - annotations are read when it runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

METADATA = FungibleMetadata(
    spec=SPEC, name="Wrapped NEAR fungible token", symbol="wNEAR", decimals=24
)


class WrappedNear(FungibleTokenBase, code_name="ledgerkit.localnet.contracts.wrapped.Wrapped"):
    """The wrapped token; the contract's account has one yoctoNEAR for each unit."""

    @call(init=True)
    def new(self) -> None:
        """Initialize the contract without tokens."""
        self.state = self.State(metadata=METADATA)

    @call(payable=True)
    def near_deposit(self) -> None:
        """Wrap the deposit; the first one pays for registration."""
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
        yield STATE_KEY, to_json(cls.State(metadata=METADATA, total_supply=sum(holders.values())))
        yield from balance_records(holders)
