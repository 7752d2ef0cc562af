// A conversation from the log of its run, as the playground makes it of a shared
// run: the same turns as the session's own, and a session goes on with them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createSession } from "../../js/node.js";
import { eventsOf, historyOf } from "../../www/src/run/history.js";

const script = { steps: [
  { text: "I look around.", tool_calls: [
    { name: "shell", id: "a", arguments: { command: "echo one > one.txt; cat one.txt" } },
    { name: "read_file", id: "b", arguments: { file_path: "missing.txt" } },
  ] },
  { tool_calls: [{ name: "write_file", id: "c", arguments: { file_path: "two.txt", content: "two\n" } }] },
  { text: "Both are there." },
  { expect: { contains: ["make two files", "I look around.", "Both are there.", "and now a third"] }, text: "And a third." },
] };

/** What of a turn a log can tell. */
function told(turn) {
  const { turn: kind, content, tool_calls: calls, results } = turn;
  return JSON.parse(JSON.stringify({
    kind, content,
    calls: calls?.map(({ id, name, arguments: given }) => [id, name, JSON.parse(given)]),
    results: results?.map(({ tool_call_id: id, is_error: failed }) => [id, failed]).sort(),
  }));
}

async function runLog() {
  const session = await createSession({ model: "scripted", script });
  const log = [];
  for (const input of ["make two files"]) {
    for await (const event of session.run(input)) log.push({ event });
  }
  const turns = await session.history();
  await session.close();
  return { log, turns };
}

test("a log gives the turns of its session", async () => {
  const { log, turns } = await runLog();
  assert.deepEqual(historyOf(log).map(told), turns.map(told));
});

test("events of turns give the turns again", async () => {
  const { turns } = await runLog();
  const log = eventsOf(turns).map((event) => ({ event }));
  assert.deepEqual(historyOf(log).map(told), turns.map(told));
  const parts = [{ turn: "user", content: [{ type: "text", text: "see" }, { type: "image" }], timestamp_ms: 0 }];
  assert.equal(eventsOf(parts)[0].data.content, "see");
});

test("a session goes on with the turns of a log", async () => {
  const { log } = await runLog();
  const steps = script.steps.slice(3);
  const session = await createSession({ model: "scripted", script: { steps }, history: historyOf(log) });
  let said = "";
  for await (const { kind, data } of session.run("and now a third")) if (kind === "ASSISTANT_TEXT_END") said += data.text;
  assert.equal(said, "And a third.");
  await session.close();
});

test("what was taken out of a conversation is not in it", async () => {
  const { log } = await runLog();
  assert.equal(historyOf([...log, { note: "Taken out.", back: 1 }]), undefined);
  const second = [{ event: { kind: "USER_INPUT", data: { content: "again" } } }];
  assert.deepEqual(historyOf([...log, { note: "Taken out.", back: 1 }, ...second]).map(told), [{ kind: "user", content: "again" }]);
  assert.equal(historyOf([]), undefined);
});

test("of a long output the model gets both ends", () => {
  const event = (kind, data) => ({ event: { kind, data, timestamp: "2026-01-01T00:00:00Z" } });
  const [, , { results }] = historyOf([
    event("USER_INPUT", { content: "count" }),
    event("ASSISTANT_TEXT_END", { text: "" }),
    event("TOOL_CALL_START", { call_id: "a", tool_name: "shell", arguments: { command: "seq" } }),
    event("TOOL_CALL_END", { call_id: "a", tool_name: "shell", output: `begin${"x".repeat(100_000)}end`, is_error: false }),
  ]);
  assert.match(results[0].content, /^beginx+\n\[70008 characters are left out here\]\nx+end$/);
});
