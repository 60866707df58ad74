"""
A running module for host functions: its memory, registers and promises.

A host function reads its arguments from the memory or a register of the module, calls the
method of the `Vm` for the function, and writes the result back. Reading and writing cost gas by
the byte (nearcore, near-vm-runner/src/logic/vmstate.rs).
"""

from typing import Protocol

from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.localnet import fees
from ledgerkit.localnet.execution_errors import HostError
from ledgerkit.localnet.gas_counter import HOST, INSTRUCTIONS
from ledgerkit.localnet.promises import Promise, parse_account_id
from ledgerkit.localnet.vm import Vm
from ledgerkit.protocol import PublicKey
from ledgerkit.units import U64_MAX

MAX_REGISTER_BYTES = 104_857_600
MAX_REGISTERS = 100
MAX_REGISTERS_BYTES = 2**30  # together, with the 8 bytes of each register's id
_ID_BYTES = 8
_U128_BYTES = 16
NUL_TERMINATED = U64_MAX  # as the length of a text
IN_REGISTER = U64_MAX  # as the length of bytes: the address is a register's id


class Memory(Protocol):
    """The memory of a module."""

    def read(self, address: int, length: int) -> bytes:
        """Return bytes; fail with `memory_violation` if they are not all in the memory."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Write bytes; fail with `memory_violation` if they do not fit in the memory."""
        ...


def memory_violation() -> HostError:
    """Build the error of an access outside of the memory, or beyond a limit of the registers."""
    return HostError("Accessed memory outside the bounds.", "MemoryAccessViolation")


class Guest:
    """A running module."""

    def __init__(self, vm: Vm, memory: Memory) -> None:
        self.vm, self.memory = vm, memory
        self.burn = vm.gas.burn_host
        self.promises: list[Promise] = []
        self._registers: dict[int, bytes] = {}
        self._register_bytes = 0

    def burn_instructions(self, count: int) -> None:
        self.vm.gas.burn(count * fees.REGULAR_OP, HOST, INSTRUCTIONS)

    # Memory and registers ----------------------------------------------------------------

    def read_memory(self, address: int, length: int) -> bytes:
        """Read bytes of the memory; bytes outside of it cost gas too."""
        self.burn("READ_MEMORY_BASE")
        self.burn("READ_MEMORY_BYTE", length)
        return self.memory.read(address, length)

    def write_memory(self, address: int, data: bytes) -> None:
        self.burn("WRITE_MEMORY_BASE")
        self.burn("WRITE_MEMORY_BYTE", len(data))
        self.memory.write(address, data)

    def read_register(self, register_id: int) -> bytes:
        data = self._registers.get(register_id)
        if data is None:
            text = f"Accessed invalid register id: {register_id}"
            raise HostError(text, "InvalidRegisterId", register_id=register_id)
        self.burn("READ_REGISTER_BASE")
        self.burn("READ_REGISTER_BYTE", len(data))
        return data

    def register_length(self, register_id: int) -> int:
        """Return the number of bytes in a register, 2^64 - 1 if it is not set."""
        data = self._registers.get(register_id)
        return U64_MAX if data is None else len(data)

    def write_register(self, register_id: int, data: bytes, *, by_bytes: bool = True) -> None:
        """Write a register, by default with a cost per byte."""
        self.burn("WRITE_REGISTER_BASE")
        if by_bytes:
            self.burn("WRITE_REGISTER_BYTE", len(data))
        old = self._registers.get(register_id)
        freed = 0 if old is None else len(old) + _ID_BYTES
        total = self._register_bytes - freed + len(data) + _ID_BYTES
        # The node checks the number even if the write replaces a register.
        if (
            len(data) > MAX_REGISTER_BYTES
            or len(self._registers) >= MAX_REGISTERS
            or total > MAX_REGISTERS_BYTES
        ):
            raise memory_violation()
        self._registers[register_id] = data
        self._register_bytes = total

    def read(self, length: int, address: int) -> bytes:
        """Read bytes of the memory or, with `IN_REGISTER` as their length, a register."""
        if length == IN_REGISTER:
            return self.read_register(address)
        return self.read_memory(address, length)

    # Values ------------------------------------------------------------------------------

    def read_u128(self, address: int) -> int:
        return int.from_bytes(self.read_memory(address, _U128_BYTES), "little")

    def write_u128(self, address: int, amount: int) -> None:
        self.write_memory(address, amount.to_bytes(_U128_BYTES, "little"))

    def read_account_id(self, length: int, address: int) -> str:
        data = self.read(length, address)
        self.burn("UTF8_DECODING_BASE")
        self.burn("UTF8_DECODING_BYTE", len(data))
        return parse_account_id(_utf8(data))

    def read_public_key(self, length: int, address: int) -> PublicKey:
        data = self.read(length, address)
        try:
            return PublicKey.decode(data)
        except (DecodeError, InvalidRequestError):
            text = "VM Logic provided an invalid public key"
            raise HostError(text, "InvalidPublicKey") from None

    def read_method_name(self, length: int, address: int) -> str:
        return _method_name(self.read(length, address))

    def read_method_names(self, length: int, address: int) -> tuple[str, ...]:
        data = self.read(length, address)
        return tuple(_method_name(name) for name in data.split(b",")) if data else ()

    def read_utf8(self, length: int, address: int) -> str:
        self.burn("UTF8_DECODING_BASE")
        if length == NUL_TERMINATED:
            data = self._read_until_nul(address)
        else:
            self.vm.check_log_bytes(length)
            data = self.read_memory(address, length)
        self.burn("UTF8_DECODING_BYTE", len(data))
        return _utf8(data)

    def _read_until_nul(self, address: int) -> bytes:
        """Read bytes up to a zero; each byte costs a read."""
        data = bytearray()
        while byte := self.read_memory(address + len(data), 1)[0]:
            data.append(byte)
            self.vm.check_log_bytes(len(data))
        return bytes(data)

    def read_utf16(self, length: int, address: int) -> str:
        """Read a text of UTF-16 code units, the lower byte first."""
        self.burn("UTF16_DECODING_BASE")
        if length == NUL_TERMINATED:
            length = self._nul_terminated_length(address)
            data = self.memory.read(address, length)
        else:
            data = self.read_memory(address, length)
        if length % 2:
            raise bad_utf16()
        self.vm.check_log_bytes(length)
        self.burn("UTF16_DECODING_BYTE", length)
        try:
            return data.decode("utf-16-le")
        except UnicodeDecodeError:
            raise bad_utf16() from None

    def _nul_terminated_length(self, address: int) -> int:
        """Return the byte length of UTF-16 code units up to a zero; each unit costs a read."""
        length = 0
        while self.read_memory(address + length, 2) != b"\0\0":
            length += 2
            self.vm.check_log_bytes(length)
        return length

    # Promises ----------------------------------------------------------------------------

    def add_promise(self, promise: Promise) -> int:
        """Add a promise; return its index."""
        self.promises.append(promise)
        return len(self.promises) - 1

    def promise(self, index: int) -> Promise:
        if index >= len(self.promises):
            text = f"{index} does not correspond to existing promises"
            raise HostError(text, "InvalidPromiseIndex", promise_idx=index)
        return self.promises[index]


def bad_utf16() -> HostError:
    return HostError("String encoding is bad UTF-16 sequence.", "BadUTF16")


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise HostError("String encoding is bad UTF-8 sequence.", "BadUTF8") from None


def _method_name(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        text = "VM Logic returned an invalid method name"
        raise HostError(text, "InvalidMethodName") from None
