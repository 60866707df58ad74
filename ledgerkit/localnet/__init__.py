"""
The embedded ledger: a NEAR chain inside the process, with the public services' JSON-RPC and REST.

`open_world` opens a ready-made world, `World` is a chain to submit transactions to, and
`Contract`, `view`, `call` and `U128` are for writing contracts.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import missing_attribute

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

_MODULES = {
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
    """Import a public name on its first use."""
    module = _MODULES.get(name)
    if module is None:
        raise missing_attribute(__name__, name, __all__)
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
