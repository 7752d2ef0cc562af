//! Which of two files `patch` changes.
//!
//! A patch names an old file and a new one. GNU's takes the one with the fewest
//! directories, then with the shortest name, of those that exist; bashkit's always the
//! new one.
//!
//! Seen in bashkit 0.20.2; gone when `patch` of `tests/it/bashkit.rs` fails.

use bashkit::{BuiltinContext, normalize_path, vfs_join};

use super::files::operands;

/// The file that GNU's would change and bashkit's would not.
pub(super) async fn other_file(ctx: &BuiltinContext<'_>) -> Option<String> {
    if !operands(ctx.args).is_empty() {
        return None;
    }
    let text = ctx.stdin_text_lossy()?;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(old) = line.strip_prefix("--- ") else {
            continue;
        };
        let Some(new) = lines.peek().and_then(|line| line.strip_prefix("+++ ")) else {
            continue;
        };
        let [old, new] = [old, new].map(|name| name_in(name, ctx.args));
        if old == new || "/dev/null" == old || "/dev/null" == new {
            continue;
        }
        let exists = async |name: &str| {
            let path = normalize_path(&vfs_join(ctx.cwd, name));
            ctx.fs.stat(&path).await.is_ok()
        };
        let is_old_chosen = match (exists(&old).await, exists(&new).await) {
            (true, true) => rank(&old) <= rank(&new),
            (has_old, _) => has_old,
        };
        if is_old_chosen {
            return Some(old);
        }
    }
    None
}

/// What GNU's looks at, in this order.
fn rank(name: &str) -> (usize, usize, usize) {
    let base = name.rsplit('/').next().unwrap_or(name);
    (name.split('/').count(), base.len(), name.len())
}

/// The name that a line of a patch has, without the directories that `-p` takes away.
fn name_in(line: &str, args: &[String]) -> String {
    let name = line.split('\t').next().unwrap_or(line).trim_end();
    if name == "/dev/null" {
        return name.to_owned();
    }
    let level = args.iter().enumerate().find_map(|(at, argument)| {
        let value = argument
            .strip_prefix("--strip=")
            .or_else(|| argument.strip_prefix("-p"))?;
        let value = match value {
            "" => args.get(at + 1)?,
            value => value,
        };
        value.parse::<usize>().ok()
    });
    match level {
        Some(level) => name
            .splitn(level + 1, '/')
            .last()
            .unwrap_or(name)
            .to_owned(),
        None => name.rsplit('/').next().unwrap_or(name).to_owned(),
    }
}
