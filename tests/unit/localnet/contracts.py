"""A contract on an account without a chain: for tests that call its methods directly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ledgerkit.localnet import contract_sdk, fees
from ledgerkit.localnet.chain_types import (
    NO_CODE,
    Account,
    BlockContext,
    CallContext,
    Outcome,
    SuccessReceiptId,
    SuccessValue,
)
from ledgerkit.localnet.execution_errors import CallError, PanicError
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.state import StateStore
from ledgerkit.localnet.vm import Vm
from ledgerkit.localnet.world import World
from ledgerkit.protocol import CryptoHash, FunctionCall, Transfer
from tests.unit.localnet.ledger import TGAS, N, secret

if TYPE_CHECKING:
    from ledgerkit.localnet.genesis import Genesis
    from ledgerkit.localnet.promises import Promise


class CallResult:
    """The result of a call."""

    def __init__(self, vm: Vm, result: bytes | Promise) -> None:
        self.vm, self.logs, self.drafts, self.raw = vm, vm.logs, vm.drafts, result
        self.value: Any = contract_sdk.from_json(result) if isinstance(result, bytes) else result

    @property
    def calls(self) -> list[tuple[str, str, bytes, int, int]]:
        """Its function calls: receiver, method, arguments, gas, deposit."""
        return [
            (draft.receiver_id, action.method_name, action.args, action.gas, action.deposit)
            for draft in self.drafts
            for action in draft.actions
            if isinstance(action, FunctionCall)
        ]

    @property
    def payments(self) -> list[tuple[str, int]]:
        """Its transfers: receiver and amount."""
        return [
            (draft.receiver_id, action.deposit)
            for draft in self.drafts
            for action in draft.actions
            if isinstance(action, Transfer)
        ]


class ContractHarness:
    """A contract on an account without a chain, called directly; a failure reverts its writes."""

    def __init__(
        self,
        kind: type[contract_sdk.Contract],
        account_id: str = "it.near",
        genesis: Any = (),
        *,
        balance: int = 10 * N,
        **context: Any,
    ) -> None:
        self.kind, self.account_id, self.store = kind, account_id, StateStore()
        for key, value in dict(genesis).items():
            self.store.data.put(account_id, key, value)
        self.balance, self.locked, self.usage = balance, 0, 100
        self.epoch, self.height, self.time_ns = 10, 100, 0
        self.context = {"prepaid_gas": 300 * TGAS, **context}

    def call(
        self,
        method: str,
        caller: Any = "alice.near",
        deposit: Any = 0,
        results: Any = (),
        **arguments: Any,
    ) -> CallResult:
        vm = self._vm(
            arguments, predecessor_id=caller, attached_deposit=deposit, promise_results=results
        )
        mark = self.store.mark()
        try:
            result = CallResult(vm, contract_sdk.run_method(self.kind, vm, method))
        except CallError:
            self.store.rollback(mark)
            raise
        self.balance, self.usage = vm.balance, vm.storage_usage
        return result

    def _vm(self, arguments: dict[str, Any], attached_deposit: int = 0, **context: Any) -> Vm:
        values: dict[str, Any] = {
            "current_account_id": self.account_id,
            "signer_id": "alice.near",
            "account": Account(
                self.balance + attached_deposit, self.locked, storage_usage=self.usage
            ),
            "block": BlockContext(self.height, self.time_ns, self.epoch, NO_CODE, 0, {}),
            "input": contract_sdk.to_json(arguments),
            "attached_deposit": attached_deposit,
        }
        vm_context = CallContext(**(values | self.context | context))
        return Vm(vm_context, self.store.at(), fees.PROFILES["86"])

    def panic_message(self, method: str, /, *positional: Any, **arguments: Any) -> str:
        """Call a method that panics and writes nothing; return the message."""
        before = self.records()
        with pytest.raises(PanicError) as caught:
            self.call(method, *positional, **arguments)
        assert self.records() == before
        return caught.value.text

    def view(self, method: str, /, **arguments: Any) -> Any:
        vm = self._vm(arguments, is_view=True)
        result = contract_sdk.run_method(self.kind, vm, method)
        assert isinstance(result, bytes)
        return contract_sdk.from_json(result)

    def records(self) -> dict[bytes, bytes]:
        return dict(self.store.at().records(self.account_id))


CALLER_KEY = secret("alice.near")


class ContractChain:
    """A chain with contracts, and callers whose calls are executed to the end."""

    def __init__(self, genesis: Genesis, **settings: Any) -> None:
        self.world = World(Settings(**settings), genesis)
        self.supply = genesis.total_supply

    def run(
        self,
        receiver_id: str,
        method: str,
        /,
        *,
        by: Any = "alice.near",
        deposit: Any = 0,
        gas: Any = 100,
        **arguments: Any,
    ) -> list[Outcome]:
        """Call a method and settle; return all outcomes, the transaction's first."""
        call = FunctionCall(method, contract_sdk.to_json(arguments), gas * TGAS, deposit)
        world = self.world
        signed = world.submit_unsigned(by, receiver_id, [call])
        world.settle()
        assert world.total_supply() + world.burnt - world.minted == self.supply
        return self.outcomes(signed.hash)

    def outcomes(self, outcome_id: CryptoHash) -> list[Outcome]:
        """Return an outcome and all that follow from it, except refunds."""
        receipt, outcome = self.world.receipt(outcome_id), self.world.outcome(outcome_id)
        if outcome is None or (receipt is not None and receipt.predecessor_id == "system"):
            return []
        return [outcome, *(o for child in outcome.receipt_ids for o in self.outcomes(child))]

    def result(self, outcome: Outcome | None) -> Any:
        """Return the value that an outcome resolves to, or the error of a failure."""
        assert outcome is not None
        status = outcome.status
        if isinstance(status, SuccessReceiptId):
            return self.result(self.world.outcome(status.receipt_id))
        if isinstance(status, SuccessValue):
            return contract_sdk.from_json(status.value)
        kind: Any = status.error
        kind = kind["ActionError"]["kind"]
        return kind.get("FunctionCallError", kind).get("ExecutionError", kind)

    def balance(self, account_id: str) -> int:
        """Return an account's yoctoNEAR."""
        balance = self.world.balance(account_id)
        assert balance is not None
        return balance

    def view(self, contract_id: str, method: str, /, **arguments: Any) -> Any:
        head, data = self.world.chain.head, contract_sdk.to_json(arguments)
        return contract_sdk.from_json(self.world.view(contract_id, method, data, head).result)
