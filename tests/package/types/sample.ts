// Uses everything that the package exports, as strictly as TypeScript can.

import * as main from "hermitcrab";
import * as node from "hermitcrab/node";
import * as slim from "hermitcrab/slim";
import * as worker from "hermitcrab/worker";
import { jsProgram } from "hermitcrab/javascript";
import { pythonProgram } from "hermitcrab/python";
import { z } from "zod";
import slimWasm from "hermitcrab/slim.wasm";
import wasm from "hermitcrab/hermitcrab.wasm";
import {
  CoreError,
  EnvironmentError,
  HermitcrabError,
  MemoryEnvironment,
  SessionError,
  createSession,
  deleteProject,
  init,
  listProjects,
  openProject,
  scriptedFetch,
  type ChangeableSettings,
  type CustomEnvironment,
  type EventData,
  type EventKind,
  type FileChange,
  type Program,
  type Session,
  type SessionEvent,
  type SessionOptions,
  type Snapshot,
  type Tool,
  type Turn,
} from "hermitcrab";

const tool: Tool = {
  name: "add",
  description: "Adds.",
  parameters: { type: "object", properties: { a: { type: "number" } } },
  async execute({ a, b }: { a: number; b: number }, { callId, signal, progress }) {
    signal.throwIfAborted();
    progress(callId.toUpperCase());
    return String(a + b);
  },
};

const program: Program = async ({ args, cwd, stdin, changes, signal }) => {
  signal.throwIfAborted();
  const paths = changes.map(({ path }) => path);
  const made: FileChange = { path: `${cwd}/out`, type: "file", content: stdin };
  return { exitCode: args.length, stdout: paths.join("\n"), changes: [made] };
};

const custom: CustomEnvironment = {
  workingDirectory: "/repo",
  platform: "linux",
  readOnly: true,
  log: (line) => void line.length,
  read: async (path, { maxBytes }) => new Uint8Array(Math.min(maxBytes, path.length)),
  write: async (_path, content) => void content.byteLength,
  stat: async () => ({ isDir: false, size: 1, modifiedMs: 0 }),
  list: async (_path, { depth }) => [{ path: String(depth), isDir: true }],
  remove: async () => {},
  rename: async (from, to) => void [from, to],
  makeDir: async () => {},
  exec: async (command, { timeoutMs, env, onOutput }) => {
    onOutput("stdout", `${command} ${timeoutMs} ${env["HOME"] ?? ""}`);
    return { exitCode: 0 };
  },
  grep: async ({ pattern, maxResults }) => ({
    matches: [{ path: pattern, line: maxResults, text: "" }],
  }),
};

const settings: ChangeableSettings = { maxTurns: 3, retry: { jitter: false }, awaitingInput: "never" };

const options: SessionOptions = {
  ...settings,
  provider: "anthropic",
  apiKey: async () => "key",
  tools: [tool],
  approval: { tools: { shell: "ask" }, writePaths: ["src/**"] },
  approve: ({ name, reason, signal }) => (signal.aborted ? false : name === "shell" ? reason : true),
  fetch: (url, request) => fetch(url, request),
  signal: AbortSignal.timeout(1000),
};

/** The union is told apart by `kind`. */
function show(event: SessionEvent): string {
  switch (event.kind) {
    case "ASSISTANT_TEXT_DELTA":
    case "REASONING_DELTA":
      return event.data.text;
    case "TOOL_CALL_END":
      return event.data.output ?? event.data.error ?? "";
    case "STATE_CHANGED":
      return event.data.to === "CLOSED" ? "over" : event.data.from;
    case "ERROR":
      return `${event.data.code}: ${event.data.message}`;
    default:
      return event.kind;
  }
}

/** What is left when some kinds are dealt with; all of them: nothing. */
type Rest<Known extends EventKind> = Exclude<SessionEvent, { kind: Known }>;
const nothing: Rest<EventKind> extends never ? true : false = true;
const something: Rest<"ERROR"> extends never ? true : false = false;
void [nothing, something];

const kinds: EventKind[] = ["SESSION_START", "SESSION_END"];
declare const totals: EventData<"PROCESSING_END">["totals"];
const end: EventData<"PROCESSING_END"> = { reason: "completed", rounds: 1, turns: 1, totals };

declare function directory(): Promise<FileSystemDirectoryHandle>;

async function drive(session: Session, env: MemoryEnvironment): Promise<void> {
  for await (const event of session.run("go", { signal: AbortSignal.timeout(1) })) show(event);
  for await (const { seq, timestamp, session_id } of session.events()) [seq, timestamp, session_id].join();
  await session.submit("a");
  await session.answer("b");
  const number: number = await session.steer("c");
  await session.followUp("d");
  await session.addSystemTurn("e");
  await session.configure({ reasoningEffort: "low", maxTurns: number });
  const config: Record<string, unknown> = await session.config();
  await session.registerTool(tool);
  const removed: boolean = await session.unregisterTool("add");
  const names: string[] = await session.toolNames();
  const turns: Turn[] = await session.history();
  for (const turn of turns) if (turn.turn === "assistant") turn.tool_calls.map(({ name }) => name);
  for await (const event of session.resume()) show(event);
  const record: object = await session.record();
  const stop: () => void = session.onActivity(() => {});
  stop();
  const state: "IDLE" | "PROCESSING" | "AWAITING_INPUT" | "CLOSED" = session.state;
  await session.interrupt();
  await session.abort();
  await session.close();
  await session.closed;
  const result = await env.exec("ls", { cwd: "/", timeoutMs: 5, env: { A: "b" }, onOutput: (_stream, data) => data.byteLength });
  const text: string = await env.readText("a");
  const bytes: Uint8Array = await env.readBytes("a");
  await env.write("a", bytes);
  const { isDir, size } = await env.stat("a");
  const exists: boolean = await env.exists("a");
  const entries = await env.list(".", { depth: 2 });
  await env.remove("a");
  await env.rename("a", "b");
  await env.makeDir("c");
  await env.importFiles({ a: "b", c: new Uint8Array() });
  await env.importTar(await env.exportTar());
  await env.importFiles([new File(["x"], "x.txt")], { exclude: ["node_modules"], stripComponents: 1 });
  await env.importZip(await env.exportZip(), { maxBytes: 1, maxEntries: 1, maxRatio: 10 });
  await env.importArchive(new Blob([]));
  await env.replaceTree(await env.exportTree());
  const told: { files: number; skipped: string[] } = await env.exportDirectory(await directory());
  await env.importDirectory(await directory(), { exclude: told.skipped });
  const unwatch: () => void = env.onActivity(() => {});
  unwatch();
  await env.program("python3", pythonProgram({ onProgress: ({ loaded }) => loaded }));
  await env.program("node", jsProgram());
  const shell = await env.openShell({ onData: (text) => text.length, cols: 80, rows: 24, history: ["ls"] });
  await shell.write("ls\r");
  await shell.resize(100, 30);
  await shell.interrupt();
  const lines: string[] = await shell.history();
  await shell.close();
  const code: number = await shell.closed;
  const snapshot: Snapshot = await env.snapshot();
  await env.restore(snapshot);
  const changes = await env.changesSince(snapshot);
  const kind: "added" | "changed" | "removed" | undefined = changes[0]?.change;
  await env.dispose();
  void [config, removed, names, state, result.exitCode, text, isDir, size, exists, entries, kind, session.id, record, lines, code];
}

try {
  await init({ wasm: new URL("https://example.org/x.wasm"), onProgress: ({ loaded, total }) => loaded / (total ?? 1) });
  const env = await MemoryEnvironment.create({ files: { a: "b" }, programs: { python3: program }, limits: { fileBytes: 1 }, readOnly: "commands", log: (line) => console.log(line.length) });
  await drive(await createSession({ ...options, env }), env);
  await drive(await createSession({ ...options, env: custom }), env);
  await MemoryEnvironment.create({ files: [new File(["x"], "x.txt")] });
  const warm: Promise<void>[] = [main.warmUp(), node.warmUp(), worker.warmUp()];
  await Promise.all(warm);
  await worker.init({ wasm: fetch("x.wasm"), worker: () => new Worker("x"), unresponsiveMs: 1, stopMs: 1, onRestart: (reason) => reason.length });
  const far = await worker.MemoryEnvironment.create();
  await drive(await worker.createSession({ ...options, env: far }), far);
  await worker.restart();
  await worker.terminate();
  const project = await openProject("mine", { onStatus: ({ state, error }) => [state, error?.message] });
  project.keep(await createSession({ env: project.env, history: project.history, fetch: await scriptedFetch({ steps: [] }) }));
  await project.save();
  await project.close();
  for (const name of await listProjects()) await deleteProject(name);
  await openProject("other", { storage: node.directoryStorage("/tmp/x") });
  await worker.openProject("far", { storage: worker.directoryStorage("/tmp/x") });
  await deleteProject("far", { storage: main.directoryStorage("/tmp/x") });
  await slim.createSession({ env: custom });
  const same: typeof main.createSession = node.createSession;
  void same;
} catch (error) {
  if (error instanceof SessionError || error instanceof EnvironmentError || error instanceof CoreError) {
    const base: HermitcrabError = error;
    console.log(base.kind, base.message);
  }
}

await main.init({ wasm });
await slim.init({ wasm: slimWasm });

// @ts-expect-error an unknown setting
createSession({ maxTurnz: 1 });
// @ts-expect-error an unknown kind
kinds.push("NO_SUCH_KIND");
// @ts-expect-error not a reason
end.reason = "because";
// @ts-expect-error the core without a sandbox has none
void slim.MemoryEnvironment;

/** What TypeScript knows of the arguments of a tool, and of a value, by a schema of zod. */
export const typed = main.defineTool({
  name: "when",
  description: "Tells when.",
  parameters: z.object({ at: z.string().transform((text) => new Date(text)), n: z.number().default(7) }),
  execute: ({ at, n }, { env, workingDirectory }): Promise<void> => env.write(workingDirectory, String(at.getTime() + n)),
});

export async function asked(): Promise<number> {
  const models = new main.ModelClient({ provider: "openai", apiKey: "key" });
  for await (const event of models.stream({ model: "m", prompt: "go" })) {
    if (event.type === "text_delta") event.text.trim();
  }
  const { object, response } = await models.generateObject({ model: "m", prompt: "go", schema: z.object({ n: z.number() }) });
  return object.n + response.usage.output_tokens;
}
