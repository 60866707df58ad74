"""Archiving widgets: two embedded ledgers at once, and crashes in every place."""
# ruff: noqa: ARG002 - the standard names the arguments of a collection's methods

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest

import ledgerkit as lk
from ledgerkit import archiving, errors, progress
from ledgerkit.api.models.chain import NftMetadata, NftToken
from ledgerkit.archiving import Archive, Record, TokenReading, Widget, tokens
from ledgerkit.localnet import Contract, call, view
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import SecretKey
from ledgerkit.sending import verbs
from ledgerkit.transport.embedded import EmbeddedLedger
from tests.local_transport import LocalTransport, responding
from tests.loopback import Reply, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ledgerkit.ledger import Ledger
    from ledgerkit.localnet.world import World
    from ledgerkit.sending.signers import Signer

ROOT = Path(__file__).resolve().parents[2]
CLOCK = "return <p>12:00</p>;"
CLOCK_SHA256 = "8ab0028ead1b3d4a7ffbb9f413347aba08ab6674d7c3cfdec98c9239ae3ce4a0"
CLOCK_BLOCK = 180_000_013
TOKEN_ID = "widget-8ab0028ead1b"
STAMPS = "stamps.grace.near"
EXTRA = (
    '{"author_account_id":"heidi.near","widget_name":"Clock",'
    '"widget_path":"heidi.near/widget/Clock","source_contract_id":"social.near",'
    '"source_network":"localnet","socialdb_block_height":180000013,'
    f'"source_sha256":"{CLOCK_SHA256}"}}'
)
RECORD = msgspec.json.decode(EXTRA, type=Record)
TAKEN = ["done"] * 8
PLAN = archiving.plan_token(
    Widget("heidi.near", "Clock", CLOCK, CLOCK_BLOCK, "social.near", "localnet"), "alice.near"
)


class Crash(BaseException):
    """The process ends here."""


@dataclass
class Stage:
    """Two ledgers: heidi.near's widgets on one, a collection on the other."""

    source: Ledger
    target: Ledger
    collection: str = STAMPS
    start: int = 0

    def __post_init__(self) -> None:
        """Note where the demo's own story ends."""
        self.start = self.target.world.chain.head.height

    @property
    def signer(self) -> Signer:
        return self.signer_of("grace.near")

    def signer_of(self, account_id: str) -> Signer:
        """Let somebody sign on the target."""
        return lk.signer(account_id, self.target.world.keys()[account_id])

    def where(self) -> dict[str, Any]:
        """Name both ledgers and the collection."""
        return {"source": self.source, "target": self.target, "collection": self.collection}

    def archive(self, widget_name: str = "Clock", **options: Any) -> Archive:
        """Archive one of heidi.near's widgets for alice.near."""
        asked = {"receiver_id": "alice.near", "signer": self.signer, **self.where(), **options}
        return lk.archiving.archive_widget("heidi.near", widget_name, **asked)

    def steps(self, **options: Any) -> Iterator[Archive]:
        """Take the flow as `archive` does, step by step."""
        asked = {"receiver_id": "alice.near", "signer": self.signer, **self.where(), **options}
        return archiving.archive_steps("heidi.near", "Clock", **asked)

    def archive_with_change(self, text: str | None) -> Archive:
        """Archive the clock, and write another text before it is read again."""
        *_, last = map(partial(self._write_before_reading, text), self.steps())
        return last

    def _write_before_reading(self, text: str | None, archive: Archive) -> Archive:
        """Write a text when the widget is about to be read again."""
        if archive.step == "read_again":
            self.write({"Clock": text})
        return archive

    def write(self, widgets: dict[str, Any], wait_until: str = "FINAL") -> None:
        """Let heidi.near write widgets."""
        data = {"data": {"heidi.near": {"widget": widgets}}}
        key = self.source.world.keys()["heidi.near"]
        sent = verbs.call(
            "social.near",
            "set",
            data,
            deposit="0.1 NEAR",
            signer_id="heidi.near",
            key=key,
            wait_until=wait_until,
            ledger=self.source,
        )
        sent.raise_for_status()

    def mint(self, token_id: str, extra: Any, receiver_id: str = "alice.near") -> None:
        metadata = {"title": "by hand", "extra": extra}
        told = {"token_id": token_id, "receiver_id": receiver_id, "metadata": metadata}
        options: dict[str, Any] = {"deposit": "0.1 NEAR", "wait_until": "FINAL"}
        sent = verbs.call(
            self.collection, "nft_mint", told, key=self.signer, ledger=self.target, **options
        )
        sent.raise_for_status()

    def deploy(self, contract: type[Contract]) -> None:
        """Put another contract in the collection's place."""
        self.collection = f"{contract.__name__.lower()}.near"
        self.target.world.deploy(self.collection, contract)

    def supply(self) -> int:
        """Count the tokens of the collection."""
        world = self.target.world
        found = world.view(self.collection, "nft_total_supply", b"{}", world.chain.head)
        return int(json.loads(found.result))

    def sent(self) -> int:
        """Count the transactions of the target."""
        blocks = self.target.world.chain.blocks()
        return sum(len(chunk.transactions) for block in blocks for chunk in block.chunks)

    def token(self, token_id: str = TOKEN_ID) -> Any:
        return lk.view(self.collection, "nft_token", {"token_id": token_id}, ledger=self.target)

    def mints(self) -> list[bool]:
        """Tell of each mint that ran after the demo's own whether it succeeded."""
        world = self.target.world
        ran = [
            world.outcome(receipt.receipt_id)
            for receipt in world.receipts()
            if receipt.receiver_id == self.collection and _method(receipt) == "nft_mint"
        ]
        ours = [one for one in ran if one and one.block_height > self.start]
        return [type(one.status).__name__ != "Failure" for one in ours]


def _method(receipt: Any) -> str | None:
    actions = getattr(receipt, "actions", ())
    return next((a.method_name for a in actions if hasattr(a, "method_name")), None)


@contextmanager
def opened() -> Iterator[Stage]:
    """Open two worlds with different keys."""
    made = Stage(lk.connect("local"), lk.connect("local", seed=1))
    yield made
    made.source.close()
    made.target.close()
    lk.disconnect()


@pytest.fixture
def stage() -> Iterator[Stage]:
    """Open two ledgers for one test."""
    with opened() as made:
        yield made


@pytest.fixture(scope="module")
def shared() -> Iterator[Stage]:
    """Open two ledgers for tests that leave each other's tokens alone."""
    with opened() as made:
        yield made


# The flow -------------------------------------------------------------------------------


def test_a_widget_is_archived_on_another_network(stage: Stage) -> None:
    """The token's id, owner and metadata follow from the source on the other ledger."""
    assert hashlib.sha256(CLOCK.encode()).hexdigest() == CLOCK_SHA256
    found = stage.archive()
    assert (found.outcome, found.token_id, found.is_archived) == ("archived", TOKEN_ID, True)
    assert found.record == RECORD
    assert found.failure is None
    token = stage.token()
    assert token["owner_id"] == "alice.near"
    assert {name: told for name, told in token["metadata"].items() if told is not None} == {
        "title": "Clock",
        "description": "The source of heidi.near/widget/Clock, written in block 180000013",
        "copies": 1,
        "extra": EXTRA,
    }
    assert stage.mints() == [True]


def test_the_steps_are_told_as_a_frame(stage: Stage) -> None:
    """One row a step, in order: what it found, at which block, by which transaction."""
    found = stage.archive()
    steps = found.steps.set_index("step")
    assert list(steps.index) == list(archiving.STEPS)
    assert steps["state"].tolist() == TAKEN
    assert steps["detail"].tolist() == [
        "the NFT list of alice.near includes stamps.grace.near",
        "heidi.near/widget/Clock: 20 bytes, written in block 180000013",
        f"{TOKEN_ID}, from SHA-256 {CLOCK_SHA256}",
        f"{TOKEN_ID} does not exist yet",
        "heidi.near/widget/Clock is unchanged",
        "minted by grace.near",
        "owner alice.near and hash are as planned",
        "listed among the tokens of alice.near",
    ]
    assert found.submission is not None
    assert steps["tx_hash"].dropna().to_dict() == {"mint": str(found.submission.tx_hash)}
    assert steps["block_height"].isna().tolist()[:3] == [True, False, True]
    assert steps.loc["read_source", "block_height"] == 180_000_050  # the last final one
    assert steps.loc["read_again", "block_height"] == 180_000_052  # the head
    assert found.submission.trace is not None
    minted = int(found.submission.trace.receipts["block_height"].iloc[0])
    assert steps.loc["mint", "block_height"] == minted - 1  # the transaction's own block
    assert int(steps["block_height"]["token"]) >= minted


def test_one_row_tells_it_all(stage: Stage) -> None:
    """`to_frame` names token, widget, block, hash and transaction."""
    found = stage.archive()
    assert found.submission is not None
    assert found.to_frame().iloc[0].to_dict() == {
        "outcome": "archived",
        "contract_id": STAMPS,
        "token_id": TOKEN_ID,
        "receiver_id": "alice.near",
        "author_account_id": "heidi.near",
        "widget_name": "Clock",
        "widget_path": "heidi.near/widget/Clock",
        "source_contract_id": "social.near",
        "source_network": "localnet",
        "socialdb_block_height": CLOCK_BLOCK,
        "source_sha256": CLOCK_SHA256,
        "tx_hash": str(found.submission.tx_hash),
    }


def test_one_ledger_may_be_both(stage: Stage) -> None:
    """Source and target may be the same ledger."""
    stage.source = stage.target
    assert stage.archive().outcome == "archived"
    assert stage.token()["owner_id"] == "alice.near"
    assert lk.archiving.verify_archive(TOKEN_ID, **stage.where()).is_verified


def test_the_record_names_the_chain_and_the_database(stage: Stage) -> None:
    """The network is what the node says it is, whatever the ledger is called."""
    stage.source = lk.connect("local", world=open_world("demo", chain_id="testnet"))
    with pytest.raises(errors.UnknownAccountError, match=r"v1\.social08\.testnet"):
        stage.archive()
    found = stage.archive(social_contract_id="social.near")
    assert found.record is not None
    assert (found.record.source_network, found.record.source_contract_id) == (
        "testnet",
        "social.near",
    )
    assert lk.archiving.verify_archive(found, **stage.where()).is_verified


def test_nothing_is_signed_for_mainnet_unasked(stage: Stage) -> None:
    """A target that is mainnet needs allow_mainnet=True; without it nothing is minted."""
    stage.target = lk.connect("local", world=open_world("demo", seed=1, chain_id="mainnet"))
    with pytest.raises(errors.InvalidRequestError) as caught:
        stage.archive()
    assert caught.value.field == "allow_mainnet"
    assert stage.mints() == []
    assert stage.archive(allow_mainnet=True).outcome == "archived"


def test_words_and_prefix_are_the_callers(stage: Stage) -> None:
    """Prefix, title, description and copies stand in the token as given."""
    words: dict[str, Any] = {"title": "Uhr", "description": "", "copies": 7}
    found = stage.archive(token_prefix="uhr:", **words)
    assert found.token_id == "uhr:8ab0028ead1b"
    metadata = stage.token("uhr:8ab0028ead1b")["metadata"]
    assert {name: metadata[name] for name in words} == words


def test_any_text_is_hashed_as_utf8(stage: Stage) -> None:
    """The hash is over the source's UTF-8 bytes, of whatever script."""
    text = 'return <p>Ωρα 🕰️ \u0000 " \\</p>;' * 20
    stage.write({"Ora.v2-_": text})
    found = stage.archive("Ora.v2-_")
    assert found.outcome == "archived"
    assert found.record is not None
    assert found.record.source_sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert found.token_id == f"widget-{found.record.source_sha256[:12]}"


def test_already_archived_mints_nothing(stage: Stage) -> None:
    """Taken again the flow says so, and sends nothing."""
    stage.archive()
    sent, supply = stage.sent(), stage.supply()
    again = stage.archive()
    assert again.outcome == "already_archived"
    assert again.is_archived
    assert again.submission is None
    assert again.record == RECORD
    not_taken = ["read_again", "mint"]
    steps = again.steps.set_index("step")["state"]
    assert steps[steps != "done"].to_dict() == dict.fromkeys(not_taken, "not_taken")
    assert (stage.sent(), stage.supply()) == (sent, supply)
    assert stage.mints() == [True]


def test_two_at_once_make_one_token(stage: Stage) -> None:
    """Two flows in two threads mint one token; both see it archived."""
    found: list[Archive] = []
    threads = [Thread(target=lambda: found.append(stage.archive())) for _ in range(2)]
    supply = stage.supply()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    outcomes = sorted(one.outcome for one in found)
    assert set(outcomes) <= {"archived", "already_archived"}
    assert outcomes.count("archived") == 1
    assert stage.supply() == supply + 1
    assert stage.mints().count(True) == 1


# On the way -----------------------------------------------------------------------------


def states(found: Archive) -> list[str]:
    return found.steps["state"].tolist()


def test_each_step_is_told_when_it_begins(stage: Stage) -> None:
    """Pending, running, done, one after the other; the mint has its hash once it is sent."""
    told = list(stage.steps())
    moments = [*range(6), 5, 6, 7]  # the mint is told twice: when it begins, and once it is sent
    for at, now in zip(moments, told[:-1], strict=True):
        assert states(now) == [*["done"] * at, "running", *["pending"] * (7 - at)]
        assert (now.outcome, now.step) == ("under_way", archiving.STEPS[at])
        assert not now.is_archived
    assert [now.token_id for now in told] == [None] * 3 + [TOKEN_ID] * 7
    looking_up, begun, sent, last = told[3], told[5], told[6], told[-1]
    assert looking_up.steps["detail"][2] == f"{TOKEN_ID}, from SHA-256 {CLOCK_SHA256}"
    assert looking_up.steps["block_height"][1] == 180_000_050
    assert repr(looking_up) == (
        f"<Archive heidi.near/widget/Clock as {TOKEN_ID} of {STAMPS}: under_way, look_up>"
    )
    assert archiving.MEANWHILE["under_way"] in looking_up._repr_html_()
    assert begun.steps["detail"][5] == f"minting {TOKEN_ID}"
    assert begun.submission is None
    assert sent.steps["detail"][5] == "sent by grace.near, stage included"
    assert last.submission is not None
    assert sent.steps["tx_hash"][5] == str(last.submission.tx_hash)
    assert (last.outcome, last.step, states(last)) == ("archived", None, TAKEN)
    assert stage.mints() == [True]


def test_steps_that_are_passed_over_are_not_pending(stage: Stage) -> None:
    """A token that is there needs no minting, and the steps say so at once."""
    stage.archive()
    told = list(stage.steps())
    assert [now.step for now in told] == [*archiving.STEPS[:4], "token", "owner_tokens", None]
    assert states(told[4]) == [*["done"] * 4, *["not_taken"] * 2, "running", "pending"]
    assert told[4].way_back().startswith(f"Token {TOKEN_ID} already existed.")


def test_a_step_that_could_not_be_asked_has_failed(stage: Stage) -> None:
    """The reason stands beside it, then the error is raised."""
    steps = stage.steps(collection="counter.near")
    last = next(now for now in steps if now.outcome == "broke_off")
    with pytest.raises(errors.ContractMethodNotFoundError) as caught:
        next(steps)
    assert (last.outcome, last.step) == ("broke_off", "look_up")
    assert states(last) == [*["done"] * 3, "failed", *["not_taken"] * 4]
    assert last.steps["detail"][3] == caught.value.sentence
    assert archiving.MEANWHILE["broke_off"] in last._repr_html_()


STOPS = {
    "receiver_view": (0, "Nothing was minted. Archive the widget again to finish."),
    "read_again": (0, "Nothing was minted. Archive the widget again to finish."),
    "mint": (0, f"Token {TOKEN_ID} may have been minted."),
    "mint, sent": (1, f"Token {TOKEN_ID} may have been minted by transaction "),
    "token": (1, f"Token {TOKEN_ID} was minted by transaction "),
    "owner_tokens": (1, f"Token {TOKEN_ID} was minted by transaction "),
}


@pytest.mark.parametrize("place", STOPS)
def test_who_asks_no_further_stops_the_flow_and_loses_no_mint(stage: Stage, place: str) -> None:
    """It says what there is of the token; taken again, the flow ends with that very one."""
    step, _, is_sent = place.partition(", ")
    minted, sentence = STOPS[place]
    supply = stage.supply()
    steps = stage.steps()
    for now in steps:
        if now.step == step and (now.submission is not None or not is_sent):
            break
    del steps
    assert now.way_back().startswith(sentence)
    stage.target.world.settle()
    assert stage.supply() == supply + minted
    assert stage.archive().outcome == ("already_archived" if minted else "archived")
    assert stage.supply() == supply + 1
    assert stage.mints() == [True]


def test_an_interrupt_says_what_there_is_of_the_token(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C after the mint was sent: its transaction, and how to go on."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(lk.types.Submission, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt) as caught:
            stage.archive()
    (told,) = caught.value.__notes__
    assert told.startswith(f"Token {TOKEN_ID} may have been minted by transaction ")
    assert told.endswith("an existing token is found, and not minted twice.")
    assert stage.archive().outcome == "already_archived"
    assert stage.mints().count(True) == 1


def test_a_notebook_shows_how_far_the_flow_is(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that tells each step, as it does of a transaction that is followed."""
    lines: list[str] = []

    def show(_: progress.Line, text: str | Callable[[], str]) -> None:
        lines.append(text if isinstance(text, str) else text())

    monkeypatch.setattr(progress.Line, "show", show)
    stage.archive()
    ours = [line for line in lines if line.startswith("Archive ")]
    assert [line.rpartition(", ")[2] for line in ours[:-1]] == [
        *archiving.STEPS[:6],
        *archiving.STEPS[5:],
    ]
    assert ours[-1].endswith(": archived")


def test_options_are_those_of_the_verb(stage: Stage) -> None:
    """What is malformed or unknown is refused at once, before a step is asked for."""
    with pytest.raises(errors.InvalidRequestError, match="copies"):
        stage.steps(copies=0)
    with pytest.raises(TypeError, match="coppies"):
        stage.steps(coppies=1)
    *_, last = stage.steps(token_prefix="uhr:", title="Uhr")
    assert last.token_id == "uhr:8ab0028ead1b"


# Outcomes -------------------------------------------------------------------------------


@pytest.mark.parametrize("widget_name", ["Nope", "clock", "Gone", "Folder"])
def test_a_missing_widget(stage: Stage, widget_name: str) -> None:
    """No such name, another case, a deleted one, or one with parts alone: there is none."""
    stage.write({"Gone": "x", "Folder": {"part": "x"}})
    stage.write({"Gone": None})
    found = stage.archive(widget_name)
    assert (found.outcome, found.token_id, found.record) == ("missing_widget", None, None)
    assert not found.is_archived
    assert found.steps["state"].tolist() == ["done", "stopped", *["not_taken"] * 6]
    told = f"heidi.near/widget/{widget_name} does not exist at the last final block"
    assert found.steps["detail"].iloc[1] == told
    assert stage.mints() == []


@pytest.mark.parametrize("before", [None, "old"])
def test_what_was_written_just_now_is_waited_for(stage: Stage, before: str | None) -> None:
    """The source is read when it is final, a new widget's and a changed one's."""
    if before is not None:
        stage.write({"Fresh": before})
    stage.write({"Fresh": "new"}, wait_until="EXECUTED_OPTIMISTIC")
    found = stage.archive("Fresh")
    assert found.outcome == "archived"
    assert found.record is not None
    assert found.record.source_sha256 == hashlib.sha256(b"new").hexdigest()


def test_what_does_not_become_final_is_not_archived(stage: Stage) -> None:
    """A new widget is still missing then, and a changed one still changing."""
    stage.source.world.hold_finality()
    stage.write({"Fresh": "new", "Clock": "new"}, wait_until="EXECUTED_OPTIMISTIC")
    found = stage.archive("Fresh")
    assert found.outcome == "missing_widget"
    told = "heidi.near/widget/Fresh does not exist at the last final block"
    assert found.steps["detail"].iloc[1] == told
    assert stage.archive("Clock").outcome == "source_changed"
    assert stage.mints() == []


def test_an_empty_source(stage: Stage) -> None:
    """A widget without a character is no archive's worth, and is told from a missing one."""
    stage.write({"Empty": ""})
    found = stage.archive("Empty")
    assert found.outcome == "empty_source"
    assert found.steps["detail"].iloc[1] == "heidi.near/widget/Empty is empty"
    assert stage.mints() == []


@pytest.mark.parametrize(
    ("text", "told"),
    [("return <p>13:00</p>;", "has changed"), (None, "was deleted"), ("", "has changed")],
)
def test_a_source_that_changes_meanwhile(stage: Stage, text: str | None, told: str) -> None:
    """What was written, deleted or emptied after the first reading is seen before minting."""
    found = stage.archive_with_change(text)
    assert found.outcome == "source_changed"
    assert found.steps["state"].tolist() == [*["done"] * 4, "stopped", *["not_taken"] * 3]
    assert found.steps["detail"].iloc[4] == f"heidi.near/widget/Clock {told}"
    assert stage.mints() == []


def test_the_same_text_written_again_is_no_change(stage: Stage) -> None:
    """The recorded block still holds the recorded source."""
    assert stage.archive_with_change(CLOCK).outcome == "archived"
    assert stage.token()["metadata"]["extra"] == EXTRA


def test_a_mint_that_fails(stage: Stage) -> None:
    """A deposit that pays for too few bytes: the outcome, the contract's reason, no token."""
    found = stage.archive(deposit="1 yocto")
    assert found.outcome == "mint_failed"
    assert isinstance(found.failure, errors.ReceiptFailedError)
    assert "to cover storage" in str(found.failure)
    assert found.submission is not None
    assert found.submission.fully_succeeded is False
    steps = found.steps.set_index("step")
    assert steps["state"].tolist() == [*["done"] * 5, "stopped", *["not_taken"] * 2]
    assert str(steps["detail"]["mint"]).startswith("nothing was minted: ")
    assert steps.loc["mint", "tx_hash"] == str(found.submission.tx_hash)
    assert stage.token() is None
    assert stage.archive().outcome == "archived"


def test_a_mint_that_is_refused(stage: Stage) -> None:
    """A signer without NEAR: the ledger's typed refusal is the failure."""
    found = stage.archive(signer=stage.signer_of("kate.near"))
    assert found.outcome == "mint_failed"
    assert isinstance(found.failure, errors.InvalidTransactionError)
    assert found.failure.variant == "NotEnoughBalance"
    assert found.submission is None
    assert stage.mints() == []


class Silent(Contract):
    """A collection that forgets what it mints."""

    @call(payable=True)
    def nft_mint(self, token_id: str, receiver_id: str, metadata: dict[str, Any]) -> None:
        """Take it, and do nothing."""

    @view
    def nft_token(self, token_id: str) -> None:
        """Know of none."""

    @view
    def nft_tokens_for_owner(self, account_id: str, from_index: str, limit: int) -> list[Any]:
        return []


class Late(Silent):
    """A collection that tells a token some blocks after it was minted."""

    blocks = 6

    @call(payable=True)
    def nft_mint(self, token_id: str, receiver_id: str, metadata: dict[str, Any]) -> None:
        token = {"token_id": token_id, "owner_id": receiver_id, "metadata": metadata}
        kept = {"token": token, "height": self.vm.block_height}
        self.vm.storage_write(b"kept", json.dumps(kept).encode())

    @view
    def nft_token(self, token_id: str) -> Any:
        """Tell it once it is old enough."""
        kept = json.loads(self.vm.storage_read(b"kept") or b'{"token": null, "height": 0}')
        return kept["token"] if self.vm.block_height >= kept["height"] + self.blocks else None

    @view
    def nft_tokens_for_owner(self, account_id: str, from_index: str, limit: int) -> list[Any]:
        """List it with the others of its owner, as `nft_token` tells it."""
        kept = self.nft_token("")
        return [kept] if kept and from_index == "0" else []


class Unlisted(Late):
    """A collection whose lists are empty."""

    blocks = 0

    @view
    def nft_tokens_for_owner(self, account_id: str, from_index: str, limit: int) -> list[Any]:
        return []


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let two blocks come in each pause, and note how long it was."""
    noted: list[float] = []

    def wait_for_block(ledger: Ledger, seconds: float) -> None:
        noted.append(seconds)
        ledger.world.advance(2)

    monkeypatch.setattr(tokens, "broadcast", SimpleNamespace(wait_for_block=wait_for_block))
    return noted


def test_a_token_that_does_not_appear(stage: Stage, pauses: list[float]) -> None:
    """Five attempts, a second apart; then the outcome says so."""
    stage.deploy(Silent)
    found = stage.archive()
    assert found.outcome == "token_not_appearing"
    assert pauses == [1.0] * 4
    assert found.submission is not None
    assert found.submission.fully_succeeded is True
    assert found.steps["detail"].iloc[6] == f"{TOKEN_ID} did not appear in 5 attempts"


def test_a_token_that_appears_late(stage: Stage, pauses: list[float]) -> None:
    """It is waited for, no longer than needed."""
    stage.deploy(Late)
    assert stage.archive().outcome == "archived"
    assert 1 <= len(pauses) <= 3


def test_a_token_that_is_not_listed(stage: Stage, pauses: list[float]) -> None:
    """What nft_token tells and nft_tokens_for_owner does not has not appeared."""
    stage.deploy(Unlisted)
    found = stage.archive()
    assert found.outcome == "token_not_appearing"
    assert found.steps["state"].tolist() == [*["done"] * 7, "stopped"]
    assert found.steps["detail"].iloc[7] == "not listed among the tokens of alice.near"
    assert pauses == [1.0] * 4


def test_a_long_list_is_read_to_its_end(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Page after page, also where a contract panics behind the last one."""
    monkeypatch.setattr(tokens, "_PAGE", 1)
    assert stage.archive().outcome == "archived"  # alice.near has another one before it
    plan = replace(PLAN, token_id="nowhere")
    monkeypatch.setattr(tokens, "ATTEMPTS", 1)
    assert not archiving.owner_has(plan, STAMPS, target=stage.target)


def test_another_owner_is_not_archived(stage: Stage) -> None:
    """A source has one token; who asks for it for somebody else is told whose it is."""
    stage.archive()
    found = stage.archive(receiver_id="bob.near")
    assert (found.outcome, found.submission) == ("token_differs", None)
    assert found.steps["detail"].iloc[6] == "its owner is alice.near, not bob.near"


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        (None, "unknown"),
        ("a picture", "unknown"),
        (EXTRA.replace("8ab0028ead1b3d4a", "8ab0028ead1b0000"), "8ab0028ead1b0000"),
    ],
)
def test_another_source_is_not_archived(stage: Stage, extra: str | None, told: str) -> None:
    """Whoever took the id first with something else has not archived the widget."""
    stage.mint(TOKEN_ID, extra)
    found = stage.archive()
    assert (found.outcome, found.submission) == ("token_differs", None)
    assert f"its source_sha256 is {told}" in found.steps["detail"].iloc[6]


def test_no_collection_is_an_error(stage: Stage) -> None:
    """A contract that knows no tokens can't be asked; that is no outcome."""
    with pytest.raises(errors.ContractMethodNotFoundError) as caught:
        stage.archive(collection="counter.near")
    told = "archive_widget broke off; steps done: receiver_view, read_source, token_id."
    assert caught.value.__notes__ == [
        f"{told} Nothing was minted. Archive the widget again to finish."
    ]


def test_a_host_that_fails_is_an_error(stage: Stage) -> None:
    """Not being able to ask is never taken for an answer."""
    stage.source.faults.add("status=401")
    with pytest.raises(errors.AuthError):
        stage.archive()
    stage.source.faults.clear()
    assert stage.archive().outcome == "archived"


# Crashes --------------------------------------------------------------------------------


class Crashing(EmbeddedLedger):
    """A way to a world on which something ends: at one request, before or after it arrives."""

    def __init__(
        self,
        world: World,
        count: list[int],
        crash_at: int,
        place: str,
        end: Callable[[], BaseException] = Crash,
    ) -> None:
        super().__init__(world)
        self.count, self.crash_at, self.place, self.end = count, crash_at, place, end

    def open(self, sleep: Any) -> Any:
        connections: Any = super().open(sleep)
        send = connections.send

        async def send_or_crash(request: object) -> object:
            self.count[0] += 1
            is_now = self.count[0] == self.crash_at
            if is_now and self.place == "before":
                raise self.end()
            answer = await send(request)
            if is_now:
                raise self.end()
            return answer

        connections.send = send_or_crash
        return connections


def connect(source: Any) -> lk.Ledger:
    """Connect to what answers in place of hosts, with one retry."""
    return lk.connect(transport=source, retries=lk.RetryPolicy(attempts=2))


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_crash_at_any_request_is_finished_by_the_next_run(stage: Stage, place: str) -> None:
    """Wherever a process ends between two requests, there is one token in the end."""
    crashes, outcomes = 0, []
    for crash_at in range(1, 100):
        prefix, count, supply = f"{place}-{crash_at}-", [0], stage.supply()
        ways = [
            connect(Crashing(one.world, count, crash_at, place))
            for one in (stage.source, stage.target)
        ]
        try:
            stage.archive(source=ways[0], target=ways[1], token_prefix=prefix)
        except Crash:
            crashes += 1
        lk.disconnect()
        again = stage.archive(token_prefix=prefix)
        outcomes.append(again.outcome)
        assert stage.supply() == supply + 1
        assert stage.token(prefix + "8ab0028ead1b")["owner_id"] == "alice.near"
        if count[0] < crash_at:
            break
    assert crashes >= 10
    assert outcomes == sorted(outcomes, reverse=True)  # archived as long as none was sent
    assert set(outcomes) == {"archived", "already_archived"}
    ran = stage.mints()
    assert ran.count(True) == len(outcomes)
    assert ran.count(False) <= outcomes.count("already_archived")


def test_a_mint_still_under_way_is_not_doubled(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash while the mint waits for a block: the second mint fails, and the token counts."""
    supply = stage.supply()

    def interrupted(*args: Any, **options: Any) -> Any:
        verbs.call(*args, **{**options, "wait_until": "NONE"})
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(tokens, "verbs", SimpleNamespace(call=interrupted))
        with pytest.raises(Crash):
            stage.archive()
    assert stage.supply() == supply
    assert stage.target.world.is_busy
    again = stage.archive()
    assert again.outcome == "already_archived"
    assert stage.mints() == [True, False]
    assert stage.supply() == supply + 1
    assert isinstance(again.failure, errors.ReceiptFailedError)
    mint = again.steps.set_index("step").loc["mint"]
    assert mint["state"] == "done"
    assert mint["detail"].startswith("an earlier mint was first: ")


# Verifying ------------------------------------------------------------------------------


def test_an_archive_is_verified_at_its_block(stage: Stage) -> None:
    """The source is read where the token says, also after the widget was written anew."""
    found = stage.archive()
    stage.write({"Clock": "return <p>13:00</p>;"})
    stage.write({"Clock": None})
    for token in (found, TOKEN_ID):
        checked = lk.archiving.verify_archive(token, **stage.where())
        assert (checked.verdict, checked.is_verified) == ("verified", True)
        assert checked.record == RECORD
        assert checked.found_sha256 == CLOCK_SHA256


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"source_sha256": "0" * 64}, "source_differs"),
        ({"socialdb_block_height": CLOCK_BLOCK - 1}, "source_missing"),
        ({"widget_name": "Nope", "widget_path": "heidi.near/widget/Nope"}, "source_missing"),
        ({"widget_name": "Tide", "widget_path": "heidi.near/widget/Tide"}, "source_missing"),
        ({"widget_path": "heidi.near/widget/Tide"}, "not_an_archive"),
        ({"widget_name": "*", "widget_path": "heidi.near/widget/*"}, "not_an_archive"),
        ({"author_account_id": "HEIDI", "widget_path": "HEIDI/widget/Clock"}, "not_an_archive"),
        ({"source_contract_id": "<b>"}, "not_an_archive"),
        ({"socialdb_block_height": -1}, "not_an_archive"),
        ({"socialdb_block_height": 2**64}, "not_an_archive"),
        ({"socialdb_block_height": "180000013"}, "not_an_archive"),
        ({"source_sha256": None}, "not_an_archive"),
    ],
)
def test_a_record_that_does_not_hold(shared: Stage, change: dict[str, Any], verdict: str) -> None:
    """A wrong hash, block or name is found out; what is no record is said to be none."""
    token_id = f"forged {change}"
    shared.mint(token_id, json.dumps(json.loads(EXTRA) | change))
    checked = lk.archiving.verify_archive(token_id, **shared.where())
    assert (checked.verdict, checked.is_verified) == (verdict, False)
    assert (checked.record is None) == (verdict == "not_an_archive")


@pytest.mark.parametrize("extra", [None, "", "null", "[]", '{"a":', "[" * 5000, "7"])
def test_what_is_no_record(extra: Any) -> None:
    """Whatever other collections keep in `extra` is no archive's record, and no error."""
    assert archiving.parse_record(extra) is None
    token = NftToken("x", "alice.near", NftMetadata(extra=extra))
    assert archiving.differences(PLAN, token) == [
        f"its source_sha256 is unknown, not {CLOCK_SHA256}"
    ]


def test_a_token_that_is_not_there(stage: Stage) -> None:
    """It is told from one that is no archive."""
    assert lk.archiving.verify_archive("nope", **stage.where()).verdict == "no_such_token"
    assert lk.archiving.verify_archive("17", **stage.where()).verdict == "not_an_archive"


def test_another_network_can_not_verify(stage: Stage) -> None:
    """A source of testnet is not looked for elsewhere."""
    stage.mint("of-testnet", EXTRA.replace('"localnet"', '"testnet"'))
    with pytest.raises(errors.InvalidRequestError) as caught:
        lk.archiving.verify_archive("of-testnet", **stage.where())
    assert "'localnet' is not valid: expected a ledger of testnet" in str(caught.value)


def test_what_was_never_archived_can_not_be_verified(stage: Stage) -> None:
    """An archive without a token has nothing to check."""
    with pytest.raises(errors.InvalidRequestError, match="token None"):
        lk.archiving.verify_archive(stage.archive("Nope"), **stage.where())


def test_a_host_that_forgot_the_block(stage: Stage) -> None:
    """A host that keeps no old states is no proof against the source; an archival one knows."""
    found = stage.archive()
    short = {"archival": False, "epoch_length": 5, "epochs_kept": 2}
    young = open_world("demo", **short)
    with over_http(young) as regular, over_http(stage.source.world) as archival:
        urls: dict[str, Any] = {"rpc_url": regular, "api_url": f"{regular}/api"}
        alone = lk.connect("regular", **urls)
        with pytest.raises(errors.GarbageCollectedBlockError):
            lk.archiving.verify_archive(found, **{**stage.where(), "source": alone})
        helped = lk.connect("helped", archival_rpc_url=archival, **urls)
        assert lk.archiving.verify_archive(found, **{**stage.where(), "source": helped}).is_verified
        alone.close()
        helped.close()


# Over HTTP ------------------------------------------------------------------------------


@contextmanager
def over_http(world: World, seen: Callable[[bytes], object] = len) -> Iterator[str]:
    """Put a world behind a socket of this machine; `seen` hears of each request it answered."""
    respond = responding(LocalTransport(world))

    def answer(method: str, path: str, headers: Any, body: bytes) -> Reply:
        reply = respond(method, path, headers, body)
        seen(body)
        return reply

    with serve(answer) as server:
        yield server.url


SCRIPT = """
import sys
import ledgerkit as lk
one, other = sys.argv[1:]
source = lk.connect("one", rpc_url=one, api_url=f"{one}/api")
target = lk.connect("other", rpc_url=other, api_url=f"{other}/api")
where = {"source": source, "target": target, "collection": "stamps.grace.near"}
options = where | {"signer": lk.signer()}
archive = lk.archiving.archive_widget("heidi.near", "Clock", "alice.near", **options)
print(archive.outcome)
"""


def test_a_process_that_is_killed_while_it_mints(stage: Stage) -> None:
    """Killed with its mint on the way; a new process finds the token and finishes the job."""
    supply = stage.supply()
    running: list[subprocess.Popen[str]] = []
    variables = {
        "LEDGERKIT_ACCOUNT_ID": "grace.near",
        "LEDGERKIT_SECRET_KEY": stage.target.world.keys()["grace.near"],
    }

    def kill(body: bytes) -> None:
        if b'"send_tx"' in body and len(running) == 1:
            running[0].kill()

    def run() -> tuple[int, str]:
        words = [sys.executable, "-c", SCRIPT, one, other]
        process = subprocess.Popen(
            words, cwd=ROOT, env=os.environ | variables, stdout=subprocess.PIPE, text=True
        )
        running.append(process)
        printed, _ = process.communicate(timeout=300)
        return process.returncode, printed.strip()

    with (
        over_http(stage.source.world) as one,
        over_http(stage.target.world, seen=kill) as other,
    ):
        assert run() == (-signal.SIGKILL, "")
        assert run() == (0, "already_archived")
    assert stage.supply() == supply + 1
    assert stage.mints().count(True) == 1


# Dropped transactions -------------------------------------------------------------------


def test_a_mint_that_is_lost_for_good(stage: Stage) -> None:
    """When its time to be followed is over, the token has not appeared; the next run mints it."""
    stage.target.world.drop_transactions(10**6)
    found = stage.archive(timeout_s=0.2)
    assert (found.outcome, found.failure) == ("token_not_appearing", None)
    assert found.submission is not None
    assert found.submission.fully_succeeded is None
    assert found.steps["detail"].iloc[5] == "sent by grace.near, stage in_mempool"
    stage.target.world.drop_transactions(0)
    assert stage.archive().outcome == "archived"
    assert stage.mints() == [True]


def test_a_mint_that_was_overtaken(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mint whose nonce another transaction passed has failed, as dropped; the next one mints."""

    def overtaken(*args: Any, **options: Any) -> Any:
        stage.target.world.drop_transactions(1)
        sent = verbs.call(*args, **{**options, "wait_until": "NONE"})
        own: dict[str, Any] = {"key": stage.signer, "ledger": stage.target}
        verbs.transfer("bob.near", "1 yocto", wait_until="FINAL", **own)
        return sent.wait("FINAL", 20)

    with monkeypatch.context() as patch:
        patch.setattr(tokens, "verbs", SimpleNamespace(call=overtaken))
        found = stage.archive()
    assert found.outcome == "mint_failed"
    assert isinstance(found.failure, errors.DroppedError)
    assert "nonce overtaken" in str(found.failure)
    assert found.steps["state"].iloc[5] == "stopped"
    assert stage.archive().outcome == "archived"
    assert stage.mints() == [True]


# Arguments ------------------------------------------------------------------------------


@pytest.fixture
def unasked() -> Iterator[SimpleNamespace]:
    """Let every request fail the test."""

    class Silence(httpx.BaseTransport):
        """Nobody to ask."""

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            pytest.fail(f"asked {request.url} {request.content!r}")

    signer = lk.signer("grace.near", SecretKey.generate())
    silent = lk.connect("nowhere", transport=Silence())
    yield SimpleNamespace(signer=signer, source=silent, target=silent)
    lk.disconnect()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("author_account_id", "Heidi.near"),
        ("widget_name", "*"),
        ("widget_name", "x" * 257),
        ("widget_name", 7),
        ("receiver_id", "a"),
        ("collection", "no collection"),
        ("deposit", "0.5 yocto"),
        ("token_prefix", "x" * 65),
        ("token_prefix", "a\nb"),
        ("title", 7),
        ("description", b"x"),
        ("copies", 0),
        ("social_contract_id", "Social"),
        ("signer", "alice.near"),
        ("timeout_s", 0),
        ("allow_mainnet", "yes"),
        ("source", "testnet"),
        ("target", 7),
    ],
)
def test_bad_input_is_refused_before_anything_is_asked(
    unasked: SimpleNamespace, field: str, value: Any
) -> None:
    """The sentence names the field and the rule; no request was made, nothing was signed."""
    asked: dict[str, Any] = {
        "author_account_id": "heidi.near",
        "widget_name": "Clock",
        "receiver_id": "alice.near",
        "source": unasked.source,
        "target": unasked.target,
        "collection": STAMPS,
        "signer": unasked.signer,
        field: value,
    }
    with pytest.raises(errors.InvalidRequestError) as caught:
        lk.archiving.archive_widget(**asked)
    assert caught.value.field == ("ledger" if field in ("source", "target") else field)
    assert caught.value.rule


class Database(Contract):
    """A social database with any answer."""

    answer: Any = None

    @view
    def get(self, keys: list[str], options: dict[str, bool]) -> Any:
        return self.answer


def read_from(ledger: Ledger, answer: Any) -> tuple[str, int] | None:
    """Read a widget from a database with this answer: its source, and its block."""
    Database.answer = answer
    options: dict[str, Any] = {"source": ledger, "social_contract_id": "db.near"}
    widget = archiving.read_widget("a.near", "X", **options)
    return None if widget is None else (widget.source, widget.socialdb_block_height)


def test_the_database_of_a_network_may_be_unknown() -> None:
    """The database has to be named on a network where it is not known."""
    ledger = lk.connect("local", world=open_world("demo", chain_id="betanet"))
    with pytest.raises(errors.InvalidRequestError, match="not known for betanet"):
        archiving.read_widget("heidi.near", "Clock", source=ledger)
    options: dict[str, Any] = {"source": ledger, "social_contract_id": "social.near"}
    assert archiving.read_widget("heidi.near", "Clock", **options) is not None
    lk.disconnect()


def test_the_block_is_the_one_beside_the_text(stage: Stage) -> None:
    """A widget's block is its own text's, never its parent's; without a text there is none."""
    leaves: list[tuple[Any, tuple[str, int] | None]] = [
        ({}, None),
        ({":block": 9}, None),
        ({"a.near": {}}, None),
        ({"a.near": {"widget": {"X": None}}}, None),
        ({"a.near": {"widget": {"X": {"": None, ":block": 7}}}}, None),
        ({"a.near": {"widget": {"X": {"": {"": None, ":block": 7}, ":block": 8}}}}, None),
        ({"a.near": {"widget": {"X": {"part": {"": "x", ":block": 7}, ":block": 8}}}}, None),
        ({"a.near": {"widget": {"X": {"": "", ":block": 7}}}}, ("", 7)),
        ({"a.near": {"widget": {"X": {"": "x", ":block": 7}, ":block": 9}}}, ("x", 7)),
        ({"a.near": {"widget": {"X": {"": {"": "x", ":block": 7}, ":block": 8}}}}, ("x", 7)),
    ]
    stage.source.world.deploy("db.near", Database)
    for answer, leaf in leaves:
        assert read_from(stage.source, answer) == leaf


def test_a_database_that_answers_otherwise(stage: Stage) -> None:
    """No object on the way, no text or no block: the answer is not as documented."""
    answers: list[Any] = [
        None,
        [],
        {"a.near": 7},
        {"a.near": {"widget": {"X": "x"}}},
        {"a.near": {"widget": {"X": {"": "x"}}}},
        {"a.near": {"widget": {"X": {"": 7, ":block": 7}}}},
        {"a.near": {"widget": {"X": {"": "x", ":block": True}}}},
        {"a.near": {"widget": {"X": {"": "x", ":block": "7"}}}},
    ]
    stage.source.world.deploy("db.near", Database)
    for answer in answers:
        with pytest.raises(errors.DecodeError) as caught:
            read_from(stage.source, answer)
        assert "get of db.near" in str(caught.value.request)


def test_steps_can_be_taken_one_by_one(stage: Stage) -> None:
    """The functions of the steps do by hand what the flow does."""
    place: dict[str, Any] = {"collection": STAMPS, "target": stage.target}
    held = archiving.receiver_view("uma.near", **place)
    assert held["contract_id"].tolist() == [STAMPS]
    assert archiving.receiver_view("dave.near", **place).empty
    widget = archiving.read_widget("heidi.near", "Clock", source=stage.source)
    assert widget == Widget(
        "heidi.near", "Clock", CLOCK, CLOCK_BLOCK, "social.near", "localnet", 180_000_050
    )
    plan = archiving.plan_token(widget, "uma.near")
    assert (plan.token_id, plan.receiver_id, plan.record) == (TOKEN_ID, "uma.near", RECORD)
    assert archiving.find_token(TOKEN_ID, **place) == TokenReading(None, 180_000_050)
    sent = archiving.mint_token(plan, signer=stage.signer, **place)
    assert sent.fully_succeeded is True
    seen = archiving.confirm_token(TOKEN_ID, **place)
    assert seen.token is not None
    assert archiving.differences(plan, seen.token) == []
    assert archiving.owner_has(plan, **place)
    wrong = archiving.differences(replace(plan, receiver_id="bob.near"), seen.token)
    assert wrong == ["its owner is uma.near, not bob.near"]
