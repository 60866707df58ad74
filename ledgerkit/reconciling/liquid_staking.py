"""Gains of liquid staking tokens: growth in NEAR at the rate of the token's contract."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ledgerkit import validation
from ledgerkit.reconciling.rewards import Holding, StakeReading, compute_rewards, read_at_epochs
from ledgerkit.tracing.token_standards import FUNGIBLE
from ledgerkit.verbs.readings import ONE_TOKEN, RATE_METHODS, token_reading_call, value_call

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.api.models import chain
    from ledgerkit.ledger import Ledger
    from ledgerkit.reconciling.model import Block, Entry, Gap, Reward


def liquid_gains(  # noqa: PLR0917 - an account and a period, as everywhere
    ledger: Ledger,
    account_id: str,
    tokens: Iterable[str],
    start: Block,
    stop: Block,
    entries: Sequence[Entry],
    gaps: Sequence[Gap] = (),
) -> list[Reward]:
    """
    Read the gains in NEAR of an account's liquid staking tokens, apart from transfers.

    Entries of the tokens, all between the two blocks, are valued at the rate of their block. A gain
    is a row of rewards: `pool_id` is the token's contract, and all amounts are values in yoctoNEAR.
    It is not an entry of a statement, as the balance of the token itself does not change. Periods
    whose entries do not explain the balance have no row; `gaps` are the heights at which tokens
    appeared without an entry.
    """
    gains = []
    for contract_id in dict.fromkeys(tokens):
        asset = f"{FUNGIBLE}:{contract_id}"
        flows = [e for e in entries if e.asset == asset and e.change]
        method = _rate_method(ledger, contract_id, stop)
        if method is not None:
            read = partial(_read_values, ledger, account_id, contract_id, method)
            heights = [entry.block_height for entry in flows]
            heights += [gap.start_height + 1 for gap in gaps if gap.asset == asset]
            readings = read_at_epochs(ledger, (start, stop), heights, read)
            if len(readings) > 1 and (flows or any(reading.total for reading in readings)):
                first_height, moves = _value_flows(ledger, contract_id, method, flows)
                readings = [reading for reading in readings if reading.height >= first_height]
                is_gain = partial(_is_gain, flows)
                gains += compute_rewards(account_id, contract_id, readings, moves, is_gain)
    return gains


def _is_gain(
    flows: Sequence[Entry], _growth: int, before: StakeReading, after: StakeReading
) -> bool:
    """Return True if the entries explain the token's balance: the growth comes from its rate."""
    change = sum(e.change for e in flows if before.height < e.block_height <= after.height)
    return after.staked - before.staked == change


def _rate_method(ledger: Ledger, contract_id: str, stop: Block) -> str | None:
    """Return the method that returns a token's rate; None if it or the contract is missing."""
    calls = [value_call(contract_id, method, stop.reference) for method in RATE_METHODS]
    rates = ledger.send_many(calls, progress=False)
    by_method = zip(RATE_METHODS, rates, strict=True)
    return next((method for method, rate in by_method if rate is not None), None)


def _read_values(
    ledger: Ledger,
    account_id: str,
    contract_id: str,
    method: str,
    headers: Sequence[chain.BlockHeader],
) -> list[Holding | None]:
    """Read the value of an account's tokens after blocks; None before there was a rate."""
    blocks = [validation.received_hash(header.hash) for header in headers]
    calls: list[Call[Any]] = [
        token_reading_call(account_id, contract_id, block) for block in blocks
    ]
    calls += [value_call(contract_id, method, block) for block in blocks]
    results: list[Any] = ledger.send_many(calls, label="rates")
    values: list[Holding | None] = []
    for reading, rate in zip(results[: len(blocks)], results[len(blocks) :], strict=True):
        balance = reading.total
        if not balance or rate is None:
            values.append(Holding(0, 0) if balance == 0 else None)
        else:
            values.append(Holding(balance * rate // ONE_TOKEN, balance))
    return values


def _value_flows(
    ledger: Ledger, contract_id: str, method: str, flows: Sequence[Entry]
) -> tuple[int, list[tuple[int, int]]]:
    """
    Return first the last height without a rate (its flows are dropped), then the valued flows.

    Each flow is valued at the rate of its block.
    """
    heights = list(dict.fromkeys(entry.block_height for entry in flows))
    blocks = map(validation.block_reference, heights)
    calls = [value_call(contract_id, method, block) for block in blocks]
    read = zip(heights, ledger.send_many(calls, progress=False), strict=True)
    rates = {height: rate for height, rate in read if rate is not None}
    first_height = max((height for height in heights if height not in rates), default=0)
    valued = [entry for entry in flows if entry.block_height in rates]
    return first_height, [(e.block_height, _value(e.change, rates[e.block_height])) for e in valued]


def _value(change: int, rate: int) -> int:
    """Return the value of a change, rounded towards zero."""
    value = abs(change) * rate // ONE_TOKEN
    return value if change > 0 else -value
