"""What the events of the token standards say was moved, and how two old log lines say it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.frames import amounts
from ledgerkit.tracing import actions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.tracing.actions import Event
    from ledgerkit.tracing.tree import Tree

_SHOWN = 3
_KINDS = {"nep141": "token", "nep171": "nft", "nep245": "multi_token"}
# Who gave and who got it, by the last word of the event's name.
_SIDES = {
    "mint": (None, "owner_id"),
    "burn": ("owner_id", None),
    "transfer": ("old_owner_id", "new_owner_id"),
}
_PREFIXES = {"nep141": "ft_", "nep171": "nft_", "nep245": "mt_"}
# Wrapped NEAR is older than the standard's events: these lines stand for mint and burn.
_WRAPPED = {
    "near_deposit": re.compile(r"Deposit (\d+) NEAR to (\S+)", re.ASCII),
    "near_withdraw": re.compile(r"Withdraw (\d+) yoctoNEAR from (\S+)", re.ASCII),
}


class Moved(NamedTuple):
    """One movement, and the receipt that made it (-1: the transaction itself)."""

    at: int
    kind: str
    asset: str
    sender_id: str | None
    receiver_id: str | None
    amount: int
    memo: str | None = None


def moved(tree: Tree) -> tuple[list[Moved], tuple[str, ...]]:
    """
    Read what moved of the tokens of all contracts, in receipts that succeeded.

    Parameters
    ----------
    tree
        The receipt tree.

    Returns
    -------
    rows
        One a token and element of an event's data, in the order of receipts.
    notes
        Which events could not be understood.
    """
    status, contracts = tree.columns["status"], tree.columns["receiver_id"]
    rows: list[Moved] = []
    odd: list[str] = []
    counted: set[int] = set()
    for event in actions.events(tree):
        if status[event.at] not in actions.SUCCEEDED:
            continue
        try:
            found = list(_moves(event, contracts[event.at]))
        except (ValueError, TypeError, AttributeError, KeyError):
            odd.append(f"{event.event} of {contracts[event.at]} in {tree.ids[event.at]}")
            continue
        rows += found
        counted |= {event.at for one in found if one.kind == "token"}
    rows += (one for one in _wrapped(tree) if one.at not in counted)
    return sorted(rows, key=lambda one: one.at), _told(odd)


def _moves(event: Event, contract_id: str) -> Iterator[Moved]:
    """Read one event; one of another standard moves nothing that is known here."""
    standard = event.standard or ""
    prefix, _, word = (event.event or "").partition("_")
    if _PREFIXES.get(standard) != f"{prefix}_" or word not in _SIDES:
        return
    giver, taker = _SIDES[word]
    for element in event.data:
        sides = [None if side is None else _text(element[side]) for side in (giver, taker)]
        memo = element.get("memo")
        for suffix, amount in _parts(standard, element):
            asset = f"{standard}:{contract_id}{suffix}"
            told = memo if isinstance(memo, str) else None
            yield Moved(event.at, _KINDS[standard], asset, sides[0], sides[1], amount, told)


def _parts(standard: str, element: dict[str, Any]) -> list[tuple[str, int]]:
    """List what one element of an event's data is about: the end of the asset's name, how much."""
    if standard == "nep141":
        return [("", _amount(element["amount"]))]
    ids = [f":{_text(token_id)}" for token_id in element["token_ids"]]
    if standard == "nep171":
        return [(token_id, 1) for token_id in ids]
    return list(zip(ids, map(_amount, element["amounts"]), strict=True))


def _text(value: object) -> str:
    """Take a text, and nothing else."""
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _amount(value: object) -> int:
    """Take an amount as the standards write it: decimal digits of at most 128 bits."""
    read = amounts.plain([_text(value)])
    if read is None:
        raise ValueError(value)
    return read[0]


def _wrapped(tree: Tree) -> Iterator[Moved]:
    """Read the lines in which wrapped NEAR tells what was wrapped and unwrapped."""
    columns = tree.columns
    for at, methods in enumerate(columns["method_name"]):
        for method in (methods or "").split("+"):
            if method not in _WRAPPED or columns["status"][at] not in actions.SUCCEEDED:
                continue
            asset = f"nep141:{columns['receiver_id'][at]}"
            for found in filter(None, map(_WRAPPED[method].fullmatch, columns["logs"][at])):
                giver, taker = (found[2], None) if _is_burn(method) else (None, found[2])
                yield Moved(at, "token", asset, giver, taker, _amount(found[1]))


def _is_burn(method: str) -> bool:
    """Tell unwrapping from wrapping."""
    return method == "near_withdraw"


def _told(odd: list[str]) -> tuple[str, ...]:
    """Say which events were not understood."""
    if not odd:
        return ()
    more = f" and {len(odd) - _SHOWN} more" if len(odd) > _SHOWN else ""
    return (f"not as its standard says, and not counted: {', '.join(odd[:_SHOWN])}{more}",)
