"""
Every verb that reads or writes a network, on mainnet and testnet, and on the embedded ledger.

The public networks are only used with LEDGERKIT_LIVE=1. Requests stay within the limits for
callers without an API key, so a network takes some minutes; LEDGERKIT_API_KEY makes it faster.
Verbs that sign use a new key, which the signer's account does not have: nothing can be sent.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import ledgerkit as lk
from ledgerkit import errors
from ledgerkit.protocol import DelegateAction, SecretKey, Transfer
from tests.live.sites import FACTS, Site, open_site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[] if name == "local" else pytest.mark.live) for name in FACTS
    ],
)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Open each network once, so that all requests to it share one rate limit."""
    opened = open_site(request.param)
    yield opened
    opened.ledger.close()
    lk.disconnect()


def _is_of(frame: pd.DataFrame, schema: str) -> None:
    """Assert that a frame has the columns of its schema, and says where it is from."""
    assert frame.columns.tolist() == lk.schema(schema)["name"].tolist()
    assert frame.attrs["network"] in FACTS


def _head(site: Site) -> int:
    """Return the height of a final block that was not skipped."""
    return int(lk.block("final", ledger=site.ledger)["block_height"][0])


def _pair(site: Site) -> tuple[str, str]:
    """Return the hash and the sender of the known transfer."""
    return site.facts.tx_hash, site.facts.sender


# Accounts and tokens ----------------------------------------------------------------------


def test_accounts(site: Site) -> None:
    """An account has a balance, from the indexer and from a node alike."""
    account_id = site.facts.account_id
    for at in (None, "final"):
        frame = lk.accounts(account_id, at=at, ledger=site.ledger)
        assert frame["account_id"].tolist() == [account_id]
        assert frame["balance"][0] > 0


def test_snapshot(site: Site) -> None:
    """A snapshot is about the account that was asked for."""
    snapshot = lk.snapshot(site.facts.account_id, ledger=site.ledger)
    assert snapshot.account_id == site.facts.account_id
    assert snapshot.state["balance"][0] > 0


def test_explore(site: Site) -> None:
    """The explorer opens an account, whose frame and page name the network."""
    account = lk.explore(site.facts.account_id, ledger=site.ledger).account
    assert account.result is not None
    assert account.result["account_id"].tolist() == [site.facts.account_id]
    assert account.result.attrs["network"] == site.name


def test_accounts_of(site: Site) -> None:
    """An account that is listed for a key has that key."""
    keys = lk.keys(site.facts.account_id, ledger=site.ledger)
    full = keys[keys["permission"] == "FullAccess"]["public_key"].tolist()
    public_key = full[0] if full else str(SecretKey.generate().public_key)
    frame = lk.accounts_of(public_key, ledger=site.ledger)
    _is_of(frame, "accounts_of")
    assert not full or site.facts.account_id in frame["account_id"].tolist()


def test_keys(site: Site) -> None:
    """The keys of an account have a nonce and a permission."""
    frame = lk.keys(site.facts.account_id, ledger=site.ledger)
    assert frame["nonce"].notna().all()
    assert frame["permission"].notna().all()


def test_ft(site: Site) -> None:
    """Fungible tokens are those of the account."""
    frame = lk.ft(site.facts.account_id, ledger=site.ledger)
    _is_of(frame, "ft")
    assert set(frame["account_id"]) <= {site.facts.account_id}


def test_balance(site: Site) -> None:
    """The balance of the account is the one that its row has."""
    frame = lk.accounts(site.facts.account_id, at=_head(site), ledger=site.ledger)
    amount = lk.balance(site.facts.account_id, at=_head(site), ledger=site.ledger)
    assert amount == frame["balance"][0]


def test_token_metadata(site: Site) -> None:
    """A token's contract states its symbol and decimals."""
    frame = lk.token_metadata(site.facts.token, ledger=site.ledger)
    assert frame["contract_id"].tolist() == [site.facts.token]
    assert frame["decimals"].notna().all()


def test_nft(site: Site) -> None:
    """Collections are those of the account."""
    frame = lk.nft(site.facts.account_id, ledger=site.ledger)
    assert set(frame["account_id"]) <= {site.facts.account_id}


def test_nft_tokens(site: Site) -> None:
    """Tokens of a collection belong to the account; a contract without NFTs is an error."""
    if site.facts.collection is None:
        with pytest.raises(errors.ContractError):
            lk.nft_tokens(site.facts.account_id, site.facts.token, ledger=site.ledger)
        return
    frame = lk.nft_tokens(site.facts.account_id, site.facts.collection, ledger=site.ledger)
    assert set(frame["owner_id"]) <= {site.facts.account_id}


def test_staking(site: Site) -> None:
    """Staking pools are those of the account."""
    frame = lk.staking(site.facts.account_id, ledger=site.ledger)
    assert set(frame["account_id"]) <= {site.facts.account_id}


def test_lockups(site: Site) -> None:
    """An account has a row for each kind of contract, whether or not it has one."""
    if site.ledger.network.name == "testnet":
        pytest.skip("lockup contracts are not known on testnet")
    frame = lk.lockups(site.facts.account_id, ledger=site.ledger)
    assert set(frame["account_id"]) == {site.facts.account_id}
    assert set(frame["status"]) <= {"ok", "no_account", "no_contract", "broken"}


def test_exposure(site: Site) -> None:
    """The account has a row."""
    frame = lk.exposure(site.facts.account_id, ledger=site.ledger)
    assert set(frame["account_id"]) == {site.facts.account_id}


def test_top_holders(site: Site) -> None:
    """The largest holders of a token come first."""
    frame = lk.top_holders(site.facts.token, ledger=site.ledger)
    balances = frame["balance"].dropna().tolist()
    assert balances == sorted(balances, reverse=True)


def test_history(site: Site) -> None:
    """Two readings of an account are at the heights that were asked for."""
    head = _head(site)
    frame = lk.history(site.facts.account_id, head - 1, head, every=1, ledger=site.ledger)
    assert frame["block_height"].max() <= head


def test_account_transactions(site: Site) -> None:
    """The newest transactions of an account are its own, in the order of the chain."""
    frame = lk.account_transactions(site.facts.account_id, limit=3, ledger=site.ledger)
    assert set(frame["account_id"]) <= {site.facts.account_id}
    assert frame["tx_block_height"].is_monotonic_increasing


def test_activity(site: Site) -> None:
    """The newest transactions of an account are read and described, the newest first."""
    frame = lk.activity(site.facts.account_id, limit=3, ledger=site.ledger)
    assert frame["verdict"].notna().all()
    assert frame["tx_block_height"].is_monotonic_decreasing


def test_transfers_of(site: Site) -> None:
    """The newest transfers of an account are exact; testnet lists none."""
    if site.ledger.network.transfers_url is None:
        with pytest.raises(errors.InvalidRequestError, match="Transfers API"):
            lk.transfers_of(site.facts.account_id, limit=3, ledger=site.ledger)
        return
    frame = lk.transfers_of(site.facts.account_id, limit=3, ledger=site.ledger)
    assert set(frame["account_id"]) <= {site.facts.account_id}
    assert frame["is_exact"].all()


def test_key_values(site: Site) -> None:
    """Entries are of the contract that was asked for."""
    frame = lk.key_values("contextual.near", limit=3, ledger=site.ledger)
    assert set(frame["contract_id"]) <= {"contextual.near"}


# Contracts --------------------------------------------------------------------------------


def test_view(site: Site) -> None:
    """Wrapped NEAR has as many decimals as NEAR."""
    assert lk.view(site.facts.token, "ft_metadata", ledger=site.ledger)["decimals"] == 24


def test_view_many(site: Site) -> None:
    """Two views are answered in their order."""
    requests = [(site.facts.token, method) for method in ("ft_total_supply", "ft_metadata")]
    supply, metadata = lk.view_many(requests, progress=False, ledger=site.ledger)
    assert int(supply) > 0
    assert metadata["decimals"] == 24


def test_contract_code(site: Site) -> None:
    """A token has code."""
    assert len(lk.contract_code(site.facts.token, ledger=site.ledger)) > 0


def test_contract_code_of_a_publisher(site: Site) -> None:
    """An account that published no global contract is an error of its own."""
    with pytest.raises(errors.NoGlobalContractCodeError):
        lk.contract_code(global_contract_account_id=site.facts.account_id, ledger=site.ledger)


def test_contract_state(site: Site) -> None:
    """A contract has state, or more of it than a node returns."""
    try:
        frame = lk.contract_state(site.facts.token, ledger=site.ledger)
    except errors.TooLargeContractStateError as error:
        assert error.contract_account_id == site.facts.token  # noqa: PT017 - either is right
    else:
        assert len(frame) > 0


# Blocks and the node ----------------------------------------------------------------------


def test_status(site: Site) -> None:
    """The node is one of the network."""
    frame = lk.status(ledger=site.ledger)
    assert site.name == "local" or frame["chain_id"][0] == site.name
    assert not frame["syncing"][0]


def test_doctor(site: Site, tmp_path: Path) -> None:
    """Every surface that the network has answers, and a report can be saved."""
    frame = lk.doctor(save=tmp_path / "report.lk", ledger=site.ledger)
    assert frame["message"].dropna().tolist() == []
    assert frame["latency_ms"].notna().all()


def test_record(site: Site, tmp_path: Path) -> None:
    """What was read is read again from the file alone."""
    account_id = site.facts.sender
    with lk.record(tmp_path / "case.lk", ledger=site.ledger):
        recorded = lk.accounts(account_id)
    with lk.connect(tmp_path / "case.lk", make_default=False) as replayed:
        assert lk.accounts(account_id, ledger=replayed).equals(recorded)
    assert lk.read_recording(tmp_path / "case.lk").attrs["chain_id"] is not None


def test_gas_price(site: Site) -> None:
    """Gas has a price."""
    assert lk.gas_price(ledger=site.ledger)["gas_price"][0] > 0


def test_validators(site: Site) -> None:
    """Each validator has a stake."""
    assert (lk.validators(ledger=site.ledger)["stake"] > 0).all()


def test_protocol_config(site: Site) -> None:
    """The configuration is that of a protocol version."""
    assert lk.protocol_config(ledger=site.ledger)["protocol_version"] > 80


def test_block(site: Site) -> None:
    """A block is the same by its height and by its hash."""
    by_height = lk.block(_head(site), ledger=site.ledger)
    by_hash = lk.block(by_height["block_hash"][0], ledger=site.ledger)
    assert by_hash["block_height"].tolist() == by_height["block_height"].tolist()


def test_blocks(site: Site) -> None:
    """Blocks are in the range that was asked for, each the parent of the next."""
    head = _head(site)
    frame = lk.blocks(head - 2, head + 1, progress=False, ledger=site.ledger)
    assert frame["block_height"].iloc[-1] == head
    assert frame["prev_hash"].tolist()[1:] == frame["block_hash"].tolist()[:-1]
    options: dict[str, Any] = {"progress": False, "ledger": site.ledger}
    old = lk.blocks(head - 60, head - 50, source="documents", **options)
    pd.testing.assert_frame_equal(old, lk.blocks(head - 60, head - 50, **options))


def test_chunks(site: Site) -> None:
    """A block has a chunk of each shard."""
    assert lk.chunks(ledger=site.ledger)["shard_id"].is_unique


def test_one_chunk(site: Site) -> None:
    """A chunk is found by its shard."""
    height = _head(site)
    shard_id = int(lk.chunks(height, ledger=site.ledger)["shard_id"][0])
    frame = lk.chunks(height, shard_id=shard_id, ledger=site.ledger)
    assert frame["shard_id"].tolist() == [shard_id]


def test_transactions(site: Site) -> None:
    """The transactions of a block have different hashes."""
    frame = lk.transactions(_head(site), progress=False, ledger=site.ledger)
    assert frame["tx_hash"].is_unique


def test_changes(site: Site) -> None:
    """Changes of an account at a block are about that account; there may be none."""
    account_id = site.facts.account_id
    frame = lk.changes(account_id, at=_head(site), ledger=site.ledger)
    assert set(frame["account_id"]) <= {account_id}


# Transactions -----------------------------------------------------------------------------


def test_trace(site: Site) -> None:
    """The known transfer moved the published amount between the published accounts."""
    trace = lk.trace(*_pair(site), ledger=site.ledger)
    assert trace.verdict == "fully_succeeded"
    by_hash = lk.trace(site.facts.tx_hash, ledger=site.ledger)
    pd.testing.assert_frame_equal(by_hash.receipts, trace.receipts)
    moved = trace.transfers.set_index("receiver_id")["amount"]
    assert moved[site.facts.receiver] == site.facts.amount


def test_verify(site: Site) -> None:
    """All outcomes of the known transfer are signed, or a path is no longer served."""
    proof = lk.verify(*_pair(site), ledger=site.ledger)
    assert "no" not in set(proof.rows["proved"].dropna())
    assert proof.is_signed_by_sender is not False


def test_traces(site: Site) -> None:
    """Many transactions are read at once."""
    assert len(lk.traces([_pair(site)], progress=False, ledger=site.ledger)) > 0


def test_trace_block(site: Site) -> None:
    """The transactions of the known transfer's block are read, itself among them."""
    receipts = lk.receipts(*_pair(site), ledger=site.ledger)
    first = int(receipts["block_height"].min())
    heights = [height for height in (first - 1, first) if height > 0]
    blocks = [
        lk.transactions(height, progress=False, ledger=site.ledger)["tx_hash"].tolist()
        for height in heights
    ]
    [at] = [h for h, hashes in zip(heights, blocks, strict=True) if site.facts.tx_hash in hashes]
    options: dict[str, Any] = {"progress": False, "ledger": site.ledger}
    traces = lk.trace_block(at, **options)
    assert site.facts.tx_hash in traces
    by_documents = lk.trace_block(at, source="documents", **options)
    pd.testing.assert_frame_equal(by_documents.transfers, traces.transfers)


def test_receipts(site: Site) -> None:
    """The first receipt of the known transfer ran on its receiver."""
    frame = lk.receipts(*_pair(site), ledger=site.ledger)
    assert frame["receiver_id"][0] == site.facts.receiver


def test_receipt(site: Site) -> None:
    """A receipt is found by its id."""
    receipt_id = lk.receipts(*_pair(site), ledger=site.ledger)["receipt_id"][0]
    assert lk.receipt(receipt_id, ledger=site.ledger)["receipt_id"] == receipt_id


def test_track(site: Site) -> None:
    """The known transfer is final."""
    assert lk.track(*_pair(site), ledger=site.ledger).tx_hash == site.facts.tx_hash
    assert lk.track(*_pair(site), timeout_s=0, ledger=site.ledger).stage == "final"


# Many -------------------------------------------------------------------------------------


def test_collect(site: Site, tmp_path: Path) -> None:
    """An account is collected without a failure."""
    ids, out = [site.facts.account_id], tmp_path / "accounts"
    collection = lk.collect(ids, "ft", out, progress=False, ledger=site.ledger)
    assert collection.errors().empty


def test_statement(site: Site) -> None:
    """A statement over a few blocks begins with the total of NEAR."""
    stop = _head(site) - 20
    found = lk.statement(site.facts.account_id, stop - 10, stop, progress=False, ledger=site.ledger)
    assert found.totals["asset"][0] == "near"


def test_statements(site: Site, tmp_path: Path) -> None:
    """The statement of an account over a few blocks is collected without a failure."""
    ids, stop = [site.facts.account_id], _head(site) - 20
    options: dict[str, Any] = {"progress": False, "ledger": site.ledger}
    collection = lk.statements(ids, tmp_path / "out", stop - 10, stop, **options)
    assert collection.errors().empty


def test_collect_blocks(site: Site, tmp_path: Path) -> None:
    """Blocks are collected without a failure, with the same rows from both sources."""
    stop, tables = _head(site) - 20, []
    for source in ("rpc", "documents"):
        out, options = tmp_path / source, {"source": source, "progress": False}
        untyped: Any = lk.collect_blocks
        collection = untyped(stop - 2, stop, "blocks", out, ledger=site.ledger, **options)
        assert "failed" not in collection.counts
        tables.append(collection.arrow("blocks"))
    assert tables[0].equals(tables[1])


def test_follow(site: Site) -> None:
    """The last final block comes first, and then the next one, once it is final."""
    first, second = lk.follow(views="blocks", max_blocks=2, progress=False, ledger=site.ledger)
    _is_of(first, "blocks")
    assert second["prev_hash"].tolist() == first["block_hash"].tolist()


def test_cache_info(site: Site) -> None:
    """A ledger without a disk cache says so."""
    with pytest.raises(errors.InvalidRequestError, match="cache"):
        lk.cache_info(site.ledger)


def test_clear_cache(site: Site) -> None:
    """A ledger without a disk cache has none to clear."""
    with pytest.raises(errors.InvalidRequestError, match="cache"):
        lk.clear_cache(site.ledger)


# Verbs that sign: the key is new, so the node does not know it ----------------------------


def _refused(site: Site, verb: Callable[..., object], *args: Any, **options: Any) -> None:
    """Assert that a verb reads the signer's key from the node, and stops as it is unknown."""
    key = SecretKey.generate()
    with pytest.raises(errors.UnknownAccessKeyError) as caught:
        verb(
            *args,
            signer_id=site.facts.account_id,
            key=key,
            allow_mainnet=True,
            ledger=site.ledger,
            **options,
        )
    assert caught.value.public_key == str(key.public_key)


def test_transfer(site: Site) -> None:
    """A transfer with an unknown key is not sent."""
    _refused(site, lk.transfer, site.facts.receiver, "1 yocto", dry_run=True)


def test_call(site: Site) -> None:
    """A call with an unknown key is not sent."""
    _refused(site, lk.call, site.facts.token, "near_deposit", dry_run=True)


def test_send(site: Site) -> None:
    """Actions with an unknown key are not sent."""
    _refused(site, lk.send, site.facts.receiver, [Transfer(1)], dry_run=True)


def test_add_key(site: Site) -> None:
    """No key is added by an unknown one."""
    _refused(site, lk.add_key, str(SecretKey.generate().public_key), dry_run=True)


def test_delete_key(site: Site) -> None:
    """No key is deleted by an unknown one."""
    _refused(site, lk.delete_key, str(SecretKey.generate().public_key), dry_run=True)


def test_create_account(site: Site) -> None:
    """No account is created with an unknown key."""
    public_key = str(SecretKey.generate().public_key)
    new_id = f"new.{site.facts.account_id}"
    _refused(
        site, lk.create_account, new_id, public_key=public_key, balance="1 yocto", dry_run=True
    )


def test_deploy(site: Site) -> None:
    """No code is deployed with an unknown key."""
    _refused(site, lk.deploy, b"\0asm\1\0\0\0", dry_run=True)


def test_simulate(site: Site) -> None:
    """A transfer of the account to itself would succeed, and nothing is sent."""
    account_id = site.facts.account_id
    trace = lk.simulate(account_id, Transfer(1), signer_id=account_id, ledger=site.ledger)
    assert trace.verdict == "fully_succeeded"


def test_delegate(site: Site) -> None:
    """Nothing is delegated with an unknown key."""
    _refused(site, lk.delegate, site.facts.receiver, [Transfer(1)])


def test_relay(site: Site) -> None:
    """A delegate action is not relayed with an unknown key."""
    key = SecretKey.generate()
    action = DelegateAction(
        site.facts.sender, site.facts.receiver, [Transfer(1)], 1, 9, key.public_key
    )
    _refused(site, lk.relay, action.sign(key), dry_run=True)


def test_archive_widget(site: Site) -> None:
    """A widget that does not exist is not archived, which is an outcome and no error."""
    archive = lk.archiving.archive_widget(
        site.facts.account_id,
        "NoSuchWidget0123456789",
        site.facts.receiver,
        source=site.ledger,
        target=site.ledger,
        collection=site.facts.collection or site.facts.token,
        signer=lk.signer(site.facts.account_id, SecretKey.generate()),
        allow_mainnet=True,
    )
    assert archive.outcome == "missing_widget"


def test_verify_archive(site: Site) -> None:
    """A token that does not exist verifies nothing; a contract without NFTs is an error."""
    collection = site.facts.collection or site.facts.token

    def verify() -> str:
        ledgers = {"source": site.ledger, "target": site.ledger}
        return lk.archiving.verify_archive(
            "widget-0123456789ab", collection=collection, **ledgers
        ).verdict

    if site.facts.collection is None:
        with pytest.raises(errors.ContractError):
            verify()
    else:
        assert verify() == "no_such_token"


def test_every_verb_is_tried() -> None:
    """Each public function that takes a ledger has a test of its name here."""
    verbs = {
        name
        for name in lk.__all__
        if inspect.isfunction(function := getattr(lk, name))
        and "ledger" in inspect.signature(function).parameters
    }
    tests = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert verbs - tests == set()
