// The settings: provider, model, key, proxy, and what else can be chosen.

import { PROVIDERS, SCRIPTED, model, models } from "../agent.js";
import { count, h, iconButton } from "../dom.js";

/** @param {import("../settings.js").Settings} settings @param {() => void} changed the choice is another one */
export function settingsDialog(settings, changed) {
  const provider = h("select", { id: "set-provider", onChange: () => fill(settings.of(provider.value)) },
    PROVIDERS.map(({ id, name }) => h("option", { value: id }, name)));
  const note = h("p", { class: "quiet" });
  const name = h("input", { id: "set-model", list: "set-models", autocomplete: "off", spellcheck: false, onInput: describe });
  const list = h("datalist", { id: "set-models" });
  const about = h("p", { class: "quiet" });
  const effort = h("select", { id: "set-effort" });
  const key = h("input", { id: "set-key", type: "password", autocomplete: "off", spellcheck: false });
  const remember = h("input", { type: "checkbox", id: "set-remember" });
  const base = h("input", { id: "set-base", type: "url", spellcheck: false, placeholder: "https://…" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const rows = h("div", { class: "set-rows" },
    field("Model", "set-model", name, list, about),
    field("Effort", "set-effort", effort),
    field("Key", "set-key", key,
      h("label", { class: "check" }, remember, "Remember keys in this browser"),
      h("p", { class: "quiet" }, "Stays in this tab's memory and goes only to the address below. Remembered keys lie unencrypted in this browser's storage.")),
    field("Proxy or base URL", "set-base", base,
      h("p", { class: "quiet" }, "Empty: the provider's own address. Some providers refuse requests from web pages (CORS); a proxy of yours passes them on and allows this page.")));
  const form = h("form", { method: "dialog", onSubmit: save },
    h("div", { class: "dialog-head" }, h("h2", null, "Model"), iconButton("close", "Close", () => dialog.close())),
    field("Provider", "set-provider", provider, note), rows, problem,
    h("div", { class: "dialog-foot" },
      h("button", { type: "button", onClick: () => dialog.close() }, "Cancel"),
      h("button", { type: "submit", class: "primary" }, "Use this model")));
  const dialog = h("dialog", { class: "settings", "aria-label": "Model" }, form);
  document.body.append(dialog);

  function field(label, id, ...children) {
    return h("div", { class: "field" }, h("label", { for: id }, label), h("div", null, children));
  }

  function fill(choice) {
    const known = PROVIDERS.find(({ id }) => id === choice.provider);
    provider.value = choice.provider;
    note.textContent = known.note ?? "";
    rows.hidden = choice.provider === SCRIPTED;
    name.value = choice.model;
    const all = models(choice.provider);
    list.replaceChildren(...all.map(({ id, display_name: label }) => h("option", { value: id }, label)));
    name.placeholder = all[0]?.id ?? "name of the model";
    key.value = choice.key;
    key.placeholder = known.keyHint ?? "";
    base.value = choice.baseUrl;
    base.placeholder = choice.provider === "chat" ? "http://localhost:11434/v1" : "https://…";
    remember.checked = settings.get("rememberKeys");
    describe();
    effort.value = choice.effort;
    problem.hidden = true;
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
    const choice = {
      provider: provider.value,
      model: name.value.trim() || models(provider.value)[0]?.id || "",
      key: key.value.trim(),
      baseUrl: base.value.trim(),
      effort: effort.value,
    };
    const complaint = wrong(choice);
    problem.hidden = !complaint;
    problem.textContent = complaint ?? "";
    if (complaint) return;
    settings.set("rememberKeys", remember.checked);
    settings.choose(choice);
    dialog.close();
    changed();
  }

  return {
    open() {
      fill(settings.choice);
      dialog.showModal();
    },
  };
}

/** What is missing; `undefined` if nothing. */
function wrong({ provider, key, baseUrl, model: name }) {
  if (provider === SCRIPTED) return undefined;
  if (baseUrl && !/^https?:\/\/[^/]/.test(baseUrl)) return "The proxy must be an address that starts with https:// or http://.";
  if (provider === "chat" && !baseUrl) return "Say where the server is, for example http://localhost:11434/v1.";
  if (!name) return "Say which model the server should use.";
  if (!key && !baseUrl) return "Paste a key, or give the address of a proxy that adds one.";
  return undefined;
}
