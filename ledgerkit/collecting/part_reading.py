"""Reading the files of parts: each is compared with its commit before its rows are used."""

from __future__ import annotations

import hashlib
import io
import os
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import DecodeError, cut
from ledgerkit.u128 import arrow, parquet

if TYPE_CHECKING:
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
    with parquet.reading(f"{folder.uri(file.name)}, a file of {commit.path},", commit.remedy):
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
        with parquet.reading(file.name):
            return _content_problem(stream, file, schema)
    except DecodeError as error:
        return f"is damaged: {error.sentence}"


def _content_problem(stream: Any, file: File, schema: Any) -> str:
    """Return what is wrong with the rows and columns that a Parquet file declares."""
    stream.seek(0)
    content = arrow.library("pyarrow.parquet").ParquetFile(stream)
    if content.metadata.num_rows != file.rows:
        return f"has {content.metadata.num_rows:,} rows, and its commit {file.rows:,}"
    types = {field.name: field.type for field in content.schema_arrow}
    others = [field.name for field in schema if types.get(field.name) != field.type]
    return f"has other columns than its table: {cut(', '.join(others))}" if others else ""


def _damaged(folder: Folder, commit: Commit, file: File, problem: str) -> DecodeError:
    """Build the error for a file that differs from its commit."""
    sentence = f"{folder.uri(file.name)}, a file of {commit.path}, {problem}"
    return DecodeError(sentence, remedy=commit.remedy, path=file.name)
