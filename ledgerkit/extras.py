"""Optional libraries, loaded on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ledgerkit.errors import InvalidRequestError


def require(module: str, extra: str, purpose: str) -> Any:
    """
    Import a module of an optional library.

    Parameters
    ----------
    module
        Its full name, such as "matplotlib.pyplot".
    extra
        The extra of ledgerkit that installs the library, such as "notebook".
    purpose
        What needs the library: the subject of the error's sentence, such as "A plot".

    Returns
    -------
    module
        The imported module.

    Raises
    ------
    InvalidRequestError
        If the library can't be imported. The sentence says how to install it.
    """
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
