//! What wasmtime's macro makes of `wit/hermitcrab.wit`.
#![allow(missing_docs, unreachable_pub, clippy::all)]

wasmtime::component::bindgen!({ path: "../wit", world: "agent" });
