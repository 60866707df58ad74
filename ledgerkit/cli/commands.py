"""A command: its arguments, its connection, the verb that it calls, and what it prints."""

from __future__ import annotations

import inspect
import pkgutil
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ledgerkit import errors, validation
from ledgerkit.cli import exit_codes, output
from ledgerkit.frames.schemas import SCHEMAS

if TYPE_CHECKING:
    import argparse

    import pandas as pd

    from ledgerkit.cli.arguments import Argument, Parser
    from ledgerkit.ledger import Ledger


_NOT_FOUND = ("not_indexed", "no_account")  # the statuses of rows


def print_result(args: argparse.Namespace, result: Any) -> int:
    if not isinstance(result, tuple):
        output.print_value(result, args)
        return exit_codes.SUCCESS
    frame, failures = result
    if failures.empty or not frame.empty:
        output.print_value(frame, args)
    return print_failures(failures, "subject")


def print_failures(failures: pd.DataFrame, subject: str) -> int:
    """Print the messages of a frame of errors, and return the exit code of the first."""
    for name, message in zip(failures[subject], failures["message"], strict=True):
        output.print_message(f"{name}: {message}")
    return exit_codes.first_exit_code(failures)


class Command:
    """
    A command, which calls a verb such as ``verbs.tokens:ft`` with its arguments.

    `schema` is the schema of the printed frame, by default the verb's name. `show` prints the
    result and returns the exit code. `load` is the function that reads a saved response, by
    default `read_response`. `check` raises for arguments that do not fit together. `example` is a
    line of arguments for the help.
    """

    def __init__(
        self,
        help_text: str,
        verb: str,
        *arguments: Argument,
        schema: str | Callable[[argparse.Namespace], str] | None = None,
        show: Callable[[argparse.Namespace, Any], int] = print_result,
        load: str = "",
        check: Callable[[argparse.Namespace], None] | None = None,
        example: str = "",
    ) -> None:
        self.help, self.verb, self.arguments = help_text, verb, arguments
        self.schema = verb.partition(":")[2] if schema is None else schema
        self.show, self.load, self.check = show, load, check
        self.example = example

    def declare(self, parser: Parser) -> None:
        """Declare the arguments; this imports the verb, and most verbs load pandas."""
        parameters = self._parameters()
        for argument in self.arguments:
            argument.declare(parser, parameters.get(argument.parameter))

    def run(self, args: argparse.Namespace) -> int:
        """Print a saved response, the planned requests, or the result of the verb."""
        if vars(args).get("columns"):
            _check_columns(args.columns, self.frame(args))
        if vars(args).get("from_file") is not None:
            return self._print_saved(args)
        self._check(args)
        if vars(args).get("dry_run") and "dry_run" not in self._parameters():
            _print_requests(args, lambda ledger: self.call(args, ledger))
            if self.schema:
                print_columns(self.frame(args))
            return exit_codes.SUCCESS
        with _connect(args) if "network" in args else nullcontext() as ledger:
            result = self.call(args, ledger)
            code = self.show(args, result)
            ids = _ids_without_rows(args, result)
            return _print_missing(ids, ledger) if ledger and ids and not code else code

    def call(self, args: argparse.Namespace, ledger: Ledger | None) -> Any:
        options = {"ledger": ledger, "on_error": "collect", "progress": sys.stderr.isatty()}
        passed = options | vars(args)
        values = {name: passed[name] for name in self._parameters() if name in passed}
        return _function(self.verb)(**values) if self.verb else None

    def frame(self, args: argparse.Namespace) -> str:
        """Return the schema of the frame that is printed; "" if there is none."""
        return self.schema if isinstance(self.schema, str) else self.schema(args)

    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(_function(self.verb)).parameters if self.verb else {}

    def _check(self, args: argparse.Namespace) -> None:
        for argument in self.arguments:
            parameter = self._parameters().get(argument.parameter)
            is_required = parameter is not None and parameter.default is parameter.empty
            if is_required and not getattr(args, argument.parameter):
                raise errors.InvalidRequestError.required(argument.name, argument.noun)
        if self.check is not None:
            self.check(args)

    def _print_saved(self, args: argparse.Namespace) -> int:
        if self.load:
            return self.show(args, _function(self.load)(args.from_file))
        from ledgerkit.verbs import saved_responses

        kind = self.schema if isinstance(self.schema, str) else self.verb.partition(":")[2]
        return print_result(args, saved_responses.read_response(args.from_file, kind))


def _ids_without_rows(args: argparse.Namespace, result: Any) -> list[str]:
    frame = result[0] if isinstance(result, tuple) else getattr(result, "state", result)
    ids = vars(args).get("account_ids") or vars(args).get("account_id") or []
    if "contract_id" in args and not ids and getattr(frame, "empty", False):
        return [args.contract_id]
    if "account_id" not in getattr(frame, "columns", ()):
        return []
    if "status" in frame:
        frame = frame[~frame["status"].isin(_NOT_FOUND)]
    ids_with_rows = set(frame["account_id"])
    return [i for i in ([ids] if isinstance(ids, str) else ids) if i not in ids_with_rows]


def _print_missing(ids: list[str], ledger: Ledger) -> int:
    """Print which accounts do not exist; an indexer's response for empty accounts is the same."""
    from ledgerkit.api import rpc

    at = validation.block_reference("final")
    calls = [rpc.view_account(account_id, at) for account_id in ids]
    states = ledger.send_many(calls, on_error="collect", progress=False)
    missing = [state for state in states if isinstance(state, errors.UnknownAccountError)]
    for error in missing:
        output.print_message(f"{error.account_id}: {error}")
    return exit_codes.exit_code(errors.UnknownAccountError) if missing else exit_codes.SUCCESS


def _function(path: str) -> Any:
    return pkgutil.resolve_name(f"ledgerkit.{path}")


def _check_columns(names: list[str], schema: str) -> None:
    if not schema:
        expected = "none: there is no frame"
        raise errors.InvalidRequestError.refuse("--columns", ",".join(names), expected)
    if schema in SCHEMAS:  # otherwise the command checks its parts
        names_in_schema = tuple(column.name for column in SCHEMAS[schema])
        for name in names:
            validation.one_of(name, "--columns", names_in_schema)


def _connect(args: argparse.Namespace) -> Ledger:
    from ledgerkit import client
    from ledgerkit.transport import networks

    urls = {"rpc_url": args.rpc_url, "api_url": args.api_url}
    ledger = client.connect(args.network, **urls, record=args.record)
    chosen = args.network or networks.environment("NETWORK")
    if ledger.network.name == networks.LOCAL and not chosen:
        hint = "--network mainnet reads from the public network"
        output.print_message(f"using the embedded ledger; {hint}")
    return ledger


def _print_requests(args: argparse.Namespace, read: Callable[[Ledger], object]) -> None:
    from ledgerkit.frames import build
    from ledgerkit.ledger import Ledger
    from ledgerkit.transport.exchange import DryRun
    from ledgerkit.transport.settings import Settings

    with _connect(args) as ledger:
        settings = ledger.session.settings
    transport = DryRun(settings.network)
    with Ledger(Settings(network=settings.network, transport=transport)) as ledger:
        try:
            read(ledger)
        except errors.LedgerError:  # an argument is not valid, or a request was not sent
            if not transport.calls:
                raise
    calls, addresses = transport.calls, settings.network.addresses
    columns = {
        "surface": [call.surface for call in calls],
        "method": ["GET" if call.body is None else "POST" for call in calls],
        "address": [_public_address(addresses[call.surface]) + call.path for call in calls],
        "body": [None if call.body is None else call.body.decode() for call in calls],
    }
    output.say("first requests (not sent; an API key would be in a header):")
    output.print_table(build.build_frame("requests", columns), exact=True)
    output.say(f"rate limit: {settings.lowest_limit({call.surface for call in calls})}")


def print_columns(name: str) -> None:
    from ledgerkit.frames import build

    output.say(f"\ncolumns of the result ({name}):")
    output.print_table(build.schema(name), exact=True)


def _public_address(url: str) -> str:
    """Return the address of a host; a path may hold a provider's key, and is not shown."""
    from ledgerkit.transport import networks

    path = urlsplit(url).path
    return url if networks.is_loopback(url) or not path else f"{url.removesuffix(path)}/…"
