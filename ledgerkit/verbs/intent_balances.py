"""Balances that the verifier contract of NEAR Intents keeps for accounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ledgerkit import validation
from ledgerkit.api import rpc
from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.tracing.amount_texts import INTENTS
from ledgerkit.verbs import readings
from ledgerkit.verbs.nft_pages import MAX_TOKENS

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.api.models import chain
    from ledgerkit.validation import BlockReference
    from ledgerkit.verbs.fetching import Fetcher

PAGE = 100
SOURCE = "view calls mt_tokens_for_owner and mt_batch_balance_of"
_TOKENS, _BALANCES = f"mt_tokens_for_owner of {INTENTS}", f"mt_batch_balance_of of {INTENTS}"


def check_network(fetcher: Fetcher) -> None:
    """Raise if the ids of the network's accounts show that it lacks the contract."""
    network = fetcher.ledger.network
    if hint := network.account_hint(INTENTS):
        expected = f"False: {INTENTS} is not on {network.name}. {hint}"
        raise InvalidRequestError.refuse("intents", value=True, expected=expected)


@dataclass(slots=True)
class IntentBalances:
    """The reader of the tokens and balances of accounts, all at one block."""

    fetcher: Fetcher
    block: BlockReference
    balances: dict[str, dict[str, int]] = field(default_factory=dict)  # by account and token id

    def read(self, account_ids: Sequence[str]) -> dict[str, dict[str, int]]:
        """Read the tokens page by page, and the balances of each page; return the balances."""
        self.balances = {account_id: {} for account_id in account_ids}
        open_ids = list(self.balances)
        # Source: near/intents, contracts/defuse/src/contract/tokens/nep245/enumeration.rs:
        # a page is shorter than its limit only at the end.
        while open_ids:
            pages = self._pages(open_ids)
            read_ids = self._read_values({name: ids for name, ids in pages.items() if ids})
            open_ids = [name for name in read_ids if len(pages[name]) == PAGE]
        for name, _ in self.fetcher.failures:
            self.balances[name].clear()  # some of the tokens would look like all of them
        return self.balances

    def _pages(self, account_ids: Sequence[str]) -> dict[str, list[str]]:
        calls = {
            name: self._call("mt_tokens_for_owner", name, from_index=str(start), limit=PAGE)
            for name in account_ids
            for start in [len(self.balances[name])]
        }
        fetched = self.fetcher.fetch(calls, "tokens of intents")
        return dict(self.fetcher.convert(fetched, self._new_ids))

    def _new_ids(self, account_id: str, result: chain.CallResult) -> list[str]:
        tokens = rpc.result_json(result, list[dict[str, Any]], _TOKENS)
        ids: list[Any] = [token.get("token_id") for token in tokens]
        count = len(self.balances[account_id]) + len(ids)
        if not all(isinstance(token_id, str) for token_id in ids):
            raise _decode_error(_TOKENS, "a token without a text token_id")
        if len({*self.balances[account_id], *ids}) < count:
            raise _decode_error(_TOKENS, "a token twice")
        if count > MAX_TOKENS:
            raise _decode_error(_TOKENS, f"more than {MAX_TOKENS} tokens")
        return ids

    def _read_values(self, pages: dict[str, list[str]]) -> list[str]:
        """Read the balances of token ids; return the accounts that were read."""

        def add(name: str, result: chain.CallResult) -> None:
            texts = rpc.result_json(result, list[str], _BALANCES)
            amounts = [readings.integer(text, _BALANCES) for text in texts]
            if len(amounts) != len(pages[name]):
                sentence = f"{len(amounts)} balances of {len(pages[name])} tokens"
                raise _decode_error(_BALANCES, sentence)
            self.balances[name] |= zip(pages[name], amounts, strict=True)

        calls = {
            name: self._call("mt_batch_balance_of", name, token_ids=ids)
            for name, ids in pages.items()
        }
        fetched = self.fetcher.fetch(calls, "balances of intents")
        return [name for name, _ in self.fetcher.convert(fetched, add)]

    def _call(self, method_name: str, account_id: str, **args: Any) -> Call[chain.CallResult]:
        json_args = validation.json_args({"account_id": account_id, **args})
        return rpc.call_function(INTENTS, method_name, json_args, self.block)


def _decode_error(request: str, sentence: str) -> DecodeError:
    return DecodeError(f"{request} returned {sentence}", path="$.result.result")
