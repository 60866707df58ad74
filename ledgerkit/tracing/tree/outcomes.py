"""The outcomes of receipts as arrays: status, gas and tokens burnt, block and shard."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import UNSET

from ledgerkit.api import chain_errors
from ledgerkit.api.models.transactions import Status, decode_member
from ledgerkit.errors import cut
from ledgerkit.tracing.tree.arrays import EMPTY_LIST, JoinedLists, amounts, integers, objects, take

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from msgspec import Raw

    from ledgerkit.api.models.transactions import ExecutionOutcome, TxResult
    from ledgerkit.tracing.tree.arrays import PathOf

    Texts = dict[str | None, str | None]
    Blocks = Mapping[str, tuple[int, int]]

STATUS_NAMES = ("success_value", "success_receipt_id", "failure", "unknown", "not_executed")
SUCCESS_VALUE, SUCCESS_RECEIPT_ID, FAILURE, UNKNOWN, NOT_EXECUTED = range(len(STATUS_NAMES))
_DETAILED = (SUCCESS_RECEIPT_ID, FAILURE, UNKNOWN)
_STATUSES = np.array(STATUS_NAMES, dtype=object)


class Outcomes:
    """The outcomes of receipts, in the order of the results; equal texts share memory."""

    def __init__(self, results: Sequence[TxResult], blocks: Blocks, texts: Texts) -> None:
        self._blocks, self._texts = blocks, texts
        self._decoded_failures: dict[bytes, Failure] = {}
        self.lists = JoinedLists()
        self.ids: list[str] = []
        self.created_ids: list[str] = []  # one after another
        self.n_created: list[int] = []
        self.codes = bytearray()
        self.failures: dict[int, Failure] = {}  # by row
        self.other_statuses: dict[int, str] = {}  # undeclared statuses, by row
        self.result_ids: dict[int, str] = {}  # SuccessReceiptId, by row
        self._hashes: list[str | None] = []
        self._logs: list[list[str]] = []
        self._tokens: list[str | None] = []
        self._gas: list[int | None] = []
        self._heights: list[int | None] = []
        self._times: list[int | None] = []
        self._shards: list[int | None] = []
        for result in results:
            self.lists.add(result.outcomes.path, len(self.ids))
            for piece in result.outcomes.pieces():
                self._add(piece)
        self.height = integers(self._heights, self._path_of("block_height"))
        self.tokens_burnt = amounts(self._tokens, self._path_of("outcome.tokens_burnt"))

    def _add(self, piece: Sequence[ExecutionOutcome]) -> None:
        outcomes = [execution.outcome for execution in piece]
        created = [outcome.receipt_ids or () for outcome in outcomes]
        hashes = [execution.block_hash for execution in piece]
        heights = [execution.block_height for execution in piece]
        times = [execution.block_timestamp for execution in piece]
        if self._blocks:
            for index, block_hash in enumerate(hashes):
                if heights[index] is None and block_hash is not None and block_hash in self._blocks:
                    heights[index], times[index] = self._blocks[block_hash]
        self._add_statuses([outcome.status for outcome in outcomes])
        self.ids += [execution.id for execution in piece]
        self.created_ids += chain.from_iterable(created)
        self.n_created += map(len, created)
        self._hashes += map(self._texts.setdefault, hashes, hashes)
        self._logs += [outcome.logs or EMPTY_LIST for outcome in outcomes]
        self._tokens += [outcome.tokens_burnt for outcome in outcomes]
        self._gas += [outcome.gas_burnt for outcome in outcomes]
        self._heights += heights
        self._times += times
        self._shards += [execution.shard_id for execution in piece]

    def _add_statuses(self, statuses: Sequence[Any]) -> None:
        start, codes = len(self.codes), bytes(map(status_code, statuses))
        self.codes += codes
        for index in [index for index, code in enumerate(codes) if code in _DETAILED]:
            row, status = start + index, statuses[index]
            if codes[index] == UNKNOWN:
                if (name := other_status(status)) is not None:
                    self.other_statuses[row] = name
            elif codes[index] == SUCCESS_RECEIPT_ID:
                self.result_ids[row] = status.success_receipt_id
            else:
                path = self._path_of("outcome.status.Failure")(row)
                self.failures[row] = read_failure(status.failure, path, self._decoded_failures)

    def _path_of(self, member: str) -> PathOf:
        return lambda row: f"{self.lists.path(row)}.{member}"

    def columns(self, rows: np.ndarray) -> dict[str, Any]:
        """Return the columns of these rows; row -1 is a receipt that has not run."""
        n_rows = len(self.ids)
        kinds, messages = np.full((2, n_rows + 1), None, dtype=object)
        for row, failure in self.failures.items():
            kinds[row], messages[row] = failure.kind, failure.message
        for row, name in self.other_statuses.items():
            messages[row] = describe_other_status(name)
        columns: dict[str, Any] = {
            "block_hash": objects(self._hashes),
            "block_height": self.height,
            "time": integers(self._times, self._path_of("block_timestamp")),
            "shard_id": integers(self._shards, self._path_of("shard_id")),
            "status": _STATUSES[np.frombuffer(self.codes + bytes([NOT_EXECUTED]), dtype=np.uint8)],
            "error_kind": kinds,
            "error_message": messages,
            "gas_burnt": integers(self._gas, self._path_of("outcome.gas_burnt"), np.uint64),
            "tokens_burnt": self.tokens_burnt,
            "logs": objects(self._logs, EMPTY_LIST),
        }
        return {name: take(values, rows) for name, values in columns.items()}


def status_code(status: Status | str | None) -> int:
    """Return the position of a decoded status in `STATUS_NAMES`."""
    if not isinstance(status, Status):
        return UNKNOWN
    if status.success_receipt_id is not None:
        return SUCCESS_RECEIPT_ID
    if status.failure is not UNSET:
        return FAILURE
    return UNKNOWN if status.success_value is UNSET else SUCCESS_VALUE


def other_status(status: Status | str | None) -> str | None:
    """Return the name of an undeclared status; None for any other."""
    if isinstance(status, Status):
        return status.other.name if status.other else None
    return None if status == "Unknown" else status


def describe_other_status(name: str) -> str:
    """Describe an undeclared status."""
    return f"ledgerkit does not know what the status {cut(name)} means"


class Failure(NamedTuple):
    """A failure: its kind (the ledger's names, joined by dots), a sentence, and its JSON."""

    kind: str
    message: str
    value: Any


def read_failure(failure: Raw, path: str, decoded: dict[bytes, Failure]) -> Failure:
    """Decode the failure at `path`, or return the equal one in `decoded`."""
    key = bytes(failure)
    if key not in decoded:
        value = decode_member(failure, path)
        decoded[key] = Failure(*chain_errors.failure_text(value), value)
    return decoded[key]
