"""
Archives of block documents: the blocks of ten heights in one compressed tar.

An archive is unpacked in memory, a file at a time. It may only contain what the service writes:
plain files, named for the ten heights, at most one per height, up to the end of the archive.
"""

from __future__ import annotations

import re
import zlib
from functools import cache
from typing import Any, NoReturn

from ledgerkit.errors import DecodeError, ResponseTooLargeError

HEIGHTS_PER_ARCHIVE = 10
_SECTOR = 512  # bytes of a header; files are padded to whole sectors
_NO_SECTOR = bytes(_SECTOR)
_END = range(2, 22)  # empty sectors that end a tar: two, and the padding to a record of 20 sectors
_GZIP_FORMAT = 16 + zlib.MAX_WBITS  # with its checksum
_SLICE_BYTES = 2**16  # compressed bytes per call: zlib copies the unused bytes
_PIECE_BYTES = 2**20  # unpacked bytes per call
# Source: fastnear/neardata-server, src/reader.rs, read_blocks: the names of the files.
_NAME = re.compile(rb"([0-9]{12})\.json\0+")
# Source: POSIX.1-1988, and the manual of GNU tar, "Basic Tar Format".
_OCTAL = re.compile(rb" *([0-7]{1,11})[ \0]+")
_MAGIC = (b"ustar\x0000", b"ustar  \0")
_PLAIN_FILE = (b"0", b"\0")


def archive_start(height: int) -> int:
    return height - height % HEIGHTS_PER_ARCHIVE


def read_archive(body: bytes, start: int, max_bytes: int) -> dict[int, bytes]:
    """
    Return the JSON of each block of an archive by its height, without the heights that lack one.

    Raises `DecodeError` if the archive is damaged, or has files other than one document per height
    of the ten from `start` on, and `ResponseTooLargeError` if it is larger than `max_bytes`: no
    more than that is unpacked.
    """
    unpacked = _Unpacked(body, start, max_bytes)
    documents: dict[int, bytes] = {}
    while (header := unpacked.read(_SECTOR)) != _NO_SECTOR:
        problem = _header_problem(header)
        if problem:
            unpacked.refuse(problem)
        height, size = int(header[:12]), _octal(header[124:136])
        if height in documents or archive_start(height) != start or size is None:
            unpacked.refuse(f"it has a document of block {height} that does not belong there")
        documents[height] = unpacked.read(size)
        if unpacked.read(-size % _SECTOR).strip(b"\0"):
            unpacked.refuse(f"the document of block {height} goes on after its end")
    unpacked.check_end()
    return documents


def _header_problem(header: bytes) -> str | None:
    """Return the problem with the header of a file, which must be a plain file."""
    # The checksum sums all bytes, with eight spaces instead of its own bytes.
    checksum = sum(header) - sum(header[148:156]) + 8 * ord(" ")
    if _octal(header[148:156]) != checksum or header[257:265] not in _MAGIC:
        return "it is no tar, or damaged"
    # A link has a target. A path in two parts has its first part at the end of the header.
    others = header[157:257] + header[345:]
    if header[156:157] not in _PLAIN_FILE or others.strip(b"\0"):
        return "it has more than plain files"
    return None if _NAME.fullmatch(header[:100]) else "it has a file that no block is named for"


def _octal(field: bytes) -> int | None:
    """Parse a number of a header; None if it is not octal, as very large numbers are."""
    match = _OCTAL.fullmatch(field)
    return int(match[1], 8) if match else None


class _Unpacked:
    def __init__(self, body: bytes, start: int, max_bytes: int) -> None:
        self._request = f"the archive of blocks {start} to {start + HEIGHTS_PER_ARCHIVE - 1}"
        self._left = self._max_bytes = max_bytes
        self._body = body
        self._offset = 0
        self._zlib = _fastest_zlib()
        self._stream = self._zlib.decompressobj(_GZIP_FORMAT)

    def refuse(self, reason: str) -> NoReturn:
        raise DecodeError(f"{self._request} is not as documented: {reason}", request=self._request)

    def read(self, size: int) -> bytes:
        """Return the next bytes; raise if there are fewer, or more than the limit."""
        self._left -= size
        if self._left < 0:
            sentence = f"{self._request} has more than {self._max_bytes:,} bytes"
            raise ResponseTooLargeError(sentence, request=self._request, max_bytes=self._max_bytes)
        data = self._unpack(size)
        if len(data) < size:
            self.refuse("it is cut")
        return data

    def check_end(self) -> None:
        """Raise unless the archive ends with empty sectors; the first has been read."""
        count = 1
        while sector := self._unpack(_SECTOR):
            count += 1
            if sector != _NO_SECTOR:
                self.refuse("it goes on after its end")
            if count >= _END.stop:
                break
        if not self._stream.eof or count not in _END:
            self.refuse("its end is missing, or too long")

    def _unpack(self, size: int) -> bytes:
        """Return the next bytes; fewer at the end of the archive."""
        pieces: list[bytes] = []
        while size and not self._stream.eof:
            data = self._stream.unconsumed_tail or self._next_slice()
            try:
                piece = self._stream.decompress(data, min(size, _PIECE_BYTES))
            except self._zlib.error as error:
                self.refuse(f"it is no gzip, or damaged: {error}")
            if not (piece or data):
                break
            pieces.append(piece)
            size -= len(piece)
        if self._stream.eof and (self._stream.unused_data or self._offset < len(self._body)):
            self.refuse("it goes on after its end")
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _next_slice(self) -> bytes:
        start, self._offset = self._offset, self._offset + _SLICE_BYTES
        return self._body[start : self._offset]


@cache
def _fastest_zlib() -> Any:
    """Return the module that unpacks: isal, if installed, takes half the time of zlib."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib
    return isal_zlib
