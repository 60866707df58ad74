"""
House of Stake: NEAR locked for voting power, in a lockup contract that its owner can stake.

`Venear` creates a `VenearLockup` for each owner, and counts veNEAR: the locked NEAR, and what it
grows by with time. Methods and results follow houseofstake/house-of-stake-contracts:
venear-contract and lockup-contract. Left out are votes, delegation, and the events of lockups.
"""

from msgspec import Struct

from ledgerkit.localnet.contract_sdk import (
    U128,
    Contract,
    JsonMap,
    call,
    state_view,
    succeeded,
    to_json,
    view,
)
from ledgerkit.localnet.contracts.fungible_token import (
    SPEC,
    TOO_SMALL,
    FungibleMetadata,
    StorageBalance,
)
from ledgerkit.localnet.contracts.lockup import StakingLockup
from ledgerkit.localnet.fees import TGAS
from ledgerkit.localnet.promises import Promise
from ledgerkit.localnet.vm import Vm
from ledgerkit.protocol import AccountId

MILLI_NEAR = 10**21
SECOND_NS = 10**9
VERSION = 1
# Source: voteagora/near-deployment-guides, MAINNET.md, for the settings of mainnet.
GROWTH = 12_860_000_000_000  # parts of 10^30 in a nanosecond
UNLOCK_DURATION_NS = 45 * 86_400 * SECOND_NS
LOCAL_DEPOSIT = 10**23
MIN_LOCKUP_DEPOSIT = 2 * 10**24


class LockupUpdate(Struct):
    """The locked balance of a lockup contract."""

    locked_near_balance: U128
    timestamp: U128
    lockup_update_nonce: U128


class VenearAccount(Struct):
    """An account of the veNEAR contract."""

    update_timestamp: int  # in nanoseconds, whole seconds
    near_balance: int = 0
    extra_venear_balance: int = 0
    lockup_version: int | None = None
    lockup_update_nonce: int = 0

    @property
    def total(self) -> int:
        """The veNEAR of the account."""
        return self.near_balance + self.extra_venear_balance


class Venear(Contract):
    """The contract that counts veNEAR, and creates lockup contracts."""

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self.accounts = JsonMap(vm, b"a", VenearAccount)

    @call(payable=True)
    def storage_deposit(self, account_id: AccountId | None = None) -> StorageBalance:
        """Register an account; its deposit counts as locked NEAR."""
        owner_id, amount = account_id or self.vm.predecessor_id, self.vm.attached_deposit
        if owner_id not in self.accounts:
            self.require(amount >= LOCAL_DEPOSIT, TOO_SMALL)
            self._save(owner_id, VenearAccount(self._now()), near_balance=LOCAL_DEPOSIT)
            amount -= LOCAL_DEPOSIT
        if amount:
            self.vm.promise(self.vm.predecessor_id).transfer(amount)
        return StorageBalance(U128(LOCAL_DEPOSIT), U128(0))

    @call(payable=True)
    def deploy_lockup(self) -> Promise:
        owner_id, deposit = AccountId(self.vm.predecessor_id), self.vm.attached_deposit
        self.require(owner_id in self.accounts, f"Account {owner_id} is not registered")
        message = f"Not enough deposit. Required: {MIN_LOCKUP_DEPOSIT}"
        self.require(deposit >= MIN_LOCKUP_DEPOSIT, message)
        nonce = U128(self.vm.block_height * 1_000_000)
        args = {
            "version": VERSION,
            "owner_account_id": owner_id,
            "venear_account_id": self.vm.current_account_id,
            "unlock_duration_ns": U128(UNLOCK_DURATION_NS),
            "staking_pool_whitelist_account_id": "lockup-whitelist.near",
            "lockup_update_nonce": nonce,
            "min_lockup_deposit": U128(MIN_LOCKUP_DEPOSIT),
        }
        batch = self.vm.promise(self.get_lockup_account_id(owner_id)).create_account()
        batch.deploy_contract(VenearLockup.code)
        batch.function_call("new", to_json(args), deposit=deposit, gas=20 * TGAS)
        details = {"account_id": owner_id, "lockup_update_nonce": nonce}
        details |= {"version": VERSION, "lockup_deposit": U128(deposit)}
        return self.call_back(batch, "on_lockup_deployed", 15 * TGAS, **details)

    @call(private=True)
    def on_lockup_deployed(
        self, version: int, account_id: AccountId, lockup_update_nonce: U128, lockup_deposit: U128
    ) -> str | None:
        """Store the version of the lockup contract, or return the deposit."""
        if not succeeded(self.vm):
            self.vm.promise(account_id).transfer(int(lockup_deposit))
            return None
        account = self.accounts.required(account_id, "Account not found")
        account.lockup_version, account.lockup_update_nonce = version, int(lockup_update_nonce)
        self.accounts.put(account_id, account)
        return self.get_lockup_account_id(account_id)

    @call
    def on_lockup_update(
        self, version: int, owner_account_id: AccountId, update: dict[str, LockupUpdate]
    ) -> None:
        """Store the locked balance of an owner's lockup contract."""
        lockup_id = self.get_lockup_account_id(owner_account_id)
        self.require(self.vm.predecessor_id == lockup_id, "Permission denied")
        account, newest = self._updated(owner_account_id), update["V1"]
        self.require(account.lockup_version == version, "Invalid lockup version")
        self.require(newest.lockup_update_nonce > account.lockup_update_nonce, "Invalid nonce")
        account.lockup_update_nonce = int(newest.lockup_update_nonce)
        self._save(owner_account_id, account, newest.locked_near_balance + LOCAL_DEPOSIT)

    def _now(self) -> int:
        return self.vm.block_timestamp // SECOND_NS * SECOND_NS

    def _updated(self, account_id: str) -> VenearAccount:
        """Return an account with its growth until now."""
        account = self.accounts.required(account_id, f"Account {account_id} is not registered")
        growing = account.near_balance // MILLI_NEAR * MILLI_NEAR
        elapsed_ns = self._now() - account.update_timestamp
        account.extra_venear_balance += GROWTH * elapsed_ns * growing // 10**30
        account.update_timestamp = self._now()
        return account

    def _save(self, account_id: str, account: VenearAccount, near_balance: int) -> None:
        """Write an account with a new balance, and log the change of its stored veNEAR."""
        stored = self.accounts.get(account_id)
        # Source: venear-contract/src/lockup.rs, `internal_lockup_update`: the deposit is not added.
        if near_balance - LOCAL_DEPOSIT < account.near_balance:
            account.extra_venear_balance = 0
        account.near_balance = near_balance
        change = account.total - (stored.total if stored else 0)
        if change:
            row = {"owner_id": str(account_id), "amount": str(abs(change))}
            self.event("nep141", "1.0.0", "ft_mint" if change > 0 else "ft_burn", [row])
        self.accounts.put(account_id, account)

    @view
    def get_lockup_account_id(self, account_id: AccountId) -> str:
        """Return the account of an owner's lockup contract, whether or not there is one."""
        owner_hash = self.vm.sha256(account_id.encode()).hex()
        return f"{owner_hash[:40]}.{self.vm.current_account_id}"

    @view
    def ft_balance_of(self, account_id: AccountId) -> U128:
        return U128(self._updated(account_id).total if account_id in self.accounts else 0)

    @view
    def ft_metadata(self) -> FungibleMetadata:
        """Return the metadata of veNEAR, which cannot be transferred."""
        return FungibleMetadata(spec=SPEC, name="veNEAR", symbol="VENEAR", decimals=24)


class VenearLockup(StakingLockup):
    """A lockup contract whose owner locks as much of its NEAR as they like."""

    class State(StakingLockup.State, kw_only=True):
        """The locked NEAR, and the NEAR that is being unlocked."""

        venear_account_id: str
        unlock_duration_ns: int
        lockup_update_nonce: int
        version: int
        min_lockup_deposit: int
        locked: int = 0
        pending: int = 0
        unlock_timestamp: int = 0

    @call(payable=True, init=True)
    def new(  # noqa: PLR0917 - the arguments of the original
        self,
        version: int,
        owner_account_id: AccountId,
        venear_account_id: AccountId,
        unlock_duration_ns: U128,
        staking_pool_whitelist_account_id: AccountId,  # noqa: ARG002 - every pool is allowed
        lockup_update_nonce: U128,
        min_lockup_deposit: U128,
    ) -> None:
        """Initialize the contract; nothing is locked yet."""
        self.require(self.vm.balance >= min_lockup_deposit, "Not enough NEAR for storage")
        self.state = self.State(
            owner_account_id=str(owner_account_id),
            venear_account_id=str(venear_account_id),
            unlock_duration_ns=int(unlock_duration_ns),
            lockup_update_nonce=int(lockup_update_nonce),
            version=version,
            min_lockup_deposit=int(min_lockup_deposit),
        )

    def check_owner(self) -> None:
        """Panic unless the owner calls with one yoctoNEAR."""
        super().check_owner()
        self.assert_one_yocto()

    def available(self) -> int:
        return max(self.vm.balance - int(self.state.min_lockup_deposit), 0)

    def transferable(self) -> int:
        return min(self.available(), self.get_venear_liquid_balance())

    @call(payable=True)
    def lock_near(self, amount: U128 | None = None) -> None:
        """Lock NEAR of this contract; staked NEAR too."""
        self.check_owner()
        liquid = self.get_venear_liquid_balance()
        amount = liquid if amount is None else amount
        self.require(amount <= liquid, "Invalid amount")
        self.state.locked += amount
        self._update_venear()

    @call(payable=True)
    def begin_unlock_near(self, amount: U128 | None = None) -> None:
        """Begin to unlock locked NEAR, which takes the unlock duration."""
        self.check_owner()
        state = self.state
        amount = U128(state.locked) if amount is None else amount
        self.require(amount <= state.locked, "Invalid amount")
        state.locked -= amount
        state.pending += amount
        state.unlock_timestamp = self.vm.block_timestamp + state.unlock_duration_ns
        self._update_venear()

    def _update_venear(self) -> None:
        state = self.state
        state.lockup_update_nonce += 1
        update = LockupUpdate(
            *map(U128, (state.locked, self.vm.block_timestamp, state.lockup_update_nonce))
        )
        args = {"version": state.version, "owner_account_id": state.owner_account_id}
        promise = self.vm.promise(state.venear_account_id)
        data = to_json({**args, "update": {"V1": update}})
        promise.function_call("on_lockup_update", data, gas=20 * TGAS)

    get_venear_locked_balance = state_view("locked", U128)
    get_venear_pending_balance = state_view("pending", U128)
    get_venear_unlock_timestamp = state_view("unlock_timestamp", U128)

    @view
    def get_venear_liquid_balance(self) -> U128:
        """Return the NEAR that is neither locked nor being unlocked, staked or not."""
        return U128(self.get_balance() - self.state.locked - self.state.pending)

    @view
    def get_liquid_owners_balance(self) -> U128:
        """Return the account's balance without what its storage needs; locked NEAR counts."""
        return U128(self.available())
