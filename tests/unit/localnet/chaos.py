"""Worlds in which a thousand random transactions happen, good and bad, each from a seed."""

from random import Random

from ledgerkit import protocol
from ledgerkit.localnet.contract_sdk import to_json
from ledgerkit.localnet.contracts.fungible_token import REGISTRATION, FungibleToken
from ledgerkit.localnet.execution_errors import InvalidTransactionError
from ledgerkit.localnet.genesis import Genesis
from ledgerkit.localnet.indexer import Indexer
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.world import World
from ledgerkit.protocol.access_keys import GasKey
from tests.unit.localnet.ledger import START, TGAS, N, Script, do, public, secret

PEOPLE = ("ann.near", "ben.near", "cat.near", "dan.near", "eve.near", "fay.near")
SCRIPTS = ("s.near", "t.near", "u.near")
TOKEN = "token.near"
BOUNDARIES = ("a", "b", "bz", "c", "ea", "f", "m", "s.near", "t", "token", "u", "z")
KEYS = [f"key{number}" for number in range(12)]
GAS_KEYS = ("gas0", "gas1")
# Some fit into an account without a balance, and some need one.
STATES = [
    protocol.StateInit(code, {b"a": bytes(size)})
    for code in (Script.code_hash, "ben.near")
    for size in (0, 9, 3000)
]
UNIVERSAL_STATES = [
    protocol.UniversalStateInitV1(code, {b"a": bytes(size)}, [public("key0")])
    for code in (None, Script.code_hash, "ben.near")
    for size in (0, 3000)
]

PLAIN = "log write write remove value results results resume panic burn".split()
PROMISING = "call call call transfer batch wait".split()
THEN = ["then"] * 4


class Chaos:
    """
    A world and who does things in it.

    Parameters
    ----------
    seed
        Of everything that is left to chance.
    **more
        Settings of the world.
    """

    holders: tuple = (*PEOPLE[:3], "s.near")  # of the token

    def __init__(self, seed, **more):
        self.random = random = Random(seed)  # noqa: S311 - no secrets
        boundaries = tuple(sorted(random.sample(BOUNDARIES, random.randrange(8))))
        shard_ids = list(range(20, 21 + len(boundaries)))
        random.shuffle(shard_ids)
        self.settings = Settings(
            genesis_height=START,
            profile=random.choice(["84", "86", "86", "87"]),
            boundaries=boundaries,
            shard_ids=tuple(shard_ids),
            epoch_length=random.choice([10, 25, 1000]),
            reward_per_epoch=random.choice([0, 100]),
            validity=60,
            yield_timeout=12,
            **more,
        )
        self.genesis = genesis = Genesis()
        for name in (*PEOPLE, *SCRIPTS):
            contract = Script if name in SCRIPTS else None
            staked = {"locked": 50 * N, "validator_key": public("v")} if name == "ann.near" else {}
            genesis.account(name, 200 * N, keys=[public(name)], contract=contract, **staked)
        records = FungibleToken.genesis(TOKEN, dict.fromkeys(self.holders, 10**6))
        genesis.account(
            TOKEN, 50 * N, keys=[public(TOKEN)], contract=FungibleToken, records=records
        )
        self.add_to(genesis)
        self.world = World(self.settings, genesis)
        self.indexer = Indexer(self.world)
        self.signers = [(name, name) for name in (*PEOPLE, *SCRIPTS, TOKEN)]
        self.names = [*PEOPLE, *SCRIPTS, TOKEN, "nobody.near", "0x" + "cd" * 20]
        self.nonces: dict = {}
        self.kept: dict = {}  # the states of the heads there were
        self.made = self.refused = 0

    def add_to(self, genesis):
        """Add accounts to the genesis; none here."""

    def block(self):
        """Send some transactions and make a block, now and then after a gap or without a chunk."""
        for _ in range(self.random.randrange(40)):
            self.send()
        skip = self.random.choice([0] * 9 + [1, 3])
        missing = [self.random.choice(self.settings.shard_ids)]
        self.world.advance(skip=skip, missing=missing if self.random.random() < 0.1 else ())

    def send(self):
        """Send one transaction, if a node would admit it; most are such."""
        signer_id, key = self.signer()
        receiver_id, actions = self.wanted(signer_id)
        held = secret(key)
        index = self.index(signer_id, key)
        nonce = self.nonce(signer_id, key, index)
        block = self.world.chain.head.hash if self.random.random() < 0.98 else bytes(32)
        version = 1 if self.has_gas_keys and self.random.random() < 0.1 else 0
        tx = protocol.Transaction(
            signer_id,
            held.public_key,
            nonce,
            receiver_id,
            block,
            actions,
            version=version if index is None else 1,
            nonce_index=index,
        )
        signer = held if self.random.random() < 0.99 else secret("forger")
        signed = protocol.SignedTransaction(tx, signer.sign(tx.hash))
        try:
            self.world.submit(protocol.SignedTransaction.decode(signed.encode()))
        except InvalidTransactionError:
            self.refused += 1
            return
        self.made += 1
        self.nonces[signer_id, key, index] = nonce

    def signer(self):
        """Choose who signs, with which key: nearly always one that may."""
        state = self.world.state()
        chosen = self.random.sample(self.signers, len(self.signers))
        for signer_id, key in chosen:
            held = state.access_key(signer_id, public(key).packed)
            rich = held is not None and (self.world.balance(signer_id) or 0) > N // 2
            if rich or self.random.random() < 0.01:
                return signer_id, key
        return chosen[0]

    @property
    def has_gas_keys(self):
        return self.settings.profile != "84"

    def index(self, signer_id, key):
        """Choose the index of a gas key's nonce; nearly always one that there is."""
        held = self.world.state().access_key(signer_id, public(key).packed)
        if held is None or not isinstance(held.permission, GasKey):
            return None
        if self.random.random() < 0.03:
            return self.random.choice([None, held.permission.num_nonces])
        return self.random.randrange(held.permission.num_nonces)

    def nonce(self, signer_id, key, index):
        """Choose a nonce: nearly always a good one."""
        state, packed = self.world.state(), public(key).packed
        held = state.access_key(signer_id, packed)
        known = held.nonce if held else 0
        if index is not None:
            known = state.gas_key_nonce(signer_id, packed, index) or 0
        last = max(self.nonces.get((signer_id, key, index), 0), known)
        chance = self.random.random()
        if chance < 0.02:
            return last
        if chance < 0.03:
            return (self.world.chain.head.height + 5) * 10**6
        return last + self.random.choice([1, 1, 1, 5])

    def wanted(self, signer_id):
        """Choose what is done, to whom."""
        kinds = [self.moved] * 3 + [self.called] * 9 + [self.token] * 3 + [self.delegated] * 2
        kinds += [self.created, self.created, self.keys, self.keys, self.staked, self.batch]
        kinds += [self.initialized, self.initialized, self.published]
        kinds += [self.gas_keys] * 3 if self.has_gas_keys else []
        if self.random.random() < 0.1:
            kinds = [self.deleted, self.deployed]
        return self.random.choice(kinds)(signer_id)

    def amount(self):
        return self.random.choice([1, N // 1000, N // 10, N, 500 * N])

    def moved(self, signer_id):
        """Send NEAR to anybody, or to somebody new by a key."""
        del signer_id
        name = self.random.choice(self.names)
        if self.random.random() < 0.2:
            key = self.random.choice(KEYS)
            name = str(protocol.implicit_account_id(public(key)))
            self.met(name, key)
        elif self.random.random() < 0.1:
            name = self.initial_state()[0]
        return name, [protocol.Transfer(self.amount())]

    def met(self, name, key):
        """Remember an account that may come to exist."""
        if (name, key) not in self.signers:
            self.signers.append((name, key))
            self.names.append(name)

    def called(self, signer_id):
        """Let a contract do things."""
        del signer_id
        gas = self.random.choice([5, 30, 100, 300]) * TGAS
        deposit = self.random.choice([0, 0, 1, N])
        return self.random.choice(SCRIPTS), [do(*self.steps(3), gas=gas, deposit=deposit)]

    def steps(self, depth):
        """Choose what a contract does, down to a depth of calls."""
        steps: list = []
        made: list[str] = []
        for _ in range(self.random.randrange(6)):
            verbs = [*PLAIN, *PROMISING * (depth > 0), *THEN * (depth > 0 and bool(made))]
            verb = self.random.choice(verbs)
            name = f"p{len(made)}"
            steps.append([verb, *self.operands(verb, name, depth, made)])
            if verb in PROMISING or verb == "then":
                made.append(name)
        if made and self.random.random() < 0.7:
            steps.append(["give", self.random.choice(made)])
        return steps

    def operands(self, verb, name, depth, made):
        """Choose what a step is done with."""
        random = self.random
        to = random.choice([*SCRIPTS * 3, *self.names])
        key, value = random.choice("abc"), "v" * random.randrange(50)
        if verb in ("log", "value", "panic"):
            return [name]
        if verb in ("call", "then"):
            options = {"weight": 1, "deposit": random.choice([0, 1, N // 10])}
            after = [options] if verb == "call" else []
            before = [random.choice(made)] if verb == "then" else []
            return [name, *before, to, self.steps(depth - 1), *after]
        if verb == "batch":
            created = random.choice(["x.s.near", "y.t.near", to])
            amount = random.choice([1, N // 10])
            added = ["add_full_access_key", str(public("key0"))]
            return [name, created, ["create_account"], ["transfer", amount], added]
        operands: dict = {"write": [key, value], "remove": [key], "resume": ["x"], "results": []}
        operands |= {"burn": [90 * TGAS], "transfer": [name, to, str(self.amount())]}
        return operands.get(verb) or ([name, self.steps(0)] if verb == "wait" else [])

    def token(self, signer_id):
        """Move tokens, or come and go."""
        name = self.random.choice(self.names)
        args: dict = {"receiver_id": name, "amount": str(self.random.randrange(5000))}
        method, deposit = "ft_transfer", 1
        chance = self.random.random()
        if chance < 0.3:
            method, args = "storage_deposit", {"account_id": name}
            deposit = int(REGISTRATION)
        elif chance < 0.4:
            method, args = "storage_unregister", {"force": True}
        elif chance < 0.6:
            method, args = "ft_transfer_call", args | {"msg": "x"}
        del signer_id
        return TOKEN, [protocol.FunctionCall(method, to_json(args), 100 * TGAS, deposit)]

    def delegated(self, signer_id):
        """Relay what another signed, now and then too late or with a wrong nonce."""
        del signer_id
        sender_id, key = self.signer()
        receiver_id, actions = self.random.choice([self.moved, self.called, self.keys])(sender_id)
        kinds: list = [protocol.DelegateAction]
        if self.settings.profile == "86":
            kinds.append(protocol.DelegateActionV2)
        height = self.world.chain.head.height + self.random.choice([0, 50, 50, 50])
        kind = self.random.choice(kinds)
        index = self.index(sender_id, key) if kind is protocol.DelegateActionV2 else None
        nonce = self.nonce(sender_id, key, index)
        self.nonces[sender_id, key, index] = nonce
        held = secret(key)
        more = {} if index is None else {"nonce_index": index}
        wanted = kind(sender_id, receiver_id, actions, nonce, height, held.public_key, **more)
        return sender_id, [wanted.sign(held)]

    def created(self, signer_id):
        """Create a sub-account with a key, in a batch that may fail."""
        name = f"{self.random.choice('xyz')}.{signer_id}"
        key = self.random.choice(KEYS)
        if len(name) > 40:  # deep enough
            return self.moved(signer_id)
        self.met(name, key)
        actions = [
            protocol.CreateAccount(),
            protocol.Transfer(self.amount()),
            protocol.AddKey(public(key)),
        ]
        if self.random.random() < 0.2:
            actions.append(protocol.DeleteKey(public("absent")))
        return name, actions

    def keys(self, signer_id):
        """Add or delete a key, of one's own for the most part."""
        key = self.random.choice(KEYS)
        name = signer_id if self.random.random() < 0.9 else self.random.choice(self.names)
        chance = self.random.random()
        if chance < 0.3:
            return name, [protocol.DeleteKey(public(key))]
        if chance < 0.6:
            self.met(name, key)
            return name, [protocol.AddKey(public(key))]
        self.met(name, key)
        allowance = self.random.choice([None, N // 100, N])
        permission = protocol.FunctionCallPermission(allowance, self.random.choice(SCRIPTS), ["do"])
        return name, [protocol.AddKey(public(key), protocol.AccessKey(0, permission))]

    def gas_keys(self, signer_id):
        """Add a gas key, fund it, take from it or delete it, now and then another's."""
        key = self.random.choice(GAS_KEYS)
        name = signer_id if self.random.random() < 0.8 else self.random.choice(self.names)
        chance = self.random.random()
        if chance < 0.1:
            return name, [protocol.DeleteKey(public(key))]
        if chance < 0.3:
            amount = self.random.choice([0, N // 1000, N // 10, 2 * N])
            return name, [protocol.WithdrawFromGasKey(public(key), amount)]
        fund = protocol.TransferToGasKey(public(key), self.random.choice([1, N // 10, N, 2 * N]))
        if chance < 0.6:
            return name, [fund]
        self.met(name, key)
        count = self.random.randrange(1, 4)
        permission = self.random.choice([
            protocol.GasKeyFullAccess(0, count),
            protocol.GasKeyFullAccess(0, count),
            protocol.GasKeyFunctionCall(0, count, None, self.random.choice(SCRIPTS), ["do"]),
        ])  # fmt: skip
        return name, [protocol.AddKey(public(key), protocol.AccessKey(0, permission)), fund]

    def initialized(self, signer_id):
        """Initialize an account of a state, new or not, with more deposit than it needs."""
        del signer_id
        name, *actions = self.initial_state()
        if self.random.random() < 0.3:
            actions.append(self.random.choice([protocol.Transfer(7), do(["panic", "x"]), do()]))
        return name, actions

    def initial_state(self):
        """Choose the account of an initial state, and the action that initializes it."""
        deposit = self.random.choice([0, 1, N, 5 * N])
        if self.settings.profile == "87" and self.random.random() < 0.5:
            universal = self.random.choice(UNIVERSAL_STATES)
            action: protocol.Action = protocol.UniversalStateInit(universal.encode(), deposit)
            return str(protocol.universal_account_id(universal)), action
        state_init = self.random.choice(STATES)
        action = protocol.DeterministicStateInit(state_init, deposit)
        return str(protocol.deterministic_account_id(state_init)), action

    def published(self, signer_id):
        """Publish a global contract, which may cost too much, or use one."""
        if signer_id == TOKEN:
            return self.moved(signer_id)
        code = self.random.choice([Script.code, Script.code, bytes(300_000)])
        modes: list = ["CodeHash", "AccountId"]
        mode = self.random.choice(modes) if code == Script.code else modes[0]
        names: list = [Script.code_hash, "ben.near"]
        use = protocol.UseGlobalContract(self.random.choice(names))
        deploy = protocol.DeployGlobalContract(code, mode)
        return signer_id, [self.random.choice([deploy, use])]

    def staked(self, signer_id):
        """Stake, more or less or nothing."""
        return signer_id, [
            protocol.Stake(self.random.choice([0, 10 * N, 40 * N, 900 * N]), public("v"))
        ]

    def batch(self, signer_id):
        """Do several things at once to oneself or to a contract."""
        if self.random.random() < 0.5:
            return signer_id, [
                protocol.AddKey(public(self.random.choice(KEYS))),
                protocol.Transfer(1),
            ]
        return self.random.choice(SCRIPTS), [do(*self.steps(2), gas=90 * TGAS) for _ in range(3)]

    def deleted(self, signer_id):
        """Delete an account, oneself perhaps, but nobody whom the others need."""
        name = self.random.choice(self.names)
        if signer_id not in (*PEOPLE[:3], *SCRIPTS, TOKEN):
            name = signer_id
        elif name == signer_id:
            name = "nobody.near"
        return name, [protocol.DeleteAccount(self.random.choice(self.names))]

    def deployed(self, signer_id):
        if signer_id == TOKEN:
            return self.moved(signer_id)
        return signer_id, [protocol.DeployContract(Script.code)]
