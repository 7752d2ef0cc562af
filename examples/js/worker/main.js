// A page whose agent runs in a Web Worker: nothing that it does, and no command
// of a model, holds the page up. Built by Vite: `npx vite`.
//
// In a page whoever can run script reads a key. For anything but your own, let a
// proxy of yours add it: `apiKey: null, baseUrl: "https://proxy.example"`.

import { MemoryEnvironment, createSession } from "hermitcrab/worker";

const form = document.querySelector("#form");
const log = document.querySelector("#log");
const show = (text) => log.append(text);

const env = await MemoryEnvironment.create({ files: { "app.sh": "echo hi\n" } });

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const session = await createSession({ env, apiKey: sessionStorage.getItem("key") });
  for await (const { kind, data } of session.run(form.elements.task.value)) {
    if (kind === "ASSISTANT_TEXT_DELTA") show(data.text);
    if (kind === "TOOL_CALL_START") show(`\n→ ${data.tool_name}\n`);
    if (kind === "ERROR") show(`\n${data.message}\n`);
  }
  await session.close();
  show(`\napp.sh: ${await env.readText("app.sh")}`);
});

form.querySelector("button").disabled = false;
