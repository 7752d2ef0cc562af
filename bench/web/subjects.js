// What is compared in the page. `script` loads the bundle, `start` what it needs
// before the first command, which for a core is its download and compilation,
// and returns an empty sandbox: `importFiles` puts files into it, `exec` runs a
// command and returns what it printed.

/** @typedef {{importFiles: (files: Record<string, Uint8Array>) => Promise<void>,
 *   exec: (command: string) => Promise<string>, warmUp?: () => Promise<void>}} Sandbox
 *   `warmUp`: what a page should do when it rests */

/** @type {Record<string, {script: () => Promise<any>, start: (script: any) => Promise<Sandbox>, core?: string}>} */
export const subjects = {
  hermitcrab: {
    script: () => import("/bundle/hermitcrab.js"),
    core: "/bundle/wasm/hermitcrab_bg.wasm",
    async start({ MemoryEnvironment, init, warmUp }) {
      await init({ wasm: this.core });
      const env = await MemoryEnvironment.create();
      return {
        importFiles: (files) => env.importFiles(files),
        exec: async (command) => (await env.exec(command)).stdout,
        warmUp,
      };
    },
  },

  "hermitcrab/worker": {
    script: () => import("/bundle/worker.js"),
    core: "/bundle/wasm/hermitcrab_bg.wasm",
    // It warms up by itself.
    start({ MemoryEnvironment, init }) {
      return subjects.hermitcrab.start.call(this, { MemoryEnvironment, init });
    },
  },

  "bashkit-wasm": {
    script: () => import("/bundle/bashkit-wasm.js"),
    core: "/bundle/bashkit_wasm_bg.wasm",
    async start({ initBashkit, Bash }) {
      await initBashkit();
      const bash = new Bash({ cwd: "/workspace" });
      return {
        async importFiles(files) {
          for (const [path, content] of Object.entries(files)) {
            const place = `/workspace/${path}`;
            const parent = place.slice(0, place.lastIndexOf("/"));
            if (!bash.exists(parent)) bash.mkdir(parent);
            bash.writeFileBytes(place, content);
          }
        },
        exec: async (command) => (await bash.execute(command)).stdout,
      };
    },
  },

  "just-bash": {
    script: () => import("/bundle/just-bash.js"),
    async start({ Bash }) {
      const limits = { maxOutputSize: 1 << 28, maxStringLength: 1 << 28 };
      const bash = new Bash({ cwd: "/workspace", executionLimits: limits });
      return {
        async importFiles(files) {
          for (const [path, content] of Object.entries(files)) {
            await bash.writeFile(`/workspace/${path}`, content);
          }
        },
        exec: async (command) => (await bash.exec(command)).stdout,
      };
    },
  },
};
