// The scripted model, in the page: it plays in the worker, beside the sessions.

import { collected } from "../../platform/finalization.js";
import { acceptInSession } from "../../shared/arguments.js";
import { SessionError } from "../../shared/errors.js";
import { asResponse } from "../outgoing.js";
import { ROOT } from "../rpc.js";
import { connection } from "./connection.js";

/** Scripts by the function that stands for their model. */
const scripts = new WeakMap();

/** @type {typeof import("../../model/scripted-model.js").scriptedFetch} */
export async function scriptedFetch(script) {
  acceptInSession("scriptedFetch", script);
  const play = async () => {
    throw new SessionError("invalid_input", "the scripted model of a worker answers its sessions only; pass it as fetch");
  };
  scripts.set(play, { script });
  await playerOf(play, await connection.rpc());
  return play;
}

/** Holds nothing else, so that the function can go. */
const forgetting = (rpc, number) => () => void connection.call(rpc, ROOT, "forgetScript", [number]).catch(() => {});

/**
 * What the worker's `createSession` needs to find the model; after a restart
 * that is a new one, which plays from the start.
 * @param {Function | undefined} fetch @param {import("../rpc.js").Rpc} rpc
 */
export async function playerOf(fetch, rpc) {
  const player = fetch && scripts.get(fetch);
  if (!player) return fetch && { fetch: async (url, init) => asResponse(await fetch(url, init)) };
  if (player.rpc !== rpc) {
    const number = connection.nextNumber();
    Object.assign(player, { rpc, number, made: connection.call(rpc, ROOT, "addScript", [number, player.script]) });
    collected(fetch, forgetting(rpc, number));
  }
  await player.made;
  return { player: player.number };
}
