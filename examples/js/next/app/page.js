// A page that asks the route.

"use client";

import { useState } from "react";

export default function Page() {
  const [text, setText] = useState("");
  async function run() {
    const response = await fetch("/api/agent", { method: "POST", body: JSON.stringify({ task: "say hello" }) });
    for (let reader = response.body.pipeThrough(new TextDecoderStream()).getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      setText((before) => before + value);
    }
  }
  return (
    <main>
      <button onClick={run}>Run</button>
      <p>{text}</p>
    </main>
  );
}
