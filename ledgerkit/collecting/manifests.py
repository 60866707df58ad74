"""The manifest of a collection, which describes its run, and one commit for each stored part."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit import json_decoding
from ledgerkit._version import __version__
from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.frames.schemas import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ledgerkit.collecting.storage import Folder

FORMAT = 1
# The tables that each collection has beside its views.
SUBJECTS, ERRORS = "subjects", "errors"
FRAMES = {
    SUBJECTS: "collected",
    ERRORS: "collection_errors",
    "receipts": "collected_receipts",
    "events": "collected_events",
}
_MANIFEST, _FINISHED, _COMMITS = "manifest.json", "finished.json", "commits"
# `STOP` follows the id of a run that is about to stop.
_RUN, STOP = ".run", " stops"


class Manifest(msgspec.Struct, frozen=True):
    """The description of a run; written once, before any request."""

    kind: str
    network: str
    views: list[str]
    schemas: dict[str, list[tuple[str, str]]]
    liquid_tokens: list[str] = []
    format: int = FORMAT
    ledgerkit: str = __version__
    created_at: str = ""


class File(msgspec.Struct, frozen=True):
    """One Parquet file of a part."""

    name: str
    rows: int
    size: int


class Commit(msgspec.Struct, frozen=True):
    """The record of a stored part: the subjects from position `start` to before `stop`."""

    start: int
    stop: int
    digest: str  # of the texts of its subjects
    files: dict[str, File]
    counts: dict[str, int]
    began_at: str
    ended_at: str
    generation: int = 0

    @property
    def path(self) -> str:
        """The path of the commit in the folder."""
        return _commit_path(self.start)


def _commit_path(start: int) -> str:
    """Return the path of the commit of a part."""
    return f"{_COMMITS}/{start:012d}.json"


class Finished(msgspec.Struct, frozen=True):
    """The record that the end of the source was reached."""

    subjects: int
    at: str


def schema_name(table: str) -> str:
    """Return the name of the schema of a table."""
    return FRAMES.get(table, table)


def table_names(manifest: Manifest) -> list[str]:
    """Return the names of the tables of a collection."""
    return [*manifest.views, SUBJECTS, ERRORS]


def table_schemas(views: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return the columns of each table with their dtypes."""
    return {
        table: [(column.name, column.dtype) for column in SCHEMAS[schema_name(table)]]
        for table in (*views, SUBJECTS, ERRORS)
    }


def read_manifest(folder: Folder) -> Manifest | None:
    """
    Read the manifest of a folder; None if the folder has no collection yet.

    Raises `DecodeError` if it cannot be read, `InvalidRequestError` if a newer ledgerkit
    wrote it.
    """
    body = folder.read(_MANIFEST)
    if body is None:
        return None
    manifest: Manifest = _decode(body, Manifest, f"{folder}/{_MANIFEST}")
    if manifest.format > FORMAT:
        expected = (
            f"a collection of format {FORMAT} or older; ledgerkit {manifest.ledgerkit} wrote"
            f" format {manifest.format}"
        )
        raise InvalidRequestError.refuse("out", str(folder), expected)
    return manifest


def open_manifest(folder: Folder, new: Manifest) -> Manifest:
    """Return the manifest of a folder, or write a new one; raise if it is of another run."""
    manifest = check_same_run(folder, new)
    if manifest is None:
        folder.write(_MANIFEST, msgspec.json.format(msgspec.json.encode(new)))
        return new
    return manifest


def check_same_run(folder: Folder, new: Manifest) -> Manifest | None:
    """Return the manifest of a folder, if any; raise if it is of another run."""
    manifest = read_manifest(folder)
    if manifest is None:
        if folder.has_content():
            expected = "a new or empty folder, or one with a collection"
            raise InvalidRequestError.refuse("out", str(folder), expected)
        return None
    for field in ("kind", "network", "views", "liquid_tokens", "schemas"):
        before, now = getattr(manifest, field), getattr(new, field)
        if before != now:
            raise InvalidRequestError.refuse(
                "out", str(folder), _expected_folder(field, before, now)
            )
    return manifest


def check_resume(folder: Folder, new: Manifest, *, resume: bool) -> None:
    """Raise if a folder has a collection of another run, or any collection if not `resume`."""
    if check_same_run(folder, new) is not None and not resume:
        msg = f"out {str(folder)!r} has a collection already: pass resume=True to continue it"
        raise InvalidRequestError(msg, field="out", value=str(folder))


def _expected_folder(field: str, before: Any, now: Any) -> str:
    """Describe the folder to pass as `out`, if a field of the manifest differs."""
    if field == "schemas":
        outdated = [name for name in before if before[name] != now.get(name)]
        return (
            f"a new folder: the columns of {', '.join(outdated)} are those of an older ledgerkit;"
            " open_collection() still reads them"
        )
    return f"the folder of the same run: its {field} is {before}, and this run's is {now}"


def read_commits(folder: Folder) -> list[Commit]:
    """Read all commits, by position; raise `DecodeError` if one is malformed or two overlap."""
    names = [name for name in folder.list_files(_COMMITS) if name.endswith(".json")]
    commits = [_decode(folder.read(name) or b"", Commit, f"{folder}/{name}") for name in names]
    commits.sort(key=lambda commit: commit.start)
    for before, after in pairwise(commits):
        if before.stop > after.start:
            path = f"{folder}/{after.path}"
            msg = f"{path} starts at {after.start}, before the end of the previous commit"
            raise DecodeError(msg, path=path)
    return commits


def read_commit(folder: Folder, start: int) -> Commit | None:
    """Read the commit of the part that starts at a position, if there is one."""
    body = folder.read(_commit_path(start))
    return None if body is None else _decode(body, Commit, f"{folder}/{_commit_path(start)}")


def write_commit(folder: Folder, commit: Commit) -> None:
    """Write a commit: from now on its files belong to the collection."""
    folder.write(commit.path, msgspec.json.encode(commit))


@contextmanager
def marked_run(folder: Folder) -> Iterator[None]:
    """
    Write a new run id to the folder, which makes the workers of earlier runs stop.

    If the run fails the id remains, so that its own workers can still store their responses.
    """
    folder.write(_RUN, uuid.uuid4().hex.encode())
    yield
    folder.remove(_RUN)


def current_run(folder: Folder) -> str:
    """Return the id of the run that writes to a folder; empty if there is none."""
    return (folder.read(_RUN) or b"").decode(errors="replace")


def request_stop(folder: Folder, run_id: str) -> None:
    """Make the workers of a run store the responses they have, and stop."""
    folder.write(_RUN, f"{run_id}{STOP}".encode())


def write_finished(folder: Folder, subjects: int, at: str) -> None:
    """Record that the end of the source was reached."""
    folder.write(_FINISHED, msgspec.json.encode(Finished(subjects, at)))


def read_finished(folder: Folder) -> Finished | None:
    """Return the record that the end of the source was reached, if there is one."""
    body = folder.read(_FINISHED)
    return None if body is None else _decode(body, Finished, f"{folder}/{_FINISHED}")


def remove_uncommitted(folder: Folder, manifest: Manifest, commits: Sequence[Commit]) -> None:
    """Remove the files that a killed process left: those in no commit."""
    committed = {file.name for commit in commits for file in commit.files.values()}
    folder.remove_temporary(".")
    folder.remove_temporary(_COMMITS)
    for table in table_names(manifest):
        folder.remove_temporary(table)
        for name in folder.list_files(table):
            if name.endswith(".parquet") and name not in committed:
                folder.remove(name)


def _decode(body: bytes, document_type: Any, path: str) -> Any:
    """Decode a manifest, commit or other document of the folder."""
    try:
        return json_decoding.decode(body, document_type)
    except msgspec.DecodeError as error:
        msg = f"{path} cannot be read: {error}"
        remedy = "Another program wrote it. Remove it to request its part again."
        raise DecodeError(msg, remedy=remedy, path=path) from None
