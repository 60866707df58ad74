"""The same bytes, hashes, signatures and ids as other implementations, and as the chain."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from ledgerkit import errors, protocol

SHARED = Path(__file__).resolve().parents[4] / "shared"
NUMBERS = ("deposit", "gas", "stake", "amount", "allowance", "balance", "nonce")


def load(name):
    """Read a JSON file of the shared folder; None where there is none."""
    path = SHARED / name
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def sent():
    """Return (name, base64) of each signed transaction among the recorded requests."""
    recorded = load("wire/samples/tx/signed_transactions.json") or []
    found = [(one["tx_hash"], one["signed_tx_base64"]) for one in recorded]
    for path in sorted((SHARED / "wire/samples/rpc").glob("*.request.json")):
        params = json.loads(path.read_text(encoding="utf-8"))["params"]
        encoded = params["signed_tx_base64"] if isinstance(params, dict) else params[0]
        found.append((path.name, encoded))
    return found


@pytest.fixture(scope="session")
def vectors():
    known = load("vectors/transactions.json")
    if known is None:
        pytest.skip("the vectors are not beside this checkout")
    return known


@pytest.fixture(scope="session")
def recordings():
    """Return the recorded transactions with their fields, or skip."""
    known = load("wire/samples/tx/signed_transactions.json")
    if known is None:
        pytest.skip("the recordings are not beside this checkout")
    return known


def plain(fields):
    values: dict[str, Any] = {
        k: int(v) if k in NUMBERS and v is not None else v for k, v in fields.items()
    }
    for name in ("args", "code"):
        if isinstance(values.get(name), str):
            values[name] = base64.b64decode(values[name])
    return values


def contract(named):
    return protocol.CryptoHash(named["CodeHash"]) if "CodeHash" in named else named["AccountId"]


def access_key(fields):
    permission = fields["permission"]
    if permission == "FullAccess":
        return protocol.AccessKey(fields["nonce"], protocol.FullAccess())
    [(kind, body)] = permission.items()
    classes = {
        "FunctionCall": protocol.FunctionCallPermission,
        "GasKeyFunctionCall": protocol.GasKeyFunctionCall,
        "GasKeyFullAccess": protocol.GasKeyFullAccess,
    }
    return protocol.AccessKey(fields["nonce"], classes[kind](**plain(body)))


def delegated(fields):
    return protocol.DelegateAction(**fields | {"actions": [action(a) for a in fields["actions"]]})


def delegated_v2(fields):
    nonce = fields["nonce"]["Nonce"]["nonce"]
    changed = {"actions": [action(a) for a in fields["actions"]], "nonce": nonce}
    return protocol.DelegateActionV2(**fields | changed)


def action(view):
    [(name, fields)] = view.items()
    builders = {
        "AddKey": lambda: protocol.AddKey(fields["public_key"], access_key(fields["access_key"])),
        "UseGlobalContract": lambda: protocol.UseGlobalContract(
            contract(fields["contract_identifier"])
        ),
        "DeterministicStateInit": lambda: protocol.DeterministicStateInit(
            state_init(fields["state_init"]), int(fields["deposit"])
        ),
        "Delegate": lambda: protocol.Delegate(
            delegated(fields["delegate_action"]), fields["signature"]
        ),
        "DelegateV2": lambda: protocol.DelegateV2(
            delegated_v2(fields["delegate_action"]["V2"]), fields["signature"]
        ),
    }
    if name in builders:
        return builders[name]()
    return getattr(protocol, name)(**plain(fields))


def state_init(view):
    first = view["V1"]
    data = {base64.b64decode(k): base64.b64decode(v) for k, v in first["data"].items()}
    return protocol.StateInit(contract(first["code"]), data)


def build(vector):
    return protocol.Transaction(
        vector["signer_id"],
        vector["public_key"],
        int(vector["nonce"]),
        vector["receiver_id"],
        vector["block_hash"],
        [action(view) for view in vector["actions"]],
        version=1 if vector["version"] == "V1" else 0,
        nonce_index=vector.get("nonce_index"),
        nonce_mode=vector.get("nonce_mode", "monotonic"),
    )


def keys(vectors):
    return {key["name"]: protocol.SecretKey.from_text(key["secret_key"]) for key in vectors["keys"]}


def test_transactions(vectors, subtests):
    """Built, signed and read, a transaction is that of other implementations."""
    secret_keys = keys(vectors)
    for vector in vectors["transactions"]:
        with subtests.test(name=vector["name"]):
            tx = build(vector)
            check_unsigned(tx, vector)
            check_signed(tx.sign(secret_keys[vector["signer_key"]]), vector)
            read = protocol.SignedTransaction.from_base64(vector["signed_base64"])
            assert read.transaction == tx
            assert read.encode().hex() == vector["signed_borsh_hex"]
            assert read.verify()


def check_unsigned(tx, vector):
    """Compare the bytes and the hash of a transaction that was built from its fields."""
    assert tx.encode().hex() == vector["unsigned_borsh_hex"]
    assert tx.size == vector["size"]
    assert str(tx.hash) == vector["hash"]
    assert tx.hash.hex() == vector["hash_hex"]


def check_signed(signed, vector):
    """Compare the signature of either curve, and the bytes with it."""
    assert str(signed.signature) == vector["signature"]
    assert signed.signature.encode().hex() == vector["signature_borsh_hex"]
    assert signed.encode().hex() == vector["signed_borsh_hex"]
    assert signed.to_base64() == vector["signed_base64"]
    assert (signed.size, signed.wire_size) == (vector["size"], vector["wire_size"])


def test_what_the_chain_took_reads_and_verifies(subtests):
    """Transactions recorded on public networks verify and re-encode to the same bytes."""
    for name, encoded in sent():
        with subtests.test(name=name):
            signed = protocol.SignedTransaction.from_base64(encoded)
            assert signed.verify()
            assert signed.to_base64() == encoded


def test_recorded_fields(recordings):
    """Recorded transactions have the hash, key, nonce and signature that the node answered."""
    for record in recordings:
        signed = protocol.SignedTransaction.from_base64(record["signed_tx_base64"])
        tx = signed.transaction

        assert str(signed.hash) == record["tx_hash"]
        assert str(signed.signature) == record["signature"]
        assert str(tx.public_key) == record["public_key"]
        assert (tx.signer_id, tx.receiver_id) == (record["signer_id"], record["receiver_id"])
        assert (tx.nonce, str(tx.block_hash)) == (record["nonce"], record["block_hash"])


def test_keys(vectors):
    """Secret keys have the public keys, texts and bytes of other implementations."""
    for known in vectors["keys"]:
        key = protocol.SecretKey.from_text(known["secret_key"])

        assert str(key.public_key) == known["public_key"]
        assert key.public_key.encode().hex() == known["public_key_borsh_hex"]
        assert key.reveal() == known["secret_key"]
        assert protocol.PublicKey.from_text(known["public_key"]) == key.public_key


def test_account_ids(vectors):
    """Account ids made of keys and of state are the chain's."""
    expected = vectors["account_ids"]
    own = keys(vectors)
    made = protocol.StateInit("alice.near", {b"STATE": b"hello"})

    assert (
        protocol.implicit_account_id(own["alice"].public_key) == expected["near_implicit_of_alice"]
    )
    assert protocol.implicit_account_id(own["bob"].public_key) == expected["near_implicit_of_bob"]
    assert (
        protocol.eth_implicit_account_id(own["eth"].public_key) == expected["eth_implicit_of_eth"]
    )
    assert made.encode().hex() == expected["deterministic"]["state_init_borsh_hex"]
    assert protocol.deterministic_account_id(made) == expected["deterministic"]["account_id"]


def test_delegates(vectors):
    """What is signed in a delegated action has the bytes and hashes of other implementations."""
    bob = keys(vectors)["bob"]
    first, second = vectors["delegate"], vectors["delegate_v2"]
    inner = delegated(first["inner"])
    later = protocol.DelegateActionV2(
        inner.sender_id, inner.receiver_id, inner.actions, 78, 200_000_000, bob.public_key
    )

    assert inner.encode().hex() == first["signed_message_hex"][8:]
    assert str(inner.hash) == first["hash"]
    assert str(inner.sign(bob).signature) == first["signature"]
    assert inner.sign(bob).verify()
    message, signature = bytes.fromhex(first["signed_message_hex"]), inner.sign(bob).signature
    signed = message[4:] + signature.encode()  # a Borsh SignedDelegate
    assert protocol.Delegate.from_bytes(signed) == inner.sign(bob)
    assert protocol.Delegate.from_base64(base64.b64encode(signed).decode()) == inner.sign(bob)
    assert later.encode().hex() == second["signed_message_hex"][8:]
    assert str(later.hash) == second["hash"]
    assert str(later.sign(bob).signature) == second["signature"]
    assert later.sign(bob).verify()


def test_a_delegate_of_a_wallet():
    """What wallets exchange is a SignedDelegate, without the tag that it has as an action."""
    # Source: nearcore, core/primitives/src/action/delegate.rs, DELEGATE_ACTION_HEX, without its 08.
    head = "03000000616161030000006262620100000000010000000000000002"
    text = base64.b64encode(bytes.fromhex(head).ljust(133, b"\0")).decode()
    signed = protocol.Delegate.from_base64(text)
    inner = signed.delegate_action
    assert (inner.sender_id, inner.receiver_id, inner.nonce) == ("aaa", "bbb", 1)
    assert (inner.actions, inner.max_block_height) == ((protocol.CreateAccount(),), 2)
    assert not signed.verify()
    for wrong in (text[:-4], "AAAA" + text, text + " ", "x"):
        with pytest.raises(errors.DecodeError):
            protocol.Delegate.from_base64(wrong)


def test_message_for_a_service(vectors):
    """An off-chain message has the hash and signature that wallets make."""
    known = vectors["nep413"]
    key = keys(vectors)[known["signer_key"]]
    nonce = bytes.fromhex(known["nonce_hex"])
    message = protocol.OffchainMessage(
        known["message"], nonce, known["recipient"], known["callback_url"]
    )
    signature = message.sign(key)

    assert message.hash.hex() == known["hash_hex"]
    assert base64.b64encode(signature.data).decode() == known["signature_base64"]
    assert message.verify(key.public_key, signature)


def test_receipt_ids(vectors):
    """Receipts, action hashes and data ids follow from their creators."""
    known = vectors["receipt_ids"]
    receipt_id = protocol.receipt_id_of(known["tx_hash"], known["included_height"], 0)
    height = known["executed_height"]
    first = protocol.action_hash(receipt_id, height, 0)

    assert str(receipt_id) == known["receipt_id"]
    assert [str(protocol.receipt_id_of(receipt_id, height, n)) for n in range(3)] == known[
        "child_receipt_ids"
    ]
    assert str(first) == known["action_hash_index0"]
    assert str(protocol.action_hash(receipt_id, height, 1)) == known["action_hash_index1"]
    assert [str(protocol.data_id(first, height, n)) for n in range(2)] == known[
        "data_ids_of_action0"
    ]


@pytest.mark.parametrize("curve", ["alice", "eth"])
def test_another_transaction_does_not_verify(vectors, curve):
    """A signature is of one transaction only."""
    key = keys(vectors)[curve]
    block_hash = vectors["block_hash"]["base58"]
    fields = ("alice.near", key.public_key, 1, "bob.near", block_hash)
    signed = protocol.Transaction(*fields, [protocol.Transfer(1)]).sign(key)
    other = protocol.Transaction(*fields, [protocol.Transfer(2)])

    assert signed.verify()
    assert not protocol.SignedTransaction(other, signed.signature).verify()
    assert not protocol.SignedTransaction(other, protocol.Signature("ed25519", bytes(64))).verify()
