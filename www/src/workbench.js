// The workbench: puts the parts on the page and connects them to the project,
// its conversation and what is kept in the browser.

import { SCRIPTED, PROVIDERS, model } from "./agent/agent.js";
import { missing } from "./agent/provider-choice.js";
import * as demo from "./demo/index.js";
import { announce, download, perFrame, pickFiles, size } from "./page/dom.js";
import { sentence } from "./page/explain.js";
import { guard, tell } from "./page/guard.js";
import { watchLeaving } from "./page/leaving.js";
import { themeButton } from "./page/theme.js";
import { toast } from "./page/toast.js";
import { SavedProjects, problemOfName } from "./project/saved-projects.js";
import { exportFolder, exportZip, forgetImports, importFiles, importFolder, lendsFolders } from "./project/transfer.js";
import { Conversation } from "./run/conversation.js";
import { RUN_FILES, openRun, packRun } from "./run/share.js";
import { approvalDialog } from "./view/chat/approval-dialog.js";
import { chatView } from "./view/chat/chat.js";
import { replayView } from "./view/chat/replay.js";
import { projectHello, sampleHello } from "./view/chat/welcome.js";
import { editorView } from "./view/editor/editor.js";
import { filesView } from "./view/files.js";
import { header } from "./view/header.js";
import { watchKeys } from "./view/keys.js";
import { layout } from "./view/layout.js";
import { previewView } from "./view/preview/preview.js";
import { projectsDialog } from "./view/projects-dialog.js";
import { ask } from "./view/question.js";
import { settingsDialog } from "./view/settings-dialog.js";
import { terminalView } from "./view/terminal.js";
import { treeActions } from "./view/tree-actions.js";

/** The name of the sample project. */
const SAMPLE = "tide-pool";
/** Why the project stays as it is while a run is open: what one sees is not the project. */
const LOOKING = "A shared run is open, which is only looked at. Close it, or continue from it, to go on with a project.";

export class Workbench {
  /** @type {import("./project/project.js").Project} */
  #project;
  /** @type {Conversation} */
  #conversation;
  #settings;
  #projects;
  #ask;
  #replay;
  /** The file that was in front when the run was opened. */
  #left;
  /** Whether the project is the sample. */
  #isSample = false;
  #views;
  #header;
  #layout;

  /** @param {import("./agent/settings.js").Settings} settings */
  constructor(settings) {
    this.#settings = settings;
    this.#projects = new SavedProjects({
      takeOver: guard((name) => this.#open(name, { takeOver: true })),
      export: guard(() => this.#leaveEditor().then(() => exportZip(this.#project))),
      // What it would do from here on, nobody keeps.
      lost: () => void this.#conversation?.stop(),
      kept: (problem) => this.#showKept(problem),
    });
    this.#ask = approvalDialog(() => void this.#conversation.stop());
    const dialogs = {
      settings: settingsDialog(settings, () => this.#follow()),
      projects: projectsDialog({
        names: () => this.#projects.names(),
        current: () => this.#project.name,
        open: async (name) => (await this.#mayLeave()) && this.#open(name),
        create: async (name) => (await this.#mayLeave()) && this.#create(name),
        remove: (name) => this.#projects.delete(name),
      }),
    };
    const open = (path) => {
      this.#views.editor.open(path);
      this.#layout.show("editor");
    };
    const tree = treeActions({ project: () => this.#project, editor: () => this.#views.editor, open });
    this.#views = {
      chat: chatView({
        send: guard((text) => this.#send(text)),
        instead: guard(this.#ofProject((item, text) => this.#conversation.instead(item, text, () => this.#leaveEditor()))),
        stop: () => void this.#conversation.stop(),
        resume: guard(this.#ofProject(() => this.#resume())),
        openFile: open,
        openSettings: () => dialogs.settings.open(),
      }),
      files: filesView({
        open,
        ...Object.fromEntries(Object.entries(tree).map(([name, act]) => [name, guard(this.#ofProject(act))])),
        refused: () => tell(new Error(LOOKING)),
        gone: (path) => tell(new Error(`${path} is gone by now, so the name that you typed was not used`)),
      }),
      editor: editorView({
        failed: tell,
        shown: (path) => {
          this.#views.files.setCurrent(path);
          this.#remember();
        },
        chosen: () => this.#layout.show("editor"),
      }),
      terminal: terminalView({
        open: (options) => this.#project.sandbox.openShell(options),
        begin: () => this.#beginLine(),
      }),
      preview: previewView(),
    };
    this.#header = header({
      entries: this.#entries(dialogs).map((entry) => entry && [entry[0], guard(entry[2] ? this.#ofProject(entry[1]) : entry[1]), entry[2]]),
      openSettings: () => dialogs.settings.open(),
      showTheme: (button) => themeButton(settings, button),
    });
    this.#layout = layout(this.#views, this.#header.element);
    this.#views.terminal.theme();
    document.addEventListener("themechange", () => this.#views.terminal.theme());
    watchLeaving({ isOpen: () => this.#isUnkept, store: () => this.#store() });
    watchKeys({
      isWorking: () => this.#conversation?.working ?? false,
      stop: () => void this.#conversation.stop(),
      goTo: (pane) => {
        this.#layout.show(pane);
        this.#layout.focus(pane);
      },
    });
  }

  async start() {
    const name = await this.#projects.last();
    if (name === undefined) return this.#openSample();
    try {
      await this.#open(name);
    } catch (error) {
      const remove = guard(async () => {
        await this.#projects.delete(name);
        toast(`${name} is deleted.`);
      });
      toast(sentence(error.message), "error", { label: "Delete it", act: remove });
      await this.#openSample();
    }
  }

  /** The worker was ended, and its sandbox is as it was before the command. */
  restarted() {
    toast("A command did not stop, so the sandbox was restarted; its files are as they were before that command.");
    // Before the first project there is nothing to show.
    if (!this.#project) return;
    void this.#views.terminal.open();
    // What was typed while the command did not stop is written now.
    this.#project.sync().then(() => this.#views.editor.saveAll()).catch(() => {});
  }

  /** A project that is kept. @param {string} name */
  async #open(name, options) {
    const project = await this.#projects.open(name, options);
    const saved = project.kept.data ?? {};
    this.#show(project, saved.conversation);
    if (saved.isSample) this.#showSample();
    if (project.files.has(saved.last)) this.#views.editor.open(saved.last);
  }

  /** @param {string} name @param {Record<string, string | Uint8Array>} [files] */
  async #create(name, files = {}, saved = undefined) {
    const problem = problemOfName(name);
    if (problem) throw new Error(problem);
    if ((await this.#projects.names()).includes(name)) throw new Error(`there is a project ${name} already; open it or choose another name`);
    this.#show(await this.#projects.open(name, { files }), saved);
    if (saved) this.#remember();
  }

  async #openSample() {
    await this.#create(await this.#projects.freeName(SAMPLE), demo.files);
    this.#views.editor.open("slug.sh");
    this.#showSample();
  }

  /** A line of the terminal begins. */
  async #beginLine() {
    const project = this.#project;
    await this.#views.editor.saveAll().catch(() => {});
    // What the agent has changed until now is its own. Behind a line that runs, the worker may not answer.
    if (!project.ran.hasLine) await project.sync().catch(() => {});
    const end = project.ran.line();
    return async () => {
      end();
      await project.sync().catch(() => {});
    };
  }

  /** What was typed is in the sandbox. */
  async #leaveEditor() {
    await this.#views.editor.saveAll();
    await this.#project.sync();
  }

  /** Whether there is something that a reload would lose. */
  get #isUnkept() {
    const { editor, terminal } = this.#views;
    return Boolean(this.#conversation?.working) || editor.unsaved.length > 0 || terminal.running || this.#projects.unkept;
  }

  /** What there is goes to the browser's storage. */
  async #store() {
    // What has come of an answer, too.
    if (this.#conversation?.working) this.#rememberNow();
    await this.#views.editor.saveAll();
    await this.#project.kept.save();
  }

  /** `act`, which has to do with the project, unless something else is on the page. */
  #ofProject(act) {
    return (...values) => {
      if (this.#replay) throw new Error(LOOKING);
      return act(...values);
    };
  }

  /** What a visitor reads first. */
  #showSample() {
    this.#isSample = true;
    this.#remember();
    this.#views.chat.setHello(...sampleHello(this.#runDemo));
  }

  #runDemo = guard(async ({ currentTarget: button }) => {
    // It goes away with what is around it; keyboards go on from here.
    if (button.matches(":focus-visible")) this.#layout.focus("chat");
    // A second click would be another message.
    button.disabled = true;
    try {
      await this.#send(demo.task);
    } catch (error) {
      button.disabled = false;
      throw error;
    }
  });

  #resume() {
    const problem = missing(this.#settings.choice);
    if (problem) throw new Error(problem);
    return this.#conversation.resume();
  }

  #send(text) {
    const problem = missing(this.#settings.choice);
    if (problem) throw new Error(problem);
    return this.#conversation.send(text, () => this.#leaveEditor());
  }

  /**
   * Replaces what is on the page.
   * @param {import("./project/project.js").Project} project @param {object} [saved] its conversation
   */
  #show(project, saved) {
    const { editor, terminal } = this.#views;
    forgetImports();
    this.#endReplay();
    void this.#conversation?.close();
    const old = this.#project;
    this.#project = project;
    this.#isSample = false;
    void terminal.reset().then(() => old?.close()).catch(() => {});
    project.addEventListener("change", ({ detail: { changes } }) => {
      if (project !== this.#project || this.#replay) return;
      const { files, preview } = this.#views;
      editor.follow(changes);
      files.draw();
      preview.follow(changes);
      this.#layout.setPreview(preview.hasPage);
      this.#greet();
    });
    this.#converse(saved);
    this.#showParts(project, this.#conversation.run);
    this.#projects.show(project);
    this.#follow();
  }

  /** @param {object} [saved] a conversation that goes on; none: another one begins */
  #converse(saved) {
    const project = this.#project;
    const conversation = new Conversation(project, this.#settings, this.#ask, saved);
    this.#conversation = conversation;
    conversation.addEventListener("change", () => conversation === this.#conversation && this.#remember());
    conversation.addEventListener("credit", ({ detail: { paths, edited } }) => {
      if (conversation !== this.#conversation || this.#replay) return;
      this.#views.files.mark(paths);
      this.#views.editor.reveal(edited);
    });
    this.#greet();
  }

  /** What stands where no conversation is yet. */
  #greet() {
    if (this.#isSample) return;
    const { chat, editor } = this.#views;
    chat.setHello(...projectHello({
      isScripted: this.#settings.choice.provider === SCRIPTED,
      isEmpty: this.#project.files.size === 0,
      suggest: (task) => chat.suggest(task),
      begin: guard(this.#ofProject(async ({ files, first }) => {
        await this.#project.add(files);
        editor.open(first);
      })),
    }));
  }

  /** Files and conversation stay apart: the one goes on, the other begins anew. */
  async #newConversation() {
    if (!(await this.#mayStop())) return;
    await this.#conversation.close();
    this.#project.kept.keep(undefined);
    this.#converse();
    this.#views.chat.show(this.#conversation.run);
    if (this.#isSample) this.#showSample();
    this.#remember();
    this.#layout.show("chat");
    this.#layout.focus("chat");
  }

  /** Hands over to the project what is kept with its files. */
  #rememberNow() {
    this.#project.kept.data = {
      conversation: this.#conversation.saved,
      isSample: this.#isSample,
      last: this.#replay ? this.#left : this.#views.editor.current,
    };
  }

  #remember = perFrame(() => this.#rememberNow());

  /** @param {string} [problem] why the project is not kept */
  #showKept(problem) {
    const tag = document.getElementById("not-kept");
    tag.hidden = !problem;
    tag.title = problem ?? "";
  }

  /** The settings may have changed. */
  #follow() {
    this.#showModel();
    this.#greet();
    void this.#conversation?.configure();
  }

  #showModel() {
    const { provider, model: id } = this.#settings.choice;
    const button = document.getElementById("model");
    const known = model(id);
    const name = provider === SCRIPTED ? "Scripted demo" : known?.display_name ?? (id || PROVIDERS.find((each) => each.id === provider).name);
    button.querySelector("span").textContent = name;
    this.#views.chat.setProblem(missing(this.#settings.choice));
    this.#views.chat.setWindow(provider === SCRIPTED ? 200_000 : known?.context_window ?? 0);
  }

  /** The project's menu, as `header` takes it. */
  #entries(dialogs) {
    return [
      ["Projects…", () => dialogs.projects.open()],
      ["Open the sample", async () => (await this.#mayLeave()) && this.#openSample()],
      undefined,
      ["Import files or archives…", () => importFiles(this.#project), true],
      ["Import a folder…", () => importFolder(this.#project), true],
      ["Export as zip", () => this.#leaveEditor().then(() => exportZip(this.#project)), true],
      lendsFolders() && ["Export to a folder…", () => this.#leaveEditor().then(() => exportFolder(this.#project)), true],
      undefined,
      ["New conversation", () => this.#newConversation(), true],
      ["Share run", () => this.#share(), true],
      ["Share run as JSON", () => this.#shareJson(), true],
      ["Open a run…", async () => {
        const [file] = await pickFiles({ accept: ".gz,.json,application/gzip,application/json" });
        if (file) await this.#openRun(file);
      }],
    ];
  }

  async #mayStop() {
    return !this.#conversation.working || ask("The agent is still working. Stop it?", "Stop it");
  }

  /** Whether another project may take the place of this one. */
  async #mayLeave() {
    const { editor } = this.#views;
    await editor.saveAll();
    const [path] = editor.unsaved;
    if (path !== undefined && !(await ask(`The text of ${path} is not saved, because the file changed in the sandbox. Drop your text?`, "Drop it"))) return false;
    return this.#mayStop();
  }

  async #share() {
    await this.#leaveEditor();
    this.#refuseNothing();
    if (!this.#conversation.isRecorded) throw new Error("the log begins where the project was opened in this tab, and nothing was asked since; share the run as JSON, or go on with it first");
    const name = `${this.#project.name}.log.gz`;
    const log = await this.#project.sandbox.recording();
    download(name, log, "application/gzip");
    toast(`${name} (${size(log.length)}) has the files, the conversations and the terminal since the project was opened here, and no key.`);
  }

  #refuseNothing() {
    if (this.#conversation.log.length === 0) throw new Error("there is no run yet; give the agent a task first");
  }

  async #shareJson() {
    await this.#leaveEditor();
    this.#refuseNothing();
    const { log, before } = this.#conversation;
    download(`${this.#project.name}.run.json`, packRun(this.#project.name, before, log, this.#settings.keys), "application/json");
  }

  /** Files that were dropped beside the file tree. @param {File[]} files */
  dropped = guard(async (files) => {
    const [file] = files;
    if (!RUN_FILES.test(file?.name ?? "")) throw new Error("files go into the project where they are dropped on its tree; elsewhere the page opens runs (.log.gz, .run.json)");
    await this.#openRun(file);
  });

  /** Reads a run; one whose replay takes a while can be left. @param {File} file */
  async #read(file) {
    const stop = new AbortController();
    let close = () => {};
    const timer = setTimeout(() => (close = toast(`${file.name} is being replayed…`, "busy", { label: "Leave it", act: () => stop.abort() })), 1_000);
    try {
      return await openRun(file, stop.signal);
    } catch (error) {
      if (stop.signal.aborted) return undefined;
      throw error;
    } finally {
      clearTimeout(timer);
      close();
    }
  }

  async #openRun(file) {
    const shared = await this.#read(file);
    if (!shared) return;
    const { files, editor, preview } = this.#views;
    await this.#leaveEditor();
    if (editor.unsaved.length > 0) throw new Error(`the text of ${editor.unsaved[0]} is not saved, because the file changed in the sandbox; settle that first`);
    if (!this.#replay) this.#left = editor.current;
    forgetImports();
    this.#endReplay();
    this.#replay = replayView(shared, {
      leave: () => {
        this.#endReplay();
        this.#showParts(this.#project, this.#conversation.run, this.#left);
      },
      fork: guard(async (project, conversation) => {
        await this.#create(await this.#projects.freeName(shared.name), Object.fromEntries(project.files), conversation);
      }),
      show: (project, run) => {
        this.#showParts(project, run, editor.current);
        this.#lock(LOOKING);
      },
      step: (changes) => {
        editor.follow(changes);
        files.draw();
        files.mark(changes.filter(({ isAgents }) => isAgents).map(({ path }) => path));
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

  #endReplay() {
    if (!this.#replay) return;
    this.#replay.pause();
    this.#replay = undefined;
    this.#layout.setReplay(undefined);
    this.#lock(undefined);
  }

  /** @param {string | undefined} reason why the project is left alone */
  #lock(reason) {
    // The terminal is not seen meanwhile.
    const { chat, files, editor } = this.#views;
    chat.lock(Boolean(reason));
    editor.lock(Boolean(reason));
    files.lock(reason);
    this.#header.lock(reason);
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
}
