"""The methods for light clients: which block follows, and what is not proved yet."""

import pytest

from ledgerkit.localnet.rpc import light_client
from ledgerkit.localnet.rpc.errors import HandlerError, ParseError
from ledgerkit.localnet.worlds import open_world
from ledgerkit.protocol import SecretKey, Transaction, Transfer


@pytest.fixture
def world():
    """Return a world with a validator whose key is known."""
    return open_world("empty")


def following(world, block):
    return light_client.next_block(world, {"last_block_hash": str(block.hash)})


def test_a_block_for_light_clients_is_final_and_followed_by_two(world):
    """Of its epoch; its approvals are those in the second block after it."""
    head = world.advance(10)
    answer = following(world, world.chain.genesis)
    assert answer["inner_lite"]["height"] == head.height - 2
    assert answer["approvals_after_next"] == [str(each) for each in head.approvals]
    assert [each["account_id"] for each in answer["next_bps"]] == ["validator.near"]


def test_there_is_none_that_is_newer(world):
    """The answer is an empty object, as a node's is."""
    # Source: nearcore, RpcLightClientNextBlockResponse, whose only member is flattened.
    world.advance(10)
    assert following(world, world.chain.final) == {}
    assert following(world, world.chain.head) == {}


def test_an_epoch_after_another_is_followed(world):
    """From a block two epochs back, it is the last one of the epoch after that block's."""
    first = world.advance(10)
    for _ in range(3):
        world.advance(6, skip=43_200)
    answer = following(world, first)
    epochs = {str(b.epoch_id): b.epoch_height for b in world.chain.blocks()}
    assert first.epoch_height == 0
    assert epochs[answer["inner_lite"]["epoch_id"]] == 1


def test_an_outcome_without_a_chunk_after_it_is_not_confirmed(world):
    """Its root comes with the next chunk of its shard."""
    key = SecretKey.from_text(world.keys()["near"])
    access_key = world.state().access_key("near", key.public_key.stored)
    block_hash = world.chain.head.hash
    tx = Transaction(
        "near", key.public_key, access_key.nonce + 1, "validator.near", block_hash, [Transfer(1)]
    )
    signed = tx.sign(key)
    world.submit(signed)
    world.advance()
    params = {
        "type": "transaction",
        "transaction_hash": str(signed.hash),
        "sender_id": "near",
        "light_client_head": str(world.chain.head.hash),
    }
    world.advance(2, missing=world.settings.shard_ids)
    with pytest.raises(HandlerError) as caught:
        light_client.outcome_proof(world, params)
    assert caught.value.error["cause"] == {
        "name": "NOT_CONFIRMED",
        "info": {"transaction_or_receipt_id": signed.hash},
    }
    head = world.advance(2)
    params["light_client_head"] = str(head.hash)
    answer = light_client.outcome_proof(world, params)
    assert answer["outcome_proof"]["block_hash"] == str(head.prev_hash)


def test_an_outcome_is_proved_by_the_id_of_its_kind(world):
    """A transaction by its hash and sender, a receipt by its id and receiver."""
    signed = world.submit_unsigned("near", "validator.near", [Transfer(1)])
    head = world.advance(5)
    (receipt_id,) = world.transaction(signed.hash).outcome.receipt_ids
    ids = {
        "transaction": {"transaction_hash": str(signed.hash), "sender_id": "near"},
        "receipt": {"receipt_id": str(receipt_id), "receiver_id": "validator.near"},
    }
    for kind, names in ids.items():
        params = {"type": kind, "light_client_head": str(head.hash), **names}
        answer = light_client.outcome_proof(world, params)
        assert answer["outcome_proof"]["id"] in names.values()
        other = {"transaction": "receipt", "receipt": "transaction"}[kind]
        with pytest.raises(ParseError):
            light_client.outcome_proof(world, {**params, "type": other})


def test_another_kind_than_the_two_is_refused(world):
    """With the node's words."""
    with pytest.raises(ParseError, match="unknown variant `block`, expected `transaction` or"):
        light_client.outcome_proof(world, {"type": "block"})
