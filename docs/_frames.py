"""The page of the frames: their columns, as `ledgerkit.schema` tells them, and who gives them."""

# ruff: noqa: INP001 - a part of the extension, in no package

from __future__ import annotations

import functools
import inspect
import re
from typing import TYPE_CHECKING, Any

import _pages
import _text

import ledgerkit
from ledgerkit.frames import schemas
from ledgerkit.frames.schemas import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Iterator

MENTION = re.compile(r'`+schema\("(\w+)"\)`+')
BY_NO_VERB = {"requests": "the command line, with ``--dry-run``"}
HEADER = ("Column", "Dtype", "Unit", "Meaning")


def page() -> str:
    """Write the list of all frames, then each with its columns."""
    given = givers()
    head = _text.heading("Frames") + INTRODUCTION + f"{DTYPES}\n\n"
    return head + index(given) + "".join(section(name, given[name]) for name in SCHEMAS)


def givers() -> dict[str, list[str]]:
    """Tell for each frame, as links, what gives it."""
    given: dict[str, list[str]] = {name: [] for name in SCHEMAS}
    for name, thing in callables():
        for frame in promised(name, thing):
            given[frame].append(f":py:obj:`{name} <ledgerkit.{name}>`")
    for frame, words in BY_NO_VERB.items():
        given[frame].append(words)
    return given


def callables() -> Iterator[tuple[str, Any]]:
    """Give each function and class of the package, and what the classes offer, by their names."""
    for entry in _pages.entries():
        if entry.module == "ledgerkit":
            yield entry.name, entry.thing
            for name, member in members(entry.thing):
                yield f"{entry.name}.{name}", member


def members(thing: Any) -> list[tuple[str, Any]]:
    """Find a class's own members; a function has none."""
    if not inspect.isclass(thing):
        return []
    return [(name, member) for name, member in vars(thing).items() if not name.startswith("_")]


def promised(name: str, thing: Any) -> set[str]:
    """
    Find the frames of one callable: those its docstring names, and that of its own name.

    Failures come as a frame of their own, where a verb collects them.
    """
    found = set(MENTION.findall(inspect.getdoc(thing) or ""))
    own = name.rpartition(".")[2]
    if isinstance(thing, functools.cached_property):
        returned = str(thing.func.__annotations__.get("return"))
        found |= {own} & set(SCHEMAS) if returned.endswith("DataFrame") else set()
    elif own == name and "on_error" in inspect.signature(thing).parameters:
        found.add("errors")
    return found


def section(name: str, given: list[str]) -> str:
    """Write one frame: who gives it, and its columns."""
    columns = ledgerkit.schema(name).itertuples(index=False)
    return (
        f".. _frame-{name}:\n\n"
        + _text.heading(name, "-")
        + f'What ``lk.schema("{name}")`` shows. Given by {", ".join(given)}.\n\n'
        + _text.table(HEADER, map(cells, columns), "2 1 1 4")
    )


def cells(column: Any) -> tuple[str, str, str, str]:
    """Write one column's line."""
    name, dtype, unit, meaning = column
    return f"``{name}``", f"``{dtype}``", _text.plain(unit), _text.plain(meaning)


def index(given: dict[str, list[str]]) -> str:
    """Write the table of all frames."""
    rows = [
        (f":ref:`{name} <frame-{name}>`", ", ".join(given[name]), str(len(SCHEMAS[name])))
        for name in SCHEMAS
    ]
    return _text.table(("Frame", "Given by", "Columns"), rows, "2 5 1")


INTRODUCTION = """\
A frame is a promise: the same columns, in the same order and of the same dtypes, for no rows as
for a million. What is not known is missing, never 0. The words for the dtypes:

"""
DTYPES = (inspect.getdoc(schemas) or "").partition("words:\n\n")[2]
