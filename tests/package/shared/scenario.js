// What each project does with the installed package: a session that repairs a
// file in a sandbox, calls a tool of the page's and asks for approval.

const DEFINITION = {
  name: "add",
  description: "Adds two numbers.",
  parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
};

/** @param {typeof import("hermitcrab")} api @param {string} model address of the scripted model */
export async function sandboxed({ MemoryEnvironment, SessionError, createSession }, model) {
  const env = await MemoryEnvironment.create({ files: { "add.sh": "echo $(($1 - $2))\n" } });
  const asked = [];
  const session = await createSession({
    apiKey: "page-key",
    baseUrl: model,
    env,
    tools: [{ ...DEFINITION, execute: async ({ a, b }) => String(a + b) }],
    approval: { tools: { shell: "ask" } },
    approve: ({ name }) => {
      asked.push(name);
      return true;
    },
  });
  const outputs = [];
  let text;
  for await (const { kind, data } of session.run("make add.sh add")) {
    if (kind === "TOOL_CALL_END") outputs.push(lastLine(data.output ?? data.error));
    if (kind === "ASSISTANT_TEXT_END") text = data.text;
  }
  await session.close();
  const refused = await session.submit("more").catch((error) => error instanceof SessionError && error.kind);
  return { text, outputs: [outputs[0], outputs.at(-1)], asked, refused, file: await env.readText("add.sh") };
}

/** What a tool said last, but for how its command ended. */
const lastLine = (output) => output.split("\n").findLast((line) => line && !line.startsWith("[exit code: "));

/** The same task where the host brings the files; the core has no shell. */
export async function hosted({ createSession }, model) {
  const files = new Map([["/repo/add.sh", "echo $(($1 - $2))\n"]]);
  const lost = (path) => Object.assign(new Error(`no such file: ${path}`), { kind: "not_found" });
  const env = {
    workingDirectory: "/repo",
    async read(path) {
      const content = files.get(path.startsWith("/") ? path : `/repo/${path}`);
      if (content === undefined) throw lost(path);
      return content;
    },
    async write(path, content) {
      files.set(path.startsWith("/") ? path : `/repo/${path}`, new TextDecoder().decode(content));
    },
    async stat(path) {
      const content = files.get(path.startsWith("/") ? path : `/repo/${path}`);
      if (content === undefined) throw lost(path);
      return { isDir: false, size: content.length };
    },
    async list() {
      return [];
    },
    async remove(path) {
      throw lost(path);
    },
    async rename(path) {
      throw lost(path);
    },
    async makeDir() {},
    async exec(command, { onOutput }) {
      onOutput("stdout", files.get("/repo/add.sh").includes("+") ? "5\n" : "-1\n");
      return { exitCode: 0 };
    },
  };
  const tools = [{ ...DEFINITION, execute: ({ a, b }) => String(a + b) }];
  const session = await createSession({ apiKey: "page-key", baseUrl: model, env, tools });
  let text;
  for await (const { kind, data } of session.run("make add.sh add")) {
    if (kind === "ASSISTANT_TEXT_END") text = data.text;
  }
  await session.close();
  return { text, file: files.get("/repo/add.sh") };
}

/** What `sandboxed` gives. */
export const SANDBOXED = {
  text: "It adds now: 5.",
  outputs: ["-1", "5"],
  asked: ["shell", "shell"],
  refused: "closed",
  file: "echo $(($1 + $2))\n",
};

/** What `hosted` gives. */
export const HOSTED = { text: "It adds now: 5.", file: "echo $(($1 + $2))\n" };
