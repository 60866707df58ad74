"""
The embedded ledger: transactions and requests per second, and the time to the first answer.

Prints medians of rounds that alternate. Targets: 8,000 transfers a second in process, of which
each has its signature checked; 8,000 requests a second of the server's CPU time over HTTP; and
the demo world's first answer within 0.5 s of `connect`, in a process that has only imported
ledgerkit. The limits beside them are the bare check of the same signatures, and a constant
response sent by the same server of HTTP. The other figures have no target.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from _verdict import finish, say

from ledgerkit.localnet import World, open_world
from ledgerkit.protocol import FunctionCall, SecretKey, SignedTransaction, Transaction, Transfer

if TYPE_CHECKING:
    from collections.abc import Iterator

TRANSACTIONS = 2_000
ROUNDS = 5
REQUESTS = 2_000
IN_FLIGHT = 16
STARTS = 5
PER_SECOND = 8_000
TARGET_S = 0.5
GAS = 100 * 10**12
PAY = b'{"receiver_id":"shop.near","amount":"1","msg":""}'
LOAD = Path(__file__).with_name("_load.py")

FIRST_ANSWER = """
import time, ledgerkit
begin = time.perf_counter(), time.process_time()
ledger = ledgerkit.connect("local")
ledger.rpc("query", {"request_type": "view_account", "account_id": "alice.near",
                     "finality": "final"})
print(time.perf_counter() - begin[0], time.process_time() - begin[1])
"""
FIRST_FRAME = """
import time, ledgerkit
begin = time.perf_counter(), time.process_time()
ledgerkit.connect("local")
ledgerkit.ft("alice.near")
print(time.perf_counter() - begin[0], time.process_time() - begin[1])
"""
CROWD = """
import time, ledgerkit
begin = time.perf_counter(), time.process_time()
ledgerkit.connect("local", world="crowd", size=10_000)
ledgerkit.ft("person0000000.near")
print(time.perf_counter() - begin[0], time.process_time() - begin[1])
"""
CONSTANT = """
import asyncio, socket, uvicorn
body = b"." * 300
head = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"300")]}
async def app(scope, receive, send):
    await receive()
    await send(head)
    await send({"type": "http.response.body", "body": body})
sock = socket.create_server(("127.0.0.1", 0), backlog=1024)
print(f"constant on http://127.0.0.1:{sock.getsockname()[1]} ", flush=True)
sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
config = uvicorn.Config(app, http="httptools", lifespan="off", log_config=None, access_log=False)
asyncio.run(uvicorn.Server(config).serve(sockets=[sock]))
"""


# In process ---------------------------------------------------------------------------------


def signed(world: World, *, pay: bool) -> list[SignedTransaction]:
    people = [account for account in world.summary.accounts if world.balance(account.account_id)]
    rich = [account for account in people if (world.balance(account.account_id) or 0) > 10**26]
    block_hash = world.chain.final.hash
    batch = []
    for place in range(TRANSACTIONS):
        account = people[0] if pay else rich[place % len(rich)]
        key = SecretKey.from_text(account.secret_key or "")
        access_key = world.state().access_key(account.account_id, key.public_key.packed)
        nonce = (access_key.nonce if access_key else 0) + 1 + place
        receiver_id = "gold.near" if pay else rich[place * 7 % len(rich)].account_id
        action = FunctionCall("ft_transfer_call", PAY, GAS, 1) if pay else Transfer(1)
        signer = (account.account_id, key.public_key, nonce)
        tx = Transaction(*signer, receiver_id, block_hash, [action])
        batch.append(tx.sign(key))
    return batch


def rates(*, pay: bool) -> tuple[float, float]:
    """Return the checks of signatures, and the whole transactions, a second of CPU time."""
    world = open_world("demo")
    batch = signed(world, pay=pay)
    gc.collect()  # the world of the last round
    begin = time.process_time()
    assert all(tx.verify() for tx in batch)
    checked = time.process_time()
    for tx in batch:
        world.submit(tx)
    world.settle()
    done = time.process_time()
    assert all(world.outcome(tx.hash) for tx in batch)
    return len(batch) / (checked - begin), len(batch) / (done - checked)


def in_process() -> None:
    print(f"transactions/s of CPU time in process, {TRANSACTIONS:,} signed before")
    print(f"  {'':<18}{'signatures checked':>20}{'ours':>10}{'ratio':>8}")
    for name, pay in (("transfer", False), ("ft_transfer_call", True)):
        rounds = [rates(pay=pay) for _ in range(ROUNDS)]
        limit, ours = (statistics.median(each) for each in zip(*rounds, strict=True))
        ratio = statistics.median(check / whole for check, whole in rounds)
        print(f"  {name:<18}{limit:>20,.0f}{ours:>10,.0f}{ratio:>8.2f}")
        if not pay:
            figure = f"{ours:,.0f}; {ratio:.2f} times the check of a signature"
            claim = f"{PER_SECOND:,} transfers a second in process"
            say(claim, figure, met=ours >= PER_SECOND)


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
        command = [sys.executable, str(LOAD), str(self.port), str(REQUESTS), str(IN_FLIGHT)]
        before = self.cpu_s()
        done = subprocess.run(command, input=request, check=True, stdout=subprocess.PIPE)
        return REQUESTS / float(done.stdout), REQUESTS / ((self.cpu_s() - before) or float("nan"))


@contextmanager
def serving(*arguments: str) -> Iterator[Server]:
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split(" on ")[1].split(" ")[0]
        try:
            yield Server(process.pid, int(url.rpartition(":")[2]))
        finally:
            process.kill()


def requests() -> dict[str, bytes]:
    query = {"request_type": "view_account", "account_id": "alice.near", "finality": "final"}
    call = {"request_type": "call_function", "account_id": "gold.near", "finality": "final"}
    call |= {"method_name": "ft_metadata", "args_base64": ""}
    host = b"HTTP/1.1\r\nhost: localhost\r\n"
    texts = {"GET …/full": b"GET /api/v1/account/alice.near/full " + host + b"\r\n"}
    for name, params in (("view_account", query), ("call_function", call)):
        members = {"jsonrpc": "2.0", "id": "x", "method": "query", "params": params}
        body = json.dumps(members).encode()
        lines = b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        texts[name] = b"POST / " + host + lines + body
    return texts


def over_http() -> None:
    print(f"requests/s over HTTP, {IN_FLIGHT} in flight, client on the same machine")
    print(f"  {'':<18}{'wall':>10}{'a second of server CPU':>28}")
    texts = requests()
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in ("constant", *texts)}
    with ExitStack() as servers:
        constant = servers.enter_context(serving("-c", CONSTANT))
        ledger = servers.enter_context(serving("-m", "ledgerkit", "serve", "--port", "0"))
        for _ in range(ROUNDS):
            rounds["constant"].append(constant.rates(texts["view_account"]))
            for name, text in texts.items():
                rounds[name].append(ledger.rates(text))
    for name, each in rounds.items():
        wall, cpu = (statistics.median(figures) for figures in zip(*each, strict=True))
        print(f"  {name:<18}{wall:>10,.0f}{cpu:>28,.0f}")
        if name != "constant":
            claim = f"{PER_SECOND:,} requests a second of the server's CPU time, {name}"
            say(claim, f"{cpu:,.0f}; {wall:,.0f} a second", met=cpu >= PER_SECOND)


# Starts -------------------------------------------------------------------------------------


def started(code: str) -> tuple[float, float]:
    """Return the seconds, and those of CPU time, of fresh processes; compiled, as pip does."""
    took = []
    with tempfile.TemporaryDirectory() as folder:
        variables = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(1 + STARTS):  # the first one compiles
            done = subprocess.run(
                [sys.executable, "-c", code],
                check=True,
                capture_output=True,
                text=True,
                env=variables,
            )
            took.append(tuple(map(float, done.stdout.split())))
    wall, cpu = (statistics.median(seconds) for seconds in zip(*took[1:], strict=True))
    return wall, cpu


def first_answers() -> None:
    print(f"seconds from connect to the first answer, median of {STARTS} processes")
    print(f"  {'':<28}{'wall':>8}{'CPU':>8}")
    wall, cpu = started(FIRST_ANSWER)
    print(f"  {'demo, raw':<28}{wall:>8.3f}{cpu:>8.3f}")
    for name, code in (("demo, a frame", FIRST_FRAME), ("crowd of 10,000, a frame", CROWD)):
        print("  {:<28}{:>8.3f}{:>8.3f}".format(name, *started(code)))
    claim = f"the demo world's first raw answer within {TARGET_S:g} s of connect"
    say(claim, f"{wall:.3f} s; {cpu:.3f} s of CPU time", met=wall <= TARGET_S)


def main() -> None:
    in_process()
    over_http()
    first_answers()
    finish()


if __name__ == "__main__":
    main()
