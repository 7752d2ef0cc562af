// Compiles modules of Python's library into a zip of bytecode, with the
// interpreter that will import them: `node compile.mjs PYTHON.tar.gz SOURCES OUT.zip`.

import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import "../../js/platform/machine-node.js";
import { pythonProgram } from "../../js/programs/python.js";

/** The same input gives the same bytes: fixed dates, and no look at the sources later. */
const COMPILE = `
import io, os, py_compile, zipfile
files = []
for directory, directories, names in os.walk("/sources"):
    directories.sort()
    for name in sorted(names):
        source = os.path.join(directory, name)
        path = source.removeprefix("/sources/")
        py_compile.compile(source, cfile="/compiled/" + path + "c", dfile="/usr/local/lib/more.zip/" + path,
            doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        files.append(path + "c")
with zipfile.ZipFile("/out.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
    for path in files:
        with open("/compiled/" + path, "rb") as file:
            out.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), file.read(), zipfile.ZIP_DEFLATED, 9)
`;

const [python, sources, out] = process.argv.slice(2);
const names = await readdir(sources, { recursive: true, withFileTypes: true });
const changes = await Promise.all(
  names
    .filter((entry) => entry.isFile())
    .map(async (entry) => {
      const path = join(entry.parentPath ?? entry.path, entry.name);
      return { path: path.replace(sources, "/sources"), type: "file", content: new Uint8Array(await readFile(path)) };
    }),
);
const program = pythonProgram({ url: pathToFileURL(python) });
const result = await program({
  name: "python3",
  args: ["-c", COMPILE],
  env: {},
  cwd: "/",
  stdin: new Uint8Array(0),
  changes,
  state: "compile",
  signal: new AbortController().signal,
});
program.close();
const zip = result.changes?.find(({ path }) => path === "/out.zip");
if (result.exitCode !== 0 || !zip) {
  throw new Error(`the modules cannot be compiled: ${new TextDecoder().decode(result.stderr)}`);
}
await writeFile(out, zip.content);
