"""The search box, which recognises an id and opens its view."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import urlsplit

import pandas as pd

from ledgerkit import client, units, user_warnings, validation
from ledgerkit.block_data import transaction_documents
from ledgerkit.errors import InvalidRequestError, NotFoundError
from ledgerkit.verbs import blocks
from ledgerkit.verbs.token_facts import known_tokens, read_token_facts
from ledgerkit.widgets import _html
from ledgerkit.widgets._blocks import Content, Page
from ledgerkit.widgets._panel import Field, Panel
from ledgerkit.widgets._window import Target, target
from ledgerkit.widgets.contracts import ContractViewer

if TYPE_CHECKING:
    from ledgerkit.frames.tokens import TokenFacts
    from ledgerkit.ledger import Ledger

_HEIGHT = re.compile(r"\d{1,20}", re.ASCII)
_KEY = re.compile(r"(?:ed25519|secp256k1|ml-dsa-65):.+", re.ASCII)
_CALL = re.compile(
    r"(?P<contract_id>[a-z0-9._-]+)\s+(?P<method_name>\w+)\s*(?P<args>\{.*\})?", re.ASCII
)
_RULE = (
    "an account id, a public key, the hash of a transaction or block, a receipt id, a block"
    " height, the symbol of a token that was read in this session, or a contract and a method such"
    " as 'wrap.near ft_metadata'"
)


class Search(Panel):
    """
    A search box that opens the view of an id, a call or a token.

    It takes an account id, a public key, the hash of a transaction or block, a receipt id, a
    block height, a contract with a method, or the address of any of them in an explorer. For the
    symbol of a token it lists all tokens that have it: those read in this session, and `tokens`.

    Parameters
    ----------
    text
        The initial text.
    tokens
        Contracts of tokens that are found by symbol too.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    """

    title = "Search"
    action = "Search"
    tooltip = "Open the view of this account, transaction, receipt, block, key or contract"
    can_return = False
    links: ClassVar = {"search": "text"}

    def __init__(
        self, text: str = "", *, tokens: Iterable[str] = (), ledger: Ledger | None = None
    ) -> None:
        super().__init__(
            {"text": Field("Search", text, "alice.near, a hash, a key, a block, a symbol")}, ledger
        )
        self._tokens = validation.account_ids(tokens, "tokens")
        self._waits = False
        self._offered: Ledger | None = None  # the ledger whose examples are shown
        self.content = Content("", pages=self._examples())

    def press(self) -> Self:
        """Search, open the view and wait for its result, as `Panel.press` does."""
        self._waits = True
        try:
            return super().press()
        finally:
            self._waits = False

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        matches = self._tokens_of(values["text"], ledger)
        if matches:
            return _matches(values["text"], matches)
        opened = recognise(values["text"], ledger)
        frame = pd.DataFrame([opened.values])
        return Content(f"Opening {opened.panel_class.title}.", frame, value=opened)

    def _tokens_of(self, text: str, ledger: Ledger) -> dict[str, TokenFacts]:
        if not _may_be_symbol(text):
            return {}
        facts = read_token_facts(ledger, self._tokens)
        unread = [contract_id for contract_id, token in facts.items() if token.status == "unread"]
        if unread:
            user_warnings.warn(
                f"the symbols of {', '.join(unread)} could not be read: search again"
            )
        facts = dict(known_tokens(ledger))  # a copy, since other threads may add tokens
        symbol = text.casefold()
        return {c: token for c, token in facts.items() if (token.symbol or "").casefold() == symbol}

    def refresh(self) -> None:
        """Offer the examples of the session's present network."""
        if (client.default() if self.ledger is None else self.ledger) is not self._offered:
            self.content = Content("", pages=self._examples())

    def _examples(self) -> tuple[Page, ...]:
        self._offered = self.ledger or client.default()
        return tuple(_examples(self._offered))

    def _show(self, content: Content) -> None:
        self.can_return = bool(content.pages)  # Back returns to a list of tokens
        super()._show(content if content.pages else replace(content, pages=self._examples()))

    def _set_ready(self) -> None:
        """Open the view of what was recognised, unless somebody has opened another one."""
        super()._set_ready()
        is_open = self._waits or self.window.selected is self
        if self.content.value is not None and is_open:
            self.window.open_target(self.content.value, wait=self._waits)


def _may_be_symbol(text: str) -> bool:
    """Return False for ids and heights, so that no token with such a symbol hides them."""
    is_id = "." in text and validation.is_account_id(text)
    is_hash = validation.decode_base58(text, validation.HASH_BYTES)
    return bool(text) and not (is_id or is_hash or _HEIGHT.fullmatch(text))


def _matches(symbol: str, matches: Mapping[str, TokenFacts]) -> Content:
    """List the tokens with a symbol, and the account if the symbol is also an id."""
    rows = [
        ("token", contract_id, contract_id, ", ".join(filter(None, (token.symbol, token.name))))
        for contract_id, token in matches.items()
    ]
    if validation.is_account_id(symbol):
        rows.append(("account", symbol, symbol, "the account with this id"))
    count = units.count_text(len(matches), "token")
    has = "has" if len(matches) == 1 else "have"
    sentence = (
        f"{count} read in this session {has} the symbol {symbol}. "
        "Any contract can use any symbol: compare the contract ids."
    )
    frame = pd.DataFrame({"contract_id": list(matches)})
    return Content(sentence, frame, (Page("Tokens", _link_list(rows)),))


def recognise(text: str, ledger: Ledger) -> Target:
    """
    Return the panel that shows an id, or the id at the end of an explorer's address.

    A hash is looked up as a transaction, a receipt and a block, in this order.
    """
    text = text.strip()
    if not text:
        raise InvalidRequestError.required("search", _RULE)
    if text.startswith(("https://", "http://")):
        text = urlsplit(text).path.rstrip("/").rpartition("/")[2] or text
    call = _CALL.fullmatch(text)
    if call is not None:
        return Target(ContractViewer, {**call.groupdict(), "args": call["args"] or "{}"})
    return target(_kind_of(text, ledger), text)


def _kind_of(text: str, ledger: Ledger) -> str:
    if _HEIGHT.fullmatch(text):
        return "block"
    if _KEY.fullmatch(text):
        return "key"
    if validation.is_account_id(text):
        return "account"
    if not validation.decode_base58(text, validation.HASH_BYTES):
        choices = validation.similar_account_ids(text)
        raise InvalidRequestError.refuse("search", text, _RULE, choices=choices)
    return _kind_of_hash(text, ledger)


def _kind_of_hash(hash_: str, ledger: Ledger) -> str:
    lookups: dict[str, Callable[[], object]] = {
        "transaction": lambda: transaction_documents.read_document(ledger, hash_),
        "receipt": lambda: transaction_documents.receipt_origin(ledger, hash_),
        "block": lambda: blocks.block(hash_, ledger=ledger),
    }
    no_index: InvalidRequestError | None = None  # receipts and blocks are still looked up
    for kind, look_up in lookups.items():
        try:
            look_up()
        except NotFoundError:
            continue
        except InvalidRequestError as error:
            no_index = error
        else:
            return kind
    if no_index is not None:
        raise no_index
    expected = f"the hash of a transaction, a receipt or a block that {ledger.network.name} knows"
    raise InvalidRequestError.refuse("search", hash_, expected)


def _examples(ledger: Ledger | None) -> Iterator[Page]:
    if ledger is None or not ledger.is_embedded:
        return
    summary = ledger.world.summary
    accounts = [("account", a.account_id, a.account_id, a.description) for a in summary.accounts]
    transactions = [
        ("transaction", t.tx_hash, t.description, f"signed by {t.signer_id}")
        for t in summary.transactions
    ]
    yield Page("Accounts of the embedded ledger", _link_list(accounts))
    yield Page("Transactions", _link_list(transactions))


def _link_list(rows: Iterable[tuple[str, str, str, str]]) -> str:
    items = "".join(
        f"<li>{_html.link(kind, id_, text)}: {_html.text(description)}</li>"
        for kind, id_, text, description in rows
    )
    return f"<ul>{items}</ul>"
