"""The tree of errors: sentences, remedies, what to try again, what a failing host means."""

import copy
import inspect
import pickle
from typing import Any

import pytest

from ledgerkit import errors
from ledgerkit.api import chain_errors

KEY = "ed25519:HbcF7MfbaLv6EViPkS3pDELF5cfHDKV73JJR6TdYC5BV"
VM = "wasm execution failed with error: "


def below(error):
    return [error, *(one for child in error.__subclasses__() for one in below(child))]


class Unprintable:
    """A value without a repr."""

    def __repr__(self):
        raise AttributeError


def _type_name(value):
    return type(value).__name__


TREE = sorted(
    {
        error
        for error in below(errors.LedgerError)
        if error.__module__ in {errors.__name__, chain_errors.__name__}
    },
    key=lambda error: error.__name__,
)


def query(text):
    return chain_errors.from_query_text(
        text, request="view of c.near", block_height=7, block_hash="Bh"
    )


def rpc(cause, info, /, **members):
    named = {"name": cause} | ({} if info is None else {"info": info})
    return chain_errors.from_rpc(members | {"cause": named}, request="x of a.near")


def http(status, text="", **options):
    """Read a plain HTTP failure whose class the test knows."""
    return errors.from_status(status, text, request="ft of a.near", **options)


# Their sentences say what would be right.
SAID_BY_THE_SENTENCE = (errors.LedgerError, errors.InvalidRequestError)


class TestTree:
    def test_every_class_is_drawn_or_a_variant(self):
        """The drawing in the module's docstring names each class of the module."""
        drawn = {word for word in errors.__doc__.split() if word.endswith("Error")}
        assert drawn == {error.__name__ for error in TREE if error.__module__ == errors.__name__}

    def test_every_class_advises(self):
        """Each class has a docstring, a template and a remedy that are sentences."""
        for error in TREE:
            assert inspect.getdoc(error)
            assert error.template
            if error not in SAID_BY_THE_SENTENCE:
                assert error.remedy[0].isupper()
                assert error.remedy.endswith(".")
            assert (type(error.retryable), type(error.elsewhere)) == (bool, bool)

    def test_every_class_pickles(self):
        """Class, sentence, remedy and attributes survive pickle and copy."""
        for error in TREE:
            first = error(
                "It went wrong", remedy="Try b.", request="ft of a.near", extra={"a": [1]}
            )
            for again in (pickle.loads(pickle.dumps(first)), copy.copy(first)):  # noqa: S301 - ours
                assert type(again) is error
                assert (again.args, vars(again)) == (first.args, vars(first))
                assert (str(again), again.remedy, again.extra) == (str(first), "Try b.", {"a": [1]})

    def test_every_class_can_be_made_without_a_sentence(self):
        """The class's own template is filled in, and what is not given reads None."""
        for error in TREE:
            assert "given)" not in str(error(**dict.fromkeys(error.fields, 17)))
            empty = error()
            unset = set(error.fields) - {"variant", "kind"}
            assert [name for name in unset if getattr(empty, name) is not None] == []


class TestSentences:
    @pytest.mark.parametrize("error", [errors.DroppedError, errors.ReceiptFailedError])
    def test_reads_as_sentences(self, error):
        """The text is what happened, where, and the remedy, each ended once."""
        text = str(error("It went wrong.", request="ft of a.near"))
        assert text == f"It went wrong (request: ft of a.near). {error.remedy}"
        assert str(error("It went wrong")) == f"It went wrong. {error.remedy}"
        assert str(error("Did it go wrong?")) == f"Did it go wrong? {error.remedy}"

    def test_what_was_asked_is_not_said_twice(self):
        """A sentence that names what was asked is left alone."""
        error = errors.TransportError("No answer to ft of a.near in 10 s", request="ft of a.near")
        assert error.sentence == "No answer to ft of a.near in 10 s"
        assert str(error) == f"No answer to ft of a.near in 10 s. {error.remedy}"

    def test_repr_is_short(self):
        """The repr shows the class and the beginning of the sentence."""
        assert repr(errors.DroppedError("It expired")) == "DroppedError('It expired')"
        assert len(repr(errors.LedgerError("word " * 1000))) < 110

    def test_values_are_cut_and_kept_on_one_line(self):
        """No document gets into a sentence."""
        error = errors.ContractPanicError(panic_msg="a\nb " + "x" * 10_000)
        assert error.sentence.startswith("The contract panicked: a b xxx")
        assert len(error.sentence) <= 24 + 120
        assert error.panic_msg == "a\nb " + "x" * 10_000

    @pytest.mark.parametrize(
        "value", [-(10**5000), [10**5000], {"a": 10**5000}, Unprintable()], ids=_type_name
    )
    def test_refuse_needs_no_repr(self, value):
        """A value that Python can't print is refused with its type, and no other error."""
        error = errors.InvalidRequestError.refuse("height", value, "a block height")
        sentence = f"height <{_type_name(value)}> is not valid: expected a block height."
        assert str(error) == sentence

    def test_refuse_names_field_value_and_rule(self):
        """A value refused before sending is named together with the rule it breaks."""
        error = errors.InvalidRequestError.refuse("account_id", "Foo", "lower-case letters")
        assert str(error) == "account_id 'Foo' is not valid: expected lower-case letters."
        assert (error.field, error.value, error.rule) == ("account_id", "Foo", "lower-case letters")
        shard = errors.InvalidShardIdError.refuse("shard_id", -1, "an integer from 0 up")
        assert type(shard) is errors.InvalidShardIdError

    def test_required_names_the_missing_argument(self):
        """A missing argument is named together with what to pass."""
        error = errors.InvalidRequestError.required("out", "the folder to write to")
        assert str(error) == "out is required: the folder to write to."
        assert (error.field, error.value) == ("out", None)

    def test_a_remedy_of_its_own_replaces_the_classes(self):
        """An error may advise better than its class."""
        error = errors.DecodeError("No name at $.a", remedy="Use v0.", request="ft", path="$.a")
        assert str(error) == "No name at $.a (request: ft). Use v0."
        assert (error.path, errors.DecodeError.remedy != "Use v0.") == ("$.a", True)


# cause.name: may the same request work soon, and may another host know?
AGAIN = {
    (True, False): "NO_SYNCED_BLOCKS NOT_SYNCED_YET SHARD_NOT_APPLIED INTERNAL_ERROR BUSY",
    (True, True): "TIMEOUT_ERROR NODE_IS_SYNCING NO_NEW_BLOCKS EPOCH_OUT_OF_BOUNDS",
    (False, True): (
        "UNAVAILABLE_SHARD DOES_NOT_TRACK_SHARD UNKNOWN_BLOCK GARBAGE_COLLECTED_BLOCK"
        " UNKNOWN_CHUNK UNKNOWN_TRANSACTION UNKNOWN_RECEIPT UNKNOWN_TRANSACTION_OR_RECEIPT"
        " SHARD_NOT_TRACKED DATA_UNAVAILABLE INCOMPLETE_DATA STATE_NOT_AVAILABLE"
    ),
    (False, False): (
        "METHOD_NOT_FOUND PARSE_ERROR INVALID_ACCOUNT UNKNOWN_ACCOUNT NO_CONTRACT_CODE"
        " TOO_LARGE_CONTRACT_STATE UNKNOWN_ACCESS_KEY UNKNOWN_GAS_KEY TOO_MANY_ACCESS_KEYS"
        " CONTRACT_EXECUTION_ERROR NO_GLOBAL_CONTRACT_CODE INVALID_SHARD_ID INVALID_TRANSACTION"
        " REQUEST_ROUTED DEPTH_EXCEEDED UNSUPPORTED OUTCOMES_NOT_STORED MALFORMED_HINT"
        " WINDOW_TOO_LARGE BUDGET_EXCEEDED UNKNOWN_EPOCH VALIDATOR_INFO_UNAVAILABLE"
        " INCONSISTENT_STATE NOT_CONFIRMED CHUNK_NOT_CERTIFIED TARGET_SHARD_MISMATCH"
        " LIGHT_CLIENT_HEAD_TOO_OLD LIMIT_EXCEEDED"
    ),
}
CAUSES = {name: flags for flags, names in AGAIN.items() for name in names.split()}


class TestRpc:
    def test_all_causes_are_in_the_table_above(self):
        """No cause is left without a word on trying again."""
        assert set(CAUSES) == set(chain_errors.CAUSES)

    def test_says_whether_to_try_again_and_where(self):
        """Each cause has its class and says what may help, with info, without, and with null."""
        infos: list[object] = [None, {}, []]
        for name, flags in CAUSES.items():
            for info in infos:
                error = rpc(name, info, name="HANDLER_ERROR", code=-32000, message="Server error")
                assert type(error) is chain_errors.CAUSES[name].error
                assert (error.retryable, error.elsewhere) == flags
                assert (error.rpc_cause, error.request) == (name, "x of a.near")

    def test_info_becomes_attributes_and_stands_in_the_sentence(self, subtests):
        """What the node names is an attribute, under the usual name, and is shown."""
        cases: list[Any] = [
            ("UNKNOWN_ACCOUNT", {"requested_account_id": "a.near"}, {"account_id": "a.near"}),
            ("NO_CONTRACT_CODE", {"contract_account_id": "c.near"}, {"account_id": "c.near"}),
            ("UNKNOWN_ACCESS_KEY", {"public_key": KEY}, {"public_key": KEY}),
            ("UNAVAILABLE_SHARD", {"requested_shard_id": 11}, {"shard_id": 11}),
            ("UNKNOWN_TRANSACTION", {"requested_transaction_hash": "T"}, {"transaction_hash": "T"}),
            ("WINDOW_TOO_LARGE", {"requested": 9, "maximum": 5}, {"requested": 9, "maximum": 5}),
            (
                "GARBAGE_COLLECTED_BLOCK",
                {"block_height": 17, "block_hash": "B"},
                {"block_height": 17, "block_hash": "B"},
            ),
        ]
        for name, info, expected in cases:
            with subtests.test(name=name):
                error = rpc(name, info, data="words")
                assert {key: getattr(error, key) for key in expected} == expected
                assert [value for value in info.values() if str(value) not in str(error)] == []

    @pytest.mark.parametrize(
        ("info", "data", "block"),
        [
            ({"block_reference": {"block_id": 1}}, None, 1),
            ({"block_reference": {"block_id": 0}}, None, 0),
            ({"block_reference": {"block_id": "7DhZ"}}, None, "7DhZ"),
            ({}, "DB Not Found Error: BLOCK HEIGHT: 1 \n Cause: Unknown", 1),
            ({}, "DB Not Found Error: BLOCK: 7DhZ \n Cause: Unknown", "7DhZ"),
            ({"block_reference": {"finality": "final"}}, None, {"finality": "final"}),
        ],
        ids=repr,
    )
    def test_an_unknown_block_is_named(self, info, data, block):
        """The block is found in the reference, or else in the node's words."""
        error = rpc("UNKNOWN_BLOCK", info, data=data)
        assert error.block == block
        assert error.block_height == (block if isinstance(block, int) else None)
        assert error.block_hash == (block if isinstance(block, str) else None)
        assert errors.cut(block) in error.sentence

    @pytest.mark.parametrize(
        ("info", "cause_name", "elsewhere"),
        [
            (None, None, True),
            ({"cause": "NOT_OBSERVED"}, "NOT_OBSERVED", True),
            ({"cause": {"PENDING": {"status": "INCLUDED"}}}, "PENDING", False),
            ({"cause": {"DOES_NOT_TRACK_SHARD": {"shard_id": 1}}}, "DOES_NOT_TRACK_SHARD", True),
            ({"cause": {"name": "PENDING", "info": {}}}, "PENDING", False),
        ],
        ids=repr,
    )
    def test_a_timeout_says_nothing_about_failure(self, info, cause_name, elsewhere):
        """A pending transaction is known here; one not observed may be known elsewhere."""
        error = rpc("TIMEOUT_ERROR", info, data="Timeout")
        assert (error.cause_name, error.elsewhere) == (cause_name, elsewhere)
        assert "it may still succeed" in error.sentence

    def test_without_a_cause_the_code_and_the_words_decide(self, subtests):
        """Answers of gateways and of old nodes are told apart, and their words are kept."""
        cases: list[Any] = [
            ({"code": -429, "message": "Too many requests"}, errors.RateLimitedError, True),
            ({"code": "-429", "message": "Too many requests"}, errors.RateLimitedError, True),
            ({"code": -32601, "data": "blok"}, errors.RpcMethodNotFoundError, False),
            ({"code": -32700, "message": "Parse error"}, errors.RequestParseError, False),
            ({"name": "REQUEST_VALIDATION_ERROR"}, errors.InvalidRequestError, False),
            ({"name": "INTERNAL_ERROR", "data": "oops"}, errors.NodeError, True),
            ({"code": -32000, "message": "Server error"}, errors.NodeError, True),
            ({"name": "HANDLER_ERROR", "code": -32000}, errors.NodeError, False),
            (
                {"code": -32000, "data": "account a.near does not exist while viewing"},
                errors.UnknownAccountError,
                False,
            ),
            ({"data": {"any": "thing"}, "cause": None}, errors.NodeError, False),
        ]
        for members, expected, retryable in cases:
            with subtests.test(members=members):
                error = chain_errors.from_rpc(members, request="x")
                assert (type(error), error.retryable) == (expected, retryable)
                words = members.get("data") or members.get("message") or ""
                shown = "a.near" if expected is errors.UnknownAccountError else errors.cut(words)
                assert shown in str(error)

    def test_an_unknown_cause_is_kept(self):
        """A cause of tomorrow stands in the sentence and is not tried again."""
        error = rpc("TOO_PURPLE", {}, name="HANDLER_ERROR", code=-32000, data="hue 300")
        assert type(error) is errors.NodeError
        assert error.sentence == "The node failed: TOO_PURPLE: hue 300"
        assert (error.rpc_cause, error.retryable) == ("TOO_PURPLE", False)

    @pytest.mark.parametrize("value", [None, "text", 5, [], {}], ids=repr)
    def test_an_error_of_any_shape_is_an_error(self, value):
        """What is no object at all still gives an error that says what was asked."""
        assert "request: x of a.near" in str(chain_errors.from_rpc(value, request="x of a.near"))

    def test_a_failed_view_is_read_as_text_and_as_variant(self, subtests):
        """CONTRACT_EXECUTION_ERROR gives the same classes as the texts of query."""
        cases: list[Any] = [
            (
                {"HostError": {"GuestPanic": {"panic_msg": "no"}}},
                errors.ContractPanicError,
                {"panic_msg": "no"},
            ),
            (
                {"FunctionCallError": {"ExecutionError": "Smart contract panicked: no"}},
                errors.ContractPanicError,
                {"panic_msg": "no"},
            ),
            (
                {"ExecutionError": "Exceeded the prepaid gas."},
                errors.ViewGasExceededError,
                {"vm_error": "Exceeded the prepaid gas."},
            ),
            (
                {"HostError": "GasLimitExceeded"},
                errors.ViewGasExceededError,
                {"vm_error": {"HostError": "GasLimitExceeded"}},
            ),
            (
                {"FunctionCallError": {"HostError": "GasLimitExceeded"}},
                errors.ViewGasExceededError,
                {},
            ),
            (
                {"MethodResolveError": "MethodNotFound"},
                errors.ContractMethodNotFoundError,
                {"reason": "MethodNotFound"},
            ),
            (
                {"CompilationError": {"CodeDoesNotExist": {"account_id": "c.near"}}},
                errors.NoContractCodeError,
                {"account_id": "c.near"},
            ),
            (
                {"HostError": {"ProhibitedInView": {"method_name": "storage_write"}}},
                errors.ProhibitedInViewError,
                {"method_name": "storage_write"},
            ),
            (
                {"WasmTrap": "Unreachable"},
                errors.ContractError,
                {"vm_error": {"WasmTrap": "Unreachable"}},
            ),
            (
                f"{VM}MethodResolveError(MethodNotFound)",
                errors.ContractMethodNotFoundError,
                {"reason": "MethodNotFound"},
            ),
        ]
        for vm_error, expected, attributes in cases:
            with subtests.test(vm_error=vm_error):
                error = rpc("CONTRACT_EXECUTION_ERROR", {"vm_error": vm_error, "block_height": 7})
                assert type(error) is expected
                assert {name: getattr(error, name) for name in attributes} == attributes
                assert error.block_height == 7


class TestQueryTexts:
    def test_give_the_class_and_its_values(self, subtests):
        """Each text that a node answers instead of a result is told apart."""
        cases: list[Any] = [
            (
                f"access key {KEY} does not exist while viewing",
                errors.UnknownAccessKeyError,
                {"public_key": KEY},
            ),
            (
                "account a.near does not exist while viewing",
                errors.UnknownAccountError,
                {"account_id": "a.near"},
            ),
            (
                f"{VM}MethodResolveError(MethodNotFound)",
                errors.ContractMethodNotFoundError,
                {"reason": "MethodNotFound"},
            ),
            (
                f"{VM}FunctionCallError(MethodResolveError(MethodEmptyName))",
                errors.ContractMethodNotFoundError,
                {"reason": "MethodEmptyName"},
            ),
            (
                VM + 'CompilationError(CodeDoesNotExist { account_id: "a.near" })',
                errors.NoContractCodeError,
                {"account_id": "a.near"},
            ),
            (
                VM + "FunctionCallError(CompilationError(CodeDoesNotExist"
                ' { account_id: AccountId("a.near") }))',
                errors.NoContractCodeError,
                {"account_id": "a.near"},
            ),
            (
                VM + 'HostError(ProhibitedInView { method_name: "storage_write" })',
                errors.ProhibitedInViewError,
                {"method_name": "storage_write"},
            ),
            (
                VM + "storage_write is not allowed in view calls",
                errors.ProhibitedInViewError,
                {"method_name": "storage_write"},
            ),
            (
                f"{VM}Smart contract panicked: E1: no\n\\n",
                errors.ContractPanicError,
                {"panic_msg": "E1: no\n\\n"},
            ),
            (
                VM + 'FunctionCallError(ExecutionError("Smart contract panicked: \\"no\\""))',
                errors.ContractPanicError,
                {"panic_msg": '"no"'},
            ),
            (f"{VM}Exceeded the prepaid gas.", errors.ViewGasExceededError, {}),
            (f"{VM}HostError(GasLimitExceeded)", errors.ViewGasExceededError, {}),
            (
                f"{VM}FunctionCallError(HostError(GasExceeded))",
                errors.ViewGasExceededError,
                {},
            ),
            (
                f'{VM}HostError(GuestPanic {{ panic_msg: "GasLimitExceeded" }})',
                errors.ContractPanicError,
                {"panic_msg": "GasLimitExceeded"},
            ),
            (f"{VM}FunctionCallError(WasmTrap(Unreachable))", errors.ContractError, {}),
        ]
        for text, expected, attributes in cases:
            with subtests.test(text=text):
                error: Any = query(text)
                assert type(error) is expected
                assert {name: getattr(error, name) for name in attributes} == attributes
                assert (error.block_height, error.block_hash) == (7, "Bh")
                assert " at block 7" in error.sentence
                assert str(error).endswith(f" (request: view of c.near). {error.remedy}")

    @pytest.mark.parametrize("wrap", [VM + "{}", VM + "FunctionCallError({})", "{}"])
    def test_a_panic_is_read_out_of_the_debug_dump(self, subtests, wrap):
        """Escapes are undone; a message that quotes another text stays a panic."""
        cases = [
            ("no money", "no money"),
            (r"say \"no\"\n\tC:\\x", 'say "no"\n\tC:\\x'),
            (r"caf\u{e9} \u{1f600}\0", "café 😀\0"),
            (r"\u{d800} \u{110000} \q", r"\u{d800} \u{110000} \q"),
            (f"access key {KEY} does not exist while viewing", None),
            ("", ""),
        ]
        for dump, message in cases:
            with subtests.test(dump=dump):
                error = query(wrap.format(f'HostError(GuestPanic {{ panic_msg: "{dump}" }})'))
                assert type(error) is errors.ContractPanicError
                assert error.panic_msg == (dump if message is None else message)


class TestStatus:
    def test_decides_the_class_and_whether_to_ask_again(self, subtests):
        """A plain HTTP failure is told by its status, which the error keeps."""
        cases = [
            (302, errors.TransportError, False),
            (400, errors.InvalidRequestError, False),
            (401, errors.AuthError, False),
            (402, errors.AuthError, False),
            (403, errors.AuthError, False),
            (408, errors.TransportError, True),
            (429, errors.RateLimitedError, True),
            (500, errors.TransportError, True),
        ]
        for status, expected, retryable in cases:
            with subtests.test(status=status):
                error = http(status, '"Oh"')
                assert (type(error), error.retryable) == (expected, retryable)
                assert (error.status, error.request) == (status, "ft of a.near")
                assert error.sentence == f'HTTP {status} in response to ft of a.near: "Oh"'

    @pytest.mark.parametrize("status", [429, 503])
    def test_the_pause_asked_for_is_kept(self, status):
        """Retry-After travels with the error."""
        assert http(status, retry_after=2.5).retry_after == 2.5

    def test_the_body_is_quoted_short_and_on_one_line(self):
        """An HTML page does not get into the sentence."""
        page = "<html>\n<body>\n" + "x" * 100_000
        error = http(502, page)
        head = "HTTP 502 in response to ft of a.near: "
        assert error.sentence.startswith(head + "<html> <body> xxx")
        assert len(error.sentence) == len(head) + 200

    def test_a_key_limited_to_web_origins_is_told_apart(self):
        """origin_not_allowed is not a wrong key."""
        limited = http(403, '{"error":"origin_not_allowed"}')
        assert "restricted to web origins" in limited.sentence
        assert "web origins" in limited.remedy
        assert "web origins" not in str(http(403, "Forbidden"))
