"""Access keys and signatures of ML-DSA-65, which protocol version 85 brought."""

from __future__ import annotations

import sys

import pytest
from Crypto.PublicKey import MLDSA
from Crypto.Signature import mldsa

from ledgerkit.localnet.indexer import Indexer
from ledgerkit.protocol import (
    AccessKey,
    AddKey,
    DelegateAction,
    DeleteKey,
    FullAccess,
    PublicKey,
    Signature,
    SignedTransaction,
    Transaction,
    Transfer,
)
from ledgerkit.protocol.actions import Delegate
from tests.unit.localnet.ledger import START, Ledger, N, public, secret
from tests.unit.localnet.test_rpc_api import HEAD, ask, handler, packed, refusal, result

SECRET = MLDSA.construct(param_set=MLDSA.ML_DSA_65, seed=bytes(range(32)))
KEY = PublicKey("ml-dsa-65", SECRET.pk)
LISTED = str(PublicKey.from_stored(KEY.stored))
VERIFICATION = 100_000_000_000  # gas; nearcore, 85.yaml: ml_dsa_65_verification_cost


def ml_dsa(message: bytes) -> Signature:
    return Signature("ml-dsa-65", mldsa.new(SECRET, deterministic=True).sign(bytes(message)))


def signed(ledger: Ledger, *actions, receiver_id: str = "bob.near", nonce: int | None = None):
    """Build a transaction that alice.near signs with the key."""
    tx = Transaction(
        "alice.near",
        KEY,
        nonce or START * 10**6 + next(ledger.nonces),
        receiver_id,
        ledger.world.chain.head.hash,
        actions,
    )
    return SignedTransaction(tx, ml_dsa(tx.hash))


@pytest.fixture
def ledger() -> Ledger:
    """Start a chain on which alice.near has such a key."""
    ledger = Ledger("alice.near", "bob.near")
    before = ledger.account("alice.near").storage_usage
    ledger.run("alice.near", "alice.near", AddKey(KEY, AccessKey(0, FullAccess())))
    # 33 bytes in the state, 9 of an access key with full access, 40 of a record
    assert ledger.account("alice.near").storage_usage == before + 33 + 9 + 40
    return ledger


def test_a_transaction_by_such_a_key(ledger):
    """It is accepted and executed; verifying its signature costs 100 Ggas more."""
    sent = signed(ledger, Transfer(N))
    answer = result(ledger.world, "send_tx", {**send_params(sent), "wait_until": "FINAL"})
    plain = ledger.sign("alice.near", "bob.near", Transfer(N))
    other = result(ledger.world, "send_tx", {**send_params(plain), "wait_until": "FINAL"})
    burnt = [each["transaction_outcome"]["outcome"]["gas_burnt"] for each in (answer, other)]
    assert burnt[0] - burnt[1] == VERIFICATION
    assert answer["status"] == {"SuccessValue": ""}
    assert answer["transaction"]["public_key"] == str(KEY)
    assert answer["transaction"]["signature"] == str(sent.signature)
    assert ledger.is_whole()


def send_params(sent):
    return {"signed_tx_base64": sent.to_base64()}


def test_the_key_is_listed_by_its_hash(ledger):
    """A list has its hash, from which the next page starts too; a view takes the key itself."""
    where = {"account_id": "alice.near", **HEAD}
    listed = result(ledger.world, "query", {"request_type": "view_access_key_list", **where})
    assert [row["public_key"] for row in listed["keys"]] == [str(public("alice.near")), LISTED]
    page = {"request_type": "view_access_key_list", "after_key": LISTED, **where}
    assert result(ledger.world, "query", page)["keys"] == []
    view = {"request_type": "view_access_key", "public_key": str(KEY), **where}
    assert result(ledger.world, "query", view)["permission"] == "FullAccess"
    text = refusal(ledger.world, "query", {**view, "public_key": LISTED})
    assert text == "Failed parsing args: unknown key type 'ml-dsa-65-hash'"


def test_changes_and_the_index_of_keys(ledger):
    """A change names the hash; the REST API finds the account by the key."""
    ledger.world.settle()
    height = START + 1
    params = {
        "changes_type": "all_access_key_changes",
        "account_ids": ["alice.near"],
        "block_id": height,
    }
    keys = [
        row["change"]["public_key"] for row in result(ledger.world, "changes", params)["changes"]
    ]
    assert LISTED in keys
    indexer = Indexer(ledger.world)
    indexer.catch_up()
    assert indexer.keys.accounts(KEY) == ["alice.near"]


def test_a_wrong_signature_and_a_deleted_key(ledger):
    """Another hash's signature is invalid; a deleted key is not found."""
    sent = signed(ledger, Transfer(N))
    forged = SignedTransaction(sent.transaction, ml_dsa(bytes(32)))
    name, _, data = handler(ledger.world, "send_tx", packed(forged))
    assert (name, data) == (
        "INVALID_TRANSACTION",
        {"TxExecutionError": {"InvalidTxError": "InvalidSignature"}},
    )
    ledger.run("alice.near", "alice.near", DeleteKey(KEY))
    data = handler(ledger.world, "send_tx", packed(signed(ledger, Transfer(N))))[2]
    missing = data["TxExecutionError"]["InvalidTxError"]["InvalidAccessKeyError"]
    assert missing == {"AccessKeyNotFound": {"account_id": "alice.near", "public_key": str(KEY)}}


@pytest.mark.parametrize(("profile", "where"), [("86", "transaction"), ("87", "receipt")])
def test_a_delegated_action_by_such_a_key(profile, where):
    """The inner signature is charged to the relayer's transaction, from 87 to its receipt."""
    ledger = Ledger("alice.near", "bob.near", profile=profile)
    ledger.run("alice.near", "alice.near", AddKey(KEY, AccessKey(0, FullAccess())))
    burnt = {}
    for name, key in (("ml-dsa", KEY), ("ed25519", public("alice.near"))):
        nonce = START * 10**6 + 50
        inner = DelegateAction("alice.near", "bob.near", [Transfer(1)], nonce, 10**6, key)
        from_alice = ml_dsa(inner.hash) if key is KEY else None
        action = Delegate(inner, from_alice) if from_alice else inner.sign(secret("alice.near"))
        tx_hash = ledger.send("bob.near", "alice.near", action)
        ledger.world.settle()
        outcome = ledger.outcome(tx_hash)
        receipt = ledger.outcome(outcome.receipt_ids[0])
        burnt[name] = {"transaction": outcome.gas_burnt, "receipt": receipt.gas_burnt}
    assert {
        part: burnt["ml-dsa"][part] - burnt["ed25519"][part] for part in ("transaction", "receipt")
    } == {"transaction": 0, "receipt": 0} | {where: VERIFICATION}
    assert ledger.is_whole()


def test_without_the_library_the_refusal_names_the_extra(ledger, monkeypatch):
    """An internal error names what to install, for a transaction and for a delegated action."""
    inner = DelegateAction("alice.near", "bob.near", [Transfer(1)], 1, 10**6, KEY)
    relayed = ledger.sign("bob.near", "alice.near", Delegate(inner, ml_dsa(inner.hash)))
    library = "cryptography.hazmat.primitives.asymmetric.mldsa"
    monkeypatch.setitem(sys.modules, library, None)
    for sent in (signed(ledger, Transfer(N)), relayed):
        status, answer, _ = ask(ledger.world, "send_tx", packed(sent))
        assert (status, answer["error"]["name"]) == (500, "INTERNAL_ERROR")
        text = answer["error"]["cause"]["info"]["error_message"]
        assert text.startswith("An ML-DSA-65 signature needs cryptography: pip install")
        assert "ledgerkit[ml-dsa]" in text
