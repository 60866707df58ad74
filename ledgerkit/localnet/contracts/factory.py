"""A factory: it creates accounts under its own, each with a contract that is ready to use."""

from collections.abc import Iterator
from typing import Any

from ledgerkit.localnet.contract_sdk import U128, Contract, call, to_json, view
from ledgerkit.localnet.contracts.naming import settle_creation
from ledgerkit.localnet.vm import Promise
from ledgerkit.protocol import AccountId

NEW_GAS = 15 * 10**12
ON_CREATED_GAS = 10 * 10**12


def _kinds() -> dict[str, type[Contract]]:
    """Give what the factory can make."""
    from ledgerkit.localnet.contracts.counter import Counter
    from ledgerkit.localnet.contracts.fungible import Fungible
    from ledgerkit.localnet.contracts.nonfungible import NonFungible

    return {"counter": Counter, "ft": Fungible, "nft": NonFungible}


class Factory(Contract):
    """Creates `name` under its own account: the account, its key, its code, its first state."""

    @call(payable=True)
    def create(self, name: str, kind: str, args: dict[str, Any]) -> Promise:
        """Create an account in one receipt, so that nothing of it remains if a part fails."""
        made = _kinds().get(kind)
        if made is None:
            self.vm.panic(f"There is no contract of kind {kind}")
        account_id, deposit = f"{name}.{self.vm.current_account_id}", self.vm.attached_deposit
        told = {
            "account_id": account_id,
            "creator_id": self.vm.predecessor_id,
            "amount": U128(deposit),
        }
        batch = self.vm.promise(account_id).create_account().transfer(deposit)
        batch.add_full_access_key(self.vm.signer_public_key).deploy_contract(made.code)
        batch.function_call("new", to_json(args), gas=NEW_GAS)
        return batch.then(self.vm.current_account_id).function_call(
            "on_created", to_json(told), gas=ON_CREATED_GAS
        )

    @call(private=True)
    def on_created(self, account_id: AccountId, creator_id: AccountId, amount: U128) -> bool:
        """Send the deposit back if there is no account; the chain returned it here."""
        return settle_creation(self.vm, account_id, creator_id, amount)

    @view
    def get_kinds(self) -> list[str]:
        """Name what can be made."""
        return sorted(_kinds())

    @classmethod
    def genesis(cls) -> Iterator[tuple[bytes, bytes]]:
        """Give no records: this contract keeps none."""
        yield from ()
