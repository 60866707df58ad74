"""
The tree of errors: what can go wrong, told apart by what to do next.

LedgerError
├── TransportError                    we could not ask; says nothing about the ledger
│   ├── TransactionTimeoutError       the wanted level was not reached in time
│   ├── NodeNotReadyError             the node is starting or behind
│   ├── NodeError                     the node failed while answering
│   ├── UnavailableShardError         the node does not hold that shard
│   └── RequestRoutedError            the node passed the transaction on
├── RateLimitedError                  too many requests
├── AuthError                         the key was refused
├── NotFoundError                     there is none, or not here
│   ├── UnknownAccountError
│   ├── UnknownAccessKeyError
│   ├── UnknownBlockError
│   ├── GarbageCollectedBlockError
│   ├── UnknownChunkError
│   ├── UnknownTransactionError
│   ├── UnknownReceiptError
│   ├── UnknownTransactionOrReceiptError
│   ├── UnknownEpochError
│   └── ProofNotReadyError
├── InvalidRequestError               the request must change (also raised before sending)
│   ├── RpcMethodNotFoundError
│   ├── RequestParseError
│   ├── InvalidAccountError
│   ├── InvalidShardIdError
│   ├── TooLargeContractStateError
│   ├── TooManyAccessKeysError
│   ├── ValidatorInfoUnavailableError
│   └── LookupLimitError
├── InvalidTransactionError           the ledger refused it; a class per variant in `taxonomy`
├── ReceiptFailedError                a receipt ran and failed; classes in `taxonomy`
├── DroppedError                      the transaction was never included
├── ContractError                     a view call failed inside the contract
│   ├── ContractPanicError
│   ├── ContractMethodNotFoundError
│   ├── NoContractCodeError
│   ├── NoGlobalContractCodeError
│   └── ProhibitedInViewError
├── DecodeError                       the answer is not what was documented
└── FileError                      a file could not be written or read

Every class says what to do next (`remedy`), whether the same request may work soon
(`retryable`) and whether another host, such as an archival one, may know (`elsewhere`).
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHOWN = 120
_QUOTED = 200


def cut(value: object, limit: int = _SHOWN) -> str:
    """
    Show a value on one line, shortened.

    Parameters
    ----------
    value
        Anything; small objects of the ledger read as "name value, name value".
    limit
        The most characters to keep.

    Returns
    -------
    shown
        One line of at most `limit` characters; a shortened one ends in "…".
    """
    if isinstance(value, str) and len(value) <= limit and value.isprintable():
        return value
    # A text may be megabytes long: shorten before splitting it.
    line = " ".join(_plain(value, limit)[: 4 * limit].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _plain(value: object, limit: int) -> str:
    """Write a value as text, an object as "name value, name value"."""
    try:
        if isinstance(value, dict) and value:
            return ", ".join(f"{key} {str(item)[:limit]}" for key, item in value.items())
        return str(value)
    except (ValueError, RecursionError):  # thousands of digits, or of levels
        return f"a {type(value).__name__} too large to show"


class _Shown(dict[str, str]):
    """Values by name for a template, tolerating absent ones."""

    def __missing__(self, key: str) -> str:
        """Say that the ledger did not tell `key`."""
        return f"(no {key} given)"


def fill(template: str, details: Mapping[str, object]) -> str:
    """
    Put the values of an error into the sentence of its class.

    Parameters
    ----------
    template
        A sentence with names in braces; `{at}` reads " at block N", or nothing.
    details
        The values by name. Absent or None ones are said to be missing.

    Returns
    -------
    sentence
        The sentence, each value on one line and shortened.
    """
    shown = _Shown({name: cut(value) for name, value in details.items() if value is not None})
    shown["at"] = f" at block {shown['block_height']}" if "block_height" in shown else ""
    return template.format_map(shown)


class LedgerError(Exception):
    """
    Whatever ledgerkit raises on purpose.

    Parameters
    ----------
    sentence
        What happened, naming the values. Without one, the class's own template is filled in.
    remedy
        What to do next, where it differs from the class's advice.
    **details
        Become attributes. A declared one that is not given reads None.
    """

    template: str = "The ledger could not do what was asked"
    remedy: str = ""
    retryable: bool = False
    elsewhere: bool = False
    asked: str | None = None
    rpc_cause: str | None = None
    fields: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        """Note the declared attributes and let each be read even when it was not given."""
        cls.fields = {**cls.fields, **cls.__annotations__}
        for name in cls.__annotations__:
            if not hasattr(cls, name):
                setattr(cls, name, None)

    def __init__(self, sentence: str = "", *, remedy: str | None = None, **details: object) -> None:
        """Keep the sentence as the only argument, so that every class pickles alike."""
        super().__init__(sentence or fill(self.template, details))
        self.__dict__.update(details)
        if remedy is not None:
            self.remedy = remedy

    @property
    def sentence(self) -> str:
        """What happened, without the advice."""
        return str(self.args[0]) if self.args else self.template

    def _context(self) -> str:
        """Name what was asked, unless the sentence already does."""
        return f"asked: {self.asked}" if self.asked and self.asked not in self.sentence else ""

    def __str__(self) -> str:
        """Read as sentences: what happened, then what to do."""
        context = self._context()
        happened = self.sentence.rstrip(". ") if context else self.sentence.rstrip()
        happened += f" ({context})" if context else ""
        stop = "" if happened.endswith((".", "!", "?", "…")) else "."
        return f"{happened}{stop} {self.remedy}".rstrip()

    def __repr__(self) -> str:
        """Stay short: the class and the beginning of the sentence."""
        return f"{type(self).__name__}({cut(self.sentence, 80)!r})"


# We could not ask -----------------------------------------------------------------------


class TransportError(LedgerError):
    """We could not ask: no connection, no time, a failing host, or an answer that is not JSON."""

    status: int | None
    retry_after: float | None
    template = "The host could not be asked"
    remedy = "Check the connection and the host address, then ask again."
    retryable = True


class TransactionTimeoutError(TransportError):
    """The transaction did not reach the wanted level in time; it may still succeed."""

    cause_name: str | None
    template = "The transaction did not reach the wanted level in time; this is no failure"
    remedy = "Ask for the transaction by its hash until it is final; do not sign a new one yet."
    elsewhere = True


class NodeNotReadyError(TransportError):
    """The node is starting, behind, or has not computed that yet."""

    elapsed: object
    epoch_id: str | None
    shard_id: int | None
    template = "The node is not ready"
    remedy = "Wait some seconds and ask again, or ask another host."


class NodeError(TransportError):
    """The node failed while answering, or reported an error unknown to this library."""

    code: int | None
    text: str | None
    template = "The node failed: {text}"
    remedy = "Ask again in a moment; if it stays, ask another host."


class UnavailableShardError(TransportError):
    """The node does not hold the shard that was asked for."""

    shard_id: int | None
    requested_shard_id: int | None
    template = "The node does not hold shard {shard_id}"
    remedy = "Ask another host, for example the archival one."
    retryable = False
    elsewhere = True


class RequestRoutedError(TransportError):
    """The node passed the transaction on to another node and will not wait for it."""

    transaction_hash: str | None
    template = "The node passed transaction {transaction_hash} on to another node"
    remedy = "Ask for the transaction by its hash; sending it again is not needed."
    retryable = False


class RateLimitedError(LedgerError):
    """The host asks for fewer requests."""

    status: int | None
    retry_after: float | None
    template = "The host asks for fewer requests"
    remedy = "Wait a minute, lower rate=, or connect with an API key."
    retryable = True


class AuthError(LedgerError):
    """The host refused the API key, or wants one."""

    status: int | None
    template = "The host refused the API key"
    remedy = "Check the API key given to connect(), and that it belongs to this network."


# There is none, or not here -------------------------------------------------------------


class NotFoundError(LedgerError):
    """There is no such thing, or not on this host."""

    block_height: int | None
    block_hash: str | None
    template = "There is no such thing{at}"
    remedy = "Check the name, the network and the block that was asked for."


class UnknownAccountError(NotFoundError):
    """No such account at that block."""

    account_id: str | None
    requested_account_id: str | None
    template = "Account {account_id} does not exist{at}"
    remedy = "Check the spelling and the network (mainnet or testnet), or ask at another block."


class UnknownAccessKeyError(NotFoundError):
    """The account does not hold that key, or does not exist."""

    public_key: str | None
    account_id: str | None
    template = "Access key {public_key} does not exist{at}"
    remedy = "List the account's keys with keys(); if that is empty, check the account id."


class UnknownBlockError(NotFoundError):
    """No such block, a skipped height, or one this host has dropped or not yet seen."""

    block: object
    block_reference: object
    template = "Block {block} is not known to this host"
    remedy = (
        "Ask for a neighbouring height (some heights have no block), ask the archival host for"
        " an old one, or wait for one that is still to come."
    )
    elsewhere = True


class GarbageCollectedBlockError(NotFoundError):
    """The block is known but its state was dropped by this host."""

    template = "This host no longer keeps the state of block {block_height}, {block_hash}"
    remedy = "Ask the archival host, or ask for a recent block."
    elsewhere = True


class UnknownChunkError(NotFoundError):
    """The chunk is not here, or not yet."""

    chunk_hash: str | None
    template = "Chunk {chunk_hash} is not known to this host"
    remedy = "Ask the archival host for an old chunk; wait a moment for a new one."
    elsewhere = True


class UnknownTransactionError(NotFoundError):
    """The transaction has not been seen by this host."""

    transaction_hash: str | None
    requested_transaction_hash: str | None
    template = "Transaction {transaction_hash} has not been seen by this host"
    remedy = "Check hash and sender; ask the archival host for an old one, or wait for a new one."
    elsewhere = True


class UnknownReceiptError(NotFoundError):
    """The receipt is not here, or not yet."""

    receipt_id: str | None
    template = "Receipt {receipt_id} is not known to this host"
    remedy = "Check the id; ask the archival host for an old one, or wait for a new one."
    elsewhere = True


class UnknownTransactionOrReceiptError(NotFoundError):
    """Neither a transaction nor a receipt of that id has been seen."""

    transaction_or_receipt_id: str | None
    template = "No transaction or receipt {transaction_or_receipt_id} has been seen"
    remedy = "Check the id, wait until it is final, or ask the archival host."
    elsewhere = True


class UnknownEpochError(NotFoundError):
    """No such epoch is known."""

    epoch_id: str | None
    text: str | None
    template = "The epoch asked for is not known: {text}"
    remedy = "Ask with the epoch_id of a block header, or without one for the latest epoch."


class ProofNotReadyError(NotFoundError):
    """The proof cannot be made yet."""

    transaction_or_receipt_id: str | None
    text: str | None
    template = "No proof can be made yet: {text}"
    remedy = "Wait until the outcome's block is final, then ask for the proof again."


# The request must change ----------------------------------------------------------------


class InvalidRequestError(LedgerError):
    """The request cannot be answered as it is; also raised before anything is sent."""

    field: str | None
    value: object
    rule: str | None
    status: int | None
    text: str | None
    template = "The request was refused: {text}"
    remedy = ""  # the sentence itself says what would be valid

    @classmethod
    def refuse(cls, field: str, value: object, expected: str) -> Self:
        """
        Build the error for an invalid argument.

        Parameters
        ----------
        field
            Name of the argument, such as "account_id".
        value
            The value that was passed.
        expected
            What would be valid: a noun phrase that follows "expected".

        Returns
        -------
        error
            To be raised by the caller.
        """
        sentence = f"{field} {cut(repr(value))} is not valid: expected {expected}"
        return cls(sentence, field=field, value=value, rule=expected)

    @classmethod
    def required(cls, field: str, expected: str) -> Self:
        """
        Build the error for a missing argument.

        Parameters
        ----------
        field
            Name of the argument, such as "out".
        expected
            What to pass: a noun phrase, such as "the folder to write to".

        Returns
        -------
        error
            To be raised by the caller.
        """
        return cls(f"{field} is required: {expected}", field=field, rule=expected)


class RpcMethodNotFoundError(InvalidRequestError):
    """The node has no RPC method of that name."""

    method_name: str | None
    template = "The node has no RPC method {method_name}"
    remedy = "Check the method's name; newer methods need a newer node or another host."


class RequestParseError(InvalidRequestError):
    """The node could not read the parameters."""

    error_message: str | None
    template = "The node could not read the request: {error_message}"
    remedy = "Correct the parameter that the sentence names."


class InvalidAccountError(InvalidRequestError):
    """The account id is not well formed."""

    account_id: str | None
    requested_account_id: str | None
    block_height: int | None
    block_hash: str | None
    template = "{account_id} is not a well-formed account id"
    remedy = "Use 2 to 64 characters: a-z and 0-9, separated by single '.', '-' or '_'."


class InvalidShardIdError(InvalidRequestError):
    """The shard is not in that block's layout."""

    shard_id: int | None
    template = "Shard {shard_id} is not in the layout of that block"
    remedy = "Take a shard_id from the chunks of the block; the ids are not contiguous."


class TooLargeContractStateError(InvalidRequestError):
    """The contract's state is above what a host lists."""

    account_id: str | None
    contract_account_id: str | None
    block_height: int | None
    block_hash: str | None
    template = "The state of contract {account_id} is too large to be listed"
    remedy = "Ask with a longer key prefix, page with a limit, or use the contract's view methods."


class TooManyAccessKeysError(InvalidRequestError):
    """The account holds more keys than a host lists at once."""

    account_id: str | None
    requested_account_id: str | None
    limit: int | None
    block_height: int | None
    block_hash: str | None
    template = "Account {account_id} holds more than {limit} access keys"
    remedy = "Ask page by page with limit= and after_key=."


class ValidatorInfoUnavailableError(InvalidRequestError):
    """The validators are not told for that block."""

    template = "The validators of that block cannot be told"
    remedy = "Ask at the last block of an epoch, by epoch_id, or without a block for the latest."


class LookupLimitError(InvalidRequestError):
    """The search from a receipt to its transaction met a limit of the host."""

    requested: int | None
    maximum: int | None
    scanned: int | None
    limit: int | None
    template = "The host gave up the search: {text}"
    remedy = "Name the block_height and shard_id of the receipt, or follow the transaction itself."


# What the ledger said -------------------------------------------------------------------


class InvalidTransactionError(LedgerError):
    """
    The ledger refused the transaction; nothing of it ran.

    `variant` is the ledger's name of the reason and `payload` its values as they came. The
    values are attributes too, amounts as ints in yoctoNEAR; one that did not come reads None.
    """

    variant: str = "Unknown"
    payload: object
    template = "The ledger refused the transaction: {variant}"
    remedy = "Correct what the reason names, then sign and send again."


class ReceiptFailedError(LedgerError):
    """
    A receipt of the transaction ran and failed; other receipts may have succeeded.

    `kind` is the path of the ledger's names, such as "FunctionCallError.ExecutionError",
    `variant` its last one, and `index` the position of the failing action.
    """

    receipt_id: str | None
    kind: str = "Unknown"
    variant: str = "Unknown"
    index: int | None
    payload: object
    template = "The receipt failed: {variant}"
    remedy = "Look at the receipt in the transaction's trace to see what ran before it."

    def _context(self) -> str:
        """Name the receipt and the action."""
        receipt = f"receipt {self.receipt_id}" if self.receipt_id else ""
        action = f"action {self.index}" if self.index is not None else ""
        return ", ".join(part for part in (receipt, action, super()._context()) if part)


class DroppedError(LedgerError):
    """The transaction was accepted but never included, and no longer can be."""

    transaction_hash: str | None
    template = "Transaction {transaction_hash} was never included in a block"
    remedy = "It can no longer run: sign it again with a fresh nonce and block hash, and send it."


class ContractError(LedgerError):
    """A view call failed inside the contract."""

    vm_error: object
    block_height: int | None
    block_hash: str | None
    template = "The contract could not answer{at}: {vm_error}"
    remedy = "Check the method and its arguments against the contract's documentation."


class ContractPanicError(ContractError):
    """The contract stopped with a message of its own."""

    panic_msg: str
    template = "The contract panicked{at}: {panic_msg}"
    remedy = "Read the contract's message; the method or its arguments must change."


class ContractMethodNotFoundError(ContractError):
    """The contract has no such method."""

    reason: str | None
    template = "The contract has no such method{at}: {reason}"
    remedy = "Check the method's name and that the contract is the right one."


class NoContractCodeError(ContractError):
    """The account holds no contract."""

    account_id: str | None
    contract_account_id: str | None
    template = "Account {account_id} holds no contract{at}"
    remedy = "Check the contract's account id and the network."


class NoGlobalContractCodeError(ContractError):
    """There is no global contract of that name."""

    identifier: object
    template = "There is no global contract {identifier}{at}"
    remedy = "Check the code hash or the account id that published the contract."


class ProhibitedInViewError(ContractError):
    """The method does what only a transaction may."""

    method_name: str | None
    template = "The contract called {method_name}, which a view must not{at}"
    remedy = "Call this method with a signed transaction instead of a view."


class DecodeError(LedgerError):
    """The answer is not what was documented."""

    path: str | None
    template = "The answer could not be read at {path}"
    remedy = "Ask again; if it stays, the service has changed and ledgerkit needs an update."


# Plain HTTP failures --------------------------------------------------------------------

_AUTH = {401, 402, 403}
_TIMEOUT = 408
_TOO_MANY = 429
_REMEDIES = {
    402: "The plan behind the API key is used up: renew it, or connect without a key.",
    404: "Check the host address: it has no such path.",
    413: "Send a smaller request.",
    415: "Check the host address: it expects another content type.",
}
_ORIGIN = "Use an API key that is not limited to web origins, or none."


def from_status(
    status: int, text: str, *, asked: str, retry_after: float | None = None
) -> LedgerError:
    """
    Tell what a failing HTTP status means when its body does not.

    Parameters
    ----------
    status
        The HTTP status.
    text
        The body; at most 200 characters of it are quoted, on one line.
    asked
        What was asked, as a short phrase.
    retry_after
        The pause that the host asks for, in seconds.

    Returns
    -------
    error
        Not raised. A status of the 5xx kind, or 408, may be asked again.
    """
    quoted = cut(text, _QUOTED)
    sentence = f"The host answered {asked} with HTTP {status}" + (f": {quoted}" if quoted else "")
    pause: dict[str, Any] = {"status": status, "asked": asked, "retry_after": retry_after}
    if status == _TOO_MANY:
        return RateLimitedError(sentence, **pause)
    if status in _AUTH:
        return _refused_key(status, text, sentence, asked)
    if status in range(400, 500) and status != _TIMEOUT:
        remedy = _REMEDIES.get(status)
        return InvalidRequestError(sentence, remedy=remedy, status=status, asked=asked, text=quoted)
    again = status == _TIMEOUT or status in range(500, 600)
    return TransportError(sentence, retryable=again, **pause)


def _refused_key(status: int, text: str, sentence: str, asked: str) -> AuthError:
    """Tell a key limited to web origins from a wrong or exhausted one."""
    remedy = _REMEDIES.get(status)
    if "origin_not_allowed" in text:
        sentence = f"The API key is limited to web origins. {sentence}"
        remedy = _ORIGIN
    return AuthError(sentence, remedy=remedy, status=status, asked=asked)


class FileError(LedgerError):
    """A file could not be written or read; what was whole before is whole still."""

    template = "could not {what}: {reason}"
    remedy = "Correct what it names and run the same command again: what is stored is kept."
    what: str | None = None
    reason: str | None = None

    @classmethod
    def failed(cls, what: str, error: OSError) -> Self:
        """Tell what the disk, or another store, said."""
        full = error.errno in _FULL
        told = {"remedy": _MAKE_ROOM} if full else {}
        return cls(what=what, reason=error.strerror or type(error).__name__, **told)


_FULL = (errno.ENOSPC, errno.EDQUOT)
_MAKE_ROOM = "Free some space and run the same command again: what is stored is kept."
