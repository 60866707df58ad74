"""
The genesis file of a node: a new sandbox's file, and the world that a file describes.

Source: nearcore, core/chain-configs/src/genesis_config.rs and genesis_validate.rs,
nearcore/src/config.rs (`init_configs`).
"""

from collections import defaultdict
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import fees
from ledgerkit.localnet.chain_types import NO_CODE, Account
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.rpc.errors import ParseError
from ledgerkit.localnet.sandbox.records import (
    AccessKeyRecord,
    AccountRecord,
    ContractRecord,
    DataRecord,
    GasKeyNonceRecord,
    StateRecord,
    apply_records,
    balance,
    code_hash_error,
    state_record,
)
from ledgerkit.localnet.settings import SECOND_NS, YEAR_NS, Settings
from ledgerkit.protocol import PublicKey, SecretKey
from ledgerkit.protocol.types import to_base58
from ledgerkit.units import yocto

FILE = "genesis.json"
FAST_EPOCH_LENGTH = 60
EPOCH_LENGTH = 500  # 5 min of blocks of 600 ms
_BALANCE, _STAKE = yocto("1000000000 NEAR"), yocto("50000000 NEAR")
_TREASURY = "near"
_SEED_BYTES = 32
_Records = defaultdict[type, list[Any]]  # one account's records, by kind


def seeded_key(seed: str) -> SecretKey:
    """Derive the key of a test seed: its first 32 bytes, filled up with spaces."""
    # Source: nearcore, core/crypto/src/test_utils.rs, `ed25519_key_pair_from_seed`.
    secret = seed.encode()[:_SEED_BYTES].ljust(_SEED_BYTES, b" ")
    return SecretKey.from_text(to_base58(secret))


# A new file ------------------------------------------------------------------------------


def new_genesis(
    chain_id: str, validator_id: str, validator_key: PublicKey, epoch_length: int
) -> dict[str, Any]:
    treasury_key = seeded_key(_TREASURY).public_key
    return {
        "protocol_version": fees.PROFILES[Settings().profile].version,
        "genesis_time": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "chain_id": chain_id,
        "genesis_height": 0,
        "num_block_producer_seats": 50,
        "dynamic_resharding": False,
        "protocol_upgrade_stake_threshold": [4, 5],
        "epoch_length": epoch_length,
        "gas_limit": fees.CHUNK_GAS,
        "min_gas_price": "100000000",
        "max_gas_price": "10000000000000000000000",
        "block_producer_kickout_threshold": 90,
        "chunk_producer_kickout_threshold": 90,
        "chunk_validator_only_kickout_threshold": 80,
        "target_validator_mandates_per_shard": 68,
        "online_min_threshold": [9, 10],
        "online_max_threshold": [99, 100],
        "gas_price_adjustment_rate": [1, 100],
        "validators": [
            {
                "account_id": validator_id,
                "public_key": str(validator_key),
                "amount": str(_STAKE),
            }
        ],
        "transaction_validity_period": 100,
        "protocol_reward_rate": [1, 10],
        "max_inflation_rate": [1, 20],
        "total_supply": str(2 * _BALANCE + _STAKE),
        "num_blocks_per_year": 31_536_000,
        "protocol_treasury_account": validator_id,
        "fishermen_threshold": str(yocto("10 NEAR")),
        "minimum_stake_divisor": 10,
        "shard_layout": {
            "V2": {
                "boundary_accounts": [],
                "shard_ids": [0],
                "id_to_index_map": {"0": 0},
                "index_to_id_map": {"0": 0},
                "shards_split_map": None,
                "shards_parent_map": None,
                "version": 0,
            }
        },
        "minimum_validators_per_shard": 1,
        "max_kickout_stake_perc": 100,
        "minimum_stake_ratio": [1, 6250],
        "shuffle_shard_assignment_for_chunk_producers": False,
        "use_production_config": False,
        "num_chunk_producer_seats": 100,
        "num_chunk_validator_seats": 300,
        "chunk_producer_assignment_changes_limit": 5,
        "records": [
            *_new_account(validator_id, validator_key, _STAKE),
            *_new_account(_TREASURY, treasury_key, 0),
        ],
    }


def _new_account(account_id: str, public_key: PublicKey, locked: int) -> list[dict[str, Any]]:
    account = {
        "amount": str(_BALANCE),
        "locked": str(locked),
        "code_hash": str(NO_CODE),
        "storage_usage": 0,
        "version": "V1",
    }
    access_key = {"nonce": 0, "permission": "FullAccess"}
    key = {"account_id": account_id, "public_key": str(public_key), "access_key": access_key}
    return [{"Account": {"account_id": account_id, "account": account}}, {"AccessKey": key}]


# Reading a file --------------------------------------------------------------------------


def refuse(member: str, value: Any, expected: str) -> InvalidRequestError:
    return InvalidRequestError.refuse(f"{FILE}: {member}", value, expected)


def read_settings(data: dict[str, Any], skip_ns: int, **changes: Any) -> Settings:
    """Read the settings of a chain from its genesis file; `skip_ns` is the mean block time."""
    try:
        chain_id = read.member(data, "chain_id", read.text)
        epoch_length = read.member(data, "epoch_length", read.u64)
        settings = Settings(
            chain_id=chain_id,
            genesis_height=read.member(data, "genesis_height", read.u64),
            genesis_time_ns=_parse_time_ns(read.member(data, "genesis_time", read.text)),
            gas_price=read.member(data, "min_gas_price", balance),
            epoch_length=epoch_length,
            validity=read.member(data, "transaction_validity_period", read.u64),
            profile=_profile(data.get("protocol_version")),
            boundaries=(),
            shard_ids=_shard_ids(data.get("shard_layout")),
            reward_per_epoch=_reward_divisor(data, epoch_length * skip_ns),
            real_time=True,
            **changes,
        )
    except (ParseError, ValueError) as error:
        raise InvalidRequestError(f"{FILE}: {_reason(error)}", field=FILE) from None
    if chain_id in ("mainnet", "testnet"):
        raise refuse("chain_id", chain_id, "an id of its own: a sandbox is no public network")
    if epoch_length == 0:
        raise refuse("epoch_length", epoch_length, "a number of heights above 0")
    return settings


def _reason(error: Exception) -> str:
    message = error.message if isinstance(error, ParseError) else str(error)
    return message.removeprefix(read.FAILED)


def _parse_time_ns(text: str) -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"genesis_time {text!r} has no time zone, such as Z")
    return int(moment.replace(microsecond=0).timestamp()) * SECOND_NS + moment.microsecond * 1000


def _profile(version: Any) -> Any:
    if version in {profile.version for profile in fees.PROFILES.values()}:
        return str(version)
    raise refuse("protocol_version", version, f"one of {', '.join(fees.PROFILES)}")


def _reward_divisor(data: dict[str, Any], epoch_ns: int) -> int:
    """Return the number that divides a stake into its reward per epoch; 0 without inflation."""
    # Source: nearcore, chain/epoch-manager/src/reward_calculator.rs. The treasury's share is not
    # paid here.
    inflation, treasury = (
        read.member(data, name, _rational)
        for name in ("max_inflation_rate", "protocol_reward_rate")
    )
    yearly = read.member(data, "total_supply", balance) * inflation * (1 - treasury)
    staked = sum(stake for _, _, stake in read.member(data, "validators", read.many(_validator)))
    reward = yearly * epoch_ns / YEAR_NS
    return max(1, round(staked / reward)) if reward > 0 else 0


def _rational(value: Any) -> Fraction:
    match value:
        case [int(numerator), int(denominator)] if numerator >= 0 < denominator:
            return Fraction(numerator, denominator)
    raise read.error(f"invalid value: {value!r}, expected a numerator and a denominator")


def _shard_ids(layout: Any) -> tuple[int, ...]:
    match layout:
        case {"V0": {"num_shards": 1}} | {"V1": {"boundary_accounts": []}} | None:
            return (0,)
        case {"V2": {"boundary_accounts": [], "shard_ids": [int(shard_id)]}}:
            return (shard_id,)
    raise refuse("shard_layout", layout, "a layout of one shard")


class FileGenesis(Genesis):
    """The genesis of a file, with the records in it."""

    def __init__(self, data: dict[str, Any]) -> None:
        super().__init__()
        try:
            records = read.member(data, "records", read.many(state_record))
            stakes = read.many(_validator)(data.get("validators"))
            total_supply = read.member(data, "total_supply", read.text)
        except ParseError as error:
            raise InvalidRequestError(f"{FILE}: {_reason(error)}", field=FILE) from None
        validator_keys = {account_id: key for account_id, key, _ in stakes}
        accounts = _accounts_by_id(records)
        _check_stakes(accounts, {account_id: amount for account_id, _, amount in stakes})
        reason = code_hash_error(records, self.store)
        if reason is not None:
            raise InvalidRequestError(f"{FILE}: {reason}", field=FILE)
        by_account: dict[str, _Records] = {name: defaultdict(list) for name in accounts}
        for record in records:
            by_account[record.account_id][type(record)].append(record)
        for account_id, account in accounts.items():
            key = validator_keys.get(account_id)
            self._add_records(account_id, account, by_account[account_id], key)
        order = list(validator_keys)
        self.validators.sort(key=lambda proposal: order.index(proposal.account_id))
        if str(self.total_supply) != total_supply:
            expected = f"the sum of the accounts' amounts and stakes, {self.total_supply}"
            raise refuse("total_supply", total_supply, expected)

    def _add_records(
        self, account_id: str, account: Account, records: _Records, validator_key: PublicKey | None
    ) -> None:
        """Add an account with its records; the storage usage is recomputed, as in the node."""
        codes = records[ContractRecord]
        self.account(
            account_id,
            account.amount,
            keys=[(key.public_key, key.access_key) for key in records[AccessKeyRecord]],
            contract=codes[-1].code if codes else None,
            records=[(data.key, data.value) for data in records[DataRecord]],
            locked=account.locked,
            validator_key=validator_key,
        )
        apply_records(records[GasKeyNonceRecord], self.store)


def _validator(value: Any) -> tuple[str, PublicKey, int]:
    members = read.members(value)
    return (
        read.member(members, "account_id", read.account_id),
        read.member(members, "public_key", read.public_key),
        read.member(members, "amount", balance),
    )


def _accounts_by_id(records: list[StateRecord]) -> dict[str, Account]:
    """Return the accounts by id; check that each has one record and no global contract."""
    accounts: dict[str, Account] = {}
    for record in records:
        if isinstance(record, AccountRecord):
            if record.account_id in accounts:
                raise refuse("records", record.account_id, "one record of each account")
            accounts[record.account_id] = record.account
    for record in records:
        if record.account_id not in accounts:
            raise refuse("records", record.account_id, "an account that has a record of its own")
        if accounts[record.account_id].global_contract is not None:
            expected = "an account without a global contract: no record has its code"
            raise refuse("records", record.account_id, expected)
    return accounts


def _check_stakes(accounts: dict[str, Account], stakes: dict[str, int]) -> None:
    staked = {name: account.locked for name, account in accounts.items() if account.locked}
    if not stakes or stakes != staked:
        expected = "the accounts whose records have an amount locked, with those amounts"
        raise refuse("validators", sorted(stakes), expected)
