"""Every error variant of the chain has a class, a sentence with its values and a remedy."""

import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit import errors, units
from ledgerkit.api import chain_errors

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
KEY = "ed25519:HbcF7MfbaLv6EViPkS3pDELF5cfHDKV73JJR6TdYC5BV"
LIMITED = {"length": 300, "limit": 256}
SIZED = {"size": 5_000_000, "limit": 4_194_304}
ACCOUNT = {"account_id": "alice.near"}
ACCOUNT_KEY = ACCOUNT | {"public_key": KEY}
COSTLY = {"signer_id": "alice.near", "balance": "5", "cost": str(2**128 - 1)}


def each(names, payload=None):
    """Give variants with the same payload, or without one."""
    return dict.fromkeys(names.split(), payload)


# Each family: its place in a TxExecutionError, and its variants with an example payload.
PLACES = {
    "InvalidTxError": ("InvalidTxError",),
    "InvalidAccessKeyError": ("InvalidTxError", "InvalidAccessKeyError"),
    "ActionsValidation": ("InvalidTxError", "ActionsValidation"),
    "StorageError": ("InvalidTxError", "StorageError"),
    "ActionErrorKind": (),
    "FunctionCallError": ("FunctionCallError",),
    "MethodResolveError": ("FunctionCallError", "MethodResolveError"),
    "CompilationError": ("FunctionCallError", "CompilationError"),
    "PrepareError": ("FunctionCallError", "CompilationError", "PrepareError"),
    "WasmTrap": ("FunctionCallError", "WasmTrap"),
    "HostError": ("FunctionCallError", "HostError"),
    "NewReceiptValidationError": ("NewReceiptValidationError",),
}
VARIANTS = {
    "InvalidTxError": {
        "InvalidNonce": {"tx_nonce": 1, "ak_nonce": 60_462_377_000_000},
        "NonceTooLarge": {"tx_nonce": 2**64 - 1, "upper_bound": 60_462_377_000_000},
        "NotEnoughBalance": COSTLY,
        "LackBalanceForState": {"signer_id": "alice.near", "amount": "17"},
        "NotEnoughGasKeyBalance": COSTLY,
        "NotEnoughBalanceForDeposit": COSTLY | {"reason": "LackBalanceForState"},
        "SignerDoesNotExist": {"signer_id": "alice.near"},
        "InvalidSignerId": {"signer_id": "Alice..near"},
        "InvalidReceiverId": {"receiver_id": "Bob..near"},
        "InvalidNonceIndex": {"tx_nonce_index": 9, "num_nonces": 4},
        "TransactionSizeExceeded": {"size": 2_000_000, "limit": 1_572_864},
        "ShardCongested": {"shard_id": 11, "congestion_level": 0.97},
        "ShardStuck": {"shard_id": 11, "missed_chunks": 5},
        **each(
            "Expired InvalidSignature InvalidChain CostOverflow InvalidTransactionVersion"
            " InvalidAccessKeyError ActionsValidation StorageError"
        ),
    },
    "InvalidAccessKeyError": {
        "AccessKeyNotFound": ACCOUNT_KEY,
        "ReceiverMismatch": {"tx_receiver": "b.near", "ak_receiver": "c.near"},
        "MethodNameMismatch": {"method_name": "ft_transfer"},
        "NotEnoughAllowance": ACCOUNT_KEY | {"allowance": "3", "cost": "4"},
        **each(
            "RequiresFullAccess DepositWithFunctionCall DelegateActionRequiresNonGasKey"
            " DelegateActionRequiresGasKey"
        ),
    },
    "ActionsValidation": {
        "TotalPrepaidGasExceeded": {"total_prepaid_gas": 2 * 10**15, "limit": 10**15},
        "TotalNumberOfActionsExceeded": {"total_number_of_actions": 101, "limit": 100},
        "TotalNumberOfDeployActionsExceeded": {"number_of_deploy_actions": 2, "limit": 1},
        "AddKeyMethodNamesNumberOfBytesExceeded": {"total_number_of_bytes": 2001, "limit": 2000},
        "AddKeyMethodNameLengthExceeded": LIMITED,
        "FunctionCallMethodNameLengthExceeded": LIMITED,
        "FunctionCallArgumentsLengthExceeded": LIMITED,
        "DeterministicStateInitKeyLengthExceeded": LIMITED,
        "DeterministicStateInitValueLengthExceeded": LIMITED,
        "ContractSizeExceeded": SIZED,
        "InvalidAccountId": {"account_id": "Alice..near"},
        "UnsuitableStakingKey": {"public_key": KEY},
        "UnsupportedProtocolFeature": {"protocol_feature": "GasKeys", "version": 84},
        "RemovedProtocolFeature": {"protocol_feature": "DelegateV2", "version": 87},
        "TotalNumberOfStateInitEntriesExceeded": {"number_of_entries": 1501, "limit": 1500},
        "InvalidDeterministicStateInitReceiver": {"receiver_id": "b.near", "derived_id": "0s12"},
        "GasKeyInvalidNumNonces": {"requested_nonces": 2000, "limit": 1024},
        "AddGasKeyWithNonZeroBalance": {"balance": "12"},
        **each(
            "DeleteActionMustBeFinal IntegerOverflow FunctionCallZeroAttachedGas"
            " FunctionCallEmptyMethodName DelegateActionMustBeOnlyOne"
            " GasKeyFunctionCallAllowanceNotAllowed"
        ),
    },
    "StorageError": {
        "MissingTrieValue": {"context": "TrieStorage", "hash": "7DhZVpds"},
        "StorageInconsistentState": "root lost",
        "FlatStorageBlockNotSupported": "block 12",
        "MemTrieLoadingError": "shard 3",
        **each("StorageInternalError UnexpectedTrieValue"),
    },
    "ActionErrorKind": {
        **each(
            "AccountAlreadyExists AccountDoesNotExist TriesToUnstake DeleteAccountStaking"
            " DeleteAccountWithLargeState OnlyImplicitAccountCreationAllowed",
            ACCOUNT,
        ),
        "CreateAccountOnlyByRegistrar": ACCOUNT
        | {"registrar_account_id": "registrar", "predecessor_id": "bob.near"},
        "CreateAccountNotAllowed": ACCOUNT | {"predecessor_id": "bob.near"},
        "ActorNoPermission": ACCOUNT | {"actor_id": "bob.near"},
        "AddKeyAlreadyExists": ACCOUNT_KEY,
        "DeleteKeyDoesNotExist": ACCOUNT_KEY,
        "GasKeyDoesNotExist": ACCOUNT_KEY,
        "LackBalanceForState": ACCOUNT | {"amount": "123"},
        "TriesToStake": ACCOUNT | {"stake": "11", "locked": "12", "balance": "13"},
        "InsufficientStake": ACCOUNT | {"stake": "11", "minimum_stake": "99"},
        "DelegateActionSenderDoesNotMatchTxReceiver": {
            "sender_id": "alice.near",
            "receiver_id": "bob.near",
        },
        "DelegateActionAccessKeyError": {"AccessKeyNotFound": ACCOUNT_KEY},
        "DelegateActionInvalidNonce": {"delegate_nonce": 7, "ak_nonce": 8},
        "DelegateActionNonceTooLarge": {"delegate_nonce": 7, "upper_bound": 6},
        "DelegateActionInvalidNonceIndex": {"nonce_index": 9, "num_nonces": 4},
        "GlobalContractDoesNotExist": {"identifier": {"hash": "4reLvkAW"}},
        "InsufficientGasKeyBalance": ACCOUNT_KEY | {"balance": "1", "required": "2"},
        "GasKeyBalanceTooHigh": ACCOUNT_KEY | {"balance": "77"},
        "TotalPromiseInputSizeExceeded": SIZED,
        "ReceiptStorageProofSizeExceeded": {"limit": 4_000_000},
        **each(
            "FunctionCallError NewReceiptValidationError DelegateActionExpired"
            " DelegateActionInvalidSignature"
        ),
    },
    "FunctionCallError": {
        "ExecutionError": "Smart contract panicked: ERR_OUT_OF_FUND",
        "LinkError": {"msg": "no env.foo"},
        **each("MethodResolveError CompilationError WasmTrap HostError WasmUnknownError _EVMError"),
    },
    "MethodResolveError": each("MethodNotFound MethodEmptyName MethodInvalidSignature"),
    "CompilationError": {
        "CodeDoesNotExist": ACCOUNT,
        "PrepareError": None,
        "WasmerCompileError": {"msg": "bad magic"},
    },
    "PrepareError": each(
        "Serialization Deserialization InternalMemoryDeclared GasInstrumentation"
        " StackHeightInstrumentation Instantiate Memory TooManyFunctions TooManyLocals"
        " TooManyTables TooManyTableElements FunctionBodyTooLarge InstrumentedCodeTooLarge"
        " TooManyBlocksPerFunction TooManyBlocksPerContract TooManyTypes TooManyParamsPerFunction"
        " TooManyParamsPerContract OperandStackTooLarge TooManyGlobals"
    ),
    "WasmTrap": each(
        "Unreachable IncorrectCallIndirectSignature MemoryOutOfBounds CallIndirectOOB"
        " IllegalArithmetic MisalignedAtomicAccess IndirectCallToNull StackOverflow GenericTrap"
    ),
    "HostError": {
        "GuestPanic": {"panic_msg": "out of fund"},
        "ProhibitedInView": {"method_name": "storage_write"},
        "Deprecated": {"method_name": "sha1"},
        "InvalidPromiseIndex": {"promise_idx": 41},
        "InvalidPromiseResultIndex": {"result_idx": 42},
        "InvalidRegisterId": {"register_id": 43},
        "IteratorWasInvalidated": {"iterator_index": 44},
        "InvalidIteratorIndex": {"iterator_index": 45},
        "InvalidReceiptIndex": {"receipt_index": 46},
        "NumberOfLogsExceeded": {"limit": 100},
        "KeyLengthExceeded": LIMITED,
        "ValueLengthExceeded": LIMITED,
        "TotalLogLengthExceeded": LIMITED,
        "ReturnedValueLengthExceeded": LIMITED,
        "NumberPromisesExceeded": {"number_of_promises": 1025, "limit": 1024},
        "NumberInputDataDependenciesExceeded": {
            "number_of_input_data_dependencies": 129,
            "limit": 128,
        },
        "ContractSizeExceeded": SIZED,
        **each(
            "ECRecoverError AltBn128InvalidInput Ed25519VerifyInvalidInput"
            " P256VerifyInvalidInput MlDsaVerifyInvalidInput",
            {"msg": "wrong length"},
        ),
        **each(
            "BadUTF16 BadUTF8 GasExceeded GasLimitExceeded BalanceExceeded EmptyMethodName"
            " IntegerOverflow CannotAppendActionToJointPromise CannotReturnJointPromise"
            " MemoryAccessViolation InvalidAccountId InvalidMethodName InvalidPublicKey"
        ),
    },
    "NewReceiptValidationError": {
        **each(
            "InvalidPredecessorId InvalidReceiverId InvalidSignerId InvalidDataReceiverId"
            " InvalidRefundTo",
            {"account_id": "Alice..near"},
        ),
        "ReturnedValueLengthExceeded": LIMITED,
        "NumberInputDataDependenciesExceeded": {
            "number_of_input_data_dependencies": 129,
            "limit": 128,
        },
        "ReceiptSizeExceeded": SIZED,
        "ActionsValidation": {
            "TotalNumberOfActionsExceeded": {"total_number_of_actions": 101, "limit": 100}
        },
    },
}
ALL = [
    pytest.param(family, name, payload, id=f"{family}.{name}")
    for family, variants in VARIANTS.items()
    for name, payload in variants.items()
]
REFUSALS = [
    pytest.param(family, name, payload, id=f"{family}.{name}")
    for family, variants in VARIANTS.items()
    for name, payload in variants.items()
    if PLACES[family][:1] == ("InvalidTxError",)
]


def nested(places, value):
    """Wrap a variant into the ones that hold it."""
    for place in reversed(places):
        value = {place: value}
    return value


def failure(family, name, payload):
    """Build the TxExecutionError of one variant."""
    value = nested(PLACES[family], name if payload is None else {name: payload})
    refused = PLACES[family][:1] == ("InvalidTxError",)
    return value if refused else {"ActionError": {"index": 3, "kind": value}}


def refusal(value):
    """Read a refusal whose class the test knows."""
    return chain_errors.invalid_transaction(value)


def failed(kind, receipt_id=None):
    """Read the failure of a receipt whose class the test knows."""
    value = {"ActionError": {"index": 3, "kind": kind}}
    return chain_errors.receipt_failure(value, receipt_id=receipt_id)


def from_rpc(error):
    """Read an RPC error whose class the test knows."""
    return chain_errors.from_rpc(error, request="send_tx")


def leaves(payload):
    """List the values of a payload, however deep."""
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
    def test_table_and_code_list_the_same_names(self):
        """No variant is missing from this table, and none is in the code alone."""
        assert {family: set(rows) for family, rows in VARIANTS.items()} == {
            family: set(rows) for family, rows in chain_errors.FAMILIES.items()
        }

    @pytest.mark.parametrize(("family", "name", "payload"), ALL)
    def test_has_a_class_a_remedy_and_a_sentence_with_its_values(self, family, name, payload):
        """The error is of the declared class, advises, and names every value it came with."""
        error = chain_errors.receipt_failure(failure(family, name, payload), receipt_id="Rcpt1")
        assert isinstance(error, chain_errors.SPECIFICATION[family][name])
        assert error.remedy
        assert str(error).endswith(error.remedy)
        assert [value for value in leaves(payload) if not is_in(value, str(error))] == []
        assert not re.search(r"no \w+ given|not known here", str(error))

    @pytest.mark.parametrize(("family", "name", "payload"), ALL)
    def test_pickles(self, family, name, payload):
        """A copy made by pickle has the class, sentence, remedy and attributes of the first."""
        error = chain_errors.receipt_failure(failure(family, name, payload))
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - made one line above
        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))

    @pytest.mark.parametrize(("family", "name", "payload"), ALL)
    def test_fills_two_columns(self, family, name, payload):
        """The kind ends in the innermost names, and the message is one sentence."""
        kind, message = chain_errors.failure_text(failure(family, name, payload))
        inner = (
            chain_errors.variant(payload)[0]
            if name in {"DelegateActionAccessKeyError", "ActionsValidation"} and payload
            else ""
        )
        assert kind == ".".join(filter(None, (*PLACES[family], name, inner)))
        assert [value for value in leaves(payload) if not is_in(value, message)] == []
        assert message.endswith(".") or "panicked" in message

    @pytest.mark.parametrize(("family", "name", "payload"), REFUSALS)
    def test_of_a_refusal_is_understood_in_both_forms(self, family, name, payload):
        """The wire's form and the specification's give the same error, null payload or none."""
        value = nested(PLACES[family][1:], {name: payload})
        short = nested(PLACES[family][1:], name) if payload is None else value
        rpc = {"name": "HANDLER_ERROR", "cause": {"name": "INVALID_TRANSACTION", "info": {}}}
        forms = [
            form
            for variant in (value, short)
            for form in (
                rpc | {"data": {"TxExecutionError": {"InvalidTxError": variant}}},
                rpc | {"InvalidTransaction": variant, "data": "refused"},
                {"InvalidTransaction": variant},
            )
        ]
        made = [from_rpc(form) for form in forms]
        known = chain_errors.SPECIFICATION[family][name]
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

    @pytest.mark.parametrize(
        ("value", "kind"),
        [
            ({"ActionError": {"index": 0, "kind": {"TooPurple": {"hue": 300}}}}, "TooPurple"),
            ({"ActionError": {"kind": {"FunctionCallError": "Odd"}}}, "FunctionCallError.Odd"),
            ({"InvalidTxError": "TooPurple"}, "InvalidTxError.TooPurple"),
            ({"ActionError": None}, "ActionError"),
            ({"error_type": "ActionError::TriesToStake"}, "ActionError::TriesToStake"),
            ({"ActionError": {}}, "Unknown"),
            ("TooPurple", "TooPurple"),
            (None, "Unknown"),
            ([1], "Unknown"),
        ],
        ids=repr,
    )
    def test_still_fill_the_columns(self, value, kind):
        """A failure of any shape gets a kind and a sentence."""
        assert chain_errors.failure_text(value)[0] == kind
        assert chain_errors.failure_text(value)[1].endswith(".")


class TestVariant:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("Expired", ("Expired", None)),
            ({"Expired": None}, ("Expired", None)),
            ({"InvalidNonce": {"tx_nonce": 1}}, ("InvalidNonce", {"tx_nonce": 1})),
            ({}, ("Unknown", {})),
            ({"A": 1, "B": 2}, ("Unknown", {"A": 1, "B": 2})),
            ({1: 2}, ("Unknown", {1: 2})),
            ([1], ("Unknown", [1])),
            (None, ("Unknown", None)),
            (3.5, ("Unknown", 3.5)),
        ],
        ids=repr,
    )
    def test_splits_name_and_payload(self, value, expected):
        """Both encodings of a variant are read; anything else is Unknown and kept."""
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


# The documentation's own tables, where it lies beside the project ------------------------

documented = pytest.mark.skipif(
    not (SHARED / "wire" / "README.md").exists(), reason="the documentation is not here"
)


def tables(section):
    """Give the rows of every table of one section, with the header each belongs to."""
    text = (SHARED / "wire" / "README.md").read_text(encoding="utf-8")
    body = re.split(r"^## ", text, flags=re.MULTILINE)[section]
    header = None
    for line in body.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            header = None
        elif header is None:
            header = cells
        elif set(line) - set("|- "):
            yield header, dict(zip(header, cells, strict=False))


def names(cell):
    """List the names that begin with a capital in a cell, without payloads and marks."""
    return re.findall(r"\b_?[A-Z]\w+", re.sub(r"\{[^}]*\}|\*\*R\*\*", "", cell))


@documented
def test_every_documented_cause_has_a_class_and_a_remedy():
    """Each cause.name of the documentation's tables is known."""
    found = [
        name
        for header, row in tables(2)
        if "cause.name" in header
        for name in names(row["cause.name"])
    ]
    assert len(found) > 40
    known = chain_errors.SPECIFICATION["cause.name"]
    assert [name for name in found if name not in known or not known[name].remedy] == []


@documented
def test_every_documented_variant_has_a_class_and_a_remedy():
    """Each variant of the documentation's tables is known, in its family."""
    found = [
        (header[0], name)
        for header, row in tables(8)
        if header[0] in chain_errors.SPECIFICATION
        for name in names(row[header[0]])
    ]
    text = (SHARED / "wire" / "README.md").read_text(encoding="utf-8")
    for family, lists in re.findall(r"^(\w+) (?:names|strings): (.*)$", text, re.MULTILINE):
        found += [(family, name) for name in names(lists)]
    assert {family for family, _ in found} >= {"InvalidTxError", "HostError", "PrepareError"}
    assert len(found) > 150
    known = chain_errors.SPECIFICATION
    assert [
        (family, name)
        for family, name in found
        if not getattr(known.get(family, {}).get(name), "remedy", "")
    ] == []
