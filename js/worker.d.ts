// Types of `hermitcrab/worker`: those of `hermitcrab`, but for models without a
// session, which need no worker, and the worker itself.

import type { WorkerOptions } from "./worker/page/connection.js";

export * from "./api.js";
export type { WorkerOptions };

/**
 * Starts the worker and loads the core now, perhaps from elsewhere. Without
 * this call the first session or environment does.
 */
export declare function init(options?: WorkerOptions): Promise<void>;

/**
 * Ends the worker, whatever it does, and starts another: for a command that
 * hears no stop. Sandboxes are as before the commands that were running,
 * sessions get `ERROR` and `SESSION_END`.
 */
export declare function restart(): Promise<void>;

/** Ends the worker and all that it holds. The next call starts another. */
export declare function terminate(): Promise<void>;
