"""Optional libraries, loaded on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ledgerkit.errors import InvalidRequestError


def require(module: str, extra: str, purpose: str) -> Any:
    """Import an optional module; `purpose` begins the error, such as "A plot needs matplotlib"."""
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise InvalidRequestError(
            f'{purpose} needs {library}: pip install "ledgerkit[{extra}]"',
            field="extra",
            value=extra,
            rule=f"ledgerkit[{extra}] installed",
        ) from error
