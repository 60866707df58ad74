"""
Block documents whose outcomes are proved: the blocks after them commit to each, and are approved.

The outcomes that a chunk executed have a root, which the header of the next chunk of its shard
has; the header of the block with that chunk commits to it, and the block after that one shows that
validators approved it. So a document is proved by two later ones, or more if its shard missed a
chunk.
"""

from __future__ import annotations

from collections import deque
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from ledgerkit import json_decoding, proofs
from ledgerkit.api.models.commitments import CommittedDocument
from ledgerkit.block_data import reading
from ledgerkit.block_data.verified_headers import HeaderChecks, Headers, decode_root
from ledgerkit.errors import (
    DecodeError,
    LedgerError,
    ProofError,
    ProofNotReadyError,
    UnknownBlockError,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from ledgerkit.api.models.commitments import Header
    from ledgerkit.block_data.reading import DocumentRead
    from ledgerkit.ledger import Ledger

# Heights after the last one, in which a shard that misses chunks may have one again.
_MAX_LATER = 60
_STEP = 10  # the heights of an archive


@dataclass(slots=True)
class VerifiedRead:
    """
    The result of reading a height, and what proves it.

    Parameters
    ----------
    read
        The result; an error takes the place of a document that is not proved.
    leaves
        The hash of each outcome, by its id.
    committed_by
        The last header that commits to one of them.
    """

    read: DocumentRead
    leaves: dict[str, bytes] = field(default_factory=dict)
    committed_by: Header | None = None
    _missing: int = 0  # roots to which no header commits yet

    def is_proved(self, approved_height: int) -> bool:
        """Return True if all roots are committed to by approved blocks, or nothing has to be."""
        if isinstance(self.read.value, LedgerError | reading.Skipped):
            return True
        header = self.committed_by
        return not self._missing and header is not None and header.height <= approved_height


def read_verified(
    ledger: Ledger, heights: Iterable[int], headers: Headers | None = None
) -> Generator[VerifiedRead, None, None]:
    """
    Yield the document of each height, in order, once it is proved.

    As `reading.read_documents`, but a document that is not what the chain commits to is a
    `ProofError`. One whose proof the last final block does not have yet is a `ProofNotReadyError`.
    """
    verification = _Verification(headers or Headers(ledger))
    last = -1
    with closing(reading.read_documents(ledger, heights, with_bodies=True)) as reads:
        for read in reads:
            last = read.height
            yield from verification.add(read)
    yield from _read_on(ledger, verification, last + 1)


def _read_on(ledger: Ledger, verification: _Verification, start: int) -> Iterator[VerifiedRead]:
    """Read the heights after the last one that prove those before; yield what they prove."""
    for height in range(start, start + _MAX_LATER, _STEP):
        if not verification.is_waiting:
            return
        later = range(height, height + _STEP)
        with closing(reading.read_documents(ledger, later, with_bodies=True)) as reads:
            for read in reads:
                if isinstance(read.value, UnknownBlockError):  # not final yet
                    yield from verification.end()
                    return
                yield from verification.add(read, is_later=True)
                if not verification.is_waiting:
                    return
    yield from verification.end()


class _Verification:
    """The documents that are not proved yet, and the checks of the headers."""

    def __init__(self, headers: Headers | None) -> None:
        self._headers = headers
        self._held: deque[VerifiedRead] = deque()
        self._restart()

    @property
    def is_waiting(self) -> bool:
        """True if a document is not proved yet."""
        return bool(self._held)

    def add(self, read: DocumentRead, *, is_later: bool = False) -> Iterator[VerifiedRead]:
        """Add the next height; yield those that are proved now. Later ones are not yielded."""
        verified = VerifiedRead(read._replace(body=b""))
        try:
            if isinstance(read.value, LedgerError):
                raise read.value
            if not isinstance(read.value, reading.Skipped):
                self._add_document(read, verified)
        except LedgerError as error:
            self._fail(error)
            verified.read = verified.read._replace(value=error)
        if not is_later:
            self._held.append(verified)
        while self._held and self._held[0].is_proved(self._approved_height):
            yield self._held.popleft()

    def end(self) -> Iterator[VerifiedRead]:
        """Yield what is not proved with its error."""
        self._fail(None)
        while self._held:
            yield self._held.popleft()

    def _restart(self) -> None:
        """Begin anew: the next header follows on none before."""
        self._checks = HeaderChecks(self._headers)
        self._approved_height = -1
        self._pending: dict[int, tuple[VerifiedRead, bytes]] = {}  # by shard

    def _fail(self, error: LedgerError | None) -> None:
        """Replace the documents that wait for a later one, which cannot prove them."""
        for verified in self._held:
            if not isinstance(verified.read.value, LedgerError | reading.Skipped):
                text = f"no later block proves block {verified.read.height} yet"
                value = error or ProofNotReadyError(text=text, block_height=verified.read.height)
                verified.read = verified.read._replace(value=value)
        self._restart()

    def _add_document(self, read: DocumentRead, verified: VerifiedRead) -> None:
        """Check a document, and the outcomes that its chunks commit to."""
        try:
            document = json_decoding.decode(read.body, CommittedDocument)
        except msgspec.DecodeError as error:
            msg = f"block {read.height} has no whole header, or no whole outcomes: {error}"
            raise DecodeError(msg, request=f"the document of block {read.height}") from None
        header = document.block.header
        if self._checks.add(header):
            self._approved_height = header.prev_height or header.height - 1
        roots = [sha256(decode_root(c.outcome_root)).digest() for c in document.chunks]
        _require(proofs.root_of(roots) == decode_root(header.outcome_root), header, "its chunks")
        new = {c.shard_id for c in document.chunks if c.height_included == header.height}
        for chunk in document.chunks:
            if chunk.shard_id in new and chunk.shard_id in self._pending:
                earlier, root = self._pending.pop(chunk.shard_id)
                what = f"the outcomes of shard {chunk.shard_id} in block {earlier.read.height}"
                _require(root == decode_root(chunk.outcome_root), header, what)
                earlier._missing -= 1  # noqa: SLF001 - of this module
                earlier.committed_by = header
        for shard in document.shards:
            ids = [outcome.id for outcome in shard.outcomes]
            if shard.shard_id not in new:
                _require(not ids, header, f"outcomes of shard {shard.shard_id}, without a chunk,")
                continue
            leaves = proofs.leaves(ids, [outcome.outcome for outcome in shard.outcomes])
            verified.leaves.update(zip(ids, leaves, strict=True))
            self._pending[shard.shard_id] = verified, proofs.root_of(leaves)
            verified._missing += 1  # noqa: SLF001 - of this module
        listed = {shard.shard_id for shard in document.shards}
        _require(new <= listed, header, "the chunks that its document lacks")
        if not new:
            verified.committed_by = header


def _require(holds: bool, header: Header, what: str) -> None:  # noqa: FBT001 - a condition
    """Raise if a header does not commit to something."""
    if not holds:
        msg = f"Block {header.height} does not commit to {what}"
        raise ProofError(msg, block_hash=header.hash)
