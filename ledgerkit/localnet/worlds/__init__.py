"""Worlds by name: chains that begin the same on every machine."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.settings import Settings

if TYPE_CHECKING:
    from ledgerkit.localnet.world import World

WORLDS = ("demo", "empty", "crowd")
_OF_NOW = ("api_keys", "block_time_ns", "real_time", "timeout_ns")


def open_world(name: str, *, size: int | None = None, seed: int = 0, **settings: Any) -> World:
    """
    Open a world.

    Parameters
    ----------
    name
        ``demo``: some forty accounts with stories. ``empty``: one account to create
        others from. ``crowd``: many accounts, for bulk work.
    size
        How many people there are in ``crowd``.
    seed
        Which of the possible ones.
    **settings
        Names, clock, shards, limits, as `Settings` has them, in place of the world's own.

    Returns
    -------
    world
        After all that has happened in it.

    Raises
    ------
    InvalidRequestError
        If there is no such world or setting, or the world's size is fixed.
    """
    if name not in WORLDS:
        raise InvalidRequestError.refuse("world", name, f"one of {', '.join(WORLDS)}")
    unknown = settings.keys() - {field.name for field in fields(Settings)}
    if unknown:
        rule = f"one of {', '.join(field.name for field in fields(Settings))}"
        raise InvalidRequestError.refuse("settings", ", ".join(sorted(unknown)), rule)
    if size is not None and name != "crowd":
        raise InvalidRequestError.refuse("size", size, f"left out: {name} has a fixed size")
    # How its time goes on changes nothing of what has happened, nor of its hashes.
    now = {key: value for key, value in settings.items() if key in _OF_NOW}
    world = _open(name, size, seed, {k: v for k, v in settings.items() if k not in now})
    world.adjust(**now)
    return world


def _open(name: str, size: int | None, seed: int, changes: dict[str, Any]) -> World:
    """Open a world after all that has happened in it."""
    if name == "crowd":
        from ledgerkit.localnet.worlds.crowd import open_crowd

        return open_crowd(size, seed, changes)
    if name == "demo":
        from ledgerkit.localnet.worlds.demo import open_demo

        return open_demo(seed, changes)
    from ledgerkit.localnet.worlds.empty import open_empty

    return open_empty(seed, changes)
