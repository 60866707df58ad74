"""Remedies in the words of their reader: a command line's options, or the explorer's tabs."""

from __future__ import annotations

import re
from typing import NamedTuple


class _Wording(NamedTuple):
    """A pattern in a message for Python, and its replacements for other readers; None keeps it."""

    python: str
    command_line: str | None = None
    explorer: str | None = None


_WORDINGS = (
    _Wording(
        r'Use connect\("(\w+)"\)', r"Use --network \1", r"Choose the network \1 in the tab Network"
    ),
    _Wording(r'connect\("(\w+)"\)', r"--network \1", r"the network \1 (tab Network)"),
    _Wording(
        r"API key passed to connect\(\)",
        "API key in LEDGERKIT_API_KEY",
        "API key entered in the tab Network",
    ),
    _Wording(
        r", lower rate=, or connect with an API key",
        ", or set LEDGERKIT_API_KEY",
        ", or connect with an API key in the tab Network",
    ),
    _Wording(r"key as api_key=", "key in LEDGERKIT_API_KEY"),
    _Wording(r"with rpc_url= or api_url=", "with --rpc-url or --api-url"),
    _Wording(r"Pass archival_rpc_url= to connect\(\)", "Pass its address as --rpc-url"),
    _Wording(r"Pass connect\(\) its address as (\w+)=", r"Set its address as LEDGERKIT_\1"),
    _Wording(r"pass (blocks_url)= to connect\(\)", r"set LEDGERKIT_\1"),
    _Wording(r", or allow more with connect\(max_response_bytes=\.\.\.\)", ""),
    _Wording(
        r'Ask it once more while connected, within lk\.record\(path, mode="extend"\)',
        "Record the command again, in a new file",
    ),
    _Wording(r"with keys\(\)", "with the command keys", "in the tab Account"),
    _Wording(r"use trace\('(\w+)'\)", r"use ledgerkit trace \1", r"search for \1"),
    _Wording(r", or read the receipt with receipt\('\w+'\)", "", ", or search for its id"),
    _Wording(r"retry_failed=True", "--retry-failed"),
)


def for_command_line(message: str) -> str:
    """Return a message with options and commands in place of arguments and functions."""
    for wording in _WORDINGS:
        message = _replace(wording.python, wording.command_line, message)
    return re.sub(r"LEDGERKIT_\w+", lambda name: name[0].upper(), message)


def for_explorer(message: str) -> str:
    """Return a message with tabs of the explorer in place of functions."""
    for wording in _WORDINGS:
        message = _replace(wording.python, wording.explorer, message)
    return message


def _replace(pattern: str, replacement: str | None, message: str) -> str:
    return message if replacement is None else re.sub(pattern, replacement, message)
