"""A page for each public name, and the index that groups them; both made of `__all__`."""

# ruff: noqa: INP001 - a part of the extension, in no package

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import _text

import ledgerkit
from ledgerkit import plots, widgets

TYPES = "Types"
REST = "More"  # what has no group yet is found all the same
# The first line that fits a name's home.
GROUPS = {
    "ledgerkit.client": "Opening a ledger",
    "ledgerkit.verbs.accounts": "Looking up accounts",
    "ledgerkit.verbs.history": "Looking up accounts",
    "ledgerkit.verbs.tokens": "Tokens and staking",
    "ledgerkit.verbs.contracts": "Contracts",
    "ledgerkit.verbs.transactions": "Transactions and their receipts",
    "ledgerkit.verbs.blocks": "Blocks and the node",
    "ledgerkit.verbs.node": "Blocks and the node",
    "ledgerkit.sending.verbs": "Sending",
    "ledgerkit.sending.signers": "Sending",
    "ledgerkit.collecting": "Collecting, and what changed",
    "ledgerkit.archiving": "Archiving",
    "ledgerkit.verbs.cache": "What is kept on disk",
    "ledgerkit.u128": "Amounts and files, in bulk",
    "ledgerkit.verbs.saved_responses": "Amounts and files, in bulk",
    "ledgerkit.frames.build": "Amounts and files, in bulk",
    "ledgerkit.widgets": "Widgets",
    "ledgerkit.plots": "Plots",
}
ORDER = [*dict.fromkeys(GROUPS.values()), REST, TYPES]


class Entry(NamedTuple):
    """A public name: what it is, where its page is, and in which group."""

    module: str
    name: str
    thing: Any
    group: str

    @property
    def place(self) -> str:
        """Name the page; `Trace` and `trace` are one file to some file systems."""
        folder = "types" if self.group == TYPES else self.module.replace("ledgerkit", "verbs", 1)
        return f"{folder.removeprefix('verbs.')}/{self.name}"


def entries() -> list[Entry]:
    """Find every public function and class, each once."""
    found: dict[Any, Entry] = {}
    for module in (ledgerkit, plots, widgets):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                found.setdefault(thing, Entry(module.__name__, name, thing, group(module, thing)))
    return list(found.values())


def group(module: Any, thing: Any) -> str:
    """Say under which heading a reader looks for it."""
    if inspect.isclass(thing) and module is ledgerkit:
        return TYPES
    home = f"{thing.__module__}."
    return next((told for start, told in GROUPS.items() if home.startswith(f"{start}.")), REST)


def pages() -> dict[str, str]:
    """Write the index, and a page for each name."""
    found = entries()
    return {"index": index(found), **{entry.place: page(entry) for entry in found}}


def page(entry: Entry) -> str:
    """Write the page of one name: its docstring."""
    kind = "class" if inspect.isclass(entry.thing) else "function"
    return (
        _text.heading(entry.name)
        + f".. currentmodule:: {entry.module}\n\n"
        + f".. auto{kind}:: {entry.name}\n"
    )


def index(found: list[Entry]) -> str:
    """Write the index: a table for each group."""
    text = _text.heading("Reference") + INTRODUCTION
    for title in ORDER:
        if group_of := [entry for entry in found if entry.group == title]:
            text += _text.heading(title, "-") + _text.table(HEADER, map(row, group_of), "1 3")
            text += _text.toctree(entry.place for entry in group_of)
    return text


HEADER = ("Name", "What it is for")
INTRODUCTION = """\
Every name is one of ``import ledgerkit as lk``: ``lk.ft(…)``, ``lk.plots.timeline(…)``.
What each frame holds, column by column, stands among the :doc:`frames <frames>`, and what
can go wrong, with what to do then, among the :doc:`errors <errors>`.

"""


def row(entry: Entry) -> tuple[str, str]:
    """Write a name's line of the index."""
    return f":doc:`{entry.name} <{entry.place}>`", _text.plain(_text.summary(entry.thing))
