"""Token transfers from the events of the token standards, and from wrapped NEAR's log lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.frames import amounts
from ledgerkit.tracing import actions
from ledgerkit.tracing.tree.linking import first_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgerkit.tracing.actions import Event
    from ledgerkit.tracing.tree import Tree

_KINDS = {"nep141": "token", "nep171": "nft", "nep245": "multi_token"}
# The members with sender and receiver, by the last word of the event's name (NEP-141, NEP-171
# and NEP-245 agree on them).
_PARTIES = {
    "mint": (None, "owner_id"),
    "burn": ("owner_id", None),
    "transfer": ("old_owner_id", "new_owner_id"),
}
_PREFIXES = {"nep141": "ft_", "nep171": "nft_", "nep245": "mt_"}
# The contract of wrapped NEAR is older than the standard's events: these lines are its mints and
# burns, by method.
_WRAP_LINES = {
    "near_deposit": re.compile(r"Deposit (\d+) NEAR to (\S+)", re.ASCII),
    "near_withdraw": re.compile(r"Withdraw (\d+) yoctoNEAR from (\S+)", re.ASCII),
}


class Transfer(NamedTuple):
    """One transfer, and the position of the receipt that made it (-1: the transaction itself)."""

    at: int
    kind: str
    asset: str
    sender_id: str | None
    receiver_id: str | None
    amount: int | None
    memo: str | None = None


def token_transfers(tree: Tree) -> tuple[list[Transfer], tuple[str, ...]]:
    """Return the token transfers of receipts that succeeded, and notes on invalid events."""
    status, contracts = tree.columns["status"], tree.columns["receiver_id"]
    transfers: list[Transfer] = []
    bad_events: list[str] = []
    with_events: set[int] = set()
    for event in actions.parse_events(tree):
        if status[event.at] not in actions.SUCCEEDED:
            continue
        try:
            event_transfers = list(_event_transfers(event, contracts[event.at]))
        except (ValueError, TypeError, AttributeError, KeyError):
            bad_events.append(f"{event.event} of {contracts[event.at]} in {tree.ids[event.at]}")
            continue
        transfers += event_transfers
        with_events |= {event.at for transfer in event_transfers if transfer.kind == "token"}
    transfers += (line for line in _wrap_transfers(tree) if line.at not in with_events)
    return sorted(transfers, key=lambda transfer: transfer.at), _notes(bad_events)


def _event_transfers(event: Event, contract_id: str) -> Iterator[Transfer]:
    """Read the transfers of one event; events of other standards have none."""
    standard = event.standard or ""
    prefix, _, word = (event.event or "").partition("_")
    if _PREFIXES.get(standard) != f"{prefix}_" or word not in _PARTIES:
        return
    sender, receiver = _PARTIES[word]
    for element in event.data:
        sender_id = None if sender is None else _text(element[sender])
        receiver_id = None if receiver is None else _text(element[receiver])
        memo = element.get("memo")
        for suffix, amount in _assets(standard, element):
            asset = f"{standard}:{contract_id}{suffix}"
            memo_text = memo if isinstance(memo, str) else None
            kind = _KINDS[standard]
            yield Transfer(event.at, kind, asset, sender_id, receiver_id, amount, memo_text)


def _assets(standard: str, element: dict[str, Any]) -> list[tuple[str, int]]:
    """Return the suffix of the asset's name and the amount of each token in an event's element."""
    if standard == "nep141":
        return [("", _amount(element["amount"]))]
    ids = [f":{_text(token_id)}" for token_id in element["token_ids"]]
    if standard == "nep171":
        return [(token_id, 1) for token_id in ids]
    return list(zip(ids, map(_amount, element["amounts"]), strict=True))


def _text(value: object) -> str:
    """Return a text; raise TypeError for any other value."""
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _amount(value: object) -> int:
    """Parse an amount as the standards write it: decimal digits of at most 128 bits."""
    values = amounts.plain([_text(value)])
    if values is None:
        raise ValueError(value)
    return values[0]


def _wrap_transfers(tree: Tree) -> Iterator[Transfer]:
    """Read the log lines in which wrapped NEAR reports mints and burns."""
    columns = tree.columns
    for at, methods in enumerate(columns["method_name"]):
        for method in (methods or "").split("+"):
            if method not in _WRAP_LINES or columns["status"][at] not in actions.SUCCEEDED:
                continue
            asset = f"nep141:{columns['receiver_id'][at]}"
            for match in filter(None, map(_WRAP_LINES[method].fullmatch, columns["logs"][at])):
                is_burn = method == "near_withdraw"
                sender_id, receiver_id = (match[2], None) if is_burn else (None, match[2])
                yield Transfer(at, "token", asset, sender_id, receiver_id, _amount(match[1]))


def _notes(bad_events: list[str]) -> tuple[str, ...]:
    """Describe the events that do not follow their standard."""
    if not bad_events:
        return ()
    return (f"events that do not follow their standard are not counted: {first_names(bad_events)}",)
