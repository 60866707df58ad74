"""The outcomes of receipts as columns: status, gas and tokens burnt, block and shard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET, Raw

from ledgerkit.api import chain_errors
from ledgerkit.api.models.transactions import (
    PIECE,
    ExecutionOutcome,
    Status,
    TxResult,
    decode_member,
)
from ledgerkit.errors import cut
from ledgerkit.tracing.tree.lists import EMPTY_LIST, JoinedLists, check_gas, parse_amounts

if TYPE_CHECKING:
    from ledgerkit.tracing.tree.lists import PathOf

    Texts = dict[str | None, str | None]
    Blocks = Mapping[str, tuple[int, int]]

STATUS_NAMES = ("success_value", "success_receipt_id", "failure", "unknown", "not_executed")
SUCCESS_VALUE, SUCCESS_RECEIPT_ID, FAILURE, UNKNOWN, NOT_EXECUTED = range(len(STATUS_NAMES))
_DETAILED = (SUCCESS_RECEIPT_ID, FAILURE, UNKNOWN)
# The columns, and their values for a receipt that has not run.
_NOT_RUN = {
    "block_hash": None,
    "block_height": None,
    "time": None,
    "shard_id": None,
    "status": STATUS_NAMES[NOT_EXECUTED],
    "error_kind": None,
    "error_message": None,
    "gas_burnt": None,
    "tokens_burnt": None,
    "logs": EMPTY_LIST,
}


class Outcomes:
    """
    The outcomes of receipts, in the order of the results; equal texts share memory.

    The last row of the columns is a receipt that has not run.
    """

    def __init__(self, results: Sequence[TxResult], blocks: Blocks, texts: Texts) -> None:
        self._blocks, self._texts = blocks, texts
        self._decoded_failures: dict[bytes, Failure] = {}
        self.lists = JoinedLists()
        self.ids: list[str] = []
        self.creators: list[int] = []  # the rows that created the receipts of `created_ids`
        self.created_ids: list[str] = []
        self.result_ids: dict[int, str] = {}  # SuccessReceiptId, by row
        self.columns: dict[str, list[Any]] = {name: [] for name in _NOT_RUN}
        pending: list[ExecutionOutcome] = []  # a few receipts cost as much as many
        for result in results:
            self.lists.add(result.outcomes.path, len(self.ids) + len(pending))
            for piece in result.outcomes.pieces():
                pending += piece
                if len(pending) >= PIECE:
                    self._add(pending)
                    pending = []
        self._add(pending)
        for name, value in _NOT_RUN.items():
            self.columns[name].append(value)

    def _add(self, piece: Sequence[ExecutionOutcome]) -> None:
        outcomes = [execution.outcome for execution in piece]
        hashes = [execution.block_hash for execution in piece]
        heights = [execution.block_height for execution in piece]
        times = [execution.block_timestamp for execution in piece]
        if self._blocks:
            for index, block_hash in enumerate(hashes):
                if heights[index] is None and block_hash is not None and block_hash in self._blocks:
                    heights[index], times[index] = self._blocks[block_hash]
        values: tuple[Sequence[Any], ...] = (
            list(map(self._texts.setdefault, hashes, hashes)),
            heights,
            times,
            [execution.shard_id for execution in piece],
            *self._status_columns([outcome.status for outcome in outcomes]),
            check_gas([outcome.gas_burnt for outcome in outcomes], self._path_of("gas_burnt")),
            parse_amounts(
                [outcome.tokens_burnt for outcome in outcomes], self._path_of("tokens_burnt")
            ),
            [outcome.logs or EMPTY_LIST for outcome in outcomes],
        )
        for column, added in zip(self.columns.values(), values, strict=True):
            column.extend(added)
        for row, outcome in enumerate(outcomes, len(self.ids)):
            if outcome.receipt_ids:
                self.creators += [row] * len(outcome.receipt_ids)
                self.created_ids += outcome.receipt_ids
        self.ids += [execution.id for execution in piece]

    def _status_columns(self, statuses: Sequence[Any]) -> tuple[list[str | None], ...]:
        """Return names, kinds and messages of statuses; store the receipts that have results."""
        start, codes, path_of = len(self.ids), list(map(status_code, statuses)), self._path_of
        kinds: list[str | None] = [None] * len(codes)
        messages = kinds.copy()
        for index in [index for index, code in enumerate(codes) if code in _DETAILED]:
            status = statuses[index]
            if codes[index] == UNKNOWN:
                if (name := other_status(status)) is not None:
                    messages[index] = describe_other_status(name)
            elif codes[index] == SUCCESS_RECEIPT_ID:
                self.result_ids[start + index] = status.success_receipt_id
            else:
                path = path_of("status.Failure")(index)
                failure = read_failure(status.failure, path, self._decoded_failures)
                kinds[index], messages[index], _ = failure
        return [STATUS_NAMES[code] for code in codes], kinds, messages

    def _path_of(self, member: str) -> PathOf:
        """Return the paths of a member of the outcomes that are about to be added."""
        start = len(self.ids)
        return lambda index: f"{self.lists.path(start + index)}.outcome.{member}"


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
