"""Voila, JupyterLab and marimo on a free port of this machine, each with folders of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[2]
STARTS_S = 90
# Widgets' state is saved with the notebook: off unless a person wants it, and then no key is in it.
LAB_SETTINGS = {
    "@jupyter-widgets/jupyterlab-manager/plugin": {"saveState": True},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


def write(path: Path, cells: Sequence[str]) -> None:
    made: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{at}",
            "metadata": {},
            "outputs": [],
            "source": source,
        }
        for at, source in enumerate(cells)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {
        "cells": made,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(notebook), encoding="utf-8")


@contextmanager
def voila(folder: Path, own: Path, **more: str) -> Iterator[str]:
    """Serve the notebooks of a folder as pages; yield the address."""
    port = free_port()
    words = [str(folder), "--no-browser", f"--port={port}", "--Voila.ip=127.0.0.1"]
    with running(["voila", *words], port, own, more) as address:
        yield f"{address}/voila/render"


@contextmanager
def lab(folder: Path, own: Path, **more: str) -> Iterator[str]:
    """Serve a folder in JupyterLab; yield the address."""
    for name, values in LAB_SETTINGS.items():
        file = own / "settings" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values), encoding="utf-8")
    port = free_port()
    words = [
        "--no-browser",
        "--allow-root",
        f"--ServerApp.root_dir={folder}",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
        "--LabApp.expose_app_in_browser=True",
    ]
    with running(["jupyterlab", *words], port, own, more) as address:
        yield f"{address}/lab/tree"


def write_marimo(path: Path, cells: Sequence[str]) -> None:
    made = [f"@app.cell\ndef _():\n{textwrap.indent(source, '    ')}\n" for source in cells]
    head = 'import marimo\n\napp = marimo.App(width="medium")\n'
    path.write_text("\n\n".join([head, *made]), encoding="utf-8")


@contextmanager
def marimo(file: Path, own: Path, command: str = "run", **more: str) -> Iterator[str]:
    """Serve a notebook of marimo, to "run" or to "edit"; yield the address."""
    settings = own / "marimo" / "marimo.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[runtime]\nauto_instantiate = true\n", encoding="utf-8")  # runs all cells
    port = free_port()
    words = [command, str(file), "--headless", "--no-token", "--host=127.0.0.1", f"--port={port}"]
    quiet = {"MARIMO_SKIP_UPDATE_CHECK": "1", "HOME": str(own), "XDG_CONFIG_HOME": str(own)}
    with running(["marimo", *words], port, own, quiet | more) as address:
        yield address


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def running(words: list[str], port: int, own: Path, more: dict[str, str]) -> Iterator[str]:
    """Run a server until the block ends."""
    own.mkdir(parents=True, exist_ok=True)
    log = own / "server.log"
    with log.open("w") as told:
        process = subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=own,
            env=environment(own) | more,
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_for(port, process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            end(process)


def environment(own: Path) -> dict[str, str]:
    """Keep a person's own settings out, and what is written inside."""
    folders = {
        "IPYTHONDIR": "ipython",
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }
    private = {name: str(own / folder) for name, folder in folders.items()}
    return dict(os.environ) | private | {"PYTHONPATH": str(ROOT)}  # kernels read tests/hostile.py


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until somebody listens; a page would run its notebook already."""
    limit = time.monotonic() + STARTS_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > limit:
                said = log.read_text(encoding="utf-8")[-3000:]
                raise RuntimeError(f"the server did not start: {said}") from None
            time.sleep(0.1)
        else:
            return


def end(process: subprocess.Popen[bytes]) -> None:
    """Let a server end its kernels, and itself."""
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
