"""
Verbs that change something: each signs one transaction, sends it and answers with its course.

Everything that can be told without asking is checked first; then the chain is asked who
it is, since nothing is signed for the public network unasked; then the nonce is taken,
in turn with whoever else uses the key, and the signed bytes are sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast, overload
from weakref import WeakKeyDictionary

from msgspec import Struct

from ledgerkit import client, units, validation
from ledgerkit.api import calls, rpc
from ledgerkit.errors import (
    InvalidRequestError,
    InvalidTransactionError,
    RequestRoutedError,
    RpcMethodNotFoundError,
    TransactionTimeoutError,
)
from ledgerkit.frames import build
from ledgerkit.protocol import (
    AccessKey,
    AccountId,
    AddKey,
    CreateAccount,
    CryptoHash,
    Delegate,
    DelegateAction,
    DeleteKey,
    DeployContract,
    FullAccess,
    FunctionCall,
    FunctionCallPermission,
    PublicKey,
    SecretKey,
    Transaction,
    Transfer,
)
from ledgerkit.protocol.actions import attached_gas, deposits
from ledgerkit.protocol.types import public_key as checked_key
from ledgerkit.sending import broadcast, fees, limits, nonces
from ledgerkit.sending.lifecycle import Course
from ledgerkit.sending.nonces import Anchor
from ledgerkit.sending.signers import Signer, find, sealing
from ledgerkit.sending.submission import Submission, follow, recall, remember
from ledgerkit.transport.settings import positive
from ledgerkit.verbs.fetching import provenance

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.api.calls import Call
    from ledgerkit.client import Ledger
    from ledgerkit.protocol import Action, SignedTransaction
    from ledgerkit.sending.nonces import Lane

MAINNET = "mainnet"
_PATIENCE_S = 60.0
_CREATION_GAS = 80 * 10**12  # the contracts of top-level accounts call themselves back
_DELEGATION_BLOCKS = 1200  # some ten minutes to find a relayer
_NOWHERE = CryptoHash(bytes(32))


class _Chain(Struct, frozen=True):
    """As much of a node's status as tells which chain it is of."""

    chain_id: str
    genesis_hash: str | None = None


_chains: WeakKeyDictionary[Ledger, _Chain] = WeakKeyDictionary()


class Options(TypedDict, total=False):
    """
    Who signs, and how it is sent: what every verb that sends takes by keyword.

    ``signer_id``: the account that signs. None is the session's, chosen with `use_signer`,
    or the environment's. The accounts of the embedded ledger have published keys, which
    serve where no other key is given.

    ``key``: its `SecretKey`, the text of one, or a `Signer`.

    ``wait_until``: how far it is to be when the verb returns: NONE, INCLUDED,
    EXECUTED_OPTIMISTIC (the default), INCLUDED_FINAL, EXECUTED or FINAL.

    ``timeout_s``: how long to wait for that, 60 seconds by default. That it is not so far
    by then is no failure.

    ``via``: the method that carries it: ``send_tx`` (the default), ``broadcast_tx_async``
    or ``broadcast_tx_commit``. While several senders share a key, their bytes are first
    handed over in the order of their nonces by ``broadcast_tx_async``.

    ``strict``: whether it may only take the very next nonce of its key. Such ones are sent
    one after the other, so that none waits for a gap.

    ``allow_mainnet``: whether it may be signed where the chain is the public mainnet.

    ``ledger``: where it is sent; None is the session's default.
    """

    signer_id: str | None
    key: SecretKey | str | Signer | None
    wait_until: str
    timeout_s: float
    via: str
    strict: bool
    allow_mainnet: bool
    ledger: Ledger | None


@dataclass(frozen=True, slots=True)
class _How:
    """The options, checked."""

    ledger: Ledger
    signer: Signer
    wait_until: str
    timeout_s: float
    via: str
    strict: bool
    allow_mainnet: bool


def _how(
    *,
    signer_id: str | None = None,
    key: object = None,
    wait_until: str = "EXECUTED_OPTIMISTIC",
    timeout_s: float = _PATIENCE_S,
    via: str = "send_tx",
    strict: bool = False,
    allow_mainnet: bool = False,
    ledger: Ledger | None = None,
) -> _How:
    """Check the options of a verb."""
    validation.one_of(wait_until, "wait_until", validation.WAIT_LEVELS)
    validation.one_of(via, "via", broadcast.VIA)
    positive("timeout_s", timeout_s)
    for name, flag in (("strict", strict), ("allow_mainnet", allow_mainnet)):
        if not isinstance(flag, bool):
            raise InvalidRequestError.refuse(name, flag, "True or False")
    if strict and (via == "broadcast_tx_async" or wait_until == "NONE"):
        rule = "left out where nobody hears of a refusal, which would block the nonces after it"
        raise InvalidRequestError.refuse("strict", strict, rule)
    asked = client.current(ledger)
    signer = find(signer_id, key, asked)
    return _How(asked, signer, wait_until, timeout_s, via, strict, allow_mainnet)


# Transfers and calls ----------------------------------------------------------------------


@overload
def transfer(
    receiver_id: str, amount: int | str, *, dry_run: Literal[True], **options: Unpack[Options]
) -> pd.DataFrame: ...
@overload
def transfer(
    receiver_id: str,
    amount: int | str,
    *,
    dry_run: Literal[False] = False,
    **options: Unpack[Options],
) -> Submission: ...
@sealing
def transfer(
    receiver_id: str, amount: int | str, *, dry_run: bool = False, **options: Unpack[Options]
) -> Submission | pd.DataFrame:
    """
    Send NEAR.

    Parameters
    ----------
    receiver_id
        To whom.
    amount
        How much: ``"0.1 NEAR"``, ``"1 yocto"``, or an integer of yoctoNEAR.
    dry_run
        Whether only to show what would be sent.
    **options
        Who signs and how it is sent: ``signer_id=``, ``key=``, ``wait_until=`` and more,
        see `ledgerkit.sending.verbs.Options`.

    Returns
    -------
    submission
        How far it is; with `dry_run` one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was signed or read then.
    InvalidTransactionError
        If the ledger refuses it; of the class of the reason.
    LedgerError
        If nobody could be reached; says how to pick it up again.
    """
    return _run([Transfer(units.yocto(amount))], receiver_id, options, dry_run=dry_run)


@overload
def call(
    contract_id: str,
    method_name: str,
    args: Any = None,
    *,
    gas: int | str = "30 Tgas",
    deposit: int | str = 0,
    dry_run: Literal[True],
    **options: Unpack[Options],
) -> pd.DataFrame: ...
@overload
def call(
    contract_id: str,
    method_name: str,
    args: Any = None,
    *,
    gas: int | str = "30 Tgas",
    deposit: int | str = 0,
    dry_run: Literal[False] = False,
    **options: Unpack[Options],
) -> Submission: ...
@sealing
def call(
    contract_id: str,
    method_name: str,
    args: Any = None,
    *,
    gas: int | str = "30 Tgas",
    deposit: int | str = 0,
    dry_run: bool = False,
    **options: Unpack[Options],
) -> Submission | pd.DataFrame:
    """
    Call a method of a contract that may change something.

    Parameters
    ----------
    contract_id
        The contract.
    method_name
        Its method.
    args
        Its arguments: a dict or list, sent as JSON, or bytes as they are; None is ``{}``.
    gas
        How much gas to attach: ``"30 Tgas"``, or an integer of gas.
    deposit
        How much NEAR to attach, as in `transfer`.
    dry_run
        Whether only to show what would be sent.
    **options
        Who signs and how it is sent, see `ledgerkit.sending.verbs.Options`.

    Returns
    -------
    submission
        How far it is; with `dry_run` one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was signed or read then.
    InvalidTransactionError
        If the ledger refuses it; of the class of the reason.
    LedgerError
        If nobody could be reached; says how to pick it up again.
    """
    method = validation.method_name(method_name, "method_name")
    data = validation.json_args({} if args is None else args)
    action = FunctionCall(method, data, units.gas(gas), units.yocto(deposit, "deposit"))
    receiver_id = validation.account_id(contract_id, "contract_id")
    return _run([action], receiver_id, options, dry_run=dry_run)


@overload
def send(
    receiver_id: str,
    actions: Sequence[Action],
    *,
    dry_run: Literal[True],
    **options: Unpack[Options],
) -> pd.DataFrame: ...
@overload
def send(
    receiver_id: str,
    actions: Sequence[Action],
    *,
    dry_run: Literal[False] = False,
    **options: Unpack[Options],
) -> Submission: ...
@sealing
def send(
    receiver_id: str,
    actions: Sequence[Action],
    *,
    dry_run: bool = False,
    **options: Unpack[Options],
) -> Submission | pd.DataFrame:
    """
    Send any actions in one transaction: all of them happen, or none.

    Parameters
    ----------
    receiver_id
        To whom.
    actions
        What is done, of `ledgerkit.protocol`; 1 to 100 of them.
    dry_run
        Whether only to show what would be sent.
    **options
        Who signs and how it is sent, see `ledgerkit.sending.verbs.Options`.

    Returns
    -------
    submission
        How far it is; with `dry_run` one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was signed or read then.
    InvalidTransactionError
        If the ledger refuses it; of the class of the reason.
    LedgerError
        If nobody could be reached; says how to pick it up again.
    """
    return _run(actions, receiver_id, options, dry_run=dry_run)


# Keys and accounts ------------------------------------------------------------------------


@overload
def add_key(
    public_key: PublicKey | str,
    *,
    receiver_id: str | None = None,
    method_names: Sequence[str] = (),
    allowance: int | str | None = None,
    dry_run: Literal[True],
    **options: Unpack[Options],
) -> pd.DataFrame: ...
@overload
def add_key(
    public_key: PublicKey | str,
    *,
    receiver_id: str | None = None,
    method_names: Sequence[str] = (),
    allowance: int | str | None = None,
    dry_run: Literal[False] = False,
    **options: Unpack[Options],
) -> Submission: ...
@sealing
def add_key(
    public_key: PublicKey | str,
    *,
    receiver_id: str | None = None,
    method_names: Sequence[str] = (),
    allowance: int | str | None = None,
    dry_run: bool = False,
    **options: Unpack[Options],
) -> Submission | pd.DataFrame:
    """
    Give the signer's account one more key.

    Parameters
    ----------
    public_key
        The key.
    receiver_id
        The one contract it may call; None gives it full access.
    method_names
        The methods it may call; none listed allows all.
    allowance
        How much NEAR it may spend on gas, as in `transfer`; None is no limit.
    dry_run
        Whether only to show what would be sent.
    **options
        Who signs and how it is sent, see `ledgerkit.sending.verbs.Options`.

    Returns
    -------
    submission
        How far it is; with `dry_run` one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was signed or read then.
    InvalidTransactionError
        If the ledger refuses it; of the class of the reason.
    LedgerError
        If nobody could be reached; says how to pick it up again.
    """
    key = checked_key(public_key)
    if receiver_id is not None:
        names = tuple(method_names) if not isinstance(method_names, str) else method_names
        limit = None if allowance is None else units.yocto(allowance, "allowance")
        limited = FunctionCallPermission(
            limit, validation.account_id(receiver_id, "receiver_id"), names
        )
        return _run([AddKey(key, AccessKey(0, limited))], None, options, dry_run=dry_run)
    for name, value in (("method_names", method_names), ("allowance", allowance)):
        if value not in ((), [], None):
            rule = "left out, or beside the receiver_id= that the key is limited to"
            raise InvalidRequestError.refuse(name, value, rule)
    return _run([AddKey(key, AccessKey(0, FullAccess()))], None, options, dry_run=dry_run)


@overload
def delete_key(
    public_key: PublicKey | str, *, dry_run: Literal[True], **options: Unpack[Options]
) -> pd.DataFrame: ...
@overload
def delete_key(
    public_key: PublicKey | str, *, dry_run: Literal[False] = False, **options: Unpack[Options]
) -> Submission: ...
@sealing
def delete_key(
    public_key: PublicKey | str, *, dry_run: bool = False, **options: Unpack[Options]
) -> Submission | pd.DataFrame:
    """
    Take a key from the signer's account.

    Parameters
    ----------
    public_key
        The key.
    dry_run
        Whether only to show what would be sent.
    **options
        Who signs and how it is sent, see `ledgerkit.sending.verbs.Options`.

    Returns
    -------
    submission
        How far it is; with `dry_run` one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was signed or read then.
    InvalidTransactionError
        If the ledger refuses it; of the class of the reason.
    LedgerError
        If nobody could be reached; says how to pick it up again.
    """
    return _run([DeleteKey(checked_key(public_key))], None, options, dry_run=dry_run)


@overload
def create_account(
    new_account_id: str,
    *,
    public_key: PublicKey | str,
    balance: int | str,
    dry_run: Literal[True],
    **options: Unpack[Options],
) -> pd.DataFrame: ...
@overload
def create_account(
    new_account_id: str,
    *,
    public_key: PublicKey | str,
    balance: int | str,
    dry_run: Literal[False] = False,
    **options: Unpack[Options],
) -> Submission: ...
@sealing
def create_account(
    new_account_id: str,
    *,
    public_key: PublicKey | str,
    balance: int | str,
    dry_run: bool = False,
    **options: Unpack[Options],
) -> Submission | pd.DataFrame:
    """
    Create an account with a full-access key.

    Parameters
    ----------
    new_account_id
        An account right below the signer's, made in one batch; or one such as
        ``name.near``, for which the contract of ``near`` is called.
    public_key
        Its key.
    balance
        How much NEAR it gets, as in `transfer`.
    dry_run
        Whether only to show what would be sent.
    **options
        Who signs and how it is sent, see `ledgerkit.sending.verbs.Options`.

    Returns
    -------
    submission
        How far it is; with `dry_run` one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was signed or read then.
    InvalidTransactionError
        If the ledger refuses it; of the class of the reason.
    LedgerError
        If nobody could be reached; says how to pick it up again.
    """
    name = AccountId(new_account_id, "new_account_id")
    key, amount = checked_key(public_key), units.yocto(balance, "balance")
    how = _how(**options)
    if name.parent == how.signer.account_id:
        batch = [CreateAccount(), Transfer(amount), AddKey(key, AccessKey(0, FullAccess()))]
        return _go(how, str(name), batch, dry_run=dry_run)
    if name.parent is None or not name.parent.is_top_level:
        rule = f"an account right below {how.signer.account_id}, or below one such as near"
        raise InvalidRequestError.refuse("new_account_id", str(name), rule)
    args = validation.json_args({"new_account_id": str(name), "new_public_key": str(key)})
    creation = FunctionCall("create_account", args, _CREATION_GAS, amount)
    return _go(how, str(name.parent), [creation], dry_run=dry_run)


@overload
def deploy(
    code: bytes,
    *,
    account_id: str | None = None,
    dry_run: Literal[True],
    **options: Unpack[Options],
) -> pd.DataFrame: ...
@overload
def deploy(
    code: bytes,
    *,
    account_id: str | None = None,
    dry_run: Literal[False] = False,
    **options: Unpack[Options],
) -> Submission: ...
@sealing
def deploy(
    code: bytes,
    *,
    account_id: str | None = None,
    dry_run: bool = False,
    **options: Unpack[Options],
) -> Submission | pd.DataFrame:
    """
    Put a contract on the signer's account.

    Parameters
    ----------
    code
        The compiled contract.
    account_id
        The account, which can only be the signer's own; to be sure of it.
    dry_run
        Whether only to show what would be sent.
    **options
        Who signs and how it is sent, see `ledgerkit.sending.verbs.Options`.

    Returns
    -------
    submission
        How far it is; with `dry_run` one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was signed or read then.
    InvalidTransactionError
        If the ledger refuses it; of the class of the reason.
    LedgerError
        If nobody could be reached; says how to pick it up again.
    """
    if not isinstance(code, bytes) or not code:
        raise InvalidRequestError.refuse("code", code, "the bytes of a compiled contract")
    how = _how(**options)
    if account_id not in (None, how.signer.account_id):
        rule = f"the signer's own account, {how.signer.account_id}"
        raise InvalidRequestError.refuse("account_id", account_id, rule)
    return _go(how, str(how.signer.account_id), [DeployContract(code)], dry_run=dry_run)


# Delegated actions ------------------------------------------------------------------------


@sealing
def delegate(
    receiver_id: str,
    actions: Sequence[Action],
    *,
    max_block_height: int | None = None,
    **options: Unpack[Options],
) -> Delegate:
    """
    Sign what somebody else is to send and pay for (NEP-366); nothing is sent.

    It takes the next nonce of the key: what the key signs later and is sent earlier makes
    it invalid.

    Parameters
    ----------
    receiver_id
        To whom it is done.
    actions
        What is done; none of them delegated in turn.
    max_block_height
        The last block at which it may happen; None is 1,200 blocks from now.
    **options
        Who signs, see `ledgerkit.sending.verbs.Options`.

    Returns
    -------
    delegate
        For `relay`, or any other relayer.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was signed or read then.
    LedgerError
        If the key could not be read.
    """
    how = _how(**options)
    found = limits.actions(list(actions))
    name, public_key = how.signer.account_id, how.signer.public_key
    last = 0 if max_block_height is None else validation.block_height(max_block_height)
    DelegateAction(name, receiver_id, found, 0, last, public_key)  # refused before it is signed
    _refuse_mainnet(how)
    lane = _lane(how)
    with lane.turn():
        anchor = _anchor(how, lane)
        nonce = lane.reserve()
    last = last or anchor.height + _DELEGATION_BLOCKS
    wanted = DelegateAction(name, receiver_id, found, nonce, last, public_key)
    return wanted.sign(how.signer.key)


@overload
def relay(
    delegate: Delegate, *, dry_run: Literal[True], **options: Unpack[Options]
) -> pd.DataFrame: ...
@overload
def relay(
    delegate: Delegate, *, dry_run: Literal[False] = False, **options: Unpack[Options]
) -> Submission: ...
@sealing
def relay(
    delegate: Delegate, *, dry_run: bool = False, **options: Unpack[Options]
) -> Submission | pd.DataFrame:
    """
    Send and pay for what somebody else has signed (NEP-366).

    Parameters
    ----------
    delegate
        What `delegate` made, here or elsewhere.
    dry_run
        Whether only to show what would be sent.
    **options
        Who signs and how it is sent, see `ledgerkit.sending.verbs.Options`.

    Returns
    -------
    submission
        How far it is; with `dry_run` one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed or the delegated signature is wrong; nothing was
        signed or read then.
    InvalidTransactionError
        If the ledger refuses it; of the class of the reason.
    LedgerError
        If nobody could be reached; says how to pick it up again.
    """
    if not isinstance(delegate, Delegate):
        raise InvalidRequestError.refuse("delegate", delegate, "what delegate() made")
    if not delegate.verify():
        rule = f"signed by {delegate.delegate_action.public_key}, the key that it names"
        raise InvalidRequestError.refuse("delegate", "a signature", rule)
    sender_id = str(delegate.delegate_action.sender_id)
    return _run([delegate], sender_id, options, dry_run=dry_run)


# Picking up -------------------------------------------------------------------------------


def track(
    tx_hash: str, sender: str, *, timeout_s: float | None = 120.0, ledger: Ledger | None = None
) -> Submission:
    """
    Follow a transaction until it is final, or dropped.

    Parameters
    ----------
    tx_hash
        The transaction, sent here or elsewhere.
    sender
        The account that signed it.
    timeout_s
        The longest to follow it; None is as long as it takes.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    submission
        How far it is; ``unknown`` where nobody has seen it.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was sent then.
    LedgerError
        If nobody could be asked.
    """
    if timeout_s is not None:
        positive("timeout_s", timeout_s)
    found = _recalled(tx_hash, sender, ledger)
    return found.wait("final", timeout_s)


def resume(tx_hash: str, sender: str, *, ledger: Ledger | None = None) -> Submission:
    """
    Pick up a transaction whose sending was interrupted; sends nothing.

    Parameters
    ----------
    tx_hash
        The transaction.
    sender
        The account that signed it.
    ledger
        The ledger to ask; None is the session's default.

    Returns
    -------
    submission
        How far it is; its `wait` follows it further. One that was sent through the same
        `Ledger` still has its signed bytes.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed; nothing was sent then.
    LedgerError
        If nobody could be asked.
    """
    return _recalled(tx_hash, sender, ledger).refresh()


def _recalled(tx_hash: str, sender: str, ledger: Ledger | None) -> Submission:
    """Check which transaction is meant, and find what is known of it."""
    wanted = validation.crypto_hash(tx_hash, "tx_hash")
    signer_id = validation.account_id(sender, "sender")
    return recall(client.current(ledger), wanted, signer_id)


# From actions to bytes --------------------------------------------------------------------


def _run(
    actions: Sequence[Action], receiver_id: str | None, options: Options, *, dry_run: bool
) -> Submission | pd.DataFrame:
    """Send actions to somebody, or to the signer."""
    found = limits.actions(list(actions) if isinstance(actions, Sequence) else actions)
    to = None if receiver_id is None else validation.account_id(receiver_id, "receiver_id")
    how = _how(**options)
    return _go(how, to or str(how.signer.account_id), found, dry_run=dry_run)


def _go(
    how: _How, receiver_id: str, actions: Sequence[Action], *, dry_run: bool
) -> Submission | pd.DataFrame:
    """Check the whole, then show it or send it."""
    limits.actions(list(actions))
    limits.size(_transaction(how, receiver_id, actions, 0, _NOWHERE))
    return (_rehearse if dry_run else _send)(how, receiver_id, actions)


def _transaction(
    how: _How, receiver_id: str, actions: Sequence[Action], nonce: int, block_hash: CryptoHash
) -> Transaction:
    """Write a transaction; a strict nonce needs the later version."""
    strict: dict[str, Any] = {"version": 1, "nonce_mode": "strict"} if how.strict else {}
    name, public_key = how.signer.account_id, how.signer.public_key
    return Transaction(name, public_key, nonce, receiver_id, block_hash, tuple(actions), **strict)


def _send(how: _How, receiver_id: str, actions: Sequence[Action]) -> Submission:
    """Send, and follow as far as is wanted."""
    _refuse_mainnet(how)
    lane = _lane(how)
    sent = _pursue(how, _attempt(how, lane, receiver_id, actions))
    if sent.course.is_lost():  # the only time that anything is signed anew
        sent = _attempt(how, lane, receiver_id, actions)
    if sent.stage == "rejected":
        sent.raise_for_status()
    return _pursue(how, sent)


def _pursue(how: _How, sent: Submission) -> Submission:
    """Follow as far as is wanted."""
    if how.wait_until != "NONE" and not sent.is_over:
        follow(sent, how.wait_until, how.timeout_s)
    return sent


def _attempt(how: _How, lane: Lane, receiver_id: str, actions: Sequence[Action]) -> Submission:
    """Sign, and send in turn with others who use the key."""
    level = "NONE" if how.wait_until == "NONE" else "INCLUDED"
    with lane.turn():
        if how.strict:
            _settle(how, lane)
        sent, signed = _sign(how, lane, receiver_id, actions)
        # Nobody waits behind a node that waits for a block: then only the order counts.
        at_once = how.strict or lane.alone
        sent.course.hand_over(signed, how.via if at_once else "broadcast_tx_async", level)
    if not at_once and level != "NONE" and how.via != "broadcast_tx_async":
        sent.course.hand_over(signed, how.via, level)
        sent.course.confirm()
    return sent


def _sign(
    how: _How, lane: Lane, receiver_id: str, actions: Sequence[Action]
) -> tuple[Submission, SignedTransaction]:
    """Sign with the next nonce; from here on `resume` finds it."""
    anchor = _anchor(how, lane)
    nonce = lane.reserve(strict=how.strict)
    tx = _transaction(how, receiver_id, actions, nonce, anchor.block_hash)
    signed = tx.sign(how.signer.key)
    lane.keep(signed)
    name, held = str(tx.signer_id), str(signed.hash)
    course = Course(how.ledger, held, name, signed=signed, signed_at=anchor.height, lane=lane)
    sent = Submission(course)
    remember(sent)
    return sent, signed


def _settle(how: _How, lane: Lane) -> None:
    """Send again what may never have arrived, or free its nonce: a strict one waits for it."""
    for signed in lane.unsettled():
        nonce = signed.transaction.nonce
        try:
            broadcast.deliver(how.ledger, signed, "send_tx", "INCLUDED")
        except (TransactionTimeoutError, RequestRoutedError):
            continue
        except InvalidTransactionError:
            lane.give_back(nonce)
        else:
            lane.landed(nonce)


# Reading before sending -------------------------------------------------------------------


def _chain(ledger: Ledger) -> _Chain:
    """Ask which chain it is, once a ledger."""
    if ledger not in _chains:
        asked = "the node's status"
        _chains[ledger] = ledger.send(calls.rpc("status", [], _Chain, asked=asked))
    return _chains[ledger]


def _lane(how: _How) -> Lane:
    """Find the lane of the key on this chain, whichever `Ledger` leads to it."""
    world, chain = broadcast.world_of(how.ledger), _chain(how.ledger)
    told = f"{chain.chain_id} {chain.genesis_hash}" if chain.genesis_hash else how.ledger
    where = told if world is None else world  # two of these may begin alike
    return nonces.lane(where, str(how.signer.account_id), str(how.signer.public_key))


def _anchor(how: _How, lane: Lane) -> Anchor:
    """Give the block to refer to; the key is read with it, where that is due."""
    held = lane.anchor
    if held is not None:
        return held
    ak_nonce, anchor = _read(how)
    lane.update(ak_nonce, anchor)
    return anchor


def _read(how: _How) -> tuple[int, Anchor]:
    """Read the key's last nonce, and a final block."""
    name, public_key = str(how.signer.account_id), str(how.signer.public_key)
    asked: list[Call[Any]] = [
        rpc.view_access_key(name, public_key, validation.block_reference("optimistic")),
        rpc.block(validation.block_reference("final")),
    ]
    held, block = cast("list[Any]", how.ledger.send_many(asked, progress=False))
    return held.nonce, Anchor(block.header.height, CryptoHash(block.header.hash))


def _refuse_mainnet(how: _How) -> None:
    """Refuse to sign for the public network unasked, whatever its address is called."""
    if _chain(how.ledger).chain_id == MAINNET and not how.allow_mainnet:
        msg = "this ledger is the public mainnet, where what is signed moves real NEAR"
        remedy = "Pass allow_mainnet=True if that is meant, or connect to another network."
        raise InvalidRequestError(msg, remedy=remedy, field="allow_mainnet", value=False)


def _rehearse(how: _How, receiver_id: str, actions: Sequence[Action]) -> pd.DataFrame:
    """Show what would be signed; nothing is."""
    ak_nonce, anchor = _read(how)
    nonce = _lane(how).peek(ak_nonce)
    tx = _transaction(how, receiver_id, actions, nonce, anchor.block_hash)
    price = int(how.ledger.send(rpc.gas_price(None)).gas_price)
    row = {
        "tx_hash": str(tx.hash),
        "signer_id": str(tx.signer_id),
        "receiver_id": str(tx.receiver_id),
        "actions": "+".join(action.name for action in tx.actions),
        "nonce": nonce,
        "size": limits.size(tx),
        "cost_bound": fees.bound(tx, _config(how.ledger), price),
        "gas_attached": attached_gas(tx.actions),
        "deposit": deposits(tx.actions),
        "block_hash": str(tx.block_hash),
        "expires_at_height": anchor.height + broadcast.validity(how.ledger),
    }
    told = provenance(how.ledger, "view_access_key, gas_price, EXPERIMENTAL_protocol_config")
    return build.build_frame("dry_run", {name: [value] for name, value in row.items()}, attrs=told)


def _config(ledger: Ledger) -> Any:
    """Read what tells the fees; None where the node has no such method."""
    try:
        return ledger.send(rpc.protocol_config(validation.block_reference("final")))
    except RpcMethodNotFoundError:
        return None
