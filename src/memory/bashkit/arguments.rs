//! What of a builtin's arguments bashkit would get wrong, or not survive.

use super::jq::{Filter, filter_of};
use super::{cut, files, iconv, ln, mkdir, nesting, sed, sort, tr};

/// Why the builtin `name` cannot be run with `args`, with a line end.
pub(in crate::memory) fn refusal(name: &str, args: &[String]) -> Option<String> {
    let special = match name {
        "chmod" | "cp" | "mv" | "rm" | "rmdir" => files::refusal(name, args),
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
