"""
From a NEAR account id or a transaction hash to exact pandas DataFrames.

Start with `connect`, then ask: `accounts`, `snapshot`, `ft`, `nft`, `staking`,
`receipts`. Every name loads with its first use.
"""

from __future__ import annotations

from ledgerkit._version import __version__
from ledgerkit.u128.registration import register

TYPE_CHECKING = False  # type checkers know the name; importing typing would cost most of the time
if TYPE_CHECKING:
    from typing import Any

    from ledgerkit import errors
    from ledgerkit import plots as plots
    from ledgerkit import protocol as protocol
    from ledgerkit import units as units
    from ledgerkit import widgets as widgets
    from ledgerkit.archiving import Archive, Verification, archive_widget, verify_archive
    from ledgerkit.client import Ledger, connect, disconnect
    from ledgerkit.collecting.differing import Diff, diff
    from ledgerkit.collecting.opening import Collection, open_collection
    from ledgerkit.collecting.planning import Plan
    from ledgerkit.collecting.ranges import collect_blocks
    from ledgerkit.collecting.running import collect
    from ledgerkit.errors import LedgerError
    from ledgerkit.frames import schema
    from ledgerkit.saved import read
    from ledgerkit.sending import (
        add_key,
        call,
        create_account,
        delegate,
        delete_key,
        deploy,
        relay,
        resume,
        send,
        track,
        transfer,
    )
    from ledgerkit.settings import Cache, RetryPolicy
    from ledgerkit.signers import Signer, signer, use_signer
    from ledgerkit.submissions import Submission
    from ledgerkit.tracing import Trace
    from ledgerkit.u128.array import U128Array, U128Dtype
    from ledgerkit.u128.human_units import amount_format, from_units, to_units
    from ledgerkit.u128.parquet import read_parquet, to_arrow, write_parquet
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
    from ledgerkit.views.kept import cache_info, clear_cache
    from ledgerkit.views.node import (
        gas_price,
        health,
        indexer_status,
        protocol_config,
        status,
        validators,
    )
    from ledgerkit.views.readings import history
    from ledgerkit.views.tokens import exposure, ft, nft, nft_tokens, staking, top_holders
    from ledgerkit.views.transactions import receipt, receipts, trace, trace_block, traces, tx
    from ledgerkit.widgets.explorer import explore

_HOMES = {
    "archiving": ("Archive", "Verification", "archive_widget", "verify_archive"),
    "client": ("Ledger", "connect", "disconnect"),
    "collecting.differing": ("Diff", "diff"),
    "collecting.opening": ("Collection", "open_collection"),
    "collecting.planning": ("Plan",),
    "collecting.ranges": ("collect_blocks",),
    "collecting.running": ("collect",),
    "errors": ("LedgerError",),
    "saved": ("read",),
    "sending": (
        "add_key",
        "call",
        "create_account",
        "delegate",
        "delete_key",
        "deploy",
        "relay",
        "resume",
        "send",
        "track",
        "transfer",
    ),
    "settings": ("Cache", "RetryPolicy"),
    "signers": ("Signer", "signer", "use_signer"),
    "submissions": ("Submission",),
    "tracing": ("Trace",),
    "u128.array": ("U128Array", "U128Dtype"),
    "u128.human_units": ("amount_format", "from_units", "to_units"),
    "u128.parquet": ("read_parquet", "to_arrow", "write_parquet"),
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
    "views.kept": ("cache_info", "clear_cache"),
    "views.node": (
        "gas_price",
        "health",
        "indexer_status",
        "protocol_config",
        "status",
        "validators",
    ),
    "frames": ("schema",),
    "views.readings": ("history",),
    "views.tokens": ("exposure", "ft", "nft", "nft_tokens", "staking", "top_holders"),
    "views.transactions": ("receipt", "receipts", "trace", "trace_block", "traces", "tx"),
    "widgets.explorer": ("explore",),
}
_MODULES = ("errors", "plots", "protocol", "units", "widgets")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Archive",
    "Cache",
    "Collection",
    "Diff",
    "Ledger",
    "LedgerError",
    "Plan",
    "RetryPolicy",
    "Signer",
    "Snapshot",
    "Submission",
    "Trace",
    "U128Array",
    "U128Dtype",
    "Verification",
    "__version__",
    "accounts",
    "accounts_of",
    "add_key",
    "amount_format",
    "archive_widget",
    "block",
    "blocks",
    "cache_info",
    "call",
    "changes",
    "chunk",
    "chunks",
    "clear_cache",
    "collect",
    "collect_blocks",
    "connect",
    "contract_code",
    "contract_state",
    "create_account",
    "delegate",
    "delete_key",
    "deploy",
    "diff",
    "disconnect",
    "errors",
    "explore",
    "exposure",
    "from_units",
    "ft",
    "gas_key_nonces",
    "gas_price",
    "global_contract_code",
    "health",
    "history",
    "indexer_status",
    "keys",
    "nft",
    "nft_tokens",
    "open_collection",
    "protocol_config",
    "read",
    "read_parquet",
    "receipt",
    "receipts",
    "relay",
    "resume",
    "schema",
    "send",
    "signer",
    "snapshot",
    "staking",
    "status",
    "to_arrow",
    "to_units",
    "top_holders",
    "trace",
    "trace_block",
    "traces",
    "track",
    "transactions",
    "transfer",
    "tx",
    "use_signer",
    "validators",
    "verify_archive",
    "view",
    "view_many",
    "write_parquet",
]

register()


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
