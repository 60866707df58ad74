"""
Storage of a collection: a local folder or an fsspec address; files appear complete.

Below a local folder only regular files in real folders are opened, moved or removed: symbolic
links, pipes and devices raise `FileError`.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

from ledgerkit import validation
from ledgerkit.errors import FileError, InvalidRequestError, LedgerError, cut
from ledgerkit.extras import require
from ledgerkit.files import file_errors, replacing

_SAME_TIMES_NS = 2 * 10**9  # FAT has the coarsest times of writing
_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")  # as `files.replacing` names them


class _Folder(ABC):
    """A folder, wherever it is; names are relative to it, and files appear complete."""

    @abstractmethod
    def create(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """Open a file for writing; it appears complete when the block ends, or not at all."""

    # The following methods raise `FileNotFoundError` if the file does not exist.

    @abstractmethod
    def _open(self, name: str) -> IO[bytes]: ...

    @abstractmethod
    def _entries(self, folder: str) -> Iterable[tuple[str, int]]: ...

    @abstractmethod
    def _remove(self, name: str) -> None: ...

    def _errors(self, action: str) -> AbstractContextManager[None]:
        return file_errors(action)

    def uri(self, name: str) -> str:
        return f"{self}/{name}"

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes] | None]:
        """Open a file for reading; None if it does not exist."""
        with self._errors(f"read {self.uri(name)}"), ExitStack() as stack:
            file = None
            with suppress(FileNotFoundError):
                file = stack.enter_context(self._open(name))
            yield file

    def read(self, name: str, max_bytes: int) -> bytes | None:
        """Read at most `max_bytes + 1` bytes of a file; return None if it does not exist."""
        with self.open(name) as file:
            return None if file is None else file.read(max_bytes + 1)

    def write(self, name: str, body: bytes) -> None:
        with self.create(name) as file:
            file.write(body)

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the names in a subfolder with their sizes; -1 for anything but regular files."""
        with self._errors(f"read {self.uri(folder)}"), suppress(FileNotFoundError):
            return {f"{folder}/{name}": size for name, size in self._entries(folder)}
        return {}

    def list_files(self, folder: str) -> list[str]:
        """List the complete files of a subfolder, sorted."""
        return sorted(name for name in self.sizes(folder) if not _base_name(name).startswith("."))

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        with self._errors(f"remove {self.uri(name)}"), suppress(FileNotFoundError):
            self._remove(name)

    def remove_temporary(self, folder: str) -> None:
        """Remove the unfinished files of a killed process; remote ones are uploaded complete."""
        for name in self.sizes(folder):
            if _UNFINISHED.fullmatch(_base_name(name)):
                self.remove(name)


class LocalFolder(_Folder):
    """A folder of this machine, which need not exist yet."""

    filesystem = None  # libraries open local files without an fsspec file system

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def filesystem_path(self, name: str) -> str:
        return str(self.path.absolute() / name)

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        target = self._file(name)
        with file_errors(f"write {target}"):
            target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as file:
            yield file

    def has_content(self) -> bool:
        """Return True if the path is a file or a folder that is not empty."""
        with file_errors(f"read {self.path}"):
            if self.path.is_dir():
                return any(not path.name.startswith(".") for path in self.path.iterdir())
            return self.path.exists()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder against a second process that writes to it."""
        filelock = require("filelock", "bulk", "Writing a collection")
        with file_errors(f"write {self.path}"):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(self._file(".lock"))
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            expected = "a folder that no other process is writing to"
            raise InvalidRequestError.refuse("out", str(self), expected) from None
        try:
            yield
        finally:
            lock.release()

    def version(self, name: str) -> tuple[int, ...] | None:
        """
        Return what differs if a file was written or replaced: file numbers, size and times.

        None for a file of the last seconds: another write may have the same times.
        """
        with file_errors(f"read {self.uri(name)}"), suppress(FileNotFoundError):
            status = self._file(name).lstat()
            if time.time_ns() - status.st_mtime_ns > _SAME_TIMES_NS:
                times = status.st_mtime_ns, status.st_ctime_ns
                return status.st_dev, status.st_ino, status.st_size, *times
        return None

    def _open(self, name: str) -> IO[bytes]:
        return self._file(name).open("rb")

    def _entries(self, folder: str) -> Iterator[tuple[str, int]]:
        for path in self._folder(folder).iterdir():
            status = path.lstat()
            yield path.name, status.st_size if stat.S_ISREG(status.st_mode) else -1

    def _remove(self, name: str) -> None:
        self._file(name).unlink()

    def _folder(self, name: str) -> Path:
        if name in ("", "."):  # the user may pass a link to the folder itself
            return self.path
        return _check_kind(self.path / name, stat.S_ISDIR, "a folder")

    def _file(self, name: str) -> Path:
        folder, _, file = name.rpartition("/")
        return _check_kind(self._folder(folder) / file, stat.S_ISREG, "a regular file")


class RemoteFolder(_Folder):
    """A folder at an fsspec address, such as ``s3://bucket/run``."""

    def __init__(self, url: str) -> None:
        fsspec = require("fsspec", "dask", f"The address {url!r}")
        try:
            with file_errors(f"reach {url}"):
                self.filesystem, self._root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            expected = f"an address that fsspec can open ({cut(error)})"
            raise InvalidRequestError.refuse("out", url, expected) from None
        self._url = url.rstrip("/")

    def __str__(self) -> str:
        return self._url

    def filesystem_path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        target = self.filesystem_path(name)
        action = f"write {self.uri(name)}"
        with file_errors(action), tempfile.TemporaryDirectory() as folder:
            local = Path(folder) / "complete"
            with local.open("xb") as file:
                yield file
            with self._errors(action):
                self.filesystem.makedirs(target.rpartition("/")[0], exist_ok=True)
                self.filesystem.put_file(str(local), target)

    def version(self, name: str) -> None:
        """Return None: object stores have different ways to tell versions of a file."""

    def has_content(self) -> bool:
        """Return True if the path is a file or a folder that is not empty."""
        self.filesystem.invalidate_cache()
        with self._errors(f"read {self}"), suppress(FileNotFoundError):
            return bool(self.filesystem.ls(self._root, detail=False))
        return False

    def lock(self) -> AbstractContextManager[None]:
        """Do nothing: object stores have no locks."""
        return nullcontext()

    @contextmanager
    def _errors(self, action: str) -> Iterator[None]:
        """Convert errors, including those of the libraries that fsspec uses."""
        with file_errors(action):
            try:
                yield
            except (LedgerError, OSError):
                raise
            except Exception as error:
                reason = cut(str(error) or type(error).__name__)
                raise FileError(operation=action, reason=reason) from error

    def _open(self, name: str) -> IO[bytes]:
        file: IO[bytes] = self.filesystem.open(self.filesystem_path(name), "rb")
        return file

    def _entries(self, folder: str) -> Iterator[tuple[str, int]]:
        self.filesystem.invalidate_cache()
        for entry in self.filesystem.ls(self.filesystem_path(folder), detail=True):
            yield _base_name(entry["name"]), entry["size"]

    def _remove(self, name: str) -> None:
        self.filesystem.rm_file(self.filesystem_path(name))


Folder = LocalFolder | RemoteFolder


def _base_name(path: str) -> str:
    return path.rpartition("/")[2]


def folder(out: object, field: str = "out") -> Folder:
    """
    Return the folder for an argument, a path or an fsspec address.

    Raises `InvalidRequestError` if it is neither, `FileError` if an address cannot be reached.
    """
    text = os.fsdecode(out) if isinstance(out, str | os.PathLike) else ""
    for scheme in ("file://", "local://"):
        text = text.removeprefix(scheme)
    try:
        os.fsencode(text)
    except UnicodeEncodeError:  # no path has a lone surrogate
        text = ""
    if not text or "\0" in text:
        raise InvalidRequestError.refuse(field, out, "the path of a folder, or an fsspec address")
    validation.no_secret(out, field)
    return RemoteFolder(text) if "://" in text else LocalFolder(Path(text))


def _check_kind(path: Path, is_kind: Callable[[int], bool], kind: str) -> Path:
    """Return the path; raise `FileError` if it is a file of another kind."""
    with file_errors(f"use {path}"), suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if not is_kind(mode):
            reason = "it is a symbolic link" if stat.S_ISLNK(mode) else f"it is not {kind}"
            raise FileError(operation=f"use {path}", reason=reason, remedy=_FOREIGN)
    return path


_FOREIGN = "Remove it, or pass another folder: only ledgerkit writes into a collection's folder."
