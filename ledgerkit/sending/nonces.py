"""
Which nonce comes next: one count a key, however many senders share it.

A node drops a nonce that arrives after a higher one was taken, so that counting is not
enough: whoever shares a key also sends in turn. `Lane` is both, the count and the turn.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ledgerkit.protocol import CryptoHash, SignedTransaction

_LASTS_S = 30.0  # for so long a reading serves, while others send with the key


class Anchor(NamedTuple):
    """The final block that transactions refer to, and expire after."""

    height: int
    block_hash: CryptoHash


def next_nonce(ak_nonce: int, reserved: Collection[int], *, strict: bool = False) -> int:
    """
    Decide the nonce of the next transaction.

    Parameters
    ----------
    ak_nonce
        The last nonce used, as the access key tells.
    reserved
        Nonces that were handed out and may still be used.
    strict
        Whether the ledger takes the very next nonce only, so that a gap has to be
        filled first. Otherwise gaps do no harm, and a nonce below one that is under
        way would come too late.

    Returns
    -------
    nonce
        Above `ak_nonce`, and not reserved.
    """
    if not strict:
        return max((ak_nonce, *reserved)) + 1
    nonce = ak_nonce + 1
    while nonce in reserved:
        nonce += 1
    return nonce


class Lane:
    """The nonces of one key on one ledger, and whose turn it is to send with it."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._senders = 0
        self._ak_nonce = 0
        self._reserved: dict[int, SignedTransaction | None] = {}
        self._read_at = self._landed_at = float("-inf")
        self._anchor: Anchor | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the turn to send."""
        with self._lock:
            self._senders += 1
        try:
            with self._turn:
                yield
        finally:
            with self._lock:
                self._senders -= 1

    @property
    def alone(self) -> bool:
        """Whether nobody else waits for a turn."""
        return self._senders <= 1

    @property
    def anchor(self) -> Anchor | None:
        """The block to refer to; None where the key has to be read first."""
        with self._lock:
            recent = time.monotonic() - self._read_at < _LASTS_S
            return self._anchor if recent and self._reserved else None

    def update(self, ak_nonce: int, anchor: Anchor) -> None:
        """Take what was read; a node that is a little behind tells no news of our own."""
        with self._lock:
            now = time.monotonic()
            known = self._ak_nonce if now - self._landed_at < _LASTS_S else 0
            self._ak_nonce = max(known, ak_nonce)
            self._anchor, self._read_at = anchor, now
            self._forget()

    def peek(self, ak_nonce: int) -> int:
        """Tell which nonce would come next, and hand none out."""
        with self._lock:
            return next_nonce(max(self._ak_nonce, ak_nonce), self._reserved)

    def reserve(self, *, strict: bool = False) -> int:
        """Hand out a nonce; a strict one does not wait for what may never be relayed."""
        with self._lock:
            sent = [n for n, signed in self._reserved.items() if signed is not None]
            held = sent if strict else self._reserved
            nonce = next_nonce(self._ak_nonce, held, strict=strict)
            self._reserved[nonce] = None
            return nonce

    def keep(self, signed: SignedTransaction) -> None:
        """Keep the bytes of a nonce, which fill its gap if they never arrived."""
        with self._lock:
            self._reserved[signed.transaction.nonce] = signed

    def unsettled(self) -> list[SignedTransaction]:
        """List what was signed and has not landed, as far as is known."""
        with self._lock:
            return [signed for _, signed in sorted(self._reserved.items()) if signed is not None]

    def landed(self, nonce: int) -> None:
        """Note that a nonce is used up."""
        with self._lock:
            self._ak_nonce = max(self._ak_nonce, nonce)
            self._landed_at = time.monotonic()
            self._forget()

    def give_back(self, nonce: int) -> None:
        """Take back a nonce that will not be used; the next sender reads the key again."""
        with self._lock:
            self._reserved.pop(nonce, None)
            self._read_at = float("-inf")

    def _forget(self) -> None:
        """Drop the nonces that are used up."""
        for nonce in [n for n in self._reserved if n <= self._ak_nonce]:
            del self._reserved[nonce]


_lock = threading.Lock()
_named: dict[str, dict[tuple[str, str], Lane]] = {}
_held: WeakKeyDictionary[object, dict[tuple[str, str], Lane]] = WeakKeyDictionary()


def lane(where: object, account_id: str, public_key: str) -> Lane:
    """
    Find the lane of a key: everybody in this process shares it.

    Parameters
    ----------
    where
        Which ledger: its address, or whatever stands for it.
    account_id, public_key
        The key.

    Returns
    -------
    lane
        Always the same one.
    """
    with _lock:
        if isinstance(where, str):
            lanes = _named.setdefault(where, {})
        else:
            lanes = _held.setdefault(where, {})
        return lanes.setdefault((account_id, public_key), Lane())
