"""
The verifier contract of NEAR Intents: a ledger of tokens whose owners sign intents off the chain.

Tokens arrive by ``ft_transfer_call`` and are minted here (NEP-245). ``execute_intents`` verifies
messages (NEP-413), executes their intents, and matches what accounts gave with what they got.

Source: near/intents, contracts/defuse. This contract has the intents token_diff, transfer,
ft_withdraw without a call or storage deposit, and native_withdraw, signed by NEP-413. Nonces have
no salts, and there are no roles, locks, NFTs or multi-tokens.

Storage: ``b`` + account id -> balances by token id, ``k`` + account id -> public keys, ``n`` +
account id and nonce -> a nonce that was used.
"""

from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ledgerkit import json_decoding
from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.contract_sdk import (
    STATE_KEY,
    U128,
    Contract,
    JsonMap,
    call,
    from_json,
    page,
    succeeded,
    to_json,
    view,
)
from ledgerkit.localnet.fees import TGAS
from ledgerkit.localnet.promises import Promise
from ledgerkit.localnet.vm import Vm
from ledgerkit.protocol import AccountId, PublicKey, Signature
from ledgerkit.protocol.borsh import text
from ledgerkit.protocol.signed_messages import OffchainMessage
from ledgerkit.units import U128_MAX

PIPS = 1_000_000  # a fee of 1 is one millionth
TRANSFER_GAS, CALLBACK_GAS = 15 * TGAS, 10 * TGAS
INVALID = "invalid intent"
_FIRST = datetime.fromisoformat("1970-01-01T00:00:00Z")


class Payload(msgspec.Struct, rename={"callback_url": "callbackUrl"}):
    """A message as a wallet signs it (NEP-413)."""

    message: str
    nonce: str
    recipient: str
    callback_url: str | None = None


class Signed(msgspec.Struct):
    """A signed message; of the standards, this contract has one."""

    payload: Payload
    public_key: str
    signature: str
    standard: str


class TokenDiff(msgspec.Struct, tag="token_diff", tag_field="intent", omit_defaults=True):
    """Tokens to give, which are negative, and to get."""

    diff: dict[str, str]
    memo: str | None = None
    referral: str | None = None


class Transfer(msgspec.Struct, tag="transfer", tag_field="intent", omit_defaults=True):
    """Tokens to send to another account within the contract."""

    receiver_id: AccountId
    tokens: dict[str, U128]
    memo: str | None = None


class FtWithdraw(msgspec.Struct, tag="ft_withdraw", tag_field="intent", omit_defaults=True):
    """Tokens to send to an account outside of the contract."""

    token: AccountId
    receiver_id: AccountId
    amount: U128
    memo: str | None = None
    msg: None = None
    storage_deposit: None = None


class NativeWithdraw(msgspec.Struct, tag="native_withdraw", tag_field="intent"):
    """Wrapped NEAR to send as NEAR."""

    receiver_id: AccountId
    amount: U128


class Message(msgspec.Struct):
    """The intents of a message."""

    signer_id: AccountId
    deadline: str
    intents: list[TokenDiff | Transfer | FtWithdraw | NativeWithdraw] = []


class Matcher:
    """What accounts gave and got, to be matched as transfers."""

    def __init__(self) -> None:
        self._changes: dict[str, dict[str, int]] = {}  # by token and account

    def add(self, account_id: str, token_id: str, change: int) -> None:
        changes = self._changes.setdefault(token_id, {})
        changes[account_id] = changes.get(account_id, 0) + change

    def unmatched(self) -> dict[str, str]:
        """Return the sums by token that are not 0."""
        sums = {token_id: sum(by_id.values()) for token_id, by_id in self._changes.items()}
        return {token_id: str(total) for token_id, total in sorted(sums.items()) if total}

    def transfers(self) -> list[dict[str, Any]]:
        """Return the rows of the event, after all changes were matched."""
        rows: dict[tuple[str, str], dict[str, str]] = {}
        for token_id, changes in self._changes.items():
            # The largest senders and receivers first, as in the source.
            getters = sorted((c, -i, name) for i, (name, c) in enumerate(changes.items()) if c > 0)
            givers = sorted((-c, -i, name) for i, (name, c) in enumerate(changes.items()) if c < 0)
            while givers and getters:
                (gives, rank, giver), (gets, place, getter) = givers.pop(), getters.pop()
                amount = min(gives, gets)
                rows.setdefault((giver, getter), {})[token_id] = str(amount)
                givers += [(gives - amount, rank, giver)] if gives > amount else []
                getters += [(gets - amount, place, getter)] if gets > amount else []
        return [
            {
                "old_owner_id": giver,
                "new_owner_id": getter,
                "token_ids": list(tokens),
                "amounts": list(tokens.values()),
            }
            for (giver, getter), tokens in rows.items()
        ]


class Intents(Contract):
    """A ledger of tokens that executes signed intents."""

    class State(msgspec.Struct):
        """The wrapped token, and the fee."""

        wnear_id: str
        fee: int
        fee_collector: str

    state: State

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self._balances = JsonMap(vm, b"b", dict[str, int])
        self._keys = JsonMap(vm, b"k", list[str])
        self._nonces = JsonMap(vm, b"n", bool)
        self._burns: list[dict[str, Any]] = []

    # Tokens in and out ------------------------------------------------------------------

    @call
    def ft_on_transfer(self, sender_id: AccountId, amount: U128, msg: str) -> U128:
        """Mint the tokens that arrive for the sender, or for the account that the message names."""
        self.require(amount > 0, "zero amount")
        message = from_json(msg, dict[str, AccountId]) or {"receiver_id": msg or sender_id}
        self._mint(message["receiver_id"], f"nep141:{self.vm.predecessor_id}", amount, "deposit")
        return U128(0)

    @call(private=True)
    def ft_resolve_withdraw(self, token: AccountId, sender_id: AccountId, amount: U128) -> U128:
        """Mint the tokens again if the transfer failed; return the amount that was sent."""
        if succeeded(self.vm):
            return amount
        self._mint(sender_id, f"nep141:{token}", amount, "refund")
        return U128(0)

    @call(private=True)
    def do_native_withdraw(self, withdraw: NativeWithdraw) -> Promise:
        self.require(succeeded(self.vm), "near_withdraw failed")
        return self.vm.promise(withdraw.receiver_id).transfer(withdraw.amount)

    # Intents ----------------------------------------------------------------------------

    @call(payable=True)
    def add_public_key(self, public_key: PublicKey) -> None:
        """Add a key that signs intents of the caller."""
        self.assert_one_yocto()
        account_id, key = self.vm.predecessor_id, str(public_key)
        keys = self._keys.get(account_id) or []
        self.require(
            key not in keys, f"public key '{key}' already exists for account '{account_id}'"
        )
        self._keys.put(account_id, [*keys, key])
        row = {"account_id": account_id, "public_key": key}
        log = {"standard": "dip4", "version": "0.3.0", "event": "public_key_added", "data": row}
        self.vm.log("EVENT_JSON:" + to_json(log).decode())

    @call
    def execute_intents(self, signed: list[Signed]) -> None:
        """Execute the intents of all messages, or none of them."""
        matcher = Matcher()
        executed = [self._execute(message, matcher) for message in signed]
        self.event("dip4", "0.3.1", "intents_executed", executed)
        if unmatched := matcher.unmatched():
            error = to_json({"error": "unmatched_deltas", "unmatched_deltas": unmatched})
            self.vm.panic(f"invariant violated: {error.decode()}")
        self._log_mt("mt_transfer", *matcher.transfers())
        self._log_mt("mt_burn", *self._burns)

    def _execute(self, signed: Signed, matcher: Matcher) -> dict[str, Any]:
        message, intent_hash = self._verify(signed)
        for intent in message.intents:
            self._execute_intent(message.signer_id, intent, intent_hash, matcher)
        return {
            "intent_hash": intent_hash,
            "account_id": message.signer_id,
            "nonce": signed.payload.nonce,
        }

    def _verify(self, signed: Signed) -> tuple[Message, str]:
        """Return the message and its hash; panic unless the signer's key signed it in time."""
        self.require(signed.standard == "nep413", "JSON: this contract has the standard nep413")
        self.vm.gas.burn_host("ED25519_VERIFY_BASE")
        self.vm.gas.burn_host("ED25519_VERIFY_BYTE", 32)
        payload = signed.payload
        try:
            nonce = b64decode(payload.nonce, validate=True)
            names = payload.message, nonce, payload.recipient, payload.callback_url
            offchain, key = OffchainMessage(*names), PublicKey.from_text(signed.public_key)
            is_valid = offchain.verify(key, Signature.from_text(signed.signature))
        except (ValueError, InvalidRequestError):
            self.vm.panic("JSON: malformed payload")
        self.require(is_valid, "invalid signature")
        message = from_json(payload.message, Message)
        self.require(message is not None, "JSON: malformed intents")
        self.require(payload.recipient == self.vm.current_account_id, "wrong verifying_contract")
        self._check_deadline(message.deadline)
        signer_id = message.signer_id
        is_known = signer_id == key.data.hex() or str(key) in (self._keys.get(signer_id) or [])
        absent = f"public key '{key}' doesn't exist for account '{signer_id}'"
        self.require(is_known, absent)
        used = f"{signer_id} {payload.nonce}"
        self.require(used not in self._nonces, "nonce was already used")
        self._nonces.put(used, value=True)
        return message, str(offchain.hash)

    def _check_deadline(self, deadline: str) -> None:
        try:
            end = datetime.fromisoformat(deadline) - _FIRST
        except (ValueError, TypeError):
            self.vm.panic("JSON: malformed deadline")
        end_ns = end // timedelta(microseconds=1) * 1000
        self.require(end_ns >= self.vm.block_timestamp, "deadline has expired")

    def _execute_intent(
        self,
        owner_id: str,
        intent: TokenDiff | Transfer | FtWithdraw | NativeWithdraw,
        intent_hash: str,
        matcher: Matcher,
    ) -> None:
        row = {"intent_hash": intent_hash, "account_id": owner_id}
        members = json_decoding.decode(to_json(intent))
        name = members.pop("intent")
        if isinstance(intent, TokenDiff):
            fees = self._apply_diff(owner_id, intent.diff, matcher)
            members["diff"] = dict(sorted(intent.diff.items()))
            members |= {"fees_collected": fees} if fees else {}
        self.event("dip4", "0.3.0", name, [row | members])
        if isinstance(intent, Transfer):
            self.require(intent.receiver_id != owner_id and intent.tokens, INVALID)
            for token_id, amount in intent.tokens.items():
                self._move(owner_id, token_id, -amount, matcher)
                self._move(intent.receiver_id, token_id, amount, matcher)
        elif isinstance(intent, FtWithdraw):
            self._withdraw_ft(owner_id, intent)
        elif isinstance(intent, NativeWithdraw):
            self._withdraw_near(owner_id, intent)

    def _apply_diff(
        self, owner_id: str, diff: Mapping[str, str], matcher: Matcher
    ) -> dict[str, str]:
        """Change the balances of an account; return the fees, which are part of what it gives."""
        fees = {}
        for token_id, digits in sorted(diff.items()):
            change = int(digits)
            self._move(owner_id, token_id, change, matcher)
            if change < 0 and self.state.fee:
                fee = -(change * self.state.fee // PIPS)  # rounded up
                self._move(self.state.fee_collector, token_id, fee, matcher)
                fees[token_id] = str(fee)
        return fees

    def _move(self, account_id: str, token_id: str, change: int, matcher: Matcher) -> None:
        self._change(account_id, token_id, change)
        matcher.add(account_id, token_id, change)

    def _withdraw_ft(self, owner_id: str, withdrawal: FtWithdraw) -> None:
        token, amount = withdrawal.token, withdrawal.amount
        self._burn(owner_id, f"nep141:{token}", amount)
        args: dict[str, Any] = {"receiver_id": withdrawal.receiver_id, "amount": amount}
        args |= {"memo": withdrawal.memo} if withdrawal.memo is not None else {}
        promise = self.vm.promise(token)
        promise.function_call("ft_transfer", to_json(args), deposit=1, gas=TRANSFER_GAS)
        resolve = {"token": token, "sender_id": owner_id, "amount": amount}
        self.call_back(promise, "ft_resolve_withdraw", CALLBACK_GAS, **resolve)

    def _withdraw_near(self, owner_id: str, withdrawal: NativeWithdraw) -> None:
        self._burn(owner_id, f"nep141:{self.state.wnear_id}", withdrawal.amount)
        promise = self.vm.promise(self.state.wnear_id)
        args = to_json({"amount": withdrawal.amount})
        promise.function_call("near_withdraw", args, deposit=1, gas=CALLBACK_GAS)
        fields = {"receiver_id": withdrawal.receiver_id, "amount": withdrawal.amount}
        self.call_back(promise, "do_native_withdraw", CALLBACK_GAS, withdraw=fields)

    # NEP-245 ----------------------------------------------------------------------------

    @view
    def mt_balance_of(self, account_id: AccountId, token_id: str) -> U128:
        return U128((self._balances.get(account_id) or {}).get(token_id, 0))

    @view
    def mt_batch_balance_of(self, account_id: AccountId, token_ids: list[str]) -> list[U128]:
        balances = self._balances.get(account_id) or {}
        return [U128(balances.get(token_id, 0)) for token_id in token_ids]

    @view
    def mt_tokens_for_owner(
        self, account_id: AccountId, from_index: U128 | None = None, limit: int | None = None
    ) -> list[dict[str, str | None]]:
        ids = list(self._balances.get(account_id) or {})
        listed = [ids[index] for index in page(len(ids), from_index or 0, limit)]
        return [{"token_id": token_id, "owner_id": None} for token_id in listed]

    def _mint(self, owner_id: str, token_id: str, amount: int, memo: str) -> None:
        self._change(owner_id, token_id, amount)
        self._log_mt("mt_mint", _row(owner_id, token_id, amount, memo))

    def _burn(self, owner_id: str, token_id: str, amount: int) -> None:
        """Burn tokens; the event comes after those of transfers."""
        self._change(owner_id, token_id, -amount)
        self._burns.append(_row(owner_id, token_id, amount, "withdraw"))

    def _change(self, account_id: str, token_id: str, change: int) -> None:
        self.require(change, INVALID)
        balances = self._balances.get(account_id) or {}
        balance = balances.pop(token_id, 0) + change
        self.require(0 <= balance <= U128_MAX, "insufficient balance or overflow")
        self._balances.put_or_remove(
            account_id, balances | ({token_id: balance} if balance else {})
        )

    def _log_mt(self, event: str, *rows: dict[str, Any]) -> None:
        if rows:
            self.event("nep245", "1.0.0", event, list(rows))

    @classmethod
    def genesis(
        cls,
        wnear_id: str,
        balances: Mapping[str, Mapping[str, int]] = {},
        keys: Mapping[str, Iterable[str]] = {},
        *,
        fee: int = 1,
        fee_collector: str = "fees.near",
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the records of balances by token id, and of public keys, by account."""
        yield STATE_KEY, to_json(cls.State(wnear_id, fee, fee_collector))
        for account_id, tokens in balances.items():
            yield b"b" + text(account_id), to_json(tokens)
        for account_id, names in keys.items():
            yield b"k" + text(account_id), to_json(list(names))


def _row(owner_id: str, token_id: str, amount: int, memo: str) -> dict[str, Any]:
    amounts = {"token_ids": [token_id], "amounts": [str(amount)]}
    return {"owner_id": owner_id, **amounts, "memo": memo}
