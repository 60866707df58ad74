"""The tables of collections by kind, with their schemas and the columns of their subjects."""

from __future__ import annotations

# The indexer has these views of accounts; a node has the contracts.
INDEXED_VIEWS = ("accounts", "ft", "nft", "staking", "exposure")
# These belong to the transactions of a block, whichever block they ran in.
TRACED = ("receipts", "events", "transfers", "intents")
NODE_VIEWS = ("blocks", "chunks", "transactions", *TRACED)
DOCUMENT_VIEWS = ("outcomes", "actions", "balances", "data_receipts")  # in block documents only
VIEWS = {
    "accounts": (*INDEXED_VIEWS, "contracts"),
    "blocks": (*NODE_VIEWS, *DOCUMENT_VIEWS),
    "statements": ("entries", "gaps", "totals", "rewards"),
}
# The tables of every collection in addition to its views.
SUBJECTS, ERRORS = "subjects", "errors"
TABLES = (*VIEWS["accounts"], *VIEWS["blocks"], *VIEWS["statements"], SUBJECTS, ERRORS)
# The schemas of the tables that have another name than their schema.
_SCHEMAS = {
    **{view: f"collected_{view}" for view in (*TRACED, *DOCUMENT_VIEWS)},
    "entries": "statement",
    "gaps": "statement_gaps",
    "totals": "statement_totals",
    "rewards": "statement_rewards",
    SUBJECTS: "collected",
    ERRORS: "collection_errors",
}


def schema_name(table: str) -> str:
    return _SCHEMAS.get(table, table)


def key_column(view: str) -> str:
    """Return the column of a view's table that holds the subject of a row."""
    if view in TRACED:
        return "tx_block_height"
    return "block_height" if view in VIEWS["blocks"] else "account_id"
