"""
The columns of every frame: a promise, declared once.

Each frame is a tuple of `Column`. Its dtype is one of these words:

- ``str``: pandas text (missing is NaN)
- ``u128``: exact unsigned integers of up to 128 bits (missing is `pandas.NA`)
- ``Int64`` / ``UInt64`` / ``boolean``: nullable, never through float64
- ``time``: ``datetime64[ns, UTC]``
- ``bool`` / ``float64``: never missing / human units, for plots only
- ``object``: Python values (lists, decoded JSON, bytes)
"""

from __future__ import annotations

from dataclasses import dataclass

AMOUNT_UNIT = "smallest unit of the token"
YOCTO = "yoctoNEAR"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, dtype word, unit and meaning."""

    name: str
    dtype: str
    unit: str
    meaning: str


def _c(name: str, dtype: str, meaning: str, unit: str = "") -> Column:
    """Declare one column."""
    return Column(name, dtype, unit, meaning)


_ACCOUNT = _c("account_id", "str", "the account asked about")
_UPDATED = _c(
    "last_update_block_height", "Int64", "last change seen by the indexer; missing: none", "block"
)

_FT = (
    _ACCOUNT,
    _c("contract_id", "str", "the token's contract"),
    _c("balance", "u128", "exact balance; missing unless status is ok", AMOUNT_UNIT),
    _UPDATED,
    _c("status", "str", "ok, pending (not fetched yet) or broken (the contract's call failed)"),
)
_FT_METADATA = (
    _c("symbol", "str", "the token's symbol, control characters removed"),
    _c("decimals", "Int64", "digits after the decimal point; missing when not 0 to 255"),
    _c("amount", "float64", "balance in human units, rounded once; for plots", "token"),
    _c("metadata_status", "str", "ok, missing (the contract has none), broken or unread"),
)
_STAKING = (_ACCOUNT, _c("pool_id", "str", "a pool the account ever delegated to"), _UPDATED)
_POSITIONS = (
    _c("staked", "u128", "staked with the pool", YOCTO),
    _c("unstaked", "u128", "unstaked, not withdrawn yet", YOCTO),
    _c("can_withdraw", "boolean", "whether the unstaked part can be withdrawn now"),
    _c("status", "str", "ok, or not_a_pool when the contract does not answer as one"),
    _c("source", "str", "indexed, or asked (named in pools=)"),
)

_RECEIPTS = (
    _c("receipt_id", "str", "the receipt"),
    _c("parent_id", "str", "the receipt that created it; missing: the transaction did"),
    _c("depth", "Int64", "creators above it", "count"),
    _c("order", "Int64", "causal order: after its creator and after what it waits for"),
    _c("kind", "str", "action or refund; missing where the document does not tell"),
    _c("is_local", "bool", "true for a first receipt that ran where the transaction did"),
    _c("predecessor_id", "str", "who sent it; system for refunds"),
    _c("receiver_id", "str", "who receives it"),
    _c("signer_id", "str", "who signed the transaction; system for refunds of deposits"),
    _c("shard_id", "Int64", "where it ran; missing unless the service tells"),
    _c("block_hash", "str", "the block it ran in"),
    _c("block_height", "Int64", "height of that block", "block"),
    _c("time", "time", "time of that block"),
    _c("actions", "str", "action names joined by +"),
    _c("method_name", "str", "methods of function calls joined by +, those delegated too"),
    _c("args", "object", "their arguments, JSON decoded, else bytes; several are a list"),
    _c("deposit", "u128", "over all actions; what a Delegate moves comes later", YOCTO),
    _c("gas_attached", "Int64", "over all function calls, those delegated too", "gas"),
    _c("gas_burnt", "Int64", "by this receipt alone; missing when it has not run", "gas"),
    _c("tokens_burnt", "u128", "fee of this receipt alone", YOCTO),
    _c(
        "status",
        "str",
        "success_value, success_receipt_id, failure, unknown or not_executed",
    ),
    _c("error_kind", "str", "of a failure: the ledger's names joined by dots"),
    _c("error_message", "str", "of a failure: one sentence, or the contract's own text"),
    _c("logs", "object", "what it logged, a list"),
    _c("input_data_ids", "object", "data it waits for, a list"),
    _c("output_data_receivers", "object", "who gets its result: data_id and receiver_id"),
    _c("waits_for", "object", "receipt_id of each producer of its data, a list"),
    _c("subtree_gas", "u128", "burnt by it and all it led to, so far", "gas"),
    _c("on_critical_path", "bool", "whether the receipt that ran last depended on it"),
)
_AT_RECEIPT = (
    _c("receipt_id", "str", "the receipt; missing: the transaction itself"),
    _c("order", "Int64", "the receipt's place in causal order"),
    _c("block_height", "Int64", "height of the block it ran in", "block"),
)
_EVENTS = (
    *_AT_RECEIPT,
    _c("log_index", "Int64", "which of the receipt's log lines"),
    _c("contract_id", "str", "the contract that logged it"),
    _c("standard", "str", "the standard it follows, such as nep141"),
    _c("version", "str", "the standard's version"),
    _c("event", "str", "what happened, such as ft_transfer"),
    _c("data", "object", "the event's data, decoded; missing where there is none"),
    _c("is_effective", "bool", "whether the receipt succeeded; else nothing happened"),
    _c("note", "str", "what is wrong with the event, where something is"),
)
_OF_TRANSACTION = (
    _c("tx_block_height", "Int64", "the block that includes the transaction", "block"),
    _c("tx_hash", "str", "the transaction"),
)

_COLLECTION = _c("contract_id", "str", "the collection's contract")
_RECORD = (
    _c("widget_path", "str", "where the widget stands in the social database"),
    _c("source_contract_id", "str", "the social database's contract"),
    _c("source_network", "str", "the chain it was read on, as its node calls it"),
    _c("socialdb_block_height", "Int64", "the block in which the source was written", "block"),
    _c("source_sha256", "str", "the source's SHA-256, hexadecimal"),
)

_CHANGE = _c(
    "change",
    "str",
    "entered (from nothing), left (to nothing), grew, shrank, became_known or became_unknown",
)
_GAINED = (
    _c("before", "u128", "balance before; 0 where not listed, missing where unknown", AMOUNT_UNIT),
    _c("after", "u128", "balance after, likewise", AMOUNT_UNIT),
    _c(
        "difference",
        "object",
        "exact, with its sign: a Python integer; missing where one is unknown",
        AMOUNT_UNIT,
    ),
    _c("before_status", "str", "status before, or not_listed"),
    _c("after_status", "str", "status after, or not_listed"),
)

_POSITION = _c("position", "Int64", "place in the source, from 0; of a block its height")
_SUBJECT = _c("subject", "str", "what was asked about, such as an account_id or a height")

SCHEMAS: dict[str, tuple[Column, ...]] = {
    "accounts": (
        _ACCOUNT,
        _c("status", "str", "ok, not_indexed (the indexer holds no state) or no_account"),
        _c("balance", "u128", "not locked, storage included", YOCTO),
        _c("locked", "u128", "locked as a validator's stake", YOCTO),
        _c("storage_bytes", "Int64", "bytes of state the account holds", "byte"),
        _c("storage_cost", "u128", "storage_bytes at 10^19 a byte", YOCTO),
        _c("spendable", "u128", "balance less what storage holds back", YOCTO),
        _c("n_tokens", "Int64", "fungible tokens ever held", "count"),
        _c("n_nfts", "Int64", "NFT collections ever held", "count"),
        _c("n_pools", "Int64", "staking pools ever delegated to", "count"),
        _c("last_update_block_height", "Int64", "latest change among all its entries", "block"),
    ),
    "accounts_of": (
        _c("public_key", "str", "the key asked about"),
        _c("account_id", "str", "an account that holds it, in the wire's order"),
        _c("is_primary", "bool", "true on the first; the wire promises no order"),
    ),
    "ft": _FT,
    "ft_metadata": (*_FT, *_FT_METADATA),
    "nft": (_ACCOUNT, _c("contract_id", "str", "the collection's contract"), _UPDATED),
    "nft_tokens": (
        _ACCOUNT,
        _c("contract_id", "str", "the collection's contract"),
        _c("token_id", "str", "the token's id within its collection"),
        _c("owner_id", "str", "the owner as the contract tells it"),
        _c("title", "str", "metadata: title"),
        _c("description", "str", "metadata: description"),
        _c("media", "str", "metadata: media, an address or relative to the base address"),
        _c("media_hash", "str", "metadata: media_hash"),
        _c("copies", "str", "metadata: copies, as sent"),
        _c("issued_at", "str", "metadata: issued_at, as sent (ms or ns, by contract)"),
        _c("expires_at", "str", "metadata: expires_at, as sent"),
        _c("starts_at", "str", "metadata: starts_at, as sent"),
        _c("updated_at", "str", "metadata: updated_at, as sent"),
        _c("extra", "str", "metadata: extra, opaque"),
        _c("reference", "str", "metadata: reference"),
        _c("reference_hash", "str", "metadata: reference_hash"),
        _c("approved_account_ids", "object", "account to approval number, or missing"),
    ),
    "staking": _STAKING,
    "staking_positions": (*_STAKING, *_POSITIONS),
    "exposure": (
        _ACCOUNT,
        _c(
            "exposure_class",
            "str",
            "mixed, direct_only, liquid_only or no_visible_staking_position",
        ),
        _c("n_direct", "Int64", "pools that counted", "count"),
        _c("n_liquid", "Int64", "liquid staking tokens that counted", "count"),
        _c("n_unknown", "Int64", "entries counted although their balance is unknown", "count"),
        _c("direct_pools", "object", "pool_id of each that counted, a list"),
        _c("liquid_tokens", "object", "contract_id of each that counted, a list"),
    ),
    "history": (
        _ACCOUNT,
        _c("view", "str", "what was read: accounts, ft or staking"),
        _c("contract_id", "str", "the token's contract, or the pool; missing in accounts"),
        _c("block_height", "Int64", "the block it was read at", "block"),
        _c("block_hash", "str", "its hash, the same for all rows of a block"),
        _c("time", "time", "time of that block"),
        _c(
            "status",
            "str",
            "ok, no_account (not there at that block), no_contract, broken (the token's call "
            "failed) or not_a_pool",
        ),
        _c("balance", "u128", "of accounts in yoctoNEAR, not locked; of ft", AMOUNT_UNIT),
        _c("locked", "u128", "accounts: locked as a validator's stake", YOCTO),
        _c("staked", "u128", "staking: staked with the pool", YOCTO),
        _c("unstaked", "u128", "staking: unstaked, not withdrawn yet", YOCTO),
        _c("storage_bytes", "Int64", "accounts: bytes of state the account holds", "byte"),
    ),
    "top_holders": (
        _c("contract_id", "str", "the token's contract"),
        _c("rank", "Int64", "position in the view, 1 is first", "count"),
        _c("account_id", "str", "the holder"),
        _c("balance", "u128", "exact balance; missing unless status is ok", AMOUNT_UNIT),
        _c("status", "str", "ok, pending or broken"),
    ),
    "keys": (
        _ACCOUNT,
        _c("public_key", "str", "curve:base58"),
        _c("nonce", "UInt64", "the key's last used nonce"),
        _c(
            "permission",
            "str",
            "FullAccess, FunctionCall, GasKeyFullAccess or GasKeyFunctionCall",
        ),
        _c("receiver_id", "str", "function-call keys: the one contract they may call"),
        _c("method_names", "object", "function-call keys: allowed methods; empty list is all"),
        _c("allowance", "u128", "function-call keys: gas money left", YOCTO),
        _c("is_unlimited", "boolean", "function-call keys: true when no allowance is set"),
        _c(
            "added_at_block",
            "Int64",
            "from the nonce; missing for keys older than the rule",
            "block",
        ),
        _c("use_count", "Int64", "from the nonce: how often the key was used, about", "count"),
    ),
    "blocks": (
        _c("block_height", "Int64", "height", "block"),
        _c("block_hash", "str", "hash"),
        _c("time", "time", "the block's timestamp"),
        _c("author", "str", "the validator that made it"),
        _c("prev_height", "Int64", "height of the block before; missing on old nodes", "block"),
        _c("prev_hash", "str", "hash of the block before"),
        _c("epoch_id", "str", "epoch"),
        _c("last_final_block", "str", "hash of the last final block seen from here"),
        _c("n_chunks", "Int64", "shards", "count"),
        _c("chunks_included", "Int64", "chunks that are new in this block", "count"),
        _c("gas_used", "u128", "over the new chunks, of their previous application", "gas"),
        _c("gas_limit", "u128", "over the new chunks", "gas"),
        _c("gas_price", "u128", "price for the next block", "yoctoNEAR per gas"),
        _c("total_supply", "u128", "total supply", YOCTO),
        _c("protocol_version", "Int64", "latest_protocol_version of its author"),
    ),
    "chunks": (
        _c(
            "block_height",
            "Int64",
            "the block asked for; missing when asked by chunk hash",
            "block",
        ),
        _c("shard_id", "Int64", "shard"),
        _c("chunk_hash", "str", "hash"),
        _c("author", "str", "chunk producer; missing when read from a block"),
        _c("is_new", "boolean", "false when the block repeats an older chunk"),
        _c("height_created", "Int64", "height it was made for", "block"),
        _c("height_included", "Int64", "height of the block that included it", "block"),
        _c("gas_used", "Int64", "of the previous application", "gas"),
        _c("gas_limit", "Int64", "limit", "gas"),
        _c("balance_burnt", "u128", "of the previous application", YOCTO),
        _c("n_transactions", "Int64", "transactions; missing when read from a block", "count"),
        _c("n_receipts", "Int64", "incoming receipts; missing when read from a block", "count"),
    ),
    "transactions": (
        _c("block_height", "Int64", "the block", "block"),
        _c("shard_id", "Int64", "shard of the signer"),
        _c("tx_hash", "str", "hash"),
        _c("signer_id", "str", "who signed"),
        _c("receiver_id", "str", "who receives"),
        _c("nonce", "UInt64", "nonce of the access key"),
        _c("public_key", "str", "the key that signed"),
        _c("actions", "str", "action names joined by +"),
        _c("method_name", "str", "methods of function calls joined by +"),
        _c("deposit", "u128", "over all actions", YOCTO),
        _c("gas_attached", "Int64", "over all function calls", "gas"),
    ),
    "receipts": _RECEIPTS,
    "collected_receipts": (*_OF_TRANSACTION, *_RECEIPTS),
    "traces": (_c("tx_hash", "str", "the transaction"), *_RECEIPTS),
    "events": _EVENTS,
    "collected_events": (*_OF_TRANSACTION, *_EVENTS),
    "transfers": (
        *_AT_RECEIPT,
        _c(
            "kind",
            "str",
            "transfer, deposit (with a call), delegated (a relayer's payment for those it relays "
            "for), fee, refund_gas, refund_deposit, contract_reward, beneficiary, token, nft or "
            "multi_token",
        ),
        _c("asset", "str", "near, nep141:contract, or nep171 and nep245 with :contract:token_id"),
        _c("sender_id", "str", "who gave; system: the chain; missing: it was minted"),
        _c("receiver_id", "str", "who got it; system: the chain; missing: it was burnt"),
        _c("amount", "u128", "exact", AMOUNT_UNIT),
        _c("memo", "str", "what the token's event says besides"),
    ),
    "balance_changes": (
        _c("account_id", "str", "the account"),
        _c("asset", "str", "as in transfers; of near the total, staked or not"),
        _c("change", "object", "exact, with its sign: a Python integer", AMOUNT_UNIT),
    ),
    "gas": (
        *_AT_RECEIPT,
        _c("kind", "str", "conversion (of the transaction), action or refund"),
        _c("account_id", "str", "who burnt it: where it ran"),
        _c("gas_burnt", "Int64", "in all; missing when it has not run", "gas"),
        _c("gas_in_calls", "Int64", "by contracts, inside calls; missing: not told", "gas"),
        _c("tokens_burnt", "u128", "its fee", YOCTO),
        _c("gas_price", "u128", "at which gas was burnt", "yoctoNEAR per gas"),
        _c("gas_refund", "u128", "given back for gas that it did not burn", YOCTO),
        _c("contract_reward", "u128", "the contract's share; missing: not told", YOCTO),
    ),
    "actions": (
        *_AT_RECEIPT,
        _c("action_index", "Int64", "which of the receipt's actions"),
        _c("inner_index", "Int64", "which of those inside a Delegate; missing: not inside one"),
        _c("action", "str", "its name"),
        _c("sender_id", "str", "whose action it is: who sent the receipt, or signed the Delegate"),
        _c("receiver_id", "str", "on whom it acts"),
        _c("method_name", "str", "of a call: the method"),
        _c("args", "object", "of a call: the arguments, JSON decoded, else bytes"),
        _c("gas_attached", "Int64", "of a call", "gas"),
        _c("deposit", "u128", "what it moves; missing: not told", YOCTO),
        _c("details", "object", "its other members, decoded; missing where there are none"),
    ),
    "logs": (
        *_AT_RECEIPT,
        _c("log_index", "Int64", "which of the receipt's log lines"),
        _c("contract_id", "str", "the contract that logged it"),
        _c("log", "str", "the line"),
        _c("is_event", "bool", "whether it is an event (EVENT_JSON)"),
        _c("is_effective", "bool", "whether the receipt succeeded; else nothing happened"),
    ),
    "edges": (
        _c("parent_id", "str", "the receipt an edge leads from"),
        _c("child_id", "str", "the receipt it leads to"),
        _c("kind", "str", "creation, or data: the child waits for the parent's result"),
        _c("data_id", "str", "of a data edge"),
    ),
    "archive_steps": (
        _c("step", "str", "the step, in the flow's order"),
        _c(
            "state",
            "str",
            "pending, running, done, stopped (it decided the outcome), failed or not_taken",
        ),
        _c("detail", "str", "what it found, a sentence"),
        _c("block_height", "Int64", "the block it was read at; missing where it has none", "block"),
        _c("tx_hash", "str", "the transaction that mints"),
    ),
    "archive": (
        _c("outcome", "str", "how it went; the words are told at `ledgerkit.archiving.OUTCOMES`"),
        _COLLECTION,
        _c("token_id", "str", "the prefix, and the first 12 digits of the source's hash"),
        _c("receiver_id", "str", "whose the token is to be"),
        _c("author_account_id", "str", "whose widget"),
        _c("widget_name", "str", "its name"),
        *_RECORD,
        _c("tx_hash", "str", "the transaction that mints; missing where none was sent"),
    ),
    "archive_verification": (
        _c("verdict", "str", "the words are told at `ledgerkit.archiving.VERDICTS`"),
        _COLLECTION,
        _c("token_id", "str", "the token"),
        _c("author_account_id", "str", "whose widget, as the token says"),
        _c("widget_name", "str", "its name, as the token says"),
        *_RECORD,
        _c("found_sha256", "str", "the source's SHA-256 as it was read again"),
    ),
    "status": (
        _c("chain_id", "str", "mainnet, testnet or another"),
        _c("latest_block_height", "Int64", "head", "block"),
        _c("latest_block_hash", "str", "its hash"),
        _c("latest_block_time", "time", "its time"),
        _c("syncing", "boolean", "whether the node still catches up"),
        _c("earliest_block_height", "Int64", "oldest block this host still holds", "block"),
        _c("epoch_id", "str", "current epoch"),
        _c("epoch_start_height", "Int64", "its first block", "block"),
        _c("protocol_version", "Int64", "protocol in force"),
        _c("latest_protocol_version", "Int64", "protocol the node could run"),
        _c("version", "str", "the node's version"),
        _c("n_validators", "Int64", "validators of the epoch", "count"),
    ),
    "indexer_status": (
        _c("version", "str", "the indexer's version"),
        _c("sync_block_height", "Int64", "last indexed block", "block"),
        _c("sync_block_time", "time", "its time"),
        _c("sync_latency_s", "float64", "how far behind the chain", "second"),
        _c("sync_balance_block_height", "Int64", "last block whose balances are in", "block"),
    ),
    "gas_price": (_c("gas_price", "u128", "price of one gas", "yoctoNEAR per gas"),),
    "validators": (
        _ACCOUNT,
        _c("public_key", "str", "the validator's key; missing in kickouts"),
        _c("stake", "u128", "stake; missing in kickouts", YOCTO),
        _c("shards", "object", "shard ids, a list; missing where not told"),
        _c("num_produced_blocks", "Int64", "blocks made", "count"),
        _c("num_expected_blocks", "Int64", "blocks expected", "count"),
        _c("num_produced_chunks", "Int64", "chunks made; missing on old nodes", "count"),
        _c("num_expected_chunks", "Int64", "chunks expected; missing on old nodes", "count"),
        _c("num_produced_endorsements", "Int64", "missing on old nodes", "count"),
        _c("num_expected_endorsements", "Int64", "missing on old nodes", "count"),
        _c("reason", "str", "kickouts: why"),
    ),
    "changes": (
        _c("type", "str", "what kind of change, such as account_update"),
        _ACCOUNT,
        _c("cause", "str", "what caused it, such as receipt_processing"),
        _c("cause_hash", "str", "transaction or receipt that caused it"),
        _c("change", "object", "the change as sent"),
    ),
    "state": (
        _c("key", "object", "the key, bytes"),
        _c("value", "object", "the value, bytes"),
    ),
    "submission": (
        _c("tx_hash", "str", "the transaction"),
        _c(
            "stage",
            "str",
            "accepted, in_mempool, rejected, dropped, included, first_receipt_succeeded, "
            "first_receipt_failed, all_receipts_complete or final",
        ),
        _c("time", "time", "of the block; without one, when it was seen here"),
        _c("block_height", "Int64", "the block that tells it; missing before one does", "block"),
        _c("block_hash", "str", "its hash"),
        _c("detail", "str", "why it was rejected or dropped, or how its first receipt failed"),
    ),
    "dry_run": (
        _c("tx_hash", "str", "the hash it would have"),
        _c("signer_id", "str", "who would sign"),
        _c("receiver_id", "str", "who would receive"),
        _c("actions", "str", "action names joined by +"),
        _c("nonce", "UInt64", "the nonce it would have"),
        _c("size", "Int64", "bytes, the signature included", "byte"),
        _c("cost_bound", "u128", "taken at most, before refunds; missing if not told", YOCTO),
        _c("gas_attached", "u128", "over all calls, those delegated too", "gas"),
        _c("deposit", "u128", "over all actions, those delegated too", YOCTO),
        _c("block_hash", "str", "the final block it would refer to"),
        _c("expires_at_height", "Int64", "the last block that could take it", "block"),
    ),
    "errors": (
        _SUBJECT,
        _c("error", "str", "class of the error"),
        _c("message", "str", "what happened and what to do"),
        _c("retryable", "bool", "whether the same call may work soon"),
    ),
    "collected": (
        _POSITION,
        _SUBJECT,
        _c("fetched_at", "time", "when its answer was in"),
    ),
    "collection_errors": (
        _POSITION,
        _SUBJECT,
        _c(
            "kind",
            "str",
            "failed (asked in vain), malformed or duplicate (not asked), or skipped (by the "
            "chain: a height without a block)",
        ),
        _c("error", "str", "class of the error"),
        _c("message", "str", "what happened and what to do"),
        _c("retryable", "bool", "whether the same call may work soon"),
        _c("fetched_at", "time", "when that was known"),
    ),
    "collection_summary": (
        _c("table", "str", "the table"),
        _c("n_files", "Int64", "its files", "count"),
        _c("n_rows", "Int64", "their rows", "count"),
        _c("n_bytes", "Int64", "their size", "byte"),
    ),
    "diff_accounts": (_ACCOUNT, _CHANGE, *_GAINED),
    "diff_ft": (
        _ACCOUNT,
        _c("contract_id", "str", "the token's contract"),
        _CHANGE,
        *_GAINED,
    ),
    "diff_nft": (_ACCOUNT, _COLLECTION, _c("change", "str", "entered or left")),
    "diff_staking": (
        _ACCOUNT,
        _c("pool_id", "str", "the pool"),
        _c("change", "str", "entered or left"),
    ),
    "diff_exposure": (
        _ACCOUNT,
        _c("change", "str", "entered (had no position), left (has none) or changed"),
        _c("before", "str", "exposure_class before"),
        _c("after", "str", "exposure_class after"),
    ),
    "diff_not_compared": (
        _ACCOUNT,
        _c(
            "before",
            "str",
            "answered, failed, absent (not in that collection) or unclear (told twice)",
        ),
        _c("after", "str", "the same of the later collection"),
    ),
    "diff_summary": (
        _c("change", "str", "what changed"),
        _c("n_rows", "Int64", "rows of the kind", "count"),
        _c("n_accounts", "Int64", "accounts that have such rows", "count"),
    ),
    "cache": (
        _c("kind", "str", "block, chunk, transaction, read (at a block's hash) or metadata"),
        _c("entries", "Int64", "answers kept on disk", "count"),
        _c("bytes", "Int64", "their size as sent", "byte"),
        _c("hits", "Int64", "answers this ledger had not to ask for", "count"),
        _c("misses", "Int64", "questions it had to ask", "count"),
    ),
    "requests": (
        _c("surface", "str", "rpc, archival_rpc or api"),
        _c("method", "str", "HTTP method"),
        _c("address", "str", "where it would go; never with a key"),
        _c("body", "str", "the request's body; missing for GET"),
    ),
}
