"""Mutations of JSON documents that know their structure: of values, members, texts and bytes."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from tools.campaigns._byte_mutations import WAYS

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

Path = tuple[str | int, ...]

SHARE = 0.1  # of the texts that are changed byte by byte too
_MARK = "\ue000"  # encloses the position of a literal until the document is written
# Values that JSON libraries write differently, or not at all.
LITERALS = (
    *b"NaN -Infinity 1e999 -0 1E400 0.1 01 18446744073709551616 9223372036854775808".split(),
    *b'"\\ud800" "a\\udfffb" "\\u0000" "\\x" {"a":1,"a":2} {"\\ud800":1}'.split(),
    *(b'"\xff\xfe"', b'"\xed\xa0\x80"', b'"\n"', b'{"\xff":1}'),
    *(b"1" + b"0" * 40, b"-1" + b"0" * 20, b"9" * 5_000, b"[" * 100_000),
    *(b"[" * 2_000 + b"]" * 2_000, b'{"a":' * 2_000 + b"1" + b"}" * 2_000),
)
CHARACTERS = ("0", "-", "\x00", "\xe9", "\u202e", " ", '"', "=")
NAMES = ("error", "result", "x", "", "status", "\ue001", "a.b")
NO_UTF8 = (b"\xff", b"\\ud83d", b"\xc3")
NUMBERS = (0, -1, 1, 1.5, 255, 256, *(2**bits for bits in (31, 63, 64, 128)))
TEXTS = (
    *("", " ", "0", "-1", "1e5", "00", "1_0", "+1", "0x10", "\u0661\u0662", "1.0", "null", "{"),
    *("9" * 19, "9" * 39, "9" * 5_000, *(str(2**bits) for bits in (64, 128)), str(2**128 - 1)),
    *("alice.near", "ed25519:" + "1" * 32, "1" * 32, "\x1b]0;x\x07\u202e", "=1+1"),
    *("2026-13-45T99:99:99Z", "2026-01-01T00:00:00.123456789123Z", "0001-01-01T00:00:00Z"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, *NUMBERS, 2**63 - 1, 2**64 - 1, 2**128 - 1, -(2**63) - 1, *TEXTS),
    *([], {}, [[]], [{}], {"": {}}, [None], ["a", 1, None], {"a": "b"}),
)


def places(document: Any) -> list[Path]:
    paths: list[Path] = []
    waiting: list[tuple[Path, Any]] = [((), document)]
    while waiting:
        path, value = waiting.pop()
        paths.append(path)
        if isinstance(value, dict):
            waiting += [((*path, name), member) for name, member in value.items()]
        elif isinstance(value, list):
            waiting += [((*path, at), element) for at, element in enumerate(value)]
    return paths


def value_at(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document


def changed(document: Any, path: Path, change: Callable[[Any], Any]) -> Any:
    """Return a document with another value at a path; the original stays as it is."""
    if not path:
        return change(document)
    copy = document.copy()
    copy[path[0]] = changed(copy[path[0]], path[1:], change)
    return copy


def damaged(text: bytes, rng: random.Random) -> bytes:
    return rng.choice(WAYS)(rng, [text]) if rng.random() < SHARE else text


class Mutator:
    """
    Mutations of one kind of document after the other, by a random generator.

    Parameters
    ----------
    rng
        The generator.
    documents
        Valid documents, whose subtrees are inserted into others.
    """

    def __init__(self, rng: random.Random, documents: Sequence[Any]) -> None:
        self.rng = rng
        self.documents = documents
        self._places: dict[int, list[Path]] = {}
        self._literals: list[bytes] = []

    def mutate(self, document: Any) -> bytes:
        """Return the text of a document after one to three changes."""
        self._literals = []
        first = self._any_path(document)
        document = changed(document, first, self._change)
        for _ in range(self.rng.choice((0, 0, 1, 2))):
            path = self.rng.choice(places(document)) if len(first) else ()
            document = changed(document, path, self._change)
        text = self._write(document)
        return damaged(text, self.rng)

    def _any_path(self, document: Any) -> Path:
        known = self._places.get(id(document))
        if known is None:
            known = self._places[id(document)] = places(document)
        return self.rng.choice(known)

    def _literal(self, text: bytes) -> str:
        """Return the text that stands for a literal until the document is written."""
        self._literals.append(text)
        return f"{_MARK}{len(self._literals) - 1}{_MARK}"

    def _write(self, document: Any) -> bytes:
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        data = text.encode("utf-8", "surrogatepass")
        for number, literal in enumerate(self._literals):
            data = data.replace(f'"{_MARK}{number}{_MARK}"'.encode(), literal)
        return data

    def _change(self, value: Any) -> Any:
        """Return another value in place of one."""
        kinds = [self._other, self._other, self._subtree, self._wrapped]
        if isinstance(value, dict):
            kinds += [self._members] * 4
        elif isinstance(value, list):
            kinds += [self._elements] * 4
        elif isinstance(value, str):
            kinds += [self._text] * 4
        elif isinstance(value, int):
            kinds += [self._number] * 2
        return self.rng.choice(kinds)(value)

    def _other(self, _: Any) -> Any:
        chosen = self.rng.choice((VALUES, VALUES, LITERALS))
        value = self.rng.choice(chosen)
        return self._literal(value) if isinstance(value, bytes) else value

    def _subtree(self, _: Any) -> Any:
        document = self.rng.choice(self.documents)
        return value_at(document, self._any_path(document))

    def _wrapped(self, value: Any) -> Any:
        """Return the value inside a list, an object or a text."""
        text = self.rng.choice((str, json.dumps))(value)
        return self.rng.choice(([value], {"a": value}, text, [value] * 3))

    def _members(self, value: dict[str, Any]) -> dict[str, Any]:
        """Remove, add, rename or exchange members of an object."""
        rng, copy = self.rng, value.copy()
        names = list(copy)
        way = rng.randrange(5)
        if way == 0 or not names:
            copy[rng.choice(NAMES)] = self._other(None)
        elif way == 1:
            del copy[rng.choice(names)]
        elif way == 2:
            copy[rng.choice(names) + "x"] = copy.pop(rng.choice(names))
        elif way == 3:
            first, second = rng.choice(names), rng.choice(names)
            copy[first], copy[second] = copy[second], copy[first]
        else:
            for name in rng.sample(names, rng.randrange(len(names)) + 1):
                del copy[name]
        return copy

    def _elements(self, value: list[Any]) -> list[Any]:
        """Remove, add, repeat or exchange elements of a list."""
        rng, copy = self.rng, list(value)
        way = rng.randrange(5)
        if way == 0 or not copy:
            copy.insert(rng.randrange(len(copy) + 1), self._other(None))
        elif way == 1:
            del copy[rng.randrange(len(copy))]
        elif way == 2:
            copy.append(rng.choice(copy))
        elif way == 3:
            rng.shuffle(copy)
        else:
            copy[rng.randrange(len(copy))] = self._subtree(None)
        return copy

    def _number(self, value: int) -> Any:
        """Change a number a little, or write it as text."""
        forms = (str(value), value + 1, value - 1, -value, value * 2**32, float(value % 2**53))
        return self.rng.choice(forms)

    def _text(self, value: str) -> Any:
        """Change characters of a text, or the document that it encodes."""
        rng = self.rng
        nested = self._nested(value) if rng.random() < 0.7 else None
        if nested is not None:
            return nested
        at = rng.randrange(len(value) + 1)
        wrong = json.dumps(value).encode()[:-1] + rng.choice(NO_UTF8) + b'"'
        forms = (
            value[:at],
            value[:at] + rng.choice(CHARACTERS) + value[at:],
            self._literal(wrong),
            value.swapcase(),
            value[at:] + value[:at],
            value * rng.choice((2, 50)),
        )
        return rng.choice(forms)

    def _nested(self, value: str) -> str | None:
        """Mutate the document that a text encodes: of an event, or of arguments in base64."""
        head = "EVENT_JSON:"
        if value.startswith(head):
            inner = self._inner(value[len(head) :].encode())
            return None if inner is None else head + inner.decode("utf-8", "replace")
        try:
            data = base64.b64decode(value, validate=True)
        except ValueError:
            return None
        inner = self._inner(data)
        return None if inner is None else base64.b64encode(inner).decode()

    def _inner(self, data: bytes) -> bytes | None:
        """Mutate a document inside another one; None if the bytes are none."""
        try:
            document = json.loads(data)
        except ValueError:
            return None
        inner = Mutator(self.rng, self.documents)
        path = self.rng.choice(places(document))
        text = inner._write(changed(document, path, inner._change))
        return damaged(text, self.rng)
