"""The contract of a top-level account, which creates accounts below it for any caller."""

from ledgerkit.localnet.contract_sdk import U128, Contract, call, succeeded
from ledgerkit.localnet.fees import TGAS
from ledgerkit.localnet.promises import Promise
from ledgerkit.localnet.vm import Vm
from ledgerkit.protocol import AccountId, PublicKey

ON_CREATED_GAS = 13 * TGAS


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
        return self.call_back(creation, "on_account_created", ON_CREATED_GAS, **args)

    @call(private=True)
    def on_account_created(
        self, new_account_id: AccountId, predecessor_account_id: AccountId, amount: U128
    ) -> bool:
        """Refund the deposit if the creation failed: the chain returned it to this account."""
        return finish_creation(self.vm, new_account_id, predecessor_account_id, amount)


def finish_creation(vm: Vm, account_id: str, payer_id: str, amount: int) -> bool:
    """Log the result of an account creation; refund `amount` yoctoNEAR if it failed."""
    created = succeeded(vm)
    if created:
        vm.log(f"Created {account_id}")
    else:
        vm.log(f"Could not create {account_id}: {amount} yoctoNEAR go back to {payer_id}")
        if amount:
            vm.promise(payer_id).transfer(amount)
    return created
