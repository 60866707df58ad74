"""Texts of amounts: in whole tokens with their symbol where the metadata is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ledgerkit.errors import cut
from ledgerkit.units import TOKENS, amount_text, count_text, near_amount, token_symbol

if TYPE_CHECKING:
    from ledgerkit.frames.tokens import TokenFacts

NEAR, GAS_KEY = "near", "gas_key"
INTENTS = "intents.near"  # its token ids name other assets, such as nep141:wrap.near
IN_INTENTS = f"nep245:{INTENTS}:"  # prefix of its assets
_MAX_DECIMALS = 39  # an amount of 128 bits has no more digits
_MAX_CHARACTERS = 160


class AmountTexts:
    """
    The formatter of amounts.

    A contract chooses its symbol freely. The contract is therefore added to a symbol that two
    tokens share, and replaces a symbol that reads as NEAR or is not a plain word. A token without
    usable decimals is counted in units.
    """

    def __init__(self, facts: Mapping[str, TokenFacts]) -> None:
        self._facts = {
            contract_id: fact
            for contract_id, fact in facts.items()
            if fact.decimals is not None and fact.decimals <= _MAX_DECIMALS
        }
        self._symbols = [(fact.symbol or "").casefold() for fact in self._facts.values()]

    def text(self, asset: str, amount: int, digits: int | None = 2) -> str:
        """Format an amount for reading; a token by its symbol if that is unambiguous."""
        return self._format(asset, amount, digits, has_contract=False)

    def with_contract(self, asset: str, amount: int) -> str:
        """Format an amount for reading; a token with its symbol and its contract."""
        return self._format(asset, amount, 2, has_contract=True)

    def _format(self, asset: str, amount: int, digits: int | None, *, has_contract: bool) -> str:
        if asset == NEAR or asset.startswith(GAS_KEY):
            return near_amount(amount, digits)
        if asset.startswith(f"{IN_INTENTS}nep141:"):
            token = asset.removeprefix(IN_INTENTS)
            return f"{self._format(token, amount, digits, has_contract=has_contract)} in {INTENTS}"
        standard, contract_id, token_id = split_asset(asset)
        contract = plain(contract_id)
        if standard != "nep141":
            token = f"token {plain(token_id)} of {contract}"
            return token if standard == "nep171" and amount == 1 else f"{amount:,} of {token}"
        fact = self._facts.get(contract_id)
        if fact is None or fact.decimals is None:
            return f"{count_text(amount, 'unit')} of {contract}"
        symbol = token_symbol(fact.symbol)
        text = amount_text(amount, fact.decimals, symbol, digits)
        if symbol == TOKENS:
            return f"{text} of {contract}"
        is_ambiguous = has_contract or self._symbols.count(symbol.casefold()) > 1
        return f"{text} ({contract})" if is_ambiguous else text


def split_asset(asset: str) -> tuple[str, str, str]:
    """Split an asset into its standard, contract and token id; account ids have no colon."""
    standard, _, token = asset.partition(":")
    contract_id, _, token_id = token.partition(":")
    return standard, contract_id, token_id


def plain(text: object, limit: int = _MAX_CHARACTERS) -> str:
    """Return a text as one short line without invisible characters, or "unknown" for None."""
    return "unknown" if text is None else cut(text, limit)
