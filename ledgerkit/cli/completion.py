"""Completion of commands, options and values in bash, zsh and fish, by argcomplete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit.cli import exit_codes, output
from ledgerkit.frames.collected import VIEWS

if TYPE_CHECKING:
    import argparse

SHELLS = ("bash", "zsh", "fish")
FILES = ("ids", "out", "before", "after", "path", "from_file", "save")
_VALUES = {
    "name": ("demo", "empty", "crowd"),
    "view": VIEWS["accounts"],
    **dict.fromkeys(("at", "start", "stop", "until"), ("final", "genesis", "optimistic")),
}


def complete(parser: argparse.ArgumentParser) -> None:
    """Print the candidates for the line of a shell, and exit."""
    import argcomplete

    argcomplete.autocomplete(parser, always_complete_options=False)


def candidates(prefix: str, action: argparse.Action, parser: Any, **_: Any) -> dict[str, str]:
    """Return candidates with their descriptions; of a list, those that it does not have yet."""
    if action.dest == "columns":
        from ledgerkit.frames.schemas import SCHEMAS

        schema = parser.get_default("spec").frame(parser.namespace)
        values = {column.name: column.meaning for column in SCHEMAS.get(schema, ())}
    elif action.dest == "views":
        views = {"history": ("accounts", "ft", "staking"), "collect": VIEWS["accounts"]}
        values = dict.fromkeys(views.get(parser.prog.split()[-1], VIEWS["blocks"]), "")
    elif action.dest == "network":
        from ledgerkit.transport import networks

        return dict.fromkeys(networks.PRESETS, "")
    else:
        return dict.fromkeys(_VALUES.get(action.dest, ()), "")
    before, comma, _last = prefix.rpartition(",")
    used = before.split(",")
    return {before + comma + name: text for name, text in values.items() if name not in used}


def print_script(args: argparse.Namespace, _result: object) -> int:
    """Print the script that a shell reads at its start."""
    from argcomplete.shell_integration import shellcode

    output.say(shellcode(["ledgerkit"], use_defaults=False, shell=args.shell), raw=True)
    return exit_codes.SUCCESS
