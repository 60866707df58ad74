"""Answers that can't change, kept in a folder of this machine for the next session."""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import threading
import time
import weakref
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from ledgerkit.extras import require
from ledgerkit.transport import background_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ledgerkit.api.calls import Call
    from ledgerkit.transport.networks import Surface
    from ledgerkit.transport.settings import Cache

    T = TypeVar("T")

KINDS = ("block", "chunk", "transaction", "read", "metadata")

_FILE = "answers-1.sqlite3"  # another form of the file gets another number
_APPLICATION = 0x6C6B6974  # how SQLite tells one program's files from another's
_PATIENCE_S = 1.0  # for another process that is writing; what is not kept then is asked again
_TOUCH_S = 3600.0  # how exactly the last use is known: a reading seldom writes
_MOST_IN_ONE = 2**28
_SLACK = 2**16  # pages of the index, and half-filled ones
_DROPPED_AT_ONCE = 64
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_BROKEN = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_ERROR,  # the file is ours, and a table or a column has lost its name
    sqlite3.SQLITE_CONSTRAINT,
)
_LOG = logging.getLogger("ledgerkit")
_SCHEMA = (
    f"PRAGMA application_id = {_APPLICATION}",
    """CREATE TABLE IF NOT EXISTS answers (
        key BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, since REAL NOT NULL, used REAL NOT NULL,
        size INTEGER NOT NULL, seal BLOB NOT NULL, body BLOB NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS by_use ON answers (used, kind, size)",
)


def default_folder() -> Path:
    """Find the folder that this system has for a user's caches."""
    platformdirs = require("platformdirs", "cache", "cache=True")
    return Path(platformdirs.user_cache_dir("ledgerkit", appauthor=False))


def address(url: str) -> str:
    """Tell services apart: by host, port and path, whatever the rest."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{(parts.hostname or '').lower()}:{port}{parts.path.rstrip('/')}"


def _digest(*parts: bytes) -> bytes:
    """Hash parts so that none runs into the next."""
    found = hashlib.blake2b(digest_size=32)
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.digest()


def _seal(key: bytes, kind: str, since: float, body: bytes) -> bytes:
    """Sum up an entry: a torn one, or one in another's place, does not fit."""
    return _digest(key, kind.encode(), since.hex().encode(), body)


class Kept(NamedTuple):
    """An entry that was found whole: since when it is there, and what the host sent."""

    since: float
    body: bytes


class Store:
    """
    Bodies of answers in one SQLite file; no failure of it costs an answer.

    Any number of threads and processes may share the folder. Only bytes and numbers are
    read from it, and an entry is believed only if its checksum fits.

    Parameters
    ----------
    settings
        The folder, and how much and how long it keeps.
    roots
        The address of each surface.
    """

    def __init__(self, settings: Cache, roots: Mapping[Surface, str]) -> None:
        self.settings = settings
        self._services = {surface: address(url) for surface, url in roots.items()}
        self.folder = Path(settings.path or "").absolute()
        self.hits: Counter[str] = Counter()
        self.misses: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._base: sqlite3.Connection | None = None
        self._end: weakref.finalize[..., Store] | None = None
        self._begun_anew = self._off = False
        self._trouble: str | None = None

    # Entries ------------------------------------------------------------------------------

    def now(self) -> float:
        """Tell the time by which metadata grows old, in seconds since 1970."""
        return time.time()

    def key(self, call: Call[Any], surface: Surface) -> bytes:
        """Digest what was asked, and of whom: an address may hold a provider's key."""
        place = self._services[surface].encode()
        return _digest(place, call.kind.encode(), call.path.encode(), call.body or b"")

    def keys(self, call: Call[Any]) -> list[bytes]:
        """Give the keys of all that may have answered a call."""
        surfaces: tuple[Surface, ...] = (call.surface,)
        if call.surface == "rpc":
            surfaces = ("rpc", "archival_rpc")
        return [self.key(call, surface) for surface in surfaces if surface in self._services]

    def get(self, key: bytes, kind: str) -> Kept | None:
        """Find an entry that is whole, and not too old."""
        row = self._run(lambda base: base.execute(_FIND, (key,)).fetchone())
        if row is None:
            return None
        found, used = _whole(key, kind, row), row[2]
        if found is None:
            self.drop(key, "its checksum does not fit")
            return None
        now = self.now()
        if now >= self.until(kind, found.since) or (kind == "metadata" and now < found.since):
            return None  # the new answer takes its place
        if not 0 <= now - used < _TOUCH_S:
            self._run(lambda base: base.execute(_TOUCH, (now, key)))
        return found

    def until(self, kind: str, since: float) -> float:
        """Tell when an entry is too old."""
        return since + self.settings.metadata_s if kind == "metadata" else float("inf")

    def put(self, key: bytes, kind: str, since: float, body: bytes) -> None:
        """Keep an entry; those used least go where there is no room."""
        limit = self.settings.max_bytes - _SLACK
        if len(body) > min(limit // 4, _MOST_IN_ONE):
            return
        seal = _seal(key, kind, since, body)
        row = (key, kind, since, self.now(), len(body), seal, body)

        def write(base: sqlite3.Connection) -> None:
            with base:
                base.execute("BEGIN IMMEDIATE")
                _make_room(base, limit - len(body))
                base.execute(_PUT, row)

        self._run(write)

    def drop(self, key: bytes, why: str) -> None:
        """Forget an entry that is not to be believed."""
        _LOG.warning("an entry of the cache in %s was dropped: %s", self.folder, why)
        self._run(lambda base: base.execute("DELETE FROM answers WHERE key = ?", (key,)))

    # The whole ----------------------------------------------------------------------------

    def held(self) -> dict[str, tuple[int, int]]:
        """Count entries and their bytes by kind."""
        if not self._path.exists():
            return {}
        rows = self._run(lambda base: base.execute(_COUNT).fetchall()) or []
        return {(kind or b"").decode("ascii", "replace"): (n, size) for kind, n, size in rows}

    def clear(self) -> None:
        """Forget all entries, and give their room back."""
        if self._path.exists():
            self._run(_empty)

    def count(self, kind: str, *, hit: bool) -> None:
        """Note whether an answer was there."""
        with self._lock:
            (self.hits if hit else self.misses)[kind] += 1

    def trouble(self) -> str | None:
        """Tell once why nothing is kept any more."""
        told, self._trouble = self._trouble, None
        return told

    def close(self) -> None:
        """Close the file; it opens again with its next use."""
        with self._lock:
            if self._end is not None:
                self._end()
            self._base = self._end = None

    def abandon(self) -> None:
        """Leave the file to the parent process: SQLite's connections survive no fork."""
        if self._end is not None:
            self._end.detach()
        background_loop.leave_to_parent(self)

    # The file -----------------------------------------------------------------------------

    @property
    def _path(self) -> Path:
        return self.folder / _FILE

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do something with the file; None where that fails."""
        with self._lock:
            for _ in range(2):
                if self._off:
                    break
                try:
                    return work(self._opened())
                except (sqlite3.Error, OSError, UnicodeError) as error:
                    if not self._begins_anew(error):
                        break
        return None

    def _opened(self) -> sqlite3.Connection:
        """Give the connection of this process."""
        if self._base is None:
            self._base = _open(self._path)
            self._end = weakref.finalize(self, _part, self._base, os.getpid())
        return self._base

    def _begins_anew(self, error: Exception) -> bool:
        """Decide what a failure means; true if it is worth another try."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if isinstance(error, UnicodeError):  # SQLite's complaint quotes the broken file
            code = sqlite3.SQLITE_CORRUPT
        if code in _BUSY:
            _LOG.info("the cache in %s is busy: %s", self.folder, error)
            return False
        if code in _BROKEN and not self._begun_anew and self._removed():
            self._begun_anew = True
            _LOG.warning("the cache in %s was broken and begins anew: %s", self.folder, error)
            return True
        self._off = True
        self._trouble = f"nothing is kept in {self.folder} any more: {error}"
        _LOG.warning("%s", self._trouble)
        return False

    def _removed(self) -> bool:
        """Remove a file that is no database any more."""
        if self._end is not None:
            self._end()
        self._base = self._end = None
        try:
            for end in ("", "-wal", "-shm"):
                self._path.with_name(_FILE + end).unlink(missing_ok=True)
        except OSError:
            return False
        return True


_FIND = "SELECT kind, since, used, seal, body FROM answers WHERE key = ?"
_TOUCH = "UPDATE answers SET used = ? WHERE key = ?"
_PUT = "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)"
_COUNT = "SELECT CAST(kind AS TEXT), count(*), CAST(total(size) AS INTEGER) FROM answers GROUP BY 1"
_OLDEST = "SELECT rowid, coalesce(length(body), 0) FROM answers ORDER BY used LIMIT ?"


def _open(path: Path) -> sqlite3.Connection:
    """Open the file, for this user only where it is new."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    base = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False)
    try:
        _prepare(base)
    except BaseException:
        base.close()
        raise
    return base


def _prepare(base: sqlite3.Connection) -> None:
    """Make the table, unless the file is another program's."""
    base.text_factory = bytes  # a broken text is a broken entry, not an error
    [application] = base.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        if base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            msg = f"{_FILE} is another program's"
            raise FileExistsError(msg)
        with base:
            base.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                base.execute(statement)
    base.execute("PRAGMA journal_mode = WAL")
    base.execute("PRAGMA synchronous = NORMAL")  # a power cut costs the last entries, no more
    base.execute(f"PRAGMA journal_size_limit = {2**20}")


def _whole(key: bytes, kind: str, row: tuple[Any, ...]) -> Kept | None:
    """Give an entry if it is what was once put there."""
    told, since, used, seal, body = row
    typed = isinstance(body, bytes) and isinstance(since, float) and isinstance(used, float)
    if typed and told == kind.encode() and seal == _seal(key, kind, since, body):
        return Kept(since, body)
    return None


def _make_room(base: sqlite3.Connection, limit: int) -> None:
    """Drop the entries used least until the pages in use are within a limit."""
    while (excess := _in_use(base) - limit) > 0:
        oldest = base.execute(_OLDEST, (_DROPPED_AT_ONCE,)).fetchall()
        if not oldest:
            return
        for row, size in oldest:
            base.execute("DELETE FROM answers WHERE rowid = ?", (row,))
            excess -= size
            if excess <= 0:
                break


def _in_use(base: sqlite3.Connection) -> int:
    """Count the bytes of all pages that hold something."""
    names = ("page_count", "freelist_count", "page_size")
    pages, free, size = (base.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    return int((pages - free) * size)


def _empty(base: sqlite3.Connection) -> None:
    """Delete every entry and shrink the file."""
    base.execute("DELETE FROM answers")
    base.execute("VACUUM")


def _part(base: sqlite3.Connection, process: int) -> None:
    """Close what nobody closed, in the process that opened it."""
    if os.getpid() == process:
        base.close()
    else:
        background_loop.leave_to_parent(base)
