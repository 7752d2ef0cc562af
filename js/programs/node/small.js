// The smaller modules of Node: `util`, `os`, `url`.

import { isDeepStrictEqual, util as packaged } from "./packages.js";

/** Made at its first use. */
export function makeUtil() {
  const util = packaged();
  return {
    ...util,
    isDeepStrictEqual,
    styleText: (style, text) => text,
    TextEncoder,
    TextDecoder,
  };
}

/** @param {Record<string, string>} env */
export const makeOs = (env) => ({
  EOL: "\n",
  platform: () => "linux",
  type: () => "Linux",
  arch: () => "wasm32",
  release: () => "",
  tmpdir: () => "/tmp",
  homedir: () => env.HOME ?? "/home/user",
  hostname: () => "sandbox",
  endianness: () => "LE",
  cpus: () => [],
  availableParallelism: () => 1,
  totalmem: () => 0,
  freemem: () => 0,
  userInfo: () => ({ username: "user", uid: 1000, gid: 1000, homedir: env.HOME ?? "/home/user", shell: "/bin/bash" }),
});

export const url = {
  URL,
  URLSearchParams,
  fileURLToPath: (value) => decodeURIComponent(new URL(value).pathname),
  pathToFileURL: (path) => new URL(`file://${encodeURI(path).replace(/[?#]/g, encodeURIComponent)}`),
};
