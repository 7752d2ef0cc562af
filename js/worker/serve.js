// The worker's end: what the page can call, and what it gets unasked.

import { onFailure } from "../core/runtime.js";
import { Session, openSession } from "../session/session.js";
import { Checkpoint } from "./checkpoint.js";
import { Outbox, RemoteEventStream } from "./outbox.js";
import { unpack } from "./packed-files.js";
import { ROOT, Rpc } from "./rpc.js";

/**
 * @param {typeof import("../index.js")} api
 * @param {import("./rpc.js").Port} port
 * @param {(receive: (message: any) => void) => void} listen
 */
export function serve(api, port, listen) {
  const outbox = new Outbox(port);
  const rpc = new Rpc(port, {
    worker: true,
    before: () => outbox.flush(),
    note: (note, transfer) => outbox.add(note, transfer),
    served: (object) => root.served(object),
  });
  const root = new Root(api, rpc, outbox);
  rpc.serve(ROOT, root);
  listen((message) => {
    if (message.type === "ping") port.postMessage({ type: "pong" });
    else if (message.type === "taken") outbox.taken();
    else if (message.type === "full") root.full(message);
    else rpc.receive(message);
  });
  onFailure(({ message }) => {
    outbox.flush();
    port.postMessage({ type: "failed", message });
  });
  port.postMessage({ type: "ready" });
}

const never = () => Promise.reject(new Error("a fork that is only saved does nothing"));

/** Stands for an environment of the page's, in which nothing happens yet. */
const NOBODY = Object.fromEntries(["read", "write", "stat", "list", "remove", "rename", "makeDir", "exec"].map((name) => [name, never]));

/** Work without a pause that a command may do in a worker: some 2 to 4 s. */
const WORK_BOUND = 4_000_000;

class Root {
  #api;
  #rpc;
  #outbox;
  #eventStreams = new Map();
  #checkpoints = new Map();
  #customs = new Map();
  #players = new Map();
  #changed = false;

  constructor(api, rpc, outbox) {
    this.#api = api;
    this.#rpc = rpc;
    this.#outbox = outbox;
  }

  init(options) {
    return this.#api.init(options);
  }

  warmUp() {
    return this.#api.warmUp();
  }

  /** @param {number} number that the page's news of it bear @param {object} options */
  async createSession(number, { custom, player, ...options }) {
    if (player !== undefined) options.fetch = this.#players.get(player);
    if (custom !== undefined) options.env = this.#customs.get(custom);
    const eventStream = new RemoteEventStream(this.#outbox, number, () => (this.#changed = true));
    const session = await openSession(options, eventStream);
    this.#eventStreams.set(number, eventStream);
    session.closed.then(() => this.#eventStreams.delete(number));
    return { session, id: session.id };
  }

  replay(log, options) {
    return this.#api.replay(log, options);
  }

  /** A fork of a log, as a file: the page opens it. */
  async savedFork(log, { hasEnv, ...options }) {
    const stopped = await this.#api.fork(log, hasEnv ? { ...options, env: NOBODY } : options);
    try {
      return await stopped.save();
    } finally {
      await stopped.close();
    }
  }

  /** A scripted model. */
  async addScript(number, script) {
    this.#players.set(number, await this.#api.scriptedFetch(script));
  }

  /** An environment that the page answers for. */
  addCustom(number, environment) {
    this.#customs.set(number, environment);
  }

  /**
   * A sandbox that the page can restore.
   * @param {number} number that the page keeps it by
   * @param {object} options @param {object[]} [deltas] what it held before
   */
  async createSandbox(number, { files, ...options }, deltas) {
    // Nobody's page is held up here.
    const limits = { workBound: WORK_BOUND, ...options.limits };
    const environment = await this.#api.MemoryEnvironment.create({ ...options, limits });
    const checkpoint = await Checkpoint.of(environment, (delta) => {
      this.#rpc.send({ type: "delta", environment: number, ...delta }, [delta.archive.buffer]);
    });
    try {
      if (deltas) checkpoint.restore(deltas);
      if (files) await environment.importFiles(unpack(files));
    } catch (error) {
      // The page has nothing to give back.
      await environment.dispose();
      checkpoint.free();
      throw error;
    }
    this.#checkpoints.set(number, checkpoint);
    checkpoint.runtime.watchers.add(() => {
      if (this.#changed) this.#save();
    });
    checkpoint.save();
    void this.#api.warmUp();
    return environment;
  }

  async importFiles(environment, packed, options) {
    await environment.importFiles(unpack(packed), options);
    this.#save();
  }

  /** Reads a directory that the page answers for. */
  async importDirectory(environment, { name, list, file }, options) {
    const directory = (path) => ({
      kind: "directory",
      name: path.at(-1) ?? name,
      async *entries() {
        for (const [name, kind] of await list(path)) {
          const at = [...path, name];
          yield [name, kind === "directory" ? directory(at) : { kind, name, getFile: () => file(at) }];
        }
      },
    });
    await environment.importDirectory(directory([]), options);
    this.#save();
  }

  /** Writes into a directory that the page answers for. */
  async exportDirectory(environment, { makeDirectory, write }) {
    const directory = (path) => ({
      async getDirectoryHandle(name) {
        await makeDirectory([...path, name]);
        return directory([...path, name]);
      },
      getFileHandle: async (name) => ({
        createWritable: async () => ({ write: (content) => write([...path, name], content), close() {} }),
      }),
    });
    return environment.exportDirectory(directory([]));
  }

  /**
   * Calls a session and says which state that led to.
   * @param {{number: number, mark: number}} [begins] where in its news that is to be seen
   */
  async callSession(session, method, args, begins) {
    if (begins) this.#eventStreams.get(begins.number)?.mark(begins.mark);
    const value = await session[method](...args);
    return {
      value,
      // That of the moment when this leaves, with the news until then before it.
      get state() {
        return session.state;
      },
    };
  }

  /** The page has disposed of it. */
  forget(number) {
    this.#checkpoints.get(number)?.free();
    this.#checkpoints.delete(number);
  }

  /** The page can open no more sessions with it; those that there are have it themselves. */
  forgetScript(number) {
    this.#players.delete(number);
  }

  /** As `forgetScript`, of an environment. */
  forgetCustom(number) {
    this.#customs.delete(number);
  }

  full({ session, full }) {
    const eventStream = this.#eventStreams.get(session);
    if (eventStream) eventStream.full = full;
  }

  /** A call of the page's is done; calls of sessions change files through tools only. */
  served(object) {
    if (object !== this && !(object instanceof Session)) this.#save();
  }

  /** Tells the page what has changed: not in the middle of a command, but at its end. */
  #save() {
    this.#changed = false;
    for (const checkpoint of this.#checkpoints.values()) checkpoint.save();
  }
}
