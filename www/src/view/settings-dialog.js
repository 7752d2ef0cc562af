// The settings: provider, model, keys, proxies, and when the agent asks.

import { APPROVALS, PROVIDERS, SCRIPTED, model, models } from "../agent/agent.js";
import { wrong } from "../agent/provider-choice.js";
import { speakable } from "../page/address.js";
import { showDialog } from "../page/dialogs.js";
import { count, h, icon, iconButton } from "../page/dom.js";

const REAL = PROVIDERS.filter(({ id }) => id !== SCRIPTED);

/** @param {import("../agent/settings.js").Settings} settings @param {() => void} changed the choice is another one */
export function settingsDialog(settings, changed) {
  /** What is typed, by provider, until it is saved. @type {Record<string, {model: string, key: string, baseUrl: string, effort: string}>} */
  let draft = {};
  let shown = SCRIPTED;
  let remembered = false;

  const provider = h("select", { id: "set-provider", onChange: () => { keep(); fill(provider.value); } },
    PROVIDERS.map(({ id, name }) => h("option", { value: id }, name)));
  const note = h("p", { class: "quiet" });
  const name = h("input", { id: "set-model", list: "set-models", autocomplete: "off", spellcheck: false, onInput: describe });
  const list = h("datalist", { id: "set-models" });
  const about = h("p", { class: "quiet" });
  const effort = h("select", { id: "set-effort" });
  const key = h("input", { id: "set-key", type: "password", autocomplete: "off", spellcheck: false });
  const base = h("input", { id: "set-base", type: "url", spellcheck: false });
  const others = h("div", { class: "others" });
  const more = h("details", { class: "more" },
    h("summary", null, icon("chevron"), h("span", null, "Keys of other providers")),
    h("p", { class: "quiet" }, "For subagents: the model may give a task to a model of another provider."), others);
  const remember = h("input", { type: "checkbox", id: "set-remember" });
  const approval = h("select", { id: "set-approval" }, APPROVALS.map(({ id, name }) => h("option", { value: id }, name)));
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const rows = h("div", { class: "set-rows" },
    field("Model", "set-model", name, list, about),
    field("Effort", "set-effort", effort),
    field("Key", "set-key", key),
    field("Proxy or base URL", "set-base", base,
      h("p", { class: "quiet" }, "Empty: the provider's own address. Some providers refuse requests from web pages (CORS); a proxy of yours passes them on and allows this page. Over plain http only this computer can be asked.")),
    more,
    h("div", { class: "remember" },
      h("label", { class: "check" }, remember, "Remember keys in this browser"),
      h("p", { class: "quiet" }, "A key stays in this tab's memory and goes only to its provider's address or proxy. Remembered keys lie unencrypted in this browser's storage.")));
  const form = h("form", { method: "dialog", noValidate: true, onSubmit: save },
    h("div", { class: "dialog-head" }, h("h2", { id: "set-title" }, "Settings"), iconButton("close", "Close", () => dialog.close())),
    field("Provider", "set-provider", provider, note), rows,
    field("Approval", "set-approval", approval,
      h("p", { class: "quiet" }, "A guard against surprises. The sandbox is what keeps the agent away from everything else.")),
    problem,
    h("div", { class: "dialog-foot" },
      h("button", { type: "button", onClick: () => dialog.close() }, "Cancel"),
      h("button", { type: "submit", class: "primary" }, "Save")));
  const dialog = h("dialog", { class: "settings", "aria-labelledby": "set-title" }, form);
  document.body.append(dialog);

  function field(label, id, ...children) {
    return h("div", { class: "field" }, h("label", { for: id }, label), h("div", null, children));
  }

  /** Takes over what is typed. */
  function keep() {
    for (const input of others.querySelectorAll("input")) draft[input.dataset.provider][input.dataset.name] = speakable(input.value.trim());
    if (shown === SCRIPTED) return;
    draft[shown] = { model: name.value.trim(), key: key.value.trim(), baseUrl: speakable(base.value.trim()), effort: effort.value };
  }

  /** Shows a provider. @param {string} id */
  function fill(id) {
    shown = id;
    const known = PROVIDERS.find((each) => each.id === id);
    provider.value = id;
    note.textContent = known.note ?? "";
    note.hidden = !known.note;
    rows.hidden = id === SCRIPTED;
    problem.hidden = true;
    if (id === SCRIPTED) return;
    const values = draft[id];
    const all = models(id);
    name.value = values.model;
    list.replaceChildren(...all.map(({ id, display_name: label }) => h("option", { value: id }, label)));
    name.placeholder = all[0]?.id ?? "name of the model";
    key.value = values.key;
    key.placeholder = known.keyHint ?? "";
    base.value = values.baseUrl;
    base.placeholder = placeholderOf(id);
    describe();
    effort.value = values.effort;
    others.replaceChildren(...REAL.filter((each) => each.id !== id).map(other));
    more.open = others.querySelector("input:not(:placeholder-shown)") !== null;
  }

  /** The short form for a provider that is not the one in use. */
  function other({ id, name, keyHint }) {
    const input = (field, props) => h("input", { ...props, value: draft[id][field], autocomplete: "off", spellcheck: false, dataset: { provider: id, name: field } });
    return h("fieldset", null, h("legend", null, name),
      input("key", { type: "password", placeholder: id === "chat" ? "key, if any" : keyHint, "aria-label": `Key of ${name}` }),
      input("baseUrl", { type: "url", placeholder: id === "chat" ? placeholderOf(id) : "proxy, if any", "aria-label": `Proxy or base URL of ${name}` }));
  }

  function describe() {
    const known = model(name.value || name.placeholder);
    about.textContent = known
      ? `${count(known.context_window)} tokens of context${known.input_cost == null ? "" : ` · $${known.input_cost} in, $${known.output_cost} out per million tokens`}`
      : name.value ? "Not in the catalogue; price and context size are not known." : "";
    const levels = known?.effort_levels ?? [];
    const chosen = effort.value;
    effort.replaceChildren(h("option", { value: "" }, "the model's default"), ...levels.map((level) => h("option", { value: level }, level)));
    effort.value = levels.includes(chosen) ? chosen : "";
    effort.closest(".field").hidden = levels.length === 0;
  }

  function save(event) {
    event.preventDefault();
    keep();
    for (const { id } of REAL) draft[id].model ||= id === shown ? models(id)[0]?.id ?? "" : "";
    const complaint = wrong(shown, draft);
    problem.hidden = !complaint;
    problem.textContent = complaint ?? "";
    problem.scrollIntoView({ block: "nearest" });
    if (complaint) return;
    // Another tab may have changed it meanwhile.
    if (remember.checked !== remembered) settings.rememberKeys(remember.checked);
    settings.set("approval", approval.value);
    settings.choose(shown, draft);
    dialog.close();
    changed();
  }

  return {
    open() {
      draft = Object.fromEntries(REAL.map(({ id }) => [id, settings.of(id)]));
      others.replaceChildren();
      remembered = settings.get("rememberKeys");
      remember.checked = remembered;
      approval.value = settings.get("approval");
      fill(settings.choice.provider);
      showDialog(dialog);
      provider.focus();
    },
  };
}

function placeholderOf(provider) {
  return provider === "chat" ? "http://localhost:11434/v1" : "https://…";
}
