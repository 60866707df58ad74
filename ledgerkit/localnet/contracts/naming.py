"""The contract of a top-level account: anybody may have an account created under it."""

from collections.abc import Iterator

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.contract_sdk import BAD_INPUT, U128, Contract, call, to_json
from ledgerkit.localnet.vm import Promise, Vm
from ledgerkit.protocol import AccountId, PublicKey

ON_CREATED_GAS = 13 * 10**12
ONE_RESULT = "Contract expected a result on the callback"


class Naming(Contract):
    """Creates `new_account_id` with what is attached, or sends that back."""

    @call(payable=True)
    def create_account(self, new_account_id: AccountId, new_public_key: str) -> Promise:
        """Create an account with one full access key; tell whether it came to be."""
        key, deposit = _key(self.vm, new_public_key), self.vm.attached_deposit
        told = {
            "new_account_id": new_account_id,
            "predecessor_account_id": self.vm.predecessor_id,
            "amount": U128(deposit),
        }
        created = self.vm.promise(new_account_id)
        created.create_account().add_full_access_key(key).transfer(deposit)
        return created.then(self.vm.current_account_id).function_call(
            "on_account_created", to_json(told), gas=ON_CREATED_GAS
        )

    @call(private=True)
    def on_account_created(
        self, new_account_id: AccountId, predecessor_account_id: AccountId, amount: U128
    ) -> bool:
        """Send the deposit back if there is no account; the chain returned it here."""
        return settle_creation(self.vm, new_account_id, predecessor_account_id, amount)

    @classmethod
    def genesis(cls) -> Iterator[tuple[bytes, bytes]]:
        """Give no records: this contract keeps none."""
        yield from ()


def _key(vm: Vm, public_key: str) -> PublicKey:
    """Read a public key."""
    try:
        return PublicKey.from_text(public_key)
    except InvalidRequestError:
        vm.panic(BAD_INPUT)


def succeeded(vm: Vm) -> bool:
    """Tell whether the one receipt that a callback waited for ended well."""
    if len(vm.promise_results) != 1:
        vm.panic(ONE_RESULT)
    return vm.promise_results[0] is not None


def settle_creation(vm: Vm, account_id: str, payer_id: str, amount: int) -> bool:
    """
    End a creation: log it, and where it failed send the deposit to whoever paid it.

    Parameters
    ----------
    vm
        The callback's machine.
    account_id
        The account to be created.
    payer_id
        Who attached the deposit.
    amount
        The deposit, in yoctoNEAR.

    Returns
    -------
    created
        Whether the account came to be.
    """
    created = succeeded(vm)
    if created:
        vm.log(f"Created {account_id}")
    else:
        vm.log(f"Could not create {account_id}: {amount} yoctoNEAR go back to {payer_id}")
        if amount:
            vm.promise(payer_id).transfer(amount)
    return created
