//! `tee`. bashkit's writes U+FFFD for bytes that are not UTF-8, and where it cannot write
//! a file the whole script ends.
//!
//! Seen in bashkit 0.20.2; gone when `tee` of `tests/it/bashkit.rs` fails.

use std::fmt::Write as _;

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait, normalize_path, vfs_join};

use super::reason;

/// `tee [-aip] [--output-error[=MODE]] [FILE]...`
pub(super) struct Tee;

#[async_trait]
impl Builtin for Tee {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let call = match parse(ctx.args) {
            Ok(call) => call,
            Err(message) => {
                let help = "Try 'tee --help' for more information.";
                return Ok(ExecResult::err(format!("tee: {message}\n{help}\n"), 1));
            }
        };
        let input = ctx.stdin_bytes().unwrap_or_default();
        let mut errors = String::new();
        for file in call.files {
            let path = normalize_path(&vfs_join(ctx.cwd, file));
            let found = ctx.fs.stat(&path).await;
            let written = match found {
                Ok(found) if found.file_type.is_dir() => Err("Is a directory".to_owned()),
                Ok(_) if file.ends_with('/') => Err("Not a directory".to_owned()),
                _ if file.ends_with('/') => Err("Is a directory".to_owned()),
                Ok(_) if call.appends => {
                    let written = ctx.fs.append_file(&path, input).await;
                    written.map_err(|error| reason(&error))
                }
                _ => {
                    let written = ctx.fs.write_file(&path, input).await;
                    written.map_err(|error| reason(&error))
                }
            };
            if let Err(reason) = written {
                let _ = writeln!(errors, "tee: {file}: {reason}");
            }
        }
        let mut result = ExecResult::ok_bytes(input.to_vec());
        result.exit_code = i32::from(!errors.is_empty());
        result.stderr = errors.into();
        Ok(result)
    }
}

struct Call<'a> {
    appends: bool,
    files: Vec<&'a str>,
}

fn parse(args: &[String]) -> Result<Call<'_>, String> {
    let mut call = Call {
        appends: false,
        files: Vec::new(),
    };
    let mut rest = args.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        match argument {
            "--" => call.files.extend(rest.by_ref()),
            "--append" => call.appends = true,
            "--ignore-interrupts" => {}
            long if long.starts_with("--output-error") => {}
            long if long.starts_with("--") => {
                return Err(format!("unrecognized option '{long}'"));
            }
            short if short.starts_with('-') && short.len() > 1 => {
                for letter in short.chars().skip(1) {
                    match letter {
                        'a' => call.appends = true,
                        'i' | 'p' => {}
                        _ => return Err(format!("invalid option -- '{letter}'")),
                    }
                }
            }
            file => call.files.push(file),
        }
    }
    Ok(call)
}
