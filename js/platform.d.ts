// Types of the platform as a project knows them: from TypeScript's "DOM" library
// or from Node's types. Where it knows one not, what this package needs of it.

declare global {
  // As in "esnext.disposable" and in Node's types.
  interface SymbolConstructor {
    readonly asyncDispose: unique symbol;
  }
}

export type AbortSignal = typeof globalThis extends { AbortSignal: { prototype: infer T } }
  ? T
  : {
      readonly aborted: boolean;
      readonly reason: any;
      throwIfAborted(): void;
      addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
      removeEventListener(type: "abort", listener: () => void): void;
    };

export type Blob = typeof globalThis extends { Blob: { prototype: infer T } } ? T : { readonly size: number; arrayBuffer(): Promise<ArrayBuffer> };

export type File = typeof globalThis extends { File: { prototype: infer T } } ? T : Blob & { readonly name: string };

export type FileSystemDirectoryHandle = typeof globalThis extends { FileSystemDirectoryHandle: { prototype: infer T } }
  ? T
  : { readonly kind: "directory"; readonly name: string };

export type ReadableStream = typeof globalThis extends { ReadableStream: { prototype: infer T } } ? T : object;

export type Response = typeof globalThis extends { Response: { prototype: infer T } }
  ? T
  : { readonly status: number; readonly headers: { entries(): Iterator<[string, string]> }; readonly body: object | null };

export type URL = typeof globalThis extends { URL: { prototype: infer T } } ? T : { readonly href: string };

export type WasmModule = typeof globalThis extends { WebAssembly: { Module: { prototype: infer T } } } ? T : object;

/** Of the web, or of `node:worker_threads`. */
export type Worker =
  | (typeof globalThis extends { Worker: { prototype: infer T } } ? T : never)
  | { postMessage(message: any, transfer?: any): void; terminate(): unknown };

export type Transferable = object;
