"""The panel that shows NFTs as cards."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pandas as pd

from ledgerkit.views import tokens
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Found, Panel, Part

if TYPE_CHECKING:
    from ledgerkit.client import Ledger

_MOST_CARDS = 60
_MOST_COLLECTIONS = 10
_LONGEST_PICTURE = 200_000
_DATA = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+")


class NftGallery(Panel):
    """
    The NFTs of an account as cards, of one collection or of all it ever held from.

    Parameters
    ----------
    account_id
        The account to begin with; `press` asks.
    contract_id
        The collection; empty takes the first ten that the indexer lists.
    pictures
        Whether pictures load, from wherever the token's maker put them: their hosts then
        see who looks.
    ledger
        The ledger to ask; None is the session's default at the time of the question.
    """

    title = "NFTs"
    action = "Show"
    tooltip = "Read the tokens of this account"

    def __init__(
        self,
        account_id: str = "",
        contract_id: str = "",
        *,
        pictures: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        label = "Load pictures (their hosts see who looks)"
        fields = {
            "account_id": _panel.text_box("Account", account_id, "alice.near"),
            "contract_id": _panel.text_box("Collection", contract_id, "all that are listed"),
            "pictures": _panel.tick_box(label, value=pictures),
        }
        super().__init__(fields, ledger)

    def _find(self, asked: dict[str, Any], ledger: Ledger) -> Found:
        """Read the tokens, collection by collection."""
        account_id = asked["account_id"]
        listed = [asked["contract_id"]]
        if not asked["contract_id"]:
            listed = tokens.nft(account_id, progress=False, ledger=ledger)["contract_id"].tolist()
        read = [_tokens(account_id, one, ledger) for one in listed[:_MOST_COLLECTIONS]]
        frame = _joined([found for found, _ in read])
        failures = _joined([failed for _, failed in read])
        parts = [
            Part("Gallery", cards(frame, pictures=asked["pictures"])),
            Part("Table", _html.table(frame, slim=True), frame),
        ]
        if len(failures):
            parts.append(Part("Not read", _html.table(failures), failures))
        left = len(listed) - len(read)
        more = f"; {left} more collections are not asked: name one" if left > 0 else ""
        unread = f", {len(failures)} not read" if len(failures) else ""
        told = f"{len(frame)} tokens of {len(read)} collections on {ledger.network.name}"
        told += f"{unread}{more}."
        return Found(told, frame, tuple(parts), {"nft_tokens": frame, "errors": failures})


def _tokens(account_id: str, contract_id: str, ledger: Ledger) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the tokens of one collection; its failure is its own, and names it."""
    found, failed = tokens.nft_tokens(
        account_id, contract_id, on_error="collect", progress=False, ledger=ledger
    )
    return found, failed.assign(subject=contract_id)


def _joined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Put frames one below the other; of empty ones the first has the columns."""
    kept = [frame for frame in frames if len(frame)] or frames[:1]
    return pd.concat(kept, ignore_index=True) if kept else pd.DataFrame()


def cards(frame: pd.DataFrame, *, pictures: bool = False) -> str:
    """
    Write tokens as cards.

    Parameters
    ----------
    frame
        Typed as `schema("nft_tokens")`.
    pictures
        Whether pictures load.

    Returns
    -------
    html
        A card a token, of at most 60; texts are escaped and shortened.
    """
    rows = _html.records(frame.head(_MOST_CARDS))
    rest = len(frame) - len(rows)
    more = f"<p>… and {rest} more; .result holds them all</p>" if rest > 0 else ""
    shown = "".join(_card(row, pictures=pictures) for row in rows) or "<p>None.</p>"
    return f'<div class="cards">{shown}</div>{more}'


def _card(row: dict[str, Any], *, pictures: bool) -> str:
    """Write one token."""
    title = row["title"] if isinstance(row["title"], str) else row["token_id"]
    told = row["description"] if isinstance(row["description"], str) else ""
    media = row["media"] if isinstance(row["media"], str) else ""
    source = picture_source(media) if pictures else None
    image = ""
    if source is not None:
        image = (
            f'<img loading="lazy" referrerpolicy="no-referrer" '
            f'alt="{_html.text(title)}" src="{escape(source)}">'
        )
    elif media:
        image = f"<p><small>picture: {_html.text(media, 80)}</small></p>"
    return (
        f"<figure>{image}<figcaption><strong>{_html.text(title)}</strong>"
        f"<br>{_html.text(told, 300)}<br><code>{_html.text(row['token_id'])}</code> of "
        f"{_html.text(row['contract_id'])}</figcaption></figure>"
    )


def picture_source(media: str) -> str | None:
    """
    Find out whether a token's media can be shown as a picture.

    Parameters
    ----------
    media
        As the token tells it.

    Returns
    -------
    address
        One that runs nothing: https, or data of a pixel format; None for any other.
    """
    if len(media) > _LONGEST_PICTURE:
        return None
    if _DATA.fullmatch(media):
        return media
    try:
        parts = urlsplit(media)
    except ValueError:
        return None
    return media if parts.scheme == "https" and parts.hostname and media.isprintable() else None
