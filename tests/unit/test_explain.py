"""The story of a transaction: the whole text for plain cases, and no end of odd ones."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import DecodeError, LedgerError
from ledgerkit.tracing.trace import Trace
from tests.unit.builders import (
    RULES,
    body,
    call,
    delegate,
    event,
    failing,
    outcome,
    refund,
    result,
    transfer,
)

FRAMES = ("receipts", "edges", "actions", "logs", "events", "transfers", "balance_changes", "gas")
GIFT = {"owner_id": "bob.near", "amount": "5"}
BLOCKS = {
    f"block of R{at}": (100 + at, 1_700_000_000_000_000_000 + at * 600_000_000) for at in range(9)
}


def handed_on() -> dict[str, Any]:
    """Write a call whose callback fails although the call that it waited for succeeded."""
    data = [{"data_id": "D", "receiver_id": "bob.near"}]
    return result(
        [
            outcome("R0", ["R1", "R2", "R3"], status={"SuccessReceiptId": "R2"}),
            outcome("R1", executor_id="carl.near"),
            outcome("R2", ["R4"], status=failing("too late")),
            outcome("R3", tokens=0),
            outcome("R4", tokens=0),
        ],
        [
            body("R0", call("buy", 10**24)),
            body(
                "R1",
                call("pay", 10**23),
                sender="bob.near",
                to="carl.near",
                output_data_receivers=data,
            ),
            body("R2", call("paid", 7), sender="bob.near", input_data_ids=["D"]),
            refund("R3", 60),
            refund("R4", 7, "bob.near", signer="system"),
        ],
        actions=[call("buy", 10**24, gas=30 * 10**12)],
        status=failing("too late"),
    )


def test_notes_are_lines_of_plain_text():
    """Ids in notes are as hostile as any other text of a document, and as long."""
    name = "R\u202e\x1b[2J\n" + "x" * 10_000
    document = result([outcome(name)], [])
    text = Trace.from_json(document).explain().rpartition("Notes: ")[2]
    assert text.isprintable()
    assert text.startswith("the document has no body for R\\u202e\\x1b[2J xxx")
    assert len(text) < 3_000


def test_an_unknown_kind_of_failure_is_plain_text():
    """The name of a failure that is not known comes from the document, as its message does."""
    status = {"Failure": {"ActionError": {"index": 0, "kind": "Odd\u202e\x1b[2J\nKind"}}}
    outcomes = [outcome("R0", status=status)]
    text = Trace.from_json(result(outcomes, [body("R0")])).explain()
    assert r"(Odd\u202e\x1b[2J Kind)" in text
    assert all(character.isprintable() or character == "\n" for character in text)


def test_the_whole_text():
    """Everything is told in its place, from who asked to how long it took."""
    found = Trace.from_json(handed_on(), blocks=BLOCKS, rules=RULES)
    assert found.explain().split("\n\n") == [
        "alice.near tried to call buy on bob.near with 1 NEAR; the contract panicked: too late.",
        "alice.near sent transaction T to bob.near: call buy with 1 NEAR and 30 Tgas.",
        "It failed, but 2 of 3 receipts other than refunds succeeded and were not rolled back.",
        (
            "It led to 3 receipts and 2 refunds:\n"
            "1. buy on bob.near in block 100, shard 3: succeeded, its result comes from another "
            "receipt\n"
            "2. pay on carl.near in block 101, shard 3: succeeded\n"
            "3. paid on bob.near in block 102, shard 3: failed"
        ),
        "paid on bob.near waited for pay on carl.near.",
        (
            "paid on bob.near failed: Smart contract panicked: too late. "
            "(FunctionCallError.ExecutionError) The changes of that receipt were rolled back; "
            "those of earlier receipts were not. It was the callback of pay on carl.near. What to "
            "do: Do what the contract's message asks: change the call, or wait and call again."
        ),
        (
            "Transferred: 1 NEAR from alice.near to bob.near; 0.1 NEAR from bob.near to carl.near. "
            "Deposits refunded: 7 yocto to bob.near."
        ),
        "It burnt 0.000000000028 Tgas of gas, which cost alice.near 0.0000000000000018 NEAR.",
        (
            "Its receipts ran in blocks 100 to 104, 4 blocks and 2.4 seconds apart, starting at "
            "2023-11-14 22:13:20 UTC."
        ),
        "Notes: contract rewards that could not be computed are not counted: R0, R1, R2.",
    ]


def test_a_plain_success_is_short():
    """What is not there is not talked about."""
    document = result([outcome("R0")], [body("R0", transfer(5))])
    document["transaction"]["actions"] = [transfer(5)]
    assert Trace.from_json(document, rules=RULES).explain().split("\n\n") == [
        "alice.near sent 5 yocto to bob.near.",
        "alice.near sent transaction T to bob.near: Transfer of 5 yocto.",
        "It succeeded, and so did all its receipts.",
        "It led to 1 receipt:\n1. Transfer to bob.near, shard 3: succeeded",
        "Transferred: 5 yocto from alice.near to bob.near.",
        "It burnt 0.000000000008 Tgas of gas, which cost alice.near 0.0000000000000008 NEAR.",
    ]


def test_a_missing_gas_is_not_zero():
    """The gas of an outcome that does not contain it is not counted as 0: the sum is a part."""
    document = result([outcome("R0")], [body("R0", transfer(5))])
    whole = Trace.from_json(document, rules=RULES).explain()
    del document["receipts_outcome"][0]["outcome"]["gas_burnt"]
    part = Trace.from_json(document, rules=RULES).explain()
    assert "It burnt 0.000000000008 Tgas of gas" in whole
    assert "It burnt at least 0.000000000003 Tgas of gas" in part


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"final_execution_status": "NONE"}, "It has not finished yet."),
        ({"final_execution_status": "NONE"}, "The document does not contain the transaction."),
        (
            {
                "transaction_outcome": outcome(
                    "T", status={"Failure": {"InvalidTxError": "Expired"}}
                )
            },
            "It failed before any receipt was created: ",
        ),
    ],
    ids=["no end", "nobody", "refused"],
)
def test_little_is_told_of_little(document: Any, sentence: str):
    """A document with hardly anything in it still gives a story."""
    assert sentence in Trace.from_json(document).explain()


def test_texts_from_the_chain_keep_to_their_line():
    """Control characters and endless texts of contracts do not break the paragraphs."""
    ended = outcome("R0", status=failing("a\nb\x1b[31m" + "c" * 5000))
    action = call("m\n\n" + "n" * 5000)
    document = result([ended], [body("R0", action)], status=failing())
    text = Trace.from_json(document, rules=RULES).explain()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) < 800
    assert text.count("\n\n") == 7


def test_a_failure_without_a_receipt_before_it_mentions_none():
    """Only changes that happened can be kept: before the first receipt there are none."""
    outcomes = [outcome("R0", status=failing("no"))]
    document = result(outcomes, [body("R0", call())], status=failing("no"))
    text = Trace.from_json(document).explain()
    assert "panicked: no. (FunctionCallError.ExecutionError) Its changes were rolled back." in text
    assert "earlier receipts" not in text


@pytest.mark.parametrize(
    ("actions", "headline", "listed"),
    [
        ([], "alice.near sent a transaction without actions to bob.near.", "no actions"),
        (
            None,
            "alice.near sent unknown actions to bob.near.",
            "the document does not contain its actions",
        ),
    ],
    ids=["empty", "missing"],
)
def test_an_empty_list_of_actions_is_not_an_unknown_one(actions: Any, headline: str, listed: str):
    """A transaction may have no actions, and a document may lack them: two sentences."""
    document = result([outcome("R0")], [body("R0")])
    document["transaction"]["actions"] = actions
    paragraphs = Trace.from_json(document).explain().split("\n\n")
    assert paragraphs[:2] == [headline, f"alice.near sent transaction T to bob.near: {listed}."]
    assert "1. an empty receipt for bob.near, shard 3: succeeded" in (
        Trace.from_json(document, rules=RULES).explain()
    )


def members(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = document.items() if isinstance(document, dict) else enumerate(document)
    paths = []
    for key, value in items:
        paths.append((*path, key))
        if isinstance(value, (dict, list)):
            paths += members(value, (*path, key))
    return paths


def test_whatever_is_missing_none_is_never_printed():
    """A document may lack any member, or send null for it: the text says what is unknown."""
    relaying = delegate("kate.near", "bob.near", call("pay", 5))
    relayed = result(
        [outcome("R0", logs=[event("nep141", "ft_mint", GIFT)])],
        [body("R0", relaying)],
    )
    for document in (handed_on(), relayed):
        for *path, last in members(document):
            for is_null in (False, True):
                changed = copy.deepcopy(document)
                place = changed
                for key in path:
                    place = place[key]
                if is_null:
                    place[last] = None
                else:
                    del place[last]
                try:
                    found = Trace.from_json(changed)
                except LedgerError:
                    continue
                assert "None" not in found.explain(), (path, last)


def test_failures_of_one_kind_are_told_once():
    """A hundred equal failures are one paragraph with a count."""
    made = [f"R{at}" for at in range(1, 101)]
    outcomes = [outcome("R0", made)]
    outcomes += [outcome(id_, status=failing()) for id_ in made]
    bodies = [body("R0", call())]
    bodies += [body(id_, call("x"), sender="bob.near") for id_ in made]
    text = Trace.from_json(result(outcomes, bodies)).explain()
    assert "Its status is success, but 100 of 101 receipts failed" in text
    assert "x on bob.near failed (100 times): " in text
    assert text.count("What to do:") == 1


# Bad input ------------------------------------------------------------------------------


def everything(document: Any) -> Trace:
    found = Trace.from_json(document, rules=RULES)
    for name in FRAMES:
        assert getattr(found, name) is not None
    assert found.explain()
    return found


def test_shuffled_documents_tell_the_same():
    """Nothing depends on the order in which a service lists outcomes and bodies."""
    expected = everything(handed_on())
    for seed in range(5):
        document = handed_on()
        random.Random(seed).shuffle(document["receipts"])  # noqa: S311 - no secrets
        random.Random(seed + 9).shuffle(document["receipts_outcome"])  # noqa: S311 - as above
        found = everything(document)
        assert found.balance_changes.equals(expected.balance_changes)
        assert found.verdict == expected.verdict


@given(st.data())
def test_no_corruption_ends_in_anything_but_frames_or_a_refusal(data: st.DataObject):
    """Whatever is missing or points to the wrong receipt is read or refused, and never hangs."""
    document = handed_on()
    outcomes, bodies = document["receipts_outcome"], document["receipts"]
    ids = st.sampled_from(["R0", "R1", "R2", "R3", "R4", "R9", "T"])
    for entry in outcomes:
        if data.draw(st.booleans()):
            entry["outcome"]["receipt_ids"] = data.draw(st.lists(ids, max_size=4))
        if data.draw(st.booleans()):
            entry["outcome"]["status"] = {"SuccessReceiptId": data.draw(ids)}
        if data.draw(st.booleans()):
            del entry["outcome"][data.draw(st.sampled_from(sorted(entry["outcome"])))]
    for entry in bodies:
        action = entry["receipt"]["Action"]
        action["input_data_ids"] = data.draw(st.lists(st.sampled_from("DEF"), max_size=3))
        if data.draw(st.booleans()):
            del action[data.draw(st.sampled_from(sorted(action)))]
    kept = st.lists(st.sampled_from(range(5)), max_size=7)
    document["receipts_outcome"] = [outcomes[at] for at in data.draw(kept)]
    document["receipts"] = [bodies[at] for at in data.draw(kept)]
    if data.draw(st.booleans()):
        del document[data.draw(st.sampled_from(sorted(document)))]
    try:
        trace = Trace.from_json(document)
    except DecodeError:
        return  # it contradicts itself
    assert everything(document).verdict == trace.verdict
