"""Any value survives its bytes, any damaged bytes are refused or honest, and nearcore agrees."""

import dataclasses
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledgerkit import protocol
from ledgerkit.errors import DecodeError

U16, U64, U128 = (st.integers(0, 2**bits - 1) for bits in (16, 64, 128))
TEXT = st.text(max_size=20)
BLOB = st.binary(max_size=40)
# Digits of random bytes: drawn in a tenth of the time of a regular expression's characters.
PARTS = st.lists(st.binary(min_size=1, max_size=10), min_size=1, max_size=3)
NAME = PARTS.map(lambda parts: ".".join(map(bytes.hex, parts)))
IMPLICIT = st.binary(min_size=32, max_size=32).map(bytes.hex)
ETH_IMPLICIT = st.binary(min_size=20, max_size=20).map(lambda data: "0x" + data.hex())
ACCOUNT = NAME | IMPLICIT | ETH_IMPLICIT
HASH = st.binary(min_size=32, max_size=32).map(protocol.CryptoHash)
ED_KEY = st.binary(min_size=32, max_size=32).map(lambda data: protocol.PublicKey("ed25519", data))
SECP_KEY = st.binary(min_size=64, max_size=64).map(
    lambda data: protocol.PublicKey("secp256k1", data)
)
KEY = ED_KEY | SECP_KEY
# The last byte of an ed25519 signature has its three high bits clear.
ED_SIGNATURE = st.builds(
    lambda data, last: protocol.Signature("ed25519", data + bytes([last])),
    st.binary(min_size=63, max_size=63),
    st.integers(0, 31),
)
SECP_SIGNATURE = st.binary(min_size=65, max_size=65).map(
    lambda d: protocol.Signature("secp256k1", d)
)
SIGNATURE = ED_SIGNATURE | SECP_SIGNATURE
NAMES = st.lists(TEXT, max_size=3)
CONTRACT = HASH | ACCOUNT

CALL_PERMISSION = st.builds(protocol.FunctionCallPermission, st.none() | U128, TEXT, NAMES)
PERMISSION = (
    st.builds(protocol.FullAccess)
    | CALL_PERMISSION
    | st.builds(protocol.GasKeyFunctionCall, U128, U16, st.none() | U128, TEXT, NAMES)
    | st.builds(protocol.GasKeyFullAccess, U128, U16)
)
ACCESS_KEY = st.builds(protocol.AccessKey, U64, PERMISSION)
STATE = st.builds(protocol.StateInit, CONTRACT, st.dictionaries(BLOB, BLOB, max_size=3))
UNIVERSAL_STATE = st.builds(
    protocol.UniversalStateInitV1,
    st.none() | CONTRACT,
    st.dictionaries(BLOB, BLOB, max_size=3),
    st.lists(KEY, max_size=3),
)
PLAIN = st.one_of(
    st.builds(protocol.CreateAccount),
    st.builds(protocol.DeployContract, BLOB),
    st.builds(protocol.FunctionCall, TEXT, BLOB, U64, U128),
    st.builds(protocol.Transfer, U128),
    st.builds(protocol.Stake, U128, KEY),
    st.builds(protocol.AddKey, KEY, ACCESS_KEY),
    st.builds(protocol.DeleteKey, KEY),
    st.builds(protocol.DeleteAccount, ACCOUNT),
    st.builds(protocol.DeployGlobalContract, BLOB, st.sampled_from(["CodeHash", "AccountId"])),
    st.builds(protocol.UseGlobalContract, CONTRACT),
    st.builds(protocol.DeterministicStateInit, STATE, U128),
    st.builds(protocol.TransferToGasKey, KEY, U128),
    st.builds(protocol.WithdrawFromGasKey, KEY, U128),
    st.builds(protocol.UniversalStateInit, UNIVERSAL_STATE.map(lambda s: s.encode()) | BLOB, U128),
)
FEW = st.lists(PLAIN, max_size=3)
DELEGATE = st.builds(protocol.DelegateAction, ACCOUNT, ACCOUNT, FEW, U64, U64, KEY)
DELEGATE_V2 = st.builds(
    protocol.DelegateActionV2, ACCOUNT, ACCOUNT, FEW, U64, U64, KEY, st.none() | U16
)
ACTION = (
    PLAIN
    | st.builds(protocol.Delegate, DELEGATE, SIGNATURE)
    | st.builds(protocol.DelegateV2, DELEGATE_V2, SIGNATURE)
)
ACTIONS = st.lists(ACTION, max_size=3)
V0 = st.builds(protocol.Transaction, ACCOUNT, KEY, U64, ACCOUNT, HASH, ACTIONS)
V1 = st.builds(
    protocol.Transaction,
    ACCOUNT,
    KEY,
    U64,
    ACCOUNT,
    HASH,
    ACTIONS,
    version=st.just(1),
    nonce_index=st.none() | U16,
    nonce_mode=st.sampled_from(["monotonic", "strict"]),
)
TRANSACTION = V0 | V1
SIGNED = st.builds(protocol.SignedTransaction, TRANSACTION, SIGNATURE)
MESSAGE = st.builds(
    protocol.OffchainMessage, TEXT, st.binary(min_size=32, max_size=32), TEXT, st.none() | TEXT
)
ANYTHING = st.one_of(
    *(KEY, SIGNATURE, ACTION, PERMISSION, ACCESS_KEY, STATE, UNIVERSAL_STATE),
    *(DELEGATE, DELEGATE_V2, SIGNED, MESSAGE),
)

ALICE = protocol.SecretKey.from_text(
    "ed25519:4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi"
)  # 32 ones
CALL = protocol.FunctionCall("ft_transfer", b"{}", 30 * 10**12, 1)
SAMPLES = [
    protocol.Transaction(
        "alice.near", ALICE.public_key, 1, "bob.near", bytes(32), [protocol.Transfer(1)]
    ),
    protocol.Transaction(
        "alice.near",
        ALICE.public_key,
        1,
        "bob.near",
        bytes(32),
        [
            CALL,
            protocol.AddKey(
                ALICE.public_key,
                protocol.AccessKey(0, protocol.FunctionCallPermission(5, "ab", ["m"])),
            ),
        ],
        version=1,
        nonce_index=7,
        nonce_mode="strict",
    ),
    protocol.Transaction(
        "alice.near",
        ALICE.public_key,
        1,
        "bob.near",
        bytes(32),
        [
            protocol.DelegateAction("ab", "cd", [CALL], 1, 2, ALICE.public_key).sign(ALICE),
            protocol.DeterministicStateInit(protocol.StateInit("ab", {b"k": b"v", b"m": b""}), 3),
        ],
    ),
]


@given(ANYTHING)
def test_encoding_and_decoding(value):
    """Whatever is encoded reads as itself, and has no second spelling."""
    data = value.encode()

    assert type(value).decode(data) == value
    assert type(value).decode(data).encode() == data


@given(ANYTHING)
def test_every_truncation_is_refused(value):
    """The beginning of a value's bytes is never a value, nor is one followed by a byte."""
    data = value.encode()
    for cut in (*range(min(len(data), 40)), len(data) - 1):
        with pytest.raises(DecodeError):
            type(value).decode(data[:cut])
    with pytest.raises(DecodeError):
        type(value).decode(data + b"\0")


def honest(data):
    """Tell whether bytes are refused, or read as something with exactly these bytes."""
    try:
        return protocol.SignedTransaction.decode(data).encode() == data
    except DecodeError:
        return True


@pytest.mark.parametrize("tx", SAMPLES, ids=["V0", "V1", "delegate"])
def test_every_damage_of_a_transaction(tx):
    """Of a transaction, every truncation is refused and every other byte refused or honest."""
    data = tx.sign(ALICE).encode()
    for at in range(len(data)):
        with pytest.raises(DecodeError):
            protocol.SignedTransaction.decode(data[:at])
        for byte in {data[at] ^ flip for flip in (1, 2, 0x20, 0x80, 0xFF)} | {0, 1, 0xFF}:
            assert honest(data[:at] + bytes([byte]) + data[at + 1 :])


@given(st.binary(max_size=300))
@example(b"\1\2")
@example(b"\2\0\0\0")
def test_random_bytes(data):
    """Random bytes raise nothing but DecodeError."""
    assert honest(data)


@given(SIGNED, st.data())
def test_damaged_transactions(signed, data):
    """A random transaction with any of its bytes changed is refused or honest."""
    encoded = bytearray(signed.encode())
    encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))

    assert honest(bytes(encoded))


@given(SIGNED)
def test_equal_values_hash_alike(signed):
    """A transaction read back is the same key of a dict, and its parts can be replaced."""
    again = protocol.SignedTransaction.from_base64(signed.to_base64())

    assert {signed: 1}[again] == 1
    assert dataclasses.replace(signed.transaction, nonce=0).nonce == 0


def test_no_allocation_for_a_claim():
    """A list that claims more items than the bytes left can hold is refused by its number."""
    empty = protocol.Transaction("ab", ALICE.public_key, 1, "cd", bytes(32), []).encode()

    with pytest.raises(DecodeError, match="claims 4294967295 items"):
        protocol.Transaction.decode(empty[:-4] + b"\xff\xff\xff\xff")
    names = bytes.fromhex("00 00 02000000 6162 02000000 00000000")  # two names take eight bytes
    with pytest.raises(DecodeError, match="claims 2 items"):
        protocol.FunctionCallPermission.decode(names)


# nearcore's own types ---------------------------------------------------------------------


def rust_key(fields, access_key):
    permission = access_key.permission
    if isinstance(permission, protocol.FullAccess):
        return fields.AccessKey(access_key.nonce, fields.AccessKeyPermissionFieldless.FullAccess)
    return fields.AccessKey(
        access_key.nonce,
        fields.FunctionCallPermission(
            permission.receiver_id, list(permission.method_names), permission.allowance
        ),
    )


def rust_delegate(rust, action):
    return rust.DelegateAction(
        str(action.sender_id),
        str(action.receiver_id),
        [rust_action(rust, one) for one in action.actions],
        action.nonce,
        action.max_block_height,
        action.public_key.data,
    )


def rust_action(rust, action):
    make: dict[type, Any] = {
        protocol.CreateAccount: lambda _: rust.CreateAccountAction(),
        protocol.DeployContract: lambda a: rust.DeployContractAction(a.code),
        protocol.FunctionCall: lambda a: rust.FunctionCallAction(
            a.method_name, a.args, a.gas, a.deposit
        ),
        protocol.Transfer: lambda a: rust.TransferAction(a.deposit),
        protocol.Stake: lambda a: rust.StakeAction(a.stake, a.public_key.data),
        protocol.AddKey: lambda a: rust.AddKeyAction(
            a.public_key.data, rust_key(rust, a.access_key)
        ),
        protocol.DeleteKey: lambda a: rust.DeleteKeyAction(a.public_key.data),
        protocol.DeleteAccount: lambda a: rust.DeleteAccountAction(str(a.beneficiary_id)),
        protocol.Delegate: lambda a: rust.SignedDelegateAction(
            rust_delegate(rust, a.delegate_action), a.signature.data
        ),
    }
    return make[type(action)](action)


# The variants that py-near-primitives can build; it knows ed25519 keys and named permissions.
ED_ACCESS = st.builds(
    protocol.AccessKey,
    U64,
    st.builds(protocol.FullAccess)
    | st.builds(protocol.FunctionCallPermission, st.none() | U128, TEXT, NAMES),
)
SHARED = st.one_of(
    st.builds(protocol.CreateAccount),
    st.builds(protocol.DeployContract, BLOB),
    st.builds(protocol.FunctionCall, TEXT, BLOB, U64, U128),
    st.builds(protocol.Transfer, U128),
    st.builds(protocol.Stake, U128, ED_KEY),
    st.builds(protocol.AddKey, ED_KEY, ED_ACCESS),
    st.builds(protocol.DeleteKey, ED_KEY),
    st.builds(protocol.DeleteAccount, ACCOUNT),
)
SHARED_FEW = st.lists(SHARED, max_size=4)
SHARED_DELEGATE = st.builds(
    protocol.Delegate,
    st.builds(protocol.DelegateAction, ACCOUNT, ACCOUNT, SHARED_FEW, U64, U64, ED_KEY),
    ED_SIGNATURE,
)
SHARED_ALL = st.lists(SHARED | SHARED_DELEGATE, max_size=4)


@pytest.fixture(scope="module")
def rust():
    """Return nearcore's types, where their wheel is installed."""
    try:
        import py_near_primitives  # type: ignore[import-untyped]  # a compiled module
    except ImportError:
        pytest.skip("py-near-primitives has no wheel here")
    return py_near_primitives


@settings(max_examples=300)
@given(
    tx=st.builds(
        protocol.Transaction, ACCOUNT, st.just(ALICE.public_key), U64, ACCOUNT, HASH, SHARED_ALL
    )
)
def test_nearcore_agrees(rust, tx):
    """Random transactions have the bytes, hash and signature of nearcore's own Rust types."""
    key = ALICE.public_key
    theirs = rust.Transaction(
        str(tx.signer_id),
        key.data,
        tx.nonce,
        str(tx.receiver_id),
        bytes(tx.block_hash),
        [rust_action(rust, action) for action in tx.actions],
    )
    pair = bytes([1] * 32) + key.data

    assert bytes(theirs.serialize()) == tx.encode()
    assert bytes(theirs.get_hash()) == tx.hash
    assert bytes(theirs.to_vec(pair)) == tx.sign(ALICE).encode()


@given(action=st.builds(protocol.DelegateAction, ACCOUNT, ACCOUNT, SHARED_FEW, U64, U64, ED_KEY))
def test_nearcore_agrees_on_what_a_delegate_signs(rust, action):
    """Random delegated actions have the bytes and the signed hash of nearcore's own types."""
    theirs = rust_delegate(rust, action)

    assert bytes(theirs.serialize()) == action.encode()
    assert bytes(theirs.get_nep461_hash()) == action.hash
