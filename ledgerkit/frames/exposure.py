"""The rule that classes an account's exposure to staking; pure, over what is visible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Entry:
    """A pool or a liquid staking token listed for an account; its amount, if known."""

    contract_id: str
    amount: int | None = None


@dataclass(frozen=True, slots=True)
class Exposure:
    """An account's class and the entries that it rests on."""

    exposure_class: str
    direct: tuple[Entry, ...]
    liquid: tuple[Entry, ...]

    @property
    def n_unknown(self) -> int:
        """Count entries whose amount is not known."""
        return sum(entry.amount is None for entry in (*self.direct, *self.liquid))


def classify(
    direct: Sequence[Entry], liquid: Sequence[Entry], *, nonzero: bool = False
) -> Exposure:
    """
    Class one account by what is listed for it.

    Parameters
    ----------
    direct
        Staking pools.
    liquid
        Liquid staking tokens.
    nonzero
        Whether entries known to be zero are dropped first; unknown ones stay.

    Returns
    -------
    exposure
        ``mixed``, ``direct_only``, ``liquid_only`` or
        ``no_visible_staking_position``, with the entries that counted.
    """
    pools = tuple(e for e in direct if not (nonzero and e.amount == 0))
    tokens = tuple(e for e in liquid if not (nonzero and e.amount == 0))
    names = {
        (True, True): "mixed",
        (True, False): "direct_only",
        (False, True): "liquid_only",
        (False, False): "no_visible_staking_position",
    }
    return Exposure(names[bool(pools), bool(tokens)], pools, tokens)
