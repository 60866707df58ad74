"""A counter: the smallest contract with a state, and a method that fails."""

from collections.abc import Iterator

import msgspec

from ledgerkit.localnet.contract_sdk import STATE_KEY, Contract, call, to_json, view

I64_MAX = 2**63 - 1


class Counter(Contract):
    """A signed 64-bit counter, 0 unless `new` was called."""

    class State(msgspec.Struct):
        """The counter's state."""

        number: int = 0

    state: State

    @call(init=True)
    def new(self, number: int = 0) -> None:
        self.state = self.State()
        self._add(number)

    @view
    def get_num(self) -> int:
        return self.state.number

    @call
    def increment(self, by: int = 1) -> None:
        self._add(by)
        self.vm.log(f"Increased number to {self.state.number}")

    @call
    def decrement(self, by: int = 1) -> None:
        self._add(-by)
        self.vm.log(f"Decreased number to {self.state.number}")

    @call
    def reset(self) -> None:
        self.state.number = 0
        self.vm.log("Reset counter to zero")

    @call
    def fail(self, message: str = "The counter was told to fail") -> None:
        """Increment the number, then panic, which reverts the increment."""
        self._add(1)
        self.vm.panic(message)

    def _add(self, by: int) -> None:
        number = self.state.number + by
        self.require(-I64_MAX - 1 <= number <= I64_MAX, "attempt to add with overflow")
        self.state.number = number

    @classmethod
    def genesis(cls, number: int = 0) -> Iterator[tuple[bytes, bytes]]:
        """Yield the record of a counter that was initialized with `number`."""
        yield STATE_KEY, to_json(cls.State(number))
