"""`near-sandbox` in a process of its own, as clients of the binary start it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.command_line import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BINARY = (
    sys.executable,
    "-c",
    "import sys; from ledgerkit.cli import near_sandbox; sys.exit(near_sandbox())",
)
# Runs the command after it, and ends when its input does; nohup around it counts for nothing.
PARENT_CODE = """
import signal, subprocess, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
print(subprocess.Popen(sys.argv[1:]).pid, flush=True)
sys.stdin.read()
"""
DETACHED_PARENT_CODE = PARENT_CODE.replace("argv[1:]", "argv[1:], start_new_session=True")


def free_port() -> int:
    """Return a port that was free just now, as clients choose one."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def options(home: Path, port: int) -> tuple[str, ...]:
    """Return the options with which npm's near-sandbox starts the binary."""
    network = f"127.0.0.1:{free_port()}"
    rpc = f"127.0.0.1:{port}"
    return ("--home", str(home), "run", "--rpc-addr", rpc, "--network-addr", network)


@contextmanager
def open_client(port: int) -> Iterator[httpx.Client]:
    """Wait until the node's status answers."""
    deadline = time.monotonic() + 30
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        while True:
            try:
                client.get("/status").raise_for_status()
            except httpx.TransportError:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            else:
                yield client
                return


def ask(client: httpx.Client, method: str, params: Any) -> Any:
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.post("/", json=call).json()["result"]


def poll(client: httpx.Client, timeout_s: float) -> None:
    """Ask for the status until the timeout."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        client.get("/status")
        time.sleep(0.05)


def add_account(home: Path) -> None:
    """Add an account to the genesis, as npm's near-sandbox does."""
    path = home / "genesis.json"
    data = json.loads(path.read_text())
    data["total_supply"] = str(int(data["total_supply"]) + 10**28)
    account = {
        "amount": str(10**28),
        "locked": "0",
        "code_hash": "11111111111111111111111111111111",
        "storage_usage": 182,
    }
    data["records"].append({"Account": {"account_id": "sandbox", "account": account}})
    path.write_text(json.dumps(data))


def test_a_client_starts_and_stops_a_sandbox(tmp_path: Path):
    """It answers from the edited genesis, in blocks by the clock, and ends at SIGTERM with 0."""
    initialise = (*BINARY, "--home", str(tmp_path), "init", "--fast", "--chain-id", "mine")
    subprocess.run(initialise, check=True, timeout=60)
    add_account(tmp_path)
    port = free_port()
    with subprocess.Popen((*BINARY, *options(tmp_path, port)), stderr=subprocess.PIPE) as process:
        try:
            with open_client(port) as client:
                assert client.get("/status").json()["chain_id"] == "mine"
                request = {"request_type": "view_account", "finality": "optimistic"}
                view = ask(client, "query", request | {"account_id": "sandbox"})
                assert view["amount"] == str(10**28)
                before = ask(client, "block", {"finality": "optimistic"})["header"]["height"]
                assert ask(client, "sandbox_fast_forward", {"delta_height": 10_000}) == {}
                after = ask(client, "block", {"finality": "optimistic"})["header"]["height"]
                assert after >= before + 10_000
                record = {"Account": {"account_id": "sandbox", "account": view | {"amount": "9"}}}
                assert ask(client, "sandbox_patch_state", {"records": [record]}) == {}
                view = ask(client, "query", request | {"account_id": "sandbox"})
                assert view["amount"] == "9"
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert b"ignored: --network-addr" in process.stderr.read()


def test_the_state_is_dumped_while_the_sandbox_runs(tmp_path: Path, capsys):
    """As npm's near-sandbox and near-kit ask for it: one file, or a folder to run from."""
    home = ("sandbox", "--home", str(tmp_path))
    assert main([*home, "init", "--fast"]) == 0
    dump = [*home, "view-state", "dump-state"]
    assert main(dump) == 2
    assert "a sandbox that runs" in capsys.readouterr().err
    record = {"Data": {"account_id": "near", "data_key": "aw==", "value": "dg=="}}
    with running(tmp_path) as client:
        assert ask(client, "sandbox_patch_state", {"records": [record]}) == {}
        assert main(dump) == 0
        assert main([*dump, "--stream"]) == 0
    assert record in json.loads((tmp_path / "output.json").read_text())["records"]
    output = tmp_path / "output"
    assert record in json.loads((output / "records.json").read_text())
    assert (output / "validator_key.json").stat().st_mode & 0o777 == 0o600
    with running(output) as client:
        request = {"request_type": "view_state", "finality": "optimistic", "prefix_base64": ""}
        view = ask(client, "query", request | {"account_id": "near"})
        assert view["values"] == [{"key": "aw==", "value": "dg=="}]


@contextmanager
def running(home: Path) -> Iterator[httpx.Client]:
    """Run a sandbox until the block ends."""
    port = free_port()
    with subprocess.Popen((*BINARY, *options(home, port)), stderr=subprocess.DEVNULL) as process:
        try:
            with open_client(port) as client:
                yield client
        finally:
            process.send_signal(signal.SIGTERM)


def test_a_long_fast_forward_ends_with_the_sandbox(tmp_path: Path):
    """Other requests are answered meanwhile; at SIGTERM it gets no result, and the process ends."""
    assert main(["sandbox", "--home", str(tmp_path), "init", "--fast"]) == 0
    port = free_port()
    with (
        subprocess.Popen((*BINARY, *options(tmp_path, port)), stderr=subprocess.DEVNULL) as process,
        open_client(port) as client,
        ThreadPoolExecutor() as pool,
    ):
        call = {"jsonrpc": "2.0", "id": 1, "method": "sandbox_fast_forward"}
        params = {"delta_height": 10**9}
        answer = pool.submit(
            httpx.post, str(client.base_url), json={**call, "params": params}, timeout=60
        )
        while ask(client, "block", {"finality": "optimistic"})["header"]["height"] < 10_000:
            assert not answer.done()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert answer.result().status_code == 503


def test_a_sandbox_ends_with_the_process_that_started_it(tmp_path: Path):
    """Test runners that crash leave nothing behind."""
    assert main(["sandbox", "--home", str(tmp_path), "init", "--fast"]) == 0
    port = free_port()
    with (
        subprocess.Popen(
            (sys.executable, "-c", PARENT_CODE, *BINARY, *options(tmp_path, port)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as parent,
        open_client(port) as client,
    ):
        assert parent.stdin is not None
        parent.stdin.close()
        parent.wait(20)
        with pytest.raises(httpx.TransportError):
            poll(client, 20)


def test_a_detached_sandbox_outlives_the_process_that_started_it(tmp_path: Path):
    """A sandbox in a session of its own, as that of a service, goes on."""
    assert main(["sandbox", "--home", str(tmp_path), "init", "--fast"]) == 0
    port = free_port()
    with (
        subprocess.Popen(
            (sys.executable, "-c", DETACHED_PARENT_CODE, *BINARY, *options(tmp_path, port)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as parent,
        open_client(port) as client,
    ):
        assert parent.stdin is not None
        assert parent.stdout is not None
        sandbox_pid = int(parent.stdout.readline())
        try:
            parent.stdin.close()
            parent.wait(20)
            poll(client, 1.0)
        finally:
            os.kill(sandbox_pid, signal.SIGTERM)


@pytest.mark.parametrize("address", ["3030", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000"])
def test_a_malformed_address_is_refused(tmp_path: Path, capsys, address: str):
    """The message names the option and its form."""
    assert main(["sandbox", "--home", str(tmp_path), "init"]) == 0
    assert main(["sandbox", "--home", str(tmp_path), "run", "--rpc-addr", address]) == 2
    assert "HOST:PORT" in capsys.readouterr().err


def test_other_machines_are_served_by_the_option_only(tmp_path: Path, capsys):
    """An address in config.json that others can reach is refused."""
    assert main(["sandbox", "--home", str(tmp_path), "init"]) == 0
    path = tmp_path / "config.json"
    path.write_text(path.read_text().replace("127.0.0.1:3030", "0.0.0.0:3030"))
    assert main(["sandbox", "--home", str(tmp_path), "run"]) == 2
    assert "0.0.0.0" in capsys.readouterr().err  # noqa: S104 - what is refused


def test_a_folder_that_was_not_initialised_is_refused(tmp_path: Path, capsys):
    """The message names the folder and `init`."""
    assert main(["sandbox", "--home", str(tmp_path), "run"]) == 2
    message = capsys.readouterr().err
    assert str(tmp_path) in message
    assert "init" in message


def test_the_version_is_that_of_a_node(capsys):
    """Clients ask for it to see whether the binary starts."""
    with pytest.raises(SystemExit) as caught:
        main(["sandbox", "--version"])
    assert caught.value.code == 0
    assert "release 2.13.1" in capsys.readouterr().out
