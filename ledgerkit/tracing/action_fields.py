"""Fields of decoded actions in exact form: deposits as integers, arguments of calls decoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from pandas import NA

from ledgerkit import json_decoding
from ledgerkit.api.models.actions import action_name, delegate_action, deposit_digits
from ledgerkit.errors import DecodeError, excerpt
from ledgerkit.frames import amounts

if TYPE_CHECKING:
    from ledgerkit.api.models.actions import Action, Actions, FunctionCall

_SAFE_DIGITS = 38  # the largest 128-bit integer has 39
_DECODER = json_decoding.decoder(Any)


def deposit(action: Action | str) -> int | None:
    """Return the deposit of an action in yoctoNEAR (0 for a Delegate); None if unknown."""
    text = deposit_digits(action)
    if text is None:
        return None
    if _is_short(text):
        return int(text)
    return parse_amount(text, f"$..{action_name(action)}.deposit")


def total_deposit(actions: Actions | None) -> int | None:
    """Sum the deposits of actions, including those inside a Delegate; None if one is unknown."""
    if actions is None:
        return None
    total = 0
    for action in actions:
        yocto = action_deposit(action)
        if yocto is None:
            return None
        total += yocto
    return total


def action_deposit(action: Any) -> int | None:
    """Return the deposit of an action, or of a Delegate's content; None if unknown."""
    inner = delegate_action(action)
    return deposit(action) if inner is None else total_deposit(inner.actions)


def _is_short(text: str) -> bool:
    """Return True for digits that fit 128 bits because there are few of them."""
    return len(text) <= _SAFE_DIGITS and text.isascii() and text.isdigit()


def parse_amount(text: str, path: str) -> int:
    """Parse decimal digits of at most 128 bits; `path` is the amount's path, for the error."""
    if _is_short(text):
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
    """Decode the arguments of many calls as `decode_args` does."""
    texts = [data for data in args if data is not None]
    try:
        decoded = _DECODER.decode_all(texts)
    except msgspec.DecodeError:  # not all arguments are JSON
        decoded = list(map(_decode, texts))
    if len(decoded) == len(args):
        return decoded
    values = iter(decoded)
    return [NA if data is None else next(values) for data in args]


def _decode(args: bytes) -> Any:
    try:
        return _DECODER.decode(args)
    except msgspec.DecodeError:
        return args
