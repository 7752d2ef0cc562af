// The scripted model, in the page: it plays in the worker, beside the sessions.

import { acceptInSession } from "../arguments.js";
import { collected } from "../collected.js";
import { SessionError } from "../errors.js";
import { connection } from "./connection.js";
import { ROOT } from "./link.js";
import { asResponse } from "./outgoing.js";

/** Scripts by the function that stands for their model. */
const scripts = new WeakMap();

/** @type {typeof import("../script.js").scriptedFetch} */
export async function scriptedFetch(script) {
  acceptInSession("scriptedFetch", script);
  const play = async () => {
    throw new SessionError("invalid_input", "the scripted model of a worker answers its sessions only; pass it as fetch");
  };
  scripts.set(play, { script });
  await playerOf(play, await connection.link());
  return play;
}

/** Holds nothing else, so that the function can go. */
const forgetting = (link, number) => () => void connection.call(link, ROOT, "forgetScript", [number]).catch(() => {});

/**
 * What the worker's `createSession` needs to find the model; after a restart
 * that is a new one, which plays from the start.
 * @param {Function | undefined} fetch @param {import("./link.js").Link} link
 */
export async function playerOf(fetch, link) {
  const player = fetch && scripts.get(fetch);
  if (!player) return fetch && { fetch: async (url, init) => asResponse(await fetch(url, init)) };
  if (player.link !== link) {
    const number = connection.nextNumber();
    Object.assign(player, { link, number, made: connection.call(link, ROOT, "addScript", [number, player.script]) });
    collected(fetch, forgetting(link, number));
  }
  await player.made;
  return { player: player.number };
}
