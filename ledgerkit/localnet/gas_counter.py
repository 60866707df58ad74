"""The gas of one contract call: burnt, reserved for new receipts, and by cost."""

from __future__ import annotations

from ledgerkit.localnet import fees
from ledgerkit.localnet.execution_errors import HostError
from ledgerkit.units import U64_MAX

HOST, ACTION = "WASM_HOST_COST", "ACTION_COST"  # the categories of a gas profile
INSTRUCTIONS = "WASM_INSTRUCTION"  # the cost of a contract's own computation


class GasCounter:
    """The gas that a call burns, and the gas it reserves for the receipts it creates."""

    __slots__ = ("_is_view", "burnt", "fixed", "limit", "profile", "used")

    def __init__(self, limit: int, fixed: int | None, *, is_view: bool = False) -> None:
        self.limit, self.fixed, self._is_view = limit, fixed, is_view
        self.burnt = self.used = 0  # used: burnt and reserved
        self.profile: dict[tuple[str, str], int] = {}

    @property
    def remaining(self) -> int:
        """The gas that is neither burnt nor reserved."""
        return self.limit - self.used

    def burn_host(self, cost: str, count: int = 1) -> None:
        """Burn the gas of a host function, unless the gas of the computation is fixed."""
        if self.fixed is None and count:
            self.burn(fees.HOST_COSTS[cost] * count, HOST, cost)

    def burn(self, gas: int, category: str, cost: str) -> None:
        """Burn gas; an excess over the remaining gas burns from the reserved gas and fails."""
        self._check_overflow(self.burnt + gas)
        is_enough = gas <= self.remaining
        burnt = gas if is_enough else min(gas, self.limit - self.burnt)
        self.burnt += burnt
        self.used = self.used + burnt if is_enough else self.limit
        entry = (category, cost)
        self.profile[entry] = self.profile.get(entry, 0) + burnt
        if not is_enough:
            raise self.exceeded()

    def reserve(self, gas: int) -> None:
        self._check_overflow(self.used + gas)
        if gas > self.remaining:
            self.used = self.limit
            raise self.exceeded()
        self.used += gas

    @staticmethod
    def _check_overflow(gas: int) -> None:
        if gas > U64_MAX:
            raise HostError("Integer overflow.", "IntegerOverflow")

    def exceeded(self) -> HostError:
        """Build the error of a call at its own gas limit, or at the limit of every call."""
        if self._is_view or self.burnt >= fees.MAX_GAS_BURNT:
            text = "Exceeded the maximum amount of gas allowed to burn per contract."
            return HostError(text, "GasLimitExceeded")
        return HostError("Exceeded the prepaid gas.", "GasExceeded")
