"""
Storage of a collection: a local folder or an fsspec address; files appear complete.

Below a local folder only regular files in real folders are opened, moved or removed: a symbolic
link, a pipe or a device that somebody put there raises `FileError`.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ledgerkit import validation
from ledgerkit.errors import FileError, InvalidRequestError, LedgerError, cut
from ledgerkit.extras import require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")  # as `LocalFolder.create` names them


class LocalFolder:
    """A folder of this machine, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def uri(self, name: str) -> str:
        """Return the address of a file."""
        return str(self.path / name)

    def read(self, name: str, max_bytes: int) -> bytes | None:
        """Read at most `max_bytes + 1` bytes of a file; return None if it does not exist."""
        with suppress(FileNotFoundError), self.open(name) as file:
            return file.read(max_bytes + 1)
        return None

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file for reading; raise `FileNotFoundError` if it does not exist."""
        with _file_errors(f"read {self.path / name}"), self._file(name).open("rb") as file:
            yield file

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file for writing; it appears complete when the block ends, or not at all."""
        target = self._file(name)
        hidden = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
        with _file_errors(f"write {target}"):
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with hidden.open("xb") as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                hidden.replace(target)
            except BaseException:
                hidden.unlink(missing_ok=True)
                raise
            _sync(target.parent)

    def write(self, name: str, body: bytes) -> None:
        """Write a complete file."""
        with self.create(name) as file:
            file.write(body)

    def list_files(self, folder: str) -> list[str]:
        """List the files of a subfolder, sorted, without those being written."""
        names = self._entries(folder)
        return sorted(f"{folder}/{name}" for name in names if not name.startswith("."))

    def file_sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes in bytes of the regular files of a subfolder."""
        with suppress(FileNotFoundError), _file_errors(f"read {self.path / folder}"):
            stats = {path.name: path.lstat() for path in self._folder(folder).iterdir()}
            return {
                f"{folder}/{name}": status.st_size
                for name, status in stats.items()
                if stat.S_ISREG(status.st_mode)
            }
        return {}

    @property
    def filesystem(self) -> None:
        """None: libraries open local files without an fsspec file system."""

    def filesystem_path(self, name: str) -> str:
        """Return the path of a file."""
        return str(self.path.absolute() / name)

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        with _file_errors(f"remove {self.path / name}"):
            self._file(name).unlink(missing_ok=True)

    def remove_temporary(self, folder: str) -> None:
        """Remove the unfinished files of a killed process."""
        for name in self._entries(folder):
            if _UNFINISHED.fullmatch(name):
                self.remove(f"{folder}/{name}")

    def has_content(self) -> bool:
        """Return True if the path is a file or a folder that is not empty."""
        with _file_errors(f"read {self.path}"):
            if self.path.is_dir():
                return any(not path.name.startswith(".") for path in self.path.iterdir())
            return self.path.exists()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder against a second process that writes to it."""
        filelock = require("filelock", "bulk", "Writing a collection")
        with _file_errors(f"write {self.path}"):
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

    def _entries(self, folder: str) -> list[str]:
        """Return the names in a subfolder."""
        with suppress(FileNotFoundError), _file_errors(f"read {self.path / folder}"):
            return [path.name for path in self._folder(folder).iterdir()]
        return []

    def _folder(self, name: str) -> Path:
        """Return the path of a subfolder; raise if it is a link, or no folder."""
        if name in ("", "."):  # the user may pass a link to the folder itself
            return self.path
        return _checked(self.path / name, stat.S_ISDIR, "a folder")

    def _file(self, name: str) -> Path:
        """Return the path of a file; raise if it or its folder is a link, or it is no file."""
        folder, _, file = name.rpartition("/")
        return _checked(self._folder(folder) / file, stat.S_ISREG, "a regular file")


class RemoteFolder:
    """A folder at an fsspec address, such as ``s3://bucket/run``."""

    def __init__(self, url: str) -> None:
        fsspec = require("fsspec", "dask", f"The address {url!r}")
        try:
            with _file_errors(f"reach {url}"):
                self._fs, self._root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            expected = f"an address that fsspec can open ({cut(error)})"
            raise InvalidRequestError.refuse("out", url, expected) from None
        self._url = url.rstrip("/")

    def __str__(self) -> str:
        return self._url

    def uri(self, name: str) -> str:
        """Return the address of a file."""
        return f"{self._url}/{name}"

    def read(self, name: str, max_bytes: int) -> bytes | None:
        """Read at most `max_bytes + 1` bytes of a file; return None if it does not exist."""
        with suppress(FileNotFoundError), self.open(name) as file:
            return file.read(max_bytes + 1)
        return None

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file for reading; raise `FileNotFoundError` if it does not exist."""
        path = f"{self._root}/{name}"
        with _remote_errors(f"read {self.uri(name)}"), self._fs.open(path, "rb") as file:
            yield file

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file for writing; it is uploaded complete when the block ends, or not at all."""
        target = f"{self._root}/{name}"
        action = f"write {self.uri(name)}"
        with _file_errors(action), tempfile.TemporaryDirectory() as folder:
            local = Path(folder) / "complete"
            with local.open("xb") as file:
                yield file
            with _remote_errors(action):
                self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
                self._fs.put_file(str(local), target)

    def write(self, name: str, body: bytes) -> None:
        """Write a complete file."""
        with self.create(name) as file:
            file.write(body)

    def list_files(self, folder: str) -> list[str]:
        """List the files of a subfolder, sorted."""
        self._fs.invalidate_cache()
        with suppress(FileNotFoundError), _remote_errors(f"read {self.uri(folder)}"):
            paths = self._fs.ls(f"{self._root}/{folder}", detail=False)
            return sorted(f"{folder}/{path.rpartition('/')[2]}" for path in paths)
        return []

    def file_sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes in bytes of the files of a subfolder."""
        self._fs.invalidate_cache()
        with suppress(FileNotFoundError), _remote_errors(f"read {self.uri(folder)}"):
            entries = self._fs.ls(f"{self._root}/{folder}", detail=True)
            return {f"{folder}/{e['name'].rpartition('/')[2]}": e["size"] for e in entries}
        return {}

    @property
    def filesystem(self) -> Any:
        """The fsspec file system."""
        return self._fs

    def filesystem_path(self, name: str) -> str:
        """Return the path of a file in the file system."""
        return f"{self._root}/{name}"

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        with suppress(FileNotFoundError), _remote_errors(f"remove {self.uri(name)}"):
            self._fs.rm_file(f"{self._root}/{name}")

    def remove_temporary(self, folder: str) -> None:
        """Do nothing: files are uploaded complete."""

    def has_content(self) -> bool:
        """Return True if the path is a file or a folder that is not empty."""
        self._fs.invalidate_cache()
        with suppress(FileNotFoundError), _remote_errors(f"read {self}"):
            return bool(self._fs.ls(self._root, detail=False))
        return False

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Do nothing: object stores have no locks."""
        yield


Folder = LocalFolder | RemoteFolder


def folder(out: object) -> Folder:
    """
    Return the folder for the `out` argument, a path or an fsspec address.

    Raises `InvalidRequestError` if it is neither, `FileError` if an address cannot be reached.
    """
    text = out if isinstance(out, str) else _path_text(out)
    for scheme in ("file://", "local://"):
        text = text.removeprefix(scheme)
    try:
        os.fsencode(text)
    except UnicodeEncodeError:  # a lone surrogate, which no path has
        text = ""
    if not text or "\0" in text:
        raise InvalidRequestError.refuse("out", out, "the path of a folder, or an fsspec address")
    validation.no_secret(out, "out")
    return RemoteFolder(text) if "://" in text else LocalFolder(Path(text))


def _path_text(out: object) -> str:
    """Return a path object as text; empty if it is none."""
    return os.fsdecode(out) if isinstance(out, os.PathLike) else ""


def required_folder(out: object) -> Folder:
    """Return the folder for the `out` argument; raise if it is None."""
    if out is None:
        raise InvalidRequestError.required("out", "the folder to write to")
    return folder(out)


def _checked(path: Path, is_kind: Callable[[int], bool], kind: str) -> Path:
    """Return a path; raise `FileError` if something other than this kind of file is there."""
    with suppress(FileNotFoundError), _file_errors(f"use {path}"):
        mode = path.lstat().st_mode
        if not is_kind(mode):
            reason = "it is a symbolic link" if stat.S_ISLNK(mode) else f"it is not {kind}"
            raise FileError(operation=f"use {path}", reason=reason, remedy=_FOREIGN)
    return path


_FOREIGN = "Remove it, or pass another folder: only ledgerkit writes into a collection's folder."


def _sync(path: Path) -> None:
    """Flush a folder to disk, so that a new file name survives a power failure."""
    if os.name == "nt":  # Windows cannot open folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _file_errors(action: str) -> Iterator[None]:
    """Convert an `OSError` to a `FileError`; callers handle `FileNotFoundError` themselves."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FileError.failed(action, error) from error


@contextmanager
def _remote_errors(action: str) -> Iterator[None]:
    """Convert errors as `_file_errors`, and those of the libraries that fsspec uses."""
    with _file_errors(action):
        try:
            yield
        except (LedgerError, OSError):
            raise
        except Exception as error:
            reason = cut(str(error) or type(error).__name__)
            raise FileError(operation=action, reason=reason) from error
