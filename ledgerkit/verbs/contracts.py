"""Verbs about contracts: view methods, stored state, code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import client, validation
from ledgerkit.api import rpc
from ledgerkit.errors import (
    DecodeError,
    InvalidRequestError,
    LedgerError,
    TooLargeContractStateError,
)
from ledgerkit.frames import chain as chain_frames
from ledgerkit.verbs.declaring import verb
from ledgerkit.verbs.fetching import sourced_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from ledgerkit.api.models import chain
    from ledgerkit.ledger import Ledger


@verb
def view(
    contract_id: str,
    method: str,
    args: Any = None,
    *,
    at: object = None,
    raw: bool = False,
    ledger: Ledger | None = None,
) -> Any:
    """
    Call a view method of a contract and return its result.

    Parameters
    ----------
    method
        The method's name.
    args
        Its arguments: any JSON value, or bytes, sent unchanged; None is ``{}``.
    raw
        Return the bytes, without decoding them.

    Returns
    -------
    value
        The decoded JSON, with exact integers; bytes if the contract returned anything
        else; None if it returned ``null`` or nothing.

    Raises
    ------
    ContractError
        If the contract panicked or has no such method.
    LedgerError
        If the method could not be called.

    Notes
    -----
    Source: query call_function.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> lk.view("moon.near", "ft_total_supply")
    '340282366920938463463374607431768211455'
    >>> lk.view("gold.near", "ft_balance_of", {"account_id": "alice.near"})
    '1252998400'
    """
    validation.flag(raw, "raw")
    ledger = client.current(ledger)
    call = rpc.call_function(*_check_request(contract_id, method, args), ledger.locate(at))
    data = rpc.result_bytes(ledger.send(call), call.request)
    return data if raw else rpc.json_or_bytes(data)


@verb
def view_many(
    requests: Iterable[Sequence[Any]],
    *,
    at: object = None,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> list[Any]:
    """
    Call several view methods concurrently at one block, and return their results.

    Parameters
    ----------
    requests
        Tuples of contract_id, method and optional args, as for `view`.

    Returns
    -------
    values
        One per request, in order: the value as from `view`, or the `LedgerError` of a
        call that failed.

    Raises
    ------
    LedgerError
        If the block could not be read.

    Notes
    -----
    Source: query call_function.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> lk.view_many([("counter.near", "get_num"), ("dave.near", "get_num")])
    [42, NoContractCodeError('Account dave.near has no contract at block 180000050')]
    """
    validation.flag(progress, "progress")
    ledger = client.current(ledger)
    checked = [_check_tuple(request, number) for number, request in enumerate(requests)]
    if not checked:
        return []
    block = validation.block_reference(ledger.pin(at)[1])
    calls = [rpc.call_function(*request, block) for request in checked]
    results = ledger.send_many(calls, on_error="collect", progress=progress, label="view calls")
    return [_value(result, call.request) for result, call in zip(results, calls, strict=True)]


def _value(result: chain.CallResult | LedgerError, request: str) -> Any:
    if isinstance(result, LedgerError):
        return result
    try:
        return rpc.json_or_bytes(rpc.result_bytes(result, request))
    except DecodeError as error:
        return error


def _check_tuple(request: Sequence[Any], number: int) -> tuple[str, str, bytes]:
    if not isinstance(request, tuple | list) or len(request) not in (2, 3):
        rule = "a tuple of contract_id, method and optional args"
        raise InvalidRequestError.refuse(f"requests[{number}]", request, rule)
    return _check_request(*request)


def _check_request(contract_id: str, method: str, args: Any = None) -> tuple[str, str, bytes]:
    contract_id = validation.account_id(contract_id, "contract_id")
    method = validation.method_name(method)
    return contract_id, method, validation.json_args({} if args is None else args)


@verb
def contract_state(
    contract_id: str, prefix: bytes = b"", *, at: object = None, ledger: Ledger | None = None
) -> pd.DataFrame:
    """
    Return the storage of a contract: its keys and values.

    Parameters
    ----------
    prefix
        Only keys that begin with these bytes.

    Returns
    -------
    state
        One row per key, as bytes, typed as `schema("state")`; all pages are read at one block.

    Raises
    ------
    TooLargeContractStateError
        If the storage is larger than nodes return at once, about 50 kB, and the node does not
        send it in pages, as nodes do from version 2.13 on.

    Notes
    -----
    Source: query view_state.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> lk.contract_state("counter.near")
            key             value
    0  b'STATE'  b'{"number":42}'
    """
    ledger = client.current(ledger)
    contract_id = validation.account_id(contract_id, "contract_id")
    prefix = validation.raw_bytes(prefix, "prefix")
    response = _read_state(ledger, contract_id, prefix, ledger.locate(at))
    return sourced_frame(
        ledger,
        lambda: chain_frames.state(response),
        "query view_state",
        block_height=response.block_height,
        block_hash=response.block_hash,
    )


def _read_state(
    ledger: Ledger, contract_id: str, prefix: bytes, at: validation.BlockReference
) -> chain.State:
    """Read the state of a contract in one response, or in pages if it is too large for one."""
    try:
        page = state = ledger.send(rpc.view_state(contract_id, prefix, at))
    except TooLargeContractStateError:
        first = rpc.view_state(contract_id, prefix, at, limit=rpc.STATE_PER_PAGE)
        page = state = ledger.send(first)
    block = validation.block_reference(state.block_hash) if state.block_hash else at
    while page.last_key is not None:
        after, limit = page.last_key, rpc.STATE_PER_PAGE
        page = ledger.send(rpc.view_state(contract_id, prefix, block, limit=limit, after_key=after))
        state.values += page.values
    return state


@verb
def contract_code(contract_id: str, *, at: object = None, ledger: Ledger | None = None) -> bytes:
    """
    Return the code of a contract.

    Returns
    -------
    code
        The WebAssembly module.

    Raises
    ------
    NoContractCodeError
        If the account has no code.

    Notes
    -----
    Source: query view_code.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> code = lk.contract_code("counter.near")
    >>> len(code), code == lk.contract_code("counter.near", at="genesis")
    (64, True)
    """
    ledger = client.current(ledger)
    contract_id = validation.account_id(contract_id, "contract_id")
    code: bytes = ledger.send(rpc.view_code(contract_id, ledger.locate(at))).code_base64
    return code


@verb
def global_contract_code(
    code_hash: str | None = None,
    *,
    account_id: str | None = None,
    at: object = None,
    ledger: Ledger | None = None,
) -> bytes:
    """
    Return the code of a global contract, by its hash or by the account that deployed it.

    Parameters
    ----------
    code_hash
        The code's hash.
    account_id
        The account that deployed it under its own id.

    Returns
    -------
    code
        The WebAssembly module.

    Raises
    ------
    NoGlobalContractCodeError
        If there is no such global contract.
    InvalidRequestError
        If neither or both of `code_hash` and `account_id` are passed.

    Notes
    -----
    Source: query view_global_contract_code, or view_global_contract_code_by_account_id.

    Examples
    --------
    >>> from ledgerkit import protocol
    >>> ledger = lk.connect("local")
    >>> alice = lk.use_signer("alice.near", ledger.world.keys()["alice.near"])
    >>> code = lk.contract_code("counter.near")
    >>> sent = lk.send("alice.near", [protocol.DeployGlobalContract(code, "AccountId")])
    >>> sent.wait().fully_succeeded
    True
    >>> lk.global_contract_code(account_id="alice.near") == code
    True
    """
    if code_hash is None and account_id is None:
        rule = "the code's hash, or account_id= in its place"
        raise InvalidRequestError.required("code_hash", rule)
    if code_hash is not None and account_id is not None:
        rule = "either the code's hash alone, or account_id="
        raise InvalidRequestError.refuse("code_hash", code_hash, rule)
    ledger = client.current(ledger)
    if account_id is None:
        code_hash = validation.crypto_hash(code_hash, "code_hash")
        call = rpc.view_global_contract_code(code_hash, ledger.locate(at))
    else:
        account_id = validation.account_id(account_id)
        call = rpc.view_global_contract_code_by_account_id(account_id, ledger.locate(at))
    code: bytes = ledger.send(call).code_base64
    return code
