"""A panel that shows NFTs as cards."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pandas as pd

from ledgerkit.errors import LedgerError
from ledgerkit.units import count_text
from ledgerkit.verbs import contracts, tokens
from ledgerkit.widgets import _html, _panel
from ledgerkit.widgets._panel import Page, Panel, PanelResult

if TYPE_CHECKING:
    from ledgerkit.client import Ledger

_MAX_CARDS = 60
_MAX_COLLECTIONS = 10
_MAX_ADDRESS = 200_000  # characters; of a picture in a data: address
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# SVG is left out: it can contain scripts.
_DATA = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+")


class NftGallery(Panel):
    """
    The NFTs of an account as cards, of one collection or of those that the indexer lists.

    Parameters
    ----------
    account_id, contract_id
        The initial values of the fields. Without a collection, the first ten that the indexer
        lists are read.
    pictures
        True loads pictures from the addresses in the tokens, whose hosts then see the reader's
        IP address.
    ledger
        The ledger to use; None is the session's default at the time of the request.
    """

    title = "NFTs"
    action = "Show"
    tooltip = "Look up the NFTs of this account"

    def __init__(
        self,
        account_id: str = "",
        contract_id: str = "",
        *,
        pictures: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        label = "Load pictures (their hosts see your IP address)"
        fields = {
            "account_id": _panel.text_box("Account", account_id, "alice.near"),
            "contract_id": _panel.text_box("Collection", contract_id, "empty for all"),
            "pictures": _panel.check_box(label, value=pictures),
        }
        super().__init__(fields, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> PanelResult:
        """Read the tokens, collection by collection."""
        account_id = values["account_id"]
        contract_ids = [values["contract_id"]]
        if not values["contract_id"]:
            listed = tokens.nft(account_id, progress=False, ledger=ledger)
            contract_ids = listed["contract_id"].tolist()
        results = [_read_tokens(account_id, id_, ledger) for id_ in contract_ids[:_MAX_COLLECTIONS]]
        frame = _concat([_with_media_url(owned, ledger) for owned, _ in results])
        errors = _concat([failed for _, failed in results])
        pages = [
            Page("Gallery", cards(frame, pictures=values["pictures"])),
            Page("Table", _html.table(frame, slim=True), frame),
            *_panel.error_pages(errors),
        ]
        sentence = f"{count_text(len(frame), 'token')} of "
        sentence += f"{count_text(len(results), 'collection')} on {ledger.network.name}"
        sentence += f", {count_text(len(errors), 'error')}" if len(errors) else ""
        n_skipped = len(contract_ids) - len(results)
        if n_skipped:
            sentence += f"; {count_text(n_skipped, 'more collection')} not read: enter one above"
        frames = {"nft_tokens": frame, "errors": errors}
        return PanelResult(f"{sentence}.", frame, tuple(pages), frames)


def _read_tokens(
    account_id: str, contract_id: str, ledger: Ledger
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the tokens of one collection, and its error, with the contract as its subject."""
    owned, failed = tokens.nft_tokens(
        account_id, contract_id, on_error="collect", progress=False, ledger=ledger
    )
    return owned, failed.assign(subject=contract_id)


def _with_media_url(frame: pd.DataFrame, ledger: Ledger) -> pd.DataFrame:
    """Add the complete addresses of media; the base address is read only if one is relative."""
    media = frame["media"].dropna()
    base = None
    if not media.map(_is_absolute).all():
        base = _base_uri(frame["contract_id"].iloc[0], ledger)
    addresses = [media_address(value, base) for value in media]
    column = pd.Series(addresses, index=media.index, dtype="str").reindex(frame.index)
    return frame.assign(media_url=column)


def _base_uri(contract_id: str, ledger: Ledger) -> str | None:
    """Read the base address of a collection's media, or None."""
    try:
        metadata = contracts.view(contract_id, "nft_metadata", ledger=ledger)
    except LedgerError:
        return None
    base = metadata.get("base_uri") if isinstance(metadata, dict) else None
    return base if isinstance(base, str) and base else None


def _is_absolute(media: str) -> bool:
    """Return True if media is a complete address."""
    return _SCHEME.match(media) is not None


def media_address(media: str, base_uri: str | None) -> str:
    """Return the complete address of a token's media, relative to the base address (NEP-177)."""
    if base_uri is None or not media or _is_absolute(media):
        return media
    return f"{base_uri.rstrip('/')}/{media.lstrip('/')}"


def _concat(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate frames; if all are empty, return the first one, which has the columns."""
    nonempty = [frame for frame in frames if len(frame)] or frames[:1]
    return pd.concat(nonempty, ignore_index=True) if nonempty else pd.DataFrame()


def cards(frame: pd.DataFrame, *, pictures: bool = False) -> str:
    """Format tokens as cards, at most 60; with `pictures`, their pictures are loaded."""
    rows = _html.records(frame.head(_MAX_CARDS))
    figures = "".join(_card(row, pictures=pictures) for row in rows) or "<p>None.</p>"
    hidden = _html.hidden_count(len(frame) - len(rows), "more token", " in .result")
    return f'<div class="cards">{figures}</div>{hidden}'


def _card(row: dict[str, Any], *, pictures: bool) -> str:
    """Format one token."""
    title = row["title"] if isinstance(row["title"], str) else row["token_id"]
    description = row["description"] if isinstance(row["description"], str) else ""
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
        f"<br>{_html.text(description, 300)}<br><code>{_html.text(row['token_id'])}</code> of "
        f"{_html.text(row['contract_id'])}</figcaption></figure>"
    )


def picture_source(media: str) -> str | None:
    """Return an address if it is https, or data of a bitmap format; else None."""
    if len(media) > _MAX_ADDRESS:
        return None
    if _DATA.fullmatch(media):
        return media
    try:
        parts = urlsplit(media)
    except ValueError:
        return None
    return media if parts.scheme == "https" and parts.hostname and media.isprintable() else None
