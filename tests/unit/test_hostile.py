"""Hostile texts in every panel and card: they are read, and nothing of them runs."""

from __future__ import annotations

import ast
import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import ledgerkit as lk
from ledgerkit import client
from ledgerkit.frames import html_tables
from ledgerkit.widgets import _html, gallery
from tests import hostile
from tests.hostile import fragments, read

w = pytest.importorskip("ipywidgets")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import SimpleNamespace

    from ledgerkit.widgets._panel import Panel

PACKAGE = Path(lk.__file__).parent
LONGEST_PAGE = 250_000  # of the explorer: all panels, one with a plot


def seen(panel: Any) -> str:
    """Check all that a panel shows, with a front end and without; give what is read."""
    static = panel.static()
    assert len(static) < LONGEST_PAGE
    assert html_tables.NO_MATH in static
    panel._repr_mimebundle_()
    json.dumps(panel.view.get_state()).encode()  # as it is sent to the front end
    told = [read(one) for one in fragments(panel)]
    return " ".join([*told, read(static)])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """Make the hostile world, archive a widget of its into two collections, collect an account."""
    found = hostile.world()
    ledger = found.ledger
    found.archive, found.refused = (
        archived(ledger, "stamps.near"),
        archived(ledger, "refusing.near"),
    )
    found.verification = lk.archiving.verify_archive(
        found.archive, source=ledger, target=ledger, collection="stamps.near"
    )
    found.snapshot = lk.snapshot("near", ledger=ledger)
    found.statement = lk.statement("near", progress=False, ledger=ledger)
    folder = tmp_path_factory.mktemp("out") / f"{hostile.MARKUP}{hostile.FORMULA}".replace("/", "")
    found.collection = lk.collect(["near"], "ft", folder, ledger=ledger, progress=False)
    found.traces = {
        name: lk.trace(getattr(found, name).tx_hash, "near", ledger=ledger) for name in SENT
    }
    pairs = [(getattr(found, name).tx_hash, "near") for name in SENT]
    found.many = lk.traces(pairs, ledger=ledger, progress=False)
    yield found
    lk.disconnect()
    w.Widget.close_all()


SENT = ("logged", "odd", "unknown", "gone", "formula")


def archived(ledger: lk.Ledger, collection: str) -> lk.archiving.Archive:
    return lk.archiving.archive_widget(
        "near",
        "Clock",
        "near",
        source=ledger,
        target=ledger,
        collection=collection,
        signer=lk.signer("near", ledger.world.keys()["near"]),
        title=hostile.MARKUP,
        description=hostile.BREAKS_OUT,
    )


@pytest.fixture
def host() -> Iterator[lk.Ledger]:
    """Connect to a host that puts markup into every text."""
    with lk.connect("lab", transport=httpx.MockTransport(hostile.answer)) as ledger:
        yield ledger


# Panels -----------------------------------------------------------------------------------

ACCOUNTS = ("near", "aa", hostile.LONGEST_ID, hostile.IMPLICIT_ID, hostile.ETHEREUM_ID)
WRONG = [hostile.TEXTS[name] for name in ("quotes", "turned", "marks", "long")]


def account(one: str, found: Any) -> Panel:
    return lk.widgets.AccountExplorer(one, ledger=found.ledger)


def transaction(name: str, found: Any) -> Panel:
    tx_hash = getattr(found, name).tx_hash
    return lk.widgets.TransactionExplorer(tx_hash, "near", ledger=found.ledger)


def answer(name: str, found: Any) -> Panel:
    args = json.dumps({"name": name})
    return lk.widgets.ContractViewer("trap.near", "answer", args, ledger=found.ledger)


def tokens_of(name: str, found: Any) -> Panel:
    return lk.widgets.NftGallery("near", f"{name}.near", ledger=found.ledger)


# Answers that are cut: the mark at the cut, and the shape of the frame, which has all.
LONG = {
    "megabyte": ("more characters", (1, 1)),
    "numbers": ("more rows in .result", (hostile.MEGABYTE // 2, 1)),
    "nested": ("more characters", (2, 1)),
    "columns": ("more characters", (1, 1)),
    "diagonal": ("more rows in .result", (50_000, 1)),
    "deep": ("more characters", (1, 1)),
    "levels": ("more characters", (1, 1)),
    "wide": ("more columns in .result", (1, 150)),
}
# Texts and long answers have tests of their own below.
ODD = [name for name in hostile.ANSWERS if name not in hostile.TEXTS and name not in LONG]
ASKED: dict[str, Callable[[Any], Panel]] = {
    **{f"account {one}": partial(account, one) for one in ACCOUNTS},
    **{f"transaction {name}": partial(transaction, name) for name in SENT},
    **{f"view {name}": partial(answer, name) for name in ODD},
    "gallery": lambda found: lk.widgets.NftGallery("near", ledger=found.ledger),
    "token": lambda found: lk.widgets.TokenExplorer("markup.near", ledger=found.ledger),
    "symbol": lambda found: lk.widgets.Search(
        hostile.MARKUP, tokens=["markup.near"], ledger=found.ledger
    ),
    "statement": lambda found: lk.widgets.StatementExplorer("near", ledger=found.ledger),
    "method": lambda found: lk.widgets.ContractViewer(
        "trap.near", hostile.METHOD, ledger=found.ledger
    ),
    "staking": lambda found: lk.widgets.StakingExposure(ACCOUNTS, ledger=found.ledger),
    "staking of pools": lambda found: lk.widgets.StakingExposure(
        ACCOUNTS, nonzero=True, ledger=found.ledger
    ),
    "sending": lambda found: lk.widgets.SendForm(
        "near",
        hostile.LONGEST_ID,
        method_name=hostile.METHOD,
        args=json.dumps({hostile.MARKUP: hostile.BREAKS_OUT}),
        ledger=found.ledger,
    ),
    "archive": lambda found: lk.widgets.ArchiveFlow(
        "near", "Clock", "near", "stamps.near", "near", ledger=found.ledger
    ),
    "archive refused": lambda found: lk.widgets.ArchiveFlow(
        "near", "Clock", "near", "refusing.near", "near", ledger=found.ledger
    ),
}
REFUSED: dict[str, Callable[[Any, str], Panel]] = {
    "AccountExplorer": lambda found, text: lk.widgets.AccountExplorer(text, ledger=found.ledger),
    "KeyLookup": lambda found, text: lk.widgets.KeyLookup(text, ledger=found.ledger),
    "TransactionExplorer": lambda found, text: lk.widgets.TransactionExplorer(
        text, text, ledger=found.ledger
    ),
    "BlockExplorer": lambda found, text: lk.widgets.BlockExplorer(text, ledger=found.ledger),
    "StatementExplorer": lambda found, text: lk.widgets.StatementExplorer(
        text, text, text, ledger=found.ledger
    ),
    # The text alone is the symbol of a token, which a search lists.
    "Search": lambda found, text: lk.widgets.Search(f"no {text}", ledger=found.ledger),
    "StakingExposure": lambda found, text: lk.widgets.StakingExposure([text], ledger=found.ledger),
    "TokenExplorer": lambda found, text: lk.widgets.TokenExplorer(text, ledger=found.ledger),
    "ContractViewer": lambda found, text: lk.widgets.ContractViewer(
        "trap.near", text, text, at=text, ledger=found.ledger
    ),
    "NftGallery": lambda found, text: lk.widgets.NftGallery(text, text, ledger=found.ledger),
    "SendForm": lambda found, text: lk.widgets.SendForm(
        text, text, text, method_name=text, args=text, ledger=found.ledger
    ),
    "ArchiveFlow": lambda found, text: lk.widgets.ArchiveFlow(
        text, text, text, text, text, ledger=found.ledger
    ),
}


def test_a_panel_answers_and_shows_texts_only(subtests: pytest.Subtests, made: SimpleNamespace):
    """Each question about the hostile world is answered; markup of it is words on the page."""
    for name, ask in ASKED.items():
        with subtests.test(name=name):
            panel = ask(made).press()

            assert panel.error is None
            assert panel.result is not None
            assert seen(panel)


def test_what_is_typed_is_refused_as_text(subtests: pytest.Subtests, made: SimpleNamespace):
    """A text that is no id, hash or key is refused with its words, and the panel goes on."""
    cases = [*((name, hostile.MARKUP) for name in REFUSED), *(("Search", text) for text in WRONG)]
    for name, text in cases:
        with subtests.test(name=name):
            panel = REFUSED[name](made, text).press()

            assert isinstance(panel.error, lk.LedgerError)
            assert re.search("is not valid: expected|is not shown: expected", seen(panel))
            assert panel.is_busy is False


def test_every_panel_is_among_these():
    """No panel with a form is left out, here or in the tests of hosts below."""
    without_form = {"Explorer", "FrameView", "TracePanel", "explore", "show"}
    everyone = set(lk.widgets.__all__) - without_form

    assert everyone == {*REFUSED, "NetworkPicker"}


def test_a_panic_is_only_text(made: SimpleNamespace):
    """What a contract panics with, in a view call and in a transaction, is words."""
    for method in ("refuse", hostile.MARKUP):
        panel = lk.widgets.ContractViewer("trap.near", method, ledger=made.ledger).press()
        assert hostile.MARKUP in seen(panel)

    told = seen(transaction("logged", made).press())
    assert f"failed: Smart contract panicked: {hostile.MARKUP}" in told


def test_a_call_that_fails_is_sent_and_told(made: SimpleNamespace):
    """The form previews and sends a call of a method named in markup; its panic is words."""
    args = json.dumps({"bait": hostile.MARKUP})
    form = lk.widgets.SendForm(
        "near", "trap.near", method_name="spring", args=args, ledger=made.ledger
    )
    assert hostile.MARKUP in seen(form.press())

    form.submit()

    assert ": final, failed." in seen(form)
    assert hostile.MARKUP in seen(form)
    assert hostile.MARKUP in form.submission.failure.panic_msg


def test_a_pending_transaction_is_told(made: SimpleNamespace):
    """What is not final yet is shown as far as it is, and asked again it is final."""
    world = made.ledger.world
    world.hold_finality()
    sent = lk.call(
        "trap.near", "log", gas="100 Tgas", signer_id="near", wait_until="NONE", ledger=made.ledger
    )
    panel = lk.widgets.TransactionExplorer(sent.tx_hash, "near", ledger=made.ledger).press()
    assert panel.error is None
    assert "is EXECUTED_OPTIMISTIC and not final yet" in seen(panel)

    world.hold_finality(hold=False)
    world.settle()

    assert panel.press().error is None
    assert "not final yet" not in seen(panel)
    assert hostile.MARKUP in seen(panel)
    assert "accepted" in read(sent._repr_html_())


@pytest.mark.parametrize(
    "make",
    [
        lambda host: lk.widgets.AccountExplorer("a.near", details=False, ledger=host),
        lambda host: lk.widgets.KeyLookup("ed25519:" + "1" * 32, ledger=host),
        lambda _: lk.widgets.NetworkPicker("testnet"),
    ],
    ids=["account", "key", "network"],
)
def test_a_hostile_host_is_only_text(make: Any, host: lk.Ledger, monkeypatch: pytest.MonkeyPatch):
    """Markup in place of ids, hashes and versions shows as text, options of a choice too."""
    monkeypatch.setattr(client, "connect", lambda *_, **__: host)
    panel = make(host).press()

    assert panel.error is None
    assert hostile.MARKUP in seen(panel)


def test_the_explorer_shows_all_of_it(made: SimpleNamespace):
    """All panels in one, each with its hostile answer, are words only."""
    explorer = lk.explore(ledger=made.ledger)
    explorer.account.fields["account_id"].value = "near"
    explorer.transaction.fields["tx_hash"].value = made.logged.tx_hash
    explorer.transaction.fields["signer_id"].value = "near"
    explorer.contract.fields["contract_id"].value = "markup.near"
    explorer.contract.fields["method_name"].value = hostile.MARKUP
    explorer.nfts.fields["account_id"].value = "near"
    explorer.statement.fields["account_id"].value = "near"
    for panel in explorer.panels:
        panel.press()
    shown = seen(explorer)

    assert shown.count(hostile.MARKUP) > len(explorer.panels)


# What is cut, and what is kept -------------------------------------------------------------


def test_frames_hold_texts_exactly(subtests: pytest.Subtests, made: SimpleNamespace):
    """Whatever a page makes of a text, it is words; values and frames have it to the letter."""
    for name in hostile.TEXTS:
        with subtests.test(name=name):
            text = hostile.TEXTS[name]
            told = answer(name, made).press()
            assert seen(told)
            assert told.value == {text: [text, {text: text}]}
            assert told.result is not None
            assert told.result["name"].tolist() == [text]
            assert told.result["value"].tolist() == [[text, {text: text}]]

            gallery_of_one = tokens_of(name, made).press()
            assert seen(gallery_of_one)
            tokens = gallery_of_one.result
            assert tokens is not None
            for column in ("token_id", "title", "media", "extra", "reference"):
                assert tokens[column].iloc[0] == text
            assert tokens["description"].iloc[1] == text + "d" * hostile.MEGABYTE


def test_receipts_hold_logs_and_panics_exactly(made: SimpleNamespace):
    """Logs, broken events, a method's name, arguments and a panic stand as the chain has them."""
    logged = ASKED["transaction logged"](made).press().result
    assert logged is not None
    assert logged["logs"].tolist()[0] == list(hostile.BAITS)
    assert hostile.MARKUP in logged["error_message"].dropna().iloc[0]

    odd = ASKED["transaction odd"](made).press().result
    assert odd is not None
    assert odd["method_name"].iloc[0] == hostile.METHOD
    assert odd["args"].iloc[0] == {hostile.MARKUP: [hostile.BREAKS_OUT, hostile.TEXTS["turned"]]}


@pytest.mark.parametrize("name", LONG)
def test_what_is_long_is_cut_with_a_mark(name: str, made: SimpleNamespace):
    """A page of a megabyte says how much is left out, and the frame has all of it."""
    mark, shape = LONG[name]
    panel = answer(name, made).press()

    assert mark in seen(panel)
    assert panel.result is not None
    assert panel.result.shape == shape
    kept = hostile.ANSWERS[name]
    assert panel.value == (kept if isinstance(panel.value, bytes) else json.loads(kept))


def test_letters_stay_in_their_place():
    """Of marks on one letter four are shown; what turns a line, or does not print, is a mark."""
    assert _html.text("a\u202eb\x00c\ud800") == r"a\u202eb\x00c\ud800"
    assert _html.text("Z" + "\u0301" * 9 + "n") == "Z" + "\u0301" * 4 + r"\u0301" * 5 + "n"
    assert _html.text("नमस्ते, Việt") == "नमस्ते, Việt"
    assert _html.preformatted("a\u202e\nb") == "<pre>a\\u202e\nb</pre>"
    assert _html.preformatted("p" * 20_001).endswith("<p>… and 1 more character</p>")


def test_a_hostile_base_address_loads_nothing(subtests: pytest.Subtests):
    """Media that continues a base that is no address is shown as words."""
    for base in hostile.TEXTS:
        with subtests.test(base=base):
            address = gallery.media_address("a.png", hostile.TEXTS[base])

            assert address.endswith("a.png")
            assert gallery.picture_source(address) is None


# Cards ------------------------------------------------------------------------------------

CARDS: dict[str, Callable[[Any], list[object]]] = {
    "Snapshot": lambda made: [made.snapshot],
    "Statement": lambda made: [made.statement],
    "Trace": lambda made: list(made.traces.values()),
    "Traces": lambda made: [made.many],
    "Submission": lambda made: [getattr(made, name) for name in SENT],
    "Archive": lambda made: [made.archive, made.refused],
    "Verification": lambda made: [made.verification],
    "Collection": lambda made: [made.collection],
    "Human": lambda made: [
        *(lk.human(trace.receipts) for trace in made.traces.values()),
        *(lk.human(getattr(made.snapshot, name)) for name in ("state", "ft", "nft", "staking")),
    ],
}


def test_a_card_shows_texts_only(subtests: pytest.Subtests, made: SimpleNamespace):
    """What a notebook shows of a result is words, whatever the chain wrote into it."""
    for name, cards in CARDS.items():
        with subtests.test(name=name):
            for one in cards(made):
                html = one._repr_html_()  # type: ignore[attr-defined]  # which the test below asks for
                assert read(html)
                assert len(html) < LONGEST_PAGE
                # A notebook would draw formulas, with links that run; this class forbids it.
                assert html.partition(">")[0].endswith(
                    f'ledgerkit-{name.lower()} {html_tables.NO_MATH}"'
                )


def test_every_card_is_among_these():
    """No class that draws itself is left out."""
    classes = {
        node.name
        for path in PACKAGE.rglob("*.py")
        if "_repr_html_" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        and any(getattr(one, "name", "") == "_repr_html_" for one in node.body)
    }

    assert classes == set(CARDS)


def test_cards_tell_what_is_hostile(made: SimpleNamespace):
    """Markup in a panic, a log and a mint that was refused is read on the cards."""
    assert hostile.MARKUP in read(made.traces["logged"]._repr_html_())
    assert hostile.METHOD in read(made.traces["odd"]._repr_html_())
    assert hostile.MARKUP in read(made.logged._repr_html_())
    assert hostile.MARKUP in read(made.refused._repr_html_())
