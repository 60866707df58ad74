"""An optional library is loaded by name, or its extra is named."""

from __future__ import annotations

import json.decoder
import sys

import pytest

from ledgerkit.errors import InvalidRequestError
from ledgerkit.extras import require


def test_an_installed_module_is_returned():
    """A dotted name returns the submodule, not its package."""
    assert require("json.decoder", "any", "Anything") is json.decoder


@pytest.mark.parametrize("module", ["matplotlib", "matplotlib.pyplot"])
def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, module: str):
    """The error names the purpose, the library and the command that installs it."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidRequestError) as caught:
        require(module, "notebook", "A plot")

    assert caught.value.sentence == 'A plot needs matplotlib: pip install "ledgerkit[notebook]"'
    assert (caught.value.field, caught.value.value) == ("extra", "notebook")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)
