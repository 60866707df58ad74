"""Verification of a token's record against the social database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledgerkit import cards, client, validation
from ledgerkit.api import rpc
from ledgerkit.archiving import declaring, tokens, widget_sources
from ledgerkit.archiving.flow import Archive
from ledgerkit.errors import InvalidRequestError, cut
from ledgerkit.frames import build

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.archiving.widget_sources import Record, Widget
    from ledgerkit.ledger import Ledger

VERDICTS = {
    "verified": "The source at the recorded block has the recorded hash.",
    "source_differs": "The source at the recorded block has another hash.",
    "source_missing": "The widget did not exist at the recorded block.",
    "not_an_archive": "The token has no record of an archived widget.",
    "no_such_token": "The token does not exist.",
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Verification:
    """
    The result of checking a token's record.

    Parameters
    ----------
    verdict
        One of `ledgerkit.archiving.VERDICTS`.
    token_id, contract_id
        The token and its collection.
    record
        The token's record, or None.
    found_sha256
        The hash of the source at the recorded block, or None.

    Examples
    --------
    >>> from ledgerkit.archiving import verify_archive
    >>> ledger = lk.connect("local")
    >>> where = {"source": ledger, "target": ledger, "collection": "stamps.grace.near"}
    >>> verification = verify_archive("17", **where)
    >>> verification.verdict, verification.is_verified
    ('not_an_archive', False)
    """

    verdict: str
    token_id: str
    contract_id: str
    record: Record | None
    found_sha256: str | None

    @property
    def is_verified(self) -> bool:
        """True if the source has the recorded hash."""
        return self.verdict == "verified"

    def to_frame(self) -> pd.DataFrame:
        """
        Return the result as one row.

        Returns
        -------
        row
            Verdict, token and both hashes, typed as `schema("archive_verification")`.

        Examples
        --------
        >>> from ledgerkit.archiving import verify_archive
        >>> ledger = lk.connect("local")
        >>> networks = {"source": ledger, "target": ledger}
        >>> check = verify_archive("17", collection="stamps.grace.near", **networks)
        >>> check.to_frame()[["verdict", "contract_id", "token_id"]]
                  verdict        contract_id token_id
        0  not_an_archive  stamps.grace.near       17
        """
        values = {
            "verdict": self.verdict,
            "contract_id": self.contract_id,
            "token_id": self.token_id,
            **widget_sources.record_columns(
                self.record, "author_account_id", "widget_name", "widget_path"
            ),
            "found_sha256": self.found_sha256,
        }
        return build.of_rows("archive_verification", [values])

    def __repr__(self) -> str:
        token = f"{cut(self.token_id)} of {cut(self.contract_id)}"
        return f"<Verification {token}: {self.verdict}>"

    def _repr_html_(self) -> str:
        rows = self.to_frame().T.reset_index().set_axis(["name", "value"], axis=1)
        return cards.table_card(
            "verification",
            headline=repr(self)[1:-1],
            explanation=VERDICTS[self.verdict],
            caption="The token and its record",
            rows=rows.astype("string"),  # heights are ids, without commas
        )


@declaring.shared_parameters
def verify_archive(
    token: str | Archive, *, source: Ledger, target: Ledger, collection: str
) -> Verification:
    """
    Check a token's record: read the source at the recorded block, and compare the hash.

    Parameters
    ----------
    token
        The token id, or the result of `archive_widget`.
    source
        The ledger that holds the social database; old blocks are read from its archival host.

    Returns
    -------
    verification
        The verdict, the token's record and the hash of the source.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, or the source's network is not the recorded one.
    LedgerError
        If a request fails.

    Notes
    -----
    Source: view calls nft_token and get.

    Examples
    --------
    >>> from ledgerkit.archiving import archive_widget, verify_archive
    >>> ledger = lk.connect("local")
    >>> grace = lk.signer("grace.near", ledger.world.keys()["grace.near"])
    >>> where = {"source": ledger, "target": ledger, "collection": "stamps.grace.near"}
    >>> widget = ("heidi.near", "Clock")
    >>> archive = archive_widget(*widget, "alice.near", signer=grace, **where)
    >>> verify_archive(archive, **where)
    <Verification widget-8ab0028ead1b of stamps.grace.near: verified>
    """
    token_id = token.token_id if isinstance(token, Archive) else token
    token_id = tokens.check_text(token_id, "token")
    contract_id = validation.account_id(collection, "collection")
    nft = tokens.find_token(token_id, contract_id, target=target).token
    record = None if nft is None else tokens.record_of(nft)
    if record is None:
        verdict = "no_such_token" if nft is None else "not_an_archive"
        return Verification(verdict, token_id, contract_id, None, None)
    widget = _read_recorded(record, client.current(source))
    sha256 = None if widget is None else widget.sha256
    verdict = "source_missing" if widget is None else "source_differs"
    if sha256 == record.source_sha256:
        verdict = "verified"
    return Verification(verdict, token_id, contract_id, record, sha256)


def _read_recorded(record: Record, source: Ledger) -> Widget | None:
    network = source.send(rpc.status()).chain_id
    if network != record.source_network:
        expected = f"a ledger of {cut(record.source_network)}, where the source was read"
        raise InvalidRequestError.refuse("source", network, expected)
    return widget_sources.read_widget(
        record.author_account_id,
        record.widget_name,
        source=source,
        social_contract_id=record.source_contract_id,
        at=record.socialdb_block_height,
    )
