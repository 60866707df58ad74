"""The menu beside the pages: rendered once for a folder, whose pages have the same links."""

# ruff: noqa: INP001 - a part of the extension, in no package

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sphinx.environment.adapters.toctree import global_toctree_for_doc

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ITEM = '<li class="toctree-l'
LINK = '<a class="reference internal" href="{}">'


@cache
def of_folder(builder: Any, folder: str) -> str:
    """Return the menu as a page of the folder has it that is not in it."""
    options = {"titles_only": True, "maxdepth": -1, "includehidden": True}  # the theme's
    page = f"{folder}/-".lstrip("/")
    tree = global_toctree_for_doc(
        builder.env, page, builder, tags=builder.tags, collapse=False, **options
    )
    menu: str = builder.render_partial(tree)["fragment"]
    return menu


def share(app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Let the theme decorate the menu of the page's folder."""
    if "toctree" in context:
        context["toctree"] = lambda **_: of_folder(app.builder, page.rpartition("/")[0])


def mark(_app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Mark the page in its menu, and open what it is in."""
    name = "furo_navigation_tree"
    context[name] = marked(context[name], LINK.format(f"{page.rpartition('/')[2]}.html"))


def marked(menu: str, link: str) -> str:
    """Return a menu with the classes of the current page and of the items above it."""
    lines = menu.split("\n")
    place = next((number for number, line in enumerate(lines) if link in line), None)
    if place is None:
        return menu
    lines[place] = current(lines[place]).replace('">', ' current-page">', 1)
    lines[place] = lines[place].replace(link, '<a class="current reference internal" href="#">')
    level = level_of(lines[place])
    for number in range(place - 1, -1, -1):
        line = lines[number]
        if level > 1 and level_of(line) == level - 1:
            level -= 1
            lines[number] = current(line).removesuffix("<ul>") + '<ul class="current">'
        elif level == 1 and line == "<ul>":
            lines[number] = '<ul class="current">'
            break
    return "\n".join(lines)


def level_of(line: str) -> int:
    """Return the level of a line's item, or 0."""
    return int(line[len(ITEM)]) if line.startswith(ITEM) else 0


def current(line: str) -> str:
    """Return the line of an item that is the current page or above it, opened."""
    level = level_of(line)
    line = line.replace(f"{ITEM}{level}", f"{ITEM}{level} current", 1)
    return line.replace('class="toctree-checkbox"', 'checked="" class="toctree-checkbox"', 1)
