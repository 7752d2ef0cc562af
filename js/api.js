// What the entry files of the core with a sandbox export.

import { setDefaultEnvironment } from "./session.js";
import { MemoryEnvironment } from "./sandbox.js";

setDefaultEnvironment(() => MemoryEnvironment.create());

export * from "./api-slim.js";
export { MemoryEnvironment };
