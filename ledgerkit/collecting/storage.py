"""The folder of a collection, on this machine or wherever fsspec reaches: files appear whole."""

from __future__ import annotations

import os
import tempfile
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ledgerkit.errors import FileError, InvalidRequestError
from ledgerkit.u128 import arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEMPORARY = ".tmp"


class LocalFolder:
    """
    A folder of this machine.

    Parameters
    ----------
    path
        Where it is, or is to be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def uri(self, name: str) -> str:
        """Give the address under which libraries open a file."""
        return str(self.path / name)

    def read(self, name: str) -> bytes | None:
        """Read a file; None if there is none."""
        with suppress(FileNotFoundError), _told(f"read {self.path / name}"):
            return (self.path / name).read_bytes()
        return None

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file for writing that appears whole when the block ends, or not at all."""
        target = self.path / name
        hidden = target.with_name(f".{target.name}.{uuid.uuid4().hex}{_TEMPORARY}")
        with _told(f"write {target}"):
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
        """Write a file whole."""
        with self.create(name) as file:
            file.write(body)

    def names(self, folder: str) -> list[str]:
        """List the files of a folder in it, sorted; what is still being written is none."""
        found = self._entries(folder)
        return sorted(f"{folder}/{name}" for name in found if not name.startswith("."))

    def sizes(self, folder: str) -> dict[str, int]:
        """Measure the files of a folder in it."""
        with suppress(FileNotFoundError), _told(f"read {self.path / folder}"):
            found = (self.path / folder).iterdir()
            return {f"{folder}/{path.name}": path.stat().st_size for path in found}
        return {}

    @property
    def system(self) -> None:
        """Its file system is this machine's, which every library knows."""

    def within(self, name: str) -> str:
        """Give the path of a file in its file system."""
        return str(self.path.absolute() / name)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with _told(f"remove {self.path / name}"):
            (self.path / name).unlink(missing_ok=True)

    def sweep(self, folder: str) -> None:
        """Remove what a killed process had begun to write."""
        for name in self._entries(folder):
            if name.startswith(".") and name.endswith(_TEMPORARY):
                self.remove(f"{folder}/{name}")

    def foreign(self) -> bool:
        """Tell whether something of somebody else's is there."""
        with _told(f"read {self.path}"):
            if self.path.is_dir():
                return any(not path.name.startswith(".") for path in self.path.iterdir())
            return self.path.exists()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder against a second process that would write to it."""
        filelock = arrow.library("filelock")
        with _told(f"write {self.path}"):
            self.path.mkdir(parents=True, exist_ok=True)
            held = filelock.FileLock(self.path / ".lock")
        try:
            held.acquire(timeout=0)
        except filelock.Timeout:
            rule = "a folder to which no other process is writing just now"
            raise InvalidRequestError.refuse("out", str(self), rule) from None
        try:
            yield
        finally:
            held.release()

    def _entries(self, folder: str) -> list[str]:
        """List a folder in it."""
        with suppress(FileNotFoundError), _told(f"read {self.path / folder}"):
            return [path.name for path in (self.path / folder).iterdir()]
        return []


class RemoteFolder:
    """
    A folder that fsspec reaches, such as ``s3://bucket/run``.

    Parameters
    ----------
    url
        Its address.
    """

    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ImportError:
            msg = "an address as out needs fsspec, which is not installed"
            remedy = "pip install 'ledgerkit[dask]', or give a folder of this machine."
            raise InvalidRequestError(msg, remedy=remedy, field="out", value=url) from None
        with _told(f"reach {url}"):
            self._fs, self._root = fsspec.core.url_to_fs(url)
        self._url = url.rstrip("/")

    def __str__(self) -> str:
        return self._url

    def uri(self, name: str) -> str:
        """Give the address under which libraries open a file."""
        return f"{self._url}/{name}"

    def read(self, name: str) -> bytes | None:
        """Read a file; None if there is none."""
        with suppress(FileNotFoundError), _told(f"read {self.uri(name)}"):
            found: bytes = self._fs.cat_file(f"{self._root}/{name}")
            return found
        return None

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file for writing that is sent whole when the block ends, or not at all."""
        target = f"{self._root}/{name}"
        with _told(f"write {self.uri(name)}"), tempfile.TemporaryDirectory() as folder:
            whole = Path(folder) / "whole"
            with whole.open("xb") as file:
                yield file
            self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._fs.put_file(str(whole), target)

    def write(self, name: str, body: bytes) -> None:
        """Write a file whole."""
        with self.create(name) as file:
            file.write(body)

    def names(self, folder: str) -> list[str]:
        """List the files of a folder in it, sorted."""
        self._fs.invalidate_cache()
        with suppress(FileNotFoundError), _told(f"read {self.uri(folder)}"):
            found = self._fs.ls(f"{self._root}/{folder}", detail=False)
            return sorted(f"{folder}/{path.rpartition('/')[2]}" for path in found)
        return []

    def sizes(self, folder: str) -> dict[str, int]:
        """Measure the files of a folder in it."""
        self._fs.invalidate_cache()
        with suppress(FileNotFoundError), _told(f"read {self.uri(folder)}"):
            found = self._fs.ls(f"{self._root}/{folder}", detail=True)
            return {f"{folder}/{one['name'].rpartition('/')[2]}": one["size"] for one in found}
        return {}

    @property
    def system(self) -> Any:
        """Its file system, as fsspec has it."""
        return self._fs

    def within(self, name: str) -> str:
        """Give the path of a file in its file system."""
        return f"{self._root}/{name}"

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError), _told(f"remove {self.uri(name)}"):
            self._fs.rm_file(f"{self._root}/{name}")

    def sweep(self, folder: str) -> None:
        """Nothing half written is ever there."""

    def foreign(self) -> bool:
        """Tell whether something of somebody else's is there."""
        self._fs.invalidate_cache()
        with suppress(FileNotFoundError), _told(f"read {self}"):
            return bool(self._fs.ls(self._root, detail=False))
        return False

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold nothing: an object store knows no locks."""
        yield


Folder = LocalFolder | RemoteFolder


def folder(out: object) -> Folder:
    """
    Find the folder that `out` names.

    Parameters
    ----------
    out
        A path, or an address that fsspec reaches.

    Returns
    -------
    folder
        It need not be there yet.

    Raises
    ------
    InvalidRequestError
        If it is neither.
    FileError
        If an address cannot be reached.
    """
    if not isinstance(out, str | os.PathLike) or not str(out):
        raise InvalidRequestError.refuse("out", out, "a folder's path, or an fsspec address")
    text = os.fspath(out)
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    return RemoteFolder(text) if "://" in text else LocalFolder(Path(text))


def given(out: object) -> Folder:
    """Find the folder that `out` names; there is none by default."""
    if out is None:
        raise InvalidRequestError.refuse("out", out, "given: the folder to write to")
    return folder(out)


def _sync(path: Path) -> None:
    """Let the new name of a file survive a loss of power."""
    if os.name == "nt":  # a folder can't be opened there
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Translate what the disk or the store says; a missing file is the caller's matter."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FileError.failed(what, error) from error
