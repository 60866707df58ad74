"""A factory: a contract that creates accounts below its own, each with a ready contract."""

from typing import Any

from ledgerkit.localnet.contract_sdk import U128, Contract, call, to_json
from ledgerkit.localnet.contracts.top_level_account import finish_creation
from ledgerkit.localnet.fees import TGAS
from ledgerkit.localnet.promises import Promise
from ledgerkit.protocol import AccountId

NEW_GAS = 15 * TGAS
ON_CREATED_GAS = 10 * TGAS


def _contract_kinds() -> dict[str, type[Contract]]:
    from ledgerkit.localnet.contracts.counter import Counter
    from ledgerkit.localnet.contracts.fungible_token import FungibleToken
    from ledgerkit.localnet.contracts.non_fungible_token import NonFungibleToken

    return {"counter": Counter, "ft": FungibleToken, "nft": NonFungibleToken}


class Factory(Contract):
    """A contract that creates `name` below its account: account, key, code, first state."""

    @call(payable=True)
    def create(self, name: str, kind: str, args: dict[str, Any]) -> Promise:
        """Create an account in one receipt, so that a failed part reverts all of it."""
        contract = _contract_kinds().get(kind)
        if contract is None:
            self.vm.panic(f"There is no contract of kind {kind}")
        account_id, deposit = f"{name}.{self.vm.current_account_id}", self.vm.attached_deposit
        creator_id = self.vm.predecessor_id
        batch = self.vm.promise(account_id).create_account().transfer(deposit)
        batch.add_full_access_key(self.vm.signer_public_key).deploy_contract(contract.code)
        batch.function_call("new", to_json(args), gas=NEW_GAS)
        args = {"account_id": account_id, "creator_id": creator_id, "amount": U128(deposit)}
        return self.call_back(batch, "on_created", ON_CREATED_GAS, **args)

    @call(private=True)
    def on_created(self, account_id: AccountId, creator_id: AccountId, amount: U128) -> bool:
        """Refund the deposit if the creation failed: the chain returned it to this account."""
        return finish_creation(self.vm, account_id, creator_id, amount)
