"""A panel that shows NFTs as cards."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pandas as pd

from ledgerkit.errors import InvalidRequestError, LedgerError
from ledgerkit.units import count_text
from ledgerkit.verbs import contracts, tokens
from ledgerkit.widgets import _html
from ledgerkit.widgets._blocks import Content, Page
from ledgerkit.widgets._panel import Field, Panel
from ledgerkit.widgets._table import Table, error_pages

if TYPE_CHECKING:
    from ledgerkit.ledger import Ledger

_MAX_CARDS = 60
_MAX_COLLECTIONS = 10
_MAX_ADDRESS = 200_000  # characters of a picture's data: address
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# The path is appended to a gateway's address, and must not lead out of it or into a query.
_IPFS = re.compile(r"ipfs://(?:ipfs/)?(\w+(?:/(?!\.)[\w.~%+-]+)*)", re.ASCII)
# SVG is left out: it can contain scripts.
_DATA = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+")


class NftGallery(Panel):
    """
    The NFTs of an account as cards, of one collection or of those that the indexer lists.

    Pictures that are part of a token are shown. A picture at another host, which would see the
    reader's IP address, is loaded after a click on a button that names the host; SVG is not shown.
    Pictures in IPFS are all loaded from the gateway, if one is entered.

    Parameters
    ----------
    account_id, contract_id, gateway
        The initial values of the fields. Without a collection, the first ten that the indexer
        lists are read. The gateway is an address such as ``https://ipfs.io/ipfs/``.
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
        gateway: str = "",
        ledger: Ledger | None = None,
    ) -> None:
        example = "https://ipfs.io/ipfs/; empty: pictures in IPFS are not loaded"
        fields = {
            "account_id": Field("Account", account_id, "alice.near"),
            "contract_id": Field("Collection", contract_id, "empty for all"),
            "gateway": Field("IPFS gateway", gateway, example),
        }
        super().__init__(fields, ledger)

    def _read(self, values: dict[str, Any], ledger: Ledger) -> Content:
        account_id, gateway = values["account_id"], _check_gateway(values["gateway"])
        contract_ids = [values["contract_id"]]
        if not values["contract_id"]:
            listed = tokens.nft(account_id, progress=False, ledger=ledger)
            contract_ids = listed["contract_id"].tolist()
        results = [_read_tokens(account_id, id_, ledger) for id_ in contract_ids[:_MAX_COLLECTIONS]]
        frame = _concat([_with_media_url(owned, ledger) for owned, _ in results])
        errors = _concat([failed for _, failed in results])
        pages = [
            Page("Gallery", cards(frame, gateway)),
            Page("Table", Table(frame, name="nft_tokens", slim=True)),
            *error_pages(errors),
        ]
        sentence = f"{count_text(len(frame), 'token')} of "
        sentence += f"{count_text(len(results), 'collection')} on {ledger.network.name}"
        sentence += f", {count_text(len(errors), 'error')}" if len(errors) else ""
        n_skipped = len(contract_ids) - len(results)
        if n_skipped:
            sentence += f"; {count_text(n_skipped, 'more collection')} not read: enter one above"
        frames = {"nft_tokens": frame, "errors": errors}
        return Content(f"{sentence}.", frame, tuple(pages), frames)


def _read_tokens(
    account_id: str, contract_id: str, ledger: Ledger
) -> tuple[pd.DataFrame, pd.DataFrame]:
    owned, failed = tokens.nft_tokens(
        account_id, contract_id, on_error="collect", progress=False, ledger=ledger
    )
    return owned, failed.assign(subject=contract_id)


def _with_media_url(frame: pd.DataFrame, ledger: Ledger) -> pd.DataFrame:
    """Add the complete addresses of media; the base address is read only for relative ones."""
    media = frame["media"].dropna()
    base = None
    if not media.map(_is_absolute).all():
        base = _base_uri(frame["contract_id"].iloc[0], ledger)
    addresses = [media_address(value, base) for value in media]
    column = pd.Series(addresses, index=media.index, dtype="str").reindex(frame.index)
    return frame.assign(media_url=column)


def _base_uri(contract_id: str, ledger: Ledger) -> str | None:
    try:
        metadata = contracts.view(contract_id, "nft_metadata", ledger=ledger)
    except LedgerError:
        return None
    base = metadata.get("base_uri") if isinstance(metadata, dict) else None
    return base if isinstance(base, str) and base else None


def _is_absolute(media: str) -> bool:
    return _SCHEME.match(media) is not None


def media_address(media: str, base_uri: str | None) -> str:
    """Return the complete address of a token's media, relative to the base address (NEP-177)."""
    if base_uri is None or not media or _is_absolute(media):
        return media
    return f"{base_uri.rstrip('/')}/{media.lstrip('/')}"


def _concat(frames: list[pd.DataFrame]) -> pd.DataFrame:
    nonempty = [frame for frame in frames if len(frame)] or frames[:1]
    return pd.concat(nonempty, ignore_index=True) if nonempty else pd.DataFrame()


def _check_gateway(address: str) -> str:
    """Return the address of a gateway, which ends with a slash; refuse what is not https."""
    if address and (address.startswith("data:") or picture_source(address) is None):
        raise InvalidRequestError.refuse("gateway", address, "an address that begins with https://")
    return f"{address.rstrip('/')}/" if address else ""


def cards(frame: pd.DataFrame, gateway: str = "") -> str:
    """Format tokens as cards, at most 60."""
    rows = frame.head(_MAX_CARDS).to_dict("records")
    figures = "".join(_card(row, gateway) for row in rows) or "<p>None.</p>"
    hidden = _html.hidden_count(len(frame) - len(rows), "more token", " in .result")
    return f'<div class="cards">{figures}</div>{hidden}'


def _card(row: dict[Any, Any], gateway: str) -> str:
    title = row["title"] if isinstance(row["title"], str) else row["token_id"]
    description = row["description"] if isinstance(row["description"], str) else ""
    address = row.get("media_url", row["media"])
    image = _picture(address, title, gateway) if isinstance(address, str) and address else ""
    return (
        f"<figure>{image}<figcaption><strong>{_html.text(title)}</strong>"
        f"<br>{_html.text(description, 300)}<br><code>{_html.text(row['token_id'])}</code> of "
        f"{_html.link('account', row['contract_id'])}</figcaption></figure>"
    )


def _picture(address: str, title: str, gateway: str) -> str:
    """Format a picture that is part of the token, or in IPFS; others are loaded after a click."""
    in_ipfs = _IPFS.fullmatch(address) if gateway else None
    source = picture_source(f"{gateway}{in_ipfs[1]}" if in_ipfs else address)
    if source is None:
        return f"<p><small>picture: {_html.text(address, 80)}</small></p>"
    if source.startswith("data:"):
        return f'<img alt="{_html.text(title)}" src="{escape(source)}">'
    host = _html.text(urlsplit(source).hostname or "")
    data = f'data-picture="{escape(source)}" data-alt="{_html.text(title)}"'
    data += " data-chosen" if in_ipfs else ""  # a saved notebook loads nothing
    return f"<p><small {data}>picture at {host}</small></p>"


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
    # Browsers read a backslash as a slash, and would load from a host other than the named one.
    is_plain = media.isprintable() and "\\" not in media
    return media if parts.scheme == "https" and parts.hostname and is_plain else None
