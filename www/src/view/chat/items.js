// The parts of a conversation, each with an element and an `update`.

import { announce, copy, duration, h, icon, iconButton, size } from "../../page/dom.js";
import { AnsiText } from "./ansi.js";
import { diff } from "./diff.js";
import { renderMarkdown } from "./markdown.js";

/** Diffs, lines of a diff and characters of output that are shown before one asks for all. */
const FIRST_DIFFS = 10;
const FIRST_ROWS = 24;
const FIRST_CHARS = 20_000;

/** @param {import("../../run/run.js").Item} item @param {object} actions */
export function itemView(item, actions) {
  const view = VIEWS[item.type](item, actions);
  view.update();
  return view;
}

/** What can be done with a message. @param {() => string} text @param {...any} more buttons */
function tools(text, ...more) {
  const button = iconButton("copy", "Copy", async () => {
    const done = await copy(text());
    announce(done ? "Copied." : "This browser lets nothing be copied.");
    button.replaceChildren(icon(done ? "check" : "cross"));
    setTimeout(() => button.replaceChildren(icon("copy")), 1_500);
  });
  return h("span", { class: "message-tools" }, button, more);
}

const VIEWS = { user, answer, tool, notice, steering, agent };

function user(item, { edit, instead }) {
  // What an agent was given is its parent's to say.
  const own = item.parent ? [] : [
    iconButton("edit", "Edit, and send it instead", () => edit(item), { class: "icon-button changes" }),
    iconButton("reload", "Ask again", () => instead(item, item.text), { class: "icon-button changes" }),
  ];
  const who = h("div", { class: "who" }, item.parent ? "Task" : "You", h("span", { class: "grow" }), tools(() => item.text, ...own));
  return { element: h("div", { class: "item user" }, who, h("div", { class: "text" }, item.text)), update() {} };
}

function steering(item) {
  const tag = h("span", { class: `tag ${item.delivered ? "good" : "bad"}` }, item.delivered ? "delivered" : "dropped");
  const who = h("div", { class: "who" }, `${item.parent ? "The agent" : "You"}, steering `, tag, h("span", { class: "grow" }), tools(() => item.text));
  return { element: h("div", { class: "item user steering" }, who, h("div", { class: "text" }, item.text)), update() {} };
}

function answer(item) {
  const label = h("span", null, "Thinking");
  const thoughts = h("div", { class: "thoughts" });
  const thinking = h("details", { class: "thinking", hidden: true }, h("summary", null, icon("chevron"), label), thoughts);
  const text = h("div", { class: "prose" });
  const cut = h("p", { class: "cut" }, h("span", { class: "tag bad" }, "cut off"));
  const foot = h("div", { class: "answer-foot" }, tools(() => item.text));
  const element = h("div", { class: "item answer" }, thinking, text, cut, foot);
  return {
    element,
    update() {
      // What broke off is read until something new comes.
      const isBroken = item.broken !== undefined && item.text === "" && item.thinking === "";
      const shown = isBroken ? item.broken : item;
      thinking.hidden = shown.thinking === "";
      thoughts.textContent = shown.thinking;
      const busy = !item.done && item.text === "";
      label.textContent = busy ? "Thinking…" : "Thought";
      element.classList.toggle("streaming", !item.done);
      element.classList.toggle("empty", item.done && !item.cut && item.text === "" && item.thinking === "");
      cut.hidden = !item.cut && !isBroken;
      foot.hidden = !item.done || item.text === "";
      renderMarkdown(text, shown.text);
    },
  };
}

function tool(item, actions) {
  const mark = h("span", { class: "mark", role: "img" });
  const time = h("span", { class: "time" });
  const brief = h("span", { class: "brief" }, argumentsInBrief(item.arguments));
  const changed = h("span", { class: "changed" });
  const summary = h("summary", null, icon("chevron"), mark, h("span", { class: "name" }, item.name), brief, changed, time);
  const full = h("pre", { class: "arguments" }, argumentsInFull(item.arguments));
  const output = h("pre", { class: "output", tabIndex: 0, "aria-label": `Output of ${item.name}` });
  const more = h("button", { type: "button", class: "link", hidden: true, onClick: () => showOutput(Infinity) }, "Show everything");
  const facts = h("div", { class: "facts" });
  const details = h("details", null, summary, h("div", { class: "tool-body" }, full, output, more, facts));
  const elsewhere = h("p", { class: "among", hidden: true });
  const diffs = h("div", { class: "diffs" });
  const moreDiffs = h("button", { type: "button", class: "link more-diffs", hidden: true, onClick: () => showDiffs(Infinity) });
  const element = h("div", { class: "item tool" }, details, elsewhere, diffs, moreDiffs);
  let mostDiffs = FIRST_DIFFS;
  let limit = FIRST_CHARS;
  let shown = "";
  let drawn = 0;
  const written = new AnsiText(output);

  function showOutput(characters) {
    limit = characters;
    const text = item.output.length > limit ? item.output.slice(0, limit) : item.output;
    if (!text.startsWith(shown)) {
      written.clear();
      shown = "";
    }
    written.write(text.slice(shown.length));
    shown = text;
    more.hidden = item.output.length <= limit;
    output.hidden = text === "";
  }

  function showDiffs(most) {
    mostDiffs = most;
    for (; drawn < Math.min(item.diffs.length, mostDiffs); drawn++) {
      const { among } = item.diffs[drawn];
      if (among && among !== item.diffs[drawn - 1]?.among) diffs.append(amongView(item, among));
      diffs.append(diffView(item.diffs[drawn], actions));
    }
    const left = item.diffs.length - drawn;
    moreDiffs.hidden = left === 0;
    moreDiffs.textContent = left === 1 ? "Show one more file" : `Show ${left} more files`;
    changed.replaceChildren(...(left > 0 ? [`${item.diffs.length} files`] : changes(item.diffs.filter(({ among }) => !among))));
    elsewhere.hidden = !item.elsewhere;
    if (item.elsewhere) elsewhere.replaceChildren("What changed while this ran is shown at ", callView(item.elsewhere), ", which ran at the same time.");
  }

  return {
    element,
    update() {
      const state = item.waits ? "waiting" : !item.done ? "running" : item.failed ? "failed" : "done";
      if (element.dataset.state !== state) {
        element.dataset.state = state;
        mark.replaceChildren(item.waits ? icon("hand") : item.done ? icon(item.failed ? "cross" : "check") : h("span", { class: "spinner" }));
        mark.title = { waiting: "waits for your approval", running: "runs", failed: "failed", done: "done" }[state];
        mark.ariaLabel = mark.title;
        time.textContent = item.waits ? "waits" : "";
        // Why it failed is what one reads next.
        if (state === "failed" && !item.cut && !item.refused) details.open = true;
      }
      if (item.cut) {
        time.textContent = "cut off";
      } else if (item.done) {
        time.textContent = item.refused ? "not allowed" : `${item.exitCode ? `exit ${item.exitCode} · ` : ""}${item.timedOut ? "timed out · " : ""}${duration(item.ms)}`;
        facts.textContent = item.complete === false ? `The first part of ${size(item.outputBytes)} of output is kept.` : "";
      }
      showOutput(limit);
      showDiffs(mostDiffs);
    },
  };
}

function changes(diffs) {
  let added = 0;
  let removed = 0;
  for (const each of diffs) {
    added += each.counts?.added ?? 0;
    removed += each.counts?.removed ?? 0;
  }
  return added + removed === 0 ? [] : [h("span", { class: "plus" }, `+${added}`), " ", h("span", { class: "minus" }, `−${removed}`)];
}

/** Who may have made the changes below: it is not known. */
function amongView(item, { items, terminal }) {
  const others = items.filter((each) => each !== item).map(callView);
  if (terminal) others.push("a command in the terminal");
  const listed = others.flatMap((each, index) => (index === 0 ? [each] : [index === others.length - 1 ? " and " : ", ", each]));
  return h("p", { class: "among" }, "Changed while these ran, by one or more of them: this call, ", listed, ".");
}

function callView({ name, arguments: given }) {
  const brief = argumentsInBrief(given);
  return h("code", null, `${name} ${brief.length > 60 ? `${brief.slice(0, 60)}…` : brief}`);
}

function diffView(change, { openFile }) {
  const { path, before, after, binary, large, line } = change;
  const isKnown = !binary && !large;
  const made = change.made ?? (isKnown && isNone(before));
  const gone = change.gone ?? (isKnown && isNone(after));
  const kind = made ? "new" : gone ? "deleted" : "";
  const result = isKnown ? diff(before ?? "", after ?? "", line) : undefined;
  change.counts = result;
  const name = gone
    ? h("span", { class: "path", title: path }, path)
    : h("button", { type: "button", class: "path link", title: path, onClick: () => openFile(path) }, path);
  const counts = result && [h("span", { class: "plus" }, `+${result.added}`), h("span", { class: "minus" }, `−${result.removed}`)];
  const head = h("div", { class: "diff-head" }, name, kind && h("span", { class: "tag" }, kind), counts);
  // A new file is all added lines: they are shown when somebody wants them.
  const folds = made && result !== undefined && result.rows.length > 0;
  const element = folds
    ? h("details", { class: "diff" }, h("summary", null, icon("chevron"), head))
    : h("div", { class: "diff" }, head);
  if (!result) {
    head.append(h("span", { class: "quiet" }, binary ? "binary" : large ? "too large for the log" : "too long to compare"));
    return element;
  }
  const body = h("div", { class: "diff-rows", tabIndex: 0, role: "region", "aria-label": `Changes of ${path}` });
  const show = (rows) => body.replaceChildren(...rows.map(row));
  show(result.rows.slice(0, FIRST_ROWS));
  element.append(body);
  if (result.rows.length > FIRST_ROWS) {
    const rest = h("button", { type: "button", class: "link", onClick: () => {
      show(result.rows);
      rest.remove();
    } }, `Show all ${result.rows.length} lines`);
    element.append(rest);
  }
  return element;
}

/** Written as `null` by others it says the same. */
const isNone = (text) => text === undefined || text === null;

const SIGNS = { same: " ", added: "+", removed: "−", gap: "⋯" };

function row({ kind, text, line }) {
  return h(
    "div",
    { class: `row ${kind}` },
    h("span", { class: "line", "aria-hidden": "true" }, line ?? ""),
    h("span", { class: "sign" }, SIGNS[kind]),
    h("span", { class: "code" }, text),
  );
}

function notice(item, { openSettings, resume }) {
  if (item.takes?.length > 0) return taken(item);
  const settle = ["authentication", "access_denied", "network", "quota_exceeded", "not_found", "configuration"];
  const link = (label, onClick) => h("button", { type: "button", class: "link", onClick }, label);
  const goOn = () => {
    button.remove();
    resume();
  };
  const button = item.resume && link("Go on", goOn);
  const ways = [settle.includes(item.code) && link("Open settings", openSettings), item.kind === "error" && !item.parent && h("button", { type: "button", class: "link again", onClick: resume }, "Try again"), button].filter(Boolean);
  const text = new Text(item.text);
  const element = h("div", { class: `item notice ${item.kind}`, role: item.kind === "error" ? "alert" : undefined },
    item.kind !== "info" && icon("warn"), h("span", null, text, ways.flatMap((way) => [" ", way])));
  return { element, update: () => text.replaceData(0, text.length, item.text) };
}

/** What was taken out of the conversation. */
function taken(item) {
  const inner = h("div", { class: "items inner" });
  const summary = h("summary", null, icon("chevron"), h("span", null, item.text));
  return { element: h("div", { class: "item taken" }, h("details", null, summary, inner)), inner, update() {} };
}

function agent(item) {
  const mark = h("span", { class: "mark", role: "img" });
  const task = h("span", { class: "brief" });
  const counted = h("span", { class: "time" });
  const inner = h("div", { class: "items inner" });
  const details = h("details", { open: true }, h("summary", null, icon("chevron"), mark, h("span", { class: "name" }, "subagent"), task, counted), inner);
  return {
    element: h("div", { class: "item agent" }, details),
    inner,
    update() {
      task.textContent = firstLine(item.task);
      mark.replaceChildren(item.done ? icon("check") : h("span", { class: "spinner" }));
      mark.ariaLabel = item.done ? "done" : "runs";
      const calls = item.items.filter(({ type }) => type === "tool").length;
      counted.textContent = calls === 1 ? "1 call" : `${calls} calls`;
      if (item.done && details.open && !details.dataset.folded) {
        details.dataset.folded = "yes";
        details.open = false;
      }
    },
  };
}

function firstLine(text) {
  return String(text).split("\n", 1)[0];
}

const MAIN = ["command", "file_path", "path", "pattern", "query", "url", "input", "patch", "task", "prompt", "description"];

function argumentsInBrief(args) {
  if (typeof args !== "object" || args === null) return firstLine(args ?? "");
  const main = MAIN.find((name) => typeof args[name] === "string");
  const value = main ? args[main] : Object.values(args)[0];
  return firstLine(typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value));
}

/** A call's arguments, one after the other. @param {any} args */
export function argumentsInFull(args) {
  if (typeof args !== "object" || args === null) return String(args ?? "");
  return Object.entries(args)
    .map(([name, value]) => {
      const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
      return text.includes("\n") ? `${name}:\n${text.replace(/^/gm, "  ")}` : `${name}: ${text}`;
    })
    .join("\n");
}
