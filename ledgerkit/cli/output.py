"""Print frames, values and messages; in colour on a terminal."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit import errors, validation
from ledgerkit.redaction import hide
from ledgerkit.visible_text import escape_invisible

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import TextIO

    import pandas as pd

_STYLES = {"heading": "1", "good": "32", "waiting": "33", "bad": "31"}  # SGR: bold and colours


class Text(str):
    """A text for people, which is printed as it is."""

    __slots__ = ()


class Form(NamedTuple):
    """The options of a command that choose how a frame is printed."""

    format: str = "table"
    columns: list[str] | None = None
    exact: bool = False
    raw: bool = False


def form(args: argparse.Namespace, schema: str) -> Form:
    """Read the options that choose how a frame is printed, and check the columns."""
    columns = None if args.columns is None else _check_columns(args.columns, schema)
    return Form(args.format, columns, args.exact, args.raw)


def _check_columns(text: str, schema: str) -> list[str]:
    """Check names of columns that are separated by commas, before anything is sent."""
    from ledgerkit.frames.schemas import SCHEMAS

    if not schema:
        raise errors.InvalidRequestError.refuse("--columns", text, "none: there is no frame")
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    if schema in SCHEMAS:  # otherwise the command refuses what it is made of
        known = tuple(column.name for column in SCHEMAS[schema])
        names = [validation.one_of(name, "--columns", known) for name in names]
    return names


def say(text: str = "", *, raw: bool = False, style: str = "", **options: Any) -> None:
    """Print a text, with invisible characters escaped unless `raw`: all output passes here."""
    visible = text if raw else escape_invisible(text, keep="\n")
    with _writing():
        print(paint(visible, style, options.get("file", sys.stdout)), **options)


def flush() -> None:
    """Write what is buffered; a full disk would show only when the interpreter ends."""
    with _writing():
        sys.stdout.flush()


@contextmanager
def _writing() -> Iterator[None]:
    """Discard further output where it can't be written; convert errors other than a closed pipe."""
    try:
        yield
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
        if isinstance(error, BrokenPipeError):
            raise
        raise errors.FileError.failed("write the output", error) from error


def print_message(message: str, style: str = "") -> None:
    """Print a warning or an error to stderr, in one line."""
    say(f"ledgerkit: {' '.join(hide(message).split())}", style=style, file=sys.stderr)


def print_value(value: Any, shape: Form) -> None:
    """Print a frame, a text, or the result of a view method; `raw` leaves texts as they are."""
    import pandas as pd

    if isinstance(value, Text):
        _print_text(value, raw=shape.raw)
    elif isinstance(value, bytes):
        say(value.hex())
    elif not isinstance(value, pd.DataFrame):
        print_json(value, raw=shape.raw)
    elif shape.format == "table":
        print_table(value, shape)
    else:
        frame = value if shape.columns is None else value[shape.columns]
        print_rows = print_csv if shape.format == "csv" else _print_records
        print_rows(frame, raw=shape.raw)


def _print_text(text: str, *, raw: bool) -> None:
    """Print a text in lines that fit the terminal; its first line is the headline."""
    for index, line in enumerate(text.splitlines()):
        say(wrap(line), raw=raw, style="" if index else "heading")


def wrap(line: str, width: int | None = None) -> str:
    """Break a line at spaces, at the width of the terminal if there is one."""
    most = _terminal_width() if width is None else width
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    return line if most is None else textwrap.fill(line, most, **options)


def print_table(frame: pd.DataFrame, shape: Form) -> None:
    """Print a frame as a table for people, as wide as the terminal if there is one."""
    from ledgerkit.cli import tables

    if frame.empty:
        say(f"no rows ({', '.join(shape.columns or frame.columns)})")
        return
    lines = tables.layout(
        frame,
        shape.columns,
        _terminal_width(),
        exact=shape.exact or shape.raw,  # texts for people are escaped
        raw=shape.raw,
    )
    for line in lines:
        say("".join(paint(text, style) for text, style in line).rstrip(), raw=True)


def print_json(value: Any, *, raw: bool = False) -> None:
    """Print JSON; its escapes of invisible characters leave the document the same."""
    import msgspec

    text = msgspec.json.encode(value, enc_hook=str).decode()  # integers of any size are exact
    say(text if raw else escape_invisible(text, as_json=True), raw=raw)


def print_csv(frame: pd.DataFrame, *, raw: bool, header: bool = True) -> None:
    """Print a frame as CSV, safe for spreadsheets unless `raw`."""
    from ledgerkit.frames.csv_text import csv_text

    if raw:
        text = frame.to_csv(index=False, header=header, lineterminator="\n")
    else:
        text = csv_text(frame, header=header)
    say(text, raw=raw, end="")


def print_json_lines(frame: pd.DataFrame, *, raw: bool) -> None:
    """Print a frame as JSON objects, one a line."""
    for record in _records(frame):
        print_json(record, raw=raw)


def _print_records(frame: pd.DataFrame, *, raw: bool) -> None:
    """Print a frame as a JSON array of objects."""
    print_json(_records(frame), raw=raw)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Convert rows to objects; exact amounts to texts, which no JSON reader rounds."""
    columns: dict[str, list[Any]] = {}
    for name, column in frame.items():
        values = column.astype(object).where(column.notna(), None).tolist()
        as_text = column.dtype == "u128"
        columns[str(name)] = [str(v) if as_text and isinstance(v, int) else v for v in values]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# The terminal -----------------------------------------------------------------------------


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return a text in a style, where the stream is a terminal with colours."""
    if not style or not text.strip() or not _has_colours(stream or sys.stdout):
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def _has_colours(stream: TextIO) -> bool:
    """Return True for a terminal, unless the user turned colours off: https://no-color.org."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and stream.isatty()


def _terminal_width() -> int | None:
    """Return the width of the terminal; None if the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
