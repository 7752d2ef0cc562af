//! What of a builtin's arguments bashkit would get wrong, or not survive.

use super::jq::{Filter, filter_of};
use super::{cut, files, iconv, ln, mkdir, nesting, sed, sort, tr};

/// Makes the arguments of the builtin `name` those that bashkit takes as the real tools
/// do.
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
pub(in crate::memory) fn correct(name: &str, args: &mut Vec<String>) {
    match name {
        "printf" => super::printf::octal_escapes(args),
        "rm" => files::drop_empty(name, args),
        _ => {}
    }
}

/// Why the builtin `name` cannot be run with `args`, with a line end.
pub(in crate::memory) fn refusal(name: &str, args: &[String]) -> Option<String> {
    let special = match name {
        "chmod" | "cp" | "find" | "mv" | "rm" | "rmdir" | "touch" => files::refusal(name, args),
        "cut" => cut::refusal(args),
        "iconv" => iconv::refusal(args),
        "ln" => ln::refusal(args),
        "mkdir" => mkdir::refusal(args),
        "sed" => sed::refusal(args),
        "sort" => sort::refusal(args),
        "tr" => tr::refusal(args),
        _ => None,
    };
    special
        .or_else(|| device_filter(name, args))
        .or_else(|| nesting::refusal(name, args))
        .map(|problem| format!("hermitcrab: {problem}\n"))
}

/// A filter that cannot be given the definitions it needs.
fn device_filter(name: &str, args: &[String]) -> Option<String> {
    let Some(Filter::File(index)) = filter_of(name, args) else {
        return None;
    };
    let file = &args[index];
    file.starts_with("/dev/").then(|| {
        format!("{name}: a filter from {file} is not supported in the sandbox; put it into a file")
    })
}
