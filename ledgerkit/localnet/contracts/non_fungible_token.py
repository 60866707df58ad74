"""
Non-fungible tokens: transfers, metadata, approvals, enumeration (NEP-171, 177, 178, 181).

Storage: ``t`` + token id -> the token; ``i`` + number -> token id, in the order of minting;
``n`` + account id -> its number of tokens; ``o`` + account id + index -> token id, by index
without gaps. A token's record contains its index as `place`, so no list has to be searched.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from ledgerkit import json_decoding
from ledgerkit.localnet.contract_sdk import (
    STATE_KEY,
    U128,
    Contract,
    JsonMap,
    call,
    from_json,
    page,
    state_view,
    to_json,
    view,
)
from ledgerkit.localnet.execution_errors import PanicError
from ledgerkit.localnet.fees import STORAGE_BYTE_PRICE, TGAS
from ledgerkit.localnet.promises import Promise
from ledgerkit.localnet.vm import Vm
from ledgerkit.protocol import AccountId
from ledgerkit.protocol.borsh import text

SPEC = "nft-1.0.0"
TOKENS, MINTED, OWNERS, LISTS = b"t", b"i", b"n", b"o"  # prefixes of storage keys
APPROVAL_BYTES = 12  # an approval's, in addition to its account id
OUT_OF_BOUNDS = "Out of bounds, please use a smaller from_index."
Natural = Annotated[int, Meta(ge=0)]


class CollectionMetadata(Struct, frozen=True, kw_only=True):
    """The metadata of a collection (NEP-177)."""

    spec: str
    name: str
    symbol: str
    icon: str | None = None
    base_uri: str | None = None
    reference: str | None = None
    reference_hash: str | None = None


class TokenMetadata(Struct, frozen=True, kw_only=True):
    """The metadata of a token (NEP-177); contracts write times as numbers or as strings."""

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
    """A token as the methods return it."""

    token_id: str
    owner_id: str
    metadata: TokenMetadata
    approved_account_ids: dict[str, int]


class TokenRecord(Struct):
    """A token as it is stored; its metadata has no null members."""

    owner_id: str
    place: int  # the index in its owner's list
    metadata: dict[str, Any]
    approved_account_ids: dict[str, int]
    next_approval_id: int = 1

    def token(self, token_id: str) -> Token:
        metadata = json_decoding.convert(self.metadata, TokenMetadata)
        return Token(token_id, self.owner_id, metadata, self.approved_account_ids)


EXAMPLE = CollectionMetadata(spec=SPEC, name="Example NEAR non-fungible token", symbol="EXAMPLE")


def _new_record(owner_id: str, index: int, metadata: TokenMetadata) -> TokenRecord:
    members = {name: value for name, value in asdict(metadata).items() if value is not None}
    return TokenRecord(str(owner_id), index, members, {})


def _minted_key(number: int) -> bytes:
    return MINTED + number.to_bytes(8, "little")


def _list_key(owner_id: str, index: int) -> bytes:
    return LISTS + text(owner_id) + index.to_bytes(8, "little")


class NonFungibleToken(Contract, code_name="ledgerkit.localnet.contracts.nonfungible.NonFungible"):
    """A collection in which every account, or only the owner, can mint."""

    class State(Struct, kw_only=True):
        """The collection's state."""

        owner_id: str
        metadata: CollectionMetadata
        owner_only: bool = False
        total: int = 0

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self.tokens = JsonMap(vm, TOKENS, TokenRecord)
        self.counts = JsonMap(vm, OWNERS, int)

    @call(init=True)
    def new(
        self,
        owner_id: AccountId,
        metadata: CollectionMetadata,
        owner_only: bool = False,  # noqa: FBT001, FBT002 - by name, as JSON
    ) -> None:
        """Initialize the collection without tokens."""
        self.require(metadata.spec == SPEC, f"The spec should be {SPEC}")
        owner = str(owner_id)
        self.state = self.State(owner_id=owner, metadata=metadata, owner_only=owner_only)

    @call(init=True)
    def new_default_meta(self, owner_id: AccountId) -> None:
        self.new(owner_id, EXAMPLE)

    @call(payable=True)
    def nft_mint(
        self, token_id: str, receiver_id: AccountId, metadata: TokenMetadata | None = None
    ) -> Token:
        """Mint a token; the deposit pays for its storage, and the excess is refunded."""
        if self.state.owner_only:
            self.require(self.vm.predecessor_id == self.state.owner_id, "Unauthorized")
        before = self.vm.storage_usage
        if metadata is None:
            self.vm.panic("Must provide metadata")
        self.require(token_id not in self.tokens, "token_id must be unique")
        record = _new_record(receiver_id, self._append_to_list(receiver_id, token_id), metadata)
        self.tokens.put(token_id, record)
        self.vm.storage_write(_minted_key(self.state.total), token_id.encode())
        self.state.total += 1
        self._charge_storage(self.vm.storage_usage - before)
        self._log_event("nft_mint", {"owner_id": record.owner_id, "token_ids": [token_id]})
        return record.token(token_id)

    # NEP-171 -----------------------------------------------------------------------------

    @call(payable=True)
    def nft_transfer(
        self,
        receiver_id: AccountId,
        token_id: str,
        approval_id: Natural | None = None,
        memo: str | None = None,
    ) -> None:
        self.assert_one_yocto()
        self._transfer(receiver_id, token_id, approval_id, memo)

    @call(payable=True)
    def nft_transfer_call(
        self,
        receiver_id: AccountId,
        token_id: str,
        msg: str,
        approval_id: Natural | None = None,
        memo: str | None = None,
    ) -> Promise:
        """Transfer a token and call the receiver, which may return it."""
        self.assert_one_yocto()
        before = self._transfer(receiver_id, token_id, approval_id, memo)
        receiver_args = {
            "sender_id": self.vm.predecessor_id,
            "previous_owner_id": before.owner_id,
            "token_id": token_id,
            "msg": msg,
        }
        resolve_args = {
            "previous_owner_id": before.owner_id,
            "receiver_id": receiver_id,
            "token_id": token_id,
            "approved_account_ids": before.approved_account_ids,
        }
        promise = self.vm.promise(receiver_id)
        promise.function_call("nft_on_transfer", to_json(receiver_args), weight=1)
        return self.call_back(promise, "nft_resolve_transfer", 5 * TGAS, **resolve_args)

    @call(private=True)
    def nft_resolve_transfer(
        self,
        previous_owner_id: AccountId,
        receiver_id: AccountId,
        token_id: str,
        approved_account_ids: dict[str, Natural] | None = None,
    ) -> bool:
        """Return True if the receiver keeps the token; otherwise give it back to its owner."""
        if from_json(self.vm.promise_results[0]) is False:
            return True
        record = self.tokens.get(token_id)
        if record is None or record.owner_id != receiver_id:
            return True
        self._refund_approvals(receiver_id, record.approved_account_ids)
        record.approved_account_ids = approved_account_ids or {}
        self._change_owner(record, token_id, previous_owner_id)
        self._log_transfer(token_id, receiver_id, previous_owner_id)
        return False

    @view
    def nft_token(self, token_id: str) -> Token | None:
        """Return a token, null if there is none."""
        record = self.tokens.get(token_id)
        return None if record is None else record.token(token_id)

    # NEP-177 -----------------------------------------------------------------------------

    nft_metadata = state_view("metadata")

    # NEP-178 -----------------------------------------------------------------------------

    @call(payable=True)
    def nft_approve(
        self, token_id: str, account_id: AccountId, msg: str | None = None
    ) -> Promise | None:
        """Approve an account to transfer a token; with a message, call its contract."""
        has_deposit = self.vm.attached_deposit >= 1
        self.require(has_deposit, "Requires attached deposit of at least 1 yoctoNEAR")
        record = self._own_record(token_id)
        approval_id, approved = record.next_approval_id, record.approved_account_ids
        self._charge_storage(0 if account_id in approved else len(account_id) + APPROVAL_BYTES)
        approved[str(account_id)] = approval_id
        record.next_approval_id += 1
        self.tokens.put(token_id, record)
        if msg is None:
            return None
        args = {
            "token_id": token_id,
            "owner_id": record.owner_id,
            "approval_id": approval_id,
            "msg": msg,
        }
        promise = self.vm.promise(account_id)
        return promise.function_call("nft_on_approve", to_json(args), weight=1)

    @call(payable=True)
    def nft_revoke(self, token_id: str, account_id: AccountId) -> None:
        self.assert_one_yocto()
        self._revoke(token_id, [account_id])

    @call(payable=True)
    def nft_revoke_all(self, token_id: str) -> None:
        self.assert_one_yocto()
        self._revoke(token_id, list(self._own_record(token_id).approved_account_ids))

    @view
    def nft_is_approved(
        self, token_id: str, approved_account_id: AccountId, approval_id: Natural | None = None
    ) -> bool:
        """Return True if an account is approved for a token, by `approval_id` if that is set."""
        actual = self._record(token_id).approved_account_ids.get(approved_account_id)
        return actual is not None and approval_id in (None, actual)

    # NEP-181 -----------------------------------------------------------------------------

    nft_total_supply = state_view("total", U128)

    @view
    def nft_tokens(
        self, from_index: U128 | None = None, limit: Natural | None = None
    ) -> list[Token]:
        """Return tokens in the order of minting."""
        start, total = from_index or 0, self.state.total
        self.require(start <= total, OUT_OF_BOUNDS)
        return [self._token_at(_minted_key(number)) for number in _page_range(start, limit, total)]

    @view
    def nft_supply_for_owner(self, account_id: AccountId) -> U128:
        return U128(self.counts.get(account_id) or 0)

    @view
    def nft_tokens_for_owner(
        self, account_id: AccountId, from_index: U128 | None = None, limit: Natural | None = None
    ) -> list[Token]:
        """Return an account's tokens; without tokens, an empty list at every index."""
        start, count = from_index or 0, self.counts.get(account_id) or 0
        if not count:
            return []
        indices = _page_range(start, limit, count)
        self.require(start < count, OUT_OF_BOUNDS)
        return [self._token_at(_list_key(account_id, index)) for index in indices]

    # Records -----------------------------------------------------------------------------

    def _record(self, token_id: str) -> TokenRecord:
        return self.tokens.required(token_id, "Token not found")

    def _own_record(self, token_id: str) -> TokenRecord:
        record = self._record(token_id)
        self.require(record.owner_id == self.vm.predecessor_id, "Predecessor must be token owner.")
        return record

    def _token_at(self, key: bytes) -> Token:
        token_id = (self.vm.storage_read(key) or b"").decode()
        return self._record(token_id).token(token_id)

    def _transfer(
        self, receiver_id: str, token_id: str, approval_id: int | None, memo: str | None
    ) -> TokenRecord:
        """Transfer a token if the caller may; return its record before the transfer."""
        before = self._record(token_id)
        authorized_id = self._authorize(before, approval_id)
        self.require(before.owner_id != receiver_id, "Current and next owner must differ")
        self._change_owner(replace(before, approved_account_ids={}), token_id, receiver_id)
        self._log_transfer(token_id, before.owner_id, receiver_id, authorized_id, memo)
        return before

    def _authorize(self, record: TokenRecord, approval_id: int | None) -> str | None:
        """Check that the caller may transfer a token; return its account id, None for the owner."""
        sender_id = self.vm.predecessor_id
        if sender_id == record.owner_id:
            return None
        actual = record.approved_account_ids.get(sender_id)
        self.require(actual is not None, "Sender not approved")
        self.require(
            approval_id in (None, actual),
            f"The actual approval_id Some({actual}) is different from the given approval_id "
            f"Some({approval_id})",
        )
        return sender_id

    def _change_owner(self, record: TokenRecord, token_id: str, owner_id: str) -> None:
        self._remove_from_list(record.owner_id, record.place)
        record.owner_id, record.place = str(owner_id), self._append_to_list(owner_id, token_id)
        self.tokens.put(token_id, record)

    def _append_to_list(self, owner_id: str, token_id: str) -> int:
        index = self.counts.get(owner_id) or 0
        self.vm.storage_write(_list_key(owner_id, index), token_id.encode())
        self.counts.put(owner_id, index + 1)
        return index

    def _remove_from_list(self, owner_id: str, index: int) -> None:
        """Remove a token from its owner's list; the last token moves to its index."""
        last = (self.counts.get(owner_id) or 0) - 1
        if index != last:
            moved_id = self.vm.storage_read(_list_key(owner_id, last)) or b""
            self.vm.storage_write(_list_key(owner_id, index), moved_id)
            moved_record = self._record(moved_id.decode())
            moved_record.place = index
            self.tokens.put(moved_id.decode(), moved_record)
        self.vm.storage_remove(_list_key(owner_id, last))
        self.counts.put_or_remove(owner_id, last)

    def _revoke(self, token_id: str, account_ids: list[str]) -> None:
        record = self._own_record(token_id)
        approvals = record.approved_account_ids
        revoked_ids = [name for name in account_ids if name in approvals]
        for account_id in revoked_ids:
            del approvals[account_id]
        self._refund_approvals(self.vm.predecessor_id, revoked_ids)
        self.tokens.put(token_id, record)

    def _charge_storage(self, size: int) -> None:
        """Charge the deposit for storage; refund the excess if it is above one yoctoNEAR."""
        required, deposit = size * STORAGE_BYTE_PRICE, self.vm.attached_deposit
        self.require(required <= deposit, f"Must attach {required} yoctoNEAR to cover storage")
        if deposit - required > 1:
            self.vm.promise(self.vm.predecessor_id).transfer(deposit - required)

    def _refund_approvals(self, account_id: str, approved_ids: Collection[str]) -> None:
        if approved_ids:
            size = sum(len(approved_id) + APPROVAL_BYTES for approved_id in approved_ids)
            self.vm.promise(account_id).transfer(size * STORAGE_BYTE_PRICE)

    def _log_transfer(
        self,
        token_id: str,
        old_owner_id: str,
        new_owner_id: str,
        authorized_id: str | None = None,
        memo: str | None = None,
    ) -> None:
        row = {"old_owner_id": old_owner_id, "new_owner_id": new_owner_id, "token_ids": [token_id]}
        self._log_event("nft_transfer", {**row, "authorized_id": authorized_id, "memo": memo})

    def _log_event(self, event: str, row: dict[str, Any]) -> None:
        self.event("nep171", "1.0.0", event, [row])

    # Genesis -----------------------------------------------------------------------------

    @classmethod
    def genesis(
        cls, owner_id: str, tokens: Iterable[tuple[str, str, TokenMetadata]]
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the records of a collection with tokens: id, owner and metadata, as minted."""
        total, counts = 0, dict[str, int]()
        for total, (token_id, holder_id, token_metadata) in enumerate(tokens, 1):
            index = counts.get(holder_id, 0)
            counts[holder_id] = index + 1
            yield TOKENS + text(token_id), to_json(_new_record(holder_id, index, token_metadata))
            yield _minted_key(total - 1), token_id.encode()
            yield _list_key(holder_id, index), token_id.encode()
        for holder_id, count in counts.items():
            yield OWNERS + text(holder_id), to_json(count)
        yield STATE_KEY, to_json(cls.State(owner_id=owner_id, metadata=EXAMPLE, total=total))


def _page_range(start: int, limit: int | None, total: int) -> range:
    if limit == 0:
        raise PanicError("Cannot provide limit of 0.")
    return page(total, start, limit)
