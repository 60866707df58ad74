"""Completion of the command line: the candidates, and the scripts in the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ledgerkit.cli import main
from ledgerkit.cli.arguments import Parser
from ledgerkit.cli.completion import FILES, candidates
from ledgerkit.cli.reading import COMMANDS
from ledgerkit.cli.tasks import TASKS
from ledgerkit.collecting import accounts, manifests
from ledgerkit.frames.schemas import SCHEMAS
from ledgerkit.localnet.worlds import WORLDS
from ledgerkit.transport import networks

ROOT = Path(__file__).parents[2]


def texts(line):
    """Return the candidates for the last word of a line."""
    return [text for text, _ in candidates(line.split(" ")[1:])]


def test_commands_are_completed_with_their_help():
    """All commands of the parser are candidates."""
    assert texts("ledgerkit ") == [*COMMANDS, *TASKS]
    assert texts("ledgerkit his") == ["history"]
    assert candidates(["his"]) == [("history", COMMANDS["history"].help)]


def test_options_are_those_of_the_command():
    """Every long option of every command is a candidate, and no other."""
    for name, command in (COMMANDS | TASKS).items():
        parser = Parser()
        command.declare(parser)
        options = {o for a in parser.actions for o in a.option_strings if o.startswith("--")}
        assert set(texts(f"ledgerkit {name} --")) == options, name


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ledgerkit ft --network ", list(networks.PRESETS)),
        ("ledgerkit ft alice.near --format c", ["csv"]),
        ("ledgerkit receipts --wait-until FI", ["FINAL"]),
        ("ledgerkit ft a.near --columns balance,st", ["balance,status"]),
        ("ledgerkit trace --frame gas --columns gas_b", ["gas_burnt"]),
        ("ledgerkit block fi", ["final"]),
        ("ledgerkit history a.near gen", ["genesis"]),
        ("ledgerkit history --every 5 a.near 1 ", ["final", "genesis", "optimistic"]),
        ("ledgerkit world ", list(WORLDS)),
        ("ledgerkit serve --world ", list(WORLDS)),
        ("ledgerkit collect ids.txt out --views ft,", [
            f"ft,{view}" for view in accounts.VIEWS if view != "ft"
        ]),
        ("ledgerkit collect-blocks 1 2 out --views ", list(manifests.VIEWS["blocks"])),
        ("ledgerkit diff a b --view ", list(accounts.VIEWS)),
        ("ledgerkit collect ", [FILES]),
        ("ledgerkit ft --from-file /et", [FILES]),
        ("ledgerkit ft ali", []),
        ("ledgerkit nothing ", []),
        ("ledgerkit world demo ", []),
    ],
)  # fmt: skip
def test_values_are_those_that_the_command_accepts(line, expected):
    """Choices, networks, views, worlds and columns are completed; files by the shell."""
    assert texts(line) == expected


def test_columns_are_those_of_the_frame_that_is_printed():
    """An option that adds columns adds candidates."""
    plain, more = texts("ledgerkit ft --columns "), texts("ledgerkit ft --metadata --columns ")
    assert plain == [column.name for column in SCHEMAS["ft"]]
    assert more == [column.name for column in SCHEMAS["ft_metadata"]]


def test_options_after_completion_are_words_to_complete(capsys):
    """An option of the line is never one of `completion` itself."""
    assert main(["completion", "bash", "--ver"]) == 0
    assert capsys.readouterr().out == "--version\tshow the version\n"


# In the shells ----------------------------------------------------------------------------

BASH = """
eval "$(ledgerkit completion bash)"
complete -p ledgerkit >/dev/null
COMP_WORDS=(ledgerkit {words}); COMP_CWORD={last}
_ledgerkit ledgerkit 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
compdef() {{ }}  # of the completion system, which needs a terminal
_describe() {{ print -rl -- "${{(@P)2}}" }}
_files() {{ print files }}
eval "$(ledgerkit completion zsh)"
words=(ledgerkit {words}); CURRENT={last}+1
_ledgerkit
"""
FISH = """
ledgerkit completion fish | source
complete -C "ledgerkit {line}"
"""


def complete(shell, script, tmp_path, line):
    """Source the script in a shell, and return the completions of a line."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    program = tmp_path / "ledgerkit"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ledgerkit "$@"\n')
    program.chmod(0o755)
    words = " ".join(word or '""' for word in line.split(" "))
    text = script.format(words=words, last=len(line.split(" ")), line=line)
    options = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    path = f"{tmp_path}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    done = subprocess.run(
        [shell, *options, "-c", text], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("shell", "script", "described"),
    [("bash", BASH, "{0}"), ("zsh", ZSH, "{0}:{1}"), ("fish", FISH, "{0}\t{1}")],
    ids=["bash", "zsh", "fish"],
)
def test_the_script_of_each_shell_completes(shell, script, described, tmp_path):
    """Commands, networks and lists of columns are completed by the shell itself."""
    histories = [described.format("history", COMMANDS["history"].help)]
    assert complete(shell, script, tmp_path, "his") == histories
    assert sorted(complete(shell, script, tmp_path, "ft --network ")) == sorted(networks.PRESETS)
    meaning = next(column.meaning for column in SCHEMAS["ft"] if column.name == "status")
    statuses = complete(shell, script, tmp_path, "ft a.near --columns balance,st")
    assert statuses == [described.format("balance,status", meaning)]


def test_files_are_completed_by_the_shell(tmp_path):
    """Where a file is expected, zsh and fish complete its name."""
    (tmp_path / "saved.json").touch()
    assert complete("zsh", ZSH, tmp_path, "ft --from-file sa") == ["files"]
    line = f"ft --from-file {tmp_path}/sav"
    assert complete("fish", FISH, tmp_path, line) == [f"{tmp_path}/saved.json"]
