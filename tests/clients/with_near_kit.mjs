// near-kit (TypeScript) against the embedded ledger: its schemas check every answer.
//
// `ledgerkit world demo --json` with `actors` added on standard input, the ledger's address as the
// argument: tests/clients/run.py does both.

import { Near } from "near-kit";
import {
  burnt,
  checks,
  demo,
  failures,
  NEAR,
  raised,
  REGISTRATION,
  returned,
  TRANSFER_FEE,
} from "./checks.mjs";

const check = checks("near-kit (npm)");
const world = demo();
const { receiverId, contracts } = world;
const near = new Near({
  network: { rpcUrl: world.url, networkId: "localnet" },
  privateKey: world.secretKey,
  defaultSignerId: world.senderId,
  defaultWaitUntil: "FINAL",
});

const amountOf = async (accountId) => BigInt((await near.rpc.getAccount(accountId)).amount);
const ftOf = (accountId) => near.view(contracts.ft, "ft_balance_of", { account_id: accountId });

// View the account, its key and a contract's answers; miss what is not there.
async function reads() {
  check.equal("view account", await near.accountExists(world.senderId), true);
  check.equal("view account: missing", await near.accountExists("nobody.at-all"), false);
  const { keys } = await near.getAccessKeys(world.senderId);
  const key = await near.getAccessKey(world.senderId, keys[0].public_key);
  check.equal("access key: permission", key.permission, "FullAccess");
  const bounds = await near.view(contracts.ft, "storage_balance_bounds");
  check.equal("view call", bounds, { min: `${REGISTRATION}`, max: `${REGISTRATION}` });
  const error = await raised(near.view(contracts.ft, "no_such_method"));
  const text = "wasm execution failed with error: MethodResolveError(MethodNotFound)";
  check.equal("view call of a missing method", error?.panic, text);
  check.equal("block", (await near.rpc.getBlock()).header.chunks_included > 0, true);
  check.equal("status", (await near.getStatus()).sync_info.syncing, false);
}

// Send 1 N and see both balances move by it and the fee, to the yocto.
async function transfer() {
  const before = [await amountOf(world.senderId), await amountOf(receiverId)];
  const result = await near.send(receiverId, "1 NEAR");
  check.equal("transfer: status", result.status, { SuccessValue: "" });
  check.equal("transfer: fee", burnt(result), TRANSFER_FEE);
  check.equal("transfer: sender", await amountOf(world.senderId), before[0] - NEAR - TRANSFER_FEE);
  check.equal("transfer: receiver", await amountOf(receiverId), before[1] + NEAR);
  const { hash } = result.transaction;
  const found = await near.getTransactionStatus(hash, world.senderId, "FINAL");
  check.equal("tx status: hash", found.transaction.hash, hash);
  check.equal("tx status: predecessor", found.receipts[0].predecessor_id, world.senderId);
}

// Pay for somebody's storage: the deposit and the fees are what leaves the account.
async function deposit() {
  const before = await amountOf(world.senderId);
  const args = { account_id: "registered.by.near-kit.npm" };
  const options = { attachedDeposit: `${REGISTRATION} yocto`, gas: "30 Tgas" };
  const builder = near.transaction(world.senderId);
  const result = await builder.functionCall(contracts.ft, "storage_deposit", args, options).send();
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
    const options = { attachedDeposit: "1 yocto", gas: "100 Tgas" };
    const result = await near.call(contracts.ft, "ft_transfer_call", args, options);
    check.equal(`${name}: used`, returned(result), `${used}`);
    check.equal(`${name}: failures`, failures(result), failing);
    const after = [await ftOf(world.senderId), await ftOf(contractId)].map(BigInt);
    check.equal(`${name}: balances`, after, [before[0] - used, before[1] + used]);
  }
}

// Call a method that panics, and send more than there is: the client raises its own errors.
async function failing() {
  const error = await raised(near.call(contracts.counter, "fail", { message: "no thanks" }));
  check.equal("failing call: panic", error?.panic, "Smart contract panicked: no thanks");
  const poor = await raised(near.send(receiverId, "1000000000 NEAR"));
  check.equal("refused", poor?.name, "InvalidTransactionError");
}

for (const part of [reads, transfer, deposit, transferCall, failing]) {
  await part();
}
check.done();
