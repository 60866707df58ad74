"""
Verbs that change the chain's state: each signs one transaction, sends it and tracks it.

Arguments are checked first, without a request. Then the node's chain id is read, since
nothing is signed for mainnet unless allowed. Then the transaction is signed with the key's
next nonce and sent, in turn with other senders of the key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    ParamSpec,
    Required,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from ledgerkit import client, validation
from ledgerkit.docstrings import complete
from ledgerkit.errors import DecodeError, InvalidRequestError
from ledgerkit.protocol import (
    AccessKey,
    AccountId,
    AddKey,
    CreateAccount,
    CryptoHash,
    Delegate,
    DeleteKey,
    FullAccess,
    FunctionCall,
    FunctionCallPermission,
    PublicKey,
    SecretKey,
    Transfer,
)
from ledgerkit.protocol.types import public_key as checked_key
from ledgerkit.sending import arguments, broadcast
from ledgerkit.sending.signers import Signer, find_signer, seals_key
from ledgerkit.sending.signing import Draft, SendOptions, sign_delegate
from ledgerkit.sending.submission import Submission, recall
from ledgerkit.transport.settings import positive
from ledgerkit.verbs.declaring import with_options

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.ledger import Ledger
    from ledgerkit.protocol import Action

P = ParamSpec("P")
T = TypeVar("T")

_CREATION_GAS = 80 * 10**12  # the contract of a top-level account needs a callback


class Options(TypedDict, total=False):
    """The options of a verb that sends, for its overloads."""

    signer_id: str | None
    key: SecretKey | str | Signer | None
    wait_until: str
    timeout_s: float
    via: str
    strict: bool
    allow_mainnet: bool
    ledger: Ledger | None


class _DryRun(Options):
    dry_run: Required[Literal[True]]


class _Sending(Options, total=False):
    dry_run: Literal[False]


def send_options(
    *,
    dry_run: bool = False,
    signer_id: str | None = None,
    key: SecretKey | str | Signer | None = None,
    wait_until: str = "EXECUTED_OPTIMISTIC",
    timeout_s: float = 60.0,
    via: str = "send_tx",
    strict: bool = False,
    allow_mainnet: bool = False,
    ledger: Ledger | None = None,
) -> SendOptions:
    """Check the options that all verbs that send have."""
    validation.one_of(wait_until, "wait_until", validation.WAIT_LEVELS)
    validation.one_of(via, "via", broadcast.METHODS)
    positive("timeout_s", timeout_s)
    is_strict = validation.flag(strict, "strict")
    is_allowed = validation.flag(allow_mainnet, "allow_mainnet")
    if is_strict and (via == "broadcast_tx_async" or wait_until == "NONE"):
        # A refusal that goes unnoticed would block every later nonce of the key.
        msg = (
            'strict=True needs a broadcast that reports refusals: use via="send_tx" and a '
            'wait_until other than "NONE"'
        )
        raise InvalidRequestError(msg, field="strict", value=True)
    ledger = client.current(ledger)
    signer = find_signer(signer_id, key, ledger)
    is_dry = validation.flag(dry_run, "dry_run")
    return SendOptions(ledger, signer, wait_until, timeout_s, via, is_strict, is_allowed, is_dry)


# Sections of the docstrings of all verbs that send.
_PARAMETERS = """
dry_run
    Return what would be sent, with an upper bound of its cost, and send nothing. A warning
    says if the signer cannot pay for it, or if a deletion would lose the balance.
signer_id
    The account that signs. None is the session's signer, set by `use_signer`, or the
    environment's. Accounts of the embedded ledger have published keys, which are used if no
    other key is passed.
key
    The signer's `SecretKey`, the text of one, or a `Signer`.
wait_until
    The level at which the verb returns: NONE, INCLUDED, EXECUTED_OPTIMISTIC, INCLUDED_FINAL,
    EXECUTED or FINAL.
timeout_s
    The longest wait for that level in seconds, with the time that the sending takes. A timeout
    is not an error.
via
    The RPC method: ``send_tx``, ``broadcast_tx_async`` or ``broadcast_tx_commit``. While several
    senders share a key, their transactions are first sent by ``broadcast_tx_async``, in the
    order of their nonces.
strict
    If True, the transaction is valid with the very next nonce of its key only. Such
    transactions are sent one after the other, so that no nonce is left out.
allow_mainnet
    Must be True to sign for the public mainnet.
ledger
    The ledger to send to; None is the session's default."""
_RETURNS = """\
submission
    The transaction at the level of `wait_until`, or at the last level reached within
    `timeout_s`; with `dry_run` a frame of one row, typed as `schema("dry_run")`."""
_INVALID = """\
InvalidRequestError
    If an argument is malformed, the signer's key is unknown, or mainnet is not
    allowed. Nothing is signed or sent."""
_REFUSED = """
InvalidTransactionError
    If the ledger refuses the transaction; the subclass states the reason.
LedgerError
    If a request failed. If it was the sending, `remedy` states how to resume."""
_SOURCE = """\
Source: status, query view_access_key and block before signing; the method of `via`; then
tx_status, on older nodes EXPERIMENTAL_tx_status, and block for heights and times. A dry run sends
nothing, and reads query view_account, gas_price and EXPERIMENTAL_protocol_config."""


def sends(verb: Callable[P, T]) -> Callable[P, T]:
    """Add the options of sending to a verb and its docstring, and keep the text of keys from it."""

    def add(sections: dict[str, str]) -> None:
        notes = [sections["Notes"]] if "Notes" in sections else []
        sections["Parameters"] += _PARAMETERS
        sections["Returns"] = _RETURNS
        sections["Raises"] = sections.get("Raises", _INVALID) + _REFUSED
        sections["Notes"] = "\n\n".join([*notes, _SOURCE])

    return seals_key(complete(with_options(send_options)(verb), add))


# Transfers and calls ----------------------------------------------------------------------


@overload
def transfer(receiver_id: str, amount: int | str, **options: Unpack[_DryRun]) -> pd.DataFrame: ...
@overload
def transfer(receiver_id: str, amount: int | str, **options: Unpack[_Sending]) -> Submission: ...
@sends
def transfer(receiver_id: str, amount: int | str, **options: Any) -> Submission | pd.DataFrame:
    """
    Send NEAR to an account.

    Parameters
    ----------
    receiver_id
        The account that receives it.
    amount
        The amount: ``"0.1 NEAR"``, ``"1 yocto"``, or an integer of yoctoNEAR, which
        issues a warning if it is from 1 to 10**15 - 1.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> sent = lk.transfer("bob.near", "2.5 NEAR", signer_id="alice.near")
    >>> sent.stage, sent.fully_succeeded
    ('first_receipt_succeeded', True)
    >>> sent.wait().stage
    'final'
    """
    return _run([Transfer(arguments.parse_near(amount))], receiver_id, send_options(**options))


@overload
def call(
    contract_id: str,
    method_name: str,
    args: Any = None,
    *,
    gas: int | str = "30 Tgas",
    deposit: int | str = 0,
    **options: Unpack[_DryRun],
) -> pd.DataFrame: ...
@overload
def call(
    contract_id: str,
    method_name: str,
    args: Any = None,
    *,
    gas: int | str = "30 Tgas",
    deposit: int | str = 0,
    **options: Unpack[_Sending],
) -> Submission: ...
@sends
def call(
    contract_id: str,
    method_name: str,
    args: Any = None,
    *,
    gas: int | str = "30 Tgas",
    deposit: int | str = 0,
    **options: Any,
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
        The attached gas: ``"30 Tgas"``, or an integer of gas, which issues a warning if it is
        from 1 to 10**9 - 1.
    deposit
        The attached NEAR: ``"0.1 NEAR"``, ``"1 yocto"``, or an integer of yoctoNEAR, which
        issues a warning if it is from 1 to 10**15 - 1.

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
    action = FunctionCall(
        method, data, arguments.parse_gas(gas), arguments.parse_near(deposit, "deposit")
    )
    receiver_id = validation.account_id(contract_id, "contract_id")
    return _run([action], receiver_id, send_options(**options))


@overload
def send(
    receiver_id: str, actions: Sequence[Action], **options: Unpack[_DryRun]
) -> pd.DataFrame: ...
@overload
def send(
    receiver_id: str, actions: Sequence[Action], **options: Unpack[_Sending]
) -> Submission: ...
@sends
def send(receiver_id: str, actions: Sequence[Action], **options: Any) -> Submission | pd.DataFrame:
    """
    Send one transaction with any actions, which are applied together or not at all.

    Parameters
    ----------
    receiver_id
        The account that receives the transaction.
    actions
        1 to 100 actions of `ledgerkit.protocol`, such as ``Transfer(1)``.

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
    return _run(actions, receiver_id, send_options(**options))


# Keys and accounts ------------------------------------------------------------------------


@overload
def add_key(
    public_key: PublicKey | str,
    *,
    receiver_id: str | None = None,
    method_names: Sequence[str] = (),
    allowance: int | str | None = None,
    **options: Unpack[_DryRun],
) -> pd.DataFrame: ...
@overload
def add_key(
    public_key: PublicKey | str,
    *,
    receiver_id: str | None = None,
    method_names: Sequence[str] = (),
    allowance: int | str | None = None,
    **options: Unpack[_Sending],
) -> Submission: ...
@sends
def add_key(
    public_key: PublicKey | str,
    *,
    receiver_id: str | None = None,
    method_names: Sequence[str] = (),
    allowance: int | str | None = None,
    **options: Any,
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
    new_key = checked_key(public_key)
    permission: FullAccess | FunctionCallPermission = FullAccess()
    if receiver_id is not None:
        names = tuple(method_names) if not isinstance(method_names, str) else method_names
        limit = None if allowance is None else arguments.parse_near(allowance, "allowance")
        contract_id = validation.account_id(receiver_id, "receiver_id")
        permission = FunctionCallPermission(limit, contract_id, names)
    else:
        for name, value in (("method_names", method_names), ("allowance", allowance)):
            if value not in ((), [], None):
                msg = f"{name}= needs receiver_id=, the contract that the key may call"
                raise InvalidRequestError(msg, field=name, value=value)
    return _run([AddKey(new_key, AccessKey(0, permission))], None, send_options(**options))


@overload
def delete_key(public_key: PublicKey | str, **options: Unpack[_DryRun]) -> pd.DataFrame: ...
@overload
def delete_key(public_key: PublicKey | str, **options: Unpack[_Sending]) -> Submission: ...
@sends
def delete_key(public_key: PublicKey | str, **options: Any) -> Submission | pd.DataFrame:
    """
    Delete an access key from the signer's account.

    Parameters
    ----------
    public_key
        The key to delete.

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
    return _run([DeleteKey(checked_key(public_key))], None, send_options(**options))


@overload
def create_account(
    new_account_id: str,
    *,
    public_key: PublicKey | str,
    balance: int | str,
    **options: Unpack[_DryRun],
) -> pd.DataFrame: ...
@overload
def create_account(
    new_account_id: str,
    *,
    public_key: PublicKey | str,
    balance: int | str,
    **options: Unpack[_Sending],
) -> Submission: ...
@sends
def create_account(
    new_account_id: str,
    *,
    public_key: PublicKey | str,
    balance: int | str,
    **options: Any,
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
    new_key, amount = checked_key(public_key), arguments.parse_near(balance, "balance")
    checked = send_options(**options)
    own_id = checked.signer.account_id
    actions: list[Action]
    if name.parent == own_id:
        receiver_id = name
        actions = [CreateAccount(), Transfer(amount), AddKey(new_key, AccessKey(0, FullAccess()))]
    elif name.parent is not None and name.parent.is_top_level:
        receiver_id = name.parent
        args = validation.json_args({"new_account_id": str(name), "new_public_key": str(new_key)})
        actions = [FunctionCall("create_account", args, _CREATION_GAS, amount)]
    else:
        rule = f"a sub-account of {own_id}, or of a top-level account such as near"
        raise InvalidRequestError.refuse("new_account_id", str(name), rule)
    return _run(actions, receiver_id, checked)


@overload
def deploy(
    code: bytes | PathLike[str] | CryptoHash | AccountId,
    *,
    account_id: str | None = None,
    publish: Literal["hash", "account_id"] | None = None,
    **options: Unpack[_DryRun],
) -> pd.DataFrame: ...
@overload
def deploy(
    code: bytes | PathLike[str] | CryptoHash | AccountId,
    *,
    account_id: str | None = None,
    publish: Literal["hash", "account_id"] | None = None,
    **options: Unpack[_Sending],
) -> Submission: ...
@sends
def deploy(
    code: bytes | PathLike[str] | CryptoHash | AccountId,
    *,
    account_id: str | None = None,
    publish: Literal["hash", "account_id"] | None = None,
    **options: Any,
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

    Notes
    -----
    An account's balance must cover 10**19 yoctoNEAR for each byte of its code: 1 NEAR for 100 kB.
    Publishing burns ten times as much, once; an account that runs a global contract stores only
    its hash or its owner's id.

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
    action = arguments.deploy_action(code, publish)
    checked = send_options(**options)
    own_id = checked.signer.account_id
    if account_id not in (None, own_id):
        rule = f"the signer's own account, {own_id}"
        raise InvalidRequestError.refuse("account_id", account_id, rule)
    return _run([action], own_id, checked)


# Delegated actions ------------------------------------------------------------------------


@seals_key
def delegate(
    receiver_id: str,
    actions: Sequence[Action],
    *,
    max_block_height: int | None = None,
    signer_id: str | None = None,
    key: SecretKey | str | Signer | None = None,
    allow_mainnet: bool = False,
    ledger: Ledger | None = None,
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
    signer_id, key, allow_mainnet, ledger
        As for `send`.

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
    options = send_options(signer_id=signer_id, key=key, allow_mainnet=allow_mainnet, ledger=ledger)
    last = (
        None
        if max_block_height is None
        else validation.block_height(max_block_height, "max_block_height")
    )
    return sign_delegate(options, receiver_id, arguments.check_actions(actions), last)


@overload
def relay(delegate: Delegate | str | bytes, **options: Unpack[_DryRun]) -> pd.DataFrame: ...
@overload
def relay(delegate: Delegate | str | bytes, **options: Unpack[_Sending]) -> Submission: ...
@sends
def relay(delegate: Delegate | str | bytes, **options: Any) -> Submission | pd.DataFrame:
    """
    Send and pay for a delegate action that another account signed (NEP-366).

    Parameters
    ----------
    delegate
        The signed delegate action, from `delegate` or another program: wallets return the
        base64 or the bytes of a Borsh ``SignedDelegate``.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, the delegate action's signature does not match, the
        signer's key is unknown, or mainnet is not allowed. Nothing is signed or sent.

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
    delegate = _check_delegate(delegate)
    if not delegate.verify():
        public_key = delegate.delegate_action.public_key
        msg = f"the signature of the delegate action does not match its key {public_key}"
        raise InvalidRequestError(msg, remedy="Sign it again.", field="delegate")
    sender_id = str(delegate.delegate_action.sender_id)
    return _run([delegate], sender_id, send_options(**options))


def _check_delegate(delegate: Delegate | str | bytes) -> Delegate:
    if isinstance(delegate, Delegate):
        return delegate
    try:
        if isinstance(delegate, str):
            return Delegate.from_base64(delegate)
        if isinstance(delegate, bytes | bytearray):
            return Delegate.from_bytes(delegate)
    except DecodeError as error:
        msg = f"delegate is not a signed delegate action: {error.sentence}"
        raise InvalidRequestError(msg, field="delegate", remedy=error.remedy) from None
    rule = "a Delegate, as delegate() returns, or its base64 or bytes"
    raise InvalidRequestError.refuse("delegate", delegate, rule)


# Tracking ---------------------------------------------------------------------------------


def track(
    tx_hash: str,
    signer_id: str,
    *,
    timeout_s: float | None = 120.0,
    ledger: Ledger | None = None,
) -> Submission:
    """
    Wait until a transaction is final or dropped; continue one whose sending was interrupted.

    A transaction that was sent by the same `Ledger` still has its signed bytes, so its `wait` can
    send them again.

    Parameters
    ----------
    tx_hash
        The transaction's hash; it may have been sent by another program.
    signer_id
        The account that signed it.
    timeout_s
        The longest wait in seconds; 0 reads its status once, None waits without a limit. A
        timeout is not an error.
    ledger
        The ledger to read from; None is the session's default.

    Returns
    -------
    submission
        The transaction; its `stage` is ``unknown`` if no node knows it. Call its `wait` to
        continue.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed. Nothing is sent.
    LedgerError
        If the status could not be read.

    Notes
    -----
    Source: tx_status, on older nodes EXPERIMENTAL_tx_status; heights and times from block.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> alice = lk.use_signer("alice.near", ledger.world.keys()["alice.near"])
    >>> sent = lk.transfer("bob.near", "1 NEAR", wait_until="NONE")
    >>> sent.stage
    'accepted'
    >>> lk.track(sent.tx_hash, "alice.near", timeout_s=0).stage
    'first_receipt_succeeded'
    >>> lk.track(sent.tx_hash, "alice.near").stage
    'final'
    """
    if timeout_s not in {None, 0}:
        positive("timeout_s", timeout_s)
    tx_hash = validation.crypto_hash(tx_hash, "tx_hash")
    signer_id = validation.account_id(signer_id, "signer_id")
    submission = recall(client.current(ledger), tx_hash, signer_id)
    return submission.refresh() if timeout_s == 0 else submission.wait("FINAL", timeout_s)


# Signing and sending ----------------------------------------------------------------------


def _run(
    actions: Sequence[Action], receiver_id: str | None, options: SendOptions
) -> Submission | pd.DataFrame:
    """Check the actions, then send or dry-run; a receiver of None is the signer."""
    actions = arguments.check_actions(actions)
    if receiver_id is None:
        receiver_id = options.signer.account_id
    return Draft(options, validation.account_id(receiver_id, "receiver_id"), actions).run()
