import { defineConfig } from "vite";

// JSX as Vite itself compiles it.
export default defineConfig({ base: "./", esbuild: { jsx: "automatic" }, oxc: { jsx: { runtime: "automatic" } } });
