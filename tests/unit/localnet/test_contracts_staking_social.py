"""Staking pools, liquid staking and the social database, driven call by call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ledgerkit.localnet.chain_types import Outcome, SuccessValue
from ledgerkit.localnet.contracts.liquid_staking import LiquidStaking
from ledgerkit.localnet.contracts.social_db import SocialDb
from ledgerkit.localnet.contracts.staking_pool import StakingPool
from ledgerkit.localnet.execution_errors import PanicError
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.promises import Promise, ReceiptDraft
from ledgerkit.protocol import FunctionCall, PublicKey, Stake, Transfer
from tests.unit.localnet.contracts import CALLER_KEY, ContractChain, ContractHarness

if TYPE_CHECKING:
    from ledgerkit.localnet.contract_sdk import Contract

NEAR = 10**24
TGAS = 10**12
KEY = PublicKey("ed25519", bytes(range(32)))
LOGIN_KEY = PublicKey("ed25519", bytes([7] * 32))
RESTAKED = "on_stake_action"


class Harness(ContractHarness):
    """A contract with the logs and receipts of its last call."""

    def __init__(self, kind: type[Contract], balance: int = 0) -> None:
        super().__init__(kind, balance=balance, prepaid_gas=1000 * TGAS)
        self.usage = 0
        self.logs: list[str] = []
        self.drafts: list[ReceiptDraft] = []

    def call(self, method: str, *positional: Any, key: PublicKey = KEY, **arguments: Any) -> Any:
        """Call a method; return its value."""
        self.context["signer_public_key"] = key
        result = super().call(method, *positional, **arguments)
        self.logs, self.drafts = result.logs, result.drafts
        return result.value

    def refuses(self, message: str, method: str, *, who: str = "alice.near", **args: Any) -> None:
        """Check that a call panics with a message, and writes nothing."""
        assert self.panic_message(method, who, **args) == message


def events(harness: Harness) -> list[dict[str, Any]]:
    """Read the events among the last call's logs."""
    return [json.loads(log[11:]) for log in harness.logs if log.startswith("EVENT_JSON:")]


# Staking pool ----------------------------------------------------------------------------


@pytest.fixture
def pool() -> Harness:
    """Give a pool with 30 NEAR of its own and a fee of a tenth, after its first stake."""
    harness = Harness(StakingPool, 30 * NEAR)
    harness.call("new", **pool_settings(10, 100))
    return harness


def pool_settings(numerator: int = 0, denominator: int = 1, key: str = str(KEY)) -> dict[str, Any]:
    fraction = {"numerator": numerator, "denominator": denominator}
    return {"owner_id": "owner.near", "stake_public_key": key, "reward_fee_fraction": fraction}


def lock(harness: Harness) -> None:
    """Lock the pool's last proposal, as the chain does."""
    (stake,) = harness.drafts[0].actions
    assert isinstance(stake, Stake)
    harness.balance, harness.locked = harness.balance + harness.locked - stake.stake, stake.stake


def test_a_pool_begins_by_staking_its_own_balance(pool: Harness) -> None:
    """A new pool stakes all but the fund for rounding, and calls itself back."""
    staked, callback = pool.drafts
    assert staked.receiver_id == callback.receiver_id == "it.near"
    assert staked.actions == [Stake(30 * NEAR - 10**12, KEY)]
    assert callback.actions == [FunctionCall(RESTAKED, b"", 20 * TGAS, 0)]
    assert callback.input_data_ids == [staked.output_data_receivers[0][0]]
    assert pool.view("get_total_staked_balance") == "29999999999999000000000000"
    assert pool.view("get_owner_id") == "owner.near"
    assert pool.view("get_staking_key") == str(KEY)
    assert pool.view("get_reward_fee_fraction") == {"numerator": 10, "denominator": 100}
    assert pool.view("is_staking_paused") is False


@pytest.mark.parametrize(
    ("numerator", "denominator", "message"),
    [
        (2, 1, "panicked at 'The reward fee must be less or equal to 1', src/lib.rs:127:9"),
        (
            0,
            0,
            (
                "panicked at 'assertion failed: `(left != right)`\n  left: `0`,\n right: `0`: "
                "Denominator must be a positive number', src/lib.rs:126:9"
            ),
        ),
    ],
)
def test_a_fee_is_a_part(numerator: int, denominator: int, message: str) -> None:
    """A fee above one, or of nothing, is refused."""
    Harness(StakingPool, NEAR).refuses(message, "new", **pool_settings(numerator, denominator))


def test_an_unknown_account_has_zeros(pool: Harness) -> None:
    """Who never came to the pool has nothing there, which is no error."""
    assert pool.view("get_account", account_id="nobody.near") == {
        "account_id": "nobody.near",
        "unstaked_balance": "0",
        "staked_balance": "0",
        "can_withdraw": True,
    }
    assert pool.view("get_number_of_accounts") == 0
    assert pool.view("get_accounts", from_index=0, limit=10) == []


def test_deposit_and_stake(pool: Harness) -> None:
    """A deposit becomes shares at the price of one; the result is empty, the stake follows."""
    assert pool.call("deposit_and_stake", deposit=10 * NEAR) is None
    assert pool.logs == [
        (
            "@alice.near deposited 10000000000000000000000000. "
            "New unstaked balance is 10000000000000000000000000"
        ),
        (
            "@alice.near staking 10000000000000000000000000. Received 10000000000000000000000000 "
            "new staking shares. Total 0 unstaked balance and 10000000000000000000000000 "
            "staking shares"
        ),
        (
            "Contract total staked balance is 39999999999999000000000000. "
            "Total number of shares 39999999999999000000000000"
        ),
    ]
    assert [draft.actions[0] for draft in pool.drafts] == [
        Stake(40 * NEAR - 10**12, KEY),
        FunctionCall(RESTAKED, b"", 20 * TGAS, 0),
    ]
    assert pool.view("get_account_staked_balance", account_id="alice.near") == str(10 * NEAR)


def test_a_deposit_alone_stakes_nothing(pool: Harness) -> None:
    """Within an epoch `deposit` makes no promise; then parts of it can be staked."""
    pool.call("deposit", deposit=5 * NEAR)
    assert pool.drafts == []
    pool.call("stake", amount=str(2 * NEAR))
    assert len(pool.drafts) == 2
    account = pool.view("get_account", account_id="alice.near")
    assert (account["unstaked_balance"], account["staked_balance"]) == (
        str(3 * NEAR),
        str(2 * NEAR),
    )
    pool.call("stake_all")
    assert pool.view("get_account_unstaked_balance", account_id="alice.near") == "0"
    assert pool.view("get_account_total_balance", account_id="alice.near") == str(5 * NEAR)


def test_unstaking_waits_four_epochs(pool: Harness) -> None:
    """What is unstaked in epoch 10 can be withdrawn in epoch 14, by a plain transfer."""
    pool.call("deposit_and_stake", deposit=10 * NEAR)
    pool.call("unstake", amount=str(4 * NEAR))
    assert pool.logs == [
        (
            "@alice.near unstaking 4000000000000000000000000. Spent 4000000000000000000000000 "
            "staking shares. Total 4000000000000000000000000 unstaked balance and "
            "6000000000000000000000000 staking shares"
        ),
        (
            "Contract total staked balance is 35999999999999000000000000. "
            "Total number of shares 35999999999999000000000000"
        ),
    ]
    late = (
        "panicked at 'The unstaked balance is not yet available due to unstaking delay', "
        "src/internal.rs:56:9"
    )
    pool.epoch = 13
    pool.refuses(late, "withdraw_all")
    assert pool.view("is_account_unstaked_balance_available", account_id="alice.near") is False
    pool.epoch = 14
    assert pool.view("is_account_unstaked_balance_available", account_id="alice.near") is True
    assert pool.call("withdraw", amount=str(NEAR)) is None
    assert pool.logs == [
        (
            "@alice.near withdrawing 1000000000000000000000000. "
            "New unstaked balance is 3000000000000000000000000"
        )
    ]
    paid, staked, callback = pool.drafts  # a new epoch: staked again, too
    assert (paid.receiver_id, paid.actions) == ("alice.near", [Transfer(NEAR)])
    assert staked.actions == [Stake(36 * NEAR - 10**12, KEY)]
    assert callback.receiver_id == "it.near"
    pool.call("withdraw_all")
    assert [draft.actions for draft in pool.drafts] == [[Transfer(3 * NEAR)]]


@pytest.mark.parametrize(
    ("method", "amount", "message"),
    [
        ("stake", 1, "panicked at 'Not enough unstaked balance to stake', src/internal.rs:97:9"),
        (
            "unstake",
            10 * NEAR + 1,
            "panicked at 'Not enough staked balance to unstake', src/internal.rs:146:9",
        ),
        (
            "withdraw",
            1,
            "panicked at 'Not enough unstaked balance to withdraw', src/internal.rs:52:9",
        ),
        ("stake", 0, "panicked at 'Staking amount should be positive', src/internal.rs:76:9"),
        ("unstake", 0, "panicked at 'Unstaking amount should be positive', src/internal.rs:130:9"),
        ("withdraw", 0, "panicked at 'Withdrawal amount should be positive', src/internal.rs:48:9"),
    ],
)
def test_a_pool_refuses(pool: Harness, method: str, amount: int, message: str) -> None:
    """Nobody stakes, unstakes or withdraws nothing, or more than they have."""
    pool.call("deposit_and_stake", deposit=10 * NEAR)
    pool.refuses(message, method, amount=str(amount))


def test_rewards_raise_the_price(pool: Harness) -> None:
    """Rewards go to all shares, but for a tenth by which the owner buys new ones."""
    pool.call("deposit_and_stake", deposit=10 * NEAR)
    lock(pool)
    pool.epoch, pool.locked = 11, pool.locked + 4 * NEAR
    assert pool.view("get_account_staked_balance", account_id="alice.near") == str(10 * NEAR)
    pool.call("ping", "anybody.near")
    total, shares = 40 * NEAR - 10**12, 40 * NEAR - 10**12
    bought = 4 * NEAR // 10 * shares // (total + 36 * NEAR // 10)
    total, shares = total + 4 * NEAR, shares + bought
    assert pool.logs == [
        (
            f"Epoch 11: Contract received total rewards of {4 * NEAR} tokens. "
            f"New total staked balance is {total}. Total number of shares {shares}"
        ),
        f"Total rewards fee is {bought} stake shares.",
    ]
    assert pool.drafts[0].actions == [Stake(44 * NEAR - 10**12, KEY)]
    assert pool.view("get_account_staked_balance", account_id="alice.near") == str(
        10 * NEAR * total // shares
    )
    assert pool.view("get_account_staked_balance", account_id="owner.near") == str(
        bought * total // shares
    )
    pool.call("ping")
    assert (pool.logs, pool.drafts) == ([], [])  # once in an epoch


def test_rounding_never_lowers_the_price() -> None:
    """At a price of 7/3, 5 buys 2 shares, is charged 4, and the total grows by 5."""
    harness = Harness(StakingPool, 10**12 + 3)
    harness.call("new", **pool_settings())
    harness.epoch, harness.balance = 11, harness.balance + 4
    harness.call("deposit", deposit=5)
    harness.call("stake", amount="5")  # floor(5*3/7) = 2 shares, worth floor(14/3), ceil(14/3)
    assert harness.logs == [
        (
            "@alice.near staking 4. Received 2 new staking shares. Total 1 unstaked balance and "
            "2 staking shares"
        ),
        "Contract total staked balance is 12. Total number of shares 5",
    ]
    harness.call("unstake", amount="4")  # ceil(4*5/12) = 2 shares, worth ceil(2*12/5) = 5
    assert harness.logs == [
        (
            "@alice.near unstaking 5. Spent 2 staking shares. Total 6 unstaked balance and "
            "0 staking shares"
        ),
        "Contract total staked balance is 8. Total number of shares 3",
    ]


def test_a_failed_stake_is_undone(pool: Harness) -> None:
    """If the chain refuses a stake and something is locked, everything is unstaked."""
    lock(pool)
    pool.call(RESTAKED, "it.near", results=(b"",))
    assert pool.drafts == []
    pool.call(RESTAKED, "it.near", results=(None,))
    assert [draft.actions for draft in pool.drafts] == [[Stake(0, KEY)]]
    pool.locked = 0
    pool.call(RESTAKED, "it.near", results=(None,))
    assert pool.drafts == []


def test_the_list_closes_its_gaps(pool: Harness) -> None:
    """When an account takes everything out, the last of the list moves to its place."""
    for name in ("a.near", "b.near", "c.near"):
        pool.call("deposit", name, deposit=NEAR)
    pool.call("withdraw_all", "a.near")
    assert pool.view("get_number_of_accounts") == 2
    names = [row["account_id"] for row in pool.view("get_accounts", from_index=0, limit=9)]
    assert names == ["c.near", "b.near"]
    pool.call("withdraw_all", "b.near")
    pool.call("deposit", "a.near", deposit=NEAR)
    names = [row["account_id"] for row in pool.view("get_accounts", from_index=1, limit=9)]
    assert names == ["a.near"]


def test_the_genesis_of_a_pool_is_what_calls_leave(pool: Harness) -> None:
    """The records that a world begins with are those of executed calls, byte for byte."""
    pool.epoch = 0
    pool.call("deposit_and_stake", "a.near", deposit=3 * NEAR)
    pool.call("deposit", "a.near", deposit=NEAR)
    pool.call("deposit", "b.near", deposit=2 * NEAR)
    pool.call("deposit_and_stake", "c.near", deposit=7)
    delegators = {
        "a.near": (3 * NEAR, NEAR),
        "b.near": (0, 2 * NEAR),
        "empty.near": (0, 0),
        "c.near": (7, 0),
    }
    records = StakingPool.genesis("owner.near", str(KEY), 30 * NEAR, delegators)
    assert dict(records) == pool.records()


def test_a_pool_needs_a_key_and_a_balance() -> None:
    """A key that is none, and a balance that the fund for rounding takes, are refused."""
    poor = "panicked at 'Account balance too low', src/lib.rs:190:9"
    Harness(StakingPool, 10**12).refuses(poor, "new", **pool_settings())
    bad = "Failed to deserialize input from JSON."
    Harness(StakingPool, NEAR).refuses(bad, "new", **pool_settings(key="ed25519:no"))


# Liquid staking --------------------------------------------------------------------------


@pytest.fixture
def liquid() -> Harness:
    harness = Harness(LiquidStaking, 20 * NEAR)
    harness.call("new", owner_id="owner.near")
    harness.call("add_validator", "owner.near", validator_id="pool.near")
    return harness


def stake_first(liquid: Harness) -> None:
    """Stake the contract's own ten NEAR with its pool."""
    liquid.call("epoch_stake")
    args: dict[str, Any] = {"validator_id": "pool.near", "amount": str(10 * NEAR)}
    liquid.call("validator_staked_callback", "it.near", results=(b"",), **args)


def test_liquid_staking_gives_shares_at_once(liquid: Harness) -> None:
    """Staking makes no call: three events tell the deposit, the stake and the new tokens."""
    assert liquid.call("deposit_and_stake", deposit=5 * NEAR) == str(5 * NEAR)
    assert liquid.drafts == []
    deposit, stake, mint = events(liquid)
    assert deposit == {
        "standard": "linear",
        "version": "1.0.1",
        "event": "deposit",
        "data": [
            {
                "account_id": "alice.near",
                "amount": "5000000000000000000000000",
                "new_unstaked_balance": "5000000000000000000000000",
            }
        ],
    }
    assert (stake["standard"], stake["version"], stake["event"]) == ("linear", "1.0.1", "stake")
    assert stake["data"] == [
        {
            "account_id": "alice.near",
            "staked_amount": "5000000000000000000000000",
            "minted_stake_shares": "5000000000000000000000000",
            "new_unstaked_balance": "0",
            "new_stake_shares": "5000000000000000000000000",
        }
    ]
    assert mint == {
        "standard": "nep141",
        "version": "1.0.0",
        "event": "ft_mint",
        "data": [
            {
                "owner_id": "alice.near",
                "amount": "5000000000000000000000000",
                "memo": "stake",
            }
        ],
    }
    assert liquid.view("ft_balance_of", account_id="alice.near") == str(5 * NEAR)
    assert liquid.view("ft_total_supply") == str(15 * NEAR)
    assert liquid.view("ft_price") == str(NEAR)
    assert liquid.view("ft_metadata")["symbol"] == "LINEAR"


def test_liquid_unstaking_burns_shares(liquid: Harness) -> None:
    """Unstaking burns shares at once and can be withdrawn four epochs later."""
    liquid.call("deposit_and_stake", deposit=5 * NEAR)
    assert liquid.call("unstake", amount=str(2 * NEAR)) is None
    unstake, burn = events(liquid)
    assert (unstake["event"], unstake["data"][0]["unstaked_available_epoch_height"]) == (
        "unstake",
        14,
    )
    assert (burn["event"], burn["data"]) == (
        "ft_burn",
        [{"owner_id": "alice.near", "amount": str(2 * NEAR), "memo": "unstake"}],
    )
    assert liquid.view("get_account", account_id="alice.near") == {
        "account_id": "alice.near",
        "unstaked_balance": str(2 * NEAR),
        "staked_balance": str(3 * NEAR),
        "unstaked_available_epoch_height": 14,
        "can_withdraw": False,
    }
    liquid.refuses(
        "The unstaked balance is not yet available due to unstaking delay",
        "withdraw",
        amount=str(NEAR),
    )
    liquid.epoch = 14
    liquid.call("withdraw", amount=str(2 * NEAR))
    assert [(draft.receiver_id, draft.actions) for draft in liquid.drafts] == [
        ("alice.near", [Transfer(2 * NEAR)])
    ]
    assert events(liquid)[0]["event"] == "withdraw"
    assert liquid.view("get_account_total_balance", account_id="alice.near") == str(3 * NEAR)


@pytest.mark.parametrize(
    ("method", "amount", "message"),
    [
        ("stake", 1, "Not enough unstaked balance to stake"),
        ("unstake", 5 * NEAR + 1, "Not enough staked balance to unstake"),
        ("withdraw", 1, "Not enough unstaked balance to withdraw"),
    ],
)
def test_liquid_staking_refuses(liquid: Harness, method: str, amount: int, message: str) -> None:
    """Nobody stakes, unstakes or withdraws more than they have."""
    liquid.call("deposit_and_stake", deposit=5 * NEAR)
    liquid.refuses(message, method, amount=str(amount))


def test_shares_are_a_token(liquid: Harness) -> None:
    """Shares can be sent to whoever is registered, and unstaked there."""
    liquid.call("deposit_and_stake", deposit=5 * NEAR)
    send: dict[str, Any] = {"receiver_id": "bob.near", "amount": str(NEAR)}
    liquid.refuses("The account bob.near is not registered", "ft_transfer", deposit=1, **send)
    liquid.call("storage_deposit", "bob.near", deposit=NEAR // 800)
    liquid.call("ft_transfer", deposit=1, **send)
    liquid.call("unstake_all", "bob.near")
    assert liquid.view("get_account_unstaked_balance", account_id="bob.near") == str(NEAR)
    liquid.refuses(
        "Cannot delete the account because the unstaked amount is not empty. "
        "Withdraw your balance first.",
        "storage_unregister",
        who="bob.near",
        deposit=1,
    )


def test_epoch_stake_calls_a_pool(liquid: Harness) -> None:
    """Once an epoch all that was asked for goes to a pool, with a callback that counts it."""
    liquid.call("deposit_and_stake", deposit=5 * NEAR)
    returned = liquid.call("epoch_stake", "anybody.near")
    stake_call, callback = liquid.drafts
    assert isinstance(returned, Promise)
    assert returned.drafts == [callback]
    assert (stake_call.receiver_id, stake_call.actions) == (
        "pool.near",
        [FunctionCall("deposit_and_stake", b"", 75 * TGAS, 15 * NEAR)],
    )
    args = b'{"validator_id":"pool.near","amount":"15000000000000000000000000"}'
    assert callback.actions == [
        FunctionCall("validator_staked_callback", args, 25 * TGAS, 0),
    ]
    assert [event["event"] for event in events(liquid)] == ["epoch_cleanup", "epoch_stake_attempt"]
    args = json.loads(args)
    assert liquid.call("validator_staked_callback", "it.near", results=(b"",), **args) is True
    assert liquid.call("epoch_stake") is False
    assert liquid.logs == ["no need to stake, amount to settle is zero"]


def test_liquid_staking_begins_with_twenty() -> None:
    """The contract needs 20 NEAR of its own, and an owner who adds pools."""
    poor = (
        "The account doesn't have enough balance for initialization. "
        "required: 20000000000000000000000000"
    )
    Harness(LiquidStaking, 20 * NEAR - 1).refuses(poor, "new", owner_id="owner.near")
    harness = Harness(LiquidStaking, 20 * NEAR)
    harness.call("new", owner_id="owner.near")
    added: dict[str, Any] = {"validator_id": "pool.near"}
    harness.refuses("Only owner can perform this action", "add_validator", **added)
    assert harness.call("epoch_stake") is False
    assert harness.logs[1:] == ["no candidate found to stake"]
    harness.refuses("Validator not exist", "epoch_withdraw", **added)
    harness.call("add_validator", "owner.near", **added)
    harness.refuses("Validator already exists", "add_validator", who="owner.near", **added)
    assert harness.view("get_validators") == ["pool.near"]
    assert harness.view("get_owner_id") == "owner.near"


def test_liquid_staking_in_steps(liquid: Harness) -> None:
    """A deposit can be staked in parts; an account that has nothing left can be closed."""
    liquid.call("deposit", deposit=5 * NEAR)
    assert liquid.call("stake", amount=str(2 * NEAR)) == str(2 * NEAR)
    assert liquid.call("stake_all") == str(3 * NEAR)
    available = "is_account_unstaked_balance_available"
    assert liquid.view(available, account_id="alice.near") is True
    assert liquid.view("get_account_staked_balance", account_id="alice.near") == str(5 * NEAR)
    liquid.call("storage_deposit", "bob.near", deposit=NEAR // 800)
    send: dict[str, Any] = {"receiver_id": "bob.near", "amount": str(5 * NEAR)}
    liquid.call("ft_transfer", deposit=1, **send)
    assert liquid.call("storage_unregister", deposit=1) is True
    assert liquid.view("storage_balance_of", account_id="alice.near") is None


def test_liquid_staking_keeps_a_reserve(liquid: Harness) -> None:
    """What the contract has but for one NEAR can be paid out, or staked."""
    liquid.call("deposit", deposit=5 * NEAR)
    liquid.balance = 5 * NEAR
    message = "No enough balance in contract to perform withdraw"
    liquid.refuses(message, "withdraw_all")
    liquid.refuses("Contract min reserve error", "epoch_stake")


def test_little_is_not_worth_a_call(liquid: Harness) -> None:
    """Less than one NEAR waits for more."""
    stake_first(liquid)
    liquid.call("deposit_and_stake", deposit=7)
    liquid.epoch = 11
    assert liquid.call("epoch_stake") is False
    assert liquid.logs[1:] == ["stake amount too low: 7"]


@pytest.mark.parametrize(
    ("method", "event"),
    [
        ("validator_unstaked_callback", "epoch_unstake_failed"),
        ("validator_withdraw_callback", "epoch_withdraw_failed"),
    ],
)
def test_a_pool_that_fails_changes_nothing(liquid: Harness, method: str, event: str) -> None:
    """If a pool does not unstake or pay out, the callback says so and counts nothing."""
    args: dict[str, Any] = {"validator_id": "pool.near", "amount": "5"}
    assert liquid.call(method, "it.near", results=(None,), **args) is False
    assert [row["event"] for row in events(liquid)] == [event]
    liquid.refuses(f"Method {method} is private", method, results=(b"",), **args)


def test_a_pool_that_fails_is_asked_again(liquid: Harness) -> None:
    """If the pool's receipt fails, the amount is to be staked still."""
    liquid.call("epoch_stake")
    args: dict[str, Any] = {"validator_id": "pool.near", "amount": str(10 * NEAR)}
    liquid.balance += 10 * NEAR  # the deposit comes back
    assert liquid.call("validator_staked_callback", "it.near", results=(None,), **args) is False
    assert events(liquid)[0]["event"] == "epoch_stake_failed"
    assert isinstance(liquid.call("epoch_stake"), Promise)


def test_rewards_of_pools_raise_the_price_of_shares(liquid: Harness) -> None:
    """A pool's total of 11 for 10 staked makes 10^24 shares worth 1.1 NEAR."""
    stake_first(liquid)
    assert isinstance(liquid.call("epoch_update_rewards", validator_id="pool.near"), Promise)
    args: dict[str, Any] = {"validator_id": "pool.near", "results": (f'"{11 * NEAR}"'.encode(),)}
    liquid.call("validator_get_balance_callback", "it.near", **args)
    assert events(liquid)[0]["data"][0]["rewards"] == str(NEAR)
    assert liquid.view("ft_price") == "1100000000000000000000000"
    assert liquid.call("deposit_and_stake", deposit=11) == "10"
    for nonsense in (None, b"", b'"-5"', b"5"):
        liquid.call(
            "validator_get_balance_callback",
            "it.near",
            results=(nonsense,),
            validator_id="pool.near",
        )
    assert liquid.view("get_total_staked_balance") == str(11 * NEAR + 11)


def test_the_genesis_of_liquid_staking_is_what_calls_leave(liquid: Harness) -> None:
    """The records that a world begins with are those of executed calls, byte for byte."""
    liquid.call("deposit_and_stake", "a.near", deposit=3 * NEAR)
    liquid.call("deposit_and_stake", "b.near", deposit=7)
    records = LiquidStaking.genesis("owner.near", {"a.near": 3 * NEAR, "b.near": 7}, ["pool.near"])
    assert dict(records) == liquid.records()


# Social database -------------------------------------------------------------------------


@pytest.fixture
def social() -> Harness:
    """Give a social database with one author, whose profile and widget have heights."""
    harness = Harness(SocialDb)
    harness.call("new")
    harness.height = 110
    profile = {"name": "Alice", "tags": {"near": ""}}
    harness.call("set", deposit=NEAR, data={"alice.near": {"profile": profile}})
    harness.height = 120
    widget = {"Hello": {"": "return 1;", "metadata": {"name": "Hello"}}}
    harness.call("set", data={"alice.near": {"widget": widget}})
    return harness


def get(harness: Harness, *keys: str, **options: bool) -> Any:
    return harness.view("get", keys=list(keys), options=options)


def test_set_tells_its_height(social: Harness) -> None:
    """The height of a write is told as a text."""
    social.height = 130
    assert social.call("set", data={"alice.near": {"a": "b"}}) == {"block_height": "130"}


def test_get(subtests: pytest.Subtests, social: Harness) -> None:
    """Paths, stars and suffixes give what they match; what is missing is left out."""
    cases = [
        (["alice.near/profile/name"], {"alice.near": {"profile": {"name": "Alice"}}}),
        (["alice.near/profile/*"], {"alice.near": {"profile": {"name": "Alice"}}}),
        (
            ["alice.near/profile/**"],
            {"alice.near": {"profile": {"name": "Alice", "tags": {"near": ""}}}},
        ),
        (["alice.near/widget/Hello"], {"alice.near": {"widget": {"Hello": "return 1;"}}}),
        (["alice.near/widget/*"], {"alice.near": {"widget": {"Hello": "return 1;"}}}),
        (
            ["alice.near/widget/Hello/**"],
            {"alice.near": {"widget": {"Hello": {"": "return 1;", "metadata": {"name": "Hello"}}}}},
        ),
        (
            ["*/widget/*/metadata/name", "alice.near/profile/name/"],
            {
                "alice.near": {
                    "profile": {"name": "Alice"},
                    "widget": {"Hello": {"metadata": {"name": "Hello"}}},
                }
            },
        ),
        (
            ["alice.near/widget/Hello", "alice.near/widget/Hello/metadata/name"],
            {"alice.near": {"widget": {"Hello": {"": "return 1;", "metadata": {"name": "Hello"}}}}},
        ),
        (["alice.near/profile", "alice.near/profile/name/deeper"], {}),
        (["alice.near/missing/**", "bob.near/**", "", "/"], {}),
    ]
    for keys, expected in cases:
        with subtests.test(keys=keys):
            assert get(social, *keys) == expected


def test_heights_stand_at_every_level(social: Harness) -> None:
    """With heights each node has its own and each leaf becomes an object."""
    assert get(social, "alice.near/widget/Hello/**", with_block_height=True) == {
        ":block": 120,
        "alice.near": {
            ":block": 120,
            "widget": {
                ":block": 120,
                "Hello": {
                    ":block": 120,
                    "": {"": "return 1;", ":block": 120},
                    "metadata": {":block": 120, "name": {"": "Hello", ":block": 120}},
                },
            },
        },
    }
    assert get(social, "alice.near/profile/name", with_block_height=True) == {
        ":block": 120,
        "alice.near": {
            ":block": 120,
            "profile": {":block": 110, "name": {"": "Alice", ":block": 110}},
        },
    }
    assert get(social, "bob.near/x", with_block_height=True) == {":block": 120}
    assert get(social, "alice.near/x/y", with_block_height=True) == {":block": 120}


def test_node_numbers(social: Harness) -> None:
    """With numbers each node has its own: the root 0, then in the order they were made."""
    assert get(social, "alice.near/profile/tags/near", with_node_id=True) == {
        ":node": 0,
        "alice.near": {":node": 1, "profile": {":node": 2, "tags": {":node": 3, "near": ""}}},
    }
    assert get(social, "alice.near/widget/Hello", with_node_id=True)["alice.near"]["widget"] == {
        ":node": 4,
        "Hello": {":node": 5, "": "return 1;"},
    }


def test_deep_stars_only_end_a_path(social: Harness) -> None:
    """Two stars before another label are refused."""
    with pytest.raises(PanicError, match="can only be used as a suffix"):
        get(social, "alice.near/**/name")


def test_null_deletes(social: Harness) -> None:
    """A deleted text is absent, or null where deleted ones are asked for."""
    social.height = 140
    social.call("set", data={"alice.near": {"profile": {"name": None}}})
    assert get(social, "alice.near/profile/name") == {}
    assert get(social, "alice.near/profile/name", return_deleted=True) == {
        "alice.near": {"profile": {"name": None}}
    }
    heights = {"return_deleted": True, "with_block_height": True}
    tree = get(social, "alice.near/profile/name", **heights)
    assert tree["alice.near"]["profile"]["name"] == {"": None, ":block": 140}


def test_a_text_can_become_a_node(social: Harness) -> None:
    """A text that gets children is kept under the empty label, with its height."""
    social.height = 150
    social.call("set", data={"alice.near": {"profile": {"name": {"short": "A"}}}})
    tree = get(social, "alice.near/profile/name/**", with_block_height=True)
    assert tree["alice.near"]["profile"]["name"] == {
        ":block": 150,
        "": {"": "Alice", ":block": 110},
        "short": {"": "A", ":block": 150},
    }
    social.call("set", data={"alice.near": {"profile": {"name": "Al"}}})
    assert get(social, "alice.near/profile/name") == {"alice.near": {"profile": {"name": "Al"}}}


def test_keys(subtests: pytest.Subtests, social: Harness) -> None:
    """Which paths there are: true, heights or numbers at their ends."""
    cases = [
        (["alice.near/*"], {}, {"alice.near": {"profile": True, "widget": True}}),
        (["*"], {"return_type": "NodeId"}, {"alice.near": 1}),
        (
            ["alice.near/widget/*"],
            {"return_type": "BlockHeight"},
            {"alice.near": {"widget": {"Hello": 120}}},
        ),
        (["alice.near/*"], {"values_only": True}, {}),
        (
            ["alice.near/profile/*"],
            {"return_type": "NodeId"},
            {"alice.near": {"profile": {"name": None, "tags": 3}}},
        ),
        (
            ["alice.near/widget/Hello", "alice.near/widget/Hello/*"],
            {"values_only": True},
            {"alice.near": {"widget": {"Hello": {"": True}}}},
        ),
        (
            ["alice.near/widget/*", "alice.near/profile/name"],
            {"values_only": True, "return_type": "BlockHeight"},
            {"alice.near": {"profile": {"name": 110}, "widget": {"Hello": 120}}},
        ),
        (["alice.near/widget", "alice.near/profile/name/deeper"], {"values_only": True}, {}),
        (
            ["alice.near/widget/Hello/*", "alice.near/widget/Hello"],
            {"return_type": "BlockHeight"},
            {"alice.near": {"widget": {"Hello": {"": 120, "metadata": 120}}}},
        ),
        (["alice.near/**"], {}, {}),
        (["bob.near/*"], {}, {}),
    ]
    for keys, options, expected in cases:
        with subtests.test(keys=keys):
            assert social.view("keys", keys=keys, options=options) == expected


def test_keys_of_deleted_texts(social: Harness) -> None:
    """A deleted text's path counts only where deleted ones are asked for."""
    social.call("set", data={"alice.near": {"profile": {"name": None}}})
    keys = ["alice.near/profile/name"]
    assert social.view("keys", keys=keys) == {}
    assert social.view("keys", keys=keys, options={"return_deleted": True}) == {
        "alice.near": {"profile": {"name": True}}
    }


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"alice.near": {"profile": "x"}}, "Permission Denied"),
        ({"alice.near": {"new": "x"}}, "Permission Denied"),
        ({"bob.near": {"a": 1}}, "Not enough storage balance"),
        ({"BOB": "x"}, "Invalid account id"),
    ],
)
def test_others_may_not_write(social: Harness, data: Any, message: str) -> None:
    """Nobody writes where they have no permission, or without paying first."""
    social.refuses(message, "set", who="bob.near", data=data)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (5, "The JSON value is not a string, a null or an object"),
        ([], "The JSON value is not a string, a null or an object"),
        ({"a b": "x"}, "Key contains invalid character or longer than 256"),
        ({"é": "x"}, "Key contains invalid character or longer than 256"),
        ({"x" * 257: "x"}, "Key contains invalid character or longer than 256"),
        ({"": {"a": "b"}}, "The empty key's value should be a string or null"),
    ],
)
def test_what_is_no_tree_of_texts(social: Harness, value: Any, message: str) -> None:
    """Numbers, lists and odd labels are refused."""
    social.refuses(message, "set", data={"alice.near": {"a": value}})


def test_a_tree_too_deep(social: Harness) -> None:
    """What is nested deeper than contracts read is bad input, not a crash."""
    deep: Any = "x"
    for _ in range(200):
        deep = {"a": deep}
    message = "Failed to deserialize input from JSON."
    social.refuses(message, "set", data={"alice.near": deep})
    path = "alice.near" + "/a" * 200
    social.refuses(
        message, "grant_write_permission", deposit=1, predecessor_id="b.near", keys=[path]
    )


def test_storage_is_paid_for(social: Harness) -> None:
    """An account needs 0.02 NEAR to begin, and covers each byte it writes."""
    bob = {"bob.near": {"a": "b"}}
    price = 2000 * 10**19
    social.refuses("Not enough storage balance", "set", who="bob.near", deposit=price - 1, data=bob)
    social.call("set", "bob.near", deposit=price, data=bob)
    big = {"bob.near": {"a": "x" * 2000}}
    social.refuses("Not enough storage balance", "set", who="bob.near", data=big)
    before = social.view("get_account_storage", account_id="bob.near")
    assert before["used_bytes"] + before["available_bytes"] == 2000
    social.call("set", "bob.near", data={"bob.near": {"a": "bbb"}})
    after = social.view("get_account_storage", account_id="bob.near")
    assert after["used_bytes"] == before["used_bytes"] + 2
    assert social.view("get_account_storage", account_id="c.near") is None


def test_a_deposit_needs_an_account(social: Harness) -> None:
    """A deposit with nothing to write goes to the caller's account, if there is one."""
    message = "The attached deposit could not be added to any account"
    social.refuses(message, "set", who="bob.near", deposit=NEAR, data={})
    social.call("set", deposit=5, data={})
    balance = social.view("storage_balance_of", account_id="alice.near")
    assert balance["total"] == str(NEAR + 5)


def test_an_unused_deposit_is_paid_back(social: Harness) -> None:
    """With the option, what storage does not need returns by a transfer."""
    options = {"refund_unused_deposit": True}
    bob = {"bob.near": {"a": "b"}}
    social.call("set", "bob.near", deposit=NEAR, data=bob, options=options)
    (draft,) = social.drafts
    assert (draft.receiver_id, draft.actions) == ("bob.near", [Transfer(NEAR - 2000 * 10**19)])
    assert social.view("storage_balance_of", account_id="bob.near") == {
        "total": "20000000000000000000000",
        "available": "0",
    }


def test_storage_of_the_social_database(social: Harness) -> None:
    """Storage is deposited, and partly taken back."""
    small = "The attached deposit is less than the minimum storage balance"
    social.refuses(small, "storage_deposit", who="bob.near", deposit=1)
    args = social.call(
        "storage_deposit", "alice.near", deposit=NEAR, account_id="bob.near", registration_only=True
    )
    assert args == {"total": "20000000000000000000000", "available": "0"}
    assert social.drafts[0].actions == [Transfer(NEAR - 2000 * 10**19)]
    assert social.call("storage_deposit", "bob.near", deposit=7) == {
        "total": "20000000000000000000007",
        "available": "7",
    }
    social.refuses(
        "Requires attached deposit of exactly 1 yoctoNEAR", "storage_withdraw", who="bob.near"
    )
    assert social.call("storage_withdraw", "bob.near", deposit=1)["available"] == "0"
    assert social.drafts[0].actions == [Transfer(7)]
    assert social.view("storage_balance_of", account_id="c.near") is None
    social.call("storage_deposit", "bob.near", deposit=9, registration_only=True)
    assert social.drafts[0].actions == [Transfer(9)]  # there was nothing to register
    much = "The amount is greater than the available storage balance"
    social.refuses(much, "storage_withdraw", who="bob.near", deposit=1, amount="1")
    absent = "The account c.near is not registered"
    social.refuses(absent, "storage_withdraw", who="c.near", deposit=1)


def test_permission_to_an_account(social: Harness) -> None:
    """Who is granted a path may write below it, and nowhere else."""
    path = "alice.near/widget/Hello/metadata"
    grant: dict[str, Any] = {"predecessor_id": "bob.near", "keys": [path]}
    social.refuses("Requires at least 1 yocto", "grant_write_permission", **grant)
    social.call("grant_write_permission", deposit=1, **grant)
    below = {"alice.near": {"widget": {"Hello": {"metadata": {"name": "Hi"}}}}}
    social.call("set", "bob.near", data=below)
    assert get(social, f"{path}/name")["alice.near"]["widget"] == {
        "Hello": {"metadata": {"name": "Hi"}}
    }
    beside = {"alice.near": {"widget": {"Hello": "x"}}}
    social.refuses("Permission Denied", "set", who="bob.near", data=beside)
    grant["keys"] = ["alice.near/profile/name"]
    social.call("grant_write_permission", deposit=1, **grant)
    data = {"alice.near": {"profile": {"name": {"nick": "Al"}}}}
    social.call("set", "bob.near", data=data)
    name = get(social, "alice.near/profile/name/**")["alice.near"]["profile"]["name"]
    assert name == {"": "Alice", "nick": "Al"}


def test_permission_to_a_key(social: Harness) -> None:
    """A key that is granted the whole branch writes for whoever signs with it."""
    grant: dict[str, Any] = {"public_key": str(LOGIN_KEY), "keys": ["alice.near"]}
    social.call("grant_write_permission", deposit=1, **grant)
    data = {"alice.near": {"a": "b"}}
    social.call("set", "relay.near", key=LOGIN_KEY, data=data)
    social.refuses("Permission Denied", "set", who="relay.near", data=data)
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"keys": []}, "Neither account_id or public_key is provided"),
        ({**grant, "predecessor_id": "b.near"}, "Can't supply both account_id and a public_key"),
        ({**grant, "public_key": "ed25519:no"}, "Failed to deserialize input from JSON."),
        ({**grant, "keys": ["b.near"]}, "The path should start with the expected account_id"),
    ]
    for wrong, message in wrongs:
        social.refuses(message, "grant_write_permission", deposit=1, **wrong)


def test_the_genesis_of_the_social_database_is_what_calls_leave(social: Harness) -> None:
    """The records that a world begins with are those of executed calls, byte for byte."""
    tree: dict[str, Any] = {
        "profile": {"name": "Alice", "tags": {"near": ""}},
        "widget": {"Hello": {"": "return 1;", "metadata": {"name": "Hello"}}},
    }
    other = Harness(SocialDb)
    other.call("new")
    other.call("set", deposit=NEAR, data={"alice.near": tree})
    other.call("set", "bob.near", deposit=NEAR, data={"bob.near": {"a": "b"}})
    data = {"alice.near": tree, "bob.near": {"a": "b"}}
    assert dict(SocialDb.genesis(data, deposit=NEAR, block_height=100)) == other.records()
    assert get(other, "**") == get(social, "alice.near/**") | {"bob.near": {"a": "b"}}


# On a chain ------------------------------------------------------------------------------


class StakingChain(ContractChain):
    """A pool, a liquid staking contract, and alice, who uses them."""

    def __init__(self) -> None:
        genesis, own = Genesis(), 100_000 * NEAR + 10**12
        genesis.account("alice.near", 1000 * NEAR, keys=[CALLER_KEY.public_key])
        genesis.account(
            "pool.near",
            10**12,
            contract=StakingPool,
            records=StakingPool.genesis("owner.near", str(KEY), own, {"bob.near": (NEAR, 0)}),
            locked=100_001 * NEAR,
            validator_key=KEY,
        )
        liquid = LiquidStaking.genesis("owner.near", {"bob.near": 5 * NEAR}, ["pool.near"])
        genesis.account("liquid.near", 25 * NEAR, contract=LiquidStaking, records=liquid)
        super().__init__(genesis, genesis_height=1000, epoch_length=20)

    def call(self, receiver_id: str, method: str, deposit: int = 0, **args: Any) -> Outcome:
        """Call a method and settle; return the outcome of its receipt."""
        return self.run(receiver_id, method, deposit=deposit, gas=300, **args)[1]

    def children(self, outcome: Outcome) -> list[Outcome]:
        outcomes = [self.world.outcome(receipt_id) for receipt_id in outcome.receipt_ids]
        return [child for child in outcomes if child is not None]

    def locked(self, account_id: str) -> int:
        """Return an account's yoctoNEAR at stake."""
        account = self.world.state().account(account_id)
        assert account is not None
        return account.locked

    def pass_epochs(self, count: int) -> None:
        until = self.world.epochs.current.height + count
        while self.world.epochs.current.height < until:
            self.world.advance()


@pytest.fixture
def chain() -> StakingChain:
    """Give the chain, with epochs of 20 blocks."""
    return StakingChain()


def test_a_stake_through_epochs(chain: StakingChain) -> None:
    """Rewards come with epochs; what is unstaked is paid out after four."""
    first = chain.call("pool.near", "deposit_and_stake", 500 * NEAR)
    heights = [child.block_height - first.block_height for child in chain.children(first)]
    assert heights == [1, 2, 1]  # the stake, its callback, the refund
    assert chain.locked("pool.near") == 100_501 * NEAR
    chain.pass_epochs(2)
    ping = chain.call("pool.near", "ping")
    assert ping.logs[0].startswith("Epoch 2: Contract received total rewards of ")
    worth = int(chain.view("pool.near", "get_account_staked_balance", account_id="alice.near"))
    assert 500 * NEAR < worth < 501 * NEAR
    chain.call("pool.near", "unstake_all")
    chain.pass_epochs(3)
    early = chain.call("pool.near", "withdraw_all")
    assert "unstaking delay" in repr(early.status)
    chain.pass_epochs(1)
    before = chain.balance("alice.near")
    paid = chain.children(chain.call("pool.near", "withdraw_all"))[0]
    assert (paid.executor_id, paid.status) == ("alice.near", SuccessValue(b""))
    gained = chain.balance("alice.near") - before
    assert worth - NEAR // 100 < gained < worth + NEAR  # but for gas
    assert chain.view("pool.near", "get_account", account_id="alice.near") == {
        "account_id": "alice.near",
        "unstaked_balance": "0",
        "staked_balance": "0",
        "can_withdraw": True,
    }


def test_liquid_stake_earns(chain: StakingChain) -> None:
    """Rewards of a pool reach the price of shares, and what is unstaked can be paid out."""
    chain.call("liquid.near", "deposit_and_stake", 7 * NEAR)
    assert chain.result(chain.call("liquid.near", "epoch_stake")) is True
    total = chain.view("pool.near", "get_account_total_balance", account_id="liquid.near")
    assert total == str(22 * NEAR)
    chain.pass_epochs(3)
    assert chain.view("liquid.near", "ft_price") == str(NEAR)
    updated = chain.call("liquid.near", "epoch_update_rewards", validator_id="pool.near")
    assert [child.executor_id for child in chain.children(updated)[:2]] == [
        "pool.near",
        "liquid.near",
    ]
    assert NEAR < int(chain.view("liquid.near", "ft_price")) < NEAR + NEAR // 1000
    chain.call("liquid.near", "unstake_all")
    for is_due in (True, False):  # once an epoch
        assert chain.result(chain.call("liquid.near", "epoch_unstake")) is is_due
    chain.pass_epochs(4)
    chain.call("liquid.near", "epoch_withdraw", validator_id="pool.near")
    paid = chain.children(chain.call("liquid.near", "withdraw_all"))[0]
    assert (paid.executor_id, paid.status) == ("alice.near", SuccessValue(b""))
    assert chain.view("liquid.near", "ft_balance_of", account_id="alice.near") == "0"
