// What a test tells a scripted model that runs as a server, from Node or a page.

/**
 * @param {string} url of `hermitcrab serve-model`
 * @returns {{url: string, requests: () => Promise<object[]>, held: (name: string) => Promise<void>,
 *   release: (name: string) => Promise<void>}}
 */
export function modelAt(url) {
  const control = async (path, init) => {
    const response = await fetch(`${url}/_script/${path}`, init);
    if (!response.ok) throw new Error(`/_script/${path}: ${response.status}`);
    return response;
  };
  return {
    url,
    requests: async () => (await control("requests")).json(),
    held: async (name) => {
      // The server has no call that waits for it.
      while (!(await (await control("holds")).json()).includes(name)) await new Promise((resolve) => setTimeout(resolve, 2));
    },
    release: async (name) => void (await control(`release/${encodeURIComponent(name)}`, { method: "POST" })),
  };
}
