"""
The social database: one tree of strings, with a branch for each account.

A path such as ``alice.near/profile/name`` leads through nodes to a leaf. A node has an id
and the height of the last write below it; a leaf has a height and a string, or null after
a deletion. A node's own string is stored in a child leaf with an empty label.
Methods and panics follow NearSocial/social-db, the contract of social.near.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet import chain_types
from ledgerkit.localnet.contract_sdk import (
    BAD_INPUT,
    U128,
    Contract,
    JsonMap,
    call,
    run_method,
    to_json,
    view,
)
from ledgerkit.localnet.contracts.fungible_token import TOO_LARGE, TOO_SMALL, StorageBalance
from ledgerkit.localnet.fees import PROFILES, STORAGE_BYTE_PRICE
from ledgerkit.localnet.state import StateStore
from ledgerkit.localnet.vm import Vm
from ledgerkit.protocol import AccountId, PublicKey

Tree = dict[str, Any]

ROOT = 0
LEAF = 0  # a leaf in `Node.children`: the root's id, which is never a child
MIN_BALANCE = 2000 * STORAGE_BYTE_PRICE
MAX_LABEL = 256
MAX_DEPTH = 126  # the recursion limit of serde_json, 128, less the two levels around `data`
_LABEL = re.compile(rf"[A-Za-z0-9_.-]{{0,{MAX_LABEL}}}", re.ASCII)


class Node(Struct):
    """A node: its children's ids by label, `LEAF` for leaves."""

    block: int
    children: dict[str, int] = {}


class Leaf(Struct):
    """A leaf: its string, None after a deletion."""

    block: int
    value: str | None


class Account(Struct):
    """An account's branch: its node, storage and write permissions."""

    node_id: int
    storage_balance: int = 0
    used_bytes: int = 0
    permissions: dict[str, list[int]] = {}  # node ids by account id or public key


class GetOptions(Struct):
    """The options of `get`."""

    with_block_height: bool | None = None
    with_node_id: bool | None = None
    return_deleted: bool | None = None


class KeysOptions(Struct):
    """The options of `keys`."""

    return_type: Literal["True", "BlockHeight", "NodeId"] | None = None
    return_deleted: bool | None = None
    values_only: bool | None = None


class SetOptions(Struct):
    """The options of `set`."""

    refund_unused_deposit: bool | None = None


class Storage(Struct):
    """The storage that an account uses and can still use, in bytes."""

    used_bytes: int
    available_bytes: int


class SocialDb(Contract, code_name="ledgerkit.localnet.contracts.social.Social"):
    """A database whose accounts pay for the storage of their own branches."""

    class State(Struct):
        """The numbers of nodes and accounts, and the root's height."""

        nodes: int
        accounts: int
        block: int

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self.accounts = JsonMap(vm, b"a", Account)
        self.names = JsonMap(vm, b"i", str)
        self.nodes = JsonMap(vm, b"n", Node)
        self.leaves = JsonMap(vm, b"v", Leaf)

    @call(init=True)
    def new(self) -> None:
        self.state = self.State(1, 0, self.vm.block_height)

    # Reading -----------------------------------------------------------------------------

    @view
    def get(self, keys: list[str], options: GetOptions | None = None) -> Tree:
        """Return the strings at paths: `*` matches a label, a final `**` a whole branch."""
        tree: Tree = {}
        for path in _split_paths(keys):
            self._collect(tree, ROOT, path, options or GetOptions())
        return _prune(tree)

    @view
    def keys(self, keys: list[str], options: KeysOptions | None = None) -> Tree:
        """Return the tree of existing keys that match paths."""
        tree: Tree = {}
        for path in _split_paths(keys):
            self._collect_keys(tree, ROOT, path, options or KeysOptions())
        return _prune(tree)

    def _collect(self, tree: Tree, node_id: int, path: list[str], options: GetOptions) -> None:
        label, *subpath = path
        is_deep = label == "**"
        self.require(not (is_deep and subpath), "'**' pattern can only be used as a suffix")
        if options.with_block_height:
            tree[":block"] = self.state.block if node_id == ROOT else self._node(node_id).block
        if options.with_node_id:
            tree[":node"] = node_id
        for name, child in self._children(node_id, "*" if is_deep else label):
            if child != LEAF and (subpath or is_deep):
                self._collect(_subtree(tree, name), child, subpath or path, options)
            elif not subpath and (leaf := self._string_of(node_id, name, child)):
                if child != LEAF and options.with_node_id:
                    _subtree(tree, name)[":node"] = child
                _add_leaf(tree, name, leaf, options)

    def _collect_keys(
        self, tree: Tree, node_id: int, path: list[str], options: KeysOptions
    ) -> None:
        label, *subpath = path
        for name, child in self._children(node_id, label):
            if subpath:
                if child != LEAF:
                    self._collect_keys(_subtree(tree, name), child, subpath, options)
                continue
            value = self._key_value(node_id, name, child, options)
            if value is UNSET:
                continue
            if name not in tree:
                tree[name] = value
            elif isinstance(tree[name], dict):
                tree[name][""] = value

    def _key_value(
        self, node_id: int, name: str, child: int, options: KeysOptions
    ) -> int | UnsetType | None:
        """Return a key's value in the result of `keys`, UNSET if the key is left out."""
        leaf = None
        if child == LEAF or options.values_only:
            leaf = self._string_of(node_id, name, child)
            if leaf is None or (leaf.value is None and not options.return_deleted):
                return UNSET
        if options.return_type == "NodeId":
            return child or None
        if options.return_type == "BlockHeight":
            return self._node(child).block if leaf is None else leaf.block
        return True

    def _string_of(self, node_id: int, name: str, child: int) -> Leaf | None:
        """Return a child's leaf; for a node its leaf with an empty label, or None."""
        if child == LEAF:
            return self._leaf(node_id, name)
        return self._leaf(child, "") if "" in self._node(child).children else None

    def _children(self, node_id: int, label: str) -> Iterator[tuple[str, int]]:
        if node_id == ROOT:
            yield from self._branches(label)
            return
        children = self._node(node_id).children
        if label == "*":
            yield from children.items()
        elif label in children:
            yield label, children[label]

    def _branches(self, label: str) -> Iterator[tuple[str, int]]:
        indices = range(self.state.accounts) if label == "*" else ()
        names = [self.names.get(str(index)) for index in indices] or [label]
        for name in names:
            account = None if name is None else self.accounts.get(name)
            if name is not None and account is not None:
                yield name, account.node_id

    # Writing -----------------------------------------------------------------------------

    @call(payable=True)
    def set(self, data: Tree, options: SetOptions | None = None) -> dict[str, str]:
        """Write strings, delete leaves at nulls; return the block height."""
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
            self._refund_unused(payer_id, deposit)
        return {"block_height": str(self.vm.block_height)}

    def _set_branch(self, account_id: str, value: Any, deposit: int) -> None:
        account = self._account_or_new(account_id, deposit)
        caller_id = self.vm.predecessor_id
        granted = account.permissions
        writable = frozenset(
            granted.get(caller_id, []) + granted.get(str(self.vm.signer_public_key), [])
        )
        before = self.vm.storage_usage
        self._write(account.node_id, value, writable, is_permitted=caller_id == account_id, depth=1)
        self._charge_storage(account_id, account, before)

    def _write(
        self, node_id: int, value: Any, writable: frozenset[int], *, is_permitted: bool, depth: int
    ) -> None:
        """Write a string to a node, or an object to its children."""
        self.require(depth <= MAX_DEPTH, BAD_INPUT)
        is_permitted = is_permitted or node_id in writable
        node = self._node(node_id)
        children = {"": value} if _is_leaf(value) else value
        self.require(
            isinstance(children, dict), "The JSON value is not a string, a null or an object"
        )
        for label, member in sorted(children.items()):
            child = self._write_child(node_id, node, label, member, is_permitted=is_permitted)
            if child != LEAF:
                self._write(child, member, writable, is_permitted=is_permitted, depth=depth + 1)
        self._put_node(node_id, node)

    def _write_child(
        self, node_id: int, node: Node, label: str, value: Any, *, is_permitted: bool
    ) -> int:
        """Write a leaf child and return LEAF, or return the id of a child node."""
        self._check_label(label)
        child = node.children.get(label)
        if child:
            return child
        self.require(is_permitted, "Permission Denied")
        if _is_leaf(value):
            self._put_leaf(node_id, node, label, value)
            return LEAF
        return self._add_node(node_id, node, label)

    def _add_node(self, node_id: int, node: Node, label: str) -> int:
        """Add a child node; return its id. An existing leaf becomes the node's own string."""
        self.require(label, "The empty key's value should be a string or null")
        child = Node(self.vm.block_height, {})
        child_id = self._new_id()
        if label in node.children:
            leaf = self._leaf(node_id, label)
            self.leaves.remove(f"{node_id}/{label}")
            self.leaves.put(f"{child_id}/", leaf)
            child.children[""] = LEAF
        node.children[label] = child_id
        self._put_node(child_id, child)
        return child_id

    def _put_leaf(self, node_id: int, node: Node, label: str, value: str | None) -> None:
        node.children[label] = LEAF
        self.leaves.put(f"{node_id}/{label}", Leaf(self.vm.block_height, value))

    def _put_node(self, node_id: int, node: Node) -> None:
        node.block = self.state.block = self.vm.block_height
        self.nodes.put(str(node_id), node)

    def _new_id(self) -> int:
        self.state.nodes += 1
        return int(self.state.nodes) - 1

    def _node(self, node_id: int) -> Node:
        return self.nodes.required(str(node_id), "Node is missing")

    def _leaf(self, node_id: int, label: str) -> Leaf:
        return self.leaves.required(f"{node_id}/{label}", "Leaf is missing")

    def _check_label(self, label: str) -> None:
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
        public_key: PublicKey | None = None,
    ) -> None:
        """Allow another account, or a key that signs, to write below paths."""
        self.require(self.vm.attached_deposit, "Requires at least 1 yocto")
        self.require(
            predecessor_id is None or public_key is None,
            "Can't supply both account_id and a public_key",
        )
        grantee = predecessor_id if public_key is None else public_key
        self.require(grantee is not None, "Neither account_id or public_key is provided")
        account_id = self.vm.predecessor_id
        account = self._account_or_new(account_id, self.vm.attached_deposit)
        before = self.vm.storage_usage
        granted = account.permissions.get(str(grantee), [])
        node_ids = {self._ensure_path(account_id, account.node_id, key) for key in keys}
        account.permissions[str(grantee)] = sorted(node_ids.union(granted))
        self.accounts.put(account_id, account)
        self._charge_storage(account_id, account, before)

    def _ensure_path(self, account_id: str, node_id: int, key: str) -> int:
        """Return the id of the node at a path; create missing nodes and update heights."""
        first, *labels = key.split("/")
        self.require(first == account_id, "The path should start with the expected account_id")
        self.require(len(labels) < MAX_DEPTH, BAD_INPUT)
        for label in labels:
            self._check_label(label)
            node = self._node(node_id)
            child = node.children.get(label) or self._add_node(node_id, node, label)
            self._put_node(node_id, node)
            node_id = child
        self._put_node(node_id, self._node(node_id))
        return node_id

    # Storage -----------------------------------------------------------------------------

    @call(payable=True)
    def storage_deposit(
        self, account_id: AccountId | None = None, *, registration_only: bool | None = None
    ) -> StorageBalance:
        """Add to an account's storage deposit, by default the caller's."""
        deposit, owner_id = self.vm.attached_deposit, str(account_id or self.vm.predecessor_id)
        if owner_id not in self.accounts:
            self.require(deposit >= MIN_BALANCE, TOO_SMALL)
            added = MIN_BALANCE if registration_only else deposit
            self._register(owner_id, added)
        else:
            added = 0 if registration_only else deposit
            self._credit(owner_id, added)
        if deposit > added:
            self.vm.promise(self.vm.predecessor_id).transfer(deposit - added)
        return self._balance_of(self._account(owner_id))

    @call(payable=True)
    def storage_withdraw(self, amount: U128 | None = None) -> StorageBalance:
        """Withdraw the available storage deposit, or a part of it."""
        self.assert_one_yocto()
        account_id = self.vm.predecessor_id
        account = self._account(account_id)
        available = self._balance_of(account).available
        refund = available if amount is None else amount
        self.require(refund <= available, TOO_LARGE)
        if refund:
            account.storage_balance -= refund
            self.accounts.put(account_id, account)
            self.vm.promise(account_id).transfer(refund)
        return self._balance_of(account)

    @view
    def storage_balance_of(self, account_id: AccountId) -> StorageBalance | None:
        """Return an account's storage deposit, null if it has no branch."""
        account = self.accounts.get(account_id)
        return None if account is None else self._balance_of(account)

    @view
    def get_account_storage(self, account_id: AccountId) -> Storage | None:
        """Return the bytes that an account uses, null if it has no branch."""
        account = self.accounts.get(account_id)
        if account is None:
            return None
        available = account.storage_balance // STORAGE_BYTE_PRICE - account.used_bytes
        return Storage(account.used_bytes, available)

    def _account(self, account_id: str) -> Account:
        return self.accounts.required(account_id, f"The account {account_id} is not registered")

    def _account_or_new(self, account_id: str, deposit: int) -> Account:
        """Add a deposit to an account, registering it if necessary; return its record."""
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
        before = self.vm.storage_usage
        account = Account(self._new_id(), balance)
        self.accounts.put(account_id, account)
        self.names.put(str(self.state.accounts), account_id)
        self.state.accounts += 1
        self._put_node(account.node_id, Node(0))
        self._charge_storage(account_id, account, before)

    def _credit(self, account_id: str, deposit: int) -> None:
        account = self._account(account_id)
        account.storage_balance += deposit
        self.accounts.put(account_id, account)

    def _charge_storage(self, account_id: str, account: Account, before: int) -> None:
        """Charge an account for the storage used since `before`, and store its record."""
        account.used_bytes += self.vm.storage_usage - before
        self.require(
            account.used_bytes * STORAGE_BYTE_PRICE <= account.storage_balance,
            "Not enough storage balance",
        )
        self.accounts.put(account_id, account)

    def _refund_unused(self, account_id: str, deposit: int) -> None:
        account = self._account(account_id)
        unused = min(deposit, self._balance_of(account).available)
        if unused > 0:
            account.storage_balance -= unused
            self.accounts.put(account_id, account)
            self.vm.promise(self.vm.predecessor_id).transfer(unused)

    def _balance_of(self, account: Account) -> StorageBalance:
        required = max(account.used_bytes * STORAGE_BYTE_PRICE, MIN_BALANCE)
        total = account.storage_balance
        return StorageBalance(U128(total), U128(max(total - required, 0)))

    # Genesis -----------------------------------------------------------------------------

    @classmethod
    def genesis(
        cls, data: Mapping[str, Tree], *, deposit: int, block_height: int
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the records that `new` and a `set` of each account, with a deposit, would write."""
        store = StateStore()
        context = _genesis_context("social", block_height)
        run_method(cls, Vm(context, store.at(), PROFILES["86"]), "new")
        for account_id, branch in data.items():
            context = _genesis_context(
                account_id, block_height, deposit, to_json({"data": {account_id: branch}})
            )
            run_method(cls, Vm(context, store.at(), PROFILES["86"]), "set")
        yield from store.at().records("social")


def _genesis_context(
    account_id: str, block_height: int, deposit: int = 0, data: bytes = b"{}"
) -> chain_types.CallContext:
    return chain_types.CallContext(
        current_account_id="social",
        signer_id=account_id,
        predecessor_id=account_id,
        account=chain_types.Account(deposit),
        block=chain_types.BlockContext(block_height, 0, 0, chain_types.NO_CODE, 0, {}),
        input=data,
        attached_deposit=deposit,
        prepaid_gas=10**18,
        fixed_gas=0,
    )


def _is_leaf(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _split_paths(keys: list[str]) -> Iterator[list[str]]:
    for key in keys:
        path = key.removesuffix("/").split("/")
        if path[-1]:
            yield path


def _subtree(tree: Tree, name: str) -> Tree:
    """Return a member of `tree` as an object; an existing string moves to the label ""."""
    member = tree.setdefault(name, {})
    if not isinstance(member, dict):
        member = tree[name] = {"": member}
    return member


def _add_leaf(tree: Tree, name: str, leaf: Leaf, options: GetOptions) -> None:
    """Add a leaf to `tree`, unless there is one of this name."""
    if name in tree:
        if isinstance(tree[name], dict):
            _add_leaf(tree[name], "", leaf, options)
    elif leaf.value is not None or options.return_deleted:
        with_height = {"": leaf.value, ":block": leaf.block}
        tree[name] = with_height if options.with_block_height else leaf.value


def _prune(tree: Tree) -> Tree:
    """Return `tree` without empty branches, its labels sorted."""
    pruned: Tree = {}
    for name in sorted(tree):
        value = tree[name]
        if isinstance(value, dict) and not name.startswith(":"):
            value = _prune(value)
            if all(label.startswith(":") for label in value):
                continue
        pruned[name] = value
    return pruned
