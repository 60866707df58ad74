"""
The embedded ledger: a chain on this machine that answers as the public services do.

`open_world` opens one of its worlds, `World` is a chain to submit to and to move on, and
`Contract`, `view`, `call` and `U128` are what contracts are written with.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ledgerkit.localnet.contract_sdk import U128, Contract, call, view
    from ledgerkit.localnet.faults import Faults
    from ledgerkit.localnet.genesis import Genesis
    from ledgerkit.localnet.settings import Settings
    from ledgerkit.localnet.world import World
    from ledgerkit.localnet.worlds import open_world

__all__ = [
    "U128",
    "Contract",
    "Faults",
    "Genesis",
    "Settings",
    "World",
    "call",
    "open_world",
    "view",
]

_HOMES = {
    "Contract": "contract_sdk",
    "Faults": "faults",
    "Genesis": "genesis",
    "Settings": "settings",
    "U128": "contract_sdk",
    "World": "world",
    "call": "contract_sdk",
    "open_world": "worlds",
    "view": "contract_sdk",
}


def __getattr__(name: str) -> Any:
    """Load a public name with its first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
