"""
Kinds of a later protocol, which ledgerkit does not declare, with their names and contents.

An action, the body of a receipt and a status are objects of one member, which is the name of their
kind, or a name alone. An undeclared kind is decoded as an `OtherKind`, an item of a chunk that is
no signed transaction as an `OtherTransaction`, and everything else as usual.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, NoReturn, TypeVar

import msgspec
from msgspec import Raw, Struct

from ledgerkit import json_decoding
from ledgerkit.protocol.actions import KINDS_BY_NAME

T = TypeVar("T")

OTHER = ""  # the member that has an `OtherKind`; no kind has this name
# The declared kinds: the members of `Action`, `ReceiptBody` and `Status`, and changes of state.
ACTIONS = frozenset(KINDS_BY_NAME)
RECEIPTS = frozenset({"Action", "Data", "GlobalContractDistribution"})
STATUSES = frozenset({"SuccessValue", "SuccessReceiptId", "Failure"})
# Source: nearcore, core/primitives/src/views.rs, StateChangeValueView.
CHANGES = frozenset(
    "account_update account_deletion access_key_update access_key_deletion gas_key_nonce_update "
    "data_update data_deletion contract_code_update contract_code_deletion".split()
)
_OUTCOME = {"executor_id", "gas_burnt", "receipt_ids"}  # members that only outcomes have
_RESULT = {"final_execution_status", "receipts_outcome", "transaction_outcome"}
_CHANGE = {"type", "cause", "change"}
_SIGNED = frozenset({"sender_id", "receiver_id", "actions", "V2"})


class OtherKind(Struct, gc=False):
    """An action, the body of a receipt or a status, of an undeclared kind."""

    name: str
    content: Any = None


class OtherTransaction(NamedTuple):
    """
    An item of a chunk that is no signed transaction, as it was sent; only its hash is read.

    It has the other members of a transaction, which are None.
    """

    hash: str | None
    content: Any
    signer_id: None = None
    receiver_id: None = None
    public_key: None = None
    nonce: None = None
    nonce_index: None = None
    actions: None = None

    @property
    def kind(self) -> str:
        # Source: near-jsonrpc-client, models of 2026-10, EccTransactionView.
        is_call = isinstance(self.content, dict) and {"contract_id", "payload"} <= set(self.content)
        return "external_contract_call" if is_call else "unknown"


def decode_with_other_kinds(decoder: json_decoding.Decoder[T], data: bytes | Raw) -> T:
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        pass
    try:
        value = json.loads(bytes(data), parse_constant=_refuse_constant)
        _wrap_all(value)
        wrapped = json.dumps(value).encode()
    except ValueError as problem:
        raise msgspec.DecodeError(str(problem)) from None
    except RecursionError:
        raise msgspec.DecodeError(json_decoding.TOO_DEEP) from None
    return decoder.decode(wrapped)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")  # Python accepts NaN and Infinity


def _wrap_all(value: Any) -> None:
    """Wrap the undeclared kinds in a document, except inside another undeclared kind."""
    if isinstance(value, list):
        for item in value:
            _wrap_all(item)
    if isinstance(value, dict):
        _wrap_members(value)
        for name, member in value.items():
            if name not in (OTHER, "Failure"):
                _wrap_all(member)


def _wrap_members(value: dict[str, Any]) -> None:
    names = value.keys()
    if isinstance(value.get("actions"), list):
        value["actions"] = [_wrap_kind(action, ACTIONS) for action in value["actions"]]
    if "delegate_action" in names:
        signed = _wrap_kind(value["delegate_action"], _SIGNED, is_object=True)
        value["delegate_action"] = signed or {OTHER: {"name": "Unknown"}}
    if {"receipt_id", "receipt"} <= names:
        value["receipt"] = _wrap_kind(value["receipt"], RECEIPTS, is_object=True)
    if "status" in names and not names.isdisjoint(_OUTCOME | _RESULT):
        value["status"] = _wrap_kind(value["status"], STATUSES)
    if "header" in names and isinstance(value.get("transactions"), list):
        value["transactions"] = [_wrap_transaction(item) for item in value["transactions"]]
    if names >= _CHANGE:
        value["cause"] = _tag_cause(value["cause"])
        if value["type"] not in CHANGES:
            value["change"] = _wrap_change(value["change"])


def _wrap_kind(value: object, names: frozenset[str], *, is_object: bool = False) -> object:
    """Return an undeclared kind as an `OtherKind`; drop undeclared members of a declared kind."""
    if is_object and isinstance(value, str):
        return {OTHER: {"name": value}}
    if not isinstance(value, dict) or value.keys() <= names:
        return value
    declared = {name: content for name, content in value.items() if name in names}
    name = next(iter(value))
    return declared or {OTHER: {"name": name, "content": value[name]}}


def _wrap_transaction(item: Any) -> Any:
    """Return an item of a chunk as an `OtherTransaction`, unless it is a signed transaction."""
    if not isinstance(item, dict):
        return item
    sent = item.get("transaction", item)
    if not isinstance(sent, dict) or "signer_id" in sent or "signature" in sent:
        return item
    tx_hash = sent.get("hash")
    other = tx_hash if isinstance(tx_hash, str) else None, sent
    if sent is item or "outcome" not in item:
        return other
    return {**item, "transaction": other}


def _tag_cause(cause: object) -> object:
    """Return a cause in the declared form, with its name as its `type`."""
    if isinstance(cause, dict) and cause and "type" not in cause:
        cause = next(iter(cause))
    return {"type": cause} if isinstance(cause, str) else cause


def _wrap_change(change: Any) -> dict[str, Any]:
    account_id = change.get("account_id") if isinstance(change, dict) else None
    return {"account_id": account_id if isinstance(account_id, str) else None}
