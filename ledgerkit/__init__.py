"""
From a NEAR account id or a transaction hash to exact pandas DataFrames.

Start with `connect`, then ask: `accounts`, `snapshot`, `ft`, `nft`, `staking`,
`receipts`. Every name loads with its first use.
"""

from __future__ import annotations

from ledgerkit._version import __version__

TYPE_CHECKING = False  # type checkers know the name; importing typing would cost most of the time
if TYPE_CHECKING:
    from typing import Any

    from ledgerkit import errors
    from ledgerkit import protocol as protocol
    from ledgerkit import units as units
    from ledgerkit.client import Ledger, connect, disconnect
    from ledgerkit.errors import LedgerError
    from ledgerkit.frames import schema
    from ledgerkit.saved import read
    from ledgerkit.settings import RetryPolicy
    from ledgerkit.tracing import Trace
    from ledgerkit.views.accounts import (
        Snapshot,
        accounts,
        accounts_of,
        gas_key_nonces,
        keys,
        snapshot,
    )
    from ledgerkit.views.blocks import block, blocks, changes, chunk, chunks, transactions
    from ledgerkit.views.contracts import (
        contract_code,
        contract_state,
        global_contract_code,
        view,
        view_many,
    )
    from ledgerkit.views.node import (
        gas_price,
        health,
        indexer_status,
        protocol_config,
        status,
        validators,
    )
    from ledgerkit.views.tokens import exposure, ft, nft, nft_tokens, staking, top_holders
    from ledgerkit.views.transactions import receipt, receipts, trace, tx
    from ledgerkit.widgets.explorer import explore

_HOMES = {
    "client": ("Ledger", "connect", "disconnect"),
    "errors": ("LedgerError",),
    "saved": ("read",),
    "settings": ("RetryPolicy",),
    "tracing": ("Trace",),
    "views.accounts": (
        "Snapshot",
        "accounts",
        "accounts_of",
        "gas_key_nonces",
        "keys",
        "snapshot",
    ),
    "views.blocks": ("block", "blocks", "changes", "chunk", "chunks", "transactions"),
    "views.contracts": (
        "contract_code",
        "contract_state",
        "global_contract_code",
        "view",
        "view_many",
    ),
    "views.node": (
        "gas_price",
        "health",
        "indexer_status",
        "protocol_config",
        "status",
        "validators",
    ),
    "frames": ("schema",),
    "views.tokens": ("exposure", "ft", "nft", "nft_tokens", "staking", "top_holders"),
    "views.transactions": ("receipt", "receipts", "trace", "tx"),
    "widgets.explorer": ("explore",),
}
_MODULES = ("errors", "protocol", "units", "widgets")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Ledger",
    "LedgerError",
    "RetryPolicy",
    "Snapshot",
    "Trace",
    "__version__",
    "accounts",
    "accounts_of",
    "block",
    "blocks",
    "changes",
    "chunk",
    "chunks",
    "connect",
    "contract_code",
    "contract_state",
    "disconnect",
    "errors",
    "explore",
    "exposure",
    "ft",
    "gas_key_nonces",
    "gas_price",
    "global_contract_code",
    "health",
    "indexer_status",
    "keys",
    "nft",
    "nft_tokens",
    "protocol_config",
    "read",
    "receipt",
    "receipts",
    "schema",
    "snapshot",
    "staking",
    "status",
    "top_holders",
    "trace",
    "transactions",
    "tx",
    "validators",
    "view",
    "view_many",
]


def __getattr__(name: str) -> Any:
    """Load a public name, or a module, with its first use."""
    from importlib import import_module

    if name in _HOME_OF:
        value = getattr(import_module(f"ledgerkit.{_HOME_OF[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"ledgerkit.{name}")
    else:
        raise AttributeError(f"module 'ledgerkit' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
