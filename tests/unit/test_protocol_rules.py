"""The rules in force, as far as a result depends on them."""

import copy
from typing import Any

import pytest

import ledgerkit as lk
from ledgerkit.api.models.protocol_rules import rules_of
from ledgerkit.errors import DecodeError
from tests.unit import builders


def test_rules_are_read_from_a_configuration():
    """Version, share, shards and three costs come from where the protocol tells them."""
    found = rules_of(builders.RULES)
    assert (found.protocol_version, found.reward) == (86, (3, 10))
    assert (found.receipt_gas, found.call_gas, found.call_byte_gas) == (100, 1000, 10)


def test_costs_up_to_64_bits_are_exact():
    """Nodes send gas as u64: costs above 63 bits are read like any other."""
    config = copy.deepcopy(builders.RULES)
    costs = config["runtime_config"]["transaction_costs"]
    costs["action_receipt_creation_config"]["execution"] = 2**64 - 1
    assert rules_of(config).receipt_gas == 2**64 - 1


@pytest.mark.parametrize(
    ("account_id", "shard_id"), [("alice.near", 7), ("b", 3), ("lisa.near", 3), ("m", 5), ("z", 5)]
)
def test_an_account_lives_after_the_boundaries_up_to_its_name(account_id: str, shard_id: int):
    """The index of a shard is the number of boundaries not above the account."""
    assert rules_of(builders.RULES).shard_of(account_id) == shard_id


def test_an_older_layout_numbers_its_shards():
    """Without ids shards are numbered; without boundaries nobody can tell."""
    config = copy.deepcopy(builders.RULES)
    config["shard_layout"] = {"V1": {"boundary_accounts": ["b"]}}
    assert rules_of(config).shard_of("carl.near") == 1
    config["shard_layout"] = {"V0": {"num_shards": 4}}
    assert rules_of(config).shard_of("carl.near") is None


@pytest.mark.parametrize("layout", [None, {}])
def test_a_configuration_without_a_layout_serves_for_rewards(layout: object):
    """Before there were layouts there was none: the share and costs are read all the same."""
    config = copy.deepcopy(builders.RULES)
    config["shard_layout"] = layout
    rules = rules_of(config)
    assert rules.shard_of("carl.near") is None
    assert (rules.reward, rules.call_gas) == ((3, 10), 1000)
    del config["shard_layout"]
    assert rules_of(config) == rules
    call = builders.call()
    size = len("m") + len(b"{}")
    outcome = builders.outcome("R0", gas=100 + 1000 + 10 * size + 100)
    document = builders.result([outcome], [builders.body("R0", call)])
    trace = lk.Trace.from_json(document, rules=config)
    # By hand: 100 gas beyond the fees, of which the contract gets three tenths.
    assert trace.gas["contract_reward"].tolist() == [0, 30 * builders.PRICE]
    assert trace.receipts["shard_id"].isna().all()


def test_a_configuration_that_is_none_is_refused_by_its_place():
    """A missing member is named."""
    config = copy.deepcopy(builders.RULES)
    del config["runtime_config"]["transaction_costs"]["burnt_gas_reward"]
    with pytest.raises(DecodeError) as caught:
        rules_of(config)
    assert caught.value.path == "$.runtime_config.transaction_costs"
    assert "burnt_gas_reward" in str(caught.value)


@pytest.mark.parametrize("document", [{}, {"protocol_version": 1}, "text"])
def test_a_document_that_is_no_configuration_is_refused_with_what_to_pass(document: Any):
    """The error has a place, and its remedy is about the document: no request was sent."""
    with pytest.raises(DecodeError) as caught:
        rules_of(document)
    assert caught.value.path == "$"
    assert caught.value.sentence.endswith("at $")
    assert "EXPERIMENTAL_protocol_config" in caught.value.remedy
    assert "has changed" not in caught.value.remedy
