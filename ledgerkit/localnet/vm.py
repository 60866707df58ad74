"""
The virtual machine of contracts: host functions, gas, promises.

A call has one `Vm`, whether its contract is a Python class or a Wasm module. The contract reads
the call's context, reads and writes the storage records of its account, logs and creates promises.
Each host function burns gas, and functions that change something are prohibited in view calls.
The runtime sends the promises as receipts.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Never

from ledgerkit.localnet import fees
from ledgerkit.localnet.execution_errors import HostError, PanicError
from ledgerkit.localnet.gas_counter import ACTION, HOST, INSTRUCTIONS
from ledgerkit.localnet.promises import Promise, PromiseHost, Yields
from ledgerkit.protocol.limits import MAX_KEY_BYTES, MAX_VALUE_BYTES

if TYPE_CHECKING:
    from ledgerkit.localnet.chain_types import CallContext
    from ledgerkit.localnet.state import State
    from ledgerkit.protocol import PublicKey

# The limits of nearcore (LimitConfig), from the same files as the fees.
MAX_LOGS = 100
MAX_LOG_BYTES = 16_384
MAX_RESULT_BYTES = 4 * 2**20
LARGE_VALUE_BYTES = 4000  # larger reads have an overhead (nearcore: INLINE_DISK_VALUE_THRESHOLD)


class Vm(PromiseHost):
    """The virtual machine of one call."""

    def __init__(
        self,
        context: CallContext,
        state: State,
        profile: fees.Profile,
        yields: Yields | None = None,
    ) -> None:
        super().__init__(context, profile, yields)
        self._state = state
        self.input = context.input  # the encoded arguments
        self.locked = context.account.locked  # yoctoNEAR at stake
        self.storage_usage = context.account.storage_usage  # bytes
        self.block_height, self.epoch_height = context.block.height, context.block.epoch_height
        self.block_timestamp = context.block.timestamp_ns
        self.random_seed = context.random_seed  # 32 bytes
        self.logs: list[str] = []
        self.log_bytes = 0
        self.result: bytes | Promise = b""

    # The context -----------------------------------------------------------------------

    @property
    def signer_id(self) -> str:
        """The signer of the transaction that caused this call."""
        self.host_call("signer_account_id")
        return self.context.signer_id

    @property
    def signer_public_key(self) -> PublicKey:
        self.host_call("signer_account_pk")
        return self.context.signer_public_key

    @property
    def predecessor_id(self) -> str:
        """The account that calls: the signer or another contract."""
        self.host_call("predecessor_account_id")
        return self.context.predecessor_id

    @property
    def refund_to_id(self) -> str:
        """The account to which the deposits return if the receipt fails."""
        self.host_call("refund_to_account_id")
        return self.context.refund_to

    @property
    def attached_deposit(self) -> int:
        """The deposit of the call, in yoctoNEAR."""
        self.gas.burn_host("BASE")
        return self.context.attached_deposit

    @property
    def prepaid_gas(self) -> int:
        self.host_call("prepaid_gas")
        return self.context.prepaid_gas

    @property
    def used_gas(self) -> int:
        """The gas burnt and reserved until now."""
        self.host_call("used_gas")
        return self.gas.used

    def sha256(self, data: bytes) -> bytes:
        self.gas.burn_host("SHA256_BASE")
        self.gas.burn_host("SHA256_BYTE", len(data))
        return sha256(data).digest()

    @property
    def promise_results(self) -> tuple[bytes | None, ...]:
        """The results that this callback waited for, in order; None for a failed promise."""
        self.host_call("promise_results_count")
        return self.context.promise_results

    # Storage -----------------------------------------------------------------------------

    # The node also charges for the nodes of its state trie that a record's path touches. This
    # ledger has no trie, and charges for none of them.

    def storage_read(self, key: bytes) -> bytes | None:
        self.gas.burn_host("BASE")
        self.gas.burn_host("STORAGE_READ_BASE")
        self._check_key(key)
        self.gas.burn_host("STORAGE_READ_KEY_BYTE", len(key))
        value = self._state.data(self.current_account_id, key)
        if value is not None:
            self.gas.burn_host("STORAGE_READ_VALUE_BYTE", len(value))
            if len(value) > LARGE_VALUE_BYTES:
                self.gas.burn_host("STORAGE_LARGE_READ_OVERHEAD_BASE")
                self.gas.burn_host("STORAGE_LARGE_READ_OVERHEAD_BYTE", len(value))
        return value

    def storage_has_key(self, key: bytes) -> bool:
        self.gas.burn_host("BASE")
        self.gas.burn_host("STORAGE_HAS_KEY_BASE")
        self._check_key(key)
        self.gas.burn_host("STORAGE_HAS_KEY_BYTE", len(key))
        return self._state.data(self.current_account_id, key) is not None

    def storage_write(self, key: bytes, value: bytes) -> bytes | None:
        """Write a storage record; return the value that it replaces, or None."""
        self.host_call("storage_write")
        self.gas.burn_host("STORAGE_WRITE_BASE")
        self._check_key(key)
        self._check_length("storage value", "ValueLengthExceeded", len(value), MAX_VALUE_BYTES)
        self.gas.burn_host("STORAGE_WRITE_KEY_BYTE", len(key))
        self.gas.burn_host("STORAGE_WRITE_VALUE_BYTE", len(value))
        old = self._state.data(self.current_account_id, key)
        if old is None:
            self.storage_usage += len(value) + len(key) + fees.RECORD_BYTES
        else:
            self.gas.burn_host("STORAGE_WRITE_EVICTED_BYTE", len(old))
            self.storage_usage += len(value) - len(old)
        self._state.store.data.put(self.current_account_id, key, value)
        return old

    def storage_remove(self, key: bytes) -> bytes | None:
        """Remove a storage record; return its value, or None if there is none."""
        self.host_call("storage_remove")
        self.gas.burn_host("STORAGE_REMOVE_BASE")
        self._check_key(key)
        self.gas.burn_host("STORAGE_REMOVE_KEY_BYTE", len(key))
        old = self._state.data(self.current_account_id, key)
        if old is None:
            return None
        self.gas.burn_host("STORAGE_REMOVE_RET_VALUE_BYTE", len(old))
        self.storage_usage -= len(old) + len(key) + fees.RECORD_BYTES
        self._state.store.data.put(self.current_account_id, key, None)
        return old

    def _check_key(self, key: bytes) -> None:
        self._check_length("storage key", "KeyLengthExceeded", len(key), MAX_KEY_BYTES)

    # Logs --------------------------------------------------------------------------------

    def log(self, text: str) -> None:
        self.gas.burn_host("BASE")
        self.check_log_count()
        self.add_log(text)

    def check_log_count(self) -> None:
        """Fail if there are as many logs as a call may have."""
        if len(self.logs) >= MAX_LOGS:
            text = f"The number of logs will exceed the limit {MAX_LOGS}"
            raise HostError(text, "NumberOfLogsExceeded", limit=MAX_LOGS)

    def add_log(self, text: str) -> None:
        size = len(text.encode())
        self.gas.burn_host("LOG_BASE")
        self.gas.burn_host("LOG_BYTE", size)
        self.push_log(text)

    def push_log(self, text: str) -> None:
        size = len(text.encode())
        self.check_log_bytes(size)
        self.log_bytes += size
        self.logs.append(text)

    def check_log_bytes(self, size: int) -> None:
        """Fail if a log of this size exceeds the limit of all logs of a call."""
        length = self.log_bytes + size
        self._check_length("log message", "TotalLogLengthExceeded", length, MAX_LOG_BYTES)

    def panic(self, message: str) -> Never:
        """Stop with an error: the receipt fails; its outcome has the logs and the burnt gas."""
        raise PanicError(message)

    # Begin and end -----------------------------------------------------------------------

    def begin(self) -> None:
        """Burn the gas of a Python contract: to load it, and for its computation."""
        if self.context.fixed_gas is not None:
            self.gas.burn(self.context.fixed_gas, HOST, INSTRUCTIONS)
            return
        self.gas.burn(fees.CALL_BASE, HOST, INSTRUCTIONS)
        self.burn_loading()

    def burn_loading(self) -> None:
        self.gas.burn_host("CONTRACT_LOADING_BASE")
        self.gas.burn_host("CONTRACT_LOADING_BYTES", self.context.code_size)

    def value_return(self, value: bytes) -> None:
        """Set the result of the call, and burn the gas to send it to the waiting receipts."""
        self.gas.burn_host("BASE")
        self._check_length(
            "returned value", "ReturnedValueLengthExceeded", len(value), MAX_RESULT_BYTES
        )
        fee = self.profile.table["data_receipt_byte"]
        for receiver_id in self.context.data_receivers:
            gas = fee.send(to_self=receiver_id == self.current_account_id) + fee.execute
            self.gas.burn(gas * len(value), ACTION, "NEW_DATA_RECEIPT_BYTE")
        self.result = value

    def promise_return(self, promise: Promise) -> None:
        """Set the result of the call to a promise's result."""
        self.host_call("promise_return")
        self.gas.burn_host("PROMISE_RETURN")
        if promise.is_joint:
            text = "Returning joint promise is currently prohibited."
            raise HostError(text, "CannotReturnJointPromise")
        self.result = promise

    def finish(self) -> bytes | Promise:
        """Distribute the unused gas; return the call's result."""
        self.distribute_gas()
        return self.result

    @staticmethod
    def _check_length(subject: str, error: str, length: int, limit: int) -> None:
        if length > limit:
            text = f"The length of a {subject} {length} exceeds the limit {limit}"
            raise HostError(text, error, length=length, limit=limit)
