"""The JSON that contracts and their callers wrote: arguments, results and events (NEP-297)."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ledgerkit import json_decoding
from ledgerkit.protocol import AccountId
from ledgerkit.units import U128_MAX
from ledgerkit.validation import is_account_id

_EVENT = "EVENT_JSON:"
_DIGITS = re.compile(r"\+?[0-9]{1,40}")


class Amount(int):
    """An amount of 128 bits, which is a text of digits in JSON."""


def decode(data: bytes | str | msgspec.Raw, kind: Any = Any) -> Any:
    """Decode JSON; None if it is malformed or not of the type."""
    try:
        return json_decoding.decode(data, kind, _parse)
    except msgspec.DecodeError:
        return None


def decode_event(log: str, kind: Any) -> Any:
    """Decode the event in a log; None if there is none, or it is not of the type."""
    return decode(log[len(_EVENT) :], kind) if log.startswith(_EVENT) else None


def _parse(expected: type, value: object) -> object:
    """Build an account id or an amount from its text."""
    if issubclass(expected, AccountId) and is_account_id(value):
        return AccountId(value)
    if issubclass(expected, Amount) and isinstance(value, str) and _DIGITS.fullmatch(value):
        amount = Amount(value)
        if amount <= U128_MAX:
            return amount
    raise ValueError(f"not of the type {expected.__name__}")
