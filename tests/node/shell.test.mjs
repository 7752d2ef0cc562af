// openShell: what a terminal shows, seen on the screen of a real one.

import assert from "node:assert/strict";
import { test } from "node:test";

import xterm from "@xterm/headless";
import { Line } from "../../js/environment/line-editor.js";
import { MemoryEnvironment, inWorker } from "./face.mjs";

/** A terminal with a shell behind it. */
async function open({ files = {}, cols = 60, rows = 20, env, ...options } = {}) {
  env ??= await MemoryEnvironment.create({ files });
  const terminal = new xterm.Terminal({ cols, rows, allowProposedApi: true });
  let shown = Promise.resolve();
  const show = (text) => (shown = new Promise((resolve) => terminal.write(text, resolve)));
  const shell = await env.openShell({ onData: show, cols, rows, ...options });
  const type = async (text) => {
    await shell.write(text);
    await shown;
  };
  const screen = () => {
    const buffer = terminal.buffer.active;
    const lines = [];
    for (let row = 0; row < buffer.length; row += 1) {
      const line = buffer.getLine(row);
      const text = line.translateToString(true);
      if (line.isWrapped) lines[lines.length - 1] += text;
      else lines.push(text);
    }
    while (lines.at(-1) === "") lines.pop();
    return lines.map((line) => line.trimEnd());
  };
  const cursor = () => [terminal.buffer.active.baseY + terminal.buffer.active.cursorY, terminal.buffer.active.cursorX];
  await shown;
  return { env, shell, terminal, type, screen, cursor, settled: () => shown };
}

/** Types `keys` and expects the lines on the screen, without the first prompt's. */
function check(name, keys, expected, options) {
  test(name, async () => {
    const { shell, type, screen } = await open(options);
    for (const key of [keys].flat()) await type(key);
    assert.deepEqual(screen().map((line) => line.replace(/^\/workspace/, "~w")), expected);
    await shell.close();
  });
}

const P = "~w $";

check("a line runs and the prompt comes again", "echo hi\r", [`${P} echo hi`, "hi", P]);
check("state lasts from line to line", ["mkdir d; cd d; X=5\r", "f() { echo f$1 $X $PWD; }\r", "f 1\r"], [
  `${P} mkdir d; cd d; X=5`, "~w/d $ f() { echo f$1 $X $PWD; }", "~w/d $ f 1", "f1 5 /workspace/d", "~w/d $",
]);
check("so do aliases and options", ["alias e='echo alias'\r", "set -u\r", "e a\r", "echo $NONE\r"], [
  `${P} alias e='echo alias'`, `${P} set -u`, `${P} e a`, "alias a", `${P} echo $NONE`, "bash: NONE: unbound variable", P,
]);
check("the exit code is that of the last line", ["(exit 7)\r", "echo $?\r", "echo $?\r"], [`${P} (exit 7)`, `${P} echo $?`, "7", `${P} echo $?`, "0", P]);
check("it is so with `set -e`, which ends no shell by it", ["set -e; false; echo no\r", "echo $?\r"], [`${P} set -e; false; echo no`, `${P} echo $?`, "1", P]);
check("`history` and `fc` have the lines that were typed, and nothing else", ["false\r", "history\r", "set -u\r", "fc -l 3\r", "history -c\r", "history\r"], [
  `${P} false`, `${P} history`, "    1  false", "    2  history", `${P} set -u`, `${P} fc -l 3`, "3\t set -u".replace("\t", "       "), `${P} history -c`, `${P} history`, "    1  history", P,
]);
check("a loop goes over several lines", ["for i in 1 2; do\r", "echo $i\r", "done\r"], [`${P} for i in 1 2; do`, "> echo $i", "> done", "1", "2", P]);
check("quotes and here-documents, too", ["echo 'a\r", "b'\r", "cat <<E\r", "x\r", "E\r"], [
  `${P} echo 'a`, "> b'", "a", "b", `${P} cat <<E`, "> x", "> E", "x", P,
]);
check("a backslash joins lines", ["echo a \\\r", "b\r"], [`${P} echo a \\`, "> b", "a b", P]);
check("a mistake is reported", "fi\r", [`${P} fi`, "bash: syntax error near unexpected token `fi'", P]);
check("a prompt begins a line of its own", "printf abc\r", [`${P} printf abc`, "abc", P]);
check("a prompt of one's own", "PS1='\\u@\\h \\W> '\r", [`${P} PS1='\\u@\\h \\W> '`, "user@sandbox workspace>"]);

check("keys edit in the line", "ecXho b\x01\x1b[C\x1b[C\x1b[3~\x05c\x1b[D\x1b[Da\r", [`${P} echo abc`, "abc", P]);
check("words go and come back", "echo one two\x17\x17two \x19\r", [`${P} echo two one`, "two one", P]);
check("words are jumped over", "echo b c\x1b[1;5D\x1bba \x1b[1;5C\x0b\r", [`${P} echo a b`, "a b", P]);
check("the history is recalled", ["echo 1\r", "echo 2\r", "ec\x1b[A\x1b[A\x1b[B\x7f3\r"], [
  `${P} echo 1`, "1", `${P} echo 2`, "2", `${P} echo 3`, "3", P,
]);
check("what was being typed is not lost", ["echo 1\r", "ec\x1b[A\x1b[Bho x\r"], [`${P} echo 1`, "1", `${P} echo x`, "x", P]);
check("a pasted text waits for Enter", ["\x1b[200~echo a\recho b\x03\x1b[201~", "\r"], [`${P} echo a`, "echo b", "a", "b", P]);
check("without brackets each line runs", "echo a\necho b\r\n", [`${P} echo a`, "a", `${P} echo b`, "b", P]);
check("keys may come in pieces", ["a\x1b", "[", "D\u{1f980}".slice(0, 2), "\u{1f980}".slice(1), "echo \r"], [`${P} 🦀echo a`, "bash: 🦀echo: command not found. Did you mean: echo?", P]);
check("Ctrl-C drops the line", ["for x in\x03", "echo a\r"], [`${P} for x in^C`, `${P} echo a`, "a", P]);
check("Ctrl-L clears the screen and keeps the line", ["echo a\r", "echo b\x0c", "\r"], [`${P} echo b`, "b", P]);

check("long lines wrap and are edited over the edge", [`echo ${"x".repeat(70)}\x01\x1b[1;5C y\x05z`, "\r"], [
  `${P} echo y ${"x".repeat(70)}z`, `y ${"x".repeat(70)}z`, P,
], { cols: 30 });
check("a line may fill the last column", [`echo ${"x".repeat(13)}`, "y\r"], [`${P} echo ${"x".repeat(13)}y`, `${"x".repeat(13)}y`, P], { cols: 30 });
check("wide characters have two columns", ["echo 文文文文文文文文\x1b[D\x1b[D\x7fa\r"], [`${P} echo 文文文文文a文文`, "文文文文文a文文", P], { cols: 20 });

const FILES = { "alpha.txt": "A\n", "alpine.md": "B\n", "with space.txt": "C\n", "src/deep/x": "", ".hidden": "" };
check("Tab completes a path", "cat alph\t\r", [`${P} cat alpha.txt`, "A", P], { files: FILES });
check("Tab goes as far as it is certain, then shows what there is", ["cat a\t", "\t", "i\t\r"], [
  `${P} cat alp`, "alpha.txt  alpine.md", `${P} cat alpine.md`, "B", P,
], { files: FILES });
check("Tab escapes what needs it", "cat w\t\r", [`${P} cat with\\ space.txt`, "C", P], { files: FILES });
check("Tab closes a quote", 'cat "with s\t\r', [`${P} cat "with space.txt"`, "C", P], { files: FILES });
check("Tab goes into directories", "ls s\td\t\r", [`${P} ls src/deep/`, "x", P], { files: FILES });
check("Tab knows commands, functions included", ["greet() { echo hey; }\r", "gree\t\r"], [`${P} greet() { echo hey; }`, `${P} greet`, "hey", P]);

test("Ctrl-C ends a busy loop, and the shell keeps what it knew", async () => {
  const { shell, type, screen } = await open();
  await type("X=before; cd /tmp\r");
  for (const loop of ["while :; do :; done", "f() { while :; do Y=1; done; }; f", "cat <(while :; do :; done)", "yes | while read x; do :; done"]) {
    const running = type(`${loop}\r`);
    await new Promise((resolve) => setTimeout(resolve, 60));
    await shell.write("\x03");
    await running;
    assert.equal(screen().at(-1), "/tmp $", loop);
    assert.equal(screen().at(-2), "^C", loop);
  }
  await type("echo $? $X; pwd\r");
  assert.deepEqual(screen().slice(-4), ["/tmp $ echo $? $X; pwd", "130 before", "/tmp", "/tmp $"]);
  await shell.close();
});

test("what is typed while something runs waits; Ctrl-C drops it", async () => {
  const { shell, type, screen, settled } = await open();
  const running = type("while [ ! -e stop ]; do :; done\r");
  await shell.write("echo typed ahead\r");
  await new Promise((resolve) => setTimeout(resolve, 20));
  await shell.write("\x03echo after\r");
  await running;
  await settled();
  assert.deepEqual(screen(), ["/workspace $ while [ ! -e stop ]; do :; done", "^C", "/workspace $ echo after", "after", "/workspace $"]);
  await shell.close();
});

test("the files are those of the sandbox", async () => {
  const { env, shell, type, screen } = await open();
  await type("echo from the shell > a\r");
  assert.equal(await env.readText("a"), "from the shell\n");
  await env.exec("echo from outside > b; X=1");
  await type("cat b; echo $X.\r");
  assert.deepEqual(screen().slice(-3), ["from outside", ".", "/workspace $"]);
  const snapshot = await env.snapshot();
  await type("rm a b\r");
  await env.restore(snapshot);
  await type("ls\r");
  assert.deepEqual(screen().slice(-3), ["a", "b", "/workspace $"]);
  await shell.close();
});

test("two shells know nothing of each other", async () => {
  const one = await open();
  const two = await open({ env: one.env });
  await one.type("X=1; cd /\r");
  await two.type("echo $X.; pwd\r");
  assert.deepEqual(two.screen().slice(-3), [".", "/workspace", "/workspace $"]);
  const running = one.type("while :; do :; done\r");
  await two.type("echo side by side\r");
  assert.equal(two.screen().at(-2), "side by side");
  await one.shell.write("\x03");
  await running;
  await one.shell.close();
  await two.shell.close();
});

test("a resized terminal wraps anew", async () => {
  const { shell, type, terminal, screen } = await open({ cols: 40 });
  await type(`echo ${"x".repeat(50)}`);
  terminal.resize(25, 20);
  await shell.resize(25, 20);
  await type("\x01\x1b[1;5C y\x05z\r");
  assert.equal(screen().at(-2), `y ${"x".repeat(50)}z`);
  await type("echo $COLUMNS $LINES\r");
  assert.equal(screen().at(-2), "25 20");
  await shell.close();
});

test("a shell whose sandbox is disposed of has ended, and takes no more", { timeout: 30_000 }, async () => {
  const idle = await open();
  await idle.env.dispose();
  assert.equal(await idle.shell.closed, 1);
  await idle.shell.write("echo more\r");
  await idle.shell.close();
  const busy = await open();
  const running = busy.type("while :; do :; done\r");
  await busy.env.dispose();
  await running;
  assert.equal(await busy.shell.closed, 1);
});

test("exit, Ctrl-D and close end a shell", async () => {
  const exited = await open();
  await exited.type("exit 3\r");
  assert.equal(await exited.shell.closed, 3);
  await exited.type("echo no more\r");
  assert.equal(exited.screen().at(-1), "/workspace $ exit 3");
  const ended = await open();
  await ended.type("false\r");
  await ended.type("\x04");
  assert.equal(await ended.shell.closed, 1);
  const closed = await open();
  const running = closed.type("while :; do :; done\r");
  await closed.shell.close();
  await running;
  assert.equal(await closed.shell.closed, 0);
  assert.equal((await closed.env.exec("echo alive")).stdout, "alive\n");
});

test("history and variables can be given", async () => {
  const { shell, type, screen } = await open({ history: ["echo $WHO"] });
  await type("\x1b[A\r");
  assert.deepEqual(await shell.history(), ["echo $WHO"]);
  await shell.close();
  const env = await MemoryEnvironment.create();
  let shown = "";
  const other = await env.openShell({ onData: (text) => (shown += text), env: { WHO: "me" } });
  await other.write("echo $WHO; bash -c 'echo $WHO'\r");
  assert.match(shown, /me\r\nme\r\n/);
  await other.close();
  assert.equal(screen().at(0), "/workspace $ echo $WHO");
});

for (const [keys, said] of [
  [["eabc\x1b[D\x1b[D\x1b[D", "\u0301", "Z"], "e\u0301Zabc"],
  [["eabc\x1b[D\x1b[D\x1b[D\u0301Z"], "e\u0301Zabc"],
  [["👍z\x1b[D", "🏽", "Q"], "👍🏽Qz"],
  [["👩💻z\x1b[D\x1b[D", "\u200d", "Q"], "👩\u200d💻Qz"],
]) {
  test(`what joins the character before it leaves the cursor behind both: ${JSON.stringify(keys)}`, async () => {
    const { shell, type } = await open();
    for (const piece of ["echo ", ...keys, "\r"]) await type(piece);
    assert.deepEqual(await shell.history(), [`echo ${said}`]);
    await shell.close();
  });
}

test("halves of one character that come one by one are removed together", async () => {
  const { shell, type } = await open();
  for (const piece of ["echo 👍", "🏽", "\x7f", "🇩", "🇪", "\x7f", "👩", "\u200d", "💻", "\x7f", "x\r"]) await type(piece);
  assert.deepEqual(await shell.history(), ["echo x"]);
  await shell.close();
});

for (const [what, line] of [["of plain lines", "0123456789 0123456789 0123456789"], ["of one line per language", "Straße 中文字符 👩‍👩‍👧 e\u0301"]]) {
  test(`a paste of 200 kB ${what} arrives`, async () => {
    const env = await MemoryEnvironment.create();
    let shown = 0;
    const shell = await env.openShell({ onData: (text) => (shown += text.length) });
    const text = `${line}\n`.repeat(200_000 / (line.length + 1));
    await shell.write(`\x1b[200~cat > pasted <<'END'\n${text}END\x1b[201~`);
    assert.ok(shown > text.length);
    await shell.write("\r");
    assert.equal(await env.readText("pasted"), text);
    await shell.close();
  });
}

// In a worker there is no reaching inside.
if (!inWorker) test("what cannot be dealt with is reported, and the next text is taken", async () => {
  const { shell, type, screen } = await open();
  // A fault from inside: what is typed leads to none.
  const { insert } = Line.prototype;
  Line.prototype.insert = () => {
    throw new Error("out of room");
  };
  try {
    await assert.rejects(shell.write("echo a"), /out of room/);
  } finally {
    Line.prototype.insert = insert;
  }
  await type("echo b\r");
  assert.deepEqual(screen().map((line) => line.replace(/^\/workspace/, "~w")), [`${P} echo b`, "b", P]);
  await shell.close();
});
