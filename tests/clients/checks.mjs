// What the npm clients' scripts share: the world they meet, fees by hand, a line per check.

import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

export const NEAR = 10n ** 24n;
const PRICE = 10n ** 8n; // of one gas: what is burnt at rest
const PURCHASE = 10n ** 9n; // what is bought at first
const TRANSFER_GAS = 108_059_500_000n + 115_123_062_500n; // a receipt and its one action
export const TRANSFER_FEE = 2n * TRANSFER_GAS * PRICE; // when it is sent, and when it runs
export const TRANSFER_DEBIT = TRANSFER_GAS * (PRICE + PURCHASE); // before the refund
export const REGISTRATION = 125n * 10n ** 19n; // storage of an account with the longest id
export const PLAIN = 182; // bytes of storage of an account with one full-access key
const WAITING = "a yielded call that waits to be resumed"; // the one transaction under way

/** Read the address from the command line and the world from standard input. */
export function demo() {
  const world = JSON.parse(readFileSync(0, "utf8"));
  const secrets = Object.fromEntries(world.accounts.map((row) => [row.account_id, row.secret_key]));
  const [senderId, receiverId] = world.actors;
  const finished = world.transactions.filter((row) => row.description !== WAITING);
  const waiting = world.transactions.find((row) => row.description === WAITING);
  const actors = { senderId, secretKey: secrets[senderId], receiverId };
  return { url: process.argv[2], contracts: world.contracts, finished, waiting, ...actors };
}

/** Add up the fees of a transaction and of all its receipts. */
export function burnt(result) {
  const outcomes = [result.transaction_outcome, ...result.receipts_outcome];
  return outcomes.reduce((sum, { outcome }) => sum + BigInt(outcome.tokens_burnt), 0n);
}

/** Decode what a successful transaction returned. */
export function returned(result) {
  return JSON.parse(Buffer.from(result.status.SuccessValue, "base64").toString());
}

/** List the accounts where a receipt of a transaction failed. */
export function failures(result) {
  const failed = result.receipts_outcome.filter((row) => "Failure" in row.outcome.status);
  return failed.map((row) => row.outcome.executor_id);
}

/** Return the error that a promise ends in; undefined where it ends well. */
export async function raised(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return undefined;
}

function text(value) {
  return JSON.stringify(value, (_, item) => (typeof item === "bigint" ? `${item}n` : item));
}

/** Print a line per check, and remember whether one failed. */
export function checks(client) {
  let failed = 0;
  return {
    equal(what, got, wanted) {
      if (isDeepStrictEqual(got, wanted)) {
        console.log(`ok     ${client}: ${what}`);
        return;
      }
      failed += 1;
      console.log(`FAILED ${client}: ${what}`);
      console.log(`       got    ${text(got)}\n       wanted ${text(wanted)}`);
    },
    done() {
      if (failed) console.error(`${failed} checks of ${client} failed`);
      process.exit(failed ? 1 : 0);
    },
  };
}
