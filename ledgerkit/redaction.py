"""
Recognition of secrets, so that no message repeats one.

`secret_in` looks for a secret in a value that a caller passed. It prefers to hide too much: an
error without the value costs the caller little. `hide` removes secrets from a sentence, which may
also quote a response; it leaves public keys, hashes and account ids.
"""

from __future__ import annotations

import html
import re
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from numbers import Real
from os import PathLike
from typing import Never
from urllib.parse import unquote

_SECRET_KEY, _SEED_PHRASE = "a secret key", "a seed phrase"
_API_KEY, _PASSWORD = "what may be an API key", "a password"
_SOME_KEY = "what may be a secret key"  # or a public key
_MIN_HIDDEN_LENGTH = 8  # a shorter secret may be a part of ordinary data
_RAW_KEY_BYTES = (32, 64)
_HINT = 4  # characters of a value that may be no secret, so that its owner recognises it

# Secrets in a sentence --------------------------------------------------------------------

# A public key of ed25519 has at most 44 characters, one of secp256k1 at least 86. Copies of a
# secret key that lost a part, or have letters that base58 lacks, match too.
_KEY = re.compile(
    r"(?i:ed25519)(?:\s?:\s?|%3a)[0-9A-Za-z]{45,}"
    r"|(?i:secp256k1)(?:\s?:\s?|%3a)[0-9A-Za-z]{30,60}(?![0-9A-Za-z])"
    r"|(?<![0-9A-Za-z])(?<!secp256k1:)(?=[0-9a-z]{0,99}[A-Z])(?=[0-9A-Z]{0,99}[a-z])"
    r"(?=[A-Za-z]{0,99}\d)[0-9A-Za-z]{60,110}(?![0-9A-Za-z])"
)
_LONG_RUN = re.compile(r"[0-9A-Za-z]{30}")  # every secret key has one
# Common words of English sentences; none of them is on the BIP-39 list.
_PROSE = "the|and|for|with|not|are|was|has|its|but|from|does|been|into|which|were"
_WORD = rf"(?!(?:{_PROSE})\b)[A-Za-z]{{3,8}}"
_WORDS = 12
_PHRASE = re.compile(rf"\b(?:{_WORD}(?:\s+|'\s*,\s*'|\"\s*,\s*\")){{{_WORDS - 1},}}{_WORD}\b")
_LOGIN = re.compile(r"(?<=:/)(?P<slash>/?)[^\s/@'\"]+(?=@)")
_MEMBER = re.compile(
    r"""(?ix)
    (?P<name>
        [?&;](?:api_?-?key|key|token|access_token|auth|password|secret)=
        | (?:private|secret|api)_?-?key["']?\s*[:=]\s*["']
        | (?:seed_?phrase|mnemonic|passphrase|password)["']?\s*[:=]\s*["']
        | \bbearer\s+(?=\S*\d)(?=\S{8})
    )
    (?!\[key\ hidden\])[^\s&#"']+
    """
)
_MEMBER_WORDS = ("key", "token", "auth", "pass", "secret", "phrase", "mnemonic", "bearer")

# A secret in a value of the caller ----------------------------------------------------------

_CALLERS_KEY = re.compile(
    r"(?:ed25519|secp256k1)\W{0,3}[0-9A-Za-z]{30,}"
    r"|(?<![0-9A-Za-z])(?:0x[0-9a-f]{64}|[0-9a-f]{128})(?![0-9A-Za-z])",
    re.IGNORECASE,
)
_BETWEEN = r"(?:[^A-Za-z.]|\.(?=\s)|\\[nrt]){1,8}"  # except for the dots of account ids
_CALLERS_PHRASE = re.compile(rf"(?<![A-Za-z])(?:{_WORD}{_BETWEEN}){{{_WORDS - 1}}}{_WORD}")
_PHRASE_PART = re.compile(rf"(?<![A-Za-z])(?:{_WORD}\s+){{7}}{_WORD}")  # words may be mistyped
# Separators of words other than spaces.
_SEPARATOR = re.compile(r"\\[nrt]|(?<=[A-Za-z])[,;+](?=[ A-Za-z])")
# A response may be prose, so only words in lower case count.
_LOWER = rf"(?!(?:{_PROSE})\b)[a-z]{{3,8}}"
_RESPONSE_PHRASE = re.compile(
    rf" (?<=[a-z]{{3}} )(?:{_LOWER}\s+){{{_WORDS - 2}}}{_LOWER}(?![a-z])".encode()
)
_TOKEN = re.compile(
    r"(?<![0-9A-Za-z_-])(?:"
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # a UUID
    r"|[0-9a-f]{32}(?![0-9A-Za-z])"
    r"|eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_.-]+"  # a JSON Web Token
    r"|(?=[0-9a-z_-]{0,99}[A-Z])(?=[0-9A-Z_-]{0,99}[a-z])(?=[A-Za-z_-]{0,99}\d)"
    r"[0-9A-Za-z_-]{20,})"
)
_HASH = re.compile(r"[0-9A-Za-z]{40,48}")  # 32 bytes in base58, perhaps mistyped
_LONGEST_KEY = 200
_BROKEN_KEY = re.compile(
    r"(?=[0-9a-z]*[A-Z])(?=[0-9A-Z]*[a-z])(?=[A-Za-z]*\d)[1-9A-HJ-NP-Za-km-z]{60,110}"
)
_INVISIBLE = re.compile(r"[\s\u00ad\u200b-\u200f\u2060\ufeff]|\\[nrt]")


class Secret:
    """The base of objects that hold a secret and never print it."""

    __slots__ = ("__weakref__",)
    noun = _SECRET_KEY


class SecretText(Secret):
    """A secret text, hidden in every message for as long as this object lives."""

    __slots__ = ("_pattern", "_spellings", "_text")
    noun = _PASSWORD
    placeholder = "[password hidden]"

    def __init__(self, text: str) -> None:
        self._text = text
        self._pattern = self._spellings = None
        if len(text) >= _MIN_HIDDEN_LENGTH:
            pattern = "|".join(
                "".join(_character_pattern(char, backslash) for char in text)
                for backslash in (("\\\\", "\\") if "\\" in text else ("\\",))
            )
            self._pattern, self._spellings = re.compile(pattern), re.compile(pattern.encode())
            _in_use.add(self)

    def reveal(self) -> str:
        return self._text

    def hide(self, data: bytes) -> bytes:
        """Replace the secret in bytes, unless it is too short to be distinguished from data."""
        if self._spellings is None:
            return data
        return self._spellings.sub(self.placeholder.encode(), data)

    def hide_text(self, text: str) -> str:
        """Replace the secret in a text, as `hide` does in bytes."""
        return text if self._pattern is None else self._pattern.sub(self.placeholder, text)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} hidden>"

    def __reduce__(self) -> Never:
        msg = f"{self.noun} is never pickled; connect again where it is needed"
        raise TypeError(msg)


_in_use: weakref.WeakSet[SecretText] = weakref.WeakSet()


def _character_pattern(char: str, backslash: str) -> str:
    """
    Return a pattern for a character as it is, and as URLs, JSON and HTML write it.

    `backslash` is how backslashes are written: if each could be written in both ways, a long run
    would match in too many ways.
    """
    if char.isalnum() or char in "-._~":  # never escaped
        return re.escape(char)
    code = f"{ord(char):02x}"
    plain = {char, f"\\{char}", html.escape(char), "+" if char == " " else char}
    plain = {backslash} if char == "\\" else plain
    spellings = "|".join(re.escape(text) for text in sorted(plain, key=len, reverse=True))
    return rf"(?:(?i:%{code}|\\u00{code}|&#x0*{code};)|&#0*{ord(char)};|{spellings})"


def hide(text: str) -> str:
    """Replace each secret in a sentence, and leave everything else."""
    text = _hide_in_use(text)
    if ":/" in text:
        text = _LOGIN.sub(r"\g<slash>[password hidden]", text)
    lower = text.lower()
    if any(name in lower for name in _MEMBER_WORDS):
        text = _MEMBER.sub(r"\g<name>[key hidden]", text)
    if _LONG_RUN.search(text):
        text = _KEY.sub("[secret key hidden]", text)
    if len(text.split(None, _WORDS - 1)) == _WORDS or text.count(",") >= _WORDS - 1:
        text = _PHRASE.sub("[seed phrase hidden]", text)
    return text


def secrets_in_use() -> Iterator[tuple[str, bytes]]:
    """Yield the noun and the text of each API key and password that this process uses."""
    for secret in list(_in_use):
        yield secret.noun, secret.reveal().encode()


def _hide_in_use(text: str) -> str:
    for secret in list(_in_use):
        text = secret.hide_text(text)
    return text


def has_phrase(data: bytes, *, is_request: bool) -> bool:
    """Return True if a request or a response has words that look like a seed phrase."""
    if not is_request:
        return _RESPONSE_PHRASE.search(data) is not None
    text = _SEPARATOR.sub(" ", data.decode("latin-1"))
    return bool(_PHRASE.search(text) or _PHRASE_PART.search(text))


def is_surely_secret(text: str) -> bool:
    """Return True if a text has a secret that no host may receive; other tokens do not count."""
    forms = (text, unquote(text))
    return any(
        _KEY.search(form) or _PHRASE_PART.search(form) or _hide_in_use(form) != form
        for form in forms
    )


def secret_in(value: object) -> str | None:
    """
    Return the kind of secret in a value of a caller, such as "a secret key"; None without one.

    Texts and the items of containers are searched.
    """
    texts: list[str] = []
    for leaf in _leaves(value):
        if leaf is None or isinstance(leaf, int | float):
            continue
        if isinstance(leaf, Secret):
            return leaf.noun
        if isinstance(leaf, bytes) and len(leaf) in _RAW_KEY_BYTES:
            return _SOME_KEY
        texts.append(_leaf_text(leaf))
        if _BROKEN_KEY.fullmatch(_INVISIBLE.sub("", texts[-1][:_LONGEST_KEY])):
            return _SECRET_KEY
    return _secret_in_text(" ".join(texts))


def _leaf_text(leaf: object) -> str:
    if isinstance(leaf, bytes):
        return leaf.decode("utf-8", "replace")
    return str(leaf) if isinstance(leaf, str | PathLike) else repr_of(leaf)


def _leaves(value: object) -> Iterator[object]:
    """Yield the values in containers, also of pandas and numpy; iterators are not consumed."""
    pending = [value]
    visited: dict[int, object] = {}  # containers, which may contain themselves
    while pending:
        item = pending.pop()
        items = _items(item)
        if items is None:
            yield item
        elif id(item) not in visited:
            visited[id(item)] = item
            pending += reversed(items)


def repr_of(value: object) -> str:
    """Return the repr of a value without its class; only its type if it has none."""
    try:
        if isinstance(value, str):
            return str.__repr__(value)  # an AccountId's names its class
        if type(value) is list:
            value = [str.__str__(item) if isinstance(item, str) else item for item in value]
        if isinstance(value, PathLike | datetime):
            return repr(str(value))
        return str(value) if isinstance(value, Real) else repr(value)  # numpy's name their class
    except Exception:  # noqa: BLE001 - an int of 5,000 digits, lists nested too deep, any class
        return f"<{type(value).__name__}>"


def _items(value: object) -> list[object] | None:
    if isinstance(value, Secret | str | bytes | PathLike):
        return None
    with suppress(Exception):  # objects of other libraries raise anything
        if isinstance(value, bytearray | memoryview):
            return [bytes(value)]
        if isinstance(value, Mapping):
            value = (*value.keys(), *value.values())
        if isinstance(value, list | tuple | set | frozenset):
            return list(value)
        if hasattr(value, "to_numpy"):  # pandas, whose labels are shown, too
            labels = [getattr(value, name, None) for name in ("axes", "name", "names")]
            return [value.to_numpy().tolist(), *labels]
        items = value.tolist() if hasattr(value, "tolist") else None
        if isinstance(items, list):
            return items
    return None


def _secret_in_text(text: str) -> str | None:
    """Return the kind of secret in a text, also if it is quoted for a URL or broken by spaces."""
    plain = unquote(text)
    key = _key_in_text(text, plain)
    if key is not None:
        return key
    if _CALLERS_PHRASE.search(plain) or _PHRASE_PART.search(plain):
        return _SEED_PHRASE
    for secret in list(_in_use):
        if secret.hide_text(text) != text:
            return secret.noun
    return _PASSWORD if _LOGIN.search(text) else _api_key_in_text(text, plain)


def _key_in_text(text: str, plain: str) -> str | None:
    compact = _INVISIBLE.sub("", plain)
    if not _LONG_RUN.search(compact):
        return None
    if _KEY.search(text) or _KEY.search(plain):
        return _SECRET_KEY
    for form in (text, plain, compact):
        key = _CALLERS_KEY.search(form)
        if key:
            return _SOME_KEY + _hint(re.split(r"\W+", key[0])[-1])
    return None


def _api_key_in_text(text: str, plain: str) -> str | None:
    for token in _TOKEN.finditer(text):
        if not _HASH.fullmatch(token[0]):
            return _API_KEY + _hint(token[0])
    return _API_KEY if _MEMBER.search(plain) else None


def _hint(text: str) -> str:
    """Return the first characters and the length of a text that may be a hash or a public key."""
    return f" ({text[:_HINT]}…, {len(text)} characters)"
