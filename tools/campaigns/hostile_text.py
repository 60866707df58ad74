"""
No text from the chain or a host takes effect, hides or becomes a formula where it is displayed.

Each string is put in every place of a transaction, of a token and of an error, and what
ledgerkit shows of it is read back: errors, warnings, explanations, the command line, the cards,
panels and plots of a notebook, and CSV. It must have no control character, no change of direction
and no invisible character, no markup, and no formula of a spreadsheet or of matplotlib.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
import tempfile
import traceback
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import httpx
import pandas as pd

import ledgerkit as lk
from ledgerkit import cli, errors, user_warnings
from ledgerkit.plots.canvas import mpl
from ledgerkit.tracing.trace import Trace
from ledgerkit.tracing.traces import Traces
from ledgerkit.widgets import _downloads, _html, gallery
from ledgerkit.widgets._table import Table
from ledgerkit.widgets._trace_view import TraceView
from tests import hostile
from tests.unit import builders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.campaigns._campaign import Tally

COUNT = 10_000
SMALL = 40
EXPECTED = ("terminal", "html", "csv", "svg", "prompt", "escaped", "apostrophes", "markup escaped")
BATCH = 40  # strings of one table, panel and plot
SHORT = 0.95  # the share of strings that are not repeated 40 times
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
FORMULA = re.compile(r"(^|[;\t\r\n])[\s\"]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
SVG = "{http://www.w3.org/2000/svg}"
DRAWN = set("svg metadata defs style g path text tspan use rect clipPath pattern title".split())

# Strings -----------------------------------------------------------------------------------

PIECES = (
    *("\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;http://x.example\x1b\\", "\x1bP1$q\x1b\\", "\x9b31m"),
    *("\x9d52;c;AA\x9c", *"\x07\r\n\t\x00\x7f\x85", "\x08\x08", "\r\n", "\v\f", "\u0301" * 9),
    *"\u202e\u202a\u202d\u2066\u2067\u2068\u2069\u202c\u200e\u200f\u061c\u200b\u2060\ufeff\u00ad",
    *"\u034f\u3164\u2028\u2029\U000e0041\U000e007f\ud800\udc00\ue000\uffff\ufe0f\u200d\u200c",
    *("\U0001f469\u200d\U0001f680", "\u2764\ufe0f", "\u0645\u200c", "\u05d0\u05d1", "\u4e2d\u6587"),
    *("=", "+", "-", "@", "\uff1d1", "=1+1", "-2+3", '=HYPERLINK("x")', ";=1+1", ';"=1', "-12"),
    *(hostile.MARKUP, hostile.BREAKS_OUT, hostile.FORMULA, hostile.ADDRESS, "<b>", "&lt;", "]]>"),
    *(
        "+3.5",
        "$x^2$",
        "$\\frac{",
        "\\(x\\)",
        "{0}",
        "%s",
        "%n",
        "\\x1b",
        *"'\"`| ,\u3000\u00a0",
        "  ",
    ),
    *("alice.near", "gold", "100 NEAR", ".near", *"⟦⟧〚〛"),
)


def strings(count: int, seed: int) -> Iterator[str]:
    """Yield hostile strings: pieces in any order, with characters of every kind between them."""
    rng = random.Random(seed)
    for _ in range(count):
        pieces = [rng.choice(PIECES) for _ in range(rng.randint(1, 6))]
        pieces += [chr(rng.randrange(rng.choice((0x100, 0x3000, 0x110000)))) for _ in range(2)]
        rng.shuffle(pieces)
        yield "".join(pieces) * (1 if rng.random() < SHORT else 40)


def in_json(text: str) -> str:
    """Replace surrogates, which no JSON document can have."""
    return re.sub("[\ud800-\udfff]", "?", text)


# Checks ------------------------------------------------------------------------------------


class Reader:
    """The reader of what is shown; it counts, and notes violations with the strings."""

    def __init__(self, tally: Tally, texts: list[str]) -> None:
        self.tally = tally
        self.texts = texts

    def judge(self, kind: str, where: str, wrong: object) -> None:
        """Count what was shown, and note what is wrong, if anything."""
        self.tally.count(kind)
        if wrong:
            self.tally.violate(f"{where}: {wrong!r:.300} of the strings {self.texts!a:.300}")

    def terminal(self, where: str, text: str, keep: str = "\n") -> None:
        """Check a text that a terminal shows."""
        if "\\u202e" in text or "\\x1b" in text:
            self.tally.count("escaped")
        self.judge("terminal", where, hostile.hidden_characters(text, keep))

    def html(self, where: str, page: str) -> None:
        """Check a fragment that a browser shows."""
        if "&lt;script" in page:
            self.tally.count("markup escaped")
        wrong = ""
        try:
            hostile.read(page)
        except AssertionError as error:
            wrong = str(error) or page
        self.judge("html", where, wrong)

    def prompt(self, where: str, text: str) -> None:
        """Check a text for a prompt: no mark is within another, and no text is hidden."""
        marks = re.sub("[^⟦⟧〚〛]", "", text).replace("⟦⟧", "")
        self.judge("prompt", where, marks or hostile.hidden_characters(text))

    def csv(self, where: str, text: str) -> None:
        """Check a file that a spreadsheet opens."""
        wrong = hostile.hidden_characters(text, "\n")
        for row in csv.reader(io.StringIO(text, newline="")):
            if any(cell.startswith("'") for cell in row):
                self.tally.count("apostrophes")
            wrong += [c for c in row if FORMULA.search(c) and not NUMBER.fullmatch(c)]
        self.judge("csv", where, wrong)

    def svg(self, where: str, axes: Any) -> None:
        """Check a plot: its labels, and its elements as SVG."""
        plt, wrong = mpl("pyplot"), []
        for label in axes.figure.findobj(mpl("text").Text):
            text = label.get_text()
            is_power = text.startswith("$\\mathdefault")  # matplotlib's own, on an axis
            is_formula = "$" in text and not is_power and label.get_parse_math()
            wrong += hostile.hidden_characters(text, "\n") or [text] * is_formula
        buffer = io.BytesIO()
        with plt.rc_context({"svg.fonttype": "none"}), unknown_glyphs():
            axes.figure.savefig(buffer, format="svg")
        plt.close(axes.figure)
        try:
            elements = list(ET.fromstring(buffer.getvalue()).iter())  # noqa: S314 - our own file
        except ET.ParseError as error:
            elements, wrong = [], [*wrong, str(error)]
        for element in elements:
            is_ours = not element.tag.startswith(SVG) or element.tag.removeprefix(SVG) in DRAWN
            has_script = any(name.startswith("on") for name in element.attrib)
            wrong += hostile.hidden_characters(element.text or "")
            wrong += [element.tag] * (has_script or not is_ours)
        self.judge("svg", where, wrong)


# Places ------------------------------------------------------------------------------------


def transaction(texts: list[str]) -> dict[str, Any]:
    """Build the document of a transaction with a receipt for each string."""
    ids = [f"R{at}" for at in range(len(texts))]
    outcomes, bodies = [], []
    for at, (receipt_id, text) in enumerate(zip(ids, texts, strict=True)):
        row = {"owner_id": text, "amount": "5", "memo": text, "token_ids": [text]}
        move = {"old_owner_id": text, "new_owner_id": f"{text}.near", "amount": "7", "memo": text}
        events = (
            ("nep171", "nft_mint", row),
            ("nep141", "ft_transfer", move),
            ("nep141", "ft_mint", row),
        )
        fields: dict[str, Any] = {
            "logs": [text, *(builders.event(*each) for each in events)],
            "status": builders.failing(text) if at % 2 else {"SuccessValue": "Zm9v"},
            "executor_id": text,
        }
        outcomes.append(builders.outcome(receipt_id, () if at else ids[1:], **fields))
        call = builders.call(text, 10**24, {text: [text]})
        bodies.append(builders.body(receipt_id, call, sender=text, to=text))
    first = texts[0]
    call = builders.call(first, 10**24, {"receiver_id": first, "msg": first})
    document = builders.result(
        outcomes, bodies, actions=[call], to=first, status=builders.failing(first)
    )
    document["transaction"] |= {"hash": first, "signer_id": first}
    document["transaction_outcome"]["id"] = first
    return document


def holdings(texts: list[str]) -> dict[str, Any]:
    """Build the document of an account that holds tokens of these names."""
    nfts = [{"contract_id": text, "last_update_block_height": 7} for text in texts]
    rows = [{**row, "balance": "5"} for row in nfts]
    pools = [{"pool_id": text, "last_update_block_height": 7} for text in texts]
    state = {"balance": "1", "locked": "0", "storage_bytes": 1}
    return {"account_id": texts[0], "tokens": rows, "nfts": nfts, "pools": pools, "state": state}


def raised(text: str) -> Iterator[lk.LedgerError]:
    """Yield errors that quote a string."""
    yield lk.LedgerError(text, remedy=text, request=text)
    yield errors.ContractPanicError(panic_msg=text)
    yield errors.UnknownAccountError(account_id=text, block_height=7)
    yield errors.from_status(503, text, request=f"GET /{text}")
    yield errors.InvalidRequestError.refuse("field", text, text)
    yield errors.FileError(operation=text, reason=text)


def show_errors(reader: Reader, text: str) -> None:
    for error in raised(text):
        reader.terminal("str(error)", str(error), keep="")
        reader.terminal("repr(error)", repr(error), keep="")
        reader.terminal("traceback", "".join(traceback.format_exception(error)))
        reader.html("alert", _html.alert(error))
    with user_warnings.collect_warnings() as messages:
        user_warnings.warn(text)
    reader.terminal("warning", messages[0], keep="")


def show_trace(reader: Reader, text: str) -> None:
    trace = Trace.from_json(transaction([in_json(text)] * 2))
    for name in ("explain", "headline", "__repr__"):
        reader.terminal(name, getattr(trace, name)())


def run_command(reader: Reader, *argv: str) -> str:
    """Run a command, check its messages, and return what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), suppress(SystemExit):
        cli.main(list(argv))
    reader.terminal(f"messages of {argv[0]}", err.getvalue())
    reader.terminal(" ".join(argv[:3]), out.getvalue())
    return out.getvalue()


def show_commands(reader: Reader, folder: Path, number: int) -> None:
    texts = [in_json(text) for text in reader.texts]
    name = ("account", "ft", "nft", "staking")[number % 4]
    documents = {"receipts": transaction(texts), name: holdings(texts)}
    for name, document in documents.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(document))
        for form in ("table", "json", "csv"):
            printed = run_command(reader, name, "--format", form, "--from-file", str(path))
            if form == "csv":
                reader.csv(f"{name} --format csv", printed)
    run_command(reader, "ft", texts[0].replace("\0", ""), texts[1], "--network", "local")


def show_notebook(reader: Reader) -> None:
    """Check the cards of a notebook, and the fragments and files of panels."""
    texts = [in_json(text) for text in reader.texts]
    trace = Trace.from_json(transaction(texts))
    receipts = trace.receipts
    frame = pd.DataFrame({texts[0]: texts, "value": [[text] for text in texts]})
    titles = dict.fromkeys(("title", "token_id", "contract_id", "description", "media"), texts)
    view, order = TraceView(trace), range(len(receipts))
    messages = [view.describe(), *(view.handle({"do": "receipt", "at": n}) for n in order)]
    for text in message_texts(messages):
        reader.terminal("trace view", text)
    reader.html("table", Table(frame, texts[0]).static())
    reader.html("facts", _html.facts_table(frame, zip(texts, texts, strict=True)))
    reader.html("bars", _html.bars(dict.fromkeys(texts[:3], 1), texts[0]))
    reader.html("preformatted", _html.preformatted(json.dumps(texts)))
    reader.html("gallery", gallery.cards(pd.DataFrame(titles)))
    for table in (receipts, frame, trace.events, trace.transfers):
        reader.csv("download", _downloads.FORMATS["csv"].write(table).decode())
    for item in objects(texts, trace):
        reader.terminal("repr", repr(item))
        reader.html(f"card of {type(item).__name__}", item._repr_html_())
        if hasattr(item, "to_context"):
            reader.prompt(f"context of {type(item).__name__}", item.to_context())
    show_panel(reader, texts)


def message_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for member in value.values() if isinstance(value, dict) else value:
            yield from message_texts(member)


def objects(texts: list[str], trace: Trace) -> Iterator[Any]:
    """Yield objects that a notebook shows as cards; `tests/unit/test_hostile.py` has the others."""
    document = json.dumps(holdings(texts)).encode()
    yield trace
    yield Traces({texts[0]: trace})
    frames = (lk.read_response(document, view) for view in ("accounts", "ft", "nft", "staking"))
    yield lk.types.Snapshot(texts[0], *frames)


def show_panel(reader: Reader, texts: list[str]) -> None:
    """Check the bundle and the widgets of a panel that reads the strings from a contract."""

    def answer(request: httpx.Request) -> httpx.Response:
        call = json.loads(request.content)
        value = list(json.dumps(texts).encode())
        result = {"result": value, "logs": texts, "block_height": 1, "block_hash": "1" * 32}
        return httpx.Response(200, json={"jsonrpc": "2.0", "id": call["id"], "result": result})

    with lk.connect("lab", transport=httpx.MockTransport(answer)) as ledger:
        panel = lk.widgets.ContractViewer("trap.near", "names", ledger=ledger).press()
        refused = lk.widgets.ContractViewer(texts[0], texts[1], ledger=ledger).press()
        for each in (panel, refused):
            bundle = each._repr_mimebundle_()
            reader.terminal("text/plain", bundle["text/plain"])
            reader.html("text/html", bundle["text/html"])
            for fragment in hostile.fragments(each):
                reader.html("widget", fragment)
    reader.judge("panel", "panel", panel.error)


@contextmanager
def unknown_glyphs() -> Iterator[None]:
    """Ignore matplotlib's warnings of characters that its fonts do not have."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def show_plot(reader: Reader, number: int) -> None:
    texts = [in_json(text) for text in reader.texts]
    kind = ("balances", "tree", "timeline", "gas", "flow")[number % 5]
    tokens = lk.read_response(json.dumps(holdings(texts)).encode(), "ft")
    tokens = tokens.assign(symbol=texts, decimals=0, account_id=texts[::-1])
    with unknown_glyphs():
        trace = Trace.from_json(transaction(texts))
        axes = lk.plots.balances(tokens, top=BATCH) if kind == "balances" else trace.plot(kind)
    reader.svg(f"plot of {kind}", axes)


def run(count: int, seed: int, tally: Tally) -> None:
    """Show the strings one by one, and in batches."""
    mpl("pyplot").switch_backend("agg")
    texts = list(strings(count, seed))
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, count, BATCH):
            batch = texts[start : start + BATCH]
            for text in batch:
                reader = Reader(tally, [text])
                show_errors(reader, text)
                show_trace(reader, text)
            reader = Reader(tally, batch)
            show_commands(reader, Path(folder), start // BATCH)
            show_notebook(reader)
            show_plot(reader, start // BATCH)
