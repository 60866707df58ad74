"""
The file format of recordings: requests and their answers, in the order they were asked.

A recording is a sequence of frames of Zstandard (RFC 8878), so `zstd -dc case.lk` shows it. The
first frame is one line of JSON, the header. The others hold records: a line of JSON, with the size
and the digest of the answer, then the body of the answer and a line break. Each digest covers the
one before it, so that no record can be changed, left out or moved unnoticed. It does not cover the
time of the request, which the checksum of the frame does.

A record is complete on disk when `RecordWriter.add` returns. What a killed process has left of the
next one is recognised, and is not read.
"""

from __future__ import annotations

import hashlib
import io
import sys
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec

from ledgerkit import json_decoding
from ledgerkit.api.calls import Surface
from ledgerkit.errors import FileError, RecordingError
from ledgerkit.validation import writing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

VERSION = 1
FRAME_BYTES = 2**20  # of unpacked records; a frame that has more is ended
MAX_RECORD_BYTES = 2**28 + 2**20  # the default limit of an answer, and its line
_MAX_HEADER_BYTES = 2**16
_WINDOW_LOG = 23  # unpacking takes 8 MiB beside the result; the compressor's own is 21
_CHUNK_BYTES = 2**16
DIGEST_BYTES = 16
# A file may be this much larger when unpacked, so that a small one does not take hours to read.
_FREE_BYTES, _MAX_RATIO = 2**30, 1000
_FIRST_BYTES = b"\x28\xb5\x2f\xfd"  # of each frame


class RecordedNetwork(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The network of a recording: its hosts, without the paths, which may hold a key."""

    name: str
    urls: dict[str, str]
    liquid_tokens: tuple[str, ...] = ()
    archive_urls: tuple[tuple[int | None, str], ...] = ()


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """The header of a recording."""

    ledgerkit_recording: int
    ledgerkit: str
    network: RecordedNetwork


class RecordedError(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A failure without an answer: the attributes of its error."""

    sentence: str
    remedy: str
    retryable: bool = True
    reason: str | None = None
    status: int | None = None
    no_connection: bool | None = None
    max_bytes: int | None = None


class Exchange(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """
    A request, and what is known of its answer beside the body.

    `url` is the host of the path if it is not that of the surface. `request_digest` stands in place
    of a path and a body that are not stored. `withheld` is why that of the answer is not.
    `names_chain` is True for the request that the recorder itself makes, which answers no other.
    """

    surface: Surface
    path: str = ""
    url: str = ""
    body: str | None = None
    request_digest: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{32})?$")] = ""
    status: Annotated[int, msgspec.Meta(ge=100, le=599)] = 200
    retry_after: float | None = None
    error: RecordedError | None = None
    withheld: str = ""
    names_chain: bool = False
    size: Annotated[int, msgspec.Meta(ge=0)] = 0


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """The line of a record: the time in ns, the digest, and the exchange as it was written."""

    asked_at: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    digest: str
    exchange: msgspec.Raw


class Position(NamedTuple):
    """The position of a record: of its frame in the file, and within the unpacked frame."""

    frame: int
    offset: int


class Record(NamedTuple):
    """A record: the exchange, the body of its answer, the time in ns, and its position."""

    exchange: Exchange
    body: bytes
    asked_at: int
    position: Position


class RecordWriter:
    """
    Writes records to a file.

    Parameters
    ----------
    path
        The file, which must not exist; with `digest` one that is complete, to append to.
    header
        The header of a new file.
    digest
        The digest of the last record of the file.
    """

    def __init__(self, path: Path, header: Header | None, digest: bytes = b"") -> None:
        self._zstd = zstd()
        self._path, self._digest = path, digest
        self._frame: Any = None
        self._size = 0
        with writing(path):
            self._file: BinaryIO = path.open("xb" if header else "ab", buffering=0)
        weakref.finalize(self, self._file.close)  # what is on disk is complete without an end
        if header is not None:
            line = msgspec.json.encode(header) + b"\n"
            self._digest = _digest(b"", line)
            self._write(line)
            self._end_frame()

    def add(self, exchange: Exchange, body: bytes, asked_at: int) -> None:
        """Append a record; it is on disk when this returns."""
        exchange.size = len(body)
        raw = msgspec.json.encode(exchange)
        self._digest = _digest(self._digest, raw, body)
        line = msgspec.json.encode(_Line(asked_at, self._digest.hex(), msgspec.Raw(raw)))
        self._write(b"%b\n%b\n" % (line, body))

    def _write(self, data: bytes) -> None:
        """Write bytes so that they can be unpacked; a full frame is ended."""
        if self._frame is None:
            checksum = {self._zstd.CompressionParameter.checksum_flag: 1}
            self._frame = self._zstd.ZstdCompressor(options=checksum)
            self._size = 0
        try:
            with writing(self._path):
                _write_all(self._file, self._frame.compress(data, self._frame.FLUSH_BLOCK))
        except FileError:
            self._frame = None  # what is on disk of this record has no end
            raise
        self._size += len(data)
        if self._size >= FRAME_BYTES:
            self._end_frame()

    def _end_frame(self) -> None:
        """End the frame, so that the next record begins another one."""
        if self._frame is not None:
            frame, self._frame = self._frame, None
            with writing(self._path):
                _write_all(self._file, frame.flush())

    def close(self) -> None:
        """End the last frame, and close the file."""
        if not self._file.closed:
            with self._file:
                self._end_frame()

    def abandon(self) -> None:
        """Close the file of a parent process, without a further byte."""
        self._frame = None
        self._file.close()


class RecordFile:
    """
    Reads the records of a file.

    Parameters
    ----------
    path
        The file.

    Notes
    -----
    The file is open only while a part of it is read. `header` is read at once, `digest` is that of
    the last record read by `records`, and `torn_bytes` is what follows it and is not a complete
    record.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._zstd = path, zstd()
        self.torn_bytes = 0
        self.is_ended = True  # False if the last frame has no end: its process was killed
        data, self._first = self._unpack(0, _MAX_HEADER_BYTES)
        self.header = self._decode_header(data)
        self.digest = _digest(b"", data)

    def records(self) -> Iterator[Record]:
        """Yield all records, each checked; an incomplete one at the end is left out."""
        offset, unpacked = self._first, 0
        size = self._path.stat().st_size
        while offset < size:
            data, end = self._unpack(offset, MAX_RECORD_BYTES + FRAME_BYTES)
            unpacked += len(data)
            if unpacked > _FREE_BYTES + _MAX_RATIO * size:
                raise self._damaged("it unpacks to far more than a recording would")
            yield from self._records_of(data, offset)
            offset = end

    def read(self, position: Position, frames: dict[int, bytes]) -> Record:
        """Read one record again; `frames` holds unpacked frames, the last ones read."""
        data = frames.pop(position.frame, None)
        if data is None:
            data, _ = self._unpack(position.frame, MAX_RECORD_BYTES + FRAME_BYTES)
        frames[position.frame] = data
        while sum(map(len, frames.values())) > _MAX_UNPACKED and len(frames) > 1:
            del frames[next(iter(frames))]
        record = self._parse(data, position)
        if record is None:
            raise self._damaged("it has changed since it was opened")
        return record[0]

    def _records_of(self, data: bytes, frame: int) -> Iterator[Record]:
        """Yield the records of an unpacked frame."""
        offset = 0
        while offset < len(data):
            parsed = self._parse(data, Position(frame, offset))
            if parsed is None:
                if self.is_ended:
                    raise self._damaged("a record is incomplete")
                self.torn_bytes = len(data) - offset
                return
            record, line, end = parsed
            self.digest = _digest(self.digest, bytes(line.exchange), record.body)
            if self.digest.hex() != line.digest:
                raise self._damaged("a record was changed, moved or left out")
            yield record
            offset = end

    def _parse(self, data: bytes, position: Position) -> tuple[Record, _Line, int] | None:
        """Return a record, its line and its end; None if the data ends within it."""
        end_of_line = data.find(b"\n", position.offset)
        if end_of_line < 0:
            return None
        try:
            line = json_decoding.decode(data[position.offset : end_of_line], _Line)
            exchange = json_decoding.decode(line.exchange, Exchange)
        except msgspec.DecodeError as error:
            raise self._damaged(f"a record is not of this format ({error})") from None
        start, end = end_of_line + 1, end_of_line + 1 + exchange.size
        if end >= len(data):
            return None
        if data[end] != ord("\n"):
            raise self._damaged("a record has another size than it says")
        return Record(exchange, data[start:end], line.asked_at, position), line, end + 1

    def _decode_header(self, data: bytes) -> Header:
        """Decode the header; raise for another version of the format."""
        try:
            version = json_decoding.decode(data, _Version).ledgerkit_recording
            if version != VERSION:
                raise RecordingError(
                    f"{self._path} has version {version} of the format; this ledgerkit reads"
                    f" version {VERSION}",
                    remedy="Read it with a newer ledgerkit: pip install -U ledgerkit.",
                )
            return json_decoding.decode(data, Header)
        except msgspec.DecodeError as error:
            raise self._damaged(f"its header is not of this format ({error})") from None

    def _unpack(self, offset: int, limit: int) -> tuple[bytes, int]:
        """Unpack the frame at an offset; return it and where it ends."""
        window = {self._zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
        frame = self._zstd.ZstdDecompressor(options=window)
        pieces = io.BytesIO()
        try:
            with self._path.open("rb") as file:
                file.seek(offset)
                while not frame.eof and pieces.tell() <= limit:
                    chunk = file.read(_CHUNK_BYTES) if frame.needs_input else b""
                    if frame.needs_input and not chunk:
                        break
                    pieces.write(frame.decompress(chunk, _CHUNK_BYTES))
                end = file.tell()
        except OSError as error:
            raise RecordingError.failed(f"read {self._path}", error) from error
        except self._zstd.ZstdError as error:
            raise self._damaged(f"it cannot be unpacked ({error})") from None
        if pieces.tell() > limit:
            raise self._damaged("a part of it unpacks to more than an answer may have")
        self.is_ended = frame.eof
        if not frame.eof and not offset:
            raise self._damaged("its header is incomplete")
        unread = len(frame.unused_data) if frame.eof else 0
        return pieces.getvalue(), end - unread

    def _damaged(self, reason: str) -> RecordingError:
        """Build the error for a file that is not what a recorder wrote."""
        return RecordingError(f"{self._path} is no recording, or is damaged: {reason}")


class _Version(msgspec.Struct):
    """The version in a header, whatever else it has."""

    ledgerkit_recording: int


_MAX_UNPACKED = 2**22  # bytes of unpacked frames that a reader holds


def is_recording(path: Path) -> bool:
    """Return True if a file begins as a recording does."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(_FIRST_BYTES)) == _FIRST_BYTES
    return False


def repair(path: Path) -> tuple[Header, bytes]:
    """Complete a file whose process was killed; return its header and its last digest."""
    source = RecordFile(path)
    for _ in source.records():
        pass
    if source.is_ended:
        return source.header, source.digest
    part = path.with_name(f".{path.name}.part")
    with writing(part):
        part.unlink(missing_ok=True)
    copy, source = RecordWriter(part, source.header), RecordFile(path)
    try:
        for record in source.records():
            copy.add(record.exchange, record.body, record.asked_at)
    finally:
        copy.close()
    with writing(path):
        part.replace(path)
    return source.header, source.digest


def zstd() -> Any:
    """Import the module for Zstandard: of the standard library, or its backport."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def _digest(previous: bytes, *parts: bytes) -> bytes:
    """Return the digest of a record, which covers the one before it."""
    digest = hashlib.blake2b(previous, digest_size=DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return digest.digest()


def _write_all(file: BinaryIO, data: bytes) -> None:
    """Write bytes to an unbuffered file, which may take only a part at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
