//! Paths that end with a slash, or name a directory by itself.
//!
//! bashkit drops the slash: `mv a c.csv/` overwrites a file, and `cp a nope/` makes one.
//! `cp a a` does nothing and ends with 0.
//!
//! Seen in bashkit 0.20.2; gone when `slashes` of `tests/it/bashkit.rs` fails.

use std::path::PathBuf;

use bashkit::{BuiltinContext, normalize_path, vfs_join};

use super::files::operands;

/// Links that are followed, one after another.
const MAX_LINKS: usize = 40;

/// What a path is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Absent,
    Directory,
    /// A symbolic link to one.
    Link,
    Other,
}

/// Why the builtin `name` (`cp`, `mv`, `rm` or `touch`) cannot be run, if it cannot.
pub(super) async fn problem(name: &str, ctx: &BuiltinContext<'_>) -> Option<String> {
    let operands = operands(ctx.args);
    let has_target = matches!(name, "cp" | "mv") && operands.len() > 1;
    for (at, operand) in operands.iter().enumerate() {
        if operand.trim_end_matches('/').is_empty() || !operand.ends_with('/') {
            continue;
        }
        let kind = kind(ctx, operand).await;
        let is_target = has_target && at + 1 == operands.len();
        let reason = match kind {
            Kind::Other => "Not a directory",
            Kind::Link if name == "rm" => "Not a directory",
            Kind::Absent if name == "touch" => "No such file or directory",
            Kind::Absent if is_target => match self::kind(ctx, operands[0]).await {
                Kind::Directory | Kind::Link if at == 1 => continue,
                _ => "Not a directory",
            },
            _ => continue,
        };
        return Some(format!("'{operand}': {reason}"));
    }
    let (to, sources) = operands.split_last().filter(|_| has_target)?;
    let is_directory = matches!(kind(ctx, to).await, Kind::Directory | Kind::Link);
    for from in sources {
        let source = path(ctx, from);
        let mut target = path(ctx, to);
        if is_directory {
            target.push(source.file_name()?);
        }
        // There are often many of them, mostly new.
        if ctx.fs.lstat(&target).await.is_err() {
            continue;
        }
        if kind(ctx, from).await == Kind::Other
            && real(ctx, source).await == real(ctx, target).await
        {
            return Some(format!("'{from}' and '{to}' are the same file"));
        }
    }
    None
}

/// `path` without symbolic links, as far as it exists.
async fn real(ctx: &BuiltinContext<'_>, path: PathBuf) -> PathBuf {
    let mut path = path;
    for _ in 0..MAX_LINKS {
        let mut walked = PathBuf::new();
        let mut components = path.components();
        let mut found = None;
        for component in components.by_ref() {
            walked.push(component);
            if let Ok(target) = ctx.fs.read_link(&walked).await {
                found = Some(target);
                break;
            }
        }
        let Some(target) = found else { return path };
        walked.pop();
        let rest = components.as_path();
        path = normalize_path(&vfs_join(&vfs_join(&walked, target), rest));
    }
    path
}

fn path(ctx: &BuiltinContext<'_>, operand: &str) -> PathBuf {
    normalize_path(&vfs_join(ctx.cwd, operand))
}

async fn kind(ctx: &BuiltinContext<'_>, operand: &str) -> Kind {
    let path = path(ctx, operand);
    let is_link = ctx.fs.read_link(&path).await.is_ok();
    match ctx.fs.stat(&path).await {
        Ok(found) if !found.file_type.is_dir() => Kind::Other,
        Ok(_) if is_link => Kind::Link,
        Ok(_) => Kind::Directory,
        Err(_) if is_link => Kind::Other,
        Err(_) => Kind::Absent,
    }
}
