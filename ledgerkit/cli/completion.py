"""Completion of commands, options and values in bash, zsh and fish."""

from __future__ import annotations

import argparse
from itertools import pairwise
from typing import TYPE_CHECKING

from ledgerkit.cli import arguments as shared
from ledgerkit.cli import output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerkit.cli.reading import Command
    from ledgerkit.cli.tasks import Task

    Candidate = tuple[str, str]  # a text with its description

FILES = ":files"  # asks the shell to complete names of files
_FILES = ("ids", "out", "before", "after", "from_file", "save")
_BLOCKS = ("final", "genesis", "optimistic")
_VALUES = {
    "network": ("mainnet", "testnet", "local"),
    "world": ("demo", "empty", "crowd"),
    "view": ("accounts", "ft", "nft", "staking", "exposure"),
    **dict.fromkeys(("at", "block", "start", "stop", "until"), _BLOCKS),
}
_VIEWS = {
    "collect": "accounts ft nft staking exposure".split(),
    **dict.fromkeys(
        ("collect-blocks", "follow"),
        (
            "blocks chunks transactions receipts events transfers"
            " outcomes actions balances data_receipts"
        ).split(),
    ),
    "history": "accounts ft staking".split(),
}

# Each script runs the command with the words before the cursor, of which the last may be empty.
# It prints a candidate a line, with its description after a tab.
SCRIPTS = {
    "bash": """\
_ledgerkit() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == :files ]]; then compopt -o default; return; fi
        COMPREPLY+=("${line%%$'\\t'*}")
    done < <("$1" completion bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _ledgerkit ledgerkit
""",
    "zsh": """\
_ledgerkit() {
    local line text
    local -a candidates
    while IFS= read -r line; do
        if [[ $line == :files ]]; then _files; return; fi
        text=${line%%$'\\t'*}
        candidates+=("${text//:/\\\\:}${${line#$text}/$'\\t'/:}")
    done < <("$words[1]" completion zsh "${(@)words[2,CURRENT]}" 2>/dev/null)
    _describe ledgerkit candidates
}
compdef _ledgerkit ledgerkit
""",
    "fish": """\
function __ledgerkit_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($words[1] completion fish $words[2..-1] "$current" 2>/dev/null)
    if test "$lines[1]" = ":files"
        __fish_complete_path "$current"
    else
        string join \\n -- $lines
    end
end
complete -c ledgerkit -f -a "(__ledgerkit_candidates)"
""",
}


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `completion`."""
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="the shell that reads the script")
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Print the script of a shell; with words, the candidates for the last one."""
    if not args.words:
        output.say(SCRIPTS[args.shell], end="")
    for text, description in candidates(args.words) if args.words else ():
        output.say(f"{text}\t{description}" if description else text, raw=True)
    return 0


def candidates(words: Sequence[str]) -> list[Candidate]:
    """Return the candidates for the last word, which may be empty."""
    from ledgerkit.cli.reading import COMMANDS
    from ledgerkit.cli.tasks import TASKS

    *before, current = words
    commands: dict[str, Command | Task] = COMMANDS | TASKS
    if before:
        command = commands.get(before[0])
        choices = [] if command is None else _of_command(command, before, current)
    elif current.startswith("-"):
        choices = [("--help", "show all commands"), ("--version", "show the version")]
    else:
        choices = [(name, command.help) for name, command in commands.items()]
    return [(text, hint) for text, hint in choices if text == FILES or text.startswith(current)]


def _of_command(command: Command | Task, words: Sequence[str], current: str) -> list[Candidate]:
    """Return options of a command, or values of its option or argument at the cursor."""
    parser = shared.Parser()
    command.declare(parser)
    options = {name: action for action in parser.actions for name in action.option_strings}
    action = options.get(words[-1])
    if action is None or not _takes_value(action):
        if current.startswith("-"):
            return [(name, o.help or "") for name, o in options.items() if name.startswith("--")]
        action = _argument(parser.actions, options, words[1:])
    return [] if action is None else _values(action, command, words, current)


def _takes_value(action: argparse.Action | None) -> bool:
    """Return True for an option that is followed by its value."""
    return action is not None and action.nargs is None


def _argument(
    actions: Sequence[argparse.Action],
    options: dict[str, argparse.Action],
    words: Sequence[str],
) -> argparse.Action | None:
    """Return the argument at the cursor; the last one of a command may be repeated."""
    n_before = sum(
        not word.startswith("-") and not _takes_value(options.get(previous))
        for previous, word in pairwise(["", *words])
    )
    arguments = [action for action in actions if not action.option_strings]
    if n_before < len(arguments):
        return arguments[n_before]
    return arguments[-1] if arguments and arguments[-1].nargs == "*" else None


def _values(
    action: argparse.Action, command: Command | Task, words: Sequence[str], current: str
) -> list[Candidate]:
    """Return the values of an option or an argument, as far as they are known."""
    if action.choices is not None:
        return [(str(choice), "") for choice in action.choices]
    if action.dest in _FILES:
        return [(FILES, "")]
    if action.dest == "columns":
        return _listed(_columns(command, words), current)
    if action.dest == "views":
        return _listed([(view, "") for view in _VIEWS[words[0]]], current)
    return [(value, "") for value in _VALUES.get(action.dest, ())]


def _listed(choices: Sequence[Candidate], current: str) -> list[Candidate]:
    """Return the choices for the last name of a list that is separated by commas."""
    before, comma, _ = current.rpartition(",")
    used = before.split(",")
    return [(before + comma + name, hint) for name, hint in choices if name not in used]


def _columns(command: Command | Task, words: Sequence[str]) -> list[Candidate]:
    """Return the columns of the frame that a command prints."""
    from ledgerkit.frames.schemas import SCHEMAS

    values = dict(pairwise(words))
    flags = {name: f"--{name}" in words for name in ("metadata", "positions", "pool")}
    args = argparse.Namespace(**flags, frame=values.get("--frame"), view=values.get("--view", "ft"))
    frame = "" if command.frame is None else command.frame(args)
    return [(column.name, column.meaning) for column in SCHEMAS.get(frame, ())]
