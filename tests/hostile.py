"""A world in which every text is hostile: markup, scripts, megabytes, unprintable characters."""

from __future__ import annotations

import json
import re
from html import escape
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unicodedata import category

import httpx

import ledgerkit as lk
from ledgerkit.localnet import Contract, call, view
from ledgerkit.localnet.contracts.non_fungible_token import NonFungibleToken, Token, TokenMetadata
from ledgerkit.localnet.contracts.social_db import SocialDb
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import AccountId  # noqa: TC001 - annotations are read when it runs
from ledgerkit.widgets import _html

if TYPE_CHECKING:
    from collections.abc import Iterator

MEGABYTE = 2**20
RAN = "window.hurt"  # set by each script if it runs
MARKUP = f"<script>{RAN}=1</script><img/src=x/onerror={RAN}=2>"  # without a space
BREAKS_OUT = f"\"'><svg/onload={RAN}=3></td></pre></div></textarea></title><!--"
FORMULA = f"$\\href{{javascript:{RAN}=4}}{{x}}$ \\(\\unicode{{x}}\\)"
SCRIPTED = f"data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg' onload='{RAN}=5'/>"
ADDRESS = f"javascript:{RAN}=6"
TEXTS = {
    "markup": MARKUP,
    "quotes": BREAKS_OUT,
    "formula": FORMULA,
    "picture": SCRIPTED,
    "address": ADDRESS,
    "turned": "abc\u202efdp.exe\u2066\u200b\x00\x07end",
    "marks": "Z" + "\u0301\u0489" * 250 + "end",
    "long": "n" * 10_000 + MARKUP,
    "cell": '=HYPERLINK("http://elsewhere.example/";"x")\r\n,";',
}
METHOD = f"<b/onclick={RAN}=7>"  # a contract may export any name
LONGEST_ID = "a" * 59 + ".near"
IMPLICIT_ID = "ab" * 32
ETHEREUM_ID = "0x" + "cd" * 20
DEEP = b"[" * 400_000 + b"]" * 400_000
ANSWERS: dict[str, bytes] = {
    **{name: json.dumps({text: [text, {text: text}]}).encode() for name, text in TEXTS.items()},
    "megabyte": json.dumps(MARKUP + "m" * MEGABYTE).encode(),
    "numbers": json.dumps([7] * (MEGABYTE // 2)).encode(),
    "nested": json.dumps([[[7] * (MEGABYTE // 4)], {"a": [7] * (MEGABYTE // 4)}]).encode(),
    "columns": json.dumps([{f"k{at}": at for at in range(60_000)}]).encode(),
    "diagonal": json.dumps([{f"k{at}": at} for at in range(50_000)]).encode(),
    "wide": json.dumps([{f"k{at}": at for at in range(150)}]).encode(),
    "deep": DEEP,
    "levels": b"[" * 500 + b"]" * 500,
    "digits": b"[" + b"9" * MEGABYTE + b"]",
    "surrogate": b'["\\ud800", "a\\udfffb"]',
    "bytes": b"\xff\xfe<script>\x00" * 1000,
    "broken": b'{"a": "<script>',
    "same": b'[{"": 1, " ": 2, "index": 3, "a\\u0000": 4}]',
    "nothing": b"",
}

STATUS = {  # of a node
    "chain_id": MARKUP,
    "sync_info": {
        "latest_block_height": 1,
        "latest_block_hash": BREAKS_OUT,
        "latest_block_time": "2026-01-01T00:00:00Z",
        "latest_state_root": MARKUP,
        "syncing": False,
    },
    "version": {"version": MARKUP, "build": BREAKS_OUT},
}


def event(standard: str, name: str, *rows: dict[str, Any]) -> str:
    fields = {"standard": standard, "version": MARKUP, "event": name, "data": rows}
    return "EVENT_JSON:" + json.dumps(fields)


BAITS = (
    MARKUP,
    FORMULA,
    TEXTS["turned"],
    "EVENT_JSON:{" + MARKUP,
    "EVENT_JSON:[[[[[[",
    event(MARKUP, MARKUP, {MARKUP: MARKUP}),
    event("nep141", "ft_transfer", {"old_owner_id": MARKUP, "new_owner_id": 7, "amount": MARKUP}),
    event("nep141", "ft_mint", {"owner_id": "near", "amount": "5", "memo": MARKUP}),
    event("nep171", "nft_mint", {"owner_id": "near", "token_ids": [MARKUP, BREAKS_OUT]}),
)


class Named(Contract):
    """A token with hostile metadata: the one of its account's name in `TEXTS`."""

    @property
    def text(self) -> str:
        return TEXTS[self.vm.current_account_id.partition(".")[0]]

    @view
    def ft_metadata(self) -> dict[str, Any]:
        fields = dict.fromkeys(("name", "symbol", "icon", "reference", "reference_hash"), self.text)
        return {**fields, "spec": "ft-1.0.0", "decimals": 255}

    @view
    def ft_balance_of(self, account_id: str) -> str:
        return str(2**128 - 1) if account_id else "0"

    @view
    def nft_metadata(self) -> dict[str, Any]:
        """Return the text in every field, also as the base address."""
        return {"spec": "nft-1.0.0", "name": self.text, "symbol": self.text, "base_uri": self.text}

    @view
    def nft_tokens_for_owner(self, account_id: str, from_index: str, limit: int) -> list[Any]:
        """Return a token with the text in every field, and one of a megabyte."""
        names = "title description media media_hash extra reference reference_hash".split()
        fields = dict.fromkeys([*names, "issued_at", "copies"], self.text)
        large = {**fields, "description": self.text + "d" * MEGABYTE, "media": "m" * MEGABYTE}
        tokens = [
            {"token_id": token_id, "owner_id": account_id, "metadata": metadata}
            for token_id, metadata in ((self.text, fields), ("large", large))
        ]
        return tokens[:limit] if from_index == "0" else []

    @call
    def mint(self, account_id: str) -> None:
        """Log events that list an account as a holder."""
        amount = {"owner_id": account_id, "amount": "1", "memo": self.text[:200]}
        self.event("nep141", "1.0.0", "ft_mint", [amount])
        self.event("nep171", "1.0.0", "nft_mint", [{"owner_id": account_id, "token_ids": ["1"]}])


class Pool(Contract):
    """A staking pool that returns text instead of amounts."""

    @view
    def get_account(self, account_id: str) -> dict[str, Any]:
        return {"account_id": account_id, "staked_balance": MARKUP, "unstaked_balance": MARKUP}

    @view
    def get_account_staked_balance(self, account_id: str) -> str:
        return MARKUP + account_id

    @call(payable=True)
    def deposit_and_stake(self) -> None:
        """Accept a deposit, so that the caller is listed."""


class Trap(Contract):
    """A contract with hostile return values, logs, panics and one hostile method name."""

    @view
    def answer(self, name: str) -> bytes:
        """Return the bytes of `ANSWERS` with this name."""
        return ANSWERS[name]

    @view
    def refuse(self) -> None:
        """Panic with a long message."""
        self.vm.panic(MARKUP + BREAKS_OUT + TEXTS["turned"] + "p" * 10_000)

    @call
    def log(self) -> str:
        """Log every bait, and call a method that panics."""
        for bait in BAITS:
            self.vm.log(bait)
        own = self.vm.current_account_id
        self.vm.promise(own).function_call(
            "spring", json.dumps({"bait": MARKUP}).encode(), gas=20 * TGAS
        )
        return MARKUP

    @call
    def spring(self, bait: str) -> None:
        self.vm.log(bait)
        self.vm.panic(bait)

    @call
    def odd(self) -> str:
        """Return markup, under a hostile method name."""
        return MARKUP


TGAS = 10**12
Trap.methods[METHOD] = Trap.odd


class Collection(NonFungibleToken):
    """A collection whose mint panics with a script."""

    @call(payable=True)
    def nft_mint(
        self, token_id: str, receiver_id: AccountId, metadata: TokenMetadata | None = None
    ) -> Token:
        self.vm.panic(MARKUP + FORMULA + token_id + receiver_id + str(metadata))


def world() -> SimpleNamespace:
    """
    Open the empty world, and send hostile transactions.

    Returns
    -------
    results
        `ledger`, and the submissions `logged`, `odd`, `unknown`, `gone` and `formula`.
    """
    opened = open_world("empty")
    opened.summary.contracts["liquid"] = "markup.near"
    ledger = lk.connect("local", world=opened)
    sends: dict[str, Any] = {"signer_id": "near", "wait_until": "FINAL", "ledger": ledger}
    for name in TEXTS:
        ledger.world.deploy(f"{name}.near", Named, balance="20 NEAR")
        lk.call(f"{name}.near", "mint", {"account_id": "near"}, **sends)
    deployed = {"trap": Trap, "pool": Pool, "social": SocialDb, "stamps": NonFungibleToken}
    for name, contract in {**deployed, "refusing": Collection}.items():
        ledger.world.deploy(f"{name}.near", contract, balance="50 NEAR")
    ledger.world.deploy(LONGEST_ID, Trap)
    for account_id in (IMPLICIT_ID, ETHEREUM_ID):
        lk.transfer(account_id, "1 NEAR", **sends)
    lk.call("pool.near", "deposit_and_stake", deposit="1 NEAR", **sends)
    about = {"spec": "nft-1.0.0", "name": MARKUP, "symbol": MARKUP, "base_uri": ADDRESS}
    for collection in ("stamps.near", "refusing.near"):
        lk.call(collection, "new", {"owner_id": "near", "metadata": about}, **sends)
    source = {"near": {"widget": {"Clock": MARKUP + "s" * 1_000}}}
    lk.call("social.near", "new", **sends)
    lk.call("social.near", "set_status", {"status": "Live"}, **sends)
    lk.call("social.near", "set", {"data": source}, deposit="1 NEAR", **sends)
    submissions = {
        "logged": lk.call("trap.near", "log", gas="100 Tgas", **sends),
        "odd": lk.call(LONGEST_ID, METHOD, {MARKUP: [BREAKS_OUT, TEXTS["turned"]]}, **sends),
        "unknown": lk.call("trap.near", f"<u>{MARKUP}</u>", {"a": MARKUP}, **sends),
        "gone": lk.transfer("aa", "1 NEAR", **sends),
        "formula": lk.call("trap.near", "spring", {"bait": FORMULA}, **sends),
    }
    return SimpleNamespace(ledger=ledger, **submissions)


def answer(request: httpx.Request) -> httpx.Response:
    pools = [{"pool_id": MARKUP, "last_update_block_height": 1}]
    if "public_key" in request.url.path:
        ids = [MARKUP, BREAKS_OUT, TEXTS["turned"]]
        return httpx.Response(200, json={"account_ids": ids})
    if request.method == "POST":
        call = json.loads(request.content)
        return httpx.Response(200, json={"jsonrpc": "2.0", "id": call["id"], "result": STATUS})
    view = {
        "tokens": [
            {"contract_id": MARKUP + FORMULA, "balance": "1", "last_update_block_height": 1}
        ],
        "nfts": [{"contract_id": BREAKS_OUT, "last_update_block_height": 1}],
        "pools": pools,
        "state": {"balance": "1", "locked": "0", "storage_bytes": 1},
    }
    return httpx.Response(200, json=view)


# What a page or a terminal may show ---------------------------------------------------------

VOID = {"br", "img"}
TAGS = set(
    "style div span p br strong small code pre h2 h3 h4 ul li a img figure figcaption details "
    "summary table caption thead tbody tr th td".split()
)
ATTRIBUTES = set(
    "class scope style role aria-live alt src href download loading referrerpolicy open "
    "border title data-kind data-id data-picture data-host data-alt data-label data-chosen".split()
)
DRAWN = set("svg g defs path use text tspan clippath rect pattern title".split())
INKS = set(
    "xmlns viewbox width height x y d transform clip-path id patternunits "
    "fill fill-opacity fill-rule opacity stroke stroke-width stroke-opacity stroke-dasharray "
    "stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit font-size font-weight "
    "font-style font-family text-anchor aria-label".split()
)
INSIDE = re.compile(r"#[\w-]+")  # a reference to a part of the same drawing
OWN = re.compile(r"data:(image/png|text/csv|application/vnd\.apache\.parquet);base64,[\w+/=]*")
LOOKS = re.compile(r"(?:[a-z-]+:\s?[\w#.%]+;?\s?)*")  # no address, no bracket
JOINERS = "\u200c\u200d\ufe0e\ufe0f"  # which emoji and scripts need between their characters
# Of https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt, without the joiners:
# Default_Ignorable_Code_Point as far as it is assigned.
IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
MISPLACED = re.compile(
    f"(^|[\\x00-\\x7f])[{JOINERS}](?!\u20e3)|[\u200c\u200d][{JOINERS}]|[\ufe0e\ufe0f]{{2}}"
)
MANY_MARKS = re.compile("[\u0300-\u036f\u0483-\u0489]{5,}")


def hidden_characters(text: str, keep: str = "\n\t") -> list[str]:
    """List what acts on a terminal, turns the direction of a line, or is not seen."""
    spaces_and_worse = ("Cc", "Cs", "Co", "Cn", "Zl", "Zp")
    hidden = [c for c in text if category(c) in spaces_and_worse and c not in keep]
    for pattern in (IGNORABLE, MISPLACED, MANY_MARKS):
        hidden += [match[0] for match in pattern.finditer(text)]
    return hidden


class Page(HTMLParser):
    """Reads a fragment as a browser does, and refuses whatever could run or load."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Check a tag, which must be one that panels write themselves."""
        is_drawn = tag in DRAWN
        assert is_drawn or tag in TAGS
        for name, value in attrs:
            assert name in ATTRIBUTES or (is_drawn and name in INKS)
            is_part = is_drawn and INSIDE.fullmatch(value or "")
            assert "url(" not in (value or "").replace("url(#", "") or not is_drawn
            assert name not in ("src", "href") or is_part or OWN.fullmatch(value or "")
            assert name != "data-picture" or (value or "").startswith("https://")
            assert name != "style" or LOOKS.fullmatch(value or "")
            assert name != "class" or re.fullmatch(r"[\w -]+", value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check the end of a tag, which must be the open one."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collect a text; a style must be that of the panels."""
        if self.open[-1:] == ["style"]:
            assert f"<style>{data}</style>" == _html.STYLE
        else:
            self.words.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    @property
    def text(self) -> str:
        return " ".join(self.words)


def read(html: str) -> str:
    assert hidden_characters(html) == []
    return Page(html).text


def fragments(shown: Any) -> Iterator[str]:
    """
    Collect the HTML that a view sends to a front end.

    All other texts become text nodes there, so they are escaped here. What a person typed into a
    field is left out.
    """
    for panel in shown.window.panels:
        yield from _html_of({**panel.state(), "pages": panel.pages()})


def _html_of(value: Any, name: str = "") -> Iterator[str]:
    """Collect the texts of a message; only these two members are read as HTML."""
    if isinstance(value, str):
        yield value if name in ("html", "message") else escape(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key != "value":
                yield from _html_of(item, key)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _html_of(item, name)
