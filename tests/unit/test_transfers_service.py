"""The Transfers API of the embedded ledger, against recorded rows and the real one's source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from ledgerkit.localnet.contract_sdk import Contract, call, to_json, view
from ledgerkit.localnet.contracts.fungible_token import WrappedNear
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.http_messages import HttpRequest
from ledgerkit.protocol import FunctionCall, Transfer
from ledgerkit.units import U128_MAX
from tests.unit.localnet.clocks import answer
from tests.unit.localnet.ledger import START, TGAS, Ledger, N, public

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

RECORDED = Path(__file__).parents[3] / "shared" / "wire" / "history" / "transfers"
JSON = {"content-type": "application/json"}
INDEX_STEP = 10_000  # TRANSFER_MULTIPLIER of fastnear/transfers-indexer, src/types.rs

# The example of fastnear/transfers-api, static/skill.md: a row of 2026-04.
MINTED: dict[str, Any] = {
    "account_id": "root.near",
    "action_index": None,
    "amount": "5000000",
    "asset_id": "nep245:intents.near:nep141:aleo-usdcx.omft.near",
    "asset_type": "Mt",
    "block_height": "193835648",
    "block_timestamp": "1776091720676341497",
    "end_of_block_balance": "5000000",
    "human_amount": 5.0,
    "log_index": 0,
    "method_name": "ft_on_transfer",
    "other_account_id": None,
    "predecessor_id": "aleo-usdcx.omft.near",
    "receipt_account_id": "intents.near",
    "receipt_id": "6eoQ8fdNzRAJLzzrwuVvWMpYajfZNpm8usnkKd77wb2L",
    "signer_id": "bridge-mng.near",
    "start_of_block_balance": "0",
    "transaction_id": "8qN5FKndxkKhc8VwF1QoJT3eawUokZaWJKzVpfoXzr9L",
    "transfer_index": 290000,
    "transfer_type": "MtTransfer",
    "usd_amount": 4.998825,
}
# What depends on the block, the transaction and the market.
ELSEWHERE = {
    "block_height",
    "block_timestamp",
    "receipt_id",
    "transaction_id",
    "transfer_index",
    "usd_amount",
}


class Teller(Contract):
    """A contract that logs what it is told to, under the names that the indexer knows."""

    @call(payable=True)
    def ft_on_transfer(self, logs: list, balance: str = "0") -> str:
        return self._tell(logs, balance)

    @call(payable=True)
    def ft_transfer(
        self, logs: list, balance: str = "0", receiver_id: str = "", amount: str = ""
    ) -> str:
        del receiver_id, amount
        return self._tell(logs, balance)

    @call(payable=True)
    def add_proposal(self) -> None:
        """Take a deposit."""

    @call
    def ft_resolve_transfer(
        self, logs: list, sender_id: str = "", receiver_id: str = "", amount: str = ""
    ) -> str:
        """Return that 60 were used."""
        del logs, sender_id, receiver_id, amount
        return "60"

    @call
    def fail(self, logs: list) -> None:
        self._tell(logs, "0")
        self.vm.panic("no")

    @view
    def ft_balance_of(self, account_id: str) -> str:
        del account_id
        return (self.vm.storage_read(b"balance") or b"0").decode()

    @view
    def mt_balance_of(self, account_id: str, token_id: str) -> str:
        del token_id
        return self.ft_balance_of(account_id)

    @view
    def ft_metadata(self) -> dict:
        """Return the metadata, with 6 decimals, or 24 for the token of NEAR Mobile."""
        return {"decimals": 24 if self.vm.current_account_id.startswith("npro") else 6}

    def _tell(self, logs: list, balance: str) -> str:
        for line in logs:
            self.vm.log(line)
        self.vm.storage_write(b"balance", balance.encode())
        return "0"


def event(standard: str, name: str, *data: Any) -> str:
    """Write an event's log line (NEP-297)."""
    members = {"standard": standard, "version": "1.0.0", "event": name, "data": data}
    return "EVENT_JSON:" + json.dumps(members)


def tell(method: str, *logs: str, deposit: int = 0, **args: str) -> FunctionCall:
    """Call a `Teller`."""
    return FunctionCall(method, to_json({"logs": logs, **args}), 50 * TGAS, deposit)


def chain(*names: str, tellers: tuple[str, ...] = (), **settings: Any) -> Any:
    """Open a small chain, on which some accounts run a `Teller`."""
    genesis = Genesis()
    for name in tellers:
        genesis.account(name, 1000 * N, keys=[public(name)], contract=Teller)
    return Ledger(*names, genesis=genesis, **settings)


def ask(world: World, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Send a request to a world's gateway; return the status and the body."""
    response = answer(world, HttpRequest(method, path, "", JSON, body))
    return response.status, response.body


def page(world: World, account_id: str, **query: Any) -> Any:
    body = json.dumps({"account_id": account_id, **query}).encode()
    status, content = ask(world, "POST", "/transfers/v0/transfers", body)
    assert status == 200, content
    return json.loads(content)


def rows(world: World, account_id: str, **query: Any) -> list[Any]:
    listed: list[Any] = page(world, account_id, **query)["transfers"]
    return listed


def recorded(name: str) -> Any:
    """Read a recorded row; skip where the recordings are not here."""
    if not RECORDED.is_dir():
        pytest.skip("the recorded rows are not here")
    return json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))


def equal_but(row: dict[str, Any], expected: dict[str, Any], *others: str) -> None:
    """Compare two rows, but for the members that depend on their block."""
    skipped = ELSEWHERE | set(others)
    common = {name: value for name, value in expected.items() if name not in skipped}
    assert {name: row[name] for name in common} == common


# Recorded rows -----------------------------------------------------------------------------


def test_the_published_row_of_a_multi_token() -> None:
    """A mint of NEP-245 is a row as the service's own example shows it, with all members."""
    bridge, intents = "aleo-usdcx.omft.near", "intents.near"
    ledger = chain("root.near", tellers=(bridge, intents))
    minted = {
        "owner_id": "root.near",
        "token_ids": ["nep141:aleo-usdcx.omft.near"],
        "amounts": ["5000000"],
    }
    logs = event("nep245", "mt_mint", minted)
    ledger.run(bridge, intents, tell("ft_on_transfer", logs, balance="5000000"))
    [row] = rows(ledger.world, "root.near")
    assert set(row) == set(MINTED)
    equal_but(row, MINTED, "signer_id")
    assert row["transfer_index"] % INDEX_STEP == MINTED["transfer_index"] % INDEX_STEP == 0
    assert row["usd_amount"] is None


def test_the_recorded_row_of_a_token() -> None:
    """An event of NEP-141 has the amount, the float and both balances of the recorded row."""
    expected = recorded("v2026-06_row_ft_petersalomonsen")
    sender, contract = expected["predecessor_id"], expected["receipt_account_id"]
    receiver, amount = expected["account_id"], expected["amount"]
    ledger = chain(receiver, sender, tellers=(contract,))
    moved = {"old_owner_id": sender, "new_owner_id": receiver, "amount": amount}
    logs = event("nep141", "ft_transfer", moved)
    arguments = {"balance": amount, "receiver_id": receiver, "amount": amount}
    ledger.run(sender, contract, tell("ft_transfer", logs, deposit=1, **arguments))
    [row] = rows(ledger.world, receiver)
    # The recording has an action_index beside its log_index, which the indexer's source never has.
    equal_but(row, expected, "signer_id", "action_index", "human_amount")
    # The recorded float is the next smaller one: it is not exact, whoever computes it.
    assert row["human_amount"] == pytest.approx(expected["human_amount"], rel=3e-16)
    [sent] = [each for each in rows(ledger.world, sender) if each["asset_type"] == "Ft"]
    assert (sent["amount"], sent["human_amount"]) == (f"-{amount}", -row["human_amount"])
    assert sent["other_account_id"] == receiver


def test_the_recorded_rows_of_near() -> None:
    """A deposit and a transfer have the kind, sign and rounded float of the recorded rows."""
    received, sent = recorded("v2026-01_shitzu_dao_two_rows")["transfers"]
    dao, other = received["account_id"], received["other_account_id"]
    ledger = chain(other, tellers=(dao,))
    deposit = int(received["amount"])
    ledger.run(other, dao, FunctionCall("add_proposal", b"{}", 50 * TGAS, deposit))
    ledger.run(dao, other, Transfer(-int(sent["amount"])))
    listed = [row for row in rows(ledger.world, dao) if row["other_account_id"] != "system"]
    balances = ("start_of_block_balance", "end_of_block_balance")
    assert len(listed) == 2
    equal_but(listed[0], received, *balances)
    equal_but(listed[1], sent, *balances, "signer_id")
    # The deposit arrives in the block of the row, with the contract's share of the burnt gas.
    assert grown(listed[0]) > deposit
    # The transfer's own left in an earlier block: the recorded row shows no change either.
    assert grown(listed[1]) == grown(sent) == 0


def grown(row: dict[str, Any]) -> int:
    """Return the change of the balance in the block of a row."""
    return int(row["end_of_block_balance"]) - int(row["start_of_block_balance"])


# What becomes a row: fastnear/transfers-indexer, src/block_indexer.rs -----------------------


def test_indices_count_logs_and_actions() -> None:
    """An index is 10,000 times the log's or action's number, with the offset of its kind."""
    ledger = chain("ann.near", "ben.near", tellers=("t.near",))
    moved = {"old_owner_id": "ann.near", "new_owner_id": "ben.near", "amount": "3"}
    burnt = {"owner_id": "ann.near", "amount": "7"}
    logs = ("hello", event("nep141", "ft_transfer", moved, {"bad": 1}, moved))
    actions = (
        Transfer(5),
        tell("ft_on_transfer", *logs, deposit=2),
        tell("ft_on_transfer", event("nep141", "ft_burn", burnt), deposit=1),
    )
    ledger.run("ann.near", "t.near", *actions)
    listed = [row for row in rows(ledger.world, "ann.near") if row["predecessor_id"] != "system"]
    seen = [(r["transfer_index"], r["log_index"], r["action_index"], r["amount"]) for r in listed]
    # Three logs come before the actions; a malformed item of an event uses up its index, and a
    # deposit of 1 yoctoNEAR is no transfer.
    assert seen == [
        (1 * INDEX_STEP, 1, None, "-3"),
        (1 * INDEX_STEP + 2, 1, None, "-3"),
        (2 * INDEX_STEP, 2, None, "-7"),
        (3 * INDEX_STEP + 9_999, None, 0, "-5"),
        (4 * INDEX_STEP + 9_998, None, 1, "-2"),
    ]
    assert [row["transfer_type"] for row in listed[3:]] == ["NativeTransfer", "AttachedDeposit"]
    assert listed[2]["other_account_id"] is None
    assert {row["method_name"] for row in listed[:3]} == {"ft_on_transfer"}


def test_failed_receipts_have_no_rows() -> None:
    """A failed receipt moves nothing; its refund of the deposit comes from system."""
    ledger = chain("ann.near", tellers=("t.near",))
    minted = event("nep141", "ft_mint", {"owner_id": "ann.near", "amount": "7"})
    call_ = FunctionCall("fail", to_json({"logs": [minted]}), 50 * TGAS, 0)
    ledger.run("ann.near", "t.near", Transfer(5 * N), call_)
    listed = rows(ledger.world, "ann.near")
    assert {row["other_account_id"] for row in listed} == {"system"}
    assert str(5 * N) in {row["amount"] for row in listed}
    assert rows(ledger.world, "t.near") == []


def test_a_call_that_logs_its_transfer_counts_once() -> None:
    """ft_transfer without an event is a row by its arguments, and with one no second row."""
    ledger = chain("ann.near", "ben.near", tellers=("t.near",))
    args = {"receiver_id": "ben.near", "amount": "3"}
    moved = {"old_owner_id": "ann.near", "new_owner_id": "ben.near", "amount": "3"}
    ledger.run("ann.near", "t.near", tell("ft_transfer", deposit=1, **args))
    logs = event("nep141", "ft_transfer", moved)
    ledger.run("ann.near", "t.near", tell("ft_transfer", logs, deposit=1, **args))
    silent, logged = rows(ledger.world, "ben.near")
    for row in (silent, logged):
        assert (row["amount"], row["other_account_id"]) == ("3", "ann.near")
        assert (row["transfer_type"], row["method_name"]) == ("FtTransfer", "ft_transfer")
    assert (silent["log_index"], silent["action_index"]) == (None, 0)
    assert (logged["log_index"], logged["action_index"]) == (0, None)


def test_a_transfer_to_oneself_is_one_positive_row() -> None:
    """Sender and receiver being the same account, only the receiver's row is written."""
    # Source: fastnear/transfers-indexer, process_transfer_row: `row.sender_id != row.receiver_id`.
    ledger = chain("ann.near")
    ledger.run("ann.near", "ann.near", Transfer(5))
    [row] = [r for r in rows(ledger.world, "ann.near") if r["predecessor_id"] == "ann.near"]
    assert (row["amount"], row["other_account_id"]) == ("5", "ann.near")


def test_amounts_are_cut_to_int128() -> None:
    """Amounts from 2^127 on come as 2^127 - 1, while the float is of the whole amount."""
    # Source: process_transfer_row: `row.amount.min(i128::MAX as u128) as i128`.
    ledger = chain("ann.near", tellers=("t.near",))
    data = {"owner_id": "ann.near", "amount": str(U128_MAX)}
    logs = (event("nep141", "ft_mint", data), event("nep141", "ft_burn", data))
    ledger.run("ann.near", "t.near", tell("ft_on_transfer", *logs))
    minted, burnt = rows(ledger.world, "ann.near")[:2]
    assert (minted["amount"], burnt["amount"]) == (str(2**127 - 1), str(1 - 2**127))
    assert minted["human_amount"] == float(U128_MAX) / 1e6


def test_wrapped_near_needs_no_event() -> None:
    """near_deposit and near_withdraw of wrap.near are rows: the contract logs no event."""
    genesis = Genesis()
    records = WrappedNear.genesis({"ann.near": 5 * N})
    genesis.account("wrap.near", 100 * N, contract=WrappedNear, records=records)
    ledger = Ledger("ann.near", genesis=genesis)
    wrap = FunctionCall("near_deposit", b"{}", 50 * TGAS, 2 * N)
    unwrap = FunctionCall("near_withdraw", to_json({"amount": str(N)}), 50 * TGAS, 1)
    ledger.run("ann.near", "wrap.near", wrap)
    ledger.run("ann.near", "wrap.near", unwrap)
    listed = rows(ledger.world, "ann.near", asset_id="nep141:wrap.near")
    seen = [(r["transfer_type"], r["method_name"], r["amount"], grown(r)) for r in listed]
    assert seen == [
        ("WrappedNear", "near_deposit", str(2 * N), 2 * N),
        ("WrappedNear", "near_withdraw", str(-N), -N),
    ]
    assert [row["other_account_id"] for row in listed] == [None, None]


def test_the_rest_that_a_receiver_did_not_use() -> None:
    """ft_resolve_transfer without an event returns the amount less what it says was used."""
    ledger = chain("ann.near", "ben.near", tellers=("t.near",))
    for amount in ("100", "60"):  # the contract returns that 60 were used
        args = {"sender_id": "ann.near", "receiver_id": "ben.near", "amount": amount}
        call_ = FunctionCall("ft_resolve_transfer", to_json({"logs": [], **args}), 50 * TGAS, 0)
        ledger.run("ann.near", "t.near", call_)
    [row] = rows(ledger.world, "ann.near", asset_id="nep141:t.near")
    assert (row["amount"], row["other_account_id"]) == ("40", "ben.near")
    assert (row["transfer_type"], row["method_name"]) == ("FtTransfer", "ft_resolve_transfer")


# Requests: fastnear/transfers-api, src/api.rs and src/click.rs -------------------------------


def test_filters() -> None:
    """Filters are on sign, size, asset and the other account, which null never passes."""
    ledger = chain("ann.near", "ben.near", tellers=("t.near",))
    ledger.run("ann.near", "ben.near", Transfer(3 * N))
    ledger.run("ben.near", "ann.near", Transfer(N))
    minted = event("nep141", "ft_mint", {"owner_id": "ann.near", "amount": "7"})
    ledger.run("ben.near", "t.near", tell("ft_on_transfer", minted))
    world = ledger.world

    def amounts(**query: Any) -> list[str]:
        listed = rows(world, "ann.near", **query)
        return [r["amount"] for r in listed if r["other_account_id"] != "system"]

    assert amounts() == [str(-3 * N), str(N), "7"]
    assert amounts(desc=True) == ["7", str(N), str(-3 * N)]
    assert amounts(direction="sender") == [str(-3 * N)]
    assert amounts(direction="receiver") == [str(N), "7"]
    assert amounts(asset_id="nep141:t.near") == ["7"]
    assert amounts(min_amount=str(2 * N)) == [str(-3 * N)]
    assert amounts(min_human_amount=0.5) == [str(-3 * N), str(N)]
    assert amounts(min_usd_amount=0) == []
    # `other_account_id != 'system'` is not true of null: mints are hidden too.
    assert amounts(ignore_system=True) == [str(-3 * N), str(N)]
    refunds = [r for r in rows(world, "ann.near") if r["other_account_id"] == "system"]
    assert refunds
    assert all(r["method_name"] is None for r in refunds)


def test_times_include_the_first_and_not_the_last() -> None:
    """from_timestamp_ms is inclusive, to_timestamp_ms exclusive."""
    ledger = chain("ann.near", "ben.near")
    ledger.run("ann.near", "ben.near", Transfer(1))
    [row] = rows(ledger.world, "ben.near")
    at_ms = int(row["block_timestamp"]) // 10**6
    assert rows(ledger.world, "ben.near", from_timestamp_ms=at_ms, to_timestamp_ms=at_ms + 1)
    assert not rows(ledger.world, "ben.near", to_timestamp_ms=at_ms)
    assert not rows(ledger.world, "ben.near", from_timestamp_ms=at_ms + 1)


def test_a_full_page_has_a_token_even_at_the_end() -> None:
    """The token is the time and index of the last row; what follows a full page may be empty."""
    ledger = chain("ann.near", "ben.near")
    ledger.run("ann.near", "ben.near", Transfer(1), Transfer(2), Transfer(3))
    world = ledger.world
    assert page(world, "ben.near")["resume_token"] is None
    first = page(world, "ben.near", limit=3)
    last = first["transfers"][-1]
    token = int(last["block_timestamp"]) << 32 | last["transfer_index"]
    assert first["resume_token"] == str(token)
    assert len(rows(world, "ben.near", limit=0)) == 1
    assert len(rows(world, "ben.near", limit=1000)) == 3


def test_a_token_repeats_or_loses_rows_of_its_block(subtests: pytest.Subtests) -> None:
    """A token's time is a float of seconds: rows of its block are repeated, lost, or neither."""
    for nanoseconds in range(0, 600, 37):
        with subtests.test(nanoseconds=nanoseconds):
            # Source: src/click.rs: `timestamp_ns as f64 / 1e9`, compared with a DateTime64(9).
            time_ns = 1_785_542_400 * 10**9 + nanoseconds
            ledger = chain("ann.near", "ben.near", genesis_time_ns=time_ns)
            ledger.run("ann.near", "ben.near", Transfer(1), Transfer(2), Transfer(3))
            first = page(ledger.world, "ben.near", limit=2)
            second = page(ledger.world, "ben.near", limit=5, resume_token=first["resume_token"])
            block_ns = int(first["transfers"][0]["block_timestamp"])
            numerator, denominator = (float(block_ns) / 1e9).as_integer_ratio()
            difference = block_ns * denominator - numerator * 10**9
            amounts = [row["amount"] for row in second["transfers"]]
            if difference > 0:
                assert amounts == ["1", "2", "3"]
            elif difference < 0:
                assert amounts == []
            else:
                assert amounts == ["3"]


def test_a_client_reads_each_transfer_once() -> None:
    """The client's pages overlap, so that no row of a block at a border is lost or repeated."""
    ledger = chain("ann.near", "ben.near", genesis_time_ns=1_785_542_400 * 10**9 + 123)
    for first in range(0, 260, 13):  # 100 rows end within a block
        ledger.run("ann.near", "ben.near", *(Transfer(1 + first + at) for at in range(13)))
    with lk.connect(world=ledger.world, make_default=False) as client:
        listed = lk.transfers_of("ben.near", ledger=client)
    assert listed["change"].tolist() == list(range(1, 261))


def test_a_balance_that_was_discarded_is_null() -> None:
    """Where the state of a block is gone, its balances are null; the amount is known."""
    ledger = chain("ann.near", "ben.near", archival=False, epoch_length=10, epochs_kept=1)
    ledger.run("ann.near", "ben.near", Transfer(5))
    [row] = rows(ledger.world, "ben.near")
    assert grown(row) == 5
    ledger.world.advance(60)
    [row] = rows(ledger.world, "ben.near")
    assert row["amount"] == "5"
    assert row["start_of_block_balance"] is row["end_of_block_balance"] is None


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[",
        b'{"account_id":"A!"}',
        b'{"account_id":"a.near","limit":-1}',
        b'{"account_id":"a.near","resume_token":"x"}',
        b'{"account_id":"a.near","direction":"both"}',
    ],
)
def test_malformed_requests(body: bytes) -> None:
    """What serde refuses has status 400, as plain text of the framework."""
    status, content = ask(chain().world, "POST", "/transfers/v0/transfers", body)
    assert status == 400
    assert content.startswith(b"Json deserialize error: ")


def test_there_is_one_path() -> None:
    """Any other path is not found, and members that the service does not know are ignored."""
    world = chain("ann.near").world
    assert ask(world, "POST", "/transfers/v0/other", b"{}")[0] == 404
    assert page(world, "ann.near", unknown=1) == {"transfers": [], "resume_token": None}
    assert world.chain.head.height == START
