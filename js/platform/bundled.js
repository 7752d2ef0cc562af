// What to do in a bundle for Node that has the package's code, but not the files
// beside it: its core, and the scripts of its workers.

/** What Node says of a file that is not there, and of one whose place is not known, as in CommonJS. */
const LOST = /Cannot find module|no such file|Invalid URL|must be of type string or an instance of/;

/**
 * @param {string} said why a file of the package cannot be had
 * @param {string} other what to do where the package has to be in the bundle
 */
export function withRemedy(said, other) {
  if (!LOST.test(said)) return said;
  return `${said.split("\n", 1)[0]}; in a bundle, leave hermitcrab out of it (esbuild: external: ["hermitcrab", "hermitcrab/*"], Next.js: serverExternalPackages: ["hermitcrab"]), or ${other}`;
}
