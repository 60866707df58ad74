"""Balances, fungible tokens and their metadata, read by view calls at one block."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.localnet import Contract, World, call, open_world, view
from tests.command_line import main
from tests.loopback import Reply, asking
from tests.surface.test_history import counted
from tests.surface.test_verbs import HOSTILE, Fake, as_bytes, fake_hash, full_view, rows

pytestmark = pytest.mark.usefixtures("no_session_left")

NEAR = 10**24
U128_MAX = 2**128 - 1
UNTYPED: Any = lk  # as whoever calls it without a type checker
SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "wire" / "samples" / "rpc"


class Odd(Contract):
    """A token whose balances are the JSON that `ODD` has for the account."""

    @view
    def ft_balance_of(self, account_id: str) -> bytes:
        return ODD[account_id]


class Late(Contract):
    """A token of which everybody has 77."""

    @view
    def ft_balance_of(self, account_id: str) -> str:  # noqa: ARG002 - the standard's argument
        return "77"

    @call
    def mint(self, account_id: str) -> None:
        """Log the event by which an indexer lists the token."""
        self.event("nep141", "1.0.0", "ft_mint", [{"owner_id": account_id, "amount": "77"}])


ODD = {
    "zero.near": b'"0"',
    "most.near": json.dumps(str(U128_MAX)).encode(),
    "number.near": str(U128_MAX).encode(),
    "large.near": json.dumps(str(2**128)).encode(),
    "minus.near": b'"-1"',
    "point.near": b'"1.5"',
    "float.near": b"1e24",
    "empty.near": b'""',
    "null.near": b"null",
    "list.near": b'["1"]',
    "nothing.near": b"",
    "bytes.near": b"\xff\xfe",
    "digits.near": b'"\xd9\xa3"',  # a digit of another script
}
AMOUNTS = {"zero.near": 0, "most.near": U128_MAX, "number.near": U128_MAX}
NO_AMOUNTS = sorted(ODD.keys() - AMOUNTS.keys())


def odd_world() -> World:
    """Open the demo world with the contract `Odd`, and connect to it."""
    world = open_world("demo")
    lk.connect(world=world)
    world.deploy("odd.near", Odd)
    world.advance(3)
    return world


def transfer(world: World, sender_id: str, receiver_id: str, amount: int) -> int:
    """Send GOLD; return the height from which on the receiver has it."""
    lk.use_signer(sender_id, world.keys()[sender_id])
    args = {"receiver_id": receiver_id, "amount": str(amount)}
    lk.call("gold.near", "ft_transfer", args, deposit="1 yoctoNEAR", wait_until="FINAL")
    return world.chain.final.height


def world_balance(world: World, contract_id: str, account_id: str, height: int) -> int:
    """Ask the token behind the client's back."""
    args = json.dumps({"account_id": account_id}).encode()
    block = world.chain.by_height(height)
    assert block is not None
    return int(json.loads(world.view(contract_id, "ft_balance_of", args, block).result))


def hash_at(world: World, height: int) -> str:
    block = world.chain.by_height(height)
    assert block is not None
    return str(block.hash)


def recorded(name: str) -> bytes:
    if not SAMPLES.is_dir():
        pytest.skip("the recordings are not here")
    return (SAMPLES / name).read_bytes()


# One balance ------------------------------------------------------------------------------


def test_a_balance_of_near_is_the_unlocked_one() -> None:
    """It is `amount` of the node, without the stake that is locked; it changes with a transfer."""
    world = open_world("demo")
    ledger = lk.connect(world=world)
    state = ledger.rpc(
        "query", {"request_type": "view_account", "finality": "final", "account_id": "bob.near"}
    )
    before = world.chain.final.height
    balance = lk.balance("bob.near")
    assert type(balance) is int
    assert balance == lk.balance("bob.near", "near") == int(state["amount"])
    lk.use_signer("alice.near", world.keys()["alice.near"])
    lk.transfer("bob.near", "7 yoctoNEAR", wait_until="FINAL")
    assert lk.balance("bob.near", "NEAR") == balance + 7
    assert lk.balance("bob.near", at=before) == balance
    assert lk.balance("bob.near", at=hash_at(world, before)) == balance


def test_a_balance_of_a_token() -> None:
    """The contract tells it at any block; the asset is named by its contract, or as transfers."""
    world = open_world("demo")
    lk.connect(world=world)
    before = world.chain.final.height
    after = transfer(world, "alice.near", "bob.near", 1234)
    for asset in ("gold.near", "nep141:gold.near"):
        past, now = (lk.balance("alice.near", asset, at=at) for at in (before, after))
        assert past == world_balance(world, "gold.near", "alice.near", before)
        assert now == lk.balance("alice.near", asset) == past - 1234


def test_a_balance_costs_one_request() -> None:
    """The recorded answers of nodes are read exactly: an amount as text, and one as a number."""
    answers = {
        "view_account": recorded("query_view_account.json"),
        "call_function": recorded("query_call_function_number.json"),
    }
    with asking(lambda *sent: Reply(200, answers[asked(sent)["request_type"]])) as server:
        assert lk.balance("example.testnet") == 399992611103597728750000000
        assert lk.balance("example.testnet", "token.testnet") == 0
        state, token = (one["params"] for one in server.calls)
    assert state == {
        "request_type": "view_account",
        "account_id": "example.testnet",
        "finality": "final",
    }
    assert token == {
        "request_type": "call_function",
        "account_id": "token.testnet",
        "method_name": "ft_balance_of",
        "args_base64": base64.b64encode(b'{"account_id":"example.testnet"}').decode(),
        "finality": "final",
    }


def asked(sent: tuple[Any, ...]) -> dict[str, Any]:
    params: dict[str, Any] = json.loads(sent[3])["params"]
    return params


@pytest.mark.parametrize(("account_id", "balance"), AMOUNTS.items())
def test_a_balance_is_exact(account_id: str, balance: int) -> None:
    """Every amount of 128 bits is read with all its digits, as a text and as a number."""
    odd_world()
    assert lk.balance(account_id, "odd.near") == balance


@pytest.mark.parametrize("account_id", NO_AMOUNTS)
def test_what_is_no_amount_is_no_balance(account_id: str) -> None:
    """Anything else that a contract returns is an error that names the account and contract."""
    odd_world()
    with pytest.raises(errors.DecodeError) as caught:
        lk.balance(account_id, "odd.near")
    assert f"the balance of {account_id} in odd.near" in str(caught.value)


NO_BALANCES = {  # of alice.near in the demo world, by contract
    "torn.near": errors.ContractPanicError,
    "counter.near": errors.ContractMethodNotFoundError,
    "dave.near": errors.NoContractCodeError,
    "nowhere.near": errors.UnknownAccountError,
}


@pytest.mark.filterwarnings("ignore:the embedded ledger has no account nowhere.near")
@pytest.mark.parametrize(("contract_id", "error"), NO_BALANCES.items())
def test_a_contract_without_balances_is_an_error(contract_id: str, error: Any) -> None:
    """What can't be read is never 0; the error names the account and the contract."""
    lk.connect("local")
    with pytest.raises(error) as caught:
        lk.balance("alice.near", contract_id)
    assert f"the balance of alice.near in {contract_id}" in str(caught.value)


def test_an_account_that_does_not_exist_has_no_near() -> None:
    """There is an error, also before the account was created; tokens only know their holders."""
    lk.connect("local")
    with pytest.raises(errors.UnknownAccountError):
        lk.balance("nina.near", at="genesis")
    assert lk.balance("nina.near") == 2 * NEAR
    assert lk.balance("nina.near", "gold.near", at="genesis") == 0


@pytest.mark.parametrize("asset", ["Near", "GOLD", "", "nep141:", "nep245:a.near:1", None, 7, b"a"])
def test_what_is_no_asset(asset: object) -> None:
    """Symbols name many tokens, so that only NEAR and contracts are assets; nothing is sent."""
    lk.connect("local")
    with pytest.raises(errors.InvalidRequestError) as caught:
        UNTYPED.balance("alice.near", asset)
    assert caught.value.field == "asset"
    assert "expected NEAR, or the contract id of a fungible token" in str(caught.value)


# Tokens by their contracts ------------------------------------------------------------------


def test_chosen_tokens_of_several_accounts_at_a_past_block() -> None:
    """Each account has a row per contract with what the contract said then, 0 or not."""
    world = open_world("demo")
    lk.connect(world=world)
    before = world.chain.final.height
    after = transfer(world, "alice.near", "bob.near", 1234)
    account_ids, contracts = ["bob.near", "alice.near", "frank.near"], ["gold.near", "moon.near"]
    frames = {at: lk.ft(account_ids, contracts=contracts, at=at) for at in (before, after)}
    for at, frame in frames.items():
        assert rows(frame, "account_id", "contract_id", "balance", "status") == [
            (account_id, contract_id, world_balance(world, contract_id, account_id, at), "ok")
            for account_id in account_ids
            for contract_id in contracts
        ]
        assert frame.attrs["block_height"] == at
        assert frame.attrs["block_hash"] == hash_at(world, at)
        assert frame.attrs["source"] == "view call ft_balance_of"
        assert frame["last_update_block_height"].isna().all()
        assert frame.dtypes.equals(lk.ft("alice.near").dtypes)
    difference = frames[after]["balance"] - frames[before]["balance"]
    assert difference.tolist() == [1234, 0, -1234, 0, 0, 0]
    past = lk.history(
        "alice.near", before, before, every=1, views="ft", contracts=contracts, progress=False
    )
    listed = frames[before].query("account_id == 'alice.near'")["balance"]
    assert past["balance"].tolist() == listed.tolist()
    one = lk.ft("alice.near", contracts="gold.near")
    assert one["balance"].tolist() == [lk.balance("alice.near", "gold.near", at=after)]


def test_all_balances_are_read_at_one_block() -> None:
    """A finality or a time is resolved once; each contract is asked at that block's hash."""
    world = open_world("demo")
    way = counted(world)
    for at in (None, "optimistic", "2026-08-01T00:00:20", 180000020):
        way.asked.clear()
        frame = lk.ft(
            ["alice.near", "bob.near"], contracts=["gold.near", "wrap.near"], at=at, progress=False
        )
        places = [one["params"]["block_id"] for one in way.asked if one["method"] == "query"]
        assert places == [frame.attrs["block_hash"]] * 4
        assert way.methods.keys() == {"query", "block"}


def test_without_contracts_a_past_block_has_the_tokens_that_are_listed_today() -> None:
    """A listed contract that is broken, or was not there yet, has a status, and never 0."""
    world = open_world("demo")
    lk.connect(world=world)
    before = world.chain.final.height
    world.deploy("late.near", Late)
    lk.use_signer("alice.near", world.keys()["alice.near"])
    lk.call("late.near", "mint", {"account_id": "alice.near"}, wait_until="FINAL")
    world.advance(2)
    after = world.chain.final.height
    listed = lk.ft("alice.near")["contract_id"].tolist()
    assert "late.near" in listed
    expected: dict[str, tuple[Any, str]] = {
        contract_id: (world_balance(world, contract_id, "alice.near", before), "ok")
        for contract_id in listed
        if contract_id not in ("late.near", "torn.near")
    }
    assert (0, "ok") in expected.values()
    expected |= {"torn.near": (None, "broken"), "late.near": (None, "no_contract")}
    past = lk.ft("alice.near", at=before, metadata=True, progress=False)
    assert rows(past, "account_id", "contract_id", "balance", "status") == [
        ("alice.near", contract_id, *expected[contract_id]) for contract_id in listed
    ]
    assert past.attrs["source"] == "GET /v1/account/{account_id}/ft; view call ft_balance_of"
    assert past.attrs["block_height"] == before
    assert dict(rows(past, "contract_id", "amount"))["gold.near"] == expected["gold.near"][0] / 1e6
    assert past.dtypes.equals(lk.ft("alice.near", metadata=True).dtypes)
    now = lk.ft("alice.near", at=after).set_index("contract_id")["balance"]
    assert now["late.near"] == 77


@pytest.mark.filterwarnings("ignore:the embedded ledger")
@pytest.mark.parametrize(("contract_id", "error"), NO_BALANCES.items())
def test_a_chosen_contract_without_balances_fails(contract_id: str, error: Any) -> None:
    """The error or the collected failure names account and contract; the others are rows."""
    lk.connect("local")
    contracts = ["gold.near", contract_id]
    with pytest.raises(error) as caught:
        lk.ft("alice.near", contracts=contracts, progress=False)
    assert f"the balance of alice.near in {contract_id}" in str(caught.value)
    frame, failed = lk.ft("alice.near", contracts=contracts, on_error="collect", progress=False)
    assert rows(frame, "contract_id", "balance") == [
        ("gold.near", lk.balance("alice.near", "gold.near"))
    ]
    assert rows(failed, "subject", "error") == [(f"alice.near in {contract_id}", error.__name__)]
    assert failed["message"].tolist() == [str(caught.value)]


def test_only_amounts_are_balances() -> None:
    """Whatever a contract returns, there are exact amounts and failures, and no 0 in between."""
    odd_world()
    frame, failed = lk.ft(list(ODD), contracts="odd.near", on_error="collect", progress=False)
    assert dict(rows(frame, "account_id", "balance")) == AMOUNTS
    assert set(frame["status"]) == {"ok"}
    assert sorted(failed["subject"]) == [f"{account_id} in odd.near" for account_id in NO_AMOUNTS]
    assert set(failed["error"]) == {"DecodeError"}


def test_a_host_that_does_not_answer_for_one_contract() -> None:
    """It is a failure of this contract that can be repeated, not a balance."""
    fake = Fake(views={("t.near", "ft_balance_of"): as_bytes("5")})
    fake.views["u.near", "ft_balance_of"] = Reply(503)
    with asking(fake):
        frame, failed = lk.ft(
            "a.near", contracts=["t.near", "u.near"], on_error="collect", progress=False
        )
        with pytest.raises(errors.TransportError):
            lk.ft("a.near", contracts="u.near")
        with pytest.raises(errors.UnknownBlockError):
            lk.ft("a.near", contracts="t.near", at=104, on_error="collect")
    assert rows(frame, "contract_id", "balance") == [("t.near", 5)]
    assert rows(failed, "subject", "error", "retryable") == [
        ("a.near in u.near", "TransportError", True)
    ]


def test_an_account_of_zeros_is_looked_up() -> None:
    """Contracts say 0 for a misspelt id: a warning names those that the indexer does not know."""
    fake = Fake(rest={"/v1/account/b.near/full": full_view("b.near")})
    fake.rest["/v1/account/c.near/full"] = {"account_id": "c.near", "state": None}
    fake.views["t.near", "ft_balance_of"] = lambda args: as_bytes(
        "9" if args["account_id"] == "a.near" else "0"
    )
    with asking(fake) as server:
        with pytest.warns(UserWarning, match="does not know c.near") as caught:
            frame = lk.ft(["a.near", "b.near", "c.near"], contracts="t.near", progress=False)
        paths = [path for path in server.paths if path.startswith("/v1")]
    assert len(caught) == 1
    assert sorted(paths) == ["/v1/account/b.near/full", "/v1/account/c.near/full"]
    assert frame["balance"].tolist() == [9, 0, 0]


def test_no_contracts_are_no_rows() -> None:
    """An empty list of contracts asks for none, and is not the list of the indexer."""
    lk.connect("local")
    for account_ids, contracts in (("alice.near", []), ([], "gold.near")):
        frame = lk.ft(account_ids, contracts=contracts, metadata=True)
        assert len(frame) == 0
        assert frame.dtypes.equals(lk.ft("alice.near", metadata=True).dtypes)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"contracts": "GOLD"}, "contracts"),
        ({"contracts": ["gold.near", None]}, "contracts"),
        ({"contracts": 7}, "contracts"),
        ({"at": "tomorrow"}, "at"),
        ({"at": "180000010", "contracts": "gold.near"}, "at"),
    ],
)
def test_malformed_arguments_send_nothing(options: dict[str, Any], field: str) -> None:
    """They are refused by their names."""
    with asking(Fake()) as server:
        with pytest.raises(errors.InvalidRequestError) as caught:
            UNTYPED.ft("alice.near", **options)
        assert server.requests == []
    assert caught.value.field == field


def test_the_command_ft_reads_contracts_and_past_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    """Its options are those of the verb; a contract without balances is a message and a code."""
    words = ["ft", "alice.near", "bob.near", "--contract", "gold.near", "--network", "local"]
    assert main([*words, "--at", "180000010", "--columns", "account_id,balance", "--csv"]) == 0
    lk.connect("local")
    past = lk.ft(["alice.near", "bob.near"], contracts="gold.near", at=180000010)
    lines = [
        f"{account_id},{balance}" for account_id, balance in rows(past, "account_id", "balance")
    ]
    assert capsys.readouterr().out.splitlines() == ["account_id,balance", *lines]
    assert main([*words[:2], "--contract", "torn.near", "--network", "local"]) != 0
    assert "alice.near in torn.near: The contract panicked" in capsys.readouterr().err


def test_a_state_that_the_host_has_dropped_names_the_way_out() -> None:
    """A past block of a host that keeps few says which address to pass, for each verb."""
    world = open_world("empty", archival=False, epoch_length=20, epochs_kept=2)
    world.advance(200)
    lk.connect(world=world)
    at = str(world.chain.genesis.hash)
    for read in (
        lambda: lk.balance("near", at=at),
        lambda: lk.balance("near", "near.near", at=at),
        lambda: lk.ft("near", contracts="near.near", at=at),
        lambda: lk.token_metadata("near.near", at=at),
    ):
        with pytest.raises(errors.GarbageCollectedBlockError) as caught:
            read()
        assert "archival_rpc_url=" in caught.value.remedy


# Metadata of tokens -------------------------------------------------------------------------


def test_metadata_as_a_node_sends_it() -> None:
    """A recorded answer of a node is read into the columns that NEP-148 names."""
    answer = recorded("query_call_function_ft_metadata.json")
    with asking(lambda *_: Reply(200, answer)) as server:
        frame = lk.token_metadata("token.testnet")
        assert server.calls[0]["params"] == {
            "request_type": "call_function",
            "account_id": "token.testnet",
            "method_name": "ft_metadata",
            "args_base64": "e30=",
            "finality": "final",
        }
    assert frame.to_dict("records") == [
        {
            "contract_id": "token.testnet",
            "spec": "ft-1.0.0",
            "name": "Example Token Name",
            "symbol": "MOCHI",
            "decimals": 24,
            "icon": pytest.approx(float("nan"), nan_ok=True),
            "reference": pytest.approx(float("nan"), nan_ok=True),
            "reference_hash": pytest.approx(float("nan"), nan_ok=True),
            "status": "ok",
        }
    ]
    assert frame.columns.tolist() == lk.schema("token_metadata")["name"].tolist()
    assert frame.attrs["source"] == "view call ft_metadata"


# The example of NEP-148, near/NEPs, neps/nep-0148.md.
WBTC = {
    "spec": "ft-1.0.0",
    "name": "Wrapped Bitcoin",
    "symbol": "WBTC",
    "icon": "data:image/svg+xml,%3C…",
    "reference": "https://example.com/wbtc.json",
    "reference_hash": "AK3YRHqKhCJNmKfV6SrutnlWW/icN5J8NUPtKsNXR1M=",
    "decimals": 8,
}


def test_each_member_of_the_standard_is_a_column() -> None:
    """The standard's own example is read whole; a member that it does not have is no column."""
    fake = Fake(views={("wbtc.near", "ft_metadata"): as_bytes(WBTC | {"owner": "a.near"})})
    with asking(fake):
        frame = lk.token_metadata(["wbtc.near"])
    assert frame.to_dict("records") == [{"contract_id": "wbtc.near", **WBTC, "status": "ok"}]


def test_hostile_metadata_is_one_row() -> None:
    """Texts are cut and escaped as in `ft`; what is not usable is missing, with a status."""
    fake = Fake()
    for contract_id, (value, *_) in HOSTILE.items():
        answer = value if isinstance(value, bytes) else as_bytes(value)
        fake.views[contract_id, "ft_metadata"] = answer
    odd = {"spec": 7, "name": "N" * 100, "symbol": "ODD", "decimals": 1, "icon": 5,
           "reference": {"a": [1]}, "reference_hash": "\u202ex\n"}  # fmt: skip
    fake.views["odd.near", "ft_metadata"] = as_bytes(odd)
    contract_ids = [*HOSTILE, "gone.near", "odd.near"]
    with asking(fake):
        frame = lk.token_metadata(contract_ids, progress=False)
    expected = [(name, *values) for name, (_, *values) in HOSTILE.items()]
    expected += [("gone.near", "missing", None, None), ("odd.near", "ok", "ODD", 1)]
    assert rows(frame, "contract_id", "status", "symbol", "decimals") == expected
    members = ("spec", "name", "icon", "reference", "reference_hash")
    assert rows(frame.tail(1), *members) == [
        (None, "N" * 64, "5", '{"a":[1]}', "\u202ex\n")  # the last three unchanged, or as JSON
    ]
    icons = dict(rows(frame, "contract_id", "icon"))
    assert icons["icon.near"] == HOSTILE["icon.near"][0]["icon"]


def test_metadata_of_the_past_and_of_today() -> None:
    """With `at` it is read at one block; without, each contract is asked once a session."""
    names = {100: "OLD", 140: "NEW"}

    def answer(params: dict[str, Any]) -> Any:
        hashes = {fake_hash(height): height for height in names}
        height = hashes[params["block_id"]] if "block_id" in params else 140
        value = {"symbol": names[height], "decimals": height}
        return {"result": list(as_bytes(value)), "logs": [], "block_height": height,
                "block_hash": fake_hash(height)}  # fmt: skip

    with asking(Fake(methods={"query": answer})) as server:
        past = lk.token_metadata(["t.near", "u.near"], at=100, progress=False)
        places = [one["params"].get("block_id") for one in server.calls]
        now = lk.token_metadata("t.near")
        sent = len(server.calls)
        again = lk.token_metadata("t.near")
        assert len(server.calls) == sent
    assert places == [100, fake_hash(100), fake_hash(100)]
    assert rows(past, "symbol", "decimals") == [("OLD", 100)] * 2
    assert past.attrs["block_height"] == 100
    assert past.attrs["block_hash"] == fake_hash(100)
    assert rows(now, "symbol", "decimals") == rows(again, "symbol", "decimals") == [("NEW", 140)]


def test_a_token_that_could_not_be_asked_is_a_failure() -> None:
    """It is no row, since it is not known whether there is metadata."""
    fake = Fake(
        views={("t.near", "ft_metadata"): as_bytes(WBTC), ("u.near", "ft_metadata"): Reply(503)}
    )
    with asking(fake):
        frame, failed = lk.token_metadata(["t.near", "u.near"], on_error="collect", progress=False)
        with pytest.raises(errors.TransportError):
            lk.token_metadata("u.near")
        none = lk.token_metadata([])
    assert rows(frame, "contract_id", "symbol") == [("t.near", "WBTC")]
    assert rows(failed, "subject", "error") == [("u.near", "TransportError")]
    assert len(none) == 0
    assert none.dtypes.equals(frame.dtypes)
