// A shared run: shows its log, and plays it again, at any speed, to any point.

import { model } from "../../agent/agent.js";
import { h, icon, iconButton } from "../../page/dom.js";
import { decode } from "../../project/project.js";
import { isAgents } from "../../run/attribution.js";
import { afterwards } from "../../run/excerpt.js";
import { Run } from "../../run/run.js";
import { toBase64 } from "../../run/share.js";

/** Longest pause of the replay; people were slower than readers want to be. */
const LONGEST_PAUSE = 1200;

/**
 * @param {Awaited<ReturnType<typeof import("../../run/share.js").openRun>>} shared
 * @param {object} actions
 * @param {(project: object, run: Run) => void} actions.show
 * @param {(changes: object[]) => void} actions.step
 * @param {() => void} actions.leave
 * @param {(project: object, conversation: {log: import("../../run/run.js").Entry[], originals: [string, string | null][]}) => Promise<void>} actions.fork
 */
export function replayView(shared, actions) {
  const { log } = shared;
  const project = { name: shared.name, files: new Map(), directories: new Set() };
  let run;
  let at = 0;
  let timer;
  let forking = false;

  const slider = h("input", { type: "range", min: 0, max: log.length, value: 0, "aria-label": "Point of the run", onInput: () => { const to = Number(slider.value); pause(); seek(to); } });
  const play = iconButton("play", "Play", () => (timer === undefined ? resume() : pause()));
  const place = h("span", { class: "quiet" });
  const element = h("div", { class: "replay" },
    h("div", { class: "replay-head" }, h("strong", null, shared.name), h("span", { class: "quiet" }, when(shared.saved)), h("span", { class: "grow" }),
      iconButton("close", "Close the run", () => { pause(); actions.leave(); })),
    h("div", { class: "replay-controls" }, play, slider, place,
      h("button", { type: "button", title: "A project of your own with the files and the conversation as they are at this point", onClick: fork }, "Continue from here")),
    shared.replayed && h("p", { class: shared.replayed.isWarning ? "warning" : "quiet" }, shared.replayed.text));

  async function fork() {
    // A second click would make a second project.
    if (forking) return;
    forking = true;
    pause();
    await actions.fork(project, conversation());
    forking = false;
  }

  /** What was said and done up to this point. */
  function conversation() {
    const note = { note: `Continued from the run ${shared.name}. The model knows the conversation up to here.`, kind: "info", at: Date.now(), cut: true };
    const past = log.slice(0, at);
    const paths = new Set(past.flatMap(({ changes = [] }) => changes.map(({ path }) => path)));
    const originals = [...paths].map((path) => [path, Object.hasOwn(shared.files, path) ? toBase64(shared.files[path]) : null]);
    return { log: past.length > 0 ? [...past, note] : [], originals };
  }

  /** Back to the start: the files as they were, no conversation. */
  function reset() {
    run = new Run(model);
    at = 0;
    project.files = new Map(Object.entries(shared.files));
    refreshDirectories();
    actions.show(project, run);
  }

  function refreshDirectories() {
    project.directories = new Set();
    for (const path of project.files.keys()) {
      for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) project.directories.add(path.slice(0, end));
    }
  }

  function apply(entry) {
    run.apply(entry);
    if (!entry.changes) return [];
    const changes = [];
    for (const change of entry.changes) {
      const { path, after, gone } = change;
      const content = shared.contents?.get(change);
      // What it holds then is not in the run.
      if ((change.binary || change.large) && !gone && !content) continue;
      const before = project.files.get(path);
      // Written as `null` by others it says the same.
      const isGone = !content && (after === undefined || after === null);
      const bytes = content ?? (isGone ? undefined : new TextEncoder().encode(afterwards(change, decode(before) ?? "")));
      if (bytes) project.files.set(path, bytes);
      else project.files.delete(path);
      changes.push({ path, before, after: bytes, isAgents: isAgents(entry) });
    }
    return changes;
  }

  function seek(to) {
    if (to < at) reset();
    const changes = new Map();
    while (at < to) for (const change of apply(log[at++])) changes.set(change.path, change);
    if (changes.size > 0) {
      refreshDirectories();
      actions.step([...changes.values()]);
    }
    if (at === log.length && run.working) {
      run.settle();
      run.apply({ note: "This run was saved in the middle of the work; what came after is not in it.", kind: "warning" });
    }
    draw();
  }

  function draw() {
    slider.value = String(at);
    place.textContent = `${at} / ${log.length}`;
    const playing = timer !== undefined;
    play.replaceChildren(icon(playing ? "pause" : "play"));
    play.setAttribute("aria-label", playing ? "Pause" : "Play");
    play.title = playing ? "Pause" : "Play";
  }

  const timeOf = (entry) => (entry?.event ? Date.parse(entry.event.timestamp) : entry?.at);

  function next() {
    if (at >= log.length) return pause();
    const now = timeOf(log[at]);
    seek(at + 1);
    const then = timeOf(log[at]);
    const gap = Number.isFinite(now) && Number.isFinite(then) ? then - now : 0;
    timer = setTimeout(next, Math.max(0, Math.min(gap, LONGEST_PAUSE)));
  }

  function resume() {
    if (at >= log.length) seek(0);
    timer = setTimeout(next, 0);
    draw();
  }

  function pause() {
    clearTimeout(timer);
    timer = undefined;
    draw();
  }

  reset();
  seek(log.length);
  return { element, pause };
}

/** When a run was saved, for people; what comes in may be no date. */
function when(saved) {
  const date = new Date(saved);
  return Number.isNaN(date.getTime()) ? "a shared run" : `run of ${date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}`;
}
