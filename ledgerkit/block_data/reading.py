"""The documents of many heights in order, or the proofs that heights were skipped."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from ledgerkit.api import services
from ledgerkit.api.models.block_documents import BlockDocument, BlockResponse
from ledgerkit.block_data.archives import HEIGHTS_PER_ARCHIVE, archive_start
from ledgerkit.block_data.bodies import read_bodies
from ledgerkit.block_data.headers import Skipped, first_headers_above, source_headers
from ledgerkit.block_data.node_documents import read_node_documents
from ledgerkit.errors import (
    LedgerError,
    ProofNotReadyError,
    TransportError,
    UnknownBlockError,
    UnmatchedResponseError,
)

if TYPE_CHECKING:
    from ledgerkit.api.models import chain
    from ledgerkit.block_data.bodies import Body
    from ledgerkit.ledger import Ledger

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# Heights in which the receipts of a block may run: a yielded receipt is resumed after 200 blocks at
# most, and congestion delays receipts further. Source: nearcore,
# core/parameters/res/runtime_configs/parameters.yaml, yield_timeout_length_in_blocks.
LOOK_AHEAD = 640
_FIRST_LOOK = 4  # heights; most receipts run within three blocks
_OTHER_CHAIN = "The host changed to another chain: check its address, and start anew."


class DocumentRead(NamedTuple):
    """The result of reading one height."""

    height: int
    value: BlockDocument | Skipped | LedgerError
    size: int = 0  # bytes of the document
    body: bytes = b""  # its JSON, if it was requested

    @classmethod
    def of(cls, height: int, response: BlockResponse | Skipped | LedgerError) -> DocumentRead:
        if isinstance(response, Skipped | LedgerError):
            return cls(height, response)
        return cls(height, response.document, len(response.body), response.body)


class Link(NamedTuple):
    """The height and hash of a block; the next block must have it as its parent."""

    height: int
    hash: str


def read_documents(
    ledger: Ledger,
    heights: Iterable[int],
    *,
    source: str = "documents",
    previous: Link | None = None,
    whole: bool = False,
    with_bodies: bool = False,
) -> Generator[DocumentRead, None, None]:
    """
    Read the documents of ascending heights; yield one result per height, in order.

    They come from the services, or with the source ``"indexer_rpc"`` from a node. Requests are sent
    ahead of the consumer, and cancelled when the iterator is closed. A height that could not be
    read yields its error, and reading goes on with the next height. A height above the last final
    block yields `UnknownBlockError`. A height without a document is skipped only if the next block
    says so. A block that does not follow on the previous block yields `UnmatchedResponseError`; the
    first block must follow on `previous`. With `whole`, documents are `WholeDocument`.

    Raises `LedgerError` if the last final block cannot be read.
    """
    order = ChainOrder(ledger, previous, whole=whole, source=source)
    if source == "documents":
        reads = _read_service(ledger, heights, order, whole=whole)
    else:
        responses = read_node_documents(ledger, heights, whole=whole)
        reads = (order.check(DocumentRead.of(*response)) for response in responses)
    with closing(reads):
        for read in reads:
            yield read if with_bodies else read._replace(body=b"")


def _read_service(
    ledger: Ledger, heights: Iterable[int], order: ChainOrder, *, whole: bool
) -> Generator[DocumentRead, None, None]:
    with closing(read_bodies(ledger, heights, whole=whole)) as bodies:
        for height, body in bodies:
            yield from order.add(height, body)
    yield from order.end()


class HeightBuffer(Protocol[T_co]):
    """The heights that wait until later heights complete their results."""

    @property
    def is_waiting(self) -> bool:
        """True if a height waits for later heights."""

    def add(self, read: DocumentRead, *, is_later: bool = False) -> Iterable[T_co]:
        """Add the next height; return the complete results. Later heights have no result."""

    def end(self) -> Iterable[T_co]:
        """Return the incomplete results."""


def read_with_later(
    ledger: Ledger,
    heights: Iterable[int],
    buffer: HeightBuffer[T],
    read: Callable[[Ledger, Iterable[int]], Generator[DocumentRead, None, None]],
) -> Generator[T, None, None]:
    """
    Read heights, and later heights while the buffer waits, up to the last final block.

    Later heights are read in runs of increasing length, at most `LOOK_AHEAD` heights.
    """
    stop = 0
    with closing(read(ledger, heights)) as reads:
        for result in reads:
            stop = result.height + 1
            yield from buffer.add(result)
    with closing(_look_ahead(ledger, stop, buffer, read)) as reads:
        for result in reads:
            yield from buffer.add(result, is_later=True)
    yield from buffer.end()


def _look_ahead(
    ledger: Ledger,
    start: int,
    buffer: HeightBuffer[object],
    read: Callable[[Ledger, Iterable[int]], Generator[DocumentRead, None, None]],
) -> Generator[DocumentRead, None, None]:
    last, size = start + LOOK_AHEAD, _FIRST_LOOK
    while buffer.is_waiting and start < last:
        # A whole archive is one request, so the run ends with an archive.
        heights = range(start, archive_start(start + size + HEIGHTS_PER_ARCHIVE - 1))
        start, size = heights.stop, 2 * size
        with closing(read(ledger, heights)) as reads:
            for result in reads:
                if isinstance(result.value, UnknownBlockError | ProofNotReadyError):
                    return
                yield result
                if not buffer.is_waiting:
                    return


def read_document(ledger: Ledger, height: int) -> BlockDocument | Skipped:
    """Read the document of one height; raise its error."""
    order = ChainOrder(ledger)
    body = ledger.send(services.block_document(height))
    [read] = [*order.add(height, body), *order.end()]
    if isinstance(read.value, LedgerError):
        raise read.value
    return read.value


class ChainOrder:
    """
    The check that documents belong to one chain, and that heights without a document were skipped.

    `previous` is the last block that was read before, if there is one. A null from the service
    proves nothing: if a block was late, its null may stay in a cache for a day.
    """

    # Source: fastnear/neardata-server, src/api.rs, get_block_inner.

    def __init__(
        self,
        ledger: Ledger,
        previous: Link | None = None,
        *,
        whole: bool = False,
        source: str = "documents",
    ) -> None:
        self._ledger = ledger
        self._is_whole = whole
        self._headers = source_headers(ledger, source)
        self._missing: list[int] = []  # heights without a document, in order
        self._previous: chain.BlockHeader | Link | None = previous
        # All heights from `previous` up to this height were read.
        self._next_height = previous.height + 1 if previous else 0
        # The heights of parents, by the hashes of blocks without prev_height.
        self._parents: dict[str, int] = {}

    def add(self, height: int, body: Body) -> Iterator[DocumentRead]:
        """Add a height; yield the results that are certain now."""
        if body is None:
            self._missing.append(height)
            return
        header = None if isinstance(body, LedgerError) else body.document.block.header
        yield from self._resolve_missing(header)
        yield self.check(DocumentRead.of(height, body))

    def end(self) -> Iterator[DocumentRead]:
        yield from self._resolve_missing(None)

    def _resolve_missing(self, successor: chain.BlockHeader | None) -> Iterator[DocumentRead]:
        """Yield the missing heights below `successor`, or below the next block that exists."""
        reads: list[DocumentRead] = []
        while self._missing:
            try:
                read, successor = self._read_missing(self._missing[-1], successor)
            except LedgerError as error:
                read, successor = DocumentRead(self._missing[-1], error), None
            reads.append(read)
            self._missing.pop()
        for read in reversed(reads):
            yield self.check(read)

    def _read_missing(
        self, height: int, successor: chain.BlockHeader | None
    ) -> tuple[DocumentRead, chain.BlockHeader]:
        """Return the proof that a height was skipped, or its late block, and the next header."""
        call = services.block_document(height, whole=self._is_whole, fresh=True)
        if successor is None or self._parent_height(successor) >= height:
            # This block was late, or its successor is.
            response = self._ledger.send(call)
            if response is not None:
                return DocumentRead.of(height, response), response.document.block.header
            successor = first_headers_above(self._headers, [height]).get(height)
            if successor is None:
                sentence = f"no block follows on height {height}, so it may have one"
                raise TransportError(sentence, request=call.request)
        parent = self._parent_height(successor)
        if parent < height:
            return DocumentRead(height, Skipped(parent)), successor
        sentence = (
            f"the block documents have no block {height}, but block {successor.height} does not"
            f" follow on an earlier one: its previous block is {parent}"
        )
        raise TransportError(sentence, request=call.request)

    def _parent_height(self, header: chain.BlockHeader) -> int:
        """Return the height of the previous block, which headers of the first years lack."""
        if header.prev_height is not None:
            return header.prev_height
        if header.hash not in self._parents:
            previous = self._previous
            if previous is None or previous.hash != header.prev_hash:
                previous = self._headers.parent(header)
            self._parents = {header.hash: previous.height}
        return self._parents[header.hash]

    def check(self, read: DocumentRead) -> DocumentRead:
        """Return the result, or the error if it does not follow on the previous block."""
        value = read.value
        try:
            self._check_order(read.height, value)
        except LedgerError as error:
            return DocumentRead(read.height, error)
        if isinstance(value, BlockDocument):
            self._previous = value.block.header
        if isinstance(value, BlockDocument) or read.height == self._next_height:
            self._next_height = read.height + 1
        return read

    def _check_order(self, height: int, value: BlockDocument | Skipped | LedgerError) -> None:
        """Raise the error of a height, or the error of a contradiction to the previous block."""
        if isinstance(value, LedgerError):
            raise value
        previous = self._previous
        if previous is None:
            return
        if isinstance(value, Skipped):
            parent, parent_hash = value.previous_height, previous.hash
        else:
            header = value.block.header
            parent, parent_hash = self._parent_height(header), header.prev_hash
        if parent == previous.height:
            follows = parent_hash == previous.hash
        else:
            follows = parent > previous.height and height > self._next_height
        if not follows:
            request = f"the document of block {height}"
            reason = f"its previous block is {parent}, {parent_hash}"
            sentence = (
                f"{request} is not of the same chain as block {previous.height}, {previous.hash}:"
                f" {reason}"
            )
            raise UnmatchedResponseError(
                sentence, remedy=_OTHER_CHAIN, request=request, reason=reason, retryable=False
            )
