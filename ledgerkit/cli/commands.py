"""A command: its arguments, the verb that it calls, and how it prints the result."""

from __future__ import annotations

import inspect
import pkgutil
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ledgerkit import errors, validation
from ledgerkit.cli import connection, exit_codes, output
from ledgerkit.frames.schemas import SCHEMAS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    import pandas as pd

    from ledgerkit.cli.arguments import Argument
    from ledgerkit.client import Ledger


def print_result(args: argparse.Namespace, result: Any) -> int:
    """Print a value, or a frame and the failures beside it."""
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

    `schema` is that of the frame it prints. `show` prints the result and returns the exit code.
    `saved` is the kind of a saved response that can take the place of a request, or `load` the
    function that reads it. `check` raises for arguments that do not fit together.
    """

    def __init__(
        self,
        help_text: str,
        verb: str,
        *arguments: Argument,
        schema: str | Callable[[argparse.Namespace], str] = "",
        show: Callable[[argparse.Namespace, Any], int] = print_result,
        saved: str = "",
        load: str = "",
        check: Callable[[argparse.Namespace], None] | None = None,
    ) -> None:
        self.help, self.verb, self.arguments = help_text, verb, arguments
        self.schema, self.show, self.check = schema, show, check
        self.saved, self.load = saved, load

    def declare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments; this imports the verb, and most verbs load pandas."""
        parameters = self._parameters()
        for argument in self.arguments:
            argument.declare(parser, parameters.get(argument.parameter))

    def run(self, args: argparse.Namespace) -> int:
        """Print a saved response, the planned requests, or the result of the verb."""
        if vars(args).get("columns"):
            self._check_columns(args.columns, self.frame(args))
        if vars(args).get("from_file") is not None:
            return self._print_saved(args)
        self._check(args)
        if vars(args).get("dry_run") and "dry_run" not in self._parameters():
            connection.print_requests(args, lambda ledger: self.call(args, ledger))
            if self.schema:
                connection.print_columns(self.frame(args))
            return exit_codes.SUCCESS
        with connection.connect(args) if "network" in args else nullcontext() as ledger:
            return self.show(args, self.call(args, ledger))

    def call(self, args: argparse.Namespace, ledger: Ledger | None) -> Any:
        """Call the verb with those arguments that it has."""
        options = {"ledger": ledger, "on_error": "collect", "progress": sys.stderr.isatty()}
        given = options | vars(args)
        values = {name: given[name] for name in self._parameters() if name in given}
        return _function(self.verb)(**values) if self.verb else None

    def frame(self, args: argparse.Namespace) -> str:
        """Return the schema of the frame that is printed; "" if there is none."""
        return self.schema if isinstance(self.schema, str) else self.schema(args)

    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(_function(self.verb)).parameters if self.verb else {}

    def _check_columns(self, names: list[str], schema: str) -> None:
        if not schema:
            expected = "none: there is no frame"
            raise errors.InvalidRequestError.refuse("--columns", ",".join(names), expected)
        if schema in SCHEMAS:  # otherwise the command refuses what it is made of
            known = tuple(column.name for column in SCHEMAS[schema])
            for name in names:
                validation.one_of(name, "--columns", known)

    def _check(self, args: argparse.Namespace) -> None:
        """Check arguments: only a saved response replaces those that the verb needs."""
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

        return print_result(args, saved_responses.read(args.from_file, self.saved))


def _function(path: str) -> Callable[..., Any]:
    function: Callable[..., Any] = pkgutil.resolve_name(f"ledgerkit.{path}")
    return function
