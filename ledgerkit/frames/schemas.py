"""
The schemas of all frames: names, dtypes, units and meanings of their columns.

Each frame is a tuple of `Column`. The dtype of a column is one of these words:

- ``str``: pandas text (missing is NaN)
- ``u128``: exact unsigned integers of up to 128 bits (missing is `pandas.NA`)
- ``i129``: their exact differences, which are signed (missing is `pandas.NA`)
- ``Int64`` / ``UInt64`` / ``boolean``: nullable, never through float64
- ``time``: ``datetime64[ns, UTC]``
- ``bool`` / ``float64``: never missing / seconds
- ``Float64``: human units, for plots only; pandas prints it without an exponent
- ``object``: Python values (lists, decoded JSON, bytes)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

AMOUNT_UNIT = "smallest unit of the token"
UNITS_BY_ASSET = "smallest unit of each asset"
FRACTION = "fraction"
YOCTO = "yoctoNEAR"
_AMOUNTS = {"u128", "i129"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, dtype word, meaning and unit."""

    name: str
    dtype: str
    meaning: str
    unit: str = ""


_c = Column
_ACCOUNT = _c("account_id", "str", "the account")
_UPDATED = _c(
    "last_update_block_height",
    "Int64",
    "block of the last indexed change; missing if none",
    "block",
)

_IF_UNKNOWN = "missing if the indexer has neither a state nor holdings"

_FT = (
    _ACCOUNT,
    _c("contract_id", "str", "contract of the token"),
    _c("balance", "u128", "exact balance; missing unless `status` is ok", AMOUNT_UNIT),
    _UPDATED,
    _c(
        "status",
        "str",
        "ok, pending (not indexed yet), broken (the contract call failed) or no_contract (there "
        "was none at the block)",
    ),
)
_FT_INTENTS = (
    *_FT,
    _c("held_in", "str", "where the tokens are: wallet or intents.near"),
    _c("token_id", "str", "id of the token in intents.near, such as nep141:wrap.near"),
)
_SYMBOL = (
    _c("symbol", "str", "symbol of the token, control characters escaped, at most 64 characters"),
    _c("decimals", "Int64", "decimal places of the token; missing if not from 0 to 255"),
)
_FT_METADATA = (
    *_SYMBOL,
    _c("amount", "Float64", "balance in whole tokens as a rounded float, for plots", "token"),
    _c("metadata_status", "str", "ok, missing, broken (not usable) or unread (request failed)"),
)
CODE = (
    _c(
        "contract",
        "str",
        "none, local (its own code), global_by_hash or global_by_account (published code); missing"
        " if it was not asked for",
    ),
    _c("code_hash", "str", "hash of local code or of code used by hash; missing for others"),
    _c("code_account_id", "str", "global_by_account: account that published the code"),
    _c("bootstrap_nonce", "Int64", "nonce of the first transaction of an uninitialized account"),
)
_HOLDERS = (
    _c("contract_id", "str", "contract of the token"),
    _c("rank", "Int64", "rank in the response, from 1", "count"),
    _c("account_id", "str", "account that holds the token"),
    _c("balance", "u128", "exact balance; missing unless `status` is ok", AMOUNT_UNIT),
    _c("status", "str", "ok, pending (not indexed yet) or broken (the contract call failed)"),
)
_STAKING = (
    _ACCOUNT,
    _c("pool_id", "str", "staking pool that the account delegated to at any time"),
    _UPDATED,
)
_POSITIONS = (
    _c("staked", "u128", "amount staked with the pool; liquid: worth of the tokens", YOCTO),
    _c("unstaked", "u128", "amount unstaked and not yet withdrawn", YOCTO),
    _c("can_withdraw", "boolean", "True if the unstaked amount can be withdrawn now"),
    _c(
        "status",
        "str",
        "ok, not_a_pool (the contract has no staking pool's view method), not_indexed (the"
        " indexer does not know the account), or of a liquid token: no_rate (its contract states"
        " no worth), pending or broken, as in `ft`",
    ),
    _c(
        "source",
        "str",
        "indexed (listed by the indexer), asked (passed as `pools`), lockup or venear (the"
        " account's lockup contract stakes), or liquid (`pool_id` is a token)",
    ),
    _c("tokens", "u128", "liquid: balance of the token", AMOUNT_UNIT),
)

_EXPOSURE = (
    _ACCOUNT,
    _c("exposure_class", "str", "mixed, direct_only, liquid_only or no_visible_staking_position"),
    _c("status", "str", "ok, or not_indexed (the indexer has neither a state nor holdings)"),
    _c("n_direct", "Int64", f"staking pools that count for the class; {_IF_UNKNOWN}", "count"),
    _c("n_liquid", "Int64", f"liquid tokens that count for the class; {_IF_UNKNOWN}", "count"),
    _c("n_unknown", "Int64", f"how many have an unknown amount; {_IF_UNKNOWN}", "count"),
    _c("direct_pools", "object", "pool_ids of these pools, a list"),
    _c("liquid_tokens", "object", "contract_ids of these tokens, a list"),
)

_ERROR_MESSAGE = "failures: a sentence, or the contract's message; the name of a status not known"
_RECEIPTS = (
    _c("receipt_id", "str", "id of the receipt"),
    _c("parent_id", "str", "receipt that created it; missing if the transaction did"),
    _c("depth", "Int64", "number of ancestor receipts; 0 for the first receipt", "count"),
    _c("order", "Int64", "position in causal order, from 0: after its creator and its inputs"),
    _c("kind", "str", "action or refund; missing if unknown"),
    _c("is_local", "bool", "True for the first receipt if it ran with the transaction"),
    _c("predecessor_id", "str", "account that sent it; system for refunds"),
    _c("receiver_id", "str", "account that receives and executes it"),
    _c("signer_id", "str", "account that signed the transaction; system for refunds of deposits"),
    _c("shard_id", "Int64", "shard it ran on; missing if unknown"),
    _c("block_hash", "str", "hash of the block it ran in; missing if it has not run"),
    _c("block_height", "Int64", "height of that block", "block"),
    _c("time", "time", "timestamp of that block"),
    _c("actions", "str", "action names joined by +; without actions, the name of its kind"),
    _c("method_name", "str", "methods of calls joined by +, including those in a Delegate"),
    _c("args", "object", "arguments of calls, decoded JSON or bytes; a list if there are several"),
    _c("deposit", "u128", "sum over its actions, except those in a Delegate", YOCTO),
    _c("gas_attached", "u128", "sum over calls, including those in a Delegate", "gas"),
    _c("gas_burnt", "u128", "gas burnt by this receipt alone; missing if it has not run", "gas"),
    _c("tokens_burnt", "u128", "cost of the gas burnt by this receipt alone", YOCTO),
    _c("status", "str", "success_value, success_receipt_id, failure, unknown or not_executed"),
    _c("error_kind", "str", "failures: the ledger's error names joined by dots"),
    _c("error_message", "str", _ERROR_MESSAGE),
    _c("logs", "object", "its log lines, a list"),
    _c("input_data_ids", "object", "data_ids that it waits for, a list"),
    _c("output_data_receivers", "object", "receivers of its result: data_id and receiver_id"),
    _c("waits_for", "object", "receipt_ids of the receipts it waits for, a list"),
    _c("subtree_gas", "u128", "gas burnt so far by it and by all receipts below it", "gas"),
    _c("on_critical_path", "boolean", "True on the critical path, which ends in the last receipt"),
)
_RECEIPT_KEY = (
    _c("receipt_id", "str", "id of the receipt; missing for the transaction itself"),
    _c("order", "Int64", "position in causal order; missing for the transaction itself"),
    _c("block_height", "Int64", "height of the block in which the receipt ran", "block"),
)
_EVENTS = (
    *_RECEIPT_KEY,
    _c("log_index", "Int64", "index of the log line in the receipt, from 0"),
    _c("contract_id", "str", "contract that logged it"),
    _c("standard", "str", "standard of the event, such as nep141"),
    _c("version", "str", "version of the standard"),
    _c("event", "str", "name of the event, such as ft_transfer"),
    _c("data", "object", "decoded data of the event; missing if it has none"),
    _c("is_effective", "bool", "True if the receipt is known to have succeeded"),
    _c("note", "str", "what is wrong if it does not follow NEP-297 or its token's standard"),
)
_INTENT_ASSET = (
    "nep141:contract_id or another token id of the contract; for bridge_in of a token of another "
    "chain, its address there"
)
_TX_HASH = _c("tx_hash", "str", "hash of the transaction")
_TRANSACTION = (
    _c("tx_block_height", "Int64", "height of the block that includes the transaction", "block"),
    _TX_HASH,
)

_COLLECTION = _c("contract_id", "str", "contract of the collection")
_NFT_TOKEN = _c("token_id", "str", "id of the token; missing where the indexer lists collections")
_ARCHIVE_SOURCE = (
    _c("widget_path", "str", "path of the widget in the social database"),
    _c("source_contract_id", "str", "contract of the social database"),
    _c("source_network", "str", "chain_id of the chain it was read from"),
    _c("socialdb_block_height", "Int64", "block in which the source was written", "block"),
    _c("source_sha256", "str", "SHA-256 of the source, hexadecimal"),
)

# The flags of a transaction that an account took part in, as the Transactions API names them.
# Source: fastnear/explorer-api, src/types.rs, the table of account_txs.
ACCOUNT_FLAGS = {
    "is_signer": "the account signed the transaction",
    "is_delegated_signer": "it signed a Delegate in the transaction",
    "is_real_signer": "it signed for itself: directly, or a Delegate, not as a relayer",
    "is_any_signer": "it signed the transaction or a Delegate in it",
    "is_predecessor": "it sent a receipt",
    "is_explicit_refund_to": "a receipt names it to receive refunds",
    "is_receiver": "it received a receipt",
    "is_real_receiver": "it received a receipt that is no refund of gas, and not as a relayer",
    "is_function_call": "a function of it was called",
    "is_action_arg": "the arguments of a call name it",
    "is_event_log": "an event in a log names it",
    "is_success": "the transaction succeeded; False also while it runs",
}

_CHANGE = _c(
    "change", "str", "entered (was 0), left (is 0), grew, shrank, became_known or became_unknown"
)


def _balance_change(unit: str) -> tuple[Column, ...]:
    return (
        _c("before", "u128", "earlier balance; 0 if not listed, missing if unknown", unit),
        _c("after", "u128", "later balance; 0 if not listed, missing if unknown", unit),
        _c("difference", "i129", "exact, signed; missing if a balance is unknown", unit),
        _c("before_status", "str", "status in the earlier collection, or not_listed"),
        _c("after_status", "str", "status in the later collection, or not_listed"),
    )


_POSITION = _c("position", "Int64", "position in the source, from 0; for blocks the height")
_SUBJECT = _c("subject", "str", "what the request was about, such as an account_id or a height")

_USD_AMOUNT = _c(
    "usd_amount",
    "Float64",
    "value at the time of the block, signed, a rounded float of the service; missing if unknown",
    "USD",
)
_STATEMENT = (
    _c("time", "time", "timestamp of that block; missing if unknown"),
    _c(
        "asset",
        "str",
        "near, nep141:contract, nep245:contract:token_id, stake:pool or gas_key:public_key",
    ),
    _c("change", "i129", "exact, signed", AMOUNT_UNIT),
    _c("balance_after", "u128", "balance after it; missing if unknown", AMOUNT_UNIT),
    _c("cause", "str", "cause; `ledgerkit.reconciling.CAUSES` explains the values"),
    _c("counterparty_id", "str", "account at the other end; missing if there is none"),
    _c(
        "evidence",
        "str",
        "proved (both balances were read), derived (from receipts) or indexed (only a "
        "service says so)",
    ),
    _c("method_name", "str", "methods of the receipt's calls joined by +"),
    _c("memo", "str", "memo of the transfer"),
    _c("symbol", "str", "symbol of the asset; missing if unknown"),
    _c("amount", "str", "`change` in whole tokens, exact; missing if decimals are unknown"),
    _c("balance_before", "u128", "balance before the entry; missing if unknown", AMOUNT_UNIT),
    _c("block_height", "Int64", "block in which the balance changed", "block"),
    _c("tx_hash", "str", "hash of the transaction; missing for a change of the protocol"),
    _c("receipt_id", "str", "id of the receipt; missing for the transaction itself"),
    _ACCOUNT,
)
SCHEMAS: dict[str, tuple[Column, ...]] = {
    "accounts": (
        _ACCOUNT,
        _c(
            "status",
            "str",
            "ok, not_indexed (the indexer has no state) or no_account (it does not exist)",
        ),
        _c("balance", "u128", "balance that is not locked; it includes the storage cost", YOCTO),
        _c("locked", "u128", "balance locked as a validator's stake", YOCTO),
        _c("storage_bytes", "Int64", "size of the account's state", "byte"),
        _c("storage_cost", "u128", "`storage_bytes` at 10^19 yoctoNEAR per byte", YOCTO),
        _c("spendable", "u128", "part of `balance` that is not needed for storage", YOCTO),
        _c("n_tokens", "Int64", f"fungible tokens held at any time; {_IF_UNKNOWN}", "count"),
        _c("n_nfts", "Int64", f"NFT collections held at any time; {_IF_UNKNOWN}", "count"),
        _c("n_pools", "Int64", f"staking pools delegated to at any time; {_IF_UNKNOWN}", "count"),
        _c(
            "last_update_block_height",
            "Int64",
            "block of the latest indexed change of a token, collection or pool",
            "block",
        ),
        *CODE,
    ),
    "contracts": (_ACCOUNT, *CODE),
    "accounts_of": (
        _c("public_key", "str", "the public key"),
        _c("account_id", "str", "account with this key, in the indexer's order"),
        _c("is_primary", "bool", "True for the first account; the indexer guarantees no order"),
    ),
    "ft": _FT,
    "ft_metadata": (*_FT, *_FT_METADATA),
    "ft_intents": _FT_INTENTS,
    "ft_intents_metadata": (*_FT_INTENTS, *_FT_METADATA),
    "token_metadata": (
        _c("contract_id", "str", "contract of the token"),
        _c("spec", "str", "standard that it states, such as ft-1.0.0; escaped and cut as `symbol`"),
        _c("name", "str", "name of the token, escaped and cut as `symbol`"),
        *_SYMBOL,
        _c("icon", "str", "icon, unchanged: by the standard a data URL, of any size"),
        _c("reference", "str", "reference, unchanged: by the standard a link to a JSON file"),
        _c("reference_hash", "str", "reference_hash, unchanged: SHA-256 of that file, in base64"),
        _c(
            "status",
            "str",
            "ok, missing (no contract, or none with metadata) or broken (symbol or decimals not "
            "usable)",
        ),
    ),
    "nft": (_ACCOUNT, _COLLECTION, _NFT_TOKEN, _UPDATED),
    "nft_tokens": (
        _ACCOUNT,
        _c("contract_id", "str", "contract of the collection"),
        _c("token_id", "str", "id of the token in its collection"),
        _c("owner_id", "str", "owner according to the contract"),
        _c("title", "str", "metadata: title"),
        _c("description", "str", "metadata: description"),
        _c("media", "str", "metadata: media, a URL or a path below the base URI"),
        _c("media_hash", "str", "metadata: media_hash"),
        _c("copies", "str", "metadata: number of copies, unchanged"),
        _c("issued_at", "str", "metadata: issued_at, unchanged (ms or ns, by contract)"),
        _c("expires_at", "str", "metadata: expires_at, unchanged"),
        _c("starts_at", "str", "metadata: starts_at, unchanged"),
        _c("updated_at", "str", "metadata: updated_at, unchanged"),
        _c("extra", "str", "metadata: extra, any text"),
        _c("reference", "str", "metadata: reference"),
        _c("reference_hash", "str", "metadata: reference_hash"),
        _c("approved_account_ids", "object", "approval id by account, a dict; missing if not sent"),
    ),
    "staking": _STAKING,
    "staking_positions": (*_STAKING, *_POSITIONS),
    "lockups": (
        _ACCOUNT,
        _c("source", "str", "lockup (below lockup.near) or venear (of House of Stake)"),
        _c("lockup_id", "str", "account of the contract, whether or not there is one"),
        _c(
            "status",
            "str",
            "ok, no_account, no_contract (the account has no code) or broken (a view method is"
            " missing, fails or returns something else: its columns are missing)",
        ),
        _c("staking_pool_id", "str", "selected staking pool; missing without one"),
        _c("balance", "u128", "the account's balance and `deposited`", YOCTO),
        _c("deposited", "u128", "known deposit with the pool, without its newest rewards", YOCTO),
        _c("locked", "u128", "not released or not vested yet; venear: locked for veNEAR", YOCTO),
        _c("pending", "u128", "venear: being unlocked until `unlock_time`", YOCTO),
        _c("unvested", "u128", "lockup: not vested yet; missing if the schedule is private", YOCTO),
        _c(
            "liquid",
            "u128",
            "what the owner can transfer now; 0 while transfers are refused",
            YOCTO,
        ),
        _c(
            "vesting",
            "str",
            "lockup: None, VestingSchedule, VestingHash (private), Terminating, or a later kind",
        ),
        _c("vesting_start", "time", "lockup: start of a public vesting schedule"),
        _c("vesting_cliff", "time", "lockup: time before which nothing vests"),
        _c("vesting_end", "time", "lockup: time at which everything has vested"),
        _c("unlock_time", "time", "venear: time at which `pending` can be unlocked"),
    ),
    "exposure": _EXPOSURE,
    "exposure_lockups": (
        *_EXPOSURE,
        _c("sources", "object", "indexed, lockup, venear or liquid: sources that count, a list"),
    ),
    "history": (
        _ACCOUNT,
        _c("view", "str", "accounts, ft or staking"),
        _c("contract_id", "str", "contract of the token or the pool; missing for accounts"),
        _c("block_height", "Int64", "height of the block it was read at", "block"),
        _c("block_hash", "str", "hash of that block, the same for all rows of a block"),
        _c("time", "time", "timestamp of that block"),
        _c(
            "status",
            "str",
            "ok, no_account, no_contract, broken (the contract call failed) or not_a_pool",
        ),
        _c("balance", "u128", "accounts: unlocked yoctoNEAR; ft: token balance", AMOUNT_UNIT),
        _c("locked", "u128", "accounts: balance locked as a validator's stake", YOCTO),
        _c("staked", "u128", "staking: amount staked with the pool", YOCTO),
        _c("unstaked", "u128", "staking: amount unstaked and not yet withdrawn", YOCTO),
        _c("storage_bytes", "Int64", "accounts: size of the account's state", "byte"),
    ),
    "top_holders": _HOLDERS,
    "top_holders_metadata": (
        *_HOLDERS,
        *_FT_METADATA,
        _c(
            "total_supply",
            "u128",
            "result of the contract's ft_total_supply; missing if it can't be read",
            AMOUNT_UNIT,
        ),
        _c("share", "Float64", "`balance` as a part of `total_supply`, rounded", FRACTION),
    ),
    "keys": (
        _ACCOUNT,
        _c("public_key", "str", "the key as text, curve:base58"),
        _c("nonce", "UInt64", "last nonce used, or the initial one; 0 for gas keys"),
        _c(
            "permission",
            "str",
            "FullAccess, FunctionCall, GasKeyFullAccess, GasKeyFunctionCall or a later kind",
        ),
        _c("receiver_id", "str", "function-call keys: contract that the key may call"),
        _c(
            "method_names",
            "object",
            "function-call keys: allowed methods; an empty list allows all",
        ),
        _c("allowance", "u128", "function-call keys: amount left for gas", YOCTO),
        _c("is_unlimited", "boolean", "function-call keys: True if there is no allowance"),
        _c(
            "added_at_block",
            "Int64",
            "height at which it was added, from its nonce; missing for old keys and gas keys",
            "block",
        ),
        _c(
            "use_count",
            "Int64",
            "approximate number of uses, from its nonce; missing for gas keys",
            "count",
        ),
        _c("balance", "u128", "gas keys: balance that pays for gas", YOCTO),
        _c("num_nonces", "Int64", "gas keys: number of nonces", "count"),
    ),
    "blocks": (
        _c("block_height", "Int64", "height of the block", "block"),
        _c("block_hash", "str", "hash of the block"),
        _c("time", "time", "timestamp of the block"),
        _c("author", "str", "validator that produced it"),
        _c("prev_height", "Int64", "height of the previous block; missing on old nodes", "block"),
        _c("prev_hash", "str", "hash of the previous block"),
        _c("epoch_id", "str", "id of the epoch"),
        _c("last_final_block", "str", "hash of the last final block when this block was produced"),
        _c("n_chunks", "Int64", "chunks, one per shard; missing if not listed", "count"),
        _c("chunks_included", "Int64", "chunks that are new in this block", "count"),
        _c("gas_used", "u128", "sum of `gas_used` of the new chunks", "gas"),
        _c("gas_limit", "u128", "sum of `gas_limit` of the new chunks", "gas"),
        _c("gas_price", "u128", "gas price for the next block", "yoctoNEAR per gas"),
        _c("total_supply", "u128", "total supply of NEAR", YOCTO),
        _c("protocol_version", "Int64", "latest protocol version that its author supports"),
    ),
    "chunks": (
        _c("block_height", "Int64", "requested block; missing if read by chunk hash", "block"),
        _c(
            "shard_id",
            "Int64",
            "shard of the chunk; after a resharding, an older chunk is of the shard that was split",
        ),
        _c("chunk_hash", "str", "hash of the chunk"),
        _c("author", "str", "producer of the chunk; missing if read from a block"),
        _c("is_new", "boolean", "False if the block repeats an older chunk"),
        _c("height_created", "Int64", "height for which it was produced", "block"),
        _c("height_included", "Int64", "height of the block that included it", "block"),
        _c("gas_used", "u128", "gas burnt by the shard's previous chunk", "gas"),
        _c("gas_limit", "u128", "gas limit of the chunk", "gas"),
        _c("balance_burnt", "u128", "fees burnt by the shard's previous chunk", YOCTO),
        _c("n_transactions", "Int64", "transactions; missing if read from a block", "count"),
        _c("n_receipts", "Int64", "receipts in the chunk; missing if read from a block", "count"),
    ),
    "transactions": (
        _c("block_height", "Int64", "height of the block", "block"),
        _c("shard_id", "Int64", "shard of the signer"),
        _c("tx_hash", "str", "hash of the transaction"),
        _c("signer_id", "str", "account that signed"),
        _c("receiver_id", "str", "account that receives it"),
        _c("nonce", "UInt64", "nonce of the access key"),
        _c("public_key", "str", "key that signed"),
        _c("actions", "str", "action names joined by +"),
        _c("method_name", "str", "methods of calls joined by +, including those in a Delegate"),
        _c("deposit", "u128", "sum over its actions, except those in a Delegate", YOCTO),
        _c("gas_attached", "u128", "sum over calls, including those in a Delegate", "gas"),
        _c("kind", "str", "signed; external_contract_call or unknown if it is no transaction"),
        _c("content", "object", "such an item of a chunk, as it was sent; else missing"),
    ),
    "receipts": _RECEIPTS,
    "collected_receipts": (
        *_TRANSACTION,
        *_RECEIPTS,
        _c(
            "created_height",
            "Int64",
            "height of the block in which its parent ran, or the transaction if it has none",
            "block",
        ),
    ),
    "events": _EVENTS,
    "collected_events": (*_TRANSACTION, *_EVENTS),
    "transfers": (
        *_RECEIPT_KEY,
        _c(
            "kind",
            "str",
            "transfer, deposit (with a call), delegated (a relayer pays for a Delegate), "
            "gas_key (into or out of the balance of a gas key), undelivered (deposit of a receipt "
            "that failed, has not run or is of unknown status), refund_deposit, beneficiary (of a "
            "deleted account), fee (paid for gas, less refunds), refund_gas (to the account of a "
            "deleted gas key), contract_reward, burnt (`balance_burnt` of the gas frame), token, "
            "nft or multi_token",
        ),
        _c(
            "asset",
            "str",
            "near, gas_key:public_key (the NEAR of a gas key; gas_key if it is not known which), "
            "nep141:contract_id, nep171:contract_id:token_id or nep245:contract_id:token_id",
        ),
        _c("sender_id", "str", "account that sent it, or system; missing if minted"),
        _c("receiver_id", "str", "account that received it, or system; missing if burnt"),
        _c("amount", "u128", "exact amount; yoctoNEAR for near; missing if unknown", AMOUNT_UNIT),
        _c("memo", "str", "memo of the token's movement"),
        _c(
            "evidence",
            "str",
            "what reports a token's movement: event (of its standard), log (a line of an older "
            "token) or arguments (of a call that succeeded); missing for NEAR",
        ),
    ),
    "intents": (
        *_RECEIPT_KEY,
        _c("log_index", "Int64", "index of the log line in the receipt, from 0"),
        _c("contract_id", "str", "contract that logged it: intents.near or omni.bridge.near"),
        _c(
            "kind",
            "str",
            "swap; one_sided (an intent that only gives or only receives); deposit, withdrawal, "
            "transfer, storage_deposit, refund, mint or burn in intents.near; bridge_in, "
            "bridge_out or bridge_through (from one other chain to another)",
        ),
        _c("account_id", "str", "account that gave or received; missing if none on NEAR did"),
        _c("given_asset", "str", _INTENT_ASSET),
        _c("given", "u128", "exact amount that it gave, with the fee", AMOUNT_UNIT),
        _c("received_asset", "str", _INTENT_ASSET),
        _c("received", "u128", "exact amount that it received, without the fee", AMOUNT_UNIT),
        _c("fee", "u128", "the fee, a part of the amount", AMOUNT_UNIT),
        _c(
            "counterparty_id",
            "str",
            "swaps: accounts of the same receipt whose swaps change a token in the opposite "
            "direction, joined by +; else the receiver, or the sender of a deposit",
        ),
        _c("referral", "str", "who brought the swap, as its intent says"),
        _c("intent_hash", "str", "hash of the signed intent; missing for calls without one"),
        _c("chain", "str", "other chain, as the log names it, such as eth or sol"),
        _c("address", "str", "address on the other chain; for bridge_in the sender's"),
        _c("memo", "str", "memo of the intent or of the token's movement"),
    ),
    "balance_changes": (
        _c("account_id", "str", "the account"),
        _c("asset", "str", "as in transfers; near is the sum of the unlocked and locked balance"),
        _c("change", "i129", "exact, signed; missing if unknown or beyond i129", AMOUNT_UNIT),
    ),
    "proof": (
        _c("outcome_id", "str", "hash of the transaction or id of the receipt"),
        _c("kind", "str", "transaction or receipt"),
        _c("executor_id", "str", "account that executed it; missing if the document lacks it"),
        _c("leaf", "str", "hash of the outcome, from the document; missing if that lacks it"),
        _c("shard_root", "str", "root that the path leads to; missing if it was not read"),
        _c("outcome_root", "str", "root of all shards' roots; missing if it was not read"),
        _c("block_hash", "str", "block whose header has that root, recomputed"),
        _c("block_height", "Int64", "height of that block"),
        _c(
            "proved",
            "str",
            "how far it is proved: signed (by validators), block (an earlier block of the head), "
            "outcome (in the outcome root of some block) or no; missing if it could not be read",
        ),
        _c("note", "str", "why it is not proved further"),
    ),
    "gas": (
        *_RECEIPT_KEY,
        _c("kind", "str", "conversion (of the transaction into a receipt), action or refund"),
        _c("account_id", "str", "account that executed it; for the conversion, the signer"),
        _c("gas_burnt", "u128", "gas burnt; missing if it has not run", "gas"),
        _c("gas_in_calls", "u128", "gas burnt inside calls; missing if unknown", "gas"),
        _c("tokens_burnt", "u128", "cost of the gas burnt, and `balance_burnt`", YOCTO),
        _c(
            "balance_burnt",
            "u128",
            "part of `tokens_burnt` that is no fee: the account's payment for the bytes of a "
            "global contract, or the balance of its deleted gas keys; missing if unknown",
            YOCTO,
        ),
        _c("gas_price", "u128", "price of the burnt gas; missing if unknown", "yoctoNEAR per gas"),
        _c("gas_refund", "u128", "refund of gas that it did not burn; missing if unknown", YOCTO),
        _c("contract_reward", "u128", "share paid to the contract; missing if unknown", YOCTO),
    ),
    "actions": (
        *_RECEIPT_KEY,
        _c("action_index", "Int64", "index of the action in the receipt, from 0"),
        _c(
            "inner_index",
            "Int64",
            "index of the action in a Delegate, from 0; missing outside one. An action in a "
            "Delegate never runs itself: the receipt that the Delegate creates repeats it",
        ),
        _c("action", "str", "name of the action, such as FunctionCall"),
        _c("sender_id", "str", "account that sent the receipt, or signed the Delegate"),
        _c("receiver_id", "str", "account that the action applies to"),
        _c("method_name", "str", "function calls: the method"),
        _c("args", "object", "function calls: the arguments, decoded JSON, or bytes if not JSON"),
        _c("gas_attached", "u128", "function calls: gas attached", "gas"),
        _c("deposit", "u128", "NEAR that the action transfers; missing if unknown", YOCTO),
        _c("details", "object", "other fields of the action, decoded; missing if there are none"),
        _c(
            "is_effective",
            "boolean",
            "True if the receipt succeeded; False if it failed, and for an action in a Delegate, "
            "which a receipt of its own repeats; missing if it is not known to have run",
        ),
    ),
    "logs": (
        *_RECEIPT_KEY,
        _c("log_index", "Int64", "index of the log line in the receipt, from 0"),
        _c("contract_id", "str", "contract that logged it"),
        _c("log", "str", "the log line"),
        _c("is_event", "bool", "True if the line is an event (it starts with EVENT_JSON:)"),
        _c("is_effective", "bool", "True if the receipt is known to have succeeded"),
    ),
    "edges": (
        _c("parent_id", "str", "receipt at which the edge starts"),
        _c("child_id", "str", "receipt at which the edge ends"),
        _c("kind", "str", "creation, or data (the child waits for the parent's result)"),
        _c("data_id", "str", "data edges: id of the data"),
    ),
    "archive_steps": (
        _c("step", "str", "name of the step; rows are in the flow's order"),
        _c(
            "state",
            "str",
            "pending, running, done, stopped (the flow ended here), failed or not_taken",
        ),
        _c("detail", "str", "result of the step, a sentence"),
        _c("block_height", "Int64", "block that the step read; missing if it read none", "block"),
        _c("tx_hash", "str", "hash of the transaction that mints"),
    ),
    "archive": (
        _c("outcome", "str", "outcome; `ledgerkit.archiving.OUTCOMES` explains the values"),
        _COLLECTION,
        _c("token_id", "str", "id: prefix and first 12 digits of the source's hash"),
        _c("receiver_id", "str", "account that receives the token"),
        _c("author_account_id", "str", "account of the widget's author"),
        _c("widget_name", "str", "name of the widget"),
        *_ARCHIVE_SOURCE,
        _c("tx_hash", "str", "hash of the transaction that mints; missing if none was sent"),
    ),
    "archive_verification": (
        _c("verdict", "str", "result; `ledgerkit.archiving.VERDICTS` explains the values"),
        _COLLECTION,
        _c("token_id", "str", "id of the token"),
        _c("author_account_id", "str", "account of the widget's author, according to the token"),
        _c("widget_name", "str", "name of the widget, according to the token"),
        *_ARCHIVE_SOURCE,
        _c("found_sha256", "str", "SHA-256 of the source read for the verification, hexadecimal"),
    ),
    "status": (
        _c("chain_id", "str", "mainnet, testnet or the id of another chain"),
        _c("latest_block_height", "Int64", "height of the node's latest block", "block"),
        _c("latest_block_hash", "str", "hash of that block"),
        _c("latest_block_time", "time", "timestamp of that block"),
        _c("syncing", "boolean", "True while the node is still catching up with the chain"),
        _c("earliest_block_height", "Int64", "height of the oldest block of the node", "block"),
        _c("epoch_id", "str", "id of the current epoch"),
        _c("epoch_start_height", "Int64", "height of the epoch's first block", "block"),
        _c("protocol_version", "Int64", "protocol version in force"),
        _c("latest_protocol_version", "Int64", "latest protocol version that the node supports"),
        _c("version", "str", "version of the node's software"),
        _c("n_validators", "Int64", "validators of the current epoch", "count"),
    ),
    "doctor": (
        _c("surface", "str", "rpc, archival_rpc, api, transactions, transfers, blocks or kv"),
        _c("host", "str", "host that the surface is on"),
        _c("latency_ms", "Int64", "time to its response; missing if there was none", "millisecond"),
        _c("version", "str", "version of its software; missing if it does not say"),
        _c("protocol_version", "Int64", "protocol version of its newest block"),
        _c("block_height", "Int64", "height of that block", "block"),
        _c("unknown_members", "object", "members of its response that ledgerkit does not know"),
        _c("per_minute", "Int64", "requests a minute that the host accepts; missing if unknown"),
        _c("has_key", "bool", "True if an API key is sent to it"),
        _c("error", "str", "class of the error; missing if all is well"),
        _c("message", "str", "what is wrong and what to do; missing if all is well"),
    ),
    "recording": (
        _c("surface", "str", "rpc, archival_rpc, api, transactions, transfers, blocks or kv"),
        _c("host", "str", "host of the request"),
        _c("method", "str", "JSON-RPC method, or path; missing if the request is withheld"),
        _c("account_id", "str", "account that the request names; missing if it names none"),
        _c("status", "Int64", "HTTP status of the response; missing if there was none"),
        _c("size_bytes", "Int64", "size of the stored response, unpacked", "byte"),
        _c("asked_at", "time", "time of the request"),
        _c("error", "str", "why there was no response; missing if there was one"),
        _c("withheld", "str", "what is not stored, because it is or may be secret; or missing"),
    ),
    "gas_price": (_c("gas_price", "u128", "price of one unit of gas", "yoctoNEAR per gas"),),
    "validators": (
        _ACCOUNT,
        _c("public_key", "str", "key of the validator; missing for kickouts"),
        _c("stake", "u128", "stake; missing for kickouts", YOCTO),
        _c("shards", "object", "shard ids, a list; missing if not sent"),
        _c("num_produced_blocks", "Int64", "blocks produced", "count"),
        _c("num_expected_blocks", "Int64", "blocks expected", "count"),
        _c("num_produced_chunks", "Int64", "chunks produced; missing on old nodes", "count"),
        _c("num_expected_chunks", "Int64", "chunks expected; missing on old nodes", "count"),
        _c("num_produced_endorsements", "Int64", "endorsements; missing on old nodes", "count"),
        _c("num_expected_endorsements", "Int64", "expected; missing on old nodes", "count"),
        _c("reason", "str", "kickouts: the reason"),
    ),
    "changes": (
        _c("type", "str", "type of the change, such as account_update"),
        _ACCOUNT,
        _c("cause", "str", "cause of the change, such as receipt_processing"),
        _c("cause_hash", "str", "hash of the transaction or receipt that caused it"),
        _c("change", "object", "content of the change, as the node sends it"),
    ),
    "state": (
        _c("key", "object", "key in the contract's state, bytes"),
        _c("value", "object", "value of the key, bytes"),
    ),
    "submission": (
        _c("tx_hash", "str", "hash of the transaction"),
        _c(
            "stage",
            "str",
            "accepted, in_mempool, rejected, dropped, included, first_receipt_succeeded, "
            "first_receipt_failed, all_receipts_complete or final",
        ),
        _c("time", "time", "timestamp of the block; local time if there is no block"),
        _c("block_height", "Int64", "block of the stage; missing before inclusion", "block"),
        _c("block_hash", "str", "hash of that block"),
        _c("detail", "str", "reason of a rejection, a drop or a failure of the first receipt"),
    ),
    "dry_run": (
        _c("tx_hash", "str", "hash that the transaction would have"),
        _c("signer_id", "str", "account that would sign"),
        _c("receiver_id", "str", "account that would receive it"),
        _c("actions", "str", "action names joined by +"),
        _c("nonce", "UInt64", "nonce that the transaction would have"),
        _c("size", "Int64", "size, including the signature", "byte"),
        _c("cost_bound", "u128", "upper bound, before refunds; missing if unknown", YOCTO),
        _c("gas_attached", "u128", "sum over calls, including those in a Delegate", "gas"),
        _c("deposit", "u128", "sum over its actions, including those in a Delegate", YOCTO),
        _c("block_hash", "str", "hash of the final block that it would refer to"),
        _c("expires_at_height", "Int64", "height of the last block that could include it", "block"),
        _c("nonce_index", "Int64", "index of the gas key's nonce; missing for another key"),
        _c("gas_payer", "str", "account that would pay the gas, or public key of its gas key"),
    ),
    "account_transactions": (
        _ACCOUNT,
        _TX_HASH,
        _c("tx_block_height", "Int64", "block that includes the transaction", "block"),
        _c("time", "time", "timestamp of that block"),
        _c("tx_index", "Int64", "position in that block; missing in responses of 2024", "count"),
        *(_c(name, "boolean", text) for name, text in ACCOUNT_FLAGS.items()),
    ),
    "activity": (
        _ACCOUNT,
        _c("time", "time", "timestamp of the block that includes the transaction"),
        _c("headline", "str", "who did what, or tried to, and what came back; missing if unread"),
        _c("verdict", "str", "result over all receipts, as `Trace.verdict`; missing if unread"),
        _c("amounts", "str", "changes of the account's balances in whole tokens, rounded"),
        _c(
            "counterparty_id",
            "str",
            "the only other account of its token transfers; otherwise the account that it called "
            "or paid, or the sender",
        ),
        _c("method_name", "str", "methods that the transaction calls, joined by +"),
        _TX_HASH,
        _c("tx_block_height", "Int64", "block that includes the transaction", "block"),
        _c("near_change", "i129", "exact change of its NEAR, fees included, or missing", YOCTO),
        _c("token_changes", "object", "exact signed change by asset, as in transfers; a dict"),
    ),
    "transfers_of": (
        _ACCOUNT,
        _c("block_height", "Int64", "block in which the transfer took place", "block"),
        _c("time", "time", "timestamp of that block"),
        _c("tx_hash", "str", "hash of the transaction; missing if the service does not know it"),
        _c("receipt_id", "str", "id of the receipt"),
        _c("transfer_index", "Int64", "position in the block; missing in old responses", "count"),
        _c("asset", "str", "near, nep141:contract or nep245:contract:token_id"),
        _c("counterparty_id", "str", "account at the other end; missing if minted or burnt"),
        _c("transfer_type", "str", "such as NativeTransfer, AttachedDeposit or FtTransfer"),
        _c("method_name", "str", "method of the call that transferred it"),
        _c(
            "change",
            "i129",
            "exact, signed, negative if the account paid; missing if not exact",
            AMOUNT_UNIT,
        ),
        _c("is_exact", "bool", "False if the service cut the amount to 127 bits: read the event"),
        _c("symbol", "str", "NEAR; for tokens with metadata=True; missing if unknown"),
        _c("amount", "str", "`change` in whole tokens, exact; missing if decimals are unknown"),
        _USD_AMOUNT,
        _c(
            "balance_before",
            "u128",
            "at the start of the block; near: locked included",
            AMOUNT_UNIT,
        ),
        _c("balance_after", "u128", "at its end, after all transfers in the block", AMOUNT_UNIT),
        _c("signer_id", "str", "account that signed the transaction"),
        _c("predecessor_id", "str", "account that sent the receipt; system for refunds"),
    ),
    "key_values": (
        _c(
            "contract_id",
            "str",
            "account that the entry was written to, by a call of __fastdata_kv",
        ),
        _c("predecessor_id", "str", "account that wrote it"),
        _c("key", "str", "key of the entry"),
        _c("value", "object", "decoded JSON"),
        _c("block_height", "Int64", "block in which it was written", "block"),
        _c("time", "time", "timestamp of that block"),
        _c("tx_hash", "str", "hash of the transaction; missing if the service does not know it"),
        _c("receipt_id", "str", "id of the receipt; missing if not sent"),
        _c("action_index", "Int64", "index of the action in the receipt; missing if not sent"),
        _c("signer_id", "str", "account that signed the transaction; missing if not sent"),
    ),
    "statement": _STATEMENT,
    "statement_values": (
        *_STATEMENT,
        _USD_AMOUNT,
        _c("usd_source", "str", "service that sent the value"),
        _c("usd_time", "time", "time of the value: that of the transfer's block"),
    ),
    "statement_by_transaction": (
        _c("time", "time", "timestamp of the first entry's block; missing if unknown"),
        _c("headline", "str", "who did what, or tried to, and what came back; missing if unread"),
        _c("causes", "str", "causes of the entries, joined by commas; fee if there is no other"),
        _c(
            "changes",
            "object",
            "net change of each asset without the fee, a dict by asset; without those of 0",
            UNITS_BY_ASSET,
        ),
        _c("fee", "i129", "sum of the fees, exact, negative if the account paid", YOCTO),
        _c("tx_hash", "str", "hash of the transaction; missing for an entry without one"),
        _c("counterparties", "str", "accounts at the other ends, joined by commas"),
        _c("methods", "str", "methods of the receipts' calls, joined by commas"),
        _c("block_height", "Int64", "block of the first entry", "block"),
        _c("n_entries", "Int64", "entries of the transaction", "count"),
        _ACCOUNT,
    ),
    "statement_gaps": (
        _ACCOUNT,
        _c("asset", "str", "asset, as in the entries"),
        _c("start_height", "Int64", "block after which the balance was read", "block"),
        _c("stop_height", "Int64", "later block after which it was read", "block"),
        _c(
            "missing",
            "i129",
            "real change less all entries, exact; missing if unknown",
            AMOUNT_UNIT,
        ),
        _c("symbol", "str", "symbol of the asset; missing if unknown"),
        _c("amount", "str", "`missing` in whole tokens, exact"),
        _c("note", "str", "what is known about it, a sentence"),
    ),
    "statement_totals": (
        _ACCOUNT,
        _c("asset", "str", "asset, as in the entries"),
        _c("symbol", "str", "symbol of the asset; missing if unknown"),
        _c("decimals", "Int64", "decimal places of the asset; missing if unknown"),
        _c("n_entries", "Int64", "entries of the asset", "count"),
        _c("opening", "u128", "balance at the start; missing if unknown", AMOUNT_UNIT),
        _c("inflow", "i129", "sum of all positive changes; missing if beyond i129", AMOUNT_UNIT),
        _c("outflow", "i129", "sum of all negative changes, negative; or missing", AMOUNT_UNIT),
        _c("in_by_cause", "object", "the inflow, a dict by cause", AMOUNT_UNIT),
        _c("out_by_cause", "object", "the outflow, a dict by cause", AMOUNT_UNIT),
        _c("fees", "i129", "sum of the fees, which is part of the flows", AMOUNT_UNIT),
        _c("closing", "u128", "balance at the stop; missing if unknown", AMOUNT_UNIT),
        _c(
            "missing",
            "i129",
            "closing - opening - inflow - outflow, exact: 0 if the entries add up; missing if a "
            "balance is unknown",
            AMOUNT_UNIT,
        ),
    ),
    "statement_rewards": (
        _c("time", "time", "timestamp of block `stop_height`"),
        _c("reward", "i129", "total_after - total_before - deposits + withdrawals", YOCTO),
        _c(
            "apy",
            "Float64",
            "the reward as a yearly rate with compounding; missing for a part of an epoch, and "
            "for an epoch with a deposit",
            FRACTION,
        ),
        _c("pool_id", "str", "staking pool, or the contract of a liquid staking token"),
        _c("total_before", "u128", "staked and unstaked balance at the earlier reading", YOCTO),
        _c("deposits", "u128", "deposited with the pool between the readings", YOCTO),
        _c("withdrawals", "u128", "withdrawn from the pool between the readings", YOCTO),
        _c("total_after", "u128", "staked and unstaked balance at the later reading", YOCTO),
        _c("epoch_id", "str", "id of the epoch; missing if the row spans several epochs"),
        _c("start_height", "Int64", "first block of the epoch, of the earlier reading", "block"),
        _c("stop_height", "Int64", "first block of the next one, of the later reading", "block"),
        _c("account_id", "str", "the account, or the lockup contract that stakes for it"),
    ),
    "errors": (
        _SUBJECT,
        _c("error", "str", "class of the error"),
        _c("message", "str", "what happened and what to do"),
        _c("retryable", "bool", "True if the same request may succeed later"),
    ),
    "collected": (
        _POSITION,
        _SUBJECT,
        _c("fetched_at", "time", "time at which the response was received"),
    ),
    "collection_errors": (
        _POSITION,
        _SUBJECT,
        _c(
            "kind",
            "str",
            "failed, malformed or duplicate (not requested), skipped (no such block), or waiting"
            " (rows so far are stored; a later run completes them)",
        ),
        _c("error", "str", "class of the error"),
        _c("message", "str", "what happened and what to do"),
        _c("retryable", "bool", "True if the same request may succeed later"),
        _c("fetched_at", "time", "time at which the row was recorded"),
    ),
    "collection_summary": (
        _c("table", "str", "name of the table"),
        _c("n_files", "Int64", "files of the table", "count"),
        _c("n_rows", "Int64", "rows in all files", "count"),
        _c("n_bytes", "Int64", "size of all files", "byte"),
    ),
    "diff_accounts": (_ACCOUNT, _CHANGE, *_balance_change(YOCTO)),
    "diff_ft": (
        _ACCOUNT,
        _c("contract_id", "str", "contract of the token"),
        _CHANGE,
        *_balance_change(AMOUNT_UNIT),
    ),
    "diff_nft": (_ACCOUNT, _COLLECTION, _NFT_TOKEN, _c("change", "str", "entered or left")),
    "diff_staking": (
        _ACCOUNT,
        _c("pool_id", "str", "account of the staking pool"),
        _c("change", "str", "entered or left"),
    ),
    "diff_exposure": (
        _ACCOUNT,
        _c("change", "str", "entered (had no position), left (has none) or changed"),
        _c("before", "str", "exposure_class in the earlier collection, or not_indexed"),
        _c("after", "str", "exposure_class in the later collection, or not_indexed"),
    ),
    "diff_contracts": (
        _ACCOUNT,
        _c("change", "str", "entered (had no contract), left (has none) or changed"),
        _c("before", "str", "contract in the earlier collection: none, local, global_by_…"),
        _c("after", "str", "contract in the later collection"),
        _c("code_before", "str", "hash of the earlier code, or the account that published it"),
        _c("code_after", "str", "hash of the later code, or the account that published it"),
    ),
    "diff_not_compared": (
        _ACCOUNT,
        _c("before", "str", "earlier: answered, failed, absent or unclear (listed more than once)"),
        _c("after", "str", "the same in the later collection"),
    ),
    "diff_summary": (
        _c("change", "str", "kind of change"),
        _c("n_rows", "Int64", "rows with this change", "count"),
        _c("n_accounts", "Int64", "accounts with such rows", "count"),
    ),
    "cache": (
        _c("kind", "str", "block, chunk, transaction, read (state at a block hash) or metadata"),
        _c("entries", "Int64", "responses on disk", "count"),
        _c("bytes", "Int64", "size of these responses, uncompressed", "byte"),
        _c("hits", "Int64", "responses that this ledger read from the cache", "count"),
        _c("misses", "Int64", "responses that this ledger had to request", "count"),
    ),
    "requests": (
        _c("surface", "str", "rpc, archival_rpc or api (the REST API)"),
        _c("method", "str", "HTTP method"),
        _c("address", "str", "URL of the request, never with the API key"),
        _c("body", "str", "body of the request; missing for GET"),
    ),
}

_EXECUTED = (
    _c("block_height", "Int64", "height of the block that executed it", "block"),
    _c("tx_hash", "str", "hash of its transaction; missing if the document does not name it"),
    _c("receipt_id", "str", "id of the receipt; missing for the transaction itself"),
)
SCHEMAS |= {
    "collected_outcomes": (
        *_EXECUTED,
        _c("time", "time", "timestamp of that block"),
        _c("shard_id", "Int64", "shard it ran on"),
        _c("predecessor_id", "str", "account that sent it; system for refunds"),
        _c("receiver_id", "str", "account that receives it"),
        _c("signer_id", "str", "account that signed the transaction"),
        _c("executor_id", "str", "account that executed it; the signer for a transaction"),
        _c("status", "str", "success_value, success_receipt_id, failure or unknown"),
        _c("error_kind", "str", "failures: the ledger's error names joined by dots"),
        _c("error_message", "str", _ERROR_MESSAGE),
        _c("failure", "object", "the ledger's error, or the status not known, decoded JSON"),
        _c("success_value", "str", "success_value: the result in base64"),
        _c("success_receipt_id", "str", "success_receipt_id: the receipt that has the result"),
        _c("receipt_ids", "object", "receipts that it created, a list"),
        _c("input_data_ids", "object", "data_ids that it waited for, a list"),
        _c("output_data_receivers", "object", "receivers of its result: data_id and receiver_id"),
        _c("logs", "object", "its log lines, a list"),
        _c("gas_burnt", "u128", "gas burnt by it alone", "gas"),
        _c("tokens_burnt", "u128", "cost of that gas", YOCTO),
        _c("wasm_gas", "u128", "its gas profile: WASM instructions; missing without one", "gas"),
        _c("host_gas", "u128", "its gas profile: all host functions", "gas"),
        _c("action_gas", "u128", "its gas profile: all actions", "gas"),
        _c("other_gas", "object", "its gas profile: by category not known, a dict; else missing"),
        _c("nonce_index", "Int64", "index of the gas key's nonce; missing for another key"),
        _c("receipt_kind", "str", "as on the wire, such as Action; missing for the transaction"),
    ),
    "collected_actions": (
        *_EXECUTED,
        *SCHEMAS["actions"][len(_RECEIPT_KEY) : -1],  # `outcomes` has the status
        _c(
            "args_base64",
            "str",
            "function calls: the arguments in base64, unless they are `args` as compact JSON",
        ),
    ),
    "collected_transfers": (*_TRANSACTION, *SCHEMAS["transfers"]),
    "collected_intents": (*_TRANSACTION, *SCHEMAS["intents"]),
    "collected_balances": (
        _c("block_height", "Int64", "height of the block", "block"),
        _c("shard_id", "Int64", "shard of the account"),
        _ACCOUNT,
        _c(
            "type",
            "str",
            "account_update, account_deletion (all amounts are 0 after it), or the name of a kind "
            "that ledgerkit does not know, whose amounts are missing",
        ),
        _c("amount", "u128", "unlocked balance afterwards", YOCTO),
        _c("locked", "u128", "balance locked as a validator's stake afterwards", YOCTO),
        _c("storage_usage", "Int64", "size of the account's state afterwards", "byte"),
        _c(
            "cause",
            "str",
            "kind of cause, such as transaction_processing, receipt_processing or "
            "validator_accounts_update",
        ),
        _c("tx_hash", "str", "transaction that caused it; missing if none did, or if unknown"),
        _c("receipt_id", "str", "receipt that caused it; missing if none did"),
    ),
    "collected_data_receipts": (
        _c("block_height", "Int64", "height of the block whose chunk lists it", "block"),
        _c("shard_id", "Int64", "shard of that chunk"),
        _c("receipt_id", "str", "id of the receipt"),
        _c("data_id", "str", "id of the data, which a receipt waits for; missing for other kinds"),
        _c("predecessor_id", "str", "account whose receipt produced the data"),
        _c("receiver_id", "str", "account whose receipt waits for it"),
        _c("data", "str", "the data in base64; missing if the producer failed"),
        _c("is_promise_resume", "boolean", "True if it resumes a yielded receipt"),
        _c("kind", "str", "Data, or the name of a kind that ledgerkit does not know"),
        _c("content", "object", "such a receipt's content, as it was sent; else missing"),
    ),
}

TRACES_PREFIX = "traces_"  # prefix of the frames of many transactions
_ROW_TIME = _c(
    "time",
    "time",
    "timestamp of the block in which the row's receipt (an edge's child) ran; for rows without a "
    "receipt, the block in which the transaction's first receipt ran",
)


def _with_transaction(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    has_time = any(column.name == "time" for column in columns)
    return (_TX_HASH, *(() if has_time else (_ROW_TIME,)), *columns)


TRACE_FRAMES = (
    "receipts",
    "edges",
    "actions",
    "logs",
    "events",
    "transfers",
    "intents",
    "balance_changes",
    "gas",
)
STATEMENT_FRAMES = ("entries", "by_transaction", "gaps", "totals", "rewards")
SCHEMAS |= {TRACES_PREFIX + name: _with_transaction(SCHEMAS[name]) for name in TRACE_FRAMES}


def schema_names(columns: Iterable[str], name: object = None) -> tuple[str, ...]:
    """
    Return the possible schemas of a frame: `name` if it is the name of a schema.

    Otherwise the schemas with exactly these columns or, if there is none, with at least these.
    """
    if name in SCHEMAS:
        return (str(name),)
    present = set(columns)
    names_by_schema = {key: {column.name for column in SCHEMAS[key]} for key in SCHEMAS}
    exact = tuple(key for key, names in names_by_schema.items() if names == present)
    return exact or tuple(key for key, names in names_by_schema.items() if names >= present)


def declared_columns(frame: pd.DataFrame) -> dict[str, Column]:
    """
    Return the declarations of a frame's columns, from its possible schemas.

    A column that its possible schemas lack is looked up in all schemas. Declarations with the
    column's dtype come first. A column is left out if its declarations differ in dtype or unit; but
    an amount in several units is declared as an amount of an unknown token.
    """
    names = tuple(map(str, frame.columns))
    candidates = schema_names(names, frame.attrs.get("schema"))
    declared = {}
    for column, present in zip(names, frame.dtypes, strict=True):
        matches = _declarations(column, candidates) or _declarations(column, tuple(SCHEMAS))
        exact = {str(present)} & _AMOUNTS
        matches = [match for match in matches if {match.dtype} & _AMOUNTS == exact] or matches
        dtypes = {declaration.dtype for declaration in matches}
        same = {declaration.unit for declaration in matches}
        if len(dtypes) == 1 and len(same) == 1:
            declared[column] = matches[0]
        elif len(dtypes) == 1 and dtypes <= _AMOUNTS:
            declared[column] = _c(column, "u128", "an amount", AMOUNT_UNIT)
    return declared


def _declarations(name: str, schemas: tuple[str, ...]) -> list[Column]:
    return [column for schema in schemas for column in SCHEMAS[schema] if column.name == name]
