"""The contract of a top-level account, which creates accounts below it for any caller."""

from collections.abc import Iterator

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.contract_sdk import BAD_INPUT, U128, Contract, call, to_json
from ledgerkit.localnet.contracts.callbacks import finish_creation
from ledgerkit.localnet.vm import Promise, Vm
from ledgerkit.protocol import AccountId, PublicKey

ON_CREATED_GAS = 13 * 10**12


class TopLevelAccount(Contract, code_name="ledgerkit.localnet.contracts.naming.Naming"):
    """A contract that creates accounts, with the methods of the real `near` account."""

    @call(payable=True)
    def create_account(self, new_account_id: AccountId, new_public_key: str) -> Promise:
        """Create an account with one full-access key; return whether it succeeded."""
        key, deposit = _parse_key(self.vm, new_public_key), self.vm.attached_deposit
        callback_args = {
            "new_account_id": new_account_id,
            "predecessor_account_id": self.vm.predecessor_id,
            "amount": U128(deposit),
        }
        creation = self.vm.promise(new_account_id)
        creation.create_account().add_full_access_key(key).transfer(deposit)
        return creation.then(self.vm.current_account_id).function_call(
            "on_account_created", to_json(callback_args), gas=ON_CREATED_GAS
        )

    @call(private=True)
    def on_account_created(
        self, new_account_id: AccountId, predecessor_account_id: AccountId, amount: U128
    ) -> bool:
        """Refund the deposit if the creation failed: the chain returned it to this account."""
        return finish_creation(self.vm, new_account_id, predecessor_account_id, amount)

    @classmethod
    def genesis(cls) -> Iterator[tuple[bytes, bytes]]:
        """Yield no records: this contract has no state."""
        yield from ()


def _parse_key(vm: Vm, public_key: str) -> PublicKey:
    """Parse a public key."""
    try:
        return PublicKey.from_text(public_key)
    except InvalidRequestError:
        vm.panic(BAD_INPUT)
