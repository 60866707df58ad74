"""Pages of the NFTs that accounts own, from contracts that differ in how they list them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ledgerkit import errors, json_decoding, validation
from ledgerkit.api import rpc
from ledgerkit.api.models import chain
from ledgerkit.verbs import readings

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call, Response
    from ledgerkit.validation import BlockReference
    from ledgerkit.verbs.fetching import Fetcher

MAX_TOKENS = 100_000  # per account: a hostile contract could send endless pages
_MAX_UNREAD = 4  # unread members named in a note
# JSON types of from_index and limit: as in NEP-181, then as in contracts that differ.
_ARGUMENT_TYPES: tuple[tuple[type, type], ...] = ((str, int), (str, str), (int, int), (int, str))


def tokens_page(
    account_id: str,
    contract_id: str,
    start: int,
    limit: int,
    at: BlockReference,
    *,
    types: tuple[type, type] = _ARGUMENT_TYPES[0],
) -> Call[chain.CallResult]:
    """Build the call for a page of an account's tokens; after the last token it is empty."""
    args = {"account_id": account_id, "from_index": types[0](start), "limit": types[1](limit)}
    call = rpc.call_function(contract_id, "nft_tokens_for_owner", validation.json_args(args), at)
    return replace(call, read=partial(_read_page, call)) if start else call


def _read_page(call: Call[chain.CallResult], response: Response) -> chain.CallResult:
    """Read a page after the first; a panic for an index out of bounds is an empty page."""
    # near-contract-standards, the usual library, panics when from_index is the number of tokens.
    try:
        return call.read(response)
    except errors.ContractPanicError as error:
        if "out of bounds" not in error.panic_msg.lower():
            raise
        return chain.CallResult(list(b"[]"))


class ListedToken(NamedTuple):
    """
    An entry of a page: its token, None if it can't be read, and the members that can't be read.

    `key` is the token's id, or the JSON of an entry without an id.
    """

    key: str | bytes
    token: chain.NftToken | None
    unread: list[str]


def decode_tokens(result: chain.CallResult, request: str) -> list[ListedToken]:
    """Decode the tokens of a page one by one, so that a malformed token loses no other."""
    return [_decode_token(value) for value in rpc.result_json(result, list[Any], request)]


def _decode_token(value: Any) -> ListedToken:
    """Decode a token, leaving out members that do not conform to NEP-177 and NEP-178."""
    if not isinstance(value, dict) or type(value.get("token_id")) not in (str, int):
        return ListedToken(msgspec.json.encode(value), None, ["a token without a token_id"])
    token_id, unread = str(value["token_id"]), []
    members = value | {"token_id": token_id}
    for name, member_type in chain.NFT_MEMBERS.items():
        try:
            members[name] = json_decoding.convert(members.get(name), member_type)
        except msgspec.DecodeError:
            members[name] = None
            unread.append(f"{name} of token {errors.cut(repr(token_id))}")
    return ListedToken(token_id, json_decoding.convert(members, chain.NftToken), unread)


@dataclass(slots=True)
class NftPages:
    """The reader of the tokens that accounts own in one collection, all at one block."""

    fetcher: Fetcher
    contract_id: str
    page: int
    block: BlockReference
    listed: dict[str, dict[str | bytes, ListedToken]] = field(default_factory=dict)
    _notes: list[str] = field(default_factory=list)
    _types: tuple[type, type] = _ARGUMENT_TYPES[0]
    _by_end: set[str] = field(default_factory=set)  # accounts for which `limit` is an end index

    def read(self, account_ids: Sequence[str]) -> None:
        """Read all pages of accounts into `listed`."""
        self.listed = {account_id: {} for account_id in account_ids}
        if not account_ids:
            return
        # The first page states its block, at which all others are read.
        pages = self._first_page(account_ids[0])
        self.block = self._block_of(pages)
        open_ids = [*self._add(pages), *account_ids[1:]]
        while open_ids:
            calls = {account_id: self._call(account_id) for account_id in open_ids}
            open_ids = self._add(self.fetcher.fetch(calls, "NFT tokens"))

    def rows(self, account_ids: Iterable[str]) -> list[tuple[str, chain.NftToken]]:
        listed = [(a, entry.token) for a in account_ids for entry in self.listed[a].values()]
        return [(account_id, token) for account_id, token in listed if token is not None]

    def notes(self, account_ids: Iterable[str]) -> list[str]:
        unread = [m for a in account_ids for entry in self.listed[a].values() for m in entry.unread]
        if not unread:
            return self._notes
        others = len(unread) - _MAX_UNREAD
        names = [*unread[:_MAX_UNREAD], *([f"{others} more"] if others > 0 else [])]
        return [*self._notes, f"{self.contract_id} sent what can't be read: {', '.join(names)}"]

    def _call(self, account_id: str) -> Call[chain.CallResult]:
        start = len(self.listed[account_id])
        limit = start + self.page if account_id in self._by_end else self.page
        return tokens_page(
            account_id, self.contract_id, start, limit, self.block, types=self._types
        )

    def _first_page(self, account_id: str) -> list[tuple[str, chain.CallResult]]:
        """Fetch a page, trying the types of arguments until the contract accepts them."""
        failures = []
        for self._types in _ARGUMENT_TYPES:
            try:
                return [(account_id, self.fetcher.ledger.send(self._call(account_id)))]
            except errors.LedgerError as error:
                failures.append(error)
                if not _refuses_types(error):
                    break
        self._types = _ARGUMENT_TYPES[0]
        self.fetcher.fail(account_id, failures[0])
        return []

    def _block_of(self, pages: Sequence[tuple[str, chain.CallResult]]) -> BlockReference:
        """Return the block of a page; without pages, read the block."""
        for _, page in pages:
            if page.block_height is not None and page.block_hash is not None:
                at = {"block_height": page.block_height, "block_hash": page.block_hash}
                self.fetcher.read_at.update(at)
                return validation.block_reference(page.block_hash)
        return self.fetcher.pin(self.block)

    def _add(self, pages: Sequence[tuple[str, chain.CallResult]]) -> list[str]:
        """Add the tokens of pages; return the accounts that may have more."""
        open_ids, ended_ids = [], []
        for account_id, has_new in self.fetcher.convert(pages, self._add_page):
            if has_new:  # a short page is not the last one: contracts may cap their pages
                open_ids.append(account_id)
            elif self._may_have_more(account_id):
                ended_ids.append(account_id)
        return open_ids + self._check_supply(ended_ids)

    def _add_page(self, account_id: str, result: chain.CallResult) -> bool:
        """Add the tokens of a page; return True if one is new."""
        request = f"nft_tokens_for_owner of {self.contract_id}"
        entries = self.listed[account_id]
        count = len(entries)
        for entry in decode_tokens(result, request):
            entries.setdefault(entry.key, entry)
        if len(entries) > MAX_TOKENS:
            raise errors.ContractError(f"{request} returned more than {MAX_TOKENS} tokens")
        return len(entries) > count

    def _may_have_more(self, account_id: str) -> bool:
        """Return True if the number of tokens is a multiple of the limit."""
        count = len(self.listed[account_id])
        return account_id in self._by_end or (count > 0 and count % self.page == 0)

    def _check_supply(self, account_ids: Sequence[str]) -> list[str]:
        """Compare tokens with the supply; return accounts to read with `limit` as end index."""
        call = partial(readings.value_call, self.contract_id, "nft_supply_for_owner", self.block)
        calls = {name: call(args={"account_id": name}) for name in account_ids}
        open_ids = []
        for account_id, supply in self.fetcher.fetch(calls, "NFT supplies"):
            count = len(self.listed[account_id])
            if supply is not None and count < supply and account_id not in self._by_end:
                self._by_end.add(account_id)
                open_ids.append(account_id)
            elif supply is None or count < supply:
                total = "an unknown number of" if supply is None else f"{supply}"
                note = f"{account_id} has at least {count} tokens of {self.contract_id}"
                self._notes.append(f"{note}, which listed {count} of {total} tokens")
        return open_ids


def _refuses_types(error: errors.LedgerError) -> bool:
    """Return True if the contract may have refused the types of its arguments."""
    # near-sdk, "Failed to deserialize input from JSON."; serde_json, "invalid type: integer `50`,
    # expected a string".
    message = error.panic_msg.lower() if isinstance(error, errors.ContractPanicError) else ""
    return "deserialize" in message or "invalid type" in message
