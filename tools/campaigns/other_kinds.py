"""
What a later protocol adds to a document is shown by its name, and the rest stays as it was.

Each case is a recorded document, or one of the embedded ledger, of which one kind has another
name: of an action, a receipt, a status, a failure, a change of state, its cause or a cost; or an
item of a chunk is no signed transaction; or an object has one member more. All frames of the
document are read. Rows that are not about what was renamed must stay equal, in their order, and a
deposit must move as before.
"""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

import ledgerkit as lk
from ledgerkit.user_warnings import collect_warnings
from ledgerkit.verbs import document_kinds
from tools.campaigns._json_mutations import changed, places, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.campaigns._campaign import Tally
    from tools.campaigns._json_mutations import Path as Place

COUNT = 20_000
SMALL = 15
EXPECTED = ("action", "receipt", "status", "failure", "type", "cause", "gas", "item", "member")
SHARED = Path(__file__).parents[3] / "shared"
SUFFIX = "V9"
MEMBER = {"member" + SUFFIX: {"level": 2}}
TRACE_FRAMES = ("receipts", "edges", "actions", "logs", "events", "transfers", "gas")
MOVING = ("Transfer", "FunctionCall", "DeterministicStateInit")
IDS = ("receipt_id", "tx_hash", "parent_id", "child_id")
# What follows from a receipt or its status in rows of others: who waited for it, who was refunded.
DERIVED = {
    "receipt": ("waits_for", "on_critical_path", "order", "subtree_gas", "gas_refund", "depth"),
    "status": ("on_critical_path", "gas_refund"),
    "failure": (),
}
REFUNDS = ("action", "receipt", "status")  # that decide what the refunds after them are


class Case(NamedTuple):
    """What is renamed: its category, its place, its own name and the ids that it belongs to."""

    category: str
    place: Place
    name: str
    ids: frozenset[str]


# Documents ------------------------------------------------------------------------------


def recorded() -> Iterator[Any]:
    """Yield the recorded documents, where they are present."""
    for path in sorted(SHARED.glob("wire/samples/*/*.json")):
        yield json.loads(path.read_bytes())
    with suppress(FileNotFoundError):
        trees = json.loads((SHARED / "vectors" / "trees.json").read_bytes())
        yield from (case["result"] for case in trees["cases"])
        shapes = json.loads((SHARED / "vectors" / "shapes.json").read_bytes())
        yield from (shape for shape in shapes.values() if isinstance(shape, dict))


def of_the_embedded_ledger() -> Iterator[Any]:
    """Yield transactions, blocks, chunks, changes and keys of the embedded ledger."""
    with lk.connect("local") as ledger:
        for tx in ledger.world.summary.transactions:
            names = {"tx_hash": tx.tx_hash, "sender_account_id": tx.signer_id}
            names["wait_until"] = "NONE"  # some are not final
            yield ledger.rpc("EXPERIMENTAL_tx_status", names)
        last = ledger.rpc("block", {"finality": "final"})["header"]["height"]
        for height in range(last - 40, last, 4):
            yield ledger.get(f"/v0/block/{height}", surface="blocks")
            block = ledger.rpc("block", {"block_id": height})
            for chunk in block["chunks"]:
                yield ledger.rpc("chunk", {"chunk_id": chunk["chunk_hash"]})
            subject = {"changes_type": "account_changes", "account_ids": ["alice.near"]}
            yield ledger.rpc("EXPERIMENTAL_changes", {**subject, "block_id": height})


# Cases ----------------------------------------------------------------------------------


def cases(document: Any) -> Iterator[Case]:
    """Yield what can be renamed in a document."""
    for place in places(document):
        value = value_at(document, place)
        if isinstance(value, dict):
            ids = _ids(document, place) | _inferred(document, place)
            for category, inner in _kinds(value):
                name = _name(value_at(value, inner))
                if name is not None and not _is_unread(document, place, category):
                    yield Case(category, (*place, *inner), name, ids)
            if {"height", "outcome", "shard_id", "receipt_id", "nonce"} & value.keys():
                yield Case("member", place, "", frozenset())
    for place in _items(document):
        yield Case("item", place, "", _ids(document, place))


def _inferred(document: Any, place: Place) -> frozenset[str]:
    """Return the receipts whose actions are read from the transaction, if it is at a place."""
    if "transaction" not in place:
        return frozenset()
    told = value_at(document, place[: place.index("transaction")])
    first = told.get("transaction_outcome") if isinstance(told, dict) else None
    return frozenset(first["outcome"]["receipt_ids"] if first else ())


def _kinds(value: dict[str, Any]) -> Iterator[tuple[str, Place]]:
    """Yield the categories and the places of the kinds that are members of an object."""
    actions = value.get("actions")
    if isinstance(actions, list):
        yield from (("action", ("actions", at)) for at in range(len(actions)))
    if {"receipt_id", "receipt"} <= value.keys():
        yield "receipt", ("receipt",)
    if "status" in value and ({"receipt_ids", "receipts_outcome"} & value.keys()):
        yield "status", ("status",)
    if isinstance(value.get("Failure"), dict):
        yield "failure", ("Failure",)
    if {"type", "cause", "change"} <= value.keys():
        yield "type", ("type",)
        yield "cause", ("cause", "type")
    if "cost_category" in value:
        yield "gas", ("cost_category",)


def _is_unread(document: Any, place: Place, category: str) -> bool:
    """Return True for what frames of blocks do not show: receipts of chunks, changes of keys."""
    if category in ("action", "receipt"):
        return "receipts" in place and ("chunk" in place or "header" in document)
    if category == "status" and "chunk" in place:
        return "block" not in document  # a shard has no view of the outcomes of transactions
    is_of_block = category in ("cause", "type") and "state_changes" in place
    return is_of_block and not value_at(document, place)["type"].startswith("account_")


def _name(value: Any) -> str | None:
    """Return the name of a kind: of an object its first member, or a text."""
    if isinstance(value, dict):
        return next(iter(value), None)
    return value if isinstance(value, str) else None


def _items(document: Any) -> Iterator[Place]:
    """Yield the places of the transactions of chunks."""
    for place in places(document):
        value = value_at(document, place)
        if isinstance(value, dict) and "signer_id" in value and "signature" in value:
            is_item = "transactions" in place[-3:]
            if is_item and (
                place[-1] != "transaction" or "outcome" in value_at(document, place[:-1])
            ):
                yield place


def _ids(document: Any, place: Place) -> frozenset[str]:
    """Return the ids of the innermost receipt, transaction or outcome that a place is in."""
    for length in range(len(place), -1, -1):
        value = value_at(document, place[:length])
        if not isinstance(value, dict):
            continue
        if "receipts_outcome" in value:
            return frozenset({value["transaction_outcome"]["id"]})
        for name in ("receipt_id", "id", "hash"):
            if isinstance(value.get(name), str) and "header" not in value:
                return frozenset({value[name]})
    return frozenset()


def renamed(document: Any, case: Case) -> Any:
    """Return the document of a case."""
    if case.category == "member":
        return changed(document, case.place, lambda value: {**value, **MEMBER})
    if case.category == "item":
        return changed(document, case.place, _external_call)
    return changed(document, case.place, _rename)


def _external_call(sent: dict[str, Any]) -> dict[str, Any]:
    return {"contract_id": sent["receiver_id"], "hash": sent["hash"], "payload": "AAAA"}


def _rename(value: Any) -> Any:
    if isinstance(value, str):
        return value + SUFFIX
    name, *others = value
    return {name + SUFFIX: value[name], **{other: value[other] for other in others}}


# Reading and comparing ------------------------------------------------------------------


def frames(document: Any) -> dict[str, Any]:
    """Read all frames of a document; a trace also has its words."""
    data = json.dumps(document).encode()
    kind = document_kinds.recognize(data)
    views = kind.views if kind else ()
    is_trace = "edges" in views and "transactions" not in views
    read: dict[str, Any] = {}
    if not is_trace:
        return {view: lk.read_response(data, view) for view in views}
    trace = lk.Trace.from_json(data, tx_hash=_first_hash(document))
    read = {name: getattr(trace, name) for name in TRACE_FRAMES}
    read["balance_changes"] = trace.balance_changes
    read["words"] = f"{trace.verdict} {trace.explain()} {trace.notes}"
    return read


def _first_hash(document: dict[str, Any]) -> str | None:
    transactions = document.get("transactions")
    return str(transactions[0]["transaction"]["hash"]) if transactions else None


def differences(case: Case, before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Yield what should be as before, and is not."""
    for view, frame in before.items():
        if view == "words":
            continue
        if view == "balance_changes":
            is_moving = case.category == "action" and case.name in MOVING
            if is_moving or case.category == "member":
                near = [changes[changes["asset"] == "near"] for changes in (frame, after[view])]
                if not near[0].reset_index(drop=True).equals(near[1].reset_index(drop=True)):
                    yield "the balances are others"
            continue
        left, right = (_others(case, view, each) for each in (frame, after[view]))
        if not left.equals(right):
            yield f"{view}: {_first_difference(left, right)}"
    text = after.get("words", "") + " ".join(
        frame.to_csv() for frame in after.values() if isinstance(frame, pd.DataFrame)
    )
    is_shown = case.category not in ("member", "item", "failure")
    if is_shown and _is_shown(case, before) and case.name + SUFFIX not in text:
        yield f"{case.name + SUFFIX} is not shown"
    if case.category == "item" and "external_contract_call" not in text and "transactions" in after:
        yield "the item is no row"


def _is_shown(case: Case, before: dict[str, Any]) -> bool:
    """Return whether a frame of the document shows the kind under its own name."""
    if case.category == "action":
        return bool({"transactions", "receipts"} & before.keys())
    if case.category == "receipt":
        return "receipts" in before and case.name != "Data"
    if case.category == "status":
        return "receipts" in before
    if case.category in ("type", "cause"):
        return "balances" in before or "changes" in before
    return case.category == "gas" and "outcomes" in before


def _others(case: Case, view: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that are not about what was renamed, without what follows from it."""
    own = pd.Series(data=False, index=frame.index)
    for name in IDS:
        if name in frame:
            own |= frame[name].isin(case.ids)
    if view in ("transfers", "gas") and case.category in REFUNDS:
        own |= frame["receipt_id"].isna()  # the fee, less refunds
    if view == "balances" and case.category in ("type", "cause"):
        own |= True
    if view == "changes" and case.category in ("type", "cause"):
        own |= True
    derived = [name for name in DERIVED.get(case.category, ()) if name in frame]
    if case.category == "item":  # without its sender it is not known which receipts are local
        derived += [name for name in ("is_local", "n_receipts") if name in frame]
    frame = frame[~own].drop(columns=derived)
    if case.category == "receipt":  # rows are in causal order
        frame = frame.sort_values([name for name in IDS if name in frame], kind="stable")
    return frame.reset_index(drop=True)


def _first_difference(left: pd.DataFrame, right: pd.DataFrame) -> str:
    if len(left) != len(right):
        return f"{len(left)} and {len(right)} rows"
    for name in left:
        if not left[name].equals(right[name]):
            pairs = zip(left[name], right[name], strict=True)
            return next((f"{name}: {a} and {b}" for a, b in pairs if str(a) != str(b)), "")
    return "columns"


# The campaign ---------------------------------------------------------------------------


def run(count: int, seed: int, tally: Tally) -> None:
    """Try so many cases, of all categories alike, and of their documents alike."""
    documents = [*recorded(), *of_the_embedded_ledger()]
    listed: dict[str, dict[int, list[Case]]] = {}
    known: dict[int, dict[str, Any]] = {}
    for number, document in enumerate(documents):
        for case in cases(document):
            listed.setdefault(case.category, {}).setdefault(number, []).append(case)
    rng = random.Random(seed)
    total = sum(len(each) for numbers in listed.values() for each in numbers.values())
    tally.notes.append(f"{len(documents)} documents, {total:,} cases in all")
    for _ in range(count):
        category = rng.choice(sorted(listed))
        number = rng.choice(sorted(listed[category]))
        case = rng.choice(listed[category][number])
        with collect_warnings():
            try:
                if number not in known:
                    known[number] = frames(documents[number])
                after = frames(renamed(documents[number], case))
            except lk.LedgerError as error:
                tally.violate(f"document {number}, {case}: {error!r}")
                continue
        for problem in differences(case, known[number], after):
            tally.violate(f"document {number}, {case}: {problem}")
        tally.count(category)
