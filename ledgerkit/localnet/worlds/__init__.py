"""The worlds by name: chains with the same history on every machine."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from ledgerkit import validation
from ledgerkit.errors import InvalidRequestError
from ledgerkit.localnet.settings import Settings
from ledgerkit.localnet.world import World
from ledgerkit.localnet.worlds.builder import open_empty
from ledgerkit.localnet.worlds.crowd import open_crowd
from ledgerkit.localnet.worlds.demo import open_demo
from ledgerkit.localnet.worlds.person import open_person

WORLDS: dict[str, Callable[..., World]] = {
    "demo": open_demo,
    "empty": open_empty,
    "crowd": open_crowd,
    "person": open_person,
}
_LIVE_SETTINGS = ("api_keys", "block_time_ns", "real_time", "spec_errors", "timeout_ns")


def open_world(name: str, *, size: int | None = None, seed: int = 0, **settings: Any) -> World:
    """
    Open a world.

    Parameters
    ----------
    name
        ``demo``: some forty accounts and their transactions. ``empty``: one account to create
        others from. ``crowd``: many accounts, for bulk work. ``person``: one person with a wallet,
        stakes, lockup contracts and tokens in NEAR Intents.
    size
        The number of people in ``crowd``, 1,000 by default; the other worlds have a fixed size.
    seed
        Another seed gives other keys and hashes, and in ``crowd`` other balances.
    **settings
        Fields of `Settings` that replace the world's own: names, clock, shards, limits.

    Returns
    -------
    world
        The world after all of its transactions.

    Raises
    ------
    InvalidRequestError
        If there is no such world or setting, or the world's size is fixed.
    """
    validation.one_of(name, "world", tuple(WORLDS))
    names = tuple(field.name for field in fields(Settings))
    for setting in settings:
        validation.one_of(setting, "settings", names)
    if size is not None and name != "crowd":
        sentence = f'the size of world "{name}" is fixed: leave size out, or open "crowd"'
        raise InvalidRequestError(sentence, field="size", value=size)
    # These settings apply after the world's history, so that its hashes do not depend on them.
    live = {key: settings.pop(key) for key in _LIVE_SETTINGS if key in settings}
    sizes = {"size": size} if name == "crowd" else {}
    world = WORLDS[name](seed, settings, **sizes)
    world.adjust(**live)
    return world
