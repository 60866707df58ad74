"""
JSON to frame for an account with 5,000 fungible tokens.

ledgerkit's figure is the public path, `read(bytes, "ft")`: typed decode, exact integers,
declared dtypes. The competitors start from the same bytes: `json` with `pandas.json_normalize`
(balances stay text, heights turn into floats), the same with exact balances, and ledgerkit's
typed decode alone.
"""

import json
import random
import statistics
import time
from collections.abc import Callable

import msgspec
import pandas as pd
from _verdict import finish, say

import ledgerkit as lk
from ledgerkit.api.models.rest import FungibleTokens

ROWS = 5_000
ROUNDS = 75
TARGET = 7.0


def body() -> bytes:
    """Build a response like a host's: balances of 17 digits on average, half the heights null."""
    pick = random.Random(7)
    tokens = [
        {
            "balance": str(pick.getrandbits(pick.choice((1, 40, 60, 80, 100)))),
            "contract_id": f"token-{number}.factory.near",
            "last_update_block_height": pick.choice((None, 100_000_000 + number)),
        }
        for number in range(ROWS)
    ]
    return json.dumps({"account_id": "root.near", "tokens": tokens}).encode()


BODY = body()
DECODER = msgspec.json.Decoder(FungibleTokens)


def with_ledgerkit() -> pd.DataFrame:
    return lk.read(BODY, "ft")


def normalized() -> pd.DataFrame:
    return pd.json_normalize(json.loads(BODY), "tokens", ["account_id"])


def normalized_exact() -> pd.DataFrame:
    frame = normalized()
    return frame.assign(balance=frame["balance"].map(int).astype(object))


def tokens_normalized() -> pd.DataFrame:
    return pd.json_normalize(json.loads(BODY)["tokens"])


def decoded() -> FungibleTokens:
    return DECODER.decode(BODY)


CLIENTS: dict[str, Callable[[], object]] = {
    "ledgerkit.read": with_ledgerkit,
    "json_normalize": normalized,
    "json_normalize, exact": normalized_exact,
    "json_normalize, tokens": tokens_normalized,
    "typed decode alone": decoded,
}


def check() -> None:
    """Check that both results are equal, and exact."""
    ours, theirs = with_ledgerkit(), normalized()
    assert ours["balance"].tolist() == [int(text) for text in theirs["balance"]]
    assert ours["contract_id"].tolist() == theirs["contract_id"].tolist()


def once(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    check()
    figures: dict[str, list[float]] = {name: [] for name in CLIENTS}
    for _ in range(ROUNDS):  # interleaved, so that a busy moment affects all of them
        for name, work in CLIENTS.items():
            figures[name].append(once(work))
    ours = figures["ledgerkit.read"]
    print(f"{ROWS:,} rows, {len(BODY):,} bytes; medians of {ROUNDS} rounds")
    print(f"{'path':<24}{'ms':>8}{'best':>8}{'x ours':>8}")
    for name, took in figures.items():
        ratio = statistics.median(a / b for a, b in zip(took, ours, strict=True))
        print(
            f"{name:<24}{statistics.median(took) * 1e3:>8.2f}{min(took) * 1e3:>8.2f}{ratio:>8.2f}"
        )
        if name == "json_normalize":
            claim = f"at least {TARGET:g} x as fast as json_normalize, round by round"
            say(claim, f"{ratio:.2f}", met=ratio >= TARGET)
    finish()


if __name__ == "__main__":
    main()
