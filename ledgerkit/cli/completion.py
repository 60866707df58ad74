"""Completion of commands, options and values in bash, zsh and fish, by argcomplete."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ledgerkit.cli import exit_codes, output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

SHELLS = ("bash", "zsh", "fish")
_FILES = ("ids", "out", "before", "after", "path", "from_file", "save")
_VIEWS = ("accounts", "ft", "nft", "staking", "exposure")
_BLOCK_VIEWS = (
    *("blocks", "chunks", "transactions", "receipts", "events", "transfers"),
    *("outcomes", "actions", "balances", "data_receipts"),
)
_VALUES = {
    "network": ("mainnet", "testnet", "local"),
    "name": ("demo", "empty", "crowd"),
    "view": _VIEWS,
    **dict.fromkeys(("at", "start", "stop", "until"), ("final", "genesis", "optimistic")),
}
_VALUES_OF_VIEWS = {
    "collect": _VIEWS,
    "collect-blocks": _BLOCK_VIEWS,
    "follow": _BLOCK_VIEWS,
    "history": ("accounts", "ft", "staking"),
}


def words() -> list[str] | None:
    """Return the words of the line to complete; None if the program is to run a command."""
    return os.environ["COMP_LINE"].split() if "_ARGCOMPLETE" in os.environ else None


def complete(parser: argparse.ArgumentParser) -> None:
    """Print the candidates for the line to complete, and exit."""
    import argcomplete

    argcomplete.autocomplete(parser, always_complete_options=False)


def set_completer(action: argparse.Action) -> None:
    """Set what completes an argument; without a completer, argcomplete completes files."""
    if action.choices is None and action.dest not in _FILES:
        completer = {"columns": _columns, "views": _views}.get(action.dest, _values)
        action.completer = completer  # type: ignore[attr-defined]  # argcomplete reads it


def _values(action: argparse.Action, **_: Any) -> tuple[str, ...]:
    return _VALUES.get(action.dest, ())


def _views(prefix: str, parser: Any, **_: Any) -> Mapping[str, str]:
    views = _VALUES_OF_VIEWS[parser.prog.split()[-1]]
    return _next_in_list(dict.fromkeys(views, ""), prefix)


def _columns(prefix: str, parser: Any, **_: Any) -> Mapping[str, str]:
    """Return the columns of the frame that a command prints, with their meanings."""
    from ledgerkit.frames.schemas import SCHEMAS

    schema = parser.get_default("spec").frame(parser.namespace)
    columns = {column.name: column.meaning for column in SCHEMAS.get(schema, ())}
    return _next_in_list(columns, prefix)


def _next_in_list(candidates: Mapping[str, str], prefix: str) -> Mapping[str, str]:
    """Return candidates for the last name of a list that is separated by commas."""
    before, comma, _last = prefix.rpartition(",")
    used = before.split(",")
    return {before + comma + name: text for name, text in candidates.items() if name not in used}


def print_script(args: argparse.Namespace, _result: object) -> int:
    """Print the script that a shell reads at its start."""
    from argcomplete.shell_integration import shellcode

    script = shellcode(["ledgerkit"], use_defaults=False, shell=args.shell)
    output.say(script, raw=True)
    return exit_codes.SUCCESS
