// @fastnear/api against the embedded ledger.
//
// `ledgerkit world demo --json` with `actors` added on standard input, the ledger's address as the
// argument: tests/clients/run.py does both. The package is made for browsers: it wants `window` and
// its storage, and signs for the one receiver that it finds there when it is loaded.

import { createRequire } from "node:module";
import {
  burnt,
  checks,
  demo,
  failures,
  NEAR,
  PLAIN,
  raised,
  REGISTRATION,
  returned,
  TRANSFER_DEBIT,
  TRANSFER_FEE,
} from "./checks.mjs";

const check = checks("@fastnear/api");
const world = demo();
const { receiverId, contracts } = world;
const gas = "100000000000000";
const require = createRequire(import.meta.url);
const path = require.resolve("@fastnear/api/dist/fastnear.cjs");

const stored = new Map();
globalThis.window = globalThis;
globalThis.location = { href: "http://localhost/" };
globalThis.history = { replaceState() {} };
globalThis.addEventListener = () => {};
globalThis.localStorage = {
  getItem: (key) => stored.get(key) ?? null,
  setItem: (key, value) => stored.set(key, value),
  removeItem: (key) => stored.delete(key),
};

/** Load the client anew, signed in for one receiver. */
function signedIn(accessKeyContractId, nonce) {
  const state = { accountId: world.senderId, privateKey: world.secretKey, accessKeyContractId };
  stored.clear();
  for (const [key, value] of Object.entries({ ...state, ...(nonce && { nonce }) })) {
    stored.set(`__fastnear_${key}`, JSON.stringify(value));
  }
  delete require.cache[path];
  require(path);
  window.near.config({ nodeUrl: world.url });
  return window.near;
}

/** Send a transaction and wait for what the client's listener hears last. */
async function sent(near, action, waitUntil) {
  const shown = console.log;
  const last = ["Executed", "Error", "ErrorAfterIncluded"];
  const heard = new Promise((resolve) => {
    near.onTx((tx) => last.includes(tx.status) && resolve(tx));
  });
  console.log = () => {}; // it prints each transaction
  await near.sendTx({ receiverId: action.receiverId, actions: [action], waitUntil });
  console.log = shown;
  return heard;
}

const act = (receiverId, action, waitUntil = "FINAL", nonce = undefined) =>
  sent(signedIn(receiverId, nonce), { receiverId, ...action }, waitUntil);

const near = signedIn(receiverId);
const amountOf = async (accountId) => BigInt((await near.account({ accountId })).amount);
const view = (contractId, methodName, args = {}) => near.view({ contractId, methodName, args });
const ftOf = (accountId) => view(contracts.ft, "ft_balance_of", { account_id: accountId });
const call = (methodName, args, deposit = "0") =>
  near.actions.functionCall({ methodName, args, gas, deposit });

// View the account, its key and a contract's answers; miss what is not there.
async function reads() {
  const state = await near.account({ accountId: world.senderId });
  check.equal("view account: no code", state.code_hash, "1".repeat(32));
  check.equal("view account: storage", state.storage_usage, PLAIN);
  const error = JSON.parse((await raised(near.account({ accountId: "nobody.at-all" }))).message);
  check.equal("view account: missing", error.cause.name, "UNKNOWN_ACCOUNT");
  const key = await near.accessKey({ accountId: world.senderId, publicKey: near.publicKey });
  check.equal("access key: permission", key.permission, "FullAccess");
  const bounds = await view(contracts.ft, "storage_balance_bounds");
  check.equal("view call", bounds, { min: `${REGISTRATION}`, max: `${REGISTRATION}` });
  const { header } = await near.block({ blockId: "final" });
  const before = await near.block({ blockId: header.prev_hash });
  check.equal("block: by the hash before", before.header.hash, header.prev_hash);
}

// Send 1 N and see both balances move by it and the fee, to the yocto.
async function transfer() {
  const before = [await amountOf(world.senderId), await amountOf(receiverId)];
  const { result, txHash } = await act(receiverId, near.actions.transfer(`${NEAR}`));
  check.equal("transfer: status", result.status, { SuccessValue: "" });
  check.equal("transfer: fee", burnt(result), TRANSFER_FEE);
  check.equal("transfer: sender", await amountOf(world.senderId), before[0] - NEAR - TRANSFER_FEE);
  check.equal("transfer: receiver", await amountOf(receiverId), before[1] + NEAR);
  const found = await near.tx({ txHash, accountId: world.senderId });
  check.equal("tx status: hash", found.transaction.hash, txHash);
}

// Ask for the world's transactions by signer and by receiver, and let the client poll one.
async function status() {
  const hashes = [];
  for (const { tx_hash: txHash, signer_id: accountId } of world.finished) {
    hashes.push((await near.tx({ txHash, accountId })).transaction.hash);
  }
  check.equal("tx status: the world's", hashes, world.finished.map((row) => row.tx_hash));
  const { tx_hash: txHash, signer_id: accountId } = world.waiting;
  const error = JSON.parse((await raised(near.tx({ txHash, accountId }))).message);
  check.equal("tx status: waiting", error.cause.name, "TIMEOUT_ERROR");
  const { result } = await act(receiverId, near.actions.transfer("5"), "INCLUDED");
  check.equal("tx status: polled", result.transaction.actions, [{ Transfer: { deposit: "5" } }]);
  const place = { txHash: result.transaction.hash, accountId: receiverId };
  check.equal("tx status: by receiver", (await near.tx(place)).transaction.hash, place.txHash);
}

// Pay for somebody's storage: the deposit and the fees are what leaves the account.
async function deposit() {
  await act(receiverId, near.actions.transfer("1"));
  const before = await amountOf(world.senderId);
  const args = { account_id: "registered.by.fastnear" };
  const { result } = await act(contracts.ft, call("storage_deposit", args, `${REGISTRATION}`));
  const wanted = { total: `${REGISTRATION}`, available: "0" };
  check.equal("call with deposit: result", returned(result), wanted);
  const spent = before - (await amountOf(world.senderId));
  check.equal("call with deposit: balance", spent, REGISTRATION + burnt(result));
}

// Send tokens to a contract that keeps them, and to the paused exchange, where a receipt fails.
async function transferCall() {
  for (const [contractId, used, failing] of [
    [contracts.receiver, 20n, []],
    [contracts.dex, 0n, [contracts.dex]],
  ]) {
    const name = `ft_transfer_call to ${contractId}`;
    const before = [await ftOf(world.senderId), await ftOf(contractId)].map(BigInt);
    const args = { receiver_id: contractId, amount: "20", msg: "take" };
    const { result } = await act(contracts.ft, call("ft_transfer_call", args, "1"));
    check.equal(`${name}: used`, returned(result), `${used}`);
    check.equal(`${name}: failures`, failures(result), failing);
    const after = [await ftOf(world.senderId), await ftOf(contractId)].map(BigInt);
    check.equal(`${name}: balances`, after, [before[0] - used, before[1] + used]);
  }
}

// Call a method that panics: the status says so, and the next call works.
async function failingCall() {
  const count = await view(contracts.counter, "get_num");
  const { result } = await act(contracts.counter, call("fail", { message: "no thanks" }));
  const kind = { FunctionCallError: { ExecutionError: "Smart contract panicked: no thanks" } };
  const wanted = { Failure: { ActionError: { index: 0, kind } } };
  check.equal("failing call: status", result.status, wanted);
  await act(contracts.counter, call("increment", {}));
  check.equal("call: state", await view(contracts.counter, "get_num"), count + 1);
}

// Send what the ledger refuses: the client hands on the whole error.
async function refused() {
  const amount = 10n ** 33n;
  const balance = await amountOf(world.senderId);
  const poor = await act(receiverId, near.actions.transfer(`${amount}`));
  check.equal("refused: NotEnoughBalance", poor.error.data.TxExecutionError.InvalidTxError, {
    NotEnoughBalance: {
      signer_id: world.senderId,
      balance: `${balance}`,
      cost: `${amount + TRANSFER_DEBIT}`,
    },
  });
  const key = { accountId: world.senderId, publicKey: near.publicKey };
  const { nonce } = await near.accessKey(key);
  const again = await act(receiverId, near.actions.transfer("1"), "FINAL", nonce - 1);
  check.equal("refused: InvalidNonce", again.error.data.TxExecutionError.InvalidTxError, {
    InvalidNonce: { tx_nonce: nonce, ak_nonce: nonce },
  });
}

for (const part of [reads, transfer, status, deposit, transferCall, failingCall, refused]) {
  await part();
}
check.done();
