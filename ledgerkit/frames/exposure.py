"""Classification of an account's staking, from the pools and tokens listed for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_CLASSES = {
    (True, True): "mixed",
    (True, False): "direct_only",
    (False, True): "liquid_only",
    (False, False): "no_visible_staking_position",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A pool or liquid staking token that is listed for an account, and its amount if known."""

    contract_id: str
    amount: int | None = None


@dataclass(frozen=True, slots=True)
class Exposure:
    """The class of an account, and the pools and tokens it is based on."""

    exposure_class: str
    direct: tuple[Entry, ...]
    liquid: tuple[Entry, ...]

    @property
    def n_unknown(self) -> int:
        """The number of entries of unknown amount."""
        return sum(entry.amount is None for entry in (*self.direct, *self.liquid))


def classify(
    direct: Sequence[Entry], liquid: Sequence[Entry], *, nonzero: bool = False
) -> Exposure:
    """Classify an account; `nonzero` ignores pools and tokens whose amount is known to be zero."""
    pools = tuple(entry for entry in direct if not (nonzero and entry.amount == 0))
    tokens = tuple(entry for entry in liquid if not (nonzero and entry.amount == 0))
    return Exposure(_CLASSES[bool(pools), bool(tokens)], pools, tokens)
