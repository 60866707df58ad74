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
    from ledgerkit.client import connect, disconnect
    from ledgerkit.collecting.collect import collect
    from ledgerkit.collecting.collect_blocks import collect_blocks
    from ledgerkit.collecting.collection import Collection, open_collection
    from ledgerkit.collecting.diff import Diff, diff
    from ledgerkit.collecting.follow import FollowedBlock, Following, follow
    from ledgerkit.collecting.plan import Plan
    from ledgerkit.errors import LedgerError
    from ledgerkit.frames.build import schema
    from ledgerkit.frames.excel import to_excel
    from ledgerkit.frames.human import human
    from ledgerkit.ledger import Ledger
    from ledgerkit.reconciling.collecting_statements import statements
    from ledgerkit.reconciling.plan import StatementPlan
    from ledgerkit.reconciling.statement import Statement
    from ledgerkit.reconciling.verbs import statement
    from ledgerkit.sending.signers import Signer, signer, use_signer
    from ledgerkit.sending.simulation import simulate
    from ledgerkit.sending.submission import Submission
    from ledgerkit.sending.verbs import (
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
    from ledgerkit.tracing.proof import Proof
    from ledgerkit.tracing.trace import Trace
    from ledgerkit.tracing.traces import Traces
    from ledgerkit.transport.settings import Cache, RetryPolicy
    from ledgerkit.u128.array import U128Array, U128Dtype
    from ledgerkit.u128.human_units import amount_format, from_units, to_units
    from ledgerkit.u128.parquet import read_parquet, to_arrow, write_parquet
    from ledgerkit.verbs.account_history import account_transactions, kv, transfers_of
    from ledgerkit.verbs.accounts import (
        Snapshot,
        accounts,
        accounts_of,
        gas_key_nonces,
        keys,
        snapshot,
    )
    from ledgerkit.verbs.blocks import block, blocks, changes, chunk, chunks, transactions
    from ledgerkit.verbs.cache import cache_info, clear_cache
    from ledgerkit.verbs.contracts import (
        contract_code,
        contract_state,
        global_contract_code,
        view,
        view_many,
    )
    from ledgerkit.verbs.doctor import doctor
    from ledgerkit.verbs.history import history
    from ledgerkit.verbs.node import (
        gas_price,
        health,
        indexer_status,
        protocol_config,
        status,
        validators,
    )
    from ledgerkit.verbs.recordings import inspect, record
    from ledgerkit.verbs.saved_responses import read
    from ledgerkit.verbs.tokens import exposure, ft, nft, nft_tokens, staking, top_holders
    from ledgerkit.verbs.transactions import (
        receipt,
        receipts,
        trace,
        trace_block,
        traces,
        tx,
        verify,
    )
    from ledgerkit.widgets.explorer import explore
    from ledgerkit.widgets.table import show

_HOMES = {
    "archiving": "Archive Verification archive_widget verify_archive",
    "client": "connect disconnect",
    "collecting.diff": "Diff diff",
    "collecting.collection": "Collection open_collection",
    "collecting.plan": "Plan",
    "collecting.collect_blocks": "collect_blocks",
    "collecting.collect": "collect",
    "collecting.follow": "FollowedBlock Following follow",
    "errors": "LedgerError",
    "verbs.recordings": "inspect record",
    "verbs.saved_responses": "read",
    "reconciling.collecting_statements": "statements",
    "reconciling.plan": "StatementPlan",
    "reconciling.statement": "Statement",
    "reconciling.verbs": "statement",
    "sending.verbs": (
        "add_key call create_account delegate delete_key deploy relay resume send track transfer"
    ),
    "transport.settings": "Cache RetryPolicy",
    "sending.signers": "Signer signer use_signer",
    "sending.simulation": "simulate",
    "sending.submission": "Submission",
    "tracing.proof": "Proof",
    "tracing.trace": "Trace",
    "tracing.traces": "Traces",
    "u128.array": "U128Array U128Dtype",
    "u128.human_units": "amount_format from_units to_units",
    "u128.parquet": "read_parquet to_arrow write_parquet",
    "verbs.account_history": "account_transactions kv transfers_of",
    "verbs.accounts": "Snapshot accounts accounts_of gas_key_nonces keys snapshot",
    "verbs.blocks": "block blocks changes chunk chunks transactions",
    "verbs.contracts": "contract_code contract_state global_contract_code view view_many",
    "verbs.doctor": "doctor",
    "verbs.cache": "cache_info clear_cache",
    "verbs.node": "gas_price health indexer_status protocol_config status validators",
    "frames.build": "schema",
    "frames.excel": "to_excel",
    "frames.human": "human",
    "ledger": "Ledger",
    "verbs.history": "history",
    "verbs.tokens": "exposure ft nft nft_tokens staking top_holders",
    "verbs.transactions": "receipt receipts trace trace_block traces tx verify",
    "widgets.explorer": "explore",
    "widgets.table": "show",
}
_MODULES = ("errors", "plots", "protocol", "units", "widgets")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Archive",
    "Cache",
    "Collection",
    "Diff",
    "FollowedBlock",
    "Following",
    "Ledger",
    "LedgerError",
    "Plan",
    "Proof",
    "RetryPolicy",
    "Signer",
    "Snapshot",
    "Statement",
    "StatementPlan",
    "Submission",
    "Trace",
    "Traces",
    "U128Array",
    "U128Dtype",
    "Verification",
    "__version__",
    "account_transactions",
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
    "doctor",
    "errors",
    "explore",
    "exposure",
    "follow",
    "from_units",
    "ft",
    "gas_key_nonces",
    "gas_price",
    "global_contract_code",
    "health",
    "history",
    "human",
    "indexer_status",
    "inspect",
    "keys",
    "kv",
    "nft",
    "nft_tokens",
    "open_collection",
    "protocol_config",
    "read",
    "read_parquet",
    "receipt",
    "receipts",
    "record",
    "relay",
    "resume",
    "schema",
    "send",
    "show",
    "signer",
    "simulate",
    "snapshot",
    "staking",
    "statement",
    "statements",
    "status",
    "to_arrow",
    "to_excel",
    "to_units",
    "top_holders",
    "trace",
    "trace_block",
    "traces",
    "track",
    "transactions",
    "transfer",
    "transfers_of",
    "tx",
    "use_signer",
    "validators",
    "verify",
    "verify_archive",
    "view",
    "view_many",
    "write_parquet",
]

register()


def __getattr__(name: str) -> Any:
    """Load a public name or a submodule at its first use."""
    if name in _HOME_OF:
        value = getattr(_load(_HOME_OF[name]), name)
    elif name in _MODULES:
        value = _load(name)
    else:
        from importlib.util import find_spec

        from ledgerkit.errors import missing_attribute

        # An import of a module that is not loaded yet asks here first: it is no misspelt name.
        is_module = name.isidentifier() and find_spec(f"{__name__}.{name}") is not None
        raise missing_attribute(__name__, name, () if is_module else __dir__())
    globals()[name] = value
    return value


def _load(module: str) -> Any:
    """Import a module of the package, and pandas if it needs it."""
    from importlib import import_module

    return import_module(f"ledgerkit.{module}")


def __dir__() -> list[str]:
    """List the public names and submodules, loaded or not."""
    return sorted({*__all__, *_MODULES})
