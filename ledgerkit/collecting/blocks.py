"""Collecting blocks, from a node or from block documents: their requests, and their tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import count, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.api.models.other_kinds import OtherTransaction
from ledgerkit.block_data.block_tables import block_tables, node_tables
from ledgerkit.block_data.contents import DocumentContents, read_contents, waiting_error
from ledgerkit.block_data.headers import Skipped
from ledgerkit.block_data.node_blocks import read_node_blocks
from ledgerkit.block_data.node_documents import Origins
from ledgerkit.block_data.protocol_rules import add_rules
from ledgerkit.block_data.tree_tables import trace_result, tree_tables
from ledgerkit.collecting.account_sources import height_subject
from ledgerkit.collecting.manifests import SKIPPED
from ledgerkit.collecting.outcomes import MAX_RATE_LIMITED_S, Outcome
from ledgerkit.errors import (
    CONNECT_ARCHIVE,
    DecodeError,
    LedgerError,
    TransactionTimeoutError,
    UnknownBlockError,
)
from ledgerkit.frames.collected import TRACED

if TYPE_CHECKING:
    from ledgerkit.api.calls import Surface
    from ledgerkit.api.models import chain
    from ledgerkit.api.models.protocol_rules import Rules
    from ledgerkit.api.models.transactions import TxResult
    from ledgerkit.block_data.contents import ContentsRead
    from ledgerkit.block_data.node_blocks import NodeRead
    from ledgerkit.block_data.tree_tables import TracedTransaction
    from ledgerkit.collecting.account_sources import Subject
    from ledgerkit.ledger import Ledger
    from ledgerkit.transport.session import Reader

_CALLS = 4  # the usual number of calls per block that are sent together
_AHEAD = 16  # blocks that are read before the transactions of the first block
_WITH_ORIGINS = {"outcomes", "actions", "balances"}  # views with the transaction of a receipt
_MAX_HEADERS = 4_096  # most receipts run in recently read blocks


class Contents(NamedTuple):
    """
    The block at a height, its new chunks and its transactions.

    `waiting` is set if transactions are not final yet and rows may be missing.
    """

    block: chain.Block
    chunks: list[chain.Chunk]
    transactions: list[TracedTransaction]
    waiting: TransactionTimeoutError | None = None


class BlockReader:
    """A reader of block heights, for some of `collected.NODE_VIEWS`."""

    noun = "heights"
    surfaces: tuple[Surface, ...] = ("rpc", "archival_rpc")

    def __init__(self, views: Sequence[str]) -> None:
        self._views = tuple(views)
        self._headers: dict[str, chain.BlockHeader] = {}
        self._rules: dict[str, Rules | None] = {}
        self._epoch_blocks: dict[str, str] = {}  # the block at which the rules of an epoch are read

    def read(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[list[Outcome]]:
        """Request heights; yield their outcomes in order. A height that lacks a part fails."""
        outcomes = ledger.session.read_each(
            self._read_blocks(ledger, subjects),
            self._read_contents,
            n_calls=_CALLS,
            rate_limit_wait_s=MAX_RATE_LIMITED_S,
        )
        with closing(outcomes):
            for outcome in outcomes:
                yield [outcome]

    def tables(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        contents = [value for _, value in outcomes if isinstance(value, Contents)]
        blocks = [(item.block, item.chunks) for item in contents]
        transactions = [transaction for item in contents for transaction in item.transactions]
        traced = [view for view in self._views if view in TRACED]
        trees = tree_tables(traced, transactions) if traced else {}
        return {**node_tables(self._views, blocks), **trees}

    def _read_blocks(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[NodeRead]:
        """Read the blocks of heights, some ahead, because receipts run in later blocks."""
        heights = (subject.position for subject in subjects)
        wait_s = MAX_RATE_LIMITED_S
        reads = read_node_blocks(ledger, heights, size=_AHEAD, ahead=1, rate_limit_wait_s=wait_s)
        pending: deque[NodeRead] = deque()
        with closing(reads):
            for height, block in reads:
                if not isinstance(block, Skipped | LedgerError):
                    self._cache_header(block.header)
                pending.append((height, block))
                if len(pending) > _AHEAD:
                    yield pending.popleft()
        yield from pending

    async def _read_contents(self, reader: Reader, read: NodeRead) -> Outcome:
        """Read the contents of a block that the views need, or return the error."""
        height, block = read
        subject = height_subject(height)
        if isinstance(block, Skipped):
            return _skipped(subject, block)
        if isinstance(block, UnknownBlockError):
            msg = f"this host does not have block {subject.text}"
            msg = f"{msg}, and no block shows that it was skipped"
            remedy = f"{CONNECT_ARCHIVE} Then repeat the call with retry_failed=True."
            return Outcome(subject, UnknownBlockError(msg, remedy=remedy))
        if isinstance(block, LedgerError):
            return Outcome(subject, block)
        try:
            return Outcome(subject, await self._contents(reader, block))
        except LedgerError as error:
            return Outcome(subject, error)

    async def _contents(self, reader: Reader, block: chain.Block) -> Contents:
        """Read the chunks and transactions of a block, if the views need them."""
        chunks: list[chain.Chunk] = []
        if self._views != ("blocks",):
            chunks = await reader.values(rpc.chunk(new.chunk_hash) for new in block.new_chunks())
        items = [item for chunk in chunks for item in chunk.transactions]
        signers = {tx.hash: tx.signer_id for tx in items if not isinstance(tx, OtherTransaction)}
        if not signers or set(TRACED).isdisjoint(self._views):
            return Contents(block, chunks, [])
        results = await _read_results(reader, signers)
        hashes = [h for result in results.values() for h in result.block_hashes()]
        headers = await self._read_headers(reader, dict.fromkeys(hashes))
        await self._read_rules(reader, headers)
        height = block.header.height
        transactions = [
            trace_result(height, tx_hash, result, headers, self._rules)
            for tx_hash, result in results.items()
        ]
        unfinished = [
            tx_hash
            for tx_hash, result in results.items()
            if not (result.is_final and result.has_finished())
        ]
        waiting = waiting_error(unfinished) if unfinished else None
        return Contents(block, chunks, transactions, waiting)

    def _cache_header(self, header: chain.BlockHeader) -> None:
        self._headers[header.hash] = header
        if len(self._headers) > _MAX_HEADERS:
            del self._headers[next(iter(self._headers))]

    async def _read_headers(
        self, reader: Reader, hashes: Iterable[str]
    ) -> dict[str, chain.BlockHeader]:
        """Return block headers by hash; request those that are not cached."""
        headers = {h: self._headers[h] for h in hashes if h in self._headers}
        missing = [block_hash for block_hash in hashes if block_hash not in headers]
        blocks = await reader.values(rpc.block(validation.block_reference(h)) for h in missing)
        for block_hash, block in zip(missing, blocks, strict=True):
            self._cache_header(block.header)
            headers[block_hash] = block.header
        return headers

    async def _read_rules(self, reader: Reader, headers: dict[str, chain.BlockHeader]) -> None:
        """Read the protocol rules of each epoch once; None if the host does not provide them."""
        for block_hash, header in headers.items():
            epoch = header.epoch_id
            if epoch not in self._rules:
                pinned = self._epoch_blocks.setdefault(epoch, block_hash)
                call = rpc.protocol_config(validation.block_reference(pinned))
                add_rules(self._rules, epoch, await reader.answer(call), must_answer=True)


class DocumentReader:
    """
    A reader of block heights from whole blocks.

    Parameters
    ----------
    views
        Some of ``collected.VIEWS["blocks"]``.
    source
        ``"documents"``, or ``"indexer_rpc"`` for a node.
    verify
        Whether a document that the chain does not commit to is an error.
    """

    noun = "heights"

    def __init__(self, views: Sequence[str], source: str, *, verify: bool = False) -> None:
        self.surfaces: tuple[Surface, ...] = ("blocks",) if source == "documents" else ("rpc",)
        self._source = source
        self._views = tuple(views)
        self._verify = verify

    @property
    def is_traced(self) -> bool:
        return not set(TRACED).isdisjoint(self._views)

    def origins(self, ledger: Ledger) -> Origins | None:
        """Return the origins that fill in the transactions of receipts, if a view needs them."""
        is_lacking = self._source != "documents" and not _WITH_ORIGINS.isdisjoint(self._views)
        return Origins(ledger) if is_lacking else None

    def read(self, ledger: Ledger, subjects: Iterable[Subject]) -> Iterator[list[Outcome]]:
        """Read heights; yield their outcomes in order, once their transactions are complete."""
        numbers = count()
        for _, run in groupby(subjects, key=lambda subject: subject.position - next(numbers)):
            heights = (subject.position for subject in run)
            reads = read_contents(
                ledger,
                heights,
                source=self._source,
                is_traced=self.is_traced,
                origins=self.origins(ledger),
                verify=self._verify,
            )
            with closing(reads):
                for read in reads:
                    yield [outcome_of(read)]

    def tables(self, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        contents = [value for _, value in outcomes if isinstance(value, DocumentContents)]
        return block_tables(self._views, contents)


def outcome_of(read: ContentsRead) -> Outcome:
    subject = height_subject(read.height)
    if isinstance(read.value, Skipped):
        return _skipped(subject, read.value)
    return Outcome(subject, read.value)


def _skipped(subject: Subject, value: Skipped) -> Outcome:
    message = (
        f"the chain skipped height {subject.text}: the previous block is {value.previous_height}"
    )
    error = UnknownBlockError(block=subject.position)
    return Outcome(subject._replace(problem=SKIPPED, message=message), error)


async def _read_results(reader: Reader, signers: dict[str, str]) -> dict[str, TxResult]:
    """Read results; a transaction that times out is returned as far as it has run."""
    pairs = list(signers.items())
    calls = [rpc.transaction_or_timeout(*pair, "FINAL") for pair in pairs]
    values = await reader.answers(calls)
    late = [i for i, value in enumerate(values) if isinstance(value, rpc.TimedOut)]
    later = await reader.answers(rpc.transaction_or_timeout(*pairs[i], "NONE") for i in late)
    for i, value in zip(late, later, strict=True):
        values[i] = rpc.known_so_far(values[i], value)
    for value in values:
        if isinstance(value, LedgerError):
            raise value
    results: dict[str, TxResult] = {}
    for tx_hash, value in zip(signers, values, strict=True):
        result = results[tx_hash] = value.result
        # Nodes send only the level until the transaction's chunk has run.
        if result.transaction is not None or result.is_final:
            received = result.transaction and result.transaction.hash
            if received != tx_hash:
                subject = f"transaction {tx_hash}"
                msg = f"{subject} was requested, and the response is about {received}"
                raise DecodeError(msg, request=subject)
    return results
