"""A counter: the smallest contract with a state, and a method that fails."""

from collections.abc import Iterator

import msgspec

from ledgerkit.localnet.contract_sdk import STATE_KEY, Contract, call, to_json, view

I64_MAX = 2**63 - 1
OVERFLOW = "attempt to add with overflow"


class Counter(Contract):
    """Counts, from 0 where nobody called `new`."""

    class State(msgspec.Struct):
        """What is kept."""

        number: int = 0

    state: State

    @call(init=True)
    def new(self, number: int = 0) -> None:
        """Begin at another number."""
        self.state = self.State()
        self._add(number)

    @view
    def get_num(self) -> int:
        """Give the number."""
        return self.state.number

    @call
    def increment(self, by: int = 1) -> None:
        """Count up."""
        self._add(by)
        self.vm.log(f"Increased number to {self.state.number}")

    @call
    def decrement(self, by: int = 1) -> None:
        """Count down."""
        self._add(-by)
        self.vm.log(f"Decreased number to {self.state.number}")

    @call
    def reset(self) -> None:
        """Begin again."""
        self.state.number = 0
        self.vm.log("Reset counter to zero")

    @call
    def fail(self, message: str = "The counter was told to fail") -> None:
        """Panic after a step that is undone by it."""
        self._add(1)
        self.vm.panic(message)

    def _add(self, by: int) -> None:
        """Add, within the 64 bits of the number."""
        number = self.state.number + by
        self.require(-I64_MAX - 1 <= number <= I64_MAX, OVERFLOW)
        self.state.number = number

    @classmethod
    def genesis(cls, number: int = 0) -> Iterator[tuple[bytes, bytes]]:
        """
        Give the records of a counter that stands at a number.

        Parameters
        ----------
        number
            The number.

        Yields
        ------
        key, value
            A record.
        """
        yield STATE_KEY, to_json(cls.State(number))
