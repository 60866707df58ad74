"""The settings of Sphinx: extensions, and the look of the pages."""

# ruff: noqa: INP001 - Sphinx reads this file by its path; it is in no package

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the extensions beside this file

from ledgerkit import __version__

project = "ledgerkit"
author = "ledgerkit contributors"
release = version = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb", "_site"]
exclude_patterns = [".*"]
default_role = "code"  # columns and values are in single backticks as often as names
smartquotes_action = "D"  # dashes only: quotes belong to code

autodoc_inherit_docstrings = False  # pandas documents its own methods
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    "inherited-members": "ExtensionArray, ExtensionDtype, Exception, object",
}
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True

napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes are listed once, with their class
napoleon_use_rtype = False  # the type of a result is in the signature

myst_heading_anchors = 3
nb_execution_mode = "off"  # the tests run the notebooks, and compare the stored outputs
nb_ipywidgets_js = {}  # no script from elsewhere: a panel's HTML needs none

html_theme = "furo"
html_title = f"ledgerkit {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_copyright = False
