// What `hermitcrab/worker` exports: all of `hermitcrab` but models without a session,
// which need no worker, and the worker itself.

import { openProjectIn } from "../../project/projects.js";
import { acceptInSession } from "../../shared/arguments.js";
import { ROOT } from "../rpc.js";
import { connection } from "./connection.js";
import { MemoryEnvironment } from "./memory-environment.js";
import { openIn } from "./session.js";

export { MemoryEnvironment };
export { Project } from "../../project/project.js";
export { deleteProject, listProjects } from "../../project/projects.js";
export { RunError } from "../../session/prompt-result.js";
export { scriptedFetch } from "./scripted-model.js";
export { Session, createSession } from "./session.js";
export { CoreError, EnvironmentError, HermitcrabError, ReplayError, SessionError } from "../../shared/errors.js";
export { defineTool } from "../../tool/tool.js";

/**
 * Starts the worker and loads the core now, perhaps from elsewhere. Without
 * this call the first session or environment does.
 * @param {import("./connection.js").WorkerOptions} [options]
 * @returns {Promise<void>}
 */
export async function init(options = {}) {
  acceptInSession("init", options);
  await connection.init(options);
}

/** @type {typeof import("../../api.js").warmUp} */
export async function warmUp() {
  try {
    await connection.call(await connection.rpc(), ROOT, "warmUp", []);
  } catch {
    // The next call to the worker rejects with the reason.
  }
}

/** @type {typeof import("../../api.js").replay} */
export async function replay(log, options = {}) {
  acceptInSession("replay", log, options);
  return connection.call(await connection.rpc(), ROOT, "replay", [log, options]);
}

/** @type {typeof import("../../api.js").fork} */
export async function fork(log, options) {
  acceptInSession("fork", log, options);
  const { at, files, settings, programs, env, record, ...own } = options;
  own.signal?.throwIfAborted();
  const asked = { at, ...(files && { files }), ...(settings && { settings }), hasEnv: Boolean(env) };
  const saved = await connection.call(await connection.rpc(), ROOT, "savedFork", [log, asked]);
  // As in the file, no address of the log's stays: keys go where the settings say.
  const all = { baseUrl: settings?.baseUrl, ...own, ...(env && { env }), ...(record && { record }), saved };
  return openIn(all, (made) => MemoryEnvironment.create({ ...(programs && { programs }), ...made }));
}

/** @type {typeof import("../../api.js").openProject} */
export function openProject(name, options) {
  return openProjectIn(MemoryEnvironment, name, options);
}

/**
 * Ends the worker, whatever it does, and starts another: for a command that
 * hears no stop. Sandboxes are as before the commands that were running,
 * sessions get `ERROR` and `SESSION_END`.
 * @returns {Promise<void>}
 */
export async function restart() {
  await connection.restart();
}

/** Ends the worker and all that it holds. The next call starts another. */
export async function terminate() {
  await connection.terminate();
}
