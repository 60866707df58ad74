"""The outcomes of receipts as columns: status, gas and tokens burnt, and receipts created."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET

from ledgerkit.api import chain_errors
from ledgerkit.api.models.transactions import Status, decode_member
from ledgerkit.tracing.tree.column_builders import (
    EMPTY_LIST,
    AmountColumn,
    IntegerColumn,
    ObjectColumn,
    share_texts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from msgspec import Raw

    from ledgerkit.api.models.transactions import ExecutionOutcome
    from ledgerkit.tracing.tree.column_builders import PiecePath, Texts

    Blocks = Mapping[str, tuple[int, int]]

STATUS_NAMES = ("success_value", "success_receipt_id", "failure", "unknown", "not_executed")
SUCCESS_VALUE, SUCCESS_RECEIPT_ID, FAILURE, UNKNOWN, NOT_EXECUTED = range(len(STATUS_NAMES))


class Outcomes:
    """
    The outcomes of receipts, in the document's order.

    Parameters
    ----------
    texts
        Texts to share memory with.
    blocks
        Height and time by block hash, for outcomes without them.
    """

    def __init__(self, texts: Texts, blocks: Blocks) -> None:
        self._texts, self._blocks = texts, blocks
        self._failure_texts: dict[bytes, tuple[str, str]] = {}
        self.ids: list[str] = []
        self.created_ids: list[str] = []  # one after another
        self.n_created: list[int] = []
        self.codes = bytearray()
        self.failures: dict[int, tuple[str, str]] = {}  # kind and message, by position
        self.result_ids: dict[int, str] = {}  # SuccessReceiptId, by position
        self.has_heights = False
        self.block_hash, self.logs = ObjectColumn(), ObjectColumn(EMPTY_LIST)
        self.tokens_burnt = AmountColumn("outcome.tokens_burnt")
        self.gas_burnt = IntegerColumn("outcome.gas_burnt", np.uint64)
        self.height = IntegerColumn("block_height")
        self.time = IntegerColumn("block_timestamp")
        self.shard_id = IntegerColumn("shard_id")

    def add(self, piece: Sequence[ExecutionOutcome], place: PiecePath) -> None:
        """Append the outcomes of a piece at `place`."""
        if not piece:  # every pair of it lacks its outcome
            return
        outcomes = [execution.outcome for execution in piece]
        hashes = [execution.block_hash for execution in piece]
        heights, times = _heights_and_times(
            hashes,
            [execution.block_height for execution in piece],
            [execution.block_timestamp for execution in piece],
            self._blocks,
        )
        self.has_heights = self.has_heights or heights.count(None) < len(heights)
        self.ids += [execution.id for execution in piece]
        lists = [outcome.receipt_ids or () for outcome in outcomes]
        self.created_ids += chain.from_iterable(lists)
        self.n_created += map(len, lists)
        self._add_statuses([outcome.status for outcome in outcomes], place)
        self.block_hash.add(share_texts(hashes, self._texts))
        self.logs.add([outcome.logs or EMPTY_LIST for outcome in outcomes])
        self.tokens_burnt.add([outcome.tokens_burnt for outcome in outcomes], place)
        self.gas_burnt.add([outcome.gas_burnt for outcome in outcomes], place)
        self.height.add(heights, place)
        self.time.add(times, place)
        self.shard_id.add([execution.shard_id for execution in piece], place)

    def _add_statuses(self, statuses: Sequence[Any], place: PiecePath) -> None:
        """Append the status code of each execution, and the details of some."""
        start = len(self.codes)
        self.codes += bytes([SUCCESS_VALUE]) * len(statuses)
        others = [
            at
            for at, status in enumerate(statuses)
            if type(status) is not Status or type(status.success_value) is not str
        ]
        for at in others:
            status = statuses[at]
            self.codes[start + at] = code = status_code(status)
            if code == SUCCESS_RECEIPT_ID:
                self.result_ids[start + at] = status.success_receipt_id
            elif code == FAILURE:
                path = place.member("outcome.status.Failure", at)
                self.failures[start + at] = self._describe_failure(status.failure, path)

    def _describe_failure(self, failure: Raw, path: str) -> tuple[str, str]:
        """Describe a failure; equal failures are decoded once."""
        key = bytes(failure)
        if key not in self._failure_texts:
            self._failure_texts[key] = failure_texts(failure, path)
        return self._failure_texts[key]


def _heights_and_times(
    hashes: Sequence[str | None],
    heights: Sequence[int | None],
    times: Sequence[int | None],
    blocks: Blocks,
) -> tuple[Sequence[int | None], Sequence[int | None]]:
    """Look up the heights and times that the outcomes lack, by block hash."""
    if not blocks or None not in heights:
        return heights, times
    places = [
        place if place[0] is not None else blocks.get(block_hash or "", place)
        for place, block_hash in zip(zip(heights, times, strict=True), hashes, strict=True)
    ]
    return [height for height, _ in places], [time for _, time in places]


def status_code(status: Status | str | None) -> int:
    """Return the position in `STATUS_NAMES` of a status as the wire has it."""
    if not isinstance(status, Status):
        return UNKNOWN
    if status.success_receipt_id is not None:
        return SUCCESS_RECEIPT_ID
    if status.failure is not UNSET:
        return FAILURE
    return UNKNOWN if status.success_value is UNSET else SUCCESS_VALUE


def failure_texts(failure: Raw, path: str) -> tuple[str, str]:
    """Return the kind of a failure (the ledger's names, joined by dots) and a sentence."""
    return chain_errors.failure_text(decode_member(failure, path))
