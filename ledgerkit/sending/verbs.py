"""
Verbs that change the chain's state: each signs one transaction, sends it and tracks it.

Arguments are checked first, without a request. Then the node's chain id is read, since
nothing is signed for mainnet unless allowed. Then the transaction is signed with the key's
next nonce and sent, in turn with other senders of the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack, overload

from msgspec import Struct

from ledgerkit import client, units, validation
from ledgerkit.api import calls, rpc
from ledgerkit.errors import (
    InvalidRequestError,
    InvalidTransactionError,
    LedgerError,
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
from ledgerkit.sending import access_keys, amounts, broadcast, fees, limits, nonces
from ledgerkit.sending.contract_code import deploy_action
from ledgerkit.sending.lifecycle import Tracker
from ledgerkit.sending.nonces import Anchor
from ledgerkit.sending.signers import Signer, find_signer, seals_key
from ledgerkit.sending.submission import Submission, recall, remember, wait_for_level
from ledgerkit.tracing.action_fields import parse_amount
from ledgerkit.transport.settings import positive
from ledgerkit.verbs.fetching import provenance

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd

    from ledgerkit.api.calls import Call
    from ledgerkit.api.models.chain import AccessKey as AccessKeyView
    from ledgerkit.ledger import Ledger
    from ledgerkit.protocol import Action, SignedTransaction
    from ledgerkit.sending.nonces import KeyQueues, NonceQueue

MAINNET = "mainnet"
_TIMEOUT_S = 60.0
_CREATION_GAS = 80 * 10**12  # the contract of a top-level account needs a callback
_DELEGATION_BLOCKS = 1200  # about ten minutes to find a relayer


class _Chain(Struct, frozen=True):
    """The members of a node's status that identify its chain."""

    chain_id: str
    genesis_hash: str | None = None


class Options(TypedDict, total=False):
    """
    The keyword options of every verb that sends.

    ``signer_id``: the account that signs. None is the session's signer, set by
    `use_signer`, or the environment's. Accounts of the embedded ledger have published
    keys, which are used if no other key is passed.

    ``key``: the signer's `SecretKey`, the text of one, or a `Signer`.

    ``wait_until``: the level at which the verb returns: NONE, INCLUDED,
    EXECUTED_OPTIMISTIC (the default), INCLUDED_FINAL, EXECUTED or FINAL.

    ``timeout_s``: the longest wait for that level, 60 seconds by default. A timeout is not
    an error.

    ``via``: the RPC method: ``send_tx`` (the default), ``broadcast_tx_async`` or
    ``broadcast_tx_commit``. While several senders share a key, their transactions are
    first sent by ``broadcast_tx_async``, in the order of their nonces.

    ``strict``: if True, the transaction is valid with the very next nonce of its key only.
    Such transactions are sent one after the other, so that no nonce is left out.

    ``allow_mainnet``: must be True to sign for the public mainnet.

    ``ledger``: the ledger to send to; None is the session's default.
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
class _SendOptions:
    """The checked options of a verb."""

    ledger: Ledger
    signer: Signer
    wait_until: str
    timeout_s: float
    via: str
    strict: bool
    allow_mainnet: bool


def _check_options(
    *,
    signer_id: str | None = None,
    key: object = None,
    wait_until: str = "EXECUTED_OPTIMISTIC",
    timeout_s: float = _TIMEOUT_S,
    via: str = "send_tx",
    strict: bool = False,
    allow_mainnet: bool = False,
    ledger: Ledger | None = None,
) -> _SendOptions:
    """Check the options of a verb."""
    validation.one_of(wait_until, "wait_until", validation.WAIT_LEVELS)
    validation.one_of(via, "via", broadcast.METHODS)
    positive("timeout_s", timeout_s)
    for name, flag in (("strict", strict), ("allow_mainnet", allow_mainnet)):
        if not isinstance(flag, bool):
            raise InvalidRequestError.refuse(name, flag, "True or False")
    if strict and (via == "broadcast_tx_async" or wait_until == "NONE"):
        # A refusal that goes unnoticed would block every later nonce of the key.
        msg = (
            'strict=True needs a broadcast that reports refusals: use via="send_tx" and a '
            'wait_until other than "NONE"'
        )
        raise InvalidRequestError(msg, field="strict", value=True)
    ledger = client.current(ledger)
    signer = find_signer(signer_id, key, ledger)
    return _SendOptions(ledger, signer, wait_until, timeout_s, via, strict, allow_mainnet)


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
@seals_key
def transfer(
    receiver_id: str, amount: int | str, *, dry_run: bool = False, **options: Unpack[Options]
) -> Submission | pd.DataFrame:
    """
    Send NEAR to an account.

    Parameters
    ----------
    receiver_id
        The account that receives it.
    amount
        The amount: ``"0.1 NEAR"``, ``"1 yocto"``, or an integer of yoctoNEAR, which
        issues a warning if it is from 1 to 10**15 - 1.
    dry_run
        Return what would be sent, with an upper bound of its cost, and send nothing.
    **options
        See `ledgerkit.sending.verbs.Options`: ``signer_id``, ``key``, ``wait_until``,
        ``timeout_s``, ``via``, ``strict``, ``allow_mainnet``, ``ledger``.

    Returns
    -------
    submission
        The transaction at the level of `wait_until`, or at the last level reached within
        `timeout_s`; with `dry_run` a frame of one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, the signer's key is unknown, or mainnet is not
        allowed. Nothing is signed or sent.
    InvalidTransactionError
        If the ledger refuses the transaction; the subclass states the reason.
    LedgerError
        If a request failed. If it was the sending, `remedy` states how to resume.

    Notes
    -----
    Source: status, query view_access_key and block before signing; the method of `via`; then
    EXPERIMENTAL_tx_status, and block for heights and times. A dry run sends nothing, and reads
    gas_price and EXPERIMENTAL_protocol_config.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> sent = lk.transfer("bob.near", "2.5 NEAR", signer_id="alice.near")
    >>> sent.stage, sent.fully_succeeded
    ('first_receipt_succeeded', True)
    >>> sent.wait().stage
    'final'
    """
    return _run([Transfer(amounts.parse_near(amount))], receiver_id, options, dry_run=dry_run)


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
@seals_key
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
    Call a change method of a contract in a transaction; `view` calls view methods.

    Parameters
    ----------
    contract_id
        The contract's account.
    method_name
        The method.
    args
        Its arguments: any JSON value, or bytes, sent unchanged; None is ``{}``.
    gas
        The attached gas: ``"30 Tgas"``, or an integer of gas.
    deposit
        The attached NEAR: ``"0.1 NEAR"``, ``"1 yocto"``, or an integer of yoctoNEAR, which
        issues a warning if it is from 1 to 10**15 - 1.
    dry_run
        Return what would be sent, with an upper bound of its cost, and send nothing.
    **options
        See `ledgerkit.sending.verbs.Options`: ``signer_id``, ``key``, ``wait_until``,
        ``timeout_s``, ``via``, ``strict``, ``allow_mainnet``, ``ledger``.

    Returns
    -------
    submission
        The transaction at the level of `wait_until`, or at the last level reached within
        `timeout_s`; with `dry_run` a frame of one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, the signer's key is unknown, or mainnet is not
        allowed. Nothing is signed or sent.
    InvalidTransactionError
        If the ledger refuses the transaction; the subclass states the reason.
    LedgerError
        If a request failed. If it was the sending, `remedy` states how to resume.

    Notes
    -----
    Source: status, query view_access_key and block before signing; the method of `via`; then
    EXPERIMENTAL_tx_status, and block for heights and times. A dry run sends nothing, and reads
    gas_price and EXPERIMENTAL_protocol_config.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> alice = lk.use_signer("alice.near", ledger.world.keys()["alice.near"])
    >>> gift = {"receiver_id": "bob.near", "amount": "1000000"}
    >>> sent = lk.call("gold.near", "ft_transfer", gift, deposit="1 yocto")
    >>> sent.fully_succeeded
    True
    >>> sent.trace.headline()
    'alice.near sent 1 GOLD to bob.near.'
    """
    method = validation.method_name(method_name, "method_name")
    data = validation.json_args({} if args is None else args)
    action = FunctionCall(method, data, units.gas(gas), amounts.parse_near(deposit, "deposit"))
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
@seals_key
def send(
    receiver_id: str,
    actions: Sequence[Action],
    *,
    dry_run: bool = False,
    **options: Unpack[Options],
) -> Submission | pd.DataFrame:
    """
    Send one transaction with any actions, which are applied together or not at all.

    Parameters
    ----------
    receiver_id
        The account that receives the transaction.
    actions
        1 to 100 actions of `ledgerkit.protocol`, such as ``Transfer(1)``.
    dry_run
        Return what would be sent, with an upper bound of its cost, and send nothing.
    **options
        See `ledgerkit.sending.verbs.Options`: ``signer_id``, ``key``, ``wait_until``,
        ``timeout_s``, ``via``, ``strict``, ``allow_mainnet``, ``ledger``.

    Returns
    -------
    submission
        The transaction at the level of `wait_until`, or at the last level reached within
        `timeout_s`; with `dry_run` a frame of one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, the signer's key is unknown, or mainnet is not
        allowed. Nothing is signed or sent.
    InvalidTransactionError
        If the ledger refuses the transaction; the subclass states the reason.
    LedgerError
        If a request failed. If it was the sending, `remedy` states how to resume.

    Notes
    -----
    Source: status, query view_access_key and block before signing; the method of `via`; then
    EXPERIMENTAL_tx_status, and block for heights and times. A dry run sends nothing, and reads
    gas_price and EXPERIMENTAL_protocol_config.

    Examples
    --------
    >>> from ledgerkit import protocol, units
    >>> ledger = lk.connect("local")
    >>> actions = [protocol.CreateAccount(), protocol.Transfer(units.yocto("1 NEAR"))]
    >>> sent = lk.send("savings.alice.near", actions, signer_id="alice.near")
    >>> sent.fully_succeeded
    True
    >>> sent.trace.headline()
    'alice.near created savings.alice.near with 1 NEAR.'
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
@seals_key
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
    Add an access key to the signer's account.

    Parameters
    ----------
    public_key
        The key to add.
    receiver_id
        The only contract that the key may call; None adds a full-access key.
    method_names
        The methods that it may call; an empty list allows all.
    allowance
        The NEAR that it may spend on gas, such as ``"0.25 NEAR"`` or an integer of
        yoctoNEAR; None is no limit.
    dry_run
        Return what would be sent, with an upper bound of its cost, and send nothing.
    **options
        See `ledgerkit.sending.verbs.Options`: ``signer_id``, ``key``, ``wait_until``,
        ``timeout_s``, ``via``, ``strict``, ``allow_mainnet``, ``ledger``.

    Returns
    -------
    submission
        The transaction at the level of `wait_until`, or at the last level reached within
        `timeout_s`; with `dry_run` a frame of one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, the signer's key is unknown, or mainnet is not
        allowed. Nothing is signed or sent.
    InvalidTransactionError
        If the ledger refuses the transaction; the subclass states the reason.
    LedgerError
        If a request failed. If it was the sending, `remedy` states how to resume.

    Notes
    -----
    Source: status, query view_access_key and block before signing; the method of `via`; then
    EXPERIMENTAL_tx_status, and block for heights and times. A dry run sends nothing, and reads
    gas_price and EXPERIMENTAL_protocol_config.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> key = lk.keys("bob.near")["public_key"][0]
    >>> added = lk.add_key(
    ...     key, receiver_id="gold.near", allowance="0.25 NEAR", signer_id="alice.near"
    ... )
    >>> added.wait().fully_succeeded
    True
    >>> lk.keys("alice.near", public_key=key)[["permission", "receiver_id", "allowance"]]
         permission receiver_id                 allowance
    0  FunctionCall   gold.near  250000000000000000000000
    """
    key = checked_key(public_key)
    if receiver_id is not None:
        names = tuple(method_names) if not isinstance(method_names, str) else method_names
        limit = None if allowance is None else amounts.parse_near(allowance, "allowance")
        permission = FunctionCallPermission(
            limit, validation.account_id(receiver_id, "receiver_id"), names
        )
        return _run([AddKey(key, AccessKey(0, permission))], None, options, dry_run=dry_run)
    for name, value in (("method_names", method_names), ("allowance", allowance)):
        if value not in ((), [], None):
            msg = f"{name}= needs receiver_id=, the contract that the key may call"
            raise InvalidRequestError(msg, field=name, value=value)
    return _run([AddKey(key, AccessKey(0, FullAccess()))], None, options, dry_run=dry_run)


@overload
def delete_key(
    public_key: PublicKey | str, *, dry_run: Literal[True], **options: Unpack[Options]
) -> pd.DataFrame: ...
@overload
def delete_key(
    public_key: PublicKey | str, *, dry_run: Literal[False] = False, **options: Unpack[Options]
) -> Submission: ...
@seals_key
def delete_key(
    public_key: PublicKey | str, *, dry_run: bool = False, **options: Unpack[Options]
) -> Submission | pd.DataFrame:
    """
    Delete an access key from the signer's account.

    Parameters
    ----------
    public_key
        The key to delete.
    dry_run
        Return what would be sent, with an upper bound of its cost, and send nothing.
    **options
        See `ledgerkit.sending.verbs.Options`: ``signer_id``, ``key``, ``wait_until``,
        ``timeout_s``, ``via``, ``strict``, ``allow_mainnet``, ``ledger``.

    Returns
    -------
    submission
        The transaction at the level of `wait_until`, or at the last level reached within
        `timeout_s`; with `dry_run` a frame of one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, the signer's key is unknown, or mainnet is not
        allowed. Nothing is signed or sent.
    InvalidTransactionError
        If the ledger refuses the transaction; the subclass states the reason.
    LedgerError
        If a request failed. If it was the sending, `remedy` states how to resume.

    Notes
    -----
    Source: status, query view_access_key and block before signing; the method of `via`; then
    EXPERIMENTAL_tx_status, and block for heights and times. A dry run sends nothing, and reads
    gas_price and EXPERIMENTAL_protocol_config.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> frank = lk.keys("frank.near")
    >>> dex_key = frank.loc[frank["receiver_id"] == "dex.near", "public_key"].item()
    >>> lk.delete_key(dex_key, signer_id="frank.near", wait_until="FINAL").fully_succeeded
    True
    >>> len(frank), len(lk.keys("frank.near"))
    (4, 3)
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
@seals_key
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
        A sub-account of the signer, created by the actions of one transaction; or an
        account such as ``name.near``, created by a call of the contract at ``near``.
    public_key
        The full-access key of the new account.
    balance
        Its first balance: ``"0.1 NEAR"``, or an integer of yoctoNEAR, as for `transfer`.
    dry_run
        Return what would be sent, with an upper bound of its cost, and send nothing.
    **options
        See `ledgerkit.sending.verbs.Options`: ``signer_id``, ``key``, ``wait_until``,
        ``timeout_s``, ``via``, ``strict``, ``allow_mainnet``, ``ledger``.

    Returns
    -------
    submission
        The transaction at the level of `wait_until`, or at the last level reached within
        `timeout_s`; with `dry_run` a frame of one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, the signer's key is unknown, or mainnet is not
        allowed. Nothing is signed or sent.
    InvalidTransactionError
        If the ledger refuses the transaction; the subclass states the reason.
    LedgerError
        If a request failed. If it was the sending, `remedy` states how to resume.

    Notes
    -----
    Source: status, query view_access_key and block before signing; the method of `via`; then
    EXPERIMENTAL_tx_status, and block for heights and times. A dry run sends nothing, and reads
    gas_price and EXPERIMENTAL_protocol_config.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> alice = lk.use_signer("alice.near", ledger.world.keys()["alice.near"])
    >>> key = alice.public_key
    >>> sent = lk.create_account("garden.near", public_key=key, balance="2 NEAR")
    >>> sent.trace.headline()
    'alice.near created garden.near with 2 NEAR through near.'
    """
    name = AccountId(new_account_id, "new_account_id")
    key, amount = checked_key(public_key), amounts.parse_near(balance, "balance")
    checked = _check_options(**options)
    signer_id = checked.signer.account_id
    actions: list[Action]
    if name.parent == signer_id:
        receiver_id = name
        actions = [CreateAccount(), Transfer(amount), AddKey(key, AccessKey(0, FullAccess()))]
    elif name.parent is not None and name.parent.is_top_level:
        receiver_id = name.parent
        args = validation.json_args({"new_account_id": str(name), "new_public_key": str(key)})
        actions = [FunctionCall("create_account", args, _CREATION_GAS, amount)]
    else:
        rule = f"a sub-account of {signer_id}, or of a top-level account such as near"
        raise InvalidRequestError.refuse("new_account_id", str(name), rule)
    return _send_or_dry_run(
        checked, str(receiver_id), limits.check_actions(actions), dry_run=dry_run
    )


@overload
def deploy(
    code: bytes | PathLike[str] | CryptoHash | AccountId,
    *,
    account_id: str | None = None,
    publish: Literal["hash", "account_id"] | None = None,
    dry_run: Literal[True],
    **options: Unpack[Options],
) -> pd.DataFrame: ...
@overload
def deploy(
    code: bytes | PathLike[str] | CryptoHash | AccountId,
    *,
    account_id: str | None = None,
    publish: Literal["hash", "account_id"] | None = None,
    dry_run: Literal[False] = False,
    **options: Unpack[Options],
) -> Submission: ...
@seals_key
def deploy(
    code: bytes | PathLike[str] | CryptoHash | AccountId,
    *,
    account_id: str | None = None,
    publish: Literal["hash", "account_id"] | None = None,
    dry_run: bool = False,
    **options: Unpack[Options],
) -> Submission | pd.DataFrame:
    """
    Deploy a contract to the signer's account, or publish it as a global contract.

    Parameters
    ----------
    code
        The compiled contract: bytes, or a `pathlib.Path` to its ``.wasm`` file. Or a global
        contract that the account is to run: a `CryptoHash`, whose code never changes, or the
        `AccountId` of its owner, both of `ledgerkit.protocol`.
    account_id
        The account to deploy to, as a check: an account other than the signer's is an
        error.
    publish
        Publish the code as a global contract, for accounts to run by its ``"hash"`` or by
        the signer's ``"account_id"``; the signer itself does not run it. None deploys it.
    dry_run
        Return what would be sent, with an upper bound of its cost, and send nothing.
    **options
        See `ledgerkit.sending.verbs.Options`: ``signer_id``, ``key``, ``wait_until``,
        ``timeout_s``, ``via``, ``strict``, ``allow_mainnet``, ``ledger``.

    Returns
    -------
    submission
        The transaction at the level of `wait_until`, or at the last level reached within
        `timeout_s`; with `dry_run` a frame of one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, the signer's key is unknown, or mainnet is not
        allowed. Nothing is signed or sent.
    InvalidTransactionError
        If the ledger refuses the transaction; the subclass states the reason.
    LedgerError
        If a request failed. If it was the sending, `remedy` states how to resume.

    Notes
    -----
    An account's balance must cover 10**19 yoctoNEAR for each byte of its code: 1 NEAR for 100 kB.
    Publishing burns ten times as much, once; an account that runs a global contract stores only
    its hash or its owner's id.

    Source: status, query view_access_key and block before signing; the method of `via`; then
    EXPERIMENTAL_tx_status, and block for heights and times. A dry run sends nothing, and reads
    gas_price and EXPERIMENTAL_protocol_config.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> code = lk.contract_code("counter.near")
    >>> lk.deploy(code, signer_id="alice.near", wait_until="FINAL").fully_succeeded
    True
    >>> lk.contract_code("alice.near") == code
    True

    A contract that many accounts run is published once:

    >>> from ledgerkit.protocol import AccountId
    >>> published = lk.deploy(code, publish="account_id", signer_id="alice.near")
    >>> published.wait().fully_succeeded
    True
    >>> lk.deploy(AccountId("alice.near"), signer_id="frank.near").wait().fully_succeeded
    True
    """
    action = deploy_action(code, publish)
    checked = _check_options(**options)
    signer_id = checked.signer.account_id
    if account_id not in (None, signer_id):
        rule = f"the signer's own account, {signer_id}"
        raise InvalidRequestError.refuse("account_id", account_id, rule)
    actions = limits.check_actions([action])
    return _send_or_dry_run(checked, str(signer_id), actions, dry_run=dry_run)


# Delegated actions ------------------------------------------------------------------------


@seals_key
def delegate(
    receiver_id: str,
    actions: Sequence[Action],
    *,
    max_block_height: int | None = None,
    **options: Unpack[Options],
) -> Delegate:
    """
    Sign a delegate action, which a relayer sends and pays for (NEP-366).

    The action is not sent. It has the next nonce of the key, and becomes invalid if a later
    transaction of the key is applied first.

    Parameters
    ----------
    receiver_id
        The account that receives the actions.
    actions
        Actions of `ledgerkit.protocol`, without a `Delegate`.
    max_block_height
        The last block at which it is valid; None is 1,200 blocks above the final one.
    **options
        See `ledgerkit.sending.verbs.Options`: ``signer_id``, ``key``,
        ``allow_mainnet``, ``ledger``.

    Returns
    -------
    delegate
        The signed action, for `relay` or another relayer.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, the signer's key is unknown, or mainnet is not
        allowed. Nothing is signed.
    LedgerError
        If a request failed.

    Notes
    -----
    Source: status, query view_access_key and block. Nothing is sent to the ledger.

    Examples
    --------
    >>> from ledgerkit import protocol, units
    >>> ledger = lk.connect("local")
    >>> gift = [protocol.Transfer(units.yocto("1 NEAR"))]
    >>> signed = lk.delegate("bob.near", gift, signer_id="alice.near")
    >>> signed.verify(), signed.delegate_action.sender_id
    (True, AccountId('alice.near'))
    """
    checked = _check_options(**options)
    actions = limits.check_actions(list(actions))
    name, public_key = checked.signer.account_id, checked.signer.public_key
    last = 0 if max_block_height is None else validation.block_height(max_block_height)
    # Built once with nonce 0, so that malformed arguments fail before the key is read.
    DelegateAction(name, receiver_id, actions, 0, last, public_key)
    queues, read = _open_queues(checked)
    queue = queues.ordinary
    with queue.turn():
        anchor = _anchor(checked, queues, queue, read)
        if anchor is None:
            rule = "an access key that is no gas key, to sign a delegate action"
            raise InvalidRequestError.refuse("key", str(public_key), rule)
        nonce = queue.reserve()
    last = last or anchor.height + _DELEGATION_BLOCKS
    action = DelegateAction(name, receiver_id, actions, nonce, last, public_key)
    return action.sign(checked.signer.key)


@overload
def relay(
    delegate: Delegate, *, dry_run: Literal[True], **options: Unpack[Options]
) -> pd.DataFrame: ...
@overload
def relay(
    delegate: Delegate, *, dry_run: Literal[False] = False, **options: Unpack[Options]
) -> Submission: ...
@seals_key
def relay(
    delegate: Delegate, *, dry_run: bool = False, **options: Unpack[Options]
) -> Submission | pd.DataFrame:
    """
    Send and pay for a delegate action that another account signed (NEP-366).

    Parameters
    ----------
    delegate
        The signed delegate action, from `delegate` or another program.
    dry_run
        Return what would be sent, with an upper bound of its cost, and send nothing.
    **options
        See `ledgerkit.sending.verbs.Options`: ``signer_id``, ``key``, ``wait_until``,
        ``timeout_s``, ``via``, ``strict``, ``allow_mainnet``, ``ledger``.

    Returns
    -------
    submission
        The transaction at the level of `wait_until`, or at the last level reached within
        `timeout_s`; with `dry_run` a frame of one row, typed as `schema("dry_run")`.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, the delegate action's signature does not match, the
        signer's key is unknown, or mainnet is not allowed. Nothing is signed or sent.
    InvalidTransactionError
        If the ledger refuses the transaction; the subclass states the reason.
    LedgerError
        If a request failed. If it was the sending, `remedy` states how to resume.

    Notes
    -----
    Source: status, query view_access_key and block before signing; the method of `via`; then
    EXPERIMENTAL_tx_status, and block for heights and times. A dry run sends nothing, and reads
    gas_price and EXPERIMENTAL_protocol_config.

    Examples
    --------
    >>> from ledgerkit import protocol, units
    >>> ledger = lk.connect("local")
    >>> gift = [protocol.Transfer(units.yocto("1 NEAR"))]
    >>> signed = lk.delegate("bob.near", gift, signer_id="alice.near")
    >>> sent = lk.relay(signed, signer_id="relay.near")
    >>> sent.trace.headline()
    'alice.near sent 1 NEAR to bob.near, relayed by relay.near.'
    """
    if not isinstance(delegate, Delegate):
        raise InvalidRequestError.refuse("delegate", delegate, "a Delegate, as delegate() returns")
    if not delegate.verify():
        public_key = delegate.delegate_action.public_key
        msg = f"the signature of the delegate action does not match its key {public_key}"
        raise InvalidRequestError(msg, remedy="Sign it again.", field="delegate")
    sender_id = str(delegate.delegate_action.sender_id)
    return _run([delegate], sender_id, options, dry_run=dry_run)


# Tracking ---------------------------------------------------------------------------------


def track(
    tx_hash: str, sender: str, *, timeout_s: float | None = 120.0, ledger: Ledger | None = None
) -> Submission:
    """
    Wait until a transaction is final or dropped.

    Parameters
    ----------
    tx_hash
        The transaction's hash; it may have been sent by another program.
    sender
        The account that signed it.
    timeout_s
        The longest wait in seconds; None waits without a limit. A timeout is not an error.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    submission
        The transaction; its `stage` is ``unknown`` if no node knows it.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed. Nothing is sent.
    LedgerError
        If the node refuses the requests, such as for a wrong API key.

    Notes
    -----
    Source: EXPERIMENTAL_tx_status; heights and times from block.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> alice = lk.use_signer("alice.near", ledger.world.keys()["alice.near"])
    >>> sent = lk.transfer("bob.near", "1 NEAR", wait_until="INCLUDED")
    >>> sent.stage
    'included'
    >>> lk.track(sent.tx_hash, "alice.near").stage
    'final'
    """
    if timeout_s is not None:
        positive("timeout_s", timeout_s)
    return _recall(tx_hash, sender, ledger).wait("final", timeout_s)


def resume(tx_hash: str, sender: str, *, ledger: Ledger | None = None) -> Submission:
    """
    Return the submission of a transaction whose sending was interrupted.

    Only its status is read. A transaction that was sent by the same `Ledger` still has its
    signed bytes, so `wait` can send them again.

    Parameters
    ----------
    tx_hash
        The transaction's hash.
    sender
        The account that signed it.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    submission
        The transaction; call its `wait` to continue.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed. Nothing is sent.
    LedgerError
        If the status could not be read.

    Notes
    -----
    Source: EXPERIMENTAL_tx_status; heights and times from block.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> alice = lk.use_signer("alice.near", ledger.world.keys()["alice.near"])
    >>> sent = lk.transfer("bob.near", "1 NEAR", wait_until="NONE")
    >>> resumed = lk.resume(sent.tx_hash, "alice.near")
    >>> resumed.stage, resumed.wait().stage
    ('first_receipt_succeeded', 'final')
    """
    return _recall(tx_hash, sender, ledger).refresh()


def _recall(tx_hash: str, sender: str, ledger: Ledger | None) -> Submission:
    """Check hash and sender, and return the submission."""
    tx_hash = validation.crypto_hash(tx_hash, "tx_hash")
    signer_id = validation.account_id(sender, "sender")
    return recall(client.current(ledger), tx_hash, signer_id)


# Signing and sending ----------------------------------------------------------------------


def _run(
    actions: Sequence[Action], receiver_id: str | None, options: Options, *, dry_run: bool
) -> Submission | pd.DataFrame:
    """Check actions and options, then send or dry-run; a receiver of None is the signer."""
    actions = limits.check_actions(list(actions) if isinstance(actions, Sequence) else actions)
    receiver = None if receiver_id is None else validation.account_id(receiver_id, "receiver_id")
    checked = _check_options(**options)
    return _send_or_dry_run(
        checked, receiver or str(checked.signer.account_id), actions, dry_run=dry_run
    )


def _send_or_dry_run(
    options: _SendOptions, receiver_id: str, actions: Sequence[Action], *, dry_run: bool
) -> Submission | pd.DataFrame:
    """Check the transaction's size, and send it or return its dry run."""
    limits.check_size(_transaction(options, receiver_id, actions, _NOTHING_READ))
    return (_dry_run if dry_run else _send)(options, receiver_id, actions)


class _Position(NamedTuple):
    """The nonce of a transaction, and the block that it references."""

    nonce: int
    nonce_index: int | None  # of a gas key
    block_hash: CryptoHash


_NOTHING_READ = _Position(0, None, CryptoHash(bytes(32)))


def _transaction(
    options: _SendOptions, receiver_id: str, actions: Sequence[Action], position: _Position
) -> Transaction:
    """Build a transaction; only version 1 has a strict nonce mode and the nonces of a gas key."""
    more: dict[str, Any] = {}
    if options.strict or position.nonce_index is not None:
        mode = "strict" if options.strict else "monotonic"
        more = {"version": 1, "nonce_mode": mode, "nonce_index": position.nonce_index}
    return Transaction(
        options.signer.account_id,
        options.signer.public_key,
        position.nonce,
        receiver_id,
        position.block_hash,
        tuple(actions),
        **more,
    )


def _send(options: _SendOptions, receiver_id: str, actions: Sequence[Action]) -> Submission:
    """Send a transaction, and wait for its level."""
    queues, read = _open_queues(options)
    submission = _wait(options, _sign_and_send(options, queues, receiver_id, actions, read))
    # Signed again at most once, and only when the first bytes can no longer land: two valid
    # signatures of one intent could both be applied.
    if submission.tracker.can_sign_again():
        submission = _wait(options, _sign_and_send(options, queues, receiver_id, actions))
        submission.tracker.can_sign_again()  # finds out whether refused bytes were included
    if submission.stage == "rejected":
        submission.raise_for_status()
    return _wait(options, submission)


def _wait(options: _SendOptions, submission: Submission) -> Submission:
    """Wait for the level of the options, unless the transaction was refused."""
    if options.wait_until != "NONE" and submission.tracker.refusal is None:
        wait_for_level(submission, options.wait_until, options.timeout_s)
    return submission


def _sign_and_send(
    options: _SendOptions,
    queues: KeyQueues,
    receiver_id: str,
    actions: Sequence[Action],
    read: tuple[AccessKeyView, Anchor] | None = None,
) -> Submission:
    """Sign with the next nonce and send, in turn with other senders of the same nonces."""
    submission = None
    while submission is None:  # twice, if the key turns out to be a gas key
        queue = queues.pick()
        submission = _send_in_turn(options, queues, queue, receiver_id, actions, read=read)
    return submission


def _send_in_turn(
    options: _SendOptions,
    queues: KeyQueues,
    queue: NonceQueue,
    receiver_id: str,
    actions: Sequence[Action],
    *,
    read: tuple[AccessKeyView, Anchor] | None,
) -> Submission | None:
    """Sign and send when it is this sender's turn; None if the queue does not fit the key."""
    level = "NONE" if options.wait_until == "NONE" else "INCLUDED"
    with queue.turn():
        if options.strict:
            _resend_unconfirmed(options, queue)
        anchor = _anchor(options, queues, queue, read)
        if anchor is None:
            return None
        submission, signed = _sign(options, queue, anchor, receiver_id, actions)
        # send_tx returns after a block, and holding the turn for so long would delay the other
        # senders. Only the order of nonces needs the turn, so the bytes are first broadcast.
        in_one_step = options.strict or queue.has_one_sender
        first_via = options.via if in_one_step else "broadcast_tx_async"
        submission.tracker.send(signed, first_via, level)
    if not in_one_step and level != "NONE" and options.via != "broadcast_tx_async":
        submission.tracker.send(signed, options.via, level)
        submission.tracker.confirm_refusal()
    return submission


def _sign(
    options: _SendOptions,
    queue: NonceQueue,
    anchor: Anchor,
    receiver_id: str,
    actions: Sequence[Action],
) -> tuple[Submission, SignedTransaction]:
    """Sign with the next nonce, and store the submission for `resume`."""
    nonce = queue.reserve(strict=options.strict)
    position = _Position(nonce, queue.nonce_index, anchor.block_hash)
    tx = _transaction(options, receiver_id, actions, position)
    signed = tx.sign(options.signer.key)
    queue.add_signed(signed)
    tracker = Tracker(
        options.ledger,
        str(signed.hash),
        str(tx.signer_id),
        signed=signed,
        anchor_height=anchor.height,
        queue=queue,
    )
    submission = Submission(tracker)
    remember(submission)
    return submission, signed


def _resend_unconfirmed(options: _SendOptions, queue: NonceQueue) -> None:
    """Send unconfirmed bytes again or release their nonces: a strict nonce allows no gap."""
    for signed in queue.unconfirmed():
        nonce = signed.transaction.nonce
        try:
            broadcast.send_signed(options.ledger, signed, "send_tx", "INCLUDED")
        except (TransactionTimeoutError, RequestRoutedError):
            continue
        except InvalidTransactionError:
            queue.release(nonce)
        else:
            queue.mark_used(nonce)


# Reading before sending -------------------------------------------------------------------


def _known_chain(ledger: Ledger) -> dict[str, _Chain]:
    """Return the chain's identity if it has been read; otherwise an empty dict to add it to."""
    known: dict[str, _Chain] = ledger.memo("chain", dict)
    return known


def _read_with_chain(ledger: Ledger, requests: Sequence[Call[Any]]) -> list[Any]:
    """Send calls concurrently, the first time with one for the chain's identity."""
    known = _known_chain(ledger)
    is_first = not known  # read once: another thread may add it meanwhile
    if is_first:
        requests = [calls.rpc("status", [], _Chain, request="the node's status"), *requests]
    answers = ledger.send_many(requests, on_error="collect", progress=False) if requests else []
    if is_first:
        known["chain"] = _value(answers.pop(0))
    return answers


def _value(answer: Any) -> Any:
    """Return an answer, or raise it if it is an error."""
    if isinstance(answer, LedgerError):
        raise answer
    return answer


def _chain(ledger: Ledger) -> _Chain:
    """Read the chain's identity, once for each ledger."""
    _read_with_chain(ledger, [])
    return _known_chain(ledger)["chain"]


def _open_queues(
    options: _SendOptions,
) -> tuple[KeyQueues, tuple[AccessKeyView, Anchor] | None]:
    """Check the chain, and return the key's queues; the first time, also the key and a block."""
    is_first = not _known_chain(options.ledger)
    answers = _read_with_chain(options.ledger, _key_and_block_calls(options) if is_first else [])
    _check_mainnet(options)
    queues = _key_queues(options)
    return queues, _key_and_block(queues, answers) if answers else None


def _key_queues(options: _SendOptions) -> KeyQueues:
    """Return the queues of the key on this chain, shared by all `Ledger` objects on it."""
    chain = _chain(options.ledger)
    # Embedded worlds may share a genesis, and an old node does not send its genesis hash.
    owner: str | nonces.Memo = broadcast.embedded_world(options.ledger) or options.ledger
    is_live = options.ledger.replay is None  # a recording has the nonces that it was made with
    if owner is options.ledger and chain.genesis_hash and is_live:
        owner = f"{chain.chain_id} {chain.genesis_hash}"
    return nonces.key_queues(owner, str(options.signer.account_id), str(options.signer.public_key))


def _anchor(
    options: _SendOptions,
    queues: KeyQueues,
    queue: NonceQueue,
    read: tuple[AccessKeyView, Anchor] | None,
) -> Anchor | None:
    """Return the block to reference; None if the key turns out to be one of other queues."""
    anchor = queue.anchor
    if anchor is None:  # the last block is old: read the key's nonce and a new one
        key, anchor = read or _key_and_block(queues, _read_key_and_block(options))
        if not queues.fits(queue):
            return None
        queue.update(_last_nonce(options, key, queue), anchor)
    return anchor


def _read_key_and_block(options: _SendOptions) -> list[Any]:
    """Read the key and a final block; failed calls have their error in their place."""
    return _read_with_chain(options.ledger, _key_and_block_calls(options))


def _key_and_block_calls(options: _SendOptions) -> list[Call[Any]]:
    """Build the calls for the key and a final block."""
    name, public_key = str(options.signer.account_id), str(options.signer.public_key)
    return [
        rpc.view_access_key(name, public_key, validation.block_reference("optimistic")),
        rpc.block(validation.block_reference("final")),
    ]


def _key_and_block(queues: KeyQueues, answers: Sequence[Any]) -> tuple[AccessKeyView, Anchor]:
    """Return the key and the block that were read; store whether it is a gas key."""
    key, block = map(_value, answers)
    queues.num_nonces = access_keys.num_nonces(key.permission)
    return key, Anchor(block.header.height, CryptoHash(block.header.hash))


def _last_nonce(options: _SendOptions, key: AccessKeyView, queue: NonceQueue) -> int:
    """Return the last nonce of a queue; those of a gas key are read on their own."""
    if queue.nonce_index is None:
        return key.nonce
    name, public_key = str(options.signer.account_id), str(options.signer.public_key)
    head = validation.block_reference("optimistic")
    return access_keys.read_nonce(options.ledger, name, public_key, queue.nonce_index, head)


def _check_mainnet(options: _SendOptions) -> None:
    """Raise if the node's chain is the public mainnet and `allow_mainnet` is not True."""
    if _chain(options.ledger).chain_id == MAINNET and not options.allow_mainnet:
        msg = "this ledger is the public mainnet, where transactions move real NEAR"
        remedy = "Pass allow_mainnet=True to sign for it, or connect to another network."
        raise InvalidRequestError(msg, remedy=remedy, field="allow_mainnet", value=False)


def _dry_run(options: _SendOptions, receiver_id: str, actions: Sequence[Action]) -> pd.DataFrame:
    """Tabulate the transaction that would be signed."""
    final = validation.block_reference("final")
    requests = [*_key_and_block_calls(options), rpc.gas_price(None), rpc.protocol_config(final)]
    *answers, price, config = _read_with_chain(options.ledger, requests)
    queues = _key_queues(options)
    key, anchor = _key_and_block(queues, answers)
    queue = queues.pick()
    nonce = queue.peek(_last_nonce(options, key, queue))
    position = _Position(nonce, queue.nonce_index, anchor.block_hash)
    tx = _transaction(options, receiver_id, actions, position)
    pays_itself = queue.nonce_index is not None
    if isinstance(config, RpcMethodNotFoundError):  # an older node
        config = None
    gas_price = parse_amount(_value(price).gas_price, "$.result.gas_price")
    row = {
        "tx_hash": str(tx.hash),
        "signer_id": str(tx.signer_id),
        "receiver_id": str(tx.receiver_id),
        "actions": "+".join(action.name for action in tx.actions),
        "nonce": nonce,
        "size": limits.check_size(tx),
        "cost_bound": fees.cost_bound(tx, _value(config), gas_price),
        "gas_attached": attached_gas(tx.actions),
        "deposit": deposits(tx.actions),
        "block_hash": str(tx.block_hash),
        "expires_at_height": anchor.height + broadcast.validity_in(config),
        "nonce_index": queue.nonce_index,
        "gas_payer": str(tx.public_key) if pays_itself else str(tx.signer_id),
    }
    source = "view_access_key, gas_price, EXPERIMENTAL_protocol_config"
    attrs = provenance(options.ledger, source)
    return build.build_frame("dry_run", {name: [value] for name, value in row.items()}, attrs=attrs)
