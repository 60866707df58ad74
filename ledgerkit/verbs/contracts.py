"""Verbs about contracts: view methods, stored state, code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    import pandas as pd

    from ledgerkit.api.models import chain
    from ledgerkit.ledger import Ledger


@verb
def view(
    contract_id: str,
    method_name: str,
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
    method_name
        The method's name.
    args
        The arguments: any JSON value, or bytes, which are sent unchanged; None is ``{}``.
    raw
        Return the bytes, without decoding them.

    Returns
    -------
    value
        The decoded JSON, with exact integers; bytes if the result is not JSON; None if it is
        ``null`` or empty.

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
    call = rpc.call_function(*_check_request(contract_id, method_name, args), ledger.locate(at))
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
        Tuples of contract_id, method_name and optional args, as for `view`.

    Returns
    -------
    values
        One value per request, in order: the result as from `view`, or the `LedgerError` of
        a failed call.

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
    if isinstance(requests, str) or not isinstance(requests, Iterable):
        raise InvalidRequestError.refuse("requests", requests, "a list of tuples")
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
        rule = "a tuple of contract_id, method_name and optional args"
        raise InvalidRequestError.refuse(f"requests[{number}]", request, rule)
    return _check_request(*request)


def _check_request(contract_id: str, method_name: str, args: Any = None) -> tuple[str, str, bytes]:
    contract_id = validation.account_id(contract_id, "contract_id")
    method_name = validation.method_name(method_name)
    return contract_id, method_name, validation.json_args({} if args is None else args)


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
        support pages, which need version 2.13 or later.

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
def contract_code(
    contract_id: str | None = None,
    *,
    global_contract_hash: str | None = None,
    global_contract_account_id: str | None = None,
    at: object = None,
    ledger: Ledger | None = None,
) -> bytes:
    """
    Return the code of a contract, or of a global contract.

    Parameters
    ----------
    contract_id
        The account that has the code.
    global_contract_hash
        The hash of a global contract, instead of `contract_id`.
    global_contract_account_id
        The account that published a global contract under its id, instead of `contract_id`.

    Returns
    -------
    code
        The WebAssembly module.

    Raises
    ------
    NoContractCodeError
        If the account has no code.
    NoGlobalContractCodeError
        If the global contract does not exist.
    InvalidRequestError
        If not exactly one of the three arguments is passed, or one is malformed.

    Notes
    -----
    Source: query view_code, view_global_contract_code, or
    view_global_contract_code_by_account_id.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> code = lk.contract_code("counter.near")
    >>> len(code), code == lk.contract_code("counter.near", at="genesis")
    (64, True)

    A contract that is published for all accounts:

    >>> sent = lk.deploy(code, publish="account_id", signer_id="alice.near")
    >>> sent.wait().fully_succeeded
    True
    >>> lk.contract_code(global_contract_account_id="alice.near") == code
    True
    """
    subjects = {
        "contract_id": contract_id,
        "global_contract_hash": global_contract_hash,
        "global_contract_account_id": global_contract_account_id,
    }
    passed = [name for name, value in subjects.items() if value is not None]
    if not passed:
        rule = "an account's id, or the hash or the publisher of a global contract"
        raise InvalidRequestError.required("contract_id", rule)
    if len(passed) > 1:
        raise InvalidRequestError(f"pass only one of {' and '.join(passed)}", field=passed[-1])
    ledger = client.current(ledger)
    block = ledger.locate(at)
    if global_contract_hash is not None:
        code_hash = validation.crypto_hash(global_contract_hash, "global_contract_hash")
        call = rpc.view_global_contract_code(code_hash, block)
    elif global_contract_account_id is not None:
        publisher = validation.account_id(global_contract_account_id, "global_contract_account_id")
        call = rpc.view_global_contract_code_by_account_id(publisher, block)
    else:
        call = rpc.view_code(validation.account_id(contract_id, "contract_id"), block)
    code: bytes = ledger.send(call).code_base64
    return code
