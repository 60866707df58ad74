"""Verbs about the node and its epoch: status, gas price, validators, configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ledgerkit import client, validation
from ledgerkit.api import rest, rpc
from ledgerkit.errors import InvalidRequestError
from ledgerkit.frames import chain as tables
from ledgerkit.verbs.fetching import framed

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.client import Ledger


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
    return framed(asked, lambda: tables.indexer_status(asked.send(rest.status())), "GET /status")


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
    return client.current(ledger).send(rest.health()).status


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
    wanted = lists[validation.one_of(which, "which", tuple(lists))]
    asked = client.current(ledger)
    found = asked.send(rpc.validators(_epoch(asked, at, epoch_id)))
    told = {"epoch_height": found.epoch_height, "epoch_start_height": found.epoch_start_height}
    return framed(asked, lambda: tables.validators(getattr(found, wanted)), "validators", **told)


def _epoch(asked: Ledger, at: object, epoch_id: str | None) -> Any:
    """Name an epoch: by itself, by its last block, or the present one."""
    if epoch_id is not None:
        if at is not None:
            raise InvalidRequestError.refuse("epoch_id", epoch_id, "given without at=")
        return {"epoch_id": validation.crypto_hash(epoch_id, "epoch_id")}
    return [None] if at is None else {"block_id": _block_id(asked, at)}


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
