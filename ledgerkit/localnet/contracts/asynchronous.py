"""
The shapes that promises take, one method each: chains, joins, callbacks, waiting.

What the calls return is of no matter here; what counts is which receipt makes which, which
waits for which, and what becomes of a transaction when one of them fails.
"""

from collections.abc import Iterator
from typing import Any

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.contract_sdk import Contract, call, from_json, to_json, view
from ledgerkit.localnet.contracts.naming import succeeded
from ledgerkit.localnet.vm import MAX_INPUT_DATA, Promise
from ledgerkit.protocol import AccountId, CryptoHash

CALLBACK_GAS = 5 * 10**12


class Async(Contract):
    """Calls itself and others in every way there is."""

    # What is called -------------------------------------------------------------------

    @view
    def echo(self, value: Any = None) -> Any:
        """Return what is given."""
        return value

    @call
    def fail(self, message: str = "told to fail") -> None:
        """Panic."""
        self.vm.panic(message)

    # Chains and joins -----------------------------------------------------------------

    @call
    def chain(self, depth: int, made: int = 0) -> Promise | int:
        """Call itself `depth` times, each receipt making the next; return how many there were."""
        if depth <= 0:
            return made
        args = to_json({"depth": depth - 1, "made": made + 1})
        return self._call(self.vm.current_account_id, "chain", args)

    @call
    def fan_out(self, width: int, receiver_id: AccountId | None = None) -> Promise | int:
        """Call `echo` many times; return the results, or how many calls if they are too many."""
        target = receiver_id or self.vm.current_account_id
        calls = [self._call(target, "echo", to_json({"value": place})) for place in range(width)]
        # A receipt waits for no more than so many: beyond, nobody waits.
        return self._join(calls) if width <= MAX_INPUT_DATA else width

    @call
    def join(
        self, receiver_ids: list[AccountId], method_name: str, args: dict[str, Any] | None = None
    ) -> Promise:
        """Call a method of several contracts; return the list of what they returned."""
        packed = to_json(args or {})
        return self._join([self._call(one, method_name, packed) for one in receiver_ids])

    @call(private=True)
    def joined(self) -> list[Any]:
        """Gather results: null for what failed or is no JSON."""
        return [from_json(result) for result in self.vm.promise_results]

    # Failures -------------------------------------------------------------------------

    @call
    def swallow(
        self, receiver_id: AccountId, method_name: str, args: dict[str, Any] | None = None
    ) -> Promise:
        """Call a method, and succeed even if it fails."""
        called = self._call(receiver_id, method_name, to_json(args or {}))
        return self._back(called, "swallowed")

    @call(private=True)
    def swallowed(self) -> bool:
        """Tell whether the call succeeded."""
        done = succeeded(self.vm)
        self.vm.log("The call succeeded" if done else "The call failed, and that is all right")
        return done

    @call
    def detached_failure(self, message: str = "told to fail") -> None:
        """Make a receipt that fails, and do not wait for it: the transaction succeeds."""
        self._call(self.vm.current_account_id, "fail", to_json({"message": message}))

    # Waiting --------------------------------------------------------------------------

    @call
    def wait_for(self, what: str = "an answer") -> Promise:
        """Wait until somebody brings data to the id that is logged, or time is up."""
        promise, data_id = self.vm.yield_create("waited", to_json({"what": what}), weight=1)
        self.vm.log(f"Waiting for {what} at {data_id}")
        return promise

    @call
    def resume(self, data_id: str, payload: Any = None) -> bool:
        """Bring what is waited for; tell whether anything waits there."""
        try:
            wanted = CryptoHash(data_id)
        except InvalidRequestError:
            self.vm.panic("The data_id is not a hash")
        return self.vm.yield_resume(wanted, to_json(payload))

    @call(private=True)
    def waited(self, what: str) -> Any:
        """Return what was brought, null if nothing was."""
        come = succeeded(self.vm)
        self.vm.log(f"{what} came" if come else f"{what} did not come in time")
        return from_json(self.vm.promise_results[0])

    def _call(self, receiver_id: str, method_name: str, args: bytes) -> Promise:
        """Call with a share of the gas that is left."""
        return self.vm.promise(receiver_id).function_call(method_name, args, weight=1)

    def _join(self, calls: list[Promise]) -> Promise:
        """Gather the results of calls."""
        return self._back(self.vm.join(*calls), "joined")

    def _back(self, called: Promise, method_name: str) -> Promise:
        """Call itself with the results of calls."""
        back = called.then(self.vm.current_account_id)
        return back.function_call(method_name, b"{}", gas=CALLBACK_GAS)

    @classmethod
    def genesis(cls) -> Iterator[tuple[bytes, bytes]]:
        """Give no records: this contract keeps none."""
        yield from ()
