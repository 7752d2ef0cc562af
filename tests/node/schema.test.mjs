// `parameters` that are schemas of zod, valibot and arktype: what the model is
// told, what reaches `execute`, and what TypeScript knows of it.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { z } from "zod";

import { createSession } from "../../js/node.js";
import { definition, runTool } from "../../js/tool/tool.js";
import { forms, parameters, text } from "../schemas/zod.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const context = { signal: new AbortController().signal, progress() {}, callId: "c" };

const tool = (parameters, execute = (args) => args) => ({ name: "t", description: "", parameters, execute });
const call = async (parameters, args) => {
  const { content, isError } = await runTool(tool(parameters), args, context);
  return isError ? content : JSON.parse(content);
};

test("what the core's tests read is what zod says today", async () => {
  assert.equal(await readFile(join(ROOT, "tests/schemas/zod.json"), "utf8"), text);
});

test("there are fifteen forms", () => assert.equal(Object.keys(forms).length, 15));

for (const [name, { schema, fits, not, becomes = fits }] of Object.entries(forms)) {
  test(`zod: ${name}`, async () => {
    const whole = parameters(schema);
    const { parameters: told, unchecked } = definition(tool(whole));
    assert.equal(told.type, "object");
    assert.equal(unchecked, true);
    for (const [index, value] of fits.entries()) assert.deepEqual(await call(whole, { value }), { value: becomes[index] });
    for (const value of not) assert.match(await call(whole, { value }), /^invalid arguments: arguments\.value/);
  });
}

test("transforms and asynchronous checks", async () => {
  const schema = z.object({ when: z.iso.date().transform((text) => new Date(text).getUTCFullYear()), name: z.string().refine(async (name) => name !== "root", "must not be root") });
  assert.deepEqual(await call(schema, { when: "2026-11-24", name: "ada" }), { when: 2026, name: "ada" });
  assert.equal(await call(schema, { when: "2026-11-24", name: "root" }), "invalid arguments: arguments.name: must not be root");
});

const refused = (parameters, message) =>
  assert.throws(() => definition(tool(parameters)), (error) => {
    assert.equal(error.kind, "invalid_tool");
    assert.equal(error.message, message);
    return true;
  });

test("schemas that JSON Schema cannot say are refused with the way out", () => {
  refused(
    z.object({ when: z.date() }),
    "parameters of tool `t` cannot be written as JSON Schema: Date cannot be represented in JSON Schema; use a form that JSON has, such as a string for a date",
  );
  refused(
    v.object({ a: v.string() }),
    "parameters of tool `t` is a schema of valibot that cannot say itself as JSON Schema; give toStandardJsonSchema(schema) of @valibot/to-json-schema",
  );
});

test("valibot and arktype", async () => {
  const valibot = toStandardJsonSchema(v.object({ a: v.optional(v.string(), "q") }));
  assert.deepEqual(definition(tool(valibot)).parameters.properties, { a: { type: "string", default: "q" } });
  assert.deepEqual(await call(valibot, {}), { a: "q" });
  assert.match(await call(valibot, { a: 1 }), /^invalid arguments: arguments\.a: /);
  const arktype = type({ a: "string.email", "b?": "number.integer > 0" });
  assert.equal(definition(tool(arktype)).parameters.properties.b.exclusiveMinimum, 0);
  assert.deepEqual(await call(arktype, { a: "a@b.org", b: 1 }), { a: "a@b.org", b: 1 });
  assert.match(await call(arktype, { a: "a@b.org", b: 0 }), /^invalid arguments: arguments\.b: /);
});

test("a session calls a tool with a schema, and what its schema makes of the arguments arrives", async () => {
  const seen = [];
  const schema = z.object({ path: z.string().regex(/^\w+(?=\.txt)/), depth: z.coerce.number().default(2) });
  const session = await createSession({
    script: { steps: [{ tool_calls: [{ name: "t", arguments: { path: "a.txt", depth: "7" } }, { name: "t", arguments: { path: "a.md" } }] }, { text: "Done." }] },
    tools: [tool(schema, (args) => (seen.push(args), "ok"))],
  });
  const results = [];
  await session.submit("Go.");
  for await (const event of session.events()) {
    if (event.kind === "TOOL_CALL_END") results.push(event.data.output ?? event.data.error);
    if (event.kind === "PROCESSING_END") break;
  }
  await session.close();
  assert.deepEqual(seen, [{ path: "a.txt", depth: 7 }]);
  assert.equal(results.length, 2);
  assert.ok(results.some((result) => /invalid arguments: arguments\.path: /.test(result)), results.join());
});

test("TypeScript knows the arguments of execute", { timeout: 120_000 }, async (t) => {
  const types = await mkdtemp(join(ROOT, "target/types-"));
  t.after(() => rm(types, { recursive: true }));
  const tsc = (...args) =>
    promisify(execFile)("node", [join(ROOT, "node_modules/typescript/bin/tsc"), ...args], { cwd: ROOT }).catch((error) => error);
  const { stdout: made } = await tsc("--project", "js/tsconfig.json", "--outDir", types);
  assert.equal(made, "");
  for (const name of ["events.d.ts", "types.d.ts", "platform.d.ts"]) await copyFile(join(ROOT, "js", name), join(types, name));
  const sample = `
    import { type } from "arktype";
    import { z } from "zod";
    import { createSession, defineTool, type Session, type Tool } from "./index.js";
    type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
    const zod = defineTool({
      name: "a", description: "",
      parameters: z.object({ path: z.string(), depth: z.number().default(1), when: z.string().transform((text) => text.length) }),
      execute(args, { signal }) {
        const same: Same<typeof args, { path: string; depth: number; when: number }> = true;
        signal.throwIfAborted();
        return same;
      },
    });
    const ark = defineTool({
      name: "b", description: "", parameters: type({ a: "string" }),
      execute: async ({ a }) => { const same: Same<typeof a, string> = true; return same; },
    });
    const plain = defineTool({
      name: "c", description: "", parameters: { type: "object", properties: {} }, unchecked: true,
      execute: ({ anything }) => anything,
    });
    const tools: Tool[] = [zod, ark, plain];
    export async function open(session: Session) {
      await session.registerTool({ name: "d", description: "", parameters: z.object({ n: z.number() }), execute: ({ n }) => n.toFixed() });
      // @ts-expect-error there is no such argument
      await session.registerTool({ name: "d", description: "", parameters: z.object({ n: z.number() }), execute: ({ m }) => m });
      return createSession({ tools, provider: "acme", profiles: { acme: { wire: "chat", prompt: { git: null } } } });
    }
  `;
  await writeFile(join(types, "sample.ts"), sample);
  const options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--types", "", "--skipLibCheck"];
  const { stdout } = await tsc(...options, "--lib", "es2023,dom,dom.iterable,dom.asynciterable", join(types, "sample.ts"));
  assert.equal(stdout, "");
});
