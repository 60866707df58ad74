"""The page of the errors: the tree of classes, each with its sentence and its remedy."""

# ruff: noqa: INP001 - a part of the extension, in no package

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import _text

from ledgerkit import errors
from ledgerkit.api import chain_errors  # whose classes are branches of the tree
from ledgerkit.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator

AGAIN = "The same request may work soon."
ELSEWHERE = "Another host, such as an archival one, may know."
INTRODUCTION = f"""\
Every error reads as a sentence and ends in what to do next. All are ``lk.LedgerError``; the
classes are those of ``lk.errors`` and, for the reasons that the chain itself gives, of
``{chain_errors.__name__}``.
To catch a branch is to catch all below it. In the sentences, a name between braces is an
attribute of the error, and its value stands there.

"""


def tree(error: type[LedgerError] = LedgerError, depth: int = 0) -> Iterator[tuple[int, type]]:
    """Walk the package's own classes from the root down, with the depth of each."""
    yield depth, error
    for below in error.__subclasses__():
        if below.__module__.startswith("ledgerkit.") and not below.__name__.startswith("_"):
            yield from tree(below, depth + 1)


@functools.cache
def names() -> frozenset[str]:
    """Return the name of every class of the tree."""
    return frozenset(error.__name__ for _, error in tree())


def page() -> str:
    """Write the tree as links, then each class."""
    found = list(tree())
    text = _text.heading("Errors") + INTRODUCTION + _text.heading("The tree", "-")
    text += "\n\n".join(branch(depth, error) for depth, error in found) + "\n\n"
    return text + _text.heading("The classes", "-") + "\n".join(entry(error) for _, error in found)


def branch(depth: int, error: type) -> str:
    """Write a class's line of the tree."""
    return f"{'  ' * depth}- {link(error)}"


def link(error: type) -> str:
    """Write a link to a class's entry."""
    return f":py:exc:`{error.__name__} <{home(error)}.{error.__name__}>`"


def home(error: type) -> str:
    """Name the module that a class is listed in: that of all, unless another has the name there."""
    own = getattr(errors, error.__name__, error) is error
    return errors.__name__ if own else chain_errors.__name__


def entry(error: type[LedgerError]) -> str:
    """Write what a class says: when it is raised, its sentence, and what to do."""
    told = {
        "A kind of": link(error.__base__) if error is not LedgerError else "",
        "Sentence": _text.plain(error.template),
        "What to do": _text.plain(error.remedy),
        "Besides": " ".join(hints(error)),
        "Attributes": ", ".join(f"``{name}``" for name in error.fields),
    }
    lines = [f":{name}: {words}" for name, words in told.items() if words]
    body = [_text.plain(_text.summary(error)), "", *lines]
    head = f".. exception:: {error.__name__}\n   :module: {home(error)}\n\n"
    return head + "".join(f"   {line}\n" for line in body)


def hints(error: type[LedgerError]) -> list[str]:
    """Say whether asking again, or elsewhere, may help."""
    return [AGAIN] * error.retryable + [ELSEWHERE] * error.elsewhere
