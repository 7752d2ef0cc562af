// What the cores export: no function that returns a reference alone. V8 takes the
// calls of such functions into the code of their callers, and up to Node 22 ends
// the process where that code is given up while the call lasts.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

const NUMBERS = [0x7f, 0x7e, 0x7d, 0x7c];

/** The results of the exported functions, by name, as the bytes of their types. */
function results(bytes) {
  let at = 8;
  const number = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  const list = (item) => Array.from({ length: number() }, item);
  const text = () => {
    const length = number();
    at += length;
    return new TextDecoder().decode(bytes.subarray(at - length, at));
  };
  const valueType = () => {
    const type = bytes[at++];
    // A reference to a type of its own: which one follows.
    if (type === 0x63 || type === 0x64) number();
    return type;
  };
  let types = [];
  const functions = [];
  const found = {};
  while (at < bytes.length) {
    const section = bytes[at++];
    const size = number();
    const end = at + size;
    if (section === 1) {
      types = list(() => {
        assert.equal(bytes[at++], 0x60, "a function's type");
        list(valueType);
        return list(valueType);
      });
    } else if (section === 2) {
      for (const [, , kind, type] of list(() => [text(), text(), bytes[at++], number()])) {
        assert.equal(kind, 0, "only functions are imported");
        functions.push(type);
      }
    } else if (section === 3) {
      functions.push(...list(number));
    } else if (section === 7) {
      for (const [name, kind, index] of list(() => [text(), bytes[at++], number()])) {
        if (kind === 0) found[name] = types[functions[index]];
      }
    }
    at = end;
  }
  return found;
}

for (const file of ["hermitcrab_bg.wasm", "slim/hermitcrab_bg.wasm"]) {
  test(`no function of ${file} returns a reference alone`, async () => {
    const exported = results(await readFile(new URL(`../../js/wasm/${file}`, import.meta.url)));
    assert.ok("coresession_call" in exported && "core_step" in exported, Object.keys(exported).join());
    const alone = Object.entries(exported).filter(([, [first, ...more]]) => first !== undefined && more.length === 0 && !NUMBERS.includes(first));
    assert.deepEqual(alone.map(([name]) => name), []);
  });
}
