"""Token contracts: answers, logs, promises and records of every method, by hand-computed values."""

import random
from typing import Any

import msgspec
import pytest

from ledgerkit.localnet import contract_sdk
from ledgerkit.localnet.contracts.fungible_token import FungibleMetadata, FungibleToken, WrappedNear
from ledgerkit.localnet.contracts.non_fungible_token import NonFungibleToken, TokenMetadata
from ledgerkit.localnet.contracts.token_receiver import TokenReceiver
from ledgerkit.localnet.execution_errors import PanicError
from ledgerkit.localnet.genesis import Genesis
from tests.unit.localnet.contracts import CALLER_KEY, CallResult, ContractChain, ContractHarness

NEAR = 10**24
TGAS = 10**12
BYTE = 10**19
REGISTRATION = 1_250_000_000_000_000_000_000
LONGEST = "a" * 64
GOLD = {"spec": "ft-1.0.0", "name": "Gold", "symbol": "AU", "decimals": 3}
PRINTS = {"spec": "nft-1.0.0", "name": "Prints", "symbol": "PRINT"}
NO_MEMBERS: dict[str, Any] = dict.fromkeys(TokenMetadata.__struct_fields__)


class TokenHarness(ContractHarness):
    """A token contract with much NEAR, whose calls burn a fixed amount of gas."""

    def __init__(self, kind: type[contract_sdk.Contract], *records: tuple[bytes, bytes]) -> None:
        gas = {"prepaid_gas": 100 * TGAS, "fixed_gas": 6 * TGAS}
        super().__init__(kind, "token.near", records, balance=10**28, **gas)


def event(standard: str, name: str, row: str) -> str:
    head = f'{{"standard":"{standard}","version":"1.0.0","event":"{name}"'
    return f'EVENT_JSON:{head},"data":[{row}]}}'


def panic(harness: TokenHarness, *positional: Any, **kwargs: Any) -> str:
    """Call a method that panics; return the message."""
    with pytest.raises(PanicError) as caught:
        harness.call(*positional, **kwargs)
    return caught.value.text


def token(supply: int = 1000) -> TokenHarness:
    """A token whose owner alice holds the supply; bob is registered."""
    harness = TokenHarness(FungibleToken)
    harness.call("new", owner_id="alice.near", total_supply=str(supply), metadata=GOLD)
    harness.call("storage_deposit", "bob.near", REGISTRATION)
    return harness


def collection(*token_ids: str) -> TokenHarness:
    harness = TokenHarness(NonFungibleToken)
    harness.call("new", owner_id="fay.near", metadata=PRINTS)
    for token_id in token_ids:
        mint(harness, token_id)
    return harness


def mint(
    harness: TokenHarness, token_id: str, receiver_id: str = "alice.near", **kwargs: Any
) -> CallResult:
    kwargs = {"metadata": {"title": f"No. {token_id}"}, "deposit": 10**23, **kwargs}
    return harness.call("nft_mint", token_id=token_id, receiver_id=receiver_id, **kwargs)


def ids(tokens: list[dict[str, Any]]) -> list[str]:
    return [row["token_id"] for row in tokens]


class TestBeginning:
    def test_new_mints_the_supply_to_its_owner(self) -> None:
        """A token begins with its supply in the owner's account, told as minted."""
        harness = TokenHarness(FungibleToken)
        done = harness.call("new", owner_id="alice.near", total_supply="1000", metadata=GOLD)
        row = '{"owner_id":"alice.near","amount":"1000","memo":"new tokens are minted"}'
        assert done.raw == b""
        assert done.logs == [event("nep141", "ft_mint", row)]
        assert harness.view("ft_balance_of", account_id="alice.near") == "1000"
        assert harness.view("ft_total_supply") == "1000"

    def test_metadata_has_all_members(self) -> None:
        """Members of the metadata that were not given are null."""
        absent = {"icon": None, "reference": None, "reference_hash": None}
        assert token().view("ft_metadata") == {**GOLD, **absent}

    @pytest.mark.parametrize(
        "arguments",
        [
            {"total_supply": "-1"},
            {"total_supply": 1000},
            {"total_supply": str(2**128)},
            {"owner_id": "Alice"},
            {"metadata": {"name": "Gold"}},
            {"metadata": {**GOLD, "decimals": 256}},
        ],
    )
    def test_arguments_are_read_strictly(self, arguments: dict[str, Any]) -> None:
        """An amount is a text of digits below 2^128, an id an id, decimals one byte."""
        good = {"owner_id": "alice.near", "total_supply": "1", "metadata": GOLD}
        message = panic(TokenHarness(FungibleToken), "new", **{**good, **arguments})
        assert message == "Failed to deserialize input from JSON."

    def test_supply_beyond_an_int64_survives(self) -> None:
        """The largest amount there is passes through the state unharmed."""
        most = 2**128 - 1
        harness = token(most)
        assert harness.view("ft_total_supply") == "340282366920938463463374607431768211455"
        assert panic(harness, "mint", account_id="bob.near", amount="1") == "Total supply overflow"


class TestRegistration:
    def test_the_longest_id_costs_125_bytes(self) -> None:
        """The record of a 64-letter id is exactly what registration charges for."""
        harness = token()
        before = harness.usage
        harness.call("storage_deposit", deposit=REGISTRATION, account_id=LONGEST)
        assert harness.usage - before == 125
        assert harness.view("storage_balance_bounds") == {
            "min": "1250000000000000000000",
            "max": "1250000000000000000000",
        }

    def test_deposit_registers_and_gives_change(self) -> None:
        """What is above the price goes back to the payer, not to the account registered."""
        harness = token()
        done = harness.call("storage_deposit", deposit=REGISTRATION + 7, account_id="carol.near")
        assert done.value == {"total": "1250000000000000000000", "available": "0"}
        assert done.payments == [("alice.near", 7)]
        assert harness.view("storage_balance_of", account_id="carol.near") == done.value
        assert harness.view("ft_balance_of", account_id="carol.near") == "0"

    def test_second_deposit_comes_back(self) -> None:
        """Registering twice costs nothing and says so."""
        done = token().call("storage_deposit", "bob.near", REGISTRATION, registration_only=True)
        assert done.logs == ["The account is already registered, refunding the deposit"]
        assert done.payments == [("bob.near", REGISTRATION)]

    def test_too_small_a_deposit(self) -> None:
        """One yoctoNEAR less than the price registers nobody."""
        harness = token()
        assert panic(harness, "storage_deposit", "carol.near", REGISTRATION - 1) == (
            "The attached deposit is less than the minimum storage balance"
        )
        assert harness.view("storage_balance_of", account_id="carol.near") is None

    def test_unregister_pays_back(self) -> None:
        """Closing an empty account pays its price and the one yoctoNEAR attached."""
        harness = token()
        done = harness.call("storage_unregister", "bob.near", 1)
        assert done.value is True
        assert done.payments == [("bob.near", REGISTRATION + 1)]
        assert done.logs == ["Closed @bob.near with 0"]
        assert harness.view("storage_balance_of", account_id="bob.near") is None

    def test_unregister_with_tokens_needs_force(self) -> None:
        """Tokens are given up only by force; then they leave the supply, without an event."""
        harness = token()
        assert panic(harness, "storage_unregister", deposit=1) == (
            "Can't unregister the account with the positive balance without force"
        )
        done = harness.call("storage_unregister", deposit=1, force=True)
        assert done.logs == ["Closed @alice.near with 1000"]
        assert harness.view("ft_total_supply") == "0"

    def test_unregister_a_stranger(self) -> None:
        """Whoever is not registered is told so, and gets nothing."""
        done = token().call("storage_unregister", "carol.near", 1)
        assert done.value is False
        assert done.logs == ["The account carol.near is not registered"]
        assert done.payments == []

    def test_withdraw_has_nothing_to_give(self) -> None:
        """Nothing above the price is ever kept, so none can be withdrawn."""
        harness = token()
        assert harness.call("storage_withdraw", deposit=1).value["available"] == "0"
        assert harness.call("storage_withdraw", deposit=1, amount="0").payments == []
        assert panic(harness, "storage_withdraw", deposit=1, amount="1") == (
            "The amount is greater than the available storage balance"
        )
        assert panic(harness, "storage_withdraw", "carol.near", 1) == (
            "The account carol.near is not registered"
        )


class TestTransfer:
    def test_moves_and_tells(self) -> None:
        """A transfer moves the amount and logs it, without a memo unless there is one."""
        harness = token()
        done = harness.call("ft_transfer", deposit=1, receiver_id="bob.near", amount="300")
        row = '{"old_owner_id":"alice.near","new_owner_id":"bob.near","amount":"300"}'
        assert done.raw == b""
        assert done.logs == [event("nep141", "ft_transfer", row)]
        kwargs = {"receiver_id": "alice.near", "amount": "1", "memo": 'for "it"'}
        logs = harness.call("ft_transfer", "bob.near", 1, **kwargs).logs
        row = '{"old_owner_id":"bob.near","new_owner_id":"alice.near","amount":"1",'
        assert logs == [event("nep141", "ft_transfer", row + '"memo":"for \\"it\\""}')]
        assert harness.view("ft_balance_of", account_id="alice.near") == "701"
        assert harness.view("ft_balance_of", account_id="bob.near") == "299"
        assert harness.view("ft_total_supply") == "1000"

    @pytest.mark.parametrize("method", ["ft_transfer", "ft_transfer_call"])
    @pytest.mark.parametrize(
        ("deposit", "receiver_id", "amount", "message"),
        [
            (0, "alice.near", "0", "Requires attached deposit of exactly 1 yoctoNEAR"),
            (2, "bob.near", "1", "Requires attached deposit of exactly 1 yoctoNEAR"),
            (1, "alice.near", "0", "Sender and receiver should be different"),
            (1, "carol.near", "0", "The amount should be a positive number"),
            (1, "carol.near", "1001", "The account doesn't have enough balance"),
            (1, "carol.near", "1", "The account carol.near is not registered"),
        ],
    )
    def test_order_of_checks(
        self, method: str, deposit: int, receiver_id: str, amount: str, message: str
    ) -> None:
        """Where several things are wrong the first of this order is reported, and nothing moves."""
        harness = token()
        before = harness.records()
        kwargs = {"receiver_id": receiver_id, "amount": amount}
        kwargs |= {"msg": ""} if method == "ft_transfer_call" else {}
        assert panic(harness, method, "alice.near", deposit, **kwargs) == message
        assert harness.records() == before

    def test_a_stranger_has_nothing_to_send(self) -> None:
        """A sender who is not registered is told so by name."""
        assert panic(
            token(), "ft_transfer", "carol.near", 1, receiver_id="bob.near", amount="1"
        ) == ("The account carol.near is not registered")

    def test_only_the_owner_mints(self) -> None:
        """New tokens come from the owner alone, into registered accounts alone."""
        harness = token()
        done = harness.call("mint", account_id="bob.near", amount="5")
        row = '{"owner_id":"bob.near","amount":"5"}'
        assert done.logs == [event("nep141", "ft_mint", row)]
        assert harness.view("ft_total_supply") == "1005"
        assert panic(harness, "mint", "bob.near", account_id="bob.near", amount="5") == (
            "Only alice.near can mint"
        )
        assert panic(harness, "mint", account_id="carol.near", amount="5") == (
            "The account carol.near is not registered"
        )


class TestTransferCall:
    def test_receipts(self) -> None:
        """
        The receiver's call gets all the gas but the callback's five Tgas.

        The receiver's gas is the network's own sum for 100 Tgas of which the call burns 6:
        100 T less 6 T, two receipts, two calls, one data dependency, and 5 T.
        """
        done = token().call(
            "ft_transfer_call", deposit=1, receiver_id="bob.near", amount="1000", msg="take"
        )
        receiver_args = b'{"sender_id":"alice.near","amount":"1000","msg":"take"}'
        moved = b'{"sender_id":"alice.near","receiver_id":"bob.near","amount":"1000"}'
        assert done.calls == [
            ("bob.near", "ft_on_transfer", receiver_args, 86_530_959_498_947, 0),
            ("token.near", "ft_resolve_transfer", moved, 5 * TGAS, 0),
        ]
        first, then = done.drafts
        assert first.output_data_receivers == [(then.input_data_ids[0], "token.near")]
        assert done.value.drafts == [then]
        row = '{"old_owner_id":"alice.near","new_owner_id":"bob.near","amount":"1000"}'
        assert done.logs == [event("nep141", "ft_transfer", row)]

    @pytest.mark.parametrize(
        ("result", "spent", "used"),
        [
            (b'"0"', 0, 1000),
            (b'"400"', 0, 600),
            (b'"1000"', 0, 0),
            (b'"5000"', 0, 0),
            (None, 0, 0),
            (b"", 0, 0),
            (b"400", 0, 0),
            (b'"-1"', 0, 0),
            (b'"' + b"9" * 39 + b'"', 0, 0),
            (b'"' + b"9" * 10_000 + b'"', 0, 0),
            (None, 700, 700),
            (None, 1000, 1000),
        ],
        ids=str,
    )
    def test_resolve(self, result: bytes | None, spent: int, used: int) -> None:
        """What is unused comes back as far as the receiver still has it; nonsense is all of it."""
        harness = token()
        kwargs = {"receiver_id": "bob.near", "amount": "1000"}
        harness.call("ft_transfer_call", deposit=1, msg="", **kwargs)
        if spent:
            harness.call("storage_deposit", "carol.near", REGISTRATION)
            away = {"receiver_id": "carol.near", "amount": str(spent)}
            harness.call("ft_transfer", "bob.near", 1, **away)
        done = self.resolve(harness, result)
        refund = 1000 - used
        row = f'{{"old_owner_id":"bob.near","new_owner_id":"alice.near","amount":"{refund}",'
        logs = [event("nep141", "ft_transfer", row + '"memo":"refund"}')] if refund else []
        assert (done.value, done.logs) == (str(used), logs)
        assert harness.view("ft_balance_of", account_id="alice.near") == str(refund)
        assert harness.view("ft_total_supply") == "1000"

    def test_resolve_without_a_sender(self) -> None:
        """What would go back to an account that was closed meanwhile is burnt."""
        harness = token()
        harness.call("ft_transfer", deposit=1, receiver_id="bob.near", amount="1000")
        harness.call("storage_unregister", deposit=1)
        done = self.resolve(harness, b'"400"')
        row = '{"owner_id":"bob.near","amount":"400","memo":"refund"}'
        assert done.logs == [
            "The account of the sender was deleted",
            event("nep141", "ft_burn", row),
        ]
        assert done.value == "1000"
        assert harness.view("ft_balance_of", account_id="bob.near") == "600"
        assert harness.view("ft_total_supply") == "600"

    @staticmethod
    def resolve(harness: TokenHarness, result: bytes | None) -> CallResult:
        """Resolve the transfer of 1000 from alice to bob."""
        kwargs = {"sender_id": "alice.near", "receiver_id": "bob.near", "amount": "1000"}
        return harness.call("ft_resolve_transfer", "token.near", results=(result,), **kwargs)


class TestWrapped:
    def test_first_deposit_pays_for_registration(self) -> None:
        """Of the first deposit the price of registration is kept, of the second nothing."""
        harness = self.wrapped()
        done = harness.call("near_deposit", deposit=REGISTRATION + 5)
        assert (done.raw, done.logs) == (b"", ["Deposit 5 NEAR to alice.near"])
        assert harness.call("near_deposit", deposit=7).logs == ["Deposit 7 NEAR to alice.near"]
        assert harness.view("ft_balance_of", account_id="alice.near") == "12"
        assert harness.view("ft_total_supply") == "12"
        assert harness.view("ft_metadata")["symbol"] == "wNEAR"

    def test_deposit_must_be_enough(self) -> None:
        """Nothing can't be wrapped, and a newcomer has to pay for registration."""
        harness = self.wrapped()
        assert panic(harness, "near_deposit") == "Requires positive attached deposit"
        assert panic(harness, "near_deposit", deposit=REGISTRATION - 1) == "ERR_DEPOSIT_TOO_SMALL"

    def test_withdraw_returns_the_payment(self) -> None:
        """The amount and the yoctoNEAR attached are paid, and the payment is the result."""
        harness = self.wrapped()
        harness.call("near_deposit", deposit=REGISTRATION + 12)
        done = harness.call("near_withdraw", deposit=1, amount="10")
        assert done.logs == ["Withdraw 10 NEAR from alice.near"]
        assert done.payments == [("alice.near", 11)]
        assert done.value.drafts == done.drafts
        assert harness.view("ft_total_supply") == "2"
        assert panic(harness, "near_withdraw", deposit=1, amount="3") == (
            "The account doesn't have enough balance"
        )
        assert panic(harness, "near_withdraw", amount="1") == (
            "Requires attached deposit of exactly 1 yoctoNEAR"
        )

    @staticmethod
    def wrapped() -> TokenHarness:
        harness = TokenHarness(WrappedNear)
        harness.call("new")
        return harness


class TestMinting:
    def test_token_is_answered_and_told(self) -> None:
        """A mint returns the token with every member of its metadata, and logs one event."""
        harness = collection()
        times = {"issued_at": 5, "expires_at": "soon"}
        metadata = {"title": "One", "copies": 1, **times}
        done = mint(harness, "1", "bob.near", metadata=metadata)
        row = '{"owner_id":"bob.near","token_ids":["1"]}'
        assert done.logs == [event("nep171", "nft_mint", row)]
        assert done.value == {
            "token_id": "1",
            "owner_id": "bob.near",
            "metadata": {**NO_MEMBERS, **metadata},
            "approved_account_ids": {},
        }
        assert harness.view("nft_token", token_id="1") == done.value
        assert harness.view("nft_token", token_id="2") is None

    def test_deposit_pays_for_the_bytes(self) -> None:
        """The price is the bytes written, times the price of a byte; the rest comes back."""
        harness = collection()
        before = harness.usage
        done = mint(harness, "1")
        paid = (harness.usage - before) * BYTE
        assert done.payments == [("alice.near", 10**23 - paid)]
        assert 10**21 < paid < 10**22

    def test_one_yocto_over_is_kept(self) -> None:
        """An excess of a single yoctoNEAR is not worth a receipt."""
        harness = collection()
        before = harness.usage
        mint(harness, "1")
        price = (harness.usage - before) * BYTE
        second = collection()
        assert panic(
            second, "nft_mint", deposit=0, token_id="1", receiver_id="alice.near", metadata={}
        ).startswith("Must attach ")
        text = {"title": "No. 1"}
        kwargs = {"token_id": "1", "receiver_id": "alice.near", "metadata": text}
        assert panic(second, "nft_mint", deposit=price - 1, **kwargs) == (
            f"Must attach {price} yoctoNEAR to cover storage"
        )
        assert second.call("nft_mint", deposit=price + 1, **kwargs).payments == []

    def test_what_is_refused(self) -> None:
        """An id is taken once, and a token needs metadata."""
        harness = collection("1")
        assert panic(harness, "nft_mint", token_id="1", receiver_id="bob.near", metadata={}) == (
            "token_id must be unique"
        )
        assert panic(harness, "nft_mint", token_id="2", receiver_id="bob.near") == (
            "Must provide metadata"
        )

    def test_a_collection_of_one_publisher(self) -> None:
        """Where only the owner mints nobody else does; otherwise anybody."""
        harness = TokenHarness(NonFungibleToken)
        harness.call("new", owner_id="fay.near", metadata=PRINTS, owner_only=True)
        kwargs = {"token_id": "1", "receiver_id": "bob.near", "metadata": {}}
        assert panic(harness, "nft_mint", deposit=10**23, **kwargs) == "Unauthorized"
        assert (
            harness.call("nft_mint", "fay.near", 10**23, **kwargs).value["owner_id"] == "bob.near"
        )

    def test_metadata_of_the_collection(self) -> None:
        """Members of the collection's metadata that were not given are null."""
        absent = dict.fromkeys(("icon", "base_uri", "reference", "reference_hash"))
        assert collection().view("nft_metadata") == {**PRINTS, **absent}


class TestGiving:
    def test_transfer(self) -> None:
        """A token changes hands, and its approvals are gone."""
        harness = collection("1")
        harness.call("nft_approve", deposit=10**21, token_id="1", account_id="bob.near")
        kwargs = {"receiver_id": "carol.near", "token_id": "1"}
        done = harness.call("nft_transfer", deposit=1, memo="hi", **kwargs)
        row = '{"old_owner_id":"alice.near","new_owner_id":"carol.near","token_ids":["1"],'
        assert done.logs == [event("nep171", "nft_transfer", row + '"memo":"hi"}')]
        assert harness.view("nft_token", token_id="1")["owner_id"] == "carol.near"
        assert harness.view("nft_token", token_id="1")["approved_account_ids"] == {}

    def test_by_approval(self) -> None:
        """Who is approved may give a token on, and the event names them."""
        harness = collection("1")
        harness.call("nft_approve", deposit=10**21, token_id="1", account_id="bob.near")
        kwargs = {"receiver_id": "carol.near", "token_id": "1"}
        assert panic(harness, "nft_transfer", "bob.near", 1, approval_id=2, **kwargs) == (
            "The actual approval_id Some(1) is different from the given approval_id Some(2)"
        )
        done = harness.call("nft_transfer", "bob.near", 1, approval_id=1, **kwargs)
        row = '{"old_owner_id":"alice.near","new_owner_id":"carol.near","token_ids":["1"],'
        log = event("nep171", "nft_transfer", row + '"authorized_id":"bob.near"}')
        assert done.logs == [log]

    @pytest.mark.parametrize(
        ("caller", "deposit", "kwargs", "message"),
        [
            ("bob.near", 0, {}, "Requires attached deposit of exactly 1 yoctoNEAR"),
            ("bob.near", 1, {"token_id": "2"}, "Token not found"),
            ("bob.near", 1, {}, "Sender not approved"),
            ("alice.near", 1, {}, "Current and next owner must differ"),
        ],
    )
    def test_what_is_refused(
        self, caller: str, deposit: int, kwargs: dict[str, str], message: str
    ) -> None:
        """A token is given by its owner or an approved account, to somebody else."""
        kwargs = {"token_id": "1", "receiver_id": "alice.near", **kwargs}
        assert panic(collection("1"), "nft_transfer", caller, deposit, **kwargs) == message

    def test_transfer_call(self) -> None:
        """The receiver is told and the collection waits for its answer, with the old approvals."""
        harness = collection("1")
        harness.call("nft_approve", deposit=10**21, token_id="1", account_id="bob.near")
        kwargs = {"receiver_id": "shop.near", "token_id": "1", "msg": "sell"}
        done = harness.call("nft_transfer_call", "bob.near", 1, **kwargs)
        args_start = b'{"sender_id":"bob.near","previous_owner_id":"alice.near","token_id":"1",'
        moved = b'{"previous_owner_id":"alice.near","receiver_id":"shop.near","token_id":"1",'
        gas = done.calls[0][3]
        assert done.calls == [
            ("shop.near", "nft_on_transfer", args_start + b'"msg":"sell"}', gas, 0),
            (
                "token.near",
                "nft_resolve_transfer",
                moved + b'"approved_account_ids":{"bob.near":1}}',
                5 * TGAS,
                0,
            ),
        ]
        assert 80 * TGAS < gas < 90 * TGAS
        assert done.value.drafts == [done.drafts[1]]
        assert harness.view("nft_token", token_id="1")["owner_id"] == "shop.near"

    @pytest.mark.parametrize(
        ("result", "is_kept"),
        [(b"false", True), (b"true", False), (None, False), (b'"false"', False), (b"", False)],
        ids=str,
    )
    def test_resolve(self, result: bytes | None, is_kept: bool) -> None:  # noqa: FBT001 - a table
        """Only a clear false keeps the token; else it goes back with its approvals."""
        harness = self.sent()
        done = self.resolve(harness, result)
        row = '{"old_owner_id":"shop.near","new_owner_id":"alice.near","token_ids":["1"]}'
        assert done.value is is_kept
        assert done.logs == ([] if is_kept else [event("nep171", "nft_transfer", row)])
        nft = harness.view("nft_token", token_id="1")
        assert nft["owner_id"] == ("shop.near" if is_kept else "alice.near")
        assert nft["approved_account_ids"] == ({} if is_kept else {"bob.near": 1})

    def test_resolve_pays_for_the_receivers_approvals(self) -> None:
        """Approvals the receiver gave meanwhile go, and it is paid for their bytes."""
        harness = self.sent()
        harness.call("nft_approve", "shop.near", 10**21, token_id="1", account_id="eve.near")
        done = self.resolve(harness, None)
        assert done.payments == [("shop.near", 20 * BYTE)]  # 8 letters and 12
        nft = harness.view("nft_token", token_id="1")
        assert nft["approved_account_ids"] == {"bob.near": 1}

    def test_resolve_too_late(self) -> None:
        """What the receiver has given on can't be taken back."""
        harness = self.sent()
        harness.call("nft_transfer", "shop.near", 1, token_id="1", receiver_id="eve.near")
        assert self.resolve(harness, b"true").value is True
        assert harness.view("nft_token", token_id="1")["owner_id"] == "eve.near"

    @staticmethod
    def sent() -> TokenHarness:
        """Alice has sent a token, for which bob was approved, to a shop."""
        harness = collection("1")
        harness.call("nft_approve", deposit=10**21, token_id="1", account_id="bob.near")
        kwargs = {"receiver_id": "shop.near", "token_id": "1", "msg": ""}
        harness.call("nft_transfer_call", deposit=1, **kwargs)
        return harness

    @staticmethod
    def resolve(harness: TokenHarness, result: bytes | None) -> CallResult:
        return harness.call(
            "nft_resolve_transfer",
            "token.near",
            results=(result,),
            previous_owner_id="alice.near",
            receiver_id="shop.near",
            token_id="1",
            approved_account_ids={"bob.near": 1},
        )


class TestApprovals:
    def test_approve(self) -> None:
        """An approval costs its bytes once and gets a new number each time."""
        harness = collection("1")
        kwargs = {"token_id": "1", "account_id": "bob.near"}
        first = harness.call("nft_approve", deposit=20 * BYTE + 2, **kwargs)
        assert (first.value, first.payments) == (None, [("alice.near", 2)])
        again = harness.call("nft_approve", deposit=1, **kwargs)
        assert again.payments == []
        approved = harness.view("nft_token", token_id="1")["approved_account_ids"]
        assert approved == {"bob.near": 2}

    def test_approvals_are_paid_for(self) -> None:
        """What an approval adds to the record never exceeds what it costs."""
        harness = collection("1")
        for count, account_id in enumerate(("bob.near", LONGEST, "eve.near"), 1):
            before = harness.usage
            kwargs = {"token_id": "1", "account_id": account_id}
            harness.call("nft_approve", deposit=10**21, **kwargs)
            assert harness.usage - before <= len(account_id) + 12, count

    def test_approve_with_a_message(self) -> None:
        """With a message the approved account is called, and its answer is the result."""
        harness = collection("1")
        kwargs = {"token_id": "1", "account_id": "shop.near", "msg": "go"}
        done = harness.call("nft_approve", deposit=10**21, **kwargs)
        args = b'{"token_id":"1","owner_id":"alice.near","approval_id":1,"msg":"go"}'
        assert [call[:3] for call in done.calls] == [("shop.near", "nft_on_approve", args)]
        assert done.value.drafts == [done.drafts[1]]

    @pytest.mark.parametrize(
        ("caller", "deposit", "token_id", "message"),
        [
            ("bob.near", 0, "2", "Requires attached deposit of at least 1 yoctoNEAR"),
            ("bob.near", 1, "2", "Token not found"),
            ("bob.near", 1, "1", "Predecessor must be token owner."),
            ("alice.near", 1, "1", f"Must attach {20 * BYTE} yoctoNEAR to cover storage"),
        ],
    )
    def test_what_is_refused(self, caller: str, deposit: int, token_id: str, message: str) -> None:
        """Only the owner approves, and pays for it."""
        kwargs = {"token_id": token_id, "account_id": "bob.near"}
        assert panic(collection("1"), "nft_approve", caller, deposit, **kwargs) == message

    def test_revoke(self) -> None:
        """What is revoked is paid back; what was never approved is not."""
        harness = collection("1")
        for account_id in ("bob.near", "eve.near", "shop.near"):
            kwargs = {"token_id": "1", "account_id": account_id}
            harness.call("nft_approve", deposit=10**21, **kwargs)
        one = harness.call("nft_revoke", deposit=1, token_id="1", account_id="bob.near")
        assert one.payments == [("alice.near", 20 * BYTE)]
        none = harness.call("nft_revoke", deposit=1, token_id="1", account_id="bob.near")
        assert none.payments == []
        revoked = harness.call("nft_revoke_all", deposit=1, token_id="1")
        assert revoked.payments == [("alice.near", 41 * BYTE)]
        assert harness.view("nft_token", token_id="1")["approved_account_ids"] == {}
        assert panic(harness, "nft_revoke_all", "bob.near", 1, token_id="1") == (
            "Predecessor must be token owner."
        )

    @pytest.mark.parametrize(
        ("account_id", "approval_id", "expected"),
        [
            ("bob.near", None, True),
            ("bob.near", 1, True),
            ("bob.near", 2, False),
            ("eve.near", None, False),
            ("alice.near", None, False),
        ],
    )
    def test_is_approved(self, account_id: str, approval_id: int | None, expected: Any) -> None:
        """An approval holds for its account, and for its number if one is named."""
        harness = collection("1")
        harness.call("nft_approve", deposit=10**21, token_id="1", account_id="bob.near")
        kwargs = {"token_id": "1", "approved_account_id": account_id, "approval_id": approval_id}
        assert harness.view("nft_is_approved", **kwargs) is expected


class TestLists:
    def test_pages(self) -> None:
        """Tokens are listed in the order of minting, by pages; the index is a text."""
        harness = collection("b", "a", "c")
        assert ids(harness.view("nft_tokens")) == ["b", "a", "c"]
        assert ids(harness.view("nft_tokens", from_index="1", limit=1)) == ["a"]
        assert ids(harness.view("nft_tokens", from_index="2", limit=9)) == ["c"]
        assert harness.view("nft_tokens", from_index="3") == []
        assert harness.view("nft_total_supply") == "3"

    def test_of_an_owner(self) -> None:
        """An owner's tokens are listed by pages too; who has none has an empty list."""
        harness = collection("b", "a", "c")
        of_alice = {"account_id": "alice.near"}
        assert ids(harness.view("nft_tokens_for_owner", **of_alice)) == ["b", "a", "c"]
        page = harness.view("nft_tokens_for_owner", **of_alice, from_index="1", limit=1)
        assert ids(page) == ["a"]
        assert harness.view("nft_supply_for_owner", **of_alice) == "3"
        of_bob = {"account_id": "bob.near", "from_index": "9"}
        assert harness.view("nft_tokens_for_owner", **of_bob) == []
        assert harness.view("nft_supply_for_owner", account_id="bob.near") == "0"

    @pytest.mark.parametrize(
        ("method", "kwargs", "message"),
        [
            ("nft_tokens", {"from_index": "4"}, "Out of bounds, please use a smaller from_index."),
            ("nft_tokens", {"limit": 0}, "Cannot provide limit of 0."),
            (
                "nft_tokens_for_owner",
                {"from_index": "3"},
                "Out of bounds, please use a smaller from_index.",
            ),
            ("nft_tokens_for_owner", {"limit": 0}, "Cannot provide limit of 0."),
            ("nft_tokens", {"from_index": 1}, "Failed to deserialize input from JSON."),
        ],
    )
    def test_what_is_refused(self, method: str, kwargs: dict[str, Any], message: str) -> None:
        """A page begins inside the list and has a length."""
        owner = {"account_id": "alice.near"} if method == "nft_tokens_for_owner" else {}
        with pytest.raises(PanicError) as caught:
            collection("1", "2", "3").view(method, **owner, **kwargs)
        assert caught.value.text == message

    def test_lists_follow_every_transfer(self) -> None:
        """After many transfers each owner's list has exactly their tokens, and none is lost."""
        chance, people = random.Random(7), ["alice.near", "bob.near", "carol.near"]  # noqa: S311 - no secret
        names = [str(number) for number in range(12)]
        harness, owners = collection(*names), dict.fromkeys(names, "alice.near")
        for _ in range(200):
            name = chance.choice(names)
            receiver_id = chance.choice([one for one in people if one != owners[name]])
            kwargs = {"token_id": name, "receiver_id": receiver_id}
            harness.call("nft_transfer", owners[name], 1, **kwargs)
            owners[name] = receiver_id
        for one in people:
            listed = ids(harness.view("nft_tokens_for_owner", account_id=one))
            assert sorted(listed) == sorted(name for name in names if owners[name] == one)
        back = [key for key in harness.records() if key.startswith(b"o")]
        assert len(back) == 12


class TestGenesis:
    def test_fungible(self) -> None:
        """The records written at genesis are those that calls leave."""
        harness = TokenHarness(FungibleToken)
        harness.call("new", owner_id="fay.near", total_supply="0", metadata=GOLD)
        for account_id, amount in (("alice.near", 5), ("bob.near", 2**90)):
            harness.call("storage_deposit", account_id, REGISTRATION)
            harness.call("mint", "fay.near", account_id=account_id, amount=str(amount))
        harness.call("storage_deposit", "carol.near", REGISTRATION)
        holders = {"alice.near": 5, "bob.near": 2**90, "carol.near": 0}
        written = FungibleToken.genesis(
            "fay.near", holders, msgspec.convert(GOLD, FungibleMetadata)
        )
        assert dict(written) == harness.records()

    def test_wrapped(self) -> None:
        """The records of a wrapped token are those that deposits leave."""
        harness = TokenHarness(WrappedNear)
        harness.call("new")
        harness.call("near_deposit", "alice.near", REGISTRATION + 5)
        harness.call("near_deposit", "bob.near", REGISTRATION)
        assert dict(WrappedNear.genesis({"alice.near": 5, "bob.near": 0})) == harness.records()

    def test_nonfungible(self) -> None:
        """The records of a collection are those that mints leave, and calls go on from them."""
        members = {"title": "One", "extra": '{"a":1}'}
        harness = TokenHarness(NonFungibleToken)
        harness.call("new_default_meta", owner_id="fay.near")
        for token_id, owner_id in (("1", "alice.near"), ("2", "bob.near"), ("3", "alice.near")):
            mint(harness, token_id, owner_id, metadata=members)
        metadata = msgspec.convert(members, TokenMetadata)
        tokens = [("1", "alice.near"), ("2", "bob.near"), ("3", "alice.near")]
        written = NonFungibleToken.genesis("fay.near", [(*one, metadata) for one in tokens])
        again = TokenHarness(NonFungibleToken, *written)
        assert again.records() == harness.records()
        again.call("nft_transfer", deposit=1, token_id="1", receiver_id="bob.near")
        assert ids(again.view("nft_tokens_for_owner", account_id="bob.near")) == ["2", "1"]


class TokenChain(ContractChain):
    """A chain with alice as caller; no call changes the total supply, except by burnt gas."""

    def __init__(self) -> None:
        genesis = Genesis()
        genesis.account("alice.near", 1000 * NEAR, keys=[CALLER_KEY.public_key])
        receivers: dict[str, Any] = {
            "keep.near": {},
            "half.near": {"unused": 400},
            "no.near": {"panics": "no"},
        }
        for name, behaviour in receivers.items():
            records = TokenReceiver.genesis(**behaviour)
            genesis.account(name, NEAR, contract=TokenReceiver, records=records)
        gold = FungibleToken.genesis(
            "alice.near", {"alice.near": 9000, **dict.fromkeys(receivers, 0)}
        )
        genesis.account("token.near", NEAR, contract=FungibleToken, records=gold)
        genesis.account("wrap.near", NEAR, contract=WrappedNear, records=WrappedNear.genesis({}))
        prints = NonFungibleToken.genesis("alice.near", [])
        genesis.account("art.near", NEAR, contract=NonFungibleToken, records=prints)
        super().__init__(genesis)

    def call(self, contract_id: str, method: str, deposit=0, /, **arguments) -> tuple[Any, Any]:
        """Call a method and settle; return the result and all logs."""
        outcomes = self.run(contract_id, method, deposit=deposit, **arguments)
        return self.result(outcomes[0]), [log for each in outcomes for log in each.logs]


class TestOnAChain:
    @pytest.mark.parametrize(
        ("receiver_id", "used"), [("keep.near", 1000), ("half.near", 600), ("no.near", 0)]
    )
    def test_transfer_call(self, receiver_id: str, used: int) -> None:
        """The result of the whole is what was used, and a receiver that fails gets nothing."""
        chain = TokenChain()
        kwargs = {"receiver_id": receiver_id, "amount": "1000", "msg": "take"}
        value, logs = chain.call("token.near", "ft_transfer_call", 1, **kwargs)
        assert value == str(used)
        assert len(logs) == (1 if used == 1000 else 2)
        assert chain.view("token.near", "ft_balance_of", account_id=receiver_id) == str(used)
        balance = chain.view("token.near", "ft_balance_of", account_id="alice.near")
        assert balance == str(9000 - used)

    def test_registration_is_money(self) -> None:
        """Registering and closing moves exactly what it says, beside fees."""
        chain = TokenChain()
        value, _ = chain.call("token.near", "storage_deposit", NEAR, account_id="zoe.near")
        assert value == {"total": str(REGISTRATION), "available": "0"}
        assert chain.call("token.near", "storage_unregister", 1, force=True)[0] is True
        assert chain.view("token.near", "ft_total_supply") == "0"
        failed = chain.call("token.near", "ft_transfer", 1, receiver_id="zoe.near", amount="1")[0]
        message = "Smart contract panicked: The account alice.near is not registered"
        assert failed == message

    def test_wrapping_and_unwrapping(self) -> None:
        """What is wrapped can be unwrapped, and the result is the payment's."""
        chain = TokenChain()
        assert chain.call("wrap.near", "near_deposit", NEAR) == (
            None,
            ["Deposit 998750000000000000000000 NEAR to alice.near"],
        )
        before = chain.world.balance("alice.near") or 0
        amount = 998750000000000000000000
        value, logs = chain.call("wrap.near", "near_withdraw", 1, amount=str(amount))
        assert value is None
        assert logs == [f"Withdraw {amount} NEAR from alice.near"]
        fees_paid = before + amount - (chain.world.balance("alice.near") or 0)
        assert 0 < fees_paid < NEAR // 100
        assert chain.view("wrap.near", "ft_total_supply") == "0"

    def test_a_token_that_goes_and_one_that_comes_back(self) -> None:
        """A receiver keeps a token, or it returns with its approvals."""
        chain = TokenChain()
        for token_id in ("1", "2"):
            kwargs = {"token_id": token_id, "receiver_id": "alice.near", "metadata": {"title": "x"}}
            assert chain.call("art.near", "nft_mint", NEAR, **kwargs)[0]["owner_id"] == "alice.near"
        kwargs = {"token_id": "2", "account_id": "bob.near"}
        assert chain.call("art.near", "nft_approve", NEAR, **kwargs)[0] is None
        sent = {"token_id": "1", "receiver_id": "keep.near", "msg": ""}
        assert chain.call("art.near", "nft_transfer_call", 1, **sent)[0] is True
        sent = {"token_id": "2", "receiver_id": "no.near", "msg": ""}
        assert chain.call("art.near", "nft_transfer_call", 1, **sent)[0] is False
        approved = chain.view("art.near", "nft_token", token_id="2")["approved_account_ids"]
        assert approved == {"bob.near": 1}
        owned = chain.view("art.near", "nft_tokens_for_owner", account_id="keep.near")
        assert ids(owned) == ["1"]
