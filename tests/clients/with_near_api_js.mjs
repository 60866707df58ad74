// near-api-js against the embedded ledger.
//
// `ledgerkit world demo --json` with `actors` added on standard input, the ledger's address as the
// argument: tests/clients/run.py does both.

import { Account, actions, baseDecode, createTransaction, JsonRpcProvider } from "near-api-js";
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

const check = checks("near-api-js");
const world = demo();
const { receiverId, contracts } = world;
const provider = new JsonRpcProvider({ url: world.url });
const account = new Account(world.senderId, provider, world.secretKey);
const publicKey = await account.getSigner().getPublicKey();

const amountOf = async (accountId) => (await provider.viewAccount({ accountId })).amount;
const view = (contractId, method, args = {}) => provider.callFunction({ contractId, method, args });
const ftOf = (accountId) => view(contracts.ft, "ft_balance_of", { account_id: accountId });

// View the account, its key and a contract's answers; miss what is not there.
async function reads() {
  const state = await account.getState();
  check.equal("view account: no code", state.codeHash, "1".repeat(32));
  check.equal("view account: storage", state.storageUsage, PLAIN);
  check.equal("view account: its cost", state.balance.usedOnStorage, BigInt(PLAIN) * 10n ** 19n);
  const missing = await raised(provider.viewAccount({ accountId: "nobody.at-all" }));
  check.equal("view account: missing", missing?.accountId, "nobody.at-all");
  const key = await account.getAccessKey(publicKey);
  check.equal("access key: permission", key.permission, "FullAccess");
  const { keys } = await account.getAccessKeyList();
  check.equal("access keys", keys.map((row) => row.public_key), [publicKey.toString()]);
  const bounds = await view(contracts.ft, "storage_balance_bounds");
  check.equal("view call", bounds, { min: `${REGISTRATION}`, max: `${REGISTRATION}` });
  const unknown = await raised(view(contracts.ft, "no_such_method"));
  check.equal("view call of a missing method", unknown?.name, "ContractMethodNotFoundError");
  check.equal("gas price", await provider.viewGasPrice(), { gas_price: "100000000" });
}

// Read blocks, chunks, validators and what changed.
async function chain() {
  const block = await provider.viewBlock({ finality: "final" });
  const same = await provider.viewBlock({ blockId: block.header.height });
  check.equal("block: by height as by finality", same, block);
  const chunk = await provider.viewChunk(block.chunks[0].chunk_hash);
  check.equal("chunk", chunk.header.chunk_hash, block.chunks[0].chunk_hash);
  const validators = await provider.viewValidators();
  check.equal("validators", validators.current_validators.length > 0, true);
  const changes = await provider.accountChanges([world.senderId], { finality: "final" });
  check.equal("changes: block", changes.block_hash, block.header.hash);
}

// Send 1 N and see both balances move by it and the fee, to the yocto.
async function transfer() {
  const before = [await amountOf(world.senderId), await amountOf(receiverId)];
  const result = await account.signAndSendTransaction({
    receiverId,
    actions: [actions.transfer(NEAR)],
    waitUntil: "FINAL",
  });
  check.equal("transfer: status", result.status, { SuccessValue: "" });
  check.equal("transfer: fee", burnt(result), TRANSFER_FEE);
  check.equal("transfer: sender", await amountOf(world.senderId), before[0] - NEAR - TRANSFER_FEE);
  check.equal("transfer: receiver", await amountOf(receiverId), before[1] + NEAR);
}

// Ask for a transaction by its hash, and for those of the world.
async function status() {
  const sent = await account.transfer({ receiverId, amount: 5n });
  const place = { txHash: sent.transaction.hash, accountId: world.senderId };
  const found = await provider.viewTransactionStatus({ ...place, waitUntil: "FINAL" });
  check.equal("tx status: hash", found.transaction.hash, place.txHash);
  check.equal("tx status: receipts", found.receipts_outcome.length, 2);
  const full = await provider.viewTransactionStatusWithReceipts(place);
  check.equal("tx status: predecessor", full.receipts[0].predecessor_id, world.senderId);
  const receipt = await provider.viewTransactionReceipt(full.receipts[0].receipt_id);
  check.equal("receipt", receipt, full.receipts[0]);
  const hashes = [];
  for (const { tx_hash: txHash, signer_id: accountId } of world.finished) {
    hashes.push((await provider.viewTransactionStatus({ txHash, accountId })).transaction.hash);
  }
  check.equal("tx status: the world's", hashes, world.finished.map((row) => row.tx_hash));
}

// Pay for somebody's storage: the deposit and the fees are what leaves the account.
async function deposit() {
  const before = await amountOf(world.senderId);
  const result = await account.callFunctionRaw({
    contractId: contracts.ft,
    methodName: "storage_deposit",
    args: { account_id: "registered.by.near-api-js" },
    deposit: REGISTRATION,
    waitUntil: "FINAL",
  });
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
    const result = await account.callFunctionRaw({
      contractId: contracts.ft,
      methodName: "ft_transfer_call",
      args: { receiver_id: contractId, amount: "20", msg: "take" },
      deposit: 1n,
      gas: 100n * 10n ** 12n,
    });
    check.equal(`${name}: used`, returned(result), `${used}`);
    check.equal(`${name}: failures`, failures(result), failing);
    const after = [await ftOf(world.senderId), await ftOf(contractId)].map(BigInt);
    check.equal(`${name}: balances`, after, [before[0] - used, before[1] + used]);
  }
}

// Call a method that panics: the client raises, and what the batch did is rolled back.
async function failingCall() {
  const count = await view(contracts.counter, "get_num");
  const gas = 30n * 10n ** 12n;
  const batch = [
    actions.functionCall("increment", {}, gas, 0n),
    actions.functionCall("fail", { message: "no thanks" }, gas, 0n),
  ];
  const sending = account.signAndSendTransaction({ receiverId: contracts.counter, actions: batch });
  const failure = (await raised(sending))?.transactionResult?.status.Failure;
  const kind = { FunctionCallError: { ExecutionError: "Smart contract panicked: no thanks" } };
  check.equal("failing call: status", failure, { ActionError: { index: 1, kind } });
  check.equal("failing call: rolled back", await view(contracts.counter, "get_num"), count);
  await account.callFunction({ contractId: contracts.counter, methodName: "increment" });
  check.equal("call: state", await view(contracts.counter, "get_num"), count + 1);
}

async function signed(nonce, amount) {
  const { header } = await provider.viewBlock({ finality: "final" });
  const list = [actions.transfer(amount)];
  const transaction = createTransaction(
    world.senderId,
    publicKey,
    receiverId,
    nonce,
    list,
    baseDecode(header.hash),
  );
  return (await account.getSigner().signTransaction(transaction)).signedTransaction;
}

// Send what the ledger refuses: the client's own exceptions carry the values.
async function refused() {
  const { nonce } = await account.getAccessKey(publicKey);
  const again = await raised(provider.sendTransaction(await signed(nonce, 1n)));
  check.equal("refused: InvalidNonce", BigInt(again?.accessKeyNonce ?? 0), nonce);
  const amount = 10n ** 33n;
  const balance = await amountOf(world.senderId);
  const poor = await raised(provider.sendTransaction(await signed(nonce + 1n, amount)));
  const got = [poor?.signerId, BigInt(poor?.balance ?? 0), BigInt(poor?.cost ?? 0)];
  check.equal("refused: NotEnoughBalance", got, [world.senderId, balance, amount + TRANSFER_DEBIT]);
}

for (const part of [reads, chain, transfer, status, deposit, transferCall, failingCall, refused]) {
  await part();
}
check.done();
