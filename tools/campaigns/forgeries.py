"""
What is shown as proved is true, whatever a host that answers everything makes of its answers.

A host alters, leaves out, doubles, joins or exchanges members of the documents of a transaction, of
its proofs, of blocks and of headers, in all answers of one kind. A trace is read from it and
verified, by paths or by block documents, with and without a block that the caller trusts; headers
are read and verified from both sources, and blocks are collected. In rows that are proved, what the
guide says is covered must be what the chain executed; a proof that is complete has all receipts,
and the verdict and the token transfers that there were, and no block is missing.
"""

from __future__ import annotations

import json
import random
import warnings
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import httpx
import pandas as pd

import ledgerkit as lk
from ledgerkit.localnet.worlds import open_world
from tests.local_transport import LocalTransport
from tools.campaigns._json_mutations import changed, places, value_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.localnet.world import World
    from tools.campaigns._campaign import Tally
    from tools.campaigns._json_mutations import Path

COUNT = 10_000
SMALL = 40
EXPECTED = ("complete", "incomplete", "refused", "blocks", "collected")
TRACES = ("EXPERIMENTAL_tx_status", "/v0/transactions")
VALIDATORS = "EXPERIMENTAL_validators_ordered"
PROOFS: dict[Literal["rpc", "documents"], tuple[str, ...]] = {
    "rpc": ("light_client_proof", "next_light_client_block", "block", VALIDATORS),
    "documents": ("/v0/block", "block", VALIDATORS),
}
HEADERS: dict[Literal["rpc", "documents"], tuple[str, ...]] = {
    "rpc": ("block", "block", VALIDATORS),
    "documents": ("/v0/block", "/v0/block", VALIDATORS),
}
MOST_OUTCOMES = 4  # of the transactions, so that a case takes little time
PROVED = ("block", "signed")
ROUNDED_NS = 256  # to which services that pass integers through JavaScript state times
# The columns of receipts to which an outcome and its block commit.
COVERED = "receiver_id predecessor_id signer_id block_hash block_height time".split()
COVERED += "gas_burnt tokens_burnt status logs".split()
MOVED = ["receipt_id", "asset", "sender_id", "receiver_id", "amount"]
# The columns of blocks and of their outcomes that are covered.
OF_BLOCKS = (
    "block_hash time author prev_height prev_hash epoch_id last_final_block n_chunks".split()
)
OF_BLOCKS += "chunks_included gas_price total_supply protocol_version".split()
OF_OUTCOMES = "block_height time receiver_id executor_id status success_value".split()
OF_OUTCOMES += "success_receipt_id receipt_ids logs gas_burnt tokens_burnt".split()


class Forger(LocalTransport):
    """
    A transport to a world that forges a member of all answers of one kind.

    Parameters
    ----------
    world
        The world.
    kind
        A method of JSON-RPC, or a part of the path.
    rng
        Decides which member, and how.
    """

    def __init__(self, world: World, kind: str, rng: random.Random) -> None:
        super().__init__(world)
        self.kind, self._rng = kind, rng
        self.path: Path | None = None  # of the member, chosen in the first answer
        self._forge: Callable[[Any], Any] = self._nothing

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the world's response, or a forged one."""
        if ".tgz" in request.url.path:  # documents are then read one by one
            return httpx.Response(404)
        response = super().handle_request(request)
        content = request.read()
        method = json.loads(content).get("method", "") if content else ""
        is_path = self.kind.startswith("/") and self.kind in request.url.path
        if response.status_code != 200 or not (self.kind == method or is_path):
            return response
        document = json.loads(response.read())
        subject = document.get("result") if method else document
        if subject is None:
            return response
        if self.path is None:
            self._choose(subject)
        try:
            forged = changed(subject, self.path or (), self._forge)
        except (KeyError, IndexError, TypeError, AttributeError):  # there is no such member
            return response
        body = {**document, "result": forged} if method else forged
        return httpx.Response(response.status_code, json=body)

    def _choose(self, subject: Any) -> None:
        """Choose a member, and what becomes of it."""
        every = places(subject)
        self.path = path = self._rng.choice(every)
        value = value_at(subject, path)
        namesakes = [p for p in every if p and path and p[-1] == path[-1] and p != path]
        other = value_at(subject, self._rng.choice(namesakes)) if namesakes else value
        ways = [lambda _: other, lambda _: other, self._altered]
        if isinstance(value, list) and value:
            at = self._rng.randrange(len(value))
            ways += [lambda v: v[:at] + v[at + 1 :], lambda v: [*v, v[at]]] * 2
        elif isinstance(value, dict) and value:
            name = self._rng.choice(list(value))
            objects = [
                each for each in map(partial(value_at, subject), every) if type(each) is dict
            ]
            another = self._rng.choice(objects)
            ways += [lambda v: {key: each for key, each in v.items() if key != name}] * 2
            ways += [lambda v: {**another, **v}, lambda v: {**v, **another}]
        self._forge = self._rng.choice(ways)

    @staticmethod
    def _nothing(value: Any) -> Any:
        return value

    def _altered(self, value: Any) -> Any:
        """Return a plausible value of the same type."""
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return value + 1
        if not isinstance(value, str):
            return None
        if value.isdecimal():
            return str(int(value) + 1)
        if value.startswith("EVENT_JSON:"):
            return value.replace("alice.near", "mallory.near").replace("1", "2")
        return "mallory.near" if value.endswith(".near") else value[1:] + value[:1]


class Truth:
    """What a world executed: its traces, blocks and outcomes, read from an honest host."""

    def __init__(self, world: World) -> None:
        with lk.connect("local", world=world, make_default=False) as ledger:
            self.traces = {
                (each.tx_hash, sender): trace
                for each in world.summary.transactions
                for sender in (each.signer_id, None)
                if len((trace := lk.trace(each.tx_hash, sender, ledger=ledger)).receipts)
                < MOST_OUTCOMES
            }
            self.shown = {key: shown(trace) for key, trace in self.traces.items()}
            self.heights = range(world.chain.genesis.height + 1, world.chain.final.height - 4)
            whole = self.heights.start, self.heights.stop
            self.blocks = rows_of(lk.blocks(*whole, ledger=ledger), OF_BLOCKS)
            with TemporaryDirectory() as out:
                run = lk.collect_blocks(*whole, "outcomes", out, progress=False, ledger=ledger)
                self.outcomes = rows_of(run.pandas("outcomes"), OF_OUTCOMES)
        self.hash_at = {height: row["block_hash"] for height, row in self.blocks.items()}


def rows_of(frame: pd.DataFrame, columns: list[str]) -> dict[Any, dict[str, Any]]:
    """Return the columns of each row, None where a value is missing, by what the row is about."""
    keys = frame["receipt_id" if "receipt_id" in frame else "block_height"].tolist()
    if "tx_hash" in frame:  # the rows of transactions have no receipt
        pairs = zip(keys, frame["tx_hash"].tolist(), strict=True)
        keys = [tx_hash if is_missing(key) else key for key, tx_hash in pairs]
    lists = [frame[name].tolist() for name in columns]
    values = ([None if is_missing(v) else v for v in row] for row in zip(*lists, strict=True))
    rows = (dict(zip(columns, row, strict=True)) for row in values)
    return dict(zip(keys, rows, strict=True))


def is_missing(value: Any) -> bool:
    """Return True for None, NA, NaN and NaT."""
    return value is None or value is pd.NA or value != value  # noqa: PLR0124 - as NaN is


def shown(trace: lk.Trace) -> tuple[dict[Any, Any], Any]:
    """Return the covered columns of receipts by id, and the tokens that events say moved."""
    transfers = trace.transfers
    tokens = transfers[(transfers["asset"] != "near") & (transfers["evidence"] == "event")]
    rows = rows_of(trace.receipts, COVERED)
    return rows, sorted(map(str, tokens[MOVED].to_dict("records")))


def wrong_rows(rows: dict[Any, Any], truth: dict[Any, Any]) -> list[str]:
    """List the rows that state something else than those of the same subjects, or of none."""
    wrong = []
    for key, row in rows.items():
        true = truth.get(key)
        names = [] if true is None else [name for name in row if is_other(row, true, name)]
        if true is None or names:
            wrong.append(f"{key} {names}: {row}")
    return wrong


def is_other(row: dict[str, Any], true: dict[str, Any], name: str) -> bool:
    """Return True if a value is stated, and wrong."""
    value = row[name]
    if value is None or value == true[name]:
        return False
    if name == "time" and abs((value - true[name]).value) <= ROUNDED_NS:
        return False
    # The system as the sender cannot be refuted: a refund burns as much as a transfer.
    return not (name in ("predecessor_id", "signer_id") and row["predecessor_id"] == "system")


class Traces:
    """Traces, verified by paths or by block documents."""

    def __init__(self, truth: Truth, rng: random.Random) -> None:
        self._truth = truth
        self._key, self._source = rng.choice(list(truth.traces)), rng.choice(list(PROOFS))
        last = int(truth.traces[self._key].receipts["block_height"].max())
        self._trusted = rng.choice([truth.hash_at[last + 5], None])
        self.kind = rng.choice([TRACES[self._key[1] is None], *PROOFS[self._source]])
        self.name = f"{self._key}, {self._source}, {self._trusted}"

    def check(self, ledger: lk.Ledger) -> tuple[str, list[str]]:
        """Verify the trace; return the result, and what is shown as proved and is not true."""
        trace = lk.trace(*self._key, ledger=ledger)
        proof = trace.verify(self._trusted, source=self._source)
        (rows, tokens), (true_rows, true_tokens) = shown(trace), self._truth.shown[self._key]
        levels = dict(zip(proof.rows["outcome_id"], proof.rows["proved"], strict=True))
        proved = {key: row for key, row in rows.items() if levels.get(key) in PROVED}
        wrong = wrong_rows(proved, true_rows)
        if not proof.is_complete:
            return "incomplete", wrong
        wrong += ["receipts"] if rows.keys() != true_rows.keys() else []
        true = self._truth.traces[self._key]
        wrong += [f"verdict {trace.verdict}"] if trace.verdict != true.verdict else []
        wrong += [f"tokens {tokens}"] if tokens != true_tokens else []
        return "complete", wrong


class Headers:
    """Headers of a few heights, verified from a node or from block documents."""

    def __init__(self, truth: Truth, rng: random.Random) -> None:
        self._truth, self._source = truth, rng.choice(list(HEADERS))
        self._start = rng.choice(truth.heights[:-3])
        self._stop = self._start + rng.choice((1, 2, 3))
        self.kind = rng.choice(HEADERS[self._source])
        self.name = f"blocks {self._start} to {self._stop}, {self._source}"

    def check(self, ledger: lk.Ledger) -> tuple[str, list[str]]:
        """Read the headers; return the result, and what is not true, or missing."""
        range_ = self._start, self._stop
        frame = lk.blocks(*range_, source=self._source, verify=True, ledger=ledger)
        rows = rows_of(frame, OF_BLOCKS)
        left_out = set(range(*range_)) & self._truth.blocks.keys() - rows.keys()
        return "blocks", [*wrong_rows(rows, self._truth.blocks), *map(str, left_out)]


class Collected(Headers):
    """Blocks and outcomes of a few heights, collected from block documents that are verified."""

    def __init__(self, truth: Truth, rng: random.Random) -> None:
        super().__init__(truth, rng)
        self.kind = rng.choice(PROOFS["documents"])
        self.name = f"collected {self.name}"

    def check(self, ledger: lk.Ledger) -> tuple[str, list[str]]:
        """Collect the blocks; return the result, and what is stored and not true, or missing."""
        range_, views = (self._start, self._stop), ["blocks", "outcomes"]
        with TemporaryDirectory() as out:
            run = lk.collect_blocks(*range_, views, out, verify=True, progress=False, ledger=ledger)
            errors = run.errors()
            rows = rows_of(run.pandas("blocks"), OF_BLOCKS)
            outcomes = rows_of(run.pandas("outcomes"), OF_OUTCOMES)
        failed = set(errors.loc[errors["kind"] != "skipped", "position"])
        left_out = set(range(*range_)) & self._truth.blocks.keys() - rows.keys() - failed
        left_out |= {
            key
            for key, true in self._truth.outcomes.items()
            if true["block_height"] in rows and key not in outcomes
        }
        wrong = wrong_rows(rows, self._truth.blocks) + wrong_rows(outcomes, self._truth.outcomes)
        return "collected" if rows else "refused", [*wrong, *map(str, left_out)]


CASES: tuple[type[Traces | Headers], ...] = (*[Traces] * 6, *[Headers] * 3, Collected)


def run(count: int, seed: int, tally: Tally) -> None:
    """Verify traces and blocks of the demo world through a host that forges."""
    world = open_world("demo")
    world.settle()
    world.advance(10)
    truth, rng = Truth(world), random.Random(seed)
    for number in range(count):
        case = rng.choice(CASES)(truth, rng)
        forger = Forger(world, case.kind, rng)
        with (
            warnings.catch_warnings(),
            lk.connect("local", transport=forger, make_default=False) as ledger,
        ):
            warnings.simplefilter("ignore")
            try:
                result, wrong = case.check(ledger)
            except lk.LedgerError:
                result, wrong = "refused", []
        tally.count(result)
        if wrong:
            place = f"case {number}, {case.name}, {case.kind} {forger.path}"
            tally.violate(f"seed {seed}, {place}: {'; '.join(wrong)[:600]}")
