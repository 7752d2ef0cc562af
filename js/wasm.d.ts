// `hermitcrab/hermitcrab.wasm` and `hermitcrab/slim.wasm` as imports: what they
// are is up to who resolves them. An isolate gives a compiled module, bundlers
// an address or bytes; `init({ wasm })` takes each.
declare const wasm: any;
export default wasm;
