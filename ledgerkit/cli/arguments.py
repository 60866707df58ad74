"""Arguments of commands: an option has the type, default and choices of the verb's parameter."""

import argparse
import inspect
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from ledgerkit import errors, validation
from ledgerkit.cli import exit_codes, output
from ledgerkit.frames.collected import VIEWS
from ledgerkit.redaction import secret_in
from ledgerkit.visible_text import escape_invisible

# An option that people guess, with its value; keys are read from the environment only.
_SECRET_OPTION = re.compile(r"(?i)(--?[\w-]*(?:key|token|secret|pass|phrase)[\w-]*)[ =]\S.*")
_INVALID_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")

SHELLS = ("bash", "zsh", "fish")
FILES = ("IDS", "out", "before", "after", "path", "from_file", "save")
_VALUES = {
    "name": ("demo", "empty", "crowd", "person"),
    "view": VIEWS["accounts"],
    **dict.fromkeys(("at", "start", "stop"), ("final", "genesis", "optimistic")),
}


class Parser(argparse.ArgumentParser):
    """A parser whose messages repeat no secret, with invisible characters escaped."""

    words: Sequence[str] = ()
    namespace = argparse.Namespace()  # what was parsed before the word to complete

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.words = sys.argv[1:] if args is None else args
        self.namespace = argparse.Namespace() if namespace is None else namespace
        parsed, unknown = super().parse_known_args(args, self.namespace)
        if unknown:
            options = re.findall(r"--[a-z-]+", self.format_help())
            hint = _hint(unknown[0].partition("=")[0], options)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """Print the message, with the choice most like a misspelt one, and exit."""
        choice = _INVALID_CHOICE.search(message)
        if choice:
            message += _hint(choice[1], re.findall(r"[\w-]+", choice[2]))
        message = _SECRET_OPTION.sub(r"\1 (not shown)", message)
        # The message alone could mislead: a list of commands reads like a seed phrase.
        secret = secret_in(message) and secret_in(self.words)
        if secret is not None:
            message = f"{secret} was passed as an argument, and is not shown"
        super().error(escape_invisible(message))


def _hint(text: str, choices: Iterable[str]) -> str:
    hint = errors.did_you_mean(text, choices)
    return f". {hint}" if hint else ""


class Argument:
    """
    An argument of a command, such as ``--pool``; `options` are argparse's.

    The name may be followed by the placeholder of the value, as in ``--rate N``. `parameter` is
    the verb's, if it has another name, and `noun` names a missing value in errors.
    """

    def __init__(
        self, name: str, text: str, parameter: str = "", *, noun: str = "", **options: Any
    ) -> None:
        self.name, _, metavar = name.partition(" ")
        self.is_option = self.name.startswith("--")
        self.parameter = parameter or self.name.removeprefix("--").replace("-", "_").lower()
        self.noun = noun or text
        self.options = {"help": text, **options}
        if metavar or not (self.is_option or self.name == self.parameter):
            self.options["metavar"] = metavar or self.name

    def declare(self, parser: Parser, parameter: inspect.Parameter | None = None) -> None:
        """Add the argument to a parser; `parameter` is the verb's parameter, if there is one."""
        options = self.options
        if parameter is not None:
            options = _derived_options(parameter) | options
            if not self.is_option and "default" in options:
                options = {"nargs": "?"} | options
        if options.get("type") is split_names:
            options = {"metavar": f"{self.parameter.upper().removesuffix('S')},…"} | options
        names = [self.name] if self.is_option else []
        action = parser.add_argument(*names, dest=self.parameter, **options)
        if action.choices is None and not {self.name, self.parameter} & {*FILES}:
            action.completer = candidates  # type: ignore[attr-defined]  # as documented


def _derived_options(parameter: inspect.Parameter) -> dict[str, Any]:
    """Derive argparse's options from a verb's parameter; annotations are texts in this package."""
    annotation = str(parameter.annotation)
    options = dict(_OPTIONS_OF_TYPES.get(annotation.removesuffix(" | None"), {}))
    if annotation == "bool | None":
        options["action"] = argparse.BooleanOptionalAction
    if annotation.startswith("Literal["):
        options["choices"] = re.findall(r"'(\w+)'", annotation)
    if parameter.default is not parameter.empty:
        options["default"] = parameter.default
    return options


def split_names(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


_OPTIONS_OF_TYPES: dict[str, dict[str, Any]] = {
    "bool": {"action": "store_true"},
    "int": {"type": int},
    "float": {"type": float},
    "object": {"type": validation.height_or_text},  # a block
    "str | Iterable[str]": {"type": split_names},
}

FLAG: dict[str, Any] = {"action": "store_true"}
REPEATED: dict[str, Any] = {"action": "append", "default": [], "type": str}
BLOCK = "a height, a hash, genesis, final, an ISO time, or a period: 2026-07, last month"
INTERVAL = (
    Argument("--start", f"the first block: {BLOCK}; default: the first indexed one"),
    Argument("--stop", "the block after the last one, as --start; default: no end"),
)
_NETWORKS = "mainnet, testnet, local, any name with addresses, or a recording (FILE.lk)"
NETWORK = (
    Argument("--network", _NETWORKS),
    Argument("--rpc-url", "address of the JSON-RPC endpoint"),
    Argument("--api-url", "address of the REST API"),
    Argument("--record FILE.lk", "record all requests and responses in a new file"),
)


def form_arguments(*formats: str) -> tuple[Argument, ...]:
    """Return the options that choose how a frame is printed; a command may have more formats."""
    exact = "print a table with all digits, in smallest units, as CSV and JSON always are"
    raw = "print texts exactly: control characters are not escaped, nor formulas in CSV"
    all_formats = ("table", "csv", "json", *formats)
    return (
        Argument("--format", "output format", choices=all_formats, default="table"),
        *(_short_form(name) for name in ("csv", "json")),
        Argument(
            "--columns NAME,…",
            "the columns to print, in this order; default: all",
            type=split_names,
        ),
        Argument("--exact", exact, **FLAG),
        Argument("--raw", raw, "raw_texts", **FLAG),  # the verb `view` has an option `raw`
    )


def _short_form(name: str) -> Argument:
    text = f"short for --format {name}"
    return Argument(f"--{name}", text, "format", action="store_const", const=name)


FORM = form_arguments()


def complete(parser: argparse.ArgumentParser) -> None:
    """Print the candidates for the line of a shell, and exit."""
    import argcomplete

    argcomplete.autocomplete(parser, always_complete_options=False)


def candidates(prefix: str, action: argparse.Action, parser: Any, **_: Any) -> dict[str, str]:
    """Return candidates with their descriptions, without those that a list already has."""
    if action.dest == "columns":
        from ledgerkit.frames.schemas import SCHEMAS

        schema = parser.get_default("spec").frame(parser.namespace)
        values = {column.name: column.meaning for column in SCHEMAS.get(schema, ())}
    elif action.dest == "views":
        views = {"history": ("accounts", "ft", "staking"), "collect": VIEWS["accounts"]}
        values = dict.fromkeys(views.get(parser.prog.split()[-1], VIEWS["blocks"]), "")
    elif action.dest == "network":
        from ledgerkit.transport import networks

        return dict.fromkeys(networks.PRESETS, "")
    else:
        return dict.fromkeys(_VALUES.get(action.dest, ()), "")
    before, comma, _last = prefix.rpartition(",")
    used = before.split(",")
    return {before + comma + name: text for name, text in values.items() if name not in used}


def print_script(args: argparse.Namespace, _result: object) -> int:
    from argcomplete.shell_integration import shellcode

    output.say(shellcode(["ledgerkit"], use_defaults=False, shell=args.shell), raw=True)
    return exit_codes.SUCCESS
