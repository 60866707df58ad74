"""
The results of successful calls in words, from transfers, receipts and logs.

A method's name alone proves nothing. A swap is two fungible assets that changed hands, a stake is
the log line of a staking pool or a minted token, a sale is an NFT that left for an amount.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ledgerkit.api.chain_errors import PANIC
from ledgerkit.api.models.actions import FunctionCall, action_name, function_call
from ledgerkit.tracing.action_fields import deposit
from ledgerkit.tracing.action_phrases import (
    deposit_of,
    describe_request,
    is_swap_message,
    list_texts,
    receiver_arg,
    social_path,
    storage_text,
)
from ledgerkit.tracing.actions import SUCCEEDED
from ledgerkit.tracing.amount_texts import INTENTS, NEAR, plain, split_asset
from ledgerkit.tracing.balance_timeline import POOL_METHODS, read_pool_lines
from ledgerkit.tracing.intents import SWAP, IntentMove
from ledgerkit.tracing.transaction_data import Request, TransactionData, account
from ledgerkit.units import count_text

if TYPE_CHECKING:
    from ledgerkit.tracing.token_events import Transfer

_VALUE_KINDS = (
    *("transfer", "deposit", "delegated", "beneficiary"),
    *("token", "nft", "multi_token"),
)
_LOST_KINDS = ("beneficiary", "refund_deposit")  # a refund of gas that fails is part of the fee
_MAX_REASON = 120
_MAX_NAMED = 3
_INTENT_TEXTS = {
    SWAP: "swapped {given} for {received}",
    "transfer": "sent {given} to {to}",
    "withdrawal": "withdrew {given} to {to}",
}
_POOL_TEXTS = {
    "staking": "staked {amount} with {pool}",
    "unstaking": "unstaked {amount} from {pool}",
    "withdrawing": "withdrew {amount} from {pool}",
    "deposited": "deposited {amount} with {pool}",
}


class Summary(NamedTuple):
    """
    A headline without its subject: its verb and object, and the clauses that follow.

    `has_reason` is True if the clauses already describe the receipts that failed.
    """

    text: str
    clauses: tuple[str, ...] = ()
    has_reason: bool = False


class Calls:
    """
    The calls of a request, and the totals that their sender gave and got, by asset.

    `token` is the called contract as a fungible token. `only_transfer_call` is the only
    `ft_transfer_call` and its receiver, None if there are several.
    """

    def __init__(self, tx: TransactionData, request: Request, calls: list[FunctionCall]) -> None:
        self.tx, self.request, self.calls = tx, request, calls
        self.gives, self.gets = net_amounts(tx.transfers, request, len(calls))
        self.contract_id, self.token = account(request.receiver_id), f"nep141:{request.receiver_id}"
        transfers = [call for call in calls if call.method_name == "ft_transfer_call"]
        self.only_transfer_call: tuple[FunctionCall | None, str | None] = None, None
        if len(transfers) == 1:
            self.only_transfer_call = transfers[0], receiver_arg(transfers[0])

    def has(self, *methods: str) -> bool:
        """Return True if one of these methods was called."""
        return any(call.method_name in methods for call in self.calls)

    def has_name_part(self, part: str) -> bool:
        """Return True if a method's name has a part, between underscores."""
        return any(part in (call.method_name or "").split("_") for call in self.calls)

    def moved(self, asset: str, sender_id: str | None, receiver_id: str | None) -> int:
        """Return how much of an asset moved from one account to another."""
        parties = (asset, sender_id, receiver_id)
        return sum(
            row.amount or 0
            for row in self.tx.transfers
            if row.kind in _VALUE_KINDS and (row.asset, row.sender_id, row.receiver_id) == parties
        )

    def text(self, amounts: dict[str, int]) -> str:
        return list_texts([self.tx.amounts.text(*item) for item in amounts.items()])


def summarize_success(tx: TransactionData, request: Request) -> Summary:
    """Summarize a successful transaction: the known result of its calls, else its actions."""
    actions = request.actions or ()
    calls = [call for call in map(function_call, actions) if call is not None]
    if not calls or len(calls) < len(actions):
        text = _describe_deletion(tx, request)
        return Summary(text or describe_request(request, tx.amounts, is_past=True))
    data = Calls(tx, request, calls)
    rules = _RULES if request.sender_id is not None else ()
    return next(filter(None, (rule(data) for rule in rules)), None) or _summarize_plainly(data)


def net_amounts(
    transfers: Iterable[Transfer], request: Request, n_calls: int
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the totals that the sender gave and got, without the yoctoNEAR that calls demand."""
    sender_id, totals = request.sender_id, defaultdict[str, int](int)
    for row in transfers:
        if not row.amount or row.kind not in _VALUE_KINDS or sender_id is None:
            continue
        if row.sender_id == sender_id:
            totals[row.asset] -= row.amount
        if row.receiver_id == sender_id:
            totals[row.asset] += row.amount
    if abs(totals.get(NEAR, 0)) <= n_calls:
        totals.pop(NEAR, None)
    gives = {asset: -total for asset, total in totals.items() if total < 0}
    return gives, {asset: total for asset, total in totals.items() if total > 0}


def reason_text(tx: TransactionData, position: int) -> tuple[bool, str]:
    """Return whether a receipt failed in a panic, and the reason without a full stop."""
    columns = tx.tree.columns
    message, kind = columns["error_message"][position], columns["error_kind"][position]
    message = message or kind or "for unknown reasons"
    if message.startswith(PANIC):
        return True, plain(message.removeprefix(PANIC), _MAX_REASON).rstrip(".")
    return False, as_clause(message)


def as_clause(sentence: str) -> str:
    """Return a sentence as a clause: without its full stop and its capital letter."""
    text = plain(sentence, _MAX_REASON).rstrip(".")
    first_word, _, _ = text.partition(" ")
    if first_word == "Exceeded":  # the node's texts about gas and balance have no subject
        return f"it e{text[1:]}"
    return text[:1].lower() + text[1:] if first_word[1:].islower() else text


def _only_fungible(amounts: dict[str, int]) -> dict[str, int]:
    return {asset: n for asset, n in amounts.items() if not asset.startswith("nep171:")}


# Rules -----------------------------------------------------------------------------------


def _summarize_creation(data: Calls) -> Summary | None:
    columns, names = data.tx.tree.columns, data.tx.column("actions")
    receipts = data.tx.non_refunds
    created = [row for row in receipts if "CreateAccount" in (names[row] or "").split("+")]
    if len(created) != 1:
        return None
    position, yocto = created[0], columns["deposit"][created[0]]
    amounts = data.tx.amounts
    near = f" with {amounts.text(NEAR, yocto)}" if isinstance(yocto, int) and yocto else ""
    creation = f"{account(columns['receiver_id'][position])}{near} through {data.contract_id}"
    if columns["status"][position] in SUCCEEDED:
        return Summary(f"created {creation}")
    if columns["status"][position] != "failure":
        return None
    back = returned_near(data.tx, data.request)
    clauses = (reason_text(data.tx, position)[1], *([f"{back} came back"] if back else []))
    return Summary(f"tried to create {creation}", clauses, has_reason=True)


def _summarize_refunded_tokens(data: Calls) -> Summary | None:
    """Summarize an `ft_transfer_call` that was refunded in full."""
    call, receiver_id = data.only_transfer_call
    if call is None or data.token in data.gives:
        return None
    sent = data.moved(data.token, data.request.sender_id, receiver_id)
    if not sent or sent != data.moved(data.token, receiver_id, data.request.sender_id):
        return None
    is_swap = is_swap_message(call)
    transfer = f"{data.tx.amounts.text(data.token, sent)} {'on' if is_swap else 'to'} "
    transfer += account(receiver_id) + ("" if is_swap else " with a call")
    name = "the exchange" if is_swap else account(receiver_id)
    text = f"tried to {'swap' if is_swap else 'send'} {transfer}"
    receivers = data.tx.tree.columns["receiver_id"]
    failed = [position for position in data.tx.failures if receivers[position] == receiver_id]
    if not failed:
        return Summary(text, (f"{name} sent the tokens back",))
    is_panic, reason = reason_text(data.tx, min(failed))
    clause = f"{name} {'panicked' if is_panic else 'failed'} and the tokens came back ({reason})"
    return Summary(text, (clause,), has_reason=True)


def _summarize_swap(data: Calls) -> Summary | None:
    call, receiver_id = data.only_transfer_call
    gives, gets = _only_fungible(data.gives), _only_fungible(data.gets)
    if not gives or not gets or not (call or data.has_name_part("swap")):
        return None
    # If tokens were given too, the NEAR paid for storage.
    given = {asset: n for asset, n in gives.items() if asset != NEAR} or gives
    exchange_id = receiver_id if call else data.request.receiver_id
    exchange = account(exchange_id)
    # A contract that hands out tokens of its own has accepted a deposit: shares, or a balance.
    if call and all(split_asset(asset)[1] == exchange_id for asset in gets):
        text = f"sent {data.text(given)} to {exchange} with a call and received {data.text(gets)}"
        return Summary(text)
    return Summary(f"swapped {data.text(given)} for {data.text(gets)} on {exchange}")


def _summarize_intents(data: Calls) -> Summary | None:
    """Summarize executed intents: swaps with a referral, else other swaps, else any moves."""
    groups: dict[Any, list[IntentMove]] = {}  # a swap of several tokens has several rows
    for move in data.tx.intents:
        if move.intent_hash and move.kind in _INTENT_TEXTS:
            key = *move[:2], move.kind, move.account_id, move.counterparty_id, move.intent_hash
            groups.setdefault(key, []).append(move)
    swaps = [group for group in groups.values() if group[0].kind == SWAP]
    named = [group for group in swaps if group[0].referral] or swaps or [*groups.values()]
    if data.request.receiver_id != INTENTS or not named:
        return None
    amount_text, texts = data.tx.amounts.text, []
    for group in named[:_MAX_NAMED]:
        move = group[0]
        given = [amount_text(m.given_asset, m.given or 0) for m in group if m.given_asset]
        received = [
            amount_text(m.received_asset, m.received or 0) for m in group if m.received_asset
        ]
        names = {"given": list_texts(given), "received": list_texts(received)}
        text = _INTENT_TEXTS[move.kind].format(**names, to=account(move.counterparty_id))
        texts.append(f"{account(move.account_id)} {text}")
    hashes = {move.intent_hash for move in data.tx.intents if move.intent_hash}
    n_others = len(hashes - {group[0].intent_hash for group in named[:_MAX_NAMED]})
    others = (f"with {count_text(n_others, 'other intent')}",) if n_others else ()
    return Summary(f"executed intents: {list_texts(texts)}", others)


def _summarize_nfts(data: Calls) -> Summary | None:
    rows = [row for row in data.tx.transfers if row.kind == "nft"]
    contracts = {split_asset(row.asset)[1] for row in rows}
    if len(contracts) != 1:
        return None
    first, last = ({row.asset: row for row in order} for order in (rows[::-1], rows))
    parties = {(first[asset].sender_id, last[asset].receiver_id) for asset in first}
    if len(parties) != 1:
        return None
    [(owner_id, receiver_id)] = parties
    tokens = [plain(split_asset(asset)[2]) for asset in last]
    token = f"token {tokens[0]}" if len(tokens) == 1 else f"tokens {list_texts(tokens)}"
    return _summarize_nft_route(data, f"{token} of {plain(contracts.pop())}", owner_id, receiver_id)


def _summarize_nft_route(
    data: Calls, token: str, owner_id: str | None, receiver_id: str | None
) -> Summary | None:
    """Summarize NFTs by their first owner and last receiver; None for a mint or burn."""
    sender_id = data.request.sender_id
    paid, earned = _only_fungible(data.gives), _only_fungible(data.gets)
    if owner_id is None:
        owner = "" if receiver_id == sender_id else f" for {account(receiver_id)}"
        return Summary(f"minted {token}{owner}" + (f", paying {data.text(paid)}" if paid else ""))
    if receiver_id is None:
        return Summary(f"burnt {token}") if owner_id == sender_id else None
    if owner_id == sender_id:
        if earned and not paid:
            return Summary(f"sold {token} to {account(receiver_id)} for {data.text(earned)}")
        return Summary(f"sent {token} to {account(receiver_id)}")
    if receiver_id == sender_id:
        verb, price = ("bought", f" for {data.text(paid)}") if paid else ("received", "")
        return Summary(f"{verb} {token} from {account(owner_id)}{price}")
    return None


def _summarize_wrapping(data: Calls) -> Summary | None:
    """Summarize the wrapping or unwrapping of NEAR, if both amounts are equal."""
    sender_id, contract_id = data.request.sender_id, data.request.receiver_id
    if data.has("near_deposit"):
        minted = data.moved(data.token, None, sender_id)
        if minted and data.gives == {NEAR: minted}:
            return Summary(f"wrapped {data.tx.amounts.text(NEAR, minted)}")
    if data.has("near_withdraw"):
        burnt = data.moved(data.token, sender_id, None)
        # The call demands one yoctoNEAR, which the contract may add to its payment.
        paid = data.moved(NEAR, contract_id, sender_id)
        if burnt and 0 <= paid - burnt <= len(data.calls):
            return Summary(f"unwrapped {data.tx.amounts.text(data.token, burnt)}")
    return None


def _summarize_liquid_staking(data: Calls) -> Summary | None:
    sender_id, amounts = data.request.sender_id, data.tx.amounts
    minted = data.moved(data.token, None, sender_id) if data.has_name_part("stake") else 0
    if minted and set(data.gives) == {NEAR}:
        near, tokens = data.text(data.gives), amounts.text(data.token, minted)
        return Summary(f"staked {near} with {data.contract_id} for {tokens}")
    burnt = data.moved(data.token, sender_id, None) if data.has_name_part("unstake") else 0
    if burnt and set(data.gives) == {data.token}:
        price = f" for {data.text(data.gets)}" if data.gets else ""
        return Summary(f"unstaked {amounts.text(data.token, burnt)} from {data.contract_id}{price}")
    return None


def _summarize_staking(data: Calls) -> Summary | None:
    if len(data.calls) != 1 or not POOL_METHODS.fullmatch(data.calls[0].method_name or ""):
        return None
    lines = _pool_lines(data)
    change = next((name for name in _POOL_TEXTS if name in lines), None)
    if change is None:
        return None
    yocto = lines[change]
    if change == "withdrawing":
        if data.moved(NEAR, data.request.receiver_id, data.request.sender_id) < yocto:
            return None
    elif data.has("deposit_and_stake"):  # what the pool charges is rounded down
        yocto = deposit_of(data.calls[0]) or yocto
    amount = data.tx.amounts.text(NEAR, yocto)
    return Summary(_POOL_TEXTS[change].format(amount=amount, pool=data.contract_id))


def _pool_lines(data: Calls) -> dict[str, int]:
    """Return the amounts that a pool logged for the sender, by the verb of the line."""
    columns, sender_id = data.tx.tree.columns, data.request.sender_id
    changes: dict[str, int] = {}
    for position in data.tx.non_refunds:
        is_pool = columns["receiver_id"][position] == data.request.receiver_id
        if is_pool and columns["status"][position] in SUCCEEDED:
            lines = read_pool_lines(columns["logs"][position])
            changes |= {verb: amount for name, verb, amount in lines if name == sender_id}
    return changes


def _summarize_sent_tokens(data: Calls) -> Summary | None:
    call, receiver_id = data.only_transfer_call
    amounts, sender_id = data.tx.amounts, data.request.sender_id
    if call is not None and len(data.calls) == 1:
        sent = data.moved(data.token, sender_id, receiver_id)
        back = data.moved(data.token, receiver_id, sender_id)
        if not sent or sent == back:
            return None
        clauses = (f"{amounts.text(data.token, back)} came back",) if back else ()
        text = f"sent {amounts.text(data.token, sent)} to {account(receiver_id)} with a call"
        return Summary(text, clauses)
    transfers = [call for call in data.calls if call.method_name == "ft_transfer"]
    receivers = list(dict.fromkeys(map(receiver_arg, transfers)))
    moved = [data.moved(data.token, sender_id, receiver_id) for receiver_id in receivers]
    n_described = len(transfers) + sum(call.method_name == "storage_deposit" for call in data.calls)
    if not transfers or not all(moved) or n_described != len(data.calls):
        return None
    amount = amounts.text(data.token, sum(moved))
    receiver = account(receivers[0]) if len(receivers) == 1 else f"{len(receivers)} accounts"
    return Summary(f"sent {amount} to {receiver}")


def _summarize_storage(data: Calls) -> Summary | None:
    """Summarize a storage deposit (NEP-145), less what the contract returned."""
    if len(data.calls) != 1 or not data.has("storage_deposit") or set(data.gives) != {NEAR}:
        return None
    storage = storage_text(data.calls[0], data.contract_id)
    return Summary(f"paid {data.text(data.gives)} for {storage}")


def _summarize_social_data(data: Calls) -> Summary | None:
    path = social_path(data.calls[0]) if len(data.calls) == 1 and data.has("set") else None
    return None if path is None else Summary(f"wrote {path} on {data.contract_id}")


_RULES = (
    _summarize_creation,
    _summarize_refunded_tokens,
    _summarize_swap,
    _summarize_intents,
    _summarize_nfts,
    _summarize_wrapping,
    _summarize_liquid_staking,
    _summarize_staking,
    _summarize_sent_tokens,
    _summarize_storage,
    _summarize_social_data,
)


def _summarize_plainly(data: Calls) -> Summary:
    """Summarize calls without a known result: what was called, given and received."""
    tx, request, gets = data.tx, data.request, data.gets
    text = describe_request(request, tx.amounts, is_past=True)
    attached = sum(deposit_of(call) or 0 for call in data.calls)
    is_part = NEAR not in gets and attached - data.gives.get(NEAR, 0) > len(data.calls)
    gives = {asset: total for asset, total in data.gives.items() if asset != NEAR}
    parts = [text]
    parts += [f"gave {data.text(gives)}"] if gives else []
    parts += [f"received {data.text(gets)}"] if gets else []
    back = returned_near(tx, request) if attached and is_part else ""
    return Summary(list_texts(parts), (f"{back} came back",) if back else ())


def _describe_deletion(tx: TransactionData, request: Request) -> str | None:
    rows = [row for row in tx.transfers if row.kind == "beneficiary"]
    if len(rows) != 1 or list(map(action_name, request.actions or ())) != ["DeleteAccount"]:
        return None
    amount = tx.amounts.text(NEAR, rows[0].amount or 0)
    return f"deleted its account, leaving {amount} to {account(rows[0].receiver_id)}"


def lost_amounts(tx: TransactionData) -> list[str]:
    """Describe the balances and deposits that were lost because their receiver does not exist."""
    values = tx.values
    lost = [row for row in tx.failures if values.refund_kinds[row] in _LOST_KINDS]
    amounts = [(values.receivers[row], values.deposits[row]) for row in lost]
    return [
        f"{'an unknown amount' if amount is None else tx.amounts.text(NEAR, amount)} was lost, "
        f"because {account(receiver_id)} does not exist"
        for receiver_id, amount in amounts
        if amount != 0
    ]


def returned_near(tx: TransactionData, request: Request) -> str:
    """Describe the NEAR that came back to the sender or relayer; "" if it is not a deposit."""
    actions = request.actions or ()
    attached = sum(deposit(action) or 0 for action in actions)
    payers = (request.sender_id, request.relayer_id)
    rows = [row for row in tx.transfers if row.asset == NEAR and row.receiver_id in payers]
    total = sum(
        row.amount or 0
        for row in rows
        if row.kind == "refund_deposit"
        or (row.kind in ("transfer", "deposit") and row.sender_id not in payers)
    )
    return tx.amounts.text(NEAR, total) if len(actions) < total <= attached else ""
