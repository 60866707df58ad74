"""Every layout, written down byte by byte from the tables of the specification."""

from hashlib import sha256
from typing import Any

import near_jsonrpc_models
import pytest

from ledgerkit import protocol
from ledgerkit.errors import DecodeError
from ledgerkit.protocol.actions import KINDS, KINDS_BY_NAME

ED = protocol.PublicKey("ed25519", b"\xaa" * 32)
SECP = protocol.PublicKey("secp256k1", b"\xbb" * 64)
ED_SIGNATURE = protocol.Signature("ed25519", b"\x0c" * 64)
SECP_SIGNATURE = protocol.Signature("secp256k1", b"\xdd" * 64 + b"\x01")
HASH = protocol.CryptoHash(b"\xee" * 32)

ED_BYTES = "00" + "aa" * 32
SECP_BYTES = "01" + "bb" * 64
ED_SIGNATURE_BYTES = "00" + "0c" * 64
HASH_BYTES = "ee" * 32
AB = "02000000 6162"  # the text "ab": its length in four bytes, low one first
CD = "02000000 6364"
ONE = "01" + "00" * 15  # 1 in sixteen bytes
NEAR = "000000a1edccce1bc2d3000000000000"  # 10**24
NO_ACTIONS = "00000000"

CALL = protocol.FunctionCall("ab", b"{}", 30_000_000_000_000, 1)
CALL_BYTES = f"02 {AB} 02000000 7b7d 00e057eb481b0000 {ONE}"
DELEGATE = protocol.DelegateAction("ab", "cd", [protocol.Transfer(1)], 5, 6, ED)
DELEGATE_BYTES = f"{AB} {CD} 01000000 03{ONE} 0500000000000000 0600000000000000 {ED_BYTES}"
LATER = protocol.DelegateActionV2("ab", "cd", [], 5, 6, ED)
LATER_BYTES = f"00 {AB} {CD} {NO_ACTIONS} 00 0500000000000000 0600000000000000 {ED_BYTES}"
LANE = protocol.DelegateActionV2("ab", "cd", [], 5, 6, ED, nonce_index=258)
LANE_BYTES = f"00 {AB} {CD} {NO_ACTIONS} 01 0500000000000000 0201 0600000000000000 {ED_BYTES}"
STATE = protocol.StateInit("ab", {b"z": b"", b"k": b"vw"})
STATE_BYTES = f"00 01{AB} 02000000 01000000 6b 02000000 7677 01000000 7a 00000000"

# The vectors of nearcore for universal accounts, as near-sdk-rs has them: bytes and id.
HASHED = protocol.PublicKey("ml-dsa-65-hash", b"\x11" * 32)
HASH_22 = protocol.CryptoHash(b"\x22" * 32)
WALLET = "0sb0d7ef4f935c6ef78e08ad03569767aaec4223a3"
WALLET_STATE = "01000000008565df94b8caab08f28cdd2ee014b800915741d4694fa840e50cca02ae5c6466100e0000"
UNSORTED = {b"b": b"2", b"a": b"1", b"ab": b"", b"": b"empty-key", b"\xff\0": bytes(3)}
RECORDS_BYTES = (
    "0000050000000000000009000000656d7074792d6b65790100000061010000003102000000616200000000010000"
    "0062010000003202000000ff000300000000000000000000"
)
WALLET_BYTES = (
    f"00 01 01 2a000000 {WALLET.encode().hex()} 01000000 00000000 3d000000"
    f"{WALLET_STATE}{'00' * 20} 00000000"
)
UNIVERSAL: dict[str, tuple[dict[str, Any], str, str]] = {
    "nothing": (
        {},
        "00 00 00000000 00000000",
        "0u1kajgpx8a97y8ap8y03pvt8kbm2p2cn9k5h17bgw1wa21j88865g",
    ),
    "code of an account": (
        {"code": "code.near"},
        "00 01 01 09000000 636f64652e6e656172 00000000 00000000",
        "0uartat3agnh029e3nqsqzxtz5pd3130stv6a2eafszq4vgg56kaag",
    ),
    "code of a hash": (
        {"code": HASH_22},
        f"00 01 00 {'22' * 32} 00000000 00000000",
        "0uk6fe1b5tnfxn87yhtc36czcehzd4ngf25crhj17871kax56nhxx0",
    ),
    "records": (
        {"data": UNSORTED},
        RECORDS_BYTES,
        "0u88nzp537q37vgx90hrjbmqv7dhbc776w4ynj514djahna1cnce5g",
    ),
    "the hash of a key": (
        {"access_keys": [HASHED]},
        f"00 00 00000000 01000000 03 {'11' * 32}",
        "0ux8te7g99f9kqzdtp9h4qnwt9aczpgayymmtbdc50w199rcw3at1g",
    ),
    "the wallet of NEP-655": (
        {"code": WALLET, "data": {b"": bytes.fromhex(WALLET_STATE + "00" * 20)}},
        WALLET_BYTES,
        "0u4bfkw2qvgfzbf7zzkxykcppqymn0p2hbayjee3ygzrbhmmtyejx0",
    ),
}

VALUES = {
    "ed25519 key": (ED, ED_BYTES),
    "secp256k1 key": (SECP, SECP_BYTES),
    "ed25519 signature": (ED_SIGNATURE, ED_SIGNATURE_BYTES),
    "secp256k1 signature": (SECP_SIGNATURE, "01" + "dd" * 64 + "01"),
    "create account": (protocol.CreateAccount(), "00"),
    "deploy contract": (protocol.DeployContract(b"\0asm"), "01 04000000 0061736d"),
    "function call": (CALL, CALL_BYTES),
    "function call, nothing but a name": (
        protocol.FunctionCall("ab", b"", 0),
        f"02 {AB} 00000000 0000000000000000 {'00' * 16}",
    ),
    "transfer": (protocol.Transfer(10**24), f"03 {NEAR}"),
    "transfer of all there could be": (protocol.Transfer(2**128 - 1), f"03 {'ff' * 16}"),
    "stake": (protocol.Stake(1, ED), f"04 {ONE} {ED_BYTES}"),
    "add key": (protocol.AddKey(ED, protocol.AccessKey(7)), f"05 {ED_BYTES} 0700000000000000 01"),
    "add secp256k1 key": (protocol.AddKey(SECP), f"05 {SECP_BYTES} 0000000000000000 01"),
    "delete key": (protocol.DeleteKey(ED), f"06 {ED_BYTES}"),
    "delete account": (protocol.DeleteAccount("ab"), f"07 {AB}"),
    "delegate": (
        protocol.Delegate(DELEGATE, ED_SIGNATURE),
        f"08 {DELEGATE_BYTES} {ED_SIGNATURE_BYTES}",
    ),
    "deploy global, by hash": (
        protocol.DeployGlobalContract(b"\1", "CodeHash"),
        "09 01000000 01 00",
    ),
    "deploy global, by account": (
        protocol.DeployGlobalContract(b"\1", "AccountId"),
        "09 01000000 01 01",
    ),
    "use global, by hash": (protocol.UseGlobalContract(HASH), f"0a 00 {HASH_BYTES}"),
    "use global, by account": (protocol.UseGlobalContract("ab"), f"0a 01 {AB}"),
    "deterministic state init": (
        protocol.DeterministicStateInit(STATE, 1),
        f"0b {STATE_BYTES} {ONE}",
    ),
    "state init of a hash": (protocol.StateInit(HASH), f"00 00{HASH_BYTES} 00000000"),
    "transfer to gas key": (protocol.TransferToGasKey(ED, 1), f"0c {ED_BYTES} {ONE}"),
    "withdraw from gas key": (protocol.WithdrawFromGasKey(ED, 1), f"0d {ED_BYTES} {ONE}"),
    "delegate, second version": (
        protocol.DelegateV2(LATER, ED_SIGNATURE),
        f"0e {LATER_BYTES} {ED_SIGNATURE_BYTES}",
    ),
    "delegate of a lane": (LANE, LANE_BYTES),
    "universal state init": (
        protocol.UniversalStateInit(protocol.UniversalStateInitV1("ab").encode(), 1),
        f"0f 11000000 00 01 01{AB} 00000000 00000000 {ONE}",
    ),
    **{
        f"universal state init of {case}": (protocol.UniversalStateInitV1(**members), layout)
        for case, (members, layout, _) in UNIVERSAL.items()
    },
    "full access": (protocol.FullAccess(), "01"),
    "function call permission": (
        protocol.FunctionCallPermission(1, "cd", ["ab"]),
        f"00 01{ONE} {CD} 01000000 {AB}",
    ),
    "function call permission without limits": (
        protocol.FunctionCallPermission(None, "cd"),
        f"00 00 {CD} 00000000",
    ),
    "gas key for calls": (
        protocol.GasKeyFunctionCall(1, 4, None, "cd", ["ab", "cd"]),
        f"02 {ONE} 0400 00 {CD} 02000000 {AB} {CD}",
    ),
    "gas key with full access": (protocol.GasKeyFullAccess(1, 1024), f"03 {ONE} 0004"),
    "message for a service": (
        protocol.OffchainMessage("ab", b"\x11" * 32, "cd", "ab"),
        f"{AB} {'11' * 32} {CD} 01{AB}",
    ),
    "message without a callback": (
        protocol.OffchainMessage("ab", b"\x11" * 32, "cd"),
        f"{AB} {'11' * 32} {CD} 00",
    ),
}

V0 = protocol.Transaction(
    "ab", ED, 258, "cd", HASH, [protocol.CreateAccount(), protocol.Transfer(1)]
)
V0_BYTES = (
    f"{AB} {ED_BYTES} 0201000000000000 {CD} {HASH_BYTES}"  # no tag in front
    f"02000000 00 03{ONE}"
)
V1 = protocol.Transaction(
    "ab", ED, 258, "cd", HASH, [protocol.CreateAccount(), protocol.Transfer(1)], version=1
)
V1_BYTES = (
    f"01 {AB} {ED_BYTES} 00 0201000000000000 {CD} {HASH_BYTES}"
    f"02000000 00 03{ONE} 00"  # the nonce's mode comes last
)
V1_LANE = protocol.Transaction(
    "ab", SECP, 1, "cd", HASH, [], version=1, nonce_index=3, nonce_mode="strict"
)
V1_LANE_BYTES = f"01 {AB} {SECP_BYTES} 01 0100000000000000 0300 {CD} {HASH_BYTES} 00000000 01"

VALUES |= {
    "transaction": (V0, V0_BYTES),
    "transaction, second version": (V1, V1_BYTES),
    "transaction of a lane, strict": (V1_LANE, V1_LANE_BYTES),
    "signed": (protocol.SignedTransaction(V0, ED_SIGNATURE), f"{V0_BYTES} {ED_SIGNATURE_BYTES}"),
}


def test_layout(subtests):
    """Each value has exactly these bytes, and these bytes read as that value."""
    for case, (value, layout) in VALUES.items():
        with subtests.test(case=case):
            data = bytes.fromhex(layout)

            assert value.encode().hex() == data.hex()
            assert type(value).decode(data) == value


def test_every_action_has_its_place():
    """The sixteen actions stand where the chain knows them, each written down above."""
    actions = [kind.action for kind in KINDS]
    names = """
        CreateAccount DeployContract FunctionCall Transfer Stake AddKey DeleteKey DeleteAccount
        Delegate DeployGlobalContract UseGlobalContract DeterministicStateInit TransferToGasKey
        WithdrawFromGasKey DelegateV2 UniversalStateInit
    """
    assert [action.__name__ for action in actions] == names.split()
    assert [action.tag for action in actions] == list(range(16))
    assert set(actions) <= {type(value) for value, _ in VALUES.values()}


def test_every_published_action_is_declared():
    """A new name in the published models is reported here."""
    published = {
        name
        for name in dir(near_jsonrpc_models)
        if name.startswith("ActionView") and not name.endswith("Payload")
    }
    names = {name.removeprefix("ActionView") for name in published} - {""}
    assert names - KINDS_BY_NAME.keys() == set()


def test_the_id_of_a_universal_account_is_the_hash_of_its_bytes(subtests):
    """`0u` and 52 symbols, by the vectors of nearcore; other bytes are another account."""
    for case, (members, layout, account_id) in UNIVERSAL.items():
        with subtests.test(case=case):
            assert protocol.universal_account_id(bytes.fromhex(layout)) == account_id
            state_init = protocol.UniversalStateInitV1(**members)
            assert protocol.universal_account_id(state_init) == account_id
            assert protocol.AccountId(account_id).kind == "universal"
    high = protocol.PublicKey("ed25519", b"\xff" + bytes(31))
    keys: Any = [
        protocol.PublicKey("ml-dsa-65-hash", bytes(32)),
        protocol.PublicKey("secp256k1", b"\1" * 64),
        high,
        protocol.PublicKey("ed25519", bytes(32)),
        protocol.PublicKey("ml-dsa-65-hash", b"\xff" * 32),
        protocol.PublicKey("secp256k1", bytes(64)),
        str(high),
    ]
    only_keys = protocol.UniversalStateInitV1(access_keys=keys)
    assert len(only_keys.encode()) == 272
    assert (
        protocol.universal_account_id(only_keys)
        == "0upcrgsbq81vedn1tsvw10heb4rjzdjmasxc8wayh26jpj5nemrqsg"
    )
    everything = protocol.UniversalStateInitV1(WALLET, {b"k": b"v"}, keys)
    assert (
        protocol.universal_account_id(everything)
        == "0utr5yk5pdhjg932r5px1mf7vd6evsh0x46fn6g3zscys5b2y6d480"
    )


def test_bytes_that_are_not_sorted_keep_their_id():
    """Records and keys are sorted and made unique when they are read, but not in the action."""
    entry = "01000000 62 00000000", "01000000 61 00000000"
    unsorted = bytes.fromhex(f"00 00 02000000 {''.join(entry)} 00000000")
    state_init = protocol.UniversalStateInitV1.decode(unsorted)
    assert state_init.data == {b"a": b"", b"b": b""}
    assert state_init.encode() != unsorted
    ids = {
        unsorted: "0u5v0d8z8y0fpzhtczvbw31a8tpxsxap2f9xkzygek2ht3t7pt34ag",
        state_init.encode(): "0uxxf505cvpqd83cqj71wpya6mbmfh0tmjbqnjk6kwcze985r6f0tg",
    }
    assert {data: protocol.universal_account_id(data) for data in ids} == ids
    action = protocol.UniversalStateInit(unsorted)
    assert protocol.Action.decode(action.encode()) == action
    assert action.state_init == unsorted
    twice = "01000000 61 01000000 31 01000000 61 01000000 32"
    repeated = bytes.fromhex(f"00 00 02000000 {twice} 00000000")
    assert protocol.UniversalStateInitV1.decode(repeated).data == {b"a": b"2"}
    key = protocol.UniversalStateInitV1(access_keys=[protocol.PublicKey("ml-dsa-65", bytes(1952))])
    assert key.access_keys[0].curve == "ml-dsa-65-hash"


@pytest.mark.parametrize(
    "action",
    [CALL, protocol.FunctionCall("é", b"", 0), protocol.Transfer(0), protocol.Transfer(2**128 - 1)],
    ids=["call", "call beyond ASCII", "no transfer", "largest transfer"],
)
def test_fast_paths_follow_the_declared_layout(action):
    """An action that encodes itself, for speed, has the bytes of its declared fields."""
    assert action.encode() == bytes([action.tag]) + action.encode_fields()


def test_hashes_are_of_the_written_bytes():
    """What is signed is SHA-256 of the bytes, behind a prefix unless it is a transaction."""
    delegate, message = bytes.fromhex(DELEGATE_BYTES), bytes.fromhex(f"{AB}{'11' * 32}{CD}00")

    assert V0.hash == sha256(bytes.fromhex(V0_BYTES)).digest()
    assert V1.hash == sha256(bytes.fromhex(V1_BYTES)).digest()
    assert DELEGATE.hash == sha256(bytes.fromhex("6e010040") + delegate).digest()
    assert LATER.hash == sha256(bytes.fromhex("63020040" + LATER_BYTES)).digest()
    without = protocol.OffchainMessage("ab", b"\x11" * 32, "cd")
    assert without.hash == sha256(bytes.fromhex("9d010080") + message).digest()


REFUSED: dict[str, Any] = {
    "nothing": (protocol.Transaction, "", "byte 0"),
    "left over": (protocol.Transaction, V0_BYTES + "00", "byte 107"),
    "unknown version": (protocol.Transaction, "02" + V1_BYTES[2:], "byte 0"),
    "unknown key curve": (protocol.PublicKey, "04" + "aa" * 32, "byte 0"),
    "hash of an ML-DSA key": (protocol.PublicKey, "03" + "aa" * 32, "byte 0"),
    "ML-DSA key where its hash belongs": (
        protocol.UniversalStateInitV1,
        f"00 00 00000000 01000000 02 {'00' * 32}",
        "byte 10",
    ),
    "universal state init of another version": (
        protocol.UniversalStateInitV1,
        "01 00 00000000 00000000",
        "byte 0",
    ),
    "short ML-DSA key": (protocol.PublicKey, "02" + "aa" * 1951, "byte 1"),
    "unknown signature curve": (protocol.Signature, "03" + "aa" * 64, "byte 0"),
    "no ed25519 signature": (protocol.Signature, "00" + "0c" * 63 + "20", "byte 0"),
    "unknown action": (protocol.Transfer, "0f", "byte 0"),
    "another action": (protocol.Transfer, "00", "byte 0"),
    "short amount": (protocol.Transfer, "03" + "00" * 15, "byte 1"),
    "length beyond the end": (protocol.DeployContract, "01 ffffffff 00", "byte 5"),
    "count beyond the end": (protocol.FunctionCallPermission, f"00 00 {CD} ffffffff", "byte 8"),
    "no utf-8": (protocol.FunctionCall, "02 01000000 ff", "byte 1"),
    "half of a surrogate pair": (protocol.FunctionCall, "02 03000000 eda080", "byte 1"),
    "option of 2": (protocol.FunctionCallPermission, "00 02", "byte 1"),
    "unknown permission": (protocol.AccessKey, "0000000000000000 04", "byte 8"),
    "unknown deploy mode": (protocol.DeployGlobalContract, "09 00000000 02", "byte 5"),
    "unknown contract identifier": (protocol.UseGlobalContract, "0a 02", "byte 1"),
    "unknown state init": (protocol.StateInit, "01", "byte 0"),
    "unknown nonce": (protocol.DelegateActionV2, f"00 {AB} {CD} {NO_ACTIONS} 02", "byte 17"),
    "unknown delegate version": (protocol.DelegateActionV2, "01", "byte 0"),
    "unknown nonce mode": (protocol.Transaction, V1_BYTES[:-2] + "02", "byte 109"),
    "no account id": (protocol.DeleteAccount, "07 02000000 4142", "byte 1"),
    "account id of one character": (protocol.DeleteAccount, "07 01000000 61", "byte 1"),
    "delegated in turn": (
        protocol.DelegateAction,
        f"{AB} {CD} 01000000 08",
        "byte 16",
    ),
    "delegated in turn, second version": (
        protocol.DelegateAction,
        f"{AB} {CD} 01000000 0e",
        "byte 16",
    ),
    "records out of order": (
        protocol.StateInit,
        f"00 01{AB} 02000000 01000000 7a 00000000 01000000 6b 00000000",
        "byte 8",
    ),
    "record twice": (
        protocol.StateInit,
        f"00 01{AB} 02000000 01000000 6b 00000000 01000000 6b 00000000",
        "byte 8",
    ),
}


def test_refused(subtests):
    """Bytes that no encoder writes are refused, by the place where they go wrong."""
    for case, (kind, layout, place) in REFUSED.items():
        with subtests.test(case=case):
            with pytest.raises(DecodeError) as caught:
                kind.decode(bytes.fromhex(layout))

            assert caught.value.path == place
            assert place in str(caught.value)
            assert caught.value.__context__ is None


def test_records_are_sorted():
    """Records given in any order have one encoding."""
    assert protocol.StateInit("ab", {b"k": b"", b"z": b""}) == protocol.StateInit(
        "ab", {b"z": b"", b"k": b""}
    )
    assert hash(protocol.StateInit("ab", {b"k": b""})) == hash(
        protocol.StateInit("ab", {b"k": b""})
    )
