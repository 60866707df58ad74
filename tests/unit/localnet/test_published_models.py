"""The models of near-jsonrpc-client accept the answers of the embedded ledger's profiles."""

import base64

import near_jsonrpc_models as published
import pytest

import ledgerkit as lk
from ledgerkit.localnet import open_world
from ledgerkit.protocol import (
    Transaction,
    Transfer,
    UniversalStateInit,
    UniversalStateInitV1,
    universal_account_id,
)
from tests.unit.localnet.ledger import secret

FINAL = {"finality": "final"}
HEAD = {"finality": "optimistic"}
ONCE = {  # by their models
    "RpcStatusResponse": ("status", []),
    "RpcGasPriceResponse": ("gas_price", [None]),
    "RpcValidatorResponse": ("validators", [None]),
    "RpcProtocolConfigResponse": ("EXPERIMENTAL_protocol_config", FINAL),
    "GenesisConfig": ("genesis_config", {}),
    "RpcClientConfigResponse": ("client_config", []),
    "RpcNetworkInfoResponse": ("network_info", []),
    "RpcStateChangesInBlockByTypeResponse": ("block_effects", FINAL),
}


def initialize(ledger):
    """Create two universal accounts, one of which initializes itself; return their ids."""
    key = secret("owner")
    state_init = UniversalStateInitV1(access_keys=[key.public_key])
    account_id, other_id = universal_account_id(state_init), "0u" + "0" * 52
    lk.use_signer("alice.near", ledger.world.keys()["alice.near"])
    lk.transfer(other_id, "1 NEAR", wait_until="FINAL")
    lk.send(account_id, [Transfer(3 * 10**24)], wait_until="FINAL")
    nonce = int(lk.accounts(account_id, code=True).bootstrap_nonce.iloc[0]) + 1
    block = ledger.rpc("block", HEAD)["header"]["hash"]
    actions = [UniversalStateInit(state_init.encode())]
    tx = Transaction(account_id, key.public_key, nonce, account_id, block, actions)
    encoded = base64.b64encode(tx.sign(key).encode()).decode()
    sent = ledger.rpc("send_tx", {"signed_tx_base64": encoded, "wait_until": "FINAL"})
    assert sent["status"] == {"SuccessValue": ""}
    lk.send(account_id, actions, wait_until="FINAL")
    return [account_id, other_id]


@pytest.mark.parametrize("profile", ["86", "87", "88"])
def test_every_answer_is_accepted(profile):
    """Blocks, chunks, transactions, changes, accounts and keys of the demo, and single answers."""
    with lk.connect("local", world=open_world("demo", profile=profile)) as ledger:
        accepted = []

        def read(model, method, params):
            response = ledger.rpc(method, params)
            getattr(published, model).model_validate(response)
            accepted.append(method)
            return response

        universal = initialize(ledger) if profile >= "87" else []
        for model, (method, params) in ONCE.items():
            read(model, method, params)
        header = ledger.rpc("block", HEAD)["header"]
        block_id, head = header["hash"], header["height"]
        while block_id != "1" * 32:
            block = read("RpcBlockResponse", "block", {"block_id": block_id})
            if block["header"]["height"] < head - 1:  # the results of later ones are not there yet
                whole = {"block_hash": block_id}
                read("RpcIndexerBlockResponse", "EXPERIMENTAL_indexer_block", whole)
            for header in block["chunks"]:
                if header["height_included"] != block["header"]["height"]:
                    continue
                chunk = {"chunk_id": header["chunk_hash"]}
                for tx in read("RpcChunkResponse", "chunk", chunk)["transactions"]:
                    sent = {"tx_hash": tx["hash"], "sender_account_id": tx["signer_id"]}
                    sent["wait_until"] = "NONE"
                    read("RpcTransactionResponse", "tx", sent)
                    read("RpcTransactionResponse", "EXPERIMENTAL_tx_status", sent)
                    if profile >= "87":
                        read("RpcTransactionResponse", "tx_status", sent)
            block_id = block["header"]["prev_hash"]
        for account_id in [*ledger.world.keys(), *universal]:
            account = {"account_id": account_id, **FINAL}
            read("RpcViewAccountResponse", "EXPERIMENTAL_view_account", account)
            read("RpcViewAccessKeyListResponse", "EXPERIMENTAL_view_access_key_list", account)
            changed = {"changes_type": "account_changes", "account_ids": [account_id], **FINAL}
            read("RpcStateChangesInBlockResponse", "changes", changed)
        call = {"account_id": "gold.near", "method_name": "ft_metadata", "args_base64": "", **FINAL}
        read("RpcCallFunctionResponse", "EXPERIMENTAL_call_function", call)
        assert set(accepted) >= {"chunk", "tx", "EXPERIMENTAL_view_account"}
        assert len(accepted) > 700
