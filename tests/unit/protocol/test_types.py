"""Account ids, hashes, keys, signatures and integers: what they take, tell and refuse."""

import pickle
from hashlib import sha3_256
from typing import Any

import base58
import numpy as np
import pytest
from Crypto.PublicKey import MLDSA as PYCRYPTODOME_KEYS
from Crypto.Signature import mldsa
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol import (
    AccountId,
    Balance,
    BlockHeight,
    CryptoHash,
    Gas,
    Nonce,
    PublicKey,
    ShardId,
    Signature,
    StateInit,
    action_hash,
    deterministic_account_id,
    eth_implicit_account_id,
    implicit_account_id,
    random_seed_of,
    receipt_id_of,
)
from ledgerkit.protocol import curves as engines

HEX = "0123456789abcdef"
ED = PublicKey("ed25519", bytes(32))
SECP = PublicKey("secp256k1", bytes(range(64)))
MLDSA = f"ml-dsa-65:{base58.b58encode(bytes([7]) * 1952).decode()}"


# Account ids ------------------------------------------------------------------------------


IDS = """
    ab 00 100 a-b a_b a.b a-b_c.d-e_f 10-4.8-2 alice.near a.b.c-d_e.near system
    0xab12ab12ab12ab12ab12ab12ab12ab12ab12ab12
    d9af67ff794a93e05bdba5c25ad7af027d72b3b76823051c0fb4b6e3e79ac51e
""".split()
NO_IDS: list[Any] = [
    *"a A1 A.near -near near- .a near. .near near@ a..b a--b a-_b a_-b a.-b a-.b ünïcode".split(),
    *["", "a" * 65, "not ok", "a\n", "ab\n", "a\0b", "\uff42ob.near", "\u0664\u0664", "x/?a=1"],
    *[None, 7, b"bob.near", ["bob.near"], float("nan")],
]


@pytest.mark.parametrize("text", [*IDS, "a" * 64])
def test_account_ids(text):
    """Two to 64 characters with single separators between them are an account id."""
    account = AccountId(text)
    assert account == text
    assert (type(str(account)), repr(account)) == (str, f"AccountId({text!r})")
    assert {text: 1}[account] == 1
    assert pickle.loads(pickle.dumps(account)) == account  # noqa: S301  # our own bytes


def test_no_account_ids(subtests):
    """Everything else is refused by the argument's name, with the rule."""
    for value in NO_IDS:
        with subtests.test(value=repr(value)):
            with pytest.raises(InvalidRequestError, match=r"^receiver_id ") as caught:
                AccountId(value, "receiver_id")
            assert (caught.value.field, caught.value.value) == ("receiver_id", value)
            assert caught.value.rule == (
                "2 to 64 characters: a-z, 0-9, and single - _ . between them"
            )


def test_kinds(subtests):
    """An id tells whether somebody chose it or what it is made of."""
    cases = [
        ("alice.near", "named"),
        ("near", "named"),
        (HEX * 4, "near-implicit"),
        ("0x" + HEX * 2 + "01234567", "eth-implicit"),
        ("0s" + HEX * 2 + "01234567", "deterministic"),
        (HEX * 3 + HEX[:15], "named"),
        ("0x" + HEX * 2 + "0123456", "named"),
        ("0x" + HEX * 2 + "0123456g", "named"),
        ("g" * 64, "named"),
        ("0u4bfkw2qvgfzbf7zzkxykcppqymn0p2hbayjee3ygzrbhmmtyejx0", "universal"),
        ("0u1kajgpx8a97y8ap8y03pvt8kbm2p2cn9k5h17bgw1wa21j88865g", "universal"),
        ("0u" + "0" * 51 + "1", "named"),  # its last symbol has bits that a hash has not
        ("0u" + "0" * 51, "named"),
        ("0u" + "0" * 53, "named"),
        ("0u" + "i" + "0" * 51, "named"),  # as l, o and u, no symbol
    ]
    for text, kind in cases:
        with subtests.test(text=text):
            assert AccountId(text).kind == kind


def test_families():
    """A sub-account has exactly one label more than its parent."""
    account = AccountId("c.a.near")

    assert account.parent == "a.near"
    assert account.is_sub_account_of("a.near")
    assert not account.is_sub_account_of("near")
    assert not AccountId("ca.near").is_sub_account_of("a.near")
    assert AccountId("near").parent is None
    assert AccountId("a.b").parent is None
    assert AccountId("near").is_top_level
    assert not AccountId(HEX * 4).is_top_level
    assert AccountId("system").is_system
    assert not account.is_system


# Hashes -----------------------------------------------------------------------------------


@given(st.binary(min_size=32, max_size=32))
def test_hashes(data):
    """A hash is its 32 bytes, and reads in base58 as the library base58 writes it."""
    value = CryptoHash(data)

    assert value == data
    assert str(value) == base58.b58encode(data).decode()
    assert CryptoHash(str(value)) == value
    assert repr(value) == f"CryptoHash({str(value)!r})"
    assert CryptoHash(bytearray(data)) == CryptoHash(memoryview(data)) == value


def test_no_hashes(subtests):
    """What has not 32 bytes is no hash."""
    cases: list[Any] = [
        *["", "1" * 31, "1" * 33, "1" * 45, "0" * 32, "z" * 44, " " + "1" * 32, "1" * 32 + "\n"],
        *[b"", bytes(31), bytes(33), None, 5],
    ]
    for value in cases:
        with subtests.test(value=value), pytest.raises(InvalidRequestError, match="32 bytes"):
            CryptoHash(value)


def test_hashing():
    """`of` is SHA-256."""
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

    assert CryptoHash.of(b"abc").hex() == expected
    assert type(CryptoHash.of(b"abc")) is CryptoHash


# Keys and signatures ------------------------------------------------------------------------


@given(st.sampled_from(["ed25519", "secp256k1"]), st.binary(min_size=65, max_size=65))
def test_texts(curve, data):
    """Keys and signatures survive their texts."""
    size = 32 if curve == "ed25519" else 64
    key = PublicKey(curve, data[:size])
    signature = Signature(curve, data[: 64 if curve == "ed25519" else 65])

    assert PublicKey.from_text(str(key)) == key
    assert Signature.from_text(str(signature)) == signature
    assert str(key) == f"{curve}:{base58.b58encode(data[:size]).decode()}"
    assert repr(key) == f"PublicKey.from_text({str(key)!r})"
    assert repr(signature) == f"Signature.from_text({str(signature)!r})"


def test_a_bare_key():
    """A key without its curve is ed25519."""
    assert PublicKey.from_text("1" * 32) == ED
    assert Signature.from_text("1" * 64) == Signature("ed25519", bytes(64))


def test_no_keys(subtests):
    """What is no key is refused, quickly and without being shown."""
    cases: list[Any] = [
        *["", "ed25519:", "ed25519:1", "secp256k1:" + "1" * 32, "ed448:" + "1" * 32],
        *["a:b:" + "1" * 32, "ed25519:" + "0" * 32, "ED25519:" + "1" * 32],
        *["ed25519:" + "1" * 10**6, None, 5],
    ]
    for text in cases:
        with subtests.test(text=text):
            with pytest.raises(InvalidRequestError) as caught:
                PublicKey.from_text(text)
            with pytest.raises(InvalidRequestError):
                Signature.from_text(text)

            assert caught.value.value is None


@pytest.mark.parametrize(("curve", "data"), [("ed25519", bytes(31)), ("x", bytes(32)), ("", b"")])
def test_no_bytes_of_keys(curve, data):
    """The size must be the curve's."""
    with pytest.raises(InvalidRequestError):
        PublicKey(curve, data)
    with pytest.raises(InvalidRequestError):
        Signature(curve, data)


def test_the_hash_of_a_key_is_carried_but_not_encoded():
    """The hash by which responses list an ML-DSA-65 key keeps its text; encoding it is refused."""
    text = "ml-dsa-65-hash:" + base58.b58encode(bytes([9]) * 32).decode()
    key = PublicKey.from_text(text)
    assert str(key) == text
    assert key.stored == b"\3" + bytes([9]) * 32
    assert PublicKey.from_stored(key.stored) == key
    with pytest.raises(InvalidRequestError, match="only read from responses"):
        key.encode()


def test_ml_dsa_in_borsh_and_in_the_state():
    """
    Tag 2 and 1952 or 3309 bytes; in the state, tag 3 and a hash that begins with its domain.

    Source: nearcore, core/crypto/src/signature.rs; the domain tag from hash_domain.rs.
    """
    key, signature = PublicKey.from_text(MLDSA), Signature("ml-dsa-65", bytes(3309))
    assert (str(key), str(Signature.from_text(str(signature)))) == (MLDSA, str(signature))
    assert key.encode() == b"\2" + bytes([7]) * 1952
    assert signature.encode() == b"\2" + bytes(3309)
    assert PublicKey.decode(key.encode()) == key
    assert Signature.decode(signature.encode()) == signature
    digest = sha3_256(b"near:ml-dsa-65-pubkey-hash:v1" + bytes([7]) * 1952).digest()
    assert key.stored == b"\3" + digest
    listed = f"ml-dsa-65-hash:{base58.b58encode(digest).decode()}"
    assert str(PublicKey.from_stored(key.stored)) == listed
    assert PublicKey("ed25519", bytes(32)).stored == bytes(33)


@pytest.mark.parametrize("seed", [bytes(32), bytes(range(32))])
def test_ml_dsa_signatures_of_another_implementation(seed):
    """What pycryptodome signs by FIPS 204, with an empty context, is verified; a change is not."""
    secret = PYCRYPTODOME_KEYS.construct(param_set=PYCRYPTODOME_KEYS.ML_DSA_65, seed=seed)
    message = bytes(range(32))
    signed = mldsa.new(secret, deterministic=True).sign(message)
    key = PublicKey("ml-dsa-65", secret.pk)
    assert key.verify(message, Signature("ml-dsa-65", signed))
    assert not key.verify(bytes(32), Signature("ml-dsa-65", signed))
    assert not key.verify(message, Signature("ml-dsa-65", signed[:-1] + bytes([signed[-1] ^ 1])))
    assert not key.verify(message, Signature("ed25519", signed[:63] + b"\0"))
    assert not PublicKey("ml-dsa-65", bytes(1952)).verify(message, Signature("ml-dsa-65", signed))


# Integers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        (Balance, 2**128 - 1),
        (Gas, 2**64 - 1),
        (Nonce, 2**64 - 1),
        (BlockHeight, 2**64 - 1),
        (ShardId, 2**64 - 1),
    ],
)
def test_integers(kind, most):
    """Each integer has its range, and reads the digits that answers write."""
    assert kind(most) == kind(str(most)) == most
    assert kind(np.uint8(7)) == 7
    assert isinstance(kind(0), int)
    for wrong in (-1, most + 1, str(most + 1), "1_0", " 1", "+1", "", "9" * 5000, 1.0, True, None):
        with pytest.raises(InvalidRequestError):
            kind(wrong)


# Ids ----------------------------------------------------------------------------------------


def test_ids_of_keys():
    """Each implicit id needs the key of its curve."""
    assert implicit_account_id(ED) == "0" * 64
    assert implicit_account_id(str(ED)).kind == "near-implicit"
    assert eth_implicit_account_id(SECP).kind == "eth-implicit"
    assert eth_implicit_account_id(SECP)[2:] == engines.keccak256(bytes(range(64)))[12:].hex()
    assert deterministic_account_id(StateInit("ab")).kind == "deterministic"
    with pytest.raises(InvalidRequestError, match="a key of the curve ed25519"):
        implicit_account_id(SECP)
    with pytest.raises(InvalidRequestError, match="a key of the curve secp256k1"):
        eth_implicit_account_id(ED)


def test_ids_of_receipts():
    """Salts count up for receipts and down for actions."""
    base = CryptoHash(bytes(32))
    first = bytes(32) + (5).to_bytes(8, "little")

    assert receipt_id_of(base, 5, 1) == CryptoHash.of(first + b"\1" + bytes(7))
    assert action_hash(base, 5, 1) == CryptoHash.of(first + b"\xfe" + b"\xff" * 7)
    assert random_seed_of(base, base) == CryptoHash.of(bytes(64))
    for wrong in [-1, 2**64]:
        with pytest.raises(InvalidRequestError):
            receipt_id_of(base, wrong, 0)
        with pytest.raises(InvalidRequestError):
            receipt_id_of(base, 0, wrong)
