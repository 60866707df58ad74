"""Exit codes of the command line: each one of its help, and each class of errors."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import main
from tests.loopback import Reply, as_json, failure, result, serve

ROOT = Path(__file__).parents[2]
FT = {"account_id": "a.near", "tokens": []}
TX_HASH = "F6JaqhBY4b4vGkST4nhyVykCZ6L21hj4u4aAfnqTor66"
# The handler of a request, the command, and the exit code that the help states.
CASES = {
    "success": (lambda *_: as_json(FT), ["ft", "a.near"], 0),
    "no such method": (
        lambda *_: result({"error": "MethodResolveError(MethodNotFound)", "logs": []}),
        ["view", "token.near", "nothing"],
        1,
    ),
    "malformed id": (lambda *_: Reply(500), ["ft", "A.near"], 2),
    "refused by the host": (lambda *_: Reply(400, b'"Invalid argument"'), ["ft", "a.near"], 2),
    "no such file": (lambda *_: Reply(500), ["ft", "--from-file", "/no/such/file"], 2),
    "no such block": (lambda *_: failure("UNKNOWN_BLOCK"), ["block", "12"], 3),
    "no such transaction": (
        lambda *_: failure("UNKNOWN_TRANSACTION", {"requested_transaction_hash": TX_HASH}),
        ["trace", TX_HASH, "a.near"],
        3,
    ),
    "forgotten block": (
        lambda *_: failure("GARBAGE_COLLECTED_BLOCK", {"block_height": 12, "block_hash": TX_HASH}),
        ["keys", "a.near"],
        3,
    ),
    "refused key": (lambda *_: Reply(401), ["ft", "a.near"], 4),
    "not as documented": (lambda *_: Reply(200, b"<html>"), ["ft", "a.near"], 5),
}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["ft"], "account_id is required: the account id"),
        (["trace"], "tx_hash is required: the transaction's hash"),
        (["view"], "contract_id is required: the contract's account id"),
        (["view", "token.near"], "method_name is required: the view method"),
    ],
)
def test_a_missing_argument_is_named(words, sentence, capsys):
    """Arguments that --from-file makes optional are named when they are missing."""
    assert main(words) == 2
    assert capsys.readouterr().err == f"ledgerkit: {sentence}.\n"


@pytest.mark.parametrize(
    "words",
    [
        *(["account"], ["ft"], ["nft"], ["staking"], ["keys"], ["transactions"], ["transfers"]),
        ["history", "genesis", "final", "--every", "50"],
        *(["statement"], ["view", "get"]),
    ],
    ids=lambda words: words[0],
)
def test_a_missing_account_is_code_3(words, capsys):
    """Each command that reads an account exits with 3 for one that does not exist."""
    words.insert(1, "nobody.near")
    assert main([*words, "--network", "local"]) == 3
    assert "Account nobody.near does not exist at block " in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["nft", "nick.near"], ["history", "nina.near", "genesis", "180000004"]]
)
def test_an_account_without_rows_may_exist(words, capsys):
    """An account that has nothing, or began later, is a success."""
    assert main([*words, "--network", "local"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("case", CASES)
def test_a_command_exits_as_the_help_says(case, capsys):
    """Each outcome has its code; a failure prints one line on stderr, and nothing else."""
    handler, argv, code = CASES[case]
    with serve(handler) as server:
        addresses = ["--rpc-url", server.url, "--api-url", server.url, "--network", "lab"]
        assert main([*argv, *addresses]) == code
    out, err = capsys.readouterr()
    assert bool(out) == (code == 0)
    lines = err.splitlines()
    assert [line[:11] for line in lines] == ["ledgerkit: "] * (code != 0)


def test_help_and_reference_list_the_codes_and_each_is_tried(capsys):
    """Help and reference have one table of codes, and each code is an outcome of a test."""
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = re.findall(r"^  (\d+) +(\S.*)$", capsys.readouterr().out, flags=re.MULTILINE)
    path = ROOT / "docs" / "explanations" / "command_line_reference.md"
    page = path.read_text(encoding="utf-8")
    assert listed == re.findall(r"^\| (\d+) \| (.*) \|$", page, flags=re.MULTILINE)
    elsewhere = {6, 7, 130}  # statements and Ctrl-C
    assert {int(code) for code, _ in listed} == elsewhere | {code for *_, code in CASES.values()}


def start(*argv, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "ledgerkit", *argv],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "LEDGERKIT_NETWORK": "lab"},
        **options,
    )


def test_ctrl_c_is_code_130():
    """A command that waits for a host ends with one line and 130."""
    programs: list[subprocess.Popen[str]] = []

    def interrupt(*_):
        programs[0].send_signal(signal.SIGINT)
        return Reply(503)  # the program would try again

    with serve(interrupt) as server:
        addresses = ["--rpc-url", server.url, "--api-url", server.url]
        programs.append(start("ft", "a.near", *addresses))
        _, message = programs[0].communicate(timeout=300)
    assert programs[0].returncode == 130
    assert message.splitlines()[-1] == "ledgerkit: interrupted"  # the first may be lost


def test_ctrl_c_ends_a_server_with_success():
    """`serve` runs until then, so it is no failure."""
    server = start("serve", "--port", "0", stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert "stop with Ctrl-C" in server.stdout.readline()
    server.send_signal(signal.SIGINT)
    server.communicate(timeout=300)
    assert server.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_code_1():
    """A full disk is one line, not a traceback, also for a little output."""
    with serve(lambda *_: as_json(FT)) as server, Path("/dev/full").open("w") as full:
        done = start("ft", "a.near", "--api-url", server.url, "--rpc-url", server.url, stdout=full)
        _, message = done.communicate(timeout=300)
    assert done.returncode == 1
    assert message.startswith("ledgerkit: Could not write the output: No space left on device.")
    assert len(message.splitlines()) == 1
