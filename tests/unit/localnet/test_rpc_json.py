"""The wire's JSON of records: every member, its type, and the two ways to show an action."""

import base64
import json
from hashlib import sha256
from typing import Any

import pytest

from ledgerkit import protocol
from ledgerkit.localnet import http_messages, rpc_json
from ledgerkit.localnet.chain_types import (
    NO_CODE,
    Account,
    ActionReceipt,
    Block,
    Change,
    Chunk,
    DataReceipt,
    DistributionReceipt,
    Failure,
    GasCost,
    Outcome,
    Proposal,
    SuccessReceiptId,
    SuccessValue,
)

ONES = "1" * 32
EMPTY = "7tkzFg8RHBmMw1ncRJZCCZAizgq4rwCftTKYLce8RU8t"
KEY = protocol.PublicKey("ed25519", bytes(32))
KEY_TEXT = f"ed25519:{ONES}"
SIGNATURE = protocol.Signature("ed25519", bytes(64))
SIGNATURE_TEXT = f"ed25519:{'1' * 64}"
A, B = protocol.AccountId("a.near"), protocol.AccountId("b.near")
ONE = protocol.CryptoHash(bytes(31) + b"\x01")
ONE_TEXT = "1" * 31 + "2"
CODE = b"\0asm"
CODE_HASH = base64.b64encode(sha256(CODE).digest()).decode()
MANY = 2**64 - 1  # a number that no float holds


def written(value):
    """Give what a reader of the JSON gets."""
    return json.loads(http_messages.encode_json(value))


ACTIONS = [
    (protocol.CreateAccount(), "CreateAccount", {"CreateAccount": {}}),
    (
        protocol.DeployContract(CODE),
        {"DeployContract": {"code": CODE_HASH}},
        {"DeployContract": {"code": "AGFzbQ=="}},
    ),
    (
        protocol.FunctionCall("ping", b"{}", MANY, 2**127),
        {
            "FunctionCall": {
                "method_name": "ping",
                "args": "e30=",
                "gas": MANY,
                "deposit": "170141183460469231731687303715884105728",
            }
        },
        None,
    ),
    (protocol.Transfer(5), {"Transfer": {"deposit": "5"}}, None),
    (protocol.Stake(7, KEY), {"Stake": {"stake": "7", "public_key": KEY_TEXT}}, None),
    (
        protocol.AddKey(KEY, protocol.AccessKey(3)),
        {
            "AddKey": {
                "public_key": KEY_TEXT,
                "access_key": {"nonce": 3, "permission": "FullAccess"},
            }
        },
        None,
    ),
    (protocol.DeleteKey(KEY), {"DeleteKey": {"public_key": KEY_TEXT}}, None),
    (protocol.DeleteAccount("b.near"), {"DeleteAccount": {"beneficiary_id": "b.near"}}, None),
    (
        protocol.DeployGlobalContract(CODE, "CodeHash"),
        {"DeployGlobalContract": {"code": CODE_HASH}},
        {"DeployGlobalContract": {"code": "AGFzbQ==", "deploy_mode": "CodeHash"}},
    ),
    (
        protocol.DeployGlobalContract(CODE, "AccountId"),
        {"DeployGlobalContractByAccountId": {"code": CODE_HASH}},
        {"DeployGlobalContract": {"code": "AGFzbQ==", "deploy_mode": "AccountId"}},
    ),
    (
        protocol.UseGlobalContract(ONE),
        {"UseGlobalContract": {"code_hash": ONE_TEXT}},
        {"UseGlobalContract": {"contract_identifier": {"hash": ONE_TEXT}}},
    ),
    (
        protocol.UseGlobalContract("a.near"),
        {"UseGlobalContractByAccountId": {"account_id": "a.near"}},
        {"UseGlobalContract": {"contract_identifier": {"account_id": "a.near"}}},
    ),
    (
        protocol.DeterministicStateInit(protocol.StateInit(ONE, {b"key": b"value"}), 5),
        {
            "DeterministicStateInit": {
                "code": {"hash": ONE_TEXT},
                "data": {"a2V5": "dmFsdWU="},
                "deposit": "5",
            }
        },
        {
            "DeterministicStateInit": {
                "state_init": {"V1": {"code": {"hash": ONE_TEXT}, "data": {"a2V5": "dmFsdWU="}}},
                "deposit": "5",
            }
        },
    ),
    (
        protocol.TransferToGasKey(KEY, 9),
        {"TransferToGasKey": {"public_key": KEY_TEXT, "deposit": "9"}},
        None,
    ),
    (
        protocol.WithdrawFromGasKey(KEY, 9),
        {"WithdrawFromGasKey": {"public_key": KEY_TEXT, "amount": "9"}},
        None,
    ),
    (
        protocol.AddKey(
            KEY, protocol.AccessKey(0, protocol.GasKeyFunctionCall(0, 2, None, "s.near", ["set"]))
        ),
        {
            "AddKey": {
                "public_key": KEY_TEXT,
                "access_key": {
                    "nonce": 0,
                    "permission": {
                        "GasKeyFunctionCall": {
                            "balance": "0",
                            "num_nonces": 2,
                            "allowance": None,
                            "receiver_id": "s.near",
                            "method_names": ["set"],
                        }
                    },
                },
            }
        },
        {
            "AddKey": {
                "public_key": KEY_TEXT,
                "access_key": {
                    "nonce": 0,
                    "permission": {
                        "GasKeyFunctionCall": [
                            {"balance": "0", "num_nonces": 2},
                            {"allowance": None, "receiver_id": "s.near", "method_names": ["set"]},
                        ]
                    },
                },
            }
        },
    ),
]


class TestActions:
    """Actions, outside and inside a delegated one."""

    def test_view(self, subtests):
        """An action is shown as the node shows it in a transaction."""
        for action, view, raw in ACTIONS:
            with subtests.test(action=action.name):
                del raw
                assert written(rpc_json.action(action)) == view

    def test_raw(self, subtests):
        """Inside a delegated action the node shows the raw form: whole code, no bare words."""
        for action, view, raw in ACTIONS:
            with subtests.test(action=action.name):
                wanted = protocol.DelegateAction("a.near", "b.near", [action], 9, 10, KEY)
                shown = written(rpc_json.action(protocol.Delegate(wanted, SIGNATURE)))
                assert shown == {
                    "Delegate": {
                        "delegate_action": {
                            "sender_id": "a.near",
                            "receiver_id": "b.near",
                            "actions": [view if raw is None else raw],
                            "nonce": 9,
                            "max_block_height": 10,
                            "public_key": KEY_TEXT,
                        },
                        "signature": SIGNATURE_TEXT,
                    }
                }

    @pytest.mark.parametrize(
        ("index", "nonce"),
        [
            (None, {"Nonce": {"nonce": 9}}),
            (4, {"GasKeyNonce": {"nonce": 9, "nonce_index": 4}}),
        ],
        ids=["key", "gas key"],
    )
    def test_second_version(self, index, nonce):
        """A delegated action of the second version names its kind of nonce."""
        wanted = protocol.DelegateActionV2(
            "a.near", "b.near", [protocol.Transfer(1)], 9, 10, KEY, index
        )
        shown = written(rpc_json.action(protocol.DelegateV2(wanted, SIGNATURE)))
        assert shown["DelegateV2"]["delegate_action"]["V2"] == {
            "sender_id": "a.near",
            "receiver_id": "b.near",
            "actions": [{"Transfer": {"deposit": "1"}}],
            "nonce": nonce,
            "max_block_height": 10,
            "public_key": KEY_TEXT,
        }


class TestAccounts:
    """Accounts and keys."""

    @pytest.mark.parametrize(
        ("contract", "member", "text"),
        [
            (ONE, "global_contract_hash", ONE_TEXT),
            ("a.near", "global_contract_account_id", "a.near"),
        ],
    )
    def test_global_contract(self, contract, member, text):
        """An account that uses published code says whose, or which."""
        shown = written(rpc_json.account(Account(1, global_contract=contract)))
        assert shown[member] == text
        assert len(shown) == 6

    @pytest.mark.parametrize("allowance", [None, 250])
    def test_function_call_key(self, allowance):
        """A key for calls shows its allowance as a text, or null where there is no end to it."""
        key = protocol.AccessKey(1, protocol.FunctionCallPermission(allowance, "c.near", ["m"]))
        assert written(rpc_json.access_key(key)) == {
            "nonce": 1,
            "permission": {
                "FunctionCall": {
                    "allowance": None if allowance is None else "250",
                    "receiver_id": "c.near",
                    "method_names": ["m"],
                }
            },
        }


class TestTransactions:
    """Transactions, receipts and outcomes."""

    def test_transaction(self):
        """A transaction has no block hash, and names its own hash."""
        tx = protocol.Transaction("a.near", KEY, 3, "b.near", ONE, [protocol.Transfer(1)])
        shown = written(rpc_json.transaction(protocol.SignedTransaction(tx, SIGNATURE)))
        assert shown == {
            "signer_id": "a.near",
            "public_key": KEY_TEXT,
            "nonce": 3,
            "receiver_id": "b.near",
            "actions": [{"Transfer": {"deposit": "1"}}],
            "priority_fee": 0,
            "signature": SIGNATURE_TEXT,
            "hash": str(tx.hash),
        }

    def test_second_version(self):
        """A transaction of the second version says how its nonce counts."""
        tx = protocol.Transaction(
            "a.near", KEY, 3, "b.near", ONE, [protocol.Transfer(1)], version=1, nonce_mode="strict"
        )
        shown = written(rpc_json.transaction(protocol.SignedTransaction(tx, SIGNATURE)))
        assert (shown["nonce_mode"], "nonce_index" in shown) == ("strict", False)
        tx = protocol.Transaction("a.near", KEY, 3, "b.near", ONE, [], version=1, nonce_index=4)
        shown = written(rpc_json.transaction(protocol.SignedTransaction(tx, SIGNATURE)))
        assert (shown["nonce_mode"], shown["nonce_index"]) == ("monotonic", 4)

    def test_action_receipt(self):
        """A receipt tells what it waits for, and to whom its result goes."""
        receipt = ActionReceipt(
            ONE,
            "a.near",
            "b.near",
            "s.near",
            KEY,
            10**9,
            (protocol.Transfer(1),),
            (ONE,),
            ((ONE, "c.near"),),
        )
        assert written(rpc_json.receipt(receipt)) == {
            "predecessor_id": "a.near",
            "priority": 0,
            "receiver_id": "b.near",
            "receipt_id": ONE_TEXT,
            "receipt": {
                "Action": {
                    "actions": [{"Transfer": {"deposit": "1"}}],
                    "gas_price": "1000000000",
                    "input_data_ids": [ONE_TEXT],
                    "is_promise_yield": False,
                    "output_data_receivers": [{"data_id": ONE_TEXT, "receiver_id": "c.near"}],
                    "refund_to": None,
                    "signer_id": "s.near",
                    "signer_public_key": KEY_TEXT,
                }
            },
        }

    @pytest.mark.parametrize(("data", "text"), [(None, None), (b"", ""), (b"9", "OQ==")])
    def test_data_receipt(self, data, text):
        """Data of a failure is null, of nothing an empty text."""
        shown = written(rpc_json.receipt(DataReceipt(ONE, "a.near", "b.near", NO_CODE, data)))
        assert shown["receipt"] == {
            "Data": {"data_id": ONES, "data": text, "is_promise_resume": False}
        }

    @pytest.mark.parametrize(
        ("contract", "identifier"),
        [(ONE, {"hash": ONE_TEXT}), ("a.near", {"account_id": "a.near"})],
    )
    def test_distribution_receipt(self, contract, identifier):
        """The code of a global contract is shown as the base64 of its hash."""
        record = DistributionReceipt(
            ONE,
            "a.near",
            "system",
            contract,
            NO_CODE,
            target_shard=7,
            nonce=2,
            delivered_shards=(3,),
        )
        shown = written(rpc_json.receipt(record))
        assert shown["receiver_id"] == "system"
        assert shown["receipt"] == {
            "GlobalContractDistribution": {
                "id": identifier,
                "target_shard": 7,
                "already_delivered_shards": [3],
                "code": "A" * 43 + "=",
                "nonce": 2,
            }
        }

    @pytest.mark.parametrize(
        ("status", "shown"),
        [
            (SuccessValue(b""), {"SuccessValue": ""}),
            (SuccessValue(b'"9"'), {"SuccessValue": "Ijki"}),
            (SuccessReceiptId(ONE), {"SuccessReceiptId": ONE_TEXT}),
            (Failure({"ActionError": {"index": 0}}), {"Failure": {"ActionError": {"index": 0}}}),
        ],
    )
    def test_outcome(self, status, shown):
        """An outcome shows how it ended, with tokens as a text and gas as a number."""
        outcome = Outcome(ONE, "a.near", ("hi",), (ONE,), MANY, 10**30, status, 7, 0)
        assert written(rpc_json.outcome(outcome, NO_CODE)) == {
            "id": ONE_TEXT,
            "block_hash": ONES,
            "proof": [],
            "outcome": {
                "executor_id": "a.near",
                "logs": ["hi"],
                "receipt_ids": [ONE_TEXT],
                "gas_burnt": MANY,
                "tokens_burnt": "1" + "0" * 30,
                "status": shown,
                "metadata": {"version": 1, "gas_profile": None},
            },
        }

    def test_metadata(self):
        """A receipt's metadata are of version 3, or 4 where the contracts are known."""
        lines = (GasCost("WASM_HOST_COST", "LOG_BASE", 3_543_313_050),)
        cost = {"cost_category": "WASM_HOST_COST", "cost": "LOG_BASE", "gas_used": "3543313050"}
        ended = SuccessValue(b"")
        older = Outcome(ONE, "a.near", (), (), 1, 1, ended, 7, 0, lines)
        assert rpc_json.outcome(older, ONE)["outcome"]["metadata"] == {
            "version": 3,
            "gas_profile": [cost],
        }
        contracts = (None, ("local", ONE), ("global_account_id", "a.near"))
        newer = Outcome(ONE, "a.near", (), (), 1, 1, ended, 7, 0, lines, contracts)
        assert rpc_json.outcome(newer, ONE)["outcome"]["metadata"] == {
            "version": 4,
            "gas_profile": [cost],
            "contracts": [None, {"local": ONE_TEXT}, {"global_account_id": "a.near"}],
        }


def chunk(height, shard_id, *, proposals=()):
    return Chunk(
        shard_id=shard_id,
        chunk_hash=ONE,
        prev_block_hash=ONE,
        prev_state_root=ONE,
        outcome_root=NO_CODE,
        outgoing_receipts_root=ONE,
        tx_root=NO_CODE,
        height_created=height,
        height_included=height,
        gas_used=5,
        balance_burnt=10**20,
        validator_proposals=proposals,
        transactions=(),
        receipts=(),
        encoded_length=8,
    )


class TestBlocks:
    """Blocks and chunks."""

    def block(self):
        """Make a block whose second chunk is of the block before."""
        chunks = (chunk(7, 3, proposals=(Proposal("v.near", KEY, 10**27),)), chunk(6, 4))
        return Block(
            height=7,
            prev_height=5,
            timestamp_ns=MANY // 2,
            epoch_start_height=4,
            ordinal=6,
            gas_price=10**8,
            total_supply=10**33,
            random_value=ONE,
            chunks=chunks,
            author="v",
        )

    def test_header(self):
        """A header counts the new chunks only, and writes its time as number and text."""
        header = rpc_json.block_header(self.block(), 86)
        assert header["chunk_mask"] == [True, False]
        assert header["chunks_included"] == 1
        assert header["chunk_endorsements"] == [[255], []]
        assert (header["height"], header["prev_height"], header["block_ordinal"]) == (7, 5, 6)
        assert header["timestamp"] == MANY // 2
        assert header["timestamp_nanosec"] == "9223372036854775807"
        assert header["gas_price"] == "100000000"
        assert header["total_supply"] == "1" + "0" * 33
        assert header["latest_protocol_version"] == 86
        assert header["validator_proposals"] == [
            {
                "account_id": "v.near",
                "public_key": KEY_TEXT,
                "stake": "1" + "0" * 27,
                "validator_stake_struct_version": "V1",
            }
        ]

    def test_roots_of_nothing(self):
        """The root over chunks that hold nothing is that of the hashes of their roots, zeros."""
        header = rpc_json.block_header(self.block(), 86)
        # Source: a recorded block of mainnet with one empty chunk, whose root is the hash of zeros.
        assert str(protocol.CryptoHash.of(bytes(32))) == EMPTY
        pair = protocol.CryptoHash.of(protocol.CryptoHash(EMPTY) * 2)  # of two chunks
        assert [header[name] for name in ("chunk_tx_root", "outcome_root")] == [str(pair)] * 2
        assert header["challenges_root"] == ONES
        assert header["prev_state_root"] != ONES

    def test_chunk(self):
        """A chunk's gas is a number, what was burnt a text; its shard is not congested."""
        shown = written(rpc_json.chunk(chunk(7, 3), "v.near"))
        assert (shown["author"], shown["transactions"], shown["receipts"]) == ("v.near", [], [])
        header = shown["header"]
        assert (header["gas_used"], header["gas_limit"]) == (5, 10**15)
        assert header["balance_burnt"] == "100000000000000000000"
        assert header["tx_root"] == ONES
        assert header["congestion_info"]["allowed_shard"] == 3

    def test_seal(self):
        """What stands where a signature does can be read as one."""
        text = rpc_json.block_header(self.block(), 86)["signature"]
        assert protocol.Signature.from_text(text).data[32:] == bytes(32)


CAUSE = ("receipt_processing", ONE)


class TestChanges:
    """Changes of state."""

    def test_change(self, subtests):
        """A change names its kind, and what is there after it."""
        cases: list[Any] = [
            ("account", b"", None, "account_deletion", {}),
            (
                "gas_key_nonce",
                KEY.packed + b"\1\2",
                MANY,
                "gas_key_nonce_update",
                {"public_key": KEY_TEXT, "index": 258, "nonce": MANY},
            ),
            (
                "access_key",
                KEY.packed,
                protocol.AccessKey(2),
                "access_key_update",
                {
                    "public_key": KEY_TEXT,
                    "access_key": {"nonce": 2, "permission": "FullAccess"},
                },
            ),
            ("access_key", KEY.packed, None, "access_key_deletion", {"public_key": KEY_TEXT}),
            ("data", b"k", b"v", "data_update", {"key_base64": "aw==", "value_base64": "dg=="}),
            ("data", b"k", b"", "data_update", {"key_base64": "aw==", "value_base64": ""}),
            ("data", b"k", None, "data_deletion", {"key_base64": "aw=="}),
            ("code", b"", CODE, "contract_code_update", {"code_base64": "AGFzbQ=="}),
            ("code", b"", None, "contract_code_deletion", {}),
        ]
        for kind, key, value, name, shown in cases:
            with subtests.test(kind=kind, value=value):
                assert written(rpc_json.change(Change(CAUSE, kind, "a.near", key, value))) == {
                    "cause": {"type": "receipt_processing", "receipt_hash": ONE_TEXT},
                    "type": name,
                    "change": {"account_id": "a.near"} | shown,
                }

    @pytest.mark.parametrize(
        ("cause", "shown"),
        [
            (("transaction_processing", ONE), {"tx_hash": ONE_TEXT}),
            (("action_receipt_gas_reward", ONE), {"receipt_hash": ONE_TEXT}),
            (("validator_accounts_update", None), {}),
        ],
    )
    def test_cause(self, cause, shown):
        """A cause names the transaction or the receipt, if there is one."""
        change = rpc_json.change(Change(cause, "data", "a.near", b"", None))
        assert change["cause"] == {"type": cause[0]} | shown

    def test_touched(self):
        """Of each account each kind of change is told once."""
        data = Change(CAUSE, "data", "a.near", b"k", b"v")
        account = Change(CAUSE, "account", "a.near", b"", Account(5))
        published = Change(CAUSE, "global_code", "a.near", b"", b"c")
        assert rpc_json.touched_accounts([data, account, data, published]) == [
            {"type": "data_touched", "account_id": "a.near"},
            {"type": "account_touched", "account_id": "a.near"},
        ]


def test_encoder_refuses_what_json_does_not_have():
    """A value of an unknown kind is never written as something else."""
    with pytest.raises(TypeError, match="object can't be written"):
        http_messages.encode_json({"a": object()})
