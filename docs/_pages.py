"""A page for each name in `__all__`, and the index that groups them."""

# ruff: noqa: INP001 - a part of the extension, in no package

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import _text

import ledgerkit
from ledgerkit import archiving, plots, types, widgets

TYPES = "Types"
MORE = "More"  # a name without a group is listed all the same
# The group of the first module that a name is defined in or below.
GROUPS = {
    "ledgerkit.client": "Opening a ledger",
    "ledgerkit.verbs.doctor": "Opening a ledger",
    "ledgerkit.verbs.accounts": "Accounts",
    "ledgerkit.verbs.history": "Accounts",
    "ledgerkit.verbs.account_history": "Accounts",
    "ledgerkit.verbs.activity": "Accounts",
    "ledgerkit.reconciling": "Accounts",
    "ledgerkit.verbs.tokens": "Tokens and staking",
    "ledgerkit.verbs.lockups": "Tokens and staking",
    "ledgerkit.verbs.contracts": "Contracts",
    "ledgerkit.verbs.transactions": "Transactions and their receipts",
    "ledgerkit.verbs.blocks": "Blocks and the node",
    "ledgerkit.verbs.node": "Blocks and the node",
    "ledgerkit.sending.verbs": "Sending",
    "ledgerkit.sending.simulation": "Sending",
    "ledgerkit.sending.signers": "Sending",
    "ledgerkit.collecting": "Collecting and comparing",
    "ledgerkit.archiving": "Archiving",
    "ledgerkit.verbs.cache": "Caching",
    "ledgerkit.u128": "Amounts and files",
    "ledgerkit.verbs.saved_responses": "Amounts and files",
    "ledgerkit.verbs.recordings": "Recording",
    "ledgerkit.frames.build": "Amounts and files",
    "ledgerkit.frames.excel": "Amounts and files",
    "ledgerkit.frames.human": "Amounts and files",
    "ledgerkit.widgets": "Panels",
    "ledgerkit.plots": "Plots",
}
ORDER = [*dict.fromkeys(GROUPS.values()), MORE, TYPES]


class Entry(NamedTuple):
    """A public name with its object and its group."""

    module: str
    name: str
    thing: Any
    group: str

    @property
    def place(self) -> str:
        """The page's path; some file systems take `Trace` and `trace` for the same file."""
        folder = "types" if self.group == TYPES else self.module.replace("ledgerkit", "verbs", 1)
        return f"{folder.removeprefix('verbs.')}/{self.name}"


def entries() -> list[Entry]:
    """Return every public function and class, each once."""
    by_thing: dict[Any, Entry] = {}
    public = {module: module.__all__ for module in (ledgerkit, types, plots, widgets)}
    public[archiving] = ["archive_widget", "verify_archive"]
    for module, names in public.items():
        for name in names:
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                entry = Entry(module.__name__, name, thing, group(module, thing))
                by_thing.setdefault(thing, entry)
    return list(by_thing.values())


def group(module: Any, thing: Any) -> str:
    """Return the heading that a name is listed under."""
    if inspect.isclass(thing) and module in {ledgerkit, types}:
        return TYPES
    home = f"{thing.__module__}."
    return next((title for start, title in GROUPS.items() if home.startswith(f"{start}.")), MORE)


def pages() -> dict[str, str]:
    """Return the index and a page for each name, by their paths."""
    names = entries()
    return {"index": index(names), **{entry.place: page(entry) for entry in names}}


def page(entry: Entry) -> str:
    """Return the page of one name: its picture, if there is one, and its docstring."""
    kind = "class" if inspect.isclass(entry.thing) else "function"
    return (
        _text.heading(entry.name)
        + picture(entry)
        + f".. currentmodule:: {entry.module}\n\n"
        + f".. auto{kind}:: {entry.name}\n"
    )


def picture(entry: Entry) -> str:
    """Return the picture of a plot, which has the plot's name."""
    if entry.module != plots.__name__:
        return ""
    words = f"An example of lk.plots.{entry.name}"
    return f".. image:: ../../pictures/{entry.name}.png\n   :alt: {words}\n\n"


def index(names: list[Entry]) -> str:
    """Return the index: a table for each group."""
    text = _text.heading("Reference") + INTRODUCTION
    for title in ORDER:
        if members := [entry for entry in names if entry.group == title]:
            text += _text.heading(title, "-") + _text.table(HEADER, map(row, members), "1 3")
            text += _text.toctree(entry.place for entry in members)
    return text


HEADER = ("Name", "Purpose")
INTRODUCTION = """\
All names are those of ``import ledgerkit as lk``: ``lk.ft(…)``, ``lk.plots.timeline(…)``. The
types that only annotations need are in ``ledgerkit.types``.
:doc:`Frames <frames>` lists the columns of each frame, :doc:`errors <errors/index>` what can go
wrong and what to do.

Each page ends in an example that runs on the embedded ledger: it needs no network, and prints the
same on every machine.

"""


def row(entry: Entry) -> tuple[str, str]:
    """Format a name's row of the index."""
    return f":doc:`{entry.name} <{entry.place}>`", _text.plain(_text.summary(entry.thing))
