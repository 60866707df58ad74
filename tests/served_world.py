"""A world that a server in a thread of this process serves over HTTP."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ledgerkit.localnet import server

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

_SERVICES = ("transactions", "transfers", "blocks", "kv")


def serve(world: World) -> str:
    """Serve a world; return the address."""
    started: list[str] = []
    is_ready = threading.Event()

    def ready(url: str) -> None:
        started.append(url)
        is_ready.set()

    options = {"port": 0, "ready": ready}
    threading.Thread(target=server.serve, args=(world,), kwargs=options, daemon=True).start()
    if not is_ready.wait(60):
        raise TimeoutError("the server did not start")
    return started[0]


def addresses(url: str) -> dict[str, Any]:
    """Return the options of `connect` for a served world."""
    services = {f"{name}_url": f"{url}/{name}" for name in _SERVICES}
    return {"rpc_url": url, "api_url": f"{url}/api", **services}
