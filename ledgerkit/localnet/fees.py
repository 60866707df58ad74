"""The rules of each protocol version: its features, its table of gas, and sums of the entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.protocol import Action, PublicKey
from ledgerkit.protocol import actions as kinds
from ledgerkit.protocol.access_keys import (
    FunctionCallPermission,
    GasKey,
    GasKeyFunctionCall,
    Permission,
)
from ledgerkit.protocol.types import AccountId, AccountKind

if TYPE_CHECKING:
    from ledgerkit.localnet.settings import ProfileName

TGAS = 10**12
ML_DSA_VERIFICATION = 100 * 10**9  # gas (nearcore: ml_dsa_65_verification_cost)
MAX_GAS_PRICE_FACTOR = 20
CHUNK_GAS = 1000 * TGAS
VIEW_GAS = 1000 * TGAS  # nearcore: max_gas_burnt_view
MAX_GAS_BURNT = 1000 * TGAS  # the limit of one call
STORAGE_BYTE_PRICE = 10**19  # yoctoNEAR locked
GLOBAL_BYTE_PRICE = 10**20  # yoctoNEAR burnt, for the code of a global contract
STORAGE_FREE = 770  # bytes that need no balance (NEP-448, zero-balance accounts)
IMPLICIT_BYTES = 182  # an implicit account with its one key
RECORD_BYTES = 40  # an access key's or a storage record's, besides key and value
NONCE_BYTES = 8
INDEX_BYTES = 2  # the index of a gas key's nonce
_GAS_KEY_INFO_BYTES = 18  # a gas key's balance and number of nonces
_MIN_GAS_KEY_BYTES = 27  # an encoded gas key with full access
_DERIVED_LENGTHS = (42, 54, 64)  # account ids derived from a key, address or state


class Fee(NamedTuple):
    """The gas to send to oneself, to send to others, and to execute."""

    send_sir: int
    send_other: int
    execute: int

    def send(self, *, to_self: bool) -> int:
        """Return the gas to send; nearcore calls a sender that is the receiver `sir`."""
        return self.send_sir if to_self else self.send_other

    def times(self, count: int) -> Fee:
        return Fee(*(gas * count for gas in self))

    def plus(self, other: Fee) -> Fee:
        return Fee(*map(add, self, other))


def _uniform(gas: int) -> Fee:
    return Fee(gas, gas, gas)


# Source: nearcore, core/parameters/res/runtime_configs: parameters.yaml and the changes of later
# protocol versions, such as 85.yaml. core/parameters/src/cost.rs sums the fees of gas keys.
_TABLE = {
    "new_action_receipt": _uniform(108_059_500_000),
    "data_receipt_base": _uniform(36_486_732_312),
    "data_receipt_byte": Fee(17_212_011, 47_683_715, 17_212_011),
    "create_account": _uniform(3_850_000_000_000),
    "delete_account": _uniform(147_489_000_000),
    "deploy_contract": _uniform(184_765_750_000),
    "deploy_contract_byte": Fee(6_812_999, 47_683_715, 64_572_944),
    "function_call": Fee(200_000_000_000, 200_000_000_000, 780_000_000_000),
    "function_call_byte": Fee(2_235_934, 47_683_715, 2_235_934),
    "transfer": _uniform(115_123_062_500),
    "stake": Fee(141_715_687_500, 141_715_687_500, 102_217_625_000),
    "add_full_access_key": _uniform(101_765_125_000),
    "add_function_call_key": _uniform(102_217_625_000),
    "add_function_call_key_byte": Fee(1_925_331, 47_683_715, 1_925_331),
    "delete_key": _uniform(94_946_625_000),
    "delegate": _uniform(200_000_000_000),
    "deploy_global_contract": _uniform(184_765_750_000),
    "deploy_global_contract_byte": Fee(6_812_999, 47_683_715, 70_000_000),
    "use_global_contract": _uniform(184_765_750_000),
    "use_global_contract_byte": Fee(6_812_999, 47_683_715, 64_572_944),
    "deterministic_state_init": Fee(3_850_000_000_000, 3_850_000_000_000, 4_080_000_000_000),
    "deterministic_state_init_entry": Fee(0, 0, 200_000_000_000),
    "deterministic_state_init_byte": Fee(72_000_000, 72_000_000, 70_000_000),
    "gas_key_transfer": Fee(115_123_062_500, 115_123_062_500, 235_676_644_250),
    "gas_key_byte": Fee(59_357_464, 59_357_464, 101_435_400),
    "gas_key_nonce_write": Fee(0, 0, 64_196_736_000),
}
_TABLE_85 = _TABLE | {
    "create_account": Fee(500_000_000_000, 500_000_000_000, 7_200_000_000_000),
    "deterministic_state_init": Fee(500_000_000_000, 500_000_000_000, 7_430_000_000_000),
}

# The gas of host functions, from the same files. Python code has no instructions to count, so a
# Python contract burns CALL_BASE for its computation.
CALL_BASE = TGAS
REGULAR_OP = 822_756  # a Wasm instruction
HOST_COSTS = {
    "CONTRACT_LOADING_BASE": 35_445_963,
    "CONTRACT_LOADING_BYTES": 1_089_295,
    "BASE": 264_768_111,
    "READ_MEMORY_BASE": 2_609_863_200,
    "READ_MEMORY_BYTE": 3_801_333,
    "WRITE_MEMORY_BASE": 2_803_794_861,
    "WRITE_MEMORY_BYTE": 2_723_772,
    "READ_REGISTER_BASE": 2_517_165_186,
    "READ_REGISTER_BYTE": 98_562,
    "WRITE_REGISTER_BASE": 2_865_522_486,
    "WRITE_REGISTER_BYTE": 3_801_564,
    "UTF8_DECODING_BASE": 3_111_779_061,
    "UTF8_DECODING_BYTE": 291_580_479,
    "UTF16_DECODING_BASE": 3_543_313_050,
    "UTF16_DECODING_BYTE": 163_577_493,
    "SHA256_BASE": 4_540_970_250,
    "SHA256_BYTE": 24_117_351,
    "KECCAK256_BASE": 5_879_491_275,
    "KECCAK256_BYTE": 21_471_105,
    "KECCAK512_BASE": 5_811_388_236,
    "KECCAK512_BYTE": 36_649_701,
    "SHA3_256_BASE": 5_879_491_275,
    "SHA3_256_BYTE": 21_471_105,
    "SHA3_384_BASE": 5_811_388_236,
    "SHA3_384_BYTE": 36_649_701,
    "SHA3_512_BASE": 5_811_388_236,
    "SHA3_512_BYTE": 36_649_701,
    "UNIVERSAL_STATE_INIT_TO_ACCOUNT_ID_BASE": 8_520_000_000,
    "UNIVERSAL_STATE_INIT_TO_ACCOUNT_ID_BYTE": 21_471_105,
    "RIPEMD160_BASE": 853_675_086,
    "RIPEMD160_BLOCK": 680_107_584,
    "ED25519_VERIFY_BASE": 210_000_000_000,
    "ED25519_VERIFY_BYTE": 9_000_000,
    "ECRECOVER_BASE": 278_821_988_457,
    "P256_VERIFY_BASE": 1_300_000_000_000,
    "P256_VERIFY_BYTE": 13_000_000,
    "LOG_BASE": 3_543_313_050,
    "LOG_BYTE": 13_198_791,
    "STORAGE_WRITE_BASE": 64_196_736_000,
    "STORAGE_WRITE_KEY_BYTE": 70_482_867,
    "STORAGE_WRITE_VALUE_BYTE": 31_018_539,
    "STORAGE_WRITE_EVICTED_BYTE": 32_117_307,
    "STORAGE_READ_BASE": 56_356_845_749,
    "STORAGE_READ_KEY_BYTE": 30_952_533,
    "STORAGE_READ_VALUE_BYTE": 5_611_004,
    "STORAGE_LARGE_READ_OVERHEAD_BASE": 1,
    "STORAGE_LARGE_READ_OVERHEAD_BYTE": 1,
    "STORAGE_REMOVE_BASE": 53_473_030_500,
    "STORAGE_REMOVE_KEY_BYTE": 38_220_384,
    "STORAGE_REMOVE_RET_VALUE_BYTE": 11_531_556,
    "STORAGE_HAS_KEY_BASE": 54_039_896_625,
    "STORAGE_HAS_KEY_BYTE": 30_790_845,
    "PROMISE_AND_BASE": 1_465_013_400,
    "PROMISE_AND_PER_PROMISE": 5_452_176,  # per byte of the promises' indices, in spite of its name
    "PROMISE_RETURN": 560_152_386,
    "VALIDATOR_STAKE_BASE": 911_834_726_400,
    "VALIDATOR_TOTAL_STAKE_BASE": 911_834_726_400,
    "YIELD_CREATE_BASE": 153_411_779_276,
    "YIELD_CREATE_WITH_ID_BASE": 290_000_000_000,
    "YIELD_CREATE_BYTE": 15_643_988,
    "YIELD_RESUME_BASE": 1_195_627_285_210,
    "YIELD_RESUME_BYTE": 47_683_715,
}


class Feature(Enum):
    """
    A feature of the protocol: its name in the node, and the version that brought it.

    Source: nearcore, core/primitives-core/src/version.rs, ProtocolFeature; where the node has a
    parameter in place of a feature, core/parameters/res/runtime_configs.
    """

    def __init__(self, label: str, since: int) -> None:
        self.label, self.since = label, since

    GAS_KEYS = "GasKeys", 85  # permissions 2 and 3, actions 12 and 13, transactions V1
    DELEGATE_V2 = "DelegateV2", 85
    POST_QUANTUM_SIGNATURES = "PostQuantumSignatures", 85  # keys and signatures of ML-DSA-65
    STATE_INIT_IN_DELEGATE = "FixDelegatedDeterministicStateInit", 85
    DELETED_GLOBAL_CODE = "FixDeleteAccountGlobalContractStorageUsage", 85
    CONTRACTS_IN_METADATA = "ExecutionMetadataV4", 85
    ONE_YOCTO_ON_PROMISE = "one_yocto_on_promise", 85
    NO_DELEGATE_V2 = "RejectDelegateV2", 87  # in new receipts; older receipts still run
    NO_WITHDRAWAL_IN_DELEGATE = "RejectWithdrawFromGasKeyInDelegate", 87
    NO_EMPTY_METHOD_NAME = "RejectEmptyMethodName", 87
    STATE_INIT_LIMIT = "max_state_init_entries", 87
    ML_DSA_CHARGED_WHERE_VERIFIED = "FixMlDsaCostCharging", 87
    UNIVERSAL_ACCOUNTS = "UniversalAccounts", 87
    INPUT_LIMIT = "ReceiptPromiseInputSizeLimit", 87


@dataclass(frozen=True, slots=True)
class Profile:
    """The fees and rules of one protocol version."""

    version: int
    table: dict[str, Fee]
    min_purchase_price: int  # the lowest price at which gas is bought; the surplus is refunded
    creation_charge: int  # the total yoctoNEAR that the creation of an account burns
    reward_percent: int  # the contract's share of the gas burnt inside its calls

    def has(self, feature: Feature) -> bool:
        return self.version >= feature.since

    def account_kind(self, account_id: str) -> AccountKind:
        """Return the origin of an account id; a universal id is a name before version 87."""
        if len(account_id) not in _DERIVED_LENGTHS:
            return "named"
        kind = AccountId(account_id).kind
        is_name = kind == "universal" and not self.has(Feature.UNIVERSAL_ACCOUNTS)
        return "named" if is_name else kind

    def fee(self, action: Action, receiver_id: str) -> Fee:
        """Return the fee of an action, without the actions inside a delegate action."""
        return reduce(Fee.plus, [fee for _, fee in self.fee_parts(action, receiver_id)])

    def fee_parts(self, action: Action, receiver_id: str) -> list[tuple[str, Fee]]:
        match action:
            case kinds.Transfer():
                parts = [("TRANSFER", self._transfer(receiver_id))]
            case kinds.AddKey(public_key=key, access_key=access_key):
                parts = self._key_parts(access_key.permission, key, receiver_id)
            case kinds.DeterministicStateInit(state_init=state):
                size = sum(len(key) + len(value) for key, value in state.data.items())
                parts = self._state_init_parts("DETERMINISTIC_STATE_INIT", len(state.data), size)
            case kinds.UniversalStateInit(state_init=data):
                # The rates are the same (nearcore #16103), but all bytes and each key are charged.
                universal = action.decoded or kinds.UniversalStateInitV1()
                n_records, n_keys = len(universal.data), len(universal.access_keys)
                parts = self._state_init_parts("UNIVERSAL_STATE_INIT", n_records, len(data))
                key_fee = self.table["add_full_access_key"].times(n_keys)
                parts.append(("ADD_FULL_ACCESS_KEY", key_fee))
            case kinds.TransferToGasKey(public_key=key) | kinds.WithdrawFromGasKey(public_key=key):
                written = _key_path_bytes(receiver_id, key) + _MIN_GAS_KEY_BYTES
                byte = self._gas_key_bytes(len(key.packed), written)
                parts = [("GAS_KEY_TRANSFER_BASE", self.table["gas_key_transfer"])]
                parts.append(("GAS_KEY_BYTE", byte))
            case kinds.SignedDelegate():
                is_charged_here = self.has(Feature.ML_DSA_CHARGED_WHERE_VERIFIED)
                gas = _verification_gas(action) if is_charged_here else 0
                parts = [("DELEGATE", self.table["delegate"].plus(Fee(0, 0, gas)))]
            case _:
                kind = kinds.KIND_OF[type(action)]
                parts = [(kind.fee.upper(), self.table[kind.fee])]
                if kind.charged_bytes is not None:
                    parts = self._by_bytes(kind.fee, kind.charged_bytes(action))
        return parts

    def _transfer(self, receiver_id: str) -> Fee:
        """Return the fee of a transfer, which may create a receiver whose id is derived."""
        fee, kind = self.table["transfer"], self.account_kind(receiver_id)
        if kind != "named":
            fee = fee.plus(self.table["create_account"])
        if kind == "near-implicit":
            fee = fee.plus(self.table["add_full_access_key"])
        return fee

    def verification_gas(self, public_key: PublicKey, actions: Iterable[Action]) -> int:
        """Sum the gas to verify the signatures of a transaction when it is converted."""
        # Classical signatures cost nothing besides the other fees (nearcore,
        # runtime/runtime/src/config.rs, signature_verification_cost).
        gas = ML_DSA_VERIFICATION if public_key.curve == "ml-dsa-65" else 0
        if self.has(Feature.ML_DSA_CHARGED_WHERE_VERIFIED):
            return gas
        for action in actions:
            if isinstance(action, kinds.SignedDelegate):
                gas += _verification_gas(action)
        return gas

    def _by_bytes(self, name: str, size: int) -> list[tuple[str, Fee]]:
        byte = self.table[f"{name}_byte"].times(size)
        return [(f"{name}_base".upper(), self.table[name]), (f"{name}_byte".upper(), byte)]

    def _key_parts(
        self, permission: Permission, public_key: PublicKey, receiver_id: str
    ) -> list[tuple[str, Fee]]:
        """List the parts of the fee of adding a key; a gas key also pays for writing its nonces."""
        parts = [("ADD_FULL_ACCESS_KEY", self.table["add_full_access_key"])]
        if isinstance(permission, FunctionCallPermission | GasKeyFunctionCall):
            size = sum(len(name.encode()) + 1 for name in permission.method_names)
            parts = self._by_bytes("add_function_call_key", size)
        if isinstance(permission, GasKey):
            count = permission.num_nonces
            nonce_bytes = _key_path_bytes(receiver_id, public_key) + INDEX_BYTES + NONCE_BYTES
            byte = self._gas_key_bytes(_GAS_KEY_INFO_BYTES, count * nonce_bytes)
            nonces = self.table["gas_key_nonce_write"].times(count)
            parts.append(("GAS_KEY_BYTE", nonces.plus(byte)))
        return parts

    def _gas_key_bytes(self, sent: int, written: int) -> Fee:
        fee = self.table["gas_key_byte"]
        return Fee(fee.send_sir * sent, fee.send_other * sent, fee.execute * written)

    def _state_init_parts(self, kind: str, count: int, size: int) -> list[tuple[str, Fee]]:
        base = (f"{kind}_BASE", self.table["deterministic_state_init"])
        return [base, *self.state_record_parts(count, size, kind)]

    def state_record_parts(
        self, count: int, size: int, kind: str = "DETERMINISTIC_STATE_INIT"
    ) -> list[tuple[str, Fee]]:
        entry, byte = (self.table[f"deterministic_state_init_{unit}"] for unit in ("entry", "byte"))
        return [(f"{kind}_ENTRY", entry.times(count)), (f"{kind}_BYTE", byte.times(size))]

    def send(self, actions: Iterable[Action], sender_id: str, receiver_id: str) -> int:
        """Sum the gas to send actions, with delegated actions, which travel with them."""
        return self._send(actions, receiver_id, to_self=sender_id == receiver_id)

    def _send(self, actions: Iterable[Action], receiver_id: str, *, to_self: bool) -> int:
        """Sum the gas to send actions, delegated actions at the rate of their receipt."""
        total = 0
        for action in actions:
            total += self.fee(action, receiver_id).send(to_self=to_self)
            if isinstance(action, kinds.SignedDelegate):
                inner = action.delegate_action
                total += self._send(inner.actions, inner.receiver_id, to_self=to_self)
        return total

    def prepaid_gas(self, actions: Sequence[Action], receiver_id: str) -> int:
        """Sum the prepaid gas of a receipt with these actions, attached gas included."""
        execution = self.new_receipt_execute + self.prepaid_execution(actions, receiver_id)
        return execution + kinds.attached_gas(actions)

    def prepaid_execution(self, actions: Iterable[Action], receiver_id: str) -> int:
        """Sum the gas to execute actions, and to send and execute delegated actions."""
        total = 0
        for action in actions:
            total += self.fee(action, receiver_id).execute
            if isinstance(action, kinds.SignedDelegate):
                inner = action.delegate_action
                total += self.send(inner.actions, inner.sender_id, inner.receiver_id)
                total += self.new_receipt_execute
                total += self.prepaid_execution(inner.actions, inner.receiver_id)
        return total

    def new_receipt_send(self, *, to_self: bool) -> int:
        return self.table["new_action_receipt"].send(to_self=to_self)

    @property
    def new_receipt_execute(self) -> int:
        return self.table["new_action_receipt"].execute

    def purchase_price(self, gas_price: int) -> int:
        return max(gas_price, self.min_purchase_price)


def _verification_gas(action: kinds.SignedDelegate) -> int:
    is_ml_dsa = action.delegate_action.public_key.curve == "ml-dsa-65"
    return ML_DSA_VERIFICATION if is_ml_dsa else 0


PROFILES: dict[ProfileName, Profile] = {
    "84": Profile(84, _TABLE, 0, 0, 30),
    "86": Profile(86, _TABLE_85, 10**9, 7 * 10**21, 30),
    "87": Profile(87, _TABLE_85, 10**9, 7 * 10**21, 0),
    "88": Profile(88, _TABLE_85, 10**9, 7 * 10**21, 0),
}


def _key_path_bytes(account_id: str, public_key: PublicKey) -> int:
    """Return the size of an access key's key in the state; both parts have a one-byte prefix."""
    return 1 + len(account_id) + 1 + len(public_key.stored)


def storage_shortfall(balance: int, storage_usage: int) -> int:
    """Return the yoctoNEAR that an account lacks for its bytes of storage, or 0."""
    if storage_usage <= STORAGE_FREE:
        return 0
    return max(0, storage_usage * STORAGE_BYTE_PRICE - balance)
