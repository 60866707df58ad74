"""The panel that shows NFTs as cards."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pandas as pd

from ledgerkit.errors import LedgerError
from ledgerkit.verbs import contracts, tokens
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Found, Panel, Part

if TYPE_CHECKING:
    from ledgerkit.client import Ledger

_MOST_CARDS = 60
_MOST_COLLECTIONS = 10
_LONGEST_PICTURE = 200_000
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
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
        frame = _joined([_addressed(found, ledger) for found, _ in read])
        failures = _joined([failed for _, failed in read])
        parts = [
            Part("Gallery", cards(frame, pictures=asked["pictures"])),
            Part("Table", _html.table(frame, slim=True), frame),
        ]
        if len(failures):
            parts.append(Part("Not read", _html.table(failures), failures))
        left = len(listed) - len(read)
        rest = _html.counted(left, "more collection is", "more collections are")
        more = f"; {rest} not asked: name one" if left > 0 else ""
        unread = f", {len(failures)} not read" if len(failures) else ""
        told = f"{_html.counted(len(frame), 'token')} of "
        told += f"{_html.counted(len(read), 'collection')} on {ledger.network.name}{unread}{more}."
        return Found(told, frame, tuple(parts), {"nft_tokens": frame, "errors": failures})


def _tokens(account_id: str, contract_id: str, ledger: Ledger) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the tokens of one collection; its failure is its own, and names it."""
    found, failed = tokens.nft_tokens(
        account_id, contract_id, on_error="collect", progress=False, ledger=ledger
    )
    return found, failed.assign(subject=contract_id)


def _addressed(frame: pd.DataFrame, ledger: Ledger) -> pd.DataFrame:
    """Add whole addresses of media; a collection is asked for its base only where one is used."""
    media = frame["media"].dropna()
    base = None
    if not media.map(_is_whole).all():
        base = _base_uri(frame["contract_id"].iloc[0], ledger)
    addresses = [media_address(one, base) for one in media]
    column = pd.Series(addresses, index=media.index, dtype="str").reindex(frame.index)
    return frame.assign(media_url=column)


def _base_uri(contract_id: str, ledger: Ledger) -> str | None:
    """Ask a collection where media begin; None where it does not tell."""
    try:
        told = contracts.view(contract_id, "nft_metadata", ledger=ledger)
    except LedgerError:
        return None
    base = told.get("base_uri") if isinstance(told, dict) else None
    return base if isinstance(base, str) and base else None


def _is_whole(media: str) -> bool:
    """Tell whether media is a whole address."""
    return _SCHEME.match(media) is not None


def media_address(media: str, base_uri: str | None) -> str:
    """
    Give the whole address of a token's media (NEP-177).

    Parameters
    ----------
    media
        As the token tells it: a whole address, or what continues the collection's.
    base_uri
        As the collection tells it; None where it does not.

    Returns
    -------
    address
        Whatever that is; see `picture_source` for what may be shown.
    """
    if base_uri is None or not media or _is_whole(media):
        return media
    return f"{base_uri.rstrip('/')}/{media.lstrip('/')}"


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
        Typed as `schema("nft_tokens")`; whole addresses of media in `media_url`, if it is there.
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
    address = row.get("media_url", row["media"])
    media = address if isinstance(address, str) else ""
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
        A whole address, as the token and its collection tell it.

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
