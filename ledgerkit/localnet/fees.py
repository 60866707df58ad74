"""What everything costs: one table of gas per protocol version, and the sums made of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ledgerkit.protocol import (
    Action,
    AddKey,
    CreateAccount,
    Delegate,
    DelegateV2,
    DeleteAccount,
    DeleteKey,
    DeployContract,
    DeployGlobalContract,
    FunctionCall,
    FunctionCallPermission,
    Stake,
    Transfer,
    UseGlobalContract,
)
from ledgerkit.protocol.types import AccountId, AccountKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ledgerkit.localnet.settings import ProfileName

TGAS = 10**12
MAX_GAS_PRICE_FACTOR = 20
CHUNK_GAS = 1000 * TGAS
VIEW_GAS = 300 * TGAS
STORAGE_BYTE = 10**19  # yoctoNEAR locked for a byte
STORAGE_FREE = 770  # bytes for which nothing is locked
IMPLICIT_BYTES = 182
RECORD_BYTES = 40  # of an access key or a contract's record, beside its key and value


class Fee(NamedTuple):
    """Gas to send to oneself, to send to others, and to execute."""

    send_sir: int
    send_other: int
    execute: int

    def send(self, *, sir: bool) -> int:
        """Give the gas to send; sir: sender is receiver."""
        return self.send_sir if sir else self.send_other

    def times(self, count: int) -> Fee:
        """Multiply, for a fee by the byte."""
        return Fee(self.send_sir * count, self.send_other * count, self.execute * count)

    def plus(self, other: Fee) -> Fee:
        """Add."""
        return Fee(
            self.send_sir + other.send_sir,
            self.send_other + other.send_other,
            self.execute + other.execute,
        )


def _same(gas: int) -> Fee:
    """Make a fee that is the same to send, near or far, and to execute."""
    return Fee(gas, gas, gas)


_NOTHING = Fee(0, 0, 0)
_TABLE = {
    "new_action_receipt": _same(108_059_500_000),
    "data_receipt_base": _same(36_486_732_312),
    "data_receipt_byte": Fee(17_212_011, 47_683_715, 17_212_011),
    "create_account": _same(3_850_000_000_000),
    "delete_account": _same(147_489_000_000),
    "deploy_contract": _same(184_765_750_000),
    "deploy_contract_byte": Fee(6_812_999, 47_683_715, 64_572_944),
    "function_call": Fee(200_000_000_000, 200_000_000_000, 780_000_000_000),
    "function_call_byte": Fee(2_235_934, 47_683_715, 2_235_934),
    "transfer": _same(115_123_062_500),
    "stake": Fee(141_715_687_500, 141_715_687_500, 102_217_625_000),
    "add_full_access_key": _same(101_765_125_000),
    "add_function_call_key": _same(102_217_625_000),
    "add_function_call_key_byte": Fee(1_925_331, 47_683_715, 1_925_331),
    "delete_key": _same(94_946_625_000),
    "delegate": _same(200_000_000_000),
    "deploy_global_contract": _same(184_765_750_000),
    "deploy_global_contract_byte": Fee(6_812_999, 47_683_715, 70_000_000),
    "use_global_contract": _same(184_765_750_000),
    "use_global_contract_byte": Fee(6_812_999, 47_683_715, 64_572_944),
}
_SINCE_86 = {"create_account": Fee(500_000_000_000, 500_000_000_000, 7_200_000_000_000)}

# What host functions burn; the rest of a call's own computation is a flat sum.
CALL_BASE = TGAS
HOST_COSTS = {
    "CONTRACT_LOADING_BASE": 35_445_963,
    "CONTRACT_LOADING_BYTES": 1_089_295,
    "BASE": 264_768_111,
    "STORAGE_WRITE_BASE": 64_196_736_000,
    "STORAGE_WRITE_KEY_BYTE": 70_482_867,
    "STORAGE_WRITE_VALUE_BYTE": 31_018_539,
    "STORAGE_READ_BASE": 56_356_845_749,
    "STORAGE_READ_KEY_BYTE": 30_952_533,
    "STORAGE_READ_VALUE_BYTE": 5_611_004,
    "STORAGE_REMOVE_BASE": 53_473_030_500,
    "STORAGE_HAS_KEY_BASE": 54_039_896_625,
    "LOG_BASE": 3_543_313_050,
    "LOG_BYTE": 13_198_791,
    "SHA256_BASE": 4_540_970_250,
    "SHA256_BYTE": 24_117_351,
    "PROMISE_RETURN": 560_152_386,
    "PROMISE_AND_BASE": 1_465_013_400,
    "WASM_INSTRUCTION": 822_756,
}


@dataclass(frozen=True, slots=True)
class Profile:
    """The rules of one protocol version, as far as versions differ."""

    version: int
    table: dict[str, Fee]
    min_purchase_price: int  # gas is bought at this price at least, and the rest given back
    creation_charge: int  # what an account's creation burns in all, made up at the refund
    reward_percent: int  # of the gas burnt inside calls, to the contract
    delegate_v2: bool
    later: bool  # versions 85 on: the second kind of transaction, and what came with it

    def fee(self, action: Action, receiver_id: str) -> Fee:
        """Give an action's own fee, without what is inside a delegated one."""
        table = self.table
        match action:
            case FunctionCall():
                size = len(action.method_name.encode()) + len(action.args)
                return table["function_call"].plus(table["function_call_byte"].times(size))
            case Transfer():
                return table["transfer"].plus(self._creation(receiver_id))
            case AddKey(access_key=key) if isinstance(key.permission, FunctionCallPermission):
                size = sum(len(name.encode()) + 1 for name in key.permission.method_names)
                byte = table["add_function_call_key_byte"].times(size)
                return table["add_function_call_key"].plus(byte)
            case DeployContract() | DeployGlobalContract():
                name = "deploy_contract" if isinstance(action, DeployContract) else _GLOBAL
                return table[name].plus(table[f"{name}_byte"].times(len(action.code)))
            case UseGlobalContract(contract_identifier=contract):
                byte = table["use_global_contract_byte"].times(len(contract))
                return table["use_global_contract"].plus(byte)
            case _:
                return table[_NAMES[type(action)]]

    def _creation(self, receiver_id: str) -> Fee:
        """Give what a transfer costs more because its receiver may come to exist by it."""
        kind = _kind(receiver_id)
        if kind == "near-implicit":
            return self.table["create_account"].plus(self.table["add_full_access_key"])
        return self.table["create_account"] if kind == "eth-implicit" else _NOTHING

    def send(self, actions: Iterable[Action], sender_id: str, receiver_id: str) -> int:
        """Sum the gas to send actions, delegated ones too, which travel with them."""
        return self._send(actions, receiver_id, sir=sender_id == receiver_id)

    def _send(self, actions: Iterable[Action], receiver_id: str, *, sir: bool) -> int:
        """Sum the gas to send actions, all as near or far as the receipt that carries them."""
        total = 0
        for action in actions:
            total += self.fee(action, receiver_id).send(sir=sir)
            if isinstance(action, Delegate | DelegateV2):
                inner = action.delegate_action
                total += self._send(inner.actions, inner.receiver_id, sir=sir)
        return total

    def execute(self, actions: Iterable[Action], receiver_id: str) -> int:
        """Sum the gas to execute actions themselves."""
        return sum(self.fee(action, receiver_id).execute for action in actions)

    def prepaid_execution(self, actions: Iterable[Action], receiver_id: str) -> int:
        """Sum the gas that is bought for execution: delegated actions are sent with it too."""
        total = 0
        for action in actions:
            total += self.fee(action, receiver_id).execute
            if isinstance(action, Delegate | DelegateV2):
                inner = action.delegate_action
                total += self.send(inner.actions, inner.sender_id, inner.receiver_id)
                total += self.new_receipt_execute
                total += self.prepaid_execution(inner.actions, inner.receiver_id)
        return total

    def new_receipt_send(self, *, sir: bool) -> int:
        """Give the gas to send a receipt, before its actions."""
        return self.table["new_action_receipt"].send(sir=sir)

    @property
    def new_receipt_execute(self) -> int:
        """The gas to execute a receipt, before its actions."""
        return self.table["new_action_receipt"].execute

    def purchase_price(self, gas_price: int) -> int:
        """Give the price at which gas is bought."""
        return max(gas_price, self.min_purchase_price)


_GLOBAL = "deploy_global_contract"
_NAMES: dict[type[Action], str] = {
    CreateAccount: "create_account",
    DeleteAccount: "delete_account",
    Stake: "stake",
    AddKey: "add_full_access_key",
    DeleteKey: "delete_key",
    Delegate: "delegate",
    DelegateV2: "delegate",
}
_GIGA = 10**9
_CHARGE = 7 * 10**21
_LATER = _TABLE | _SINCE_86
PROFILES: dict[ProfileName, Profile] = {
    "84": Profile(84, _TABLE, 0, 0, 30, delegate_v2=False, later=False),
    "86": Profile(86, _LATER, _GIGA, _CHARGE, 30, delegate_v2=True, later=True),
    "87": Profile(87, _LATER, _GIGA, _CHARGE, 0, delegate_v2=False, later=True),
}


@lru_cache(maxsize=4096)  # the same receivers come again and again
def _kind(account_id: str) -> AccountKind:
    """Tell where an account id comes from."""
    return AccountId(account_id).kind


def attached_gas(actions: Iterable[Action]) -> int:
    """Sum the gas attached to calls, delegated ones too."""
    total = 0
    for action in actions:
        if isinstance(action, FunctionCall):
            total += action.gas
        elif isinstance(action, Delegate | DelegateV2):
            total += attached_gas(action.delegate_action.actions)
    return total


def deposits(actions: Iterable[Action]) -> int:
    """Sum the yoctoNEAR that actions move; whoever relays a delegated one pays for it too."""
    total = 0
    for action in actions:
        if isinstance(action, FunctionCall | Transfer):
            total += action.deposit
        elif isinstance(action, Delegate | DelegateV2):
            total += deposits(action.delegate_action.actions)
    return total


def storage_shortfall(available: int, storage_usage: int) -> int:
    """Tell how many yoctoNEAR an account lacks for its bytes; 0 if it has enough."""
    if storage_usage <= STORAGE_FREE:
        return 0
    return max(0, storage_usage * STORAGE_BYTE - available)
