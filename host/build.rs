//! Puts the compiled core into the library when `HERMITCRAB_EMBED` names one
//! (`cargo xtask build` does). Without it the library asks for a core at run time.

use std::path::Path;

use sha2::{Digest, Sha256};

/// Hash of the component that `core` was compiled from, which lies beside it; where
/// it does not, of `core` itself.
fn hash(core: &str) -> String {
    let component = Path::new(core).with_extension("wasm");
    println!("cargo::rerun-if-changed={}", component.display());
    let bytes = std::fs::read(&component)
        .or_else(|_| std::fs::read(core))
        .unwrap_or_else(|error| panic!("cannot read {core}: {error}"));
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn main() {
    println!("cargo::rustc-check-cfg=cfg(embedded_core)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=HERMITCRAB_EMBED");
    let Ok(core) = std::env::var("HERMITCRAB_EMBED") else {
        return;
    };
    println!("cargo::rerun-if-changed={core}");
    // Lints may come before there is a compiled core.
    if Path::new(&core).is_file() {
        println!("cargo::rustc-cfg=embedded_core");
        println!("cargo::rustc-env=HERMITCRAB_EMBEDDED={core}");
        println!("cargo::rustc-env=HERMITCRAB_EMBEDDED_HASH={}", hash(&core));
    }
}
