"""Collecting blocks from block documents: each height with all receipts of its transactions."""

from __future__ import annotations

from collections import deque
from contextlib import closing
from dataclasses import dataclass
from itertools import count, groupby
from typing import TYPE_CHECKING, Any

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.block_data import reading
from ledgerkit.block_data.block_tables import block_tables
from ledgerkit.block_data.included_transactions import DocumentContents
from ledgerkit.block_data.protocol_rules import known_rules
from ledgerkit.block_data.reading import Skipped
from ledgerkit.block_data.transaction_assembly import TransactionAssembly
from ledgerkit.block_data.tree_tables import tree_tables
from ledgerkit.block_data.verified_documents import read_verified
from ledgerkit.collecting.blocks import TRACED, decode_rules, key_column, waiting_error
from ledgerkit.collecting.outcomes import Outcome, hold_unanswered
from ledgerkit.collecting.skipped_heights import skipped
from ledgerkit.errors import LedgerError, ProofNotReadyError, UnknownBlockError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from ledgerkit.api.calls import Surface
    from ledgerkit.api.models.chain import BlockHeader
    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.block_data.included_transactions import IncludedTransaction
    from ledgerkit.block_data.reading import DocumentRead
    from ledgerkit.collecting.sources import Subject
    from ledgerkit.ledger import Ledger

_MAX_BYTES = 2**26  # of the documents of heights that wait for receipts in later blocks
# Heights beyond the last subject, in which its receipts may run: a yielded receipt is resumed
# after 200 blocks at most, and congestion delays receipts further.
# Source: nearcore, core/parameters/res/runtime_configs/parameters.yaml,
# yield_timeout_length_in_blocks.
LOOK_AHEAD = 640
_FIRST_LOOK = 13  # the number of heights is doubled until all receipts have run
ARCHIVE_BLOCKS = 10
_NOT_YET = (UnknownBlockError, ProofNotReadyError)  # of a block that is not final, or just so


class DocumentReader:
    """
    A reader of block heights from block documents.

    Parameters
    ----------
    views
        Some of ``manifests.VIEWS["blocks"]``.
    verify
        Whether a document that the chain does not commit to is an error.
    """

    surfaces: tuple[Surface, ...] = ("blocks",)

    def __init__(self, views: Sequence[str], *, verify: bool = False) -> None:
        self._views = tuple(views)
        self._verify = verify

    def read(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[list[Outcome]]:
        """Read heights; yield their outcomes in order, once their transactions are complete."""
        return hold_unanswered(self._read_runs(ledger, subjects), "heights")

    def tables(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        """Return a `pyarrow.Table` for each view; raise `DecodeError` if a value fits no column."""
        contents = [value for _, value in outcomes if isinstance(value, DocumentContents)]
        own = [view for view in self._views if view not in TRACED]
        traced = [view for view in self._views if view in TRACED]
        transactions = [transaction for item in contents for transaction in item.transactions]
        return {**block_tables(own, contents), **tree_tables(traced, transactions)}

    def key_column(self, table: str) -> str:
        """Return the column that holds the height of a row."""
        return key_column(table)

    def _read_runs(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[list[Outcome]]:
        """Read each run of consecutive heights."""
        numbers = count()
        for _, run in groupby(subjects, key=lambda subject: subject.position - next(numbers)):
            yield from self._read_run(ledger, run)

    def _read_run(self, ledger: Ledger, run: Iterator[Subject]) -> Iterator[list[Outcome]]:
        """Read consecutive heights, then those beyond them in which their receipts ran."""
        sent: deque[Subject] = deque()
        window = Window(ledger, is_traced=not set(TRACED).isdisjoint(self._views))

        def heights() -> Iterator[int]:
            for subject in run:
                sent.append(subject)
                yield subject.position

        stop = 0
        with closing(self._documents(ledger, heights())) as reads:
            for read in reads:
                stop = read.height + 1
                yield list(window.add(sent.popleft(), read))
        last, size = stop + LOOK_AHEAD, _FIRST_LOOK
        while window.is_waiting and stop < last:
            # A whole archive is one request, so the heights end with one.
            beyond = range(stop, (stop + size) // ARCHIVE_BLOCKS * ARCHIVE_BLOCKS)
            stop, size = beyond.stop, 2 * size
            with closing(self._documents(ledger, beyond)) as reads:
                for read in reads:
                    if isinstance(read.value, _NOT_YET):
                        yield list(window.close())
                        return
                    yield list(window.look_at(read))
                    if not window.is_waiting:
                        return
        yield list(window.close())

    def _documents(
        self, ledger: Ledger, heights: Iterable[int]
    ) -> Generator[DocumentRead, None, None]:
        """Yield the document of each height, in order; only proved ones if that is asked for."""
        if not self._verify:
            yield from reading.read_documents(ledger, heights)
            return
        with closing(read_verified(ledger, heights)) as results:
            for result in results:
                yield result.read


@dataclass(slots=True)
class _Height:
    """The result of reading a height; its transactions once they are complete and taken."""

    subject: Subject
    read: DocumentRead
    transactions: list[IncludedTransaction] | None = None


class Window:
    """
    The heights that were read, up to the first one whose transactions are not complete.

    Parameters
    ----------
    ledger
        The ledger that the rules of epochs are read from.
    is_traced
        Whether the receipts of transactions are needed.
    """

    def __init__(self, ledger: Ledger, *, is_traced: bool) -> None:
        self._ledger = ledger
        self._assembly = TransactionAssembly() if is_traced else None
        self._heights: deque[_Height] = deque()
        self._n_bytes = 0

    @property
    def is_waiting(self) -> bool:
        """True if a height is not complete."""
        return bool(self._heights)

    def add(self, subject: Subject, read: DocumentRead) -> Iterator[Outcome]:
        """Add the next height; yield the outcomes of those that are complete, in order."""
        self._heights.append(_Height(subject, self._observe(read)))
        self._n_bytes += read.size
        yield from self._take_complete()
        while self._n_bytes > _MAX_BYTES and len(self._heights) > 1:
            yield self._take()
            yield from self._take_complete()

    def look_at(self, read: DocumentRead) -> Iterator[Outcome]:
        """Read the receipts of a height beyond the last one; yield the outcomes they complete."""
        self._observe(read)
        yield from self._take_complete()

    def close(self) -> Iterator[Outcome]:
        """Yield the outcomes of all heights, complete or not."""
        while self._heights:
            yield self._take()

    def _observe(self, read: DocumentRead) -> DocumentRead:
        """Add the receipts of a document to their transactions; return an error if it is wrong."""
        if self._assembly is None or isinstance(read.value, Skipped | ProofNotReadyError):
            return read
        if isinstance(read.value, LedgerError):
            self._fail(read.value, read.height)
            return read
        try:
            rules = read_rules(self._ledger, read.value.block.header)
            self._assembly.add(read.value, rules)
        except LedgerError as error:
            self._fail(error, read.height)
            return read._replace(value=error)
        return read

    def _fail(self, error: LedgerError, number: int) -> None:
        """Replace what is not complete without the block at a height by its error."""
        for height in self._heights:
            is_complete = self._is_complete(height)
            height.transactions = self._take_transactions(height)
            # A wrong document may have completed transactions before it was refused.
            if not is_complete or number in _executing_heights(height.transactions):
                height.read = height.read._replace(value=error)
        self._assembly = TransactionAssembly()

    def _is_complete(self, height: _Height) -> bool:
        """Return True if nothing is missing of a height."""
        if height.transactions is not None or isinstance(height.read.value, LedgerError | Skipped):
            return True
        return self._assembly is None or self._assembly.is_complete(height.read.height)

    def _take_complete(self) -> Iterator[Outcome]:
        """Yield the outcomes up to the first height that is not complete."""
        while self._heights and self._is_complete(self._heights[0]):
            yield self._take()

    def _take(self) -> Outcome:
        """Return the outcome of the first height, complete or not."""
        height = self._heights.popleft()
        subject, (number, value, size, _) = height.subject, height.read
        self._n_bytes -= size
        if isinstance(value, Skipped):
            return skipped(subject, value.previous_height, UnknownBlockError(block=number))
        if isinstance(value, LedgerError):
            return Outcome(subject, value)
        is_complete = self._is_complete(height)
        transactions = self._take_transactions(height)
        waiting = None if is_complete else waiting_error(_unfinished(transactions))
        return Outcome(subject, DocumentContents(value, transactions, size, waiting))

    def _take_transactions(self, height: _Height) -> list[IncludedTransaction]:
        """Return the transactions of a height, and forget them."""
        is_block = not isinstance(height.read.value, LedgerError | Skipped)
        if height.transactions is None and is_block and self._assembly is not None:
            height.transactions = self._assembly.take(height.read.height)
        return height.transactions or []


def _executing_heights(transactions: Iterable[IncludedTransaction]) -> set[int | None]:
    """Return the heights at which receipts of transactions ran."""
    return {
        pair.execution_outcome.block_height
        for transaction in transactions
        for pair in transaction.receipts
    }


def _unfinished(transactions: Sequence[IncludedTransaction]) -> list[str]:
    """Return the hashes of transactions of which a receipt has not run."""
    hashes = []
    for transaction in transactions:
        executed = {pair.receipt.receipt_id for pair in transaction.receipts}
        executions = [
            transaction.conversion,
            *(pair.execution_outcome for pair in transaction.receipts),
        ]
        created = {i for execution in executions for i in execution.outcome.receipt_ids or ()}
        if created - executed:
            hashes.append(transaction.transaction.hash)
    return hashes


def read_rules(ledger: Ledger, header: BlockHeader) -> Rules | None:
    """
    Return the rules in force at a block, read once for each epoch.

    They are None if there is no node, or it does not provide them. Raises `LedgerError` if they
    could not be read.
    """
    rules = known_rules(ledger)
    if header.epoch_id not in rules:
        if ledger.network.address("rpc") is None:
            return None
        call = rpc.protocol_config(validation.received_hash(header.hash))
        [config] = ledger.send_many([call], on_error="collect", progress=False)
        rules[header.epoch_id] = decode_rules(config)
    return rules[header.epoch_id]
