"""Contracts that create accounts: a factory, and the contract of a top-level account."""

from typing import Any

from ledgerkit.localnet.contract_sdk import U128, Contract, call, succeeded, to_json
from ledgerkit.localnet.contracts.counter import Counter
from ledgerkit.localnet.contracts.fungible_token import FungibleToken
from ledgerkit.localnet.contracts.non_fungible_token import NonFungibleToken
from ledgerkit.localnet.fees import TGAS
from ledgerkit.localnet.promises import Promise
from ledgerkit.localnet.vm import Vm
from ledgerkit.protocol import AccountId, PublicKey

KINDS: dict[str, type[Contract]] = {
    "counter": Counter,
    "ft": FungibleToken,
    "nft": NonFungibleToken,
}


class Factory(Contract):
    """A contract that creates `name` below its account: account, key, code, first state."""

    @call(payable=True)
    def create(self, name: str, kind: str, args: dict[str, Any]) -> Promise:
        """Create an account in one receipt, so that a failed part reverts all of it."""
        contract = KINDS.get(kind)
        if contract is None:
            self.vm.panic(f"There is no contract of kind {kind}")
        account_id, deposit = f"{name}.{self.vm.current_account_id}", self.vm.attached_deposit
        creator_id = self.vm.predecessor_id
        batch = self.vm.promise(account_id).create_account().transfer(deposit)
        batch.add_full_access_key(self.vm.signer_public_key).deploy_contract(contract.code)
        batch.function_call("new", to_json(args), gas=15 * TGAS)
        args = {"account_id": account_id, "creator_id": creator_id, "amount": U128(deposit)}
        return self.call_back(batch, "on_created", 10 * TGAS, **args)

    @call(private=True)
    def on_created(self, account_id: AccountId, creator_id: AccountId, amount: U128) -> bool:
        """Refund the deposit if the creation failed: the chain returned it to this account."""
        return _finish_creation(self.vm, account_id, creator_id, amount)


class TopLevelAccount(Contract, code_name="ledgerkit.localnet.contracts.naming.Naming"):
    """A contract that creates accounts, with the methods of near/near-linkdrop."""

    @call(payable=True)
    def create_account(self, new_account_id: AccountId, new_public_key: PublicKey) -> Promise:
        """Create an account with one full-access key; return whether it succeeded."""
        deposit = self.vm.attached_deposit
        args = {
            "new_account_id": new_account_id,
            "predecessor_account_id": self.vm.predecessor_id,
            "amount": U128(deposit),
        }
        creation = self.vm.promise(new_account_id)
        creation.create_account().add_full_access_key(new_public_key).transfer(deposit)
        return self.call_back(creation, "on_account_created", 13 * TGAS, **args)

    @call(private=True)
    def on_account_created(
        self, new_account_id: AccountId, predecessor_account_id: AccountId, amount: U128
    ) -> bool:
        """Refund the deposit if the creation failed: the chain returned it to this account."""
        return _finish_creation(self.vm, new_account_id, predecessor_account_id, amount)


def _finish_creation(vm: Vm, account_id: str, payer_id: str, amount: int) -> bool:
    """Log the result of an account creation; refund `amount` yoctoNEAR if it failed."""
    created = succeeded(vm)
    if created:
        vm.log(f"Created {account_id}")
    else:
        vm.log(f"Could not create {account_id}: {amount} yoctoNEAR go back to {payer_id}")
        if amount:
            vm.promise(payer_id).transfer(amount)
    return created
