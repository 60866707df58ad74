"""The sections of docstrings, and the descriptions that several functions share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_ORDER = ("Parameters", "Attributes", "Returns", "Raises", "Warns", "Notes", "Examples")
_SECTION = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)
_ENTRY = re.compile(r"\n(?=\S)")  # the next parameter or error begins here


def share(function: F, parameters: Mapping[str, str], errors: Mapping[str, str]) -> F:
    """
    Add shared descriptions of the function's parameters, and of errors, to its docstring.

    Entries that the docstring already has are kept.
    """
    names = inspect.signature(function).parameters

    def add(sections: dict[str, str]) -> None:
        entries = {name: f"{name}\n    {parameters[name]}" for name in names if name in parameters}
        for entry in filter(None, _ENTRY.split(sections.get("Parameters", ""))):
            entries |= dict.fromkeys(entry.partition("\n")[0].split(", "), entry)
        listed = dict.fromkeys(entries[name] for name in names if name in entries)
        if listed:
            sections["Parameters"] = "\n".join(listed)
        for name, text in errors.items():
            raised = sections.get("Raises", "")
            if f"\n{name}\n" not in f"\n{raised}":
                sections["Raises"] = f"{raised}\n{name}\n    {text}".strip()

    return complete(function, add)


def complete(function: F, add: Callable[[dict[str, str]], None]) -> F:
    """Complete the sections of a function's docstring by `add`."""
    if function.__doc__ is None:  # python -OO
        return function
    summary, *parts = _SECTION.split(inspect.cleandoc(function.__doc__))
    sections = dict(zip(parts[::2], (part.strip("\n") for part in parts[1::2]), strict=True))
    add(sections)
    texts = [f"{name}\n{'-' * len(name)}\n{sections[name]}" for name in _ORDER if name in sections]
    function.__doc__ = "\n\n".join([summary.strip(), *texts])
    return function


def docstring_texts(function: Callable[..., Any]) -> dict[str, str]:
    """Return the summary of a docstring as "", and the descriptions of parameters by name."""
    summary, *sections = _SECTION.split(inspect.getdoc(function) or "")
    text = dict(zip(sections[::2], sections[1::2], strict=True)).get("Parameters", "")
    entries = (entry.partition("\n") for entry in _ENTRY.split(text.strip()))
    texts = {name: " ".join(lines.replace("``", "").split()) for name, _, lines in entries}
    return texts | {"": summary.strip().partition("\n")[0]}
