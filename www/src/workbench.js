// The workbench: puts the parts on the page and connects them to the project,
// its conversation and what is kept in the browser.

import { SCRIPTED, PROVIDERS, model } from "./agent.js";
import { Conversation } from "./conversation.js";
import * as demo from "./demo/index.js";
import { announce, download, h, icon, pickFiles } from "./dom.js";
import { sentence } from "./explain.js";
import * as persist from "./persist.js";
import { Project } from "./project.js";
import { packRun, unpackRun } from "./share.js";
import { themeButton } from "./theme.js";
import { toast } from "./toast.js";
import { dropped, filesFrom } from "./upload.js";
import { chatView } from "./view/chat.js";
import { editorView } from "./view/editor.js";
import { filesView } from "./view/files.js";
import { PANES, layout } from "./view/layout.js";
import { previewView } from "./view/preview.js";
import { replayView } from "./view/replay.js";
import { settingsDialog } from "./view/settings-dialog.js";
import { terminalView } from "./view/terminal.js";

/** Pause between a change and saving it, in ms; many changes are saved once. */
const SAVE_AFTER = 500;

export class Workbench {
  /** @type {Project} */
  #project;
  /** @type {Conversation} */
  #conversation;
  #settings;
  #saving;
  /** The files as they are stored; `undefined` when they have changed since. */
  #archive;
  #storageProblem = false;
  /** Whether this tab is the one that saves. */
  #owner = false;
  #replay;
  /** Whether the project is the sample. */
  #isSample = false;
  #views;
  #layout;

  /** @param {import("./settings.js").Settings} settings */
  constructor(settings) {
    this.#settings = settings;
    const guard = (act) => async (...values) => {
      try {
        return await act(...values);
      } catch (error) {
        toast(sentence(error.message), "error");
      }
    };
    const dialog = settingsDialog(settings, () => this.#showModel());
    const open = (path) => {
      this.#views.editor.open(path);
      this.#layout.show("editor");
    };
    this.#views = {
      chat: chatView({
        send: guard((text) => this.#send(text)),
        stop: () => void this.#conversation.stop(),
        openFile: open,
        openSettings: () => dialog.open(),
      }),
      files: filesView({
        open,
        create: guard(async (path, isDirectory) => {
          if (this.#project.has(path)) throw new Error(`${path} exists already`);
          if (isDirectory) return this.#project.makeDirectory(path);
          await this.#project.write(path, "");
          open(path);
        }),
        rename: guard(async (from, to) => {
          const reopen = this.#views.editor.renamed(from, to);
          await this.#project.rename(from, to);
          reopen();
        }),
        remove: guard(async (path) => {
          if (!confirm(`Delete ${path}?`)) return;
          await this.#project.remove(path);
        }),
        drop: guard(async (items, into) => this.#add(await dropped(items), into)),
      }),
      editor: editorView({
        save: guard((path, text) => this.#project.write(path, text)),
        shown: (path) => this.#views.files.setCurrent(path),
      }),
      terminal: terminalView({
        open: (options) => this.#project.sandbox.openShell(options),
        before: () => this.#views.editor.saveAll(),
        after: () => this.#project.sync().catch(() => {}),
      }),
      preview: previewView({
        online: () => settings.get("previewOnline"),
        setOnline: (on) => settings.set("previewOnline", on),
      }),
    };
    this.#layout = layout(this.#views, this.#header(dialog, guard));
    this.#views.terminal.theme();
    document.addEventListener("themechange", () => this.#views.terminal.theme());
    addEventListener("beforeunload", (event) => {
      if (this.#conversation?.working) event.preventDefault();
    });
    addEventListener("pagehide", () => void this.#save());
    document.addEventListener("keydown", (event) => this.#onEscape(event));
    // Before the terminal and the editor, which take most keys.
    document.addEventListener("keydown", (event) => this.#onPaneKey(event), true);
  }

  async start() {
    const saved = await this.#load();
    if (saved) await this.#openSaved(saved);
    else await this.#openDemo();
    this.#showModel();
  }

  /** The worker was ended, and its sandbox is as it was before the command. */
  restarted() {
    toast("A command did not stop, so the sandbox was restarted; its files are as they were before that command.");
    void this.#views.terminal.open();
    void this.#project.sync();
  }

  /** Two tabs would overwrite each other's work: one of them saves. */
  async #claim(steal) {
    const lost = () => {
      this.#owner = false;
      toast("Another tab has taken the project over; changes here are not kept any more.", "error");
    };
    this.#owner = await persist.claim(lost, steal);
    if (this.#owner) return;
    toast("The project is open in another tab, so changes here are not kept.", "error", {
      label: "Keep them here instead",
      act: async () => {
        await this.#claim(true);
        await this.#save();
      },
    });
  }

  async #load() {
    await this.#claim(false);
    try {
      return await persist.load();
    } catch {
      this.#warnStorage();
      return undefined;
    }
  }

  async #openSaved(saved) {
    const project = await Project.open(saved.name, { tar: saved.tar });
    this.#show(project, new Conversation(project, this.#settings, { log: saved.log, before: saved.before, record: saved.record }));
    if (saved.isSample) this.#showSample();
    const { last } = saved;
    if (last && project.files.has(last)) this.#views.editor.open(last);
  }

  async #openDemo() {
    const project = await Project.open("tide-pool", { files: demo.files });
    this.#show(project, new Conversation(project, this.#settings));
    this.#views.editor.open("slug.sh");
    this.#showSample();
  }

  /** What a visitor reads first. */
  #showSample() {
    this.#isSample = true;
    this.#views.chat.setHello(
      h("h2", null, "An agent with its own sandbox"),
      h("p", null, "Everything runs in this tab: the agent's loop, a file system and a bash-like shell. This sample project has a bug. A scripted model, which needs no key, plays how an agent finds and fixes it; the tools it calls are real."),
      h("p", null, h("button", { type: "button", class: "primary", id: "run-demo", onClick: () => void this.#runDemo() }, icon("play"), "Run the demo")),
      h("p", { class: "quiet" }, "For a task of your own choose a model and paste a key, under “Scripted demo” above."),
    );
  }

  async #runDemo() {
    await this.#send(demo.task);
  }

  async #send(text) {
    await this.#views.editor.saveAll();
    await this.#project.sync();
    await this.#conversation.send(text);
  }

  /** Replaces what is on the page. @param {Project} project @param {Conversation} conversation */
  #show(project, conversation) {
    const { chat, files, editor, terminal, preview } = this.#views;
    void this.#conversation?.close();
    const old = this.#project;
    this.#project = project;
    this.#isSample = false;
    this.#archive = undefined;
    this.#conversation = conversation;
    void terminal.reset().then(() => old?.close());
    project.addEventListener("change", ({ detail: { changes } }) => {
      if (project !== this.#project) return;
      this.#archive = undefined;
      editor.follow(changes);
      files.draw();
      preview.follow(changes);
      if (conversation.working) files.mark(changes.map(({ path }) => path));
      this.#layout.setPreview(preview.hasPage);
      this.#saveSoon();
    });
    conversation.addEventListener("change", () => this.#saveSoon());
    files.show(project);
    editor.show(project);
    preview.show(project);
    chat.show(conversation.run);
    chat.setHello(
      h("h2", null, "What should the agent do?"),
      h("p", null, "It reads and changes the files on this page and runs commands in the sandbox. Nothing leaves the tab but what it asks the model."),
    );
    this.#layout.setPreview(preview.hasPage);
    document.getElementById("project-name").textContent = project.name;
    this.#showModel();
  }

  #showModel() {
    const { provider, model: id } = this.#settings.choice;
    const button = document.getElementById("model");
    const known = model(id);
    const name = provider === SCRIPTED ? "Scripted demo" : known?.display_name ?? (id || PROVIDERS.find((each) => each.id === provider).name);
    button.querySelector("span").textContent = name;
    this.#views.chat.setWindow(provider === SCRIPTED ? 200_000 : known?.context_window ?? 0);
  }

  #header(dialog, guard) {
    const theme = h("button", { type: "button", class: "icon-button" });
    themeButton(this.#settings, theme);
    const item = (label, act) => h("button", { type: "button", role: "menuitem", onClick: () => { menu.hidePopover(); void guard(act)(); } }, label);
    const menu = h("div", { id: "project-menu", class: "menu", role: "menu", "aria-label": "Project", onKeydown: menuKeys },
      item("New project", () => this.#new()),
      item("Open the sample", () => this.#sample()),
      h("hr"),
      item("Import files or archives…", async () => this.#import(await pickFiles({ multiple: true }))),
      item("Import a folder…", async () => this.#add(await filesFrom(await pickFiles({ webkitdirectory: true })), "")),
      item("Export as zip", () => this.#export()),
      "showDirectoryPicker" in window && item("Export to a folder…", () => this.#exportFolder()),
      h("hr"),
      item("Share this run…", () => this.#share()),
      item("Open a run…", async () => {
        const [file] = await pickFiles({ accept: ".json,application/json" });
        if (file) await this.#openRun(await file.text());
      }),
    );
    menu.setAttribute("popover", "auto");
    const button = h("button", { type: "button", class: "quiet-button", "aria-haspopup": "menu" }, h("span", { id: "project-name" }), icon("more"));
    button.setAttribute("popovertarget", "project-menu");
    menu.addEventListener("toggle", (event) => {
      if (event.newState !== "open") return;
      const box = button.getBoundingClientRect();
      menu.style.left = `${Math.max(8, Math.min(box.left, innerWidth - menu.offsetWidth - 8))}px`;
      menu.style.top = `${box.bottom + 4}px`;
      menu.querySelector("button").focus();
    });
    return h("header", { class: "bar" },
      h("span", { class: "brand" }, h("img", { src: "./icon.svg", alt: "", width: 20, height: 20 }), h("span", null, "Hermitcrab")),
      button, menu, h("span", { class: "grow" }),
      h("button", { type: "button", class: "quiet-button", id: "model", title: "Provider, model and key", onClick: () => dialog.open() }, icon("bot"), h("span")),
      theme);
  }

  async #new() {
    if (!this.#mayReplace()) return;
    const name = prompt("Name of the project", "project");
    if (name === null) return;
    const project = await Project.open(name.trim() || "project", {});
    this.#show(project, new Conversation(project, this.#settings));
    this.#saveSoon();
  }

  async #sample() {
    if (!this.#mayReplace()) return;
    await this.#openDemo();
    this.#saveSoon();
  }

  #mayReplace() {
    return this.#project.files.size === 0 || confirm("This replaces the project on this page. Export it first if you want to keep it. Go on?");
  }

  /** @param {Record<string, Uint8Array>} files @param {string} into */
  async #add(files, into) {
    const entries = Object.entries(files);
    if (entries.length === 0) return;
    const placed = into ? Object.fromEntries(entries.map(([path, content]) => [`${into}/${path}`, content])) : files;
    await this.#project.add(placed);
    toast(`${entries.length} ${entries.length === 1 ? "file" : "files"} imported.`);
  }

  /** Archives are unpacked, other files are taken as they are. @param {File[]} list */
  async #import(list) {
    const isArchive = ({ name }) => /\.(zip|tar|tar\.gz|tgz)$/i.test(name);
    for (const archive of list.filter(isArchive)) {
      await this.#project.unpack(archive);
      toast(`${archive.name} is unpacked.`);
    }
    await this.#add(await filesFrom(list.filter((file) => !isArchive(file))), "");
  }

  async #export() {
    await this.#views.editor.saveAll();
    download(`${this.#project.name}.zip`, await this.#project.sandbox.exportZip(), "application/zip");
  }

  async #exportFolder() {
    await this.#views.editor.saveAll();
    const handle = await window.showDirectoryPicker({ mode: "readwrite" }).catch((error) => {
      if (error.name !== "AbortError") throw error;
    });
    if (!handle) return;
    const { files } = await this.#project.sandbox.exportDirectory(handle);
    toast(`${files} files are in ${handle.name}.`);
  }

  async #share() {
    const { log, before } = this.#conversation;
    download(`${this.#project.name}.run.json`, packRun(this.#project.name, before, log), "application/json");
  }

  async #openRun(text) {
    const shared = unpackRun(text);
    const { chat, files, editor, preview } = this.#views;
    await editor.saveAll();
    await this.#save();
    const previous = { project: this.#project, conversation: this.#conversation };
    const leave = () => {
      this.#layout.setReplay(undefined);
      this.#replay = undefined;
      chat.lock(false);
      editor.lock(false);
      this.#showParts(previous.project, previous.conversation.run);
    };
    this.#replay = replayView(shared, {
      leave,
      fork: async (project) => {
        leave();
        const opened = await Project.open(shared.name, { files: Object.fromEntries(project.files) });
        this.#show(opened, new Conversation(opened, this.#settings));
        this.#saveSoon();
      },
      show: (project, run) => {
        this.#showParts(project, run, editor.current);
        chat.lock(true);
        editor.lock(true);
      },
      step: (changes) => {
        editor.follow(changes);
        files.draw();
        files.mark(changes.map(({ path }) => path));
        preview.follow(changes);
        this.#layout.setPreview(preview.hasPage);
        const [first] = changes;
        if (first?.after) editor.open(first.path);
      },
    });
    this.#layout.setReplay(this.#replay.element);
    this.#layout.show("chat");
    announce(`The run ${shared.name} is open.`);
  }

  #showParts(project, run, path) {
    const { chat, files, editor, preview } = this.#views;
    files.show(project);
    editor.show(project);
    preview.show(project);
    chat.show(run);
    this.#layout.setPreview(preview.hasPage);
    document.getElementById("project-name").textContent = project.name;
    if (path && project.files.has(path)) editor.open(path);
  }

  #saveSoon() {
    document.body.dataset.unsaved = "yes";
    this.#saving ??= setTimeout(() => void this.#save(), SAVE_AFTER);
  }

  async #save() {
    clearTimeout(this.#saving);
    this.#saving = undefined;
    if (!this.#owner) return;
    const project = this.#project;
    const { log, before, record } = this.#conversation;
    try {
      this.#archive ??= await project.sandbox.exportTar();
      await persist.save({ name: project.name, tar: this.#archive, log, before, record, isSample: this.#isSample, last: this.#views.editor.current });
      if (this.#saving === undefined) delete document.body.dataset.unsaved;
    } catch (error) {
      if (project === this.#project) this.#warnStorage(error);
    }
  }

  #warnStorage(error) {
    if (this.#storageProblem) return;
    this.#storageProblem = true;
    const full = error?.name === "QuotaExceededError";
    toast(full
      ? "The browser's storage is full, so a reload will lose what is new; export the project to keep it."
      : "The browser denies storage to this page, so a reload will lose the project; export it to keep it.", "error");
  }

  /** Escape stops the agent, except where it means something else. */
  #onEscape(event) {
    if (event.key !== "Escape" || event.defaultPrevented || !this.#conversation.working) return;
    if (document.activeElement?.closest(".editor, .terminal, dialog, .menu")) return;
    void this.#conversation.stop();
  }

  /** Alt+1 to Alt+5 go to the parts. */
  #onPaneKey(event) {
    if (!event.altKey || event.ctrlKey || event.metaKey || !/^Digit[1-5]$/.test(event.code)) return;
    const pane = PANES[Number(event.code.at(-1)) - 1][0];
    this.#layout.show(pane);
    this.#layout.focus(pane);
    event.preventDefault();
    event.stopPropagation();
  }
}

function menuKeys(event) {
  const items = [...event.currentTarget.querySelectorAll("button")];
  const at = items.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  items[(to + items.length) % items.length].focus();
}
