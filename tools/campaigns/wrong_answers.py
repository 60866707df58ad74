"""
A response that belongs to another request is never taken for an answer.

A server in front of the embedded ledger adds whole and half responses of other requests, sends
them first or instead, and writes wrong ids. Reads of every kind are sent over every kind of
connection. Each must equal the same read without faults, or raise UnmatchedResponseError or
another TransportError.

Half a response is not sent to transports of httpx that a caller passes: those close their
connections by themselves, and httpx reads it as the beginning of the next response.

Two REST responses about one account that are both valid for it, an empty list of tokens and one of
collections, differ in nothing. So each account is read by one path only.
"""

from __future__ import annotations

import random
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ledgerkit as lk
from ledgerkit import validation
from ledgerkit.api import rest, rpc
from ledgerkit.api.models.transactions import TransactionResponse
from ledgerkit.errors import LedgerError, TransportError
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import SecretKey
from tests import out_of_step
from tests.local_transport import LocalTransport
from tests.loopback import WAYS, way_options

if TYPE_CHECKING:
    from ledgerkit.api.calls import Call
    from ledgerkit.localnet.world import World
    from tools.campaigns._campaign import Tally

COUNT = 100_000
SMALL = 200
EXPECTED = ("right", *(f"injected: {fault}" for fault in out_of_step.FAULTS))
PEOPLE = 120
BLOCKS = 20
ROUND = 300  # reads over the same connections
RATE = 0.1  # of the responses have a fault
SURPLUS = "surplus"  # in the names of faults that a caller's transport deals with by itself
RETRIES = lk.RetryPolicy(attempts=4, total_s=60.0)


def reads(world: World) -> list[Call[Any]]:
    """Build reads of every kind, of many accounts and blocks."""
    block = world.chain.head
    by_hash = validation.block_reference(str(block.hash))
    by_height, final = map(validation.block_reference, (block.height, "final"))
    people = [f"person{number:07}.near" for number in range(PEOPLE)]
    contract_id = "token00.near"
    secret_key = SecretKey.from_text(world.summary.accounts[0].secret_key or "")
    every: list[Call[Any]] = [
        rpc.gas_price(None),
        rpc.validators([None]),
        rpc.protocol_config(final),
        rest.top_holders(contract_id),
        rest.accounts_of(str(secret_key.public_key)),
    ]
    for height in [block.height for block in world.chain.blocks()][-BLOCKS:]:
        at_height = validation.block_reference(height)
        every += [rpc.block(at_height), rpc.chunk_of(height, 0), rpc.protocol_config(at_height)]
    for number, name in enumerate(people):
        at = (by_hash, by_height, final)[number % 3]
        args = validation.json_args({"account_id": name})
        every += [
            rpc.view_account(name, at),
            rpc.view_account(f"no-{name}", at),
            rpc.view_access_key_list(name, at),
            rpc.call_function(contract_id, "ft_balance_of", args, at),
            (rest.ft, rest.nft, rest.full, rest.staking)[number // 3 % 4](name),
        ]
    return every


def plain(value: Any) -> Any:
    """Return what is compared: of an error its class and values, of a transaction its bytes."""
    if isinstance(value, LedgerError):
        details = {name: item for name, item in vars(value).items() if name != "request"}
        return type(value).__name__, str(value), repr(details)
    return value.body if isinstance(value, TransactionResponse) else value


def read_all(ledger: lk.Ledger, sent: list[Call[Any]]) -> list[Any]:
    """Send the reads at the same time, each anew: nothing from the cache."""
    uncached = [replace(call, keep=None) for call in sent]
    return ledger.send_many(uncached, on_error="collect", progress=False)


def compare(tally: Tally, way: str, call: Call[Any], value: Any, expected: Any) -> None:
    if plain(value) == expected:
        tally.count("right")
    elif isinstance(value, TransportError):
        tally.count(type(value).__name__)
    else:
        tally.violate(f"{way}, {call.request}: {shortened(value)}, not {shortened(expected)}")


def shortened(value: Any) -> str:
    return repr(value)[:200]


def run(count: int, seed: int, tally: Tally) -> None:
    """Send reads in rounds, each over another kind of connection."""
    world = open_world("crowd", size=PEOPLE)
    every = reads(world)
    with lk.connect("lab", transport=LocalTransport(world)) as ledger, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about accounts that do not exist
        expected = [plain(value) for value in read_all(ledger, every)]
    rng = random.Random(seed)
    size = min(ROUND, max(1, count // len(WAYS)))
    for number, start in enumerate(range(0, count, size)):
        way = WAYS[number % len(WAYS)]
        places = rng.choices(range(len(every)), k=min(size, count - start))
        faults = [fault for fault in out_of_step.FAULTS if way == "own" or SURPLUS not in fault]
        with (
            out_of_step.serve(
                LocalTransport(world), faults, rate=RATE, seed=rng.randrange(2**32)
            ) as server,
            lk.connect(
                "lab",
                rpc_url=server.url,
                api_url=server.url,
                retries=RETRIES,
                **way_options(way),
            ) as ledger,
        ):
            values = read_all(ledger, [every[place] for place in places])
        for place, value in zip(places, values, strict=True):
            compare(tally, way, every[place], value, expected[place])
        for fault, times in server.injected.items():
            tally.count(f"injected: {fault}", times)
