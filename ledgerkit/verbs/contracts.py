"""Verbs about contracts: view calls, stored state, code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerkit import client, validation
from ledgerkit.api import rpc
from ledgerkit.errors import DecodeError, InvalidRequestError, LedgerError
from ledgerkit.frames import chain as tables
from ledgerkit.verbs.fetching import framed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from ledgerkit.api.models import chain
    from ledgerkit.client import Ledger


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
    Call a view method of a contract.

    Parameters
    ----------
    contract_id
        The contract.
    method
        The method's name.
    args
        Its arguments: anything that is JSON, or bytes as they are. None is ``{}``.
    at
        A height, a block hash, a finality name or a time; None is ``final``.
    raw
        Whether to give the returned bytes as they are.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    value
        The decoded JSON, integers exact; bytes where the contract returned
        something else; None where it returned ``null`` or nothing.

    Raises
    ------
    ContractError
        If the contract panicked, or has no such method.
    InvalidRequestError
        If an argument is malformed; nothing was sent then.
    LedgerError
        If it could not be asked.

    Notes
    -----
    Source: query call_function.
    """
    asked = client.current(ledger)
    call = rpc.call_function(*_target(contract_id, method), _args(args), asked.locate(at))
    data = rpc.returned(asked.send(call), call.asked)
    return data if raw else rpc.json_or_bytes(data)


def view_many(
    requests: Iterable[Sequence[Any]],
    *,
    at: object = None,
    progress: bool = True,
    ledger: Ledger | None = None,
) -> list[Any]:
    """
    Call many view methods concurrently, all at the same block.

    Parameters
    ----------
    requests
        Tuples of contract_id, method and, optionally, args.
    at
        A height, a block hash, a finality name or a time; None is ``final``.
    progress
        Whether a bar shows.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    values
        One a request, in order: the decoded value as from `view`, or the
        `LedgerError` that stands in its place.

    Raises
    ------
    InvalidRequestError
        If a request is malformed; nothing was sent then.
    LedgerError
        If the block could not be read.

    Notes
    -----
    Source: query call_function.
    """
    asked = client.current(ledger)
    wanted = [_request(request, place) for place, request in enumerate(requests)]
    if not wanted:
        return []
    pinned = validation.block_reference(asked.send(rpc.block(asked.locate(at))).header.hash)
    calls = [rpc.call_function(*target, pinned) for target in wanted]
    answers = asked.send_many(calls, on_error="collect", progress=progress, label="view calls")
    return [_value(answer, c.asked) for answer, c in zip(answers, calls, strict=True)]


def _value(answer: chain.CallResult | LedgerError, asked: str) -> Any:
    """Decode one answer of many; an error takes the value's place."""
    if isinstance(answer, LedgerError):
        return answer
    try:
        return rpc.json_or_bytes(rpc.returned(answer, asked))
    except DecodeError as error:
        return error


def _request(request: Sequence[Any], place: int) -> tuple[str, str, bytes]:
    """Check one request of many."""
    if not isinstance(request, tuple | list) or len(request) not in (2, 3):
        rule = "a tuple of contract_id, method and, optionally, args"
        raise InvalidRequestError.refuse(f"requests[{place}]", request, rule)
    contract_id, method, *args = request
    return (*_target(contract_id, method), _args(args[0] if args else None))


def _target(contract_id: str, method: str) -> tuple[str, str]:
    """Check which method is called."""
    return validation.account_id(contract_id, "contract_id"), validation.method_name(method)


def _args(args: Any) -> bytes:
    """Encode arguments; none are an empty object."""
    return validation.json_args({} if args is None else args)


def contract_state(
    contract_id: str, prefix: bytes = b"", *, at: object = None, ledger: Ledger | None = None
) -> pd.DataFrame:
    """
    Read a contract's stored keys and values.

    Parameters
    ----------
    contract_id
        The contract.
    prefix
        Only keys that begin with it.
    at
        A height, a block hash, a finality name or a time; None is ``final``.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    state
        One row a key, bytes, typed as `schema("state")`.

    Raises
    ------
    TooLargeContractStateError
        If the contract holds more than nodes hand out (about 50 kB).
    InvalidRequestError
        If an argument is malformed; nothing was sent then.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: query view_state.
    """
    asked = client.current(ledger)
    contract_id, prefix = (
        validation.account_id(contract_id, "contract_id"),
        validation.raw_bytes(prefix, "prefix"),
    )
    found = asked.send(rpc.view_state(contract_id, prefix, asked.locate(at)))
    return framed(
        asked,
        lambda: tables.state(found),
        "query view_state",
        block_height=found.block_height,
        block_hash=found.block_hash,
    )


def contract_code(contract_id: str, *, at: object = None, ledger: Ledger | None = None) -> bytes:
    """
    Read a contract's code.

    Parameters
    ----------
    contract_id
        The contract.
    at
        A height, a block hash, a finality name or a time; None is ``final``.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    code
        The WebAssembly module.

    Raises
    ------
    NoContractCodeError
        If the account has no code.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: query view_code.
    """
    asked = client.current(ledger)
    contract_id = validation.account_id(contract_id, "contract_id")
    code: bytes = asked.send(rpc.view_code(contract_id, asked.locate(at))).code_base64
    return code


def global_contract_code(
    code_hash: str | None = None,
    *,
    account_id: str | None = None,
    at: object = None,
    ledger: Ledger | None = None,
) -> bytes:
    """
    Read a global contract's code, by its hash or by the account that deployed it.

    Parameters
    ----------
    code_hash
        The code's hash.
    account_id
        The account that deployed it, where it is named so.
    at
        A height, a block hash, a finality name or a time; None is ``final``.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    code
        The WebAssembly module.

    Raises
    ------
    NoGlobalContractCodeError
        If there is no such global contract.
    InvalidRequestError
        If neither, or both, ways to name the contract are used.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: query view_global_contract_code, or view_global_contract_code_by_account_id.
    """
    if (code_hash is None) == (account_id is None):
        rule = "either a code's hash, or account_id="
        raise InvalidRequestError.refuse("code_hash", code_hash, rule)
    asked = client.current(ledger)
    if account_id is None:
        named = validation.crypto_hash(code_hash, "code_hash")
        call = rpc.view_global_contract_code(named, asked.locate(at))
    else:
        owner = validation.account_id(account_id)
        call = rpc.view_global_contract_code_by_account_id(owner, asked.locate(at))
    code: bytes = asked.send(call).code_base64
    return code
