"""Transactions as users meet them: built of plain values, shown, tabulated, refused."""

import dataclasses
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from ledgerkit import protocol
from ledgerkit.errors import DecodeError, InvalidRequestError

KEY = protocol.SecretKey.from_text("ed25519:4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi")
PUBLIC = KEY.public_key
BLOCK = protocol.CryptoHash(bytes(32))
CALL = protocol.FunctionCall("ft_transfer", b'{"receiver_id":"b.near"}', 30 * 10**12, 1)
MLDSA_HASH = protocol.PublicKey("ml-dsa-65-hash", bytes(32))


def tx(*actions, **options):
    return protocol.Transaction("alice.near", PUBLIC, 7, "bob.near", BLOCK, actions, **options)


def test_plain_values_become_checked_ones():
    """Texts of ids, keys and hashes are read once, numbers of any kind become plain ones."""
    nonce: Any = np.uint64(7)
    paid = protocol.Transfer(protocol.Balance(1))
    built = protocol.Transaction("alice.near", str(PUBLIC), nonce, "bob.near", str(BLOCK), [paid])

    assert built == tx(protocol.Transfer(1))
    assert type(built.signer_id) is protocol.AccountId
    assert type(built.public_key) is protocol.PublicKey
    assert type(built.block_hash) is protocol.CryptoHash
    assert type(built.nonce) is int
    assert type(paid.deposit) is int
    assert built.actions == (protocol.Transfer(1),)


def test_refused_fields(subtests):
    """A field of another kind or range is refused by its name, before anything is signed."""
    cases: list[Any] = [
        ("signer_id", "Alice"),
        ("signer_id", None),
        ("public_key", "ed25519:1"),
        ("public_key", MLDSA_HASH),
        ("nonce", -1),
        ("nonce", 2**64),
        ("nonce", 1.0),
        ("nonce", True),
        ("receiver_id", ""),
        ("block_hash", b"short"),
        ("actions", protocol.Transfer(1)),
        ("actions", ["Transfer"]),
        ("actions", "ab"),
        ("version", 2),
        ("version", "1"),
        ("nonce_mode", "eager"),
        ("nonce_index", 2**16),
    ]
    for field, value in cases:
        with subtests.test(field=field):
            fields: dict[str, Any] = {
                "signer_id": "alice.near",
                "public_key": PUBLIC,
                "nonce": 7,
                "receiver_id": "bob.near",
                "block_hash": BLOCK,
                "actions": [],
                "version": 1,
            }
            with pytest.raises(InvalidRequestError) as caught:
                protocol.Transaction(**fields | {field: value})

            assert caught.value.field == field


@pytest.mark.parametrize("options", [{"nonce_index": 0}, {"nonce_mode": "strict"}])
def test_the_first_version_has_no_lanes(options):
    """A lane or a strict nonce needs the second version, said in so many words."""
    with pytest.raises(InvalidRequestError, match="version 0 is not valid") as caught:
        tx(**options)

    assert caught.value.field == "version"


RELAYED = protocol.DelegateAction("ab", "cd", [], 1, 1, PUBLIC).sign(KEY)
REFUSED: dict[str, tuple[Any, ...]] = {
    "transfer": (protocol.Transfer, 2**128),
    "negative": (protocol.Transfer, -1),
    "float": (protocol.Transfer, 1.0),
    "gas": (protocol.FunctionCall, "m", b"", 2**64),
    "args": (protocol.FunctionCall, "m", "{}", 1),
    "method": (protocol.FunctionCall, b"m", b"", 1),
    "surrogate": (protocol.FunctionCall, "\ud800", b"", 1),
    "code": (protocol.DeployContract, "wasm"),
    "mode": (protocol.DeployGlobalContract, b"", "Hash"),
    "identifier": (protocol.UseGlobalContract, "B@D"),
    "stake key": (protocol.Stake, 1, MLDSA_HASH),
    "access key": (protocol.AddKey, PUBLIC, "FullAccess"),
    "permission": (protocol.AccessKey, 0, "FullAccess"),
    "names": (protocol.FunctionCallPermission, None, "ab", "method"),
    "lanes": (protocol.GasKeyFullAccess, 0, 2**16),
    "state": (protocol.DeterministicStateInit, {}, 1),
    "records": (protocol.StateInit, "ab", [(b"k", b"v")]),
    "record": (protocol.StateInit, "ab", {"k": b"v"}),
    "beneficiary": (protocol.DeleteAccount, ""),
    "delegated in turn": (protocol.DelegateAction, "ab", "cd", [RELAYED], 1, 1, PUBLIC),
    "service's nonce": (protocol.OffchainMessage, "m", b"short", "r"),
    "no signature": (protocol.SignedTransaction, tx(), "ed25519:1"),
    "no transaction": (protocol.SignedTransaction, b"", "ed25519:" + "1" * 64),
}


def test_refused_actions(subtests):
    """An action with a value that its bytes cannot hold is refused where it is made."""
    for name, (kind, *values) in REFUSED.items():
        with subtests.test(name=name), pytest.raises(InvalidRequestError):
            kind(*values)


def test_frozen():
    """What was checked does not change afterwards."""
    built = tx(protocol.Transfer(1))
    for value, field in ((built, "nonce"), (built.actions[0], "deposit"), (PUBLIC, "data")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field, 5)


def test_lists_are_copied():
    """A list that changes later changes no transaction."""
    actions, names = [protocol.Transfer(1)], ["a"]
    built = protocol.Transaction("alice.near", PUBLIC, 7, "bob.near", BLOCK, actions)
    permission = protocol.FunctionCallPermission(None, "ab", names)
    actions.append(protocol.Transfer(2))
    names.append("b")

    assert built.actions == (protocol.Transfer(1),)
    assert permission.method_names == ("a",)


def test_hash_and_size():
    """Hash and size are of the unsigned bytes, whose form is computed once."""
    built = tx(protocol.Transfer(1))
    signed = built.sign(KEY)

    assert built.hash == protocol.CryptoHash.of(built.encode()) == signed.hash
    assert (built.size, signed.size) == (len(built.encode()), len(built.encode()))
    assert signed.wire_size == built.size + 65
    assert built.encode() is built.encode()


def test_pickles():
    """A signed transaction, which holds no secret, can be sent to another process."""
    signed = tx(CALL, protocol.DeterministicStateInit(protocol.StateInit("ab", {b"k": b"v"}))).sign(
        KEY
    )

    assert pickle.loads(pickle.dumps(signed)) == signed  # noqa: S301  # our own bytes
    assert hash(pickle.loads(pickle.dumps(signed))) == hash(signed)  # noqa: S301  # as above


def test_replaced():
    """A transaction signed anew with another nonce has the new bytes, not remembered ones."""
    built = tx(protocol.Transfer(1))
    before = built.sign(KEY)
    after = dataclasses.replace(built, nonce=8).sign(KEY)

    assert after.transaction.nonce == 8
    assert after.verify()
    assert after.hash != before.hash


def test_base64():
    """Signed or not, a transaction survives its base64."""
    built = tx(protocol.Transfer(1), CALL)

    assert protocol.Transaction.from_base64(built.to_base64()) == built
    assert protocol.SignedTransaction.from_base64(built.sign(KEY).to_base64()) == built.sign(KEY)
    with pytest.raises(DecodeError):
        protocol.SignedTransaction.from_base64(built.to_base64())
    with pytest.raises(DecodeError):
        protocol.Transaction.from_base64(built.sign(KEY).to_base64())


def test_no_base64(subtests):
    """Base64 has one spelling; anything else is a DecodeError."""
    cases = [
        lambda text: text + "\n",
        lambda text: " " + text,
        lambda text: text[:-1],
        lambda text: text + "====",
        lambda _: "",
        lambda text: "é" + text,
        lambda text: text.replace("A", "-", 1),
        lambda _: None,
    ]
    for case, spoil in enumerate(cases):
        with subtests.test(case=case):
            with pytest.raises(DecodeError) as caught:
                protocol.SignedTransaction.from_base64(
                    spoil(tx(protocol.Transfer(1)).sign(KEY).to_base64())
                )

            assert caught.value.path


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (
            tx(protocol.Transfer(10**23)),
            "<Transaction alice.near -> bob.near: Transfer 0.1 NEAR; nonce 7>",
        ),
        (
            tx(CALL),
            "<Transaction alice.near -> bob.near: ft_transfer() with 30 Tgas and 1 yocto; nonce 7>",
        ),
        (tx(), "<Transaction alice.near -> bob.near: no actions; nonce 7>"),
        (
            tx(*[protocol.CreateAccount()] * 6, version=1, nonce_index=3, nonce_mode="strict"),
            (
                "<Transaction alice.near -> bob.near: CreateAccount, CreateAccount,"
                " CreateAccount, CreateAccount, 2 more; strict nonce 7 at index 3>"
            ),
        ),
    ],
    ids=range(4),
)
def test_repr(built, text):
    """A transaction reads as what it does."""
    assert repr(built) == text
    assert repr(built.sign(KEY)) == f"<Signed{text[1:-1]}, hash {built.hash}>"


def test_long_bytes_are_counted():
    """Code of megabytes does not fill a notebook."""
    code = b"\0asm" * 10**6

    assert repr(protocol.DeployContract(code)) == "DeployContract(code=<4000000 bytes>)"
    assert len(repr(tx(protocol.FunctionCall("m" * 10**5, code, 1)))) < 200
    assert repr(protocol.DeployGlobalContract(b"\0", "CodeHash")) == (
        "DeployGlobalContract(code=b'\\x00', deploy_mode='CodeHash')"
    )


def test_to_frame():
    """One row with exact amounts, as the transactions of a block are tabulated."""
    relayed = protocol.DelegateAction(
        "bob.near", "cd", [protocol.Transfer(2**127), CALL], 1, 1, PUBLIC
    ).sign(KEY)
    built = tx(protocol.Transfer(2**127), relayed, CALL)
    frame = built.sign(KEY).to_frame()
    row = frame.iloc[0]

    assert frame.shape == (1, 13)
    assert row["tx_hash"] == str(built.hash)
    assert row["actions"] == "Transfer+Delegate+FunctionCall"
    assert row["method_name"] == "ft_transfer+ft_transfer"
    assert row["deposit"] == 2**127 + 1
    assert row["gas_attached"] == 60 * 10**12
    assert (row["nonce"], row["signer_id"], row["kind"]) == (7, "alice.near", "signed")
    assert frame["block_height"].isna().all()
    assert str(frame["nonce"].dtype) == "UInt64"


def test_import_is_light():
    """The package loads no library to read, build and encode; signing loads one."""
    code = (
        "import sys, ledgerkit.protocol as p\n"
        "t = p.Transaction('ab', p.PublicKey('ed25519', bytes(32)), 1, 'cd', bytes(32), [])\n"
        "p.Transaction.decode(t.encode())\n"
        "heavy = {'nacl', 'coincurve', 'base58', 'Crypto', 'pandas', 'numpy', 'httpx', 'msgspec'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
