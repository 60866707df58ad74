"""Every error variant of the chain has a class, a sentence with its values and a remedy."""

import re
from typing import Any

import near_jsonrpc_models as published
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit import errors, units
from ledgerkit.api import chain_errors
from tests.strict_errors import resolve, schema_of

KEY = "ed25519:HbcF7MfbaLv6EViPkS3pDELF5cfHDKV73JJR6TdYC5BV"
ACCOUNT = {"account_id": "alice.near"}
COSTLY = {"signer_id": "alice.near", "balance": "5", "cost": str(2**128 - 1)}

# Each family: its published model, and its place in a TxExecutionError.
FAMILIES = {
    "InvalidTxError": ("InvalidTxError", "InvalidTxError"),
    "InvalidAccessKeyError": ("InvalidAccessKeyError", "InvalidTxError.InvalidAccessKeyError"),
    "ActionsValidation": ("ActionsValidationError", "InvalidTxError.ActionsValidation"),
    "StorageError": ("StorageError", "InvalidTxError.StorageError"),
    "ActionErrorKind": ("ActionErrorKind", ""),
    "FunctionCallError": ("FunctionCallError", "FunctionCallError"),
    "MethodResolveError": ("MethodResolveError", "FunctionCallError.MethodResolveError"),
    "CompilationError": ("CompilationError", "FunctionCallError.CompilationError"),
    "PrepareError": ("PrepareError", "FunctionCallError.CompilationError.PrepareError"),
    "WasmTrap": ("WasmTrap", "FunctionCallError.WasmTrap"),
    "HostError": ("HostError", "FunctionCallError.HostError"),
    "NewReceiptValidationError": ("ReceiptValidationError", "NewReceiptValidationError"),
}
# Examples of texts with a form of their own, by the name of their type.
TEXTS = {"AccountId": "alice.near", "PublicKey": KEY, "NearToken": str(2**128 - 1)}


def example(schema, definitions):
    name, schema = resolve(schema, definitions)
    if "properties" in schema:
        return {key: example(member, definitions) for key, member in schema["properties"].items()}
    for alternatives in ("anyOf", "oneOf"):
        if alternatives in schema:
            return example(schema[alternatives][0], definitions)
    if "const" in schema or "enum" in schema:
        return schema.get("const") or schema["enum"][0]
    values = {"integer": 4321, "number": 0.97, "string": TEXTS.get(name, "some words")}
    return values[schema["type"]]


def variants(schema, definitions):
    """List the variants of a published model with an example of what each says."""
    schema = resolve(schema, definitions)[1]
    listed: dict[str, Any] = {}
    for alternative in schema.get("anyOf", schema.get("oneOf", ())):
        listed |= variants(alternative, definitions)
    names = [schema["const"]] if "const" in schema else schema.get("enum", ())
    listed |= dict.fromkeys(names)
    for name, member in schema.get("properties", {}).items():
        inner = resolve(member, definitions)[1]
        is_variant = "anyOf" in inner or "oneOf" in inner or "enum" in inner
        listed[name] = None if is_variant else example(inner, definitions)
    return listed


VARIANTS = {
    family: variants(schema_of(model), schema_of(model).get("$defs", {}))
    for family, (model, _) in FAMILIES.items()
}
ALL = [
    (family, name, payload)
    for family, listed in VARIANTS.items()
    for name, payload in listed.items()
]


def failure(family, name, payload):
    """Build the TxExecutionError of one variant, inside of those that contain it."""
    value = name if payload is None else {name: payload}
    place = FAMILIES[family][1]
    for outer in reversed(place.split(".") if place else []):
        value = {outer: value}
    return value if "InvalidTxError" in place else {"ActionError": {"index": 3, "kind": value}}


def refusal(value):
    return chain_errors.invalid_transaction(value)


def failed(kind, receipt_id=None):
    """Read the failure of a receipt whose class the test knows."""
    value = {"ActionError": {"index": 3, "kind": kind}}
    return chain_errors.receipt_failure(value, receipt_id=receipt_id)


def leaves(payload):
    if isinstance(payload, dict):
        return [leaf for value in payload.values() for leaf in leaves(value)]
    return [] if payload is None else [str(payload)]


def is_in(value, sentence):
    """Find a value in a sentence: as it is, or as an amount with all digits."""
    texts = [value]
    if value.isdigit():
        amount = int(value)
        texts += [units.near_amount(amount, None), units.gas_amount(amount, None)]
    return any(text in sentence for text in texts)


class TestEveryVariant:
    def test_every_published_variant_is_listed(self):
        """The models of near-jsonrpc-client name no variant that ledgerkit does not know."""
        assert {family: set(listed) for family, listed in VARIANTS.items()} == {
            family: set(rows) for family, rows in chain_errors.FAMILIES.items()
        }

    def test_what_refuses_a_transaction_or_stops_an_action_is_a_class(self):
        """A variant that a caller may want to catch has a class of its own."""
        families = ("InvalidTxError", "InvalidAccessKeyError", "ActionsValidation")
        for family in (*families, "ActionErrorKind"):
            rows = chain_errors.FAMILIES[family]
            assert [name for name, row in rows.items() if not isinstance(row, type)] == []
        key = refusal({"ActionsValidation": "WithdrawFromGasKeyNotAllowedInDelegate"})
        assert type(key) is chain_errors.WithdrawFromGasKeyNotAllowedInDelegateError
        account = failed({"AccountNotInitialized": ACCOUNT})
        assert type(account) is chain_errors.AccountNotInitializedError
        assert account.account_id == "alice.near"

    def test_every_published_cause_is_listed(self):
        """The models of near-jsonrpc-client name no cause that ledgerkit does not know."""
        causes = set()
        for name in published.__all__:
            if name.startswith("Rpc") and "Error" in name:
                members = schema_of(name).get("properties", {})
                definitions = schema_of(name).get("$defs", {})
                causes.add(resolve(members.get("name", {}), definitions)[1].get("const"))
        assert len(causes) > 40
        assert causes - {None} <= set(chain_errors.CAUSES)

    def test_each_has_a_class_a_remedy_and_a_sentence_with_its_values(self):
        """The error is of the declared class, advises, and names every value it came with."""
        for family, name, payload in ALL:
            error = chain_errors.receipt_failure(failure(family, name, payload), receipt_id="R1")
            row = chain_errors.FAMILIES[family][name]
            assert isinstance(error, row) if isinstance(row, type) else error.variant == name
            assert error.remedy
            assert str(error).endswith(error.remedy)
            assert [value for value in leaves(payload) if not is_in(value, str(error))] == []
            assert not re.search(r"no \w+ given|not known here|does not know", str(error))

    def test_each_fills_two_columns(self):
        """The kind is the path of the names, and the message is one sentence with the values."""
        for family, name, payload in ALL:
            kind, message = chain_errors.failure_text(failure(family, name, payload))
            assert kind == f"{FAMILIES[family][1]}.{name}".removeprefix(".")
            assert [value for value in leaves(payload) if not is_in(value, message)] == []
            assert message.endswith(".") or name in {"ExecutionError", "GuestPanic"}

    @pytest.mark.parametrize("name", ["InvalidNonce", "Expired", "TransactionSizeExceeded"])
    def test_a_refusal_is_understood_in_both_forms(self, name):
        """The wire's form and the specification's give the same error, null payload or none."""
        payload = VARIANTS["InvalidTxError"][name]
        rpc = {"name": "HANDLER_ERROR", "cause": {"name": "INVALID_TRANSACTION", "info": {}}}
        forms = [
            form
            for variant in ({name: payload}, {name: payload} if payload else name)
            for form in (
                rpc | {"data": {"TxExecutionError": {"InvalidTxError": variant}}},
                rpc | {"InvalidTransaction": variant, "data": "refused"},
                {"InvalidTransaction": variant},
            )
        ]
        made: list[Any] = [chain_errors.from_rpc(form, request="send_tx") for form in forms]
        known = chain_errors.FAMILIES["InvalidTxError"][name]
        assert [type(error) for error in made] == [known] * 6
        assert {(error.variant, str(error)) for error in made} == {(name, str(made[0]))}
        assert [error.payload for error in made] == [payload] * 6


class TestAttributes:
    def test_integers_and_amounts_are_ints(self):
        """Nonces come as numbers and balances as strings; both are exact ints here."""
        nonce = refusal({"InvalidNonce": {"tx_nonce": 1, "ak_nonce": 7}})
        assert isinstance(nonce, chain_errors.InvalidNonceError)
        assert (nonce.tx_nonce, nonce.ak_nonce) == (1, 7)
        poor = refusal({"NotEnoughBalance": COSTLY})
        assert isinstance(poor, chain_errors.NotEnoughBalanceError)
        assert (poor.signer_id, poor.balance, poor.cost) == ("alice.near", 5, 2**128 - 1)

    def test_a_value_that_did_not_come_is_none(self):
        """A variant without its payload keeps its class; its attributes read None."""
        error = refusal({"InvalidNonce": None})
        assert isinstance(error, chain_errors.InvalidNonceError)
        assert error.ak_nonce is None
        odd = refusal({"InvalidNonce": {"ak_nonce": [1], "tx_nonce": True}})
        assert (odd.ak_nonce, odd.tx_nonce) == (None, None)
        assert odd.payload == {"ak_nonce": [1], "tx_nonce": True}

    def test_amounts_are_in_units_with_all_digits(self):
        """Two amounts that differ in the last digit differ in the sentence."""
        costs = {"signer_id": "a.near", "balance": str(5 * 10**24), "cost": str(5 * 10**24 + 1)}
        assert refusal({"NotEnoughBalance": costs}).sentence == (
            "a.near has 5 NEAR, and the transaction costs 5.000000000000000000000001 NEAR"
        )
        gas = {"total_prepaid_gas": 1_300_000_000_000_000, "limit": 1_000_000_000_000_000}
        error = refusal({"ActionsValidation": {"TotalPrepaidGasExceeded": gas}})
        assert error.sentence == "The actions attach 1,300 Tgas; the limit is 1,000 Tgas"
        odd = refusal({"NotEnoughBalance": costs | {"cost": "a lot", "balance": None}})
        assert odd.sentence == (
            "a.near has (no balance given) yoctoNEAR, and the transaction costs a lot yoctoNEAR"
        )

    def test_a_receipt_names_itself_and_its_action(self):
        """The receipt id and the failing action are attributes and stand in the sentence."""
        error = failed({"AccountAlreadyExists": ACCOUNT}, receipt_id="Rcpt1")
        assert (error.receipt_id, error.index, error.kind) == ("Rcpt1", 3, "AccountAlreadyExists")
        assert str(error) == (
            "Account alice.near already exists (receipt Rcpt1, action 3)."
            " Choose another account id."
        )

    def test_a_delegates_key_error_stays_a_failed_receipt(self):
        """The reasons shared with refused transactions keep the branch they were met in."""
        kind = {
            "DelegateActionAccessKeyError": {
                "ReceiverMismatch": {"tx_receiver": "b.near", "ak_receiver": "c.near"}
            }
        }
        error = failed(kind)
        assert type(error) is chain_errors.DelegateActionAccessKeyError
        assert (error.variant, error.ak_receiver) == ("ReceiverMismatch", "c.near")
        assert error.remedy == chain_errors.ReceiverMismatchError.remedy

    @pytest.mark.parametrize(
        ("text", "advice"),
        [
            ("Exceeded the prepaid gas.", "Attach more gas"),
            ("Exceeded the maximum amount of gas allowed to burn per contract.", "Split the work"),
            ("Exceeded the account balance.", "Fund the contract"),
            ("WebAssembly trap: An arithmetic exception", "a bug of the contract"),
            ("storage_write is not allowed in view calls", "signed transaction"),
            ("Smart contract panicked: Exceeded the prepaid gas.", "contract's message"),
        ],
    )
    def test_a_failed_call_is_advised_by_its_text(self, text, advice):
        """Gas, balance, traps and panics each get their own remedy; a panic cannot pose."""
        kind = {"FunctionCallError": {"ExecutionError": text}}
        error = failed(kind)
        assert type(error) is chain_errors.ExecutionError
        assert error.text == text
        assert advice in error.remedy

    def test_a_panic_is_kept_whole_but_shown_short(self):
        """A long message stays in the attribute and the column, not in the sentence."""
        message = "panicked at src/lib.rs:1:2:\n" + "x" * 5000
        kind = {"FunctionCallError": {"ExecutionError": f"Smart contract panicked: {message}"}}
        value = {"ActionError": {"index": 0, "kind": kind}}
        error = failed(kind)
        assert error.panic_msg == message
        assert len(error.sentence) < 160
        assert chain_errors.failure_text(value)[1] == f"Smart contract panicked: {message}"


class TestUnknownVariants:
    def test_keep_name_and_payload(self):
        """A variant of tomorrow gives the base class with everything it said."""
        error = refusal({"TooPurple": {"hue": 300}})
        assert type(error) is errors.InvalidTransactionError
        assert (error.variant, error.payload) == ("TooPurple", {"hue": 300})
        assert "TooPurple (hue 300)" in str(error)

    def test_fall_back_to_the_nearest_family(self):
        """An unknown reason about an access key is still one about an access key."""
        error = refusal({"InvalidAccessKeyError": "TooPurple"})
        assert type(error) is chain_errors.InvalidAccessKeyError
        assert error.variant == "TooPurple"

    def test_still_fill_the_columns(self, subtests):
        """A failure of any shape gets a kind and a sentence."""
        cases = [
            ({"ActionError": {"index": 0, "kind": {"TooPurple": {"hue": 300}}}}, "TooPurple"),
            ({"ActionError": {"kind": {"FunctionCallError": "Odd"}}}, "FunctionCallError.Odd"),
            ({"InvalidTxError": "TooPurple"}, "InvalidTxError.TooPurple"),
            ({"ActionError": None}, "ActionError"),
            ({"error_type": "ActionError::TriesToStake"}, "ActionError::TriesToStake"),
            ({"ActionError": {}}, "Unknown"),
            ("TooPurple", "TooPurple"),
            (None, "Unknown"),
            ([1], "Unknown"),
        ]
        for value, kind in cases:
            with subtests.test(kind=kind):
                assert chain_errors.failure_text(value)[0] == kind
                assert chain_errors.failure_text(value)[1].endswith(".")


class TestVariant:
    def test_splits_name_and_payload(self, subtests):
        """Both encodings of a variant are read; anything else is Unknown and kept."""
        cases = [
            ("Expired", ("Expired", None)),
            ({"Expired": None}, ("Expired", None)),
            ({"InvalidNonce": {"tx_nonce": 1}}, ("InvalidNonce", {"tx_nonce": 1})),
            ({}, ("Unknown", {})),
            ({"A": 1, "B": 2}, ("Unknown", {"A": 1, "B": 2})),
            ({1: 2}, ("Unknown", {1: 2})),
            ([1], ("Unknown", [1])),
            (None, ("Unknown", None)),
            (3.5, ("Unknown", 3.5)),
        ]
        for value, expected in cases:
            with subtests.test(value=value):
                assert chain_errors.variant(value) == expected


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
MEMBERS = """
    name cause info data code message vm_error block_reference block_id InvalidTransaction
    TxExecutionError InvalidTxError ActionError index kind account_id HANDLER_ERROR
"""
known_names = st.sampled_from(
    [
        *MEMBERS.split(),
        *chain_errors.CAUSES,
        *(name for rows in chain_errors.FAMILIES.values() for name in rows),
    ]
)
json_values = st.recursive(
    scalars | known_names,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(known_names | st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
rpc_errors = st.fixed_dictionaries(
    {},
    optional={
        "name": json_values,
        "code": json_values | st.sampled_from([-429, "-429", -32000, -32601, -32700, "x"]),
        "message": json_values,
        "data": json_values,
        "InvalidTransaction": json_values,
        "cause": json_values
        | st.fixed_dictionaries(
            {"name": st.sampled_from(sorted(chain_errors.CAUSES))}, optional={"info": json_values}
        ),
    },
)


class TestNothingRaises:
    @given(json_values | rpc_errors)
    def test_when_an_rpc_error_is_read(self, value):
        """Any JSON in place of an error gives an error with a sentence and a remedy."""
        error = chain_errors.from_rpc(value, request="ft of root.near")
        assert isinstance(error, errors.LedgerError)
        assert error.request == "ft of root.near"
        assert str(error).endswith(error.remedy)
        assert error.remedy
        assert "\n" not in str(error)
        assert len(str(error)) < 1500

    def test_as_nodes_of_2020_sent_them(self):
        """Type and message were two texts (nearcore 2020, `ExecutionErrorView`); both stay."""
        kind = "ActionError::AccountDoesNotExist"
        text = "Can't complete the action because account carl does not exist"
        old = {"error_type": kind, "error_message": text}
        assert chain_errors.failure_text(old) == (kind, f"{text}.")
        error = chain_errors.receipt_failure(old, receipt_id="R0")
        assert isinstance(error, errors.ReceiptFailedError)
        assert (error.kind, error.variant) == (kind, kind)
        assert str(error).startswith(text)

    @given(json_values)
    def test_when_a_variant_is_read(self, value):
        """Any JSON splits, and any JSON describes a failure."""
        name, payload = chain_errors.variant(value)
        assert isinstance(name, str)
        assert payload is None or name == "Unknown" or value == {name: payload}
        assert isinstance(chain_errors.receipt_failure(value), errors.LedgerError)
        assert isinstance(chain_errors.invalid_transaction(value), errors.InvalidTransactionError)
        kind, message = chain_errors.failure_text(value)
        assert (type(kind), type(message)) == (str, str)

    @given(st.text())
    def test_when_a_text_of_query_is_read(self, text):
        """Any text gives an error; one that is not recognised is kept."""
        error = chain_errors.from_query_text(text, request="view", block_height=1, block_hash=None)
        assert isinstance(error, errors.LedgerError)

    def test_for_numbers_of_thousands_of_digits(self):
        """A number too long to be written is described instead."""
        error = refusal({"InvalidNonce": {"tx_nonce": 10**5000}})
        assert "too large to show" in str(error)
        odd = refusal({"ShardCongested": {"shard_id": "9" * 5000, "congestion_level": 10**400}})
        assert odd.shard_id is None
