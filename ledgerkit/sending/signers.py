"""
Signers: keys from memory, the environment, a NEAR CLI file or the system's keyring.

The text of a key is converted to a `SecretKey` before anything else can fail, so that no
local variable in a traceback contains it. For the same reason the error for a malformed text
is returned first, and raised once the text is out of scope.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, ParamSpec, TypeVar

from ledgerkit import client, validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.extras import require
from ledgerkit.protocol import AccountId, Credentials, PublicKey, SecretKey
from ledgerkit.protocol.types import account_id as checked_id
from ledgerkit.protocol.types import refuse_hidden
from ledgerkit.redaction import Secret
from ledgerkit.transport import networks

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger

P = ParamSpec("P")
T = TypeVar("T")

SERVICE = "ledgerkit"  # the service under which the keyring stores keys, by account id
_KEY_RULE = "a SecretKey, its text such as ed25519:…, or a Signer"
_NO_PUBLIC_KEY = (
    "a secret key, but this text has the length of a public key (if it is the seed of a secret "
    "key, pass SecretKey.from_text(seed))"
)
_NO_KEY = "an account with a known key; pass key= with it, or call use_signer() once"


@dataclass(frozen=True, slots=True)
class Signer(Secret):
    """
    An account with a key that signs for it; built by `signer`.

    Parameters
    ----------
    account_id
        The account.
    key
        Its key. A repr hides it, and it is never pickled.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> alice = lk.signer("alice.near", ledger.world.keys()["alice.near"])
    >>> alice.account_id, alice.key
    (AccountId('alice.near'), <SecretKey ed25519:… hidden>)
    """

    account_id: AccountId
    key: SecretKey

    def __post_init__(self) -> None:
        """Check both fields: a text in either of them may be a key, which a repr would show."""
        object.__setattr__(self, "account_id", checked_id(self.account_id))
        if not isinstance(self.key, SecretKey):
            raise refuse_hidden("key", "a SecretKey, which signer() builds from its text")

    @property
    def public_key(self) -> PublicKey:
        """The public half of the key."""
        return self.key.public_key

    def __reduce__(self) -> Never:
        """Raise a TypeError: a signer is never pickled."""
        msg = "a Signer is never pickled; create it in the process that signs"
        raise TypeError(msg)


# Hiding the text of keys ------------------------------------------------------------------


def seal(key: object) -> object:
    """Convert the text of a key to a `SecretKey`, or to the error to raise for it."""
    if key is None or isinstance(key, SecretKey | Signer | InvalidRequestError):
        return key
    if not isinstance(key, str):
        return refuse_hidden("key", _KEY_RULE)
    # The seed of an ed25519 key has as many bytes as a public key, and reads as one.
    if isinstance(_value_or_error(PublicKey.from_text, key), PublicKey):
        return refuse_hidden("key", _NO_PUBLIC_KEY)
    return _value_or_error(SecretKey.from_text, key)


def _value_or_error(build: Callable[[Any], T], secret: object) -> T | InvalidRequestError:
    try:
        return build(secret)
    except InvalidRequestError as error:
        return error.with_traceback(None)  # the frames of its traceback hold the secret


def seals_key(verb: Callable[P, T]) -> Callable[P, T]:
    """Decorate a verb so that it never receives the text passed as ``key=``."""

    @wraps(verb)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        kwargs["key"] = seal(kwargs.pop("key", None))
        return verb(*args, **kwargs)

    return wrapper


def _unseal(key: object) -> SecretKey | Signer | None:
    if isinstance(key, InvalidRequestError):
        raise key
    if key is None or isinstance(key, SecretKey | Signer):
        return key
    raise refuse_hidden("key", _KEY_RULE)


# Building signers -------------------------------------------------------------------------


def signer(
    account_id: str | None = None,
    key: SecretKey | str | None = None,
    *,
    credentials: str | Path | bool | None = None,
    keyring: bool = False,
    network: str | None = None,
) -> Signer:
    """
    Return a signer: an account with its key.

    Parameters
    ----------
    account_id
        The account; None uses the account in the file or the environment.
    key
        The key, or its text. None reads it from `credentials`, `keyring` or, without
        these, the environment variables ``LEDGERKIT_ACCOUNT_ID`` and
        ``LEDGERKIT_SECRET_KEY``.
    credentials
        Path of a NEAR CLI file; True reads the account's own file in
        ``~/.near-credentials``, or the one key in its folder there.
    keyring
        Read the key from the system's keyring, service ``ledgerkit``; needs the extra
        ``ledgerkit[keyring]``.
    network
        The network's folder in ``~/.near-credentials``; None is the session's network.

    Returns
    -------
    signer
        The signer, for `use_signer` or the ``key=`` of a verb.

    Raises
    ------
    InvalidRequestError
        If no key is found, or it belongs to another account. The message never shows it.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> alice = lk.signer("alice.near", ledger.world.keys()["alice.near"])
    >>> alice
    Signer(account_id=AccountId('alice.near'), key=<SecretKey ed25519:… hidden>)
    >>> lk.transfer("bob.near", "1 NEAR", key=alice).fully_succeeded
    True
    """
    key = seal(key)  # type: ignore[assignment]  # its text is gone from here on
    name = None if account_id is None else checked_id(account_id)
    has_file = credentials is not None and credentials is not False
    validation.flag(keyring, "keyring")
    if (key is not None) + has_file + keyring > 1:
        msg = "several keys: pass only one of key=, credentials= and keyring="
        raise InvalidRequestError(msg, field="key")
    if has_file:
        return _from_file(name, credentials, network)
    if keyring:
        return _build_signer(name, _keyring_key(name))
    return _environment_signer(name) if key is None else _build_signer(name, _unseal(key))


def _build_signer(name: AccountId | None, key: SecretKey | Signer | None) -> Signer:
    if isinstance(key, Signer):
        if name not in (None, key.account_id):
            rule = f"the account of the signer passed as key=, {key.account_id}"
            raise InvalidRequestError.refuse("signer_id", name, rule)
        return key
    if name is None or key is None:
        raise _no_key(name)
    return Signer(name, key)


def _no_key(name: AccountId | None) -> InvalidRequestError:
    if name is None:
        return InvalidRequestError.required("signer_id", _NO_KEY)
    return InvalidRequestError.refuse("signer_id", name, _NO_KEY)


def _from_file(name: AccountId | None, credentials: Any, network: str | None) -> Signer:
    if not isinstance(credentials, str | PathLike) and credentials is not True:
        raise InvalidRequestError.refuse("credentials", credentials, "True, or a path")
    validation.no_secret(credentials, "credentials")
    path = _cli_file(name, network) if credentials is True else Path(credentials).expanduser()
    try:
        content = _value_or_error(Credentials.from_text, path.read_bytes())
    except (OSError, ValueError) as error:  # ValueError: a null character, or a lone surrogate
        rule = f"a readable NEAR CLI file ({getattr(error, 'strerror', error)})"
        raise InvalidRequestError.refuse("credentials", str(path), rule) from None
    if isinstance(content, InvalidRequestError):
        raise content
    if name is not None and content.account_id not in (None, name):
        rule = f"a file of {name}, but this file is of {content.account_id}"
        raise InvalidRequestError.refuse("credentials", str(path), rule)
    return _build_signer(name or content.account_id, content.secret_key)


def _cli_file(name: AccountId | None, network: str | None) -> Path:
    if name is None:
        raise InvalidRequestError.required("account_id", "the account whose file is read")
    folder = client.current().network.name if network is None else network
    if Path(folder).name != folder:
        raise InvalidRequestError.refuse("network", network, "the name of a network")
    home = Path.home() / ".near-credentials" / folder
    path = home / f"{name}.json"
    return path if path.exists() else _only_file(home / name, path)


def _only_file(folder: Path, default: Path) -> Path:
    # Source: near/near-cli-rs, src/common.rs, save_access_key_to_legacy_keychain: each key is in
    # <account>/<public key>.json, and <account>.json is never overwritten.
    paths = sorted(folder.glob("*.json"))
    if len(paths) > 1:
        rule = f"the path of one of its files: {', '.join(path.name for path in paths)}"
        raise InvalidRequestError.refuse("credentials", str(folder), rule)
    return paths[0] if paths else default


def _keyring_key(name: AccountId | None) -> SecretKey | Signer | None:
    if name is None:
        raise InvalidRequestError.required("account_id", "the account whose key is read")
    keyring = require("keyring", "keyring", "keyring=True")
    keyring_error = require("keyring.errors", "keyring", "keyring=True").KeyringError
    key: object = None
    failure = ""
    try:
        key = seal(keyring.get_password(SERVICE, str(name)))
    except keyring_error as error:
        failure = type(error).__name__
    if failure:  # raised out here, since the library's own message might hold the key
        msg = f"the system's keyring could not be read ({failure})"
        raise InvalidRequestError(msg, field="keyring")
    if key is None:
        rule = f"an account whose key the keyring holds under {SERVICE}"
        raise InvalidRequestError.refuse("account_id", str(name), rule)
    return _unseal(key)


def _environment_signer(name: AccountId | None) -> Signer:
    account_id = networks.environment("ACCOUNT_ID")
    if account_id is None or name not in (None, account_id):
        raise _no_key(name)
    key = seal(networks.environment("SECRET_KEY"))
    if key is None:
        raise _no_key(name)
    return _build_signer(checked_id(account_id, "signer_id"), _unseal(key))


# The session's signer ---------------------------------------------------------------------

_default: Signer | None = None


def use_signer(
    account_id: str | Signer | None,
    key: SecretKey | str | None = None,
    *,
    credentials: str | Path | bool | None = None,
    keyring: bool = False,
    network: str | None = None,
) -> Signer | None:
    """
    Set the session's signer, used by verbs that are called without a signer.

    Parameters
    ----------
    account_id
        The account, or a `Signer`; None unsets the session's signer.
    key, credentials, keyring, network
        The source of its key, as for `signer`.

    Returns
    -------
    signer
        The session's signer.

    Raises
    ------
    InvalidRequestError
        If no key is found, or it belongs to another account.

    Examples
    --------
    >>> ledger = lk.connect("local")
    >>> alice = lk.use_signer("alice.near", ledger.world.keys()["alice.near"])
    >>> lk.transfer("bob.near", "1 NEAR").signer_id
    'alice.near'
    """
    global _default  # noqa: PLW0603 - the session's default
    key = seal(key)  # type: ignore[assignment]  # its text is gone from here on
    if account_id is None or isinstance(account_id, Signer):
        _default = account_id
    else:
        _default = signer(
            account_id, key, credentials=credentials, keyring=keyring, network=network
        )
    return _default


def find_signer(signer_id: str | None, key: object, ledger: Ledger) -> Signer:
    """Return the signer passed, else the session's, the embedded ledger's or the environment's."""
    name = None if signer_id is None else checked_id(signer_id, "signer_id")
    passed = _unseal(key)
    if passed is not None:
        return _build_signer(name, passed)
    if _default is not None and name in (None, _default.account_id):
        return _default
    return _published_signer(ledger, name) or _environment_signer(name)


def _published_signer(ledger: Ledger, name: AccountId | None) -> Signer | None:
    if name is None or not ledger.is_embedded:
        return None
    text = ledger.world.keys().get(name)
    return None if text is None else Signer(name, SecretKey.from_text(text))
