"""Amounts of NEAR, as callers pass them to the verbs that send."""

from __future__ import annotations

from ledgerkit import units, user_warnings

_LEAST_PLAIN = 10**15  # yoctoNEAR, a billionth of a NEAR


def parse_near(value: int | str, field: str = "amount") -> int:
    """
    Parse an amount of NEAR into yoctoNEAR, as `units.yocto` does.

    A small integer without a unit issues a warning: the caller may mean NEAR.
    """
    amount = units.yocto(value, field)
    if not isinstance(value, str) and 0 < amount < _LEAST_PLAIN:
        user_warnings.warn(
            f'{field} {amount} without a unit is {amount} yoctoNEAR: write "{amount} NEAR" if you'
            f' mean NEAR, and "{amount} yocto" if not'
        )
    return amount
