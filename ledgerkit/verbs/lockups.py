"""The verb about lockup contracts, which hold and stake NEAR for an owner, and their accounts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, cast, overload

from ledgerkit import errors, validation
from ledgerkit.api import rest, rpc
from ledgerkit.frames.build import build_frame
from ledgerkit.frames.schemas import SCHEMAS
from ledgerkit.frames.tokens import PoolRow
from ledgerkit.verbs import readings
from ledgerkit.verbs.declaring import Collecting, Raising, verb_of_many
from ledgerkit.verbs.fetching import Fetcher, FrameResult, Ids, open_fetcher

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.calls import Call, Response
    from ledgerkit.api.models import chain
    from ledgerkit.ledger import Ledger
    from ledgerkit.transport.networks import Network
    from ledgerkit.validation import BlockReference

_FACTORY = "lockup.near"
_DIGEST_BYTES = 20
_MAX_TIME_NS = 2**63 - 1
# The view methods by the column of their result, or by a name of what completes a column.
# Source: near/core-contracts, `lockup/src/getters.rs`; houseofstake/house-of-stake-contracts,
# `lockup-contract/src/getters.rs` and `venear.rs`.
_COMMON = {
    "balance": "get_balance",
    "deposited": "get_known_deposited_balance",
    "liquid": "get_liquid_owners_balance",
}
_METHODS = {
    "lockup": {
        **_COMMON,
        "locked": "get_locked_amount",
        "vesting": "get_vesting_information",
        "is_enabled": "are_transfers_enabled",
    },
    "venear": {
        **_COMMON,
        "locked": "get_venear_locked_balance",
        "pending": "get_venear_pending_balance",
        "unlocked": "get_venear_liquid_balance",
        "unlock_time": "get_venear_unlock_timestamp",
    },
}
_TIMES = {  # members of a vesting schedule, and their columns
    "start_timestamp": "vesting_start",
    "cliff_timestamp": "vesting_cliff",
    "end_timestamp": "vesting_end",
}


class Selection(NamedTuple):
    """The status of a lockup contract, and the pool that it selected, if any."""

    status: str
    pool_id: str | None = None


def lockup_id(owner_id: str, factory_id: str = _FACTORY) -> str:
    """Return the account of an owner's lockup contract, whether or not there is one."""
    # Source: near/core-contracts, `lockup-factory/src/lib.rs`, `create`; and
    # houseofstake/house-of-stake-contracts, `venear-contract/src/lockup.rs`.
    return f"{sha256(owner_id.encode()).digest()[:_DIGEST_BYTES].hex()}.{factory_id}"


def lockup_sources(network: Network) -> dict[str, str]:
    """Return the contracts of a network that create lockup contracts, by source."""
    # On testnet wallets do not agree on a factory.
    lockup_factory = None if network.name == "testnet" else _FACTORY
    factories = {"lockup": lockup_factory, "venear": network.venear_id}
    return {source: name for source, name in factories.items() if name is not None}


def unknown_lockups(ledger: Ledger) -> list[str] | None:
    """Return notes on the kinds of lockup contracts that are not known on a network, if any."""
    if ledger.is_embedded:
        return None
    sources, name = lockup_sources(ledger.network), errors.cut(ledger.network.name)
    kinds = [kind for kind in _METHODS if kind not in sources]
    return [
        f"lockup contracts of the kind {kind} are not known on {name}" for kind in kinds
    ] or None


def lockup_ids(network: Network, owner_id: str) -> dict[str, str]:
    """Return the accounts of an owner's lockup contracts by source, whether or not they exist."""
    sources = lockup_sources(network)
    return {source: lockup_id(owner_id, name) for source, name in sources.items()}


def read_selections(
    ledger: Ledger, lockup_ids: Sequence[str], at: BlockReference
) -> list[Selection | errors.LedgerError]:
    """Read the pools that lockup contracts selected; most accounts have no such contract."""
    calls = (_selection_call(name, at) for name in lockup_ids)
    # `send_many` would warn if the embedded ledger has no such account, which is the usual case.
    return [selection for batch in ledger.stream(calls) for selection in batch]


def _selection_call(lockup_id: str, at: BlockReference) -> Call[Selection]:
    call = rpc.call_function(lockup_id, "get_staking_pool_account_id", b"{}", at)

    def read(response: Response) -> Selection:
        try:
            pool_id = rpc.result_json(call.read(response), str | None, call.request)
        except errors.UnknownAccountError:
            return Selection("no_account")
        except (errors.NoContractCodeError, errors.NoGlobalContractCodeError):
            return Selection("no_contract")
        except (errors.ContractError, errors.DecodeError):
            return Selection("broken")
        is_valid = pool_id is None or validation.is_account_id(pool_id)
        return Selection("ok", pool_id) if is_valid else Selection("broken")

    return replace(cast("Call[Selection]", call), read=read, keep=None)


def selection_note(
    lockup_id: str, owner_id: str, selection: Selection | errors.LedgerError
) -> str | None:
    """Return the note on a lockup contract that names no pool, or is not in an older recording."""
    if isinstance(selection, errors.NotRecordedError):
        return f"the recording does not say whether {owner_id} has the lockup {lockup_id}"
    if isinstance(selection, errors.LedgerError) or selection.status in {"ok", "no_account"}:
        return None
    lockup = f"the lockup of {owner_id}, {lockup_id}, has the status {selection.status}"
    return f"{lockup}: a pool that only its contract knows is not read"


def lockup_pools(
    fetcher: Fetcher, owner_ids: Sequence[str]
) -> tuple[list[PoolRow], list[str] | None]:
    """
    List the pools of the lockup contracts of accounts, and notes on contracts that name none.

    A contract that could not be read is a failure, but for one that a recording does not have.
    """
    network, final = fetcher.ledger.network, validation.block_reference("final")
    owned = [(owner, *item) for owner in owner_ids for item in lockup_ids(network, owner).items()]
    selections = read_selections(fetcher.ledger, [row[2] for row in owned], final)
    contracts, notes = [], unknown_lockups(fetcher.ledger) or []
    for (owner_id, source, name), selection in zip(owned, selections, strict=True):
        if note := selection_note(name, owner_id, selection):
            notes.append(note)
        if isinstance(selection, Selection):
            if selection.status != "no_account":
                contracts.append((owner_id, source, name, selection.pool_id))
        elif not isinstance(selection, errors.NotRecordedError):
            fetcher.fail(owner_id, selection)
    # The indexer also lists pools of earlier selections, which may have kept a balance.
    responses = fetcher.send([rest.staking(name) for *_, name, _ in contracts], "lockups")
    rows = []
    heights: dict[str, int | None]
    for (owner_id, source, _, pool_id), response in zip(contracts, responses, strict=True):
        if isinstance(response, errors.LedgerError):
            fetcher.fail(owner_id, response)
            continue
        heights = {pool.pool_id: pool.last_update_block_height for pool in response.pools or ()}
        if pool_id is not None:
            heights.setdefault(pool_id, None)
        rows += [PoolRow(owner_id, name, height, source) for name, height in heights.items()]
    return rows, notes or None


@overload
def lockups(account_ids: Ids, **options: Unpack[Raising]) -> pd.DataFrame: ...
@overload
def lockups(
    account_ids: Ids, **options: Unpack[Collecting]
) -> tuple[pd.DataFrame, pd.DataFrame]: ...
@verb_of_many
def lockups(account_ids: Ids, **options: Any) -> FrameResult:
    """
    Return the lockup contracts of accounts: what is locked, vested, staked, and can be spent now.

    An owner has up to two, each with an account of its own: one below lockup.near, whose NEAR is
    released and vests over time, and one of House of Stake, whose NEAR is locked for veNEAR.

    Returns
    -------
    lockups
        One row per account and kind of contract, typed as `schema("lockups")`, all read at one
        block, which ``attrs`` name. Amounts are exact yoctoNEAR, as the contracts state them. An
        account without a contract has a row with the `status` ``no_account``, and no amounts. A
        kind of contract that is not known on the network is in ``attrs["notes"]``.

    Raises
    ------
    InvalidRequestError
        If the lockup contracts of the network are not known, as on testnet.
    LedgerError
        If a contract could not be read.

    Notes
    -----
    Source: view methods of the contracts, such as get_liquid_owners_balance. An account without
    contracts costs two requests to a node, and each contract up to seven more. For veNEAR, `liquid`
    is the lower of get_liquid_owners_balance and get_venear_liquid_balance, as the contract's
    `transfer` requires both.

    Examples
    --------
    >>> ledger = lk.connect("local", world="person")
    >>> held = lk.lockups("maria.near")
    >>> lk.human(held[["source", "balance", "deposited", "locked", "unvested", "liquid"]])
       source        balance deposited         locked       unvested        liquid
    0  lockup  400.0002 NEAR  300 NEAR  199.9998 NEAR  199.9998 NEAR    96.50 NEAR
    1  venear   62.0002 NEAR   25 NEAR        40 NEAR                 12.0002 NEAR
    <BLANKLINE>
    2 rows; network: local
    """
    fetcher = open_fetcher(**options)
    account_ids = validation.account_ids(account_ids)
    network = fetcher.ledger.network
    if not lockup_sources(network):
        rule = "a network whose lockup contracts are known, such as mainnet"
        raise errors.InvalidRequestError.refuse("network", network.name, rule)
    at = fetcher.pin("final")
    owned = {
        f"{account_id} in {name}": {"account_id": account_id, "source": source, "lockup_id": name}
        for account_id in account_ids
        for source, name in lockup_ids(network, account_id).items()
    }
    contract_ids = [row["lockup_id"] for row in owned.values()]
    selections = read_selections(fetcher.ledger, contract_ids, at)
    rows: dict[str, dict[str, Any]] = {
        subject: {**owned[subject], "status": status, "staking_pool_id": pool_id}
        for subject, (status, pool_id) in fetcher.succeeded(owned, selections)
    }
    rows = _read_amounts(fetcher, rows, at)
    columns = {c.name: [row.get(c.name) for row in rows.values()] for c in SCHEMAS["lockups"]}
    frame = build_frame("lockups", columns)
    notes = unknown_lockups(fetcher.ledger)
    return fetcher.result(frame, "view methods of lockup contracts", notes=notes)


def _read_amounts(
    fetcher: Fetcher, rows: Mapping[str, dict[str, Any]], at: BlockReference
) -> dict[str, dict[str, Any]]:
    """Add what the contracts return; one that could not be read is a failure, not a row."""
    calls = {
        (subject, name): readings.value_call(
            row["lockup_id"], method, at, _DECODERS.get(name, readings.amount)
        )
        for subject, row in rows.items()
        for name, method in _METHODS[row["source"]].items()
        if row["status"] == "ok"
    }
    results = _read_results(fetcher, calls)
    calls = {}
    for subject, values in results.items():
        vesting = values.get("vesting")
        if isinstance(vesting, dict) and vesting["vesting"] == "VestingSchedule":
            # A contract takes the schedule as an argument, since it may be private.
            schedule = {name: str(vesting[column]) for name, column in _TIMES.items()}
            args, contract_id = {"vesting_schedule": schedule}, rows[subject]["lockup_id"]
            call = readings.value_call(contract_id, "get_unvested_amount", at, args=args)
            calls[subject, "unvested"] = call
    for subject, unvested in _read_results(fetcher, calls).items():
        results[subject] |= unvested
    completed = {}
    for subject, row in rows.items():
        values = results.get(subject, {})
        failures = [value for value in values.values() if isinstance(value, errors.LedgerError)]
        if failures:
            fetcher.fail(subject, failures[0])
        else:
            completed[subject] = row | _columns(row["source"], values) if values else row
    return completed


def _read_results(
    fetcher: Fetcher, calls: Mapping[tuple[str, str], Call[Any]]
) -> dict[str, dict[str, Any]]:
    """Send calls; return their results, or errors, by subject and name."""
    results: dict[str, dict[str, Any]] = defaultdict(dict)
    sent = fetcher.send(list(calls.values()), "lockups")
    for (subject, name), result in zip(calls, sent, strict=True):
        results[subject][name] = result
    return results


def _vesting(result: chain.CallResult, request: str) -> dict[str, Any]:
    """Decode the columns about vesting from an enum of Rust, with the name of its variant."""
    # Source: near/core-contracts, `lockup/src/types.rs`, VestingInformation.
    value = rpc.result_json(result, str | dict[str, Any], request)
    variants = [(value, {})] if isinstance(value, str) else list(value.items())
    if len(variants) != 1:
        raise errors.DecodeError("not one kind of vesting", request=request, path="$.result")
    [(kind, content)] = variants
    members = content if isinstance(content, dict) else {}
    columns = {"vesting": errors.cut(kind), "unvested": 0 if kind == "None" else None}
    if kind == "VestingSchedule":
        columns |= {c: _time_ns(members.get(name), request) for name, c in _TIMES.items()}
    elif kind == "Terminating":
        columns["unvested"] = readings.integer(members.get("unvested_amount", ""), request)
    return columns


def _time(result: chain.CallResult, request: str) -> int:
    return _time_ns(readings.amount(result, request), request)


def _time_ns(value: Any, request: str) -> int:
    time_ns = readings.integer(value, request)
    if time_ns > _MAX_TIME_NS:
        raise errors.DecodeError(f"{time_ns} is not a time", request=request, path="$.result")
    return time_ns


def _flag(result: chain.CallResult, request: str) -> bool:
    return bool(rpc.result_json(result, bool, request))


_DECODERS = {"vesting": _vesting, "unlock_time": _time, "is_enabled": _flag}  # others are amounts


def _columns(source: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of what a contract returned; it is broken if anything is missing."""
    values["status"] = "broken" if None in values.values() else "ok"
    limits = [values["liquid"]]
    if source == "venear":
        limits.append(values["unlocked"])
        if not values["pending"]:
            values["unlock_time"] = None  # the contract keeps the time of an earlier one
    else:
        vesting = values.pop("vesting") or {"vesting": None}
        values = vesting | values
        # Source: near/core-contracts, `lockup/src/owner.rs`, `transfer`.
        if values["is_enabled"] is not True or values["vesting"] == "Terminating":
            limits.append(None if values["is_enabled"] is None else 0)
    values["liquid"] = None if None in limits else min(limits)
    return values
