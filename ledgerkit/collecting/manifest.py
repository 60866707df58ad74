"""What a collection's folder says of itself: its manifest, and one commit a finished stretch."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit._version import __version__
from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.frames.schemas import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ledgerkit.collecting.storage import Folder

FORMAT = 1
# Beside its views each collection has these.
SUBJECTS, ERRORS = "subjects", "errors"
FRAMES = {
    SUBJECTS: "collected",
    ERRORS: "collection_errors",
    "receipts": "collected_receipts",
    "events": "collected_events",
}
_MANIFEST, _FINISHED, _COMMITS = "manifest.json", "finished.json", "commits"
_RUN, STOP = ".run", " stops"


class Manifest(msgspec.Struct, frozen=True):
    """Which run a folder belongs to; written once, before anything is asked."""

    kind: str
    network: str
    views: list[str]
    schemas: dict[str, list[tuple[str, str]]]
    liquid_tokens: list[str] = []
    format: int = FORMAT
    ledgerkit: str = __version__
    created_at: str = ""


class File(msgspec.Struct, frozen=True):
    """One Parquet file of a stretch."""

    name: str
    rows: int
    size: int


class Commit(msgspec.Struct, frozen=True):
    """A stretch of subjects, from position `start` to before `stop`, that is stored."""

    start: int
    stop: int
    digest: str  # of its subjects, as they were given
    files: dict[str, File]
    counts: dict[str, int]
    began_at: str
    ended_at: str
    generation: int = 0

    @property
    def path(self) -> str:
        """Where it stands in the folder."""
        return _path(self.start)


def _path(start: int) -> str:
    """Name the commit of a stretch."""
    return f"{_COMMITS}/{start:012d}.json"


class Finished(msgspec.Struct, frozen=True):
    """The end of the source was reached."""

    subjects: int
    at: str


def frame_name(table: str) -> str:
    """Name the declared frame that a table's files hold."""
    return FRAMES.get(table, table)


def tables(manifest: Manifest) -> list[str]:
    """Name the tables of a collection."""
    return [*manifest.views, SUBJECTS, ERRORS]


def schemas(views: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """List the columns of each table, as they are declared now."""
    return {
        table: [(column.name, column.dtype) for column in SCHEMAS[frame_name(table)]]
        for table in (*views, SUBJECTS, ERRORS)
    }


def read(folder: Folder) -> Manifest | None:
    """
    Read the manifest of a folder.

    Parameters
    ----------
    folder
        The folder.

    Returns
    -------
    manifest
        None if the folder is no collection yet.

    Raises
    ------
    DecodeError
        If the manifest cannot be read.
    InvalidRequestError
        If a newer ledgerkit wrote it.
    """
    body = folder.read(_MANIFEST)
    if body is None:
        return None
    found: Manifest = _decoded(body, Manifest, f"{folder}/{_MANIFEST}")
    if found.format > FORMAT:
        rule = f"a collection of format {FORMAT} or older; ledgerkit {found.ledgerkit} wrote this"
        raise InvalidRequestError.refuse("out", str(folder), rule)
    return found


def begin(folder: Folder, wanted: Manifest) -> Manifest:
    """
    Take up the run that a folder holds, or begin one there.

    Parameters
    ----------
    folder
        The folder.
    wanted
        The run that is asked for.

    Returns
    -------
    manifest
        The one that stands in the folder now.

    Raises
    ------
    InvalidRequestError
        If the folder belongs to another run, holds an older schema, or something else.
    FileError
        If it cannot be written.
    """
    found = check(folder, wanted)
    if found is None:
        folder.write(_MANIFEST, msgspec.json.format(msgspec.json.encode(wanted)))
        return wanted
    return found


def check(folder: Folder, wanted: Manifest) -> Manifest | None:
    """Compare a run with what the folder holds; None where there is nothing yet."""
    found = read(folder)
    if found is None:
        if folder.foreign():
            rule = "an empty or new folder, or one that a collection was written to"
            raise InvalidRequestError.refuse("out", str(folder), rule)
        return None
    for field in ("kind", "network", "views", "liquid_tokens", "schemas"):
        was, now = getattr(found, field), getattr(wanted, field)
        if was != now:
            raise InvalidRequestError.refuse("out", str(folder), _difference(field, was, now))
    return found


def check_new(folder: Folder, wanted: Manifest, *, resume: bool) -> None:
    """Compare a run with what the folder holds; without `resume` that has to be nothing."""
    if check(folder, wanted) is not None and not resume:
        rule = "a new folder, for this one holds a collection: resume=True goes on with it"
        raise InvalidRequestError.refuse("out", str(folder), rule)


def _difference(field: str, was: Any, now: Any) -> str:
    """Say in which way a folder belongs to another run."""
    if field == "schemas":
        tables = [name for name in was if was[name] != now.get(name)]
        return (
            f"a new folder: this one's {', '.join(tables)} has older columns than this ledgerkit "
            "writes; open_collection still reads it"
        )
    return f"the folder of the same run: {field} was {was} there and is {now} now"


def commits(folder: Folder) -> list[Commit]:
    """
    Read the commits of a folder.

    Parameters
    ----------
    folder
        The folder.

    Returns
    -------
    commits
        By position.

    Raises
    ------
    DecodeError
        If one of them cannot be read, or two overlap.
    """
    names = [name for name in folder.names(_COMMITS) if name.endswith(".json")]
    found = [_decoded(folder.read(name) or b"", Commit, f"{folder}/{name}") for name in names]
    found.sort(key=lambda commit: commit.start)
    for before, after in pairwise(found):
        if before.stop > after.start:
            what = f"{folder}/{after.path}"
            msg = f"{what} begins at {after.start}, before the end of the one before it"
            raise DecodeError(msg, path=what)
    return found


def stored(folder: Folder, start: int) -> Commit | None:
    """Read the commit of the stretch that begins at a position, if there is one."""
    body = folder.read(_path(start))
    return None if body is None else _decoded(body, Commit, f"{folder}/{_path(start)}")


def commit(folder: Folder, made: Commit) -> None:
    """Store a commit: from then on its files count, and not before."""
    folder.write(made.path, msgspec.json.encode(made))


@contextmanager
def run(folder: Folder) -> Iterator[None]:
    """
    Note that a run begins: workers of an earlier one, wherever they are, find out and stop.

    Where it breaks off the note stays: its own workers may still store what they have.

    Parameters
    ----------
    folder
        The collection's.

    Yields
    ------
    None
        While it goes on.
    """
    folder.write(_RUN, uuid.uuid4().hex.encode())
    yield
    folder.remove(_RUN)


def running(folder: Folder) -> str:
    """Name the run that writes to a folder; an empty name where none does."""
    return (folder.read(_RUN) or b"").decode(errors="replace")


def stop(folder: Folder, name: str) -> None:
    """Ask the workers of a run to store what they have."""
    folder.write(_RUN, f"{name}{STOP}".encode())


def finish(folder: Folder, subjects: int, at: str) -> None:
    """Note that the end of the source was reached."""
    folder.write(_FINISHED, msgspec.json.encode(Finished(subjects, at)))


def finished(folder: Folder) -> Finished | None:
    """Read whether the end of the source was reached."""
    body = folder.read(_FINISHED)
    return None if body is None else _decoded(body, Finished, f"{folder}/{_FINISHED}")


def sweep(folder: Folder, manifest: Manifest, found: Sequence[Commit]) -> None:
    """Remove what a killed process left: files that no commit names."""
    named = {file.name for commit in found for file in commit.files.values()}
    folder.sweep(_COMMITS)
    for table in tables(manifest):
        folder.sweep(table)
        for name in folder.names(table):
            if name.endswith(".parquet") and name not in named:
                folder.remove(name)


def _decoded(body: bytes, kind: Any, what: str) -> Any:
    """Read one of the folder's own documents."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        msg = f"{what} cannot be read: {error}"
        remedy = "Something else wrote it: remove it to ask for its stretch again."
        raise DecodeError(msg, remedy=remedy, path=what) from None
