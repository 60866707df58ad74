"""
The embedded ledger: transactions and requests per second, and the time to the first answer.

Prints medians of rounds that alternate. Targets: 8,000 transfers a second in process, of which
each has its signature checked; 8,000 requests a second of the server's CPU time over HTTP; and
the demo world's first answer within 0.5 s of `connect`, in a process that has only imported
ledgerkit. The limit beside the first is the bare check of the same signatures.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from _floor import drain, floor
from _measuring import alternate, cpu_seconds
from _verdict import finish, say

from ledgerkit.localnet import World, open_world
from ledgerkit.protocol import SecretKey, SignedTransaction, Transaction, Transfer

if TYPE_CHECKING:
    from collections.abc import Iterator

TRANSACTIONS = 2_000
ROUNDS = 5
REQUESTS = 2_000
IN_FLIGHT = 16
PROCESSES = 5
PER_SECOND = 8_000
TARGET_S = 0.5

QUERY = {"request_type": "view_account", "account_id": "alice.near", "finality": "final"}
FIRST_ANSWER = f"""
import time, ledgerkit
begin = time.perf_counter(), time.process_time()
ledgerkit.connect("local").rpc("query", {QUERY})
print(time.perf_counter() - begin[0], time.process_time() - begin[1])
"""


# In process ---------------------------------------------------------------------------------


def signed(world: World) -> list[SignedTransaction]:
    accounts = world.summary.accounts
    rich = [each for each in accounts if (world.balance(each.account_id) or 0) > 10**26]
    batch = []
    for place in range(TRANSACTIONS):
        signer_id = rich[place % len(rich)].account_id
        key = SecretKey.from_text(rich[place % len(rich)].secret_key or "")
        access_key = world.state().access_key(signer_id, key.public_key.packed)
        nonce = (access_key.nonce if access_key else 0) + 1 + place
        receiver_id = rich[place * 7 % len(rich)].account_id
        tx = Transaction(
            signer_id, key.public_key, nonce, receiver_id, world.chain.final.hash, [Transfer(1)]
        )
        batch.append(tx.sign(key))
    return batch


def rates() -> tuple[float, float]:
    """Return the checks of signatures, and the whole transfers, a second of CPU time."""
    world = open_world("demo")
    batch = signed(world)
    checking_s = cpu_seconds(lambda: [tx.verify() for tx in batch])

    def execute() -> None:
        for tx in batch:
            world.submit(tx)
        world.settle()

    whole_s = cpu_seconds(execute)
    assert all(world.outcome(tx.hash) for tx in batch)
    return len(batch) / checking_s, len(batch) / whole_s


def in_process() -> None:
    rounds = [rates() for _ in range(ROUNDS)]
    ours = statistics.median(whole for _, whole in rounds)
    ratio = statistics.median(check / whole for check, whole in rounds)
    figure = f"{ours:,.0f}; {ratio:.2f} times the check of a signature"
    say(f"{PER_SECOND:,} transfers a second in process", figure, met=ours >= PER_SECOND)


# Over HTTP ----------------------------------------------------------------------------------


class Server(NamedTuple):
    """A server in a process of its own."""

    pid: int
    port: int

    def cpu_s(self) -> float:
        """Return the CPU time so far; 0 where the system does not tell."""
        stat = Path(f"/proc/{self.pid}/stat")
        if not stat.exists():
            return 0.0
        times = stat.read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

    def rates(self, request: bytes) -> tuple[float, float]:
        """Return the requests a second, and a second of the server's CPU time."""

        async def load() -> float:
            async with floor(f"http://127.0.0.1:{self.port}", IN_FLIGHT) as ask:
                begin = time.perf_counter()
                await drain(lambda _: ask(request), REQUESTS, IN_FLIGHT)
                return time.perf_counter() - begin

        before = self.cpu_s()
        took = asyncio.run(load())
        return REQUESTS / took, REQUESTS / ((self.cpu_s() - before) or float("nan"))


@contextmanager
def serving() -> Iterator[Server]:
    command = [sys.executable, "-m", "ledgerkit", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split(" on ")[1].split(" ")[0]
        try:
            yield Server(process.pid, int(url.rpartition(":")[2]))
        finally:
            process.kill()


def requests() -> dict[str, bytes]:
    call = {"request_type": "call_function", "account_id": "gold.near", "finality": "final"}
    call |= {"method_name": "ft_metadata", "args_base64": ""}
    host = b"HTTP/1.1\r\nhost: localhost\r\n"
    texts = {"GET …/full": b"GET /api/v1/account/alice.near/full " + host + b"\r\n"}
    for name, params in (("view_account", QUERY), ("call_function", call)):
        members = {"jsonrpc": "2.0", "id": "x", "method": "query", "params": params}
        body = json.dumps(members).encode()
        lines = b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        texts[name] = b"POST / " + host + lines + body
    return texts


def over_http() -> None:
    with serving() as server:
        ways = {name: partial(server.rates, text) for name, text in requests().items()}
        rounds = alternate(ways, ROUNDS)
    for name, each in rounds.items():
        wall, cpu = (statistics.median(figures) for figures in zip(*each, strict=True))
        claim = f"{PER_SECOND:,} requests a second of the server's CPU time, {name}"
        say(claim, f"{cpu:,.0f}; {wall:,.0f} a second", met=cpu >= PER_SECOND)


# Starts -------------------------------------------------------------------------------------


def started(code: str) -> tuple[float, float]:
    """Return the seconds, and those of CPU time, of fresh processes; compiled, as pip does."""
    took = []
    with tempfile.TemporaryDirectory() as folder:
        variables = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(1 + PROCESSES):  # the first one compiles
            command = [sys.executable, "-c", code]
            done = subprocess.run(
                command, check=True, capture_output=True, text=True, env=variables
            )
            took.append(tuple(map(float, done.stdout.split())))
    wall, cpu = (statistics.median(seconds) for seconds in zip(*took[1:], strict=True))
    return wall, cpu


def first_answer() -> None:
    wall, cpu = started(FIRST_ANSWER)
    claim = f"the demo world's first raw answer within {TARGET_S:g} s of connect"
    say(claim, f"{wall:.3f} s; {cpu:.3f} s of CPU time", met=wall <= TARGET_S)


def main() -> None:
    in_process()
    over_http()
    first_answer()
    finish()


if __name__ == "__main__":
    main()
