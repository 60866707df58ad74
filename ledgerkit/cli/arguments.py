"""Arguments that several commands share: their declarations, and the parser."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from ledgerkit import errors, validation
from ledgerkit.redaction import secret_in
from ledgerkit.visible_text import escape_invisible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ledgerkit.ledger import Ledger

_MOST_DIGITS = 20  # of a height, which has 64 bits
# An option that people guess, with its value: a key is read from the environment only.
_SECRET_OPTION = re.compile(r"(?i)(--?[\w-]*(?:key|token|secret|pass|phrase)[\w-]*)[ =]\S.*")


class Parser(argparse.ArgumentParser):
    """A parser whose messages repeat no secret, with invisible characters escaped."""

    _arguments: Sequence[str] = ()

    @property
    def actions(self) -> Sequence[argparse.Action]:
        """The declared options and arguments."""
        return self._actions

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments, which must all be known, and store them for `error`."""
        self._arguments = sys.argv[1:] if args is None else args
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            options = [name for action in self.actions for name in action.option_strings]
            hint = _hint(unknown[0], options)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Check a choice; the message names the one that a misspelt value is most like."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += _hint(value, action.choices or ())
            raise

    def error(self, message: str) -> NoReturn:
        """Print the message and exit."""
        message = _SECRET_OPTION.sub(r"\1 (not shown)", message)
        # The message alone could mislead: a list of commands reads like a seed phrase.
        secret = secret_in(message) and secret_in(self._arguments)
        if secret is not None:
            message = f"{secret} was passed as an argument, and is not shown"
        super().error(escape_invisible(message))


def _hint(word: str, choices: Iterable[str]) -> str:
    """Return a sentence with the choice that a misspelt word is most like, or ""."""
    hint = errors.did_you_mean(word.partition("=")[0], choices)
    return f". {hint}" if hint else ""


# Declarations -----------------------------------------------------------------------------


def declare_network(parser: argparse.ArgumentParser) -> None:
    """Declare the options that choose the network."""
    parser.add_argument(
        "--network",
        help="mainnet, testnet, local, any name with addresses, or a recording (FILE.lk)",
    )
    parser.add_argument("--rpc-url", help="address of the JSON-RPC endpoint")
    parser.add_argument("--api-url", help="address of the REST API")
    parser.add_argument(
        "--record", metavar="FILE.lk", help="record all requests and responses in a new file"
    )


def declare_form(parser: argparse.ArgumentParser, more_formats: Sequence[str] = ()) -> None:
    """Declare the options that choose how a frame is printed."""
    formats = ("table", "csv", "json", *more_formats)
    parser.add_argument("--format", choices=formats, default="table", help="output format")
    parser.add_argument(
        "--columns", metavar="NAME,…", help="the columns to print, in this order; default: all"
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="print a table with all digits, in smallest units, as CSV and JSON always are",
    )
    parser.add_argument(
        "--raw",
        action="store_true",
        help="print texts exactly: control characters are not escaped, nor formulas in CSV",
    )


def declare_ids(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Declare account ids; optional, because --from-file needs none."""
    parser.add_argument("account_id", nargs="*", help="one or more account ids")
    return parser


def declare_at(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Declare the option that chooses a block."""
    parser.add_argument("--at", help="a height, a hash, final, optimistic, or an ISO time")
    return parser


def declare_range(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Declare the options that choose a range of blocks."""
    block = "a height, a hash, genesis, final, or an ISO time"
    parser.add_argument("--start", help=f"the first block: {block}; default: the first indexed one")
    parser.add_argument("--stop", help="the block after the last one, as --start; default: no end")
    return parser


# Values -----------------------------------------------------------------------------------


def height_or_text(text: str | None) -> int | str | None:
    """Convert digits to a height; leave any other text."""
    is_height = text and len(text) <= _MOST_DIGITS and text.isascii() and text.isdecimal()
    return int(text) if is_height and text else text


def account_ids(args: argparse.Namespace) -> list[str]:
    """Check the account ids; at least one is needed."""
    return validation.account_ids(required(args, "account_id", "the account id"))


def required(args: argparse.Namespace, name: str, expected: str) -> Any:
    """Return an argument that is only left out with --from-file."""
    value = getattr(args, name)
    if value:
        return value
    raise errors.InvalidRequestError.required(name, expected)


def names(text: str | None, default: Sequence[str] = ()) -> list[str]:
    """Split names that are separated by commas."""
    return list(default) if text is None else [name.strip() for name in text.split(",")]


def progress_options(ledger: Ledger) -> dict[str, Any]:
    """Return the options by which verbs return failures beside the rows."""
    return {"ledger": ledger, "on_error": "collect", "progress": sys.stderr.isatty()}
