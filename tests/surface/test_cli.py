"""The command line: what is printed where, and which exit code a script sees."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import main
from tests.hostile import hidden_characters
from tests.loopback import Reply, as_json, failure, result, serve

BIG = "340282366920938463463374607431768211455"
FT: dict[str, Any] = {
    "account_id": "alice.near",
    "tokens": [
        {"contract_id": "big.near", "balance": BIG, "last_update_block_height": 7},
        {"contract_id": "late.near", "balance": None, "last_update_block_height": None},
    ],
}
BLOCK_HASH = "11111111111111111111111111111112"
SWAP_HASH = "F6JaqhBY4b4vGkST4nhyVykCZ6L21hj4u4aAfnqTor66"  # in the demo world


def run(handler, *argv):
    """Run one command against a scripted server."""
    with serve(handler) as server:
        addresses = ["--rpc-url", server.url, "--api-url", server.url]
        return main([*argv, *addresses]), server


def ft_or(reply):
    """Answer alice.near's tokens, and something else for everybody else."""

    def handler(_method, path, *_):
        return as_json(FT) if path == "/v1/account/alice.near/ft" else reply

    return handler


def test_csv_is_exact_and_lossless(capsys):
    """A balance of 2^128 - 1 leaves as its digits, a missing one as nothing."""
    code, _ = run(ft_or(Reply(404)), "ft", "alice.near", "--format", "csv")
    assert code == 0
    assert capsys.readouterr().out.splitlines() == [
        "account_id,contract_id,balance,last_update_block_height,status",
        f"alice.near,big.near,{BIG},7,ok",
        "alice.near,late.near,,,pending",
    ]


def test_json_keeps_amounts_as_text_and_heights_as_numbers(capsys):
    """Amounts are strings, which no JSON reader rounds; missing is null."""
    code, _ = run(ft_or(Reply(404)), "ft", "alice.near", "--format", "json")
    assert code == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["balance"] == BIG
    assert rows[0]["last_update_block_height"] == 7
    assert rows[1]["balance"] is None
    assert rows[1]["last_update_block_height"] is None


EVIL = "\x1b]0;t\x07\x9b2J\u202e=1+1\nroot.near"
FORMULA = "=HYPERLINK(A1)"


def hostile(_method, _path, *_):
    """Answer with a terminal escape and a formula as names of contracts."""
    tokens = [{**FT["tokens"][0], "contract_id": name} for name in (EVIL, FORMULA)]
    return as_json({**FT, "tokens": tokens})


def test_csv_starts_no_formula(capsys):
    """A name is no formula, and its control characters are escaped; `--raw` writes all."""
    command = ("ft", "alice.near", "--format", "csv")
    run(hostile, *command)
    printed = capsys.readouterr().out
    assert f"alice.near,'{FORMULA},{BIG}" in printed
    assert hidden_characters(printed) == []
    run(hostile, *command, "--raw")
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))
    assert [row[1] for row in rows] == ["contract_id", EVIL, FORMULA]


def test_json_escapes_without_a_change(capsys):
    """The printed JSON acts on no terminal, and has every character; `--raw` escapes less."""
    command = ("ft", "alice.near", "--format", "json")
    for raw in ((), ("--raw",)):
        run(hostile, *command, *raw)
        printed = capsys.readouterr().out
        assert [row["contract_id"] for row in json.loads(printed)] == [EVIL, FORMULA]
        assert (hidden_characters(printed) == []) == (raw == ())


def test_raw_prints_a_table_as_it_is(capsys):
    """`--raw` leaves the escapes of a table to the terminal."""
    run(hostile, "ft", "alice.near", "--raw")
    assert "\x1b]0;t\x07\x9b2J\u202e" in capsys.readouterr().out


def test_no_rows_is_said(capsys):
    """An empty answer is a sentence, not a blank screen, and no failure."""
    empty = as_json({"account_id": "alice.near", "tokens": []})
    code, _ = run(lambda *_: empty, "ft", "alice.near")
    assert code == 0
    assert capsys.readouterr().out.startswith("no rows (account_id, contract_id")


def test_rows_of_the_others_are_printed_when_one_account_fails(capsys):
    """What could be read goes to stdout, what could not to stderr, and the code tells."""
    code, _ = run(ft_or(Reply(400, b'"Invalid argument"')), "ft", "alice.near", "bob.near")
    out, err = capsys.readouterr()
    assert code == 2
    assert "big.near" in out
    assert err.startswith("ledgerkit: bob.near: ")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("argv", "address", "column"),
    [
        (["ft", "a.near"], "GET https://api.fastnear.com/v1/account/a.near/ft", "balance"),
        (["account", "a.near", "--at", "7"], '"block_id":7', "spendable"),
        (["keys", "a.near"], "view_access_key_list", "allowance"),
        (["holders", "t.near"], "GET https://api.fastnear.com/v1/ft/t.near/top", "share"),
        (["block", "7"], '"params":{"block_id":7}', "block_height"),
        (["view", "a.near", "get", '{"n":1}'], '"args_base64":"eyJuIjoxfQ=="', ""),
        (["receipts", BLOCK_HASH, "a.near"], "tx_status", "waits_for"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_dry_run_prints_the_requests_and_the_columns(argv, address, column, capsys):
    """--dry-run sends nothing; it tells what would be asked and what would come."""
    assert main([*argv, "--network", "mainnet", "--dry-run"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert address in printed
    assert column in printed
    assert "rate limit: at most 50 requests a minute without an API key" in printed


def test_a_dry_run_reaches_no_host(capsys):
    """The request for each account is listed in order; the path of an address is hidden."""
    ids = [f"a{number}.near" for number in range(30)]
    code, server = run(lambda *_: Reply(500), "ft", *ids, "--network", "lab", "--dry-run")
    rows = capsys.readouterr().out.splitlines()[2:32]
    assert (code, server.requests) == (0, [])
    assert [row.split()[2] for row in rows] == [f"{server.url}/v1/account/{i}/ft" for i in ids]
    hosts = ["--network", "lab", "--api-url", "https://x.test/path-with-a-key"]
    assert main(["ft", "a.near", *hosts, "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "https://x.test/…/v1/account/a.near/ft" in printed
    assert "path-with-a-key" not in printed


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["block", "-1"], "-1"),
        (["transactions", "a.near", "--start", "final", "--stop", "x"], "stop 'x'"),
        (["block", "7", "--api-url", "https://x.test", "--network", "lab"], "LEDGERKIT_RPC_URL"),
    ],
    ids=["malformed", "second", "no-service"],
)
def test_a_dry_run_refuses_what_the_command_would(argv, message, capsys):
    """A malformed argument and a service without an address are code 2, as without --dry-run."""
    hosts = [] if "--network" in argv else ["--network", "mainnet"]
    assert main([*argv, *hosts, "--dry-run"]) == 2
    assert message in capsys.readouterr().err


def test_a_dry_run_knows_what_a_key_changes(capsys, monkeypatch, tmp_path):
    """With a key in the environment the plans say the higher limit, and never the key."""
    key = "lk_planted_0123456789abcdef"
    monkeypatch.setenv("LEDGERKIT_API_KEY", key)
    ids = tmp_path / "ids.txt"
    ids.write_text("\n".join(f"a{n}.near" for n in range(20_001)))
    assert main(["ft", "a.near", "--network", "mainnet", "--dry-run"]) == 0
    plan = ["collect", str(ids), str(tmp_path / "out"), "--network", "mainnet", "--dry-run"]
    assert main(plan) == 0
    out = capsys.readouterr().out
    assert "rate limit: at most 10,000 requests a minute with the API key" in out
    assert "time       at most 10,000 requests a minute with the API key: 2 min or more" in out
    assert key not in out


def test_a_table_of_receipts_has_the_headline_above_it(capsys):
    """A person reads what happened first; CSV and JSON are the rows alone."""
    argv = ["receipts", SWAP_HASH, "ivan.near", "--network", "local"]
    assert main(argv) == 0
    first, blank, head, *_ = capsys.readouterr().out.splitlines()
    assert (first, blank) == ("ivan.near swapped 120 GOLD for 1.50 wNEAR on dex.near.", "")
    assert head.split()[0] == "receipt_id"
    assert main([*argv, "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("receipt_id,")
    assert main([*argv, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["receipt_id"]


def test_every_command_can_read_a_saved_answer(tmp_path, capsys):
    """--from-file needs no network, and no subject."""
    saved = tmp_path / "ft.json"
    saved.write_text(json.dumps(FT))
    assert main(["ft", "--from-file", str(saved), "--format", "csv"]) == 0
    assert f"big.near,{BIG},7,ok" in capsys.readouterr().out
    commands = (
        "account ft holders nft staking keys transactions transfers block view trace receipts"
    )
    for name in commands.split():
        assert main([name, "--from-file", str(tmp_path / "none.json")]) == 2, name
    assert "No such file" in capsys.readouterr().err


def test_holders_are_listed_with_their_shares_of_the_supply(capsys):
    """The supply stands above the table; without metadata neither it nor shares are read."""
    argv = ["holders", "gold.near", "--network", "local"]
    assert main(argv) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Largest holders of gold.near; total supply: 485,349 GOLD"
    assert lines[2].split() == ["rank", "account_id", "balance", "share", "status"]
    assert lines[3].split() == ["1", "dex.near", "400,120", "GOLD", "82.44%", "ok"]
    shares = {line.split()[1]: line.split()[4] for line in lines[3:]}
    assert (shares["shop.near"], shares["erin.near"]) == ("<0.01%", "0.00%")
    assert main([*argv, "--no-metadata", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "gold.near,1,dex.near,400120000000,ok"


def test_a_snapshot_shows_which_token_is_which(capsys):
    """Symbols and amounts stand beside contracts; a frame of it is CSV and JSON."""
    argv = ["snapshot", "alice.near", "--network", "local"]
    assert main(argv) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["contract_id", "symbol", "balance", "status"] in lines
    assert ["liquid.near", "LINEAR", "3.5", "LINEAR", "ok"] in lines
    assert ["slow.near", "SLOW", "pending"] in lines
    assert ["north.poolv1.near"] in lines
    assert main([*argv, "--no-metadata", "--columns", "contract_id,balance", "--format=csv"]) == 0
    assert capsys.readouterr().out.splitlines()[2] == "gold.near,1252998400"


def test_a_saved_view_call_prints_what_the_contract_returned(tmp_path, capsys):
    """The returned JSON is printed as JSON, integers exact."""
    saved = tmp_path / "view.json"
    saved.write_text(json.dumps({"jsonrpc": "2.0", "id": 1, "result": _returned(BIG)}))
    assert main(["view", "--from-file", str(saved)]) == 0
    assert capsys.readouterr().out.strip() == BIG


def _returned(text):
    """The result of a view call that returned a text."""
    return {"result": list(text.encode()), "logs": [], "block_height": 1, "block_hash": BLOCK_HASH}


def test_keys_of_many_accounts_and_of_a_missing_one(capsys):
    """The rows of all accounts are one table; a missing account is named, and not found."""

    def handler(_method, _path, _headers, body):
        call = json.loads(body)
        if call["method"] == "block":
            return failure("UNKNOWN_BLOCK")
        if call["params"]["request_type"] == "view_account":
            return failure("UNKNOWN_ACCOUNT", {"requested_account_id": "gone.near"})
        return result({"keys": [], "block_height": 9, "block_hash": BLOCK_HASH})

    assert run(handler, "keys", "gone.near", "--network", "lab")[0] == 3
    assert "gone.near: Account gone.near does not exist" in capsys.readouterr().err
    assert run(handler, "keys", "a.near", "b.near", "--network", "lab")[0] == 3
    assert main(["keys", "alice.near", "bob.near", "--format", "csv", "--network", "local"]) == 0
    owners = [line.split(",")[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert list(dict.fromkeys(owners)) == ["alice.near", "bob.near"]


def test_a_closed_pipe_is_no_error(tmp_path):
    """`ledgerkit … | head` ends quietly, however much there was still to print."""
    saved = tmp_path / "ft.json"
    tokens = [{"contract_id": "big.near", "balance": BIG}] * 20_000  # far more than a pipe holds
    saved.write_text(json.dumps({"account_id": "alice.near", "tokens": tokens}))
    command = f"{sys.executable} -m ledgerkit ft --format csv --from-file {saved} | head -1"
    done = subprocess.run(
        ["bash", "-c", f"{command}; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.splitlines()[1:] == ["0"]
    assert done.stderr == ""


def test_a_mistyped_command_lists_the_commands(capsys):
    """The list of commands is shown, although twelve words in a row could be a seed phrase."""
    with pytest.raises(SystemExit):
        main(["accounts", "alice.near"])
    assert "invalid choice: 'accounts' (choose from 'account', 'ft'" in capsys.readouterr().err


def test_a_key_in_the_place_of_a_command_is_named(capsys):
    """The message names what was passed, and does not repeat it."""
    key = "a1B2c3D4e5F6g7H8j9K0mNpQ"
    with pytest.raises(SystemExit):
        main([key])
    message = capsys.readouterr().err
    assert "what may be an API key (a1B2…, 24 characters) was passed as an argument" in message
    assert key[:8] not in message
