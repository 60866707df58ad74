"""The entries, gaps and tokens of a statement, and the causes of entries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from ledgerkit import validation
from ledgerkit.tracing.amount_texts import IN_INTENTS

if TYPE_CHECKING:
    from ledgerkit.validation import BlockReference

NEAR = "near"  # the asset: balance and locked stake together
GAS_KEY = "gas_key"  # prefix of the asset that is the balance of a gas key
STAKE = "stake:"  # prefix of the asset that is an account's total balance with a staking pool


def unit_asset(asset: str) -> str:
    """Return the asset that a balance is of: NEAR for a stake, a token for one in intents.near."""
    return NEAR if asset.startswith((STAKE, GAS_KEY)) else asset.removeprefix(IN_INTENTS)


Evidence = Literal["proved", "derived", "indexed"]

CAUSES = {
    "transfer": "NEAR sent without a call",
    "deposit": "NEAR attached to a call",
    "refund": "a deposit that came back, because its receipt failed; tokens that came back",
    "fee": "gas: bought with the transaction (negative), and the part that came back (positive)",
    "gas_reward": "the contract's share of the gas that calls of it burnt",
    "storage_burn": "NEAR burnt for the creation of an account",
    "gas_key": "NEAR moved to a gas key of the account, or back from it",
    "token": "tokens transferred",
    "swap": "tokens exchanged by an intent, with its fee",
    "intents_deposit": "tokens deposited with intents.near",
    "intents_withdrawal": "tokens withdrawn from intents.near",
    "mint": "tokens created",
    "burn": "tokens destroyed",
    "stake": "NEAR deposited with a staking pool, or staked there; 0 for a move within a pool",
    "unstake": "stake that was unstaked: usually 0; a few yoctoNEAR if the pool rounded",
    "withdraw": "NEAR withdrawn from a staking pool",
    "staking_reward": "growth of the balance with a staking pool in an epoch",
    "validator_reward": "the account's own reward as a validator",
    "created": "the balance that an account was created with",
    "deleted": "the balance of an account at its deletion",
    "unknown": "a change whose cause no source names",
}


class Entry(NamedTuple):
    """One change of one asset of the account, in the block in which its balance changed."""

    block_height: int
    timestamp_ns: int | None
    asset: str  # near, nep141:<contract>, nep245:<contract>:<token_id>, stake:<pool>
    cause: str
    change: int  # in the asset's smallest unit, negative for what the account paid
    tx_hash: str | None = None
    receipt_id: str | None = None
    counterparty_id: str | None = None
    method_name: str | None = None
    memo: str | None = None
    evidence: Evidence = "derived"
    headline: str | None = None  # what the transaction did, in a sentence
    usd_amount: float | None = None  # its value, signed as `change`, from the Transfers API
    usd_time_ns: int | None = None  # the time of the value


class Gap(NamedTuple):
    """A change of a balance that no entry explains."""

    asset: str
    start_height: int  # the balance is known after this block
    stop_height: int  # the balance is known after this block, too
    missing: int | None  # real change less the sum of the entries; None: a balance is unknown
    note: str

    @property
    def has_block(self) -> bool:
        """True if the block of the change is known."""
        return self.stop_height - self.start_height == 1


class Token(NamedTuple):
    """The symbol and the decimal places of an asset."""

    symbol: str | None
    decimals: int | None


class Block(NamedTuple):
    """A block at an end of a statement, after which balances are read."""

    height: int
    timestamp_ns: int
    block_hash: str | None = None

    @property
    def reference(self) -> BlockReference:
        """The reference that requests name the block by."""
        return validation.block_reference(self.block_hash or self.height)


class Reward(NamedTuple):
    """The growth of a balance with a staking pool between two blocks, usually of one epoch."""

    pool_id: str
    epoch_id: str | None
    start_height: int
    stop_height: int
    timestamp_ns: int | None
    total_before: int
    deposits: int
    withdrawals: int
    total_after: int
    apy: float | None
    account_id: str | None = None  # the owner of the balance; None: the account of the statement

    @property
    def reward(self) -> int:
        """The growth without deposits and withdrawals; a pool rounds down by a few yoctoNEAR."""
        return self.total_after - self.total_before - self.deposits + self.withdrawals


@dataclass(slots=True)
class StatementData:
    """All parts of a statement except its entries."""

    account_id: str
    network: str
    start: Block  # the last block before the entries
    stop: Block  # the last block with entries
    opening: dict[str, int | None] = field(default_factory=dict)  # balances after `start`, by asset
    closing: dict[str, int | None] = field(default_factory=dict)  # balances after `stop`, by asset
    tokens: dict[str, Token] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    rewards: list[Reward] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)  # hashes of transactions still running
    notes: list[str] = field(default_factory=list)
    assets: list[str] | None = None  # the chosen assets; None: all
    n_valued: int | None = None  # entries with a value; None: no values were asked for
