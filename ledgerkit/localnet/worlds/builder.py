"""Parts of every world: a genesis with published keys, a sender; and the empty world."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from ledgerkit.localnet.contract_sdk import Contract, to_json
from ledgerkit.localnet.contracts.factory import TopLevelAccount
from ledgerkit.localnet.contracts.liquid_staking import FIRST_BALANCE, LiquidStaking
from ledgerkit.localnet.contracts.staking_pool import GUARANTEE_FUND, StakingPool
from ledgerkit.localnet.fees import TGAS
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.world import AccountSummary, TransactionSummary, World, WorldSummary
from ledgerkit.protocol import Action, FunctionCall, PublicKey, SecretKey, Transaction
from ledgerkit.protocol.types import to_base58
from ledgerkit.units import yocto

STAKE = yocto("10000000 NEAR")


def function_call(
    method_name: str, args: dict[str, Any] | None = None, *, gas: int = 30, deposit: int | str = 0
) -> FunctionCall:
    """Build a call with JSON arguments, gas in Tgas, and yoctoNEAR or a text such as "1 NEAR"."""
    amount = yocto(deposit) if isinstance(deposit, str) else deposit
    return FunctionCall(method_name, to_json(args or {}), gas * TGAS, amount)


class WorldGenesis(Genesis):
    """A genesis whose accounts have the published keys of a world."""

    def __init__(self, name: str, seed: int) -> None:
        super().__init__()
        self._name, self._seed = name, seed
        self._keys: dict[str, SecretKey] = {}

    def key(self, name: str) -> SecretKey:
        """Return a published key by its name: an account id, or any other text."""
        if name not in self._keys:
            # The same on every machine.
            secret = sha256(f"{self._name} {self._seed} {name}".encode()).digest()
            self._keys[name] = SecretKey.from_text(to_base58(secret))
        return self._keys[name]

    def public_key(self, name: str) -> PublicKey:
        key = self.key(name)
        self.secret_keys[key.public_key] = key
        return key.public_key

    def contract(
        self,
        account_id: str,
        amount: int,
        contract: type[Contract],
        records: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Add an account with a contract, its records, and one full-access key."""
        key = self.public_key(account_id)
        self.account(account_id, amount, keys=[key], contract=contract, records=records)

    def staking_pool(
        self, pool_id: str, owner_id: str, own_stake: int, stakes: Mapping[str, tuple[int, int]]
    ) -> None:
        """Add a pool that validates, with the staked and unstaked yoctoNEAR of its delegators."""
        key = self.public_key(pool_id)
        balance = own_stake + GUARANTEE_FUND
        self.account(
            pool_id,
            GUARANTEE_FUND + sum(unstaked for _, unstaked in stakes.values()),
            keys=[key],
            contract=StakingPool,
            records=StakingPool.genesis(owner_id, str(key), balance, stakes),
            locked=own_stake + sum(staked for staked, _ in stakes.values()),
            validator_key=key,
        )

    def liquid_staking(
        self, owner_id: str, holders: Mapping[str, int], pool_ids: Sequence[str]
    ) -> None:
        """Add the liquid staking token, with the yoctoNEAR of its holders."""
        records = LiquidStaking.genesis(owner_id, holders, pool_ids)
        amount = FIRST_BALANCE + sum(holders.values())
        self.contract("liquid.near", amount, LiquidStaking, records)

    def open(
        self,
        settings: Settings,
        descriptions: Mapping[str, str],
        contracts: dict[str, str | list[str]],
    ) -> World:
        """Open a world with a summary of its described accounts and contracts by role."""
        world = World(settings, self)
        accounts = [
            AccountSummary(name, self.key(name).reveal(), description)
            for name, description in descriptions.items()
        ]
        world.summary = WorldSummary(accounts, contracts)
        world.advance(3)
        return world


class TransactionSender:
    """A sender that signs with the published keys of a world and records its transactions."""

    def __init__(self, world: World, genesis: WorldGenesis) -> None:
        self.world, self.key = world, genesis.key
        self._nonces: dict[tuple[str, bytes], int] = {}

    def send(
        self,
        description: str,
        signer_id: str,
        receiver_id: str,
        *actions: Action,
        key: str | None = None,
    ) -> None:
        """Sign and submit a transaction, and add it to the world's summary."""
        secret = self.key(key or signer_id)
        nonce = self.next_nonce(signer_id, secret)
        block_hash = self.world.chain.final.hash
        tx = Transaction(signer_id, secret.public_key, nonce, receiver_id, block_hash, actions)
        signed = tx.sign(secret)
        self.world.submit(signed)
        summary = TransactionSummary(str(signed.hash), signer_id, description)
        self.world.summary.transactions.append(summary)

    def next_nonce(self, account_id: str, secret: SecretKey) -> int:
        """Return the next nonce of a key, and count it as used."""
        packed = secret.public_key.stored
        access_key = self.world.state().access_key(account_id, packed)
        on_chain = access_key.nonce if access_key else 0
        nonce = max(self._nonces.get((account_id, packed), 0), on_chain) + 1
        self._nonces[account_id, packed] = nonce
        return nonce


def open_empty(seed: int, changes: Mapping[str, Any]) -> World:
    """Open the empty world: one account that owns nearly everything, and a validator."""
    genesis = WorldGenesis("empty", seed)
    genesis.contract("near", yocto("1000000000 NEAR"), TopLevelAccount)
    validator_key = genesis.public_key("validator.near")
    genesis.account("validator.near", STAKE, locked=STAKE, validator_key=validator_key)
    description = "owns nearly everything, and creates accounts for whoever calls create_account"
    return genesis.open(Settings(**changes), {"near": description}, {})
