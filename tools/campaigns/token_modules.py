"""
A token in Python does what the standard's module does: receipts, logs, balances, storage.

Random calls of a fungible token run in two worlds, see `tests.token_worlds`. The module is
downloaded by `python -m tests.wasm_contracts`; without it nothing is compared.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests import wasm_contracts
from tests.token_worlds import Pair, random_call

if TYPE_CHECKING:
    from tools.campaigns._campaign import Tally

COUNT = 1_000
SMALL = 30
SUCCEEDED, FAILED = "the same, and succeeded", "the same, and failed"
EXPECTED = (SUCCEEDED, FAILED) if wasm_contracts.read("fungible_token") else ()


def run(count: int, seed: int, tally: Tally) -> None:
    """Send random calls in both worlds, and compare what happened."""
    module = wasm_contracts.read("fungible_token")
    if module is None:
        tally.notes.append(wasm_contracts.ABSENT)
        return
    rng, pair = random.Random(seed), Pair(module)
    for _ in range(count):
        succeeded, difference = pair.send(*random_call(rng))
        if difference is not None:
            tally.violate(f"seed {seed}: {difference}")
            return
        tally.count(SUCCEEDED if succeeded else FAILED)
