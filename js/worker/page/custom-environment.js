// Environments of the user's: the page has the object, and the worker calls it.

import { collected, weakly } from "../../platform/finalization.js";
import { acceptOwn, readInSession } from "../../shared/arguments.js";
import { quiet } from "../../shared/notification.js";
import { Scope } from "../outgoing.js";
import { ROOT, oneWay } from "../rpc.js";
import { connection } from "./connection.js";

/** Methods that an environment of the user's may have. */
const METHODS = [
  ...["read", "write", "stat", "list", "remove", "rename", "makeDir", "exec"],
  ...["readPart", "realPath", "grep", "glob", "initialize", "cleanup"],
];

/** Custom environments that a worker knows. */
const customs = new WeakMap();

/**
 * The number by which a worker knows an environment; the page describes an environment that the worker does not know.
 * @param {object} env @param {import("../rpc.js").Rpc} rpc
 * @returns {Promise<number>}
 */
export async function customNumber(env, rpc) {
  let custom = customs.get(env);
  if (custom?.rpc !== rpc) {
    const number = connection.nextNumber();
    custom = { rpc, number, told: tell(env, number, rpc) };
    customs.set(env, custom);
    custom.told.catch(() => customs.delete(env));
  }
  await custom.told;
  return custom.number;
}

async function tell(env, number, rpc) {
  acceptOwn(env);
  const object = readInSession("options.env", () => described(env));
  const scope = new Scope();
  await connection.call(rpc, ROOT, "addCustom", [number, object], { scope });
  collected(env, forgetting(rpc, number, scope));
}

/** The description of an environment for the worker. */
function described(env) {
  const { workingDirectory, platform, osVersion, utcOffsetMinutes, bounds, warning, readOnly, log } = env;
  const methods = METHODS.filter((name) => typeof env[name] === "function");
  const functions = functionsOf(weakly(env), methods, typeof log === "function");
  return { workingDirectory, platform, osVersion, utcOffsetMinutes, bounds, warning, readOnly, log, ...functions };
}

/** What the worker calls of an environment. Sessions hold that; the channel need not. */
function functionsOf(held, methods, logs) {
  const functions = Object.fromEntries(methods.map((name) => [name, (...args) => held.deref()[name](...args)]));
  if (logs) functions.log = oneWay(quiet((line) => held.deref()?.log(line)));
  return functions;
}

/** Holds nothing else, so that the environment can go. */
const forgetting = (rpc, number, scope) => () => {
  rpc.forget(scope);
  void connection.call(rpc, ROOT, "forgetCustom", [number]).catch(() => {});
};
