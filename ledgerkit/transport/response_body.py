"""The bodies of responses: received and unpacked within a limit of bytes and a deadline."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.errors import ResponseTooLargeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Iterable, Sequence

ACCEPTED_ENCODING = "gzip"  # `zlib` unpacks it in steps, and it has one form; "deflate" has two
_NAMES = {"gzip", "x-gzip"}  # RFC 9110, section 8.4.1.3
_GZIP_FORMAT = 16 + zlib.MAX_WBITS
_STEP_BYTES = 2**18  # unpacked at once: takes the loop well below a millisecond
_PIECE_BYTES = 2**16  # stored at once: a piece of a byte would take forty times its size
_LARGE_BYTES = 2**20  # from this size on, bytes.join lets other threads run
_SLICE_BYTES = 2**16  # after each step, zlib copies what it has not read yet


class EncodingError(ValueError):
    """The body has an encoding that is not read, or its gzip is broken."""


class BodyLimits(NamedTuple):
    """The limits of one response: bytes, as sent and unpacked, and a time.monotonic() deadline."""

    request: str
    max_bytes: int
    deadline: float


class BodyReader:
    """
    The body of one response, unpacked as it is received.

    Parameters
    ----------
    limits
        The limits, which are checked after every step.
    encodings
        The values of the header Content-Encoding.
    length
        The value of the header Content-Length, if there is one.
    """

    def __init__(self, limits: BodyLimits, encodings: Sequence[str], length: str | None) -> None:
        self._limits = limits
        self._is_stopped = False
        self._received = self._size = 0
        self._packed: deque[bytes] = deque()
        self._pieces: list[bytes] = []
        self._last_piece = bytearray()
        self._gzip = zlib.decompressobj(_GZIP_FORMAT) if _is_packed(encodings) else None
        if length is not None and length.isdecimal():
            self._check_size(float(length))  # an int may have too many digits

    def add(self, chunk: bytes) -> None:
        """Add received bytes."""
        self._check_time()
        if self._gzip is None:
            self._store(chunk)
        else:
            self._received += len(chunk)
            self._check_size(self._received)
            starts = range(0, len(chunk), _SLICE_BYTES)
            self._packed.extend(chunk[start : start + _SLICE_BYTES] for start in starts)

    def unpack_step(self) -> bool:
        """Unpack a part of the received bytes; return True if there are more."""
        if self._gzip is None or not self._packed:
            return False
        self._check_time()
        self._store(_decompress(self._gzip, self._packed.popleft()))
        if self._gzip.unconsumed_tail:
            self._packed.appendleft(self._gzip.unconsumed_tail)
        if self._gzip.eof and (self._packed or self._gzip.unused_data):
            msg = "the body goes on after the end of its gzip"
            raise EncodingError(msg)
        return bool(self._packed)

    def unpack(self) -> None:
        """Unpack all received bytes."""
        while self.unpack_step():
            pass

    def whole(self) -> bytes:
        """Return the whole body; raise if its gzip has no end."""
        if self._gzip is not None and self._received and not self._gzip.eof:
            msg = "the body ends before its gzip"
            raise EncodingError(msg)
        if len(self._pieces) == 1 and not self._last_piece:
            return self._pieces[0]
        return b"".join([*self._pieces, bytes(self._last_piece)])

    @property
    def is_large(self) -> bool:
        """True if it takes time to join the body."""
        return self._size >= _LARGE_BYTES

    def stop(self) -> None:
        """End the thread that unpacks, if there is one."""
        self._is_stopped = True

    def _store(self, data: bytes) -> None:
        """Add a part of the unpacked body."""
        self._size += len(data)
        self._check_size(self._size)
        # The first part is often the whole body.
        if not self._last_piece and (not self._pieces or len(data) >= _PIECE_BYTES):
            self._pieces.append(data)
            return
        self._last_piece += data
        if len(self._last_piece) >= _PIECE_BYTES:
            self._pieces.append(bytes(self._last_piece))
            self._last_piece.clear()

    def _check_size(self, size: float) -> None:
        """Raise if this is more than the limit."""
        if size > self._limits.max_bytes:
            request, max_bytes, _ = self._limits
            sentence = f"the response to {request} has more than {max_bytes:,} bytes"
            raise ResponseTooLargeError(sentence, request=request, max_bytes=max_bytes)

    def _check_time(self) -> None:
        """Raise once the time is over, or the response is no longer waited for."""
        if self._is_stopped or time.monotonic() > self._limits.deadline:
            raise TimeoutError


def read(chunks: Iterable[bytes], body: BodyReader) -> bytes:
    """Read and unpack a body in this thread."""
    for chunk in chunks:
        body.add(chunk)
        body.unpack()
    return body.whole()


async def read_async(chunks: AsyncIterable[bytes], body: BodyReader) -> bytes:
    """Read a body; what takes more than one step is done in a thread."""
    try:
        async for chunk in chunks:
            body.add(chunk)
            if body.unpack_step():
                await asyncio.to_thread(body.unpack)
        return await asyncio.to_thread(body.whole) if body.is_large else body.whole()
    finally:
        body.stop()


def _decompress(stream: zlib._Decompress, data: bytes) -> bytes:
    """Unpack one step of a stream."""
    try:
        return stream.decompress(data, _STEP_BYTES)
    except zlib.error as error:
        msg = f"the body is not gzip: {error}"
        raise EncodingError(msg) from error


def _is_packed(encodings: Sequence[str]) -> bool:
    """Return True for gzip and False for no encoding; raise for any other, and for several."""
    if not encodings:
        return False
    text = ", ".join(encodings).lower()
    names = [name for part in text.split(",") if (name := part.strip()) not in ("", "identity")]
    if not names:
        return False
    if len(names) == 1 and names[0] in _NAMES:
        return True
    msg = f"the body has the content encoding {', '.join(names)}; only {ACCEPTED_ENCODING} is read"
    raise EncodingError(msg)
