//! Rules of the code that no compiler checks: layers, file headers, forbidden
//! modules, versions that must agree, dependencies that must be explained.

use std::fs;
use std::path::{Path, PathBuf};

/// Left to right; a module may name only modules to its left (ARCHITECTURE.md, *Code map*).
const LAYERS: [&str; 14] = [
    "text",
    "llm",
    "environment",
    "memory",
    "event",
    "effect",
    "tool",
    "object",
    "profile",
    "session",
    "log",
    "script",
    "component",
    "web",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut entries: Vec<_> = fs::read_dir(dir)
        .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
        .map(|entry| entry.expect("directory entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with("node_modules") {
                files.extend(rust_files(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn project_files() -> Vec<PathBuf> {
    ["src", "host", "xtask", "tests"]
        .into_iter()
        .flat_map(|dir| rust_files(&root().join(dir)))
        .collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The top-level module of `src/` that a file belongs to.
fn layer_of(path: &Path) -> Option<usize> {
    let relative = path.strip_prefix(root().join("src")).ok()?;
    let first = relative.components().next()?.as_os_str().to_str()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    LAYERS.iter().position(|layer| *layer == name)
}

/// Source without line comments, so that docs may name anything.
fn code_lines(source: &str) -> impl Iterator<Item = (usize, &str)> {
    source
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or("")))
}

#[test]
fn layers_point_one_way() {
    let mut broken = Vec::new();
    for path in rust_files(&root().join("src")) {
        let Some(own) = layer_of(&path) else {
            assert!(
                path.ends_with("src/lib.rs"),
                "{} is in no layer",
                path.display()
            );
            continue;
        };
        let source = read(&path);
        for (number, line) in code_lines(&source) {
            for (start, _) in line.match_indices("crate::") {
                let rest = &line[start + "crate::".len()..];
                let named: Vec<&str> = if let Some(list) = rest.strip_prefix('{') {
                    list.split(',').collect()
                } else {
                    vec![rest]
                };
                for name in named {
                    let name: String = name
                        .trim()
                        .chars()
                        .take_while(|c| c.is_alphanumeric() || *c == '_')
                        .collect();
                    if let Some(other) = LAYERS.iter().position(|layer| *layer == name)
                        && other > own
                    {
                        broken.push(format!(
                            "{}:{number}: {} names {}, a layer to its right",
                            path.display(),
                            LAYERS[own],
                            LAYERS[other]
                        ));
                    }
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_file_says_what_it_is() {
    let silent: Vec<_> = project_files()
        .into_iter()
        .filter(|path| !read(path).starts_with("//! "))
        .collect();
    assert!(silent.is_empty(), "no //! header: {silent:?}");
}

#[test]
fn the_core_reaches_for_nothing_outside() {
    let forbidden = [
        "std::fs",
        "std::net",
        "std::process",
        "std::thread",
        "std::env",
        "SystemTime::now",
        "Instant::now",
        "Utc::now",
        "Local::now",
        "tokio",
    ];
    let mut broken = Vec::new();
    for path in rust_files(&root().join("src")) {
        let source = read(&path);
        for (number, line) in code_lines(&source) {
            for word in forbidden {
                if line.contains(word) {
                    broken.push(format!("{}:{number}: {word}", path.display()));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn nothing_is_left_undone() {
    // Spelt apart so that this file does not find itself.
    let marks = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("#[", "ignore"),
        concat!("FIX", "ME"),
        concat!("dbg", "!("),
    ];
    let mut found = Vec::new();
    for path in project_files() {
        for (number, line) in read(&path).lines().enumerate() {
            for mark in marks {
                if line.contains(mark) {
                    found.push(format!("{}:{}: {mark}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The value of `key = "value"` or `key = { version = "value"` in a manifest.
fn manifest_version(manifest: &str, key: &str) -> Option<String> {
    let line = manifest.lines().find(|line| {
        line.strip_prefix(key)
            .is_some_and(|rest| rest.trim_start().starts_with('='))
    })?;
    let after = line.split_once("version = ").map_or_else(
        || line.split_once('=').map(|(_, value)| value),
        |(_, value)| Some(value),
    )?;
    after.split('"').nth(1).map(str::to_owned)
}

#[test]
fn versions_agree() {
    let workspace = read(&root().join("Cargo.toml"));
    let xtask = read(&root().join("xtask/Cargo.toml"));
    let toolchain = read(&root().join("rust-toolchain.toml"));
    let package: serde_json::Value =
        serde_json::from_str(&read(&root().join("package.json"))).expect("package.json is JSON");
    assert_eq!(
        package["version"].as_str(),
        Some(env!("CARGO_PKG_VERSION")),
        "package.json and Cargo.toml"
    );
    assert_eq!(
        manifest_version(&workspace, "wasm-bindgen"),
        manifest_version(&xtask, "wasm-bindgen-cli-support"),
        "wasm-bindgen and the library that processes its output"
    );
    let rust = manifest_version(&workspace, "rust-version").expect("rust-version");
    let channel = manifest_version(&toolchain, "channel").expect("channel");
    assert!(
        channel.starts_with(&rust),
        "rust-toolchain.toml says {channel}, Cargo.toml says {rust}"
    );
    let changelog = read(&root().join("CHANGELOG.md"));
    assert!(
        changelog.contains(env!("CARGO_PKG_VERSION")),
        "CHANGELOG.md does not mention {}",
        env!("CARGO_PKG_VERSION")
    );
}

/// Names of all dependencies in a manifest's dependency tables.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines() {
        if let Some(table) = line.strip_prefix('[') {
            inside = table.trim_end_matches(']').ends_with("dependencies");
        } else if inside
            && let Some((name, _)) = line.split_once(['=', '.'])
            && !line.starts_with('#')
        {
            names.push(name.trim().to_owned());
        }
    }
    names
}

#[test]
fn every_dependency_is_explained() {
    let architecture = read(&root().join("ARCHITECTURE.md"));
    let mut missing = Vec::new();
    let manifests = [
        "Cargo.toml",
        "host/Cargo.toml",
        "host/engine/Cargo.toml",
        "xtask/Cargo.toml",
    ];
    for manifest in manifests {
        for name in dependencies(&read(&root().join(manifest))) {
            let is_own = name.starts_with("hermitcrab");
            if !is_own && !architecture.contains(&format!("`{name}`")) {
                missing.push(format!("{manifest}: {name}"));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "ARCHITECTURE.md has no sentence for: {}",
        missing.join(", ")
    );
}
