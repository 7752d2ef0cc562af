// The conversation: items of a run, the composer, what waits and what it costs.

import { announce, count, h, icon, iconButton, perFrame } from "../../page/dom.js";
import { itemView } from "./items.js";

/**
 * @param {object} actions
 * @param {(text: string) => Promise<boolean>} actions.send says whether it has arrived
 * @param {() => void} actions.stop
 * @param {(path: string) => void} actions.openFile
 * @param {(item: import("../../run/run.js").Item, text: string) => Promise<boolean>} actions.instead as `send`,
 *   in place of a message that was sent before
 * @param {() => void} actions.openSettings @param {() => void} actions.resume goes on with a run that was cut off
 */
export function chatView(actions) {
  const list = h("div", { class: "items", role: "log", "aria-label": "Conversation", tabIndex: 0 });
  const hello = h("div", { class: "hello" });
  const scroller = h("div", { class: "scroller" }, hello, list);
  const missing = h("span");
  const problem = h("p", { class: "need", role: "status", hidden: true }, icon("warn"), h("span", null, missing, " ", h("button", { type: "button", class: "link", onClick: () => actions.openSettings() }, "Open settings")));
  const editing = h("p", { class: "editing-note", hidden: true },
    h("span", null, "You edit a message of before. Sent, it takes the place of that one and of all that came after it."),
    h("button", { type: "button", class: "link", onClick: () => edit(undefined) }, "Cancel"));
  const queue = h("ul", { class: "queue", "aria-label": "Messages that wait" });
  // What came too late, or before Stop.
  const later = h("p", { class: "queue-note", hidden: true }, "The agent gets it with your next message.");
  const input = h("textarea", {
    id: "composer",
    rows: 2,
    placeholder: "Describe a task…",
    "aria-label": "Message to the agent",
    spellcheck: true,
  });
  const send = h("button", { type: "submit", class: "primary send", title: "Send (Enter)" }, icon("send"), h("span", null, "Send"));
  const stop = h("button", { type: "button", class: "stop", title: "Stop (Esc)", onClick: () => actions.stop() }, icon("stop"), h("span", null, "Stop"));
  const meter = h("span", { class: "meter-fill" });
  const context = h("span", { class: "meter", role: "meter", "aria-label": "Context in use", "aria-valuemin": 0, "aria-valuemax": 100 }, meter);
  const contextText = h("span", null, "");
  const cost = h("span", { class: "cost" });
  const status = h("span", { class: "status" });
  const form = h(
    "form",
    { class: "composer", onSubmit: submit },
    queue, later, problem, editing,
    h("div", { class: "compose" }, input, h("div", { class: "compose-buttons" }, stop, send)),
    h("div", { class: "usage" }, status, h("span", { class: "context", title: "Context in use" }, context, contextText), cost),
  );
  const down = iconButton("chevron", "Scroll to the end", () => follow(true), { class: "icon-button down", hidden: true });
  const element = h("div", { class: "chat" }, h("div", { class: "scroll-place" }, scroller, down), form);

  let run;
  let listening = new AbortController();
  let views = new Map();
  let dirty = new Set();
  let sticky = true;
  let locked = false;
  /** The message that the composer's text takes the place of. */
  let edited;
  const onItems = { ...actions, edit, instead };

  const paint = perFrame(() => {
    for (const item of dirty) views.get(item.key)?.update();
    dirty.clear();
    if (sticky) scroller.scrollTop = scroller.scrollHeight;
  });

  let before = 0;
  scroller.addEventListener("scroll", () => {
    const { scrollTop } = scroller;
    // Told a frame late: what has been added since would look like a way back.
    if (isAtEnd() || scrollTop < before) stick(isAtEnd());
    before = scrollTop;
  });
  // What somebody opens stays where it is.
  list.addEventListener("click", ({ target }) => {
    if (!target.closest("summary, button.link")) return;
    sticky = false;
    requestAnimationFrame(() => stick(isAtEnd()));
  });
  new ResizeObserver(() => sticky && follow()).observe(scroller);
  input.addEventListener("input", grow);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
    if (event.key === "Escape" && edited) {
      event.preventDefault();
      edit(undefined);
    }
  });

  function isAtEnd() {
    return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 24;
  }

  /** @param {boolean} on whether the end is followed */
  function stick(on) {
    sticky = on;
    down.hidden = on;
  }

  function follow(now = false) {
    if (now) stick(true);
    scroller.scrollTop = scroller.scrollHeight;
  }

  function grow() {
    input.style.height = "auto";
    input.style.height = `${Math.min(input.scrollHeight + 2, 200)}px`;
  }

  async function submit(event) {
    event.preventDefault();
    const text = input.value.trim();
    if (text === "" || locked) return;
    if (!problem.hidden) return remind();
    const item = edited;
    edit(undefined);
    follow(true);
    const own = run;
    if ((await (item ? actions.instead(item, text) : actions.send(text))) || run !== own || input.value !== "") return;
    // What did not arrive need not be typed again.
    write(text);
  }

  /** @param {string} text */
  function write(text) {
    input.value = text;
    grow();
  }

  /** Begins to edit a message, or ends that. @param {import("../../run/run.js").Item} [item] */
  function edit(item) {
    edited = item;
    editing.hidden = !item;
    write(item?.text ?? "");
    if (item) input.focus();
  }

  /** What is missing is said again, also to who does not see it. */
  function remind() {
    announce(missing.textContent);
    problem.classList.remove("again");
    void problem.offsetWidth;
    problem.classList.add("again");
  }

  function instead(item, text) {
    if (locked) return undefined;
    if (!problem.hidden) return remind();
    edit(undefined);
    follow(true);
    return actions.instead(item, text);
  }

  function add(item) {
    const view = itemView(item, onItems);
    views.set(item.key, view);
    for (const { key } of item.takes ?? []) view.inner.append(views.get(key).element);
    const place = item.parent ? views.get(item.parent.key)?.inner : list;
    (place ?? list).append(view.element);
    hello.hidden = true;
    paint();
  }

  function showState() {
    const working = run?.working ?? false;
    element.classList.toggle("working", working);
    // Pieces of a text are not read out one by one.
    list.setAttribute("aria-busy", String(working));
    stop.hidden = !working;
    send.querySelector("span").textContent = working ? "Steer" : "Send";
    send.title = working ? "Steer: the agent reads it after its tool calls (Enter)" : "Send (Enter)";
    input.placeholder = working ? "Steer the agent while it works…" : run?.state === "AWAITING_INPUT" ? "Answer the question…" : "Describe a task…";
    status.textContent = working ? "Working" : run?.state === "AWAITING_INPUT" ? "Asks you" : "Ready";
    status.dataset.state = run?.state ?? "IDLE";
    showQueue();
  }

  function showQueue() {
    const row = (tag, content) => h("li", { class: tag }, h("span", { class: "tag" }, tag), h("span", { class: "queue-text", title: content }, content));
    queue.replaceChildren(
      ...(run?.queued ?? []).map(({ content }) => row("queued", content)),
      ...(run?.sending ?? []).map((content) => row("sending", content)),
    );
    later.hidden = !run?.queued.length || run.working;
  }

  let window_ = 0;
  function showUsage() {
    const { context: used, input: tokensIn, output, cost: dollars, unpriced, cached } = run?.totals ?? { context: 0, input: 0, output: 0, cost: 0, cached: 0 };
    const percent = window_ ? Math.min(100, (used / window_) * 100) : 0;
    // A little is not nothing.
    meter.style.width = used === 0 ? "0" : `max(2px, ${percent}%)`;
    meter.classList.toggle("high", percent > 80);
    context.setAttribute("aria-valuenow", String(Math.round(percent)));
    contextText.textContent = window_ ? `${percent < 10 ? percent.toFixed(1) : Math.round(percent)} %` : "";
    context.parentElement.title = window_ ? `Context: ${count(used)} of ${count(window_)} tokens` : `Context: ${count(used)} tokens`;
    const tokens = `${count(tokensIn)} in · ${count(output)} out`;
    cost.textContent = tokensIn + output === 0 ? "" : unpriced ? tokens : `${tokens} · ≤ $${dollars.toFixed(dollars < 1 ? 4 : 2)}`;
    cost.title = unpriced
      ? `${count(cached)} of the input tokens came from the provider's cache; this model's price is not known`
      : `List prices; ${count(cached)} of the input tokens came from the provider's cache and are counted at the full price`;
  }

  showState();
  return {
    element,
    /** Shows a run. @param {import("../../run/run.js").Run} next */
    show(next) {
      if (edited) edit(undefined);
      run = next;
      views = new Map();
      dirty = new Set();
      list.replaceChildren();
      hello.hidden = run.items.length > 0;
      const addAll = (items) => {
        for (const item of items) {
          add(item);
          if (item.items) addAll(item.items);
        }
      };
      addAll(run.items);
      // A run may be shown again, after another one.
      listening.abort();
      listening = new AbortController();
      const on = (kind, act) => next.addEventListener(kind, act, { signal: listening.signal });
      on("add", ({ detail }) => add(detail));
      on("change", ({ detail }) => {
        dirty.add(detail);
        paint();
      });
      on("state", showState);
      on("queue", showQueue);
      on("usage", showUsage);
      on("end", () => announce(next.state === "AWAITING_INPUT" ? "The agent asks something." : "The agent is done."));
      showState();
      showUsage();
      follow(true);
    },
    /** Tokens that fit the model. @param {number} tokens */
    setWindow(tokens) {
      window_ = tokens;
      showUsage();
    },
    /** What has to be settled before anything is sent. @param {string} [text] none: nothing */
    setProblem(text) {
      problem.hidden = !text;
      missing.textContent = text ?? "";
    },
    /** Puts a text into the composer. @param {string} text */
    suggest(text) {
      edit(undefined);
      write(text);
      input.focus();
    },
    get isEmpty() {
      return !run || run.items.length === 0;
    },
    /** What stands where no conversation is yet. */
    setHello(...children) {
      hello.replaceChildren(...children.filter(Boolean));
    },
    /** Whether nothing can be sent: a run is only looked at. @param {boolean} on */
    lock(on) {
      locked = on;
    },
  };
}
