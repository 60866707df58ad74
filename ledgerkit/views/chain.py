"""Verbs about the chain: view calls, blocks, chunks, state, validators, the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ledgerkit import checks, client, indexed, rpc
from ledgerkit.errors import DecodeError, InvalidRequestError, LedgerError, UnknownBlockError
from ledgerkit.tables import chain as tables
from ledgerkit.views._ask import Ask, framed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from ledgerkit.client import Ledger
    from ledgerkit.wire import chain

_MOST_BLOCKS = 100_000
_LOOK_AHEAD = 1_000


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
    pinned = checks.at(asked.send(rpc.block(asked.locate(at))).header.hash)
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
    return checks.account_id(contract_id, "contract_id"), checks.method_name(method)


def _args(args: Any) -> bytes:
    """Encode arguments; none are an empty object."""
    return checks.json_args({} if args is None else args)


def block(at: object = "final", *, ledger: Ledger | None = None) -> pd.DataFrame:
    """
    Read one block.

    Parameters
    ----------
    at
        A height, a block hash, a finality name or a time (the last block then).
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    block
        One row, typed as `schema("blocks")`.

    Raises
    ------
    UnknownBlockError
        If there is no such block: its height was skipped, or is not here yet.
    InvalidRequestError
        If `at` is malformed; nothing was sent then.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: block.
    """
    asked = client.current(ledger)
    return framed(asked, lambda: tables.blocks([asked.send(rpc.block(asked.locate(at)))]), "block")


def blocks(
    start: int, stop: int, *, progress: bool = True, ledger: Ledger | None = None
) -> pd.DataFrame:
    """
    Read the blocks of a range of heights.

    Parameters
    ----------
    start
        The first height.
    stop
        The height after the last, as in `range`.
    progress
        Whether a bar shows.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    blocks
        One row a block in order of height, typed as `schema("blocks")`. Heights
        that the chain skipped have no row.

    Raises
    ------
    UnknownBlockError
        If a height has no block and its neighbours do not show that it was skipped.
    InvalidRequestError
        If the range is malformed or above 100,000 heights; nothing was sent then.
    LedgerError
        If a block could not be read.

    Notes
    -----
    Source: block, one call a height.
    """
    asked = client.current(ledger)
    first, last = checks.block_height(start, "start"), checks.block_height(stop, "stop")
    if not first <= last <= first + _MOST_BLOCKS:
        rule = f"from start ({first}) up to {_MOST_BLOCKS} heights above it"
        raise InvalidRequestError.refuse("stop", stop, rule)
    heights = range(first, last)
    calls = [rpc.block(checks.at(height)) for height in heights]
    answers = Ask(asked, "collect", progress).send(calls, "blocks")
    found = _present(asked, dict(zip(heights, answers, strict=True)))
    return framed(asked, lambda: tables.blocks(found), "block")


def _present(asked: Ledger, answers: dict[int, chain.Block | LedgerError]) -> list[chain.Block]:
    """Leave out heights that were skipped, as the next block's parent proves."""
    found: list[chain.Block] = []
    gap: UnknownBlockError | None = None
    for answer in answers.values():
        if isinstance(answer, UnknownBlockError):
            gap = gap or answer
        elif isinstance(answer, LedgerError):
            raise answer
        else:
            if gap is not None and not _follows(answer, found, min(answers)):
                raise gap
            found.append(answer)
            gap = None
    if gap is not None:
        _check_tail(asked, answers, found, gap)
    return found


def _follows(block: chain.Block, found: Sequence[chain.Block], first: int) -> bool:
    """Tell whether nothing lies between a block and the one before it."""
    if found:
        return block.header.prev_hash == found[-1].header.hash
    return block.header.prev_height is not None and block.header.prev_height < first


def _check_tail(
    asked: Ledger,
    answers: dict[int, chain.Block | LedgerError],
    found: Sequence[chain.Block],
    gap: UnknownBlockError,
) -> None:
    """Find the next block above a range that ends in a gap, to prove the gap."""
    head = asked.send(rpc.block(checks.at("final"))).header.height
    for height in range(max(answers) + 1, min(head, max(answers) + _LOOK_AHEAD) + 1):
        try:
            block = asked.send(rpc.block(checks.at(height)))
        except UnknownBlockError:
            continue
        if _follows(block, found, min(answers)):
            return
        break
    raise gap


def chunk(
    chunk_id: str | None = None,
    *,
    at: object = None,
    shard_id: int | None = None,
    ledger: Ledger | None = None,
) -> pd.DataFrame:
    """
    Read one chunk, by its hash or by its block and shard.

    Parameters
    ----------
    chunk_id
        The chunk's hash.
    at
        Its block, beside `shard_id`: a height, a block hash, a finality name or a time.
    shard_id
        Its shard.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    chunk
        One row, typed as `schema("chunks")`.

    Raises
    ------
    InvalidRequestError
        If neither, or both, ways to name the chunk are used.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: chunk.
    """
    asked = client.current(ledger)
    if (chunk_id is None) == (shard_id is None):
        rule = "either a chunk's hash, or at= and shard_id="
        raise InvalidRequestError.refuse("chunk_id", chunk_id, rule)
    if shard_id is None:
        found = asked.send(rpc.chunk(checks.crypto_hash(chunk_id, "chunk_id")))
        height = None
    else:
        shard = checks.whole(shard_id, "shard_id", most=2**64 - 1)
        head = asked.send(rpc.block(asked.locate(at))).header
        found, height = asked.send(rpc.chunk_of(head.hash, shard)), head.height

    def frame() -> pd.DataFrame:
        return tables.chunks([found.header], block_height=height, contents=[found])

    return framed(asked, frame, "chunk")


def chunks(at: object = "final", *, ledger: Ledger | None = None) -> pd.DataFrame:
    """
    Read the chunk headers of a block.

    Parameters
    ----------
    at
        A height, a block hash, a finality name or a time.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    chunks
        One row a shard in the block's order, typed as `schema("chunks")`.

    Raises
    ------
    LedgerError
        If the block could not be read.

    Notes
    -----
    Source: block.
    """
    asked = client.current(ledger)
    found = asked.send(rpc.block(asked.locate(at)))
    return framed(
        asked, lambda: tables.chunks(found.chunks, block_height=found.header.height), "block"
    )


def transactions(
    at: object = "final", *, progress: bool = True, ledger: Ledger | None = None
) -> pd.DataFrame:
    """
    Read all transactions that a block includes.

    Parameters
    ----------
    at
        A height, a block hash, a finality name or a time.
    progress
        Whether a bar shows.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    transactions
        One row a transaction, by shard in the block's order, typed as
        `schema("transactions")`.

    Raises
    ------
    LedgerError
        If the block or one of its chunks could not be read.

    Notes
    -----
    Source: block, then chunk for each chunk that is new in it.
    """
    asked = client.current(ledger)
    head = asked.send(rpc.block(asked.locate(at)))
    height = head.header.height
    calls = [rpc.chunk(c.chunk_hash) for c in head.chunks if c.height_included == height]
    found = Ask(asked, "raise", progress).send(calls, "chunks")
    contents = [chunk for chunk in found if not isinstance(chunk, LedgerError)]
    read_at = {"block_height": height, "block_hash": head.header.hash}
    return framed(asked, lambda: tables.transactions(height, contents), "chunk", **read_at)


def status(*, ledger: Ledger | None = None) -> pd.DataFrame:
    """
    Read the node's status.

    Parameters
    ----------
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    status
        One row, typed as `schema("status")`; `earliest_block_height` tells what
        the host still holds.

    Raises
    ------
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: status.
    """
    asked = client.current(ledger)
    return framed(asked, lambda: tables.status(asked.send(rpc.status())), "status")


def indexer_status(*, ledger: Ledger | None = None) -> pd.DataFrame:
    """
    Read how far the indexer is.

    Parameters
    ----------
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    status
        One row, typed as `schema("indexer_status")`.

    Raises
    ------
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: GET /status.
    """
    asked = client.current(ledger)
    return framed(asked, lambda: tables.indexer_status(asked.send(indexed.status())), "GET /status")


def health(*, ledger: Ledger | None = None) -> str:
    """
    Read the indexer's judgement of its own health.

    Parameters
    ----------
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    health
        ``ok``, or what is wrong.

    Raises
    ------
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: GET /health.
    """
    return client.current(ledger).send(indexed.health()).status


def gas_price(at: object = None, *, ledger: Ledger | None = None) -> pd.DataFrame:
    """
    Read the price of gas.

    Parameters
    ----------
    at
        A height, a block hash or a time; None is the head.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    price
        One row, typed as `schema("gas_price")`, in yoctoNEAR per gas.

    Raises
    ------
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: gas_price.
    """
    asked = client.current(ledger)
    block_id = None if at is None else _block_id(asked, at)
    return framed(asked, lambda: tables.gas_price(asked.send(rpc.gas_price(block_id))), "gas_price")


def _block_id(asked: Ledger, at: object) -> int | str:
    """Name a block by height or hash, reading it where it is named otherwise."""
    point = asked.locate(at)
    if "block_id" in point.params:
        return point.params["block_id"]
    return asked.send(rpc.block(point)).header.hash


def validators(
    at: object = None,
    *,
    epoch_id: str | None = None,
    which: Literal["current", "next", "proposals", "kickouts"] = "current",
    ledger: Ledger | None = None,
) -> pd.DataFrame:
    """
    Read the validators of an epoch.

    Parameters
    ----------
    at
        The last block of an epoch, by height, hash or time; None is the present epoch.
    epoch_id
        The epoch itself, in place of its last block.
    which
        ``current``, ``next``, ``proposals``, or ``kickouts`` of the epoch before.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    validators
        One row a validator, typed as `schema("validators")`; stakes are exact yoctoNEAR.

    Raises
    ------
    ValidatorInfoUnavailableError
        If `at` is not the last block of its epoch.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: validators.
    """
    lists = {
        "current": "current_validators",
        "next": "next_validators",
        "proposals": "current_proposals",
        "kickouts": "prev_epoch_kickout",
    }
    wanted = lists[checks.one_of(which, "which", tuple(lists))]
    asked = client.current(ledger)
    found = asked.send(rpc.validators(_epoch(asked, at, epoch_id)))
    told = {"epoch_height": found.epoch_height, "epoch_start_height": found.epoch_start_height}
    return framed(asked, lambda: tables.validators(getattr(found, wanted)), "validators", **told)


def _epoch(asked: Ledger, at: object, epoch_id: str | None) -> Any:
    """Name an epoch: by itself, by its last block, or the present one."""
    if epoch_id is not None:
        if at is not None:
            raise InvalidRequestError.refuse("epoch_id", epoch_id, "given without at=")
        return {"epoch_id": checks.crypto_hash(epoch_id, "epoch_id")}
    return [None] if at is None else {"block_id": _block_id(asked, at)}


_ACCOUNT_CHANGES = ("account_changes", "all_access_key_changes", "contract_code_changes")


def changes(
    changes_type: str,
    ids: str | Iterable[str],
    *,
    at: object = "final",
    prefix: bytes = b"",
    public_key: str | None = None,
    ledger: Ledger | None = None,
) -> pd.DataFrame:
    """
    Read what one block changed of some accounts.

    Parameters
    ----------
    changes_type
        ``account_changes``, ``all_access_key_changes``, ``contract_code_changes``,
        ``data_changes`` or ``single_access_key_changes``.
    ids
        One account id or many.
    at
        The block: a height, a block hash, a finality name or a time.
    prefix
        For ``data_changes``: the keys to follow begin with it.
    public_key
        For ``single_access_key_changes``: the key to follow.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    changes
        One row a change, typed as `schema("changes")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was sent then.
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: EXPERIMENTAL_changes.
    """
    kinds = (*_ACCOUNT_CHANGES, "data_changes", "single_access_key_changes")
    kind = checks.one_of(changes_type, "changes_type", kinds)
    many = checks.account_ids(ids)
    subject: dict[str, Any] = {"account_ids": many}
    if kind == "data_changes":
        subject["key_prefix_base64"] = rpc.base64_text(_bytes(prefix))
    elif kind == "single_access_key_changes":
        key = checks.public_key(public_key)
        subject = {"keys": [{"account_id": one, "public_key": key} for one in many]}
    asked = client.current(ledger)
    found = asked.send(rpc.changes(kind, asked.locate(at), subject))
    source = "EXPERIMENTAL_changes"
    return framed(asked, lambda: tables.changes(found), source, block_hash=found.block_hash)


def _bytes(prefix: object) -> bytes:
    """Check the beginning of stored keys."""
    if not isinstance(prefix, bytes):
        raise InvalidRequestError.refuse("prefix", prefix, "bytes")
    return prefix


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
    contract_id, prefix = checks.account_id(contract_id, "contract_id"), _bytes(prefix)
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
    contract_id = checks.account_id(contract_id, "contract_id")
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
        named = checks.crypto_hash(code_hash, "code_hash")
        call = rpc.view_global_contract_code(named, asked.locate(at))
    else:
        owner = checks.account_id(account_id)
        call = rpc.view_global_contract_code_by_account_id(owner, asked.locate(at))
    code: bytes = asked.send(call).code_base64
    return code


def protocol_config(at: object = "final", *, ledger: Ledger | None = None) -> dict[str, Any]:
    """
    Read the protocol's configuration in force at a block.

    Parameters
    ----------
    at
        A height, a block hash, a finality name or a time.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    config
        The decoded configuration, as sent.

    Raises
    ------
    LedgerError
        If it could not be read.

    Notes
    -----
    Source: EXPERIMENTAL_protocol_config.
    """
    asked = client.current(ledger)
    config: dict[str, Any] = asked.send(rpc.protocol_config(asked.locate(at)))
    return config
