"""Running the code of an account: a contract in Python, or a Wasm module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit.localnet import contract_sdk
from ledgerkit.localnet.execution_errors import CodeError

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import Account
    from ledgerkit.localnet.promises import Promise
    from ledgerkit.localnet.state import State
    from ledgerkit.localnet.vm import Vm


def run_code(vm: Vm, state: State, account: Account | None, method_name: str) -> bytes | Promise:
    """Run a method of the code that an account runs; return its result or its promise."""
    code_hash = None if account is None else state.code_hash(account)
    if code_hash is None:
        raise CodeError(vm.current_account_id)
    contract = contract_sdk.CONTRACTS_BY_HASH.get(code_hash)
    if contract is not None:
        return contract_sdk.run_method(contract, vm, method_name)
    from ledgerkit.localnet.wasm import engine

    return engine.run_module(vm, code_hash, state.store.codes[code_hash], method_name)
