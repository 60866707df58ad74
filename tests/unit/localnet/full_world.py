"""Worlds with every contract of the package, in which random transactions happen."""

from ledgerkit.localnet.contract_sdk import U128, BalanceMap, Contract, call, to_json, view
from ledgerkit.localnet.contracts.counter import Counter
from ledgerkit.localnet.contracts.dex import Dex
from ledgerkit.localnet.contracts.factory import Factory, TopLevelAccount
from ledgerkit.localnet.contracts.fungible_token import REGISTRATION, WrappedNear
from ledgerkit.localnet.contracts.liquid_staking import FIRST_BALANCE, LiquidStaking
from ledgerkit.localnet.contracts.non_fungible_token import NonFungibleToken
from ledgerkit.localnet.contracts.promises import PromisePatterns
from ledgerkit.localnet.contracts.social_db import SocialDb
from ledgerkit.localnet.contracts.staking_pool import GUARANTEE_FUND, StakingPool
from ledgerkit.localnet.contracts.token_receiver import TokenReceiver
from ledgerkit.localnet.vm import Vm
from ledgerkit.protocol import AccountId, DeleteAccount, FunctionCall
from tests.unit.localnet.chaos import KEYS, PEOPLE, SCRIPTS, TOKEN, Chaos
from tests.unit.localnet.ledger import START, TGAS, N, do, public

WRAP, DEX, LIQUID, POOL, NFT, MULTI = "wrap", "dex.near", "liquid.near", "pool.near", "nft", "multi"
SOCIAL, FACTORY, NAMING, ASYNC, COUNTER = "social.near", "factory", "near", "async.near", "counter"
RECEIVERS = {"shop.near": (0, None), "picky.near": (400, None), "sour.near": (0, "no thanks")}
FUNGIBLE = (TOKEN, WRAP, LIQUID)
MULTI_TOKENS = ("a", "b:1")


class MultiToken(Contract):
    """A contract of several tokens (NEP-245), which anybody mints and burns."""

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self.balances = BalanceMap(vm, b"m")  # by "token_id account_id"

    def _change(self, token_id: str, account_id: str, change: int) -> None:
        """Change a balance, or panic if it is too low."""
        key = f"{token_id} {account_id}"
        balance = (self.balances.get(key) or 0) + change
        self.require(balance >= 0, "The balance is too low")
        self.balances.put(key, balance)

    @call
    def mint(self, account_id: AccountId, token_ids: list[str], amounts: list[U128]) -> None:
        for token_id, amount in zip(token_ids, amounts, strict=True):
            self._change(token_id, account_id, amount)
        row = {"owner_id": account_id, "token_ids": token_ids, "amounts": amounts}
        self.event("nep245", "1.0.0", "mt_mint", [row])

    @call
    def burn(self, token_ids: list[str], amounts: list[U128]) -> None:
        owner_id = self.vm.predecessor_id
        for token_id, amount in zip(token_ids, amounts, strict=True):
            self._change(token_id, owner_id, -amount)
        row = {"owner_id": owner_id, "token_ids": token_ids, "amounts": amounts}
        self.event("nep245", "1.0.0", "mt_burn", [row])

    @call(payable=True)
    def mt_transfer(
        self, receiver_id: AccountId, token_id: str, amount: U128, memo: str | None = None
    ) -> None:
        self.assert_one_yocto()
        sender_id = self.vm.predecessor_id
        self._change(token_id, sender_id, -amount)
        self._change(token_id, receiver_id, amount)
        row = {
            "old_owner_id": sender_id,
            "new_owner_id": receiver_id,
            "token_ids": [token_id],
            "amounts": [amount],
            "memo": memo,
        }
        self.event("nep245", "1.0.0", "mt_transfer", [row])

    @view
    def mt_balance_of(self, account_id: AccountId, token_id: str) -> U128:
        return U128(self.balances.get(f"{token_id} {account_id}") or 0)


class FullWorld(Chaos):
    """
    A world with every contract, and who does things in it.

    Parameters
    ----------
    seed
        Of everything that is left to chance.
    **more
        Settings of the world.
    """

    holders = (*Chaos.holders, DEX)

    def __init__(self, seed, **more):
        self.minted: list[str] = []  # the tokens of the collection
        super().__init__(seed, **more)
        self.names += list(RECEIVERS)
        self.contracts = (
            [self.wrapped, self.liquid, self.pool, self.exchanged] * 2
            + [self.stamps, self.multi, self.social, self.factory, self.named]
            + [self.patterns, self.sent_to_contract, self.refunded_elsewhere]
        )

    def add_to(self, genesis):
        wrapped = dict.fromkeys((*PEOPLE[:3], DEX), 20 * N)
        holders = dict.fromkeys(PEOPLE[:3], 20 * N)
        contracts = {
            WRAP: (110 * N, WrappedNear, WrappedNear.genesis(wrapped)),
            LIQUID: (
                FIRST_BALANCE + 60 * N,
                LiquidStaking,
                LiquidStaking.genesis("ann.near", holders, [POOL]),
            ),
            DEX: (50 * N, Dex, Dex.genesis("ann.near", [{TOKEN: 10**5, WRAP: 20 * N}])),
            NFT: (50 * N, NonFungibleToken, NonFungibleToken.genesis("ann.near", [])),
            MULTI: (50 * N, MultiToken, ()),
            SOCIAL: (
                50 * N,
                SocialDb,
                SocialDb.genesis({"ann.near": {"a": "b"}}, deposit=N, block_height=START),
            ),
            FACTORY: (50 * N, Factory, ()),
            NAMING: (50 * N, TopLevelAccount, ()),
            ASYNC: (50 * N, PromisePatterns, ()),
            COUNTER: (50 * N, Counter, Counter.genesis()),
        }
        contracts |= {
            name: (50 * N, TokenReceiver, TokenReceiver.genesis(*behaviour))
            for name, behaviour in RECEIVERS.items()
        }
        for name, (amount, contract, records) in contracts.items():
            genesis.account(name, amount, keys=[public(name)], contract=contract, records=records)
        self.add_pool(genesis)

    def add_pool(self, genesis):
        own, stakes = 1000 * N + GUARANTEE_FUND, dict.fromkeys(PEOPLE[:3], (30 * N, 5 * N))
        genesis.account(
            POOL,
            GUARANTEE_FUND + 15 * N,
            keys=[public(POOL)],
            contract=StakingPool,
            records=StakingPool.genesis("ann.near", str(public(POOL)), own, stakes),
            locked=own - GUARANTEE_FUND + 90 * N,
            validator_key=public(POOL),
        )

    def run(self, transactions):
        """Make this many transactions, and blocks until nothing waits; return the world."""
        while self.made < transactions:
            self.block()
        self.world.advance(self.settings.yield_timeout + 2)
        self.world.settle()
        return self.world

    def wanted(self, signer_id):
        """Choose what is done, to whom: half of the time with a contract of the package."""
        if self.random.random() < 0.5:
            return super().wanted(signer_id)
        return self.random.choice(self.contracts)(signer_id)

    def call(self, receiver_id, method_name, args=None, *, deposit=0, gas=150):
        return receiver_id, [FunctionCall(method_name, to_json(args or {}), gas * TGAS, deposit)]

    def someone(self):
        """Choose one of the people, who are most likely to have something."""
        return self.random.choice([*PEOPLE, *self.names])

    def units(self):
        return str(self.random.choice([1, N // 1000, N // 10, N, 3 * N]))

    def wrapped(self, signer_id):
        """Wrap, unwrap or send wrapped NEAR."""
        del signer_id
        chance, amount = self.random.random(), self.units()
        if chance < 0.4:
            return self.call(WRAP, "near_deposit", deposit=int(amount))
        if chance < 0.6:
            return self.call(WRAP, "near_withdraw", {"amount": amount}, deposit=1)
        if chance < 0.75:
            args = {"account_id": self.someone()}
            return self.call(WRAP, "storage_deposit", args, deposit=int(REGISTRATION) + 7)
        args = {"receiver_id": self.someone(), "amount": amount, "memo": "a memo"}
        return self.call(WRAP, "ft_transfer", args, deposit=1)

    def liquid(self, signer_id):
        """Stake through the liquid token, or settle it with the pool."""
        del signer_id
        settling = ["epoch_stake", "epoch_unstake"]
        if self.random.random() < 0.3:
            method = self.random.choice([*settling, "epoch_withdraw", "epoch_update_rewards"])
            args = {} if method in settling else {"validator_id": POOL}
            return self.call(LIQUID, method, args, gas=250)
        return self.staking(LIQUID)

    def pool(self, signer_id):
        del signer_id
        if self.random.random() < 0.2:
            return self.call(POOL, "ping", gas=200)
        return self.staking(POOL)

    def staking(self, contract_id):
        """Deposit, stake, unstake or withdraw."""
        method = self.random.choice(
            "deposit deposit_and_stake deposit_and_stake stake stake_all unstake unstake "
            "unstake_all withdraw withdraw_all".split()
        )
        with_amount, amount = method in ("stake", "unstake", "withdraw"), self.units()
        args = {"amount": amount} if with_amount else {}
        deposit = int(amount) if method.startswith("deposit") else 0
        return self.call(contract_id, method, args, deposit=deposit, gas=200)

    def exchanged(self, signer_id):
        """Swap tokens, deposit them, or take them back."""
        del signer_id
        tokens = [TOKEN, WRAP]
        self.random.shuffle(tokens)
        amount = str(self.random.choice([1, 500, 2000] if tokens[0] == TOKEN else [10**20, N]))
        if self.random.random() < 0.25:
            args = {"token_id": tokens[0], "amount": amount}
            return self.call(DEX, "withdraw", args, deposit=1)
        step = {"pool_id": 0, "token_in": tokens[0], "token_out": tokens[1], "min_amount_out": "1"}
        msg = to_json({"actions": [step]}).decode() if self.random.random() < 0.7 else ""
        args = {"receiver_id": DEX, "amount": amount, "msg": msg}
        return self.call(tokens[0], "ft_transfer_call", args, deposit=1, gas=250)

    def sent_to_contract(self, signer_id):
        """Send tokens to a contract that keeps them, returns some, or panics."""
        del signer_id
        token_id, receiver_id = self.random.choice(FUNGIBLE), self.random.choice([*RECEIVERS])
        if self.random.random() < 0.4:
            args = {"account_id": receiver_id}
            return self.call(token_id, "storage_deposit", args, deposit=int(REGISTRATION))
        args = {"receiver_id": receiver_id, "amount": "1000", "msg": "x"}
        return self.call(token_id, "ft_transfer_call", args, deposit=1, gas=200)

    def stamps(self, signer_id):
        """Mint a stamp, send one on, or approve somebody for it."""
        del signer_id
        if not self.minted or self.random.random() < 0.5:
            self.minted.append(str(len(self.minted)))
            metadata = {"title": "A stamp", "copies": 1}
            args = {"token_id": self.minted[-1], "receiver_id": self.someone()}
            return self.call(NFT, "nft_mint", args | {"metadata": metadata}, deposit=N // 10)
        args = {"token_id": self.random.choice(self.minted)}
        chance = self.random.random()
        if chance < 0.3:
            args |= {"account_id": self.someone()}
            return self.call(NFT, "nft_approve", args, deposit=N // 100)
        if chance < 0.6:
            args |= {"receiver_id": self.someone()}
            return self.call(NFT, "nft_transfer", args, deposit=1)
        args |= {"receiver_id": self.random.choice([*RECEIVERS]), "msg": "return true"}
        return self.call(NFT, "nft_transfer_call", args, deposit=1)

    def multi(self, signer_id):
        """Mint, send or burn tokens of the contract of several."""
        del signer_id
        chance, token_id = self.random.random(), self.random.choice(MULTI_TOKENS)
        if chance < 0.4:
            args: dict = {"token_ids": list(MULTI_TOKENS), "amounts": ["70", "5000"]}
            return self.call(MULTI, "mint", {"account_id": self.someone(), **args})
        if chance < 0.6:
            return self.call(MULTI, "burn", {"token_ids": [token_id], "amounts": ["60"]})
        args = {"receiver_id": self.someone(), "token_id": token_id, "amount": "33", "memo": "m"}
        return self.call(MULTI, "mt_transfer", args, deposit=1)

    def social(self, signer_id):
        """Write to the social database, and take back what the storage did not need."""
        if self.random.random() < 0.3:
            return self.call(SOCIAL, "storage_withdraw", deposit=1)
        data = {signer_id: {"a": "b" * self.random.randrange(60)}}
        return self.call(SOCIAL, "set", {"data": data}, deposit=self.random.choice([0, N // 10]))

    def factory(self, signer_id):
        """Create an account with a contract; most often the name is new."""
        del signer_id
        kind, new = self.random.choice([("counter", {"number": 7}), ("none", {}), ("counter", {})])
        args = {"name": f"c{self.random.randrange(30)}", "kind": kind, "args": new}
        return self.call(FACTORY, "create", args, deposit=self.random.choice([0, N, 3 * N]))

    def named(self, signer_id):
        """Create an account under near; now and then it is taken, and the deposit comes back."""
        del signer_id
        key = self.random.choice(KEYS)
        name = f"n{self.random.randrange(20)}.near"
        self.met(name, key)
        args = {"new_account_id": name, "new_public_key": str(public(key))}
        return self.call(NAMING, "create_account", args, deposit=2 * N)

    def patterns(self, signer_id):
        """Call contracts that call contracts, wait in vain, or fail."""
        del signer_id
        method, args = self.random.choice([
            ("chain", {"depth": 4}),
            ("fan_out", {"width": 5}),
            ("join", {"receiver_ids": [COUNTER, ASYNC], "method_name": "get_num"}),
            ("swallow", {"receiver_id": COUNTER, "method_name": "fail"}),
            ("detached_failure", {}),
            ("wait_for", {}),
            ("fail", {}),
        ])  # fmt: skip
        return self.call(ASYNC, method, args)

    def refunded_elsewhere(self, signer_id):
        """Call a contract whose failed call refunds its deposit to a third account."""
        del signer_id
        script, payee = self.random.choice(SCRIPTS), self.someone()
        amount = self.random.choice([1, N // 10])
        failing = ["call", "p", self.random.choice(SCRIPTS), [["panic", "no"]]]
        steps = [[*failing, {"weight": 1, "deposit": amount}], ["refund_to", "p", payee]]
        return script, [do(*steps, gas=200 * TGAS, deposit=self.random.choice([0, N // 5]))]

    def deleted(self, signer_id):
        """Delete an account in a beneficiary's favour, but none of the contracts."""
        receiver_id, actions = super().deleted(signer_id)
        if receiver_id in RECEIVERS:
            return self.moved(signer_id)
        return receiver_id, [DeleteAccount(self.someone())] if actions else actions
