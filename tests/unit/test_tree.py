"""Receipt trees: every document gives rows in causal order, and none loops."""

from __future__ import annotations

import copy
import json
import pickle
import random
import time
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.api.models.transactions import decode_transaction
from ledgerkit.errors import DecodeError
from ledgerkit.tracing.tree import Tree, build_forest, build_tree, verdict
from tests.unit import builders
from tests.unit.builders import PRICE, SIGNER, outcome, transfer

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
body = partial(builders.body, input_data_ids=[], output_data_receivers=[])


def call(method: str = "m", args: Any = None, **more: Any) -> dict[str, Any]:
    """Write a function call; args are given as base64, none is an empty object."""
    usual = {"method_name": method, "args": args or "e30=", "gas": 10, "deposit": "1"}
    return {"FunctionCall": usual | more}


def document(
    outcomes: list[Any], bodies: list[Any] | None = None, root: Any = "R0", **more: Any
) -> dict[str, Any]:
    """Write a result whose transaction made the receipt `root`."""
    first = outcome("T", [root], status={"SuccessReceiptId": root})
    transaction = {"hash": "T", "signer_id": SIGNER, "receiver_id": "bob.near", "actions": [call()]}
    result = {"transaction": transaction, "transaction_outcome": first}
    result |= {"receipts_outcome": outcomes} | more
    return result if bodies is None else result | {"receipts": bodies}


def grown(written: dict[str, Any], **options: Any) -> Tree:
    return build_tree(decode_transaction(json.dumps(written).encode(), request="a test"), **options)


def column(found: Tree, name: str) -> list[Any]:
    return list(found.columns[name])


def by_id(found: Tree, name: str) -> dict[str, Any]:
    return dict(zip(column(found, "receipt_id"), column(found, name), strict=True))


def edges(found: Tree) -> list[tuple[str, str, str, str | None]]:
    columns = found.edges()
    names = ("parent_id", "child_id", "kind", "data_id")
    return list(zip(*(columns[name] for name in names), strict=True))


# A call R0 asks R1 and lets R2 wait for its answer; R3 and R4 are refunds.
CALLBACK = document(
    [
        outcome("R0", ["R1", "R2", "R3"], status={"SuccessReceiptId": "R2"}, gas_burnt=100),
        outcome("R1", logs=["hello"], gas_burnt=30),
        outcome("R2", ["R4"], gas_burnt=20, status={"SuccessValue": "Ijki"}),
        outcome("R3", gas_burnt=0, tokens_burnt="0"),
        outcome("R4", gas_burnt=0, tokens_burnt="0"),
    ],
    [
        body("R0", call("ask")),
        body(
            "R1",
            call("answer"),
            output_data_receivers=[{"data_id": "D", "receiver_id": "bob.near"}],
        ),
        body("R2", call("resolve"), input_data_ids=["D"]),
        body("R3", transfer(7), sender="system"),
        body("R4", transfer(7), sender="system"),
    ],
)


class TestRows:
    """One row a receipt."""

    def test_a_callback(self):
        """A callback stands after what it waits for; parents, depth and gas add up."""
        found = grown(CALLBACK)
        assert column(found, "receipt_id") == ["R0", "R1", "R3", "R2", "R4"]
        assert column(found, "parent_id") == [None, "R0", "R0", "R0", "R2"]
        assert column(found, "depth") == [0, 1, 1, 1, 2]
        assert column(found, "order") == [0, 1, 2, 3, 4]
        assert column(found, "kind") == ["action", "action", "refund", "action", "refund"]
        assert column(found, "subtree_gas") == [150, 30, 0, 20, 0]
        assert by_id(found, "waits_for") == {"R0": [], "R1": [], "R2": ["R1"], "R3": [], "R4": []}
        assert by_id(found, "input_data_ids")["R2"] == ["D"]
        receivers = by_id(found, "output_data_receivers")
        assert receivers["R1"] == [{"data_id": "D", "receiver_id": "bob.near"}]
        assert by_id(found, "logs") == {"R0": [], "R1": ["hello"], "R2": [], "R3": [], "R4": []}
        assert found.notes == ()

    def test_edges_of_a_callback(self):
        """Edges come by receipt: from its creator, then from the producers of its data."""
        assert edges(grown(CALLBACK)) == [
            ("R0", "R1", "creation", None),
            ("R0", "R3", "creation", None),
            ("R0", "R2", "creation", None),
            ("R1", "R2", "data", "D"),
            ("R2", "R4", "creation", None),
        ]

    def test_critical_path_goes_through_the_data(self):
        """The last receipt to run waited for R2, which waited for R1, which R0 made."""
        critical = by_id(grown(CALLBACK), "on_critical_path")
        assert [id_ for id_, on_it in critical.items() if on_it] == ["R0", "R1", "R2", "R4"]

    def test_an_unfinished_tree_ends_its_critical_path_at_what_ran(self):
        """What has not run is on no critical path."""
        written = document([outcome("R0", ["R1"])], [body("R0"), body("R1")])
        assert column(grown(written), "on_critical_path") == [True, False]

    def test_the_order_on_the_wire_does_not_matter(self):
        """Shuffled lists give the same columns."""
        straight = grown(CALLBACK)
        for seed in range(10):
            mixed = copy.deepcopy(CALLBACK)
            chance = random.Random(seed)  # noqa: S311 - the same shuffles each run
            chance.shuffle(mixed["receipts"])
            chance.shuffle(mixed["receipts_outcome"])
            found = grown(mixed)
            for name in straight.columns:
                assert column(found, name) == column(straight, name), name

    def test_an_omitted_local_receipt_is_written_from_the_transaction(self):
        """Where signer is receiver the first body is not sent: the transaction tells it all."""
        written = document([outcome("R0", ["R1"]), outcome("R1")], [body("R1", sender="system")])
        written["transaction"] |= {"receiver_id": SIGNER, "actions": ["CreateAccount", transfer(7)]}
        found = grown(written)
        assert column(found, "is_local") == [True, False]
        assert column(found, "actions")[0] == "CreateAccount+Transfer"
        assert column(found, "deposit")[0] == 7
        assert column(found, "predecessor_id") == [SIGNER, "system"]
        assert column(found, "receiver_id")[0] == SIGNER
        assert found.notes == ()

    def test_plain_tx_tells_less_and_says_so(self):
        """Without bodies: the first receipt from the transaction, others by executor; a note."""
        last = outcome("R3", tokens_burnt="0", executor_id=SIGNER)
        written = [outcome("R0", ["R1", "R2"]), outcome("R1", ["R3"], executor_id="c.near"), last]
        found = grown(document(written))
        assert column(found, "receipt_id") == ["R0", "R1", "R2", "R3"]
        assert column(found, "predecessor_id") == [SIGNER, "bob.near", None, None]
        assert column(found, "receiver_id") == ["bob.near", "c.near", None, SIGNER]
        assert column(found, "signer_id") == [SIGNER, SIGNER, None, None]
        assert column(found, "kind") == ["action", "action", None, "refund"]
        assert column(found, "actions") == ["FunctionCall", None, None, None]
        assert column(found, "deposit") == [1, None, None, None]
        assert column(found, "status")[2] == "not_executed"
        assert len(found.notes) == 1
        assert "EXPERIMENTAL_tx_status" in found.notes[0]

    def test_a_listed_receipt_without_outcome_and_body_has_a_row(self):
        """What a parent lists and nobody tells of is a row that was not executed, and a note."""
        found = grown(document([outcome("R0", ["R9"])], [body("R0")]))
        assert by_id(found, "status") == {"R0": "success_value", "R9": "not_executed"}
        assert by_id(found, "parent_id")["R9"] == "R0"
        assert by_id(found, "logs")["R9"] == []
        assert column(found, "gas_burnt")[0] == 5
        assert column(found, "subtree_gas") == [5, 0]
        assert found.notes == ("the document has no outcome and no body for R9",)

    def test_a_body_without_outcome_is_not_executed(self):
        """A receipt that still waits has its actions, and no outcome."""
        found = grown(document([outcome("R0", ["R1"])], [body("R0"), body("R1", call("later"))]))
        assert by_id(found, "method_name")["R1"] == "later"
        assert by_id(found, "status")["R1"] == "not_executed"
        assert by_id(found, "tokens_burnt")["R1"] is None

    def test_data_receipts_are_no_rows(self):
        """A data receipt among the bodies makes no row."""
        data = {"receipt_id": "RD", "receipt": {"Data": {"data_id": "D", "data": ""}}}
        found = grown(document([outcome("R0")], [data, body("R0")]))
        assert column(found, "receipt_id") == ["R0"]

    def test_a_global_contract_distribution_is_named(self):
        """A distribution receipt is an action whose deposit is missing, not 0."""
        sent = {"receipt_id": "R0", "predecessor_id": "system", "receiver_id": "system"}
        distribution = sent | {"receipt": {"GlobalContractDistribution": {"id": "c"}}}
        found = grown(document([outcome("R0")], [distribution]))
        assert column(found, "actions") == ["GlobalContractDistribution"]
        assert column(found, "deposit") == [None]

    def test_an_unknown_kind_of_receipt_has_a_row(self):
        """A receipt of tomorrow is a row with the name of its kind, whose deposit is missing."""
        future = {"receipt_id": "R0", "predecessor_id": SIGNER, "receipt": {"Later": {}}}
        found = grown(document([outcome("R0")], [future]))
        assert column(found, "actions") == ["Later"]
        assert column(found, "deposit") == [None]

    def test_an_empty_result(self):
        """A transaction of which nothing is known has no rows and no edges."""
        found = grown({"final_execution_status": "NONE"})
        assert len(found) == 0
        assert edges(found) == []
        assert found.notes == ()
        assert found.conversion.status == "not_executed"

    def test_the_conversion_is_kept_beside_the_rows(self):
        """What the transaction itself burnt is no row and is not lost."""
        conversion = grown(CALLBACK).conversion
        assert (conversion.tx_hash, conversion.signer_id) == ("T", SIGNER)
        assert (conversion.gas_burnt, conversion.tokens_burnt) == (5, 5 * PRICE)
        assert conversion.status == "success_receipt_id"


class TestActions:
    """What a receipt asks for."""

    def described(self, *actions: Any) -> dict[str, Any]:
        found = grown(document([outcome("R0")], [body("R0", *actions)]))
        names = ("actions", "method_name", "args", "deposit")
        gas = found.columns["gas_attached"]
        return {name: column(found, name)[0] for name in names} | {"gas": gas[0]}

    def test_several_actions_add_up(self):
        """Names are joined, deposits and gas add up, several calls make a list of arguments."""
        both = self.described(
            call("a", "eyJuIjoxfQ=="), "CreateAccount", transfer(41), call("b", "//8=")
        )
        assert both == {
            "actions": "FunctionCall+CreateAccount+Transfer+FunctionCall",
            "method_name": "a+b",
            "args": [{"n": 1}, b"\xff\xff"],
            "deposit": 43,
            "gas": 20,
        }

    def test_arguments_are_json_or_bytes(self, subtests: pytest.Subtests):
        """Arguments that are JSON are decoded, exactly; all others stay bytes."""
        cases = [
            ("eyJhIjogMTg0NDY3NDQwNzM3MDk1NTE2MTd9", {"a": 2**64 + 1}),
            ("bnVsbA==", None),
            ("IngiIA==", "x"),
            ("", b""),
            ("AAEC", b"\x00\x01\x02"),
            ("W1tb", b"[[["),
            ("Iv8i", b'"\xff"'),
        ]
        for args, decoded in cases:
            with subtests.test(args=args):
                sent = call()
                sent["FunctionCall"]["args"] = args
                assert self.described(sent)["args"] == decoded

    def test_deeply_nested_arguments_stay_bytes(self):
        """Arguments too deep to decode do not break the frame."""
        sent = call(args="W1tb" * 50_000)
        assert self.described(sent)["args"] == b"[[[" * 50_000

    def test_no_call_no_arguments(self):
        """Without a call arguments are missing, which JSON null is not."""
        assert self.described(transfer(7))["args"] is pd.NA
        assert self.described("CreateAccount")["args"] is pd.NA

    def test_a_delegate_shows_its_inner_call(self):
        """A Delegate reads as Delegate; method, arguments and gas are the inner call's."""
        inner = {"actions": [call("inner", gas=99), {"CreateAccount": {}}]}
        delegate = {"Delegate": {"delegate_action": inner, "signature": "s"}}
        expected = {
            "actions": "Delegate",
            "method_name": "inner",
            "args": {},
            "deposit": 0,
            "gas": 99,
        }
        assert self.described(delegate) == expected
        second = {"DelegateV2": {"delegate_action": {"V2": inner}, "signature": "s"}}
        assert self.described(second) == expected | {"actions": "DelegateV2"}

    def test_every_known_action_is_named(self):
        """Each documented action keeps its wire name; only those that move tokens count."""
        names = (
            "CreateAccount DeployContract FunctionCall Transfer Stake AddKey DeleteKey "
            "DeleteAccount Delegate DelegateV2 DeployGlobalContract "
            "DeployGlobalContractByAccountId UseGlobalContract UseGlobalContractByAccountId "
            "DeterministicStateInit TransferToGasKey WithdrawFromGasKey"
        ).split()
        described = self.described(*({name: {"deposit": "2", "gas": 1}} for name in names))
        assert described["actions"] == "+".join(names)
        assert described["deposit"] == 8

    def test_missing_members_of_a_call(self):
        """A call without gas, deposit or arguments leaves these unknown."""
        described = self.described({"FunctionCall": {"method_name": "m"}})
        assert described["args"] is pd.NA
        assert described["deposit"] is None
        assert described["gas"] is None

    def test_the_largest_deposit_is_exact(self):
        """2^128 - 1 survives; one more is refused."""
        assert self.described(transfer(str(2**128 - 1)))["deposit"] == 2**128 - 1
        for text in (str(2**128), "", "-1", "1_0", "+1", " 1", "1.0", "٣", "9" * 5000):
            with pytest.raises(DecodeError) as refused:
                self.described(transfer(text))
            assert refused.value.path == "$.receipts[0].receipt.Action"

    def test_gas_that_fits_no_column_is_refused(self):
        """Gas up to 64 bits is exact, alone and added up; more is refused, not wrapped."""
        largest = 2**64 - 1
        assert self.described(call(gas=largest))["gas"] == largest
        assert self.described(call(gas=largest - 1), call(gas=1))["gas"] == largest
        for calls in ([call(gas=largest), call(gas=1)], [call(gas=largest + 1)]):
            with pytest.raises(DecodeError, match=f"{largest + 1} at .* is above {largest}") as no:
                self.described(*calls)
            assert no.value.path == "$.receipts[0].receipt.Action"


class TestOutcomes:
    """How receipts ended."""

    def test_statuses(self):
        """Every form of status has its word."""
        failure = {
            "Failure": {
                "ActionError": {
                    "index": 0,
                    "kind": {
                        "FunctionCallError": {"ExecutionError": "Smart contract panicked: no"}
                    },
                }
            }
        }
        statuses = [
            "Unknown",
            {"Later": 1},
            None,
            failure,
            {"SuccessReceiptId": "R0"},
            {"SuccessValue": None},
        ]
        written = [outcome(f"R{n}", status=status) for n, status in enumerate(statuses)]
        found = grown(document(written, []))
        assert by_id(found, "status") == {
            "R0": "unknown",
            "R1": "unknown",
            "R2": "unknown",
            "R3": "failure",
            "R4": "success_receipt_id",
            "R5": "success_value",
        }
        assert by_id(found, "error_kind")["R3"] == "FunctionCallError.ExecutionError"
        assert by_id(found, "error_message")["R3"] == "Smart contract panicked: no"
        assert by_id(found, "error_kind")["R0"] is None

    def test_bad_tokens_burnt_name_their_place(self):
        """An amount that is no number is refused with the outcome's position."""
        written = [outcome("R0"), outcome("R1", tokens_burnt="12x")]
        with pytest.raises(DecodeError) as refused:
            grown(document(written, []))
        assert refused.value.path == "$.receipts_outcome[1].outcome.tokens_burnt"

    def test_old_outcomes_miss_members(self):
        """Nothing but an id: a row whose numbers are missing."""
        found = grown({"receipts_outcome": [{"id": "R0", "outcome": {}}]})
        assert column(found, "tokens_burnt") == [None]
        assert column(found, "gas_burnt") == [None]
        assert column(found, "logs") == [[]]

    def test_gas_below_a_receipt_is_exact(self):
        """A sum of gas above 64 bits is neither wrapped nor rounded."""
        most = 2**63 - 1
        written = [
            outcome("R0", ["R1"], gas_burnt=most),
            outcome("R1", ["R2"], gas_burnt=most),
            outcome("R2", gas_burnt=most),
        ]
        sums = grown(document(written, [])).columns["subtree_gas"]
        assert sums == [27670116110564327421, 18446744073709551614, most]


class TestPlaces:
    """Heights and times."""

    def test_documents_bring_their_own(self):
        """Height, time and shard of an outcome are the row's."""
        place: dict[str, Any] = {
            "block_hash": "B",
            "block_height": 9,
            "block_timestamp": 10**18,
            "shard_id": 3,
        }
        found = grown(document([outcome("R0", **place)], []))
        names = ("block_hash", "block_height", "time", "shard_id")
        assert [column(found, name)[0] for name in names] == ["B", 9, 10**18, 3]

    def test_blocks_fill_in_what_the_document_lacks(self):
        """Known blocks place their receipts; the document's own height comes first."""
        written = [outcome("R0", block_hash="A"), outcome("R1", block_hash="B"), outcome("R2")]
        written.append(outcome("R3", block_hash="A", block_height=8, block_timestamp=80))
        found = grown(document(written, []), blocks={"A": (7, 70)})
        assert by_id(found, "block_height") == {"R0": 7, "R1": None, "R2": None, "R3": 8}
        assert by_id(found, "time")["R3"] == 80

    def test_lower_blocks_come_first(self):
        """With heights siblings stand by block, whatever their place in the list."""
        written = [
            outcome("R0", ["R1", "R2"], block_height=1),
            outcome("R1", block_height=5),
            outcome("R2", ["R3", "R4"], block_height=2),
            outcome("R3", block_height=3),
        ]
        found = grown(document(written, []))
        assert column(found, "receipt_id") == ["R0", "R2", "R3", "R1", "R4"]

    def test_heights_never_beat_edges(self):
        """A height that contradicts an edge gives way: creators stand first."""
        written = [outcome("R0", ["R1"], block_height=9), outcome("R1", ["R2"], block_height=1)]
        found = grown(document([*written, outcome("R2")], []))
        assert column(found, "receipt_id") == ["R0", "R1", "R2"]


class TestContradictions:
    """Documents that contradict themselves are refused, those that lack something are read."""

    @pytest.mark.parametrize(
        ("outcomes", "named"),
        [
            ([outcome("R0", ["R1", "R2"]), outcome("R1", ["R2"])], "R2 was created twice"),
            ([outcome("R0", ["R1", "R1"])], "R1 was created twice"),
            ([outcome("R0", ["R1"]), outcome("R1", ["R0"])], "R0 was created twice"),
            ([outcome("R0"), outcome("R1", ["R1"])], "R1 is among its own creators"),
            (
                [outcome("R1", ["R2"]), outcome("R2", ["R3"]), outcome("R3", ["R1"])],
                "R1 is among its own creators",
            ),
        ],
    )
    def test_creators(self, outcomes: list[Any], named: str):
        """A receipt has one creator, which it did not lead to; the error names the receipt."""
        with pytest.raises(DecodeError, match=f"contradicts itself: receipt {named}"):
            grown(document(outcomes, []))

    @pytest.mark.parametrize(
        ("outcomes", "bodies", "named"),
        [
            ([outcome("R0"), outcome("R0", ["R9"])], [], "two outcomes of R0"),
            ([outcome("R0")], [body("R0", call("first")), body("R0")], "two bodies of R0"),
        ],
    )
    def test_an_id_twice(self, outcomes: list[Any], bodies: list[Any], named: str):
        """A receipt has one outcome and one body."""
        with pytest.raises(DecodeError, match=f"contradicts itself: it has {named}"):
            grown(document(outcomes, bodies))

    @pytest.mark.parametrize("consumer", ["R1", "R2"])
    def test_data_in_a_ring(self, consumer: str):
        """No receipt waits for its own data, or for that of one that waits for it."""
        first: Any = {"input_data_ids": ["A"], "output_data_receivers": [{"data_id": "B"}]}
        second: Any = {"input_data_ids": ["B"], "output_data_receivers": [{"data_id": "A"}]}
        bodies = [body("R0"), body("R1", **first), body("R2", **second)]
        if consumer == "R1":
            bodies[1] = body("R1", **first | {"output_data_receivers": [{"data_id": "A"}]})
        outcomes = [outcome("R0", ["R1", "R2"]), outcome("R1"), outcome("R2")]
        with pytest.raises(DecodeError, match="receipt R1 waits for data that comes after it"):
            grown(document(outcomes, bodies))

    def test_a_producer_that_handed_on_gives_way(self):
        """Where R1 handed its result on to R2, the data comes from R2, whatever their order."""
        to = [{"data_id": "D", "receiver_id": "bob.near"}]
        made = [
            outcome("R0", ["R1", "R3"]),
            outcome("R1", ["R2"], status={"SuccessReceiptId": "R2"}),
            outcome("R2"),
            outcome("R3"),
        ]
        bodies = [body("R0"), body("R3", input_data_ids=["D"])]
        producers = [body("R1", output_data_receivers=to), body("R2", output_data_receivers=to)]
        for written in ([*bodies, *producers], [*producers[::-1], *bodies]):
            found = grown(document(made, written))
            assert by_id(found, "waits_for")["R3"] == ["R2"]
            assert column(found, "receipt_id") == ["R0", "R1", "R2", "R3"]

    def test_a_gap(self):
        """A receipt whose creator is not told of stands on its own, with a note."""
        found = grown(document([outcome("R0"), outcome("R7")], [body("R0"), body("R7")]))
        assert by_id(found, "parent_id") == {"R0": None, "R7": None}
        assert found.notes == ("the document has no creator for R7",)


PANIC = {"Failure": {"ActionError": {"index": 0, "kind": "DelegateActionExpired"}}}


class TestVerdict:
    """How the whole ended."""

    def test_words(self, subtests: pytest.Subtests):
        """Each rule gives its word."""
        cases = [
            (CALLBACK, "fully_succeeded"),
            (CALLBACK | {"status": {"SuccessValue": ""}}, "fully_succeeded"),
            (CALLBACK | {"status": PANIC}, "failed"),
            (document([outcome("R0", status=PANIC)], []), "failed"),
            (
                document([outcome("R0", ["R1"]), outcome("R1", status=PANIC)], []),
                "succeeded_with_failed_receipts",
            ),
            (document([outcome("R0", ["R1"])], [body("R0"), body("R1")]), "pending"),
            (
                document([outcome("R0", ["R1"])], [body("R0"), body("R1", sender="system")]),
                "fully_succeeded",
            ),
            (document([outcome("R0", ["R1"])], final_execution_status="INCLUDED_FINAL"), "pending"),
            (
                document([outcome("R0", ["R1"])], final_execution_status="EXECUTED_OPTIMISTIC"),
                "fully_succeeded",
            ),
            (document([], [body("R0")]), "pending"),
            (document([outcome("R0", status="Unknown", gas_burnt=0)], []), "pending"),
            (document([outcome("R0", status="Unknown")], []), "unknown"),
            ({"status": "NotStarted"}, "pending"),
            ({"final_execution_status": "NONE"}, "pending"),
            ({"transaction": {"hash": "T"}}, "unknown"),
            ({"receipts_outcome": [outcome("R0")]}, "unknown"),
            ({"status": {"SuccessValue": ""}}, "fully_succeeded"),
            ({"transaction_outcome": outcome("T", status=PANIC)}, "failed"),
            (document([outcome("R0", status={"SuccessReceiptId": "R0"})], []), "unknown"),
        ]
        for written, word in cases:
            with subtests.test(word=word):
                assert verdict(grown(written)) == word


IDS = [f"R{n}" for n in range(12)]


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw documents that nest, repeat, ring, gap and wait at random."""
    some = st.lists(st.sampled_from(IDS), max_size=4)
    heights = st.none() | st.integers(0, 3)
    outcomes = [
        outcome(
            id_,
            draw(some),
            **({} if (height := draw(heights)) is None else {"block_height": height}),
        )
        for id_ in draw(st.lists(st.sampled_from(IDS), max_size=14))
    ]
    data = st.lists(st.sampled_from("ABCD"), max_size=2)
    bodies = [
        body(
            id_,
            call(),
            input_data_ids=draw(data),
            output_data_receivers=[{"data_id": d} for d in draw(data)],
        )
        for id_ in draw(st.lists(st.sampled_from(IDS), max_size=14))
    ]
    return document(outcomes, bodies if draw(st.booleans()) else None)


@given(documents())
def test_any_document_gives_one_row_an_id_in_topological_order(written: dict[str, Any]):
    """A document is refused, or has one row an id, edges forward, nothing lost."""
    try:
        found = grown(written)
    except DecodeError:
        return  # it contradicts itself
    ids = column(found, "receipt_id")
    listed = [i for o in written["receipts_outcome"] for i in [o["id"]]]
    sent = [r["receipt_id"] for r in written.get("receipts", [])]
    assert len(ids) == len(set(ids))
    assert set(ids) >= {"R0", *listed, *sent}
    position = {id_: n for n, id_ in enumerate(ids)}
    for parent, child, _, _ in edges(found):
        assert position[parent] < position[child]
    for id_, parent in by_id(found, "parent_id").items():
        assert parent is None or position[parent] < position[id_]
    burnt = sum(gas or 0 for gas in found.columns["gas_burnt"])
    roots = [
        gas
        for gas, parent in zip(
            column(found, "subtree_gas"), column(found, "parent_id"), strict=True
        )
        if parent is None
    ]
    assert sum(roots) == burnt
    assert verdict(found) in {
        "fully_succeeded",
        "succeeded_with_failed_receipts",
        "pending",
        "unknown",
    }


@given(st.integers(1, 40), st.randoms(use_true_random=False))
def test_any_tree_is_found_again_however_it_is_shuffled(size: int, chance: random.Random):
    """A proper tree gives its parents and depths back, and no notes, in any wire order."""
    parent = {n: chance.randrange(n) for n in range(1, size)}
    made: dict[int, list[str]] = {n: [] for n in range(size)}
    for child, creator in parent.items():
        made[creator].append(f"R{child}")
    outcomes = [outcome(f"R{n}", made[n]) for n in range(size)]
    bodies = [body(f"R{n}") for n in range(size)]
    chance.shuffle(outcomes)
    chance.shuffle(bodies)
    found = grown(document(outcomes, bodies))
    assert found.notes == ()
    assert by_id(found, "parent_id") == {"R0": None} | {f"R{c}": f"R{p}" for c, p in parent.items()}
    depth = {0: 0}
    for child, creator in parent.items():
        depth[child] = depth[creator] + 1
    assert by_id(found, "depth") == {f"R{n}": level for n, level in depth.items()}


@given(st.lists(documents(), max_size=4))
def test_a_forest_has_the_trees_of_its_transactions(written: list[dict[str, Any]]):
    """Trees that are built at once have the rows and values of trees that are built alone."""
    results, trees = [], []
    for number, one in enumerate(written):
        document = json.loads(json.dumps(one).replace('"R', f'"{number}R'))
        for execution in document["receipts_outcome"]:  # as block documents have them
            execution.setdefault("block_height", 0)
        document.setdefault("receipts", [])
        with suppress(DecodeError):
            result = decode_transaction(json.dumps(document).encode(), request="a test")
            trees.append(build_tree(result))
            results.append(result)
    forest = build_forest(results)
    assert forest.starts == list(accumulate(map(len, trees), initial=0))
    assert forest.conversions == tuple(tree.conversion for tree in trees)
    for name in forest.columns:
        assert list(forest.columns[name]) == [
            value for tree in trees for value in tree.columns[name]
        ]


def test_the_empty_list_is_shared_and_cannot_grow():
    """Rows of a frame share one empty list, which no row can fill; copies are ordinary."""
    empty = grown(document([outcome("R0")], [])).columns["logs"][0]
    with pytest.raises(TypeError, match="replace it with a new list"):
        empty.append("x")
    with pytest.raises(TypeError):
        empty[:] = ["x"]
    copies = copy.copy(empty), copy.deepcopy(empty), pickle.loads(pickle.dumps(empty))  # noqa: S301 - its own bytes
    assert [type(each) for each in copies] == [list] * 3
    assert empty == []
    assert json.dumps(empty) == "[]"


def test_a_chain_of_30_000_receipts():
    """A tree as deep as it is large takes seconds, and no recursion."""
    size = 30_000
    outcomes = [outcome(f"R{n}", [f"R{n + 1}"] if n + 1 < size else []) for n in range(size)]
    result = decode_transaction(json.dumps(document(outcomes, [])).encode(), request="a test")
    start = time.process_time()
    found = build_tree(result)
    assert time.process_time() - start < 10
    assert found.columns["depth"][-1] == size - 1
    assert found.columns["subtree_gas"][0] == 5 * size
    assert all(found.columns["on_critical_path"])


def worked() -> list[Any]:
    """Read the worked executions, where they are."""
    path = SHARED / "vectors" / "trees.json"
    return json.loads(path.read_text())["cases"] if path.exists() else []


VERDICTS = {
    "transfer": "fully_succeeded",
    "transfer_local": "fully_succeeded",
    "create_account": "fully_succeeded",
    "create_account_fails": "failed",
    "ft_transfer_call_all_used": "fully_succeeded",
    "ft_transfer_call_part_refunded": "fully_succeeded",
    "ft_transfer_call_receiver_panics": "succeeded_with_failed_receipts",
}


@pytest.mark.parametrize("case", worked(), ids=lambda case: case["name"])
def test_worked_executions(case: dict[str, Any]):
    """The worked executions: every receipt, in the order of the blocks it ran in."""
    found = grown(case["result"])
    ids = column(found, "receipt_id")
    assert verdict(found) == VERDICTS[case["name"]]
    assert sorted(ids) == sorted(case["executed_at"])
    heights = [case["executed_at"][id_] for id_ in ids]
    assert heights == sorted(heights)
    creators = {
        child: told["id"]
        for told in case["result"]["receipts_outcome"]
        for child in told["outcome"]["receipt_ids"]
    }
    assert by_id(found, "parent_id") == {id_: creators.get(id_) for id_ in ids}
    assert column(found, "is_local")[0] == (case["name"] == "transfer_local")
    produced = {data["data_id"] for data in case["data_receipts"]}
    assert {data_id for _, _, kind, data_id in edges(found) if kind == "data"} == produced
    burnt = sum(int(told["outcome"]["tokens_burnt"]) for told in case["result"]["receipts_outcome"])
    assert sum(column(found, "tokens_burnt")) == burnt
    last = [id_ for id_, on_it in by_id(found, "on_critical_path").items() if on_it][-1]
    assert case["executed_at"][last] == max(heights)
