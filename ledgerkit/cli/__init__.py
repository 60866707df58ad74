"""
The command line: arguments and printing only.

`reading` has the commands that print a frame, `tasks` the others. `arguments` declares what they
share, `output` prints, and `exit_codes` lists what a script sees.
"""

from __future__ import annotations

import argparse
import functools
import sys
from typing import TYPE_CHECKING

from ledgerkit import errors, user_warnings
from ledgerkit._version import __version__
from ledgerkit.cli import exit_codes, output
from ledgerkit.cli.arguments import Parser
from ledgerkit.cli.reading import COMMANDS, read_and_print
from ledgerkit.cli.tasks import TASKS

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

_EPILOG = f"""\
{exit_codes.help_text()}

environment: LEDGERKIT_NETWORK, LEDGERKIT_API_KEY, LEDGERKIT_RPC_URL, LEDGERKIT_API_URL,
LEDGERKIT_TRANSACTIONS_URL, LEDGERKIT_TRANSFERS_URL, LEDGERKIT_BLOCKS_URL, LEDGERKIT_KV_URL;
NO_COLOR=1 prints without colours
"""


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run one command.

    Parameters
    ----------
    argv
        The arguments; None is those of the process.

    Returns
    -------
    code
        The exit code, as `exit_codes` lists them.
    """
    words = sys.argv[1:] if argv is None else argv
    args = build_parser(words).parse_args(words)
    try:
        return _run(args)
    except errors.LedgerError as error:
        output.print_message(str(error), style="bad")
        return exit_codes.exit_code(type(error))
    except KeyboardInterrupt:
        output.print_message("interrupted")
        return exit_codes.INTERRUPTED
    except BrokenPipeError:  # the reader, such as head, has closed the pipe
        return exit_codes.SUCCESS


def near_sandbox() -> int:
    """
    Run the command `sandbox` with the arguments of the process.

    Returns
    -------
    code
        The exit code, as `exit_codes` lists them.
    """
    return main(["sandbox", *sys.argv[1:]])


def _run(args: argparse.Namespace) -> int:
    """Run a command, print each warning once, and write all output."""
    with user_warnings.handle_warnings(functools.cache(output.print_message)):
        command = COMMANDS.get(args.command)
        code = TASKS[args.command].run(args) if command is None else read_and_print(args, command)
    output.flush()
    return code


def build_parser(words: Container[str] | None = None) -> Parser:
    """Build the parser of all commands; with `words` only those among them have their options."""
    parser = Parser(
        prog="ledgerkit",
        description="Read accounts, tokens and transactions of NEAR, with exact numbers.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ledgerkit {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in (COMMANDS | TASKS).items():
        subparser = commands.add_parser(name, help=command.help, description=command.help)
        if words is None or name in words:  # declaring all takes longer than the rest
            command.declare(subparser)
    return parser
