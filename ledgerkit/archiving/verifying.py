"""Whether what a token says of its source holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledgerkit import client, validation
from ledgerkit.api import rpc
from ledgerkit.archiving import sources, tokens
from ledgerkit.archiving.flow import Archive
from ledgerkit.archiving.shown import card, columns_of
from ledgerkit.errors import InvalidRequestError, cut
from ledgerkit.frames import build

if TYPE_CHECKING:
    import pandas as pd

    from ledgerkit.archiving.sources import Record, Widget
    from ledgerkit.client import Ledger

VERDICTS = {
    "verified": "The source at the recorded block has the recorded hash.",
    "source_differs": "The source at the recorded block has another hash.",
    "source_missing": "There was no such widget at the recorded block.",
    "not_an_archive": "The token does not say what was archived, and where.",
    "no_such_token": "The collection has no such token.",
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Verification:
    """
    Whether a token's record holds.

    Parameters
    ----------
    verdict
        One of `ledgerkit.archiving.VERDICTS`.
    token_id, contract_id
        The token, and its collection.
    record
        What it says of its source; None where it says no such thing.
    found_sha256
        The hash of the source as it was read again; None where there is none.
    """

    verdict: str
    token_id: str
    contract_id: str
    record: Record | None
    found_sha256: str | None

    @property
    def is_verified(self) -> bool:
        """Whether the source has the recorded hash."""
        return self.verdict == "verified"

    def to_frame(self) -> pd.DataFrame:
        """
        Tell it in one row.

        Returns
        -------
        row
            Verdict, token and both hashes, typed as `schema("archive_verification")`.
        """
        values = {
            "verdict": self.verdict,
            "contract_id": self.contract_id,
            "token_id": self.token_id,
            **columns_of(self.record, "author_account_id", "widget_name", "widget_path"),
            "found_sha256": self.found_sha256,
        }
        columns = {name: [value] for name, value in values.items()}
        return build.build_frame("archive_verification", columns)

    def __repr__(self) -> str:
        return f"<Verification {self.token_id} of {self.contract_id}: {self.verdict}>"

    def _repr_html_(self) -> str:
        """Draw a card: the verdict, and what was compared; all text is escaped."""
        told = self.to_frame().T.reset_index().set_axis(["what", "told"], axis=1)
        return card("verification", repr(self)[1:-1], VERDICTS[self.verdict], told)


def verify_archive(
    token: str | Archive, *, source: Ledger, target: Ledger, collection: str
) -> Verification:
    """
    Read a token's source again, at the block it names, and compare the hash.

    Parameters
    ----------
    token
        The token's id, or what `archive_widget` returned.
    source
        The ledger that holds the social database; an old block may need its archival host.
    target
        The ledger that holds the collection.
    collection
        The collection's contract.

    Returns
    -------
    verification
        The verdict, what the token says and what was found.

    Raises
    ------
    InvalidRequestError
        If an argument is malformed, or the source's network is not the recorded one.
    LedgerError
        If the token, or the source at that block, could not be read.

    Notes
    -----
    Source: view calls nft_token and get.
    """
    token_id = token.token_id if isinstance(token, Archive) else token
    token_id = tokens.checked_text(token_id, "token")
    contract_id = validation.account_id(collection, "collection")
    held = tokens.find_token(token_id, contract_id, target=target).token
    record = None if held is None else tokens.record_of(held)
    if record is None:
        verdict = "no_such_token" if held is None else "not_an_archive"
        return Verification(verdict, token_id, contract_id, None, None)
    found = _recorded_source(record, client.current(source))
    same = found is not None and found.sha256 == record.source_sha256
    verdict = "verified" if same else "source_missing" if found is None else "source_differs"
    found_sha256 = None if found is None else found.sha256
    return Verification(verdict, token_id, contract_id, record, found_sha256)


def _recorded_source(record: Record, source: Ledger) -> Widget | None:
    """Read the source as it was at the recorded block."""
    network = source.send(rpc.status()).chain_id
    if network != record.source_network:
        rule = f"a ledger of {cut(record.source_network)}, where the source was read"
        raise InvalidRequestError.refuse("source", network, rule)
    return sources.read_widget(
        record.author_account_id,
        record.widget_name,
        source=source,
        social_contract_id=record.source_contract_id,
        at=record.socialdb_block_height,
    )
