//! Names the target that machine code is compiled for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Ok(target) = std::env::var("TARGET") {
        println!("cargo::rustc-env=HERMITCRAB_TARGET={target}");
    }
}
