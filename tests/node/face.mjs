// The API under test: the agent in this process, or in a worker of it.

import * as here from "../../js/node.js";
import * as worker from "../../js/worker-node.js";

/** Whether the agent runs in a worker. */
export const inWorker = process.env.HERMITCRAB_FACE === "worker";

export const {
  CoreError,
  EnvironmentError,
  HermitcrabError,
  MemoryEnvironment,
  Project,
  RunError,
  SessionError,
  createSession,
  deleteProject,
  directoryStorage,
  init,
  listProjects,
  openProject,
  scriptedFetch,
} = inWorker ? worker : here;

/** The entry that is not under test. */
export const other = inWorker ? here : worker;
