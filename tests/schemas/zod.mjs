// The fifteen forms of zod that everyday schemas consist of, each as a property
// of a tool's parameters: values that fit, what becomes of them, and values that
// do not. `node tests/schemas/zod.mjs > tests/schemas/zod.json` writes down how
// zod says them as JSON Schema, for the tests of the core.

import { z } from "zod";

const tree = z.object({ name: z.string(), get children() { return z.array(tree).optional(); } });

/** @type {Record<string, {schema: import("zod").ZodType, fits: unknown[], not: unknown[], becomes?: unknown[], refused?: true}>} */
export const forms = {
  string: {
    schema: z.string().min(2).max(30).regex(/^[a-z@.:/]+$/),
    fits: ["ab", "a@b.org"],
    not: ["a", "AB", "a".repeat(31), 1, null],
  },
  "string formats": {
    schema: z.object({ mail: z.email(), link: z.url(), id: z.uuid() }),
    fits: [{ mail: "a.b@c.org", link: "https://c.org/x?y", id: "123e4567-e89b-42d3-a456-426614174000" }],
    not: [{ mail: "a..b@c.org", link: "https://c.org", id: "123e4567-e89b-42d3-a456-426614174000" }, { mail: "a@b.org" }],
  },
  number: {
    schema: z.object({ count: z.int().positive(), part: z.number().min(0).lt(1), step: z.number().multipleOf(0.01) }),
    fits: [{ count: 1, part: 0.5, step: 19.99 }],
    not: [{ count: 0, part: 0.5, step: 1 }, { count: 1.5, part: 0, step: 1 }, { count: 1, part: 1, step: 1 }, { count: 1, part: 0, step: 0.005 }],
  },
  boolean: { schema: z.boolean(), fits: [true, false], not: ["true", 1] },
  enum: { schema: z.enum(["red", "green"]), fits: ["red"], not: ["blue", null] },
  literal: { schema: z.union([z.literal("on"), z.literal(3)]), fits: ["on", 3], not: ["off", 4] },
  array: { schema: z.array(z.string()).min(1).max(2), fits: [["a"], ["a", "b"]], not: [[], ["a", "b", "c"], [1]] },
  tuple: { schema: z.tuple([z.string(), z.number()]), fits: [["a", 1]], not: [["a"], ["a", 1, 2], [1, "a"]] },
  object: {
    schema: z.object({ strict: z.strictObject({ a: z.string() }), loose: z.looseObject({ a: z.string() }) }),
    fits: [{ strict: { a: "x" }, loose: { a: "x", b: 1 } }],
    not: [{ strict: { a: "x", b: 1 }, loose: { a: "x" } }, { strict: {}, loose: { a: "x" } }],
  },
  "optional and nullable": {
    schema: z.object({ a: z.string().optional(), b: z.string().nullable() }),
    fits: [{ b: null }, { a: "x", b: "y" }],
    not: [{}, { a: null, b: null }],
  },
  default: {
    schema: z.object({ size: z.number().default(10) }),
    fits: [{}, { size: 3 }],
    becomes: [{ size: 10 }, { size: 3 }],
    not: [{ size: "3" }],
  },
  union: {
    schema: z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("circle"), radius: z.number() }),
      z.object({ kind: z.literal("square"), side: z.number() }),
    ]),
    fits: [{ kind: "circle", radius: 1 }, { kind: "square", side: 1 }],
    not: [{ kind: "circle", side: 1 }, { kind: "cube" }],
  },
  record: { schema: z.record(z.string().regex(/^[a-z]+$/), z.number()), fits: [{}, { a: 1 }], not: [{ a: "1" }, { A: 1 }] },
  recursive: {
    schema: tree,
    fits: [{ name: "a", children: [{ name: "b", children: [{ name: "c" }] }] }],
    not: [{ name: "a", children: [{ name: "b", children: [{ name: 1 }] }] }],
  },
  intersection: {
    schema: z.intersection(z.object({ a: z.string() }), z.object({ b: z.number() })),
    fits: [{ a: "x", b: 1 }],
    not: [{ a: "x" }, { b: 1 }],
  },
};

/** The parameters of a tool that takes `schema` as `value`. */
export const parameters = (schema) => z.object({ value: schema });

const written = Object.entries(forms).map(([name, { schema, fits, not }]) => {
  const { $schema, ...json } = z.toJSONSchema(parameters(schema), { io: "input" });
  return { name, schema: json, fits, not };
});

/** What the file holds. */
export const text = `${JSON.stringify(written, null, 1)}\n`;

if (process.argv[1]?.endsWith("zod.mjs")) process.stdout.write(text);
