"""The descriptions of parameters that functions of the archive share."""

from ledgerkit.docstrings import F, share

_PARAMETERS = {
    "author_account_id": "The author of the widget.",
    "widget_name": "The name of the widget.",
    "receiver_id": "The account that will own the token.",
    "token_id": "The token id.",
    "source": "The ledger that holds the social database.",
    "target": "The ledger that holds the collection.",
    "collection": "The contract of the collection.",
    "at": "A height, block hash, finality or time; None is ``final``.",
    "signer": "The signer of the transaction on the target, who pays.",
    "deposit": "The deposit, from which the collection pays for the token's storage.",
    "token_prefix": "The start of the token id; the first 12 digits of the source's hash follow.",
    "title": "The title of the token; None is the widget's name.",
    "description": "The description of the token; None is the widget's path and block.",
    "copies": "The number of copies in the token's metadata.",
    "social_contract_id": (
        "The contract of the database; None is the one of mainnet, testnet or the embedded\n"
        "    ledger."
    ),
    "timeout_s": "How long to wait for the transaction, in seconds.",
    "allow_mainnet": "True allows signing for mainnet.",
}


def shared_parameters(function: F) -> F:
    return share(function, _PARAMETERS, {})
