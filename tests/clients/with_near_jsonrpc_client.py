"""
Drive near-jsonrpc-client against the embedded ledger: its models parse all answers of the demo.

`ledgerkit world demo --json` with `actors` added on standard input, the ledger's address as the
argument: `tests/clients/run.py` does both.
"""

from __future__ import annotations

import base64
import inspect
from collections import Counter
from typing import TYPE_CHECKING, Any

import base58
from near import KeyPairSigner, parse_key, transfer
from near.wire import Transaction, sign_transaction, to_wire_public_key
from near_jsonrpc_client import NearClientSync, RpcError
from near_jsonrpc_client.errors import RpcClientError

from tests.clients.checks import TRANSFER_DEBIT, Checks, Demo, demo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

NOTHING = "1" * 32  # 32 zero bytes
KINDS = ("account_changes", "all_access_key_changes", "contract_code_changes", "data_changes")
LEVELS = ("NONE", "INCLUDED", "INCLUDED_FINAL", "EXECUTED_OPTIMISTIC", "EXECUTED", "FINAL")
KEY = {
    "request_type": "view_access_key",
    "public_key": f"ed25519:{NOTHING}",
    "finality": "final",
}
MISSING = f"access key ed25519:{NOTHING} does not exist while viewing"

check = Checks("near-jsonrpc-client")


class Asker:
    """Asks through the client, counts the answers, and keeps what its models reject."""

    def __init__(self, url: str) -> None:
        self.client = NearClientSync(rpc_urls=url, timeout=30)
        self.parsed: Counter[str] = Counter()
        self.rejected: list[str] = []
        self.unknown: set[str] = set()
        self.raw: Any = None
        self.client._transport.post = self.listening(self.client._transport.post)

    def listening(self, post: Callable[..., Any]) -> Callable[..., Any]:
        """Keep what came over the wire, to compare with what the models make of it."""

        def heard(**parts: Any) -> Any:
            answer = post(**parts)
            self.raw = answer.json()
            return answer

        return heard

    def call(self, name: str, params: dict[str, Any]) -> Any:
        """Call one of the client's methods with its own model of the parameters."""
        method = getattr(self.client, name)
        expected = inspect.signature(method).parameters
        if "params" not in expected:
            return method()
        return method(params=expected["params"].annotation.model_validate(params))

    def ask(self, name: str, **params: Any) -> Any:
        """Return an answer as plain JSON; None where the models reject it."""
        try:
            answer = self.call(name, params)
        except RpcError as error:
            self.rejected.append(f"{name} {params}: the ledger refused: {error.error!r:.300}")
            return None
        except (RpcClientError, KeyError, TypeError) as error:  # it stumbles over its own report
            self.rejected.append(f"{name} {params}: {why(error)}")
            return None
        self.parsed[name] += 1
        self.unknown.update(ignored(self.raw["result"], plain(answer), name))
        return plain(answer)

    def refusal(self, name: str, **params: Any) -> str:
        """Return the cause that the ledger names for refusing a call."""
        try:
            self.call(name, params)
        except RpcError as error:
            self.parsed[name] += 1
            return str(plain(error.error)["error"]["cause"]["name"])
        except RpcClientError as error:
            return str(error)
        return "no error"


def plain(answer: Any) -> Any:
    if isinstance(answer, list):
        return [plain(item) for item in answer]
    return answer.model_dump(mode="json", by_alias=True) if answer is not None else None


def ignored(raw: Any, kept: Any, path: str) -> Iterator[str]:
    """List the members of an answer that the models do not know, and so leave out."""
    if isinstance(raw, dict):
        for name, value in raw.items():
            if name not in kept:
                yield f"{path}.{name}"
            else:
                yield from ignored(value, kept[name], f"{path}.{name}")
    elif isinstance(raw, list):
        for one, other in zip(raw, kept, strict=True):
            yield from ignored(one, other, f"{path}[]")


def why(error: BaseException) -> str:
    """Return the deepest complaints of the models, which say the most about a union."""
    cause = error.__cause__ or error.__context__
    complaints: list[Any] = getattr(cause, "errors", list)()
    deepest = sorted(complaints, key=lambda item: len(item["loc"]), reverse=True)[:3]
    return "; ".join(f"{item['loc']}: {item['msg']}" for item in deepest) or repr(error)


def names(contracts: dict[str, Any]) -> Iterator[str]:
    """List the account ids of the world's contracts, pools included."""
    for value in contracts.values():
        yield from [value] if isinstance(value, str) else value


def blocks(rpc: Asker) -> list[dict[str, Any]]:
    """Walk from the head back to the genesis, by hash and by height."""
    found = [rpc.ask("block", finality="optimistic")]
    while (prev_hash := found[-1]["header"]["prev_hash"]) != NOTHING:
        found.append(rpc.ask("block", block_id=prev_hash))
    same = [rpc.ask("block", block_id=block["header"]["height"]) == block for block in found]
    check.equal("block: by height as by hash", all(same), wanted=True)
    for block in found[2:]:  # the last blocks have results that are not there yet
        rpc.ask("experimental_indexer_block", block_hash=block["header"]["hash"])
    first = rpc.ask("block", sync_checkpoint="genesis")
    check.equal("block: the walk ends at the genesis", first, found[-1])
    heights = [block["header"]["height"] for block in found]
    check.equal("block: heights fall", heights, sorted(set(heights), reverse=True))
    for finality in ("final", "near-final"):
        check.equal(f"block: {finality}", rpc.ask("block", finality=finality) in found, wanted=True)
    return found


def chunks(rpc: Asker, found: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Read every chunk of the chain; return hash and signer of all transactions in them."""
    places = {
        header["chunk_hash"]: (block["header"]["height"], header["shard_id"])
        for block in found[:-1]
        for header in block["chunks"]
        if header["height_included"] == block["header"]["height"]
    }
    answers = {hash_: rpc.ask("chunk", chunk_id=hash_) for hash_ in places}
    hash_, (block_id, shard_id) = next(iter(places.items()))
    by_place = rpc.ask("chunk", block_id=block_id, shard_id=shard_id)
    check.equal("chunk: by place as by hash", by_place, answers[hash_])
    return {
        (row["hash"], row["signer_id"])
        for chunk in answers.values()
        if chunk
        for row in chunk["transactions"]
    }


def changes(rpc: Asker, found: list[dict[str, Any]], keys: list[dict[str, str]]) -> None:
    """Read what every block changed, by all the ways to ask."""
    touched: set[str] = set()
    account_ids = sorted({key["account_id"] for key in keys})
    for block in found:
        reference = {"block_id": block["header"]["hash"]}
        effects = rpc.ask("block_effects", **reference)
        old = rpc.ask("experimental_changes_in_block", **reference)
        if effects != old:
            check.equal("changes in block: both names", old, effects)
        touched |= {row["account_id"] for row in (effects or {}).get("changes", [])}
        for kind in KINDS:
            extra = {"key_prefix_base64": ""} if kind == "data_changes" else {}
            params = {"changes_type": kind, "account_ids": account_ids, **extra, **reference}
            rpc.ask("changes", **params)
        by_key = {"changes_type": "single_access_key_changes", "keys": keys, **reference}
        if rpc.ask("changes", **by_key) != rpc.ask("experimental_changes", **by_key):
            check.equal("changes: both names", "another answer", by_key)
    check.equal("changes: something was touched", bool(touched & set(account_ids)), wanted=True)


def transactions(rpc: Asker, known: Iterable[tuple[str, str]], waiting: set[str]) -> None:
    """Read every transaction at each level, its receipts, and the way back from a receipt."""
    for tx_hash, signer_id in sorted(known):
        place = {"tx_hash": tx_hash, "sender_account_id": signer_id}
        reached = LEVELS[:3] if tx_hash in waiting else LEVELS
        levels = [rpc.ask("tx", **place, wait_until=level) for level in reached]
        if levels != [levels[-1]] * len(reached):
            check.equal(f"tx {tx_hash}: the same at all levels", levels[0], levels[-1])
        for level in LEVELS[len(reached) :]:
            cause = rpc.refusal("tx", **place, wait_until=level)
            check.equal(f"tx {tx_hash}: {level}", cause, "TIMEOUT_ERROR")
        full = rpc.ask("experimental_tx_status", **place, wait_until=reached[-1])
        for receipt in (full or {}).get("receipts", []):
            again = rpc.ask("experimental_receipt", receipt_id=receipt["receipt_id"])
            origin = rpc.ask("experimental_receipt_to_tx", receipt_id=receipt["receipt_id"])
            if again != receipt or (origin or {}).get("transaction_hash") != tx_hash:
                check.equal("receipt and its transaction", (again, origin), (receipt, tx_hash))


def accounts(rpc: Asker, account_ids: Iterable[str]) -> list[dict[str, str]]:
    """Read all accounts, keys, codes and states, by both families of methods; return the keys."""
    keys = []
    for account_id in account_ids:
        where = {"account_id": account_id, "finality": "final"}
        view = rpc.ask("query", request_type="view_account", **where)
        check_same(rpc, "experimental_view_account", where, view)
        listed = rpc.ask("query", request_type="view_access_key_list", **where)
        check_same(rpc, "experimental_view_access_key_list", where, listed)
        for row in (listed or {"keys": []})["keys"]:
            keys.append({"account_id": account_id, "public_key": row["public_key"]})
            key = rpc.ask("query", request_type="view_access_key", **{**where, **keys[-1]})
            check_same(rpc, "experimental_view_access_key", {**where, **keys[-1]}, key)
        if view and view["code_hash"] != NOTHING:
            contract(rpc, where)
    return keys


def contract(rpc: Asker, where: dict[str, Any]) -> None:
    code = rpc.ask("query", request_type="view_code", **where)
    check_same(rpc, "experimental_view_code", where, code)
    which = {**where, "prefix_base64": "", "include_proof": False}
    state = rpc.ask("query", request_type="view_state", **which)
    check_same(rpc, "experimental_view_state", which, state)


def check_same(rpc: Asker, name: str, params: dict[str, Any], answer: Any) -> None:
    """Check that a method of its own answers what `query` does."""
    again = rpc.ask(name, **params)
    if again != answer:
        check.equal(f"{name} {params}: as query", again, answer)


def views(rpc: Asker, world: Demo) -> None:
    """Call view methods of every contract."""
    calls = {
        "ft": ("ft_metadata", b"{}"),
        "wrap": ("ft_total_supply", b"{}"),
        "nft": ("nft_tokens", b"{}"),
        "liquid": ("ft_price", b"{}"),
        "social": ("get", b'{"keys":["**"]}'),
        "dex": ("is_paused", b"{}"),
        "counter": ("get_num", b"{}"),
    }
    for name, (method, args) in calls.items():
        call = {
            "account_id": world.contracts[name],
            "method_name": method,
            "args_base64": base64.b64encode(args).decode(),
            "finality": "optimistic",
        }
        answer = rpc.ask("query", request_type="call_function", **call)
        check_same(rpc, "experimental_call_function", call, answer)


def network(rpc: Asker) -> None:
    """Read what is said about the network, its configuration and its validators."""
    head = rpc.ask("block", finality="optimistic")
    height, epoch_id = head["header"]["height"], head["header"]["epoch_id"]
    price = rpc.ask("gas_price", block_id=None)
    check.equal("gas price", price, {"gas_price": "100000000"})
    check.equal("gas price: by height", rpc.ask("gas_price", block_id=height), price)
    status = rpc.ask("status")
    check.equal("status: head", status["sync_info"]["latest_block_height"], height)
    rpc.ask("health")
    genesis = rpc.ask("genesis_config")
    check.equal("genesis config", rpc.ask("experimental_genesis_config"), genesis)
    config = rpc.ask("experimental_protocol_config", finality="final")
    check.equal("protocol config: version", config["protocol_version"], status["protocol_version"])
    current = rpc.ask("validators", epoch_id=epoch_id)["current_validators"]
    ordered = rpc.ask("experimental_validators_ordered", block_id=height)
    same = {row["account_id"] for row in current} == {row["account_id"] for row in ordered}
    check.equal("validators", same, wanted=True)
    for name in ("maintenance_windows", "experimental_maintenance_windows"):
        windows = rpc.ask(name, account_id="a.near")
        check.equal(f"{name}: from the head", [row["start"] for row in windows], [height])
    chunk = head["chunks"][0]
    level = rpc.ask("experimental_congestion_level", block_id=height, shard_id=chunk["shard_id"])
    check.equal("congestion level", level, {"congestion_level": 0.0})
    storage = rpc.ask("experimental_split_storage_info")
    check.equal("split storage: head", storage["head_height"], height)
    check.equal("network info: peers", rpc.ask("network_info")["num_active_peers"], 0)
    node = rpc.ask("client_config")
    check.equal("client config: chain", node["chain_id"], status["chain_id"])


def refusals(rpc: Asker, world: Demo) -> None:
    """Provoke refusals: the models know every cause."""
    query = {"request_type": "view_account", "finality": "final"}
    cause = rpc.refusal("query", **query, account_id="nobody.at-all")
    check.equal("refusal: account", cause, "UNKNOWN_ACCOUNT")
    cause = rpc.refusal("query", **query, account_id="Not An Id")
    check.equal("refusal: bad account id", cause, "PARSE_ERROR")
    check.equal("refusal: block", rpc.refusal("block", block_id=1), "UNKNOWN_BLOCK")
    check.equal("refusal: chunk", rpc.refusal("chunk", chunk_id=NOTHING), "UNKNOWN_CHUNK")
    cause = rpc.refusal("experimental_receipt", receipt_id=NOTHING)
    check.equal("refusal: receipt", cause, "UNKNOWN_RECEIPT")
    place = {"tx_hash": NOTHING, "sender_account_id": world.sender_id}
    cause = rpc.refusal("tx", **place, wait_until="NONE")
    check.equal("refusal: transaction", cause, "UNKNOWN_TRANSACTION")
    cause = rpc.refusal("tx", **place, wait_until="EXECUTED_OPTIMISTIC")
    check.equal("refusal: waiting", cause, "TIMEOUT_ERROR")
    cause = rpc.refusal("query", **{**KEY, "account_id": world.sender_id})
    check.equal("an error as a result, which the client rejects", cause, MISSING)
    cause = rpc.refusal("experimental_indexer_block", block_hash=NOTHING)
    check.equal("refusal: whole block", cause, "DATA_UNAVAILABLE")


def light_client(rpc: Asker, world: Demo, found: list[dict[str, Any]]) -> None:
    """Read the proofs of a transaction and of a block, and the block to follow from genesis."""
    head, early = found[0]["header"], found[-2]["header"]
    first = next(row for row in world.finished)
    proof = {
        "type": "transaction",
        "transaction_hash": first["tx_hash"],
        "sender_id": first["signer_id"],
        "light_client_head": head["hash"],
    }
    answers = [
        rpc.ask(name, **proof) for name in ("light_client_proof", "experimental_light_client_proof")
    ]
    check.equal("light client: outcome", answers[0]["outcome_proof"]["id"], first["tx_hash"])
    check.equal("light client: by either name", answers[0], answers[1])
    place = {"block_hash": early["hash"], "light_client_head": head["hash"]}
    lite = rpc.ask("experimental_light_client_block_proof", **place)["block_header_lite"]
    check.equal("light client: block", lite["inner_lite"]["height"], early["height"])
    following = rpc.ask("next_light_client_block", last_block_hash=found[-1]["header"]["hash"])
    check.equal("light client: next", following["inner_lite"]["epoch_id"], head["epoch_id"])


def signed(rpc: Asker, world: Demo, amount: int, ahead: int) -> tuple[str, str]:
    """Sign a transfer with a nonce so far ahead of the key's; return its hash and text."""
    signer = KeyPairSigner(world.sender_id, parse_key(world.secret_key))
    key = rpc.ask(
        "query",
        request_type="view_access_key",
        account_id=world.sender_id,
        public_key=str(signer.public_key),
        finality="optimistic",
    )
    transaction = Transaction(
        signer_id=world.sender_id,
        public_key=to_wire_public_key(signer.public_key),
        nonce=key["nonce"] + ahead,
        receiver_id=world.receiver_id,
        block_hash=base58.b58decode(rpc.ask("block", finality="final")["header"]["hash"]),
        actions=[transfer(f"{amount} yocto")],
    )
    tx_hash, raw = sign_transaction(transaction, signer)
    return tx_hash, base64.b64encode(raw).decode()


def sending(rpc: Asker, world: Demo) -> None:
    """Send in the three ways, and what is refused."""
    for name in ("send_tx", "broadcast_tx_commit"):
        tx_hash, text = signed(rpc, world, 1, ahead=1)
        answer = rpc.ask(name, signed_tx_base64=text, wait_until="EXECUTED_OPTIMISTIC")
        check.equal(f"{name}: hash", answer["transaction"]["hash"], tx_hash)
        check.equal(f"{name}: status", answer["status"], {"SuccessValue": ""})
    tx_hash, text = signed(rpc, world, 1, ahead=1)
    answer = rpc.ask("broadcast_tx_async", signed_tx_base64=text, wait_until="NONE")
    check.equal("broadcast_tx_async", answer, tx_hash)
    answer = rpc.ask("tx", tx_hash=tx_hash, sender_account_id=world.sender_id, wait_until="FINAL")
    check.equal("tx: level", answer["final_execution_status"], "FINAL")
    for amount, ahead in ((1, 0), (10**33 + TRANSFER_DEBIT, 1)):
        _, text = signed(rpc, world, amount, ahead)
        cause = rpc.refusal("send_tx", signed_tx_base64=text, wait_until="FINAL")
        check.equal(f"refusal: {amount} yocto, nonce + {ahead}", cause, "INVALID_TRANSACTION")


def main() -> None:
    """Read the whole world through the client's models, then send."""
    world = demo()
    rpc = Asker(world.url)
    found = blocks(rpc)
    known = chunks(rpc, found)
    named = {(row["tx_hash"], row["signer_id"]) for row in world.transactions}
    check.equal("chunks hold the world's transactions", named - known, set())
    finished = {row["tx_hash"] for row in world.finished}
    transactions(rpc, known, {tx_hash for tx_hash, _ in named if tx_hash not in finished})
    account_ids = [row["account_id"] for row in world.accounts]
    account_ids += [name for name in names(world.contracts) if name not in account_ids]
    changes(rpc, found, accounts(rpc, account_ids))
    views(rpc, world)
    network(rpc)
    light_client(rpc, world, found)
    refusals(rpc, world)
    sending(rpc, world)
    methods = {name for name, _ in inspect.getmembers(NearClientSync, inspect.isfunction)}
    # Nodes of this world's protocol version have no `tx_status` yet.
    methods = {name for name in methods if not name.startswith("_")} - {"close", "tx_status"}
    check.equal("methods of the client that were not called", methods - set(rpc.parsed), set())
    check.equal("answers that the models reject", rpc.rejected[:10], [])
    check.equal("members that the models do not know", rpc.unknown, set())
    check.equal(f"{rpc.parsed.total()} answers parsed", rpc.parsed.total() > 0, wanted=True)
    check.done()


if __name__ == "__main__":
    main()
