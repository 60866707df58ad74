"""
Outcomes and bodies as columns.

They are decoded and taken apart piece by piece, everything about a piece at once: neither
the structs of a large result nor its many equal texts are ever in memory together. A column
ends with what a row holds that has no outcome, or no body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import msgspec
import numpy as np
from msgspec import UNSET
from msgspec.structs import astuple
from pandas import NA

from ledgerkit.api import chain_errors
from ledgerkit.api.models.transactions import Action, ActionReceipt, Delegate, ReceiptBody, Status
from ledgerkit.errors import DecodeError
from ledgerkit.frames import amounts as seam
from ledgerkit.u128.array import U128Array

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from ledgerkit.api.models.transactions import ExecutionOutcome, FunctionCall, Receipt

    Actions = Sequence[Action | str]
    Blocks = Mapping[str, tuple[int, int]]

INT64_MAX = 2**63 - 1

WORDS = ("success_value", "success_receipt_id", "failure", "unknown", "not_executed")
VALUE, HANDED_ON, FAILED, UNKNOWN, NOT_EXECUTED = range(len(WORDS))
_TELLING = (HANDED_ON, FAILED)

_NO_BODY = ReceiptBody()
_NO_ACTION = ActionReceipt()
_NOTHING = Action()
_DISTRIBUTION = "GlobalContractDistribution"
_FIELDS = tuple(zip(Action.__struct_fields__, Action.__struct_encode_fields__, strict=True))
_DECODER = msgspec.json.Decoder()


class Nothing(list[Any]):
    """
    The empty list that rows share.

    Most receipts log nothing and wait for nobody: a list for each of them would be the larger
    part of a frame. It cannot grow; copies and pickles are ordinary lists.
    """

    def _refuse(self, *_: object) -> NoReturn:
        """Keep one row's values out of all others."""
        raise TypeError("many rows share this empty list: put a new list in its place")

    append = extend = insert = __setitem__ = __iadd__ = _refuse

    def __reduce_ex__(self, _: object) -> tuple[type[list[Any]], tuple[()]]:
        """Copy and pickle as an ordinary list."""
        return list, ()


NOTHING = Nothing()
_GAP = seam.parse([None])


class Where(NamedTuple):
    """The place of a piece: its list in the document, and its first element there."""

    path: str
    start: int

    def at(self, member: str, offset: int) -> str:
        """Name a member of one element."""
        return f"{self.path}[{self.start + offset}].{member}"


class Objects:
    """A column of any values."""

    def __init__(self, missing: object = None) -> None:
        """Begin an empty column, and say what stands for no value."""
        self._pieces: list[np.ndarray] = []
        self._end = np.fromiter([missing], dtype=object, count=1)

    def add(self, values: Collection[object]) -> None:
        """Append a piece."""
        self._pieces.append(np.fromiter(values, dtype=object, count=len(values)))

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Give the values of these rows; row -1 is none."""
        taken: np.ndarray = np.concatenate([*self._pieces, self._end])[rows]
        return taken


class Integers:
    """A column of 64-bit integers of which any may be missing."""

    def __init__(self) -> None:
        """Begin an empty column."""
        self._values: list[np.ndarray] = []
        self._missing: list[np.ndarray] = []

    def add(self, values: Sequence[int | None]) -> None:
        """Append a piece."""
        n_missing = values.count(None)
        missing = np.full(len(values), n_missing > 0)
        if 0 < n_missing < len(values):
            missing = np.fromiter((value is None for value in values), dtype=bool)
            values = [value or 0 for value in values]
        known = missing if n_missing == len(values) else values
        self._values.append(np.array(known, dtype=np.int64))
        self._missing.append(missing)

    def take(self, rows: np.ndarray) -> np.ma.MaskedArray[Any, Any]:
        """Give the values of these rows; row -1 is none."""
        values = np.concatenate([*self._values, np.zeros(1, dtype=np.int64)])
        missing = np.concatenate([*self._missing, np.ones(1, dtype=bool)])
        return np.ma.MaskedArray(values[rows], missing[rows])


class Amounts:
    """A column of exact amounts of which any may be missing."""

    def __init__(self) -> None:
        """Begin an empty column."""
        self._pieces: list[U128Array] = []

    def add(self, values: U128Array) -> None:
        """Append a piece."""
        self._pieces.append(values)

    def take(self, rows: np.ndarray) -> U128Array:
        """Give the values of these rows; row -1 is none."""
        pieces = [*self._pieces, _GAP]
        hi, lo, mask = (
            np.concatenate([getattr(piece, plane) for piece in pieces])[rows]
            for plane in ("hi", "lo", "mask")
        )
        return U128Array.of((hi, lo), mask)


class Texts(dict[Any, Any]):
    """Texts of which equal ones are held once."""

    def shared(self, texts: Sequence[str | None]) -> Sequence[str | None]:
        """Give each text as it was first held."""
        first = self.setdefault(texts[0], texts[0])
        if texts.count(first) == len(texts):
            return [first] * len(texts)
        return list(map(self.setdefault, texts, texts))


class Outcomes:
    """The outcomes of receipts, in the document's order; `made` are the ids that each lists."""

    def __init__(self, texts: Texts, blocks: Blocks) -> None:
        """Begin an empty table; `blocks` tells heights and times where outcomes do not."""
        self._texts, self._blocks = texts, blocks
        self.ids: list[str] = []
        self.made: list[Sequence[str]] = []
        self.codes: list[int] = []
        self.failures: dict[int, tuple[str, str]] = {}
        self.handed_on: dict[int, str] = {}
        self.has_heights = False
        self.block_hash, self.logs = Objects(), Objects(NOTHING)
        self.tokens_burnt, self.gas_burnt = Amounts(), Integers()
        self.height, self.time, self.shard_id = Integers(), Integers(), Integers()

    def add(self, piece: Sequence[ExecutionOutcome], where: Where) -> None:
        """Take outcomes apart; `where` is their place."""
        ids, outcomes, hashes, *told, shards = _columns(piece)
        logs, made, gas, tokens, statuses = _columns(outcomes)
        heights, times = _places(hashes, told[0], told[1], self._blocks)
        self.has_heights = self.has_heights or heights.count(None) < len(heights)
        self.ids += ids
        self.made += [children or () for children in made]
        self._add_statuses(statuses)
        self.block_hash.add(self._texts.shared(hashes))
        self.logs.add([lines or NOTHING for lines in logs])
        self.tokens_burnt.add(amounts(tokens, "outcome.tokens_burnt", where))
        self.gas_burnt.add(gas)
        self.height.add(heights)
        self.time.add(times)
        self.shard_id.add(shards)

    def _add_statuses(self, statuses: Sequence[Any]) -> None:
        """Note how executions ended: a code each, and what some have to say."""
        codes = [
            VALUE if type(s) is Status and s.success_value.__class__ is str else status_code(s)
            for s in statuses
        ]
        rows = enumerate(zip(codes, statuses, strict=True), len(self.codes))
        for at, status in [(at, status) for at, (code, status) in rows if code in _TELLING]:
            if status.success_receipt_id is not None:
                self.handed_on[at] = status.success_receipt_id
            else:
                self.failures[at] = self._failure_texts(bytes(status.failure))
        self.codes += codes

    def _failure_texts(self, failure: bytes) -> tuple[str, str]:
        """Describe a failure, each kind of it once."""
        known: tuple[str, str] | None = self._texts.get(failure)
        if known is None:
            known = self._texts[failure] = failure_texts(failure)
        return known


class Bodies:
    """The bodies of receipts, in the order in which they are added."""

    def __init__(self, texts: Texts, expected: Sequence[str]) -> None:
        """Begin an empty table; `expected` are the ids that most likely come."""
        self._texts, self._expected = texts, expected
        self.ids: list[str] = []
        self.inputs: list[tuple[int, list[str]]] = []
        self.outputs: list[tuple[int, list[dict[str, Any]]]] = []
        self.predecessor_id, self.receiver_id, self.signer_id = Objects(), Objects(), Objects()
        self.actions, self.method_name, self.args = Objects(), Objects(), Objects(NA)
        self.deposit, self.gas_attached = Amounts(), Integers()
        self.input_data_ids, self.output_data_receivers = Objects(), Objects()

    def add(self, piece: Sequence[Receipt], where: Where) -> None:
        """Take bodies apart; `where` is their place. Data receipts are no rows."""
        if not piece:
            return
        ids, predecessors, receivers, sent = _columns(piece)
        bodies: list[ReceiptBody] = [body or _NO_BODY for body in sent]
        if any(body.data is not UNSET for body in bodies):
            self.add([r for r in piece if r.receipt is None or r.receipt.data is UNSET], where)
            return
        asked = [body.action or _NO_ACTION for body in bodies]
        signers, actions, inputs, outputs = _columns(asked)
        start = len(self.ids)
        known = self._expected[start : start + len(ids)]
        self.ids += known if known == list(ids) else ids  # equal texts are held once
        self.inputs += [(at, data_ids) for at, data_ids in enumerate(inputs, start) if data_ids]
        self.outputs += [(at, to) for at, to in enumerate(outputs, start) if to]
        self.predecessor_id.add(self._texts.shared(predecessors))
        self.receiver_id.add(self._texts.shared(receivers))
        self.signer_id.add(self._texts.shared(signers))
        self.input_data_ids.add([data_ids or NOTHING for data_ids in inputs])
        self.output_data_receivers.add([to or NOTHING for to in outputs])
        self._add_actions(actions, bodies, where)

    def _add_actions(
        self, actions: Sequence[Any], bodies: Sequence[ReceiptBody], where: Where
    ) -> None:
        """Describe what receipts ask for: one call or one transfer at once, the rest one by one."""
        single = [a[0] if a and len(a) == 1 and type(a[0]) is Action else _NOTHING for a in actions]
        calls = [action.function_call for action in single]
        moves = [action.function_call or action.transfer for action in single]
        pairs = zip(calls, moves, strict=True)
        columns: list[list[Any]] = [
            ["FunctionCall" if call else "Transfer" if move else None for call, move in pairs],
            list(self._texts.shared([call.method_name if call else None for call in calls])),
            [decoded(call) if call else NA for call in calls],
            [move.deposit if move else "0" for move in moves],
            [call.gas if call else 0 for call in calls],
        ]
        for at in [at for at, move in enumerate(moves) if move is None]:
            described = _described(actions[at], bodies[at], where.at("receipt.Action", at))
            for column, value in zip(columns, described, strict=True):
                column[at] = value
        names, methods, args, deposits, gas = columns
        self.actions.add(names)
        self.method_name.add(methods)
        self.args.add(args)
        self.deposit.add(amounts(deposits, "receipt.Action", where))
        self.gas_attached.add(gas)


def _described(actions: Actions | None, body: ReceiptBody, path: str) -> tuple[Any, ...]:
    """Describe any actions: names, methods, arguments, deposit (as text) and gas."""
    if actions is None:
        is_distribution = body.global_contract_distribution is not UNSET
        name, text, gas = (_DISTRIBUTION, "0", 0) if is_distribution else (None, None, None)
        return name, None, NA, text, gas
    calls = list(_calls(actions))
    args = [decoded(call) for call in calls]
    return (
        "+".join(map(action_name, actions)),
        "+".join(call.method_name or "" for call in calls) if calls else None,
        NA if not args else args[0] if len(args) == 1 else args,
        _total_deposit(actions, path),
        _total_gas(calls, path),
    )


def _places(
    hashes: Sequence[str | None],
    heights: Sequence[int | None],
    times: Sequence[int | None],
    blocks: Blocks,
) -> tuple[Sequence[int | None], Sequence[int | None]]:
    """Look up heights and times where the outcomes do not tell them."""
    if not blocks or None not in heights:
        return heights, times
    told = list(zip(heights, times, strict=True))
    found = [
        place if place[0] is not None else blocks.get(block_hash or "", place)
        for place, block_hash in zip(told, hashes, strict=True)
    ]
    return [height for height, _ in found], [time for _, time in found]


def _columns(structs: Sequence[msgspec.Struct]) -> Iterator[tuple[Any, ...]]:
    """Give the fields of structs of one type, a column each."""
    return zip(*map(astuple, structs), strict=True)


def status_code(status: Status | str | None) -> int:
    """
    Tell how an execution ended.

    Parameters
    ----------
    status
        The status on the wire.

    Returns
    -------
    code
        The position of its word in `WORDS`.
    """
    if not isinstance(status, Status):
        return UNKNOWN
    if status.success_receipt_id is not None:
        return HANDED_ON
    if status.failure is not UNSET:
        return FAILED
    return UNKNOWN if status.success_value is UNSET else VALUE


def failure_texts(failure: bytes) -> tuple[str, str]:
    """
    Describe a failure in two texts.

    Parameters
    ----------
    failure
        The failure as sent.

    Returns
    -------
    error_kind
        The path of the ledger's names for it.
    error_message
        A sentence.
    """
    return chain_errors.failure_text(msgspec.json.decode(failure))


def amounts(texts: Sequence[str | None], member: str, where: Where) -> U128Array:
    """
    Read amounts, all at once.

    Parameters
    ----------
    texts
        Decimal digits; None is missing.
    member
        Which member of the elements at `where` they are, for the error.
    where
        Where in the document they stand, for the error.

    Returns
    -------
    amounts
        Exact integers; NA where missing.

    Raises
    ------
    DecodeError
        If a text is not decimal digits, or above 2^128 - 1.
    """
    try:
        return seam.parse(texts)
    except DecodeError:
        for offset, text in enumerate(texts):
            if text is not None:
                amount(text, where.at(member, offset))  # says where it stands
        raise


def amount(text: str, path: str) -> int:
    """
    Read one amount.

    Parameters
    ----------
    text
        Decimal digits.
    path
        Where in the document they stand, for the error.

    Returns
    -------
    amount
        The exact integer.

    Raises
    ------
    DecodeError
        If the text is not decimal digits, or above 2^128 - 1.
    """
    values = seam.plain([text])
    if values is not None:
        return values[0]
    sentence = f"the amount {text[:60]!r} at {path} is not a whole number of 128 bits"
    raise DecodeError(sentence, path=path)


def action_name(action: Action | str) -> str:
    """
    Name an action.

    Parameters
    ----------
    action
        An action as it was decoded.

    Returns
    -------
    name
        Its name on the wire; "Unknown" for an empty object.
    """
    if isinstance(action, str):
        return action
    names = (wire for own, wire in _FIELDS if getattr(action, own) not in (None, UNSET))
    return next(names, "Unknown")


def _calls(actions: Actions) -> Iterator[FunctionCall]:
    """Find the calls, those inside a Delegate too."""
    for action in actions:
        if isinstance(action, Action):
            if action.function_call is not None:
                yield action.function_call
            yield from _delegated(action.delegate or action.delegate_v2)


def _delegated(delegate: Delegate | None) -> Iterator[FunctionCall]:
    """Find the calls inside a Delegate."""
    inner = delegate.delegate_action if delegate else None
    inner = inner.v2 or inner if inner else None
    yield from _calls((inner.actions if inner else None) or ())


def decoded(call: FunctionCall) -> Any:
    """Decode arguments that are JSON; others stay bytes."""
    if call.args is None:
        return NA
    try:
        return _DECODER.decode(call.args)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return call.args


def _total_deposit(actions: Actions, path: str) -> str | None:
    """Add up what the actions move; unknown when one of them is not known."""
    total = 0
    for action in actions:
        part = _deposit(action, path)
        if part is None:
            return None
        total += part
    return str(total)


_BARE = frozenset({"CreateAccount"})
_MOVING = ("function_call", "transfer", "deterministic_state_init", "transfer_to_gas_key")


def _deposit(action: Action | str, path: str) -> int | None:
    """Say what one action moves."""
    if isinstance(action, str):
        return 0 if action in _BARE else None
    for name in _MOVING:
        moving = getattr(action, name)
        if moving is not None:
            text = moving.deposit
            return None if text is None else amount(text, path)
    return 0


def _total_gas(calls: list[FunctionCall], path: str) -> int | None:
    """Add up attached gas; unknown when one call does not tell."""
    total = 0
    for call in calls:
        if call.gas is None:
            return None
        total += call.gas
    if total > INT64_MAX:
        sentence = f"the gas attached at {path} is {total}, which does not fit 64 bits"
        raise DecodeError(sentence, path=path)
    return total
