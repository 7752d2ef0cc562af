//! `mktemp`, drawing from the seed of the environment.
//!
//! bashkit's draws from the keys of std's hash maps, which count up with every map
//! that any session of the core has made: no replay gets the same name.
//!
//! Seen in bashkit 0.20.2; two runs of one seed, without this file.

use bashkit::{Builtin, BuiltinContext, ExecResult, Result, async_trait, normalize_path, vfs_join};

use crate::memory::clock;

/// Names that are tried before it gives up.
const ATTEMPTS: usize = 100;
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// `mktemp [-d] [-u] [-q] [-t] [-p DIR | --tmpdir[=DIR]] [--suffix=TEXT] [TEMPLATE]`
pub(super) struct Mktemp;

#[derive(Default)]
struct Call {
    directory: bool,
    dry_run: bool,
    quiet: bool,
    /// `-t`: the template is a name in the temporary directory.
    t: bool,
    /// `-p` or `--tmpdir`, with the directory if one is named.
    within: Option<Option<String>>,
    suffix: Option<String>,
    template: Option<String>,
}

#[async_trait]
impl Builtin for Mktemp {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let call = match parse(ctx.args) {
            Ok(call) => call,
            Err(message) => return Ok(ExecResult::err(format!("mktemp: {message}\n"), 1)),
        };
        Ok(match make(&ctx, &call).await {
            Ok(name) => ExecResult::ok(format!("{name}\n")),
            Err(_) if call.quiet => ExecResult::err(String::new(), 1),
            Err(message) => ExecResult::err(format!("mktemp: {message}\n"), 1),
        })
    }
}

async fn make(ctx: &BuiltinContext<'_>, call: &Call) -> std::result::Result<String, String> {
    let template = call.template.as_deref().unwrap_or("tmp.XXXXXXXXXX");
    let is_within = call.template.is_none() || call.within.is_some() || call.t;
    let variable = ctx.env.get("TMPDIR").filter(|dir| !dir.is_empty()).cloned();
    let named = call.within.clone().flatten().filter(|dir| !dir.is_empty());
    let (first, second) = if call.t {
        (variable, named)
    } else {
        (named, variable)
    };
    let parent = first.or(second).unwrap_or_else(|| "/tmp".to_owned());
    if is_within && template.starts_with('/') {
        return Err(format!(
            "invalid template, '{template}'; with --tmpdir, it may not be absolute"
        ));
    }
    if call.t && template.contains('/') {
        return Err(format!(
            "invalid template, '{template}', contains directory separator"
        ));
    }
    let (start, length, end) = split(template, call.suffix.as_deref())?;
    let place = |name: &str| match is_within {
        true => format!("{}/{name}", parent.trim_end_matches('/')),
        false => name.to_owned(),
    };
    if is_within && parent == "/tmp" {
        // A tree that was replaced may be without it.
        let _ = ctx.fs.mkdir("/tmp".as_ref(), true).await;
    }
    let kind = if call.directory { "directory" } else { "file" };
    let failed = |why: &str| {
        Err(format!(
            "failed to create {kind} via template '{}': {why}",
            place(template)
        ))
    };
    for _ in 0..ATTEMPTS {
        let name = place(&format!("{start}{}{end}", letters(length)));
        let path = normalize_path(&vfs_join(ctx.cwd, &name));
        if ctx.fs.exists(&path).await.unwrap_or(false) {
            continue;
        }
        if call.dry_run {
            return Ok(name);
        }
        let mode = if call.directory { 0o700 } else { 0o600 };
        let made = match call.directory {
            true => ctx.fs.mkdir(&path, false).await,
            false => ctx.fs.write_file(&path, &[]).await,
        };
        let made = match made {
            Ok(()) => ctx.fs.chmod(&path, mode).await,
            error => error,
        };
        return match made {
            Ok(()) => Ok(name),
            Err(error) => failed(&super::reason(&error)),
        };
    }
    failed("File exists")
}

fn letters(length: usize) -> String {
    let draw = |_| {
        let random = clock::current().map_or(0, |timeline| timeline.random().next_u64());
        char::from(LETTERS[(random % LETTERS.len() as u64) as usize])
    };
    (0..length).map(draw).collect()
}

/// What stands before and behind the last X's of a template, and their number.
fn split<'a>(
    template: &'a str,
    suffix: Option<&'a str>,
) -> std::result::Result<(&'a str, usize, &'a str), String> {
    let (head, tail) = match suffix {
        Some(suffix) if suffix.contains('/') => {
            return Err(format!(
                "invalid suffix '{suffix}', contains directory separator"
            ));
        }
        Some(_) if !template.ends_with('X') => {
            return Err(format!(
                "with --suffix, template '{template}' must end in X"
            ));
        }
        Some(suffix) => (template, suffix),
        None => {
            let end = template.rfind('X').map_or(0, |at| at + 1);
            template.split_at(end)
        }
    };
    let start = head.trim_end_matches('X');
    let length = head.len() - start.len();
    if length < 3 {
        return Err(format!("too few X's in template '{template}'"));
    }
    if tail.contains('/') {
        return Err(format!(
            "invalid suffix '{tail}', contains directory separator"
        ));
    }
    Ok((start, length, tail))
}

fn parse(args: &[String]) -> std::result::Result<Call, String> {
    let mut call = Call::default();
    let mut rest = args.iter();
    while let Some(argument) = rest.next() {
        if let Some(long) = argument.strip_prefix("--").filter(|long| !long.is_empty()) {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            match (name, value) {
                ("directory", None) => call.directory = true,
                ("dry-run", None) => call.dry_run = true,
                ("quiet", None) => call.quiet = true,
                ("tmpdir", value) => call.within = Some(value),
                ("suffix", Some(value)) => call.suffix = Some(value),
                ("suffix", None) => {
                    let value = rest.next().cloned();
                    call.suffix = Some(value.ok_or("option '--suffix' requires an argument")?);
                }
                _ => return Err(format!("unrecognized option '{argument}'")),
            }
        } else if argument == "--" {
            for operand in rest.by_ref() {
                call.operand(operand)?;
            }
        } else if let Some(short) = argument.strip_prefix('-').filter(|short| !short.is_empty()) {
            for (at, flag) in short.char_indices() {
                match flag {
                    'd' => call.directory = true,
                    'u' => call.dry_run = true,
                    'q' => call.quiet = true,
                    't' => call.t = true,
                    'p' => {
                        let value = match &short[at + 1..] {
                            "" => rest.next().map(String::as_str),
                            attached => Some(attached),
                        };
                        let value = value.ok_or("option requires an argument -- 'p'")?;
                        call.within = Some(Some(value.to_owned()));
                        break;
                    }
                    other => return Err(format!("invalid option -- '{other}'")),
                }
            }
        } else {
            call.operand(argument)?;
        }
    }
    Ok(call)
}

impl Call {
    fn operand(&mut self, template: &str) -> std::result::Result<(), String> {
        match self.template.replace(template.to_owned()) {
            None => Ok(()),
            Some(_) => Err("too many templates".to_owned()),
        }
    }
}
