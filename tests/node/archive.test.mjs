// Bulk import and export: zip, tar, lists of files, directory handles, and what
// they refuse. Nothing is half imported.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { openAsBlob } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import { memoryHandle, packTar, packZip } from "./archives.mjs";
import { EnvironmentError, MemoryEnvironment } from "./face.mjs";

const BINARY = Uint8Array.from({ length: 70_000 }, (_, index) => (index * 7 + (index >> 8)) & 255);
const LATIN = new Uint8Array([0x63, 0x61, 0x66, 0xe9, 0x0a, 0xff, 0xfe, 0x00]);

async function sample() {
  const env = await MemoryEnvironment.create({
    files: { "bin/data": BINARY, "latin.txt": LATIN, "ünï/ß 文.txt": "ä\n", empty: "" },
  });
  await env.exec("mkdir -p hollow/inside; chmod 755 latin.txt; ln -s ../latin.txt bin/link; touch -d '2020-02-02 12:34:56' latin.txt");
  return env;
}

/** Everything below the working directory, as text that can be compared. */
async function tree(env) {
  const { stdout } = await env.exec("find . -printf '%y %m %p %l\\n' 2>/dev/null | sort; find . -type f | sort | xargs -d '\\n' sha256sum");
  return stdout;
}

/** Expects a refusal, and that the sandbox is as it was. */
async function refuses(env, act, kind, message) {
  const before = await env.snapshot();
  await assert.rejects(act, (error) => {
    assert.ok(error instanceof EnvironmentError, error.stack);
    assert.equal(error.kind, kind, error.message);
    assert.match(error.message, message);
    return true;
  });
  assert.deepEqual(await env.changesSince(before), []);
  before.free();
}

for (const format of ["Tar", "Zip"]) {
  test(`a tree survives ${format} byte for byte`, async () => {
    const one = await sample();
    const two = await MemoryEnvironment.create();
    const archive = await one[`export${format}`]();
    await two[`import${format}`](archive);
    assert.deepEqual(await two.readBytes("bin/data"), BINARY);
    assert.deepEqual(await two.readBytes("latin.txt"), LATIN);
    assert.equal(await tree(two), await tree(one));
    assert.equal((await two.stat("latin.txt")).modifiedMs, (await one.stat("latin.txt")).modifiedMs);
    const three = await MemoryEnvironment.create();
    await three.importArchive(new Blob([archive]));
    assert.equal(await tree(three), await tree(one));
  });
}

test("a tar archive may be packed with gzip", async () => {
  const one = await sample();
  const two = await MemoryEnvironment.create();
  await two.importArchive(gzipSync(await one.exportTar()));
  assert.equal(await tree(two), await tree(one));
});

test("zip archives of other programs come in, and ours go out", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "hermitcrab-"));
  t.after(() => rm(folder, { recursive: true }));
  const env = await sample();
  await writeFile(join(folder, "ours.zip"), await env.exportZip());
  const python = (script) => {
    const { status, stdout, stderr } = spawnSync("python3", ["-c", script], { cwd: folder, encoding: "utf8" });
    assert.equal(status, 0, stderr);
    return stdout;
  };
  assert.equal(
    python(`
import zipfile
with zipfile.ZipFile("ours.zip") as z:
    print(z.testzip(), sorted(z.namelist()))
    print(oct(z.getinfo("latin.txt").external_attr >> 16), z.read("bin/link"))
with zipfile.ZipFile("theirs.zip", "w", zipfile.ZIP_DEFLATED) as z:
    with z.open("wide.txt", "w", force_zip64=True) as f: f.write(b"wide " * 100)
    z.writestr("d/stored.txt", b"plain", compress_type=zipfile.ZIP_STORED)
    z.comment = b"PK\\x05\\x06 looks like an end record"
`),
    "None ['bin/', 'bin/data', 'bin/link', 'empty', 'hollow/', 'hollow/inside/', 'latin.txt', 'ünï/', 'ünï/ß 文.txt']\n" +
      "0o100755 b'../latin.txt'\n",
  );
  const other = await MemoryEnvironment.create();
  await other.importZip(await readFile(join(folder, "theirs.zip")));
  assert.equal(await other.readText("wide.txt"), "wide ".repeat(100));
  assert.equal(await other.readText("d/stored.txt"), "plain");
});

test("a zip archive may have a program before it and anything behind it", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "hermitcrab-"));
  t.after(() => rm(folder, { recursive: true }));
  // With counted offsets, and with the 64-bit end record.
  const { status, stderr } = spawnSync("python3", ["-c", `
import zipfile
open("counted.zip", "w").write("#!/bin/sh\\n" * 9)
with zipfile.ZipFile("counted.zip", "a") as z: z.writestr("a", "a"); z.comment = b"PK\\x05\\x06 no end record"
zipfile.ZIP_FILECOUNT_LIMIT = 0
with zipfile.ZipFile("wide.zip", "w") as z: z.writestr("a", "a")
`], { cwd: folder, encoding: "utf8" });
  assert.equal(status, 0, stderr);
  const [counted, wide] = await Promise.all(["counted.zip", "wide.zip"].map((name) => readFile(join(folder, name))));
  assert.ok(wide.includes("PK\x06\x06"));
  const plain = packZip([{ name: "a", content: "a" }]);
  const program = Buffer.from("#!/bin/sh\nPK\x05\x06\nexit\n".repeat(50));
  const fakes = Buffer.concat([Buffer.from("PK\x05\x06"), Buffer.alloc(40), Buffer.from("PK\x05\x06"), Buffer.alloc(30, 7)]);
  for (const parts of [[program, plain], [counted], [program, wide], [plain, fakes], [program, plain, fakes], [counted, fakes], [program, wide, Buffer.alloc(9)], [program, counted]]) {
    for (const archive of [new Uint8Array(Buffer.concat(parts)), new Blob(parts)]) {
      for (const call of ["importZip", "importArchive"]) {
        const env = await MemoryEnvironment.create();
        await env[call](archive);
        assert.equal(await env.readText("a"), "a");
        await env.dispose();
      }
    }
  }
  const env = await MemoryEnvironment.create();
  for (const parts of [[program], [program, plain.subarray(0, -1)], [plain.subarray(1)], [fakes]]) {
    await refuses(env, () => env.importArchive(new Uint8Array(Buffer.concat(parts))), "invalid_input", /^the archive is neither|is damaged/);
  }
});

test("old names and backslashes are understood", async () => {
  const env = await MemoryEnvironment.create();
  await env.importZip(packZip([
    { name: new Uint8Array([0x81, 0x2e, 0x74]), content: "1" },
    { name: "dir\\file.txt", content: "2", madeBy: 0 },
  ]));
  assert.deepEqual((await env.list(".", { depth: 3 })).map(({ path }) => path), ["dir", "dir/file.txt", "ü.t"]);
});

const REPOSITORY = Object.entries({
  "repo-main/src/a.js": "a",
  "repo-main/node_modules/x/y.js": "y",
  "repo-main/.git/config": "",
  "repo-main/b": "b",
}).map(([name, content]) => ({ name, content }));
const LONG = `${"d".repeat(90)}/${"f".repeat(90)}`;

for (const [kind, archive] of [
  ["zip", packZip(REPOSITORY)],
  ["tar", packTar(REPOSITORY)],
  ["tar.gz", gzipSync(packTar(REPOSITORY))],
]) {
  test(`paths can be shortened and names left out: ${kind}`, async () => {
    const env = await MemoryEnvironment.create();
    await env.importArchive(archive, { stripComponents: 1, exclude: ["node_modules", ".git"] });
    assert.deepEqual((await env.list(".", { depth: 9 })).map(({ path }) => path), ["b", "src", "src/a.js"]);
    assert.deepEqual([await env.readText("src/a.js"), await env.readText("b")], ["a", "b"]);
  });
}

for (const format of ["USTAR_FORMAT", "GNU_FORMAT", "PAX_FORMAT"]) {
  test(`a tar archive of ${format} is the same without its first folder`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "hermitcrab-"));
    t.after(() => rm(folder, { recursive: true }));
    const script = `
import io, os, tarfile
os.umask(0o022)
os.makedirs("top/sub/hollow"); os.makedirs("top/${LONG.split("/")[0]}"); os.makedirs("top/skip")
open("top/ünï", "w").write("ä"); open("top/sub/run", "w").write("x" * 700); os.chmod("top/sub/run", 0o755)
open("top/${LONG}", "w").write("long"); open("top/skip/y", "w").write("y")
os.symlink("sub/run", "top/link"); os.symlink("${LONG}"[:95], "top/far"); os.link("top/sub/run", "top/zhard")
for path in ["top/ünï", "top/sub/run", "top/${LONG}", "top/skip/y"]: os.utime(path, (1580647000, 1580647000))
with tarfile.open("a.tar", "w", format=tarfile.${format}) as t: t.add("top")
`;
    const { status, stderr } = spawnSync("python3", ["-c", script], { cwd: folder, encoding: "utf8" });
    assert.equal(status, 0, stderr);
    const archive = await readFile(join(folder, "a.tar"));
    const [whole, shortened] = [await MemoryEnvironment.create(), await MemoryEnvironment.create()];
    await whole.importTar(archive);
    await whole.exec("mv top/* . && rm -r top skip");
    await shortened.importTar(archive, { stripComponents: 1, exclude: ["skip"] });
    assert.equal(await tree(shortened), await tree(whole));
    assert.equal(await shortened.readText(LONG), "long");
    assert.equal(await shortened.readText("zhard"), "x".repeat(700));
    const times = async (env) => (await env.exec("stat -c '%Y %a %n' sub/run zhard")).stdout;
    assert.equal(await times(shortened), await times(whole));
  });
}

/** Archives that hide how much is in them: `[what, entries, message]` with `maxBytes: 1000`. */
const HIDING = [
  ["in a pax record", [{ name: "a", content: "x".repeat(1500), declared: 0, pax: { size: 1500 } }], /cannot take a: .* the limit is 1,000/],
  ["in holes", [{ name: "a", content: "", type: "S", holes: 5000 }], /cannot take a: .* the limit is 1,000/],
  ["in hard links", ["a", "b", "c"].map((name, index) => (index ? { name, content: "", type: "1", target: "a" } : { name, content: "x".repeat(400) })), /cannot take c: .* the limit is 1,000/],
  ["behind a long name", [{ name: "a", content: "x".repeat(1500), pax: { path: "b".repeat(200) } }], /cannot take b{200}: .* the limit is 1,000/],
];
for (const [where, entries, message] of HIDING) {
  test(`limits hold for what a tar archive hides ${where}`, async () => {
    const env = await MemoryEnvironment.create();
    for (const archive of [packTar(entries), gzipSync(packTar(entries))]) {
      await refuses(env, () => env.importArchive(archive, { maxBytes: 1000 }), "too_large", message);
      await env.importArchive(archive, { maxBytes: 5000 });
      await env.exec("rm -rf *");
    }
  });
}

test("a tar bomb of holes is refused before it is unpacked", async () => {
  const env = await MemoryEnvironment.create();
  const bomb = packTar([{ name: "holes", content: "", type: "S", holes: 60 << 20 }]);
  await refuses(env, () => env.importTar(bomb), "too_large", /more than 200 times its 1,536 bytes, as a zip bomb does/);
});

test("more entries than are allowed are refused, whatever they are", async () => {
  const env = await MemoryEnvironment.create();
  const folders = Array.from({ length: 5 }, (_, index) => ({ name: `${index}/`, content: "", type: "5" }));
  await refuses(env, () => env.importTar(packTar(folders), { maxEntries: 4 }), "too_large", /5 entries, and the limit is 4/);
});

const LEAVING = [
  ["../evil", /cannot take \.\.\/evil: its path holds \.\./],
  ["a/../../evil", /cannot take a\/\.\.\/\.\.\/evil: its path holds \.\./],
  ["/etc/passwd", /cannot take \/etc\/passwd: its path is absolute/],
];
for (const [name, message] of LEAVING) {
  test(`${name} is refused, and what came before it, too`, async () => {
    const env = await MemoryEnvironment.create({ files: { keep: "k" } });
    const entries = [{ name: "good", content: "g" }, { name, content: "x" }];
    await refuses(env, () => env.importZip(packZip(entries)), "invalid_input", message);
    await refuses(env, () => env.importZip(packZip(entries), { stripComponents: 1 }), "invalid_input", message);
    await refuses(env, () => env.importTar(packTar(entries)), "invalid_input", message);
    await refuses(env, () => env.importTar(packTar(entries), { stripComponents: 1 }), "invalid_input", message);
    await refuses(env, () => env.importTar(gzipSync(packTar(entries))), "invalid_input", message);
    const list = entries.map((entry) => ({ name: "x", webkitRelativePath: entry.name, size: 1, arrayBuffer: async () => new ArrayBuffer(1) }));
    await refuses(env, () => env.importFiles(list), "invalid_input", message);
  });
}

test("directories of a zip archive have its permission bits, and keep theirs where it says none", async () => {
  const env = await MemoryEnvironment.create();
  await env.exec("mkdir there; chmod 711 there");
  const directories = [["private/", 0o040700], ["private/in/", 0o040750], ["there/", 0], ["plain/", 0]];
  await env.importZip(packZip([...directories.map(([name, mode]) => ({ name, content: "", mode })), { name: "private/f", content: "1" }]));
  assert.equal((await env.exec("stat -c '%a %n' private private/in there plain")).stdout, "700 private\n750 private/in\n711 there\n755 plain\n");
});

test("a file behind a link is refused", async () => {
  const env = await MemoryEnvironment.create();
  const archive = packZip([{ name: "l", content: "/etc", mode: 0o120777 }, { name: "l/passwd", content: "x" }]);
  await refuses(env, () => env.importZip(archive), "invalid_input", /cannot take l\/passwd: not a directory/);
});

test("devices are refused", async () => {
  const env = await MemoryEnvironment.create();
  await refuses(env, () => env.importZip(packZip([{ name: "dev", content: "", mode: 0o020666 }])), "invalid_input", /cannot take dev: it is a device/);
  await refuses(env, () => env.importTar(packTar([{ name: "dev", content: "", type: "3" }])), "invalid_input", /cannot take dev: it is a device/);
});

test("a zip bomb is refused before it is unpacked", async () => {
  const env = await MemoryEnvironment.create();
  const zeros = new Uint8Array(64 << 20);
  const bomb = packZip([{ name: "zeros", content: zeros }]);
  assert.ok(bomb.length < 100_000);
  await refuses(env, () => env.importZip(bomb), "too_large", /more than 200 times its .* bytes, as a zip bomb does/);
  await refuses(env, () => env.importTar(gzipSync(packTar([{ name: "zeros", content: zeros }]))), "too_large", /zip bomb/);
  await env.importZip(bomb, { maxRatio: 2000 });
  assert.equal((await env.stat("zeros")).size, 64 << 20);
});

test("an archive that lies about its sizes is refused", async () => {
  const env = await MemoryEnvironment.create();
  const content = new Uint8Array(30 << 20);
  await refuses(env, () => env.importZip(packZip([{ name: "a", content, declared: 10 }])), "invalid_input", /cannot take a: it holds more than the 10 bytes/);
  await refuses(env, () => env.importZip(packZip([{ name: "a", content: "abc", declared: 10 }])), "invalid_input", /cannot take a: it holds 3 bytes, not the 10/);
  await refuses(env, () => env.importZip(packZip([{ name: "a", content: "abc", crc: 1 }])), "invalid_input", /cannot take a: its checksum is wrong/);
  const overlapping = packZip(Array.from({ length: 50 }, (_, index) => ({ name: `f${index}`, content: BINARY, at: 0 })));
  await refuses(env, () => env.importZip(overlapping), "invalid_input", /its entries overlap/);
});

test("limits hold before anything is read", async () => {
  const env = await MemoryEnvironment.create({ limits: { totalBytes: 1_000_000, fileBytes: 500_000, entries: 60 } });
  let read = 0;
  const file = (name, size) => ({ name, size, arrayBuffer: async () => ((read += 1), new ArrayBuffer(size)) });
  const upload = [file("a", 1), file("upload.bin", 200_000_000)];
  await refuses(env, () => env.importFiles(upload), "too_large", /cannot take upload\.bin: it has 200,000,000 bytes, and the limit for one file is 500,000/);
  const many = Array.from({ length: 3 }, (_, index) => file(`part${index}`, 400_000));
  await refuses(env, () => env.importFiles(many), "too_large", /cannot take part2: with it the import has 1,200,000 bytes, and the limit is 1,000,000/);
  await refuses(env, () => env.importFiles(Array.from({ length: 70 }, (_, i) => file(`${i}`, 0))), "too_large", /entries, and the limit is \d+/);
  assert.equal(read, 0);
  const zip = packZip(Array.from({ length: 70 }, (_, index) => ({ name: `${index}`, content: "" })));
  await refuses(env, () => env.importZip(zip), "too_large", /the archive holds 70 entries, and the limit is \d+/);
  const tar = packTar([{ name: "big", content: new Uint8Array(600_000) }]);
  await refuses(env, () => env.importTar(tar), "too_large", /cannot take big: it has 600,000 bytes/);
  await refuses(env, () => env.importTar(new Uint8Array(200_000_000)), "too_large", /the archive has 200,000,000 bytes, more than can fit/);
  await refuses(env, () => env.importFiles([file("x", 10)], { maxBytes: 5 }), "too_large", /the limit is 5/);
});

for (const [name, madeBy, problem] of [
  ["..\\..\\x", 0, /\.\./],
  ["..\\..\\x", 3, /cannot take \.\.\\\.\.\\x: it leads out of the directory/],
  ["a/..\\x", 0, /it leads out of the directory/],
  ["C:/x", 3, /cannot take C:\/x: it starts at a drive of Windows/],
  ["C:\\x", 0, /it starts at a drive of Windows/],
]) {
  test(`a zip whose entry is ${name}, made by ${madeBy}, is refused`, async () => {
    const env = await MemoryEnvironment.create();
    await refuses(env, () => env.importZip(packZip([{ name: "a", content: "b" }, { name, content: "b", madeBy }])), "invalid_input", problem);
  });
}

test("an upload of 200 MB comes in", async (t) => {
  const env = await MemoryEnvironment.create();
  const big = new File([new Uint8Array(200_000_000).fill(7)], "upload.bin");
  const start = performance.now();
  await env.importFiles([big]);
  t.diagnostic(`took ${(performance.now() - start).toFixed(0)} ms`);
  assert.equal((await env.stat("upload.bin")).size, 200_000_000);
  await env.dispose();
});

test("garbage and pieces of archives are refused whole", async () => {
  const env = await MemoryEnvironment.create();
  const zip = await (await sample()).exportZip();
  for (let length = 0; length < zip.length; length += 997) {
    await refuses(env, () => env.importZip(zip.subarray(0, length)), "invalid_input", length === 0 ? /archive is empty/ : /zip/);
  }
  for (let at = 0; at < zip.length; at += 1009) {
    const broken = zip.slice();
    broken[at] ^= 0x55;
    const before = await env.snapshot();
    await env.importZip(broken).catch((error) => assert.ok(error instanceof EnvironmentError, error.stack));
    await env.restore(before);
    before.free();
  }
  await refuses(env, () => env.importTar(gzipSync("x".repeat(5000)).subarray(0, 30)), "invalid_input", /gzip data cannot be unpacked/);
  await refuses(env, () => env.importZip(packZip([{ name: "a", content: "b", flags: 1 }])), "invalid_input", /it is encrypted/);
  await refuses(env, () => env.importZip(packZip([{ name: "a", content: "b", method: 14 }])), "invalid_input", /compressed by method 14/);
});

test("an import goes in at its end, whatever happens meanwhile", async () => {
  const env = await MemoryEnvironment.create();
  let release;
  const held = new Promise((resolve) => (release = resolve));
  const slow = { name: "slow", size: 1, arrayBuffer: () => held.then(() => new ArrayBuffer(1)) };
  const importing = env.importFiles([new File(["q"], "quick"), slow]);
  await env.write("meanwhile", "m");
  assert.equal(await env.exists("quick"), false);
  release();
  await importing;
  assert.deepEqual((await env.list()).map(({ path }) => path), ["meanwhile", "quick", "slow"]);
});

/** A directory as a page may make one up. */
function madeUp(children, name = "made-up") {
  return {
    kind: "directory",
    name,
    async *entries() {
      for (const [name, child] of Object.entries(children)) {
        if (child instanceof Error) throw child;
        if (child instanceof File) yield [name, { kind: "file", name, getFile: async () => child }];
        else if (typeof child === "function") yield [name, { kind: "file", name, getFile: child }];
        else yield [name, madeUp(child, name)];
      }
    },
  };
}

const GONE = new DOMException("it was moved", "NotFoundError");

test("a sandbox may begin with a list of files", async () => {
  const file = Object.defineProperty(new File(["inside"], "a.txt"), "webkitRelativePath", { value: "folder/a.txt" });
  for (const files of [[file], new Set([file])]) {
    const env = await MemoryEnvironment.create({ files });
    assert.equal(await env.readText("folder/a.txt"), "inside");
    await env.dispose();
  }
});

test("a directory that a page made up comes in, also into a worker", async () => {
  const env = await MemoryEnvironment.create();
  const told = new Promise((resolve) => env.onActivity(resolve));
  const plain = async () => ({ size: 2, lastModified: 5000, arrayBuffer: async () => new TextEncoder().encode("pl").buffer });
  await env.importDirectory(madeUp({ "a.txt": new File(["a"], "a.txt"), d: { empty: {}, b: new File(["bb"], "b"), ".git": { x: GONE } }, plain }), { exclude: [".git"] });
  await told;
  assert.equal((await env.exec("find . | sort; cat a.txt d/b plain")).stdout, ".\n./a.txt\n./d\n./d/b\n./d/empty\n./plain\nabbpl");
});

for (const [name, children, problem] of [
  ["at once", { x: GONE }, "cannot read made-up: it was moved"],
  ["below", { a: new File(["a"], "a"), d: { x: GONE } }, "cannot read d/: it was moved"],
  ["at a file", { d: { f: () => Promise.reject(GONE) } }, "cannot read d/f: it was moved"],
]) {
  test(`a directory that vanishes ${name} is reported by its path, and nothing is taken`, async () => {
    const env = await MemoryEnvironment.create({ files: { keep: "k" } });
    await assert.rejects(env.importDirectory(madeUp(children)), (error) => {
      assert.ok(error instanceof EnvironmentError, error.stack);
      assert.deepEqual([error.kind, error.message], ["io", problem]);
      return true;
    });
    assert.deepEqual((await env.list()).map(({ path }) => path), ["keep"]);
  });
}

test("a directory that holds itself is reported, and nothing is taken", { timeout: 30_000 }, async () => {
  const env = await MemoryEnvironment.create();
  const circle = { kind: "directory", name: "circle", entries: async function* () { yield ["again", circle]; } };
  for (const options of [{}, { exclude: ["x"] }, { stripComponents: 1 }]) {
    await refuses(env, () => env.importDirectory(circle, options), "too_large", /^cannot take again\/again\/.{48}…: directories nest at most 256 deep, and these may be a circle$/);
  }
});

test("what is no directory handle at all is reported", async () => {
  const env = await MemoryEnvironment.create({ files: { keep: "k" } });
  for (const entries of [() => 5, () => undefined, () => { throw new Error("boom"); }, async function* () { yield 5; }]) {
    await assert.rejects(env.importDirectory({ entries }), (error) => error instanceof EnvironmentError && error.kind === "io" && /^cannot read the directory: /.test(error.message));
  }
  assert.equal(await env.readText("keep"), "k");
});

test("a directory handle comes in and goes out, also of a page's own making", async () => {
  const one = await sample();
  const directory = memoryHandle();
  assert.deepEqual(await one.exportDirectory(directory), { files: 4, skipped: ["bin/link"] });
  const two = await MemoryEnvironment.create();
  await two.importDirectory(directory, { exclude: ["ünï"] });
  await one.remove("bin/link");
  await one.remove("ünï");
  await one.exec("chmod 644 latin.txt");
  assert.equal(await tree(two), await tree(one));
  assert.deepEqual(await two.readBytes("bin/data"), BINARY);
  for (const [options, kind] of [[{ deny: "latin.txt" }, "permission_denied"], [{ fill: "latin.txt" }, "storage_full"]]) {
    const aborted = [];
    const handle = memoryHandle({ ...options, aborted });
    await assert.rejects(one.exportDirectory(handle), (error) => error.kind === kind && /cannot write latin\.txt/.test(error.message));
    assert.deepEqual(aborted, options.fill ? ["latin.txt"] : []);
  }
});

for (const [name, content] of [["a text", "just text, and more of it"], ["a long text", "x".repeat(5000)], ["bytes", new Uint8Array(2000).fill(200)]]) {
  test(`what is no archive is reported as such: ${name}`, async () => {
    const env = await MemoryEnvironment.create();
    const archive = new Blob([content]);
    await assert.rejects(env.importArchive(archive), { kind: "invalid_input", message: "the archive is neither a zip nor a tar file, or is damaged" });
    assert.deepEqual(await env.list(), []);
  });
}

test("options of an import count for files by path, too", async () => {
  const env = await MemoryEnvironment.create();
  const files = Object.fromEntries(REPOSITORY.map(({ name, content }) => [name, content]));
  await env.importFiles(files, { stripComponents: 1, exclude: ["node_modules", ".git"] });
  assert.deepEqual((await env.list(".", { depth: 9 })).map(({ path }) => path), ["b", "src", "src/a.js"]);
  await refuses(env, () => env.importFiles({ big: "xxx" }, { maxBytes: 2 }), "too_large", /big/);
  await refuses(env, () => env.importFiles(files, { maxEntries: 3 }), "too_large", /the limit is 3/);
  await refuses(env, () => env.importFiles({ "../out": "x" }, { maxBytes: 9 }), "invalid_input", /out/);
  await env.importFiles({ big: "xxx", "__proto__": "y" }, { maxBytes: 9 });
  assert.equal(await env.readText("big"), "xxx");
});

test("a blob of Node's that stands for a file is read", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "blob-"));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, "archive");
  for (const [method, archive] of [["importZip", packZip(REPOSITORY)], ["importTar", packTar(REPOSITORY)], ["importArchive", packZip(REPOSITORY)]]) {
    await writeFile(file, archive);
    const env = await MemoryEnvironment.create();
    await env[method](await openAsBlob(file));
    assert.equal(await env.readText("repo-main/src/a.js"), "a");
  }
});
