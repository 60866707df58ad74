"""
The file format of recordings: requests and their responses, in the order of the requests.

A recording is a sequence of frames of Zstandard (RFC 8878), so `zstd -dc case.lk` shows it. The
first frame is one line of JSON, the header. The others hold records: a line of JSON with the size
and the digest of the response, then its body and a line break. Each digest covers the one before
it, so that no record can be changed, left out or moved unnoticed. It does not cover the
time of the request, which the checksum of the frame does.

A record is complete on disk when `RecordWriter.add` returns. An incomplete record, which a killed
process may leave, is recognised and not read. A file has one writer at a time, which locks it.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple

import msgspec

from ledgerkit import json_decoding
from ledgerkit.api.calls import Surface
from ledgerkit.errors import InvalidRequestError, RecordingError
from ledgerkit.files import file_errors, replacing
from ledgerkit.transport.memory_cache import MemoryCache

if TYPE_CHECKING:
    from pathlib import Path

VERSION = 1
FRAME_BYTES = 2**20  # unpacked; a frame with more is ended
MAX_RECORD_BYTES = 2**28 + 2**20  # the default limit of a response, and its line
_MAX_HEADER_BYTES = 2**16
_WINDOW_LOG = 23  # unpacking takes 8 MiB of memory; the compressor uses 21
_CHUNK_BYTES = 2**16
_UNPACKED_BYTES = 2**24  # unpacked frames that a reader caches
_DIGEST_BYTES = 16
_LOCKED_BYTE = 2**31 - 2  # the last byte that Windows can lock


class RecordedNetwork(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The network of a recording: its hosts, without the paths, which may hold a key."""

    name: str
    urls: dict[Surface, str]
    liquid_tokens: tuple[str, ...] = ()
    archive_urls: tuple[tuple[int | None, str], ...] = ()
    venear_id: str | None = None


class _Version(msgspec.Struct):
    """The version in a header, which may have other members."""

    ledgerkit_recording: int


class Header(_Version, forbid_unknown_fields=True):
    """The header of a recording."""

    ledgerkit: str
    network: RecordedNetwork


class RecordedError(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A failure without a response: the attributes of its error."""

    sentence: str
    remedy: str
    retryable: bool = True
    reason: str | None = None
    status: int | None = None
    no_connection: bool | None = None
    max_bytes: int | None = None


class RecordedExchange(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """
    A request, and its response without the body.

    `url` is the host of the path if it is not the surface's host. `request_digest` replaces a path
    and a body that are not stored. `withheld` is the reason why the response's body is not stored.
    `names_chain` is True for the recorder's own request, which is not replayed.
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

    @property
    def key(self) -> bytes:
        """The digest of surface, host, path and body, which identifies the request."""
        if self.request_digest:
            return bytes.fromhex(self.request_digest)
        body = "" if self.body is None else f"\0{self.body}"
        return _digest(b"", f"{self.surface}\0{self.url}\0{self.path}\0{body}".encode())


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """The line of a record: the time in ns, the digest, and the exchange as it was written."""

    asked_at: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    digest: str
    exchange: msgspec.Raw


class Position(NamedTuple):
    """The position of a record: its frame's in the file, and its own in the unpacked frame."""

    frame: int
    offset: int


class Record(NamedTuple):
    """A record: the exchange, the body of its response, the time in ns, and its position."""

    exchange: RecordedExchange
    body: bytes
    asked_at: int
    position: Position


class RecordWriter:
    """
    A writer of records to a file, which is created if a header is passed.

    A file has one writer at a time. An exception such as KeyboardInterrupt may come at any moment;
    an incomplete record is removed before the next one is written.
    """

    def __init__(self, path: Path, header: Header | None = None) -> None:
        self._path = path
        self._frame: Any = None  # the compressor of a frame that has no end yet
        self._size, self._digest, self._is_whole = 0, b"", False
        if header is not None:
            _create(path, msgspec.json.encode(header) + b"\n")
        self._resume()

    def add(self, exchange: RecordedExchange, body: bytes, asked_at: int) -> None:
        """Append a record; it is on disk when this returns."""
        if not self._is_whole:
            self._file.close()
            self._resume()
        self._is_whole = False  # until all of the record is on disk
        exchange.size = len(body)
        raw = msgspec.json.encode(exchange)
        self._digest = _digest(self._digest, raw, body)
        line = msgspec.json.encode(_Line(asked_at, self._digest.hex(), msgspec.Raw(raw)))
        self._size += len(line) + len(body) + 2
        self._write(b"%b\n%b\n" % (line, body), ends_frame=self._size >= FRAME_BYTES)
        self._is_whole = True

    def close(self) -> None:
        is_whole, self._is_whole = self._is_whole, False
        if not self._file.closed:
            with self._file:
                if is_whole and self._frame is not None:
                    self._write(b"", ends_frame=True)

    def _write(self, data: bytes, *, ends_frame: bool) -> None:
        """Write bytes so that they can be unpacked, even if nothing follows."""
        frame = self._frame or _compressor()
        packed = frame.compress(data, frame.FLUSH_FRAME if ends_frame else frame.FLUSH_BLOCK)
        with file_errors(f"write {self._path}"):
            _write_all(self._file, packed)
        self._frame = None if ends_frame else frame
        self._size = 0 if ends_frame else self._size

    def _resume(self) -> None:
        """Open the file after its last complete record, and end that record's frame."""
        while True:
            self._file = _open_locked(self._path)
            weakref.finalize(self, self._file.close)  # the file can be read without an end
            source = RecordFile(self._path)
            for _ in source.records():
                pass
            if source.unended is None:
                break
            with self._file, replacing(self._path) as file:
                file.writelines(_repaired_parts(self._path, *source.unended))
                if sys.platform == "win32":  # where an open file cannot be replaced
                    self._file.close()
        self._frame, self._size = None, 0
        self._digest, self._is_whole = source.digest, True


def _create(path: Path, line: bytes) -> None:
    """Create a file with its header, or not at all."""
    frame = _compressor()
    with file_errors(f"write {path}"), path.open("xb", buffering=0) as file:
        try:
            _write_all(file, frame.compress(line, frame.FLUSH_FRAME))
        except BaseException:
            path.unlink()
            raise


def _open_locked(path: Path) -> BinaryIO:
    """Open a file at its end, and lock it; the system unlocks it when its process ends."""
    while True:
        with file_errors(f"write {path}"):
            file = path.open("r+b", buffering=0)
            if not _lock(file):
                file.close()
                rule = "a recording that nobody else is writing to"
                raise InvalidRequestError.refuse("record", str(path), rule)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):  # nobody has replaced it
                file.seek(0, os.SEEK_END)
                return file
            file.close()


def _lock(file: BinaryIO) -> bool:
    """Lock an open file; return False if another writer has locked it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(_LOCKED_BYTE)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


class _Frame(NamedTuple):
    """An unpacked frame, where it ends, and whether it has an end."""

    data: bytes
    end: int
    is_ended: bool


class RecordFile:
    """
    A reader of the records of a file, which is open only while a part of it is read.

    `header` is read at once. Reading `records` sets the others: `digest` is the last record's,
    `torn_bytes` counts the bytes of an incomplete record at the end, and `unended` has the position
    and the complete records of a frame without an end, which a killed process leaves.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._zstd = path, zstd()
        self._frames = MemoryCache(_UNPACKED_BYTES)
        self.torn_bytes = 0
        self.unended: tuple[int, bytes] | None = None
        frame = self._unpack(0, _MAX_HEADER_BYTES)
        if not frame.is_ended:
            raise self._damaged("its header is incomplete")
        self._first = frame.end
        self.header = self._decode_header(frame.data)
        self.digest = _digest(b"", frame.data)

    def records(self) -> Iterator[Record]:
        """Check and yield all records; an incomplete record at the end is left out."""
        start, size = self._first, self._path.stat().st_size
        while start < size:
            frame = self._unpack(start, MAX_RECORD_BYTES + FRAME_BYTES)
            offset = 0
            while parsed := self._parse(frame.data, Position(start, offset)):
                record, line, offset = parsed
                self.digest = _digest(self.digest, bytes(line.exchange), record.body)
                if self.digest.hex() != line.digest:
                    raise self._damaged("a record was changed, moved or left out")
                yield record
            if not frame.is_ended:
                self.unended = start, frame.data[:offset]
                self.torn_bytes = len(frame.data) - offset
            elif offset < len(frame.data):
                raise self._damaged("a record is incomplete")
            start = frame.end

    def read(self, position: Position) -> Record:
        data = self._frames.get(position.frame)
        if data is None:
            data = self._unpack(position.frame, MAX_RECORD_BYTES + FRAME_BYTES).data
            self._frames.put(position.frame, data)
        parsed = self._parse(data, position)
        if parsed is None:
            raise self._damaged("it has changed since it was opened")
        return parsed[0]

    def _parse(self, data: bytes, position: Position) -> tuple[Record, _Line, int] | None:
        """Return a record, its line and its end; None if the data ends within it."""
        end_of_line = data.find(b"\n", position.offset)
        if end_of_line < 0:
            return None
        try:
            line = json_decoding.decode(data[position.offset : end_of_line], _Line)
            exchange = json_decoding.decode(line.exchange, RecordedExchange)
        except msgspec.DecodeError as error:
            raise self._damaged(f"a record is not of this format ({error})") from None
        start, end = end_of_line + 1, end_of_line + 1 + exchange.size
        if end >= len(data):
            return None
        if data[end] != ord("\n"):
            raise self._damaged("a record has another size than it says")
        return Record(exchange, data[start:end], line.asked_at, position), line, end + 1

    def _decode_header(self, data: bytes) -> Header:
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

    def _unpack(self, offset: int, limit: int) -> _Frame:
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
                end = file.tell() - len(frame.unused_data)
        except OSError as error:
            raise RecordingError.failed(f"read {self._path}", error) from error
        except self._zstd.ZstdError as error:
            raise self._damaged(f"it cannot be unpacked ({error})") from None
        if pieces.tell() > limit:
            raise self._damaged("a part of it unpacks to more than an answer may have")
        return _Frame(pieces.getvalue(), end, frame.eof)

    def _damaged(self, reason: str) -> RecordingError:
        return RecordingError(f"{self._path} is no recording, or is damaged: {reason}")


def _repaired_parts(path: Path, start: int, records: bytes) -> Iterator[bytes]:
    """Yield a file up to the start of its last frame, then that frame with an end."""
    with path.open("rb") as file:
        while part := file.read(min(_CHUNK_BYTES, start - file.tell())):
            yield part
    frame = _compressor()
    yield frame.compress(records, frame.FLUSH_FRAME)


def zstd() -> Any:
    """Import the module for Zstandard from the standard library, or its backport."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def _compressor() -> Any:
    module = zstd()
    return module.ZstdCompressor(options={module.CompressionParameter.checksum_flag: 1})


def _digest(previous: bytes, *parts: bytes) -> bytes:
    digest = hashlib.blake2b(previous, digest_size=_DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return digest.digest()


def _write_all(file: BinaryIO, data: bytes) -> None:
    """Write bytes to an unbuffered file, which may take only a part at a time."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[file.write(remaining) :]
