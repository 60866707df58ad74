"""The pages of the errors: a page per branch, each class with its message and its remedy."""

# ruff: noqa: INP001 - a part of the extension, in no package

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import _text

from ledgerkit import errors
from ledgerkit.api import chain_errors  # its classes are part of the tree
from ledgerkit.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator

RETRYABLE = "The same request may work later."
ELSEWHERE = "Another host, such as an archival one, may know the answer."
INTRODUCTION = f"""\
Every error is an ``lk.LedgerError``. Its message says what is wrong and what to do. The classes
are in ``lk.errors``; those for the chain's own reasons are in ``{chain_errors.__name__}``.
Catching a class catches all classes below it. Each branch has a page; in the messages there, a
name in braces stands for the value of that attribute.

"""


def tree(error: type[LedgerError] = LedgerError, depth: int = 0) -> Iterator[tuple[int, type]]:
    """Yield the package's own classes from the root down, with the depth of each."""
    yield depth, error
    for subclass in error.__subclasses__():
        if subclass.__module__.startswith("ledgerkit.") and not subclass.__name__.startswith("_"):
            yield from tree(subclass, depth + 1)


@functools.cache
def names() -> frozenset[str]:
    """Return the names of all classes of the tree."""
    return frozenset(error.__name__ for _, error in tree())


def pages() -> dict[str, str]:
    """Return the overview and a page for each branch, by their paths."""
    branches = {f"errors/{error.__name__}": branch(error) for error in subclasses()}
    return {"errors/index": index(), **branches}


def subclasses() -> list[type[LedgerError]]:
    """Return the classes directly below the root."""
    return [error for depth, error in tree() if depth == 1]


def index() -> str:
    """Return the overview: the branches, the root, then the whole tree as links."""
    rows = [
        (link(error), _text.plain(_text.summary(error)), str(len(list(tree(error)))))
        for error in subclasses()
    ]
    return (
        _text.heading("Errors")
        + INTRODUCTION
        + _text.table(("Branch", "Meaning", "Classes"), rows, "3 6 1")
        + f"{entry(LedgerError)}\n"
        + _text.heading("All classes", "-")
        + outline(LedgerError)
        + _text.toctree(error.__name__ for error in subclasses())
    )


def branch(error: type[LedgerError]) -> str:
    """Return a branch's page: its classes as links, then each with its message and remedy."""
    classes = [subclass for _, subclass in tree(error)]
    text = _text.heading(error.__name__)
    text += outline(error) if len(classes) > 1 else ""
    return text + "\n".join(map(entry, classes))


def outline(error: type[LedgerError]) -> str:
    """Format the classes from one down as a list of links."""
    lines = [f"{'  ' * depth}- {link(subclass)}" for depth, subclass in tree(error)]
    return "\n\n".join(lines) + "\n\n"


def link(error: type) -> str:
    """Format a link to a class's entry."""
    return f":py:exc:`{error.__name__} <{home(error)}.{error.__name__}>`"


def home(error: type) -> str:
    """Return the module a class is listed under; a name used twice is listed under its own."""
    own = getattr(errors, error.__name__, error) is error
    return errors.__name__ if own else chain_errors.__name__


def entry(error: type[LedgerError]) -> str:
    """Format a class: when it is raised, its message, and what to do."""
    fields = {
        "A kind of": link(error.__base__) if error is not LedgerError else "",
        "Message": _text.plain(error.template),
        "What to do": _text.plain(error.remedy),
        "Also": " ".join(hints(error)),
        "Attributes": ", ".join(f"``{name}``" for name in error.fields),
    }
    lines = [f":{name}: {words}" for name, words in fields.items() if words]
    body = [_text.plain(_text.summary(error)), "", *lines]
    head = f".. exception:: {error.__name__}\n   :module: {home(error)}\n"
    return f"{head}   :no-contents-entry:\n\n" + "".join(f"   {line}\n" for line in body)


def hints(error: type[LedgerError]) -> list[str]:
    """Return notes on whether a retry, or another host, may help."""
    return [RETRYABLE] * error.retryable + [ELSEWHERE] * error.elsewhere
