"""Completion of the command line, as the scripts of the shells ask for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ledgerkit.cli import COMMANDS, main
from ledgerkit.frames import collected
from ledgerkit.frames.schemas import SCHEMAS
from ledgerkit.localnet.worlds import WORLDS
from ledgerkit.transport import networks

ROOT = Path(__file__).parents[2]
PROGRAM = f'#!/bin/sh\nexec "{sys.executable}" -m ledgerkit "$@"\n'
# Completes each line of stdin in a fork, as argcomplete ends the process that completes.
COMPLETING = """
import os, sys
import argcomplete, ledgerkit.cli
ledgerkit.cli.build_parser()  # loads what every fork would load
while line := sys.stdin.readline().removesuffix("\\n"):
    if not os.fork():
        names = {"_ARGCOMPLETE_STDOUT_FILENAME": "candidates"}
        os.environ.update(names, COMP_LINE=line, COMP_POINT=str(len(line)))
        ledgerkit.cli.main([])
    print(os.wait()[1], flush=True)
"""
# Each script prints what the shell would offer for a line, by the function of the printed script.
SHELLS = {
    "bash": """
        eval "$(ledgerkit completion bash)"
        complete -p ledgerkit >/dev/null
        COMP_LINE=$LINE; COMP_POINT=${#LINE}; COMP_TYPE=9
        _python_argcomplete ledgerkit 2>/dev/null
        printf '%s\\n' "${COMPREPLY[@]% }"
    """,
    "zsh": """
        compdef() { }  # of the completion system, which needs a terminal
        _describe() { print -rl -- "${(@P)2}" }
        eval "$(ledgerkit completion zsh)"
        BUFFER=$LINE; CURSOR=${#LINE}; words=(ledgerkit)
        _python_argcomplete
    """,
    "fish": """
        ledgerkit completion fish | source
        complete -C $LINE
    """,
}


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """Return an environment with `ledgerkit` on its path."""
    program = folder / "ledgerkit"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(folder), **variables}


@pytest.fixture(scope="module")
def candidates(tmp_path_factory):
    """Return the candidates for the last word of each line, with their descriptions."""
    folder = tmp_path_factory.mktemp("completing")
    (folder / "saved.json").touch()
    variables = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_DFS": "\t",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SHELL": "fish",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
    }
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    options = {"cwd": folder, "env": environment(folder, **variables), **pipes}
    start: Any = subprocess.Popen
    with start([sys.executable, "-c", COMPLETING], **options) as process:

        def complete(line):
            process.stdin.write(f"{line}\n")
            assert process.stdout.readline() == "0\n"
            rows = (folder / "candidates").read_text().splitlines()
            return dict(row.split("\t") for row in rows)

        yield lambda *lines: [complete(line) for line in lines]
        process.communicate()


def test_commands_are_completed_with_their_help(candidates):
    """All commands are candidates, and options of the program after a dash."""
    commands = {name: command.help for name, command in COMMANDS.items()}
    history = {"history": COMMANDS["history"].help}
    every, some, options = candidates("ledgerkit ", "ledgerkit his", "ledgerkit --")
    assert (every, some, set(options)) == (commands, history, {"--help", "--version"})


def test_options_are_those_of_the_command(subtests, candidates):
    """Every long option of a command is a candidate with its help, and no other."""
    names = ["ft", "transactions", "collect", "doctor"]
    lines = [f"ledgerkit {name} --" for name in names]
    for name, offered in zip(names, candidates(*lines), strict=True):
        with subtests.test(name=name):
            options = {a.name: a.options["help"] for a in COMMANDS[name].arguments if a.is_option}
            assert offered.keys() - {"--help", "--no-success"} == options.keys()
            assert {option: offered[option] for option in options} == options


def test_values_are_those_that_the_command_accepts(subtests, candidates):
    """Choices, networks, views, worlds, columns and files are completed."""
    cases = [
        ("ledgerkit ft --network ", list(networks.PRESETS)),
        ("ledgerkit ft alice.near --format c", ["csv"]),
        ("ledgerkit receipts --wait-until FI", ["FINAL"]),
        ("ledgerkit ft a.near --columns balance,st", ["balance,status"]),
        ("ledgerkit trace --frame gas --columns gas_b", ["gas_burnt"]),
        ("ledgerkit block fi", ["final"]),
        ("ledgerkit history a.near gen", ["genesis"]),
        ("ledgerkit history --every 5 a.near 1 ", ["final", "genesis", "optimistic"]),
        ("ledgerkit history a.near 1 2 --views accounts,s", ["accounts,staking"]),
        ("ledgerkit world ", list(WORLDS)),
        ("ledgerkit serve --world ", list(WORLDS)),
        (
            "ledgerkit collect ids.txt out --views ft,",
            [f"ft,{view}" for view in collected.VIEWS["accounts"] if view != "ft"],
        ),
        ("ledgerkit collect-blocks 1 2 out --views ", list(collected.VIEWS["blocks"])),
        ("ledgerkit diff a b --view ", list(collected.VIEWS["accounts"])),
        ("ledgerkit collect ./sav", ["./saved.json"]),
        ("ledgerkit ft --from-file ./sav", ["./saved.json"]),
        ("ledgerkit ft ali", []),
        ("ledgerkit world demo ", []),
    ]
    lines = [line for line, _ in cases]
    for (line, expected), offered in zip(cases, candidates(*lines), strict=True):
        with subtests.test(line=line):
            assert list(offered) == expected


def test_columns_are_those_of_the_frame_that_is_printed(candidates):
    """Columns have their meanings, and an option that adds columns adds candidates."""
    lines = ("ledgerkit ft --columns ", "ledgerkit ft --metadata --columns ")
    assert candidates(*lines) == [
        {column.name: column.meaning for column in SCHEMAS[schema]}
        for schema in ("ft", "ft_metadata")
    ]


@pytest.mark.parametrize(
    ("shell", "described"), [("bash", "{0}"), ("zsh", "{0}:{1}"), ("fish", "{0}\t{1}")]
)
def test_the_script_of_each_shell_completes(shell, described, tmp_path):
    """Commands, networks, lists of columns and files are completed by the shell itself."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "saved.json").touch()

    def complete(line: str) -> list[str]:
        no_startup = {"bash": "--norc", "zsh": "-f", "fish": "--no-config"}[shell]
        done = subprocess.run(
            [shell, no_startup, "-c", SHELLS[shell]],
            capture_output=True,
            text=True,
            check=True,
            env=environment(tmp_path, LINE=f"ledgerkit {line}"),
        )
        return [text.removesuffix(":") for text in done.stdout.splitlines()]

    assert complete("his") == [described.format("history", COMMANDS["history"].help)]
    assert sorted(complete("ft --network ")) == sorted(networks.PRESETS)
    meaning = next(column.meaning for column in SCHEMAS["ft"] if column.name == "status")
    statuses = complete("ft a.near --columns balance,st")
    assert statuses == [described.format("balance,status", meaning)]
    assert complete(f"ft --from-file {tmp_path}/sav") == [f"{tmp_path}/saved.json"]


def test_a_shell_without_a_script_is_refused(capsys):
    """The shells are those of the guide."""
    with pytest.raises(SystemExit):
        main(["completion", "powershell"])
    assert "choose from 'bash', 'zsh', 'fish'" in capsys.readouterr().err
