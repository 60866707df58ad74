"""A REST API in another process, in which one request in ten meets a fault."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import socket
import struct
import zlib
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

SHARE = 0.1  # of the requests
STALL_S = 30.0  # longer than any client waits
FAULTS = (
    "429",
    "429 with Retry-After",
    "500",
    "502",
    "503",
    "connection reset",
    "connection closed without a response",
    "connection closed after a response",
    "truncated body",
    "stalled body",
    "stalled before the response",
    "no JSON",
    "other JSON",
)
NO_JSON = (b"<html>busy</html>", b'{"account_id":', b"\xff\xfe", b"")
OTHER_JSON = (b'["tokens"]', b'{"account_id": 7, "tokens": {}}', b'"busy"', b"12")
ABORT = struct.pack("ii", 1, 0)  # for SO_LINGER: close with a reset


def tokens(account_id: str) -> list[dict[str, Any]]:
    """Return the tokens of an account, which depend on its id alone."""
    number = zlib.crc32(account_id.encode())
    return [
        {
            "contract_id": f"token{(number + at) % 97}.near",
            "balance": str(number * 10**28 + at),
            "last_update_block_height": number % 10**8 + at,
        }
        for at in range(number % 5)
    ]


def message(status: int, body: bytes, *headers: str) -> bytes:
    """Build a response."""
    lines = [f"HTTP/1.1 {status} Status", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class Host:
    """The state of the host: its faults so far."""

    def __init__(self, seed: int) -> None:
        self.luck = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self.faults: Counter[str] = Counter()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode()
                if not await self.answer(path, writer):
                    break
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):  # the client has disconnected
            pass
        finally:
            writer.close()

    async def answer(self, path: str, writer: asyncio.StreamWriter) -> bool:
        """Answer a request; return False if the connection is to be closed."""
        if path == "/faults":
            writer.write(message(200, json.dumps(self.faults).encode()))
            return True
        account_id = path.split("/")[3]
        view = {"account_id": account_id, "tokens": tokens(account_id)}
        whole = message(200, json.dumps(view).encode(), "content-type: application/json")
        if self.luck.random() >= SHARE:
            writer.write(whole)
            return True
        fault = self.luck.choice(FAULTS)
        self.faults[fault] += 1
        return await self.fail(fault, whole, writer)

    async def fail(self, fault: str, whole: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answer with a fault; return False if the connection is to be closed."""
        if fault[0].isdigit():
            pause = ["retry-after: 1"] if "Retry-After" in fault else []
            writer.write(message(int(fault[:3]), b"busy", *pause))
            return True
        if fault.endswith(" JSON"):
            bodies = NO_JSON if fault == "no JSON" else OTHER_JSON
            writer.write(message(200, self.luck.choice(bodies)))
            return True
        if fault == "connection reset":
            connection: socket.socket = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
        elif fault == "connection closed after a response":
            writer.write(whole)
        elif fault in ("truncated body", "stalled body"):
            writer.write(whole[: -self.luck.randint(1, 20)])
        if fault.startswith("stalled"):
            await asyncio.sleep(STALL_S)
        return False


async def serve(pipe: Connection, seed: int) -> None:
    """Serve until the process is terminated."""
    server = await asyncio.start_server(Host(seed).connect, "127.0.0.1", 0, backlog=1024)
    pipe.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def run(pipe: Connection, seed: int) -> None:
    """Run the host in this process."""
    asyncio.run(serve(pipe, seed))


@contextmanager
def running(seed: int) -> Iterator[str]:
    """Run the host in another process and yield its address."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=run, args=(sender, seed), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{receiver.recv()}"
    finally:
        process.terminate()
        process.join()
        for end in (receiver, sender, process):
            end.close()
