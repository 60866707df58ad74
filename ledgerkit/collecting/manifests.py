"""
The manifest of a collection, which describes its run, and one commit for each stored part.

Documents may be damaged on the disk, or written by somebody else. Each ends with the checksum of
its other bytes, and a commit has the SHA-256 of its files, so damage is noticed. An attacker can
compute the checksum, too: names in a document are only used if a run would write the same names.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from ledgerkit import json_decoding, validation
from ledgerkit._version import __version__
from ledgerkit.errors import DecodeError, InvalidRequestError, cut
from ledgerkit.files import check_format
from ledgerkit.frames import collected
from ledgerkit.frames.collected import ERRORS, SUBJECTS, TABLES, VIEWS
from ledgerkit.frames.schemas import SCHEMAS

if TYPE_CHECKING:
    from ledgerkit.collecting.storage import Folder

FORMAT = 2
# The outcomes of a subject. A waiting subject has stored rows; a later run completes them.
OK, FAILED, WAITING = "ok", "failed", "waiting"
MALFORMED, DUPLICATE, SKIPPED = "malformed", "duplicate", "skipped"
OUTCOMES = (OK, FAILED, WAITING, MALFORMED, DUPLICATE, SKIPPED)
_MANIFEST, _FINISHED, _COMMITS = "manifest.json", "finished.json", "commits"
# `STOP` follows the id of a run that is about to stop.
_RUN, STOP = ".run", " stops"
MAX_PART_SIZE = 10**6  # subjects
_MAX_BYTES = 2**20  # per document; most have a few thousand
_PART_NAME = re.compile(r"part-\d{12,}(-\d+)?\.parquet")

_MAX_COUNT = 2**63 - 1

Count = Annotated[int, msgspec.Meta(ge=0, le=_MAX_COUNT)]


class Manifest(msgspec.Struct, frozen=True):
    """The description of a run; written once, before any request."""

    kind: str
    network: str
    views: list[str]
    schemas: dict[str, list[tuple[str, str]]]
    liquid_tokens: list[str] = []
    heights: tuple[Count | None, Count] | None = None  # both ends, for statements only
    source: str = ""  # the source of blocks in the first run
    verified: bool = False  # True if only proved blocks are stored
    format: Count = FORMAT
    ledgerkit: str = __version__
    created_at: str = ""


class File(msgspec.Struct, frozen=True):
    """One Parquet file of a part."""

    name: str
    rows: Count
    size: Count
    sha256: str


class Commit(msgspec.Struct, frozen=True):
    """The record of a stored part: the subjects from position `start` to before `stop`."""

    start: Count
    stop: Count
    digest: str  # digest of the texts of the subjects
    files: dict[str, File]
    counts: dict[str, Count]
    began_at: str
    ended_at: str
    generation: Count = 0

    @property
    def n_subjects(self) -> int:
        return self.stop - self.start

    @property
    def path(self) -> str:
        return _commit_path(self.start)

    @property
    def next_generation(self) -> int:
        return (self.generation + 1) % _MAX_COUNT  # only a forged document reaches it

    @property
    def remedy(self) -> str:
        """The remedy if the part is damaged."""
        return _commit_remedy(self.path)


def _commit_path(start: int) -> str:
    return f"{_COMMITS}/{start:012d}.json"


def _commit_remedy(path: str) -> str:
    return f"Remove {path}: the next collect() requests its part again."


def count_subjects(commits: Iterable[Commit]) -> int:
    """Count the subjects of stored parts, whatever their outcomes."""
    return sum(commit.n_subjects for commit in commits)


def count(commits: Iterable[Commit], kinds: Sequence[str]) -> int:
    """Count the subjects of some outcomes, such as `FAILED`, in stored parts."""
    return sum(commit.counts.get(kind, 0) for commit in commits for kind in kinds)


def part_path(table: str, start: int, generation: int) -> str:
    suffix = f"-{generation}" if generation else ""
    return f"{table}/part-{start:012d}{suffix}.parquet"


class Finished(msgspec.Struct, frozen=True):
    """The record that the end of the source was reached."""

    subjects: Count
    at: str


def utc_now() -> str:
    """Return the current time as documents record it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def table_names(manifest: Manifest) -> list[str]:
    return [*manifest.views, SUBJECTS, ERRORS]


def table_schemas(views: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return the stored columns of each table with their dtypes."""
    stored = {"i129": "object"}  # both are stored as digits
    return {
        table: [
            (column.name, stored.get(column.dtype, column.dtype))
            for column in SCHEMAS[collected.schema_name(table)]
        ]
        for table in (*views, SUBJECTS, ERRORS)
    }


def new_manifest(kind: str, network: str, views: Sequence[str], **members: Any) -> Manifest:
    """Return the manifest of a new run; `members` are specific to its kind."""
    return Manifest(
        kind=kind,
        network=network,
        views=list(views),
        schemas=table_schemas(views),
        created_at=utc_now(),
        **members,
    )


def read_manifest(folder: Folder) -> Manifest | None:
    """
    Read the manifest of a folder; None if the folder has no collection yet.

    Raises `DecodeError` if it cannot be read, `InvalidRequestError` if a newer ledgerkit
    wrote it.
    """
    manifest: Manifest | None = _read(folder, _MANIFEST, Manifest, NEW_FOLDER)
    for problem in _manifest_problems(manifest) if manifest else ():
        raise _impossible(folder, _MANIFEST, problem, NEW_FOLDER)
    return manifest


def _manifest_problems(manifest: Manifest) -> Iterator[str]:
    views = manifest.views
    if not views or len(set(views)) < len(views) or set(views) - set(VIEWS.get(manifest.kind, ())):
        yield f"its kind is {cut(manifest.kind)!r} and its views are {cut(views)}"
    elif set(manifest.schemas) != set(table_names(manifest)):
        yield f"its schemas are those of {cut(', '.join(manifest.schemas) or 'no table')}"
    elif (manifest.kind == "statements") != (manifest.heights is not None):
        yield f"its kind is {manifest.kind} and its heights are {manifest.heights}"
    elif manifest.source not in (
        ("", *validation.BLOCK_SOURCES) if manifest.kind == "blocks" else ("",)
    ):
        yield f"its kind is {manifest.kind} and its source is {cut(manifest.source)!r}"
    elif manifest.heights and (manifest.heights[0] or 0) > manifest.heights[1]:
        yield f"its heights are {manifest.heights}"
    else:
        for table, columns in table_schemas(views).items():
            declared = manifest.schemas[table]
            if not declared or not set(declared) <= set(columns):
                yield f"its columns of {table} are not those of ledgerkit"


@contextmanager
def writing(folder: Folder, new: Manifest) -> Iterator[list[Commit]]:
    """
    Open a folder as the only run that writes to it; yield the commits of the stored parts.

    Files that a killed run left are removed. Raises `InvalidRequestError` if the folder is of
    another run, or another process writes to it.
    """
    with folder.lock():
        manifest = open_manifest(folder, new)
        with marked_run(folder):
            commits = read_commits(folder)
            remove_uncommitted(folder, manifest, commits)
            yield commits


def open_manifest(folder: Folder, new: Manifest) -> Manifest:
    """Return the manifest of a folder, or write a new one; raise if it is of another run."""
    manifest = check_same_run(folder, new)
    if manifest is None:
        folder.write(_MANIFEST, _with_checksum(msgspec.json.format(msgspec.json.encode(new))))
    return manifest or new


def check_same_run(folder: Folder, new: Manifest) -> Manifest | None:
    """Return the manifest of a folder, if any; raise if it is of another run."""
    manifest = read_manifest(folder)
    if manifest is None:
        if folder.has_content():
            expected = "a new or empty folder, or one with a collection"
            raise InvalidRequestError.refuse("out", str(folder), expected)
        return None
    for field in ("kind", "network", "views", "liquid_tokens", "heights", "verified"):
        before, now = getattr(manifest, field), getattr(new, field)
        if before != now:
            expected = (
                f"the folder of the same run: its {field} is {before}, and this run's is {now}"
            )
            raise InvalidRequestError.refuse("out", str(folder), expected)
    # Columns are read by name: their order may differ.
    outdated = [
        t for t, names in manifest.schemas.items() if sorted(names) != sorted(new.schemas[t])
    ]
    if outdated:
        expected = (
            f"a new folder: the columns of {', '.join(outdated)} are those of an older ledgerkit;"
            " open_collection() still reads them"
        )
        raise InvalidRequestError.refuse("out", str(folder), expected)
    return manifest


def read_commits(folder: Folder) -> list[Commit]:
    """Read all commits, by position; raise `DecodeError` if one is malformed or two overlap."""
    names = [name for name in folder.list_files(_COMMITS) if name.endswith(".json")]
    commits = [commit for name in names if (commit := _read_commit(folder, name)) is not None]
    commits.sort(key=lambda commit: commit.start)
    for before, after in pairwise(commits):
        if before.stop > after.start:
            problem = f"it starts at {after.start}, before the end of the previous commit"
            raise _impossible(folder, after.path, problem, after.remedy)
    return commits


def read_commit(folder: Folder, start: int) -> Commit | None:
    """Read the commit of the part that starts at a position, if there is one."""
    return _read_commit(folder, _commit_path(start))


def _read_commit(folder: Folder, path: str) -> Commit | None:
    """Read a commit; raise `DecodeError` if no run can have written it."""
    commit: Commit | None = _read(folder, path, Commit, _commit_remedy(path))
    for problem in _commit_problems(commit, path) if commit else ():
        raise _impossible(folder, path, problem, _commit_remedy(path))
    return commit


def _commit_problems(commit: Commit, path: str) -> Iterator[str]:
    counts, n_subjects = commit.counts, commit.n_subjects
    if path != commit.path:
        yield f"it starts at {commit.start}"
    if not 0 < n_subjects <= MAX_PART_SIZE:
        yield f"it is from {commit.start} to {commit.stop}"
    if not set(counts) <= set(OUTCOMES) or sum(counts.values()) != n_subjects:
        yield f"it has {n_subjects} subjects and counts {cut(counts)}"
    for table, file in commit.files.items():
        if table not in TABLES or file.name != part_path(table, commit.start, commit.generation):
            yield f"it names the file {cut(file.name)!r} of the table {cut(table)!r}"
        if not (file.rows and file.size):
            yield f"{cut(file.name)} has {file.rows} rows and {file.size} bytes"
    n_ok, n_waiting = counts.get(OK, 0), counts.get(WAITING, 0)
    for table, n_rows in ((SUBJECTS, n_ok + n_waiting), (ERRORS, n_subjects - n_ok)):
        stored = commit.files[table].rows if table in commit.files else 0
        if stored != n_rows:
            yield f"it counts {cut(counts)}, and {table} has {stored} rows"


def write_commit(folder: Folder, commit: Commit) -> None:
    """Write a commit: from now on its files belong to the collection."""
    folder.write(commit.path, _with_checksum(msgspec.json.encode(commit)))


@contextmanager
def marked_run(folder: Folder) -> Iterator[None]:
    """
    Write a new run id to the folder, which makes the workers of earlier runs stop.

    If the run fails the id remains, so that its workers can still store their responses.
    """
    folder.write(_RUN, uuid.uuid4().hex.encode())
    yield
    folder.remove(_RUN)


def current_run(folder: Folder) -> str:
    """Return the id of the run that writes to a folder; empty if there is none."""
    return (folder.read(_RUN, _MAX_BYTES) or b"").decode(errors="replace")


def request_stop(folder: Folder, run_id: str) -> None:
    """Make the workers of a run store their responses, and stop."""
    folder.write(_RUN, f"{run_id}{STOP}".encode())


def write_finished(folder: Folder) -> None:
    finished = Finished(count_subjects(read_commits(folder)), utc_now())
    folder.write(_FINISHED, _with_checksum(msgspec.json.encode(finished)))


def read_finished(folder: Folder) -> Finished | None:
    """Return the record that the end of the source was reached, if it exists."""
    finished: Finished | None = _read(folder, _FINISHED, Finished, _WRITTEN_AGAIN)
    return finished


def remove_uncommitted(folder: Folder, manifest: Manifest, commits: Sequence[Commit]) -> None:
    """Remove the files of killed processes, which no commit names."""
    committed = {file.name for commit in commits for file in commit.files.values()}
    folder.remove_temporary(".")
    folder.remove_temporary(_COMMITS)
    for table in table_names(manifest):
        folder.remove_temporary(table)
        for name in folder.list_files(table):
            if _PART_NAME.fullmatch(name.rpartition("/")[2]) and name not in committed:
                folder.remove(name)


# Documents --------------------------------------------------------------------------------

_CHECKSUM = b',"checksum":"'
_WRITTEN_AGAIN = f"Remove {_FINISHED}: the next collect() writes it again."
NEW_FOLDER = "Restore it from a copy, or collect into a new folder."


def _with_checksum(document: bytes) -> bytes:
    """Return a JSON object with the checksum of its bytes as the last member."""
    content = document.rstrip().removesuffix(b"}").rstrip()
    return content + _CHECKSUM + hashlib.sha256(content).hexdigest().encode() + b'"}'


def _read(folder: Folder, path: str, document_type: Any, remedy: str) -> Any:
    """Read a manifest, commit or other document of the folder; None if it does not exist."""
    body = folder.read(path, _MAX_BYTES)
    if body is None:
        return None
    content, mark, _ = body.rpartition(_CHECKSUM)
    if not mark:
        problem = "has no checksum: it is damaged, or another program wrote it"
    elif _with_checksum(content + b"}") != body:
        problem = "is damaged: its checksum is wrong"
    else:
        try:
            if document_type is Manifest:
                check_format(body, FORMAT, "out", str(folder))
            return json_decoding.decode(body, document_type)
        except msgspec.DecodeError as error:
            problem = f"cannot be read: {cut(error)}"
    raise DecodeError(f"{folder}/{path} {problem}", remedy=remedy, path=path)


def _impossible(folder: Folder, path: str, problem: str, remedy: str) -> DecodeError:
    return DecodeError(f"{folder}/{path} cannot be right: {problem}", remedy=remedy, path=path)
