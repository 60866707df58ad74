"""Fields of decoded actions: name, deposit, call arguments, and the content of a Delegate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET
from pandas import NA

from ledgerkit import json_decoding
from ledgerkit.api.models.transactions import Action, DelegateAction
from ledgerkit.errors import DecodeError, excerpt
from ledgerkit.frames import amounts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ledgerkit.api.models.transactions import FunctionCall

    Actions = Sequence[Action | str]

_FIELDS = tuple(zip(Action.__struct_fields__, Action.__struct_encode_fields__, strict=True))
_FIELDS_WITH_DEPOSIT = (
    "deterministic_state_init",
    "transfer_to_gas_key",
)
_SAFE_DIGITS = 38  # of the 39 of the largest integer of 128 bits
_NAMES = frozenset(Action.__struct_encode_fields__)
_DECODER = json_decoding.decoder(Any)


def action_name(action: Action | str) -> str:
    """Return the action's name on the wire; "Unknown" for an empty object."""
    if isinstance(action, str):
        return action
    if action.function_call is not None:
        return "FunctionCall"
    if action.transfer is not None:
        return "Transfer"
    for own, wire in _FIELDS:
        if getattr(action, own) not in (None, UNSET):
            return wire
    return "Unknown"


def delegate_action(action: Action | str) -> DelegateAction | None:
    """
    Return the signed content of a Delegate; None for any other action.

    The content of an unknown version has no fields: its `actions` are None.
    """
    if isinstance(action, str):
        return None
    delegate = action.delegate or action.delegate_v2
    if delegate is None:
        return None
    inner = delegate.delegate_action or DelegateAction()
    return inner.v2 or inner


def function_calls(actions: Actions) -> Iterator[FunctionCall]:
    """List the function calls of actions, including those inside a Delegate."""
    for action in actions:
        if isinstance(action, Action):
            if action.function_call is not None:
                yield action.function_call
            inner = delegate_action(action)
            yield from function_calls((inner.actions if inner else None) or ())


def deposit(action: Action | str, path: str | None = None) -> int | None:
    """Return the deposit of an action in yoctoNEAR (0 for a Delegate); None if unknown."""
    text = deposit_digits(action)
    if text is None:
        return None
    if is_short_amount(text):
        return int(text)
    return parse_amount(text, path or f"$..{action_name(action)}.deposit")


def deposit_digits(action: Action | str) -> str | None:
    """Return the deposit of an action as it was sent; "0" for a Delegate, None if unknown."""
    if isinstance(action, str):
        return "0" if action == "CreateAccount" else None
    simple = action.function_call or action.transfer
    if simple is not None:  # most actions
        return simple.deposit
    for field in _FIELDS_WITH_DEPOSIT:
        content = getattr(action, field)
        if content is not None:
            text: str | None = content.deposit
            return text
    return "0" if action_name(action) in _NAMES else None


def is_short_amount(text: str) -> bool:
    """Return True for digits that fit 128 bits because there are few of them."""
    return len(text) <= _SAFE_DIGITS and text.isascii() and text.isdigit()


def parse_amount(text: str, path: str) -> int:
    """Parse decimal digits of at most 128 bits; `path` is the amount's place, for the error."""
    if is_short_amount(text):
        return int(text)
    values = amounts.plain([text])
    if values is not None:
        return values[0]
    sentence = f"the amount {excerpt(text, 60)!r} at {path} is not a whole number of 128 bits"
    raise DecodeError(sentence, path=path)


def decode_args(call: FunctionCall) -> Any:
    """Decode a call's arguments if they are JSON; return other arguments as bytes."""
    return NA if call.args is None else _decode(call.args)


def decode_all_args(args: Sequence[bytes | None]) -> list[Any]:
    """Decode the arguments of many calls, each as `decode_args` does."""
    known = [data for data in args if data is not None]
    try:
        decoded = _DECODER.decode_all(known)
    except msgspec.DecodeError:  # one is not JSON
        decoded = list(map(_decode, known))
    if len(decoded) == len(args):
        return decoded
    values = iter(decoded)
    return [NA if data is None else next(values) for data in args]


def _decode(args: bytes) -> Any:
    """Decode arguments if they are JSON; return others as they are."""
    try:
        return _DECODER.decode(args)
    except msgspec.DecodeError:
        return args
