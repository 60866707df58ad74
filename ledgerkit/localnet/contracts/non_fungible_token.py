"""
Non-fungible tokens: minting, transfers, approvals, lists (NEP-171, 177, 178, 181).

Records: ``t`` + token id → the token; ``i`` + number → token id, in the order of minting;
``n`` + account id → how many tokens it has; ``o`` + account id + place → token id, in places
without gaps. Each token knows its place, so that nothing is ever searched for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, convert
from msgspec.structs import asdict, replace

from ledgerkit.localnet.contract_sdk import (
    STATE_KEY,
    U128,
    Contract,
    JsonMap,
    call,
    from_json,
    to_json,
    view,
)
from ledgerkit.localnet.execution_errors import PanicError
from ledgerkit.localnet.fees import STORAGE_BYTE, TGAS
from ledgerkit.localnet.vm import Promise  # noqa: TC001 - annotations are read when it runs
from ledgerkit.protocol import AccountId  # noqa: TC001 - as above
from ledgerkit.protocol.borsh import text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ledgerkit.localnet.vm import Vm

SPEC = "nft-1.0.0"
TOKENS, MINTED, OWNERS, PLACES = b"t", b"i", b"n", b"o"  # what keys begin with
RESOLVE_GAS = 5 * TGAS
APPROVAL_BYTES = 12  # beside the account id
NOT_FOUND = "Token not found"
NOT_OWNER = "Predecessor must be token owner."
NO_DEPOSIT = "Requires attached deposit of at least 1 yoctoNEAR"
OUT_OF_BOUNDS = "Out of bounds, please use a smaller from_index."
Natural = Annotated[int, Meta(ge=0)]


class CollectionMetadata(Struct, frozen=True, kw_only=True):
    """What a collection says of itself."""

    spec: str
    name: str
    symbol: str
    icon: str | None = None
    base_uri: str | None = None
    reference: str | None = None
    reference_hash: str | None = None


class TokenMetadata(Struct, frozen=True, kw_only=True):
    """What a token says of itself; contracts write times as numbers or as texts."""

    title: str | None = None
    description: str | None = None
    media: str | None = None
    media_hash: str | None = None
    copies: Natural | None = None
    issued_at: int | str | None = None
    expires_at: int | str | None = None
    starts_at: int | str | None = None
    updated_at: int | str | None = None
    extra: str | None = None
    reference: str | None = None
    reference_hash: str | None = None


class Token(Struct, frozen=True):
    """A token as it is answered."""

    token_id: str
    owner_id: str
    metadata: TokenMetadata
    approved_account_ids: dict[str, int]


class Held(Struct):
    """A token as it is kept: of its metadata only what is there."""

    owner_id: str
    place: int
    metadata: dict[str, Any]
    approved_account_ids: dict[str, int]
    next_approval_id: int = 1

    def token(self, token_id: str) -> Token:
        """Answer it."""
        metadata = convert(self.metadata, TokenMetadata)
        return Token(token_id, self.owner_id, metadata, self.approved_account_ids)


EXAMPLE = CollectionMetadata(spec=SPEC, name="Example NEAR non-fungible token", symbol="EXAMPLE")


def _kept(owner_id: str, place: int, metadata: TokenMetadata) -> Held:
    """Make a new token as it is kept."""
    told = {name: value for name, value in asdict(metadata).items() if value is not None}
    return Held(str(owner_id), place, told, {})


def _minted_key(number: int) -> bytes:
    """Name the record of the token that was minted as this one."""
    return MINTED + number.to_bytes(8, "little")


def _place_key(owner_id: str, place: int) -> bytes:
    """Name the record of an owner's token."""
    return PLACES + text(owner_id) + place.to_bytes(8, "little")


class NonFungibleToken(Contract, code_name="ledgerkit.localnet.contracts.nonfungible.NonFungible"):
    """
    A collection: anybody mints who pays for the bytes, or only its owner.

    Parameters
    ----------
    vm
        The machine.
    """

    class State(Struct, kw_only=True):
        """Whose it is, and how many tokens there are."""

        owner_id: str
        metadata: CollectionMetadata
        owner_only: bool = False
        total: int = 0

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self.tokens = JsonMap(vm, TOKENS, Held)
        self.counts = JsonMap(vm, OWNERS, int)

    @call(init=True)
    def new(
        self,
        owner_id: AccountId,
        metadata: CollectionMetadata,
        owner_only: bool = False,  # noqa: FBT001, FBT002 - by name, as JSON
    ) -> None:
        """Begin, without tokens."""
        self.require(metadata.spec == SPEC, f"The spec should be {SPEC}")
        owner = str(owner_id)
        self.state = self.State(owner_id=owner, metadata=metadata, owner_only=owner_only)

    @call(init=True)
    def new_default_meta(self, owner_id: AccountId) -> None:
        """Begin as an example collection."""
        self.new(owner_id, EXAMPLE)

    @call(payable=True)
    def nft_mint(
        self, token_id: str, receiver_id: AccountId, metadata: TokenMetadata | None = None
    ) -> Token:
        """Make a token; the deposit pays for its bytes, and what is over comes back."""
        if self.state.owner_only:
            self.require(self.vm.predecessor_id == self.state.owner_id, "Unauthorized")
        before = self.vm.storage_usage
        if metadata is None:
            self.vm.panic("Must provide metadata")
        self.require(token_id not in self.tokens, "token_id must be unique")
        held = _kept(receiver_id, self._place(receiver_id, token_id), metadata)
        self.tokens.put(token_id, held)
        self.vm.storage_write(_minted_key(self.state.total), token_id.encode())
        self.state.total += 1
        self._charge(self.vm.storage_usage - before)
        self._told("nft_mint", {"owner_id": held.owner_id, "token_ids": [token_id]})
        return held.token(token_id)

    # NEP-171 -----------------------------------------------------------------------------

    @call(payable=True)
    def nft_transfer(
        self,
        receiver_id: AccountId,
        token_id: str,
        approval_id: Natural | None = None,
        memo: str | None = None,
    ) -> None:
        """Give a token away, one's own or one that one is approved for."""
        self.assert_one_yocto()
        self._send(receiver_id, token_id, approval_id, memo)

    @call(payable=True)
    def nft_transfer_call(
        self,
        receiver_id: AccountId,
        token_id: str,
        msg: str,
        approval_id: Natural | None = None,
        memo: str | None = None,
    ) -> Promise:
        """Give a token to a contract and tell it; it may give it back."""
        self.assert_one_yocto()
        sent = self._send(receiver_id, token_id, approval_id, memo)
        previous = {"previous_owner_id": sent.owner_id}
        told = {"sender_id": self.vm.predecessor_id, **previous, "token_id": token_id, "msg": msg}
        moved = {**previous, "receiver_id": receiver_id, "token_id": token_id}
        approved = {"approved_account_ids": sent.approved_account_ids}
        promise = self.vm.promise(receiver_id)
        promise.function_call("nft_on_transfer", to_json(told), weight=1)
        resolve = promise.then(self.vm.current_account_id)
        arguments = to_json({**moved, **approved})
        return resolve.function_call("nft_resolve_transfer", arguments, gas=RESOLVE_GAS)

    @call(private=True)
    def nft_resolve_transfer(
        self,
        previous_owner_id: AccountId,
        receiver_id: AccountId,
        token_id: str,
        approved_account_ids: dict[str, Natural] | None = None,
    ) -> bool:
        """Take the token back unless the receiver kept it; tell whether it did."""
        if from_json(self.vm.promise_results[0]) is False:
            return True
        held = self.tokens.get(token_id)
        if held is None or held.owner_id != receiver_id:
            return True
        self._pay_back(receiver_id, held.approved_account_ids)
        held.approved_account_ids = approved_account_ids or {}
        self._move(held, token_id, previous_owner_id)
        self._moved(token_id, receiver_id, previous_owner_id)
        return False

    @view
    def nft_token(self, token_id: str) -> Token | None:
        """Tell of a token; null if there is none."""
        held = self.tokens.get(token_id)
        return None if held is None else held.token(token_id)

    # NEP-177 -----------------------------------------------------------------------------

    @view
    def nft_metadata(self) -> CollectionMetadata:
        """Tell name, symbol, where media lie."""
        metadata: CollectionMetadata = self.state.metadata
        return metadata

    # NEP-178 -----------------------------------------------------------------------------

    @call(payable=True)
    def nft_approve(
        self, token_id: str, account_id: AccountId, msg: str | None = None
    ) -> Promise | None:
        """Let an account transfer a token; with a message it is told."""
        self.require(self.vm.attached_deposit >= 1, NO_DEPOSIT)
        held = self._own(token_id)
        approval_id, approved = held.next_approval_id, held.approved_account_ids
        self._charge(0 if account_id in approved else len(account_id) + APPROVAL_BYTES)
        approved[str(account_id)] = approval_id
        held.next_approval_id += 1
        self.tokens.put(token_id, held)
        if msg is None:
            return None
        told = {"token_id": token_id, "owner_id": held.owner_id, "approval_id": approval_id}
        arguments = to_json({**told, "msg": msg})
        return self.vm.promise(account_id).function_call("nft_on_approve", arguments, weight=1)

    @call(payable=True)
    def nft_revoke(self, token_id: str, account_id: AccountId) -> None:
        """Let an account no longer transfer a token."""
        self.assert_one_yocto()
        self._revoke(token_id, [account_id])

    @call(payable=True)
    def nft_revoke_all(self, token_id: str) -> None:
        """Let nobody but the owner transfer a token."""
        self.assert_one_yocto()
        self._revoke(token_id, list(self._own(token_id).approved_account_ids))

    @view
    def nft_is_approved(
        self, token_id: str, approved_account_id: AccountId, approval_id: Natural | None = None
    ) -> bool:
        """Tell whether an account may transfer a token, by this approval if one is named."""
        actual = self._held(token_id).approved_account_ids.get(approved_account_id)
        return actual is not None and approval_id in (None, actual)

    # NEP-181 -----------------------------------------------------------------------------

    @view
    def nft_total_supply(self) -> U128:
        """Tell how many tokens there are."""
        return U128(self.state.total)

    @view
    def nft_tokens(
        self, from_index: U128 | None = None, limit: Natural | None = None
    ) -> list[Token]:
        """List tokens in the order of their minting."""
        start, total = from_index or 0, self.state.total
        self.require(start <= total, OUT_OF_BOUNDS)
        return [self._at(_minted_key(number)) for number in _page(start, limit, total)]

    @view
    def nft_supply_for_owner(self, account_id: AccountId) -> U128:
        """Tell how many tokens an account has."""
        return U128(self.counts.get(account_id) or 0)

    @view
    def nft_tokens_for_owner(
        self, account_id: AccountId, from_index: U128 | None = None, limit: Natural | None = None
    ) -> list[Token]:
        """List an account's tokens; an account without any has an empty list at every index."""
        start, count = from_index or 0, self.counts.get(account_id) or 0
        if not count:
            return []
        places = _page(start, limit, count)
        self.require(start < count, OUT_OF_BOUNDS)
        return [self._at(_place_key(account_id, place)) for place in places]

    # Inside ------------------------------------------------------------------------------

    def _held(self, token_id: str) -> Held:
        """Read a token that must be there."""
        held = self.tokens.get(token_id)
        if held is None:
            self.vm.panic(NOT_FOUND)
        return held

    def _own(self, token_id: str) -> Held:
        """Read a token that must be the caller's."""
        held = self._held(token_id)
        self.require(held.owner_id == self.vm.predecessor_id, NOT_OWNER)
        return held

    def _at(self, key: bytes) -> Token:
        """Answer the token that a record of a list names."""
        token_id = (self.vm.storage_read(key) or b"").decode()
        return self._held(token_id).token(token_id)

    def _send(
        self, receiver_id: str, token_id: str, approval_id: int | None, memo: str | None
    ) -> Held:
        """Move a token if the caller may; give it as it was."""
        before = self._held(token_id)
        authorized_id = self._authorized(before, approval_id)
        self.require(before.owner_id != receiver_id, "Current and next owner must differ")
        self._move(replace(before, approved_account_ids={}), token_id, receiver_id)
        self._moved(token_id, before.owner_id, receiver_id, authorized_id, memo)
        return before

    def _authorized(self, held: Held, approval_id: int | None) -> str | None:
        """Check that the caller may transfer a token; give their id if they are not its owner."""
        sender_id = self.vm.predecessor_id
        if sender_id == held.owner_id:
            return None
        actual = held.approved_account_ids.get(sender_id)
        self.require(actual is not None, "Sender not approved")
        told = f"The actual approval_id Some({actual}) is different from the given approval_id"
        self.require(approval_id in (None, actual), f"{told} Some({approval_id})")
        return sender_id

    def _move(self, held: Held, token_id: str, owner_id: str) -> None:
        """Take a token off its owner's list and put it on another's."""
        self._take(held.owner_id, held.place)
        held.owner_id, held.place = str(owner_id), self._place(owner_id, token_id)
        self.tokens.put(token_id, held)

    def _place(self, owner_id: str, token_id: str) -> int:
        """Put a token at the end of its owner's list."""
        place = self.counts.get(owner_id) or 0
        self.vm.storage_write(_place_key(owner_id, place), token_id.encode())
        self.counts.put(owner_id, place + 1)
        return place

    def _take(self, owner_id: str, place: int) -> None:
        """Take a token off its owner's list; the last one takes its place."""
        last = (self.counts.get(owner_id) or 0) - 1
        if place != last:
            moved_id = self.vm.storage_read(_place_key(owner_id, last)) or b""
            self.vm.storage_write(_place_key(owner_id, place), moved_id)
            moved = self._held(moved_id.decode())
            moved.place = place
            self.tokens.put(moved_id.decode(), moved)
        self.vm.storage_remove(_place_key(owner_id, last))
        if last:
            self.counts.put(owner_id, last)
        else:
            self.counts.remove(owner_id)

    def _revoke(self, token_id: str, account_ids: list[str]) -> None:
        """Take approvals back and pay for the bytes they leave."""
        held = self._own(token_id)
        gone = {name: 0 for name in account_ids if name in held.approved_account_ids}
        for account_id in gone:
            del held.approved_account_ids[account_id]
        self._pay_back(self.vm.predecessor_id, gone)
        self.tokens.put(token_id, held)

    def _charge(self, size: int) -> None:
        """Let the deposit pay for bytes; more than one yoctoNEAR over is sent back."""
        required, deposit = size * STORAGE_BYTE, self.vm.attached_deposit
        self.require(required <= deposit, f"Must attach {required} yoctoNEAR to cover storage")
        if deposit - required > 1:
            self.vm.promise(self.vm.predecessor_id).transfer(deposit - required)

    def _pay_back(self, account_id: str, approved: dict[str, int]) -> None:
        """Pay for the bytes that approvals leave."""
        if approved:
            size = sum(len(approved_id) + APPROVAL_BYTES for approved_id in approved)
            self.vm.promise(account_id).transfer(size * STORAGE_BYTE)

    def _moved(
        self,
        token_id: str,
        old_owner_id: str,
        new_owner_id: str,
        authorized_id: str | None = None,
        memo: str | None = None,
    ) -> None:
        """Tell of a token that changed hands."""
        row = {"old_owner_id": old_owner_id, "new_owner_id": new_owner_id, "token_ids": [token_id]}
        self._told("nft_transfer", {**row, "authorized_id": authorized_id, "memo": memo})

    def _told(self, event: str, row: dict[str, Any]) -> None:
        """Log an event of the standard."""
        self.event("nep171", "1.0.0", event, [row])

    # Genesis -----------------------------------------------------------------------------

    @classmethod
    def genesis(
        cls,
        owner_id: str,
        tokens: Iterable[tuple[str, str, TokenMetadata]],
        metadata: CollectionMetadata = EXAMPLE,
        *,
        owner_only: bool = False,
    ) -> Iterator[tuple[bytes, bytes]]:
        """
        Write the records of a collection that has its tokens already.

        Parameters
        ----------
        owner_id
            Whose collection it is.
        tokens
            Token id, owner and metadata of each, in the order of minting.
        metadata
            What the collection says of itself.
        owner_only
            Whether only its owner mints.

        Yields
        ------
        key, value
            As calls of `new` and `nft_mint` would leave them.
        """
        total, counts = 0, dict[str, int]()
        for total, (token_id, holder_id, told) in enumerate(tokens, 1):
            place = counts.get(holder_id, 0)
            counts[holder_id] = place + 1
            yield TOKENS + text(token_id), to_json(_kept(holder_id, place, told))
            yield _minted_key(total - 1), token_id.encode()
            yield _place_key(holder_id, place), token_id.encode()
        yield from ((OWNERS + text(held_by), to_json(count)) for held_by, count in counts.items())
        state = cls.State(owner_id=owner_id, metadata=metadata, owner_only=owner_only, total=total)
        yield STATE_KEY, to_json(state)


def _page(start: int, limit: int | None, total: int) -> range:
    """Give the numbers of a page."""
    if limit == 0:
        raise PanicError("Cannot provide limit of 0.")
    return range(start, total if limit is None else min(total, start + limit))
