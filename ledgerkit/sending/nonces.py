"""
Nonces: the next nonce of a key, shared by all senders of this process.

A node refuses a nonce below one that was already applied, so the senders of one key must
also send in the order of their nonces. A `NonceQueue` assigns nonces and keeps this order.
A gas key (NEP-611) has several nonces, which are independent: each has a queue of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from ledgerkit.protocol import CryptoHash, SignedTransaction

_MAX_AGE_S = 30.0  # how long a nonce and a block are used after they were read, while others send


class Anchor(NamedTuple):
    """The final block that a transaction references, and from which its validity counts."""

    height: int
    block_hash: CryptoHash


def next_nonce(ak_nonce: int, reserved: Collection[int], *, strict: bool = False) -> int:
    """Return the next nonce above the access key's last one that is not reserved."""
    # A strict nonce must be the very next one, so gaps are filled first. Other nonces may leave
    # gaps, and one below a pending nonce would be refused once that is applied.
    if not strict:
        return max((ak_nonce, *reserved)) + 1
    nonce = ak_nonce + 1
    while nonce in reserved:
        nonce += 1
    return nonce


class NonceQueue:
    """The nonces of one key on one chain, and the lock that orders its senders."""

    def __init__(self, nonce_index: int | None = None) -> None:
        self.nonce_index = nonce_index  # None for an ordinary key
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self.sender_count = 0
        self._ak_nonce = 0
        self._reserved: dict[int, SignedTransaction | None] = {}
        self._read_at = self._used_at = float("-inf")
        self._anchor: Anchor | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the turn to send, and hold it inside the ``with`` block."""
        with self._lock:
            self.sender_count += 1
        try:
            with self._turn:
                yield
        finally:
            with self._lock:
                self.sender_count -= 1

    @property
    def has_one_sender(self) -> bool:
        """True if no other sender waits for a turn."""
        return self.sender_count <= 1

    @property
    def anchor(self) -> Anchor | None:
        """The block to reference; None if the key has to be read first."""
        # With nothing reserved, another program may have used the key since it was read.
        with self._lock:
            is_recent = time.monotonic() - self._read_at < _MAX_AGE_S
            return self._anchor if is_recent and self._reserved else None

    def update(self, ak_nonce: int, anchor: Anchor) -> None:
        """Store the key's nonce and a final block, as read from a node."""
        # A node that lags behind may return a nonce below one that was used just now.
        with self._lock:
            now = time.monotonic()
            known_nonce = self._ak_nonce if now - self._used_at < _MAX_AGE_S else 0
            self._ak_nonce = max(known_nonce, ak_nonce)
            self._anchor, self._read_at = anchor, now
            self._drop_used()

    def peek(self, ak_nonce: int) -> int:
        """Return the nonce that would come next, without reserving it."""
        with self._lock:
            return next_nonce(max(self._ak_nonce, ak_nonce), self._reserved)

    def reserve(self, *, strict: bool = False) -> int:
        """Reserve the next nonce; a strict one may reuse a nonce that signed no transaction."""
        # A delegate action reserves a nonce too, but may never be relayed: a strict nonce
        # above that gap would never become valid.
        with self._lock:
            signed = [n for n, transaction in self._reserved.items() if transaction is not None]
            nonce = next_nonce(self._ak_nonce, signed if strict else self._reserved, strict=strict)
            self._reserved[nonce] = None
            return nonce

    def add_signed(self, signed: SignedTransaction) -> None:
        """Store the signed bytes of a nonce, to be sent again if they did not arrive."""
        with self._lock:
            self._reserved[signed.transaction.nonce] = signed

    def unconfirmed(self) -> list[SignedTransaction]:
        """List the signed transactions that are not known to have used their nonce."""
        with self._lock:
            return [signed for _, signed in sorted(self._reserved.items()) if signed is not None]

    def mark_used(self, nonce: int) -> None:
        with self._lock:
            self._ak_nonce = max(self._ak_nonce, nonce)
            self._used_at = time.monotonic()
            self._drop_used()

    def release(self, nonce: int) -> None:
        """Return a nonce that will not be used; the next sender reads the key again."""
        with self._lock:
            self._reserved.pop(nonce, None)
            self._read_at = float("-inf")

    def _drop_used(self) -> None:
        for nonce in [n for n in self._reserved if n <= self._ak_nonce]:
            del self._reserved[nonce]


class KeyQueues:
    """The nonce queues of a key on a chain: one queue, or one for each nonce of a gas key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[int | None, NonceQueue] = {}
        # None for an ordinary key, and before a gas key is read.
        self.num_nonces: int | None = None

    @property
    def ordinary(self) -> NonceQueue:
        return self._queue(None)

    def pick(self) -> NonceQueue:
        """Return the queue with the fewest senders; the first of several."""
        if self.num_nonces is None:
            return self.ordinary
        best = self._queue(0)
        for index in range(1, self.num_nonces):
            if not best.sender_count:
                break
            best = min(best, self._queue(index), key=lambda queue: queue.sender_count)
        return best

    def fits(self, queue: NonceQueue) -> bool:
        """Return True if a queue belongs to a key of this kind."""
        index, count = queue.nonce_index, self.num_nonces
        return index is None if count is None else index is not None and index < count

    def _queue(self, index: int | None) -> NonceQueue:
        with self._lock:
            return self._queues.setdefault(index, NonceQueue(index))


class Memo(Protocol):
    """An object that stores state of other modules: a `Ledger` or an embedded world."""

    def memo(self, key: str, factory: Callable[[], Any]) -> Any:
        """Return the object under a key, built at the first use."""


_lock = threading.Lock()
_queues: dict[str, dict[tuple[str, str], KeyQueues]] = {}


def key_queues(chain: str | Memo, account_id: str, public_key: str) -> KeyQueues:
    """Return the nonce queues of a key on a chain, which all senders of this process share."""
    with _lock:
        if isinstance(chain, str):
            queues = _queues.setdefault(chain, {})
        else:
            queues = chain.memo("nonce_queues", dict)
        return queues.setdefault((account_id, public_key), KeyQueues())
