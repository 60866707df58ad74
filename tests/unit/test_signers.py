"""Who signs: every place a key may come from, and none that shows it."""

from __future__ import annotations

import io
import json
import logging
import pickle
import sys
import traceback
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.errors import InvalidRequestError
from ledgerkit.protocol import SecretKey
from ledgerkit.sending import signers

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("no_session_left")

KEY = SecretKey.from_seed_phrase(" ".join(["abandon"] * 11 + ["about"]))
TEXT = KEY.reveal()
BODY = TEXT.removeprefix("ed25519:")
OTHER = SecretKey.generate()
UNTYPED: Any = lk  # as whoever calls it without a type checker


def credentials(folder: Path, network: str = "testnet", **changes: Any) -> Path:
    """Write a file as NEAR CLI does, and give its path."""
    told = {"account_id": "a.testnet", "public_key": str(KEY.public_key), "private_key": TEXT}
    path = folder / ".near-credentials" / network / "a.testnet.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told | changes))
    return path


def assert_hidden(error: BaseException) -> None:
    """Look for the key in an error: its words, attributes, and every frame's variables."""
    seen = [error, error.__cause__, error.__context__]
    for one in filter(None, seen):
        trace = one.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        told = traceback.TracebackException(type(one), one, trace, capture_locals=True)
        shown = "".join(told.format()) + repr(vars(one)) + repr(one.args)
        assert BODY not in shown
        assert BODY[5:40] not in shown


# Where keys come from -------------------------------------------------------------------


@pytest.mark.parametrize("key", [KEY, TEXT, BODY])
def test_a_key_in_memory(key):
    """A key, its text, and its text without a curve are one signer."""
    made = lk.signer("a.testnet", key)
    assert (made.account_id, made.public_key) == ("a.testnet", KEY.public_key)
    assert made.key == KEY
    assert UNTYPED.signer("a.testnet", made) is made


def test_a_public_key_does_not_sign(monkeypatch):
    """A public key, which explorers show beside the account, is refused wherever a key is passed.

    NEAR CLI and wallets write a secret key of ed25519 as 64 bytes, and a public key as 32.
    """
    lk.connect("local")
    public = str(KEY.public_key)
    for text in (public, public.removeprefix("ed25519:")):
        with pytest.raises(InvalidRequestError, match="length of a public key"):
            lk.signer("a.testnet", text)
        with pytest.raises(InvalidRequestError, match="length of a public key"):
            lk.transfer("b.testnet", "1 NEAR", signer_id="a.testnet", key=text)
    monkeypatch.setenv("LEDGERKIT_ACCOUNT_ID", "a.testnet")
    monkeypatch.setenv("LEDGERKIT_SECRET_KEY", public)
    with pytest.raises(InvalidRequestError, match="length of a public key"):
        lk.signer()


def test_a_key_of_the_environment(monkeypatch):
    """The environment names account and key; another account's key is not taken from it."""
    monkeypatch.setenv("LEDGERKIT_ACCOUNT_ID", "a.testnet")
    with pytest.raises(InvalidRequestError, match="signer_id"):
        lk.signer()
    monkeypatch.setenv("LEDGERKIT_SECRET_KEY", TEXT)
    assert lk.signer() == lk.signer("a.testnet") == lk.signer("a.testnet", KEY)
    with pytest.raises(InvalidRequestError) as caught:
        lk.signer("b.testnet")
    assert_hidden(caught.value)
    monkeypatch.setenv("LEDGERKIT_SECRET_KEY", TEXT[:-2])
    with pytest.raises(InvalidRequestError) as caught:
        lk.signer()
    assert_hidden(caught.value)


def test_a_file_of_near_cli(tmp_path, monkeypatch):
    """A file is named, or found by network and account."""
    path = credentials(tmp_path)
    assert lk.signer(credentials=path) == lk.signer("a.testnet", KEY)
    assert lk.signer("a.testnet", credentials=str(path)).key == KEY
    monkeypatch.setenv("HOME", str(tmp_path))
    assert lk.signer("a.testnet", credentials=True, network="testnet").key == KEY
    lk.connect("testnet")
    assert lk.signer("a.testnet", credentials=True).key == KEY
    home = "~/.near-credentials/testnet/a.testnet.json"
    assert lk.signer("a.testnet", credentials=home).key == KEY


def test_a_folder_of_near_cli(tmp_path, monkeypatch):
    """The one key in an account's folder is read, and several are named for a choice."""
    # Source: near/near-cli-rs, src/common.rs, save_access_key_to_legacy_keychain
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".near-credentials" / "testnet" / "a.testnet"
    folder.mkdir(parents=True)
    text = json.dumps({"public_key": str(KEY.public_key), "private_key": TEXT})
    own = folder / f"{KEY.public_key}.json".replace(":", "_")
    own.write_text(text)
    assert lk.signer("a.testnet", credentials=True, network="testnet").key == KEY
    (folder / "ed25519_other.json").write_text(text)
    with pytest.raises(InvalidRequestError, match=r"ed25519_other\.json") as caught:
        lk.signer("a.testnet", credentials=True, network="testnet")
    assert own.name in str(caught.value)
    assert lk.signer("a.testnet", credentials=own).key == KEY
    path = credentials(tmp_path, private_key=OTHER.reveal(), public_key=str(OTHER.public_key))
    assert lk.signer("a.testnet", credentials=True, network="testnet").key == OTHER, path


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({"private_key": OTHER.reveal()}, {}),  # no pair
        ({"private_key": TEXT[:-1]}, {}),
        ({"account_id": "b.testnet"}, {}),
        ({"account_id": None}, {"account_id": None}),
        ({}, {"credentials": True, "account_id": None}),
        ({}, {"credentials": True, "network": "../testnet"}),
        ({}, {"credentials": True, "network": "nowhere"}),
        ({}, {"key": TEXT}),
        ({}, {"keyring": True}),
    ],
)
def test_a_file_that_does_not_fit(tmp_path, monkeypatch, changes, options):
    """What is wrong with a file is told without anything of it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    path = credentials(tmp_path, **changes)
    given = {"account_id": "a.testnet", "credentials": path} | options
    with pytest.raises(InvalidRequestError) as caught:
        UNTYPED.signer(**given)
    assert_hidden(caught.value)


def test_the_keyring_of_the_system(monkeypatch):
    """With the extra, the keyring is asked for the account under the service's name."""
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(InvalidRequestError, match="keyring=True needs keyring") as caught:
        lk.signer("a.testnet", keyring=True)
    assert "ledgerkit[keyring]" in str(caught.value)
    held = {("ledgerkit", "a.testnet"): TEXT, ("ledgerkit", "c.testnet"): TEXT[:-3]}

    class LockedError(Exception):
        """The keyring's own error."""

    def get_password(service: str, name: str) -> str | None:
        if name == "d.testnet":
            raise LockedError(TEXT)
        return held.get((service, name))

    library = SimpleNamespace(get_password=get_password)
    monkeypatch.setitem(sys.modules, "keyring", library)
    monkeypatch.setitem(sys.modules, "keyring.errors", SimpleNamespace(KeyringError=LockedError))
    assert lk.signer("a.testnet", keyring=True).key == KEY
    for name, told in (("b.testnet", "holds"), ("c.testnet", "base58"), ("d.testnet", "Locked")):
        with pytest.raises(InvalidRequestError, match=told) as caught:
            lk.signer(name, keyring=True)
        assert_hidden(caught.value)
    with pytest.raises(InvalidRequestError, match="account_id"):
        lk.signer(keyring=True)


# Which of them ---------------------------------------------------------------------------


def test_the_order_of_places(monkeypatch):
    """What is passed, then the session's, then the embedded ledger's, then the environment's."""
    ledger = lk.connect("local")
    published = ledger.world.keys()
    monkeypatch.setenv("LEDGERKIT_ACCOUNT_ID", "alice.near")
    monkeypatch.setenv("LEDGERKIT_SECRET_KEY", TEXT)
    assert signers.find_signer("alice.near", None, ledger).key.reveal() == published["alice.near"]
    assert signers.find_signer(None, None, ledger).key == KEY
    assert lk.use_signer("bob.near", OTHER) == lk.signer("bob.near", OTHER)
    assert signers.find_signer(None, None, ledger).account_id == "bob.near"
    assert signers.find_signer("bob.near", None, ledger).key == OTHER
    assert signers.find_signer("alice.near", None, ledger).key.reveal() == published["alice.near"]
    assert signers.find_signer("alice.near", KEY, ledger).key == KEY
    mine = lk.signer("carol.near", KEY)
    assert (
        signers.find_signer(None, mine, ledger)
        is signers.find_signer("carol.near", mine, ledger)
        is mine
    )
    with pytest.raises(InvalidRequestError, match="carol"):
        signers.find_signer("dave.near", mine, ledger)
    assert lk.use_signer(mine) is mine
    assert signers.find_signer(None, None, ledger) is mine
    assert lk.use_signer(None) is None
    other = lk.connect("testnet")
    assert signers.find_signer(None, None, other).key == KEY
    with pytest.raises(InvalidRequestError, match="use_signer"):
        signers.find_signer("bob.near", None, other)


# Never shown -----------------------------------------------------------------------------


def test_a_signer_shows_no_key():
    """Neither text nor pickle of a signer holds the key."""
    made = lk.signer("a.testnet", KEY)
    assert BODY not in repr(made) + str(made)
    assert "hidden" in repr(made)
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(made)


@pytest.mark.parametrize("bad", [TEXT[:-2], TEXT + "x", TEXT.encode(), [TEXT], f" {TEXT}"])
def test_a_malformed_key_is_not_shown(bad):
    """A key that can't be one is refused without being shown, in no frame either."""
    lk.connect("local")
    own: Any = {"signer_id": "alice.near", "key": bad}
    for ask in (
        lambda: UNTYPED.signer("a.testnet", bad),
        lambda: UNTYPED.use_signer("a.testnet", bad),
        lambda: UNTYPED.transfer("dave.near", "1 yocto", **own),
        lambda: UNTYPED.call("dave.near", "m", **own),
        lambda: UNTYPED.delegate("dave.near", [], **own),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            ask()
        assert_hidden(caught.value)


def test_a_good_key_is_in_no_traceback():
    """Whatever goes wrong in a verb, the key that was passed is in no frame of it."""
    lk.connect("local")
    for verb in (
        lambda: lk.transfer("dave.near", "1 BTC", signer_id="alice.near", key=TEXT),
        lambda: lk.transfer("dave.near", "1 yocto", signer_id="alice.near", key=TEXT),  # not hers
        lambda: lk.call("dave.near", "", signer_id="alice.near", key=TEXT),
        lambda: lk.add_key("x", signer_id="alice.near", key=TEXT),
        lambda: lk.deploy(b"", signer_id="alice.near", key=TEXT),
        lambda: lk.create_account("x", public_key="y", balance="1 yocto", key=TEXT),
        lambda: UNTYPED.relay(None, signer_id="alice.near", key=TEXT),
        lambda: lk.transfer("dave.near", "1 yocto", key=TEXT),
    ):
        with pytest.raises(errors.LedgerError) as caught:
            verb()
        assert_hidden(caught.value)
    with pytest.raises(TypeError) as wrong:
        UNTYPED.transfer("dave.near", "1 yocto", kee=1, key=TEXT)
    assert_hidden(wrong.value)


def test_a_used_key_is_in_nothing_that_is_shown():
    """Log, card, frames and repr of what was sent hold the signature's key nowhere."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        ledger = lk.connect("local")
        text = ledger.world.keys()["alice.near"]
        sent = lk.transfer("dave.near", "1 yocto", signer_id="alice.near", key=text).wait()
        dry = lk.transfer("dave.near", "1 yocto", signer_id="alice.near", key=text, dry_run=True)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    shown = [repr(sent), sent._repr_html_(), sent.stages.to_csv(), dry.to_html(), repr(sent.signed)]
    shown += [repr(vars(sent)), stream.getvalue(), repr(sent.trace)]
    assert text.removeprefix("ed25519:") not in "".join(shown)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"credentials": 7}, "credentials 7 is not valid: expected True, or a path"),
        ({"credentials": "\ud800"}, "expected a readable NEAR CLI file"),
        ({"credentials": "a\0b"}, "expected a readable NEAR CLI file"),
        ({"keyring": "yes"}, "keyring 'yes' is not valid: expected True or False"),
    ],
)
def test_options_of_another_type_are_refused(options: dict[str, Any], message: str):
    """Neither a TypeError nor an error of the file system comes out."""
    with pytest.raises(InvalidRequestError, match=message):
        signers.signer("alice.near", **options)
