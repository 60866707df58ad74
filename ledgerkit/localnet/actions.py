"""What each action does to its receiver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from ledgerkit.localnet import fees, sdk, validity
from ledgerkit.localnet.contracts import wallet
from ledgerkit.localnet.failures import ActionError, CallError, CodeError, Json, variant
from ledgerkit.localnet.records import (
    NO_CODE,
    SYSTEM,
    SYSTEM_KEY,
    Account,
    ActionReceipt,
    DataReceipt,
    GasCost,
    Proposal,
    Receipt,
)
from ledgerkit.localnet.store import State, Store
from ledgerkit.localnet.vm import Context, Promise, Vm
from ledgerkit.protocol import (
    AccessKey,
    AccountId,
    Action,
    AddKey,
    CreateAccount,
    CryptoHash,
    Delegate,
    DelegateV2,
    DeleteAccount,
    DeleteKey,
    DeployContract,
    DeployGlobalContract,
    FunctionCall,
    FunctionCallPermission,
    PublicKey,
    Stake,
    Transfer,
    UseGlobalContract,
    action_hash,
    random_seed_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.localnet.fees import Profile
    from ledgerkit.localnet.settings import Settings

REGISTRAR = "registrar"
MAX_STATE_TO_DELETE = 10_000
_UNNAMED = CryptoHash(bytes(32))  # stands in a receipt until it is named
_OWN = (
    DeployContract,
    Stake,
    AddKey,
    DeleteKey,
    DeleteAccount,
    DeployGlobalContract,
    UseGlobalContract,
)


class Run:
    """
    One receipt's execution: the account as it changes, and what comes of it.

    Parameters
    ----------
    receipt
        The receipt.
    store
        The state.
    settings
        Limits.
    profile
        What everything costs.
    height, timestamp_ns, epoch_height, random_value
        The block's.
    inputs
        What the receipt waited for.
    waits
        Tells whether a yielded call waits for a piece of data.
    """

    def __init__(
        self,
        receipt: ActionReceipt,
        store: Store,
        settings: Settings,
        profile: Profile,
        *,
        height: int,
        timestamp_ns: int,
        epoch_height: int,
        random_value: CryptoHash,
        inputs: tuple[bytes | None, ...],
        waits: Callable[[CryptoHash], bool],
    ) -> None:
        self.receipt, self.store, self.settings, self.profile = receipt, store, settings, profile
        self.height, self.timestamp_ns, self.epoch_height = height, timestamp_ns, epoch_height
        self.random_value, self.inputs, self.waits = random_value, inputs, waits
        self.state = State(store)
        self.actor_id = receipt.predecessor_id
        self.account = self.state.account(receipt.receiver_id)
        self.gas_burnt = self.gas_used = profile.new_receipt_execute
        self.call_gas = 0  # burnt inside calls, of which the contract gets its share
        self.logs: list[str] = []
        self.new: list[Receipt] = []
        self.proposals: list[Proposal] = []
        self.result: bytes | int = b""  # a value, or the place of a promise in `new`
        self.profile_lines: dict[tuple[str, str], int] = {}
        self.contracts: list[tuple[str, CryptoHash | str] | None] = []

    def keep(self, account: Account | None) -> None:
        """Write the receiver."""
        self.account = account
        self.store.accounts.put(self.receipt.receiver_id, b"", account)

    def held(self) -> Account:
        """Give the receiver, which is there."""
        if self.account is None:
            _fail("AccountDoesNotExist", account_id=str(self.receipt.receiver_id))
        return self.account

    def change(self, *, amount: int = 0, locked: int = 0, storage: int = 0) -> None:
        """Add to what the receiver has."""
        held = self.held()
        self.keep(
            Account(
                held.amount + amount,
                held.locked + locked,
                held.code_hash,
                held.storage_usage + storage,
                held.global_contract,
            )
        )

    def apply(self) -> None:
        """
        Apply all actions.

        Raises
        ------
        ActionError
            At the first that fails; what was burnt and logged until then is kept here.
        """
        self.contracts = [None] * len(self.receipt.actions)
        for index, action in enumerate(self.receipt.actions):
            self.contracts[index] = contract_of(self.account)
            fee = self.profile.fee(action, self.receipt.receiver_id).execute
            self.gas_burnt += fee
            self.gas_used += fee
            self.result = b""
            try:
                self._check(action)
                _EFFECTS[type(action)](self, action, index)
            except ActionError as error:
                error.index = index
                raise
        self._check_storage()

    def _check(self, action: Action) -> None:
        """Check that the receiver is there, or not yet, and that the actor may do this."""
        receiver_id = self.receipt.receiver_id
        if isinstance(action, CreateAccount):
            if self.account is not None:
                _fail("AccountAlreadyExists", account_id=str(receiver_id))
        elif self.account is None and not (
            isinstance(action, Transfer) and self._creates_implicitly()
        ):
            _fail("AccountDoesNotExist", account_id=str(receiver_id))
        if isinstance(action, _OWN) and self.actor_id != receiver_id:
            _fail("ActorNoPermission", account_id=str(receiver_id), actor_id=str(self.actor_id))

    def _creates_implicitly(self) -> bool:
        """Tell whether a transfer may create its receiver: alone, and not given back."""
        kind = AccountId(self.receipt.receiver_id).kind
        alone = len(self.receipt.actions) == 1 and not self.receipt.is_refund
        return alone and kind in ("near-implicit", "eth-implicit")

    def _check_storage(self) -> None:
        """Check that what the receiver has covers its bytes."""
        held = self.account
        if held is None:
            return
        short = fees.storage_shortfall(held.amount + held.locked, held.storage_usage)
        if short:
            account_id = str(self.receipt.receiver_id)
            _fail("LackBalanceForState", account_id=account_id, amount=str(short))

    def lines(self) -> tuple[GasCost, ...]:
        """Tell what calls burnt on what."""
        held = sorted(self.profile_lines.items())
        return tuple(GasCost(category, cost, gas) for (category, cost), gas in held if gas)


def contract_of(account: Account | None) -> tuple[str, CryptoHash | str] | None:
    """Name the code an account runs, as an outcome's metadata does."""
    if account is None:
        return None
    shared = account.global_contract
    if shared is not None:
        named = "global_hash" if isinstance(shared, CryptoHash) else "global_account_id"
        return named, shared
    return None if account.code_hash == NO_CODE else ("local", account.code_hash)


def _fail(name: str, **payload: Json | int | None) -> Never:
    """Fail the action."""
    raise ActionError(variant(name, payload or None))


# Accounts and keys -----------------------------------------------------------------------


def _create_account(run: Run, action: Action, index: int) -> None:
    """Create the receiver, which whoever does it must be entitled to name so."""
    del action, index
    receiver_id, by = AccountId(run.receipt.receiver_id), run.receipt.predecessor_id
    if receiver_id.kind != "named":
        _fail("OnlyImplicitAccountCreationAllowed", account_id=str(receiver_id))
    if receiver_id.is_top_level:
        if by != REGISTRAR:
            _fail(
                "CreateAccountOnlyByRegistrar",
                account_id=str(receiver_id),
                registrar_account_id=REGISTRAR,
                predecessor_id=str(by),
            )
    elif not receiver_id.is_sub_account_of(by):
        _fail("CreateAccountNotAllowed", account_id=str(receiver_id), predecessor_id=str(by))
    run.keep(Account(0))
    run.actor_id = receiver_id


def _transfer(run: Run, action: Action, index: int) -> None:
    """Add to the receiver; what a refund gives back, its key's allowance gets too."""
    del index
    deposit = action.deposit  # type: ignore[attr-defined]  # of the class the table names
    receiver_id = run.receipt.receiver_id
    if run.account is None:
        _create_implicit(run, AccountId(receiver_id), deposit)
        return
    run.change(amount=deposit)
    if run.receipt.is_refund and run.receipt.signer_id == receiver_id:
        _restore_allowance(run, deposit)


def _create_implicit(run: Run, receiver_id: AccountId, deposit: int) -> None:
    """Create the account that a key or an address stands for."""
    if receiver_id.kind == "near-implicit":
        key = PublicKey("ed25519", bytes.fromhex(receiver_id))
        run.store.access_keys.put(receiver_id, key.packed, AccessKey(_first_nonce(run)))
        run.keep(Account(deposit, storage_usage=fees.IMPLICIT_BYTES))
        return
    code = wallet.ImplicitWallet.code_hash
    run.store.codes.setdefault(code, wallet.ImplicitWallet.code)
    run.keep(Account(deposit, storage_usage=100 + len(code), global_contract=code))


def _first_nonce(run: Run) -> int:
    """Give the nonce of a new key: above whatever a deleted key of old may have used."""
    return (run.height - 1) * validity.NONCES_PER_HEIGHT


def _restore_allowance(run: Run, deposit: int) -> None:
    """Give gas back to the allowance it was taken from."""
    packed = run.receipt.signer_public_key.packed
    held = run.state.access_key(run.receipt.receiver_id, packed)
    permission = None if held is None else held.permission
    if held is None or not isinstance(permission, FunctionCallPermission):
        return
    if permission.allowance is not None:
        more = FunctionCallPermission(
            permission.allowance + deposit, permission.receiver_id, permission.method_names
        )
        run.store.access_keys.put(run.receipt.receiver_id, packed, AccessKey(held.nonce, more))


def key_bytes(public_key: PublicKey, access_key: AccessKey) -> int:
    """Tell how many bytes of storage a key takes."""
    return len(public_key.packed) + len(access_key.encode()) + fees.RECORD_BYTES


def _key_error(name: str, run: Run, public_key: PublicKey) -> Never:
    """Fail for a key."""
    account_id = str(run.receipt.receiver_id)
    _fail(name, account_id=account_id, public_key=str(public_key))


def _add_key(run: Run, action: Action, index: int) -> None:
    """Add a key, with a nonce of this height."""
    del index
    key, wanted = action.public_key, action.access_key  # type: ignore[attr-defined]  # as above
    if run.state.access_key(run.receipt.receiver_id, key.packed) is not None:
        _key_error("AddKeyAlreadyExists", run, key)
    added = AccessKey(_first_nonce(run), wanted.permission)
    run.store.access_keys.put(run.receipt.receiver_id, key.packed, added)
    run.change(storage=key_bytes(key, added))


def _delete_key(run: Run, action: Action, index: int) -> None:
    """Remove a key."""
    del index
    key = action.public_key  # type: ignore[attr-defined]  # as above
    held = run.state.access_key(run.receipt.receiver_id, key.packed)
    if held is None:
        _key_error("DeleteKeyDoesNotExist", run, key)
    run.store.access_keys.put(run.receipt.receiver_id, key.packed, None)
    run.change(storage=-key_bytes(key, held))


def _delete_account(run: Run, action: Action, index: int) -> None:
    """Remove the receiver and all it has; its tokens go to the beneficiary."""
    del index
    held, account_id = run.held(), run.receipt.receiver_id
    if held.locked:
        _fail("DeleteAccountStaking", account_id=str(account_id))
    if held.storage_usage - len(run.store.codes[held.code_hash]) > MAX_STATE_TO_DELETE:
        _fail("DeleteAccountWithLargeState", account_id=str(account_id))
    for packed, _ in list(run.state.access_keys(account_id)):
        run.store.access_keys.put(account_id, packed, None)
    for key, _ in list(run.state.records(account_id)):
        run.store.data.put(account_id, key, None)
    run.keep(None)
    if held.amount:
        beneficiary_id = action.beneficiary_id  # type: ignore[attr-defined]  # as above
        run.new.append(refund(beneficiary_id, held.amount))


def refund(
    receiver_id: str, deposit: int, signer_id: str = SYSTEM, public_key: PublicKey = SYSTEM_KEY
) -> ActionReceipt:
    """Make a receipt by which the chain gives back tokens."""
    actions = (Transfer(deposit),)
    return ActionReceipt(_UNNAMED, SYSTEM, receiver_id, signer_id, public_key, 0, actions)


# Code ------------------------------------------------------------------------------------


def _deploy(run: Run, action: Action, index: int) -> None:
    """Put code on the receiver, in place of what is there."""
    del index
    code = action.code  # type: ignore[attr-defined]  # as above
    held = run.held()
    code_hash = CryptoHash.of(code) if code else NO_CODE
    run.store.codes.setdefault(code_hash, code)
    storage = held.storage_usage - _code_bytes(run, held) + len(code)
    run.keep(Account(held.amount, held.locked, code_hash, storage))


def _code_bytes(run: Run, account: Account) -> int:
    """Tell how many bytes of storage an account's code takes."""
    if account.global_contract is not None:
        return len(account.global_contract)
    return len(run.store.codes[account.code_hash])


def _deploy_global(run: Run, action: Action, index: int) -> None:
    """Publish code, by its hash or under the receiver's name."""
    del index
    code, mode = action.code, action.deploy_mode  # type: ignore[attr-defined]  # as above
    code_hash = CryptoHash.of(code)
    run.store.codes.setdefault(code_hash, code)
    owner = run.receipt.receiver_id if mode == "AccountId" else code_hash.hex()
    run.store.global_codes.put(owner, b"", code_hash)


def _use_global(run: Run, action: Action, index: int) -> None:
    """Let the receiver run published code."""
    del index
    wanted = action.contract_identifier  # type: ignore[attr-defined]  # as above
    if run.state.global_code_hash(wanted) is None:
        named = "hash" if isinstance(wanted, CryptoHash) else "account_id"
        _fail("GlobalContractDoesNotExist", identifier={named: str(wanted)})
    held = run.held()
    storage = held.storage_usage - _code_bytes(run, held) + len(wanted)
    run.keep(Account(held.amount, held.locked, NO_CODE, storage, wanted))


# Calls -----------------------------------------------------------------------------------


def _function_call(run: Run, action: Action, index: int) -> None:
    """Run a method, and take over what it made."""
    call: FunctionCall = action  # type: ignore[assignment]  # as above
    run.change(amount=call.deposit)
    vm = Vm(_context(run, call, index), run.state, run.profile, run.waits)
    try:
        result = sdk.run(_contract(run), vm, call.method_name)
    except CallError as error:
        raise ActionError({"FunctionCallError": error.failure}) from error
    finally:
        run.logs.extend(vm.logs)
        run.call_gas += vm.gas.burnt
        run.gas_burnt += vm.gas.burnt
        run.gas_used += vm.gas.used
        for line, gas in vm.gas.profile.items():
            run.profile_lines[line] = run.profile_lines.get(line, 0) + gas
    held = run.held()
    run.change(amount=vm.balance - held.amount, storage=vm.storage_usage - held.storage_usage)
    _take_over(run, vm, result)


def _contract(run: Run) -> type[sdk.Contract]:
    """Find the receiver's contract."""
    code_hash = run.state.code_hash(run.held())
    if code_hash is None:
        raise CodeError(run.receipt.receiver_id)
    found = sdk.CODES.get(code_hash)
    if found is None:
        raise CodeError(None)
    return found


def _context(run: Run, call: FunctionCall, index: int) -> Context:
    """Gather what a call comes with."""
    receipt, held = run.receipt, run.held()
    last = index == len(receipt.actions) - 1
    named = action_hash(receipt.receipt_id, run.height, index)
    return Context(
        current_account_id=receipt.receiver_id,
        signer_id=receipt.signer_id,
        signer_public_key=receipt.signer_public_key,
        predecessor_id=receipt.predecessor_id,
        input=call.args,
        block_height=run.height,
        block_timestamp=run.timestamp_ns,
        epoch_height=run.epoch_height,
        balance=held.amount,
        locked=held.locked,
        storage_usage=held.storage_usage,
        attached_deposit=call.deposit,
        prepaid_gas=call.gas,
        random_seed=random_seed_of(named, run.random_value),
        action_hash=named,
        promise_results=run.inputs,
        data_receivers=tuple(r for _, r in receipt.output_data_receivers) if last else (),
        fixed_gas=fixed_gas(run.settings, receipt.receiver_id, call.method_name),
        code_size=len(run.store.codes[run.state.code_hash(held) or NO_CODE]),
    )


def fixed_gas(settings: Settings, contract_id: str, method_name: str) -> int | None:
    """Find what a method's own computation is said to burn."""
    table = settings.vm_gas
    if not table:
        return None
    return table.get(f"{contract_id}.{method_name}", table.get(f".{method_name}"))


def _take_over(run: Run, vm: Vm, result: bytes | Promise) -> None:
    """Turn what a call made into receipts."""
    receipt = run.receipt
    first = len(run.new)
    for draft in vm.drafts:
        run.new.append(
            ActionReceipt(
                _UNNAMED,
                receipt.receiver_id,
                draft.receiver_id,
                receipt.signer_id,
                receipt.signer_public_key,
                receipt.gas_price,
                tuple(draft.actions),
                tuple(draft.input_data_ids),
                tuple(draft.output_data_receivers),
                is_promise_yield=draft.is_yield,
            )
        )
    for data_id, payload in vm.resumed:
        own = receipt.receiver_id
        run.new.append(DataReceipt(_UNNAMED, own, own, data_id, payload, is_promise_resume=True))
    if isinstance(result, Promise):
        run.result = first + vm.drafts.index(result.drafts[0])
    else:
        run.result = result


# Stakes ----------------------------------------------------------------------------------


def _stake(run: Run, action: Action, index: int) -> None:
    """Propose a stake; more is locked at once, less is unlocked by a later epoch."""
    del index
    wanted: Stake = action  # type: ignore[assignment]  # as above
    held, account_id = run.held(), str(run.receipt.receiver_id)
    if not wanted.stake and not held.locked:
        _fail("TriesToUnstake", account_id=account_id)
    more = max(0, wanted.stake - held.locked)
    if more > held.amount:
        _fail(
            "TriesToStake",
            account_id=account_id,
            stake=str(wanted.stake),
            locked=str(held.locked),
            balance=str(held.amount),
        )
    least = run.settings.minimum_stake
    if 0 < wanted.stake < least:
        _fail(
            "InsufficientStake",
            account_id=account_id,
            stake=str(wanted.stake),
            minimum_stake=str(least),
        )
    run.proposals.append(Proposal(account_id, wanted.public_key, wanted.stake))
    run.change(amount=-more, locked=more)


# Delegated actions -----------------------------------------------------------------------


def _delegate(run: Run, action: Action, index: int) -> None:
    """Send what the receiver signed, in its name; whoever relayed it pays."""
    del index
    signed: Delegate | DelegateV2 = action  # type: ignore[assignment]  # as above
    wanted = signed.delegate_action
    if not signed.verify():
        _fail("DelegateActionInvalidSignature")
    if run.height > wanted.max_block_height:
        _fail("DelegateActionExpired")
    sender_id, receiver_id = wanted.sender_id, run.receipt.receiver_id
    if sender_id != receiver_id:
        _fail(
            "DelegateActionSenderDoesNotMatchTxReceiver",
            sender_id=str(sender_id),
            receiver_id=str(receiver_id),
        )
    _use_delegate_key(run, signed)
    receipt, profile = run.receipt, run.profile
    sent = ActionReceipt(
        _UNNAMED,
        sender_id,
        wanted.receiver_id,
        receipt.signer_id,
        receipt.signer_public_key,
        receipt.gas_price,
        tuple(wanted.actions),
    )
    sending = profile.send(wanted.actions, sender_id, wanted.receiver_id)
    carried = profile.new_receipt_execute + fees.attached_gas(wanted.actions)
    carried += profile.prepaid_execution(wanted.actions, wanted.receiver_id)
    run.gas_burnt += sending
    run.gas_used += sending + carried
    run.new.append(sent)


def _use_delegate_key(run: Run, signed: Delegate | DelegateV2) -> None:
    """Check the sender's key and nonce, and use the nonce."""
    wanted = signed.delegate_action
    account_id, key = wanted.sender_id, wanted.public_key
    held = run.state.access_key(account_id, key.packed)
    if held is None:
        named = {"account_id": str(account_id), "public_key": str(key)}
        _refuse_key("AccessKeyNotFound", **named)
    if isinstance(signed, DelegateV2) and signed.delegate_action.nonce_index is not None:
        _refuse_key("DelegateActionRequiresGasKey")
    if wanted.nonce <= held.nonce:
        _fail("DelegateActionInvalidNonce", delegate_nonce=wanted.nonce, ak_nonce=held.nonce)
    bound = run.height * validity.NONCES_PER_HEIGHT
    if wanted.nonce >= bound:
        _fail("DelegateActionNonceTooLarge", delegate_nonce=wanted.nonce, upper_bound=bound)
    if isinstance(held.permission, FunctionCallPermission):
        validity.check_scope(wanted.actions, wanted.receiver_id, held.permission, _refuse_key)
    run.store.access_keys.put(account_id, key.packed, AccessKey(wanted.nonce, held.permission))


def _refuse_key(name: str, **payload: Json) -> Never:
    """Fail a delegated action for its key."""
    raise ActionError({"DelegateActionAccessKeyError": variant(name, payload or None)})


_EFFECTS: dict[type[Action], Callable[[Run, Action, int], None]] = {
    CreateAccount: _create_account,
    DeployContract: _deploy,
    FunctionCall: _function_call,
    Transfer: _transfer,
    Stake: _stake,
    AddKey: _add_key,
    DeleteKey: _delete_key,
    DeleteAccount: _delete_account,
    Delegate: _delegate,
    DelegateV2: _delegate,
    DeployGlobalContract: _deploy_global,
    UseGlobalContract: _use_global,
}
