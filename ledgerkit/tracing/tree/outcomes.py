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
    unzip_structs,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from msgspec import Raw

    from ledgerkit.api.models.transactions import ExecutionOutcome
    from ledgerkit.tracing.tree.column_builders import PiecePath, SharedTexts

    Blocks = Mapping[str, tuple[int, int]]

STATUS_NAMES = ("success_value", "success_receipt_id", "failure", "unknown", "not_executed")
SUCCESS_VALUE, SUCCESS_RECEIPT_ID, FAILURE, UNKNOWN, NOT_EXECUTED = range(len(STATUS_NAMES))
_WITH_DETAILS = (SUCCESS_RECEIPT_ID, FAILURE)


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

    def __init__(self, texts: SharedTexts, blocks: Blocks) -> None:
        self._texts, self._blocks = texts, blocks
        self.ids: list[str] = []
        self.created_ids: list[str] = []  # one after another
        self.n_created: list[int] = []
        self.codes: list[int] = []
        self.failures: dict[int, tuple[str, str]] = {}  # kind and message, by position
        self.result_ids: dict[int, str] = {}  # SuccessReceiptId, by position
        self.has_heights = False
        self.block_hash, self.logs = ObjectColumn(), ObjectColumn(EMPTY_LIST)
        self.tokens_burnt, self.gas_burnt = AmountColumn(), IntegerColumn(np.uint64)
        self.height, self.time, self.shard_id = IntegerColumn(), IntegerColumn(), IntegerColumn()

    def add(self, piece: Sequence[ExecutionOutcome], place: PiecePath) -> None:
        """Append the outcomes of a piece at `place`."""
        if not piece:  # every pair of it lacks its outcome
            return
        ids, outcomes, hashes, own_heights, own_times, shards = unzip_structs(piece)
        logs, created, gas, tokens, statuses, *_ = unzip_structs(outcomes)
        heights, times = _heights_and_times(hashes, own_heights, own_times, self._blocks)
        self.has_heights = self.has_heights or heights.count(None) < len(heights)
        self.ids += ids
        lists = [children or () for children in created]
        self.created_ids += chain.from_iterable(lists)
        self.n_created += map(len, lists)
        self._add_statuses(statuses, place)
        self.block_hash.add(self._texts.share(hashes))
        self.logs.add([lines or EMPTY_LIST for lines in logs])
        self.tokens_burnt.add(tokens, "outcome.tokens_burnt", place)
        self.gas_burnt.add(gas, "outcome.gas_burnt", place)
        self.height.add(heights, "block_height", place)
        self.time.add(times, "block_timestamp", place)
        self.shard_id.add(shards, "shard_id", place)

    def _add_statuses(self, statuses: Sequence[Any], place: PiecePath) -> None:
        """Append the status code of each execution, and the details of some."""
        codes = [
            SUCCESS_VALUE
            if type(status) is Status and status.success_value.__class__ is str
            else status_code(status)
            for status in statuses
        ]
        rows = enumerate(zip(codes, statuses, strict=True))
        for at, status in [(at, status) for at, (code, status) in rows if code in _WITH_DETAILS]:
            position = len(self.codes) + at
            if status.success_receipt_id is not None:
                self.result_ids[position] = status.success_receipt_id
            else:
                path = place.member("outcome.status.Failure", at)
                self.failures[position] = self._failure_texts(status.failure, path)
        self.codes += codes

    def _failure_texts(self, failure: Raw, path: str) -> tuple[str, str]:
        """Describe a failure; equal failures are decoded once."""
        key = bytes(failure)
        texts: tuple[str, str] | None = self._texts.get(key)
        if texts is None:
            texts = self._texts[key] = failure_texts(failure, path)
        return texts


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
