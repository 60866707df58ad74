"""
The index behind the Transfers API: the transfers of each account.

Rows come from successful receipts: from their actions and events, and from some calls that move
tokens without an event.
"""

# Source: fastnear/transfers-indexer, src/block_indexer.rs, process_block, and src/types.rs.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Raw, Struct

from ledgerkit.localnet.block_follower import BlockFollower
from ledgerkit.localnet.chain_types import ActionReceipt, Block, Failure, Outcome, SuccessValue
from ledgerkit.localnet.contract_sdk import U128, decode_event, from_json
from ledgerkit.protocol import AccountId, Action, DeterministicStateInit, FunctionCall, Transfer

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

NATIVE = "native:near"
_WRAP = "wrap.near"
_MULTIPLIER = 10_000  # the step of transfer indices from one log or action to the next
# The offsets added to the transfer index of an action.
_OFFSETS = {"NativeTransfer": 9_999, "AttachedDeposit": 9_998, "DeterministicStateInit": 9_997}


class Row(Struct, frozen=True):
    """A transfer, and the receipt that it comes from."""

    block: Block
    receipt: ActionReceipt
    transaction_id: str
    tokens: Tokens
    transfer_index: int
    transfer_type: str
    action_index: int | None = None
    log_index: int | None = None
    method_name: str | None = None


class Tokens(NamedTuple):
    """
    Moved tokens: the fields that distinguish the transfers of a receipt.

    The sender of a mint and the receiver of a burn are None.
    """

    asset_id: str
    sender_id: str | None
    receiver_id: str | None
    amount: int


class TransferIndex(BlockFollower):
    """The transfers of a world by account, in order."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._by_account: dict[str, list[Row]] = {}

    def rows(self, account_id: str) -> list[Row]:
        """List the transfers from and to an account, sorted by block and transfer index."""
        return self._by_account.get(account_id, [])

    def _read_block(self, block: Block) -> None:
        """Read the receipts of a block, in the order of the shard ids."""
        world, shard_ids = self._world, self._world.settings.shard_ids
        rows: list[Row] = []
        count = 0  # the number of logs and actions so far
        executions = sorted(world.executions(block), key=lambda pair: shard_ids[pair[1].shard_id])
        for receipt, outcome in executions:
            tx_hash = str(world.origin(outcome.id))
            rows += _ReceiptRows(block, receipt, outcome, tx_hash, count).rows()
            count += len(outcome.logs) + len(receipt.actions)
        for row in sorted(rows, key=lambda row: row.transfer_index):
            # A transfer to the sender itself is one row.
            for account_id in dict.fromkeys((row.tokens.sender_id, row.tokens.receiver_id)):
                if account_id is not None:
                    self._by_account.setdefault(account_id, []).append(row)


@dataclass
class _ReceiptRows:
    block: Block
    receipt: ActionReceipt
    outcome: Outcome
    tx_hash: str
    count: int  # the number of logs and actions before it in the block

    def __post_init__(self) -> None:
        self._contract_id = str(self.receipt.receiver_id)
        self._caller_id = str(self.receipt.predecessor_id)
        # The tokens of events. A call that implies the same transfer is not counted again.
        self._logged: Counter[Tokens] = Counter()

    def rows(self) -> list[Row]:
        """List the transfers, of events first; a failed receipt has none."""
        if isinstance(self.outcome.status, Failure):
            return []
        rows = list(self._event_rows())
        first = self.count + len(self.outcome.logs)
        for index, action in enumerate(self.receipt.actions):
            rows += self._action_rows(action, index, (first + index) * _MULTIPLIER)
        return rows

    def _row(self, tokens: Tokens, transfer_index: int, kind: str, **members: Any) -> Row:
        return Row(self.block, self.receipt, self.tx_hash, tokens, transfer_index, kind, **members)

    # Events --------------------------------------------------------------------------------

    def _event_rows(self) -> Iterator[Row]:
        method_name = self._method_name()
        for log_index, log in enumerate(self.outcome.logs):
            event = decode_event(log, _Event)
            if event is None:
                continue
            first = (self.count + log_index) * _MULTIPLIER
            read = _EVENT_MOVES.get(event.standard)
            moves = () if read is None else read(event, self._contract_id)
            kind = "FtTransfer" if event.standard == "nep141" else "MtTransfer"
            members = {"log_index": log_index, "method_name": method_name}
            for transfer_index, tokens in enumerate(moves, first):
                if tokens is not None:
                    self._logged[tokens] += 1
                    yield self._row(tokens, transfer_index, kind, **members)

    def _method_name(self) -> str | None:
        """Return the method that logged; None if the receipt calls several methods."""
        names = {a.method_name for a in self.receipt.actions if isinstance(a, FunctionCall)}
        return names.pop() if len(names) == 1 else None

    # Actions -------------------------------------------------------------------------------

    def _action_rows(self, action: Action, index: int, first: int) -> Iterator[Row]:
        if isinstance(action, FunctionCall):
            name, deposit = action.method_name, action.deposit
            if deposit > 1:
                yield self._native("AttachedDeposit", deposit, index, first, name)
            yield from self._call_rows(action, index, first)
        elif isinstance(action, Transfer):
            yield self._native("NativeTransfer", action.deposit, index, first)
        elif isinstance(action, DeterministicStateInit):
            yield self._native("DeterministicStateInit", action.deposit, index, first)

    def _native(
        self, kind: str, amount: int, index: int, first: int, method_name: str | None = None
    ) -> Row:
        tokens = Tokens(NATIVE, self._caller_id, self._contract_id, amount)
        transfer_index = first + _OFFSETS[kind]
        return self._row(tokens, transfer_index, kind, action_index=index, method_name=method_name)

    def _call_rows(self, call: FunctionCall, index: int, transfer_index: int) -> Iterator[Row]:
        """Yield the transfer that a call implies, unless an event reports it."""
        tokens = self._implied_tokens(call)
        if tokens is None:
            return
        if self._logged[tokens]:
            self._logged[tokens] -= 1
            return
        is_wrapping = call.method_name in ("near_deposit", "near_withdraw")
        kind = "WrappedNear" if is_wrapping else "FtTransfer"
        name = call.method_name
        yield self._row(tokens, transfer_index, kind, action_index=index, method_name=name)

    def _implied_tokens(self, call: FunctionCall) -> Tokens | None:
        asset_id, caller_id = f"nep141:{self._contract_id}", self._caller_id
        name, is_wrap = call.method_name, self._contract_id == _WRAP
        if name in ("ft_transfer", "ft_transfer_call"):
            args = from_json(call.args, _TransferArgs)
            return args and Tokens(asset_id, caller_id, args.receiver_id, args.amount)
        if name == "ft_resolve_transfer":
            return self._returned_tokens(call, asset_id)
        if name == "near_deposit" and is_wrap:
            return Tokens(asset_id, None, caller_id, call.deposit)
        if name == "near_withdraw" and is_wrap:
            args = from_json(call.args, _WithdrawArgs)
            return args and Tokens(asset_id, caller_id, None, args.amount)
        return None

    def _returned_tokens(self, call: FunctionCall, asset_id: str) -> Tokens | None:
        """Return the tokens that the receiver of `ft_transfer_call` did not use, or None."""
        args, status = from_json(call.args, _ResolveArgs), self.outcome.status
        if args is None or not isinstance(status, SuccessValue):
            return None
        used = from_json(status.value, U128)
        if used is None or used >= args.amount:
            return None
        return Tokens(asset_id, args.receiver_id, args.sender_id, args.amount - used)


# The JSON of events and arguments ----------------------------------------------------------


class _Event(Struct):
    version: str
    standard: str
    event: str
    data: list[Raw]


class _TransferArgs(Struct):
    receiver_id: AccountId
    amount: U128


class _ResolveArgs(_TransferArgs):
    sender_id: AccountId


class _WithdrawArgs(Struct):
    amount: U128


class _Moved(Struct):
    old_owner_id: AccountId
    new_owner_id: AccountId


class _Owned(Struct):
    owner_id: AccountId


class _FtMoved(_Moved):
    amount: U128


class _FtOwned(_Owned):
    amount: U128


class _MtMoved(_Moved):
    token_ids: list[str]
    amounts: list[U128]


class _MtOwned(_Owned):
    token_ids: list[str]
    amounts: list[U128]


def _ft_moves(event: _Event, contract_id: str) -> Iterator[Tokens | None]:
    """Yield the tokens of each item of a NEP-141 event; None for a malformed item."""
    kind = _FT_DATA.get(event.event)
    for raw in event.data if kind is not None else ():
        data = from_json(raw, kind)
        yield data and Tokens(f"nep141:{contract_id}", *_owners(event.event, data), data.amount)


def _mt_moves(event: _Event, contract_id: str) -> Iterator[Tokens | None]:
    """Yield the tokens of each item of a NEP-245 event; a malformed item has none."""
    kind = _MT_DATA.get(event.event)
    for raw in event.data if kind is not None else ():
        data = from_json(raw, kind)
        if data is not None and len(data.token_ids) == len(data.amounts):
            owners = _owners(event.event, data)
            for token_id, amount in zip(data.token_ids, data.amounts, strict=True):
                yield Tokens(f"nep245:{contract_id}:{token_id}", *owners, amount)


def _owners(event: str, data: Any) -> tuple[str | None, str | None]:
    if event.endswith("_transfer"):
        return data.old_owner_id, data.new_owner_id
    return (None, data.owner_id) if event.endswith("_mint") else (data.owner_id, None)


_FT_DATA = {"ft_transfer": _FtMoved, "ft_mint": _FtOwned, "ft_burn": _FtOwned}
_MT_DATA = {"mt_transfer": _MtMoved, "mt_mint": _MtOwned, "mt_burn": _MtOwned}
_EVENT_MOVES = {"nep141": _ft_moves, "nep245": _mt_moves}
