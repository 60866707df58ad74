"""Readings: the state, a token balance or a stake of an account at a block, or its absence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ledgerkit import errors, validation
from ledgerkit.api import rpc
from ledgerkit.api.models import chain
from ledgerkit.frames import amounts
from ledgerkit.frames.accounts import Reading
from ledgerkit.frames.tokens import Metadata, Position

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call, Response
    from ledgerkit.validation import BlockReference

T = TypeVar("T")

_NO_CONTRACT = (
    errors.UnknownAccountError,
    errors.NoContractCodeError,
    errors.NoGlobalContractCodeError,
)
# The view methods that return the value of 10^24 smallest units of a token in yoctoNEAR.
# Source: ref-finance/ref-contracts, `ref-exchange/src/rated_swap`: LiNEAR and rNEAR have ft_price,
# stNEAR get_st_near_price, NearX get_nearx_price.
RATE_METHODS = ("ft_price", "get_st_near_price", "get_nearx_price")
ONE_TOKEN = 10**24
# Only these errors mean that a view call has no result: no contract, or the contract refuses.
REFUSED = (errors.ContractError, errors.UnknownAccountError)


def state_call(account_id: str, at: BlockReference) -> Call[Reading]:
    call = rpc.view_account(account_id, at)

    def read(response: Response) -> Reading:
        try:
            state = call.read(response)
        except errors.UnknownAccountError:
            return Reading("no_account")
        balance, locked = _integers([state.amount, state.locked], call.request)
        return Reading("ok", balance, locked, storage_bytes=state.storage_usage)

    return reading_call(call, read)


def token_reading_call(
    account_id: str, contract_id: str, at: BlockReference, token_id: str | None = None
) -> Call[Reading]:
    """Build the call for a token balance; with `token_id` from a multi-token contract."""

    def decode(result: chain.CallResult, request: str) -> Reading:
        return Reading("ok", amount(result, request))

    call = _balance_of(account_id, contract_id, at, token_id)
    return _contract_call(call, decode, "broken")


def token_amount_call(account_id: str, contract_id: str, at: BlockReference) -> Call[int]:
    """Build the call for a token balance; it raises where a `Reading` would have a status."""
    call = _balance_of(account_id, contract_id, at)
    request = f"the balance of {account_id} in {contract_id}"

    def read(response: Response) -> int:
        try:
            return amount(call.read(response), request)
        except errors.LedgerError as error:
            error.request = request
            raise

    keep = None if call.keep is None else (lambda _: True)
    return replace(cast("Call[int]", call), request=request, read=read, keep=keep)


def _balance_of(
    account_id: str, contract_id: str, at: BlockReference, token_id: str | None = None
) -> Call[chain.CallResult]:
    args = {"account_id": account_id} | ({} if token_id is None else {"token_id": token_id})
    method = "ft_balance_of" if token_id is None else "mt_balance_of"
    return rpc.call_function(contract_id, method, validation.json_args(args), at)


def stake_call(account_id: str, pool_id: str, at: BlockReference) -> Call[Reading]:
    def decode(result: chain.CallResult, request: str) -> Reading:
        position = staking_position(result, request)
        return Reading("ok", staked=position.staked, unstaked=position.unstaked)

    args = validation.json_args({"account_id": account_id})
    return _contract_call(rpc.call_function(pool_id, "get_account", args, at), decode, "not_a_pool")


def staking_position(result: chain.CallResult, request: str) -> Position:
    """Decode the position of an account in a pool; raise `DecodeError` for another result."""
    position = rpc.result_json(result, chain.StakingPosition, request)
    texts = position.staked_balance, position.unstaked_balance
    staked, unstaked = _integers(texts, request)
    return Position("ok", staked, unstaked, position.can_withdraw)


def amount(result: chain.CallResult, request: str) -> int:
    """Decode the amount that a view method returned, as a text or a JSON number."""
    return integer(rpc.result_json(result, str | int, request), request)


def integer(text: str | int, request: str) -> int:
    """Decode an amount of at most 2^128 - 1; raise `DecodeError` for anything else."""
    return _integers([text], request)[0]


def _integers(texts: Sequence[str | int], request: str) -> list[int]:
    # A JSON number has all digits here: fractions and exponents are not decoded.
    values = amounts.plain([str(text) for text in texts])
    if values is None:
        verb = "is not an amount" if len(texts) == 1 else "are not both amounts"
        sentence = f"{' and '.join(map(repr, texts))} {verb}"
        raise errors.DecodeError(sentence, request=request, path="$.result.amount")
    return values


def _contract_call(
    call: Call[chain.CallResult],
    decode: Callable[[chain.CallResult, str], Reading],
    failed_status: str,
) -> Call[Reading]:
    """Build the call of a view method; `failed_status` is that of an error or another type."""

    def read(response: Response) -> Reading:
        try:
            result = call.read(response)
        except _NO_CONTRACT:
            return Reading("no_contract")
        except errors.ContractError:
            return Reading(failed_status)
        try:
            return decode(result, call.request)
        except errors.DecodeError:
            return Reading(failed_status)

    return reading_call(call, read)


def reading_call(call: Call[Any], read: Callable[[Response], Reading]) -> Call[Reading]:
    """Build a call that returns a `Reading`, cached only if its status is ``ok``."""
    return replace(call, read=read, keep=lambda reading: reading.status == "ok")


def value_call(
    contract_id: str,
    method: str,
    at: BlockReference,
    decode: Callable[[chain.CallResult, str], Any] = amount,
    args: Mapping[str, Any] = {},
) -> Call[Any]:
    """Build the call of a view method; None if it is missing, fails, or returns another type."""
    view = rpc.call_function(contract_id, method, validation.json_args(args), at)
    call = unless_refused(view)

    def read(response: Response) -> Any:
        result = call.read(response)
        try:
            return None if result is None else decode(result, call.request)
        except errors.DecodeError:
            return None

    keep = None if view.keep is None else (lambda value: value is not None)
    return replace(cast("Call[Any]", call), read=read, keep=keep)


def metadata_call(contract_id: str, at: BlockReference) -> Call[Metadata]:
    """Build the call for a token's metadata, which seldom changes and is cached for that."""
    call = rpc.call_function(contract_id, "ft_metadata", b"{}", at)

    def read(response: Response) -> Metadata:
        try:
            metadata: Metadata = rpc.result_json(
                call.read(response), chain.FtMetadata, call.request
            )
        except REFUSED:
            return "missing"
        except errors.DecodeError:
            return "broken"
        return metadata

    kind = call.kind if at.pinned else "metadata"
    typed_call = cast("Call[Metadata]", call)
    return replace(typed_call, read=read, keep=lambda m: not isinstance(m, str), kind=kind)


def unless_refused(call: Call[T]) -> Call[T | None]:
    """Build a call that returns None if the account or contract is missing, or refuses."""

    def read(response: Response) -> T | None:
        try:
            return call.read(response)
        except REFUSED:
            return None

    def keep(value: T | None) -> bool:
        return value is not None and call.keep is not None and call.keep(value)

    return replace(cast("Call[T | None]", call), read=read, keep=keep)
