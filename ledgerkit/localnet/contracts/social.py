"""
The social database: one tree of texts, with a branch for each account.

A path such as ``alice.near/profile/name`` leads through nodes to a leaf. A node has a number
and the height of the last write through it; a leaf has a text, or none once it is deleted,
and its height. A node that also has a text keeps it in a leaf with an empty label.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, Struct, UnsetType

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import fees
from ledgerkit.localnet.records import SYSTEM_KEY
from ledgerkit.localnet.sdk import BAD_INPUT, U128, Contract, Records, call, run, to_json, view
from ledgerkit.localnet.store import Store
from ledgerkit.localnet.vm import Context, Vm
from ledgerkit.protocol import AccountId, CryptoHash, PublicKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Tree = dict[str, Any]

ROOT = 0
LEAF = 0  # in place of a node's number: the root is nobody's child
BYTE_COST = 10**19
MIN_BALANCE = 2000 * BYTE_COST
MAX_LABEL = 256
MAX_DEPTH = 126  # what JSON readers of contracts stop at, without what stands around `data`
GENESIS_GAS = 10**18
DENIED = "Permission Denied"
_LABEL = re.compile(rf"[A-Za-z0-9_.-]{{0,{MAX_LABEL}}}", re.ASCII)


class Node(Struct):
    """A branching: its children's numbers by label, `LEAF` for texts."""

    block: int
    children: dict[str, int] = {}


class Leaf(Struct):
    """A text, or None where it was deleted."""

    block: int
    value: str | None


class Account(Struct):
    """Who owns a branch, what is paid for it, and who else may write where."""

    node_id: int
    storage_balance: int = 0
    used_bytes: int = 0
    permissions: dict[str, list[int]] = {}  # nodes by account or public key


class GetOptions(Struct):
    """What `get` tells beside texts."""

    with_block_height: bool | None = None
    with_node_id: bool | None = None
    return_deleted: bool | None = None


class KeysOptions(Struct):
    """What `keys` tells of a path, and of which."""

    return_type: Literal["True", "BlockHeight", "NodeId"] | None = None
    return_deleted: bool | None = None
    values_only: bool | None = None


class SetOptions(Struct):
    """What becomes of the deposit that `set` does not need."""

    refund_unused_deposit: bool | None = None


class StorageBalance(Struct):
    """What an account paid for storage, and what of it is free."""

    total: U128
    available: U128


class StorageBounds(Struct):
    """What storage costs at least, and at most."""

    min: U128
    max: U128 | None = None


class Storage(Struct):
    """The bytes an account uses, and those it could use."""

    used_bytes: int
    available_bytes: int


class Social(Contract):
    """
    Keeps everybody's texts, at their own cost.

    Parameters
    ----------
    vm
        The machine.
    """

    class State(Struct):
        """How far the counting is, and the root's height."""

        nodes: int
        accounts: int
        block: int

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self.accounts = Records(vm, b"a", Account)
        self.names = Records(vm, b"i", str)
        self.nodes = Records(vm, b"n", Node)
        self.leaves = Records(vm, b"v", Leaf)

    @call(init=True)
    def new(self) -> None:
        """Begin with an empty root."""
        self.state = self.State(1, 0, self.vm.block_height)

    # Reading -----------------------------------------------------------------------------

    @view
    def get(self, keys: list[str], options: GetOptions | None = None) -> Tree:
        """Give the texts at paths, in which `*` is any label and a last `**` everything."""
        found: Tree = {}
        for path in _paths(keys):
            self._gather(found, ROOT, path, options or GetOptions())
        return _prune(found)

    @view
    def keys(self, keys: list[str], options: KeysOptions | None = None) -> Tree:
        """Tell which paths there are."""
        found: Tree = {}
        for path in _paths(keys):
            self._list(found, ROOT, path, options or KeysOptions())
        return _prune(found)

    def _gather(self, found: Tree, node_id: int, path: list[str], options: GetOptions) -> None:
        """Collect what lies at a path below a node."""
        label, rest = path[0], path[1:]
        is_deep = label == "**"
        self.require(not (is_deep and rest), "'**' pattern can only be used as a suffix")
        self._mark(found, node_id, options)
        for name, child in self._children(node_id, "*" if is_deep else label):
            if child == LEAF:
                if not rest:
                    _put(found, name, self._leaf(node_id, name), options)
            elif rest or is_deep:
                self._gather(_inner(found, name), child, rest or path, options)
            else:
                self._gather_own(found, name, child, options)

    def _gather_own(self, found: Tree, name: str, node_id: int, options: GetOptions) -> None:
        """Collect the text of a node itself, if it has one."""
        leaf = self._text_of(ROOT, name, node_id)
        if leaf is not None:
            if options.with_node_id:
                _inner(found, name)[":node"] = node_id
            _put(found, name, leaf, options)

    def _mark(self, found: Tree, node_id: int, options: GetOptions) -> None:
        """Note a node's height and number, where they are asked for."""
        if options.with_block_height:
            is_root = node_id == ROOT
            found[":block"] = self.state.block if is_root else self._node(node_id).block
        if options.with_node_id:
            found[":node"] = node_id

    def _list(self, found: Tree, node_id: int, path: list[str], options: KeysOptions) -> None:
        """Collect which paths there are below a node."""
        label, rest = path[0], path[1:]
        for name, child in self._children(node_id, label):
            if rest:
                if child != LEAF:
                    self._list(_inner(found, name), child, rest, options)
                continue
            told = self._told(node_id, name, child, options)
            if told is UNSET:
                continue
            if name not in found:
                found[name] = told
            elif isinstance(found[name], dict):
                found[name][""] = told

    def _told(
        self, node_id: int, name: str, child: int, options: KeysOptions
    ) -> int | UnsetType | None:
        """Tell of a path what is asked for; UNSET if it does not count."""
        is_node = child != LEAF and not options.values_only
        leaf = None if is_node else self._text_of(node_id, name, child)
        if leaf is None and not is_node:
            return UNSET
        if leaf is not None and leaf.value is None and not options.return_deleted:
            return UNSET
        if options.return_type == "NodeId":
            return child or None
        if options.return_type == "BlockHeight":
            return self._node(child).block if leaf is None else leaf.block
        return True

    def _text_of(self, node_id: int, name: str, child: int) -> Leaf | None:
        """Give a child's text: its own if it is a node, which may have none."""
        if child == LEAF:
            return self._leaf(node_id, name)
        return self._leaf(child, "") if "" in self._node(child).children else None

    def _children(self, node_id: int, label: str) -> Iterator[tuple[str, int]]:
        """Go through a node's children that a label of a path stands for."""
        if node_id == ROOT:
            yield from self._branches(label)
            return
        children = self._node(node_id).children
        if label == "*":
            yield from children.items()
        elif label in children:
            yield label, children[label]

    def _branches(self, label: str) -> Iterator[tuple[str, int]]:
        """Go through the accounts that a label stands for, and their branches' nodes."""
        indices = range(self.state.accounts) if label == "*" else ()
        names = [self.names.get(str(index)) for index in indices] or [label]
        for name in names:
            account = None if name is None else self.accounts.get(name)
            if name is not None and account is not None:
                yield name, account.node_id

    # Writing -----------------------------------------------------------------------------

    @call(payable=True)
    def set(self, data: Tree, options: SetOptions | None = None) -> dict[str, str]:
        """Write texts, delete where there is null; tell the height."""
        caller_id, deposit = self.vm.predecessor_id, self.vm.attached_deposit
        payer_id = caller_id if caller_id in data or not data else min(data)
        if not data and deposit:
            self.require(
                payer_id in self.accounts,
                "The attached deposit could not be added to any account",
            )
            self._credit(payer_id, deposit)
        for account_id in sorted(data):
            self._set_branch(account_id, data[account_id], deposit * (account_id == payer_id))
        if options is not None and options.refund_unused_deposit and deposit:
            self._refund(payer_id, deposit)
        return {"block_height": str(self.vm.block_height)}

    def _set_branch(self, account_id: str, value: Any, deposit: int) -> None:
        """Write into one account's branch."""
        account = self._account_or_new(account_id, deposit)
        caller_id = self.vm.predecessor_id
        granted = account.permissions
        writable = frozenset(
            granted.get(caller_id, []) + granted.get(str(self.vm.signer_public_key), [])
        )
        before = self.vm.storage_usage
        self._write(account.node_id, value, writable, may=caller_id == account_id, depth=1)
        self._settle(account_id, account, before)

    def _write(
        self, node_id: int, value: Any, writable: frozenset[int], *, may: bool, depth: int
    ) -> None:
        """Write a text to a node, or into its children."""
        self.require(depth <= MAX_DEPTH, BAD_INPUT)
        may = may or node_id in writable
        node = self._node(node_id)
        if _is_text(value):
            self.require(may, DENIED)
            self._put_leaf(node_id, node, "", value)
        else:
            self.require(
                isinstance(value, dict), "The JSON value is not a string, a null or an object"
            )
            for label in sorted(value):
                child = self._prepare(node_id, node, label, value[label], may=may)
                if child != LEAF:
                    self._write(child, value[label], writable, may=may, depth=depth + 1)
        self._keep(node_id, node)

    def _prepare(self, node_id: int, node: Node, label: str, value: Any, *, may: bool) -> int:
        """Write a child if it is a leaf; otherwise give the number of its node."""
        self._check_label(label)
        child = node.children.get(label)
        if child:
            return child
        self.require(may, DENIED)
        if _is_text(value):
            self._put_leaf(node_id, node, label, value)
            return LEAF
        return self._branch(node_id, node, label)

    def _branch(self, node_id: int, node: Node, label: str) -> int:
        """Make a node of a child; a leaf that was there becomes the new node's own text."""
        self.require(label, "The empty key's value should be a string or null")
        made = Node(self.vm.block_height, {})
        made_id = self._new_id()
        if label in node.children:
            held = self._leaf(node_id, label)
            self.leaves.remove(f"{node_id}/{label}")
            self.leaves.put(f"{made_id}/", held)
            made.children[""] = LEAF
        node.children[label] = made_id
        self._keep(made_id, made)
        return made_id

    def _put_leaf(self, node_id: int, node: Node, label: str, value: str | None) -> None:
        """Write a text, or the lack of one."""
        node.children[label] = LEAF
        self.leaves.put(f"{node_id}/{label}", Leaf(self.vm.block_height, value))

    def _keep(self, node_id: int, node: Node) -> None:
        """Write a node, at this height."""
        node.block = self.state.block = self.vm.block_height
        self.nodes.put(str(node_id), node)

    def _new_id(self) -> int:
        """Give a new node its number."""
        self.state.nodes += 1
        return int(self.state.nodes) - 1

    def _node(self, node_id: int) -> Node:
        """Read a node."""
        node = self.nodes.get(str(node_id))
        if node is None:
            self.vm.panic("Node is missing")
        return node

    def _leaf(self, node_id: int, label: str) -> Leaf:
        """Read a leaf."""
        leaf = self.leaves.get(f"{node_id}/{label}")
        if leaf is None:
            self.vm.panic("Leaf is missing")
        return leaf

    def _check_label(self, label: str) -> None:
        """Refuse a label with other characters, or too many."""
        self.require(
            _LABEL.fullmatch(label),
            f"Key contains invalid character or longer than {MAX_LABEL}",
        )

    # Permissions -------------------------------------------------------------------------

    @call(payable=True)
    def grant_write_permission(
        self,
        keys: list[str],
        predecessor_id: AccountId | None = None,
        public_key: str | None = None,
    ) -> None:
        """Let another account, or whoever signs with a key, write below paths."""
        self.require(self.vm.attached_deposit, "Requires at least 1 yocto")
        grantee = self._grantee(predecessor_id, public_key)
        account_id = self.vm.predecessor_id
        account = self._account_or_new(account_id, self.vm.attached_deposit)
        before = self.vm.storage_usage
        held = account.permissions.get(grantee, [])
        granted = {self._walk(account_id, account.node_id, key) for key in keys}
        account.permissions[grantee] = sorted(granted.union(held))
        self.accounts.put(account_id, account)
        self._settle(account_id, account, before)

    @view
    def is_write_permission_granted(
        self,
        key: str,
        predecessor_id: AccountId | None = None,
        public_key: str | None = None,
    ) -> bool:
        """Tell whether an account, or whoever signs with a key, may write at a path."""
        grantee = self._grantee(predecessor_id, public_key)
        first, *rest = key.split("/")
        account = self.accounts.get(first)
        granted = [] if account is None else account.permissions.get(grantee, [])
        if account is None or not granted:
            return False
        node_id = account.node_id
        for label in rest:
            if node_id in granted:
                return True
            node_id = self._node(node_id).children.get(label, LEAF)
            if node_id == LEAF:
                return False
        return node_id in granted

    def _grantee(self, account_id: str | None, public_key: str | None) -> str:
        """Name who is granted: one of the two."""
        self.require(
            account_id is None or public_key is None,
            "Can't supply both account_id and a public_key",
        )
        self.require(
            account_id is not None or public_key is not None,
            "Neither account_id or public_key is provided",
        )
        if public_key is None:
            return str(account_id)
        try:
            return str(PublicKey.from_text(public_key))
        except InvalidRequestError:
            self.vm.panic(BAD_INPUT)

    def _walk(self, account_id: str, node_id: int, key: str) -> int:
        """Find the node at a path, with what has to be made on the way."""
        first, *rest = key.split("/")
        self.require(first == account_id, "The path should start with the expected account_id")
        self.require(len(rest) < MAX_DEPTH, BAD_INPUT)
        for label in rest:
            self._check_label(label)
            node = self._node(node_id)
            child = node.children.get(label) or self._branch(node_id, node, label)
            self._keep(node_id, node)
            node_id = child
        self._keep(node_id, self._node(node_id))
        return node_id

    # Storage -----------------------------------------------------------------------------

    @call(payable=True)
    def storage_deposit(
        self, account_id: AccountId | None = None, *, registration_only: bool | None = None
    ) -> StorageBalance:
        """Pay for an account's storage."""
        deposit, whose = self.vm.attached_deposit, str(account_id or self.vm.predecessor_id)
        is_new, spare = whose not in self.accounts, 0
        if is_new:
            self.require(
                deposit >= MIN_BALANCE,
                "The attached deposit is less than the minimum storage balance",
            )
        if registration_only:
            spare = deposit - MIN_BALANCE if is_new else deposit
        if is_new:
            self._register(whose, deposit - spare)
        else:
            self._credit(whose, deposit - spare)
        if spare:
            self.vm.promise(self.vm.predecessor_id).transfer(spare)
        return self._balance_of(self._account(whose))

    @call(payable=True)
    def storage_withdraw(self, amount: U128 | None = None) -> StorageBalance:
        """Pay back what is not used."""
        self.one_yocto()
        account_id = self.vm.predecessor_id
        account = self._account(account_id)
        available = self._balance_of(account).available
        taken = available if amount is None else amount
        self.require(taken <= available, "The amount is greater than the available storage balance")
        if taken:
            account.storage_balance -= taken
            self.accounts.put(account_id, account)
            self.vm.promise(account_id).transfer(taken)
        return self._balance_of(account)

    @call(payable=True)
    def storage_unregister(self, *, force: bool | None = None) -> bool:  # noqa: ARG002 - the standard's
        """Refuse: a branch stays."""
        self.vm.panic("The account can't be unregistered")

    @view
    def storage_balance_bounds(self) -> StorageBounds:
        """Tell what storage costs at least."""
        return StorageBounds(U128(MIN_BALANCE))

    @view
    def storage_balance_of(self, account_id: AccountId) -> StorageBalance | None:
        """Tell what an account paid, None if it never did."""
        account = self.accounts.get(account_id)
        return None if account is None else self._balance_of(account)

    @view
    def get_account_storage(self, account_id: AccountId) -> Storage | None:
        """Tell the bytes an account uses, None if it has no branch."""
        account = self.accounts.get(account_id)
        if account is None:
            return None
        free = account.storage_balance // BYTE_COST - account.used_bytes
        return Storage(account.used_bytes, free)

    @view
    def get_num_accounts(self) -> int:
        """Count the branches."""
        return int(self.state.accounts)

    @view
    def get_accounts_paged(
        self, from_index: int | None = None, limit: int | None = None
    ) -> list[str]:
        """List the accounts that have a branch, the oldest first."""
        count, first = self.state.accounts, from_index or 0
        end = count if limit is None else min(count, first + limit)
        names = (self.names.get(str(index)) for index in range(max(first, 0), end))
        return [name for name in names if name is not None]

    @view
    def get_node_count(self) -> int:
        """Count the nodes, the root among them."""
        return int(self.state.nodes)

    def _account(self, account_id: str) -> Account:
        """Give an account's record."""
        account = self.accounts.get(account_id)
        if account is None:
            self.vm.panic(f"The account {account_id} is not registered")
        return account

    def _account_or_new(self, account_id: str, deposit: int) -> Account:
        """Give an account's record with a deposit added, a new one if there is none."""
        try:
            AccountId(account_id)
        except InvalidRequestError:
            self.vm.panic("Invalid account id")
        if account_id not in self.accounts:
            self.require(deposit >= MIN_BALANCE, "Not enough storage balance")
            self._register(account_id, deposit)
        else:
            self._credit(account_id, deposit)
        return self._account(account_id)

    def _register(self, account_id: str, balance: int) -> None:
        """Make a branch."""
        before = self.vm.storage_usage
        account = Account(self._new_id(), balance)
        self.accounts.put(account_id, account)
        self.names.put(str(self.state.accounts), account_id)
        self.state.accounts += 1
        self._keep(account.node_id, Node(0))
        self._settle(account_id, account, before)

    def _credit(self, account_id: str, deposit: int) -> None:
        """Add to what an account paid."""
        account = self._account(account_id)
        account.storage_balance += deposit
        self.accounts.put(account_id, account)

    def _settle(self, account_id: str, account: Account, before: int) -> None:
        """Put the bytes written since to an account's account."""
        account.used_bytes += self.vm.storage_usage - before
        self.require(
            account.used_bytes * BYTE_COST <= account.storage_balance, "Not enough storage balance"
        )
        self.accounts.put(account_id, account)

    def _refund(self, account_id: str, deposit: int) -> None:
        """Pay back what was not needed of a deposit."""
        account = self._account(account_id)
        spare = min(deposit, self._balance_of(account).available)
        if spare > 0:
            account.storage_balance -= spare
            self.accounts.put(account_id, account)
            self.vm.promise(self.vm.predecessor_id).transfer(spare)

    def _balance_of(self, account: Account) -> StorageBalance:
        """Tell what is paid, and what of it is free."""
        bound = max(account.used_bytes * BYTE_COST, MIN_BALANCE)
        total = account.storage_balance
        return StorageBalance(U128(total), U128(max(total - bound, 0)))

    # Worlds ------------------------------------------------------------------------------

    @classmethod
    def genesis(
        cls, data: Mapping[str, Tree], *, deposit: int, block_height: int
    ) -> Iterator[tuple[bytes, bytes]]:
        """
        Write the records that `new` and then a `set` of each account would leave.

        Parameters
        ----------
        data
            Each account's branch.
        deposit
            What each of them attaches; the contract's account has to have it.
        block_height
            The height of all nodes.

        Yields
        ------
        record
            A key and a value.
        """
        store = Store()
        context = _genesis_context("social", block_height)
        run(cls, Vm(context, store.at(), fees.PROFILES["86"]), "new")
        for account_id, branch in data.items():
            context = _genesis_context(
                account_id, block_height, deposit, to_json({"data": {account_id: branch}})
            )
            run(cls, Vm(context, store.at(), fees.PROFILES["86"]), "set")
        yield from store.at().records("social")


def _genesis_context(
    account_id: str, block_height: int, deposit: int = 0, data: bytes = b"{}"
) -> Context:
    """Pretend a call, before there is a block."""
    return Context(
        current_account_id="social",
        signer_id=account_id,
        signer_public_key=SYSTEM_KEY,
        predecessor_id=account_id,
        input=data,
        block_height=block_height,
        block_timestamp=0,
        epoch_height=0,
        balance=deposit,
        locked=0,
        storage_usage=0,
        attached_deposit=deposit,
        prepaid_gas=GENESIS_GAS,
        random_seed=bytes(32),
        action_hash=CryptoHash(bytes(32)),
        fixed_gas=0,
    )


def _is_text(value: Any) -> bool:
    """Tell whether a value becomes a leaf."""
    return value is None or isinstance(value, str)


def _paths(keys: list[str]) -> Iterator[list[str]]:
    """Split paths into labels; a slash at the end means nothing."""
    for key in keys:
        path = key.removesuffix("/").split("/")
        if path[-1]:
            yield path


def _inner(found: Tree, name: str) -> Tree:
    """Give a branch of what is found; a text that is there becomes the branch's own."""
    held = found.setdefault(name, {})
    if not isinstance(held, dict):
        held = found[name] = {"": held}
    return held


def _put(found: Tree, name: str, leaf: Leaf, options: GetOptions) -> None:
    """Add a text to what is found, unless it is there already."""
    if name in found:
        if isinstance(found[name], dict):
            _put(found[name], "", leaf, options)
    elif leaf.value is not None or options.return_deleted:
        with_height = {"": leaf.value, ":block": leaf.block}
        found[name] = with_height if options.with_block_height else leaf.value


def _prune(found: Tree) -> Tree:
    """Leave out the branches without anything, and sort the labels."""
    kept: Tree = {}
    for name in sorted(found):
        value = found[name]
        if isinstance(value, dict) and not name.startswith(":"):
            value = _prune(value)
            if all(label.startswith(":") for label in value):
                continue
        kept[name] = value
    return kept
