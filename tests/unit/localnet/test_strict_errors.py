"""Every error that the ledger can make is read by a strict reader, as clients in Rust read them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import httpx
import pytest

from ledgerkit.localnet import rpc_api
from ledgerkit.protocol import CryptoHash, Transfer
from tests import strict_errors
from tests.local_transport import LocalTransport
from tests.strict_errors import read_error
from tests.unit.localnet.ledger import START, Ledger, N, do
from tests.unit.localnet.test_rpc_api import ask
from tests.unit.localnet.test_transaction_validity import ERRORS, Flawed

LOCALNET = Path(rpc_api.__file__).parent
NOWHERE = str(CryptoHash.of(b"nowhere"))
ALICE = {"account_id": "alice.near", "finality": "optimistic"}
NO_BLOCK = {"block_id": NOWHERE}
BIG = {"account_id": "big.near", "finality": "optimistic"}
VIEW = {"method_name": "peek", "args_base64": ""}
STATE = {"prefix_base64": ""}
TX = {"tx_hash": NOWHERE, "sender_account_id": "alice.near"}
PROOF = {
    "type": "transaction",
    "transaction_hash": NOWHERE,
    "sender_id": "alice.near",
    "light_client_head": NOWHERE,
}
CHANGES = {"changes_type": "account_changes", "account_ids": ["alice.near"]}

# Params, and the cause of the error that they get; tests of the JSON-RPC have the other causes.
REQUESTS: list[tuple[str, Any, str]] = [
    ("changes", CHANGES | NO_BLOCK, "UNKNOWN_BLOCK"),
    ("EXPERIMENTAL_validators_ordered", {"block_id": NOWHERE}, "UNKNOWN_EPOCH"),
    ("light_client_proof", PROOF, "UNKNOWN_TRANSACTION_OR_RECEIPT"),
    (
        "EXPERIMENTAL_light_client_block_proof",
        {"block_hash": NOWHERE, "light_client_head": NOWHERE},
        "UNKNOWN_BLOCK",
    ),
    ("next_light_client_block", [NOWHERE], "UNKNOWN_BLOCK"),
    ("tx_status", {**TX, "wait_until": "NONE"}, "UNKNOWN_TRANSACTION"),
    ("EXPERIMENTAL_view_code", ALICE, "NO_CONTRACT_CODE"),
    ("EXPERIMENTAL_view_state", {**STATE, **BIG}, "TOO_LARGE_CONTRACT_STATE"),
    (
        "EXPERIMENTAL_call_function",
        {**VIEW, "account_id": "alice.near", **NO_BLOCK},
        "UNKNOWN_BLOCK",
    ),
]
FORGOTTEN = {"request_type": "view_account", "account_id": "alice.near", "block_id": START + 1}


class Http:
    """A client that reads errors strictly."""

    def __init__(self, world: Any) -> None:
        self._client = httpx.Client(transport=LocalTransport(world), base_url="http://ledger.test")

    def cause(self, method: str, params: Any) -> str:
        """Call a method that fails; return the name of the error's cause."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self._client.post("/", json=body).json()
        assert set(answer) == {"jsonrpc", "id", "error"}, answer
        return read_error(method, answer["error"])


@pytest.fixture(scope="module")
def http() -> Http:
    """Open a chain with a large contract, of a version whose nodes have all methods."""
    ledger = Ledger("alice.near", scripts=["big.near"], profile="87")
    text = "x" * 60_000
    ledger.run("alice.near", "big.near", do(["write", "key", text]))
    return Http(ledger.world)


def test_causes_of_methods(subtests: pytest.Subtests, http: Http) -> None:
    """Each cause of a method has just the members of the node's error of that method."""
    for method, params, cause in REQUESTS:
        with subtests.test(method=method):
            assert http.cause(method, params) == cause


def test_params_that_cannot_be_parsed(subtests: pytest.Subtests, http: Http) -> None:
    """Every method that takes params refuses a word; an unknown method is named."""
    for method in sorted(rpc_api.METHOD_NAMES - {"health", "status"}):
        with subtests.test(method=method):
            ignores_params = {"network_info", "client_config", "genesis_config"}
            if method.removeprefix("EXPERIMENTAL_") not in ignores_params:
                assert http.cause(method, "params") == "PARSE_ERROR"
            assert http.cause(f"{method}_", []) == "METHOD_NOT_FOUND"


@pytest.mark.parametrize(
    "method", ["query", "EXPERIMENTAL_view_account", "EXPERIMENTAL_view_access_key_list"]
)
def test_states_that_were_collected(method: str) -> None:
    """`query` has a cause for a collected block; for the other methods it is an internal error."""
    # Source: nearcore, chain/jsonrpc-primitives/src/types/view_*.rs, From<RpcQueryError>.
    ledger = Ledger("alice.near", archival=False, epoch_length=5, epochs_kept=2)
    ledger.world.advance(40)
    cause = "GARBAGE_COLLECTED_BLOCK" if method == "query" else "INTERNAL_ERROR"
    assert Http(ledger.world).cause(method, FORGOTTEN) == cause


def test_rejected_transactions(subtests: pytest.Subtests) -> None:
    """The reason of each rejection has just the members of its variant."""
    for flaw in [flaw for flaw in ERRORS if flaw != "NonceTooLarge"]:
        with subtests.test(flaw=flaw):
            flawed = Flawed(flaw)  # the bytes of some are more than a server takes
            answer = ask(flawed.ledger.world, "send_tx", [flawed.sign().to_base64()])[1]
            assert read_error("send_tx", answer["error"]) == "INVALID_TRANSACTION"
            assert answer["error"]["data"]["TxExecutionError"] == {"InvalidTxError": ERRORS[flaw]}


# What the source can make ----------------------------------------------------------------

_MAKERS = {
    "_fail": "ActionErrorKind",
    "fail": "ActionErrorKind",  # of a receipt's run, which adds the receiver
    "_limit": "ActionsValidationError",
    "_refuse": "InvalidTxError",
    "_refuse_actions": "ActionsValidationError",
    "_refuse_key": "InvalidAccessKeyError",
    "refuse": "InvalidAccessKeyError",
}


def _made() -> list[tuple[str, str, list[str]]]:
    """List the calls in the source that make an error: the function, the variant, its members."""
    calls = []
    for name in ("actions.py", "transaction_validity.py"):
        for node in ast.walk(ast.parse((LOCALNET / name).read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            maker = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
            if maker in _MAKERS and node.args and isinstance(node.args[0], ast.Constant):
                fields = [each.arg for each in node.keywords if each.arg is not None]
                fields += {"fail": ["account_id"], "_limit": ["limit"]}.get(maker, [])
                calls.append((maker, str(node.args[0].value), fields))
    return calls


def test_every_variant_in_the_source_is_one_of_the_nodes() -> None:
    """Each error that the source makes is a variant of the node's, with just its members."""
    made = _made()
    assert len({variant for _, variant, _ in made}) >= 50
    for maker, variant, fields in made:
        members = strict_errors.variants(_MAKERS[maker])[variant]
        assert set(fields) == set(members or {}), variant


@pytest.mark.parametrize(
    "error",
    [
        {"InvalidSignature": {}},
        {"SignerDoesNotExist": {"signer_id": "a.near", "extra": 1}},
        {"SignerDoesNotExist": {}},
        {"LackBalanceForState": {"signer_id": "a.near", "amount": 1}},
        "Unheard",
    ],
)
def test_the_reader_is_strict(error: Any) -> None:
    """A unit variant with a payload, unknown and missing members and variants are refused."""
    with pytest.raises(AssertionError):
        strict_errors.read(error, "InvalidTxError")


def test_an_error_with_another_member_is_refused() -> None:
    """The member that the specification names is the reason for `--spec-errors`."""
    ledger = Ledger("alice.near", spec_errors=True)
    signed = ledger.sign("alice.near", "bob.near", Transfer(N), block=bytes(32))
    with pytest.raises(AssertionError, match="InvalidTransaction"):
        Http(ledger.world).cause("send_tx", [signed.to_base64()])
