// What the file tree does to the open project and to the editor's tabs.

import { checkPath } from "../project/project.js";
import { add } from "../project/transfer.js";
import { dropped } from "../project/upload.js";
import { ask } from "./question.js";

/**
 * @param {object} parts
 * @param {() => import("../project/project.js").Project} parts.project the open one
 * @param {() => any} parts.editor its view @param {(path: string) => void} parts.open shows a file
 */
export function treeActions({ project, editor, open }) {
  return {
    /** @param {string} path @param {boolean} isDirectory */
    async create(path, isDirectory) {
      checkPath(path);
      const taken = () => new Error(`there is a file or folder ${path} already`);
      if (project().has(path)) throw taken();
      if (isDirectory) return project().makeDirectory(path);
      if (await project().save(path, new Uint8Array(), undefined)) throw taken();
      open(path);
    },
    /** @param {string} from @param {string} to */
    async rename(from, to) {
      checkPath(to);
      // What was typed goes with its file.
      await editor().saveAll();
      const reopen = editor().renamed(from, to);
      await project().rename(from, to);
      reopen();
    },
    /** @param {string} path */
    async remove(path) {
      if (!(await ask(`Delete ${path}?`, "Delete"))) return;
      await project().remove(path);
      // Also what is not saved: it was asked about.
      editor().discard(path);
    },
    /** @param {DataTransferItemList} items @param {string} into */
    async drop(items, into) {
      await add(project(), await dropped(items), into);
    },
  };
}
