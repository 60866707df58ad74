"""Classification of an account's staking, from the pools and tokens listed for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_CLASSES = {
    (True, True): "mixed",
    (True, False): "direct_only",
    (False, True): "liquid_only",
    (False, False): "no_visible_staking_position",
}


class Entry(NamedTuple):
    """A pool or liquid staking token that is listed for an account, and its amount if known."""

    contract_id: str
    amount: int | None = None


class Exposure(NamedTuple):
    """The class of an account, and the pools and tokens it is based on."""

    exposure_class: str
    direct: tuple[Entry, ...]
    liquid: tuple[Entry, ...]

    @property
    def n_unknown(self) -> int:
        """The number of entries of unknown amount."""
        return [entry.amount for entry in (*self.direct, *self.liquid)].count(None)


def classify(
    direct: Sequence[Entry], liquid: Sequence[Entry], *, nonzero: bool = False
) -> Exposure:
    """Classify an account; `nonzero` ignores pools and tokens whose amount is known to be zero."""
    if nonzero:
        direct = [entry for entry in direct if entry.amount != 0]
        liquid = [entry for entry in liquid if entry.amount != 0]
    exposure_class = _CLASSES[bool(direct), bool(liquid)]
    return Exposure(exposure_class, tuple(direct), tuple(liquid))
