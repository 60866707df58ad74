"""
Movements of tokens without events, from the log lines, arguments and results of known methods.

Many tokens are older than the events of the standards (NEP-297). They are read as the public
indexers read them: from the lines that the contracts of their time log, else from the arguments
of a call that succeeded. A contract can log any text. A line is read only in a method whose code
writes it, because in other methods the same words have other meanings: the first contracts of
non-fungible tokens log ``Transfer ID from A to B``, and `A` need not be the owner. As with events,
a contract can report movements of its own token only.
"""

from __future__ import annotations

import base64
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ledgerkit import json_decoding
from ledgerkit.api.models.actions import function_call
from ledgerkit.api.models.transactions import Status
from ledgerkit.tracing.token_standards import (
    FUNGIBLE,
    MULTI_TOKEN,
    NON_FUNGIBLE,
    Movement,
    TokenStandardError,
    parse_amount,
    read_amount,
    read_text,
)

if TYPE_CHECKING:
    from ledgerkit.tracing.gas import ReceiptValues

_ARGS = "args"  # the name of a call's arguments in errors
_DELETED = "The account of the sender was deleted"
_MEMO = "Memo: "
_NO_EVENT = "it logs no event of its standard"
_ADDRESS_BYTES, _AMOUNT_BYTES = 20, 16

# The lines that each method logs: near-contract-standards before it had events (near-sdk-rs
# 0e890310^), the hooks of its template, wrapped NEAR in both spellings, and Aurora.
_TRANSFER = r"Transfer (?P<amount>\d+) from (?P<sender>\S+) to (?P<receiver>\S+)"
_REFUND = r"Refund (?:amount )?(?P<amount>\d+) from (?P<sender>\S+) to (?P<receiver>\S+)"
_LINES = {
    method: re.compile(pattern, re.ASCII)
    for method, pattern in (
        ("ft_transfer", _TRANSFER),
        ("ft_transfer_call", _TRANSFER),
        ("ft_resolve_transfer", rf"{_REFUND}|Account @\S+ burned (?P<burnt>\d+)"),
        ("storage_unregister", r"Closed @(?P<sender>\S+) with (?P<amount>\d+)"),
        ("near_deposit", r"Deposit (?P<amount>\d+) NEAR to (?P<receiver>\S+)"),
        ("near_withdraw", r"Withdraw (?P<amount>\d+) (?:yocto)?NEAR from (?P<sender>\S+)"),
        ("finish_deposit", r"Mint (?P<amount>\d+) nETH tokens for: (?P<receiver>\S+)"),
    )
}
_FIRST_WORDS = ("Transfer", "Refund", "Account", "Closed", "Deposit", "Withdraw", "Mint")


class TokenCall(NamedTuple):
    """A successful call of a token's method; `is_last` if its result is the receipt's."""

    position: int
    predecessor_id: str | None
    method: str
    args: bytes
    is_last: bool
    rule: _Rule


class _Rule(NamedTuple):
    """The reader of a method's movements, and their names in the standard."""

    verbs: tuple[str, ...]
    read: Callable[[TokenCall, CallReader], list[Movement]]
    standard: str = FUNGIBLE
    contracts: re.Pattern[str] = re.compile(r".*")  # the contracts that the rule is for


class CallReader:
    """The token calls of transactions, and the receipts around them."""

    def __init__(self, values: ReceiptValues) -> None:
        self.values = values
        self.lines: list[list[str]] = values.forest.columns["logs"]

    def calls(self, position: int) -> list[TokenCall]:
        """List the calls of token methods in a receipt, in their order."""
        actions = self.values.actions[position] or ()
        calls = []
        for index, action in enumerate(actions, 1):
            call = function_call(action)
            if call is None or call.method_name not in _RULES:
                continue
            contract_id, rules = self.values.receivers[position] or "", _RULES[call.method_name]
            rule = next((rule for rule in rules if rule.contracts.fullmatch(contract_id)), None)
            if rule is not None:
                sender_id, args = self.values.senders[position], call.args or b""
                is_last = index == len(actions)
                calls.append(TokenCall(position, sender_id, call.method_name, args, is_last, rule))
        return calls

    def descendants(self, position: int) -> Iterator[int]:
        """Iterate over the positions of the receipts that a receipt led to."""
        waiting = list(self.children[position])
        while waiting:
            child = waiting.pop()
            yield child
            waiting += self.children[child]

    @cached_property
    def children(self) -> defaultdict[int, list[int]]:
        """The positions of the receipts that each receipt created."""
        children = defaultdict(list)
        for position, parent in enumerate(self.values.parents):
            children[parent].append(position)
        return children

    def returned(self, call: TokenCall) -> Any:
        """Decode the JSON that a call returned; raise `TokenStandardError` if there is none."""
        execution = self.values.executions[call.position]
        status = execution.outcome.status if execution else None
        text = status.success_value if isinstance(status, Status) else None
        if not isinstance(text, str) or not call.is_last:
            raise TokenStandardError("its result is not in the document")
        try:
            return json_decoding.decode(base64.b64decode(text))
        except ValueError:  # not base64, or not JSON
            raise TokenStandardError("its result is not JSON") from None


def line_movements(lines: list[str], calls: Iterable[TokenCall]) -> Iterator[Movement]:
    """Read the movements in a receipt's log lines, also of amount 0; `calls` are the receipt's."""
    by_method = {call.method: call for call in calls if call.method in _LINES}
    for line, next_line in pairwise([*lines, ""]):
        for method, call in by_method.items():
            match = _LINES[method].fullmatch(line)
            if match is None:
                continue
            try:
                movement = _line_movement(match.groupdict(), call)
            except TokenStandardError:
                continue  # the call is read from its arguments, or noted
            memo = next_line[len(_MEMO) :] if next_line.startswith(_MEMO) else None
            yield movement._replace(memo=memo)
            break  # another method with the same line reports the same movement


def _line_movement(groups: dict[str, str | None], call: TokenCall) -> Movement:
    sender_id, amount = groups.get("sender"), groups["amount"]
    if amount is None:
        # The line names the sender, whose account was deleted; the tokens are burnt from the
        # receiver, who had received them.
        sender_id, amount = read_text(_arguments(call), "receiver_id", _ARGS), groups["burnt"]
    units = parse_amount(amount or "", "the amount")
    return Movement(FUNGIBLE, None, sender_id, groups.get("receiver"), units)


def is_unread(line: str, methods: Iterable[str]) -> bool:
    """Return True if a line reads like a movement that none of these methods logs."""
    if not line.startswith(_FIRST_WORDS):
        return False
    loggers = {method for method, pattern in _LINES.items() if pattern.fullmatch(line)}
    return bool(loggers) and loggers.isdisjoint(methods)


# Meta Pool logs JSON objects (Narwallets/meta-pool, metapool/src/internal.rs and lib.rs): the
# member with the stNEAR, its sender and its receiver. The contract owns the stNEAR of its
# liquidity pool.
META_POOL = "meta-pool.near"
_META_POOL_EVENTS = {
    "D-UNSTK": ("shares", "account_id", None),
    "LIQ.U": ("stnear", "account_id", META_POOL),
    "REM.L": ("stnear", META_POOL, "account_id"),
    "NSLP.clr": ("shares", META_POOL, None),
}
_META_POOL_GAPS = {
    "STAKE": "the stNEAR minted is not logged",
    "LIQ.U": "what others than the pool receive of its fee is not logged",
}
_META_POOL_NAMES = _META_POOL_EVENTS.keys() | _META_POOL_GAPS.keys()


class PoolEvent(NamedTuple):
    """An event of Meta Pool: its name, its movements, and a note on what it leaves out."""

    name: str
    movements: list[Movement]
    gap: str | None


def meta_pool_events(lines: Iterable[str]) -> Iterator[PoolEvent]:
    """Read the events that Meta Pool logs as JSON objects."""
    for line in lines:
        document = _json_object(line)
        name = document.get("event")
        if not isinstance(name, str) or name not in _META_POOL_NAMES:
            continue
        try:
            movements, gap = _pool_movements(name, document), _META_POOL_GAPS.get(name)
        except TokenStandardError as problem:
            movements, gap = [], str(problem)
        yield PoolEvent(name, movements, gap)


def _json_object(line: str) -> dict[str, Any]:
    """Decode a line that is a JSON object; return an empty object for any other line."""
    try:
        document = json_decoding.decode(line) if line.startswith("{") else None
    except msgspec.DecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _pool_movements(name: str, document: dict[str, Any]) -> list[Movement]:
    if name not in _META_POOL_EVENTS:
        return []
    member, *parties = _META_POOL_EVENTS[name]
    amount = read_amount(document, member, name)
    sender_id, receiver_id = [
        read_text(document, party, name) if party == "account_id" else party for party in parties
    ]
    return _movement(sender_id, receiver_id, amount)


# The methods -----------------------------------------------------------------------------


def _arguments(call: TokenCall) -> dict[str, Any]:
    """Decode the arguments of a call; raise `TokenStandardError` if they are not a JSON object."""
    try:
        arguments = json_decoding.decode(call.args)
    except msgspec.DecodeError:
        raise TokenStandardError(f"{_ARGS} is not JSON") from None
    if not isinstance(arguments, dict):
        raise TokenStandardError(f"{_ARGS} is not an object")
    return arguments


def _movement(
    sender_id: str | None, receiver_id: str | None, amount: int, memo: str | None = None
) -> list[Movement]:
    """Build the movement of a fungible token; no movement for an amount of zero."""
    return [Movement(FUNGIBLE, None, sender_id, receiver_id, amount, memo)] if amount else []


def _predecessor(call: TokenCall) -> str:
    if call.predecessor_id is None:
        raise TokenStandardError("its predecessor is not in the document")
    return call.predecessor_id


def _read_transfer(call: TokenCall, _: CallReader) -> list[Movement]:
    arguments = _arguments(call)
    receiver_id, memo = read_text(arguments, "receiver_id", _ARGS), arguments.get("memo")
    sender_id, amount = _predecessor(call), read_amount(arguments, "amount", _ARGS)
    return _movement(sender_id, receiver_id, amount, memo if isinstance(memo, str) else None)


def _read_ft_transfer(call: TokenCall, reader: CallReader) -> list[Movement]:
    """Read a transfer; refuse a call that leaves it to another receipt."""
    if reader.values.status[call.position] != "success_value":
        raise TokenStandardError("it left the transfer to another receipt")
    return _read_transfer(call, reader)


def _read_ft_transfer_call(call: TokenCall, reader: CallReader) -> list[Movement]:
    """Read a transfer; refuse a call that does not call the receiver, as the standard demands."""
    movements, methods = _read_transfer(call, reader), reader.values.forest.columns["method_name"]
    called = {
        reader.values.receivers[child]
        for child in reader.children[call.position]
        if "ft_on_transfer" in (methods[child] or "").split("+")
    }
    if any(movement.receiver_id not in called for movement in movements):
        raise TokenStandardError("the document has no call of ft_on_transfer of its receiver")
    return movements


def _read_ft_resolve_transfer(call: TokenCall, reader: CallReader) -> list[Movement]:
    """Read a refund: the amount less the part that the result says was used."""
    if _DELETED in reader.lines[call.position]:
        raise TokenStandardError("the amount burnt for a deleted account is not logged")
    arguments, result = _arguments(call), reader.returned(call)
    if not isinstance(result, str):
        raise TokenStandardError("its result is not a text")
    amount, used = read_amount(arguments, "amount", _ARGS), parse_amount(result, "its result")
    if used > amount:
        raise TokenStandardError("its result is more than the amount")
    sender_id = read_text(arguments, "sender_id", _ARGS)
    return _movement(read_text(arguments, "receiver_id", _ARGS), sender_id, amount - used)


def _read_near_withdraw(call: TokenCall, reader: CallReader) -> list[Movement]:
    """Read an amount burnt; refuse a call that does not pay as much NEAR to the predecessor."""
    values, account_id = reader.values, _predecessor(call)
    amount = read_amount(_arguments(call), "amount", _ARGS)
    paid = [
        values.forest.columns["deposit"][child]
        for child in reader.children[call.position]
        if values.receivers[child] == account_id
    ]
    if not any(deposit is not None and deposit >= amount for deposit in paid):
        raise TokenStandardError("the document has no receipt that pays the amount out")
    return _movement(account_id, None, amount)


def _read_storage_unregister(call: TokenCall, reader: CallReader) -> list[Movement]:
    """Refuse a forced end of a registration: the arguments lack the balance that it burns."""
    if call.args and _arguments(call).get("force") is True and reader.returned(call) is not False:
        raise TokenStandardError("the balance burnt is not logged")
    return []


def _minting(
    member: str | None, amount: str = "amount", *, burns: bool = False
) -> Callable[..., list[Movement]]:
    """Return a reader of mints, or burns; `member` is the account, None the predecessor."""

    def read(call: TokenCall, _: CallReader) -> list[Movement]:
        arguments = _arguments(call)
        units = read_amount(arguments, amount, _ARGS)
        account_id = read_text(arguments, member, _ARGS) if member else _predecessor(call)
        return _movement(account_id, None, units) if burns else _movement(None, account_id, units)

    return read


def _read_unknown_mint(call: TokenCall, reader: CallReader) -> list[Movement]:
    """Refuse a mint or burn without an event, unless another contract was called to do it."""
    [verb] = call.rule.verbs
    for child in reader.descendants(call.position):
        if any(verb in inner.rule.verbs for inner in reader.calls(child)):
            return []  # the inner call is read, or noted
        if any(f'_{verb}"' in line for line in reader.lines[child]):
            return []
    raise TokenStandardError(_NO_EVENT)


def _read_unknown_new(call: TokenCall, _: CallReader) -> list[Movement]:
    """Refuse an initialization that has the arguments of near-sdk's fungible token."""
    if b'"total_supply"' in call.args:
        raise TokenStandardError(_NO_EVENT)
    return []


def _read_aurora_withdraw(call: TokenCall, reader: CallReader) -> list[Movement]:
    """Read an amount that the predecessor burnt, after an Ethereum address, in Borsh."""
    if reader.values.status[call.position] != "success_value":
        raise TokenStandardError("it left the withdrawal to another receipt")
    if len(call.args) != _ADDRESS_BYTES + _AMOUNT_BYTES:
        raise TokenStandardError(f"{_ARGS} is not an address and an amount")
    return _movement(_predecessor(call), None, int.from_bytes(call.args[_ADDRESS_BYTES:], "little"))


def _read_nft_resolve_transfer(call: TokenCall, reader: CallReader) -> list[Movement]:
    """Return no movement if the result says that the receiver kept the token."""
    if reader.returned(call) is not True:
        raise TokenStandardError(_NO_EVENT)
    return []


def _refusing(reason: str) -> Callable[[TokenCall, CallReader], list[Movement]]:
    """Return a reader for methods whose arguments lack the movement."""

    def refuse(*_: object) -> list[Movement]:
        raise TokenStandardError(reason)

    return refuse


# The arguments lack the owner of a token that is not fungible: the predecessor may be an account
# that the owner approved.
_read_unlogged = _refusing(_NO_EVENT)
# The first deposit of an account also pays for its registration.
_read_near_deposit = _refusing("the amount minted is not logged, and may be less than the deposit")
_read_finish_deposit = _refusing("the amount minted is not logged")
_read_withdraw = _minting(None, burns=True)

_AURORA = re.compile(r"aurora")
_BRIDGED = re.compile(r"[0-9a-f]{40}\.factory\.bridge\.near")
_FACTORIES = re.compile(r"token\.skyward\.near|[a-z0-9-]+\.tkn\.near|token\.burrow\.near")
_REF = re.compile(r"token(\.v2)?\.ref-finance\.near")
_A11BD = re.compile(r"x?abr\.a11bd\.near|.+\.token\.a11bd\.near")
_L2E = re.compile(r"(gold|gems|elixir)\.l2e\.near")
_META_TOKEN = re.compile(r"meta-token\.near")
_FUSOTAO = re.compile(r"fusotao-token\.near")
ANY = ""  # the standard of a method that several standards have
_MINT = _Rule(("mint",), _read_unknown_mint, ANY)
_BURN = _Rule(("burn",), _read_unknown_mint, ANY)
# As near-microindexers (indexer-events, coin/legacy) and NearBlocks (apps/indexer-events,
# services/contracts/ft) read these contracts.
_RULES: dict[str, tuple[_Rule, ...]] = {
    "ft_transfer": (_Rule(("transfer",), _read_ft_transfer),),
    "ft_transfer_call": (_Rule(("transfer",), _read_ft_transfer_call),),
    "ft_resolve_transfer": (_Rule(("transfer", "burn"), _read_ft_resolve_transfer),),
    "near_deposit": (_Rule(("mint",), _read_near_deposit),),
    "near_withdraw": (_Rule(("burn",), _read_near_withdraw),),
    "storage_unregister": (_Rule(("burn",), _read_storage_unregister),),
    "finish_deposit": (_Rule(("mint",), _read_finish_deposit, contracts=_AURORA),),
    "mint": (
        _Rule(("mint",), _minting("account_id"), contracts=_BRIDGED),
        _Rule(("mint",), _minting("account_id"), contracts=_META_TOKEN),
        _Rule(("mint",), _minting("receiver"), contracts=_A11BD),
        _Rule(("mint",), _minting(None), contracts=_FUSOTAO),
        _MINT,
    ),
    "burn": (
        _Rule(("burn",), _minting("sender", burns=True), contracts=_A11BD),
        _Rule(("burn",), _read_withdraw, contracts=_FUSOTAO),
        _BURN,
    ),
    **dict.fromkeys(("ft_mint", "nft_mint", "nft_batch_mint", "mt_mint"), (_MINT,)),
    **dict.fromkeys(("ft_burn", "nft_burn", "mt_burn"), (_BURN,)),
    "new": (
        _Rule(("mint",), _minting("owner_id", "total_supply"), contracts=_FACTORIES),
        _Rule(("mint",), _minting("owner", "total_supply"), contracts=_REF),
        _Rule(("mint",), _minting(None, "premined_balance"), contracts=_FUSOTAO),
        _Rule(("mint",), _read_unknown_new),
    ),
    "new_default_meta": (
        _Rule(("mint",), _minting("owner_id", "total_supply"), contracts=_L2E),
        _Rule(("mint",), _read_unknown_new),
    ),
    "withdraw": (
        _Rule(("burn",), _read_aurora_withdraw, contracts=_AURORA),
        _Rule(("burn",), _read_withdraw, contracts=_BRIDGED),
    ),
    "nft_resolve_transfer": (_Rule(("transfer",), _read_nft_resolve_transfer, NON_FUNGIBLE),),
    **dict.fromkeys(
        ("nft_transfer", "nft_transfer_call", "nft_transfer_payout"),
        (_Rule(("transfer",), _read_unlogged, NON_FUNGIBLE),),
    ),
    **dict.fromkeys(
        ("mt_transfer", "mt_transfer_call", "mt_batch_transfer", "mt_batch_transfer_call"),
        (_Rule(("transfer",), _read_unlogged, MULTI_TOKEN),),
    ),
}
