"""
Ids that are made of something: accounts of keys or state, receipts and data of their creator.

All are pure functions of bytes. Receipt ids follow the rule in force since protocol
version 77: the hash of the creator's id, the height of the block being applied, and a
number that tells apart what one creator makes.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol import types
from ledgerkit.protocol.borsh import u64
from ledgerkit.protocol.curves import keccak256
from ledgerkit.protocol.types import U64_MAX, AccountId, CryptoHash, PublicKey, crypto_hash, whole

if TYPE_CHECKING:
    from ledgerkit.protocol.actions import StateInit

_ADDRESS = slice(12, None)


def implicit_account_id(public_key: PublicKey | str) -> AccountId:
    """
    Name the account that exists by virtue of an ed25519 key.

    Parameters
    ----------
    public_key
        The key.

    Returns
    -------
    account_id
        64 hexadecimal digits.

    Raises
    ------
    InvalidRequestError
        If it is no ed25519 key.
    """
    return AccountId(_of_curve(public_key, "ed25519").hex())


def eth_implicit_account_id(public_key: PublicKey | str) -> AccountId:
    """
    Name the account that exists by virtue of a secp256k1 key.

    Parameters
    ----------
    public_key
        The key.

    Returns
    -------
    account_id
        ``0x`` and 40 hexadecimal digits: the key's Ethereum address.

    Raises
    ------
    InvalidRequestError
        If it is no secp256k1 key, or ``ledgerkit[secp256k1]`` is not installed.
    """
    digest = keccak256(_of_curve(public_key, "secp256k1"))
    return AccountId(f"0x{digest[_ADDRESS].hex()}")


def _of_curve(value: PublicKey | str, curve: str) -> bytes:
    """Check that a key is of the curve an id needs."""
    key = types.public_key(value)
    if key.curve != curve:
        raise InvalidRequestError.refuse("public_key", str(key), f"a key of {curve}")
    return key.data


def deterministic_account_id(state_init: StateInit) -> AccountId:
    """
    Name the account that exists by virtue of its first state.

    Parameters
    ----------
    state_init
        Its code and records.

    Returns
    -------
    account_id
        ``0s`` and 40 hexadecimal digits.

    Raises
    ------
    InvalidRequestError
        If ``ledgerkit[secp256k1]``, which brings keccak, is not installed.
    """
    return AccountId(f"0s{keccak256(state_init.encode())[_ADDRESS].hex()}")


def receipt_id_of(base: bytes | str, height: int, salt: int) -> CryptoHash:
    """
    Name what a transaction or a receipt makes.

    Parameters
    ----------
    base
        The hash of the transaction (salt 0), or the id of the receipt (salt: the
        position among all that it makes, data receipts too).
    height
        The height of the block being applied.
    salt
        Tells apart what one creator makes.

    Returns
    -------
    receipt_id
        The id.

    Raises
    ------
    InvalidRequestError
        If a value is out of range.
    """
    packed = u64(whole(height, "height", U64_MAX))
    parts = crypto_hash(base, "base") + packed + u64(whole(salt, "salt", U64_MAX))
    return CryptoHash(sha256(parts).digest())


def action_hash(receipt_id: bytes | str, height: int, index: int) -> CryptoHash:
    """
    Name an action of a receipt; its data ids and random seed are made of this.

    Parameters
    ----------
    receipt_id
        The receipt.
    height
        The height of the block being applied.
    index
        The action's position, from 0.

    Returns
    -------
    hash
        The hash; its salts count down, so that they meet no receipt's.

    Raises
    ------
    InvalidRequestError
        If a value is out of range.
    """
    return receipt_id_of(receipt_id, height, U64_MAX - whole(index, "index", U64_MAX))


def data_id(action: bytes | str, height: int, salt: int) -> CryptoHash:
    """
    Name a piece of data that a callback waits for.

    Parameters
    ----------
    action
        The `action_hash` of the action that asks for it.
    height
        The height of the block being applied.
    salt
        How many data ids the action has made before.

    Returns
    -------
    data_id
        The id.

    Raises
    ------
    InvalidRequestError
        If a value is out of range.
    """
    return receipt_id_of(action, height, salt)


def random_seed_of(action: bytes | str, random_value: bytes | str) -> CryptoHash:
    """
    Give the random seed that an action sees.

    Parameters
    ----------
    action
        The `action_hash` of the action.
    random_value
        The block's.

    Returns
    -------
    seed
        32 bytes.

    Raises
    ------
    InvalidRequestError
        If a value is no hash.
    """
    parts = crypto_hash(action, "action") + crypto_hash(random_value, "random_value")
    return CryptoHash(sha256(parts).digest())
