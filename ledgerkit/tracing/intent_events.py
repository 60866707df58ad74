"""Events of the verifier contract of NEAR Intents (DIP-4): what accounts gave and received."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.tracing.token_standards import (
    FUNGIBLE,
    MULTI_TOKEN,
    NON_FUNGIBLE,
    TokenStandardError,
    elements,
    parse_amount,
    read_amount,
    read_text,
    read_texts,
)

if TYPE_CHECKING:
    Changes = list[tuple[str | None, int]]

DIP4 = "dip4"
TOKEN_DIFF, TRANSFER, STORAGE_DEPOSIT = "token_diff", "transfer", "storage_deposit"
# Source: near/intents, contracts/defuse/core/src/events/mod.rs. The tokens of imt_mint and
# imt_burn are in the NEP-245 events of the same receipt.
_WITHOUT_CHANGES = {
    "intents_executed",
    *("public_key_added", "public_key_removed", "set_auth_by_predecessor_id", "salt_rotation"),
    *("fee_changed", "fee_collector_changed", "account_locked", "account_unlocked"),
    *("imt_mint", "imt_burn"),
}


class IntentEvent(NamedTuple):
    """
    An executed intent: the changes of its account's tokens, by token id within the contract.

    A token id of None is wrapped NEAR, whose contract these events do not name.
    """

    event: str
    account_id: str
    changes: Changes
    intent_hash: str | None = None
    receiver_id: str | None = None
    fees: dict[str, int] = {}  # noqa: RUF012 - never changed
    referral: str | None = None
    memo: str | None = None
    msg: str | None = None


def read_intents(event: str, data: Any) -> list[IntentEvent]:
    """Read the intents of an event; a TokenStandardError says which member is wrong."""
    if event not in _CHANGES:
        return []
    return [_read(event, element, path) for path, element in elements(data)]


def _read(event: str, element: dict[str, Any], path: str) -> IntentEvent:
    optional = {name: _optional(element, name, path) for name in _OPTIONAL}
    receiver = "contract_id" if event == STORAGE_DEPOSIT else "receiver_id"
    return IntentEvent(
        event,
        read_text(element, "account_id", path),
        _CHANGES[event](element, path),
        receiver_id=None if event == TOKEN_DIFF else read_text(element, receiver, path),
        fees=_amounts(element.get("fees_collected", {}), f"{path}.fees_collected"),
        **optional,
    )


_OPTIONAL = ("intent_hash", "referral", "memo", "msg")


def _optional(element: dict[str, Any], name: str, path: str) -> str | None:
    return None if element.get(name) is None else read_text(element, name, path)


def _amounts(value: Any, path: str, *, signed: bool = False) -> dict[str, int]:
    """Read amounts by token id; signed ones have a sign if they are negative."""
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise TokenStandardError(f"{path} is not an object of texts")
    amounts = {}
    for token_id, text in value.items():
        sign = -1 if signed and text.startswith("-") else 1
        digits = text[1:] if sign < 0 else text
        amounts[token_id] = sign * parse_amount(digits, f"{path}[{token_id!r}]")
    return amounts


def _diff(element: dict[str, Any], path: str) -> Changes:
    return [*_amounts(element.get("diff"), f"{path}.diff", signed=True).items()]


def _sent(element: dict[str, Any], path: str) -> Changes:
    amounts = _amounts(element.get("tokens"), f"{path}.tokens")
    return [(token_id, -amount) for token_id, amount in amounts.items()]


def _ft(element: dict[str, Any], path: str) -> Changes:
    token_id = f"{FUNGIBLE}:{read_text(element, 'token', path)}"
    return [(token_id, -read_amount(element, "amount", path)), *_storage(element, path)]


def _nft(element: dict[str, Any], path: str) -> Changes:
    names = read_text(element, "token", path), read_text(element, "token_id", path)
    return [(":".join((NON_FUNGIBLE, *names)), -1), *_storage(element, path)]


def _mt(element: dict[str, Any], path: str) -> Changes:
    token, ids = read_text(element, "token", path), read_texts(element, "token_ids", path)
    texts = read_texts(element, "amounts", path)
    if len(ids) != len(texts):
        raise TokenStandardError(f"{path}.token_ids and {path}.amounts differ in length")
    amounts = [-parse_amount(text, f"{path}.amounts") for text in texts]
    token_ids = [f"{MULTI_TOKEN}:{token}:{token_id}" for token_id in ids]
    return [*zip(token_ids, amounts, strict=True), *_storage(element, path)]


def _native(element: dict[str, Any], path: str) -> Changes:
    return [(None, -read_amount(element, "amount", path))]


def _storage(element: dict[str, Any], path: str) -> Changes:
    """Read the storage deposit that a withdrawal pays from the account's wrapped NEAR."""
    if element.get("storage_deposit") is None:
        return []
    return [(None, -read_amount(element, "storage_deposit", path))]


# Source: near/intents, contracts/defuse/core/src/intents/tokens.rs and token_diff.rs.
_CHANGES: dict[str, Callable[[dict[str, Any], str], Changes]] = {
    TOKEN_DIFF: _diff,
    TRANSFER: _sent,
    "ft_withdraw": _ft,
    "nft_withdraw": _nft,
    "mt_withdraw": _mt,
    "native_withdraw": _native,
    STORAGE_DEPOSIT: _native,
}
KNOWN_EVENTS = {*_CHANGES, *_WITHOUT_CHANGES}
