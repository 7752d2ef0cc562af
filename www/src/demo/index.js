// What a visitor sees first: a small project with a bug, and a model that
// plays the script of its repair.

export { default as script } from "./script.json";

const texts = import.meta.glob("./project/**/*", { query: "?raw", import: "default", eager: true });

/** The sample project, path → text. */
export const files = Object.fromEntries(
  Object.entries(texts).map(([path, text]) => [path.replace("./project/", ""), text]),
);

/** The task that the script is about. */
export const task = "Some tests of slug.sh fail. Find out why, fix it, and build the site again.";
