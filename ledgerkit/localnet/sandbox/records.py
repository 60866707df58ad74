"""
State records: accounts, keys, code and storage in genesis files and `sandbox_patch_state`.

Source: nearcore, core/primitives/src/state_record.rs.
"""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from ledgerkit.localnet import rpc_json
from ledgerkit.localnet.chain_types import NO_CODE, Account
from ledgerkit.localnet.rpc import params as read
from ledgerkit.localnet.state import StateStore, nonce_key
from ledgerkit.protocol import AccessKey, CryptoHash, FunctionCallPermission, PublicKey
from ledgerkit.protocol.access_keys import (
    FullAccess,
    GasKeyFullAccess,
    GasKeyFunctionCall,
    Permission,
)
from ledgerkit.units import U128_MAX

_VERSIONS = ("V1", "V2")
_U16_MAX = 2**16 - 1


class StateRecord(Struct, frozen=True):
    """A record of one account."""

    account_id: str


class AccountRecord(StateRecord, frozen=True):
    """An account."""

    account: Account


class DataRecord(StateRecord, frozen=True):
    """A record in the storage of a contract."""

    key: bytes
    value: bytes


class ContractRecord(StateRecord, frozen=True):
    """The code of an account, whose hash is in the account's record."""

    code: bytes


class AccessKeyRecord(StateRecord, frozen=True):
    """An access key."""

    public_key: PublicKey
    access_key: AccessKey


class GasKeyNonceRecord(StateRecord, frozen=True):
    """One nonce of a gas key."""

    public_key: PublicKey
    index: int
    nonce: int


# Parsing ---------------------------------------------------------------------------------


def state_record(value: Any) -> StateRecord:
    """Read a state record: an object with the record's kind as its only member."""
    kind, contents = read.variant(value)
    kind = read.one_of((*_KINDS, *UNSUPPORTED))(kind)
    if kind in UNSUPPORTED:
        kinds = ", ".join(_KINDS)
        raise read.error(f"`{kind}` records are not supported, only {kinds}")
    members = read.members(contents)
    record, fields = _KINDS[kind]
    account_id = read.member(members, "account_id", read.account_id)
    return record(account_id, *[read.member(members, *field) for field in fields.items()])


def account(value: Any) -> Account:
    members = read.members(value)
    version = read.optional(members, "version", read.one_of(_VERSIONS)) or "V1"
    code_hash = read.member(members, "code_hash", read.crypto_hash)
    by_hash = read.optional(members, "global_contract_hash", read.crypto_hash)
    by_account = read.optional(members, "global_contract_account_id", read.account_id)
    if code_hash != NO_CODE and (by_hash is not None or by_account is not None):
        raise read.error("An Account can't contain both a local and global contract")
    if by_hash is not None and by_account is not None:
        raise read.error("An Account can't contain both types of global contracts")
    return Account(
        amount=read.member(members, "amount", balance),
        locked=read.member(members, "locked", balance),
        code_hash=code_hash,
        storage_usage=read.member(members, "storage_usage", read.u64),
        # The node ignores global contracts in an account of version V1.
        global_contract=(by_account or by_hash) if version == "V2" else None,
        bootstrap_nonce=read.optional(members, "bootstrap_nonce", read.u64),
    )


def access_key(value: Any) -> AccessKey:
    members = read.members(value)
    nonce = read.member(members, "nonce", read.u64)
    return AccessKey(nonce, read.member(members, "permission", _permission))


def _permission(value: Any) -> Permission:
    if value == "FullAccess":
        return FullAccess()
    kind, contents = read.variant(value)
    read.one_of(("FunctionCall", "GasKeyFunctionCall", "GasKeyFullAccess"))(kind)
    if kind == "FunctionCall":
        return FunctionCallPermission(*_calls(contents))
    if kind == "GasKeyFullAccess":
        return GasKeyFullAccess(*_gas_key(contents))
    parts = read.pair(contents)
    if parts is None:
        raise read.error(
            "invalid length, expected tuple variant GasKeyFunctionCall with 2 elements"
        )
    amount, num_nonces = _gas_key(parts[0])
    return GasKeyFunctionCall(amount, num_nonces, *_calls(parts[1]))


def _gas_key(value: Any) -> tuple[int, int]:
    members = read.members(value)
    return read.member(members, "balance", balance), read.member(members, "num_nonces", _u16)


def _calls(value: Any) -> tuple[int | None, str, list[str]]:
    members = read.members(value)
    return (
        read.optional(members, "allowance", balance),
        read.member(members, "receiver_id", read.text),
        read.member(members, "method_names", read.many(read.text)),
    )


def balance(value: Any) -> int:
    """Read yoctoNEAR: a string of digits."""
    digits = read.text(value)
    if digits.isascii() and digits.isdecimal() and int(digits) <= U128_MAX:
        return int(digits)
    raise read.error(f"invalid value: {digits!r}, expected a u128 as a string")


def _u16(value: Any) -> int:
    number = read.u64(value)
    if number > _U16_MAX:
        raise read.error(f"invalid value: integer `{value}`, expected u16")
    return number


_KINDS: dict[str, tuple[Callable[..., StateRecord], dict[str, Callable[[Any], Any]]]] = {
    "Account": (AccountRecord, {"account": account}),
    "Data": (DataRecord, {"data_key": read.base64, "value": read.base64}),
    "Contract": (ContractRecord, {"code": read.base64}),
    "AccessKey": (AccessKeyRecord, {"public_key": read.public_key, "access_key": access_key}),
    "GasKeyNonce": (
        GasKeyNonceRecord,
        {"public_key": read.public_key, "index": _u16, "nonce": read.u64},
    ),
}
UNSUPPORTED = ("PostponedReceipt", "ReceivedData", "DelayedReceipt")


# Writing ---------------------------------------------------------------------------------


def state_records(store: StateStore) -> list[dict[str, Any]]:
    """List the records of the head in the order of their keys in a node's state."""
    state = store.at()
    heads = sorted(store.accounts.head.items())
    accounts = {account_id: values[b""] for account_id, values in heads if values}
    records = [_record("Account", i, account=_account_json(a)) for i, a in accounts.items()]
    for account_id, account in accounts.items():
        if account.code_hash != NO_CODE:
            code = rpc_json.base64(store.codes[account.code_hash])
            records.append(_record("Contract", account_id, code=code))
    for account_id in accounts:
        for packed_key, access_key in state.access_keys(account_id):
            owner = {"public_key": rpc_json.public_key_text(packed_key)}
            data = _access_key_json(access_key)
            records.append(_record("AccessKey", account_id, **owner, access_key=data))
            for index, nonce in enumerate(state.gas_key_nonces(account_id, packed_key)):
                data = {**owner, "index": index, "nonce": nonce}
                records.append(_record("GasKeyNonce", account_id, **data))
    for account_id in accounts:
        for key, value in state.records(account_id):
            texts = {"data_key": rpc_json.base64(key), "value": rpc_json.base64(value)}
            records.append(_record("Data", account_id, **texts))
    return records


def _record(kind: str, account_id: str, **members: Any) -> dict[str, Any]:
    return {kind: {"account_id": account_id, **members}}


def _account_json(account: Account) -> dict[str, Any]:
    data = rpc_json.account(account)
    del data["storage_paid_at"]  # only views have it
    return {**data, "version": "V1" if account.global_contract is None else "V2"}


def _access_key_json(access_key: AccessKey) -> dict[str, Any]:
    """Build the JSON of an access key in the state; a gas key for calls has two parts there."""
    data = rpc_json.access_key(access_key)
    if isinstance(access_key.permission, GasKeyFunctionCall):
        [(kind, members)] = data["permission"].items()
        gas_key = {name: members.pop(name) for name in ("balance", "num_nonces")}
        data["permission"] = {kind: [gas_key, members]}
    return data


# Writing to the state --------------------------------------------------------------------


def code_hash_error(records: Iterable[StateRecord], store: StateStore) -> str | None:
    """Return the error of the first code whose account has another code hash, or None."""
    accounts: dict[str, Account] = {}
    for record in records:
        if isinstance(record, AccountRecord):
            accounts[record.account_id] = record.account
        elif isinstance(record, ContractRecord):
            account = accounts.get(record.account_id) or store.accounts.get(record.account_id)
            if account is None:
                return (
                    "Code state record should be preceded by the corresponding account record:"
                    f" {record.account_id} does not exist"
                )
            code_hash = CryptoHash.of(record.code)
            if account.code_hash != code_hash:
                return (
                    f"the code of {record.account_id} has the hash {code_hash}, and its account"
                    f" record has {account.code_hash}"
                )
    return None


def apply_records(records: Iterable[StateRecord], store: StateStore) -> None:
    """Write records to the state; they replace existing values."""
    for record in records:
        account_id = record.account_id
        match record:
            case AccountRecord(account=account):
                store.accounts.put(account_id, b"", account)
            case DataRecord(key=key, value=value):
                store.data.put(account_id, key, value)
            case ContractRecord(code=code):
                store.codes.setdefault(CryptoHash.of(code), code)
            case AccessKeyRecord(public_key=public_key, access_key=access_key):
                store.access_keys.put(account_id, public_key.stored, access_key)
            case GasKeyNonceRecord(public_key=public_key, index=index, nonce=nonce):
                key = nonce_key(public_key.stored, index)
                store.gas_key_nonces.put(account_id, key, nonce)
