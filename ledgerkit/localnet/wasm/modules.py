"""
Preparation of Wasm modules: the checks and changes that a node makes before compilation.

Source: nearcore, near-vm-runner/src/prepare/prepare_v3.rs. Imports come from `env` only; numbers
and sizes are limited; the memory has the node's limits, whatever the module declares; custom
sections are dropped. The start function is exported, so that it can be called like a method.
"""

from collections.abc import Iterator

from ledgerkit.localnet.execution_errors import PrepareError

# The limits of nearcore (LimitConfig in parameters.snap).
INITIAL_PAGES = 1024
MAX_PAGES = 2048
PAGE_BYTES = 65_536
MAX_FUNCTIONS = 10_000
MAX_LOCALS = 1_000_000
MAX_BODY_BYTES = 196_608  # one function's, in the snapshot of version 84
MAX_TABLES = 1
MAX_TABLE_ELEMENTS = 10_000
MODULE_BYTES_PER_LOCAL = 2  # since LOCALS_SINCE
MAX_GLOBALS = 65_536  # since GLOBALS_SINCE
LOCALS_SINCE, GLOBALS_SINCE = 87, 88  # versions of the protocol

MEMORY_EXPORT = "\0memory"
START_EXPORT = "\0start"
HEADER = b"\0asm\1\0\0\0"
CUSTOM, _TYPE, _IMPORT, _FUNCTION, _TABLE, _MEMORY, _GLOBAL, _EXPORT, _START = range(9)
_ELEMENT, _CODE, _DATA, _DATA_COUNT = range(9, 13)
# The order of sections in a module.
_ORDER = (
    *(_TYPE, _IMPORT, _FUNCTION, _TABLE, _MEMORY, _GLOBAL, _EXPORT, _START, _ELEMENT),
    *(_DATA_COUNT, _CODE, _DATA),
)
_FUNCTION_KIND, _TABLE_KIND, _MEMORY_KIND, _GLOBAL_KIND = range(4)
_LEB_BITS, _LEB_MORE, _MAX_LEB_BYTES = 7, 0x80, 5
_HAS_MAXIMUM = 1
_EMPTY = b"\0"  # a section without entries


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data, self._position = data, 0

    @property
    def is_over(self) -> bool:
        return self._position >= len(self._data)

    def take(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self._data):
            raise PrepareError("Deserialization")
        data = self._data[self._position : end]
        self._position = end
        return data

    def u32(self) -> int:
        """Read a number in LEB128, seven bits in a byte."""
        value = 0
        for shift in range(0, _MAX_LEB_BYTES * _LEB_BITS, _LEB_BITS):
            byte = self.take(1)[0]
            value |= (byte & ~_LEB_MORE) << shift
            if not byte & _LEB_MORE:
                return value
        raise PrepareError("Deserialization")

    def vector(self) -> bytes:
        return self.take(self.u32())

    def name(self) -> str:
        try:
            return self.vector().decode()
        except UnicodeDecodeError:
            raise PrepareError("Deserialization") from None


def prepare(code: bytes, version: int) -> bytes:
    """Check a valid module against the limits of a protocol version; change it as a node does."""
    sections = dict(_sections(code))
    codes, global_variables = sections.get(_CODE, _EMPTY), sections.get(_GLOBAL, _EMPTY)
    n_imports = _count_imports(sections.get(_IMPORT, _EMPTY))
    if n_imports + _Bytes(codes).u32() > MAX_FUNCTIONS:
        raise PrepareError("TooManyFunctions")
    _check_tables(sections.get(_TABLE, _EMPTY))
    if version >= GLOBALS_SINCE and _Bytes(global_variables).u32() > MAX_GLOBALS:
        raise PrepareError("TooManyGlobals")
    _check_bodies(codes, len(code) if version >= LOCALS_SINCE else None)
    start = sections.pop(_START, None)
    sections[_MEMORY] = b"\1" + bytes([_HAS_MAXIMUM]) + _leb128(INITIAL_PAGES) + _leb128(MAX_PAGES)
    sections[_EXPORT] = _exports(sections.get(_EXPORT, _EMPTY), start)
    parts = [bytes([kind]) + blob(sections[kind]) for kind in _ORDER if kind in sections]
    return HEADER + b"".join(parts)


def _sections(code: bytes) -> Iterator[tuple[int, bytes]]:
    """Iterate over the sections of a module, except custom sections."""
    reader = _Bytes(code)
    if reader.take(len(HEADER)) != HEADER:
        raise PrepareError("Deserialization")
    while not reader.is_over:
        kind, content = reader.take(1)[0], reader.vector()
        if kind not in (CUSTOM, *_ORDER):
            raise PrepareError("Deserialization")
        if kind != CUSTOM:
            yield kind, content


def _count_imports(section: bytes) -> int:
    """Return the number of imports, which must be functions of `env`."""
    reader = _Bytes(section)
    count = reader.u32()
    for _ in range(count):
        module, _name, kind = reader.name(), reader.name(), reader.take(1)[0]
        if module != "env" or kind in (_TABLE_KIND, _GLOBAL_KIND):
            raise PrepareError("Instantiate")
        if kind != _FUNCTION_KIND:
            raise PrepareError("Memory" if kind == _MEMORY_KIND else "Deserialization")
        reader.u32()  # the index of its type
    return count


def _check_tables(section: bytes) -> None:
    reader = _Bytes(section)
    if reader.u32() > MAX_TABLES:
        raise PrepareError("TooManyTables")
    while not reader.is_over:
        reader.take(1)  # the type of the elements
        flags = reader.take(1)[0]
        if reader.u32() > MAX_TABLE_ELEMENTS:
            raise PrepareError("TooManyTableElements")
        if flags & _HAS_MAXIMUM:
            reader.u32()


def _check_bodies(section: bytes, module_bytes: int | None) -> None:
    limit = MAX_LOCALS
    if module_bytes is not None:
        limit = min(limit, module_bytes // MODULE_BYTES_PER_LOCAL)
    n_locals = 0
    reader = _Bytes(section)
    for _ in range(reader.u32()):
        body = reader.vector()
        if len(body) > MAX_BODY_BYTES:
            raise PrepareError("FunctionBodyTooLarge")
        locals_reader = _Bytes(body)
        for _group in range(locals_reader.u32()):
            n_locals += locals_reader.u32()
            locals_reader.take(1)  # their type
            if n_locals > limit:
                raise PrepareError("TooManyLocals")


def _exports(section: bytes, start: bytes | None) -> bytes:
    """Build the export section: the module's exports, the memory and the start function."""
    entries = []
    reader = _Bytes(section)
    for _ in range(reader.u32()):
        name, kind, index = reader.vector(), reader.take(1), reader.u32()
        if kind[0] != _MEMORY_KIND and not name.startswith(b"\0"):
            entries.append(blob(name) + kind + _leb128(index))
    entries.append(blob(MEMORY_EXPORT.encode()) + bytes([_MEMORY_KIND, 0]))
    if start is not None:
        entries.append(blob(START_EXPORT.encode()) + bytes([_FUNCTION_KIND]) + start)
    return _leb128(len(entries)) + b"".join(entries)


def blob(data: bytes) -> bytes:
    return _leb128(len(data)) + data


def _leb128(number: int) -> bytes:
    encoded = bytearray()
    while number >= _LEB_MORE:
        encoded.append(number & ~_LEB_MORE & 0xFF | _LEB_MORE)
        number >>= _LEB_BITS
    encoded.append(number)
    return bytes(encoded)
