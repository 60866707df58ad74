"""Reading the files of parts: each is compared with its commit before its rows are used."""

from __future__ import annotations

import hashlib
import io
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit.errors import DecodeError, FileError, cut
from ledgerkit.u128 import arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.collecting.manifests import Commit, File
    from ledgerkit.collecting.storage import Folder


def read_table(folder: Folder, commit: Commit, name: str, schema: Any) -> Any:
    """
    Read a table of one part into a `pyarrow.Table` of a schema.

    Raises `DecodeError` if the file is missing or damaged, `FileError` if it cannot be read.
    """
    if name not in commit.files:
        return schema.empty_table()
    file = commit.files[name]
    body = folder.read(file.name, file.size)
    if body is None:
        raise _damaged(folder, commit, file, "is missing")
    if problem := _problem(io.BytesIO(body), file, schema):
        raise _damaged(folder, commit, file, problem)
    with undecodable(f"{folder.uri(file.name)}, a file of {commit.path},", commit.remedy):
        source = arrow.library().BufferReader(body)
        table = arrow.library("pyarrow.parquet").read_table(
            source, columns=schema.names, page_checksum_verification=True
        )
        columns = table.select(schema.names).columns
        return arrow.library().Table.from_arrays(columns, schema=schema)


def check_file(folder: Folder, commit: Commit, name: str, schema: Any) -> None:
    """
    Read the file of a table in a part, and compare it with its commit.

    Raises `DecodeError` if it is missing or damaged, `FileError` if it cannot be read.
    """
    file = commit.files[name]
    try:
        with folder.open(file.name) as stream:
            problem = _problem(stream, file, schema)
    except FileNotFoundError:
        problem = "is missing"
    if problem:
        raise _damaged(folder, commit, file, problem)


def _problem(stream: Any, file: File, schema: Any) -> str:
    """Return how a file differs from its commit; empty if it does not."""
    size = stream.seek(0, os.SEEK_END)
    if size != file.size:
        return f"has {size:,} of {file.size:,} bytes"
    stream.seek(0)
    if hashlib.file_digest(stream, "sha256").hexdigest() != file.sha256:
        return "is damaged: its SHA-256 is not the one in its commit"
    try:
        with undecodable("", ""):
            return _content_problem(stream, file, schema)
    except DecodeError as error:
        return error.sentence


def _content_problem(stream: Any, file: File, schema: Any) -> str:
    """Return what is wrong with the rows and columns that a Parquet file declares."""
    stream.seek(0)
    parquet = arrow.library("pyarrow.parquet").ParquetFile(stream)
    if parquet.metadata.num_rows != file.rows:
        return f"has {parquet.metadata.num_rows:,} rows, and its commit {file.rows:,}"
    types = {field.name: field.type for field in parquet.schema_arrow}
    others = [field.name for field in schema if types.get(field.name) != field.type]
    return f"has other columns than its table: {cut(', '.join(others))}" if others else ""


@contextmanager
def undecodable(source: str, remedy: str) -> Iterator[None]:
    """Convert the errors of pyarrow and pandas for malformed content to `DecodeError`."""
    try:
        yield
    except (
        arrow.library().ArrowException,
        OSError,  # damaged pages, and footers
        ValueError,  # among others text that is not UTF-8
        MemoryError,  # a size that a file only claims
        msgspec.DecodeError,  # a column of JSON
        TypeError,  # in it, a number where bytes are marked
        RecursionError,
    ) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise FileError.failed(f"read {source}", error) from error
        sentence = f"{source} cannot be read: {cut(str(error) or type(error).__name__)}".strip()
        raise DecodeError(sentence, remedy=remedy) from error


def _damaged(folder: Folder, commit: Commit, file: File, problem: str) -> DecodeError:
    """Build the error for a file that differs from its commit."""
    sentence = f"{folder.uri(file.name)}, a file of {commit.path}, {problem}"
    return DecodeError(sentence, remedy=commit.remedy, path=file.name)
