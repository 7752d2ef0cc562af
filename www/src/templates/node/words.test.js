// Run with:  node --test

import assert from "node:assert/strict";
import { test } from "node:test";

import { countWords } from "./words.js";

test("words are what stands between spaces", () => {
  assert.equal(countWords("one  two\nthree"), 3);
});

test("an empty text has none", () => {
  assert.equal(countWords(""), 0);
});
