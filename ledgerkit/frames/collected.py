"""The tables of collections by kind, with their schemas and the columns of their subjects."""

from __future__ import annotations

from typing import NamedTuple


class _View(NamedTuple):
    """A view: the schema of its table, and the column that holds the subject of a row."""

    schema: str
    key: str


_KINDS = {
    "accounts": {
        "accounts": _View("accounts", "account_id"),
        "ft": _View("ft", "account_id"),
        "nft": _View("nft", "account_id"),
        "staking": _View("staking", "account_id"),
        "exposure": _View("exposure", "account_id"),
        "contracts": _View("contracts", "account_id"),
    },
    "blocks": {
        "blocks": _View("blocks", "block_height"),
        "chunks": _View("chunks", "block_height"),
        "transactions": _View("transactions", "block_height"),
        # These belong to the transactions of a block, whichever block they ran in.
        "receipts": _View("collected_receipts", "tx_block_height"),
        "events": _View("collected_events", "tx_block_height"),
        "transfers": _View("collected_transfers", "tx_block_height"),
        "intents": _View("collected_intents", "tx_block_height"),
        "outcomes": _View("collected_outcomes", "block_height"),
        "actions": _View("collected_actions", "block_height"),
        "balances": _View("collected_balances", "block_height"),
        "data_receipts": _View("collected_data_receipts", "block_height"),
    },
    "statements": {
        "entries": _View("statement", "account_id"),
        "gaps": _View("statement_gaps", "account_id"),
        "totals": _View("statement_totals", "account_id"),
        "rewards": _View("statement_rewards", "account_id"),
    },
}
_VIEWS = {name: view for views in _KINDS.values() for name, view in views.items()}
VIEWS = {kind: tuple(views) for kind, views in _KINDS.items()}
# The indexer has these views of accounts; a node has the others.
INDEXED_VIEWS = tuple(view for view in VIEWS["accounts"] if view != "contracts")
# Only block documents have these; a node has the other views of blocks.
DOCUMENT_VIEWS = ("outcomes", "actions", "balances", "data_receipts")
NODE_VIEWS = tuple(view for view in VIEWS["blocks"] if view not in DOCUMENT_VIEWS)
TRACED = tuple(name for name, view in _VIEWS.items() if view.key == "tx_block_height")
# The tables of every collection in addition to its views.
SUBJECTS, ERRORS = "subjects", "errors"
_SCHEMAS = {
    **{name: view.schema for name, view in _VIEWS.items()},
    SUBJECTS: "collected",
    ERRORS: "collection_errors",
}
TABLES = tuple(_SCHEMAS)


def schema_name(table: str) -> str:
    return _SCHEMAS.get(table, table)


def key_column(view: str) -> str:
    """Return the column of a view's table that holds the subject of a row."""
    return _VIEWS[view].key
