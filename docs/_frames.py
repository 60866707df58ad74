"""The page of the frames: their columns, as `ledgerkit.schema` lists them, and their verbs."""

# ruff: noqa: INP001 - a part of the extension, in no package

from __future__ import annotations

import functools
import inspect
import re
from typing import TYPE_CHECKING, Any

import _pages
import _text

import ledgerkit
from ledgerkit import plots, widgets
from ledgerkit.frames import schemas
from ledgerkit.frames.schemas import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Iterator

MENTION = re.compile(r'`+schema\("(\w+)"\)`+')
BY_NO_VERB = {"requests": "the command line, with ``--dry-run``"}
HEADER = ("Column", "Dtype", "Unit", "Meaning")


def page() -> str:
    """Return the page: a table of all frames, then each with its columns."""
    links = sources()
    head = _text.heading("Frames") + INTRODUCTION + f"{DTYPES}\n\n"
    return head + index(links) + "".join(section(name, links[name]) for name in SCHEMAS)


def sources() -> dict[str, list[str]]:
    """Return for each frame the links to the verbs and attributes that return it."""
    links: dict[str, list[str]] = {name: [] for name in SCHEMAS}
    for module, name, thing in callables():
        for frame in frames_of(name, thing):
            links[frame].append(f":py:obj:`{name} <{module}.{name}>`")
    for frame, words in BY_NO_VERB.items():
        links[frame].append(words)
    return links


def callables() -> Iterator[tuple[str, str, Any]]:
    """Yield each function, class and class member of the package with its module and name."""
    for entry in _pages.entries():
        if entry.module not in {plots.__name__, widgets.__name__}:
            yield entry.module, entry.name, entry.thing
            for name, member in members(entry.thing):
                yield entry.module, f"{entry.name}.{name}", member


def members(thing: Any) -> list[tuple[str, Any]]:
    """Return a class's own public members; a function has none."""
    if not inspect.isclass(thing):
        return []
    return [(name, member) for name, member in vars(thing).items() if not name.startswith("_")]


def frames_of(name: str, thing: Any) -> set[str]:
    """
    Return the frames of a callable: those its docstring names, and the one of its own name.

    Verbs with `on_error` also return the frame of failures.
    """
    frames = set(MENTION.findall(inspect.getdoc(thing) or ""))
    own = name.rpartition(".")[2]
    if isinstance(thing, functools.cached_property):
        returned = str(thing.func.__annotations__.get("return"))
        frames |= {own} & set(SCHEMAS) if returned.endswith("DataFrame") else set()
    elif own == name and "on_error" in inspect.signature(thing).parameters:
        frames.add("errors")
    return frames


def section(name: str, links: list[str]) -> str:
    """Format one frame: its verbs and its columns."""
    columns = ledgerkit.schema(name).itertuples(index=False)
    return (
        f".. _frame-{name}:\n\n"
        + _text.heading(name, "-")
        + f'The columns of ``lk.schema("{name}")``. Returned by {", ".join(links)}.\n\n'
        + _text.table(HEADER, map(cells, columns), "2 1 1 4")
    )


def cells(column: Any) -> tuple[str, str, str, str]:
    """Format one column's row."""
    name, dtype, unit, meaning = column
    return f"``{name}``", f"``{dtype}``", _text.plain(unit), _text.plain(meaning)


def index(links: dict[str, list[str]]) -> str:
    """Format the table of all frames."""
    rows = [
        (f":ref:`{name} <frame-{name}>`", ", ".join(links[name]), str(len(SCHEMAS[name])))
        for name in SCHEMAS
    ]
    return _text.table(("Frame", "Returned by", "Columns"), rows, "2 5 1")


INTRODUCTION = """\
A frame always has the same columns, in the same order and with the same dtypes, also when it has
no rows. Unknown values are missing, never 0. The dtypes:

"""
DTYPES = (inspect.getdoc(schemas) or "").partition("words:\n\n")[2]
