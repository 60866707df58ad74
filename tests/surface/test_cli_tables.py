"""Tables of the command line: units, exact numbers, columns, width and colours."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

import ledgerkit as lk
from tests.command_line import main
from tests.loopback import Reply, serve

ROOT = Path(__file__).parents[2]
SWAP = ("F6JaqhBY4b4vGkST4nhyVykCZ6L21hj4u4aAfnqTor66", "ivan.near")  # in the demo world
LOCAL = ("--network", "local")
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def printed(capsys, *argv):
    """Run a command on the embedded ledger; return its lines."""
    assert main([*argv, *LOCAL]) == 0
    return capsys.readouterr().out.splitlines()


def in_terminal(width, *argv, **environment):
    """Run a command in a terminal of a width; return what the terminal gets."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    clean = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "TERM")}
    child = subprocess.Popen(
        [sys.executable, "-m", "ledgerkit", *argv],
        stdout=terminal,
        stderr=terminal,
        cwd=ROOT,
        env={**clean, "TERM": "xterm-256color", "LEDGERKIT_NETWORK": "local", **environment},
    )
    os.close(terminal)
    chunks = []
    try:
        while chunk := os.read(controller, 65536):
            chunks.append(chunk)
    except OSError:  # Linux reports the end of a terminal as an error
        pass
    os.close(controller)
    child.wait()
    return b"".join(chunks).decode().replace("\r\n", "\n")


class Screen(io.StringIO):
    """Keeps what is printed, as a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def on_screen(monkeypatch):
    """Run a command in this process as in a terminal of a width; return all that is printed."""

    def run(width, *argv, **environment):
        screen = Screen()
        with monkeypatch.context() as patch:
            patch.delenv("NO_COLOR", raising=False)
            variables = {"COLUMNS": str(width), "TERM": "xterm-256color", **environment}
            for name, value in variables.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdout", screen)
            patch.setattr(sys, "stderr", screen)
            main([*argv, *LOCAL])
        return screen.getvalue()

    return run


# Numbers ----------------------------------------------------------------------------------


def test_amounts_of_near_are_in_units_and_exact_on_demand(capsys):
    """A table has `12,340.68 NEAR`; --exact, CSV and JSON have the yoctoNEAR of the frame."""
    with lk.connect("local") as ledger:
        balance = str(lk.accounts("alice.near", ledger=ledger)["balance"].iloc[0])
    columns = ("account", "alice.near", "--columns", "balance")
    assert printed(capsys, *columns) == ["       balance", "12,340.68 NEAR"]
    assert printed(capsys, *columns, "--exact")[1] == balance
    assert printed(capsys, *columns, "--format", "csv")[1] == balance
    assert json.loads(printed(capsys, *columns, "--format", "json")[0]) == [{"balance": balance}]


def test_amounts_of_tokens_are_in_units_by_their_metadata(capsys):
    """Units come from columns of the frame, also when these are not among those printed."""
    rows = printed(capsys, "ft", "alice.near", "--metadata", "--columns", "contract_id,balance")
    texts = dict(row.split(maxsplit=1) for row in rows[1:] if " " in row)
    assert texts["gold.near"] == "1,252.998 GOLD"
    assert texts["moon.near"] == "340,282,366,920,926,463,463.37 MOON"


# Columns ----------------------------------------------------------------------------------


def test_columns_are_printed_in_the_order_of_the_option(capsys):
    """Tables, CSV and JSON have the chosen columns only."""
    argv = ("ft", "alice.near", "--columns", "status, contract_id")
    assert printed(capsys, *argv)[0].split() == ["status", "contract_id"]
    assert printed(capsys, *argv, "--format", "csv")[0] == "status,contract_id"
    assert list(json.loads(printed(capsys, *argv, "--format", "json")[0])[0]) == [
        "status",
        "contract_id",
    ]


@pytest.mark.parametrize(
    "argv",
    [
        ["ft", "a.near"],
        ["account", "a.near"],
        ["history", "a.near", "1", "2"],
        ["receipts", *SWAP],
        ["trace", *SWAP, "--frame", "gas"],
        ["doctor"],
        ["view", "token.near", "ft_total_supply"],
    ],
    ids=" ".join,
)
def test_an_unknown_column_is_refused_before_anything_is_sent(argv, capsys):
    """An unknown column is exit code 2, and nothing is sent."""
    with serve(lambda *_: Reply(500)) as server:
        addresses = ["--rpc-url", server.url, "--api-url", server.url, "--network", "lab"]
        assert main([*argv, "--columns", "colour", *addresses]) == 2
        assert server.requests == []
    assert "--columns 'colour' is not valid: expected " in capsys.readouterr().err


def test_an_unknown_column_of_a_difference_is_refused(tmp_path, capsys):
    """The columns of `diff` are those of its view."""
    assert main(["diff", str(tmp_path), str(tmp_path), "--columns", "colour"]) == 2
    assert "expected one of account_id, contract_id, change, before" in capsys.readouterr().err


def test_an_unknown_column_is_listed_with_the_nearest_one(capsys):
    """The message has all columns, and the one that was meant."""
    assert main(["ft", "a.near", "--columns", "status,blance"]) == 2
    message = capsys.readouterr().err
    assert "expected one of account_id, contract_id, balance" in message
    assert "Did you mean 'balance'?" in message


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["acount", "a.near"], "'account'"),
        (["ft", "a.near", "--metdata"], "'--metadata'"),
        (["ft", "a.near", "--format", "cvs"], "'csv'"),
        (["trace", *SWAP, "--frame", "reciepts"], "'receipts'"),
    ],
    ids=["command", "option", "format", "frame"],
)
def test_the_nearest_word_is_suggested(argv, hint, capsys):
    """A misspelt command, option or choice is a usage error that names what was meant."""
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2
    assert f"Did you mean {hint}?" in capsys.readouterr().err


# The terminal -----------------------------------------------------------------------------


def test_an_explanation_fits_the_terminal():
    """The lines of an explanation are broken at spaces."""
    lines = ESCAPE.sub("", in_terminal(60, "trace", *SWAP)).splitlines()
    assert max(map(len, lines)) <= 60
    with lk.connect("local") as ledger:
        explanation = lk.trace(*SWAP, ledger=ledger).explain()
    assert " ".join(lines).split() == explanation.split()


def test_a_table_that_does_not_fit_loses_no_value(on_screen):
    """All columns are printed in blocks; each block has what tells its rows apart."""
    with lk.connect("local") as ledger:
        frame = lk.ft("alice.near", ledger=ledger)
    text = on_screen(60, "ft", "alice.near", "--exact", NO_COLOR="1")
    blocks = [block.splitlines() for block in text.strip().split("\n\n")]
    assert len(blocks) > 1
    for block in blocks:
        assert [row.split()[0] for row in block] == ["contract_id", *frame["contract_id"]]
    assert {name for block in blocks for name in block[0].split()} == set(frame.columns)
    assert str(frame["balance"].max()) in text


def test_a_single_row_that_does_not_fit_has_a_line_for_each_value(on_screen):
    """The balance and the last column of an account are found at a glance."""
    lines = on_screen(80, "account", "alice.near", NO_COLOR="1").splitlines()
    assert "balance                   12,340.68 NEAR" in lines
    assert "last_update_block_height  180000048" in lines


def test_columns_without_a_value_are_named_below_a_table_that_does_not_fit(on_screen):
    """Columns without a value take no room, and are named."""
    lines = on_screen(80, "keys", "alice.near", NO_COLOR="1").splitlines()
    assert lines[-1] == "no values: balance, num_nonces"
    wide = on_screen(200, "keys", "alice.near", NO_COLOR="1").splitlines()
    assert "num_nonces" in wide[0]


def test_a_terminal_has_colours_and_a_pipe_has_none(on_screen, capsys):
    """Headings are bold, statuses are coloured; errors are red."""
    table = on_screen(80, "ft", "alice.near", "--columns", "contract_id,status")
    assert "\x1b[1mcontract_id\x1b[0m" in table
    assert re.search(r"slow\.near +\x1b\[33mpending", table)
    assert re.search(r"torn\.near +\x1b\[31mbroken", table)
    assert on_screen(80, "ft", "Alice.near").startswith("\x1b[31mledgerkit: account_id")
    assert "\x1b" not in "".join(printed(capsys, "ft", "alice.near"))


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_turned_off(environment, on_screen):
    """NO_COLOR and a terminal without colours are respected: https://no-color.org."""
    assert "\x1b" not in on_screen(80, "ft", "alice.near", **environment)


# trace and history ------------------------------------------------------------------------


def test_trace_prints_the_explanation_of_the_transaction(capsys, tmp_path):
    """The explanation is that of `Trace.explain`; a saved trace is explained without a network."""
    with lk.connect("local") as ledger:
        trace = lk.trace(*SWAP, ledger=ledger)
        explanation = trace.explain()
    assert printed(capsys, "trace", *SWAP) == explanation.splitlines()
    saved = str(trace.save(tmp_path / "trace.json"))
    assert main(["trace", "--from-file", saved]) == 0
    assert "ivan.near sent transaction" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["receipts", "edges", "actions", "balance_changes", "gas"])
def test_trace_prints_each_frame(name, capsys):
    """`--frame` prints a frame of the trace, typed as its schema."""
    header = printed(capsys, "trace", *SWAP, "--frame", name, "--format", "csv")[0]
    assert header.split(",") == lk.schema(name)["name"].tolist()


def test_trace_prints_receipts_where_an_explanation_has_no_place(capsys):
    """CSV, JSON and chosen columns are those of the receipts."""
    columns = ("--columns", "receipt_id,status")
    assert len(json.loads(printed(capsys, "trace", *SWAP, "--format", "json")[0])) == 10
    assert printed(capsys, "trace", *SWAP, *columns)[0].split() == ["receipt_id", "status"]


def test_history_prints_the_holdings_at_each_block(capsys):
    """The rows are those of `lk.history`, and the views and contracts can be chosen."""
    argv = ("history", "alice.near", "180000000", "180000040", "--every", "20")
    views = ("--views", "accounts,ft", "--contract", "gold.near", "--format", "csv")
    with lk.connect("local") as ledger:
        frame = lk.history(
            "alice.near",
            180000000,
            180000040,
            every=20,
            views=["accounts", "ft"],
            contracts=["gold.near"],
            ledger=ledger,
        )
    assert printed(capsys, *argv, *views) == frame.to_csv(index=False).splitlines()
    assert printed(capsys, *argv, "--columns", "balance")[1:] == [
        "12,345.68 NEAR",
        "12,340.68 NEAR",
        "12,340.68 NEAR",
    ]
