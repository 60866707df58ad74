"""Texts of amounts: in whole tokens with their symbol where the metadata is known."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from ledgerkit.errors import cut
from ledgerkit.units import near_text, to_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledgerkit.frames.tokens import TokenFacts

NEAR, GAS_KEY = "near", "gas_key"
# One word with a letter. Letters of other scripts may look like these, or be read to the left.
_SYMBOL = re.compile(r"(?=.*[A-Za-z])[\w.$+-]{1,20}", re.ASCII)
_NATIVE = ("near", "yocto", "yoctonear")
_MAX_DECIMALS = 39  # an amount of 128 bits has no more digits
_DECIMALS = 3  # in a headline
_MAX_CHARACTERS = 160


class AmountTexts:
    """
    The formatter of amounts.

    A contract chooses its symbol freely. The contract is therefore named beside a symbol that
    two tokens share or that reads as NEAR, and instead of one that is not a plain word.

    Parameters
    ----------
    facts
        Symbol and decimals by contract; a token without usable decimals is counted in units.
    """

    def __init__(self, facts: Mapping[str, TokenFacts]) -> None:
        self._facts = {
            contract_id: fact
            for contract_id, fact in facts.items()
            if fact.decimals is not None and fact.decimals <= _MAX_DECIMALS
        }
        symbols = [fact.symbol or "" for fact in self._facts.values()]
        self._counts = Counter(symbol.casefold() for symbol in symbols)

    def exact(self, asset: str, amount: int) -> str:
        """Format an amount with all digits and, for a token, its contract."""
        if asset == NEAR or asset.startswith(GAS_KEY):
            return near_text(amount)
        return self._token(asset, amount, is_exact=True)

    def short(self, asset: str, amount: int) -> str:
        """Format an amount for a headline: cut, not rounded, to its first three decimals."""
        if asset == NEAR:
            number, _, unit = near_text(amount).partition(" ")
            return f"{_cut(number)} {unit}"
        return self._token(asset, amount, is_exact=False)

    def _token(self, asset: str, amount: int, *, is_exact: bool) -> str:
        """Format an amount of a token."""
        standard, contract_id, token_id = split_asset(asset)
        contract = plain(contract_id)
        if standard != "nep141":
            token = f"token {plain(token_id)} of {contract}"
            return token if standard == "nep171" and amount == 1 else f"{amount} of {token}"
        fact = self._facts.get(contract_id)
        if fact is None or fact.decimals is None:
            return f"{amount} {'unit' if amount == 1 else 'units'} of {contract}"
        number = to_text(amount, fact.decimals)
        number = number if is_exact else _cut(number)
        symbol = fact.symbol or ""
        if not _SYMBOL.fullmatch(symbol):
            return f"{number} tokens of {contract}"
        is_unique = self._counts[symbol.casefold()] == 1 and symbol.casefold() not in _NATIVE
        return f"{number} {symbol}" + ("" if is_unique and not is_exact else f" ({contract})")


def split_asset(asset: str) -> tuple[str, str, str]:
    """Split an asset into its standard, contract and token id; account ids have no colon."""
    standard, _, token = asset.partition(":")
    contract_id, _, token_id = token.partition(":")
    return standard, contract_id, token_id


def _cut(number: str) -> str:
    """Cut a decimal number to three decimals; of one below 1, to its first four digits."""
    before, _, after = number.partition(".")
    n_zeros = len(after) - len(after.lstrip("0"))
    n_decimals = _DECIMALS if before.lstrip("-") != "0" else n_zeros + _DECIMALS + 1
    after = after[:n_decimals].rstrip("0")
    return f"{before}.{after}" if after else before


def plain(text: object, limit: int = _MAX_CHARACTERS) -> str:
    """Return a text as one short line without invisible characters, or "unknown" for None."""
    return "unknown" if text is None else cut(text, limit)
