"""
What a proof shows as proved is true, whatever a host that answers everything makes of its answers.

A host alters, leaves out, doubles or exchanges members of the documents of a transaction, of its
proofs, of blocks and of headers, in all answers of one kind. A trace is read from it and verified,
by paths or by block documents, with and without a block that the caller trusts. In rows that are
proved, what the guide says is covered must be what the chain executed; a proof that is complete has
all receipts, and the verdict and the token transfers that there were.
"""

from __future__ import annotations

import json
import random
import warnings
from typing import TYPE_CHECKING, Any, Literal

import httpx

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
SMALL = 150
EXPECTED = ("complete", "incomplete", "refused")
TRACES = ("EXPERIMENTAL_tx_status", "/v0/transactions")
PROOFS: dict[Literal["rpc", "documents"], tuple[str, ...]] = {
    "rpc": (
        *("light_client_proof", "next_light_client_block", "block"),
        "EXPERIMENTAL_validators_ordered",
    ),
    "documents": ("/v0/block", "block", "EXPERIMENTAL_validators_ordered"),
}
PROVED = ("block", "signed")
# The columns of receipts to which an outcome and its block commit.
COVERED = "receiver_id predecessor_id signer_id block_hash block_height time".split()
COVERED += "gas_burnt tokens_burnt status".split()
MOVED = ["receipt_id", "asset", "sender_id", "receiver_id", "amount"]


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
        response = super().handle_request(request)
        content = request.read()
        method = json.loads(content).get("method", "") if content else ""
        if self.kind != method and self.kind not in request.url.path:
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
            ways += [lambda v: {key: each for key, each in v.items() if key != name}] * 2
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


def shown(trace: lk.Trace) -> tuple[dict[Any, Any], Any]:
    """Return the covered columns of receipts by id, and the tokens that events say moved."""
    receipts = trace.receipts.set_index("receipt_id")[COVERED].astype(object)
    rows = receipts.where(receipts.notna(), None).to_dict("index")
    transfers = trace.transfers
    tokens = transfers[(transfers["asset"] != "near") & (transfers["evidence"] == "event")]
    return rows, sorted(map(str, tokens[MOVED].to_dict("records")))


def differences(trace: lk.Trace, proof: lk.Proof, truth: lk.Trace) -> list[str]:
    """List what is shown as proved and is not what the chain executed."""
    (rows, tokens), (true_rows, true_tokens) = shown(trace), shown(truth)
    levels = dict(zip(proof.rows["outcome_id"], proof.rows["proved"], strict=True))
    wrong = []
    for receipt_id, row in rows.items():
        true = true_rows.get(receipt_id)
        if levels.get(receipt_id) not in PROVED:
            continue
        names = [] if true is None else [n for n in COVERED if is_other(row, true, n)]
        if true is None or names:
            wrong.append(f"{receipt_id} {names}: {row}")
    if proof.is_complete:
        wrong += ["receipts"] if rows.keys() != true_rows.keys() else []
        wrong += [f"verdict {trace.verdict}"] if trace.verdict != truth.verdict else []
        wrong += [f"tokens {tokens}"] if tokens != true_tokens else []
    return wrong


def is_other(row: dict[str, Any], true: dict[str, Any], name: str) -> bool:
    """Return True if a value is stated, and wrong."""
    value = row[name]
    if value is None or value == true[name]:
        return False
    # The system as the sender cannot be refuted: a refund burns as much as a transfer.
    return not (name in ("predecessor_id", "signer_id") and row["predecessor_id"] == "system")


def run(count: int, seed: int, tally: Tally) -> None:
    """Verify traces of the demo world through a host that forges."""
    world = open_world("demo")
    world.settle()
    world.advance(10)
    executed = world.summary.transactions
    with lk.connect("local", world=world, make_default=False) as honest:
        truths = {
            (each.tx_hash, sender): lk.trace(each.tx_hash, sender, ledger=honest)
            for each in executed
            for sender in (each.signer_id, None)
        }
    trusted = str(world.chain.final.hash)
    rng = random.Random(seed)
    for number in range(count):
        key, source = rng.choice(list(truths)), rng.choice(list(PROOFS))
        anchor = rng.choice([trusted, None])
        kind = rng.choice([TRACES[key[1] is None], *PROOFS[source]])
        forger = Forger(world, kind, rng)
        with (
            warnings.catch_warnings(),
            lk.connect("local", transport=forger, make_default=False) as ledger,
        ):
            warnings.simplefilter("ignore")
            try:
                trace = lk.trace(*key, ledger=ledger)
                proof = trace.verify(anchor, source=source)
            except lk.LedgerError:
                tally.count("refused")
                continue
            wrong = differences(trace, proof, truths[key])
        tally.count("complete" if proof.is_complete else "incomplete")
        if wrong:
            place = f"case {number}, {key}, {source}, {kind} {forger.path}"
            tally.violate(f"seed {seed}, {place}: {'; '.join(wrong)[:600]}")
