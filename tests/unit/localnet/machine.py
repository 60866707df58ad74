"""A module's side of a call, with a memory that a test writes: for tests of host functions."""

from __future__ import annotations

from typing import Any

from ledgerkit.localnet import fees
from ledgerkit.localnet.chain_types import NO_CODE, Account, BlockContext, CallContext
from ledgerkit.localnet.state import StateStore
from ledgerkit.localnet.vm import Vm
from ledgerkit.localnet.wasm.guest import Guest, memory_violation
from ledgerkit.localnet.wasm.host_functions import HOST_FUNCTIONS
from ledgerkit.protocol import CryptoHash, PublicKey
from tests.unit.localnet.ledger import N

KEY = PublicKey("ed25519", bytes(range(32)))


class FlatMemory:
    """A memory of some bytes."""

    def __init__(self, size: int = 65_536) -> None:
        self.data = bytearray(size)

    def read(self, address: int, length: int) -> bytes:
        if address + length > len(self.data):
            raise memory_violation()
        return bytes(self.data[address : address + length])

    def write(self, address: int, data: bytes) -> None:
        if address + len(data) > len(self.data):
            raise memory_violation()
        self.data[address : address + len(data)] = data


class Machine:
    """A guest with a memory that tests write to."""

    def __init__(self, profile: fees.Profile = fees.PROFILES["86"], **context: Any) -> None:
        self.memory, self._end = FlatMemory(), 0
        balance = context.pop("balance", 100 * N)
        values: dict[str, object] = {
            "account": Account(balance, 7, storage_usage=12),
            "block": BlockContext(10, 42, 1, NO_CODE, 0, {}),
            "current_account_id": "alice.near",
            "signer_id": "bob.near",
            "signer_public_key": KEY,
            "predecessor_id": "carol.near",
            "input": b"arguments",
            "attached_deposit": 2,
            "prepaid_gas": 300 * fees.TGAS,
            "random_seed": bytes(32),
            "action_hash": CryptoHash(bytes(32)),
            "chain_id": "localnet",
        }
        values.update(context)
        self.vm = Vm(
            CallContext(**values),  # type: ignore[arg-type]  # the values above
            StateStore().at(),
            profile,
        )
        self.guest = Guest(self.vm, self.memory)

    def put(self, data: bytes) -> tuple[int, int]:
        """Write bytes behind those before; return their length and address."""
        address = self._end
        self.memory.write(address, data)
        self._end += len(data)
        return len(data), address

    def amount(self, amount: int) -> int:
        """Write an amount; return its address."""
        return self.put(amount.to_bytes(16, "little"))[1]

    def run(self, name: str, *numbers: int) -> int:
        """Run a host function; return its number, 0 if it has none."""
        return HOST_FUNCTIONS[name].run(self.guest, *numbers) or 0

    def costs(self) -> dict[str, int]:
        """Return how often each cost was burnt, and begin anew."""
        profile, self.vm.gas.profile = self.vm.gas.profile, {}
        return {
            name.lower(): gas // fees.HOST_COSTS[name]
            for (category, name), gas in profile.items()
            if category == "WASM_HOST_COST" and gas
        }
