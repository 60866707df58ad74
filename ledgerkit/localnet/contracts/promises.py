"""
Cross-contract calls in every pattern, one method each: chains, joins, callbacks, yields.

The methods show which receipts create or wait for other receipts, and how a failed receipt
changes the transaction's outcome. Their results matter little.
"""

from typing import Any

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.contract_sdk import Contract, call, from_json, succeeded, to_json, view
from ledgerkit.localnet.fees import TGAS
from ledgerkit.localnet.promises import MAX_INPUT_DATA, Promise
from ledgerkit.protocol import AccountId, CryptoHash

CALLBACK_GAS = 5 * TGAS


class PromisePatterns(Contract, code_name="ledgerkit.localnet.contracts.asynchronous.Async"):
    """A contract that calls itself and other contracts in every pattern."""

    # Called methods -------------------------------------------------------------------

    @view
    def echo(self, value: Any = None) -> Any:
        return value

    @call
    def fail(self, message: str = "told to fail") -> None:
        self.vm.panic(message)

    # Chains and joins -----------------------------------------------------------------

    @call
    def chain(self, depth: int, made: int = 0) -> Promise | int:
        """Call itself `depth` times, each receipt creating the next; return the number of calls."""
        if depth <= 0:
            return made
        args = to_json({"depth": depth - 1, "made": made + 1})
        return self._call(self.vm.current_account_id, "chain", args)

    @call
    def fan_out(self, width: int, receiver_id: AccountId | None = None) -> Promise | int:
        """Call `echo` `width` times; return the results, or `width` beyond MAX_INPUT_DATA."""
        target = receiver_id or self.vm.current_account_id
        calls = [self._call(target, "echo", to_json({"value": index})) for index in range(width)]
        # A receipt can wait for MAX_INPUT_DATA results; larger joins are a host error.
        return self._join(calls) if width <= MAX_INPUT_DATA else width

    @call
    def join(
        self, receiver_ids: list[AccountId], method_name: str, args: dict[str, Any] | None = None
    ) -> Promise:
        """Call a method of several contracts; return the list of their results."""
        args_json = to_json(args or {})
        return self._join([self._call(target, method_name, args_json) for target in receiver_ids])

    @call(private=True)
    def joined(self) -> list[Any]:
        """Return the results of the joined calls, null for a failed or non-JSON result."""
        return [from_json(result) for result in self.vm.promise_results]

    # Failures -------------------------------------------------------------------------

    @call
    def swallow(
        self, receiver_id: AccountId, method_name: str, args: dict[str, Any] | None = None
    ) -> Promise:
        """Call a method, and succeed even if it fails."""
        promise = self._call(receiver_id, method_name, to_json(args or {}))
        return self.call_back(promise, "swallowed", CALLBACK_GAS)

    @call(private=True)
    def swallowed(self) -> bool:
        is_success = succeeded(self.vm)
        self.vm.log(
            "The call succeeded" if is_success else "The call failed, and that is all right"
        )
        return is_success

    @call
    def detached_failure(self, message: str = "told to fail") -> None:
        """Create a receipt that fails without returning it, so the transaction succeeds."""
        self._call(self.vm.current_account_id, "fail", to_json({"message": message}))

    # Yield and resume (NEP-519) -------------------------------------------------------

    @call
    def wait_for(self, what: str = "an answer") -> Promise:
        """Yield until `resume` is called with the logged data id, or the yield times out."""
        promise, data_id = self.vm.yield_create("waited", to_json({"what": what}), weight=1)
        self.vm.log(f"Waiting for {what} at {data_id}")
        return promise

    @call
    def resume(self, data_id: str, payload: Any = None) -> bool:
        try:
            data_hash = CryptoHash(data_id)
        except InvalidRequestError:
            self.vm.panic("The data_id is not a hash")
        return self.vm.yield_resume(data_hash, to_json(payload))

    @call(private=True)
    def waited(self, what: str) -> Any:
        """Return the payload, null after a timeout."""
        is_resumed = succeeded(self.vm)
        self.vm.log(f"{what} came" if is_resumed else f"{what} did not come in time")
        return from_json(self.vm.promise_results[0])

    def _call(self, receiver_id: str, method_name: str, args: bytes) -> Promise:
        return self.vm.promise(receiver_id).function_call(method_name, args, weight=1)

    def _join(self, calls: list[Promise]) -> Promise:
        return self.call_back(self.vm.join(*calls), "joined", CALLBACK_GAS)
