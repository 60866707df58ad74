"""
The embedded ledger: transactions and requests per second, and the time to the first answer.

Prints medians. Target: the demo world answers within 0.5 s of `connect`, in a process that has
only imported ledgerkit. The other figures have no target.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time

import aiohttp
from _verdict import finish, say

from ledgerkit.localnet import World, open_world
from ledgerkit.protocol import FunctionCall, SecretKey, SignedTransaction, Transaction, Transfer

TRANSACTIONS = 2_000
ROUNDS = 3
REQUESTS = 2_000
IN_FLIGHT = 16
STARTS = 5
TARGET_S = 0.5
GAS = 100 * 10**12
PAY = b'{"receiver_id":"shop.near","amount":"1","msg":""}'
HEADERS = {"content-type": "application/json"}

FIRST_ANSWER = """
import time, ledgerkit
begin = time.perf_counter()
ledger = ledgerkit.connect("local")
ledger.rpc("query", {"request_type": "view_account", "account_id": "alice.near",
                     "finality": "final"})
print(time.perf_counter() - begin)
"""
FIRST_FRAME = """
import time, ledgerkit
begin = time.perf_counter()
ledgerkit.connect("local")
ledgerkit.ft("alice.near")
print(time.perf_counter() - begin)
"""
CROWD = """
import time, ledgerkit
begin = time.perf_counter()
ledgerkit.connect("local", world="crowd", size=10_000)
ledgerkit.ft("person0000000.near")
print(time.perf_counter() - begin)
"""


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


def rate(*, pay: bool) -> float:
    world = open_world("demo")
    batch = signed(world, pay=pay)
    begin = time.perf_counter()
    for tx in batch:
        world.submit(tx)
    world.settle()
    took = time.perf_counter() - begin
    assert all(world.outcome(tx.hash) for tx in batch)
    return len(batch) / took


def started(code: str) -> float:
    took = []
    for _ in range(STARTS):
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
        took.append(float(done.stdout))
    return statistics.median(took)


async def ask(url: str, bodies: list[bytes | None]) -> float:
    async def work(session: aiohttp.ClientSession) -> None:
        while bodies:
            body = bodies.pop()
            path = f"{url}/api/v1/account/alice.near/full" if body is None else url
            method = "GET" if body is None else "POST"
            async with session.request(method, path, data=body, headers=HEADERS) as answer:
                assert answer.status == 200
                await answer.read()

    async with aiohttp.ClientSession() as session:
        count, begin = len(bodies), time.perf_counter()
        await asyncio.gather(*(work(session) for _ in range(IN_FLIGHT)))
        return count / (time.perf_counter() - begin)


def served() -> dict[str, float]:
    query = {"request_type": "view_account", "account_id": "alice.near", "finality": "final"}
    call = {"request_type": "call_function", "account_id": "gold.near", "finality": "final"}
    call |= {"method_name": "ft_metadata", "args_base64": ""}
    bodies: dict[str, bytes | None] = {
        name: json.dumps(
            {"jsonrpc": "2.0", "id": "x", "method": "query", "params": params}
        ).encode()
        for name, params in (("view_account", query), ("call_function", call))
    }
    bodies["GET …/full"] = None
    command = [sys.executable, "-m", "ledgerkit", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split(" on ")[1].split(" ")[0]
        try:
            return {name: asyncio.run(ask(url, [body] * REQUESTS)) for name, body in bodies.items()}
        finally:
            server.terminate()


def main() -> None:
    print(f"transactions/s in process, {TRANSACTIONS:,} signed before, median of {ROUNDS}")
    for name, pay in (("transfer", False), ("ft_transfer_call", True)):
        print(f"  {name:<18}{statistics.median(rate(pay=pay) for _ in range(ROUNDS)):>10,.0f}")
    print(f"requests/s over HTTP, {IN_FLIGHT} in flight, client on the same machine")
    for name, per_second in served().items():
        print(f"  {name:<18}{per_second:>10,.0f}")
    first = started(FIRST_ANSWER)
    print(f"from connect to the first answer, median of {STARTS} processes")
    print(f"  {'demo, raw':<18}{first:>10.3f} s")
    print(f"  {'demo, a frame':<18}{started(FIRST_FRAME):>10.3f} s   (loads pandas)")
    print(f"  {'crowd of 10,000':<18}{started(CROWD):>10.3f} s   (loads pandas)")
    claim = f"the demo world's first raw answer within {TARGET_S:g} s of connect"
    say(claim, f"{first:.3f} s", met=first <= TARGET_S)
    finish()


if __name__ == "__main__":
    main()
