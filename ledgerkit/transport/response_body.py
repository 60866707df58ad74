"""The bodies of responses: received and unpacked within a limit of bytes and a deadline."""

from __future__ import annotations

import asyncio
import io
import time
import zlib
from collections.abc import Sequence

from ledgerkit.errors import ResponseTooLargeError
from ledgerkit.transport.exchange import ACCEPTED_ENCODING, RawRequest

_NAMES = {"gzip", "x-gzip"}  # RFC 9110, section 8.4.1.3
_GZIP_FORMAT = 16 + zlib.MAX_WBITS
_STEP_BYTES = 2**18  # unpacked at once, in well below a millisecond


class EncodingError(ValueError):
    """The body has an encoding that is not read, or its gzip is broken."""


class BodyReader:
    """
    The body of a response, unpacked as it is received.

    The limits of its request are checked after every step. `encodings` and `length` are the values
    of the headers Content-Encoding and Content-Length.
    """

    def __init__(
        self, request: RawRequest, encodings: Sequence[str] = (), length: str | None = None
    ) -> None:
        self._request = request
        self._is_stopped = False
        self._received = 0
        self._packed = b""  # received and not unpacked yet
        self._body = io.BytesIO()
        self._gzip = zlib.decompressobj(_GZIP_FORMAT) if _is_packed(encodings) else None
        if length is not None and length.isdecimal():
            self._check_size(float(length))  # an int may have too many digits

    def add(self, chunk: bytes) -> None:
        if self._add_step(chunk):
            self.unpack()

    async def add_async(self, chunk: bytes) -> None:
        """Add received bytes; more than a step of them is unpacked in a thread."""
        if self._add_step(chunk):
            try:
                await asyncio.to_thread(self.unpack)
            except asyncio.CancelledError:
                self._is_stopped = True  # ends the thread
                raise

    def unpack(self) -> None:
        while self._packed:
            self._unpack_step()

    def whole(self) -> bytes:
        """Return the whole body; raise if its gzip has no end."""
        if self._gzip is not None and self._received and not self._gzip.eof:
            msg = "the body ends before its gzip"
            raise EncodingError(msg)
        return self._body.getvalue()  # does not copy it

    def _add_step(self, chunk: bytes) -> bool:
        """Add received bytes and unpack a part of them; return True if there are more."""
        self._received += len(chunk)
        self._check_size(self._received)
        self._packed = chunk
        return self._unpack_step()

    def _unpack_step(self) -> bool:
        if self._is_stopped or time.monotonic() > self._request.deadline:
            raise TimeoutError
        part, self._packed = self._packed, b""
        if self._gzip is not None:
            try:
                part = self._gzip.decompress(part, _STEP_BYTES)
            except zlib.error as error:
                msg = f"the body is not gzip: {error}"
                raise EncodingError(msg) from error
            self._packed = self._gzip.unconsumed_tail
            if self._gzip.unused_data:
                msg = "the body goes on after the end of its gzip"
                raise EncodingError(msg)
        self._check_size(self._body.tell() + len(part))
        self._body.write(part)
        return bool(self._packed)

    def _check_size(self, size: float) -> None:
        request, max_bytes = self._request.request, self._request.max_bytes
        if size > max_bytes:
            sentence = f"the response to {request} has more than {max_bytes:,} bytes"
            raise ResponseTooLargeError(sentence, request=request, max_bytes=max_bytes)


def _is_packed(encodings: Sequence[str]) -> bool:
    if not encodings:
        return False
    names = [name.strip() for name in ",".join(encodings).lower().split(",")]
    names = [name for name in names if name not in ("", "identity")]
    if len(names) > 1 or not _NAMES.issuperset(names):
        encoding = ", ".join(names)
        msg = f"the body has the content encoding {encoding}; only {ACCEPTED_ENCODING} is read"
        raise EncodingError(msg)
    return bool(names)
