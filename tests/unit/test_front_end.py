"""
The module and the styles that a front end loads, held against what front ends demand.

anywidget (https://anywidget.dev/en/afm/) wants one ES module with a default export that has
``render``. VS Code (the page "Component: IPyWidgets" of the wiki of vscode-jupyter) and Colab
(the README of googlecolab/colab-cdn-widget-manager) draw widgets in a sandbox, where only a
public host of packages can be reached: a widget of its own must bring everything along.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from ledgerkit.widgets import _window

if TYPE_CHECKING:
    from pathlib import Path

SVG = "http://www.w3.org/2000/svg"  # the name of a namespace, which is never requested


def code() -> str:
    """Return the joined module without its comments."""
    text = re.sub(r"/\*.*?\*/", "", _window.javascript(), flags=re.DOTALL)
    return re.sub(r"(?m)(?:^|\s)//.*$", "", text)


def test_the_module_has_one_default_export_and_no_import():
    """Joining leaves one module that needs no other."""
    assert re.findall(r"^export .*$", code(), re.MULTILINE) == ["export default { render };"]
    assert re.findall(r"^\s*import\b|\bimport\(|\brequire\(|\bdefine\(", code(), re.MULTILINE) == []


def test_nothing_is_loaded_from_elsewhere():
    """Neither the module nor the styles name a host, fetch anything or import a style sheet."""
    styles = _window.view_class()._css

    assert set(re.findall(r"\w+://[^\"'`\s]*", code())) <= {SVG, "https://"}
    assert re.findall(r"\bfetch\(|XMLHttpRequest|WebSocket|importScripts|new Worker", code()) == []
    assert re.findall(r"url\(|@import|https?:", styles) == []


def test_no_text_becomes_code():
    """Nothing is evaluated, and markup is written in one place, which removes what could run."""
    assert (
        re.findall(r"\beval\(|new Function|document\.write|outerHTML|insertAdjacentHTML", code())
        == []
    )
    assert re.findall(r"(\w+)\.innerHTML\s*=", code()) == ["template"]


def test_elements_are_found_below_the_view_only():
    """In a shadow root, as marimo has, the document does not find them."""
    assert re.findall(r"document\.(?:getElement\w+|querySelector\w*)\(", code()) == []


def test_the_module_can_be_loaded(tmp_path: Path):
    """A JavaScript engine reads it, and finds the function that draws."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    module = tmp_path / "view.mjs"
    module.write_text(_window.javascript(), encoding="utf-8")
    script = 'import("./view.mjs").then(m => console.log(typeof m.default.render))'

    done = subprocess.run(
        [node, "-e", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout == "function\n"
