"""The JSON that contracts and their callers wrote: arguments, results and events (NEP-297)."""

from __future__ import annotations

from typing import Any

import msgspec

from ledgerkit import json_decoding

_EVENT = "EVENT_JSON:"


def decode(data: bytes | str | msgspec.Raw, kind: Any = Any) -> Any:
    """Decode JSON; None if it is malformed or not of the type."""
    try:
        return json_decoding.decode(data, kind)
    except msgspec.DecodeError:
        return None


def decode_event(log: str, kind: Any) -> Any:
    """Decode the event in a log; None if there is none, or it is not of the type."""
    return decode(log[len(_EVENT) :], kind) if log.startswith(_EVENT) else None
