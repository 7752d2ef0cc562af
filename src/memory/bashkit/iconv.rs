//! What `iconv` writes.
//!
//! bashkit's output is text: Latin-1 comes out as UTF-8, and UTF-16 is lost.
//!
//! Seen in bashkit 0.20.2; gone when `iconv` of `tests/it/bashkit.rs` fails.

/// Why `iconv` with `args` cannot be run.
pub(super) fn refusal(args: &[String]) -> Option<String> {
    let mut rest = args.iter().map(String::as_str);
    let mut files = 0;
    while let Some(argument) = rest.next() {
        if matches!(argument, "-f" | "--from-code") {
            rest.next();
        }
        files += usize::from(!argument.starts_with('-'));
        if files > 1 {
            return Some(
                "iconv: more than one file is not supported in the sandbox; use cat".to_owned(),
            );
        }
        let value = match argument.strip_prefix("--to-code") {
            Some("") => rest.next(),
            Some(value) => value.strip_prefix('='),
            None if argument.starts_with("--") => None,
            None => match argument.strip_prefix("-t") {
                Some("") => rest.next(),
                value => value,
            },
        };
        let Some(value) = value else { continue };
        let (name, _) = value.split_once("//").unwrap_or((value, ""));
        let is_text = ["utf-8", "utf8", "ascii", "us-ascii"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known));
        if is_text && value.contains("//") && !name.to_ascii_lowercase().contains("ascii") {
            return Some(format!(
                "iconv: {value} is not supported in the sandbox; leave out what is behind {name}"
            ));
        }
        if !is_text {
            return Some(format!(
                "iconv: {value} cannot be written in the sandbox, only UTF-8"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings() {
        let check = |line: &str, refused: bool| {
            let args: Vec<_> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(refusal(&args).is_some(), refused, "{line}");
        };
        check("-f latin1 -t utf-8 f", false);
        check("-f latin1 -tUTF8", false);
        check("-f utf-8 -t ascii//TRANSLIT", false);
        check("-f latin1 f", false);
        check("-f latin1 -t utf-8 f g", true);
        check("-f utf-8 -t utf-8//TRANSLIT", true);
        check("-t latin1", true);
        check("-f utf-8 -tutf-16le f", true);
        check("--to-code=ISO-8859-1 f", true);
        check("--to-code latin1", true);
    }
}
