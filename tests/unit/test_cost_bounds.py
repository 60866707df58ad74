"""The bound of a transaction's cost, compared with what the embedded ledger takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

import ledgerkit as lk
from ledgerkit.localnet import transaction_validity
from ledgerkit.localnet.execution_errors import InvalidTransactionError
from ledgerkit.protocol import (
    AddKey,
    DeployGlobalContract,
    DeterministicStateInit,
    TransferToGasKey,
    UniversalStateInit,
    UseGlobalContract,
    WithdrawFromGasKey,
)
from ledgerkit.protocol.access_keys import GasKey
from ledgerkit.protocol.actions import with_delegated
from ledgerkit.sending import fees
from ledgerkit.units import U128_MAX
from tests.unit.protocol.test_random import TRANSACTION

if TYPE_CHECKING:
    from ledgerkit.protocol import Action, Transaction

LEDGER = lk.connect("local", world="empty", make_default=False)
CONFIG = LEDGER.rpc("EXPERIMENTAL_protocol_config", {"finality": "final"})
LEAST_PRICE = 10**9  # that gas is bought at
UNKNOWN = (
    DeployGlobalContract,
    DeterministicStateInit,
    TransferToGasKey,
    UniversalStateInit,
    UseGlobalContract,
    WithdrawFromGasKey,
)


def has_known_fee(action: Action) -> bool:
    if isinstance(action, AddKey):
        return not isinstance(action.access_key.permission, GasKey)
    return not isinstance(action, UNKNOWN)


@given(TRANSACTION)
def test_the_bound_is_what_a_ledger_takes_at_the_least_price(tx: Transaction) -> None:
    """Whatever the actions, the bound is the ledger's own sum, or missing where a fee is."""
    bound = fees.cost_bound(tx, CONFIG, LEAST_PRICE)
    if not all(map(has_known_fee, with_delegated(tx.actions))):
        assert bound is None
        return
    try:
        cost = transaction_validity.cost_of(tx, LEDGER.world.runtime.profile, LEAST_PRICE)
    except InvalidTransactionError:  # it needs more than 128 bits
        assert bound is not None
        assert bound > U128_MAX
    else:
        assert bound == cost.total
