"""Secret keys: made and read right, and in no place where somebody could find them."""

import copy
import hashlib
import hmac
import json
import logging
import pickle
import sys
import traceback
from typing import Any

import base58
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.errors import InvalidRequestError, LedgerError
from ledgerkit.protocol import Credentials, CryptoHash, PublicKey, SecretKey, Transaction, Transfer
from ledgerkit.protocol import curves as engines

SEED = bytes([1] * 32)
ALICE = (
    "ed25519:"
    "2AXDGYSE4f2sz7tvMMzyHvUfcoJmxudvdhBcmiUSo6iuCXagjUCKEQF21awZnUGxmwD4m9vGXuC3qieHXJQHAcT"
)
ALICE_PUBLIC = "ed25519:AKnL4NNf3DGWZJS6cPknBuEGnVsV4A4m5tgebLHaRSZ9"
ETH = "secp256k1:CktRuQ2mttgRGkXJtyksdKHjUdc2C4TgDzyB98oEzy8"
PHRASE = (
    "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
)
NEAR_STEPS = [44, 397, 0]
BOTH = pytest.mark.parametrize("text", [ALICE, ETH], ids=["ed25519", "secp256k1"])


def slip10(seed, steps):
    """Derive an ed25519 seed by hand, step by hardened step."""
    digest = hmac.digest(b"ed25519 seed", seed, "sha512")
    for step in steps:
        data = b"\0" + digest[:32] + (step + 2**31).to_bytes(4, "big")
        digest = hmac.digest(digest[32:], data, "sha512")
    return digest[:32]


def of_phrase(phrase, steps, passphrase=""):
    """Derive the text of a phrase's secret key by hand."""
    salt = b"mnemonic" + passphrase.encode()
    seed = slip10(hashlib.pbkdf2_hmac("sha512", phrase.encode(), salt, 2048), steps)
    return SecretKey.from_text(f"ed25519:{base58.b58encode(seed).decode()}")


def test_the_derivation_by_hand_is_the_published_one():
    """What the tests compare with gives the published vectors of BIP-39 and SLIP-10."""
    seed = bytes(range(16))
    salted = hashlib.pbkdf2_hmac("sha512", PHRASE.encode(), b"mnemonicTREZOR", 2048)

    assert slip10(seed, []).hex().startswith("2b4be7f19ee27bbf30c667b642d5f4aa")
    assert slip10(seed, [0]).hex().startswith("68e0fe46dfb67e368c75379acec591da")
    assert salted.hex().startswith("c55257c360c07c72029aebc1b53c05ed")


# Making and reading ------------------------------------------------------------------------


def test_reading_ed25519():
    """A key reads from its pair or its seed, with or without its curve, and shows the pair."""
    seed = base58.b58encode(SEED).decode()
    bare = ALICE.removeprefix("ed25519:")

    for text in (ALICE, bare, seed, f"ed25519:{seed}"):
        key = SecretKey.from_text(text)
        assert (key.curve, key.reveal(), str(key.public_key)) == ("ed25519", ALICE, ALICE_PUBLIC)


@BOTH
def test_signing(text):
    """A signature verifies for its hash and key, and for no other."""
    key, other = SecretKey.from_text(text), SecretKey.generate()
    message = hashlib.sha256(b"a").digest()
    signature = key.sign(message)

    assert key.public_key.verify(message, signature)
    assert key.sign(message) == signature
    assert not key.public_key.verify(hashlib.sha256(b"b").digest(), signature)
    assert not other.public_key.verify(message, signature)
    assert not key.public_key.verify(b"short", signature)


@BOTH
def test_every_damage_of_a_signature(text):
    """A signature with any bit flipped does not verify, and raises nothing."""
    key, message = SecretKey.from_text(text), bytes(range(32))
    signature = key.sign(message)
    whole = signature.data[:64]
    for at in range(64):
        damaged = whole[:at] + bytes([whole[at] ^ 1]) + signature.data[at + 1 :]
        assert not key.public_key.verify(message, type(signature)(key.curve, damaged))


def test_secp256k1_signs_the_hash_itself():
    """The public key can be recovered from hash and signature, without a second hashing."""
    import coincurve

    key, message = SecretKey.from_text(ETH), bytes(range(32))
    signature = key.sign(message).data
    recovered = coincurve.PublicKey.from_signature_and_message(signature, message, hasher=None)

    assert recovered.format(compressed=False)[1:] == key.public_key.data
    assert signature[64] in range(4)


def test_the_high_form_of_a_signature_is_refused():
    """Of the two forms of a secp256k1 signature only the low one verifies, as on the chain."""
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    key, message = SecretKey.from_text(ETH), bytes(range(32))
    signature = key.sign(message)
    r, s, v = signature.data[:32], int.from_bytes(signature.data[32:64], "big"), signature.data[64]
    high = type(signature)("secp256k1", r + (order - s).to_bytes(32, "big") + bytes([v ^ 1]))
    beyond = type(signature)("secp256k1", signature.data[:64] + b"\4")

    assert not key.public_key.verify(message, high)
    assert not key.public_key.verify(message, beyond)
    assert not PublicKey("secp256k1", bytes(64)).verify(message, signature)


@pytest.mark.parametrize("curve", ["ed25519", "secp256k1"])
def test_generating(curve):
    """New keys differ, sign, and survive their text."""
    one, other = SecretKey.generate(curve), SecretKey.generate(curve)

    assert one != other
    assert one.curve == one.public_key.curve == curve
    assert SecretKey.from_text(one.reveal()) == one


@pytest.mark.parametrize("path", ["m/44'/397'/0'", "m/44'/397'/0'/0'/1'", "m/0'"])
@pytest.mark.parametrize("passphrase", ["", "TREZOR"])
def test_seed_phrases(path, passphrase):
    """A phrase gives the key that BIP-39 and SLIP-10 say, in any case and spacing."""
    steps = [int(step.rstrip("'")) for step in path.split("/")[1:]]
    expected = of_phrase(PHRASE, steps, passphrase)
    untidy = f"  {PHRASE.upper()} \n".replace(" ABOUT", "\t ABOUT")

    assert SecretKey.from_seed_phrase(PHRASE, path, passphrase) == expected
    assert SecretKey.from_seed_phrase(untidy, path, passphrase) == expected


def test_the_path_of_wallets():
    """Without a path the key is the one that NEAR wallets derive."""
    assert SecretKey.from_seed_phrase(PHRASE) == of_phrase(PHRASE, NEAR_STEPS)


def test_no_path(subtests):
    """ed25519 has hardened steps only."""
    paths: list[Any] = ["", "m", "44'/397'/0'", "m/44/397/0", "m/2147483648'", "m/٤'", None]
    for path in paths:
        with subtests.test(path=path):
            with pytest.raises(InvalidRequestError) as caught:
                SecretKey.from_seed_phrase(PHRASE, path)

            assert caught.value.field == "path"


def credentials(**changes):
    fields = {"account_id": "alice.near", "public_key": ALICE_PUBLIC, "private_key": ALICE}
    return json.dumps({k: v for k, v in (fields | changes).items() if v is not None})


def test_credentials():
    """A NEAR CLI file gives its account id and key, under either name of the key."""
    found = Credentials.from_text(credentials())
    renamed = credentials(private_key=None, secret_key=ALICE)

    assert (found.account_id, found.secret_key.reveal()) == ("alice.near", ALICE)
    assert SecretKey.from_credentials(renamed.encode()).reveal() == ALICE
    assert Credentials.from_text(credentials(account_id=None)).account_id is None
    assert ALICE not in repr(found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        b"\xff",
        credentials(public_key="ed25519:9hSR6S7WPtxmTojgo6GG3k4yDPecgJY292j7xrsUGWBu"),
        credentials(public_key=None),
        credentials(public_key=ALICE),
        credentials(private_key=None),
        credentials(private_key=5),
        credentials(private_key=ALICE[:-1]),
    ],
    ids=range(12),
)
def test_no_credentials(text):
    """A file that is none, or whose keys are no pair, is refused and not shown."""
    for read in (Credentials.from_text, SecretKey.from_credentials):
        with pytest.raises(InvalidRequestError) as caught:
            read(text)
        assert caught.value.field == "credentials"
        assert caught.value.value is None


# Never shown -----------------------------------------------------------------------------

WRONG_PAIR = base58.b58encode(SEED + bytes(32)).decode()
BEYOND = base58.b58encode(b"\xff" * 32).decode()


def attempts():
    """Return what goes wrong with a secret in hand: a name, the secret, and the call."""
    typo, doubled = ALICE[:-1] + "1", ALICE * 2
    words = PHRASE.replace("about", "zebra")
    mismatch = credentials(public_key="ed25519:9hSR6S7WPtxmTojgo6GG3k4yDPecgJY292j7xrsUGWBu")
    broken = credentials()[:-1]
    pair = f"ed25519:{WRONG_PAIR}"
    huge = f"secp256k1:{BEYOND}"
    other_curve = ALICE.replace("ed25519", "ed448")
    return {
        "typo": (typo, lambda: SecretKey.from_text(typo)),
        "twice": (doubled, lambda: SecretKey.from_text(doubled)),
        "no pair": (pair, lambda: SecretKey.from_text(pair)),
        "beyond the group": (huge, lambda: SecretKey.from_text(huge)),
        "unknown curve": (other_curve, lambda: SecretKey.from_text(other_curve)),
        "as a public key": (ALICE, lambda: PublicKey.from_text(ALICE)),
        "into the constructor": (ALICE, lambda: anything(SecretKey)(ALICE)),
        "wrong word": (words, lambda: SecretKey.from_seed_phrase(words)),
        "wrong path": (PHRASE, lambda: SecretKey.from_seed_phrase(PHRASE, "m/0")),
        "not of this pair": (mismatch, lambda: SecretKey.from_credentials(mismatch)),
        "broken file": (broken, lambda: Credentials.from_text(broken)),
        "wrong message": (ALICE, lambda: SecretKey.from_text(ALICE).sign(b"short")),
        "not its transaction": (
            ALICE,
            lambda: Transaction(
                "ab", SecretKey.generate().public_key, 1, "ab", CryptoHash(bytes(32)), []
            ).sign(SecretKey.from_text(ALICE)),
        ),
    }


def anything(kind: Any) -> Any:
    """Hide from the type checker what is passed on purpose."""
    return kind


def parts(secret):
    """Return the pieces by which a secret would be recognised."""
    body = secret.partition(":")[2] or secret
    return [body[at : at + 12] for at in range(0, max(1, len(body) - 11), 6)]


def reported(error):
    """Return the text of a traceback with locals, without the caller's frame."""
    chain: Any = traceback.TracebackException.from_exception(error, capture_locals=True)
    kept = []
    while chain is not None:
        kept += [repr(frame.locals) for frame in chain.stack if frame.filename != __file__]
        kept += chain.format_exception_only()
        chain = chain.__context__ or chain.__cause__
    details = getattr(error, "__dict__", {})
    return "\n".join([*kept, repr(error), str(error), repr(details), repr(error.args)])


@pytest.mark.parametrize("name", attempts())
def test_no_error_shows_a_secret(name):
    """Nothing of a secret is in the sentence, the attributes or a frame's local variables."""
    secret, attempt = attempts()[name]
    with pytest.raises((LedgerError, TypeError)) as caught:
        attempt()
    report = reported(caught.value)

    # A file holds public parts too: only its key is looked for.
    hidden = ALICE if secret.startswith("{") else secret
    if hidden == PHRASE:
        assert "abandon" not in report
    else:
        assert [part for part in parts(hidden) if part in report] == []


@BOTH
def test_never_in_a_repr(text, caplog):
    """Neither a key nor what holds it shows the secret, in any way of printing."""
    key = SecretKey.from_text(text)
    tx = Transaction("alice.near", key.public_key, 1, "bob.near", CryptoHash(bytes(32)), [])
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("test").debug("%s %r %s", key, [key], {"key": key})
    found = Credentials(None, key)
    printed = [repr(key), str(key), f"{key}", repr(found), repr(tx.sign(key)), caplog.text]
    printed += [repr(getattr(key, name, "")) for name in dir(key) if name != "reveal"]

    assert repr(key) == f"<SecretKey {key.curve}:… hidden>"
    assert [part for part in parts(text) if any(part in line for line in printed)] == []
    assert not hasattr(key, "__dict__")


@BOTH
def test_never_pickled(text):
    """Pickling a key, or what holds one, is refused."""
    key = SecretKey.from_text(text)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for holder in (key, [key], Credentials(None, key)):
            with pytest.raises(TypeError, match="never pickled"):
                pickle.dumps(holder, protocol)


def test_a_key_does_not_change():
    """No attribute of a key can be set, so that its two halves stay together."""
    key: Any = SecretKey.from_text(ALICE)
    for name in ("public_key", "curve", "other"):
        with pytest.raises(AttributeError, match=f"{name} cannot be set"):
            setattr(key, name, ALICE)


def test_copies_are_the_key_itself():
    """A copy is no second place where the secret lies."""
    key = SecretKey.from_text(ALICE)

    assert copy.copy(key) is key
    assert copy.deepcopy({"key": key})["key"] is key


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_equality(one, other):
    """Keys are equal when their secrets are, and equal keys hash alike."""
    first, second = (SecretKey.from_text(base58.b58encode(seed).decode()) for seed in (one, other))

    assert (first == second) == (one == other)
    assert first == SecretKey.from_text(first.reveal())
    assert hash(first) == hash(SecretKey.from_text(first.reveal()))
    assert first != first.reveal()


def test_equality_takes_constant_time(monkeypatch):
    """Secrets are compared by the function that is made for it."""
    compared = []
    real = hmac.compare_digest

    def noted(one, other):
        compared.append((len(one), len(other)))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", noted)

    assert SecretKey.from_text(ALICE) != SecretKey.from_text(ETH)
    assert compared == [(64, 32)]


# Extras ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "extra", "attempt"),
    [
        ("coincurve", "secp256k1", lambda: SecretKey.from_text(ETH)),
        ("coincurve", "secp256k1", lambda: SecretKey.generate("secp256k1")),
        ("mnemonic", "seed", lambda: SecretKey.from_seed_phrase(PHRASE)),
        ("slip10", "seed", lambda: SecretKey.from_seed_phrase(PHRASE)),
        ("Crypto.Hash.keccak", "secp256k1", lambda: engines.keccak256(b"")),
    ],
    ids=["read", "generate", "words", "steps", "keccak"],
)
def test_a_missing_extra_is_named(monkeypatch, module, extra, attempt):
    """Without a library the error names the extra that brings it, and no secret."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidRequestError) as caught:
        attempt()

    assert f'pip install "ledgerkit[{extra}]"' in str(caught.value)
    assert ETH[10:] not in reported(caught.value)
    assert "abandon" not in reported(caught.value)


def test_no_such_curve():
    """A curve that cannot sign is refused by name."""
    with pytest.raises(InvalidRequestError, match="one of ed25519, secp256k1"):
        SecretKey.generate("ml-dsa-65")  # type: ignore[arg-type]  # what is refused here


def test_keccak_is_no_sha3():
    """The empty hash is Ethereum's, which pads otherwise than SHA-3."""
    assert engines.keccak256(b"").hex().startswith("c5d2460186f7233c927e7db2dcc703c0")
    assert engines.keccak256(b"") != hashlib.sha3_256(b"").digest()


def test_a_transaction_of_a_key():
    """Signing with another key than the stated one is refused before anything is signed."""
    tx = Transaction("ab", ALICE_PUBLIC, 1, "ab", CryptoHash(bytes(32)), [Transfer(1)])

    assert tx.sign(SecretKey.from_text(ALICE)).verify()
    with pytest.raises(InvalidRequestError, match="the public key of the secret key"):
        tx.sign(SecretKey.generate())
