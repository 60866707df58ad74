"""The responses of the services; `unread` lists documented members that nothing reads."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from msgspec import Raw, Struct, field

from ledgerkit.api.models import chain
from ledgerkit.errors import DecodeError, cut

NATIVE = "native:near"  # NEAR, as the Transfers API names it
FT = "nep141:"  # before the contract of a fungible token
# The service stores amounts as signed integers of 128 bits, and larger amounts as their maximum.
# Source: the table of fastnear/transfers-indexer ("capped to Int128 range").
LARGEST_AMOUNT = 2**127 - 1
_INTEGER = re.compile(r"-?[0-9]{1,39}")


def indexed_asset(asset: str) -> str:
    return NATIVE if asset == "near" else asset


def integer(value: str | int, member: str) -> int:
    if isinstance(value, int):
        return value
    if not _INTEGER.fullmatch(value):
        msg = f"{member} {cut(value)!r} is not an integer"
        raise DecodeError(msg, path=f"$..{member}")
    return int(value)


def natural(value: str | int, member: str) -> int:
    """Return a height or a time in nanoseconds; raise if it is negative."""
    number = integer(value, member)
    if number < 0:
        raise DecodeError(f"{member} {number} is negative", path=f"$..{member}")
    return number


class ValidatorInfo(Struct, gc=False):
    """A validator of the current epoch; old nodes say whether it was slashed."""

    unread: ClassVar = ["is_slashed"]

    account_id: str


class NodeStatus(chain.Status, gc=False):
    """``status`` of JSON-RPC."""

    validators: list[ValidatorInfo] = field(default_factory=list)


class BlockRow(Struct, gc=False):
    """A block of the Transactions API."""

    unread: ClassVar = """
        prev_block_height block_hash prev_block_hash block_timestamp epoch_id next_epoch_id
        chunks_included author_id gas_price block_ordinal total_supply num_transactions
        num_receipts gas_burnt tokens_burnt
    """.split()

    block_height: int
    protocol_version: int


class BlockRows(Struct, gc=False):
    """``/v0/blocks`` of the Transactions API."""

    blocks: list[BlockRow]


class SignedTransaction(Struct, gc=False):
    """A transaction's hash and its signer."""

    hash: str
    signer_id: str


class TransactionDocument(Struct, gc=False):
    """A transaction of the Transactions API."""

    transaction: SignedTransaction


class RawTransactions(Struct, gc=False):
    """``/v0/transactions`` of the Transactions API; unknown hashes are left out."""

    transactions: list[Raw]


class ReceiptRow(Struct, gc=False):
    """A receipt of the Transactions API."""

    receipt_id: str


class ReceiptDocument(Struct, gc=False):
    """``/v0/receipt`` of the Transactions API; both members are null for an unknown receipt."""

    transaction: Raw
    receipt: ReceiptRow | None = None


class ReceiptBody(Struct, gc=False):
    """A receipt in a document of the Transactions API."""

    receipt: Raw


class ReceiptBodies(Struct, gc=False):
    """The receipts of a document of the Transactions API; data receipts have no outcomes."""

    receipts: list[ReceiptBody] = []
    data_receipts: list[Raw] = []


class ReceiptOrigin(Struct, gc=False):
    """``EXPERIMENTAL_receipt_to_tx`` of JSON-RPC."""

    transaction_hash: str
    sender_account_id: str


class AccountTransaction(Struct, gc=False):
    """
    A transaction of an account, from the Transactions API.

    Responses of 2024 have a signer instead of the position in the block and the roles.
    """

    account_id: str
    transaction_hash: str
    tx_block_height: int
    tx_block_timestamp: str | int
    tx_index: int | None = None
    is_signer: bool | None = None
    is_delegated_signer: bool | None = None
    is_real_signer: bool | None = None
    is_any_signer: bool | None = None
    is_predecessor: bool | None = None
    is_explicit_refund_to: bool | None = None
    is_receiver: bool | None = None
    is_real_receiver: bool | None = None
    is_function_call: bool | None = None
    is_action_arg: bool | None = None
    is_event_log: bool | None = None
    is_success: bool | None = None
    signer_id: Any = None

    @property
    def timestamp_ns(self) -> int:
        """The time of the transaction's block, in nanoseconds since 1970."""
        return natural(self.tx_block_timestamp, "tx_block_timestamp")

    @property
    def position(self) -> tuple[int, int]:
        """The block of the transaction and its position there, by which rows are ordered."""
        if self.tx_index is None:
            msg = f"transaction {cut(self.transaction_hash)} has no tx_index"
            raise DecodeError(msg, path="$.account_txs[...].tx_index")
        return self.tx_block_height, self.tx_index


class AccountPage(Struct, gc=False):
    """``/v0/account`` of the Transactions API; the first page counts all rows."""

    account_txs: list[AccountTransaction]
    resume_token: str | None = None
    txs_count: int | None = None


class TransferRow(Struct, gc=False):
    """A transfer of the Transfers API; older responses have fewer members."""

    block_height: str | int
    block_timestamp: str | int
    account_id: str
    asset_id: str
    amount: str
    transaction_id: str | None = None
    receipt_id: str | None = None
    action_index: int | None = None
    log_index: int | None = None
    transfer_index: int | None = None
    signer_id: str | None = None
    predecessor_id: str | None = None
    receipt_account_id: str | None = None
    other_account_id: str | None = None
    asset_type: str | None = None
    method_name: str | None = None
    transfer_type: str | None = None
    human_amount: float | None = None
    usd_amount: float | None = None
    start_of_block_balance: str | None = None
    end_of_block_balance: str | None = None

    @property
    def height(self) -> int:
        """The height of the block in which the transfer took place."""
        return natural(self.block_height, "block_height")

    @property
    def timestamp_ns(self) -> int:
        """The time of that block, in nanoseconds since 1970."""
        return natural(self.block_timestamp, "block_timestamp")

    @property
    def asset(self) -> str:
        """The asset: near, nep141:contract or nep245:contract:token_id."""
        return "near" if self.asset_id == NATIVE else self.asset_id

    @property
    def contract_id(self) -> str | None:
        """The contract of a fungible token; None for other assets."""
        return self.asset_id.removeprefix(FT) if self.asset_id.startswith(FT) else None

    @property
    def change(self) -> int | None:
        """The amount, negative if the account paid it; None where the service cut it."""
        amount = integer(self.amount, "amount")
        return amount if abs(amount) < LARGEST_AMOUNT else None

    @property
    def is_payment(self) -> bool:
        """True if the account paid the amount."""
        return self.amount.startswith("-")

    @property
    def key(self) -> tuple[object, ...]:
        """The members that identify a row of an account; a transfer to itself has two rows."""
        if self.transfer_index is not None:
            return self.height, self.transfer_index, self.is_payment
        indices = self.action_index, self.log_index
        return self.height, self.receipt_id, *indices, self.asset_id, self.amount


class Transfers(Struct, gc=False):
    """``/v0/transfers`` of the Transfers API."""

    transfers: list[TransferRow]
    resume_token: str | None = None


class KeyValue(Struct, gc=False):
    """An entry of the key-value data."""

    block_height: int
    block_timestamp: int
    predecessor_id: str
    current_account_id: str
    key: str
    value: Any
    receipt_id: str | None = None
    action_index: int | None = None
    tx_hash: str | None = None
    signer_id: str | None = None


class KeyValues(Struct, gc=False):
    """A page of entries of the key-value data."""

    entries: list[KeyValue]
    page_token: str | None = None
