"""A card shows a trace without script or style, and whatever the chain says stays text."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from ledgerkit import cards
from ledgerkit.frames import build
from ledgerkit.frames.schemas import SCHEMAS
from ledgerkit.frames.tokens import TokenFacts
from ledgerkit.tracing.amount_texts import AmountTexts

if TYPE_CHECKING:
    import pandas as pd

SCRIPT = '<script>alert("x")</script>'
VOID = {"br"}


def frame(name: str, told: list[dict[str, Any]]) -> pd.DataFrame:
    """Build a frame of which only some columns are told."""
    lists = {"logs", "input_data_ids", "output_data_receivers", "waits_for"}
    plain = {"bool": False}
    columns = {
        column.name: [
            row.get(column.name, [] if column.name in lists else plain.get(column.dtype))
            for row in told
        ]
        for column in SCHEMAS[name]
    }
    return build.build_frame(name, columns)


def receipt(name: str, parent: str | None = None, **told: Any) -> dict[str, Any]:
    """Tell of a receipt that ran well."""
    usual = {"kind": "action", "receiver_id": "dex.near", "method_name": "swap", "depth": 0}
    return {"receipt_id": name, "parent_id": parent, "status": "success_value", **usual, **told}


def card(told: list[dict[str, Any]], **more: Any) -> str:
    usual: dict[str, Any] = {
        "headline": "Trace T: 1 receipt",
        "explanation": "It succeeded.",
        "edges": frame("edges", []),
        "transfers": frame("transfers", []),
        "format_amount": AmountTexts({}).text,
    }
    return cards.trace_card(receipts=frame("receipts", told), **usual | more)


class Page(HTMLParser):
    """The elements and texts of a fragment, and how deep each list item stands."""

    def __init__(self, html: str) -> None:
        """Read it; an element left open, or closed in the wrong place, is an error."""
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.summaries: list[tuple[int, str]] = []
        self.cells: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("td", "th"):
            self.cells.append("")
        if tag == "summary":
            self.summaries.append((self.open.count("li"), ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note a text, and where it stands."""
        self.texts.append(data)
        if self.open[-1] in ("td", "th"):
            self.cells[-1] += data
        if "summary" in self.open:
            depth, text = self.summaries[-1]
            self.summaries[-1] = depth, text + data

    def rows(self, width: int) -> list[list[str]]:
        return [self.cells[at : at + width] for at in range(0, len(self.cells), width)]


def test_receipts_stand_in_lists_within_lists_and_fold():
    """A made B and C, and B made D: each line folds what stands below it."""
    told = [
        receipt("A"),
        receipt("B", "A", method_name="pay"),
        receipt("C", "A", kind="refund", receiver_id="alice.near"),
        receipt(
            "D", "B", status="failure", block_height=7, shard_id=2, gas_burnt=1_500_000_000_000
        ),
    ]
    page = Page(card(told))
    assert page.summaries[:9] == [
        (0, "Receipts as a tree (4)"),
        (1, "✓ succeeded: swap on dex.near"),
        (1, "details"),
        (2, "✓ succeeded: pay on dex.near"),
        (2, "details"),
        (3, "✗ failed: swap on dex.near"),
        (3, "block 7, shard 2, 1.5 Tgas"),
        (2, "✓ succeeded: refund on alice.near"),
        (2, "details"),
    ]
    assert page.summaries[9:] == [
        (0, "In words"),
        (0, "Receipts as a table (4)"),
        (0, "Transfers (0)"),
    ]


def test_receipts_stand_in_a_table_with_headings():
    """What a page without folding still shows; rows are named where one waits for another."""
    told = [
        receipt("A", block_height=7, shard_id=2, gas_burnt=1_500_000_000_000),
        receipt("B", "A", depth=1, status="failure", error_message="No such method."),
    ]
    waits = frame("edges", [{"parent_id": "A", "child_id": "B", "kind": "data", "data_id": "d"}])
    page = Page(card(told, edges=waits))
    head, first, second = page.rows(9)
    assert head == "#,Action,Receiver,Depth,Block,Shard,Tgas,Waits for,Result".split(",")
    assert first == ["1", "swap", "dex.near", "0", "7", "2", "1.5", "", "✓ succeeded"]
    assert second[6:] == ["", "1", "✗ failed: No such method."]
    scopes = [told["scope"] for name, told in page.elements if name == "th"]
    assert scopes == ["col"] * 9 + ["row"] * 2
    assert [name for name, _ in page.elements].count("caption") == 1


def test_movements_stand_in_a_table():
    """NEAR as people read it, unknown tokens in their smallest unit, mint and burn by name."""
    told = [
        {"kind": "fee", "asset": "near", "sender_id": "a.near", "receiver_id": "system",
         "amount": 10**22},
        {"kind": "fee", "asset": "gas_key:K", "sender_id": "a.near", "receiver_id": "system",
         "amount": 10**21},
        {"kind": "token", "asset": "nep141:gold.near", "receiver_id": "b.near",
         "amount": 2**128 - 1, "memo": "thanks"},
    ]  # fmt: skip
    page = Page(card([], transfers=frame("transfers", told)))
    assert page.rows(7) == [
        ["#", "Kind", "Asset", "From", "To", "Amount", "Memo"],
        ["1", "fee", "near", "a.near", "system", "0.01 NEAR", ""],
        ["2", "fee", "gas_key:K", "a.near", "system", "0.001 NEAR", ""],
        ["3", "token", "nep141:gold.near", "(minted)", "b.near",
         "340,282,366,920,938,463,463,374,607,431,768,211,455 units of gold.near", "thanks"],
    ]  # fmt: skip


def test_amounts_are_rounded_with_all_digits_as_tooltips():
    """NEAR, tokens of known decimals and gas; an exact amount needs no tooltip."""
    rows = [
        {"kind": "fee", "asset": "near", "amount": 12_340_675 * 10**21 + 1},
        {"kind": "token", "asset": "nep141:gold.near", "amount": 1_252_998_400},
        {"kind": "token", "asset": "nep141:gold.near", "amount": 80_000_000},
    ]
    receipts = [receipt("A", deposit=10**24 + 1, gas_burnt=2_427_934_563_000)]
    amounts = AmountTexts({"gold.near": TokenFacts("ok", "GOLD", 6)})
    page = Page(card(receipts, transfers=frame("transfers", rows), format_amount=amounts.text))

    assert {"12,340.68 NEAR", "1,252.998 GOLD", "80 GOLD", "2.43"} <= set(page.texts)
    tooltips = [attrs["title"] for name, attrs in page.elements if name == "span"]
    assert tooltips == [
        "1.000000000000000000000001 NEAR",
        "2.427934563 Tgas",
        "2.427934563",
        "12,340.675000000000000000000001 NEAR",
        "1,252.9984 GOLD",
    ]


def test_the_network_is_named_if_it_is_known():
    """Invented and real data differ by a line under the headline."""
    known, unknown = Page(card([], network="local")), Page(card([]))

    assert known.texts[1:3] == ["network: ", "local"]
    assert "network: " not in unknown.texts


def test_a_script_in_any_member_of_a_receipt_stays_text():
    """It is told, where it is told at all, and never run."""
    names = "receipt_id receiver_id predecessor_id method_name error_message error_kind status"
    values: dict[str, Any] = dict.fromkeys(names.split(), SCRIPT)
    values |= {"logs": [SCRIPT], "args": {SCRIPT: SCRIPT}, "actions": SCRIPT}
    for member, value in values.items():
        told = {**receipt("A"), member: value}
        if member == "actions":
            told["method_name"] = None
        html = card([told])
        assert "<script" not in html
        assert ("&lt;script&gt;" in html) == (member != "status")
        assert "script" not in {name for name, _ in Page(html).elements}


def test_a_script_in_a_movement_stays_text():
    """A token's memo is anybody's text."""
    for member in ("kind", "asset", "sender_id", "receiver_id", "memo"):
        told = {"kind": "token", "asset": "nep141:a.near", "amount": 1, member: SCRIPT}
        html = card([], transfers=frame("transfers", [told]))
        assert "<script" not in html
        assert "&lt;script&gt;" in html


def test_a_script_in_headline_and_explanation_stays_text():
    """Both name accounts and methods."""
    html = card([], headline=SCRIPT, explanation=f"One.\n{SCRIPT}\n\nTwo.")
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 2
    assert "<p>One.<br>&lt;script&gt;" in html
    assert "<p>Two.</p>" in html


def test_nothing_but_structure_is_written():
    """No element loads, links or runs anything, or styles more than the indent of a list."""
    page = Page(card([receipt("A", logs=["a"]), receipt("B", "A")]))
    known = "br caption code details div h3 li p strong summary table tbody td th thead tr ul"
    assert {name for name, _ in page.elements} <= set(known.split())
    told = {key for _, attributes in page.elements for key in attributes}
    assert told == {"class", "data-label", "open", "scope", "style"}
    styles = {(name, told["style"]) for name, told in page.elements if "style" in told}
    assert styles == {("ul", "padding-left:1.5em")}
    assert page.elements[0] == ("div", {"class": "ledgerkit-trace tex2jax_ignore mathjax_ignore"})
    assert page.elements[1] == ("h3", {})


def test_arguments_are_json_and_bytes_are_counted():
    """Bytes are shown by their first 32."""
    told = [receipt("A", args={"to": "bob.near", "n": 1}), receipt("B", "A", args=bytes(range(40)))]
    texts = Page(card(told)).texts
    assert '{"to": "bob.near", "n": 1}' in texts
    assert f"40 bytes: {bytes(range(32)).hex()}" in texts


def test_long_texts_are_shortened():
    """Ten megabytes of logs, a long method and deep arguments make a small card."""
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    told = receipt("A", logs=["x" * 10_000_000, *["y"] * 50], method_name="m" * 5000, args=deep)
    html = card([told])
    assert len(html) < 5000
    assert "and 41 more lines" in html


def test_invisible_letters_are_shown_as_such():
    """A text that turns its direction cannot change what is read beside it."""
    html = card([receipt("A", logs=["a\u202eb\x00c"])])
    assert r"a\u202eb\x00c" in html


def test_a_long_chain_is_bounded():
    """Of 300 receipts, each made by the one before, 200 are told; lists end at depth 30."""
    told = [receipt(f"R{at}", f"R{at - 1}" if at else None, depth=at) for at in range(300)]
    page = Page(card(told))
    assert page.summaries[0] == (0, "Receipts as a tree (300)")
    assert max(depth for depth, _ in page.summaries) == 31
    assert len([1 for _, text in page.summaries if text.endswith("swap on dex.near")]) == 200
    assert "and 100 more in the frame" in page.texts
    assert len(page.cells) == 201 * 9


def test_a_long_tree_begins_folded():
    """Forty receipts are open, forty-one are not, and then the explanation is."""
    for n, is_open in ((40, True), (41, False)):
        told = [receipt("A"), *(receipt(f"R{at}", "A") for at in range(n - 1))]
        page = Page(card(told))
        opened = ["open" in attributes for name, attributes in page.elements if name == "details"]
        assert (opened[0], opened[-3]) == (is_open, not is_open)


def test_receipts_that_contradict_each_other_are_each_told_once():
    """A ring, an id twice and a creator that is not there end no card and repeat nothing."""
    told = [receipt("A", "gone"), receipt("B", "A"), receipt("B", "A"), receipt("C", "B")]
    page = Page(card(told))
    lines = [text for _, text in page.summaries if text.endswith("swap on dex.near")]
    assert len(lines) == 4


def test_what_is_not_told_is_said_so():
    """Old documents lack bodies: nobody is named None, and no number is invented."""
    told = {"receipt_id": "A", "status": "unknown"}
    page = Page(card([told]))
    assert page.rows(9)[1] == ["1", "unknown", "unknown", "", "", "", "", "", "? unknown"]
    assert page.summaries[1] == (1, "? unknown: unknown on unknown")
    assert not any("None" in text or "nan" in text for text in page.texts)


def test_data_twice_from_one_receipt_is_waited_for_once():
    """Two data_ids may lead from one receipt to another."""
    edge = {"parent_id": "A", "child_id": "B", "kind": "data"}
    twice = frame("edges", [{**edge, "data_id": "d"}, {**edge, "data_id": "e"}])
    page = Page(card([receipt("A"), receipt("B", "A")], edges=twice))
    assert page.rows(9)[2][7] == "1"


def test_nothing_is_said():
    """An empty trace has a card too."""
    page = Page(card([]))
    assert page.texts.count("none") == 3
