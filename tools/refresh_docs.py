"""
Run the examples in README.md, docs/ and the package's docstrings, and store what they print.

The address of Binder in README.md becomes that of the repository in pyproject.toml.

`python tools/refresh_docs.py [PAGE ...]`; without pages, all that hold examples. A page with more
tracebacks than before is reported: read it before you commit it.

The blocks of a page run in their order, in one session and one empty folder. `pycon` blocks are
Python; of `console` blocks the commands `ledgerkit` and `curl` run. Other blocks are left alone.
`ledgerkit serve` listens on a free port, and stops at the end of the page.

In a module, the section Examples of each docstring runs in a session of its own, where `lk` is
imported. As in doctest, an output ends at an empty line, and `<BLANKLINE>` stands for one.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import tomllib
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pandas as pd

import ledgerkit as lk
from ledgerkit import cli

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(pycon|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"^(>>> .*\n(?:\.\.\.(?: .*)?\n)*)((?:(?!>>> ).*\n)*)", re.MULTILINE)
COMMAND = re.compile(r"^(\$ .*\n)((?:(?!\$ ).*\n)*)", re.MULTILINE)
SECTION = re.compile(r'^( +)Examples\n\1-{8}\n((?:\1.*\n|\n)*?)(?=\1""")', re.MULTILINE)
EXAMPLE = re.compile(r"^>>> .*\n(?:.+\n)*", re.MULTILINE)
BINDER = re.compile(r"(?<=https://mybinder\.org/v2/gh/)[^/\s]+/[^/\s]+(?=/)")
URL = re.compile(r"http://127\.0\.0\.1:\d+")
HEAD = "Traceback (most recent call last):\n  ...\n"


def pages() -> list[Path]:
    """Return README.md, the pages of docs/ and the modules that hold examples."""
    sources = sorted((ROOT / "ledgerkit").rglob("*.py"))
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sources]
    return [path for path in paths if pattern(path).search(path.read_text(encoding="utf-8"))]


def pattern(path: Path) -> re.Pattern[str]:
    """Return the pattern of a page's blocks, or of a module's sections of examples."""
    return SECTION if path.suffix == ".py" else BLOCK


class Session:
    """The examples of a page or docstring while they run: their variables and servers."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.variables: dict[str, Any] = {"__name__": "__main__"}
        self.addresses: dict[str, str] = {}  # the address on the page: the one in use
        self.stack = stack

    def block(self, match: re.Match[str]) -> str:
        """Return a block with the output of today below each of its examples."""
        language, text = match.groups()
        if language == "pycon":
            return f"```pycon\n{PYTHON.sub(self.python, text)}```"
        return f"```console\n{COMMAND.sub(self.command, text)}```"

    def paragraph(self, match: re.Match[str]) -> str:
        """Return a docstring's examples up to an empty line, with their output of today."""
        return re.sub(
            r"^\n", "<BLANKLINE>\n", PYTHON.sub(self.python, match[0]), flags=re.MULTILINE
        )

    def python(self, match: re.Match[str]) -> str:
        """Run a Python example and return it with its output."""
        source = "".join(line[4:] or "\n" for line in match[1].splitlines(keepends=True))
        with captured() as output, contextlib.redirect_stderr(io.StringIO()):  # no progress bars
            try:
                exec(compile(source, "<stdin>", "single"), self.variables)  # noqa: S102 - our own
            except Exception as error:  # noqa: BLE001 - the page shows it
                output.write(HEAD + "".join(traceback.format_exception_only(error)))
        return match[1] + tidy(output.getvalue())

    def command(self, match: re.Match[str]) -> str:
        """Run a `ledgerkit` or `curl` command and return it with its output."""
        words = shlex.split(match[1][2:], comments=True)
        if words[:2] == ["ledgerkit", "serve"]:
            return match[1] + self.serve(words)
        if words[0] == "ledgerkit":
            with captured() as output, contextlib.suppress(SystemExit):
                cli.main(words[1:])
            return match[1] + tidy(output.getvalue())
        if words[0] == "curl":
            url = words[-1]
            for page_url, own_url in self.addresses.items():
                url = url.replace(page_url, own_url)
            return match[1] + tidy(httpx.get(url).text)
        return match[0]

    def serve(self, words: list[str]) -> str:
        """Start a server on a free port and return its first line, with the page's address."""
        place = words.index("--port") + 1
        page_url = f"http://127.0.0.1:{words[place]}"
        command = [sys.executable, "-m", *words[:place], "0", *words[place + 1 :]]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        server = self.stack.enter_context(
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        )
        self.stack.callback(server.terminate)
        line = server.stdout.readline() if server.stdout else ""
        self.addresses[page_url] = URL.findall(line)[0]
        return line.replace(self.addresses[page_url], page_url)


@contextlib.contextmanager
def captured() -> Iterator[io.StringIO]:
    """Capture what an example prints, on both streams."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        yield output


def tidy(text: str) -> str:
    """Return printed lines without blanks at their ends, and without empty lines at the end."""
    lines = "\n".join(line.rstrip() for line in text.splitlines()).rstrip()
    return f"{lines}\n" if lines else ""


def show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning as a terminal does, without the line of code."""
    sys.stdout.write(f"<stdin>:1: {category.__name__}: {message}\n")


@contextlib.contextmanager
def terminal(folder: Path) -> Iterator[None]:
    """Act as a terminal of 100 columns in a folder, without a person's own settings."""
    own = {name: os.environ.pop(name) for name in list(os.environ) if name[:10] == "LEDGERKIT_"}
    with (
        contextlib.chdir(folder),
        pd.option_context("display.width", 100, "display.max_columns", 20),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", DeprecationWarning)  # as Python does outside __main__
        warnings.showwarning = show_warning
        try:
            yield
        finally:
            lk.disconnect()
            lk.use_signer(None)
            if pyplot := sys.modules.get("matplotlib.pyplot"):
                pyplot.close("all")
            os.environ.update(own)


@contextlib.contextmanager
def session() -> Iterator[Session]:
    """Open a session in an empty folder."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.ExitStack() as stack,
        terminal(Path(folder)),
    ):
        yield Session(stack)


def section(match: re.Match[str]) -> str:
    """Return a docstring's section of examples with their output of today."""
    indent, text = match.groups()
    with session() as examples:
        examples.variables["lk"] = lk
        text = EXAMPLE.sub(examples.paragraph, textwrap.dedent(text))
    return textwrap.indent(f"Examples\n--------\n{text}", indent)


def refreshed(path: Path) -> str:
    """Run the examples of a page or module and return its text with their output of today."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return SECTION.sub(section, text)
    with session() as examples:
        return BLOCK.sub(examples.block, BINDER.sub(repository(), text))


def repository() -> str:
    """Return the owner and the name of the repository, from its address in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address: str = project["urls"]["Repository"]
    return address.removeprefix("https://github.com/")


def main(words: list[str]) -> None:
    """Run the named pages, or all, and store those that differ."""
    for path in [Path(word).resolve() for word in words] or pages():
        text, stored = refreshed(path), path.read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")
        word = "as stored" if text == stored else "differs"
        print(f"{path.relative_to(ROOT)}: {word}", flush=True)
        if new := text.count(HEAD) - stored.count(HEAD):
            print(f"  tracebacks: {new:+d}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
