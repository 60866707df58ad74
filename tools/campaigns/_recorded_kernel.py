"""
The ledgers of a notebook that is recorded over HTTP, or answered from its recordings.

`install` is called in the kernel. Each `lk.connect("local", ...)` of the notebook then opens a
ledger over HTTP, of a world that this process serves, and records it; or the recording of it,
while no socket may connect. `ledger.world` and `ledger.faults` are those of the served world, or
in a replay of one that nobody reads from.
"""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Never

import ledgerkit as lk
from ledgerkit import client
from ledgerkit.localnet import server
from ledgerkit.localnet.faults import Faults
from ledgerkit.localnet.worlds import open_world
from ledgerkit.sending import broadcast
from ledgerkit.transport import networks

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.localnet.world import World

_SERVICES = ("transactions", "transfers", "blocks", "kv")


def serve(world: World, faults: Faults) -> str:
    """Serve a world in a thread of this process; return the address."""
    started: list[str] = []
    is_ready = threading.Event()

    def ready(url: str) -> None:
        started.append(url)
        is_ready.set()

    run = threading.Thread(
        target=server.serve, args=(world,), kwargs={"port": 0, "faults": faults, "ready": ready}
    )
    run.daemon = True
    run.start()
    if not is_ready.wait(20):
        raise TimeoutError("the server did not start")
    return started[0]


def addresses(url: str) -> dict[str, Any]:
    """Return the options of `connect` for a served world."""
    services = {f"{name}_url": f"{url}/{name}" for name in _SERVICES}
    return {"rpc_url": url, "api_url": f"{url}/api", **services}


def forbid_sockets() -> None:
    """Refuse each connection to an internet address; the kernel has its own already."""
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            raise AssertionError(f"a replay connects to {address}")
        connect(self, address)

    def refuse_name(*_arguments: object, **_options: object) -> Never:
        raise AssertionError("a replay looks up a name")

    module: Any = socket
    module.socket.connect, module.getaddrinfo = refuse, refuse_name


def install(mode: Literal["record", "replay"], folder: str) -> None:
    """Replace `lk.connect` by one that records the embedded ledgers, or answers from recordings."""
    opened: list[tuple[lk.Ledger, World, Faults]] = []
    connect: Callable[..., lk.Ledger] = client.connect

    def connect_served(
        network: str, *, world: str = "demo", size: int | None = None, seed: int = 0, **options: Any
    ) -> lk.Ledger:
        if "fork" in options:  # it reads from one of these ledgers
            return connect(network, **options)
        if network != "local":
            raise ValueError(f"the notebook connects to {network}")
        made, faults = open_world(world, size=size, seed=seed), Faults()
        path = Path(folder) / f"{len(opened)}.lk"
        if mode == "record":
            url = serve(made, faults)
            tokens = made.summary.contracts.get("liquid", ())
            liquid_tokens = (tokens,) if isinstance(tokens, str) else tuple(tokens)
            preset = networks.PRESETS["local"]
            networks.PRESETS["local"] = replace(preset, liquid_tokens=liquid_tokens)
            ledger = connect(network, record=path, **addresses(url), **options)
        else:
            ledger = connect(path, **options)
        opened.append((ledger, made, faults))
        return ledger

    def part(index: int, own: property) -> property:
        def find(ledger: lk.Ledger) -> Any:
            parts = next((each for each in opened if each[0] is ledger), None)
            return own.__get__(ledger) if parts is None else parts[index]

        return property(find)

    if mode == "replay":
        forbid_sockets()
    modules: Any = (lk, client, broadcast)
    modules[0].connect = modules[1].connect = connect_served
    modules[2].embedded_world = lambda _ledger: None
    kind: Any = lk.Ledger
    kind.world, kind.faults = part(1, kind.world), part(2, kind.faults)
