"""Print frames, values and messages; in colour on a terminal."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from ledgerkit import errors, remedies
from ledgerkit.redaction import hide
from ledgerkit.visible_text import escape_invisible

if TYPE_CHECKING:
    import argparse

    import pandas as pd

_STYLES = {"heading": "1", "good": "32", "waiting": "33", "bad": "31"}  # SGR: bold and colours


def say(text: str = "", *, raw: bool = False, style: str = "", **options: Any) -> None:
    """Print a text, with invisible characters escaped unless `raw`; this writes all output."""
    visible = text if raw else escape_invisible(text, keep="\n")
    with _writing():
        print(paint(visible, style, options.get("file", sys.stdout)), **options)


def flush() -> None:
    """Write the buffer, so that a full disk is an error before the interpreter ends."""
    with _writing():
        sys.stdout.flush()


@contextmanager
def _writing() -> Iterator[None]:
    """Convert errors of writing, except for a closed pipe, and discard further output."""
    try:
        yield
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
        if isinstance(error, BrokenPipeError):
            raise
        raise errors.FileError.failed("write the output", error) from error


def print_message(message: str, style: str = "") -> None:
    """Print a warning or an error to stderr, in one line, with options as remedies."""
    line = " ".join(hide(remedies.for_command_line(message)).split())
    say(f"ledgerkit: {line}", style=style, file=sys.stderr)


def print_text(text: str, *, raw: bool) -> None:
    """Print a text in lines that fit the terminal; its first line is the headline."""
    for number, line in enumerate(text.splitlines()):
        say(wrap(line), raw=raw, style="" if number else "heading")


def print_value(value: Any, args: argparse.Namespace) -> None:
    """Print a frame or the result of a view method, as the options of a command say."""
    import pandas as pd

    if isinstance(value, bytes):
        say(value.hex())
    elif not isinstance(value, pd.DataFrame):
        print_json(value, raw=args.raw_texts)
    elif args.format == "table":
        exact = args.exact or args.raw_texts  # texts for people are escaped
        print_table(value, args.columns, exact=exact, raw=args.raw_texts)
    else:
        print_rows(value, args)


def wrap(line: str, width: int | None = None) -> str:
    """Break a line at spaces, at the width of the terminal if there is one."""
    most = _terminal_width() if width is None else width
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    return line if most is None else textwrap.fill(line, most, **options)


def print_table(
    frame: pd.DataFrame, columns: list[str] | None = None, *, exact: bool = False, raw: bool = False
) -> None:
    """Print a frame as a table for people, as wide as the terminal if there is one."""
    from ledgerkit.cli import tables

    if frame.empty:
        say(f"no rows ({', '.join(columns or frame.columns)})")
        return
    for line in tables.layout(frame, columns, _terminal_width(), exact=exact, raw=raw):
        say("".join(paint(text, style) for text, style in line).rstrip(), raw=True)


def print_rows(
    frame: pd.DataFrame, args: argparse.Namespace, *, header: bool = True, as_lines: bool = False
) -> None:
    """Print rows as CSV, safe for spreadsheets unless `raw`, or as JSON: an array, or lines."""
    from ledgerkit import cards
    from ledgerkit.frames.csv_text import csv_text

    rows = frame if args.columns is None else frame[args.columns]
    raw = args.raw_texts
    if args.format == "json":
        # As texts, exact amounts are not rounded by any JSON reader.
        amounts = {name: "string" for name, kind in rows.dtypes.items() if kind in ("u128", "i129")}
        records = cards.records(rows.astype(amounts), len(rows))
        for value in records if as_lines else [records]:
            print_json(value, raw=raw)
    elif raw:
        say(rows.to_csv(index=False, header=header, lineterminator="\n"), raw=True, end="")
    else:
        say(csv_text(rows, header=header), end="")


def print_json(value: Any, *, raw: bool = False) -> None:
    """Print JSON; its escapes of invisible characters leave the document the same."""
    import msgspec

    text = msgspec.json.encode(value, enc_hook=str).decode()  # integers of any size are exact
    say(text if raw else escape_invisible(text, as_json=True), raw=raw)


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return a text in a style, on a terminal unless NO_COLOR is set (https://no-color.org)."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if not style or not text.strip() or is_plain or not (stream or sys.stdout).isatty():
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def _terminal_width() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
