"""
Who signs: keys from memory, the environment, a NEAR CLI file or the system's keyring.

The text of a key is turned into a `SecretKey` before anything can go wrong with it in
view: no frame of a traceback out of here holds it. What is wrong with a text is a value
until that text is out of sight.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, ParamSpec, TypeVar

from ledgerkit import client
from ledgerkit.errors import InvalidRequestError
from ledgerkit.extras import require
from ledgerkit.protocol import AccountId, Credentials, PublicKey, SecretKey
from ledgerkit.protocol.types import account_id as checked
from ledgerkit.protocol.types import refuse_hidden
from ledgerkit.transport import networks

if TYPE_CHECKING:
    from collections.abc import Callable

    from ledgerkit.client import Ledger

P = ParamSpec("P")
T = TypeVar("T")

SERVICE = "ledgerkit"  # under which the system's keyring holds keys, by account id
_KEY_RULE = "a SecretKey, its text such as ed25519:…, or a Signer"
_NOBODY = "an account whose key is known: pass key=, or name it with use_signer()"


@dataclass(frozen=True, slots=True)
class Signer:
    """
    An account and a key that signs for it; made by `signer`.

    Parameters
    ----------
    account_id
        The account.
    key
        Its key. It prints as hidden, and is never pickled.
    """

    account_id: AccountId
    key: SecretKey

    @property
    def public_key(self) -> PublicKey:
        """The public half of the key."""
        return self.key.public_key

    def __reduce__(self) -> Never:
        """Refuse to be pickled."""
        msg = "a Signer is never pickled; make it where it is needed"
        raise TypeError(msg)


# Out of sight -----------------------------------------------------------------------------


def sealed(key: object) -> object:
    """Put the text of a key out of sight; what is wrong with it is given back, not raised."""
    if key is None or isinstance(key, SecretKey | Signer | InvalidRequestError):
        return key
    if not isinstance(key, str):
        return refuse_hidden("key", _KEY_RULE)
    try:
        return SecretKey.from_text(key)
    except InvalidRequestError as error:
        return error.with_traceback(None)  # its frames hold the text


def sealing(verb: Callable[P, T]) -> Callable[P, T]:
    """Let a verb never see the text that is passed as its ``key=``."""

    @wraps(verb)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        kwargs["key"] = sealed(kwargs.pop("key", None))
        return verb(*args, **kwargs)

    return wrapper


def _opened(key: object) -> SecretKey | Signer | None:
    """Take what was sealed; raise what is wrong with it."""
    if isinstance(key, InvalidRequestError):
        raise key
    if key is None or isinstance(key, SecretKey | Signer):
        return key
    raise refuse_hidden("key", _KEY_RULE)


# Made and found ---------------------------------------------------------------------------


def signer(
    account_id: str | None = None,
    key: SecretKey | str | None = None,
    *,
    credentials: str | Path | bool | None = None,
    keyring: bool = False,
    network: str | None = None,
) -> Signer:
    """
    Bring an account and its key together.

    Parameters
    ----------
    account_id
        The account; None takes the one that the file or the environment names.
    key
        The key, or its text. None reads it from one of the places below.
    credentials
        A file of NEAR CLI; True for the account's own in ``~/.near-credentials``.
    keyring
        Whether the system's keyring holds it, under the service ``ledgerkit``; needs
        the extra ``ledgerkit[keyring]``.
    network
        Whose folder of ``~/.near-credentials``; None is the session's network.

    Returns
    -------
    signer
        Ready to sign. Without any of these the environment tells, in
        ``LEDGERKIT_ACCOUNT_ID`` and ``LEDGERKIT_SECRET_KEY``.

    Raises
    ------
    InvalidRequestError
        If the key can't be had or is another account's. The sentence shows nothing of it.
    """
    key = sealed(key)  # type: ignore[assignment]  # from here on no text of a key
    name = None if account_id is None else checked(account_id)
    given = [key is not None, credentials not in (None, False), keyring]
    if sum(given) > 1:
        what = "key=, credentials= and keyring="
        raise InvalidRequestError.refuse("key", what, "one place to take the key from")
    if given[1]:
        return _of_file(name, credentials, network)
    if keyring:
        return _together(name, _of_keyring(name))
    return _together(name, _opened(key)) if given[0] else _of_environment(name)


def _together(name: AccountId | None, key: SecretKey | Signer | None) -> Signer:
    """Make a signer of an account and a key."""
    if isinstance(key, Signer):
        if name not in (None, key.account_id):
            raise InvalidRequestError.refuse("signer_id", name, f"the signer's, {key.account_id}")
        return key
    if name is None or key is None:
        raise InvalidRequestError.refuse("signer_id", name, _NOBODY)
    return Signer(name, key)


def _of_file(name: AccountId | None, credentials: Any, network: str | None) -> Signer:
    """Read a file of NEAR CLI."""
    path = _file(name, network) if credentials is True else Path(credentials).expanduser()
    try:
        data: Any = _Sealed(path.read_bytes())
    except OSError as error:
        rule = f"a NEAR CLI file that can be read ({error.strerror})"
        raise InvalidRequestError.refuse("credentials", str(path), rule) from None
    found = data.credentials()
    if name is not None and found.account_id not in (None, name):
        rule = f"a file of {name}; this one is of {found.account_id}"
        raise InvalidRequestError.refuse("credentials", str(path), rule)
    return _together(name or found.account_id, found.secret_key)


class _Sealed:
    """What a file holds, out of sight."""

    __slots__ = ("_found",)

    def __init__(self, data: bytes) -> None:
        try:
            self._found: Credentials | InvalidRequestError = Credentials.from_text(data)
        except InvalidRequestError as error:
            self._found = error.with_traceback(None)

    def credentials(self) -> Credentials:
        """Take what it holds; raise what is wrong with it."""
        if isinstance(self._found, InvalidRequestError):
            raise self._found
        return self._found


def _file(name: AccountId | None, network: str | None) -> Path:
    """Find the file that NEAR CLI keeps for an account."""
    if name is None:
        raise InvalidRequestError.refuse("account_id", None, "the account whose file is meant")
    folder = client.current().network.name if network is None else network
    if Path(folder).name != folder:
        raise InvalidRequestError.refuse("network", network, "the name of a network")
    return Path.home() / ".near-credentials" / folder / f"{name}.json"


def _of_keyring(name: AccountId | None) -> SecretKey | Signer | None:
    """Ask the system's keyring."""
    if name is None:
        raise InvalidRequestError.refuse("account_id", None, "the account whose key is meant")
    keyring = require("keyring", "keyring", "keyring=True")
    problems = require("keyring.errors", "keyring", "keyring=True").KeyringError
    key: object = None
    failed = ""
    try:
        key = sealed(keyring.get_password(SERVICE, str(name)))
    except problems as error:
        failed = type(error).__name__
    if failed:  # raised here: the library's own words might hold the key
        msg = f"the system's keyring did not answer ({failed})"
        raise InvalidRequestError(msg, field="keyring")
    if key is None:
        rule = f"an account whose key the keyring holds under {SERVICE}"
        raise InvalidRequestError.refuse("account_id", str(name), rule)
    return _opened(key)


def _of_environment(name: AccountId | None) -> Signer:
    """Read the environment, as far as it is of the account that is meant."""
    found = _environments(name)
    if found is None:
        raise InvalidRequestError.refuse("signer_id", name, _NOBODY)
    return found


def _environments(name: AccountId | None) -> Signer | None:
    """Read the environment; None where it names no key, or another account."""
    stated = networks.environment("ACCOUNT_ID")
    if stated is None or name not in (None, stated):
        return None
    key = sealed(networks.environment("SECRET_KEY"))
    return None if key is None else _together(checked(stated, "signer_id"), _opened(key))


# The session's own ------------------------------------------------------------------------

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
    Choose who signs where a verb names nobody.

    Parameters
    ----------
    account_id
        The account, or a `Signer`; None forgets the one that was chosen.
    key, credentials, keyring, network
        Where its key is, as for `signer`.

    Returns
    -------
    signer
        The one chosen.

    Raises
    ------
    InvalidRequestError
        If the key can't be had.
    """
    global _default  # noqa: PLW0603 - the session's default
    key = sealed(key)  # type: ignore[assignment]  # from here on no text of a key
    if account_id is None or isinstance(account_id, Signer):
        _default = account_id
    else:
        _default = signer(
            account_id, key, credentials=credentials, keyring=keyring, network=network
        )
    return _default


def find(signer_id: str | None, key: object, ledger: Ledger) -> Signer:
    """
    Find who signs.

    Parameters
    ----------
    signer_id
        The account that a verb names, if it does.
    key
        What it passes as its key, sealed.
    ledger
        Where it is to be sent: the embedded ledger's accounts have published keys.

    Returns
    -------
    signer
        Of what is passed; else the session's, the embedded ledger's or the environment's.

    Raises
    ------
    InvalidRequestError
        If none of these knows the account's key.
    """
    name = None if signer_id is None else checked(signer_id, "signer_id")
    given = _opened(key)
    if given is not None:
        return _together(name, given)
    if _default is not None and name in (None, _default.account_id):
        return _default
    published = _published(ledger, name)
    return published or _of_environment(name)


def _published(ledger: Ledger, name: AccountId | None) -> Signer | None:
    """Take a published key of the embedded ledger."""
    try:
        keys = ledger.world.keys()
    except InvalidRequestError:  # another ledger
        return None
    text = None if name is None else keys.get(name)
    return None if name is None or text is None else Signer(name, SecretKey.from_text(text))
