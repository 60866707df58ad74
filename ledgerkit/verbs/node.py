"""Verbs about the node and the epoch: status, gas price, validators, configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ledgerkit import client, validation
from ledgerkit.api import rpc
from ledgerkit.errors import InvalidRequestError
from ledgerkit.frames import chain as chain_frames
from ledgerkit.ledger import Ledger, newest_block_in_errors
from ledgerkit.verbs.declaring import verb
from ledgerkit.verbs.fetching import read_frame, sourced_frame

if TYPE_CHECKING:
    import pandas as pd


@verb
def status(*, ledger: Ledger | None = None) -> pd.DataFrame:
    """
    Return the node's status.

    Returns
    -------
    status
        One row, typed as `schema("status")`; `earliest_block_height` is the oldest
        block that the node still has.

    Notes
    -----
    Source: status.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> lk.status()[["chain_id", "protocol_version", "latest_block_height", "syncing"]]
       chain_id  protocol_version  latest_block_height  syncing
    0  localnet                86            180000052    False
    """
    return read_frame(ledger, rpc.status(), chain_frames.status, "status")


@verb
def gas_price(at: object = None, *, ledger: Ledger | None = None) -> pd.DataFrame:
    """
    Return the price of gas at a block.

    Parameters
    ----------
    at
        A height, block hash, finality name or time; None is the newest block.

    Returns
    -------
    price
        One row, typed as `schema("gas_price")`, in yoctoNEAR per gas.

    Notes
    -----
    Source: gas_price.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> lk.gas_price()
       gas_price
    0  100000000
    """
    ledger = client.current(ledger)
    call = rpc.gas_price(None if at is None else _block_id(ledger, at))
    return read_frame(ledger, call, chain_frames.gas_price, "gas_price")


def _block_id(ledger: Ledger, at: object) -> int | str:
    """Return a block's height or hash; for another reference, read the block for its hash."""
    reference = ledger.locate(at)
    if "block_id" in reference.params:
        return reference.params["block_id"]
    return ledger.send(rpc.block(reference)).header.hash


@verb
def validators(
    at: object = None,
    *,
    epoch_id: str | None = None,
    which: Literal["current", "next", "proposals", "kickouts"] = "current",
    ledger: Ledger | None = None,
) -> pd.DataFrame:
    """
    Return the validators of an epoch, its proposals or kickouts.

    Parameters
    ----------
    at
        The last block of the epoch: a height, block hash or time; None is the current
        epoch.
    epoch_id
        The epoch's id, instead of its last block.
    which
        ``current``, ``next``, ``proposals``, or ``kickouts`` of the previous epoch.

    Returns
    -------
    validators
        One row per validator, typed as `schema("validators")`; stakes are exact
        yoctoNEAR.

    Raises
    ------
    ValidatorInfoUnavailableError
        If `at` is not the last block of its epoch.
    InvalidRequestError
        If an argument is malformed, or both `at` and `epoch_id` are passed.

    Notes
    -----
    Source: validators.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> lk.validators()[["account_id", "stake", "num_produced_blocks"]]
              account_id                           stake  num_produced_blocks
    0  north.poolv1.near  500390000000000000000370370367                   53
    1  south.poolv1.near  501025000000000000000246913578                    0
    2   east.poolv1.near  500000000000000000000123456789                    0
    """
    lists = {
        "current": "current_validators",
        "next": "next_validators",
        "proposals": "current_proposals",
        "kickouts": "prev_epoch_kickout",
    }
    field = lists[validation.one_of(which, "which", tuple(lists))]
    ledger = client.current(ledger)
    params = _epoch_params(ledger, at, epoch_id)
    height = params.get("block_id") if isinstance(params, dict) else None
    with newest_block_in_errors(ledger, height):  # the node's error names no height
        response = ledger.send(rpc.validators(params))
    return sourced_frame(
        ledger,
        lambda: chain_frames.validators(getattr(response, field)),
        "validators",
        epoch_height=response.epoch_height,
        epoch_start_height=response.epoch_start_height,
    )


def _epoch_params(ledger: Ledger, at: object, epoch_id: str | None) -> Any:
    """Return the parameters for an epoch: by its id, its last block, or the current one."""
    if epoch_id is not None:
        if at is not None:
            rule = "either an epoch's id alone, or at="
            raise InvalidRequestError.refuse("epoch_id", epoch_id, rule)
        return {"epoch_id": validation.crypto_hash(epoch_id, "epoch_id")}
    return [None] if at is None else {"block_id": _block_id(ledger, at)}


@verb
def protocol_config(at: object = "final", *, ledger: Ledger | None = None) -> dict[str, Any]:
    """
    Return the protocol configuration in force at a block.

    Returns
    -------
    config
        The decoded configuration, as the node sends it.

    Notes
    -----
    Source: EXPERIMENTAL_protocol_config.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> config = lk.protocol_config()
    >>> config["protocol_version"], config["epoch_length"], config["min_gas_price"]
    (86, 43200, '100000000')
    """
    ledger = client.current(ledger)
    config: dict[str, Any] = ledger.send(rpc.protocol_config(ledger.locate(at)))
    return config
