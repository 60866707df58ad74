"""Events of the token standards NEP-141, NEP-171 and NEP-245: the movements they report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pandas import NA

from ledgerkit.frames import amounts

FUNGIBLE, NON_FUNGIBLE, MULTI_TOKEN = STANDARDS = ("nep141", "nep171", "nep245")
_PREFIXES = {FUNGIBLE: "ft_", NON_FUNGIBLE: "nft_", MULTI_TOKEN: "mt_"}
# The members with sender and receiver, by the last word of the event's name; the standards agree.
_PARTIES = {
    "mint": (None, "owner_id"),
    "burn": ("owner_id", None),
    "transfer": ("old_owner_id", "new_owner_id"),
}
# NearX logs its mints and burns as events of its own (stader-labs/nearx, contracts/near-x/src/
# events.rs and contract/internal.rs). These members have the shares, which are its tokens.
NEARX = "nearx"
_MINTED, _BURNT = "minted_stake_shares", "burnt_stake_shares"
_NEARX_SHARES = {
    "deposit_and_stake": _MINTED,
    "manager_deposit_and_stake": _MINTED,
    "unstake": _BURNT,
}
_QUOTED = 40  # characters of an invalid amount in an error


class TokenStandardError(ValueError):
    """A violation of a token's standard by its contract; the text names the member."""


class Movement(NamedTuple):
    """A movement of a token; without a sender it is a mint, without a receiver a burn."""

    standard: str
    token_id: str | None
    sender_id: str | None
    receiver_id: str | None
    amount: int
    memo: str | None = None

    @property
    def verb(self) -> str:
        """The name of the movement in the standards: mint, burn or transfer."""
        if self.sender_id is None:
            return "mint"
        return "burn" if self.receiver_id is None else "transfer"


def read_event(standard: str, event: str, data: Any) -> list[Movement]:
    """Read the movements of an event; a TokenStandardError says which member is wrong."""
    if standard == NEARX:
        name = _NEARX_SHARES.get(event)
        return [_read_shares(name, *item) for item in elements(data)] if name else []
    prefix = _PREFIXES.get(standard)
    if prefix is None or not event.startswith(prefix):
        return []
    parties = _PARTIES.get(event.removeprefix(prefix))
    if parties is None:
        return []
    return [
        movement
        for path, element in elements(data)
        for movement in _element_movements(standard, parties, element, path)
    ]


def elements(data: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Iterate over the objects of an event's data, with their paths."""
    if not isinstance(data, list):
        raise TokenStandardError("data is missing" if data is NA else "data is not a list")
    for index, element in enumerate(data):
        if not isinstance(element, dict):
            raise TokenStandardError(f"data[{index}] is not an object")
        yield f"data[{index}]", element


def _read_shares(name: str, path: str, element: dict[str, Any]) -> Movement:
    account_id, amount = read_text(element, "account_id", path), read_amount(element, name, path)
    if name == _MINTED:
        return Movement(FUNGIBLE, None, None, account_id, amount)
    return Movement(FUNGIBLE, None, account_id, None, amount)


def _element_movements(
    standard: str, parties: tuple[str | None, str | None], element: dict[str, Any], path: str
) -> Iterator[Movement]:
    sender_id, receiver_id = [name and read_text(element, name, path) for name in parties]
    memo = element.get("memo")
    memo_text = memo if isinstance(memo, str) else None
    for token_id, amount in _tokens(standard, element, path):
        yield Movement(standard, token_id, sender_id, receiver_id, amount, memo_text)


def _tokens(standard: str, element: dict[str, Any], path: str) -> list[tuple[str | None, int]]:
    if standard == FUNGIBLE:
        return [(None, read_amount(element, "amount", path))]
    ids = read_texts(element, "token_ids", path)
    if standard == NON_FUNGIBLE:
        return [(token_id, 1) for token_id in ids]
    texts = read_texts(element, "amounts", path)
    if len(ids) != len(texts):
        raise TokenStandardError(f"{path}.token_ids and {path}.amounts differ in length")
    values = [parse_amount(text, f"{path}.amounts[{index}]") for index, text in enumerate(texts)]
    return list(zip(ids, values, strict=True))


def read_texts(element: dict[str, Any], name: str, path: str) -> list[str]:
    """Return a member that is a list of texts; raise `TokenStandardError` for any other."""
    values = _member(element, name, path)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TokenStandardError(f"{path}.{name} is not a list of texts")
    return values


def read_text(element: dict[str, Any], name: str, path: str) -> str:
    """Return a member that is a text; raise `TokenStandardError` for any other."""
    value = _member(element, name, path)
    if not isinstance(value, str):
        raise TokenStandardError(f"{path}.{name} is not a text")
    return value


def read_amount(element: dict[str, Any], name: str, path: str) -> int:
    """Return a member that is an amount; raise `TokenStandardError` for any other."""
    return parse_amount(read_text(element, name, path), f"{path}.{name}")


def parse_amount(text: str, path: str) -> int:
    """Parse an amount as the standards write it: decimal digits of at most 128 bits."""
    values = amounts.plain([text])
    if values is None:
        raise TokenStandardError(f"{path} is not a whole number of 128 bits: {text[:_QUOTED]!r}")
    return values[0]


def _member(element: dict[str, Any], name: str, path: str) -> Any:
    if name not in element:
        raise TokenStandardError(f"{path}.{name} is missing")
    return element[name]
