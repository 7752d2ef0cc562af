// The projects that this browser keeps: opens them, remembers which one was
// last, and says when they cannot be kept.

import { deleteProject, folderName, listProjects } from "../agent/agent.js";
import { sentence } from "../page/explain.js";
import { toast } from "../page/toast.js";
import { Project } from "./project.js";

/** Where the name of the project that was open last is kept: of this tab, else of any. */
const PLACE = "hermitcrab.last";
/** Characters of a project's name. */
const MOST_CHARS = 100;

/** What is wrong with the name of a project, in a sentence; `undefined` if nothing. @param {string} name */
export function problemOfName(name) {
  if (name === "") return "a project needs a name of 1 to 100 characters";
  if (name.length > MOST_CHARS) return `the name has ${name.length} characters, and a project's has 1 to ${MOST_CHARS}; give a shorter one`;
  try {
    folderName(name);
    return undefined;
  } catch (error) {
    return error instanceof URIError ? "the name holds half of a character, which nothing can store; leave it out" : error.message;
  }
}

export class SavedProjects {
  #project;
  #actions;
  #closeToast;
  #problem;
  /** Whether the project on the page has changed since it was opened. */
  #changed = false;

  /**
   * @param {object} actions
   * @param {(name: string) => void} actions.takeOver
   * @param {() => void} actions.export
   * @param {() => void} actions.lost another tab has taken the open project over
   * @param {(problem: string | undefined) => void} actions.kept what is in the way of keeping the open project
   */
  constructor(actions) {
    this.#actions = actions;
  }

  /** Names of the projects: of those that are stored, and of the open one, which may not be yet. */
  async names() {
    const names = await listProjects().catch(() => []);
    const open = this.#project?.name;
    return open === undefined || names.includes(open) ? names : [...names, open].sort();
  }

  /** The name of the project that was open last, in this tab or else in any, if it is still there. */
  async last() {
    let lasts = [];
    try {
      lasts = [sessionStorage.getItem(PLACE), localStorage.getItem(PLACE)];
    } catch {
      // Storage is denied.
    }
    const names = await this.names();
    return lasts.find((last) => names.includes(last)) ?? names[0];
  }

  /** `wish`, or a name like it that is not taken and can be stored. @param {string} wish */
  async freeName(wish) {
    const names = await this.names();
    let name = fitting(wish, "");
    for (let number = 2; names.includes(name); number++) name = fitting(wish, `-${number}`);
    return name;
  }

  /**
   * Opens a project that is kept, or begins one with `files`. One that another
   * tab has open is only looked at.
   * @param {string} name @param {{files?: object, takeOver?: boolean}} [options]
   */
  async open(name, options = {}) {
    let opened;
    // What is reported before it is open is reported again then.
    const onStatus = (status) => opened && opened === this.#project?.kept && this.#tell(status);
    let project;
    try {
      project = await Project.open(name, { ...options, onStatus });
    } catch (error) {
      if (error.kind !== "locked") throw error;
      project = await Project.open(name, { ...options, onStatus, readOnly: true });
    }
    opened = project.kept;
    return project;
  }

  /** Whether there is something in the open project that is not stored. */
  get unkept() {
    const { kept } = this.#project ?? {};
    return kept !== undefined && (kept.status.state !== "saved" || (kept.readOnly && this.#changed));
  }

  /** The project that is on the page now. @param {Project} project */
  show(project) {
    this.#closeToast?.();
    this.#problem = undefined;
    this.#project = project;
    this.#changed = false;
    project.addEventListener("change", () => (this.#changed ||= project === this.#project));
    try {
      sessionStorage.setItem(PLACE, project.name);
      localStorage.setItem(PLACE, project.name);
    } catch {
      // Storage is denied, which the project's status tells.
    }
    const { kept } = project;
    if (kept.readOnly) {
      const text = `${project.name} is open in another tab, which keeps it; changes made here are not kept.`;
      this.#warn(text, { label: "Take it over", act: () => this.#actions.takeOver(project.name) });
    } else {
      this.#tell(kept.status);
    }
  }

  /** @param {string} name */
  async delete(name) {
    await deleteProject(name);
  }

  #tell({ state, error }) {
    // Tests and screenshots wait for it.
    document.body.toggleAttribute("data-unsaved", state === "unsaved" || state === "saving");
    if (state === "saved") {
      this.#closeToast?.();
      this.#problem = undefined;
      this.#actions.kept(undefined);
    }
    if (state !== "failed") return;
    if (error.kind === "locked") this.#actions.lost();
    const action = error.kind === "locked"
      ? { label: "Take it back", act: () => this.#actions.takeOver(this.#project.name) }
      : { label: "Export as zip", act: () => this.#actions.export() };
    this.#warn(sentence(error.message), action, error.kind);
  }

  #warn(text, action, kind = "read_only") {
    this.#actions.kept(text);
    // Each change tries again and may fail again; once is enough.
    if (this.#problem === kind) return;
    this.#problem = kind;
    this.#closeToast?.();
    this.#closeToast = toast(text, "error", action);
  }
}

/** `wish` with `end`, as much of it as a name may hold. */
function fitting(wish, end) {
  // By whole characters.
  const kept = [...wish];
  while (kept.length > 1 && problemOfName(kept.join("") + end)) kept.pop();
  return kept.join("") + end;
}
