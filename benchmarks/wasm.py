"""
Contracts of WebAssembly beside those of Python: calls a second, and the start of a module.

Prints medians of three rounds. Target: a view of a module that is compiled already, its instance
included, takes 5 ms at most. The module is the fungible token of near-kit, which
`python -m tests.wasm_contracts` downloads; without it nothing is measured.
"""

from __future__ import annotations

import statistics
import time

from _verdict import finish, say

from ledgerkit.localnet.contracts.fungible_token import FungibleToken
from ledgerkit.localnet.wasm import engine
from tests import wasm_contracts
from tests.token_worlds import TOKEN, TokenWorld, call

CALLS = 500
ROUNDS = 3
TARGET_MS = 5.0


def calls_per_second(token: object) -> float:
    """Transfer tokens one after the other, each until its refunds are executed."""
    world = TokenWorld(token)
    world.send("bob.near", TOKEN, [call("storage_deposit", {}, 125 * 10**19)])
    begin = time.perf_counter()
    for number in range(CALLS):
        args = {"receiver_id": "bob.near", "amount": str(number + 1)}
        world.send("alice.near", TOKEN, [call("ft_transfer", args, 1)])
    return CALLS / (time.perf_counter() - begin)


def first_views(module: bytes, method_name: str, args: dict[str, str]) -> tuple[float, float]:
    """Return the milliseconds of a view whose module is compiled first, and of the next one."""
    world = TokenWorld(module)
    engine.forget()
    took = []
    for _ in range(2):
        begin = time.perf_counter()
        world.view(method_name, **args)
        took.append((time.perf_counter() - begin) * 1e3)
    return took[0], took[1]


def main() -> None:
    """Measure, and compare with the target."""
    module = wasm_contracts.read("fungible_token")
    if module is None:
        print(wasm_contracts.ABSENT)
        finish()
        return
    for name, token in (("Python", FungibleToken), ("WebAssembly", module)):
        rates = [calls_per_second(token) for _ in range(ROUNDS)]
        print(f"{name}: {statistics.median(rates):,.0f} token transfers a second, one by one")
    pairs = [
        first_views(module, "ft_balance_of", {"account_id": "bob.near"}) for _ in range(ROUNDS)
    ]
    cold, warm = (statistics.median(values) for values in zip(*pairs, strict=True))
    size = f"{len(module):,} bytes"
    print(f"first view: {cold:.0f} ms with the compilation of {size}, then {warm:.2f} ms")
    say(
        f"a view of a compiled module takes {TARGET_MS:g} ms at most",
        f"{warm:.2f} ms",
        met=warm <= TARGET_MS,
    )
    finish()


if __name__ == "__main__":
    main()
