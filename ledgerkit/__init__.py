"""
From a NEAR account id or a transaction hash to exact pandas DataFrames.

Start with `connect`, then ask: `accounts`, `snapshot`, `ft`, `nft`, `staking`,
`receipts`. Every name loads with its first use.
"""

from __future__ import annotations

from ledgerkit._version import __version__ as __version__
from ledgerkit.u128.registration import register

TYPE_CHECKING = False  # type checkers know the name; importing typing would cost most of the time
if TYPE_CHECKING:  # `as` marks what is exported, for type checkers
    from typing import Any

    from ledgerkit import archiving as archiving
    from ledgerkit import errors as errors
    from ledgerkit import plots as plots
    from ledgerkit import protocol as protocol
    from ledgerkit import types as types
    from ledgerkit import units as units
    from ledgerkit import widgets as widgets
    from ledgerkit.client import connect as connect
    from ledgerkit.client import disconnect as disconnect
    from ledgerkit.collecting.collect import collect as collect
    from ledgerkit.collecting.collect_blocks import collect_blocks as collect_blocks
    from ledgerkit.collecting.collection import open_collection as open_collection
    from ledgerkit.collecting.diff import diff as diff
    from ledgerkit.collecting.follow import follow as follow
    from ledgerkit.errors import LedgerError as LedgerError
    from ledgerkit.frames.build import schema as schema
    from ledgerkit.frames.excel import to_excel as to_excel
    from ledgerkit.frames.human import human as human
    from ledgerkit.ledger import Ledger as Ledger
    from ledgerkit.reconciling.collecting_statements import statements as statements
    from ledgerkit.reconciling.statement import Statement as Statement
    from ledgerkit.reconciling.verbs import statement as statement
    from ledgerkit.sending.signers import signer as signer
    from ledgerkit.sending.signers import use_signer as use_signer
    from ledgerkit.sending.simulation import simulate as simulate
    from ledgerkit.sending.verbs import add_key as add_key
    from ledgerkit.sending.verbs import call as call
    from ledgerkit.sending.verbs import create_account as create_account
    from ledgerkit.sending.verbs import delegate as delegate
    from ledgerkit.sending.verbs import delete_key as delete_key
    from ledgerkit.sending.verbs import deploy as deploy
    from ledgerkit.sending.verbs import relay as relay
    from ledgerkit.sending.verbs import send as send
    from ledgerkit.sending.verbs import track as track
    from ledgerkit.sending.verbs import transfer as transfer
    from ledgerkit.tracing.trace import Trace as Trace
    from ledgerkit.transport.settings import Cache as Cache
    from ledgerkit.transport.settings import RetryPolicy as RetryPolicy
    from ledgerkit.u128.human_units import amount_format as amount_format
    from ledgerkit.u128.human_units import from_units as from_units
    from ledgerkit.u128.human_units import to_units as to_units
    from ledgerkit.u128.parquet import read_parquet as read_parquet
    from ledgerkit.u128.parquet import to_arrow as to_arrow
    from ledgerkit.u128.parquet import to_polars as to_polars
    from ledgerkit.u128.parquet import write_parquet as write_parquet
    from ledgerkit.verbs.account_history import account_transactions as account_transactions
    from ledgerkit.verbs.account_history import key_values as key_values
    from ledgerkit.verbs.account_history import transfers_of as transfers_of
    from ledgerkit.verbs.accounts import accounts as accounts
    from ledgerkit.verbs.accounts import accounts_of as accounts_of
    from ledgerkit.verbs.accounts import balance as balance
    from ledgerkit.verbs.accounts import keys as keys
    from ledgerkit.verbs.accounts import snapshot as snapshot
    from ledgerkit.verbs.activity import activity as activity
    from ledgerkit.verbs.blocks import block as block
    from ledgerkit.verbs.blocks import blocks as blocks
    from ledgerkit.verbs.blocks import changes as changes
    from ledgerkit.verbs.blocks import chunks as chunks
    from ledgerkit.verbs.blocks import transactions as transactions
    from ledgerkit.verbs.cache import cache_info as cache_info
    from ledgerkit.verbs.cache import clear_cache as clear_cache
    from ledgerkit.verbs.contracts import contract_code as contract_code
    from ledgerkit.verbs.contracts import contract_state as contract_state
    from ledgerkit.verbs.contracts import view as view
    from ledgerkit.verbs.contracts import view_many as view_many
    from ledgerkit.verbs.doctor import doctor as doctor
    from ledgerkit.verbs.history import history as history
    from ledgerkit.verbs.lockups import lockups as lockups
    from ledgerkit.verbs.node import gas_price as gas_price
    from ledgerkit.verbs.node import protocol_config as protocol_config
    from ledgerkit.verbs.node import status as status
    from ledgerkit.verbs.node import validators as validators
    from ledgerkit.verbs.recordings import read_recording as read_recording
    from ledgerkit.verbs.recordings import record as record
    from ledgerkit.verbs.saved_responses import read_response as read_response
    from ledgerkit.verbs.tokens import exposure as exposure
    from ledgerkit.verbs.tokens import ft as ft
    from ledgerkit.verbs.tokens import nft as nft
    from ledgerkit.verbs.tokens import nft_tokens as nft_tokens
    from ledgerkit.verbs.tokens import staking as staking
    from ledgerkit.verbs.tokens import token_metadata as token_metadata
    from ledgerkit.verbs.tokens import top_holders as top_holders
    from ledgerkit.verbs.transactions import receipt as receipt
    from ledgerkit.verbs.transactions import receipts as receipts
    from ledgerkit.verbs.transactions import trace as trace
    from ledgerkit.verbs.transactions import trace_block as trace_block
    from ledgerkit.verbs.transactions import traces as traces
    from ledgerkit.verbs.transactions import verify as verify
    from ledgerkit.widgets.explorer import explore as explore
    from ledgerkit.widgets.table import show as show

_HOMES = {
    "client": "connect disconnect",
    "collecting.collect": "collect",
    "collecting.collect_blocks": "collect_blocks",
    "collecting.collection": "open_collection",
    "collecting.diff": "diff",
    "collecting.follow": "follow",
    "errors": "LedgerError",
    "frames.build": "schema",
    "frames.excel": "to_excel",
    "frames.human": "human",
    "ledger": "Ledger",
    "reconciling.collecting_statements": "statements",
    "reconciling.statement": "Statement",
    "reconciling.verbs": "statement",
    "sending.signers": "signer use_signer",
    "sending.simulation": "simulate",
    "sending.verbs": (
        "add_key call create_account delegate delete_key deploy relay send track transfer"
    ),
    "tracing.trace": "Trace",
    "transport.settings": "Cache RetryPolicy",
    "u128.human_units": "amount_format from_units to_units",
    "u128.parquet": "read_parquet to_arrow to_polars write_parquet",
    "verbs.account_history": "account_transactions key_values transfers_of",
    "verbs.accounts": "accounts accounts_of balance keys snapshot",
    "verbs.activity": "activity",
    "verbs.blocks": "block blocks changes chunks transactions",
    "verbs.cache": "cache_info clear_cache",
    "verbs.contracts": "contract_code contract_state view view_many",
    "verbs.doctor": "doctor",
    "verbs.history": "history",
    "verbs.lockups": "lockups",
    "verbs.node": "gas_price protocol_config status validators",
    "verbs.recordings": "read_recording record",
    "verbs.saved_responses": "read_response",
    "verbs.tokens": "exposure ft nft nft_tokens staking token_metadata top_holders",
    "verbs.transactions": "receipt receipts trace trace_block traces verify",
    "widgets.explorer": "explore",
    "widgets.table": "show",
}
_MODULES = ("archiving", "errors", "plots", "protocol", "types", "units", "widgets")
_SYNONYMS = {  # names that people look for, and the verbs that answer
    "events": "trace",
    "ft_metadata": "token_metadata",
    "holders": "top_holders",
    "rewards": "statement",
    "stake": "staking",
    "tokens": "ft",
    "transaction": "trace",
    "txs": "activity",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(("__version__", "errors", *_HOME_OF))  # noqa: PLE0605 - a list of texts

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
        if is_module:
            raise missing_attribute(__name__, name, ())
        raise missing_attribute(__name__, name, __dir__(), **_SYNONYMS)
    globals()[name] = value
    return value


def _load(module: str) -> Any:
    from importlib import import_module

    return import_module(f"ledgerkit.{module}")


def __dir__() -> list[str]:
    """List the public names and submodules, loaded or not."""
    return sorted({*__all__, *_MODULES})
