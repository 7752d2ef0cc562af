// What is compared in the page, each behind the same three calls. `open`
// fetches and starts the thing and returns an empty sandbox; `import` puts
// files into it; `exec` runs a command and returns what it printed.

/** @typedef {{importFiles: (files: Record<string, Uint8Array>) => Promise<void>,
 *   exec: (command: string) => Promise<string>}} Sandbox */

/** @type {Record<string, () => Promise<Sandbox>>} */
export const subjects = {
  async hermitcrab() {
    const { MemoryEnvironment } = await import("/js/index.js");
    const env = await MemoryEnvironment.create();
    return {
      importFiles: (files) => env.importFiles(files),
      exec: async (command) => (await env.exec(command)).stdout,
    };
  },

  async "hermitcrab/worker"() {
    const { MemoryEnvironment } = await import("/js/worker.js");
    const env = await MemoryEnvironment.create();
    return {
      importFiles: (files) => env.importFiles(files),
      exec: async (command) => (await env.exec(command)).stdout,
    };
  },

  async "bashkit-wasm"() {
    const { initBashkit, Bash } = await import("/modules/@everruns/bashkit-wasm/index.js");
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

  async "just-bash"() {
    const { Bash } = await import("/bundle/browser.js");
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
};
