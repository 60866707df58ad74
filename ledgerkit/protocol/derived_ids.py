"""
Derived ids: of accounts from keys or state, and of receipts and data from their creators.

Receipt ids follow the rule in force since protocol version 77, as in nearcore's
core/primitives/src/utils.rs: the hash of the creator's id, the height of the block being applied,
and a salt that distinguishes the ids that one creator makes.
"""

from __future__ import annotations

from hashlib import sha3_256
from typing import TYPE_CHECKING

from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol import types
from ledgerkit.protocol.borsh import u64
from ledgerkit.protocol.curves import keccak256
from ledgerkit.protocol.types import AccountId, CryptoHash, PublicKey, crypto_hash
from ledgerkit.units import U64_MAX
from ledgerkit.validation import integer

if TYPE_CHECKING:
    from ledgerkit.protocol.actions import StateInit, UniversalStateInitV1

_ADDRESS = slice(12, None)  # an Ethereum address is the last 20 bytes of a Keccak hash
_PADDING = 4  # bits by which 52 symbols of 5 bits exceed a hash


def implicit_account_id(public_key: PublicKey | str) -> AccountId:
    """
    Derive the implicit account id of an ed25519 key.

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
        If the key is not an ed25519 key.
    """
    return AccountId(_key_bytes(public_key, "ed25519").hex())


def eth_implicit_account_id(public_key: PublicKey | str) -> AccountId:
    """
    Derive the implicit account id of a secp256k1 key.

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
        If the key is not a secp256k1 key, or ``ledgerkit[secp256k1]`` is not installed.
    """
    digest = keccak256(_key_bytes(public_key, "secp256k1"))
    return AccountId(f"0x{digest[_ADDRESS].hex()}")


def _key_bytes(value: PublicKey | str, curve: str) -> bytes:
    key = types.public_key(value)
    if key.curve != curve:
        raise InvalidRequestError.refuse("public_key", str(key), f"a key of the curve {curve}")
    return key.data


def deterministic_account_id(state_init: StateInit) -> AccountId:
    """
    Derive the account id of an initial state (NEP-616).

    Parameters
    ----------
    state_init
        The code and the records.

    Returns
    -------
    account_id
        ``0s`` and 40 hexadecimal digits.

    Raises
    ------
    InvalidRequestError
        If ``ledgerkit[secp256k1]``, which includes Keccak, is not installed.
    """
    return AccountId(f"0s{keccak256(state_init.encode())[_ADDRESS].hex()}")


def universal_account_id(state_init: UniversalStateInitV1 | bytes) -> AccountId:
    """
    Derive the account id of an initial state with keys (NEP-655).

    Parameters
    ----------
    state_init
        The initial state, or its bytes as they are sent.

    Returns
    -------
    account_id
        ``0u`` and 52 symbols.

    Examples
    --------
    >>> from ledgerkit.protocol import UniversalStateInitV1, universal_account_id
    >>> universal_account_id(UniversalStateInitV1(code="code.near"))
    AccountId('0uartat3agnh029e3nqsqzxtz5pd3130stv6a2eafszq4vgg56kaag')
    """
    data = state_init if isinstance(state_init, bytes) else state_init.encode()
    bits = int.from_bytes(sha3_256(data).digest()) << _PADDING
    symbols = [types.BASE32[bits >> shift & 31] for shift in range(255, -1, -5)]
    return AccountId(f"0u{''.join(symbols)}")


def receipt_id_of(base: bytes | str, height: int, salt: int) -> CryptoHash:
    """
    Derive the id of a receipt.

    Parameters
    ----------
    base
        The hash of the transaction that creates it (salt 0), or the id of the receipt (salt: its
        position among all receipts created, data receipts included).
    height
        The height of the block being applied.
    salt
        The number that distinguishes receipts of the same creator.

    Returns
    -------
    receipt_id
        The receipt id.

    Raises
    ------
    InvalidRequestError
        If a value is out of range.
    """
    packed = u64(integer(height, "height", most=U64_MAX))
    parts = crypto_hash(base, "base") + packed + u64(integer(salt, "salt", most=U64_MAX))
    return CryptoHash.of(parts)


def action_hash(receipt_id: bytes | str, height: int, index: int) -> CryptoHash:
    """
    Derive the hash of an action in a receipt, the base of its data ids and random seed.

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
        The hash. Its salts count down from 2**64 - 1, so that they never equal a receipt's.

    Raises
    ------
    InvalidRequestError
        If a value is out of range.
    """
    return receipt_id_of(receipt_id, height, U64_MAX - integer(index, "index", most=U64_MAX))


def data_id(action: bytes | str, height: int, salt: int) -> CryptoHash:
    """
    Derive the id of data that a callback waits for.

    Parameters
    ----------
    action
        The `action_hash` of the action that creates the callback.
    height
        The height of the block being applied.
    salt
        The number of data ids that the action has created before.

    Returns
    -------
    data_id
        The data id.

    Raises
    ------
    InvalidRequestError
        If a value is out of range.
    """
    return receipt_id_of(action, height, salt)


def random_seed_of(action: bytes | str, random_value: bytes | str) -> CryptoHash:
    """
    Derive the random seed of an action.

    Parameters
    ----------
    action
        The `action_hash` of the action.
    random_value
        The random value of the block.

    Returns
    -------
    seed
        32 bytes.

    Raises
    ------
    InvalidRequestError
        If a value is not a hash.
    """
    parts = crypto_hash(action, "action") + crypto_hash(random_value, "random_value")
    return CryptoHash.of(parts)
