"""Response bodies that cannot change, in an SQLite file, for later sessions."""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import stat
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args
from urllib.parse import urlsplit

from ledgerkit.api.calls import Call, Kind, Surface
from ledgerkit.extras import require
from ledgerkit.transport import forks, networks

if TYPE_CHECKING:
    from ledgerkit.transport.settings import Cache

    T = TypeVar("T")

KINDS = tuple(filter(None, get_args(Kind)))

_FILE = "answers-1.sqlite3"  # the number changes with the format of the file
_SUFFIXES = ("", "-wal", "-shm", "-journal")  # SQLite's names of one database
_APPLICATION_ID = 0x6C6B6974  # marks SQLite files of this package
_BUSY_S = 1.0  # seconds to wait for other writers; after that the entry is not stored
_TOUCH_S = 3600.0  # the last use is written at most once in this time: most reads write nothing
_MAX_BODY_BYTES = 2**28
_OVERHEAD_BYTES = 2**16  # pages of the index, and half-filled ones
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_BROKEN = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_ERROR,  # a table or column is missing, although the file is of this package
    sqlite3.SQLITE_CONSTRAINT,
)
_LOG = logging.getLogger("ledgerkit")

_SCHEMA = (
    f"PRAGMA application_id = {_APPLICATION_ID}",
    """CREATE TABLE IF NOT EXISTS answers (
        key BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, since REAL NOT NULL, used REAL NOT NULL,
        size INTEGER NOT NULL, seal BLOB NOT NULL, body BLOB NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS by_use ON answers (used, kind, size)",
)
_STORED_SCHEMA = sorted((sql.replace("IF NOT EXISTS ", "").encode(),) for sql in _SCHEMA[1:])
# A damaged row may have values of any type.
_FIND = """SELECT CAST(ifnull(kind, '') AS BLOB), CAST(ifnull(since, 0) AS REAL),
    CAST(ifnull(used, 0) AS REAL), seal, CAST(ifnull(body, '') AS BLOB)
    FROM answers WHERE key = ?"""
_TOUCH = "UPDATE answers SET used = ? WHERE key = ?"
_DELETE = "DELETE FROM answers WHERE key = ?"
_DELETE_OLDEST = """DELETE FROM answers
    WHERE rowid = (SELECT rowid FROM answers ORDER BY used LIMIT 1)
    AND ? < (SELECT (page_count - freelist_count) * page_size
        FROM pragma_page_count, pragma_freelist_count, pragma_page_size)"""
_PUT = "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)"
_COUNT = "SELECT CAST(kind AS TEXT), count(*), CAST(total(size) AS INTEGER) FROM answers GROUP BY 1"


def default_folder() -> Path:
    """Return this system's folder for a user's caches."""
    platformdirs = require("platformdirs", "cache", "cache=True")
    return Path(platformdirs.user_cache_dir("ledgerkit", appauthor=False))


def _service_id(url: str) -> str:
    """Return the host, port and path of a service: the parts that identify it."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    return f"{host}:{networks.port_of(parts)}{parts.path.rstrip('/')}"


def _digest(*parts: bytes) -> bytes:
    """Hash parts with their lengths, so that no two lists of parts hash alike."""
    digest = hashlib.blake2b(digest_size=32)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()


def _checksum(key: bytes, kind: bytes, stored_at: float, body: bytes) -> bytes:
    return _digest(key, kind, stored_at.hex().encode(), body)


class Entry(NamedTuple):
    """A cached response: when it was stored, in seconds since 1970, and its body."""

    stored_at: float
    body: bytes


class DiskCache:
    """
    Response bodies in one SQLite file; if the file fails, calls are sent as without a cache.

    Any number of threads and processes may share the folder. Only bytes and numbers are
    read from the file, and only entries with a correct checksum are used.
    """

    def __init__(self, settings: Cache, roots: Mapping[Surface, str]) -> None:
        self.settings = settings
        self._services = {surface: _service_id(url) for surface, url in roots.items()}
        self.folder = Path(settings.path or "").absolute()
        self.hits: Counter[str] = Counter()
        self.misses: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._end: weakref.finalize[..., DiskCache] | None = None
        self._was_recreated = self._is_off = False
        self._warning: str | None = None
        forks.register(self)

    # Entries ------------------------------------------------------------------------------

    def now(self) -> float:
        """Return the time that the age of entries is measured by, in seconds since 1970."""
        return time.time()

    def key(self, call: Call[Any], surface: Surface) -> bytes:
        """Return the key of a call; a hash, because an address may hold a provider's key."""
        service = self._services[surface].encode()
        return _digest(service, call.kind.encode(), call.path.encode(), call.body or b"")

    def keys(self, call: Call[Any]) -> list[bytes]:
        """Return the keys of a call at each host that may have answered it."""
        surfaces: tuple[Surface, ...] = (call.surface,)
        if call.surface == "rpc":
            surfaces = ("rpc", "archival_rpc")
        return [self.key(call, surface) for surface in surfaces if surface in self._services]

    def get(self, key: bytes, kind: str) -> Entry | None:
        """Return an entry; None if there is none, or it is damaged or has expired."""
        row = self._run(lambda connection: connection.execute(_FIND, (key,)).fetchone())
        if row is None:
            return None
        stored_kind, stored_at, used_at, checksum, body = row
        if checksum != _checksum(key, stored_kind, stored_at, body):
            self.drop(key, "its checksum is wrong")
            return None
        now = self.now()
        is_from_future = kind == "metadata" and now < stored_at
        if now >= self.expires_at(kind, stored_at) or is_from_future:
            return None  # the next response replaces it
        if not 0 <= now - used_at < _TOUCH_S:
            self._run(lambda connection: connection.execute(_TOUCH, (now, key)))
        return Entry(stored_at, body)

    def expires_at(self, kind: str, stored_at: float) -> float:
        """Return when an entry expires, in seconds since 1970; only metadata does."""
        return stored_at + self.settings.metadata_s if kind == "metadata" else float("inf")

    def put(self, key: bytes, kind: str, stored_at: float, body: bytes) -> None:
        """Add an entry; the least recently used ones are deleted to make room."""
        limit = self.settings.max_bytes - _OVERHEAD_BYTES
        if len(body) > min(limit // 4, _MAX_BODY_BYTES):
            return
        checksum = _checksum(key, kind.encode(), stored_at, body)
        row = (key, kind, stored_at, self.now(), len(body), checksum, body)

        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                while connection.execute(_DELETE_OLDEST, (limit - len(body),)).rowcount:
                    pass
                connection.execute(_PUT, row)

        self._run(write)

    def drop(self, key: bytes, reason: str) -> None:
        """Delete an entry that cannot be used, and log why."""
        _LOG.warning("an entry of the cache in %s was dropped: %s", self.folder, reason)
        self._run(lambda connection: connection.execute(_DELETE, (key,)))

    # The whole cache ----------------------------------------------------------------------

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Return the number of entries and of their bytes, by kind."""
        if not self._path.exists():
            return {}
        rows = self._run(lambda connection: connection.execute(_COUNT).fetchall()) or []
        return {(kind or b"").decode("ascii", "replace"): (n, size) for kind, n, size in rows}

    def clear(self) -> None:
        """Delete all entries and shrink the file."""
        if self._path.exists():
            self._run(lambda connection: connection.executescript("DELETE FROM answers; VACUUM"))

    def count(self, kind: str, *, hit: bool) -> None:
        with self._lock:
            (self.hits if hit else self.misses)[kind] += 1

    def pop_warning(self) -> str | None:
        """Return, once, why the cache was switched off."""
        warning, self._warning = self._warning, None
        return warning

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._disconnect()

    def after_fork(self) -> None:
        """Leave the file to the parent process: connections of SQLite must not cross a fork."""
        if self._end is not None:
            self._end.detach()
        forks.inherited.append(self._connection)
        self._connection = self._end = None
        self._lock = threading.Lock()

    # The file -----------------------------------------------------------------------------

    @property
    def _path(self) -> Path:
        return self.folder / _FILE

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Run a function on the connection; return None if the file fails."""
        with self._lock:
            while not self._is_off:
                try:
                    if self._connection is None:
                        self._connection = _open(self._path)
                        self._end = weakref.finalize(self, self._connection.close)
                    return work(self._connection)
                except (sqlite3.Error, OSError, ValueError) as error:
                    if not self._can_retry(error):
                        break
        return None

    def _disconnect(self) -> None:
        if self._end is not None:
            self._end()
        self._connection = self._end = None

    def _can_retry(self, error: Exception) -> bool:
        """Recreate a broken file and return True; for other errors switch off, unless busy."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _BUSY:
            _LOG.info("the cache in %s is busy: %s", self.folder, error)
            return False
        # A ValueError comes from other tables, or from a message of SQLite with broken bytes.
        is_broken = code in _BROKEN or isinstance(error, ValueError)
        if is_broken and not self._was_recreated and self._remove_files():
            self._was_recreated = True
            _LOG.warning("the cache in %s was broken and is recreated: %s", self.folder, error)
            return True
        self._is_off = True
        self._warning = f"the cache in {self.folder} is switched off: {error}"
        _LOG.warning("%s", self._warning)
        return False

    def _remove_files(self) -> bool:
        self._disconnect()
        try:
            for suffix in _SUFFIXES:
                self._path.with_name(_FILE + suffix).unlink(missing_ok=True)
        except OSError:
            return False
        return True


def _open(path: Path) -> sqlite3.Connection:
    """Open the file; a new one can be read by this user only."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for suffix in _SUFFIXES:
        part = path.with_name(path.name + suffix)
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(part.lstat().st_mode):  # it may be a symbolic link
                msg = f"{part.name} is not a regular file"
                raise FileExistsError(msg)
    # SQLite deletes the file that a rollback journal names. This package writes no such journal.
    path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(
        path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
    )
    try:
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    """Create the table, unless the file belongs to another program."""
    connection.text_factory = bytes  # so that a broken text makes a broken entry, not an error
    connection.execute("PRAGMA trusted_schema = OFF")
    [application] = connection.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION_ID:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            msg = f"{_FILE} belongs to another program"
            raise FileExistsError(msg)
        connection.execute("PRAGMA journal_mode = MEMORY")  # until it is WAL, see `_open`
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                connection.execute(statement)
    # A view in place of the table, or a trigger, could run forever.
    schema = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    if sorted(schema) != _STORED_SCHEMA:
        msg = "its tables are not those of ledgerkit"
        raise ValueError(msg)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")  # a power cut loses the last entries only
    connection.execute(f"PRAGMA journal_size_limit = {2**20}")
