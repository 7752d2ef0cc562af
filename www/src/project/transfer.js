// What goes into a project and out of it: files, archives, folders.

import { download, pickFiles } from "../page/dom.js";
import { guard, tell } from "../page/guard.js";
import { toast } from "../page/toast.js";
import { SKIPPED, filesFrom } from "./upload.js";

/** @typedef {import("./project.js").Project} Project */

/** Whether the browser lends folders of the disk. */
export const lendsFolders = () => "showDirectoryPicker" in window;

/** Asks for files; archives are unpacked, others are taken as they are. @param {Project} project */
export async function importFiles(project) {
  const list = await pickFiles({ multiple: true });
  const isArchive = ({ name }) => /\.(zip|tar|tar\.gz|tgz)$/i.test(name);
  for (const archive of list.filter(isArchive)) {
    try {
      report(project, `${archive.name} is unpacked`, await project.unpack(archive));
    } catch (error) {
      // The others come in all the same.
      tell(new Error(`cannot unpack ${archive.name}: ${error.message}`, { cause: error }));
    }
  }
  await add(project, await filesFrom(list.filter((file) => !isArchive(file))));
}

/** Asks for a folder. @param {Project} project */
export async function importFolder(project) {
  if (!lendsFolders()) return add(project, await filesFrom(await pickFiles({ webkitdirectory: true })));
  const handle = await pickFolder("read");
  if (!handle) return;
  const changes = await project.addFolder(handle, SKIPPED);
  const changed = changes.filter(({ after }) => after).length;
  report(project, changed === 0 ? `Nothing in ${handle.name} is new` : `${files(changed)} of ${handle.name} imported`, changes);
}

/** @param {Project} project @param {import("./upload.js").Upload} upload @param {string} [into] a directory of the project */
export async function add(project, { files: given, skipped }, into = "") {
  const entries = Object.entries(given);
  const without = skipped.length === 0 ? "" : ` without ${skipped.join(", ")}`;
  if (entries.length === 0) {
    if (without) toast(`Nothing is imported${without}.`);
    return;
  }
  const changes = await project.add(into ? Object.fromEntries(entries.map(([path, content]) => [`${into}/${path}`, content])) : given);
  report(project, `${files(entries.length)} imported${without}`, changes);
}

/** Each closes what offers to take an import back. @type {(() => void)[]} */
const offers = [];

/** Something else than the project of these imports is on the page now. */
export function forgetImports() {
  for (const close of offers.splice(0)) close();
}

/** Says what came in, and takes it back where it has replaced something. */
function report(project, text, changes) {
  const replaced = changes.filter(({ before, after }) => before && after).length;
  if (replaced === 0) {
    toast(`${text}.`);
    return;
  }
  const undo = guard(async () => {
    const stay = await project.takeBack(changes);
    toast(stay === 0 ? "The import is undone." : `The import is undone, but for ${files(stay)} changed since.`);
  });
  const said = replaced === 1 ? "1 file that was there is replaced" : `${replaced} files that were there are replaced`;
  offers.push(toast(`${text}; ${said}.`, "info", { label: "Undo", act: undo }));
}

/** @param {Project} project */
export async function exportZip(project) {
  download(`${project.name}.zip`, await project.sandbox.exportZip(), "application/zip");
}

/** Asks for a folder and writes the project there. @param {Project} project */
export async function exportFolder(project) {
  const handle = await pickFolder("readwrite");
  if (!handle) return;
  const told = await project.sandbox.exportDirectory(handle);
  const left = told.skipped.length === 0 ? "" : `; links cannot be written there: ${told.skipped.join(", ")}`;
  toast(`${files(told.files)} ${told.files === 1 ? "is" : "are"} in ${handle.name}${left}.`);
}

/** @param {"read" | "readwrite"} mode */
async function pickFolder(mode) {
  try {
    return await window.showDirectoryPicker({ mode });
  } catch (error) {
    // The user changed their mind.
    if (error.name === "AbortError") return undefined;
    throw error;
  }
}

function files(count) {
  return count === 1 ? "1 file" : `${count} files`;
}
