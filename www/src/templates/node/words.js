// Counts the words of files:  node words.js FILE…

import { readFileSync } from "node:fs";

/** How many words a text has. */
export function countWords(text) {
  return text.split(/\s+/).filter((word) => word !== "").length;
}

for (const file of process.argv.slice(2)) {
  console.log(`${countWords(readFileSync(file, "utf8"))}\t${file}`);
}
