"""The request of a transaction in words: its actions as an infinitive and in the past."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec

from ledgerkit import json_decoding
from ledgerkit.api.models.actions import action_name, delegate_action, function_call, kind_of
from ledgerkit.protocol import DeployContract, UseGlobalContract
from ledgerkit.tracing.action_fields import decode_args, deposit
from ledgerkit.tracing.actions import action_details
from ledgerkit.tracing.amount_texts import NEAR, AmountTexts, plain
from ledgerkit.tracing.transaction_data import Request, account

if TYPE_CHECKING:
    from ledgerkit.api.models.actions import Action, FunctionCall

_MAX_ACTIONS = 3
_MAX_LISTED = 4
_MAX_NAME = 60  # characters of a method or a path
_AMOUNT = re.compile(r"\d{1,39}", re.ASCII)
_DEPLOYMENTS = (DeployContract, UseGlobalContract)
_KEY_NAMES = {"FullAccess": "a full-access key", "FunctionCall": "a function-call key"}


def describe_request(request: Request, amounts: AmountTexts, *, is_past: bool = False) -> str:
    """Describe what a request is to do, "send 5 NEAR to bob.near", or did: "sent 5 NEAR …"."""
    if not request.actions:
        name = "unknown actions" if request.actions is None else "a transaction without actions"
        return f"{'sent' if is_past else 'send'} {name} to {receiver_name(request)}"
    if "CreateAccount" in map(action_name, request.actions):
        return f"{'created' if is_past else 'create'} {_describe_creation(request, amounts)}"
    texts = [
        _describe_action(action, request, amounts, is_past=is_past) for action in request.actions
    ]
    groups = [(text, len(list(group))) for text, group in groupby(texts)]
    parts = [f"{text} {n} times" if n > 1 else text for text, n in groups[:_MAX_ACTIONS]]
    n_others = sum(n for _, n in groups[_MAX_ACTIONS:])
    others = f", then {n_others} more action{'s' if n_others > 1 else ''}" if n_others else ""
    return ", then ".join(parts) + others


def receiver_name(request: Request) -> str:
    """Return the receiver's id, or "itself" if it is the sender."""
    is_sender = request.receiver_id is not None and request.receiver_id == request.sender_id
    return "itself" if is_sender else account(request.receiver_id)


def _on_receiver(request: Request) -> str:
    """Return " on" and the receiver; nothing if the receiver is the sender."""
    return "" if receiver_name(request) == "itself" else f" on {account(request.receiver_id)}"


def _describe_creation(request: Request, amounts: AmountTexts) -> str:
    actions = request.actions or ()
    names = [action_name(action) for action in actions]
    deposits = [deposit(action) for action in actions]
    near = None if None in deposits else sum(yocto or 0 for yocto in deposits)
    parts = [] if near == 0 else [_near(near, amounts)]
    n_keys = names.count("AddKey")
    parts += ["a key" if n_keys == 1 else f"{n_keys} keys"] if n_keys else []
    has_code = any(kind and kind.action in _DEPLOYMENTS for kind in map(kind_of, actions))
    parts += ["a contract"] if has_code else []
    parts += [f"a call of {_method(call)}" for call in map(function_call, actions) if call]
    listed = list_texts(parts)
    return account(request.receiver_id) + (f" with {listed}" if listed else "")


def list_texts(texts: list[str]) -> str:
    """Join texts by commas and "and"; after the fourth, count them."""
    others = [f"{len(texts) - _MAX_LISTED} more"] if len(texts) > _MAX_LISTED else []
    parts = texts[:_MAX_LISTED] + others
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


# Actions ---------------------------------------------------------------------------------


def _describe_action(
    action: Action | str, request: Request, amounts: AmountTexts, *, is_past: bool
) -> str:
    call, kind = function_call(action), kind_of(action)
    if call is not None:
        text = _describe_call(call, request, amounts)
        if is_past:
            return f"called {text}"
        return _describe_purpose(call, request, amounts) or f"call {text}"
    if kind is None or kind.phrase is None:
        infinitive, past, object_text = _describe_members(action, request, amounts)
    else:
        infinitive, past, template = kind.phrase
        names = {
            "amount": _near(deposit(action), amounts),
            "receiver": receiver_name(request),
            "place": _on_receiver(request),
        }
        object_text = template.format_map(names)
    return f"{past if is_past else infinitive} {object_text}"


def _describe_members(
    action: Action | str, request: Request, amounts: AmountTexts
) -> tuple[str, str, str]:
    """Return infinitive, past and object for an action without a phrase of its own."""
    name, on_receiver = action_name(action), _on_receiver(request)
    inner = delegate_action(action)
    if inner is not None:
        return "relay", "relayed", f"a delegate action of {account(inner.sender_id)}"
    details = action_details(action)
    details = details if isinstance(details, dict) else {}
    if name == "AddKey":
        return "add", "added", _describe_key(details) + on_receiver
    if name == "DeleteAccount":
        beneficiary_id = account(_text(details, "beneficiary_id"))
        name = f"the account {account(request.receiver_id)}" if on_receiver else "its account"
        return "delete", "deleted", f"{name}, with {beneficiary_id} as the beneficiary"
    stake = _units(details, "stake")
    if name == "Stake" and stake is not None:
        if not stake:
            return "end", "ended", "the validator's stake"
        return "stake", "staked", f"{amounts.text(NEAR, stake)} as a validator"
    return "send", "sent", f"the action {plain(name, _MAX_NAME)} to {receiver_name(request)}"


def _describe_key(details: dict[str, Any]) -> str:
    access_key = details.get("access_key")
    permission = access_key.get("permission") if isinstance(access_key, dict) else None
    if isinstance(permission, str):
        return _KEY_NAMES.get(permission, "a key")
    if not isinstance(permission, dict) or not permission:
        return "a key"
    name, fields = next(iter(permission.items()))
    contract_id = _text(fields, "receiver_id") if isinstance(fields, dict) else None
    key = _KEY_NAMES.get(name, "a gas key" if name.startswith("GasKey") else "a key")
    return key if contract_id is None else f"{key} for {plain(contract_id)}"


# Calls -----------------------------------------------------------------------------------


def _describe_call(call: FunctionCall, request: Request, amounts: AmountTexts) -> str:
    yocto = deposit_of(call) or 0
    near = f" with {amounts.text(NEAR, yocto)}" if yocto > 1 else ""
    return f"{_method(call)} on {receiver_name(request)}{near}"


def _describe_purpose(call: FunctionCall, request: Request, amounts: AmountTexts) -> str | None:
    """Describe what a call is to do if a standard defines it; None for any other."""
    describe = _PURPOSES.get(call.method_name or "")
    return describe and describe(call, account(request.receiver_id), amounts)


def _method(call: FunctionCall) -> str:
    return "a method" if call.method_name is None else plain(call.method_name, _MAX_NAME)


def call_args(call: FunctionCall) -> dict[str, Any]:
    """Return the arguments of a call; none if they are not a JSON object."""
    args = decode_args(call)
    return args if isinstance(args, dict) else {}


def deposit_of(call: FunctionCall) -> int | None:
    """Return the yoctoNEAR attached to a call; None if unknown."""
    return int(call.deposit) if call.deposit and _AMOUNT.fullmatch(call.deposit) else None


def _near(yocto: int | None, amounts: AmountTexts) -> str:
    return "an unknown amount" if yocto is None else amounts.text(NEAR, yocto)


def _text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None


def _units(fields: dict[str, Any], name: str) -> int | None:
    """Return a member that is decimal digits of an amount's length; None for any other."""
    value = _text(fields, name)
    return int(value) if value is not None and _AMOUNT.fullmatch(value) else None


def receiver_arg(call: FunctionCall) -> str | None:
    """Return the argument `receiver_id` of a transfer (NEP-141, NEP-171)."""
    return _text(call_args(call), "receiver_id")


def is_swap_message(call: FunctionCall) -> bool:
    """Return True if the message to a token's receiver is a list of swap actions."""
    # {"actions": [{"pool_id", "token_in", "token_out", …}]}: the message of v2.ref-finance.near,
    # ref-contracts, ref-exchange/src/token_receiver.rs, which other exchanges also read.
    try:
        message = json_decoding.decode(_text(call_args(call), "msg") or "")
    except msgspec.DecodeError:
        return False
    actions = message.get("actions") if isinstance(message, dict) else None
    entries = actions if isinstance(actions, list) else []
    return any(isinstance(entry, dict) and "token_out" in entry for entry in entries)


def _to_send(call: FunctionCall, contract_id: str, amounts: AmountTexts) -> str | None:
    units, receiver_id = _units(call_args(call), "amount"), receiver_arg(call)
    if units is None or receiver_id is None:
        return None
    amount, receiver = amounts.text(f"nep141:{contract_id}", units), plain(receiver_id)
    if call.method_name == "ft_transfer":
        return f"send {amount} to {receiver}"
    return (
        f"swap {amount} on {receiver}"
        if is_swap_message(call)
        else f"send {amount} to {receiver} with a call"
    )


def _to_send_nft(call: FunctionCall, contract_id: str, _: AmountTexts) -> str | None:
    token_id, receiver_id = _text(call_args(call), "token_id"), receiver_arg(call)
    if token_id is None or receiver_id is None:
        return None
    return f"send token {plain(token_id, _MAX_NAME)} of {contract_id} to {plain(receiver_id)}"


def _to_pay_for_storage(call: FunctionCall, contract_id: str, amounts: AmountTexts) -> str | None:
    return f"pay {_near(deposit_of(call), amounts)} for {storage_text(call, contract_id)}"


def storage_text(call: FunctionCall, contract_id: str) -> str:
    """Describe the storage that a deposit is for: the sender's, or that of `account_id`."""
    account_id = _text(call_args(call), "account_id")
    return f"storage{'' if account_id is None else f' of {plain(account_id)}'} on {contract_id}"


def _to_wrap(call: FunctionCall, contract_id: str, amounts: AmountTexts) -> str | None:
    return f"wrap {_near(deposit_of(call), amounts)} on {contract_id}"


def _to_unwrap(call: FunctionCall, contract_id: str, amounts: AmountTexts) -> str | None:
    units = _units(call_args(call), "amount")
    return None if units is None else f"unwrap {amounts.text(f'nep141:{contract_id}', units)}"


def _to_stake(call: FunctionCall, contract_id: str, amounts: AmountTexts) -> str | None:
    return f"stake {_near(deposit_of(call), amounts)} with {contract_id}"


def _to_create(call: FunctionCall, contract_id: str, amounts: AmountTexts) -> str | None:
    account_id = _text(call_args(call), "new_account_id")
    if account_id is None:
        return None
    yocto = deposit_of(call)
    near = "" if yocto == 0 else f" with {_near(yocto, amounts)}"
    return f"create {plain(account_id)}{near} through {contract_id}"


def _to_write(call: FunctionCall, contract_id: str, _: AmountTexts) -> str | None:
    path = social_path(call)
    return None if path is None else f"write {path} on {contract_id}"


def social_path(call: FunctionCall) -> str | None:
    """Return the common path of the data that ``set`` writes, such as alice.near/profile."""
    # NearSocial/social-db, README: data is keyed by account, and a path is joined by slashes.
    branch = call_args(call).get("data")
    names: list[str] = []
    while isinstance(branch, dict) and len(branch) == 1 and len(names) < _MAX_ACTIONS:
        name, branch = next(iter(branch.items()))
        names.append(plain(name, _MAX_NAME))
    return "/".join(names) if len(names) > 1 else None


_PURPOSES: dict[str, Callable[[FunctionCall, str, AmountTexts], str | None]] = {
    "ft_transfer": _to_send,
    "ft_transfer_call": _to_send,
    "nft_transfer": _to_send_nft,
    "storage_deposit": _to_pay_for_storage,
    "near_deposit": _to_wrap,
    "near_withdraw": _to_unwrap,
    "deposit_and_stake": _to_stake,
    "create_account": _to_create,
    "create_account_advanced": _to_create,
    "set": _to_write,
}
