"""Execution of a receipt's actions: the effect of each kind of action on its receiver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Never

from msgspec import structs

from ledgerkit.localnet import fees, transaction_validity
from ledgerkit.localnet.chain_types import (
    ACCOUNT_BYTES,
    NO_CODE,
    SYSTEM,
    SYSTEM_KEY,
    Account,
    ActionReceipt,
    BlockContext,
    CallContext,
    DataReceipt,
    DistributionReceipt,
    GasCost,
    Proposal,
    Receipt,
)
from ledgerkit.localnet.contract_sdk import Contract, run_code
from ledgerkit.localnet.execution_errors import (
    ActionError,
    CallError,
    InvalidTransactionError,
    Json,
    variant,
)
from ledgerkit.localnet.fees import Feature, Profile
from ledgerkit.localnet.promises import MAX_INPUT_BYTES, Promise, Yields
from ledgerkit.localnet.state import State, StateStore, global_name, nonce_key
from ledgerkit.localnet.vm import Vm
from ledgerkit.protocol import (
    AccessKey,
    AccountId,
    CryptoHash,
    FunctionCallPermission,
    GasKeyFunctionCall,
    PublicKey,
    action_hash,
    random_seed_of,
)
from ledgerkit.protocol import actions as kinds
from ledgerkit.protocol.access_keys import GasKey

if TYPE_CHECKING:
    from ledgerkit.localnet.settings import Settings

REGISTRAR = "registrar"  # the only account that may create top-level accounts
MAX_DELETED_STORAGE_BYTES = 10_000  # nearcore: Account::MAX_ACCOUNT_DELETION_STORAGE_USAGE
MAX_BALANCE_TO_BURN = 10**24  # yoctoNEAR; nearcore: GasKeyInfo::MAX_BALANCE_TO_BURN
_NO_ID = CryptoHash(bytes(32))  # until the runtime assigns a receipt's id


class EthereumWallet(Contract, code_name="ledgerkit.localnet.contracts.wallet.ImplicitWallet"):
    """The global contract of ETH-implicit accounts (NEP-518); only its presence is modelled."""


class ReceiptRun:
    """The execution of one receipt."""

    def __init__(
        self,
        receipt: ActionReceipt,
        store: StateStore,
        settings: Settings,
        profile: Profile,
        block: BlockContext,
        *,
        inputs: tuple[bytes | None, ...],
        yields: Yields,
    ) -> None:
        self.receipt, self.store, self.settings, self.profile = receipt, store, settings, profile
        self.block, self.inputs, self.yields = block, inputs, yields
        self.state = State(store)
        self.actor_id = receipt.predecessor_id
        self.account = self.state.account(receipt.receiver_id)
        self.index = 0  # the current action's position
        self.gas_burnt = self.gas_used = profile.new_receipt_execute
        self.call_gas = 0  # burnt inside calls; the contract gets a share
        self.tokens_burnt = 0  # yoctoNEAR that actions burn, in addition to the price of gas
        self.tokens_minted = 0  # yoctoNEAR that the chain adds to deposits
        self.logs: list[str] = []
        self.new_receipts: list[Receipt] = []
        self.proposals: list[Proposal] = []
        self.result: bytes | int = b""  # a value, or the position of a promise in `new_receipts`
        self.contracts: list[tuple[str, CryptoHash | str] | None] = []
        self.yield_ids: dict[bytes, CryptoHash] = {}
        self._gas_profile: Counter[tuple[str, str]] = Counter()

    def put_account(self, account: Account | None) -> None:
        """Write the receiver's account, or delete it with None."""
        self.account = account
        self.store.accounts.put(self.receipt.receiver_id, b"", account)

    def existing_account(self) -> Account:
        """Return the receiver's account; fail if it does not exist."""
        if self.account is None:
            self.fail("AccountDoesNotExist")
        return self.account

    def fail(self, name: str, **payload: Any) -> Never:
        """Fail the current action, with the receiver as the error's account."""
        raise ActionError({name: {"account_id": str(self.receipt.receiver_id), **payload}})

    def change(self, *, amount: int = 0, locked: int = 0, storage: int = 0) -> None:
        """Add to the receiver's balances in yoctoNEAR and its bytes of storage."""
        account = self.existing_account()
        self.put_account(account.plus(amount=amount, locked=locked, storage=storage))

    def apply(self) -> None:
        self.contracts = [None] * len(self.receipt.actions)
        size = sum(1 if data is None else 5 + len(data) for data in self.inputs)  # in Borsh
        if size > MAX_INPUT_BYTES and self.profile.has(Feature.INPUT_LIMIT):
            _fail("TotalPromiseInputSizeExceeded", size=size, limit=MAX_INPUT_BYTES)
        for index, action in enumerate(self.receipt.actions):
            self.index = index
            self.contracts[index] = None if self.account is None else self.account.contract
            fee = self.profile.fee(action, self.receipt.receiver_id).execute
            self.gas_burnt += fee
            self.gas_used += fee
            self.result = b""
            try:
                self._check(action)
                _EFFECTS[type(action)](self, action)
            except ActionError as error:
                error.index = index
                raise
        self._check_storage()

    def _check(self, action: kinds.Action) -> None:
        """Check that the receiver exists or may be created, and that the actor has permission."""
        if isinstance(action, kinds.CreateAccount):
            if self.account is not None:
                self.fail("AccountAlreadyExists")
        elif self.account is None:
            if not self._may_create(action):
                self.fail("AccountDoesNotExist")
        elif self.account.bootstrap_nonce is not None and not isinstance(
            action, kinds.Transfer | kinds.UniversalStateInit
        ):
            self.fail("AccountNotInitialized")
        if kinds.KIND_OF[type(action)].is_own and self.actor_id != self.receipt.receiver_id:
            self.fail("ActorNoPermission", actor_id=str(self.actor_id))

    def _may_create(self, action: kinds.Action) -> bool:
        """Return True if an action other than CreateAccount may create its receiver."""
        if not isinstance(action, kinds.Transfer):
            return isinstance(action, kinds.DeterministicStateInit | kinds.UniversalStateInit)
        # A refund creates no account, nor does a transfer with other actions, which could take the
        # account from its owner; but a universal account accepts none before its initial state.
        kind = self.profile.account_kind(self.receipt.receiver_id)
        is_allowed = kind == "universal" or (kind != "named" and len(self.receipt.actions) == 1)
        return is_allowed and not self.receipt.is_refund

    def _check_storage(self) -> None:
        account = self.account
        if account is None:
            return
        missing = fees.storage_shortfall(account.amount + account.locked, account.storage_usage)
        if missing:
            self.fail("LackBalanceForState", amount=str(missing))

    def add_call_gas(self, vm: Vm) -> None:
        self.call_gas += vm.gas.burnt
        self.gas_burnt += vm.gas.burnt
        self.gas_used += vm.gas.used
        self._gas_profile.update(vm.gas.profile)

    def gas_profile(self) -> tuple[GasCost, ...]:
        """Return the gas that calls burnt, sorted by category and cost."""
        entries = sorted(self._gas_profile.items())
        return tuple([GasCost(category, cost, gas) for (category, cost), gas in entries if gas])


def _fail(name: str, **payload: Any) -> Never:
    """Fail the current action with an error without the receiver's id."""
    raise ActionError(variant(name, payload or None))


# Accounts and keys -----------------------------------------------------------------------


def _create_account(run: ReceiptRun, _: kinds.CreateAccount) -> None:
    """Create the receiver; its id must belong to the namespace of the predecessor."""
    receiver_id, predecessor_id = AccountId(run.receipt.receiver_id), run.receipt.predecessor_id
    if run.profile.account_kind(receiver_id) != "named":
        run.fail("OnlyImplicitAccountCreationAllowed")
    if "." not in receiver_id:
        if predecessor_id != REGISTRAR:
            run.fail(
                "CreateAccountOnlyByRegistrar",
                registrar_account_id=REGISTRAR,
                predecessor_id=str(predecessor_id),
            )
    elif not receiver_id.is_sub_account_of(predecessor_id):
        run.fail("CreateAccountNotAllowed", predecessor_id=str(predecessor_id))
    run.put_account(Account(0))
    run.actor_id = receiver_id  # so that the next actions may add keys and code


def _transfer(run: ReceiptRun, action: kinds.Transfer) -> None:
    """Add to the receiver's balance, or return a gas refund to the gas key that paid."""
    receiver_id = run.receipt.receiver_id
    if run.account is None:
        _create_implicit(run, AccountId(receiver_id), action.deposit)
        return
    is_gas_refund = run.receipt.is_refund and run.receipt.signer_id == receiver_id
    if is_gas_refund and _add_to_gas_key(run, run.receipt.signer_public_key, action.deposit):
        return
    run.change(amount=action.deposit)
    if is_gas_refund:
        _restore_allowance(run, action.deposit)


def _create_implicit(run: ReceiptRun, receiver_id: AccountId, deposit: int) -> None:
    """Create the account of a public key, an Ethereum address or an initial state."""
    if receiver_id.kind == "near-implicit":
        key = PublicKey("ed25519", bytes.fromhex(receiver_id))
        run.store.access_keys.put(receiver_id, key.stored, AccessKey(_first_nonce(run)))
        run.put_account(Account(deposit, storage_usage=fees.IMPLICIT_BYTES))
        return
    if receiver_id.kind == "deterministic":  # it has no code until its state is initialized
        run.put_account(Account(deposit))
        return
    if receiver_id.kind == "universal":
        run.put_account(Account(deposit, bootstrap_nonce=_first_nonce(run)))
        return
    code = EthereumWallet.code_hash
    storage = ACCOUNT_BYTES + len(code)
    run.put_account(Account(deposit, storage_usage=storage, global_contract=code))


def _first_nonce(run: ReceiptRun) -> int:
    # A key can be deleted and added again. As its first nonce grows with the height, its old
    # transactions stay invalid (nearcore, runtime/runtime/src/access_keys.rs).
    return (run.block.height - 1) * transaction_validity.NONCES_PER_HEIGHT


def _restore_allowance(run: ReceiptRun, deposit: int) -> None:
    account_id, packed = run.receipt.receiver_id, run.receipt.signer_public_key.stored
    access_key = run.state.access_key(account_id, packed)
    if access_key is None:
        return
    permission = access_key.permission
    if isinstance(permission, FunctionCallPermission) and permission.allowance is not None:
        restored = replace(permission, allowance=permission.allowance + deposit)
        run.store.access_keys.put(account_id, packed, AccessKey(access_key.nonce, restored))


def key_bytes(public_key: PublicKey, access_key: AccessKey) -> int:
    """Return the bytes of storage of an access key, with the nonces of a gas key."""
    size = len(public_key.stored) + len(access_key.encode()) + fees.RECORD_BYTES
    if isinstance(access_key.permission, GasKey):
        nonce_size = len(public_key.stored) + fees.INDEX_BYTES + fees.NONCE_BYTES
        size += access_key.permission.num_nonces * (nonce_size + fees.RECORD_BYTES)
    return size


def _add_key(run: ReceiptRun, action: kinds.AddKey) -> None:
    key, permission = action.public_key, action.access_key.permission
    account_id = run.receipt.receiver_id
    if run.state.access_key(account_id, key.stored) is not None:
        run.fail("AddKeyAlreadyExists", public_key=str(key))
    nonce = _first_nonce(run)
    access_key = AccessKey(nonce, permission)
    if isinstance(permission, GasKey):  # it has several nonces, and its own stays 0
        access_key = AccessKey(0, permission)
        for index in range(permission.num_nonces):
            run.store.gas_key_nonces.put(account_id, nonce_key(key.stored, index), nonce)
    run.store.access_keys.put(account_id, key.stored, access_key)
    run.change(storage=key_bytes(key, access_key))


def _delete_key(run: ReceiptRun, action: kinds.DeleteKey) -> None:
    """Remove an access key; the balance of a gas key burns."""
    key, account_id = action.public_key, run.receipt.receiver_id
    access_key = run.state.access_key(account_id, key.stored)
    if access_key is None:
        run.fail("DeleteKeyDoesNotExist", public_key=str(key))
    if isinstance(access_key.permission, GasKey):
        _burn_gas_keys(run, access_key.permission.balance, str(key))
    _remove_key(run, key.stored)
    run.change(storage=-key_bytes(key, access_key))


def _burn_gas_keys(run: ReceiptRun, balance: int, public_key: str | None) -> None:
    """Burn the balance of deleted gas keys; fail if it is too large."""
    if balance > MAX_BALANCE_TO_BURN:
        run.fail("GasKeyBalanceTooHigh", public_key=public_key, balance=str(balance))
    run.tokens_burnt += balance


def _remove_key(run: ReceiptRun, packed_key: bytes) -> None:
    account_id, nonces = run.receipt.receiver_id, run.store.gas_key_nonces
    for key, _ in list(nonces.items(account_id, packed_key)):
        nonces.put(account_id, key, None)
    run.store.access_keys.put(account_id, packed_key, None)


def _delete_account(run: ReceiptRun, action: kinds.DeleteAccount) -> None:
    """Remove the receiver, its keys and records; send its balance to the beneficiary."""
    account, account_id = run.existing_account(), run.receipt.receiver_id
    if account.locked:
        run.fail("DeleteAccountStaking")
    code_bytes = len(run.store.codes[account.code_hash])
    if run.profile.has(Feature.DELETED_GLOBAL_CODE):
        code_bytes = _code_bytes(run, account)
    if account.storage_usage - code_bytes > MAX_DELETED_STORAGE_BYTES:
        run.fail("DeleteAccountWithLargeState")
    keys = list(run.state.access_keys(account_id))
    permissions = [key.permission for _, key in keys]
    _burn_gas_keys(run, sum(p.balance for p in permissions if isinstance(p, GasKey)), None)
    for packed, _ in keys:
        _remove_key(run, packed)
    for key, _ in list(run.state.records(account_id)):
        run.store.data.put(account_id, key, None)
    run.put_account(None)
    if account.amount:
        run.new_receipts.append(refund(action.beneficiary_id, account.amount))


def refund(
    receiver_id: str, deposit: int, signer_id: str = SYSTEM, public_key: PublicKey = SYSTEM_KEY
) -> ActionReceipt:
    actions = (kinds.Transfer(deposit),)
    return ActionReceipt(_NO_ID, SYSTEM, receiver_id, signer_id, public_key, 0, actions)


# Gas keys (NEP-611) ----------------------------------------------------------------------


def _transfer_to_gas_key(run: ReceiptRun, action: kinds.TransferToGasKey) -> None:
    """Add to a gas key's balance; anybody may do so."""
    if not _add_to_gas_key(run, action.public_key, action.deposit):
        run.fail("GasKeyDoesNotExist", public_key=str(action.public_key))


def _withdraw_from_gas_key(run: ReceiptRun, action: kinds.WithdrawFromGasKey) -> None:
    key = action.public_key
    access_key = run.state.access_key(run.receipt.receiver_id, key.stored)
    if access_key is None or not isinstance(access_key.permission, GasKey):
        run.fail("GasKeyDoesNotExist", public_key=str(key))
    balance = access_key.permission.balance
    if balance < action.amount:
        run.fail(
            "InsufficientGasKeyBalance",
            public_key=str(key),
            balance=str(balance),
            required=str(action.amount),
        )
    _add_to_gas_key(run, key, -action.amount)
    run.change(amount=action.amount)


def _add_to_gas_key(run: ReceiptRun, public_key: PublicKey, amount: int) -> bool:
    """Add yoctoNEAR to a gas key's balance; return False if the receiver has no such key."""
    account_id, packed = run.receipt.receiver_id, public_key.stored
    access_key = run.state.access_key(account_id, packed)
    if access_key is None or not isinstance(access_key.permission, GasKey):
        return False
    permission = replace(access_key.permission, balance=access_key.permission.balance + amount)
    run.store.access_keys.put(account_id, packed, AccessKey(access_key.nonce, permission))
    return True


# Code ------------------------------------------------------------------------------------


def _deploy(run: ReceiptRun, action: kinds.DeployContract) -> None:
    account = run.existing_account()
    code_hash = CryptoHash.of(action.code) if action.code else NO_CODE
    run.store.codes.setdefault(code_hash, action.code)
    storage = account.storage_usage - _code_bytes(run, account) + len(action.code)
    run.put_account(Account(account.amount, account.locked, code_hash, storage))


def _code_bytes(run: ReceiptRun, account: Account) -> int:
    """Return the bytes of storage of an account's code, or of a global contract's identifier."""
    if account.global_contract is not None:
        return len(account.global_contract)
    return len(run.store.codes[account.code_hash])


def _deploy_global(run: ReceiptRun, action: kinds.DeployGlobalContract) -> None:
    """
    Publish a global contract (NEP-591); the payment for its bytes burns.

    A receipt delivers the contract, so the next action cannot use it yet.
    """
    cost = fees.GLOBAL_BYTE_PRICE * len(action.code)
    account = run.existing_account()
    if account.amount < cost:
        run.fail("LackBalanceForState", amount=str(cost))
    run.change(amount=-cost)
    run.tokens_burnt += cost
    code_hash = CryptoHash.of(action.code)
    run.store.codes.setdefault(code_hash, action.code)
    owner_id = run.receipt.receiver_id
    contract = owner_id if action.deploy_mode == "AccountId" else code_hash
    name, nonces = global_name(contract), run.store.global_nonces
    nonce = (nonces.get(name) or 0) + 1
    nonces.put(name, b"", nonce)
    shard_id = run.settings.shard_ids[run.settings.shard_of(owner_id)]
    run.new_receipts.append(
        DistributionReceipt(_NO_ID, owner_id, SYSTEM, contract, code_hash, shard_id, nonce)
    )


def _set_global_contract(run: ReceiptRun, identifier: CryptoHash | str) -> None:
    if run.state.global_code_hash(identifier) is None:
        kind = "hash" if isinstance(identifier, CryptoHash) else "account_id"
        _fail("GlobalContractDoesNotExist", identifier={kind: str(identifier)})
    account = run.existing_account()
    storage = account.storage_usage - _code_bytes(run, account) + len(identifier)
    run.put_account(Account(account.amount, account.locked, NO_CODE, storage, identifier))


# Initial states of deterministic (NEP-616) and universal accounts (NEP-655) ----------------


def _init_deterministic(run: ReceiptRun, action: kinds.DeterministicStateInit) -> None:
    """Set the receiver's code and records, unless it has code."""
    # The actor stays the predecessor, which may not add keys or code to this account.
    if run.account is None:
        run.put_account(Account(0))
    if run.existing_account().contract is None:
        _set_global_contract(run, action.state_init.code)
        _write_records(run, action.state_init.data)
    _keep_needed_deposit(run, action.deposit)


def _init_universal(run: ReceiptRun, action: kinds.UniversalStateInit) -> None:
    """Set the receiver's code, records and keys, unless it is initialized."""
    if run.account is None:  # the actor stays the predecessor, as above
        run.put_account(Account(0, bootstrap_nonce=_first_nonce(run)))
    account = run.existing_account()
    if account.bootstrap_nonce is not None:
        state = action.decoded
        if state is None:
            _fail("MalformedUniversalStateInit")
        run.put_account(structs.replace(account, bootstrap_nonce=None))
        if state.code is not None:
            _set_global_contract(run, state.code)
        _write_records(run, state.data)
        # A nonce that the account's own transaction has used must stay invalid.
        access_key = AccessKey(max(_first_nonce(run), account.bootstrap_nonce))
        for key in state.access_keys:
            run.store.access_keys.put(run.receipt.receiver_id, key.stored, access_key)
            run.change(storage=key_bytes(key, access_key))
    _keep_needed_deposit(run, action.deposit)


def _write_records(run: ReceiptRun, records: Mapping[bytes, bytes]) -> None:
    for key, value in records.items():
        run.store.data.put(run.receipt.receiver_id, key, value)
        run.change(storage=len(key) + len(value) + fees.RECORD_BYTES)


def _keep_needed_deposit(run: ReceiptRun, deposit: int) -> None:
    """Keep the part of a deposit that the receiver's storage needs; refund the remainder."""
    account = run.existing_account()
    missing = fees.storage_shortfall(account.amount + account.locked, account.storage_usage)
    needed = min(missing, deposit)
    run.change(amount=needed)
    if deposit > needed:
        run.new_receipts.append(refund(run.receipt.deposit_refund_receiver, deposit - needed))


# Calls -----------------------------------------------------------------------------------


def _function_call(run: ReceiptRun, call: kinds.FunctionCall) -> None:
    run.change(amount=call.deposit)
    vm = Vm(_call_context(run, call), run.state, run.profile, run.yields)
    try:
        result = run_code(vm, run.state, run.account, call.method_name)
    except CallError as error:
        raise ActionError({"FunctionCallError": error.failure}) from error
    finally:
        run.logs.extend(vm.logs)
        run.add_call_gas(vm)
    account = run.existing_account()
    run.tokens_minted += vm.subsidized
    run.yield_ids.update(vm.yield_ids)
    storage = vm.storage_usage - account.storage_usage
    run.change(amount=vm.balance - account.amount, storage=storage)
    _add_receipts(run, vm, result)


def _call_context(run: ReceiptRun, call: kinds.FunctionCall) -> CallContext:
    receipt, account = run.receipt, run.existing_account()
    is_last = run.index == len(receipt.actions) - 1  # only the last action's result is sent
    call_hash = action_hash(receipt.receipt_id, run.block.height, run.index)
    return CallContext(
        current_account_id=receipt.receiver_id,
        account=account,
        block=run.block,
        signer_id=receipt.signer_id,
        signer_public_key=receipt.signer_public_key,
        predecessor_id=receipt.predecessor_id,
        input=call.args,
        attached_deposit=call.deposit,
        prepaid_gas=call.gas,
        random_seed=random_seed_of(call_hash, run.block.random_value),
        action_hash=call_hash,
        chain_id=run.settings.chain_id,
        refund_to=receipt.deposit_refund_receiver,
        promise_results=run.inputs,
        data_receivers=tuple(r for _, r in receipt.output_data_receivers) if is_last else (),
        fixed_gas=fixed_gas(run.settings, receipt.receiver_id, call.method_name),
        code_size=len(run.store.codes[run.state.code_hash(account) or NO_CODE]),
    )


def fixed_gas(settings: Settings, contract_id: str, method_name: str) -> int | None:
    table = settings.vm_gas
    if not table:
        return None
    return table.get(f"{contract_id}.{method_name}", table.get(f".{method_name}"))


def _add_receipts(run: ReceiptRun, vm: Vm, result: bytes | Promise) -> None:
    receipt = run.receipt
    first = len(run.new_receipts)
    for draft in vm.drafts:
        try:
            transaction_validity.check_actions(draft.actions, draft.receiver_id, run.profile)
        except InvalidTransactionError as error:
            raise ActionError({"NewReceiptValidationError": error.error}) from None
        run.new_receipts.append(
            ActionReceipt(
                _NO_ID,
                receipt.receiver_id,
                draft.receiver_id,
                receipt.signer_id,
                receipt.signer_public_key,
                receipt.gas_price,
                tuple(draft.actions),
                tuple(draft.input_data_ids),
                tuple(draft.output_data_receivers),
                draft.refund_to,
                is_promise_yield=draft.is_yield,
            )
        )
    account_id = receipt.receiver_id
    run.new_receipts.extend(
        DataReceipt(_NO_ID, account_id, account_id, data_id, payload, is_promise_resume=True)
        for data_id, payload in vm.resumed
    )
    if isinstance(result, Promise):
        run.result = first + vm.drafts.index(result.drafts[0])
    else:
        run.result = result


# Stakes ----------------------------------------------------------------------------------


def _stake(run: ReceiptRun, action: kinds.Stake) -> None:
    """Propose a stake: an increase is locked at once, a decrease unlocked by a later epoch."""
    account = run.existing_account()
    if not action.stake and not account.locked:
        run.fail("TriesToUnstake")
    increase = max(0, action.stake - account.locked)
    if increase > account.amount:
        run.fail(
            "TriesToStake",
            stake=str(action.stake),
            locked=str(account.locked),
            balance=str(account.amount),
        )
    minimum = run.settings.minimum_stake
    if 0 < action.stake < minimum:
        run.fail("InsufficientStake", stake=str(action.stake), minimum_stake=str(minimum))
    run.proposals.append(Proposal(str(run.receipt.receiver_id), action.public_key, action.stake))
    run.change(amount=-increase, locked=increase)


# Delegated actions -----------------------------------------------------------------------


def _delegate(run: ReceiptRun, signed: kinds.SignedDelegate) -> None:
    """Send the actions that the receiver signed; the relayer, as signer, pays (NEP-366)."""
    inner = signed.delegate_action
    if not signed.verify():
        _fail("DelegateActionInvalidSignature")
    if run.block.height > inner.max_block_height:
        _fail("DelegateActionExpired")
    sender_id, receiver_id = inner.sender_id, run.receipt.receiver_id
    if sender_id != receiver_id:
        _fail(
            "DelegateActionSenderDoesNotMatchTxReceiver",
            sender_id=str(sender_id),
            receiver_id=str(receiver_id),
        )
    _use_delegate_key(run, signed)
    receipt, profile, actions = run.receipt, run.profile, tuple(inner.actions)
    send_gas = profile.send(actions, sender_id, inner.receiver_id)
    run.gas_burnt += send_gas
    run.gas_used += send_gas + profile.prepaid_gas(actions, inner.receiver_id)
    run.new_receipts.append(
        ActionReceipt(
            _NO_ID,
            sender_id,
            inner.receiver_id,
            receipt.signer_id,
            receipt.signer_public_key,
            receipt.gas_price,
            actions,
        )
    )


def _use_delegate_key(run: ReceiptRun, signed: kinds.SignedDelegate) -> None:
    """Check the sender's access key and nonce, and update the nonce."""
    inner = signed.delegate_action
    account_id, key = inner.sender_id, inner.public_key
    access_key = run.state.access_key(account_id, key.stored)
    if access_key is None:
        _refuse_key("AccessKeyNotFound", account_id=str(account_id), public_key=str(key))
    index = inner.nonce_index if isinstance(inner, kinds.DelegateActionV2) else None
    nonce = _last_delegate_nonce(run, key, access_key, index)
    if inner.nonce <= nonce:
        _fail("DelegateActionInvalidNonce", delegate_nonce=inner.nonce, ak_nonce=nonce)
    bound = run.block.height * transaction_validity.NONCES_PER_HEIGHT
    if inner.nonce >= bound:
        _fail("DelegateActionNonceTooLarge", delegate_nonce=inner.nonce, upper_bound=bound)
    permission = access_key.permission
    if isinstance(permission, FunctionCallPermission | GasKeyFunctionCall):
        transaction_validity.check_permission(
            inner.actions, inner.receiver_id, permission, _refuse_key
        )
    if index is None:
        run.store.access_keys.put(account_id, key.stored, AccessKey(inner.nonce, permission))
    else:
        run.store.gas_key_nonces.put(account_id, nonce_key(key.stored, index), inner.nonce)


def _last_delegate_nonce(
    run: ReceiptRun, key: PublicKey, access_key: AccessKey, index: int | None
) -> int:
    permission = access_key.permission
    if index is None:
        if isinstance(permission, GasKey):
            _refuse_key("DelegateActionRequiresNonGasKey")
        return access_key.nonce
    if not isinstance(permission, GasKey):
        _refuse_key("DelegateActionRequiresGasKey")
    nonce = run.state.gas_key_nonce(run.receipt.receiver_id, key.stored, index)
    if nonce is None:
        count = permission.num_nonces
        _fail("DelegateActionInvalidNonceIndex", nonce_index=index, num_nonces=count)
    return nonce


def _refuse_key(name: str, **payload: Json) -> Never:
    raise ActionError({"DelegateActionAccessKeyError": variant(name, payload or None)})


_EFFECTS: dict[type[kinds.Action], Callable[[ReceiptRun, Any], None]] = {
    kinds.CreateAccount: _create_account,
    kinds.DeployContract: _deploy,
    kinds.FunctionCall: _function_call,
    kinds.Transfer: _transfer,
    kinds.Stake: _stake,
    kinds.AddKey: _add_key,
    kinds.DeleteKey: _delete_key,
    kinds.DeleteAccount: _delete_account,
    kinds.Delegate: _delegate,
    kinds.DelegateV2: _delegate,
    kinds.DeployGlobalContract: _deploy_global,
    kinds.UseGlobalContract: lambda run, use: _set_global_contract(run, use.contract_identifier),
    kinds.DeterministicStateInit: _init_deterministic,
    kinds.TransferToGasKey: _transfer_to_gas_key,
    kinds.WithdrawFromGasKey: _withdraw_from_gas_key,
    kinds.UniversalStateInit: _init_universal,
}
