"""Files that appear complete or not at all, formats of documents, and errors of files."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Annotated

import msgspec

from ledgerkit import json_decoding
from ledgerkit.errors import FileError, InvalidRequestError

if TYPE_CHECKING:
    from pathlib import Path


class _Header(msgspec.Struct):
    """The member that a document has in every format."""

    format: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


def check_format(document: bytes, newest: int, field: str, name: str) -> None:
    """Raise `InvalidRequestError` if a newer ledgerkit wrote a document."""
    version = json_decoding.decode(document, _Header).format
    if version > newest:
        expected = f"format {newest} or older, and it has format {version}"
        error = InvalidRequestError.refuse(field, name, expected)
        error.remedy = "Read it with a newer ledgerkit: pip install -U ledgerkit."
        raise error


@contextmanager
def file_errors(action: str) -> Iterator[None]:
    """Convert an `OSError` to a `FileError`; `action` completes "could not ..."."""
    try:
        yield
    except OSError as error:
        raise FileError.failed(action, error) from error


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing; it takes its name when the block ends, or never."""
    hidden = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    with file_errors(f"write {path}"):
        try:
            with hidden.open("xb") as file:  # follows no symbolic link
                yield file
                file.flush()
                os.fsync(file.fileno())
            hidden.replace(path)
        except BaseException:
            with suppress(OSError):  # the folder may be missing, or no folder
                hidden.unlink(missing_ok=True)
            raise
        _flush_folder(path.parent)


def _flush_folder(path: Path) -> None:
    """Flush a folder to disk, so that a new file name survives a power failure."""
    if os.name == "nt":  # Windows cannot open folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
