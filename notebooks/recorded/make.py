"""
Write the recorded answers of the invented world, the same bytes each time.

`python notebooks/recorded/make.py`. Nothing here exists on a public network: the accounts, keys,
hashes and amounts are made up, in the very shapes in which the two services answer.

`rest.json` holds the answer of each path, `rpc.json` that of each method with its parameters;
an answer too long for one line is a file of its own, named in its place.
"""

import base64
import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import base58

FOLDER = Path(__file__).resolve().parent
NEAR = 10**24
TERA = 10**12
U128_MAX = 2**128 - 1


def made_hash(text: str) -> str:
    """Make the hash of a readable text, in base58 as the chain writes it."""
    return base58.b58encode(hashlib.sha256(text.encode()).digest()).decode()


def made_key(text: str) -> str:
    """Make a public key whose private half nobody has."""
    return f"ed25519:{made_hash(text)}"


def packed(value: object) -> str:
    """Write JSON as base64, as arguments and results travel."""
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode()


# The chain: five blocks, 0.6 seconds apart; one height was skipped. ---------------------------

HEIGHTS = [191_000_000, 191_000_001, 191_000_002, 191_000_004, 191_000_005]
HEAD = HEIGHTS[-1]
SKIPPED = 191_000_003
SHARDS = [2, 0, 1]  # neither sorted nor complete, as on the real chain
START_NS = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z
NO_TRANSACTIONS = "1" * 32
HASH = {height: made_hash(f"block {height}") for height in HEIGHTS}
READ_AT = {"block_height": HEAD, "block_hash": HASH[HEAD]}

SALE = made_hash("the transaction of the sale")
SALE_KEY = made_key("the key that alice signs with")


def time_ns(height: int) -> int:
    """Tell when a block was made."""
    return START_NS + (height - HEIGHTS[0]) * 600_000_000


def chunk_header(height: int, shard_id: int) -> dict[str, Any]:
    """Write a chunk's header; the last shard missed its turn in the head block."""
    made_at = HEIGHTS[-2] if (height, shard_id) == (HEAD, 1) else height
    busy = (height, shard_id) == (HEIGHTS[0], 0)
    name = f"chunk {shard_id} of block {made_at}"
    return {
        "chunk_hash": made_hash(name),
        "prev_block_hash": made_hash(f"before {name}"),
        "outcome_root": made_hash(f"outcomes of {name}"),
        "prev_state_root": made_hash(f"state before {name}"),
        "encoded_merkle_root": made_hash(f"bytes of {name}"),
        "encoded_length": 1_210 if busy else 308,
        "height_created": made_at,
        "height_included": made_at,
        "shard_id": shard_id,
        "gas_used": 21 * TERA + 7 * made_at + shard_id,
        "gas_limit": 1_000 * TERA,
        "validator_reward": "0",
        "balance_burnt": str((21 * TERA + 7 * made_at + shard_id) * 10**8),
        "outgoing_receipts_root": made_hash(f"receipts of {name}"),
        "tx_root": made_hash(f"transactions of {name}") if busy else NO_TRANSACTIONS,
        "validator_proposals": [],
        "congestion_info": {
            "delayed_receipts_gas": "0",
            "buffered_receipts_gas": "0",
            "receipt_bytes": 0,
            "allowed_shard": shard_id,
        },
        "signature": "ed25519:" + made_hash(f"signature of {name}") * 2,
    }


def block(height: int) -> dict[str, Any]:
    """Write one block."""
    place = HEIGHTS.index(height)
    before = HEIGHTS[place - 1] if place else height - 1
    chunks = [chunk_header(height, shard_id) for shard_id in SHARDS]
    mask = [chunk["height_included"] == height for chunk in chunks]
    roots = "prev_state_root chunk_receipts_root chunk_headers_root chunk_tx_root outcome_root"
    header = {
        "height": height,
        "prev_height": before,
        "hash": HASH[height],
        "prev_hash": made_hash(f"block {before}"),
        "epoch_id": made_hash("the epoch"),
        "next_epoch_id": made_hash("the next epoch"),
        **{root: made_hash(f"{root} {height}") for root in roots.split()},
        "chunks_included": sum(mask),
        "chunk_mask": mask,
        "timestamp": time_ns(height),
        "timestamp_nanosec": str(time_ns(height)),
        "random_value": made_hash(f"random {height}"),
        "gas_price": "100000000",
        "total_supply": "1270000000000000000000000000000000",
        "rent_paid": "0",
        "validator_reward": "0",
        "validator_proposals": [],
        "challenges_result": [],
        "last_final_block": made_hash(f"block {before}"),
        "last_ds_final_block": made_hash(f"block {before}"),
        "next_bp_hash": made_hash("the next block producers"),
        "block_merkle_root": made_hash(f"blocks up to {height}"),
        "approvals": ["ed25519:" + made_hash(f"approval {height}") * 2, None],
        "signature": "ed25519:" + made_hash(f"signature {height}") * 2,
        "latest_protocol_version": 86,
    }
    return {"author": POOLS[place % len(POOLS)], "header": header, "chunks": chunks}


# Who is there, and what they hold. ------------------------------------------------------------

GOLD, MOON, LIQUID = "gold.near", "moon.near", "liquid.near"
DUST, SLOW, TORN = "dust.near", "slow.near", "torn.near"
STAMPS, TICKETS = "stamps.near", "tickets.near"
POOLS = ["north.poolv1.near", "south.poolv1.near", "east.poolv1.near"]
NORTH, SOUTH, EAST = POOLS

MOON_OF_BOB, MOON_OF_SHOP = 12 * 10**24, 1
MOON_OF_ALICE = U128_MAX - MOON_OF_BOB - MOON_OF_SHOP

# account: (balance, locked, storage_bytes) and rows of (contract, balance, height)
STATES = {
    "alice.near": (12_345_678_901_234_567_890_123_456, 0, 1_842),
    "bob.near": (3 * NEAR + 7, 0, 504),
    "carol.near": (250_000_000_000_000_000_000_000, 0, 182),
    "dave.near": (1, 0, 182),
    "shop.near": (41 * NEAR, 0, 312_004),
}
TOKENS: dict[str, list[tuple[str, str | None, int | None]]] = {
    "alice.near": [
        (GOLD, "1250000000", 190_998_412),
        (MOON, str(MOON_OF_ALICE), 190_112_903),
        (LIQUID, "3500000000000000000000000", 188_400_017),
        (DUST, "0", 171_204_556),
        (SLOW, None, 190_999_998),
        (TORN, "", 155_031_002),
    ],
    "bob.near": [(GOLD, "99000000", 189_222_101), (MOON, str(MOON_OF_BOB), 190_000_210)],
    "carol.near": [(LIQUID, "1000000000000000000", 187_310_440)],
    "dave.near": [(GOLD, "0", None)],
    "shop.near": [(GOLD, "48000000000", 190_997_005), (MOON, str(MOON_OF_SHOP), 183_118_300)],
}
NFTS: dict[str, list[tuple[str, int | None]]] = {
    "alice.near": [(STAMPS, 190_540_330), (TICKETS, None)],
    "carol.near": [(STAMPS, 186_001_992)],
}
STAKED: dict[str, list[tuple[str, int | None]]] = {
    "alice.near": [(NORTH, 189_870_001), (SOUTH, 160_500_204)],
    "bob.near": [(SOUTH, None)],
}
# (account, pool): staked, unstaked, can_withdraw
POSITIONS = {
    ("alice.near", NORTH): (150 * NEAR + 123_456_789, 0, True),
    ("alice.near", SOUTH): (0, 0, True),
    ("alice.near", EAST): (0, 20 * NEAR, False),
    ("bob.near", SOUTH): (0, 0, True),
}
# contract: symbol, name, decimals
METADATA = {
    GOLD: ("GOLD", "Invented Gold", 6),
    MOON: ("MOON", "Moon Dust", 18),
    LIQUID: ("stINV", "Invented liquid stake", 24),
    DUST: ("DUST", "Dust", 8),
    SLOW: ("SLOW", "Slow Token", 18),
}
# account: token_id, title, copies
STAMPS_HELD: dict[str, list[tuple[str, str, int]]] = {
    "alice.near": [("17", "Lighthouse", 100), ("204", "Night ferry", 1)],
    "bob.near": [],
    "carol.near": [("88", "Salt marsh", 25)],
    "dave.near": [],
}


def account(account_id: str) -> dict[str, Any]:
    """Write everything indexed of one account."""
    balance, locked, storage_bytes = STATES[account_id]
    tokens = [
        {"contract_id": c, "balance": b, "last_update_block_height": h}
        for c, b, h in TOKENS[account_id]
    ]
    return {
        "account_id": account_id,
        "pools": [
            {"pool_id": p, "last_update_block_height": h} for p, h in STAKED.get(account_id, [])
        ],
        "tokens": tokens,
        "nfts": [
            {"contract_id": c, "last_update_block_height": h} for c, h in NFTS.get(account_id, [])
        ],
        "state": {"balance": str(balance), "locked": str(locked), "storage_bytes": storage_bytes},
    }


def top(contract_id: str) -> dict[str, Any]:
    """Write a token's largest holders."""
    held = [
        (account_id, balance)
        for account_id, rows in TOKENS.items()
        for contract, balance, _ in rows
        if contract == contract_id
    ]
    held.sort(key=lambda holder: -int(holder[1] or 0))
    return {
        "token_id": contract_id,
        "accounts": [{"account_id": a, "balance": b} for a, b in held],
    }


def rest() -> dict[str, Any]:
    """Write the answers of the indexed REST API, by path."""
    found: dict[str, Any] = {}
    for account_id in STATES:
        full = account(account_id)
        path = f"/v1/account/{account_id}"
        found[f"{path}/full"] = full
        found[f"{path}/ft"] = {"account_id": account_id, "tokens": full["tokens"]}
        found[f"{path}/nft"] = {"account_id": account_id, "tokens": full["nfts"]}
        found[f"{path}/staking"] = {"account_id": account_id, "pools": full["pools"]}
    # a service may send nonsense; what was read of other accounts is kept then
    found["/v1/account/garbled.near/ft"] = {"account_id": "garbled.near", "tokens": "many"}
    for contract_id in (GOLD, MOON):
        found[f"/v1/ft/{contract_id}/top"] = top(contract_id)
    key = f"/v1/public_key/{SALE_KEY.replace(':', '%3A')}"
    found[key] = {"public_key": SALE_KEY, "account_ids": ["alice.near", "shop.near"]}
    found[f"{key}/all"] = found[key]
    found["/health"] = {"status": "ok"}
    found["/status"] = {
        "version": "0.0.0-invented",
        "sync_block_height": HEAD,
        "sync_latency_sec": 1.25,
        "sync_block_timestamp_nanosec": str(time_ns(HEAD)),
        "sync_balance_block_height": HEAD,
    }
    return found


# The sale: alice pays for tea that is sold out. The shop's receipt fails; the token's callback
# succeeds and gives the money back, so the transaction as a whole reads as a success. ---------

PRICE, BURN_PRICE = 10**9, 10**8
FT_MESSAGE = json.dumps({"buy": "tea-07"})


def event(name: str, **data: str) -> str:
    """Write an event of a fungible token."""
    body = {"standard": "nep141", "version": "1.0.0", "event": name, "data": [data]}
    return "EVENT_JSON:" + json.dumps(body, separators=(",", ":"))


def call(method_name: str, args: object, tera: int, deposit: int = 0) -> dict[str, Any]:
    """Write a call of a contract's method."""
    return {
        "FunctionCall": {
            "method_name": method_name,
            "args": packed(args),
            "gas": tera * TERA,
            "deposit": str(deposit),
        }
    }


def action_receipt(
    name: str,
    predecessor_id: str,
    receiver_id: str,
    action: dict[str, Any],
    **data: list[Any],
) -> dict[str, Any]:
    """Write a receipt that does something; a refund is a transfer from `system`."""
    return {
        "predecessor_id": predecessor_id,
        "receiver_id": receiver_id,
        "receipt_id": made_hash(name),
        "priority": 0,
        "receipt": {
            "Action": {
                "signer_id": "alice.near",
                "signer_public_key": SALE_KEY,
                "gas_price": "0" if predecessor_id == "system" else str(PRICE),
                "actions": [action],
                "input_data_ids": data.get("takes", []),
                "output_data_receivers": data.get("gives", []),
                "is_promise_yield": False,
            }
        },
    }


def outcome(
    name: str, height: int, executor_id: str, gas_burnt: int, status: object, **more: list[str]
) -> dict[str, Any]:
    """Write how a receipt, or the transaction itself, ended."""
    free = name.startswith("refund")
    return {
        "id": made_hash(name),
        "block_hash": HASH[height],
        "proof": [{"hash": made_hash(f"sibling of {name}"), "direction": "Right"}],
        "outcome": {
            "logs": more.get("logs", []),
            "receipt_ids": [made_hash(child) for child in more.get("makes", [])],
            "gas_burnt": gas_burnt,
            "tokens_burnt": "0" if free else str(gas_burnt * BURN_PRICE),
            "executor_id": executor_id,
            "status": status,
            "metadata": {"version": 3, "gas_profile": []},
        },
    }


def refund(name: str, attached: int, burnt: int) -> dict[str, Any]:
    """Write the refund of the gas that a receipt did not burn."""
    amount = (attached - burnt) * PRICE + burnt * (PRICE - BURN_PRICE)
    return action_receipt(name, "system", "alice.near", {"Transfer": {"deposit": str(amount)}})


def sale() -> dict[str, Any]:
    """Write the answer about the sale: its transaction, its receipts and how each ended."""
    h0, h1, h2, h3, h4 = HEIGHTS
    paid = {"receiver_id": "shop.near", "amount": "250000000", "msg": FT_MESSAGE}
    pay = call("ft_transfer_call", paid, 100, 1)
    offer = {"sender_id": "alice.near", "amount": "250000000", "msg": FT_MESSAGE}
    settle = {"sender_id": "alice.near", "receiver_id": "shop.near", "amount": "250000000"}
    data_id = made_hash("what the shop answers")
    there = event(
        "ft_transfer",
        old_owner_id="alice.near",
        new_owner_id="shop.near",
        amount="250000000",
    )
    back = event(
        "ft_transfer",
        old_owner_id="shop.near",
        new_owner_id="alice.near",
        amount="250000000",
        memo="refund",
    )
    panic = "Smart contract panicked: tea-07 is sold out"
    failure = {
        "ActionError": {"index": 0, "kind": {"FunctionCallError": {"ExecutionError": panic}}}
    }
    burnt = {"pay": 14_182_340_115_902, "offer": 3_090_552_018_344, "settle": 4_611_907_330_071}
    names = ["refund of pay", "refund of offer", "refund of settle"]
    return {
        "final_execution_status": "FINAL",
        "status": {"SuccessValue": packed("0")},
        "transaction": {
            "signer_id": "alice.near",
            "public_key": SALE_KEY,
            "nonce": 187_000_000_000_043,
            "receiver_id": GOLD,
            "actions": [pay],
            "priority_fee": 0,
            "signature": "ed25519:" + made_hash("signature of the sale") * 2,
            "hash": SALE,
        },
        "transaction_outcome": outcome(
            "the transaction of the sale",
            h0,
            "alice.near",
            309_880_442_718,
            {"SuccessReceiptId": made_hash("pay")},
            makes=["pay"],
        ),
        "receipts_outcome": [
            outcome(
                "pay",
                h1,
                GOLD,
                burnt["pay"],
                {"SuccessReceiptId": made_hash("settle")},
                makes=["offer", "settle", names[0]],
                logs=[there],
            ),
            outcome(
                "offer", h2, "shop.near", burnt["offer"], {"Failure": failure}, makes=[names[1]]
            ),
            outcome(names[1], h3, "alice.near", 223_182_562_500, {"SuccessValue": ""}),
            outcome(
                "settle",
                h3,
                GOLD,
                burnt["settle"],
                {"SuccessValue": packed("0")},
                makes=[names[2]],
                logs=[back],
            ),
            outcome(names[2], h4, "alice.near", 223_182_562_500, {"SuccessValue": ""}),
            outcome(names[0], h2, "alice.near", 223_182_562_500, {"SuccessValue": ""}),
        ],
        "receipts": [
            action_receipt("pay", "alice.near", GOLD, pay),
            action_receipt(
                "offer",
                GOLD,
                "shop.near",
                call("ft_on_transfer", offer, 60),
                gives=[{"data_id": data_id, "receiver_id": GOLD}],
            ),
            refund(names[1], 60 * TERA, burnt["offer"]),
            action_receipt(
                "settle", GOLD, GOLD, call("ft_resolve_transfer", settle, 10), takes=[data_id]
            ),
            refund(names[2], 10 * TERA, burnt["settle"]),
            refund(names[0], 30 * TERA, burnt["pay"]),
        ],
    }


# JSON-RPC ---------------------------------------------------------------------------------------


def exchange(method: str, params: object, result: object) -> dict[str, Any]:
    """Pair what is asked with its result."""
    return {"method": method, "params": params, "answer": {"result": result}}


def query(request_type: str, result: dict[str, Any], at: object = None, **fields: str) -> Any:
    """Pair a query with its result, which tells the block it was read at."""
    reference = {"finality": "final"} if at is None else {"block_id": at}
    params = {"request_type": request_type, **fields, **reference}
    return exchange("query", params, {**result, **READ_AT})


def view(contract_id: str, method: str, args: object, value: object, at: object = None) -> Any:
    """Pair a view call with the bytes that the contract returns."""
    fields = {"account_id": contract_id, "method_name": method, "args_base64": packed(args)}
    data = list(json.dumps(value, separators=(",", ":")).encode())
    return query("call_function", {"result": data, "logs": []}, at, **fields)


def block_exchanges() -> list[Any]:
    """Pair each way of naming a block with it; a skipped height is unknown."""
    found = [exchange("block", {"finality": "final"}, block(HEAD))]
    for height in HEIGHTS:
        found += [exchange("block", {"block_id": b}, block(height)) for b in (height, HASH[height])]
    unknown = {
        "name": "HANDLER_ERROR",
        "cause": {"name": "UNKNOWN_BLOCK", "info": {}},
        "code": -32000,
        "message": "Server error",
        "data": f"DB Not Found Error: BLOCK HEIGHT: {SKIPPED} \n Cause: Unknown",
    }
    params = {"block_id": SKIPPED}
    skipped = {"method": "block", "params": params, "status": 422, "answer": {"error": unknown}}
    return [*found, skipped]


def chunk_exchanges() -> list[Any]:
    """Pair the chunks of the first block with their contents."""
    found = []
    for shard_id in SHARDS:
        header = chunk_header(HEIGHTS[0], shard_id)
        busy = header["tx_root"] != NO_TRANSACTIONS
        body = {
            "author": POOLS[shard_id],
            "header": header,
            "transactions": [sale()["transaction"]] if busy else [],
            "receipts": [],
        }
        found.append(exchange("chunk", {"chunk_id": header["chunk_hash"]}, body))
    return found


def account_exchanges() -> list[Any]:
    """Pair the chain's own view of each account, and alice's keys."""
    found = []
    for account_id, (balance, locked, storage_bytes) in STATES.items():
        state = {
            "amount": str(balance),
            "locked": str(locked),
            "code_hash": made_hash("a shop") if account_id == "shop.near" else NO_TRANSACTIONS,
            "storage_usage": storage_bytes,
            "storage_paid_at": 0,
        }
        found += [
            query("view_account", state, at, account_id=account_id) for at in (None, HASH[HEAD])
        ]
    buying = {
        "allowance": "249382310000000000000000",
        "receiver_id": "shop.near",
        "method_names": ["buy", "cancel"],
    }
    playing: dict[str, Any] = {"allowance": None, "receiver_id": "game.near", "method_names": []}
    keys = [
        (SALE_KEY, 187_000_000_000_043, "FullAccess"),
        (made_key("a shop's key"), 190_512_000_000_007, {"FunctionCall": buying}),
        (made_key("a game's key"), 190_770_000_001_311, {"FunctionCall": playing}),
    ]
    listed = [
        {"public_key": key, "access_key": {"nonce": nonce, "permission": permission}}
        for key, nonce, permission in keys
    ]
    found.append(query("view_access_key_list", {"keys": listed}, account_id="alice.near"))
    return found


def token_exchanges() -> list[Any]:
    """Pair what token contracts, collections and pools are asked."""
    found = []
    for contract_id, (symbol, name, decimals) in METADATA.items():
        told = {
            "spec": "ft-1.0.0",
            "name": name,
            "symbol": symbol,
            "icon": None,
            "reference": None,
            "reference_hash": None,
            "decimals": decimals,
        }
        found.append(view(contract_id, "ft_metadata", {}, told))
    no_method = "wasm execution failed with error: MethodResolveError(MethodNotFound)"
    fields = {"account_id": TORN, "method_name": "ft_metadata", "args_base64": packed({})}
    found.append(query("call_function", {"error": no_method, "logs": []}, **fields))
    found.append(view(MOON, "ft_total_supply", {}, str(U128_MAX)))
    for account_id, held in STAMPS_HELD.items():
        tokens = [
            {
                "token_id": token_id,
                "owner_id": account_id,
                "metadata": {"title": title, "media": f"stamps/{token_id}.png", "copies": copies},
                "approved_account_ids": {},
            }
            for token_id, title, copies in held
        ]
        for start, page in {0: tokens, len(tokens): []}.items():
            args = {"account_id": account_id, "from_index": str(start), "limit": 50}
            found.append(view(STAMPS, "nft_tokens_for_owner", args, page, HASH[HEAD]))
    for (account_id, pool_id), (staked, unstaked, can_withdraw) in POSITIONS.items():
        told = {
            "account_id": account_id,
            "unstaked_balance": str(unstaked),
            "staked_balance": str(staked),
            "can_withdraw": can_withdraw,
        }
        found.append(view(pool_id, "get_account", {"account_id": account_id}, told))
    return found


def node_exchanges() -> list[Any]:
    """Pair what the node tells of itself and of its validators."""
    validators = [
        {
            "account_id": pool_id,
            "public_key": made_key(f"the key of {pool_id}"),
            "stake": str((9_000_000 - 1_500_000 * place) * NEAR),
            "is_slashed": False,
            "shards": [place],
            "num_produced_blocks": 1_040 - place,
            "num_expected_blocks": 1_040,
            "num_produced_chunks": 3_101 - 7 * place,
            "num_expected_chunks": 3_104,
            "num_produced_endorsements": 42_000 - 31 * place,
            "num_expected_endorsements": 42_000,
        }
        for place, pool_id in enumerate(POOLS)
    ]
    epoch = {
        "current_validators": validators,
        "next_validators": [],
        "current_fishermen": [],
        "next_fishermen": [],
        "current_proposals": [],
        "prev_epoch_kickout": [],
        "epoch_start_height": HEIGHTS[0],
        "epoch_height": 4_500,
    }
    latest_time = datetime.fromtimestamp(time_ns(HEAD) / 10**9, UTC)
    status = {
        "version": {"version": "0.0.0-invented", "build": "invented"},
        "chain_id": "invented",
        "protocol_version": 86,
        "latest_protocol_version": 86,
        "rpc_addr": None,
        "validators": [{"account_id": pool_id} for pool_id in POOLS],
        "sync_info": {
            "latest_block_hash": HASH[HEAD],
            "latest_block_height": HEAD,
            "latest_state_root": made_hash("the latest state"),
            "latest_block_time": latest_time.isoformat().replace("+00:00", "Z"),
            "syncing": False,
            "earliest_block_hash": HASH[HEIGHTS[0]],
            "earliest_block_height": HEIGHTS[0],
            "epoch_id": made_hash("the epoch"),
            "epoch_start_height": HEIGHTS[0],
        },
        "validator_account_id": None,
    }
    return [
        exchange("status", [], status),
        exchange("gas_price", [None], {"gas_price": "100000000"}),
        exchange("validators", [None], epoch),
    ]


def transaction_exchanges() -> list[Any]:
    """Pair the sale with its answer; plain `tx` tells the same without the receipts."""
    params = {"tx_hash": SALE, "sender_account_id": "alice.near", "wait_until": "FINAL"}
    result = sale()
    receipts = result.pop("receipts")
    return [
        {"method": "EXPERIMENTAL_tx_status", "params": params, "answer": "sale.json"},
        exchange("tx", params, result),
        exchange("EXPERIMENTAL_receipt", {"receipt_id": made_hash("offer")}, receipts[1]),
    ]


def rpc() -> list[Any]:
    """Write the answers of the JSON-RPC endpoint."""
    return [
        *node_exchanges(),
        *block_exchanges(),
        *chunk_exchanges(),
        *account_exchanges(),
        *token_exchanges(),
        *transaction_exchanges(),
    ]


def line(value: object) -> str:
    """Write JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def files() -> dict[str, str]:
    """Write every file: one answer a line, or an answer of many lines."""
    answers = rest()
    whole = {"alice.json": answers["/v1/account/alice.near/full"]}
    whole["sale.json"] = {"jsonrpc": "2.0", "result": sale(), "id": "recorded"}
    answers["/v1/account/alice.near/full"] = "alice.json"
    paths = [f"{line(path)}: {line(answer)}" for path, answer in answers.items()]
    return {
        "rest.json": "{\n" + ",\n".join(paths) + "\n}\n",
        "rpc.json": "[\n" + ",\n".join(map(line, rpc())) + "\n]\n",
        **{name: json.dumps(answer, indent=1) + "\n" for name, answer in whole.items()},
    }


if __name__ == "__main__":
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(name)
