"""
A reader of documents returns a value that can be displayed, or raises an error of ledgerkit.

Each document is a valid one of the embedded ledger after some changes: values of other kinds,
missing and repeated members, subtrees of other documents, texts that are no UTF-8, numbers that
are too large, deep nesting, cut and spliced bytes. It is read as a saved document, by every view,
or as the response to a verb, or sent to the embedded ledger as a request. Tables, explanations and
cards of the value must work too.
"""

from __future__ import annotations

import json
import logging
import random
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

import ledgerkit as lk
from ledgerkit.user_warnings import collect_warnings
from ledgerkit.verbs import document_kinds, saved_responses
from tools.campaigns import _replay
from tools.campaigns._json_mutations import Mutator
from tools.campaigns._outcomes import hostile_conditions, outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tools.campaigns._campaign import Tally

    Reader = Callable[[bytes], Any]

COUNT = 1_000_000
SMALL = 100
EXPECTED = (
    *("value of a saved document", "error of a saved document"),
    *("value of a verb", "error of a verb", "value of a request"),
)
MEMORY = 2**31
SAMPLES = Path(__file__).parents[3] / "shared" / "wire" / "samples"  # recorded, where present
TRACE_READERS = ("Trace.from_json", "Trace.from_json of a text", "Trace.from_json of an object")
STATUSES = (200, 200, 200, 200, 200, 200, 400, 401, 404, 408, 422, 429, 500, 503)

# Readers ---------------------------------------------------------------------------------


def saved_readers(trace: bytes) -> dict[str, Reader]:
    """Return the readers of saved documents by name; `trace` is the one that rules are for."""
    views = saved_responses._VIEWS  # noqa: SLF001 - every view, also later ones
    readers: dict[str, Reader] = {
        f"read {view}": partial(lk.read_response, view=view) for view in views
    }
    return {
        **readers,
        "Trace.from_json": lk.Trace.from_json,
        "Trace.from_json of a text": lambda body: lk.Trace.from_json(body.decode(errors="replace")),
        "Trace.from_json of an object": lambda body: lk.Trace.from_json(_parsed(body)),
        "Trace.from_json with rules": lambda body: lk.Trace.from_json(trace, rules=_parsed(body)),
        "returned_value": saved_responses.returned_value,
    }


def _parsed(body: bytes) -> Any:
    """Decode a document as Python does, which accepts more than JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return {"undecodable": body.decode("utf-8", "surrogateescape")}


def fitting_readers(document: Any) -> list[str] | None:
    """Return the names of the readers of a kind of document; None if there is none."""
    kind = document_kinds.recognize(json.dumps(document).encode())
    if "runtime_config" in document:
        return ["Trace.from_json with rules"]
    if kind is None or not kind.views:
        return ["returned_value"] if kind is not None and "call_function" in kind.name else None
    is_trace = "edges" in kind.views
    traces = [name for name in TRACE_READERS if is_trace]
    return [*traces, *(f"read {view}" for view in kind.views)]


# Valid documents -------------------------------------------------------------------------


def block_documents(tx_status: dict[str, Any], block: Any, chunk: Any) -> Iterator[Any]:
    """Yield a block document, its shard, and two documents of the Transactions API."""
    outcomes = {outcome["id"]: outcome for outcome in tx_status["receipts_outcome"]}
    pairs = [
        {"receipt": receipt, "execution_outcome": outcomes[receipt["receipt_id"]]}
        for receipt in tx_status["receipts"]
        if receipt["receipt_id"] in outcomes
    ]
    conversion = {"execution_outcome": tx_status["transaction_outcome"]}
    converted = {"transaction": tx_status["transaction"], "outcome": conversion}
    whole_chunk = {**chunk, "transactions": [converted], "local_receipts": []}
    shard = {"shard_id": 0, "chunk": whole_chunk, "receipt_execution_outcomes": pairs}
    yield {"block": block, "shards": [shard]}
    yield shard
    indexed = {"transaction": tx_status["transaction"], **conversion, "receipts": pairs}
    yield indexed
    yield {"transactions": [indexed]}


def from_world(bodies: dict[tuple[str, str], tuple[bytes, int]]) -> Iterator[Any]:
    """Yield the responses of the embedded ledger, and documents made of their parts."""
    results: dict[str, list[Any]] = {}
    for (_, request), (body, _) in bodies.items():
        document = json.loads(body)
        yield document
        if "result" in document:
            yield document["result"]
            results.setdefault(json.loads(request)["method"], []).append(document["result"])
    for tx_status in results["EXPERIMENTAL_tx_status"]:
        yield from block_documents(tx_status, results["block"][0], results["chunk"][0])
        yield {"ledgerkit": {"blocks": {"1" * 32: [1, 2]}}, **tx_status}


def recorded() -> Iterator[Any]:
    """Yield the recorded responses of real services, where they are present."""
    for path in sorted(SAMPLES.glob("*/*.json")):
        if path.stat().st_size < 100_000:
            yield json.loads(path.read_bytes())


# The campaign ----------------------------------------------------------------------------


class Unanswered(logging.Handler):
    """Raises what the embedded ledger only logs: a request that it could not answer."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1]:
            raise record.exc_info[1]


class Attack:
    """One run: the documents, their mutations, and the results."""

    def __init__(self, seed: int, tally: Tally) -> None:
        """Collect the valid documents: the responses to each verb."""
        self.rng = random.Random(seed)
        self.tally = tally
        self.replay = _replay.Replay()
        self.verbs = _replay.verbs(self.replay)
        self.requests = {name: self._count_requests(verb) for name, verb in self.verbs.items()}
        self.documents = [*from_world(self.replay.bodies), *recorded()]
        self.parsed = {body: json.loads(body) for body, _ in self.replay.bodies.values()}
        self.mutator = Mutator(self.rng, self.documents)
        bodies = {json.loads(key[1]).get("method"): key for key in self.replay.bodies}
        self.readers = saved_readers(self.replay.bodies[bodies["EXPERIMENTAL_tx_status"]][0])
        sent = [(path, json.loads(text)) for path, text in self.replay.bodies]
        self.sent = [(path, {"id": 1, **document}) for path, document in sent if document]
        self.fitting = {id(document): fitting_readers(document) for document in self.documents}
        self.ledger = _replay.connect(self.replay)
        self.kinds = (self.verb, self.saved, self.saved, self.verb, self.saved, self.request)

    def _count_requests(self, verb: Callable[[lk.Ledger], Any]) -> int:
        """Run a verb on the unchanged responses; return how many it read."""
        count = 0

        def change(body: bytes, status: int) -> tuple[bytes, int]:
            nonlocal count
            count += 1
            return body, status

        self.replay.change = change
        with _replay.connect(self.replay) as ledger, collect_warnings():
            outcome(lambda: verb(ledger), closely=False)
        return count

    def saved(self) -> None:
        document = self.rng.choice(self.documents)
        fitting = self.fitting.get(id(document))
        is_odd = not fitting or self.rng.random() < 0.1
        name = self.rng.choice(list(self.readers) if is_odd else fitting or [])
        body = self.mutator.mutate(document)
        self.judge("a saved document", name, body, lambda: self.readers[name](body))

    def verb(self) -> None:
        """Run one verb of which one response, and some later ones, are changed."""
        name = self.rng.choice(list(self.verbs))
        target, sent = self.rng.randrange(self.requests[name]), -1
        changed: list[tuple[int, bytes]] = []

        def change(body: bytes, status: int) -> tuple[bytes, int]:
            nonlocal sent
            sent += 1
            if sent != target and (sent < target or self.rng.random() < 0.9):
                return body, status
            changed.append((self.rng.choice((status, *STATUSES)), self.mutate_response(body)))
            return changed[-1][1], changed[-1][0]

        self.replay.change = change
        self.ledger.forget()
        self.ledger._memo.clear()  # noqa: SLF001 - cheaper than another ledger
        self.judge("a verb", name, changed, lambda: self.verbs[name](self.ledger))
        if any(status == 429 for status, _ in changed):
            self.ledger.close()
            self.ledger = _replay.connect(self.replay)  # the old one has become slower

    def mutate_response(self, body: bytes) -> bytes:
        """Change a response, or another document in its place."""
        try:
            if body not in self.parsed:
                self.parsed[body] = json.loads(body)
            is_other = self.rng.random() < 0.1
            document = self.rng.choice(self.documents) if is_other else self.parsed[body]
            return self.mutator.mutate(document)
        except Exception as error:  # noqa: BLE001 - the client would report it as the transport's
            self.tally.violate(f"the campaign itself failed: {error!r}")
            return body

    def request(self) -> None:
        path, document = self.rng.choice(self.sent)
        body = self.mutator.mutate(document)
        headers = {"content-type": "application/json"}
        request = httpx.Request("POST", f"http://localhost{path}", content=body, headers=headers)
        answer = self.replay.local.handle_request
        self.judge("a request", path, body, lambda: answer(request).read() and None)

    def judge(self, kind: str, name: str, body: Any, read: Callable[[], Any]) -> None:
        result = outcome(read, closely=self.rng.random() < 0.03)
        if result in ("value", "error"):
            self.tally.count(f"{result} of {kind}")
        else:
            self.tally.violate(f"{name}: {result}: {str(body)[:1000]}")


def run(count: int, seed: int, tally: Tally) -> None:
    """Read the documents: half of them as saved ones, most others as responses."""
    with hostile_conditions(MEMORY):
        attack = Attack(seed, tally)
        logger, handler = logging.getLogger("ledgerkit.localnet"), Unanswered()
        logger.addHandler(handler)
        try:
            for number in range(count):
                attack.kinds[number % len(attack.kinds)]()
        finally:
            logger.removeHandler(handler)
            attack.ledger.close()
    tally.notes.append(f"{len(attack.documents)} valid documents, {len(attack.verbs)} verbs")
