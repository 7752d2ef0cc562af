// The event stream and the clock on their own.

import assert from "node:assert/strict";
import { test } from "node:test";

import { macrotask, sleep } from "../../js/platform/clock.js";
import { EventStream } from "../../js/session/event-stream.js";
import { collect } from "./support.mjs";

const numbers = (from, to) => Array.from({ length: to - from }, (_, index) => ({ seq: from + index }));

test("the first consumer gets what happened before it, later ones do not", async () => {
  const stream = new EventStream();
  stream.publish(numbers(0, 3));
  const first = stream.subscribe();
  const second = stream.subscribe();
  stream.publish(numbers(3, 5));
  stream.end();
  assert.deepEqual(await collect(first), numbers(0, 5));
  assert.deepEqual(await collect(second), numbers(3, 5));
  assert.deepEqual(await collect(stream.subscribe()), []);
});

test("a backlog that grows too long is given up", async () => {
  const stream = new EventStream();
  stream.publish(numbers(0, 2000));
  const events = stream.subscribe();
  stream.publish(numbers(2000, 2001));
  stream.end();
  assert.deepEqual(await collect(events), numbers(2000, 2001));
});

test("there is room until a consumer falls behind, and again when it has caught up or left", async () => {
  const stream = new EventStream();
  const slow = stream.subscribe();
  assert.equal(stream.room(), undefined);
  stream.publish(numbers(0, 1024));
  let free = false;
  stream.room().then(() => (free = true));
  await Promise.resolve();
  assert.equal(free, false);
  await slow.next();
  await Promise.resolve();
  assert.equal(free, true);
  stream.publish(numbers(0, 1));
  const room = stream.room();
  await slow.return();
  await room;
  assert.equal(stream.room(), undefined);
});

test("an iterator ends after its last event, also for consumers that wait", async () => {
  const stream = new EventStream();
  const events = stream.subscribe(({ seq }) => seq === 1);
  const waiting = [events.next(), events.next(), events.next()];
  stream.publish(numbers(0, 5));
  assert.deepEqual(await Promise.all(waiting), [
    { value: { seq: 0 }, done: false },
    { value: { seq: 1 }, done: false },
    { value: undefined, done: true },
  ]);
});

test("macrotasks let timers pass and come in order", async () => {
  const seen = [];
  const timer = new Promise((resolve) => setTimeout(() => resolve(seen.push("timer")), 1));
  const loop = () => {
    if (!seen.includes("timer")) macrotask(loop);
  };
  macrotask(() => seen.push(1));
  macrotask(() => seen.push(2));
  loop();
  await timer;
  assert.deepEqual(seen, [1, 2, "timer"]);
});

test("a sleep ends early when it is cancelled, and takes delays that timers do not", async () => {
  const stop = new AbortController();
  const sleeping = sleep(2 ** 40, stop.signal);
  let over = false;
  sleeping.then(() => (over = true));
  await sleep(5, new AbortController().signal);
  assert.equal(over, false);
  stop.abort();
  await sleeping;
  await sleep(2 ** 40, stop.signal);
});
