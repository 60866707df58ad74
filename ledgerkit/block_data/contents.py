"""The contents of blocks from their documents, with all receipts of their transactions."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.api.models.block_documents import BlockDocument
from ledgerkit.block_data.headers import Skipped
from ledgerkit.block_data.protocol_rules import read_rules
from ledgerkit.block_data.reading import DocumentRead, read_documents, read_with_later
from ledgerkit.block_data.transaction_assembly import IncludedTransaction, TransactionAssembly
from ledgerkit.block_data.verified_documents import Headers, read_verified
from ledgerkit.errors import LedgerError, ProofNotReadyError, TransactionTimeoutError

if TYPE_CHECKING:
    from ledgerkit.block_data.node_documents import Origins
    from ledgerkit.ledger import Ledger

_MAX_BYTES = 2**26  # in memory, for documents that wait for receipts in later blocks


class DocumentContents(NamedTuple):
    """
    The document of one height, and its transactions if a table needs them.

    `waiting` is set if receipts of the transactions have not run yet.
    """

    document: BlockDocument
    transactions: list[IncludedTransaction]
    size: int  # bytes of the document
    waiting: TransactionTimeoutError | None = None


class ContentsRead(NamedTuple):
    """The result of reading the contents of one height."""

    height: int
    value: DocumentContents | Skipped | LedgerError


def read_contents(
    ledger: Ledger,
    heights: Iterable[int],
    *,
    source: str,
    is_traced: bool,
    origins: Origins | None = None,
    verify: bool = False,
) -> Generator[ContentsRead, None, None]:
    """
    Read the contents of consecutive heights in order, as their transactions become complete.

    With `is_traced`, later heights in which their receipts ran are read too; with `origins`, the
    transactions of receipts are filled in; with `verify`, a document that the chain does not
    commit to is an error.
    """
    read = partial(_read_documents, source=source, origins=origins, verify=verify)
    return read_with_later(ledger, heights, ContentsBuffer(ledger, is_traced=is_traced), read)


def _read_documents(
    ledger: Ledger, heights: Iterable[int], *, source: str, origins: Origins | None, verify: bool
) -> Generator[DocumentRead, None, None]:
    if verify:
        verified = read_verified(ledger, heights, Headers(ledger), source)
        reads = (proved.whole() for proved in verified)
    else:
        reads = read_documents(ledger, heights, source=source)
    with closing(reads):
        for read in reads:
            yield _with_origins(read, origins)


def _with_origins(read: DocumentRead, origins: Origins | None) -> DocumentRead:
    """Fill in the transactions of a document's receipts; return the error of reading them."""
    if origins is not None and isinstance(read.value, BlockDocument):
        try:
            origins.fill_in(read.value)
        except LedgerError as error:
            return read._replace(value=error)
    return read


@dataclass(slots=True)
class _Height:
    """The result of reading a height; its transactions once they are complete."""

    read: DocumentRead
    transactions: list[IncludedTransaction] | None = None


class ContentsBuffer:
    """
    The buffer of heights, from the first height with an incomplete transaction.

    With `is_traced` the receipts of transactions are read, with the rules of their epochs.
    """

    def __init__(self, ledger: Ledger, *, is_traced: bool) -> None:
        self._ledger = ledger
        self._assembly = TransactionAssembly() if is_traced else None
        self._heights: deque[_Height] = deque()
        self._n_bytes = 0

    @property
    def is_waiting(self) -> bool:
        return bool(self._heights)

    def add(self, read: DocumentRead, *, is_later: bool = False) -> Iterator[ContentsRead]:
        """
        Add the next height; yield the complete heights, in order.

        A later height only completes transactions with its receipts.
        """
        read = self._observe(read)
        if not is_later:
            self._heights.append(_Height(read))
            self._n_bytes += read.size
        yield from self._pop_complete()
        while self._n_bytes > _MAX_BYTES and len(self._heights) > 1:
            yield self._pop_first()
            yield from self._pop_complete()

    def end(self) -> Iterator[ContentsRead]:
        """Yield all heights, complete or not."""
        while self._heights:
            yield self._pop_first()

    def _observe(self, read: DocumentRead) -> DocumentRead:
        """Add the receipts of a document to their transactions, or return its error."""
        if self._assembly is None or isinstance(read.value, Skipped | ProofNotReadyError):
            return read
        try:
            if isinstance(read.value, LedgerError):
                raise read.value
            rules = read_rules(self._ledger, read.value.block.header)
            self._assembly.add(read.value, rules)
        except LedgerError as error:
            self._fail(error, read.height)
            return read._replace(value=error)
        return read

    def _fail(self, error: LedgerError, number: int) -> None:
        """Replace the heights that need the block at a height by its error."""
        for height in self._heights:
            is_complete = self._is_complete(height)
            height.transactions = self._complete_transactions(height)
            # A wrong document may have completed transactions before it was refused.
            if not is_complete or number in _executing_heights(height.transactions):
                height.read = height.read._replace(value=error)
        self._assembly = TransactionAssembly()

    def _is_complete(self, height: _Height) -> bool:
        if height.transactions is not None or not isinstance(height.read.value, BlockDocument):
            return True
        return self._assembly is None or self._assembly.is_complete(height.read.height)

    def _pop_complete(self) -> Iterator[ContentsRead]:
        while self._heights and self._is_complete(self._heights[0]):
            yield self._pop_first()

    def _pop_first(self) -> ContentsRead:
        height = self._heights.popleft()
        number, value, size, _ = height.read
        self._n_bytes -= size
        if not isinstance(value, BlockDocument):
            return ContentsRead(number, value)
        transactions = self._complete_transactions(height)
        pending = [item.conversion.id for item in transactions if not item.has_finished()]
        waiting = waiting_error(pending) if pending else None
        return ContentsRead(number, DocumentContents(value, transactions, size, waiting))

    def _complete_transactions(self, height: _Height) -> list[IncludedTransaction]:
        is_block = isinstance(height.read.value, BlockDocument)
        if height.transactions is None and is_block and self._assembly is not None:
            height.transactions = self._assembly.take(height.read.height)
        return height.transactions or []


def _executing_heights(transactions: Iterable[IncludedTransaction]) -> set[int | None]:
    return {
        pair.execution_outcome.block_height
        for transaction in transactions
        for pair in transaction.receipts
    }


def waiting_error(tx_hashes: Sequence[str], noun: str = "height") -> TransactionTimeoutError:
    """Build the error of a height (or another `noun`) whose transactions are not final yet."""
    msg = f"transaction {tx_hashes[0]} is not final yet"
    if len(tx_hashes) > 1:
        msg = f"{len(tx_hashes)} transactions are not final yet, the first is {tx_hashes[0]}"
    remedy = f"Run the same command again later: it completes this {noun}."
    return TransactionTimeoutError(msg, remedy=remedy)
