"""
The command line: arguments and printing only.

A command is declared once, with its arguments and its verb. `output` prints everything.
"""

import argparse
import functools
import os
import sys
from collections.abc import Container, Sequence

from ledgerkit import errors, user_warnings
from ledgerkit._version import __version__
from ledgerkit.cli import arguments, exit_codes, output
from ledgerkit.cli.arguments import Argument, Parser
from ledgerkit.cli.collecting import COLLECTING
from ledgerkit.cli.commands import Command
from ledgerkit.cli.embedded import EMBEDDED
from ledgerkit.cli.reading import READING

COMMANDS = {
    **READING,
    **COLLECTING,
    **EMBEDDED,
    "completion": Command(
        "print a script that completes commands in bash, zsh or fish",
        "",
        Argument("shell", "the shell that reads the script", choices=arguments.SHELLS),
        example="bash",
        show=arguments.print_script,
    ),
}
_EPILOG = f"""\
{exit_codes.help_text()}

environment:
  LEDGERKIT_NETWORK, LEDGERKIT_API_KEY, LEDGERKIT_RPC_URL, LEDGERKIT_API_URL,
  LEDGERKIT_TRANSACTIONS_URL, LEDGERKIT_TRANSFERS_URL, LEDGERKIT_BLOCKS_URL,
  LEDGERKIT_KV_URL; NO_COLOR=1 prints without colours

example: ledgerkit account alice.near --network mainnet
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, or complete the line of a shell; return the exit code."""
    if "_ARGCOMPLETE" in os.environ:
        arguments.complete(build_parser(os.environ["COMP_LINE"].split()))
    words = sys.argv[1:] if argv is None else argv
    try:
        args = build_parser(words).parse_args(words)
        with user_warnings.handle_warnings(
            functools.cache(output.print_message)
        ):  # prints each message once
            code: int = args.spec.run(args)
        output.flush()
    except errors.LedgerError as error:
        output.print_message(str(error), style="bad")
        return exit_codes.exit_code(type(error))
    except KeyboardInterrupt:
        output.print_message("interrupted")
        return exit_codes.INTERRUPTED
    except BrokenPipeError:  # the reader, such as head, has closed the pipe
        return exit_codes.SUCCESS
    return code


def near_sandbox() -> int:
    """Run the command `sandbox` with the arguments of the process."""
    return main(["sandbox", *sys.argv[1:]])


def build_parser(words: Container[str] | None = None) -> Parser:
    """Build the parser of all commands; with `words`, only the commands in them get options."""
    parser = Parser(
        prog="ledgerkit",
        description="Read accounts, tokens and transactions of NEAR, with exact numbers.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ledgerkit {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        example = f"example: ledgerkit {name} {command.example}"
        subparser = subparsers.add_parser(
            name, help=command.help, description=command.help, epilog=example
        )
        subparser.set_defaults(spec=command)
        if words is None or name in words:  # declaring a command imports its verb
            command.declare(subparser)
    return parser
