"""What the index learns from blocks: whom a key opens, who holds what, and what contracts tell."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from ledgerkit.localnet.chain_types import (
    Account,
    ActionReceipt,
    Block,
    Change,
    Failure,
    Outcome,
    SuccessValue,
)
from ledgerkit.localnet.contract_sdk import Contract, view
from ledgerkit.localnet.contracts.fungible_token import FungibleToken
from ledgerkit.localnet.contracts.staking_pool import StakingPool
from ledgerkit.localnet.execution_errors import PanicError
from ledgerkit.localnet.indexer import BalanceReader, Heights, Indexer
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.state import StateStore
from ledgerkit.localnet.world import World
from ledgerkit.protocol import (
    AccessKey,
    CryptoHash,
    FunctionCall,
    FunctionCallPermission,
    PublicKey,
)

START = 100
KEY = PublicKey("ed25519", bytes(range(32)))
OTHER = PublicKey("ed25519", bytes(32))
OWN = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"


class Plain(Contract):
    """A token that the index knows by its view only."""

    @view
    def ft_balance_of(self, account_id: str) -> str:
        """Be asked."""
        return account_id


class Tape:
    """A chain whose blocks a test writes, each final when it is there."""

    def __init__(self, **settings):
        self.settings = replace(Settings(), genesis_height=START, **settings)
        self.store = StateStore()
        self.blocks = [made_block(START, None)]
        self.told, self.done, self.receipts, self.balances = {}, {}, {}, {}

    chain = property(lambda self: self)
    genesis = property(lambda self: self.blocks[0])
    final = head = property(lambda self: self.blocks[-1])

    def state(self, height):
        """Look at the state after a block."""
        return self.store.at(height)

    def by_hash(self, block_hash):
        """Find a block."""
        return next((block for block in self.blocks if block.hash == block_hash), None)

    def changes(self, height):
        """Give what the block changed."""
        return tuple(self.told.get(height, ()))

    def outcomes_at(self, height):
        """Give what the block executed."""
        return tuple(self.done.get(height, ()))

    def receipt(self, receipt_id):
        """Find a receipt."""
        return self.receipts.get(receipt_id)

    executions = World.executions

    def view(self, contract_id, method_name, args, block):
        """Answer as the newest balance noted at or before the block says."""
        account_id = msgspec.json.decode(args)["account_id"]
        assert method_name == "ft_balance_of"
        known = self.balances.get((contract_id, account_id), {})
        heights = [height for height in known if height <= block.height]
        if not heights:
            raise PanicError("no such account")
        return SimpleNamespace(result=known[max(heights)], logs=())

    def add(self, *, skip=0):
        """Make the next block."""
        self.blocks.append(made_block(self.head.height + 1 + skip, self.head))
        height = self.head.height
        self.told[height] = self.store.commit(height, ("receipt_processing", None))
        return height

    def executed(self, contract_id, *logs, calls=(), caller="alice.near", fails=False):
        """Note an executed receipt in the newest block."""
        receipt_id = CryptoHash.of(f"{len(self.receipts)}".encode())
        actions = tuple(FunctionCall(name, args, 1) for name, args in calls)
        self.receipts[receipt_id] = ActionReceipt(
            receipt_id, caller, contract_id, caller, KEY, 1, actions
        )
        status = Failure({"ActionError": {}}) if fails else SuccessValue(b"")
        outcome = Outcome(receipt_id, contract_id, logs, (), 1, 1, status, self.head.height, 0, ())
        self.done.setdefault(self.head.height, []).append(outcome)


def made_block(height: int, before: Block | None) -> Block:
    """Make a block of which only its place and its time matter."""
    none = CryptoHash(bytes(32))
    return Block(
        height=height,
        hash=CryptoHash.of(str(height).encode()),
        prev_height=None if before is None else before.height,
        prev_hash=none if before is None else before.hash,
        timestamp_ns=height * 10**9,
        epoch_start_height=START,
        gas_price=1,
        total_supply=0,
        random_value=none,
        chunks=(),
        author="node0",
    )


def deployed(tape: Tape, account_id: str, kind: type[Contract], records=()) -> None:
    """Put a contract and its records in place."""
    tape.store.accounts.put(account_id, b"", Account(10**24, code_hash=kind.code_hash))
    for key, value in records:
        tape.store.data.put(account_id, key, value)


def event(name: str, *rows: dict[str, Any]) -> str:
    """Write a log of one of the two standards."""
    standard = "nep141" if name.startswith("ft_") else "nep171"
    told = {"standard": standard, "version": "1.0.0", "event": name, "data": rows}
    return "EVENT_JSON:" + msgspec.json.encode(told).decode()


def read(tape: Tape) -> Indexer:
    """Make an index and let it read everything."""
    tape.store.commit(START, ("", None))
    made = Indexer(cast("World", tape))
    made.catch_up()
    return made


# Keys ---------------------------------------------------------------------------------------


def test_key_without_accounts() -> None:
    """The account that an ed25519 key makes is listed though it does not exist."""
    keys = read(Tape()).keys
    assert keys.accounts(KEY) == [OWN]
    assert keys.accounts(PublicKey("secp256k1", bytes(64))) == []


def test_keys_come_and_go() -> None:
    """An added key is found after its block; a deleted one, or one made limited, is not."""
    tape = Tape()
    tape.store.accounts.put("a.near", b"", Account(1))
    tape.store.access_keys.put("a.near", KEY.packed, AccessKey())
    index = read(tape)
    tape.store.access_keys.put("b.near", KEY.packed, AccessKey(7))
    tape.add()
    index.catch_up()
    assert index.keys.accounts(KEY) == ["a.near", "b.near", OWN]
    tape.store.access_keys.put("a.near", KEY.packed, None)
    tape.store.access_keys.put(
        "b.near", KEY.packed, AccessKey(8, FunctionCallPermission(1, "dex.near"))
    )
    tape.add()
    index.catch_up()
    assert index.keys.accounts(KEY) == [OWN]
    assert index.keys.accounts(KEY, every_kind=True) == ["b.near", OWN]


# Genesis ------------------------------------------------------------------------------------


def test_other_records_at_genesis() -> None:
    """Records that only begin like those named after accounts name nobody."""
    tape = Tape()
    others = [
        (key, b"") for key in (b"a", b"audit", b"a\xff\xff", b"a\4\0\0\0abc", b"a\1\0\0\0\xff")
    ]
    deployed(tape, "ft.near", FungibleToken, [*FungibleToken.genesis("owner.near", {}), *others])
    assert read(tape).tokens.accounts("ft.near") == [("owner.near", Heights(None, None))]


# Events -------------------------------------------------------------------------------------


def test_token_events() -> None:
    """Mint, burn and transfer touch their parties, with the height of the block they ran in."""
    tape = Tape()
    index = read(tape)
    height = tape.add()
    tape.executed(
        "ft.near",
        event("ft_mint", {"owner_id": "a.near", "amount": "1"}),
        event("ft_transfer", {"old_owner_id": "b.near", "new_owner_id": "c.near", "amount": "1"}),
        event("ft_burn", {"owner_id": "d.near", "amount": "1"}, {"owner_id": "e.near"}),
    )
    index.catch_up()
    assert index.tokens.accounts("ft.near") == [
        (f"{name}.near", Heights(height, height)) for name in "abcde"
    ]
    assert index.collections.accounts("ft.near") == []


def test_malformed_events(subtests: pytest.Subtests) -> None:
    """A log that is no event of a known kind names nobody, and hides no other log."""
    cases = [
        "EVENT_JSON:",
        "EVENT_JSON:{",
        'EVENT_JSON:{"standard":"nep141","event":"ft_mint","data":{"owner_id":"a.near"}}',
        'EVENT_JSON:{"standard":"nep141","event":"ft_mint","data":["a.near"]}',
        'EVENT_JSON:{"standard":"nep141","event":"ft_mint","data":[{"owner_id":7}]}',
        'EVENT_JSON:{"standard":"nep141","event":"ft_mint","data":[{"owner_id":"A"}]}',
        'EVENT_JSON:{"standard":"nep141","event":"nft_mint","data":[{"owner_id":"a.near"}]}',
        'EVENT_JSON:{"standard":"nep245","event":"mt_mint","data":[{"owner_id":"a.near"}]}',
        'EVENT_JSON:{"standard":"nep141","event":"ft_mint"}',
        "EVENT_JSON:" + "[" * 100_000,
        'event {"standard":"nep141","event":"ft_mint","data":[{"owner_id":"a.near"}]}',
    ]
    for log in cases:
        with subtests.test(log=log):
            tape = Tape()
            index = read(tape)
            height = tape.add()
            tape.executed("ft.near", log, event("ft_mint", {"owner_id": "ok.near"}))
            index.catch_up()
            assert index.tokens.accounts("ft.near") == [("ok.near", Heights(height, height))]


def test_space_before_an_event() -> None:
    """An event may have spaces after the colon."""
    tape = Tape()
    index = read(tape)
    tape.add()
    tape.executed("ft.near", event("ft_mint", {"owner_id": "a.near"}).replace(":", ":  ", 1))
    index.catch_up()
    assert [name for name, _ in index.tokens.accounts("ft.near")] == ["a.near"]


def test_failed_receipts_count_for_nothing() -> None:
    """Neither the logs nor the calls of a receipt that failed are effects."""
    tape = Tape()
    deployed(tape, "a.pool.near", StakingPool)
    index = read(tape)
    tape.add()
    tape.executed("ft.near", event("ft_mint", {"owner_id": "a.near"}), fails=True)
    tape.executed("a.pool.near", calls=[("deposit", b"")], fails=True)
    index.catch_up()
    assert index.tokens.contracts("a.near") == index.pools.contracts("alice.near") == []


# Calls --------------------------------------------------------------------------------------


def test_pool_calls() -> None:
    """A call that delegates makes a row for the caller, on a contract that tells stakes only."""
    tape = Tape()
    deployed(tape, "a.pool.near", StakingPool)
    deployed(tape, "dex.near", Plain)
    index = read(tape)
    first = tape.add()
    tape.executed("a.pool.near", calls=[("deposit_and_stake", b"")])
    tape.executed("dex.near", calls=[("deposit", b"")])
    tape.executed("nothing.near", calls=[("deposit", b"")])
    tape.executed("a.pool.near", calls=[("ping", b"")], caller="bob.near")
    last = tape.add()
    tape.executed("a.pool.near", calls=[("unstake", b'{"amount":"1"}')])
    index.catch_up()
    assert index.pools.accounts("a.pool.near") == [("alice.near", Heights(first, last))]
    assert index.pools.contracts("alice.near") == [("a.pool.near", Heights(first, last))]


def test_silent_calls() -> None:
    """Wrapping and registering log no event, yet make rows: for the caller, or whom it names."""
    tape = Tape()
    deployed(tape, "wrap.near", Plain)
    index = read(tape)
    height = tape.add()
    tape.executed("wrap.near", calls=[("near_deposit", b"{}")], caller="a.near")
    tape.executed("wrap.near", calls=[("storage_deposit", b"")], caller="b.near")
    tape.executed(
        "wrap.near", calls=[("storage_deposit", b'{"account_id":"c.near"}')], caller="x.near"
    )
    tape.executed("social.near", calls=[("storage_deposit", b"{}")], caller="y.near")
    index.catch_up()
    assert index.tokens.accounts("wrap.near") == [
        (f"{name}.near", Heights(height, height)) for name in "abc"
    ]
    assert index.tokens.contracts("y.near") == []


# Following ----------------------------------------------------------------------------------


def test_blocks_are_read_once() -> None:
    """Nothing is read before it is asked for; then each block once, over skipped heights."""
    tape = Tape()
    index = read(tape)
    for skip in (0, 3):
        tape.add(skip=skip)
        tape.executed("ft.near", event("ft_mint", {"owner_id": "a.near"}))
    assert (index.block.height, index.tokens.contracts("a.near")) == (START, [])
    index.catch_up()
    assert index.block.height == START + 5
    assert index.tokens.contracts("a.near") == [("ft.near", Heights(START + 1, START + 5))]
    tape.done.clear()
    index.catch_up()
    assert index.tokens.contracts("a.near") == [("ft.near", Heights(START + 1, START + 5))]


def test_lag() -> None:
    """The index stays so many blocks behind the final one, and at genesis before there are any."""
    tape = Tape(indexer_lag=2)
    index = read(tape)
    tape.add()
    tape.executed("ft.near", event("ft_mint", {"owner_id": "a.near"}))
    for expected in (START, START, START + 1):
        index.catch_up()
        assert index.block.height == expected
        tape.add()
    assert index.tokens.contracts("a.near") == [("ft.near", Heights(START + 1, START + 1))]


# Balances -----------------------------------------------------------------------------------


def touched(tape: Tape, account_id: str, balance: bytes) -> int:
    """Make a block in which a token changes hands."""
    tape.store.data.put("ft.near", account_id.encode(), balance)
    height = tape.add()
    tape.balances.setdefault(("ft.near", account_id), {})[height] = balance
    tape.executed("ft.near", event("ft_mint", {"owner_id": account_id}))
    return height


NONSENSE = [b"", b"5", b'"-5"', b'"0x5"', b"null", b'"\xc2\xb2"', b'"' + b"9" * 5000 + b'"']


def test_broken_balances(subtests: pytest.Subtests) -> None:
    """Where the contract answers anything but digits, the balance is an empty text."""
    for answer in NONSENSE:
        with subtests.test(answer=answer):
            tape = Tape()
            index = read(tape)
            height = touched(tape, "a.near", answer)
            index.catch_up()
            assert index.tokens_of("a.near") == [("ft.near", "", height)]


def test_holders_order() -> None:
    """Holders stand by balance as numbers, equal ones by id, the unknown at the end."""
    tape = Tape()
    index = read(tape)
    answers = {
        "b.near": b'"9"',
        "a.near": b'"9"',
        "c.near": b'"10"',
        "d.near": b'"0"',
        "e.near": b"1",
    }
    for account_id, answer in answers.items():
        touched(tape, account_id, answer)
    index.catch_up()
    assert index.holders("ft.near") == [
        ("c.near", "10"),
        ("a.near", "9"),
        ("b.near", "9"),
        ("d.near", "0"),
        ("e.near", ""),
    ]
    assert index.holders("other.near") == []


def test_redeployed_global_contract() -> None:
    """When a global contract changes, all balances are asked again."""
    tape = Tape()
    balances = BalanceReader(cast("World", tape))
    tape.balances["ft.near", "a.near"] = {START: b'"5"', START + 1: b'"6"'}
    assert balances.get("a.near", "ft.near", tape.head) == "5"
    height = tape.add()
    assert balances.get("a.near", "ft.near", tape.head) == "5"
    balances.record_change(
        Change(("", None), "global_code", "author.near", b"", bytes(32)), height + 1
    )
    tape.balances["ft.near", "a.near"][height] = b'"6"'
    tape.add()
    assert balances.get("a.near", "ft.near", tape.head) == "6"
