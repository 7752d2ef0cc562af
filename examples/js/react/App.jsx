// An agent in a React app. Sessions and sandboxes are objects with a life of
// their own: they live in refs, and state holds what of them is shown.

import { useEffect, useRef, useState } from "react";

import { MemoryEnvironment, createSession } from "hermitcrab/worker";

/** A session that lives as long as the component, and the events of its runs. */
function useAgent() {
  const session = useRef(undefined);
  const [events, setEvents] = useState([]);
  const [isReady, setReady] = useState(false);

  useEffect(() => {
    const stop = new AbortController();
    const opened = (async () => {
      const env = await MemoryEnvironment.create({ files: { "app.sh": "echo hi\n" } });
      return createSession({ env, apiKey: sessionStorage.getItem("key"), signal: stop.signal });
    })();
    opened.then((it) => {
      session.current = it;
      setReady(true);
    }, (error) => stop.signal.aborted || setEvents([{ kind: "ERROR", data: error }]));
    return () => {
      // React runs an effect twice while one develops: the first session goes.
      stop.abort();
      opened.then((it) => it.env.dispose(), () => {});
    };
  }, []);

  async function run(task) {
    for await (const event of session.current.run(task)) setEvents((before) => [...before, event]);
  }

  return { events, isReady, run, interrupt: () => session.current.interrupt() };
}

export function App() {
  const { events, isReady, run, interrupt } = useAgent();
  const [task, setTask] = useState("make it say hello");
  const text = events.filter(({ kind }) => kind === "ASSISTANT_TEXT_DELTA").map(({ data }) => data.text).join("");
  const calls = events.filter(({ kind }) => kind === "TOOL_CALL_START").map(({ data }) => data.tool_name);
  const problem = events.findLast(({ kind }) => kind === "ERROR")?.data.message;
  return (
    <form onSubmit={(event) => (event.preventDefault(), run(task))}>
      <input value={task} onChange={(event) => setTask(event.target.value)} />
      <button disabled={!isReady}>Run</button>
      <button type="button" onClick={interrupt}>Stop</button>
      <p id="calls">{calls.join(", ")}</p>
      <p id="text">{text}</p>
      {problem && <p role="alert">{problem}</p>}
    </form>
  );
}
