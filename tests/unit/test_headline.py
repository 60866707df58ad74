"""The headline of an explanation: who did what, proven by the document, in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerkit.api.models.transactions import decode_transaction
from ledgerkit.errors import TransportError
from ledgerkit.frames.tokens import TokenFacts
from ledgerkit.tracing.trace import Trace
from ledgerkit.tracing.traces import Traces
from tests.hostile import hidden_characters
from tests.unit import builders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
NEAR = 10**24
GOLD = TokenFacts("ok", "GOLD", 6)
WNEAR = TokenFacts("ok", "wNEAR", 24)
TOKENS = {"gold.near": GOLD, "wrap.near": WNEAR}
SWAP = '{"force":0,"actions":[{"pool_id":79,"token_in":"gold.near","token_out":"wrap.near"}]}'


def moved(sender: str | None, receiver: str | None, amount: int) -> str:
    """Build the log line of a movement of fungible tokens (NEP-141)."""
    if sender is None:
        data = {"owner_id": receiver, "amount": str(amount)}
        return builders.event("nep141", "ft_mint", data)
    if receiver is None:
        data = {"owner_id": sender, "amount": str(amount)}
        return builders.event("nep141", "ft_burn", data)
    data = {"old_owner_id": sender, "new_owner_id": receiver, "amount": str(amount)}
    return builders.event("nep141", "ft_transfer", data)


def nft(name: str, **data: Any) -> str:
    """Build the log line of an NFT's event (NEP-171)."""
    return builders.event("nep171", f"nft_{name}", data)


Step = Any  # sender, receiver, action or actions, logs, and the message of a panic if there is one


def document(*steps: Step, **fields: Any) -> dict[str, Any]:
    """
    Build a result from receipts: sender, receiver, its action or actions, logs and a panic.

    The first has what the transaction asked for, and creates all others.
    """
    _, to, asked, *_ = steps[0]
    actions = asked if isinstance(asked, list) else [asked]
    ids = [f"R{at}" for at in range(len(steps))]
    outcomes, bodies = [], []
    for id_, (sender, receiver, action, logs, *panic) in zip(ids, steps, strict=True):
        status = builders.failing(panic[0]) if panic else {"SuccessValue": ""}
        children = ids[1:] if id_ == "R0" else []
        outcomes.append(
            builders.outcome(id_, children, logs=logs, executor_id=receiver, status=status)
        )
        content = action if isinstance(action, list) else [action]
        is_refund = sender == "system"
        signer = {"signer_id": "system"} if is_refund else {}
        bodies.append(builders.body(id_, *content, sender=sender, to=receiver, **signer))
    return builders.result(outcomes, bodies, actions=actions, to=to, **fields)


def headline(result: dict[str, Any], tokens: Mapping[str, TokenFacts] = TOKENS) -> str:
    """Return the first paragraph of the explanation of a result."""
    data = json.dumps(result).encode()

    def lookup(ids: Sequence[str]) -> dict[str, TokenFacts]:
        return {id_: tokens[id_] for id_ in ids if id_ in tokens}

    trace = Trace(decode_transaction(data, request="T"), data, tokens=lookup)
    return trace.explain().split("\n\n")[0]


def called(method: str, args: Any = None, deposit: int = 0) -> dict[str, Any]:
    """Build a call, by default with no deposit."""
    return builders.call(method, deposit, args)


def alone(contract: str, action: Any, *logs: str, **fields: Any) -> dict[str, Any]:
    """Build the result of one action that led to one receipt."""
    step: Step = ("alice.near", contract, action, list(logs))
    return document(step, **fields)


# Tokens ----------------------------------------------------------------------------------


def transfer_call(*others: Step, amount: int = 120_000_000, msg: str = SWAP) -> dict[str, Any]:
    """Build an ``ft_transfer_call`` of gold to an exchange, and what followed."""
    args = {"receiver_id": "dex.near", "amount": str(amount), "msg": msg}
    call = called("ft_transfer_call", args, 1)
    first: Step = ("alice.near", "gold.near", call, [moved("alice.near", "dex.near", amount)])
    return document(first, *others)


ARRIVES: Step = ("gold.near", "dex.near", called("ft_on_transfer"), [])
PAYS: Step = (
    "dex.near",
    "wrap.near",
    called("ft_transfer", {}, 1),
    [moved("dex.near", "alice.near", 1_495_052_829_698_637_137_632_134)],
)


def back(amount: int) -> Step:
    logs = [moved("dex.near", "alice.near", amount)]
    return ("gold.near", "gold.near", called("ft_resolve_transfer"), logs)


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (transfer_call(ARRIVES, PAYS), "alice.near swapped 120 GOLD for 1.50 wNEAR on dex.near."),
        (transfer_call(ARRIVES, back(0)), "alice.near sent 120 GOLD to dex.near with a call."),
        (
            transfer_call(ARRIVES, PAYS, msg=""),
            "alice.near swapped 120 GOLD for 1.50 wNEAR on dex.near.",
        ),
        (
            transfer_call(ARRIVES, PAYS, back(20_000_000)),
            "alice.near swapped 100 GOLD for 1.50 wNEAR on dex.near.",
        ),
        (
            transfer_call((*ARRIVES, "the contract is paused"), back(120_000_000)),
            (
                "alice.near tried to swap 120 GOLD on dex.near; the exchange panicked and the "
                "tokens came back (the contract is paused)."
            ),
        ),
        (
            transfer_call(ARRIVES, back(120_000_000)),
            "alice.near tried to swap 120 GOLD on dex.near; the exchange sent the tokens back.",
        ),
        (
            transfer_call((*ARRIVES, "no thanks"), back(120_000_000), msg="hello"),
            (
                "alice.near tried to send 120 GOLD to dex.near with a call; dex.near panicked and "
                "the tokens came back (no thanks)."
            ),
        ),
        (
            transfer_call(ARRIVES, back(40_000_000), msg="hello"),
            "alice.near sent 120 GOLD to dex.near with a call; 40 GOLD came back.",
        ),
    ],
)
def test_a_swap_is_what_went_out_and_what_came_in(result: dict[str, Any], sentence: str):
    """Without tokens that come in it is a transfer, whatever its message; all back is none."""
    assert headline(result) == sentence


def test_a_deposit_is_no_swap():
    """A contract that mints its own tokens for what arrives holds it for the sender."""
    args = {"receiver_id": "intents.near", "amount": "5", "msg": ""}
    call = called("ft_transfer_call", args, 1)
    data = {"owner_id": "alice.near", "token_ids": ["nep141:gold.near"], "amounts": ["5000000"]}
    minted = builders.event("nep245", "mt_mint", data)
    first: Step = (
        "alice.near",
        "gold.near",
        call,
        [moved("alice.near", "intents.near", 5_000_000)],
    )
    arrives: Step = ("gold.near", "intents.near", called("ft_on_transfer"), [minted])
    assert headline(document(first, arrives)) == (
        "alice.near sent 5 GOLD to intents.near with a call and received 5 GOLD in intents.near."
    )


def test_near_is_swapped_through_its_wrapper():
    """A batch wraps NEAR and hands it to the exchange: NEAR went out, gold came in."""
    args = {"receiver_id": "dex.near", "amount": str(15 * NEAR), "msg": SWAP}
    actions = [called("near_deposit", {}, 15 * NEAR), called("ft_transfer_call", args, 1)]
    logs = [f"Deposit {15 * NEAR} NEAR to alice.near", moved("alice.near", "dex.near", 15 * NEAR)]
    logs[0] = moved(None, "alice.near", 15 * NEAR)
    gold = [moved("dex.near", "alice.near", 98_700_000)]
    result = document(
        ("alice.near", "wrap.near", actions, logs),
        ("dex.near", "gold.near", called("ft_transfer"), gold),
    )
    assert headline(result) == "alice.near swapped 15.00 NEAR for 98.7 GOLD on dex.near."


def test_a_method_named_swap_proves_nothing():
    """Only movements make a swap; without them, the call is named."""
    swap = called("swap", {"actions": []}, 1)
    assert headline(alone("dex.near", swap)) == "alice.near called swap on dex.near."
    gold = moved("alice.near", "dex.near", 5_000_000)
    in_: Step = (
        "dex.near",
        "wrap.near",
        called("ft_transfer"),
        [moved("dex.near", "alice.near", NEAR)],
    )
    out: Step = ("dex.near", "gold.near", called("take"), [gold])
    first: Step = ("alice.near", "dex.near", swap, [])
    assert (
        headline(document(first, out, in_)) == "alice.near swapped 5 GOLD for 1 wNEAR on dex.near."
    )
    assert headline(document(first, out)) == "alice.near called swap on dex.near and gave 5 GOLD."


def test_tokens_are_sent_if_they_moved():
    """A transfer is proven by its event; several of one token are added up."""
    args = {"receiver_id": "bob.near", "amount": "2500000"}
    send = called("ft_transfer", args, 1)
    sent = alone("gold.near", send, moved("alice.near", "bob.near", 2_500_000))
    assert headline(sent) == "alice.near sent 2.5 GOLD to bob.near."
    other = called("ft_transfer", {"receiver_id": "carl.near", "amount": "500000"}, 1)
    logs = [moved("alice.near", "bob.near", 2_500_000), moved("alice.near", "carl.near", 500_000)]
    step: Step = ("alice.near", "gold.near", [send, other], logs)
    assert headline(document(step)) == "alice.near sent 3 GOLD to 2 accounts."
    register = called("storage_deposit", {"account_id": "bob.near"}, NEAR // 800)
    step = ("alice.near", "gold.near", [register, send], logs[:1])
    assert headline(document(step)) == "alice.near sent 2.5 GOLD to bob.near."


def test_a_storage_deposit_costs_what_did_not_come_back():
    """The contract returns what it does not need (NEP-145)."""
    call = called("storage_deposit", {"account_id": "bob.near"}, NEAR // 10)
    paid_back: Step = ("gold.near", "alice.near", builders.transfer(NEAR // 10 - NEAR // 800), [])
    first: Step = ("alice.near", "gold.near", call, [])
    result = document(first, paid_back)
    sentence = "alice.near paid 0.0012 NEAR for storage of bob.near on gold.near."
    assert headline(result) == sentence
    paid_back = ("gold.near", "alice.near", builders.transfer(NEAR // 10), [])
    assert headline(document(first, paid_back)) == (
        "alice.near called storage_deposit on gold.near with 0.1 NEAR; 0.1 NEAR came back."
    )


def test_near_is_wrapped_and_unwrapped():
    """As many tokens are minted as NEAR went in; burnt, as came out."""
    wrap = called("near_deposit", {}, 15 * NEAR)
    log = f"Deposit {15 * NEAR} NEAR to alice.near"
    assert headline(alone("wrap.near", wrap, log)) == "alice.near wrapped 15 NEAR."
    unwrap = called("near_withdraw", {"amount": str(2 * NEAR)}, 1)
    first: Step = (
        "alice.near",
        "wrap.near",
        unwrap,
        [f"Withdraw {2 * NEAR} yoctoNEAR from alice.near"],
    )
    paid: Step = ("wrap.near", "alice.near", builders.transfer(2 * NEAR + 1), [])
    assert headline(document(first, paid)) == "alice.near unwrapped 2 wNEAR."
    assert (
        headline(document(first))
        == "alice.near called near_withdraw on wrap.near and gave 2 wNEAR."
    )


# Staking ---------------------------------------------------------------------------------

SHARES = "staking shares. Total 0 unstaked balance and 7 staking shares"


@pytest.mark.parametrize(
    ("call", "log", "sentence"),
    [
        (
            called("deposit_and_stake", {}, 50 * NEAR),
            f"@alice.near staking {50 * NEAR - 1}. Received 49 new {SHARES}",
            "alice.near staked 50 NEAR with north.poolv1.near.",
        ),
        (
            called("unstake_all"),
            f"@alice.near unstaking {20 * NEAR}. Spent 19 {SHARES}",
            "alice.near unstaked 20 NEAR from north.poolv1.near.",
        ),
        (
            called("deposit", {}, 3 * NEAR),
            f"@alice.near deposited {3 * NEAR}. New unstaked balance is 7",
            "alice.near deposited 3 NEAR with north.poolv1.near.",
        ),
        (
            called("deposit_and_stake", {}, 50 * NEAR),
            f"@mallory.near staking {50 * NEAR}. Received 49 new {SHARES}",
            "alice.near called deposit_and_stake on north.poolv1.near with 50 NEAR.",
        ),
        (
            called("withdraw_all"),
            f"@alice.near withdrawing {20 * NEAR}. New unstaked balance is 0",
            "alice.near called withdraw_all on north.poolv1.near.",
        ),
    ],
    ids=["stake", "unstake", "deposit", "of another account", "not paid"],
)
def test_a_stake_is_what_the_pool_logged(call: Any, log: str, sentence: str):
    """The lines are those of near/core-contracts; what is not paid is not withdrawn."""
    assert headline(alone("north.poolv1.near", call, log)) == sentence


def test_a_withdrawal_is_paid():
    """The pool logs it, and a receipt pays it."""
    call = called("withdraw_all")
    log = f"@alice.near withdrawing {20 * NEAR}. New unstaked balance is 0"
    first: Step = ("alice.near", "north.poolv1.near", call, [log])
    paid: Step = ("north.poolv1.near", "alice.near", builders.transfer(20 * NEAR), [])
    assert headline(document(first, paid)) == "alice.near withdrew 20 NEAR from north.poolv1.near."


def test_liquid_staking_mints_and_burns_tokens():
    """The token that the pool minted, or burnt, tells it from a plain pool."""
    facts = {"liquid.near": TokenFacts("ok", "LIQ", 24)}
    stake = called("deposit_and_stake", {}, 40 * NEAR)
    staked = alone("liquid.near", stake, moved(None, "alice.near", 39 * NEAR))
    assert headline(staked, facts) == "alice.near staked 40 NEAR with liquid.near for 39 LIQ."
    unstake = called("liquid_unstake")
    first: Step = ("alice.near", "liquid.near", unstake, [moved("alice.near", None, 39 * NEAR)])
    paid: Step = ("liquid.near", "alice.near", builders.transfer(38 * NEAR), [])
    result = document(first, paid)
    sentence = "alice.near unstaked 39 LIQ from liquid.near for 38 NEAR."
    assert headline(result, facts) == sentence


# NFTs ------------------------------------------------------------------------------------

ALICE, BOB = "alice.near", "bob.near"


@pytest.mark.parametrize(
    ("call", "log", "others", "sentence"),
    [
        (
            called("nft_transfer", {"receiver_id": BOB, "token_id": "7"}, 1),
            nft("transfer", old_owner_id=ALICE, new_owner_id=BOB, token_ids=["7"]),
            [],
            "alice.near sent token 7 of art.near to bob.near.",
        ),
        (
            called("nft_mint", {}, NEAR),
            nft("mint", owner_id=BOB, token_ids=["7", "8"]),
            [],
            "alice.near minted tokens 7 and 8 of art.near for bob.near, paying 1 NEAR.",
        ),
        (
            called("buy", {}, 5 * NEAR),
            nft("transfer", old_owner_id=BOB, new_owner_id=ALICE, token_ids=["7"]),
            [("art.near", BOB, builders.transfer(4 * NEAR), [])],
            "alice.near bought token 7 of art.near from bob.near for 5 NEAR.",
        ),
        (
            called("accept_offer"),
            nft("transfer", old_owner_id=ALICE, new_owner_id=BOB, token_ids=["7"]),
            [("art.near", ALICE, builders.transfer(4 * NEAR), [])],
            "alice.near sold token 7 of art.near to bob.near for 4 NEAR.",
        ),
        (
            called("claim"),
            nft("transfer", old_owner_id=BOB, new_owner_id=ALICE, token_ids=["7"]),
            [],
            "alice.near received token 7 of art.near from bob.near.",
        ),
        (
            called("nft_burn"),
            nft("burn", owner_id=ALICE, token_ids=["7"]),
            [],
            "alice.near burnt token 7 of art.near.",
        ),
    ],
    ids=["sent", "minted", "bought", "sold", "received", "burnt"],
)
def test_an_nft_is_bought_if_value_went_the_other_way(
    call: Any, log: str, others: list[Any], sentence: str
):
    """The event names the owners; what was paid for it is NEAR or tokens that moved."""
    first: Step = (ALICE, "art.near", call, [log])
    assert headline(document(first, *others)) == sentence


# Accounts, keys, contracts ---------------------------------------------------------------


def with_key(permission: Any) -> dict[str, Any]:
    access_key = {"nonce": 0, "permission": permission}
    return {"AddKey": {"public_key": "ed25519:1", "access_key": access_key}}


FUNCTION_CALL: Any = {
    "FunctionCall": {"allowance": None, "receiver_id": "dex.near", "method_names": []}
}


def test_each_action_has_its_words(subtests: pytest.Subtests):
    """Actions that an account applies to itself do not name it twice."""
    cases = [
        (with_key("FullAccess"), "alice.near added a full-access key."),
        (with_key(FUNCTION_CALL), "alice.near added a function-call key for dex.near."),
        ({"DeleteKey": {"public_key": "ed25519:1"}}, "alice.near deleted a key."),
        ({"DeployContract": {"code": "aGk="}}, "alice.near deployed a contract."),
        (
            {"Stake": {"stake": str(7 * NEAR), "public_key": "ed25519:1"}},
            "alice.near staked 7 NEAR as a validator.",
        ),
        (
            {"Stake": {"stake": "0", "public_key": "ed25519:1"}},
            "alice.near ended the validator's stake.",
        ),
        (builders.transfer(5 * NEAR), "alice.near sent 5 NEAR to itself."),
        (
            {"DeleteAccount": {"beneficiary_id": "bob.near"}},
            "alice.near deleted its account, with bob.near as the beneficiary.",
        ),
        ({"Novelty": {"x": 1}}, "alice.near sent the action Novelty to itself."),
    ]
    for action, sentence in cases:
        with subtests.test(sentence=sentence):
            assert headline(alone("alice.near", action)) == sentence


def test_a_batch_lists_its_actions():
    """In their order; equal ones are counted, and after the third the others are."""
    actions = [called("a"), called("a"), called("b"), called("c"), called("d"), called("e")]
    step: Step = ("alice.near", "bob.near", actions, [])
    assert headline(document(step)) == (
        "alice.near called a on bob.near 2 times, then called b on bob.near, then called c on "
        "bob.near, then 2 more actions."
    )


def test_an_account_is_created_with_what_it_gets():
    """The batch that creates an account reads as one deed, and so does its failure."""
    parts = ["CreateAccount", builders.transfer(3 * NEAR), with_key("FullAccess")]
    actions = [*parts, {"DeployContract": {"code": "aGk="}}, called("new")]
    step: Step = ("alice.near", "sub.alice.near", actions, [])
    assert headline(document(step)) == (
        "alice.near created sub.alice.near with 3 NEAR, a key, a contract and a call of new."
    )
    refund: Step = ("system", "alice.near", builders.transfer(3 * NEAR), [])
    failed = document(
        (*step, "bad state"),
        refund,
        status=builders.failing("bad state"),
    )
    assert headline(failed) == (
        "alice.near tried to create sub.alice.near with 3 NEAR, a key, a contract and a call of "
        "new; the contract panicked: bad state; 3 NEAR came back."
    )


UNKNOWN_DEPOSITS = {
    "near_deposit": "wrap an unknown amount on pool.near",
    "deposit_and_stake": "stake an unknown amount with pool.near",
    "storage_deposit": "pay an unknown amount for storage on pool.near",
    "create_account": "create sub.near with an unknown amount through pool.near",
}


@pytest.mark.parametrize("method", UNKNOWN_DEPOSITS)
def test_an_unknown_deposit_is_not_zero(method: str):
    """A document may lack a deposit: the headline then names no amount, and not 0 NEAR."""
    call = called(method, {"new_account_id": "sub.near"}, NEAR)
    del call["FunctionCall"]["deposit"]
    step: Step = ("alice.near", "pool.near", call, [], "no")
    assert headline(document(step, status=builders.failing())) == (
        f"alice.near tried to {UNKNOWN_DEPOSITS[method]}; the contract panicked: no."
    )


def test_an_account_is_created_with_an_unknown_amount():
    """A transfer without its deposit is not left out of what a new account gets."""
    actions = ["CreateAccount", {"Transfer": {}}, with_key("FullAccess")]
    step: Step = ("alice.near", "sub.alice.near", actions, [])
    assert headline(document(step)) == (
        "alice.near created sub.alice.near with an unknown amount and a key."
    )


def test_an_account_that_a_contract_deletes_is_not_the_senders():
    """Only a transaction that deletes its own account, and does nothing else, reads as that."""
    delete = {"DeleteAccount": {"beneficiary_id": "carl.near"}}
    actions = [builders.transfer(NEAR), called("close")]
    result = builders.result(
        [
            builders.outcome("R0", ["R1"]),
            builders.outcome("R1", ["R2"], executor_id="old.bob.near"),
            builders.outcome("R2", executor_id="carl.near", tokens=0),
        ],
        [
            builders.body("R0", *actions),
            builders.body("R1", delete, sender="bob.near", to="old.bob.near"),
            builders.refund("R2", 5 * NEAR, "carl.near", signer="system"),
        ],
        actions=actions,
    )
    assert headline(result) == "alice.near sent 1 NEAR to bob.near, then called close on bob.near."


def test_a_contract_creates_an_account_if_its_receipt_succeeds():
    """A success of the transaction is not the account's creation; the receipt decides."""
    call = called("create_account", {"new_account_id": "nina.near"}, 2 * NEAR)
    first: Step = ("alice.near", "near", call, [])
    actions = ["CreateAccount", builders.transfer(2 * NEAR)]
    assert (
        headline(document(first, ("near", "nina.near", actions, [])))
        == "alice.near created nina.near with 2 NEAR through near."
    )
    failed = document(
        first,
        ("near", "nina.near", actions, [], "taken"),
        ("near", "alice.near", builders.transfer(2 * NEAR), []),
    )
    assert headline(failed) == (
        "alice.near tried to create nina.near with 2 NEAR through near; taken; 2 NEAR came back."
    )


def test_a_write_to_the_social_database_names_its_path():
    """The common path of what is written, as the database writes paths."""
    args = {"data": {"alice.near": {"profile": {"name": "Al", "image": {}}}}}
    write = called("set", args, NEAR // 10)
    assert headline(alone("social.near", write)) == (
        "alice.near wrote alice.near/profile on social.near."
    )
    counter = called("set", {"value": 7})
    assert headline(alone("counter.near", counter)) == "alice.near called set on counter.near."


# Endings ---------------------------------------------------------------------------------


def test_a_relayed_request_is_its_senders():
    """The sender of the delegate action acts; the relayer is named."""
    inner = called("ft_transfer", {"receiver_id": "bob.near", "amount": "3000000"}, 1)
    delegate = builders.delegate("kate.near", "gold.near", inner)
    result = document(
        ("relay.near", "kate.near", delegate, []),
        ("kate.near", "gold.near", inner, [moved("kate.near", "bob.near", 3_000_000)]),
    )
    result["transaction"]["signer_id"] = "relay.near"
    assert headline(result) == "kate.near sent 3 GOLD to bob.near, relayed by relay.near."


def test_what_has_not_ended_is_asked_for():
    """Neither a success nor a failure is claimed before the result is known."""
    result = alone("bob.near", builders.transfer(5 * NEAR), status="Started")
    result["receipts_outcome"] = []
    result["final_execution_status"] = "INCLUDED"
    sentence = "alice.near asked to send 5 NEAR to bob.near; this has not finished."
    assert headline(result) == sentence
    del result["status"], result["final_execution_status"], result["transaction_outcome"]
    sentence = (
        "alice.near asked to send 5 NEAR to bob.near; the document does not contain the result."
    )
    assert headline(result) == sentence


def test_a_refused_transaction_names_the_network():
    """It led to no receipt at all."""
    failure = {"Failure": {"InvalidTxError": "Expired"}}
    result = builders.result([], [], actions=[builders.transfer(NEAR)], status=failure)
    result["transaction_outcome"] = builders.outcome("T", status=failure)
    text = headline(result)
    assert text.startswith("alice.near tried to send 1 NEAR to bob.near; the network refused it: ")


def test_a_failure_elsewhere_names_its_account():
    """The contract that was called did not panic itself."""
    call = called("buy", {}, NEAR)
    result = document(
        ("alice.near", "shop.near", call, []),
        ("shop.near", "bank.near", called("pay"), [], "no funds"),
        ("system", "alice.near", builders.transfer(NEAR), []),
        status=builders.failing("no funds"),
    )
    assert headline(result) == (
        "alice.near tried to call buy on shop.near with 1 NEAR; bank.near panicked: no funds; "
        "1 NEAR came back."
    )


def test_what_a_failure_did_not_return_is_stated():
    """Earlier receipts are not rolled back: tokens that left stay away."""
    call = called("buy", {}, 1)
    gone: Step = (
        "shop.near",
        "gold.near",
        called("pull"),
        [moved("alice.near", "shop.near", 7_000_000)],
    )
    result = document(
        ("alice.near", "shop.near", call, []),
        gone,
        ("shop.near", "shop.near", called("done"), [], "oh"),
        ("shop.near", "alice.near", builders.transfer(NEAR), []),
        status=builders.failing("oh"),
    )
    assert headline(result) == (
        "alice.near tried to call buy on shop.near; the contract panicked: oh; 7 GOLD did not "
        "come back."
    )


def test_what_a_call_brought_is_stated():
    """Any call names the amounts that its sender gave and got."""
    claim = called("claim")
    result = alone("gold.near", claim, moved(None, "alice.near", 1_234_567))
    assert headline(result) == "alice.near called claim on gold.near and received 1.23 GOLD."


# Symbols ---------------------------------------------------------------------------------

GIFT = alone("gold.near", called("claim"), moved(None, "alice.near", 1_500_000))


def test_a_symbol_cannot_pretend(subtests: pytest.Subtests):
    """A symbol that is no plain word, or that is NEAR's, does not stand alone."""
    cases = [
        (TokenFacts("ok", "GOLD", 6), "1.5 GOLD"),
        (TokenFacts("ok", "$WEN.e", 6), "1.5 $WEN.e"),
        (TokenFacts("ok", "NEAR", 6), "1.5 tokens of gold.near"),
        (TokenFacts("ok", "GOLD for nothing", 6), "1.5 tokens of gold.near"),
        (TokenFacts("ok", "G" * 64, 6), "1.5 tokens of gold.near"),
        (TokenFacts("ok", "100", 6), "1.5 tokens of gold.near"),
        (TokenFacts("ok", "G\u202eLD", 6), "1.5 tokens of gold.near"),
        (TokenFacts("ok", "\u05d0\u05d1", 6), "1.5 tokens of gold.near"),
        (TokenFacts("ok", "G" + "\u0301" * 9, 6), "1.5 tokens of gold.near"),
        (TokenFacts("ok", "\u041dEAR", 6), "1.5 tokens of gold.near"),
        (TokenFacts("ok", "\uff2e\uff25\uff21\uff32", 6), "1.5 tokens of gold.near"),
        (TokenFacts("ok", "GOLD", 255), "1,500,000 units of gold.near"),
        (TokenFacts("broken", "GOLD", None), "1,500,000 units of gold.near"),
        (TokenFacts("broken", None, 6), "1.5 tokens of gold.near"),
        (TokenFacts("unread"), "1,500,000 units of gold.near"),
    ]
    for facts, amount in cases:
        with subtests.test(facts=facts):
            text = headline(GIFT, {"gold.near": facts})
            assert text == f"alice.near called claim on gold.near and received {amount}."


def test_a_contracts_name_stays_on_its_line():
    """The exact amounts of the explanation clean the contract's name as the headline does."""
    name = "gold\u202e\x1b[2J\n.near"
    result = alone(name, called("claim"), moved(None, "alice.near", 1_500_000))
    for symbol in ("GOLD", "two words"):
        text = read(result, lambda _, symbol=symbol: {name: TokenFacts("ok", symbol, 6)}).explain()
        assert all(character.isprintable() or character == "\n" for character in text)
        assert "1.5 " in text.split("Transferred: ")[1]
        assert "\n.near" not in text


def test_two_tokens_of_one_symbol_are_told_apart():
    """Anyone may call a token GOLD: the headline then names the contracts."""
    args = {"receiver_id": "dex.near", "amount": "5", "msg": SWAP}
    call = called("ft_transfer_call", args, 1)
    first: Step = ("alice.near", "gold.near", call, [moved("alice.near", "dex.near", 5_000_000)])
    fake: Step = (
        "dex.near",
        "g0ld.near",
        called("pay"),
        [moved("dex.near", "alice.near", 6_000_000)],
    )
    result = document(first, fake)
    facts = {"gold.near": GOLD, "g0ld.near": TokenFacts("ok", "Gold", 6)}
    assert headline(result, facts) == (
        "alice.near swapped 5 GOLD (gold.near) for 6 Gold (g0ld.near) on dex.near."
    )


def read(result: dict[str, Any], tokens: Any) -> Trace:
    data = json.dumps(result).encode()
    return Trace(decode_transaction(data, request="T"), data, tokens=tokens)


def test_metadata_is_read_once_and_never_when_declined():
    """One request for all tokens at the first explanation; none with ``metadata=False``."""
    requests: list[list[str]] = []

    def lookup(ids: Sequence[str]) -> Mapping[str, TokenFacts]:
        requests.append(list(ids))
        return TOKENS

    trace = read(transfer_call(ARRIVES, PAYS), lookup)
    raw = trace.explain(metadata=False)
    assert requests == []
    assert raw.startswith(
        "alice.near swapped 120,000,000 units of gold.near for "
        "1,495,052,829,698,637,137,632,134 units of wrap.near on dex.near.\n"
    )
    text = trace.explain()
    assert text == trace.explain()
    assert requests == [["gold.near", "wrap.near"]]
    assert (
        "120 GOLD (gold.near) from alice.near to dex.near; 1 yocto from dex.near to wrap.near; "
        "1.50 wNEAR (wrap.near) from dex.near to alice.near."
    ) in text


def test_an_explanation_needs_no_network():
    """If the metadata cannot be read, amounts are in the smallest unit; so they are in a file."""

    def lookup(_: Sequence[str]) -> Mapping[str, TokenFacts]:
        raise TransportError("the host does not answer")

    result = transfer_call(ARRIVES, PAYS)
    assert read(result, lookup).explain() == read(result, None).explain(metadata=False)
    assert read(result, None).explain() == Trace.from_json(result).explain()


def test_the_headline_alone_is_the_first_paragraph():
    """`headline` is what `explain` begins with, and empty without the transaction."""
    trace = read(transfer_call(ARRIVES, PAYS), lambda _: TOKENS)
    assert trace.headline() == "alice.near swapped 120 GOLD for 1.50 wNEAR on dex.near."
    for metadata in (True, False):
        text = trace.explain(metadata=metadata)
        assert trace.headline(metadata=metadata) == text.split("\n\n")[0]
    assert Trace.from_json({"receipts_outcome": [builders.outcome("R0")]}).headline() == ""


def test_a_card_of_traces_has_the_headline_of_each():
    """The table reads no metadata: tokens are in units, verdicts words, and texts escaped."""
    swap = read(transfer_call(ARRIVES, PAYS), lambda _: pytest.fail("a request"))
    other = Trace.from_json(alone("<b>.near", called("<i>")))
    html = Traces({"T1": swap, "T2": other})._repr_html_()
    assert "alice.near swapped 120,000,000 units of gold.near for " in html
    assert "alice.near called &lt;i&gt; on &lt;b&gt;.near." in html
    assert "<h3>2 transactions (2 fully succeeded)</h3>" in html
    assert ">fully succeeded</td>" in html


def test_a_card_begins_with_the_headline():
    """The heading of the card is the first sentence, which its text does not repeat."""
    html = read(transfer_call(ARRIVES, PAYS), lambda _: TOKENS)._repr_html_()
    sentence = "alice.near swapped 120 GOLD for 1.50 wNEAR on dex.near."
    assert f"<h3>{sentence}</h3><details open><summary><strong>Receipts as a tree" in html
    assert "<strong>In words</strong></summary><p>alice.near sent transaction T" in html
    assert html.count(sentence) == 1


@given(text=st.text(max_size=300))
def test_a_headline_is_one_line_whatever_the_chain_says(text: str):
    """Names, arguments and messages of contracts stay on the line, and within its length."""
    args = {"receiver_id": text, "amount": text, "msg": text, "token_id": text, "data": {text: {}}}
    for method in (text, "ft_transfer_call", "nft_transfer", "set", "create_account"):
        call = called(method, {**args, "new_account_id": text}, 1)
        step: Step = ("alice.near", "bob.near", call, [], text)
        result = document(step, status=builders.failing(text))
        sentence = headline(result)
        assert hidden_characters(sentence, keep="") == []
        assert len(sentence) <= 601
        assert sentence.startswith("alice.near tried to ")


# Recorded results ------------------------------------------------------------------------

RECORDED = {
    "rpc/send_tx.response.json": "sender.testnet sent 1 NEAR to receiver.testnet.",
    "rpc/EXPERIMENTAL_tx_status.response.json": (
        "bowen called transfer on evgeny.lockup.m0 and received 1,000 yocto."
    ),
    "tx/ft_transfer_failure_guest_panic.json": (
        "serhii.near tried to send 10,000,000,000,000,000,000 units of berryclub.ek.near to "
        "volovyk.near; the contract panicked: The account doesn't have enough balance."
    ),
    "tx/ft_transfer_success.json": (
        "serhii.near sent 1 unit of berryclub.ek.near to volovyk.near."
    ),
    "tx/ft_transfer_call_with_callback.json": (
        "serhii.testnet sent 10 units of dev-1623333795623-21399959778159 to "
        "dev-1623693121955-71667632531176 with a call; 1 unit of "
        "dev-1623333795623-21399959778159 came back."
    ),
    "tx/local_receipt_omitted.json": (
        "multisigtest.testnet called add_request_and_confirm on itself."
    ),
    "tx/sandbox_create_account_executed_optimistic.json": (
        "test.near created counter-4fd14aca.test.near with 10 NEAR and a key."
    ),
    "txapi/delegate_small.json": (
        "manhcoi83.tg called l2_claim on game.hot.tg and received 89,845 units of game.hot.tg, "
        "relayed by 0-relay.hot.tg."
    ),
    "txapi/delegate_cross_contract.json": (
        "oracle.sweat called defer_batch on token.sweat and received 609,798,449,060,883,906 units "
        "of token.sweat, relayed by sweat-relayer.near."
    ),
    "txapi/intents_execute.json": (
        "intents.near executed intents: "
        "d573bb736d15cbd16382df2fb4505c12a44b52b0263f3a4453ef4f40d1d92fa1 swapped 1,497,000 units "
        "of sol.omft.near for 120,314,105,211,849,496,797,804 units of wrap.near; with 2 other "
        "intents."
    ),
}


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the recorded responses")
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_results_have_these_headlines(name: str):
    """What nodes and services sent, read as a person reads it."""
    trace = Trace.load(SHARED / "wire" / "samples" / name)
    assert trace.explain().split("\n\n")[0] == RECORDED[name]


VECTORS = {
    "transfer": "alice.near sent 1 NEAR to bob.near.",
    "create_account": "alice.near created sub.alice.near with 0.1 NEAR and a key.",
    "ft_transfer_call_all_used": (
        "alice.near sent 1,000 units of token.near to bob.near with a call."
    ),
    "ft_transfer_call_part_refunded": (
        "alice.near sent 1,000 units of token.near to bob.near with a call; 400 units of "
        "token.near came back."
    ),
    "ft_transfer_call_receiver_panics": (
        "alice.near tried to send 1,000 units of token.near to bob.near with a call; bob.near "
        "panicked and the tokens came back (no thanks)."
    ),
}


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the worked executions")
@pytest.mark.parametrize("name", VECTORS)
def test_worked_executions_have_these_headlines(name: str):
    """Transfers, a creation, and the three ends of a transfer with a call."""
    cases = json.loads((SHARED / "vectors" / "trees.json").read_bytes())["cases"]
    result = next(case["result"] for case in cases if case["name"] == name)
    assert Trace.from_json(result).explain().split("\n\n")[0] == VECTORS[name]
