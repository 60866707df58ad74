"""Headers of blocks, each checked: its hash, the block before it, and who approved that one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerkit import proofs
from ledgerkit.api import rpc
from ledgerkit.errors import ProofError
from ledgerkit.protocol.types import CryptoHash

if TYPE_CHECKING:
    from ledgerkit.api.models.commitments import Header, Validator
    from ledgerkit.ledger import Ledger


class Headers:
    """
    The headers and validators of a network, each with its hash recomputed.

    Parameters
    ----------
    ledger
        The ledger to read them from.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._validators: dict[str, list[Validator]] = {}

    def read(self, block_hash: str) -> Header:
        """Read a header by its hash, and check it."""
        header = self.ledger.send(rpc.block_header(block_hash)).header
        if header.hash != block_hash:
            msg = f"Block {header.hash} was sent for {block_hash}"
            raise ProofError(msg, block_hash=block_hash)
        proofs.check_header(header)
        return header

    def validators(self, header: Header) -> list[Validator]:
        """Read the validators of a block's epoch, to which an earlier header commits."""
        if header.epoch_id not in self._validators:
            # `next_epoch_id` is the hash of the last block of the epoch before.
            before = self.read(header.next_epoch_id)
            validators = self.ledger.send(rpc.validators_ordered(header.hash))
            proofs.check_validators(CryptoHash(before.hash), validators, before.next_bp_hash)
            self._validators[header.epoch_id] = validators
        return self._validators[header.epoch_id]


class HeaderChecks:
    """
    Checks of the headers of a chain, one after the other.

    Parameters
    ----------
    headers
        Where the validators are read from; None checks no approvals.
    """

    def __init__(self, headers: Headers | None) -> None:
        self._headers = headers
        self._before: Header | None = None

    def add(self, header: Header) -> bool:
        """
        Check the next header; return True if it shows that the block before it is approved.

        After a skipped height, approvals name the height of that block and not its hash; a later
        header, whose approvals name one, then shows it.

        Raises `ProofError` if it is not what its hash commits to, does not follow on the one
        before, or if that one is not approved by validators with more than two thirds of the stake.
        """
        proofs.check_header(header)
        before, self._before = self._before, header
        if before is not None and header.prev_hash != before.hash:
            msg = f"Block {header.height} does not follow block {before.height}"
            raise ProofError(msg, block_hash=header.hash)
        prev_height = header.prev_height  # headers before version 3 have none
        if prev_height is None and before is not None:
            prev_height = before.height
        if self._headers is None or prev_height is None:
            return False
        prev_hash = CryptoHash(header.prev_hash)
        message = proofs.approved_message(bytes(prev_hash), prev_height, header.height)
        validators = self._headers.validators(header)
        proofs.check_approvals(prev_hash, header.approvals, validators, message)
        return header.height == prev_height + 1
